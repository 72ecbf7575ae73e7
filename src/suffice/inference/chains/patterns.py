"""Which sequences have the same covariances: those with the same codes and missing cells, up to how long they last."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from suffice.inference.chains.linear_steps import Ints, LinearSteps


class Pattern(NamedTuple):
    """Sequences that begin alike and whose steps from `head` on are all alike."""

    sequences: Ints
    """Their numbers, the longest first."""
    first: int
    """The first step of the longest."""
    head: int
    """How many steps come before those that are alike."""

    def steps_like(self, steps: LinearSteps, lengths: Ints) -> LinearSteps:
        """Sequences of this pattern, as long as asked for, whose outputs are 0 where they are not missing, and means 0."""
        starts = np.concatenate([[0], np.cumsum(lengths)])
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
        at = self.first + np.minimum(within, self.head)
        y = np.where(np.isnan(steps.y[at]), np.nan, 0.0)
        codes, output_codes, f = steps.codes[at], steps.output_codes[at], np.zeros_like(steps.f)
        rows = {"starts": starts, "codes": codes, "output_codes": output_codes, "y": y}
        like = replace(steps, **rows, f=f, f_steps=steps.f_steps[:0])
        like.__dict__["begin"] = steps.begin
        return like


def patterns(steps: LinearSteps) -> list[Pattern]:
    """All sequences, by their patterns.

    >>> y = np.array([[1.0], [np.nan], [2.0], [3.0], [np.nan]])
    >>> F, Q, f = np.zeros((1, 1, 1)), np.ones((1, 1, 1)), np.zeros((1, 1))
    >>> [p.sequences for p in patterns(LinearSteps([0, 2, 3, 5], [0] * 5, F, Q, f, y, [[[1.0]]], [[1.0]]))]
    [array([0, 2]), array([1])]
    """
    keys, lengths = _keys(steps), steps.lengths
    change = np.zeros(len(keys), np.int64)
    within = np.arange(len(keys)) - np.repeat(steps.starts[:-1], lengths)
    change[1:] = np.where(keys[1:] != keys[:-1], within[1:], 0)
    heads = np.maximum.reduceat(change, steps.starts[:-1]) if len(lengths) else change
    alike: dict[bytes, list[int]] = {}
    for s, (start, head) in enumerate(zip(steps.starts.tolist(), heads.tolist(), strict=False)):
        alike.setdefault(keys[start : start + head + 1].tobytes(), []).append(s)
    found = []
    for members in alike.values():
        ordered = np.array(members)[np.argsort(-lengths[members], kind="stable")]
        found.append(Pattern(ordered, int(steps.starts[ordered[0]]), int(heads[ordered[0]])))
    return found


def _keys(steps: LinearSteps) -> Ints:
    """Numbers that are equal where code, output code and missing cells of two steps are."""
    keys = steps.codes.astype(np.int64) * len(steps.H) + steps.output_codes
    missing = np.isnan(steps.y)
    if not missing.any():
        return keys
    cells = np.packbits(missing, axis=1)
    words = np.zeros((len(cells), -(-cells.shape[1] // 8) * 8), np.uint8)
    words[:, : cells.shape[1]] = cells
    for word in words.view(np.int64).T:
        distinct, number = np.unique(word, return_inverse=True)
        keys = np.unique(keys * len(distinct) + number, return_inverse=True)[1]
    return keys
