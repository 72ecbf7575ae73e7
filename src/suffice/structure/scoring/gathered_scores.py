"""Scores of finite variables from tables that were gathered, with the bits that the rows behind them give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.steps.bits import Counts, Ints, Sets
from suffice.statistics import Statistics
from suffice.structure.constraints.rules import Parents
from suffice.structure.scoring.distant_scores import DistantScores
from suffice.structure.scoring.finite_scores import Array, FiniteScores
from suffice.structure.scoring.local_scores import ExpectedScores, FamilyScores, ScoreSource, form_of
from suffice.structure.scoring.parent_sets import Level
from suffice.variables import Finite, Variable


class GatheredTables:
    """The tables of sets of variables, by number, as flat whole counts: what bitmaps count, from statistics.

    >>> from suffice import gather
    >>> s = gather({"x": ["a", "b", "a", "a"], "y": ["u", "v", "v", "u"]}, max_parents=1)
    >>> GatheredTables(s, [s.variables["x"], s.variables["y"]]).full(np.array([[0, 1]], np.int32))[0]
    array([2, 1, 0, 1], dtype=int32)
    """

    workers = 1
    at_hand = True

    def __init__(self, statistics: Statistics, variables: Sequence[Finite]) -> None:
        self.statistics = statistics
        self.names = tuple(v.name for v in variables)
        self.sizes = np.array([v.n_states for v in variables], np.int64)
        self.flat = statistics.flat
        self.number = np.array([self.flat.names.index(name) for name in self.names])
        self.kind = np.int64 if statistics.weight >= 2**31 else np.int32

    def full(self, sets: Sets) -> tuple[Counts, Ints]:
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

    def _counted_by(self, finite: Sequence[Finite]) -> Any:
        return GatheredTables(self.data, finite)

    def _toggled(self, prefix: Parents, new: npt.NDArray[np.int32], less: bool) -> tuple[Array, Array]:
        *parents, child = prefix
        sets = np.sort(np.column_stack([np.tile(np.array(prefix, np.int32), (len(new), 1)), new]), axis=1)
        added = self._of_sets(sets, np.argmax(sets == child, axis=1))
        taken = [(child, tuple(p for p in parents if p != gone)) for gone in parents] if less else []
        return added, self.families(taken)

    def _level(self, level: Level, tables: Any, offsets: Any, *, last: bool) -> tuple[Ints, Any, Any]:
        self.watch()
        return self._terms(level.sets, *self.bitmaps.full(level.sets)), None, None


def fastest_of_tables(data: Any, variables: Sequence[Variable], score: Any) -> type[ScoreSource] | None:
    """The fastest kind for variables that are all finite, or whose tables are expected; None where there are others."""
    if isinstance(data, Statistics) and data.suppression is not None:
        return FamilyScores  # tables that have lost different rows have no arithmetic in common
    if all(isinstance(v, Finite) for v in variables) and any(v.family is not None for v in variables):
        return FamilyScores  # kernels know tables with a parameter for each cell
    if form_of(score, data.weight) is not None:
        few = all(isinstance(v, Finite) and v.n_states < 2**16 for v in variables)
        if few and isinstance(data, Data) and (not data.weighted or data.whole_weights):
            return DistantScores
        if few and isinstance(data, Statistics):
            return GatheredScores if GatheredScores.serves(data) else FamilyScores
        if hasattr(data, "tables") or (few and isinstance(data, Data)):
            return ExpectedScores
    return FamilyScores if all(isinstance(v, Finite) for v in variables) else None
