"""Keys in memory, in the order of the arrangement that they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from suffice.engines.engine import ranges
from suffice.engines.local.columns import Column, Held
from suffice.engines.sequences.arrangement import Arrangement, Array, AsGiven, Ints, Looked, sorting
from suffice.engines.sequences.gaps import lacking_before, times_with_gaps, with_gaps
from suffice.engines.sequences.keyed import CHUNK, Keyed
from suffice.engines.sequences.keys import Times
from suffice.errors import DataError


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
