"""What a picture is drawn of: rectangles, lines and words, in points, y downwards: whoever draws them knows nothing else; and
SVG, text that any browser draws, the same for the same shapes."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from textwrap import wrap
from typing import Literal

from suffice.basis.pictures.arrangement import lay_out
from suffice.basis.pictures.layout import Box, Layout, Point, Size
from suffice.basis.pictures.scene import Bar, Curve, PictureEdge, PictureNode, Scene, Style
from suffice.errors import quantity

MARGIN = 12.0
"""Around a picture."""

HEIGHT, ROW = 26.0, 15.0
"""The height of a heading, and of a bar or line below it."""

LETTER = 7.0
"""The mean width of a letter of 12 points; wide ones of East Asia take twice that."""

NAME, LABEL, SCALE, VALUE = 16, 12, 70.0, 40.0
"""Letters of a heading and of a bar's label; the length of a bar of 1, and the room for its number."""

CURVE, AXIS = 30.0, 13.0
"""The height of a density, and of the numbers below it."""

THIN, WIDE = 1.0, 5.0
"""The widths of the thinnest and the widest edge."""

Kind = Literal["node", "observed", "set", "focus", "past", "bar", "curve", "before", "interval", "scale", "edge", "second"]
"""What a shape is, which says how it looks; a page may style it by the class `suffice-KIND`."""

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class Rectangle:
    box: Box
    kind: Kind
    radius: float = 0.0


@dataclass(frozen=True)
class Route:
    """A line through points; with a head at its end, or without."""

    points: tuple[Point, ...]
    kind: Kind
    width: float = THIN
    style: Style = "solid"
    arrow: bool = False


@dataclass(frozen=True)
class Words:
    """Text whose baseline begins, is centred or ends at a point."""

    at: Point
    text: str
    anchor: Anchor = "start"
    size: float = 12.0
    bold: bool = False


Piece = Rectangle | Route | Words


@dataclass(frozen=True)
class Shapes:
    """All that is drawn, what each group of it is called in full, and the space that it takes."""

    groups: tuple[tuple[str, tuple[Piece, ...]], ...]
    bounds: Box
    title: str


def cut(text: str, letters: int) -> str:
    """A text in one line of at most so many letters, without characters that no picture has."""
    plain = "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c for c in text[: 4 * letters])
    return plain if len(plain) <= letters and len(text) <= 4 * letters else plain[: letters - 1] + "…"


def length(text: str) -> float:
    """How long a text is, about."""
    return LETTER * sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def heading(node: PictureNode) -> str:
    """What stands at the head of a node."""
    return cut(node.heading or node.name, NAME if not node.heading else 2 * NAME)


def size_of(node: PictureNode) -> tuple[float, float]:
    """The width and height of a node."""
    bars, more = node.few_bars()
    lines = [cut(line, 3 * NAME) for line in (*node.lines, *([more] if more else []))]
    labels = max((length(cut(bar.label, LABEL)) for bar in bars), default=0.0)
    widths = [40.0, 14.0 + length(heading(node)), *(14.0 + 0.85 * length(line) for line in lines)]
    if bars:
        widths.append(18.0 + 0.85 * labels + SCALE + VALUE)
    if node.curve:
        widths.append(2 * SCALE)
    below = len(bars) + len(lines)
    drawn = CURVE + AXIS if node.curve else 0.0
    return max(widths), HEIGHT + (ROW * below + 5.0 if below else 0.0) + drawn


def outline(picture: Scene) -> tuple[dict[str, Size], dict[str, list[str]]]:
    """What `lay_out` takes: the nodes with their sizes in the order in which arrows lead on, and which of them each is joined to
    before it."""
    by_name = {node.name: node for node in picture.nodes}
    sizes = {name: size_of(by_name[name]) for name in picture.order}
    place = {name: i for i, name in enumerate(sizes)}
    above: dict[str, list[str]] = {name: [] for name in sizes}
    for edge in picture.edges:
        first, last = sorted((edge.tail, edge.head), key=place.__getitem__)
        if first not in above[last]:
            above[last].append(first)
    return sizes, {name: sorted(parents) for name, parents in above.items()}


