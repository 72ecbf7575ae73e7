"""Sequences whose hidden states are many variables: expected statistics, filter, best paths and draws, factor by factor.

Each step is a program of small products (`slice_program`), never a matrix over joint states. Forward the programs run; backward
they are differentiated: with L = ∏ of the sums by which tables are scaled,

    Σ p(cells of factor f | y) = F_f · ∂ ln L / ∂F_f

For paths, the programs of all steps are run forward, with the largest in place of sums for best ones; then states are chosen from
the last step to the first, and within a step from the variable that was summed out last to the first: the others of its table are
known.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import NamedTuple

import numpy as np

from suffice.numerics.inference.chains.factored.factor_steps import FactorRun, FactorSteps, runs
from suffice.numerics.inference.chains.factored.slice_program import Operation, Scope, SliceProgram
from suffice.numerics.inference.chains.steps import Array, Codes, Ints


class FactorExpectations(NamedTuple):
    """Of each sequence ln p(y) and its first impossible step or −1. Of factors that were asked for `counts[f][cell, row]` =
    Σ w p(cell | y) over the steps that have the row, and `posterior[f][cell, t]` = p(cell | y), not weighted; `last` is what is
    known after the last step, if there is one sequence. One that is impossible has zeros, and adds nothing."""

    log_likelihood: Array
    stuck: Ints
    counts: dict[int, Array]
    posterior: dict[int, Array]
    last: Array


def expect_factors(
    steps: FactorSteps, *, counted: Collection[int] = (), stepwise: Collection[int] = (), filtered: bool = False
) -> FactorExpectations:
    """ln p(y) of each sequence and, of the factors that are asked for, sums over steps or what is expected at each. `filtered`:
    given the past and the step itself only."""
    S = steps.n_sequences
    counts = {f: np.zeros(steps.factors[f].logs.shape) for f in counted}
    posterior = {f: np.zeros((len(steps.factors[f].logs), steps.n_steps)) for f in stepwise}
    found = FactorExpectations(np.zeros(S), np.full(S, -1), counts, posterior, np.zeros(0))
    for run, past, kept in runs(steps, back=bool(counted or stepwise)):
        found.log_likelihood[run.group.which], found.stuck[run.group.which] = run.log_p, run.stuck
        if S == 1:
            found = found._replace(last=np.array(np.exp(past) if run.how.logs else past).reshape(-1))
        if counted or stepwise:
            run.back(run.first(), _Gradient(run, found, filtered=filtered).visit, kept)
    return found


class _Gradient:
    """∂ ln L backward through the programs of a group, times the weights of its sequences; `message` is that by what is known
    after a step. Sequences that are impossible weigh nothing, unless they are filtered up to there."""

    message: Array | None = None

    def __init__(self, run: FactorRun, into: FactorExpectations, *, filtered: bool) -> None:
        weights = run.steps.weights
        weight = np.ones(len(run.group.which)) if weights is None or filtered else weights[run.group.which]
        self.run, self.into, self.filtered = run, into, filtered
        self.weight = weight if filtered else np.where(run.stuck < 0, weight, 0.0)

    def visit(self, place: int, tables: list[Array], scale: Array) -> None:
        steps, at = self.run.steps, self.run.group.at(place)
        phase = int(steps.phase[at[0]])
        program, own, (wanted, needed, each) = steps.programs[phase], steps.active[phase], self._paths[phase]
        back: dict[int, Array] = {len(tables) - 1: self._after(at, tables[-1], scale)}
        for i in range(len(program.operations) - 1, -1, -1):
            given = back.pop(i + len(own) + 1, None)
            if given is None:
                continue
            operation = program.operations[i]
            for mine, other in ((operation.left, operation.right), (operation.right, operation.left)):
                if mine in needed and other < 0:
                    back[mine] = _widen(given, operation, program)
                elif mine in needed:
                    pooled = tables[mine].shape[-1] == 1 < len(at) and mine not in each and not self.run.how.logs
                    shape = *steps.shape(program.scopes[mine]), max(given.shape[-1], tables[other].shape[-1])
                    room = None if pooled else self.run.room(("back", mine), shape)
                    right = tables[other], program.scopes[other]
                    back[mine] = self.run.how.combine((given, operation.out), right, program.scopes[mine], room)
        for i in wanted:
            self._collect(own[i - 1], at, tables[i], back[i])
        if not self.filtered:
            # what is impossible by the past has no message: it counts for nothing, and could be too large
            kept, nothing = self.run.room("message", tables[0].shape), -np.inf if self.run.how.logs else 0.0
            np.copyto(kept, back[0])
            np.copyto(kept, nothing, where=tables[0] <= nothing)
            self.message = kept

    @cached_property
    def _paths(self) -> list[tuple[list[int], set[int], set[int]]]:
        """Of the program of each phase the factors that are asked for, all tables that derivatives by them and by the past pass
        through, and those of which every lane is asked for."""
        result = []
        for program, own in zip(self.run.steps.programs, self.run.steps.active, strict=True):
            wanted = [i for i, f in enumerate(own, 1) if f in self.into.counts or f in self.into.posterior]
            each = [i for i in wanted if own[i - 1] in self.into.posterior]
            needed = _above(program, wanted if self.filtered else [0, *wanted])
            result.append((wanted, needed, _above(program, each)))
        return result

    def _after(self, at: Ints, out: Array, scale: Array) -> Array:
        """∂ ln L by the result of a step: sequences that end here have the message 1, times their weight."""
        message, logs = self.run.room("after", out.shape), self.run.how.logs
        with np.errstate(divide="ignore"):
            message[:] = np.log(self.weight[: len(at)]) if logs else self.weight[: len(at)]
        if self.message is not None:
            message[..., : self.message.shape[-1]] = self.message
        there = np.where(scale > -np.inf, scale, 0.0)
        return np.subtract(message, there, out=message) if logs else np.multiply(message, np.exp(-there), out=message)

    def _collect(self, f: int, at: Ints, table: Array, slope: Array) -> None:
        """p(cells of a factor) of these steps, summed or kept."""
        factor, room = self.run.steps.factors[f], self.run.room("share", slope.shape)
        share = np.exp(table + slope) if self.run.how.logs else np.multiply(table, slope, out=room)
        share = share.reshape(len(factor.logs), -1)
        if f in self.into.counts:
            counts, rows = self.into.counts[f], factor.rows(at)
            if (rows == rows[0]).all():
                counts[:, rows[0]] += share.sum(axis=1)
            else:
                some, which = np.unique(rows, return_inverse=True)
                counts[:, some] += share @ np.eye(len(some))[which]
        if f in self.into.posterior:
            weight = self.weight[: len(at)]
            self.into.posterior[f][:, at] = share * np.divide(1.0, weight, out=np.zeros(len(at)), where=weight > 0)


def _above(program: SliceProgram, inputs: list[int]) -> set[int]:
    """These tables and all that are made of them."""
    found, first = set(inputs), len(program.scopes) - len(program.operations)
    for i, operation in enumerate(program.operations):
        if operation.left in found or operation.right in found:
            found.add(i + first)
    return found


def _widen(given: Array, operation: Operation, program: SliceProgram) -> Array:
    """What goes back to a table of which one variable was summed out, or whose axes were moved."""
    scope, out = program.scopes[operation.left], operation.out
    if operation.summed < 0:
        return given.transpose([*(out.index(v) for v in scope), len(scope)])
    wide = np.expand_dims(given, scope.index(operation.summed))
    return np.broadcast_to(wide, (*(program.sizes[v] for v in scope), given.shape[-1]))


TIE = 1e-9
"""Gains closer than this are equal."""


class FactorPaths(NamedTuple):
    """`states[v, t]` of each variable at each step, −1 where there is no path, and of each sequence ln p(path, y) of a best path,
    ln p(y) where paths are drawn."""

    states: Codes
    log_prob: Array


def paths_of_factors(steps: FactorSteps, uniforms: Array | None = None) -> FactorPaths:
    """The path of largest p(path, y) of each sequence: gains closer than 1e-9 are equal, and the smaller state wins. Or, by a
    uniform number for each variable and step (variables × steps), a path drawn from p(path | y)."""
    out = FactorPaths(np.full((len(steps.sizes), steps.n_steps), -1, np.int32), np.zeros(steps.n_sequences))
    for run, _, kept in runs(steps, largest=uniforms is None):
        walk = _Walk(run, uniforms, out.states)
        run.back(run.first(), walk.visit, kept)
        logs = out.log_prob[run.group.which] = run.log_p if uniforms is not None else run.log_p + walk.best
        for q in run.group.which[logs == -np.inf]:
            out.states[:, steps.starts[q] : steps.starts[q + 1]] = -1
    return out


class _Walk:
    """States chosen from the last step to the first: the best, or drawn. `states` are those of all variables at a step, `n` the
    sequences that have begun to be walked back, `best` ln p of their paths."""

    def __init__(self, run: FactorRun, uniforms: Array | None, out: Codes) -> None:
        self.run, self.uniforms, self.out, self.n = run, uniforms, out, 0
        lanes = len(run.group.which)
        self.states, self.best = np.zeros((len(run.steps.sizes), lanes), np.int64), np.zeros(lanes)

    def visit(self, place: int, tables: list[Array], scale: Array) -> None:
        steps, at = self.run.steps, self.run.group.at(place)
        program = steps.programs[int(steps.phase[at[0]])]
        self.states[list(steps.kept)] = self.states[list(steps.old)]
        if len(at) > self.n:
            self._end(at, tables[-1])
        for left, right, _, summed in reversed(program.operations):
            if summed < 0:
                continue
            gains = self._values_by(tables[left], program.scopes[left], summed, len(at))
            if right >= 0:
                more = self._values_by(tables[right], program.scopes[right], summed, len(at))
                gains = gains + more if self.run.how.logs else gains * more
            self.states[summed, : len(at)] = self._choose(gains, summed, at)
        self.out[:, at] = self.states[:, : len(at)]

    def _end(self, at: Ints, out: Array) -> None:
        """The last states of the sequences that end here, all variables together."""
        steps, mine = self.run.steps, slice(self.n, len(at))
        gains = out.reshape(-1, len(at))[:, mine]
        if self.uniforms is None:
            self.best[mine] = gains.max(axis=0)
        if steps.kept:
            index = self._choose(gains, steps.kept[0], at[mine])
            self.states[list(steps.kept), mine] = np.unravel_index(index, steps.shape(steps.kept))
        self.n = len(at)

    def _values_by(self, table: Array, scope: Scope, v: int, n: int) -> Array:
        """A table's values by one of its variables, the others as they are in each lane."""
        lanes = np.arange(n) if table.shape[-1] == n else np.zeros(n, np.int64)
        others = [self.states[u, :n] for u in scope if u != v]
        return np.asarray(np.moveaxis(table, scope.index(v), -1)[(*others, lanes)].T)

    def _choose(self, gains: Array, v: int, at: Ints) -> Ints:
        if self.uniforms is None:
            return np.asarray((gains >= gains.max(axis=0) - TIE).argmax(axis=0))
        if self.run.how.logs:
            top = gains.max(axis=0)
            gains = np.exp(gains - np.where(top > -np.inf, top, 0.0))
        total = np.cumsum(gains, axis=0)
        return np.asarray(np.minimum((self.uniforms[v, at] * total[-1] >= total).sum(axis=0), len(gains) - 1))
