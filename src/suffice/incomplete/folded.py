"""Components of finite rows that are elsewhere: summed in one place if they are few, and else left where the rows are.

A reduction is summed once, and iterations run over it here. Where rows are in other processes and differ so much that their
components would take more than `finite.MOST` bytes, or more than there is room for, an E-step is a fold: each block is reduced,
and what it is expected to count adds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from suffice.basis.arrays import Array
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step
from suffice.errors import FitError, bytes_in_words, note
from suffice.incomplete.components import Expectation, FlatTables, Shown, Theta
from suffice.incomplete.finite import ComponentTable, FiniteComponents


@dataclass(frozen=True, eq=False)
class ExpectFinite(Step[tuple[float, Array]]):
    """ln p of what the rows of a block show, and what they are expected to count."""

    tables: FlatTables
    cells: Array

    def of(self, block: Block) -> tuple[float, Array]:
        reduction = ComponentTable(self.tables).add(block).reduction()
        found = FiniteComponents(reduction, 1).expect(Theta(self.tables, self.cells))
        return found.log_likelihood, found.cells


@dataclass(frozen=True, eq=False)
class FoldedComponents:
    """The components of rows that stay where they are; see `suffice.incomplete.components`."""

    rows: Data
    tables: FlatTables
    shown: Shown
    threads: int | None = None
    passes: ClassVar[int] = 1

    @staticmethod
    def of(rows: Data, here: FiniteComponents) -> FoldedComponents:
        """Of rows whose components are too many to be here; what complete families count is."""
        most = bytes_in_words(float(here.reduction.most))
        note(
            f"what is missing in the rows differs so much that it would take more than {most} in one place: "
            "each iteration passes over the rows"
        )
        return FoldedComponents(rows.hold(), here.reduction.tables, here.shown, here.threads)

    def expect(self, theta: Theta) -> Expectation:
        """By a pass over the rows."""
        log_likelihood, cells = self.rows.fold(ExpectFinite(self.tables, theta.cells), threads=self.threads)
        return Expectation(log_likelihood, cells, {}, {})

    def parts(self, n: int) -> list[FoldedComponents]:
        if n == 1:
            return [replace(self)]
        raise FitError(
            "Incremental(batches) cannot be used here: the rows are elsewhere, or too different to be here; leave it out"
        )
