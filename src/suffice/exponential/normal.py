"""The normal distribution: p(x | μ, v) = (2πv)^−½ exp(−(x − μ)²/2v); as a prior, of the mean of a normal of known variance.

T(x) = (x, x²),   h(x) = (2π)^−½,   η = (μ/v, −1/2v),   A(η) = μ²/2v + ½ ln v = −η₁²/4η₂ − ½ ln(−2η₂)
E[T] = (μ, μ² + v),   Var[T] = ((v, 2μv), (2μv, 4μ²v + 2v²))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from suffice.errors import FitError
from suffice.exponential.family import Family, FamilyAndPrior, generator
from suffice.exponential.interval import Interval, tail
from suffice.exponential.normal_inverse_gamma import NormalInverseGamma
from suffice.exponential.special import HALF_LOG_2PI, ratio_excess
from suffice.exponential.statistic import Centred, Totals, aligned, centred, with_centre
from suffice.exponential.values import Array, bounded, finite, keep, observed, plain, vectors


@dataclass(frozen=True, eq=False, repr=False)
class Normal(FamilyAndPrior):
    """A normal distribution, by its mean and variance. Its conjugate prior is `NormalInverseGamma`; it is itself the conjugate
    prior of the mean of `NormalKnownVariance`.

    >>> s = Normal().statistic([1.0, 2.0, 6.0])
    >>> Normal().estimate(s).mean, s.scatter
    (3.0, array([[14.]]))
    >>> from suffice.exponential import NormalKnownVariance
    >>> Normal(0.0, 1.0) + NormalKnownVariance(2.0).statistic([3.0, 3.0])
    Normal(mean=1.5, variance=0.5, of=NormalKnownVariance(variance=2.0))
    """

    mean: Any = None
    variance: Any = None
    of: Family | None = None

    names: ClassVar[tuple[str, ...]] = ("mean", "variance")
    prior: ClassVar[str] = "NormalInverseGamma"
    support: ClassVar[str] = "finite numbers"
    example: ClassVar[str] = "NormalKnownVariance(1.0)"

    def __post_init__(self) -> None:
        mean = None if self.mean is None else finite(self.mean, "the mean of Normal")
        variance = None if self.variance is None else bounded(self.variance, "the variance of Normal", 0.0, open=True)
        keep(self, mean=mean, variance=variance)

    def given(self) -> Self:
        """This, if it has its parameters."""
        self._need("mean")
        return self

    @property
    def mode(self) -> Any:
        """The mean."""
        return self.given().mean

    def interval(self, level: float = 0.95) -> Interval:
        """The equal-tailed interval of this probability."""
        from scipy.special import ndtri

        half = -ndtri(tail(level)) * np.sqrt(self._need("variance"))
        return Interval(plain(self._need("mean") - half), plain(self._need("mean") + half))

    def sufficient(self, x: Any) -> Array:
        x = observed(x, "Normal")
        return np.stack([x, x * x], axis=-1)

    def log_base(self, x: Any) -> Array:
        return np.where(np.isfinite(observed(x, "Normal")), -HALF_LOG_2PI, -np.inf)

    def raw(self, count: Array, centre: Array, scatter: Array) -> tuple[Array, Array]:
        """Σ T(x) and Σ ln h(x) of rows with these moments."""
        total = count * centre[..., 0]
        return np.stack([total, scatter[..., 0, 0] + total * centre[..., 0]], axis=-1), -HALF_LOG_2PI * count

    @property
    def natural(self) -> Array:
        mean, variance = self._both(None)
        with np.errstate(over="ignore"):
            return np.stack([mean / variance, -0.5 / variance], axis=-1)

    def from_natural(self, eta: Any) -> Self:
        eta = vectors(eta, "η of Normal", 2)
        variance = 0.5 / bounded(-eta[..., 1], "−η₂ of Normal", 0.0, open=True)
        return type(self)(eta[..., 0] * variance, variance)

    def from_mean(self, mu: Any) -> Self:
        mu = vectors(mu, "E[T] of Normal", 2)
        variance = bounded(mu[..., 1] - mu[..., 0] ** 2, "E[x²] − E[x]² of Normal", 0.0, open=True)
        return type(self)(mu[..., 0], variance)

    def log_normaliser(self, eta: Any = None) -> Any:
        mean, variance = self._both(eta)
        with np.errstate(over="ignore"):
            return plain(0.5 * (mean / variance * mean + np.log(variance)))

    @np.errstate(over="ignore")
    def gradient(self, eta: Any = None) -> Array:
        mean, variance = self._both(eta)
        return np.stack([mean, mean**2 + variance], axis=-1)

    @np.errstate(over="ignore")
    def hessian(self, eta: Any = None) -> Array:
        mean, v = self._both(eta)
        entries = [v, 2.0 * mean * v, 2.0 * mean * v, (4.0 * mean**2 + 2.0 * v) * v]
        return np.stack(entries, axis=-1).reshape(*v.shape, 2, 2)

    def estimate(self, statistic: Totals) -> Self:
        """The mean of the data, and its scatter divided by the count."""
        s = with_centre(self._seen(statistic))
        if np.any(s.scatter <= 0.0):
            raise FitError("Normal has no estimate where all numbers are equal (or there is only one): the variance would be 0")
        return type(self)(s.centre[..., 0], s.scatter[..., 0, 0] / s.count)

    @aligned
    def log_prob(self, x: Any) -> Any:
        """−½ (x − μ)²/v − ½ ln 2πv."""
        mean, variance = self._both(None)
        off = (observed(x, "Normal") - mean) / np.sqrt(variance)
        with np.errstate(over="ignore"):
            return plain(-0.5 * (off * off + np.log(variance)) - HALF_LOG_2PI)

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        mean, variance = self._both(None)
        return np.asarray(mean + np.sqrt(variance) * generator(n, seed).standard_normal((n, *mean.shape)))

    def entropy(self) -> Any:
        """½ ln 2πev."""
        return plain(0.5 * np.log(self._need("variance")) + HALF_LOG_2PI + 0.5)

    @aligned
    def kl(self, other: Self) -> Any:
        """½ (r − 1 − ln r + (μ₁ − μ₂)²/v₂), where r = v₁/v₂."""
        self._comparable(other)
        (mean, v), (to, w) = self._both(None), other._both(None)
        with np.errstate(over="ignore"):
            return plain(0.5 * (ratio_excess(v, w) + (mean - to) ** 2 / w))

    @aligned
    def conjugate(self, total: Any, count: Any) -> NormalInverseGamma:
        """The mean total₁/count; on the variance an inverse gamma of shape (count + 3)/2."""
        total, count = vectors(total, "the total", 2), bounded(count, "the count", 0.0, open=True)
        mean = total[..., 0] / count
        return NormalInverseGamma(mean, count, 0.5 * (count + 3.0), 0.5 * (total[..., 1] - count * mean**2), of=self.bare)

    @aligned
    def posterior(self, prior: Any, statistic: Totals) -> NormalInverseGamma:
        """The imagined rows and the seen ones, by Chan's update."""
        posterior: NormalInverseGamma = self._prior(prior).plus(with_centre(self._own(statistic)))
        return posterior

    @aligned
    def evidence_under(self, prior: Any, statistic: Totals) -> Any:
        return self._prior(prior).evidence(with_centre(self._own(statistic)))

    def predictive_under(self, prior: Any) -> Any:
        return self._prior(prior).next_observation()

    def _totals(self, x: Any, weights: Any) -> Centred:
        return centred(self, x, weights)

    def _both(self, eta: Any) -> tuple[Array, Array]:
        member = self if eta is None else self.from_natural(eta)
        return member._need("mean"), member._need("variance")
