"""Partitions: what every engine shares whose rows lie in other processes, as numbered Arrow tables.

Such an engine says one thing of its own: how some work is run on each of its partitions (`run`). The work is a frozen value that
pickles; it is called with the raw tables of a partition and gives something that adds, or a list. All else, what the columns are
included, is a sum over partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from suffice.basis.blas import one_blas_thread
from suffice.basis.libraries import pa
from suffice.basis.variables import Bins, Finite
from suffice.engines.encoding.doubts import Notes, doubts_about
from suffice.engines.encoding.encode import Encoder, Weights, Wrong
from suffice.engines.encoding.infer import CellsFound, cells_found, encoder_for
from suffice.engines.encoding.sources import Options
from suffice.engines.engine import Block, Engine, Seen, Step, Sum, T, View, ranges
from suffice.engines.reading.frames import FrameSource
from suffice.engines.views.sample import binned_variable
from suffice.engines.views.views import Size, Tally, Viewed, whole_weights
from suffice.errors import DataError

PARTITION = 2**32
"""The numbers of a partition's blocks begin at so many times its own number."""


def place(number: int, row: int) -> str:
    """Where a row stands, for a person."""
    partition, block = divmod(number, PARTITION)
    return f"partition {partition + 1}, block {block + 1}, row {row + 1}"


class Raw(NamedTuple):
    """The number of a block, an Arrow table of its rows, and of those of the next blocks if there are more than fit into one;
    where it is known, what says where a row of their file stands, and how many of its rows come before."""

    number: int
    table: Any
    place_in: Callable[[int], str] | None = None
    first: int = 0

    def place(self, row: int) -> str:
        """Where a row stands, for a person."""
        return place(self.number, row) if self.place_in is None else self.place_in(self.first + row)


@dataclass(frozen=True)
class Reader:
    """From Arrow tables to blocks of encoded columns, which are all declared, and columns that are kept as they are."""

    names: tuple[str, ...]
    options: Options
    keep: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        weights = () if self.options.weights is None else (self.options.weights,)
        return tuple(dict.fromkeys((*self.names, *self.keep, *weights)))

    def blocks(self, raw: Raw) -> Iterator[Block]:
        """The blocks of a table, which is encoded at once."""
        weights, cells = self.options.weights, {n: _column(raw.table, n) for n in self.columns}
        encoders: dict[str, Encoder] = {n: encoder_for(n, frame(n, cells[n], self.options), self.options) for n in self.names}
        if weights is not None:
            encoders[weights] = Weights(decimal=self.options.decimal or ".")
        codes = {n: encode_column(n, encoder, cells[n]) for n, encoder in encoders.items()}
        weight = None if weights is None else codes.pop(weights)
        whole = Block(codes, weight, raw.number, {n: cells[n] for n in self.keep})
        for i, (start, stop) in enumerate(ranges(whole.n_rows)):
            columns = {n: c[start:stop] for n, c in whole.columns.items()}
            kept = {n: c[start:stop] for n, c in whole.kept.items()}
            yield Block(columns, None if whole.weight is None else whole.weight[start:stop], raw.number + i, kept)


def frame(name: str, cells: Any, options: Options) -> FrameSource:
    """A column of Arrow as a source."""
    loose = frozenset([name] if options.loose else [])
    return FrameSource({name: lambda: cells}, None, loose=loose, decimal=options.decimal)


def _column(table: Any, name: str) -> Any:
    column = table.column(name)
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def encode_column(name: str, encoder: Encoder, cells: Any) -> Any:
    """The codes or numbers of a column of a block; a wrong cell is named with its column."""
    try:
        return encoder.encode(cells)
    except Wrong as wrong:
        raise Wrong(wrong.row, f"column {name!r}: {wrong.message}") from None


@dataclass(frozen=True)
class PartitionWork:
    """The work on a partition: what a step makes of its blocks."""

    reader: Reader
    step: Callable[[Iterable[Block]], Any]

    @one_blas_thread
    def __call__(self, blocks: Iterable[Raw]) -> Any:
        last: Raw | None = None

        def encode() -> Iterator[Block]:
            nonlocal last
            for last in blocks:
                yield from self.reader.blocks(last)

        try:
            return self.step(encode())
        except Wrong as wrong:
            assert last is not None
            raise DataError(f"{last.place(wrong.row)}, {wrong.message}") from None


@dataclass(frozen=True)
class ForEach:
    """A list of what a step makes of each block."""

    step: Callable[[Block], Any]

    def __call__(self, blocks: Iterable[Block]) -> list[Any]:
        return [self.step(block) for block in blocks]


