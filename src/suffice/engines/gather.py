"""Gathering: all the tables and moments that a learner asks for, in one pass over the rows.

Rows of a block go into the arrays that kernels take (`_Counter`); what comes out of them adds: cells of tables, lists of cells,
moments within configurations (`Groups`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.basis.variables import Finite, Variable
from suffice.engines.encoding.encode import code_type
from suffice.engines.engine import ROWS, Array, Block, Floats, Step, Sum
from suffice.engines.steps.blocks import available_memory
from suffice.errors import SchemaError, TooLarge, bytes_in_words, listing
from suffice.statistics import Counts, Moments, Request
from suffice.statistics.counts import RowFormula, n_configurations
from suffice.statistics.moments import Spread, merge_spreads, settle_spread
from suffice.statistics.suppression import Entry

Keys = npt.NDArray[np.int64]

SMALL = 2**20
"""Rows times tables up to which numpy counts, in less time than it takes to load the compiler."""

DENSE = 2**22
"""A table of more cells than this, and of many more than there are rows, is counted as a list of the cells that occur."""

WIDTH = 300
"""Moments are pooled while the square of their columns is at most so many times their number, by measurement."""

COUNTED = 2**16
"""Up to so many configurations, those that occur are found by counting, which is faster than sorting."""


Parts = dict[str, Any]
"""What some rows add: `cells` of dense tables, `sparse` tables and `moments` (tuples of them); each only where it is said."""


@dataclass(frozen=True)
class Gather(Step[Parts]):
    """The step that counts: requests, sorted by how they are answered. Whole counts add up the same in any order, so a run of
    blocks adds to one array."""

    variables: Mapping[str, Variable]
    tables: Mapping[Request, tuple[Finite, ...]]
    """The finite columns of each request."""
    dense: tuple[Request, ...]
    sparse: tuple[Request, ...]
    moments: tuple[Request, ...]
    cut: Mapping[Request, tuple[Request, ...]]
    """What is cut out of moments that were pooled."""
    weighted: bool
    compiled: bool
    complete: ClassVar[bool] = True
    runs: ClassVar[int] = 2
    """Tables that take in many rows cost less than many tables that are added."""

    @staticmethod
    def plan(
        requests: Iterable[Request], variables: Mapping[str, Variable], n_rows: int | None, *, weighted: bool, at_once: int
    ) -> Gather:
        """`at_once` is how many sums are in memory at a time. What would not fit is refused while its size is only a number."""
        derived: dict[tuple[tuple[str, ...], tuple[str, ...]], dict[RowFormula, None]] = {}
        for r in requests:  # those of the same columns are one, with all that is derived
            derived.setdefault((r.finite, r.real), {}).update(dict.fromkeys(r.derived))
        wanted = [Request(*columns, tuple(formulas)) for columns, formulas in derived.items()]
        tables = {r: finite_columns(r, variables) for r in wanted}
        cells = {r: n_configurations(tables[r]) for r in wanted if not r.real}
        most = DENSE if n_rows is None else max(DENSE, 4 * n_rows)
        dense = [r for r, n in cells.items() if n <= most]
        need = 8.0 * sum(cells[r] for r in dense) * (at_once + 2)
        if need > 2**26 and need > available_memory() / 2:
            raise TooLarge(
                f"the tables asked for need {bytes_in_words(need)} and {bytes_in_words(available_memory())} are free; "
                f"the largest is over {listing(max(dense, key=cells.__getitem__).finite)}"
            )
        sparse = tuple(r for r, n in cells.items() if n > most)
        # Both ways give the same bits, so the compiled one is taken whenever it is there.
        compiled = n_rows is None or n_rows * len(wanted) > SMALL or "suffice.numerics.kernels.counting.count" in sys.modules
        whole = [r for r in wanted if r.real and not r.finite]
        cut = pool_requests(whole) if len(whole) > 1 else {}
        moments = (*cut, *(r for r in wanted if r.real and (r.finite or not cut)))
        return Gather(variables, {**dict.fromkeys(cut, ()), **tables}, tuple(dense), sparse, moments, cut, weighted, compiled)

    def __call__(self, blocks: Iterable[Block]) -> Sum[Parts]:
        counter, total = _Counter(self), Sum[Parts]()
        with np.errstate(over="ignore", invalid="ignore"):  # who needs what is beyond a double refuses it by name
            for block in blocks:
                if block.n_rows > len(counter.weight):
                    counter = _Counter(self, block.n_rows, counter.whole)
                if part := counter.parts(block):
                    total.add(block.number, part)
        if counter.whole is not None:
            total.exact = {"cells": counter.whole}
        return total

    def entries(self, total: Parts) -> list[Entry]:
        """What was asked for, from the sum over all blocks."""
        answers, offset = list[Entry](), 0
        cells = total.get("cells", np.zeros(0)).astype(np.float64, copy=False)
        for request in self.dense:
            finite = self.tables[request]
            n = n_configurations(finite)
            answers.append(Counts(finite, cells[offset : offset + n].reshape([v.n_states for v in finite])))
            offset += n
        for request, table in zip(self.sparse, total.get("sparse", ()), strict=True):
            answers.append(Counts(self.tables[request], table.values[table.values > 0], table.keys[table.values > 0]))
        for request, groups in zip(self.moments, total.get("moments", ()), strict=True):
            seen = groups.spread.weight > 0
            count, mean, rest, scatter = settle_spread(Spread(*(part[seen] for part in groups.spread)))
            finite, keys, sums = self.tables[request], groups.keys[seen], groups.sums[seen]
            moments = Moments(finite, request.real, keys, count, mean, scatter, rest=rest, derived=request.derived, sums=sums)
            parts = self.cut.get(request)
            answers += [moments] if parts is None else [moments.marginal((), r.real).deriving(r.derived) for r in parts]
        return answers


class _Counter:
    """Rows of blocks in the arrays that kernels take, one column a row of its array, and what they add to the statistics; whole
    counts are added to `whole` from block to block."""

    def __init__(self, plan: Gather, n_rows: int = ROWS, whole: Keys | None = None) -> None:
        self.plan, self.whole, self.weight = plan, whole, np.ones(n_rows)
        narrow, wide, real = list[str](), list[str](), list[str]()  # codes of one byte, codes of more, and numbers
        for name, v in plan.variables.items():
            (real if not isinstance(v, Finite) else narrow if code_type(v.n_states) == np.uint8 else wide).append(name)
        self._narrow = np.empty((len(narrow), n_rows), np.uint8)
        self._wide = np.empty((len(wide), n_rows), np.uint32)
        self._real = np.empty((len(real), n_rows))
        arrays: list[Array] = [*self._narrow, *self._wide, *self._real]
        self._rows = dict(zip((*narrow, *wide, *real), arrays, strict=True))
        place = {n: i for i, n in enumerate(narrow)} | {n: ~i for i, n in enumerate(wide)}
        members = np.array([place[n] for r in plan.dense for n in r.finite], np.int32)
        each = [[v.n_states for v in plan.tables[r]] for r in plan.dense]
        first = np.cumsum([0, *map(len, each)], dtype=np.int64)
        offsets = np.cumsum([0, *map(math.prod, each)], dtype=np.int64)
        # first, members, sizes and offsets of the dense tables, as `suffice.numerics.kernels.counting.count` has them
        self._tables = first, members, np.array([s for t in each for s in t], np.int64), offsets
        place = {n: i for i, n in enumerate(real)}
        self._members = {r: np.array([place[n] for n in r.real], np.int32) for r in plan.moments}

    def parts(self, block: Block) -> Parts:
        """What the rows of a block add besides whole counts."""
        plan, n, parts = self.plan, block.n_rows, Parts()
        for name, row in self._rows.items():
            row[:n] = block.columns[name]
        if plan.weighted:
            self.weight[:n] = block.weights
        weight = self.weight[:n] if plan.weighted else None
        if plan.dense and (cells := self._count(n, weight)) is not None:
            parts["cells"] = cells
        if plan.sparse or plan.moments:
            parts["sparse"] = tuple(table_of(self._flat(r, n), weight) for r in plan.sparse)
            derived = dict.fromkeys(d for r in plan.moments for d in r.derived)
            bases = {d: self.weight[:n] * d.values(self._rows[d.column][:n]) for d in derived}
            parts["moments"] = tuple(self._moments(r, n, [bases[d] for d in r.derived]) for r in plan.moments)
        return parts

    def _count(self, n_rows: int, weight: Floats | None) -> Floats | None:
        """The cells of the dense tables; None of whole counts, which are added to those before."""
        n_cells = int(self._tables[-1][-1])
        if not self.plan.compiled:
            sizes = np.diff(self._tables[-1]).tolist()
            tables = (np.bincount(self._flat(r, n_rows), weight, n) for r, n in zip(self.plan.dense, sizes, strict=True))
            return np.concatenate([t.astype(np.float64) for t in tables])
        from suffice.numerics.kernels.counting.count import count, count_weighted

        if weight is not None:
            cells = np.zeros(n_cells)
            count_weighted(self._narrow, self._wide, self.weight, n_rows, *self._tables, cells)
            return cells
        if self.whole is None:
            self.whole = np.zeros(n_cells, np.int64)
        count(self._narrow, self._wide, n_rows, *self._tables, self.whole)
        return None

    def _flat(self, request: Request, n_rows: int) -> Keys:
        """The row-major index of each row's configuration."""
        flat = np.zeros(n_rows, np.int64)
        for v in self.plan.tables[request]:
            flat *= v.n_states
            flat += self._rows[v.name][:n_rows]
        return flat

    def _moments(self, request: Request, n_rows: int, bases: Sequence[Floats]) -> Groups:
        """The moments of the real columns within each configuration; `bases` has w f(x) of those that are derived."""
        members, finite = self._members[request], self.plan.tables[request]
        if not finite:
            return whole_moments(self._real[members, :n_rows], self.weight[:n_rows] if self.plan.weighted else None, bases)
        keys, group = group_rows(self._flat(request, n_rows), n_configurations(finite))
        g, k = len(keys), len(members)
        result = Spread(np.zeros(g), np.zeros((g, k)), np.zeros((g, k)), np.zeros((g, k, k)))
        if self.plan.compiled:
            from suffice.numerics.kernels.counting.moments import moments

            moments(self._real, members, group, self.weight, n_rows, *result)
        else:
            _plain_moments([self._real[m, :n_rows] for m in members], group, self.weight[:n_rows], result)
        sums = [np.bincount(group, base, g) for base in bases]
        return Groups(keys, result, np.array(sums, np.float64).reshape(len(sums), g).T)


