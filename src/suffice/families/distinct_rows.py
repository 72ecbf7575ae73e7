"""The rows behind a contingency table, as a pass over rows sees them."""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.engines.engine import Block, Step
from suffice.statistics import Counts
from suffice.statistics.configurations import sizes


class DistinctRows:
    """The distinct rows of a contingency table, weighted by how often they occur: all that a fold needs to see of them."""

    def __init__(self, counts: Counts) -> None:
        keys, weight = counts.listed()
        codes = np.unravel_index(keys, sizes(counts.variables)) if counts.variables else ()
        columns = {v.name: c.astype(np.intp) for v, c in zip(counts.variables, codes, strict=True)}
        self.block = Block(columns, np.asarray(weight, dtype=np.float64))
        self.n_rows = self.block.n_rows

    def fold(self, step: Step[Any], *, threads: int | None = None, what: str | None = None) -> Any:
        return step.of(self.block)