def path_of(edge: PictureEdge, at: Layout) -> tuple[Point, ...]:
    """The corners of an edge, from its tail to its head, whichever way it was laid out."""
    path = at.paths.get((edge.tail, edge.head))
    return tuple(reversed(at.paths[edge.head, edge.tail])) if path is None else tuple(path)


def shapes_of(picture: Scene) -> Shapes:
    """The shapes of a picture."""
    by_name = {node.name: node for node in picture.nodes}
    sizes, above = outline(picture)
    at = lay_out(sizes, above)
    groups: list[tuple[str, tuple[Piece, ...]]] = []
    for edge in sorted(picture.edges, key=lambda e: (e.tail, e.head)):
        title = edge.title or f"{edge.tail} {'->' if edge.arrow else '--'} {edge.head}"
        groups.append((title, _routes(path_of(edge, at), edge.style, width_of(edge.strength), edge.arrow)))
    groups += [(node_title(by_name[name]), tuple(_node(by_name[name], at.box(name)))) for name in sizes]
    return _with_legend(picture, groups, at.bounds)


def node_title(node: PictureNode) -> str:
    """All that is known of a node, in words."""
    bars = [f"{b.label}: {b.value:.4g}" + (f" ({b.low:.4g} to {b.high:.4g})" if b.low is not None else "") for b in node.bars]
    return "\n".join([node.heading or node.name, *node.lines, *bars])


def _routes(points: tuple[Point, ...], style: Style, width: float, arrow: bool) -> tuple[Route, ...]:
    """The lines that an edge is drawn of."""
    if style == "double":
        inner = Route(_before(points, 9.0 + width) if arrow else points, "second", width)
        return Route(points, "edge", width + 2.5, "solid", arrow), inner
    return (Route(points, "edge", width, style, arrow),)


def width_of(strength: float | None) -> float:
    """How wide an edge is, by its strength from 0 to 1."""
    return THIN + (WIDE - THIN) * min(max(strength or 0.0, 0.0), 1.0)


def _before(points: tuple[Point, ...], length: float) -> tuple[Point, ...]:
    """A line that ends so much before its end, or at the last corner before it."""
    (a, b), (x, y) = points[-2:]
    share = max(0.0, 1.0 - length / max(((x - a) ** 2 + (y - b) ** 2) ** 0.5, 1e-9))
    return (*points[:-1], (a + share * (x - a), b + share * (y - b)))


def _node(node: PictureNode, box: Box) -> list[Piece]:
    left, top, right, bottom = box
    middle = (left + right) / 2
    kind: Kind = node.mark or "node"
    pieces: list[Piece] = [Rectangle(box, kind, 3.0)]
    if node.mark == "set":  # a second border, so that colour is not all that tells
        pieces.append(Rectangle((left + 2.5, top + 2.5, right - 2.5, bottom - 2.5), "scale", 2.0))
    pieces.append(Words((middle, top + 17.0), heading(node), "middle", bold=node.mark in ("observed", "set", "focus")))
    bars, more = node.few_bars()
    y = top + HEIGHT
    for line in node.lines:
        pieces.append(Words((middle, y + 10.0), cut(line, 3 * NAME), "middle", 10.0))
        y += ROW
    if node.curve:
        pieces += _curve(node.curve, left + 8.0, right - 8.0, y)
    start = right - VALUE - SCALE
    for bar in bars:
        pieces += _bar(bar, left + 8.0, start, y)
        y += ROW
    if more:
        pieces.append(Words((left + 8.0, y + 10.0), more, "start", 10.0))
    return pieces


def _curve(curve: Curve, left: float, right: float, top: float) -> list[Piece]:
    """A density on its axis, with the ends of the axis; dotted where it was before, and an interval of its mean."""
    both = (*curve.points, *curve.before)
    low, high, most = min(x for x, _ in both), max(x for x, _ in both), max(y for _, y in both) or 1.0
    floor = top + CURVE

    def at(x: float, height: float = 0.0) -> Point:
        return left + (right - left) * (x - low) / ((high - low) or 1.0), floor - (CURVE - 3.0) * height / most

    pieces: list[Piece] = [Route(((left, floor), (right, floor)), "scale")]
    if curve.before:
        pieces.append(Route(tuple(at(x, y) for x, y in curve.before), "before", 1.0, "dotted"))
    pieces.append(Route(tuple(at(x, y) for x, y in curve.points), "curve", 1.5))
    if curve.mean:
        ends = [at(min(max(end, low), high))[0] for end in curve.mean]
        pieces += [Route(((x, floor - 3.0), (x, floor + 3.0)), "interval") for x in ends]
        pieces.append(Route(((ends[0], floor), (ends[1], floor)), "interval"))
    numbers = [Words((left, floor + 10.0), f"{low:.4g}", "start", 9.0), Words((right, floor + 10.0), f"{high:.4g}", "end", 9.0)]
    return [*pieces, *numbers]


