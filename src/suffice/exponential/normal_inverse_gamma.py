"""Normal-inverse-gamma: the conjugate prior of a normal's mean and variance.

    v ~ InverseGamma(a, b),   μ | v ~ Normal(m, v/κ)
    p(μ, v) = √(κ/2πv) b^a/Γ(a) v^−(a+1) exp(−(2b + κ(μ − m)²)/2v)

It is worth κ imagined rows of the mean, and 2a of the variance with the scatter 2b; seen rows join them by Chan's update.
Murphy 2007, Conjugate Bayesian analysis of the Gaussian distribution, §6.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from suffice.errors import ModelError
from suffice.exponential.family import Family, PriorOfBoth, generator
from suffice.exponential.interval import Interval, tail
from suffice.exponential.special import HALF_LOG_2PI, gamma_ends, log_gamma_step, log_growth, log_poisson
from suffice.exponential.statistic import Centred, aligned, joined
from suffice.exponential.student_t import StudentT
from suffice.exponential.values import Array, bounded, finite, keep, plain

if TYPE_CHECKING:
    from suffice.exponential.normal import Normal


@dataclass(frozen=True, eq=False, repr=False)
class NormalInverseGamma(PriorOfBoth):
    """A distribution of a normal's mean and variance: `mean` with the weight of `count` rows, and an inverse gamma of the
    variance. (`suffice.NormalInverseGamma` is something else: it imagines rows for the nodes of a network.)

    >>> from suffice.exponential import Normal
    >>> posterior = NormalInverseGamma(0.0, 1.0, 2.0, 3.0) + Normal().statistic([2.0, 4.0])
    >>> posterior
    NormalInverseGamma(mean=2.0, count=3.0, shape=3.0, scale=7.0, of=Normal())
    >>> posterior.expected, posterior.predictive()
    (Normal(mean=2.0, variance=3.5), StudentT(df=6.0, location=2.0, scale=1.7638342073763937))
    """

    mean: Any
    count: Any
    shape: Any
    scale: Any
    of: Family | None = None
    rest: Any = field(default=None, repr=False)

    names: ClassVar[tuple[str, ...]] = ("mean", "count", "shape", "scale")
    example: ClassVar[str] = "Normal()"

    def __post_init__(self) -> None:
        mean = finite(self.mean, "the mean of NormalInverseGamma")
        rest = np.zeros(()) if self.rest is None else np.asarray(self.rest, dtype=np.float64)
        positive = {n: bounded(getattr(self, n), f"the {n} of NormalInverseGamma", 0.0, open=True) for n in self.names[1:]}
        keep(self, mean=mean, **positive, rest=rest)

    @property
    def expected(self) -> Normal:
        """The posterior means, E[μ] = m and E[v] = b/(a − 1), as a normal; refused where a ≤ 1, which has no E[v]."""
        if np.any(self._a <= 1.0):
            raise ModelError(f"the variance has no expectation where the shape, here {self._a.min():g}, is 1 or below")
        return self._normal(self._b / (self._a - 1.0))

    @property
    def mode(self) -> Normal:
        """The normal of largest p(μ, v): m and b/(a + 3/2)."""
        return self._normal(self._b / (self._a + 1.5))

    def interval(self, level: float = 0.95) -> dict[str, Interval]:
        """Equal-tailed intervals of the `mean` (Student t) and the `variance` (inverse gamma)."""
        precision = gamma_ends(self._a, tail(level))
        variance = Interval(plain(self._b / precision.upper), plain(self._b / precision.lower))
        return {"mean": self.marginal_mean.interval(level), "variance": variance}

    @property
    def marginal_mean(self) -> StudentT:
        """p(μ), the variance integrated out."""
        return StudentT(plain(2.0 * self._a), self.mean, plain(np.sqrt(self._b / self._a / self._k)))

    @aligned
    def log_prob(self, normal: Normal) -> Any:
        """ln p(μ, v) at a normal's mean and variance; `normal` may be many side by side."""
        if type(normal) is not type(self.family(None)):
            raise ModelError(f"the density is one of normals, log_prob(Normal(mean, variance)), not of {normal!r}")
        mean, v, a, b = normal._need("mean"), normal._need("variance"), self._a, self._b
        # 1/v is Gamma(a, b), whose density is that of a count a of the mean b/v, but for a/v: no term is large.
        spread = np.log(a) - np.log(v) + log_poisson(a, b / v)
        off = (mean - self.mean) - self._rest
        return plain(spread + 0.5 * (np.log(self._k) - np.log(v)) - HALF_LOG_2PI - 0.5 * self._k * off**2 / v)

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Normal:
        """n draws of both, as so many normals side by side: the first axis of their parameters."""
        rng, shape = generator(n, seed), self._a.shape
        variance = self._b / rng.standard_gamma(self._a, (n, *shape))
        return self._normal(variance, rng.standard_normal((n, *shape)) * np.sqrt(variance / self._k))

    def plus(self, s: Centred) -> NormalInverseGamma:
        """The posterior: κ + n, a + n/2, and b + ½ (scatter + κn/(κ+n) (x̄ − m)²)."""
        mean, rest = np.asarray(self.mean)[..., None], np.asarray(self.rest)[..., None]
        both, shape = joined(s, self._k, mean, rest, 2.0 * self._b[..., None, None])
        parts = (a.reshape(shape) for a in (both.mean, both.weight, both.scatter, both.rest))
        mean, count, scatter, rest = parts
        return NormalInverseGamma(mean, count, self._a + 0.5 * s.count, 0.5 * scatter, s.family, rest)

    def evidence(self, s: Centred) -> Any:
        """ln Γ(a′)/Γ(a) + a ln b − a′ ln b′ + ½ ln κ/κ′ − n/2 ln 2π, with a′, b′, κ′ of the posterior."""
        after, n = self.plus(s), s.count
        b, c = self._b, after._b
        slack = -self._a * log_growth(b, self._added(s)) - 0.5 * n * np.log(c)
        return plain(log_gamma_step(self._a, 0.5 * n) + slack - 0.5 * np.log1p(n / self._k) - n * HALF_LOG_2PI)

    def _added(self, s: Centred) -> Array:
        """b′ − b = ½ (scatter + κn/(κ+n) (x̄ − m)²), not as the difference of two that may be large."""
        off = (s.centre[..., 0] - self.mean) + (s.rest[..., 0] - self._rest)
        share = self._k * (s.count / (self._k + s.count))
        return np.asarray(0.5 * (s.scatter[..., 0, 0] + share * np.where(s.count > 0.0, off, 0.0) ** 2))

    def next_observation(self) -> StudentT:
        """The Student t of the next x: 2a degrees, scale² = b(κ + 1)/aκ. Its location is a double: what `rest` has beyond is left
        out, which a ratio of evidences does not, and at a mean of 1e9 with the scale 1 that is 1e-7."""
        return StudentT(plain(2.0 * self._a), self.mean, plain(np.sqrt(self._b / self._a * (1.0 + 1.0 / self._k))))

    def family(self, of: Family | None) -> Family:
        from suffice.exponential.normal import Normal

        return super().family(Normal() if of is None and self.of is None else of)

    def _normal(self, variance: Array, off: Any = 0.0) -> Normal:
        from suffice.exponential.normal import Normal

        return Normal(self.mean + off, variance)

    @property
    def _a(self) -> Array:
        return np.asarray(self.shape)

    @property
    def _b(self) -> Array:
        return np.asarray(self.scale)

    @property
    def _rest(self) -> Array:
        return np.asarray(self.rest)
