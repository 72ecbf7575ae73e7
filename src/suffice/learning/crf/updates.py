"""Weights that change after each sequence: its best labels under the weights so far, and what a change of labels adds
to them; the averaged perceptron changes them where labels are mistaken."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.errors import FitError, note
from suffice.iteration import OutOfTime, Progress
from suffice.learning.crf.conditional import Climbing
from suffice.learning.crf.problem import LabelProblem
from suffice.models.crf import WeightRun, WeightStep
from suffice.models.linear_chain.encoding import EncodedBlock
from suffice.models.linear_chain.features import PairFeatures
from suffice.models.linear_chain.wider_features import InSequence
from suffice.objectives import Perceptron

Codes = npt.NDArray[np.int32]


def refuse_far(problem: LabelProblem, what: str) -> None:
    """Refuse rows that no block is kept of, where something is done to one sequence after the other."""
    if not problem.findings.blocks:
        raise FitError(f"{what} takes sequences one after the other, so they must be near; use Conditional")


def pair_weights(features: PairFeatures) -> Ints:
    """The weight of label j after i, by its number, −1 for none."""
    pair = np.full((features.n_labels, features.n_labels), -1, np.int64)
    pair[features.before, features.after] = len(features.labels) + np.arange(len(features.before))
    return pair


class LabelUpdates:
    """Weights w, and those of labels that follow each other also as a matrix T."""

    def __init__(self, features: PairFeatures, start: Array) -> None:
        self.features, self.w, self.T = features, start.copy(), features.transitions(start)
        self.pair, self.numbers = pair_weights(features), np.array(features.numbers, np.int64)

    def renew(self, pairs: Array) -> None:
        """Take over into T what has changed in w."""
        changed = (pairs != 0.0) & (self.pair >= 0)
        self.T[changed] = self.w[self.pair[changed]]


class BlockUpdates:
    """The sequences of a block, one at a time; `places` are those of the steps of each, sequences in their order."""

    def __init__(self, updates: LabelUpdates, block: EncodedBlock) -> None:
        features, rows = updates.features, InSequence.of(block)
        self.updates, self.block, self.L = updates, block, features.n_labels
        self.groups = (block.groups, *block.attributes, features.first, features.labels)
        self.room, self.path = np.empty((rows.longest, self.L)), np.empty(rows.longest, np.int32)
        self.places: list[Ints] = np.split(rows.places.astype(np.int64), rows.starts[1:-1])

    def best(self, places: Ints, cost: float) -> Codes:
        """The best labels of a sequence, where wrong ones have `cost` added to their score."""
        from suffice.kernels.labels.crf import best_sequence

        own, block = self.updates, self.block
        labels = block.labels
        best_sequence(places, *self.groups, block.numbers, own.numbers, own.w, own.T, labels, cost, self.room, self.path)
        return self.path[: len(places)]

    def difference(self, more: Codes, less: Codes) -> tuple[Array, Array]:
        """What one labelling has and another has not: by step and label, and by pair of labels."""
        steps, pairs, each = np.zeros((len(more), self.L)), np.zeros((self.L, self.L)), np.arange(len(more))
        for labels, sign in ((more, 1.0), (less, -1.0)):
            steps[each, labels] += sign
            np.add.at(pairs, (labels[:-1], labels[1:]), sign)
        return steps, pairs

    def add(self, places: Ints, steps: Array, pairs: Array, share: float, w: Array) -> None:
        """Add to weights `share` times what a sequence has of each pair."""
        from suffice.kernels.labels.crf import add_labels

        own = self.updates
        add_labels(places, *self.groups, self.block.numbers, own.numbers, own.pair, steps, pairs, share, w)


class PerceptronWalk(LabelUpdates):
    """Weights on their way through the sequences: after n of them, w − u / n is the mean of all on the way."""

    def __init__(self, features: PairFeatures, start: Array) -> None:
        super().__init__(features, start)
        self.u, self.n = np.zeros(features.n), 0

    def through(self, block: EncodedBlock) -> float:
        """Take the sequences of a block in their order; how many labels were wrong, by weight."""
        wrong, own = 0.0, BlockUpdates(self, block)
        for places in own.places:
            found, truth = own.best(places, 0.0), block.labels[places]
            if n := int(np.count_nonzero(truth != found)):
                share = 1.0 if block.weights is None else float(block.weights[places[0]])
                wrong += share * n
                steps, pairs = own.difference(truth, found)
                own.add(places, steps, pairs, share, self.w)
                own.add(places, steps, pairs, share * self.n, self.u)
                self.renew(pairs)
            self.n += 1
        return wrong


def walk(problem: LabelProblem, how: Climbing, objective: Perceptron) -> tuple[Array, WeightRun]:
    """The weights after some epochs, or as soon as nothing is wrong. The objective in the trace is the number of wrong labels."""
    watch: Progress[Array] = Progress("perceptron", how.time_limit, how.progress)
    state, trace, converged = PerceptronWalk(problem.features, how.start), list[WeightStep](), False
    refuse_far(problem, "Perceptron")
    try:
        for epoch in range(objective.epochs):
            wrong = 0.0
            for block, _ in problem.blocks():
                watch.check(f"epoch {epoch + 1} of {objective.epochs}")
                wrong += state.through(block) if block.n_steps else 0.0
            trace.append(WeightStep(wrong, float("nan"), float("nan"), int(np.count_nonzero(state.w)), watch.seconds))
            if not wrong:  # nothing would change any more, but the mean goes on
                state.n += (objective.epochs - epoch - 1) * (state.n // (epoch + 1))
                converged = True
                break
    except (OutOfTime, KeyboardInterrupt):
        note("the perceptron was stopped before its end; these are its weights so far")
    finally:
        watch.close()
    w = state.w - state.u / max(1, state.n) if objective.averaged else state.w
    return w, WeightRun(tuple(trace), converged or len(trace) == objective.epochs)
