"""Counting by bitmaps: one bit a row and state; a cell of a table is the number of bits that its states have in common.

`bits[b, first[v] + s]` holds the rows of block b in which variable v has state s, 64 to a word; each counts `times[b]`. A *group*
is a prefix of variables with several extensions d; the table of each is over (prefix, d), d fastest. The bitmaps of a prefix's
cells are built once for all its extensions, and again only from the first variable on in which the next prefix differs. `rows`
are (bits, times, first, sizes), `groups` the prefixes, where the extensions of each begin, the extensions, and where each table
begins in `out`.

A *core* table leaves the last state of every variable out: ∏(r − 1) cells instead of ∏ r. The other cells follow by
subtraction from the tables of one variable less (`expand`). A *full* table needs no others; it leaves out only the last state
of its extension.

Counts are of 32 bits, as declared here; from 2³¹ rows on callers come with 64, and the kernels are compiled for them then.

And scores of finite families from tables of counts, in whole multiples of 1/scale. Whole numbers add up the same in any order,
so that a score does not depend on the order of rows, states or columns, and two equivalent graphs score exactly alike.

Kinds of score: 0 maximum likelihood (Σ c ln c); 1 BDeu (α rows spread over the cells); 2 Dirichlet (α in each cell);
3 BDs (α rows spread over the configurations of the parents that occur; Scutari 2016). A `form` is the kind, α, the price of a
parameter, known values of c ln c, and the scale.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from suffice.numerics.kernels import kernel, nb

_bits, _ints = nb.uint64[:, :, ::1], nb.int64[::1]
ROWS = nb.types.Tuple((_bits, _ints, _ints, _ints))
GROUPS = nb.types.Tuple((nb.int32[:, ::1], _ints, nb.int32[::1], _ints))
_form = nb.types.Tuple((nb.int64, nb.float64, nb.float64, _ints, nb.float64))
_counts = nb.int32[::1]  # or of 64 bits


class _Popcount:
    """The number of bits that are set: one instruction, which has no name in Python."""

    @staticmethod
    @cache
    def in_numba() -> Any:
        import numba
        from numba.extending import intrinsic

        def popcount(context: Any, word: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
                return builder.ctpop(arguments[0])

            return numba.uint64(numba.uint64), generate

        return intrinsic(popcount)

    def in_python(self) -> Any:
        return lambda word: int(word).bit_count()


popcount: Any = _Popcount()


@kernel(
    nb.void(nb.types.Array(nb.uint8, 1, "C", readonly=True), nb.int64, nb.int64, nb.uint64[:, ::1]), work=lambda codes: len(codes)
)
def set_bits(codes, first, word, bits):
    """Set the bits of one column of a block, from a word on."""
    for start in range(0, len(codes), 64):
        w = word + start // 64
        for k in range(min(64, len(codes) - start)):
            bits[first + codes[start + k], w] |= np.uint64(1) << np.uint64(k)


@kernel(nb.void(_bits, _ints, nb.int32[::1]), work=lambda bits: bits.size)
def count_states(bits, times, out):
    """Add the rows of all blocks to the number of rows of each state."""
    n_blocks, n_states, n_words = bits.shape
    for b in range(n_blocks):
        for s in range(n_states):
            row = bits[b, s]
            n = np.int64(0)
            for w in range(n_words):
                n += np.int64(popcount(row[w]))
            out[s] += n * times[b]


@kernel(
    nb.void(ROWS, GROUPS, nb.int64, nb.int64, nb.int32[::1]),
    work=lambda rows, groups, room, out: rows[0][:, 0].size * (len(out) + len(groups[0]) * room),
)
def count_groups(rows, groups, full, room, out):
    """Add the rows of all blocks to the tables of the groups: core tables, or full ones if `full` is 1. `room` is the largest
    number of cells that a prefix and its own prefixes have together."""
    (bits, times, first, sizes), (prefix, ext_first, ext, offsets) = rows, groups
    n_blocks, _, n_words = bits.shape
    n_groups, depth = prefix.shape
    cell = np.empty((room, n_words), np.uint64)
    total = np.zeros(room, np.int64)
    base, n_cells = np.zeros(depth + 1, np.int64), np.zeros(depth + 1, np.int64)
    for b in range(n_blocks):
        block, each = bits[b], times[b]
        for g in range(n_groups):
            same = 0
            if g > 0:
                while same < depth and prefix[g, same] == prefix[g - 1, same]:
                    same += 1
            for level in range(same, depth):
                v = prefix[g, level]
                e = sizes[v] - 1 + full
                before = n_cells[level - 1] if level else 1
                above = base[level - 1] if level else 0
                base[level] = above + before if level else 0
                n_cells[level] = before * e
                for c in range(before):
                    for s in range(e):
                        here = base[level] + c * e + s
                        one = block[first[v] + s]
                        row = cell[here]
                        n = np.int64(0)
                        if level == 0:
                            for w in range(n_words):
                                row[w] = one[w]
                                n += np.int64(popcount(one[w]))
                        elif total[above + c] > 0:
                            two = cell[above + c]
                            for w in range(n_words):
                                both = one[w] & two[w]
                                row[w] = both
                                n += np.int64(popcount(both))
                        total[here] = n
            last = base[depth - 1]
            for c in range(n_cells[depth - 1]):
                if total[last + c] == 0:
                    continue
                row = cell[last + c]
                for x in range(ext_first[g], ext_first[g + 1]):
                    d = ext[x]
                    r = sizes[d] - 1
                    at = offsets[x] + c * (r + full)
                    rest = total[last + c]
                    for s in range(r):
                        one = block[first[d] + s]
                        n = np.int64(0)
                        for w in range(n_words):
                            n += np.int64(popcount(one[w] & row[w]))
                        out[at + s] += n * each
                        rest -= n
                    if full:
                        out[at + r] += rest * each


@kernel(
    nb.void(nb.uint16[:, ::1], _ints, _ints, GROUPS, nb.int32[::1]),
    work=lambda codes, groups: codes.shape[1] * (groups[0].size + len(groups[2])),
)
def scan_groups(codes, weight, sizes, groups, out):
    """Add a block of rows to the full tables of the groups, row by row: for tables with many cells. `weight` is what each row
    counts, or empty where each counts once."""
    prefix, ext_first, ext, offsets = groups
    n_rows = codes.shape[1]
    n_groups, depth = prefix.shape
    index = np.empty(n_rows, np.int64)
    for g in range(n_groups):
        index[:] = 0
        for level in range(depth):
            v = prefix[g, level]
            column, r = codes[v], sizes[v]
            for i in range(n_rows):
                index[i] = index[i] * r + np.int64(column[i])
        for x in range(ext_first[g], ext_first[g + 1]):
            column, r, at = codes[ext[x]], sizes[ext[x]], offsets[x]
            if len(weight) > 0:
                for i in range(n_rows):
                    out[at + index[i] * r + np.int64(column[i])] += weight[i]
            else:
                for i in range(n_rows):
                    out[at + index[i] * r + np.int64(column[i])] += 1


@kernel(
    nb.void(nb.int32[:, ::1], _ints, nb.int32[::1], _ints, nb.int64[:, ::1], nb.int32[::1], _ints, nb.int32[::1], _ints),
    work=lambda sets, out: 2 * len(out) * sets.shape[1],
)
def expand(sets, sizes, core, core_at, sub, smaller, smaller_at, out, out_at):
    """Full tables of sets from their core tables, and the full tables of the sets without their j-th member, sub[:, j]."""
    n_sets, m = sets.shape
    r, stride, index = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    for g in range(n_sets):
        inner = 1
        for j in range(m - 1, -1, -1):
            r[j] = sizes[sets[g, j]]
            stride[j] = inner
            inner *= r[j]
        table, taken = out[out_at[g] :], core_at[g]
        for j in range(m - 1, -1, -1):
            known = smaller[smaller_at[sub[g, j]] :]
            outer = 1
            for i in range(j):
                outer *= r[i] - 1
                index[i] = 0
            step, here, there = stride[j], 0, 0
            for _ in range(outer):
                if j == m - 1:
                    rest = known[there]
                    for s in range(r[j] - 1):
                        table[here + s] = core[taken]
                        rest -= core[taken]
                        taken += 1
                    table[here + r[j] - 1] = rest
                else:
                    for t in range(step):
                        rest = known[there + t]
                        for s in range(r[j] - 1):
                            rest -= table[here + s * step + t]
                        table[here + (r[j] - 1) * step + t] = rest
                for i in range(j - 1, -1, -1):
                    index[i] += 1
                    here += stride[i]
                    there += stride[i] // r[j]
                    if index[i] < r[i] - 1:
                        break
                    here -= index[i] * stride[i]
                    there -= index[i] * (stride[i] // r[j])
                    index[i] = 0


def _steps(rows: Any, prefix: Any, ext: Any) -> float:
    """Words of the bitmaps of all cells."""
    bits, _, _, sizes = rows
    cells = float(np.prod(sizes[prefix[0]].astype(float)))
    return float(bits[:, 0].size) * cells * (2.0 + float(sizes[ext].sum()))


@kernel(nb.float64(nb.float64, nb.float64))
def rising(a, c):
    """ln Γ(a + c) − ln Γ(a) for a > 0: Stirling's series past 12, up to which both are shifted by products. The difference of the
    leading terms is taken before they are rounded, or a large a would leave no digits."""
    low, high, x, y, d = 1.0, 1.0, a, a + c, c
    if c < 9.0 and c == math.floor(c):
        total = 0.0
        for k in range(int(c)):
            low *= a + k
            if low > 1e250 or low < 1e-250:
                total += math.log(low)
                low = 1.0
        return total + math.log(low)
    while x < 12.0:
        low *= x
        x += 1.0
        d -= 1.0
    while y < 12.0:
        high *= y
        y += 1.0
        d += 1.0
    u, v = 1.0 / (x * x), 1.0 / (y * y)
    tail_x = (1 / 12 - u * (1 / 360 - u * (1 / 1260 - u * (1 / 1680 - u * (1 / 1188))))) / x
    tail_y = (1 / 12 - v * (1 / 360 - v * (1 / 1260 - v * (1 / 1680 - v * (1 / 1188))))) / y
    body = (x - 0.5) * math.log1p(d / x) + d * math.log(y) - d
    return body + tail_y - tail_x + math.log(low / high)


@kernel(nb.int64(nb.int64, nb.float64, nb.int64[::1], nb.float64), work=lambda: 20)
def term(c, a, known, scale):
    """What a cell of c rows adds to a set's term: c ln c if a is 0, else ln Γ(a + c) − ln Γ(a)."""
    if a == 0.0:
        return known[c] if c < len(known) else np.int64(round(c * math.log(c) * scale))
    return np.int64(round(rising(a, float(c)) * scale))


