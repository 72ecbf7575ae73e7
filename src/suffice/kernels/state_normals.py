"""Numbers that are normal given a hidden state: how well each state explains each step, and moments weighted by the states.

Columns and steps are x[c, t]. Loops over a few hundred steps are innermost, over slices that begin at 0 (an index that might be
negative is not vectorised): they stay in the cache. Columns are taken four at a time; `used` says which fours are needed.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from suffice.kernels import kernel

CHUNK = 256
"""Steps at a time."""

_floats, _rows, _cube, _flags = nb.float64[::1], nb.float64[:, ::1], nb.float64[:, :, ::1], nb.boolean[:, ::1]


@kernel(nb.void(_rows, nb.int64, _floats, _floats), reorder=True)
def add_four(off: Any, c: int, w: Any, z: Any) -> None:
    """z += Σ w[c] off[c] over four columns from c on."""
    a, b, d, e = off[c], off[c + 1], off[c + 2], off[c + 3]
    wa, wb, wd, we = w[c], w[c + 1], w[c + 2], w[c + 3]
    for t in range(len(z)):
        z[t] += (wa * a[t] + wb * b[t]) + (wd * d[t] + we * e[t])


@kernel(nb.void(_floats, _rows, nb.int64, _floats), reorder=True)
def four_products(own: Any, off: Any, c: int, out: Any) -> None:
    """out[i] = Σ own off[c + i], for four columns."""
    a, b, d, e = off[c], off[c + 1], off[c + 2], off[c + 3]
    sa, sb, sd, se = 0.0, 0.0, 0.0, 0.0
    for t in range(len(own)):
        y = own[t]
        sa += y * a[t]
        sb += y * b[t]
        sd += y * d[t]
        se += y * e[t]
    out[0], out[1], out[2], out[3] = sa, sb, sd, se


@kernel(nb.void(_rows, _rows, _cube, _flags, _rows, _floats, nb.int64, _rows), reorder=True)
def score_normals(x: Any, centre: Any, weight: Any, used: Any, intercept: Any, constant: Any, begin: int, out: Any) -> None:
    """Add ln p of each step under each state k to out[k, begin + t]:

    constant[k] − ½ Σⱼ z²,   z = intercept[k, j] + Σ_c weight[k, j, c] (x[c, t] − centre[k, c])

    The centre, near which most steps of the state lie, keeps the digits of narrow states.
    """
    C, n = x.shape
    K, J = intercept.shape
    off, w, z_all, total_all = np.zeros((C + 3, CHUNK)), np.zeros(C + 3), np.empty(CHUNK), np.empty(CHUNK)
    for a in range(0, n, CHUNK):
        m = min(CHUNK, n - a)
        z, total = z_all[:m], total_all[:m]
        for k in range(K):
            for c in range(C):
                column, middle, own = x[c, a : a + m], centre[k, c], off[c]
                for t in range(m):
                    own[t] = column[t] - middle
            for t in range(m):
                total[t] = 0.0
            for j in range(J):
                first = intercept[k, j]
                for t in range(m):
                    z[t] = first
                for c in range(C):
                    w[c] = weight[k, j, c]
                for four in range(used.shape[1]):
                    if used[j, four]:
                        add_four(off, 4 * four, w, z)
                for t in range(m):
                    total[t] += z[t] * z[t]
            base, result = constant[k], out[k, begin + a : begin + a + m]
            for t in range(m):
                result[t] += base - 0.5 * total[t]


@kernel(nb.void(_rows, _rows, nb.int64, _floats, _flags, _floats, _rows, _cube), reorder=True)
def sum_normals(x: Any, share: Any, begin: int, weight: Any, used: Any, total: Any, mean: Any, scatter: Any) -> None:
    """Fill, for each state k with the steps weighted by w = share[k, begin + t] weight[t] (without weights, by the share):

    total[k] = Σ w,  mean[k] = Σ w x / Σ w,  scatter[k, a, b] = Σ w (x_a − mean_a)(x_b − mean_b) for b ≤ a, used[a, b // 4]

    Of each chunk the means come first, so that nothing is lost where a state is narrow and far from the others; chunks are
    added as in `suffice.statistics.chan`. All arrays are zero at first.
    """
    C, n = x.shape
    off, step, sums = np.zeros((C + 3, CHUNK)), np.zeros(C + 3), np.empty(4)
    g_all, own_all = np.empty(CHUNK), np.empty(CHUNK)
    for begun in range(0, n, CHUNK):
        m = min(CHUNK, n - begun)
        g, own = g_all[:m], own_all[:m]
        for k in range(total.shape[0]):
            part, N = share[k, begin + begun : begin + begun + m], 0.0
            if weight.shape[0]:
                more = weight[begun : begun + m]
                for t in range(m):
                    g[t] = part[t] * more[t]
            else:
                for t in range(m):
                    g[t] = part[t]
            for t in range(m):
                N += g[t]
            if not N > 0.0:
                continue
            for c in range(C):
                column, s, shifted = x[c, begun : begun + m], 0.0, off[c]
                for t in range(m):
                    s += g[t] * column[t]
                middle = s / N
                step[c] = middle - mean[k, c]
                for t in range(m):
                    shifted[t] = column[t] - middle
            new = total[k] + N
            across = N * (total[k] / new)
            for a in range(C):
                shifted = off[a]
                for t in range(m):
                    own[t] = g[t] * shifted[t]
                for four in range(a // 4 + 1):
                    if used[a, four]:
                        four_products(own, off, 4 * four, sums)
                        for i in range(min(4, a + 1 - 4 * four)):
                            scatter[k, a, 4 * four + i] += sums[i] + across * step[a] * step[4 * four + i]
            for c in range(C):
                mean[k, c] += step[c] * (N / new)
            total[k] = new
