"""Hidden chains with one matrix, many at a time: forward and backward in lanes, scaled. Lanes, groups and tiles are those of
`suffice.kernels.lane_tiles`.

    b[k, j, s, v]           likelihood of state j, at most 1; if there are symbols, b is one tile, filled from the table
    alpha[k, j, s + 1, v]   the filter, scaled to sum 1 before each tile (slot 0) and not within it
    beta[j, v]              such that Σⱼ alpha beta is the weight of the lane at each step
    u[j, s, v]              b times beta

States that only fill up to a multiple of 4 have probability 0. Rows of the matrix A sum to 1 at most. So beta does not grow
within a tile, and what alpha loses by underflow, times beta, is nothing unless beta is huge: such lanes are *lost* and are to be
done in logarithms instead (`suffice.kernels.chain`); sums of a group with a lost lane are void.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.kernels import kernel
from suffice.kernels import signatures as nb
from suffice.kernels.lane_tiles import (
    _codes,
    _floats,
    _group,
    _ints,
    _rows,
    _tiles,
    active,
    clear,
    give,
    look,
    multiply,
    outer,
    rows_of,
    scaled,
    tally,
    times,
    total_of,
)

HUGE = 1e250
"""No beta of a lane that is not lost is larger, and no sum of a tile smaller than its inverse."""

SMALL = 1e-50
"""Products of tiles' sums are taken the logarithm of when they get smaller."""

_lanes = (_rows, _rows, _rows, _floats)
_found = (_floats, nb.boolean[::1], _rows, _rows)
_sums = (_rows, _rows, _floats, _rows)
_room = (_ints, _tiles, _floats, _floats, _floats, _floats, _floats, _rows, _floats, _floats, _tiles, _floats)


