"""A prior of the means of real nodes whose variance is known: y | u ~ Normal(μ[u], v), μ[u] ~ Normal(m, t), for finite parents u.

    posterior     μ[u] ~ Normal((N ȳ/v + m/t) / p, 1/p),   p = N/v + 1/t

So class means are shrunk towards m, by the more the fewer rows a class has. Posterior and evidence are those of
`suffice.exponential.NormalKnownVariance`, side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from suffice.errors import FitError, nearest
from suffice.errors.remedies import NUMBER_PRIORS, Remedy
from suffice.exponential.normals.normal import Normal
from suffice.exponential.normals.normal_known import NormalKnownVariance
from suffice.exponential.protocol.statistic import Centred
from suffice.families.priors.number_priors import bound_numbers, filled_numbers, own_mean, own_variance
from suffice.families.priors.prior import Prior, PriorBelief, check_positive, is_number
from suffice.families.protocol.family import Array, Interval
from suffice.statistics import Moments, Statistics
from suffice.variables import Finite, Real, Variable


@dataclass(frozen=True)
class KnownVariance(Prior):
    """Real nodes have the known `variance`, a number or {node: number}; their means, one for each configuration of their finite
    parents, are Normal(`mean`, `spread`): numbers, or {node: number}; where they are not given, mean and variance of the data to
    which the prior is bound. Of nodes with real parents it says nothing.

    >>> from suffice import K2, fit
    >>> rows = {"class": ["a", "a", "a", "b"], "y": [1.0, 2.0, 6.0, 8.0]}
    >>> bn = fit("class -> y", rows, prior=(K2(), KnownVariance(4.0, mean=0.0, spread=4.0)))
    >>> bn["y"].intercept, bn["y"].variance
    (array([2.25, 4.  ]), array([4., 4.]))
    >>> bn["y"].interval(0.95)["intercept"].lower.round(2)
    array([0.29, 1.23])
    """

    word = "known-variance"
    types = ("KnownVariance",)
    after_colon = ("variance", float)

    variance: Mapping[str, float] | float
    mean: Mapping[str, float] | float | None = None
    spread: Mapping[str, float] | float | None = None

    def __post_init__(self) -> None:
        for what in ("variance", "spread"):
            given = getattr(self, what)
            for node, value in given.items() if isinstance(given, Mapping) else [("", given)]:
                if value is not None or what == "variance":
                    check_positive(f"the {what} of KnownVariance{f' of {node!r}' if node else ''}", value)
        for value in self.mean.values() if isinstance(self.mean, Mapping) else [self.mean]:
            if value is not None and not (is_number(value) and np.isfinite(value)):
                raise FitError(f"the mean of KnownVariance is a finite number, or given by node, {{'y': 2.5}}, not {self.mean!r}")

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> KnownVariance:
        for name in (n for given in (self.variance, self.mean, self.spread) if isinstance(given, Mapping) for n in given):
            if name not in variables:
                raise FitError(f"KnownVariance speaks of {name!r}, which is not in the graph{nearest(name, variables)}")
        reals = sorted(n for n, v in variables.items() if isinstance(v, Real))
        moments = {r: statistics.moments((), [r]) for r in reals}
        mean = filled_numbers(self.mean, reals, {r: own_mean(m) for r, m in moments.items()})
        spread = filled_numbers(self.spread, reals, {r: own_variance(m) for r, m in moments.items()})
        return replace(self, mean=mean, spread=spread)

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> MeanBelief | None:
        """What it holds of the means of a node; None of one with real parents, or whose variance is not known."""
        if not isinstance(child, Real) or not all(isinstance(p, Finite) for p in parents):
            return None
        if isinstance(self.variance, Mapping) and child.name not in self.variance:
            return None
        given = (self.mean, self.spread, self.variance)
        return MeanBelief(*(float(bound_numbers(numbers, [child.name], self)[0]) for numbers in given))


@dataclass(frozen=True)
class MeanBelief(PriorBelief):
    """Every mean of a node is Normal(mean, spread), and its rows Normal(that, variance).

    >>> seen = Moments((), ("y",), [0], [3.0], [[3.0]], [[[14.0]]])
    >>> MeanBelief(0.0, 4.0, 4.0).posterior(seen, 1)
    (array([2.25]), array([1.]))
    """

    of: ClassVar[str] = "KnownVariance"
    instead: ClassVar[Remedy] = NUMBER_PRIORS

    mean: float
    spread: float
    variance: float

    def posterior(self, seen: Moments, n: int) -> tuple[Array, Array]:
        """Mean and variance of the mean of each of n configurations."""
        known = self._posterior(seen, n)
        return np.asarray(known.mean), np.asarray(known.variance)

    def log_evidence(self, seen: Moments) -> float:
        return float(self._rows.log_evidence(Normal(self.mean, self.spread), self._statistic(seen)).sum())

    @property
    def _rows(self) -> NormalKnownVariance:
        return NormalKnownVariance(self.variance)

    def _posterior(self, seen: Moments, n: int) -> Normal:
        return self._rows.posterior(Normal(self.mean, self.spread), self._statistic(seen.at(np.arange(n))))

    def _statistic(self, seen: Moments) -> Centred:
        return Centred.of(self._rows, seen.spread, seen.count.shape)

    def log_prior(self, means: Array) -> float:
        """What EM adds to ln L, up to a constant."""
        return float(-0.5 * ((means - self.mean) ** 2).sum() / self.spread)

    def interval(self, seen: Moments, n: int, level: float) -> Interval:
        """The equal-tailed interval of each mean."""
        return self._posterior(seen, n).interval(level)

    def rescale(self, centre: float, scale: float) -> MeanBelief:
        """The same of (y − centre) / scale."""
        return MeanBelief((self.mean - centre) / scale, self.spread / scale**2, self.variance / scale**2)
