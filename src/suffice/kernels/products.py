"""The binary tree of products that an order of elimination makes (Shenoy 1997), laid out and run.

A tree is numbered tables: first its leaves, one per factor, then its nodes, each the product of two earlier tables summed over
the variables that no later one needs. Variables go by their place in the order, the first to be eliminated outermost in every
table, so that what remains of a product lies in one piece. For each table, `dim_start` points to its dims: `dim_place` the
variable, `dim_flag` 1 where the left table has it, 2 where the right one, 4 where it is kept.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from suffice.kernels import kernel
from suffice.kernels.contract import collapse, contract

_ints, _floats, _bytes = nb.int64[::1], nb.float64[::1], nb.uint8[::1]

UP, DOWN = 0, 1
SMALLEST = 1e-290
"""Products below this lose digits, or vanish: who meets one is told to count in logs."""


@kernel(nb.float64(nb.int64, nb.int64, _ints, _ints, _ints, _floats))
def union_weight(a: int, b: int, dim_start: Any, dim_place: Any, dim_flag: Any, log_size: Any) -> Any:
    """The log of the cells of the product of two tables."""
    i, j, weight = dim_start[a], dim_start[b], 0.0
    while i < dim_start[a + 1] or j < dim_start[b + 1]:
        if i < dim_start[a + 1] and not dim_flag[i] & 4:
            i += 1
        elif j < dim_start[b + 1] and not dim_flag[j] & 4:
            j += 1
        else:
            p = dim_place[i] if i < dim_start[a + 1] else np.int64(1 << 62)
            q = dim_place[j] if j < dim_start[b + 1] else np.int64(1 << 62)
            weight += log_size[min(p, q)]
            i += p <= q
            j += q <= p
    return weight


@kernel(nb.int64(nb.int64, nb.int64, nb.int64, nb.int64, nb.int64, _ints, _ints, _ints))
def join(a: int, b: int, summed: int, node: int, room: int, dim_start: Any, dim_place: Any, dim_flag: Any) -> int:
    """Write the dims of the product of two tables (b is −1 for none), summed over one place (or −1); 0 if there is no room."""
    i, at = dim_start[a], dim_start[node]
    j, end = (dim_start[b], dim_start[b + 1]) if b >= 0 else (np.int64(0), np.int64(0))
    while i < dim_start[a + 1] or j < end:
        if i < dim_start[a + 1] and not dim_flag[i] & 4:
            i += 1
        elif j < end and not dim_flag[j] & 4:
            j += 1
        else:
            p = dim_place[i] if i < dim_start[a + 1] else np.int64(1 << 62)
            q = dim_place[j] if j < end else np.int64(1 << 62)
            if at >= room:
                return 0
            place = min(p, q)
            dim_place[at] = place
            dim_flag[at] = (1 if p <= q else 0) + (2 if q <= p else 0) + (0 if place == summed else 4)
            at += 1
            i += p <= q
            j += q <= p
    dim_start[node + 1] = at
    return 1


@kernel(
    nb.int64(
        nb.int64, nb.int64, nb.int64, nb.int64, nb.int64, _floats, _ints, _ints, _ints, _ints, _ints, _ints, _ints, _floats, _ints
    )
)
def arrange(
    n_leaves: int,
    n_summed: int,
    m: int,
    most_tables: int,
    room: int,
    log_size: Any,
    dim_start: Any,
    dim_place: Any,
    dim_flag: Any,
    left: Any,
    right: Any,
    head: Any,
    following: Any,
    weight: Any,
    bucket: Any,
) -> int:
    """Make the nodes of a tree whose leaves' dims are there; the number of all tables, or −1 where there is too little room.

    Places below `n_summed` are summed out. In the bucket of a place the lightest table is joined to the one with which it
    makes the lightest product, until two are left, whose product is summed. A node alone in a bucket is summed further.
    """
    n: Any = n_leaves
    for p in range(m + 1):
        head[p] = -1
    for t in range(n_leaves):
        first = dim_place[dim_start[t]] if dim_start[t] < dim_start[t + 1] else m
        following[t] = head[first]
        head[first] = t
        weight[t] = union_weight(np.int64(t), np.int64(t), dim_start, dim_place, dim_flag, log_size)
    for p in range(min(n_summed + 1, m)):
        k = 0
        for q in range(p, p + 1 if p < n_summed else m):
            t = head[q]
            while t >= 0:
                bucket[k] = t
                k += 1
                t = following[t]
        while k > 0:
            last = p < n_summed and k <= 2
            if k == 1 and not last:
                break
            if k == 1 and bucket[0] >= n_leaves:
                t = bucket[0]
                for d in range(dim_start[t], dim_start[t + 1]):
                    if dim_place[d] == p:
                        dim_flag[d] &= 3
            else:
                a, i = bucket[0], 0
                for j in range(1, k):
                    if weight[bucket[j]] < weight[a]:
                        a, i = bucket[j], j
                bucket[i] = bucket[k - 1]
                b = np.int64(-1)
                if k > 1:
                    least, i = np.inf, 0
                    for j in range(k - 1):
                        w = union_weight(a, bucket[j], dim_start, dim_place, dim_flag, log_size)
                        if w < least:
                            least, i = w, j
                    b = bucket[i]
                    bucket[i] = bucket[k - 2]
                    k -= 1
                if n >= most_tables or not join(
                    a, b, np.int64(p if last else -1), np.int64(n), room, dim_start, dim_place, dim_flag
                ):
                    return -1
                left[n], right[n] = a, b
                t = np.int64(n)
                n += 1
            weight[t] = union_weight(t, t, dim_start, dim_place, dim_flag, log_size)
            bucket[k - 1] = t
            if last:
                first = m
                for d in range(dim_start[t + 1] - 1, dim_start[t] - 1, -1):
                    if dim_flag[d] & 4:
                        first = dim_place[d]
                following[t] = head[first]
                head[first] = t
                break
    return n


@kernel(nb.int64(nb.int64, nb.int64, _ints, _ints, _ints, _ints, nb.int64, _bytes, _ints, _ints))
def lay_out(
    n_leaves: int, n: int, dim_start: Any, dim_place: Any, dim_flag: Any, size: Any, begin: int, wanted: Any, up: Any, down: Any
) -> int:
    """Where each table begins in a buffer, that which comes up and, where `wanted`, that which comes down; the buffer's length.

    −1 where the length, or a product, passes 2^62.
    """
    at = begin
    for t in range(n):
        cells, product = 1, 1.0
        for d in range(dim_start[t], dim_start[t + 1]):
            product *= size[dim_place[d]]
            if dim_flag[d] & 4 and product < 4.0e18:
                cells *= size[dim_place[d]]
        if product >= 4.0e18 or at > 4_000_000_000_000_000_000 - 2 * cells:
            return -1
        up[t] = at
        at += cells
        if wanted[t]:
            down[t] = at
            at += cells
    return at


@kernel(nb.void(_ints, _ints, nb.int64, nb.int64, _floats, nb.int64, _floats, nb.int64, _ints))
def fetch(
    size: Any, stride: Any, n_dims: int, source: int, tables: Any, target: int, buffer: Any, cells: int, digit: Any
) -> None:
    """Copy the part of a factor's table that the observed variables leave, its dims in the order of elimination."""
    n, step = 1, 0
    if n_dims > 0:
        n, step = size[n_dims - 1], stride[n_dims - 1]
    for d in range(n_dims):
        digit[d] = 0
    end = target + cells
    while True:
        for i in range(n):
            buffer[target + i] = tables[source + i * step]
        target += n
        if target >= end:
            return
        d = n_dims - 2
        while d >= 0:
            digit[d] += 1
            source += stride[d]
            if digit[d] < size[d]:
                break
            source -= size[d] * stride[d]
            digit[d] = 0
            d -= 1


