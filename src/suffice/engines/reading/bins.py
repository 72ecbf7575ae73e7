"""Cut points: where a column of numbers is cut into bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import Block, Engine, Step
from suffice.engines.views.sample import Sample, most_of
from suffice.errors import DataError
from suffice.variables import Bins, Finite

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer]

SAMPLE = 2**22
"""Rows by which quantiles and MDL cuts are found; of more rows, so many are drawn, those that `Data.sample` draws by seed 0."""


def cut_points(bins: Bins, name: str, values: Floats, weight: Floats | None, target: Codes | None) -> list[float]:
    """Where `bins` cuts the column; fewer bins than asked for where values repeat too often.

    Each cut is a value of the data, the first of the bin above it, save that MDL cuts half-way between two values.

    >>> cut_points(Bins(2), "x", np.array([1.0, 2.0, 3.0, 4.0]), None, None)
    [3.0]
    >>> cut_points(Bins(2, width=True), "x", np.array([0.0, 1.0, 4.0]), None, None)
    [2.0]
    """
    if isinstance(bins.how, tuple):
        return list(bins.how)
    there = ~np.isnan(values) if weight is None else ~np.isnan(values) & (weight > 0)
    if target is not None:
        there &= target != np.iinfo(target.dtype).max
    values, weight = values[there], None if weight is None else weight[there]
    if not len(values):
        raise DataError(f"the column {name!r} cannot be cut into bins: every cell is missing")
    if bins.target is not None:
        if target is None:
            raise DataError(f"the column {name!r} is to be cut by {bins.target!r}, which is not among the columns")
        return _mdl(values, weight, target[there])
    n = int(bins.how or 2)
    low, high = float(values.min()), float(values.max())
    if bins.width:
        return sorted(c for c in {low + (high - low) * k / n for k in range(1, n)} if low < c <= high)
    return _quantiles(values, weight, n)


@dataclass(frozen=True)
class Ends:
    """The smallest and the largest of some numbers."""

    low: float
    high: float

    def __add__(self, other: Ends) -> Ends:
        return Ends(min(self.low, other.low), max(self.high, other.high))


@dataclass(frozen=True)
class ValueRange(Step[Ends]):
    """The smallest and the largest value of a column among rows that have weight."""

    name: str

    def of(self, block: Block) -> Ends:
        values = block.columns[self.name]
        values = values[~np.isnan(values) & (block.weights > 0)]
        return Ends(float(values.min()), float(values.max())) if len(values) else Ends(np.inf, -np.inf)


def binned_variable(bins: Bins, name: str, engine: Engine) -> Finite:
    """A column of numbers as bins, its cuts found by the extremes of all rows, or by a sample of them."""
    names = [name] if bins.target is None else [name, bins.target]
    if bins.target is not None and not isinstance(engine.seen[bins.target].variable, Finite):
        raise DataError(f"the column {name!r} is to be cut by {bins.target!r}, which is not finite; declare its states")
    if bins.width:
        ends = engine.fold(ValueRange(name), names)
        values = np.array([ends.low, ends.high] if ends.low <= ends.high else [])
        return bins.finite(name, cut_points(bins, name, values, None, None))
    rows = engine.fold(Sample(SAMPLE, 0, most_of(SAMPLE, engine.n_rows)), names).rows
    target = None if bins.target is None else rows.columns[bins.target]
    return bins.finite(name, cut_points(bins, name, rows.columns[name], rows.weight, target))


def _quantiles(values: Floats, weight: Floats | None, n: int) -> list[float]:
    """The cuts that leave, as nearly as repeated values allow, k/n of the weight below the k-th."""
    if weight is None:
        distinct, each = np.unique(values, return_counts=True)
    else:
        distinct, places = np.unique(values, return_inverse=True)
        each = np.bincount(places, weight)
    below = np.cumsum(each)[:-1]
    if not len(below):
        return []
    wanted = (len(values) if weight is None else weight.sum()) * np.arange(1, n) / n
    after = np.minimum(np.searchsorted(below, wanted), len(below) - 1)
    before = np.maximum(after - 1, 0)
    nearer = np.where(np.abs(below[before] - wanted) <= np.abs(below[after] - wanted), before, after)
    return [float(x) for x in np.unique(distinct[nearer + 1])]


def _mdl(values: Floats, weight: Floats | None, target: Codes) -> list[float]:
    """Fayyad & Irani 1993: cut where the class entropy falls most, as long as the description of the classes gets shorter:

    Ent(S) − Ent(S₁,S₂) > (log₂(N−1) + log₂(3ᵏ−2) − (k Ent(S) − k₁ Ent(S₁) − k₂ Ent(S₂))) / N,   k classes in S
    """
    distinct, places = np.unique(values, return_inverse=True)
    classes, codes = np.unique(target, return_inverse=True)
    table = np.zeros((len(distinct), len(classes)))
    np.add.at(table, (places, codes), 1.0 if weight is None else weight)
    upto = np.vstack([np.zeros(len(classes)), np.cumsum(table, axis=0)])
    cuts: list[float] = []
    todo = [(0, len(distinct))]
    while todo:
        first, last = todo.pop()
        at = _best_split(upto[first : last + 1])
        if at is not None:
            below, above = float(distinct[first + at - 1]), float(distinct[first + at])
            middle = below / 2 + above / 2
            cuts.append(middle if middle > below else above)
            todo += [(first, first + at), (first + at, last)]
    return sorted(cuts)


def _best_split(upto: Floats) -> int | None:
    """How many of the distinct values go to the left, or None if no split pays."""
    if len(upto) < 3:
        return None
    whole = upto[-1] - upto[0]
    left = upto[1:-1] - upto[0]
    right = whole - left
    n = float(whole.sum())
    share = left.sum(axis=1) / n
    entropies = share * _entropy(left) + (1 - share) * _entropy(right)
    at = int(np.argmin(entropies))
    before, ent1, ent2 = (float(_entropy(part[None])[0]) for part in (whole, left[at], right[at]))
    k, k1, k2 = (int(np.count_nonzero(part > 0)) for part in (whole, left[at], right[at]))
    delta = (np.log2(3.0**k - 2) if k < 100 else k * np.log2(3.0)) - (k * before - k1 * ent1 - k2 * ent2)
    return at + 1 if before - float(entropies[at]) > (np.log2(max(n - 1, 1)) + delta) / n else None


def _entropy(counts: Floats) -> Floats:
    """Σ −p log₂ p of each row."""
    p = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(-(p * np.log2(np.where(p > 0, p, 1.0))).sum(axis=1))
