"""Sequences on engines whose rows lie in partitions: each partition arranges the rows it has, wherever that is.

A sequence lies in one partition, its rows in whatever order. What the partitions say of their keys (`KeysOf`) is put together
here: which sequences there are, how long they are, and how far apart their steps are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from suffice.basis.arrays import Ints
from suffice.basis.libraries import pa
from suffice.engines.encoding.doubts import Notes
from suffice.engines.encoding.sources import Options
from suffice.engines.engine import Array, Block, Engine, Step, Sum, T, View
from suffice.engines.local.local import Local
from suffice.engines.partitions.partitions import ForEach, Partitions, PartitionWork, Reader, place
from suffice.engines.reading.frames import FrameSource
from suffice.engines.sequences.arranged import SortedKeys, refuse_changes, with_gaps
from suffice.engines.sequences.arrangement import Arrangement, AsGiven, Fetched, Looked, Missing, Refuse, cut_sequences, starts_of
from suffice.engines.sequences.keys import TEXT_ORDER, Keyed, ShownTimes, Times, about_text
from suffice.engines.steps.blocks import locate
from suffice.engines.views.views import Viewed
from suffice.errors import DataError
from suffice.errors.remedies import argument

R = TypeVar("R")

BLOCKS = 2**12
"""The numbers of a partition's blocks of sequences begin at so many times the number of its first block of rows."""


@dataclass(frozen=True)
class KeyColumns:
    """The keys, the words that mean a missing cell and, where steps that lack are put in, how far apart steps are."""

    by: str | None
    order: str | None
    missing: tuple[str, ...]
    spacing: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(k for k in (self.by, self.order) if k is not None)

    def arrange(self, blocks: Sequence[Block]) -> tuple[SortedKeys, Arrangement]:
        """The keys of the rows of a partition, in their order, and how the rows are arranged by them."""
        n = sum(block.n_rows for block in blocks)
        columns = {k: pa.chunked_array([block.kept[k] for block in blocks]) for k in self.names}
        columns = columns or {"rows": pa.nulls(n)}  # without keys, all rows are one sequence, and yet a table has a column

        def place_of(row: int) -> str:
            i, own = locate([block.n_rows for block in blocks], row)
            return place(blocks[i].number, own)

        source = FrameSource({k: partial(_itself, column) for k, column in columns.items()}, n, place=place_of)
        rows = Local(source, Options(missing=self.missing))
        rows.told.add((TEXT_ORDER, self.order))  # the user is told of it once, and not by each partition
        keyed = Keyed(rows, self.by, self.order)
        keyed.read_keys(())
        keys = SortedKeys.of(keyed)
        return keys, keys.arrangement(1 if self.spacing else 0, self.spacing or 0)


def _itself(value: R) -> R:
    return value


class KeysOf(NamedTuple):
    """What a partition has: the number of its first block, its rows, its sequences, and what was found in their order."""

    number: int
    n_rows: int
    labels: tuple[str, ...]
    looked: Looked
    text_order: bool
    """Whether the order is sorted as text, and not written so that this is right."""
    times: Times | None
    """How the order is to be shown; the times themselves, and the words of texts, stay where they are."""


@dataclass(frozen=True)
class LookAtKeys:
    """The keys of a partition; weights that differ within a sequence are refused."""

    keys: KeyColumns

    def __call__(self, blocks: Iterable[Block]) -> KeysOf | None:
        rows = list(blocks)
        if not rows:
            return None
        own, arrangement = self.keys.arrange(rows)
        if any(block.weight is not None for block in rows):
            weight = np.concatenate([block.weights for block in rows])
            at = arrangement.position[0 : len(weight)]
            refuse_changes(weight[at], arrangement, lambda row: arrangement.where(row, own.rows.source.place))
        times = None if own.times is None else replace(own.times, column=AsGiven(), words=own.times.words and own.times.words[:1])
        return KeysOf(rows[0].number, len(own.by), own.rows.labels, own.looked, bool(own.rows.notes), times)


