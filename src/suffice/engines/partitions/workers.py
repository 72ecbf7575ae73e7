"""What workers need: pieces of files that they read by themselves, row groups of Parquet files and whole text files, dealt out to
tasks; jobs, what they answer, and what went wrong, in one sentence of ours; and encoded blocks of a task in a file, which a
worker writes once and maps into memory from then on.

A worker that does not find the file, as after a crash or on another machine, makes it again; a file that is damaged, too.
"""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import sys
import tempfile
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.libraries import pa, pq
from suffice.engines.encoding.sources import Dialect, Kind, cut, kind_of
from suffice.engines.engine import ROWS, Block
from suffice.engines.partitions.partitions import PARTITION, PartitionWork, Raw, Reader
from suffice.engines.reading.files import Delimited, Parquet, readable_parquet
from suffice.errors import DataError, SufficeError, printable


@dataclass(frozen=True)
class Job:
    """Some work on its way to a worker, which has the same version of the package. What it refuses comes back as an answer, for
    it would be no use to try again; all other errors are raised, and Spark tries again."""

    work: bytes
    version: str

    def __call__(self, task: Any) -> bytes:
        try:
            if (own := package_version()) != self.version:
                raise DataError(f"a worker has version {own} of suffice, and the driver {self.version}: install the same")
            return pickle.dumps(pickle.loads(self.work)(task))
        except SufficeError as refusal:
            return pickle.dumps(refusal)
        finally:
            spare_modules(len(sys.modules))


@cache
def package_version() -> str:
    """The version of this package."""
    return version("suffice")


@cache
def spare_modules(n_modules: int) -> None:
    """Have the garbage collector pass over what is loaded, whenever there is more of it: Spark calls it after each task, and to
    look at all modules would be most of what a task costs."""
    gc.freeze()


def unwrap(answer: bytes) -> Any:
    """What a worker gave; what it refused is raised."""
    result = pickle.loads(answer)
    if isinstance(result, SufficeError):
        raise result
    return result


def add_answers(a: bytes, b: bytes) -> bytes:
    """The sum of two answers, on a worker."""
    parts = [pickle.loads(answer) for answer in (a, b)]
    if refusals := [part for part in parts if isinstance(part, SufficeError)]:
        return pickle.dumps(refusals[0])
    parts[0] += parts[1]
    return pickle.dumps(parts[0])


@contextmanager
def plain_errors(what: str) -> Iterator[None]:
    """Errors of Spark in one sentence of ours, without the trace of Java."""
    try:
        yield
    except SufficeError:
        raise
    except Exception as error:
        raise DataError(f"{what}: {_cause(str(error))}") from None


def _cause(text: str) -> str:
    """The first error that a trace names in Python's words, or else its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any("No module named 'suffice'" in line for line in lines):
        return "the Python of the workers has no suffice: install it there, or set PYSPARK_PYTHON before the session starts"
    if any("Python worker exited unexpectedly" in line for line in lines):
        return "a Python worker ended again and again, as one does that is killed, or has no memory left"
    if any("maxResultSize" in line for line in lines):
        return (
            "the sums of the partitions are more than Spark lets its driver take: ask for fewer or smaller tables, or start the "
            "session with a larger spark.driver.maxResultSize"
        )
    named = [line for line in lines if line.split(":")[0].endswith(("Error", "Exception")) and not line.startswith("org.")]
    return printable(named[0] if named else lines[0] if lines else "Spark gave no reason", 300)


WEIGHT = "\0weight"
"""The column of weights, which no column of a user's is called."""

NUMBER = "number"
"""The name of what is written beside a block."""

_sound: dict[Path, tuple[int, int]] = {}
"""Files whose checksums this process has compared, as they were then: their times and sizes."""


def on_own_disk(folder: Path) -> Path:
    """Where a directory is on this machine: a relative one is among the files of Spark, which removes them at its end."""
    return Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).partition(",")[0]) / folder


def remove_here(folder: Path) -> None:
    """Remove a directory from this machine, if it is there."""
    shutil.rmtree(on_own_disk(folder), ignore_errors=True)


@dataclass(frozen=True)
class HeldBlocks:
    """The directory of the files, on the own disk of each worker if it is relative, and from tables of pieces to what is kept."""

    folder: Path
    reader: Reader

    def of(self, task: int, pieces: Sequence[Piece], names: Sequence[str]) -> Iterator[Block]:
        """The blocks of a task, with these columns."""
        path = on_own_disk(self.folder) / f"{task}.blocks"
        if _stamp(path) != _sound.get(path):
            if not _is_sound(path):
                self._write(path, pieces)
            _sound[path] = _stamp(path)
        with pa.memory_map(str(path)) as mapped, pa.ipc.open_file(mapped) as file:
            for i in range(file.num_record_batches):
                batch, about = file.get_batch_with_custom_metadata(i)
                columns = {name: batch.column(name).to_numpy() for name in names}
                weight = batch.column(WEIGHT).to_numpy() if WEIGHT in batch.schema.names else None
                yield Block(columns, weight, int(about[NUMBER]))

    def _write(self, path: Path, pieces: Sequence[Piece]) -> None:
        """Write the blocks beside their place, then move them there: two workers may do so at once, with the same bytes."""
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{uuid.uuid4().hex}.part")
        try:
            PartitionWork(self.reader, partial(_write_blocks, beside))(tables(pieces, self.reader.columns))
            checksum, beside_it = str(_checksum(beside)), path.with_suffix(".sum")
            with suppress(OSError):  # of blocks that were lost it is there already
                if beside_it.exists() and beside_it.read_text() != checksum:
                    raise DataError(f"{pieces[0].whose}: its rows have changed since they were first read; scan them again")
            beside_it.write_text(checksum)
            beside.replace(path)
        finally:
            with suppress(OSError):
                beside.unlink()


def _write_blocks(path: Path, blocks: Iterable[Block]) -> None:
    writer = None
    with pa.OSFile(str(path), "wb") as file:
        for block in blocks:
            weight = {} if block.weight is None else {WEIGHT: block.weight}
            columns = {n: pa.array(np.ascontiguousarray(c)) for n, c in {**block.columns, **weight}.items()}
            batch = pa.record_batch(columns)
            if writer is None:
                writer = pa.ipc.new_file(file, batch.schema)
            writer.write_batch(batch, {NUMBER: str(block.number)})
        (writer or pa.ipc.new_file(file, pa.schema([]))).close()


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, -1
    return found.st_mtime_ns, found.st_size


def _is_sound(path: Path) -> bool:
    with suppress(OSError):
        return path.with_suffix(".sum").read_text() == str(_checksum(path))
    return False


def _checksum(path: Path) -> int:
    with pa.memory_map(str(path)) as file:
        return zlib.crc32(file.read_buffer())


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
                    yield Raw(piece.number + at, pa.Table.from_batches([batch]), piece.place, piece.first + at * ROWS)


@dataclass(frozen=True)
class TextFile(Piece):
    """A whole text file."""

    dialect: Dialect

    def read(self, pieces: Sequence[Piece], columns: Sequence[str]) -> Iterator[Raw]:
        batches = self._source.batches(columns)
        for i, block in enumerate(cut((dict(batch), len(batch[columns[0]])) for batch in batches)):
            yield Raw(self.number + i, pa.table(block), self.place, i * ROWS)

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
    """The pieces in their order, in n parts of about the same size; files are not cut where there are enough of them."""
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
