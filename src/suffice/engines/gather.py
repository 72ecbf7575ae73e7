"""Gathering: all the tables and moments that a learner asks for, in one pass over the rows.

Rows of a block go into the arrays that kernels take (`Buffers`); what comes out of them adds: cells of tables, lists of cells,
moments within configurations (`Groups`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.engines.encoding.encode import code_type
from suffice.engines.engine import ROWS, Array, Block, Step, Sum
from suffice.engines.steps.blocks import available_memory
from suffice.errors import SchemaError, TooLarge, bytes_in_words, listing
from suffice.statistics import Counts, Moments, Request
from suffice.statistics.derived import RowFormula
from suffice.statistics.moments import Spread, merge_spreads, settle_spread
from suffice.variables import Finite, Variable

Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.int64]
Members = npt.NDArray[np.int32]
Entry = Counts | Moments

SMALL = 2**20
"""Rows times tables up to which numpy counts, in less time than it takes to load the compiler."""

DENSE = 2**22
"""A table of more cells than this, and of many more than there are rows, is counted as a list of the cells that occur."""

WIDTH = 300
"""Moments are pooled while the square of their columns is at most so many times their number, by measurement."""

COUNTED = 2**16
"""Up to so many configurations, those that occur are found by counting, which is faster than sorting."""


@dataclass(frozen=True)
class GatherPlan:
    """Requests, sorted by how they are answered, and the dense tables among them as the kernel wants them."""

    variables: Mapping[str, Variable]
    dense: tuple[Request, ...]
    sparse: tuple[Request, ...]
    moments: tuple[Request, ...]
    cut: Mapping[Request, tuple[Request, ...]]
    compiled: bool

    @staticmethod
    def of(requests: Iterable[Request], variables: Mapping[str, Variable], n_rows: int | None) -> GatherPlan:
        wanted = together(requests)
        for request in wanted:
            _check(request, variables)
        tables = [r for r in wanted if not r.real]
        cells = {r: math.prod(_sizes(r, variables)) for r in tables}
        sparse = {r: None for r in tables if cells[r] > DENSE and (n_rows is None or cells[r] > 4 * n_rows)}
        dense = tuple(r for r in tables if r not in sparse)
        # Both ways give the same bits, so the compiled one is taken whenever it is there.
        compiled = n_rows is None or n_rows * len(wanted) > SMALL or "suffice.kernels.counting.count" in sys.modules
        moments = [r for r in wanted if r.real]
        cut = pool_requests([r for r in moments if not r.finite])
        kept = [r for r in moments if r.finite or not cut]
        return GatherPlan(variables, dense, tuple(sparse), (*cut, *kept), cut, compiled)

    def n_cells(self, *requests: Request) -> int:
        """The cells of the tables of requests, all together."""
        return sum(math.prod(_sizes(r, self.variables)) for r in requests)

    def finite(self, request: Request) -> tuple[Finite, ...]:
        return tuple(v for n in request.finite if isinstance(v := self.variables[n], Finite))

    @cached_property
    def columns(self) -> tuple[list[str], list[str], list[str]]:
        """Columns whose codes take one byte, those whose codes take more, and numbers."""
        columns: tuple[list[str], list[str], list[str]] = ([], [], [])
        for name, v in self.variables.items():
            columns[2 if not isinstance(v, Finite) else int(code_type(v.n_states) != np.uint8)].append(name)
        return columns

    def arrays(self) -> tuple[Keys, Members, Keys, Keys]:
        """first, members, sizes and offsets of the dense tables, as `suffice.kernels.counting.count` has them."""
        narrow, wide, _ = self.columns
        place = {n: i for i, n in enumerate(narrow)} | {n: ~i for i, n in enumerate(wide)}
        members = np.array([place[n] for r in self.dense for n in r.finite], np.int32)
        each = [_sizes(r, self.variables) for r in self.dense]
        first = np.cumsum([0, *map(len, each)], dtype=np.int64)
        offsets = np.cumsum([0, *map(math.prod, each)], dtype=np.int64)
        return first, members, np.array([s for t in each for s in t], np.int64), offsets


def pool_requests(requests: Sequence[Request]) -> dict[Request, tuple[Request, ...]]:
    """Moments of overlapping columns in one: a large product of matrices costs less than many small ones, up to some width.

    >>> pool_requests([Request((), ("x",)), Request((), ("x", "y"))])
    {Request(finite=(), real=('x', 'y')): (Request(finite=(), real=('x',)), Request(finite=(), real=('x', 'y')))}
    """
    columns = tuple(dict.fromkeys(n for r in requests for n in r.real))
    worth = len(requests) > 1 and len(columns) ** 2 <= WIDTH * len(requests)
    derived = tuple(dict.fromkeys(d for r in requests for d in r.derived))
    return {Request((), columns, derived): tuple(requests)} if worth else {}


def together(requests: Iterable[Request]) -> tuple[Request, ...]:
    """Requests, those of the same columns as one that has all their derived columns.

    >>> n = RowFormula("n", "ln x!")
    >>> together([Request((), ("n",)), Request((), ("n",), (n,))]) == (Request((), ("n",), (n,)),)
    True
    """
    wanted: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[RowFormula, None]] = {}
    for r in requests:
        wanted.setdefault((r.finite, r.real), {}).update(dict.fromkeys(r.derived))
    return tuple(Request(finite, real, tuple(derived)) for (finite, real), derived in wanted.items())


def _check(request: Request, variables: Mapping[str, Variable]) -> None:
    for name in request.finite:
        if not isinstance(variables[name], Finite):
            raise SchemaError(f"a table needs finite columns, and {name!r} is {variables[name]!r}")
    for name in request.real:
        if isinstance(variables[name], Finite):
            raise SchemaError(f"moments need columns of numbers, and {name!r} is {variables[name]!r}")
    for derived in request.derived:
        if derived.column not in request.real:
            raise SchemaError(f"{derived.formula} of {derived.column!r} is asked for, which is not among the columns asked for")
    if len(set(request.names)) < len(request.names):
        raise SchemaError(f"a column is asked for twice in one table: {listing(request.names)}")
    cells = math.prod(_sizes(request, variables))
    if cells >= 2**63:
        raise TooLarge(f"the table of {listing(request.finite)} has {cells:.3g} cells, more than can be numbered")


def _sizes(request: Request, variables: Mapping[str, Variable]) -> list[int]:
    """The numbers of states of a request's finite variables."""
    return [v.n_states for n in request.finite if isinstance(v := variables[n], Finite)]


