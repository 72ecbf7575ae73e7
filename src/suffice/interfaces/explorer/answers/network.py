"""What a network is: its nodes, and where they are; and two models beside each other."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from suffice.basis.pictures import Bar, PictureNode
from suffice.basis.pictures.arrangement import lay_out
from suffice.basis.pictures.layout import Layout
from suffice.basis.pictures.scene import Scene
from suffice.basis.pictures.shapes import MARGIN, heading, outline, path_of, width_of
from suffice.basis.variables import Finite, Variable, is_whole
from suffice.errors import ImpossibleEvidence, ModelError, SufficeError, notes_kept
from suffice.interfaces.explorer.answers.beliefs import beliefs_of, judgement_of
from suffice.interfaces.explorer.calls import AskedNetwork, Call
from suffice.interfaces.explorer.shelf import HeldModel

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
    told = []
    for name, v in model.network.variables.items():
        states = list(v.states) if isinstance(v, Finite) else []
        told.append({"name": name, "kind": kind_of(v), "states": states, "parents": parents[name], "children": children[name]})
    return {"nodes": told}


def kind_of(variable: Variable) -> str:
    return "finite" if isinstance(variable, Finite) else "count" if is_whole(variable) else "real"


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
    edges: list[dict[str, Any]] = [
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
    ways = [(e["points"][0], e["points"][-1]) for e in edges]  # which way most of them lead
    direction = "down" if sum(abs(b[1] - a[1]) - abs(b[0] - a[0]) for a, b in ways) >= 0 else "across"
    return {"ready": True, **size, "direction": direction, "widths": meaning, "nodes": told, "edges": edges, "hidden": 0}


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
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-c", "from suffice.interfaces.explorer.answers.network import lay_out_here; lay_out_here()"]
    try:
        asked = json.dumps([sizes, parents])
        done = subprocess.run(command, input=asked, capture_output=True, text=True, env=environment, check=True)
        centres, ways = json.loads(done.stdout)
        paths = {(a, b): [tuple(p) for p in way] for a, b, way in ways}
        found = Layout({n: tuple(p) for n, p in centres.items()}, dict(sizes), paths)
    except (OSError, subprocess.SubprocessError, ValueError):
        found = lay_out(sizes, parents)
    with model.lock:
        model.kept[key] = found


def lay_out_here() -> None:
    """What the other process does: sizes and parents from standard input, centres and paths to standard output."""
    sizes, parents = json.load(sys.stdin)
    at = lay_out({name: tuple(size) for name, size in sizes.items()}, parents)
    json.dump([dict(at.centres), [[a, b, list(path)] for (a, b), path in at.paths.items()]], sys.stdout)


def compare(request: Call) -> dict[str, Any]:
    """Where the edges of two differ, how far their distributions are apart, and what both say given the same."""
    a, b = (request.shelf.model(request.part(name, str)) for name in ("a", "b"))
    chosen = request.part("table", str, None)
    notes: list[str] = []
    table = None if chosen is None else request.shelf.table(chosen)
    shd = _shd(a, b, notes)
    scores = [{"name": "parameters", "a": int(a.network.n_parameters), "b": int(b.network.n_parameters)}]
    if table is not None:
        scores += _scores(a, b, table.data, notes)
    beliefs = {side: _beliefs(request, model, notes) for side, model in (("a", a), ("b", b))}
    told = {"graph": _graph(a, b), "shd": shd, "kl": _kl(a, b, notes), "scores": scores, "beliefs": beliefs, "notes": notes}
    return {**told, "code": _code(a, b)}


def _graph(a: HeldModel, b: HeldModel) -> dict[str, Any]:
    """The edges of both, in four styles."""
    both = a.network._scene().against(b.network._scene())
    own = {n.name: sized_node(a if n.name in a.network.variables else b, n.name) for n in both.nodes}
    scene = type(both)(tuple(own.values()), both.edges, both.caption, both.legend)
    at = layout_of(a, scene, ("against", b.id))
    kinds = {n: kind_of(v) for n, v in {**b.network.variables, **a.network.variables}.items()}
    return {"ready": False} if at is None else told_graph(scene, at, kinds)


def _shd(a: HeldModel, b: HeldModel, notes: list[str]) -> int | None:
    from suffice.graphs import shd

    if not a.directed or not b.directed:
        notes.append("no structural distance: that is between networks with arrows")
        return None
    found: int | None = _or_noted(notes, lambda: shd(a.network.dag, b.network.dag))
    return found


def _kl(a: HeldModel, b: HeldModel, notes: list[str]) -> dict[str, float] | None:
    from suffice.models.divergence import kl

    if not a.directed or not b.directed:
        notes.append("no divergence of the distributions: that is between networks with arrows")
        return None
    found = _or_noted(notes, lambda: {"a_to_b": kl(a.network, b.network), "b_to_a": kl(b.network, a.network)})
    if found is None:
        return None
    for (p, q), nats in zip(((a, b), (b, a)), found.values(), strict=True):
        if nats == math.inf:
            notes.append(f"the divergence of {p.name} from {q.name} is infinite: the one can be what the other rules out")
    return {name: float(nats) for name, nats in found.items()}


def _scores(a: HeldModel, b: HeldModel, data: Any, notes: list[str]) -> list[dict[str, Any]]:
    """What each says of the data."""
    rows = []
    for name, score in (("log-likelihood", "log_likelihood"), ("BIC", "bic"), ("AIC", "aic")):
        found = [_or_noted(notes, lambda m=m, score=score: float(getattr(m.network, score)(data))) for m in (a, b)]  # type: ignore[misc]
        rows.append({"name": name, "a": found[0], "b": found[1]})
    return rows


def _or_noted(notes: list[str], ask: Callable[[], Any]) -> Any:
    """An answer, or None with a note that says why there is none."""
    try:
        with notes_kept() as kept:
            answer = ask()
    except SufficeError as error:
        said = [str(error)]
        answer = None
    else:
        said = [str(note) for note in kept]
    notes += [text for text in said if text not in notes]
    return answer


def _beliefs(request: Call, model: HeldModel, notes: list[str]) -> dict[str, Any]:
    """The same evidence, as far as the model has these nodes and states."""
    known = model.network.variables
    asked = AskedNetwork.of(request, model)
    given = {n: v for n, v in asked.given.items() if n in known}
    done = {n: v for n, v in asked.do.items() if n in known}
    if left := [n for n in (*asked.given, *asked.do) if n not in known]:
        notes.append(f"{model.name} has no {', '.join(left)}: told without it")
    try:
        return beliefs_of(AskedNetwork(model, given, done), None, None)
    except (ModelError, ImpossibleEvidence) as error:
        nothing = dict.fromkeys(("log_evidence", "evidence_probability", "error"))
        told: dict[str, Any] = {**nothing, "method": "exact", "notes": [], "nodes": {}, "possible": False, "message": str(error)}
        return {**told, "code": {"python": None, "command": None}}


def _code(a: HeldModel, b: HeldModel) -> dict[str, str | None]:
    other = b.origin.python.replace("bn = ", "other = ")
    python = f"import suffice as sf\n\n{a.origin.python}\n{other}\nanswer = bn.picture(against=other)"
    if a.origin.word is None or b.origin.word is None or not (a.directed and b.directed):
        return {"python": python, "command": None}
    before = dict.fromkeys([*a.origin.commands, *b.origin.commands])
    return {"python": python, "command": "\n".join([*before, f"suffice compare {a.origin.shell} {b.origin.shell}"])}
