"""The best graph by dynamic programming over the subsets of the variables.

The best graph over a set W of variables has a last variable i, whose parents are the best set inside W − i (Singh & Moore 2005,
CMU-CALD-05-106; Silander & Myllymäki 2006, UAI, pp. 445–452). Time and memory grow with 2^n, whatever the data.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from suffice.engines.parallel import in_order
from suffice.errors import FitError
from suffice.structure.parent_sets import ParentSets
from suffice.structure.rules import Parents

MOST = 27
"""More variables are not tried: their subsets would need more than a gibibyte."""

AT_ONCE = 16
"""Blocks of subsets that one task fills: a fraction of a second."""


def needed(n: int) -> float:
    """The bytes that the scores of all subsets of n variables take.

    >>> needed(20) / 2**20
    8.0
    """
    return float(8 * 2**n)


def best_of_all(
    sets: ParentSets, *, tie: float = 0.0, threads: int | None = None, check: Callable[[], None] = lambda: None
) -> list[Parents]:
    """The parents of the best graph, found by looking at every subset; `check` is called many times on the way.

    Of graphs that score alike, up to `tie` in all, the one is taken whose last variables have the largest numbers.

    >>> best_of_all(ParentSets.of(2, [(0, (), -3.0), (0, (1,), -1.0), (1, (), -2.0), (1, (0,), -1.5)]))
    [(1,), ()]
    """
    from suffice.kernels.subsets import LOW, fill

    n, low = sets.n, min(sets.n, LOW)
    masks = sets.masks[:, 0].astype(np.int64)
    total = np.empty(1 << n)
    blocks = np.arange(1 << (n - low), dtype=np.int64)
    ones = np.bitwise_count(blocks.astype(np.uint64)) if hasattr(np, "bitwise_count") else _ones(blocks)
    for level in range(n - low + 1):
        ready = blocks[ones == level]
        parts = [ready[k : k + AT_ONCE] for k in range(0, len(ready), AT_ONCE)]
        tasks = ((lambda part=part: fill(total, part, low, sets.first, sets.score, masks)) for part in parts)
        for _ in in_order(tasks, threads):
            check()
    if total[-1] == -np.inf:
        raise FitError("no graph without cycles keeps the rules with families that can be estimated")
    return _walk_back(sets, masks, total, tie)


def _ones(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.array([int(k).bit_count() for k in numbers], np.int64)


def _walk_back(sets: ParentSets, masks: npt.NDArray[np.int64], total: npt.NDArray[np.float64], tie: float) -> list[Parents]:
    """The graph behind the best total. What ties may lose is lost once, not at every step, so that the score stays the best."""
    left = (1 << sets.n) - 1
    spare = tie
    result: list[Parents] = [()] * sets.n
    while left:
        for child in reversed(range(sets.n)):
            if not left >> child & 1:
                continue
            rest = left & ~(1 << child)
            rows = np.arange(sets.first[child], sets.first[child + 1])
            rows = rows[masks[rows] & ~rest == 0]
            loss = total[left] - (total[rest] + sets.score[rows])  # in the kernel's order: the best loses exactly nothing
            if (loss <= spare).any():
                break
        _, _, row, lost = min(
            (len(sets.parents[r]), sets.parents[r], r, x) for r, x in zip(rows, loss, strict=True) if x <= spare
        )
        result[child], left, spare = sets.parents[row], rest, spare - lost
    return result