@kernel(
    nb.void(_counts, _ints, nb.float64[::1], _ints, nb.int64[:, ::1], nb.float64, _ints),
    work=lambda tables, at: 2 * (len(tables) + len(at)),
)
def set_terms(tables, at, alpha, kind, known, scale, out):
    """The term of each set: the sum over its cells, with alpha[kind[g]] imagined rows in each; of small c known[kind[g], c]."""
    for g in range(len(at) - 1):
        a, row = alpha[kind[g]], known[kind[g]]
        total = np.int64(0)
        for i in range(at[g], at[g + 1]):
            c = np.int64(tables[i])
            total += row[c] if c < len(row) else term(c, a, row, scale)
        out[g] = total


@kernel(nb.void(_counts, _ints, _ints, _ints, _ints, _form, _ints), work=lambda tables, at: 4 * (len(tables) + len(at)))
def family_terms(tables, at, outer, size, inner, form, out):
    """The log-likelihood or log-evidence of a child from its table [outer, child, inner]."""
    kind, alpha, _, known, scale = form
    for g in range(len(out)):
        table = tables[at[g] :]
        o, r, n = outer[g], size[g], inner[g]
        configurations = o * n
        if kind == 3:
            configurations = 0
            for i in range(o):
                for k in range(n):
                    some = False
                    for s in range(r):
                        some = some or table[(i * r + s) * n + k] > 0
                    configurations += some
        a = 0.0 if kind == 0 else alpha if kind == 2 else alpha / (configurations * r)
        total = np.int64(0)
        for i in range(o):
            for k in range(n):
                rows = np.int64(0)
                for s in range(r):
                    c = np.int64(table[(i * r + s) * n + k])
                    if c > 0:
                        rows += c
                        total += term(c, a, known, scale)
                if rows > 0:
                    total -= term(rows, a * r, known, scale)
        out[g] = total


