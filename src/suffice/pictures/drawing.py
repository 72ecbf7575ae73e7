"""Shapes drawn by matplotlib: on axes, or into files."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from suffice.errors import GraphError
from suffice.output.files import replacing
from suffice.pictures.shapes import Piece, Rectangle, Shapes, Words
from suffice.pictures.svg import LOOKS, svg_of

SUFFIXES = (".svg", ".png", ".pdf")

LONGEST = 40.0
"""Inches of a side of a figure; what is longer is drawn smaller."""

DASHES: dict[str, Any] = {"dashed": (0, (7, 4)), "dotted": (0, (1.5, 3.5))}


def save(shapes: Shapes, path: Path) -> None:
    """Write a picture to a file, in the format that its suffix says."""
    if path.suffix.lower() not in SUFFIXES:
        raise GraphError(f"a picture is saved as {', '.join(SUFFIXES)}, not {path.suffix or 'without a suffix'}: {path}")
    try:
        with replacing(path) as beside:
            if path.suffix.lower() == ".svg":
                beside.write_text(svg_of(shapes), encoding="utf-8")
            else:
                draw_to(shapes, beside, path.suffix[1:].lower())
    except OSError as error:
        raise GraphError(f"{path} cannot be written: {error.strerror or error}") from None


def draw_to(shapes: Shapes, path: Path, kind: str | None = None) -> Any:
    """Draw shapes into a file, by its suffix or as a kind that matplotlib knows; gives the axes."""
    ax = draw(shapes, _axes(shapes, to_file=True))
    with warnings.catch_warnings():  # letters that the font lacks are drawn as boxes
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        ax.figure.savefig(path, format=kind, dpi=144)
    return ax


def draw(shapes: Shapes, ax: Any = None) -> Any:
    """Draw shapes on axes; without any on pyplot's current figure or, where there is something on that already, on a new one."""
    _matplotlib()
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


def _matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise GraphError("plotting needs matplotlib: pip install suffice[plot]; .svg needs nothing") from None


def _axes(shapes: Shapes, *, to_file: bool = False) -> Any:
    """Axes that fill a figure as large as the shapes. What goes to a file needs no window."""
    _matplotlib()
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
        weight = "bold" if piece.bold else "normal"
        style: Any = {
            "ha": {"start": "left", "middle": "center", "end": "right"}[piece.anchor],
            "va": "baseline",
            "weight": weight,
        }
        ax.text(*piece.at, piece.text, fontsize=piece.size * scale * 0.83, parse_math=False, **style)
        return
    fill, stroke = LOOKS[piece.kind]
    if isinstance(piece, Rectangle):
        left, top, right, bottom = piece.box
        wide = 2.5 if piece.kind in ("observed", "focus") else 1.0
        style = {"boxstyle": f"round,pad=0,rounding_size={piece.radius or 1e-9:g}", "linewidth": wide * scale}
        style["linestyle"] = (0, (5, 3)) if piece.kind == "past" else "solid"
        ax.add_patch(FancyBboxPatch((left, top), right - left, bottom - top, facecolor=fill, edgecolor=stroke, **style))
        return
    head = "-|>" if piece.arrow else "-"
    style = {"arrowstyle": head, "mutation_scale": (8 + 2 * piece.width) * scale, "shrinkA": 0, "shrinkB": 0, "color": stroke}
    style |= {"linewidth": piece.width * scale, "joinstyle": "round", "capstyle": "butt"}
    if piece.style in DASHES:
        style["linestyle"] = DASHES[piece.style]
    ax.add_patch(FancyArrowPatch(path=Corners(piece.points), **style))