@kernel(nb.void(nb.boolean, *_group, _codes, _floats, _floats, _rows, *_lanes, *_found, *_sums, *_room), reorder=True)
def sweep(
    back: bool,
    g: int,
    n: int,
    begin: Any,
    length: Any,
    symbols: Any,
    table: Any,
    tops: Any,
    A: Any,
    before: Any,
    enter: Any,
    final: Any,
    weights: Any,
    log_p: Any,
    lost: Any,
    after: Any,
    reach: Any,
    pairs: Any,
    first: Any,
    counts: Any,
    posterior: Any,
    seen: Any,
    alpha: Any,
    x: Any,
    b: Any,
    scale: Any,
    own: Any,
    total: Any,
    beta: Any,
    y: Any,
    u: Any,
    gamma: Any,
    z: Any,
) -> None:
    """Forward over n lanes from lane g on, or `back`, with A transposed. One kernel, for both multiply by a matrix at each step,
    and that is what takes long to compile.

    Forward: alpha and the scale of each tile; log_p += ln p(y); after[v] is the filter at a lane's end. A lane begins with the
    filter before[v], or with a first step whose distribution is enter[v] (and `before` is 0).

    Back: weighted sums pairs[i, j] of p(s_{t−1} = i, s_t = j | y) / A[i, j], and of first steps first[0, j] of p(s = j | y);
    counts of p(s_t = j | y) by symbol and state; or else gamma, p(s_t = j | y) times the weight, of one tile, or of all if it
    has so many, and posterior[j, t] = p(s_t = j | y) where there is room for it. Weights are positive. final[v] is proportional
    to p(what comes after the lane | its last state), reach[v] to p(the lane and what comes after | the state before). x, y and
    z are alpha, beta and gamma as flat arrays; b, u, scale (of a tile before the first, 1, and of each tile) and the table are
    flat; own[v] is the product of what the filter summed to, or the largest Σ beta.
    """
    K, W, L = alpha.shape[1], alpha.shape[2] - 1, alpha.shape[3]
    n_tiles, row, known = (length[g] + W - 1) // W, (W + 1) * L, symbols.shape[0] == 0
    source, factor, target = u if back else x, scale if back else b, y if back else x
    f_row, to_row, zero = 0 if back else row, L if back else row, np.int64(0)  # written out, it would be another type
    for v in range(n):
        own[v] = 0.0 if back else 1.0
        scale[v] = 1.0
    for i in range(n_tiles):
        k = n_tiles - 1 - i if back else i
        here, whole, steps = active(length, g, n, k * W), active(length, g, n, k * W + W), min(W, length[g] - k * W)
        at, b_at = k * K * row, k * K * row if known else 0
        source_at = 0 if back else at
        if not known:
            look(g, here, begin, length, symbols, k, seen, L)
            rows_of(table, K, seen, zero, b, zero, row, steps * L)
        if back:
            for v in range(whole, here):
                last, sum_v = length[g + v] - k * W, 0.0
                for j in range(K):
                    sum_v += alpha[k, j, last, v] * final[g + v, j]
                for j in range(K):
                    beta[j, v] = final[g + v, j] * (weights[g + v] / sum_v if sum_v * HUGE > 1.0 else np.inf)
            total_of(K, y, zero, L, total, here)
            for v in range(here):
                own[v] = max(own[v], total[v])
        else:
            if k:
                scaled(K, x, at - K * row + W * L, row, scale, k * L, x, at, row, here)
            for v in range(0 if k else here):
                for j in range(K):
                    alpha[0, j, 0, v] = before[g + v, j]
            clear(K, x, at, row, here, L)
        for r in range(steps):
            s = steps - 1 - r if back else r
            m = active(length, g, here, k * W + s)
            if back:
                z_at = (at if gamma.shape[0] > 1 else 0) + (0 if counts.shape[0] else s * L)
                multiply(K, y, zero, L, x, at + (s + 1) * L, row, b, b_at + s * L, row, z, z_at, row, u, s * L, row, m)
                if counts.shape[0]:
                    tally(counts, K, seen, s * L, z, z_at, row, m)
            clear(K, source, source_at + (s if back else s + 1) * L, row, m, L)
            f_at = (0 if s else k * L) if back else b_at + s * L  # beta before a tile is scaled as the tile before it
            to_at = 0 if back else at + (s + 1) * L
            times(A, source, source_at + s * L, row, factor, f_at, f_row, target, to_at, to_row, m)
            for v in range(0 if back or k + s else m):
                for j in range(K):
                    alpha[0, j, 1, v] += b[b_at + j * row + v] * enter[g + v, j]
        if back:
            outer(x, at, row, u, steps * L, pairs)
            if posterior.shape[1]:
                give(g, here, begin, length, weights, k, gamma, posterior)
            continue
        for v in range(whole, here):  # the filter at a lane's end is that at its tile's end
            last = length[g + v] - k * W
            for j in range(K if last < W else 0):
                alpha[k, j, W, v] = alpha[k, j, last, v]
        total_of(K, x, at + W * L, row, total, here)
        for v in range(here):
            lost[g + v] |= not total[v] * HUGE > 1.0
            own[v] *= total[v] if total[v] * HUGE > 1.0 else 1.0
            scale[(k + 1) * L + v] = 1.0 / total[v] if total[v] * HUGE > 1.0 else 0.0
        for v in range(here):
            for s in range(min(W, length[g + v] - k * W) if tops.shape[0] and not known else 0):
                log_p[g + v] += tops[seen[s * L + v]]
            if v >= whole or own[v] < SMALL:
                log_p[g + v] += np.log(own[v])
                own[v] = 1.0
        for v in range(whole, here):
            for j in range(K):
                after[g + v, j] = alpha[k, j, W, v] * scale[(k + 1) * L + v]
    for v in range(n if back else 0):
        lost[g + v] |= not own[v] < HUGE * weights[g + v]
        for j in range(K):
            first[0, j] += enter[g + v, j] * u[j * row + v]
            reach[g + v, j] = beta[j, v]
