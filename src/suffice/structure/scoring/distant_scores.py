"""Scores of finite variables whose rows are not at hand: they are passed over as seldom as can be, or tables were gathered.

A batch of families of any sizes is one pass, as long as its tables fit into memory, and all parent sets that some rules allow are
one, too. Nothing is counted twice. Tables that were gathered have the bits that the rows behind them give.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.basis.variables import Finite
from suffice.engines.steps.bits import BitStep, Counts
from suffice.statistics import Statistics
from suffice.structure.rules import Rules
from suffice.structure.scoring.finite_scores import DENSE, FiniteScores
from suffice.structure.scoring.local_scores import Family, ScoreSource, families_in, in_memory, room_for
from suffice.structure.scoring.parent_sets import Level, Sets, by_size, keys_of, lattice


class DistantScores(FiniteScores):
    """The same scores, and memory of those that were counted: by family, or by level of a lattice of sets."""

    def __init__(self, *data: Any, **options: Any) -> None:
        super().__init__(*data, **options)
        self.room = room_for(self.memory_limit)
        self._surveyed: dict[int, tuple[Ints, Array]] = {}

    def ahead(self, families: Iterable[Family]) -> None:
        self.families(families)

    def survey(self, rules: Rules) -> None:
        self._score_lattice(rules.without_parents(self.given), prune=False)

    _toggles = ScoreSource._toggles

    def _of_sets(self, sets: Sets, axis: Ints) -> Array:
        return self.families(families_in(sets, axis))

    def _fresh(self, families: Sequence[Family]) -> Array:
        if not self._surveyed and self.n > 1:
            self._score_lattice(Rules.free(self.n, 1), prune=False)  # singles are not asked for without pairs
        parts = in_memory(families, lambda f: float(np.prod(self.sizes[[f[0], *f[1]]].astype(float)).clip(0, DENSE)), self.room)
        return np.concatenate([np.empty(0), *map(self._in_one_pass, parts)])

    def _in_one_pass(self, families: Sequence[Family]) -> Array:
        """The scores of families whose tables fit into memory together."""
        scores = np.full(len(families), np.nan)
        for order, sets, axis in by_size(families):
            if (known := self._recall(sets)) is not None:
                scores[order] = known[np.arange(len(sets)), axis]
        new = np.flatnonzero(np.isnan(scores))
        groups = by_size([families[i] for i in new.tolist()])
        small = [sets[self.bitmaps.cells(sets) <= DENSE] for _, sets, _ in groups]
        self.bitmaps.ahead(step for sets in small if len(sets) for step in self.bitmaps.full_steps(sets))
        for order, sets, axis in groups:
            self.watch()
            scores[new[order]] = super()._of_sets(sets, axis)
        return scores

    def _score_lattice(self, rules: Rules, *, prune: bool) -> tuple[list[Level], list[Array]]:
        """Without leaving out what its price forbids: that would take the singles' pass first, and a climb asks for all."""
        levels = lattice(rules, self.watch)
        known = [self._recall(level.sets) for level in levels]
        if all(scores is not None for scores in known):
            return levels, [scores for scores in known if scores is not None]
        if sum(map(self._cells_of, levels)) <= self.room:
            self.bitmaps.ahead(step for level in levels for step in self._steps(level))
        levels, scores = super()._score_lattice(rules, prune=False)
        for level, of_level in zip(levels, scores, strict=True):
            n, size = level.sets.shape
            if n >= len(self._surveyed.get(size, ((),))[0]):
                self._surveyed[size] = keys_of(level.sets, self.n), of_level
        return levels, [s.copy() for s in scores]

    def _level(self, level: Level, tables: Any, offsets: Any, *, last: bool) -> tuple[Ints, Any, Any]:
        if self._cells_of(level) <= self.room:
            self.bitmaps.ahead(self._steps(level))
        return super()._level(level, tables, offsets, last=last)

    def _cells_of(self, level: Level) -> int:
        return int(self.bitmaps.cells(level.sets).clip(0, DENSE).sum())

    def _steps(self, level: Level) -> Iterator[BitStep]:
        """What is counted for a level."""
        if level.sets.shape[1] == 1:
            yield from self.bitmaps.full_steps(level.sets)
            return
        by_rows = self.bitmaps.by_rows(level.sets)
        for g in self._pieces(level.sets, by_rows):
            if not by_rows[g[0]]:
                yield self.bitmaps.core_step(level.sets[g])
            elif (small := level.sets[g][self.bitmaps.cells(level.sets[g]) <= DENSE]).size:
                yield self.bitmaps.scan_step(small)

    def _recall(self, sets: Sets) -> Array | None:
        """The scores [set, child] of sets that were all scored before; None if some were not."""
        keys, scores = self._surveyed.get(sets.shape[1], (np.zeros(0, np.int64), np.zeros((0, 0))))
        if not len(keys):
            return None
        wanted = keys_of(sets, self.n)
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return scores[place] if (keys[place] == wanted).all() else None


class GatheredTables:
    """The tables of sets of variables, by number, as flat whole counts: what bitmaps count, from statistics.

    >>> from suffice import gather
    >>> s = gather({"x": ["a", "b", "a", "a"], "y": ["u", "v", "v", "u"]}, max_parents=1)
    >>> GatheredTables(s, [s.variables["x"], s.variables["y"]]).count_full(np.array([[0, 1]], np.int32))[0]
    array([2, 1, 0, 1], dtype=int32)
    """

    workers = 1

    def __init__(self, statistics: Statistics, variables: Sequence[Finite]) -> None:
        self.statistics = statistics
        self.names = tuple(v.name for v in variables)
        self.sizes = np.array([v.n_states for v in variables], np.int64)
        self.flat = statistics.flat
        self.number = np.array([self.flat.names.index(name) for name in self.names])
        self.kind = np.int64 if statistics.weight >= 2**31 else np.int32

    def count_full(self, sets: Sets) -> tuple[Counts, Ints]:
        """The tables of these sets, each in the order given: flat counts and offsets."""
        starts = self.flat.starts(self.number[sets])
        if starts is not None:
            cells, at = self.sizes[sets].prod(axis=1), np.zeros(len(sets) + 1, np.int64)
            np.cumsum(cells, out=at[1:])
            places = np.repeat(starts - at[:-1], cells) + np.arange(at[-1])
            return self.flat.values[places].astype(self.kind), at
        names = [[self.names[v] for v in members] for members in sets.tolist()]
        each = [self.statistics.counts(some).dense().reshape(-1) for some in names]
        flat = np.concatenate([np.zeros(0), *each])
        return flat.astype(self.kind), np.cumsum([0, *map(len, each)])

    def cells(self, sets: Sets) -> Ints:
        """The number of cells of each table; beyond 2^62 that."""
        return np.asarray(np.minimum(np.prod(self.sizes[sets].astype(float), axis=1), 2.0**62), np.int64)


class GatheredScores(FiniteScores):
    """The same arithmetic on tables of whole counts that are there already, so that a sum of sites scores as all rows do."""

    data: Any

    @staticmethod
    def serves(data: Any) -> bool:
        return isinstance(data, Statistics) and data.max_parents is not None and data.flat.whole

    _toggles = ScoreSource._toggles

    def _level(self, level: Level, tables: Any, offsets: Any, *, last: bool) -> tuple[Ints, Any, Any]:
        self.watch()
        return self._terms(level.sets, *self.bitmaps.count_full(level.sets)), None, None
