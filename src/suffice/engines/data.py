"""Data: rows as a learner sees them, through a schema, statistics and folds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.blas import one_blas_thread
from suffice.display import html_table, text_table
from suffice.engines.blocks import ROWS, Batch, Block, layout_of, ranges
from suffice.engines.gather import Entry, Fill, Plan, gather
from suffice.engines.parallel import in_order, tree_sum
from suffice.engines.progress import watched
from suffice.engines.resample import counts, drawn, parted, picked, written_out
from suffice.engines.store import Store
from suffice.engines.stream import Stream, stream
from suffice.errors import DataError, MissingCells, listed
from suffice.statistics import Request, Statistics
from suffice.variables import Finite, Variable

T = TypeVar("T")


class Schema(Mapping[str, Variable]):
    """The variables of some data by name; prints as a table.

    >>> from suffice.variables import Finite
    >>> print(Schema({"smoke": Finite("smoke", ["no", "yes"])}, {"smoke": 3}))
    column  kind    states   missing
    ──────  ──────  ───────  ───────
    smoke   Finite  no, yes  3
    """

    def __init__(self, variables: Mapping[str, Variable], missing: Mapping[str, int]) -> None:
        self._variables, self._missing = dict(variables), dict(missing)

    def __getitem__(self, name: str) -> Variable:
        return self._variables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def _table(self) -> tuple[list[str], list[list[object]]]:
        rows: list[list[object]] = []
        for name, v in self._variables.items():
            states = listed(v.states, 6, "str") if isinstance(v, Finite) else ""
            rows.append([name, type(v).__name__, states, self._missing.get(name) or ""])
        return ["column", "kind", "states", "missing"], rows

    def __repr__(self) -> str:
        return text_table(*self._table())

    def _repr_html_(self) -> str:
        return html_table(*self._table())


class Data:
    """Rows that are read when they are needed, and never more of them than needed. `scan` makes one.

    >>> from suffice.engines import scan
    >>> data = scan({"x": ["a", "b", "a"], "y": [1.5, 2.5, None]})
    >>> data.n_rows, data.columns, data.schema["x"], dict(data.missing)
    (3, ('x', 'y'), Finite('x', ['a', 'b']), {'x': 0, 'y': 1})
    >>> data.gather([Request(("x",))]).counts(["x"]).values
    array([2., 1.])
    """

    def __init__(self, store: Store, names: Iterable[str]) -> None:
        self._store = store
        self.columns = tuple(names)

    @property
    def schema(self) -> Schema:
        """What each column is: a mapping from names to variables. What is declared is known without reading."""
        variables = self._store.variables(self.columns)
        return Schema(variables, {n: r.n_missing for n, r in self._store.read.items()})

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        if self._store.n_rows is None:
            self._store.require(self.columns)
        return self._store.n_rows or 0

    @property
    def weight(self) -> float:
        """The weight of all rows together: their number, where there are no weights."""
        return self._store.total_weight(self.columns)

    @property
    def weighted(self) -> bool:
        """Whether the rows have weights."""
        return self._store.weighted

    @property
    def missing(self) -> Mapping[str, int]:
        """The number of missing cells in each column."""
        self._store.require(self.columns)
        return MappingProxyType({n: self._store.read[n].n_missing for n in self.columns})

    @property
    def identifiers(self) -> tuple[str, ...]:
        """The columns that have nearly as many states as there are rows."""
        self._store.require(self.columns)
        return tuple(n for n in self.columns if self._store.identifies(n))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was noted while the columns were read."""
        return tuple(self._store.notes)

    def take(self, names: Iterable[str]) -> Data:
        """The same rows with only these columns; the others need not even be read."""
        chosen = tuple(names)
        for name in chosen:
            self._store.check(name)
        return Data(self._store, chosen)

    select = take

    def pick(self, index: Any, *, weights: Any = None) -> Data:
        """Some of the rows, by their numbers from 0 (in that order, and as often as they are named) or by a mask.

        They are held in memory, encoded: one byte a cell for up to 255 states, eight a number. What the columns are stays as it
        is, as if declared. `weights` takes the place of the weights of the picked rows.

        >>> from suffice.engines import scan
        >>> few = scan({"x": ["a", "b", "c"]}).pick([2, 2])
        >>> few.n_rows, few.schema["x"], few.column("x")
        (2, Finite('x', ['a', 'b', 'c']), array([2, 2], dtype=uint8))
        """
        return Data(picked(self._store, self.columns, index, weights), self.columns)

    def resample(self, seed: Any) -> Data:
        """A bootstrap sample: as many rows, drawn with replacement, held as `pick` holds them.

        Weights that are whole numbers count equal rows, which are drawn one by one; other weights stay with their rows.

        >>> from suffice.engines import scan
        >>> scan({"x": ["a", "b"]}, weights=[60, 40]).resample(0).weight
        100.0
        """
        self._store.require(self.columns)
        index, weights = drawn(self.n_rows, self._weights(), np.random.default_rng(seed))
        return self.pick(index, weights=weights)

    def split(self, folds: int, seed: Any) -> Iterator[tuple[Data, Data]]:
        """For each of some folds of the rows, chosen at random: the rows outside it and the rows inside, held as by `pick`.

        >>> from suffice.engines import scan
        >>> [(train.n_rows, test.n_rows) for train, test in scan({"x": list("abcde")}).split(2, 0)]
        [(2, 3), (3, 2)]
        """
        self._store.require(self.columns)
        for outside, inside in parted(self.n_rows, self._weights(), folds, np.random.default_rng(seed)):
            yield self.pick(outside[0], weights=outside[1]), self.pick(inside[0], weights=inside[1])

    def written_out(self) -> Data | None:
        """The same rows without weights, each as often as its weight says; None where that cannot be.

        >>> from suffice.engines import scan
        >>> scan({"x": ["a", "b"]}, weights=[2, 1]).written_out().column("x")
        array([0, 0, 1], dtype=uint8)
        """
        store = written_out(self._store, self.columns)
        return None if store is None else Data(store, self.columns)

    @property
    def whole_weights(self) -> bool:
        """Whether the rows have weights that are whole numbers: how many equal rows each stands for."""
        self._store.require(self.columns)
        weight = self._weights()
        return weight is not None and counts(weight)

    def _weights(self) -> npt.NDArray[np.float64] | None:
        weight = self._store.weight
        return None if weight is None else self._store.rows(weight, 0, self.n_rows)

    def with_variables(self, variables: Any) -> Data:
        """The same rows, some of their columns declared otherwise."""
        read = self._store.read
        if isinstance(variables, Mapping) and all(n in read and read[n].variable == v for n, v in variables.items()):
            return self
        return Data(self._store.redeclared(variables), self.columns)

    def column(self, name: str) -> npt.NDArray[Any]:
        """A whole column: codes of states, or numbers."""
        self._store.check(name)
        self._store.require([name] if self._store.source.stable else [*self.columns, name])
        return self._store.rows(self._store.read[name].column, 0, self.n_rows)

    @one_blas_thread
    def gather(self, requests: Iterable[Request], *, threads: int | None = None) -> Statistics:
        """The tables and moments asked for, all in one pass over the rows."""
        wanted = tuple(requests)
        names = tuple(dict.fromkeys(n for r in wanted for n in r.names))
        for name in names:
            self._store.check(name)
        passing = stream(self._store, names)
        entries = self._counted(wanted, names, threads) if passing is None else self._streamed(wanted, passing, threads)
        return Statistics(entries, self.weight)

    def _counted(self, requests: tuple[Request, ...], names: tuple[str, ...], threads: int | None) -> list[Entry]:
        self.require_complete(names)
        read = self._store.read
        layout = layout_of({n: read[n].column.dtype for n in names})
        plan = Plan.of(requests, {n: read[n].variable for n in names}, layout, self.n_rows)
        blocks = (self._fill(start, stop) for start, stop in ranges(self.n_rows))
        fills = watched(blocks, "counting rows", -(-self.n_rows // ROWS))
        return gather(plan, fills, weighted=self.weighted, threads=threads)

    def _streamed(self, requests: tuple[Request, ...], passing: Stream, threads: int | None) -> list[Entry]:
        plan = Plan.of(requests, passing.variables, layout_of(passing.dtypes), self._store.n_rows)
        entries = gather(plan, passing.fills(), weighted=self.weighted, threads=threads)
        self._refuse_missing(passing.missing)
        return entries

    def batches(self, block_rows: int = ROWS, *, order: Iterable[int] | None = None) -> Iterator[Batch]:
        """The rows in their order, some at a time; or these blocks of them, by their numbers from 0."""
        self._store.require(self.columns)
        if order is None:
            return (self._batch(start, stop) for start, stop in ranges(self.n_rows, block_rows))
        starts = (int(i) * block_rows for i in order)
        return (self._batch(start, min(start + block_rows, self.n_rows)) for start in starts)

    @one_blas_thread
    def fold(self, step: Callable[[Batch], T], *, threads: int | None = None, what: str | None = None) -> T:
        """The sum of `step(batch)` over fixed blocks of rows: arrays, or tuples or dicts of them.

        The blocks are added in a fixed tree, so the sum does not depend on the number of threads. `what` is done is said by a
        bar where it takes long, if it is given.

        >>> from suffice.engines import scan
        >>> data = scan({"y": [1.0, 2.0]})
        >>> float(data.fold(lambda batch: batch.columns["y"].sum()))
        3.0
        """
        self._store.require(self.columns)
        tasks = ((lambda a=a, b=b: step(self._batch(a, b))) for a, b in ranges(self.n_rows))
        results = in_order(tasks, threads)
        total = tree_sum(watched(results, what, -(-self.n_rows // ROWS)) if what else results, added)
        if total is None:
            raise DataError("there are no rows")
        return total

    def _fill(self, start: int, stop: int) -> Fill:
        store = self._store

        def fill(block: Block) -> None:
            weight = store.weight
            block.fill(
                lambda name, out: store.read[name].column.read(start, stop, out),
                None if weight is None else lambda out: weight.read(start, stop, out),
                stop - start,
            )

        return fill

    def _batch(self, start: int, stop: int) -> Batch:
        store = self._store
        weight = None if store.weight is None else store.view(store.weight, start, stop)
        return Batch({n: store.view(store.read[n].column, start, stop) for n in self.columns}, weight, start)

    def require_complete(self, names: Iterable[str]) -> None:
        """Refuse missing cells in these columns, with their number in each."""
        names = tuple(names)
        self._store.require(names)
        self._refuse_missing({n: self._store.read[n].n_missing for n in names})

    def _refuse_missing(self, missing: Mapping[str, int]) -> None:
        for name, n in missing.items():
            if n == self.n_rows:
                raise MissingCells(f"the column {name!r} has no values at all: every cell is missing")
        found = [f"{name!r} {n:,}" for name, n in missing.items() if n]
        if found:
            raise MissingCells(
                f"there are missing cells ({listed(found, style='str')}, of {self.n_rows:,} rows), and counting needs complete "
                "rows; no row is ever dropped: fit and em learn from incomplete rows, and learn does"
            )

    def __repr__(self) -> str:
        known = all(n in self._store.read for n in self.columns)
        if not known:
            rows = "" if self._store.n_rows is None else f"{self._store.n_rows:,} rows, "
            return f"Data({rows}{len(self.columns)} columns, not read yet: {listed(self.columns, style='str')})"
        return f"Data({self.n_rows:,} rows, {len(self.columns)} columns)\n{self.schema!r}"

    def _repr_html_(self) -> str:
        known = all(n in self._store.read for n in self.columns)
        return self.schema._repr_html_() if known else repr(self)


def added(a: Any, b: Any) -> Any:
    """The sum of two results of a step.

    >>> added((1, {"n": 2}), (3, {"n": 4}))
    (4, {'n': 6})
    """
    if isinstance(a, tuple):
        parts = [added(x, y) for x, y in zip(a, b, strict=True)]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, Mapping):
        return {key: added(a[key], b[key]) for key in a}
    return np.add(a, b) if isinstance(a, np.ndarray) else a + b
