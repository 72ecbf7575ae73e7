"""The normal distribution of a known variance v, whose mean is the parameter.

T(x) = x,   h(x) = (2πv)^−½ exp(−x²/2v),   η = μ/v,   A(η) = vη²/2 = μ²/2v,   E[T] = μ,   Var[T] = v
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from suffice.errors import ModelError
from suffice.exponential.family import Family
from suffice.exponential.normal import Normal
from suffice.exponential.special import HALF_LOG_2PI
from suffice.exponential.statistic import Centred, Totals, aligned, centred, with_centre
from suffice.exponential.values import Array, bounded, broadcast, finite, keep, observed, plain, rows_of_several, vectors


@dataclass(frozen=True, eq=False, repr=False)
class NormalKnownVariance(Family):
    """A normal distribution whose variance is known. The conjugate prior of its mean is `Normal`: with n rows, the prior variance
    τ² and the known σ², the precision of the mean is n/σ² + 1/τ².

    >>> s = NormalKnownVariance(4.0).statistic([1.0, 2.0, 6.0])
    >>> NormalKnownVariance(4.0).estimate(s)
    NormalKnownVariance(variance=4.0, mean=3.0)
    >>> posterior = Normal(0.0, 4.0) + s
    >>> posterior.mean, posterior.variance, posterior.predictive()
    (2.25, 1.0, Normal(mean=2.25, variance=5.0))
    """

    variance: Any
    mean: Any = None

    names: ClassVar[tuple[str, ...]] = ("mean",)
    prior: ClassVar[str] = "Normal"
    support: ClassVar[str] = "finite numbers"

    def __post_init__(self) -> None:
        if self.variance is None:
            raise ModelError("NormalKnownVariance needs its variance, NormalKnownVariance(variance=…); Normal estimates it")
        keep(self, variance=bounded(self.variance, "the variance of NormalKnownVariance", 0.0, open=True))
        if self.mean is not None:
            keep(self, mean=broadcast("NormalKnownVariance", mean=self._finite_mean, variance=np.asarray(self.variance))[0])

    @property
    def _finite_mean(self) -> Array:
        return finite(self.mean, "the mean of NormalKnownVariance")

    @property
    def normal(self) -> Normal:
        """The same distribution as a `Normal`."""
        return Normal(self._need("mean"), self.variance)

    def sufficient(self, x: Any) -> Array:
        return observed(x, "NormalKnownVariance")[..., None]

    def log_base(self, x: Any) -> Array:
        x = observed(x, "NormalKnownVariance")
        return np.asarray(-0.5 * (x * x / self.variance + np.log(self.variance)) - HALF_LOG_2PI)

    def raw(self, count: Array, centre: Array, scatter: Array) -> tuple[Array, Array]:
        """Σ T(x) and Σ ln h(x) of rows with these moments."""
        total = count[..., None] * centre
        squares = scatter[..., 0, 0] + total[..., 0] * centre[..., 0]
        return total, -0.5 * (squares / self.variance + count * np.log(self.variance)) - count * HALF_LOG_2PI

    @property
    def natural(self) -> Array:
        return np.asarray(self._need("mean") / self.variance)[..., None]

    def from_natural(self, eta: Any) -> Self:
        return type(self)(self.variance, vectors(eta, "η of NormalKnownVariance", 1)[..., 0] * self.variance)

    def from_mean(self, mu: Any) -> Self:
        return type(self)(self.variance, vectors(mu, "E[T] of NormalKnownVariance", 1)[..., 0])

    @np.errstate(over="ignore")
    def log_normaliser(self, eta: Any = None) -> Any:
        return plain(0.5 * self._mean(eta) ** 2 / self.variance)

    def gradient(self, eta: Any = None) -> Array:
        return self._mean(eta)[..., None]

    def hessian(self, eta: Any = None) -> Array:
        return np.array(np.broadcast_to(self.variance, self._mean(eta).shape))[..., None, None]

    def estimate(self, statistic: Totals) -> Self:
        """The mean of the data."""
        return type(self)(self.variance, with_centre(self._seen(statistic)).centre[..., 0])

    @aligned
    def log_prob(self, x: Any) -> Any:
        return self.normal.log_prob(x)

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        return self.normal.sample(n, seed)

    def entropy(self) -> Any:
        return self.normal.entropy()

    @aligned
    def kl(self, other: Self) -> Any:
        """(μ₁ − μ₂)²/2v."""
        self._comparable(other)
        return plain(0.5 * (self._need("mean") - other._need("mean")) ** 2 / self.variance)

    @aligned
    def conjugate(self, total: Any, count: Any) -> Normal:
        """μ ~ Normal(total/count, v/count)."""
        total, count = vectors(total, "the total", 1)[..., 0], bounded(count, "the count", 0.0, open=True)
        return Normal(total / count, self.variance / count, of=self.bare)

    @aligned
    def posterior(self, prior: Any, statistic: Totals) -> Normal:
        """The precisions n/σ² and 1/τ² add, and weigh the means."""
        prior, s = self._prior(prior), with_centre(self._own(statistic))
        m, t = prior._need("mean"), prior._need("variance")
        share = s.count * t / (self.variance + s.count * t)
        return Normal(m + share * self._off(s, m), t * self.variance / (self.variance + s.count * t), of=self.bare)

    @aligned
    def log_evidence(self, prior: Any, statistic: Totals) -> Any:
        """−n/2 ln 2πσ² − scatter/2σ² − ½ ln(1 + nτ²/σ²) − ½ n(x̄ − m)²/(σ² + nτ²)."""
        prior, s = self._prior(prior), with_centre(self._own(statistic))
        n, v, t = s.count, np.asarray(self.variance), prior._need("variance")
        rows = n * (np.log(v) + 2.0 * HALF_LOG_2PI) + s.scatter[..., 0, 0] / v
        return plain(-0.5 * (rows + np.log1p(n * t / v) + n * self._off(s, prior._need("mean")) ** 2 / (v + n * t)))

    def predictive(self, prior: Any) -> Normal:
        """Normal(m, σ² + τ²)."""
        prior = self._prior(prior)
        return Normal(prior.mean, prior._need("variance") + self.variance)

    def _off(self, s: Centred, mean: Array) -> Array:
        """x̄ − m, to the last digit; of no weight where there are no rows."""
        return np.where(s.count > 0.0, (s.centre[..., 0] - mean) + s.rest[..., 0], 0.0)

    def _totals(self, x: Any, weights: Any) -> Centred:
        rows_of_several(x, self.variance, "NormalKnownVariance")
        return centred(self, x, weights)

    def _mean(self, eta: Any) -> Array:
        return (self if eta is None else self.from_natural(eta))._need("mean")
