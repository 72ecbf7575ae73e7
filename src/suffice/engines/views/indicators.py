"""Indicators: rows with columns beside their own that say whether a cell of another column is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.engines.engine import Bits, Block, Engine, Step, T, View, is_missing
from suffice.engines.steps.bits import BitLayout
from suffice.engines.views.views import Then, Through, Viewed
from suffice.variables import Finite, Variable, by_name

STATES = ("no", "yes")


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
    """An engine with a column "no" or "yes" for each of some columns, whether its cell is missing.

    >>> from suffice import scan
    >>> Indicating(scan({"x": ["a", None, "b"]}).engine, {"x_missing": "x"}).names
    ('x', 'x_missing')
    """

    def __init__(self, engine: Engine, marked: Mapping[str, str]) -> None:
        super().__init__(engine, MarkMissing((), marked))
        self.marked = dict(marked)
        self.names = (*engine.names, *marked)
        self.empty = engine.empty

    def variables(self, names: Sequence[str]) -> dict[str, Variable]:
        own: dict[str, Variable] = super().variables([n for n in names if n not in self.marked])
        return {n: Finite(n, STATES) if n in self.marked else own[n] for n in names}

    def untyped(self, names: Sequence[str]) -> frozenset[str]:
        return self.engine.untyped([n for n in names if n not in self.marked])

    def declared(self, variables: Any) -> Engine:
        named: Mapping[str, Any] = variables if isinstance(variables, Mapping) else by_name(variables)
        return Indicating(self.engine.declared({n: v for n, v in named.items() if n not in self.marked}), self.marked)

    def total(self, step: Step[T], names: Sequence[str], threads: int | None, what: str | None) -> T | None:
        if step.complete:
            self.require_complete(names)
        return self.engine.total(Through(step, self._marking(names), check=False), self._read(names), threads, what)

    def map(self, step: Callable[[Block], T], names: Sequence[str], *, keep: Sequence[str] = (), what: str = "") -> Iterator[T]:
        return self.engine.map(Then(self._marking(names), step), self._read(names), keep=keep, what=what)

    def hold(self, names: Sequence[str], view: View | None = None) -> Engine:
        held = Indicating(self.engine.hold(self._read(names)), {n: self.marked[n] for n in names if n in self.marked})
        return held if view is None else Viewed(held, view)

    def bits(self, layout: BitLayout, **how: Any) -> Bits:
        return Bits(self, layout)

    def place(self, number: int, row: int) -> str:
        return self.engine.place(number, row)

    def _read(self, names: Sequence[str]) -> list[str]:
        """The columns that are read for these."""
        return list(dict.fromkeys(self.marked.get(n, n) for n in names))

    def _marking(self, names: Sequence[str]) -> MarkMissing:
        return MarkMissing(tuple(names), {n: self.marked[n] for n in names if n in self.marked})
