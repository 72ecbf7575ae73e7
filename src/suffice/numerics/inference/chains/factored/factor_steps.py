"""Steps of sequences whose hidden states are many variables, as tables over some of them each; arrays and numbers only. Their
programs are run along sequences, many side by side, forward and back.

All numbers are scaled at each step. Where a product could be too small for a double, which is known beforehand from the smallest
cells of its tables, the sequence is done in logarithms. What is known before each step is kept for the way back while it fits
into `ROOM`; else some of it is, and the rest is run again, so that memory does not grow with the length of sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.numerics.inference.chains.factored.slice_program import Largest, Logarithms, Products, Scope, SliceProgram, TableRoom
from suffice.numerics.inference.chains.steps import Array, Codes, Ints

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
    the factors of a step, by its phase. Before the first step all variables are 0, or as `before` says (a table over `old`)."""

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

    def shape(self, scope: Scope) -> tuple[int, ...]:
        return tuple(self.sizes[v] for v in scope)

    def groups(self) -> Iterator[LaneGroup]:
        """The sequences that step together, those of like length."""
        length = np.diff(self.starts)
        order = np.argsort(-length, kind="stable")
        order = order[length[order] > 0]
        side = min(LANES, max(1, WIDE // max(p.widest for p in self.programs)))
        for i in range(0, len(order), side):
            which = order[i : i + side]
            yield LaneGroup(which, self.starts[which], length[which])


class LaneGroup(NamedTuple):
    """Sequences that step together, longest first: their numbers, first steps and lengths."""

    which: Ints
    begin: Ints
    length: Ints

    def some(self, mine: npt.NDArray[np.bool_]) -> LaneGroup:
        return LaneGroup(self.which[mine], self.begin[mine], self.length[mine])

    @property
    def longest(self) -> int:
        return int(self.length[0])

    def at(self, place: int) -> Ints:
        """The steps at a place of the sequences that are so long."""
        return self.begin[: int(np.searchsorted(-self.length, -place, side="left"))] + place


ROOM = 2**22
"""Cells that are kept of what is known before steps: 32 MiB."""
SMALLEST = -690.0
"""The logarithm of a product that a double still holds."""


Visit = Callable[[int, list[Array], Array], None]
"""What is done on the way back at each place: it sees the tables of the step, and the logarithms of the sums of the last."""


class FactorRun:
    """A group of sequences: ln p and the first impossible step of each, or −1, and whether its products may be too small."""

    def __init__(self, steps: FactorSteps, group: LaneGroup, how: Products, room: TableRoom) -> None:
        n, self.steps, self.group, self.how, self.room = len(group.which), steps, group, how, room
        self.log_p, self.stuck, self.small = np.zeros(n), np.full(n, -1), np.zeros(n, bool)

    def first(self) -> Array:
        """What is known before the first step."""
        shape, n = self.steps.shape(self.steps.old), len(self.group.which)
        past = np.zeros((int(np.prod(shape)), n))
        if self.steps.before is None:
            past[0] = 1.0
        else:
            past[:] = self.steps.before[:, None]
        with np.errstate(divide="ignore"):
            return (np.log(past) if self.how.logs else past).reshape(*shape, n)

    def tables(self, place: int, past: Array) -> list[Array]:
        """All tables of a step: what is known before it, its factors, and what its program makes of them."""
        steps, at = self.steps, self.group.at(place)
        phase = int(steps.phase[at[0]])
        program, factors = steps.programs[phase], [steps.factors[f] for f in steps.active[phase]]
        tables = [past[..., : len(at)], *(f.table(at, steps.shape(f.scope), logs=self.how.logs) for f in factors)]
        for left, right, out, summed in program.operations:
            a = program.scopes[left]
            if right < 0 and summed < 0:
                tables.append(tables[left].transpose([*(a.index(v) for v in out), len(a)]))
                continue
            lanes = max(tables[left].shape[-1], 1 if right < 0 else tables[right].shape[-1])
            room = self.room(len(tables), (*steps.shape(out), lanes))
            if right < 0:
                tables.append(self.how.sum_out(tables[left], a.index(summed), room))
            else:
                tables.append(self.how.combine((tables[left], a), (tables[right], program.scopes[right]), out, room))
        if tables[-1].shape[-1] < len(at):  # nothing of the step differs between lanes
            tables[-1] = np.repeat(tables[-1], len(at), axis=-1)
        return tables

    def ahead(self, begin: int, end: int, past: Array, *, keep: bool, note: bool = False) -> Iterator[tuple[int, Array]]:
        """What is known before places begin + 1 … end. With `keep` it is good until more is kept, else until the next step."""
        for place in range(begin, end):
            if note and not self.how.logs:
                self._look(place, past)
            out = self.tables(place, past)[-1]
            key = ("kept", place - begin) if keep else ("passing", place % 2)
            past, scale = self.how.normalise(out, self.room(key, out.shape))
            if note:
                at = self.group.at(place)
                self.log_p[: len(at)] += scale + self.steps.tops[at]
                lost = (scale == -np.inf) & (self.stuck[: len(at)] < 0)
                self.stuck[: len(at)][lost] = at[lost]
            yield place + 1, past

    def _look(self, place: int, past: Array) -> None:
        """Note where a product may be too small: only what is 0 may be lost."""
        at = self.group.at(place)
        least = float(past.min())
        if least > 0.0 and np.log(least) + self.steps.lows[at].min() >= SMALLEST:
            return
        flat = past.reshape(-1, past.shape[-1])[:, : len(at)]
        low = np.where(flat > 0.0, flat, 1.0).min(axis=0)
        self.small[: len(at)] |= np.log(low) + self.steps.lows[at] < SMALLEST

    def back(self, past: Array, visit: Visit, kept: list[Array] | None) -> None:
        """All steps from the last to the first, given what is known before the first, or before each."""
        if kept is None:
            self._back(0, self.group.longest, past, visit)
        else:
            self._visit(0, kept, visit)

    def _back(self, begin: int, end: int, past: Array, visit: Visit) -> None:
        """The steps at places end − 1, …, begin, cut into as many stretches as there is room for beginnings of them."""
        most = max(2, ROOM // past.size)
        if end - begin <= most:
            self._visit(begin, [past, *(after for _, after in self.ahead(begin, end - 1, past, keep=True))], visit)
            return
        ends = [begin + (end - begin) * i // most for i in range(most + 1)]
        marks = [past, *(after.copy() for place, after in self.ahead(begin, ends[-2], past, keep=False) if place in ends)]
        while marks:
            self._back(ends[len(marks) - 1], ends[len(marks)], marks.pop(), visit)

    def _visit(self, begin: int, kept: list[Array], visit: Visit) -> None:
        for i in range(len(kept) - 1, -1, -1):
            tables = self.tables(begin + i, kept[i])
            _, scale = self.how.normalise(tables[-1], self.room("scaled", tables[-1].shape))
            visit(begin + i, tables, scale)


def runs(
    steps: FactorSteps, *, largest: bool = False, back: bool = True
) -> Iterator[tuple[FactorRun, Array, list[Array] | None]]:
    """Groups of sequences, run forward; with what is known at the end and, if the way back is wanted and it fits, before each
    step. `largest`: for best paths."""
    room = TableRoom()
    for group in steps.groups():
        ways: list[tuple[LaneGroup, Products]] = [(group, Largest() if largest else Products())]
        while ways:
            own, how = ways.pop()
            run = FactorRun(steps, own, how, room)
            past = run.first()
            few = back and own.longest * past.size <= ROOM
            kept = [past]
            for _, past in run.ahead(0, own.longest, run.first(), keep=few, note=True):
                kept += [past] if few else []
            if run.small.any():
                ways += [(own.some(run.small), Logarithms())]
                ways += [(own.some(~run.small), Products())] if not run.small.all() else []
            else:
                yield run, past, kept[:-1] if few else None
