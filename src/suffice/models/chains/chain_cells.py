"""What is said of the cells of sequences, block by block: p(state) of each step, or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import Block, is_missing
from suffice.families.protocol.family import Array
from suffice.incomplete.chains.reduced_steps import ShownPart, child_numbers, child_states
from suffice.models.chains.chain_reading import ChainReading
from suffice.models.chains.spread import MixtureOfNumbers
from suffice.variables import Count, Finite


class StepNumbers(NamedTuple):
    """Numbers of steps: mean and standard deviation, and the ends of an interval where one is asked for."""

    mean: Array
    sd: Array
    lower: Array | None
    upper: Array | None


Cells = dict[str, "Array | StepNumbers"]
"""What is said of open variables: of finite ones p(state) of each step (states × steps), of others numbers."""


class BlockAnswers(NamedTuple):
    """What is said of the steps of a block, and of its sequences ln p and the step at which each is impossible, or −1: counted
    within the block, and where all blocks are joined within its sequence."""

    number: int
    cells: Cells
    log_prob: Array
    impossible: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StatePosterior:
    """The step that filters or smooths the sequences of a block, where the unknown variables that bear on others are finite."""

    reading: ChainReading
    smooth: bool
    level: float | None
    names: tuple[str, ...]

    def __call__(self, block: Block) -> BlockAnswers:
        reading = self.reading
        found = reading.layout.rows(block).posterior(reading.theta, self.names, smooth=self.smooth)
        cells = Cells()
        for name in self.names:
            if name in reading.states:
                cells[name] = found.states[name]
            else:
                cells[name] = shown_cell(reading, found.parts, block, name, self.level)
        return BlockAnswers(block.number, cells, found.log_likelihood, found.stuck)


def shown_cell(
    reading: ChainReading, parts: Sequence[ShownPart], block: Block, name: str, level: float | None
) -> Array | StepNumbers:
    """A variable on which no other cell depends but of its own step: as its distribution says, given states and parents."""
    variable, own = reading.chain.variables[name], block.columns[name]
    lost = is_missing(own)
    if isinstance(variable, Finite):
        probs = np.zeros((variable.n_states, len(own)))
        probs[own[~lost], np.flatnonzero(~lost)] = 1.0
        for some, found in child_states(parts, reading.theta, name):
            probs[:, some] = found
        return probs
    mean, sd = np.where(lost, np.nan, own), np.where(lost, np.nan, 0.0)
    ends = None if level is None else (mean.copy(), mean.copy())
    for some, mixture in child_numbers(parts, reading.theta, name):
        values = MixtureOfNumbers(*mixture, counts=isinstance(variable, Count))
        mean[some], sd[some] = values.mean, values.sd
        if ends is not None and level is not None:
            ends[0][some], ends[1][some] = values.interval(level)
    return StepNumbers(mean, sd, *(ends or (None, None)))


def join_parts(parts: list[Any]) -> Any:
    if not isinstance(parts[0], StepNumbers):
        return np.concatenate(parts, axis=1)
    ends: list[Any] = [None if x[0] is None else np.concatenate(x) for x in zip(*parts, strict=True)]
    return StepNumbers(*ends)
