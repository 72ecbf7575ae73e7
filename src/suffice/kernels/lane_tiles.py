"""Parts of what is done to many hidden chains side by side: sums, products and likelihoods of *tiles*.

A *lane* is a run of steps, begin[v] … begin[v] + length[v] − 1, of a sequence; the n lanes of a *group*, from lane g on, go side
by side, the longest first. Steps are taken in tiles of W. Arrays are [tile][state][step][lane], so that every inner loop runs
over lanes; the number of states is a multiple of 4. Tiles have room for one step more than they need, for a filter before them
and lest rows fall on the same lines of the cache.
"""

from __future__ import annotations

from typing import Any

import numba as nb

from suffice.kernels import kernel

_ints, _codes, _floats, _rows = nb.int64[::1], nb.int32[::1], nb.float64[::1], nb.float64[:, ::1]
_tiles = nb.float64[:, :, :, ::1]
_place = (nb.int64, nb.int64)
_group = (nb.int64, nb.int64, _ints, _ints)


@kernel(nb.void(_rows, _tiles, *_place, _tiles, nb.int64), reorder=True)
def times(M: Any, x: Any, k: int, s: int, y: Any, n: int) -> None:
    """y[0, j, 0, v] = Σᵢ M[i, j] x[k, i, s, v] for v < n."""
    K = M.shape[0]
    for j in range(0, K, 2):
        for i in range(0, K - 4, 8):
            a0, a1, a2, a3 = M[i, j], M[i + 1, j], M[i + 2, j], M[i + 3, j]
            a4, a5, a6, a7 = M[i + 4, j], M[i + 5, j], M[i + 6, j], M[i + 7, j]
            b0, b1, b2, b3 = M[i, j + 1], M[i + 1, j + 1], M[i + 2, j + 1], M[i + 3, j + 1]
            b4, b5, b6, b7 = M[i + 4, j + 1], M[i + 5, j + 1], M[i + 6, j + 1], M[i + 7, j + 1]
            for v in range(n):
                x0, x1, x2, x3 = x[k, i, s, v], x[k, i + 1, s, v], x[k, i + 2, s, v], x[k, i + 3, s, v]
                x4, x5, x6, x7 = x[k, i + 4, s, v], x[k, i + 5, s, v], x[k, i + 6, s, v], x[k, i + 7, s, v]
                y0 = a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3 + a4 * x4 + a5 * x5 + a6 * x6 + a7 * x7
                y1 = b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3 + b4 * x4 + b5 * x5 + b6 * x6 + b7 * x7
                y[0, j, 0, v] = y0 if i == 0 else y[0, j, 0, v] + y0
                y[0, j + 1, 0, v] = y1 if i == 0 else y[0, j + 1, 0, v] + y1
        if K % 8:
            i = K - 4
            a0, a1, a2, a3 = M[i, j], M[i + 1, j], M[i + 2, j], M[i + 3, j]
            b0, b1, b2, b3 = M[i, j + 1], M[i + 1, j + 1], M[i + 2, j + 1], M[i + 3, j + 1]
            for v in range(n):
                x0, x1, x2, x3 = x[k, i, s, v], x[k, i + 1, s, v], x[k, i + 2, s, v], x[k, i + 3, s, v]
                y0 = a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
                y1 = b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3
                y[0, j, 0, v] = y0 if i == 0 else y[0, j, 0, v] + y0
                y[0, j + 1, 0, v] = y1 if i == 0 else y[0, j + 1, 0, v] + y1


