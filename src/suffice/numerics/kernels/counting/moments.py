"""Moments of real columns within groups of rows: centred ones of a few columns, and plain sums by many ways of grouping. And
regressions of many families on one matrix, or on one for each group of rows: what is left of a child's variance.
"""

import math

import numpy as np

from suffice.numerics.kernels import kernel, nb

_inputs = (nb.float64[:, ::1], nb.int32[::1], nb.uint32[::1], nb.float64[::1], nb.int64)


@kernel(
    nb.void(*_inputs, nb.float64[::1], nb.float64[:, ::1], nb.float64[:, ::1], nb.float64[:, :, ::1]),
    work=lambda n_rows, members, total: (n_rows + len(total)) * (len(members) + 2) ** 2,
)
def moments(real, members, group, weight, n_rows, total, mean, rest, scatter):
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


_ways = (nb.int64[::1], nb.int32[::1], nb.int64[::1], nb.int64[::1], nb.int64[::1])

TILE = 64
"""Rows whose products are made together: they stay in the nearest cache while every way of grouping adds them up."""


@kernel(nb.void(nb.int32[:, ::1], nb.float64[:, ::1], nb.float64[::1], *_ways, nb.float64[::1]), apart=True)
def grouped_sums(codes, x, weight, first, members, strides, widths, offsets, sums):
    """Add, for each way s of grouping rows and each of its cells, the first widths[s] of

        w,  w x_a (k of them),  w x_a² (k),  w x_a x_b (k (k − 1) / 2 with b < a, a outside)

    to sums[offsets[s] + cell · widths[s] :]. The cell of row i is Σ codes[members[m], i] · strides[m] over the m of
    first[s] : first[s + 1]. The products are made once, whatever the number of ways.
    """
    k, n_rows = x.shape
    products = np.empty((TILE, 1 + 2 * k + k * (k - 1) // 2))
    cells = np.empty(TILE, np.int64)
    for start in range(0, n_rows, TILE):
        n = min(TILE, n_rows - start)
        for i in range(n):
            w = weight[start + i]
            products[i, 0] = w
            at = 1 + 2 * k
            for a in range(k):
                value = w * x[a, start + i]
                products[i, 1 + a] = value
                products[i, 1 + k + a] = value * x[a, start + i]
                for b in range(a):
                    products[i, at] = value * x[b, start + i]
                    at += 1
        for s in range(len(widths)):
            width = widths[s]
            for i in range(n):
                cells[i] = offsets[s]
            for m in range(first[s], first[s + 1]):
                stride = strides[m] * width
                for i in range(n):
                    cells[i] += codes[members[m], start + i] * stride
            for i in range(n):
                cell = sums[cells[i] : cells[i] + width]
                for j in range(width):
                    cell[j] += products[i, j]


@kernel(
    nb.void(nb.float64[:, ::1], nb.int32[:, ::1], nb.float64, nb.float64, nb.float64[::1], nb.float64[::1]),
    work=lambda members: members.size * members.shape[1] ** 2,
)
def residuals(matrix, members, collinear, none, left, log_det):
    """For each row of `members`, the child last: the share of variance that its parents leave, and ln |matrix of the parents|.
    `matrix` has unit diagonal; left is NaN where parents are collinear (a pivot up to `collinear`) or determine the child (a
    share up to `none`)."""
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
