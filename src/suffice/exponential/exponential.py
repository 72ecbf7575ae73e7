"""The exponential distribution: p(x | λ) = λ exp(−λx), x ≥ 0.

T(x) = x,   h(x) = 1,   η = −λ,   A(η) = −ln(−η),   E[T] = 1/λ,   Var[T] = 1/λ²
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from suffice.errors import FitError
from suffice.exponential.family import Family, generator
from suffice.exponential.gamma import Gamma
from suffice.exponential.lomax import Lomax
from suffice.exponential.special import log_gamma_step, log_growth, ratio_excess
from suffice.exponential.statistic import Totals, aligned
from suffice.exponential.values import Array, bounded, keep, observed, plain, vectors


@dataclass(frozen=True, eq=False, repr=False)
class Exponential(Family):
    """Waiting times of a given `rate`. The conjugate prior of the rate is `Gamma`, and the predictive is then `Lomax`.

    >>> waits = Exponential().statistic([1.0, 2.0, 6.0])
    >>> Exponential().estimate(waits)
    Exponential(rate=0.3333333333333333)
    >>> Gamma(2.0, 3.0) + waits
    Gamma(shape=5.0, rate=12.0, of=Exponential())
    """

    rate: Any = None

    names: ClassVar[tuple[str, ...]] = ("rate",)
    prior: ClassVar[str] = "Gamma"
    support: ClassVar[str] = "numbers from 0 up"

    def __post_init__(self) -> None:
        if self.rate is not None:
            keep(self, rate=bounded(self.rate, "the rate of Exponential", 0.0, open=True))

    @property
    @np.errstate(over="ignore")
    def mean(self) -> Any:
        """E[x] = 1/λ."""
        return plain(1.0 / self._need("rate"))

    @property
    def variance(self) -> Any:
        """Var[x] = 1/λ²."""
        return plain(self.hessian()[..., 0, 0])

    def sufficient(self, x: Any) -> Array:
        return observed(x, "Exponential")[..., None]

    def log_base(self, x: Any) -> Array:
        return np.where(observed(x, "Exponential") >= 0.0, 0.0, -np.inf)

    @property
    def natural(self) -> Array:
        return -self._need("rate")[..., None]

    def from_natural(self, eta: Any) -> Self:
        return type(self)(bounded(-vectors(eta, "η of Exponential", 1)[..., 0], "−η of Exponential", 0.0, open=True))

    def from_mean(self, mu: Any) -> Self:
        with np.errstate(over="ignore"):
            return type(self)(1.0 / bounded(vectors(mu, "E[T] of Exponential", 1)[..., 0], "E[T] of Exponential", 0.0, open=True))

    def log_normaliser(self, eta: Any = None) -> Any:
        return plain(-np.log(self._rate(eta)))

    @np.errstate(over="ignore")
    def gradient(self, eta: Any = None) -> Array:
        return 1.0 / self._rate(eta)[..., None]

    def hessian(self, eta: Any = None) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(self._rate(eta)[..., None, None] ** -2.0)

    def estimate(self, statistic: Totals) -> Self:
        """The rate is one over the mean of the data."""
        if np.any(self._seen(statistic).total <= 0.0):
            raise FitError("Exponential has no estimate where every number is 0: the rate would be infinite; use a Gamma prior")
        return self.from_mean(statistic.mean)

    @aligned
    def log_prob(self, x: Any) -> Any:
        x, rate = observed(x, "Exponential"), self._need("rate")
        return plain(np.where(x >= 0.0, np.log(rate) - rate * x, -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        rate = self._need("rate")
        return np.asarray(generator(n, seed).standard_exponential((n, *rate.shape)) / rate)

    def entropy(self) -> Any:
        """1 − ln λ."""
        return plain(1.0 - np.log(self._need("rate")))

    @aligned
    def kl(self, other: Self) -> Any:
        """r − 1 − ln r, where r = λ₂/λ₁."""
        self._comparable(other)
        mine, yours = self._need("rate"), other._need("rate")
        return plain(ratio_excess(yours, mine))

    @aligned
    def conjugate(self, total: Any, count: Any) -> Gamma:
        """λ ~ Gamma(count + 1, total)."""
        return Gamma(bounded(count, "the count", 0.0) + 1.0, vectors(total, "the total", 1)[..., 0], of=self.bare)

    @aligned
    def posterior(self, prior: Any, statistic: Totals) -> Gamma:
        """Gamma(shape + count, rate + Σx)."""
        prior, s = self._prior(prior), self._own(statistic)
        return Gamma(prior.shape + s.count, prior.rate + s.total[..., 0], of=self.bare)

    @aligned
    def log_evidence(self, prior: Any, statistic: Totals) -> Any:
        """ln Γ(a + n) − ln Γ(a) + a ln b − (a + n) ln(b + Σx)."""
        prior, s = self._prior(prior), self._own(statistic)
        a, b, total = prior._need("shape"), prior._need("rate"), s.total[..., 0]
        return plain(log_gamma_step(a, s.count) - a * log_growth(b, total) - s.count * np.log(b + total))

    def predictive(self, prior: Any) -> Lomax:
        """Lomax(shape, rate)."""
        prior = self._prior(prior)
        return Lomax(prior.shape, prior.rate)

    def _slack(self, statistic: Totals) -> Array:
        return statistic.total

    def _rate(self, eta: Any) -> Array:
        return (self if eta is None else self.from_natural(eta))._need("rate")
