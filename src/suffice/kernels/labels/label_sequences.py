"""Labellings of sequences: drawn, the best, and whether there is one. See `kernels.labels.label_chains` for what states are."""

import numpy as np

from suffice.kernels import kernel, nb
from suffice.kernels.labels.label_chains import PAIRS, ROOM, filter_logs, histories, weigh_pairs

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
