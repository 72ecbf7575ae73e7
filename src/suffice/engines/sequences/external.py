"""Sequences that are too large for memory: their rows are sorted once, through DuckDB, from one spill into another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from suffice.engines.engine import Array, ranges
from suffice.engines.local.columns import Column, Nothing, Spill
from suffice.engines.reading.frames import in_sorted_order
from suffice.engines.sequences.arrangement import Arrangement, AsGiven, Looked, in_order
from suffice.engines.sequences.gaps import Missing, Refuse, lacking_before, times_with_gaps, with_gaps
from suffice.engines.sequences.keyed import CHUNK, Keyed

BY, ORDER, ROW, WEIGHT = range(4)
"""The columns that are sorted beside the others, which have their names."""

Columns = dict[Any, Column]


def external(rows: Keyed, names: Sequence[str], gaps: Refuse | Missing) -> tuple[Arrangement, Column | None]:
    """The arrangement of rows, and their weights in it. Their columns are put into it, or left where they lie in it already."""
    there = _sorted_already(rows)
    columns: Columns = {ROW: AsGiven()} if there else _sort_columns(rows, names)
    looked = _look_through(rows, columns)
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


def _sorted_already(rows: Keyed) -> bool:
    for start, stop in ranges(rows.n_rows or 0, CHUNK):
        by, order = rows.keys_of(max(0, start - 1), stop)
        if not in_order(None if rows.by is None else by, order):
            return False
    return True


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
    sink, keys = Spill(), [k for k in (BY, ORDER, ROW) if k in columns]
    parts = ({k: c.rows(start, stop) for k, c in columns.items()} for start, stop in ranges(rows.n_rows or 0, 2**17))
    types = {k: c.dtype for k, c in columns.items()}
    for part in in_sorted_order(parts, types, keys, rows.options.memory_limit):
        sink.add(part)
    return {k: sink.column(k, None, dtype) for k, dtype in types.items()}


def _keys(rows: Keyed, columns: Mapping[Any, Column], start: int, stop: int) -> tuple[Array, Array | None]:
    """The keys of some rows in their order, as they were read or as they were sorted."""
    if ORDER not in columns:
        return rows.keys_of(start, stop)
    by = columns[BY].rows(start, stop) if BY in columns else np.broadcast_to(np.int32(0), stop - start)
    return by, columns[ORDER].rows(start, stop)


def _look_through(rows: Keyed, columns: Columns) -> Looked:
    def refuse(sequence: int, time: Any, row: int) -> None:
        rows.refuse_twice(sequence, time, int(columns[ROW].rows(row, row + 1)[0]))

    looked = Looked(len(rows.labels), rows.times is not None and rows.times.whole)
    for start, stop in ranges(rows.n_rows or 0, CHUNK):
        looked.add(*_keys(rows, columns, start, stop), refuse)
    return looked


def _fill_gaps(rows: Keyed, columns: Columns, spacing: int) -> Columns:
    """The same columns with steps put in where some lack."""
    sink = Spill()
    for part in _parts_with_gaps(rows, columns, spacing):
        sink.add(part)
    return {k: sink.column(k, None, c.dtype) for k, c in columns.items()}


def _parts_with_gaps(rows: Keyed, columns: Columns, spacing: int) -> Iterator[dict[Any, Array]]:
    last = None
    for start, stop in ranges(rows.n_rows or 0, 2**17):
        by, order = _keys(rows, columns, start, stop)
        if order is None:
            raise AssertionError("steps are put in by an order")
        before = lacking_before(by, order, spacing, last)
        last = int(by[-1]), order[-1]
        part = {k: with_gaps(c.rows(start, stop), before) for k, c in columns.items() if k not in (BY, ORDER, WEIGHT)}
        part[ORDER] = times_with_gaps(order, before, spacing)
        for k in (BY, WEIGHT):
            if k in columns:
                part[k] = np.repeat(columns[k].rows(start, stop), before + 1)
        yield part
