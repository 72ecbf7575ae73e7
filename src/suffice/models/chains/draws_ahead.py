"""Forecasts by draws: the states now as the filter says, and from there on each variable as its distribution says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.graphs.lagged import relative_name, variable_and_lag
from suffice.incomplete.first_slices import Stationary
from suffice.inference.finite.network import Array
from suffice.models.chains.chain_cells import StepNumbers
from suffice.models.chains.chain_reading import ChainReading
from suffice.variables import Finite

Column = npt.NDArray[Any]

DRAWS = 20_000
"""So many paths of a sequence are drawn."""


@dataclass(frozen=True, eq=False)
class DrawsAhead:
    """Draws of the n steps after the `length` steps of a sequence, made when they are asked for. `columns` has its cells, with
    what is given of the next steps; `unknown` are the variables that these do not show; `now` is p(joint state) at the last
    step."""

    reading: ChainReading
    columns: Mapping[str, Column]
    length: int
    n: int
    unknown: tuple[str, ...]
    now: Array
    seed: tuple[int, ...]

    def cells(self, name: str, level: float | None) -> Array | StepNumbers:
        """p(state) of a finite variable at each step, or mean, deviation and the ends of an interval of a number."""
        drawn, variable = self._paths[name], self.reading.chain.variables[name]
        if isinstance(variable, Finite):
            return np.stack([(drawn == state).mean(axis=0) for state in range(variable.n_states)])
        mean, sd = drawn.mean(axis=0), drawn.std(axis=0)
        if level is None:
            return StepNumbers(mean, sd, None, None)
        tails = (1.0 - level) / 2.0, (1.0 + level) / 2.0
        return StepNumbers(mean, sd, *(np.quantile(drawn, q, axis=0, method="inverted_cdf") for q in tails))

    @cached_property
    def _paths(self) -> dict[str, Column]:
        """The cells of each variable: draw × step."""
        chain, rng = self.reading.chain, np.random.default_rng(self.seed)
        states = rng.choice(len(self.now), DRAWS, p=self.now / self.now.sum())
        kinds = {name: np.int64 if isinstance(chain.variables[name], Finite) else np.float64 for name in self.unknown}
        drawn: dict[str, Column] = {name: np.empty((DRAWS, self.n), kind) for name, kind in kinds.items()}
        settles = isinstance(chain.first_slices, Stationary)
        for step in range(self.n):
            t = self.length + step
            for name in (n for n in chain.template.slice_at(t).topological_order if n in drawn):
                cpd = chain[name if settles else chain.template.parameter_name(name, t)]
                places = (variable_and_lag(p) for p in cpd.parents)
                columns = {relative_name(base, k): self._cells(base, step - k, drawn, states) for base, k in places}
                drawn[name][:, step] = cpd.draw(columns, rng, DRAWS)
        return drawn

    def _cells(self, name: str, step: int, drawn: Mapping[str, Column], states: npt.NDArray[np.int64]) -> Column:
        """The cells of a variable at a step, counted from the first that is ahead: drawn, in the states now, or as it is."""
        if step >= 0 and name in drawn:
            return drawn[name][:, step]
        space = self.reading.layout.space
        if step < 0 and name in space.unknown:
            return space.digits[name, -1 - step][states]
        return np.full(DRAWS, self.columns[name][self.length + step])
