"""Missing counts that other nodes depend on: summed over their values, each a copy of the row in which it is that value.

    p(row)  =  Σ_c p(row, c)          c = 0 … K, joint values where several are missing together

The sum has no end, but in each joint state of what else is missing the last quarter of the values from 0 to K has no more than
`TAIL` of its mass; where it has more, K is doubled. K follows the parameters: it is found anew in each pass over the rows. Beyond
it the terms fall, as those of Poisson, binomial and negative binomial counts do under normal, logistic and log-linear children.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from suffice.basis.arrays import Array, Bools, Ints
from suffice.errors import TooLarge, listing
from suffice.errors.remedies import INTO_BINS
from suffice.incomplete.gauss_hermite import TAIL
from suffice.incomplete.numbers.completed_rows import CELLS, Batch

FIRST = 15
"""The largest value that is looked at first,"""

MOST = 2**16
"""and how many joint values there may be."""


def with_counts(batch: Batch, log_weights: Callable[[Batch], Array]) -> Iterator[Batch]:
    """A batch in parts, in the order of its rows, each with a copy of every row for each value that its missing counts may have.
    `log_weights` gives ln w of the joint states and rows of a batch of copies."""
    yield from _copies(batch, np.full(len(batch.component.summed), FIRST), log_weights)


def _copies(batch: Batch, top: Ints, log_weights: Callable[[Batch], Array]) -> Iterator[Batch]:
    n, copies, summed = len(batch.rows.weight), math.prod((top + 1).tolist()), list(batch.component.summed)
    if n > 1 and n * copies * batch.component.n_completions > CELLS:
        yield from _copies(batch.part(0, n // 2), top, log_weights)
        yield from _copies(batch.part(n // 2, n), top, log_weights)
        return
    rows = batch.rows.take(np.repeat(np.arange(n), copies))
    rows.reals[summed] = np.tile(np.indices(tuple(top + 1)).reshape(len(top), copies), n)
    found = replace(batch, rows=rows, bounds=batch.bounds * copies, copies=copies)
    short, lost = _are_short(log_weights(found).reshape(-1, n, *(top + 1)))
    wider = np.where(short | lost, 2 * top + 1, top)
    if not short.any() and not lost:
        yield found
    elif math.prod((wider + 1).tolist()) <= MOST:
        yield from _copies(batch, wider, log_weights)
    elif short.any():
        raise TooLarge(
            f"missing counts of {listing([batch.component.reals[i] for i in summed])} have more than {MOST:,} values that "
            f"matter, over which they would be summed: fill them, or cut them {INTO_BINS}"
        )
    else:
        yield found  # a row that is impossible whatever the count was, as its posterior will say


def _are_short(logs: Array) -> tuple[Bools, bool]:
    """Which counts have too much of the mass in the last quarter of their values, `logs` of [state, row, values of each], and
    whether a row has no mass yet."""
    logs, values = np.where(np.isnan(logs), -np.inf, logs), tuple(range(2, logs.ndim))
    largest = logs.max(axis=values, keepdims=True)
    share = np.exp(logs - np.where(largest > -np.inf, largest, 0.0))
    whole = TAIL * share.sum(axis=values)
    last = [share.take(range(3 * share.shape[axis] // 4, share.shape[axis]), axis=axis).sum(axis=values) for axis in values]
    return np.array([bool((tail > whole).any()) for tail in last]), not bool((whole > 0).any(axis=0).all())
