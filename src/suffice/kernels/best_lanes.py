"""The best path of hidden chains with one matrix, many at a time: `suffice.kernels.lane_tiles` says what lanes, groups, tiles and
rows are.

    x[k, j, s + 1, v] = the largest ln p(path, y) of paths that end in state j, less the best of all before its tile

On the way back the best state before is found again along the one path, which takes K comparisons, not K². Values closer than
1e-9 of their size are equal, and the smaller state wins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.kernels import kernel
from suffice.kernels import signatures as nb
from suffice.kernels.best_path import CLOSE
from suffice.kernels.lane_tiles import U, _codes, _floats, _group, _ints, _rows, _strip, _tiles, active, lay, look, rows_of


@kernel(nb.void(_rows, *_strip, *_strip, *_strip, nb.int64), apart=True)
def most(M: Any, x: Any, x_at: int, x_row: int, f: Any, f_at: int, f_row: int, y: Any, y_at: int, y_row: int, n: int) -> None:
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
def choose(K: int, x: Any, x_at: int, x_row: int, f: Any, best: Any, states: Any, states_at: int, n: int) -> None:
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


@kernel(nb.void(*_group, _codes, _floats, _ints, _rows, _tiles, _floats, _rows, _floats, _floats, _tiles, _floats))
def rise(
    g: int,
    n: int,
    begin: Any,
    length: Any,
    symbols: Any,
    table: Any,
    seen: Any,
    dense: Any,
    b: Any,
    flat_b: Any,
    M: Any,
    enter: Any,
    log_p: Any,
    x: Any,
    flat_x: Any,
) -> None:
    """x of n lanes from lane g on, and log_p, the largest ln p(path, y), by logarithms: M, `enter` of the first step, table.

    Tiles are also given as flat arrays."""
    K, W, L = x.shape[1], x.shape[2] - 1, x.shape[3]
    row, zero = (W + 1) * L, np.int64(0)
    for k in range((length[g] + W - 1) // W):
        n, at, steps = active(length, g, n, k * W), k * K * row, min(W, length[g] - k * W)
        if symbols.shape[0]:
            look(g, n, begin, length, symbols, k, seen, L)
            rows_of(table, K, seen, zero, flat_b, zero, row, steps * L)
        if dense.shape[1]:
            lay(g, n, begin, length, dense, k, np.int64(1), b, zero, symbols.shape[0] > 0)
        m = n
        for s in range(steps):
            m = active(length, g, m, k * W + s)
            if k + s:
                most(M, flat_x, at + s * L, row, flat_b, s * L, row, flat_x, at + (s + 1) * L, row, m)
            else:
                for j in range(K):
                    for v in range(m):
                        x[0, j, 1, v] = enter[j] + b[0, j, 0, v]
        for v in range(n):
            last, top = min(W, length[g + v] - k * W), -np.inf
            for j in range(K):
                top = max(top, x[k, j, last, v])
            log_p[g + v] += top
            if length[g + v] - k * W > W:
                for j in range(K):
                    x[k + 1, j, 0, v] = x[k, j, W, v] - top if top > -np.inf else top


@kernel(nb.void(*_group, _floats, _floats, _tiles, _floats, _ints, _floats, _floats, _codes))
def descend(
    g: int,
    n: int,
    begin: Any,
    length: Any,
    T: Any,
    log_p: Any,
    x: Any,
    flat_x: Any,
    states: Any,
    spare: Any,
    best: Any,
    paths: Any,
) -> None:
    """The best paths of n lanes from lane g on, by x; −1 for a lane whose log_p is −inf. T is the logarithm M transposed, flat,
    with zeros as its last row: what is after a lane's end."""
    K, W, L = x.shape[1], x.shape[2] - 1, x.shape[3]
    row, zero, none = (W + 1) * L, np.int64(0), T.shape[0] // x.shape[1] - 1
    for v in range(L):
        states[v] = none
    for k in range((length[g] + W - 1) // W - 1, -1, -1):
        here, steps = active(length, g, n, k * W), min(W, length[g] - k * W)
        for v in range(L):
            states[steps * L + v] = states[v]
        for s in range(steps - 1, -1, -1):
            m = active(length, g, here, k * W + s)
            rows_of(T, K, states, (s + 1) * L, spare, zero, L, L)
            choose(K, flat_x, (k * K * (W + 1) + s + 1) * L, row, spare, best, states, s * L, L)
            for v in range(m, L):
                states[s * L + v] = none
        for v in range(here):
            first = begin[g + v] + k * W
            for s in range(min(W, length[g + v] - k * W)):
                paths[first + s] = states[s * L + v] if log_p[g + v] > -np.inf else -1
