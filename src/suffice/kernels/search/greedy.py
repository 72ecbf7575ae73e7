"""Greedy search: the best change of one edge in one pass, and which node is above which, kept as edges come and go.

`here[child, parent]` has the edges, `above[node, ancestor]` the ancestors, both as 0 and 1. `gain[child, parent]` is what the
score gains when the parent is put in, or taken out if it is one; −inf where that is not allowed.

Of chordal graphs, which single edges can come or go so that every cycle of four or more nodes keeps a chord. An edge a – b can go
if it lies in one maximal clique only, so if the common neighbours of a and b are all joined. One can come if the common
neighbours of a and b part them (Giudici & Green 1999, Biometrika 86, p. 785): any other path between them would become a cycle
without a chord.
"""

import numpy as np

from suffice.kernels import kernel, nb

_bits = nb.uint8[:, ::1]
_gain, _top = nb.float64[:, ::1], nb.float64[::1]
_key, _known = nb.uint64[:, ::1], nb.uint64[::1]


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
