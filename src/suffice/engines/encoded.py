"""Columns that are encoded already, as a source: rows that a sample or a view gave, held in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from suffice.engines.blocks import ranges
from suffice.engines.encode import missing_code
from suffice.engines.memory import Held
from suffice.engines.reading import Read
from suffice.engines.sources import Categories, Kind
from suffice.variables import Finite

ROWS = 2**20
"""Rows that are made Arrow arrays at once."""


class Encoded:
    """A source of columns that are encoded already, for whoever declares them otherwise and must read them again."""

    stable = True

    def __init__(self, read: Mapping[str, Read], n_rows: int, place: Callable[[int], str] | None = None) -> None:
        self.names = tuple(read)
        self._place = place
        self.n_rows: int | None = n_rows
        self._variables = {n: r.variable for n, r in read.items()}
        self._columns = {n: r.column.array for n, r in read.items() if isinstance(r.column, Held)}

    def kind(self, name: str) -> Kind:
        return Kind.CATEGORY if isinstance(self._variables[name], Finite) else Kind.NUMBER

    def described(self, name: str) -> str:
        return repr(self._variables[name])

    def categories(self, name: str) -> Categories | None:
        variable = self._variables[name]
        return Categories(variable.states, True) if isinstance(variable, Finite) else None

    def n_bytes(self, names: Sequence[str]) -> int:
        return 0

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        for start, stop in ranges(self.n_rows or 0, ROWS):
            yield {n: self._arrow(n, start, stop) for n in names}

    def place(self, row: int) -> str:
        return f"row {row + 1} of those picked" if self._place is None else self._place(row)

    def _arrow(self, name: str, start: int, stop: int) -> Any:
        import pyarrow as pa

        cells, variable = self._columns[name][start:stop], self._variables[name]
        if not isinstance(variable, Finite):
            return pa.array(cells, from_pandas=True)
        codes = pa.array(cells.astype(np.int32), mask=cells == missing_code(cells.dtype))
        return pa.DictionaryArray.from_arrays(codes, pa.array(variable.states))
