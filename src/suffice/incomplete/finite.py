"""Components of finite networks: distinct records by shape, solved by trees of buckets.

The E-step of a reduction runs programs for its shapes, which are made once if they fit into memory, under any tables.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from suffice.engines.data import Data
from suffice.errors import FitError, TooLarge, bytes_in_words, listed
from suffice.incomplete.components import Array, Expectation, FlatTables, Ints, Shown, Theta, log_likelihood
from suffice.incomplete.reduction import Places, Reduce, Reduction

LIMIT = 2**28
"""Numbers that all programs together may take (1 GiB); beyond that those of some shapes at a time are made again and again,"""
LARGEST = 2**30
"""and a single one with more is refused."""
WORTH = 2**18
"""Cells that are worth a part of their own, and a thread."""
PARTS = 16

START = "; give another start, or one without zeros"


@dataclass(frozen=True, eq=False)
class FiniteComponents:
    """The components of a reduction; see `suffice.incomplete.components`."""

    reduction: Reduction
    threads: int | None = None

    @classmethod
    def of(cls, rows: Data, tables: FlatTables, threads: int | None) -> FiniteComponents:
        """The rows, passed over once."""
        step = Reduce(tables, not rows.weighted or rows.whole_weights)
        return cls(rows.fold(step, threads=threads, what="reducing rows").reduction(), threads)

    @cached_property
    def shown(self) -> Shown:
        r, tables = self.reduction, self.reduction.tables
        parts = zip(tables.variables, np.split(r.states, tables.state_start[1:-1]), strict=True)
        return Shown(r.counts, {}, {v.name: part for v, part in parts}, r.weight, r.n_empty)

    @cached_property
    def buckets(self) -> Buckets:
        return Buckets(self.reduction, self.threads)

    def expected(self, theta: Theta) -> Expectation:
        counts = self.reduction.counts
        try:
            more, logs = self.buckets.expected(theta.cells)
        except ImpossibleRecord as impossible:
            raise self._impossible(impossible.record) from None
        own = log_likelihood(counts, theta.cells)
        if own == -np.inf:
            cell = int(np.argmax((counts > 0) & (theta.cells <= 0.0)))
            raise FitError(f"rows with {self.reduction.tables.described(cell)} are impossible under the parameters{START}")
        return Expectation(logs + own, counts + more, {}, {})

    def parts(self, n: int) -> list[FiniteComponents]:
        """Every n-th component; complete families are in the first part."""
        r = self.reduction
        n = max(1, min(n, r.n_records))
        parts = [r.only(np.arange(i, r.n_records, n)) for i in range(n)]
        rest = [replace(part, counts=np.zeros_like(r.counts)) for part in parts[1:]]
        return [replace(self, reduction=part) for part in (parts[0], *rest)]

    def _impossible(self, record: int) -> FitError:
        """What an impossible record shows: the observed states around what is missing."""
        r, tables = self.reduction, self.reduction.tables
        variables, families = r.shape(int(r.record_shape[record]))
        missing = {tables.variables[v].name for v in variables.tolist()}
        shown: dict[str, str] = {}
        for f, place in zip(families.tolist(), r.places(record).tolist(), strict=True):
            scope = tables.families[f]
            digits = np.unravel_index(place - int(tables.table_start[f]), [v.n_states for v in scope])
            shown |= {v.name: v.states[int(d)] for v, d in zip(scope, digits, strict=True) if v.name not in missing}
        given = ", ".join(f"{n}={s!r}" for n, s in shown.items()) or "any cells"
        gone = listed(sorted(missing))
        return FitError(f"rows with {given}, in which {gone} is missing, are impossible under the parameters{START}")


class ImpossibleRecord(Exception):
    """A record has no probability under the tables."""

    def __init__(self, record: int) -> None:
        super().__init__(record)
        self.record = record


class _Programs(NamedTuple):
    """The programs of shapes first … last−1: program s begins at `at[s]` in the pool."""

    first: int
    last: int
    at: Ints
    pool: Places
    room: int


class Buckets:
    """Expected counts of the components of a reduction.

    >>> from suffice.engines.engine import Block
    >>> from suffice.incomplete.reduction import Reduce
    >>> from suffice.incomplete.components import FlatTables
    >>> from suffice.variables import Finite
    >>> x = Finite("x", ["a", "b"])
    >>> rows = Reduce(FlatTables.of([x], [(x,)]), True).of(Block({"x": np.array([0, 255], np.uint8)})).reduction()
    >>> rows.counts, Buckets(rows).expected(np.array([0.25, 0.75]))
    (array([1., 0.]), (array([0.25, 0.75]), 0.0))
    """

    def __init__(self, reduction: Reduction, threads: int | None = None) -> None:
        self.reduction, self.threads = reduction, threads or os.cpu_count() or 1
        self._first_record = np.searchsorted(reduction.record_shape, np.arange(reduction.n_shapes + 1)).astype(np.int64)
        self._kept: _Programs | None = None
        self._parts: list[tuple[int, int]] = []
        whole = self._made(0)
        if whole.last == reduction.n_shapes:
            self._kept = whole
            self._parts = self._split(whole)

    @property
    def n_bytes(self) -> int:
        """The memory that programs take."""
        return 4 * LIMIT if self._kept is None else self._kept.pool.nbytes

    def expected(self, tables: Array) -> tuple[Array, float]:
        """What the components are expected to count under these tables, and their log-likelihood."""
        if self._kept is not None:
            return self._run(self._kept, self._parts, tables)
        counts, log_likelihood, first = np.zeros(len(tables)), 0.0, 0
        while first < self.reduction.n_shapes:
            some = self._made(first)
            more, logs = self._run(some, self._split(some), tables)
            counts += more
            log_likelihood += logs
            first = some.last
        return counts, log_likelihood

    def _run(self, programs: _Programs, parts: list[tuple[int, int]], tables: Array) -> tuple[Array, float]:
        from suffice.kernels.bucket_trees import expect

        r = self.reduction
        records = (r.records, r.record_at, r.record_shape, r.multiplicity, programs.at, programs.pool)

        def run(part: tuple[int, int]) -> tuple[Array, float, int]:
            counts, logs = np.zeros(len(tables)), np.zeros(1)
            impossible = expect(*part, *records, int(programs.at[programs.first]), tables, np.empty(programs.room), counts, logs)
            return counts, float(logs[0]), int(impossible)

        if len(parts) > 1 and self.threads > 1:
            with ThreadPoolExecutor(self.threads) as pool:
                results = list(pool.map(run, parts))
        else:
            results = [run(part) for part in parts]
        for _, _, impossible in results:
            if impossible >= 0:
                raise ImpossibleRecord(impossible)
        counts = np.zeros(len(tables))
        for more, _, _ in results:
            counts += more
        return counts, float(sum(logs for _, logs, _ in results))

    def _split(self, programs: _Programs) -> list[tuple[int, int]]:
        """The records of these programs in parts of like cost: how many does not depend on the number of threads."""
        first, last = int(self._first_record[programs.first]), int(self._first_record[programs.last])
        length = np.diff(programs.at[programs.first : programs.last + 1])
        cost = np.cumsum(np.concatenate([[0], length[self.reduction.record_shape[first:last] - programs.first]]))
        n = int(min(PARTS, max(1, cost[-1] // WORTH), max(1, 2**27 // max(1, self.reduction.tables.n_cells))))
        ends = first + np.searchsorted(cost, cost[-1] * np.arange(1, n) / n)
        bounds = [first, *ends.tolist(), last]
        return [(a, b) for a, b in pairwise(bounds) if b > a]

    def _made(self, first: int) -> _Programs:
        """The programs of as many shapes from `first` on as the limit allows, of one at least."""
        from suffice.kernels.bucket_trees import compile_shapes

        r, la = self.reduction, self.reduction.tables
        n_shapes, starts = r.n_shapes, r.shape_at[1:-1]
        pool = np.empty(2**14, np.int32)
        at = np.zeros(n_shapes + 1, np.int64)
        most, families = (int(r.shapes[starts + i].max(initial=1)) for i in (0, 1))
        scratch = 4 * (families + most + 1) + 4 * most + 2 * (len(la.scopes) + most * most) + 16
        work, weight, linked = np.empty(scratch, np.int64), np.empty(most), np.empty(most * most, np.uint8)
        number, need, done = np.full(len(la.sizes), -1, np.int64), np.zeros(1), first
        shapes = (r.shapes, r.shape_at, la.sizes, la.scope_start, la.scopes, la.strides)
        while True:
            done = compile_shapes(done, n_shapes, *shapes, number, pool, at, work, weight, linked, need)
            if done == n_shapes:
                break
            wanted = int(at[done]) + need[0] + 2.0  # products by their logs may come out a little short
            if done > first and wanted > LIMIT:
                break
            if wanted > LARGEST:
                raise self._too_large(done, need[0])
            longer = np.empty(int(min(max(2 * len(pool), wanted), max(LIMIT, wanted))), np.int32)
            longer[: at[done]] = pool[: at[done]]
            pool = longer
        header = pool[at[first:done][:, None] + np.arange(3)] if done > first else np.zeros((1, 3), np.int32)
        room = int((header[:, 1].astype(np.int64) + 2 * header[:, 2].astype(np.int64)).max())
        return _Programs(first, done, at, pool[: at[done]], room)

    def _too_large(self, shape: int, need: float) -> TooLarge:
        variables = self.reduction.shape(shape)[0].tolist()
        return TooLarge(
            f"rows in which these {len(variables)} connected variables are missing together need a table of some "
            f"{bytes_in_words(8.0 * need)}, beyond what exact inference may take"
        )
