"""Encoded blocks of a task in a file, which a worker writes once and maps into memory from then on.

A worker that does not find the file, as after a crash or on another machine, makes it again; a file that is damaged, too.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from suffice.basis.libraries import pa
from suffice.engines.engine import Block
from suffice.engines.partitions.partitions import PartitionWork, Reader
from suffice.engines.partitions.pieces import Piece, tables
from suffice.errors import DataError

WEIGHT = "\0weight"
"""The column of weights, which no column of a user's is called."""

NUMBER = "number"
"""The name of what is written beside a block."""

CHUNK = 2**22
"""Bytes of a file that are summed at once."""

NOT_THERE = (-1, -1)

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
        if _stamp(path) != _sound.get(path, NOT_THERE):
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
            _keep_sum(path.with_suffix(".sum"), str(_checksum(beside)), pieces)
            beside.replace(path)
        finally:
            with suppress(OSError):
                beside.unlink()


def _keep_sum(path: Path, checksum: str, pieces: Sequence[Piece]) -> None:
    """Write a checksum down; one that is there already, of blocks that were lost, must be the same."""
    try:
        known = path.read_text() if path.exists() else checksum
    except OSError:
        known = checksum
    if known != checksum:
        raise DataError(f"{pieces[0].whose}: its rows have changed since they were first read; scan them again")
    path.write_text(checksum)


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
    try:
        return path.with_suffix(".sum").read_text() == str(_checksum(path))
    except OSError:
        return False


def _checksum(path: Path) -> int:
    total = 0
    with path.open("rb") as file:
        while part := file.read(CHUNK):
            total = zlib.crc32(part, total)
    return total
