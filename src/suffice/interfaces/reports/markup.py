"""Pieces of HTML. Whatever comes from data or from a user is escaped here, and only here: `Html` is text that was. And small
charts as SVG, which need no other package: lines that go up, and probabilities against shares; their colours are those of the
page, by classes, and what tells lines apart is never colour alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from suffice.basis.pictures.shapes import cut, escape_text
from suffice.errors import quantity

LONG = 48
"""Letters of a name or a state; longer ones are cut, and stand whole in the title."""

WHOLE = 10_000
"""Letters of a title."""


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Content = str | float | None
"""What an element may hold: text, which is escaped, HTML, a number."""


def text(content: Content) -> Html:
    """Content as HTML."""
    if isinstance(content, Html):
        return content
    return Html("" if content is None else escape_text(content) if isinstance(content, str) else number(content))


def number(x: float) -> str:
    """A number for a person."""
    if isinstance(x, int) or (math.isfinite(x) and x == int(x) and 1000 <= abs(x) < 1e7):
        return f"{int(x):,}".replace("-", "−")
    if not math.isfinite(x):
        return "–" if math.isnan(x) else "∞" if x > 0 else "−∞"
    return f"{x:.4g}".replace("-", "−", 1) if x < 0 else f"{x:.4g}"


def element(tag: str, *content: Content, **attributes: str | int | bool | None) -> Html:
    """An element; attributes that are None or False are left out, `class_` is `class`, `data_name` is `data-name`."""
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    there = {name: value for name, value in names.items() if value is not None and value is not False}
    said = "".join(f" {name}" if value is True else f' {name}="{escape_text(str(value))}"' for name, value in there.items())
    return Html(f"<{tag}{said}>{join(content)}</{tag}>")


def join(parts: Iterable[Content]) -> Html:
    """Parts one after the other."""
    return Html("".join(map(text, parts)))


def name(whole: str, link: str = "", letters: int = LONG) -> Html:
    """A name or a state, in whatever direction it is written; cut where it is long, and then whole in the title."""
    short = cut(whole, letters)
    if short == whole and whole.isascii():  # most names: nothing to be isolated, nothing left out
        return element("a", whole, href=link) if link else text(whole)
    shown = element("bdi", short, title=None if short == whole else whole[:WHOLE])
    return element("a", shown, href=link) if link else shown


def paragraph(*content: Content, class_: str | None = None) -> Html:
    return element("p", *content, class_=class_)


def bullets(lines: Iterable[Content], class_: str | None = None) -> Html:
    """A list; nothing of no lines."""
    items = [element("li", line) for line in lines]
    return element("ul", *items, class_=class_) if items else Html()


def facts(pairs: Mapping[str, Content]) -> Html:
    """Terms and what is said of them; those of which nothing is said are left out."""
    said = [(term, value) for term, value in pairs.items() if value is not None and value != ""]
    return element("dl", *(element("div", element("dt", term), element("dd", value)) for term, value in said), class_="facts")


class Row:
    """A row of a table: its cells, the first of them a heading; `names` are what the filter finds it by, `id` where links lead.

    A cell is content, or content and the class of the cell.
    """

    def __init__(self, *cells: Content | tuple[Content, str], names: Sequence[str] = (), id: str = "", class_: str = "") -> None:
        self.cells = [cell if isinstance(cell, tuple) else (cell, "") for cell in cells]
        self.names, self.id, self.class_ = names, id, class_

    def html(self, headings: int) -> Html:
        """The row, whose first cells are headings."""
        cells = [_cell(content, class_, heading=i < headings) for i, (content, class_) in enumerate(self.cells)]
        return element("tr", *cells, **filter_attribute(self.names), id=self.id or None, class_=self.class_ or None)


def filter_attribute(names: Sequence[str]) -> dict[str, str | None]:
    """The attribute by which the filter finds an element."""
    return {"data_name": " ".join(name[:LONG].casefold() for name in names) or None}


def _cell(content: Content, class_: str, *, heading: bool) -> Html:
    numeric = "n" if isinstance(content, (int, float)) else ""
    classes = " ".join(part for part in (numeric, class_) if part) or None
    return element("th", content, scope="row", class_=classes) if heading else element("td", content, class_=classes)


def table(header: Sequence[Content], rows: Iterable[Row], caption: str = "", *, headings: int = 1) -> Html:
    """A table in a frame of its own, which scrolls where it is too wide; the first columns are headings of their rows. One with a
    caption is a place on the way of the keyboard, too; the small ones of nodes would be too many."""
    head = element("thead", element("tr", *(element("th", h, scope="col") for h in header)))
    top = element("caption", caption) if caption else Html()
    body = element("tbody", *(row.html(headings) for row in rows))
    region: dict[str, str | int] = {"tabindex": 0, "role": "region", "aria_label": str(caption)} if caption else {}
    return element("div", element("table", top, head, body), class_="wide", **region)


def cut_rows(n: int, total: int, noun: str, which: str) -> str:
    """What is said where a table is cut; nothing where it is whole."""
    return f"{n:,} of {quantity(total, noun)}: those {which}" if n < total else ""


def cut_note(n: int, total: int, noun: str, which: str) -> Html:
    """The same as a paragraph below the table."""
    said = cut_rows(n, total, noun, which)
    return paragraph(f"Shown: {said}.", class_="cut") if said else Html()


WIDTH, HEIGHT, LEFT, BELOW, ROOM = 560.0, 240.0, 76.0, 40.0, 12.0
POINTS = 400
"""Points of a line; of more, about so many, first and last among them."""


def ticks(low: float, high: float, n: int = 5) -> list[float]:
    """About n round numbers between two."""
    if not high > low:
        return [low]
    rough = (high - low) / n
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(m * unit for m in (1.0, 2.0, 5.0, 10.0) if m * unit >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def line_chart(lines: Sequence[tuple[str, Sequence[float]]], *, x: str, y: str, title: str) -> Html:
    """A line for each start, the first, which is the best, drawn last and heavier; the first climb of long ones is left out."""
    finite = [[v for v in values if math.isfinite(v)] for _, values in lines]
    starts = [values[min(len(values) - 1, len(values) // 20)] for values in finite if values]
    if not starts:
        return Html()
    low, high = min(starts), max(max(values) for values in finite if values)
    longest = max(len(values) for _, values in lines)
    frame = _Frame(1.0, max(2.0, float(longest)), low, high if high > low else low + 1.0)
    drawn = [
        frame.line([(i + 1.0, v) for i, v in enumerate(values) if v >= low and math.isfinite(v)], "best" if k == 0 else "other")
        for k, (_, values) in reversed(list(enumerate(lines)))
    ]
    return frame.chart(drawn, x=x, y=y, title=title)


def reliability(bins: Sequence[tuple[float, float, float, float, float]], *, title: str) -> Html:
    """Bins (predicted, observed, low, high, rows): points with their intervals; on the diagonal they agree."""
    frame = _Frame(0.0, 1.0, 0.0, 1.0, 220.0, 200.0, 40.0)
    most = max((b[4] for b in bins), default=1.0)
    parts = [frame.line([(0.0, 0.0), (1.0, 1.0)], "diagonal")]
    for predicted, observed, low, high, rows in bins:
        said = f"predicted {predicted:.3f}, observed {observed:.3f} ({low:.3f}–{high:.3f}), {rows:,.10g} rows"
        at, centre = frame.x(predicted), frame.y(observed)
        whisker = f'<path class="whisker" d="M{at:.1f} {frame.y(low):.1f}V{frame.y(high):.1f}"/>'
        point = f'<circle class="point" cx="{at:.1f}" cy="{centre:.1f}" r="{2.0 + 3.0 * math.sqrt(rows / most):.1f}"/>'
        parts.append(f"<g><title>{text(said)}</title>{whisker}{point}</g>")
    return frame.chart(parts, x="predicted", y="observed", title=title)


class _Frame:
    """The axes of a chart."""

    def __init__(
        self, x0: float, x1: float, y0: float, y1: float, width: float = WIDTH, height: float = HEIGHT, left: float = LEFT
    ) -> None:
        self.ends, self.width, self.height, self.left = (x0, x1, y0, y1), width, height, left

    def x(self, value: float) -> float:
        x0, x1, _, _ = self.ends
        return self.left + (value - x0) / (x1 - x0) * (self.width - self.left - ROOM)

    def y(self, value: float) -> float:
        _, _, y0, y1 = self.ends
        return self.height - BELOW - (value - y0) / (y1 - y0) * (self.height - BELOW - ROOM)

    def line(self, points: Sequence[tuple[float, float]], kind: str) -> str:
        if len(points) > POINTS:
            points = [points[i * (len(points) - 1) // (POINTS - 1)] for i in range(POINTS)]
        where = " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in points)
        return f'<polyline class="{kind}" points="{where}"/>'

    def chart(self, parts: Sequence[str], *, x: str, y: str, title: str) -> Html:
        x0, x1, y0, y1 = self.ends
        few = 8 if self.width > 300 else 2
        across = ticks(x0, x1, few)
        down = ticks(y0, y1, 6 if self.width > 300 else 2)
        floor, close = self.height - BELOW, y1 - y0 < 1e-3 * max(abs(y0), abs(y1))
        marks = [f'<path class="grid" d="M{self.left:.1f} {self.y(v):.1f}H{self.width - ROOM:.1f}"/>' for v in down]
        marks += [
            f'<text x="{self.left - 6:.1f}" y="{self.y(v) + 4:.1f}" text-anchor="end">{_tick(v, close)}</text>' for v in down
        ]
        marks += [f'<text x="{self.x(v):.1f}" y="{floor + 16:.1f}" text-anchor="middle">{_tick(v, False)}</text>' for v in across]
        axis = f'<path class="axis" d="M{self.left:.1f} {ROOM:.1f}V{floor:.1f}H{self.width - ROOM:.1f}"/>'
        middle = (floor + ROOM) / 2
        names = (
            f'<text x="{(self.left + self.width - ROOM) / 2:.1f}" y="{self.height - 6:.1f}" text-anchor="middle">{text(x)}</text>'
            f'<text transform="translate(12 {middle:.1f}) rotate(-90)" text-anchor="middle">{text(y)}</text>'
        )
        inside = Html(f"{''.join(marks)}{axis}{''.join(parts)}{names}")
        box = f"0 0 {self.width:g} {self.height:g}"
        sizes = {"width": f"{self.width:g}", "height": f"{self.height:g}", "viewBox": box}
        return element("svg", element("title", title), inside, class_="chart", role="img", **sizes)


def _tick(value: float, close: bool) -> str:
    shown = f"{value:,.6g}" if abs(value) < 1e6 and not close else f"{value:,.10g}" if abs(value) < 1e9 else f"{value:.4g}"
    return shown.replace("-", "−", 1)