def pool_requests(requests: Sequence[Request]) -> dict[Request, tuple[Request, ...]]:
    """Moments of overlapping columns in one: a large product of matrices costs less than many small ones, up to some width."""
    columns = tuple(dict.fromkeys(n for r in requests for n in r.real))
    worth = len(columns) ** 2 <= WIDTH * len(requests)
    derived = tuple(dict.fromkeys(d for r in requests for d in r.derived))
    return {Request((), columns, derived): tuple(requests)} if worth else {}


def finite_columns(request: Request, variables: Mapping[str, Variable]) -> tuple[Finite, ...]:
    """The finite columns of a request, which is refused if it cannot be answered."""
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
    finite = tuple(v for n in request.finite if isinstance(v := variables[n], Finite))
    if (cells := n_configurations(finite)) >= 2**63:
        raise TooLarge(f"the table of {listing(request.finite)} has {cells:.3g} cells, more than can be numbered")
    return finite


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
        return table_of(np.concatenate([self.keys, other.keys]), np.concatenate([self.values, other.values]))


def table_of(flat: Keys, weight: Floats | None) -> ListedCells:
    """The cells that occur, and their counts or weights."""
    keys, inverse = np.unique(flat, return_inverse=True)
    return ListedCells(keys, np.bincount(inverse, weight, len(keys)).astype(np.float64))


