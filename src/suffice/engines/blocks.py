"""Buffers: the rows of a block in the arrays that counting kernels take, filled again and again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.engines.engine import ROWS, Array, Block


@dataclass(frozen=True)
class Layout:
    """The columns of a block by the array they lie in: codes of one byte, wider codes, numbers."""

    narrow: tuple[str, ...]
    wide: tuple[str, ...]
    real: tuple[str, ...]


class Buffers:
    """Rows of columns in three arrays, one column a row of its array; filled again and again."""

    def __init__(self, layout: Layout, weighted: bool, n_rows: int = ROWS) -> None:
        self.layout = layout
        self.n_rows = 0
        self.narrow = np.empty((len(layout.narrow), n_rows), np.uint8)
        self.wide = np.empty((len(layout.wide), n_rows), np.uint32)
        self.real = np.empty((len(layout.real), n_rows), np.float64)
        self.weight = np.ones(n_rows)
        self.weighted = weighted
        parts = ((layout.narrow, self.narrow), (layout.wide, self.wide), (layout.real, self.real))
        self._rows = {name: array[i] for names, array in parts for i, name in enumerate(names)}

    def __getitem__(self, name: str) -> Array:
        row: Array = self._rows[name]
        return row[: self.n_rows]

    def filled(self, block: Block) -> Buffers:
        """These buffers with the rows of a block, or larger ones if it does not fit."""
        n_rows = block.n_rows
        if n_rows > len(self.weight):
            return Buffers(self.layout, self.weighted, n_rows).filled(block)
        self.n_rows = n_rows
        for name, row in self._rows.items():
            row[:n_rows] = block.columns[name]
        if self.weighted:
            self.weight[:n_rows] = block.weights
        return self


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