@dataclass(frozen=True, eq=False)
class Arranging(Generic[R]):
    """The rows of a partition, arranged in blocks of whole sequences, for what is done with them."""

    keys: KeyColumns
    step: Callable[[Iterable[Block]], R]
    keep: tuple[str, ...] = ()

    def __call__(self, blocks: Iterable[Block]) -> R:
        rows = list(blocks)
        return self.step(self._arrange(rows) if rows else iter(()))

    def _arrange(self, rows: Sequence[Block]) -> Iterator[Block]:
        own, arrangement = self.keys.arrange(rows)
        at = arrangement.position[0 : arrangement.n_rows]
        there = at[at >= 0]
        columns = {n: np.concatenate([b.columns[n] for b in rows])[there] for n in rows[0].columns}
        weight = None if rows[0].weight is None else np.concatenate([b.weights for b in rows])[there]
        if self.keys.spacing:
            before = own.lacking(self.keys.spacing)
            columns = {n: with_gaps(cells, before) for n, cells in columns.items()}
            weight = None if weight is None else np.repeat(weight, before + 1)
        kept = {n: pa.chunked_array([b.kept[n] for b in rows]).take(pa.array(at, mask=at < 0)) for n in self.keep}
        for i, (start, stop) in enumerate(map(arrangement.rows_of, arrangement.spans)):
            yield Block(
                {n: c[start:stop] for n, c in columns.items()},
                None if weight is None else weight[start:stop],
                BLOCKS * rows[0].number + i,
                {n: c.slice(start, stop - start).combine_chunks() for n, c in kept.items()},
                arrangement.lengths_of(i),
            )


@dataclass(frozen=True)
class PlacesOf:
    """The rows that the steps of a partition are, or the times that they have."""

    keys: KeyColumns
    what: Literal["position", "times"]

    def __call__(self, blocks: Iterable[Block]) -> Array | None:
        rows = list(blocks)
        if not rows:
            return None
        _, arrangement = self.keys.arrange(rows)
        n, times = arrangement.n_rows, arrangement.times
        if self.what == "times" and times is not None:
            return times.to_user(times.column[0:n])
        return arrangement.position[0:n]


class Parted(Viewed):
    """Sequences of rows in partitions: each partition arranges its own."""

    empty = "there are no rows"

    def __init__(
        self, engine: Partitions, names: Sequence[str], keys: KeyColumns, arrangement: Arrangement, homes: Mapping[int, int]
    ) -> None:
        super().__init__(engine, _itself)
        self.parts, self.names, self.key_columns, self.keys = engine, tuple(names), keys, keys.names
        self.arrangement, self.homes = arrangement, homes

    def declare(self, variables: Any) -> Engine:
        rows: Any = self.parts.declare(variables)
        return Parted(rows, self.names, self.key_columns, self.arrangement, self.homes)

    def total(self, step: Step[T], names: Sequence[str], threads: int | None, what: str | None) -> T | None:
        if step.complete:
            self.require_complete(names)
        total: Sum[T] = self.parts.sum(self._work(step, names))
        return total.value

    def map(self, step: Callable[[Block], T], names: Sequence[str], *, keep: Sequence[str] = (), what: str = "") -> Iterator[T]:
        for part in self.parts.run(self._work(ForEach(step), names, keep)):
            yield from part

    def _work(self, step: Callable[[Iterable[Block]], Any], names: Sequence[str], keep: Sequence[str] = ()) -> PartitionWork:
        reader = self.parts.reader(names or self.names[:1], (*self.keys, *keep))
        return PartitionWork(reader, Arranging(self.key_columns, step, tuple(keep)))

    def hold(self, names: Sequence[str], view: View | None = None) -> Engine:
        return self if view is None else Viewed(self, view)

    def place(self, number: int, row: int) -> str:
        label, step = self.arrangement.find(self.arrangement.rows_of(number)[0] + row)
        return f"sequence {label!r}, step {step} (partition {self.homes[number] + 1})"


