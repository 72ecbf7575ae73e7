"""Gathering: all the tables and moments that a learner asks for, in one pass over the rows."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import Block, Step, Sum
from suffice.engines.grouping import (
    Buffers,
    Groups,
    Layout,
    Table,
    add_tables,
    grouped,
    log_base,
    moments_of,
    table_of,
    whole_moments,
)
from suffice.engines.parallel import available_memory
from suffice.errors import SchemaError, TooLarge, bytes_in_words, listed
from suffice.statistics import Counts, Moments, Request
from suffice.statistics.chan import Spread, settled
from suffice.variables import Count, Finite, Variable

SMALL = 2**20
"""Rows times tables up to which numpy counts, in less time than it takes to load the compiler."""

DENSE = 2**22
"""A table of more cells than this, and of many more than there are rows, is counted as a list of the cells that occur."""


WIDTH = 300
"""Moments are pooled while the square of their columns is at most so many times their number, by measurement."""


@dataclass(frozen=True)
class Plan:
    """Requests, sorted by how they are answered, and the dense tables among them as the kernel wants them."""

    variables: Mapping[str, Variable]
    dense: tuple[Request, ...]
    sparse: tuple[Request, ...]
    moments: tuple[Request, ...]
    cut: Mapping[Request, tuple[Request, ...]]
    layout: Layout
    compiled: bool

    @staticmethod
    def of(requests: Iterable[Request], variables: Mapping[str, Variable], layout: Layout, n_rows: int | None) -> Plan:
        wanted = tuple(dict.fromkeys(requests))
        for request in wanted:
            _check(request, variables)
        tables = [r for r in wanted if not r.real]
        cells = {r: math.prod(sizes(r, variables)) for r in tables}
        sparse = {r: None for r in tables if cells[r] > DENSE and (n_rows is None or cells[r] > 4 * n_rows)}
        dense = tuple(r for r in tables if r not in sparse)
        # Both ways give the same bits, so the compiled one is taken whenever it is there.
        compiled = n_rows is None or n_rows * len(wanted) > SMALL or "suffice.kernels.count" in sys.modules
        moments = [r for r in wanted if r.real]
        cut = pooled([r for r in moments if not r.finite])
        kept = [r for r in moments if r.finite or not cut]
        return Plan(variables, dense, tuple(sparse), (*cut, *kept), cut, layout, compiled)

    @property
    def n_cells(self) -> int:
        return sum(math.prod(sizes(r, self.variables)) for r in self.dense)

    def arrays(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """first, members, sizes and offsets of the dense tables, as `suffice.kernels.count` has them."""
        place = {n: i for i, n in enumerate(self.layout.narrow)} | {n: ~i for i, n in enumerate(self.layout.wide)}
        members = np.array([place[n] for r in self.dense for n in r.finite], np.int32)
        each = [sizes(r, self.variables) for r in self.dense]
        first = np.cumsum([0, *map(len, each)], dtype=np.int64)
        offsets = np.cumsum([0, *map(math.prod, each)], dtype=np.int64)
        return first, members, np.array([s for t in each for s in t], np.int64), offsets


def pooled(requests: Sequence[Request]) -> dict[Request, tuple[Request, ...]]:
    """Moments of overlapping columns in one: a large product of matrices costs less than many small ones, up to some width.

    >>> pooled([Request((), ("x",)), Request((), ("x", "y"))])
    {Request(finite=(), real=('x', 'y')): (Request(finite=(), real=('x',)), Request(finite=(), real=('x', 'y')))}
    """
    columns = tuple(dict.fromkeys(n for r in requests for n in r.real))
    worth = len(requests) > 1 and len(columns) ** 2 <= WIDTH * len(requests)
    return {Request((), columns): tuple(requests)} if worth else {}


@dataclass
class Partial:
    """What some rows add: cells of dense tables, lists of cells of sparse ones, moments; None where nothing is said of them."""

    cells: npt.NDArray[np.float64] | npt.NDArray[np.int64] | None
    sparse: list[Table] | None = None
    moments: list[Groups] | None = None

    def __add__(self, other: Partial) -> Partial:
        cells = other.cells if self.cells is None else self.cells if other.cells is None else self.cells + other.cells
        if self.sparse is None or other.sparse is None or self.moments is None or other.moments is None:
            return Partial(cells, self.sparse or other.sparse, self.moments or other.moments)
        sparse = [add_tables(a, b) for a, b in zip(self.sparse, other.sparse, strict=True)]
        return Partial(cells, sparse, [a + b for a, b in zip(self.moments, other.moments, strict=True)])


Entry = Counts | Moments


@dataclass(frozen=True)
class Gather(Step[Partial]):
    """The step that counts. Whole counts add up the same in any order, so a run of blocks adds to one array."""

    plan: Plan
    weighted: bool

    @property
    def runs(self) -> int:
        """Tables that take in many rows cost less than many tables that are added."""
        return 2

    def __call__(self, blocks: Iterable[Block]) -> Sum[Partial]:
        counter, total = _Counter(self.plan, self.weighted), Sum[Partial]()
        buffers = Buffers(self.plan.layout, self.weighted)
        for block in blocks:
            buffers = buffers.filled(block)
            part = counter.partial(buffers)
            if part is not None:
                total.add(block.number, part)
        if counter.whole is not None:
            total.exact = Partial(counter.whole)
        return total

    def entries(self, total: Partial) -> list[Entry]:
        """What was asked for, from the sum over all blocks."""
        return _entries(self.plan, total)

    def check_size(self, workers: int) -> None:
        """Refuse tables that would not fit, while their size is still only a number."""
        plan = self.plan
        need = 8.0 * plan.n_cells * (workers + 2)
        if need > 2**26 and need > available_memory() / 2:
            largest = max(plan.dense, key=lambda r: math.prod(sizes(r, plan.variables)))
            raise TooLarge(
                f"the tables asked for need {bytes_in_words(need)} and {bytes_in_words(available_memory())} are free; "
                f"the largest is over {listed(largest.finite)}"
            )


class _Counter:
    """Turns filled buffers into partial statistics; whole counts are added to `whole` from block to block."""

    def __init__(self, plan: Plan, weighted: bool) -> None:
        self.plan, self.weighted = plan, weighted
        self.arrays = plan.arrays()
        place = {n: i for i, n in enumerate(plan.layout.real)}
        self._members = {r: np.array([place[n] for n in r.real], np.int32) for r in plan.moments}
        self._counted = {r: _counted(plan, r) for r in plan.moments}
        self.whole: npt.NDArray[np.int64] | None = None

    def partial(self, block: Buffers) -> Partial | None:
        """What the rows add besides whole counts."""
        cells = self._count(block)
        if cells is None and not self.plan.sparse and not self.plan.moments:
            return None
        sparse = [table_of(self._flat(block, r), self._weight(block)) for r in self.plan.sparse]
        counted = dict.fromkeys(n for names in self._counted.values() for n in names)
        bases = {n: log_base(block[n], block.weight[: block.n_rows]) for n in counted}
        return Partial(cells, sparse, [self._moments(block, r, bases) for r in self.plan.moments])

    def _count(self, block: Buffers) -> npt.NDArray[np.float64] | None:
        if not self.plan.dense:
            return None
        if not self.plan.compiled:
            tables = (np.bincount(self._flat(block, r), self._weight(block), self._n_cells(r)) for r in self.plan.dense)
            return np.concatenate([t.astype(np.float64) for t in tables])
        from suffice.kernels.count import count, count_weighted

        if self.weighted:
            cells = np.zeros(self.plan.n_cells)
            count_weighted(block.narrow, block.wide, block.weight, block.n_rows, *self.arrays, cells)
            return cells
        if self.whole is None:
            self.whole = np.zeros(self.plan.n_cells, np.int64)
        count(block.narrow, block.wide, block.n_rows, *self.arrays, self.whole)
        return None

    def _moments(self, block: Buffers, request: Request, bases: Mapping[str, npt.NDArray[np.float64]]) -> Groups:
        own = [bases[n] for n in self._counted[request]]
        if not request.finite:
            return whole_moments(block, self._members[request], own)
        groups = grouped(self._flat(block, request), self._n_cells(request))
        return moments_of(block, self._members[request], groups, own, compiled=self.plan.compiled)

    def _flat(self, block: Buffers, request: Request) -> npt.NDArray[np.int64]:
        """The row-major index of each row's configuration."""
        flat = np.zeros(block.n_rows, np.int64)
        for name, size in zip(request.finite, sizes(request, self.plan.variables), strict=True):
            flat *= size
            flat += block[name]
        return flat

    def _n_cells(self, request: Request) -> int:
        return math.prod(sizes(request, self.plan.variables))

    def _weight(self, block: Buffers) -> npt.NDArray[np.float64] | None:
        return block.weight[: block.n_rows] if self.weighted else None


