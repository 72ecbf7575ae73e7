"""Inference: what a column is, where nobody declared it.

Cells of a text file are numbers until one of them is not. An encoder that sees some of the cells says what it found, and what was
found in all of them follows by adding (`Found`), whoever read them. A column that turns out to be something else after rows were
already encoded is read once more. What seems strange about it is noted.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from suffice.engines.encode import (
    SHORT,
    Codes,
    Cuts,
    Encoder,
    Floats,
    NotANumber,
    Numbers,
    States,
    Wrong,
    is_integer_text,
    number,
    texts,
)
from suffice.engines.engine import identifies
from suffice.engines.sources import Categories, Kind, Options, Source
from suffice.errors import DataError, listed, note
from suffice.libraries import pc, pt
from suffice.variables import Bins, Count, Finite, Real, Variable, sorted_states

FEW = 20
"""Undeclared whole numbers with no more different values than this are noted: they may be states."""


PEEK = 1000
"""Rows by which a column is first taken for numbers or for states."""


MARKS = frozenset({"?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL", "-", "."})
"""Words that often mean a missing cell. Only the empty cell does, unless the user says so; these are noted."""

NUMBERS = 10
"""Different numbers beside which a word or two are noted, even if they are none of the marks."""


def words_among_numbers(states: Collection[str]) -> tuple[str, ...]:
    """The one or two words in a column that would hold numbers without them; nothing if it is no such column.

    Words with digits are values of their own, such as '80+'.

    >>> words_among_numbers(["1.5", "2", "NA"]), words_among_numbers(["2", "4", "more"]), words_among_numbers(["2", "5+"])
    (('NA',), (), ())
    """
    words: list[str] = []
    for state in states:
        if number(state) is None:
            words.append(state)
            if len(words) > 2 or any(c.isdigit() for c in state):
                return ()
    return tuple(words) if len(states) - len(words) >= (2 if MARKS.issuperset(words) else NUMBERS) else ()


def marks_among(states: Collection[str]) -> tuple[str, ...]:
    """The states that look like marks for a missing cell; a minus beside a plus does not, nor a full stop beside a comma.

    >>> marks_among(["?", "no", "yes"]), marks_among(["+", "-"]), marks_among([",", ".", "the"])
    (('?',), (), ())
    """
    meant = {"?", "-", "."} if "," in states else {"-"} if "+" in states else set()
    return tuple(s for s in states if s in MARKS and s not in meant)


class Few:
    """Whether the numbers of a column are whole, and its different values while they are few."""

    def __init__(self) -> None:
        self.values: set[float] = set()
        self.alive = True

    def add(self, numbers: Floats) -> None:
        """Look at more numbers.

        >>> few = Few()
        >>> few.add(np.array([1.0, 2.0, np.nan])); few.alive, sorted(few.values)
        (True, [1.0, 2.0])
        >>> few.add(np.array([0.5])); few.alive
        False
        """
        if not self.alive:
            return
        if len(numbers) <= SHORT:
            some = [x for x in numbers.tolist() if x == x]
            self.values.update(some)
            self.alive = len(self.values) <= FEW and all(x.is_integer() for x in some)
            return
        present = numbers[~np.isnan(numbers)] if np.isnan(numbers).any() else numbers
        if not len(present):
            return
        low, high = float(present.min()), float(present.max())
        if not np.array_equal(np.floor(present[:100]), present[:100]) or not np.array_equal(np.floor(present), present):
            self.alive = False
        elif high - low < 2**16:
            self.values.update(low + float(i) for i in np.flatnonzero(np.bincount((present - low).astype(np.int64))))
        else:
            self.values.update(map(float, np.unique(present)))
        self.alive = self.alive and len(self.values) <= FEW


class Guess:
    """The encoder of cells of a text file of which nothing is declared; `reading` once it is known how they must be read."""

    def __init__(self, options: Options, reading: str | None = None) -> None:
        self.options = options
        self.encoder: Integers | States | None = self._encoder(reading) if reading else None
        self.mistaken = False
        self.endless: NotANumber | None = None
        self._rows = 0

    @property
    def settled(self) -> Integers | States:
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
        if self.mistaken or isinstance(self.encoder, States):
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
        self.encoder.few.alive = self.encoder.few.alive and not _has_points(chunk)
        return numbers

    def _first_guess(self, chunk: Any) -> str:
        if len(chunk) <= SHORT and pt.is_string(chunk.type):
            found = {w for w in chunk.to_pylist() if w and w not in self.options.missing}
            return reads_as(sorted(found), self.options.integers is Finite)
        chunk = chunk.slice(0, PEEK)
        values = chunk.dictionary if hasattr(chunk, "dictionary") else chunk.dictionary_encode().dictionary
        words = [w for w in texts(values) if w is not None and w not in self.options.missing]
        return reads_as(words, self.options.integers is Finite)

    def _encoder(self, reading: str) -> Integers | States:
        missing = self.options.missing
        return States((), fixed=False, missing=missing) if reading == "states" else Integers(missing=missing)


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


class Integers(Numbers):
    """The encoder of whole numbers of which nothing is declared: numbers, unless there are few of them."""

    def __init__(self, *, missing: Collection[str] = ()) -> None:
        super().__init__(missing=missing)
        self.few = Few()

    def encode(self, chunk: Any) -> Floats:
        numbers = super().encode(chunk)
        self.few.add(numbers)
        return numbers


class Weights(Numbers):
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
class Found:
    """Cells of a column, by how they were read. `few` has the values of whole numbers, None if they are many or not whole."""

    reading: Reading
    n_missing: int
    states: tuple[str, ...] = ()
    few: frozenset[float] | None = None
    whole: bool = False
    guessed: bool = False
    endless: Wrong | None = None
    """The first cell that reads as a number but is not finite, if the others are numbers, too."""

    def __add__(self, other: Found) -> Found:
        reading = _together(self.reading, other.reading)
        few = None if self.few is None or other.few is None else self.few | other.few
        return Found(
            reading,
            self.n_missing + other.n_missing,
            tuple(dict.fromkeys((*self.states, *other.states))),
            few if few is not None and len(few) <= FEW else None,
            self.whole or other.whole,
            self.guessed or other.guessed,
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

    def variable(self, name: str, options: Options, categories: Categories | None) -> Variable:
        """What the column is; one that is to be cut into bins is a number until the cuts are known."""
        declared = options.declared.get(name)
        if isinstance(declared, Bins) and isinstance(declared.how, tuple):
            declared = declared.finite(name, declared.how)
        if self.reading == "numbers":
            return declared if isinstance(declared, Finite) else Count(name) if self.whole else Real(name)
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


def found_by(encoder: Encoder, n_rows: int) -> Found:
    """What an encoder found in the rows that it has seen."""
    if isinstance(encoder, Guess):
        settled = found_by(encoder.settled, n_rows)
        reading: Reading = "both" if encoder.mistaken else settled.reading
        return replace(settled, reading=reading, guessed=True, endless=encoder.endless)
    if isinstance(encoder, States):
        reading = "states" if encoder.codes else "nothing"
        return Found(reading, encoder.n_missing, tuple(encoder.codes))
    if isinstance(encoder, Cuts):
        return Found("numbers", encoder.n_missing)
    few = frozenset(encoder.few.values) if isinstance(encoder, Integers) and encoder.few.alive else None
    whole = isinstance(encoder, Numbers) and encoder.whole
    there = encoder.n_missing < n_rows or whole
    return Found("numbers" if there else "nothing", encoder.n_missing, few=few, whole=whole)


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
        return Numbers(missing=missing, whole=isinstance(what, Count) or what is Count)
    if isinstance(what, Finite):
        return States(what.states, fixed=True, missing=missing, unknown=options.unknown)
    if kind is Kind.BOOL:
        return States(("false", "true"), fixed=True, missing=missing)
    if what is None:
        if kind is Kind.CELLS:
            return Guess(options)
        if kind is Kind.INTEGER and options.integers is Real:
            return Integers(missing=missing)
        if kind in (Kind.NUMBER, Kind.NOTHING):
            return Numbers(missing=missing)
    categories = source.categories(name)
    states = [s for s in categories.states if s not in missing] if categories else []
    return States(states, fixed=False, missing=missing)


def foreseen(name: str, encoder: Encoder, options: Options) -> Variable | None:
    """The variable that a column will be, where that is known before the first row is read."""
    if isinstance(encoder, Cuts):
        return encoder.variable
    if isinstance(encoder, States) and encoder.fixed:
        declared = options.declared.get(name)
        return declared if isinstance(declared, Finite) else Finite(name, encoder.codes)
    if isinstance(encoder, Numbers) and not isinstance(encoder, Integers) and not isinstance(options.declared.get(name), Bins):
        return Count(name) if encoder.whole else Real(name)
    return None


def _is_numeric(what: Any) -> bool:
    binned = isinstance(what, Finite) and what.cuts is not None
    return binned or isinstance(what, (Real, Count, Bins)) or what is Real or what is Count


class Notes:
    """What was noted of columns. The user is told it of each of them once, also where they are read again (`told`)."""

    def __init__(self, told: set[object]) -> None:
        self.all: list[str] = []
        self.told = told

    def look(
        self,
        variables: Mapping[str, Variable],
        found: Mapping[str, Found],
        source: Source,
        options: Options,
        n_rows: int,
    ) -> None:
        """Note what may have been meant otherwise among columns that nobody declared."""
        self.tell("few", [n for n, v in variables.items() if isinstance(v, Real) and found[n].few], _about_few)
        self.tell("same", [n for n, v in variables.items() if identifies(v, n_rows)], _about_identifiers)
        states = {n: v.states for n, v in variables.items() if isinstance(v, Finite) and v.inferred}
        text = [n for n in states if source.kind(n) is Kind.CELLS]
        words = {n: some for n in text if (some := words_among_numbers(states[n]))}
        # What is left without the words may be states all the same.
        codes = [n for n in words if options.integers is Finite and all(map(is_integer_text, set(states[n]) - set(words[n])))]
        spoiled = {n: some for n, some in words.items() if n not in codes}
        self.tell("numbers", list(spoiled), lambda names: _about_numbers(names, [spoiled[n] for n in names]))
        marked = {n: marks for n in states if n not in spoiled and (marks := marks_among(states[n]))}
        self.tell("marks", list(marked), lambda names: _about_marks(names, [marked[n] for n in names]))

    def tell(self, kind: str, names: Sequence[str], sentence: Callable[[Sequence[str]], str]) -> None:
        """Note something of columns."""
        if names and sentence(names) not in self.all:
            self.all.append(sentence(names))
        untold = [n for n in names if (kind, n) not in self.told]
        self.told.update((kind, n) for n in untold)
        if untold:
            note(sentence(untold))

    def say(self, message: str) -> None:
        """Note something else."""
        self.all.append(message)
        note(message)


def _about_few(names: Sequence[str]) -> str:
    return (
        f"{listed(names)}: whole numbers with at most {FEW} different values, taken for real numbers; "
        "if they are codes of states, say so: integers=Finite or variables=, or --finite on the command line"
    )


def _about_identifiers(names: Sequence[str]) -> str:
    return f"{listed(names)}: nearly as many states as rows, as in an identifier; searches leave such columns out"


def _about_numbers(names: Sequence[str], words: Sequence[Sequence[str]]) -> str:
    found, remedy = _as_missing(words)
    return f"{listed(names)}: numbers but for {found}, and so taken for states; if that means a missing cell, say so: {remedy}"


def _about_marks(names: Sequence[str], words: Sequence[Sequence[str]]) -> str:
    found, remedy = _as_missing(words)
    return f"{listed(names)}: {found} is taken for a state, as only an empty cell is missing; if it means that, say so: {remedy}"


def _as_missing(words: Sequence[Sequence[str]]) -> tuple[str, str]:
    """Words for a sentence, and how to say that they mean a missing cell."""
    every = list(dict.fromkeys(w for some in words for w in some))
    options = " ".join(f"--missing {shlex.quote(w)}" for w in every)
    return listed(every), f"missing={json.dumps(every, ensure_ascii=False)}, or {options} on the command line"
