"""Equivalence classes of directed graphs: which arrows every member shares, and a member of a class.

Functions of plain names and pairs; `Dag` and `Cpdag` are in `graphs.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from suffice.errors import GraphError, listed
from suffice.graphs.paths import chain, find_cycle
from suffice.graphs.text import Edge


def compelled(order: Sequence[str], parents: Mapping[str, Sequence[str]]) -> dict[str, set[str]]:
    """Of each node the parents that it has in every Markov-equivalent graph (Chickering 1995, Label-Edges).

    Children y are visited in topological order, and only the last parent x of y is looked at. When some compelled w -> x has
    no w -> y, or some z -> y has no edge to x, every arrow into y is compelled; otherwise those from the compelled w are.

    >>> compelled("abcd", {"a": [], "b": [], "c": ["a", "b"], "d": ["c"]})["d"]
    {'c'}
    """
    position = {name: i for i, name in enumerate(order)}
    strong: dict[str, set[str]] = {name: set() for name in order}
    for y in order:
        into = set(parents[y])
        if not into:
            continue
        x = max(into, key=position.__getitem__)
        if strong[x] <= into and into <= {x, *parents[x]}:
            strong[y] = set(strong[x])
        else:
            strong[y] = into
    return strong


def meek(directed: Iterable[Edge], undirected: Iterable[Edge]) -> tuple[list[Edge], list[Edge]]:
    """Direct every undirected edge that the directed ones leave no choice, by the four rules of Meek (1995).

    Directed edges may be background knowledge, so rule 4 is needed.

    >>> meek([("a", "b")], [("b", "c")])
    ([('a', 'b'), ('b', 'c')], [])
    """
    parents, children, neighbours, adjacent = (defaultdict[str, set[str]](set) for _ in range(4))
    for a, b in undirected:
        neighbours[a].add(b)
        neighbours[b].add(a)
    agenda = sorted(directed, reverse=True)
    for a, b in agenda:
        parents[b].add(a)
        children[a].add(b)
    for links in (parents, children, neighbours):
        for a, bs in links.items():
            adjacent[a] |= bs

    def implied(a: str, b: str) -> Iterable[Edge]:
        """What the arrow a -> b directs, as one of the arrows in the premise of each rule."""
        for c in neighbours[b] - adjacent[a]:  # 1: a -> b - c
            yield b, c
        for c in children[b] & neighbours[a]:  # 2: a -> b -> c, a - c
            yield a, c
        for c in parents[a] & neighbours[b]:  # 2: c -> a -> b, c - b
            yield c, b
        for c in neighbours[b] & neighbours[a]:  # 3: a -> b <- d, c - a, c - d, c - b
            if (neighbours[c] & parents[b]) - adjacent[a] - {a}:
                yield c, b
        for c in neighbours[b] & adjacent[a]:  # 4: d -> a -> b, c - d, c - b
            if (neighbours[c] & parents[a]) - adjacent[b]:
                yield c, b
        for c in neighbours[a] & adjacent[b]:  # 4: a -> b -> d, c - a, c - d
            for d in (neighbours[c] & children[b]) - adjacent[a]:
                yield c, d

    while agenda:
        for a, b in sorted(set(implied(*agenda.pop()))):
            if b in neighbours[a]:
                neighbours[a].discard(b)
                neighbours[b].discard(a)
                parents[b].add(a)
                children[a].add(b)
                agenda.append((a, b))
    return (
        sorted((a, b) for a, bs in children.items() for b in bs),
        sorted((a, b) for a, bs in neighbours.items() for b in bs if a < b),
    )


def extension(nodes: Sequence[str], directed: Iterable[Edge], undirected: Iterable[Edge]) -> dict[str, list[str]]:
    """The sorted parents of each node in a graph that directs the undirected edges without a cycle or a new collider.

    Dor & Tarsi (1992): take away, again and again, a node without children whose neighbours are adjacent to all nodes
    adjacent to it, and point its edges at it. Of several such nodes the last by name goes first.

    >>> extension("abc", [], [("a", "b"), ("b", "c")])
    {'a': [], 'b': ['a'], 'c': ['b']}
    """
    children, neighbours, adjacent = ({name: set[str]() for name in nodes} for _ in range(3))
    parents: dict[str, list[str]] = {name: [] for name in nodes}
    for a, b in directed:
        children[a].add(b)
        parents[b].append(a)
        adjacent[a].add(b)
        adjacent[b].add(a)
    for a, b in undirected:
        for x, y in ((a, b), (b, a)):
            neighbours[x].add(y)
            adjacent[x].add(y)
    names = sorted(nodes, reverse=True)
    rank = {name: i for i, name in enumerate(names)}

    def ready(x: str) -> bool:
        # the lengths decide most cases: the check must not take deg² at each leaf that leaves a hub
        if children[x] or any(len(adjacent[y]) < len(adjacent[x]) for y in neighbours[x]):
            return False
        return all(adjacent[x] - adjacent[y] == {y} for y in neighbours[x])

    heap = [rank[x] for x in names if ready(x)]
    heapify(heap)
    waiting = set(names) - {names[i] for i in heap}
    while heap:
        x = names[heappop(heap)]
        parents[x] += neighbours[x]
        around = adjacent.pop(x)
        for y in around:
            adjacent[y].discard(x)
            children[y].discard(x)
            neighbours[y].discard(x)
        for y in [y for y in around if y in waiting and ready(y)]:
            waiting.discard(y)
            heappush(heap, rank[y])
    if waiting:
        raise _no_extension(waiting, children)
    return {name: sorted(ps) for name, ps in parents.items()}


def _no_extension(stuck: set[str], children: Mapping[str, set[str]]) -> GraphError:
    parents = defaultdict[str, list[str]](list)
    for a in stuck:
        for b in children[a]:
            parents[b].append(a)
    cycle = find_cycle(parents)
    if cycle:
        return GraphError(f"no directed graph extends this one: it has a cycle: {chain(cycle)}")
    return GraphError(
        "no directed graph extends this one: the undirected edges among "
        f"{listed(sorted(stuck))} cannot be directed without a cycle or a new collider"
    )
