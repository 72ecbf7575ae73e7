"""Expected tables of incomplete rows under a finite network, for any sets of variables, and scores of such tables.

The missing cells of a row fall into components, as in `kernels.counting`. Component d has k = start[d+1] − start[d] cells, and
a list of completions, the t-th with the probability p[at[d] + t] and the states from digits[digit_at[d] + t * k] on.

In `codes` [variable, row] a state is its number, and a missing cell is ~c, where c is its number among those of all components.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from suffice.numerics.kernels import kernel, nb
from suffice.numerics.kernels.counting.bitmaps import rising

_ints, _floats, _small = nb.int64[::1], nb.float64[::1], nb.int32[::1]
_records, _tables = nb.types.Tuple((_small, _ints, _small, _ints, _ints)), nb.types.Tuple((*4 * (_ints,), _floats))
_lists = nb.types.Tuple((_ints, _ints, _floats, _small))
_rows = nb.types.Tuple((nb.int32[:, ::1], _floats, _ints, _small, _ints, _floats, *_lists, _ints, _floats))


ROWS = 4096
"""Rows whose cells are found at once: short enough for the first-level cache, long enough to vectorise."""


@kernel(
    nb.int64(nb.int64, nb.int64, _records, _tables, _ints, _small, _floats), work=lambda p, digits: 4 * (len(p) + len(digits))
)
def list_completions(first, last, components, tables, count, digits, p):
    """List the completions of components first … last−1 with their probabilities; −1, or the first one that has none. Components
    are the records of `kernels.counting`; `logs` has ln of all tables. Depth first: a family is multiplied in where its last
    missing member is set, and what has become 0 is not followed."""
    shapes, shape_at, records, record_at, record_shape = components
    sizes, scope_start, scopes, strides, logs = tables
    n = len(sizes)
    depth = np.full(n, -1, np.int64)
    state, prefix = np.empty(n, np.int64), np.zeros(n + 1)
    end = np.zeros(n + 1, np.int64)
    base, link_first = np.empty(n, np.int64), np.empty(n + 1, np.int64)
    link_depth, link_step = np.empty(len(scopes), np.int64), np.empty(len(scopes), np.int64)
    used, digit = 0, 0
    for d in range(first, last):
        low = shape_at[1 + record_shape[d]] + 2
        k: Any = np.int64(shapes[low - 2])
        for j in range(k):
            depth[shapes[low + j]] = j
        factors, links = 0, 0
        for j in range(k):
            for i in range(shapes[low - 1]):
                f = shapes[low + k + i]
                deepest = 0
                for m in range(scope_start[f], scope_start[f + 1]):
                    deepest = max(deepest, depth[scopes[m]])
                if deepest != j:
                    continue
                link_first[factors] = links
                for m in range(scope_start[f], scope_start[f + 1]):
                    if depth[scopes[m]] >= 0:
                        link_depth[links], link_step[links] = depth[scopes[m]], strides[m]
                        links += 1
                base[factors] = records[record_at[1 + d] + i]
                factors += 1
            end[j + 1] = factors
        link_first[factors] = links
        begun, top = used, -np.inf
        j = 0
        state[0] = -1
        while j >= 0:
            state[j] += 1
            if state[j] == sizes[shapes[low + j]]:
                j -= 1
                continue
            total = prefix[j]
            for g in range(end[j], end[j + 1]):
                place = base[g]
                for m in range(link_first[g], link_first[g + 1]):
                    place += link_step[m] * state[link_depth[m]]
                total += logs[place]
            if total == -np.inf:
                continue
            if j < k - 1:
                j += 1
                prefix[j] = total
                state[j] = -1
                continue
            for m in range(k):
                digits[digit + m] = state[m]
            digit += k
            p[used] = total
            used += 1
            top = max(top, total)
        for j in range(k):
            depth[shapes[low + j]] = -1
        count[d - first] = used - begun
        if used == begun:
            return d
        whole = 0.0
        for t in range(begun, used):
            p[t] = math.exp(p[t] - top)
            whole += p[t]
        for t in range(begun, used):
            p[t] /= whole
    return -1


@kernel(
    nb.void(nb.int64, nb.int64, _ints, _ints, _lists, _ints, _floats, _floats),
    work=lambda lists, one, two: 2 * len(lists[3]) + len(one) + 4 * len(two),
)
def marginals(low, high, start, begin, lists, pair_at, one, two):
    """The marginals of the cells of components low to high, and of those with pair_at[d] >= 0 of all pairs of cells. The states
    of cell c lie at begin[c] in `one`. The marginals of pairs are a matrix over all states of all cells."""
    at, digit_at, p, digits = lists
    for d in range(low, high):
        k, origin = start[d + 1] - start[d], begin[start[d]]
        span = begin[start[d + 1]] - origin
        for t in range(at[d], at[d + 1]):
            first = digit_at[d] + (t - at[d]) * k
            for a in range(k):
                place = begin[start[d] + a] + digits[first + a]
                one[place] += p[t]
                if pair_at[d] < 0:
                    continue
                row = pair_at[d] + (place - origin) * span
                for b in range(k):
                    two[row + begin[start[d] + b] - origin + digits[first + b]] += p[t]


@kernel(
    nb.void(_rows, _ints, _small, _ints, _ints, nb.boolean, _floats),
    work=lambda rows, members, out: rows[0].shape[1] * len(members) * 4 + len(out),
)
def expected_tables(rows, first, members, sizes, offsets, complete_only, out):
    """Add all rows to the tables in `out`: table g is of members[first[g]:first[g+1]], the last fastest, at offsets[g]. A row of
    which a set shows some cells only is spread over the table: the product over the components that the set touches of their
    marginals. With `complete_only` it is left out."""
    codes, weight, start, component, begin, marginal, at, digit_at, p, digits, pair_at, pair = rows
    most = 1
    for g in range(len(first) - 1):
        most = max(most, offsets[g + 1] - offsets[g])
    place, share = np.empty(most, np.int64), np.empty(most)
    part = np.zeros(most)
    step = np.empty(codes.shape[0], np.int64)
    index, sign = np.empty(ROWS, np.int32), np.empty(ROWS, np.int32)
    open_, inner = np.empty(codes.shape[0], np.int64), np.empty(codes.shape[0], np.int64)
    cell = np.empty(codes.shape[0], np.int64)
    for g in range(len(first) - 1):
        low, n = first[g], first[g + 1] - first[g]
        table = out[offsets[g] : offsets[g + 1]]
        cells = 1
        for j in range(n - 1, -1, -1):
            step[j] = cells
            cells *= sizes[members[low + j]]
        for i in range(codes.shape[1]):
            # For some rows at a time: the cell to which the observed members lead, and whether one is missing (a sign).
            if i % ROWS == 0:
                stop = min(i + ROWS, codes.shape[1])
                index[:] = 0
                sign[:] = 0
                for j in range(n):
                    column, apart = codes[members[low + j], i:stop], np.int32(step[j])
                    for h in range(stop - i):
                        sign[h] |= column[h]
                        index[h] += apart * (column[h] & ~(column[h] >> 31))
            here = index[i % ROWS]
            if sign[i % ROWS] >= 0:
                table[here] += weight[i]
                continue
            if complete_only:
                continue
            missing = 0
            for j in range(n):
                if codes[members[low + j], i] < 0:
                    open_[missing] = j
                    missing += 1
            # One is missing: its own marginal says all.
            if missing == 1:
                j = open_[0]
                begun = begin[~codes[members[low + j], i]]
                for s in range(sizes[members[low + j]]):
                    table[here + s * step[j]] += weight[i] * marginal[begun + s]
                continue
            # More are missing: a list of cells and their shares, which each component multiplies.
            place[0], share[0], held = here, weight[i], 1
            while missing:
                # The missing members that share a component with the first of them, which are then done.
                d = component[~codes[members[low + open_[0]], i]]
                k, left = 0, 0
                for j in range(missing):
                    c = ~codes[members[low + open_[j]], i]
                    if component[c] == d:
                        inner[k], cell[k] = open_[j], c
                        k += 1
                    else:
                        open_[left] = open_[j]
                        left += 1
                missing = left
                # A component of which one member is asked for: its marginal.
                if k == 1:
                    j = inner[0]
                    r = sizes[members[low + j]]
                    begun = held
                    for s in range(r - 1, -1, -1):
                        q = marginal[begin[cell[0]] + s]
                        if s == 0:
                            for h in range(begun):
                                share[h] *= q
                        elif q > 0.0:
                            for h in range(begun):
                                place[held], share[held] = place[h] + s * step[j], share[h] * q
                                held += 1
                    continue
                whole = 1
                for m in range(k):
                    whole *= sizes[members[low + inner[m]]]
                # Else the joint marginal of its members: of a pair, if it is known, or a sum over the component's joint states.
                known = k == 2 and pair_at[d] >= 0
                if known:
                    a, b = members[low + inner[0]], members[low + inner[1]]
                    origin = begin[start[d]]
                    span = begin[start[d + 1]] - origin
                    left = pair_at[d] + (begin[cell[0]] - origin) * span + begin[cell[1]] - origin
                    for s in range(sizes[a]):
                        for r in range(sizes[b]):
                            part[s * sizes[b] + r] = pair[left + s * span + r]
                for t in range(at[d], at[d] if known else at[d + 1]):
                    where = 0
                    row = digit_at[d] + (t - at[d]) * (start[d + 1] - start[d]) - start[d]
                    for m in range(k):
                        where = where * sizes[members[low + inner[m]]] + digits[row + cell[m]]
                    part[where] += p[t]
                # Each cell so far is spread over the joint states; the first state, 0, is taken last, in place.
                begun = held
                for where in range(whole - 1, -1, -1):
                    q = part[where]
                    part[where] = 0.0
                    if q == 0.0 and where > 0:
                        continue
                    rest, move = where, 0
                    for m in range(k - 1, -1, -1):
                        r = sizes[members[low + inner[m]]]
                        move += step[inner[m]] * (rest % r)
                        rest //= r
                    for h in range(begun):
                        if where == 0:
                            share[h] *= q
                        else:
                            place[held], share[held] = place[h] + move, share[h] * q
                            held += 1
            for h in range(held):
                table[place[h]] += share[h]


@kernel(
    nb.void(_floats, _ints, _ints, _ints, _ints, nb.int64, nb.float64, _floats),
    work=lambda tables, at: 8 * (len(tables) + len(at)),
)
def table_scores(tables, at, outer, size, inner, kind, alpha, out):
    """The log-likelihood or log-evidence of a child from each table [outer, child, inner]; kinds as in `bitmaps`."""
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
                        some = some or table[(i * r + s) * n + k] > 0.0
                    configurations += some
        a = 0.0 if kind == 0 else alpha if kind == 2 else alpha / (max(configurations, 1) * r)
        total = 0.0
        for i in range(o):
            for k in range(n):
                rows = 0.0
                for s in range(r):
                    c = table[(i * r + s) * n + k]
                    if c > 0.0:
                        rows += c
                        total += c * math.log(c) if kind == 0 else rising(a, c)
                if rows > 0.0:
                    total -= rows * math.log(rows) if kind == 0 else rising(a * r, rows)
        out[g] = total
