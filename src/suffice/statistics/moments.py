"""Moments: count, mean and centred scatter of real columns, within each configuration of finite ones.

They add by Chan's pairwise update, with means kept to twice the digits of a double:

    mean = mean_a + d n_b/n,   scatter = scatter_a + scatter_b + d dᵀ n_a n_b/n,   d = mean_b − mean_a

The difference d of two means of 1e9 would lose what their rounding lost, so a mean is `mean + rest`, the rest being what the
double could not hold. Chan, Golub & LeVeque 1983, The American Statistician 37, p. 242.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.basis.variables import Finite
from suffice.errors import StatisticsError, nearest
from suffice.statistics.counts import GONE, Request, RowFormula, distinct, freeze, move_keys, n_configurations, project_keys


class Spread(NamedTuple):
    """Groups of rows: weight (g,), mean and its rest (g, k), scatter (g, k, k)."""

    weight: Array
    mean: Array
    rest: Array
    scatter: Array


def merge_spreads(a: Spread, b: Spread) -> Spread:
    """The moments of the rows behind both, group by group."""
    count = a.weight + b.weight
    both = ((a.weight > 0) & (b.weight > 0))[:, None]
    share = b.weight / np.where(count > 0, count, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        step = np.where(both, (b.mean - a.mean) + (b.rest - a.rest), 0.0)
    from_a = (a.weight > 0)[:, None]
    mean, rest = add_exactly(np.where(from_a, a.mean, b.mean), np.where(from_a, a.rest, b.rest), step * share[:, None])
    across = step[:, :, None] * step[:, None, :] * (a.weight * share)[:, None, None]
    return Spread(count, mean, rest, a.scatter + b.scatter + across)


def subtract_spread(a: Spread, b: Spread, left: npt.NDArray[np.bool_]) -> Spread:
    """The moments of the rows of a without those of b; groups that are not `left` are empty."""
    count = np.where(left, a.weight - b.weight, 0.0)
    gap = np.where(left[:, None], (a.mean - b.mean) + (a.rest - b.rest), 0.0)
    step = gap * (b.weight / np.where(left, count, 1.0))[:, None]
    mean, rest = add_exactly(a.mean, a.rest, step)
    off = gap + step
    share = b.weight * count / np.where(a.weight > 0, a.weight, 1.0)
    scatter = a.scatter - b.scatter - off[:, :, None] * off[:, None, :] * share[:, None, None]
    kept = left[:, None]
    return Spread(count, np.where(kept, mean, 0.0), np.where(kept, rest, 0.0), np.where(kept[:, :, None], scatter, 0.0))


def pool_spreads(parts: Spread, group: npt.NDArray[np.intp], n_groups: int) -> Spread:
    """The moments of each pool of groups: part i goes to the pool group[i]."""
    count: Array = np.bincount(group, parts.weight, n_groups).astype(np.float64)
    k = parts.mean.shape[1]
    first = np.zeros((n_groups, k))
    heavy = np.flatnonzero(parts.weight > 0)[::-1]
    first[group[heavy]] = parts.mean[heavy]
    from_first = (parts.mean - first[group]) + parts.rest
    weighted = np.zeros((n_groups, k))
    np.add.at(weighted, group, from_first * parts.weight[:, None])
    centre = weighted / np.where(count > 0, count, 1.0)[:, None]
    off = from_first - centre[group]
    scatter = np.zeros((n_groups, k, k))
    np.add.at(scatter, group, parts.scatter + parts.weight[:, None, None] * off[:, :, None] * off[:, None, :])
    mean, rest = add_exactly(first, np.zeros_like(first), centre)
    return Spread(count, mean, rest, scatter)


def settle_spread(parts: Spread) -> Spread:
    """The same moments, each mean the nearest double, and the scatter of a constant column exactly zero. Rows that are all 0.1,
    weighted, have a mean that is off by a little, and so a scatter that is only rounding: far below that of any two doubles that
    differ."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is beyond the largest double is refused by who needs it
        mean, rest = add_exactly(parts.mean, np.zeros_like(parts.rest), parts.rest)
        floor = parts.weight[:, None] * (0.05 * np.finfo(np.float64).eps * mean) ** 2
    own = np.einsum("gii->gi", parts.scatter)
    varies = (own > floor) | ~np.isfinite(own)
    return Spread(parts.weight, mean, rest, np.where(varies[:, :, None] & varies[:, None, :], parts.scatter, 0.0))


