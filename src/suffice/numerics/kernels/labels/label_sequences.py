"""Labellings of sequences: drawn, the best, and whether there is one. See `kernels.labels.label_chains` for what states are.

And the best labels of sequences that stand side by side, the longest first: see `inference.chains.conditional`. Step t of
a part has the places begin + offsets[t] … begin + offsets[t + 1] − 1, those of the sequences that have one. The values

    x_t[j, v] = the largest score of labels of sequence v that end in j at step t, less the best of all some steps before

stand from K · offsets[t] on, a row for each label; K, the number of labels, is made a multiple of 4. On the way back the best
label before is found again along the one path. Values closer than 1e-9 of their size are equal, and the smaller label wins.

Rows of numbers have a lane of each sequence: x, x_at, x_row stand for the rows x_j = x[x_at + j · x_row + v], v < n. Indices are
unsigned, for of signed ones it is looked at whether they count from the end, which takes as long as the work of a row.
"""

import numpy as np

from suffice.numerics.kernels import kernel, nb
from suffice.numerics.kernels.chains.best_path import CLOSE
from suffice.numerics.kernels.labels.label_chains import PAIRS, ROOM, filter_logs, histories, weigh_pairs

_ints, _codes, _floats, _rows, _cubes = nb.int64[::1], nb.int32[::1], nb.float64[::1], nb.float64[:, ::1], nb.float64[:, :, ::1]
_tables, _origins = nb.float64[:, :, :, ::1], nb.int32[:, :, :, ::1]


@kernel(nb.void(nb.int64, nb.int64, nb.int64, _cubes, _rows, _cubes, _floats))
def weigh_labels(t, one, two, log_m, E, a, out):
    """out[i] = p(label i of step t, labels `one` and `two` of the next steps), up to a factor; −1 where there is no such step."""
    H, L = a.shape[1], a.shape[2]
    most = -np.inf
    for i in range(L):
        high = -np.inf
        for h in range(H):
            high = max(high, a[t, h, i] + (log_m[h, i, one] if one >= 0 else 0.0))
        out[i] = -np.inf
        if high == -np.inf:
            continue
        total = 0.0
        for h in range(H):
            total += np.exp(a[t, h, i] + (log_m[h, i, one] if one >= 0 else 0.0) - high)
        out[i] = high + np.log(total)
        if one >= 0:
            out[i] += E[i, one]
        if H > 1 and two >= 0:
            out[i] += log_m[i, one, two]
        most = max(most, out[i])
    for i in range(L):
        out[i] = np.exp(out[i] - most)


@kernel(nb.void(_ints, _codes, _rows, _rows, _cubes, PAIRS, ROOM, _floats, _floats, _codes))
def draw_sequences(starts, places, s, T, log_m, pairs, room, uniforms, log_z, labels):
    """labels[p] of each place drawn from p(labels), by a uniform number for each; none where log Z is −inf."""
    a, _z, _b, _c, E, spare = room
    share = spare[0]
    for q in range(starts.shape[0] - 1):
        own = places[starts[q] : starts[q + 1]]
        n = own.shape[0]
        log_z[q] = filter_logs(own, s, T, log_m, pairs, room)
        if log_z[q] == -np.inf:
            continue
        for t in range(n - 1, -1, -1):
            one = labels[own[t + 1]] if t + 1 < n else -1
            two = labels[own[t + 2]] if t + 2 < n else -1
            if one >= 0:
                weigh_pairs(np.int64(own[t + 1]), pairs, T, np.bool_(True), E)
            weigh_labels(t, one, two, log_m, E, a, share)
            wanted, total, k = 0.0, 0.0, -1
            for i in range(share.shape[0]):
                wanted += share[i] * uniforms[own[t]]
            for i in range(share.shape[0]):
                if share[i] > 0.0 and (k < 0 or total <= wanted):
                    k = i
                total += share[i]
            labels[own[t]] = k