class Buffers:
    """Rows of columns in three arrays, one column a row of its array; filled again and again."""

    def __init__(self, plan: GatherPlan, weighted: bool, n_rows: int = ROWS) -> None:
        self.plan = plan
        self.n_rows = 0
        types = (np.uint8, np.uint32, np.float64)
        arrays: list[Array] = [np.empty((len(names), n_rows), t) for names, t in zip(plan.columns, types, strict=True)]
        self.narrow, self.wide, self.real = arrays
        self.weight = np.ones(n_rows)
        self.weighted = weighted
        self._rows = {n: array[i] for names, array in zip(plan.columns, arrays, strict=True) for i, n in enumerate(names)}

    def __getitem__(self, name: str) -> Array:
        row: Array = self._rows[name]
        return row[: self.n_rows]

    def fill(self, block: Block) -> Buffers:
        """These buffers with the rows of a block, or larger ones if it does not fit."""
        n_rows = block.n_rows
        if n_rows > len(self.weight):
            return Buffers(self.plan, self.weighted, n_rows).fill(block)
        self.n_rows = n_rows
        for name, row in self._rows.items():
            row[:n_rows] = block.columns[name]
        if self.weighted:
            self.weight[:n_rows] = block.weights
        return self


@dataclass(frozen=True, eq=False)
class Groups:
    """The weight, mean and centred scatter of the configurations that occur, and the sums of derived columns."""

    keys: Keys
    spread: Spread
    sums: Floats

    def __add__(self, other: Groups) -> Groups:
        """The moments of the rows behind both."""
        a, b = self, other
        if not np.array_equal(a.keys, b.keys):
            keys = np.union1d(a.keys, b.keys)
            a, b = a.over(keys), b.over(keys)
        return Groups(a.keys, merge_spreads(a.spread, b.spread), a.sums + b.sums)

    def over(self, keys: Keys) -> Groups:
        """The same moments over more configurations, the new ones without weight."""
        at = np.searchsorted(keys, self.keys)
        parts = []
        for part in (*self.spread, self.sums):
            wider = np.zeros((len(keys), *part.shape[1:]))
            wider[at] = part
            parts.append(wider)
        return Groups(keys, Spread(*parts[:4]), parts[4])


@dataclass(frozen=True, eq=False)
class ListedCells:
    """The cells of a sparse table that occur, and their counts or weights."""

    keys: Keys
    values: Floats

    def __add__(self, other: ListedCells) -> ListedCells:
        keys, inverse = np.unique(np.concatenate([self.keys, other.keys]), return_inverse=True)
        values = np.bincount(inverse, np.concatenate([self.values, other.values]), len(keys))
        return ListedCells(keys, values.astype(np.float64, copy=False))


Parts = dict[str, Any]
"""What some rows add: `cells` of dense tables, `sparse` tables and `moments` (tuples of them); each only where it is said."""


