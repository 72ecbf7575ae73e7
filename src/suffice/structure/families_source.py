"""Scores from the statistics of single families: any variables, any score, any engine; one scan answers a whole batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.errors import FitError, note
from suffice.families import family_of, has_family
from suffice.statistics import Request, Statistics
from suffice.structure.parent_sets import ParentSets, pruned
from suffice.structure.rules import Parents, Rules
from suffice.variables import Finite, Variable

if TYPE_CHECKING:
    from suffice.incomplete.expectations import ExpectedStatistics

Array = npt.NDArray[np.float64]

CELLS = 2**24
"""Cells of tables that are asked for in one scan,"""

FAMILIES = 2**12
"""and families."""


DENSE = 2**20
"""Cells up to which an expected table is scored as a whole."""


class FamiliesSource:
    """Asks the data for each family's table or moments, and the score for its value."""

    def __init__(
        self, data: Data | Statistics | ExpectedStatistics, variables: Sequence[Variable], score: Any, threads: int | None
    ) -> None:
        self.data, self.variables, self.threads = data, tuple(variables), threads
        self.weight = data.weight
        by_name = {v.name: v for v in self.variables}
        self.score = score.bind(by_name, self._gathered([_alone(v) for v in self.variables]))
        self._told = False

    watch: Callable[[], None] = staticmethod(lambda: None)

    def families(self, families: Sequence[tuple[int, Parents]]) -> Array:
        result = np.empty(len(families))
        for batch in self._batches(families):
            self.watch()
            statistics = self._gathered([self._request(*families[i]) for i in batch])
            for k, i in enumerate(batch):
                if k % 256 == 255:
                    self.watch()
                result[i] = self._local(*families[i], statistics)
        return result

    def toggles(self, child: int, parents: Parents, candidates: Sequence[int]) -> Array:
        there = set(parents)
        sets = [tuple(sorted(there ^ {c})) for c in candidates]
        return self.families([(child, s) for s in sets])

    def pairs(self) -> tuple[Array, Array]:
        n = len(self.variables)
        single = self.families([(i, ()) for i in range(n)])
        both = [(i, j) for i in range(n) for j in range(n) if i != j and self._possible(i, (j,))]
        pair = np.full((n, n), -np.inf)
        pair[tuple(np.array(both, int).reshape(-1, 2).T)] = self.families([(i, (j,)) for i, j in both])
        return single, pair

    def parent_sets(self, rules: Rules, *, prune: bool = True) -> ParentSets:
        families: list[tuple[int, Parents]] = []
        for child in range(len(self.variables)):
            possible = [int(p) for p in np.flatnonzero(rules.allowed[child])]
            for size in range(int(rules.max_parents[child]) + 1):
                families += [(child, s) for s in combinations(possible, size) if self._possible(child, s)]
        return pruned(rules, families, self.families(families), prune=prune)

    def _possible(self, child: int, parents: Parents) -> bool:
        return has_family(self.variables[child], [self.variables[p] for p in parents])

    def _request(self, child: int, parents: Parents) -> Request:
        family = family_of(self.variables[child], mothers := [self.variables[p] for p in parents])
        return family.needs(self.variables[child], mothers)

    def _local(self, child: int, parents: Parents, statistics: Statistics) -> float:
        variable, mothers = self.variables[child], [self.variables[p] for p in parents]
        family = family_of(variable, mothers)
        seen = statistics.answer(family.needs(variable, mothers))
        try:
            return float(self.score.local(family, variable, mothers, seen, self.weight))
        except FitError as error:
            if not parents:
                raise
            if not self._told:
                note(f"parent sets that cannot be estimated are left out of the search; the first: {error}")
                self._told = True
            return -np.inf

    def _gathered(self, requests: Sequence[Request]) -> Statistics:
        if isinstance(self.data, Statistics):
            return self.data
        return self.data.gather(requests, threads=self.threads)

    def _batches(self, families: Sequence[tuple[int, Parents]]) -> Iterator[list[int]]:
        """The families in parts whose tables fit into memory together."""
        batch: list[int] = []
        cells = 0.0
        for i, (child, parents) in enumerate(families):
            members = [self.variables[v] for v in (child, *parents)]
            size = float(np.prod([v.n_states for v in members if isinstance(v, Finite)], dtype=float))
            size *= sum(not isinstance(v, Finite) for v in members) ** 2 + 1
            if batch and (cells + size > CELLS or len(batch) == FAMILIES):
                yield batch
                batch, cells = [], 0.0
            batch.append(i)
            cells += size
        if batch:
            yield batch


