"""Why a step has its label: what each attribute and each neighbour adds to the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.display import OneTable
from suffice.families.protocol.family import frame
from suffice.models.linear_chain.features import Attributes
from suffice.models.linear_chain.reading import LabelWeights

Array = npt.NDArray[np.float64]


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
