"""Rows that a learner may see: a sample of them, or the distinct ones, of a size that is stated; and where a column of numbers is
cut into bins, which a sample says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Ints
from suffice.basis.variables import Bins, Finite, Variable
from suffice.engines.engine import Array, Block, Each, Engine, Floats, Step, is_missing
from suffice.engines.schema import NumberSummary
from suffice.engines.views.views import Size
from suffice.errors import DataError, TooLarge, bytes_in_words

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class SampledRows(Block):
    """Some rows of an engine; `at` has the number of the block and the row in it that each came from."""

    at: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64))

    @classmethod
    def of(cls, block: Block, rows: Any) -> SampledRows:
        """Some of the rows of a block."""
        places, some = np.arange(block.n_rows)[rows], block.take(rows)
        return cls(some.columns, some.weight, at=np.stack([np.full(len(places), block.number), places], axis=1))

    def take(self, rows: Any) -> SampledRows:
        some = super().take(rows)
        return SampledRows(some.columns, some.weight, at=self.at[rows])

    def __add__(self, other: SampledRows) -> SampledRows:
        columns = {n: np.concatenate([own, other.columns[n]]) for n, own in self.columns.items()}
        weighted = self.weight is not None or other.weight is not None
        weight = np.concatenate([self.weights, other.weights]) if weighted else None
        return SampledRows(columns, weight, at=np.concatenate([self.at, other.at]))

    def in_order(self) -> SampledRows:
        return self.take(np.lexsort((self.at[:, 1], self.at[:, 0])))


@dataclass(frozen=True, eq=False)
class _Keyed:
    """Rows with a key each; the step's `keep` is how two of them add."""

    keys: Hashes
    rows: SampledRows
    step: Any

    def __add__(self, other: _Keyed) -> _Keyed:
        result: _Keyed = self.step.keep(np.concatenate([self.keys, other.keys]), self.rows + other.rows)
        return result


@dataclass(frozen=True)
class Sample(Step[_Keyed]):
    """The n rows with the smallest hashes of (seed, block, row): a sample without replacement, the same however rows are read.
    Rows whose hash is above `most` are passed over: of very many rows few need be compared."""

    n: int
    seed: int
    most: int = 2**64 - 1

    def of(self, block: Block) -> _Keyed:
        keys = hash_values(np.arange(block.n_rows, dtype=np.uint64), self.seed, block.number)
        few = np.flatnonzero(keys <= np.uint64(self.most))
        return self.keep(keys[few], SampledRows.of(block, few))

    def keep(self, keys: Hashes, rows: SampledRows) -> _Keyed:
        if len(keys) <= self.n:
            return _Keyed(keys, rows, self)
        order = np.flatnonzero(keys < np.partition(keys, self.n)[self.n])
        if len(order) < self.n:  # the hash at the edge is that of several rows
            order = np.lexsort((rows.at[:, 1], rows.at[:, 0], keys))[: self.n]
        return _Keyed(keys[order], rows.take(order), self)


@dataclass(frozen=True)
class Stretches(Step[SampledRows]):
    """A stretch of each block, from a place that goes by its number: a share of all rows that costs next to nothing, where rows
    that resemble their neighbours do no harm."""

    share: float

    def of(self, block: Block) -> SampledRows:
        n = int(np.ceil(self.share * block.n_rows))
        start = 7919 * block.number % (block.n_rows - n + 1)
        return SampledRows.of(block, slice(start, start + n))


class Collision(Exception):
    """Two rows that differ have the same hash: another salt is needed."""


@dataclass(frozen=True)
class Distinct(Step[_Keyed]):
    """Each distinct row with the weight of all that equal it; more than `limit` of them are refused."""

    limit: int
    salt: int = 0

    def of(self, block: Block) -> _Keyed:
        weighed = Block(block.columns, block.weights, block.number)
        return self.keep(row_hashes(block, self.salt), SampledRows.of(weighed, slice(None)))

    def keep(self, keys: Hashes, rows: SampledRows) -> _Keyed:
        found, first, which = np.unique(keys, return_index=True, return_inverse=True)
        if not all(np.array_equal(_bits(c)[first][which], _bits(c)) for c in rows.columns.values()):
            raise Collision
        if len(first) > self.limit:
            width = sum(c.dtype.itemsize for c in rows.columns.values()) + 8
            raise TooLarge(
                f"there are {len(first):,} distinct rows and more, which take {bytes_in_words(float(width * len(first)))}, "
                f"and the limit is {self.limit:,} of them ({bytes_in_words(float(width * self.limit))}): take fewer columns, for "
                "which data.select([...]) is there"
            )
        weight = np.bincount(which, rows.weights, len(first)).astype(np.float64)
        return _Keyed(found, replace(rows.take(first), weight=weight), self)


