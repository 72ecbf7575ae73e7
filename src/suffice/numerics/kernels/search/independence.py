"""Tests of independence of many pairs of columns, each given many sets of others, enumerated here.

`codes` holds a finite column in each row, `sizes` its number of states, and `weight` what each row counts, or nothing where each
counts once; `correlation` stands for numbers. bits[b, at[v] + s] are the rows of block b in which column v has state s, 64 to a
word, each of which counts times[b]; at[v] is -1 where there are none.
Statistics are compared by the logarithm of their p-value: a strong dependence underflows otherwise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from suffice.numerics.kernels import kernel, nb
from suffice.numerics.kernels.counting.bitmaps import ROWS as BIT_ROWS
from suffice.numerics.kernels.counting.bitmaps import popcount

ROWS = 4096
"""Rows whose cells are computed at once: they stay in the first-level cache."""
BITS = 512
"""Cells up to which a table is counted by bitmaps: a cell costs 0.002 ns a row, a scan of the rows 1 to 2 ns, by measurement."""
PAIR = 64
"""Cells of the table of two columns up to which its bitmaps are kept."""
LARGE_A = 1e7
"""From half so many degrees of freedom on, Wilson & Hilferty's normal is right to all digits that matter."""
COLLINEAR = 1e-11
"""A column with a smaller share of variance of its own is a combination of those given."""

_codes, _ints, _floats, _members = nb.uint16[:, ::1], nb.int64[::1], nb.float64[::1], nb.int32[::1]
_blocks = nb.uint64[:, :, ::1]
_result = nb.types.UniTuple(nb.float64, 2)


def _steps(rows: Any, sets: Any, owner: Any, k: int) -> float:
    """Words of the bitmaps of all cells, or rows, if every test is made."""
    codes, _, bits, _, at, sizes, _ = rows
    cells = float(sizes.max(initial=1)) ** (k + 2)
    counted = bits[:, 0].size * cells if cells <= BITS and (at >= 0).all() else codes.shape[1] * (k + 3.0)
    return float(len(owner) * (counted + 4.0 * cells))


@kernel(nb.float64(nb.float64))
def log_normal_tails(z):
    """log P(|Z| > z) of a standard normal Z."""
    if z < 25.0:
        return math.log(math.erfc(z / math.sqrt(2.0)))
    s = 1.0 / (z * z)  # the asymptotic series, right to 1e-13 from here on
    return (
        -0.5 * z * z
        - math.log(z)
        + 0.5 * math.log(2.0 / math.pi)
        + math.log1p(-s * (1.0 - 3.0 * s * (1.0 - 5.0 * s * (1.0 - 7.0 * s))))
    )


@kernel(nb.float64(nb.float64))
def log_gamma(a):
    """ln Γ(a) for a > 0: Stirling's series past 12. That of `math` is another one when it is compiled."""
    low, x = 1.0, a
    while x < 12.0:
        low *= x
        x += 1.0
    s = 1.0 / (x * x)
    stirling = (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - s / 1188.0)))) / x
    return (x - 0.5) * math.log(x) - x + 0.5 * math.log(2.0 * math.pi) + stirling - math.log(low)


@kernel(nb.float64(nb.float64, nb.float64))
def log_chi_square_tail(statistic, df):
    """log P(X > statistic) of a chi-square X: log Q(a, x), the incomplete gamma function with a = df/2, x = statistic/2. By its
    series below a + 1 and Lentz's continued fraction above (Press et al., Numerical Recipes, 6.2). The factor before both, x^a
    e^-x / Γ(a), is taken relative to its peak at x = a, where the terms of its logarithm would cancel."""
    if df <= 0.0 or statistic <= 0.0:
        return 0.0
    a, x = 0.5 * df, 0.5 * statistic
    if x == np.inf:
        return -np.inf
    if a > LARGE_A:
        z = ((x / a) ** (1.0 / 3.0) - 1.0 + 1.0 / (9.0 * a)) * math.sqrt(9.0 * a)
        return log_normal_tails(z) - math.log(2.0) if z > 0.0 else math.log1p(-0.5 * math.erfc(-z / math.sqrt(2.0)))
    if a < 10.0:
        log_front: float = a * math.log(x) - x - log_gamma(a)
    else:
        u, s = (x - a) / a, 1.0 / (a * a)
        stirling = (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0 - s / 1188.0)))) / a
        log_front = a * (math.log1p(u) - u) + 0.5 * math.log(a / (2.0 * math.pi)) - stirling
    if x < a + 1.0:
        term = total = 1.0 / a
        b = a
        while term > total * 1e-17:
            b += 1.0
            term *= x / b
            total += term
        return math.log1p(-min(math.exp(log_front) * total, 1.0))
    b = x + 1.0 - a
    c, d = 1e300, 1.0 / b
    h = d
    for i in range(1, 1_000_000):
        step = -i * (i - a)
        b += 2.0
        d = 1.0 / (step * d + b)
        c = b + step / c
        h *= c * d
        if abs(c * d - 1.0) < 1e-16:
            break
    return log_front + math.log(h)