@kernel(nb.void(nb.float64, nb.int64, _floats, _codes))
def place_in(value, origin, best, origins):
    """Put a value among the best ones, which fall; of equals, the first stays before."""
    r = best.shape[0] - 1
    if not value > best[r]:
        return
    while r > 0 and value > best[r - 1]:
        best[r] = best[r - 1]
        origins[r] = origins[r - 1]
        r -= 1
    best[r] = value
    origins[r] = origin


@kernel(nb.void(_ints, _codes, _rows, _rows, _cubes, PAIRS, _tables, _origins, _rows, _rows, nb.int32[:, ::1]))
def best_sequences(starts, places, s, T, log_m, pairs, x, origins, E, scores, labels):
    """labels[r, p]: those of the (r + 1)-th best labelling, −1 if there is none, whose score is scores[q, r].

    x and origins have room for a sequence: x[t, h, j, r] is the score up to the state (h, j), origins[t, h, j, r] = i · R + r',
    where i is the history of the state before if there are several, else its label, and r' its rank.
    """
    H, L, R = x.shape[1], x.shape[2], x.shape[3]
    last, ends = np.empty(R), np.empty(R, np.int32)
    for q in range(starts.shape[0] - 1):
        own = places[starts[q] : starts[q + 1]]
        n = own.shape[0]
        for t in range(n):
            for h in range(H):
                for k in range(L):
                    for r in range(R):
                        x[t, h, k, r] = -np.inf
        for k in range(L):
            x[0, H - 1, k, 0] = s[own[0], k]
        for t in range(1, n):
            weigh_pairs(np.int64(own[t]), pairs, T, np.bool_(True), E)
            low, high = histories(t, H)
            for i in range(L):
                row = 0 if H == 1 else i
                for h in range(low, high):
                    for r in range(R):
                        value = x[t - 1, h, i, r]
                        if value == -np.inf:
                            break
                        origin = (i if H == 1 else h) * R + r
                        for k in range(L):
                            gain = value + log_m[h, i, k] + E[i, k] + s[own[t], k]
                            if gain > x[t, row, k, R - 1]:  # mostly it is not, and a call costs more
                                place_in(gain, origin, x[t, row, k], origins[t, row, k])
        for r in range(R):
            last[r] = -np.inf
        for j in range(L):
            for h in range(H):
                for r in range(R):
                    place_in(x[n - 1, h, j, r], (j * H + h) * R + r, last, ends)
        for rank in range(R):
            scores[q, rank] = last[rank]
            if last[rank] == -np.inf:
                for t in range(n):
                    labels[rank, own[t]] = -1
                continue
            state, r = ends[rank] // R, ends[rank] % R
            h, j = state % H, state // H
            for t in range(n - 1, -1, -1):
                labels[rank, own[t]] = j
                if t:
                    origin = origins[t, h, j, r]
                    before, r = origin // R, origin % R
                    j, h = (before, 0) if H == 1 else (h, before)


@kernel(nb.void(_ints, _codes, nb.boolean[::1], nb.boolean[:, ::1], nb.boolean[::1], _ints))
def find_forbidden(starts, labels, begin, allowed, end, found):
    """found = the first sequence that no allowed labels are possible for, and the step where this shows: its length for the end;
    both −1 if there is none. labels[t] are −1 where any will do."""
    L = begin.shape[0]
    now, then = np.empty(L, np.bool_), np.empty(L, np.bool_)
    found[0], found[1] = -1, -1
    for q in range(starts.shape[0] - 1):
        n = starts[q + 1] - starts[q]
        for t in range(n + 1):
            some = False
            label = labels[starts[q] + t] if t < n else -1
            for k in range(L):
                then[k] = False
                if label >= 0 and label != k:
                    continue
                if t == 0:
                    then[k] = begin[k]
                elif t == n:
                    then[k] = now[k] and end[k]
                else:
                    for i in range(L):
                        if now[i] and allowed[i, k]:
                            then[k] = True
                            break
                some = some or then[k]
            for k in range(L):
                now[k] = then[k]
            if not some:
                found[0], found[1] = q, t
                return


U = np.uint64
_strip, _groups = (_floats, nb.int64, nb.int64), nb.int32[:, ::1]


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
