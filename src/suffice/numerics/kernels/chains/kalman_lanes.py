"""Kalman filter and smoother of many sequences side by side, whose covariances and gains are known.

Arrays are [step][coordinate][lane], flat, eight lanes at a time. A lane is a piece of a sequence: (its first step, how many
steps, of which steps low:high are its own; others lead up to them, or on from them, until they forget what is further away).
Step u of all lanes has row u0 + u of the tables, or the last one:

    e = W y - U a,    a' = B y + A a + f',    r = Uᵀ e + Aᵀ r',    E[z | y] = a + P r

with a the predicted mean, e the whitened innovations, and ' the next step. Lanes come longest first,
also by the ends of their own steps, which begin alike; those that fill up the last eight are nobody's. Tables have rows of zeros
up to a multiple of four.
"""

import numpy as np

from suffice.numerics.kernels import kernel, nb
from suffice.numerics.kernels.chains.wide import add_product, eight, load, store

U = np.uint64
STEPS = 16
"""So many smoothed means of each lane are put out together."""

_rows, _matrices, _lanes = nb.float64[:, ::1], nb.float64[:, :, ::1], nb.int64[:, ::1]
_floats = nb.float64[::1]
_tables = nb.types.UniTuple(_matrices, 3)
_at = (_floats, nb.int64)


@kernel(nb.void(_rows, *_at, _rows, *_at, _floats, nb.int64, nb.int64, nb.int64, nb.int64, nb.int64, *_at))
def times(M, X, x_at, N, Y, y_at, S, s_at, by, own, L, lanes, out, at):
    """out = M X + N Y + S for so many of L lanes, four rows at a time. Those of S are `by` numbers apart, and each of eight equal
    numbers, unless each lane has its `own`."""
    by_row, side = U(by), U(L)
    for i in range(0, M.shape[0], 4):
        for v in range(U(0), U(lanes), U(8)):
            s, x, y, to = U(s_at) + U(i) * by_row + v * U(own), U(x_at) + v, U(y_at) + v, U(at) + U(i) * side + v
            a, b = load(S, s), load(S, s + by_row)
            c, d = load(S, s + U(2) * by_row), load(S, s + U(3) * by_row)
            for k in range(M.shape[1]):
                z = load(X, x)
                a, b = add_product(a, eight(M[i, k]), z), add_product(b, eight(M[i + 1, k]), z)
                c, d = add_product(c, eight(M[i + 2, k]), z), add_product(d, eight(M[i + 3, k]), z)
                x += side
            for k in range(N.shape[1]):
                z = load(Y, y)
                a, b = add_product(a, eight(N[i, k]), z), add_product(b, eight(N[i + 1, k]), z)
                c, d = add_product(c, eight(N[i + 2, k]), z), add_product(d, eight(N[i + 3, k]), z)
                y += side
            store(out, to, a)
            store(out, to + side, b)
            store(out, to + U(2) * side, c)
            store(out, to + U(3) * side, d)


@kernel(nb.void(_lanes, nb.int64, _rows, _matrices))
def take_steps(lanes, low, y, now):
    """now[u, j, x] = the outputs of some steps of each lane from low on, 0 where they are missing."""
    p = y.shape[1]
    for x in range(lanes.shape[0]):
        out = y[lanes[x, 0] + low : lanes[x, 0] + max(low, min(low + now.shape[0], lanes[x, 1]))]
        for j in range(0, p - p % 4, 4):
            for u in range(len(out)):
                a, b, c, d = out[u, j], out[u, j + 1], out[u, j + 2], out[u, j + 3]
                now[u, j, x], now[u, j + 1, x] = a if a == a else 0.0, b if b == b else 0.0
                now[u, j + 2, x], now[u, j + 3, x] = c if c == c else 0.0, d if d == d else 0.0
        for j in range(p - p % 4, p):
            for u in range(len(out)):
                now[u, j, x] = out[u, j] if out[u, j] == out[u, j] else 0.0


