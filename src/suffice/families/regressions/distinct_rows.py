"""A pass over rows, as iterative families make it, and the rows behind a contingency table, as such a pass sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from suffice.engines.engine import Block, Step
from suffice.statistics import Counts
from suffice.statistics.configurations import sizes


@dataclass(frozen=True, eq=False)
class Pass(Step[Any]):
    """What a function, such as a method of a family, says of the columns and weights of some rows."""

    says: Callable[..., Any]
    about: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    def of(self, block: Block) -> Any:
        return self.says(*self.about, block.columns, block.weight, **self.options)


class DistinctRows:
    """The distinct rows of a contingency table, weighted by how often they occur: all that a fold needs to see of them."""

    def __init__(self, counts: Counts) -> None:
        keys, weight = counts.listed()
        codes = np.unravel_index(keys, sizes(counts.variables)) if counts.variables else ()
        columns = {v.name: c.astype(np.intp) for v, c in zip(counts.variables, codes, strict=True)}
        self.block = Block(columns, np.asarray(weight, dtype=np.float64))
        self.n_rows = self.block.n_rows

    def stretches(self, n: int) -> Block:
        """Some of the rows, from which iterations could start: none, as they are counted already."""
        return Block({}, np.zeros(0))

    def fold(self, step: Step[Any], *, threads: int | None = None, what: str | None = None) -> Any:
        return step.of(self.block)
