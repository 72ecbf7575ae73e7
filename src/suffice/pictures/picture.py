"""A picture of a graph, which draws itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
