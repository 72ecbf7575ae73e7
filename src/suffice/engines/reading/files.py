"""Files as a source. Text of Parquet files is read as dictionaries, as they store it, so that a column of states costs its codes
and not its words. CSV and TSV files are read as text: what a column is, is decided elsewhere.

Arrow parses, and is lenient; so the bytes are watched on their way to it. A quote must open or close a whole cell, text must be
UTF-8, and where Arrow stops, the file is read once more by Python's own reader to name the line.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import compress, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np

from suffice.basis.libraries import pa, pq
from suffice.engines.encoding.encode import number
from suffice.engines.encoding.sources import AS_USUAL, Dialect, Kind, Source, checked_names, kind_of
from suffice.engines.steps.blocks import locate
from suffice.errors import DataError, listing
from suffice.errors.remedies import ENCODING, argument

BLOCK = 2**23
"""Bytes that are parsed at once."""

FEW_BYTES = 2**20
"""Bytes of text that are read sooner than threads are started for them."""

FIRST = 2**16
"""Bytes of the first lines."""

PEEK = 200
"""Rows by which a column is taken for numbers, which are not worth a dictionary."""

NOT_UTF8 = f"the text is not UTF-8; if it is written otherwise, say how: {ENCODING}"

MARKS = {";": "semicolon", "\t": "tab", ",": "comma", "|": "bar"}
"""What may separate columns, where nobody says it, and words for it, as a shell may take it for something else."""

SUFFIXES = {".csv": ",", ".tsv": "\t"}


class Files(Source):
    """Files that have the same columns, one after the other, and as many rows each as `lengths` says of those read so far."""

    lengths: Sequence[int] = ()

    def place(self, row: int) -> str:
        if not self.lengths:
            return super().place(row)
        file, own = locate(self.lengths, row)
        return f"{self.paths[file]}, {self.place_in(self.paths[file], own)}"

    def place_in(self, path: Path, row: int) -> str:
        """Where a row of a file stands in it."""
        return super().place(row)

    def check_columns(self, names: Iterable[Sequence[str]]) -> None:
        """Refuse a file whose columns are not those of the first one; their order does not matter."""
        for path, own in zip(self.paths, names, strict=True):
            lacking, extra = sorted(set(self.names) - set(own)), sorted(set(own) - set(self.names))
            if lacking or extra:
                what = f"lacks {listing(lacking)}" if lacking else f"also has {listing(extra)}"
                raise DataError(f"{path}: the columns differ from those of {self.paths[0]}: this file {what}")


class Text(NamedTuple):
    """A text file, and how it is written."""

    path: Path
    separator: str
    encoding: str


class Delimited(Files):
    """Text files, each with its own separator: the one that is said, or the one that its first lines show."""

    def __init__(self, paths: Sequence[Path], separators: Sequence[str], dialect: Dialect = AS_USUAL) -> None:
        self.paths, self.decimal = tuple(paths), dialect.decimal
        self._texts: dict[Path, Text] = {}
        for path, usual in zip(paths, separators, strict=True):
            mark = dialect.separator
            if mark is None:
                with open_bytes(path, dialect.encoding) as raw:
                    mark = recognise_separator(raw.read(FIRST), usual)
            self._texts[path] = Text(path, mark, dialect.encoding)
        heads = [self._head(self._texts[p]) for p in self.paths]
        self.names, self._wordy = heads[0]
        found = self._texts[self.paths[0]].separator
        if dialect.separator is None and found != separators[0]:
            shown = f"a {MARKS[found]} separates the columns, as the first lines show, not a {MARKS[separators[0]]}"
            otherwise = argument("separator", repr(separators[0]), MARKS[separators[0]])
            self.notes = (f"{self.paths[0]}: {shown}; {otherwise} says otherwise",)
        if len(heads) > 1:
            self.check_columns(names for names, _ in heads)
        self.few_bytes = self.n_bytes(self.names) <= FEW_BYTES

    def dialect_of(self, path: Path) -> Dialect:
        """How a file is written."""
        return Dialect(self._texts[path].separator, self.decimal, self._texts[path].encoding)

    def kind(self, name: str) -> Kind:
        return Kind.CELLS

    def n_bytes(self, names: Sequence[str]) -> int:
        return sum(p.stat().st_size * (8 if p.suffix.lower() == ".gz" else 1) for p in self.paths) * len(names) // len(self.names)

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        from pyarrow import csv as arrow_csv

        text, several = pa.string(), len(self.names) > 1
        types = {n: pa.dictionary(pa.int32(), text) if n in self._wordy else text for n in names}
        # Of the words that mean nothing, true or false, Arrow would make a tree of its own for every column.
        convert = arrow_csv.ConvertOptions(
            column_types=types, include_columns=list(names), check_utf8=False, null_values=[], true_values=[], false_values=[]
        )
        self.lengths = lengths = []
        for path in self.paths:
            lengths.append(0)
            file = self._texts[path]
            # In a file of one column a blank line is an empty cell, but not above the header.
            blank = 0 if several else next(_records(file), (1, []))[0] - 1
            read = arrow_csv.ReadOptions(block_size=BLOCK, skip_rows=blank)
            parse = arrow_csv.ParseOptions(delimiter=file.separator, newlines_in_values=True, ignore_empty_lines=several)
            with open_bytes(file.path, file.encoding) as raw:
                watched = Watched(raw, file)
                try:
                    for batch in arrow_csv.open_csv(watched, read, parse, convert):
                        yield dict(zip(batch.schema.names, batch.columns, strict=True))
                        lengths[-1] += batch.num_rows
                except pa.ArrowInvalid as error:
                    self._diagnose(file)
                    if "Empty CSV file" not in str(error):  # a header without a single row
                        raise DataError(f"{file.path}: cannot be read as CSV ({str(error).splitlines()[0]})") from None

    def place_in(self, path: Path, row: int) -> str:
        lines = (line for i, (line, _) in enumerate(_records(self._texts[path])) if i == row + 1)
        return f"line {next(lines, row + 2)}"

    def _diagnose(self, file: Text) -> None:
        """Name the first line that has not as many fields as the header."""
        expected = 0
        for line, record in _records(file):
            expected = expected or len(record)
            if len(record) != expected:
                found = f"{len(record)} field{'s' if len(record) > 1 else ''}"
                raise DataError(f"{file.path}, line {line}: found {found} where the header has {expected}")

    def _head(self, file: Text) -> tuple[tuple[str, ...], frozenset[str]]:
        """The columns of a file, and those whose first cells are not all numbers."""
        rows = [record for _, record in islice(_records(file), 1 + PEEK)]
        if not rows:
            raise DataError(f"{file.path}: the file is empty")
        names = checked_names(rows[0], f"{file.path}, line 1")
        cells = zip(*(r for r in rows[1:] if len(r) == len(names)), strict=True)
        wordy = [any(c and number(c.replace(self.decimal, ".")) is None for c in column) for column in cells]
        return names, frozenset(compress(names, wordy))


class Watched(io.RawIOBase):
    """The bytes of a file on their way to the parser, checked for stray quotes and for what is not UTF-8."""

    def __init__(self, raw: BinaryIO, file: Text) -> None:
        self._raw, self._file = raw, file
        self._ends = np.zeros(256, bool)
        self._ends[np.frombuffer(f'{file.separator}\r\n"'.encode(), np.uint8)] = True
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
            if data.startswith(b"\xef\xbb\xbf"):  # Arrow would take it for a mark, Python for a part of the first name
                self._refuse("there are two byte-order marks", 0)
        self._first = False
        if self._tail or not data.isascii():
            self._check_unicode(data)
        if (zero := data.find(0)) >= 0:
            self._refuse("there is a byte 0, which no text has", self._offset + zero)
        quoted = b'"' in data
        # Parts that fit in the cache together with what is computed of them.
        size = 2**16 if quoted else max(1, len(data))
        for piece in (data[i : i + size] for i in range(0, max(1, len(data)), size)):
            if quoted or self._closed or self._open is not None:
                self._check_quotes(piece)
            self._before = piece[-1] if piece else self._before
            self._offset += len(piece)
        return data

    def _check_unicode(self, data: bytes) -> None:
        if not data:
            self._refuse(NOT_UTF8, self._offset)
        whole = self._tail + data
        try:
            whole.decode()
            self._tail = b""
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                utf_16 = self._offset == 0 and data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
                what = NOT_UTF8.replace("latin-1", "utf-16") if utf_16 else NOT_UTF8
                self._refuse(what, self._offset - len(self._tail) + error.start)
            self._tail = whole[error.start :]

    def _check_quotes(self, piece: bytes) -> None:
        if self._closed and piece and not self._ends[piece[0]]:
            self._refuse("a quote ends inside a cell", self._offset)
        if not piece and self._open is not None:
            self._refuse("a quote is never closed", self._open)
        self._closed = self._closed and not piece
        if b'"' not in piece:
            return
        data = np.frombuffer(piece, np.uint8)
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
        raise DataError(f"{self._file.path}, line {_line_at(self._file, self._mark + offset)}: {what}")


def recognise_separator(head: bytes, usual: str) -> str:
    """What separates columns in the first lines of a file: the usual mark, unless every line has as many columns by another; if
    none does that, the one by which the header and most of the lines have as many, so that the others are refused by number."""
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    if len(head) >= FIRST:  # the last line is cut off
        text = text[: text.rfind("\n") + 1]
    shares = {}
    for mark in (usual, *MARKS):
        try:
            widths = [len(row) for row in csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True) if row]
        except csv.Error:
            widths = []
        parted = len(widths) > 1 and widths[0] > 1
        shares[mark] = widths[1:].count(widths[0]) / (len(widths) - 1) if parted else 0.0
    best = max(shares, key=lambda mark: shares[mark])
    return best if shares[best] > 0.5 else usual


def _line_at(file: Text, offset: int) -> int:
    """The number of the line in which the byte at `offset` stands."""
    line, before = 1, b""
    with open_bytes(file.path, file.encoding) as raw:
        while offset > 0 and (data := raw.read(min(offset, BLOCK))):
            data = data[:offset]
            joined = before + data
            line += joined.count(b"\n") + data.count(b"\r") - joined.count(b"\r\n") - before.count(b"\n")
            offset, before = offset - len(data), data[-1:]
    return line


@contextmanager
def open_bytes(path: Path, encoding: str = "utf-8") -> Iterator[BinaryIO]:
    """The bytes of a file, also of one that is compressed, as UTF-8 if another encoding is said; else they are refused."""
    is_utf8 = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else open(path, "rb") as raw:
            yield cast(BinaryIO, raw if is_utf8 else Recoded(cast(BinaryIO, raw), encoding, path))
    except (EOFError, zlib.error, OSError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from None


def _records(file: Text) -> Iterator[tuple[int, list[str]]]:
    """The lines where records begin, and their fields, by Python's reader. Blank lines are no records, but in a file of one
    column a blank line is an empty cell."""
    with open_bytes(file.path, file.encoding) as raw:
        text = io.TextIOWrapper(Watched(raw, file), "utf-8", newline="")  # type: ignore[type-var]
        lines = csv.reader(text, delimiter=file.separator)
        line, width = 1, 0
        try:
            for record in lines:
                width = width or len(record)
                if record or width == 1:
                    yield line, record or [""]
                line = lines.line_num + 1
        except csv.Error as error:
            why = "a field is longer than 131,072 characters; is a quote never closed?" if "limit" in str(error) else str(error)
            raise DataError(f"{file.path}, line {line}: {why}") from None


class Recoded(io.RawIOBase):
    """The bytes of a file as UTF-8."""

    def __init__(self, raw: BinaryIO, encoding: str, path: object) -> None:
        self._raw, self._encoding, self._path = raw, encoding, path
        self._decoder = codecs.getincrementaldecoder(encoding)()

    def readable(self) -> bool:
        return True

    def read(self, n: int = -1) -> bytes:
        while True:
            data = self._raw.read(n)
            try:
                text = self._decoder.decode(data, not data)
            except UnicodeError as error:
                raise DataError(f"{self._path}: the text is not {self._encoding} ({error})") from None
            if text or not data:
                return text.encode("utf-8", "replace")


BATCH = 2**17
"""Rows of a file that come at once."""


class Parquet(Files):
    """Parquet files."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        self._schemas, self.lengths = list[Any](), list[int]()
        for path in self.paths:
            with readable_parquet(path), pq.ParquetFile(path) as file:
                self._schemas.append(file.schema_arrow)
                self.lengths.append(file.metadata.num_rows)
        self.names = checked_names(self._schemas[0].names, str(self.paths[0]))
        self.n_rows = sum(self.lengths)
        if len(self.paths) > 1:
            self.check_columns(checked_names(s.names, str(p)) for p, s in zip(self.paths, self._schemas, strict=True))
        self._kinds: dict[str, Kind] | None = None

    def kind(self, name: str) -> Kind:
        """What all files together say a column is. Parquet keeps no unused categories, so a dictionary is but text."""
        if self._kinds is None:
            found: dict[str, Kind] = {}
            for each in self.names:
                kinds = [kind_of(schema.field(each).type) for schema in self._schemas]
                kinds = [Kind.TEXT if k is Kind.CATEGORY else k for k in kinds]
                known = set(kinds) - {Kind.NOTHING}
                if known == {Kind.INTEGER, Kind.NUMBER}:
                    known = {Kind.NUMBER}
                if len(known) > 1:
                    other = next(i for i, k in enumerate(kinds) if k not in (kinds[0], Kind.NOTHING))
                    types = [str(self._schemas[i].field(each).type) for i in (0, other)]
                    raise DataError(
                        f"the column {each!r} has the type {types[0]} in {self.paths[0]} and {types[1]} in {self.paths[other]}; "
                        "the files must agree"
                    )
                found[each] = known.pop() if known else Kind.NOTHING
            self._kinds = found
        return self._kinds[name]

    def type_of(self, name: str) -> Any:
        return self._schemas[0].field(name).type

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        text = [n for n in names if self.kind(n) is Kind.TEXT]
        # Arrow's buffer ahead would keep the bytes of every row group that was read until the file is closed
        for path in self.paths:
            with readable_parquet(path), pq.ParquetFile(path, read_dictionary=text, pre_buffer=False) as file:
                for batch in file.iter_batches(BATCH, columns=list(names)):
                    yield dict(zip(batch.schema.names, batch.columns, strict=True))


@contextmanager
def readable_parquet(path: Path | str) -> Iterator[None]:
    """A file that is no Parquet is refused in our own words."""
    try:
        yield
    except UnicodeError:
        raise DataError(f"{path}: not a Parquet file that can be read (names or texts in it are not UTF-8)") from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: not a Parquet file that can be read ({str(error).splitlines()[0]})") from None
