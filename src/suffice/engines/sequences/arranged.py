"""The local engine of sequences: rows arranged once, and dealt out in blocks of whole sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from suffice.basis.libraries import pa
from suffice.engines.encoding.encode import missing_code
from suffice.engines.engine import ROWS, Bits, Block, Engine, T, View
from suffice.engines.local.columns import Column, Held, Nothing
from suffice.engines.local.local import Local, hold_in_memory
from suffice.engines.local.local_bits import LocalBits
from suffice.engines.sequences.arrangement import Arrangement, AsGiven
from suffice.engines.sequences.external import external
from suffice.engines.sequences.gaps import Missing, Refuse
from suffice.engines.sequences.keyed import Keyed
from suffice.engines.sequences.sorted_keys import SortedKeys, refuse_changes
from suffice.engines.steps.bits import BitLayout
from suffice.engines.steps.parallel import available_memory, with_count
from suffice.engines.views.views import Viewed
from suffice.errors import DataError, TooLarge, bytes_in_words
from suffice.variables import Variable


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
