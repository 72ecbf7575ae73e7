"""Tabu search: hill climbing that goes on downhill, and not back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.graphs import Dag
from suffice.structure.hill_climb import check_max_parents, check_number
from suffice.structure.problem import Outcome, Problem
from suffice.structure.walk import Walk, starting


@dataclass(frozen=True)
class Tabu:
    """Hill climbing that takes the best step even where it loses, to a graph that it has not just left (Glover 1989, 1990).

    The last `length` graphs are not gone back to. The search ends after `patience` steps in a row without a new best graph, and
    gives the best graph of its way. `start` and ties are as in `HillClimb`.

    >>> from suffice.structure.search import search
    >>> rows = {"rain": list("nnnnyyyy") * 9, "wet": list("nnnnyynn") * 9, "moon": list("nf") * 36}
    >>> search(rows, method=Tabu()).dag
    Dag('moon; rain -> wet')
    """

    max_parents: int | None = None
    length: int = 100
    patience: int = 100
    start: Any = None

    def __post_init__(self) -> None:
        check_max_parents(self.max_parents)
        check_number("length", self.length, 1)
        check_number("patience", self.patience, 1)
        if self.start is not None:
            object.__setattr__(self, "start", Dag(self.start))

    def run(self, problem: Problem) -> Outcome:
        """Walk on until patience ends."""
        rules, progress = problem.rules.capped(self.max_parents), problem.progress
        walk = Walk(problem, rules, starting(problem, rules, self.start))
        best, top, idle = list(walk.parents), walk.total, 0
        progress.better("start", top, best)
        visited = np.zeros(self.length, np.uint64)
        step = 0
        while idle < self.patience:
            visited[step % self.length] = walk.graph
            step += 1
            move = walk.best(least=-np.inf, visited=visited[:step])
            if move is None:
                break
            walk.take(move)
            if walk.total > top + walk.scores.tie(top):
                best, top, idle = list(walk.parents), walk.total, 0
                progress.better(walk.words(move), top, best)
            else:
                idle += 1
                progress.check()
        return Outcome(best)
