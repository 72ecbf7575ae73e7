"""Sequences with hidden states: one more kind of components. Baum & Welch's expectation is that of any chain of slices.

Sequences are reduced once, block by block, and kept where they are near and fit into `HELD` bytes; else they are reduced again
in every expectation. Families that every step shows are counted and done with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import Block, Step, add_up, is_missing, sum_up
from suffice.engines.sequences.sequences import Sequences
from suffice.engines.steps.blocks import in_order
from suffice.errors import FitError
from suffice.families.protocol.family import flat_index
from suffice.incomplete.chains.chain_kinds import ImpossibleSequence, steps_of
from suffice.incomplete.chains.chain_layout import ChainLayout
from suffice.incomplete.chains.chain_states import Phase
from suffice.incomplete.components import Expectation, NodeFamily, Shown, Theta, log_likelihood
from suffice.incomplete.numbers.completed_rows import ObservedRows, observed_moments
from suffice.incomplete.numbers.mixed import scaled_moments
from suffice.incomplete.numbers.patterns import Component
from suffice.variables import Finite

Array = npt.NDArray[np.float64]

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
        some = every_nth(block, self.part, self.n_parts)
        kept = {block.number: self.layout.rows(some)} if self.hold and some.n_rows else {}
        return ReducedChains(shown_by(self.layout, some), kept)


@dataclass(frozen=True, eq=False)
class _ExpectAgain(Step[Expectation]):
    """What sequences add that are reduced in every iteration."""

    layout: ChainLayout
    theta: Theta

    def of(self, block: Block) -> Expectation:
        return self.layout.rows(block).expected(self.theta)


def every_nth(block: Block, part: int, n: int) -> Block:
    """Every n-th of the sequences of a block."""
    if n == 1:
        return block
    assert block.lengths is not None
    mine = np.arange(len(block.lengths)) % n == part
    return replace(block.take(np.repeat(mine, block.lengths)), lengths=block.lengths[mine])


@dataclass(frozen=True, eq=False)
class ChainComponents:
    """Sequences under a template; see `suffice.incomplete.components`.

    `constant` is what ln p of the observed cells has besides that of the scaled ones; among parts, the first has it.
    """

    sequences: Sequences
    step: ReduceChains
    reduced: ReducedChains
    constant: float
    threads: int | None

    @classmethod
    def of(cls, sequences: Sequences, layout: ChainLayout, threads: int | None, room: float = np.inf) -> ChainComponents:
        """The sequences, passed over once."""
        data = sequences.data
        _ = layout.plan  # joint states over budget are refused before rows are read
        n_numbers = len(layout.units.scale) + len(layout.names) // 2 + 2
        step = ReduceChains(layout, data.engine.near and 8.0 * data.n_rows * n_numbers <= min(HELD, room))
        reduced = data.fold(step, threads=threads)
        return cls(sequences, step, reduced, constant_of(layout), threads)

    @property
    def shown(self) -> Shown:
        return self.reduced.shown

    @property
    def passes(self) -> int:
        return int(not self.step.hold)

    @property
    def layout(self) -> ChainLayout:
        return self.step.layout

    def expected(self, theta: Theta) -> Expectation:
        try:
            found = self._expected(theta)
        except ImpossibleSequence as lost:
            place = self.sequences.data.place(*lost.args)
            raise FitError(
                f"{place} is impossible under the parameters: what is seen up to there has the probability zero; give another "
                "start, one without zeros, or a prior"
            ) from None
        return add_up(self._counted(theta), found)  # type: ignore[no-any-return]

    def _expected(self, theta: Theta) -> Expectation:
        if self.step.hold:
            tasks = (partial(rows.expected, theta) for _, rows in sorted(self.reduced.rows.items()))
            total = sum_up(in_order(tasks, self.threads))
        else:
            total = self.sequences.data.fold(_ExpectAgain(self.layout, theta), threads=self.threads)
        return total or Expectation(0.0, np.zeros(theta.tables.n_cells), {}, {})

    def _counted(self, theta: Theta) -> Expectation:
        """What families that every step shows count, and their ln p."""
        return counted_expectation(self.layout, self.shown, theta, self.constant)

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
        nothing = replace_counts(self.shown)
        result = []
        for i in range(n):
            step = replace(self.step, part=i, n_parts=n)
            rows = self.sequences.data.fold(step, threads=self.threads).rows
            shown = nothing if i else self.shown
            result.append(replace(self, step=step, reduced=ReducedChains(shown, rows), constant=0.0 if i else self.constant))
        return result


def replace_counts(shown: Shown) -> Shown:
    """The same, without anything counted."""
    return shown._replace(counts=np.zeros_like(shown.counts), moments={})


def constant_of(layout: ChainLayout) -> float:
    """−Σ w ln scale over the observed cells of normal variables."""
    nodes = layout.phases[-1].nodes
    return -layout.units.of_cells([n for n, node in nodes.items() if node.normal and n in layout.shown])


def counted_expectation(layout: ChainLayout, shown: Shown, theta: Theta, constant: float) -> Expectation:
    """What nodes that every step shows count, and ln p of that."""
    cells, logs = np.zeros(theta.tables.n_cells), constant
    moments = {}
    for key in layout.counted:
        node = layout.nodes[key]
        if node.by_table:
            place = theta.tables.cells(key)
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
    assert block.lengths is not None
    _, step = steps_of(block.lengths)
    columns, phase = layout.columns(block, step), np.minimum(step, len(layout.phases) - 1)
    counts, moments, done = np.zeros(layout.tables.n_cells), {}, set()
    for own in reversed(layout.phases[-1:] if layout.stationary else layout.phases):
        for name, node in own.nodes.items():
            key = own.keys[name]
            if key in done or key not in layout.nodes or node.iterative or any(v.name not in columns for v in node.members):
                continue
            done.add(key)
            rows = np.flatnonzero(np.isin(phase, _phases_with(layout.phases, name, key)) & _complete(node, columns))
            if not len(rows):
                continue
            if node.by_table:
                index = flat_index({v.name: columns[v.name][rows] for v in node.finite}, node.finite, len(rows))
                counts[layout.tables.cells(key)] = np.bincount(index, block.weights[rows], node.n_cells)
            else:
                moments[key] = _moments(layout, node, columns, rows, block.weights)
    finite = {n: node.child for n, node in layout.phases[-1].nodes.items() if n in layout.shown}
    states = {
        n: _states(columns[n], block.weights, v.n_states) for n, v in finite.items() if isinstance(v, Finite) and n in columns
    }
    empty = np.array([is_missing(block.columns[n]) for n in layout.shown]).reshape(len(layout.shown), -1).all(axis=0)
    return Shown(counts, moments, states, float(block.weights.sum()), int(empty.sum()))


def _phases_with(phases: tuple[Phase, ...], name: str, key: str) -> list[int]:
    return [p.number for p in phases if p.keys[name] == key]


def _complete(node: NodeFamily, columns: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.bool_]:
    return ~np.any([is_missing(columns[v.name]) for v in node.members], axis=0)  # type: ignore[no-any-return]


def _moments(layout: ChainLayout, node: NodeFamily, columns: Any, rows: npt.NDArray[np.intp], weights: Array) -> Any:
    component = Component.of(frozenset(), [node])
    [local] = (*component.lines, *component.others)
    codes = np.array([columns[n][rows] for n in component.codes], np.int32).reshape(len(component.codes), len(rows))
    reals = np.array([layout.units.inward(n, columns[n][rows]) for n in component.reals]).reshape(len(component.reals), len(rows))
    return observed_moments(local, ObservedRows(codes, reals, weights[rows], rows), weights[rows][None])


def _states(codes: npt.NDArray[Any], weights: Array, n: int) -> Array:
    seen = codes < n
    return np.bincount(codes[seen], weights[seen], n).astype(np.float64)
