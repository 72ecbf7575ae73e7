"""Moments: count, mean and centred scatter of real columns, within each configuration of finite ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.errors import StatisticsError, nearest
from suffice.statistics.chan import Spread, merge_spreads, pool_spreads, subtract_spread
from suffice.statistics.configurations import GONE, Request, freeze, move_keys, n_configurations, project_keys, rename_variables
from suffice.statistics.derived import RowFormula
from suffice.variables import Finite


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        object.__setattr__(self, "reals", tuple(self.reals))
        object.__setattr__(self, "derived", tuple(self.derived))
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
    def names(self) -> tuple[str, ...]:
        return tuple(v.name for v in self.variables)

    @property
    def request(self) -> Request:
        return Request(self.names, self.reals, self.derived)

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
        target = rename_variables(self.variables, by)
        keys = move_keys(self.keys, self.variables, target)
        order = np.argsort(keys)
        return self._of(target, keys[order], (part[order] for part in self._parts), self.background)

    def weighing(self, share: float) -> Moments:
        """The same moments of rows that weigh only so much each: means stay."""
        background = None if self.background is None else self.background.weighing(share)
        parts = share * self.count, self.mean, self.rest, share * self.scatter, share * self.df, share * self.sums
        return self._of(self.variables, self.keys, parts, background)

    def __add__(self, other: Moments) -> Moments:
        a, b, keys, background = self._paired(other, 1)
        parts = *merge_spreads(a.spread, b.spread), a.df + b.df, a.sums + b.sums
        return a._of(self.variables, keys, parts, background)

    def __sub__(self, other: Moments) -> Moments:
        """What is left when `other` is taken away; a group that would weigh less than nothing is refused."""
        a, b, keys, background = self._paired(other, -1)
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
        if not isinstance(other, Moments) or self._about != other._about or self.background != other.background:
            return False
        mine, yours = (self.keys, *self._parts), (other.keys, *other._parts)
        return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(mine, yours, strict=True))

    __hash__ = None  # type: ignore[assignment]

    @property
    def _about(self) -> tuple[tuple[Finite, ...], tuple[str, ...], tuple[RowFormula, ...]]:
        return self.variables, self.reals, self.derived

    def _paired(self, other: Moments, sign: int) -> tuple[Moments, Moments, Ints, Moments | None]:
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