def _bar(bar: Bar, left: float, start: float, y: float) -> list[Piece]:
    def x(value: float) -> float:
        return start + SCALE * min(max(value, 0.0), 1.0)

    pieces: list[Piece] = [
        Words((left, y + 10.0), cut(bar.label, LABEL), "start", 10.0),
        Rectangle((start, y + 2.0, start + SCALE, y + 12.0), "scale"),
        Rectangle((start, y + 2.0, max(x(bar.value), start + 0.1), y + 12.0), "bar"),
    ]
    if bar.before is not None:
        pieces.append(Route(((x(bar.before), y + 0.5), (x(bar.before), y + 13.5)), "before", 1.5))
    if bar.low is not None and bar.high is not None:
        low, high = x(bar.low), x(bar.high)
        ends = [Route(((e, y + 4.5), (e, y + 9.5)), "interval") for e in (low, high)]
        pieces += [Route(((low, y + 7.0), (high, y + 7.0)), "interval"), *ends]
    return [*pieces, Words((start + SCALE + VALUE - 6.0, y + 10.0), percent(bar.value), "end", 10.0)]


def percent(value: float) -> str:
    """A share for a narrow column."""
    if value in (0.0, 1.0):
        return f"{100 * value:.0f}"
    return "<0.1" if value < 0.0005 else ">99.9" if value >= 0.9995 else f"{100 * value:.1f}"


def _with_legend(picture: Scene, groups: Sequence[tuple[str, tuple[Piece, ...]]], bounds: Box) -> Shapes:
    left, top, right, bottom = bounds
    pieces: list[Piece] = []
    y = bottom + 2 * MARGIN
    samples = [(style, THIN, words) for style, words in picture.legend]
    for style, width, words in (*samples, *(("solid", width_of(share), words) for share, words in picture.widths)):
        points = ((left, y - 4.0), (left + 30.0, y - 4.0))
        pieces += _routes(points, style, width, False)
        pieces.append(Words((left + 38.0, y), words, "start", 10.0))
        right, y = max(right, left + 38.0 + 0.85 * length(words)), y + ROW
    letters = max(60, int((right - left) / (0.85 * LETTER)))  # lines that are about as wide as the picture
    for line in wrap(cut(picture.caption, 10 * letters), letters):
        pieces.append(Words((left, y), line, "start", 10.0))
        right, y = max(right, left + 0.85 * length(line)), y + ROW
    low = y - ROW + 4.0 if pieces else bottom
    space = (left - MARGIN, top - MARGIN, right + MARGIN, low + MARGIN)
    size = f"{quantity(len(picture.nodes), 'node')} and {quantity(len(picture.edges), 'edge')}"
    title = f"a graph of {size}" + (f": {picture.caption}" if picture.caption else "")
    return Shapes((*groups, *([("", tuple(pieces))] if pieces else [])), space, title)


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


_NOT_IN_XML = re.compile("[^\n\t\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape_text(text: str) -> str:
    """Text as XML may have it: marks escaped, and what is no character of XML replaced."""
    return html.escape(_NOT_IN_XML.sub("�", text))


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
    points = " ".join(f"{x:.6g},{y:.6g}" for x, y in piece.points)
    dash = f' stroke-dasharray="{DASHES[piece.style]}"' if piece.style in DASHES else ""
    width = f' stroke-width="{piece.width:.4g}"' if piece.width != 1.0 else ""
    line = f'<polyline points="{points}" {style}{width}{dash}/>'
    return line + _head(piece, stroke) if piece.arrow else line


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
