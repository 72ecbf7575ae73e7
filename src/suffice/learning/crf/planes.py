"""Labellings of sequences that were found to violate, kept as planes, and mixtures of them that raise the dual of margins.

A plane is what the right labels of a sequence have of each weight and the labelling has not, mostly little: see
`suffice.kernels.labels.label_planes`. So a pass over planes costs a part of one that finds labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.models.linear_chain.encoding import Codes, EncodedBlock
from suffice.models.linear_chain.features import PairFeatures

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SLOTS, MOST_SLOTS = 10, 40
"""Planes that are kept of a sequence: more if all of so many are in its mixture, but no more than this."""

STEPS, PASSES, ENOUGH = 10, 50, 0.3
"""How often shares of a sequence are moved in a pass over planes; passes before labels are found anew, or fewer if what is still
to be gained by planes is this share of the gap."""


class FoundPlanes(NamedTuple):
    """The planes of the sequences of a block, in the order of its layout: where the entries of each end, and what each costs."""

    ends: Ints
    items: Codes
    values: Array
    costs: Array


def planes_of(features: PairFeatures, pair: Ints, block: EncodedBlock, found: Codes, cost: float) -> FoundPlanes:
    """The planes of the labels that were found at the places of a block; pair[i, j] is the weight of j after i, −1 for none."""
    from suffice.kernels.labels.label_planes import write_planes

    ranks = block.layout.ranks
    places, sizes = np.argsort(ranks, kind="stable"), np.bincount(ranks, minlength=len(block.layout.sequences))
    bounds, wrong = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), found != block.labels
    numbers = np.array(features.numbers, np.int64)
    most = 2 * int(block.attributes.sizes[block.groups[:, wrong]].sum()) + (4 + 2 * len(numbers)) * int(wrong.sum())
    ends, items, values = np.zeros(len(bounds), np.int64), np.empty(most, np.int32), np.empty(most)
    given = (block.groups, *block.attributes, features.first, features.labels, block.numbers, numbers, pair)
    write_planes(bounds, places, *given, block.labels, found, ends, items, values)
    costs = np.asarray(cost * np.bincount(ranks, wrong, len(sizes)), np.float64)
    return FoundPlanes(ends, items[: ends[-1]], values[: ends[-1]], costs)


class Planes:
    """Mixtures of planes, and the weights w = Σ weight of sequence · share · plane / (2 c2) that they make."""

    def __init__(self, n_weights: int, sequence_weights: Array, c2: float) -> None:
        n = len(sequence_weights)
        self.w, self.c2, self.sequence_weights, self._room = np.zeros(n_weights), c2, sequence_weights, np.zeros(n_weights)
        self._starts, self._items, self._values = np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0)
        self._slots, self._costs, self._shares = np.full((n, SLOTS), -1, np.int64), np.zeros((n, SLOTS)), np.zeros((n, SLOTS))
        self._gram = np.zeros((n, SLOTS, SLOTS))
        self._rng = np.random.default_rng(0)

    @property
    def cost(self) -> float:
        """What the mixtures cost."""
        return float(self.sequence_weights @ (self._shares * self._costs).sum(axis=1))

    def add(self, found: list[FoundPlanes]) -> None:
        """One more plane of each sequence whose labels are not right, in place of one that has no share."""
        from suffice.kernels.labels.label_planes import fill_gram

        costs = np.concatenate([f.costs for f in found])
        which = np.flatnonzero(costs > 0.0)
        if (self._shares[which] > 0.0).all(axis=1).any():
            self._widen()
        value = np.where(self._slots[which] < 0, -1.0, self._shares[which])
        at = value.argmin(axis=1)
        free = value[np.arange(len(which)), at] <= 0.0
        which, at = which[free], at[free]
        sizes = np.concatenate([np.diff(f.ends) for f in found])
        self._slots[which, at], self._costs[which, at] = len(self._starts) - 1 + which, costs[which]
        self._starts = np.concatenate([self._starts, self._starts[-1] + np.cumsum(sizes)])
        self._items = np.concatenate([self._items, *(f.items for f in found)])
        self._values = np.concatenate([self._values, *(f.values for f in found)])
        self._drop()
        fill_gram(which, at, self._starts, self._items, self._values, self._slots, self._gram, self._room)

    def _widen(self) -> None:
        """More slots for every sequence."""
        more = min(SLOTS // 2, MOST_SLOTS - self._slots.shape[1])
        self._slots = np.pad(self._slots, [(0, 0), (0, more)], constant_values=-1)
        self._costs, self._shares = (np.pad(x, [(0, 0), (0, more)]) for x in (self._costs, self._shares))
        self._gram = np.pad(self._gram, [(0, 0), (0, more), (0, more)])

    def _drop(self) -> None:
        """Without the planes that are in no slot."""
        sizes, there = np.diff(self._starts), self._slots >= 0
        used = np.zeros(len(sizes), bool)
        used[self._slots[there]] = True
        kept = np.repeat(used, sizes)
        self._items, self._values = self._items[kept], self._values[kept]
        self._starts = np.concatenate([[0], np.cumsum(sizes[used])]).astype(np.int64)
        self._slots[there] = (np.cumsum(used) - 1)[self._slots[there]]

    def climb(self, gap: float) -> None:
        """Raise the dual by passes over planes, each in an order of its own, until little is to be gained."""
        from suffice.kernels.labels.label_planes import climb

        given = (STEPS, self.c2, self.sequence_weights, self._starts, self._items, self._values)
        mixtures = (self._slots, self._costs, self._shares, self._gram, self.w)
        for _ in range(PASSES):
            if climb(self._rng.permutation(len(self._slots)), *given, *mixtures) <= ENOUGH * gap:
                break
