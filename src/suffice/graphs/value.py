"""What all kinds of graph are: values with nodes, which never change, compare, hash and pickle."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from suffice.basis.pictures import Focus, Picture, Pictured, PictureEdge, PictureNode
from suffice.errors import quantity
from suffice.graphs.text import Edge, quote_name, unknown_node


class GraphValue(Pictured):
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

    def _refuse(self, x: object) -> NoReturn:
        raise unknown_node(x, self.nodes)

    def _set(self, names: str | Iterable[str]) -> set[str]:
        found = [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
        for name in found:
            if name not in self:
                self._refuse(name)
        return set(found)

    def _statements(self) -> Iterable[str]:
        """The statements of the text that spells the graph."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "; ".join(self._statements())

    def __repr__(self) -> str:
        text = ""
        for statement in self._statements():
            text += f"; {statement}" if text else statement
            if len(text) > 300:
                n_edges = sum(len(list(edges)) for edges in self._picture_parts()[1:])
                size = f"{quantity(len(self.nodes), 'node')}, {quantity(n_edges, 'edge')}"
                return f"{type(self).__name__}({text[:300] + ' ...'!r}, {size})"
        return f"{type(self).__name__}({text!r})"

    def _picture_parts(self) -> tuple[Iterable[str], Iterable[Edge], Iterable[Edge]]:
        """What a picture shows: names, arrows and lines."""
        raise NotImplementedError

    def _scene(self) -> Picture:
        names, arrows, lines = self._picture_parts()
        edges = [*(PictureEdge(a, b) for a, b in arrows), *(PictureEdge(a, b, arrow=False) for a, b in lines)]
        return Picture(tuple(map(PictureNode, names)), tuple(edges))

    def picture(self, against: Pictured | None = None, *, focus: Focus = None, steps: int = 1) -> Picture:
        """The graph as a picture: `against` another, in four kinds of lines; of a large one the part around a `focus`.

        >>> from suffice import Dag
        >>> Dag("a -> b -> c; c -> d").picture(focus="a", steps=2)
        Picture of 3 nodes and 2 edges: save("x.svg"), .png or .pdf; a notebook shows it
        >>> [word for _, word in Dag("a -> b").picture(against=Dag("b -> a")).legend]
        ['in both', 'only here', 'only there', 'in both, but with another direction']
        """
        return self._view(against, focus, steps)

    def plot(self, path: Any = None, *, ax: Any = None) -> Any:
        """Draw the graph by matplotlib; gives the axes, and saves to `path` when given. `picture` needs no matplotlib.

        Without `ax` and `path` it is drawn on pyplot's current figure, which a notebook shows and `plt.savefig` saves.

        >>> from suffice import Dag
        >>> ax = Dag("a -> b").plot()
        >>> [text.get_text() for text in ax.texts]
        ['a', 'b']
        """
        if path is not None and ax is None:
            return self.picture().plot_to(path)
        drawn = self.picture().draw(ax)
        if path is not None:
            drawn.figure.savefig(path)
        return drawn

    def _repr_html_(self) -> str:
        return self._repr_svg_() or f"<code>{html.escape(repr(self))}</code>"

    def _dot(self, kind: str, edges: Iterable[str]) -> str:
        return "\n".join([f"{kind} {{", *(f"  {line};" for line in [*map(quote_name, self.nodes), *edges]), "}"])

    def _networkx(self, kind: str, edges: Iterable[Edge]) -> Any:
        import networkx

        graph = getattr(networkx, kind)()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(edges)
        return graph
