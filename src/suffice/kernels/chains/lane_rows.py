"""Parts of what is done to many hidden chains side by side, eight states at a time.

A *lane* is a run of steps, begin[v] … begin[v] + length[v] − 1, of a sequence; the n lanes of a *group*, from lane g on, go side
by side, the longest first. What a lane has at a step is a *row* of P numbers, one for each of K states and zeros up to a multiple
of eight; the rows of a step's L lanes follow one another, and then those of the next step. Matrices are given eight columns at a
time: M[(j // 8) K + i, j % 8], flat. Factors of rows are in a table, or in an array with one for each row; places[t L + v] says
where in either. Its last L entries are the place of a row of ones; steps after a lane's end have the place of a row of zeros.
"""

from __future__ import annotations

import numpy as np

from suffice.kernels import kernel
from suffice.kernels.chains.wide import add_product, eight, load, product, quotient, store, total
from suffice.kernels.compiler import signatures as nb

U = np.uint64
_ints, _codes, _floats, _rows = nb.int64[::1], nb.int32[::1], nb.float64[::1], nb.float64[:, ::1]
_group = (nb.int64, nb.int64, _ints, _ints)
_at = (_floats, nb.int64)
_where = (_ints, nb.int64)


@kernel(nb.int64(_ints, nb.int64, nb.int64, nb.int64))
def active(length, g, n, t):
    """How many of the first n lanes of a group have a step t."""
    while n > 0 and length[g + n - 1] <= t:
        n -= 1
    return n


@kernel(nb.void(*_group, _codes, nb.int64, nb.int64, nb.int64, _floats, _floats, _ints))
def place(g, n, begin, length, symbols, P, zeros, L, tops, log_p, places):
    """The places of the rows of a table that steps show, and of one of ones after that of zeros; the symbols' `tops` are added to
    log_p. Without symbols, rows have factors of their own."""
    steps, side = places.shape[0] // L - 1, U(L)
    for first in range(0, steps, 32):  # these stay in the cache, however many lanes there are
        for v in range(L):
            own = length[g + v] if v < n else 0
            until, at = min(first + 32, steps), begin[g + v] if v < n else 0
            to = U(first * L + v)
            for u in range(U(first), U(max(first, min(until, own)))):
                places[to] = symbols[U(at) + u] * P if symbols.shape[0] else np.int64(to) * P
                to += side
            for _ in range(max(first, own), until):
                places[to] = zeros
                to += side
    for v in range(L):
        places[steps * L + v] = zeros + P
    for v in range(n if tops.shape[0] else 0):
        for t in range(begin[g + v], begin[g + v] + length[g + v]):
            log_p[g + v] += tops[symbols[t]]


@kernel(nb.void(_floats, nb.int64, *_at, *_at, nb.int64, _floats, *_where, nb.int64, nb.int64, nb.int64), apart=True)
def advance(M, K, x, x_at, y, y_at, by, f, places, at, skip, n, lanes):
    """y_j = f_j Σᵢ M[i, j] x_i for so many lanes; n times, each `by` numbers of x and y and `skip` places further on.

    Eight lanes at a time, for each multiplication waits for the one before it; the last eight may be some of those before again.
    """
    k, P, one = U(K), M.shape[0] // K, U(1)
    for s in range(n):
        for j in range(0, P, 8):
            for q in range(0, lanes if lanes > 7 else 0, 8):
                v = min(q, lanes - 8)
                x0, m, r = U(x_at + s * by + v * P), U(j * K), U(at + s * skip + v)
                x1 = x0 + U(P)
                x2, x3 = x1 + U(P), x1 + U(2 * P)
                x4, x5, x6, x7 = x1 + U(3 * P), x1 + U(4 * P), x1 + U(5 * P), x1 + U(6 * P)
                a = b = c = d = e = h = p = w = eight(0.0)
                for i in range(k):
                    z = load(M, m)
                    a, b = add_product(a, eight(x[x0 + i]), z), add_product(b, eight(x[x1 + i]), z)
                    c, d = add_product(c, eight(x[x2 + i]), z), add_product(d, eight(x[x3 + i]), z)
                    e, h = add_product(e, eight(x[x4 + i]), z), add_product(h, eight(x[x5 + i]), z)
                    p, w = add_product(p, eight(x[x6 + i]), z), add_product(w, eight(x[x7 + i]), z)
                    m += U(8)
                y0, u, f0 = U(y_at + s * by + v * P + j), U(P), U(j)
                store(y, y0, product(a, load(f, U(places[r]) + f0)))
                store(y, y0 + u, product(b, load(f, U(places[r + one]) + f0)))
                store(y, y0 + U(2) * u, product(c, load(f, U(places[r + U(2)]) + f0)))
                store(y, y0 + U(3) * u, product(d, load(f, U(places[r + U(3)]) + f0)))
                store(y, y0 + U(4) * u, product(e, load(f, U(places[r + U(4)]) + f0)))
                store(y, y0 + U(5) * u, product(h, load(f, U(places[r + U(5)]) + f0)))
                store(y, y0 + U(6) * u, product(p, load(f, U(places[r + U(6)]) + f0)))
                store(y, y0 + U(7) * u, product(w, load(f, U(places[r + U(7)]) + f0)))
            for v in range(0 if lanes > 7 else lanes):
                x0, m = U(x_at + s * by + v * P), U(j * K)
                a = eight(0.0)
                for i in range(k):
                    a = add_product(a, eight(x[x0 + i]), load(M, m))
                    m += U(8)
                store(y, U(y_at + s * by + v * P + j), product(a, load(f, U(places[U(at + s * skip + v)] + j))))


