"""What incomplete rows may have been, under a finite network: rows as they are reduced for expectations of any family, and the
completions of each component of missing cells.

Given the observed cells of a row, its missing ones fall into components that are independent of each other, the same as those of
EM (`suffice.incomplete.finite`): equal ones are computed once. The posterior of one is a list of completions with their
probabilities: all that are possible, up to `MOST` combinations of states; of larger components `DRAWS` exact draws, which weigh
the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.basis.variables import Finite, Variable
from suffice.engines.data import MAX_BYTES, Data
from suffice.engines.engine import Block, Step, is_missing
from suffice.engines.views.sample import SampledRows, row_hashes
from suffice.errors import DataError, FitError, TooLarge, bytes_in_words, listing, note
from suffice.errors.remedies import name_of
from suffice.families.protocol.family import Cpd
from suffice.incomplete.components import FlatTables, Theta
from suffice.incomplete.finite import ComponentTable, code_rows
from suffice.incomplete.numbers.patterns import n_points
from suffice.incomplete.numbers.units import Units, observed_cells
from suffice.numerics.inference.finite.logs import Elimination, LogFactor
from suffice.numerics.inference.finite.network import n_cells, steps
from suffice.statistics.counts import sizes

Small = npt.NDArray[np.int32]

CROWD = 4
"""Rows are summed up when there are so many times as many as they become: summing up takes time itself."""

MOST = 2**14
"""Combinations of states up to which a component is enumerated."""

DRAWS = 2_000
"""Draws from the posterior of a larger one."""

MANY = 32
"""FiniteCompletions above which the marginals of pairs are held."""

ROOM = 2**21
"""Combinations whose room is taken at once."""

LARGEST = 2**24
"""Cells of the largest table on the way to a draw."""

Watch = Callable[[str], None]
"""Called between parts of long work with what is being done; it may raise to stop it."""

NO_FLOATS, NO_INTS, NO_SMALL = np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int32)


def starts(lengths: Any) -> Ints:
    """Where parts of these lengths begin when they lie end to end, and where the last ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


class CodedRows(NamedTuple):
    """Rows of states by number, `codes[variable, row]`, −1 where missing, and of numbers in their units, `numbers[real, row]`,
    NaN there; `at` is where in the data each was, or one of those that it stands for."""

    data: Data | None
    variables: tuple[Finite, ...]
    reals: tuple[str, ...]
    codes: Small
    numbers: Array
    weights: Array
    at: Ints
    units: Units

    @property
    def weight(self) -> float:
        """That of all rows together."""
        return float(self.weights.sum()) if self.data is None else self.data.weight

    def ways(self, integrated: Sequence[str] = ()) -> Array:
        """In how many ways each row is completed: its combinations of missing states, times the points that stand for missing
        numbers among those that are `integrated`, and the values of counts, of which there are about as many as were seen."""
        counts = [n for n in integrated if n in self.units.not_normal]
        integrated = [n for n in integrated if n not in counts]
        states = np.where(self.codes < 0, np.array(sizes(self.variables))[:, None], 1).astype(float).prod(axis=0)
        lost = np.isnan(self.numbers[[self.reals.index(n) for n in integrated]]).sum(axis=0)
        points = np.array([1.0, *(n_points(d) for d in range(1, len(integrated) + 1))])
        for n in counts:
            column = self.numbers[self.reals.index(n)]
            states = states * np.where(np.isnan(column), np.nanmax(column) + 1.0, 1.0)
        return np.asarray(states * points[lost])

    def block(self, codes: Small, numbers: Array) -> Block:
        """Rows of these variables as an engine has them."""
        states = {v.name: column for v, column in zip(self.variables, codes.view(np.uint32), strict=True)}
        return Block({**states, **dict(zip(self.reals, numbers, strict=True))})

    def impossible(self, row: int) -> FitError:
        number, i = self.at[row].tolist()
        place = f"block {number + 1}, row {i + 1}" if self.data is None else self.data.place(number, i)
        return FitError(f"{place} is impossible under the current network: its observed cells have probability 0")


