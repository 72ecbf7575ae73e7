"""Kalman filter and smoother of many sequences side by side, whose covariances and gains are known.

Arrays are [step][coordinate][lane], and every inner loop runs over lanes. A lane is a piece of a sequence: (its first step, how
many steps, of which steps low:high are its own; others lead up to them, or on from them, until they forget what is further
away). Step u of all lanes has row u0 + u of the tables, or the last one:

    e = W y - U a,    a' = B y + A a + f',    r = Uᵀ e + Aᵀ r',    E[z | y] = a + P r

with a the predicted mean, e the whitened innovations, and ' the next step. Lanes come longest first,
also by the ends of their own steps, which begin alike. Columns of tables, and the
coordinates they are multiplied with, are filled up with zeros to a multiple of four.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.kernels import kernel
from suffice.kernels.compiler import signatures as nb

STEPS = 16
"""So many smoothed means of each lane are put out together."""

_rows, _matrices, _lanes = nb.float64[:, ::1], nb.float64[:, :, ::1], nb.int64[:, ::1]
_tables, _floats = nb.types.Tuple((_matrices, _matrices, _rows)), nb.float64[::1]
_backward = nb.types.Tuple((_matrices, _matrices, _matrices, _rows))


@kernel(nb.void(_rows, _rows, _rows, _rows, nb.int64, _floats, nb.int64, _rows), reorder=True)
def times(M: Any, X: Any, N: Any, Y: Any, y0: int, base: Any, n: int, out: Any) -> None:
    """out = M X + N Y[y0:] + base, for the first n lanes: two rows of the result at a time, four rows of X and four of Y, so that
    loads and stores are few; where one row is left, it is done twice."""
    for i in range(0, M.shape[0], 2):
        j = min(i + 1, M.shape[0] - 1)
        s, a, b, c, d, e, f, g, h = base[i], M[i, 0], M[i, 1], M[i, 2], M[i, 3], N[i, 0], N[i, 1], N[i, 2], N[i, 3]
        z, o, p, q, r, t, u, v, w = base[j], M[j, 0], M[j, 1], M[j, 2], M[j, 3], N[j, 0], N[j, 1], N[j, 2], N[j, 3]
        for x in range(n):
            x0, x1, x2, x3 = X[0, x], X[1, x], X[2, x], X[3, x]
            y1, y2, y3, y4 = Y[y0, x], Y[y0 + 1, x], Y[y0 + 2, x], Y[y0 + 3, x]
            out[i, x] = s + a * x0 + b * x1 + c * x2 + d * x3 + e * y1 + f * y2 + g * y3 + h * y4
            out[j, x] = z + o * x0 + p * x1 + q * x2 + r * x3 + t * y1 + u * y2 + v * y3 + w * y4
        for k in range(4, M.shape[1], 4):
            for row in range(i, j + 1):
                a, b, c, d = M[row, k], M[row, k + 1], M[row, k + 2], M[row, k + 3]
                for x in range(n):
                    out[row, x] += a * X[k, x] + b * X[k + 1, x] + c * X[k + 2, x] + d * X[k + 3, x]
        for k in range(4, N.shape[1], 4):
            for row in range(i, j + 1):
                a, b, c, d, first = N[row, k], N[row, k + 1], N[row, k + 2], N[row, k + 3], y0 + k
                for x in range(n):
                    out[row, x] += a * Y[first, x] + b * Y[first + 1, x] + c * Y[first + 2, x] + d * Y[first + 3, x]


@kernel(nb.void(_rows, _rows, _rows, nb.int64, nb.int64, _rows), reorder=True)
def add_times(M: Any, X: Any, Y: Any, y0: int, n: int, out: Any) -> None:
    """out = M X + Y[y0:], for the first n lanes: two rows at a time, four rows of X."""
    for i in range(0, M.shape[0], 2):
        j = min(i + 1, M.shape[0] - 1)
        for k in range(0, M.shape[1], 4):
            a, b, c, d = M[i, k], M[i, k + 1], M[i, k + 2], M[i, k + 3]
            e, f, g, h = M[j, k], M[j, k + 1], M[j, k + 2], M[j, k + 3]
            for x in range(n):
                x0, x1, x2, x3 = X[k, x], X[k + 1, x], X[k + 2, x], X[k + 3, x]
                own, other = (out[i, x], out[j, x]) if k else (Y[y0 + i, x], Y[y0 + j, x])
                out[i, x] = own + a * x0 + b * x1 + c * x2 + d * x3
                out[j, x] = other + e * x0 + f * x1 + g * x2 + h * x3


@kernel(nb.void(_lanes, nb.int64, _rows, _rows, _tables, nb.boolean, _rows, _matrices, _rows), reorder=True)
def filter_lanes(lanes: Any, u0: int, y: Any, f_steps: Any, tables: Any, gaps: bool, now: Any, S: Any, squares: Any) -> None:
    """Fill S[u + 1] with the innovations e of step u and the predicted mean of the next one.

    `tables` are [W, B], [-U, A] and [0, f'] by rows, the first row of the last that of the first step. squares[0] gets the sums
    of e² over each lane's own steps; `now` is room for the outputs of a step, `gaps` whether some are missing.
    """
    M, N, base = tables
    p, width, m = y.shape[1], lanes.shape[0], base.shape[1] - y.shape[1]
    last, active, own, four = M.shape[0] - 1, width, width, p - p % 4
    for x in range(width):
        squares[0, x] = 0.0
        for i in range(m):
            S[0, p + i, x] = base[u0, p + i] + (f_steps[lanes[x, 0], i] if f_steps.shape[0] > 0 else 0.0)
    for u in range(lanes[0, 1]):
        while lanes[active - 1, 1] <= u:
            active -= 1
        while own > 0 and lanes[own - 1, 3] <= u:
            own -= 1
        for j in range(0, four, 4):
            for x in range(active):
                t = lanes[x, 0] + u
                a, b, c, d = y[t, j], y[t, j + 1], y[t, j + 2], y[t, j + 3]
                now[j, x], now[j + 1, x], now[j + 2, x], now[j + 3, x] = a, b, c, d
        for j in range(four, p):
            for x in range(active):
                now[j, x] = y[lanes[x, 0] + u, j]
        for j in range(p if gaps else 0):
            for x in range(active):
                now[j, x] = now[j, x] if now[j, x] == now[j, x] else 0.0
        row = min(u0 + u, last)
        times(M[row], now, N[row], S[u], p, base[row + 1], active, S[u + 1])
        if f_steps.shape[0] > 0:
            for i in range(m):
                for x in range(active):
                    S[u + 1, p + i, x] += f_steps[lanes[x, 0] + min(u + 1, lanes[x, 1] - 1), i]
        if u >= lanes[0, 2]:
            for j in range(0, four, 4):
                for x in range(own):
                    a, b, c, d = S[u + 1, j, x], S[u + 1, j + 1, x], S[u + 1, j + 2, x], S[u + 1, j + 3, x]
                    squares[0, x] += (a * a + b * b) + (c * c + d * d)
            for j in range(four, p):
                for x in range(own):
                    squares[0, x] += S[u + 1, j, x] * S[u + 1, j, x]


@kernel(nb.void(_lanes, nb.int64, _matrices, _matrices))
def put_steps(lanes: Any, low: int, held: Any, means: Any) -> None:
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


@kernel(nb.void(_lanes, nb.int64, _backward, _matrices, _matrices, _matrices, nb.int64, _matrices), reorder=True)
def smooth_lanes(lanes: Any, u0: int, tables: Any, S: Any, room: Any, held: Any, p: int, means: Any) -> None:
    """Fill `means`, [0, step, coordinate], from S, where p is the number of outputs.

    `tables` are Uᵀ, Aᵀ, P and 0: e and the next r, in `room`, give r, whose P r is added to the predicted mean. Some steps of
    all lanes are `held`, and put out together.
    """
    M, N, P, nothing = tables
    width, side, zero = lanes.shape[0], 0, np.int64(0)
    last, active = M.shape[0] - 1, 0
    for u in range(lanes[0, 1] - 1, -1, -1):
        while active < width and lanes[active, 1] > u:
            active += 1
        row, side = min(u0 + u, last), 1 - side
        times(M[row], S[u + 1], N[row], room[1 - side], zero, nothing[zero], active, room[side])
        add_times(P[row], room[side], S[u], p, active, held[u % STEPS])
        if u % STEPS == 0:
            put_steps(lanes, u, held, means)


@kernel(nb.void(nb.int64[:, ::1], nb.int64, nb.int32[::1], nb.float64[::1], _rows))
def tally(sequences: Any, steady: int, groups: Any, weights: Any, counts: Any) -> None:
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
