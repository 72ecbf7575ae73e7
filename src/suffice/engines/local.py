"""The local engine: rows in memory, or in files larger than it. Blocks are dealt out to threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

import numpy as np

from suffice.engines.bits import BitLayout, Bits
from suffice.engines.blocks import ranges
from suffice.engines.columns import Array
from suffice.engines.engine import ROWS, Block, Engine, Known, Seen, Step, Sum, View
from suffice.engines.local_bits import LocalBits
from suffice.engines.memory import Held
from suffice.engines.options import Options
from suffice.engines.parallel import in_order, n_threads
from suffice.engines.progress import watched
from suffice.engines.reading import Read, encoder_for, passed
from suffice.engines.resample import Encoded
from suffice.engines.sources import readable
from suffice.engines.store import Store
from suffice.engines.stream import stream
from suffice.engines.views import as_declared, is_missing
from suffice.errors import DataError, MissingCells, TooLarge, bytes_in_words, listed
from suffice.variables import Variable

T = TypeVar("T")

RUNS = 16
"""Runs of blocks for each thread: enough to share the work evenly, few enough for their sums not to matter."""

STREAMED = 4
"""Blocks in a run where it is not known how many there are."""


class Local:
    """Rows of a source on this machine, encoded once when they are first needed."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(n for n in self.store.source.names if n != self.weights)

    @property
    def weights(self) -> str | None:
        return self.store.options.weights

    @property
    def weighted(self) -> bool:
        return self.store.weighted

    @property
    def n_rows(self) -> int | None:
        return self.store.n_rows

    @property
    def weight(self) -> float | None:
        return self.store.known_total

    def seen(self) -> Mapping[str, Seen]:
        return {n: Seen(r.variable, r.n_missing) for n, r in self.store.read.items()}

    def variables(self, names: Sequence[str]) -> dict[str, Variable]:
        return self.store.variables(names)

    def schema(self, names: Sequence[str]) -> Known:
        store = self.store
        store.require(names)
        read = {n: store.read[n] for n in names}
        return Known(
            {n: r.variable for n, r in read.items()},
            store.n_rows or 0,
            store.total_weight(names),
            {n: r.n_missing for n, r in read.items()},
            store.whole_weights,
            tuple(n for n in names if store.identifies(n)),
            tuple(store.notes),
        )

    def declared(self, variables: Any) -> Engine:
        return Local(self.store.redeclared(variables))

    def fold(
        self,
        step: Step[T],
        names: Sequence[str],
        *,
        complete: bool = False,
        threads: int | None = None,
        what: str | None = None,
    ) -> T:
        passing = stream(self.store, names)
        if passing is None:
            self.store.require(names)
            if complete:
                refuse_missing({n: self.store.read[n].n_missing for n in names}, self.store.n_rows or 0)
            n_blocks = -(-(self.store.n_rows or 0) // ROWS)
            workers = min(n_threads(threads), max(1, n_blocks))
            runs = [self._run(names, a, b) for a, b in ranges(n_blocks, max(1, n_blocks // (RUNS * workers)))]
            total = _summed(step, iter(runs), workers, what, len(runs))
        else:
            with readable(), closing(passing.blocks(complete)) as blocks:
                total = _summed(step, _in_runs(blocks), n_threads(threads), None, None)
            if complete:
                refuse_missing(passing.missing, self.store.n_rows or 0)
        if total is None:
            raise DataError("there are no rows")
        return total

    def _run(self, names: Sequence[str], first: int, last: int) -> Iterator[Block]:
        return (self._block(names, number) for number in range(first, last))

    def _block(self, names: Sequence[str], number: int) -> Block:
        store = self.store
        start, stop = number * ROWS, min((number + 1) * ROWS, store.n_rows or 0)
        weight = None if store.weight is None else store.view(store.weight, start, stop)
        return Block({n: store.view(store.read[n].column, start, stop) for n in names}, weight, number)

    def map(
        self, step: Callable[[Block], T], names: Sequence[str], *, keep: Sequence[str] = (), what: str = "reading rows"
    ) -> Iterator[T]:
        if keep or not all(n in self.store.read for n in names):
            return map(step, self._streamed(names, keep, what))
        self.store.require(names)
        numbers = range(-(-(self.store.n_rows or 0) // ROWS))
        return (step(self._block(names, number)) for number in watched(numbers, what, len(numbers)))

    def _streamed(self, names: Sequence[str], keep: Sequence[str], what: str) -> Iterator[Block]:
        """The rows on their way; nothing of them is kept. Columns whose type must be inferred are read before."""
        store = self.store
        known = store.variables(names)
        other = Store(store.source, Options({**store.options.declared, **known}, missing=store.options.missing))
        encoders = {n: encoder_for(n, store.source, other.options) for n in names}
        number = 0
        with readable(), closing(passed(store.source, encoders, keep or ([] if encoders else self.names[:1]), what)) as parts:
            for chunks, batch, n_rows in parts:
                for first, last in ranges(n_rows, ROWS):
                    columns = {n: chunk[first:last] for n, chunk in chunks.items()}
                    yield Block(columns, None, number, {n: batch[n][first:last] for n in keep})
                    number += 1

    def hold(self, names: Sequence[str], view: View | None = None) -> Engine:
        if view is None:
            self.store.require(names)
            return self
        self.store.require(names)
        n_blocks = -(-(self.store.n_rows or 0) // ROWS)
        blocks = [view(block) for block in self._run(names, 0, n_blocks)]
        return held({n: self.store.read[n].variable for n in names}, blocks, self.store.options.memory_limit)

    def bits(self, layout: BitLayout, *, threads: int | None = None, memory_limit: float | None = None) -> Bits:
        self.store.require(layout.names)
        how: Any = {"weighted": self.weighted, "threads": threads, "memory_limit": memory_limit}
        return LocalBits(self._block, self.store.n_rows or 0, layout, **how)

    def place(self, number: int, row: int) -> str:
        return self.store.source.place(number * ROWS + row)


def held(variables: Mapping[str, Variable], blocks: Sequence[Block], memory_limit: int = 2**30) -> Local:
    """The rows of blocks as a local engine that keeps them in memory; what the columns are is taken as declared."""
    rows = sum(block.n_rows for block in blocks)
    size = sum(c.nbytes for block in blocks for c in block.columns.values())
    if size > max(memory_limit, 2**30):
        raise TooLarge(
            f"a sample of {rows:,} rows takes {bytes_in_words(size)} in memory, and the limit is {bytes_in_words(memory_limit)}"
        )
    read = {n: _read(v, np.concatenate([b.columns[n] for b in blocks])) for n, v in variables.items()}
    store = Store(Encoded(read, rows), Options(dict(variables), memory_limit=memory_limit))
    store.read = read
    if any(block.weight is not None for block in blocks):
        store.set_weights(np.concatenate([block.weights for block in blocks]))
    return Local(store)


def _read(variable: Variable, cells: Array) -> Read:
    return Read(as_declared(variable), Held(cells), int(np.count_nonzero(is_missing(cells))))


def _summed(step: Step[T], runs: Iterator[Any], workers: int, what: str | None, n_runs: int | None) -> T | None:
    results = in_order((partial(step, run) for run in runs), workers)
    total: Sum[T] = Sum()
    for part in watched(results, what, n_runs) if what else results:
        total += part
    return total.value


def _in_runs(blocks: Iterator[Block]) -> Iterator[list[Block]]:
    run: list[Block] = []
    for block in blocks:
        run.append(block)
        if block.number % STREAMED == STREAMED - 1:
            yield run
            run = []
    if run:
        yield run


def refuse_missing(missing: Mapping[str, int], n_rows: int) -> None:
    """Refuse missing cells, with their number in each column."""
    for name, n in missing.items():
        if n == n_rows:
            raise MissingCells(f"the column {name!r} has no values at all: every cell is missing")
    found = [f"{name!r} {n:,}" for name, n in missing.items() if n]
    if found:
        raise MissingCells(
            f"there are missing cells ({listed(found, style='str')}, of {n_rows:,} rows), and counting needs complete "
            "rows; no row is ever dropped: fit and em learn from incomplete rows, and learn does"
        )
