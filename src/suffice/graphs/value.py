"""What all kinds of graph are: values with nodes, which never change, compare, hash and pickle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from suffice.errors import listed
from suffice.graphs.text import Edge, quoted, unknown

_T = TypeVar("_T")


class GraphValue:
    """What all kinds of graph share: they have nodes, and never change."""

    nodes: tuple[str, ...]
    _links: Mapping[str, object]
    """Something for each node."""
    _key: tuple[object, ...]
    """What makes it equal to another."""
    _instead = ""
    """What to do with it where a `Dag` is needed."""

    def __setattr__(self, name: str, *value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} never changes; make another one")

    __delattr__ = __setattr__

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

    def _lone(self, edges: Iterable[Edge]) -> str:
        """The end of a repr: the nodes, where the edges do not name them all."""
        every = {x for edge in edges for x in edge}
        return f", nodes=[{listed(self.nodes, 12)}]" if len(every) < len(self.nodes) else ""

    def _dot(self, kind: str, edges: Iterable[str]) -> str:
        return "\n".join([f"{kind} {{", *(f"  {line};" for line in [*map(quoted, self.nodes), *edges]), "}"])

    def _networkx(self, kind: str, edges: Iterable[Edge]) -> Any:
        import networkx

        graph = getattr(networkx, kind)()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(edges)
        return graph
