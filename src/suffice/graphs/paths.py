"""Algorithms on directed graphs: cycles, paths, d-separation; which graphs are equivalent, and a member of a class.

Functions of plain nodes, which are names or numbers, of pairs of them, and of mappings from a node to its parents or children.
`Dag` and `Cpdag` are in `directed`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from itertools import chain as joined
from typing import TypeAlias, TypeVar

from suffice.errors import GraphError, listing
from suffice.graphs.text import spelling

Node = TypeVar("Node", str, int)
Links: TypeAlias = Mapping[Node, Sequence[Node]]
Pairs: TypeAlias = Iterable[tuple[Node, Node]]


def links(
    edges: Iterable[tuple[Node, Node]], nodes: Iterable[Node] = ()
) -> tuple[dict[Node, list[Node]], dict[Node, list[Node]]]:
    """The parents and the children of each node, in the order of the edges (parent, child)."""
    pairs = list(edges)
    names = dict.fromkeys(joined(nodes, *pairs))
    parents: dict[Node, list[Node]] = {x: [] for x in names}
    children: dict[Node, list[Node]] = {x: [] for x in names}
    for parent, child in pairs:
        parents[child].append(parent)
        children[parent].append(child)
    return parents, children


def reach(start: Iterable[Node], links: Links[Node]) -> set[Node]:
    """The nodes at the ends of paths along the links, the start included."""
    found = set(start)
    stack = list(found)
    while stack:
        fresh = [x for x in links[stack.pop()] if x not in found]
        found.update(fresh)
        stack += fresh
    return found


def shortest_path(start: Node, end: Node, links: Links[Node]) -> list[Node]:
    """The nodes of a shortest path of one step or more along the links; of several the first; empty when there is none."""
    came: dict[Node, Node] = {}
    queue = [start]
    for x in queue:
        if end in came:
            break
        fresh = [y for y in links[x] if y not in came]
        came.update(dict.fromkeys(fresh, x))
        queue += fresh
    if end not in came:
        return []
    path = [end]
    while len(path) == 1 or path[-1] != start:
        path.append(came[path[-1]])
    return path[::-1]


def active_path(parents: Links[str], children: Links[str], sources: set[str], targets: set[str], given: set[str]) -> list[str]:
    """The shortest path from one of the sources to one of the targets that nothing blocks; empty if all are blocked (Koller &
    Friedman 2009, algorithm 3.1: linear time).
    """
    active_colliders = reach(given, parents)
    came: dict[tuple[str, bool], tuple[str, bool] | None] = {(x, True): None for x in sources}  # whether from a child
    queue = list(came)
    for step in queue:  # breadth first
        x, from_child = step
        if x in targets:
            way, before = [x], came[step]
            while before is not None:
                way.append(before[0])
                before = came[before]
            return way[::-1]
        onward = [(child, False) for child in children[x]] if x not in given else []
        if x not in given if from_child else x in active_colliders:
            onward += [(parent, True) for parent in parents[x]]
        for following in onward:
            if following not in came:
                came[following] = step
                queue.append(following)
    return []


def find_cycle(parents: Links[Node]) -> list[Node]:
    """A directed cycle, from its smallest name back to that name; empty when there is none."""
    sorter, left = TopologicalSorter(parents), set(parents)
    try:
        sorter.prepare()
        return []
    except CycleError:  # left over are the nodes on cycles or below them
        while ready := sorter.get_ready():
            left.difference_update(ready)
            sorter.done(*ready)
    path: dict[Node, None] = {}
    here = min(left)
    while here not in path:
        path[here] = None
        here = min(p for p in parents[here] if p in left)
    cycle = list(path)
    cycle = cycle[cycle.index(here) :][::-1]
    start = cycle.index(min(cycle))
    cycle = cycle[start:] + cycle[:start]
    return cycle + cycle[:1]


def chain(names: Sequence[object], limit: int = 10) -> str:
    """A path for a sentence, cut in the middle."""
    cut = [spelling(str(name)[:60]) for name in names]
    return " -> ".join(cut if len(cut) <= limit else [*cut[: limit - 1], "...", cut[-1]])


def class_edges(
    order: Sequence[Node], parents: Links[Node], refused: Collection[tuple[Node, Node]] = ()
) -> tuple[list[tuple[Node, Node]], list[tuple[Node, Node]]]:
    """The arrows that all graphs of a Markov equivalence class share, and the edges without a direction (Chickering 1995,
    Label-Edges); graphs with one of the `refused` arrows (parent, child) do not count.

    Children y are visited in topological order, and only the last parent x of y is looked at. When some compelled w -> x has
    no w -> y, or some z -> y has no edge to x, every arrow into y is compelled; otherwise those from the compelled w are.
    """
    position = {name: i for i, name in enumerate(order)}
    strong: dict[Node, set[Node]] = {name: set() for name in order}
    for y in order:
        into = set(parents[y])
        if not into:
            continue
        x = max(into, key=position.__getitem__)
        if strong[x] <= into and into <= set(parents[x]) | {x}:
            strong[y] = set(strong[x])
        else:
            strong[y] = into
    edges = [(x, y) for y in order for x in parents[y]]
    arrows = [(x, y) for x, y in edges if x in strong[y] or (y, x) in refused]
    lines = [(x, y) for x, y in edges if x not in strong[y] and (y, x) not in refused]
    return meek(arrows, lines) if refused else (arrows, lines)


def _around(directed: Pairs[Node], undirected: Pairs[Node]) -> tuple[defaultdict[Node, set[Node]], ...]:
    """Of each node its parents, its children, those joined to it without a direction, and all of these."""
    parents, children, neighbours, adjacent = (defaultdict[Node, set[Node]](set) for _ in range(4))
    for a, b in directed:
        parents[b].add(a)
        children[a].add(b)
    for a, b in undirected:
        neighbours[a].add(b)
        neighbours[b].add(a)
    for linked in (parents, children, neighbours):
        for a, bs in linked.items():
            adjacent[a] |= bs
    return parents, children, neighbours, adjacent


def meek(directed: Pairs[Node], undirected: Pairs[Node]) -> tuple[list[tuple[Node, Node]], list[tuple[Node, Node]]]:
    """Direct every undirected edge that the directed ones leave no choice, by the four rules of Meek (1995).

    Directed edges may be background knowledge, so rule 4 is needed.
    """
    agenda = sorted(directed, reverse=True)
    parents, children, neighbours, adjacent = _around(agenda, undirected)

    def implications(a: Node, b: Node) -> Pairs[Node]:
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
        for a, b in sorted(set(implications(*agenda.pop()))):
            if b in neighbours[a]:
                neighbours[a].discard(b)
                neighbours[b].discard(a)
                parents[b].add(a)
                children[a].add(b)
                agenda.append((a, b))
    lines = sorted((a, b) for a, bs in neighbours.items() for b in bs if a < b)
    return sorted((a, b) for a, bs in children.items() for b in bs), lines


def extension(nodes: Sequence[Node], directed: Pairs[Node], undirected: Pairs[Node]) -> dict[Node, list[Node]]:
    """The sorted parents of each node in a graph that directs the undirected edges without a cycle or a new collider.

    Nodes come after their parents. Dor & Tarsi (1992): take away, again and again, a node without children whose neighbours are
    adjacent to all nodes adjacent to it, and point its edges at it. Of several such nodes the last by name goes first.
    """
    parents, children, neighbours, adjacent = _around(directed, undirected)
    names = sorted(nodes, reverse=True)
    rank = {name: i for i, name in enumerate(names)}

    def ready(x: Node) -> bool:
        # the lengths decide most cases: the check must not take deg² at each leaf that leaves a hub
        if children[x] or any(len(adjacent[y]) < len(adjacent[x]) for y in neighbours[x]):
            return False
        return all(adjacent[x] - adjacent[y] == {y} for y in neighbours[x])

    heap = [rank[x] for x in names if ready(x)]
    heapify(heap)
    waiting = set(names) - {names[i] for i in heap}
    order = []
    while heap:
        x = names[heappop(heap)]
        order.append(x)
        parents[x] |= neighbours[x]
        around = adjacent.pop(x, set())
        for y in around:
            adjacent[y].discard(x)
            children[y].discard(x)
            neighbours[y].discard(x)
        for y in [y for y in around if y in waiting and ready(y)]:
            waiting.discard(y)
            heappush(heap, rank[y])
    if waiting:
        cycle = find_cycle(links((a, b) for a in waiting for b in children[a])[0])
        lines = f"the undirected edges among {listing(sorted(waiting))} cannot be directed without a cycle or a new collider"
        raise GraphError(f"no directed graph extends this one: {f'it has a cycle: {chain(cycle)}' if cycle else lines}")
    return {name: sorted(parents[name]) for name in reversed(order)}
