"""Steps of whole sequences, reduced: which transition each has, and what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Bools, Ints
from suffice.engines.engine import Block, is_missing
from suffice.graphs.lagged import variable_and_lag
from suffice.incomplete.chains.chain_batches import step_batches
from suffice.incomplete.chains.chain_kinds import Kinds, steps_of
from suffice.incomplete.chains.chain_states import Phase, StateSpace
from suffice.incomplete.chains.step_layout import Columns, StepLayout
from suffice.incomplete.components import NodeFamily
from suffice.incomplete.numbers.completed_rows import Batch
from suffice.incomplete.numbers.normal_steps import NormalSteps


class Emission(NamedTuple):
    """A table that the steps of a phase emit: the symbols of the phase; what joint states add to the flat index of a cell, and
    what symbols do; which symbols show the child; and the cells of those, for each joint state."""

    name: str
    key: str
    symbols: npt.NDArray[np.intp]
    n_states: int
    current: Ints
    base: Ints
    seen: Bools
    shown: Ints


@dataclass(frozen=True, eq=False)
class ReducedSteps:
    """What a block of whole sequences is reduced to."""

    layout: StepLayout
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
    def of(cls, layout: StepLayout, block: Block) -> Self:
        assert block.lengths is not None
        starts, step = steps_of(block.lengths)
        columns = layout.columns(block, step)
        phase = np.minimum(step, len(layout.phases) - 1)
        driving = _observed_columns(layout, {v.name for p in layout.phases for n in layout.moving for v in p.nodes[n].parents})
        transitions = Kinds.of(phase, {n: columns[n] for n in driving if columns[n].dtype.kind != "f"})
        tabled = (node for p in layout.phases for node in layout.emitted(p, by_table=True).values())
        shown = {v.name for node in tabled for v in node.members}
        seen = sorted({*_observed_columns(layout, shown), *layout.labelled})
        symbols = Kinds.of(phase if layout.varies else len(layout.phases) - 1, {n: columns[n] for n in seen}) if seen else None
        weight = None if block.weight is None else block.weight[starts[:-1]]
        dense = tuple(step_batches(layout, columns, phase, block.weights))
        inputs = {n: columns[n] for n in driving} if layout.stepwise else {}
        emitted = layout.emitted(layout.phases[-1], by_table=False)
        counts = [n for n, node in emitted.items() if node.by_rows and node.reals and n in columns]
        gaps = {n: lost for n in counts if (lost := is_missing(columns[n])).any()}
        finite = {n: c for n, c in columns.items() if c.dtype.kind != "f"} if gaps else {}
        return cls(layout, block.number, starts, weight, transitions, symbols, dense, inputs, finite, gaps)

    @property
    def n_steps(self) -> int:
        return int(self.starts[-1])

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


def _observed_columns(layout: StepLayout, names: set[str]) -> list[str]:
    """The columns among these that are no part of the joint state, in their order."""
    return sorted(n for n in names if variable_and_lag(n)[0] not in layout.space.unknown)


def _base(node: NodeFamily, codes: Mapping[str, Ints], space: StateSpace) -> tuple[Ints, Bools]:
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
