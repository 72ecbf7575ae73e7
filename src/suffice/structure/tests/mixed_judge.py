"""Tests of finite and real variables together, many at a time: one table of moments serves all with the same finite ones.

And which judge of independence is the fastest for some data and a test.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array
from suffice.scores import BIC
from suffice.statistics import Request
from suffice.structure.constraints.rules import Parents
from suffice.structure.problem import Problem
from suffice.structure.scoring.hybrid_scores import NUMBERS, HybridScores
from suffice.structure.scoring.local_scores import in_memory
from suffice.structure.tests.independence import FisherZ, GSquared, IndependenceTest, LikelihoodRatio, correlations
from suffice.structure.tests.separation import CorrelationJudge, Judge, judge_of_tables
from suffice.structure.tests.strata import Strata
from suffice.variables import Finite

Ints = npt.NDArray[Any]


class MixedJudge(Judge):
    """Log p-values of `LikelihoodRatio`: tables of finite variables alone as ever, the others from moments, a pass a batch."""

    batch = 2**13
    threads: int | None = 1  # a pass has threads of its own

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._real = np.array([not isinstance(v, Finite) for v in problem.variables])
        self._place = np.where(self._real, np.cumsum(self._real), np.cumsum(~self._real)) - 1
        self._sizes = [v.n_states if isinstance(v, Finite) else 0 for v in problem.variables]
        self._moments = HybridScores(problem.data, problem.variables, BIC(), threads=problem.threads)

    @cached_property
    def _of_finite(self) -> Any:
        """Who tests finite variables given finite ones."""
        finite = tuple(v for v in self.problem.variables if isinstance(v, Finite))
        return judge_of_tables(replace(self.problem, variables=finite), GSquared(adjusted=True))

    def log_p(self, pairs: Ints, owner: Ints, sets: Ints, enough: float) -> Array:
        ends = np.sort(pairs[owner], axis=1)
        members = np.column_stack([sets, ends])
        result, real = np.zeros(len(owner)), self._real[members]
        tables = np.flatnonzero(~real.any(1))
        if len(tables):
            asked, inverse = np.unique(owner[tables], return_inverse=True)
            places = self._place.astype(np.int32)
            some = (
                np.ascontiguousarray(places[pairs[asked]]),
                inverse.astype(np.int32),
                np.ascontiguousarray(places[sets[tables]]),
            )
            result[tables] = self._of_finite.log_p(*some, enough)
        groups: dict[Parents, dict[tuple[Parents, int], list[int]]] = {}
        for t in np.flatnonzero(real.any(1)).tolist():
            finite = members[t][~real[t]]
            pair = tuple(int(v) for v in ends[t] if not self._real[v])
            groups.setdefault(tuple(sorted(finite.tolist())), {}).setdefault((pair, len(finite)), []).append(t)
        for part in in_memory(groups.items(), lambda item: self._numbers(item[0]), NUMBERS):
            self.problem.progress.check()
            self._answer(dict(part), members, result)
        return result

    def _numbers(self, finite: Parents) -> float:
        return float(prod(self._sizes[v] for v in finite)) * float(self._real.sum()) ** 2

    def _answer(self, groups: dict[Parents, dict[tuple[Parents, int], list[int]]], members: Ints, result: Array) -> None:
        """The tests of some tables, which one pass over the rows fills."""
        for finite, moments in self._moments.about(list(groups)).items():
            for (pair, _), tests in groups[finite].items():
                strata = Strata.of(moments, [self._sizes[v] for v in finite], [finite.index(v) for v in pair])
                rows = members[tests]
                numbers = self._place[rows[self._real[rows]]].reshape(len(tests), -1)
                result[tests] = strata.answers(numbers.astype(np.int32))[:, 2]


def judge_of(problem: Problem, test: IndependenceTest) -> Judge:
    """The fastest judge for this data."""
    data, names = problem.data, problem.names
    if type(test) is FisherZ:
        moments = data.gather([Request((), names)], threads=problem.threads).moments((), names)
        return CorrelationJudge(correlations(moments), moments.total, problem.threads)
    if isinstance(test, LikelihoodRatio):
        return MixedJudge(problem)
    return judge_of_tables(problem, test)
