"""Components of finite networks: rows reduced to distinct records by shape, which trees of buckets solve.

A reduction is all that an E-step needs of incomplete rows, an additive statistic: families all of whose cells a row shows are
counted; what is missing falls into components (`kernels.counting`), distinct ones of which are kept with the weight of the rows
that have them. So iterations need no rows. The E-step runs programs for the shapes (`bucket_trees`), which are made once
if they fit into memory, under any tables. Where rows are in other processes and differ so much that their components would take
more than `MOST` bytes, or more than there is room for, an E-step is a fold: each block is reduced, and what it is expected to
count adds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, Sum
from suffice.engines.steps.blocks import in_order
from suffice.errors import FitError, TooLarge, bytes_in_words, listing, note
from suffice.incomplete.components import Expectation, FlatTables, ReduceAndExpect, Shown, Theta, log_likelihood
from suffice.statistics.counts import distinct

Places = npt.NDArray[np.int32]

LIMIT = 2**28
"""Numbers that all programs together may take (1 GiB); beyond that those of some shapes at a time are made again and again,"""
LARGEST = 2**30
"""and a single one with more is refused."""
WORTH = 2**18
"""Cells that are worth a part of their own, and a thread."""
PARTS = 16

MOST = 2**30
"""Bytes of components of rows in other processes that are summed in one place."""

START = "; give another start, or one without zeros"


@dataclass(frozen=True, eq=False)
class Reduction:
    """What incomplete rows say: counts of complete families and of single states, and components with their weights, by shape.
    Shapes and records are as in `kernels.counting`: `shape_at[0]` of them, the i-th from `shape_at[1 + i]` on. Shapes are in
    the order of their variables, the records of a shape in that of their places: equal rows have equal reductions."""

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
    most: float = np.inf
    """The bytes that components may take,"""
    overfull: bool = False
    """and whether some that took more were forgotten."""

    def shape(self, number: int) -> tuple[Places, Places]:
        """The variables of a shape, and the families that touch them."""
        at = int(self.shape_at[1 + number])
        m, end = int(self.shapes[at]), int(self.shape_at[2 + number])
        return self.shapes[at + 2 : at + 2 + m], self.shapes[at + 2 + m : end]

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
        shapes = [self.shape(s) for s in range(int(self.shape_at[0]))]
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
        # records by shape, and within one by their places; records of as many places are sorted together
        width, begin, by_record = np.diff(self.record_at[1:]), self.record_at[1:-1], np.zeros(len(self.multiplicity), np.int64)
        slots = np.argsort(np.argsort(moved.record_shape, kind="stable"), kind="stable")  # where a record of this shape may go
        for k in np.unique(width):
            some = np.flatnonzero(width == k)
            places = self.records[begin[some][:, None] + np.arange(k)]
            by_record[np.sort(slots[some])] = some[np.lexsort([*places.T[::-1], moved.record_shape[some]])]
        return moved.only(by_record)


class ComponentTable:
    """Rows as they come, in arrays that grow: a sum under way, which takes in whatever is added to it. Components that take more
    than `most` bytes are forgotten, as is all that follows, and `overfull` says so; what complete families count is kept."""

    def __init__(self, tables: FlatTables, most: float = np.inf) -> None:
        self.tables, self.most, self.overfull = tables, most, False
        self.counts, self.states = np.zeros(tables.n_cells), np.zeros(int(tables.sizes.sum()))
        self.weight, self.n_rows, self.n_empty = 0.0, 0, 0
        self._begin()

    def _begin(self) -> None:
        """Room for components, of which there are none yet."""
        n, f = len(self.tables.sizes), len(self.tables.families)
        self.least = 4 * n + 2 * f + 8
        self.shapes, self.shape_at = np.zeros(2**14 + 4 * self.least, np.int32), np.zeros(2**10 + n + 8, np.int64)
        self.shape_key, self.shape_slots = np.zeros(2**10 + n + 8, np.uint64), np.full(2**11 + 4 * n, -1, np.int64)
        self.records, self.record_at = np.zeros(2**16 + f, np.int32), np.zeros(2**13 + n + 8, np.int64)
        self.record_shape, self.multiplicity = np.zeros(2**13 + n + 8, np.int64), np.zeros(2**13 + n + 8)
        self.record_key, self.record_slots = np.zeros(2**13 + n + 8, np.uint64), np.full(2**15 + 4 * n, -1, np.int64)
        self.work = np.zeros(2 * n + 3 * f, np.int64)

    @classmethod
    def of(cls, reduction: Reduction) -> ComponentTable:
        return cls(reduction.tables, reduction.most).take(reduction)

    def __reduce__(self) -> tuple[object, ...]:
        """What travels is the reduction, without the room for more."""
        return ComponentTable.of, (self.reduction(),)

    def add(self, block: Block) -> ComponentTable:
        """Take some rows. Columns that the block does not have are hidden."""
        codes, weight = code_rows(block.columns, [v.name for v in self.tables.variables], block.n_rows), np.array(block.weights)
        self.weight, self.n_rows = self.weight + float(weight.sum()), self.n_rows + len(codes)
        self.n_empty += int((codes.max(axis=1) < 0).sum())
        if math.prod((codes.max(axis=0, initial=-1) + 2).tolist()) < len(codes):  # so many rows cannot all differ
            first, kind = distinct(codes.T + 1, len(codes))
            codes, weight = codes[first], np.asarray(np.bincount(kind, weight), np.float64)
        return self.add_codes(codes, weight)

    def add_codes(self, codes: npt.NDArray[np.int32], weight: Array) -> ComponentTable:
        """Take rows of states by number. A missing one is −1, and becomes ~ the number of the record that it belongs to."""
        from suffice.numerics.kernels.counting.count import reduce_rows

        t = self.tables
        state_start = np.cumsum([0, *t.sizes], dtype=np.int64)
        where = (t.scope_start, t.scopes, t.strides, t.table_start, *t.touching, state_start)
        return self._fill(reduce_rows, len(codes), codes, weight, where, (self.counts, self.states))

    def take(self, other: ComponentTable | Reduction) -> ComponentTable:
        """Take what other rows were reduced to."""
        from suffice.numerics.kernels.counting.count import take_records

        moved, sizes = np.full(int(other.shape_at[0]), -1, np.int64), (len(self.tables.sizes), len(self.tables.families))
        theirs = (other.shapes, other.shape_at, other.records, other.record_at, other.record_shape, other.multiplicity)
        self.counts += other.counts
        self.states += other.states
        self.weight, self.n_rows = self.weight + other.weight, self.n_rows + other.n_rows
        self.n_empty, self.overfull = self.n_empty + other.n_empty, self.overfull or other.overfull
        return self._fill(take_records, int(other.record_at[0]), *sizes, theirs, moved)

    __add__ = take

    def _fill(self, put: Callable[..., int], n: int, *given: Any) -> ComponentTable:
        """Have a kernel put all that is `given` among the shapes and records; it stops where there is no room for more."""
        done = 0
        while True:
            shapes = (self.shapes, self.shape_at, self.shape_key, self.shape_slots)
            records = (self.records, self.record_at, self.record_shape, self.multiplicity, self.record_key, self.record_slots)
            done = put(done, *given, self.work, shapes, records)
            if done >= n:
                break
            self._grow()
        n_shapes, n_records = int(self.shape_at[0]), int(self.record_at[0])
        places = int(self.shape_at[1 + n_shapes]) + int(self.record_at[1 + n_records])
        if self.overfull or 4 * places + 24 * (n_shapes + n_records) > self.most:
            self.overfull = True
            self._begin()
        return self

    def _grow(self) -> None:
        """Twice the room, for whatever is more than half full."""
        from suffice.numerics.kernels.counting.count import rehash

        n_shapes, n_records = int(self.shape_at[0]), int(self.record_at[0])
        used = {"shapes": int(self.shape_at[1 + n_shapes]), "records": int(self.record_at[1 + n_records])}
        used |= dict.fromkeys(("shape_at", "shape_key"), n_shapes)
        used |= dict.fromkeys(("record_at", "record_shape", "multiplicity", "record_key"), n_records)
        for name, n in used.items():
            array, need = getattr(self, name), n + self.least
            if 2 * need > len(array):
                longer = np.zeros(2 * len(array) + need, array.dtype)
                longer[: len(array)] = array
                setattr(self, name, longer)
        for name, n, keys in (("shape_slots", n_shapes, self.shape_key), ("record_slots", n_records, self.record_key)):
            if 4 * (n + self.least) > len(getattr(self, name)):
                more = np.full(4 * len(getattr(self, name)), -1, np.int64)
                rehash(n, keys, more)
                setattr(self, name, more)

    def reduction(self) -> Reduction:
        """What was collected."""
        n_shapes, n = int(self.shape_at[0]), int(self.record_at[0])
        shape_at, record_at = self.shape_at[: n_shapes + 2], self.record_at[: n + 2]
        arrays = (self.counts, self.states, self.shapes[: shape_at[-1]], shape_at, self.records[: record_at[-1]], record_at)
        sums = (self.weight, self.n_rows, self.n_empty, self.most, self.overfull)
        return Reduction(self.tables, *arrays, self.record_shape[:n], self.multiplicity[:n], *sums).in_order()


@dataclass(frozen=True, eq=False)
class Reduce(Step[ComponentTable]):
    """Puts rows into a table of components. `exact`: weights are whole numbers, whose sums are the same in any order. `most`: the
    bytes that components may take."""

    tables: FlatTables
    exact: bool
    most: float = np.inf
    runs: ClassVar[int] = 2
    """A table that takes in many rows costs less than many tables that are added."""

    def of(self, block: Block) -> ComponentTable:
        return ComponentTable(self.tables, self.most).add(block)

    def expect(self, block: Block, theta: Theta) -> Expectation:
        return FiniteComponents(self.of(block).reduction(), 1).expect(theta)

    def __call__(self, blocks: Iterable[Block]) -> Sum[ComponentTable]:
        if not self.exact:
            return super().__call__(blocks)
        total: Sum[ComponentTable] = Sum()
        for block in blocks:
            total.exact = (total.exact or ComponentTable(self.tables, self.most)).add(block)
        return total


_NARROW = np.append(np.arange(255, dtype=np.int32), np.int32(-1))


def code_rows(columns: Mapping[str, npt.NDArray[Any]], names: Sequence[str], n_rows: int) -> npt.NDArray[np.int32]:
    """Codes by row, −1 where a cell is missing.

    >>> code_rows({"x": np.array([1, 255], np.uint8)}, ["x", "h"], 2)
    array([[ 1, -1],
           [-1, -1]], dtype=int32)
    """
    codes = np.full((n_rows, len(names)), -1, np.int32)
    for j, name in enumerate(names):
        column = columns.get(name)
        if column is not None and column.dtype == np.uint8:
            codes[:, j] = _NARROW[column]
        elif column is not None:  # unsigned ones have no −1
            codes[:, j] = np.where(column == np.iinfo(column.dtype).max, -1, column.astype(np.int64))
    return codes


class Programs(NamedTuple):
    """The programs of shapes first … last−1, of which that of shape s begins at `at[s]` in the pool; the numbers that the largest
    needs room for, and the records of these shapes in parts."""

    first: int
    last: int
    at: Ints
    pool: Places
    room: int
    parts: list[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class FiniteComponents:
    """The components of a reduction, or those of `rows` that are reduced again for each expectation, of which there are too many
    to be here; see `suffice.incomplete.components`."""

    reduction: Reduction
    threads: int | None = None
    rows: Data | None = None

    @classmethod
    def of(cls, rows: Data, tables: FlatTables, threads: int | None, room: float = np.inf) -> FiniteComponents:
        """The components of rows, which are passed over once."""
        step = Reduce(tables, not rows.weighted or rows.whole_weights, room if rows.engine.near else min(room, MOST))
        reduction = rows.fold(step, threads=threads, what="reducing rows").reduction()
        if not reduction.overfull:
            return cls(reduction, threads)
        note(
            f"what is missing in the rows differs so much that it would take more than {bytes_in_words(float(reduction.most))} "
            "in one place: each iteration passes over the rows"
        )
        return cls(reduction, threads, rows.hold())

    @property
    def passes(self) -> int:
        return int(self.rows is not None)

    @cached_property
    def shown(self) -> Shown:
        r, tables = self.reduction, self.reduction.tables
        parts = zip(tables.variables, np.split(r.states, np.cumsum(tables.sizes)[:-1]), strict=True)
        return Shown(r.counts, {}, {v.name: part for v, part in parts}, r.weight, r.n_empty)

    def expect(self, theta: Theta) -> Expectation:
        if self.rows is not None:
            return self.rows.fold(ReduceAndExpect(Reduce(theta.tables, exact=False), theta), threads=self.threads)
        r, more, logs, first = self.reduction, np.zeros(len(theta.cells)), 0.0, 0
        while first < r.shape_at[0]:
            programs = self.programs or self._make_programs(first)  # of all shapes, or of some at a time, made again
            tasks = (partial(_expect_part, part, programs, r, theta.cells) for part in programs.parts)
            for cells, log_p, impossible in in_order(tasks, self.threads if len(programs.parts) > 1 else 1):
                if impossible >= 0:
                    raise self._impossible(impossible)
                more += cells
                logs += log_p
            first = programs.last
        own = log_likelihood(r.counts, theta.cells)
        if own == -np.inf:
            cell = int(np.argmax((r.counts > 0) & (theta.cells <= 0.0)))
            raise FitError(f"rows with {r.tables.describe(cell)} are impossible under the parameters{START}")
        return Expectation(logs + own, r.counts + more, {}, {})

    def parts(self, n: int) -> list[FiniteComponents]:
        """Every n-th component; complete families are in the first part."""
        if self.rows is not None and n > 1:
            raise FitError(
                "Incremental(batches) cannot be used here: the rows are elsewhere, or too different to be here; leave it out"
            )
        r = self.reduction
        n_records = len(r.multiplicity)
        n = max(1, min(n, n_records))
        parts = [r.only(np.arange(i, n_records, n)) for i in range(n)]
        rest = [replace(part, counts=np.zeros_like(r.counts)) for part in parts[1:]]
        return [replace(self, reduction=part) for part in (parts[0], *rest)]

    def _impossible(self, record: int) -> FitError:
        """What an impossible record shows: the observed states around what is missing."""
        r, tables = self.reduction, self.reduction.tables
        variables, families = r.shape(int(r.record_shape[record]))
        missing = {tables.variables[v].name for v in variables.tolist()}
        shown: dict[str, str] = {}
        places = r.records[r.record_at[1 + record] : r.record_at[2 + record]]  # where in tables what is observed leads
        for f, place in zip(families.tolist(), places.tolist(), strict=True):
            scope = tables.families[f]
            digits = np.unravel_index(place - int(tables.table_start[f]), [v.n_states for v in scope])
            shown |= {v.name: v.states[int(d)] for v, d in zip(scope, digits, strict=True) if v.name not in missing}
        given = ", ".join(f"{n}={s!r}" for n, s in shown.items()) or "any cells"
        gone = f"{listing(sorted(missing))} {'is' if len(missing) == 1 else 'are'}"
        return FitError(f"rows with {given}, in which {gone} missing, are impossible under the parameters{START}")

    @cached_property
    def programs(self) -> Programs | None:
        """The programs of all shapes, if they fit into memory."""
        whole = self._make_programs(0)
        return whole if whole.last == self.reduction.shape_at[0] else None

    def _make_programs(self, first: int) -> Programs:
        """The programs of as many shapes from `first` on as the limit allows, of one at least."""
        from suffice.numerics.kernels.inference.bucket_trees import compile_shapes

        r, la = self.reduction, self.reduction.tables
        n_shapes, starts = int(r.shape_at[0]), r.shape_at[1:-1]
        pool = np.empty(2**14, np.int32)
        at = np.zeros(n_shapes + 1, np.int64)
        most, families = (int(r.shapes[starts + i].max(initial=1)) for i in (0, 1))
        scratch = 4 * (families + most + 1) + 4 * most + 2 * (len(la.scopes) + most * most) + 16
        work, number = np.empty(scratch, np.int64), np.full(len(la.sizes), -1, np.int64)
        room, need, done = (number, work, np.empty(most), np.empty(most * most, np.uint8)), np.zeros(1), first
        tables = (la.sizes, la.scope_start, la.scopes, la.strides)
        while True:
            done = compile_shapes(done, n_shapes, (r.shapes, r.shape_at), tables, room, pool, at, need)
            if done == n_shapes:
                break
            wanted = int(at[done]) + need[0] + 2.0  # products by their logs may come out a little short
            if done > first and wanted > LIMIT:
                break
            if wanted > LARGEST:
                raise TooLarge(
                    f"rows in which these {len(r.shape(done)[0])} connected variables are missing together need a table of some "
                    f"{bytes_in_words(8.0 * need[0])}, beyond what exact inference may take"
                )
            longer = np.empty(int(min(max(2 * len(pool), wanted), max(LIMIT, wanted))), np.int32)
            longer[: at[done]] = pool[: at[done]]
            pool = longer
        header = pool[at[first:done][:, None] + np.arange(3)] if done > first else np.zeros((1, 3), np.int32)
        most = int((header[:, 1].astype(np.int64) + 2 * header[:, 2].astype(np.int64)).max())
        # records in parts of like cost: how many does not depend on the number of threads
        low, high = np.searchsorted(r.record_shape, [first, done]).tolist()
        cost = np.cumsum(np.concatenate([[0], np.diff(at[first : done + 1])[r.record_shape[low:high] - first]]))
        n = int(min(PARTS, max(1, cost[-1] // WORTH), max(1, 2**27 // max(1, la.n_cells))))
        bounds = [low, *(low + np.searchsorted(cost, cost[-1] * np.arange(1, n) / n)).tolist(), high]
        return Programs(first, done, at, pool[: at[done]], most, [(a, b) for a, b in pairwise(bounds) if b > a])


def _expect_part(part: tuple[int, int], programs: Programs, r: Reduction, tables: Array) -> tuple[Array, float, int]:
    """What the records of a part are expected to count, their log-likelihood, and the first that is impossible, or −1."""
    from suffice.numerics.kernels.inference.bucket_trees import expect

    counts, logs = np.zeros(len(tables)), np.zeros(1)
    records = (r.records, r.record_at, r.record_shape, r.multiplicity)
    solve = (programs.at, programs.pool, int(programs.at[programs.first]))
    impossible = expect(*part, records, solve, tables, np.empty(programs.room), counts, logs)
    return counts, float(logs[0]), int(impossible)
