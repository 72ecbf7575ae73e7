"""A picture of a graph, which draws itself, and values that a notebook shows as one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import GraphError, SufficeError
from suffice.pictures.scene import Scene


@dataclass(frozen=True, repr=False)
class Picture(Scene):
    """What is shown of a graph: `save` it as .svg, .png or .pdf; a notebook shows it by itself.

    >>> picture = Picture.of({"b": ["a"]}, ["a", "b"])
    >>> picture
    Picture of 2 nodes and 1 edge: save("x.svg"), .png or .pdf; a notebook shows it
    >>> picture.svg().count("<rect")
    2
    """

    def svg(self, links: Mapping[str | tuple[str, str], str] | None = None) -> str:
        """The picture as SVG text: the same for the same picture, whatever order its nodes and edges came in.

        `links` are where nodes and edges, by their names, lead to on the page that has the picture: {"a": "#a"}.

        >>> Picture.of({"b": ["a"]}, ["a", "b"]).svg({("a", "b"): "#ab"}).count('<a href="#ab">')
        1
        """
        from suffice.pictures.shapes import shapes_of
        from suffice.pictures.svg import svg_of

        keys: list[str | tuple[str, str]] = [*sorted((e.tail, e.head) for e in self.edges), *self.order]
        return svg_of(shapes_of(self), [(links or {}).get(key, "") for key in keys])

    def save(self, path: str | Path) -> None:
        """Write the picture to a file: .svg, .png or .pdf."""
        from suffice.pictures.drawing import save
        from suffice.pictures.shapes import shapes_of

        save(shapes_of(self), Path(path))

    def plot_to(self, path: str | Path) -> Any:
        """Draw the picture by matplotlib into a file of any of its kinds; gives the axes."""
        from suffice.pictures.drawing import draw_to
        from suffice.pictures.shapes import shapes_of

        return draw_to(shapes_of(self), Path(path))

    def draw(self, ax: Any = None) -> Any:
        """The picture on matplotlib's axes, or on pyplot's current figure; gives the axes."""
        from suffice.pictures.drawing import draw
        from suffice.pictures.shapes import shapes_of

        return draw(shapes_of(self), ax)

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        n, m = len(self.nodes), len(self.edges)
        words = f"Picture of {n} node{'s' * (n != 1)} and {m} edge{'s' * (m != 1)}"
        return f'{words}: save("x.svg"), .png or .pdf; a notebook shows it'


MOST_SHOWN = 100
"""Nodes up to which a notebook shows a picture by itself."""

Focus = str | Collection[str] | None
"""A node or some, around which a part of a graph is shown."""


class Pictured:
    """What has a graph that can be drawn: a subclass says of what, `_scene`, and has a `picture` of its own.

    >>> class Pair(Pictured):
    ...     def _scene(self):
    ...         return Picture.of({"b": ["a"]}, "ab")
    >>> Pair()._view(Pair(), focus="a").caption
    '2 of 2 nodes: at most 1 edge from a'
    """

    def _scene(self) -> Picture:
        """The whole picture, without anything that takes long to find."""
        raise NotImplementedError

    def _view(self, against: object = None, focus: Focus = None, steps: int = 1) -> Picture:
        """The picture, if need be beside that of another value, or the part around a focus."""
        picture = self._scene()
        if against is not None:
            if not isinstance(against, Pictured):
                raise GraphError(f"against is another graph, or what has one, not a {type(against).__name__}")
            picture = picture.against(against._scene())
        return picture.near(focus, steps)

    def _notebook_picture(self) -> Picture:
        return self._scene()

    def _repr_svg_(self) -> str | None:
        try:
            if 0 < len(self._scene().nodes) <= MOST_SHOWN:
                return self._notebook_picture().svg()
        except SufficeError:  # a value is shown without a picture rather than not at all
            pass
        return None


class PicturedTable(Pictured):
    """The same of values that have tables, too: a notebook shows the picture above them."""

    if TYPE_CHECKING:

        def _repr_html_(self) -> str: ...

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        svg = self._repr_svg_()
        html = {"text/html": f"{svg or ''}{self._repr_html_()}"}
        return {"text/plain": repr(self), **html, **({"image/svg+xml": svg} if svg else {})}