def group_rows(flat: Keys, n_configurations: int) -> tuple[Keys, npt.NDArray[np.uint32]]:
    """The configurations that occur, and the position among them of each row's."""
    if n_configurations == 1:
        return np.zeros(1, np.int64), np.zeros(len(flat), np.uint32)
    if n_configurations > COUNTED:
        keys, inverse = np.unique(flat, return_inverse=True)
        return keys, inverse.astype(np.uint32)
    occurs = np.bincount(flat, minlength=n_configurations) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1).astype(np.uint32)[flat]


def whole_moments(x: Floats, weight: Floats | None, bases: Sequence[Floats]) -> Groups:
    """The moments of columns x, all rows in one group: a product of matrices, which no loop of ours beats."""
    k, n_rows = x.shape
    total = float(n_rows) if weight is None else float(weight.sum())
    share = np.full(n_rows, 1.0 / total) if weight is None else weight / total if total > 0 else weight
    mean = x @ share
    off = x - mean[:, None]
    rest = off @ share
    scatter = (off if weight is None else off * weight) @ off.T - total * np.outer(rest, rest)
    scatter = (scatter + scatter.T) / 2.0
    parts = Spread(np.array([total]), mean.reshape(1, k), rest.reshape(1, k), scatter.reshape(1, k, k))
    return Groups(np.zeros(1, np.int64), parts, np.array([[base.sum() for base in bases]], np.float64))


def _plain_moments(rows: Sequence[Floats], group: npt.NDArray[np.uint32], weight: Floats, result: Spread) -> None:
    """What the kernel does, in the same order of sums and so with the same bits, for data not worth a compiler."""
    g = len(result.weight)
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
