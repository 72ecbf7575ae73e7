"""The door to rows: what an engine can do, and what a learner may ask of it.

A learner never sees rows. It hands the engine a *step*, a frozen value that turns blocks of rows into something that adds, and
gets the sum. Where the rows are, in which order they are read and by how many threads, processes or machines, is the engine's
business; the sum has the same bits however the blocks were dealt out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from suffice.basis.variables import Variable
from suffice.engines.steps.blocks import ROWS as ROWS
from suffice.engines.steps.blocks import Array as Array
from suffice.engines.steps.blocks import Block as Block
from suffice.engines.steps.blocks import Each as Each
from suffice.engines.steps.blocks import Floats as Floats
from suffice.engines.steps.blocks import S as S
from suffice.engines.steps.blocks import Step as Step
from suffice.engines.steps.blocks import Sum as Sum
from suffice.engines.steps.blocks import T as T
from suffice.engines.steps.blocks import add_up as add_up
from suffice.engines.steps.blocks import checked_function as checked_function
from suffice.engines.steps.blocks import is_missing as is_missing
from suffice.engines.steps.blocks import ranges as ranges
from suffice.engines.steps.blocks import sum_up as sum_up
from suffice.errors import DataError, MissingCells, listing, nearest, quantity

if TYPE_CHECKING:
    from suffice.engines.encoding.doubts import Doubt
    from suffice.engines.steps.bits import BitLayout, BitStep, Counts, Fused


@dataclass(frozen=True)
class Seen:
    """A column that was read: what it is, its missing cells, and what may have been meant otherwise."""

    variable: Variable
    n_missing: int
    doubts: tuple[Doubt, ...] = ()


View = Callable[[Block], Block]
"""Other rows in place of those of a block: a frozen value that pickles."""


class Engine:
    """Rows, wherever they are. A learner is written against this, and runs on all that have it. An engine says of itself how
    columns are looked at (`require`) and how a step is summed over blocks (`total`) or called with each of them (`map`)."""

    names: tuple[str, ...]
    """The columns, the one of weights apart."""
    seen: Mapping[str, Seen]
    """The columns that were read so far."""
    summaries: Mapping[str, Any] = MappingProxyType({})
    """Summaries of columns that were asked for, for who asks again."""
    weights: str | None = None
    """The column that holds the weights of the rows, if one does."""
    weighted: bool = False
    """Whether the rows have weights,"""
    whole_weights: bool = False
    """and these are whole numbers, once they were read: how many equal rows each row stands for."""
    keys: tuple[str, ...] = ()
    """Columns that say which rows belong together and in which order: no variables, but they can be kept as they came."""
    n_rows: int | None = None
    """The number of rows, where it is known without reading them."""
    weight: float | None = None
    """The weight of all rows together, where it is known without reading them."""
    near: bool = False
    """Whether the rows are in this process or in files that it reads, so that a learner may keep some of them."""
    memory_limit: int = 2**31
    """Bytes that a learner may keep in memory of what it makes of the rows, if they are near."""
    ordered: bool = False
    """Whether the rows can be gone through one after the other, as `walk` does."""
    notes: Sequence[str] = ()
    """What was noted while columns were read."""
    sums_at_once: int | None = None
    """How many sums of parts of the rows are in memory here at a time; None of as many as there are threads."""
    empty: str = "there are no rows"
    """What is said where a step has seen no rows."""

    def check(self, names: Iterable[str]) -> None:
        """Refuse a column that is not there, or that is not one of the variables."""
        there = frozenset(self.names)
        for name in names:
            if name == self.weights:
                raise DataError(f"the column {name!r} holds the weights of the rows; it is no variable")
            if name not in there:
                raise DataError(f"the data have no column {name!r}{nearest(str(name), self.names)}")

    def require(self, names: Sequence[str]) -> None:
        """Read columns that were not read yet: then they are `seen`, and the number of rows and their weight are known."""
        raise NotImplementedError

    def variables(self, names: Sequence[str]) -> dict[str, Variable]:
        """What columns are; they are read only if that must be inferred."""
        self.require(names)
        return {n: self.seen[n].variable for n in names}

    def with_unknown(self, how: Literal["refuse", "missing"]) -> Engine:
        """The same rows; `how` states that declared columns do not have are handled."""
        if how == "missing":
            raise DataError("only rows of a frame or of files can have unknown states taken for missing, not views of them")
        return self

    def text_columns(self, names: Sequence[str]) -> frozenset[str]:
        """The columns among these whose cells are words of a text file, the empty one for a missing cell."""
        return frozenset()

    def require_complete(self, names: Sequence[str], missing: Mapping[str, int] | None = None) -> None:
        """Refuse missing cells in these columns, with their number in each: `missing`, where that was found on the way."""
        if missing is None:
            self.require(names)
            missing = {n: self.seen[n].n_missing for n in names}
        n_rows = self.n_rows or 0
        for name, n in missing.items():
            if n == n_rows:
                raise MissingCells(f"the column {name!r} has no values at all: every cell is missing")
        if found := [f"{name!r} {n:,}" for name, n in missing.items() if n]:
            raise MissingCells(
                f"there are missing cells ({listing(found, style='str')}, of {quantity(n_rows, 'row')}), and counting needs "
                "complete rows; no row is ever dropped: fit and em learn from incomplete rows, and learn does"
            )

    def declare(self, variables: Any) -> Engine:
        """The same rows, some of their columns declared otherwise."""
        raise NotImplementedError

    def fold(self, step: Step[T], names: Sequence[str], *, threads: int | None = None, what: str | None = None) -> T:
        """The sum of a step over all blocks of these columns. `what` is done is said by a bar where it takes long."""
        total = self.total(step, names, threads, what)
        if total is None:
            raise DataError(self.empty)
        return total

    def total(self, step: Step[T], names: Sequence[str], threads: int | None, what: str | None) -> T | None:
        """The sum of a step over all blocks, None of no rows."""
        raise NotImplementedError

    def map(self, step: Callable[[Block], T], names: Sequence[str], *, keep: Sequence[str] = (), what: str = "") -> Iterator[T]:
        """What a step makes of each block, in the order of the blocks; `keep` are columns to be passed on as they came."""
        raise NotImplementedError

    def walk(self, step: Callable[[S, Block], S], state: S, names: Sequence[str], *, seed: Any = None) -> S:
        """What state ← step(state, block) comes to over the blocks in their order; with a seed, of blocks of mixed rows."""
        raise NotImplementedError

    def hold(self, names: Sequence[str], view: View | None = None) -> Engine:
        """The same rows, or what a view makes of them, encoded once and kept near, for whoever passes over them often."""
        raise NotImplementedError

    def bits(self, layout: BitLayout, *, threads: int | None = None, memory_limit: float | None = None) -> Bits:
        """Finite columns as bits, for who counts many small tables. Rows are complete, and weights whole numbers."""
        return Bits(self, layout)

    def place(self, number: int, row: int) -> str:
        """Where a row of a block stands, for a person."""
        raise NotImplementedError


class Bits:
    """The rows of an engine as bits, for steps that count: see `engines.steps.bits`. Here they are made again for each step."""

    at_hand = False
    """Whether all rows are here, in one block in memory, so that `at_once` can be asked."""

    def __init__(self, engine: Engine, layout: BitLayout) -> None:
        self.engine, self.layout = engine, layout

    def fold(self, step: BitStep) -> Counts:
        """The sum of the step's counts over all blocks."""
        return self.engine.fold(step, self.layout.names, what="counting rows")

    def at_once(self, step: Fused[T]) -> T:
        """What a step makes of all rows."""
        raise NotImplementedError("not all rows are here")
