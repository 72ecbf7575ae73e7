"""The local engine of sequences: rows arranged once, and dealt out in blocks of whole sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from suffice.basis.libraries import pa
from suffice.engines.encoding.encode import missing_code
from suffice.engines.engine import ROWS, Bits, Block, Engine, T, View, ranges
from suffice.engines.local.columns import Column, Held, Nothing
from suffice.engines.local.local import Local, hold_in_memory
from suffice.engines.local.local_bits import LocalBits
from suffice.engines.sequences.arrangement import Arrangement, Array, AsGiven, Ints, Looked, sorting
from suffice.engines.sequences.external import external
from suffice.engines.sequences.gaps import Missing, Refuse, lacking_before, times_with_gaps, with_gaps
from suffice.engines.sequences.keyed import CHUNK, Keyed
from suffice.engines.sequences.keys import Times
from suffice.engines.steps.bits import BitLayout
from suffice.engines.steps.blocks import available_memory, with_count
from suffice.engines.views.views import Viewed
from suffice.errors import DataError, TooLarge, bytes_in_words
from suffice.variables import Variable


@dataclass(frozen=True, eq=False)
class SortedKeys:
    """The keys of rows: the sequence and the time of each, what was found in them, and `at`, the rows they came from."""

    rows: Keyed
    by: Array
    order: Array | None
    at: Ints | None
    looked: Looked
    times: Times | None

    @classmethod
    def of(cls, rows: Keyed) -> SortedKeys:
        """The keys that were read, sorted; without an order they stay as they are, and sequences that lie apart are refused."""
        times = rows.times
        by, order = rows.keys_of(0, rows.n_rows or 0)
        if order is None:
            rows.refuse_apart()
        at = None if order is None else sorting(None if rows.by is None else by, order)
        if at is not None and order is not None:
            by, order = by[at], order[at]
        looked = Looked(len(rows.labels), times is not None and times.whole)
        looked.add(by, order, lambda sequence, time, row: rows.refuse_twice(sequence, time, row if at is None else int(at[row])))
        return cls(rows, by, order, at, looked, times)

    def lacking(self, spacing: int) -> Ints:
        """How many steps lack before each row."""
        return np.zeros(len(self.by), np.int64) if self.order is None else lacking_before(self.by, self.order, spacing)

    def arrangement(self, n_put: int, spacing: int = 0) -> Arrangement:
        """The arrangement, with so many steps put in, which are `spacing` apart if these rows are not all there are."""
        position: Column = AsGiven() if self.at is None else Held(self.at)
        lengths, order, step = self.looked.lengths, self.order, spacing or self.looked.spacing
        if n_put and order is not None:
            before = self.lacking(step)
            lengths, order = self.looked.filled_lengths(step), times_with_gaps(order, before, step)
            position = Held(with_gaps(position.rows(0, len(self.by)), before))
        times = None if self.times is None or order is None else replace(self.times, column=Held(np.asarray(order)))
        return Arrangement(self.rows.labels, lengths, position, times, step or None, n_put)


def refuse_changes(weight: Column, arrangement: Arrangement, where: Callable[[int], str]) -> None:
    """Refuse weights that are not the same for all rows of a sequence."""
    for start, stop in ranges(arrangement.n_rows, CHUNK):
        first = max(0, start - 1)
        w = weight.rows(first, stop)
        changes = first + np.flatnonzero(w[1:] != w[:-1]) + 1
        inside = changes[~np.isin(changes, arrangement.starts)]
        if len(inside):
            row = int(inside[0])
            raise DataError(
                f"{where(row)}: the weight {w[row - first]:g} is not that of the step before, {w[row - first - 1]:g}; the "
                "weight of a sequence is the same in all of its rows"
            )


class Arranged(Local):
    """Local rows in an arrangement: blocks are whole sequences. Columns are `placed` if their rows lie in it already."""

    def __init__(
        self,
        rows: Local,
        names: Sequence[str],
        arrangement: Arrangement,
        gaps: Refuse | Missing,
        *,
        placed: bool = False,
        weight: Column | None = None,
        input_place: Callable[[int], str] | None = None,
    ) -> None:
        super().__init__(rows.source, rows.options, rows._noted.told)
        rows.require(())
        self.rows, self.names, self.arrangement, self.gaps = rows, tuple(names), arrangement, gaps
        self.input_place = input_place or rows.source.place
        self._placed = placed or isinstance(arrangement.position, AsGiven)
        self.keys, self.notes, self.n_rows = rows.keys, rows.notes, arrangement.n_rows
        self.weighted, self.weight = rows.weighted, float(arrangement.n_rows)
        if rows._weight is not None:
            self._weight = weight or self._in_place(rows._weight, carry=True)
            refuse_changes(self._weight, arrangement, self._where)
            self._weigh(self._weight)

    def require(self, names: Sequence[str]) -> None:
        self.check(names)
        new = [n for n in names if n not in self.seen]
        self.rows.require(new)
        for name in new:
            read = self.rows.seen[name]
            column = self._in_place(read.column)
            n_put = 0 if column is read.column and not isinstance(column, Nothing) else self.arrangement.n_put
            self.seen[name] = replace(read, n_missing=read.n_missing + n_put, column=column)
            if column is not read.column and self.source.stable:
                del self.rows.seen[name]  # one copy is enough

    def variables(self, names: Sequence[str]) -> dict[str, Variable]:
        self.check(names)
        unread = self.rows.variables([n for n in names if n not in self.seen])
        return {n: unread.get(n) or self.seen[n].variable for n in names}

    def _in_place(self, column: Column, *, carry: bool = False) -> Column:
        """A column in the arrangement. A step that was put in has no cell or, with `carry`, that of the step before."""
        if self._placed or isinstance(column, Nothing):
            return column
        at, cells = self.arrangement.position.rows(0, self.n_rows or 0), column.rows(0, self.rows.n_rows or 0)
        if carry:
            return Held(cells[at[np.maximum.accumulate(np.where(at < 0, 0, np.arange(len(at))))]])
        placed = cells[at]
        if self.arrangement.n_put:
            placed[at < 0] = np.nan if placed.dtype.kind == "f" else missing_code(placed.dtype)
        return Held(placed)

    def declared(self, variables: Any) -> Engine:
        rows: Any = self.rows.declared(variables)
        rows.set_rows(self.rows.n_rows or 0)
        if not isinstance(self.rows, Keyed):
            return Arranged(rows, self.names, self.arrangement, self.gaps, placed=True, input_place=self.input_place)
        reusable = self.source.stable and (not self._placed or isinstance(self.arrangement.position, AsGiven))
        if reusable:
            return Arranged(rows, self.names, self.arrangement, self.gaps)
        return arrange_rows(Keyed(rows, self.rows.by, self.rows.order), self.names, self.gaps)

    def place(self, number: int, row: int) -> str:
        return self._where(self.arrangement.rows_of(number)[0] + row)

    def _where(self, row: int) -> str:
        return self.arrangement.where(row, self.input_place)

    @property
    def _n_blocks(self) -> int:
        return len(self.arrangement.spans)

    def _to_stream(self, names: Sequence[str]) -> None:
        return None

    def _block(self, names: Sequence[str], number: int, size: int = 0) -> Block:
        if size:
            return super()._block(names, number, size)
        start, stop = self.arrangement.rows_of(number)
        weight = None if self._weight is None else self._weight.rows(start, stop)
        columns = {n: self.seen[n].column.rows(start, stop) for n in names}
        return Block(columns, weight, number, lengths=self.arrangement.lengths_of(number))

    def map(self, step: Callable[[Block], T], names: Sequence[str], *, keep: Sequence[str] = (), what: str = "") -> Iterator[T]:
        self.require(names)
        kept = self._kept(keep)
        for number in with_count(range(self._n_blocks), what, self._n_blocks):
            start, stop = self.arrangement.rows_of(number)
            block = self._block(names, number)
            yield step(replace(block, kept={n: c.slice(start, stop - start) for n, c in kept.items()}) if keep else block)

    def _kept(self, names: Sequence[str]) -> dict[str, Any]:
        """Columns as they came, in the arrangement."""
        if not names:
            return {}
        if not self.source.stable:
            raise DataError("rows that come in another order each time cannot be passed on as they came: write them to a file")
        size = 16.0 * len(names) * (self.n_rows or 0)
        if size > available_memory() / 2:
            raise TooLarge(f"columns of sequences that are passed on must be in memory, which takes {bytes_in_words(size)}")
        batches = list(self.source.batches(names))
        columns = {n: pa.chunked_array([b[n] for b in batches]) for n in names}
        if not isinstance(self.arrangement.position, AsGiven):
            at = self.arrangement.position.rows(0, self.n_rows or 0)
            columns = {n: c.take(pa.array(at, mask=at < 0)) for n, c in columns.items()}
        return {n: c.combine_chunks() for n, c in columns.items()}

    def _mixed(self, names: Sequence[str], rng: np.random.Generator) -> Iterator[Block]:
        """Blocks in a random order: sequences are never cut, nor mixed with others."""
        return (self._block(names, int(number)) for number in rng.permutation(self._n_blocks))

    def hold(self, names: Sequence[str], view: View | None = None) -> Engine:
        self.require(names)
        if view is None or not self.fits_again(names):
            return self if view is None else Viewed(self, view)
        blocks = [view(block) for block in self._run(names, 0, self._n_blocks)]
        return hold_in_memory({n: self.seen[n].variable for n in names}, blocks, self.options.memory_limit)

    def bits(self, layout: BitLayout, *, threads: int | None = None, memory_limit: float | None = None) -> Bits:
        self.require(layout.names)
        # Bits know nothing of sequences, and want blocks of rows of one size.
        bits = LocalBits(partial(self._block, size=ROWS), self.n_rows or 0, layout, weighted=self.weighted, threads=threads)
        return bits if bits.fits(memory_limit) else Bits(self, layout)


def arrange_rows(rows: Keyed, names: Sequence[str], gaps: Refuse | Missing) -> Arranged:
    """The rows of sequences, in the order of their keys: in memory, or in a spill if they are too large for it."""
    rows.read_keys(names)
    weight: Column | None = None
    outside = rows.times is not None and not rows.in_memory(names)
    if outside:
        arrangement, weight = external(rows, names, gaps)
    else:
        keys = SortedKeys.of(rows)
        limit = rows.options.memory_limit
        arrangement = keys.arrangement(gaps.n_put(keys.looked, keys.times, rows.labels, 8 * len(names) + 24, limit))
    rows.release_keys()
    return Arranged(rows, names, arrangement, gaps, placed=outside, weight=weight)
