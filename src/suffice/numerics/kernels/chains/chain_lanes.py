"""Hidden chains with one matrix, many at a time, eight states at a time: forward and backward in lanes, scaled.

A *lane* is a run of steps, begin[v] … begin[v] + length[v] − 1, of a sequence; the n lanes of a *group*, from lane g on, go side
by side, the longest first. What a lane has at a step is a *row* of P numbers, one for each of K states and zeros up to a multiple
of eight; the rows of a step's L lanes follow one another, and then those of the next step. Matrices are given eight columns at a
time: M[(j // 8) K + i, j % 8], flat. Factors of rows are in a table, or in an array with one for each row; places[t L + v] says
where in either. Its last L entries are the place of a row of ones; steps after a lane's end have the place of a row of zeros.
Steps are taken in *tiles* of W.

    alpha[k (W + 1) + s + 1]   the filter after step s of tile k, scaled to sum 1 before each tile (slot 0) and not within it
    beta                       such that Σⱼ alpha beta is the weight of the lane at each step
    u[s]                       the factor of step s times beta: so it goes back as alpha goes on

Rows of the matrix sum to 1 at most, and factors are 1 at most. So beta does not grow within a tile, and what alpha loses by
underflow, times beta, is nothing unless beta is huge: such lanes are *lost* and are to be done in logarithms instead
(`suffice.numerics.kernels.chains.chain`); sums of a group with a lost lane are void.
"""

import numpy as np

from suffice.numerics.kernels import kernel, nb
from suffice.numerics.kernels.chains.wide import add_product, eight, load, product, quotient, store, total

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
