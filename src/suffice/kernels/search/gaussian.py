"""Regressions of many families on one matrix, or on one for each group of rows: what is left of a child's variance."""

import math

import numpy as np

from suffice.kernels import kernel, nb


@kernel(
    nb.void(nb.float64[:, ::1], nb.int32[:, ::1], nb.float64, nb.float64, nb.float64[::1], nb.float64[::1]),
    work=lambda members: members.size * members.shape[1] ** 2,
)
def residuals(matrix, members, collinear, none, left, log_det):
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


_groups = (nb.float64[::1], nb.float64[:, ::1], nb.float64[:, :, ::1])


@kernel(nb.void(*_groups, nb.int32[:, ::1], nb.float64[::1], nb.float64[::1], nb.boolean[::1]))
def group_likelihoods(count, mean, scatter, members, limits, value, unsure):
    """For each row of `members`, the child last: Σ_g −N_g/2 (ln(2π s_g/N_g) + 1), s the child's residual scatter in group g.

    NaN where a group has no estimate: too few rows, collinear parents (a pivot up to limits[0]), or no residual (up to
    limits[1]). A scatter that is a difference of sums about `mean` ≠ 0 has lost digits; the family is `unsure` where these could
    move the value by limits[2], or turn a pivot.
    """
    n_families, m = members.shape
    L, root = np.empty((m, m)), np.empty(m)
    for f in range(n_families):
        value[f], unsure[f] = 0.0, False
        for g in range(len(count)):
            N = count[g]
            few = math.floor(N) == N and m + 1 > N  # weights that are no whole numbers do not say how many rows there are
            lost, smallest, good = 0.0, 1.0, not few
            for j in range(m):
                s = scatter[g, members[f, j], members[f, j]]
                root[j] = math.sqrt(s) if s > 0.0 else 1.0
                off = N * mean[g, members[f, j]] ** 2
                if off > 0.0:
                    lost = max(lost, off / s if s > 0.0 else np.inf)
            left = 0.0
            for j in range(m):
                for i in range(j):
                    entry = scatter[g, members[f, j], members[f, i]] / (root[j] * root[i])
                    for k in range(i):
                        entry -= L[j, k] * L[i, k]
                    L[j, i] = entry / L[i, i]
                left = scatter[g, members[f, j], members[f, j]] / (root[j] * root[j])
                for k in range(j):
                    left -= L[j, k] * L[j, k]
                smallest = min(smallest, left)
                if left <= (limits[0] if j < m - 1 else limits[1]):
                    good = False
                    break
                L[j, j] = math.sqrt(left)
            if not few and lost > 1.0 and 4e-16 * (1.0 + lost) * N > limits[2] * max(smallest, 0.0):
                unsure[f] = True
            if not good:
                value[f] = np.nan
                break
            s = left * scatter[g, members[f, m - 1], members[f, m - 1]]
            value[f] -= 0.5 * N * (math.log(2.0 * math.pi * s / N) + 1.0)
