"""Orders of elimination, found greedily, and the binary tree of products that an order makes.

Variables are numbered 0 … m−1; scopes are lists of them. Rules of the greedy choice: 0 fewest fill-in edges, 1 lightest fill-in
(Kjærulff 1990), 2 smallest table. A little noise makes one rule many orders, the best of which is kept.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from suffice.kernels import kernel

FILL, WEIGHTED_FILL, WEIGHT = 0, 1, 2

_ints, _floats, _bytes = nb.int64[::1], nb.float64[::1], nb.uint8[::1]


@kernel(nb.float64(nb.int64, nb.int64, nb.int64, _bytes, _ints, _ints, _floats))
def cost_of(v: int, m: int, rule: int, linked: Any, neighbours: Any, degree: Any, log_size: Any) -> Any:
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
        nb.int64,
        _ints,
        _ints,
        nb.int64,
        _bytes,
        _floats,
        nb.int64,
        nb.float64,
        nb.uint64,
        nb.float64,
        _bytes,
        _ints,
        _ints,
        _floats,
        _ints,
    )
)
def eliminate(
    m: int,
    start: Any,
    scope: Any,
    n_scopes: int,
    kept: Any,
    log_size: Any,
    rule: int,
    noise: float,
    seed: Any,
    limit: float,
    linked: Any,
    neighbours: Any,
    degree: Any,
    cost: Any,
    order: Any,
) -> float:
    """The cells of all tables of a greedy order of elimination, which is written to `order`; inf once they exceed `limit`.

    `kept` variables are not eliminated and come last. `linked` (m·m) must be 0 and is 0 again afterwards.
    """
    for v in range(m):
        degree[v] = 0
    for s in range(n_scopes):
        for i in range(start[s], start[s + 1]):
            a = scope[i]
            for j in range(start[s], i):
                b = scope[j]
                if not linked[a * m + b]:
                    linked[a * m + b] = 1
                    linked[b * m + a] = 1
                    neighbours[a * m + degree[a]] = b
                    neighbours[b * m + degree[b]] = a
                    degree[a] += 1
                    degree[b] += 1
    left = 0
    for v in range(m):
        if kept[v]:
            cost[v] = np.inf
        else:
            cost[v] = cost_of(np.int64(v), m, rule, linked, neighbours, degree, log_size)
            left += 1
    total, n = 0.0, 0
    while n < left:
        best, x = np.inf, -1
        for v in range(m):
            if cost[v] < best:
                best, x = cost[v], v
            elif cost[v] == best and noise > 0.0 and x >= 0:
                seed ^= seed << np.uint64(13)
                seed ^= seed >> np.uint64(7)
                seed ^= seed << np.uint64(17)
                if seed & np.uint64(1):
                    x = v
        order[n] = x
        n += 1
        cost[x] = np.inf
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
        total += np.exp(weight)
        if total > limit:
            total = np.inf
            break
        # A new link also changes the fill-in of whoever is linked to both its ends: those are neighbours of neighbours.
        rings = 2 if filled and rule != WEIGHT else 1
        for i in range(degree[x]):
            a = neighbours[x * m + i]
            for ring in range(rings):
                for j in range(degree[a] if ring else 1):
                    b = neighbours[a * m + j] if ring else a
                    # (a neighbour of several may be costed several times: cheaper than to remember it)
                    if cost[b] != np.inf and not (ring and linked[x * m + b]):
                        seed ^= seed << np.uint64(13)
                        seed ^= seed >> np.uint64(7)
                        seed ^= seed << np.uint64(17)
                        u = float(seed >> np.uint64(11)) * 2.0**-53
                        cost[b] = cost_of(np.int64(b), m, rule, linked, neighbours, degree, log_size) * (1.0 + noise * u)
    for i in range(m * m):
        linked[i] = 0
    for v in range(m):
        if kept[v]:
            order[n] = v
            n += 1
    return total
