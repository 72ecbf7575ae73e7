"""A picture of a graph, which draws itself, by matplotlib on axes or into files; and values that a notebook shows as one."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.basis.output.files import replacing
from suffice.basis.pictures.scene import Scene
from suffice.basis.pictures.shapes import LOOKS, Piece, Rectangle, Shapes, Words, shapes_of, svg_of
from suffice.errors import GraphError, SufficeError

SUFFIXES = (".svg", ".png", ".pdf")

LONGEST = 40.0
"""Inches of a side of a figure; what is longer is drawn smaller."""

DASHES: dict[str, Any] = {"dashed": (0, (7, 4)), "dotted": (0, (1.5, 3.5))}


def draw_to(shapes: Shapes, path: Path, kind: str | None = None) -> Any:
    """Draw shapes into a file, by its suffix or as a kind that matplotlib knows; gives the axes."""
    ax = draw(shapes, _axes(shapes, to_file=True))
    with warnings.catch_warnings():  # letters that the font lacks are drawn as boxes
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        ax.figure.savefig(path, format=kind, dpi=144)
    return ax


def draw(shapes: Shapes, ax: Any = None) -> Any:
    """Draw shapes on axes; without any on pyplot's current figure or, where there is something on that already, on a new one."""
    ax = _axes(shapes) if ax is None else ax
    left, top, right, bottom = shapes.bounds
    ax.set_xlim(left, right)
    ax.set_ylim(bottom, top)
    ax.set_aspect("equal")
    ax.set_axis_off()
    scale = _scale(ax, right - left, bottom - top)
    for _, pieces in shapes.groups:
        for piece in pieces:
            _add(ax, piece, scale)
    return ax


def _axes(shapes: Shapes, *, to_file: bool = False) -> Any:
    """Axes that fill a figure as large as the shapes. What goes to a file needs no window."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise GraphError("plotting needs matplotlib: pip install suffice[plot]; .svg needs nothing") from None
    left, top, right, bottom = shapes.bounds
    inches = (min(max(right - left, 1.0) / 72, LONGEST), min(max(bottom - top, 1.0) / 72, LONGEST))
    if to_file:
        from matplotlib.figure import Figure

        return Figure(figsize=inches).add_axes((0, 0, 1, 1))
    import matplotlib.pyplot as plt

    if not plt.get_fignums() or any(ax.has_data() for ax in plt.gcf().axes):
        return plt.figure(figsize=inches).add_axes((0, 0, 1, 1))
    return plt.gca()


def _scale(ax: Any, width: float, height: float) -> float:
    """How large a point of the layout is on the axes, of which letters and lines should know."""
    area = ax.get_window_extent()
    points = 72 / ax.figure.dpi
    return float(min(area.width * points / max(width, 1.0), area.height * points / max(height, 1.0), 1.5))


def _add(ax: Any, piece: Piece, scale: float) -> None:
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
    from matplotlib.path import Path as Corners

    if isinstance(piece, Words):
        side, weight = {"start": "left", "middle": "center", "end": "right"}[piece.anchor], "bold" if piece.bold else "normal"
        size = piece.size * scale * 0.83
        ax.text(*piece.at, piece.text, fontsize=size, parse_math=False, ha=side, va="baseline", weight=weight)
        return
    fill, stroke = LOOKS[piece.kind]
    if isinstance(piece, Rectangle):
        left, top, right, bottom = piece.box
        wide = 2.5 if piece.kind in ("observed", "focus") else 1.0
        style: Any = {"boxstyle": f"round,pad=0,rounding_size={piece.radius or 1e-9:g}", "linewidth": wide * scale}
        style["linestyle"] = (0, (5, 3)) if piece.kind == "past" else "solid"
        ax.add_patch(FancyBboxPatch((left, top), right - left, bottom - top, facecolor=fill, edgecolor=stroke, **style))
        return
    head = "-|>" if piece.arrow else "-"
    style = {"arrowstyle": head, "mutation_scale": (8 + 2 * piece.width) * scale, "shrinkA": 0, "shrinkB": 0, "color": stroke}
    style |= {"linewidth": piece.width * scale, "joinstyle": "round", "capstyle": "butt"}
    if piece.style in DASHES:
        style["linestyle"] = DASHES[piece.style]
    ax.add_patch(FancyArrowPatch(path=Corners(piece.points), **style))


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
        keys: list[str | tuple[str, str]] = [*sorted((e.tail, e.head) for e in self.edges), *self.order]
        return svg_of(shapes_of(self), [(links or {}).get(key, "") for key in keys])

    def save(self, path: str | Path) -> None:
        """Write the picture to a file: .svg, .png or .pdf."""
        place = Path(path)
        suffix = place.suffix.lower()
        if suffix not in SUFFIXES:
            raise GraphError(f"a picture is saved as {', '.join(SUFFIXES)}, not {place.suffix or 'without a suffix'}: {place}")
        try:
            with replacing(place) as beside:
                if suffix == ".svg":
                    beside.write_text(self.svg(), encoding="utf-8")
                else:
                    draw_to(shapes_of(self), beside, suffix[1:])
        except OSError as error:
            raise GraphError(f"{place} cannot be written: {error.strerror or error}") from None

    def plot_to(self, path: str | Path) -> Any:
        """Draw the picture by matplotlib into a file of any of its kinds; gives the axes."""
        return draw_to(shapes_of(self), Path(path))

    def draw(self, ax: Any = None) -> Any:
        """The picture on matplotlib's axes, or on pyplot's current figure; gives the axes."""
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
