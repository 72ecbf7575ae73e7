"""Finite networks as arrays: factors over numbered variables, and what is observed of them. Names and models stay above.

And a part of a network, orders of its elimination (greedy ones with a little noise, the best of many), and the binary tree of
products that an order makes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from heapq import heapify, heappop, heappush
from itertools import accumulate, chain, pairwise
from operator import mul
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array as Array
from suffice.basis.arrays import Ints as Ints

NONE, HINTED = -1, -2
"""Codes of variables that are not observed; those with the second matter all the same: there is likelihood evidence of them,
or they are asked for. NONE is also the child of a factor that is no distribution."""


@dataclass(frozen=True, eq=False)
class Network:
    """Π φ_f(scope of f) over variables 0 … n−1. Where `child[f]` is a variable, φ_f is p(child | the rest of its scope).

    The scope of factor f is `scopes[scope_start[f]:scope_start[f + 1]]`, in the order of its axes; its numbers are
    `tables[table_start[f]:table_start[f + 1]]`, row by row.
    """

    sizes: Ints
    scope_start: Ints
    scopes: Ints
    strides: Ints
    """How far apart neighbouring states of each variable of each scope lie in the factor's table."""
    child: Ints
    own: Ints
    """For each variable the factor whose child it is, −1 if there is none."""
    table_start: Ints
    tables: Array
    all_factors: Ints
    n_variables: int
    n_factors: int

    @classmethod
    def of(cls, sizes: Iterable[int], factors: Iterable[tuple[Any, int, Array]]) -> Network:
        """From sizes and factors (scope, child or `NONE`, table with one axis per variable of the scope)."""
        listed, states = list(factors), np.array(list(sizes), np.int64)
        scopes = [tuple(scope) for scope, _, _ in listed]
        tables = [np.asarray(table, np.float64).reshape(-1) for _, _, table in listed]
        children = np.array([child for _, child, _ in listed], np.int64)
        every, own = np.arange(len(listed)), np.full(len(states), NONE, np.int64)
        own[children[children >= 0]] = every[children >= 0]
        size = states.tolist()
        apart = [accumulate((size[v] for v in scope[:0:-1]), mul, initial=1) if scope else () for scope in scopes]
        return cls(
            sizes=states,
            scope_start=np.cumsum([0, *map(len, scopes)], dtype=np.int64),
            scopes=np.fromiter(chain.from_iterable(scopes), np.int64),
            strides=np.array([step for steps in apart for step in list(steps)[::-1]], np.int64),
            child=children,
            own=own,
            table_start=np.cumsum([0, *map(len, tables)], dtype=np.int64),
            tables=np.concatenate([*tables, np.zeros(0)]),
            all_factors=every,
            n_variables=len(states),
            n_factors=len(listed),
        )

    def scope(self, f: int) -> Ints:
        return self.scopes[self.scope_start[f] : self.scope_start[f + 1]]

    def scopes_of(self, factors: Ints) -> Ints:
        """The variables of some factors, one after the other; those of all are in their order."""
        if len(factors) == self.n_factors:
            return self.scopes
        return np.concatenate([np.zeros(0, np.int64), *(self.scope(f) for f in factors)])

    def table(self, f: int) -> Array:
        return self.tables[self.table_start[f] : self.table_start[f + 1]].reshape(self.sizes[self.scope(f)])

    @cached_property
    def starts(self) -> Ints:
        """Where the states of each variable begin if all are counted in one row, and where they end."""
        return np.cumsum([0, *self.sizes], dtype=np.int64)

    def factors(self) -> list[tuple[Ints, int, Array]]:
        """What `of` takes."""
        return [(self.scope(f), int(self.child[f]), self.table(f)) for f in range(self.n_factors)]

    def with_factors(self, more: Iterable[tuple[Any, int, Array]]) -> Network:
        """The same network with further factors."""
        return Network.of(self.sizes, [*self.factors(), *more])

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """What a kernel that runs programs has to know of a network."""
        return self.sizes, self.scope_start, self.scopes, self.strides, self.table_start

    @cached_property
    def log_tables(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.tables)

    @cached_property
    def with_zeros(self) -> Ints:
        """The factors by which something is impossible."""
        zeros = np.concatenate([[0], np.cumsum(self.tables == 0.0)])
        return np.flatnonzero(np.diff(zeros[self.table_start])).astype(np.int64)

    @cached_property
    def links(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """What a search for the part that matters follows: `child` and `own`, the variables in an order in which children come
        before their parents, and the factors that each variable v is in: `touches[first[v]:first[v + 1]]`."""
        scopes, at = self.scopes.tolist(), self.scope_start.tolist()
        parents: dict[int, list[int]] = {v: [] for v in range(self.n_variables)}
        for v, f in enumerate(self.own.tolist()):
            if f >= 0:
                parents[v] = [u for u in scopes[at[f] : at[f + 1]] if u != v]
        backwards = np.array([*TopologicalSorter(parents).static_order()][::-1], np.int64)
        touches = np.repeat(self.all_factors, np.diff(self.scope_start))[np.argsort(self.scopes, kind="stable")]
        first = np.cumsum([0, *np.bincount(self.scopes, minlength=self.n_variables)], dtype=np.int64)
        return self.child, self.own, backwards, first, touches

    def no_evidence(self) -> Ints:
        """Codes that observe nothing."""
        return np.full(self.n_variables, NONE, np.int64)


Soft = Mapping[int, Array]
"""Likelihood evidence: for some variables, p(what was seen | state) up to a factor, one number per state."""


def strides(shape: Sequence[int] | Ints) -> list[int]:
    """How far apart neighbouring cells are along each axis."""
    return np.cumprod([1, *shape[:0:-1]], dtype=np.int64)[::-1].tolist() if len(shape) else []


Bytes = npt.NDArray[np.uint8]

MAX_CELLS, MAX_BYTES = 2.0**34, 2.0**33
"""A tree with more products in one pass up (a minute of work or so), or with larger tables, is not run."""
HEADER = 8
"""Numbers before the arrays of a program (`kernels.arrangement`)."""


@dataclass(frozen=True, eq=False)
class NetworkPart:
    """Some factors of a network and those of their variables that are not observed, what is asked for (`n_kept`) first."""

    variables: Ints
    factors: Ints
    n_kept: int

    def scopes(self, network: Network) -> list[list[int]]:
        """The unobserved variables of each factor, by their place in `variables`."""
        number = np.full(network.n_variables, -1, np.int64)
        number[self.variables] = np.arange(len(self.variables))
        return [[v for v in number[network.scope(f)].tolist() if v >= 0] for f in self.factors]

    def record(self, order: Ints | None = None) -> Ints:
        """The part as `kernels.parts` writes it, with an order of elimination or room for one."""
        m = len(self.variables)
        last = np.zeros(m, np.int64) if order is None else order
        sizes = np.array([m, self.n_kept, len(self.factors)], np.int64)
        return np.concatenate([sizes, self.variables, self.factors, last])


def part_of(network: Network, factors: Ints, codes: Ints, targets: Ints | None = None) -> NetworkPart:
    """Some factors over their unobserved variables."""
    asked = np.zeros(0, np.int64) if targets is None else np.asarray(targets, np.int64)
    touched = np.zeros(network.n_variables, bool)
    touched[network.scopes_of(factors)] = True
    touched &= codes < 0
    touched[asked] = False
    return NetworkPart(
        np.concatenate([asked, np.flatnonzero(touched)]).astype(np.int64), np.asarray(factors, np.int64), len(asked)
    )


def relevant_part(network: Network, targets: Sequence[int], seeds: Ints, codes: Ints) -> NetworkPart:
    """What p(targets | observed) depends on, and the same for some factors."""
    from suffice.numerics.kernels.inference.parts import find_parts

    n, n_factors, asked = network.n_variables, network.n_factors, np.asarray(targets, np.int64)
    parts, part_at, slots = np.empty(4 + 2 * n + n_factors, np.int64), np.zeros(4, np.int64), np.full(4, -1, np.int64)
    work, index = np.empty(2 * n + n_factors, np.int64), np.empty(1, np.int64)
    scopes = (network.scope_start, network.scopes, *network.links)
    find_parts(0, 1, asked, seeds, codes.astype(np.int32)[None], *scopes, work, parts, part_at, slots, 1, index)
    m, _, k = parts[:3]
    return NetworkPart(parts[3 : 3 + m].copy(), parts[3 + m : 3 + m + k].copy(), len(asked))


class Tree:
    """A program (`kernels.arrangement`) and its arrays, over a network; `root` is −1 if nothing was asked for."""

    def __init__(self, network: Network, program: Ints) -> None:
        self.network, self.program = network, program
        self.rooms: list[Any] = []  # which its tables were in before
        self.n_tables, self.n_leaves, m, self.root, n_dims = (int(x) for x in program[:5])
        lengths = [self.n_tables + 1, n_dims, n_dims, n_dims, self.n_tables, self.n_tables, m, self.n_leaves]
        arrays = [program[a:b] for a, b in pairwise(accumulate(lengths, initial=HEADER))]
        self.dim_start, self.dim_place, self.dim_flag, _, self.left, self.right, self.variables, self.factor = arrays

    @cached_property
    def sizes(self) -> Ints:
        """How many states the variable at each place has."""
        return self.network.sizes[self.variables]

    def free_variables(self, codes: Ints) -> list[int]:
        """The variables that are not observed, in the order of their elimination; what was asked for is among the last."""
        return [v for v in self.variables.tolist() if codes[v] < 0]

    def cells(self, codes: Ints) -> float:
        """Cells of all products, given what is observed: what time is proportional to."""
        return float(_exp(self._weights(codes, kept=False)[self.n_leaves :]).sum())

    def largest(self) -> float:
        """Cells of the largest product when nothing is observed."""
        return float(_exp(self._weights(self.network.no_evidence(), kept=False).max(initial=0.0)))

    def n_numbers(self, codes: Ints, *, down: bool = False) -> float:
        """How long a buffer the tables need, given what is observed; at most, if messages go down, too."""
        cells = float(_exp(self._weights(codes, kept=True)).sum())
        return (2.0 if down else 1.0) * cells + 2.0 + float(self.network.sizes.max(initial=1))

    @property
    def widest(self) -> int:
        """The most variables in one product."""
        return int(np.diff(self.dim_start).max(initial=0))

    def _weights(self, codes: Ints, *, kept: bool) -> Array:
        """ln of the cells of each table: of its product, or of what is kept of it."""
        logs = np.where(codes[self.variables] < 0, np.log(self.sizes), 0.0)[self.dim_place]
        if kept:
            logs = np.where(self.dim_flag & 4, logs, 0.0)
        sums = np.concatenate([[0.0], np.cumsum(logs)])
        return np.asarray(sums[self.dim_start[1:]] - sums[self.dim_start[:-1]])


def _exp(logs: Array) -> Array:
    """Cells by their logarithms, infinitely many where floats end: such trees are not run, but their sizes are told."""
    with np.errstate(over="ignore"):
        return np.exp(logs)


def arrange(network: Network, part: NetworkPart, order: Ints) -> Tree:
    """The tree that an order of elimination makes."""
    from suffice.numerics.kernels.inference.arrangement import arrange_parts

    m, n_leaves = len(part.variables), len(part.factors)
    most = 2 * n_leaves + m + 8
    number = np.full(network.n_variables, -1, np.int64)
    inside = np.zeros(network.n_variables, bool)
    inside[part.variables] = True
    room = 4 * int(np.count_nonzero(inside[network.scopes_of(part.factors)])) + 64
    part_at = np.array([1, 0, 0])
    while True:
        work, floats = np.empty(5 * most + network.n_variables + 2 + 3 * room, np.int64), np.empty(network.n_variables + 2 + most)
        pool, program_at = np.empty(HEADER + 4 * most + 3 * room, np.int64), np.zeros(2, np.int64)
        scopes = (network.scope_start, network.scopes, network.strides)
        arrange_parts(
            0, 1, part.record(order), part_at, network.sizes, *scopes, most, room, number, work, floats, pool, program_at, False
        )
        if program_at[1] >= 0:
            return Tree(network, pool[: program_at[0]].copy())
        room *= 2


FILL, WEIGHTED_FILL, WEIGHT = 0, 1, 2
"""The rules of `kernels.inference.parts`."""
MOST_GREEDY = 6000
"""Above so many variables the links of all pairs are not held; the order comes from sets and a heap."""
PLAIN = ((WEIGHT, 0.0), (FILL, 0.0), (WEIGHTED_FILL, 0.0))
SCHEDULE = ((WEIGHTED_FILL, 0.1), (FILL, 0.8), (WEIGHTED_FILL, 0.8), (FILL, 1.5), (WEIGHTED_FILL, 0.4), (WEIGHT, 0.2))
"""Rules, and how far noise may raise a cost, by turns: no pair is best for all networks."""
COMPILING, ASKING = 50.0, 0.3
"""Steps of looking for an order that each cell of its tables is worth: one that is used often, one for a question."""
MOST_STEPS, FEW_STEPS, HOPELESS = 1e9, 2e8, 2.0**34
"""No more steps than these, some seconds of them; few for a tree of more cells than anybody will run."""
CALL = 3000.0
"""What another order takes besides the steps of its making, counted in these."""
MOST_LOG = 690.0
"""ln of the most cells that are counted: e^690 is beyond everything, and still a float when it is added up."""


class Order(NamedTuple):
    """Which variables of a part are eliminated in what order, kept ones last, and how many cells all tables have."""

    order: Ints
    cells: float


class GreedyOrders:
    """Greedy orders of a part, made one after the other: the best so far, and how many steps all of them took. How many are made
    is a matter of steps and of the cells to be saved, never of the clock."""

    def __init__(self, network: Network, part: NetworkPart, seed: int = 1) -> None:
        n, m = network.n_variables, len(part.variables)
        self.part, self.steps, self._tries, self._seed, self._m = part, 0.0, 0, seed, m
        self._few = complete_order(network, part, ()) if m > MOST_GREEDY else None
        if self._few is None:
            self._record, self._cells = part.record(), np.array([np.inf])
            linked, number = np.zeros(m * m, np.uint8), np.full(n, -1, np.int64)
            work, floats = np.empty(2 * n + 2 + m * m, np.int64), np.empty(2 * n + 2)
            self._scopes, self._room = (network.sizes, network.scope_start, network.scopes), (linked, work, number, floats)

    def look(self, worth: float) -> Order:
        """The best order, after as many steps in all as its cells are worth, so many each."""
        from suffice.numerics.kernels.inference.parts import order_parts

        if self._few is not None:
            return self._few
        while not self.enough(worth):
            rule, noise = PLAIN[self._tries] if self._tries < len(PLAIN) else SCHEDULE[self._tries % len(SCHEDULE)]
            start, which = np.uint64(self._seed * 1_000_003 + self._tries), (0, 1, self._record, np.array([1, 0, 0]), self._cells)
            self.steps += order_parts(*which, *self._scopes, rule, noise, start, *self._room) + CALL
            self._tries += 1
        return Order(self._record[len(self._record) - self._m :].copy(), float(self._cells[0]))

    def enough(self, worth: float) -> bool:
        """Whether so many steps were made."""
        if self._few is not None or self._tries < len(PLAIN):
            return self._few is not None
        cells = float(self._cells[0])
        return self.steps >= min(worth * cells, MOST_STEPS if cells < HOPELESS else FEW_STEPS)


def greedy_order(network: Network, part: NetworkPart, *, worth: float = ASKING, seed: int = 1) -> Order:
    """The best of some greedy orders."""
    return GreedyOrders(network, part, seed).look(worth)


def complete_order(network: Network, part: NetworkPart, first: Iterable[int]) -> Order:
    """These variables first, then the others, each time the one with the smallest table; kept ones come last, likewise. With sets
    and a heap, for what is too large for links of all pairs."""
    sizes, done = network.sizes[part.variables], list(first)
    rest = [v for v in range(len(sizes)) if v not in set(done)]
    kept = ([v for v in rest if v >= part.n_kept], [v for v in rest if v < part.n_kept])
    found = steps(part.scopes(network), sizes, done, *kept)
    cells = sum(math.exp(min(math.log(n_cells(scope, sizes)), MOST_LOG)) for scope in found)
    return Order(np.array([scope[-1] for scope in found], np.int64), cells)


def steps(scopes: Iterable[Iterable[int]], sizes: Ints, first: Iterable[int], *then: Collection[int]) -> list[tuple[int, ...]]:
    """The scope of each product that takes a variable out of factors with these scopes, that variable last. The variables `first`
    are taken out in their order, those of each set that follows by the smallest product."""
    first, size, result = list(first), sizes.tolist(), []
    around: dict[int, set[int]] = {v: {v} for group in (first, *then) for v in group}
    for scope in map(set, scopes):
        for v in scope & around.keys():
            around[v] |= scope

    def take_out(v: int) -> set[int]:
        near = around.pop(v) - {v}
        result.append((*sorted(near), v))
        for u in near & around.keys():
            around[u] = (around[u] | near) - {v}
        return near

    for v in first:
        take_out(v)
    for group in map(frozenset, then):
        heap = [(n_cells(around[v], size), v) for v in group]
        heapify(heap)
        while heap:
            cost, v = heappop(heap)
            if v in around and n_cells(around[v], size) <= cost:  # else it is there again with what it costs now
                for u in take_out(v) & group:
                    heappush(heap, (n_cells(around[u], size), u))
    return result


def n_cells(scope: Iterable[int], sizes: Sequence[int] | Ints) -> int:
    """How many joint states some variables have."""
    return math.prod(int(sizes[v]) for v in scope)
