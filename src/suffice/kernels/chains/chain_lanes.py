"""Hidden chains with one matrix, many at a time: forward and backward in lanes, scaled. Lanes, groups, rows, places and factors
are those of `suffice.kernels.chains.lane_rows`. Steps are taken in *tiles* of W.

    alpha[k (W + 1) + s + 1]   the filter after step s of tile k, scaled to sum 1 before each tile (slot 0) and not within it
    beta                       such that Σⱼ alpha beta is the weight of the lane at each step
    u[s]                       the factor of step s times beta: so it goes back as alpha goes on

Rows of the matrix sum to 1 at most, and factors are 1 at most. So beta does not grow within a tile, and what alpha loses by
underflow, times beta, is nothing unless beta is huge: such lanes are *lost* and are to be done in logarithms instead
(`suffice.kernels.chains.chain`); sums of a group with a lost lane are void.
"""

from __future__ import annotations

import numpy as np

from suffice.kernels import kernel
from suffice.kernels.chains.lane_rows import (
    _codes,
    _floats,
    _ints,
    _rows,
    active,
    advance,
    divide,
    multiply,
    outer,
    place,
    scale_rows,
    sum_row,
    tally,
)
from suffice.kernels.compiler import signatures as nb

HUGE = 1e250
"""No beta of a lane that is not lost is larger, and no sum of a tile smaller than its inverse."""

SMALL = 1e-50
"""Products of tiles' sums are taken the logarithm of when they get smaller."""

_lost = nb.boolean[::1]
_run = (nb.int64, nb.int64, _ints, _ints, _floats, _floats, nb.int64, nb.int64, nb.int64)


