"""Counts: how much weight of the data, or of a prior's imagination, fell into each cell of a table.

A cell is a configuration of finite variables, as a flat row-major index: their number, alignment and names; which rows are equal;
and the statistic that a learner asks for, of such configurations and of columns derived from others, row by row. A derived column
is a plain value that can be sent, compared and written to a file; engines know of formulas only by name. At the end, arrays as
lists for JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.basis.libraries import sc
from suffice.basis.variables import Finite, sorted_states
from suffice.errors import FormatError, StatisticsError, TooLarge, bytes_in_words, listing, nearest

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
    return math.prod(v.n_states for v in variables)


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
    """The variable that two statistics can share: inferred states are united, declared ones must be the same."""
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
    """A configuration in words."""
    digits = np.unravel_index(int(key), sizes(variables)) if variables else ()
    return ", ".join(f"{v.name}={v.states[int(d)]!r}" for v, d in zip(variables, digits, strict=True))


COUNTED = 2**16
"""Up to so many kinds of rows, those that occur are found by marks, which is faster than sorting."""


def distinct(columns: Iterable[npt.NDArray[Any]], n_rows: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The first row of each kind of equal rows, and the kind of each row."""
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


def equal_lines(lines: npt.NDArray[Any]) -> Iterator[Ints]:
    """The numbers of the lines that are equal, group by group."""
    if not len(lines) or (lines == lines[0]).all():  # most often there is nothing to sort
        yield from [np.arange(len(lines))] if len(lines) else []
        return
    _, inverse, counts = np.unique(keys_of(lines), return_inverse=True, return_counts=True)
    yield from np.split(np.argsort(inverse, kind="stable"), np.cumsum(counts)[:-1])


