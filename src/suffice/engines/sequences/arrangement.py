"""Arrangement: whole sequences one after the other, each in its order, and how the rows of the input lie in it; and gaps, steps
that a whole-number order leaves out, which are refused, or put in with every cell missing.

Keys are looked at in the order of the arrangement, chunk by chunk, so that they need not be in memory (`Looked`): a pair that is
there twice is refused, and jumps of a whole-number order are found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Ints
from suffice.engines.engine import Array
from suffice.engines.local.kept import Column
from suffice.engines.sequences.keys import Times
from suffice.errors import DataError, TooLarge, bytes_in_words
from suffice.errors.remedies import argument, name_of

STEPS, MOST = 2**16, 2**19
"""Steps of a block of sequences: a quarter of all, but not fewer than this and not more; a longer sequence is a block itself."""


DENSE = 8
"""Times as many places as keys, up to which keys are put into their places sooner than they are sorted."""


class AsGiven:
    """The numbers of rows that lie as they were given."""

    dtype = np.dtype(np.int64)

    def __getitem__(self, rows: slice) -> Array:
        return np.arange(rows.start, rows.stop)


class Fetched:
    """A column that is fetched when it is first asked for."""

    def __init__(self, fetch: Callable[[], Array], dtype: npt.DTypeLike = np.int64) -> None:
        self._fetch, self.dtype = fetch, np.dtype(dtype)

    def __getitem__(self, rows: slice) -> Array:
        return self._rows[rows]

    @cached_property
    def _rows(self) -> Array:
        return self._fetch()


@dataclass(frozen=True, eq=False)
class Arrangement:
    """Which sequences there are, how long they are, and where they lie among the rows and blocks of an engine."""

    labels: Sequence[str]
    lengths: Ints
    position: Column = field(default_factory=AsGiven)
    """The row of the input that each row is; -1 for a step that was put in."""
    times: Times | None = None
    """The order of the rows, as they are arranged."""
    spacing: int | None = None
    """What lies between two steps, where the order is whole numbers."""
    n_put: int = 0
    """How many steps were put in."""
    given_cuts: Ints | None = None
    """The first sequence of each block, and the end of all, if blocks are not of the usual size."""
    numbers: tuple[int, ...] = ()
    """The numbers of the blocks, if they are not 0, 1, 2, …"""

    @cached_property
    def starts(self) -> Ints:
        """The first row of each sequence, and the end of all rows."""
        return starts_of(self.lengths)

    @cached_property
    def cuts(self) -> Ints:
        """The first sequence of each block, and the end of all."""
        return cut_sequences(self.starts) if self.given_cuts is None else self.given_cuts

    @property
    def n_rows(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def is_as_given(self) -> bool:
        """Whether the rows lie as those of the input do."""
        return bool(np.array_equal(self.position[0 : self.n_rows], np.arange(self.n_rows)))

    @cached_property
    def spans(self) -> dict[int, tuple[int, int]]:
        """The first and the last of the sequences of each block, by its number."""
        return dict(zip(self.numbers or range(len(self.cuts) - 1), pairwise(self.cuts.tolist()), strict=True))

    def lengths_of(self, number: int) -> Ints:
        """The lengths of the sequences of a block."""
        first, last = self.spans[number]
        return self.lengths[first:last]

    def rows_of(self, number: int) -> tuple[int, int]:
        """The first and the last row of a block."""
        first, last = self.spans[number]
        return int(self.starts[first]), int(self.starts[last])

    def find(self, row: int) -> tuple[str, int]:
        """The sequence and the step, from 1, of a row."""
        i = int(np.searchsorted(self.starts, row, "right")) - 1
        return self.labels[i], row - int(self.starts[i]) + 1

    def where(self, row: int, place: Callable[[int], str]) -> str:
        """Where a row stands, for a person; `place` says it of a row of the input."""
        (label, step), at = self.find(row), int(self.position[row : row + 1][0])
        return f"sequence {label!r}, step {step} ({'put in for a gap' if at < 0 else place(at)})"

    def pick(self, here: npt.NDArray[np.bool_]) -> Arrangement:
        """Only some of the sequences, in the same blocks; one of these may be empty."""
        rows, times = partial(_rows_of, here, self.lengths), self.times
        if times is not None:
            times = replace(times, column=Fetched(partial(rows, times.column), times.column.dtype))
        return replace(
            self,
            labels=tuple(self.labels[i] for i in np.flatnonzero(here).tolist()),
            lengths=self.lengths[here],
            position=Fetched(partial(rows, self.position), self.position.dtype),
            times=times,
            given_cuts=np.concatenate([[0], np.cumsum(here)])[self.cuts],
            numbers=tuple(self.spans),
        )


def _rows_of(here: npt.NDArray[np.bool_], lengths: Ints, column: Column) -> Array:
    """The rows of a column that the sequences have that are here."""
    return column[0 : int(lengths.sum())][np.repeat(here, lengths)]


def starts_of(lengths: Ints) -> Ints:
    """Where each begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def cut_sequences(starts: Ints, size: int | None = None) -> Ints:
    """The first sequence of each block of whole sequences of at most `size` steps together, if none is longer; and the end.
    Without a size there are four blocks, or more: enough for threads to share, and few, since each costs a millisecond."""
    cuts, n = [0], len(starts) - 1
    most = size or min(max(-(-int(starts[-1]) // 4), STEPS), MOST)
    while cuts[-1] < n:
        end = int(np.searchsorted(starts, starts[cuts[-1]] + most, "right")) - 1
        cuts.append(max(end, cuts[-1] + 1))
    return np.array(cuts)


def in_order(by: Array | None, order: Array | None) -> bool:
    """Whether rows are arranged already."""
    if by is None or order is None:
        keys = order if by is None else by
        return keys is None or bool((keys[:-1] <= keys[1:]).all())
    same = by[:-1] == by[1:]
    return bool(((by[:-1] < by[1:]) | (same & (order[:-1] <= order[1:]))).all())


def sorting(by: Array | None, order: Array | None) -> Ints | None:
    """How rows are arranged by a stable sort of their keys, None if they are arranged already."""
    if in_order(by, order):
        return None
    if order is not None and order.dtype.kind == "i":
        low, span = int(order.min()), int(order.max()) - int(order.min()) + 1
        size = span if by is None else span * (int(by.max()) + 1)
        if size < 2**62:
            key = (order - low).astype(np.int64) if by is None else by.astype(np.int64) * span + (order - low)
            return _sorting_of(key, size)
    return np.lexsort([k for k in (order, by) if k is not None]).astype(np.int64)


def _sorting_of(key: Ints, size: int) -> Ints:
    """How whole numbers from 0 up are sorted. Where they are dense and all differ, each is put in its place."""
    if size <= DENSE * len(key):
        at = np.full(size, -1, np.int64)
        at[key] = np.arange(len(key))
        at = at[at >= 0]
        if len(at) == len(key):
            return at
    return np.argsort(key, kind="stable").astype(np.int64)


@dataclass
class Looked:
    """What was found in keys, chunk by chunk in their order: the length of each sequence, and the jumps between steps."""

    n_sequences: int
    whole: bool
    """Whether the order is whole numbers."""
    spacing: int = 0
    n_jumps: int = 0
    n_rows: int = 0
    largest: tuple[int, int, Any] = (0, -1, None)
    """The largest jump, its sequence, and the time before it."""
    lengths: Ints = field(init=False)
    distances: Ints = field(init=False)
    """From the first to the last step of each sequence."""
    _last: tuple[int, Any] | None = None

    def __post_init__(self) -> None:
        self.lengths, self.distances = np.zeros((2, self.n_sequences), np.int64)

    @classmethod
    def of(cls, parts: Sequence[Looked]) -> Looked:
        """What was found in several parts, none of which goes on in another."""
        whole, first = all(p.whole for p in parts), np.cumsum([0, *(p.n_sequences for p in parts)]).tolist()
        every = cls(first[-1], whole)
        every.lengths = np.concatenate([p.lengths for p in parts])
        every.n_rows = sum(p.n_rows for p in parts)
        if whole:
            every.distances = np.concatenate([p.distances for p in parts])
            every.spacing, every.n_jumps = math.gcd(*(p.spacing for p in parts)), sum(p.n_jumps for p in parts)
            most = max(range(len(parts)), key=lambda i: parts[i].largest[0])
            jump, sequence, time = parts[most].largest
            every.largest = jump, first[most] + sequence, time
        return every

    def add(self, by: Array, order: Array | None, refuse: Callable[[int, Any, int], None]) -> None:
        """The next rows of the arrangement; of a pair that is there twice, `refuse` gets sequence, time and row."""
        self.lengths += np.bincount(by, minlength=self.n_sequences)
        if order is not None and len(order):
            own, times = by, order
            if self._last is not None:
                own, times = np.append(self._last[0], by), np.append(np.array([self._last[1]], order.dtype), order)
            within = own[1:] == own[:-1]
            twice = np.flatnonzero(within & (times[1:] == times[:-1]))
            if len(twice):
                i = int(twice[0]) + 1
                refuse(int(own[i]), times[i], self.n_rows + i - len(own) + len(by))
            if self.whole:
                self._jump(own, times, within)
            self._last = int(by[-1]), order[-1]
        self.n_rows += len(by)

    def _jump(self, own: Array, times: Array, within: Array) -> None:
        jumps = jumps_of(times)[within]
        if not len(jumps):
            return
        most, at = int(jumps.max()), own[1:][within]
        self.spacing = int(np.gcd(self.spacing, most if int(jumps.min()) == most else np.gcd.reduce(jumps)))
        self.n_jumps += len(jumps)
        first = np.flatnonzero(np.append(True, at[1:] != at[:-1]))
        self.distances[at[first]] += np.add.reduceat(jumps, first)
        if most > self.largest[0]:
            i = int(np.flatnonzero(within)[int(np.argmax(jumps))])
            self.largest = most, int(own[i]), times[i]

    @property
    def n_lacking(self) -> int:
        """How many steps lack between those that are there."""
        return sum((self.distances // self.spacing).tolist()) - self.n_jumps if self.spacing else 0  # exact, however large

    def filled_lengths(self, spacing: int) -> Ints:
        """The length of each sequence, the steps that lack included."""
        return np.where(self.lengths > 0, self.distances // spacing + 1, 0)


def jumps_of(times: Array) -> Ints:
    """Between whole numbers that follow each other."""
    return np.diff(times) if times.dtype.kind == "i" else np.rint(np.diff(times)).astype(np.int64)


MOST_PUT = 16
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
        if times is not None and n * bytes_of_step > max(limit, MOST_PUT * looked.n_rows * bytes_of_step):
            raise TooLarge(
                f"{argument('gaps', 'Missing()', 'missing')} would put in {n:,} steps among {looked.n_rows:,} rows, which take "
                f"{bytes_in_words(float(n * bytes_of_step))}, more than memory_limit: does {times.name!r} count steps?"
            )
        return n


REFUSE = Refuse()


def checked_unknown(unknown: Any) -> Refuse | Missing:
    """What becomes of states that are not known."""
    if not isinstance(unknown, (Refuse, Missing)):
        raise DataError(f"unknown states are handled by Refuse() or Missing(), not by {unknown!r}")
    return unknown