@kernel(nb.void(_lanes, nb.int64, _rows, _rows, _tables, nb.int64, _matrices, _floats, _floats))
def filter_lanes(lanes, u0, y, f_steps, tables, step, now, S, squares):
    """Fill step u + 1 of S with the innovations e of step u and the predicted mean of the next one; steps are so many numbers
    apart.

    `tables` are [W, B], [-U, A] and [0, f'] by rows, the last each eight times, its first row that of the first step. The second
    half of `squares` gets the sums of e² over each lane's own steps; `now` is room for the outputs of some steps.
    """
    M, N, base = tables
    p, m, width, L = y.shape[1], N.shape[2], lanes.shape[0], squares.shape[0] // 2
    last, active, own, zero, flat = M.shape[0] - 1, width, width, np.int64(0), base.reshape(-1)
    per_row, shown = base.shape[1] * 8, now.reshape(-1)
    for x in range(L):
        squares[x] = 0.0
        for i in range(p + m):
            S[i * L + x] = base[u0, i, 0]
            if x < width and i >= p and f_steps.shape[0] > 0:
                S[i * L + x] += f_steps[lanes[x, 0], i - p]
    for u in range(lanes[0, 1]):
        while lanes[active - 1, 1] <= u:
            active -= 1
        while own > 0 and lanes[own - 1, 3] <= u:
            own -= 1
            squares[L + own] = squares[own]
        if u % STEPS == 0:
            take_steps(lanes, u, y, now)
        row, to = min(u0 + u, last), (u + 1) * step
        at = (row + 1) * per_row
        times(M[row], shown, (u % STEPS) * p * L, N[row], S, u * step + p * L, flat, at, zero + 8, zero, L, active, S, to)
        if f_steps.shape[0] > 0:
            for i in range(m):
                for x in range(active):
                    S[to + (p + i) * L + x] += f_steps[lanes[x, 0] + min(u + 1, lanes[x, 1] - 1), i]
        for v in range(U(0), U(own if u >= lanes[0, 2] else 0), U(8)):
            total, e = load(squares, v), U(to) + v
            for _ in range(p):
                z = load(S, e)
                total = add_product(total, z, z)
                e += U(L)
            store(squares, v, total)
    for x in range(own):
        squares[L + x] = squares[x]


@kernel(nb.void(_lanes, nb.int64, _matrices, _matrices))
def put_steps(lanes, low, held, means):
    """means[0, step, i] = held[u, i] of each lane's own steps from low on."""
    m = means.shape[2]
    for x in range(lanes.shape[0]):
        first = max(low, lanes[x, 2])
        last = max(first, min(low + held.shape[0], lanes[x, 3]))
        out, own = means[0, lanes[x, 0] + first : lanes[x, 0] + last], held[first - low :]
        for i in range(0, m - m % 4, 4):
            for u in range(len(out)):
                q, r, s, t = own[u, i, x], own[u, i + 1, x], own[u, i + 2, x], own[u, i + 3, x]
                out[u, i], out[u, i + 1], out[u, i + 2], out[u, i + 3] = q, r, s, t
        for i in range(m - m % 4, m):
            for u in range(len(out)):
                out[u, i] = own[u, i, x]


@kernel(nb.void(_lanes, nb.int64, _tables, nb.int64, _floats, _floats, _matrices, nb.int64, _matrices))
def smooth_lanes(lanes, u0, tables, step, S, room, held, p, means):
    """Fill `means`, [0, step, coordinate], from S, where p is the number of outputs.

    `tables` are Uᵀ, Aᵀ and P: e and the next r, in one half of `room`, give r in the other, whose P r is added to the predicted
    mean; after both are eight zeros. Some steps of all lanes are `held`, and put out together.
    """
    M, N, P = tables
    none, zero, flat = P[0, :0].reshape(1, 0), np.int64(0), held.reshape(-1)  # without gaps, or `times` is compiled twice
    rows, L, width = held.shape[1], held.shape[2], lanes.shape[0]
    last, active, here, half = M.shape[0] - 1, 0, zero, rows * L
    for u in range(lanes[0, 1] - 1, -1, -1):
        while active < width and lanes[active, 1] > u:
            for i in range(rows):
                room[here + i * L + active] = 0.0
            active += 1
        row, to = min(u0 + u, last), half - here
        times(M[row], S, (u + 1) * step, N[row], room, here, room, 2 * half, zero, zero, L, active, room, to)
        times(P[row], room, to, none, room, zero, S, u * step + p * L, L, zero + 1, L, active, flat, (u % STEPS) * half)
        here = to
        if u % STEPS == 0:
            put_steps(lanes, u, held, means)


@kernel(nb.void(nb.int64[:, ::1], nb.int64, nb.int32[::1], nb.float64[::1], _rows))
def tally(sequences, steady, groups, weights, counts):
    """How much weight each row of a table of covariances has in each group: counts[group, row].

    `sequences`: where each starts, its length, and the first row and number of rows of its table: the steps up to `steady` have
    the first rows, those at the end the last ones, and all between them the row `steady`.
    """
    for s in range(sequences.shape[0]):
        start, n, base, rows = sequences[s, 0], sequences[s, 1], sequences[s, 2], sequences[s, 3]
        t = 0
        while t < n:
            row, g = t if t < steady else max(steady, rows - n + t), groups[start + t]
            own = groups[start + t : start + min(t + 1024, n - rows + steady + 1 if row == steady else t + 1)]
            alike = 0
            for i in range(len(own)):
                alike += own[i] == g
            if alike == len(own):
                counts[g, base + row] += alike * weights[s]
            else:
                for i in range(len(own)):
                    counts[own[i], base + row] += weights[s]
            t += len(own)
