"""Several countings in one pass: where rows are elsewhere, what counts is how often they are gone through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from suffice.engines.steps.bits import BitBlock, BitStep, Counts


@dataclass(frozen=True, eq=False)
class CountAll(BitStep):
    """The counts of several steps, one after the other in one array.

    Blocks that are made into bits on the way have the codes of their rows, too, so that steps may look at either.
    """

    steps: tuple[BitStep, ...]

    @property
    def n_cells(self) -> int:
        return sum(step.n_cells for step in self.steps)

    def add(self, block: BitBlock, out: Counts) -> None:
        for step, part in zip(self.steps, self.split(out), strict=True):
            step.add(block, part)

    def split(self, counts: Counts) -> Sequence[Counts]:
        """The counts of each step: views of one array."""
        return np.split(counts, np.cumsum([step.n_cells for step in self.steps])[:-1])
