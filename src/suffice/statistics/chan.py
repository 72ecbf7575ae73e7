"""Chan's pairwise update of count, mean and centred scatter, with means kept to twice the digits of a double.

    mean = mean_a + d n_b/n,   scatter = scatter_a + scatter_b + d dᵀ n_a n_b/n,   d = mean_b − mean_a

The difference d of two means of 1e9 would lose what their rounding lost, so a mean is `mean + rest`, the rest being what the
double could not hold. Chan, Golub & LeVeque 1983, The American Statistician 37, p. 242.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Bools
from suffice.statistics.configurations import distinct


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


def subtract_spread(a: Spread, b: Spread, left: Bools) -> Spread:
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
    """The same moments, each mean the nearest double, and the scatter of a constant column exactly zero.

    Rows that are all 0.1, weighted, have a mean that is off by a little, and so a scatter that is only rounding: far below
    that of any two doubles that differ.
    """
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
