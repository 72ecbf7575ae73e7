"""Encoding: from cells to codes of states or to numbers, chunk by chunk.

A finite column becomes one byte a cell (more where there are more than 255 states), and the largest code of its type means
missing. Where the states are not declared, codes are given in the order of discovery; `recode` puts them in the order of the
states once all are known. A column of numbers becomes float64, in which NaN means missing, or the bins that it is cut into.

Text is read as numbers by the decimal mark of its source. Thousands marks are refused: 1,234 may be a thousand or a little more
than one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import repeat
from typing import Any, Literal, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import pa, pc, pt
from suffice.basis.variables import LIST, Finite, state_text
from suffice.engines.steps.blocks import Floats
from suffice.errors import WAY_OUT, listing, nearest
from suffice.errors.remedies import DECIMAL_COMMA, argument

Codes = npt.NDArray[np.unsignedinteger[Any]]

MAX_STATES = 2**20
"""A column with more different texts than this is not encoded unless its states are declared."""

NUMBER = re.compile(r"[ \t]*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[ \t]*", re.ASCII)
_WITH_POINT = re.compile(r"^[+-]?[0-9.]+(?:\.|e)", re.IGNORECASE)
_NOT_FINITE = re.compile(r"[ \t]*[+-]?(nan|inf|infinity)[ \t]*", re.IGNORECASE | re.ASCII)


class Wrong(Exception):
    """A cell that cannot be: its row within the chunk, and what is wrong. Its place is added by whoever knows it."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row, self.message = row, message


def code_type(n_states: int) -> np.dtype[Any]:
    """The smallest type that holds the codes of so many states and one for missing."""
    return np.dtype(np.uint8 if n_states <= 255 else np.uint16 if n_states <= 65535 else np.uint32)


def map_codes(indices: npt.NDArray[Any], table: Codes) -> Codes:
    """table[indices], by the fastest way there is for bytes; never the memory of `indices` itself."""
    if table.dtype != np.uint8 or len(table) > 256:
        return np.asarray(table[indices])
    narrow = np.array(indices).view(np.uint8) if indices.itemsize == 1 else indices.astype(np.uint8)
    if np.array_equal(table, np.arange(len(table), dtype=np.uint8)):
        return narrow
    return np.frombuffer(narrow.tobytes().translate(table.tobytes().ljust(256, b"\xff")), np.uint8)


def recode(codes: Codes, order: npt.NDArray[Any], dtype: np.dtype[Any]) -> Codes:
    """Codes of discovery as codes of states: order[old] = new, in the type that the final number of states needs."""
    if codes.dtype == dtype and np.array_equal(order, np.arange(len(order))):
        return codes
    table = np.full(256 if codes.dtype == np.uint8 else len(order) + 1, np.iinfo(dtype).max, dtype)
    known = order[: np.iinfo(codes.dtype).max]
    table[: len(known)] = known
    return map_codes(codes, table) if codes.dtype == np.uint8 else np.asarray(table[np.minimum(codes, len(order))])


def first_rows(indices: npt.NDArray[Any], n: int) -> npt.NDArray[np.int64]:
    """The first row where each of the indices 0 … n-1 occurs, or -1."""
    rows = np.full(n, -1, np.int64)
    rows[indices[::-1]] = np.arange(len(indices))[::-1]
    return rows


def texts(values: Any) -> list[str | None]:
    """The cells of an Arrow array as the texts that states are compared by; None where nothing is."""
    if pt.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pt.is_temporal(values.type) or pt.is_decimal(values.type):
        values = pc.replace_substring_regex(values.cast(pa.string()), r"\.0+($|[-+Z])", r"\1")
    elif pt.is_binary(values.type) or pt.is_large_binary(values.type) or pt.is_fixed_size_binary(values.type):
        try:
            values = values.cast(pa.binary()).cast(pa.string())
        except pa.ArrowInvalid:
            raise Wrong(0, "the column holds bytes that are not UTF-8 text") from None
    cells = values.to_pylist()
    if pt.is_string(values.type) or pt.is_large_string(values.type):
        return [v or None for v in cells]
    if pt.is_integer(values.type):
        return [None if v is None else str(v) for v in cells]
    return [None if v is None or v == "" or v != v else state_text(v) for v in cells]


def number(text: str) -> float | None:
    """The number that a text is, infinite or NaN included, or None."""
    return float(text) if NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text) else None


class Encoder(Protocol):
    """What turns the cells of a column into codes or numbers, and counts those that are missing."""

    @property
    def n_missing(self) -> int: ...

    def encode(self, chunk: Any) -> npt.NDArray[Any] | None:
        """The codes or numbers of a chunk; None once it is clear that the column must be read again."""


