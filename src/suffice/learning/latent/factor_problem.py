"""Factors of rows with missing cells: the problem of `em` on the graph in which every factor has every column as a child.

With the same noise in all columns, v = Σ_j residual_j / Σ_j N_j: the M-step is exact all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.families.conditional_gaussian import SharedGaussian
from suffice.families.protocol.family import Cpd
from suffice.incomplete.components import NodeFamily, Theta
from suffice.learning.incomplete.hidden_numbers import FLOOR
from suffice.learning.incomplete.problem import ExpectedStatistic, ParameterProblem


@dataclass(frozen=True, eq=False)
class FactorProblem(ParameterProblem):
    """The parameters of factors. `spherical` are the columns with the same noise."""

    spherical: tuple[str, ...] = ()

    def maximised(self, statistic: ExpectedStatistic) -> Theta:
        """One M-step."""
        theta = super().maximised(statistic)
        if not self.spherical:
            return theta
        weight = {n: float(statistic.moments[n].spread.weight.sum()) for n in self.spherical}
        square = sum(weight[n] * float(theta.lines[n].variance[0]) * self._unit(n) for n in self.spherical)
        return self._with_noise(theta, square / sum(weight.values()))

    def _with_noise(self, theta: Theta, variance: float) -> Theta:
        """The parameters with this noise, of columns as they are."""
        least = FLOOR * float(np.mean([self.units.variance[n] * self._unit(n) for n in self.spherical]))
        others: dict[str, Any] = dict(theta.others)
        for n in self.spherical:
            others[n] = replace(others[n], variance=np.asarray(max(variance, least) / self._unit(n)))
        return replace(theta, others=others)

    def _unit(self, name: str) -> float:
        return self.units.scale[name] ** 2

    def _shares(self, theta: Theta) -> bool:
        return not self.spherical

    def _tied(self, theta: Theta) -> Theta:
        """The same parameters, the noise being the mean of that of all columns."""
        if not self.spherical:
            return theta
        return self._with_noise(theta, float(np.mean([theta.lines[n].variance[0] * self._unit(n) for n in self.spherical])))

    def _fitted(self, node: NodeFamily, cpd: Any, statistic: ExpectedStatistic) -> Cpd:
        fitted: Any = super()._fitted(node, cpd, statistic)
        if node.name not in self.spherical:
            return fitted  # type: ignore[no-any-return]
        return with_common_noise(fitted, first=node.name == self.spherical[0])


def with_common_noise(cpd: Any, *, first: bool) -> SharedGaussian:
    """A column whose noise all columns share: it is counted with the first."""
    own = 1 + cpd.coefficients.shape[-1] + first
    return SharedGaussian(cpd.child, cpd.parent_variables, cpd.intercept, cpd.coefficients, cpd.variance, cpd.seen, own=own)
