"""Where the nodes and edges of a picture go: `laid_out` is the one door. No edge touches a node that it does not join, and every
edge ends at the borders of its nodes.

Lengths are in points (1/72 inch), y grows downwards. With `graphlay` (the extra `plot`) its layered layout is taken; without it,
`in_layers`: parents above children, and an edge over several layers has a place of its own in each of those between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any

Point = tuple[float, float]
Edge = tuple[str, str]

HEIGHT, GAP, LAYER = 26.0, 22.0, 44.0
"""The height of a node, the gap between the nodes of a layer, and that between layers."""

CHARACTERS = 16
"""A name that is longer is cut in the picture."""

SWEEPS = 12
"""How often the layers are put in the order of their neighbours."""

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


@dataclass(frozen=True)
class Layout:
    """The centre and width of each node, and the corners of the path of each edge, from parent to child.

    >>> at = in_layers("ab", {"a": [], "b": ["a"]})
    >>> at.paths["a", "b"], at.box("b")
    ([(20.0, 26.0), (20.0, 70.0)], (0.0, 70.0, 40.0, 96.0))
    """

    centres: Mapping[str, Point]
    widths: Mapping[str, float]
    paths: Mapping[Edge, Sequence[Point]]

    def box(self, name: str) -> Box:
        """The borders of a node."""
        (x, y), w = self.centres[name], self.widths[name]
        return x - w / 2, y - HEIGHT / 2, x + w / 2, y + HEIGHT / 2

    @property
    def bounds(self) -> Box:
        """What the picture takes."""
        boxes = [self.box(name) for name in self.centres]
        points = [p for path in self.paths.values() for p in path]
        xs = [x for a, _, b, _ in boxes for x in (a, b)] + [x for x, _ in points]
        ys = [y for _, a, _, b in boxes for y in (a, b)] + [y for _, y in points]
        return min(xs), min(ys), max(xs), max(ys)

    def collisions(self) -> list[tuple[Edge, str]]:
        """Each edge that touches a node which it does not join, and that node: there are none, or another layout is taken.

        >>> bad = Layout({"a": (0, 0), "b": (0, 50), "c": (0, 100)}, dict.fromkeys("abc", 40), {("a", "c"): [(0, 13), (0, 87)]})
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


def shown(name: str) -> str:
    """A name as the picture has it.

    >>> shown("a name that is longer")
    'a name that is …'
    """
    return name if len(name) <= CHARACTERS else name[: CHARACTERS - 1] + "…"


def width_of(name: str) -> float:
    return max(40.0, 14.0 + 7.0 * len(shown(name)))


def laid_out(order: Sequence[str], parents: Mapping[str, Sequence[str]]) -> Layout:
    """The layout of a graph whose nodes come in an order in which parents precede children."""
    try:
        graphlay = import_module("graphlay")
    except ImportError:
        return in_layers(order, parents)
    layout = by_graphlay(graphlay, order, parents)
    return in_layers(order, parents) if layout.collisions() else layout


def by_graphlay(graphlay: Any, order: Sequence[str], parents: Mapping[str, Sequence[str]]) -> Layout:
    """The layout that graphlay makes, parents above children."""
    graph = graphlay.Graph()
    widths = {name: width_of(name) for name in order}
    for name in order:
        graph.node(name, width=widths[name], height=HEIGHT)
    edges = [(parent, child) for child in order for parent in parents[child]]
    for parent, child in edges:
        graph.edge(parent, child)
    options = {"direction": "topbottom", "routing": {"style": "diagonal"}}
    found = graphlay.layout(graph, options=options)
    paths = {edge: [(p["x"], p["y"]) for p in drawn["points"]] for edge, drawn in zip(edges, found.edges, strict=True)}
    return Layout(found.positions(), widths, paths)


Slot = str | tuple[str, str, int]
"""A node, or the place of an edge (parent, child) in a layer between."""


def in_layers(order: Sequence[str], parents: Mapping[str, Sequence[str]]) -> Layout:
    """The layout without graphlay: the layer of a node is the length of the longest path to it. In the band of a layer edges are
    vertical, in a place that no node has; between two bands they are straight, and there are no nodes."""
    depth: dict[str, int] = {}
    for name in order:
        depth[name] = 1 + max((depth[p] for p in parents[name]), default=-1)
    chains = {(p, c): _chain(p, c, depth) for c in order for p in parents[c]}
    rows = _ordered(order, depth, chains)
    widths = {name: width_of(name) for name in order}
    x = _placed(rows, widths, chains)
    top = {layer: layer * (HEIGHT + LAYER) for layer in range(len(rows))}
    centres = {name: (x[name], top[depth[name]] + HEIGHT / 2) for name in order}
    return Layout(centres, widths, {edge: _path(chain, x, top, depth) for edge, chain in _ported(chains, x, widths)})


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


def _path(ported: Ported, x: Mapping[Slot, float], top: Mapping[int, float], depth: Mapping[str, int]) -> list[Point]:
    chain, start, end = ported
    first, last = chain[0], chain[-1]
    points = [(start, top[depth[str(first)]] + HEIGHT)]
    for slot in chain[1:-1]:
        layer = int(slot[2])
        points += [(x[slot], top[layer]), (x[slot], top[layer] + HEIGHT)]
    return [*points, (end, top[depth[str(last)]])]
