"""Values that a notebook shows as a picture."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from suffice.errors import GraphError, SufficeError
from suffice.pictures.picture import Picture

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