def most_of(n: int, n_rows: int | None) -> int:
    """A bound that the n smallest of so many hashes are below, but for ten standard deviations: once in 10²³ samples."""
    return min(int((n + 10.0 * np.sqrt(n) + 100.0) / (n_rows or 1) * 2**64), 2**64 - 1)


def hash_values(values: Hashes, *salt: int) -> Hashes:
    """Well mixed numbers of 64 bits (the finaliser of SplitMix64: Steele, Lea & Flood 2014, OOPSLA, p. 453)."""
    x = values
    for s in (*salt, 0):
        x = x + np.uint64((int(s) * 0x9E3779B97F4A7C15 + 0x9E3779B97F4A7C15) % 2**64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return x


def row_hashes(block: Block, salt: int = 0) -> Hashes:
    """A number for the cells of each row; rows that are equal have equal ones."""
    mix = np.full(block.n_rows, salt, np.uint64)
    for column in block.columns.values():
        mix = (mix ^ _bits(column)) * np.uint64(0x9E3779B97F4A7C15)
        mix ^= mix >> np.uint64(32)
    return hash_values(mix, salt)


def _bits(column: Array) -> Hashes:
    # Adding 0 makes -0.0 the 0.0 that it equals, so that equal cells are equal bits; every NaN is the same.
    if column.dtype.kind == "f":
        return np.where(np.isnan(column), np.nan, column + 0.0).view(np.uint64)
    return column.astype(np.uint64)


@dataclass(frozen=True)
class TakeRows:
    """Of each block the rows that are wanted, by their places in it."""

    wanted: tuple[tuple[int, int], ...]
    """The block of each row, and its place there."""

    @classmethod
    def of(cls, sizes: Mapping[int, Size], rows: Sequence[int]) -> TakeRows:
        """Of rows by their numbers among all; the numbers of blocks are in the order of the rows."""
        numbers = sorted(sizes)
        starts = np.cumsum([0, *(sizes[number].rows for number in numbers)])
        if wrong := [row for row in rows if not 0 <= row < starts[-1]]:
            raise DataError(f"there is no row {wrong[0]}: rows are numbered from 0 to {starts[-1] - 1}")
        blocks = np.searchsorted(starts, rows, side="right") - 1
        return cls(tuple((numbers[b], int(row - starts[b])) for b, row in zip(blocks.tolist(), rows, strict=True)))

    def __call__(self, block: Block) -> SampledRows:
        places = sorted({place for number, place in self.wanted if number == block.number})
        return SampledRows.of(block, np.array(places, np.int64))

    def cells(self, found: SampledRows, variable: Variable) -> list[str | float | None]:
        """The cells of a column in the order in which the rows were asked for."""
        place = {(number, row): i for i, (number, row) in enumerate(found.at.tolist())}
        column = found.columns[variable.name][[place[at] for at in self.wanted]]
        states = variable.states if isinstance(variable, Finite) else None
        cells = zip(column.tolist(), is_missing(column).tolist(), strict=True)
        return [None if gap else cell if states is None else states[cell] for cell, gap in cells]


Codes = npt.NDArray[np.integer]

SAMPLE = 2**22
"""Rows by which quantiles and MDL cuts are found; of more rows, so many are drawn, those that `Data.sample` draws by seed 0."""


def cut_points(bins: Bins, name: str, values: Floats, weight: Floats | None, target: Codes | None) -> list[float]:
    """Where `bins` cuts the column; fewer bins than asked for where values repeat too often. Each cut is a value of the data, the
    first of the bin above it, save that MDL cuts half-way between two values."""
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


def _summary_of(name: str, block: Block) -> NumberSummary:
    """The numbers of a column in rows that have weight, summed up."""
    return NumberSummary.of(block.columns[name][block.weights > 0])


def binned_variable(bins: Bins, name: str, engine: Engine) -> Finite:
    """A column of numbers as bins, its cuts found by the extremes of all rows, or by a sample of them."""
    names = [name] if bins.target is None else [name, bins.target]
    if bins.target is not None and not isinstance(engine.seen[bins.target].variable, Finite):
        raise DataError(f"the column {name!r} is to be cut by {bins.target!r}, which is not finite; declare its states")
    if bins.width:
        ends = engine.fold(Each(partial(_summary_of, name)), names)
        values = np.array([ends.least, ends.most] if ends.n else [])
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
