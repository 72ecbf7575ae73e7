"""Incomplete rows of a finite network, reduced to all that EM needs of them: an additive statistic.

Families all of whose cells a row shows are counted. What is missing falls into components (`kernels.components`): distinct
ones are kept with the weight of the rows that have them. So iterations need no rows, and two reductions add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.blocks import Batch
from suffice.errors import TooLarge, bytes_in_words
from suffice.kernels import together

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]


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


@dataclass(frozen=True, eq=False)
class Reduction:
    """What incomplete rows say: counts of complete families and of single states, and components with their weights, by shape.

    `shapes[s]` is (variables, families); record r, of shape `record_shape[r]`, has a place for each family of its shape in
    `records[record_at[r]:record_at[r+1]]`. `row_start`, `row_records`: the records of each row, if they were kept.
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
    row_start: Ints | None = None
    row_records: Ints | None = None

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


class _Table:
    """Records as they come, in arrays that grow."""

    def __init__(self, layout: Layout, keep_rows: int) -> None:
        together("bucket_trees", "components")
        n, f = layout.n_variables, len(layout.scope_start) - 1
        self.layout, self.least = layout, 4 * n + 2 * f + 8
        self.counts, self.states = np.zeros(layout.n_cells), np.zeros(int(layout.sizes.sum()))
        self.shapes, self.shape_at = np.empty(2**14 + 4 * self.least, np.int32), np.zeros(2**10 + n + 8, np.int64)
        self.shape_slots = np.full(2**11 + 4 * n, -1, np.int64)
        self.records, self.record_at = np.empty(2**16 + f, np.int32), np.zeros(2**13 + n + 8, np.int64)
        self.record_shape, self.multiplicity = np.empty(2**13 + n + 8, np.int64), np.empty(2**13 + n + 8)
        self.record_key, self.record_slots = np.empty(2**13 + n + 8, np.uint64), np.full(2**15 + 4 * n, -1, np.int64)
        self.row_at = np.zeros(keep_rows + 1 if keep_rows else 0, np.int64)
        self.row_records = np.empty(keep_rows + n if keep_rows else 0, np.int64)
        self.work = np.empty(2 * n + 2 * f, np.int64)

    def add(self, codes: npt.NDArray[np.int32], weight: Array, start: int) -> None:
        from suffice.kernels.components import reduce_rows

        la, done = self.layout, 0
        rows = self.row_at[start:] if len(self.row_at) else self.row_at
        while True:
            done = reduce_rows(
                done,
                codes,
                weight,
                la.scope_start,
                la.scopes,
                la.strides,
                la.table_start,
                *la.touching,
                self.counts,
                la.state_start,
                self.states,
                self.shapes,
                self.shape_at,
                self.shape_slots,
                self.records,
                self.record_at,
                self.record_shape,
                self.multiplicity,
                self.record_key,
                self.record_slots,
                rows,
                self.row_records,
                self.work,
            )
            if done == len(codes):
                return
            self._grow()

    def _grow(self) -> None:
        """Twice the room, for whatever is more than half full."""
        from suffice.kernels.components import rehash

        n_shapes, n_records = int(self.shape_at[0]), int(self.record_at[0])
        self.shapes = _longer(self.shapes, int(self.shape_at[1 + n_shapes]) + self.least)
        self.shape_at = _longer(self.shape_at, n_shapes + self.least)
        self.records = _longer(self.records, int(self.record_at[1 + n_records]) + self.least)
        for name in ("record_at", "record_shape", "multiplicity", "record_key"):
            setattr(self, name, _longer(getattr(self, name), n_records + self.least))
        if 4 * (n_records + self.least) > len(self.record_slots):
            self.record_slots = np.full(4 * len(self.record_slots), -1, np.int64)
            rehash(n_records, self.record_key, self.record_slots)
        if 4 * (n_shapes + self.least) > len(self.shape_slots):
            keys = np.array([_key(self._variables(s)) for s in range(n_shapes)], np.uint64)
            self.shape_slots = np.full(4 * len(self.shape_slots), -1, np.int64)
            rehash(n_shapes, keys, self.shape_slots)
        if len(self.row_at):
            self.row_records = _longer(self.row_records, int(self.row_at.max()) + self.least)

    def _variables(self, shape: int) -> Places:
        at = int(self.shape_at[1 + shape])
        return self.shapes[at + 2 : at + 2 + int(self.shapes[at])]

    def finished(self, weight: float, n_rows: int, n_empty: int) -> Reduction:
        """The reduction, its records sorted by shape."""
        n_shapes, n = int(self.shape_at[0]), int(self.record_at[0])
        shapes = []
        for s in range(n_shapes):
            at = int(self.shape_at[1 + s])
            m, k = int(self.shapes[at]), int(self.shapes[at + 1])
            shapes.append((self.shapes[at + 2 : at + 2 + m].copy(), self.shapes[at + 2 + m : at + 2 + m + k].copy()))
        order = np.argsort(self.record_shape[:n], kind="stable")
        begin, length = self.record_at[1 : n + 1][order], np.diff(self.record_at[1 : n + 2])[order]
        starts = np.cumsum([0, *length], dtype=np.int64) if n < 64 else np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], length)
        records = self.records[np.repeat(begin, length) + within]
        row_start, row_records = None, None
        if len(self.row_at):
            rank = np.empty(n, np.int64)
            rank[order] = np.arange(n)
            row_start, row_records = self.row_at, rank[self.row_records[: int(self.row_at[-1])]]
        return Reduction(
            self.layout,
            self.counts,
            self.states,
            tuple(shapes),
            self.record_shape[:n][order],
            starts,
            records,
            self.multiplicity[:n][order],
            weight,
            n_rows,
            n_empty,
            row_start,
            row_records,
        )


def reduction_of(layout: Layout, names: Sequence[str], batches: Iterable[Batch], *, keep_rows: int = 0) -> Reduction:
    """Reduce the rows of some batches. `names` are the variables in the order of their numbers; those that a batch does not have
    are hidden. `keep_rows`, the number of all rows, has it remember which records each row has.
    """
    table = _Table(layout, keep_rows)
    weight, n_rows, n_empty = 0.0, 0, 0
    for batch in batches:
        codes = coded(batch.columns, names, batch.n_rows)
        weights = np.ones(batch.n_rows) if batch.weight is None else np.array(batch.weight)  # not read-only
        table.add(codes, weights, batch.start if keep_rows else 0)
        weight += float(weights.sum())
        n_rows += batch.n_rows
        n_empty += int((codes.max(axis=1) < 0).sum())
    return table.finished(weight, n_rows, n_empty)


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
            codes[:, j] = np.where(column == most, -1, column)
    return codes


_NARROW = np.append(np.arange(255, dtype=np.int32), np.int32(-1))


def _longer(array: npt.NDArray[Any], used: int) -> npt.NDArray[Any]:
    if 2 * used <= len(array):
        return array
    longer = np.zeros(2 * len(array) + used, array.dtype)
    longer[: len(array)] = array
    return longer


def _key(variables: Places) -> int:
    """The hash of a shape, as in the kernel."""
    key = 1469598103934665603
    for v in variables.tolist():
        key = ((key ^ v) * 1099511628211) % 2**64
    return key
