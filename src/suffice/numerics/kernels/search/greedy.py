"""Greedy search of graphs: the best change of one edge in one pass, and which node is above which, kept as edges come and go.

`here[child, parent]` has the edges, `above[node, ancestor]` the ancestors, both as 0 and 1. `gain[child, parent]` is what the
score gains when the parent is put in, or taken out if it is one; −inf where that is not allowed.

Of chordal graphs, which single edges can come or go so that every cycle of four or more nodes keeps a chord. An edge a – b can go
if it lies in one maximal clique only, so if the common neighbours of a and b are all joined. One can come if the common
neighbours of a and b part them (Giudici & Green 1999, Biometrika 86, p. 785): any other path between them would become a cycle
without a chord.

And local search over orders of variables, on pruned parent sets: those of child i are rows first[i]:first[i+1] of `score` and
`masks`, best first. Given an order, a child takes its first set whose members all come before it. Moving one variable along the
order changes its own set, and the set of a variable that it passes only by what the mover allows or takes away; each look-up
therefore starts or ends at the set in use.
"""

import numpy as np

from suffice.numerics.kernels import kernel, nb

_bits = nb.uint8[:, ::1]
_gain, _top = nb.float64[:, ::1], nb.float64[::1]
_key, _known = nb.uint64[:, ::1], nb.uint64[::1]
_sets = (nb.int64[::1], nb.float64[::1], nb.uint64[:, ::1])


@kernel(
    nb.float64(_gain, _top, _bits, _bits, _key, nb.uint64, _known, nb.float64, nb.float64, nb.int64[::1]),
    work=lambda gain, visited: 2 * gain.size + len(visited),
)
def best_move(gain, top, here, above, key, graph, visited, least, tie, move):
    """The gain of the best move, which is written to `move` as (child, parent, kind); −inf where none gains more than `least`.

    `top` has the largest gain of each child: most rows need no look at anything but their edges. Moves within `tie` of the best
    are equal: the first by child, parent and kind is taken. A move that leads to a graph in `visited` is none: a graph is the
    exclusive or of the keys of its edges (Zobrist 1970).
    """
    n = len(gain)
    best, floor, found = least, np.inf, -np.inf
    for seeking_first in range(2):
        for i in range(n):
            worth_adding = top[i] >= floor if seeking_first else top[i] > best
            for j in range(n):
                there = here[i, j]
                if not there and not worth_adding:
                    continue
                kinds = 2 if there else 1
                for k in range(kinds):
                    g = gain[i, j] + gain[j, i] if k else gain[i, j]
                    if seeking_first:
                        if g < floor:
                            continue
                    elif not g > best:
                        continue
                    if not there:
                        if above[j, i]:
                            continue
                    elif k:
                        blocked = False  # another way from j to i than the edge itself
                        for p in range(n):
                            if here[i, p] and above[p, j]:
                                blocked = True
                                break
                        if blocked:
                            continue
                    after = graph ^ key[i, j]
                    if k:
                        after ^= key[j, i]
                    known = False
                    for v in visited:
                        if v == after:
                            known = True
                            break
                    if known:
                        continue
                    if seeking_first:
                        move[0], move[1], move[2] = i, j, (k + 1 if there else 0)
                        return float(g)
                    best, found = g, g
        if found == -np.inf:
            return found
        floor = max(found - tie, least)
    return found


@kernel(nb.void(_bits, _bits, nb.int64, nb.int64), work=lambda here: 2 * here.size)
def toggle_edge(here, above, child, parent):
    """Put in the edge parent -> child, or take it out, and bring `above` up to date."""
    n = len(here)
    if not here[child, parent]:
        here[child, parent] = 1
        for b in range(n):
            if b == child or above[b, child]:
                for a in range(n):
                    above[b, a] |= above[parent, a]
                above[b, parent] = 1
        return
    here[child, parent] = 0
    # Only the child and what is below it lose ancestors. A node has more ancestors than any of them: that is an order to go by.
    below = np.empty(n, np.int64)
    height = np.zeros(n, np.int64)
    m = 0
    for b in range(n):
        if b == child or above[b, child]:
            for a in range(n):
                height[b] += above[b, a]
            k = m
            while k > 0 and height[below[k - 1]] > height[b]:
                below[k] = below[k - 1]
                k -= 1
            below[k] = b
            m += 1
    for k in range(m):
        b = below[k]
        above[b, :] = 0
        for p in range(n):
            if here[b, p]:
                for a in range(n):
                    above[b, a] |= above[p, a]
                above[b, p] = 1


@kernel(nb.void(_bits, _bits))
def chordal_changes(near, legal):
    """Of a chordal graph near[a, b], write to `legal` whether the edge of each pair can come, or go if it is there."""
    n = len(near)
    around = np.empty((n, n), np.int32)
    degree = np.zeros(n, np.int64)
    for a in range(n):
        for b in range(n):
            if near[a, b]:
                around[a, degree[a]] = b
                degree[a] += 1
    common, todo = np.empty(n, np.int32), np.empty(n, np.int32)
    seen = np.full(n, -1, np.int64)  # the last walk that came by
    walk = 0
    for a in range(n):
        legal[a, a] = 0
        for b in range(a + 1, n):
            n_common = 0
            for k in range(degree[a]):
                v = around[a, k]
                if near[b, v]:
                    common[n_common] = v
                    n_common += 1
            possible = 1
            if near[a, b]:
                for i in range(n_common):
                    for j in range(i):
                        if not near[common[i], common[j]]:
                            possible = 0
            else:
                walk += 1
                for i in range(n_common):
                    seen[common[i]] = walk
                seen[a] = walk
                todo[0], n_todo = a, 1
                while n_todo and possible:
                    n_todo -= 1
                    v = todo[n_todo]
                    for k in range(degree[v]):
                        u = around[v, k]
                        if u == b:
                            possible = 0
                            break
                        if seen[u] != walk:
                            seen[u] = walk
                            todo[n_todo] = u
                            n_todo += 1
            legal[a, b] = legal[b, a] = possible


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
