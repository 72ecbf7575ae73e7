"""Numbers that are normal given a hidden state: how well each state explains each step, and moments weighted by the states.

Columns and steps are x[c, t]. Loops over a few hundred steps are innermost, over slices that begin at 0 (an index that might be
negative is not vectorised): they stay in the cache. Columns and forms are taken in fours, so that a step is read once for
sixteen products; `used` says which pairs of fours are needed. Where the last four has fewer columns, the last column stands in
for those that lack.

And likelihoods of the steps of lanes, given or of such numbers, and the moments of numbers by what is expected of states. Lanes,
groups and rows are those of `kernels.chains.chain_lanes`. The steps of a group are taken lane by lane in chunks, which
hold several short lanes, with steps innermost: x[c, p].
"""

import numpy as np

from suffice.numerics.kernels import kernel, nb
from suffice.numerics.kernels.chains.chain_lanes import _codes, _floats, _group, _ints, _rows

CHUNK = 384
"""Steps at a time."""

_cube, _flags = nb.float64[:, :, ::1], nb.boolean[:, ::1]


@kernel(nb.void(_rows, nb.int64, nb.int64, _floats, _rows, nb.int64, _floats, _rows, _floats, nb.boolean), reorder=True)
def four_forms(x, a, c, centre, weight, j, base, z, out, last):
    """z[i] += base[j + i] + Σ weight[j + i, c] (x[c] − centre[c]) over four columns from c on, for four forms, of the steps from
    a on; of the `last` columns, out −= Σ z² instead."""
    m, C = len(out), x.shape[0] - 1
    w, y, u, v = x[c, a : a + m], x[min(c + 1, C), a : a + m], x[min(c + 2, C), a : a + m], x[min(c + 3, C), a : a + m]
    z0, z1, z2, z3 = z[0], z[1], z[2], z[3]
    m0, m1, m2, m3 = centre[c], centre[c + 1], centre[c + 2], centre[c + 3]
    a0, a1, a2, a3, a4 = weight[j, c], weight[j, c + 1], weight[j, c + 2], weight[j, c + 3], base[j]
    b0, b1, b2, b3, b4 = weight[j + 1, c], weight[j + 1, c + 1], weight[j + 1, c + 2], weight[j + 1, c + 3], base[j + 1]
    d0, d1, d2, d3, d4 = weight[j + 2, c], weight[j + 2, c + 1], weight[j + 2, c + 2], weight[j + 2, c + 3], base[j + 2]
    e0, e1, e2, e3, e4 = weight[j + 3, c], weight[j + 3, c + 1], weight[j + 3, c + 2], weight[j + 3, c + 3], base[j + 3]
    for t in range(m):
        y0, y1, y2, y3 = w[t] - m0, y[t] - m1, u[t] - m2, v[t] - m3
        p = z0[t] + a4 + a0 * y0 + a1 * y1 + a2 * y2 + a3 * y3
        q = z1[t] + b4 + b0 * y0 + b1 * y1 + b2 * y2 + b3 * y3
        r = z2[t] + d4 + d0 * y0 + d1 * y1 + d2 * y2 + d3 * y3
        s = z3[t] + e4 + e0 * y0 + e1 * y1 + e2 * y2 + e3 * y3
        if last:
            out[t] -= (p * p + q * q) + (r * r + s * s)
        else:
            z0[t], z1[t], z2[t], z3[t] = p, q, r, s


