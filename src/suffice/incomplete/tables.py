"""The tables of a network as one flat array: where each begins, its steps, its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from suffice.errors import TooLarge, bytes_in_words
from suffice.statistics.configurations import checked_cells, described, sizes
from suffice.variables import Finite

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FlatTables:
    """The tables p(child | parents) of some nodes, one after the other: `families` has (*parents, child) of each.

    Variables are numbered in the order of `variables`; `scopes` and `strides` list those of all tables.

    >>> x, y = Finite("x", ["a", "b"]), Finite("y", ["u", "v", "w"])
    >>> tables = FlatTables.of([x, y], [(x,), (x, y)])
    >>> tables.table_start, tables.strides, tables.row_start
    (array([0, 2, 8]), array([1, 3, 1]), array([0, 2, 5]))
    """

    variables: tuple[Finite, ...]
    families: tuple[tuple[Finite, ...], ...]
    sizes: Ints
    scope_start: Ints
    scopes: Ints
    strides: Ints
    table_start: Ints

    @classmethod
    def of(cls, variables: Sequence[Finite], families: Sequence[tuple[Finite, ...]]) -> FlatTables:
        cells = [checked_cells(family, f"the table of {family[-1].name!r}") for family in families]
        if sum(cells) >= 2**31:
            raise TooLarge(
                f"the tables of the network have {sum(cells):,} cells ({bytes_in_words(8.0 * sum(cells))}), beyond 2^31"
            )
        number = {v.name: i for i, v in enumerate(variables)}
        steps = [int(s) for family in families for s in np.cumprod([1, *sizes(family)[:0:-1]])[::-1]]
        return cls(
            tuple(variables),
            tuple(families),
            np.array([v.n_states for v in variables], np.int64),
            np.cumsum([0, *map(len, families)], dtype=np.int64),
            np.array([number[v.name] for family in families for v in family], np.int64),
            np.array(steps, np.int64),
            np.cumsum([0, *cells], dtype=np.int64),
        )

    @property
    def n_cells(self) -> int:
        return int(self.table_start[-1])

    @cached_property
    def _places(self) -> dict[str, slice]:
        ends = pairwise(self.table_start.tolist())
        return {family[-1].name: slice(a, b) for family, (a, b) in zip(self.families, ends, strict=True)}

    def cells(self, name: str) -> slice:
        """Where the table of a node is."""
        return self._places[name]

    @cached_property
    def state_start(self) -> Ints:
        """Where the states of each variable begin, if those of all are listed."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @cached_property
    def touching(self) -> tuple[Ints, Ints]:
        """For each variable where in the second array its families begin, and the families."""
        order = np.argsort(self.scopes, kind="stable")
        family = np.repeat(np.arange(len(self.families)), np.diff(self.scope_start))
        return np.searchsorted(self.scopes[order], np.arange(len(self.sizes) + 1)).astype(np.int64), family[order]

    @cached_property
    def row_start(self) -> Ints:
        """Where each row of each table begins."""
        ends = zip(self.families, pairwise(self.table_start.tolist()), strict=True)
        parts = [np.arange(a, b, family[-1].n_states) for family, (a, b) in ends]
        return np.concatenate([np.zeros(0), *parts]).astype(np.int64)

    @cached_property
    def row_length(self) -> Ints:
        return np.diff(np.append(self.row_start, self.n_cells))

    def normalised(self, weights: Array) -> Array:
        """Weights divided by the sums of their rows; a row without weight is uniform."""
        if not len(weights):
            return weights
        sums = np.repeat(np.add.reduceat(weights, self.row_start), self.row_length)
        uniform = 1.0 / np.repeat(self.row_length, self.row_length)
        return np.asarray(np.divide(weights, sums, out=uniform, where=sums > 0))

    def cut(self, cells: Array) -> dict[str, Array]:
        """A view of each table, with its axes."""
        return {f[-1].name: cells[self.cells(f[-1].name)].reshape(sizes(f)) for f in self.families}

    def described(self, cell: int) -> str:
        """A cell in words."""
        i = int(np.searchsorted(self.table_start, cell, side="right")) - 1
        return described(cell - int(self.table_start[i]), self.families[i])


def log_likelihood(counts: Array, cells: Array) -> float:
    """Σ N ln θ of counted cells; −∞ if one of them has no probability."""
    seen = counts > 0
    with np.errstate(divide="ignore"):
        return float(counts[seen] @ np.log(cells[seen]))
