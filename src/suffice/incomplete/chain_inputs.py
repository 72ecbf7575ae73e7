"""Transitions that are regressions on what each step shows: a matrix of transitions for every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import added
from suffice.graphs.lagged import variable_and_lag
from suffice.incomplete.components import Expectation, Theta

if TYPE_CHECKING:
    from suffice.incomplete.chain_rows import ChainRows

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]


def stepwise_matrices(rows: ChainRows, theta: Theta, matrices: Array) -> tuple[npt.NDArray[np.int32], Array]:
    """A matrix for each step: tables as they are for its kind, times what regressions say of the step."""
    product = matrices[rows.transitions.kind]
    for some, index, cpd, columns, n in _regressions(rows, theta):
        probs = np.exp(cpd.log_prob(columns)).reshape(n, len(some))
        product[some] *= probs.T[:, index]
    return np.arange(rows.n_steps, dtype=np.int32), product


def count_stepwise(rows: ChainRows, theta: Theta, weight: Array, total: Expectation) -> Array:
    """What regressions take of the pairs of states of each step; the pairs of each kind of step are left for tables."""
    for some, index, cpd, columns, n in _regressions(rows, theta):
        own = np.zeros((len(some), n))
        for i in range(n):
            own[:, i] = weight[some][:, index == i].sum(axis=1)
        step = cpd.family.step(theta.others[cpd.child.name], columns, own.T.reshape(-1))
        total.steps[cpd.child.name] = added(total.steps[cpd.child.name], step) if cpd.child.name in total.steps else step
    pairs = np.zeros((len(rows.transitions.phase), *weight.shape[1:]))
    np.add.at(pairs, rows.transitions.kind, weight)
    return pairs


def _regressions(rows: ChainRows, theta: Theta) -> Iterator[tuple[npt.NDArray[np.intp], Ints, Any, Columns, int]]:
    """For each regression among transitions: the steps that have it, which of its local states a pair of joint states is, its
    distribution, and its columns once for each local state."""
    space, phases = rows.layout.space, rows.transitions.phase[rows.transitions.kind]
    for phase in rows.layout.phases:
        some = np.flatnonzero(phases == phase.number)
        for name in space.unknown if len(some) else ():
            node, key = phase.nodes[name], phase.keys[name]
            if node.by_table:
                continue
            inner: list[Any] = [v for v in node.members if variable_and_lag(v.name)[0] in space.unknown]
            index, shape = np.zeros((space.size, space.size), np.int64), [v.n_states for v in inner]
            for v in inner:
                base, k = variable_and_lag(v.name)
                digit = space.digits[base, 0][None, :] if k == 0 else space.digits[base, k - 1][:, None]
                index = index * v.n_states + digit
            states = dict(zip((v.name for v in inner), np.indices(shape).reshape(len(shape), -1), strict=True))
            n = int(np.prod(shape))
            columns = {
                key if v.name == name else v.name: np.repeat(states[v.name], len(some))
                if v.name in states
                else np.tile(rows.inputs[v.name][some], n)
                for v in node.members
            }
            yield some, index, theta.others[key], columns, n
