"""Weights that change after each sequence: its best labels under the weights so far, and what a change of labels adds to them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError
from suffice.learning.crf.problem import LabelProblem
from suffice.models.linear_chain.encoding import EncodedBlock
from suffice.models.linear_chain.features import PairFeatures

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
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
        from suffice.kernels.labels.label_updates import best_sequence

        own, block = self.updates, self.block
        labels = block.labels
        best_sequence(places, *self.groups, block.numbers, own.numbers, own.w, own.T, labels, cost, self.room, self.path)
        return self.path[: len(places)]

    def difference(self, more: Codes, less: Codes) -> tuple[Array, Array]:
        """What one labelling has and another has not: by step and label, and by pair of labels."""
        return self.counted(more)[0] - self.counted(less)[0], self.counted(more)[1] - self.counted(less)[1]

    def counted(self, labels: Codes) -> tuple[Array, Array]:
        """A labelling as ones: by step and label, and by pair of labels."""
        steps, pairs = np.zeros((len(labels), self.L)), np.zeros((self.L, self.L))
        steps[np.arange(len(labels)), labels] = 1.0
        np.add.at(pairs, (labels[:-1], labels[1:]), 1.0)
        return steps, pairs

    def add(self, places: Ints, steps: Array, pairs: Array, share: float, w: Array) -> None:
        """Add to weights `share` times what a sequence has of each pair."""
        from suffice.kernels.labels.label_updates import add_labels

        own = self.updates
        add_labels(places, *self.groups, self.block.numbers, own.numbers, own.pair, steps, pairs, share, w)