class Weighed:
    """Rows whose weights are not whole numbers: their tables, gathered for many families at once."""

    def __init__(self, data: Data) -> None:
        self.data, self.weight, self.gather = data, data.weight, data.gather

    def tables(self, sets: Sequence[Sequence[str]], *, threads: int | None = None) -> tuple[Array, npt.NDArray[np.int64]]:
        """The tables of sets of variables one after the other, and where each begins."""
        requests = [Request(tuple(s)) for s in sets]
        statistics = self.gather(requests, threads=threads)
        tables = [statistics.counts(r.finite).values.ravel() for r in requests]
        return np.concatenate([np.zeros(0), *tables]), np.cumsum([0, *map(len, tables)])


class ExpectedSource(FamiliesSource):
    """Scores of expected tables: `data.tables` makes many of them at once, and one table serves all families on its variables.

    The score is a kind, a strength and a price per parameter, as in `FiniteSource`; counts need not be whole.
    """

    def __init__(
        self, data: Any, variables: Sequence[Variable], score: Any, form: tuple[int, float, float], threads: int | None
    ) -> None:
        super().__init__(data, variables, score, threads)
        self.tables = data.tables
        self.kind, self.alpha, self.price = form
        self._n_states = [v.n_states for v in variables if isinstance(v, Finite)]
        self._known: dict[tuple[int, Parents], float] = {}

    def families(self, families: Sequence[tuple[int, Parents]]) -> Array:
        new = [f for f in dict.fromkeys(families) if f not in self._known]
        for batch in self._batches(new):
            self.watch()
            small = [new[i] for i in batch if self._cells(new[i]) <= DENSE]
            huge = [new[i] for i in batch if self._cells(new[i]) > DENSE]
            self._known.update(zip(small, self._scored(small).tolist(), strict=True))
            self._known.update(zip(huge, super().families(huge).tolist(), strict=True))
        return np.array([self._known[f] for f in families])

    def _cells(self, family: tuple[int, Parents]) -> int:
        return math.prod(self._n_states[v] for v in (family[0], *family[1]))

    def _scored(self, families: Sequence[tuple[int, Parents]]) -> Array:
        from suffice.kernels.expectations import table_scores

        sets = [tuple(sorted((child, *parents))) for child, parents in families]
        place = {s: k for k, s in enumerate(dict.fromkeys(sets))}
        tables, at = self.tables([[self.variables[v].name for v in s] for s in place], threads=self.threads)
        shape = np.ones((3, len(families)), np.int64)
        for g, ((child, _), members) in enumerate(zip(families, sets, strict=True)):
            for v in members:
                shape[(v >= child) + (v > child), g] *= self._n_states[v]
        scores = np.empty(len(families))
        table_scores(tables, at[[place[s] for s in sets]], *shape, self.kind, self.alpha, scores)
        return np.asarray(scores - self.price * (shape[0] * (shape[1] - 1.0) * shape[2]))


class Barring(FamiliesSource):
    """Another source, in which some families have no score: a child whose parents are these, or these and others.

    `known` keeps the scores of the other source, for the next one that is made when more is barred.
    """

    def __init__(
        self,
        source: Any,
        variables: Sequence[Variable],
        barred: Collection[tuple[int, frozenset[int]]],
        known: dict[tuple[int, Parents], float],
    ) -> None:
        self.source, self.weight, self.variables, self.known = source, source.weight, tuple(variables), known
        self.barred = [[parents for c, parents in barred if c == child] for child in range(len(self.variables))]

    def families(self, families: Sequence[tuple[int, Parents]]) -> Array:
        self.source.watch = self.watch
        new = [f for f in dict.fromkeys(families) if f not in self.known]
        self.known.update(zip(new, self.source.families(new).tolist(), strict=True))
        return np.array([-np.inf if self._barred(*f) else self.known[f] for f in families])

    def _barred(self, child: int, parents: Parents) -> bool:
        return any(some <= set(parents) for some in self.barred[child])


def _alone(variable: Variable) -> Request:
    return family_of(variable, []).needs(variable, [])
