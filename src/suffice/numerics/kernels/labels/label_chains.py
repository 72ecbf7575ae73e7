"""Chains of labels whose steps may differ in their weights of two labels in a row, and which may look two labels back.

A state is (h, j): the label j of a step and its history h. With one history (H = 1) there is nothing to know of it; with L + 1 of
them it is the label before, and L at the first step. From (h, i) to the label k goes

    M[h, i, k] · E_t[i, k] · b_t[k],    E_t = exp(T + the weights that the attributes of step t have for i and k)

Filters are scaled to sum 1; what scaling would lose (see `LARGE`) is done again in logarithms, where products are sums.
Attributes are those of `kernels.labels.crf`: a has the weights first[a] … first[a + 1] − 1 of the pairs before[k], after[k].
"""

import numpy as np

from suffice.numerics.kernels import kernel, nb

HUGE, LARGE = 1e100, 1e50
"""While c is above 1 / HUGE, z below HUGE, and no entry of M and E that is not 0 beyond LARGE either way, nothing that matters is
lost: a product that underflows, below 1e-307, is below 1e-307 · LARGE · HUGE once it is divided by c, and z makes it 1e-57."""

_ints, _codes, _floats, _rows, _cubes = nb.int64[::1], nb.int32[::1], nb.float64[::1], nb.float64[:, ::1], nb.float64[:, :, ::1]
PAIRS = nb.types.Tuple((nb.int32[:, ::1], _ints, _codes, _ints, _codes, _codes, _rows, _ints, _floats))
ROOM = nb.types.Tuple((_cubes, _cubes, _rows, _floats, _rows, _rows))
_out = nb.types.Tuple((_floats, _rows, _cubes, _floats, _cubes))


@kernel(nb.boolean(nb.int64, PAIRS, _rows, nb.boolean, _rows))
def weigh_pairs(p, pairs, base, logs, E):
    """E = base with the weights of the attributes of place p; whether no entry is beyond what may be scaled."""
    groups, starts, items, first, before, after, numbers, number_of, w = pairs
    near = True
    for i in range(base.shape[0]):
        for k in range(base.shape[1]):
            E[i, k] = base[i, k]
    if not w.shape[0]:
        return near
    for o in range(groups.shape[0]):
        for i in range(starts[groups[o, p]], starts[groups[o, p] + 1]):
            for k in range(first[items[i]], first[items[i] + 1]):
                if logs:
                    E[before[k], after[k]] += w[k]
                else:
                    E[before[k], after[k]] *= np.exp(w[k])
                    near = near and 1.0 / LARGE < E[before[k], after[k]] < LARGE
    for r in range(number_of.shape[0]):
        for k in range(first[number_of[r]], first[number_of[r] + 1]):
            if logs:
                E[before[k], after[k]] += numbers[p, r] * w[k]
            else:
                E[before[k], after[k]] *= np.exp(numbers[p, r] * w[k])
                near = near and 1.0 / LARGE < E[before[k], after[k]] < LARGE
    return near


@kernel(nb.void(_cubes, nb.int64, nb.float64))
def fill(x, t, value):
    """x[t] = value."""
    for h in range(x.shape[1]):
        for k in range(x.shape[2]):
            x[t, h, k] = value


@kernel(nb.types.UniTuple(nb.int64, 2)(nb.int64, nb.int64))
def histories(t, H):
    """The histories that states of step t − 1 may have."""
    if H == 1:
        return 0, 1
    return (H - 1, H) if t == 1 else (0, H - 1)


@kernel(nb.float64(nb.int64, _cubes, _rows, _rows, _cubes), reorder=True)
def advance(t, M, E, b, a):
    """a[t] of a[t − 1], and its sum."""
    H, L = a.shape[1], a.shape[2]
    low, high = histories(t, H)
    total = 0.0
    fill(a, t, 0.0)
    for i in range(L):
        row = 0 if H == 1 else i
        for h in range(low, high):
            x = a[t - 1, h, i]
            if x != 0.0:
                for k in range(L):
                    a[t, row, k] += x * M[h, i, k] * E[i, k]
    for h in range(H):
        for k in range(L):
            a[t, h, k] *= b[t, k]
            total += a[t, h, k]
    return total


@kernel(nb.float64(nb.int64, _cubes, _rows, _rows, _floats, _cubes), reorder=True)
def retreat(t, M, E, b, v, z):
    """z[t − 1] of z[t], where b[t] is divided by c; the largest of it."""
    H, L = z.shape[1], z.shape[2]
    low, high = histories(t, H)
    most = 0.0
    fill(z, t - 1, 0.0)
    for i in range(L):
        row = 0 if H == 1 else i
        for k in range(L):
            v[k] = E[i, k] * b[t, k] * z[t, row, k]
        for h in range(low, high):
            total = 0.0
            for k in range(L):
                total += M[h, i, k] * v[k]
            z[t - 1, h, i] = total
            most = max(most, total)
    return most


