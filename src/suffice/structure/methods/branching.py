"""Constraints that are not about single edges, kept by any method: it is run again under stricter rules until they hold.

Where a pair is not adjacent that must be, the graphs are split in two; where there is a path that must not be, by the first of
its edges that is absent. The most promising part is searched first. With a method that proves its results, the result is proved.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np

from suffice.errors import FitError
from suffice.graphs.paths import find_cycle, shortest_path
from suffice.iteration import OutOfTime, Progress
from suffice.structure.constraints.rules import Parents, Rules
from suffice.structure.problem import Method, Outcome, Problem

Pair = tuple[int, int]


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
        """Run the method under some rules."""
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
        self._take(rules, outcome, most)
        if not outcome.finished:
            raise OutOfTime if outer.progress.left <= 0 else KeyboardInterrupt

    def _take(self, rules: Rules, outcome: Outcome, most: float) -> None:
        score = self.problem.scores.total(outcome.parents)
        bound = score if outcome.bound is None else min(most, outcome.bound)
        self.known &= outcome.bound is not None
        self._number += 1
        heappush(self._open, GraphSubset(-bound, self._number, rules, outcome.parents))
        if score > self.score and not self._choices(outcome.parents):
            self.best, self.score = outcome.parents, score
            self.problem.progress.better("constraints kept", score, outcome.parents)

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
