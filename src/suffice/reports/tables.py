"""The distribution of each node as a table: its numbers, their intervals, how many rows had a configuration, and which none had.

Tables past a budget are cut to the lines with most support, and say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.reports.markup import Content, Html, Row, cut_rows, name, number, table
from suffice.statistics.counts import sizes

Array = npt.NDArray[np.float64]

CELLS = 9_000
"""Numbers in the tables of a whole report, about."""

FEWEST, MOST = 4, 400
"""Numbers of one table, whatever the others take."""

WIDE = 8
"""Numbers in a line; a table of more has a line for each number."""

LARGEST = 2_000_000
"""Numbers of a table that is looked through for the lines with most support; of larger ones the first are taken."""


def share_of(n_tables: int, *, intervals: bool = False) -> int:
    """How many numbers each of some tables may show; one with an interval takes the room of two.

    >>> share_of(10), share_of(1000), share_of(1000, intervals=True)
    (400, 9, 4)
    """
    return max(FEWEST, min(MOST, CELLS // max(1, n_tables) // (2 if intervals else 1)))


@dataclass(frozen=True)
class CpdNumbers:
    """The numbers of a distribution: a line for each configuration of the finite parents, a column for each name."""

    names: list[str]
    values: Array
    low: Array | None
    high: Array | None
    support: Array | None
    """The rows of each configuration."""
    unsupported: npt.NDArray[np.bool_]
    are_probabilities: bool

    @classmethod
    def of(cls, cpd: Any) -> CpdNumbers:
        """Those of a distribution that has arrays by configuration."""
        n = int(np.prod(sizes(cpd.finite_parents), dtype=np.int64))
        values = np.concatenate([np.asarray(x).reshape(n, -1) for _, x in cpd._arrays()], axis=1)
        probs = "probs" in cpd.arrays
        names = list(cpd.child.states) if probs else cpd._numbers(0)[0]
        ends = cpd.interval_ends() if values.size <= LARGEST else None
        low, high = (None, None) if ends is None else ends
        rows = cpd.support
        return cls(names, values, low, high, None if rows is None else rows.reshape(n), cpd.unsupported.reshape(n), probs)

    def cell(self, i: int, j: int) -> tuple[Content, str]:
        """A number with its interval, and a class that draws it as a bar."""
        value = float(self.values[i, j])
        bar = round(20 * value) if self.are_probabilities and value == value else 0
        classes = f"n b{bar}" if bar else "n"
        if self.low is None or self.high is None:
            return Html(number(value)), classes
        low, high = (self._end(float(end[i, j])) for end in (self.low, self.high))
        return Html(f"{number(value)} <small>{low}–{high}</small>"), classes

    def _end(self, value: float) -> str:
        """An end of an interval: of a probability three decimals, of other numbers three digits."""
        if self.are_probabilities and value == value:
            return f"{value:.3f}".rstrip("0").rstrip(".")
        return f"{value:.3g}".replace("-", "−")


def table_of(cpd: Any, budget: int) -> tuple[Html, str]:
    """The table of a node's distribution with about so many numbers, and what is to be said of it.

    >>> import suffice as sf
    >>> html, said = table_of(sf.load("asia")["dysp"], 6)
    >>> html.count("<tr"), said
    (4, '3 of 4 rows: those that come first')
    """
    if not cpd.arrays or cpd.is_regression:
        return _regression(cpd, budget)
    own = CpdNumbers.of(cpd)
    return _long(cpd, own, budget) if len(own.names) > WIDE else _wide(cpd, own, budget)


def _regression(cpd: Any, budget: int) -> tuple[Html, str]:
    """A line for each coefficient."""
    n, limit = cpd._n_rows(), max(4, budget // 4)
    header, rows = cpd._rows(limit)
    body = [Row(*(_content(cell) for cell in row)) for row in rows]
    return table([_content(h) for h in header], body), cut_rows(len(rows), n, "row", "that come first")


def _content(cell: object) -> Content:
    return name(cell) if isinstance(cell, str) else float(cell) if isinstance(cell, float) else str(cell)


def _wide(cpd: Any, own: CpdNumbers, budget: int) -> tuple[Html, str]:
    """A line for each configuration of the finite parents."""
    n = len(own.values)
    chosen, which = _choice(own.support, n, max(1, budget // len(own.names)))
    parents = cpd.finite_parents
    counted = own.support is not None
    rows = []
    for i, states in zip(chosen, _states(parents, chosen), strict=True):
        seen = [_support(own, i)] if counted else []
        cells = [own.cell(i, j) for j in range(len(own.names))]
        rows.append(Row(*map(name, states), *cells, *seen, class_="unseen" if own.unsupported[i] else ""))
    heads = [*(name(p.name) for p in parents), *map(name, own.names)]
    html = table([*heads, *(["rows"] if counted else [])], rows, headings=len(parents))
    return html, cut_rows(len(rows), n, "row", which)


def _long(cpd: Any, own: CpdNumbers, budget: int) -> tuple[Html, str]:
    """A line for each number: of many states, the configuration and the state."""
    n, k = own.values.shape
    weight = None if own.support is None else (own.support[:, None] * own.values).reshape(-1)
    if own.support is None and n == 1:
        weight = own.values.reshape(-1)
    chosen, which = _choice(weight, n * k, max(2, budget // 2))
    which = "that are most probable" if own.support is None and n == 1 else which
    parents = cpd.finite_parents
    counted, places = own.support is not None, [divmod(c, k) for c in chosen]
    rows = []
    for (i, j), states in zip(places, _states(parents, [i for i, _ in places]), strict=True):
        seen = [_support(own, i)] if counted else []
        unseen = "unseen" if own.unsupported[i] else ""
        rows.append(Row(*map(name, states), name(own.names[j]), own.cell(i, j), *seen, class_=unseen))
    header = [*(name(p.name) for p in parents), name(cpd.child.name), "probability" if own.are_probabilities else "value"]
    html = table([*header, *(["rows"] if counted else [])], rows, headings=len(parents) + 1)
    return html, cut_rows(len(rows), n * k, "cell", which)


def _choice(weight: Array | None, n: int, limit: int) -> tuple[Sequence[int], str]:
    """Which lines are shown, in their order, and which these are."""
    if n <= limit:
        return range(n), ""
    if weight is None or n > LARGEST:
        return range(limit), "that come first"
    kept: list[int] = sorted(np.argsort(-weight, kind="stable")[:limit].tolist())
    return kept, "with most support"


def _states(parents: Sequence[Any], chosen: Sequence[int]) -> list[tuple[str, ...]]:
    """The states of the parents in some configurations."""
    if not parents:
        return [()] * len(chosen)
    places = np.unravel_index(np.asarray(chosen, np.int64), sizes(parents))
    return [tuple(p.states[c] for p, c in zip(parents, codes, strict=True)) for codes in zip(*places, strict=True)]


def _support(own: CpdNumbers, i: int) -> tuple[Content, str]:
    assert own.support is not None
    count = number(float(own.support[i]))
    return (Html(f"{count} <small>none seen</small>") if own.unsupported[i] and own.support[i] <= 0 else Html(count)), "n"
