"""Forecasts: the next steps of sequences, as steps of which nothing is seen but what is given."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import Block
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, ModelError, checked_level, listing, note, whole
from suffice.errors.remedies import argument
from suffice.graphs.lagged import variable_and_lag
from suffice.models.chains.chain_answers import columns_of, posterior_step, refuse_impossible, within_sequences
from suffice.models.chains.chain_cells import BlockAnswers, Cells, StepNumbers, join_parts
from suffice.models.chains.chain_parts import ChainParts
from suffice.models.chains.chain_reading import ChainReading, chain_phases
from suffice.models.chains.known_ahead import KnownAhead
from suffice.models.chains.numbers_ahead import DRAWS, MAX_PARTS, NumbersAhead
from suffice.models.rows.frames import new_table
from suffice.variables import Finite


def forecast(chain: ChainParts, x: Any, steps: Any, interval: float | None, given: Any, seed: int) -> Any:
    """A row for each sequence and step ahead."""
    n, level = whole(steps, "steps", 1), None if interval is None else checked_level(interval)
    if not isinstance(x, Sequences):
        ChainReading.of(chain, x)  # refuses it
    known = KnownAhead.of(chain, x, given, n)
    ahead = [v for v in chain.variables if v not in known.shown]
    step: Ahead | NumbersAhead | None = _numbers_ahead(chain, x, known, ahead, level, whole(seed, "a seed", 0, ModelError))
    step = step or Ahead(ChainReading.of(chain, x, ahead=ahead, steps_ahead=n), known, level)
    reading = step.reading
    blocks = list(reading.map(step, "forecasting sequences"))
    cells: Cells = {name: join_parts([b.cells[name] for b in blocks]) for name in blocks[0].cells if name not in known.shown}
    lost = within_sequences(reading.sequences.lengths + step.longer, blocks)
    refuse_impossible(reading, np.concatenate([b.log_prob for b in blocks]), lost)
    names, values = columns_of(chain, cells)
    return new_table(reading.sequences.source, {**_labels(reading.sequences, n), **dict(zip(names, values, strict=True))})


@dataclass(frozen=True, eq=False)
class Ahead:
    """The step that answers for the next steps of the sequences of a block: those of longer sequences."""

    reading: ChainReading
    known: KnownAhead
    level: float | None

    def __call__(self, block: Block) -> BlockAnswers:
        assert block.lengths is not None
        longer, n = self.known.lengthen(block), self.known.n
        found: BlockAnswers = posterior_step(self.reading, self.level, self.reading.open, smooth=True)(longer)
        ends = np.cumsum(block.lengths + n)
        ahead = (ends[:, None] - n + np.arange(n)).reshape(-1)
        return found._replace(cells={name: _some(cells, ahead) for name, cells in found.cells.items()})

    @property
    def longer(self) -> int:
        """By how many steps its sequences are longer."""
        return self.known.n


def _numbers_ahead(
    chain: ChainParts, x: Any, known: KnownAhead, ahead: Collection[str], level: float | None, seed: int
) -> NumbersAhead | None:
    """The step for numbers that bear on later steps ahead, together with states, or without a closed form; None where there are
    no such numbers, or where some are unknown up to now, too."""
    phases = chain_phases(chain)
    every = [(node, *variable_and_lag(v.name)) for p in phases for node in p.nodes.values() for v in node.parents]
    numbers = {n for n in ahead if not isinstance(chain.variables[n], Finite)}
    used = [(node, base, k) for node, base, k in every if base in numbers and (not k or known.n > 1)]
    drawn = any(node.by_rows or p.nodes[base].by_rows for p in phases for node, base, _ in used)
    if not drawn and not any(k for _, _, k in used):
        return None
    states = [n for n in ahead if n not in numbers and any(base == n for _, base, _ in every)]
    reading = ChainReading.of(chain, x, hidden=states)
    if reading.numbers or not (reading.states or drawn):
        return None
    for name in known.shown:
        unknown = [base for p in chain.template.parents(name) for base, _ in [variable_and_lag(p)] if base in ahead]
        if unknown:
            raise DataError(
                f"{argument('given')} has {name!r}, which depends on {listing(unknown)}: where numbers bear on later steps, it "
                "can have inputs only; leave it out"
            )
    leaves = [p.nodes[n] for p in phases for n in ahead if n not in reading.states]
    drawn = drawn or any(node.iterative for node in leaves)
    step = NumbersAhead(reading, known, level, tuple(n for n in chain.variables if n in ahead), drawn, seed)
    if drawn:
        note(f"{listing(sorted(numbers))} ahead has no closed form: the forecast is of {DRAWS:,} draws (seed {seed})")
    elif level is not None and known.n > step.n_exact:
        note(
            f"intervals more than {step.n_exact} steps ahead are of {MAX_PARTS:,} paths of the states, drawn (seed {seed}), as "
            "there are more; means and deviations are exact"
        )
    return step


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
