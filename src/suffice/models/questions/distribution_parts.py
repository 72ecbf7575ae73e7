"""Components of a number whose distribution was chosen: its members, one for each configuration of its finite parents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from suffice.errors import ModelError
from suffice.inference.finite.network import Array, Ints
from suffice.models.questions.densities import Columns, MixtureParts, shaped
from suffice.variables import Distributed


@dataclass(frozen=True, eq=False)
class DistributionParts(MixtureParts):
    """The members of the variable's distribution with these parameters, a line each.

    >>> from suffice.exponential import Gamma
    >>> from suffice.families.chosen.exponential_node import ExponentialNode
    >>> from suffice.models.questions.mixture import Mixture
    >>> wait = ExponentialNode(Gamma()).variable("wait")
    >>> answer = Mixture("wait", [0.25, 0.75], DistributionParts(wait, np.array([[2.0, 1.0], [3.0, 0.5]])))
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
    parameters: Array

    @classmethod
    def of_moments(cls, variable: Distributed, means: Array, variances: Array) -> DistributionParts:
        """The members with these means and variances, by which they are known."""
        family = variable.family
        return cls(variable, family.parameters_of(family.kind.from_moments(family.distribution, means, variances)))

    def check(self, n: int, n_targets: int) -> None:
        if n_targets != 1:
            raise ModelError(f"a mixture of {self.variable.family!r} is of a single number")
        shape = (n, len(self.variable.family.names))
        object.__setattr__(self, "parameters", shaped(self.parameters, shape, "parameters"))

    @property
    def kind(self) -> str:  # type: ignore[override]
        return f", {repr(self.variable.family).removesuffix('()')}"

    @property
    def is_count(self) -> bool:  # type: ignore[override]
        return self.variable.whole

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        return np.asarray(self._members.mean), np.asarray(self._members.variance)

    @cached_property
    def each(self) -> Any:
        return self.variable.family.kind.scipy(self._members)

    def log_each(self, points: Array, names: Sequence[str]) -> Array:
        return np.asarray(self._members.log_prob(points))

    def draw(self, chosen: Ints, rng: np.random.Generator) -> Array:
        return np.asarray(self.variable.family.member(self.parameters[chosen]).sample(1, rng)[0], np.float64)[:, None]

    def told(self, names: Sequence[str], weights: Array) -> Columns:
        return [("weight", weights), *zip(self.variable.family.names, self.parameters.T, strict=True)]

    @cached_property
    def _members(self) -> Any:
        return self.variable.family.member(self.parameters)
