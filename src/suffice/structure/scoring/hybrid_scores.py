"""Scores of finite and real variables together, from moments of all real columns within configurations of the finite ones.

A real child with finite parents u and real parents x is a regression in each configuration of u. All families with the same u
are answered by one table: the moments of every real column in each configuration. So the rows are read once for the tables of
all u, not once for each family; finite children have scores of their own kind.

Sums are taken about the means of the columns. Where a group of rows lies so far from there that digits were lost, which the
kernel notices, the table of these u is gathered again about the groups' own means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Bools, Ints
from suffice.basis.variables import Finite, NotNormal
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step
from suffice.numerics.exponential.normals.lines import COLLINEAR, NO_RESIDUAL, too_large
from suffice.objectives.scores import Penalised
from suffice.statistics import Moments, Request, Statistics
from suffice.structure.rules import Parents, Rules
from suffice.structure.scoring.local_scores import FamilyScores, ScoreSource, families_in, in_memory
from suffice.structure.scoring.parent_sets import Level, Sets, families_of, lattice

NUMBERS = 2**24
"""Numbers of all tables that one pass over the rows fills."""

KEPT = 2**23
"""Numbers of tables that are kept for later questions."""

CONFIGURATIONS = 2**16
"""Configurations of finite parents up to which moments are added up for every one of them, whether it occurs or not."""

PER_NUMBER = 3e-10
"""Seconds a row and number that is added up."""

TOLERANCE = 1e-10
"""The share of a score's size by which digits that were lost may move it."""


@dataclass(frozen=True, eq=False)
class GroupedSums(Step[Array]):
    """Weights, sums and products of numbers in each configuration of some sets of finite columns: see `grouped_sums`."""

    finite: tuple[str, ...]
    reals: tuple[str, ...]
    centre: Array
    scale: Array
    ways: tuple[npt.NDArray[Any], ...]
    size: int
    complete: ClassVar[bool] = True

    def of(self, block: Block) -> Array:
        from suffice.numerics.kernels.counting.moments import grouped_sums

        n, sums = block.n_rows, np.zeros(self.size)
        codes, x = np.empty((len(self.finite), n), np.int32), np.empty((len(self.reals), n))
        for i, name in enumerate(self.finite):
            codes[i] = block.columns[name]
        for i, name in enumerate(self.reals):
            x[i] = (block.columns[name] - self.centre[i]) / self.scale[i]
        grouped_sums(codes, x, np.array(block.weights), *self.ways, sums)  # which may be read only
        return sums


class ConfigurationMoments(NamedTuple):
    """Moments of all numbers, in units of their deviations, in the configurations that occur: weight (g,), mean (g, k), scatter.

    The scatter is (g, k, k), or its diagonal (g, k); `exact` where it was taken about the mean itself. `keys` are the flat
    indices of the configurations, increasing.
    """

    weight: Array
    mean: Array
    scatter: Array
    keys: Ints
    exact: bool = False

    @property
    def crossed(self) -> bool:
        """Whether products of different columns are there."""
        return self.scatter.ndim == 3

    @staticmethod
    def of(sums: Array, k: int) -> ConfigurationMoments:
        """From the sums of each configuration."""
        keys = np.flatnonzero(sums[:, 0] > 0)
        sums = sums[keys]
        weight, mean = np.ascontiguousarray(sums[:, 0]), sums[:, 1 : 1 + k] / sums[:, :1]
        diagonal = np.maximum(sums[:, 1 + k : 1 + 2 * k] - weight[:, None] * mean**2, 0.0)
        if k > 1 and sums.shape[1] == 1 + 2 * k:
            return ConfigurationMoments(weight, mean, diagonal, keys)
        a, b = np.tril_indices(k, -1)
        scatter = np.empty((len(sums), k, k))
        scatter[:, a, b] = scatter[:, b, a] = sums[:, 1 + 2 * k :] - weight[:, None] * mean[:, a] * mean[:, b]
        scatter[:, np.arange(k), np.arange(k)] = diagonal
        return ConfigurationMoments(weight, mean, scatter, keys)

    @staticmethod
    def about_own_means(moments: Moments, centre: Array, scale: Array) -> ConfigurationMoments:
        there = moments.count > 0
        scatter = np.ascontiguousarray(moments.scatter[there] / scale[:, None] / scale)
        return ConfigurationMoments(
            moments.count[there], (moments.mean[there] - centre) / scale, scatter, moments.keys[there], exact=True
        )

    @property
    def blurred(self) -> bool:
        """Whether digits were lost that a test could notice: some group lies 10,000 of its own deviations from the centre."""
        if self.exact or not self.crossed:
            return False
        own = np.einsum("gii->gi", self.scatter)
        return bool((self.weight[:, None] * self.mean**2 > 1e8 * own).any())

    def log_likelihoods(self, members: npt.NDArray[np.int32], total: float) -> tuple[Array, Bools]:
        """Of families by their real members, the child last: the value, NaN without an estimate, and whether digits are lost."""
        from suffice.numerics.kernels.counting.moments import group_likelihoods

        scatter, mean = self.scatter, self.mean
        if not self.crossed:  # a child without real parents: its own variance is all there is, in a matrix of one
            columns, at = np.unique(members[:, 0], return_inverse=True)
            parts = [
                self._replace(mean=mean[:, [c]], scatter=scatter[:, [c], None]).log_likelihoods(ALONE, total) for c in columns
            ]
            value, unsure = (np.concatenate(p) for p in zip(*parts, strict=True))
            return value[at], unsure[at]
        value, unsure = np.empty(len(members)), np.empty(len(members), np.bool_)
        limits, off = np.array([COLLINEAR, NO_RESIDUAL, TOLERANCE * total]), 0.0 * mean if self.exact else mean
        group_likelihoods(self.weight, np.ascontiguousarray(off), np.ascontiguousarray(scatter), members, limits, value, unsure)
        return value, unsure


