"""Weights that change after each sequence: its best labels under the weights so far, and what a change of labels adds
to them; the averaged perceptron changes them where labels are mistaken."""

from __future__ import annotations

from functools import cached_property

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
from suffice.objectives import Perceptron

Codes = npt.NDArray[np.int32]


def refuse_far(problem: LabelProblem, what: str) -> None:
    """Refuse rows that no block is kept of, where something is done to one sequence after the other."""
    if not problem.findings.blocks:
        raise FitError(f"{what} takes sequences one after the other, so they must be near; use Conditional")


class LabelUpdates:
    """Weights w, and those of labels that follow each other also as a matrix T."""

    def __init__(self, features: PairFeatures, start: Array) -> None:
        self.features, self.w, self.T = features, start.copy(), features.transitions(start)
        self.pair = np.full(self.T.shape, -1, np.int64)
        self.pair[features.before, features.after] = len(features.labels) + np.arange(len(features.before))
        self.numbers = np.array(features.numbers, np.int64)

    def of(self, block: EncodedBlock) -> BlockUpdates:
        return BlockUpdates(self, block)

    def renew(self, pairs: Array) -> None:
        """Take over into T what has changed in w."""
        changed = (pairs != 0.0) & (self.pair >= 0)
        self.T[changed] = self.w[self.pair[changed]]


class BlockUpdates:
    """The sequences of a block, one at a time."""

    def __init__(self, updates: LabelUpdates, block: EncodedBlock) -> None:
        features = updates.features
        self.updates, self.block, self.L = updates, block, features.n_labels
        self.groups = (block.groups, *block.attributes, features.first, features.labels)
        longest = max(len(part.offsets) - 1 for part in block.layout.parts)
        self.room, self.path = np.empty((longest, self.L)), np.empty(longest, np.int32)

    @cached_property
    def places(self) -> list[Ints]:
        """The places of the steps of each sequence, sequences in their order."""
        layout, place = self.block.layout, np.empty(self.block.n_steps, np.int64)
        place[layout.order] = np.arange(len(place))
        lengths = np.empty(len(layout.sequences), np.int64)
        lengths[layout.sequences] = np.bincount(layout.ranks, minlength=len(lengths))
        return np.split(place, np.cumsum(lengths)[:-1])

    def best(self, places: Ints, cost: float) -> Codes:
        """The best labels of a sequence, where wrong ones have `cost` added to their score."""
        from suffice.kernels.labels.crf import best_sequence

        own, block = self.updates, self.block
        labels = block.labels
        best_sequence(places, *self.groups, block.numbers, own.numbers, own.w, own.T, labels, cost, self.room, self.path)
        return self.path[: len(places)]

    def difference(self, more: Codes, less: Codes) -> tuple[Array, Array]:
        """What one labelling has and another has not: by step and label, and by pair of labels."""
        return self.count_labels(more)[0] - self.count_labels(less)[0], self.count_labels(more)[1] - self.count_labels(less)[1]

    def count_labels(self, labels: Codes) -> tuple[Array, Array]:
        """A labelling as ones: by step and label, and by pair of labels."""
        steps, pairs = np.zeros((len(labels), self.L)), np.zeros((self.L, self.L))
        steps[np.arange(len(labels)), labels] = 1.0
        np.add.at(pairs, (labels[:-1], labels[1:]), 1.0)
        return steps, pairs

    def add(self, places: Ints, steps: Array, pairs: Array, share: float, w: Array) -> None:
        """Add to weights `share` times what a sequence has of each pair."""
        from suffice.kernels.labels.crf import add_labels

        own = self.updates
        add_labels(places, *self.groups, self.block.numbers, own.numbers, own.pair, steps, pairs, share, w)


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
