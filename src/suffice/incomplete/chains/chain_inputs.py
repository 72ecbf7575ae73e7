"""Transitions that are regressions on what each step shows: every step has a table, or a matrix, of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.engines.engine import add_up
from suffice.graphs.lagged import variable_and_lag
from suffice.incomplete.chains.chain_states import StateSpace
from suffice.incomplete.chains.reduced_steps import ReducedSteps
from suffice.incomplete.chains.step_layout import StepLayout
from suffice.incomplete.components import Expectation, Theta

Columns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class StepRegression:
    """A regression among transitions: its phase and the steps that have it, its unknown variables, its distribution, and its
    columns once for each of their n joint states."""

    phase: int
    some: npt.NDArray[np.intp]
    inner: tuple[str, ...]
    shape: tuple[int, ...]
    cpd: Any
    columns: Columns

    @property
    def n(self) -> int:
        return int(np.prod(self.shape))

    def count(self, theta: Theta, own: Array, total: Expectation) -> None:
        """Add what its family needs where each of its states (first axis) weighs so much at each of its steps."""
        name = self.cpd.child.name
        step = self.cpd.family.step(theta.others[name], self.columns, own.reshape(-1))
        total.steps[name] = add_up(total.steps[name], step) if name in total.steps else step

    def index(self, space: StateSpace) -> Ints:
        """Which of its states each pair of joint states is."""
        index = np.zeros((space.size, space.size), np.int64)
        for name, n in zip(self.inner, self.shape, strict=True):
            base, k = variable_and_lag(name)
            digit = space.digits[base, 0][None, :] if k == 0 else space.digits[base, k - 1][:, None]
            index = index * n + digit
        return index


def stepwise_matrices(rows: ReducedSteps, theta: Theta, matrices: Array) -> tuple[npt.NDArray[np.int32], Array]:
    """A matrix for each step: tables as they are for its kind, times what regressions say of the step."""
    product = matrices[rows.transitions.kind]
    for r in _of_rows(rows, theta):
        probs = np.exp(r.cpd.log_prob(r.columns)).reshape(r.n, len(r.some))
        product[r.some] *= probs.T[:, r.index(rows.layout.space)]
    return np.arange(rows.n_steps, dtype=np.int32), product


def count_stepwise(rows: ReducedSteps, theta: Theta, weight: Array, total: Expectation) -> Array:
    """What regressions take of the pairs of states of each step; the pairs of each kind of step are left for tables."""
    for r in _of_rows(rows, theta):
        own, index = np.zeros((r.n, len(r.some))), r.index(rows.layout.space)
        for i in range(r.n):
            own[i] = weight[r.some][:, index == i].sum(axis=1)
        r.count(theta, own, total)
    pairs = np.zeros((len(rows.transitions.phase), *weight.shape[1:]))
    np.add.at(pairs, rows.transitions.kind, weight)
    return pairs


def _of_rows(rows: ReducedSteps, theta: Theta) -> Iterator[StepRegression]:
    return regressions(rows.layout, rows.transitions.phase[rows.transitions.kind], rows.inputs, theta)


def regressions(layout: StepLayout, phases: Ints, inputs: Columns, theta: Theta) -> Iterator[StepRegression]:
    """The regressions among transitions. `phases` are those of the steps, `inputs` has the columns that they depend on."""
    unknown = layout.space.unknown
    for phase in layout.phases:
        some = np.flatnonzero(phases == phase.number)
        for name in unknown if len(some) else ():
            node, key = phase.nodes[name], phase.keys[name]
            if node.by_table:
                continue
            inner: list[Any] = [v for v in node.members if variable_and_lag(v.name)[0] in unknown]
            shape = tuple(v.n_states for v in inner)
            states = dict(zip((v.name for v in inner), np.indices(shape).reshape(len(shape), -1), strict=True))
            columns = {
                key if v.name == name else v.name: np.repeat(states[v.name], len(some))
                if v.name in states
                else np.tile(inputs[v.name][some], int(np.prod(shape)))
                for v in node.members
            }
            yield StepRegression(phase.number, some, tuple(v.name for v in inner), shape, theta.others[key], columns)
