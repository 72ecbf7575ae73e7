"""Hidden chains with one matrix, many at a time: forward and backward in lanes, scaled. Lanes, groups and tiles are those of
`suffice.kernels.lane_tiles`.

    b[k, j, s, v]           likelihood of state j, at most 1. If there are symbols it is table[symbol, j] instead, b has one step
                            of one tile, and `spare` is b with two axes
    alpha[k, j, s + 1, v]   the filter, scaled to sum 1 before each tile (slot 0) and not within it
    beta[0, j, 0, v]        such that Σⱼ alpha beta is the weight of the lane at each step

States that only fill up to a multiple of 4 have probability 0. Rows of the matrix A sum to 1 at most. So beta does not grow
within a tile, and what alpha loses by underflow, times beta, is nothing unless beta is huge: such lanes are *lost* and are to be
done in logarithms instead (`suffice.kernels.chain`); sums of a group with a lost lane are void.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from suffice.kernels import kernel
from suffice.kernels.lane_tiles import (
    _codes,
    _floats,
    _group,
    _rows,
    _tiles,
    active,
    give,
    look,
    multiply,
    outer,
    rows_of,
    tally,
    times,
)

HUGE = 1e250
"""No beta of a lane that is not lost is larger, and no sum of a tile smaller than its inverse."""

_lanes = (_rows, _rows, _rows, _floats)
_found = (_floats, nb.boolean[::1], _rows, _rows)
_sums = (_rows, _rows, _rows, _rows)
_room = (nb.int64[:, ::1], _tiles, _tiles, _rows, _rows, _rows, _tiles, _tiles, _tiles, nb.float64[:, :, ::1], _rows)


@kernel(nb.void(nb.boolean, *_group, _codes, _rows, _floats, _rows, *_lanes, *_found, *_sums, *_room), reorder=True)
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
    b: Any,
    alpha: Any,
    scale: Any,
    spare: Any,
    own: Any,
    beta: Any,
    u: Any,
    gamma: Any,
    flat: Any,
    flat_u: Any,
) -> None:
    """Forward over n lanes from lane g on, or `back`, with A transposed. One kernel, for both multiply by a matrix at each step,
    and that is what takes long to compile.

    Forward: alpha and the scale of each tile; log_p += ln p(y); after[v] is the filter at a lane's end. A lane begins with the
    filter before[v], or with a first step whose distribution is enter[v] (and `before` is 0).

    Back: weighted sums pairs[i, j] of p(s_{t−1} = i, s_t = j | y) / A[i, j], and of first steps first[0, j] of p(s = j | y);
    counts[e, j] of p(s_t = j | y) by symbol; or else posterior[j, t] = p(s_t = j | y), not weighted. If there are counts, gamma
    has one step, and `spare` is gamma with two axes as well. Weights are positive. final[v] is proportional to p(what comes
    after the lane | its last state), reach[v] to p(the lane and what comes after | the state before). `flat` and `flat_u` are
    alpha and u with steps and lanes as one axis; own[:, v] is room for a factor and the largest beta.
    """
    K, W, L, n_tiles = alpha.shape[1], seen.shape[0], alpha.shape[3], (length[g] + seen.shape[0] - 1) // seen.shape[0]
    known, zero = symbols.shape[0] == 0, np.int64(0)  # a number that is written out would be another type
    for v in range(n):
        own[1, v] = 0.0
    for i in range(n_tiles):
        k = n_tiles - 1 - i if back else i
        here, steps = active(length, g, n, k * W), min(W, length[g] - k * W)
        if not known:
            look(g, here, begin, length, symbols, k, seen)
        for v in range(here):
            own[0, v], last = scale[k, v], length[g + v] - k * W
            if back and last <= W:
                total = 0.0
                for j in range(K):
                    beta[0, j, 0, v] = final[g + v, j]
                    total += alpha[k, j, last, v] * final[g + v, j]
                own[0, v] = weights[g + v] / total if total * HUGE > 1.0 else np.inf
        for j in range(K):
            if back:
                for v in range(here):
                    beta[0, j, 0, v] *= own[0, v]
                    own[1, v] = max(own[1, v], beta[0, j, 0, v])
            elif k:
                for v in range(here):
                    alpha[k, j, 0, v] = alpha[k - 1, j, W, v] * scale[k - 1, v]
            else:
                for v in range(here):
                    alpha[k, j, 0, v] = before[g + v, j]
        for r in range(steps):
            s = steps - 1 - r if back else r
            m = active(length, g, here, k * W + s)
            if back:
                multiply(gamma, zero, s if posterior.shape[1] else zero, alpha, k, s + 1, beta, zero, zero, m)
                if counts.shape[0]:
                    tally(counts, seen, s, m, spare)
            if not known:
                rows_of(table, seen, s, m, spare)
            if back:
                multiply(u, zero, s, b, k if known else zero, s if known else zero, beta, zero, zero, m)
                for v in range(m, L):
                    for j in range(K):
                        u[0, j, s, v] = 0.0
            times(A, u if back else alpha, 0 if back else k, s, beta, m)
            if not back:
                for v in range(m if k + s == 0 else 0):
                    for j in range(K):
                        beta[0, j, 0, v] += enter[g + v, j]
                multiply(alpha, k, s + 1, b, k if known else zero, s if known else zero, beta, zero, zero, m)
        if back:
            outer(flat, k, flat_u, steps * L, pairs)
            if posterior.shape[1]:
                give(g, here, begin, length, weights, k, gamma, posterior)
            continue
        for v in range(here):
            own[0, v] = 0.0
        for j in range(K):
            for v in range(here):
                own[0, v] += alpha[k, j, W, v]
        for v in range(here):
            last = min(W, length[g + v] - k * W)
            for s in range(last if tops.shape[0] and not known else 0):
                log_p[g + v] += tops[seen[s, v]]
            total = own[0, v] if last == W else 0.0
            for j in range(K if last < W else 0):
                total += alpha[k, j, last, v]
            lost[g + v] |= not total * HUGE > 1.0
            scale[k, v] = 0.0 if lost[g + v] else 1.0 / total
            log_p[g + v] += 0.0 if lost[g + v] else np.log(total)
            for j in range(K if length[g + v] - k * W <= W else 0):
                after[g + v, j] = alpha[k, j, last, v] * scale[k, v]
    for v in range(n if back else 0):
        lost[g + v] |= not own[1, v] < HUGE * weights[g + v]
        for j in range(K):
            first[0, j] += enter[g + v, j] * u[0, j, 0, v]
            reach[g + v, j] = beta[0, j, 0, v]
