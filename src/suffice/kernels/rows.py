"""Posteriors in many rows, each with other cells observed: the part that matters of the network is found row by row, the tree of
products of each different part made once.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from suffice.kernels import kernel
from suffice.kernels.elimination import eliminate
from suffice.kernels.products import UP, arrange, fetch_leaves, lay_out, pass_messages

_ints, _floats, _bytes = nb.int64[::1], nb.float64[::1], nb.uint8[::1]

DONE, TOO_LARGE, UNCERTAIN, IMPOSSIBLE = 0, 1, 2, 3
HEADER = 8
FEW_CELLS = 2000.0
"""An order with fewer cells is taken as it is; of others the best of three rules is."""


@kernel(nb.int64(nb.int64, _ints, _ints, _ints, _ints, _ints, _ints, _ints, _ints, _ints, _ints, _ints, _ints, _ints))
def relevant(
    n_targets: int,
    targets: Any,
    codes: Any,
    scope_start: Any,
    scopes: Any,
    child: Any,
    own: Any,
    backwards: Any,
    touch_start: Any,
    touches: Any,
    needed: Any,
    number: Any,
    variables: Any,
    factors: Any,
) -> Any:
    """The variables and factors on which p(targets | observed) depends; how many variables, and in `factors[0]` how many factors.

    Left out are barren variables (no target and nothing observed below them) and what observed variables cut off from the
    targets. Without targets all that p(observed) depends on is meant. A code of −2 has not been observed, but there is likelihood
    evidence of it. Factors that are no distributions always matter.
    `number` has −1 for variables that are left out, else their place in `variables`, targets first.
    """
    n = len(codes)
    for v in range(n):
        needed[v] = 0 if codes[v] == -1 else 1
        number[v] = -1
    for f in range(len(child)):
        if child[f] < 0:
            for i in range(scope_start[f], scope_start[f + 1]):
                needed[scopes[i]] = 1
    m = n_targets
    for i in range(n_targets):
        needed[targets[i]] = 1
        number[targets[i]] = i
        variables[i] = targets[i]
    for i in range(n):
        v = backwards[i]
        if needed[v] and own[v] >= 0:
            for j in range(scope_start[own[v]], scope_start[own[v] + 1]):
                needed[scopes[j]] = 1
    n_factors, done = 0, 0
    if n_targets == 0:
        for f in range(len(child)):
            if child[f] < 0 or needed[child[f]]:
                n_factors += 1
                factors[n_factors] = f
                for i in range(scope_start[f], scope_start[f + 1]):
                    v = scopes[i]
                    if codes[v] < 0 and number[v] < 0:
                        number[v] = m
                        variables[m] = v
                        m += 1
        done = m
    while done < m:
        x = variables[done]
        done += 1
        for t in range(touch_start[x], touch_start[x + 1]):
            f = touches[t]
            if child[f] >= 0 and not needed[child[f]]:
                continue
            earlier = False  # a factor is taken with the first of its variables that is reached
            for i in range(scope_start[f], scope_start[f + 1]):
                v = scopes[i]
                if codes[v] < 0 and 0 <= number[v] < done - 1:
                    earlier = True
            if earlier:
                continue
            n_factors += 1
            factors[n_factors] = f
            for i in range(scope_start[f], scope_start[f + 1]):
                v = scopes[i]
                if codes[v] < 0 and number[v] < 0:
                    number[v] = m
                    variables[m] = v
                    m += 1
    factors[0] = n_factors
    return m


@kernel(
    nb.int64(
        nb.int64,
        nb.int64,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _bytes,
        _ints,
        _floats,
        nb.int64,
        nb.int64,
        nb.int64,
        _ints,
        _ints,
    )
)
def program(
    n_kept: int,
    m: int,
    variables: Any,
    factors: Any,
    number: Any,
    codes: Any,
    sizes: Any,
    scope_start: Any,
    scopes: Any,
    strides: Any,
    linked: Any,
    work: Any,
    floats: Any,
    most: int,
    room: int,
    begin: int,
    pool: Any,
    at: Any,
) -> Any:
    """Make the tree of products of a part and write it to the pool at `at[0]`; its length, −1 if there is no room.

    `work` and `floats` are scratch. Header: tables, leaves, variables, root, where the buffer ends, dims.
    """
    n_leaves, top = factors[0], len(sizes) + 2
    start, scope, order = work[:most], work[most : most + room], work[most + room : most + room + top]
    rest = work[most + room + top :]
    degree, neighbours = rest[:top], rest[top:]
    log_size, cost = floats[:top], floats[top : 2 * top]
    kept = linked[len(linked) - top :]
    n_scope = 0
    for t in range(n_leaves):
        f = factors[1 + t]
        start[t] = n_scope
        for i in range(scope_start[f], scope_start[f + 1]):
            if codes[scopes[i]] < 0:
                scope[n_scope] = number[scopes[i]]
                n_scope += 1
    start[n_leaves] = n_scope
    for v in range(m):
        log_size[v] = np.log(float(sizes[variables[v]]))
        kept[v] = 1 if v < n_kept else 0
    best, rule = np.inf, 2
    best_order = rest[top + m * m : 2 * top + m * m]
    while rule >= 0:
        cells = eliminate(
            m,
            start,
            scope,
            n_leaves,
            kept,
            log_size,
            np.int64(rule),
            0.0,
            np.uint64(1),
            best,
            linked,
            neighbours,
            degree,
            cost,
            order,
        )
        if cells < best:
            best = cells
            for v in range(m):
                best_order[v] = order[v]
        rule = -1 if best <= FEW_CELLS else rule - 1
    # What follows takes the place of the links: place, then the tables' dims and the buckets.
    place = order
    for p in range(m):
        place[best_order[p]] = p
        degree[p] = sizes[variables[best_order[p]]]
        cost[p] = log_size[best_order[p]]
    for p in range(m):
        start[most - 1 - p] = variables[best_order[p]]
    dim_start, dim_place, dim_flag = (
        rest[top : top + most],
        rest[top + most : top + most + room],
        rest[top + most + room : top + most + 2 * room],
    )
    rest = rest[top + most + 2 * room :]
    dim_stride, left, right = rest[:room], rest[room : room + most], rest[room + most : room + 2 * most]
    rest = rest[room + 2 * most :]
    head, following, bucket = rest[:top], rest[top : top + most], rest[top + most : top + 2 * most]
    up, wanted = rest[top + 2 * most : top + 3 * most], linked[:most]
    d = 0
    for t in range(n_leaves):
        f = factors[1 + t]
        dim_start[t] = d
        for i in range(scope_start[f], scope_start[f + 1]):
            if codes[scopes[i]] < 0:
                p, j = place[number[scopes[i]]], d
                while j > dim_start[t] and dim_place[j - 1] > p:
                    dim_place[j], dim_stride[j] = dim_place[j - 1], dim_stride[j - 1]
                    j -= 1
                dim_place[j], dim_stride[j] = p, strides[i]
                dim_flag[d] = 4
                d += 1
    dim_start[n_leaves] = d
    n = arrange(
        n_leaves,
        m - n_kept,
        m,
        most,
        room,
        cost,
        dim_start,
        dim_place,
        dim_flag,
        left,
        right,
        head,
        following,
        floats[2 * top :],
        bucket,
    )
    if n < 0:
        return -1
    length = lay_out(n_leaves, n, dim_start, dim_place, dim_flag, degree, begin, wanted, up, up)
    n_dims = dim_start[n]
    to = at[0]
    if length < 0 or to + HEADER + 4 * n + 1 + 3 * n_dims + 2 * m + n_leaves > len(pool):
        return -1
    pool[to], pool[to + 1], pool[to + 2], pool[to + 3] = n, n_leaves, m, bucket[0]
    pool[to + 4], pool[to + 5] = length, n_dims
    to += HEADER
    for t in range(n + 1):
        pool[to + t] = dim_start[t]
    to += n + 1
    for d in range(n_dims):
        pool[to + d], pool[to + n_dims + d] = dim_place[d], dim_flag[d]
        pool[to + 2 * n_dims + d] = dim_stride[d]
    to += 3 * n_dims
    for t in range(n):
        pool[to + t], pool[to + n + t], pool[to + 2 * n + t] = left[t], right[t], up[t]
    to += 3 * n
    for p in range(m):
        pool[to + p], pool[to + m + p] = degree[p], start[most - 1 - p]
    to += 2 * m
    for t in range(n_leaves):
        pool[to + t] = factors[1 + t]
    return to + n_leaves - at[0]


@kernel(
    nb.void(
        nb.int64,
        nb.int64,
        _ints,
        nb.int32[:, ::1],
        nb.float64[:, ::1],
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        _ints,
        nb.int64,
        nb.int64,
        _ints,
        _floats,
        _bytes,
        _ints,
        _ints,
        _floats,
        nb.float64[:, ::1],
        _floats,
        _bytes,
    )
)
def answer_rows(
    first: int,
    last: int,
    targets: Any,
    seen: Any,
    tables: Any,
    sizes: Any,
    scope_start: Any,
    scopes: Any,
    strides: Any,
    table_start: Any,
    child: Any,
    own: Any,
    backwards: Any,
    touch_start: Any,
    touches: Any,
    most: int,
    room: int,
    work: Any,
    floats: Any,
    linked: Any,
    pool: Any,
    slots: Any,
    buffer: Any,
    out: Any,
    log_prob: Any,
    status: Any,
) -> None:
    """p(targets | the row's other cells) of rows first … last−1 into `out`, ln of its normaliser into `log_prob`.

    `seen` has the codes of each row, −1 for what is not observed; where it has a single row, that one serves for all, and so
    with `tables`. `pool[0]` says how much of the pool is used, `slots` finds programs by a hash of their keys (−1: empty).
    `buffer` holds the tables. `status` says of each row whether it was answered.
    """
    n, n_targets = len(sizes), len(targets)
    code, needed, number = work[:n], work[n : 2 * n], work[2 * n : 3 * n]
    variables, factors = work[3 * n : 4 * n + 1], work[4 * n + 1 : 4 * n + 2 + len(child)]
    least, rest = floats[: 2 * most], work[4 * n + 2 + len(child) :]
    spare, at, nothing = rest[:1024], rest[1024:1026], linked[:most]
    cells = 1
    for i in range(n_targets):
        cells *= sizes[targets[i]]
    here: Any = np.int64(-1)
    buffer[0] = 1.0
    for r in range(first, last):
        if here < 0 or len(seen) > 1:
            for v in range(n):
                code[v] = seen[r if len(seen) > 1 else 0, v]
            for i in range(n_targets):
                code[targets[i]] = -1
            m = relevant(
                n_targets,
                targets,
                code,
                scope_start,
                scopes,
                child,
                own,
                backwards,
                touch_start,
                touches,
                needed,
                number,
                variables,
                factors,
            )
            length = m + factors[0] + 2
            key = np.uint64(1469598103934665603)
            for i in range(m):
                key = (key ^ np.uint64(variables[i])) * np.uint64(1099511628211)
            for i in range(1, factors[0] + 1):
                key = (key ^ np.uint64(n + factors[i])) * np.uint64(1099511628211)
            slot = np.int64((key >> np.uint64(20)) % np.uint64(len(slots)))
            here = np.int64(-1)
            while slots[slot] >= 0:
                where = slots[slot]
                same = pool[where] == m + (n_targets << 32) and pool[where + 1] == factors[0]
                for i in range(m):
                    if not same:
                        break
                    same = pool[where + 2 + i] == variables[i]
                for i in range(factors[0]):
                    if not same:
                        break
                    same = pool[where + 2 + m + i] == factors[1 + i]
                if same:
                    here = where + length
                    break
                slot = (slot + 1) % len(slots)
            if here < 0:
                if pool[0] + length + 64 * most > len(pool) or pool[1] * 2 > len(slots):
                    pool[0], pool[1] = 2, 0
                    for i in range(len(slots)):
                        slots[i] = -1
                    slot = np.int64((key >> np.uint64(20)) % np.uint64(len(slots)))
                at[0] = pool[0] + length
                made = program(
                    n_targets,
                    m,
                    variables,
                    factors,
                    number,
                    code,
                    sizes,
                    scope_start,
                    scopes,
                    strides,
                    linked,
                    rest[1026:],
                    floats[2 * most :],
                    most,
                    room,
                    np.int64(1),
                    pool,
                    at,
                )
                if made < 0 or pool[at[0] + 4] > len(buffer):
                    status[r] = TOO_LARGE
                    continue
                pool[pool[0]], pool[pool[0] + 1] = m + (n_targets << 32), factors[0]
                for i in range(m):
                    pool[pool[0] + 2 + i] = variables[i]
                for i in range(factors[0]):
                    pool[pool[0] + 2 + m + i] = factors[1 + i]
                slots[slot] = pool[0]
                here = at[0]
                pool[0] = here + made
                pool[1] += 1
        n_tables, n_leaves, m, root, n_dims = pool[here], pool[here + 1], pool[here + 2], pool[here + 3], pool[here + 5]
        i = here + HEADER
        dim_start = pool[i : i + n_tables + 1]
        i += n_tables + 1
        dim_place, dim_flag, dim_stride = (
            pool[i : i + n_dims],
            pool[i + n_dims : i + 2 * n_dims],
            pool[i + 2 * n_dims : i + 3 * n_dims],
        )
        i += 3 * n_dims
        left, right, up = pool[i : i + n_tables], pool[i + n_tables : i + 2 * n_tables], pool[i + 2 * n_tables : i + 3 * n_tables]
        i += 3 * n_tables
        size, factor = pool[i : i + m], pool[i + 2 * m : i + 2 * m + n_leaves]
        spare[0] = 0
        logs = fetch_leaves(
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
            code,
            tables[r if len(tables) > 1 else 0],
            up,
            buffer,
            least,
            spare[1:],
        )
        logs += pass_messages(
            np.int64(UP),
            n_leaves,
            n_tables,
            dim_start,
            dim_place,
            dim_flag,
            size,
            left,
            right,
            nothing,
            up,
            up,
            buffer,
            least,
            spare[1:],
            spare,
        )
        if n_targets == 0:
            for t in range(n_tables):
                alone = True
                for d in range(dim_start[t], dim_start[t + 1]):
                    if dim_flag[d] & 4:
                        alone = False
                if alone:
                    logs += np.log(buffer[up[t]])
        elif logs > -np.inf and not spare[0]:
            total, k = 0.0, up[root]
            for i in range(cells):
                total += buffer[k + i]
            logs += np.log(total)
            for i in range(cells):
                out[r, i] = buffer[k + i] / total
        log_prob[r] = logs
        status[r] = UNCERTAIN if spare[0] else IMPOSSIBLE if logs == -np.inf else DONE
        if logs == -np.inf:
            for i in range(cells if n_targets else 0):
                out[r, i] = np.nan
