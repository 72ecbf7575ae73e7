"""The tables of a finite network as one flat array: where each begins, its steps, its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from suffice.errors import TooLarge, bytes_in_words

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Layout:
    """The tables of a finite network as one flat array: family i is that of variable i, its scope ends with its child.

    >>> layout = Layout.of([2, 3], [(0,), (0, 1)])
    >>> layout.table_start, layout.strides, layout.row_start
    (array([0, 2, 8]), array([1, 3, 1]), array([0, 2, 5]))
    """

    sizes: Ints
    scope_start: Ints
    scopes: Ints
    strides: Ints
    table_start: Ints

    @classmethod
    def of(cls, sizes: Sequence[int], scopes: Sequence[Sequence[int]]) -> Layout:
        steps: list[int] = []
        cells: list[int] = []
        for scope in scopes:
            shape = [sizes[v] for v in scope]
            steps += [int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]
            cells.append(int(np.prod(shape, dtype=np.int64)))
        if sum(cells) >= 2**31:
            raise TooLarge(
                f"the tables of the network have {sum(cells):,} cells ({bytes_in_words(8.0 * sum(cells))}), beyond 2^31"
            )
        return cls(
            np.array(sizes, np.int64),
            np.cumsum([0, *map(len, scopes)], dtype=np.int64),
            np.array([v for scope in scopes for v in scope], np.int64),
            np.array(steps, np.int64),
            np.cumsum([0, *cells], dtype=np.int64),
        )

    @property
    def n_variables(self) -> int:
        return len(self.sizes)

    @property
    def n_cells(self) -> int:
        return int(self.table_start[-1])

    @cached_property
    def state_start(self) -> Ints:
        """Where the states of each variable begin, if those of all are listed."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @cached_property
    def touching(self) -> tuple[Ints, Ints]:
        """For each variable where in the second array its families begin, and the families."""
        order = np.argsort(self.scopes, kind="stable")
        family = np.repeat(np.arange(len(self.scope_start) - 1), np.diff(self.scope_start))
        return np.searchsorted(self.scopes[order], np.arange(self.n_variables + 1)).astype(np.int64), family[order]

    @cached_property
    def row_start(self) -> Ints:
        """Where each row of each table begins."""
        children = self.scopes[self.scope_start[1:] - 1]
        parts = [
            np.arange(a, b, self.sizes[c]) for a, b, c in zip(self.table_start, self.table_start[1:], children, strict=False)
        ]
        return np.concatenate(parts).astype(np.int64)

    @cached_property
    def row_length(self) -> Ints:
        return np.diff(np.append(self.row_start, self.n_cells))

    def row_sums(self, cells: Array) -> Array:
        """The sum of each cell's row, at the cell."""
        return np.repeat(np.add.reduceat(cells, self.row_start), self.row_length)

    def cut(self, cells: Array) -> list[Array]:
        """A view of each table, with its axes."""
        tables = []
        for i, (a, b) in enumerate(pairwise(self.table_start.tolist())):
            tables.append(cells[a:b].reshape(self.sizes[self.scopes[self.scope_start[i] : self.scope_start[i + 1]]]))
        return tables
