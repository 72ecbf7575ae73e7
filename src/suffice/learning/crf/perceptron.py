"""The structured perceptron: after each sequence whose best labels are wrong, w moves from these to the right ones.

Averaged weights are the mean of w over all sequences of all epochs: w − u / n, where u adds each change times the number of
sequences before it (Daumé 2006, p. 19).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from suffice.errors import note
from suffice.iteration import OutOfTime, Progress
from suffice.learning.crf.conditional import Climbing
from suffice.learning.crf.problem import LabelProblem
from suffice.learning.crf.updates import LabelUpdates, refuse_far
from suffice.models.linear_chain.encoding import EncodedBlock
from suffice.models.linear_chain.run import WeightRun, WeightStep
from suffice.objectives import Perceptron

Array = npt.NDArray[np.float64]


class PerceptronWalk:
    """Weights on their way through the sequences."""

    def __init__(self, problem: LabelProblem, start: Array) -> None:
        self.steps = LabelUpdates(problem.features, start)
        self.u, self.n = np.zeros(problem.features.n), 0

    def through(self, block: EncodedBlock) -> float:
        """Take the sequences of a block in their order; how many labels were wrong, by weight."""
        wrong, own = 0.0, self.steps.of(block)
        for places in own.places:
            found, truth = own.best(places, 0.0), block.labels[places]
            if n := int(np.count_nonzero(truth != found)):
                share = 1.0 if block.weights is None else float(block.weights[places[0]])
                wrong += share * n
                steps, pairs = own.difference(truth, found)
                own.add(places, steps, pairs, share, self.steps.w)
                own.add(places, steps, pairs, share * self.n, self.u)
                self.steps.renew(pairs)
            self.n += 1
        return wrong


def walk(problem: LabelProblem, how: Climbing, objective: Perceptron) -> tuple[Array, WeightRun]:
    """The weights after some epochs, or as soon as nothing is wrong. The objective in the trace is the number of wrong labels."""
    watch: Progress[Array] = Progress("perceptron", how.time_limit, how.progress)
    state, trace, converged = PerceptronWalk(problem, how.start), list[WeightStep](), False
    refuse_far(problem, "Perceptron")
    try:
        for epoch in range(objective.epochs):
            wrong = 0.0
            for block, _ in problem.blocks():
                watch.check(f"epoch {epoch + 1} of {objective.epochs}")
                wrong += state.through(block) if block.n_steps else 0.0
            trace.append(WeightStep(wrong, float("nan"), float("nan"), int(np.count_nonzero(state.steps.w)), watch.seconds))
            if not wrong:  # nothing would change any more, but the mean goes on
                state.n += (objective.epochs - epoch - 1) * (state.n // (epoch + 1))
                converged = True
                break
    except (OutOfTime, KeyboardInterrupt):
        note("the perceptron was stopped before its end; these are its weights so far")
    finally:
        watch.close()
    w, ended = state.steps.w, converged or len(trace) == objective.epochs
    return w - state.u / max(1, state.n) if objective.averaged else w, WeightRun(tuple(trace), ended)
