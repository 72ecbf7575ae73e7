"""Configurations of finite variables as flat row-major indices: their number, alignment and names; which rows are equal; and
the statistic that a learner asks for, of such configurations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Ints
from suffice.errors import StatisticsError, TooLarge, bytes_in_words, listing
from suffice.statistics.derived import RowFormula
from suffice.variables import Finite, sorted_states

GONE = 1e-10
"""What is left of a weight after subtraction is rounding if it is a smaller share of it than this."""

Frozen = TypeVar("Frozen", bound="npt.NDArray[Any]")

MAX_CELLS = 2**28
"""No dense table has more cells than this: 2 GiB of numbers."""


def freeze(array: Frozen) -> Frozen:
    """The array, read-only from now on."""
    array.setflags(write=False)
    return array


def sizes(variables: Iterable[Finite]) -> tuple[int, ...]:
    return tuple(v.n_states for v in variables)


def n_configurations(variables: Iterable[Finite]) -> int:
    return math.prod(sizes(variables))


def checked_cells(variables: Sequence[Finite], what: str) -> int:
    """The number of cells of a dense table of these variables, refused while it is still only a number."""
    n = n_configurations(variables)
    if n > MAX_CELLS:
        raise TooLarge(
            f"{what} over {listing([v.name for v in variables])} would have {n:,} cells ({bytes_in_words(8.0 * n)}); "
            f"the limit is {MAX_CELLS:,} cells"
        )
    return n


def common_variable(a: Finite, b: Finite, sides: tuple[str, str] = ("one side", "the other")) -> Finite:
    """The variable that two statistics can share: inferred states are united, declared ones must be the same.

    >>> common_variable(Finite("x", ["a", "b"], inferred=True), Finite("x", ["c"], inferred=True)).states
    ('a', 'b', 'c')
    """
    if a.cuts != b.cuts:
        raise StatisticsError(f"variable {a.name!r} is {_cut(a)} in {sides[0]} and {_cut(b)} in {sides[1]}")
    family = a.family if b.family is None else b.family
    if a.states == b.states:
        return replace(b if a.inferred else a, family=family)
    if a.inferred and b.inferred:
        return Finite(a.name, sorted_states([*a.states, *b.states]), cuts=a.cuts, inferred=True, family=family)
    fixed, other = (b, a) if a.inferred else (a, b)
    if set(other.states) <= set(fixed.states) and (other.inferred or len(other.states) == len(fixed.states)):
        return replace(fixed, family=family)
    apart = zip(sides, (set(a.states) - set(b.states), set(b.states) - set(a.states)), strict=True)
    only = [f"only {side} has {listing(sorted(own))}" for side, own in apart if own]
    raise StatisticsError(f"the declared states of variable {a.name!r} differ: {' and '.join(only)}")


def _cut(v: Finite) -> str:
    return "not cut" if v.cuts is None else f"cut at {list(v.cuts)}"


def move_keys(keys: Ints, source: Sequence[Finite], target: Sequence[Finite]) -> Ints:
    """Flat indices over `source`, as those over `target`: some of its variables, in any order, with the same or more states."""
    if tuple(source) == tuple(target):
        return keys
    place = {v.name: (v, digit) for v, digit in zip(source, np.unravel_index(keys, sizes(source)) if source else (), strict=True)}
    result = np.zeros(len(keys), dtype=np.int64)
    for variable in target:
        old, digit = place[variable.name]
        if old.states != variable.states:
            digit = np.array([variable.code(s) for s in old.states], dtype=np.int64)[digit]
        result = result * variable.n_states + digit
    return result


def project_keys(keys: Ints, source: Sequence[Finite], names: Sequence[str]) -> Ints:
    """Flat indices over the variables `names` of `source`, in that order."""
    by = {v.name: v for v in source}
    return move_keys(keys, source, [by[name] for name in names])


def describe(key: int, variables: Sequence[Finite]) -> str:
    """A configuration in words.

    >>> describe(1, [Finite("x", ["a", "b"])])
    "x='b'"
    """
    digits = np.unravel_index(int(key), sizes(variables)) if variables else ()
    return ", ".join(f"{v.name}={v.states[int(d)]!r}" for v, d in zip(variables, digits, strict=True))


def rename_variables(variables: Sequence[Finite], by: Mapping[str, Finite]) -> tuple[Finite, ...]:
    return tuple(by.get(v.name, v) for v in variables)


COUNTED = 2**16
"""Up to so many kinds of rows, those that occur are found by marks, which is faster than sorting."""


def distinct(columns: Iterable[npt.NDArray[Any]], n_rows: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The first row of each kind of equal rows, and the kind of each row.

    >>> distinct([np.array([1, 0, 1]), np.array([2.5, 2.5, 2.5])], 3)
    (array([1, 0]), array([1, 0, 1]))
    """
    group, size = np.zeros(n_rows, np.int64), 1
    for column in columns:
        if column.dtype.kind == "f":
            column = np.unique(column, return_inverse=True)[1]
        n = int(column.max(initial=0)) + 1
        if size * n > 2**62:
            group = np.unique(group, return_inverse=True)[1].astype(np.int64)
            size = n_rows
        group = group * n + column
        size *= n
    if size <= max(COUNTED, 2 * n_rows):
        place = np.full(size, -1, np.intp)
        place[group[::-1]] = np.arange(len(group))[::-1]  # of equal rows, the first is written last
        seen = place >= 0
        return place[seen], (np.cumsum(seen) - 1)[group]
    _, first, inverse = np.unique(group, return_index=True, return_inverse=True)
    return first, inverse


def alike(lines: npt.NDArray[Any]) -> Iterator[Ints]:
    """The numbers of the lines that are equal, group by group.

    >>> [same.tolist() for same in alike(np.array([[1, 0], [0, 0], [1, 0]]))]
    [[1], [0, 2]]
    """
    if not len(lines) or (lines == lines[0]).all():  # most often there is nothing to sort
        yield from [np.arange(len(lines))] if len(lines) else []
        return
    _, inverse, counts = np.unique(keys_of(lines), return_inverse=True, return_counts=True)
    yield from np.split(np.argsort(inverse, kind="stable"), np.cumsum(counts)[:-1])


def keys_of(lines: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Lines as single values that can be sorted."""
    packed = np.ascontiguousarray(np.packbits(lines, axis=1) if lines.dtype == bool else lines)
    return packed.view(np.dtype((np.void, packed.shape[1] * packed.itemsize))).reshape(-1)


@dataclass(frozen=True)
class Request:
    """A contingency table of `finite`, or, if `real` is not empty, moments of `real` within each configuration of `finite`, and
    the sums of columns that are `derived` from these.

    >>> Request(("smoke", "cancer"))
    Request(finite=('smoke', 'cancer'), real=())
    """

    finite: tuple[str, ...]
    real: tuple[str, ...] = ()
    derived: tuple[RowFormula, ...] = field(default=(), repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return self.finite + self.real

    @property
    def scope(self) -> tuple[frozenset[str], frozenset[str]]:
        """What the statistic is about, whatever the order of its axes."""
        return frozenset(self.finite), frozenset(self.real)
