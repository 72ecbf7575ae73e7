"""The files engine: what is too large for memory.

Encoded columns go to a spill, a temporary file without a name: the system frees it when it is closed, however the process
ends. It is read by ranges of rows into the caller's arrays and never mapped, so that it does not count as memory of the
process. Relations of DuckDB are streamed as Arrow batches.
"""

from __future__ import annotations

import errno
import os
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from suffice.engines.encode import recode, texts
from suffice.engines.memory import Array, Column
from suffice.engines.sources import Categories, Kind, checked_names, encoded_bytes, kind_of
from suffice.errors import DataError

BATCH = 2**17


class Segment(NamedTuple):
    """Where the rows of a chunk lie in the spill."""

    offset: int
    dtype: np.dtype[Any]


class Unnamed:
    """A temporary file without a name, closed when nobody holds it any more."""

    def __init__(self) -> None:
        file = tempfile.TemporaryFile(prefix="suffice-", buffering=0)  # noqa: SIM115
        self.descriptor = file.fileno()
        self.close = weakref.finalize(self, file.close)


class Spill:
    """The sink of the files engine."""

    def __init__(self) -> None:
        self._file = Unnamed()
        self._end = 0
        self._rows: dict[str, list[int]] = {}
        self._segments: dict[str, list[Segment]] = {}

    def add(self, chunks: dict[str, Array]) -> None:
        for name, chunk in chunks.items():
            if len(chunk):
                rows = self._rows.setdefault(name, [0])
                rows.append(rows[-1] + len(chunk))
                self._segments.setdefault(name, []).append(Segment(self._end, chunk.dtype))
                self._write(np.ascontiguousarray(chunk))

    def column(self, name: str, order: Array | None, dtype: np.dtype[Any]) -> Column:
        return Spilled(self._file, self._rows.pop(name), self._segments.pop(name), order, dtype)

    def _write(self, chunk: Array) -> None:
        view = chunk.data.cast("B")
        try:
            while len(view):
                n = os.write(self._file.descriptor, view)
                self._end += n
                view = view[n:]
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            where = tempfile.gettempdir()
            raise DataError(
                f"{where}: no space left for the encoded columns; set TMPDIR to a larger place, or raise memory_limit"
            ) from None


class Spilled:
    """A column in a spill."""

    def __init__(
        self, file: Unnamed, rows: list[int], segments: list[Segment], order: Array | None, dtype: np.dtype[Any]
    ) -> None:
        self._file, self._rows, self._segments, self._order = file, rows, segments, order
        self.dtype = dtype
        if order is not None and np.array_equal(order, np.arange(len(order))) and all(s.dtype == dtype for s in segments):
            self._order = None

    def read(self, start: int, stop: int, out: Array) -> None:
        """Write the rows from `start` to `stop` into `out`."""
        i = bisect_right(self._rows, start) - 1
        done = start
        while done < stop:
            n = min(stop, self._rows[i + 1]) - done
            self._read(self._segments[i], done - self._rows[i], out[done - start : done - start + n])
            done += n
            i += 1

    def _read(self, segment: Segment, skip: int, out: Array) -> None:
        direct = self._order is None and segment.dtype == out.dtype
        target = out if direct else np.empty(len(out), segment.dtype)
        _read_all(self._file.descriptor, target, segment.offset + skip * segment.dtype.itemsize)
        if not direct:
            out[:] = target if self._order is None else recode(target, self._order, self.dtype)


def _read_all(descriptor: int, target: Array, offset: int) -> None:
    view = target.data.cast("B")
    while len(view):
        n = os.preadv(descriptor, [view], offset)
        if n == 0:
            raise DataError("the spill of encoded columns is shorter than what was written to it")
        view, offset = view[n:], offset + n


@contextmanager
def _running() -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise DataError(f"DuckDB cannot run the relation: {str(error).splitlines()[0]}") from None


class Relation:
    """A relation of DuckDB as a source. Its rows may come in another order each time it runs."""

    stable = False

    def __init__(self, relation: Any) -> None:
        self._relation = relation
        self.names = checked_names(relation.columns, "the relation")
        self.n_rows: int | None = None

    def kind(self, name: str) -> Kind:
        return kind_of(self._types[name].type)

    def described(self, name: str) -> str:
        return str(self._types[name].type)

    def categories(self, name: str) -> Categories | None:
        if self.kind(name) is not Kind.CATEGORY:
            return None
        return Categories(tuple(w for w in texts(self._types[name].dictionary) if w is not None), ordered=True)

    @cached_property
    def _types(self) -> dict[str, Any]:
        """For each column an array of one row, which knows its type and, of an enumeration, its values."""
        with _running():
            table = self._relation.limit(1).to_arrow_table()
        return {n: table.column(n).combine_chunks() for n in self.names}

    @cached_property
    def _length(self) -> int:
        with _running():
            return int(self._relation.aggregate("count(*)").fetchall()[0][0])

    def n_bytes(self, names: Sequence[str]) -> int:
        return encoded_bytes(self, names, self._length)

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        quoted = ['"' + n.replace('"', '""') + '"' for n in names]
        with _running(), self._relation.project(", ".join(quoted)).to_arrow_reader(BATCH) as reader:
            for batch in reader:
                yield dict(zip(names, batch.columns, strict=True))

    def place(self, row: int) -> str:
        return f"row {row + 1}"
