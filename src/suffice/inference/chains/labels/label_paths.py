"""The best labels of chains given all else, many sequences side by side (see `conditional`), straight from scores of groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.inference.chains.finite import SHORT, best_paths
from suffice.inference.chains.labels.conditional import SequenceLayout, SideBySide
from suffice.inference.chains.steps import StateSteps

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]

LANES, ROOM = 64, 16
"""Sequences that a step is taken of at a time, so that it stays in the cache; and those whose scores are turned at a time."""


class GroupScores(NamedTuple):
    """The score of each label at each place: the sum of those of its groups, scores[groups[o, p]], and of more[p] if it has rows.

    Where `truth` has entries, `cost` is added to those of all other labels.
    """

    groups: Codes
    scores: Array
    more: Array
    truth: Codes = np.zeros(0, np.int32)
    cost: float = 0.0

    def at(self, part: SideBySide) -> Array:
        """Those of a part (places × labels)."""
        here = part.places
        total = self.more[here].copy() if len(self.more) else np.zeros((part.n, self.scores.shape[1]))
        for own in self.groups:
            total += self.scores[own[here]]
        if len(self.truth):
            total += self.cost * (self.truth[here, None] != np.arange(total.shape[1]))
        return total


class BestLabelling(NamedTuple):
    """The best label of each step, steps in their order, and the score of each sequence's labels, in the order of the layout."""

    labels: Codes
    scores: Array


def best_labels(layout: SequenceLayout, given: GroupScores, T: Array) -> BestLabelling:
    """The labels with the largest score; of equals the smaller label, from the last step to the first. −1 where none is possible.

    >>> given = GroupScores(np.array([[0, 1]], np.int32), np.array([[0.0, 1.0], [0.5, 0.0]]), np.zeros((0, 2)))
    >>> best_labels(SequenceLayout.of(np.array([2])), given, np.array([[0.0, 0.0], [0.0, 2.0]]))
    BestLabelling(labels=array([1, 1], dtype=int32), scores=array([3.]))
    """
    labels, scores = np.empty(len(layout.order), np.int32), np.zeros(len(layout.sequences))
    long = [part.offsets[1] == 1 and part.n * len(T) >= SHORT for part in layout.parts]
    room = LabelRoom.of(T, max((part.n for part, alone in zip(layout.parts, long, strict=True) if not alone), default=0))
    for part, alone in zip(layout.parts, long, strict=True):
        own = scores[part.first : part.first + int(part.offsets[1])]
        if alone:
            labels[layout.order[part.places]], own[:] = _in_stretches(given.at(part), T)
        else:
            _side_by_side(layout, part, given, room, labels, own)
    return BestLabelling(labels, scores)


class LabelRoom(NamedTuple):
    """What parts need: see `suffice.kernels.labels.label_paths`."""

    matrix: Array
    back: Array
    x: Array
    strip: Array
    spare: Array
    turned: Array
    states: Ints
    tops: Array

    @classmethod
    def of(cls, T: Array, n: int) -> LabelRoom:
        """For parts of up to n places."""
        L = len(T)
        K = -L % 4 + L
        matrix = np.full((K, K), -np.inf)
        matrix[:L, :L] = T
        back = np.concatenate([matrix.T.reshape(-1), np.zeros(K)])
        strip, spare, tops = np.zeros(K * LANES), np.empty(K * LANES), np.empty(LANES)
        return cls(matrix, back, np.empty(K * n), strip, spare, np.empty((ROOM, L)), np.empty(n, np.int64), tops)


def _side_by_side(
    layout: SequenceLayout, part: SideBySide, given: GroupScores, room: LabelRoom, labels: Codes, scores: Array
) -> None:
    from suffice.kernels.labels import label_paths

    matrix, back, x, strip, spare, turned, states, tops = room
    label_paths.rise(given.groups, part.begin, part.offsets, *given[1:], matrix, turned, strip, x, scores)
    label_paths.descend(part.begin, part.offsets, back, x, scores, spare, states, tops, layout.order, labels)


def _in_stretches(scores: Array, T: Array) -> tuple[Codes, float]:
    """The best labels of one long sequence."""
    codes = np.ones(len(scores), np.int32)
    codes[0] = 0
    logs = np.stack([np.zeros(T.shape), T])
    steps = StateSteps(np.array([0, len(scores)]), codes, np.exp(logs - logs.max()), log_likelihood=scores.T, log_matrices=logs)
    paths, values = best_paths(steps)
    return paths[0], float(values[0, 0])
