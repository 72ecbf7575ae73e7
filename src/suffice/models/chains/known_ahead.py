"""What is known of the steps that come after sequences, and sequences that are so much longer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import Block
from suffice.engines.scan import rows_of
from suffice.engines.sequences.sequences import Sequences, sequences
from suffice.errors import DataError, nearest
from suffice.errors.remedies import argument
from suffice.models.chains.chain_parts import ChainParts
from suffice.models.chains.chain_reading import missing_in

Column = npt.NDArray[Any]

GIVEN = argument("given")


@dataclass(frozen=True, eq=False)
class KnownAhead:
    """What is given of the n next steps, by sequence and variable; the sequence "" stands for all. `labels` are those of all
    sequences, `first` has the number of the first sequence of each block."""

    n: int
    cells: Mapping[str, Mapping[str, Column]]
    labels: tuple[str, ...]
    first: Mapping[int, int]

    @classmethod
    def of(cls, chain: ChainParts, x: Any, given: Any, n: int) -> KnownAhead:
        cells = {} if given is None else _encode_given(chain, x, given, n)
        sizes = list(x.data.take(x.columns[:1]).map(_number_and_size))
        starts = np.cumsum([0, *(size for _, size in sizes)]).tolist()
        first = {number: start for (number, _), start in zip(sizes, starts, strict=False)}
        return cls(n, cells, tuple(x.labels), first)

    @property
    def shown(self) -> set[str]:
        """The variables of which all is known."""
        return set.intersection(*(set(columns) for columns in self.cells.values())) if self.cells else set()

    def lengthen(self, block: Block) -> Block:
        """Sequences with n more steps each, of which nothing is seen but what is given."""
        assert block.lengths is not None
        at, n = self.first[block.number], self.n
        labels = self.labels[at : at + len(block.lengths)]
        lengths = block.lengths + n
        ends = np.cumsum(lengths)
        ahead = (ends[:, None] - n + np.arange(n)).reshape(-1)
        old = np.ones(int(ends[-1]), bool)
        old[ahead] = False
        columns = {}
        for name, cells in block.columns.items():
            longer = np.full(len(old), missing_in(cells.dtype), cells.dtype)
            longer[old] = cells
            if self.cells:
                own = [self.cells[label if label in self.cells else ""].get(name) for label in labels]
                if own and own[0] is not None:
                    longer[ahead] = np.concatenate(own)  # type: ignore[arg-type]
            columns[name] = longer
        weight = None if block.weight is None else np.repeat(block.weight[np.cumsum(block.lengths) - block.lengths], lengths)
        return replace(block, columns=columns, weight=weight, lengths=lengths, kept={})


def _encode_given(chain: ChainParts, x: Any, given: Any, n: int) -> dict[str, dict[str, Column]]:
    """What is known of the next steps, encoded as the chain's variables."""
    by = x.by if isinstance(x, Sequences) else None
    rows = sequences(given, by=by if by is not None and by in rows_of(given).columns else None)
    unknown = [c for c in rows.columns if c not in chain.variables and c != (x.order if isinstance(x, Sequences) else None)]
    if unknown:
        raise DataError(
            f"{GIVEN} has a column {unknown[0]!r}, which the chain does not name{nearest(unknown[0], chain.variables)}"
        )
    rows = rows.select([c for c in rows.columns if c in chain.variables])
    rows = rows.with_variables({c: chain.variables[c] for c in rows.columns})
    labels = rows.labels if rows.by is not None else ("",)
    for label, length in zip(labels, rows.lengths.tolist(), strict=True):
        if length != n:
            whose = f" for sequence {label!r}" if label else ""
            raise DataError(f"{GIVEN} has {length} rows{whose}, and there are {n} steps to forecast: one row for each")
    if rows.by is not None and (lacking := [x for x in x.labels if x not in labels]):
        raise DataError(f"{GIVEN} says nothing of sequence {lacking[0]!r}: it needs {n} rows for each sequence")
    if any(rows.missing.values()):
        raise DataError(f"{GIVEN} has missing cells: leave the whole column out of it if it is not known")
    parts = list(rows.data.map(_cells))
    columns = {c: np.concatenate([p[c] for p in parts]) for c in rows.columns}
    return {label: {c: cells[i * n : (i + 1) * n] for c, cells in columns.items()} for i, label in enumerate(labels)}


def _cells(block: Block) -> dict[str, Column]:
    return dict(block.columns)


def _number_and_size(block: Block) -> tuple[int, int]:
    return block.number, 0 if block.lengths is None else len(block.lengths)
