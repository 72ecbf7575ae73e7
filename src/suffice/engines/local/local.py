"""The local engine: rows of a source on this machine, in memory or in files larger than it. Blocks are dealt out to threads.

Columns are read when they are first needed, all that are needed at once, and kept, encoded: in memory, or in a spill file when
they are larger than the memory they may take. Declared columns that are too large are streamed in the first pass over them, and
kept nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import islice
from operator import iadd
from typing import Any, Literal

import numpy as np

from suffice.basis.variables import Bins, Finite, Variable
from suffice.engines.encoding.doubts import Notes, doubts_about
from suffice.engines.encoding.encode import Encoder, StateEncoder, Weights, Wrong, bin_codes, code_type
from suffice.engines.encoding.infer import CellsFound, Guess, cells_found, encoder_for, variable_before_reading
from suffice.engines.encoding.sources import Kind, Options, Source, cut, encode_batches, readable, wrong_cell
from suffice.engines.engine import ROWS, Bits, Block, Engine, S, Seen, Step, Sum, T, View, is_missing, ranges
from suffice.engines.local.kept import Column, Growing, LocalBits, Nothing, Sink, spill, sum_of
from suffice.engines.reading.frames import FrameSource, from_codes
from suffice.engines.steps.bits import BitLayout
from suffice.engines.steps.blocks import in_order, n_threads, with_count
from suffice.engines.views.sample import SAMPLE, binned_variable
from suffice.engines.views.views import Viewed, as_declared
from suffice.errors import DataError, listing
from suffice.statistics.counts import freeze

PIECE = 2**10
"""Rows in their order that a mixed block has from one place."""

STREAMED = 4
"""Blocks in a run where it is not known how many there are."""


@dataclass(frozen=True)
class Read(Seen):
    """A column that was read, and where it is kept."""

    column: Column = field(kw_only=True, compare=False)


class Local(Engine):
    """Rows of a source on this machine, encoded once when they are first needed."""

    ordered = near = True

    def __init__(self, source: Source, options: Options, like: Local | None = None) -> None:
        """`like` has the same rows, read by other options: of what was noted of them the user is not told twice."""
        self.source, self.options, self.memory_limit = source, options, options.memory_limit
        self.names = tuple(n for n in source.names if n != options.weights)
        self.weights, self.weighted = options.weights, options.weights is not None
        self.seen: dict[str, Read] = {}
        self.told: set[object] = set() if like is None else like.told
        self._noted = Notes(self.told)
        self.notes, self.n_rows = self._noted.all, source.n_rows
        self.weight = None if self.n_rows is None or self.weighted else float(self.n_rows)
        self._weight: Column | None = None
        self._weighed = False
        self._found: dict[str, CellsFound] = {}
        self._bytes, self._streamed = 0, False
        if like is not None and like.weights is None and like.weighted:
            self._weight, self.weighted, self.weight = like._weight, True, None
        for message in source.notes:
            self._noted.tell("source", [message], "".join)

    def set_weights(self, weights: Any) -> None:
        """Weights that are not a column of the source."""
        try:
            array = np.array(weights, np.float64)
        except (TypeError, ValueError):
            raise DataError("weights are a column by its name, or one number for each row") from None
        except OverflowError:
            raise DataError("a weight is beyond the largest double; divide them by some power of ten") from None
        if array.ndim != 1:
            raise DataError(f"weights are one number for each row, not an array of {array.ndim} dimensions")
        bad = ~((array >= 0) & np.isfinite(array))
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(f"row {row + 1}: the weight {array[row]:g} is not a finite number from 0 up")
        self._weight, self.weighted, self.weight = freeze(array), True, None
        if self.n_rows is not None:
            self.set_rows(self.n_rows)

    def declare(self, variables: Any) -> Engine:
        return Local(self.source, self.options.declare(variables, self.source.names), self)

    def with_unknown(self, how: Literal["refuse", "missing"]) -> Engine:
        return Local(self.source, replace(self.options, unknown=how), self)

    def _tell_unknown(self, encoders: Mapping[str, Encoder]) -> None:
        """Note which cells were taken for missing, as their states are not known."""
        for name, encoder in encoders.items():
            if isinstance(encoder, StateEncoder) and encoder.strange:
                self._noted.tell("unknown", [name], lambda names, told=encoder: told.about_strange(names[0]))  # type: ignore[misc]

    def text_columns(self, names: Sequence[str]) -> frozenset[str]:
        return frozenset(n for n in names if self.source.kind(n) is Kind.CELLS)

    def place(self, number: int, row: int) -> str:
        return self.source.place(number * ROWS + row)

    @readable()
    def variables(self, names: Sequence[str]) -> dict[str, Variable]:
        self.check(names)
        unread = {n: encoder_for(n, self.source, self.options) for n in names if n not in self.seen}
        known = {n: v for n, e in unread.items() if (v := variable_before_reading(n, e, self.options)) is not None}
        if len(known) < len(unread):
            self.require(names)
            known = {}
        return {n: known.get(n) or self.seen[n].variable for n in names}

    @readable()
    def require(self, names: Sequence[str]) -> None:
        """Read the columns among these that were not read yet, in one go. Where one of them is refused, none is kept."""
        self.check(names)
        wanted = [n for n in (self.options.with_targets(names) if self.options.declared else names) if n not in self.seen]
        if wanted and self.seen and not self.source.stable:
            # The rows of one reading cannot be joined to those of another.
            wanted = [*self.seen, *wanted]
            self.seen.clear()
            self._weight = None if self.weights is not None else self._weight
        encoders: dict[str, Encoder] = {n: encoder_for(n, self.source, self.options) for n in wanted}
        if self.weights is not None and self._weight is None:
            encoders[self.weights] = Weights(decimal=self.source.decimal)
        if encoders:
            fresh, again = self._scan(encoders)
            if self.options.unknown == "missing":
                self._tell_unknown(encoders)
            if again:
                fresh |= self._scan({n: encoder_for(n, self.source, self.options, how) for n, how in again.items()})[0]
            before, self.seen = self.seen, {**self.seen, **fresh}
            if any(isinstance(self.options.declared.get(n), Bins) for n in fresh):
                self._cut(fresh, before)
            variables = {n: self.seen[n].variable for n in wanted}
            if doubts := doubts_about(variables, self._found, self.options, self.n_rows or 0):
                self.seen |= {n: replace(self.seen[n], doubts=some) for n, some in doubts.items()}
                self._noted.look(doubts)
        if self._weight is not None and not self._weighed:
            self._weigh(self._weight)

    def _cut(self, fresh: Mapping[str, Read], before: dict[str, Read]) -> None:
        """Cut columns that were read as numbers and declared as bins; where one is refused, it is as it was `before`."""
        try:
            for name, read in fresh.items():
                bins = self.options.declared.get(name)
                if isinstance(bins, Bins) and not isinstance(read.variable, Finite):
                    variable = binned_variable(bins, name, self)
                    if not bins.width and (self.n_rows or 0) > SAMPLE:
                        what = f"{name!r}: the cut points were found by a random sample of {SAMPLE:,} of the rows"
                        self._noted.say(what)
                    self.seen[name] = self._recode_numbers(name, read, variable)
        except DataError:
            self.seen = before
            raise

    def _encode_columns(self, encoders: Mapping[str, Encoder]) -> Sink:
        """Columns, encoded in one pass over the rows."""
        sink, n_rows = self._sink(list(encoders)), 0
        for chunks, _, n in encode_batches(self.source, encoders):
            for name, chunk in chunks.items():
                if len(chunk):
                    sink[name].add(chunk)
            n_rows += n
        self.set_rows(n_rows)
        return sink

    def _scan(self, encoders: Mapping[str, Encoder]) -> tuple[dict[str, Read], dict[str, str]]:
        """Read and encode columns; those that must be read again, and how, come apart."""
        sink = self._encode_columns(encoders)
        again: dict[str, str] = {}
        fresh: dict[str, Read] = {}
        for name, encoder in encoders.items():
            if isinstance(encoder, Weights):
                self._weight = sink.pop(name).column(None, np.dtype(np.float64))
                continue
            self._found[name] = found = cells_found(encoder, self.n_rows or 0)
            try:
                how = found.reread(self.options) if found.guessed else None
            except Wrong as wrong:
                raise wrong_cell(self.source, name, 0, wrong) from None
            if how is None:
                fresh[name] = self._finish_column(name, encoder, found, sink)
            else:
                again[name] = how
        return fresh, again

    def set_rows(self, n_rows: int) -> None:
        """Take note of how many rows there were; none at all, or not as many as the last time, are refused."""
        if n_rows == 0 or self.n_rows not in (None, n_rows):
            where = f"{listing(self.source.paths, 3, 'str')}: " if self.source.paths else ""
            if n_rows == 0:
                raise DataError(f"{where}there are no rows")
            numbers = f"{self.n_rows or 0:,} rows at first and now {n_rows:,}"
            raise DataError(f"{where}there were {numbers}; data must not change while they are read")
        if isinstance(self._weight, np.ndarray) and len(self._weight) != n_rows:
            raise DataError(f"there are {len(self._weight):,} weights for {n_rows:,} rows")
        self.n_rows = n_rows
        if not self.weighted:
            self.weight = float(n_rows)

    def _sink(self, names: Sequence[str]) -> Sink:
        """Where columns are kept: in memory as long as there is some left."""
        need = self._bytes + self.source.n_bytes(names)
        if need > self.options.memory_limit:
            return spill()
        self._bytes = need
        return Sink(partial(Growing, self.n_rows))

    def _finish_column(self, name: str, encoder: Encoder, found: CellsFound, sink: Sink) -> Read:
        """The column that an encoder made, with what it turned out to be."""
        variable = found.variable(name, self.options)
        settled = encoder.settled if isinstance(encoder, Guess) else encoder
        if not isinstance(settled, StateEncoder):
            states = isinstance(variable, Finite) and not found.are_states(name, self.options)
            dtype = code_type(variable.n_states) if isinstance(variable, Finite) and states else np.dtype(np.float64)
            read = Read(variable, found.n_missing, column=sink.pop(name).column(None, dtype))
            return self._recode_numbers(name, read, variable) if isinstance(variable, Finite) and not states else read
        if not isinstance(variable, Finite) or not settled.codes:
            return Read(variable, found.n_missing, column=Nothing())
        place = {state: code for code, state in enumerate(variable.states)}
        order = np.array([place[s] for s in settled.codes], np.int64)
        return Read(variable, found.n_missing, column=sink.pop(name).column(order, code_type(len(order))))

    def _recode_numbers(self, name: str, read: Read, variable: Finite) -> Read:
        column = self._sink([name])[name]
        for start, stop in ranges(self.n_rows or 0, SAMPLE):
            column.add(bin_codes(read.column[start:stop], variable))
        return replace(read, variable=variable, column=column.column(None, code_type(variable.n_states)))

    def _weigh(self, weight: Column) -> None:
        """Sum the weights of the rows, in the same tree as everything, and see whether they are whole numbers."""
        total, whole = Sum[float](), True
        for i, (a, b) in enumerate(ranges(self.n_rows or 0)):
            w = weight[a:b]
            total.add(i, sum_of(w))
            whole = whole and bool((w == np.floor(w)).all())
        self._set_total(total.value or 0.0)
        self.whole_weights, self._weighed = whole and (total.value or 0.0) < 2**53, True

    def _set_total(self, total: float) -> None:
        if total == 0:
            raise DataError("the weights of all rows are 0")
        if not np.isfinite(total):
            raise DataError("the weights of all rows together are beyond the largest double; divide them by some power of ten")
        self.weight = total

    def total(self, step: Step[T], names: Sequence[str], threads: int | None, what: str | None) -> T | None:
        if not (self._streamed or any(n in self.seen for n in names)) and (encoders := self._to_stream(names)):
            return self._stream(step, encoders, threads)
        columns = names or self.names[:1]  # without a column a block would not know its rows
        self.require(columns)
        if step.complete:
            self.require_complete(names)
        block, n = partial(self._block, columns), self._n_blocks
        workers = min(n_threads(threads), max(1, n))
        if workers == 1:
            blocks = map(block, range(n))
            return step(with_count(blocks, what, n) if what and n > 1 else blocks).value
        length = max(1, n // (step.runs * workers))
        runs = [map(block, range(a, min(a + length, n))) for a in range(0, n, length)]
        sums = in_order((partial(step, run) for run in runs), workers)
        return reduce(iadd, with_count(sums, what, len(runs)) if what else sums, Sum[T]()).value

    def _stream(self, step: Step[T], encoders: Mapping[str, Encoder], threads: int | None) -> T | None:
        """The sum over rows that are kept nowhere."""
        with readable(), closing(self._first_pass(encoders, step.complete)) as blocks:
            runs = iter(lambda: list(islice(blocks, STREAMED)), [])
            total = reduce(iadd, in_order((partial(step, run) for run in runs), threads), Sum[T]())
        if step.complete:
            self.require_complete((), {n: e.n_missing for n, e in encoders.items()})
        return total.value

    def _to_stream(self, names: Sequence[str]) -> dict[str, Encoder] | None:
        """The encoders of columns none of which was read yet, if they are too large for memory, and all are declared. Only the
        first pass is streamed: what is read a second time is read often, and a spill is faster."""
        if not names or self._bytes + self.source.n_bytes(names) <= self.options.memory_limit:
            return None
        if self._weight is not None and self.n_rows is None:
            return None  # weights that may not be as many as the rows
        encoders = {n: encoder_for(n, self.source, self.options) for n in names}
        if any(variable_before_reading(n, e, self.options) is None for n, e in encoders.items()):
            return None
        self._streamed = True
        return encoders

    def _first_pass(self, encoders: Mapping[str, Encoder], complete: bool) -> Generator[Block]:
        """The rows, block by block. If they must be complete, there are no more of them once a cell is missing."""
        n_rows, total = 0, Sum[float]()
        for block in self._blocks(encoders):
            n_rows += block.n_rows
            total.add(block.number, float(block.n_rows) if block.weight is None else sum_of(block.weight))
            if not complete or not any(e.n_missing for e in encoders.values()):
                yield block
        self.set_rows(n_rows)
        self._set_total(total.value or 0.0)

    def _blocks(self, encoders: Mapping[str, Encoder], keep: Sequence[str] = (), what: str = "reading rows") -> Generator[Block]:
        """The rows straight from their source, with columns to keep as they are; there may be none."""
        weights, start = self.weights, 0
        every = encoders if weights is None else {**encoders, weights: Weights(decimal=self.source.decimal)}
        with closing(encode_batches(self.source, every, keep, what)) as parts:
            whole = (({**chunks, **{(n,): batch[n] for n in keep}}, n_rows) for chunks, batch, n_rows in parts)
            for number, cells in enumerate(cut(whole)):
                n_rows = len(next(iter(cells.values())))
                weight = None if weights is None else cells[weights]
                if weights is None and self._weight is not None:
                    weight = self._weight[start : start + n_rows]
                yield Block({n: cells[n] for n in encoders}, weight, number, {n: cells[n,] for n in keep})
                start += n_rows

    @property
    def _n_blocks(self) -> int:
        return -(-(self.n_rows or 0) // ROWS)

    def _block(self, names: Sequence[str], number: int, size: int = ROWS) -> Block:
        start, stop = number * size, min((number + 1) * size, self.n_rows or 0)
        weight = None if self._weight is None else self._weight[start:stop]
        return Block({n: self.seen[n].column[start:stop] for n in names}, weight, number)

    def map(self, step: Callable[[Block], T], names: Sequence[str], *, keep: Sequence[str] = (), what: str = "") -> Iterator[T]:
        if not keep and all(n in self.seen for n in names):
            yield from (step(self._block(names, number)) for number in with_count(range(self._n_blocks), what, self._n_blocks))
            return
        # The rows on their way; nothing of them is kept. Columns whose type must be inferred are read before.
        known = replace(self.options, declared={**self.options.declared, **self.variables(names)})
        encoders = {n: encoder_for(n, self.source, known) for n in names}
        with readable(), closing(self._blocks(encoders, keep, what)) as blocks:
            yield from (step(block) for block in blocks)
        if self.options.unknown == "missing":
            self._tell_unknown(encoders)

    def walk(self, step: Callable[[S, Block], S], state: S, names: Sequence[str], *, seed: Any = None) -> S:
        self.require(names)
        blocks = map(partial(self._block, names), range(self._n_blocks))
        for block in blocks if seed is None else self._shuffle(names, np.random.default_rng(seed)):
            state = step(state, block)
        return state

    def _shuffle(self, names: Sequence[str], rng: np.random.Generator) -> Iterator[Block]:
        """The rows in blocks that are shuffled, each made of pieces from all over the table."""
        pieces = rng.permutation(-(-(self.n_rows or 0) // PIECE))
        for number, first in enumerate(range(0, len(pieces), ROWS // PIECE)):
            some = [self._block(names, int(i), PIECE) for i in pieces[first : first + ROWS // PIECE]]
            order = rng.permutation(sum(b.n_rows for b in some))
            weight = None if self._weight is None else np.concatenate([b.weights for b in some])[order]
            yield Block({n: np.concatenate([b.columns[n] for b in some])[order] for n in names}, weight, number)

    def hold(self, names: Sequence[str], view: View | None = None) -> Engine:
        self.require(names)
        if view is None or not self.fits_again(names):
            return self if view is None else Viewed(self, view)
        blocks = [view(self._block(names, number)) for number in range(self._n_blocks)]
        return hold_in_memory({n: self.seen[n].variable for n in names}, blocks, self.options.memory_limit)

    def fits_again(self, names: Sequence[str]) -> bool:
        """Whether another copy of columns fits into memory: who has the rows there may have a sample of them, too."""
        width = sum(self.seen[n].column.dtype.itemsize for n in names) + (8 if self.weighted else 0)
        there = sum(c.nbytes for n in set(names) if isinstance(c := self.seen[n].column, np.ndarray))
        return (self.n_rows or 0) * width <= max(self.options.memory_limit, 2 * there)

    def bits(self, layout: BitLayout, *, threads: int | None = None, memory_limit: float | None = None) -> Bits:
        self.require(layout.names)
        # Bits know nothing of sequences, and want blocks of rows of one size.
        bits = LocalBits(partial(self._block, size=ROWS), self.n_rows or 0, layout, weighted=self.weighted, threads=threads)
        return bits if bits.fits(memory_limit) else super().bits(layout)


def hold_in_memory(
    variables: Mapping[str, Variable],
    blocks: Sequence[Block],
    memory_limit: int = 2**30,
    place: Callable[[int], str] | None = None,
) -> Local:
    """The rows of blocks as a local engine that keeps them in memory; what the columns are is taken as declared, and `place` says
    where a row came from."""
    known = {n: as_declared(v) for n, v in variables.items()}
    cells = {n: freeze(np.concatenate([b.columns[n] for b in blocks])) for n in known}

    def place_of(row: int) -> str:
        return f"row {row + 1} of those picked"

    columns: dict[object, Callable[[], Any]] = {n: partial(from_codes, v, cells[n]) for n, v in known.items()}
    source = FrameSource(columns, sum(block.n_rows for block in blocks), place=place or place_of)
    engine = Local(source, Options(dict(variables), memory_limit=memory_limit))
    engine.seen = {n: Read(v, int(np.count_nonzero(is_missing(cells[n]))), column=cells[n]) for n, v in known.items()}
    if any(block.weight is not None for block in blocks):
        engine.set_weights(np.concatenate([block.weights for block in blocks]))
    return engine
