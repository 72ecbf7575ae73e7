"""Directed graphs: `Dag` (without cycles) and `Cpdag` (an equivalence class of them).

All are values: they never change, compare by their nodes and edges, hash and pickle. Nodes are names, kept sorted, so that
nothing depends on the order in which a graph was written down; only the parents of a node keep their declared order, which
is the order of the axes of its table. Algorithms are loops, never recursions: a chain of 100,000 nodes is a graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from suffice.errors import GraphError, TooLarge, listing
from suffice.graphs.paths import Links, Node, active_path, chain, class_edges, extension, find_cycle, links, meek, reach
from suffice.graphs.text import Edge, all_nodes, quote_name, read_directed, read_pairs, show, statements
from suffice.graphs.undirected import Graph
from suffice.graphs.value import GraphValue

if TYPE_CHECKING:
    from suffice.basis.argument_types import NetworkxLike


class HasDag(Protocol):
    """What stands for its graph: a network, a plate, what a search found."""

    @property
    def dag(self) -> Dag: ...


DagLike: TypeAlias = "str | Dag | HasDag | Mapping[str, Iterable[str]] | Iterable[tuple[str, str] | list[str]] | NetworkxLike"
"""What `Dag` takes: text, a mapping child -> parents, an iterable of (parent, child), a networkx DiGraph, a Dag."""


def topological_order(parents: Links[Node], children: Links[Node] | None = None) -> tuple[Node, ...]:
    """All nodes, parents before children, the smallest name that may come next first (Kahn 1962); a cycle is refused.

    >>> topological_order({"a": ["b"], "b": [], "c": []})
    ('b', 'a', 'c')
    """
    if children is None:
        children = links(((p, x) for x, ps in parents.items() for p in ps), parents)[1]
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


class Dag(GraphValue):
    """A directed graph without cycles.

    `x` is text, a mapping from a child to its parents, pairs (parent, child), a networkx DiGraph or a Dag. Text is arrows
    (`a -> b <- c; d, e -> f; lone`, names with marks in double quotes) or bnlearn's `[a][c][b|a:c]`. `nodes` names all nodes
    of the graph, with or without edges; a name outside it is refused.

    >>> dag = Dag("smoke -> cancer <- pollution; cancer -> xray")
    >>> dag == Dag({"cancer": ["smoke", "pollution"], "xray": "cancer"})
    True
    >>> dag.nodes
    ('cancer', 'pollution', 'smoke', 'xray')
    >>> dag.parents("cancer")
    ('smoke', 'pollution')
    >>> Dag("a -> b -> a")
    Traceback (most recent call last):
    suffice.errors.GraphError: the graph has a cycle: a -> b -> a
    """

    _parents: dict[str, tuple[str, ...]]
    _children: dict[str, tuple[str, ...]]
    topological_order: tuple[str, ...]
    """All nodes, parents before children; among several that could come next, the smallest name does."""

    def __init__(self, x: DagLike = (), nodes: Iterable[str] | None = None) -> None:
        given: Any = getattr(x, "dag", x)  # a network stands for its graph
        given = given.graph if isinstance(getattr(given, "graph", None), GraphValue) else given
        if isinstance(given, GraphValue) and not isinstance(given, Dag):
            raise GraphError(f"this is a {type(given).__name__}, not a Dag{given._instead}")
        if isinstance(given, Dag) and nodes is None:
            vars(self).update(vars(given))
            return
        mentioned, pairs = read_directed(given._parents if isinstance(given, Dag) else given)
        names = all_nodes(mentioned, pairs, nodes)
        parents: dict[str, list[str]] = {name: [] for name in names}
        children: dict[str, list[str]] = {name: [] for name in names}
        for parent, child in pairs:
            parents[child].append(parent)
            children[parent].append(child)
        vars(self).update(
            nodes=names,
            _parents={name: tuple(ps) for name, ps in parents.items()},
            _children={name: tuple(sorted(cs)) for name, cs in children.items()},
            _links=parents,
            topological_order=topological_order(parents, children),
        )

    @cached_property
    def _key(self) -> tuple[object, ...]:  # type: ignore[override]
        return self.nodes, self.edges

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._parents,)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """The pairs (parent, child), sorted.

        >>> Dag("b -> c <- a").edges
        (('a', 'c'), ('b', 'c'))
        """
        return tuple((a, b) for a, bs in self._children.items() for b in bs)

    @property
    def roots(self) -> tuple[str, ...]:
        """The nodes without parents.

        >>> Dag("a -> b; c").roots
        ('a', 'c')
        """
        return tuple(x for x in self.nodes if not self._parents[x])

    @property
    def leaves(self) -> tuple[str, ...]:
        """The nodes without children.

        >>> Dag("a -> b; c").leaves
        ('b', 'c')
        """
        return tuple(x for x in self.nodes if not self._children[x])

    def parents(self, x: str) -> tuple[str, ...]:
        """The parents of x in their declared order.

        >>> Dag({"c": ["b", "a"]}).parents("c")
        ('b', 'a')
        """
        return self._parents[x] if isinstance(x, str) and x in self._parents else self._refuse(x)

    def children(self, x: str) -> tuple[str, ...]:
        """The children of x, sorted.

        >>> Dag("a -> c; a -> b").children("a")
        ('b', 'c')
        """
        return self._children[x] if isinstance(x, str) and x in self._children else self._refuse(x)

    def ancestors(self, x: str) -> tuple[str, ...]:
        """The nodes with a directed path to x, sorted, without x.

        >>> Dag("a -> b -> c; b -> d").ancestors("c")
        ('a', 'b')
        """
        return tuple(sorted(reach(self.parents(x), self._parents)))

    def descendants(self, x: str) -> tuple[str, ...]:
        """The nodes with a directed path from x, sorted, without x.

        >>> Dag("a -> b -> c; b -> d").descendants("b")
        ('c', 'd')
        """
        return tuple(sorted(reach(self.children(x), self._children)))

    def markov_blanket(self, x: str) -> tuple[str, ...]:
        """Parents, children and other parents of the children: given these, x is independent of all else.

        >>> Dag("a -> x -> c <- s; c -> d").markov_blanket("x")
        ('a', 'c', 's')
        """
        blanket = {*self.parents(x), *self.children(x)}
        blanket.update(p for child in self.children(x) for p in self._parents[child])
        return tuple(sorted(blanket - {x}))

    def d_separated(self, a: str | Iterable[str], b: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether `given` blocks every path between a and b, which are names or sets of names without common members.

        >>> dag = Dag("a -> c <- b; c -> d")
        >>> dag.d_separated("a", "b"), dag.d_separated("a", "b", given="d"), dag.d_separated("a", "d", given=["c"])
        (True, False, True)
        """
        sources, targets, known = self._set(a), self._set(b), self._set(given)
        if common := sources & targets | sources & known | targets & known:
            raise GraphError(f"d-separation is between disjoint sets; {listing(sorted(common))} is in two of them")
        return not active_path(self._parents, self._children, sources, targets, known)

    def active_path(self, a: str, b: str, given: str | Iterable[str] = ()) -> tuple[str, ...]:
        """The shortest path between two nodes that `given` does not block; empty if it blocks all, which `d_separated` says.

        >>> dag = Dag("a -> c <- b; c -> d")
        >>> dag.active_path("a", "b"), dag.active_path("a", "b", given="d")
        ((), ('a', 'c', 'b'))
        """
        if self.d_separated(a, b, given):
            return ()
        return tuple(active_path(self._parents, self._children, {a}, {b}, self._set(given)))

    def subgraph(self, nodes: Iterable[str]) -> Dag:
        """The graph on some of the nodes, with the edges among them.

        >>> Dag("a -> b -> c; a -> c").subgraph(["a", "c"])
        Dag('a -> c')
        """
        kept = self._set(nodes)
        return Dag({x: [p for p in self._parents[x] if p in kept] for x in kept})

    def ancestral(self, nodes: str | Iterable[str]) -> Dag:
        """The graph on some nodes and all their ancestors.

        >>> Dag("a -> b -> c; b -> d").ancestral("c")
        Dag('a -> b; b -> c')
        """
        return self.subgraph(reach(self._set(nodes), self._parents))

    def moral(self) -> Graph:
        """The undirected graph that also joins the parents of each child.

        >>> Dag("a -> c <- b").moral().edges
        (('a', 'b'), ('a', 'c'), ('b', 'c'))
        """
        n_pairs = sum(comb(len(ps), 2) for ps in self._parents.values())
        if n_pairs > 20_000_000:
            raise TooLarge(f"the moral graph would join up to {n_pairs:,} pairs of parents")
        married = {pair for ps in self._parents.values() for pair in combinations(sorted(ps), 2)}
        married.update((min(e), max(e)) for e in self.edges)
        return Graph(sorted(married), nodes=self.nodes)

    def skeleton(self) -> Graph:
        """The undirected graph of the same edges.

        >>> Dag("a -> c <- b").skeleton().edges
        (('a', 'c'), ('b', 'c'))
        """
        return Graph(self.edges, nodes=self.nodes)

    def cpdag(self, forbidden: Iterable[Edge] = ()) -> Cpdag:
        """The Markov equivalence class of this graph.

        Members with a `forbidden` edge (parent, child) do not count: what remains is directed wherever all other members agree.
        This graph must be a member itself.

        >>> Dag("a -> b -> c").cpdag().undirected
        (('a', 'b'), ('b', 'c'))
        >>> Dag("a -> b -> c").cpdag(forbidden=[("b", "a")]).directed
        (('a', 'b'), ('b', 'c'))
        """
        refused = set(read_pairs(forbidden))
        self._set(sorted({x for edge in refused for x in edge}))
        for a, b in self.edges:
            if (a, b) in refused:
                raise GraphError(f"the edge {show(a)} -> {show(b)} is forbidden, but it is in the graph")
        return Cpdag._of_known(self.nodes, *class_edges(self.topological_order, self._parents, refused))

    def to_networkx(self) -> Any:
        """The same graph as a networkx DiGraph.

        >>> Dag("a -> b").to_networkx().edges
        OutEdgeView([('a', 'b')])
        """
        return self._networkx("DiGraph", self.edges)

    def to_dot(self) -> str:
        """The graph in the language of Graphviz.

        >>> print(Dag("a -> b").to_dot())
        digraph {
          "a";
          "b";
          "a" -> "b";
        }
        """
        return self._dot("digraph", [f"{quote_name(a)} -> {quote_name(b)}" for a, b in self.edges])

    def _statements(self) -> Iterable[str]:
        return statements(self.topological_order, self._parents)

    def _picture_parts(self) -> tuple[Iterable[str], Iterable[Edge], Iterable[Edge]]:
        return self.nodes, self.edges, ()


