"""Random walks over orders of the variables, and what an order says about edges.

The parent sets of child i are rows first[i]:first[i+1] of `score` and `masks`, best first; a set counts when all its members
come before the child. Cell c lists the rows having[have[c]:have[c+1]], best first: those sets of child i that hold parent j in
cell i n + j, all its sets in cell n² + i. The members of the set in row r are members[member_first[r]:member_first[r+1]]. All
seven arrays together are a `table`, from which the innermost loops take what they need: to unpack it there would cost a tenth.

An order's score is Σᵢ ln Σ exp(score) over the sets that count; a sum ends when all that is left cannot change it.
"""

import numpy as np

from suffice.numerics.kernels import kernel, nb

NEGLIGIBLE = 25.0
"""What all further sets together add to a sum is left out when it is below exp(−25) of it, 1e-11."""

_listed = (nb.float64[::1], nb.uint64[:, ::1], nb.int64[::1], nb.int32[::1])
_table = nb.types.Tuple((nb.int64[::1], *_listed, nb.int64[::1], nb.int32[::1]))
_order, _floats, _words = nb.int32[::1], nb.float64[::1], nb.uint64[::1]


@kernel(nb.boolean(nb.uint64[:, ::1], nb.int64, _words))
def inside(masks, row, before):
    """Whether all members of a set are in `before`."""
    for w in range(len(before)):  # noqa: SIM110 (compiled)
        if masks[row, w] & ~before[w]:
            return False
    return True


@kernel(nb.float64(*_listed, _words, nb.int64, nb.float64))
def log_sum(score, masks, have, having, before, cell, level):
    """ln Σ exp(score) over the sets of a cell among the variables in `before`, −inf where there is none. It is to be added to
    `level`: what cannot change that is left out."""
    at, stop = have[cell], have[cell + 1]
    while at < stop and not inside(masks, np.int64(having[at]), before):
        at += 1
    if at == stop:
        return -np.inf
    top, total = score[having[at]], 1.0
    enough = max(level, top) - NEGLIGIBLE - np.log(stop - at)
    at += 1
    while at < stop and score[having[at]] > enough:
        if inside(masks, np.int64(having[at]), before):
            total += np.exp(score[having[at]] - top)
        at += 1
    return top + np.log(total)


@kernel(nb.float64(nb.float64, nb.float64))
def log_add(a, b):
    """ln (exp a + exp b)."""
    high, low = max(a, b), min(a, b)
    return high + np.log1p(np.exp(low - high)) if low > high - 40.0 else high


@kernel(nb.float64(*_listed, nb.int64, _words, nb.int64, nb.int64, nb.float64, nb.int64))
def change_of_score(score, masks, have, having, n, before, child, parent, level, joins):
    """The local score of a child, which was `level`, when `parent` joins (1) the others `before` it, or leaves them (0). A
    difference loses digits; where more than half goes, what remains is summed anew."""
    word, bit = parent >> 6, np.uint64(1) << np.uint64(parent & 63)
    before[word] |= bit
    some = log_sum(score, masks, have, having, before, child * n + parent, level)
    before[word] &= ~bit
    if some == -np.inf:
        return level
    if not joins:
        share = np.exp(some - level)
        left = share < 0.5
        return level + np.log1p(-share) if left else log_sum(score, masks, have, having, before, n * n + child, -np.inf)
    return log_add(level, some)


@kernel(nb.void(_words, _order, nb.int64))
def fill(before, order, n):
    """The first n variables of an order as bits."""
    for w in range(len(before)):
        before[w] = 0
    for k in range(n):
        before[order[k] >> 6] |= np.uint64(1) << np.uint64(order[k] & 63)


@kernel(nb.void(_table, _order, _floats))
def rescore(table, order, own):
    """The local scores of all variables, by place."""
    score, masks, have, having = table[1:5]
    n, before = len(order), np.empty(masks.shape[1], np.uint64)
    for k in range(n):
        fill(before, order, k)
        own[k] = log_sum(score, masks, have, having, before, n * n + order[k], -np.inf)


@kernel(nb.boolean(*_listed, _order, _floats, nb.int64, nb.float64))
def swap(score, masks, have, having, order, own, place, uniform):
    """Swap two neighbours by the rule of Metropolis; whether it was done."""
    n, u, v = len(order), np.int64(order[place]), np.int64(order[place + 1])
    before = np.empty(masks.shape[1], np.uint64)
    fill(before, order, place)
    of_v = change_of_score(score, masks, have, having, n, before, v, u, own[place + 1], np.int64(0))
    of_u = change_of_score(score, masks, have, having, n, before, u, v, own[place], np.int64(1))
    gain = of_v - own[place + 1] + of_u - own[place]
    if not (gain >= 0.0 or uniform < np.exp(gain)):
        return False
    order[place], order[place + 1] = v, u
    own[place], own[place + 1] = of_v, of_u
    return True


@kernel(nb.void(_table, _order, nb.int64, nb.float64[:, ::1]))
def by_place(table, order, v, work):
    """work[0, k]: the local score of v with the first k variables of an order, of which it is none, before it. One pass: each set
    goes to the place from which on it counts, and the places are then added up."""
    first, score, member_first, members = table[0], table[1], table[5], table[6]
    n = len(order)
    result, place = work[0], work[1]
    for k in range(n - 1):
        place[order[k]] = k + 1
        result[k] = -np.inf
    result[n - 1] = -np.inf
    for row in range(first[v], first[v + 1]):
        if score[row] < result[0] - NEGLIGIBLE - np.log(first[v + 1] - row):
            break
        latest = 0.0
        for m in range(member_first[row], member_first[row + 1]):
            latest = max(latest, place[members[m]])
        k = int(latest)
        result[k] = log_add(result[k], score[row])
    for k in range(1, n):
        result[k] = log_add(result[k - 1], result[k])


