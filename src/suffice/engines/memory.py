"""Columns: encoded once, and read by row ranges from then on, wherever they lie; those in memory."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from suffice.engines.encode import missing_code, recode

Array = npt.NDArray[Any]


class Column(Protocol):
    """An encoded column: codes of states, or numbers."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its cells."""

    def read(self, start: int, stop: int, out: Array) -> None:
        """Write the rows from `start` to `stop` into `out`."""


class Sink(Protocol):
    """Where the encoded chunks of columns go."""

    def add(self, chunks: dict[str, Array]) -> None:
        """Take the next rows of every column that is still being encoded."""

    def column(self, name: str, order: Array | None, dtype: np.dtype[Any]) -> Column:
        """A finished column: codes put in order, in the type they need in the end."""


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

    def __init__(self, n_rows: int | None) -> None:
        self._n_rows = n_rows
        self._columns: dict[str, Growing] = {}

    def add(self, chunks: dict[str, Array]) -> None:
        for name, chunk in chunks.items():
            self._columns.setdefault(name, Growing(self._n_rows)).add(chunk)

    def column(self, name: str, order: Array | None, dtype: np.dtype[Any]) -> Column:
        array = self._columns.pop(name).array()
        return Held(array if order is None else recode(array, order, dtype))


class Growing:
    """An array that grows by chunks, into memory taken at once where the number of rows is known.

    >>> growing = Growing(None)
    >>> growing.add(np.array([1, 255], np.uint8)); growing.add(np.array([300], np.uint16)); growing.array()
    array([    1, 65535,   300], dtype=uint16)
    """

    def __init__(self, n_rows: int | None) -> None:
        self._n_rows = n_rows
        self._array: Array | None = None
        self._used = 0

    def add(self, chunk: Array) -> None:
        """Append a chunk. A chunk that is the whole column is taken as it is, without a copy."""
        if self._array is None and len(chunk) == self._n_rows:
            self._array, self._used = chunk, len(chunk)
            return
        room = self._room(self._used + len(chunk), chunk.dtype)
        room[self._used : self._used + len(chunk)] = chunk
        self._used += len(chunk)

    def array(self) -> Array:
        """The whole column."""
        if self._array is None:
            raise ValueError("nothing was added")
        return self._array[: self._used]

    def _room(self, n: int, dtype: np.dtype[Any]) -> Array:
        """The array, made longer or its type made wider if it must be."""
        old = self._array
        if old is not None and len(old) >= n and old.dtype == dtype:
            return old
        size = max(n, self._n_rows or 2 * n)
        self._array = np.empty(size, dtype)
        if old is not None:
            self._array[: self._used] = old[: self._used]
            if old.dtype != dtype:
                self._array[: self._used][old[: self._used] == missing_code(old.dtype)] = missing_code(dtype)
        return self._array
