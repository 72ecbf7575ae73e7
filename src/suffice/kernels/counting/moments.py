"""Moments of real columns within groups of rows: centred ones of a few columns, and plain sums by many ways of grouping."""

import numpy as np

from suffice.kernels import kernel, nb

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
