"""What the runs of `mixture`, `hmm` and `factors` have in common: the ends of all starts, the numbers that were tried, scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from suffice.errors import note, quantity
from suffice.errors.remedies import in_python
from suffice.families.protocol.family import Array
from suffice.iteration import Run
from suffice.learning.ascent.climb import Climb
from suffice.output.display import OneTable
from suffice.recipes.latent.choices import Choices, StartResult

M = TypeVar("M", bound=Any)

SHOWN = 8
"""Columns of each kind that a table of classes shows."""


@dataclass(frozen=True, eq=False, repr=False)
class LatentRun(OneTable, Run[M]):
    """A model with something hidden, and how it was found."""

    optima: tuple[StartResult, ...]
    """The end of every start, the best first, those that collapsed last."""
    choices: Choices | None
    """The numbers of classes, states or factors that were tried, if there were several."""

    @property
    @abstractmethod
    def _n(self) -> float:
        """N: the weight of the rows or steps that were learned from."""

    @property
    def n_parameters(self) -> int:
        """The free parameters; what is shared counts once."""
        return int(self.model.n_parameters)

    @property
    def bic(self) -> float:
        """log-likelihood − ½ k ln N, k the number of parameters and N that of rows or steps: higher is better (half of what
        mclust prints)."""
        return self.log_likelihood - 0.5 * self.n_parameters * float(np.log(self._n))

    @property
    def aic(self) -> float:
        """log-likelihood − k: higher is better."""
        return self.log_likelihood - self.n_parameters

    def _end(self) -> str:
        """How the starts ended, in words."""
        good = sum(o.collapsed is None for o in self.optima)
        same = sum(o.collapsed is None and self.objective - o.objective <= 1e-3 for o in self.optima)
        starts = f"; best of {good} starts, {same} of which reached it" if len(self.optima) > 1 else ""
        fallen = f", {len(self.optima) - good} more collapsed" if len(self.optima) > good else ""
        return f"{'' if self.converged else 'not '}converged in {quantity(self.n_iterations, 'iteration')}{starts}{fallen}"

    def _below(self) -> str:
        return f"\n\n{self.choices!r}" if self.choices else ""


def class_table(run: Any, more: Mapping[str, Array]) -> tuple[list[str], list[list[object]]]:
    """A line for each class or state of a run: its weight, what else is told, and the parameters of its columns."""
    columns: list[tuple[str, list[Any]]] = [("weight", run.weights.tolist()), *((n, v.tolist()) for n, v in more.items())]
    for j, name in enumerate(run.columns[:SHOWN]):
        columns += [(name, run.means[:, j].tolist()), ("sd", np.sqrt(run.covariances[:, j, j]).tolist())]
    columns += [(f"rate of {name}", rates.tolist()) for name, rates in list(run.rates.items())[:SHOWN]]
    for name, p in list(run.probs.items())[:SHOWN]:
        states = run.model.variables[name].states
        columns.append((name, [f"{states[i]} {q[i]:.3g}" for q, i in zip(p, p.argmax(1), strict=True)]))
    lines = zip(run.model.variables[run.name].states, *(values for _, values in columns), strict=True)
    return [run.name, *(name for name, _ in columns)], [list(line) for line in lines]


def tell_of_ends(climbs: list[Climb], stopped: bool, starts: int, what: str) -> None:
    """Note what the user should know of how starts ended, and bring the best to the front."""
    fallen = [c.stopped for c in climbs if c.stopped]
    if stopped:
        note(f"stopped in start {len(climbs)} of {starts}: the {what} is the best so far")
    if fallen:
        note(f"{len(fallen)} of {len(climbs)} starts collapsed and were given up: {fallen[0]}")
    climbs.sort(key=lambda c: (bool(c.stopped), -c.point.objective))


def optima_of(climbs: list[Climb]) -> tuple[StartResult, ...]:
    """What each start led to."""
    ends = [c.trace[-1].objective if c.trace else -np.inf for c in climbs]
    return tuple(
        StartResult(end, len(c.trace), c.converged, in_python(c.stopped) or None) for end, c in zip(ends, climbs, strict=True)
    )