@dataclass(frozen=True)
class Gather(Step[Parts]):
    """The step that counts. Whole counts add up the same in any order, so a run of blocks adds to one array."""

    plan: GatherPlan
    weighted: bool
    complete: ClassVar[bool] = True
    runs: ClassVar[int] = 2
    """Tables that take in many rows cost less than many tables that are added."""

    def __call__(self, blocks: Iterable[Block]) -> Sum[Parts]:
        counter, total = _Counter(self.plan, self.weighted), Sum[Parts]()
        buffers = Buffers(self.plan, self.weighted)
        with np.errstate(over="ignore", invalid="ignore"):  # who needs what is beyond a double refuses it by name
            for block in blocks:
                buffers = buffers.fill(block)
                if part := counter.parts(buffers):
                    total.add(block.number, part)
        if counter.whole is not None:
            total.exact = {"cells": counter.whole}
        return total

    def entries(self, total: Parts) -> list[Entry]:
        """What was asked for, from the sum over all blocks."""
        plan, answers, offset = self.plan, list[Entry](), 0
        cells = total.get("cells", np.zeros(0)).astype(np.float64, copy=False)
        for request in plan.dense:
            shape = _sizes(request, plan.variables)
            n = math.prod(shape)
            answers.append(Counts(plan.finite(request), cells[offset : offset + n].reshape(shape)))
            offset += n
        for request, table in zip(plan.sparse, total.get("sparse", ()), strict=True):
            answers.append(Counts(plan.finite(request), table.values[table.values > 0], table.keys[table.values > 0]))
        for request, groups in zip(plan.moments, total.get("moments", ()), strict=True):
            seen = groups.spread.weight > 0
            count, mean, rest, scatter = settle_spread(Spread(*(part[seen] for part in groups.spread)))
            finite, keys, sums = plan.finite(request), groups.keys[seen], groups.sums[seen]
            moments = Moments(finite, request.real, keys, count, mean, scatter, rest=rest, derived=request.derived, sums=sums)
            answers += [moments.marginal(r.finite, r.real).deriving(r.derived) for r in plan.cut.get(request, (request,))]
        return answers

    def check_size(self, workers: int) -> None:
        """Refuse tables that would not fit, while their size is still only a number."""
        plan = self.plan
        need = 8.0 * plan.n_cells(*plan.dense) * (workers + 2)
        if need > 2**26 and need > available_memory() / 2:
            largest = max(plan.dense, key=plan.n_cells)
            raise TooLarge(
                f"the tables asked for need {bytes_in_words(need)} and {bytes_in_words(available_memory())} are free; "
                f"the largest is over {listing(largest.finite)}"
            )


class _Counter:
    """Turns filled buffers into partial statistics; whole counts are added to `whole` from block to block."""

    def __init__(self, plan: GatherPlan, weighted: bool) -> None:
        self.plan, self.weighted = plan, weighted
        self.arrays = plan.arrays()
        place = {n: i for i, n in enumerate(plan.columns[2])}
        self._members = {r: np.array([place[n] for n in r.real], np.int32) for r in plan.moments}
        self.whole: Keys | None = None

    def parts(self, block: Buffers) -> Parts:
        """What the rows add besides whole counts."""
        derived = dict.fromkeys(d for r in self.plan.moments for d in r.derived)
        bases = {d: block.weight[: block.n_rows] * d.values(block[d.column]) for d in derived}
        cells = self._count(block)
        parts = {} if cells is None else {"cells": cells}
        sparse = tuple(table_of(self._flat(block, r), self._weight(block)) for r in self.plan.sparse)
        moments = tuple(self._moments(block, r, bases) for r in self.plan.moments)
        return {**parts, "sparse": sparse, "moments": moments} if sparse or moments else parts

    def _count(self, block: Buffers) -> Floats | None:
        if not self.plan.dense:
            return None
        if not self.plan.compiled:
            tables = (np.bincount(self._flat(block, r), self._weight(block), self.plan.n_cells(r)) for r in self.plan.dense)
            return np.concatenate([t.astype(np.float64) for t in tables])
        from suffice.kernels.counting.count import count, count_weighted

        if self.weighted:
            cells = np.zeros(self.plan.n_cells(*self.plan.dense))
            count_weighted(block.narrow, block.wide, block.weight, block.n_rows, *self.arrays, cells)
            return cells
        if self.whole is None:
            self.whole = np.zeros(self.plan.n_cells(*self.plan.dense), np.int64)
        count(block.narrow, block.wide, block.n_rows, *self.arrays, self.whole)
        return None

    def _moments(self, block: Buffers, request: Request, bases: Mapping[RowFormula, Floats]) -> Groups:
        own = [bases[d] for d in request.derived]
        if not request.finite:
            return whole_moments(block, self._members[request], own)
        groups = group_rows(self._flat(block, request), self.plan.n_cells(request))
        return moments_of(block, self._members[request], groups, own, compiled=self.plan.compiled)

    def _flat(self, block: Buffers, request: Request) -> Keys:
        """The row-major index of each row's configuration."""
        flat = np.zeros(block.n_rows, np.int64)
        for name, size in zip(request.finite, _sizes(request, self.plan.variables), strict=True):
            flat *= size
            flat += block[name]
        return flat

    def _weight(self, block: Buffers) -> Floats | None:
        return block.weight[: block.n_rows] if self.weighted else None