class Look(NamedTuple):
    """What is known of some rows: their sizes, and what was found in each column."""

    size: Size
    found: dict[str, CellsFound]


@dataclass(frozen=True)
class LookAt(Step[Look]):
    """What the columns are that blocks keep as they came; those of which nothing is declared are guessed."""

    options: Options
    readings: Mapping[str, str]
    """How columns must be read that were guessed wrong at first."""

    def of(self, block: Block) -> Look:
        found = {}
        for name, cells in block.kept.items():
            encoder = encoder_for(name, frame(name, cells, self.options), self.options, self.readings.get(name))
            encode_column(name, encoder, cells)
            found[name] = cells_found(encoder, len(cells))
        return Look(Tally().of(block)[block.number], found)


class Partitions(Engine):
    """An engine over partitions, which are worked on side by side and so never in an order. `options` say how the rows are to be
    understood; `names` are all of their columns."""

    def __init__(self, names: Sequence[str], options: Options) -> None:
        self.options, self.names = options, tuple(n for n in names if n != options.weights)
        self.weights, self.weighted = options.weights, options.weights is not None
        self.seen: dict[str, Seen] = {}
        self._noted = Notes(set())
        self.notes = self._noted.all

    def run(self, work: PartitionWork) -> Iterator[Any]:
        """What some work gives for each partition, in their order."""
        raise NotImplementedError

    def sum(self, work: PartitionWork) -> Sum[Any]:
        """The sum of what some work gives, wherever it is added up."""
        total: Sum[Any] = Sum()
        for part in self.run(work):
            total += part
        return total

    def again(self, options: Options) -> Engine:
        """The same partitions, understood otherwise."""
        raise NotImplementedError

    def require(self, names: Sequence[str]) -> None:
        names = [n for n in self.options.with_targets(names) if n not in self.seen]
        if not names and self.n_rows is not None:
            return
        look = self._look(names, {})
        again = {n: how for n, f in look.found.items() if f.guessed and (how := f.reread(self.options))}
        found = {**look.found, **(self._look(list(again), again).found if again else {})}
        self.n_rows, self.weight = look.size.rows, look.size.weight
        self.whole_weights = self.weighted and whole_weights([look.size])
        variables = {n: f.variable(n, self.options) for n, f in found.items()}
        doubts = doubts_about(variables, found, self.options, self.n_rows)
        self.seen |= {n: Seen(v, found[n].n_missing, doubts.get(n, ())) for n, v in variables.items()}
        for name in names:
            bins = self.options.declared.get(name)
            if isinstance(bins, Bins) and not isinstance(self.seen[name].variable, Finite):
                self.seen[name] = replace(self.seen[name], variable=binned_variable(bins, name, self))
        self._noted.look({n: doubts[n] for n in names if n in doubts})

    def _look(self, names: Sequence[str], readings: Mapping[str, str]) -> Look:
        reader = Reader((), self.options, tuple(names) or self.names[:1])
        total: Look | None = self.sum(PartitionWork(reader, LookAt(self.options, readings))).value
        if total is None:
            raise DataError("there are no rows")
        if total.size.weight == 0:
            raise DataError("the weights of all rows are 0")
        return total

    def declare(self, variables: Any) -> Engine:
        return self.again(self.options.declare(variables, self.names))

    def reader(self, names: Sequence[str], keep: Sequence[str] = ()) -> Reader:
        """From the tables of a partition to blocks of these columns."""
        return Reader(tuple(names), replace(self.options, declared=self.variables(names)), tuple(keep))

    def total(self, step: Step[T], names: Sequence[str], threads: int | None, what: str | None) -> T | None:
        if step.complete:
            self.require_complete(names)
        total: Sum[T] = self.sum(PartitionWork(self.reader(names or self.names[:1]), step))
        return total.value

    def map(self, step: Callable[[Block], T], names: Sequence[str], *, keep: Sequence[str] = (), what: str = "") -> Iterator[T]:
        for part in self.run(PartitionWork(self.reader(names, keep), ForEach(step))):
            yield from part

    def hold(self, names: Sequence[str], view: View | None = None) -> Engine:
        return self if view is None else Viewed(self, view)

    def text_columns(self, names: Sequence[str]) -> frozenset[str]:
        return frozenset(names if self.options.decimal is not None else ())

    def place(self, number: int, row: int) -> str:
        return place(number, row)