@kernel(nb.void(nb.float64[:, :, ::1], nb.int64, _rows, nb.int64, _rows), reorder=True)
def outer(x: Any, k: int, y: Any, n: int, sums: Any) -> None:
    """sums[i, j] += Σ x[k, i, p] y[j, p] for p < n."""
    K = sums.shape[0]
    for i in range(0, K, 2):
        for j in range(0, K, 4):
            a0, a1, a2, a3, b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for p in range(n):
                x0, x1 = x[k, i, p], x[k, i + 1, p]
                y0, y1, y2, y3 = y[j, p], y[j + 1, p], y[j + 2, p], y[j + 3, p]
                a0 += x0 * y0
                a1 += x0 * y1
                a2 += x0 * y2
                a3 += x0 * y3
                b0 += x1 * y0
                b1 += x1 * y1
                b2 += x1 * y2
                b3 += x1 * y3
            sums[i, j] += a0
            sums[i, j + 1] += a1
            sums[i, j + 2] += a2
            sums[i, j + 3] += a3
            sums[i + 1, j] += b0
            sums[i + 1, j + 1] += b1
            sums[i + 1, j + 2] += b2
            sums[i + 1, j + 3] += b3


@kernel(nb.void(_tiles, *_place, _tiles, *_place, _tiles, *_place, nb.int64))
def multiply(x: Any, k: int, s: int, y: Any, ky: int, sy: int, z: Any, kz: int, sz: int, n: int) -> None:
    """x[k, j, s, v] = y[ky, j, sy, v] z[kz, j, sz, v] for v < n."""
    for j in range(x.shape[1]):
        for v in range(n):
            x[k, j, s, v] = y[ky, j, sy, v] * z[kz, j, sz, v]


@kernel(nb.int64(_ints, nb.int64, nb.int64, nb.int64))
def active(length: Any, g: int, n: int, t: int) -> int:
    """How many of the first n lanes of a group have a step t."""
    while n > 0 and length[g + n - 1] <= t:
        n -= 1
    return n


@kernel(nb.void(_tiles, nb.int64, nb.int64, _rows, _tiles, nb.int64[:, :, :, ::1]))
def halves(b: Any, k: int, K: int, top: Any, power: Any, bits: Any) -> None:
    """The parts of exp x = 2ᵐ exp r of x = b[k] − top, where top[s, v] is the largest of each step: r in b[k], 2ᵐ in `power`.

    m is the low end of x / ln 2 + 1.5 · 2⁵²; shifted, it is the bits of 2ᵐ (`bits` is `power` seen as whole numbers). A
    compiler that may reorder sums would undo this.
    """
    W, L = top.shape
    for s in range(W):
        for v in range(L):
            top[s, v] = -1e300
        for j in range(K):
            for v in range(L):
                top[s, v] = max(top[s, v], b[k, j, s, v])
        for j in range(K):
            for v in range(L):
                x = max(b[k, j, s, v] - top[s, v], -708.0)
                shifted = x * 1.4426950408889634 + 6755399441055744.0
                power[0, j, s, v] = shifted
                whole = shifted - 6755399441055744.0
                b[k, j, s, v] = (x - whole * 0.693147180369123816490) - whole * 1.90821492927058770002e-10
            for v in range(L):
                bits[0, j, s, v] = (bits[0, j, s, v] + 1023) << 52


@kernel(nb.void(_tiles, nb.int64, nb.int64, _tiles), reorder=True)
def polynomial(b: Any, k: int, K: int, power: Any) -> None:
    """b[k] = exp(b[k]) · power for |b| < 0.35; what is below 1e-307 is 0."""
    W, L = b.shape[2] - 1, b.shape[3]
    for j in range(K):
        for s in range(W):
            for v in range(L):
                x = b[k, j, s, v]
                p = 1.0 / 479001600.0 + x * (1.0 / 6227020800.0)
                p = 1.0 / 39916800.0 + x * p
                p = 1.0 / 3628800.0 + x * p
                p = 1.0 / 362880.0 + x * p
                p = 1.0 / 40320.0 + x * p
                p = 1.0 / 5040.0 + x * p
                p = 1.0 / 720.0 + x * p
                p = 1.0 / 120.0 + x * p
                p = 1.0 / 24.0 + x * p
                p = 1.0 / 6.0 + x * p
                y = (1.0 + x * (1.0 + x * (0.5 + x * p))) * power[0, j, s, v]
                b[k, j, s, v] = y if y > 1e-307 else 0.0


