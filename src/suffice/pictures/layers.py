"""A layout that needs no other package: parents above children, and an edge over several layers has a place of its own in each of
those between. In the band of a layer edges are vertical, in a place that no node has; between two bands they are straight, and
there are no nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from suffice.pictures.layout import Edge, Layout, Point, Size

GAP, LAYER = 22.0, 44.0
"""The gap between the nodes of a layer, and that between layers."""

SWEEPS = 12
"""How often the layers are put in the order of their neighbours."""

Slot = str | tuple[str, str, int]
"""A node, or the place of an edge (parent, child) in a layer between."""


def in_layers(sizes: Mapping[str, Size], parents: Mapping[str, Sequence[str]]) -> Layout:
    """The layout in layers, for nodes whose parents precede them.

    >>> at = in_layers({"a": (40, 26), "b": (40, 26)}, {"a": [], "b": ["a"]})
    >>> at.paths["a", "b"], at.box("b")
    ([(20.0, 26.0), (20.0, 70.0)], (0.0, 70.0, 40.0, 96.0))
    """
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
    paths = {edge: _path(ported, x, bands, depth, sizes) for edge, ported in _ports_of(chains, x, widths)}
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


Ported = tuple[list[Slot], float, float]
"""The slots of an edge, and where along their borders it leaves the parent and meets the child."""


def _ports_of(
    chains: Mapping[Edge, list[Slot]], x: Mapping[Slot, float], widths: Mapping[str, float]
) -> list[tuple[Edge, Ported]]:
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
