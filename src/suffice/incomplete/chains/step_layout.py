"""A template's nodes as steps of sequences need them: which are tables, which columns there are, what the joint state is; and
steps that are alike: those with the same transition, and those that show the same states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.engines.engine import Block
from suffice.engines.sequences.lagged import lag_cells, places_of
from suffice.errors import FitError
from suffice.graphs.lagged import variable_and_lag
from suffice.incomplete.chains.chain_states import Phase, StateSpace, parameter_nodes
from suffice.incomplete.components import FlatTables, NodeFamily, Theta
from suffice.incomplete.numbers.units import Units
from suffice.statistics.counts import distinct

FEW = 2**16
"""Codes below this are looked up, not sorted."""

GLANCE = 2**12
"""So many steps often show all codes that there are."""


def steps_of(lengths: Ints) -> tuple[Ints, Ints]:
    """Where sequences of these lengths begin, one more for the end; and the place of each step in its sequence.

    >>> steps_of(np.array([2, 1]))
    (array([0, 2, 3]), array([0, 1, 0]))
    """
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), places_of(lengths)


def _by_code(column: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int32], Ints]:
    """The place of each cell's code among the codes that occur, and these."""
    there = np.zeros(int(column.max(initial=0)) + 1, np.bool_)
    there[column[:GLANCE]] = True
    if not there.all():
        there[column] = True
    if there.all():
        return column.astype(np.int32), np.arange(len(there))
    return (np.cumsum(there, dtype=np.int32) - 1)[column], np.flatnonzero(there)


class Kinds(NamedTuple):
    """Steps that are alike: the kind of each step, and of each kind its phase and codes."""

    kind: npt.NDArray[np.int32]
    phase: Ints
    codes: dict[str, Ints]

    @classmethod
    def of(cls, phase: Ints | int, columns: Mapping[str, npt.NDArray[Any]]) -> Kinds:
        """Kinds by the codes of columns and by the phase, unless that is the same for all steps."""
        apart = [] if isinstance(phase, int) else [phase]
        cells = [*apart, *columns.values()]
        if len(cells) == 1 and int(cells[0].max(initial=0)) < FEW:
            kind, first = _by_code(cells[0])
            codes = dict.fromkeys(columns, first)
            return cls(kind, np.full(len(first), phase) if not apart else first, codes)
        rows, inverse = distinct(cells, len(cells[0]))
        codes = {name: column[rows].astype(np.int64) for name, column in columns.items()}
        return cls(inverse.astype(np.int32), np.full(len(rows), phase) if not apart else phase[rows], codes)  # type: ignore[index]

    def of_phase(self, number: int) -> tuple[npt.NDArray[np.intp], dict[str, Ints]]:
        """The kinds of a phase and their codes."""
        some = np.flatnonzero(self.phase == number)
        return some, {name: codes[some] for name, codes in self.codes.items()}


class ImpossibleSequence(FitError):
    """A sequence without probability under the parameters: the number of its block, and the step there at which it is lost."""


Columns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class StepLayout:
    """A template's nodes as steps of sequences need them. It travels with the steps that are folded over sequences.

    `shown` are the columns that the data have; `counted` the parameter nodes whose families every step shows: they are counted
    once, and take no part in expectations. `stationary`: the joint state begins as its transition settles. `only` are the
    variables that a part of a template is about, whose states are passed on elsewhere (`incomplete.chains.factored_rows`).
    """

    space: StateSpace
    tables: FlatTables
    units: Units
    shown: tuple[str, ...]
    counted: frozenset[str]
    stationary: bool = False
    only: frozenset[str] | None = None

    @property
    def phases(self) -> tuple[Phase, ...]:
        return self.space.phases

    @cached_property
    def nodes(self) -> dict[str, NodeFamily]:
        """The nodes that have parameters."""
        return parameter_nodes(self.phases[-1:] if self.stationary else self.phases)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns of all nodes, at their lags, as far as the data have them."""
        every = {n for phase in self.phases for n in phase.columns}
        if self.only is not None:
            own = (
                node
                for p in self.phases
                for by_table in (True, False)
                for node in self.emitting_nodes(p, by_table=by_table).values()
            )
            every = {v.name for node in own for v in node.members} | {n for n in self.only if n in self.space.unknown}
        return tuple(n for n in sorted(every) if variable_and_lag(n)[0] in self.shown)

    def emitting_nodes(self, phase: Phase, *, by_table: bool) -> dict[str, NodeFamily]:
        """The nodes of a phase whose variable is not part of the joint state, tables or others."""
        return {
            n: node
            for n, node in phase.nodes.items()
            if n not in self.space.unknown and node.by_table == by_table and phase.keys[n] not in self.counted and self._has(n)
        }

    def _has(self, name: str) -> bool:
        return self.only is None or name in self.only

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """The unknown variables, whose nodes make the transition: none in a part of a template."""
        return self.space.unknown if self.only is None else ()

    @cached_property
    def labelled(self) -> tuple[str, ...]:
        """The unknown variables that some steps may show."""
        return tuple(n for n in self.space.unknown if n in self.shown and self._has(n))

    @cached_property
    def stepwise(self) -> bool:
        """Whether transitions are regressions on what each step shows: then every step has a matrix of its own."""
        return any(not phase.nodes[n].by_table for phase in self.phases for n in self.moving)

    def product(self, theta: Theta, phase: Phase, codes: Mapping[str, Ints], n: int) -> Array:
        """p(s' | s) in a phase for each of n combinations of observed codes, as far as tables say it."""
        product = np.repeat(self.space.allowed[phase.number][None], n, axis=0)
        for table in self.space.transitions[phase.number]:
            product *= theta.cells[theta.tables.cells[table.key]][table.cells(codes)]
        return product

    def settling(self, theta: Theta) -> Array:
        """The transition of all steps but the first, where no observed cell takes part in it."""
        return np.asarray(self.product(theta, self.phases[-1], {}, 1)[0])

    @cached_property
    def varies(self) -> bool:
        """Whether tables that steps emit have parameters of their own in first slices."""
        keys = [[phase.keys[n] for n in self.emitting_nodes(phase, by_table=True)] for phase in self.phases]
        return any(own != keys[-1] for own in keys)

    def columns(self, block: Block, step: Ints) -> Columns:
        """The columns of a block at their lags; what lies before the first step is missing."""
        places = ((name, *variable_and_lag(name)) for name in self.names)
        return {name: lag_cells(block.columns[base], step, k) for name, base, k in places}
