"""Some rows by their numbers: for whoever looks at them one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from suffice.engines.engine import Block, is_missing
from suffice.engines.views.views import Size
from suffice.errors import DataError
from suffice.variables import Finite, Variable


@dataclass(frozen=True)
class TakeRows:
    """Of each block the rows that are wanted, by their places in it."""

    wanted: tuple[tuple[int, int], ...]
    """The block of each row, and its place there."""

    @classmethod
    def of(cls, sizes: Mapping[int, Size], rows: Sequence[int]) -> TakeRows:
        """Of rows by their numbers among all; the numbers of blocks are in the order of the rows.

        >>> TakeRows.of({0: Size(2, 2.0, 0, {}), 1: Size(2, 2.0, 0, {})}, [3, 0]).wanted
        ((1, 1), (0, 0))
        """
        numbers = sorted(sizes)
        ends = np.cumsum([sizes[number].rows for number in numbers])
        total = int(ends[-1]) if len(ends) else 0
        if wrong := [row for row in rows if not 0 <= row < total]:
            raise DataError(f"there is no row {wrong[0]}: rows are numbered from 0 to {total - 1}")
        blocks = np.searchsorted(ends, rows, side="right")
        starts = ends - [sizes[number].rows for number in numbers]
        return cls(tuple((numbers[b], int(row - starts[b])) for b, row in zip(blocks.tolist(), rows, strict=True)))

    def __call__(self, block: Block) -> Block:
        return block.take(np.array(self.places(block.number), np.int64))

    def places(self, number: int) -> list[int]:
        """The places that are wanted of a block, each once."""
        return sorted({place for own, place in self.wanted if own == number})

    def cells(self, name: str, variable: Variable, blocks: Mapping[int, Block]) -> list[str | float | None]:
        """The cells of a column in the order in which the rows were asked for."""
        found: dict[tuple[int, int], str | float | None] = {}
        for number, block in blocks.items():
            column = block.columns[name]
            states = variable.states if isinstance(variable, Finite) else None
            for place, cell, gap in zip(self.places(number), column.tolist(), is_missing(column).tolist(), strict=True):
                found[number, place] = None if gap else cell if states is None else states[cell]
        return [found[at] for at in self.wanted]