@kernel(nb.float64(_floats, nb.int64, nb.int64, _floats, nb.int64))
def rescale(buffer: Any, first: int, cells: int, least: Any, table: int) -> Any:
    """Scale a table by a power of two if its largest cell is very small or large; returns ln of what was divided out.

    `least[table]` becomes its smallest cell that is not 0 (inf: all are 0).
    """
    high, low = 0.0, np.inf
    for i in range(first, first + cells):
        c = buffer[i]
        high = max(high, c)
        low = min(low, c if c > 0.0 else np.inf)
    least[table] = low
    if high == 0.0 or 1e-18 < high < 1e18:
        return 0.0
    exponent = np.floor(np.log2(high))
    scale = 2.0**-exponent if exponent > -1000.0 else 2.0**1000
    for i in range(first, first + cells):
        buffer[i] *= scale
    least[table] = low * scale
    return -np.log(scale)


@kernel(
    nb.float64(
        nb.int64, _ints, _ints, _ints, _ints, _ints, _ints, _ints, _ints, _ints, _ints, _floats, _ints, _floats, _floats, _ints
    )
)
def fetch_leaves(
    n_leaves: int,
    dim_start: Any,
    dim_place: Any,
    dim_stride: Any,
    size: Any,
    factor: Any,
    scope_start: Any,
    scopes: Any,
    strides: Any,
    table_start: Any,
    codes: Any,
    tables: Any,
    up: Any,
    buffer: Any,
    least: Any,
    scratch: Any,
) -> Any:
    """Fill the leaves of a tree with what the observed codes leave of their factors; ln of the scale taken out of them."""
    log_scale = 0.0
    for t in range(n_leaves):
        f = factor[t]
        source = table_start[f]
        for i in range(scope_start[f], scope_start[f + 1]):
            if codes[scopes[i]] >= 0:
                source += codes[scopes[i]] * strides[i]
        n, cells = 0, 1
        for d in range(dim_start[t], dim_start[t + 1]):
            if size[dim_place[d]] > 1:
                scratch[n] = size[dim_place[d]]
                scratch[64 + n] = dim_stride[d]
                cells *= size[dim_place[d]]
                n += 1
        fetch(scratch, scratch[64:128], np.int64(n), source, tables, up[t], buffer, np.int64(cells), scratch[128:192])
        log_scale += rescale(buffer, up[t], np.int64(cells), least, np.int64(t))
    return log_scale