def add_exactly(mean: Array, rest: Array, step: Array) -> tuple[Array, Array]:
    """mean + rest + step as a double and what it could not hold (Knuth's two-sum)."""
    total = mean + step
    part = total - mean
    return total, rest + ((mean - (total - part)) + (step - part))


@dataclass(frozen=True, eq=False)
class Cases:
    """Rows of a component without finite unknowns, summed up: the moments of its observed numbers by its observed codes."""

    codes: npt.NDArray[Any]
    spread: Spread

    def __add__(self, other: Cases) -> Cases:
        codes = np.concatenate([self.codes, other.codes], axis=1)
        parts = Spread(*(np.concatenate([a, b]) for a, b in zip(self.spread, other.spread, strict=True)))
        first, inverse = distinct(codes, codes.shape[1])
        return Cases(codes[:, first], pool_spreads(parts, inverse, len(first)))


@dataclass(frozen=True, eq=False)
class Moments:
    """For each seen configuration g (its flat index is keys[g]) of the finite `variables`:

        count[g]      Σ w                      (a prior: κ, the imagined rows behind the mean)
        df[g]         Σ w                      (a prior: ν, the imagined rows behind the variance)
        mean[g]       Σ w x / Σ w              (`rest` is what of it a double cannot hold)
        scatter[g]    Σ w (x − mean)(x − mean)ᵀ
        sums[g]       Σ w f(x), one for each of the columns `derived` from these (NaN where it is not known)

    Moments add by Chan's pairwise update, which never forms the sum of squares: a mean of 1e9 costs no digits.
    A configuration that is not listed holds `background`: a single group of moments, what a prior imagines everywhere.

    >>> a = Moments((), ("x",), [0], [2.0], [[1.0]], [[[2.0]]])
    >>> (a + a).scatter[0, 0, 0]
    np.float64(4.0)
    """

    variables: tuple[Finite, ...]
    reals: tuple[str, ...]
    keys: Ints
    count: Array
    mean: Array
    scatter: Array
    df: Array = cast(Array, None)  # noqa: RUF009 - filled with `count` where it is not given
    background: Moments | None = None
    rest: Array = cast(Array, None)  # noqa: RUF009 - nothing, where it is not given
    derived: tuple[RowFormula, ...] = ()
    sums: Array = cast(Array, None)  # noqa: RUF009 - not known, where it is not given
    names: tuple[str, ...] = field(init=False, compare=False)
    request: Request = field(init=False, compare=False)
    """What they answer."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        object.__setattr__(self, "reals", tuple(self.reals))
        object.__setattr__(self, "derived", tuple(self.derived))
        object.__setattr__(self, "names", tuple(v.name for v in self.variables))
        object.__setattr__(self, "request", Request(self.names, self.reals, self.derived))
        keys = np.array(self.keys, dtype=np.int64)
        n, k, c = len(keys), len(self.reals), len(self.derived)
        object.__setattr__(self, "keys", freeze(keys))
        given = {"count": self.count, "mean": self.mean, "scatter": self.scatter}
        given["df"] = self.count if self.df is None else self.df
        given["rest"] = np.zeros((n, k)) if self.rest is None else self.rest
        given["sums"] = np.full((n, c), np.nan) if self.sums is None else self.sums
        shapes = {"count": (n,), "mean": (n, k), "scatter": (n, k, k), "df": (n,), "rest": (n, k), "sums": (n, c)}
        for name, shape in shapes.items():
            values = np.array(given[name], dtype=np.float64)
            if values.shape != shape:
                raise StatisticsError(f"moments of {list(self.reals)} need a {name} of shape {shape}, not {values.shape}")
            object.__setattr__(self, name, freeze(values))
        if n and (keys[0] < 0 or keys[-1] >= n_configurations(self.variables) or np.any(np.diff(keys) <= 0)):
            raise StatisticsError("the keys of moments must increase and lie within the configurations")

    @property
    def total(self) -> float:
        """The weight of all listed configurations."""
        return float(self.count.sum())

    @property
    def spread(self) -> Spread:
        return Spread(self.count, self.mean, self.rest, self.scatter)

    @property
    def _parts(self) -> tuple[Array, ...]:
        """All arrays that have a row for each configuration, in the order that `_of` takes them."""
        return (*self.spread, self.df, self.sums)

    def at(self, keys: Ints) -> Moments:
        """The moments at these configurations, increasing: seen, imagined, or of no weight."""
        keys = np.asarray(keys, dtype=np.int64)
        if np.array_equal(keys, self.keys):
            return self
        blank = (self.background or nothing(self.reals)).deriving(self.derived)
        parts = [np.repeat(part, len(keys), axis=0) for part in blank._parts]
        if len(self.keys):
            places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            found = self.keys[places] == keys
            for target, part in zip(parts, self._parts, strict=True):
                target[found] = part[places[found]]
        return self._of(self.variables, keys, parts, self.background)

    def over(self, variables: Sequence[Finite]) -> Moments:
        """What is imagined in every configuration of some variables, without listing any: this single group."""
        return self._of(tuple(variables), np.zeros(0, np.int64), (part[:0] for part in self._parts), self)

    def deriving(self, derived: Sequence[RowFormula]) -> Moments:
        """The same with the sums of these columns and no others: where moments say nothing of one, it is not known."""
        if tuple(derived) == self.derived:
            return self
        own = dict(zip(self.derived, self.sums.T, strict=True))
        unknown = np.where(self.count > 0, np.nan, 0.0)
        columns = [own.get(d, unknown) for d in derived]
        return replace(self, derived=tuple(derived), sums=np.array(columns).reshape(len(columns), len(unknown)).T)

    def sum_of(self, derived: RowFormula) -> Array:
        """Σ w f(x) of one derived column in each configuration; NaN where it is not known."""
        return self.sums[:, self.derived.index(derived)] if derived in self.derived else np.full(len(self.keys), np.nan)

    def _of(self, variables: tuple[Finite, ...], keys: Ints, parts: Iterable[Array], background: Moments | None) -> Moments:
        weight, mean, rest, scatter, df, sums = parts
        return Moments(variables, self.reals, keys, weight, mean, scatter, df, background, rest, self.derived, sums)

    def marginal(self, names: Sequence[str], reals: Sequence[str]) -> Moments:
        """The moments of some of the real columns, within each configuration of some of the finite ones."""
        if tuple(names) == self.names and tuple(reals) == self.reals:
            return self
        for r in reals:
            if r not in self.reals:
                raise StatisticsError(f"there are no moments of {r!r} here{nearest(r, self.reals)}")
        if self.background is not None and set(names) != set(self.names):
            raise StatisticsError("imagined moments cannot be summed over configurations")
        columns = [self.reals.index(r) for r in reals]
        derived = tuple(d for d in self.derived if d.column in reals)
        background = None if self.background is None else self.background.marginal((), reals)
        mean, rest, scatter = self.mean[:, columns], self.rest[:, columns], self.scatter[:, columns][:, :, columns]
        base = self.sums[:, [self.derived.index(d) for d in derived]]
        numbers = self.count, mean, scatter, self.df
        fewer = Moments(self.variables, tuple(reals), self.keys, *numbers, background, rest, derived, base)
        by = {v.name: v for v in self.variables}
        kept = tuple(by[n] for n in names)
        groups, inverse = np.unique(project_keys(self.keys, self.variables, names), return_inverse=True)
        if len(groups) == len(self.keys):
            order = np.argsort(inverse)
            return fewer._of(kept, groups, (part[order] for part in fewer._parts), background)
        df: Array = np.bincount(inverse, self.df, len(groups)).astype(np.float64)
        sums = np.zeros((len(groups), len(derived)))
        np.add.at(sums, inverse, fewer.sums)
        return fewer._of(kept, groups, (*pool_spreads(fewer.spread, inverse, len(groups)), df, sums), None)

    def recoded(self, by: Mapping[str, Finite]) -> Moments:
        """The same moments over the same finite variables with other (more, or reordered) states."""
        target = tuple(by.get(v.name, v) for v in self.variables)
        keys = move_keys(self.keys, self.variables, target)
        order = np.argsort(keys)
        return self._of(target, keys[order], (part[order] for part in self._parts), self.background)

    def weighing(self, share: float) -> Moments:
        """The same moments of rows that weigh only so much each: means stay."""
        background = None if self.background is None else self.background.weighing(share)
        parts = share * self.count, self.mean, self.rest, share * self.scatter, share * self.df, share * self.sums
        return self._of(self.variables, self.keys, parts, background)

    def __add__(self, other: Moments) -> Moments:
        a, b, keys, background = self._pair(other, 1)
        parts = *merge_spreads(a.spread, b.spread), a.df + b.df, a.sums + b.sums
        return a._of(self.variables, keys, parts, background)

    def __sub__(self, other: Moments) -> Moments:
        """What is left when `other` is taken away; a group that would weigh less than nothing is refused."""
        a, b, keys, background = self._pair(other, -1)
        count = a.count - b.count
        if np.any(count < -GONE * a.count):
            raise StatisticsError(
                f"taking these moments away leaves a weight of {count.min():g}: they were never part of the sum"
            )
        left = subtract_spread(a.spread, b.spread, count > GONE * a.count)
        was, diagonal = (np.einsum("gii->gi", s) for s in (a.scatter, left.scatter))
        if np.any(diagonal < -1e-6 * was):
            raise StatisticsError("taking these moments away leaves a negative variance: they were never part of the sum")
        varies = diagonal > 1e-13 * was
        left = left._replace(scatter=left.scatter * (varies[:, :, None] & varies[:, None, :]))
        sums = np.maximum(a.sums - b.sums, [d.least for d in a.derived])
        parts, seen = (*left, a.df - b.df, sums), left.weight > 0
        return a._of(self.variables, keys[seen], (part[seen] for part in parts), background)

    def __eq__(self, other: object) -> bool:
        """The same moments of the same columns."""
        if not isinstance(other, Moments) or self.variables != other.variables or self.background != other.background:
            return False
        if self.reals != other.reals or self.derived != other.derived:
            return False
        mine, yours = (self.keys, *self._parts), (other.keys, *other._parts)
        return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(mine, yours, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def _pair(self, other: Moments, sign: int) -> tuple[Moments, Moments, Ints, Moments | None]:
        if other.variables != self.variables or other.reals != self.reals:
            raise StatisticsError(
                f"moments of {list(self.reals)} | {list(self.names)} do not add to {list(other.reals)} | {list(other.names)}"
            )
        keys = np.union1d(self.keys, other.keys)
        mine, theirs = self.background, other.background
        both = mine or theirs if not (mine and theirs) else (mine + theirs if sign > 0 else mine - theirs)
        derived = tuple(dict.fromkeys((*self.derived, *other.derived)))
        return self.deriving(derived).at(keys), other.deriving(derived).at(keys), keys, both

    def __repr__(self) -> str:
        given = f" | {', '.join(self.names)}" if self.variables else ""
        return f"Moments({', '.join(self.reals)}{given}: {len(self.keys):,} groups, total {self.total:g})"


def nothing(reals: Sequence[str]) -> Moments:
    """A single group without weight."""
    k = len(reals)
    return Moments((), tuple(reals), np.zeros(1, np.int64), np.zeros(1), np.zeros((1, k)), np.zeros((1, k, k)))