@kernel(nb.void(*_group, _rows, nb.int64, _tiles, nb.int64))
def lay(g: int, n: int, begin: Any, length: Any, dense: Any, k: int, b: Any, kb: int) -> None:
    """b[kb, j, s, v] = the columns of `dense` of tile k."""
    W = b.shape[2] - 1
    for j in range(dense.shape[0]):
        for v in range(n):
            first = begin[g + v] + k * W
            for s in range(min(W, length[g + v] - k * W)):
                b[kb, j, s, v] = dense[j, first + s]


@kernel(nb.void(*_group, _rows, _tiles, _tiles, nb.int64[:, :, :, ::1], _rows, _floats))
def fill(g: int, n: int, begin: Any, length: Any, dense: Any, b: Any, power: Any, bits: Any, top: Any, log_p: Any) -> None:
    """b = exp(dense) over its largest entry at each step, the logarithms of which are added to log_p."""
    W, K = b.shape[2] - 1, dense.shape[0]
    for k in range((length[g] + W - 1) // W):
        lay(g, n, begin, length, dense, k, b, k)
        halves(b, k, K, top, power, bits)
        polynomial(b, k, K, power)
        for v in range(n):
            for s in range(min(W, length[g + v] - k * W)):
                log_p[g + v] += top[s, v]


@kernel(nb.void(*_group, _codes, _rows, _floats, _tiles, _floats))
def fill_more(g: int, n: int, begin: Any, length: Any, symbols: Any, table: Any, tops: Any, b: Any, log_p: Any) -> None:
    """b times table[symbol] at each step; the symbols' `tops` are added to log_p."""
    W = b.shape[2] - 1
    for v in range(n):
        for t in range(length[g + v]):
            e = symbols[begin[g + v] + t]
            log_p[g + v] += tops[e] if tops.shape[0] else 0.0
            for j in range(table.shape[1]):
                b[t // W, j, t % W, v] *= table[e, j]


@kernel(nb.void(*_group, _codes, nb.int64, nb.int64[:, ::1]))
def look(g: int, n: int, begin: Any, length: Any, symbols: Any, k: int, seen: Any) -> None:
    """seen[s, v] = the symbols of tile k."""
    W = seen.shape[0]
    for v in range(n):
        first = begin[g + v] + k * W
        for s in range(min(W, length[g + v] - k * W)):
            seen[s, v] = symbols[first + s]


@kernel(nb.void(_rows, nb.int64[:, ::1], nb.int64, nb.int64, _rows))
def rows_of(table: Any, seen: Any, s: int, n: int, out: Any) -> None:
    """out[j, v] = table[seen[s, v], j] for v < n."""
    for v in range(n):
        e = seen[s, v]
        for j in range(table.shape[1]):
            out[j, v] = table[e, j]


@kernel(nb.void(_rows, nb.int64[:, ::1], nb.int64, nb.int64, _rows))
def tally(counts: Any, seen: Any, s: int, n: int, g: Any) -> None:
    """counts[seen[s, v], j] += g[j, v] for v < n."""
    for v in range(n):
        e = seen[s, v]
        for j in range(counts.shape[1]):
            counts[e, j] += g[j, v]


@kernel(nb.void(*_group, _floats, nb.int64, _tiles, _rows))
def give(g: int, n: int, begin: Any, length: Any, weights: Any, k: int, gamma: Any, posterior: Any) -> None:
    """Put gamma of tile k, without weights, where its steps are."""
    W = gamma.shape[2] - 1
    for j in range(posterior.shape[0]):
        for v in range(n):
            first, weight = begin[g + v] + k * W, 1.0 / weights[g + v]
            for s in range(min(W, length[g + v] - k * W)):
                posterior[j, first + s] = gamma[0, j, s, v] * weight