@dataclass(frozen=True, eq=False)
class ReduceRows(Step["_Reduced"]):
    """Rows with weight, `crowds` of them summed up; numbers are in their units, so that they keep their digits."""

    variables: tuple[Finite, ...]
    reals: tuple[str, ...]
    units: Units
    crowds: bool

    @classmethod
    def over(cls, variables: Sequence[Variable], data: Data, *, whole: bool = False) -> ReduceRows:
        """What reduces rows of these variables, of which those that are no column are hidden; with `whole` none are summed up."""
        finite = tuple(v for v in variables if isinstance(v, Finite))
        reals = {v.name: v for v in variables if not isinstance(v, Finite)}
        units = Units.of(observed_cells(data.select(reals), tuple(reals)), reals)
        for name in reals:
            if not units.variance[name] > 0 and name not in units.not_normal:
                raise DataError(f"all values of {name!r} are the same, and a constant has no density: leave the column out")
        # of counts the sum of ln x! is needed, too, which few rows in the place of many would not keep
        crowds = all(v.name in data.columns for v in finite) and not units.not_normal and not whole
        return cls(finite, tuple(reals), units, crowds)

    def of(self, block: Block) -> _Reduced:
        scaled = {n: self.units.inward(n, block.columns[n]) for n in self.reals}
        rows = SampledRows.of(Block({**block.columns, **scaled}, block.weights, block.number), block.weights > 0)
        return _Reduced(rows, self).crowds_merged()

    def encode(self, rows: SampledRows, data: Data | None = None) -> CodedRows:
        some = rows.take(rows.weights > 0)
        codes = np.ascontiguousarray(code_rows(some.columns, [v.name for v in self.variables], some.n_rows).T)
        numbers = np.array([some.columns[n] for n in self.reals]).reshape(len(self.reals), some.n_rows)
        return CodedRows(data, self.variables, self.reals, codes, numbers, some.weights, some.at, self.units)


@dataclass(frozen=True, eq=False)
class _Reduced:
    """Rows with numbers, reduced by a sum. What is expected of missing numbers is linear in the observed ones, so of rows that
    show the same states and lack the same numbers weight, mean and scatter say all. They are kept as rows, at most one more than
    there are numbers, with the same weight, mean and scatter: then nothing that comes later need tell them from rows that were
    seen. Rows that lack states, as all do where a variable is hidden, stay as they are, since what their numbers say of the
    states is not linear."""

    rows: SampledRows
    step: ReduceRows

    def __add__(self, other: _Reduced) -> _Reduced:
        both = _Reduced(self.rows + other.rows, self.step).crowds_merged()
        size = sum(a.nbytes for a in (*both.rows.columns.values(), both.rows.weights, both.rows.at))
        if size > MAX_BYTES:
            raise TooLarge(
                f"rows with numbers that lack different cells cannot be summed up: {both.rows.n_rows:,} of them and more take "
                f"{bytes_in_words(size)}, and the limit is {bytes_in_words(MAX_BYTES)}: take fewer columns, for which "
                "data.select([...]) is there"
            )
        return both

    def crowds_merged(self) -> _Reduced:
        """The same with few rows in the place of many that show the same states and lack the same numbers."""
        numbers, weights = np.column_stack([self.rows.columns[n] for n in self.step.reals]), self.rows.weights
        crowds = [c for c in self._groups(numbers) if len(c) > CROWD * (numbers.shape[1] + 1)] if self.step.crowds else []
        if not crowds:
            return self
        alone = np.ones(len(weights), bool)
        alone[np.concatenate(crowds)] = False
        parts = [(np.flatnonzero(alone), numbers[alone], weights[alone])]
        for crowd in crowds:
            x, w = condense_rows(numbers[crowd], weights[crowd])
            parts.append((np.full(len(w), crowd.min()), x, w))
        owner, numbers, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        few = self.rows.take(owner)
        own = {**few.columns, **dict(zip(self.step.reals, numbers.T, strict=True))}
        return _Reduced(SampledRows(own, weights, at=few.at), self.step)

    def _groups(self, numbers: Array) -> list[Ints]:
        """The rows that lack no state, in groups of equal states and patterns."""
        states = [c for n, c in self.rows.columns.items() if n not in self.step.reals]
        whole = np.flatnonzero(~np.any([is_missing(c) for c in states], axis=0)) if states else np.arange(len(numbers))
        key = [*(c[whole] for c in states), *np.packbits(~np.isnan(numbers[whole]), axis=1).T]
        order = np.argsort(row_hashes(Block({str(i): part for i, part in enumerate(key)})), kind="stable")
        new = np.any([part[order][1:] != part[order][:-1] for part in key], axis=0)  # where hashes collide, groups come in parts
        return np.split(whole[order], np.flatnonzero(new) + 1)


def condense_rows(x: Array, w: Array) -> tuple[Array, Array]:
    """Few rows with the weight, mean and scatter of these, which all lack (NaN) the same numbers; a constant stays one."""
    from scipy.linalg import helmert

    shown, total = ~np.isnan(x[0]), float(w.sum())
    off = x[:, shown] - x[0, shown]
    mean = w @ off / total
    off -= mean
    scatter = (off * w[:, None]).T @ off
    scale = np.sqrt(np.diag(scatter))
    some = np.where(scale > 0, scale, 1.0)
    square, axes = np.linalg.eigh(scatter / some[:, None] / some)
    n = len(scale) + 1
    result = np.full((n, x.shape[1]), np.nan)
    spread = helmert(n).T @ (np.sqrt(np.maximum(square, 0.0))[:, None] * axes.T)
    result[:, shown] = x[0, shown] + mean + np.sqrt(n / total) * scale * spread
    return result, np.full(n, total / n)


