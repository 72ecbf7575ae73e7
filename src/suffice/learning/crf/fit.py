"""The door of linear chains: chain, sequences, principle and penalty, checked; then what the principle does with them.

Conditional likelihood: minimise −Σ log p(labels | all else) + c1 Σ|w| + c2 Σ w² by L-BFGS, or OWL-QN with an L1. With c2 > 0 the
objective is strongly convex, and the optimum is at most ‖g‖² / (4 c2) below it, g the smallest of its (sub)gradients: that is the
end of the iteration, and stands in its trace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.blas import one_blas_thread
from suffice.basis.iteration import OutOfTime, Progress
from suffice.basis.limits import COPIES, NO_LIMITS, Budget, check_room
from suffice.basis.variables import Finite
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, listing, nearest, note, quantity, whole
from suffice.errors.remedies import Remedy, argument
from suffice.learning.crf.margin import descend, walk
from suffice.learning.crf.problem import Climbing, LabelProblem
from suffice.learning.gradient import LBFGS
from suffice.learning.owlqn import minimise, pseudo_gradient
from suffice.models.crf import Crf, WeightRun, WeightStep
from suffice.models.linear_chain.reading import as_kinds, checked_sequences
from suffice.models.linear_chain.windows import LinearChain, Plain
from suffice.objectives.principles import L1, L2, Conditional, Margin, PenaltySum, Perceptron, as_penalties


@dataclass(frozen=True, eq=False)
class LabelTask:
    """What is to be fitted, for a principle to say how."""

    problem: LabelProblem
    how: Climbing
    penalties: PenaltySum

    def by_conditional(self, objective: Conditional) -> Crf:
        costs = None
        if objective.label_weights:
            given, labels = dict(objective.label_weights), self.problem.vocabulary.labels
            if strange := [x for x in given if x not in labels]:
                note(f"label_weights name labels that are not there: {listing(strange)}{nearest(strange[0], labels)}")
            costs = np.log([given.get(label, 1.0) for label in labels])
        weights, run = climb(replace(self.problem, costs=costs), self.how)
        heavy = f", label weights {dict(objective.label_weights)!r}" if objective.label_weights else ""
        by = f"conditional likelihood ({'OWL-QN' if self.how.c1 else 'L-BFGS'}{heavy}) with {self.penalties!r}: {run.in_words()}"
        return self._crf(weights, by, run)

    def by_perceptron(self, objective: Perceptron) -> Crf:
        if self.penalties:
            raise FitError(f"Perceptron has no penalty, and {self.penalties!r} was given; averaging keeps its weights small")
        self._require_whole("Perceptron")
        weights, run = walk(self.problem, self.how, objective)
        wrong = f"{run.objective:,.0f} labels wrong in the last epoch" if run.trace else "stopped at once"
        return self._crf(weights, f"{objective!r}: {len(run.trace)} epochs, {wrong}", run)

    def by_margin(self, objective: Margin) -> Crf:
        if self.how.c1 or not self.how.c2:
            raise FitError(f"Margin is fitted with a penalty L2(c2) alone, c2 above 0, not with {self.penalties!r}")
        self._require_whole("Margin")
        weights, run = descend(self.problem, self.how, objective.cost.cost)
        return self._crf(weights, f"margins ({objective.cost!r}, cutting planes) with {self.penalties!r}: {run.in_words()}", run)

    def _require_whole(self, what: str) -> None:
        """Refuse chains whose labels are told by more than the one before, and rows that no block is kept of, since sequences are
        taken one after the other; tell of those that cannot be learned from."""
        if not self.problem.chain.is_plain:
            wider = Remedy("order=2, pairs=True in a Window, or transitions=", "--labels-back 2, pairs(...), or --transitions")
            instead = Remedy(f"Conditional({self.problem.chain.label!r})", "--objective conditional")
            raise FitError(f"{what} is for chains without {wider}: use {instead}")
        if not self.problem.findings.blocks:
            raise FitError(f"{what} takes sequences one after the other, so they must be near; use Conditional")
        if n := self.problem.findings.n_partial:
            note(f"{what} learns from sequences with all of their labels: {n:,} with gaps are left out (Conditional takes them)")

    def _crf(self, weights: Array, by: str, run: Any) -> Crf:
        rows = self.problem.sequences
        n, steps = rows.n_sequences - self.problem.findings.n_blank, rows.n_steps
        info = f"fitted from {quantity(n, 'sequence')} ({quantity(steps, 'step')}) by {by}"
        return Crf(self.problem.vocabulary, self.problem.features, weights, fit_info=info, run=run)


@one_blas_thread
def fit_linear_chain(
    chain: LinearChain,
    data: Any,
    *,
    objective: Any = None,
    penalty: Any = None,
    method: Any = None,
    start: Crf | None = None,
    tol: float | None = None,
    max_iter: int = 1000,
    budget: Budget = NO_LIMITS,
) -> Crf:
    """The `Crf` of a linear chain that sequences give."""
    chosen = Conditional(chain.label) if objective is None else objective
    if isinstance(chosen, (Conditional, Perceptron, Margin)) and chosen.target != chain.label:
        raise FitError(f"the objective is about {chosen.target!r}, and the label of the chain is {chain.label!r}")
    penalties = as_penalties(penalty)
    c1, c2 = (_strength(penalties, kind) for kind in (L1, L2))
    if method is not None and not isinstance(method, LBFGS):
        raise FitError(f"the weights of a linear chain are found by method=LBFGS(memory=...), not {method!r}")
    tol = (1e-2 if isinstance(chosen, Margin) else 1e-9) if tol is None else tol
    if isinstance(tol, bool) or not isinstance(tol, (int, float)) or not 0.0 <= tol < 1.0:
        raise FitError(f"tol is a share of the objective from 0 to 1, not {tol!r}")
    memory, most = 6 if method is None else method.memory, whole(max_iter, "max_iter", 1)
    if start is not None and not isinstance(start, Crf):
        raise FitError(f"the start of a linear chain is a Crf, not {type(start).__name__}")
    problem = LabelProblem.of(chain, open_columns(chain, data), threads=budget.threads, room=budget.room)
    n = problem.features.n
    check_room(budget.room, 8.0 * (2 * memory + COPIES) * n, f"{n:,} weights", "keep fewer features")
    _say_unlabelled(problem)
    begin = np.zeros(n)
    if start is not None:  # the weights of the same pairs, by name
        names = start.features.names_of(start.vocabulary, np.arange(start.n_weights))
        known = dict(zip(names, start.weight_vector.tolist(), strict=True))
        own = problem.features.names_of(problem.vocabulary, np.arange(n))
        begin = np.array([known.get(pair, 0.0) for pair in own])
    how = Climbing(c1, c2, begin, memory, float(tol), most, budget)
    crf: Crf = chosen.fit(LabelTask(problem, how, penalties))
    return crf


def _strength(penalties: PenaltySum, kind: type) -> float:
    """The sum of the penalties of a kind, each one number for all weights."""
    own = [p.strength for p in penalties.parts if isinstance(p, kind)]
    if any(not isinstance(s, float) for s in own):
        raise FitError(f"a linear chain takes one number for all of its weights: {kind.__name__}(0.1)")
    return float(sum(own))


def open_columns(chain: LinearChain, data: Any) -> Sequences:
    """The columns of a chain, its label as states."""
    rows = checked_sequences(data)
    for name, what in ((chain.label, "the label of the chain"), *((c, "a feature of the chain") for c in chain.columns)):
        if name not in rows.columns:
            raise DataError(f"the sequences have no column {name!r}, which is {what}{nearest(name, rows.columns)}")
    rows = rows.select([*chain.columns, chain.label])
    if rows.missing[chain.label] == rows.n_rows:
        raise DataError(f"every cell of the label {chain.label!r} is missing: there is nothing to learn from")
    texts = {p.column.source: Finite for p in chain.places if not isinstance(p.column, Plain)}
    rows = as_kinds(rows, {chain.label: Finite, **texts})
    unique = [n for n in chain.columns if n in rows.data.identifiers]
    if unique:
        note(f"{listing(unique)}: nearly every row has a value of its own, so that new rows will seldom have one that is known")
    blank = [n for n in chain.columns if rows.missing[n] == rows.n_rows]
    if blank:
        raise DataError(f"every cell of {listing(blank)} is missing: leave it out of the features")
    return rows


def _say_unlabelled(problem: LabelProblem) -> None:
    found, label = problem.findings, problem.chain.label
    if len(problem.vocabulary.labels) == 1:
        note(f"every {label!r} is {problem.vocabulary.labels[0]!r}: there is nothing to tell apart")
    if found.n_partial:
        note(
            f"{quantity(found.n_gaps, 'step')} of {quantity(found.n_partial, 'sequence')} without {label!r}: "
            "what it may be there is summed over"
        )
    if found.n_blank:
        note(f"{found.n_blank:,} sequences have no {label!r} at all: they tell nothing of it, and are left out")


PERIOD, SLOW = 10, 100.0
"""Without a bound, the end is where so many iterations gain less than so many times `tol`, relative to the objective."""


class _NearEnough(Exception):
    """The optimum is near enough."""


class LabelDescent:
    """The way down: the last point that was evaluated, and the trace of those that were accepted."""

    def __init__(self, problem: LabelProblem, how: Climbing, watch: Progress[Array]) -> None:
        self.problem, self.how, self.watch, self.best, self.trace = problem, how, watch, how.start, list[WeightStep]()

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
    watch: Progress[Array] = how.budget.watch("fitting labels")
    way = LabelDescent(problem, how, watch)
    l1 = np.full(problem.features.n, how.c1) if how.c1 else None
    converged, stopped = False, False
    try:
        found = minimise(
            way.evaluate, how.start, l1=l1, memory=how.memory, tol=0.0, max_iter=how.max_iter, check=way.accept, bounds=False
        )
        if not way.trace or not np.array_equal(found.x, way.best):
            way.evaluate(found.x)
            way.accept()
        converged = found.iterations < how.max_iter  # no step gains anything more
    except _NearEnough:
        converged = True
    except (OutOfTime, KeyboardInterrupt):
        stopped = True
    finally:
        watch.close()
    if stopped:
        note("the fit was stopped before its end; these are the best weights so far")
    elif not converged:
        note(f"the fit did not converge in {how.max_iter:,} iterations; allow more with {argument('max_iter')}")
    return way.best, WeightRun(tuple(way.trace), converged and not stopped)