@kernel(nb.void(*_run, _rows, _rows, _floats, _lost, _rows, _floats, _floats))
def forward(g, n, length, places, f, M, K, W, L, before, enter, log_p, lost, after, alpha, scale):
    """alpha and the scale of each tile (that before the first is 1); log_p += ln p(y); after[v] is the filter at a lane's end.

    A lane begins with the filter before[v], or with a first step whose distribution is enter[v] (and `before` is 0).
    """
    P, here, own = before.shape[1], n, np.empty(n)  # zeros and ones take longer to compile
    for v in range(n):
        scale[v] = own[v] = 1.0
        for j in range(P):
            alpha[v * P + j] = before[g + v, j]
    for k in range((length[g] + W - 1) // W):
        at, here, steps = k * (W + 1) * L * P, active(length, g, here, k * W), min(W, length[g] - k * W)
        if k:
            scale_rows(scale, k * L, alpha, at - L * P, alpha, at, P, here)
        s, until = 0, steps if k else 1
        while s < steps:
            x_at = at + s * L * P
            advance(M, K, alpha, x_at, alpha, x_at + L * P, L * P, f, places, (k * W + s) * L, L, until - s, here)
            for v in range(0 if k + s else here):
                for j in range(P):
                    alpha[(L + v) * P + j] += f[places[v] + j] * enter[g + v, j]
            s, until = until, steps
        for v in range(here):
            last = min(W, length[g + v] - k * W)
            total = sum_row(alpha, at + (last * L + v) * P, P)
            good, ends = total * HUGE > 1.0, length[g + v] <= (k + 1) * W
            lost[g + v] |= not good
            own[v] *= total if good else 1.0
            scale[(k + 1) * L + v] = 1.0 / total if good else 0.0
            if ends or own[v] < SMALL:
                log_p[g + v] += np.log(own[v])
                own[v] = 1.0
            for j in range(P if ends else 0):
                after[g + v, j] = alpha[at + (last * L + v) * P + j] * scale[(k + 1) * L + v]


@kernel(
    nb.void(*_run, _rows, _rows, _floats, _lost, _rows, _floats, _floats, _floats, _floats, _floats, _floats, _floats, nb.boolean)
)
def backward(
    g, n, length, places, f, M, K, W, L, final, enter, weights, lost, reach, pairs, first, counts, alpha, scale, u, beta, share
):
    """Weighted sums pairs[i, j] of p(s_{t−1} = i, s_t = j | y) over the matrix, whose transpose is M, and of first steps first[j]
    of p(s = j | y); if there is room for them, `counts` by place of p(s_t = j | y) times its factor; and if their share is asked
    for, factors, each of which must have a place of its own, become p(s_t = j | y) times the weight.

    Weights are positive. final[v] is proportional to p(what comes after the lane | its last state), reach[v] to p(the lane and
    what comes after | the state before).
    """
    P, own = final.shape[1], np.empty(n)
    for v in range(n):
        own[v] = 0.0
    row, ones, zero = L * P, places.shape[0] - L, np.int64(0)  # written out, it would be another type
    for j in range(row):
        beta[j] = 0.0
    for k in range((length[g] + W - 1) // W - 1, -1, -1):
        at, here, s = k * (W + 1) * row, active(length, g, n, k * W), min(W, length[g] - k * W) - 1
        steps, whole = s + 1, active(length, g, here, k * W + W)
        for v in range(here):
            if v >= whole:
                last, total = length[g + v] - k * W, 0.0
                for j in range(P):
                    total += alpha[at + (last * L + v) * P + j] * final[g + v, j]
                for j in range(P):
                    beta[v * P + j] = final[g + v, j] * (weights[g + v] / total if total * HUGE > 1.0 else np.inf)
            own[v] = max(own[v], sum_row(beta, v * P, P))
        multiply(f, places, (k * W + s) * L, beta, u, s * row, P, here)
        while s > 0:
            by = s if whole == here else 1
            advance(M, K, u, s * row, u, (s - 1) * row, -row, f, places, (k * W + s - 1) * L, -L, by, here)
            s -= by
            for v in range(whole, here):
                for j in range(P if length[g + v] - k * W == s + 1 else 0):
                    u[s * row + v * P + j] = f[places[(k * W + s) * L + v] + j] * beta[v * P + j]
        outer(alpha, at, u, P, L, steps, here, pairs)
        if counts.shape[0]:
            tally(counts, places, k * W * L, alpha, at + row, u, P, L, steps, here)
        if share:
            divide(f, places, k * W * L, alpha, at + row, u, P, L, steps, here)
        advance(M, K, u, zero, beta, zero, zero, f, places, ones, zero, zero + 1, here)
        scale_rows(scale, k * L, beta, zero, beta, zero, P, here)
    for v in range(n):
        lost[g + v] |= not own[v] < HUGE * weights[g + v]
        for j in range(P):
            first[j] += enter[g + v, j] * u[v * P + j]
            reach[g + v, j] = beta[v * P + j]


@kernel(
    nb.void(nb.int64, nb.int64, _ints, _ints, _codes, _floats, _ints, _floats, _floats, _floats, nb.int64, nb.int64, nb.int64,
            _rows, _rows, _rows, _floats, _floats, _lost, _rows, _rows, _floats, _floats, _floats, _floats, _floats, _floats,
            _floats, nb.boolean)
)  # fmt: skip
def sweep(
    g, until, begin, length, symbols, tops, places, f, onward, back, K, W, L, before, enter, final, weights, log_p, lost, after,
    reach, pairs, first, counts, alpha, scale, u, beta, share
):  # fmt: skip
    """`place`, `forward` and, if there is room for pairs, `backward` of lanes g … until − 1, group by group: between kernels a
    thread waits for the others."""
    P = before.shape[1]
    while g < until:
        n = min(L, until - g)
        place(g, n, begin, length, symbols, P, f.shape[0] - 2 * P, L, tops, log_p, places)
        forward(g, n, length, places, f, onward, K, W, L, before, enter, log_p, lost, after, alpha, scale)
        if pairs.shape[0]:
            backward(
                g, n, length, places, f, back, K, W, L, final, enter, weights, lost, reach, pairs, first, counts, alpha, scale,
                u, beta, share,
            )  # fmt: skip
        g += n
