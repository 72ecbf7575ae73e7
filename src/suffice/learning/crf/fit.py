"""The door of linear chains: chain, sequences, principle and penalty, checked; then what the principle does with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.blas import one_blas_thread
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, listing, nearest, note, quantity, whole
from suffice.errors.remedies import Remedy
from suffice.iteration import ProgressLike, checked_seconds
from suffice.learning.crf.conditional import Climbing, climb
from suffice.learning.crf.margin import descend
from suffice.learning.crf.problem import LabelProblem
from suffice.learning.crf.updates import walk
from suffice.learning.gradient import LBFGS
from suffice.limits import COPIES, Budget, check_room
from suffice.models.crf import Crf
from suffice.models.linear_chain.reading import as_kinds, checked_sequences
from suffice.models.linear_chain.windows import LinearChain, Plain
from suffice.objectives import L1, L2, Conditional, Margin, PenaltySum, Perceptron, as_penalties
from suffice.variables import Finite


@dataclass(frozen=True, eq=False)
class LabelTask:
    """What is to be fitted, for a principle to say how."""

    problem: LabelProblem
    how: Climbing
    penalties: PenaltySum

    def by_conditional(self, objective: Conditional) -> Crf:
        weights, run = climb(replace(self.problem, costs=self._costs(objective)), self.how)
        heavy = f", label weights {dict(objective.label_weights)!r}" if objective.label_weights else ""
        by = f"conditional likelihood ({'OWL-QN' if self.how.c1 else 'L-BFGS'}{heavy}) with {self.penalties!r}: {run.headline()}"
        return self._crf(weights, by, run)

    def _costs(self, objective: Conditional) -> Array | None:
        """The logarithms of the weights of labels."""
        if not objective.label_weights:
            return None
        weights, labels = dict(objective.label_weights), self.problem.vocabulary.labels
        if strange := [x for x in weights if x not in labels]:
            note(f"label_weights name labels that are not there: {listing(strange)}{nearest(strange[0], labels)}")
        return np.log([weights.get(label, 1.0) for label in labels])

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
        return self._crf(weights, f"margins ({objective.cost!r}, cutting planes) with {self.penalties!r}: {run.headline()}", run)

    def _require_whole(self, what: str) -> None:
        """Refuse chains whose labels are told by more than the one before; tell of sequences that cannot be learned from."""
        if not self.problem.chain.is_plain:
            wider = Remedy("order=2, pairs=True in a Window, or transitions=", "--labels-back 2, pairs(...), or --transitions")
            instead = Remedy(f"Conditional({self.problem.chain.label!r})", "--objective conditional")
            raise FitError(f"{what} is for chains without {wider}: use {instead}")
        if n := self.problem.findings.n_partial:
            note(f"{what} learns from sequences with all of their labels: {n:,} with gaps are left out (Conditional takes them)")

    def _crf(self, weights: Array, by: str, run: Any) -> Crf:
        n, steps = self.problem.n_sequences, self.problem.sequences.n_steps
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
    time_limit: float | None = None,
    memory_limit: int | str | None = None,
    progress: ProgressLike = None,
    threads: int | None = None,
) -> Crf:
    """The `Crf` of a linear chain that sequences give."""
    chosen = _checked_objective(chain, objective)
    penalties = as_penalties(penalty)
    c1, c2 = (_strength(penalties, kind) for kind in (L1, L2))
    if method is not None and not isinstance(method, LBFGS):
        raise FitError(f"the weights of a linear chain are found by method=LBFGS(memory=...), not {method!r}")
    tol = (1e-2 if isinstance(chosen, Margin) else 1e-9) if tol is None else tol
    if isinstance(tol, bool) or not isinstance(tol, (int, float)) or not 0.0 <= tol < 1.0:
        raise FitError(f"tol is a share of the objective from 0 to 1, not {tol!r}")
    memory, limit = 6 if method is None else method.memory, checked_seconds(time_limit)
    most = whole(max_iter, "max_iter", 1)
    if start is not None and not isinstance(start, Crf):
        raise FitError(f"the start of a linear chain is a Crf, not {type(start).__name__}")
    room = Budget(memory_limit=memory_limit).room
    problem = LabelProblem.of(chain, open_columns(chain, data), threads=threads, room=room)
    check_room(room, 8.0 * (2 * memory + COPIES) * problem.features.n, f"{problem.features.n:,} weights", "keep fewer features")
    _say_unlabelled(problem)
    begin = np.zeros(problem.features.n) if start is None else carry_weights(start, problem)
    how = Climbing(c1, c2, begin, memory, float(tol), most, limit, progress)
    crf: Crf = chosen.fit(LabelTask(problem, how, penalties))
    return crf


def _checked_objective(chain: LinearChain, objective: Any) -> Any:
    chosen = Conditional(chain.label) if objective is None else objective
    if isinstance(chosen, type) or not hasattr(chosen, "fit"):
        name = chosen.__name__ if isinstance(chosen, type) else "Conditional"
        raise FitError(f"an objective is a value: objective={name}({chain.label!r}), not {objective!r}")
    if isinstance(chosen, (Conditional, Perceptron, Margin)) and chosen.target != chain.label:
        raise FitError(f"the objective is about {chosen.target!r}, and the label of the chain is {chain.label!r}")
    return chosen


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


def carry_weights(start: Crf, problem: LabelProblem) -> Array:
    """The weights of a model for the pairs of a problem, by name; 0 for pairs that it does not have."""
    known = dict(
        zip(start.features.names_of(start.vocabulary, np.arange(start.n_weights)), start.weight_vector.tolist(), strict=True)
    )
    own = problem.features.names_of(problem.vocabulary, np.arange(problem.features.n))
    return np.array([known.get(pair, 0.0) for pair in own])
