"""Steps that are alike: those with the same transition, and those that show the same states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.sequences.lagged import places_of
from suffice.errors import FitError
from suffice.statistics.counts import distinct

Ints = npt.NDArray[np.int64]

FEW = 2**16
"""Codes below this are looked up, not sorted."""

GLANCE = 2**12
"""So many steps often show all codes that there are."""


def steps_of(lengths: Ints) -> tuple[Ints, Ints]:
    """Where sequences of these lengths begin, one more for the end; and the place of each step in its sequence.

    >>> steps_of(np.array([2, 1]))
    (array([0, 2, 3]), array([0, 1, 0]))
    """
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), places_of(lengths)


def _by_code(column: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int32], Ints]:
    """The place of each cell's code among the codes that occur, and these."""
    there = np.zeros(int(column.max(initial=0)) + 1, np.bool_)
    there[column[:GLANCE]] = True
    if not there.all():
        there[column] = True
    if there.all():
        return column.astype(np.int32), np.arange(len(there))
    return (np.cumsum(there, dtype=np.int32) - 1)[column], np.flatnonzero(there)


class Kinds(NamedTuple):
    """Steps that are alike: the kind of each step, and of each kind its phase and codes."""

    kind: npt.NDArray[np.int32]
    phase: Ints
    codes: dict[str, Ints]

    @classmethod
    def of(cls, phase: Ints | int, columns: Mapping[str, npt.NDArray[Any]]) -> Kinds:
        """Kinds by the codes of columns and by the phase, unless that is the same for all steps."""
        apart = [] if isinstance(phase, int) else [phase]
        cells = [*apart, *columns.values()]
        if len(cells) == 1 and int(cells[0].max(initial=0)) < FEW:
            kind, first = _by_code(cells[0])
            codes = dict.fromkeys(columns, first)
            return cls(kind, np.full(len(first), phase) if not apart else first, codes)
        rows, inverse = distinct(cells, len(cells[0]))
        codes = {name: column[rows].astype(np.int64) for name, column in columns.items()}
        return cls(inverse.astype(np.int32), np.full(len(rows), phase) if not apart else phase[rows], codes)  # type: ignore[index]

    def of_phase(self, number: int) -> tuple[npt.NDArray[np.intp], dict[str, Ints]]:
        """The kinds of a phase and their codes."""
        some = np.flatnonzero(self.phase == number)
        return some, {name: codes[some] for name, codes in self.codes.items()}


class ImpossibleSequence(FitError):
    """A sequence without probability under the parameters: the number of its block, and the step there at which it is lost."""
