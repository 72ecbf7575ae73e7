"""Sequences of a block, reduced to what an expectation needs: which transition each step has, and what it shows.

Steps with the same observed parents of unknown variables have the same *transition*; steps that show the same states have the
same *symbol*, and one row of a table of likelihoods. Numbers, counts and regressions are scored step by step, for each joint
state, as rows of components are (`suffice.incomplete.completed_rows`); the posterior of the states weighs their completions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import Block, added, is_missing
from suffice.engines.lagged import lagged
from suffice.graphs.lagged import variable_and_lag
from suffice.incomplete.chain_batches import Match, Scored, local_parameters, step_batches
from suffice.incomplete.chain_inputs import count_stepwise, stepwise_matrices
from suffice.incomplete.chain_kinds import ImpossibleSequence, Kinds, steps_of
from suffice.incomplete.chain_states import Phase, StateSpace, parameter_nodes
from suffice.incomplete.completed_rows import Batch, gathered, log_weights, other_columns
from suffice.incomplete.components import Expectation, FlatTables, NodeFamily, Theta
from suffice.incomplete.first_slices import stationary
from suffice.incomplete.normal_steps import NormalSteps
from suffice.incomplete.units import Units
from suffice.inference.chains.finite import expect_numbers, expect_states
from suffice.inference.chains.steps import StateSteps
from suffice.statistics.chan import Spread

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]

FIRST = "first states"
"""Under this name an expectation has how often each joint state is expected to be the first, where that is stationary."""

SMALLEST = -650.0
"""The logarithm of a likelihood that a double still holds with all its digits."""


@dataclass(frozen=True, eq=False)
class ChainLayout:
    """A template's nodes as steps of sequences need them. It travels with the steps that are folded over sequences.

    `shown` are the columns that the data have; `counted` the parameter nodes whose families every step shows: they are counted
    once, and take no part in expectations. `stationary`: the joint state begins as its transition settles.
    """

    space: StateSpace
    tables: FlatTables
    units: Units
    shown: tuple[str, ...]
    counted: frozenset[str]
    stationary: bool = False

    @property
    def phases(self) -> tuple[Phase, ...]:
        return self.space.phases

    @cached_property
    def nodes(self) -> dict[str, NodeFamily]:
        """The nodes that have parameters."""
        return parameter_nodes(self.phases[-1:] if self.stationary else self.phases)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns of all nodes, at their lags, as far as the data have them."""
        every = sorted({n for phase in self.phases for n in phase.columns})
        return tuple(n for n in every if variable_and_lag(n)[0] in self.shown)

    def emitted(self, phase: Phase, *, by_table: bool) -> dict[str, NodeFamily]:
        """The nodes of a phase whose variable is not part of the joint state, tables or others."""
        return {
            n: node
            for n, node in phase.nodes.items()
            if n not in self.space.unknown and node.by_table == by_table and phase.keys[n] not in self.counted
        }

    @cached_property
    def stepwise(self) -> bool:
        """Whether transitions are regressions on what each step shows: then every step has a matrix of its own."""
        return any(not phase.nodes[n].by_table for phase in self.phases for n in self.space.unknown)

    def product(self, theta: Theta, phase: Phase, codes: Mapping[str, Ints], n: int) -> Array:
        """p(s' | s) in a phase for each of n combinations of observed codes, as far as tables say it."""
        product = np.repeat(self.space.allowed(phase)[None], n, axis=0)
        for table in self.space.transitions(phase):
            product *= theta.cells[theta.tables.cells(table.key)][table.cells(codes)]
        return product

    def settling(self, theta: Theta) -> Array:
        """The transition of all steps but the first, where no observed cell takes part in it."""
        return np.asarray(self.product(theta, self.phases[-1], {}, 1)[0])

    @cached_property
    def varies(self) -> bool:
        """Whether tables that steps emit have parameters of their own in first slices."""
        keys = [[phase.keys[n] for n in self.emitted(phase, by_table=True)] for phase in self.phases]
        return any(own != keys[-1] for own in keys)

    def columns(self, block: Block, step: Ints) -> Columns:
        """The columns of a block at their lags; what lies before the first step is missing."""
        return {name: lagged(block.columns[base], step, k) for name, base, k in self._places}

    def rows(self, block: Block) -> ChainRows:
        """A block of whole sequences, reduced."""
        return ChainRows.of(self, block)

    @cached_property
    def _places(self) -> list[tuple[str, str, int]]:
        return [(name, *variable_and_lag(name)) for name in self.names]


