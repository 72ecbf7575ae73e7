"""Programs of steps run along sequences, many side by side, forward and back.

All numbers are scaled at each step. Where a product could be too small for a double, which is known beforehand from the smallest
cells of its tables, the sequence is done in logarithms. What is known before each step is kept for the way back while it fits
into `ROOM`; else some of it is, and the rest is run again, so that memory does not grow with the length of sequences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from suffice.inference.chains.factored.factor_steps import FactorSteps, LaneGroup
from suffice.inference.chains.factored.table_arithmetic import Arithmetic, Largest, Logarithms, Products, TablePair, TableRoom
from suffice.inference.chains.steps import Array, Ints

ROOM = 2**22
"""Cells that are kept of what is known before steps: 32 MiB."""

SMALLEST = -690.0
"""The logarithm of a product that a double still holds."""


class BackwardPass(Protocol):
    """What is done on the way back: `visit` sees the tables of each step, and the logarithms of the sums of the last of them."""

    def visit(self, place: int, tables: list[Array], scale: Array) -> None: ...


@dataclass
class FactorRun:
    """A group of sequences: ln p and the first impossible step of each, or −1, and whether its products may be too small."""

    steps: FactorSteps
    group: LaneGroup
    how: Arithmetic
    room: TableRoom
    log_p: Array = field(init=False)
    stuck: Ints = field(init=False)
    small: npt.NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.group.which)
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
                tables.append(self.how.summed(tables[left], a.index(summed), room))
            else:
                tables.append(self.how.combined(TablePair(tables[left], a, tables[right], program.scopes[right]), out, room))
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
            past, scale = self.how.normalised(out, self.room(key, out.shape))
            if note:
                self._note(place, scale)
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

    def _note(self, place: int, scale: Array) -> None:
        at = self.group.at(place)
        self.log_p[: len(at)] += scale + self.steps.tops[at]
        lost = (scale == -np.inf) & (self.stuck[: len(at)] < 0)
        self.stuck[: len(at)][lost] = at[lost]

    def back(self, past: Array, then: BackwardPass, kept: list[Array] | None) -> None:
        """All steps from the last to the first, given what is known before the first, or before each."""
        if kept is None:
            self._back(0, self.group.longest, past, then)
        else:
            self._visit(0, kept, then)

    def _back(self, begin: int, end: int, past: Array, then: BackwardPass) -> None:
        """The steps at places end − 1, …, begin, cut into as many stretches as there is room for beginnings of them."""
        most = max(2, ROOM // past.size)
        if end - begin <= most:
            self._visit(begin, [past, *(after for _, after in self.ahead(begin, end - 1, past, keep=True))], then)
            return
        ends = [begin + (end - begin) * i // most for i in range(most + 1)]
        marks = [past, *(after.copy() for place, after in self.ahead(begin, ends[-2], past, keep=False) if place in ends)]
        while marks:
            self._back(ends[len(marks) - 1], ends[len(marks)], marks.pop(), then)

    def _visit(self, begin: int, kept: list[Array], then: BackwardPass) -> None:
        for i in range(len(kept) - 1, -1, -1):
            tables = self.tables(begin + i, kept[i])
            _, scale = self.how.normalised(tables[-1], self.room("scaled", tables[-1].shape))
            then.visit(begin + i, tables, scale)


def runs(
    steps: FactorSteps, *, largest: bool = False, back: bool = True
) -> Iterator[tuple[FactorRun, Array, list[Array] | None]]:
    """Groups of sequences, run forward; with what is known at the end and, if the way back is wanted and it fits, before each
    step. `largest`: for best paths."""
    room = TableRoom()
    for group in steps.groups():
        ways: list[tuple[LaneGroup, Arithmetic]] = [(group, Largest() if largest else Products())]
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
