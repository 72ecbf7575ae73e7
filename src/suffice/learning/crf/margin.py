"""Margins: minimise c2 Σ w² + Σ_q H_q(w), H_q = max_y (cost(y_q, y) + score(y)) − score(y_q), by block-coordinate Frank–Wolfe.

Each sequence has a mixture of labellings, by step `steps[t, j]` and by pair, which begins with the right one. A step moves it
towards the labels that violate most, as far as the dual gains. Then 2 c2 w = Σ_q (right labels − mixture), and

    dual = Σ_q cost(mixture) − c2 Σ w²,    gap = objective − dual

is known after each pass (Lacoste-Julien, Jaggi, Schmidt & Pletscher 2013, ICML 30, p. 53).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from suffice.errors import note
from suffice.iteration import OutOfTime, Progress
from suffice.learning.crf.conditional import Climbing
from suffice.learning.crf.problem import Encoded, LabelProblem
from suffice.learning.crf.updates import LabelUpdates, near_blocks
from suffice.models.linear_chain.encoding import EncodedBlock
from suffice.models.linear_chain.features import PairFeatures, most_probable
from suffice.models.linear_chain.run import WeightRun, WeightStep

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MostViolated:
    """Σ w max_y (cost + score(y)) of the sequences of an encoded block."""

    features: PairFeatures
    weights: Array
    cost: float

    def __call__(self, block: Encoded) -> float:
        own = block[0]
        if not own.n_steps:
            return 0.0
        T = self.features.transitions(self.weights)
        values = most_probable(self.features, self.weights, own, T, cost=self.cost).scores
        return float(values.sum() if own.weights is None else values @ first_weights(own))


def first_weights(block: EncodedBlock) -> Array:
    """The weight of each sequence that has some, in the order of the layout: that of its first step."""
    assert block.weights is not None
    parts = [block.weights[part.begin : part.begin + int(part.offsets[1])] for part in block.layout.parts]
    return np.concatenate([np.zeros(0), *parts])


class Averages:
    """Means of w and of what mixtures cost over all steps, the k-th of which counts k times, by sums of changes."""

    def __init__(self, n_weights: int) -> None:
        self.k, self.w, self.cost = 0, np.zeros(n_weights), 0.0

    @property
    def before(self) -> float:
        """How much all steps before the next count together."""
        return self.k * (self.k + 1) / 2.0


class Mixtures:
    """The labellings of the sequences of a block, mixed, and what the mixture of each costs."""

    def __init__(self, updates: LabelUpdates, block: EncodedBlock) -> None:
        self.own, self.block = updates.of(block), block
        self.parts = [self.own.counted(block.labels[places]) for places in self.own.places]
        self.costs = np.zeros(len(self.parts))

    def through(self, order: Ints, cost: float, c2: float, room: Array, means: Averages) -> None:
        """One step of each sequence."""
        own, block, updates = self.own, self.block, self.own.updates
        for q in order.tolist():
            places, (steps, pairs) = own.places[q], self.parts[q]
            found = own.best(places, cost)
            share = 1.0 if block.weights is None else float(block.weights[places[0]])
            towards, both = own.counted(found)
            towards -= steps
            both -= pairs
            more = share * cost * float(np.count_nonzero(found != block.labels[places])) - self.costs[q]
            square, score = own.products(places, towards, both, room)
            rise, size = share * score + more, share**2 * square / (2.0 * c2)
            step = min(1.0, rise / size) if rise > 0.0 and size > 0.0 else 0.0
            if step:
                change = -step * share / (2.0 * c2)
                own.add(places, towards, both, change, updates.w)
                own.add(places, towards, both, change * means.before, means.w)
                updates.renew(both)
                steps += step * towards
                pairs += step * both
                self.costs[q] += step * more
                means.cost += step * more * means.before
            means.k += 1


def descend(problem: LabelProblem, how: Climbing, cost: float) -> tuple[Array, WeightRun]:
    """The weights with the smallest objective that was seen, and the trace of passes, whose bound is the gap.

    Sequences come in an order that is drawn anew for each pass; after each, w and its mean over all steps are looked at.
    """
    watch: Progress[Array] = Progress("fitting margins", how.time_limit, how.progress)
    updates, rng = LabelUpdates(problem.features, np.zeros(problem.features.n)), np.random.default_rng(0)
    mixtures = [Mixtures(updates, block) for block in near_blocks(problem, "Margin")]
    room, means, way = np.zeros(problem.features.n), Averages(problem.features.n), Gap(problem, how, cost)
    converged = stopped = False
    try:
        for n in range(how.max_iter + 1):
            total = float(sum(m.costs.sum() for m in mixtures))
            way.look(updates.w, total)
            if means.k:
                way.look(updates.w - means.w / means.before, total - means.cost / means.before)
            converged = way.record(watch.seconds)
            if converged or n == how.max_iter:
                break
            for mixture in mixtures:
                watch.check(f"pass {n + 1}, gap {way.least - way.low:,.4f}")
                mixture.through(rng.permutation(len(mixture.parts)), cost, how.c2, room, means)
    except (OutOfTime, KeyboardInterrupt):
        stopped = True
    finally:
        watch.close()
    if not converged:
        note(f"margins were {'stopped' if stopped else 'left'} before the gap was {how.tol:g} of the objective; the best so far")
    return way.best, WeightRun(tuple(way.trace), converged)


class Gap:
    """The smallest objective that was seen, and the largest dual."""

    def __init__(self, problem: LabelProblem, how: Climbing, cost: float) -> None:
        self.problem, self.how, self.cost, self.trace = problem, how, cost, list[WeightStep]()
        self.best, self.least, self.slack, self.low = np.zeros(problem.features.n), np.inf, np.inf, -np.inf

    def look(self, w: Array, cost: float) -> None:
        """Weights, and what the mixtures cost that they come from."""
        size = self.how.c2 * float(w @ w)
        loss = self.problem.total(MostViolated(self.problem.features, w, self.cost)) - float(self.problem.seen @ w)
        if loss + size < self.least:
            self.best, self.least, self.slack = w.copy(), loss + size, loss
        self.low = max(self.low, cost - size)

    def record(self, seconds: float) -> bool:
        """Put down where things are; whether the gap is small enough."""
        gap = self.least - self.low
        self.trace.append(WeightStep(self.least, -self.slack, gap, int(np.count_nonzero(self.best)), seconds))
        return gap <= self.how.tol * max(1.0, abs(self.least))
