"""Steps of sequences whose hidden states are many variables, as tables over some of them each; arrays and numbers only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.inference.chains.factored.slice_program import Scope, SliceProgram
from suffice.inference.chains.steps import Array, Codes, Ints

LANES = 64
"""So many sequences step together, fewer where"""
WIDE = 2**17
"""their largest product would have more cells than this (1 MiB): it should stay in the cache."""


@dataclass(frozen=True, eq=False)
class StepFactor:
    """A table over some variables of a step, one for each kind of step: exp(logs[:, codes[t]]), cells in the order of the scope.
    Without codes each step has its own."""

    scope: Scope
    logs: Array
    codes: Codes | None = None

    @cached_property
    def tops(self) -> Array:
        """The largest logarithm of each table: it is taken out, so that no cell is above 1."""
        top = self.logs.max(axis=0)
        return np.where(top > -np.inf, top, 0.0)

    @cached_property
    def lows(self) -> Array:
        """The smallest logarithm of each table but −∞, without its top."""
        return np.asarray(np.where(self.logs > -np.inf, self.logs, np.inf).min(axis=0, initial=0.0) - self.tops)

    @cached_property
    def numbers(self) -> Array:
        return np.asarray(np.exp(self.logs - self.tops))

    def rows(self, steps: Ints) -> Ints:
        """Which table each of these steps has."""
        return steps if self.codes is None else self.codes[steps].astype(np.int64)

    def table(self, steps: Ints, shape: Sequence[int], *, logs: bool) -> Array:
        """The tables of steps as lanes, or one if all have the same."""
        rows = self.rows(steps[:1] if self.logs.shape[1] == 1 else steps)
        if len(rows) > 1 and (rows == rows[0]).all():
            rows = rows[:1]
        if logs or self.codes is None:
            cells = self.logs[:, rows] - self.tops[rows]
            cells = cells if logs else np.exp(cells)
        else:
            cells = self.numbers[:, rows]
        return cells.reshape(*shape, len(rows))


@dataclass(frozen=True, eq=False)
class FactorSteps:
    """Sequences whose steps are programs: sequence q has the steps starts[q] … starts[q + 1] − 1.

    Variables have `sizes`; `old` are those that the past is known by, `kept` the same one step on. `active` are the numbers of
    the factors of a step, by its phase. Before the first step all variables are 0, or as `before` says (a table over `old`).

    >>> same = np.zeros(2, np.int32)
    >>> enter = StepFactor((0,), np.log([[0.5], [0.5]]), same)
    >>> move = StepFactor((1, 0), np.log([[0.9], [0.1], [0.1], [0.9]]), same)
    >>> seen = StepFactor((0,), np.log([[0.9, 0.2], [0.1, 0.8]]), np.array([0, 1], np.int32))
    >>> steps = FactorSteps(np.array([0, 2]), np.array([0, 1]), (2, 2), (1,), (0,), (enter, move, seen), ((0, 2), (1, 2)))
    >>> steps.n_steps, steps.programs[1].cost
    (2, 6)
    """

    starts: Ints
    phase: Ints
    sizes: tuple[int, ...]
    old: Scope
    kept: Scope
    factors: tuple[StepFactor, ...]
    active: tuple[tuple[int, ...], ...]
    weights: Array | None = None
    before: Array | None = None

    @cached_property
    def programs(self) -> tuple[SliceProgram, ...]:
        """That of each phase."""
        scopes = [tuple(self.factors[f].scope for f in own) for own in self.active]
        return tuple(SliceProgram.of(self.sizes, self.old, self.kept, own) for own in scopes)

    @property
    def n_sequences(self) -> int:
        return len(self.starts) - 1

    @property
    def n_steps(self) -> int:
        return len(self.phase)

    @cached_property
    def lows(self) -> Array:
        """The logarithm below which no product of a step's factors is, unless it is 0."""
        return self._over_factors([f.lows for f in self.factors])

    @cached_property
    def tops(self) -> Array:
        """What was taken out of the factors of each step."""
        return self._over_factors([f.tops for f in self.factors])

    def _over_factors(self, numbers: Sequence[Array]) -> Array:
        """The sum of a number of each factor of each step."""
        total = np.zeros(self.n_steps)
        for number, own in enumerate(self.active):
            some = np.flatnonzero(self.phase == number)
            for f in own if len(some) else ():
                total[some] += numbers[f][self.factors[f].rows(some)]
        return total

    def last_step(self, before: Array | None) -> FactorSteps:
        """The last step of one sequence alone, after what was known before it."""
        return replace(self, starts=np.array([self.n_steps - 1, self.n_steps]), before=before)

    def shape(self, scope: Scope) -> tuple[int, ...]:
        return tuple(self.sizes[v] for v in scope)

    def groups(self) -> Iterator[LaneGroup]:
        """The sequences that step together, those of like length."""
        length = np.diff(self.starts)
        order = np.argsort(-length, kind="stable")
        order = order[length[order] > 0]
        side = min(LANES, max(1, WIDE // max(p.widest for p in self.programs)))
        for i in range(0, len(order), side):
            yield LaneGroup.of(self, order[i : i + side])


class LaneGroup(NamedTuple):
    """Sequences that step together, longest first: their numbers, first steps and lengths."""

    which: Ints
    begin: Ints
    length: Ints

    @classmethod
    def of(cls, steps: FactorSteps, which: Ints) -> LaneGroup:
        return cls(which, steps.starts[which], np.diff(steps.starts)[which])

    def some(self, mine: npt.NDArray[np.bool_]) -> LaneGroup:
        return LaneGroup(self.which[mine], self.begin[mine], self.length[mine])

    @property
    def longest(self) -> int:
        return int(self.length[0])

    def at(self, place: int) -> Ints:
        """The steps at a place of the sequences that are so long."""
        return self.begin[: int(np.searchsorted(-self.length, -place, side="left"))] + place
