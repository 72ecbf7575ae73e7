"""Pieces of HTML. Whatever comes from data or from a user is escaped here, and only here: `Html` is text that was."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from suffice.errors import quantity
from suffice.pictures.shapes import cut
from suffice.pictures.svg import escape_text

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
        self.cells, self.names, self.id, self.class_ = cells, names, id, class_

    def html(self, headings: int) -> Html:
        """The row, whose first cells are headings."""
        cells = [
            _cell(c[0] if isinstance(c, tuple) else c, c[1] if isinstance(c, tuple) else "", heading=i < headings)
            for i, c in enumerate(self.cells)
        ]
        return element("tr", *cells, **found_by(self.names), id=self.id or None, class_=self.class_ or None)


def found_by(names: Sequence[str]) -> dict[str, str | None]:
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
