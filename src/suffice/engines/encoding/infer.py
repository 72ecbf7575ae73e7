"""Inference: what a column is, where nobody declared it.

Cells of a text file are numbers until one of them is not. An encoder that sees some of the cells says what it found, and what was
found in all of them follows by adding (`CellsFound`), whoever read them. A column that turns out to be something else after rows
were already encoded is read once more. Of numbers the different values are known while they are few, or while all of them differ
(`Values`): there is a rule by which numbers that nobody declared are states. What seems strange about a column is said in
`suffice.engines.encoding.doubts`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from suffice.basis.libraries import pc, pt
from suffice.basis.variables import Bins, Count, Distributed, Finite, NumbersStay, Real, Variable, sorted_states, state_text
from suffice.engines.encoding.encode import (
    MARKED,
    NUMBERS,
    SHORT,
    Codes,
    Cuts,
    Encoder,
    NotANumber,
    NumberEncoder,
    StateEncoder,
    Wrong,
    number,
    refuse_mark,
)
from suffice.engines.encoding.sources import Kind, Options, Source
from suffice.engines.steps.blocks import Floats
from suffice.errors import DataError

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
    """What is known of the numbers in a column, in a form that adds. `few` are the different values, None once they are too many;
    `different` the first numbers, None once two of them are equal or one is not whole."""

    n: int = 0
    few: frozenset[float] | None = frozenset()
    whole: bool = True
    different: Floats | None = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, numbers: Floats) -> Values:
        """Those of some cells, of which NaN is missing."""
        present = numbers[~np.isnan(numbers)] if np.isnan(numbers).any() else numbers
        few: frozenset[float] | None = frozenset()
        different: Floats | None = np.empty(0)
        whole = True
        for some in (present[:100], present[100:]):  # enough to see that most columns are neither few nor different
            if len(some) and (few is not None or different is not None):
                whole = whole and bool((np.floor(some) == some).all())
                few = None if few is None else _few(few, some, whole)
                different = _all_different(different, some) if whole else None
        return cls(len(present), few, whole, different)

    def __add__(self, other: Values) -> Values:
        if not self.n:
            return other
        whole = self.whole and other.whole
        few = None if self.few is None or other.few is None else _few(self.few, np.array([*other.few]), whole)
        full = self.different is not None and len(self.different) >= FIRST
        different = None if other.different is None and not full else _all_different(self.different, other.different)
        return Values(self.n + other.n, few, whole, different if whole else None)

    @property
    def are_states(self) -> bool:
        """The rule at the door: two different values, or at most ten whole ones in at least fifty rows."""
        if self.few is None:
            return False
        # Two cells have two values without meaning anything by it.
        return (len(self.few) == 2 < self.n) or (self.whole and 0 < len(self.few) <= STATES and self.n >= ROWS)


def _few(known: frozenset[float], present: Floats, whole: bool) -> frozenset[float] | None:
    """The different values, if there are not too many of them."""
    if not len(present):
        return known
    low, high = float(present.min()), float(present.max())
    if whole and high - low < 2**16:
        found = known.union(low + float(i) for i in np.flatnonzero(np.bincount((present - low).astype(np.int64))))
    else:
        some = [*known, *map(float, np.unique(present[:1000]))]
        rest = present if len(some) > FEW else present[~np.isin(present, some)]
        found = frozenset([*some, *map(float, np.unique(rest[:1000]))])
        if len(found) <= FEW and len(rest) > 1000:
            found |= frozenset(map(float, np.unique(rest)))
    return found if len(found) <= (FEW if whole else 2) else None


def _all_different(known: Floats | None, more: Any) -> Floats | None:
    """The first numbers, sorted, if all of them differ."""
    if known is None or more is None or len(known) >= FIRST:
        return known
    more = more[: FIRST - len(known)]
    together = np.sort(np.concatenate([known, more]))
    return together if (together[1:] != together[:-1]).all() else None


_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)

PEEK = 1000
"""Rows by which a column is first taken for numbers or for states."""


class Guess:
    """The encoder of cells of a text file of which nothing is declared, with its decimal mark; `reading` says how they must be
    read, once this is known."""

    settled: Undeclared | StateEncoder
    """The encoder that this one became with its first chunk."""

    def __init__(self, options: Options, decimal: str, reading: str | None = None) -> None:
        self.options, self.decimal, self.reading = options, decimal, reading
        self.mistaken = False
        self.endless: NotANumber | None = None
        self._rows = 0

    @property
    def n_missing(self) -> int:
        return self.settled.n_missing

    def encode(self, chunk: Any) -> Codes | Floats | None:
        """The codes or numbers of a chunk; None once it is clear that this column must be read again."""
        if not self._rows:
            self._settle(chunk.slice(0, PEEK))
        row, self._rows = self._rows, self._rows + len(chunk)
        if self.mistaken:
            return None
        try:
            return self.settled.encode(chunk)
        except NotANumber as wrong:
            if row or wrong.endless:
                # Text may still follow a number that is not finite, and would make it a state like any other.
                wrong.row += row
                self.endless = self.endless or (wrong if wrong.endless else None)
                self.mistaken = not wrong.endless
                return np.zeros(len(chunk)) if wrong.endless else None
            self.settled = StateEncoder((), fixed=False, missing=self.options.missing)
        return self.settled.encode(chunk)

    def _settle(self, cells: Any) -> None:
        """Read all cells as the first ones read, unless it is known how they must be read. Numbers but for thousands marks are
        refused, where cells may be no plain numbers."""
        mark, is_dictionary, missing, reading = self.decimal, pt.is_dictionary(cells.type), self.options.missing, self.reading
        if reading is None:
            some = pc.unique(cells) if is_dictionary else cells
            words = {w for w in some.to_pylist() if w and w not in missing}
            unsure = mark == "," or is_dictionary
            if unsure and all(NUMBERS[mark].fullmatch(w) or MARKED[mark].fullmatch(w) for w in words):
                for row, word in enumerate(cells.to_pylist()):
                    if word in words and MARKED[mark].fullmatch(word):
                        refuse_mark(row, word, mark)
                words = {w.replace(mark, ".") for w in words}
            reading = reads_as(words, self.options.integers is Finite)
        states = reading == "states"
        self.settled = StateEncoder((), fixed=False, missing=missing) if states else Undeclared(missing=missing, decimal=mark)


def is_integer_text(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None


def reads_as(words: Collection[str], integers_finite: bool) -> str:
    """Whether the texts of a column are "numbers", some of them finite, or "states"."""
    parsed = [number(w) for w in words]
    numeric = all(x is not None for x in parsed) and any(x is not None and np.isfinite(x) for x in parsed)
    integers = integers_finite and all(map(is_integer_text, words))
    return "numbers" if not words or (numeric and not integers) else "states"


class Undeclared(NumberEncoder):
    """The encoder of numbers of which nothing is declared: numbers, unless there are few of them. `integers` says that all of
    them were written, or typed, as such."""

    def __init__(self, *, missing: Collection[str] = (), decimal: str = ".", integers: bool = True) -> None:
        super().__init__(missing=missing, decimal=decimal)
        self.values, self.integers = Values(), integers

    def encode(self, chunk: Any) -> Floats:
        numbers = super().encode(chunk)
        self.values += Values.of(numbers)
        words = chunk.dictionary if pt.is_dictionary(chunk.type) else chunk
        if self.integers and pt.is_string(words.type):
            if len(words) <= SHORT:
                text = "".join(filter(None, words.to_pylist()))
                self.integers = not any(mark in text for mark in (self.decimal, "e", "E"))
            else:
                self.integers = not pc.any(pc.match_substring_regex(words, f"[{self.decimal}eE]")).as_py()
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
    """Whether the states are dates or times by their type,"""
    ordered: bool = False
    """or have an order there that is meant."""
    endless: Wrong | None = None
    """The first cell that reads as a number but is not finite, if the others are numbers, too."""

    def __add__(self, other: CellsFound) -> CellsFound:
        reading: Reading = self.reading if other.reading in (self.reading, "nothing") else "both"
        reading = other.reading if self.reading == "nothing" else reading
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
            self.ordered or other.ordered,
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

    def variable(self, name: str, options: Options) -> Variable:
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
        if self.ordered:
            return Finite(name, self.states)
        return Finite(name, sorted_states(self.states), inferred=True)


def cells_found(encoder: Encoder, n_rows: int) -> CellsFound:
    """What an encoder found in the rows that it has seen."""
    if isinstance(encoder, Guess):
        settled = cells_found(encoder.settled, n_rows)
        reading: Reading = "both" if encoder.mistaken else settled.reading
        return replace(settled, reading=reading, guessed=True, endless=encoder.endless)
    if isinstance(encoder, StateEncoder):
        reading = "states" if encoder.codes else "nothing"
        return CellsFound(reading, encoder.n_missing, tuple(encoder.codes), dates=encoder.dates, ordered=encoder.ordered)
    if isinstance(encoder, Cuts):
        return CellsFound("numbers", encoder.n_missing)
    whole = isinstance(encoder, NumberEncoder) and encoder.whole
    reading = "numbers" if encoder.n_missing < n_rows or whole else "nothing"
    if isinstance(encoder, Undeclared):
        return CellsFound(reading, encoder.n_missing, values=encoder.values, integers=encoder.integers)
    return CellsFound(reading, encoder.n_missing, whole=whole)


def encoder_for(name: str, source: Source, options: Options, reading: str | None = None) -> Encoder:
    """The encoder of a column, by its declaration and by what its source says it is made of; cells of text that were read wrongly
    before, by the `reading` that was then found."""
    what, kind, missing, decimal = options.declared.get(name), source.kind(name), options.missing, source.decimal
    if kind is Kind.OTHER:
        raise DataError(f"the column {name!r} has the type {source.type_of(name)}, not numbers, text, dates or booleans")
    numeric = isinstance(what, (Real, Count, Distributed, Bins)) or what is Real or what is Count
    if numeric or (isinstance(what, Finite) and what.cuts is not None):
        if kind is Kind.TIME:
            raise DataError(f"the column {name!r} has the type {source.type_of(name)}, which cannot be read as numbers")
        if isinstance(what, Bins) and isinstance(what.how, tuple):
            what = what.finite(name, what.how)
        if isinstance(what, Finite):
            return Cuts(what, missing=missing, decimal=decimal)
        family = what.family if isinstance(what, Distributed) else None
        whole = isinstance(what, Count) or what is Count
        return NumberEncoder(missing=missing, decimal=decimal, whole=whole, family=family)
    if isinstance(what, Finite):
        return StateEncoder(what.states, fixed=True, missing=missing, unknown=options.unknown)
    if kind is Kind.BOOL:
        return StateEncoder(("false", "true"), fixed=True, missing=missing)
    if what is None or what is NumbersStay:
        if kind is Kind.CELLS:
            return Guess(options, decimal, reading)
        if kind is Kind.INTEGER and options.integers is not Finite:
            return Undeclared(missing=missing)
        if kind is Kind.NUMBER:
            return Undeclared(missing=missing, integers=False)
        if kind is Kind.NOTHING:
            return NumberEncoder(missing=missing)
    categories = source.categories(name) if kind is Kind.CATEGORY else None
    if categories is None:
        return StateEncoder((), fixed=False, missing=missing, dates=kind is Kind.TIME)
    states = [s for s in categories.states if s not in missing]
    return StateEncoder(states, fixed=False, missing=missing, ordered=categories.ordered)


def variable_before_reading(name: str, encoder: Encoder, options: Options) -> Variable | None:
    """The variable that a column will be, where that is known before the first row is read."""
    declared = options.declared.get(name)
    if isinstance(encoder, Cuts):
        return encoder.variable
    if isinstance(encoder, StateEncoder) and encoder.fixed:
        return declared if isinstance(declared, Finite) else Finite(name, encoder.codes)
    if isinstance(encoder, NumberEncoder) and not isinstance(encoder, Undeclared) and not isinstance(declared, Bins):
        return declared if isinstance(declared, Distributed) else Count(name) if encoder.whole else Real(name)
    return None
