"""Parts of what is done to many hidden chains side by side: sums, products and likelihoods of *tiles*.

A *lane* is a run of steps, begin[v] … begin[v] + length[v] − 1, of a sequence; the n lanes of a *group*, from lane g on, go side
by side, the longest first. Steps are taken in tiles of W. Arrays are [tile][state][step][lane], so that every inner loop runs
over lanes; the number of states is a multiple of 4. Tiles have room for one step more than they need, for a filter before them
and lest rows fall on the same lines of the cache.

The parts that run at each step take flat arrays: x, x_at, x_row stand for the *rows* x_j = x[x_at + j · x_row + v], v < n. Their
indices are unsigned, for signed ones are looked at whether they count from the end, which takes as long as the work of a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.kernels import kernel
from suffice.kernels import signatures as nb

TILES = 8
"""So many tiles are laid out at a time."""

U = np.uint64
_ints, _codes, _floats, _rows = nb.int64[::1], nb.int32[::1], nb.float64[::1], nb.float64[:, ::1]
_tiles = nb.float64[:, :, :, ::1]
_strip = (_floats, nb.int64, nb.int64)
_group = (nb.int64, nb.int64, _ints, _ints)


@kernel(nb.void(_rows, *_strip, *_strip, *_strip, nb.int64), reorder=True, apart=True)
def times(M: Any, x: Any, x_at: int, x_row: int, f: Any, f_at: int, f_row: int, y: Any, y_at: int, y_row: int, n: int) -> None:
    """y_j = f_j Σᵢ M[i, j] x_i, eight or four i at a time."""
    K, row, f0, y0 = U(M.shape[0]), U(x_row), U(f_at), U(y_at)
    eights = K // U(8)
    for j in range(U(0), K, U(2)):
        f1, y1, x0, k = f0 + U(f_row), y0 + U(y_row), U(x_at), j + U(1)
        for e in range(eights):
            i = e * U(8)
            i1, i2, i3, i4, i5, i6, i7 = i + U(1), i + U(2), i + U(3), i + U(4), i + U(5), i + U(6), i + U(7)
            a0, a1, a2, a3, a4, a5, a6, a7 = M[i, j], M[i1, j], M[i2, j], M[i3, j], M[i4, j], M[i5, j], M[i6, j], M[i7, j]
            b0, b1, b2, b3, b4, b5, b6, b7 = M[i, k], M[i1, k], M[i2, k], M[i3, k], M[i4, k], M[i5, k], M[i6, k], M[i7, k]
            x1 = x0 + row
            x2 = x1 + row
            x3 = x2 + row
            x4 = x3 + row
            x5 = x4 + row
            x6 = x5 + row
            x7 = x6 + row
            for v in range(U(n)):
                c0, c1, c2, c3 = x[x0 + v], x[x1 + v], x[x2 + v], x[x3 + v]
                c4, c5, c6, c7 = x[x4 + v], x[x5 + v], x[x6 + v], x[x7 + v]
                s0 = f[f0 + v] * (a0 * c0 + a1 * c1 + a2 * c2 + a3 * c3 + a4 * c4 + a5 * c5 + a6 * c6 + a7 * c7)
                s1 = f[f1 + v] * (b0 * c0 + b1 * c1 + b2 * c2 + b3 * c3 + b4 * c4 + b5 * c5 + b6 * c6 + b7 * c7)
                y[y0 + v] = y[y0 + v] + s0 if e else s0
                y[y1 + v] = y[y1 + v] + s1 if e else s1
            x0 = x7 + row
        if K % U(8):
            i = eights * U(8)
            i1, i2, i3 = i + U(1), i + U(2), i + U(3)
            a0, a1, a2, a3, b0, b1, b2, b3 = M[i, j], M[i1, j], M[i2, j], M[i3, j], M[i, k], M[i1, k], M[i2, k], M[i3, k]
            x1 = x0 + row
            x2 = x1 + row
            x3 = x2 + row
            for v in range(U(n)):
                c0, c1, c2, c3 = x[x0 + v], x[x1 + v], x[x2 + v], x[x3 + v]
                s0, s1 = f[f0 + v] * (a0 * c0 + a1 * c1 + a2 * c2 + a3 * c3), f[f1 + v] * (b0 * c0 + b1 * c1 + b2 * c2 + b3 * c3)
                y[y0 + v] = y[y0 + v] + s0 if eights else s0
                y[y1 + v] = y[y1 + v] + s1 if eights else s1
        f0, y0 = f1 + U(f_row), y1 + U(y_row)


@kernel(nb.void(*_strip, _floats, nb.int64, _rows), reorder=True, apart=True)
def outer(x: Any, x_at: int, x_row: int, y: Any, n: int, sums: Any) -> None:
    """sums[i, j] += Σ x_i y_j; rows of x and y are the same distance apart, those of y from 0 on."""
    K, row, x0 = sums.shape[0], U(x_row), U(x_at)
    for i in range(0, K, 2):
        x1, y0 = x0 + row, U(0)
        for j in range(0, K, 4):
            y1 = y0 + row
            y2 = y1 + row
            y3 = y2 + row
            a0, a1, a2, a3, b0, b1, b2, b3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for v in range(U(n)):
                c0, c1, d0, d1, d2, d3 = x[x0 + v], x[x1 + v], y[y0 + v], y[y1 + v], y[y2 + v], y[y3 + v]
                a0 += c0 * d0
                a1 += c0 * d1
                a2 += c0 * d2
                a3 += c0 * d3
                b0 += c1 * d0
                b1 += c1 * d1
                b2 += c1 * d2
                b3 += c1 * d3
            sums[i, j] += a0
            sums[i, j + 1] += a1
            sums[i, j + 2] += a2
            sums[i, j + 3] += a3
            sums[i + 1, j] += b0
            sums[i + 1, j + 1] += b1
            sums[i + 1, j + 2] += b2
            sums[i + 1, j + 3] += b3
            y0 = y3 + row
        x0 = x1 + row


@kernel(nb.void(nb.int64, *_strip, *_strip, *_strip, *_strip, *_strip, nb.int64), apart=True)
def multiply(
    K: int, x: Any, x_at: int, x_row: int, a: Any, a_at: int, a_row: int, b: Any, b_at: int, b_row: int,
    y: Any, y_at: int, y_row: int, z: Any, z_at: int, z_row: int, n: int,
) -> None:  # fmt: skip
    """y_j = a_j x_j and z_j = b_j x_j."""
    x0, a0, b0, y0, z0 = U(x_at), U(a_at), U(b_at), U(y_at), U(z_at)
    for _ in range(K):
        for v in range(U(n)):
            y[y0 + v] = a[a0 + v] * x[x0 + v]
            z[z0 + v] = b[b0 + v] * x[x0 + v]
        x0, a0, b0, y0, z0 = x0 + U(x_row), a0 + U(a_row), b0 + U(b_row), y0 + U(y_row), z0 + U(z_row)


@kernel(nb.void(nb.int64, *_strip, _floats, nb.int64, *_strip, nb.int64), apart=True)
def scaled(K: int, x: Any, x_at: int, x_row: int, f: Any, f_at: int, y: Any, y_at: int, y_row: int, n: int) -> None:
    """y_j = f x_j."""
    x0, y0, at = U(x_at), U(y_at), U(f_at)
    for _ in range(K):
        for v in range(U(n)):
            y[y0 + v] = f[at + v] * x[x0 + v]
        x0, y0 = x0 + U(x_row), y0 + U(y_row)


@kernel(nb.void(nb.int64, *_strip, nb.int64, nb.int64))
def clear(K: int, x: Any, x_at: int, x_row: int, first: int, last: int) -> None:
    """x_j = 0 from lane `first` up to `last`."""
    for j in range(K if first < last else 0):
        for v in range(x_at + j * x_row + first, x_at + j * x_row + last):
            x[v] = 0.0


@kernel(nb.void(nb.int64, *_strip, _floats, nb.int64), apart=True)
def total_of(K: int, x: Any, x_at: int, x_row: int, y: Any, n: int) -> None:
    """y = Σⱼ x_j, four j at a time."""
    x0, row = U(x_at), U(x_row)
    for j in range(0, K, 4):
        x1 = x0 + row
        x2 = x1 + row
        x3 = x2 + row
        for v in range(U(n)):
            total = (x[x0 + v] + x[x1 + v]) + (x[x2 + v] + x[x3 + v])
            y[v] = y[v] + total if j else total
        x0 = x3 + row


@kernel(nb.int64(_ints, nb.int64, nb.int64, nb.int64))
def active(length: Any, g: int, n: int, t: int) -> int:
    """How many of the first n lanes of a group have a step t."""
    while n > 0 and length[g + n - 1] <= t:
        n -= 1
    return n


@kernel(nb.void(_rows, nb.int64, _floats), fuse=True)
def exponentials(b: Any, K: int, top: Any) -> None:
    """b[j, p] = exp(b[j, p] − top[p]) for j < K, where top[p] is the largest of them; what is below 1e-307 is 0.

    exp x = 2ᵐ exp r, where m is the low end of x / ln 2 + 1.5 · 2⁵²; shifted, it is the bits of 2ᵐ. A compiler that may reorder
    sums would undo this. exp r = 1 + r + r²/2 + r³ q(r) for |r| < 0.3475, where q, of degree 8, is off by 3e-17 r³ at most.
    """
    n = len(top)
    for p in range(n):
        top[p] = -1e300
    for j in range(K):
        row = b[j, :n]
        for p in range(n):
            top[p] = max(top[p], row[p])
    for j in range(K):
        row = b[j, :n]
        for p in range(n):
            x = max(row[p] - top[p], -708.0)
            shifted = x * 1.4426950408889634 + 6755399441055744.0
            whole = shifted - 6755399441055744.0
            r = (x - whole * 0.693147180369123816490) - whole * 1.90821492927058770002e-10
            q = 2.761409818752996e-07 + r * 2.5095778714723427e-08
            q = 2.755727966225757e-06 + r * q
            q = 2.4801535862366184e-05 + r * q
            q = 0.0001984126985454174 + r * q
            q = 0.0013888888906145676 + r * q
            q = 0.008333333333332131 + r * q
            q = 0.04166666666665104 + r * q
            q = 0.16666666666666666 + r * q
            bits = (np.float64(shifted).view(np.int64) + 1023) << 52
            y = (1.0 + (r + r * r * (0.5 + r * q))) * np.int64(bits).view(np.float64)
            row[p] = y if x > -707.0 else 0.0


@kernel(nb.void(*_group, _rows, nb.int64, nb.int64, _tiles, nb.int64, nb.boolean))
def lay(g: int, n: int, begin: Any, length: Any, dense: Any, k: int, tiles: int, b: Any, kb: int, add: bool) -> None:
    """b[kb + i, j, s, v] = the columns of `dense` of tile k + i, or these and what is there, for so many tiles: a few at a time
    are read faster than one."""
    W = b.shape[2] - 1
    for j in range(dense.shape[0]):
        for v in range(n):
            for i in range(tiles):
                first = begin[g + v] + (k + i) * W
                for s in range(min(W, length[g + v] - (k + i) * W)):
                    b[kb + i, j, s, v] = dense[j, first + s] + (b[kb + i, j, s, v] if add else 0.0)


@kernel(nb.void(*_group, nb.int64, nb.int64, _floats, _floats))
def add_tops(g: int, n: int, begin: Any, length: Any, k: int, W: int, top: Any, log_p: Any) -> None:
    """log_p += the tops of tile k, lane by lane."""
    L = len(top) // W
    for s in range(W):
        m = active(length, g, n, k * W + s)
        own, here = log_p[g : g + m], top[s * L : s * L + m]
        for v in range(m):
            own[v] += here[v]


@kernel(nb.void(*_group, _rows, _tiles, nb.float64[:, :, ::1], _floats, _floats))
def fill(g: int, n: int, begin: Any, length: Any, dense: Any, b: Any, flat: Any, top: Any, log_p: Any) -> None:
    """b = exp(dense) over its largest entry at each step, the logarithms of which are added to log_p.

    `flat` is b with steps and lanes as one axis, `top` room for the steps of a tile.
    """
    W, K = b.shape[2] - 1, dense.shape[0]
    n_tiles = (length[g] + W - 1) // W
    for k in range(0, n_tiles, TILES):
        last = min(n_tiles, k + TILES)
        lay(g, n, begin, length, dense, k, last - k, b, k, np.bool_(False))
        for i in range(k, last):
            exponentials(flat[i], K, top)
            add_tops(g, n, begin, length, i, W, top, log_p)


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


@kernel(nb.void(*_group, _codes, nb.int64, _ints, nb.int64))
def look(g: int, n: int, begin: Any, length: Any, symbols: Any, k: int, seen: Any, L: int) -> None:
    """seen[s · L + v] = the symbols of tile k."""
    W = seen.shape[0] // L
    for v in range(n):
        first = begin[g + v] + k * W
        for s in range(min(W, length[g + v] - k * W)):
            seen[s * L + v] = symbols[first + s]


@kernel(nb.void(_floats, nb.int64, _ints, nb.int64, *_strip, nb.int64))
def rows_of(table: Any, K: int, seen: Any, seen_at: int, y: Any, y_at: int, y_row: int, n: int) -> None:
    """y_j = table[K · seen + j], four j at a time. Not `apart`: then lanes would be gathered by vectors, which is slower."""
    y0, row, at = U(y_at), U(y_row), U(seen_at)
    for j in range(U(0), U(K), U(4)):
        y1 = y0 + row
        y2 = y1 + row
        y3 = y2 + row
        for v in range(U(n)):
            e = U(seen[at + v]) * U(K) + j
            a, b, c, d = table[e], table[e + U(1)], table[e + U(2)], table[e + U(3)]
            y[y0 + v], y[y1 + v], y[y2 + v], y[y3 + v] = a, b, c, d
        y0 = y3 + row


@kernel(nb.void(_floats, nb.int64, _ints, nb.int64, *_strip, nb.int64), apart=True)
def tally(counts: Any, K: int, seen: Any, seen_at: int, x: Any, x_at: int, x_row: int, n: int) -> None:
    """counts[K · seen + j] += x_j, four j at a time."""
    x0, row, at = U(x_at), U(x_row), U(seen_at)
    for j in range(U(0), U(K), U(4)):
        x1 = x0 + row
        x2 = x1 + row
        x3 = x2 + row
        for v in range(U(n)):
            e = U(seen[at + v]) * U(K) + j
            counts[e] += x[x0 + v]
            counts[e + U(1)] += x[x1 + v]
            counts[e + U(2)] += x[x2 + v]
            counts[e + U(3)] += x[x3 + v]
        x0 = x3 + row


@kernel(nb.void(*_group, _floats, nb.int64, _tiles, _rows))
def give(g: int, n: int, begin: Any, length: Any, weights: Any, k: int, gamma: Any, posterior: Any) -> None:
    """Put gamma of tile k, without weights, where its steps are."""
    W = gamma.shape[2] - 1
    for j in range(posterior.shape[0]):
        for v in range(n):
            first, weight = begin[g + v] + k * W, 1.0 / weights[g + v]
            for s in range(min(W, length[g + v] - k * W)):
                posterior[j, first + s] = gamma[0, j, s, v] * weight
