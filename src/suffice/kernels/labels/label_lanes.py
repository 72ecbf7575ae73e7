"""Rows of numbers, a lane of each sequence in every row: what best labels are found by, many sequences at a time.

x, x_at, x_row stand for the rows x_j = x[x_at + j · x_row + v], v < n. Indices are unsigned, for of signed ones it is looked
at whether they count from the end, which takes as long as the work of a row.
"""

from __future__ import annotations

import numpy as np

from suffice.kernels import kernel
from suffice.kernels.chains.best_path import CLOSE
from suffice.kernels.compiler import signatures as nb

U = np.uint64
_ints, _codes, _floats, _rows = nb.int64[::1], nb.int32[::1], nb.float64[::1], nb.float64[:, ::1]
_strip = (_floats, nb.int64, nb.int64)


@kernel(nb.void(_rows, *_strip, *_strip, *_strip, nb.int64), apart=True)
def most(M, x, x_at, x_row, f, f_at, f_row, y, y_at, y_row, n):
    """y_j = f_j + maxᵢ (M[i, j] + x_i), four i at a time."""
    K, row, f0, y0 = U(M.shape[0]), U(x_row), U(f_at), U(y_at)
    for j in range(U(0), K, U(2)):
        f1, y1, x0, k = f0 + U(f_row), y0 + U(y_row), U(x_at), j + U(1)
        for i in range(U(0), K, U(4)):
            i1, i2, i3, x1 = i + U(1), i + U(2), i + U(3), x0 + row
            a0, a1, a2, a3, b0, b1, b2, b3 = M[i, j], M[i1, j], M[i2, j], M[i3, j], M[i, k], M[i1, k], M[i2, k], M[i3, k]
            x2 = x1 + row
            x3 = x2 + row
            for v in range(U(n)):
                c0, c1, c2, c3 = x[x0 + v], x[x1 + v], x[x2 + v], x[x3 + v]
                s0 = max(max(a0 + c0, a1 + c1), max(a2 + c2, a3 + c3)) + f[f0 + v]
                s1 = max(max(b0 + c0, b1 + c1), max(b2 + c2, b3 + c3)) + f[f1 + v]
                y[y0 + v] = max(s0, y[y0 + v]) if i else s0
                y[y1 + v] = max(s1, y[y1 + v]) if i else s1
            x0 = x3 + row
        f0, y0 = f1 + U(f_row), y1 + U(y_row)


@kernel(nb.void(nb.int64, *_strip, _floats, _floats, _ints, nb.int64, nb.int64), apart=True)
def choose(K, x, x_at, x_row, f, best, states, states_at, n):
    """states = the j of the largest x_j + f_j, the smaller of those that are equal; rows of f are n apart. Four j at a time."""
    x0, f0, at, row, L = U(x_at), U(0), U(states_at), U(x_row), U(n)
    for j in range(0, K, 4):
        x1, f1 = x0 + row, f0 + L
        x2, f2 = x1 + row, f1 + L
        x3, f3 = x2 + row, f2 + L
        for v in range(L):
            a, b, c, d = x[x0 + v] + f[f0 + v], x[x1 + v] + f[f1 + v], x[x2 + v] + f[f2 + v], x[x3 + v] + f[f3 + v]
            top, state = best[v] if j else -1e300, states[at + v] if j else 0
            better = a > top + CLOSE * (1.0 + abs(top))
            top, state = a if better else top, j if better else state
            better = b > top + CLOSE * (1.0 + abs(top))
            top, state = b if better else top, j + 1 if better else state
            better = c > top + CLOSE * (1.0 + abs(top))
            top, state = c if better else top, j + 2 if better else state
            better = d > top + CLOSE * (1.0 + abs(top))
            best[v], states[at + v] = d if better else top, j + 3 if better else state
        x0, f0 = x3 + row, f3 + L


@kernel(nb.void(_floats, nb.int64, _ints, nb.int64, *_strip, nb.int64))
def rows_of(table, K, seen, seen_at, y, y_at, y_row, n):
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
