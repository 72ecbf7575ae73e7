"""CSV and TSV files as a source, read as text: what a column is, is decided elsewhere.

Arrow parses, and is lenient; so the bytes are watched on their way to it. A quote must open or close a whole cell, text must be
UTF-8, and where Arrow stops, the file is read once more by Python's own reader to name the line.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from suffice.engines.encode import number
from suffice.engines.sources import Files, Kind, checked_names
from suffice.errors import DataError

BLOCK = 2**23
"""Bytes that are parsed at once."""

PEEK = 200
"""Rows by which a column is taken for numbers, which are not worth a dictionary."""

SUFFIXES = {".csv": ",", ".tsv": "\t"}


class Delimited(Files):
    """Text files, each with its own separator."""

    def __init__(self, paths: Sequence[Path], separators: Sequence[str]) -> None:
        self.paths = tuple(paths)
        self._separators = dict(zip(self.paths, separators, strict=True))
        heads = [self._head(p, self._separators[p]) for p in self.paths]
        self.names, self._wordy, mark = heads[0]
        self.notes = () if mark is None else (_about_separator(self.paths[0], separators[0], mark),)
        self.check_columns(names for names, *_ in heads)

    def kind(self, name: str) -> Kind:
        return Kind.CELLS

    def n_bytes(self, names: Sequence[str]) -> int:
        return sum(p.stat().st_size * (8 if p.suffix.lower() == ".gz" else 1) for p in self.paths) * len(names) // len(self.names)

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        self.lengths = lengths = []
        for path in self.paths:
            lengths.append(0)
            for batch in self._file(path, self._separators[path], names):
                yield dict(zip(batch.schema.names, batch.columns, strict=True))
                lengths[-1] += batch.num_rows

    def _file(self, path: Path, separator: str, names: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        text = pa.string()
        types = {n: pa.dictionary(pa.int32(), text) if n in self._wordy else text for n in names}
        # In a file of one column a blank line is an empty cell, but not above the header.
        blank = next(_records(path, separator), (1, []))[0] - 1 if len(self.names) == 1 else 0
        with _opened(path) as raw:
            watched = Watched(raw, path, separator)
            try:
                yield from arrow_csv.open_csv(
                    watched,
                    read_options=arrow_csv.ReadOptions(block_size=BLOCK, skip_rows=blank),
                    parse_options=arrow_csv.ParseOptions(
                        delimiter=separator, newlines_in_values=True, ignore_empty_lines=len(self.names) > 1
                    ),
                    convert_options=arrow_csv.ConvertOptions(column_types=types, include_columns=list(names), check_utf8=False),
                )
            except pa.ArrowInvalid as error:
                self._diagnose(path, separator)
                if "Empty CSV file" not in str(error):  # a header without a single row
                    raise DataError(f"{path}: cannot be read as CSV ({str(error).splitlines()[0]})") from None

    def place_in(self, path: Path, row: int) -> str:
        lines = (line for i, (line, _) in enumerate(_records(path, self._separators[path])) if i == row + 1)
        return f"line {next(lines, row + 2)}"

    def _diagnose(self, path: Path, separator: str) -> None:
        """Name the first line that has not as many fields as the header."""
        expected = 0
        for line, record in _records(path, separator):
            expected = expected or len(record)
            if len(record) != expected:
                found = f"{len(record)} field{'s' if len(record) > 1 else ''}"
                raise DataError(f"{path}, line {line}: found {found} where the header has {expected}")

    @staticmethod
    def _head(path: Path, separator: str) -> tuple[tuple[str, ...], frozenset[str], str | None]:
        """The columns of a file, those whose first cells are not all numbers, and what seems to be the separator, if another."""
        rows = []
        for _, record in _records(path, separator):
            rows.append(record)
            if len(rows) > PEEK:
                break
        if not rows:
            raise DataError(f"{path}: the file is empty")
        names = checked_names(rows[0], f"{path}, line 1")
        cells = zip(*(r for r in rows[1:] if len(r) == len(names)), strict=True)
        wordy = (n for n, column in zip(names, cells, strict=False) if any(c and number(c) is None for c in column))
        return names, frozenset(wordy), _other_separator([separator.join(r) for r in rows]) if len(names) == 1 else None


class Watched(io.RawIOBase):
    """The bytes of a file on their way to the parser, checked for stray quotes and for what is not UTF-8."""

    def __init__(self, raw: BinaryIO, path: Path, separator: str) -> None:
        self._raw, self._path = raw, path
        self._ends = np.zeros(256, bool)
        self._ends[np.frombuffer(f'{separator}\r\n"'.encode(), np.uint8)] = True
        self._first, self._mark, self._offset = True, 0, 0
        self._open: int | None = None
        self._before = ord("\n")
        self._closed = False
        self._tail = b""

    def readable(self) -> bool:
        return True

    def read(self, n: int = -1) -> bytes:
        data = self._raw.read(n)
        if self._first and data.startswith(b"\xef\xbb\xbf"):
            self._mark, data = 3, data[3:] or self._raw.read(n)
        self._first = False
        self._check_text(data)
        # Parts that fit in the cache together with what is computed of them.
        size = 2**16 if b'"' in data else max(1, len(data))
        for piece in (data[i : i + size] for i in range(0, max(1, len(data)), size)):
            self._check_quotes(piece)
            self._offset += len(piece)
        return data

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _check_text(self, data: bytes) -> None:
        if data.isascii() and not (self._tail and data):
            if not data and self._tail:
                self._refuse("the text is not UTF-8", self._offset)
            return
        whole = self._tail + data
        try:
            whole.decode()
            self._tail = b""
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data" or not data:
                self._refuse("the text is not UTF-8", self._offset - len(self._tail) + error.start)
            self._tail = whole[error.start :]

    def _check_quotes(self, data: bytes) -> None:
        if self._closed and data and not self._ends[data[0]]:
            self._refuse("a quote ends inside a cell", self._offset)
        if not data and self._open is not None:
            self._refuse("a quote is never closed", self._open)
        if data:
            self._closed = False
        if b'"' in data:
            self._check_pairs(np.frombuffer(data, np.uint8))
        if data:
            self._before = data[-1]

    def _check_pairs(self, data: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        places = np.flatnonzero(data == ord('"'))
        skip = 0 if self._open is None else 1
        opening, closing = places[skip::2], places[1 - skip :: 2]
        before = np.where(opening > 0, data[np.maximum(opening - 1, 0)], self._before)
        inner = closing[closing + 1 < len(data)]
        begins = opening[~self._ends[before]]
        ends = inner[~self._ends[data[inner + 1]]]
        if len(begins) or len(ends):
            first = min([*begins[:1], *ends[:1]])
            how = "begins" if first in begins[:1] else "ends"
            self._refuse(f"a quote {how} inside a cell", self._offset + int(first))
        self._closed = len(closing) > 0 and int(closing[-1]) == len(data) - 1
        self._open = self._offset + int(places[-1]) if (len(places) + skip) % 2 else None

    def _refuse(self, what: str, offset: int) -> None:
        raise DataError(f"{self._path}, line {_line_at(self._path, self._mark + offset)}: {what}")


def _other_separator(lines: Sequence[str]) -> str | None:
    """What seems to separate fields in lines that were read as one: it is in the header, and in every line as often.

    >>> _other_separator(["age;smoke", "17;no"]), _other_separator(["age", "17"])
    (';', None)
    """
    header, *rows = lines
    marks = (m for m in ";\t,|" if m in header and rows and all(r.count(m) >= header.count(m) for r in rows if r))
    return next(marks, None)


def _about_separator(path: Path, separator: str, mark: str) -> str:
    shown = {"\t": "a tab", ",": "a comma"}
    remedy = {"\t": "name it .tsv", ",": "name it .csv"}.get(
        mark, f"write it with commas, or give the frame that pandas.read_csv(path, sep={mark!r}) reads"
    )
    seems, taken = shown.get(mark, repr(mark)), shown.get(separator, repr(separator))
    return f"{path}: read as one column, as {taken} separates columns; here {seems} seems to separate them: {remedy}"


def _line_at(path: Path, offset: int) -> int:
    """The number of the line in which the byte at `offset` stands."""
    line, before = 1, b""
    with _opened(path) as raw:
        while offset > 0 and (data := raw.read(min(offset, BLOCK))):
            joined = before + data
            line += joined.count(b"\n") + data.count(b"\r") - joined.count(b"\r\n") - before.count(b"\n")
            offset, before = offset - len(data), data[-1:]
    return line


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else open(path, "rb") as raw:
            yield cast(BinaryIO, raw)
    except (EOFError, zlib.error, OSError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None


def _records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The lines where records begin, and their fields, by Python's reader.

    Blank lines are no records, but in a file of one column a blank line is an empty cell.
    """
    with _opened(path) as raw:
        lines = csv.reader(
            io.TextIOWrapper(io.BufferedReader(Watched(raw, path, separator)), "utf-8", newline=""), delimiter=separator
        )
        line, width = 1, 0
        try:
            for record in lines:
                width = width or len(record)
                if record or width == 1:
                    yield line, record or [""]
                line = lines.line_num + 1
        except csv.Error as error:
            why = "a field is longer than 131,072 characters; is a quote never closed?" if "limit" in str(error) else str(error)
            raise DataError(f"{path}, line {line}: {why}") from None
