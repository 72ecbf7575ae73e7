"""Moments: weight, mean and centred scatter of a few real columns, within groups of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.kernels import kernel
from suffice.kernels import signatures as nb

_inputs = (nb.float64[:, ::1], nb.int32[::1], nb.uint32[::1], nb.float64[::1], nb.int64)


@kernel(
    nb.void(*_inputs, nb.float64[::1], nb.float64[:, ::1], nb.float64[:, ::1], nb.float64[:, :, ::1]),
    work=lambda n_rows, members, total: (n_rows + len(total)) * (len(members) + 2) ** 2,
)
def moments(
    real: Any, members: Any, group: Any, weight: Any, n_rows: int, total: Any, mean: Any, rest: Any, scatter: Any
) -> None:
    """Fill, from the first `n_rows` rows of the columns real[members], for each group g (all arrays zero at first):

    total[g] = Σ w,  mean[g] = Σ w x / Σ w,  scatter[g] = Σ w (x − mean)(x − mean)ᵀ

    in two passes, the second of which also finds what the mean lost by rounding, rest[g]: a mean of 1e9 costs no digits.
    """
    k, n_groups = len(members), len(total)
    for i in range(n_rows):
        g = group[i]
        w = weight[i]
        total[g] += w
        for a in range(k):
            mean[g, a] += w * real[members[a], i]
    for g in range(n_groups):
        for a in range(k):
            mean[g, a] = mean[g, a] / total[g] if total[g] > 0.0 else 0.0
    off, drift = np.empty(k), np.zeros((n_groups, k))
    for i in range(n_rows):
        g = group[i]
        w = weight[i]
        for a in range(k):
            off[a] = real[members[a], i] - mean[g, a]
            drift[g, a] += w * off[a]
            for b in range(a + 1):
                scatter[g, a, b] += w * off[a] * off[b]
    for g in range(n_groups):
        if total[g] > 0.0:
            for a in range(k):
                for b in range(a + 1):
                    scatter[g, a, b] -= drift[g, a] * drift[g, b] / total[g]
                    scatter[g, b, a] = scatter[g, a, b]
                rest[g, a] = drift[g, a] / total[g]