class Emission(NamedTuple):
    """A table that the steps of a phase emit: the symbols of the phase; what joint states add to the flat index of a cell, and
    what symbols do; which symbols show the child; and the cells of those, for each joint state."""

    name: str
    key: str
    symbols: npt.NDArray[np.intp]
    n_states: int
    current: Ints
    base: Ints
    seen: npt.NDArray[np.bool_]
    shown: Ints


@dataclass(frozen=True, eq=False)
class ChainRows:
    """Whole sequences, reduced."""

    layout: ChainLayout
    number: int
    starts: Ints
    weight: Array | None
    transitions: Kinds
    symbols: Kinds | None
    dense: tuple[tuple[Phase, tuple[Batch, ...], tuple[NormalSteps, ...]], ...]
    """Numbers, counts and regressions: batches of steps of a phase, and steps whose numbers are normal given the states."""
    inputs: Columns
    observed: Columns
    """Columns of finite parents, and"""
    gaps: Columns
    """which cells are missing, of counts of which some are."""

    @classmethod
    def of(cls, layout: ChainLayout, block: Block) -> ChainRows:
        assert block.lengths is not None
        starts, step = steps_of(block.lengths)
        columns, space = layout.columns(block, step), layout.space
        phase = np.minimum(step, len(layout.phases) - 1)
        driving = _observed(layout, {v.name for p in layout.phases for n in space.unknown for v in p.nodes[n].parents})
        transitions = Kinds.of(phase, {n: columns[n] for n in driving if columns[n].dtype.kind != "f"})
        tabled = (node for p in layout.phases for node in layout.emitted(p, by_table=True).values())
        shown = {v.name for node in tabled for v in node.members}
        labels = [n for n in space.unknown if n in layout.shown]
        seen = sorted({*_observed(layout, shown), *labels})
        symbols = Kinds.of(phase if layout.varies else len(layout.phases) - 1, {n: columns[n] for n in seen}) if seen else None
        weight = None if block.weight is None else block.weight[starts[:-1]]
        dense = tuple(step_batches(layout, columns, phase, block.weights))
        inputs = {n: columns[n] for n in driving} if layout.stepwise else {}
        counts = [n for n, node in layout.phases[-1].nodes.items() if node.by_rows and node.counted and n in columns]
        gaps = {n: lost for n in counts if (lost := is_missing(columns[n])).any()}
        finite = {n: c for n, c in columns.items() if c.dtype.kind != "f"} if gaps else {}
        return cls(layout, block.number, starts, weight, transitions, symbols, dense, inputs, finite, gaps)

    @property
    def n_steps(self) -> int:
        return int(self.starts[-1])

    def steps(self, theta: Theta) -> tuple[StateSteps, list[Scored]]:
        """Transitions and likelihoods under some parameters, and what was remembered of numbers."""
        scored: list[Scored] = []
        return self._steps(theta, self._scored(theta, scored)), scored

    def _steps(self, theta: Theta, log_likelihood: Array | None) -> StateSteps:
        codes, matrices = self._matrices(theta)
        symbols, table = None, None
        if self.symbols is not None:
            logs = self._log_table(theta, self.symbols)
            if logs[logs > -np.inf].min(initial=0.0) < SMALLEST:  # a product of tables that a double does not hold
                dense = logs[self.symbols.kind].T
                log_likelihood = dense if log_likelihood is None else log_likelihood + dense
            else:
                symbols, table = self.symbols.kind, np.exp(logs)
        return StateSteps(self.starts, codes, matrices, symbols, table, log_likelihood, self.weight)

    def _scored(self, theta: Theta, scored: list[Scored]) -> Array | None:
        """Log likelihoods of what steps show but for tables."""
        if not self.dense:
            return None
        log_likelihood = np.empty((self.layout.space.size, self.n_steps))
        fresh = any(steps.fills(self.n_steps) for steps in self.dense[0][2][:1])
        if not fresh:  # zeros would cost another pass
            log_likelihood[:] = 0.0
        for phase, own, normal in self.dense:
            local = local_parameters(theta, phase, self.layout.emitted(phase, by_table=False))
            for steps in normal:
                steps.score(steps.normals(local), log_likelihood, fresh=fresh)
                fresh = False
            scored += [self._score(batch, phase, local, log_likelihood) for batch in own]
        return log_likelihood

    @cached_property
    def _alone(self) -> tuple[Phase, NormalSteps] | None:
        """The numbers that are all that steps show, if that is so."""
        if self.symbols is not None or len(self.dense) != 1:
            return None
        [(phase, own, normal)] = self.dense
        return (phase, normal[0]) if not own and len(normal) == 1 and normal[0].fills(self.n_steps) else None

    def expected(self, theta: Theta) -> Expectation:
        """What the sequences are expected to count, and ln p of what they show."""
        scored: list[Scored] = []
        moments = None
        if self._alone is None:
            steps = self._steps(theta, self._scored(theta, scored))
            found = expect_states(steps)
        else:
            phase, normal = self._alone
            local = local_parameters(theta, phase, self.layout.emitted(phase, by_table=False))
            found, moments = expect_numbers(steps := self._steps(theta, None), normal.normals(local))
        lost = np.flatnonzero(found.log_likelihood == -np.inf)
        if self.weight is not None:
            lost = lost[self.weight[lost] > 0]
        if len(lost):
            raise ImpossibleSequence(self.number, int(found.stuck[lost[0]]))
        logs = float(found.log_likelihood.sum() if self.weight is None else _dot(self.weight, found.log_likelihood))
        total = Expectation(logs, np.zeros(theta.tables.n_cells), {}, {})
        self._count_transitions(theta, found.pairs, total)
        if self.symbols is not None:
            counts = found.counts if steps.table is not None else self._by_symbol(self.symbols, found.posterior)
            self._count_symbols(theta, self.symbols, counts, total)
        parts = [total, *(self._gathered(s, found.posterior) for s in scored), *self._normal(found.posterior, moments)]
        return reduce(added, parts)

    def _normal(self, posterior: Array, moments: Spread | None) -> Iterator[Expectation]:
        nothing = np.zeros(self.layout.tables.n_cells)
        for phase, _, normal in self.dense:
            for steps in normal:
                own = steps.gathered(posterior) if moments is None else steps.by_node(moments)
                yield Expectation(0.0, nothing, {phase.keys[n]: groups for n, groups in own.items()}, {})

    def _matrices(self, theta: Theta) -> tuple[npt.NDArray[np.int32], Array]:
        space, kinds = self.layout.space, self.transitions
        matrices = np.zeros((len(kinds.phase), space.size, space.size))
        for phase in self.layout.phases:
            some, codes = kinds.of_phase(phase.number)
            if len(some) and not (self.layout.stationary and phase.number == 0):
                matrices[some] = self.layout.product(theta, phase, codes, len(some))
        if self.layout.stationary:
            matrices[kinds.phase == 0, 0] = stationary(self.layout.settling(theta))
        return (kinds.kind, matrices) if not self.layout.stepwise else stepwise_matrices(self, theta, matrices)

    def _count_transitions(self, theta: Theta, weight: Array, total: Expectation) -> None:
        space, kinds = self.layout.space, self.transitions
        if self.layout.stepwise:
            weight = count_stepwise(self, theta, weight, total)
        for phase in self.layout.phases:
            some, codes = kinds.of_phase(phase.number)
            if self.layout.stationary and phase.number == 0:
                total.steps[FIRST] = weight[some, 0].sum(axis=0)
                continue
            for table in space.transitions(phase) if len(some) else ():
                index = np.broadcast_to(table.cells(codes), (len(some), space.size, space.size))
                own = total.cells[theta.tables.cells(table.key)]
                own += np.bincount(index.reshape(-1), weight[some].reshape(-1), len(own))

    def _log_table(self, theta: Theta, kinds: Kinds) -> Array:
        """ln p(what a symbol shows | joint state): symbols × states."""
        space = self.layout.space
        table = np.zeros((len(kinds.phase), space.size))
        for e in self.emissions:
            table[e.symbols[e.seen]] += theta.log_tables[e.key][e.shown]
        for name in (n for n in space.unknown if n in kinds.codes):
            labels, own = kinds.codes[name], space.digits[name, 0]
            known = labels <= own.max()
            table[known[:, None] & (labels[:, None] != own)] = -np.inf
        return table

    def _count_symbols(self, theta: Theta, kinds: Kinds, weight: Array, total: Expectation) -> None:
        for e in self.emissions:
            cells, own = theta.cells[theta.tables.cells(e.key)], total.cells[theta.tables.cells(e.key)]
            own += np.bincount(e.shown.reshape(-1), weight[e.symbols[e.seen]].reshape(-1), len(own))
            if not e.seen.all():  # a missing child is expected to be as its parents say
                index = (e.base[~e.seen, None] + e.current)[:, :, None] + np.arange(e.n_states)
                shares = weight[e.symbols[~e.seen]][:, :, None] * cells[index]
                own += np.bincount(index.reshape(-1), shares.reshape(-1), len(own))

    def _by_symbol(self, kinds: Kinds, posterior: Array) -> Array:
        """The posterior of the states summed over the steps of each symbol."""
        weight = 1.0 if self.weight is None else np.repeat(self.weight, np.diff(self.starts))
        return np.stack([np.bincount(kinds.kind, p * weight, len(kinds.phase)) for p in posterior], axis=1)

    @cached_property
    def emissions(self) -> list[Emission]:
        """The tables that steps emit, phase by phase."""
        result: list[Emission] = []
        for phase in self.layout.phases if self.symbols is not None else ():
            some, codes = self.symbols.of_phase(phase.number)  # type: ignore[union-attr]
            for node in self.layout.emitted(phase, by_table=True).values() if len(some) else ():
                _, current, _ = self.layout.space.offsets(node, emitted=True)
                base, seen = _base(node, codes, self.layout.space)
                key, n_states = phase.keys[node.name], node.finite[-1].n_states
                result.append(Emission(node.name, key, some, n_states, current, base, seen, base[seen, None] + current))
        return result

    def _score(self, batch: Batch, phase: Phase, theta: Theta, log_likelihood: Array) -> Scored:
        columns = other_columns(batch, self.layout.units)
        log_weight, joint = log_weights(batch, theta, columns)
        match, inside = Match.of(batch.component, self.layout.space), None
        if match.extra:
            log_weight, inside = match.summed(log_weight)
        log_likelihood[:, batch.rows.row] += log_weight[match.place]
        return Scored(batch, phase.keys, theta, columns, joint, inside)

    def _gathered(self, scored: Scored, posterior: Array) -> Expectation:
        batch, match = scored.batch, Match.of(scored.batch.component, self.layout.space)
        weight = match.pooled(posterior[:, batch.rows.row]) * batch.rows.weight
        weight = weight if scored.inside is None else match.widened(weight, scored.inside)
        found = gathered(batch, scored.theta, scored.columns, scored.joint, weight)
        moments, steps = ({scored.keys[n]: x for n, x in part.items()} for part in (found.moments, found.steps))
        return Expectation(0.0, np.zeros(self.layout.tables.n_cells), moments, steps)


def _dot(weight: Array, values: Array) -> float:
    """Σ w x, in which what has no weight may be infinite."""
    some = weight > 0
    return float(weight[some] @ values[some])


def _observed(layout: ChainLayout, names: set[str]) -> list[str]:
    """The columns among these that are no part of the joint state, in their order."""
    return sorted(n for n in names if variable_and_lag(n)[0] not in layout.space.unknown)


def _base(node: NodeFamily, codes: Mapping[str, Ints], space: StateSpace) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Where a node's cells begin for each symbol, and whether the symbol shows the child; if not, by its first state."""
    first = next(iter(codes.values()))
    base, seen = np.zeros(len(first), np.int64), np.ones(len(first), bool)
    for v in node.finite:
        if variable_and_lag(v.name)[0] in space.unknown:
            continue
        own = codes[v.name]
        if v.name == node.name:
            seen = own < v.n_states
            own = np.where(seen, own, 0)
        base = base + node.strides[v.name] * own
    return base, seen
