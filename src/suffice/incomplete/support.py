"""Which rows are certainly possible, or certainly not, told from the factors with zeros alone.

A row selects a part of each factor's table. If such a part is nothing but zeros, the row is impossible. If those parts that have
a zero at all have a cell that is none, and share no unobserved variable, the row is possible: take such a cell of each,
whatever else of the variables that are left, and no factor is zero. Only what lies between needs an inference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Bools
from suffice.inference.finite.network import Ints, Network

MAX_FACTORS, MAX_PARTS = 32, 2**16
"""Networks with more factors with zeros, or with factors of which there are more parts than this, are not looked at."""


class Support(NamedTuple):
    """Which rows are impossible, and of which that is not known."""

    impossible: Bools
    doubtful: Bools


def support(network: Network, seen: npt.NDArray[np.int32]) -> Support:
    """Of each row, by its codes (negative where not observed).

    >>> net = Network.of([2, 2], [((0,), 0, np.array([0.5, 0.5])), ((0, 1), 1, np.array([[1.0, 0.0], [0.5, 0.5]]))])
    >>> support(net, np.array([[0, 1], [-1, 1], [1, -1]], np.int32)).impossible
    array([ True, False, False])
    """
    n = len(seen)
    factors = network.with_zeros
    if len(factors) > MAX_FACTORS or any(np.prod(network.sizes[network.scope(f)] + 1.0) > MAX_PARTS for f in factors):
        return Support(np.zeros(n, bool), np.ones(n, bool))
    impossible, doubtful = np.zeros(n, bool), np.zeros(n, bool)
    active: list[tuple[Ints, Bools]] = []
    for f in factors:
        scope, table = network.scope(f), network.table(f)
        zero, other = table == 0.0, table != 0.0
        for axis in range(table.ndim):  # one more index along each axis: all of it, for a variable that is not observed
            zero = np.concatenate([zero, zero.any(axis=axis, keepdims=True)], axis=axis)
            other = np.concatenate([other, other.any(axis=axis, keepdims=True)], axis=axis)
        index = np.zeros(n, np.int64)
        for v, size in zip(scope, table.shape, strict=True):
            codes = seen[:, v]
            index *= size + 1
            index += np.where(codes < 0, size, codes)
        impossible |= ~other.reshape(-1)[index]
        mine = zero.reshape(-1)[index]
        for others, theirs in active:
            for v in np.intersect1d(scope, others):
                doubtful |= mine & theirs & (seen[:, v] < 0)
        active.append((scope, mine))
    return Support(impossible, doubtful & ~impossible)
