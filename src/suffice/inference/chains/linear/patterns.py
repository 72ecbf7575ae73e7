"""Which sequences have the same covariances: those with the same codes and missing cells, up to how long they last."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.integer[Any]]


class StepPattern(NamedTuple):
    """Sequences that begin alike and whose steps from `head` on are all alike."""

    sequences: Ints
    """Their numbers, the longest first."""
    first: int
    """The first step of the longest."""
    head: int
    """How many steps come before those that are alike."""


def patterns(starts: Ints, codes: Ints, missing: npt.NDArray[np.bool_]) -> list[StepPattern]:
    """All sequences, steps[starts[s]:starts[s + 1]] those of s, by their patterns: steps of one code whose same cells are missing
    are alike.

    >>> missing = np.array([[False], [True], [False], [False], [True]])
    >>> [p.sequences for p in patterns(np.array([0, 2, 3, 5]), np.zeros(5, np.int64), missing)]
    [array([0, 2]), array([1])]
    """
    keys, lengths = _keys(codes, missing), np.diff(starts)
    change = np.zeros(len(keys), np.int64)
    within = np.arange(len(keys)) - np.repeat(starts[:-1], lengths)
    change[1:] = np.where(keys[1:] != keys[:-1], within[1:], 0)
    heads = np.maximum.reduceat(change, starts[:-1]) if len(lengths) else change
    alike: dict[bytes, list[int]] = {}
    for s, (start, head) in enumerate(zip(starts.tolist(), heads.tolist(), strict=False)):
        alike.setdefault(keys[start : start + head + 1].tobytes(), []).append(s)
    found = []
    for members in alike.values():
        ordered = np.array(members)[np.argsort(-lengths[members], kind="stable")]
        found.append(StepPattern(ordered, int(starts[ordered[0]]), int(heads[ordered[0]])))
    return found


def _keys(keys: Ints, missing: npt.NDArray[np.bool_]) -> Ints:
    """Numbers that are equal where codes and missing cells of two steps are."""
    if not missing.any():
        return keys
    cells = np.packbits(missing, axis=1)
    words = np.zeros((len(cells), -(-cells.shape[1] // 8) * 8), np.uint8)
    words[:, : cells.shape[1]] = cells
    for word in words.view(np.int64).T:
        distinct, number = np.unique(word, return_inverse=True)
        keys = np.unique(keys * len(distinct) + number, return_inverse=True)[1]
    return keys
