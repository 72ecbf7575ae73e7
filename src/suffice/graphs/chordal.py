"""Chordal graphs: perfect orders, triangulations, cliques, and the sequences of cliques that closed forms walk along.

Functions of plain nodes and mappings from a node to its neighbours; `Graph` is in `undirected`. Ties are broken by name, so that
nothing depends on how a graph was written down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TypeAlias

Around: TypeAlias = Mapping[str, Sequence[str]]

MAX_CLIQUES = 1_000_000
"""No more maximal cliques than this are listed: a graph of n nodes may have 3^(n/3) of them."""


def perfect_order(neighbours: Around) -> list[str]:
    """An order in which the nodes of a chordal graph can be eliminated without a new edge; of other graphs just an order.

    Maximum cardinality search backwards (Tarjan & Yannakakis 1984, SIAM Journal on Computing 13, p. 566): the next node is the
    one with most neighbours among those that were taken.
    """
    taken: dict[str, int] = {}
    weight = dict.fromkeys(neighbours, 0)
    heap = [(0, x) for x in sorted(neighbours)]
    while heap:
        less, x = heappop(heap)
        if x in taken or -less != weight[x]:
            continue
        taken[x] = len(taken)
        for y in neighbours[x]:
            if y not in taken:
                weight[y] += 1
                heappush(heap, (-weight[y], y))
    return list(taken)[::-1]


def is_perfect(order: Sequence[str], neighbours: Around) -> bool:
    """Whether each node's later neighbours are all joined to the first of them: then they are joined to each other."""
    place, near = {x: i for i, x in enumerate(order)}, {x: set(ys) for x, ys in neighbours.items()}
    for x in order:
        later = [y for y in neighbours[x] if place[y] > place[x]]
        if later:
            first = min(later, key=place.__getitem__)
            if not near[first].issuperset(y for y in later if y != first):
                return False
    return True


def fill_in(neighbours: Around) -> list[tuple[str, str]]:
    """The edges that eliminating the nodes one by one adds, each time the node that adds fewest (then: of fewest neighbours)."""
    near = {x: set(ys) for x, ys in neighbours.items()}
    added: list[tuple[str, str]] = []

    def lacking(x: str) -> int:
        return sum(len(near[x]) - 1 - len(near[x] & near[y]) for y in near[x]) // 2

    heap = [(lacking(x), len(near[x]), x) for x in near]
    heapify(heap)
    while heap:
        cost, degree, x = heappop(heap)
        if x not in near:
            continue
        if (now := (lacking(x), len(near[x]))) != (cost, degree):
            if now > (cost, degree):
                heappush(heap, (*now, x))
            continue
        around = sorted(near.pop(x))
        touched = set(around)
        for y in around:
            near[y].discard(x)
        for i, y in enumerate(around):
            for z in around[i + 1 :]:
                if z not in near[y]:
                    near[y].add(z)
                    near[z].add(y)
                    added.append((y, z))
                    touched |= near[y] & near[z]
        for y in touched:
            heappush(heap, (lacking(y), len(near[y]), y))
    return sorted(added)


def sequence_of_cliques(neighbours: Around) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The cliques of a chordal graph in a perfect sequence, each with its separator: what it shares with those before it.

    All of a separator is in one of the earlier cliques (Lauritzen 1996, p. 14); the first one's is empty.
    """
    order = perfect_order(neighbours)
    place = {x: i for i, x in enumerate(order)}
    later = {x: {y for y in neighbours[x] if place[y] > place[x]} for x in order}
    found: list[set[str]] = []
    # Backwards from the last, later neighbours of x lie in one clique; x joins it where that clique is no more than they are.
    home: dict[str, int] = {}
    for x in reversed(order):
        first = min(later[x], key=place.__getitem__, default=None)
        if first is not None and len(found[home[first]]) == len(later[x]):
            at = home[first]
            found[at].add(x)
        else:
            at = len(found)
            found.append({x, *later[x]})
        home[x] = at
    result, before = [], set[str]()
    for clique in found:
        result.append((tuple(sorted(clique)), tuple(sorted(clique & before))))
        before |= clique
    return result
