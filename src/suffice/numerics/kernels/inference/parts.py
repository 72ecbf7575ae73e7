"""The part of a network that a question depends on, found row by row, each different part kept once; and the order in which its
variables are eliminated, found greedily.

A part is written into `parts` as: how many variables, how many of them are asked for, how many factors; the variables, those
asked for first; the factors; and room for the order.

Rules of the choice: 0 fewest fill-in edges, 1 lightest fill-in (Kjærulff 1990), 2 smallest table. A little noise makes one rule
many orders, of which the best is kept.
"""

import numpy as np

from suffice.numerics.kernels import kernel, nb

_ints, _floats, _bytes = nb.int64[::1], nb.float64[::1], nb.uint8[::1]

UNSEEN, HINTED = -1, -2
"""Codes of what was not observed; of the second there is likelihood evidence."""
FILL, WEIGHTED_FILL, WEIGHT = 0, 1, 2
FEW_CELLS = 2000.0
"""An order with no more cells is good enough for a question; otherwise the best of three rules is taken."""
BEYOND = 1e300
"""More cells are counted as so many: a number that is less than infinity, so that even a hopeless part has an order."""


@kernel(
    nb.int64(nb.int64, nb.int64, _ints, _ints, nb.int32[:, ::1], *[_ints] * 11, nb.int64, _ints),
    work=lambda first, last, scopes, own: (last - first) * (2 * len(scopes) + 4 * len(own)),
)
def find_parts(
    first, last, targets, seeds, seen, scope_start, scopes, child, own, backwards, touch_start, touches, work, parts, part_at,
    slots, room, part_of
):  # fmt: skip
    """Which part p(targets | the row's cells) depends on, for the rows from `first` on; the row before which room ran out.

    Left out are barren variables (not asked for, and nothing observed at or below them) and what observed ones cut off from the
    targets and from the factors `seeds` (unless these are barren, too). Factors that are no distributions are never barren.

    `part_at[0]` is the number of parts so far and `part_at[1 + i]` where the i-th begins, one more where the next would;
    `slots` finds parts by a hash (−1: empty). `room` is how many numbers the programs of new parts may take, by a rough guess.
    """
    n, n_factors, n_targets = len(own), len(child), len(targets)
    needed, number, taken = work[:n], work[n : 2 * n], work[2 * n : 2 * n + n_factors]
    for r in range(first, last):
        # A row that shows the same cells as the one before has the same part.
        alike = r > first
        for v in range(n):
            if alike and min(seen[r, v], 0) != min(seen[r - 1, v], 0):
                alike = False
        if alike:
            part_of[r] = part_of[r - 1]
            continue
        at = part_at[1 + part_at[0]]
        if (
            at + 3 + 2 * n + n_factors > len(parts)
            or 2 * part_at[0] + 2 > len(slots)
            or part_at[0] + 3 > len(part_at)
            or room < 0
        ):
            return r
        # Needed are what is asked for, what is observed, factors that are no distributions, and all ancestors of these.
        for v in range(n):
            needed[v] = 0 if seen[r, v] == UNSEEN else 1
            number[v] = -1
        for f in range(n_factors):
            taken[f] = 0
            if child[f] < 0:
                for i in range(scope_start[f], scope_start[f + 1]):
                    needed[scopes[i]] = 1
        m, k = 0, 0
        for i in range(n_targets):
            v = targets[i]
            needed[v] = 1
            number[v] = m
            parts[at + 3 + m] = v
            m += 1
        for i in range(n):
            v = backwards[i]
            if needed[v] and own[v] >= 0:
                for j in range(scope_start[own[v]], scope_start[own[v] + 1]):
                    needed[scopes[j]] = 1
        # The factors are listed behind room for all variables, and moved down afterwards.
        done, everything = -1, at + 3 + n
        while done < m:
            a, b = 0, len(seeds)
            if done >= 0:
                a, b = touch_start[parts[at + 3 + done]], touch_start[parts[at + 3 + done] + 1]
            for t in range(a, b):
                f = touches[t] if done >= 0 else seeds[t]
                if taken[f] or (child[f] >= 0 and not needed[child[f]]):
                    continue
                taken[f] = 1
                parts[everything + k] = f
                k += 1
                for i in range(scope_start[f], scope_start[f + 1]):
                    v = scopes[i]
                    if seen[r, v] < 0 and number[v] < 0:
                        number[v] = m
                        parts[at + 3 + m] = v
                        m += 1
            done += 1
        parts[at], parts[at + 1], parts[at + 2] = m, n_targets, k
        for i in range(k):
            parts[at + 3 + m + i] = parts[everything + i]
        # The part is looked for by its hash, and kept if it is a new one.
        length = 3 + m + k
        key = np.uint64(1469598103934665603)
        for i in range(length):
            key = (key ^ np.uint64(parts[at + i])) * np.uint64(1099511628211)
        slot = np.int64((key >> np.uint64(20)) % np.uint64(len(slots)))
        found = np.int64(-1)
        while slots[slot] >= 0 and found < 0:
            where = part_at[1 + slots[slot]]
            same = True
            for i in range(length):
                if parts[where + i] != parts[at + i]:
                    same = False
                    break
            if same:
                found = slots[slot]
            slot = (slot + 1) % len(slots)
        if found < 0:
            found = part_at[0]
            slots[slot] = found
            part_at[0] += 1
            part_at[1 + part_at[0]] = at + length + m
            room -= 32 * k + 4 * m
        part_of[r] = found
    return last


