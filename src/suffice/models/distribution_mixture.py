"""What a network says about a number whose distribution was chosen: a mixture of members over its finite parents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from suffice.families.family import frame
from suffice.inference.network import Array
from suffice.models.mixture import ComponentMixture
from suffice.statistics.configurations import frozen
from suffice.variables import Distributed


@dataclass(frozen=True, eq=False, repr=False)
class DistributionMixture(ComponentMixture):
    """p(target | given) = Σ weights · p(target | parameters), a component for each configuration of the target's finite parents.

    >>> from suffice.exponential import Gamma
    >>> from suffice.families.exponential_node import ExponentialNode
    >>> wait = ExponentialNode(Gamma()).variable("wait")
    >>> answer = DistributionMixture(wait, [0.25, 0.75], np.array([[2.0, 1.0], [3.0, 0.5]]))
    >>> answer
    p(wait), exact, Gamma: mean 5, sd 3.536
    weight  shape  rate
    ──────  ─────  ────
    0.25    2      1
    0.75    3      0.5
    >>> [round(end, 4) for end in answer.interval(0.9)], round(answer.log_prob(2.0), 6)
    ([0.7656, 11.7978], -1.990369)
    """

    variable: Distributed
    weights: Array
    parameters: Array
    log_prob_of_evidence: float = 0.0
    how: str = "exact"
    given: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("weights", "parameters"):
            object.__setattr__(self, name, frozen(np.array(getattr(self, name), np.float64)))

    @classmethod
    def of_moments(
        cls, variable: Distributed, weights: Array, means: Array, variances: Array, **known: Any
    ) -> DistributionMixture:
        """The mixture of members with these means and variances, by which they are known."""
        family = variable.family
        members = family.kind.from_moments(family.distribution, means, variances)
        return cls(variable, weights, family.parameters_of(members), **known)

    @property
    def name(self) -> str:
        return self.variable.name

    @property
    def names(self) -> tuple[str, ...]:
        """The target."""
        return (self.name,)

    @property
    def is_count(self) -> bool:  # type: ignore[override]
        return self.variable.whole

    def to_frame(self) -> Any:
        """One row per component: its weight and its parameters."""
        return frame(self._columns())

    def components(self) -> list[dict[str, float]]:
        """The weight and the parameters of each component."""
        columns = self._columns()
        return [dict(zip(columns, row, strict=True)) for row in zip(*(c.tolist() for c in columns.values()), strict=True)]

    @cached_property
    def _members(self) -> Any:
        return self.variable.family.member(self.parameters)

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        return np.asarray(self._members.mean), np.asarray(self._members.variance)

    @cached_property
    def _each(self) -> Any:
        return self.variable.family.kind.scipy(self._members)

    def _log_each(self, points: Array) -> Array:
        return np.asarray(self._members.log_prob(points))

    def _columns(self) -> dict[str, Array]:
        return {"weight": self.weights, **dict(zip(self.variable.family.names, self.parameters.T, strict=True))}

    def _words(self) -> tuple[str, str]:
        return f", {repr(self.variable.family).removesuffix('()')}", ""
