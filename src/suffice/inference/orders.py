"""Orders of elimination: greedy ones with a little noise, the best of many."""

from __future__ import annotations

import math
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from suffice.inference.network import Ints, Network
from suffice.inference.tree import Part

FILL, WEIGHTED_FILL, WEIGHT = 0, 1, 2
"""The rules of `kernels.elimination`."""
MOST_GREEDY = 6000
"""Above so many variables the links of all pairs are not held; the order comes from sets and a heap."""
PLAIN = ((WEIGHT, 0.0), (FILL, 0.0), (WEIGHTED_FILL, 0.0))
SCHEDULE = ((WEIGHTED_FILL, 0.1), (FILL, 0.8), (WEIGHTED_FILL, 0.8), (FILL, 1.5), (WEIGHTED_FILL, 0.4), (WEIGHT, 0.2))
"""Rules, and how far noise may raise a cost, by turns: no pair is best for all networks."""
COMPILING, ASKING = 50.0, 0.3
"""Steps of looking for an order that each cell of its tables is worth: a compiled tree is used often, one for a question once."""
MOST_STEPS, FEW_STEPS, HOPELESS = 1e9, 2e8, 2.0**34
"""No more steps than these, some seconds of them; few for a tree of more cells than anybody will run."""
MOST_LOG = 690.0
"""ln of the most cells that are counted: e^690 is beyond everything, and still a float when it is added up."""


class Order(NamedTuple):
    """Which variables of a part are eliminated in what order, kept ones last, and how many cells all tables have."""

    order: Ints
    cells: float


def greedy_order(network: Network, part: Part, *, worth: float = ASKING, seed: int = 1) -> Order:
    """The best of some greedy orders. How many are tried grows with the cells to be saved, never with the clock."""
    from suffice.kernels.elimination import order_parts

    n, m = network.n_variables, len(part.variables)
    if m > MOST_GREEDY:
        return completed(network, part, ())
    record, part_at, cells = part.record(), np.array([1, 0, 0]), np.array([np.inf])
    linked, number = np.zeros(m * m, np.uint8), np.full(n, -1, np.int64)
    work, floats = np.empty(2 * n + 2 + m * m, np.int64), np.empty(2 * n + 2)
    scopes = (network.sizes, network.scope_start, network.scopes)
    tries, steps = 0, 0.0
    while tries < len(PLAIN) or steps < min(worth * cells[0], MOST_STEPS if cells[0] < HOPELESS else FEW_STEPS):
        rule, noise = PLAIN[tries] if tries < len(PLAIN) else SCHEDULE[tries % len(SCHEDULE)]
        start = np.uint64(seed * 1_000_003 + tries)
        steps += order_parts(0, 1, record, part_at, cells, *scopes, rule, noise, start, linked, work, number, floats) + m
        tries += 1
    return Order(record[len(record) - m :].copy(), float(cells[0]))


def completed(network: Network, part: Part, first: Iterable[int]) -> Order:
    """These variables first, then the others, each time the one with the smallest table; kept ones come last, likewise.

    With sets and a heap, for what is too large for links of all pairs.
    """
    log_size = np.log(network.sizes[part.variables]).tolist()
    around: list[set[int]] = [set() for _ in log_size]
    for scope in part.scopes(network):
        for v in scope:
            around[v].update(scope)
    left, order, cells = set(range(len(around))), [], 0.0

    def weight(v: int) -> float:
        return float(sum(log_size[u] for u in around[v]))

    def cells_of(v: int) -> float:
        return math.exp(min(weight(v), MOST_LOG))

    def eliminate(v: int) -> set[int]:
        near = around[v] - {v}
        for u in near:
            around[u] |= near
            around[u].discard(v)
        left.remove(v)
        order.append(v)
        return near

    for v in first:
        cells += cells_of(int(v))
        eliminate(int(v))
    for kept in (False, True):
        heap = [(weight(v), v) for v in left if (v < part.n_kept) == kept]
        heapify(heap)
        while heap:
            stale, v = heappop(heap)
            if v not in left or weight(v) > stale:  # it is there again with the weight that it has now
                continue
            cells += cells_of(v)
            for u in eliminate(v):
                if (u < part.n_kept) == kept:
                    heappush(heap, (weight(u), u))
    return Order(np.array(order, np.int64), cells)
