"""What a network is: its nodes, and where they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from suffice.errors import SufficeError
from suffice.explorer.answers.reasons import judgement_of
from suffice.explorer.requests.calls import Call
from suffice.explorer.shelf import HeldModel
from suffice.pictures import Bar, PictureNode
from suffice.pictures.arrangement import lay_out
from suffice.pictures.layout import Layout
from suffice.pictures.scene import Scene
from suffice.pictures.shapes import MARGIN, heading, outline, path_of, width_of
from suffice.variables import Finite, Variable, is_whole

LARGE = 200
"""Nodes from which on a layout is made in another process, for it may take seconds."""

NUMBER = "mean -0.0000, sd 0.0000"
"""The room that a number takes."""

STYLES = {"solid": "both", "double": "here", "dotted": "there", "dashed": "reversed"}
"""What the lines of two graphs in one mean."""


def nodes(request: Call) -> dict[str, Any]:
    """The nodes, with their states and neighbours."""
    model = request.model
    parents: dict[str, list[str]] = {name: [] for name in model.network.variables}
    children: dict[str, list[str]] = {name: [] for name in model.network.variables}
    for a, b in model.edges:
        parents[b].append(a)
        children[a].append(b)
    if model.directed:
        parents = {name: list(model.network.dag.parents(name)) for name in parents}
    told = [
        {"name": name, "kind": kind_of(v), "states": states_of(v), "parents": parents[name], "children": children[name]}
        for name, v in model.network.variables.items()
    ]
    return {"nodes": told}


def kind_of(variable: Variable) -> str:
    return "finite" if isinstance(variable, Finite) else "count" if is_whole(variable) else "real"


def states_of(variable: Variable) -> list[str]:
    return list(variable.states) if isinstance(variable, Finite) else []


def graph(request: Call) -> dict[str, Any]:
    """Where nodes and edges are."""
    model = request.model
    size, widths = request.text("size", "bars"), request.text("widths", "none")
    focus, steps = request.query.get("focus") or None, request.number("steps", 1)
    if size not in ("bars", "names") or widths not in ("none", "loss", "share"):
        raise SufficeError("size is bars or names, and widths is none, loss or share")
    scene = scene_of(request, model, widths)
    picture = scene.near(focus, steps)
    sized = replace(picture, nodes=tuple(sized_node(model, node.name) for node in picture.nodes)) if size == "bars" else picture
    at = layout_of(model, sized, ("layout", size, focus, steps))
    if at is None:
        return {"ready": False}
    kinds = {name: kind_of(v) for name, v in model.network.variables.items()}
    return {**told_graph(sized, at, kinds), "hidden": len(scene.nodes) - len(picture.nodes)}


def scene_of(request: Call, model: HeldModel, widths: str) -> Scene:
    """The graph, with edges as wide as the data say."""
    scene: Scene = model.network._scene()
    if widths == "loss":
        return scene.weigh_edges(judgement_of(request, model)[0].losses, "loss without the edge")
    if widths == "share":
        if model.strengths is None:
            raise SufficeError("how often edges are found is not known yet: let the rows be resampled first")
        shares = {(a, b): model.strengths.strength(a, b) for a, b in model.edges}
        return scene.weigh_edges(shares, "found in this share of resamples", 1.0)
    return scene


def sized_node(model: HeldModel, name: str) -> PictureNode:
    """A node with as much room as its beliefs take, whatever they are."""
    variable = model.network.variables[name]
    if not isinstance(variable, Finite):
        return PictureNode(name, lines=(NUMBER,))
    return PictureNode(name, bars=tuple(Bar(state, 0.0) for state in variable.states))


def told_graph(scene: Scene, at: Layout, kinds: Mapping[str, str]) -> dict[str, Any]:
    """A layout as the page takes it."""
    left, top, right, bottom = at.bounds
    moved = at.move_to(MARGIN, MARGIN) if scene.nodes else at
    told = []
    for node in scene.nodes:
        x, y, a, b = moved.box(node.name)
        rows, _ = node.few_bars()
        shown = [bar.label for bar in rows]
        size = {"x": x, "y": y, "w": a - x, "h": b - y}
        facts = {"name": node.name, "label": heading(node), "kind": kinds.get(node.name, "finite")}
        told.append({**facts, **size, "rows": shown, "more": len(node.bars) - len(shown)})
    edges = [
        {
            "from": edge.tail,
            "to": edge.head,
            "points": [list(point) for point in path_of(edge, moved)],
            "width": width_of(edge.strength),
            "directed": edge.arrow,
            "style": STYLES[edge.style] if scene.legend else None,
        }
        for edge in scene.edges
    ]
    meaning = "; ".join(words for _, words in scene.widths) or None  # the least and the most, in words
    size = {"width": right - left + 2 * MARGIN, "height": bottom - top + 2 * MARGIN}
    return {"ready": True, **size, "direction": _direction(edges), "widths": meaning, "nodes": told, "edges": edges, "hidden": 0}


def _direction(edges: list[dict[str, Any]]) -> str:
    """Which way most edges lead: down or across."""
    ways = [(e["points"][0], e["points"][-1]) for e in edges]
    return "down" if sum(abs(b[1] - a[1]) - abs(b[0] - a[0]) for a, b in ways) >= 0 else "across"


def layout_of(model: HeldModel, scene: Scene, key: Any) -> Layout | None:
    """The layout of a picture, kept; of a large one None until another process has made it."""
    sizes, parents = outline(scene)
    with model.lock:
        known = model.kept.get(key)
        if isinstance(known, Layout):
            return known
        if len(sizes) < LARGE:
            model.kept[key] = found = lay_out(sizes, parents)
            return found
        if known is None:
            model.kept[key] = threading.Thread(target=_lay_out_later, args=(model, key, sizes, parents), daemon=True)
            model.kept[key].start()
    return None


def _lay_out_later(model: HeldModel, key: Any, sizes: Mapping[str, Any], parents: Mapping[str, Any]) -> None:
    """By another process: the layout's library keeps all threads of its own waiting. Should that fail, here after all."""
    path = os.pathsep.join(p for p in sys.path if p)
    command = [sys.executable, "-c", "from suffice.explorer.answers.network import lay_out_here; lay_out_here()"]
    try:
        asked = json.dumps([sizes, parents])
        done = subprocess.run(
            command, input=asked, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, check=True
        )
        centres, paths = json.loads(done.stdout)
        found = Layout(
            {n: tuple(p) for n, p in centres.items()}, dict(sizes), {(a, b): [tuple(p) for p in way] for a, b, way in paths}
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        found = lay_out(sizes, parents)
    with model.lock:
        model.kept[key] = found


def lay_out_here() -> None:
    """What the other process does: sizes and parents from standard input, centres and paths to standard output."""
    sizes, parents = json.load(sys.stdin)
    at = lay_out({name: tuple(size) for name, size in sizes.items()}, parents)
    json.dump([dict(at.centres), [[a, b, list(path)] for (a, b), path in at.paths.items()]], sys.stdout)
