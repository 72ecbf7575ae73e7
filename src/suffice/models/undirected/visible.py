"""Columns as the visible units of a machine, and back.

A variable of two states is a bit, 1 for the second; one of more is a group of units, one for each state; one of a single state
needs none. A number is a unit of its own, centred and scaled to variance 1. Units are in this order, within it in that of the
variables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.variables import Finite, NotNormal, Variable
from suffice.engines.data import Data
from suffice.engines.engine import Block
from suffice.engines.scan import rows_with
from suffice.errors import MissingCells, ModelError, TooLarge, bytes_in_words, listing, quantity
from suffice.errors.remedies import INTO_BINS
from suffice.numerics.inference.finite.network import Array
from suffice.numerics.inference.sampling.boltzmann import LayerUnits

Floats = npt.NDArray[np.float32]

ROWS = 1024
"""Rows that are encoded, or answered, at a time."""


@dataclass(frozen=True, eq=False)
class VisibleColumns:
    """Variables by their units, and the centre and scale of each number.

    >>> x, y = Finite("x", ["no", "yes"]), Finite("y", ["a", "b", "c"])
    >>> columns = VisibleColumns.of({"x": x, "y": y})
    >>> columns.names, columns.units.n
    (('x=yes', 'y=a', 'y=b', 'y=c'), 4)
    >>> columns.encode(Block({"x": np.array([1]), "y": np.array([2])}))
    array([[1., 0., 0., 1.]], dtype=float32)
    """

    variables: Mapping[str, Variable]
    centre: Array
    scale: Array

    @classmethod
    def of(cls, variables: Mapping[str, Variable]) -> VisibleColumns:
        """Columns whose numbers are taken as they are."""
        if counts := [n for n, v in variables.items() if isinstance(v, NotNormal)]:
            raise ModelError(
                f"{listing(counts)} are counts, and the visible units of a machine are states or real numbers: declare them "
                f"Real, or cut them {INTO_BINS}"
            )
        n = sum(not isinstance(v, Finite) for v in variables.values())
        columns = cls(dict(variables), np.zeros(n), np.ones(n))
        if not columns.units.n:
            raise ModelError("no column has more than one state: there is nothing to learn")
        return columns

    def rescale(self, centre: Array, scale: Array) -> VisibleColumns:
        """The same columns, with the centre and the scale of their numbers."""
        return replace(self, centre=centre, scale=scale)

    @cached_property
    def bits(self) -> tuple[str, ...]:
        return tuple(n for n, v in self.variables.items() if isinstance(v, Finite) and v.n_states == 2)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        return tuple(n for n, v in self.variables.items() if isinstance(v, Finite) and v.n_states > 2)

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        return tuple(n for n, v in self.variables.items() if not isinstance(v, Finite))

    @cached_property
    def units(self) -> LayerUnits:
        return LayerUnits(len(self.bits), tuple(self._finite(n).n_states for n in self.groups), len(self.numbers))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each unit: that of a number, or of a variable and its state."""
        bits = [f"{n}={self._finite(n).states[1]}" for n in self.bits]
        groups = [f"{n}={state}" for n in self.groups for state in self._finite(n).states]
        return (*bits, *groups, *self.numbers)

    def _finite(self, name: str) -> Finite:
        variable = self.variables[name]
        assert isinstance(variable, Finite)
        return variable

    def encode(self, block: Block) -> Floats:
        parts = list(self.parts(block, max(1, block.n_rows)))
        return parts[0] if parts else np.empty((0, self.units.n), np.float32)

    def parts(self, block: Block, size: int) -> Iterator[Floats]:
        """The units of the rows in parts of about this size, none of them much smaller than the others."""
        n, units = block.n_rows, self.units
        bits, groups, numbers = (
            np.array([block.columns[n] for n in names]).reshape(len(names), n) for names in (self.bits, self.groups, self.numbers)
        )
        ends = np.linspace(0, n, -(-n // size) + 1).astype(int) if n else np.zeros(1, int)
        for start, stop in pairwise(ends):
            out = np.zeros((stop - start, units.n), np.float32)
            out[:, : units.n_bits] = bits[:, start:stop].T
            for codes, first in zip(groups, units.first[:-1], strict=True):
                out[np.arange(stop - start), first + codes[start:stop]] = 1.0
            if self.numbers:
                out[:, units.n_finite :] = ((numbers[:, start:stop] - self.centre[:, None]) / self.scale[:, None]).T
            yield out

    def decode(self, states: Floats) -> dict[str, npt.NDArray[Any]]:
        """Codes and numbers of each row of drawn units, by column in the order of the variables."""
        units = self.units
        out: dict[str, npt.NDArray[Any]] = {}
        for name, variable in self.variables.items():
            if name in self.bits:
                out[name] = states[:, self.bits.index(name)].astype(np.int32)
            elif name in self.groups:
                g = self.groups.index(name)
                out[name] = states[:, units.first[g] : units.first[g + 1]].argmax(axis=1).astype(np.int32)
            elif isinstance(variable, Finite):
                out[name] = np.zeros(len(states), np.int32)
        numbers = self.in_their_units(states[:, units.n_finite :].astype(np.float64))
        out |= {name: numbers[:, i] for i, name in enumerate(self.numbers)}
        return {name: out[name] for name in self.variables}

    def in_their_units(self, numbers: Array) -> Array:
        """Numbers of variance 1 as the columns have them."""
        return np.asarray(numbers * self.scale + self.centre)

    def rows(self, data: Any) -> Data:
        """Data read with these variables, complete; refused where a column is lacking or cells are missing."""
        rows = rows_with(data, self.variables, "machine")
        refuse_missing_cells(rows)
        return rows


@dataclass(frozen=True, eq=False)
class OfUnits:
    """What a function says of the units of each row of a block."""

    columns: VisibleColumns
    answer: Callable[[Array], Array]

    def __call__(self, block: Block) -> Array:
        return np.concatenate([self.answer(v.astype(np.float64)) for v in self.columns.parts(block, ROWS)])

    def total(self, block: Block) -> float:
        """The sum of a number for each row, as often as its weight says."""
        return float(self(block) @ block.weights)


def refuse_missing_cells(rows: Data) -> None:
    """A machine needs complete rows: their missing cells are counted."""
    if found := [f"{name!r} {n:,}" for name, n in rows.missing.items() if n]:
        raise MissingCells(
            f"there are missing cells ({listing(found, style='str')}, of {quantity(rows.n_rows, 'row')}), and the visible units "
            "of a machine are all seen: fill them in first, as impute of a network of these rows does; no row is ever dropped"
        )


def checked_memory(n_rows: int, n_columns: int, what: str, limit: int = 2**35) -> None:
    """Refuse what would not fit in memory."""
    if 8 * n_rows * n_columns > limit:
        raise TooLarge(
            f"{what} of {quantity(n_rows, 'row')} need {bytes_in_words(8.0 * n_rows * n_columns)}: take the rows in parts"
        )
