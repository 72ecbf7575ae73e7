"""Equivalence classes in numbers: a set of nodes is a whole number with their bits, a class is `above` and `beside` of each node.

`graphs.equivalence` does the same by name. A search that makes thousands of classes needs sets that cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from suffice.graphs.equivalence import meek
from suffice.structure.rules import Parents

Edge = tuple[int, int]

Ordered = tuple[list[int], list[int]]
"""A directed graph: the parents of each node, and the nodes in order, parents first."""


class Class(NamedTuple):
    """A partially directed graph: of each node the nodes with an arrow to it, and those with an edge that has no direction."""

    above: list[int]
    beside: list[int]

    def adjacent(self) -> list[int]:
        """Of each node all nodes with an edge to it."""
        around = [a | b for a, b in zip(self.above, self.beside, strict=True)]
        for node, parents in enumerate(self.above):
            for p in members(parents):
                around[p] |= 1 << node
        return around


def members(nodes: int) -> Iterator[int]:
    """The nodes of a set, in order.

    >>> list(members(0b1011))
    [0, 1, 3]
    """
    while nodes:
        last = nodes & -nodes
        yield last.bit_length() - 1
        nodes ^= last


def as_set(nodes: Sequence[int]) -> int:
    """The set of these nodes.

    >>> as_set((0, 1, 3))
    11
    """
    result = 0
    for node in nodes:
        result |= 1 << node
    return result


def as_parents(sets: Sequence[int]) -> list[Parents]:
    """Sets as sorted tuples."""
    return [tuple(members(s)) for s in sets]


def cliques(nodes: int, adjacent: Sequence[int], most: int) -> Iterator[int]:
    """All subsets of up to `most` nodes that are adjacent to each other, the empty one first.

    >>> [bin(c) for c in cliques(0b111, [0b010, 0b101, 0b010], 3)]
    ['0b0', '0b1', '0b11', '0b10', '0b110', '0b100']
    """
    agenda = [(0, nodes, 0)]
    while agenda:
        clique, more, size = agenda.pop()
        yield clique
        if size < most:
            steps = []
            for node in members(more):
                more ^= 1 << node
                steps.append((clique | 1 << node, more & adjacent[node], size + 1))
            agenda += reversed(steps)


def is_clique(nodes: int, adjacent: Sequence[int]) -> bool:
    """Whether these nodes are adjacent to each other."""
    return all(not nodes & ~adjacent[x] & ~(1 << x) for x in members(nodes))


def member(graph: Class) -> Ordered | None:
    """The parents in a directed graph with these arrows and no new collider, and its nodes in order; None where there is none.

    Dor & Tarsi (1992), as `graphs.equivalence.extension`: of several nodes that could go, the last goes first.

    >>> member(Class([0, 0, 0], [0b010, 0b101, 0b010]))
    ([0, 1, 2], [0, 1, 2])
    """
    n = len(graph.above)
    parents, beside, adjacent = list(graph.above), list(graph.beside), graph.adjacent()
    below = [0] * n
    for y, above in enumerate(parents):
        for x in members(above):
            below[x] |= 1 << y

    def ready(x: int) -> bool:
        return not below[x] and all(adjacent[x] & ~adjacent[y] == 1 << y for y in members(beside[x]))

    heap = [-x for x in range(n) if ready(x)]
    heapify(heap)
    waiting = ((1 << n) - 1) & ~as_set([-x for x in heap])
    order = []
    while heap:
        x = -heappop(heap)
        order.append(x)
        parents[x] |= beside[x]
        around, gone = adjacent[x], ~(1 << x)
        for y in members(around):
            adjacent[y] &= gone
            below[y] &= gone
            beside[y] &= gone
        for y in members(around & waiting):
            if ready(y):
                waiting ^= 1 << y
                heappush(heap, -y)
    return None if waiting else (parents, order[::-1])


def closed(n: int, arrows: Sequence[Edge], lines: Sequence[Edge]) -> Class:
    """The class with every line directed that the arrows leave no choice.

    >>> closed(3, [(0, 1)], [(1, 2)])
    Class(above=[0, 1, 2], beside=[0, 0, 0])
    """
    directed, undirected = meek([(f"{a:09}", f"{b:09}") for a, b in arrows], [(f"{a:09}", f"{b:09}") for a, b in lines])
    above, beside = [0] * n, [0] * n
    for a, b in directed:
        above[int(b)] |= 1 << int(a)
    for a, b in undirected:
        beside[int(a)] |= 1 << int(b)
        beside[int(b)] |= 1 << int(a)
    return Class(above, beside)


def class_of(parents: Sequence[int], order: Sequence[int]) -> Class:
    """The equivalence class of a directed graph, whose nodes are given parents first (Chickering 1995, Label-Edges).

    >>> class_of([0, 0b1, 0b10], [0, 1, 2])
    Class(above=[0, 0, 0], beside=[2, 5, 2])
    """
    n = len(parents)
    position = [0] * n
    for i, x in enumerate(order):
        position[x] = i
    above, beside = [0] * n, [0] * n
    for y in order:
        into = parents[y]
        if not into:
            continue
        x = max(members(into), key=position.__getitem__)
        shared = not above[x] & ~into and not into & ~parents[x] & ~(1 << x)
        above[y] = above[x] if shared else into
        for p in members(into & ~above[y]):
            beside[y] |= 1 << p
            beside[p] |= 1 << y
    return Class(above, beside)
