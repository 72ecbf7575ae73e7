"""Rows to files: CSV or Parquet by suffix, or CSV on standard output."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from suffice.errors import FormatError
from suffice.output import replacing

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".csv", ".csv.gz", ".parquet")


def checked_rows_path(path: str) -> str:
    """The suffix of a file of rows, before any work is done for it."""
    suffix = next((s for s in SUFFIXES if path.lower().endswith(s)), None)
    if suffix is None:
        raise FormatError(f"rows are written to {', '.join(SUFFIXES)}, not to {Path(path).suffix!r}", path=path)
    return suffix


def write_rows(table: pa.Table, path: str | None) -> None:
    """Write an Arrow table; None is standard output."""
    if path is None:
        _csv(table, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    suffix = checked_rows_path(path)
    with replacing(path) as place:
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, place)
        elif suffix == ".csv":
            with place.open("wb") as stream:
                _csv(table, stream)
        else:
            with place.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, compresslevel=6) as stream:
                _csv(table, stream)


def _csv(table: pa.Table, stream: Any) -> None:
    import pyarrow.csv as csv

    bare = not any(_special(c) for c in table.column_names) and not any(_quotable(table[c]) for c in table.column_names)
    style = "none" if bare else "needed"
    csv.write_csv(table, stream, csv.WriteOptions(quoting_style=style, quoting_header=style))


def _quotable(column: pa.ChunkedArray) -> bool:
    """Whether a state holds what would break a bare cell. Arrow quotes all text or none."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return False
    states = {s for chunk in column.chunks for s in chunk.dictionary.to_pylist()}
    return any(_special(s) for s in states)


def _special(text: str) -> bool:
    return any(c in text for c in ',"\r\n')