@kernel(nb.void(_rows, nb.int64, _rows, _cube, _flags, _rows, _floats, nb.int64, nb.boolean, _rows), reorder=True)
def score_normals(x, n, centre, weight, used, base, constant, begin, fresh, out):
    """Add ln p of each of n steps under each state k to out[k, begin + t], or put it there if that is `fresh`:

    constant[k] − Σⱼ z²,   z = base[k, j] + Σ_c weight[k, j, c] (x[c, t] − centre[k, c])

    The centre, near which most steps of the state lie, keeps the digits of narrow states. Forms and columns are filled up with
    zeros to multiples of four; used[j // 4, c // 4].
    """
    K, J = base.shape
    z, nothing = np.zeros((4, CHUNK)), np.zeros(J)
    for a in range(0, n, CHUNK):
        m = min(CHUNK, n - a)
        for k in range(K):
            result, first = out[k, begin + a : begin + a + m], constant[k]
            for t in range(m):
                result[t] = first if fresh else result[t] + first
            for j in range(0, J, 4):
                last = 0
                for four in range(1, used.shape[1]):
                    if used[j // 4, four]:
                        last = four
                for four in range(last + 1):  # called at one place only, for each takes as long to compile
                    if used[j // 4, four] or four == last:
                        own = base[k] if four == last else nothing
                        four_forms(x, a, 4 * four, centre[k], weight[k], j, own, z, result, four == last)
                for i in range(4 if last else 0):
                    for t in range(m):
                        z[i, t] = 0.0


@kernel(nb.void(_floats, _rows, nb.int64, nb.int64, _floats), reorder=True)
def four_means(g, x, a, c, out):
    """out[c + i] = Σ g x[c + i] / Σ g of four columns, and out[-1] = Σ g, of the steps from a on."""
    m, C = len(g), x.shape[0] - 1
    w, y, u, v = x[c, a : a + m], x[min(c + 1, C), a : a + m], x[min(c + 2, C), a : a + m], x[min(c + 3, C), a : a + m]
    N, p, q, r, s = 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(m):
        N += g[t]
        p += g[t] * w[t]
        q += g[t] * y[t]
        r += g[t] * u[t]
        s += g[t] * v[t]
    out[len(out) - 1] = N
    if N > 0.0:
        out[c], out[c + 1], out[c + 2], out[c + 3] = p / N, q / N, r / N, s / N


@kernel(nb.void(_floats, _rows, nb.int64, nb.int64, _floats, _rows), reorder=True)
def own_products(g, x, a, c, middle, out):
    """out[i, j] = Σ g (x[c + i] − middle[c + i]) (x[c + j] − middle[c + j]) of four columns, j ≤ i, of the steps from a on."""
    m, C = len(g), x.shape[0] - 1
    w, y, u, v = x[c, a : a + m], x[min(c + 1, C), a : a + m], x[min(c + 2, C), a : a + m], x[min(c + 3, C), a : a + m]
    m0, m1, m2, m3 = middle[c], middle[c + 1], middle[c + 2], middle[c + 3]
    a0, b0, b1, d0, d1, d2, e0, e1, e2, e3 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(m):
        y0, y1, y2, y3 = w[t] - m0, y[t] - m1, u[t] - m2, v[t] - m3
        p, q, r, s = g[t] * y0, g[t] * y1, g[t] * y2, g[t] * y3
        a0 += p * y0
        b0 += q * y0
        b1 += q * y1
        d0 += r * y0
        d1 += r * y1
        d2 += r * y2
        e0 += s * y0
        e1 += s * y1
        e2 += s * y2
        e3 += s * y3
    out[0, 0], out[1, 0], out[1, 1], out[2, 0], out[2, 1] = a0, b0, b1, d0, d1
    out[2, 2], out[3, 0], out[3, 1], out[3, 2], out[3, 3] = d2, e0, e1, e2, e3


@kernel(nb.void(_floats, _rows, nb.int64, nb.int64, nb.int64, _floats, _floats), reorder=True)
def row_products(g, x, a, b, c, middle, out):
    """out[i] = Σ g (x[b] − middle[b]) (x[c + i] − middle[c + i]) of a column b and four others."""
    m = len(g)
    o, w, y, u, v = x[b, a : a + m], x[c, a : a + m], x[c + 1, a : a + m], x[c + 2, a : a + m], x[c + 3, a : a + m]
    own, m0, m1, m2, m3 = middle[b], middle[c], middle[c + 1], middle[c + 2], middle[c + 3]
    p, q, r, s = 0.0, 0.0, 0.0, 0.0
    for t in range(m):
        z = g[t] * (o[t] - own)
        p += z * (w[t] - m0)
        q += z * (y[t] - m1)
        r += z * (u[t] - m2)
        s += z * (v[t] - m3)
    out[0], out[1], out[2], out[3] = p, q, r, s


@kernel(nb.void(_rows, nb.int64, _rows, nb.int64, _floats, _flags, _floats, _rows, _cube), reorder=True)
def sum_normals(x, n, share, begin, weight, used, total, mean, scatter):
    """Add n steps, for each state k weighted by w = share[k, begin + t] weight[t] (without weights, by the share), to

    total[k] = Σ w,  mean[k] = Σ w x / Σ w,  scatter[k, a, b] = Σ w (x_a − mean_a)(x_b − mean_b) for b ≤ a, used[a, b // 4]

    Of each chunk the means come first, so that nothing is lost where a state is narrow and far from the others; chunks are
    added as in `suffice.statistics.moments`.
    """
    C = x.shape[0]
    middle, step, sums, room = np.zeros(C + 4), np.zeros(C), np.zeros((4, 4)), np.empty(CHUNK)
    for begun in range(0, n, CHUNK):
        m = min(CHUNK, n - begun)
        for k in range(total.shape[0]):
            g = share[k, begin + begun : begin + begun + m]
            if weight.shape[0]:
                own, more = room[:m], weight[begun : begun + m]
                for t in range(m):
                    own[t] = g[t] * more[t]
                g = own
            for c in range(0, C, 4):
                four_means(g, x, begun, c, middle)
            N = middle[C + 3]
            if not N > 0.0:
                continue
            for c in range(C):
                step[c] = middle[c] - mean[k, c]
            new = total[k] + N
            across = N * (total[k] / new)
            for a in range(C):
                for four in range(a // 4):
                    if used[a, four]:
                        row_products(g, x, begun, a, 4 * four, middle, sums[0])
                        for i in range(4):
                            scatter[k, a, 4 * four + i] += sums[0, i] + across * step[a] * step[4 * four + i]
                if a % 4 == 0:
                    own_products(g, x, begun, a, middle, sums)
                    for i in range(min(4, C - a)):
                        for j in range(i + 1):
                            scatter[k, a + i, a + j] += sums[i, j] + across * step[a + i] * step[a + j]
            for c in range(C):
                mean[k, c] += step[c] * (N / new)
            total[k] = new


_forms = (_rows, _cube, _flags, _rows, _floats)


@kernel(nb.void(_rows, nb.int64, _floats), fuse=True)
def exponentials(b, K, top):
    """b[j, p] = exp(b[j, p] − top[p]) for j < K, where top[p] is the largest of them; what is below 1e-307 is 0.

    exp x = 2ᵐ exp r, where m is the low end of x / ln 2 + 1.5 · 2⁵²; shifted, it is the bits of 2ᵐ. A compiler that may reorder
    sums would undo this. exp r = 1 + r + r²/2 + r³ q(r) for |r| < 0.3475, where q, of degree 8, is off by 3e-17 r³ at most.
    """
    n = len(top)
    for p in range(n):
        top[p] = -1e300
    for j in range(K):
        row = b[j, :n]
        for p in range(n):
            top[p] = max(top[p], row[p])
    for j in range(K):
        row = b[j, :n]
        for p in range(n):
            x = max(row[p] - top[p], -708.0)
            shifted = x * 1.4426950408889634 + 6755399441055744.0
            whole = shifted - 6755399441055744.0
            r = (x - whole * 0.693147180369123816490) - whole * 1.90821492927058770002e-10
            q = 2.761409818752996e-07 + r * 2.5095778714723427e-08
            q = 2.755727966225757e-06 + r * q
            q = 2.4801535862366184e-05 + r * q
            q = 0.0001984126985454174 + r * q
            q = 0.0013888888906145676 + r * q
            q = 0.008333333333332131 + r * q
            q = 0.04166666666665104 + r * q
            q = 0.16666666666666666 + r * q
            bits = (np.float64(shifted).view(np.int64) + 1023) << 52
            y = (1.0 + (r + r * r * (0.5 + r * q))) * np.int64(bits).view(np.float64)
            row[p] = y if x > -707.0 else 0.0


@kernel(nb.void(_ints, nb.int64, _ints, _ints, nb.int64, nb.int64, nb.int64, _rows, _rows, _ints, _ints, _ints))
def lay(at, g, begin, length, L, P, m, x, out, steps, rows, owners):
    """out[c, p] = x[c, steps[p]] of the next m steps of a group, from step at[1] of lane at[0] on, with where their rows are and
    whose they are; `at` moves on."""
    p = 0
    while p < m:
        v, t = at
        own, first = min(m - p, length[g + v] - t), begin[g + v] + t
        for c in range(x.shape[0]):
            for i in range(own):
                out[c, p + i] = x[c, first + i]
        for i in range(own):
            steps[p + i], rows[p + i], owners[p + i] = first + i, ((t + i) * L + v) * P, g + v
        p += own
        ends = t + own == length[g + v]
        at[0], at[1] = v + 1 if ends else v, 0 if ends else t + own


@kernel(nb.void(*_group, _rows, *_forms, _codes, _rows, _floats, nb.boolean, nb.int64, nb.int64, _floats, _floats))
def fill(g, n, begin, length, x, centre, weight, used, base, constant, symbols, table, tops, logs, L, K, log_p, b):
    """The factors of a group's steps: of the numbers x (for the forms see `score_normals`), or without forms exp(x), over their
    largest, whose logarithms go to log_p; times those of the symbols, if there are any, whose `tops` do. Or the `logs` of all
    of this, the table's, too, and nothing to log_p."""
    P = table.shape[1]
    at, total, zero = np.zeros(2, np.int64), 0, np.int64(0)
    for v in range(g, g + n):
        total += length[v]
    numbers, own, top = np.empty((x.shape[0], CHUNK)), np.empty((base.shape[0], CHUNK)), np.zeros(CHUNK)
    steps, rows, owners = np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64)
    scored, shown = numbers if base.shape[0] == 0 else own, symbols.shape[0] > 0
    for done in range(0, total, CHUNK):
        m = min(CHUNK, total - done)
        lay(at, g, begin, length, L, P, m, x, numbers, steps, rows, owners)
        if base.shape[0]:
            score_normals(numbers, m, centre, weight, used, base, constant, zero, np.bool_(True), own)
        dense = scored.shape[0] > 0
        if dense and not logs:
            exponentials(scored, K, top[:m])
        for p in range(m):
            e, row = symbols[steps[p]] if shown else 0, rows[p]
            log_p[owners[p]] += top[p] + (tops[e] if shown and tops.shape[0] else 0.0)
            for j in range(K):
                if logs:
                    b[row + j] = (scored[j, p] if dense else 0.0) + (table[e, j] if shown else 0.0)
                else:
                    b[row + j] = (scored[j, p] if dense else 1.0) * (table[e, j] if shown else 1.0)
            for j in range(row + K, row + P):
                b[j] = 0.0


@kernel(nb.void(*_group, _rows, nb.int64, nb.int64, _floats, _flags, _floats, _rows, _cube))
def sum_lanes(g, n, begin, length, x, L, P, share, used, total, mean, scatter):
    """Add the moments of the numbers of a group's steps, weighted by the rows of `share`: see `sum_normals`."""
    at, every, none = np.zeros(2, np.int64), 0, np.zeros(0)
    for v in range(g, g + n):
        every += length[v]
    numbers, own = np.empty((x.shape[0], CHUNK)), np.empty((total.shape[0], CHUNK))
    steps, rows, owners = np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64)
    for done in range(0, every, CHUNK):
        m = min(CHUNK, every - done)
        lay(at, g, begin, length, L, P, m, x, numbers, steps, rows, owners)
        for p in range(m):
            for j in range(total.shape[0]):
                own[j, p] = share[rows[p] + j]
        sum_normals(numbers, m, own, np.int64(0), none, used, total, mean, scatter)


@kernel(nb.void(*_group, _floats, nb.int64, nb.int64, _floats, _rows))
def give(g, n, begin, length, weights, L, P, share, posterior):
    """Put the rows of a group's steps, without weights, where the steps are."""
    for v in range(n):
        weight = 1.0 / weights[g + v]
        for t in range(length[g + v]):
            for j in range(posterior.shape[0]):
                posterior[j, begin[g + v] + t] = share[(t * L + v) * P + j] * weight
