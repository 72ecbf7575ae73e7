"""The different values of a column of numbers, while they are few or while all of them differ; and the rule at the door by which
numbers that nobody declared are states."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FEW = 20
"""Undeclared whole numbers with no more different values than this are noted where they stay numbers: they may be states."""

STATES = 10
"""Undeclared whole numbers with no more different values than this are states,"""

ROWS = 50
"""if at least so many rows have one."""

FIRST = 2**14
"""Numbers that are looked at for whether all of them differ."""

COLLISIONS = 10.0
"""Whole numbers that all differ are taken for identifiers if so many pairs of them would be equal by chance."""

_IDENTIFIER = re.compile(r"(?:^|[^a-z])(?:id|uid|key|index|row|nr|uuid|guid)$|(?<=[a-z])(?:ID|Id|Key|Index|Nr)$")


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
        whole = self.whole and other.whole
        few = None if self.few is None or other.few is None else _only_few(self.few | other.few, whole)
        different = None if other.different is None and not self._full else _all_different(self.different, other.different)
        return Values(self.n + other.n, few, whole, different if whole else None)

    @property
    def _full(self) -> bool:
        return self.different is not None and len(self.different) >= FIRST

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

    def run(self, name: str) -> bool:
        """Whether these are running numbers or others that only tell rows apart: whole, all of them different, and too many for
        that to be chance, or under a name that says so.

        >>> Values.of(np.arange(100.0)).run("x")
        True
        >>> Values.of(np.arange(100.0) ** 3).run("x"), Values.of(np.arange(100.0) ** 3).run("userID")
        (False, True)
        """
        x = self.different
        if x is None or len(x) < FEW:
            return False
        expected = len(x) * (len(x) - 1) / 2 / (x.max() - x.min() + 1)
        return bool(expected > COLLISIONS) or named_as_identifier(name)


def named_as_identifier(name: str) -> bool:
    """Whether a column is called an identifier.

    >>> [named_as_identifier(n) for n in ("id", "patient_id", "PatientID", "Unnamed: 0", "paid", "valid")]
    [True, True, True, True, False, False]
    """
    return name == "Unnamed: 0" or _IDENTIFIER.search(name) is not None or name in ("ID", "Id", "KEY", "INDEX", "NR")


def _only_few(values: frozenset[float], whole: bool) -> frozenset[float] | None:
    return values if len(values) <= (FEW if whole else 2) else None


def _all_different(known: Floats | None, more: Any) -> Floats | None:
    """The first numbers, sorted, if all of them differ."""
    if known is None or more is None or len(known) >= FIRST:
        return known
    more = more[: FIRST - len(known)]
    together = np.unique(np.concatenate([known, more]))
    return together if len(together) == len(known) + len(more) else None