def part_sequences(rows: Partitions, by: str | None, order: str | None, names: Sequence[str], gaps: Refuse | Missing) -> Parted:
    """The sequences of rows in partitions."""
    keys = KeyColumns(by, order, rows.options.missing)
    found = {i: part for i, part in enumerate(_run(rows, keys, LookAtKeys(keys))) if part is not None}
    if not found:
        raise DataError("there are no rows")
    refuse_shared(found, by)
    parts = list(found.values())
    looked, labels = Looked.of([part.looked for part in parts]), tuple(label for part in parts for label in part.labels)
    n_put = gaps.n_put(looked, parts[0].times, labels, 8 * len(names) + 24, rows.options.memory_limit)
    keys = replace(keys, spacing=looked.spacing if n_put else None)
    lengths = looked.filled_lengths(looked.spacing) if n_put else looked.lengths
    cuts, numbers, homes = _blocks(found, lengths)
    first = np.cumsum([0, *(part.n_rows for part in parts[:-1])])

    def positions() -> Array:
        """The row of each step, counted through all partitions."""
        own = [p for p in _run(rows, keys, PlacesOf(keys, "position")) if p is not None]
        return np.concatenate([np.where(p < 0, p, p + n) for p, n in zip(own, first, strict=True)])

    times, spacing = _times(rows, keys, parts), looked.spacing or None
    arrangement = Arrangement(labels, lengths, Fetched(positions), times, spacing, n_put, cuts, numbers)
    return Parted(rows, names, keys, arrangement, homes)


def _run(rows: Partitions, keys: KeyColumns, work: Callable[[Iterable[Block]], R]) -> Iterator[R]:
    return rows.run(PartitionWork(Reader((), rows.options, keys.names or rows.names[:1]), work))


def refuse_shared(found: Mapping[int, KeysOf], by: str | None) -> None:
    """Refuse a sequence that lies in several partitions, and an order that is text in one and numbers in another."""
    home: dict[str, int] = {}
    kinds: dict[str, int] = {}
    for i, part in found.items():
        for label in part.labels:
            if home.setdefault(label, i) != i:
                what, way_out = f"the sequence {label!r} has", f"repartition by {by!r}"
                if by is None:
                    what = f"without {argument('by')}, all rows are one sequence, which has"
                    way_out = f"say {argument('by')}, or put the rows in one partition"
                where = f"rows in partition {home[label] + 1} and in partition {i + 1}"
                raise DataError(f"{what} {where}; a sequence lies in one: {way_out}")
        if part.times is not None:
            kinds.setdefault("text" if part.times.words else "numbers" if part.times.type is None else str(part.times.type), i)
    if len(kinds) > 1:
        (a, i), (b, j) = list(kinds.items())[:2]
        raise DataError(f"the order is {a} in partition {i + 1} and {b} in partition {j + 1}; partitions must agree")


def _blocks(found: Mapping[int, KeysOf], lengths: Ints) -> tuple[Ints, tuple[int, ...], dict[int, int]]:
    """The blocks that partitions cut their sequences into: the first sequence of each, its number, and its partition."""
    cuts, first = [0], 0
    homes: dict[int, int] = {}
    for i, part in found.items():
        own = cut_sequences(starts_of(lengths[first : first + len(part.labels)]))
        cuts += (own[1:] + first).tolist()
        homes |= {BLOCKS * part.number + j: i for j in range(len(own) - 1)}
        first += len(part.labels)
    return np.array(cuts), tuple(homes), homes


def _times(rows: Partitions, keys: KeyColumns, parts: Sequence[KeysOf]) -> Times | None:
    """The order of the steps, fetched when it is asked for."""
    if keys.order is None:
        return None
    if any(part.text_order for part in parts):
        Notes(set()).tell(TEXT_ORDER, [keys.order], about_text)

    def fetch() -> Array:
        return np.concatenate([p for p in _run(rows, keys, PlacesOf(keys, "times")) if p is not None])

    return ShownTimes(keys.order, Fetched(fetch), all(part.looked.whole for part in parts))
