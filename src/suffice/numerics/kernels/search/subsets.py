"""Subsets: the best score of every subset of the variables, and clusters that a fractional graph violates.

A subset is a whole number whose bit i says that variable i is in it. The sets of child i are first[i]:first[i+1] in `score` and
`masks`.
"""

import numpy as np

from suffice.numerics.kernels import kernel, nb

LOW = 12
"""Subsets are filled in blocks of 2**LOW that agree in the other bits: a block and its tables stay in the second-level cache."""
ROW = 5
"""Inside a block, rows of 2**ROW subsets take one vector operation for each variable outside the row."""


@kernel(
    nb.void(nb.float64[::1], nb.int64[::1], nb.int64, nb.int64[::1], nb.float64[::1], nb.int64[::1]),
    work=lambda blocks, low, first, score: (len(blocks) << low) * len(first) * (2 + low // 2) + len(score),
)
def fill(total, blocks, low, first, score, masks):
    """Fill blocks of `total`, the best score of an acyclic graph over each subset W.

        total(W) = max over i in W of  total(W − i) + best_i(W − i),    best_i(U) = max of score over sets of i inside U

    Block h holds the subsets from h·2^low on; all blocks whose number has a bit less are filled. The tables of best_i over the
    low bits are made by one pass per bit, which is vector code.
    """
    n, size = len(first) - 1, 1 << low
    inside = size - 1
    best = np.empty((n, size))
    for b in range(len(blocks)):
        high = blocks[b] << low
        absent = ~(high | inside)
        block = total[high : high + size]
        for i in range(n):
            if i >= low and not high >> i & 1:
                continue
            table = best[i]
            table[:] = -np.inf
            for s in range(first[i], first[i + 1]):
                if masks[s] & absent == 0:
                    cell = masks[s] & inside
                    table[cell] = max(table[cell], score[s])
            for bit in range(low):
                step = 1 << bit
                for start in range(0, size, 2 * step):
                    without, with_ = table[start : start + step], table[start + step : start + 2 * step]
                    for j in range(step):
                        with_[j] = without[j] if without[j] > with_[j] else with_[j]
        block[:] = -np.inf
        if high == 0:
            block[0] = 0.0
        for i in range(low, n):
            if high >> i & 1:
                start = high & ~(1 << i)
                before, table = total[start : start + size], best[i]
                for j in range(size):
                    value = before[j] + table[j]
                    block[j] = value if value > block[j] else block[j]
        # The same once more inside the block, in rows of 2**ROW; only inside a row it must go subset by subset.
        row = min(ROW, low)
        width = 1 << row
        for start in range(0, size, width):
            here = block[start : start + width]
            for i in range(row, min(low, n)):
                if start >> i & 1:
                    other = start & ~(1 << i)
                    before, table = block[other : other + width], best[i, other : other + width]
                    for j in range(width):
                        value = before[j] + table[j]
                        here[j] = value if value > here[j] else here[j]
            for j in range(1, width):
                top = here[j]
                for i in range(row):
                    if j >> i & 1:
                        less = j & ~(1 << i)
                        value = here[less] + best[i, start + less]
                        top = value if value > top else top
                here[j] = top


@kernel(
    nb.int64(
        nb.int64[::1], nb.int64[::1], nb.float64[::1], nb.int64[::1], nb.int64[::1], nb.int64, nb.boolean[:, ::1], nb.float64[::1]
    )
)
def clusters(first, child, x, first_with, with_, k, found, below):
    """Search sets C of variables for small f(C) = sum of x over sets of children in C with fewer than k parents in C.

    In every acyclic graph f(C) >= k. Sets of child i are first[i]:first[i+1], those that hold i as a parent
    with_[first_with[i]:first_with[i+1]]. From each variable a tabu search puts in or takes out the variable that lowers f most;
    local minima with f < k go into `found`, what they lack into `below`; returns how many. How long a variable then stays is
    drawn from a fixed sequence.
    """
    n, count, draw = len(first) - 1, 0, 1
    shared = np.zeros(len(child), np.int64)
    inside = np.zeros(n, np.bool_)
    until = np.zeros(n, np.int64)
    for seed in range(n):
        for s in range(len(child)):
            shared[s] = 0
        for j in range(n):
            inside[j], until[j] = False, 0
        inside[seed], size, f = True, 1, 1.0
        for q in range(first_with[seed], first_with[seed + 1]):
            shared[with_[q]] += 1
        for step in range(3 * n):
            chosen, least = -1, np.inf
            for j in range(n):
                if until[j] > step or (inside[j] and size <= k + 1):
                    continue
                own, others = 0.0, 0.0
                limit = k if inside[j] else k - 1
                for s in range(first[j], first[j + 1]):
                    if shared[s] < k:
                        own += x[s]
                for q in range(first_with[j], first_with[j + 1]):
                    s = with_[q]
                    if shared[s] == limit and inside[child[s]]:
                        others += x[s]
                change = others - own if inside[j] else own - others
                if change < least - 1e-12:
                    chosen, least = j, change
            if chosen < 0:
                break
            if least > 1e-9 and f < k - 1e-3 and size > k:
                for j in range(n):
                    found[count, j] = inside[j]
                below[count] = k - f
                count += 1
                if count == len(below):
                    return count
            sign = -1 if inside[chosen] else 1
            inside[chosen] = not inside[chosen]
            size += sign
            f += least
            draw = draw * 1103515245 + 12345 & 0x7FFFFFFF
            until[chosen] = step + 3 + (draw >> 16) % 7
            for q in range(first_with[chosen], first_with[chosen + 1]):
                shared[with_[q]] += sign
    return count


@kernel(nb.void(nb.int64[:, ::1], nb.int64[::1], nb.boolean[:, ::1], nb.float64[::1], nb.int64, nb.float64, nb.boolean[::1]))
def screen(members, child, parents, x, rounds, least, violated):
    """Say of each row of `members` whether the weights x of (child, parents), seen on these variables, are no mixture of graphs.

    The nearest mixture is approached by steps towards the graph that has most of what is still missing (Frank & Wolfe 1956),
    found by the recursion over subsets. If even that has less of it than x, then x is outside, by more than `least`; what
    `rounds` steps do not show is taken for inside.
    """
    m = members.shape[1]
    size = 1 << m
    full = size - 1
    place = np.empty(parents.shape[1], np.int64)
    seen = np.empty(m * size)
    cell = np.empty(m * size, np.int64)
    goal, mixed, lack, graph = np.empty(m * size), np.empty(m * size), np.empty(m * size), np.empty(m * size)
    best, pick = np.empty((m, size)), np.empty((m, size), np.int64)
    total, last = np.empty(size), np.empty(size, np.int64)
    for row in range(len(members)):
        violated[row] = False
        place[:], seen[:] = -1, 0.0
        for j in range(m):
            place[members[row, j]] = j
        for c in range(len(child)):
            i, q = place[child[c]], 0
            if i >= 0:
                for j in range(m):
                    if parents[c, members[row, j]]:
                        q |= 1 << j
                if q:
                    seen[i * size + q] += x[c]
        d = 0
        for c in range(m * size):
            if seen[c] > 0:
                cell[d], goal[d], mixed[d] = c, seen[c], 0.0
                d += 1
        for _ in range(rounds):
            missing, has, most = 0.0, 0.0, 0.0
            best[:], pick[:] = 0.0, -1
            for c in range(d):
                lack[c], graph[c] = goal[c] - mixed[c], 0.0
                has += lack[c] * goal[c]
                if lack[c] > 0:
                    missing += lack[c]
                    most = max(most, lack[c])
                    best[cell[c] >> m, cell[c] & full], pick[cell[c] >> m, cell[c] & full] = lack[c], c
            if missing < least:
                break
            for i in range(m):
                for j in range(m):
                    for q in range(size):
                        less = q & ~(1 << j)
                        if best[i, less] > best[i, q]:
                            best[i, q], pick[i, q] = best[i, less], pick[i, less]
            total[0] = 0.0
            for q in range(1, size):
                total[q] = -1.0
                for i in range(m):
                    less = q & ~(1 << i)
                    if less != q and total[less] + best[i, less] > total[q]:
                        total[q], last[q] = total[less] + best[i, less], i
            if has - total[full] > least * most:
                violated[row] = True
                break
            q = full
            while q:
                i = last[q]
                q &= ~(1 << i)
                if pick[i, q] >= 0:
                    graph[pick[i, q]] = 1.0
            along, square = 0.0, 0.0
            for c in range(d):
                along += lack[c] * (graph[c] - mixed[c])
                square += (graph[c] - mixed[c]) ** 2
            if square == 0.0:
                break
            step = min(1.0, max(0.0, along / square))
            for c in range(d):
                mixed[c] += step * (graph[c] - mixed[c])
