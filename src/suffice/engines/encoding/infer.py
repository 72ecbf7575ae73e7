"""Inference: what a column is, where nobody declared it.

Cells of a text file are numbers until one of them is not. An encoder that sees some of the cells says what it found, and what was
found in all of them follows by adding (`CellsFound`), whoever read them. A column that turns out to be something else after rows
were already encoded is read once more. Of numbers the different values are known while they are few, or while all of them differ
(`Values`): there is a rule by which numbers that nobody declared are states. What seems strange about a column is said in
`suffice.engines.encoding.doubts`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from suffice.basis.libraries import pc, pt
from suffice.engines.encoding.encode import (
    SHORT,
    Codes,
    Cuts,
    Encoder,
    Floats,
    NotANumber,
    NumberEncoder,
    StateEncoder,
    Wrong,
    is_integer_text,
    number,
    texts,
)
from suffice.engines.encoding.sources import Categories, Kind, Options, Source
from suffice.errors import DataError
from suffice.variables import Bins, Count, Distributed, Finite, NumbersStay, Real, Variable, sorted_states, state_text

FEW = 20
"""Undeclared whole numbers with no more different values than this are noted where they stay numbers: they may be states."""

STATES = 10
"""Undeclared whole numbers with no more different values than this are states,"""

ROWS = 50
"""if at least so many rows have one."""

FIRST = 2**14
"""Numbers that are looked at for whether all of them differ."""


@dataclass(frozen=True, eq=False)
class Values:
    """What is known of the numbers in a column, in a form that adds.

    `few` are the different values, None once they are too many; `different` the first numbers, None once two of them are
    equal or one is not whole.

    >>> a, b = Values.of(np.array([1.0, 2.0, np.nan])), Values.of(np.array([2.0]))
    >>> (a + b).n, sorted((a + b).few), (a + b).different
    (3, [1.0, 2.0], None)
    """

    n: int = 0
    few: frozenset[float] | None = frozenset()
    whole: bool = True
    different: Floats | None = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, numbers: Floats) -> Values:
        """Those of some cells, of which NaN is missing."""
        present = numbers[~np.isnan(numbers)] if np.isnan(numbers).any() else numbers
        start = cls(0)._with(present[:100])  # enough to see that most columns are neither few nor different
        return start if len(present) <= 100 else start._with(present[100:])

    def _with(self, present: Floats) -> Values:
        if self.few is None and self.different is None:
            return Values(self.n + len(present), None, self.whole, None)
        whole = self.whole and bool((np.floor(present) == present).all())
        few = self._few(present, whole) if self.few is not None else None
        different = _all_different(self.different, present) if whole else None
        return Values(self.n + len(present), few, whole, different)

    def _few(self, present: Floats, whole: bool) -> frozenset[float] | None:
        known = self.few or frozenset()
        if not len(present):
            return known
        low, high = float(present.min()), float(present.max())
        if whole and high - low < 2**16:
            found = frozenset(low + float(i) for i in np.flatnonzero(np.bincount((present - low).astype(np.int64))))
        else:
            some = [*known, *map(float, np.unique(present[:1000]))]
            rest = present if len(some) > FEW else present[~np.isin(present, some)]
            found = frozenset([*some, *map(float, np.unique(rest[:1000]))])
            if len(found) <= FEW and len(rest) > 1000:
                found |= frozenset(map(float, np.unique(rest)))
        return _only_few(known | found, whole)

    def __add__(self, other: Values) -> Values:
        if not self.n:
            return other
        whole = self.whole and other.whole
        few = None if self.few is None or other.few is None else _only_few(self.few | other.few, whole)
        full = self.different is not None and len(self.different) >= FIRST
        different = None if other.different is None and not full else _all_different(self.different, other.different)
        return Values(self.n + other.n, few, whole, different if whole else None)

    @property
    def are_states(self) -> bool:
        """The rule at the door: two different values, or at most ten whole ones in at least fifty rows.

        >>> Values.of(np.array([0.0, 1.0, 1.0])).are_states, Values.of(np.arange(50.0) % 10).are_states
        (True, True)
        >>> Values.of(np.array([0.5, 1.5])).are_states, Values.of(np.arange(49.0) % 10).are_states
        (False, False)
        """
        if self.few is None:
            return False
        # Two cells have two values without meaning anything by it.
        return (len(self.few) == 2 < self.n) or (self.whole and 0 < len(self.few) <= STATES and self.n >= ROWS)


def _only_few(values: frozenset[float], whole: bool) -> frozenset[float] | None:
    return values if len(values) <= (FEW if whole else 2) else None


def _all_different(known: Floats | None, more: Any) -> Floats | None:
    """The first numbers, sorted, if all of them differ."""
    if known is None or more is None or len(known) >= FIRST:
        return known
    more = more[: FIRST - len(known)]
    together = np.sort(np.concatenate([known, more]))
    return together if (together[1:] != together[:-1]).all() else None


PEEK = 1000
"""Rows by which a column is first taken for numbers or for states."""


class Guess:
    """The encoder of cells of a text file of which nothing is declared; `reading` once it is known how they must be read."""

    def __init__(self, options: Options, reading: str | None = None) -> None:
        self.options = options
        self.encoder: Undeclared | StateEncoder | None = self._encoder(reading) if reading else None
        self.mistaken = False
        self.endless: NotANumber | None = None
        self._rows = 0

    @property
    def settled(self) -> Undeclared | StateEncoder:
        """The encoder that this one became."""
        return self.encoder or self._encoder("numbers")

    @property
    def n_missing(self) -> int:
        return self.settled.n_missing

    def encode(self, chunk: Any) -> Codes | Floats | None:
        """The codes or numbers of a chunk; None once it is clear that this column must be read again."""
        if self.encoder is None:
            self.encoder = self._encoder(self._first_guess(chunk))
        row, self._rows = self._rows, self._rows + len(chunk)
        if self.mistaken or isinstance(self.encoder, StateEncoder):
            return None if self.mistaken else self.encoder.encode(chunk)
        try:
            numbers = self.encoder.encode(chunk)
        except NotANumber as wrong:
            if row == 0 and not wrong.endless:
                self.encoder = self._encoder("states")
                return self.encoder.encode(chunk)
            # Text may still follow a number that is not finite, and would make it a state like any other.
            wrong.row += row
            self.endless = self.endless or (wrong if wrong.endless else None)
            self.mistaken = not wrong.endless
            return np.zeros(len(chunk)) if wrong.endless else None
        self.encoder.integers = self.encoder.integers and not _has_points(chunk)
        return numbers

    def _first_guess(self, chunk: Any) -> str:
        if len(chunk) <= SHORT and pt.is_string(chunk.type):
            found = {w for w in chunk.to_pylist() if w and w not in self.options.missing}
            return reads_as(sorted(found), self.options.integers is Finite)
        chunk = chunk.slice(0, PEEK)
        values = chunk.dictionary if hasattr(chunk, "dictionary") else chunk.dictionary_encode().dictionary
        words = [w for w in texts(values) if w is not None and w not in self.options.missing]
        return reads_as(words, self.options.integers is Finite)

    def _encoder(self, reading: str) -> Undeclared | StateEncoder:
        missing = self.options.missing
        return StateEncoder((), fixed=False, missing=missing) if reading == "states" else Undeclared(missing=missing)


def reads_as(words: Sequence[str], integers_finite: bool) -> str:
    """Whether the texts of a column are "numbers", some of them finite, or "states".

    >>> reads_as(["1", "2.5"], False), reads_as(["1", "2"], True), reads_as(["inf"], False)
    ('numbers', 'states', 'states')
    """
    parsed = [number(w) for w in words]
    numeric = all(x is not None for x in parsed) and any(x is not None and np.isfinite(x) for x in parsed)
    integers = integers_finite and all(map(is_integer_text, words))
    return "numbers" if not words or (numeric and not integers) else "states"


def _has_points(chunk: Any) -> bool:
    """Whether some number is written with a point or an exponent, so that the column is not one of integers."""
    values = chunk.dictionary if hasattr(chunk, "dictionary") else chunk
    if len(values) <= SHORT and pt.is_string(values.type):
        return any(mark in word for word in values.to_pylist() if word for mark in ".eE")
    return bool(pc.any(pc.match_substring_regex(values, "[.eE]")).as_py())


class Undeclared(NumberEncoder):
    """The encoder of numbers of which nothing is declared: numbers, unless there are few of them. `integers` says that all of
    them were written, or typed, as such."""

    def __init__(self, *, missing: Collection[str] = (), integers: bool = True) -> None:
        super().__init__(missing=missing)
        self.values, self.integers = Values(), integers

    def encode(self, chunk: Any) -> Floats:
        numbers = super().encode(chunk)
        self.values += Values.of(numbers)
        return numbers


class Weights(NumberEncoder):
    """The encoder of the weights of the rows."""

    def encode(self, chunk: Any) -> Floats:
        numbers = super().encode(chunk)
        bad = ~(numbers >= 0)
        if bad.any():
            row = int(np.argmax(bad))
            raise Wrong(row, "the weight is missing" if np.isnan(numbers[row]) else f"the weight {numbers[row]:g} is negative")
        return numbers


Reading = Literal["states", "numbers", "both", "nothing"]


@dataclass(frozen=True)
class CellsFound:
    """Cells of a column, by how they were read. `values` are those of numbers of which nothing is declared."""

    reading: Reading
    n_missing: int
    states: tuple[str, ...] = ()
    values: Values | None = None
    integers: bool = True
    """Whether numbers were written, or typed, as whole numbers."""
    whole: bool = False
    guessed: bool = False
    dates: bool = False
    """Whether the states are dates or times by their type."""
    endless: Wrong | None = None
    """The first cell that reads as a number but is not finite, if the others are numbers, too."""

    def __add__(self, other: CellsFound) -> CellsFound:
        reading = _together(self.reading, other.reading)
        values = self.values if other.values is None else other.values if self.values is None else self.values + other.values
        return CellsFound(
            reading,
            self.n_missing + other.n_missing,
            tuple(dict.fromkeys((*self.states, *other.states))),
            values,
            self.integers and other.integers,
            self.whole or other.whole,
            self.guessed or other.guessed,
            self.dates or other.dates,
            self.endless or other.endless,
        )

    def reread(self, options: Options) -> str | None:
        """How the column must be read again now that all of it was seen, or None if it was read as it should be."""
        if self.reading == "both":
            return "states"
        if self.guessed and self.reading == "states" and reads_as(self.states, options.integers is Finite) == "numbers":
            return "numbers"
        if self.endless is not None:
            raise self.endless
        return None

    def are_states(self, name: str, options: Options) -> bool:
        """Whether these are numbers that are states, by the rule at the door."""
        ruled = name not in options.declared and options.integers is not Real
        return self.reading == "numbers" and ruled and self.values is not None and self.values.are_states

    def variable(self, name: str, options: Options, categories: Categories | None) -> Variable:
        """What the column is; one that is to be cut into bins is a number until the cuts are known."""
        declared = options.declared.get(name)
        if isinstance(declared, Bins) and isinstance(declared.how, tuple):
            declared = declared.finite(name, declared.how)
        if self.reading == "numbers":
            if self.are_states(name, options):
                return Finite(name, map(state_text, sorted((self.values or Values()).few or ())), inferred=True)
            return declared if isinstance(declared, (Finite, Distributed)) else Count(name) if self.whole else Real(name)
        if isinstance(declared, Distributed):
            return declared
        if not self.states:
            return declared if isinstance(declared, Finite) and declared.cuts is not None else Real(name)
        if isinstance(declared, Finite):
            return declared
        if categories is not None and categories.ordered:
            return Finite(name, self.states)
        return Finite(name, sorted_states(self.states), inferred=True)


def _together(a: Reading, b: Reading) -> Reading:
    if "nothing" in (a, b):
        return b if a == "nothing" else a
    return a if a == b else "both"


def found_by(encoder: Encoder, n_rows: int) -> CellsFound:
    """What an encoder found in the rows that it has seen."""
    if isinstance(encoder, Guess):
        settled = found_by(encoder.settled, n_rows)
        reading: Reading = "both" if encoder.mistaken else settled.reading
        return replace(settled, reading=reading, guessed=True, endless=encoder.endless)
    if isinstance(encoder, StateEncoder):
        reading = "states" if encoder.codes else "nothing"
        return CellsFound(reading, encoder.n_missing, tuple(encoder.codes), dates=encoder.dates)
    if isinstance(encoder, Cuts):
        return CellsFound("numbers", encoder.n_missing)
    whole = isinstance(encoder, NumberEncoder) and encoder.whole
    reading = "numbers" if encoder.n_missing < n_rows or whole else "nothing"
    if isinstance(encoder, Undeclared):
        return CellsFound(reading, encoder.n_missing, values=encoder.values, integers=encoder.integers)
    return CellsFound(reading, encoder.n_missing, whole=whole)


def encoder_for(name: str, source: Source, options: Options) -> Encoder:
    """The encoder of a column, by its declaration and by what its source says it is made of."""
    what, kind, missing = options.declared.get(name), source.kind(name), options.missing
    if kind is Kind.OTHER:
        raise DataError(f"the column {name!r} has the type {source.type_of(name)}, not numbers, text, dates or booleans")
    if _is_numeric(what):
        if kind is Kind.TIME:
            raise DataError(f"the column {name!r} has the type {source.type_of(name)}, which cannot be read as numbers")
        if isinstance(what, Bins) and isinstance(what.how, tuple):
            what = what.finite(name, what.how)
        if isinstance(what, Finite):
            return Cuts(what, missing=missing)
        family = what.family if isinstance(what, Distributed) else None
        return NumberEncoder(missing=missing, whole=isinstance(what, Count) or what is Count, family=family)
    if isinstance(what, Finite):
        return StateEncoder(what.states, fixed=True, missing=missing, unknown=options.unknown)
    if kind is Kind.BOOL:
        return StateEncoder(("false", "true"), fixed=True, missing=missing)
    if what is None or what is NumbersStay:
        if kind is Kind.CELLS:
            return Guess(options)
        if kind is Kind.INTEGER and options.integers is not Finite:
            return Undeclared(missing=missing)
        if kind is Kind.NUMBER:
            return Undeclared(missing=missing, integers=False)
        if kind is Kind.NOTHING:
            return NumberEncoder(missing=missing)
    categories = source.categories(name)
    states = [s for s in categories.states if s not in missing] if categories else []
    return StateEncoder(states, fixed=False, missing=missing, dates=kind is Kind.TIME)


def foreseen(name: str, encoder: Encoder, options: Options) -> Variable | None:
    """The variable that a column will be, where that is known before the first row is read."""
    declared = options.declared.get(name)
    if isinstance(encoder, Cuts):
        return encoder.variable
    if isinstance(encoder, StateEncoder) and encoder.fixed:
        return declared if isinstance(declared, Finite) else Finite(name, encoder.codes)
    if isinstance(encoder, NumberEncoder) and not isinstance(encoder, Undeclared) and not isinstance(declared, Bins):
        return declared if isinstance(declared, Distributed) else Count(name) if encoder.whole else Real(name)
    return None


def _is_numeric(what: Any) -> bool:
    binned = isinstance(what, Finite) and what.cuts is not None
    return binned or isinstance(what, (Real, Count, Distributed, Bins)) or what is Real or what is Count
