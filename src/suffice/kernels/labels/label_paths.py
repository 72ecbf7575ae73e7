"""The best labels of sequences that stand side by side, the longest first: see `suffice.inference.chains.labels.conditional`.

Step t of a part has the places begin + offsets[t] … begin + offsets[t + 1] − 1, those of the sequences that have one. The values

    x_t[j, v] = the largest score of labels of sequence v that end in j at step t, less the best of all some steps before

stand from K · offsets[t] on, a row for each label; K, the number of labels, is made a multiple of 4. On the way back the best
label before is found again along the one path. Values closer than 1e-9 of their size are equal, and the smaller label wins.
"""

from __future__ import annotations

import numpy as np

from suffice.kernels import kernel
from suffice.kernels.compiler import signatures as nb
from suffice.kernels.labels.label_lanes import _codes, _floats, _ints, _rows, choose, most, rows_of

_groups = nb.int32[:, ::1]
PERIOD = 8
"""Steps between two scalings."""


@kernel(nb.void(_groups, nb.int64, nb.int64, _rows, _rows, _codes, nb.float64, _rows, _floats, nb.int64))
def lay_scores(groups, first, n, scores, more, truth, cost, room, out, row):
    """out[j · row + v] = the score of label j at place first + v: of its groups, of its row of `more` if there are any, and
    `cost` if truth has entries and another label there. As many places at a time as `room` has rows, or lines of the cache would
    be written to again and again."""
    side, L = room.shape[0], scores.shape[1]
    for begin in range(0, n, side):
        here = min(side, n - begin)
        for r in range(here):
            p = first + begin + r
            for j in range(L):
                room[r, j] = more[p, j] if more.shape[0] else 0.0
            for o in range(groups.shape[0]):
                g = groups[o, p]
                for j in range(L):
                    room[r, j] += scores[g, j]
            if truth.shape[0]:
                for j in range(L):
                    room[r, j] += 0.0 if truth[p] == j else cost
        for j in range(L):
            for r in range(here):
                out[j * row + begin + r] = room[r, j]


@kernel(nb.void(_groups, nb.int64, _ints, _rows, _rows, _codes, nb.float64, _rows, _rows, _floats, _floats, _floats))
def rise(
    groups, begin, offsets, scores, more, truth, cost,
    M, room, b, x, best
):  # fmt: skip
    """x of a part, and the best score of each of its sequences; M holds the scores of labels in a row, b a strip of lanes."""
    K, L = M.shape[0], scores.shape[1]
    zero = np.int64(0)  # a plain 0 would be another kind, and compile `most` again
    side, before, row_before = b.shape[0] // K, zero, zero
    for t in range(offsets.shape[0] - 1):
        n, at = offsets[t + 1] - offsets[t], K * offsets[t]
        for v in range(0, n, side):
            m = min(side, n - v)
            lay_scores(groups, begin + offsets[t] + v, m, scores, more, truth, cost, room, b, side)
            if t:
                most(M, x, before + v, row_before, b, zero, side, x, at + v, n, m)
            else:
                for j in range(K):
                    for r in range(v, v + m):
                        x[j * n + r] = b[j * side + r - v] if j < L else -np.inf
        after = offsets[t + 2] - offsets[t + 1] if t + 2 < offsets.shape[0] else 0
        for v in range(0 if t % PERIOD == PERIOD - 1 else after, n):
            top = -np.inf
            for j in range(K):
                top = max(top, x[at + j * n + v])
            best[v] += top
            for j in range(K if top > -np.inf and v < after else 0):
                x[at + j * n + v] -= top
        before, row_before = at, n


@kernel(nb.void(nb.int64, _ints, _floats, _floats, _floats, _floats, _ints, _floats, _codes, _codes))
def descend(
    begin, offsets, T, x, best, spare, states, tops, order, paths
):  # fmt: skip
    """paths[order[p]] = the best label at place p of a part, −1 in sequences whose best score is −inf. T is M transposed, flat,
    with zeros as its last row: what is after the end of a sequence."""
    side, n_steps = tops.shape[0], offsets.shape[0] - 1
    K = spare.shape[0] // side
    none, after = T.shape[0] // K - 1, 0
    for t in range(n_steps - 1, -1, -1):
        n, at = offsets[t + 1] - offsets[t], K * offsets[t]
        for v in range(after, n):
            states[v] = none
        for v in range(0, n, side):
            m = min(side, n - v)
            rows_of(T, K, states, v, spare, np.int64(0), m, m)
            choose(K, x, at + v, n, spare, tops, states, v, m)
        for v in range(n):
            paths[order[begin + offsets[t] + v]] = states[v] if best[v] > -np.inf else -1
        after = n
