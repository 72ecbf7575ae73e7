"""Gaps: steps that a whole-number order leaves out are refused, or put in with every cell missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from suffice.engines.sequences.arrangement import Array, Ints, Looked, jumps_of
from suffice.engines.sequences.keys import Times
from suffice.errors import DataError, TooLarge, bytes_in_words
from suffice.errors.remedies import argument, name_of

MOST = 16
"""So many times as many steps as there are rows may be put in, and more only if they fit into the memory that may be taken."""


@dataclass(frozen=True)
class Refuse:
    """For `sequences`: steps that a whole-number order leaves out are refused. For `predict`, `predict_proba`, `impute` and
    `log_prob` (`unknown=`): states that the model does not know are refused.

    >>> Refuse()
    Refuse()
    """

    word: ClassVar[Literal["refuse"]] = "refuse"

    def n_put(self, looked: Looked, times: Times | None, labels: Sequence[str], bytes_of_step: int, limit: int) -> int:
        """How many steps are put in: none, and if some lack they are refused."""
        if times is None or not looked.n_lacking:
            return 0
        jump, sequence, time = looked.largest
        n, before, after = jump // looked.spacing - 1, times.text(time), times.text(time + jump)
        raise DataError(
            f"the sequence {labels[sequence]!r} has no row between {times.name} {before} and {after}, where {n:,} "
            f"step{'s' if n > 1 else ''} of {looked.spacing:,} would be: {argument('gaps', 'Missing()', 'missing')} puts such "
            f"steps in, with nothing observed; if none are meant, leave {name_of('order')} out and give the rows in their order"
        )


@dataclass(frozen=True)
class Missing:
    """For `sequences`: steps that a whole-number order leaves out become steps with every cell missing. For `predict`,
    `predict_proba`, `impute` and `log_prob` (`unknown=`): cells with states that the model does not know are taken for missing.

    >>> Missing()
    Missing()
    """

    word: ClassVar[Literal["missing"]] = "missing"

    def n_put(self, looked: Looked, times: Times | None, labels: Sequence[str], bytes_of_step: int, limit: int) -> int:
        """How many steps are put in; more than fit into the memory that may be taken are refused."""
        n = looked.n_lacking
        if times is not None and n * bytes_of_step > max(limit, MOST * looked.n_rows * bytes_of_step):
            raise TooLarge(
                f"{argument('gaps', 'Missing()', 'missing')} would put in {n:,} steps among {looked.n_rows:,} rows, which take "
                f"{bytes_in_words(float(n * bytes_of_step))}, more than memory_limit: does {times.name!r} count steps?"
            )
        return n


REFUSE = Refuse()


def checked_unknown(unknown: Any) -> Refuse | Missing:
    """What becomes of states that are not known.

    >>> checked_unknown(Missing())
    Missing()
    """
    if not isinstance(unknown, (Refuse, Missing)):
        raise DataError(f"unknown states are handled by Refuse() or Missing(), not by {unknown!r}")
    return unknown


def lacking_before(by: Array, times: Array, spacing: int, last: tuple[int, Any] | None = None) -> Ints:
    """How many steps lack before each row of a chunk; `last` is the row before it.

    >>> lacking_before(np.array([0, 0, 1]), np.array([1, 4, 9]), 1)
    array([0, 2, 0])
    """
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
    """The times of the same steps.

    >>> times_with_gaps(np.array([1, 4]), np.array([0, 2]), 1)
    array([1, 2, 3, 4])
    """
    back = np.repeat(np.cumsum(before + 1) - 1, before + 1) - np.arange(len(times) + int(before.sum()))
    return np.asarray(np.repeat(times, before + 1) - (spacing * back).astype(times.dtype))
