"""Normal distributions of which one number is known: the mean m, or the variance v; the other is the parameter.

known mean       T(x) = (x − m)²,   h(x) = (2π)^−½,   η = −1/2v,   A(η) = ½ ln v = −½ ln(−2η),   E[T] = v,   Var[T] = 2v²
known variance   T(x) = x,   h(x) = (2πv)^−½ exp(−x²/2v),   η = μ/v,   A(η) = vη²/2 = μ²/2v,   E[T] = μ,   Var[T] = v
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from suffice.basis.libraries import sc
from suffice.errors import FitError, ModelError
from suffice.numerics.exponential.arithmetic.special import HALF_LOG_2PI
from suffice.numerics.exponential.arithmetic.symmetric import single
from suffice.numerics.exponential.arithmetic.values import (
    Array,
    between,
    broadcast,
    finite,
    keep,
    observations,
    plain,
    rows_of_several,
    vectors,
)
from suffice.numerics.exponential.gamma import Gamma
from suffice.numerics.exponential.normals.normal import Normal
from suffice.numerics.exponential.predictives import StudentT
from suffice.numerics.exponential.protocol.family import ExponentialFamily, Inside
from suffice.numerics.exponential.protocol.statistic import Centred, Totals, centred_statistic, explain_shapes, with_centre


class PartlyKnown(ExponentialFamily):
    """A normal distribution with one number known, `known`, and one to be learned, the only one of `names`."""

    known: ClassVar[str]
    mean: Any
    variance: Any

    def __post_init__(self) -> None:
        given = getattr(self, self.known)
        if given is None:
            raise ModelError(f"{self._title} needs its {self.known}, {self._title}({self.known}=…); Normal estimates it")
        keep(self, **{self.known: self._check_parameter(self.known, given)})
        (name,) = self.names
        if getattr(self, name) is not None:
            value = self._check_parameter(name, getattr(self, name))
            both = {name: value, self.known: np.asarray(getattr(self, self.known))}
            keep(self, **{name: broadcast(self._title, **both)[0]})

    def _check_parameter(self, name: str, value: Any) -> Array:
        return finite(value, self._name_of(name)) if name == "mean" else super()._check_parameter(name, value)

    @property
    def normal(self) -> Normal:
        """The same distribution as a `Normal`."""
        self._need(self.names[0])
        return Normal(self.mean, self.variance)

    def _inside(self, x: Any) -> Inside:
        x = observations(x, self._title)
        return x, np.isfinite(x)

    def _log_density(self, x: Array) -> Array:
        return self.normal._log_density(x[..., None])

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        return self.normal.sample(n, seed)

    def entropy(self) -> Any:
        return self.normal.entropy()

    def _divergence(self, other: Self) -> Array:
        return self.normal._divergence(other.normal)

    def _totals(self, x: Any, weights: Any) -> Totals:
        rows_of_several(x, getattr(self, self.known), self._title)
        return super()._totals(x, weights)


@dataclass(frozen=True, eq=False, repr=False)
class NormalKnownMean(PartlyKnown):
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

    known: ClassVar[str] = "mean"
    names: ClassVar[tuple[str, ...]] = ("variance",)
    prior: ClassVar[str] = "Gamma"
    support: ClassVar[str] = "numbers whose squares a double can hold"

    def sufficient(self, x: Any) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray((observations(x, "NormalKnownMean") - self.mean) ** 2)[..., None]

    def log_base(self, x: Any) -> Array:
        x = observations(x, "NormalKnownMean")
        return np.full(np.broadcast_shapes(x.shape, np.shape(self.mean)), -HALF_LOG_2PI)

    @property
    @np.errstate(over="ignore")
    def natural(self) -> Array:
        return np.asarray(-0.5 / self._need("variance"))[..., None]

    def from_natural(self, eta: Any) -> Self:
        eta = vectors(eta, "η of NormalKnownMean", 1)[..., 0]
        return type(self)(self.mean, 0.5 / between(-eta, "−η of NormalKnownMean", 0.0, open=True))

    def from_mean(self, mu: Any) -> Self:
        return type(self)(self.mean, vectors(mu, "E[T] of NormalKnownMean", 1)[..., 0])

    def log_normaliser(self, eta: Any = None) -> Any:
        return plain(0.5 * np.log(self._parameters(eta)[0]))

    def gradient(self, eta: Any = None) -> Array:
        return self._parameters(eta)[0][..., None]

    @np.errstate(over="ignore")
    def hessian(self, eta: Any = None) -> Array:
        return np.asarray(2.0 * self._parameters(eta)[0] ** 2)[..., None, None]

    def _cumulants(self, order: int, eta: Any) -> Array:
        """2ⁿ⁻¹ (n − 1)! vⁿ: those of a chi-square of one degree, times vⁿ."""
        return single(2.0 ** (order - 1) * sc.gamma(float(order)) * self._parameters(eta)[0] ** order, order)

    def estimate(self, statistic: Totals) -> Self:
        """The mean square about the known mean."""
        if np.any(self._check_statistic(statistic).total <= 0.0):
            raise FitError(f"{self.bare!r} has no estimate where every number is its mean: the variance would be 0")
        return self.from_mean(statistic.mean)

    @explain_shapes
    def conjugate(self, total: Any, count: Any) -> Gamma:
        """1/v ~ Gamma(count/2 + 1, total/2)."""
        shape = 0.5 * between(count, "the count", 0.0) + 1.0
        return Gamma(shape, 0.5 * vectors(total, "the total", 1)[..., 0], of=self.bare)

    def increment(self, statistic: Totals) -> tuple[Array, Array]:
        """The shape and the rate that rows add to the prior of the precision."""
        return 0.5 * statistic.count, 0.5 * statistic.total[..., 0]

    def _predictive(self, prior: Gamma) -> StudentT:
        """The Student t of 2a degrees about the mean, scale² = b/a."""
        a, b = prior._parameters()
        return StudentT(plain(2.0 * a), self.mean, plain(np.sqrt(b / a)))

    def _slack(self, statistic: Totals) -> Array:
        return statistic.total


@dataclass(frozen=True, eq=False, repr=False)
class NormalKnownVariance(PartlyKnown):
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

    known: ClassVar[str] = "variance"
    names: ClassVar[tuple[str, ...]] = ("mean",)
    prior: ClassVar[str] = "Normal"
    support: ClassVar[str] = "finite numbers"

    def log_base(self, x: Any) -> Array:
        x = observations(x, "NormalKnownVariance")
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
        return plain(0.5 * self._parameters(eta)[0] ** 2 / self.variance)

    def gradient(self, eta: Any = None) -> Array:
        return self._parameters(eta)[0][..., None]

    def hessian(self, eta: Any = None) -> Array:
        return np.array(np.broadcast_to(self.variance, self._parameters(eta)[0].shape))[..., None, None]

    def _cumulants(self, order: int, eta: Any) -> Array:
        """0: of a normal x only the first two are not."""
        return single(np.zeros_like(self._parameters(eta)[0]), order)

    def estimate(self, statistic: Totals) -> Self:
        """The mean of the data."""
        return type(self)(self.variance, with_centre(self._check_statistic(statistic)).centre[..., 0])

    @explain_shapes
    def conjugate(self, total: Any, count: Any) -> Normal:
        """μ ~ Normal(total/count, v/count)."""
        total, count = vectors(total, "the total", 1)[..., 0], between(count, "the count", 0.0, open=True)
        return Normal(total / count, self.variance / count, of=self.bare)

    @explain_shapes
    def posterior(self, prior: Any, statistic: Totals) -> Normal:
        """The precisions n/σ² and 1/τ² add, and weigh the means."""
        prior, s = self._prior(prior), with_centre(self._own(statistic))
        m, t = prior._need("mean"), prior._need("variance")
        share = s.count * t / (self.variance + s.count * t)
        return Normal(m + share * self._off(s, m), t * self.variance / (self.variance + s.count * t), of=self.bare)

    @explain_shapes
    def log_evidence(self, prior: Any, statistic: Totals) -> Any:
        """−n/2 ln 2πσ² − scatter/2σ² − ½ ln(1 + nτ²/σ²) − ½ n(x̄ − m)²/(σ² + nτ²)."""
        prior, s = self._prior(prior), with_centre(self._own(statistic))
        n, v, t = s.count, np.asarray(self.variance), prior._need("variance")
        rows = n * (np.log(v) + 2.0 * HALF_LOG_2PI) + s.scatter[..., 0, 0] / v
        return plain(-0.5 * (rows + np.log1p(n * t / v) + n * self._off(s, prior._need("mean")) ** 2 / (v + n * t)))

    def _predictive(self, prior: Normal) -> Normal:
        """Normal(m, σ² + τ²)."""
        return Normal(prior.mean, prior._need("variance") + self.variance)

    def _off(self, s: Centred, mean: Array) -> Array:
        """x̄ − m, to the last digit; of no weight where there are no rows."""
        return np.where(s.count > 0.0, (s.centre[..., 0] - mean) + s.rest[..., 0], 0.0)

    def _totals(self, x: Any, weights: Any) -> Centred:
        rows_of_several(x, self.variance, "NormalKnownVariance")
        return centred_statistic(self, x, weights)