def table_of(flat: Keys, weight: Floats | None) -> ListedCells:
    """The cells that occur, and their counts or weights.

    >>> table_of(np.array([7, 3, 7]), None)
    ListedCells(keys=array([3, 7]), values=array([1., 2.]))
    """
    keys, inverse = np.unique(flat, return_inverse=True)
    return ListedCells(keys, np.bincount(inverse, weight, len(keys)).astype(np.float64))


def group_rows(flat: Keys, n_configurations: int) -> tuple[Keys, npt.NDArray[np.uint32]]:
    """The configurations that occur, and the position among them of each row's.

    >>> group_rows(np.array([7, 3, 7]), 10)
    (array([3, 7]), array([1, 0, 1], dtype=uint32))
    """
    if n_configurations == 1:
        return np.zeros(1, np.int64), np.zeros(len(flat), np.uint32)
    if n_configurations > COUNTED:
        keys, inverse = np.unique(flat, return_inverse=True)
        return keys, inverse.astype(np.uint32)
    occurs = np.bincount(flat, minlength=n_configurations) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1).astype(np.uint32)[flat]


def moments_of(
    block: Buffers, members: Members, groups: tuple[Keys, npt.NDArray[np.uint32]], bases: Sequence[Floats], *, compiled: bool
) -> Groups:
    """The moments of columns of a block within groups of its rows; `bases` has w f(x) of those that are derived."""
    keys, group = groups
    g, k = len(keys), len(members)
    result = Spread(np.zeros(g), np.zeros((g, k)), np.zeros((g, k)), np.zeros((g, k, k)))
    if compiled:
        from suffice.kernels.counting.moments import moments

        moments(block.real, members, group, block.weight, block.n_rows, *result)
    else:
        _plain_moments(block, members, group, result)
    sums = [np.bincount(group, base, g) for base in bases]
    return Groups(keys, result, np.array(sums, np.float64).reshape(len(sums), g).T)


def whole_moments(block: Buffers, members: Members, bases: Sequence[Floats]) -> Groups:
    """The moments of columns of a block, all its rows in one group: a product of matrices, which no loop of ours beats."""
    x = block.real[members, : block.n_rows]
    k = len(members)
    if block.weighted:
        w = block.weight[: block.n_rows]
        total = float(w.sum())
        share = w / total if total > 0 else w
    else:
        w, total = None, float(block.n_rows)
        share = np.full(block.n_rows, 1.0 / total)
    mean = x @ share
    off = x - mean[:, None]
    rest = off @ share
    scatter = (off if w is None else off * w) @ off.T - total * np.outer(rest, rest)
    scatter = (scatter + scatter.T) / 2.0
    parts = Spread(np.array([total]), mean.reshape(1, k), rest.reshape(1, k), scatter.reshape(1, k, k))
    return Groups(np.zeros(1, np.int64), parts, np.array([[base.sum() for base in bases]], np.float64))


def _plain_moments(block: Buffers, members: Members, group: npt.NDArray[np.uint32], result: Spread) -> None:
    """What the kernel does, in the same order of sums and so with the same bits, for data not worth a compiler."""
    n, g = block.n_rows, len(result.weight)
    weight = block.weight[:n]
    rows = [block.real[m, :n] for m in members]
    result.weight[:] = np.bincount(group, weight, g)
    divisor = np.where(result.weight > 0, result.weight, 1.0)
    off, drift = [], []
    for a, x in enumerate(rows):
        result.mean[:, a] = np.bincount(group, weight * x, g) / divisor
        off.append(x - result.mean[group, a])
        drift.append(np.bincount(group, weight * off[a], g))
        for b in range(a + 1):
            scatter = np.bincount(group, weight * off[a] * off[b], g) - drift[a] * drift[b] / divisor
            result.scatter[:, a, b] = result.scatter[:, b, a] = scatter
    result.rest[:] = np.stack(drift, axis=1) / divisor[:, None]
