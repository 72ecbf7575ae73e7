"""The attributes of one step, found in its block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from suffice.engines.engine import Block
from suffice.models.linear_chain.answer_steps import answer_steps
from suffice.models.linear_chain.encoding import EncodedBlock
from suffice.models.linear_chain.explanation import LabelExplanation
from suffice.models.linear_chain.reading import (
    Array,
    LabelReading,
    LabelStep,
    LabelWeights,
)


class StepDetails(NamedTuple):
    """Of one step: its attributes with their values, and those of the next one; the best labels of two steps before it, of
    itself and of two after it (−1 for none); p(label)."""

    attributes: list[tuple[int, float]]
    following: list[tuple[int, float]]
    best: tuple[int, ...]
    probs: Array


@dataclass(frozen=True, eq=False)
class DescribeStep(LabelStep):
    """The details of one step, counted through all blocks, in the block that has it; `first` is that of each block."""

    at: int
    first: dict[int, int]

    def __call__(self, block: Block) -> StepDetails | None:
        row = self.at - self.first[block.number]
        if not 0 <= row < block.n_rows:
            return None
        assert block.lengths is not None
        ends = np.cumsum(block.lengths)
        q, answers = int(np.searchsorted(ends, row, "right")), answer_steps(self.model)
        labels = answers.best(self.model, self.tables)(block).labels[0].tolist()
        first, end, own = int(ends[q] - block.lengths[q]), int(ends[q]), self.encoded(block)
        best = tuple(labels[i] if first <= i < end else -1 for i in range(row - 2, row + 3))
        probs = answers.probabilities(self.model, self.tables)(block)[row]
        following = self._attributes(own, row + 1) if row + 1 < end else []
        return StepDetails(self._attributes(own, row), following, best, probs)

    def _attributes(self, own: EncodedBlock, row: int) -> list[tuple[int, float]]:
        place = int(np.flatnonzero(own.layout.order == row)[0])
        found = own.attributes.take(own.groups[:, place].astype(np.int64)).items.tolist()
        numbers = zip(self.tables.numbers, own.numbers[place].tolist(), strict=True)
        return [*((a, 1.0) for a in found), *((a, x) for (_, _, a), x in numbers)]


def explained(model: LabelWeights, reading: LabelReading, at: int, row: int) -> LabelExplanation:
    """The explanation of one step, counted through all sequences as they are arranged."""
    details = next(d for d in reading.map(DescribeStep(model, reading.tables, at, reading.first_steps()), "") if d is not None)
    return LabelExplanation.of(model, row, (details.attributes, details.following), details.best, details.probs)
