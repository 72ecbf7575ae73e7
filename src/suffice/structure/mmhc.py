"""MMHC: tests of independence choose the candidates, a climb by the score chooses among them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from suffice.structure.hill_climb import HillClimb, check_max_parents, check_number
from suffice.structure.independence import IndependenceTest, suited
from suffice.structure.orientation import possible
from suffice.structure.pc import check_tests
from suffice.structure.problem import Outcome, Problem
from suffice.structure.separation import Judge, Questions, judge_of, separated

Matrix = npt.NDArray[np.bool_]
Array = npt.NDArray[np.float64]

ALIKE = 1e-9
"""Log p-values that differ by a smaller share are equal; then the smaller name comes first."""


@dataclass(frozen=True)
class MMHC:
    """Max-min hill climbing (Tsamardinos, Brown & Aliferis 2006, Machine Learning 65): tests first, then the score.

    Each variable gets candidate neighbours by max-min parents and children: the one that is most dependent on it given the set
    of candidates that makes it least so is added, until none is dependent (p <= alpha) given every set; then candidates that a
    set of the others separates go again, and those that are not mutual. Sets have up to `max_condition` members. A hill climb,
    with as many `restarts`, within these candidates and the constraints finds the graph. `test` is as in `PC`.

    >>> from suffice.structure.search import search
    >>> rows = {"rain": ["no", "no", "yes", "yes"] * 9, "wet": ["no", "no", "yes", "no"] * 9, "moon": ["new"] * 18 + ["old"] * 18}
    >>> search(rows, method=MMHC()).dag
    Dag('moon; rain -> wet')
    """

    alpha: float = 0.05
    test: IndependenceTest | None = None
    max_condition: int | None = None
    max_parents: int | None = None
    restarts: int = 0

    def __post_init__(self) -> None:
        check_tests(self.alpha, self.max_condition)
        check_max_parents(self.max_parents)
        check_number("restarts", self.restarts, 0)

    def run(self, problem: Problem) -> Outcome:
        """Candidates by tests, then a climb among them."""
        scores = problem.scores
        rules = problem.rules.capped(self.max_parents)
        narrower = replace(problem, rules=rules.within(self.candidates(problem)))
        narrower.__dict__["scores"] = scores  # they are of the same data, and know what was asked before
        return HillClimb(restarts=self.restarts).run(narrower)

    def candidates(self, problem: Problem) -> Matrix:
        """[i, j]: whether i and j are candidates of each other."""
        if problem.n < 2:
            return np.zeros((problem.n, problem.n), bool)
        may = possible(problem.rules)
        judge = judge_of(problem, suited(problem.variables, self.test, adjusted=True))
        near = self._grown(judge, may | may.T, problem)
        near = self._shrunk(judge, near, problem)
        result: Matrix = near & near.T
        return result

    def _grown(self, judge: Judge, may: Matrix, problem: Problem) -> Matrix:
        """Add to every variable's candidates, one in each round, who is still dependent on it and most so."""
        largest = np.where(may, -np.inf, 0.0)  # [t, x]: the largest log p of t and x given any set of candidates of t
        near, newest = np.zeros_like(may), np.full(len(may), -1)
        targets = np.arange(len(may))
        while len(targets):
            self._dependence(judge, near, newest, targets, largest, problem)
            open_ = (largest <= np.log(self.alpha)) & ~near & may
            targets = np.array([t for t in targets if open_[t].any()], int)
            for t in targets:
                values = np.where(open_[t], largest[t], np.inf)
                least = values.min()
                newest[t] = np.flatnonzero(values <= (least + ALIKE * (1 + abs(least)) if least > -np.inf else least))[0]
            near[targets, newest[targets]] = True
        return near

    def _dependence(
        self,
        judge: Judge,
        near: Matrix,
        newest: npt.NDArray[np.int64],
        targets: npt.NDArray[np.int64],
        largest: Array,
        problem: Problem,
    ) -> None:
        """Bring `largest` up to date: the newest candidate makes new sets, with each set of the older ones."""
        older = near.copy()
        began = newest[targets[0]] >= 0
        older[targets[newest[targets] >= 0], newest[targets[newest[targets] >= 0]]] = False
        pools = [np.flatnonzero(row) for row in older]
        most = 1 + max((len(pools[t]) for t in targets), default=0) if began else 0
        for k in range(1 if began else 0, min(most, problem.n if self.max_condition is None else self.max_condition) + 1):
            left = (largest <= np.log(self.alpha)) & ~near
            pairs = [(t, x) for t in targets.tolist() if len(pools[t]) >= k - 1 for x in np.flatnonzero(left[t]).tolist()]
            if not pairs:
                continue
            which, always = [(t, -1) for t, _ in pairs], [int(newest[t]) for t, _ in pairs]
            answers = separated(judge, Questions.of(pairs, pools, which, always), k, self.alpha, problem.progress)
            at = tuple(np.array(pairs).T)
            largest[at] = np.maximum(largest[at], answers.log_p)

    def _shrunk(self, judge: Judge, near: Matrix, problem: Problem) -> Matrix:
        """Take away candidates that a set of the others separates."""
        pools = [np.flatnonzero(row) for row in near]
        kept = near.copy()
        most = max(map(len, pools)) - 1
        for k in range(min(most, problem.n if self.max_condition is None else self.max_condition) + 1):
            pairs = np.argwhere(kept)
            pairs = pairs[[len(pools[t]) > k for t in pairs[:, 0]]]
            which = np.column_stack([pairs[:, 0], np.full(len(pairs), -1)])
            answers = separated(judge, Questions.of(pairs, pools, which), k, self.alpha, problem.progress)
            for (t, x), given in zip(pairs.tolist(), answers.given, strict=True):
                kept[t, x] = given is None
        return kept
