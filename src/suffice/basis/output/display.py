"""How values show themselves: plain text for a terminal, HTML for a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from suffice.errors import quantity

Rows = Iterable[Sequence[object]]


def number(x: object) -> str:
    """A number for a person: four significant digits."""
    return f"{x:.4g}" if isinstance(x, float) else str(x).replace("\n", "\\n")


def text_table(header: Sequence[str], rows: Rows, *, indent: str = "") -> str:
    """Columns that stand under their names.

    >>> print(text_table(["x", "p"], [["yes", 0.25], ["no", 0.75]]))
    x    p
    ───  ────
    yes  0.25
    no   0.75
    """
    cells = [[number(c) for c in row] for row in rows]
    widths = [max(len(r[i]) for r in [list(header), *cells]) for i in range(len(header))]
    lines = [list(header), ["─" * w for w in widths], *cells]
    return "\n".join((indent + "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True))).rstrip() for line in lines)


def html_table(header: Sequence[str], rows: Rows, *, caption: str = "") -> str:
    """The same as HTML, every cell escaped."""
    head = "".join(f"<th>{html.escape(h)}</th>" for h in header)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(number(c))}</td>" for c in row) + "</tr>" for row in rows)
    top = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f"<table>{top}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def and_more(n: int, noun: str) -> str:
    """The last line under a table that leaves out n things; nothing if it leaves out none."""
    return f"\n… and {quantity(n, f'more {noun}')}" if n > 0 else ""


class Tabular:
    """What shows itself as a title over tables; a notebook has room for twice as many lines as a terminal."""

    _lines, _indent = 32, ""

    def _headline(self) -> str:
        raise NotImplementedError

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        """The tables, of at most so many lines, and what is said below them of those that are left out."""
        raise NotImplementedError

    def __repr__(self) -> str:
        tables, more = self._tables(self._lines)
        return f"{self._headline()}\n" + "\n\n".join(text_table(*t, indent=self._indent) for t in tables) + more

    def _repr_html_(self) -> str:
        (first, *rest), _ = self._tables(2 * self._lines)
        return html_table(*first, caption=self._headline()) + "".join(html_table(*t) for t in rest)


class OneTable:
    """What shows itself as its kind and a headline over a table, with what there is to be said below it."""

    __slots__ = ()

    def _headline(self) -> str:
        return ""

    def _table(self) -> tuple[list[str], list[list[object]]]:
        raise NotImplementedError

    def _below(self) -> str:
        return ""

    def __repr__(self) -> str:
        headline = self._headline() and f"{type(self).__name__}: {self._headline()}\n\n"
        return f"{headline}{text_table(*self._table())}{self._below()}"

    def _repr_html_(self) -> str:
        return html_table(*self._table(), caption=self._headline())
