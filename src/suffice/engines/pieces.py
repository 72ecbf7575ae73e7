"""Pieces of Parquet files: row groups, which workers read by themselves, and how they are dealt out to tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from suffice.engines.engine import ROWS
from suffice.engines.files import Parquet, readable_parquet
from suffice.engines.partitions import Raw
from suffice.engines.sources import Kind, kind_of
from suffice.libraries import pa, pq

CELLS = 2**22
"""Cells that a worker reads and encodes at once, unless those of one block are more."""


@dataclass(frozen=True)
class Piece:
    """A row group of a file: its rows, the place of the first one in the file, and the number of its first block."""

    path: str
    group: int
    n_rows: int
    first: int
    number: int
    whose: str
    """What the file is called in messages."""

    @property
    def n_blocks(self) -> int:
        return -(-self.n_rows // ROWS)


def pieces_of(source: Parquet, whose: Callable[[int, Path], str]) -> tuple[Piece, ...]:
    """The row groups of files, whose blocks are numbered through; `whose` says what a file is called."""
    pieces: list[Piece] = []
    number = 0
    for i, path in enumerate(source.paths):
        first = 0
        with readable_parquet(path), pq.ParquetFile(path) as file:
            sizes = [file.metadata.row_group(k).num_rows for k in range(file.metadata.num_row_groups)]
        for group, n_rows in enumerate(sizes):
            pieces.append(Piece(str(path), group, n_rows, first, number, whose(i, path)))
            first, number = first + n_rows, number + pieces[-1].n_blocks
    return tuple(pieces)


def dealt(pieces: Sequence[Piece], n: int) -> list[tuple[Piece, ...]]:
    """The pieces in their order, in n parts of about as many rows; files are not cut where there are enough of them.

    >>> parts = dealt([Piece(f, 0, 10, 0, i, f) for i, f in enumerate("abc")], 2)
    >>> [[piece.path for piece in part] for part in parts]
    [['a'], ['b', 'c']]
    """
    units = _files(pieces)
    if len(units) < n:
        units = [(piece,) for piece in pieces]
    total = max(1, sum(piece.n_rows for piece in pieces))
    parts: list[list[Piece]] = [[] for _ in range(n)]
    before = 0
    for unit in units:
        size = sum(piece.n_rows for piece in unit)
        parts[min(n - 1, (2 * before + size) * n // (2 * total))] += unit
        before += size
    return [tuple(part) for part in parts]


def _files(pieces: Sequence[Piece]) -> list[tuple[Piece, ...]]:
    files: dict[str, list[Piece]] = {}
    for piece in pieces:
        files.setdefault(piece.path, []).append(piece)
    return [tuple(file) for file in files.values()]


def tables(pieces: Sequence[Piece], columns: Sequence[str]) -> Iterator[Raw]:
    """The blocks of some pieces, as numbered Arrow tables of these columns; text comes as dictionaries."""
    size = max(1, CELLS // (ROWS * max(1, len(columns))))
    for file in _files(pieces):
        path = file[0].path
        with readable_parquet(path), pq.ParquetFile(path, pre_buffer=False) as head:
            text = [n for n in columns if kind_of(head.schema_arrow.field(n).type) is Kind.TEXT]
        with readable_parquet(path), pq.ParquetFile(path, read_dictionary=text, pre_buffer=False) as source:
            for piece in file:
                # a task has one processor
                batches = source.iter_batches(size * ROWS, row_groups=[piece.group], columns=list(columns), use_threads=False)
                for i, batch in enumerate(batches):
                    at = i * size
                    yield Raw(piece.number + at, pa.Table.from_batches([batch]), piece.whose, piece.first + at * ROWS)