def keys_of(lines: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Lines as single values that can be sorted."""
    packed = np.ascontiguousarray(np.packbits(lines, axis=1) if lines.dtype == bool else lines)
    return packed.view(np.dtype((np.void, packed.shape[1] * packed.itemsize))).reshape(-1)


def log_factorial(x: Array) -> Array:
    """ln x!."""
    return np.asarray(sc.gammaln(x + 1.0))


FORMULAS: dict[str, Callable[[Array, float], Array]] = {
    "ln x": lambda x, n: np.log(x),
    "ln(1 - x)": lambda x, n: np.log1p(-x),
    "ln x!": lambda x, n: log_factorial(x),
    "ln C(n, x)": lambda x, n: np.asarray(-sc.betaln(n - x + 1.0, x + 1.0) - np.log(n + 1.0)),
    "ln C(x + n - 1, x)": lambda x, n: np.asarray(-sc.betaln(n, x + 1.0) - np.log(n + x)),  # x failures before n successes
}
"""What may be summed of a column x, by name; n is a number that is known."""
WAYS = ("ln x!", "ln C(n, x)", "ln C(x + n - 1, x)")
"""Those that are logarithms of whole numbers from 1 up."""


@dataclass(frozen=True, order=True)
class RowFormula:
    """A formula of FORMULAS, of each row of a column."""

    column: str
    formula: str
    n: float = 0.0

    def __post_init__(self) -> None:
        if self.formula not in FORMULAS:
            raise StatisticsError(f"there is no formula {self.formula!r} of {self.column!r}; there are {', '.join(FORMULAS)}")

    @property
    def least(self) -> float:
        """What no row is below: the logarithm of a number of ways is at least 0."""
        return 0.0 if self.formula in WAYS else -np.inf

    def values(self, x: Array) -> Array:
        """What it is of each row; not finite where there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return FORMULAS[self.formula](x, self.n)


def log_factorials(columns: Sequence[str]) -> tuple[RowFormula, ...]:
    """ln x! of each of some columns."""
    return tuple(RowFormula(c, "ln x!") for c in columns)


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
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    scope: tuple[frozenset[str], frozenset[str]] = field(init=False, repr=False, compare=False)
    """What the statistic is about, whatever the order of its axes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", (*self.finite, *self.real))
        object.__setattr__(self, "scope", (frozenset(self.finite), frozenset(self.real)))


@dataclass(frozen=True, eq=False)
class Counts:
    """A contingency table, dense or sparse.

    Dense: `keys` is None and `values` has one axis per variable. Sparse: `values[i]` is the count of the cell with the
    row-major flat index `keys[i]`, and every cell that is not listed holds `background` (what a prior imagines there).

    >>> x = Finite("x", ["a", "b"])
    >>> (Counts((x,), [3, 1]) + Counts((x,), [1, 1])).values
    array([4., 2.])
    """

    variables: tuple[Finite, ...]
    values: Array
    keys: Ints | None = None
    background: float = 0.0
    names: tuple[str, ...] = field(init=False, compare=False)
    request: Request = field(init=False, compare=False)
    """What it answers."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        object.__setattr__(self, "names", tuple(v.name for v in self.variables))
        object.__setattr__(self, "request", Request(self.names))
        values = np.array(self.values, dtype=np.float64)
        shape = sizes(self.variables)
        if self.keys is None:
            if values.shape != shape:
                raise StatisticsError(f"counts of {[v.name for v in self.variables]} need the shape {shape}, not {values.shape}")
            if self.background:
                raise StatisticsError("a dense table has no background: every cell is listed")
        else:
            keys = np.array(self.keys, dtype=np.int64)
            if values.shape != keys.shape or keys.ndim != 1:
                raise StatisticsError(f"{keys.size} keys do not fit {values.size} counts")
            if keys.size and (keys[0] < 0 or keys[-1] >= n_configurations(self.variables) or np.any(np.diff(keys) <= 0)):
                raise StatisticsError("the keys of a sparse table must increase and lie within the table")
            object.__setattr__(self, "keys", freeze(keys))
        object.__setattr__(self, "values", freeze(values))

    @property
    def total(self) -> float:
        """The weight of all cells together."""
        unlisted = 0 if self.keys is None else n_configurations(self.variables) - len(self.keys)
        return float(self.values.sum()) + self.background * unlisted

    def listed(self) -> tuple[Ints, Array]:
        """The cells that are not empty: their flat indices, increasing, and their counts."""
        if self.keys is not None:
            full = self.values != 0
            return (self.keys, self.values) if full.all() else (self.keys[full], self.values[full])
        flat = self.values.reshape(-1)
        keys = np.flatnonzero(flat)
        return keys, flat[keys]

    def at(self, keys: Ints) -> Array:
        """The counts of the cells with these flat indices."""
        if self.keys is None:
            return np.asarray(self.values.reshape(-1)[keys])
        result = np.full(len(keys), self.background)
        if len(self.keys):
            places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            found = self.keys[places] == keys
            result[found] = self.values[places[found]]
        return result

    def dense(self) -> Array:
        """The whole table as an array; refused before allocation where it would not fit."""
        if self.keys is None:
            return self.values
        table = np.full(checked_cells(self.variables, "a table"), self.background)
        table[self.keys] = self.values
        return table.reshape(sizes(self.variables))

    def marginal(self, names: Sequence[str]) -> Counts:
        """The counts of some of the variables, in the order of `names`.

        >>> x, y = Finite("x", ["a", "b"]), Finite("y", ["a", "b"])
        >>> Counts((x, y), [[1, 2], [3, 4]]).marginal(["y"]).values
        array([4., 6.])
        """
        if tuple(names) == self.names:
            return self
        kept = tuple(self._variable(n) for n in names)
        if self.keys is None:
            dropped = tuple(i for i, v in enumerate(self.variables) if v.name not in names)
            summed = self.values.sum(axis=dropped)
            left = [n for n in self.names if n in names]
            return Counts(kept, np.transpose(summed, [left.index(n) for n in names]))
        places = project_keys(self.keys, self.variables, names)
        keys, inverse = np.unique(places, return_inverse=True)
        background = self.background * (n_configurations(self.variables) // n_configurations(kept))
        values: Array = np.bincount(inverse, self.values - self.background, len(keys)).astype(np.float64) + background
        return Counts(kept, values, keys, background)

    def recoded(self, by: Mapping[str, Finite]) -> Counts:
        """The same counts over the same variables with other (more, or reordered) states."""
        target = tuple(by.get(v.name, v) for v in self.variables)
        if target == self.variables:
            alike = all(a.inferred == b.inferred for a, b in zip(target, self.variables, strict=True))
            return self if alike else replace(self, variables=target)
        if self.keys is not None and self.background:
            raise StatisticsError(f"imagined counts of {list(self.names)} cannot take other states")
        keys, values = self.listed()
        keys = move_keys(keys, self.variables, target)
        if self.keys is None:
            table = np.zeros(checked_cells(target, "a table"))
            table[keys] = values
            return Counts(target, table.reshape(sizes(target)))
        order = np.argsort(keys)
        return Counts(target, values[order], keys[order])

    def weighing(self, share: float) -> Counts:
        """The same counts, each weighing only so much of itself."""
        return replace(self, values=share * self.values, background=share * self.background)

    def __add__(self, other: Counts) -> Counts:
        if other.variables != self.variables:
            raise StatisticsError(f"counts of {list(self.names)} do not add to counts of {list(other.names)}")
        if self.keys is None and other.keys is None:
            return Counts(self.variables, self.values + other.values)
        if self.keys is not None and other.keys is not None:
            keys = np.union1d(self.keys, other.keys)
            return Counts(self.variables, self.at(keys) + other.at(keys), keys, self.background + other.background)
        table, listed = (self, other) if self.keys is None else (other, self)
        values = np.asarray(table.values + listed.background)
        values.reshape(-1)[listed.keys] = table.values.reshape(-1)[listed.keys] + listed.values
        return Counts(self.variables, values)

    def __sub__(self, other: Counts) -> Counts:
        """What is left when `other` is taken away; a cell that would fall below zero is refused by name."""
        result = self + other.weighing(-1.0)
        keys = np.arange(result.values.size) if result.keys is None else result.keys
        values, was = result.values.reshape(-1), self.at(keys)
        below = values < -GONE * was
        if np.any(below) or result.background < 0:
            cell = describe(int(keys[np.argmax(below)]), self.variables) if np.any(below) else "the cells that are not listed"
            raise StatisticsError(f"taking these counts away leaves less than nothing at {cell}: they were never part of the sum")
        values = np.where(values > GONE * was, values, 0.0)
        if result.keys is None:
            return Counts(result.variables, values.reshape(result.values.shape))
        kept = (values != result.background) | (result.background != 0)
        return Counts(result.variables, values[kept], keys[kept], result.background)

    def __eq__(self, other: object) -> bool:
        """The same counts of the same variables, dense or sparse."""
        if not isinstance(other, Counts) or self.variables != other.variables or self.background != other.background:
            return False
        return all(np.array_equal(a, b) for a, b in zip(self.listed(), other.listed(), strict=True))

    __hash__ = None  # type: ignore[assignment]

    def _variable(self, name: str) -> Finite:
        if name not in self.names:
            raise StatisticsError(f"there are no counts of {name!r} here{nearest(name, self.names)}")
        return self.variables[self.names.index(name)]

    def __repr__(self) -> str:
        kind = "" if self.keys is None else f", sparse, {len(self.keys):,} listed"
        shape = "×".join(map(str, sizes(self.variables))) or "1"
        return f"Counts({' × '.join(self.names) or '()'}: {shape} cells{kind}, total {self.total:g})"


def flat(array: Any, *, in_text: bool = False) -> list[Any]:
    """An array as a list, None for NaN; or every number that is not finite `in_text`: "nan", "inf", "-inf"."""
    numbers = np.asarray(array, dtype=np.float64).reshape(-1).tolist()
    return [x if math.isfinite(x) else str(x) for x in numbers] if in_text else [None if math.isnan(x) else x for x in numbers]


def array_of(numbers: Any, *, finite: bool = True) -> Any:
    """The array that `flat` wrote, in one dimension."""
    array = np.array([np.nan if x is None else float(x) for x in (numbers if isinstance(numbers, list) else [numbers])])
    if finite and np.isinf(array).any():
        raise FormatError("this file holds a number that is not finite")
    return array
