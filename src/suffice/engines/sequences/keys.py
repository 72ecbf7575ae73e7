"""Keys: the two columns that say which rows belong together, and in which order. They are read beside the others, but are no
variables: what they are is not inferred, and every cell must be there.

An id is compared as a text, so that "007" and "7" are two sequences. An order is whole numbers, other numbers, dates or times;
whatever else is sorted as text. `Keyed` are local rows with keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from suffice.basis.arrays import Ints
from suffice.basis.libraries import pa, pc
from suffice.basis.variables import state_text
from suffice.engines.encoding.doubts import Notes
from suffice.engines.encoding.encode import Encoder, NotANumber, NumberEncoder, Weights, Wrong, first_rows, texts
from suffice.engines.encoding.sources import Categories, Kind, Source, readable
from suffice.engines.engine import Array, ranges
from suffice.engines.local.kept import Column, Nothing, Sink
from suffice.engines.local.local import Local
from suffice.errors import DataError, listing
from suffice.errors.remedies import argument

Reading = Literal["whole", "numbers", "times", "texts"]

TEXT_ORDER = "text order"
"""The kind of note about an order that is sorted as text."""

EXACT = 2.0**53
"""Whole numbers from here on are not told apart as float64."""

_ISO = re.compile(r"\d{4}(-\d\d(-\d\d)?|-?W\d\d(-?\d)?|-?Q[1-4])?([T ]\d\d(:\d\d(:\d\d([.,]\d+)?)?)?Z?)?", re.ASCII)


class TextCodes:
    """Codes of texts in the order of discovery; a missing cell is refused."""

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
        """The texts in their order: by number if all are numbers, otherwise as text."""
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

    def __init__(self, reading: Reading, missing: Collection[str] = (), decimal: str = ".") -> None:
        self.reading, self.missing, self.decimal, self.mistaken = reading, missing, decimal, False
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
            values = NumberEncoder(missing=self.missing, decimal=self.decimal).encode(chunk)
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

    def to_user(self, values: Array) -> Array:
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
        shown = self.to_user(np.array([value], self.column.dtype))[0]
        return f"{shown:.15g}" if isinstance(shown, float) else str(shown)


class ShownTimes(Times):
    """An order whose column has its values as they are shown."""

    def to_user(self, values: Array) -> Array:
        return values


def times_of(name: str, key: OrderEncoder, sink: Sink, categories: Categories | None, notes: Notes) -> Times:
    """The order that was read, as numbers that sort as it does."""
    if key.reading != "texts":
        return Times(name, sink.pop(name).column(None, key.dtype), key.whole, None, key.type)
    words = list(key.words.codes)
    if categories is not None and categories.ordered:
        turn = [w for w in categories.states if w in key.words.codes]
        return Times(name, sink.pop(name).column(key.words.ranks(turn), key.dtype), False, tuple(turn))
    try:
        numbers = NumberEncoder().encode(pa.array(words, pa.string()))
    except NotANumber:
        turn = sorted(words)
        if not (all(map(_ISO.fullmatch, turn)) and len(set(map(len, turn))) == 1):
            notes.tell(TEXT_ORDER, [name], about_text)
        return Times(name, sink.pop(name).column(key.words.ranks(turn), key.dtype), False, tuple(turn))
    if (np.floor(numbers) == numbers).all() and (np.abs(numbers) < EXACT).all():
        whole = numbers.astype(np.int64)
        return Times(name, sink.pop(name).column(whole, whole.dtype), True)
    values, ranks = np.unique(numbers, return_inverse=True)
    return Times(name, sink.pop(name).column(ranks, key.dtype), False, tuple(map(state_text, values)))


def about_text(names: Sequence[str]) -> str:
    """What is noted of an order that is sorted as text."""
    return f"{listing(names)}: the order is sorted as text, in which '10' comes before '9'; numbers, dates and times sort as such"


CHUNK = 2**20
"""Rows whose keys are looked at together."""


class Keyed(Local):
    """Local rows of which two columns are keys: an id of the sequence, and an order. Either may be absent."""

    def __init__(self, rows: Local, by: str | None, order: str | None) -> None:
        super().__init__(rows.source, rows.options, rows)
        self.by, self.order = by, order
        self.keys = tuple(k for k in (by, order) if k is not None)
        self.names = tuple(n for n in self.names if n not in (by, order))
        if self.source.stable:  # what was read already need not be read again
            self.seen = {n: s for n, s in rows.seen.items() if n in self.names}
            self._found, self.n_rows, self._weight, self._bytes = dict(rows._found), rows.n_rows, rows._weight, rows._bytes
        self._keys_read = False
        self.id_codes: Column | None = None
        self.times: Times | None = None
        self.labels: tuple[str, ...] = ("1",)

    @readable()
    def read_keys(self, names: Sequence[str]) -> None:
        """Read the keys and the weights; and these columns in the same pass, if another would cost as much or not agree."""
        together = not self.source.stable or self.n_rows is None
        if together and any(n not in self.seen for n in names):
            self.require(names)
        weights = {} if self.weights is None or self._weight is not None else {self.weights: Weights(decimal=self.source.decimal)}
        if weights or self._unread_keys():
            self._scan(weights)
        self.require(())

    def _unread_keys(self) -> dict[str, TextCodes | OrderEncoder]:
        keys: dict[str, TextCodes | OrderEncoder] = {}
        if self._keys_read:
            return keys
        if self.by is not None:
            checked_kind(self.by, self.source)
            keys[self.by] = TextCodes("the sequence", self.options.missing)
        if self.order is not None:
            keys[self.order] = OrderEncoder(readings(self.order, self.source)[0], self.options.missing, self.source.decimal)
        return keys

    def _encode_columns(self, encoders: Mapping[str, Encoder]) -> Sink:
        """Columns, and in the first pass the keys."""
        keys = self._unread_keys()
        sink = super()._encode_columns({**encoders, **keys})
        self._keys_read = True
        for name, key in keys.items():
            if isinstance(key, TextCodes):  # without an order of rows, ids are in the order given
                self.labels = tuple(key.codes if self.order is None else key.in_turn())
                self.id_codes = sink.pop(name).column(key.ranks(self.labels), key.dtype)
                continue
            own = sink
            for way in readings(name, self.source)[1:]:
                if key.mistaken:
                    key = OrderEncoder(way, self.options.missing, self.source.decimal)
                    own = self._encode_columns({name: key})
            if key.mistaken:
                raise DataError(f"the column {name!r} cannot be read as an order")
            self.times = times_of(name, key, own, self.source.categories(name), self._noted)
        return sink

    def keys_of(self, start: int, stop: int) -> tuple[Array, Array | None]:
        """The sequence of some rows, by its number, and their order."""
        by = np.broadcast_to(np.int32(0), stop - start) if self.id_codes is None else self.id_codes[start:stop]
        return by, None if self.times is None else self.times.column[start:stop]

    def in_memory(self, names: Sequence[str]) -> bool:
        """Whether the keys are in memory, and these columns are or fit beside them."""
        there = [self.seen[n].column for n in names if n in self.seen]
        keys = [c for c in (self.id_codes, self._weight, self.times and self.times.column) if c is not None]
        need = self._bytes + self.source.n_bytes([n for n in names if n not in self.seen])
        return all(isinstance(c, (np.ndarray, Nothing)) for c in (*there, *keys)) and need <= self.options.memory_limit

    def refuse_twice(self, sequence: int, time: Any, row: int) -> None:
        """Refuse a pair of keys that is there twice, the second time in this row of the input."""
        text = "" if self.times is None else self.times.text(time)
        what = f"{self.order} {text}" if self.by is None else f"{self.by} {self.labels[sequence]!r} with {self.order} {text}"
        raise DataError(f"{self.source.place(row)}: {what} is there twice; each step of a sequence is one row")

    def refuse_apart(self) -> None:
        """Without an order, ids come in the order of discovery if the rows of a sequence are adjacent; refuse others."""
        for start, stop in ranges(self.n_rows or 0, CHUNK):
            by, _ = self.keys_of(max(0, start - 1), stop)
            back = np.flatnonzero(by[1:] < by[:-1])
            if len(back):
                row = max(0, start - 1) + int(back[0]) + 1
                raise DataError(
                    f"{self.source.place(row)}: the sequence {self.labels[int(by[back[0] + 1])]!r} goes on after rows of "
                    f"another; without an order the rows of a sequence must be adjacent: say {argument('order')}, or sort them"
                )
