"""Where the nodes and edges of a graph go: `lay_out` is the one door. No edge touches a node that it does not join, and every
edge ends at the borders of its nodes.

Parts that no edge joins are laid out one by one, then packed. With `graphlay` (the extra `plot`) its layered layout is taken,
without it `in_layers`.

That needs no other package: parents stand above children, and an edge over several layers has a place of its own in each of those
between. In the band of a layer edges are vertical, in a place that no node has; between two bands they are straight, and there
are no nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any

from suffice.basis.pictures.layout import SQUARE, Edge, Layout, Point, Size

GAP, LAYER = 22.0, 44.0
"""The gap between the nodes of a layer, and that between layers."""

SWEEPS = 12
"""How often the layers are put in the order of their neighbours."""

Slot = str | tuple[str, str, int]
"""A node, or the place of an edge (parent, child) in a layer between."""


def in_layers(sizes: Mapping[str, Size], parents: Mapping[str, Sequence[str]]) -> Layout:
    """The layout in layers, for nodes whose parents precede them."""
    depth = depths(sizes, parents)
    chains = {(p, c): _chain(p, c, depth) for c in sizes for p in parents[c]}
    rows = _order_slots(list(sizes), depth, chains)
    widths = {name: width for name, (width, _) in sizes.items()}
    x = _place(rows, widths, chains)
    bands, y = list[Band](), 0.0
    for layer in range(len(rows)):
        height = max(sizes[name][1] for name in sizes if depth[name] == layer)
        bands.append((y, y + height))
        y += height + LAYER
    centres = {name: (x[name], sum(bands[depth[name]]) / 2) for name in sizes}
    starts = _ports({edge: (edge[0], x[chain[1]]) for edge, chain in chains.items()}, x, widths)
    ends = _ports({edge: (edge[1], x[chain[-2]]) for edge, chain in chains.items()}, x, widths)
    paths = {e: _path(chain, (starts[e], ends[e]), x, bands, depth, sizes) for e, chain in chains.items()}
    return Layout(centres, dict(sizes), paths)


def depths(names: Iterable[str], parents: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The layer of each node: the length of the longest path to it."""
    depth: dict[str, int] = {}
    for name in names:
        depth[name] = 1 + max((depth[p] for p in parents[name]), default=-1)
    return depth


def _chain(parent: str, child: str, depth: Mapping[str, int]) -> list[Slot]:
    """The slots that an edge goes through."""
    return [parent, *((parent, child, layer) for layer in range(depth[parent] + 1, depth[child])), child]


