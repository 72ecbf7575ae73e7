"""Why a step has its label: what each attribute and each neighbour adds to the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.engines.engine import Block
from suffice.families.protocol.family import frame
from suffice.inference.finite.network import Array
from suffice.models.linear_chain.encoding import EncodedBlock
from suffice.models.linear_chain.features import Attributes
from suffice.models.linear_chain.reading import LabelReading, LabelSteps, LabelWeights
from suffice.output.display import OneTable


@dataclass(frozen=True, eq=False, repr=False)
class LabelExplanation(OneTable):
    """Contributions to the score of the best label of a step and of the next most probable, by attribute and neighbour."""

    row: int
    label: str
    other: str
    probability: float
    other_probability: float
    contributions: tuple[tuple[str, float, float], ...]
    """What, and what it adds to either label; those that tell them apart most come first."""

    @classmethod
    def of(
        cls, model: LabelWeights, row: int, attributes: tuple[Attributes, Attributes], around: tuple[int, ...], probs: Array
    ) -> LabelExplanation:
        """The attributes of a step and of the next one with their values, the best labels of two steps before it, itself and two
        after it (−1 if there is none), and p(label)."""
        labels, best = model.vocabulary.labels, around[2]
        order = np.argsort(-probs, kind="stable")
        other = int(order[0] if order[0] != best else order[min(1, len(order) - 1)])
        one, two = (
            model.features.contributions(model.vocabulary, model.weights, attributes, (*around[:2], j, *around[3:]))
            for j in (best, other)
        )
        parts = [(what, one[what], two[what]) for what in one]
        parts.sort(key=lambda part: (-abs(part[1] - part[2]), part[0]))
        chances = float(probs[best]), float(probs[other])
        return cls(row, labels[best], labels[other], *chances, tuple(parts))

    def to_frame(self) -> Any:
        """One row for each contribution."""
        header, rows = self._table()
        return frame({name: [row[i] for row in rows] for i, name in enumerate(header)})

    def _headline(self) -> str:
        return f"row {self.row} is {self.label} (p = {self.probability:.4f}), not {self.other} (p = {self.other_probability:.4f})"

    def _table(self) -> tuple[list[str], list[list[object]]]:
        rows: list[list[object]] = [[what, a, b, a - b] for what, a, b in self.contributions]
        return ["attribute", self.label, self.other, "difference"], rows


@dataclass(frozen=True, eq=False)
class ExplainStep(LabelSteps):
    """The explanation of one step, counted through all blocks, in the block that has it; `first` is that of each block."""

    at: int
    first: dict[int, int]
    row: int
    """What the step is called."""

    def __call__(self, block: Block) -> LabelExplanation | None:
        row = self.at - self.first[block.number]
        if not 0 <= row < block.n_rows:
            return None
        assert block.lengths is not None
        ends = np.cumsum(block.lengths)
        q = int(np.searchsorted(ends, row, "right"))
        labels = self.best(block).labels[0].tolist()
        first, end, own = int(ends[q] - block.lengths[q]), int(ends[q]), self.encode(block)
        best = tuple(labels[i] if first <= i < end else -1 for i in range(row - 2, row + 3))
        probs = self.probabilities(block)[row]
        following = self._attributes(own, row + 1) if row + 1 < end else []
        return LabelExplanation.of(self.model, self.row, (self._attributes(own, row), following), best, probs)

    def _attributes(self, own: EncodedBlock, row: int) -> list[tuple[int, float]]:
        place = int(np.flatnonzero(own.layout.order == row)[0])
        found = own.attributes.take(own.groups[:, place].astype(np.int64)).items.tolist()
        numbers = zip(self.tables.numbers, own.numbers[place].tolist(), strict=True)
        return [*((a, 1.0) for a in found), *((a, x) for (_, _, a), x in numbers)]


def explain_step(model: LabelWeights, reading: LabelReading, at: int, row: int) -> LabelExplanation:
    """The explanation of one step, counted through all sequences as they are arranged."""
    step = ExplainStep(model, reading.tables, at, reading.first_steps(), row)
    return next(found for found in reading.map(step, "") if found is not None)
