"""Forecasts: the next steps of sequences, as steps of which nothing is seen but what is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import Block
from suffice.engines.sequences import Sequences, sequences
from suffice.errors import DataError, nearest, whole
from suffice.families.family import checked_level
from suffice.models.chain import Chain
from suffice.models.chain_answers import (
    BlockAnswers,
    Cells,
    StepNumbers,
    columns_of,
    joined,
    posterior_step,
    refuse_impossible,
    within_sequences,
)
from suffice.models.chain_reading import ChainReading, missing_in
from suffice.models.rows.frames import new_table

Column = npt.NDArray[Any]
Known = Mapping[str, Mapping[str, Column]]
"""What is given of the next steps, by sequence and variable; the sequence "" stands for all."""


def forecast(chain: Chain, x: Any, steps: Any, interval: float | None, given: Any) -> Any:
    """A row for each sequence and step ahead."""
    n, level = whole(steps, "steps", 1), None if interval is None else checked_level(interval)
    known = {} if given is None else _given(chain, x, given, n)
    shown = set.intersection(*(set(columns) for columns in known.values())) if known else set()
    reading = ChainReading.of(chain, x, ahead=[v for v in chain.variables if v not in shown], steps_ahead=n)
    step = Ahead(reading, n, level, known, tuple(reading.sequences.labels), _first_numbers(reading.sequences))
    blocks = list(reading.map(step, "forecasting sequences"))
    cells: Cells = {name: joined([b.cells[name] for b in blocks]) for name in blocks[0].cells if name not in shown}
    lost = within_sequences(reading.sequences.lengths + n, blocks)
    refuse_impossible(reading, np.concatenate([b.log_prob for b in blocks]), lost)
    names, values = columns_of(chain, cells)
    return new_table(reading.sequences.source, {**_labels(reading.sequences, n), **dict(zip(names, values, strict=True))})


@dataclass(frozen=True, eq=False)
class Ahead:
    """The step that answers for the next steps of the sequences of a block. `first` has the number of the first of them among
    all, by block."""

    reading: ChainReading
    n: int
    level: float | None
    known: Known
    labels: tuple[str, ...]
    first: Mapping[int, int]

    def __call__(self, block: Block) -> BlockAnswers:
        assert block.lengths is not None
        at = self.first[block.number]
        longer = lengthened(block, self.n, self.known, self.labels[at : at + len(block.lengths)])
        found: BlockAnswers = posterior_step(self.reading, self.level, self.reading.open, smooth=True)(longer)
        ends = np.cumsum(block.lengths + self.n)
        ahead = (ends[:, None] - self.n + np.arange(self.n)).reshape(-1)
        return found._replace(cells={name: _some(cells, ahead) for name, cells in found.cells.items()})


def lengthened(block: Block, n: int, known: Known, labels: tuple[str, ...]) -> Block:
    """Sequences with n more steps each, of which nothing is seen but what is given."""
    assert block.lengths is not None
    lengths = block.lengths + n
    ends = np.cumsum(lengths)
    ahead = (ends[:, None] - n + np.arange(n)).reshape(-1)
    old = np.ones(int(ends[-1]), bool)
    old[ahead] = False
    columns = {}
    for name, cells in block.columns.items():
        longer = np.full(len(old), missing_in(cells.dtype), cells.dtype)
        longer[old] = cells
        if known:
            own = [known[label if label in known else ""].get(name) for label in labels]
            if own and own[0] is not None:
                longer[ahead] = np.concatenate(own)  # type: ignore[arg-type]
        columns[name] = longer
    weight = None if block.weight is None else np.repeat(block.weight[np.cumsum(block.lengths) - block.lengths], lengths)
    return replace(block, columns=columns, weight=weight, lengths=lengths, kept={})


def _given(chain: Chain, x: Any, given: Any, n: int) -> Known:
    """What is known of the next steps, encoded as the chain's variables."""
    by = x.by if isinstance(x, Sequences) else None
    rows = sequences(given, by=by if by is not None and by in _names(given) else None)
    unknown = [c for c in rows.columns if c not in chain.variables and c != (x.order if isinstance(x, Sequences) else None)]
    if unknown:
        raise DataError(
            f"given= has a column {unknown[0]!r}, which the chain does not name{nearest(unknown[0], chain.variables)}"
        )
    rows = rows.select([c for c in rows.columns if c in chain.variables])
    rows = rows.with_variables({c: chain.variables[c] for c in rows.columns})
    labels = rows.labels if rows.by is not None else ("",)
    for label, length in zip(labels, rows.lengths.tolist(), strict=True):
        if length != n:
            whose = f" for sequence {label!r}" if label else ""
            raise DataError(f"given= has {length} rows{whose}, and there are {n} steps to forecast: one row for each")
    if rows.by is not None and (lacking := [x for x in x.labels if x not in labels]):
        raise DataError(f"given= says nothing of sequence {lacking[0]!r}: it needs {n} rows for each sequence")
    if any(rows.missing.values()):
        raise DataError("given= has missing cells: leave the whole column out of it if it is not known")
    parts = list(rows.data.map(_Cells()))
    columns = {c: np.concatenate([p[c] for p in parts]) for c in rows.columns}
    return {label: {c: cells[i * n : (i + 1) * n] for c, cells in columns.items()} for i, label in enumerate(labels)}


@dataclass(frozen=True)
class _Cells:
    def __call__(self, block: Block) -> dict[str, Column]:
        return dict(block.columns)


def _names(given: Any) -> set[str]:
    from suffice.engines.scan import rows_of

    return set(rows_of(given).columns)


@dataclass(frozen=True)
class _Number:
    def __call__(self, block: Block) -> tuple[int, int]:
        return block.number, 0 if block.lengths is None else len(block.lengths)


def _first_numbers(rows: Sequences) -> dict[int, int]:
    """The number of the first sequence of each block."""
    sizes = list(rows.data.take(rows.columns[:1]).map(_Number()))
    starts = np.cumsum([0, *(size for _, size in sizes)])
    return {number: int(start) for (number, _), start in zip(sizes, starts, strict=False)}


def _labels(rows: Sequences, n: int) -> dict[str, Any]:
    """Which sequence a row is of, which step ahead, and its place in the order if that is numbers."""
    S = rows.n_sequences
    columns: dict[str, Any] = {rows.by: np.repeat(np.array(rows.labels, object), n)} if rows.by is not None else {}
    columns["step"] = np.tile(np.arange(1, n + 1), S)
    order = rows.order_values
    if rows.order is not None and order is not None and order.dtype.kind == "f":
        ends = np.cumsum(rows.lengths) - 1
        some = np.flatnonzero(rows.lengths > 1)
        apart = float(order[ends[some[0]]] - order[ends[some[0]] - 1]) if len(some) else 1.0
        columns[rows.order] = np.repeat(order[ends], n) + apart * columns["step"]
    return columns


def _some(cells: Any, at: npt.NDArray[np.int64]) -> Any:
    if isinstance(cells, StepNumbers):
        parts: list[Any] = [None if part is None else part[at] for part in cells]
        return StepNumbers(*parts)
    return cells[:, at]
