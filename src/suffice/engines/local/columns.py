"""Columns: encoded once, and read by row ranges from then on, wherever they lie: in memory, or in a spill.

A spill is for what is too large for memory: a temporary file without a name, which the system frees when it is closed, however
the process ends. It is read into the caller's arrays and never mapped, so that it does not count as memory of the process.
"""

from __future__ import annotations

import errno
import os
import tempfile
import weakref
from bisect import bisect_right
from collections import defaultdict
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from suffice.engines.encoding.encode import recode
from suffice.engines.engine import Array
from suffice.errors import DataError


class Column(Protocol):
    """An encoded column: codes of states, or numbers. One in memory is an array."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its cells."""

    def __getitem__(self, rows: slice, /) -> Array:
        """The rows from a start to a stop, not to be written to; of a column in memory without a copy."""


def sum_of(weights: Array) -> float:
    """The sum of weights, infinite if it is beyond the largest double.

    >>> sum_of(np.array([1e308, 1e308]))
    inf
    """
    with np.errstate(over="ignore"):
        return float(weights.sum())


class Nothing:
    """A column in which every cell is missing."""

    dtype = np.dtype(np.float64)

    def __getitem__(self, rows: slice) -> Array:
        return np.full(rows.stop - rows.start, np.nan)


class Growing:
    """An array that grows by chunks, into memory taken at once where the number of rows is known.

    >>> growing = Growing(None)
    >>> growing.add(np.array([1, 255], np.uint8)); growing.add(np.array([300], np.uint16))
    >>> growing.column(None, np.dtype(np.uint16))
    array([    1, 65535,   300], dtype=uint16)
    """

    def __init__(self, n_rows: int | None) -> None:
        self._n_rows = n_rows
        self._array: Array | None = None
        self._used = 0

    def add(self, chunk: Array) -> None:
        """Append a chunk: the whole column as it is, without a copy; others to the array, made longer or wider if it must be."""
        old, n, dtype = self._array, self._used + len(chunk), chunk.dtype
        if old is None and len(chunk) == self._n_rows:
            self._array, self._used = chunk, n
            return
        if old is None or len(old) < n or old.dtype != dtype:
            self._array = np.empty(max(n, self._n_rows or 2 * n), dtype)
            if old is not None:
                self._array[: self._used] = old[: self._used]
                if old.dtype != dtype:
                    self._array[: self._used][old[: self._used] == np.iinfo(old.dtype).max] = np.iinfo(dtype).max
            old = self._array
        old[self._used : n] = chunk
        self._used = n

    def column(self, order: Array | None, dtype: np.dtype[Any]) -> Array:
        """The whole column: codes put in order, in the type they need in the end."""
        if self._array is None:
            raise ValueError("nothing was added")
        array = self._array[: self._used]
        array = array if order is None else recode(array, order, dtype)
        array.setflags(write=False)
        return array


class Segment(NamedTuple):
    """Where the rows of a chunk lie in the spill."""

    offset: int
    dtype: np.dtype[Any]


class Unnamed:
    """A temporary file without a name, closed when nobody holds it any more."""

    def __init__(self) -> None:
        file = tempfile.TemporaryFile(prefix="suffice-", buffering=0)  # noqa: SIM115
        self.descriptor, self.end = file.fileno(), 0
        self.close = weakref.finalize(self, file.close)

    def append(self, chunk: Array) -> int:
        """Write an array; give the place where it begins."""
        start, view = self.end, np.ascontiguousarray(chunk).data.cast("B")
        try:
            while len(view):
                n = os.write(self.descriptor, view)
                self.end += n
                view = view[n:]
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            where = tempfile.gettempdir()
            raise DataError(
                f"{where}: no space left for the encoded columns; set TMPDIR to a larger place, or raise memory_limit"
            ) from None
        return start

    def read(self, target: Array, offset: int) -> None:
        """Fill an array from a place on."""
        view = target.data.cast("B")
        while len(view):
            n = os.preadv(self.descriptor, [view], offset)
            if n == 0:
                raise DataError("the spill of encoded columns is shorter than what was written to it")
            view, offset = view[n:], offset + n


class Spilled:
    """A column in a spill."""

    dtype: np.dtype[Any]

    def __init__(self, file: Unnamed) -> None:
        self._file, self._rows = file, [0]
        self._segments: list[Segment] = []
        self._order: Array | None = None

    def add(self, chunk: Array) -> None:
        """Append a chunk."""
        self._rows.append(self._rows[-1] + len(chunk))
        self._segments.append(Segment(self._file.append(chunk), chunk.dtype))

    def column(self, order: Array | None, dtype: np.dtype[Any]) -> Spilled:
        """The whole column."""
        there = order is not None and np.array_equal(order, np.arange(len(order)))
        as_written = there and all(s.dtype == dtype for s in self._segments)
        self._order, self.dtype = None if as_written else order, dtype
        return self

    def __getitem__(self, rows: slice) -> Array:
        start, stop = rows.start, rows.stop
        out = np.empty(stop - start, self.dtype)
        i = bisect_right(self._rows, start) - 1
        done = start
        while done < stop:
            n = min(stop, self._rows[i + 1]) - done
            self._read(self._segments[i], done - self._rows[i], out[done - start : done - start + n])
            done += n
            i += 1
        out.flags.writeable = False
        return out

    def _read(self, segment: Segment, skip: int, out: Array) -> None:
        direct = self._order is None and segment.dtype == out.dtype
        target = out if direct else np.empty(len(out), segment.dtype)
        self._file.read(target, segment.offset + skip * segment.dtype.itemsize)
        if not direct:
            out[:] = target if self._order is None else recode(target, self._order, self.dtype)


Sink = defaultdict[Any, Growing | Spilled]
"""Where the encoded chunks of columns go, by their names."""


def spill() -> Sink:
    """The sink of columns that are too large for memory: all of them in one file."""
    return defaultdict(partial(Spilled, Unnamed()))
