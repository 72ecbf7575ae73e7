"""Blocks: some rows of some columns, as a user's step or a kernel takes them.

Every pass over the rows, on every engine, is made of the same blocks of rows, so that sums of floats come out the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.columns import Array

ROWS = 2**14
"""Rows of a block: by measurement large enough for the calls not to matter, small enough to stay in the cache."""


@dataclass(frozen=True)
class Batch:
    """Some rows: codes of finite columns (the largest value of the type means missing), numbers of the others (NaN).

    >>> Batch({"x": np.array([0, 1], np.uint8)}, None, 0).n_rows
    2
    """

    columns: Mapping[str, npt.NDArray[Any]]
    weight: npt.NDArray[np.float64] | None
    start: int

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0 if self.weight is None else len(self.weight)


@dataclass(frozen=True)
class Layout:
    """The columns of a block by the array they lie in: codes of one byte, wider codes, numbers."""

    narrow: tuple[str, ...]
    wide: tuple[str, ...]
    real: tuple[str, ...]


class Block:
    """Rows of columns in three arrays, one column a row of its array; filled again and again."""

    def __init__(self, layout: Layout, weighted: bool) -> None:
        self.layout = layout
        self.n_rows = 0
        self.narrow = np.empty((len(layout.narrow), ROWS), np.uint8)
        self.wide = np.empty((len(layout.wide), ROWS), np.uint32)
        self.real = np.empty((len(layout.real), ROWS), np.float64)
        self.weight = np.ones(ROWS)
        self.weighted = weighted
        parts = ((layout.narrow, self.narrow), (layout.wide, self.wide), (layout.real, self.real))
        self._rows = {name: array[i] for names, array in parts for i, name in enumerate(names)}

    def __getitem__(self, name: str) -> Array:
        row: Array = self._rows[name]
        return row[: self.n_rows]

    def fill(self, read: Callable[[str, Array], None], weight: Callable[[Array], None] | None, n_rows: int) -> None:
        """Take `n_rows` rows of every column."""
        self.n_rows = n_rows
        for name, row in self._rows.items():
            read(name, row[:n_rows])
        if weight is not None:
            weight(self.weight[:n_rows])


def ranges(n_rows: int, size: int = ROWS) -> Iterator[tuple[int, int]]:
    """The first and last row of each block.

    >>> list(ranges(5, 2))
    [(0, 2), (2, 4), (4, 5)]
    """
    return ((start, min(start + size, n_rows)) for start in range(0, n_rows, size))


def layout_of(dtypes: Mapping[str, np.dtype[Any]]) -> Layout:
    """Where each of the columns lies in a block, by its type.

    >>> layout_of({"x": np.dtype(np.uint8), "y": np.dtype(np.float64)})
    Layout(narrow=('x',), wide=(), real=('y',))
    """
    narrow = tuple(n for n, t in dtypes.items() if t == np.uint8)
    real = tuple(n for n, t in dtypes.items() if t == np.float64)
    return Layout(narrow, tuple(n for n in dtypes if n not in {*narrow, *real}), real)
