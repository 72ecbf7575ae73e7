"""Counting: the contingency tables of many sets of columns in one call.

Columns are the rows of two arrays: `narrow` (one byte a cell) and `wide` (four). Table t counts the columns
members[first[t]:first[t+1]], where m >= 0 is narrow[m] and m < 0 is wide[~m], with as many states as `sizes` says. Its cells
lie at out[offsets[t]:offsets[t+1]], the last column fastest.
And draws from the rows of tables of probabilities.
"""

import numpy as np

from suffice.kernels import kernel, nb

ROWS = 4096
"""Rows whose indices are computed at once: small enough for the first-level cache, long enough to vectorise."""

LANES = 4
"""Copies of a small table, so that equal cells in neighbouring rows do not wait for each other's store."""

SMALL = 4096
"""Cells up to which a table is counted in lanes. In larger ones neighbouring rows seldom meet."""

_narrow, _wide = nb.uint8[:, ::1], nb.uint32[:, ::1]
_plan = (nb.int64[::1], nb.int32[::1], nb.int64[::1], nb.int64[::1])


@kernel(nb.void(_narrow, _wide, nb.int64, nb.int64, nb.int64, nb.int64, nb.int32[::1], nb.int64[::1], nb.uint32[::1]))
def indices(narrow, wide, start, stop, low, high, members, sizes, index):
    """The cell of each row from `start` to `stop` in the table of members[low:high]."""
    n = stop - start
    if high - low >= 2 and members[low] >= 0 and members[low + 1] >= 0:
        # Two columns at once: a third of the time of a table goes into passes over `index`.
        size, one, two = np.uint32(sizes[low + 1]), narrow[members[low], start:stop], narrow[members[low + 1], start:stop]
        for i in range(n):
            index[i] = np.uint32(one[i]) * size + np.uint32(two[i])
        low += 2
    else:
        index[:n] = 0
    for j in range(low, high):
        size = np.uint32(sizes[j])
        m = members[j]
        if m >= 0:
            byte = narrow[m, start:stop]
            for i in range(n):
                index[i] = index[i] * size + np.uint32(byte[i])
        else:
            word = wide[~m, start:stop]
            for i in range(n):
                index[i] = index[i] * size + word[i]


@kernel(
    nb.void(_narrow, _wide, nb.int64, *_plan, nb.int64[::1]),
    work=lambda n_rows, members, out: 2 * n_rows * len(members) + len(out),
)
def count(narrow, wide, n_rows, first, members, sizes, offsets, out):
    """Add the first `n_rows` rows to the tables in `out`."""
    index = np.empty(ROWS, np.uint32)
    lanes = np.empty(LANES * SMALL, np.int32)
    for t in range(len(first) - 1):
        cells = offsets[t + 1] - offsets[t]
        table = out[offsets[t] : offsets[t + 1]]
        small = cells <= SMALL
        if small:
            lanes[: LANES * cells] = 0
            lane0, lane1, lane2, lane3 = lanes[:cells], lanes[cells:], lanes[2 * cells :], lanes[3 * cells :]
        for start in range(0, n_rows, ROWS):
            stop = min(start + ROWS, n_rows)
            n = stop - start
            indices(narrow, wide, start, stop, first[t], first[t + 1], members, sizes, index)
            if small:
                quads = n // LANES * LANES
                for i in range(0, quads, LANES):
                    lane0[index[i]] += 1
                    lane1[index[i + 1]] += 1
                    lane2[index[i + 2]] += 1
                    lane3[index[i + 3]] += 1
                for i in range(quads, n):
                    lane0[index[i]] += 1
            else:
                for i in range(n):
                    table[index[i]] += 1
        if small:
            for c in range(cells):
                table[c] += lane0[c] + lane1[c] + lane2[c] + lane3[c]


@kernel(
    nb.void(_narrow, _wide, nb.float64[::1], nb.int64, *_plan, nb.float64[::1]),
    work=lambda n_rows, members: 2 * n_rows * len(members),
)
def count_weighted(narrow, wide, weight, n_rows, first, members, sizes, offsets, out):
    """Add the weights of the first `n_rows` rows to the tables in `out`."""
    index = np.empty(ROWS, np.uint32)
    for t in range(len(first) - 1):
        table = out[offsets[t] : offsets[t + 1]]
        for start in range(0, n_rows, ROWS):
            stop = min(start + ROWS, n_rows)
            indices(narrow, wide, start, stop, first[t], first[t + 1], members, sizes, index)
            part = weight[start:stop]
            for i in range(stop - start):
                table[index[i]] += part[i]


@kernel(
    nb.void(nb.float64[:, ::1], nb.int64[::1], nb.float64[::1], nb.int32[::1]), work=lambda ends, out: len(out) * ends.shape[1]
)
def draw_codes(ends, rows, uniforms, out):
    """out[i] = the first x with uniforms[i] < ends[rows[i], x], where `ends` are cumulative probabilities."""
    last = ends.shape[1] - 1
    for i in range(out.shape[0]):
        row = rows[i]
        u = uniforms[i]
        x = 0
        for k in range(last):
            x += u >= ends[row, k]
        out[i] = x
