"""The n most probable paths of hidden chains (list Viterbi), for any matrices: see `kernels.chains.chain` for the arrays.
And the best path of chains with one matrix, many at a time: `kernels.chains.chain_lanes` says what lanes, groups, rows and places
are. All is in logarithms.

    x[k (W + 1) + s + 1] = the largest ln p(path, y) of paths that end in each state, less the best of all before its tile k

On the way back the best state before is found again along the one path, which takes K comparisons, not K². Values closer than
1e-9 of their size are equal, and then the smaller state wins, and among its paths the better one.
"""

import numpy as np

from suffice.numerics.kernels import kernel, nb
from suffice.numerics.kernels.chains.chain import _chain, _codes, _cube, _floats, _rows, likelihood
from suffice.numerics.kernels.chains.chain_lanes import U, _at, _group, _ints, _where, active
from suffice.numerics.kernels.chains.wide import add_product, eight, largest_sum, load, lowest, reach, store, top

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


@kernel(nb.void(_floats, nb.int64, *_at, nb.int64, _floats, *_where, nb.int64), apart=True)
def most(M, K, x, x_at, y_at, f, places, at, lanes):
    """y_j = f_j + maxᵢ (M[i, j] + x_i), where y is x further on, four lanes at a time; the last four may be some of those before
    again."""
    P, one = M.shape[0] // K, eight(1.0)
    for j in range(0, P, 8):
        for q in range(0, lanes if lanes > 3 else 0, 4):
            v = min(q, lanes - 4)
            x0, m, r = U(x_at + v * P), U(j * K), U(at + v)
            x1, x2, x3 = x0 + U(P), x0 + U(2 * P), x0 + U(3 * P)
            a = b = c = d = eight(-np.inf)
            for i in range(U(K)):
                z = load(M, m)
                a, b = largest_sum(a, eight(x[x0 + i]), z), largest_sum(b, eight(x[x1 + i]), z)
                c, d = largest_sum(c, eight(x[x2 + i]), z), largest_sum(d, eight(x[x3 + i]), z)
                m += U(8)
            y0, f0 = U(y_at + v * P + j), U(j)
            store(x, y0, add_product(a, one, load(f, U(places[r]) + f0)))
            store(x, y0 + U(P), add_product(b, one, load(f, U(places[r + U(1)]) + f0)))
            store(x, y0 + U(2 * P), add_product(c, one, load(f, U(places[r + U(2)]) + f0)))
            store(x, y0 + U(3 * P), add_product(d, one, load(f, U(places[r + U(3)]) + f0)))
        for v in range(0 if lanes > 3 else lanes):
            x0, m, a = U(x_at + v * P), U(j * K), eight(-np.inf)
            for i in range(U(K)):
                a = largest_sum(a, eight(x[x0 + i]), load(M, m))
                m += U(8)
            store(x, U(y_at + v * P + j), add_product(a, one, load(f, U(places[U(at + v)] + j))))


@kernel(nb.void(nb.int64, nb.int64, _ints, _ints, _floats, _floats, nb.int64, nb.int64, nb.int64, _floats, _floats, _floats))
def rise(g, n, length, places, f, M, K, W, L, enter, log_p, x):
    """x of n lanes from lane g on, and log_p, the largest ln p(path, y): M, `enter` of the first step, and factors f."""
    P = enter.shape[0]
    row = L * P
    for k in range((length[g] + W - 1) // W):
        n, at = active(length, g, n, k * W), k * (W + 1) * row
        for s in range(min(W, length[g] - k * W)):
            if k + s:
                most(M, K, x, at + s * row, at + (s + 1) * row, f, places, (k * W + s) * L, n)
            else:
                for v in range(n):
                    for j in range(P):
                        x[row + v * P + j] = enter[j] + f[places[v] + j]
        for v in range(n):
            last, best = min(W, length[g + v] - k * W), eight(-np.inf)
            for j in range(at + last * row + v * P, at + last * row + v * P + P, 8):
                best = largest_sum(best, load(x, j), eight(0.0))
            own = top(best)
            log_p[g + v] += own
            for j in range(P if length[g + v] - k * W > W else 0):
                x[at + (W + 1) * row + v * P + j] = x[at + W * row + v * P + j] - own if own > -np.inf else own


@kernel(nb.void(*_group, _floats, nb.int64, nb.int64, nb.int64, _floats, _floats, _ints, _codes))
def descend(g, n, begin, length, T, P, W, L, log_p, x, states, paths):
    """The best paths of n lanes from lane g on, by x; −1 for a lane whose log_p is −inf. T is the logarithm M transposed, flat,
    with zeros as its last row: what is after a lane's end."""
    for v in range(n):
        states[v] = T.shape[0] - P
    one = eight(1.0)
    for t in range(length[g] - 1, -1, -1):  # lanes innermost, for each choice waits for the one after it
        at = ((t // W) * (W + 1) + t % W + 1) * L
        for v in range(active(length, g, n, t)):
            x0, t0, best = U((at + v) * P), U(states[v]), eight(-1e300)
            for u in range(U(0), U(P), U(8)):
                best = largest_sum(best, load(x, x0 + u), load(T, t0 + u))
            most = top(best)
            low, state, found_in = most - 2.0 * CLOSE * (1.0 + abs(most)), 0, 0
            for j in range(P - 8, -1, -8):
                found = reach(add_product(load(x, x0 + U(j)), one, load(T, t0 + U(j))), low)
                if found:
                    state = j + lowest(found)
                    found_in += 1 if found & (found - 1) == 0 else 2
            if found_in > 1:  # some are nearly equal
                most, state = -1e300, 0
                for j in range(P):
                    value = x[x0 + U(j)] + T[t0 + U(j)]
                    if value > most + CLOSE * (1.0 + abs(most)):
                        most, state = value, j
            states[v] = state * P
            paths[begin[g + v] + t] = state if log_p[g + v] > -np.inf else -1
