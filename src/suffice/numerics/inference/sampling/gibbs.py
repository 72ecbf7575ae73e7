"""Gibbs sampling in numbered networks: chains of states, each made from the last by drawing one variable at a time.

Single moves cannot always cross zeros: where y = x for certain, neither can change before the other. If every combination of
the states that are possible at all is possible, each can be reached; that is certain where no factor has a zero among them.
Otherwise variables of such factors are summed out before chains walk in the rest (collapsed Gibbs sampling, Liu 1994, JASA 89,
p. 958). They have exact distributions given each state of the chain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Bools
from suffice.errors import TooLarge
from suffice.errors.remedies import WEIGHTING
from suffice.numerics.inference.finite.network import NONE, Array, Ints, Network, strides
from suffice.numerics.inference.numbers.gaussian import GaussianNode
from suffice.numerics.inference.sampling.sampling import Average, Chained

RANDOM = 2**20
"""Random numbers are drawn ahead of a stretch of sweeps, this many at a time."""


class GibbsState(NamedTuple):
    """A value of every variable: codes of the finite ones, numbers of the real ones."""

    codes: Ints
    reals: Array


class Trace(NamedTuple):
    """The targets after each sweep: the joint state of the finite ones as a row-major index, the real ones as columns."""

    cells: Ints
    reals: Array


Links = tuple[Ints, Ints, Ints]
"""First, what, how: for owner i, `what[k]` and `how[k]` for k in first[i]:first[i + 1]."""


class Walker:
    """All that the kernel needs to know of a network: made once, used by every chain. `nodes` are the Gaussian nodes that matter;
    `free` and `free_reals` the variables that are drawn, `targets` and `real_targets` those that are recorded."""

    def __init__(
        self,
        network: Network,
        *,
        free: Sequence[int],
        targets: Sequence[int],
        gaussians: Sequence[GaussianNode] = (),
        nodes: Iterable[int] = (),
        free_reals: Sequence[int] = (),
        real_targets: Sequence[int] = (),
    ) -> None:
        self._sizes = network.sizes
        self._free, self._free_reals = np.array(free, np.int64), np.array(free_reals, np.int64)
        self._targets, self._real_targets = np.array(targets, np.int64), np.array(real_targets, np.int64)
        self._target_step = np.array(strides(network.sizes[self._targets]), np.int64)
        self._logs = network.log_tables
        tables = np.repeat(np.arange(network.n_factors), np.diff(network.scope_start))
        self._tables = _links(np.column_stack([network.scopes, tables, network.strides]), network.n_variables)
        self._start = network.table_start[:-1]
        # One row of parameters for each configuration of each Gaussian node; rows are as long as the longest needs.
        nodes = list(nodes)
        most = max((len(gaussians[g].real_parents) for g in nodes), default=0)
        self._parents = np.zeros((len(gaussians), most), np.int64)
        self._row = np.zeros(len(gaussians), np.int64)
        links, children, parts, n_rows = [], [], [np.zeros((0, 2 + most))], 0
        for g in nodes:
            node = gaussians[g]
            links += list(zip(node.finite_parents, [g] * node.variance.ndim, strides(node.variance.shape), strict=True))
            children += [(p, g, j) for j, p in enumerate(node.real_parents)]
            self._parents[g, : len(node.real_parents)] = node.real_parents
            n = node.variance.size
            rows = np.zeros((n, 2 + most))
            rows[:, 0], rows[:, 1] = node.variance.reshape(-1), node.intercept.reshape(-1)
            rows[:, 2 : 2 + len(node.real_parents)] = node.coefficients.reshape(n, -1) if node.real_parents else 0.0
            parts.append(rows)
            self._row[g], n_rows = n_rows, n_rows + len(parts[-1])
        self._parameters = np.concatenate(parts)
        self._selected, self._children = _links(links, len(self._sizes)), _links(children, len(gaussians))

    def chain(self, start: GibbsState, n: int, rng: np.random.Generator, burn_in: int = 0) -> Trace:
        """The targets after each of n sweeps that follow `burn_in` others, from a state that is possible."""
        state, length = self._begin(start)
        for i in range(0, burn_in, length):
            self._sweep(state, self._room(min(length, burn_in - i)), rng)
        trace = self._room(n)
        for i in range(0, n, length):
            self._sweep(state, Trace(trace.cells[i : i + length], trace.reals[i : i + length]), rng)
        return trace

    def rows(self, start: GibbsState, n: int, rng: np.random.Generator, *, burn_in: int, spacing: int) -> Ints:
        """The codes of all finite variables after every `spacing` sweeps that follow `burn_in` others: [n, variables]."""
        (state, length), result = self._begin(start), np.empty((n, len(start.codes)), np.int64)
        for i in range(-1, n):
            left = burn_in if i < 0 else spacing
            while left > 0:
                self._sweep(state, self._room(min(length, left)), rng)
                left -= length
            if i >= 0:
                result[i] = state[0]
        return result

    def _begin(self, start: GibbsState) -> tuple[tuple[Ints, Ints, Ints, Array], int]:
        """A state to move on from, and the sweeps for which random numbers are drawn at a time."""
        codes, reals = start.codes.astype(np.int64), start.reals.astype(np.float64)
        rows = self._place(self._selected, self._row, codes)
        length = max(1, RANDOM // max(1, len(self._free) + len(self._free_reals)))
        return (codes, self._place(self._tables, self._start, codes), rows, reals), length

    def _room(self, n: int) -> Trace:
        return Trace(np.empty(n, np.int64), np.empty((n, len(self._real_targets))))

    def _sweep(self, state: tuple[Ints, Ints, Ints, Array], trace: Trace, rng: np.random.Generator) -> None:
        """Move the state on, as often as there is room to record."""
        from suffice.numerics.kernels.inference.draws import walk

        n, weights = len(trace.cells), np.empty(int(self._sizes.max(initial=1)))
        uniforms, normals = rng.random(n * len(self._free)), rng.standard_normal(n * len(self._free_reals))
        nodes = (self._parents, self._parameters, *self._children)
        random = (self._free, uniforms, self._free_reals, normals, weights)
        targets = (self._targets, self._target_step, self._real_targets)
        walk(self._sizes, *self._tables, self._logs, *self._selected, *nodes, *state, *random, *targets, *trace)

    def _place(self, links: Links, start: Ints, codes: Ints) -> Ints:
        """Where the numbers of the present codes stand."""
        (first, what, how), places = links, start.copy()
        np.add.at(places, what, np.repeat(codes, np.diff(first)) * how)
        return places


def _links(links: Any, n: int) -> Links:
    """Triples (owner, what, how) by owner."""
    columns = np.asarray(links, np.int64).reshape(-1, 3)
    columns = columns[np.argsort(columns[:, 0], kind="stable")]
    first = np.searchsorted(columns[:, 0], np.arange(n + 1))
    return first.astype(np.int64), columns[:, 1].copy(), columns[:, 2].copy()


SELDOM, HARDLY = 0.05, 0.01
"""A factor with numbers so much smaller than others holds the chain up; by the second, for so long that it may not show."""
TINY = 1e-300
"""What only rounding makes zero is possible: it is this instead."""
LARGEST = 2**18
"""No table is multiplied together, to sum a variable out, that is larger than this, …"""
CONDITIONAL, NUMBERS = 2**20, 2**24
"""… and none from which the distributions of what was summed out are read, nor those of all draws together than this."""


class TableFactor(NamedTuple):
    """A table with an axis for each variable of its scope."""

    scope: tuple[int, ...]
    table: Array

    @property
    def sizes(self) -> dict[int, int]:
        return dict(zip(self.scope, self.table.shape, strict=True))

    def at(self, codes: Ints) -> TableFactor:
        """What is left when some variables have codes that are not negative."""
        part = tuple(int(codes[v]) if codes[v] >= 0 else slice(None) for v in self.scope)
        return TableFactor(tuple(v for v in self.scope if codes[v] < 0), np.asarray(self.table[part]))

    def among(self, possible: Sequence[Bools]) -> Array:
        """The part of the table that has possible states only."""
        return self.table[np.ix_(*(possible[v] for v in self.scope))] if self.scope else self.table

    def sum_out(self, variable: int) -> TableFactor:
        axis = self.scope.index(variable)
        return TableFactor(self.scope[:axis] + self.scope[axis + 1 :], self.table.sum(axis=axis))


class SummedOut(NamedTuple):
    """Factors over the variables that are walked, and the variables that were summed out, in their order. `factors` are those
    before anything was summed out. `hindered` are variables of factors whose zeros may hold the chain, `slow` those of factors
    that hold it up so long that its errors may not tell."""

    network: Network
    summed: tuple[int, ...]
    hindered: tuple[int, ...]
    factors: tuple[TableFactor, ...]
    impossible: bool = False
    slow: tuple[int, ...] = ()

    def conditional(self, asked: Sequence[int]) -> tuple[TableFactor, int]:
        """p(asked | walked) of variables that were summed out, and how many walked ones its scope begins with."""
        group, near = set(asked), self._with(asked)
        while more := {v for f in near for v in f.scope if v in self.summed} - group:
            group |= more
            near = self._with(group)
        for v in sorted(group - set(asked), key=self.summed.index):
            near = [*(f for f in near if v not in f.scope), product([f for f in near if v in f.scope], CONDITIONAL).sum_out(v)]
        whole = product(near, CONDITIONAL)
        walked = [v for v in whole.scope if v not in asked]
        scope = (*walked, *asked)
        table = whole.table.transpose([whole.scope.index(v) for v in scope])
        rows = table.reshape(prod(table.shape[: len(walked)]), -1)
        total = rows.sum(axis=1, keepdims=True)
        shares = np.divide(rows, total, out=np.full_like(rows, 1.0 / rows.shape[1]), where=total > 0.0)  # else never walked to
        return TableFactor(scope, shares.reshape(table.shape)), len(walked)

    def _with(self, variables: Collection[int]) -> list[TableFactor]:
        return [f for f in self.factors if any(v in variables for v in f.scope)]


def product(factors: Sequence[TableFactor], largest: int) -> TableFactor:
    """One factor over all their variables, scaled so that its largest number is 1; refused where it would be larger."""
    sizes = {v: n for f in factors for v, n in f.sizes.items()}
    if prod(sizes.values()) > largest:
        raise TooLarge(
            f"what zeros in tables tie together has {prod(sizes.values()):,} combinations of states, too many for Gibbs "
            f"sampling; ask exactly, without a method, or by {WEIGHTING}"
        )
    table, positive = np.ones(tuple(sizes.values())), np.ones(tuple(sizes.values()), bool)
    for f in factors:
        order = sorted(f.scope, key=list(sizes).index)
        aligned = f.table.transpose([f.scope.index(v) for v in order])
        aligned = aligned.reshape([n if v in f.scope else 1 for v, n in sizes.items()])
        table, positive = table * aligned, positive & (aligned > 0.0)
        table = table / (table.max() or 1.0)
    return TableFactor(tuple(sizes), np.where(positive, np.maximum(table, TINY), 0.0))


def possible_states(sizes: Ints, factors: Sequence[TableFactor]) -> list[Bools]:
    """The states that no factor rules out, again and again, as others are ruled out."""
    possible = [np.ones(n, bool) for n in sizes]
    ruling = [(f, f.table > 0.0) for f in factors if not f.table.all()]
    changed = True
    while changed:
        changed = False
        for f, allowed in ruling:
            part = allowed[np.ix_(*(possible[v] for v in f.scope))]
            for axis, v in enumerate(f.scope):
                left = part.any(axis=tuple(i for i in range(part.ndim) if i != axis))
                if not left.all():
                    possible[v] = possible[v].copy()
                    possible[v][np.flatnonzero(possible[v])[~left]] = False
                    part, changed = part.compress(left, axis=axis), True
    return possible


def collapse(network: Network, codes: Ints, *, last: Collection[int] = (), never: Collection[int] = ()) -> SummedOut:
    """Sum out variables until no factor has a zero among possible states, the cheapest first, those in `last` after others.

    Then, but for those in `last`, also until none has numbers so small that the chain would seldom cross them, and with those in
    `last`, too, until none has numbers so small that it would hardly ever. `codes` are what is observed, negative elsewhere;
    variables in `never` stay.
    """
    factors = [TableFactor(tuple(network.scope(f).tolist()), network.table(f)).at(codes) for f in range(network.n_factors)]
    work = _Work(network.sizes, factors)
    work.reduce(0.0, last, never)
    hindered = work.hindered_variables(0.0)
    if not hindered and not work.impossible:
        work.reduce(SELDOM, (), {*last, *never})
        work.reduce(HARDLY, last, never)
    rest = Network.of(network.sizes, [(f.scope, NONE, f.table) for f in work.factors if f.scope])
    slow = tuple(sorted(work.hindered_variables(HARDLY)))
    return SummedOut(rest, tuple(work.summed), tuple(sorted(hindered)), tuple(factors), work.impossible, slow)


class _Work:
    """Factors from which variables are summed out one by one. `least` has the ratio of the extremes of possible cells of each."""

    least: list[float]

    def __init__(self, sizes: Ints, factors: Iterable[TableFactor]) -> None:
        self.sizes, self.factors, self.summed = sizes, list(factors), list[int]()
        self._look()

    def reduce(self, seldom: float, last: Collection[int], never: Collection[int]) -> None:
        """Sum out variables of factors with a ratio of `seldom` or less, while there are any that fit."""
        while not self.impossible:
            cost = {v: self._cells(v) for v in self.hindered_variables(seldom) if v not in never}
            fits = [v for v, cells in cost.items() if cells <= LARGEST]
            if not fits:
                return
            self._sum_out(min(fits, key=lambda v: (v in last, cost[v], v)))

    def hindered_variables(self, seldom: float) -> set[int]:
        """The variables of such factors. One alone in a factor is free to take any of its possible states."""
        return {
            v for f, least in zip(self.factors, self.least, strict=True) if least <= seldom for v in f.scope if len(f.scope) > 1
        }

    def _sum_out(self, variable: int) -> None:
        near = [variable in f.scope for f in self.factors]
        made = product([f for f, is_near in zip(self.factors, near, strict=True) if is_near], LARGEST).sum_out(variable)
        self.factors = [*(f for f, is_near in zip(self.factors, near, strict=True) if not is_near), made]
        self.least = [x for x, is_near in zip(self.least, near, strict=True) if not is_near]
        self.summed.append(variable)
        part = made.among(self.possible) > 0.0
        axes = range(part.ndim)
        if part.any() and all(part.any(axis=tuple(a for a in axes if a != axis)).all() for axis in axes):
            self.least.append(self._least(made))
        else:  # a possible state has zeros only, so that it is none
            self._look()

    def _look(self) -> None:
        self.possible = possible_states(self.sizes, self.factors)
        self.impossible = not all(p.any() for p in self.possible) or any(not f.table.any() for f in self.factors)
        self.least = [0.0 if self.impossible else self._least(f) for f in self.factors]

    def _least(self, factor: TableFactor) -> float:
        part = factor.among(self.possible)
        return float(part.min() / part.max())

    def _cells(self, variable: int) -> int:
        """How many numbers the product of the factors of a variable has."""
        near: dict[int, int] = {}
        for f in self.factors:
            if variable in f.scope:
                near |= f.sizes
        return prod(near.values())


class Rest(NamedTuple):
    """How cells of the targets follow from what was recorded of a walk in which some targets were summed out. `recorded` are the
    walked targets, then other walked variables that targets depend on; `rows` has the distribution of the summed-out targets
    `asked` for each configuration of the walked variables `near`. `sizes` are those of all variables."""

    targets: tuple[int, ...]
    recorded: tuple[int, ...]
    near: tuple[int, ...]
    asked: tuple[int, ...]
    rows: Array
    sizes: Ints

    @classmethod
    def of(cls, collapsed: SummedOut, targets: Sequence[int]) -> Rest:
        asked = tuple(t for t in targets if t in collapsed.summed)
        walked = [t for t in targets if t not in collapsed.summed]
        near: tuple[int, ...] = ()
        rows, sizes = np.ones((1, 1)), collapsed.network.sizes
        if asked:
            conditional, n_near = collapsed.conditional(asked)
            near, rows = conditional.scope[:n_near], conditional.table.reshape(-1, int(np.prod(sizes[list(asked)])))
        return cls(tuple(targets), (*walked, *(v for v in near if v not in walked)), near, asked, rows, sizes)

    def draw_targets(self, cells: Ints, rng: np.random.Generator) -> Ints:
        """The cell of the targets for each draw; those summed out are drawn from their distributions given the rest."""
        if not self.asked:
            return cells
        row, n = self._row(cells), self.rows.shape[1]
        inner = 5e-10 + rng.random(len(cells)) * (1.0 - 1e-9)  # clear of the ends, where rounding could pick a neighbour
        flat = np.searchsorted(np.cumsum(self.rows), row + inner)  # each row adds up to 1
        return self._cells(cells, np.clip(flat - row * n, 0, n - 1))

    def shares(self, cells: Ints, drawn: Chained) -> Average | None:
        """The means of the exact distributions, where these are not too many to hold."""
        if not self.asked:
            return None
        kinds, which = np.unique(cells, return_inverse=True)
        n_cells = int(np.prod(self.sizes[list(self.targets)]))
        if len(kinds) * max(n_cells, drawn.n_batches) > NUMBERS:
            return None
        probs, every = np.zeros((len(kinds), n_cells)), np.arange(self.rows.shape[1])
        np.put_along_axis(probs, self._cells(kinds[:, None], every[None]), self.rows[self._row(kinds)], axis=1)
        return drawn.average(which.reshape(-1), probs)

    def _row(self, cells: Ints) -> Ints:
        """The row of the distribution of what was summed out, for each recorded state."""
        return self._joint(self.near, self._codes(self.recorded, cells))

    def _cells(self, cells: Ints, inner: Ints) -> Ints:
        """The joint state of the targets, from what was recorded and the joint state of those that were summed out."""
        return self._joint(self.targets, {**self._codes(self.recorded, cells), **self._codes(self.asked, inner)})

    def _codes(self, variables: Sequence[int], states: Ints) -> dict[int, Any]:
        return dict(zip(variables, np.unravel_index(states, self.sizes[list(variables)]) if variables else (), strict=True))

    def _joint(self, variables: Sequence[int], codes: Mapping[int, Any]) -> Ints:
        result: Any = np.int64(0)
        for v in variables:
            result = result * self.sizes[v] + codes[v]
        return np.asarray(result)