@kernel(nb.float64(nb.int64, nb.int64, nb.int64, _bytes, _ints, _ints, _floats))
def cost_of(v, m, rule, linked, neighbours, degree, log_size):
    """What it costs to eliminate v next, by a rule."""
    first, n = v * m, degree[v]
    if rule == WEIGHT:
        weight = log_size[v]
        for i in range(n):
            weight += log_size[neighbours[first + i]]
        return weight
    cost = 0.0
    for i in range(n):
        a = neighbours[first + i]
        for j in range(i):
            b = neighbours[first + j]
            if not linked[a * m + b]:
                cost += 1.0 if rule == FILL else np.exp(log_size[a] + log_size[b])
    return cost


@kernel(
    nb.float64(
        nb.int64, nb.int64, _ints, _ints, _floats, *[_ints] * 3, nb.int64, nb.float64, nb.uint64, _bytes, _ints, _ints, _floats
    ),
    work=lambda first, last, sizes, scopes: (last - first) * 6 * (len(sizes) ** 2 + len(scopes)),
)
def order_parts(first, last, parts, part_at, cells, sizes, scope_start, scopes, only, noise, seed, linked, work, number, floats):
    """Greedy orders of parts first … last−1, written behind them where their tables have fewer cells in all than `cells` says.
    Returns how much was done, in steps of a nanosecond or so. `only` is the rule, or −1 for as many as it takes. What is asked
    for is not eliminated and comes last. `linked` and `number` must be 0 and −1 everywhere, and are so again afterwards."""
    top = len(sizes) + 1
    degree, order, neighbours = work[:top], work[top : 2 * top], work[2 * top :]
    log_size, cost = floats[:top], floats[top : 2 * top]
    steps = 0.0
    for part in range(first, last):
        at = part_at[1 + part]
        m, n_kept, n_factors = parts[at], parts[at + 1], parts[at + 2]
        for v in range(m):
            number[parts[at + 3 + v]] = v
            log_size[v] = np.log(float(sizes[parts[at + 3 + v]]))
        rule = only if only >= 0 else WEIGHT
        while rule >= 0:
            # The graph: two variables of one factor are linked.
            for v in range(m):
                degree[v] = 0
            for s in range(n_factors):
                f = parts[at + 3 + m + s]
                for i in range(scope_start[f], scope_start[f + 1]):
                    a = number[scopes[i]]
                    if a < 0:
                        continue
                    for j in range(scope_start[f], i):
                        b = number[scopes[j]]
                        if b >= 0 and not linked[a * m + b]:
                            linked[a * m + b] = 1
                            linked[b * m + a] = 1
                            neighbours[a * m + degree[a]] = b
                            neighbours[b * m + degree[b]] = a
                            degree[a] += 1
                            degree[b] += 1
            for v in range(m):
                cost[v] = cost_of(np.int64(v), m, rule, linked, neighbours, degree, log_size) if v >= n_kept else np.inf
                steps += degree[v] if rule == WEIGHT else degree[v] * degree[v]
            total = 0.0
            for n in range(m - n_kept):
                # The cheapest variable by the rule is next; ties are broken by chance, where there is noise.
                best, x = np.inf, -1
                for v in range(n_kept, m):
                    if cost[v] < best:
                        best, x = cost[v], v
                    elif cost[v] == best and noise > 0.0 and x >= 0:
                        seed ^= seed << np.uint64(13)
                        seed ^= seed >> np.uint64(7)
                        seed ^= seed << np.uint64(17)
                        if seed & np.uint64(1):
                            x = v
                order[n] = x
                cost[x] = np.inf
                steps += m + degree[x] * degree[x]
                # It is taken out, and what it was linked to is linked to each other (fill-in).
                weight, filled = log_size[x], False
                for i in range(degree[x]):
                    a = neighbours[x * m + i]
                    weight += log_size[a]
                    for j in range(degree[a]):
                        if neighbours[a * m + j] == x:
                            degree[a] -= 1
                            neighbours[a * m + j] = neighbours[a * m + degree[a]]
                            break
                    for j in range(i):
                        b = neighbours[x * m + j]
                        if not linked[a * m + b]:
                            filled = True
                            linked[a * m + b] = 1
                            linked[b * m + a] = 1
                            neighbours[a * m + degree[a]] = b
                            neighbours[b * m + degree[b]] = a
                            degree[a] += 1
                            degree[b] += 1
                # The table of its bucket; an order that is no better than the best so far is left.
                total = min(total + np.exp(weight), BEYOND)
                if total >= cells[part]:
                    break
                # A new link also changes the fill-in of whoever is linked to both its ends: those are neighbours of neighbours.
                for i in range(degree[x]):
                    a = neighbours[x * m + i]
                    for j in range(-1, degree[a] if filled and rule != WEIGHT else 0):
                        b = a if j < 0 else neighbours[a * m + j]
                        if cost[b] != np.inf and (j < 0 or not linked[x * m + b]):
                            cost[b] = cost_of(np.int64(b), m, rule, linked, neighbours, degree, log_size)
                            steps += degree[b] if rule == WEIGHT else degree[b] * degree[b]
                            if noise > 0.0:
                                seed ^= seed << np.uint64(13)
                                seed ^= seed >> np.uint64(7)
                                seed ^= seed << np.uint64(17)
                                cost[b] *= 1.0 + noise * (float(seed >> np.uint64(11)) * 2.0**-53)
            if total < cells[part]:
                cells[part] = total
                for n in range(m):
                    parts[at + 3 + m + n_factors + n] = order[n] if n < m - n_kept else n - (m - n_kept)
            for i in range(m * m):
                linked[i] = 0
            rule = -1 if only >= 0 or cells[part] <= FEW_CELLS else rule - 1
        for v in range(m):
            number[parts[at + 3 + v]] = -1
    return steps