@kernel(nb.boolean(_codes, _rows, nb.types.UniTuple(nb.float64, 2), _rows, _cubes, PAIRS, ROOM, _floats))
def smooth(places, s, tops, E0, M, pairs, room, log_z):
    """Fill in a, z, b and c of one sequence, b divided by c, and log Z; False where scaling would lose something."""
    a, z, b, c, E, spare = room
    n, L, H = places.shape[0], s.shape[1], a.shape[1]
    log_z[0] = 0.0
    for t in range(n):
        top = -np.inf
        for k in range(L):
            top = max(top, s[places[t], k])
        if not -np.inf < top < np.inf:
            return False
        for k in range(L):
            b[t, k] = np.exp(s[places[t], k] - top)
        if t == 0:
            fill(a, np.int64(0), 0.0)
            c[0] = 0.0
            for k in range(L):
                a[0, H - 1, k] = b[0, k]
                c[0] += b[0, k]
        else:
            if not weigh_pairs(np.int64(places[t]), pairs, E0, np.bool_(False), E):
                return False
            c[t] = advance(t, M, E, b, a)
            top += tops[0] + (tops[1] if t > 1 else 0.0)
        if not 1.0 / HUGE < c[t] < HUGE:
            return False
        for k in range(L):
            b[t, k] /= c[t]
            for h in range(H):
                a[t, h, k] /= c[t]
        log_z[0] += top + np.log(c[t])
    fill(z, n - 1, 1.0)
    for t in range(n - 1, 0, -1):
        weigh_pairs(np.int64(places[t]), pairs, E0, np.bool_(False), E)
        if not retreat(t, M, E, b, spare[0], z) < HUGE:
            return False
    return True


@kernel(nb.void(nb.int64, nb.boolean, nb.float64, _cubes, ROOM, _rows, _cubes))
def join(t, logs, weight, M, room, both, counts):
    """both[i, k] = weight · p(labels i, k of steps t − 1 and t), and the same by histories added to counts."""
    a, z, b, c, E, _spare = room
    H, L = a.shape[1], a.shape[2]
    low, high = histories(t, H)
    for i in range(L):
        row = 0 if H == 1 else i
        for k in range(L):
            both[i, k] = 0.0
        for h in range(low, high):
            x = a[t - 1, h, i]
            if logs and x > -np.inf:
                for k in range(L):
                    y = weight * np.exp(x + M[h, i, k] + E[i, k] + b[t, k] + z[t, row, k] - c[t])
                    both[i, k] += y
                    counts[h, i, k] += y
            elif not logs and x != 0.0:
                for k in range(L):
                    y = weight * x * M[h, i, k] * E[i, k] * b[t, k] * z[t, row, k]
                    both[i, k] += y
                    counts[h, i, k] += y


@kernel(nb.void(nb.int64, nb.int64, nb.boolean, ROOM, _rows))
def settle(t, p, logs, room, steps):
    """steps[p] = p(label of step t)."""
    a, z, _b, _c, _E, _spare = room
    for k in range(a.shape[2]):
        total = 0.0
        for h in range(a.shape[1]):
            if not logs:
                total += a[t, h, k] * z[t, h, k]
            elif a[t, h, k] > -np.inf:
                total += np.exp(a[t, h, k] + z[t, h, k])
        steps[p, k] = total


@kernel(nb.void(nb.int64, PAIRS, _rows, _floats))
def spread_pairs(p, pairs, both, out):
    """Add what is expected of two labels to the weights of the attributes of place p."""
    groups, starts, items, first, before, after, numbers, number_of, w = pairs
    if not w.shape[0]:
        return
    for o in range(groups.shape[0]):
        for i in range(starts[groups[o, p]], starts[groups[o, p] + 1]):
            for k in range(first[items[i]], first[items[i] + 1]):
                out[k] += both[before[k], after[k]]
    for r in range(number_of.shape[0]):
        for k in range(first[number_of[r]], first[number_of[r] + 1]):
            out[k] += numbers[p, r] * both[before[k], after[k]]


@kernel(nb.float64(nb.int64, nb.int64, _cubes, _rows, _cubes))
def log_sum_before(t, k, M, E, a):
    """log Σ over i of exp(a[t − 1, 0, i] + M[0, i, k] + E[i, k]), of one history."""
    top = -np.inf
    for i in range(a.shape[2]):
        top = max(top, a[t - 1, 0, i] + M[0, i, k] + E[i, k])
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(a.shape[2]):
        total += np.exp(a[t - 1, 0, i] + M[0, i, k] + E[i, k] - top)
    return float(top + np.log(total))


