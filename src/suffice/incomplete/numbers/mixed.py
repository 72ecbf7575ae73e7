"""Components of networks with numbers: moments where there is nothing to enumerate, and else rows that are completed.

Complete families are counted and done with. Components without finite unknowns become moments, those without observed numbers
become distinct rows with weights. Only rows with both, a hidden class of measured things, are needed in every iteration: they
are kept where they are near and fit into `HELD` bytes, and read again otherwise.

Rows of a finished network of which exact inference has no formula (numbers under regressions, counts that have children) are
completed as in EM: states are enumerated, numbers put on points, counts summed. What a row says of a target is in the one
component of missing cells that has the target.

    ln p(row)          Σ ln p of its components and of its complete families
    p(target | row)    of states their shares; of a number its mean and variance over the points
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Bools
from suffice.basis.variables import Finite, Variable
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, add_up, sum_up
from suffice.engines.gather import Groups
from suffice.engines.steps.blocks import in_order
from suffice.errors import FitError
from suffice.families.protocol.family import Cpd, flat_index
from suffice.graphs import Dag
from suffice.incomplete.components import (
    Expectation,
    FlatTables,
    NodeFamily,
    ReduceAndExpect,
    ReducedComponents,
    Shown,
    Theta,
    log_likelihood,
    nodes_of,
)
from suffice.incomplete.numbers.completed_rows import Batch, NoProbability, ObservedRows, batches, count_cells, observed_moments
from suffice.incomplete.numbers.integrated_rows import expected_rows, log_weights_of_states, weighted_points
from suffice.incomplete.numbers.normal import PatternBatch, pattern_batches, weighted_moments
from suffice.incomplete.numbers.patterns import Component, Key, PatternFinder
from suffice.incomplete.numbers.units import Units, block_cells
from suffice.statistics import Moments
from suffice.statistics.counts import distinct
from suffice.statistics.moments import Cases

HELD = 2**29
"""Bytes of rows that are kept for the iterations."""

WORTH_THREADS = 2**16
"""Fewer completions than this are done before a second thread has started."""


class ReducedRows(NamedTuple):
    """What rows show as a whole, and of components their rows, or moments where these say all."""

    shown: Shown
    rows: dict[Key, ObservedRows]
    cases: dict[Key, Cases]


@dataclass(frozen=True, eq=False)
class ReduceMixed(Step[ReducedRows]):
    """Reduces rows. With `hold` those that iterations need are kept, too."""

    finder: PatternFinder
    tables: FlatTables
    units: Units
    hold: bool

    def of(self, block: Block) -> ReducedRows:
        missing = self.finder.missing(block)
        counts, moments = np.zeros(self.tables.n_cells), {}
        for node in self.finder.nodes.values():
            # nodes that are neither tables nor normal need their rows again; this is for a start
            if node.iterative or (some := self.finder.complete_rows(node, missing)) is None:
                continue
            [local], rows = self._whole(node, block, some)
            if node.by_table:
                counts[self.tables.cells[node.name]] = count_cells(local, rows.codes, rows.weight[None])
            else:
                moments[node.name] = observed_moments(local, rows, rows.weight[None])
        kept: dict[Key, ObservedRows] = {}
        cases: dict[Key, Cases] = {}
        for key, component, rows in self.components(block, missing):
            if component.by_moments:
                first, inverse = distinct(rows.codes, len(rows.weight))
                index = inverse[None].astype(np.int64) if len(first) > 1 else np.zeros((1, 1), np.int64)  # one product
                groups = weighted_moments(index, rows.weight[None], rows.reals, len(first))
                cases[key] = Cases(rows.codes[:, first], groups.spread)
            elif component.mergeable:
                kept[key] = rows.merge_equal()
            elif self.hold:
                kept[key] = rows
        finite = {n: v.n_states for n in self.finder.columns if isinstance(v := self.finder.nodes[n].child, Finite)}
        states = {n: state_weights(block.columns[n], block.weights, size) for n, size in finite.items()}
        shown = Shown(counts, moments, states, float(block.weights.sum()), int(missing.all(axis=0).sum()))
        return ReducedRows(shown, kept, cases)

    def components(self, block: Block, missing: Bools) -> Iterator[tuple[Key, Component, ObservedRows]]:
        for key, some in self.finder.split(missing).items():
            component = self.finder.component(key)
            if not component.trivial:
                yield key, component, self._rows(component, block, some)
        for node in self.finder.nodes.values():
            if node.by_rows and (seen := self.finder.complete_rows(node, missing)) is not None:
                yield node.name, self.finder.component(node.name), self._whole(node, block, seen)[1]

    def expect(self, block: Block, theta: Theta) -> Expectation:
        """What the rows add that are read in every iteration."""
        found = ((c, rows) for _, c, rows in self.components(block, self.finder.missing(block)))
        needed = (batch for c, rows in found if not (c.by_moments or c.mergeable) for batch in batches(c, rows))
        nothing = Expectation(0.0, np.zeros(theta.tables.n_cells), {}, {})
        return sum_up(expected_rows(batch, theta, self.units) for batch in needed) or nothing

    def _whole(self, node: NodeFamily, block: Block, some: npt.NDArray[np.intp]) -> tuple[Any, ObservedRows]:
        component = self.finder.component(node.name)
        return (*component.tables, *component.lines, *component.others), self._rows(component, block, some)

    def _rows(self, component: Component, block: Block, some: npt.NDArray[np.intp]) -> ObservedRows:
        if block.weight is not None:
            some = some[block.weight[some] > 0]
        rows = ObservedRows.of(component, block.columns, some, self.units, block.weights, some)
        rows.reals[list(component.summed)] = 0.0  # so that rows that are equal but for missing counts are
        return rows


def state_weights(codes: npt.NDArray[Any], weights: Array, n_states: int) -> Array:
    """The weight of the rows that show each state."""
    seen = codes < n_states
    return np.bincount(codes[seen], weights[seen], n_states).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _FirstImpossible(Step[dict[int, int]]):
    """The first row of each block that is impossible under the parameters: by its observed states alone, or however completed."""

    step: ReduceMixed
    theta: Theta

    def of(self, block: Block) -> dict[int, int]:
        finder, missing = self.step.finder, self.step.finder.missing(block)
        lost = np.zeros(block.n_rows, bool)
        for node in finder.nodes.values():
            some = finder.complete_rows(node, missing) if node.by_table else None
            if some is not None:
                cells = flat_index({v.name: block.columns[v.name][some] for v in node.finite}, node.finite, len(some))
                lost[some] |= self.theta.log_tables[node.name][cells] == -np.inf
        for _, component, rows in self.step.components(block, missing):
            for batch in () if component.by_moments else batches(component, rows):
                try:
                    expected_rows(batch, self.theta, self.step.units)
                except NoProbability as impossible:
                    lost[impossible.row] = True
        lost &= block.weights > 0
        return {block.number: int(np.argmax(lost))} if lost.any() else {}


@dataclass(frozen=True, eq=False)
class MixedComponents(ReducedComponents):
    """Incomplete rows of a network with numbers; see `suffice.incomplete.components`."""

    data: Data

    @classmethod
    def of(
        cls,
        data: Data,
        nodes: Mapping[str, NodeFamily],
        tables: FlatTables,
        units: Units,
        threads: int | None,
        room: float = np.inf,
    ) -> MixedComponents:
        """The rows, passed over once."""
        held = data.engine.near and 16.0 * data.n_rows * (len(units.scale) + 2) <= min(HELD, room)
        step = ReduceMixed(PatternFinder(nodes, data.columns), tables, units, held)
        constant = -units.of_cells([n for n, node in nodes.items() if node.normal])
        return cls(step, data.fold(step, threads=threads), constant, threads, data)

    @cached_property
    def _batches(self) -> list[Batch]:
        return [b for key, rows in self.reduced.rows.items() for b in batches(self.step.finder.component(key), rows)]

    @cached_property
    def _patterns(self) -> list[PatternBatch]:
        return list(pattern_batches((self.step.finder.component(key), cases) for key, cases in self.reduced.cases.items()))

    def expect(self, theta: Theta) -> Expectation:
        try:
            return self._expect(theta)
        except NoProbability:
            first = self.data.fold(_FirstImpossible(self.step, theta), threads=self.threads)
            place = self.data.place(number := min(first), first[number])
            raise FitError(
                f"{place} is impossible under the parameters: its probability is zero; give another start, or one without zeros"
            ) from None

    def _expect(self, theta: Theta) -> Expectation:
        nodes, shown = self.step.finder.nodes, self.shown
        logs = self.constant + log_likelihood(shown.counts, theta.cells)  # what complete families count, and their ln p
        if logs == -np.inf:
            raise NoProbability(0)
        normal = {n: g for n, g in shown.moments.items() if nodes[n].normal}
        logs += sum(theta.others[n].log_likelihood(scaled_moments(nodes[n], g)) for n, g in normal.items())
        total = Expectation(logs, shown.counts, normal, {})
        for batch in self._patterns:
            logs, moments = batch.expect(theta.lines)
            total = add_up(total, Expectation(logs, np.zeros_like(total.cells), moments, {}))
        tasks = (partial(expected_rows, batch, theta, self.step.units) for batch in self._batches)
        worth_threads = sum(len(b.rows.weight) * b.component.n_states for b in self._batches) > WORTH_THREADS
        more = sum_up(in_order(tasks, self.threads if worth_threads else 1))
        total = total if more is None else add_up(total, more)
        return total if self.step.hold else add_up(total, self.data.fold(ReduceAndExpect(self.step, theta), threads=self.threads))

    def parts(self, n: int) -> list[MixedComponents]:
        """Every n-th row of each component; what has moments is in the first part."""
        if not self.step.hold:
            raise FitError(
                "Incremental(batches) cannot be used here: the rows are elsewhere, or do not fit into memory; leave it out"
            )
        nothing = ReducedRows(self.shown_nowhere, {}, {})
        result = []
        for i in range(n):
            some = {key: rows.take(slice(i, None, n)) for key, rows in self.reduced.rows.items()}
            part = (nothing if i else self.reduced)._replace(rows={k: r for k, r in some.items() if len(r.weight)})
            result.append(replace(self, reduced=part, constant=0.0 if i else self.constant))
        return result


def scaled_moments(node: NodeFamily, groups: Groups) -> Moments:
    """The moments of a normal node under their names; its columns are scaled."""
    weight, mean, rest, scatter = groups.spread
    return Moments(node.finite, node.reals, groups.keys, weight, mean, scatter, rest=rest)


@dataclass(frozen=True, eq=False)
class RowIntegrals:
    """A block of rows, with a column for each node, under the distributions of a network."""

    nodes: Mapping[str, NodeFamily]
    theta: Theta
    units: Units
    block: Block

    @classmethod
    def of(cls, cpds: Mapping[str, Cpd], variables: Mapping[str, Variable], block: Block) -> RowIntegrals:
        regressions = {n: cpds[n].family for n in variables if cpds[n].is_regression}
        nodes = nodes_of(Dag({n: cpds[n].parents for n in variables}), variables, regressions)
        finite = [v for v in variables.values() if isinstance(v, Finite)]
        tables = FlatTables.of(finite, [node.finite for node in nodes.values() if node.by_table])
        units = Units.of(block_cells(block, tuple(n for n, v in variables.items() if not isinstance(v, Finite))), variables)
        theta = Theta.of(nodes, tables, cpds, lambda node, cpd: units.inward_cpd(cpd) if node.normal else cpd)
        return cls(nodes, theta, units, block)

    def log_probs(self) -> Array:
        """ln p(observed cells) of each row; −inf where it is impossible."""
        block, step = self.block, self._step(())
        missing, total = step.finder.missing(block), np.zeros(block.n_rows)
        columns = {**block.columns, **{n: self.units.inward(n, block.columns[n]) for n in self.units.scale}}
        for node in self.nodes.values():
            some = None if node.by_rows else step.finder.complete_rows(node, missing)
            if some is not None and node.by_table:
                cells = flat_index({v.name: columns[v.name][some] for v in node.finite}, node.finite, len(some))
                total[some] += self.theta.log_tables[node.name][cells]
            elif some is not None:
                total[some] += self.theta.others[node.name].log_prob({v.name: columns[v.name][some] for v in node.members})
            if node.normal:
                total -= np.where(np.isnan(block.columns[node.name]), 0.0, np.log(self.units.scale[node.name]))
        for _, component, rows in step.components(block, missing):
            for batch in batches(component, rows):
                total[batch.rows.row] += np.logaddexp.reduce(log_weights_of_states(batch, self.theta, self.units), axis=0)
        return total

    def posterior(self, target: str) -> Array:
        """p(states) of a target that no row shows, or its mean and variance; NaN where a row is impossible."""
        child = self.nodes[target].child
        result = np.full((self.block.n_rows, child.n_states if isinstance(child, Finite) else 2), np.nan)
        possible = np.flatnonzero(self.log_probs() > -np.inf)
        some = Block({n: c[possible] for n, c in self.block.columns.items()})
        step = self._step(() if isinstance(child, Finite) else (target,))
        for key, component, rows in step.components(some, step.finder.missing(some)):
            if isinstance(key, str) or target not in key:
                continue
            for batch in batches(component, rows):
                if isinstance(child, Finite):
                    logs, at = log_weights_of_states(batch, self.theta, self.units), component.states.index(child)
                    share = np.exp(logs - logs.max(axis=0)).reshape(*component.shape, -1)
                    own = share.sum(axis=tuple(a for a in range(len(component.shape)) if a != at))
                    result[possible[batch.rows.row]] = (own / own.sum(axis=0)).T
                    continue
                points, place = weighted_points(batch, self.theta, self.units, 0.0), component.completed.index(target)
                row, values, share = (np.concatenate(part, axis=-1) for part in zip(*points, strict=True))
                value, n = self.units.outward(target, values[place]), int(batch.rows.row.max()) + 1
                mean = np.bincount(row, share * value, n)
                variance = np.bincount(row, share * (value - mean[row]) ** 2, n)
                result[possible[batch.rows.row]] = np.stack([mean, variance], axis=1)[batch.rows.row]
        return result

    def _step(self, integrated: Iterable[str]) -> ReduceMixed:
        finder = PatternFinder(self.nodes, tuple(self.nodes), integrated=integrated)
        return ReduceMixed(finder, self.theta.tables, self.units, True)
