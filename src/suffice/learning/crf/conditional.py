"""Conditional likelihood: minimise −Σ log p(labels | all else) + c1 Σ|w| + c2 Σ w² by L-BFGS, or OWL-QN with an L1.

With c2 > 0 the objective is strongly convex, and the optimum is at most ‖g‖² / (4 c2) below it, g the smallest of its
(sub)gradients: that is the end of the iteration, and stands in its trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from suffice.basis.arrays import Array
from suffice.errors import note
from suffice.errors.remedies import argument
from suffice.iteration import OutOfTime, Progress, ProgressLike
from suffice.learning.crf.problem import LabelProblem
from suffice.learning.owlqn import minimise, pseudo_gradient
from suffice.models.crf import WeightRun, WeightStep

PERIOD, SLOW = 10, 100.0
"""Without a bound, the end is where so many iterations gain less than so many times `tol`, relative to the objective."""


@dataclass(frozen=True)
class Climbing:
    """How weights are found: prices of |w| and w², steps that L-BFGS remembers, when it ends, and where it begins."""

    c1: float
    c2: float
    start: Array
    memory: int = 6
    tol: float = 1e-9
    max_iter: int = 1000
    time_limit: float | None = None
    progress: ProgressLike = None


class _NearEnough(Exception):
    """The optimum is near enough."""


@dataclass(eq=False)
class LabelDescent:
    """The way down: the last point that was evaluated, and the trace of those that were accepted."""

    problem: LabelProblem
    how: Climbing
    watch: Progress[Array]
    x: Array = field(default_factory=lambda: np.zeros(0))
    loss: float = 0.0
    gradient: Array = field(default_factory=lambda: np.zeros(0))
    best: Array = field(default_factory=lambda: np.zeros(0))
    trace: list[WeightStep] = field(default_factory=list)

    def evaluate(self, w: Array) -> tuple[float, Array]:
        """The smooth part of the objective, and its gradient."""
        self.watch.check(f"iteration {len(self.trace)}" + (f", objective {self.trace[-1].objective:,.4f}" if self.trace else ""))
        c2 = self.how.c2
        self.loss, gradient = self.problem.loss(w)
        self.x, self.gradient = w.copy(), gradient + 2.0 * c2 * w
        return self.loss + c2 * float(w @ w), self.gradient

    def accept(self, _iteration: int = 0, _value: float = 0.0) -> None:
        """The last point that was evaluated is the next of the way. Raises where it is near enough to the optimum."""
        how, x = self.how, self.x
        slope = pseudo_gradient(x, self.gradient, np.full(len(x), how.c1)) if how.c1 else self.gradient
        bound = float(slope @ slope) / (4.0 * how.c2) if how.c2 else float("nan")
        objective = self.loss + (how.c1 * float(np.abs(x).sum()) + how.c2 * float(x @ x))
        self.best = x
        self.trace.append(WeightStep(objective, -self.loss, bound, int(np.count_nonzero(x)), self.watch.seconds))
        size = max(1.0, abs(objective))
        if bound <= how.tol * size or not slope.any():
            raise _NearEnough
        if len(self.trace) > PERIOD:
            gain = self.trace[-1 - PERIOD].objective - objective
            if gain <= (SLOW * how.tol if not how.c2 else 1e-15) * size:
                raise _NearEnough


def climb(problem: LabelProblem, how: Climbing) -> tuple[Array, WeightRun]:
    """The weights, and how they were found. After Ctrl-C or the time limit, the best so far."""
    watch: Progress[Array] = Progress("fitting labels", how.time_limit, how.progress)
    way = LabelDescent(problem, how, watch)
    l1 = np.full(problem.features.n, how.c1) if how.c1 else None
    converged, stopped = False, False
    try:
        found = minimise(
            way.evaluate, how.start, l1=l1, memory=how.memory, tol=0.0, max_iter=how.max_iter, check=way.accept, bounds=False
        )
        if not np.array_equal(found.x, way.best):
            way.evaluate(found.x)
            way.accept()
        converged = found.iterations < how.max_iter  # no step gains anything more
    except _NearEnough:
        converged = True
    except (OutOfTime, KeyboardInterrupt):
        stopped = True
    finally:
        watch.close()
    if not way.trace:
        way.best = how.start
    if stopped:
        note("the fit was stopped before its end; these are the best weights so far")
    elif not converged:
        note(f"the fit did not converge in {how.max_iter:,} iterations; allow more with {argument('max_iter')}")
    return way.best, WeightRun(tuple(way.trace), converged and not stopped)
