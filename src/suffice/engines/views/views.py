"""Views: the rows of an engine redrawn or parted block by block, without a copy of them.

A view is a frozen value that turns a block into another one, so that it travels with the step that sees its rows. A bootstrap
sample and a fold of the rows are views. How many rows each block draws, or where it begins in the order of all rows, follows
from the rows of each block (`Tally`), so that sizes are right for all rows together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.variables import Finite, Variable, by_name
from suffice.engines.engine import Bits, Block, Engine, S, Seen, Step, Sum, T, View, is_missing
from suffice.engines.steps.bits import BitLayout
from suffice.engines.steps.blocks import Floats
from suffice.errors import DataError
from suffice.errors import whole as checked_whole

Seed = tuple[int, ...]

LARGE = 10**9
"""Rows beyond which numpy does not deal out weights exactly; the sizes of so large folds differ by a random trifle."""


class Size(NamedTuple):
    """Rows, their weight, whether all weights are whole numbers (a count of those that are not), missing cells by column."""

    rows: int
    weight: float
    broken: int
    missing: dict[str, int]


@dataclass(frozen=True)
class Tally(Step[dict[int, Size]]):
    """How many rows each block has."""

    def of(self, block: Block) -> dict[int, Size]:
        w = block.weight
        broken = 0 if w is None else int(np.count_nonzero(w != np.floor(w)))
        missing = {n: int(np.count_nonzero(is_missing(c))) for n, c in block.columns.items()}
        return {block.number: Size(block.n_rows, float(block.n_rows if w is None else w.sum()), broken, missing)}


@dataclass(frozen=True, eq=False)
class BootstrapRows:
    """A bootstrap sample: so many rows of each block, drawn with replacement. Weights that are whole numbers count equal rows,
    and the rows they count are what is drawn: the sample of a table of counts is that of the table written out. Other weights
    stay with the rows they belong to."""

    seed: Seed
    draws: Mapping[int, int]
    whole: bool

    @classmethod
    def of(cls, sizes: Mapping[int, Size], seed: Any, *, weighted: bool) -> BootstrapRows:
        numbers = sorted(sizes)
        whole = weighted and whole_weights(sizes.values())
        each = np.array([sizes[i].weight if whole else sizes[i].rows for i in numbers])
        draws = np.random.default_rng(seed_of(seed)).multinomial(int(each.sum()), each / each.sum())
        return cls(seed_of(seed), dict(zip(numbers, draws.tolist(), strict=True)), whole)

    def __call__(self, block: Block) -> Block:
        rng, n = np.random.default_rng([*self.seed, block.number]), self.draws[block.number]
        if self.whole:
            return reweight(block, rng.multinomial(n, block.weights / max(block.weights.sum(), 1.0)).astype(float))
        return block.take(np.sort(rng.integers(max(block.n_rows, 1), size=n)))


@dataclass(frozen=True, eq=False)
class FoldRows:
    """The rows inside or outside one of some folds, which are random and of sizes that differ by at most one row. Where weights
    count equal rows, those rows are what is dealt out, so that a row of the table may lie in several folds."""

    seed: Seed
    fold: int
    folds: int
    inside: bool
    starts: Mapping[int, int]
    """What of all rows, or of the rows that weights count, lies before each block."""
    whole: bool

    @classmethod
    def pairs(cls, sizes: Mapping[int, Size], folds: int, seed: Any, *, weighted: bool) -> Iterator[tuple[FoldRows, FoldRows]]:
        """The rows outside and those inside each of the folds."""
        numbers = sorted(sizes)
        whole = weighted and whole_weights(sizes.values())
        each = [int(sizes[i].weight) if whole else sizes[i].rows for i in numbers]
        starts = dict(zip(numbers, np.cumsum([0, *each])[:-1].tolist(), strict=True))
        for fold in range(folds):
            outside, inside = (cls(seed_of(seed), fold, folds, where, starts, whole) for where in (False, True))
            yield outside, inside

    def __call__(self, block: Block) -> Block:
        rng = np.random.default_rng([*self.seed, block.number])
        if self.whole:
            mine = self._deal(block, rng)
            return reweight(block, mine if self.inside else block.weights - mine)
        turn = (rng.permutation(block.n_rows) + self.starts[block.number]) % self.folds
        return block.take(np.flatnonzero((turn == self.fold) == self.inside))

    def _deal(self, block: Block, rng: np.random.Generator) -> Floats:
        """How many of the rows that each row stands for lie in the fold."""
        left, start = block.weights.astype(np.int64), self.starts[block.number]
        total = int(left.sum())
        mine = np.zeros_like(left)
        for fold in range(self.fold + 1):
            if total < LARGE:
                first = (fold - start) % self.folds
                size = 0 if first >= total else (total - 1 - first) // self.folds + 1
                mine = rng.multivariate_hypergeometric(left, size, method="marginals")
            else:
                mine = rng.binomial(left, 1.0 / (self.folds - fold))
            left = left - mine
        return mine.astype(float)


def reweight(block: Block, weight: Floats) -> Block:
    """The rows of a block that have weight, with this weight."""
    return replace(block, weight=weight).take(np.flatnonzero(weight))


def whole_weights(sizes: Iterable[Size]) -> bool:
    """Whether weights are numbers of equal rows."""
    each = list(sizes)
    return not any(s.broken for s in each) and sum(s.weight for s in each) < 2**53


def seed_of(seed: Any) -> Seed:
    """One whole number or several."""
    return tuple(checked_whole(s, "a seed", 0) for s in (seed if isinstance(seed, (list, tuple)) else [seed]))


@dataclass(frozen=True, eq=False)
class Through(Step[T]):
    """A step that sees rows through a view."""

    step: Step[T]
    view: View
    check: bool = True
    """Whether the engine is to refuse missing cells for the step."""

    @property
    def runs(self) -> int:  # type: ignore[override]
        return self.step.runs

    @property
    def complete(self) -> bool:  # type: ignore[override]
        return self.step.complete and self.check

    def __call__(self, blocks: Iterable[Block]) -> Sum[T]:
        return self.step(seen for block in blocks if (seen := self.view(block)).n_rows)


@dataclass(frozen=True, eq=False)
class Then:
    """A view, and what comes after it."""

    view: View
    step: Callable[[Block], Any]

    def __call__(self, block: Block) -> Any:
        return self.step(self.view(block))


def as_declared(variable: Variable) -> Variable:
    """A variable whose states are no longer to be inferred."""
    return replace(variable, inferred=False) if isinstance(variable, Finite) and variable.inferred else variable


class Viewed(Engine):
    """An engine whose rows are seen through a view. What the columns are stays as it is, as if declared. Engines whose columns
    are made of those of another say which of these they read (`_sources`), and by which view."""

    empty = "there are no rows among those picked"
    may_be_none = False
    """Whether there may be no rows at all."""
    own_gaps = False
    """Whether other cells are missing than those of the engine, so that it does not refuse them for this one."""

    def __init__(self, engine: Engine, view: View) -> None:
        self.engine, self.view = engine, view
        self.names, self.weighted, self.ordered, self.near = engine.names, engine.weighted, engine.ordered, engine.near
        self.memory_limit, self.sums_at_once = engine.memory_limit, engine.sums_at_once
        self.keys = engine.keys
        self.seen: dict[str, Seen] = {}

    def variables(self, names: Sequence[str]) -> dict[str, Variable]:
        return {n: as_declared(v) for n, v in self.engine.variables(names).items()}

    def text_columns(self, names: Sequence[str]) -> frozenset[str]:
        return self.engine.text_columns(names)

    def require(self, names: Sequence[str]) -> None:
        new = [n for n in names if n not in self.seen]
        if not new and self.n_rows is not None:
            return
        found = self.total(Tally(), new, None, None)
        if found is None and not self.may_be_none:
            raise DataError(self.empty)
        sizes, variables = list((found or {}).values()), self.variables(new)
        self.n_rows, self.weight = sum(s.rows for s in sizes), float(sum(s.weight for s in sizes))
        self.whole_weights = self.weighted and whole_weights(sizes)
        self.seen |= {n: Seen(variables[n], sum(s.missing[n] for s in sizes)) for n in new}

    def declare(self, variables: Any) -> Engine:
        return type(self)(self.engine.declare(variables), self.view)

    def _sources(self, names: Sequence[str]) -> Sequence[str]:
        """The columns of the engine that these are made of."""
        return names

    def _view_of(self, names: Sequence[str]) -> View:
        """What makes blocks of these columns."""
        return self.view

    def total(self, step: Step[T], names: Sequence[str], threads: int | None, what: str | None) -> T | None:
        if step.complete and self.own_gaps:
            self.require_complete(names)
        through = Through(step, self._view_of(names), check=not self.own_gaps)
        return self.engine.total(through, self._sources(names), threads, what)

    def map(self, step: Callable[[Block], T], names: Sequence[str], *, keep: Sequence[str] = (), what: str = "") -> Iterator[T]:
        return self.engine.map(Then(self._view_of(names), step), self._sources(names), keep=keep, what=what)

    def walk(self, step: Callable[[S, Block], S], state: S, names: Sequence[str], *, seed: Any = None) -> S:
        return self.hold(names).walk(step, state, names, seed=seed)

    def hold(self, names: Sequence[str], view: View | None = None) -> Engine:
        return self.engine.hold(names, self.view if view is None else Then(self.view, view))

    def bits(self, layout: BitLayout, **how: Any) -> Bits:
        held = self.hold(layout.names)
        return Bits(held, layout) if isinstance(held, Viewed) else held.bits(layout, **how)

    def place(self, number: int, row: int) -> str:
        return f"row {row + 1} of those picked from block {number + 1}"


@dataclass(frozen=True, eq=False)
class MarkMissing:
    """A view of some columns of a block, of which `marked` say whether the cells of others are missing."""

    names: tuple[str, ...]
    marked: Mapping[str, str]

    def __call__(self, block: Block) -> Block:
        found = block.columns
        columns = {n: is_missing(found[self.marked[n]]).astype(np.uint8) if n in self.marked else found[n] for n in self.names}
        return replace(block, columns=columns)


class Indicating(Viewed):
    """An engine with a column "no" or "yes" for each of some columns, whether its cell is missing."""

    own_gaps = True

    def __init__(self, engine: Engine, marked: Mapping[str, str]) -> None:
        super().__init__(engine, MarkMissing((), marked))
        self.marked = dict(marked)
        self.names = (*engine.names, *marked)
        self.empty = engine.empty

    def variables(self, names: Sequence[str]) -> dict[str, Variable]:
        own: dict[str, Variable] = super().variables([n for n in names if n not in self.marked])
        return {n: Finite(n, ("no", "yes")) if n in self.marked else own[n] for n in names}

    def text_columns(self, names: Sequence[str]) -> frozenset[str]:
        return self.engine.text_columns([n for n in names if n not in self.marked])

    def declare(self, variables: Any) -> Engine:
        named: Mapping[str, Any] = variables if isinstance(variables, Mapping) else by_name(variables)
        return Indicating(self.engine.declare({n: v for n, v in named.items() if n not in self.marked}), self.marked)

    def hold(self, names: Sequence[str], view: View | None = None) -> Engine:
        held = Indicating(self.engine.hold(self._sources(names)), {n: self.marked[n] for n in names if n in self.marked})
        return held if view is None else Viewed(held, view)

    def bits(self, layout: BitLayout, **how: Any) -> Bits:
        return Bits(self, layout)

    def place(self, number: int, row: int) -> str:
        return self.engine.place(number, row)

    def _sources(self, names: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(self.marked.get(n, n) for n in names))

    def _view_of(self, names: Sequence[str]) -> MarkMissing:
        return MarkMissing(tuple(names), {n: self.marked[n] for n in names if n in self.marked})