@kernel(
    nb.float64(
        nb.int64,
        nb.int64,
        nb.int64,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _bytes,
        _ints,
        _ints,
        _floats,
        _floats,
        _ints,
        _ints,
    )
)
def pass_messages(
    direction: int,
    n_leaves: int,
    n: int,
    dim_start: Any,
    dim_place: Any,
    dim_flag: Any,
    size: Any,
    left: Any,
    right: Any,
    wanted: Any,
    up: Any,
    down: Any,
    buffer: Any,
    least: Any,
    scratch: Any,
    status: Any,
) -> Any:
    """All messages of one direction: ln of the scale taken out of them, −inf where a table vanishes.

    up:    table[t] = Σ table[left]·table[right]
    down:  down[left] = Σ down[t]·table[right], and the same for the right one: what all the rest says of a table's cells

    `least` has a number per table and then one more each for the tables that come down. `buffer[0]` is 1: what is not there.
    `status[0]` becomes 1 if numbers so small were met that digits may be lost.
    """
    log_scale = 0.0
    for step in range((n - n_leaves) * (1 if direction == UP else 2)):
        t = n_leaves + step if direction == UP else n - 1 - step // 2
        if direction == UP:
            a, b, c = left[t], right[t], t
            x, y, z = up[a], up[b] if b >= 0 else 0, up[t]
            low, bits_x, bits_y, bits_z = least[a], 1, 2, 4
        else:
            c, b = (left[t], right[t]) if step % 2 == 0 else (right[t], left[t])
            if c < 0 or not wanted[c]:
                continue
            x, y, z = down[t], up[b] if b >= 0 else 0, down[c]
            low, bits_x, bits_y, bits_z = least[n + t], 4, 2 - step % 2, 1 + step % 2
        if b >= 0:
            low *= least[b]
        if low < SMALLEST:
            status[0] = 1
        n_dims, cells = 0, 1
        for d in range(dim_start[t], dim_start[t + 1]):
            flag = dim_flag[d]
            scratch[n_dims] = size[dim_place[d]]
            scratch[64 + n_dims] = (1 if flag & bits_x else 0) + (2 if flag & bits_y else 0) + (4 if flag & bits_z else 0)
            if flag & bits_z:
                cells *= scratch[n_dims]
            n_dims += scratch[n_dims] > 1
        for i in range(z, z + cells):
            buffer[i] = 0.0
        loops = scratch[128:]
        contract(buffer, loops, collapse(scratch, scratch[64:128], np.int64(n_dims), loops), x, np.int64(y), z)
        log_scale += rescale(buffer, z, np.int64(cells), least, np.int64(c if direction == UP else n + c))
        if least[c if direction == UP else n + c] == np.inf:
            return -np.inf
    return log_scale