ALONE = np.zeros((1, 1), np.int32)


class Asked(NamedTuple):
    """Families with the same finite parents: where their scores go, and their real members by place, the child last."""

    scores: Array
    rows: Ints
    members: npt.NDArray[np.int32]


class HybridScores(ScoreSource):
    """Log-likelihoods, less a price per parameter, of finite and real variables together."""

    data: Any

    @staticmethod
    def serves(data: Any, score: Any) -> bool:
        gathered = isinstance(data, Statistics) and data.max_parents is not None
        return (isinstance(data, Data) or gathered) and isinstance(score, Penalised)

    def __init__(self, *rows: Any, of_tables: Callable[..., Any] = FamilyScores, **options: Any) -> None:
        super().__init__(*rows, **options)
        self._of_tables = of_tables
        finite = [i for i, v in enumerate(self.variables) if isinstance(v, Finite)]
        numbers = [i for i, v in enumerate(self.variables) if not isinstance(v, Finite)]
        self._kind = np.array([0 if i in finite else 1 for i in range(self.n)])
        self._counted = np.array([isinstance(v, NotNormal) for v in self.variables])
        self._place = np.empty(self.n, np.int32)
        self._place[finite], self._place[numbers] = np.arange(len(finite)), np.arange(len(numbers))
        self._finite = tuple(self.names[i] for i in finite)
        self._reals = tuple(self.names[i] for i in numbers)
        self._sizes = np.array([v.n_states for v in self.variables if isinstance(v, Finite)], np.int64)
        self._known: dict[Parents, ConfigurationMoments] = {}
        self._price = self.score.price(self.weight)
        self.most_families = most_families(self.weight)
        whole = self.data.gather([Request((), self._reals)], threads=self.threads).moments((), self._reals)
        if not np.isfinite(whole.scatter).all():
            raise too_large(self._reals[int(np.argmin(np.isfinite(whole.scatter[0]).all(1)))])
        self._centre = whole.mean[0]
        deviation = np.sqrt(np.diag(whole.scatter[0]) / self.weight)
        self._scale = np.where(deviation > 0, deviation, 1.0)

    @cached_property
    def _of_finite(self) -> ScoreSource:
        """The scores of finite children."""
        finite = [v for v in self.variables if isinstance(v, Finite)]
        options: Any = {"threads": self.threads, "memory_limit": self.memory_limit, "watch": self.watch}
        source: ScoreSource = self._of_tables(self.data, finite, self.score, **options)
        return source

    @cached_property
    def _one_by_one(self) -> FamilyScores:
        """For counts, for families whose tables would be too large, and to say why a family has no estimate."""
        return FamilyScores(self.data, self.variables, self.score, threads=self.threads, watch=self.watch)

    def _score_lattice(self, rules: Rules, *, prune: bool) -> tuple[list[Level], list[Array]]:
        """Families of all sizes are asked for at once: what counts is how often the rows are read."""
        levels = lattice(rules, self.watch)
        scores = [np.full(level.sets.shape, -np.inf) for level in levels]
        places = [np.nonzero(families_of(level.sets, rules).T) for level in levels]
        answers = self._of_many([(level.sets[which], axis) for level, (axis, which) in zip(levels, places, strict=True)])
        for score, (axis, which), answer in zip(scores, places, answers, strict=True):
            score[which, axis] = answer
        return levels, scores

    def _of_sets(self, sets: Sets, axis: Ints) -> Array:
        return self._of_many([(sets, axis)])[0]

    def _of_many(self, asked: Sequence[tuple[Sets, Ints]]) -> list[Array]:
        """The scores of the families of each part of a question."""
        results = [np.full(len(sets), -np.inf) for sets, _ in asked]
        by_parents: dict[Parents, list[Asked]] = {}
        for (sets, axis), result in zip(asked, results, strict=True):
            child = sets[np.arange(len(sets)), axis]
            numbers = self._kind[sets].sum(1)
            if len(finite := np.flatnonzero(numbers == 0)):
                result[finite] = self._of_finite._of_sets(self._place[sets[finite]], axis[finite])
            if len(slow := np.flatnonzero(self._counted[child] & (numbers == 1))):  # each by statistics of its own
                result[slow] = self._one_by_one.families(families_in(sets[slow], axis[slow]))
            real = np.flatnonzero((self._kind[child] == 1) & ~self._counted[child])
            for parents, families in self._by_parents(sets[real], axis[real], real, result):
                by_parents.setdefault(parents, []).append(families)
        crossed = {p: any(a.members.shape[1] > 1 for a in each) for p, each in by_parents.items()}  # with real parents
        for part in in_memory(by_parents, lambda p: float(self._configurations(p)) * self._width(crossed[p]), NUMBERS):
            self.watch()
            self._answer({p: by_parents[p] for p in part}, crossed)
        for (sets, axis), result in zip(asked, results, strict=True):
            self._tell(sets, axis, result)
        return results

    def _by_parents(self, sets: Sets, axis: Ints, rows: Ints, result: Array) -> Iterator[tuple[Parents, Asked]]:
        """Families of real children, those with the same finite parents together."""
        order = self._kind[sets]
        order[np.arange(len(sets)), axis] = 2  # finite parents, real parents, the child
        members = np.take_along_axis(sets, np.argsort(order, axis=1, kind="stable"), axis=1)
        n_finite = (order == 0).sum(1)
        for n in np.unique(n_finite):
            of_n = np.flatnonzero(n_finite == n)
            parents, inverse = np.unique(members[of_n, :n], axis=0, return_inverse=True)
            by_group = np.argsort(inverse.ravel(), kind="stable")
            ends = np.cumsum(np.bincount(inverse.ravel(), minlength=len(parents)))[:-1]
            for finite, group in zip(parents.tolist(), np.split(of_n[by_group], ends), strict=True):
                yield tuple(finite), Asked(result, rows[group], np.ascontiguousarray(self._place[members[group, n:]]))

    def _configurations(self, parents: Parents) -> int:
        return math.prod(self._sizes[self._place[list(parents)]].tolist())

    def _width(self, crossed: bool) -> int:
        k = len(self._reals)
        return 1 + 2 * k + (k * (k - 1) // 2 if crossed else 0)

    def _answer(self, asked: dict[Parents, list[Asked]], crossed: dict[Parents, bool]) -> None:
        """The scores of families of real children, from tables that are made in one pass over the rows."""
        rows = isinstance(self.data, Data)  # statistics hold moments about the groups' own means
        small = {p: a for p, a in asked.items() if rows and self._configurations(p) <= CONFIGURATIONS}
        tables = self.tables({p: crossed[p] for p in small})
        again = {p: [f for a in each for f in self._score(p, tables[p], a)] for p, each in small.items()}
        again = {p: families for p, families in again.items() if families} | {p: a for p, a in asked.items() if p not in small}
        for p, moments in self.about_own_means(again):
            for families in again[p]:
                self._score(p, moments, families)

    def _score(self, parents: Parents, moments: ConfigurationMoments, asked: Asked) -> list[Asked]:
        """Write down the scores of families, and give back those that need moments of more digits."""
        value, unsure = moments.log_likelihoods(asked.members, self.weight)
        n_parameters = self._configurations(parents) * (asked.members.shape[1] + 1)
        scores = value - self.weight * np.log(self._scale[asked.members[:, -1]]) - self._price * n_parameters
        asked.scores[asked.rows] = np.where(np.isnan(value), -np.inf, scores)
        return [Asked(asked.scores, asked.rows[unsure], asked.members[unsure])] if unsure.any() else []

    def tables(self, wanted: dict[Parents, bool]) -> dict[Parents, ConfigurationMoments]:
        """The moments within configurations of each set of finite parents, with products of columns where these are wanted."""
        new = [p for p, crossed in wanted.items() if p not in self._known or (crossed and not self._known[p].crossed)]
        tables = {p: self._known[p] for p in wanted if p in self._known}
        if new:
            k, at = len(self._reals), 0
            step = self._step(new, [wanted[p] for p in new])
            sums = self.data.select([*self._finite, *self._reals]).fold(step, threads=self.threads, what="adding up moments")
            for p in new:
                width, n = self._width(wanted[p]), self._configurations(p)
                tables[p] = ConfigurationMoments.of(sums[at : at + n * width].reshape(n, width), k)
                at += n * width
            self._known = {p: t for p, t in self._known.items() if p not in tables} | tables
            room = KEPT  # the newest of them, where they are many
            for p in reversed(tuple(self._known)):
                room -= self._known[p].scatter.size
                if room < 0:
                    del self._known[p]
        return tables

    def about(self, wanted: Sequence[Parents]) -> dict[Parents, ConfigurationMoments]:
        """Moments, with products, with the digits that tests need: by one pass, and another for groups far from the centre."""
        rows = isinstance(self.data, Data)
        small = {p: True for p in wanted if rows and self._configurations(p) <= CONFIGURATIONS}
        tables = {p: t for p, t in self.tables(small).items() if not t.blurred}
        tables.update(self.about_own_means([p for p in wanted if p not in tables]))
        return tables

    def _step(self, sets: Sequence[Parents], crossed: Sequence[bool]) -> GroupedSums:
        members = [self._place[list(p)] for p in sets]
        sizes = [self._sizes[m] for m in members]
        strides = [np.cumprod([1, *s[:0:-1]])[::-1][: len(s)] for s in sizes]
        widths = np.array([self._width(c) for c in crossed], np.int64)
        ends = np.cumsum([0, *(w * math.prod(s.tolist()) for w, s in zip(widths.tolist(), sizes, strict=True))])
        first = np.cumsum([0, *map(len, members)], dtype=np.int64)
        every = np.concatenate([np.zeros(0, np.int32), *members]).astype(np.int32)
        steps = np.concatenate([np.zeros(0, np.int64), *strides]).astype(np.int64)
        ways = first, every, steps, widths, np.ascontiguousarray(ends[:-1], dtype=np.int64)
        return GroupedSums(self._finite, self._reals, self._centre, self._scale, ways, int(ends[-1]))

    def about_own_means(self, wanted: Iterable[Parents]) -> Iterator[tuple[Parents, ConfigurationMoments]]:
        """Moments about the groups' own means, some sets of finite parents at a time."""
        squares = len(self._reals) ** 2
        for part in in_memory(wanted, lambda p: min(self._configurations(p), self.weight) * squares, NUMBERS):
            self.watch()
            names = {p: tuple(self.names[i] for i in p) for p in part}
            seen = self.data.gather([Request(n, self._reals) for n in names.values()], threads=self.threads)
            for p, n in names.items():
                yield p, ConfigurationMoments.about_own_means(seen.moments(n, self._reals), self._centre, self._scale)

    def _tell(self, sets: Sets, axis: Ints, result: Array) -> None:
        """Say once why a family has no estimate; a child that has none even without parents is refused."""
        child = sets[np.arange(len(sets)), axis]
        lost = np.flatnonzero(np.isneginf(result) & (self._kind[child] == 1) & ~self._counted[child])
        lost = lost[:1] if sets.shape[1] > 1 and not self._told else lost[: sets.shape[1] == 1]
        if len(lost):
            self._told = True
            self._one_by_one.families(families_in(sets[lost], axis[lost]))


def most_families(weight: float) -> int:
    """How many families are scored within some seconds: by experience a row adds about half a number for each."""
    return int(20.0 / (2e-6 + 0.5 * PER_NUMBER * weight))
