"""Paths in directed graphs: orders, cycles, ancestors, d-separation.

Functions of two mappings, from a node to its parents and to its children.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TypeAlias

from suffice.errors import GraphError
from suffice.graphs.text import written

Links: TypeAlias = Mapping[str, Sequence[str]]


def topological_order(parents: Links, children: Links) -> tuple[str, ...]:
    """All nodes, parents before children, the smallest name that may come next first (Kahn 1962); a cycle is refused.

    >>> topological_order({"a": ["b"], "b": [], "c": []}, {"a": [], "b": ["a"], "c": []})
    ('b', 'a', 'c')
    """
    n_waiting = {x: len(ps) for x, ps in parents.items()}
    heap = [x for x, n in n_waiting.items() if not n]
    heapify(heap)
    order = []
    while heap:
        x = heappop(heap)
        order.append(x)
        for child in children[x]:
            n_waiting[child] -= 1
            if not n_waiting[child]:
                heappush(heap, child)
    if len(order) < len(parents):
        raise GraphError(f"the graph has a cycle: {chain(find_cycle(parents))}")
    return tuple(order)


def reached(start: Iterable[str], links: Links) -> set[str]:
    """The nodes at the ends of paths along the links, the start included.

    >>> sorted(reached(["c"], {"a": [], "b": ["a"], "c": ["b"], "d": []}))
    ['a', 'b', 'c']
    """
    found = set(start)
    stack = list(found)
    while stack:
        fresh = [x for x in links[stack.pop()] if x not in found]
        found.update(fresh)
        stack += fresh
    return found


def blocked(parents: Links, children: Links, sources: set[str], targets: set[str], given: set[str]) -> bool:
    """Whether every path between sources and targets is blocked (Koller & Friedman 2009, algorithm 3.1: linear time).

    >>> blocked({"a": [], "b": ["a"]}, {"a": ["b"], "b": []}, {"a"}, {"b"}, set())
    False
    """
    active_colliders = reached(given, parents)
    stack = [(x, True) for x in sources]
    visited = set()
    while stack:
        step = stack.pop()
        if step in visited:
            continue
        visited.add(step)
        x, from_child = step
        if x in targets:
            return False
        if x not in given:
            stack += [(child, False) for child in children[x]]
        if x not in given if from_child else x in active_colliders:
            stack += [(parent, True) for parent in parents[x]]
    return True


def find_cycle(parents: Links) -> list[str]:
    """A directed cycle, from its smallest name back to that name; empty when there is none.

    >>> find_cycle({"a": ["b"], "b": ["a"], "c": ["a"]})
    ['a', 'b', 'a']
    """
    n_left = {child: len(ps) for child, ps in parents.items()}
    children = defaultdict[str, list[str]](list)
    for child, ps in parents.items():
        for p in ps:
            children[p].append(child)
    sources = [name for name in {*children, *n_left} if not n_left.get(name)]
    while sources:
        for child in children[sources.pop()]:
            n_left[child] -= 1
            if not n_left[child]:
                sources.append(child)
    left = {name for name, n in n_left.items() if n}
    if not left:
        return []
    path: dict[str, None] = {}
    here = min(left)
    while here not in path:
        path[here] = None
        here = min(p for p in parents[here] if p in left)
    cycle = list(path)
    cycle = cycle[cycle.index(here) :][::-1]
    start = cycle.index(min(cycle))
    cycle = cycle[start:] + cycle[:start]
    return [*cycle, cycle[0]]


def chain(names: Sequence[str], limit: int = 10) -> str:
    """A path for a sentence, cut in the middle.

    >>> chain(["a", "b", "a"]), chain(list("abcdef"), limit=4)
    ('a -> b -> a', 'a -> b -> c -> ... -> f')
    """
    cut = list(names) if len(names) <= limit else [*names[: limit - 1], "...", names[-1]]
    return " -> ".join(name if name == "..." else written(name[:60]) for name in cut)
