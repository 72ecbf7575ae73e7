"""Sequences with hidden states: one more kind of components. Baum & Welch's expectation is that of any chain of slices.

Sequences are reduced once, block by block, and kept where they are near and fit into `HELD` bytes; else they are reduced again
in every expectation. Families that every step shows are counted and done with.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.variables import Finite
from suffice.engines.engine import Block, Step, add_up, is_missing, sum_up
from suffice.engines.sequences.sequences import Sequences
from suffice.engines.steps.blocks import in_order
from suffice.errors import FitError
from suffice.incomplete.chains.chain_states import ImpossibleSequence
from suffice.incomplete.chains.factored_rows import ChainLayout
from suffice.incomplete.components import Expectation, ReduceAndExpect, ReducedComponents, Shown, Theta, log_likelihood
from suffice.incomplete.numbers.completed_rows import ObservedRows, count_cells, observed_moments
from suffice.incomplete.numbers.mixed import scaled_moments, state_weights
from suffice.incomplete.numbers.patterns import Component

HELD = 2**30
"""Bytes of reduced sequences that are kept for the iterations."""


class ReducedChains(NamedTuple):
    """What sequences show as a whole, and the sequences of each block, reduced."""

    shown: Shown
    rows: dict[int, Any]


@dataclass(frozen=True, eq=False)
class ReduceChains(Step[ReducedChains]):
    """Reduces sequences, every `n_parts`-th of each block from `part` on. With `hold` they are kept, too."""

    layout: ChainLayout
    hold: bool
    part: int = 0
    n_parts: int = 1

    def of(self, block: Block) -> ReducedChains:
        some = block
        if self.n_parts > 1:
            assert block.lengths is not None
            mine = np.arange(len(block.lengths)) % self.n_parts == self.part
            some = replace(block.take(np.repeat(mine, block.lengths)), lengths=block.lengths[mine])
        kept = {block.number: self.layout.rows(some)} if self.hold and some.n_rows else {}
        return ReducedChains(shown_by(self.layout, some), kept)

    def expect(self, block: Block, theta: Theta) -> Expectation:
        return self.layout.rows(block).expect(theta)


@dataclass(frozen=True, eq=False)
class ChainComponents(ReducedComponents):
    """Sequences under a template; see `suffice.incomplete.components`."""

    sequences: Sequences

    @classmethod
    def of(cls, sequences: Sequences, layout: ChainLayout, threads: int | None, room: float = np.inf) -> ChainComponents:
        """The sequences, passed over once."""
        data = sequences.data
        _ = layout.plan  # joint states over budget are refused before rows are read
        n_numbers = len(layout.units.scale) + len(layout.names) // 2 + 2
        step = ReduceChains(layout, data.engine.near and 8.0 * data.n_rows * n_numbers <= min(HELD, room))
        reduced = data.fold(step, threads=threads)
        normal = [n for n, node in layout.phases[-1].nodes.items() if node.normal and n in layout.shown]
        return cls(step, reduced, -layout.units.of_cells(normal), threads, sequences)

    @property
    def layout(self) -> ChainLayout:
        return self.step.layout  # type: ignore[no-any-return]

    def expect(self, theta: Theta) -> Expectation:
        try:
            if self.step.hold:
                tasks = (partial(rows.expect, theta) for _, rows in sorted(self.reduced.rows.items()))
                found = sum_up(in_order(tasks, self.threads))
            else:
                found = self.sequences.data.fold(ReduceAndExpect(self.step, theta), threads=self.threads)
        except ImpossibleSequence as lost:
            place = self.sequences.data.place(*lost.args)
            raise FitError(
                f"{place} is impossible under the parameters: what is seen up to there has the probability zero; give another "
                "start, one without zeros, or a prior"
            ) from None
        found = found or Expectation(0.0, np.zeros(theta.tables.n_cells), {}, {})
        return add_up(counted_expectation(self.layout, self.shown, theta, self.constant), found)  # type: ignore[no-any-return]

    def parts(self, n: int) -> list[ChainComponents]:
        """Every n-th sequence of each block; what was counted is in the first part."""
        if n > self.sequences.n_sequences:
            raise FitError(
                f"Incremental(batches={n}) needs as many sequences, and there are {self.sequences.n_sequences:,}: take fewer"
            )
        if not self.step.hold:
            raise FitError(
                "Incremental(batches) cannot be used here: the sequences are elsewhere, or do not fit into memory; leave it out"
            )
        result = []
        for i in range(n):
            step = replace(self.step, part=i, n_parts=n)
            rows = self.sequences.data.fold(step, threads=self.threads).rows
            shown = self.shown_nowhere if i else self.shown
            result.append(replace(self, step=step, reduced=ReducedChains(shown, rows), constant=0.0 if i else self.constant))
        return result


def counted_expectation(layout: ChainLayout, shown: Shown, theta: Theta, constant: float) -> Expectation:
    """What nodes that every step shows count, and ln p of that."""
    cells, logs = np.zeros(theta.tables.n_cells), constant
    moments = {}
    for key in layout.counted:
        node = layout.nodes[key]
        if node.by_table:
            place = theta.tables.cells[key]
            cells[place] = shown.counts[place]
            logs += log_likelihood(cells[place], theta.cells[place])
        elif key in shown.moments:
            moments[key] = shown.moments[key]
            logs += theta.others[key].log_likelihood(scaled_moments(node, moments[key]))
    if logs == -np.inf:
        raise FitError("a step is impossible under the parameters: a state that it shows has the probability zero; use a prior")
    return Expectation(logs, cells, moments, {})


def shown_by(layout: ChainLayout, block: Block) -> Shown:
    """What steps show of families without gaps, and how often each state is shown."""
    *_, phase, columns = layout.unroll(block)
    counts, moments, done = np.zeros(layout.tables.n_cells), {}, set()
    for own in reversed(layout.phases[-1:] if layout.stationary else layout.phases):
        for name, node in own.nodes.items():
            key = own.keys[name]
            if key in done or key not in layout.nodes or node.iterative or any(v.name not in columns for v in node.members):
                continue
            done.add(key)
            having = [p.number for p in layout.phases if p.keys[name] == key]
            lacking = np.any([is_missing(columns[v.name]) for v in node.members], axis=0)
            rows = np.flatnonzero(np.isin(phase, having) & ~lacking)
            if not len(rows):
                continue
            component = Component.of(frozenset(), [node])
            [local] = (*component.tables, *component.lines, *component.others)
            seen = ObservedRows.of(component, columns, rows, layout.units, block.weights, rows)
            if node.by_table:
                counts[layout.tables.cells[key]] = count_cells(local, seen.codes, seen.weight[None])
            else:
                moments[key] = observed_moments(local, seen, seen.weight[None])
    finite = {n: node.child for n, node in layout.phases[-1].nodes.items() if n in layout.shown}
    shown = {n: v.n_states for n, v in finite.items() if isinstance(v, Finite) and n in columns}
    states = {n: state_weights(columns[n], block.weights, size) for n, size in shown.items()}
    empty = np.array([is_missing(block.columns[n]) for n in layout.shown]).reshape(len(layout.shown), -1).all(axis=0)
    return Shown(counts, moments, states, float(block.weights.sum()), int(empty.sum()))
