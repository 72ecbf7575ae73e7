"""Lassos on a matrix of correlations: the regression of each variable on all others."""

from __future__ import annotations

import numpy as np

from suffice.kernels import kernel
from suffice.kernels.compiler import signatures as nb

_matrix = nb.float64[:, ::1]


@kernel(nb.int64(_matrix, _matrix, _matrix, nb.float64, nb.int64))
def node_lassos(R, penalty, B, tolerance, most):
    """For each variable i, from where its row of B is, the coefficients b = B[i], b_i = 0, that minimise

        ½ bᵀ R b − R_iᵀ b + Σ_j penalty_ij |b_j|,

    by coordinate descent: over all variables, then over those that are in until they settle, and again, until nothing moves by
    more than `tolerance` (R has unit diagonal). Gives the number of variables that `most` sweeps were not enough for.
    """
    n = len(R)
    left = np.empty(n)
    inside = np.zeros(n, np.bool_)
    unsettled = 0
    for i in range(n):
        for j in range(n):
            left[j] = R[i, j]
        for k in range(n):
            if B[i, k] != 0.0:
                for j in range(n):
                    left[j] -= B[i, k] * R[k, j]
        everything = True
        settled = False
        for _ in range(most):
            largest = 0.0
            for j in range(n):
                if j == i or not (everything or inside[j]):
                    continue
                old = B[i, j]
                new = left[j] + old
                if new > penalty[i, j]:
                    new -= penalty[i, j]
                elif new < -penalty[i, j]:
                    new += penalty[i, j]
                else:
                    new = 0.0
                inside[j] = new != 0.0
                step = new - old
                if step != 0.0:
                    B[i, j] = new
                    for k in range(n):
                        left[k] -= step * R[j, k]
                    largest = max(largest, abs(step))
            if largest <= tolerance:
                if everything:
                    settled = True
                    break
                everything = True
            else:
                everything = False
        if not settled:
            unsettled += 1
    return unsettled
