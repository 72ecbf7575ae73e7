"""Keys: the two columns that say which rows belong together, and in which order. They are read beside the others, but are no
variables: what they are is not inferred, and every cell must be there.

An id is compared as a text, so that "007" and "7" are two sequences. An order is whole numbers, other numbers, dates or times;
whatever else is sorted as text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import pa, pc
from suffice.engines.encoding.doubts import Notes
from suffice.engines.encoding.encode import NotANumber, NumberEncoder, Wrong, first_rows, texts
from suffice.engines.encoding.sources import Categories, Kind, Source
from suffice.engines.local.columns import Column, Sink
from suffice.errors import DataError, listing
from suffice.variables import state_text

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Reading = Literal["whole", "numbers", "times", "texts"]

TEXT_ORDER = "text order"
"""The kind of note about an order that is sorted as text."""

EXACT = 2.0**53
"""Whole numbers from here on are not told apart as float64."""

_ISO = re.compile(r"\d{4}(-\d\d(-\d\d)?|-?W\d\d(-?\d)?|-?Q[1-4])?([T ]\d\d(:\d\d(:\d\d([.,]\d+)?)?)?Z?)?", re.ASCII)


class TextCodes:
    """Codes of texts in the order of discovery; a missing cell is refused.

    >>> import pyarrow
    >>> words = TextCodes("the sequence")
    >>> words.encode(pyarrow.array(["b", "a", "b"])), list(words.codes)
    (array([0, 1, 0], dtype=int32), ['b', 'a'])
    """

    n_missing = 0
    mistaken = False
    dtype = np.dtype(np.int32)

    def __init__(self, what: str, missing: Collection[str] = ()) -> None:
        self.what, self.missing = what, frozenset(missing)
        self.codes: dict[str, int] = {}

    def encode(self, chunk: Any) -> Array:
        """The codes of a chunk."""
        encoded = chunk if hasattr(chunk, "dictionary") else chunk.dictionary_encode()
        words = texts(encoded.dictionary)
        indices = encoded.indices.cast("int64").fill_null(len(words)).to_numpy(zero_copy_only=False)
        first = first_rows(indices, len(words) + 1)
        table = np.full(len(words) + 1, -1, np.int32)
        turn = np.argsort(first, kind="stable")[np.count_nonzero(first < 0) :].tolist()
        words.append(None)
        found = [words[i] for i in turn]
        if None in found or not self.missing.isdisjoint(found):
            at = next(i for i in turn if words[i] is None or words[i] in self.missing)
            raise Wrong(int(first[at]), f"{self.what} is missing")
        codes = self.codes
        table[turn] = [codes.setdefault(word, len(codes)) for word in found]
        return np.asarray(table[indices])

    def in_turn(self) -> list[str]:
        """The texts in their order: by number if all are numbers, otherwise as text.

        >>> import pyarrow
        >>> words = TextCodes("the sequence")
        >>> _ = words.encode(pyarrow.array(["10", "9", "-1"])); words.in_turn()
        ['-1', '9', '10']
        """
        words = sorted(self.codes)
        try:
            numbers = NumberEncoder().encode(pa.array(words, pa.string()))
        except NotANumber:
            return words
        return [words[i] for i in np.argsort(numbers, kind="stable").tolist()]

    def ranks(self, order: Iterable[str]) -> Ints:
        """The place of each code in an order of the texts."""
        ranks = np.empty(len(self.codes), np.int64)
        ranks[[self.codes[word] for word in order]] = np.arange(len(self.codes))
        return ranks


class OrderEncoder:
    """The encoder of an order, for one way to read it; `mistaken` once a cell cannot be read so."""

    n_missing = 0
    dtype: np.dtype[Any]

    def __init__(self, reading: Reading, missing: Collection[str] = ()) -> None:
        self.reading, self.missing, self.mistaken = reading, missing, False
        self.words = TextCodes("the order", missing)
        self.dtype = np.dtype({"numbers": np.float64, "texts": np.int32}.get(reading, np.int64))
        self.type: Any = None
        self.whole = reading == "whole"
        self._started = False

    def encode(self, chunk: Any) -> Array | None:
        """The numbers or codes of a chunk; None once it is clear that the column must be read in another way."""
        if self.mistaken:
            return None
        if self.reading == "texts":
            return self.words.encode(chunk)
        values = {"whole": self._whole, "numbers": self._numbers, "times": self._times}[self.reading](chunk)
        self.mistaken = values is None
        return values

    def _whole(self, chunk: Any) -> Array | None:
        cells = chunk.dictionary_decode() if hasattr(chunk, "dictionary") else chunk
        words = [w for w in ("", *self.missing) if not pa.types.is_integer(cells.type) or re.fullmatch(r"-?\d+", w)]
        try:
            strange = pc.is_in(cells, value_set=pa.array(words, pa.string()).cast(cells.type)) if words else None
            _refuse_missing(cells, strange)
            values = np.asarray(cells.cast(pa.int64()).to_numpy(zero_copy_only=False))
        except pa.ArrowInvalid:
            return None
        # Beyond this a jump may be no int64, so that none is looked at.
        self.whole = self.whole and (not len(values) or (int(values.min()) > -(2**62) and int(values.max()) < 2**62))
        return values

    def _numbers(self, chunk: Any) -> Array | None:
        try:
            values = NumberEncoder(missing=self.missing).encode(chunk)
        except NotANumber as wrong:
            if wrong.endless:
                raise
            return None
        if np.isnan(values).any():
            raise Wrong(int(np.argmax(np.isnan(values))), "the order is missing")
        plain = bool((np.floor(values) == values).all() and (np.abs(values) < EXACT).all())
        self.whole, self._started = plain and (self.whole or not self._started), True
        return values

    def _times(self, chunk: Any) -> Array:
        self.type = self.type or chunk.type
        _refuse_missing(chunk, None)
        cells = chunk.cast(self.type)
        width = pa.int32() if pa.types.is_date32(self.type) or pa.types.is_time32(self.type) else pa.int64()
        return np.asarray(cells.cast(width).to_numpy(zero_copy_only=False).astype(np.int64, copy=False))


def _refuse_missing(cells: Any, strange: Any) -> None:
    for mask in (cells.is_null(), strange):
        if mask is not None and mask.true_count:
            raise Wrong(int(np.argmax(mask.to_numpy(zero_copy_only=False))), "the order is missing")


def checked_kind(name: str, source: Source) -> Kind:
    """What a key is made of; lists and the like are refused."""
    kind = source.kind(name)
    if kind is Kind.OTHER:
        raise DataError(f"the column {name!r} has the type {source.type_of(name)}: keys are numbers, text, dates or times")
    return kind


def readings(name: str, source: Source) -> tuple[Reading, ...]:
    """The ways in which an order may be read, the strictest first; but one where rows can be read but once."""
    kind, categories = checked_kind(name, source), source.categories(name)
    if kind in (Kind.TEXT, Kind.CELLS, Kind.CATEGORY) and source.stable and not (categories and categories.ordered):
        return "whole", "numbers", "texts"
    if kind is Kind.INTEGER:
        return ("whole", "numbers") if source.stable else ("whole",)
    return ({Kind.NUMBER: "numbers", Kind.TIME: "times"}.get(kind, "texts"),)  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Times:
    """The order of rows: a column of numbers that sort as the rows do, and how to show them."""

    name: str
    column: Column
    whole: bool
    """Whether these are whole numbers, between which steps may lack."""
    words: tuple[str, ...] | None = None
    """The texts, where the numbers are their ranks."""
    type: Any = None
    """The Arrow type of dates and times."""

    def shown(self, values: Array) -> Array:
        """Values as users gave them: float64, datetime64, or texts."""
        if self.words is not None:
            return np.array(self.words, object)[values]
        if self.type is None:
            return values.astype(np.float64)
        cells = pa.array(values).cast(pa.int32() if self.type.bit_width == 32 else pa.int64()).cast(self.type)
        if pa.types.is_time(self.type) or pa.types.is_interval(self.type):
            return np.array(texts(cells), object)
        return np.asarray(cells.to_numpy(zero_copy_only=False))

    def text(self, value: Any) -> str:
        """One value for a sentence."""
        shown = self.shown(np.array([value], self.column.dtype))[0]
        return f"{shown:.15g}" if isinstance(shown, float) else str(shown)


class ShownTimes(Times):
    """An order whose column has its values as they are shown."""

    def shown(self, values: Array) -> Array:
        return values


def times_of(name: str, key: OrderEncoder, sink: Sink, categories: Categories | None, notes: Notes) -> Times:
    """The order that was read, as numbers that sort as it does."""
    if key.reading != "texts":
        return Times(name, sink.column(name, None, key.dtype), key.whole, None, key.type)
    words = list(key.words.codes)
    if categories is not None and categories.ordered:
        turn = [w for w in categories.states if w in key.words.codes]
        return Times(name, sink.column(name, key.words.ranks(turn), key.dtype), False, tuple(turn))
    try:
        numbers = NumberEncoder().encode(pa.array(words, pa.string()))
    except NotANumber:
        turn = sorted(words)
        if not (all(map(_ISO.fullmatch, turn)) and len(set(map(len, turn))) == 1):
            notes.tell(TEXT_ORDER, [name], about_text)
        return Times(name, sink.column(name, key.words.ranks(turn), key.dtype), False, tuple(turn))
    if (np.floor(numbers) == numbers).all() and (np.abs(numbers) < EXACT).all():
        whole = numbers.astype(np.int64)
        return Times(name, sink.column(name, whole, whole.dtype), True)
    values, ranks = np.unique(numbers, return_inverse=True)
    return Times(name, sink.column(name, ranks, key.dtype), False, tuple(map(state_text, values)))


def about_text(names: Sequence[str]) -> str:
    """What is noted of an order that is sorted as text."""
    return f"{listing(names)}: the order is sorted as text, in which '10' comes before '9'; numbers, dates and times sort as such"
