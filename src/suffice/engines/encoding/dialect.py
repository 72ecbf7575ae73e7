"""How text files are written: what separates columns, what the decimal mark is, and how characters are encoded.

The separator is recognised from the first lines where nobody says it; the decimal mark is a point unless another is said.
Thousands marks are refused: 1,234 may be a thousand or a little more than one.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

import numpy as np

from suffice.basis.libraries import pa, pc, pt
from suffice.engines.encoding.encode import Encoder, StateEncoder, Wrong
from suffice.engines.encoding.infer import Guess
from suffice.errors import DataError
from suffice.errors.remedies import DECIMAL_COMMA

MARKS = (";", "\t", ",", "|")
"""What may separate columns, where nobody says it."""

WORDS = {"\t": "a tab", ",": "a comma", ";": "a semicolon", "|": "a bar"}

FIRST = 2**16
"""Bytes of the first lines."""

PEEK = 1000
"""Cells by which a column is taken for numbers."""

NUMBER = {
    ".": r"^[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*$",
    ",": r"^[ \t]*[+-]?([0-9]+,?[0-9]*|,[0-9]+)([eE][+-]?[0-9]+)?[ \t]*$",
}
"""A number, by the decimal mark."""

MARKED = {
    ".": r"^[ \t]*[+-]?[0-9]{1,3}([,' \x{00a0}\x{202f}][0-9]{3})+(\.[0-9]*)?[ \t]*$",
    ",": r"^[ \t]*[+-]?([0-9]{1,3}([.' \x{00a0}\x{202f}][0-9]{3})+(,[0-9]*)?|[0-9]+\.[0-9]+)[ \t]*$",
}
"""A number with thousands marks, or with a point where the decimal mark is a comma."""

_GROUPS = re.compile(r"[ \t]*[+-]?[0-9]{1,3}(\.[0-9]{3})+[ \t]*")


@dataclass(frozen=True)
class Dialect:
    """How a text file is written; without a separator it is recognised.

    >>> Dialect(separator=";", decimal=",")
    Dialect(separator=';', decimal=',', encoding='utf-8')
    """

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        mark = self.separator
        if mark is not None and (not isinstance(mark, str) or len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0'):
            raise DataError(f"a separator is one character, such as ';' or a tab, not {mark!r}")
        if self.decimal not in NUMBER:
            raise DataError(f"the decimal mark is '.' or ',', not {self.decimal!r}")
        if mark == self.decimal:
            raise DataError(f"{mark!r} cannot separate columns and be the decimal mark: give another separator")
        try:
            is_text = isinstance(self.encoding, str) and codecs.lookup(self.encoding)._is_text_encoding
        except (LookupError, ValueError):
            is_text = False
        if not is_text:
            raise DataError(f"the encoding {self.encoding!r} is not known; known are utf-8, utf-16, latin-1, cp1252 and others")

    @property
    def is_utf8(self) -> bool:
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig", "ascii")


class TextPath(str):
    """The path of text files, or a pattern, with what was said of how they are written: for whoever passes paths on.

    >>> TextPath("rows.csv", Dialect(";")).dialect.separator
    ';'
    """

    dialect: Dialect

    def __new__(cls, path: str, dialect: Dialect) -> TextPath:
        result = super().__new__(cls, path)
        result.dialect = dialect
        return result


def recognise_separator(head: bytes, usual: str) -> str:
    """What separates columns in the first lines of a file: the usual mark, unless every line has as many columns by another; if
    none does that, the one by which the header and most of the lines have as many, so that the others are refused by number.

    >>> recognise_separator(b"age;smoke\\n17,5;no\\n18,5;yes\\n", ","), recognise_separator(b"age\\n17\\n", ",")
    (';', ',')
    >>> recognise_separator(b"age;smoke\\n17,5;no\\n18,5;yes;1\\n19,5;no\\n", ",")
    ';'
    """
    text = head.decode("utf-8", "replace").removeprefix("\ufeff")
    if len(head) >= FIRST:  # the last line is cut off
        text = text[: text.rfind("\n") + 1]
    shares = {mark: _alike(text, mark) for mark in (usual, *MARKS)}
    best = max(shares, key=lambda mark: shares[mark])
    return best if shares[best] > 0.5 else usual


def _alike(text: str, mark: str) -> float:
    """The share of lines that a mark parts into as many columns as the first line, more than one."""
    try:
        widths = [len(row) for row in csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True) if row]
    except csv.Error:
        return 0.0
    return widths[1:].count(widths[0]) / (len(widths) - 1) if len(widths) > 1 and widths[0] > 1 else 0.0


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


def prepared_cells(cells: Any, encoder: Encoder, decimal: str) -> Any:
    """Cells for an encoder that takes them for numbers, with decimal points; thousands marks are refused."""
    guessing = isinstance(encoder, Guess) and encoder.encoder is None
    if isinstance(encoder, StateEncoder) or (isinstance(encoder, Guess) and isinstance(encoder.encoder, StateEncoder)):
        return cells
    missing = encoder.options.missing if isinstance(encoder, Guess) else ()
    if decimal == ".":
        if guessing and len(cells) > 0 and pt.is_dictionary(cells.type):
            are_numbers(cells, missing, ".")
        return cells
    return with_points(cells, missing, guessing=guessing)


def with_points(cells: Any, missing: Collection[str], *, guessing: bool) -> Any:
    """Numbers with decimal commas as numbers with points. A column that is only guessed to hold numbers is left as it is if it
    holds something else.

    >>> import pyarrow
    >>> with_points(pyarrow.array(["1,5", "", "-2"]), (), guessing=True).to_pylist()
    ['1.5', '', '-2']
    >>> with_points(pyarrow.array(["1,5", "1,2,3"]), (), guessing=True).to_pylist()
    ['1,5', '1,2,3']
    """
    if guessing and not are_numbers(cells, missing, ","):
        return cells
    words = cells.dictionary if pt.is_dictionary(cells.type) else cells
    marked = pc.match_substring_regex(words, MARKED[","])
    if marked.true_count:
        _refuse_marked(cells, marked, ",")
    plain = pc.if_else(pc.match_substring_regex(words, NUMBER[","]), pc.replace_substring(words, ",", "."), words)
    return pa.DictionaryArray.from_arrays(cells.indices, plain) if pt.is_dictionary(cells.type) else plain


def are_numbers(cells: Any, missing: Collection[str], decimal: str) -> bool:
    """Whether the first cells of a column are numbers; if they would be but for thousands marks, they are refused."""
    some = cells.slice(0, PEEK)
    words = some.dictionary_encode() if not pt.is_dictionary(some.type) else some
    there = pc.unique(words.indices).drop_null()
    texts = words.dictionary.take(there)
    said = texts.filter(pc.invert(pc.is_in(texts, value_set=_word_set(["", *missing], texts.type))))
    numbers, marked = (pc.match_substring_regex(said, pattern[decimal]) for pattern in (NUMBER, MARKED))
    if marked.true_count and pc.all(pc.or_(numbers, marked)).as_py():
        _refuse_marked(words, pc.match_substring_regex(words.dictionary, MARKED[decimal]), decimal)
    return bool(pc.all(numbers).as_py()) if len(said) else True


def _word_set(words: Collection[str], kind: Any) -> Any:
    """These words as Arrow has them. Its own way from a list imports pandas, which takes longer than reading a small file."""
    parts = [w.encode() for w in words]
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(parts), pa.py_buffer(ends), pa.py_buffer(b"".join(parts))).cast(kind)


def _refuse_marked(cells: Any, marked: Any, decimal: str) -> NoReturn:
    flags = marked.take(cells.indices) if pt.is_dictionary(cells.type) else marked
    row = pc.index(flags, value=True).as_py()
    text = cells[row].as_py()
    if decimal == "," and text.count(".") == 1 and "," not in text and not _GROUPS.fullmatch(text):
        raise Wrong(row, f"{text!r} has a decimal point, and the decimal mark is a comma: leave {DECIMAL_COMMA} out")
    instead = f"; if the comma is the decimal mark, say so: {DECIMAL_COMMA}" if decimal == "." and "," in text else ""
    raise Wrong(row, f"{text!r} has a thousands mark, which is not read: write numbers without{instead}")