@kernel(nb.void(*_at, _floats, nb.int64, nb.int64, nb.int64, nb.int64, _floats), apart=True)
def outer(x, x_at, y, P, L, n, lanes, sums):
    """sums[i P + j] += Σ x_i y_j over so many lanes and n steps; those of y begin at 0."""
    row, one = U(P), U(1)
    for j in range(U(0), row, U(8)):
        for i in range(U(0), row, U(8)):
            a = b = c = d = e = h = p = w = eight(0.0)
            for s in range(n):
                x0, y0 = U(x_at + s * L * P) + i, U(s * L * P) + j
                for _ in range(lanes):
                    z = load(y, y0)
                    a, b = add_product(a, eight(x[x0]), z), add_product(b, eight(x[x0 + one]), z)
                    c, d = add_product(c, eight(x[x0 + U(2)]), z), add_product(d, eight(x[x0 + U(3)]), z)
                    e, h = add_product(e, eight(x[x0 + U(4)]), z), add_product(h, eight(x[x0 + U(5)]), z)
                    p, w = add_product(p, eight(x[x0 + U(6)]), z), add_product(w, eight(x[x0 + U(7)]), z)
                    x0, y0 = x0 + row, y0 + row
            t, unit = i * row + j, eight(1.0)
            store(sums, t, add_product(a, unit, load(sums, t)))
            store(sums, t + row, add_product(b, unit, load(sums, t + row)))
            store(sums, t + U(2) * row, add_product(c, unit, load(sums, t + U(2) * row)))
            store(sums, t + U(3) * row, add_product(d, unit, load(sums, t + U(3) * row)))
            store(sums, t + U(4) * row, add_product(e, unit, load(sums, t + U(4) * row)))
            store(sums, t + U(5) * row, add_product(h, unit, load(sums, t + U(5) * row)))
            store(sums, t + U(6) * row, add_product(p, unit, load(sums, t + U(6) * row)))
            store(sums, t + U(7) * row, add_product(w, unit, load(sums, t + U(7) * row)))


@kernel(nb.void(_floats, *_where, *_at, _floats, nb.int64, nb.int64, nb.int64, nb.int64), apart=True)
def tally(sums, places, at, x, x_at, y, P, L, n, lanes):
    """sums[place + j] += x_j y_j over so many lanes and n steps; those of y begin at 0."""
    for s in range(n):
        x0, y0, r = U(x_at + s * L * P), U(s * L * P), U(at + s * L)
        for v in range(U(lanes)):
            to = U(places[r + v])
            for j in range(U(0), U(P), U(8)):
                store(sums, to + j, add_product(load(sums, to + j), load(x, x0 + j), load(y, y0 + j)))
            x0, y0 = x0 + U(P), y0 + U(P)


@kernel(nb.void(_floats, *_where, *_at, _floats, nb.int64, nb.int64, nb.int64, nb.int64), apart=True)
def divide(f, places, at, x, x_at, y, P, L, n, lanes):
    """f[place + j] = x_j y_j / f[place + j], or 0 where that is 0."""
    for s in range(n):
        x0, y0, r = U(x_at + s * L * P), U(s * L * P), U(at + s * L)
        for v in range(U(lanes)):
            to = U(places[r + v])
            for j in range(U(0), U(P), U(8)):
                store(f, to + j, quotient(product(load(x, x0 + j), load(y, y0 + j)), load(f, to + j)))
            x0, y0 = x0 + U(P), y0 + U(P)


@kernel(nb.void(_floats, *_where, _floats, *_at, nb.int64, nb.int64), apart=True)
def multiply(f, places, at, x, y, y_at, P, lanes):
    """y_j = f_j x_j for so many lanes; those of x begin at 0."""
    for v in range(U(lanes)):
        of, x0, y0 = U(places[U(at) + v]), v * U(P), U(y_at) + v * U(P)
        for j in range(U(0), U(P), U(8)):
            store(y, y0 + j, product(load(f, of + j), load(x, x0 + j)))


@kernel(nb.float64(*_at, nb.int64))
def sum_row(x, at, P):
    """Σ of a row."""
    own, one = eight(0.0), eight(1.0)
    for j in range(U(at), U(at + P), U(8)):
        own = add_product(own, one, load(x, j))
    return total(own)


@kernel(nb.void(_floats, nb.int64, *_at, *_at, nb.int64, nb.int64))
def scale_rows(c, c_at, x, x_at, y, y_at, P, lanes):
    """y = c x, lane by lane."""
    for v in range(U(lanes)):
        own, x0, y0 = eight(c[U(c_at) + v]), U(x_at) + v * U(P), U(y_at) + v * U(P)
        for j in range(U(0), U(P), U(8)):
            store(y, y0 + j, product(own, load(x, x0 + j)))
