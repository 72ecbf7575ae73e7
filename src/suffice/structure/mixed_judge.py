"""Tests of finite and real variables together, many at a time: one table of moments serves all with the same finite ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.scores import BIC
from suffice.statistics import Moments
from suffice.structure.hybrid_scores import NUMBERS, ConfigurationMoments, HybridScores
from suffice.structure.independence import GSquared
from suffice.structure.local_scores import in_memory
from suffice.structure.problem import Problem
from suffice.structure.rules import Parents
from suffice.structure.separation import Judge, judge_of
from suffice.variables import Finite

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[Any]


class Strata(NamedTuple):
    """Groups of rows, those that agree in the finite variables that are given one after the other: see `mixed_tests`."""

    groups: tuple[Array, Array, Array, Ints, Ints, Ints]
    sizes: tuple[int, ...]
    """The numbers of states of those of the pair that are finite."""

    @staticmethod
    def of(moments: ConfigurationMoments, sizes: Sequence[int], pair: Sequence[int]) -> Strata:
        """From moments within configurations of finite variables with these numbers of states; the pair's by place."""
        codes = (
            np.array(np.unravel_index(moments.keys, tuple(sizes))) if len(sizes) else np.zeros((0, len(moments.keys)), np.int64)
        )
        given = [i for i in range(len(sizes)) if i not in pair]
        stratum = np.zeros(len(moments.keys), np.int64)
        for i in given:
            stratum = stratum * sizes[i] + codes[i]
        order = np.argsort(stratum, kind="stable")
        stratum = stratum[order]
        first = np.concatenate([[0], np.flatnonzero(np.diff(stratum)) + 1, [len(stratum)]]).astype(np.int64)
        states = [np.ascontiguousarray(codes[i][order]) for i in pair] + [np.zeros(len(order), np.int64)] * (2 - len(pair))
        arrays = (np.ascontiguousarray(a[order]) for a in (moments.weight, moments.mean, moments.scatter))
        return Strata((*arrays, first, *states), tuple(sizes[i] for i in pair))  # type: ignore[arg-type]

    @staticmethod
    def of_moments(moments: Moments, pair: Sequence[str]) -> Strata:
        """From moments that were gathered, in units of the deviations of all rows."""
        whole = moments.marginal((), moments.reals)
        deviation = (
            np.sqrt(np.diag(whole.scatter[0]) / max(whole.total, 1.0)) if len(whole.scatter) else np.zeros(len(moments.reals))
        )
        scale = np.where(deviation > 0, deviation, 1.0)
        centre = whole.mean[0] if len(whole.mean) else np.zeros(len(moments.reals))
        about = ConfigurationMoments.about_own_means(moments, centre, scale)
        return Strata.of(about, [v.n_states for v in moments.variables], [moments.names.index(n) for n in pair])

    def answers(self, members: npt.NDArray[np.int32]) -> Array:
        """Statistic, degrees of freedom and log p of tests by the places of their numbers: the given, then the pair's."""
        from suffice.kernels.mixed_tests import ratio_tests, state_tests

        result = np.zeros((len(members), 3))
        members = np.ascontiguousarray(members, np.int32)
        if len(self.sizes) == 2:
            state_tests(self.groups, members, *self.sizes, result)
        else:
            ratio_tests(self.groups, members, not self.sizes, result)
        return result


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
        return judge_of(replace(self.problem, variables=finite), GSquared(adjusted=True))

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
        for finite, moments in self._tables(list(groups)).items():
            for (pair, _), tests in groups[finite].items():
                strata = Strata.of(moments, [self._sizes[v] for v in finite], [finite.index(v) for v in pair])
                rows = members[tests]
                numbers = self._place[rows[self._real[rows]]].reshape(len(tests), -1)
                result[tests] = strata.answers(numbers.astype(np.int32))[:, 2]

    def _tables(self, wanted: Sequence[Parents]) -> dict[Parents, ConfigurationMoments]:
        """Moments of all numbers by configurations of each set; again about their own means where digits were lost."""
        return self._moments.about(wanted)
