"""Incomplete rows of a finite network, reduced to all that an E-step needs of them: an additive statistic.

Families all of whose cells a row shows are counted. What is missing falls into components (`kernels.components`): distinct
ones are kept with the weight of the rows that have them. So iterations need no rows, and two reductions add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import Block, Step, Sum
from suffice.incomplete.components import Array, FlatTables, Ints
from suffice.kernels import together

Places = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Reduction:
    """What incomplete rows say: counts of complete families and of single states, and components with their weights, by shape.

    Shapes and records are as in `kernels.components`: `shape_at[0]` of them, the i-th from `shape_at[1 + i]` on. Shapes are in
    the order of their variables, the records of a shape in that of their places: equal rows have equal reductions.
    """

    tables: FlatTables
    counts: Array
    states: Array
    shapes: Places
    shape_at: Ints
    records: Places
    record_at: Ints
    record_shape: Ints
    multiplicity: Array
    weight: float
    n_rows: int
    n_empty: int

    @property
    def n_shapes(self) -> int:
        return int(self.shape_at[0])

    @property
    def n_records(self) -> int:
        return len(self.multiplicity)

    @property
    def n_bytes(self) -> int:
        """The memory that it takes."""
        return sum(part.nbytes for part in vars(self).values() if isinstance(part, np.ndarray))

    def shape(self, number: int) -> tuple[Places, Places]:
        """The variables of a shape, and the families that touch them."""
        at = int(self.shape_at[1 + number])
        m, end = int(self.shapes[at]), int(self.shape_at[2 + number])
        return self.shapes[at + 2 : at + 2 + m], self.shapes[at + 2 + m : end]

    def places(self, record: int) -> Places:
        """For each family of its shape where in its table the observed states of a record lead."""
        return self.records[self.record_at[1 + record] : self.record_at[2 + record]]

    def __add__(self, other: Reduction) -> Reduction:
        """What the rows of both say."""
        return (ComponentTable(self.tables).take(self) + ComponentTable(self.tables).take(other)).reduction()

    def only(self, some: npt.NDArray[Any]) -> Reduction:
        """The same with only some of the records, in this order."""
        length = np.diff(self.record_at[1:])[some]
        starts = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
        places = np.repeat(self.record_at[1:-1][some] - starts[:-1], length) + np.arange(starts[-1])
        return replace(
            self,
            records=self.records[places],
            record_at=np.concatenate([[len(length)], starts]).astype(np.int64),
            record_shape=self.record_shape[some],
            multiplicity=self.multiplicity[some],
        )

    def in_order(self) -> Reduction:
        """The same, whatever the order in which the rows came."""
        shapes = [self.shape(s) for s in range(self.n_shapes)]
        order = sorted(range(len(shapes)), key=lambda s: shapes[s][0].tolist())
        rank = np.argsort(np.array(order, np.int64))
        flat = [part for s in order for part in (np.array([len(p) for p in shapes[s]], np.int32), *shapes[s])]
        ends = np.cumsum([0, *(2 + len(shapes[s][0]) + len(shapes[s][1]) for s in order)], dtype=np.int64)
        moved = replace(
            self,
            shapes=np.concatenate([np.zeros(0, np.int32), *flat]).astype(np.int32),
            shape_at=np.concatenate([[len(shapes)], ends]).astype(np.int64),
            record_shape=rank[self.record_shape] if len(shapes) else self.record_shape,
        )
        return moved.only(moved._order())

    def _order(self) -> Ints:
        """The records by shape, and within one by their places; records of as many places are sorted together."""
        width, begin = np.diff(self.record_at[1:]), self.record_at[1:-1]
        order = np.zeros(self.n_records, np.int64)
        by_shape = np.argsort(self.record_shape, kind="stable")
        slots = np.argsort(by_shape, kind="stable")  # where a record of this shape may go
        for k in np.unique(width):
            some = np.flatnonzero(width == k)
            places = self.records[begin[some][:, None] + np.arange(k)]
            ranked = some[np.lexsort([*places.T[::-1], self.record_shape[some]])]
            order[np.sort(slots[some])] = ranked
        return order


class ComponentTable:
    """Rows as they come, in arrays that grow: a sum under way, which takes in whatever is added to it."""

    def __init__(self, tables: FlatTables) -> None:
        together("bucket_trees", "components")
        n, f = len(tables.sizes), len(tables.families)
        self.tables, self.least = tables, 4 * n + 2 * f + 8
        self.counts, self.states = np.zeros(tables.n_cells), np.zeros(int(tables.sizes.sum()))
        self.weight, self.n_rows, self.n_empty = 0.0, 0, 0
        self.shapes, self.shape_at = np.empty(2**14 + 4 * self.least, np.int32), np.zeros(2**10 + n + 8, np.int64)
        self.shape_slots = np.full(2**11 + 4 * n, -1, np.int64)
        self.records, self.record_at = np.empty(2**16 + f, np.int32), np.zeros(2**13 + n + 8, np.int64)
        self.record_shape, self.multiplicity = np.empty(2**13 + n + 8, np.int64), np.empty(2**13 + n + 8)
        self.record_key, self.record_slots = np.empty(2**13 + n + 8, np.uint64), np.full(2**15 + 4 * n, -1, np.int64)
        self.work = np.empty(2 * n + 3 * f, np.int64)

    @property
    def _arrays(self) -> tuple[tuple[npt.NDArray[Any], ...], tuple[npt.NDArray[Any], ...]]:
        """The arrays of shapes and those of records, as the kernels take them."""
        records = (self.records, self.record_at, self.record_shape, self.multiplicity, self.record_key, self.record_slots)
        return (self.shapes, self.shape_at, self.shape_slots), records

    def add(self, block: Block) -> ComponentTable:
        """Take some rows. Columns that the block does not have are hidden."""
        from suffice.kernels.components import reduce_rows

        t, done = self.tables, 0
        codes, weight = coded(block.columns, [v.name for v in t.variables], block.n_rows), np.array(block.weights)
        where = (t.scope_start, t.scopes, t.strides, t.table_start, *t.touching)
        own = (self.counts, t.state_start, self.states, self.work)
        while (done := reduce_rows(done, codes, weight, where, *own, *self._arrays)) < len(codes):
            self._grow()
        return self._counted(float(weight.sum()), block.n_rows, int((codes.max(axis=1) < 0).sum()))

    def take(self, other: ComponentTable | Reduction) -> ComponentTable:
        """Take what other rows were reduced to."""
        from suffice.kernels.components import take_records

        moved, done = np.full(int(other.shape_at[0]), -1, np.int64), 0
        sizes = len(self.tables.sizes), len(self.tables.families)
        theirs = (other.shapes, other.shape_at, other.records, other.record_at, other.record_shape, other.multiplicity)
        while (done := take_records(done, *sizes, theirs, moved, self.work, *self._arrays)) < other.record_at[0]:
            self._grow()
        self.counts += other.counts
        self.states += other.states
        return self._counted(other.weight, other.n_rows, other.n_empty)

    __add__ = take

    def _counted(self, weight: float, rows: int, empty: int) -> ComponentTable:
        self.weight, self.n_rows, self.n_empty = self.weight + weight, self.n_rows + rows, self.n_empty + empty
        return self

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
            at = self.shape_at[1 : 1 + n_shapes].tolist()
            keys = np.array([_key(self.shapes[a + 2 : a + 2 + self.shapes[a]]) for a in at], np.uint64)
            self.shape_slots = np.full(4 * len(self.shape_slots), -1, np.int64)
            rehash(n_shapes, keys, self.shape_slots)

    def reduction(self) -> Reduction:
        """What was collected."""
        n_shapes, n = int(self.shape_at[0]), int(self.record_at[0])
        shape_at, record_at = self.shape_at[: n_shapes + 2], self.record_at[: n + 2]
        arrays = (self.counts, self.states, self.shapes[: shape_at[-1]], shape_at, self.records[: record_at[-1]], record_at)
        sums = (self.weight, self.n_rows, self.n_empty)
        return Reduction(self.tables, *arrays, self.record_shape[:n], self.multiplicity[:n], *sums).in_order()


@dataclass(frozen=True, eq=False)
class Reduce(Step[ComponentTable]):
    """Puts rows into a table of components. `exact`: weights are whole numbers, whose sums are the same in any order."""

    tables: FlatTables
    exact: bool
    runs: ClassVar[int] = 2
    """A table that takes in many rows costs less than many tables that are added."""

    def of(self, block: Block) -> ComponentTable:
        return ComponentTable(self.tables).add(block)

    def __call__(self, blocks: Iterable[Block]) -> Sum[ComponentTable]:
        if not self.exact:
            return super().__call__(blocks)
        total: Sum[ComponentTable] = Sum()
        for block in blocks:
            total.exact = (total.exact or ComponentTable(self.tables)).add(block)
        return total


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
