"""Where the nodes and edges of a picture go: `lay_out` is the one door. No edge touches a node that it does not join, and every
edge ends at the borders of its nodes.

Lengths are in points (1/72 inch), y grows downwards. With `graphlay` (the extra `plot`) its layered layout is taken; without it,
`in_layers`: parents above children, and an edge over several layers has a place of its own in each of those between.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any

Point = tuple[float, float]
Edge = tuple[str, str]

GAP, LAYER = 22.0, 44.0
"""The gap between the nodes of a layer, and that between layers."""

SWEEPS = 12
"""How often the layers are put in the order of their neighbours."""

SQUARE, BOTH_WAYS = 1.4, 300
"""The width over height that a picture should have, and up to how many nodes two directions are tried for it."""

Size = tuple[float, float]

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True)
class Layout:
    """The centre and size of each node, and the corners of the path of each edge, from parent to child.

    >>> at = in_layers({"a": (40, 26), "b": (40, 26)}, {"a": [], "b": ["a"]})
    >>> at.paths["a", "b"], at.box("b")
    ([(20.0, 26.0), (20.0, 70.0)], (0.0, 70.0, 40.0, 96.0))
    """

    centres: Mapping[str, Point]
    sizes: Mapping[str, Size]
    paths: Mapping[Edge, Sequence[Point]]

    def box(self, name: str) -> Box:
        """The borders of a node."""
        (x, y), (w, h) = self.centres[name], self.sizes[name]
        return x - w / 2, y - h / 2, x + w / 2, y + h / 2

    @property
    def bounds(self) -> Box:
        """What the picture takes."""
        boxes = [self.box(name) for name in self.centres]
        points = [p for path in self.paths.values() for p in path]
        xs = [x for a, _, b, _ in boxes for x in (a, b)] + [x for x, _ in points]
        ys = [y for _, a, _, b in boxes for y in (a, b)] + [y for _, y in points]
        return min(xs, default=0.0), min(ys, default=0.0), max(xs, default=0.0), max(ys, default=0.0)

    @property
    def proportion(self) -> float:
        """How far the picture is from a pleasant shape, whichever of its sides is too long."""
        left, top, right, bottom = self.bounds
        return abs(math.log(max(right - left, 1.0) / max(bottom - top, 1.0) / SQUARE))

    def collisions(self) -> list[tuple[Edge, str]]:
        """Each edge that touches a node which it does not join, and that node: there are none, or another layout is taken.

        >>> sizes = dict.fromkeys("abc", (40, 26))
        >>> bad = Layout({"a": (0, 0), "b": (0, 50), "c": (0, 100)}, sizes, {("a", "c"): [(0, 13), (0, 87)]})
        >>> bad.collisions()
        [(('a', 'c'), 'b')]
        """
        return [
            (edge, name)
            for edge, path in self.paths.items()
            for name in self.centres
            if name not in edge and any(crosses(a, b, self.box(name)) for a, b in pairwise(path))
        ]


def crosses(a: Point, b: Point, box: Box) -> bool:
    """Whether a line touches a box.

    >>> crosses((0, 0), (4, 4), (1, 1, 2, 2)), crosses((0, 0), (4, 0), (1, 1, 2, 2))
    (True, False)
    """
    start, end = 0.0, 1.0
    for k in (0, 1):
        low, high, step = box[k], box[k + 2], b[k] - a[k]
        if step == 0:
            if not low <= a[k] <= high:
                return False
            continue
        first, last = sorted(((low - a[k]) / step, (high - a[k]) / step))
        start, end = max(start, first), min(end, last)
    return start <= end


def lay_out(sizes: Mapping[str, Size], parents: Mapping[str, Sequence[str]]) -> Layout:
    """The layout of a graph whose nodes, with their sizes, come in an order in which parents precede children."""
    try:
        graphlay = import_module("graphlay")
    except ImportError:
        return in_layers(sizes, parents)
    ways = ("topbottom", "leftright") if len(sizes) <= BOTH_WAYS else ("topbottom",)
    for style in ("diagonal", "orthogonal"):
        found = [by_graphlay(graphlay, sizes, parents, direction=way, style=style) for way in ways]
        if clear := [at for at in found if not at.collisions()]:
            return min(clear, key=lambda at: at.proportion)
    return in_layers(sizes, parents)


def by_graphlay(
    graphlay: Any, sizes: Mapping[str, Size], parents: Mapping[str, Sequence[str]], *, direction: str = "topbottom", style: str
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


Slot = str | tuple[str, str, int]
"""A node, or the place of an edge (parent, child) in a layer between."""


def in_layers(sizes: Mapping[str, Size], parents: Mapping[str, Sequence[str]]) -> Layout:
    """The layout without graphlay: the layer of a node is the length of the longest path to it. In the band of a layer edges are
    vertical, in a place that no node has; between two bands they are straight, and there are no nodes."""
    depth: dict[str, int] = {}
    for name in sizes:
        depth[name] = 1 + max((depth[p] for p in parents[name]), default=-1)
    chains = {(p, c): _chain(p, c, depth) for c in sizes for p in parents[c]}
    rows = _ordered(list(sizes), depth, chains)
    widths = {name: width for name, (width, _) in sizes.items()}
    x = _placed(rows, widths, chains)
    bands, y = list[Band](), 0.0
    for layer in range(len(rows)):
        height = max(sizes[name][1] for name in sizes if depth[name] == layer)
        bands.append((y, y + height))
        y += height + LAYER
    centres = {name: (x[name], sum(bands[depth[name]]) / 2) for name in sizes}
    paths = {edge: _path(ported, x, bands, depth, sizes) for edge, ported in _ported(chains, x, widths)}
    return Layout(centres, dict(sizes), paths)


def _chain(parent: str, child: str, depth: Mapping[str, int]) -> list[Slot]:
    """The slots that an edge goes through."""
    return [parent, *((parent, child, layer) for layer in range(depth[parent] + 1, depth[child])), child]


def _ordered(order: Sequence[str], depth: Mapping[str, int], chains: Mapping[Edge, list[Slot]]) -> list[list[Slot]]:
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
            _sort(row, near, _places(rows))
        if (n := _crossings(rows, below)) < fewest:
            best, fewest = [list(row) for row in rows], n
    return best


def _places(rows: Sequence[Sequence[Slot]]) -> dict[Slot, float]:
    return {slot: i - (len(row) - 1) / 2 for row in rows for i, slot in enumerate(row)}


def _sort(row: list[Slot], near: Mapping[Slot, list[Slot]], place: Mapping[Slot, float]) -> None:
    def middle(slot: Slot) -> float:
        around = near.get(slot, ())
        return sum(place[s] for s in around) / len(around) if around else place[slot]

    row.sort(key=middle)


def _crossings(rows: Sequence[Sequence[Slot]], below: Mapping[Slot, list[Slot]]) -> int:
    place = _places(rows)
    n = 0
    for row in rows:
        ends = [place[b] for a in row for b in sorted(below.get(a, ()), key=place.__getitem__)]
        starts = [place[a] for a in row for _ in below.get(a, ())]
        pairs = list(zip(starts, ends, strict=True))
        n += sum(a < c and b > d for i, (a, b) in enumerate(pairs) for c, d in pairs[i + 1 :])
    return n


def _placed(rows: Sequence[Sequence[Slot]], widths: Mapping[str, float], chains: Mapping[Edge, list[Slot]]) -> dict[Slot, float]:
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


Ported = tuple[list[Slot], float, float]
"""The slots of an edge, and where along their borders it leaves the parent and meets the child."""


def _ported(chains: Mapping[Edge, list[Slot]], x: Mapping[Slot, float], widths: Mapping[str, float]) -> list[tuple[Edge, Ported]]:
    """Edges at one border of a node side by side, in the order of where they come from."""
    starts = _ports({edge: (edge[0], x[chain[1]]) for edge, chain in chains.items()}, x, widths)
    ends = _ports({edge: (edge[1], x[chain[-2]]) for edge, chain in chains.items()}, x, widths)
    return [(edge, (chain, starts[edge], ends[edge])) for edge, chain in chains.items()]


def _ports(at: Mapping[Edge, tuple[str, float]], x: Mapping[Slot, float], widths: Mapping[str, float]) -> dict[Edge, float]:
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
    ported: Ported, x: Mapping[Slot, float], bands: Sequence[Band], depth: Mapping[str, int], sizes: Mapping[str, Size]
) -> list[Point]:
    chain, start, end = ported
    first, last = str(chain[0]), str(chain[-1])
    above, below = bands[depth[first]], bands[depth[last]]
    points = [(start, (sum(above) + sizes[first][1]) / 2), (start, above[1])]
    for slot in chain[1:-1]:
        top, bottom = bands[int(slot[2])]
        points += [(x[slot], top), (x[slot], bottom)]
    points += [(end, below[0]), (end, (sum(below) - sizes[last][1]) / 2)]
    return [p for i, p in enumerate(points) if not i or p != points[i - 1]]