@kernel(nb.int64(_table, _order, _floats, nb.float64[:, ::1], nb.int64, nb.float64))
def relocate(table, order, own, work, start, uniform):
    """Take the variable at `start` out and put it back where the posterior of its place, given the rest, says. Its new place.
    With the variable v at place k, each of the others scores as without v if it comes before k, and as with v from there on."""
    score, masks, have, having = table[1:5]
    n = len(order)
    v = np.int64(order[start])
    for k in range(start, n - 1):
        order[k] = order[k + 1]
    by_place(table, order, v, work)
    of_v, without, with_v, total = work[0], work[1], work[2], work[3]
    before = np.zeros(masks.shape[1], np.uint64)
    ahead = 0.0
    for k in range(n - 1):
        u = np.int64(order[k])
        known = own[k] if k < start else own[k + 1]
        other = change_of_score(score, masks, have, having, n, before, u, v, known, np.int64(k < start))
        without[k], with_v[k] = (known, other) if k < start else (other, known)
        total[k] = of_v[k] + ahead
        ahead += without[k]
        before[u >> 6] |= np.uint64(1) << np.uint64(u & 63)
    total[n - 1] = of_v[n - 1] + ahead
    top, behind = total[n - 1], 0.0
    for k in range(n - 2, -1, -1):
        behind += with_v[k]
        total[k] += behind
        top = max(top, total[k])
    aim = 0.0
    for k in range(n):
        total[k] = np.exp(total[k] - top)
        aim += total[k]
    aim *= uniform
    new = 0
    while new < n - 1 and aim >= total[new]:
        aim -= total[new]
        new += 1
    while total[new] == 0.0:  # rounding at the far end
        new -= 1
    for k in range(n - 1, new, -1):
        order[k] = order[k - 1]
        own[k] = with_v[k - 1]
    order[new], own[new] = v, of_v[new]
    for k in range(new):
        own[k] = without[k]
    return new


@kernel(nb.int64(_table, _order, _floats, nb.float64[:, ::1], nb.float64, nb.int64, nb.int32[:, ::1], _floats))
def walk(table, order, own, uniforms, swaps, thin, orders, totals):
    """One move for each row of `uniforms`; every `thin`-th order is kept with its score. How many moves changed the order. A
    share `swaps` of the moves swap neighbours, the others relocate a variable. `own` holds the local scores by place."""
    score, masks, have, having = table[1:5]
    n, moved = len(order), 0
    work = np.empty((4, n))
    for t in range(len(uniforms)):
        if n > 1 and uniforms[t, 0] < swaps:
            place = min(int(uniforms[t, 1] * (n - 1)), n - 2)
            moved += swap(score, masks, have, having, order, own, place, uniforms[t, 2])
        else:
            place = min(int(uniforms[t, 1] * n), n - 1)
            moved += place != relocate(table, order, own, work, place, uniforms[t, 2])
        if (t + 1) % thin == 0:
            rescore(table, order, own)  # so that rounding does not add up
            total = 0.0
            for k in range(n):
                orders[t // thin, k] = order[k]
                total += own[k]
            totals[t // thin] = total
    return moved


@kernel(nb.void(_table, nb.int32[:, ::1], nb.float64[:, ::1], nb.float64[:, ::1], nb.int64[:, ::1], nb.int64[:, ::1]))
def edges(table, orders, uniforms, out, best, drawn):
    """Add to out[parent, child] the probability of each edge given each order, and find two sets of each child in each order. For
    each order `best` holds the row of each child's best set, `drawn` that of a set drawn by its probability."""
    first, score, masks, have, having, member_first, members = table
    n = orders.shape[1]
    before = np.empty(masks.shape[1], np.uint64)
    for s in range(len(orders)):
        for k in range(n):
            fill(before, orders[s], k)
            child = np.int64(orders[s, k])
            total = log_sum(score, masks, have, having, before, n * n + child, -np.inf)
            row, stop = first[child], first[child + 1]
            while not inside(masks, row, before):
                row += 1
            best[s, child], drawn[s, child] = row, row
            aim = uniforms[s, child]
            enough = score[row] - NEGLIGIBLE - np.log(stop - row)
            while row < stop and score[row] > enough:
                if inside(masks, row, before):
                    p = np.exp(score[row] - total)
                    if aim >= 0.0:
                        drawn[s, child] = row
                        aim -= p
                    for m in range(member_first[row], member_first[row + 1]):
                        out[members[m], child] += p
                row += 1


@kernel(nb.float64(nb.int64[::1]))
def linear_extensions(parents):
    """In how many orders of a graph's nodes its parents, bit masks, come before their children."""
    n = len(parents)
    ways = np.zeros(1 << n)
    ways[0] = 1.0
    for done in range(1 << n):
        if ways[done] > 0.0:
            for v in range(n):
                if not (done >> v) & 1 and parents[v] & ~done == 0:
                    ways[done | (1 << v)] += ways[done]
    return ways[(1 << n) - 1]
