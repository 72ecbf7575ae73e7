"""Normal-inverse-Wishart: the conjugate prior of a multivariate normal's mean and covariance.

    Σ ~ InverseWishart(ν, Ψ),   μ | Σ ~ Normal(m, Σ/κ)
    p(μ, Σ) ∝ |Σ|^−(ν+d+2)/2 exp(−½ tr ΨΣ⁻¹ − κ/2 (μ − m)ᵀ Σ⁻¹ (μ − m))

It is worth κ imagined rows of the mean, and ν of the covariance with the scatter Ψ; seen rows join them by Chan's update.
Murphy 2007, Conjugate Bayesian analysis of the Gaussian distribution, §9.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from suffice.errors import ModelError
from suffice.exponential.family import Family, PriorOfBoth, generator
from suffice.exponential.interval import Interval, tail
from suffice.exponential.multivariate_t import MultivariateT
from suffice.exponential.special import HALF_LOG_2PI, gamma_ends, log_multigamma_step, log_poisson
from suffice.exponential.statistic import Centred, aligned, joined
from suffice.exponential.symmetric import Factor, factored, positive
from suffice.exponential.values import Array, bounded, components, finite, keep_with_axes, plain

if TYPE_CHECKING:
    from suffice.exponential.multivariate_normal import MultivariateNormal

LOG_PI = float(np.log(np.pi))


@dataclass(frozen=True, eq=False, repr=False)
class NormalInverseWishart(PriorOfBoth):
    """A distribution of a multivariate normal's mean and covariance: `mean` with the weight of `count` rows, and an inverse
    Wishart of `df` > d − 1 degrees of freedom and the `scale` matrix.

    >>> from suffice.exponential import MultivariateNormal
    >>> prior = NormalInverseWishart([0.0, 0.0], 1.0, 4.0, [[1.0, 0.0], [0.0, 1.0]])
    >>> posterior = prior + MultivariateNormal().statistic([[2.0, 0.0], [4.0, 3.0]])
    >>> posterior.mean, posterior.count, posterior.df, posterior.scale
    (array([2., 1.]), 3.0, 6.0, array([[9., 6.],
           [6., 7.]]))
    >>> posterior.predictive().df
    5.0
    """

    mean: Any
    count: Any
    df: Any
    scale: Any
    of: Family | None = None
    rest: Any = field(default=None, repr=False)

    names: ClassVar[tuple[str, ...]] = ("mean", "count", "df", "scale")
    example: ClassVar[str] = "MultivariateNormal()"

    def __post_init__(self) -> None:
        name = type(self).__name__
        mean, scale = finite(self.mean, f"the mean of {name}"), positive(self.scale, f"the scale of {name}")
        d = scale.shape[-1]
        if mean.ndim == 0 or mean.shape[-1] != d:
            raise ModelError(f"a mean of the shape {mean.shape} does not fit a scale of the shape {scale.shape}")
        count = bounded(self.count, f"the count of {name}", 0.0, open=True)
        df = bounded(self.df, f"the df of {name} for {d} components", d - 1.0, open=True)
        rest = np.zeros(d) if self.rest is None else np.asarray(self.rest, dtype=np.float64)
        keep_with_axes(self, mean=(mean, 1), count=(count, 0), df=(df, 0), scale=(scale, 2), rest=(rest, 1))

    @property
    def expected(self) -> MultivariateNormal:
        """The posterior means, E[μ] = m and E[Σ] = Ψ/(ν − d − 1), as a normal; refused where ν ≤ d + 1, which has no E[Σ]."""
        if np.any(self._df <= self._d + 1.0):
            raise ModelError(
                f"the covariance has no expectation where the df, here {self._df.min():g}, is {self._d + 1} or below"
            )
        return self._normal(self.scale / (self._df - self._d - 1.0)[..., None, None])

    @property
    def mode(self) -> MultivariateNormal:
        """The normal of largest p(μ, Σ): m and Ψ/(ν + d + 2)."""
        return self._normal(self.scale / (self._df + self._d + 2.0)[..., None, None])

    def marginal(self, only: Any) -> NormalInverseWishart:
        """The prior of the mean and covariance of some of the components: as many degrees of freedom less as are left out."""
        chosen = components(only, self._d)
        scale = self.scale[..., chosen[:, None], chosen]
        return NormalInverseWishart(
            self.mean[..., chosen], self.count, self._df - (self._d - len(chosen)), scale, rest=self.rest[..., chosen]
        )

    def interval(self, level: float = 0.95) -> dict[str, Interval]:
        """Equal-tailed intervals of each component's `mean` (Student t) and `variance` (inverse gamma), by itself."""
        precision = gamma_ends(0.5 * (self._df - self._d + 1.0)[..., None], tail(level))
        b = 0.5 * np.diagonal(self.scale, axis1=-2, axis2=-1)
        variance = Interval(b / precision.upper, b / precision.lower)
        return {"mean": self.marginal_mean.interval(level), "variance": variance}

    @property
    def marginal_mean(self) -> MultivariateT:
        """p(μ), the covariance integrated out."""
        df = self._df - self._d + 1.0
        return MultivariateT(plain(df), self.mean, self.scale / (self._k * df)[..., None, None])

    @aligned
    def log_prob(self, normal: MultivariateNormal) -> Any:
        """ln p(μ, Σ) at a normal's mean and covariance; `normal` may be many side by side."""
        if type(normal) is not type(self.family(None)) or np.shape(normal.mean)[-1:] != (self._d,):
            raise ModelError(
                f"the density is one of normals of {self._d} components, log_prob(MultivariateNormal(…)), not of {normal!r}"
            )
        factor, d = factored(normal._need("covariance")), self._d
        squares = (factor.whitened((normal._need("mean") - self.mean) - self.rest) ** 2).sum(axis=-1)
        spread = self._log_wishart(factor) - 0.5 * (d + 2.0) * factor.log_det
        return plain(spread + d * (0.5 * np.log(self._k) - HALF_LOG_2PI) - 0.5 * self._k * squares)

    def _log_wishart(self, factor: Factor) -> Array:
        """ν/2 ln |ΨΣ⁻¹/2| − ½ tr ΨΣ⁻¹ − ln Γ_d(ν/2), of Σ = F Fᵀ and F⁻¹ Ψ F⁻ᵀ = T Tᵀ, T lower triangular.

        By Bartlett, the tᵢᵢ²/2 are independent gamma numbers: each has the density of a count, of which no term is large.
        """
        i = np.arange(self._d)
        shapes = 0.5 * (self._df[..., None] - i)
        inner = factored(factor.root @ self.scale @ np.swapaxes(factor.root, -1, -2))
        T = inner.scale[..., :, None] * inner.lower
        halves = 0.5 * np.diagonal(T, axis1=-2, axis2=-1) ** 2
        each = log_poisson(shapes, halves) + np.log(shapes) + 0.5 * i * np.log(halves)
        below = 0.5 * (np.tril(T, -1) ** 2).sum(axis=(-2, -1)) + 0.25 * self._d * (self._d - 1) * LOG_PI
        return np.asarray(each.sum(axis=-1) - below)

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> MultivariateNormal:
        """n draws of both, as so many normals side by side: the first axis of their parameters. By Bartlett's decomposition."""
        rng, lead, d = generator(n, seed), self._df.shape, self._d
        A = np.tril(rng.standard_normal((n, *lead, d, d)), -1)
        A[..., np.arange(d), np.arange(d)] = np.sqrt(rng.chisquare(self._df[..., None] - np.arange(d), (n, *lead, d)))
        root = self._factor.scale[..., :, None] * (self._factor.lower @ np.swapaxes(np.linalg.inv(A), -1, -2))
        off = np.einsum("...ij,...j->...i", root, rng.standard_normal((n, *lead, d))) / np.sqrt(self._k)[..., None]
        return self._normal(root @ np.swapaxes(root, -1, -2), off)

    def plus(self, s: Centred) -> NormalInverseWishart:
        """The posterior: κ + n, ν + n, and Ψ + scatter + κn/(κ+n) (x̄ − m)(x̄ − m)ᵀ."""
        both, shape = joined(s, self._k, self.mean, self.rest, self.scale)
        mean, rest, scale = (a.reshape(*shape, *a.shape[1:]) for a in (both.mean, both.rest, both.scatter))
        return NormalInverseWishart(mean, both.weight.reshape(shape), self._df + s.count, scale, s.family, rest)

    def evidence(self, s: Centred) -> Any:
        """ln Γ_d(ν′/2)/Γ_d(ν/2) + ν/2 ln |Ψ| − ν′/2 ln |Ψ′| + d/2 ln κ/κ′ − nd/2 ln π, with ν′, Ψ′, κ′ of the posterior."""
        after, n, d = self.plus(s), s.count, self._d
        now = after._factor.log_det
        slack = -0.5 * self._df * self._log_growth(s, now) - 0.5 * n * now
        gammas = log_multigamma_step(0.5 * self._df, 0.5 * n, d)
        return plain(gammas + slack - 0.5 * d * np.log1p(n / self._k) - 0.5 * n * d * LOG_PI)

    def _log_growth(self, s: Centred, now: Array) -> Array:
        """ln |Ψ′|/|Ψ|, from what is added where that is little: the determinants differ in their last digits only."""
        off = np.where(s.count[..., None] > 0.0, (s.centre - self.mean) + (s.rest - self.rest), 0.0)
        share = self._k * (s.count / (self._k + s.count))
        added = s.scatter + share[..., None, None] * off[..., :, None] * off[..., None, :]
        root = self._factor.root
        parts = np.linalg.eigvalsh(root @ added @ np.swapaxes(root, -1, -2))
        little = np.asarray((parts < 1.0).all(axis=-1))
        few = np.log1p(np.where(little[..., None], np.maximum(parts, 0.0), 0.0)).sum(axis=-1)
        return np.where(little, few, now - self._factor.log_det)

    def next_observation(self) -> MultivariateT:
        """The multivariate Student t of the next x: ν − d + 1 degrees, the scale Ψ (κ + 1)/κ(ν − d + 1)."""
        df = self._df - self._d + 1.0
        return MultivariateT(plain(df), self.mean, self.scale * ((1.0 + 1.0 / self._k) / df)[..., None, None])

    def family(self, of: Family | None) -> Family:
        from suffice.exponential.multivariate_normal import MultivariateNormal

        return super().family(MultivariateNormal() if of is None and self.of is None else of)

    def _normal(self, covariance: Array, off: Any = 0.0) -> MultivariateNormal:
        from suffice.exponential.multivariate_normal import MultivariateNormal

        return MultivariateNormal(self.mean + off, covariance)

    @property
    def _d(self) -> int:
        return int(self.mean.shape[-1])

    @property
    def _df(self) -> Array:
        return np.asarray(self.df)

    @property
    def _factor(self) -> Factor:
        return factored(self.scale)