@kernel(nb.void(nb.int64, _ints, _ints, _ints, _ints, _ints, _ints, _ints, _ints, _floats, _ints, _floats))
def read_marginals(
    m: int,
    dim_start: Any,
    dim_place: Any,
    dim_flag: Any,
    size: Any,
    table: Any,
    up: Any,
    down: Any,
    to: Any,
    buffer: Any,
    scratch: Any,
    out: Any,
) -> None:
    """p(variable | evidence) of each place, from the cells of the smallest table that has it; `to` says where in `out`.

    `buffer[1:]` is free for so many cells as a variable has.
    """
    for p in range(m):
        t, n_dims = table[p], 0
        for d in range(dim_start[t], dim_start[t + 1]):
            if dim_flag[d] & 4:
                scratch[n_dims] = size[dim_place[d]]
                scratch[64 + n_dims] = 7 if dim_place[d] == p else 3
                n_dims += scratch[n_dims] > 1
        for i in range(size[p]):
            buffer[1 + i] = 0.0
        loops = scratch[128:]
        contract(buffer, loops, collapse(scratch, scratch[64:128], np.int64(n_dims), loops), up[t], down[t], np.int64(1))
        total = 0.0
        for i in range(size[p]):
            total += buffer[1 + i]
        for i in range(size[p]):
            out[to[p] + i] = buffer[1 + i] / total


@kernel(
    nb.float64(
        nb.int64,
        nb.int64,
        nb.int64,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _bytes,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _floats,
        _ints,
        _ints,
        _floats,
        _floats,
        _floats,
    )
)
def all_marginals(
    n_leaves: int,
    n: int,
    begin: int,
    dim_start: Any,
    dim_place: Any,
    dim_flag: Any,
    dim_stride: Any,
    left: Any,
    right: Any,
    factor: Any,
    wanted: Any,
    roots: Any,
    source: Any,
    variable: Any,
    sizes: Any,
    scope_start: Any,
    scopes: Any,
    strides: Any,
    table_start: Any,
    codes: Any,
    tables: Any,
    start: Any,
    scratch: Any,
    least: Any,
    buffer: Any,
    out: Any,
) -> Any:
    """Lay out, fill, pass messages up and down, read marginals: ln p(evidence); −inf where it is impossible.

    `scratch` has room for 2 numbers a table, 2 a variable and 1,024 more; its first is 1 if digits may have been lost.
    """
    m = len(variable)
    status, up, down = scratch[:1], scratch[1 : 1 + n], scratch[1 + n : 1 + 2 * n]
    size, to, spare = scratch[1 + 2 * n : 1 + 2 * n + m], scratch[1 + 2 * n + m : 1 + 2 * n + 2 * m], scratch[1 + 2 * n + 2 * m :]
    status[0] = 0
    for i in range(len(out)):
        out[i] = 0.0
    for p in range(m):
        v = variable[p]
        size[p] = sizes[v] if codes[v] < 0 else 1
        to[p] = start[v] + (0 if codes[v] < 0 else codes[v])
    lay_out(n_leaves, n, dim_start, dim_place, dim_flag, size, begin, wanted, up, down)
    buffer[0] = 1.0
    log_prob = fetch_leaves(
        n_leaves,
        dim_start,
        dim_place,
        dim_stride,
        size,
        factor,
        scope_start,
        scopes,
        strides,
        table_start,
        codes,
        tables,
        up,
        buffer,
        least,
        spare,
    )
    log_prob += pass_messages(
        np.int64(UP),
        n_leaves,
        n,
        dim_start,
        dim_place,
        dim_flag,
        size,
        left,
        right,
        wanted,
        up,
        down,
        buffer,
        least,
        spare,
        status,
    )
    for i in range(len(roots)):
        t = roots[i]
        log_prob += np.log(buffer[up[t]])
        if wanted[t]:
            buffer[down[t]] = 1.0
            least[n + t] = 1.0
    if log_prob == -np.inf:
        return log_prob
    pass_messages(
        np.int64(DOWN),
        n_leaves,
        n,
        dim_start,
        dim_place,
        dim_flag,
        size,
        left,
        right,
        wanted,
        up,
        down,
        buffer,
        least,
        spare,
        status,
    )
    if not status[0]:
        read_marginals(m, dim_start, dim_place, dim_flag, size, source, up, down, to, buffer, spare, out)
    return log_prob
