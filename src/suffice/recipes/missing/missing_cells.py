"""What is missing, as statistics that add: one pass over the rows, in blocks, gathers all that a report on them needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from suffice.basis.arrays import Array, Bools, Ints
from suffice.basis.variables import Finite
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, is_missing
from suffice.statistics.counts import distinct, keys_of
from suffice.statistics.moments import Cases, Spread

MAX_PATTERNS = 2**16
"""So many patterns are kept apart, the most frequent; the rows of all others are counted together."""
MAX_MOMENTS, MAX_NUMBERS = 1000, 2**24
"""Patterns for which means and covariances are gathered, and numbers in all of them together, or in the comparisons."""
MAX_STATES = 1000
"""Columns of more states are not compared: few rows share one."""
SAMPLE, KNOTS = 2**14, 255
"""Ranks of numbers are told from so many rows, drawn at random, by so many of their quantiles."""


@dataclass(frozen=True)
class Patterns:
    """Which columns are missing together, packed into bytes: the weight of the rows with each pattern, and of all others."""

    weights: Mapping[bytes, float]
    others: float = 0.0

    @classmethod
    def of(cls, gaps: Bools, weight: Array) -> Patterns:
        """`gaps` has a line per column: in which rows it is missing."""
        keys, inverse = np.unique(keys_of(gaps.T), return_inverse=True)
        weights = np.bincount(inverse, weight, len(keys)).tolist()
        return cls({key.tobytes(): w for key, w in zip(keys, weights, strict=True)})

    def __add__(self, more: Patterns) -> Patterns:
        both = {**self.weights, **more.weights}
        weights = {key: self.weights.get(key, 0.0) + more.weights.get(key, 0.0) for key in both}
        others = self.others + more.others
        if len(weights) > MAX_PATTERNS:
            ordered = sorted(weights, key=lambda key: (-weights[key], key))
            others += sum(weights[key] for key in ordered[MAX_PATTERNS:])
            weights = {key: weights[key] for key in ordered[:MAX_PATTERNS]}
        return Patterns(weights, others)


@dataclass(frozen=True)
class PatternMoments:
    """The moments of columns of numbers by pattern, zeros where a column is missing; None where there are too many patterns.

    The codes of a case say which columns are missing there."""

    cases: Cases | None

    @classmethod
    def of(cls, numbers: Array, weight: Array) -> PatternMoments:
        """`numbers` has a line per column, NaN where a cell is missing."""
        gaps = np.isnan(numbers)
        first, inverse = distinct(gaps, len(weight))
        n, width = len(first), len(numbers)
        if _too_many(n, width):
            return cls(None)
        filled, total = np.nan_to_num(numbers.T, nan=0.0), np.bincount(inverse, weight, n).astype(np.float64)
        mean, scatter = np.zeros((n, width)), np.zeros((n, width, width))
        for i, rows in enumerate(np.split(np.argsort(inverse, kind="stable"), np.cumsum(np.bincount(inverse))[:-1])):
            if total[i] > 0:
                mean[i] = weight[rows] @ filled[rows] / total[i]
                off = filled[rows] - mean[i]
                scatter[i] = (off * weight[rows, None]).T @ off
        return cls(Cases(gaps[:, first], Spread(total, mean, np.zeros_like(mean), scatter)))

    def __add__(self, more: PatternMoments) -> PatternMoments:
        both = None if self.cases is None or more.cases is None else self.cases + more.cases
        return PatternMoments(None if both is None or _too_many(*both.spread.mean.shape) else both)


def _too_many(patterns: int, width: int) -> bool:
    return patterns > MAX_MOMENTS or patterns * width * width > MAX_NUMBERS


@dataclass(frozen=True)
class Ranks:
    """About what share of a column's numbers lie below a number, half of those equal to it included.

    A test on ranks needs no normal numbers, and is not led by a few large ones."""

    knots: Array
    scores: Array
    """Below the first knot, at it, between it and the second, at the second, and so on."""

    @classmethod
    def of(cls, sample: Array) -> Ranks:
        values = np.sort(sample)
        places = np.linspace(0, len(values) - 1, min(KNOTS, len(values))).round().astype(np.int64)
        knots = np.unique(values[places])
        below, upto = np.searchsorted(values, knots), np.searchsorted(values, knots, "right")
        at, between = (below + upto) / 2.0, (np.append(0, upto) + np.append(below, len(values))) / 2.0
        scores = np.empty(2 * len(knots) + 1)
        scores[::2], scores[1::2] = between, at
        return cls(knots, scores / max(len(values), 1))

    def __call__(self, numbers: Array) -> Array:
        if not len(self.knots):
            return np.where(np.isnan(numbers), np.nan, 0.5)
        left = np.searchsorted(self.knots, numbers)
        equal = self.knots[np.minimum(left, len(self.knots) - 1)] == numbers
        return np.where(np.isnan(numbers), np.nan, self.scores[np.minimum(2 * left + equal, len(self.scores) - 1)])


@dataclass(frozen=True)
class Columns:
    """The columns of a report: those with gaps, and those that are compared between rows with a gap and rows without."""

    every: tuple[str, ...]
    gappy: tuple[str, ...]
    finite: Mapping[str, int]
    """Their numbers of states."""
    reals: Mapping[str, Ranks]

    @classmethod
    def of(cls, data: Data) -> Columns:
        missing, n_rows = data.missing, data.n_rows
        present = {n: v for n, v in data.schema.items() if missing[n] < n_rows}
        gappy = tuple(n for n in present if missing[n])
        finite = {n: v.n_states for n, v in present.items() if isinstance(v, Finite) and v.n_states <= MAX_STATES}
        reals = tuple(n for n, v in present.items() if not isinstance(v, Finite))
        if len(gappy) * (sum(finite.values()) + 6 * len(reals)) > MAX_NUMBERS:
            finite, reals = {}, ()
        some = data.select(reals).sample(SAMPLE).columns if gappy and reals else {}
        return cls(data.columns, gappy, finite, {n: Ranks.of(x[~np.isnan(x)]) for n, x in some.items()})


class MissingSummary(NamedTuple):
    """All that is gathered of some rows."""

    weight: Array
    cells: Array
    """The weight of the missing cells of each column."""
    ends: Array
    """The weight of the rows that are complete, and of those without an observed cell."""
    patterns: Patterns
    tables: dict[str, Array]
    """The weight of each state of a column, in all rows and then in the rows where each of the gappy columns is missing."""
    ranks: Array
    """The weight of a column of numbers, the sum of its ranks less ½ and of their squares: [rows as in a table, 3, columns]."""
    moments: PatternMoments


@dataclass(frozen=True)
class LookAtMissing(Step[MissingSummary]):
    """One pass over the rows."""

    columns: Columns

    def of(self, block: Block) -> MissingSummary:
        """Everything here has a line per column."""
        columns, weight = self.columns, block.weights
        gaps = np.stack([is_missing(block.columns[n]) for n in columns.every])
        numbers = np.empty((len(columns.reals), len(weight)))
        for i, name in enumerate(columns.reals):
            numbers[i] = block.columns[name]
        gappy = [np.flatnonzero(gaps[columns.every.index(n)]) for n in columns.gappy]
        cells = np.array([weight[line].sum() for line in gaps])
        ends = np.array([weight[~gaps.any(axis=0)].sum(), weight[gaps.all(axis=0)].sum()])
        tables, ranks = _tables(block, columns, gappy, weight), _rank_sums(columns, numbers, gappy, weight)
        patterns, moments = Patterns.of(gaps, weight), PatternMoments.of(numbers, weight)
        return MissingSummary(np.array(weight.sum()), cells, ends, patterns, tables, ranks, moments)


def _tables(block: Block, columns: Columns, gappy: Sequence[Ints], weight: Array) -> dict[str, Array]:
    """`gappy` are the rows in which each of the gappy columns is missing."""
    every = np.arange(len(weight))
    rows = np.concatenate([every, *gappy])
    where = np.repeat(np.arange(1 + len(gappy)), [len(every), *map(len, gappy)])
    weights, result = weight[rows], {}
    for name, n_states in columns.finite.items():
        codes, width = block.columns[name].astype(np.int64), n_states + 1
        codes[is_missing(block.columns[name])] = n_states
        counts = np.bincount(where * width + codes[rows], weights, (1 + len(gappy)) * width)
        result[name] = counts.astype(np.float64).reshape(-1, width)[:, :n_states]
    return result


def _rank_sums(columns: Columns, numbers: Array, gappy: Sequence[Ints], weight: Array) -> Array:
    """Ranks are between 0 and 1, so that plain sums of them and of their squares lose nothing."""
    result = np.zeros((1 + len(gappy), 3, len(numbers)))
    some = [j for j, rows in enumerate(gappy) if len(rows)]
    gaps = np.concatenate([gappy[j] for j in some]) if some else np.empty(0, np.int64)
    starts = np.cumsum([0, *(len(gappy[j]) for j in some)])[:-1]
    where = np.array(some, np.int64) + 1
    for i, (ranks, column) in enumerate(zip(columns.reals.values(), numbers, strict=True)):
        scores = ranks(column)
        seen = ~np.isnan(scores)
        share, off = weight * seen, np.where(seen, scores, 0.5) - 0.5
        terms = np.stack([share, share * off, share * off * off])
        result[0, :, i] = terms.sum(axis=1)
        if some:
            result[where, :, i] = np.add.reduceat(terms[:, gaps], starts, axis=1).T
    return result
