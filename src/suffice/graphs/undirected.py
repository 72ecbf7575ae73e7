"""Undirected graphs: `Graph`, a value as all graphs are; and, on plain nodes and mappings from a node to its neighbours, perfect
orders, triangulations and sequences of cliques, with ties broken by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, TypeAlias

from suffice.errors import GraphError, TooLarge, listing
from suffice.graphs.paths import links, reach, shortest_path
from suffice.graphs.text import Edge, all_nodes, has_lines, quote_name, read_undirected, written_in_lines
from suffice.graphs.value import GraphValue

if TYPE_CHECKING:
    from suffice.basis.argument_types import HasGraph, NetworkxLike

GraphLike: TypeAlias = (
    "str | Graph | HasGraph | Mapping[str, Iterable[str]] | Iterable[tuple[str, str] | list[str]] | NetworkxLike"
)
"""What `Graph` takes: text, neighbours by name, pairs, a graph of networkx, or a model that has one."""

Around: TypeAlias = Mapping[str, Sequence[str]]

MAX_CLIQUES = 1_000_000
"""No more maximal cliques than this are listed: a graph of n nodes may have 3^(n/3) of them."""


class Graph(GraphValue):
    """An undirected graph, from text, pairs of names or a networkx Graph; `nodes` as in `Dag`.

    Text is lines (`a -- b -- c; d -- e, f; lone`, names with marks in double quotes).

    >>> graph = Graph("b -- a; b -- c")
    >>> graph == Graph([("b", "a"), ("b", "c")])
    True
    >>> graph.edges
    (('a', 'b'), ('b', 'c'))
    >>> graph.neighbours("b")
    ('a', 'c')
    """

    edges: tuple[Edge, ...]
    """The pairs (a, b) with a < b, sorted."""
    _neighbours: dict[str, tuple[str, ...]]
    _instead = ": a Dag has arrows, 'a -> b'; fit(graph, data) takes a Graph as it is"

    def __init__(self, x: GraphLike = (), nodes: Iterable[str] | None = None) -> None:
        graph: Any = getattr(x, "graph", None)
        x = graph if isinstance(graph, Graph) else x  # a model stands for its graph
        if isinstance(x, GraphValue) and not isinstance(x, Graph):
            raise GraphError(f"this is a {type(x).__name__}, not a Graph: take its .skeleton(), or the .moral() graph of a Dag")
        mentioned, pairs = (list(x.nodes), list(x.edges)) if isinstance(x, Graph) else read_undirected(x)
        edges = sorted((min(e), max(e)) for e in pairs)
        names = all_nodes(mentioned, edges, nodes)
        before, after = links(edges, names)
        neighbours = {x: tuple(sorted(before[x] + after[x])) for x in names}
        vars(self).update(nodes=names, edges=tuple(edges), _neighbours=neighbours, _links=neighbours, _key=(names, tuple(edges)))

    @staticmethod
    def is_text(x: object) -> bool:
        """Whether something is text that spells an undirected graph: `--` between blanks.

        >>> Graph.is_text("a -- b"), Graph.is_text("a -> b")
        (True, False)
        """
        return isinstance(x, str) and has_lines(x)

    @classmethod
    def complete(cls, nodes: Iterable[str]) -> Graph:
        """The graph in which all nodes are joined.

        >>> Graph.complete("abc")
        Graph('a -- b; a -- c; b -- c')
        """
        names = sorted(nodes)
        return cls([(a, b) for i, a in enumerate(names) for b in names[i + 1 :]], nodes=names)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.edges, self.nodes)

    def neighbours(self, x: str) -> tuple[str, ...]:
        """The nodes joined to x, sorted.

        >>> Graph([("a", "b")]).neighbours("b")
        ('a',)
        """
        return self._neighbours[x] if x in self else self._refuse(x)

    def cliques(self) -> tuple[tuple[str, ...], ...]:
        """The maximal sets of nodes that are all joined to each other, each sorted, in their order.

        >>> Graph("a -- b; b -- c; a -- c; c -- d; e").cliques()
        (('a', 'b', 'c'), ('c', 'd'), ('e',))
        """
        return self._cliques

    @cached_property
    def _cliques(self) -> tuple[tuple[str, ...], ...]:
        if self.is_decomposable:
            return tuple(sorted(clique for clique, _ in self._sequence))
        import networkx

        found: list[tuple[str, ...]] = []
        for clique in networkx.find_cliques(self.to_networkx()):
            found.append(tuple(sorted(clique)))
            if len(found) > MAX_CLIQUES:
                raise TooLarge(f"the graph has more than {MAX_CLIQUES:,} maximal cliques")
        return tuple(sorted(found))

    def components(self) -> tuple[tuple[str, ...], ...]:
        """The sets of nodes that paths join, each sorted, in their order.

        >>> Graph("a -- b; c; d -- e").components()
        (('a', 'b'), ('c',), ('d', 'e'))
        """
        found, seen = [], set[str]()
        for x in self.nodes:
            if x not in seen:
                part = reach([x], self._neighbours)
                seen |= part
                found.append(tuple(sorted(part)))
        return tuple(found)

    @cached_property
    def is_decomposable(self) -> bool:
        """Whether every cycle of four or more nodes has a chord: then estimates have closed forms.

        >>> Graph("a -- b -- c -- a").is_decomposable, Graph("a -- b -- c -- d -- a").is_decomposable
        (True, False)
        """
        return is_perfect(perfect_order(self._neighbours), self._neighbours)

    @cached_property
    def _sequence(self) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
        if not self.is_decomposable:
            raise GraphError("the graph is not decomposable: it has a cycle without a chord; its .triangulated() graph has none")
        return tuple(sequence_of_cliques(self._neighbours))

    def perfect_sequence(self) -> tuple[tuple[str, ...], ...]:
        """The cliques of a decomposable graph such that what each shares with all before it lies in one of these.

        >>> Graph("c -- d; a -- b; b -- c").perfect_sequence()
        (('a', 'b'), ('b', 'c'), ('c', 'd'))
        """
        return tuple(clique for clique, _ in self._sequence)

    def separators(self) -> tuple[tuple[str, ...], ...]:
        """What each clique of `perfect_sequence()` after the first shares with those before it: one fewer than cliques.

        p(x) = Π p(cliques) / Π p(separators); one that is empty joins components. The same set may stand there several times.

        >>> Graph("a -- b; b -- c; b -- d; e").separators()
        (('b',), ('b',), ())
        """
        return tuple(separator for _, separator in self._sequence[1:])

    def triangulated(self) -> Graph:
        """A decomposable graph with these edges and few more: nodes are eliminated, each time one that adds fewest edges.

        >>> Graph("a -- b; b -- c; c -- d; d -- a").triangulated()
        Graph('a -- b; a -- d; b -- c; b -- d; c -- d')
        """
        return self if self.is_decomposable else Graph([*self.edges, *fill_in(self._neighbours)], nodes=self.nodes)

    def separated(self, a: str | Iterable[str], b: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether every path between a and b, names or sets of names without common members, goes through `given`.

        >>> graph = Graph("a -- b -- c")
        >>> graph.separated("a", "c"), graph.separated("a", "c", given="b")
        (False, True)
        """
        sources, targets, known = self._set(a), self._set(b), self._set(given)
        if common := sources & targets | sources & known | targets & known:
            raise GraphError(f"separation is between disjoint sets; {listing(sorted(common))} is in two of them")
        around = {x: () if x in known else ys for x, ys in self._neighbours.items()}
        return not reach(sources, around) & targets

    def active_path(self, a: str, b: str, given: str | Iterable[str] = ()) -> tuple[str, ...]:
        """The shortest path between two nodes that does not go through `given`; empty if there is none.

        >>> graph = Graph("a -- b -- c -- d -- a")
        >>> graph.active_path("a", "c", given="b"), graph.active_path("a", "c", given=["b", "d"])
        (('a', 'd', 'c'), ())
        """
        if self.separated(a, b, given):
            return ()
        known = self._set(given)
        return tuple(shortest_path(a, b, {x: () if x in known else ys for x, ys in self._neighbours.items()}))

    def subgraph(self, nodes: Iterable[str]) -> Graph:
        """The graph on some of the nodes, with the edges among them.

        >>> Graph("a -- b -- c").subgraph(["a", "c"])
        Graph('a; c')
        """
        kept = self._set(nodes)
        return Graph([(a, b) for a, b in self.edges if a in kept and b in kept], nodes=kept)

    def to_networkx(self) -> Any:
        """The same graph as a networkx Graph.

        >>> Graph([("a", "b")]).to_networkx().edges
        EdgeView([('a', 'b')])
        """
        return self._networkx("Graph", self.edges)

    def to_dot(self) -> str:
        """The graph in the language of Graphviz.

        >>> print(Graph([("a", "b")]).to_dot())
        graph {
          "a";
          "b";
          "a" -- "b";
        }
        """
        return self._dot("graph", [f"{quote_name(a)} -- {quote_name(b)}" for a, b in self.edges])

    def _statements(self) -> Iterable[str]:
        write = written_in_lines
        lone = [write(x) for x in self.nodes if not self._neighbours[x]]
        return sorted([f"{write(a)} -- {write(b)}" for a, b in self.edges] + lone)

    def _picture_parts(self) -> tuple[Iterable[str], Iterable[Edge], Iterable[Edge]]:
        return self.nodes, (), self.edges


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
        if later := [y for y in neighbours[x] if place[y] > place[x]]:
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