class Cpdag(GraphValue):
    """A partially directed graph: the arrows that all members of an equivalence class share, and the edges they do not.

    `Dag.cpdag` makes it; a search by independence tests makes one of its own, which need not have a member (see `to_dag`).

    >>> Dag("a -> c <- b; c -> d; e -> f").cpdag()
    Cpdag([('a', 'c'), ('b', 'c'), ('c', 'd')], [('e', 'f')])
    """

    directed: tuple[Edge, ...]
    """The pairs (parent, child), sorted."""
    undirected: tuple[Edge, ...]
    """The pairs (a, b) with a < b, sorted."""
    _instead = "; one of its members is .to_dag()"

    def __init__(
        self, directed: Iterable[Edge] = (), undirected: Iterable[Edge] = (), nodes: Iterable[str] | None = None
    ) -> None:
        arrows = sorted(read_pairs(directed))
        lines = sorted((min(e), max(e)) for e in read_pairs(undirected))
        names = all_nodes([], [*((min(e), max(e)) for e in arrows), *lines], nodes)
        vars(self).update(vars(self._of_known(names, arrows, lines)))

    @classmethod
    def _of_known(cls, names: tuple[str, ...], arrows: Iterable[Edge], lines: Iterable[Edge]) -> Cpdag:
        """Of edges that need no check: those of a class that was found."""
        graph, directed = cls.__new__(cls), tuple(sorted(arrows))
        undirected = tuple(sorted((min(e), max(e)) for e in lines))
        key = names, directed, undirected
        vars(graph).update(nodes=names, directed=directed, undirected=undirected, _links=dict.fromkeys(names), _key=key)
        return graph

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.directed, self.undirected, self.nodes)

    @cached_property
    def edges(self) -> frozenset[Edge | frozenset[str]]:
        """All edges: an arrow as the pair (parent, child), an undirected edge as a frozenset of its two ends.

        >>> Dag("a -> b").cpdag().edges == {frozenset({"a", "b"})}
        True
        """
        return frozenset([*self.directed, *map(frozenset, self.undirected)])

    def skeleton(self) -> Graph:
        """The undirected graph of the same edges.

        >>> Dag("a -> c <- b").cpdag().skeleton() == Dag("a -> c <- b").skeleton()
        True
        """
        return Graph([*self.directed, *self.undirected], nodes=self.nodes)

    def completed(self) -> Cpdag:
        """The same graph with every edge directed that its arrows leave no choice (Meek 1995, rules 1 to 4).

        >>> Cpdag([("a", "b")], [("b", "c")]).completed()
        Cpdag([('a', 'b'), ('b', 'c')])
        """
        return Cpdag(*meek(self.directed, self.undirected), nodes=self.nodes)

    def to_dag(self) -> Dag:
        """A graph with these arrows that directs the rest without a new collider: of one class always the same member.

        >>> Cpdag([], [("a", "b"), ("b", "c")]).to_dag()
        Dag('a -> b; b -> c')
        >>> Cpdag([], [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]).to_dag()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        suffice.errors.GraphError: no directed graph extends this one: the undirected edges among 'a', 'b', 'c', 'd' cannot ...
        """
        return Dag(extension(self.nodes, self.directed, self.undirected))

    def to_dot(self) -> str:
        """The graph in the language of Graphviz; undirected edges are drawn without a head.

        >>> print(Dag("a -> b").cpdag().to_dot())
        digraph {
          "a";
          "b";
          "a" -> "b" [dir=none];
        }
        """
        lines = {(a, b): f"{quote_name(a)} -> {quote_name(b)} [dir=none]" for a, b in self.undirected}
        lines |= {(a, b): f"{quote_name(a)} -> {quote_name(b)}" for a, b in self.directed}
        return self._dot("digraph", [lines[e] for e in sorted(lines)])

    def __repr__(self) -> str:
        lines = f", [{listing(self.undirected, 12)}]" if self.undirected else ""
        every = {x for edge in (*self.directed, *self.undirected) for x in edge}
        lone = f", nodes=[{listing(self.nodes, 12)}]" if len(every) < len(self.nodes) else ""
        return f"Cpdag([{listing(self.directed, 12)}]{lines}{lone})"

    __str__ = __repr__

    def _picture_parts(self) -> tuple[Iterable[str], Iterable[Edge], Iterable[Edge]]:
        return self.nodes, self.directed, self.undirected
