"""Hill climbing: the change of one edge that gains most, again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.errors import FitError
from suffice.graphs import Dag
from suffice.structure.problem import Outcome, Problem
from suffice.structure.rules import Parents, Rules
from suffice.structure.walk import Move, Walk, starting

NOWHERE = np.empty(0, np.uint64)
"""Graphs not to go to: a climb has none, since it never goes down."""


@dataclass(frozen=True)
class HillClimb:
    """Add, delete or reverse the edge that gains most until nothing gains (Heckerman, Geiger & Chickering 1995, section 7).

    The climb begins at `start` (anything that `Dag` takes), or else with the required edges only. With `restarts` it goes on: the
    best graph so far is changed by `perturbations` random moves (by default half as many as variables, at least 8), and climbed
    from again. Of moves that gain alike, the first by (child, parent) is made, names in order, and an edge is rather deleted than
    reversed.

    >>> from suffice.structure.search import search
    >>> rows = {"rain": list("nnnnyyyy") * 9, "wet": list("nnnnyynn") * 9, "moon": list("nf") * 36}
    >>> found = search(rows, method=HillClimb())
    >>> found.dag
    Dag('moon; rain -> wet')
    >>> [step.what for step in found.trace]
    ['start', 'add wet -> rain']
    """

    max_parents: int | None = None
    restarts: int = 0
    start: Any = None
    perturbations: int | None = None

    def __post_init__(self) -> None:
        check_max_parents(self.max_parents)
        check_number("restarts", self.restarts, 0)
        if self.perturbations is not None:
            check_number("perturbations", self.perturbations, 1)
        if self.start is not None:
            object.__setattr__(self, "start", Dag(self.start))

    def run(self, problem: Problem) -> Outcome:
        """Climb, and climb again from each perturbed best graph."""
        rules = problem.rules.capped(self.max_parents)
        walk = Walk(problem, rules, starting(problem, rules, self.start))
        problem.progress.better("start", walk.total, list(walk.parents))
        climb(problem, walk)
        best = walk.copy()
        for k in range(self.restarts):
            top = walk.total
            perturb(walk, self.perturbations or max(8, problem.n // 2), np.random.default_rng([problem.seed, k]))
            climb(problem, walk, above=top)
            if walk.total > top + walk.scores.tie(top):
                best = walk.copy()
            else:
                walk.restore(best)
        return Outcome(list(walk.parents))


def climb(problem: Problem, walk: Walk, above: float = -np.inf) -> None:
    """Walk to a graph that no move betters; only steps to a score above `above` are news."""
    while True:
        total = walk.total
        tie = walk.scores.tie(total)
        move = walk.best(least=tie, visited=NOWHERE)
        if move is None:
            return
        walk.take(move)
        total = walk.total
        if total > above + (tie if above > -np.inf else 0.0):
            problem.progress.better(walk.words(move), total, list(walk.parents))
        else:
            problem.progress.check()


def climbed(problem: Problem, rules: Rules, start: list[Parents] | None = None) -> list[Parents]:
    """The parents in the graph that a climb within these rules ends at."""
    walk = Walk(problem, rules, rules.start() if start is None else start)
    best = problem.progress.score
    if best == -np.inf:
        problem.progress.better("start", walk.total, list(walk.parents))
    climb(problem, walk, above=best)
    return list(walk.parents)


def perturb(walk: Walk, n_moves: int, rng: np.random.Generator) -> None:
    """Make random moves: first the kind is drawn, then one of the moves of that kind."""
    for _ in range(n_moves):
        open_: list[Move] = walk.moves(int(rng.integers(3)))
        if open_:
            walk.take(open_[int(rng.integers(len(open_)))])


def check_max_parents(value: int | None) -> None:
    """Refuse what is no number of parents."""
    if value is not None:
        check_number("max_parents", value, 0)


def check_number(name: str, value: object, least: int) -> None:
    """Refuse an option that is no whole number of at least so much."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise FitError(f"{name} must be a whole number of at least {least}, not {value!r}")
