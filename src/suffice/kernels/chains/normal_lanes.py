"""Likelihoods of the steps of lanes, given or of numbers that are normal given a hidden state, and the moments of such numbers by
what is expected of states. Lanes, groups and rows are those of `suffice.kernels.chains.chain_lanes`.

The steps of a group are taken lane by lane in chunks, which hold several short lanes, with steps innermost: x[c, p].
"""

import numpy as np

from suffice.kernels import kernel, nb
from suffice.kernels.chains.chain_lanes import _codes, _floats, _group, _ints, _rows
from suffice.kernels.chains.state_normals import CHUNK, _cube, _flags, score_normals, sum_normals

_forms = (_rows, _cube, _flags, _rows, _floats)


@kernel(nb.void(_rows, nb.int64, _floats), fuse=True)
def exponentials(b, K, top):
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


@kernel(nb.void(_ints, nb.int64, _ints, _ints, nb.int64, nb.int64, nb.int64, _rows, _rows, _ints, _ints, _ints))
def lay(at, g, begin, length, L, P, m, x, out, steps, rows, owners):
    """out[c, p] = x[c, steps[p]] of the next m steps of a group, from step at[1] of lane at[0] on, with where their rows are and
    whose they are; `at` moves on."""
    p = 0
    while p < m:
        v, t = at
        own, first = min(m - p, length[g + v] - t), begin[g + v] + t
        for c in range(x.shape[0]):
            for i in range(own):
                out[c, p + i] = x[c, first + i]
        for i in range(own):
            steps[p + i], rows[p + i], owners[p + i] = first + i, ((t + i) * L + v) * P, g + v
        p += own
        ends = t + own == length[g + v]
        at[0], at[1] = v + 1 if ends else v, 0 if ends else t + own


@kernel(nb.void(*_group, _rows, *_forms, _codes, _rows, _floats, nb.boolean, nb.int64, nb.int64, _floats, _floats))
def fill(g, n, begin, length, x, centre, weight, used, base, constant, symbols, table, tops, logs, L, K, log_p, b):
    """The factors of a group's steps: of the numbers x (for the forms see `score_normals`), or without forms exp(x), over their
    largest, whose logarithms go to log_p; times those of the symbols, if there are any, whose `tops` do. Or the `logs` of all
    of this, the table's, too, and nothing to log_p."""
    P = table.shape[1]
    at, total, zero = np.zeros(2, np.int64), 0, np.int64(0)
    for v in range(g, g + n):
        total += length[v]
    numbers, own, top = np.empty((x.shape[0], CHUNK)), np.empty((base.shape[0], CHUNK)), np.zeros(CHUNK)
    steps, rows, owners = np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64)
    scored, shown = numbers if base.shape[0] == 0 else own, symbols.shape[0] > 0
    for done in range(0, total, CHUNK):
        m = min(CHUNK, total - done)
        lay(at, g, begin, length, L, P, m, x, numbers, steps, rows, owners)
        if base.shape[0]:
            score_normals(numbers, m, centre, weight, used, base, constant, zero, np.bool_(True), own)
        dense = scored.shape[0] > 0
        if dense and not logs:
            exponentials(scored, K, top[:m])
        for p in range(m):
            e, row = symbols[steps[p]] if shown else 0, rows[p]
            log_p[owners[p]] += top[p] + (tops[e] if shown and tops.shape[0] else 0.0)
            for j in range(K):
                if logs:
                    b[row + j] = (scored[j, p] if dense else 0.0) + (table[e, j] if shown else 0.0)
                else:
                    b[row + j] = (scored[j, p] if dense else 1.0) * (table[e, j] if shown else 1.0)
            for j in range(row + K, row + P):
                b[j] = 0.0


@kernel(nb.void(*_group, _rows, nb.int64, nb.int64, _floats, _flags, _floats, _rows, _cube))
def sum_lanes(g, n, begin, length, x, L, P, share, used, total, mean, scatter):
    """Add the moments of the numbers of a group's steps, weighted by the rows of `share`: see `sum_normals`."""
    at, every, none = np.zeros(2, np.int64), 0, np.zeros(0)
    for v in range(g, g + n):
        every += length[v]
    numbers, own = np.empty((x.shape[0], CHUNK)), np.empty((total.shape[0], CHUNK))
    steps, rows, owners = np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64)
    for done in range(0, every, CHUNK):
        m = min(CHUNK, every - done)
        lay(at, g, begin, length, L, P, m, x, numbers, steps, rows, owners)
        for p in range(m):
            for j in range(total.shape[0]):
                own[j, p] = share[rows[p] + j]
        sum_normals(numbers, m, own, np.int64(0), none, used, total, mean, scatter)


@kernel(nb.void(*_group, _floats, nb.int64, nb.int64, _floats, _rows))
def give(g, n, begin, length, weights, L, P, share, posterior):
    """Put the rows of a group's steps, without weights, where the steps are."""
    for v in range(n):
        weight = 1.0 / weights[g + v]
        for t in range(length[g + v]):
            for j in range(posterior.shape[0]):
                posterior[j, begin[g + v] + t] = share[(t * L + v) * P + j] * weight
