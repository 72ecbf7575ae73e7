"""Lagged rows: each step of a sequence as a row, in which the steps before it are columns like any others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.basis.arrays import Ints
from suffice.basis.variables import Variable
from suffice.engines.engine import Array, Block, Engine, Step, T, View
from suffice.engines.local.local import hold_in_memory
from suffice.engines.sequences.arranged import Arranged
from suffice.engines.steps.blocks import locate
from suffice.engines.views.views import Then, Viewed
from suffice.errors import DataError

Columns = Mapping[str, tuple[str, int]]
"""A column and a lag, 0, 1, 2, …, by a new name."""


@dataclass(frozen=True, eq=False)
class Lag:
    """A view: the steps of a block at the places from `first` to `last` of their sequences, with lagged columns."""

    columns: Columns
    first: int = 0
    last: int | None = None

    def __call__(self, block: Block) -> Block:
        lengths = block.lengths
        if lengths is None:
            raise DataError("these rows are no sequences, and have no steps before them: sequences(data, by, order) makes some")
        places = places_of(lengths)
        kept = kept_places(places, self.first, self.last)
        columns = {n: lag_cells(block.columns[c], places, lag) for n, (c, lag) in self.columns.items()}
        plain = Block(columns, block.weight, block.number)
        return plain if kept is None else plain.take(kept)


def places_of(lengths: Ints) -> Ints:
    """The place of each step within its sequence, from 0."""
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def kept_places(places: Ints, first: int, last: int | None) -> Ints | None:
    """Which steps are kept, None for all of them."""
    if first <= 0 and last is None:
        return None
    return np.flatnonzero((places >= first) & (places <= (np.inf if last is None else last)))


def lag_cells(cells: Array, places: Ints, lag: int) -> Array:
    """A column so many steps before; a cell before the start of its sequence is missing."""
    if lag == 0:
        return cells
    result = np.empty_like(cells)
    result[lag:] = cells[: max(0, len(cells) - lag)]
    result[places < lag] = np.nan if cells.dtype.kind == "f" else np.iinfo(cells.dtype).max
    return result


def rename(variable: Variable, name: str) -> Variable:
    """The same variable under another name."""
    return replace(variable, name=name)


class Lagged(Viewed):
    """The steps of sequences on any engine as plain rows with lagged columns. What the columns are is as if declared."""

    empty = "no sequence has a step there: all are shorter"
    own_gaps = may_be_none = True

    def __init__(self, engine: Engine, columns: Columns, first: int, last: int | None) -> None:
        super().__init__(engine, Lag(columns, first, last))
        self.columns, self.first, self.last = dict(columns), first, last
        self.names, self.keys = tuple(columns), ()

    def variables(self, names: Sequence[str]) -> dict[str, Variable]:
        self.check(names)
        own = self.engine.variables(self._sources(names))
        return {n: rename(own[self.columns[n][0]], n) for n in names}

    def text_columns(self, names: Sequence[str]) -> frozenset[str]:
        own = self.engine.text_columns(self._sources(names))
        return frozenset(n for n in names if self.columns[n][0] in own)

    def declare(self, variables: Any) -> Engine:
        """A lagged column is what the column is that it comes from, so that this one is declared."""
        own: dict[str, Any] = {}
        for name, what in (variables if isinstance(variables, Mapping) else {v.name: v for v in variables}).items():
            self.check([name])
            column = self.columns[name][0]
            said = rename(what, column) if isinstance(what, Variable) else what
            if own.setdefault(column, said) != said:
                raise DataError(f"{name!r} and other columns of {column!r} are declared differently; they are one variable")
        return Lagged(self.engine.declare(own), self.columns, self.first, self.last)

    def _sources(self, names: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(self.columns[n][0] for n in names))

    def _view_of(self, names: Sequence[str]) -> Lag:
        return Lag({n: self.columns[n] for n in names}, self.first, self.last)

    def total(self, step: Step[T], names: Sequence[str], threads: int | None, what: str | None) -> T | None:
        names = names or self.names[:1]  # without a column a block would not know its rows
        if step.complete:
            self.require(names)
            if not self.n_rows:
                return None
        return super().total(step, names, threads, what)

    def map(self, step: Callable[[Block], T], names: Sequence[str], *, keep: Sequence[str] = (), what: str = "") -> Iterator[T]:
        if keep:
            raise DataError("lagged rows keep no columns as they came")
        return super().map(step, names or self.names[:1], what=what)

    def hold(self, names: Sequence[str], view: View | None = None) -> Engine:
        own = self._sources(names)
        inner = self.engine.hold(own)
        inner.require(own)
        if not isinstance(inner, Arranged) or not inner.fits_again([self.columns[n][0] for n in names]):
            return self if view is None else Viewed(self, view)
        lag = self._view_of(names)
        blocks = list(inner.map(lag if view is None else Then(lag, view), own))
        near, sizes = Lagged(inner, self.columns, self.first, self.last), [(b.number, b.n_rows) for b in blocks]

        def place_of(row: int) -> str:
            i, own = locate([n_rows for _, n_rows in sizes], row)
            return near.place(sizes[i][0], own)

        place = place_of if view is None else None
        return hold_in_memory(self.variables(names), blocks, inner.options.memory_limit, place)

    def place(self, number: int, row: int) -> str:
        places = places_of(self.engine.arrangement.lengths_of(number))  # type: ignore[attr-defined]
        kept = kept_places(places, self.first, self.last)
        return self.engine.place(number, row if kept is None else int(kept[row]))
