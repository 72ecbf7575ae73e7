"""The memory engine: encoded columns as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from suffice.engines.columns import Array, Column
from suffice.engines.encode import recode


class Held:
    """A column in memory."""

    def __init__(self, array: Array) -> None:
        array.setflags(write=False)
        self.array = array

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.array.dtype

    def read(self, start: int, stop: int, out: Array) -> None:
        out[:] = self.array[start:stop]


class Nothing:
    """A column in which every cell is missing."""

    dtype = np.dtype(np.float64)

    def read(self, start: int, stop: int, out: Array) -> None:
        out[:] = np.nan


class Memory:
    """The sink of the memory engine."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[Array]] = {}

    def add(self, chunks: dict[str, Array]) -> None:
        for name, chunk in chunks.items():
            self._chunks.setdefault(name, []).append(chunk)

    def column(self, name: str, order: Array | None, dtype: np.dtype[Any]) -> Column:
        return Held(joined(self._chunks.pop(name), order, dtype))

    def close(self) -> None:
        pass


def joined(chunks: Sequence[Array], order: Array | None, dtype: np.dtype[Any]) -> Array:
    """One array of the chunks of a column."""
    parts = chunks if order is None else [recode(c, order, dtype) for c in chunks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
