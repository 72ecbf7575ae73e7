"""Pieces of files that workers read by themselves, row groups of Parquet files and whole text files, and how they are dealt out
to tasks."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from suffice.basis.libraries import pa, pq
from suffice.engines.encoding.sources import Kind, cut, kind_of
from suffice.engines.engine import ROWS
from suffice.engines.partitions.partitions import PARTITION, Raw
from suffice.engines.reading.dialect import Dialect
from suffice.engines.reading.files import Delimited
from suffice.engines.reading.parquet import Parquet, readable_parquet
from suffice.errors import DataError

CELLS = 2**22
"""Cells that a worker reads and encodes at once, unless those of one block are more."""

END = 2**16
"""Bytes at the end of a file by which it is recognised: there Parquet files say what they hold."""


class Stamp(NamedTuple):
    """By what a file is recognised that is read again."""

    size: int
    end: int

    @classmethod
    def of(cls, path: str | Path) -> Stamp:
        with open(path, "rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - END))
            return cls(size, zlib.crc32(file.read()))


@dataclass(frozen=True)
class Piece:
    """Some rows of a file, and the number of their first block."""

    path: str
    whose: str
    """What the file is called in messages."""
    stamp: Stamp
    number: int
    size: int
    """How much it is to read, beside others of its kind."""
    first: int
    """The place of the first row in the file."""

    def read(self, pieces: Sequence[Piece], columns: Sequence[str]) -> Iterator[Raw]:
        """The numbered tables of pieces of this file."""
        raise NotImplementedError

    def place(self, row: int) -> str:
        """Where a row of the file stands, for a person."""
        return f"{self.whose}, row {row + 1}"

    def check(self) -> None:
        """Refuse a file that is not the one that was there at first: its rows would not belong to those that were read."""
        try:
            same = Stamp.of(self.path) == self.stamp
        except OSError as error:
            raise DataError(f"{self.path}: a worker cannot read it ({error.strerror or error})") from None
        if not same:
            raise DataError(f"{self.path}: the file has changed since it was scanned; scan it again")


@dataclass(frozen=True)
class RowGroup(Piece):
    """A row group of a Parquet file."""

    group: int

    def read(self, pieces: Sequence[Piece], columns: Sequence[str]) -> Iterator[Raw]:
        """Text comes as dictionaries."""
        size = max(1, CELLS // (ROWS * max(1, len(columns))))
        with readable_parquet(self.path), pq.ParquetFile(self.path, pre_buffer=False) as head:
            schema = head.schema_arrow
        text = [n for n in columns if kind_of(schema.field(n).type) is Kind.TEXT]
        with readable_parquet(self.path), pq.ParquetFile(self.path, read_dictionary=text, pre_buffer=False) as source:
            for piece in pieces:
                assert isinstance(piece, RowGroup)
                # a task has one processor
                batches = source.iter_batches(size * ROWS, row_groups=[piece.group], columns=list(columns), use_threads=False)
                for i, batch in enumerate(batches):
                    at = i * size
                    yield Raw(piece.number + at, pa.Table.from_batches([batch]), piece, piece.first + at * ROWS)


@dataclass(frozen=True)
class TextFile(Piece):
    """A whole text file."""

    dialect: Dialect

    def read(self, pieces: Sequence[Piece], columns: Sequence[str]) -> Iterator[Raw]:
        batches = self._source.batches(columns)
        for i, block in enumerate(cut((dict(batch), len(batch[columns[0]])) for batch in batches)):
            yield Raw(self.number + i, pa.table(block), self, i * ROWS)

    def place(self, row: int) -> str:
        return f"{self.whose}, {self._source.place_in(Path(self.path), row)}"

    @property
    def _source(self) -> Delimited:
        return Delimited([Path(self.path)], [self.dialect.separator or ","], self.dialect)


def row_groups(source: Parquet, whose: Callable[[int, Path], str]) -> tuple[RowGroup, ...]:
    """The row groups of files, whose blocks are numbered through; `whose` says what a file is called."""
    pieces: list[RowGroup] = []
    number = 0
    for i, path in enumerate(source.paths):
        first, stamp = 0, Stamp.of(path)
        with readable_parquet(path), pq.ParquetFile(path) as file:
            sizes = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
        for group, n_rows in enumerate(sizes):
            pieces.append(RowGroup(str(path.absolute()), whose(i, path), stamp, number, n_rows, first, group))
            first, number = first + n_rows, number + -(-n_rows // ROWS)
    return tuple(pieces)


def text_files(source: Delimited) -> tuple[TextFile, ...]:
    """Text files, each read by one worker, for nobody knows where their rows begin."""
    stamps = [Stamp.of(path) for path in source.paths]
    return tuple(
        TextFile(str(path.absolute()), str(path), stamp, i * PARTITION, max(1, stamp.size), 0, source.dialect_of(path))
        for i, (path, stamp) in enumerate(zip(source.paths, stamps, strict=True))
    )


def deal_out(pieces: Sequence[Piece], n: int) -> list[tuple[Piece, ...]]:
    """The pieces in their order, in n parts of about the same size; files are not cut where there are enough of them.

    >>> parts = deal_out([Piece(f, f, Stamp(0, 0), i, 10, 0) for i, f in enumerate("abc")], 2)
    >>> [[piece.path for piece in part] for part in parts]
    [['a'], ['b', 'c']]
    """
    units = _files(pieces)
    if len(units) < n:
        units = [(piece,) for piece in pieces]
    total = max(1, sum(piece.size for piece in pieces))
    parts: list[list[Piece]] = [[] for _ in range(n)]
    before = 0
    for unit in units:
        size = sum(piece.size for piece in unit)
        parts[min(n - 1, (2 * before + size) * n // (2 * total))] += unit
        before += size
    return [tuple(part) for part in parts]


def _files(pieces: Sequence[Piece]) -> list[tuple[Piece, ...]]:
    files: dict[str, list[Piece]] = {}
    for piece in pieces:
        files.setdefault(piece.path, []).append(piece)
    return [tuple(file) for file in files.values()]


def tables(pieces: Sequence[Piece], columns: Sequence[str]) -> Iterator[Raw]:
    """The blocks of some pieces, as numbered Arrow tables of these columns."""
    for file in _files(pieces):
        file[0].check()
        yield from file[0].read(file, columns)
