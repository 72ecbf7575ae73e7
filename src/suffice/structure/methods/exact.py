"""Exact search: the best graph of all, and the proof. And constraints that are not about single edges, kept by any method: it is
run again under stricter rules until they hold; where it proves its results, the result is proved.

Where a pair is not adjacent that must be, the graphs are split in two; where there is a path that must not be, by the first of
its edges that is absent. The most promising part is searched first.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heappop, heappush
from itertools import accumulate, pairwise
from math import comb
from time import perf_counter
from typing import Any

import numpy as np

from suffice.basis.iteration import OutOfTime, Progress
from suffice.engines.steps.blocks import available_memory
from suffice.errors import FitError
from suffice.errors.remedies import Remedy, name_of
from suffice.graphs.paths import find_cycle, shortest_path
from suffice.structure.methods.hill_climb import climb_from
from suffice.structure.methods.orders import AT_ONCE, MOST, Orders, best_of_all
from suffice.structure.problem import Method, Outcome, Problem, check_number
from suffice.structure.rules import Parents, Rules
from suffice.structure.scoring.parent_sets import ParentSets

Pair = tuple[int, int]

FEW = 8
"""Variables up to which any number of parents is allowed unless something else is said."""

AT_MOST = 100_000_000
"""Families that are scored at most: past that the table of parent sets alone takes hours."""

A_SUBSET = 8e-9
"""Seconds for each subset and each of its variables, one thread."""

AHEAD = 0.9
"""The share of the time left that dynamic programming may be seen to take; else branch and cut gets the rest."""

SEEN = 0.3
"""Seconds after which its pace is believed."""


@dataclass(frozen=True)
class Exact(Method):
    """The best graph of all, proved, with at most `max_parents` parents; by default any number up to 8 variables, else 3.

    Up to 27 variables, and while 8 · 2^n bytes are at hand, by dynamic programming over all subsets of the variables (Silander &
    Myllymäki 2006, UAI, pp. 445–452). With more, or where the time is too short for that, by branch and cut on HiGHS (Bartlett &
    Cussens 2017, Artificial Intelligence 244, pp. 258–271), which begins with what `Orders` finds, and stops as soon as no graph
    can score more than `gap` of the score above the best. When the time is over, or on Ctrl-C, the best graph so far comes with
    the bound so far: `found.gap`.

    >>> from suffice import search
    >>> rows = {"rain": list("nnnnyyyy") * 9, "wet": list("nnnnyynn") * 9, "moon": list("nf") * 36}
    >>> found = search(rows, method=Exact())
    >>> found.dag, found.proved
    (Dag('moon; rain -> wet'), True)
    """

    word = "exact"

    max_parents: int | None = None
    gap: float = 0.0

    def __post_init__(self) -> None:
        check_number("max_parents", self.max_parents, 0, optional=True)
        if not isinstance(self.gap, (int, float)) or isinstance(self.gap, bool) or not 0 <= self.gap < 1:
            raise FitError(f"gap is a share of the score, from 0 to below 1, not {self.gap!r}")

    def most_parents(self, n: int) -> int:
        """The parents that a variable may have when there are n variables.

        >>> Exact().most_parents(8), Exact().most_parents(9), Exact(max_parents=2).most_parents(8)
        (7, 3, 2)
        """
        if self.max_parents is not None:
            return self.max_parents
        return max(n - 1, 0) if n <= FEW else 3

    def run(self, problem: Problem) -> Outcome:
        """Score every parent set that the rules allow, then search among them."""
        rules = problem.rules.cap(self.most_parents(problem.n))
        if rules.n_families > AT_MOST:
            raise FitError(
                f"an exact search would have to score {rules.n_families:,} families; allow fewer parents "
                f"({name_of('max_parents')}) or give each variable a list of candidates, or use "
                f"{Remedy('Orders()', '--method orders')}"
            )
        # something to return, should time be short
        problem.progress.better("start", problem.scores.total(rules.start()), rules.start())
        problem.scores.survey(rules)
        if rules.n_families >= problem.scores.quick:
            climb_from(problem, rules)
        sets = problem.scores.parent_sets(rules)
        free = available_memory() / 2 if problem.memory_limit is None else problem.memory_limit
        n = problem.n_open
        try:
            if n <= MOST and 8 * 2.0**n <= free and A_SUBSET * n * 2.0**n < problem.progress.left:
                with suppress(TooSlow):  # stopped half-way, it has no bound: branch and cut has one from its first steps on
                    return _by_subsets(problem, sets)
            return _by_branches(problem, sets, self.gap)
        except (OutOfTime, KeyboardInterrupt):
            if problem.progress.best is None:
                raise
            return Outcome(problem.progress.best, sets.bound, finished=False)


class TooSlow(Exception):
    """Dynamic programming would not come to its end in time."""


class Pace:
    """Looks ahead from how long the subsets so far took: there is no use in a part of them."""

    def __init__(self, progress: Progress[Any], n: int) -> None:
        from suffice.numerics.kernels.search.subsets import LOW

        self.progress, self.start, self.calls = progress, perf_counter(), 0
        self.most = AHEAD * progress.left
        low = min(n, LOW)
        sizes = [comb(n - low, k) for k in range(n - low + 1)]
        # a block is as much work as there are variables that vary within it, or are in all of its subsets
        parts = [(low + k) * min(AT_ONCE, m - j) for k, m in enumerate(sizes) for j in range(0, m, AT_ONCE)]
        self.work = list(accumulate(parts))

    def check(self) -> None:
        """Called after each part; raises `TooSlow` once the end is seen to come too late."""
        self.progress.check("all subsets")
        self.calls += 1
        spent = perf_counter() - self.start
        if spent > SEEN and spent * self.work[-1] / self.work[self.calls - 1] > self.most:
            raise TooSlow


def _by_subsets(problem: Problem, sets: ParentSets) -> Outcome:
    """Dynamic programming. Stopped half-way it knows nothing, so with many variables a good graph is found first."""
    if problem.n_open > 20:
        Orders().search_orders(problem, sets, problem.rules)
    tie = problem.scores.tie(sets.bound) / 4
    pace = Pace(problem.progress, problem.n_open)
    parents = best_of_all(sets, problem.given, tie=tie, threads=problem.threads, check=pace.check)
    score = problem.scores.total(parents)
    _report(problem, "all subsets", score, parents)
    return Outcome(parents, score)


def _by_branches(problem: Problem, sets: ParentSets, gap: float) -> Outcome:
    """Branch and cut from the best of a search over orders."""
    from suffice.structure.methods.branch_and_cut import BranchAndCut

    def time_left() -> float:
        problem.progress.check(f"{tree.n_nodes} nodes, at most {tree.bound - tree.score:,.3f} more")
        return problem.progress.left

    start = Orders().search_orders(problem, sets, problem.rules)
    tie, better = problem.scores.tie(problem.scores.total(start)), partial(_report, problem, "branch and cut")
    tree = BranchAndCut(sets, start, tie=tie, gap=gap, left=time_left, better=better)
    finished = True
    try:
        tree.run()
    except (OutOfTime, KeyboardInterrupt):
        finished = False
    score = problem.scores.total(tree.parents)
    return Outcome(tree.parents, score if tree.proved else max(tree.bound, score), finished=finished)


def _report(problem: Problem, what: str, score: float, parents: list[Parents]) -> None:
    if score > problem.progress.score:
        problem.progress.better(what, score, parents)


@dataclass(order=True)
class GraphSubset:
    """Some of the graphs, with the best of them that the method found; `worst` is minus what they may score at most.

    From a method without bounds it is minus the score of what it found.
    """

    worst: float
    number: int
    rules: Rules = field(compare=False)
    parents: list[Parents] = field(compare=False)


class Branching:
    """A method among the graphs in which some pairs are adjacent, and there is no path from a to b for some (a, b)."""

    problem: Problem

    def __init__(self, method: Method, adjacent: list[Pair], not_ancestor: list[Pair]) -> None:
        self.method, self.adjacent, self.not_ancestor = method, adjacent, not_ancestor
        self.best: list[Parents] | None = None
        self.score = -np.inf
        self.known = True
        self._open: list[GraphSubset] = []
        self._left = -np.inf  # the largest bound of a part that is done
        self._number = 0

    def run(self, problem: Problem) -> Outcome:
        """The best of these graphs, and a bound if the method gives one."""
        self.problem, finished = problem, True
        try:
            self._branch()
        except (OutOfTime, KeyboardInterrupt):
            if self.best is None:
                raise
            finished = False
        if self.best is None:
            raise FitError(f"{type(self.method).__name__} found no graph that keeps the constraints")
        bound = max([self.score, self._left, *(-part.worst for part in self._open)])
        return Outcome(self.best, bound if self.known else None, finished=finished)

    def _branch(self) -> None:
        """Search, and split what does not keep the constraints, until no part can hold a better graph."""
        self._search(self.problem.rules_of(self.method), np.inf)
        while self._open and (self.best is None or -self._open[0].worst > self.score + self.problem.scores.tie(self.score) / 4):
            part = heappop(self._open)
            choices = self._choices(part.parents)
            if not choices:  # its graph keeps the constraints; what else it may hold, the method did not find
                self._left = max(self._left, -part.worst)
            else:
                left = [rules for choice in choices if (rules := _stricter(part.rules, *choice)) is not None]
                try:
                    while left:
                        self._search(left[0], -part.worst)
                        del left[0]
                finally:
                    for other in left:  # not searched, but not forgotten
                        heappush(self._open, replace(part, rules=other))

    def _search(self, rules: Rules, most: float) -> None:
        """Run the method under some rules, and take what it finds."""
        outer = self.problem
        outer.progress.check(f"{self._number} branches")
        left = None if np.isinf(outer.progress.left) else outer.progress.left
        inner: Progress[list[Parents]] = Progress(outer.progress.what, left, outer.progress.show)
        inner.memory = outer.progress.memory
        try:
            outcome = self.method.run(outer.under(rules=rules, progress=inner))
        except FitError:
            if self._number == 0:
                raise
            return  # no graph is left, or none that the method can begin with
        finally:
            inner.close()
        if outcome.cpdag is not None:
            raise FitError(f"{type(self.method).__name__} has no score, and cannot keep constraints on adjacency and ancestors")
        score = outer.scores.total(outcome.parents)
        bound = score if outcome.bound is None else min(most, outcome.bound)
        self.known &= outcome.bound is not None
        self._number += 1
        heappush(self._open, GraphSubset(-bound, self._number, rules, outcome.parents))
        if score > self.score and not self._choices(outcome.parents):
            self.best, self.score = outcome.parents, score
            outer.progress.better("constraints kept", score, outcome.parents)
        if not outcome.finished:
            raise inner.stop

    def _choices(self, parents: list[Parents]) -> list[tuple[list[Pair], Pair | None]]:
        """Of a constraint that the graph does not keep: edges that must be there and one that must not, in several ways.

        Every graph that keeps the constraint keeps one of them. None for a graph that keeps all constraints.
        """
        for a, b in self.adjacent:
            if a not in parents[b] and b not in parents[a]:
                return [([(a, b)], None), ([(b, a)], None)]
        for a, b in self.not_ancestor:
            if path := shortest_path(b, a, dict(enumerate(parents))):
                edges = list(pairwise(path[::-1]))
                return [(edges[:k], edge) for k, edge in enumerate(edges)]
        return []


def _stricter(rules: Rules, needed: list[Pair], absent: Pair | None) -> Rules | None:
    """The rules with edges (parent, child) that must be there, and one that must not; None if no graph can keep them."""
    allowed, required = rules.allowed.copy(), rules.required.copy()
    for parent, child in needed:
        if not allowed[child, parent]:
            return None
        required[child, parent] = True
        allowed[parent, child] = False
    if absent is not None:
        parent, child = absent
        allowed[child, parent] = False
    if (required & ~allowed).any() or (required.sum(1) > rules.max_parents).any():
        return None
    result = replace(rules, allowed=allowed, required=required)
    return None if find_cycle(dict(enumerate(result.start()))) else result
