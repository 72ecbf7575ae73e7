"""Why a step has its label: what each attribute and each neighbour adds to the scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.display import OneTable
from suffice.families.family import frame
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
        cls, model: LabelWeights, row: int, attributes: list[tuple[int, float]], around: tuple[int, int], probs: Array, best: int
    ) -> LabelExplanation:
        """The attributes of a step with their values, the best labels before and after it (−1 if there is none), and p(label)."""
        features, names, labels = model.features, model.vocabulary.names, model.vocabulary.labels
        order = np.argsort(-probs, kind="stable")
        other = int(order[0] if order[0] != best else order[min(1, len(order) - 1)])
        parts = []
        for a, value in attributes:
            k = slice(features.first[a], features.first[a + 1])
            own = dict(zip(features.labels[k].tolist(), (value * model.weights[k]).tolist(), strict=True))
            parts.append((names[a], own.get(best, 0.0), own.get(other, 0.0)))
        T, name, (before, after) = model.transitions, model.vocabulary.chain.label, around
        if before >= 0:
            parts.append((f"{name}[-1]={labels[before]}", float(T[before, best]), float(T[before, other])))
        if after >= 0:
            parts.append((f"{name}[+1]={labels[after]}", float(T[best, after]), float(T[other, after])))
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
