"""The local engine: rows in memory, or in files larger than it. Blocks are dealt out to threads.

Declared columns that are too large for memory are streamed in the first pass over them, and kept nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from suffice.engines.bits import BitLayout, Bits
from suffice.engines.engine import ROWS, Block, Engine, Known, S, Seen, Step, Sum, T, View, is_missing, ranges
from suffice.engines.frames import Encoded
from suffice.engines.infer import Weights
from suffice.engines.local_bits import LocalBits
from suffice.engines.memory import Array, Held
from suffice.engines.parallel import in_order, n_threads, watched
from suffice.engines.reading import Encoder, Read, encoder_for, foreseen, passed
from suffice.engines.sources import Kind, Options, readable
from suffice.engines.store import Store
from suffice.engines.views import Viewed, as_declared
from suffice.errors import DataError, MissingCells, listed
from suffice.variables import Variable

PIECE = 2**10
"""Rows in their order that a mixed block has from one place."""

STREAMED = 4
"""Blocks in a run where it is not known how many there are."""


class Local:
    """Rows of a source on this machine, encoded once when they are first needed."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @cached_property
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

    def untyped(self, names: Sequence[str]) -> frozenset[str]:
        return frozenset(n for n in names if self.store.source.kind(n) is Kind.CELLS)

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
            workers = min(n_threads(threads), max(1, self._n_blocks))
            runs = [self._run(names, a, b) for a, b in ranges(self._n_blocks, max(1, self._n_blocks // (step.runs * workers)))]
            total = _summed(step, iter(runs), workers, what, len(runs))
        else:
            with readable(), closing(passing.blocks(complete)) as blocks:
                total = _summed(step, _in_runs(blocks), n_threads(threads), None, None)
            if complete:
                refuse_missing(passing.missing, self.store.n_rows or 0)
        if total is None:
            raise DataError("there are no rows")
        return total

    @property
    def _n_blocks(self) -> int:
        return -(-(self.store.n_rows or 0) // ROWS)

    def _run(self, names: Sequence[str], first: int, last: int) -> Iterator[Block]:
        return (self._block(names, number) for number in range(first, last))

    def _block(self, names: Sequence[str], number: int, size: int = ROWS) -> Block:
        store = self.store
        start, stop = number * size, min((number + 1) * size, store.n_rows or 0)
        weight = None if store.weight is None else store.view(store.weight, start, stop)
        return Block({n: store.view(store.read[n].column, start, stop) for n in names}, weight, number)

    def map(
        self, step: Callable[[Block], T], names: Sequence[str], *, keep: Sequence[str] = (), what: str = "reading rows"
    ) -> Iterator[T]:
        if keep or not all(n in self.store.read for n in names):
            return self._streamed(step, names, keep, what)
        numbers = range(self._n_blocks)
        return (step(self._block(names, number)) for number in watched(numbers, what, len(numbers)))

    def _streamed(self, step: Callable[[Block], T], names: Sequence[str], keep: Sequence[str], what: str) -> Iterator[T]:
        """The rows on their way; nothing of them is kept. Columns whose type must be inferred are read before."""
        store = self.store
        known = replace(store.options, declared={**store.options.declared, **store.variables(names)})
        passing = Stream(store, {n: encoder_for(n, store.source, known) for n in names})
        with readable(), closing(passing.rows(keep, what)) as blocks:
            yield from map(step, blocks)

    @property
    def ordered(self) -> bool:
        return True

    def walk(self, step: Callable[[S, Block], S], state: S, names: Sequence[str], *, seed: Any = None) -> S:
        self.store.require(names)
        for block in self._run(names, 0, self._n_blocks) if seed is None else self._mixed(names, np.random.default_rng(seed)):
            state = step(state, block)
        return state

    def _mixed(self, names: Sequence[str], rng: np.random.Generator) -> Iterator[Block]:
        """The rows in blocks that are shuffled, each made of pieces from all over the table."""
        pieces = rng.permutation(-(-(self.store.n_rows or 0) // PIECE))
        for number, first in enumerate(range(0, len(pieces), ROWS // PIECE)):
            some = [self._block(names, int(i), PIECE) for i in pieces[first : first + ROWS // PIECE]]
            order = rng.permutation(sum(b.n_rows for b in some))
            weight = None if self.store.weight is None else np.concatenate([b.weights for b in some])[order]
            yield Block({n: np.concatenate([b.columns[n] for b in some])[order] for n in names}, weight, number)

    def hold(self, names: Sequence[str], view: View | None = None) -> Engine:
        self.store.require(names)
        if view is None:
            return self
        if not self._fits(names):
            return Viewed(self, view)
        blocks = [view(block) for block in self._run(names, 0, self._n_blocks)]
        return held({n: self.store.read[n].variable for n in names}, blocks, self.store.options.memory_limit)

    def _fits(self, names: Sequence[str]) -> bool:
        """Whether another copy of columns fits into memory: who has the rows there may have a sample of them, too."""
        columns = [self.store.read[n].column for n in names]
        width = sum(c.dtype.itemsize for c in columns) + (8 if self.weighted else 0)
        there = sum(c.array.nbytes for c in columns if isinstance(c, Held))
        return (self.store.n_rows or 0) * width <= max(self.store.options.memory_limit, 2 * there)

    def bits(self, layout: BitLayout, *, threads: int | None = None, memory_limit: float | None = None) -> Bits:
        self.store.require(layout.names)
        how: Any = {"weighted": self.weighted, "threads": threads, "memory_limit": memory_limit}
        return LocalBits(self._block, self.store.n_rows or 0, layout, **how)

    def place(self, number: int, row: int) -> str:
        return self.store.source.place(number * ROWS + row)


def held(
    variables: Mapping[str, Variable],
    blocks: Sequence[Block],
    memory_limit: int = 2**30,
    place: Callable[[int], str] | None = None,
) -> Local:
    """The rows of blocks as a local engine that keeps them in memory; what the columns are is taken as declared.

    `place` says where a row came from.
    """
    rows = sum(block.n_rows for block in blocks)
    read = {n: _read(v, np.concatenate([b.columns[n] for b in blocks])) for n, v in variables.items()}
    store = Store(Encoded(read, rows, place), Options(dict(variables), memory_limit=memory_limit))
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


class Stream:
    """The rows of some columns of a store, straight from its source."""

    def __init__(self, store: Store, encoders: dict[str, Encoder]) -> None:
        self._store, self._encoders = store, encoders

    @property
    def missing(self) -> dict[str, int]:
        """The missing cells of each column, so far."""
        return {n: e.n_missing for n, e in self._encoders.items()}

    def blocks(self, complete: bool) -> Generator[Block]:
        """The rows, block by block. If they must be complete, there are no more of them once a cell is missing."""
        n_rows, total = 0, Sum[float]()
        for block in self.rows():
            n_rows += block.n_rows
            total.add(block.number, float(block.n_rows if block.weight is None else block.weight.sum()))
            if not complete or not any(self.missing.values()):
                yield block
        self._store.set_rows(n_rows)
        self._store.set_total(total.value or 0.0)

    def rows(self, keep: Sequence[str] = (), what: str = "reading rows") -> Generator[Block]:
        """The rows, block by block, with columns to keep as they are; there may be none."""
        store, weights = self._store, self._store.options.weights
        encoders = {**self._encoders, weights: Weights()} if weights is not None else self._encoders
        with closing(passed(store.source, encoders, keep, what)) as parts:
            whole = (({**chunks, **{(n,): batch[n] for n in keep}}, n_rows) for chunks, batch, n_rows in parts)
            start = 0
            for number, cells in enumerate(cut(whole)):
                columns, kept = {n: cells[n] for n in self._encoders}, {n: cells[n,] for n in keep}
                n_rows = len(next(iter(cells.values())))
                weight = None if weights is None else cells[weights]
                if weights is None and store.weight is not None:
                    weight = store.rows(store.weight, start, start + n_rows)
                yield Block(columns, weight, number, kept)
                start += n_rows


def stream(store: Store, names: Sequence[str]) -> Stream | None:
    """A stream of these columns if they are too large for memory, none of them was read yet and all are declared.

    Only the first pass is streamed: who asks again will ask often, and a spill is faster.
    """
    if not names or store.streamed or any(n in store.read for n in names) or store.fits(names):
        return None
    if store.weight is not None and store.n_rows is None:
        return None  # weights that may not be as many as the rows
    encoders = {n: encoder_for(n, store.source, store.options) for n in names}
    if any(foreseen(n, e, store.options) is None for n, e in encoders.items()):
        return None
    store.streamed = True
    return Stream(store, encoders)


def cut(parts: Iterable[tuple[dict[Any, Any], int]]) -> Iterator[dict[Any, Any]]:
    """Chunks of any lengths, arrays of numpy or Arrow, cut anew into blocks; what lies in one chunk is not copied.

    >>> [len(b["x"]) for b in cut([({"x": np.zeros(ROWS + 1)}, ROWS + 1), ({"x": np.zeros(ROWS)}, ROWS)])]
    [16384, 16384, 1]
    """
    pieces: list[dict[Any, Any]] = []
    lacking = ROWS
    for chunks, n in parts:
        start = 0
        while start < n:
            size = min(lacking, n - start)
            pieces.append({k: c[start : start + size] for k, c in chunks.items()})
            start, lacking = start + size, lacking - size
            if not lacking:
                yield _joined(pieces)
                pieces, lacking = [], ROWS
    if pieces:
        yield _joined(pieces)


def _joined(pieces: list[dict[Any, Any]]) -> dict[Any, Any]:
    if len(pieces) == 1:
        return pieces[0]
    return {k: _concatenated([piece[k] for piece in pieces]) for k in pieces[0]}


def _concatenated(cells: list[Any]) -> Any:
    if isinstance(cells[0], np.ndarray):
        return np.concatenate(cells)
    import pyarrow as pa

    return pa.concat_arrays(cells)
