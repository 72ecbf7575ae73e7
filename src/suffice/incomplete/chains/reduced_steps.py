"""Steps of whole sequences, reduced: which transition each has, and what it shows; and what sequences say of their unknown
variables, whether these are one joint state or passed on factor by factor.

What steps show hangs on some of the states: a `ShownPart` has the rows of a part, what is said of its joint states, and what
was remembered of numbers. Cells that steps do not show and on which no other cell depends are as their distributions say, given
the joint states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Bools, Ints
from suffice.engines.engine import Block, is_missing
from suffice.graphs.lagged import variable_and_lag
from suffice.incomplete.chains.chain_batches import Match, NormalSteps, Scored, step_batches
from suffice.incomplete.chains.chain_states import Columns, Kinds, Phase, StepLayout, WholeSequences
from suffice.incomplete.components import Theta
from suffice.incomplete.numbers.completed_rows import Batch


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
class ReducedSteps(WholeSequences):
    """What a block of whole sequences is reduced to."""

    layout: StepLayout
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
        starts, weight, _, phase, columns = layout.unroll(block)
        driving = observed_columns(layout, {v.name for p in layout.phases for n in layout.moving for v in p.nodes[n].parents})
        transitions = Kinds.of(phase, {n: columns[n] for n in driving if columns[n].dtype.kind != "f"})
        tabled = (node for p in layout.phases for node in layout.emitting_nodes(p, by_table=True).values())
        shown = {v.name for node in tabled for v in node.members}
        seen = sorted({*observed_columns(layout, shown), *layout.labelled})
        symbols = Kinds.of(phase if layout.varies else len(layout.phases) - 1, {n: columns[n] for n in seen}) if seen else None
        dense = tuple(step_batches(layout, columns, phase, block.weights))
        inputs = {n: columns[n] for n in driving} if layout.stepwise else {}
        emitted = layout.emitting_nodes(layout.phases[-1], by_table=False)
        counts = [n for n, node in emitted.items() if node.by_rows and node.reals and n in columns]
        gaps = {n: lost for n in counts if (lost := is_missing(columns[n])).any()}
        finite = {n: c for n, c in columns.items() if c.dtype.kind != "f"} if gaps else {}
        return cls(block.number, starts, weight, layout, transitions, symbols, dense, inputs, finite, gaps)

    @cached_property
    def emissions(self) -> list[Emission]:
        """The tables that steps emit, phase by phase."""
        result: list[Emission] = []
        for phase in self.layout.phases if self.symbols is not None else ():
            some, codes = self.symbols.of_phase(phase.number)  # type: ignore[union-attr]
            for node in self.layout.emitting_nodes(phase, by_table=True).values() if len(some) else ():
                _, current, _ = self.layout.space.offsets(node, emitted=True)
                # where the cells of each symbol begin, and whether it shows the child; if not, by its first state
                base, seen = np.zeros(len(some), np.int64), np.ones(len(some), bool)
                for v in (v for v in node.finite if variable_and_lag(v.name)[0] not in self.layout.space.unknown):
                    own = codes[v.name]
                    if v.name == node.name:
                        seen = own < v.n_states
                        own = np.where(seen, own, 0)
                    base = base + node.strides[v.name] * own
                key, n_states = phase.keys[node.name], node.finite[-1].n_states
                result.append(Emission(node.name, key, some, n_states, current, base, seen, base[seen, None] + current))
        return result


def observed_columns(layout: StepLayout, names: set[str]) -> list[str]:
    """The columns among these that are no part of the joint state, in their order."""
    return sorted(n for n in names if variable_and_lag(n)[0] not in layout.space.unknown)


class ShownPart(NamedTuple):
    """The rows of a part, p(joint state) of it at each step (states × steps), and numbers that were scored."""

    rows: ReducedSteps
    joint: Array
    scored: list[Scored]


class StatesFound(NamedTuple):
    """Of sequences ln p and the first impossible step in the block, or −1; p(state) of variables at each step; and parts."""

    log_likelihood: Array
    stuck: Ints
    states: Mapping[str, Array]
    parts: list[ShownPart]


class Drawn(NamedTuple):
    """A path of each unknown variable, −1 where a sequence is impossible; and of parts the joint states on it, with certainty."""

    states: Mapping[str, Ints]
    parts: list[ShownPart]


class Followed(NamedTuple):
    """ln p of the last step given those before; what is known after it; p(state) of variables there; and parts."""

    log_prob: float
    after: Any
    states: Mapping[str, Array]
    parts: list[ShownPart]


def certain(path: Ints, n_states: int) -> Array:
    """1 for the state of each step, −1 for none."""
    joint = np.zeros((n_states, len(path)))
    joint[np.maximum(path, 0), np.arange(len(path))] = path >= 0
    return joint


MAX_CELLS = 2**22
"""Probabilities of missing states that are worked out at once: 32 MiB."""


def child_states(parts: Sequence[ShownPart], theta: Theta, name: str) -> Iterator[tuple[npt.NDArray[np.intp], Array]]:
    """Steps, some at a time, at which a finite variable is missing on which no other depends, and p(state) there (states ×
    steps)."""
    for rows, joint, scored in parts:
        for e in (e for e in rows.emissions if e.name == name):
            table = theta.cells[theta.tables.cells[e.key]]
            for first in np.unique(e.base[~e.seen]):
                kinds = np.zeros(len(rows.symbols.phase), np.bool_)  # type: ignore[union-attr]
                kinds[e.symbols[~e.seen & (e.base == first)]] = True
                probs = table[(first + e.current)[:, None] + np.arange(e.n_states)]
                steps = np.flatnonzero(kinds[rows.symbols.kind])  # type: ignore[union-attr]
                for some in np.array_split(steps, -(-len(steps) * e.n_states // MAX_CELLS) or 1):
                    yield some, probs.T @ joint[:, some]
        for s in scored:
            if s.inside is not None and name in {v.name for v in s.batch.component.states}:
                # a regression's child, which the batch has summed out
                match, states = Match.of(s.batch.component, rows.layout.space), s.batch.component.states
                wide = match.widen(match.pool(joint[:, s.batch.rows.row]), s.inside).reshape(*s.batch.component.shape, -1)
                axis = [v.name for v in states].index(name)
                yield s.batch.rows.row, np.asarray(wide.sum(axis=tuple(i for i in range(len(states)) if i != axis)))


def child_numbers(parts: Sequence[ShownPart], theta: Theta, name: str) -> Iterator[tuple[Ints, tuple[Array, Array, Array]]]:
    """The steps at which a number is missing, and there the weights, means and deviations of what it may be."""
    for rows, joint, scored in parts:
        for s in scored:
            component, at = s.batch.component, s.batch.rows.row
            if s.joint is None or name not in component.unknown:
                continue
            match, i = Match.of(component, rows.layout.space), component.unknown.index(name)
            weight = match.pool(joint[:, at])
            group = np.repeat(np.arange(len(s.batch.bounds) - 1), np.diff(s.batch.bounds))
            variance = s.joint.given.covariance[group, :, i, i].T
            yield at, (weight, s.joint.mean[i], np.sqrt(variance))
        for phase in rows.layout.phases:  # counts with a rate for each state
            node, key = phase.nodes[name], phase.keys[name]
            if name not in rows.gaps or "rates" not in theta.others[key].arrays:
                continue
            lost = np.flatnonzero((rows.transitions.phase[rows.transitions.kind] == phase.number) & rows.gaps[name])
            if not len(lost):
                continue
            base = np.zeros(len(lost), np.int64)
            _, current, observed = rows.layout.space.offsets(node, emitted=True)
            for column, stride in observed:
                base = base + stride * rows.observed[column][lost].astype(np.int64)
            rates = theta.others[key].rates.reshape(-1)[current[:, None] + base]
            yield lost, (joint[:, lost], rates, rates)
