"""Columns of data at the door of `gather`: what scan gave, by its right name, with a value in each row; a pass over them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.errors import DataError, MissingCells, listed, nearest
from suffice.exponential.values import Outside


def scanned(data: Any, column: Any, family: Any) -> None:
    """Refuse what is not as `scan` gives it, with the call that is right.

    >>> from suffice.exponential import Normal
    >>> scanned("rows.csv", "x", Normal())
    Traceback (most recent call last):
    suffice.errors.DataError: gather reads what scan gives: ef.Normal().gather(sf.scan('rows.csv'), 'x'); not str
    """
    if not hasattr(data, "fold"):
        rows = repr(os.fspath(data)) if isinstance(data, (str, os.PathLike)) else "rows"
        call = f"ef.{family!r}.gather(sf.scan({rows}), {column!r})"
        raise DataError(f"gather reads what scan gives: {call}; not {type(data).__name__}")


def complete(data: Any, columns: Sequence[str], title: str) -> Any:
    """The data of these columns alone, refused where one is not there, has missing cells, or no rows at all."""
    for name in columns:
        if name not in data.columns:
            hint = nearest(str(name), data.columns) or f"; there are {listed(data.columns)}"
            raise DataError(f"there is no column {name!r}{hint}")
    rows = data.take(columns)
    missing = {name: n for name, n in rows.missing.items() if n}
    if missing:
        found = ", ".join(f"{n:,} in {name!r}" for name, n in missing.items())
        raise MissingCells(
            f"{title} needs a value in every row, and there are missing cells ({found}, of {rows.n_rows:,} rows); leave those "
            f"rows out yourself, for instance by df.dropna(subset={list(missing)!r})"
        )
    if rows.n_rows == 0:
        raise DataError(f"there are no rows to gather the statistic of {title} from")
    return rows


@dataclass(frozen=True, eq=False)
class Gathering:
    """The statistic of a block of rows. `meanings` has an array for each column: what its codes are; None for numbers."""

    family: Any
    columns: Sequence[str]
    meanings: Sequence[Any]

    def __call__(self, block: Any) -> Any:
        cells = [block.columns[name] for name in self.columns]
        values = [c if meaning is None else meaning[c] for c, meaning in zip(cells, self.meanings, strict=True)]
        try:
            return self.family._gathered(np.stack(values, axis=-1) if self.family.event_axes else values[0], block.weight)
        except Outside as wrong:
            raise Outside(wrong.before, wrong.row, wrong.after, block.number) from None


def gathered(family: Any, rows: Any, columns: Sequence[str], threads: int | None) -> Any:
    """The statistic of columns in one pass; a row that is refused is named by its place in the data."""
    meanings = [family._meaning(rows.schema[name]) for name in columns]
    try:
        return rows.fold(Gathering(family, tuple(columns), meanings), threads=threads)
    except Outside as wrong:
        raise DataError(f"{wrong.before} {rows.place(wrong.number, wrong.row)} {wrong.after}") from None
