"""Products of tables summed into a third, the one operation that exact inference consists of; and programs of them run: tables
filled with what the observed codes leave of the factors, messages passed up the tree and down again.

    z[dims of z] += Σ x[dims of x] · y[dims of y]    over all dims
    up:    table[t] = Σ table[left]·table[right]
    down:  down[left] = Σ down[t]·table[right], and likewise for the right one: what all the rest says of a table's cells

All tables lie in one buffer, row by row, their dims in one order common to all. A dim has a size and a flag: 1 where x has it,
2 where y has it, 4 where z has it. Neighbouring dims with the same flag are one longer dim, so that loops are few and long.
Nothing is ever divided, so zeros need no care. Tables are scaled by powers of two, so products do not vanish; where one might
all the same lose digits, the row is marked as uncertain.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.numerics.kernels import kernel, nb
from suffice.numerics.kernels.inference.arrangement import HEADER

_ints, _floats, _bytes = nb.int64[::1], nb.float64[::1], nb.uint8[::1]

ROOT, ALONE, MARGINALS, FACTORS = 0, 1, 2, 3
"""What is wanted: the table of what is asked for; only ln p(observed); all marginals; all messages, which stay where they are for
`factor_marginals`."""
DONE, TOO_LARGE, UNCERTAIN, IMPOSSIBLE = 0, 1, 2, 3
SMALLEST = 1e-290
"""Products below this lose digits, or vanish."""
SPARE = 1024
MOST_DIMS = 64
"""Dims longer than one state in a product: more would have 2^64 cells."""


@kernel(nb.int64(_ints, _ints, nb.int64, _ints))
def collapse(size, flag, n_dims, loops):
    """The loops, innermost first, as (length, flag, steps of x, y, z, a counter) each; how many there are."""
    n = 0
    for d in range(n_dims - 1, -1, -1):
        if size[d] == 1 or flag[d] == 0:
            continue
        if n > 0 and loops[6 * n - 5] == flag[d]:
            loops[6 * n - 6] *= size[d]
        else:
            loops[6 * n] = size[d]
            loops[6 * n + 1] = flag[d]
            n += 1
    x, y, z = 1, 1, 1
    for g in range(n):
        length, f = loops[6 * g], loops[6 * g + 1]
        loops[6 * g + 2] = x if f & 1 else 0
        loops[6 * g + 3] = y if f & 2 else 0
        loops[6 * g + 4] = z if f & 4 else 0
        loops[6 * g + 5] = 0
        x *= length if f & 1 else 1
        y *= length if f & 2 else 1
        z *= length if f & 4 else 1
    return n


@kernel(nb.void(_floats, _ints, nb.int64, nb.int64, nb.int64, nb.int64))
def contract(buffer, loops, n_loops, x, y, z):
    """Run the loops that `collapse` made; x, y and z are where the tables begin."""
    if n_loops == 0:
        buffer[z] += buffer[x] * buffer[y]
        return
    a, b = 2, 3  # which steps belong to x and to y: exchanged if only y has the innermost loop
    f = loops[1]
    if f & 3 == 2:
        a, b = 3, 2
        x, y = y, x
        f += -1
    n = loops[0]
    n1, x1, y1, z1 = 1, 0, 0, 0
    if n_loops > 1:
        n1, x1, y1, z1 = loops[6], loops[6 + a], loops[6 + b], loops[10]
    while True:
        i, j, k = x, y, z
        for _ in range(n1):
            if f == 7:
                for t in range(n):
                    buffer[k + t] += buffer[i + t] * buffer[j + t]
            elif f == 5:
                c = buffer[j]
                for t in range(n):
                    buffer[k + t] += buffer[i + t] * c
            elif f == 4:
                c = buffer[i] * buffer[j]
                for t in range(n):
                    buffer[k + t] += c
            else:
                s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
                whole = n - n % 4
                if f == 3:
                    for t in range(0, whole, 4):
                        s0 += buffer[i + t] * buffer[j + t]
                        s1 += buffer[i + t + 1] * buffer[j + t + 1]
                        s2 += buffer[i + t + 2] * buffer[j + t + 2]
                        s3 += buffer[i + t + 3] * buffer[j + t + 3]
                    for t in range(whole, n):
                        s0 += buffer[i + t] * buffer[j + t]
                    buffer[k] += (s0 + s1) + (s2 + s3)
                else:
                    for t in range(0, whole, 4):
                        s0 += buffer[i + t]
                        s1 += buffer[i + t + 1]
                        s2 += buffer[i + t + 2]
                        s3 += buffer[i + t + 3]
                    for t in range(whole, n):
                        s0 += buffer[i + t]
                    buffer[k] += ((s0 + s1) + (s2 + s3)) * buffer[j]
            i += x1
            j += y1
            k += z1
        g = 2
        while g < n_loops:
            at = 6 * g
            loops[at + 5] += 1
            x += loops[at + a]
            y += loops[at + b]
            z += loops[at + 4]
            if loops[at + 5] < loops[at]:
                break
            x -= loops[at] * loops[at + a]
            y -= loops[at] * loops[at + b]
            z -= loops[at] * loops[at + 4]
            loops[at + 5] = 0
            g += 1
        if g >= n_loops:
            return


def _steps(first: int, last: int, want: int, program: Any, pool: Any, sizes: Any) -> float:
    """Cells of all products, as if nothing were observed, and what each table costs apart from them."""
    places, total = program[first:last] if len(program) > 1 else program[:1], 0.0
    for here in np.unique(places[places >= 0])[:100]:
        n, n_dims, i = pool[here], pool[here + 4], here + HEADER
        ends, place = pool[i : i + n + 1], pool[i + n + 1 : i + n + 1 + n_dims]
        logs = np.concatenate([[0.0], np.cumsum(np.log(sizes[pool[i + 3 * n + 1 + 3 * n_dims :][place]]))])
        total = max(total, float(np.exp(np.minimum(np.diff(logs[ends]), 100.0)).sum()) + 20.0 * n)
    return (last - first) * total * (3.0 if want >= MARGINALS else 1.0)


@kernel(nb.float64(_floats, nb.int64, nb.int64, _floats, nb.int64))
def rescale(buffer, first, cells, least, table):
    """Scale a table by a power of two if its largest cell is very small or large; ln of what was divided out. `least[table]`
    becomes its smallest cell that is not 0 (inf: all are 0)."""
    high, low = 0.0, np.inf
    for i in range(first, first + cells):
        c = buffer[i]
        high = max(high, c)
        low = min(low, c if c > 0.0 else np.inf)
    least[table] = low
    if high == 0.0 or 1e-18 < high < 1e18:
        return 0.0
    exponent = max(np.floor(np.log2(high)), -1000.0)
    scale = 2.0**-exponent
    for i in range(first, first + cells):
        buffer[i] *= scale
    least[table] = low * scale
    return -np.log(scale)


_asked = (nb.int64, nb.int64, nb.int64, _ints, _ints, nb.int32[:, ::1], nb.float64[:, ::1])


@kernel(nb.void(*_asked, *[_ints] * 7, _floats, _floats, nb.float64[:, ::1], _floats, _bytes), work=_steps)
def run(
    first, last, want, program, pool, seen, tables, sizes, scope_start, scopes, strides, table_start, start, ints, least,
    buffer, out, log_prob, status
):  # fmt: skip
    """Run the program of each row first … last−1 (−1: none). Where `program`, `seen` or `tables` has one row, it serves for all.

    `out` gets the answer: normalised cells of the root's table, or each variable's marginal at its `start`. `log_prob` gets ln of
    the sum of all: ln p(observed) where no target or part was left out. `ints` has room for 5 numbers a table, 3 a variable
    and `SPARE`; `least` for 2 a table; the buffer begins with a 1 and room for the cells of one variable.

    A marginal is read from the smallest node that has its variable, from the smallest leaf if no node does; besides nodes,
    only those leaves get a message.
    """
    before = np.int64(-1)
    begin, spare = 1, ints[:SPARE]
    for v in range(len(sizes)):
        begin = max(begin, 1 + sizes[v])
    dim_size, dim_bits = spare[:MOST_DIMS], spare[MOST_DIMS : 2 * MOST_DIMS]
    digit, loops = spare[2 * MOST_DIMS : 3 * MOST_DIMS], spare[3 * MOST_DIMS :]
    buffer[0] = 1.0
    for r in range(first, last):
        here = program[r if len(program) > 1 else 0]
        row = r if len(seen) > 1 else 0
        if here < 0:
            status[r] = TOO_LARGE
            continue
        # The program, as `arrangement` wrote it: n tables, the leaves first; their dims; left and right; variables and factors.
        n, n_leaves, m, root, n_dims = pool[here], pool[here + 1], pool[here + 2], pool[here + 3], pool[here + 4]
        i = here + HEADER
        dim_start, dim_place = pool[i : i + n + 1], pool[i + n + 1 : i + n + 1 + n_dims]
        i += n + 1 + n_dims
        dim_flag, dim_stride = pool[i : i + n_dims], pool[i + n_dims : i + 2 * n_dims]
        i += 2 * n_dims
        left, right, variable, factor = pool[i : i + n], pool[i + n : i + 2 * n], pool[i + 2 * n :], pool[i + 2 * n + m :]
        up, down, cells = ints[SPARE : SPARE + n], ints[SPARE + n : SPARE + 2 * n], ints[SPARE + 2 * n : SPARE + 3 * n]
        lone, wanted = ints[SPARE + 3 * n : SPARE + 4 * n], ints[SPARE + 4 * n : SPARE + 5 * n]
        size, source, smallest = ints[SPARE + 5 * n :], ints[SPARE + 5 * n + m :], ints[SPARE + 5 * n + 2 * m :]
        # Where each table lies in the buffer: what is observed has one state, so the sizes may be others for each row.
        if here != before or want >= MARGINALS:
            for p in range(m):
                size[p] = sizes[variable[p]] if seen[row, variable[p]] < 0 else 1
                smallest[p] = np.int64(1 << 62)
            at = begin
            for t in range(n - 1, -1, -1):
                cells[t], lone[t], wanted[t] = 1, 1, 1 if want == FACTORS or (t >= n_leaves and want == MARGINALS) else 0
                for d in range(dim_start[t], dim_start[t + 1]):
                    if dim_flag[d] & 4:
                        cells[t] *= size[dim_place[d]]
                        lone[t] = 0
                up[t] = at
                at += cells[t]
                if want == MARGINALS:
                    for d in range(dim_start[t], dim_start[t + 1]):
                        p = dim_place[d]
                        rank = cells[t] + (0 if t >= n_leaves else 1 << 60)
                        if dim_flag[d] & 4 and rank < smallest[p]:
                            smallest[p], source[p] = rank, t
            for p in range(m if want == MARGINALS else 0):
                wanted[source[p]] = 1
            for t in range(n):
                if wanted[t]:
                    down[t] = at
                    at += cells[t]
            before = here
            if at > len(buffer):
                before = np.int64(-1)
                status[r] = TOO_LARGE
                continue
        logs, uncertain = 0.0, False
        table = tables[r if len(tables) > 1 else 0]
        # Leaves: the cells of each factor that agree with what is observed, walked through like the digits of a number.
        for t in range(n_leaves):
            f, k = factor[t], 0
            at, to, end = table_start[f], up[t], up[t] + cells[t]
            for i in range(scope_start[f], scope_start[f + 1]):
                code = seen[row, scopes[i]]
                if code >= 0:
                    at += code * strides[i]
            for d in range(dim_start[t], dim_start[t + 1]):
                if size[dim_place[d]] > 1:
                    dim_size[k], dim_bits[k], digit[k] = size[dim_place[d]], dim_stride[d], 0
                    k += 1
            while True:
                if k == 0:
                    buffer[to] = table[at]
                    break
                for i in range(dim_size[k - 1]):
                    buffer[to + i] = table[at + i * dim_bits[k - 1]]
                to += dim_size[k - 1]
                if to >= end:
                    break
                d = k - 2
                while True:
                    digit[d] += 1
                    at += dim_bits[d]
                    if digit[d] < dim_size[d]:
                        break
                    at -= dim_size[d] * dim_bits[d]
                    digit[d] = 0
                    d -= 1
            logs += rescale(buffer, up[t], cells[t], least, np.int64(t))
            if least[t] == np.inf:
                logs = -np.inf
        # Phase 0, up: table[t] = Σ table[left]·table[right]. Phase 1, down, to each child that is wanted: Σ down[t]·table[other].
        for phase in range(3 if want == MARGINALS else 2 if want == FACTORS else 1):
            steps = n - n_leaves if phase == 0 else 2 * (n - n_leaves) if phase == 1 else m
            for step in range(steps):
                if logs == -np.inf:
                    break
                if phase == 0:
                    t = n_leaves + step
                    a, b, c = left[t], right[t], t
                    x, y, z, n_z = up[a], up[b] if b >= 0 else 0, up[t], cells[t]
                    low, bits_x, bits_y, bits_z = least[a], 1, 2, 4
                # Twice for each node, from the root: once for its left child and once for its right one.
                elif phase == 1:
                    t = n - 1 - step // 2
                    c, b = (left[t], right[t]) if step % 2 == 0 else (right[t], left[t])
                    if c < 0 or not wanted[c]:
                        continue
                    x, y, z, n_z = down[t], up[b] if b >= 0 else 0, down[c], cells[c]
                    low, bits_x, bits_y, bits_z = least[n + t], 4, 2 - step % 2, 1 + step % 2
                    c += n
                # Phase 2, marginals: p(variable) ∝ Σ table[t]·down[t], t being the smallest table that has it.
                else:
                    t = source[step]
                    x, y, z, n_z = up[t], down[t], 1, size[step]
                    low, bits_x, bits_y, bits_z, b, c = least[t] * least[n + t], 4, 4, 0, -1, 0
                if b >= 0:
                    low *= least[b]
                # The smallest cells of both, multiplied: below this a product may have lost digits.
                uncertain = uncertain or low < SMALLEST
                # Which dims each of the three tables has; those of one state are left out.
                k = 0
                for d in range(dim_start[t], dim_start[t + 1]):
                    flag = dim_flag[d]
                    dim_size[k] = size[dim_place[d]]
                    dim_bits[k] = (1 if flag & bits_x else 0) + (2 if flag & bits_y else 0) + (4 if flag & bits_z else 0)
                    if phase == 2 and dim_place[d] == step:
                        dim_bits[k] += 4
                    k += dim_size[k] > 1
                for i in range(z, z + n_z):
                    buffer[i] = 0.0
                contract(buffer, loops, collapse(dim_size, dim_bits, np.int64(k), loops), x, np.int64(y), np.int64(z))
                if phase < 2:
                    scale = rescale(buffer, np.int64(z), n_z, least, np.int64(c))
                    logs += scale if phase == 0 else 0.0
                    if least[c] == np.inf:
                        logs = -np.inf
                else:
                    v, total = variable[step], 0.0
                    to = start[v] + max(0, seen[row, v])
                    for i in range(n_z):
                        total += buffer[z + i]
                    for i in range(n_z):
                        out[r, to + i] = buffer[z + i] / total if total > 0.0 else np.nan
            # Parts of the graph that have nothing to do with the root end in single numbers: factors of p(observed).
            if phase == 0:
                for t in range(n):
                    if lone[t] and t != root:
                        logs += np.log(buffer[up[t]]) if buffer[up[t]] > 0.0 else -np.inf
                        if wanted[t]:
                            buffer[down[t]] = 1.0
                            least[n + t] = 1.0
        # The answer is the root, and its sum the rest of p(observed).
        if want == ROOT:
            total = 0.0
            for i in range(cells[root]):
                total += buffer[up[root] + i]
            if not total > 0.0:
                logs = -np.inf
            for i in range(cells[root]):
                out[r, i] = buffer[up[root] + i] / total if logs > -np.inf else np.nan
            logs += np.log(total) if logs > -np.inf else 0.0
        elif want == ALONE and logs == -np.inf:
            out[r, 0] = np.nan
        log_prob[r] = logs
        status[r] = UNCERTAIN if uncertain else IMPOSSIBLE if logs == -np.inf else DONE


@kernel(nb.boolean(_ints, _ints, _ints, _ints, _floats, _floats, _floats), work=lambda pool, out: len(pool) + 3 * len(out))
def factor_marginals(pool, sizes, table_start, ints, least, buffer, out):
    """The marginals of all factors' scopes, where their tables have them, from what a run for FACTORS with nothing observed left
    in `ints`, `least` and `buffer`; whether digits may have been lost."""
    n, n_leaves, m, n_dims = pool[0], pool[1], pool[2], pool[4]
    dim_start, dim_place = pool[HEADER : HEADER + n + 1], pool[HEADER + n + 1 :]
    dim_stride = pool[HEADER + n + 1 + 2 * n_dims :]
    variable, factor = pool[HEADER + 3 * n + 1 + 3 * n_dims :], pool[HEADER + 3 * n + 1 + 3 * n_dims + m :]
    digit = ints[:MOST_DIMS]
    uncertain = False
    for t in range(n_leaves):
        up, down, cells = ints[SPARE + t], ints[SPARE + n + t], ints[SPARE + 2 * n + t]
        uncertain = uncertain or least[t] * least[n + t] < SMALLEST
        total = 0.0
        for i in range(cells):
            total += buffer[up + i] * buffer[down + i]
        at, first, k = table_start[factor[t]], dim_start[t], dim_start[t + 1] - dim_start[t]
        for d in range(k):
            digit[d] = 0
        for i in range(cells):
            out[at] = buffer[up + i] * buffer[down + i] / total if total > 0.0 else np.nan
            for d in range(k - 1, -1, -1):
                size = sizes[variable[dim_place[first + d]]]
                digit[d] += 1
                at += dim_stride[first + d]
                if digit[d] < size:
                    break
                at -= size * dim_stride[first + d]
                digit[d] = 0
    return uncertain
