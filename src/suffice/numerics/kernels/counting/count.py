"""Counting: the contingency tables of many sets of columns in one call.

Columns are the rows of two arrays: `narrow` (one byte a cell) and `wide` (four). Table t counts the columns
members[first[t]:first[t+1]], where m >= 0 is narrow[m] and m < 0 is wide[~m], with as many states as `sizes` says. Its cells
lie at out[offsets[t]:offsets[t+1]], the last column fastest.
And draws from the rows of tables of probabilities.

Incomplete rows reduced to what an E-step needs of them: counts of complete families, and distinct components.

Given what a row shows, its missing variables fall into components: those that share a family belong together. A component is
told by its shape (which variables are missing) and, for each family that touches it, where in its table the observed states
lead. Equal components are kept once, with their weight: however many rows there are, there are few of them.

    shape    m, k, the m variables, the k families that touch them
    record   for each of these families the place in all tables of its first cell that the observed states leave
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.numerics.kernels import kernel, nb

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


_ints, _places, _floats, _keys = nb.int64[::1], nb.int32[::1], nb.float64[::1], nb.uint64[::1]
_layout, _sums = nb.types.UniTuple(_ints, 7), nb.types.UniTuple(_floats, 2)
_shapes = nb.types.Tuple((_places, _ints, _keys, _ints))
_records = nb.types.Tuple((_places, _ints, _ints, _floats, _keys, _ints))
_theirs = nb.types.Tuple((_places, _ints, _places, _ints, _ints, _floats))


BASIS, PRIME = np.uint64(1469598103934665603), np.uint64(1099511628211)
"""Those of the hash of Fowler, Noll and Vo."""


@kernel(nb.int64(nb.int64, nb.int64, _shapes, _records))
def _room(n, n_families, all_shapes, all_records):
    """For how many rows there is room, whatever their components are."""
    shapes, shape_at, shape_slots = all_shapes[0], all_shapes[1], all_shapes[3]
    records, record_at, record_slots = all_records[0], all_records[1], all_records[5]
    left = (len(shapes) - shape_at[1 + shape_at[0]]) // (4 * n + 2 * n_families + 4)
    left = min(left, (len(shape_at) - shape_at[0] - 3) // n, (len(shape_slots) // 2 - shape_at[0]) // n)
    left = min(left, (len(records) - record_at[1 + record_at[0]]) // n_families)
    return int(min(left, (len(record_at) - record_at[0] - 3) // n, (len(record_slots) // 2 - record_at[0]) // n))


@kernel(nb.int64(nb.int64, nb.int64, _ints, _ints, _shapes))
def _shape_of(m, k, variables, families, all_shapes):
    """The number of the shape of m variables and k families, which is a new one if it is not there yet."""
    shapes, shape_at, shape_key, shape_slots = all_shapes
    key = BASIS
    for i in range(m):
        key = (key ^ np.uint64(variables[i])) * PRIME
    slot = np.int64((key >> np.uint64(17)) % np.uint64(len(shape_slots)))
    while shape_slots[slot] >= 0:
        there = shape_at[1 + shape_slots[slot]]
        same = shapes[there] == m
        for i in range(m if same else 0):
            if shapes[there + 2 + i] != variables[i]:
                same = False
                break
        if same:
            return int(shape_slots[slot])
        slot = (slot + 1) % len(shape_slots)
    shape = shape_at[0]
    shape_slots[slot], shape_key[shape] = shape, key
    at = shape_at[1 + shape]
    shapes[at], shapes[at + 1] = m, k
    for i in range(m):
        shapes[at + 2 + i] = variables[i]
    for i in range(k):
        shapes[at + 2 + m + i] = families[i]
    shape_at[0] += 1
    shape_at[2 + shape] = at + 2 + m + k
    return int(shape)


@kernel(nb.int64(nb.int64, nb.int64, nb.float64, _records))
def _weigh(shape, k, w, all_records):
    """Give weight to the record whose k places were written behind the last one: it stays if it is new. The number of the
    record."""
    records, record_at, record_shape, multiplicity, record_key, record_slots = all_records
    at = record_at[1 + record_at[0]]
    key = BASIS ^ np.uint64(shape)
    for i in range(k):
        key = (key ^ np.uint64(records[at + i])) * PRIME
    slot = np.int64((key >> np.uint64(17)) % np.uint64(len(record_slots)))
    while record_slots[slot] >= 0:
        other = record_slots[slot]
        same = record_key[other] == key and record_shape[other] == shape
        for i in range(k if same else 0):
            if records[record_at[1 + other] + i] != records[at + i]:
                same = False
                break
        if same:
            multiplicity[other] += w
            return int(other)
        slot = (slot + 1) % len(record_slots)
    record = record_at[0]
    record_slots[slot] = record
    record_key[record], record_shape[record], multiplicity[record] = key, shape, w
    record_at[0] += 1
    record_at[2 + record] = at + k
    return int(record)


@kernel(
    nb.int64(nb.int64, nb.int32[:, ::1], _floats, _layout, _sums, _ints, _shapes, _records),
    work=lambda codes, tables: len(codes) * (codes.shape[1] + len(tables[1])),
)
def reduce_rows(first, codes, weight, tables, sums, work, all_shapes, all_records):
    """Take the rows from `first` on; the row before which room ran out. A missing code is −1, and becomes ~ its record.

    Of shapes and records, `at[0]` is their number and `at[1 + i]` where the i-th begins (one more: where the next would); slots
    find them by a hash (−1: empty). `states` counts the observed states of each variable, from `state_start` on. `work` has room
    for 2 numbers a variable and 3 a family.
    """
    scope_start, scopes, strides, table_start, touch_start, touches, state_start = tables
    counts, states = sums
    records, record_at = all_records[0], all_records[1]
    n, n_families, room = len(touch_start) - 1, len(table_start) - 1, 0
    mark, queue, done = work[:n], work[n : 2 * n], work[2 * n :]
    place, families = work[2 * n + n_families :], work[2 * n + 2 * n_families :]
    for r in range(first, len(codes)):
        room = room - 1 if room > 1 else _room(n, n_families, all_shapes, all_records)
        if room <= 0:
            return r
        w = weight[r]
        if w == 0.0:
            continue
        missing = 0
        for v in range(n):
            c = codes[r, v]
            mark[v] = 1 if c < 0 else 0
            missing += mark[v]
            if c >= 0:
                states[state_start[v] + c] += w
        for f in range(n_families):
            at = table_start[f]
            whole = True
            for i in range(scope_start[f], scope_start[f + 1]):
                c = codes[r, scopes[i]]
                if c < 0:
                    whole = False
                else:
                    at += c * strides[i]
            done[f] = 1 if whole else 0
            place[f] = at
            if whole:
                counts[at] += w
        v = 0
        while missing > 0:
            while mark[v] == 0:
                v += 1
            m: Any = np.int64(1)  # no literal, or what it is passed to is compiled once more
            k: Any = np.int64(0)
            head = 0
            queue[0] = v
            mark[v] = 0
            while head < m:
                u = queue[head]
                head += 1
                for t in range(touch_start[u], touch_start[u + 1]):
                    f = touches[t]
                    if done[f] == 1:
                        continue
                    done[f] = 1
                    families[k] = f
                    k += 1
                    for i in range(scope_start[f], scope_start[f + 1]):
                        if mark[scopes[i]] == 1:
                            mark[scopes[i]] = 0
                            queue[m] = scopes[i]
                            m += 1
            missing -= m
            shape = _shape_of(m, k, queue, families, all_shapes)
            at = record_at[1 + record_at[0]]
            for i in range(k):
                records[at + i] = place[families[i]]
            record = _weigh(shape, k, w, all_records)
            for i in range(m):
                codes[r, queue[i]] = ~record
    return len(codes)


@kernel(
    nb.int64(nb.int64, nb.int64, nb.int64, _theirs, _ints, _ints, _shapes, _records),
    work=lambda theirs: len(theirs[2]) + 4 * theirs[3][0],
)
def take_records(first, n, n_families, theirs, moved, work, all_shapes, all_records):
    """Take the records of other rows from `first` on; the one before which room ran out. `moved` has for each of their shapes its
    number here, −1 where that is not known yet."""
    their_shapes, their_shape_at, their_records, their_record_at, their_record_shape, their_multiplicity = theirs
    records, record_at = all_records[0], all_records[1]
    variables, families, room = work[:n], work[n:], 0
    for r in range(first, their_record_at[0]):
        room = room - 1 if room > 1 else _room(n, n_families, all_shapes, all_records)
        if room <= 0:
            return r
        shape = their_record_shape[r]
        at = their_shape_at[1 + shape]
        m, k = np.int64(their_shapes[at]), np.int64(their_shapes[at + 1])
        if moved[shape] < 0:
            for i in range(m):
                variables[i] = their_shapes[at + 2 + i]
            for i in range(k):
                families[i] = their_shapes[at + 2 + m + i]
            moved[shape] = _shape_of(m, k, variables, families, all_shapes)
        at = record_at[1 + record_at[0]]
        for i in range(k):
            records[at + i] = their_records[their_record_at[1 + r] + i]
        _weigh(moved[shape], k, their_multiplicity[r], all_records)
    return int(their_record_at[0])


@kernel(nb.void(nb.int64, _keys, _ints), work=lambda n: 4 * n)
def rehash(n, keys, slots):
    """Put shapes or records 0 … n−1 into new slots, all of them empty."""
    for i in range(n):
        slot = np.int64((keys[i] >> np.uint64(17)) % np.uint64(len(slots)))
        while slots[slot] >= 0:
            slot = (slot + 1) % len(slots)
        slots[slot] = i