def _order_slots(order: Sequence[str], depth: Mapping[str, int], chains: Mapping[Edge, list[Slot]]) -> list[list[Slot]]:
    """The slots of each layer from left to right: each near the mean place of its neighbours in the layer before, then in the
    layer after, in turn. The order with the fewest crossings is kept."""
    rows: list[list[Slot]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
    for name in order:
        rows[depth[name]].append(name)
    above: dict[Slot, list[Slot]] = {}
    below: dict[Slot, list[Slot]] = {}
    for chain in chains.values():
        for slot in chain[1:-1]:
            rows[int(slot[2])].append(slot)
        for a, b in pairwise(chain):
            below.setdefault(a, []).append(b)
            above.setdefault(b, []).append(a)
    best, fewest = [list(row) for row in rows], _crossings(rows, below)
    for sweep in range(SWEEPS):
        near = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            place = _places(rows)
            means = {s: sum(place[t] for t in near[s]) / len(near[s]) if s in near else place[s] for s in row}
            row.sort(key=means.__getitem__)
        if (n := _crossings(rows, below)) < fewest:
            best, fewest = [list(row) for row in rows], n
    return best


def _places(rows: Sequence[Sequence[Slot]]) -> dict[Slot, float]:
    return {slot: i - (len(row) - 1) / 2 for row in rows for i, slot in enumerate(row)}


def _crossings(rows: Sequence[Sequence[Slot]], below: Mapping[Slot, list[Slot]]) -> int:
    place = _places(rows)
    n = 0
    for row in rows:
        ends = [place[b] for a in row for b in sorted(below.get(a, ()), key=place.__getitem__)]
        starts = [place[a] for a in row for _ in below.get(a, ())]
        pairs = list(zip(starts, ends, strict=True))
        n += sum(a < c and b > d for i, (a, b) in enumerate(pairs) for c, d in pairs[i + 1 :])
    return n


def _place(rows: Sequence[Sequence[Slot]], widths: Mapping[str, float], chains: Mapping[Edge, list[Slot]]) -> dict[Slot, float]:
    """The x of each slot: near its neighbours, in the order of its layer, with a gap to the next."""
    near: dict[Slot, list[Slot]] = {}
    for chain in chains.values():
        for a, b in pairwise(chain):
            near.setdefault(a, []).append(b)
            near.setdefault(b, []).append(a)
    wide = {slot: widths[slot] if isinstance(slot, str) else 0.0 for row in rows for slot in row}
    x: dict[Slot, float] = {}
    for row in rows:
        x |= _spread(row, wide, dict.fromkeys(row, 0.0))
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = {s: sum(x[t] for t in near[s]) / len(near[s]) if s in near else x[s] for s in row}
            x |= _spread(row, wide, wanted)
    left = min((x[s] - wide[s] / 2 for row in rows for s in row), default=0.0)
    return {slot: value - left for slot, value in x.items()}


def _spread(row: Sequence[Slot], wide: Mapping[Slot, float], wanted: Mapping[Slot, float]) -> dict[Slot, float]:
    """The places nearest to those wanted that keep the order and the gaps: the least squares, by pooling neighbours."""
    offset, offsets = 0.0, []
    for i, slot in enumerate(row):
        offset += (wide[row[i - 1]] + wide[slot]) / 2 + GAP if i else 0.0
        offsets.append(offset)
    pools: list[tuple[float, int]] = []
    for slot, shift in zip(row, offsets, strict=True):
        pools.append((wanted[slot] - shift, 1))
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            (b, m), (a, n) = pools.pop(), pools.pop()
            pools.append(((a * n + b * m) / (n + m), n + m))
    starts = [mean for mean, n in pools for _ in range(n)]
    return {slot: start + shift for slot, start, shift in zip(row, starts, offsets, strict=True)}


def _ports(at: Mapping[Edge, tuple[str, float]], x: Mapping[Slot, float], widths: Mapping[str, float]) -> dict[Edge, float]:
    """Where edges meet the border of a node, which each is `at`: side by side, in the order of where they come from."""
    groups: dict[str, list[Edge]] = {}
    for edge in sorted(at, key=lambda edge: at[edge][1]):
        groups.setdefault(at[edge][0], []).append(edge)
    result: dict[Edge, float] = {}
    for name, edges in groups.items():
        room = min(0.6 * widths[name], 12.0 * (len(edges) - 1))
        for i, edge in enumerate(edges):
            result[edge] = x[name] + (room * (i / (len(edges) - 1) - 0.5) if len(edges) > 1 else 0.0)
    return result


Band = tuple[float, float]
"""Where a layer begins and ends, from the top."""


def _path(
    chain: Sequence[Slot],
    ports: tuple[float, float],
    x: Mapping[Slot, float],
    bands: Sequence[Band],
    depth: Mapping[str, int],
    sizes: Mapping[str, Size],
) -> list[Point]:
    """The corners of an edge through its slots, from one port to the other."""
    start, end = ports
    first, last = str(chain[0]), str(chain[-1])
    above, below = bands[depth[first]], bands[depth[last]]
    points = [(start, (sum(above) + sizes[first][1]) / 2), (start, above[1])]
    for slot in chain[1:-1]:
        top, bottom = bands[int(slot[2])]
        points += [(x[slot], top), (x[slot], bottom)]
    points += [(end, below[0]), (end, (sum(below) - sizes[last][1]) / 2)]
    return [p for i, p in enumerate(points) if not i or p != points[i - 1]]


BOTH_WAYS = 300
"""Up to how many nodes two directions are tried, and straight lines before bent ones."""

SPACE = 24.0
"""Between parts that no edge joins."""

Parents = Mapping[str, Sequence[str]]


def lay_out(sizes: Mapping[str, Size], parents: Parents) -> Layout:
    """The layout of a graph whose nodes, with their sizes, come in an order in which parents precede children."""
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
    """Layouts side by side, in rows of about the same width."""
    if len(parts) == 1:
        return parts[0]
    spaces = [(right - left + SPACE, bottom - top + SPACE) for left, top, right, bottom in (part.bounds for part in parts)]
    most = max([w for w, _ in spaces] + [math.sqrt(SQUARE * sum(w * h for w, h in spaces))], default=0.0)
    x = y = row = 0.0
    centres, sizes, paths = dict[str, Point](), dict[str, Size](), dict[Edge, Sequence[Point]]()
    for part, (w, h) in zip(parts, spaces, strict=True):
        if x and x + w > most + 1e-6:
            x, y, row = 0.0, y + row, 0.0
        moved = part.move_to(x, y)
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
