"""The n most probable paths of hidden chains (list Viterbi), for any matrices. See `suffice.kernels.chains.chain` for the arrays.

Values closer than 1e-9 of their size are equal, and then the smaller state wins, and among its paths the better one.
"""

from __future__ import annotations

import numpy as np

from suffice.kernels import kernel
from suffice.kernels.chains.chain import _chain, _codes, _cube, _floats, _rows, likelihood
from suffice.kernels.compiler import signatures as nb

CLOSE = 1e-9
"""Gains so near to one another, on the scale of 1 plus their size, are equal."""


@kernel(nb.void(_floats, nb.int32[::1], nb.int64, nb.float64, nb.int64))
def insert(best, origin, size, value, source):
    """Put a value and where it is from in its place in a falling list, behind those that are equal."""
    r = size
    while r > 0 and (best[r - 1] == -np.inf or value > best[r - 1] + CLOSE * (1.0 + abs(best[r - 1]))):
        r -= 1
    for k in range(size - 1, r, -1):
        best[k] = best[k - 1]
        origin[k] = origin[k - 1]
    if r < size:
        best[r] = value
        origin[r] = source


@kernel(nb.float64(_codes, _cube, _codes, _rows, _rows, nb.int64, nb.int64, _rows, nb.int32[:, :, ::1]))
def run_best(codes, log_matrices, symbols, logs, dense, begin, end, x, origins):
    """Move x[j, r], the r-th best path to state j less the best of all, from before `begin` to after `end − 1`.

    origins[t − begin, j, r] = i · n + r' says which path it goes on from, −1 where there is none. What was taken off is
    returned, −inf if nothing is left.
    """
    K, n = x.shape
    best, origin, b, y = np.empty(n), np.empty(n, np.int32), np.empty(K), np.empty((K, n))
    taken = 0.0
    for t in range(begin, end):
        c, top = codes[t], -np.inf
        for j in range(K):
            b[j] = 0.0
        likelihood(symbols, logs, dense, t, b)
        for j in range(K):
            for r in range(n):
                best[r], origin[r] = -np.inf, -1
            if b[j] > -np.inf:
                for i in range(K):
                    m = log_matrices[c, i, j]
                    if m > -np.inf:
                        for r in range(n):
                            if x[i, r] == -np.inf:
                                break
                            value = x[i, r] + m
                            if best[n - 1] > -np.inf and value <= best[n - 1]:
                                break
                            insert(best, origin, n, value, i * n + r)
            for r in range(n):
                y[j, r] = best[r] + b[j]
                origins[t - begin, j, r] = origin[r]
            top = max(top, y[j, 0])
        if top == -np.inf:
            return top
        taken += top
        for j in range(K):
            for r in range(n):
                x[j, r] = y[j, r] - top
    return taken


@kernel(nb.void(*_chain, _rows, nb.int32[:, ::1], _cube, nb.int32[:, :, ::1]))
def best_steps(which, starts, codes, log_matrices, symbols, logs, dense, log_p, paths, marks, origins):
    """log_p[q, r] = ln p(path, y) of the r-th best path of each sequence of `which`, paths[r] its states.

    Where there are fewer paths, −inf and −1. `origins` are kept for one stretch at a time, `marks` before each.
    """
    length, K, n = origins.shape
    x, best, origin = np.empty((K, n)), np.empty(n), np.empty(n, np.int32)
    for q in which:
        begin, end = starts[q], starts[q + 1]
        n_stretches, total = (end - begin + length - 1) // length, 0.0
        for k in range(2 * n_stretches - 1):
            on = k < n_stretches  # on the way forward; else back, from the last stretch but one
            stretch = k if on else 2 * n_stretches - 2 - k
            first = begin + stretch * length
            last = min(length, end - first)
            for j in range(K):
                for r in range(n):
                    if k == 0:
                        x[j, r] = 0.0 if j + r == 0 else -np.inf
                    elif not on:
                        x[j, r] = marks[stretch, j, r]
                    marks[stretch, j, r] = x[j, r]
            if total > -np.inf:
                taken = run_best(codes, log_matrices, symbols, logs, dense, first, first + last, x, origins)
                total += taken if on else 0.0
            if k == n_stretches - 1:
                for r in range(n):
                    best[r], origin[r] = -np.inf, -1
                for i in range(K):
                    for r in range(n):
                        if total > -np.inf and x[i, r] > -np.inf:
                            insert(best, origin, n, x[i, r], i * n + r)
                for r in range(n):
                    log_p[q, r] = best[r] + total
            for r in range(n if k >= n_stretches - 1 else 0):
                at = origin[r]
                for t in range(first + last - 1, first - 1, -1):
                    paths[r, t] = at // n if at >= 0 else -1
                    if at >= 0:
                        at = origins[t - first, at // n, at % n]
                origin[r] = at
