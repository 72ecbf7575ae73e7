"""Found: what the cells of a column turned out to be, as a sum over parts of the rows.

An encoder sees some of the cells and says what it found; what was found in all of them follows by adding, whoever read them. From
that it is settled what the column is, or that it must be read again: as states, since some cells were numbers and others not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from suffice.engines.encode import Cuts, Numbers, States, Wrong
from suffice.engines.infer import FEW, Guess, Integers, reads_as
from suffice.engines.options import Options
from suffice.engines.sources import Categories, Source
from suffice.variables import Bins, Count, Finite, Real, Variable, sorted_states

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


def found_by(encoder: States | Numbers | Cuts | Guess, n_rows: int) -> Found:
    """What an encoder found in the rows that it has seen."""
    if isinstance(encoder, Guess):
        few = frozenset(encoder.few.values) if encoder.few.alive else None
        settled = found_by(encoder.settled, n_rows)
        reading: Reading = "both" if encoder.mistaken else settled.reading
        return replace(settled, reading=reading, few=few, guessed=True, endless=encoder.endless)
    if isinstance(encoder, States):
        reading = "states" if encoder.codes else "nothing"
        return Found(reading, encoder.n_missing, tuple(encoder.codes))
    if isinstance(encoder, Cuts):
        return Found("numbers", encoder.n_missing)
    few = frozenset(encoder.few.values) if isinstance(encoder, Integers) and encoder.few.alive else None
    there = encoder.n_missing < n_rows or encoder.whole
    return Found("numbers" if there else "nothing", encoder.n_missing, few=few, whole=encoder.whole)


def categories_of(sources: Sequence[Source], name: str) -> Categories | None:
    """The states that the type of a column declares, in the order of the parts that have them."""
    each = [c for s in sources if (c := s.categories(name)) is not None]
    if not each:
        return None
    return Categories(tuple(dict.fromkeys(w for c in each for w in c.states)), all(c.ordered for c in each))
