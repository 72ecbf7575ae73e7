"""The best path of hidden chains with one matrix, many at a time: see `suffice.kernels.lane_tiles` for lanes, groups, tiles.

    x[k, j, s + 1, v] = the largest ln p(path, y) of paths that end in state j, less the best of all before its tile

On the way back the best state before is found again along the one path, which takes K comparisons, not K². Values closer than
1e-9 of their size are equal, and the smaller state wins.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from suffice.kernels import kernel
from suffice.kernels.best_path import CLOSE
from suffice.kernels.lane_tiles import _codes, _floats, _group, _place, _rows, _tiles, active, lay, look, rows_of

_seen = nb.int64[:, ::1]


@kernel(nb.void(_rows, _tiles, *_place, _tiles, *_place, nb.int64))
def most(M: Any, x: Any, k: int, s: int, y: Any, ky: int, sy: int, n: int) -> None:
    """y[ky, j, sy, v] = maxᵢ (M[i, j] + x[k, i, s, v]) for v < n."""
    K = M.shape[0]
    for j in range(0, K, 2):
        for i in range(0, K, 4):
            a0, a1, a2, a3 = M[i, j], M[i + 1, j], M[i + 2, j], M[i + 3, j]
            b0, b1, b2, b3 = M[i, j + 1], M[i + 1, j + 1], M[i + 2, j + 1], M[i + 3, j + 1]
            for v in range(n):
                x0, x1, x2, x3 = x[k, i, s, v], x[k, i + 1, s, v], x[k, i + 2, s, v], x[k, i + 3, s, v]
                y0 = max(max(a0 + x0, a1 + x1), max(a2 + x2, a3 + x3))
                y1 = max(max(b0 + x0, b1 + x1), max(b2 + x2, b3 + x3))
                y[ky, j, sy, v] = max(y0, y[ky, j, sy, v]) if i else y0
                y[ky, j + 1, sy, v] = max(y1, y[ky, j + 1, sy, v]) if i else y1


@kernel(nb.void(*_group, _codes, _rows, _seen, _rows, _tiles, _rows, _floats, _floats, _tiles, _rows))
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
    M: Any,
    enter: Any,
    log_p: Any,
    x: Any,
    spare: Any,
) -> None:
    """x of n lanes from lane g on, and log_p, the largest ln p(path, y), by logarithms: M, `enter` of the first step, table."""
    K, W = x.shape[1], seen.shape[0]
    for k in range((length[g] + W - 1) // W):
        n = active(length, g, n, k * W)
        if symbols.shape[0]:
            look(g, n, begin, length, symbols, k, seen)
        if dense.shape[1]:
            lay(g, n, begin, length, dense, k, b, np.int64(0))
        m = n
        for s in range(min(W, length[g] - k * W)):
            m = active(length, g, m, k * W + s)
            if k + s:
                most(M, x, k, s, x, k, s + 1, m)
            if symbols.shape[0]:
                rows_of(table, seen, s, m, spare)
            for j in range(K):
                if k + s == 0:
                    for v in range(m):
                        x[k, j, 1, v] = enter[j]
                if symbols.shape[0]:
                    for v in range(m):
                        x[k, j, s + 1, v] += spare[j, v]
                if dense.shape[1]:
                    for v in range(m):
                        x[k, j, s + 1, v] += b[0, j, s, v]
        for v in range(n):
            last, top = min(W, length[g + v] - k * W), -np.inf
            for j in range(K):
                top = max(top, x[k, j, last, v])
            log_p[g + v] += top
            if length[g + v] - k * W > W:
                for j in range(K):
                    x[k + 1, j, 0, v] = x[k, j, W, v] - top if top > -np.inf else top


@kernel(nb.void(*_group, _rows, _floats, _tiles, _seen, _rows, _floats, _codes))
def descend(
    g: int,
    n: int,
    begin: Any,
    length: Any,
    T: Any,
    log_p: Any,
    x: Any,
    seen: Any,
    spare: Any,
    best: Any,
    paths: Any,
) -> None:
    """The best paths of n lanes from lane g on, by x; −1 for a lane whose log_p is −inf. T is the logarithm M transposed."""
    K, W = x.shape[1], seen.shape[0] - 1
    for k in range((length[g] + W - 1) // W - 1, -1, -1):
        here, steps = active(length, g, n, k * W), min(W, length[g] - k * W)
        for v in range(here):
            seen[W, v] = seen[0, v]
        for s in range(steps - 1, -1, -1):
            m, longer = active(length, g, here, k * W + s), active(length, g, here, k * W + s + 1)
            rows_of(T, seen, s + 1 if s < W - 1 else W, longer, spare)
            for v in range(m):
                best[v] = -1e300
                seen[s, v] = 0
            for j in range(K):
                for v in range(longer, m):
                    spare[j, v] = 0.0
                for v in range(m):
                    value = x[k, j, s + 1, v] + spare[j, v]
                    better = value > best[v] + CLOSE * (1.0 + abs(best[v]))
                    best[v] = value if better else best[v]
                    seen[s, v] = j if better else seen[s, v]
        for v in range(here):
            first = begin[g + v] + k * W
            for s in range(min(W, length[g + v] - k * W)):
                paths[first + s] = seen[s, v] if log_p[g + v] > -np.inf else -1
