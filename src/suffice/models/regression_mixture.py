"""What a network says about a number that is a regression: its distribution, mixed over finite parents that are not observed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from suffice.errors import ModelError
from suffice.families.family import frame
from suffice.families.regression_cpd import RegressionCpd
from suffice.inference.network import Array
from suffice.models.mixture import ComponentMixture
from suffice.models.regressions import words
from suffice.statistics.configurations import frozen
from suffice.variables import Count


@dataclass(frozen=True, eq=False, repr=False)
class RegressionMixture(ComponentMixture):
    """p(target | given) = Σ weights · p(target | parents), a component for each configuration of the parents in `columns`.

    Of a binomial, a negative binomial or a gamma regression all of whose numbers are given.

    >>> from suffice import GammaLog
    >>> from suffice import Finite, Real
    >>> cpd = RegressionCpd(Real("cost"), (Finite("ill", ["no", "yes"]),), GammaLog(), 0.0, [np.log(3.0)], dispersion=0.5)
    >>> answer = RegressionMixture(cpd, [0.75, 0.25], {"ill": np.array([0, 1])})
    >>> answer
    p(cost), exact, gamma regression: mean 1.5, sd 1.5
    weight  mean  sd
    ──────  ────  ──────
    0.75    1     0.7071
    0.25    3     2.121
    >>> [round(end, 3) for end in answer.interval(0.95)], round(answer.log_prob(1.0), 4)
    ([0.139, 5.841], -0.7699)
    """

    cpd: RegressionCpd
    weights: Array
    columns: Mapping[str, Any]
    log_prob_of_evidence: float = 0.0
    how: str = "exact"
    given: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen(np.array(self.weights, np.float64)))
        trials = np.asarray(self.columns.get(str(self.cpd.family.trials), 0.0))
        if not np.all((trials >= 0) & (trials == np.floor(trials))):
            raise ModelError(f"the trials {self.cpd.family.trials!r} of {self.name!r} are a whole number, not {trials[0]:g}")
        if not np.isfinite(self._moments[1]).all():
            wrong = float(self._moments[0][~np.isfinite(self._moments[1])][0])
            raise ModelError(f"{self.name!r} is a {words(self.cpd)} whose mean here is {wrong:g}, which is none")

    @property
    def name(self) -> str:
        return self.cpd.child.name

    @property
    def names(self) -> tuple[str, ...]:
        """The target."""
        return (self.name,)

    @property
    def is_count(self) -> bool:  # type: ignore[override]
        return isinstance(self.cpd.child, Count)

    def to_frame(self) -> Any:
        """One row per component: its weight, mean and variance."""
        mean, variance = self._moments
        return frame({"weight": self.weights, "mean": mean, "variance": variance})

    def components(self) -> list[tuple[float, float, float]]:
        """The weight, mean and variance of each component."""
        return list(zip(self.weights.tolist(), *(m.tolist() for m in self._moments), strict=True))

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        return self.cpd.moments(self.columns, len(self))

    @cached_property
    def _each(self) -> Any:
        return self.cpd.distribution(self.columns, len(self))

    def _log_each(self, points: Array) -> Array:
        spread = {name: np.tile(column, len(points)) for name, column in self.columns.items()}
        return self.cpd.log_prob(spread | {self.name: np.repeat(points[:, 0], len(self))}).reshape(len(points), len(self))

    def _columns(self) -> dict[str, Array]:
        return {"weight": self.weights, "mean": self._moments[0], "sd": np.sqrt(self._moments[1])}

    def _words(self) -> tuple[str, str]:
        return f", {words(self.cpd)}", ""
