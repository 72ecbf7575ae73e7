"""Sequences whose hidden states are many variables: best paths and draws of paths, factor by factor.

After the programs of all steps are run forward, with the largest in place of sums for best paths, states are chosen from the last
step to the first, and within a step from the variable that was summed out last to the first: the others of its table are known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from suffice.inference.chains.factored.factor_runs import FactorRun, runs
from suffice.inference.chains.factored.factor_steps import FactorSteps
from suffice.inference.chains.factored.slice_program import Scope
from suffice.inference.chains.steps import Array, Codes, Ints

TIE = 1e-9
"""Gains closer than this are equal."""


class FactorPaths(NamedTuple):
    """`states[v, t]` of each variable at each step, −1 where there is no path, and of each sequence ln p(path, y) of a best path,
    ln p(y) where paths are drawn."""

    states: Codes
    log_prob: Array


def best_of_factors(steps: FactorSteps) -> FactorPaths:
    """The path of largest p(path, y) of each sequence. Gains closer than 1e-9 are equal, and the smaller state wins.

    >>> from suffice.inference.chains.factored.factor_steps import StepFactor
    >>> same = np.zeros(2, np.int32)
    >>> enter = StepFactor((0,), np.log([[0.5], [0.5]]), same)
    >>> move = StepFactor((1, 0), np.log([[0.5], [0.5], [0.5], [0.5]]), same)
    >>> seen = StepFactor((0,), np.log([[0.9, 0.2], [0.1, 0.8]]), np.array([0, 1], np.int32))
    >>> steps = FactorSteps(np.array([0, 2]), np.array([0, 1]), (2, 2), (1,), (0,), (enter, move, seen), ((0, 2), (1, 2)))
    >>> best_of_factors(steps).states[0]
    array([0, 1], dtype=int32)
    """
    return _paths(steps, None)


def draw_of_factors(steps: FactorSteps, uniforms: Array) -> FactorPaths:
    """A path of each sequence drawn from p(path | y), by a uniform number for each variable and step (variables × steps).

    >>> from suffice.inference.chains.factored.factor_steps import StepFactor
    >>> same = np.zeros(2, np.int32)
    >>> enter = StepFactor((0,), np.log([[0.5], [0.5]]), same)
    >>> move = StepFactor((1, 0), np.log([[0.5], [0.5], [0.5], [0.5]]), same)
    >>> seen = StepFactor((0,), np.log([[0.9, 0.2], [0.1, 0.8]]), np.array([0, 1], np.int32))
    >>> steps = FactorSteps(np.array([0, 2]), np.array([0, 1]), (2, 2), (1,), (0,), (enter, move, seen), ((0, 2), (1, 2)))
    >>> draw_of_factors(steps, np.array([[0.5, 0.1], [0.5, 0.95]])).states[0]
    array([1, 0], dtype=int32)
    """
    return _paths(steps, uniforms)


def _paths(steps: FactorSteps, uniforms: Array | None) -> FactorPaths:
    out = FactorPaths(np.full((len(steps.sizes), steps.n_steps), -1, np.int32), np.zeros(steps.n_sequences))
    for run, _, kept in runs(steps, largest=uniforms is None):
        walk = _Walk(run, uniforms, out.states)
        run.back(run.first(), walk, kept)
        logs = out.log_prob[run.group.which] = run.log_p if uniforms is not None else run.log_p + walk.best
        for q in run.group.which[logs == -np.inf]:
            out.states[:, steps.starts[q] : steps.starts[q + 1]] = -1
    return out


@dataclass
class _Walk:
    """States chosen from the last step to the first: the best, or drawn. `states` are those of all variables at a step, `n` the
    sequences that have begun to be walked back, `best` ln p of their paths."""

    run: FactorRun
    uniforms: Array | None
    out: Codes
    states: Ints = field(init=False)
    best: Array = field(init=False)
    n: int = 0

    def __post_init__(self) -> None:
        n = len(self.run.group.which)
        self.states, self.best = np.zeros((len(self.run.steps.sizes), n), np.int64), np.zeros(n)

    def visit(self, place: int, tables: list[Array], scale: Array) -> None:
        steps, at = self.run.steps, self.run.group.at(place)
        program = steps.programs[int(steps.phase[at[0]])]
        self.states[list(steps.kept)] = self.states[list(steps.old)]
        if len(at) > self.n:
            self._end(at, tables[-1])
        for left, right, _, summed in reversed(program.operations):
            if summed < 0:
                continue
            gains = self._given(tables[left], program.scopes[left], summed, len(at))
            if right >= 0:
                more = self._given(tables[right], program.scopes[right], summed, len(at))
                gains = gains + more if self.run.how.logs else gains * more
            self.states[summed, : len(at)] = self._chosen(gains, summed, at)
        self.out[:, at] = self.states[:, : len(at)]

    def _end(self, at: Ints, out: Array) -> None:
        """The last states of the sequences that end here, all variables together."""
        steps, mine = self.run.steps, slice(self.n, len(at))
        gains = out.reshape(-1, len(at))[:, mine]
        if self.uniforms is None:
            self.best[mine] = gains.max(axis=0)
        if steps.kept:
            index = self._chosen(gains, steps.kept[0], at[mine])
            self.states[list(steps.kept), mine] = np.unravel_index(index, steps.shape(steps.kept))
        self.n = len(at)

    def _given(self, table: Array, scope: Scope, v: int, n: int) -> Array:
        """A table's values by one of its variables, the others as they are in each lane."""
        lanes = np.arange(n) if table.shape[-1] == n else np.zeros(n, np.int64)
        others = [self.states[u, :n] for u in scope if u != v]
        return np.asarray(np.moveaxis(table, scope.index(v), -1)[(*others, lanes)].T)

    def _chosen(self, gains: Array, v: int, at: Ints) -> Ints:
        if self.uniforms is None:
            return np.asarray((gains >= gains.max(axis=0) - TIE).argmax(axis=0))
        if self.run.how.logs:
            top = gains.max(axis=0)
            gains = np.exp(gains - np.where(top > -np.inf, top, 0.0))
        total = np.cumsum(gains, axis=0)
        return np.asarray(np.minimum((self.uniforms[v, at] * total[-1] >= total).sum(axis=0), len(gains) - 1))
