"""Margins: minimise c2 Σ w² + Σ_q H_q(w), H_q = max_y (cost(y_q, y) + score(y)) − score(y_q), by cutting planes.

Each sequence has a mixture of labellings that were found to violate, which begins with the right one, and 2 c2 w = Σ_q (right
labels − mixture). A pass finds the labels that violate most under w of all sequences, which gives the objective; then mixtures of
all labellings found so far are changed, block by block, until the dual hardly gains (multi-plane block-coordinate Frank–Wolfe;
Shah, Kolmogorov & Lampert 2015, CVPR, p. 2737; pairwise steps: Osokin et al. 2016, ICML 33, p. 593):

    dual = Σ_q cost(mixture) − c2 Σ w²,    gap = objective − dual
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import note
from suffice.iteration import OutOfTime, Progress
from suffice.learning.crf.conditional import Climbing
from suffice.learning.crf.planes import FoundPlanes, Planes, planes_of
from suffice.learning.crf.problem import LabelProblem
from suffice.learning.crf.updates import LabelUpdates, refuse_far
from suffice.models.linear_chain.encoding import Encoded, EncodedBlock
from suffice.models.linear_chain.features import PairFeatures, most_probable
from suffice.models.linear_chain.run import WeightRun, WeightStep

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Violations(NamedTuple):
    """Σ w max_y (cost + score(y)) of the sequences of a block, and the planes of these labels."""

    total: float
    planes: FoundPlanes


@dataclass(frozen=True, eq=False)
class MostViolated:
    """What violates most in an encoded block. pair[i, j] is the weight of j after i, −1 for none."""

    features: PairFeatures
    pair: Ints
    weights: Array
    cost: float

    def __call__(self, block: Encoded) -> Violations:
        own = block[0]
        labels, values = most_probable(self.features, self.weights, own, self.features.transitions(self.weights), cost=self.cost)
        planes = planes_of(self.features, self.pair, own, labels[own.layout.order], self.cost)
        return Violations(float(sequence_weights(own) @ values), planes)


def sequence_weights(block: EncodedBlock) -> Array:
    """The weight of each sequence, that of its first step, in the order of the layout."""
    if block.weights is None:
        return np.ones(len(block.layout.sequences))
    parts = [block.weights[part.begin : part.begin + int(part.offsets[1])] for part in block.layout.parts]
    return np.concatenate([np.zeros(0), *parts])


def _weights_of(block: Encoded) -> Array:
    return sequence_weights(block[0])


def descend(problem: LabelProblem, how: Climbing, cost: float) -> tuple[Array, WeightRun]:
    """The weights with the smallest objective that was seen, and the trace of passes, whose bound is the gap."""
    refuse_far(problem, "Margin")
    watch: Progress[Array] = Progress("fitting margins", how.time_limit, how.progress)
    pair = LabelUpdates(problem.features, np.zeros(problem.features.n)).pair
    planes = Planes(problem.features.n, np.concatenate(list(problem.each(_weights_of))), how.c2)
    way = Gap(problem, how)
    converged = stopped = False
    try:
        for n in range(how.max_iter + 1):
            watch.check(f"pass {n + 1}, gap {way.gap:,.4f}")
            found = list(problem.each(MostViolated(problem.features, pair, planes.w, cost)))
            converged = way.record(planes, sum(f.total for f in found), watch.seconds)
            if converged or n == how.max_iter:
                break
            planes.add([f.planes for f in found])
            planes.climb(way.gap)
    except (OutOfTime, KeyboardInterrupt):
        stopped = True
    finally:
        watch.close()
    if not converged:
        note(f"margins were {'stopped' if stopped else 'left'} before the gap was {how.tol:g} of the objective; the best so far")
    return way.best, WeightRun(tuple(way.trace), converged)


class Gap:
    """The smallest objective that was seen, and the largest dual."""

    def __init__(self, problem: LabelProblem, how: Climbing) -> None:
        self.problem, self.how, self.trace = problem, how, list[WeightStep]()
        self.best, self.least, self.slack, self.low = np.zeros(problem.features.n), np.inf, np.inf, -np.inf

    @property
    def gap(self) -> float:
        return self.least - self.low

    def record(self, planes: Planes, violated: float, seconds: float) -> bool:
        """Put down where things are, given what violates most in all; whether the gap is small enough."""
        size, loss = self.how.c2 * float(planes.w @ planes.w), violated - float(self.problem.seen @ planes.w)
        if loss + size < self.least:
            self.best, self.least, self.slack = planes.w.copy(), loss + size, loss
        self.low = max(self.low, planes.cost - size)
        self.trace.append(WeightStep(self.least, -self.slack, self.gap, int(np.count_nonzero(self.best)), seconds))
        return self.gap <= self.how.tol * max(1.0, abs(self.least))