class StateEncoder:
    """The encoder of a finite column: declared states, or states discovered on the way."""

    def __init__(
        self,
        known: Iterable[str],
        *,
        fixed: bool,
        missing: Collection[str] = (),
        dates: bool = False,
        ordered: bool = False,
        unknown: Literal["refuse", "missing"] | None = None,
    ) -> None:
        self.codes = {state: code for code, state in enumerate(known)}
        self.fixed, self.missing, self.unknown = fixed, frozenset(missing), unknown
        self.dates, self.ordered = dates, ordered
        self.strange: dict[str, int] = {}
        """How many cells hold each state that is not known, where they are taken for missing."""
        self.n_missing = 0
        self._last: tuple[Any, Codes] | None = None

    def encode(self, chunk: Any) -> Codes:
        """The codes of a chunk."""
        if pt.is_nested(chunk.type):  # lists of texts are texts with a mark before each item, ["a", "b"] is "\x1fa\x1fb"
            lists = chunk.combine_chunks() if isinstance(chunk, pa.ChunkedArray) else chunk
            joined = pc.binary_join(lists.cast(pa.list_(pa.string())), LIST)
            chunk = pc.binary_join_element_wise(pa.scalar(""), joined, LIST)
        occurring = not pt.is_dictionary(chunk.type)
        encoded = chunk.dictionary_encode() if occurring else chunk
        indices, n = encoded.indices, len(encoded)
        # Arrow may have anything where a cell is absent, and its `to_numpy` loads pandas.
        absent = encoded.is_null().to_numpy(zero_copy_only=False) if indices.null_count else None
        kind = np.dtype(str(indices.type))
        plain = np.frombuffer(indices.buffers()[1], kind, n, indices.offset * kind.itemsize) if n else np.zeros(0, kind)
        plain = plain if absent is None else plain * ~absent
        if indices.null_count == n:
            table = np.zeros(1, code_type(len(self.codes)))
        else:
            table = self._table(encoded.dictionary, plain, None if absent is None else ~absent, occurring)
        codes, nothing = map_codes(plain, table), np.iinfo(table.dtype).max
        if absent is not None:
            codes = codes | -absent.astype(codes.dtype)  # minus one is the largest code; many times faster than a choice per cell
        if absent is not None or nothing in table:
            self.n_missing += int(np.count_nonzero(codes == nothing))
        return codes

    def _table(self, dictionary: Any, indices: npt.NDArray[Any], valid: npt.NDArray[np.bool_] | None, occurring: bool) -> Codes:
        """The code of each value of an Arrow dictionary."""
        if self._last is not None and self._last[0].equals(dictionary):
            return self._last[1]
        words, codes, missing = texts(dictionary), self.codes, self.missing
        strange = [i for i, w in enumerate(words) if w not in codes and w is not None and w not in missing]
        if strange and self.fixed:
            for i in strange:
                words[i] = self._match_state(words[i] or "")
            strange = [i for i in strange if words[i] not in codes]
        n_strange = len(strange)
        if strange and (self.fixed or not occurring):
            times = np.bincount(indices if valid is None else indices[valid], minlength=len(words))
            strange = [i for i in strange if times[i]]
            if self.fixed and self.unknown == "missing":
                for i in strange:
                    self.strange[words[i] or ""] = self.strange.get(words[i] or "", 0) + int(times[i])
                strange = []
        if strange and self.fixed:
            rows = np.arange(len(indices)) if valid is None else np.flatnonzero(valid)
            first = first_rows(indices[rows], len(words))
            i = min(strange, key=lambda i: int(first[i]))
            self._refuse(words[i] or "", int(rows[first[i]]))
        for word in sorted({words[i] or "" for i in strange}):
            codes[word] = len(codes)
        if len(self.codes) > MAX_STATES and not self.fixed:
            raise Wrong(
                0, f"there are more than {MAX_STATES:,} different texts, as in an identifier; leave the column out, or declare it"
            )
        dtype = code_type(len(self.codes))
        nothing = int(np.iinfo(dtype).max)
        table = np.fromiter(map(codes.get, words, repeat(nothing)), dtype, len(words))  # type: ignore[arg-type]
        if missing:
            table[[w in missing for w in words]] = nothing
        # A value that does not occur here yet may occur in the next chunk, so the table would be wrong for that one.
        self._last = (dictionary, table) if len(strange) == n_strange else None
        return table

    def _match_state(self, word: str) -> str:
        """The declared state that a cell means which has blanks around it, or is a number written in another way: 1.0 for 1."""
        bare = word.strip()
        x = number(bare) if _WITH_POINT.search(bare) else None
        return bare if bare in self.codes else word if x is None or state_text(x) not in self.codes else state_text(x)

    def _refuse(self, word: str, row: int) -> NoReturn:
        hint = nearest(word, self.codes) or f"; the states are {listing(self.codes)}"
        way_out = ("" if hint.endswith("?") else ";") + WAY_OUT if self.unknown == "refuse" else ""
        raise Wrong(row, f"{word!r} is not a state{hint}{way_out}")

    def about_strange(self, name: str) -> str:
        """What is noted of cells that were taken for missing, as their states are not known."""
        n = sum(self.strange.values())
        cells = f"{n:,} cells hold" if n > 1 else "1 cell holds"
        taken = "are taken" if n > 1 else "is taken"
        return f"{name!r}: {cells} what is no known state, {listing(self.strange)}, and {taken} for missing"


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
    """Numbers with decimal commas as numbers with points; what else is there is left as it is, but thousands marks."""
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
        if words := [x for x in map(number, self.missing) if x is not None]:
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
    """The bin of each number or, where the states are numbers in their order, its state."""
    points = [float(s) for s in variable.states[1:]] if variable.cuts is None else variable.cuts
    codes = np.searchsorted(np.asarray(points, np.float64), values, side="right").astype(code_type(variable.n_states))
    codes[np.isnan(values)] = np.iinfo(codes.dtype).max
    return codes
