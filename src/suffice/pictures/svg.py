"""Shapes as SVG: text that any browser draws, the same for the same shapes."""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import chain, repeat

from suffice.pictures.shapes import Kind, Piece, Rectangle, Route, Shapes, Words

INK, PAPER = "#444", "#fff"

LOOKS: dict[Kind, tuple[str, str]] = {
    "node": (PAPER, INK),
    "observed": ("#fde8c8", "#8a4b00"),
    "set": ("#dbe7fb", "#1d4f91"),
    "focus": ("#f2f2f2", "#000"),
    "past": (PAPER, INK),
    "bar": ("#5b8db8", "none"),
    "curve": ("none", "#2f6690"),
    "scale": ("none", "#ccc"),
    "before": ("none", "#000"),
    "interval": ("none", "#000"),
    "edge": ("none", "#666"),
    "second": ("none", PAPER),
}
"""The colours of each kind of shape: filling and line. Pages override them by the classes `suffice-KIND`."""

DASHES = {"dashed": "7 4", "dotted": "1.5 3.5"}

BORDERS = {"observed": ' stroke-width="2.5"', "focus": ' stroke-width="2.5"', "past": ' stroke-dasharray="5 3"'}
"""What tells some boxes from others beside their colours."""


def svg_of(shapes: Shapes, links: Sequence[str] = ()) -> str:
    """The SVG of shapes; the first groups lead to `links`, where these are not empty."""
    left, top, right, bottom = shapes.bounds
    width, height = right - left, bottom - top
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="suffice-picture" width="{width:g}" height="{height:g}"'
        f' role="{"group" if any(links) else "img"}"'
        f' viewBox="{left:g} {top:g} {width:g} {height:g}" font-family="sans-serif" font-size="12">',
        f"<title>{escape_text(shapes.title)}</title>",
    ]
    for (title, pieces), link in zip(shapes.groups, chain(links, repeat("")), strict=False):
        inside = "".join(_piece(piece) for piece in pieces)
        group = f"<g><title>{escape_text(title)}</title>{inside}</g>" if title else f"<g>{inside}</g>"
        parts.append(f'<a href="{escape_text(link)}">{group}</a>' if link else group)
    return "".join(parts) + "</svg>"


def escape_text(text: str) -> str:
    """Text as XML may have it: marks escaped, and what is no character of XML replaced."""
    return html.escape(
        "".join(
            c if c in "\n\t" or (c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff") else "�" for c in text
        )
    )


def _piece(piece: Piece) -> str:
    if isinstance(piece, Words):
        x, y = piece.at
        anchor = "" if piece.anchor == "start" else f' text-anchor="{piece.anchor}"'
        size = "" if piece.size == 12.0 else f' font-size="{piece.size:g}"'
        bold = ' font-weight="bold"' if piece.bold else ""
        return f'<text class="suffice-words" x="{x:.5g}" y="{y:.5g}"{anchor}{size}{bold}>{escape_text(piece.text)}</text>'
    fill, stroke = LOOKS[piece.kind]
    style = f'class="suffice-{piece.kind}" fill="{fill}" stroke="{stroke}"'
    if isinstance(piece, Rectangle):
        left, top, right, bottom = piece.box
        radius = f' rx="{piece.radius:g}"' if piece.radius else ""
        size = f'x="{left:.6g}" y="{top:.6g}" width="{right - left:.6g}" height="{bottom - top:.6g}"{radius}'
        return f"<rect {size} {style}{BORDERS.get(piece.kind, '')}/>"
    return _route(piece, style, stroke)


def _route(route: Route, style: str, stroke: str) -> str:
    points = " ".join(f"{x:.6g},{y:.6g}" for x, y in route.points)
    dash = f' stroke-dasharray="{DASHES[route.style]}"' if route.style in DASHES else ""
    width = f' stroke-width="{route.width:.4g}"' if route.width != 1.0 else ""
    line = f'<polyline points="{points}" {style}{width}{dash}/>'
    return line + _head(route, stroke) if route.arrow else line


def _head(route: Route, colour: str) -> str:
    """The head of an arrow, whose tip is the end of its route: a shape of its own, for markers have names that pages share."""
    (a, b), (x, y) = route.points[-2], route.points[-1]
    far = ((x - a) ** 2 + (y - b) ** 2) ** 0.5 or 1.0
    u, v = (x - a) / far, (y - b) / far
    long, half = 7.0 + route.width, 2.5 + 0.8 * route.width
    base = (x - long * u, y - long * v)
    corners = ((x, y), (base[0] - half * v, base[1] + half * u), (base[0] + half * v, base[1] - half * u))
    points = " ".join(f"{p:.6g},{q:.6g}" for p, q in corners)
    return f'<polygon class="suffice-head" points="{points}" fill="{colour}"/>'
