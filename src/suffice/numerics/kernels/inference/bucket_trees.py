"""Components of missing variables solved: a tree of buckets for each shape, made once, and run for each record of it.

A bucket is a table over some variables: the product of families and of messages from other buckets, each with a map that says
for every cell of the bucket which of its own cells belongs to it. All variables together are one bucket if they have few
states; otherwise they are eliminated one by one, the one with the smallest bucket first, until the rest is small.

    program   buckets, cells of all, cells of all messages, where each bucket begins
    bucket    cells, inputs, where its message is, the message's cells; for each input what it is (a family's number in its
              shape, or −1 − where a message is) and its map; the map of its own message
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.numerics.kernels import kernel, nb

_ints, _places, _floats = nb.int64[::1], nb.int32[::1], nb.float64[::1]
_shapes, _tables = nb.types.Tuple((_places, _ints)), nb.types.UniTuple(_ints, 4)
_room = nb.types.Tuple((_ints, _ints, _floats, nb.uint8[::1]))
_records, _programs = nb.types.Tuple((_places, _ints, _ints, _floats)), nb.types.Tuple((_ints, _places, nb.int64))

SMALL = 32
"""Variables with at most so many joint states are one bucket."""
FEW, SAFE = 16, 1e-200
"""Products of more factors than these, or smaller ones, are taken in logs."""


@kernel(
    nb.int64(nb.int64, nb.int64, _shapes, _tables, _room, _places, _ints, _floats),
    work=lambda first, last, all_shapes, pool: 4 * (last - first) * (len(all_shapes[0]) // max(last, 1)) ** 2 + len(pool),
)
def compile_shapes(first, last, all_shapes, tables, room, pool, program_at, need):
    """Make the programs of shapes first … last−1, one after the other from `program_at[first]` on; the shape for which there
    was no room, with what it needs in `need[0]`.

    Of the room, `number` is −1 everywhere, and is again; `work` has room for 8·(variables + families + 2)² numbers or what the
    largest shape needs; `weight` for the variables, `linked` for their pairs.
    """
    shapes, shape_at = all_shapes
    sizes, scope_start, scopes, strides = tables
    number, work, weight, linked = room
    for s in range(first, last):
        at = shape_at[1 + s]
        m: Any = np.int64(shapes[at])
        k: Any = np.int64(shapes[at + 1])
        for i in range(m):
            number[shapes[at + 2 + i]] = i
        # Items: the families, then messages as they come. An item's variables and strides lie in work from item_at on.
        most = k + m + 1
        item_at, alive, position = work[:most], work[most : 2 * most], work[2 * most : 3 * most]
        gone, clique, digit = work[3 * most : 3 * most + m], work[3 * most + m :], work[3 * most + 2 * m :]
        clique_place, inputs = work[3 * most + 3 * m :], work[3 * most + 4 * m :]
        item_vars = work[4 * most + 4 * m :]
        half = (len(item_vars)) // 2
        item_strides = item_vars[half:]
        for i in range(m * m):
            linked[i] = 0
        # Items: the factors, each with its variables of this shape and their strides; variables of one item are linked.
        used = 0
        for j in range(k):
            f = shapes[at + 2 + m + j]
            item_at[j], alive[j], position[j] = used, 1, j
            for i in range(scope_start[f], scope_start[f + 1]):
                p = number[scopes[i]]
                if p >= 0:
                    item_vars[used], item_strides[used] = p, strides[i]
                    for q in range(item_at[j], used):
                        linked[item_vars[q] * m + p] = 1
                        linked[p * m + item_vars[q]] = 1
                    used += 1
        n_items: Any = np.int64(k)
        item_at[n_items] = used
        # The weight of a variable: ln of the cells of its clique, itself and what it is linked to.
        left, rest = m, 0.0
        for i in range(m):
            gone[i] = 0
            size = np.log(float(sizes[shapes[at + 2 + i]]))
            rest += size
            weight[i] = size
            for j in range(m):
                if linked[i * m + j]:
                    weight[i] += np.log(float(sizes[shapes[at + 2 + j]]))
        begin = program_at[s]
        # The places of the buckets come first; there are at most m.
        to = begin + 3 + m
        n_buckets, n_cells = 0, 0
        n_message: Any = np.int64(0)
        total = 3.0 + m
        fits = True
        while left > 0:
            # The next bucket: all variables that are left, if their joint table is small; else the lightest clique.
            last_one = rest <= np.log(SMALL + 0.5) or left == 1
            n_clique = 0
            v: Any = np.int64(-1)
            if last_one:
                for i in range(m):
                    if gone[i] == 0:
                        clique[n_clique] = i
                        n_clique += 1
            else:
                for i in range(m):
                    if gone[i] == 0 and (v < 0 or weight[i] < weight[v]):
                        v = i
                clique[0] = v
                n_clique = 1
                for i in range(m):
                    if gone[i] == 0 and linked[v * m + i]:
                        clique[n_clique] = i
                        n_clique += 1
            size = 0.0
            for i in range(n_clique):
                size += np.log(float(sizes[shapes[at + 2 + clique[i]]]))
            # Its inputs: the items that are alive and have the variable that is eliminated.
            n_inputs = 0
            for j in range(n_items):
                if alive[j]:
                    has = last_one
                    for i in range(item_at[j], item_at[j + 1]):
                        if item_vars[i] == v:
                            has = True
                    if has:
                        inputs[n_inputs] = j
                        n_inputs += 1
            total += 4.0 + n_inputs + np.exp(size) * (n_inputs + 1.0)
            fits = fits and to + 4.0 + n_inputs + np.exp(size) * (n_inputs + 1.0) <= len(pool)
            cells: Any = np.int64(1)
            if fits:
                for i in range(n_clique):
                    cells *= sizes[shapes[at + 2 + clique[i]]]
                pool[begin + 3 + n_buckets] = to - begin
                summed = np.int64(1) if last_one else cells // sizes[shapes[at + 2 + v]]
                pool[to], pool[to + 1], pool[to + 2], pool[to + 3] = cells, n_inputs, n_message, summed
                to += 4
                # A map from the cells of the clique to those of each input, and at last to those of its message.
                for e in range(n_inputs + 1):
                    for i in range(n_clique):
                        digit[i], clique_place[i] = 0, 0
                    if e < n_inputs:
                        j = inputs[e]
                        pool[to] = position[j]
                        to += 1
                        for i in range(n_clique):
                            for q in range(item_at[j], item_at[j + 1]):
                                if item_vars[q] == clique[i]:
                                    clique_place[i] = item_strides[q]
                    elif not last_one:
                        step = np.int64(1)
                        for i in range(n_clique - 1, 0, -1):
                            clique_place[i] = step
                            step *= sizes[shapes[at + 2 + clique[i]]]
                    here = np.int64(0)
                    for c in range(cells):
                        pool[to + c] = here
                        d = n_clique - 1
                        while d >= 0:
                            digit[d] += 1
                            here += clique_place[d]
                            if digit[d] < sizes[shapes[at + 2 + clique[d]]]:
                                break
                            here -= digit[d] * clique_place[d]
                            digit[d] = 0
                            d -= 1
                    to += cells
                n_cells += cells
            for e in range(n_inputs):
                alive[inputs[e]] = 0
            n_buckets += 1
            if last_one:
                for i in range(m):
                    gone[i] = 1
                left = 0
                n_message += 1
                break
            # The message is one more item, over the clique without v.
            alive[n_items], position[n_items] = 1, -1 - n_message
            used = item_at[n_items]
            step = np.int64(1)
            for i in range(n_clique - 1, 0, -1):
                item_vars[used], item_strides[used] = clique[i], step
                if fits:
                    step *= sizes[shapes[at + 2 + clique[i]]]
                used += 1
            n_items += 1
            item_at[n_items] = used
            if fits:
                n_message += step
            # The variable is gone: its neighbours are linked to each other, and weigh anew.
            gone[v] = 1
            left -= 1
            rest -= np.log(float(sizes[shapes[at + 2 + v]]))
            for i in range(1, n_clique):
                a = clique[i]
                linked[a * m + v] = 0
                for j in range(1, n_clique):
                    if i != j:
                        linked[a * m + clique[j]] = 1
            for i in range(1, n_clique):
                a = clique[i]
                weight[a] = np.log(float(sizes[shapes[at + 2 + a]]))
                for j in range(m):
                    if linked[a * m + j] and gone[j] == 0:
                        weight[a] += np.log(float(sizes[shapes[at + 2 + j]]))
        for i in range(m):
            number[shapes[at + 2 + i]] = -1
        if not fits:
            need[0] = total
            return s
        pool[begin], pool[begin + 1], pool[begin + 2] = n_buckets, n_cells, n_message
        program_at[s + 1] = to
    return last


@kernel(
    nb.int64(nb.int64, nb.int64, _records, _programs, _floats, _floats, _floats, _floats),
    work=lambda first, last, programs: 2 * (last - first) * len(programs[1]) // max(1, len(programs[0]) - 1),
)
def expect(first, last, all_records, programs, tables, room, counts, log_likelihood):
    """Add what the records first … last−1 are expected to count, and their log-likelihood; the first record that is impossible
    under the tables, or −1. Programs begin at `program_at[shape] − base` in the pool. Messages are divided by their sums, and
    products that would vanish are taken in logs."""
    records, record_at, record_shape, multiplicity = all_records
    program_at, pool, base = programs
    before = np.int64(-1)
    n_buckets, n_cells, n_message, begin = 0, 0, 0, 0
    total, scaled = 0.0, 0.0
    for r in range(first, last):
        w = multiplicity[r]
        shape = record_shape[r]
        if shape != before:
            before = shape
            begin = program_at[shape] - base
            n_buckets, n_cells, n_message = pool[begin], pool[begin + 1], pool[begin + 2]
        places = record_at[1 + r]
        message, share = room[n_cells : n_cells + n_message], room[n_cells + n_message : n_cells + 2 * n_message]
        log_z, cell = 0.0, 0
        z = 1.0
        # Up: the product of the inputs in each cell of a bucket, its sum, and the message summed over the bucket's variable.
        for b in range(n_buckets):
            at = begin + pool[begin + 3 + b]
            cells, n_inputs, out, summed = pool[at], pool[at + 1], pool[at + 2], pool[at + 3]
            at += 4
            amount, first_input = 0.0, at
            for e in range(n_inputs if n_inputs <= FEW else 0):
                source = pool[at]
                at += 1
                if source >= 0:
                    start = records[places + source]
                    if e == 0:
                        for c in range(cells):
                            room[cell + c] = tables[start + pool[at + c]]
                    else:
                        for c in range(cells):
                            room[cell + c] *= tables[start + pool[at + c]]
                else:
                    start = -1 - source
                    if e == 0:
                        for c in range(cells):
                            room[cell + c] = message[start + pool[at + c]]
                    else:
                        for c in range(cells):
                            room[cell + c] *= message[start + pool[at + c]]
                at += cells
            for c in range(cells if n_inputs <= FEW else 0):
                amount += room[cell + c]
            if amount < SAFE:  # the product has vanished, or is of so many that it may: in logs
                at = first_input
                for c in range(cells):
                    room[cell + c] = 0.0
                for _ in range(n_inputs):
                    source = pool[at]
                    at += 1
                    for c in range(cells):
                        value = (
                            tables[records[places + source] + pool[at + c]]
                            if source >= 0
                            else message[-1 - source + pool[at + c]]
                        )
                        room[cell + c] += np.log(value)
                    at += cells
                top = -np.inf
                for c in range(cells):
                    top = max(top, room[cell + c])
                if top == -np.inf:
                    return r
                log_z += top
                amount = 0.0
                for c in range(cells):
                    room[cell + c] = np.exp(room[cell + c] - top)
                    amount += room[cell + c]
            for i in range(summed):
                message[out + i] = 0.0
                share[out + i] = 0.0
            if summed == 1:
                message[out] = 1.0
            else:
                for c in range(cells):
                    message[out + pool[at + c]] += room[cell + c]
                for i in range(summed):
                    message[out + i] /= amount
            # Cells become shares of the bucket; p(observed) is the product of the amounts.
            scale = 1.0 / amount
            for c in range(cells):
                room[cell + c] *= scale
            z *= amount
            if z < 1e-200 or z > 1e200:
                log_z += np.log(z)
                z = 1.0
            cell += cells
        # Weights are gathered into one product, so that few logarithms are taken.
        if w == 1.0 and log_z == 0.0:
            if scaled == 0.0:
                scaled = 1.0
            scaled *= z
            if scaled < 1e-100 or scaled > 1e100:
                total += np.log(scaled)
                scaled = 1.0
        else:
            total += w * (log_z + np.log(z))
        # Down: each bucket times the share of its message, which is then expected of tables, or of the messages below.
        for b in range(n_buckets - 1, -1, -1):
            at = begin + pool[begin + 3 + b]
            cells, n_inputs, out, summed = pool[at], pool[at + 1], pool[at + 2], pool[at + 3]
            cell -= cells
            at += 4
            if b < n_buckets - 1:
                if summed == 1:
                    for c in range(cells):
                        room[cell + c] *= share[out]
                else:
                    for i in range(summed):
                        share[out + i] = share[out + i] / message[out + i] if message[out + i] > 0.0 else 0.0
                    own = at + n_inputs * (cells + 1)
                    for c in range(cells):
                        room[cell + c] *= share[out + pool[own + c]]
            else:
                for c in range(cells):
                    room[cell + c] *= w
            for _ in range(n_inputs):
                source = pool[at]
                at += 1
                if source >= 0:
                    start = records[places + source]
                    for c in range(cells):
                        counts[start + pool[at + c]] += room[cell + c]
                else:
                    start = -1 - source
                    for c in range(cells):
                        share[start + pool[at + c]] += room[cell + c]
                at += cells
    if scaled > 0.0:
        total += np.log(scaled)
    log_likelihood[0] += total
    return -1
