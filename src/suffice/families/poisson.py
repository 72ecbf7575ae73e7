"""Poisson nodes: p(n | u) = λ[u]ⁿ e^(−λ[u]) / n! for a count n and finite parents u, with a rate λ for each configuration.

    statistic     per u: the rows N, the events S = Σ n (as count and mean of n), and Σ ln n!
    prior         λ[u] ~ Gamma(a, b), independent over u: a imagined events in b imagined rows

They are nodes of `exponential.Poisson`, with the estimates, the evidence and the intervals that all of these have (`chosen`).
Their own are the variable, a `Count`, and that the rates stand under their name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from suffice.basis.libraries import sc
from suffice.errors import ModelError, StatisticsError
from suffice.exponential.poisson import Poisson
from suffice.exponential.predictives import NegativeBinomial as NegativeBinomial
from suffice.families.chosen.exponential_cpd import MemberCpd
from suffice.families.chosen.exponential_node import ExponentialNode
from suffice.families.protocol.cpd import Array
from suffice.families.protocol.family import Estimate, Interval, Mean
from suffice.inference.finite.network import CountNode
from suffice.statistics import Moments
from suffice.statistics.counts import freeze, sizes
from suffice.variables import Count, Finite, Variable


@dataclass(frozen=True, repr=False)
class PoissonNode(ExponentialNode):
    """The family of counts with a rate for each configuration of their finite parents.

    >>> from suffice import Count, Mode
    >>> from suffice.statistics.counts import log_factorials
    >>> s = Moments((), ("n",), [0], [4.0], [[2.5]], [[[1.0]]], derived=log_factorials(["n"]), sums=[[3.0]])
    >>> PoissonNode().estimate(Count("n"), [], s, None, Mode()).rates
    array(2.5)
    """

    distribution: Any = field(default_factory=Poisson)

    def cpd(
        self, child: Any, parents: Sequence[Finite], parameters: Array, seen: Any = None, imagined: Any = None
    ) -> PoissonRates:
        return PoissonRates(child, tuple(parents), parameters[..., 0], seen, imagined)

    def from_moments(self, child: Variable, parents: Sequence[Variable], moments: Moments) -> PoissonRates:
        """The distribution whose means are these: where iterations start."""
        return self.estimate(child, parents, moments, None, Mean())  # type: ignore[return-value]

    def _unknown_formula(self, child: Variable, formula: str) -> StatisticsError:
        return StatisticsError(
            f"these moments of {child.name!r} do not hold Σ ln n!, which the likelihood of counts needs; gather them from data "
            f"in which {child.name!r} is declared a Count"
        )


@dataclass(frozen=True, eq=False, repr=False)
class PoissonRates(MemberCpd):
    """p(child | parents) = Poisson(rates[u]), an axis per parent; `seen` and `imagined` are the moments it was fitted from.

    The rate of a configuration that no row had is NaN, without a prior.

    >>> from suffice import Count
    >>> import math
    >>> round(math.exp(PoissonRates(Count("n"), (), 2.0).log_prob({"n": np.array([3.0])})[0]), 6)
    0.180447
    """

    child: Variable
    parent_variables: tuple[Finite, ...]
    rates: Array
    seen: Moments | None = None
    imagined: Moments | None = None

    types: ClassVar[tuple[str, ...]] = ("poisson",)
    children: ClassVar[Any] = Count
    arrays: ClassVar[tuple[str, ...]] = ("rates",)
    positive: ClassVar[tuple[str, ...]] = ("rates",)
    kind: ClassVar[str] = "Poisson"
    noun: ClassVar[str] = "rate"

    def __post_init__(self) -> None:
        rates = np.array(self.rates, dtype=np.float64, order="C")
        object.__setattr__(self, "parent_variables", tuple(self.parent_variables))
        shape = sizes(self.parent_variables)
        if rates.shape != shape:
            axes = f" (axes {list(self.parents)})" if shape else ""
            raise ModelError(f"the rates of {self.child.name!r} need the shape {shape}{axes}, not {rates.shape}")
        if np.isinf(rates).any() or np.any(rates < 0.0):
            wrong = rates[np.isinf(rates) | (rates < 0.0)][0]
            raise ModelError(f"the rates of {self.child.name!r} must be finite numbers from 0 up, not {wrong:g}")
        object.__setattr__(self, "rates", freeze(rates))

    @property
    def family(self) -> PoissonNode:
        return PoissonNode()

    @property
    def parameters(self) -> Array:
        return self.rates[..., None]

    @property
    def means(self) -> Array:
        return self.rates

    variances = means

    def node(self, number: Mapping[str, int], real_number: Mapping[str, int]) -> CountNode:
        return CountNode.of(tuple(number[p] for p in self.parents), self.rates)

    def interval(self, level: float = 0.95) -> Interval:  # type: ignore[override]
        """The credible interval of each rate: quantiles of its Gamma(a + S, b + N)."""
        return super().interval(level)["rate"]

    def to_frame(self) -> Any:
        """One row per configuration of the parents: its states, the rate, its 95 % interval where there is one."""
        return self._frame("rate", self.rates, self.parent_variables)

    def perturb(self, parent: str, rng: np.random.Generator) -> PoissonRates:
        return replace(self, rates=self.rates * rng.uniform(0.7, 1.4, self.rates.shape))

    def log_prior(self, imagined: Moments, how: Estimate, log_scale: float) -> float:
        """Σ a ln λ − b λ for means, with a imagined events in b rows; Σ (a − 1) ln λ − b λ for modes."""
        prior, rates = imagined.at(np.arange(self.rates.size)), self.rates.reshape(-1)
        events = prior.count * prior.mean[:, 0] - how.less
        return float((sc.xlogy(events, rates) - prior.count * rates).sum())

    def _by_name(self, parameters: Array) -> dict[str, Array]:
        return {"rates": parameters[..., 0]}