def sizes(request: Request, variables: Mapping[str, Variable]) -> list[int]:
    """The numbers of states of a request's finite variables."""
    return [v.n_states for n in request.finite if isinstance(v := variables[n], Finite)]


def _entries(plan: Plan, total: Partial) -> list[Entry]:
    answers: list[Entry] = []
    cells = np.zeros(0) if total.cells is None else total.cells.astype(np.float64, copy=False)
    offset = 0
    for request in plan.dense:
        shape = sizes(request, plan.variables)
        n = math.prod(shape)
        answers.append(Counts(_finite(plan, request), cells[offset : offset + n].reshape(shape)))
        offset += n
    for request, (keys, values) in zip(plan.sparse, total.sparse or (), strict=True):
        answers.append(Counts(_finite(plan, request), values[values > 0], keys[values > 0]))
    for request, groups in zip(plan.moments, total.moments or (), strict=True):
        seen = groups.spread.weight > 0
        count, mean, rest, scatter = settled(Spread(*(part[seen] for part in groups.spread)))
        finite, counted, bases = _finite(plan, request), _counted(plan, request), groups.log_base[seen]
        moments = Moments(
            finite, request.real, groups.keys[seen], count, mean, scatter, rest=rest, counted=counted, log_base=bases
        )
        answers += [moments.marginal(r.finite, r.real) for r in plan.cut.get(request, (request,))]
    return answers


def _finite(plan: Plan, request: Request) -> tuple[Finite, ...]:
    return tuple(v for n in request.finite if isinstance(v := plan.variables[n], Finite))


def _counted(plan: Plan, request: Request) -> tuple[str, ...]:
    return tuple(n for n in request.real if isinstance(plan.variables[n], Count))


def _check(request: Request, variables: Mapping[str, Variable]) -> None:
    for name in request.finite:
        if not isinstance(variables[name], Finite):
            raise SchemaError(f"a table needs finite columns, and {name!r} is {variables[name]!r}")
    for name in request.real:
        if isinstance(variables[name], Finite):
            raise SchemaError(f"moments need columns of numbers, and {name!r} is {variables[name]!r}")
    if len(set(request.names)) < len(request.names):
        raise SchemaError(f"a column is asked for twice in one table: {listed(request.names)}")
    cells = math.prod(sizes(request, variables))
    if cells >= 2**63:
        raise TooLarge(f"the table of {listed(request.finite)} has {cells:.3g} cells, more than can be numbered")
