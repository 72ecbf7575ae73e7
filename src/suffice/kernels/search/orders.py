"""Local search over orders of variables, on pruned parent sets.

The sets of child i are rows first[i]:first[i+1] of `score` and `masks`, best first. Given an order, a child takes its first set
whose members all come before it. Moving one variable along the order changes its own set, and the set of a variable that it
passes only by what the mover allows or takes away; each look-up therefore starts or ends at the set in use.
"""

import numpy as np

from suffice.kernels import kernel, nb

_sets = (nb.int64[::1], nb.float64[::1], nb.uint64[:, ::1])


@kernel(nb.int64(nb.uint64[:, ::1], nb.int64, nb.int64, nb.uint64[::1]))
def first_within(masks, low, high, before):
    """The first row from `low` on, before `high`, whose members are all in `before`; `high` if there is none."""
    n_words = masks.shape[1]
    if n_words == 1:
        outside = ~before[0]
        for row in range(low, high):
            if masks[row, 0] & outside == 0:
                return row
        return high
    for row in range(low, high):
        inside = True
        for w in range(n_words):
            if masks[row, w] & ~before[w] != 0:
                inside = False
                break
        if inside:
            return row
    return high


@kernel(nb.float64(*_sets, nb.int32[::1], nb.int64[::1]))
def order_score(first, score, masks, order, chosen):
    """The score of an order; `chosen` gets the row of each child's set. −inf where a child has no set left."""
    before = np.zeros(masks.shape[1], np.uint64)
    total = 0.0
    for k in range(len(order)):
        v = order[k]
        row = first_within(masks, first[v], first[v + 1], before)
        chosen[v] = row
        total += score[row] if row < first[v + 1] else -np.inf
        before[v >> 6] |= np.uint64(1) << np.uint64(v & 63)
    return total


@kernel(nb.float64(*_sets, nb.int32[::1], nb.int64[::1], nb.int64, nb.float64, nb.int64[::1]))
def best_place(first, score, masks, order, chosen, at, tie, place):
    """The gain of moving the variable at `at` to its best place, which goes into place[0]. Of equal gains the nearest place."""
    n, n_words = len(order), masks.shape[1]
    v = order[at]
    word, bit = v >> 6, np.uint64(1) << np.uint64(v & 63)
    start = np.zeros(n_words, np.uint64)
    for k in range(at):
        u = order[k]
        start[u >> 6] |= np.uint64(1) << np.uint64(u & 63)
    low, high = first[v], first[v + 1]
    mine = score[chosen[v]]
    best, place[0] = 0.0, at

    before = np.zeros(n_words, np.uint64)
    for w in range(n_words):
        before[w] = start[w]
    row, passed = chosen[v], 0.0
    for k in range(at - 1, -1, -1):
        # u, with v before it, may now use v; v may no longer use u.
        u = order[k]
        before[u >> 6] &= ~(np.uint64(1) << np.uint64(u & 63))
        before[word] |= bit
        passed += score[first_within(masks, first[u], chosen[u], before)] - score[chosen[u]]
        before[word] &= ~bit
        if masks[row, u >> 6] & (np.uint64(1) << np.uint64(u & 63)) != 0:
            row = first_within(masks, row + 1, high, before)
            if row == high:
                break
        gain = passed + score[row] - mine
        if gain > best + tie:
            best, place[0] = gain, k

    for w in range(n_words):
        before[w] = start[w]
    row, passed = chosen[v], 0.0
    for k in range(at + 1, n):
        # u loses v; v may now use u.
        u = order[k]
        if masks[chosen[u], word] & bit != 0:
            other = first_within(masks, chosen[u] + 1, first[u + 1], before)
            if other == first[u + 1]:
                break
            passed += score[other] - score[chosen[u]]
        before[u >> 6] |= np.uint64(1) << np.uint64(u & 63)
        row = first_within(masks, low, row, before)
        gain = passed + score[row] - mine
        if gain > best + tie:
            best, place[0] = gain, k
    return best


@kernel(nb.void(nb.int32[::1], nb.int64, nb.int64))
def move(order, at, to):
    """Take the variable at `at` out and put it in at `to`."""
    v = order[at]
    for k in range(at, to):
        order[k] = order[k + 1]
    for k in range(at, to, -1):
        order[k] = order[k - 1]
    order[to] = v


@kernel(nb.uint64(nb.uint64))
def next_random(x):
    """The next number of a xorshift generator."""
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    return x


@kernel(
    nb.float64(*_sets, nb.int32[::1], nb.float64, nb.uint64[::1], nb.int64, nb.int64, nb.int64[::1]),
    work=lambda first, score, rounds: 4 * (rounds + 1) * len(first) * (len(first) + len(score)),
)
def climb_orders(first, score, masks, order, tie, random, rounds, kick, chosen):
    """Iterated local search from `order`, which becomes the best order found; returns its score.

    Arrays are copied by loops: one assignment to a slice would take seconds to compile.

    Each round moves some variables anywhere, up to `kick`, and then single variables to their best places until none gains; its
    result is kept if it is no worse. Round 0 only climbs. `random` is the state of the generator.
    """
    n = len(order)
    now, place = np.zeros(n, np.int32), np.zeros(1, np.int64)
    old, idle = np.empty(n, np.int64), np.zeros(n, np.bool_)
    x = random[0]
    best = -np.inf
    for turn in range(rounds + 1):
        for i in range(n):
            now[i] = order[i]
            idle[i] = False
        if turn > 0:
            x = next_random(x)
            for _ in range(2 + np.int64(x % np.uint64(kick))):
                x = next_random(x)
                at, to = np.int64(x % np.uint64(n)), np.int64((x >> np.uint64(32)) % np.uint64(n))
                move(now, at, to)
                if order_score(first, score, masks, now, chosen) == -np.inf:
                    move(now, to, at)
        order_score(first, score, masks, now, chosen)
        looked_again = False
        while True:
            gained = False
            x = next_random(x)
            shift = np.int64(x % np.uint64(n))
            for i in range(n):
                v = (i + shift) % n
                if idle[v]:
                    continue
                here = 0
                while now[here] != v:
                    here += 1
                idle[v] = True
                if best_place(first, score, masks, now, chosen, here, tie, place) > 0.0:
                    move(now, here, place[0])
                    for u in range(n):
                        old[u] = chosen[u]
                    order_score(first, score, masks, now, chosen)
                    for u in range(n):
                        if old[u] != chosen[u]:
                            idle[u] = False
                    idle[v] = False
                    gained = True
            if gained:
                looked_again = False
            elif looked_again or (n > 128 and turn > 0):
                break
            else:
                # Variables whose sets did not change may gain all the same: look at all of them once more.
                looked_again = True
                for u in range(n):
                    idle[u] = False
        total = order_score(first, score, masks, now, chosen)
        if total >= best:
            best = total
            for i in range(n):
                order[i] = now[i]
    random[0] = x
    order_score(first, score, masks, order, chosen)
    return best
