"""Posteriors of one variable in many rows, each with other cells observed. (Stand-in, being written.)"""

from __future__ import annotations

import numpy as np

from suffice.inference.network import Array, Ints, Network
from suffice.inference.posterior import posterior


def posteriors(network: Network, targets: Ints, codes: Ints) -> list[Array]:
    """For each target, p(target | the observed cells of a row other than the target's own): one line per row.

    `codes` has one line per row and a column per variable, −1 where a cell is not observed (int64 or int32). A row whose
    other cells are impossible together has NaN.
    """
    result = []
    for t in targets:
        lines = []
        for row in codes:
            own = row.astype(np.int64)
            own[t] = -1
            lines.append(posterior(network, [int(t)], own).probs)
        result.append(np.array(lines))
    return result
