"""Numbers, counts and regressions that steps emit, as rows of components: batches of steps that miss the same cells.

A component's states are the joint states of the chain, as far as it depends on them, and missing children of regressions
besides, which are summed out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.engines.engine import Block, is_missing
from suffice.engines.sequences.lagged import rename
from suffice.families.protocol.family import Cpd
from suffice.incomplete.chains.chain_states import Phase, StateSpace
from suffice.incomplete.chains.step_layout import StepLayout
from suffice.incomplete.components import FlatTables, NodeFamily, Theta
from suffice.incomplete.numbers.completed_rows import Batch, ObservedRows, batches
from suffice.incomplete.numbers.normal_steps import FEW, NormalSteps, taken_apart
from suffice.incomplete.numbers.patterns import Component, PatternFinder
from suffice.inference.finite.logs import log_sum

NO_TABLES = FlatTables.of((), ())


class Scored(NamedTuple):
    """A batch of steps that was scored, and what it remembers; `inside` are the posteriors of its states that are no part of the
    joint state, given that: a missing child of a regression."""

    batch: Batch
    keys: Mapping[str, str]
    theta: Theta
    columns: dict[str, Any]
    joint: Any
    inside: Array | None


def step_batches(
    layout: StepLayout, columns: Mapping[str, npt.NDArray[Any]], phase: Ints, weights: Array
) -> Iterator[tuple[Phase, tuple[Batch, ...], tuple[NormalSteps, ...]]]:
    """The rows of numbers, counts and regressions that are needed in every expectation, by phase and component."""
    states = [v.name for v in layout.space.states]
    groups: dict[tuple[str, ...], list[int]] = {}  # the phases, those together that emit numbers by the same parameters
    for each in layout.phases:
        own_keys = tuple(each.keys[n] for n in layout.emitting_nodes(each, by_table=False))
        groups.setdefault(own_keys, []).append(each.number)
    for number, same in ((numbers[-1], numbers) for numbers in groups.values()):
        nodes = layout.emitting_nodes(layout.phases[number], by_table=False)
        if not nodes:
            continue
        some = np.flatnonzero(np.isin(phase, same))
        if not len(some):
            continue
        members = {v.name for node in nodes.values() for v in node.members}
        names = sorted(members - set(states))
        finder = PatternFinder(nodes, names, hidden=members & set(states))
        own = Block({n: columns[n][some] for n in names}, weights[some])
        missing = np.array([is_missing(own.columns[n]) for n in names]).reshape(len(names), -1)
        found: list[Batch] = []
        normal: list[NormalSteps] = []
        for key, rows in finder.split(missing).items():
            component = finder.component(key)
            fast, rest = taken_apart(component, states) if len(rows) >= FEW else (None, component)
            shown = (
                None
                if component.trivial
                else ObservedRows.of(component, own.columns, rows, layout.units, own.weights, some[rows])
            )
            if fast is not None and shown is not None:
                normal.append(NormalSteps(fast, shown, Match.of(fast, layout.space).place))
            if shown is not None and not rest.trivial:
                found += batches(rest, shown)
        for node in nodes.values():
            if (seen := finder.complete_rows(node, missing)) is not None:
                component = finder.component(node.name)
                found += batches(component, ObservedRows.of(component, own.columns, seen, layout.units, own.weights, some[seen]))
        yield layout.phases[number], tuple(found), tuple(normal)


class Match(NamedTuple):
    """How the states of a component go with the joint states of a chain: `place` has the state of the component, `extra` of its
    axes left aside, for each joint state."""

    place: Ints
    n_states: int
    shape: tuple[int, ...]
    extra: tuple[int, ...]

    @classmethod
    def of(cls, component: Component, space: StateSpace) -> Match:
        names = [v.name for v in space.states]
        index, n = np.zeros(space.size, np.int64), 1
        for v in component.states:
            if v.name in names:
                index, n = index * v.n_states + space.digits[space.members[names.index(v.name)]], n * v.n_states
        extra = tuple(i for i, v in enumerate(component.states) if v.name not in names)
        return cls(index, n, component.shape, extra)

    def sum_out(self, log_weight: Array) -> tuple[Array, Array]:
        """ln Σ w over the extra axes, and the shares w / Σ w within it: (states, extra states, rows)."""
        wide = np.moveaxis(log_weight.reshape(*self.shape, -1), self.extra, range(-1 - len(self.extra), -1))
        wide = wide.reshape(self.n_states, -1, log_weight.shape[1])
        total = log_sum(wide, 1)
        return total, np.exp(wide - total[:, None])

    def widen(self, weight: Array, inside: Array) -> Array:
        """Weights of the component's states from those without the extra axes."""
        inner = [n for i, n in enumerate(self.shape) if i not in self.extra]
        wide = (weight[:, None] * inside).reshape(*inner, *(self.shape[i] for i in self.extra), -1)
        back = np.moveaxis(wide, range(-1 - len(self.extra), -1), self.extra)
        return back.reshape(-1, weight.shape[1])

    def pool(self, weight: Array) -> Array:
        """Weights of joint states (first axis) summed to those of the component."""
        if self.n_states == len(weight) and (self.place == np.arange(len(weight))).all():
            return weight
        total = np.zeros((self.n_states, weight.shape[1]))
        np.add.at(total, self.place, weight)
        return total


def local_parameters(theta: Theta, phase: Phase, nodes: Mapping[str, NodeFamily]) -> Theta:
    """The parameters of these nodes under the names of their variables."""
    own: dict[str, Cpd] = {}
    for name, node in nodes.items():
        cpd: Any = theta.others[phase.keys[name]]
        own[name] = cpd if phase.keys[name] == name else replace(cpd, child=rename(node.child, name))
    return Theta(NO_TABLES, np.zeros(0), own)
