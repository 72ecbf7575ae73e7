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
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from suffice.kernels import kernel, nb

_bits = nb.uint64[:, :, ::1]
_ints = nb.int64[::1]
ROWS = nb.types.Tuple((_bits, _ints, _ints, _ints))
GROUPS = nb.types.Tuple((nb.int32[:, ::1], _ints, nb.int32[::1], _ints))


class _Popcount:
    """The number of bits that are set: one instruction, which has no name in Python."""

    def in_numba(self) -> Any:
        return _popcount()

    def in_python(self) -> Any:
        return lambda word: int(word).bit_count()


@cache
def _popcount() -> Any:
    import numba
    from numba.extending import intrinsic

    def popcount(context: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.ctpop(arguments[0])

        return numba.uint64(numba.uint64), generate

    return intrinsic(popcount)


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
    """Add the rows of all blocks to the tables of the groups: core tables, or full ones if `full` is 1.

    `room` is the largest number of cells that a prefix and its own prefixes have together.
    """
    (bits, times, first, sizes), (prefix, ext_first, ext, offsets) = rows, groups
    n_blocks, _, n_words = bits.shape
    n_groups, depth = prefix.shape
    cell = np.empty((room, n_words), np.uint64)
    total = np.zeros(room, np.int64)
    base = np.zeros(depth + 1, np.int64)
    n_cells = np.zeros(depth + 1, np.int64)
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
    """Add a block of rows to the full tables of the groups, row by row: for tables with many cells.

    `weight` is what each row counts, or empty where each counts once.
    """
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
    r = np.empty(m, np.int64)
    stride = np.empty(m, np.int64)
    index = np.empty(m, np.int64)
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
