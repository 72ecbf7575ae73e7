"""Where the nodes and edges of a graph go: `lay_out` is the one door. No edge touches a node that it does not join, and every
edge ends at the borders of its nodes.

Parts that no edge joins are laid out one by one, then packed. With `graphlay` (the extra `plot`) its layered layout is taken,
without it `in_layers`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from suffice.pictures.layers import depths, in_layers
from suffice.pictures.layout import SQUARE, Edge, Layout, Point, Size

BOTH_WAYS = 300
"""Up to how many nodes two directions are tried, and straight lines before bent ones."""

SPACE = 24.0
"""Between parts that no edge joins."""

Parents = Mapping[str, Sequence[str]]


def lay_out(sizes: Mapping[str, Size], parents: Parents) -> Layout:
    """The layout of a graph whose nodes, with their sizes, come in an order in which parents precede children.

    >>> at = lay_out({"a": (40.0, 26.0), "b": (40.0, 26.0)}, {"a": [], "b": ["a"]})
    >>> at.collisions()
    []
    """
    parts = _parts(sizes, parents)
    return pack_layouts([_lay_out_part({n: sizes[n] for n in part}, {n: parents[n] for n in part}) for part in parts])


def _parts(names: Mapping[str, Size], parents: Parents) -> list[list[str]]:
    """The nodes of each connected part, the largest first."""
    beside: dict[str, list[str]] = {name: list(parents[name]) for name in names}
    for child in names:
        for parent in parents[child]:
            beside[parent].append(child)
    part: dict[str, str] = {}
    for name in names:
        queue = [] if name in part else [name]
        for x in queue:
            if x not in part:
                part[x] = name
                queue += beside[x]
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(part[name], []).append(name)
    return sorted(groups.values(), key=lambda group: -len(group))


def pack_layouts(parts: Sequence[Layout]) -> Layout:
    """Layouts side by side, in rows of about the same width.

    >>> one = Layout({"a": (0, 0)}, {"a": (40, 26)}, {})
    >>> pack_layouts([one, Layout({"b": (0, 0)}, {"b": (40, 26)}, {})]).centres
    {'a': (20.0, 13.0), 'b': (20.0, 63.0)}
    """
    if len(parts) == 1:
        return parts[0]
    spaces = [(right - left + SPACE, bottom - top + SPACE) for left, top, right, bottom in (part.bounds for part in parts)]
    most = max([w for w, _ in spaces] + [math.sqrt(SQUARE * sum(w * h for w, h in spaces))], default=0.0)
    x = y = row = 0.0
    centres, sizes, paths = dict[str, Point](), dict[str, Size](), dict[Edge, Sequence[Point]]()
    for part, (w, h) in zip(parts, spaces, strict=True):
        if x and x + w > most + 1e-6:
            x, y, row = 0.0, y + row, 0.0
        moved = part.moved(x, y)
        centres |= moved.centres
        sizes |= moved.sizes
        paths |= moved.paths
        x, row = x + w, max(row, h)
    return Layout(centres, sizes, paths)


def _lay_out_part(sizes: Mapping[str, Size], parents: Parents) -> Layout:
    try:
        graphlay = import_module("graphlay")
    except ImportError:
        return in_layers(sizes, parents)
    if len(sizes) == 1:
        return in_layers(sizes, parents)
    few = len(sizes) <= BOTH_WAYS
    ways = ("topbottom", "leftright") if few else (_way(sizes, parents),)
    for style in ("diagonal", "orthogonal") if few else ("orthogonal",):
        found = [by_graphlay(graphlay, sizes, parents, direction=way, style=style) for way in ways]
        if clear := [at for at in found if not at.collisions()]:
            return min(clear, key=lambda at: at.proportion)
    return in_layers(sizes, parents)


def _way(sizes: Mapping[str, Size], parents: Parents) -> str:
    """The direction in which a large graph is nearer to a pleasant shape, by the sums of its layers."""
    depth = depths(sizes, parents)
    widths, heights = (dict.fromkeys(depth.values(), 0.0) for _ in range(2))
    for name, (w, h) in sizes.items():
        widths[depth[name]] += w
        heights[depth[name]] += h
    w, h = (max(size[k] for size in sizes.values()) for k in (0, 1))
    down = abs(math.log(max(widths.values()) / (2 * h * len(widths)) / SQUARE))
    across = abs(math.log(1.5 * w * len(heights) / max(heights.values()) / SQUARE))
    return "topbottom" if down <= across else "leftright"


def by_graphlay(
    graphlay: Any, sizes: Mapping[str, Size], parents: Parents, *, direction: str = "topbottom", style: str
) -> Layout:
    """The layout that graphlay makes, children below or to the right of their parents."""
    graph = graphlay.Graph()
    for name, (width, height) in sizes.items():
        graph.node(name, width=width, height=height)
    edges = [(parent, child) for child in sizes for parent in parents[child]]
    for parent, child in edges:
        graph.edge(parent, child)
    found = graphlay.layout(graph, options={"direction": direction, "routing": {"style": style}})
    paths = {edge: [(p["x"], p["y"]) for p in drawn["points"]] for edge, drawn in zip(edges, found.edges, strict=True)}
    return Layout(found.positions(), dict(sizes), paths)