def theta_of(cpds: Mapping[str, Cpd], variables: Sequence[Finite]) -> Theta:
    """The tables of these variables, in their order."""
    own: list[Any] = [cpds[v.name].closed_form() for v in variables]
    tables = FlatTables.of(variables, [(*cpd.parent_variables, v) for v, cpd in zip(variables, own, strict=True)])
    return Theta(tables, np.concatenate([cpd.probs.reshape(-1) for cpd in own]))


def factors_at(theta: Theta, members: set[int], row: npt.NDArray[Any]) -> list[LogFactor]:
    """The tables that touch these variables, in logs, at what the row shows of the others."""
    result = []
    tables, touching = theta.tables, theta.tables.touching
    for f in np.unique(np.concatenate([touching[1][slice(*touching[0][v : v + 2])] for v in members])):
        scope = tables.scope(f)
        logs = theta.log_tables[tables.variables[scope[-1]].name].reshape(tables.sizes[scope])
        at = tuple(slice(None) if v in members else int(row[v]) for v in scope)
        result.append(LogFactor(tuple(v for v in scope if v in members), logs[at][None]))
    return result


class FiniteCompletions(NamedTuple):
    """The components of some rows, as `kernels.inference.expectations` takes them; none, where none are given."""

    codes: Small
    """[variable, row]: states, and ~c for the missing cell c of a component."""
    weights: Array
    start: Ints = NO_INTS
    """Of each component: where its cells begin;"""
    component: Small = NO_SMALL
    """of each cell: its component,"""
    begin: Ints = NO_INTS
    """and where its marginal begins."""
    marginal: Array = NO_FLOATS
    at: Ints = NO_INTS
    """Of each component: where its completions begin,"""
    digit_at: Ints = NO_INTS
    """and where their states begin."""
    p: Array = NO_FLOATS
    digits: Small = NO_SMALL
    pair_at: Ints = NO_INTS
    """Of each component: where the marginals of pairs of cells begin, if they are held, else −1."""
    pair: Array = NO_FLOATS

    @staticmethod
    def of(theta: Theta, rows: CodedRows, seed: int, watch: Watch) -> FiniteCompletions:
        """What the rows may have been under a network; `watch` is called on the way."""
        every = _Components.of(theta, rows)
        count, p, digits = _list_completions(every, seed, watch)
        begin = starts(theta.tables.sizes[every.variables])
        lists = (starts(count), starts(count * np.diff(every.start)), p, digits)
        marginal, pair_at, pair = _marginals(every.start, begin, lists, watch)
        cells = (every.start, every.component, begin, marginal)
        return FiniteCompletions(every.codes, rows.weights, *cells, *lists, pair_at, pair)


class _Components(NamedTuple):
    """The components of missing cells that rows have under a network, the records of a `ComponentTable`, as EM has them: of
    component d the variables start[d]:start[d+1], and the first row that has it."""

    theta: Theta
    rows: CodedRows
    table: ComponentTable
    start: Ints
    variables: Small
    component: Small
    codes: Small
    first: Ints

    @staticmethod
    def of(theta: Theta, rows: CodedRows) -> _Components:
        codes = np.array(rows.codes.T, order="C")
        table = ComponentTable(theta.tables).add_codes(codes, rows.weights)
        n = int(table.record_at[0])
        at = table.shape_at[1:][table.record_shape[:n]]
        start = starts(size := table.shapes[at])
        variables = table.shapes[np.repeat(at + 2 - start[:-1], size) + np.arange(start[-1])]
        component = np.repeat(np.arange(n, dtype=np.int32), size)
        owner, variable = np.nonzero(codes < 0)
        record, first = ~codes[owner, variable], np.empty(n, np.int64)
        first[record[::-1]] = owner[::-1]
        keys = component.astype(np.int64) * len(rows.variables) + variables
        order = np.argsort(keys, kind="stable")
        codes[owner, variable] = ~order[np.searchsorted(keys[order], record.astype(np.int64) * len(rows.variables) + variable)]
        return _Components(theta, rows, table, start, variables, component, np.ascontiguousarray(codes.T), first)


