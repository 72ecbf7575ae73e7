"""What a search found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from suffice.graphs import Cpdag, Dag
from suffice.iteration import Step
from suffice.structure.problem import Outcome, Problem


@dataclass(frozen=True, eq=False)
class Found:
    """A graph, its score, and how it was found."""

    dag: Dag
    cpdag: Cpdag
    score: float | None
    trace: tuple[Step, ...]
    bound: float | None
    finished: bool
    method: Any
    problem: Problem = field(repr=False)

    @staticmethod
    def of(problem: Problem, method: Any, outcome: Outcome, finished: bool) -> Found:
        if outcome.cpdag is not None:
            dag, cpdag, score = outcome.cpdag.to_dag(), outcome.cpdag, None
        else:
            dag, score = problem.dag(outcome.parents), problem.scores.total(outcome.parents)
            cpdag = dag.cpdag()
        return Found(dag, cpdag, score, tuple(problem.progress.trace), outcome.bound, finished, method, problem)

    @property
    def proved(self) -> bool:
        """Whether no graph that keeps the rules scores more."""
        return self.gap is not None and self.gap <= 1e-9

    @property
    def gap(self) -> float | None:
        """How much more another graph could score, relative to this score; None where nothing is known."""
        if self.bound is None or self.score is None:
            return None
        return max(0.0, self.bound - self.score) / max(1.0, abs(self.score))
