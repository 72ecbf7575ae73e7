"""Orders of elimination: greedy ones with a little noise, the best of many."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from suffice.inference.network import Array, Ints, Network
from suffice.inference.tree import Part

FILL, WEIGHTED_FILL, WEIGHT = 0, 1, 2
"""The rules of `kernels.elimination`."""
MOST_GREEDY = 6000
"""Above so many variables the links of all pairs are not held; the order comes from sets and a heap."""
SCHEDULE = ((WEIGHTED_FILL, 0.1), (FILL, 0.8), (WEIGHTED_FILL, 0.8), (FILL, 1.5), (WEIGHTED_FILL, 0.4), (WEIGHT, 0.2))
"""Rules, and how far noise may raise a cost, by turns: no pair is best for all networks."""
COMPILING, ASKING = 100.0, 9000.0
"""Another try is worth its time for so many cells per variable: a compiled order is used often, one for a question once."""
MOST_TRIES, FEW_TRIES, HOPELESS = 1500, 20, 1e13
"""Nobody will run a tree of more cells than are hopeless, but its size should not be far off."""


class Order(NamedTuple):
    """Which variables of a part are eliminated in what order, kept ones last, and how many cells all tables have."""

    order: Ints
    cells: float


def greedy_order(network: Network, part: Part, *, patience: float = ASKING, seed: int = 1) -> Order:
    """The best of some greedy orders. How many are tried grows with the cells to be saved, never with the clock."""
    from suffice.kernels.elimination import eliminate

    m = part.n_variables
    log_size = np.log(network.sizes[part.variables].astype(np.float64))
    if m > MOST_GREEDY:
        return completed(part, log_size, ())
    kept = np.zeros(m, np.uint8)
    kept[: part.n_kept] = 1
    linked, neighbours = np.zeros(m * m, np.uint8), np.empty(m * m, np.int64)
    degree, cost, order = np.empty(m, np.int64), np.empty(m), np.empty(m, np.int64)
    best = Order(order, np.inf)
    plain = ((WEIGHT, 0.0), (FILL, 0.0), (WEIGHTED_FILL, 0.0))
    i, most = 0, len(plain)
    while i < most:
        rule, noise = plain[i] if i < len(plain) else SCHEDULE[i % len(SCHEDULE)]
        cells = eliminate(
            m,
            part.start,
            part.scopes,
            len(part.factors),
            kept,
            log_size,
            rule,
            noise,
            np.uint64(seed * 1_000_003 + i + 1),
            best.cells,
            linked,
            neighbours,
            degree,
            cost,
            order,
        )
        if cells < best.cells:
            best = Order(order.copy(), cells)
        i += 1
        worth = MOST_TRIES if best.cells < HOPELESS else FEW_TRIES
        most = max(len(plain), int(min(best.cells / (patience * m + 1.0), worth)))
    return best


def completed(part: Part, log_size: Array, first: Iterable[int]) -> Order:
    """These variables first, then the others, each time the one with the smallest table; kept ones come last, likewise.

    With sets and a heap, for what is too large for links of all pairs.
    """
    around: list[set[int]] = [set() for _ in range(part.n_variables)]
    for a, b in pairwise(part.start):
        for v in part.scopes[a:b]:
            around[v].update(map(int, part.scopes[a:b]))
    left = set(range(part.n_variables))
    order: list[int] = []
    cells = 0.0

    def weight(v: int) -> float:
        return float(sum(log_size[u] for u in around[v]))

    def eliminate(v: int) -> set[int]:
        near = around[v] - {v}
        for u in near:
            around[u] |= near
            around[u].discard(v)
        left.remove(v)
        order.append(v)
        return near

    for v in first:
        cells += float(np.exp(weight(int(v))))
        eliminate(int(v))
    for kept in (False, True):
        heap = [(weight(v), v) for v in left if (v < part.n_kept) == kept]
        heapify(heap)
        while heap:
            stale, v = heappop(heap)
            if v not in left:
                continue
            now = weight(v)
            if now > stale:  # a table only grows while its variable waits
                heappush(heap, (now, v))
                continue
            cells += float(np.exp(now))
            for u in eliminate(v):
                if (u < part.n_kept) == kept:
                    heappush(heap, (weight(u), u))
    return Order(np.array(order, np.int64), cells)