def _list_completions(some: _Components, seed: int, watch: Watch) -> tuple[Ints, Array, Small]:
    """The number of completions of each component, their probabilities, and their states."""
    n = len(some.first)
    bits = np.concatenate([[0.0], np.cumsum(np.log2(some.theta.tables.sizes[some.variables]))])
    ways = np.exp2(bits[some.start[1:]] - bits[some.start[:-1]])
    large = ways > MOST * (1 + 1e-9)
    if large.any():
        note(
            f"{int(large.sum()):,} groups of cells that are missing together have more than {MOST:,} combinations of states: "
            f"for these {DRAWS:,} exact draws stand for the posterior, and what is expected is approximate"
        )
    parts: list[tuple[Ints, Array, Small]] = [(NO_INTS, NO_FLOATS, NO_SMALL)]
    block = np.cumsum(np.where(large, 0, ways)) // ROOM
    edges = np.flatnonzero(np.diff(np.where(large, -1 - np.arange(n), block))) + 1
    for low, high in zip([0, *edges], [*edges, n], strict=True):
        watch(f"completing missing cells, {low:,} of {n:,} groups")
        if high > low and large[low]:
            members, row = some.variables[some.start[low] : some.start[high]].tolist(), some.rows.codes[:, some.first[low]]
            rng, factors = np.random.default_rng([seed, *row + 1]), factors_at(some.theta, set(members), row)
            drawn = joint_draws(members, factors, DRAWS, rng, some.rows.variables)
            if drawn is None:
                raise some.rows.impossible(int(some.first[low]))
            states, times = np.unique(drawn.astype(np.int32), axis=0, return_counts=True)
            parts.append((np.array([len(times)]), times / DRAWS, states.reshape(-1)))
        elif high > low:
            parts.append(_enumerate_states(some, low, high, np.rint(ways[low:high]).astype(np.int64)))
    joined: list[Any] = []
    for column in zip(*parts, strict=True):
        watch("putting completions together")
        joined.append(np.concatenate(column))
    count, p, digits = joined
    return count, p, digits


def _enumerate_states(some: _Components, low: int, high: int, ways: Ints) -> tuple[Ints, Array, Small]:
    from suffice.numerics.kernels.inference.expectations import list_completions

    t, found = some.theta.tables, some.table
    size = np.diff(some.start[low : high + 1])
    count, p, digits = np.zeros(len(ways), np.int64), np.empty(ways.sum()), np.empty(ways @ size, np.int32)
    records = (found.shapes, found.shape_at, found.records, found.record_at, found.record_shape)
    tables = (t.sizes, t.scope_start, t.scopes, t.strides, some.theta.logs)
    bad = list_completions(low, high, records, tables, count, digits, p)
    if bad >= 0:
        raise some.rows.impossible(int(some.first[bad]))
    return count, p[: count.sum()].copy(), digits[: int(count @ size)].copy()


def _marginals(start: Ints, begin: Ints, lists: Any, watch: Watch) -> tuple[Array, Ints, Array]:
    """The marginal of each cell of each component; of components with many completions those of pairs, and where they begin."""
    from suffice.numerics.kernels.inference.expectations import marginals

    at, digit_at = lists[:2]
    span = np.diff(begin[start])
    room = np.where((np.diff(at) > MANY) & (np.diff(start) > 1), span**2, 0)
    pair_at = np.where(room > 0, np.cumsum(room) - room, -1)
    marginal, pair = np.zeros(int(begin[-1])), np.zeros(int(room.sum()))
    cuts = np.searchsorted(digit_at, np.arange(0, int(digit_at[-1]) + ROOM, ROOM))  # looks at the clock in between
    for low, high in pairwise(np.unique(np.minimum([0, *cuts, len(span)], len(span))).tolist()):
        watch(f"marginals of missing cells, {low:,} of {len(span):,} groups")
        marginals(low, high, start, begin, lists, pair_at, marginal, pair)
    return marginal, pair_at, pair


def joint_draws(
    members: Sequence[int], factors: Sequence[LogFactor], n: int, rng: np.random.Generator, variables: Sequence[Finite]
) -> Ints | None:
    """Draws from the normalised product of factors, [draw, member]; None if it is zero everywhere. The members are summed out one
    by one, and then drawn in the other order: each from the product of the factors that were joined when it was summed out."""
    sizes = np.array([v.n_states for v in variables])
    scopes = steps((f.scope for f in factors), sizes, (), members)
    for scope in scopes:
        if (cells := n_cells(scope, sizes)) > LARGEST:
            raise TooLarge(
                f"a row lacks cells that hang together through {listing([variables[v].name for v in scope])}: their table would "
                f"have {cells:.3g} cells ({bytes_in_words(8.0 * cells)}), and may have {LARGEST:,}; allow fewer parents "
                f"({name_of('max_parents')})"
            )
    gone = Elimination(factors, scopes, sizes)
    if gone.joint(())[0] == -np.inf:
        return None
    drawn = gone.draws(n, rng)
    return np.column_stack([drawn[v] for v in members])
