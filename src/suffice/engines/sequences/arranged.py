"""The local engine of sequences: rows arranged once, and dealt out in blocks of whole sequences. Of those that are too large
for memory the rows are sorted once, through DuckDB, from one spill into another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.basis.arrays import Ints
from suffice.basis.libraries import pa
from suffice.basis.variables import Variable
from suffice.engines.engine import Array, Block, Engine, T, ranges
from suffice.engines.local.kept import Column, Nothing, spill
from suffice.engines.local.local import Local
from suffice.engines.reading.frames import in_sorted_order
from suffice.engines.sequences.arrangement import Arrangement, AsGiven, Looked, Missing, Refuse, in_order, jumps_of, sorting
from suffice.engines.sequences.keys import CHUNK, Keyed, Times
from suffice.engines.steps.blocks import available_memory, with_count
from suffice.errors import DataError, TooLarge, bytes_in_words

BY, ORDER, ROW, WEIGHT = range(4)
"""The columns that are sorted beside the others, which have their names."""

Columns = dict[Any, Column]


def external(rows: Keyed, names: Sequence[str], gaps: Refuse | Missing) -> tuple[Arrangement, Column | None]:
    """The arrangement of rows, and their weights in it. Their columns are put into it, or left where they lie in it already."""
    chunks = (rows.keys_of(max(0, start - 1), stop) for start, stop in ranges(rows.n_rows or 0, CHUNK))
    there = all(in_order(None if rows.by is None else by, order) for by, order in chunks)
    columns: Columns = {ROW: AsGiven()} if there else _sort_columns(rows, names)
    looked = Looked(len(rows.labels), rows.times is not None and rows.times.whole)
    at = columns[ROW]
    for start, stop in ranges(rows.n_rows or 0, CHUNK):
        keys = _keys(rows, columns, start, stop)
        looked.add(*keys, lambda sequence, time, row: rows.refuse_twice(sequence, time, int(at[row : row + 1][0])))
    n_put = gaps.n_put(looked, rows.times, rows.labels, 8 * len(names) + 24, rows.options.memory_limit)
    if n_put:
        columns = _fill_gaps(rows, _columns(rows, names) if there else columns, looked.spacing)
    for name in (n for n in names if n in columns):
        read = rows.seen[name]
        rows.seen[name] = replace(read, column=columns[name], n_missing=read.n_missing + n_put)
    times = None if rows.times is None else replace(rows.times, column=columns.get(ORDER, rows.times.column))
    lengths = looked.filled_lengths(looked.spacing) if n_put else looked.lengths
    arrangement = Arrangement(rows.labels, lengths, columns[ROW], times, looked.spacing or None, n_put)
    return arrangement, columns.get(WEIGHT, rows._weight)


def _columns(rows: Keyed, names: Sequence[str]) -> Columns:
    """All that is put in order, as it was read, with the numbers of the rows."""
    rows.require(names)
    columns: Columns = {ROW: AsGiven()}
    columns |= {n: c for n in names if not isinstance(c := rows.seen[n].column, Nothing)}
    if rows.id_codes is not None:
        columns[BY] = rows.id_codes
    if rows.times is not None:
        columns[ORDER] = rows.times.column
    if rows._weight is not None:
        columns[WEIGHT] = rows._weight
    return columns


def _sort_columns(rows: Keyed, names: Sequence[str]) -> Columns:
    """The same columns, and the rows they came from, in the order of the keys."""
    columns = _columns(rows, names)
    sink, keys = spill(), [k for k in (BY, ORDER, ROW) if k in columns]
    parts = ({k: c[start:stop] for k, c in columns.items()} for start, stop in ranges(rows.n_rows or 0, 2**17))
    types = {k: c.dtype for k, c in columns.items()}
    for part in in_sorted_order(parts, types, keys, rows.options.memory_limit):
        for k in (k for k, cells in part.items() if len(cells)):
            sink[k].add(part[k])
    return {k: sink.pop(k).column(None, dtype) for k, dtype in types.items()}


def _keys(rows: Keyed, columns: Mapping[Any, Column], start: int, stop: int) -> tuple[Array, Array | None]:
    """The keys of some rows in their order, as they were read or as they were sorted."""
    if ORDER not in columns:
        return rows.keys_of(start, stop)
    by = columns[BY][start:stop] if BY in columns else np.broadcast_to(np.int32(0), stop - start)
    return by, columns[ORDER][start:stop]


def _fill_gaps(rows: Keyed, columns: Columns, spacing: int) -> Columns:
    """The same columns with steps put in where some lack."""
    sink, last = spill(), None
    for start, stop in ranges(rows.n_rows or 0, 2**17):
        by, order = _keys(rows, columns, start, stop)
        if order is None:
            raise AssertionError("steps are put in by an order")
        before = lacking_before(by, order, spacing, last)
        last = int(by[-1]), order[-1]
        for k, column in columns.items():
            if k == ORDER:
                sink[k].add(times_with_gaps(order, before, spacing))
            elif k in (BY, WEIGHT):
                sink[k].add(np.repeat(column[start:stop], before + 1))
            else:
                sink[k].add(with_gaps(column[start:stop], before))
    return {k: sink.pop(k).column(None, c.dtype) for k, c in columns.items()}


def lacking_before(by: Array, times: Array, spacing: int, last: tuple[int, Any] | None = None) -> Ints:
    """How many steps lack before each row of a chunk; `last` is the row before it."""
    before = np.zeros(len(by), np.int64)
    before[1:] = np.where(by[1:] == by[:-1], jumps_of(times) // spacing - 1, 0)
    if last is not None and last[0] == by[0]:
        before[0] = int(times[0] - last[1]) // spacing - 1
    return before


def with_gaps(cells: Array, before: Ints) -> Array:
    """The cells of rows, and a missing one for each step that lacks before one.

    >>> with_gaps(np.array([5, 3], np.uint8), np.array([0, 2]))
    array([  5, 255, 255,   3], dtype=uint8)
    >>> with_gaps(np.array([5, 3]), np.array([0, 2]))
    array([ 5, -1, -1,  3])
    """
    nothing = {"f": np.nan, "i": -1}.get(cells.dtype.kind)
    result = np.full(len(cells) + int(before.sum()), np.iinfo(cells.dtype).max if nothing is None else nothing, cells.dtype)
    result[np.cumsum(before + 1) - 1] = cells
    return result


def times_with_gaps(times: Array, before: Ints, spacing: int) -> Array:
    """The times of the same steps."""
    back = np.repeat(np.cumsum(before + 1) - 1, before + 1) - np.arange(len(times) + int(before.sum()))
    return np.asarray(np.repeat(times, before + 1) - (spacing * back).astype(times.dtype))


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
        position: Column = AsGiven() if self.at is None else self.at
        lengths, order, step = self.looked.lengths, self.order, spacing or self.looked.spacing
        if n_put and order is not None:
            before = self.lacking(step)
            lengths, order = self.looked.filled_lengths(step), times_with_gaps(order, before, step)
            position = with_gaps(position[0 : len(self.by)], before)
        times = None if self.times is None or order is None else replace(self.times, column=np.asarray(order))
        return Arrangement(self.rows.labels, lengths, position, times, step or None, n_put)


def refuse_changes(weight: Column, arrangement: Arrangement, where: Callable[[int], str]) -> None:
    """Refuse weights that are not the same for all rows of a sequence."""
    for start, stop in ranges(arrangement.n_rows, CHUNK):
        first = max(0, start - 1)
        w = weight[first:stop]
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
        super().__init__(rows.source, rows.options, rows)
        rows.require(())
        self.rows, self.names, self.arrangement, self.gaps = rows, tuple(names), arrangement, gaps
        self.input_place = input_place or rows.source.place
        self._placed = placed or isinstance(arrangement.position, AsGiven)
        self.keys, self.notes, self.n_rows = rows.keys, rows.notes, arrangement.n_rows
        self.weighted, self.weight = rows.weighted, float(arrangement.n_rows)
        if rows._weight is not None:
            self._weight = self._in_place(rows._weight, carry=True) if weight is None else weight
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
        at, cells = self.arrangement.position[0 : self.n_rows or 0], column[0 : self.rows.n_rows or 0]
        if carry:
            at = at[np.maximum.accumulate(np.where(at < 0, 0, np.arange(len(at))))]
        placed = cells[at]
        if self.arrangement.n_put and not carry:
            placed[at < 0] = np.nan if placed.dtype.kind == "f" else np.iinfo(placed.dtype).max
        placed.setflags(write=False)
        return placed

    def declare(self, variables: Any) -> Engine:
        rows: Any = self.rows.declare(variables)
        rows.set_rows(self.rows.n_rows or 0)
        if not isinstance(self.rows, Keyed):
            return Arranged(rows, self.names, self.arrangement, self.gaps, placed=True, input_place=self.input_place)
        if self.source.stable and (not self._placed or isinstance(self.arrangement.position, AsGiven)):
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
        weight = None if self._weight is None else self._weight[start:stop]
        columns = {n: self.seen[n].column[start:stop] for n in names}
        return Block(columns, weight, number, lengths=self.arrangement.lengths_of(number))

    def map(self, step: Callable[[Block], T], names: Sequence[str], *, keep: Sequence[str] = (), what: str = "") -> Iterator[T]:
        self.require(names)
        kept = self._original_columns(keep)
        for number in with_count(range(self._n_blocks), what, self._n_blocks):
            start, stop = self.arrangement.rows_of(number)
            block = self._block(names, number)
            yield step(replace(block, kept={n: c.slice(start, stop - start) for n, c in kept.items()}) if keep else block)

    def _original_columns(self, names: Sequence[str]) -> dict[str, Any]:
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
            at = self.arrangement.position[0 : self.n_rows or 0]
            columns = {n: c.take(pa.array(at, mask=at < 0)) for n, c in columns.items()}
        return {n: c.combine_chunks() for n, c in columns.items()}

    def _shuffle(self, names: Sequence[str], rng: np.random.Generator) -> Iterator[Block]:
        """Blocks in a random order: sequences are never cut, nor mixed with others."""
        return (self._block(names, int(number)) for number in rng.permutation(self._n_blocks))


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
    rows.id_codes = rows.times = None  # once rows are arranged, the keys as they were read are needed no more
    return Arranged(rows, names, arrangement, gaps, placed=outside, weight=weight)
