"""Sequences: which rows belong together, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Ints
from suffice.basis.variables import Finite, Real
from suffice.engines.data import Data
from suffice.engines.engine import Block, Engine, Step, T, View
from suffice.engines.local.local import Local
from suffice.engines.partitions.partitions import Partitions
from suffice.engines.scan import scan
from suffice.engines.schema import Schema
from suffice.engines.sequences.arranged import Arranged, arrange_rows
from suffice.engines.sequences.arrangement import REFUSE, Arrangement, Missing, Refuse
from suffice.engines.sequences.keys import Keyed
from suffice.engines.sequences.lagged import Columns, Lagged
from suffice.engines.sequences.parted import part_sequences
from suffice.engines.views.views import Viewed, seed_of
from suffice.errors import DataError, listing, nearest, quantity, whole
from suffice.errors.remedies import argument

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike, SeedLike, VariablesLike, WeightsLike

__all__ = ["Missing", "Refuse", "Sequences", "sequences"]


def sequences(
    data: RowsLike,
    by: str | None = None,
    order: str | None = None,
    *,
    gaps: Refuse | Missing = REFUSE,
    weights: WeightsLike | None = None,
    variables: VariablesLike | None = None,
    missing: Iterable[object] = (),
    integers: type[Real] | type[Finite] | None = None,
    memory_limit: int | str | None = None,
) -> Sequences:
    """Rows that follow each other: of the same sequence where the column `by` is the same, in the order of the column `order`.

    `data` and the other arguments are as in `scan`. Without `by`, all rows are one sequence. With `order`, sequences come sorted
    by their ids (by number if all are numbers, otherwise as text), whatever the order of the rows is; without it, rows and
    sequences are in the order given, and the rows of a sequence must be adjacent. An order is numbers, dates, times or text;
    ordered categories count as such. Both columns are no variables any more, and none of their cells may be missing.

    Steps of a whole-number order are as far apart as the greatest number that divides all of its jumps. Where one is left
    out, `gaps=Refuse()` refuses the rows, and `gaps=Missing()` puts in a step with every cell missing. The weight of a sequence
    is that of its rows, which must agree. Rows that are larger than `memory_limit` are sorted in temporary files.

    >>> rows = {"id": ["b", "a", "b"], "day": [2, 1, 1], "x": ["no", "yes", "yes"]}
    >>> s = sequences(rows, by="id", order="day")
    >>> s.labels, s.lengths, s.position
    (('a', 'b'), array([1, 2]), array([1, 2, 0]))
    >>> s.fold(lambda block: block.columns["x"])
    array([1, 1, 0], dtype=uint8)
    """
    if isinstance(data, Sequences):
        raise DataError("these are sequences already")
    if memory_limit is not None and isinstance(data, Data):
        raise DataError("the memory limit is said when rows are first scanned; scan their source again")
    rows = scan(data, variables, weights=weights, missing=missing, integers=integers, memory_limit=memory_limit)
    if not isinstance(gaps, (Refuse, Missing)):
        raise DataError(f"gaps are Refuse() or Missing(), not {gaps!r}")
    keys = checked_keys(rows, by, order)
    names = tuple(n for n in rows.columns if n not in keys)
    if not names:
        raise DataError(f"there are no columns besides {listing(keys)}")
    engine = rows.engine
    if hasattr(engine, "arrangement"):
        raise DataError("these rows are sequences already")
    if not isinstance(engine, (Local, Partitions)):
        engine = engine.hold(engine.names)
    if isinstance(engine, Partitions):
        arranged: Engine = part_sequences(engine, by, order, names, gaps)
    elif isinstance(engine, Local):
        arranged = arrange_rows(Keyed(engine, by, order), names, gaps)
    else:
        raise DataError("a part of rows that is larger than memory cannot be arranged: write it to a file, and read that")
    return Sequences(Data(arranged, names), by, order, data)


def checked_keys(rows: Data, by: Any, order: Any) -> tuple[str, ...]:
    """The names of the keys that are given, each a column of its own."""
    keys = tuple(k for k in (by, order) if k is not None)
    for what, key in (("by", by), ("order", order)):
        if key is not None and not isinstance(key, str):
            raise DataError(f"{argument(what)} is the name of a column, not {key!r}")
        if key is not None and key == rows.engine.weights:
            raise DataError(f"the column {key!r} holds the weights of the rows; it cannot be {argument(what)} too")
        if key is not None and key not in rows.engine.names:
            raise DataError(f"the data have no column {key!r}, which is {argument(what)}{nearest(key, rows.engine.names)}")
    if by is not None and by == order:
        raise DataError(f"{argument('by')} and {argument('order')} are both the column {by!r}")
    return keys


@dataclass(frozen=True, eq=False, repr=False)
class Sequences:
    """Sequences of rows, as a learner sees them. `sequences` makes them.

    >>> s = sequences({"x": [1.5, 2.5, 0.5]})
    >>> s.n_sequences, s.n_steps, s.columns
    (1, 3, ('x',))
    >>> s
    Sequences(1 sequence, 3 steps, 1 column)
    column  kind  values  missing
    ──────  ────  ──────  ───────
    x       Real
    """

    data: Data
    """The rows in their arrangement: a fold over them gets blocks of whole sequences, with their `lengths`."""
    by: str | None
    order: str | None
    source: Any = None
    """The rows as they were given."""

    @property
    def arrangement(self) -> Arrangement:
        """Where the sequences lie among the rows and blocks of the engine."""
        arrangement: Arrangement = self.data.engine.arrangement  # type: ignore[attr-defined]
        return arrangement

    @property
    def lengths(self) -> Ints:
        """The number of steps of each sequence."""
        return self.arrangement.lengths

    @property
    def labels(self) -> tuple[str, ...]:
        """The id of each sequence as a text, as `by` has it; "1" where there is but one."""
        return tuple(self.arrangement.labels)

    @property
    def n_sequences(self) -> int:
        """The number of sequences."""
        return len(self.lengths)

    @property
    def n_steps(self) -> int:
        """The number of steps of all sequences, those included that were put in for gaps."""
        return int(self.lengths.sum())

    n_rows = n_steps

    @property
    def weight(self) -> float:
        """The weight of all steps together: their number, where there are no weights."""
        return self.data.weight

    @cached_property
    def sequence_weight(self) -> float:
        """The weight of all sequences together: their number, where there are no weights."""
        return float(self.n_sequences) if not self.data.weighted else self.data.select(self.columns[:1]).fold(weigh_sequences)

    @property
    def position(self) -> Ints:
        """The row of the input for each step, from 0; -1 for a step that was put in for a gap."""
        return self.arrangement.position[0 : self.n_steps]

    def in_order(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values of steps (last axis) in the order of the rows as they were given, without steps that were put in for gaps."""
        if self.arrangement.is_as_given:
            return values
        position = self.position
        kept = np.flatnonzero(position >= 0)
        return np.asarray(values[..., kept[np.argsort(position[kept], kind="stable")]])

    @property
    def order_values(self) -> npt.NDArray[Any] | None:
        """The order of each step: numbers as float64, dates and times as datetime64, else texts; None without an order."""
        times = self.arrangement.times
        return None if times is None else times.to_user(times.column[0 : self.n_steps])

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the variables."""
        return self.data.columns

    @property
    def schema(self) -> Schema:
        """What each column is."""
        return self.data.schema

    @property
    def missing(self) -> Mapping[str, int]:
        """The number of missing cells in each column."""
        return self.data.missing

    def select(self, names: Iterable[str]) -> Sequences:
        """The same sequences with only these columns."""
        return replace(self, data=self.data.select(names))

    def with_variables(self, variables: VariablesLike) -> Sequences:
        """The same sequences, some of their columns declared otherwise."""
        return replace(self, data=self.data.with_variables(variables))

    def with_numbers(self, names: Iterable[str]) -> Sequences:
        """The same sequences, where numbers in these columns are numbers, however few values they have."""
        return replace(self, data=self.data.with_numbers(names))

    def hold(self) -> Sequences:
        """The same sequences, encoded once and kept near: for whoever passes over them often."""
        return replace(self, data=self.data.hold())

    def fold(self, step: Step[T] | Callable[[Block], T], *, threads: int | None = None, what: str | None = None) -> T:
        """The sum of a step over blocks of whole sequences, as `Data.fold`."""
        return self.data.fold(step, threads=threads, what=what)

    def lagged(self, columns: Columns, first: int = 0, last: int | None = None) -> Data:
        """Each step as a plain row, with columns of the steps before it: {new name: (column, lag)}.

        Only steps at the places from `first` to `last` within their sequence, from 0, are rows. What lies before the start is a
        missing cell.

        >>> s = sequences({"x": ["a", "b", "a"]})
        >>> s.lagged({"x": ("x", 0), "x[-1]": ("x", 1)}, first=1).distinct().columns["x[-1]"]
        array([0, 1], dtype=uint8)
        """
        self.data.engine.check([c for c, _ in columns.values()])
        checked = {str(n): (c, whole(lag, f"the lag of {c!r}", 0)) for n, (c, lag) in columns.items()}
        if not checked:
            raise DataError("lagged rows have at least one column")
        start, end = whole(first, "the first place", 0), None if last is None else whole(last, "the last place", 0)
        engine = Lagged(self.data.engine, checked, start, end)
        return Data(engine, engine.names)

    def resample(self, seed: SeedLike) -> Sequences:
        """A bootstrap sample of whole sequences: as many, drawn with replacement. Those drawn twice weigh twice.

        >>> s = sequences({"id": [1, 2, 3], "x": [0.5, 1.5, 2.5]}, by="id")
        >>> s.resample(0).sequence_weight
        3.0
        """
        rng = np.random.default_rng(seed_of(seed))
        return self._pick(rng.multinomial(self.n_sequences, np.full(self.n_sequences, 1 / self.n_sequences)))

    def split(self, folds: int, seed: SeedLike) -> Iterator[tuple[Sequences, Sequences]]:
        """For each of some folds of the sequences, chosen at random: those outside it and those inside.

        >>> s = sequences({"id": [1, 2, 3], "x": [0.5, 1.5, 2.5]}, by="id")
        >>> [(train.n_sequences, test.n_sequences) for train, test in s.split(3, 0)]
        [(2, 1), (2, 1), (2, 1)]
        """
        n = whole(folds, "the number of folds", 2)
        if n > self.n_sequences:
            raise DataError(f"{self.n_sequences:,} sequences cannot be dealt to {n} folds: whole sequences are held out")
        turn = np.random.default_rng(seed_of(seed)).permutation(self.n_sequences) % n
        for fold in range(n):
            yield self._pick((turn != fold).astype(np.int64)), self._pick((turn == fold).astype(np.int64))

    def _pick(self, times: Ints) -> Sequences:
        """The sequences that are here, each so often."""
        of_blocks = {number: times[first:last] for number, (first, last) in self.arrangement.spans.items()}
        return replace(self, data=Data(Picked(self.data.engine, PickSequences(of_blocks)), self.columns))

    def _headline(self) -> str:
        n, steps, lengths = self.n_sequences, self.n_steps, np.sort(self.lengths)
        about = f" of {lengths[0]:,} to {lengths[-1]:,}, median {np.median(lengths):g}" if n > 1 else ""
        return f"{quantity(n, 'sequence')}, {quantity(steps, 'step')}{about}, {quantity(len(self.columns), 'column')}"

    def __repr__(self) -> str:
        return f"Sequences({self._headline()})\n{Schema(self.schema, self.missing)!r}"

    def _repr_html_(self) -> str:
        return f"<p>Sequences: {self._headline()}</p>{Schema(self.schema, self.missing)._repr_html_()}"


def weigh_sequences(block: Block) -> float:
    """The weight of the sequences of a block."""
    lengths = np.ones(block.n_rows, np.int64) if block.lengths is None else block.lengths
    return float(block.weights[np.cumsum(lengths) - lengths].sum())


@dataclass(frozen=True, eq=False)
class PickSequences:
    """A view: whole sequences, each as often as it says for those of every block."""

    times: Mapping[int, Ints]

    def __call__(self, block: Block) -> Block:
        times, lengths = self.times[block.number], block.lengths
        if lengths is None:
            raise DataError("these rows are no sequences")
        rows = np.repeat(times, lengths)
        taken = replace(block, weight=block.weights * rows) if times.max(initial=0) > 1 else block
        if times.min(initial=1) > 0:
            return taken
        return replace(taken.take(np.flatnonzero(rows)), lengths=lengths[times > 0])


class Picked(Viewed):
    """Some of the sequences of an engine, as often as a view says: those that are there several times weigh so much more."""

    empty = "there are no sequences among those picked"
    view: PickSequences

    def __init__(self, engine: Any, view: PickSequences) -> None:
        super().__init__(engine, view)
        self.weighted = self.weighted or any(t.max(initial=0) > 1 for t in view.times.values())

    @cached_property
    def arrangement(self) -> Arrangement:
        """Where the sequences lie that are picked."""
        whole: Arrangement = self.engine.arrangement  # type: ignore[attr-defined]
        return whole.pick(np.concatenate([self.view.times[number] > 0 for number in whole.spans]))

    def hold(self, names: Sequence[str], view: View | None = None) -> Engine:
        held = super().hold(names, view)
        if view is not None:
            return held
        if not isinstance(held, Local):
            return self
        arrangement = replace(self.arrangement, given_cuts=None, numbers=())  # in memory blocks are cut anew
        return Arranged(held, held.names, arrangement, Refuse(), placed=True, input_place=self.input_place)

    def input_place(self, row: int) -> str:
        """Where a row of the input stands."""
        text: str = self.engine.input_place(row)  # type: ignore[attr-defined]
        return text

    def place(self, number: int, row: int) -> str:
        lengths = self.engine.arrangement.lengths_of(number)  # type: ignore[attr-defined]
        rows = np.flatnonzero(np.repeat(self.view.times[number], lengths))
        return self.engine.place(number, int(rows[row]))