@kernel(nb.float64(nb.int64, nb.int64, nb.int64, _cubes, _cubes))
def log_sum_history(t, i, k, M, a):
    """log Σ over h of exp(a[t − 1, h, i] + M[h, i, k])."""
    low, high = histories(t, a.shape[1])
    top = -np.inf
    for h in range(low, high):
        top = max(top, a[t - 1, h, i] + M[h, i, k])
    if top == -np.inf:
        return top
    total = 0.0
    for h in range(low, high):
        total += np.exp(a[t - 1, h, i] + M[h, i, k] - top)
    return float(top + np.log(total))


@kernel(nb.float64(_codes, _rows, _rows, _cubes, PAIRS, ROOM))
def filter_logs(places, s, T, M, pairs, room):
    """Fill in a, b and c of one sequence in logarithms; log Z, −inf where no labels are possible."""
    a, _z, b, c, E, _spare = room
    n, L, H = places.shape[0], s.shape[1], a.shape[1]
    log_z = 0.0
    for t in range(n):
        fill(a, t, -np.inf)
        for k in range(L):
            b[t, k] = s[places[t], k]
        if t:
            weigh_pairs(np.int64(places[t]), pairs, T, np.bool_(True), E)
        for h in range(H):
            for k in range(L):
                if t == 0:
                    a[t, h, k] = b[t, k] if h == H - 1 else -np.inf
                elif H == 1:
                    a[t, h, k] = log_sum_before(t, k, M, E, a) + b[t, k]
                elif h < L:
                    a[t, h, k] = log_sum_history(t, h, k, M, a) + E[h, k] + b[t, k]
        top, total = -np.inf, 0.0
        for h in range(H):
            for k in range(L):
                top = max(top, a[t, h, k])
        if top == -np.inf:
            return -np.inf
        for h in range(H):
            for k in range(L):
                total += np.exp(a[t, h, k] - top)
        c[t] = top + np.log(total)
        for h in range(H):
            for k in range(L):
                a[t, h, k] -= c[t]
        log_z += c[t]
    return log_z


@kernel(nb.void(nb.int64, _rows, _cubes, PAIRS, _codes, ROOM))
def smooth_logs(n, T, M, pairs, places, room):
    """z of a sequence in logarithms."""
    a, z, b, c, E, _spare = room
    H, L = a.shape[1], a.shape[2]
    fill(z, n - 1, 0.0)
    for t in range(n - 1, 0, -1):
        weigh_pairs(np.int64(places[t]), pairs, T, np.bool_(True), E)
        low, high = histories(t, H)
        fill(z, t - 1, -np.inf)
        for i in range(L):
            row = 0 if H == 1 else i
            for h in range(low, high):
                top, total = -np.inf, 0.0
                for k in range(L):
                    top = max(top, M[h, i, k] + E[i, k] + b[t, k] + z[t, row, k])
                if top == -np.inf:
                    continue
                for k in range(L):
                    total += np.exp(M[h, i, k] + E[i, k] + b[t, k] + z[t, row, k] - top)
                z[t - 1, h, i] = top + np.log(total) - c[t]


@kernel(nb.void(_ints, _codes, _rows, _floats, nb.types.UniTuple(nb.float64, 2), _rows, _rows, _cubes, _cubes, PAIRS, ROOM, _out))
def expect_sequences(starts, places, s, weights, tops, T, E0, log_m, M, pairs, room, out):
    """What is expected of the labels of sequences: log Z of each, p(label) of each place, counts[h, i, k] = Σ w p(h, i, k), what
    is expected of each weight of pairs, and, if there are rows for it, p(i, k) of each place.

    s[p, k] is the score of label k at place p, E0 = exp(T − tops[0]), M = exp(log_m − tops[1]) from the third step on. Where E0
    has no rows, all is done in logarithms. Nothing is expected of a sequence that no labels are possible for.
    """
    log_z, steps, counts, of_pairs, by_place = out
    _a, _z, _b, _c, E, both = room
    for q in range(starts.shape[0] - 1):
        own = places[starts[q] : starts[q + 1]]
        n = own.shape[0]
        logs = E0.shape[0] == 0 or not smooth(own, s, tops, E0, M, pairs, room, log_z[q:])
        if logs:
            log_z[q] = filter_logs(own, s, T, log_m, pairs, room)
            if log_z[q] == -np.inf:
                for t in range(n):
                    for k in range(s.shape[1]):
                        steps[own[t], k] = 0.0
                continue
            smooth_logs(n, T, log_m, pairs, own, room)
        for t in range(n):
            settle(t, np.int64(own[t]), logs, room, steps)
            if t:
                weigh_pairs(np.int64(own[t]), pairs, T if logs else E0, logs, E)
                join(t, logs, weights[q], log_m if logs else M, room, both, counts)
                spread_pairs(np.int64(own[t]), pairs, both, of_pairs)
                for i in range(s.shape[1] if by_place.shape[0] else 0):
                    for k in range(s.shape[1]):
                        by_place[own[t], i, k] = both[i, k]
