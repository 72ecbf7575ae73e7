"""One pass over rows for a regression of K states: log-likelihood, gradient and curvature of K − 1 linear predictors.

pₖ = exp ηₖ / Σⱼ exp ηⱼ,  η₀ = 0        Σ w ln p(y),   Σ w (1[y = k] − pₖ) X,   Σ w pₖ (1[k = l] − pₗ) X Xᵀ
"""

from __future__ import annotations

import math

import numba
import numpy as np

from suffice.kernels import kernel

f8, i8 = numba.float64, numba.int64
_states, _numbers, _table = (numba.types.Array(t, d, "C", readonly=True) for t, d in ((i8, 1), (f8, 1), (f8, 2)))
TILE = 256
"""Rows whose columns stay in the nearest cache while all their products are summed."""


@kernel(numba.void(f8[:, ::1], _states, _numbers, _table, f8[:, ::1], f8[:, ::1], f8[::1]), reorder=True)
def softmax_sums(X, y, weight, theta, gradient, hessian, totals):  # type: ignore[no-untyped-def]
    """Add the sums of these rows to `gradient`, `hessian` and `totals` (log-likelihood, Pearson, weight).

    X holds one column of the regression per row; y the states, of which the first has no predictor.
    """
    q, n = X.shape
    states = len(theta)
    even = q + q % 2
    own, weighed = np.zeros((even, TILE)), np.zeros((even, TILE))
    p, rest, curve = np.empty((states + 1, TILE)), np.empty((states + 1, TILE)), np.empty(TILE)
    for start in range(0, n, TILE):
        m = min(TILE, n - start)
        for j in range(q):
            for i in range(m):
                own[j, i] = X[j, start + i]
        p[0, :m] = 0.0
        for k in range(states):
            p[k + 1, :m] = 0.0
            for j in range(q):
                t = theta[k, j]
                for i in range(m):
                    p[k + 1, i] += t * own[j, i]
        for i in range(m):
            top = 0
            for k in range(1, states + 1):
                if p[k, i] > p[top, i]:
                    top = k
            highest, others = p[top, i], 0.0
            state = y[start + i]
            value = p[state, i] - highest
            for k in range(states + 1):
                p[k, i] = 1.0 if k == top else math.exp(p[k, i] - highest)
                others += 0.0 if k == top else p[k, i]
            total = 1.0 + others
            for k in range(states + 1):
                p[k, i] /= total
                rest[k, i] = others / total if k == top else 1.0 - p[k, i]  # which keeps its digits where p is nearly 1
            w = weight[start + i]
            totals[0] += w * (value - math.log1p(others))
            totals[1] += w * rest[state, i] / p[state, i] if p[state, i] > 0 else math.inf
            totals[2] += w
        for k in range(states):
            for i in range(m):
                residual = rest[k + 1, i] if y[start + i] == k + 1 else -p[k + 1, i]
                curve[i] = weight[start + i] * residual
            for j in range(q):
                s = 0.0
                for i in range(m):
                    s += curve[i] * own[j, i]
                gradient[k, j] += s
            for other in range(k + 1):
                for i in range(m):
                    curve[i] = weight[start + i] * p[k + 1, i] * (rest[k + 1, i] if other == k else -p[other + 1, i])
                for j in range(q):
                    for i in range(m):
                        weighed[j, i] = curve[i] * own[j, i]
                for j in range(0, even, 2):  # two columns by two: four sums for four numbers loaded
                    left, right = weighed[j], weighed[j + 1]
                    for g in range(0, j + 1, 2):
                        up, down = own[g], own[g + 1]
                        a, b, c, d = 0.0, 0.0, 0.0, 0.0
                        for i in range(m):
                            a += left[i] * up[i]
                            b += left[i] * down[i]
                            c += right[i] * up[i]
                            d += right[i] * down[i]
                        row, column = k * q + j, other * q + g
                        hessian[row, column] += a
                        if g < j:  # above the diagonal of a block nothing is needed, and its last column may not exist
                            hessian[row, column + 1] += b
                        if j + 1 < q:
                            hessian[row + 1, column] += c
                            hessian[row + 1, column + 1] += d
    for k in range(states):
        for other in range(k + 1):
            for j in range(q):
                for g in range(j + 1):
                    s = hessian[k * q + j, other * q + g]
                    hessian[k * q + g, other * q + j] = s
                    hessian[other * q + j, k * q + g] = s
                    hessian[other * q + g, k * q + j] = s