@kernel(nb.int64(nb.uint64[::1], nb.uint32[::1]))
def label(keys, labels):
    """Number the different keys in the order in which they come; gives how many there are."""
    size = 16
    while size < 2 * len(keys):
        size *= 2
    slots, used = np.empty(size, np.uint64), np.full(size, -1, np.int32)
    mask, n = np.uint64(size - 1), 0
    for i in range(len(keys)):
        key = keys[i]
        mixed = (key ^ (key >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
        place = (mixed >> np.uint64(32)) & mask
        while used[place] >= 0 and slots[place] != key:
            place = (place + np.uint64(1)) & mask
        if used[place] < 0:
            used[place], slots[place] = n, key
            n += 1
        labels[i] = used[place]
    return n


@kernel(nb.float64(nb.int64, _floats))
def n_log_n(n, logs):
    """n · log n, which logs[n] is as far as it goes."""
    return logs[n] if n < len(logs) else n * math.log(n)


@kernel(_result(nb.int32[::1], nb.int64, nb.int64, nb.int64, nb.boolean, _floats, nb.int64[:, ::1]))
def sum_tables(table, q, r, c, pearson, logs, margins):
    """G² or X² of q tables of r by c cells, and the degrees of freedom of what is not empty in each.

    G²   2 Σ n log(n n_z / (n_xz n_yz))
    X²   Σ n² n_z / (n_xz n_yz) - n_z, over the cells that are not empty
    """
    statistic, df = 0.0, 0.0
    rows, columns = margins[0], margins[1]
    for z in range(q):
        base = z * r * c
        total = np.int64(0)  # a literal would be a type of its own
        for j in range(c):
            columns[j] = 0
        for i in range(r):
            row = 0
            for j in range(c):
                cell = table[base + i * c + j]
                row += cell
                columns[j] += cell
            rows[i] = row
            total += row
        if total < 2:  # a single row says nothing
            continue
        n_rows = n_columns = 0
        part = 0.0
        for j in range(c):
            n_columns += columns[j] > 0
            part -= n_log_n(columns[j], logs)
        for i in range(r):
            n_rows += rows[i] > 0
            part -= n_log_n(rows[i], logs)
        df += (n_rows - 1) * (n_columns - 1)
        if pearson:
            part = -1.0
        for i in range(r):
            for j in range(c):
                cell = table[base + i * c + j]
                if cell > 0:
                    part += float(cell) * cell / (float(rows[i]) * columns[j]) if pearson else n_log_n(np.int64(cell), logs)
        statistic += total * part if pearson else 2.0 * (part + n_log_n(total, logs))
    return max(statistic, 0.0), df


@kernel(nb.int64(_codes, _ints, _members, nb.int64, nb.uint32[::1]))
def strata(codes, sizes, given, k, labels):
    """Number the configurations of the first k of `given` that occur; gives how many there are."""
    keys, configurations, n = np.zeros(len(labels), np.uint64), 1.0, 1
    for j in range(k + 1):
        if j == k or configurations * sizes[given[j]] > 2.0**62:
            n = label(keys, labels)
            for i in range(len(labels)):
                keys[i] = np.uint64(labels[i])
            configurations = float(n)
        if j < k:
            states, column = np.uint64(sizes[given[j]]), codes[given[j]]
            for i in range(len(labels)):
                keys[i] = keys[i] * states + np.uint64(column[i])
            configurations *= sizes[given[j]]
    return n


@kernel(nb.void(_codes, _ints, _ints, _members, nb.int64, nb.int64, nb.uint16[::1], nb.int64, nb.int32[::1]))
def tabulate(codes, weight, sizes, given, k, block, pair, size, table):
    """Count the table of the first k of `given` and a pair; pair[i] < block is row i's cell in the table of the pair alone."""
    index = np.empty(ROWS, np.uint32)
    table[:size] = 0
    for start in range(0, len(pair), ROWS):
        m = min(ROWS, len(pair) - start)
        index[:m] = 0
        for j in range(k):
            column, states = codes[given[j], start : start + m], np.uint32(sizes[given[j]])
            for i in range(m):
                index[i] = index[i] * states + np.uint32(column[i])
        if len(weight) > 0:
            for i in range(m):
                table[index[i] * np.uint32(block) + np.uint32(pair[start + i])] += weight[start + i]
        else:
            for i in range(m):
                table[index[i] * np.uint32(block) + np.uint32(pair[start + i])] += 1


@kernel(nb.void(BIT_ROWS, _members, nb.int64, nb.int64, _blocks, _ints, nb.int32[::1], nb.uint64[:, ::1], _ints))
def tabulate_bits(rows, given, k, block, pair, n_rows, table, cell, total):
    """The same by bitmaps; pair[b, j] are the rows of block b, n_rows[b] in all, in cell j of the pair's table. The
    configurations of the first j of `given` are rows of `cell`, those of the first j + 1 come after them."""
    bits, times, at, sizes = rows
    n_words = bits.shape[2]
    for b in range(len(bits)):
        start, n = 0, 1
        cell[0] = ~np.uint64(0)
        total[0] = n_rows[b]
        for j in range(k):
            states, base = sizes[given[j]], at[given[j]]
            for c in range(n):
                for s in range(states):
                    here, count = start + n + c * states + s, np.int64(0)
                    if total[start + c] > 0:
                        one, two, both = cell[start + c], bits[b, base + s], cell[here]
                        for w in range(n_words):
                            both[w] = one[w] & two[w]
                            count += np.int64(popcount(both[w]))
                    total[here] = count
            start, n = start + n, n * states
        for c in range(n):
            left = total[start + c]
            one, out = cell[start + c], table[c * block :]
            for j in range(block):
                count = left
                if left > 0 and j < block - 1:
                    two = pair[b, j]
                    count = np.int64(0)
                    for w in range(n_words):
                        count += np.int64(popcount(one[w] & two[w]))
                left -= count
                out[j] = count * times[b] if b == 0 else out[j] + count * times[b]


@kernel(nb.void(nb.uint32[::1], nb.int64, nb.uint16[::1], _ints, nb.int32[::1], nb.uint16[::1], _ints))
def by_stratum(labels, n, pair, weight, ends, cells, counts):
    """Bring the cells of `pair`, and what each counts, into the order of their strata; stratum s ends at ends[s]."""
    ends[:n] = 0
    for i in range(len(labels)):
        ends[labels[i]] += 1
    total = 0
    for s in range(n):
        count = ends[s]
        ends[s] = total
        total += count
    for i in range(len(labels)):
        cells[ends[labels[i]]] = pair[i]
        counts[ends[labels[i]]] = weight[i] if len(weight) > 0 else 1
        ends[labels[i]] += 1


@kernel(nb.float64(nb.float64[:, ::1], nb.int64, nb.int64, _members, nb.int64, nb.int64, nb.float64[:, ::1], nb.float64[:, ::1]))
def partial_correlation(correlation, x, y, given, k, same, factor, rest):
    """The correlation of x and y given the first k of `given`, of which the first `same` are as in the call before. `factor` is
    Cholesky's of the given, `rest` the rows of x and y below it. A given column that is a combination of those before it adds
    nothing; where x or y is one, the correlation is 0."""
    for j in range(same, k):
        v = given[j]
        own = correlation[v, v]
        for i in range(j):
            value = correlation[v, given[i]]
            for t in range(i):
                value -= factor[j, t] * factor[i, t]
            value = value / factor[i, i] if factor[i, i] > 0.0 else 0.0
            factor[j, i] = value
            own -= value * value
        factor[j, j] = math.sqrt(own) if own > COLLINEAR else 0.0
        for side in range(2):
            value = correlation[x if side == 0 else y, v]
            for t in range(j):
                value -= rest[side, t] * factor[j, t]
            rest[side, j] = value / factor[j, j] if own > COLLINEAR else 0.0
    xx, yy, xy = correlation[x, x], correlation[y, y], correlation[x, y]
    for j in range(k):
        xx -= rest[0, j] * rest[0, j]
        yy -= rest[1, j] * rest[1, j]
        xy -= rest[0, j] * rest[1, j]
    if xx <= COLLINEAR or yy <= COLLINEAR:
        return 0.0
    return max(-1.0, min(1.0, xy / math.sqrt(xx * yy)))


@kernel(
    nb.int64(
        *(nb.int32[:, ::1], nb.int32[:, ::1], _members, _ints, _members),
        *(nb.int64, nb.boolean[::1], _ints, _members, nb.int32[:, ::1]),
    ),
    work=lambda pairs, first, pool, k, owner: len(pairs) * len(first) + len(pool) + len(owner) * (k + 2),
)
def subsets(pairs, which, always, first, pool, k, done, cursor, owner, sets):
    """Write the next sets of k members that the pairs are to be tested with, as far as there is room; gives their number.

    Pool v is pool[first[v]:first[v+1]], sorted. The sets of pair e = owner[i] are those of the pool which[e, 0] in lexicographic
    order, then those of which[e, 1] that are not among them, without the pair itself; always[e] is in each; -1 is no pool or
    no member. A pair that is done is passed over. `cursor` (e, which pool, whether it was begun, the places chosen last) starts
    as zeros.
    """
    n, chosen = 0, cursor[3:]
    e, side, begun = cursor[0], cursor[1], cursor[2]
    marked = np.zeros(len(first), np.bool_)
    while e < len(pairs):
        fixed, v = 1 if always[e] >= 0 else 0, which[e, side]
        start, m, size = 0, 0, k - fixed
        if v >= 0:
            start = first[v]
            m = first[v + 1] - start
        skipped = m
        for i in range(m):
            if pool[start + i] == pairs[e, 1 - side]:
                skipped = i
        m -= skipped < m
        more = not done[e] and 0 <= size <= m and (side == 0 or size > 0)
        if more and side == 1:
            for i in range(first[which[e, 0]], first[which[e, 0] + 1]):
                marked[pool[i]] = True
        if begun == 0:
            for j in range(size):
                chosen[j] = j
        begun = 0
        while more and n < len(owner):
            new = side == 0
            owner[n] = e
            if fixed > 0:
                sets[n, 0] = always[e]
            for j in range(size):
                member = pool[start + chosen[j] + (chosen[j] >= skipped)]
                sets[n, fixed + j] = member
                new = new or not marked[member]
            n += new
            j = size - 1
            while j >= 0 and chosen[j] == m - size + j:
                j -= 1
            more = j >= 0
            if more:
                chosen[j] += 1
                for i in range(j + 1, size):
                    chosen[i] = chosen[i - 1] + 1
        if side == 1:
            marked[:] = False
        if more:
            begun = 1
            break
        side += 1
        if side == 2:
            e, side = e + 1, 0
    cursor[0], cursor[1], cursor[2] = e, side, begun
    return n


@kernel(
    nb.void(
        *(nb.types.Tuple((_codes, _ints, _blocks, _ints, _ints, _ints, _floats)), nb.int32[:, ::1], _members, nb.int32[:, ::1]),
        *(nb.int64, nb.boolean, nb.boolean, nb.float64, _floats),
    ),
    work=_steps,
)
def table_tests(rows, pairs, owner, sets, k, pearson, adjusted, enough, log_p):
    """log p of pairs[owner[i]] given the first k of sets[i]; NaN once a set before has brought the same pair above `enough`.

    Where `table` has no room for all configurations of a set, those that occur are numbered, and tabulated one after the other.
    """
    codes, weight, bits, times, at, sizes, logs = rows
    n_rows, widest = codes.shape[1], sizes.max()
    whole = weight.sum() if len(weight) > 0 else n_rows
    table = np.empty(max(2**12, widest * widest, min(8 * whole, 2**22)), np.int32)
    pair, margins = np.empty(n_rows, np.uint16), np.empty((2, widest), np.int64)
    labels, ends, cells, counts = np.empty(0, np.uint32), np.empty(0, np.int32), np.empty(0, np.uint16), np.empty(0, np.int64)
    pair_bits, in_block = np.empty((len(bits), PAIR, bits.shape[2]), np.uint64), np.empty(len(bits), np.int64)
    cell, total = np.empty((2 * BITS, bits.shape[2]), np.uint64), np.empty(2 * BITS, np.int64)
    coded = paired = -1
    for i in range(len(owner)):
        e = owner[i]
        x, y = pairs[e, 0], pairs[e, 1]
        if i > 0 and owner[i - 1] == e and not log_p[i - 1] <= enough:
            log_p[i] = np.nan
            continue
        block = sizes[x] * sizes[y]
        configurations, mapped = 1.0, block <= PAIR and min(at[x], at[y]) >= 0
        for j in range(k):
            configurations *= sizes[sets[i, j]]
            mapped = mapped and at[sets[i, j]] >= 0
        mapped = mapped and configurations * block <= BITS
        if mapped and paired != e:
            paired = e
            for b in range(len(bits)):
                n = np.int64(0)
                for j in range(block):
                    one, two, both = bits[b, at[x] + j // sizes[y]], bits[b, at[y] + j % sizes[y]], pair_bits[b, j]
                    for w in range(len(both)):
                        both[w] = one[w] & two[w]
                        n += np.int64(popcount(both[w]))
                in_block[b] = n
        if not mapped and coded != e:
            coded, states, left, right = e, np.uint16(sizes[y]), codes[x], codes[y]
            for row in range(n_rows):
                pair[row] = np.uint16(left[row]) * states + np.uint16(right[row])
        at_once, n_parts, listed = int(min(configurations, 2.0**32)), 1, configurations * block > len(table)
        if listed:
            if len(labels) == 0:
                labels, ends = np.empty(n_rows, np.uint32), np.empty(n_rows, np.int32)
                cells, counts = np.empty(n_rows, np.uint16), np.empty(n_rows, np.int64)
            at_once, n_parts = 1, strata(codes, sizes, sets[i], k, labels)
            by_stratum(labels, n_parts, pair, weight, ends, cells, counts)
        elif mapped:
            tabulate_bits((bits, times, at, sizes), sets[i], k, block, pair_bits, in_block, table, cell, total)
        else:
            tabulate(codes, weight, sizes, sets[i], k, block, pair, at_once * block, table)
        statistic, df, start = 0.0, 0.0, 0
        for part in range(n_parts):
            if listed:
                low, start = start, ends[part]
                if start - low < 2:
                    continue
                table[:block] = 0
                for row in range(low, start):
                    table[cells[row]] += counts[row]
            more, more_df = sum_tables(table, at_once, sizes[x], sizes[y], pearson, logs, margins)
            statistic += more
            df += more_df
        if not adjusted:
            df = configurations * (sizes[x] - 1) * (sizes[y] - 1)
        if statistic < 1e-14 * n_log_n(np.int64(whole), logs):  # what rounding leaves of the sums
            statistic = 0.0
        log_p[i] = log_chi_square_tail(statistic, df)


@kernel(
    nb.void(nb.float64[:, ::1], nb.float64, nb.int32[:, ::1], _members, nb.int32[:, ::1], nb.int64, nb.float64, _floats),
    work=lambda owner, k: 4 * len(owner) * (k + 2) ** 2,
)
def partial_tests(correlation, weight, pairs, owner, sets, k, enough, log_p):
    """The same by Fisher's z of partial correlations: z = atanh(r) · sqrt(weight - k - 3)."""
    factor, rest = np.zeros((k, k)), np.zeros((2, k))
    for i in range(len(owner)):
        e = owner[i]
        same = 0
        if i > 0 and owner[i - 1] == e:
            if not log_p[i - 1] <= enough:
                log_p[i] = np.nan
                continue
            while same < k and sets[i, same] == sets[i - 1, same]:
                same += 1
        r = partial_correlation(correlation, np.int64(pairs[e, 0]), np.int64(pairs[e, 1]), sets[i], k, same, factor, rest)
        if weight - k - 3.0 <= 0.0:
            log_p[i] = 0.0
        elif abs(r) >= 1.0:
            log_p[i] = -np.inf
        else:
            log_p[i] = log_normal_tails(abs(math.atanh(r)) * math.sqrt(weight - k - 3.0))
