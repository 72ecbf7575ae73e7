"""The binary tree of products that an order of elimination makes (Shenoy 1997).

A tree is numbered tables: first its leaves, one per factor, then its nodes, each the product of two earlier tables summed over
the variables that no later one needs. Variables go by their place in the order, the first to be eliminated outermost in every
table, so that what remains of a product lies in one piece. A tree is written into a pool of numbers as a program:

    n tables, n leaves, n variables, root, n dims, …            the header
    dim_start (n + 1)                                           the dims of table t: dim_start[t] … dim_start[t + 1]
    dim_place, dim_flag, dim_stride (n dims each)               flag: 1 the left table has it, 2 the right one, 4 it is kept
    left, right (n each), variable (m), factor (n leaves)       stride: the step in the factor's own table
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.numerics.kernels import kernel, nb

_ints, _floats = nb.int64[::1], nb.float64[::1]

HEADER = 8
LARGE = 40.0
"""ln of the cells of a product that no machine makes."""


@kernel(nb.float64(nb.int64, nb.int64, nb.int64, nb.int64, nb.int64, _ints, _ints, _ints, _floats))
def join(a, b, summed, node, room, dim_start, dim_place, dim_flag, log_size):
    """ln of the cells of the product of two tables (b is −1 for none); −1 if there is no room for its dims. They are written as
    those of `node`, if that is not −1, without the place `summed`."""
    i, end_a = dim_start[a], dim_start[a + 1]
    j, end_b = (dim_start[b], dim_start[b + 1]) if b >= 0 else (np.int64(0), np.int64(0))
    at = dim_start[node] if node >= 0 else 0
    weight, beyond = 0.0, np.int64(1 << 62)
    while True:
        while i < end_a and not dim_flag[i] & 4:
            i += 1
        while j < end_b and not dim_flag[j] & 4:
            j += 1
        p = dim_place[i] if i < end_a else beyond
        q = dim_place[j] if j < end_b else beyond
        place = min(p, q)
        if place == beyond:
            break
        weight += log_size[place]
        if node >= 0:
            if at >= room:
                return -1.0
            dim_place[at] = place
            dim_flag[at] = (1 if p <= q else 0) + (2 if q <= p else 0) + (0 if place == summed else 4)
            at += 1
        i += p <= q
        j += q <= p
    if node >= 0:
        dim_start[node + 1] = at
    return weight


@kernel(
    nb.void(nb.int64, nb.int64, *[_ints] * 6, nb.int64, nb.int64, _ints, _ints, _floats, _ints, _ints, nb.boolean),
    work=lambda first, last, sizes, scopes: (last - first) * 20 * (len(sizes) + len(scopes)),
)
def arrange_parts(
    first, last, parts, part_at, sizes, scope_start, scopes, strides, most, room, number, work, floats, pool, program_at, bounded
):
    """Make the trees of parts first … last−1 and write them to the pool; `program_at` says where, −1 where there is no room.

    `program_at[0]` is where the pool is free. In the bucket of a place the lightest table is joined to the one with which it
    makes the lightest product, until two are left, whose product is summed. A node alone in a bucket is summed further.
    If `bounded`, a program with a product beyond all bounds is not made, either. `number` must be −1 everywhere, and is again.
    """
    top = len(sizes) + 2
    dim_start, left, right = work[:most], work[most : 2 * most], work[2 * most : 3 * most]
    following, bucket, head = work[3 * most : 4 * most], work[4 * most : 5 * most], work[5 * most : 5 * most + top]
    rest = work[5 * most + top :]
    dim_place, dim_flag, dim_stride = rest[:room], rest[room : 2 * room], rest[2 * room : 3 * room]
    log_size, weight = floats[:top], floats[top : top + most]
    for part in range(first, last):
        at = part_at[1 + part]
        m, n_kept, n_leaves = parts[at], parts[at + 1], parts[at + 2]
        factors, order = at + 3 + m, at + 3 + m + n_leaves
        n_summed = m - n_kept
        for p in range(m):
            v = parts[at + 3 + parts[order + p]]
            number[v] = p
            log_size[p] = np.log(float(sizes[v]))
            head[p] = -1
        head[m] = -1
        # Leaves: the factors, their dims in the order of elimination; each is put into the bucket of its first.
        n: Any = np.int64(n_leaves)
        n_dims, fits = 0, True
        for t in range(n_leaves):
            f = parts[factors + t]
            dim_start[t] = n_dims
            weight[t] = 0.0
            for i in range(scope_start[f], scope_start[f + 1]):
                p, d = number[scopes[i]], n_dims
                if p < 0:
                    continue
                while d > dim_start[t] and dim_place[d - 1] > p:
                    dim_place[d], dim_stride[d] = dim_place[d - 1], dim_stride[d - 1]
                    d -= 1
                dim_place[d], dim_stride[d] = p, strides[i]
                dim_flag[n_dims] = 4
                weight[t] += log_size[p]
                n_dims += 1
            place = dim_place[dim_start[t]] if dim_start[t] < n_dims else m
            following[t] = head[place]
            head[place] = t
        dim_start[n] = n_dims
        # Buckets in the order of elimination; what is kept is in the last one, whose tables are joined but not summed.
        k = 0
        for p in range(min(n_summed + 1, m)):
            k = 0
            for q in range(p, p + 1 if p < n_summed else m):
                t = head[q]
                while t >= 0:
                    bucket[k] = t
                    k += 1
                    t = following[t]
            while k > 0 and fits:
                last_pair = p < n_summed and k <= 2
                if k == 1 and not last_pair:
                    break
                # A node alone: one more of its dims is summed as it is made.
                if k == 1 and bucket[0] >= n_leaves:
                    t = bucket[0]
                    for d in range(dim_start[t], dim_start[t + 1]):
                        if dim_place[d] == p:
                            dim_flag[d] &= 3
                    weight[t] -= log_size[p]
                else:
                    # The lightest table, and the one with which it makes the lightest product.
                    i = 0
                    for j in range(1, k):
                        if weight[bucket[j]] < weight[bucket[i]]:
                            i = j
                    a, b = bucket[i], np.int64(-1)
                    bucket[i] = bucket[k - 1]
                    least, i = np.inf, 0
                    for j in range(k - 1):
                        w = join(a, bucket[j], np.int64(-1), np.int64(-1), room, dim_start, dim_place, dim_flag, log_size)
                        if w < least:
                            least, i = w, j
                    if k > 1:
                        b = bucket[i]
                        bucket[i] = bucket[k - 2]
                        k -= 1
                    if n + 2 > most:
                        fits = False
                        break
                    summed = np.int64(p if last_pair else -1)
                    weight[n] = join(a, b, summed, n, room, dim_start, dim_place, dim_flag, log_size)
                    fits = weight[n] >= 0.0 and (weight[n] < LARGE or not bounded)
                    if not fits:  # its dims were not written to the end, so nothing may be read of them
                        break
                    weight[n] -= log_size[p] if last_pair else 0.0
                    left[n], right[n] = a, b
                    t = n
                    n += 1
                bucket[k - 1] = t
                # The product that was summed goes to the bucket of the first dim that it has left.
                if last_pair:
                    place = m
                    for d in range(dim_start[t + 1] - 1, dim_start[t] - 1, -1):
                        if dim_flag[d] & 4:
                            place = dim_place[d]
                    following[t] = head[place]
                    head[place] = t
                    break
        for p in range(m):
            number[parts[at + 3 + parts[order + p]]] = -1
        # The program: header, dims of each table, children of each node, variables, factors.
        to = program_at[0]
        program_at[1 + part] = -1
        if not fits:
            continue
        n_dims = dim_start[n]
        end = to + HEADER + n + 1 + 3 * n_dims + 2 * n + m + n_leaves
        if end > len(pool):
            continue
        program_at[1 + part], program_at[0] = to, end
        pool[to], pool[to + 1], pool[to + 2], pool[to + 4] = n, n_leaves, m, n_dims
        pool[to + 3] = bucket[0] if n_kept > 0 else -1
        to += HEADER
        for t in range(n + 1):
            pool[to + t] = dim_start[t]
        to += n + 1
        for d in range(n_dims):
            pool[to + d], pool[to + n_dims + d] = dim_place[d], dim_flag[d]
            pool[to + 2 * n_dims + d] = dim_stride[d] if d < dim_start[n_leaves] else 0
        to += 3 * n_dims
        for t in range(n):
            pool[to + t] = left[t] if t >= n_leaves else -1
            pool[to + n + t] = right[t] if t >= n_leaves else -1
        to += 2 * n
        for p in range(m):
            pool[to + p] = parts[at + 3 + parts[order + p]]
        for t in range(n_leaves):
            pool[to + m + t] = parts[factors + t]
