"""The undirected graph, and what all kinds of graph share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from suffice.errors import listed
from suffice.graphs.input import all_nodes, check_edges, is_networkx, read_networkx, read_pairs, unknown
from suffice.graphs.text import Edge, quoted

_T = TypeVar("_T")


class GraphValue:
    """What the three kinds of graph share: they have nodes, and never change."""

    nodes: tuple[str, ...]

    @property
    def _links(self) -> Mapping[str, object]:
        raise NotImplementedError

    @property
    def _key(self) -> tuple[object, ...]:
        raise NotImplementedError

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} never changes; make another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} never changes; make another one")

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, GraphValue) and type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._links

    def _of(self, links: Mapping[str, _T], x: object) -> _T:
        if not isinstance(x, str) or x not in links:
            raise unknown(x, self.nodes)
        return links[x]

    def _set(self, names: str | Iterable[str]) -> set[str]:
        found = [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
        for name in found:
            self._of(self._links, name)
        return set(found)


class Graph(GraphValue):
    """An undirected graph, from pairs of names or a networkx Graph; `nodes` as in `Dag`.

    >>> graph = Graph([("b", "a"), ("b", "c")])
    >>> graph.edges
    (('a', 'b'), ('b', 'c'))
    >>> graph.neighbours("b")
    ('a', 'c')
    """

    edges: tuple[Edge, ...]
    """The pairs (a, b) with a < b, sorted."""
    _neighbours: dict[str, tuple[str, ...]]

    def __init__(self, x: Any = (), nodes: Iterable[str] | None = None) -> None:
        mentioned, pairs = read_networkx(x) if is_networkx(x) else ([], read_pairs(x))
        edges = sorted((min(e), max(e)) for e in pairs)
        names = all_nodes(mentioned, edges, nodes)
        check_edges(edges)
        neighbours: dict[str, list[str]] = {name: [] for name in names}
        for a, b in edges:
            neighbours[a].append(b)
            neighbours[b].append(a)
        vars(self).update(nodes=names, edges=tuple(edges), _neighbours={a: tuple(sorted(bs)) for a, bs in neighbours.items()})

    @property
    def _links(self) -> Mapping[str, object]:
        return self._neighbours

    @property
    def _key(self) -> tuple[object, ...]:
        return self.nodes, self.edges

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.edges, self.nodes)

    def neighbours(self, x: str) -> tuple[str, ...]:
        """The nodes joined to x, sorted.

        >>> Graph([("a", "b")]).neighbours("b")
        ('a',)
        """
        return self._of(self._neighbours, x)

    def to_networkx(self) -> Any:
        """The same graph as a networkx Graph.

        >>> Graph([("a", "b")]).to_networkx().edges
        EdgeView([('a', 'b')])
        """
        import networkx

        graph = networkx.Graph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.edges)
        return graph

    def to_dot(self) -> str:
        """The graph in the language of Graphviz.

        >>> print(Graph([("a", "b")]).to_dot())
        graph {
          "a";
          "b";
          "a" -- "b";
        }
        """
        return dot("graph", self.nodes, [f"{quoted(a)} -- {quoted(b)}" for a, b in self.edges])

    def __repr__(self) -> str:
        return f"Graph([{listed(self.edges, 12)}]{nodes_if_lone(self, self.edges)})"


def nodes_if_lone(graph: GraphValue, edges: Iterable[Edge]) -> str:
    """The end of a repr: the nodes, where the edges do not name them all."""
    every = {x for edge in edges for x in edge}
    return f", nodes=[{listed(graph.nodes, 12)}]" if len(every) < len(graph.nodes) else ""


def dot(kind: str, nodes: Iterable[str], edges: Iterable[str]) -> str:
    """A graph in the language of Graphviz, from its quoted edges."""
    return "\n".join([f"{kind} {{", *(f"  {line};" for line in [*map(quoted, nodes), *edges]), "}"])