@kernel(
    nb.void(_counts, _ints, _ints, nb.int32[::1], nb.int32[::1], _form, nb.float64[::1], nb.float64[::1]),
    work=lambda tables, prefix: 4 * len(tables) * (1 + len(prefix)),
)
def score_toggles(tables, at, sizes, prefix, ext, form, added, taken):
    """The scores of a child with one more parent, each of `ext`, and with one less, from the tables of (prefix, each of `ext`).
    `prefix` is its parents and then itself; what is left without one of them is the same table, summed over it."""
    price, scale = form[2], form[4]
    m, n = len(prefix) - 1, len(ext)
    r, q = sizes[prefix[m]], np.int64(1)
    for k in range(m):
        q *= sizes[prefix[k]]
    outer, size = np.full(n, q), np.full(n, r)
    inner, values = sizes[ext], np.empty(n, np.int64)
    family_terms(tables, at, outer, size, inner, form, values)
    for x in range(n):
        added[x] = values[x] / scale - price * (r - 1.0) * (q * inner[x])
    if len(taken) == 0:
        return
    whole = np.zeros(q * r, tables.dtype)
    extent = inner[0]
    for c in range(q * r):
        for s in range(extent):
            whole[c] += tables[c * extent + s]
    low = np.int64(1)
    for k in range(m):
        e = sizes[prefix[k]]
        high = q // (low * e) * r
        table = np.zeros(low * high, tables.dtype)
        for a in range(low):
            for s in range(e):
                for b in range(high):
                    table[a * high + b] += whole[(a * e + s) * high + b]
        outer[0], inner[0] = q // e, 1
        family_terms(table, at, outer, size, inner, form, values[:1])
        taken[k] = values[0] / scale - price * (r - 1.0) * (q // e)
        low *= e


@kernel(nb.void(ROWS, nb.int32[:, ::1], nb.int32[::1], _form, nb.float64[::1], nb.float64[::1]), work=_steps)
def toggle_scores(rows, prefix, ext, form, added, taken):
    """The same from bitmaps, counted and scored in one call: of few rows, calls are what costs. prefix[0] is the prefix."""
    sizes, room, q = rows[3], np.int64(0), np.int64(1)
    for v in prefix[0]:
        q *= sizes[v]
        room += q
    n = len(ext)
    at, ends = np.zeros(n + 1, np.int64), np.zeros(2, np.int64)
    ends[1] = n
    for x in range(n):
        at[x + 1] = at[x] + q * sizes[ext[x]]
    tables = np.zeros(at[n], np.int32)
    count_groups(rows, (prefix, ends, ext, at), np.int64(1), room, tables)
    score_toggles(tables, at, sizes, prefix[0], ext, form, added, taken)


@kernel(
    nb.void(nb.int32[:, ::1], nb.int64[:, ::1], nb.float64[:, ::1], nb.boolean[:, ::1], nb.float64[:, ::1], nb.boolean[:, ::1]),
    work=lambda sets: sets.size * sets.shape[1],
)
def prune(sets, sub, score, allowed, below, keep):
    """Which families of one size beat all their subsets. score[g, j] is that of child sets[g, j] given the other members.
    below[h, i] is the best of the families of one member less and of their subsets; on return score[g, j] is so for these."""
    n_sets, m = sets.shape
    for g in range(n_sets):
        for j in range(m):
            top = -np.inf
            for k in range(m):
                if k != j:
                    top = max(top, below[sub[g, k], j - 1 if k < j else j])
            mine = score[g, j]
            keep[g, j] = allowed[g, j] and mine > -np.inf and (top == -np.inf or mine > top + 1e-9 * (1.0 + abs(top)))
            score[g, j] = max(top, mine) if allowed[g, j] else top
