"""Regressions of many families on one matrix: what is left of a child's variance beside its parents."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from suffice.kernels import kernel
from suffice.kernels import signatures as nb


@kernel(
    nb.void(nb.float64[:, ::1], nb.int32[:, ::1], nb.float64, nb.float64, nb.float64[::1], nb.float64[::1]),
    work=lambda members: members.size * members.shape[1] ** 2,
)
def residuals(matrix: Any, members: Any, collinear: float, none: float, left: Any, log_det: Any) -> None:
    """For each row of `members`, the child last: the share of variance that its parents leave, and ln |matrix of the parents|.

    `matrix` has unit diagonal; left is NaN where parents are collinear (a pivot up to `collinear`) or determine the child (a
    share up to `none`).
    """
    n_families, m = members.shape
    L = np.empty((m, m))
    for f in range(n_families):
        total, good = 0.0, True
        for j in range(m):
            for i in range(j):
                value = matrix[members[f, j], members[f, i]]
                for k in range(i):
                    value -= L[j, k] * L[i, k]
                L[j, i] = value / L[i, i]
            pivot = matrix[members[f, j], members[f, j]]
            for k in range(j):
                pivot -= L[j, k] * L[j, k]
            if pivot <= (collinear if j < m - 1 else none):
                good = False
                break
            if j < m - 1:
                total += math.log(pivot)
                L[j, j] = math.sqrt(pivot)
            else:
                left[f] = pivot
        log_det[f] = total
        if not good:
            left[f] = np.nan
