"""Incomplete rows of a finite network, reduced to all that EM needs of them: an additive statistic.

Families all of whose cells a row shows are counted. What is missing falls into components (`kernels.components`): distinct
ones are kept with the weight of the rows that have them. So iterations need no rows, and two reductions add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import Block as Batch
from suffice.learning.component_table import ComponentTable, Places
from suffice.learning.layout import Array, Ints, Layout


@dataclass(frozen=True, eq=False)
class Reduction:
    """What incomplete rows say: counts of complete families and of single states, and components with their weights, by shape.

    `shapes[s]` is (variables, families); record r, of shape `record_shape[r]`, has a place for each family of its shape in
    `records[record_at[r]:record_at[r+1]]`.
    """

    layout: Layout
    counts: Array
    states: Array
    shapes: tuple[tuple[Places, Places], ...]
    record_shape: Ints
    record_at: Ints
    records: Places
    multiplicity: Array
    weight: float
    n_rows: int
    n_empty: int

    @property
    def n_records(self) -> int:
        return len(self.multiplicity)

    @property
    def n_bytes(self) -> int:
        """The memory that it takes."""
        arrays = (self.counts, self.record_shape, self.record_at, self.records, self.multiplicity)
        return sum(a.nbytes for a in arrays) + sum(v.nbytes + f.nbytes for v, f in self.shapes)

    def __add__(self, other: Reduction) -> Reduction:
        """What the rows of both say."""
        shapes = list(self.shapes)
        known = {v.tobytes(): s for s, (v, _) in enumerate(shapes)}
        for v, f in other.shapes:
            if v.tobytes() not in known:
                known[v.tobytes()] = len(shapes)
                shapes.append((v, f))
        moved = np.array([known[v.tobytes()] for v, _ in other.shapes], np.int64)
        places: list[Places] = []
        weights: list[Array] = []
        lengths: list[int] = []
        for s, (_, families) in enumerate(shapes):
            parts = [self._of_shape(self.record_shape == s, len(families))]
            parts.append(other._of_shape(moved[other.record_shape] == s if len(moved) else np.zeros(0, bool), len(families)))
            rows, inverse = np.unique(np.concatenate([p for p, _ in parts]), axis=0, return_inverse=True)
            places.append(rows.reshape(-1))
            weights.append(np.bincount(inverse.reshape(-1), np.concatenate([w for _, w in parts]), len(rows)).astype(np.float64))
            lengths.append(len(rows))
        record_shape = np.repeat(np.arange(len(shapes)), lengths)
        widths = np.array([len(f) for _, f in shapes], np.int64)
        return Reduction(
            self.layout,
            self.counts + other.counts,
            self.states + other.states,
            tuple(shapes),
            record_shape,
            np.cumsum([0, *widths[record_shape]], dtype=np.int64),
            np.concatenate([*places, np.zeros(0, np.int32)]).astype(np.int32),
            np.concatenate([*weights, np.zeros(0)]),
            self.weight + other.weight,
            self.n_rows + other.n_rows,
            self.n_empty + other.n_empty,
        )

    def _of_shape(self, chosen: npt.NDArray[np.bool_], width: int) -> tuple[Places, Array]:
        at = self.record_at[:-1][chosen]
        return self.records[at[:, None] + np.arange(width)], self.multiplicity[chosen]


def reduction_of(layout: Layout, names: Sequence[str], batches: Iterable[Batch]) -> Reduction:
    """Reduce the rows of some batches. `names` are the variables in the order of their numbers; those that a batch does not have
    are hidden.
    """
    table = ComponentTable(layout)
    weight, n_rows, n_empty = 0.0, 0, 0
    for batch in batches:
        codes = coded(batch.columns, names, batch.n_rows)
        weights = np.ones(batch.n_rows) if batch.weight is None else np.array(batch.weight)  # not read-only
        table.add(codes, weights)
        weight += float(weights.sum())
        n_rows += batch.n_rows
        n_empty += int((codes.max(axis=1) < 0).sum())
    return Reduction(layout, *table.finished(), weight, n_rows, n_empty)


def coded(columns: Mapping[str, npt.NDArray[Any]], names: Sequence[str], n_rows: int) -> npt.NDArray[np.int32]:
    """Codes by row, −1 where a cell is missing.

    >>> coded({"x": np.array([1, 255], np.uint8)}, ["x", "h"], 2)
    array([[ 1, -1],
           [-1, -1]], dtype=int32)
    """
    codes = np.full((n_rows, len(names)), -1, np.int32)
    for j, name in enumerate(names):
        column = columns.get(name)
        if column is None:
            continue
        most = np.iinfo(column.dtype).max
        if most == 255:
            codes[:, j] = _NARROW[column]
        else:
            codes[:, j] = np.where(column == most, -1, column.astype(np.int64))  # unsigned ones have no −1
    return codes


_NARROW = np.append(np.arange(255, dtype=np.int32), np.int32(-1))
