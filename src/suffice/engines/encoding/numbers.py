"""Columns of numbers: encoded as float64, in which NaN means missing; or as the bins that they are cut into.

Text is read as numbers by the decimal mark of its source. Thousands marks are refused: 1,234 may be a thousand or a little more
than one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import pa, pc, pt
from suffice.engines.encoding.encode import NUMBER, Codes, StateEncoder, Wrong, code_type, first_rows, number, texts
from suffice.errors.remedies import DECIMAL_COMMA, argument
from suffice.variables import Finite

Floats = npt.NDArray[np.float64]

SHORT = 32
"""Cells that are looked at one by one sooner than Arrow is called for them: there may be many thousands of columns."""

NUMBERS = {".": NUMBER, ",": re.compile(r"[ \t]*[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?[ \t]*", re.ASCII)}
"""A number, by the decimal mark."""

MARKED = {
    ".": re.compile("[ \\t]*[+-]?[0-9]{1,3}([,' \u00a0\u202f][0-9]{3})+(\\.[0-9]*)?[ \\t]*"),
    ",": re.compile("[ \\t]*[+-]?([0-9]{1,3}([.' \u00a0\u202f][0-9]{3})+(,[0-9]*)?|[0-9]+\\.[0-9]+)[ \\t]*"),
}
"""A number with thousands marks, or with a point where the decimal mark is a comma."""

_GROUPS = re.compile(r"[ \t]*[+-]?[0-9]{1,3}(\.[0-9]{3})+[ \t]*")

WITH_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
"""A number with a comma in place of the decimal point."""

MARKS = frozenset({"?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "-", "."})
"""Words that often mean a missing cell. Only the empty cell does, unless the user says so; these are noted."""


class NotANumber(Wrong):
    """A cell of text where a number should be; `endless` if it reads as a number that is not finite."""

    def __init__(self, row: int, text: str, *, endless: bool = False) -> None:
        why = "is not a finite number" if endless else "is not a number"
        shown = text if len(text) <= 60 else text[:60] + "…"
        hint = f"; if it means missing, say so with {argument('missing')}" if endless or text in MARKS else ""
        hint = f"; if the comma is a decimal mark, say so: {DECIMAL_COMMA}" if WITH_COMMA.fullmatch(text) else hint
        super().__init__(row, f"{shown!r} {why}{hint}")
        self.text, self.endless = text, endless


def refuse_mark(row: int, text: str, decimal: str) -> NoReturn:
    """Refuse a number that is `MARKED`."""
    if decimal == "," and text.count(".") == 1 and "," not in text and not _GROUPS.fullmatch(text):
        raise Wrong(row, f"{text!r} has a decimal point, and the decimal mark is a comma: leave {DECIMAL_COMMA} out")
    instead = f"; if the comma is the decimal mark, say so: {DECIMAL_COMMA}" if decimal == "." and "," in text else ""
    raise Wrong(row, f"{text!r} has a thousands mark, which is not read: write numbers without{instead}")


def with_points(cells: Any) -> Any:
    """Numbers with decimal commas as numbers with points; what else is there is left as it is, but thousands marks.

    >>> import pyarrow
    >>> with_points(pyarrow.array(["1,5", "", "-2", "1,2,3"])).to_pylist()
    ['1.5', '', '-2', '1,2,3']
    """
    is_dictionary = pt.is_dictionary(cells.type)
    words = cells.dictionary if is_dictionary else cells
    marked = pc.match_substring_regex(words, f"^{MARKED[','].pattern}$")
    if marked.true_count:
        row = pc.index(marked.take(cells.indices) if is_dictionary else marked, value=True).as_py()
        refuse_mark(row, cells[row].as_py(), ",")
    numbers = pc.match_substring_regex(words, f"^{NUMBERS[','].pattern}$")
    plain = pc.if_else(numbers, pc.replace_substring(words, ",", "."), words)
    return pa.DictionaryArray.from_arrays(cells.indices, plain) if is_dictionary else plain


class NumberEncoder:
    """The encoder of a column of numbers; `whole` if only 0, 1, 2, … are allowed, with a `family` what is possible by it."""

    def __init__(self, *, missing: Collection[str] = (), decimal: str = ".", whole: bool = False, family: Any = None) -> None:
        self.missing, self.decimal, self.whole, self.family = frozenset(missing), decimal, whole, family
        self.n_missing = 0

    def encode(self, chunk: Any) -> Floats:
        """The numbers of a chunk, NaN where they are missing."""
        chunk = chunk if self.decimal == "." else with_points(chunk)
        is_dictionary = pt.is_dictionary(chunk.type)
        kind = chunk.type.value_type if is_dictionary else chunk.type
        tests = (pt.is_string, pt.is_large_string, pt.is_string_view, pt.is_binary, pt.is_large_binary)
        if any(test(kind) for test in tests):
            values = self._parse(chunk)
        else:
            cells = chunk.dictionary_decode() if is_dictionary else chunk
            cells = cells.cast(pa.int8()) if pt.is_boolean(kind) else cells
            values = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        words = [x for x in map(number, self.missing) if x is not None]
        if words:
            values = np.where(np.isin(values, words), np.nan, values)
        if np.isinf(values).any():
            row = int(np.argmax(np.isinf(values)))
            raise NotANumber(row, str(chunk[row].as_py()), endless=True)
        if self.whole:
            broken = (values < 0) | (np.floor(values) < values)
            if broken.any():
                row = int(np.argmax(broken))
                raise Wrong(row, f"{chunk[row].as_py()!r} is not a count; counts are 0, 1, 2, ...")
        if self.family is not None and (wrong := self.family.impossible(values)).any():
            row = int(np.argmax(wrong))
            raise Wrong(row, f"{chunk[row].as_py()!r} is not possible by {self.family!r}, which is of {self.family.support}")
        self.n_missing += int(np.count_nonzero(np.isnan(values)))
        return values

    def _parse(self, chunk: Any) -> Floats:
        """Text as numbers: by Arrow where it understands every cell, otherwise each different text by our own rule."""
        if len(chunk) <= SHORT and (pt.is_string(chunk.type) or pt.is_large_string(chunk.type)):
            return self._parse_words(chunk.to_pylist(), np.arange(len(chunk)))
        if not pt.is_dictionary(chunk.type):
            nothing = pc.is_in(chunk, value_set=pa.array(["", *self.missing], chunk.type))
            blanked = pc.if_else(nothing, pa.scalar(None, chunk.type), chunk) if nothing.true_count else chunk
            try:
                values: Floats = blanked.cast(pa.float64()).to_numpy(zero_copy_only=False)
                if np.isfinite(values).sum() == len(values) - blanked.null_count:
                    return values
            except pa.ArrowInvalid:
                pass
            chunk = chunk.dictionary_encode()
        indices = chunk.indices.cast("int64").fill_null(len(chunk.dictionary))
        return self._parse_words(texts(chunk.dictionary), indices.to_numpy())

    def _parse_words(self, words: Sequence[str | None], which: npt.NDArray[np.int64]) -> Floats:
        """Texts as numbers, and which of them each cell is; one more is for the missing cell."""
        words = [None if not w or w in self.missing else w for w in words]
        parsed = [None if w is None else number(w) for w in words]
        strange = [(x is not None, i) for i, x in enumerate(parsed) if words[i] and (x is None or not math.isfinite(x))]
        if strange:
            first = first_rows(which, len(words) + 1)
            found = [(endless, int(first[i]), words[i] or "") for endless, i in strange if first[i] >= 0]
            if found:
                endless, row, word = min(found)
                raise NotANumber(row, word, endless=endless)
        return np.array([np.nan if x is None else x for x in (*parsed, None)])[which]


class Weights(NumberEncoder):
    """The encoder of the weights of the rows."""

    def encode(self, chunk: Any) -> Floats:
        numbers = super().encode(chunk)
        bad = ~(numbers >= 0)
        if bad.any():
            row = int(np.argmax(bad))
            raise Wrong(row, "the weight is missing" if np.isnan(numbers[row]) else f"the weight {numbers[row]:g} is negative")
        return numbers


class Cuts:
    """The encoder of a column of numbers that is cut into bins; cells may also be the names of the bins."""

    def __init__(self, variable: Finite, *, missing: Collection[str] = (), decimal: str = ".") -> None:
        self.variable, self.numbers = variable, NumberEncoder(missing=missing, decimal=decimal)
        self._names = StateEncoder(variable.states, fixed=True, missing=missing)

    @property
    def n_missing(self) -> int:
        return self.numbers.n_missing + self._names.n_missing

    def encode(self, chunk: Any) -> Codes:
        """The bins of a chunk."""
        try:
            return bin_codes(self.numbers.encode(chunk), self.variable)
        except NotANumber as wrong:
            if wrong.text not in self._names.codes:
                raise
            return self._names.encode(chunk)


def bin_codes(values: Floats, variable: Finite) -> Codes:
    """The bin of each number or, where the states are numbers in their order, its state.

    >>> from suffice import Bins
    >>> bin_codes(np.array([17.0, 18.0, np.nan]), Bins([18]).finite("age", [18]))
    array([  0,   1, 255], dtype=uint8)
    >>> bin_codes(np.array([2.5, 0.0, np.nan]), Finite("x", ["0", "2.5"]))
    array([  1,   0, 255], dtype=uint8)
    """
    points = [float(s) for s in variable.states[1:]] if variable.cuts is None else variable.cuts
    codes = np.searchsorted(np.asarray(points, np.float64), values, side="right").astype(code_type(variable.n_states))
    codes[np.isnan(values)] = np.iinfo(codes.dtype).max
    return codes
