"""The normal distribution of a known mean m, whose variance is the parameter.

T(x) = (x − m)²,   h(x) = (2π)^−½,   η = −1/2v,   A(η) = ½ ln v = −½ ln(−2η),   E[T] = v,   Var[T] = 2v²
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from suffice.errors import FitError, ModelError
from suffice.exponential.family import Family
from suffice.exponential.gamma import Gamma
from suffice.exponential.normal import Normal
from suffice.exponential.special import HALF_LOG_2PI, log_gamma_step, log_growth, ratio_excess
from suffice.exponential.statistic import Totals, aligned
from suffice.exponential.student_t import StudentT
from suffice.exponential.values import Array, bounded, broadcast, finite, keep, observed, plain, rows_of_several, vectors


@dataclass(frozen=True, eq=False, repr=False)
class NormalKnownMean(Family):
    """A normal distribution whose mean is known. The conjugate prior of its precision 1/v is `Gamma`, the predictive `StudentT`.

    >>> s = NormalKnownMean(1.0).statistic([0.0, 3.0])
    >>> NormalKnownMean(1.0).estimate(s)
    NormalKnownMean(mean=1.0, variance=2.5)
    >>> posterior = Gamma(2.0, 1.5) + s
    >>> posterior, posterior.predictive()
    (Gamma(shape=3.0, rate=4.0, of=NormalKnownMean(mean=1.0)), StudentT(df=6.0, location=1.0, scale=1.1547005383792515))
    """

    mean: Any
    variance: Any = None

    names: ClassVar[tuple[str, ...]] = ("variance",)
    prior: ClassVar[str] = "Gamma"
    support: ClassVar[str] = "numbers whose squares a double can hold"

    def __post_init__(self) -> None:
        if self.mean is None:
            raise ModelError("NormalKnownMean needs its mean, NormalKnownMean(mean=…); Normal estimates it")
        keep(self, mean=finite(self.mean, "the mean of NormalKnownMean"))
        if self.variance is not None:
            variance = bounded(self.variance, "the variance of NormalKnownMean", 0.0, open=True)
            keep(self, variance=broadcast("NormalKnownMean", variance=variance, mean=np.asarray(self.mean))[0])

    @property
    def normal(self) -> Normal:
        """The same distribution as a `Normal`."""
        return Normal(self.mean, self._need("variance"))

    def sufficient(self, x: Any) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray((observed(x, "NormalKnownMean") - self.mean) ** 2)[..., None]

    def log_base(self, x: Any) -> Array:
        x = observed(x, "NormalKnownMean")
        return np.full(np.broadcast_shapes(x.shape, np.shape(self.mean)), -HALF_LOG_2PI)

    @property
    @np.errstate(over="ignore")
    def natural(self) -> Array:
        return np.asarray(-0.5 / self._need("variance"))[..., None]

    def from_natural(self, eta: Any) -> Self:
        eta = vectors(eta, "η of NormalKnownMean", 1)[..., 0]
        return type(self)(self.mean, 0.5 / bounded(-eta, "−η of NormalKnownMean", 0.0, open=True))

    def from_mean(self, mu: Any) -> Self:
        return type(self)(self.mean, vectors(mu, "E[T] of NormalKnownMean", 1)[..., 0])

    def log_normaliser(self, eta: Any = None) -> Any:
        return plain(0.5 * np.log(self._variance(eta)))

    def gradient(self, eta: Any = None) -> Array:
        return self._variance(eta)[..., None]

    @np.errstate(over="ignore")
    def hessian(self, eta: Any = None) -> Array:
        return np.asarray(2.0 * self._variance(eta) ** 2)[..., None, None]

    def estimate(self, statistic: Totals) -> Self:
        """The mean square about the known mean."""
        if np.any(self._seen(statistic).total <= 0.0):
            raise FitError(f"{self.bare!r} has no estimate where every number is its mean: the variance would be 0")
        return self.from_mean(statistic.mean)

    @aligned
    def log_prob(self, x: Any) -> Any:
        return self.normal.log_prob(x)

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        return self.normal.sample(n, seed)

    def entropy(self) -> Any:
        return self.normal.entropy()

    @aligned
    def kl(self, other: Self) -> Any:
        """½ (r − 1 − ln r), where r = v₁/v₂."""
        self._comparable(other)
        mine, yours = self._need("variance"), other._need("variance")
        return plain(0.5 * ratio_excess(mine, yours))

    @aligned
    def conjugate(self, total: Any, count: Any) -> Gamma:
        """1/v ~ Gamma(count/2 + 1, total/2)."""
        shape = 0.5 * bounded(count, "the count", 0.0) + 1.0
        return Gamma(shape, 0.5 * vectors(total, "the total", 1)[..., 0], of=self.bare)

    @aligned
    def posterior(self, prior: Any, statistic: Totals) -> Gamma:
        """Gamma(shape + n/2, rate + ½ Σ(x − m)²)."""
        prior, s = self._prior(prior), self._own(statistic)
        return Gamma(prior.shape + 0.5 * s.count, prior.rate + 0.5 * s.total[..., 0], of=self.bare)

    @aligned
    def log_evidence(self, prior: Any, statistic: Totals) -> Any:
        """ln Γ(a + n/2) − ln Γ(a) + a ln b − (a + n/2) ln(b + ½ Σ(x − m)²) − n/2 ln 2π."""
        prior, s = self._prior(prior), self._own(statistic)
        a, b, half, n = prior._need("shape"), prior._need("rate"), 0.5 * s.total[..., 0], s.count
        slack = -a * log_growth(b, half) - 0.5 * n * np.log(b + half)
        return plain(log_gamma_step(a, 0.5 * n) + slack + s.log_base)

    def predictive(self, prior: Any) -> StudentT:
        """The Student t of 2a degrees about the mean, scale² = b/a."""
        prior = self._prior(prior)
        a, b = prior._need("shape"), prior._need("rate")
        return StudentT(plain(2.0 * a), self.mean, plain(np.sqrt(b / a)))

    def _slack(self, statistic: Totals) -> Array:
        return statistic.total

    def _totals(self, x: Any, weights: Any) -> Totals:
        rows_of_several(x, self.mean, "NormalKnownMean")
        return super()._totals(x, weights)

    def _variance(self, eta: Any) -> Array:
        return (self if eta is None else self.from_natural(eta))._need("variance")
