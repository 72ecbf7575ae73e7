"""Rows to files: CSV or Parquet by suffix, or to standard output: CSV, in a terminal a table; all at once, or as they come."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from suffice.basis.libraries import pa, pc, pq
from suffice.basis.output.display import text_table
from suffice.basis.output.files import replacing
from suffice.errors import FormatError, quantity

SUFFIXES = (".csv", ".csv.gz", ".parquet")

GROUP = 2**17
"""Rows that are written together to a Parquet file."""

SHOWN = 50
"""Rows that a terminal shows."""


def checked_rows_path(path: str) -> str:
    """The suffix of a file of rows, before any work is done for it."""
    suffix = next((s for s in SUFFIXES if path.lower().endswith(s)), None)
    if suffix is None:
        raise FormatError(f"rows are written to {', '.join(SUFFIXES)}, not to {Path(path).suffix!r}", path=path)
    return suffix


def write_stream(tables: Iterable[pa.Table], path: str | None) -> int:
    """Write tables one after the other, with the columns of the first, as one file, None for standard output; give the number of
    rows.

    No more than one table, or one group of a Parquet file, is held at a time. If the tables break off, so does the file: under
    its own name there is all of it or nothing."""
    n_rows = 0
    with _open_writer(path) as write:
        for table in tables:
            write(table)
            n_rows += table.num_rows
    return n_rows


@contextmanager
def _open_writer(path: str | None) -> Iterator[Callable[[pa.Table], None]]:
    """What writes one table after another to a file, or to standard output."""
    if path is None and sys.stdout.isatty():
        with _on_terminal() as write:
            yield write
        return
    if path is None:
        yield _csv_writer(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    suffix = checked_rows_path(path)
    with replacing(path) as place:
        if suffix == ".parquet":
            with _parquet_writer(place) as write:
                yield write
        elif suffix == ".csv":
            with place.open("wb") as stream:
                yield _csv_writer(stream)
        else:
            with place.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, compresslevel=6) as packed:
                yield _csv_writer(packed)


@contextmanager
def _parquet_writer(place: Path) -> Iterator[Callable[[pa.Table], None]]:
    waiting: list[pa.Table] = []
    with ExitStack() as stack:
        files: list[pq.ParquetWriter] = []

        def flush() -> None:
            if not files:
                files.append(stack.enter_context(pq.ParquetWriter(place, waiting[0].schema)))
            files[0].write_table(pa.concat_tables([t.cast(files[0].schema) for t in waiting]).unify_dictionaries())
            waiting.clear()

        def write(table: pa.Table) -> None:
            waiting.append(table)
            if sum(t.num_rows for t in waiting) >= GROUP:
                flush()

        yield write
        if waiting:
            flush()


@contextmanager
def _on_terminal() -> Iterator[Callable[[pa.Table], None]]:
    """The first rows as columns that stand under their names, and how many more there are."""
    first: list[pa.Table] = []
    n_rows = 0

    def write(table: pa.Table) -> None:
        nonlocal n_rows
        first.append(table.slice(0, max(SHOWN - n_rows, 0)))
        n_rows += table.num_rows

    yield write
    if first:
        shown = pa.concat_tables(first)
        print(text_table(shown.column_names, [["" if c is None else c for c in row.values()] for row in shown.to_pylist()]))
    if n_rows > SHOWN:
        print(f"… and {quantity(n_rows - SHOWN, 'row')} more: -o FILE writes all, | cat prints them as CSV")


def _csv_writer(stream: Any) -> Callable[[pa.Table], None]:
    """Text is quoted in those tables, and in the header, where some of it must be."""
    import pyarrow.csv as csv

    styles = {True: "needed", False: "none"}
    is_first = True

    def write(table: pa.Table) -> None:
        nonlocal is_first
        options = csv.WriteOptions(
            include_header=is_first,
            quoting_header=styles[any(map(_special, table.column_names))],
            quoting_style=styles[any(map(_quotable, table.columns))],
        )
        csv.write_csv(table, stream, options)
        is_first = False

    return write


def _quotable(column: pa.ChunkedArray) -> bool:
    """Whether a cell holds what would break a bare one. Arrow quotes all text or none."""
    if pa.types.is_dictionary(column.type):
        states = {s for chunk in column.chunks for s in chunk.dictionary.to_pylist()}
        return any(_special(str(s)) for s in states)
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return is_text and bool(pc.any(pc.match_substring_regex(column, '[,"\r\n]')).as_py())


def _special(text: str) -> bool:
    return any(c in text for c in ',"\r\n')
