"""Normal-inverse-Wishart: the conjugate prior of a multivariate normal's mean and covariance; and that of one component. What
the two have in common; they stand in `normal.py`, beside the normals that they make.

    Σ ~ InverseWishart(ν, Ψ),   μ | Σ ~ Normal(m, Σ/κ)
    p(μ, Σ) ∝ |Σ|^−(ν+d+2)/2 exp(−½ tr ΨΣ⁻¹ − κ/2 (μ − m)ᵀ Σ⁻¹ (μ − m))

    v ~ InverseGamma(a, b),   μ | v ~ Normal(m, v/κ):   normal-inverse-gamma, d = 1,   ν = 2a,   Ψ = 2b

It is worth κ imagined rows of the mean, and ν of the covariance with the scatter Ψ; seen rows join them by Chan's update.
Murphy 2007, Conjugate Bayesian analysis of the Gaussian distribution, §6 and §9.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from suffice.errors import ModelError
from suffice.exponential.arithmetic.special import HALF_LOG_2PI, gamma_ends, log_multigamma_step, log_poisson
from suffice.exponential.arithmetic.symmetric import ScaledCholesky, scaled_cholesky
from suffice.exponential.arithmetic.values import Array, Interval, plain, tail
from suffice.exponential.protocol.family import ConjugatePrior, ExponentialFamily
from suffice.exponential.protocol.observable import Value
from suffice.exponential.protocol.statistic import Centred, explain_shapes, join_moments

LOG_PI = float(np.log(np.pi))


class PriorOfBoth(Value, ConjugatePrior):
    """What the priors of a normal's mean and of its variance or covariance have in common. `rest`, what of the mean a double
    cannot hold, a posterior remembers, so that rows one by one make the same as all at once; it is not shown."""

    mean: Any
    count: Any
    narrow: ClassVar[bool] = False
    """Whether it is about numbers, without an axis of components."""
    worth: ClassVar[float] = 1.0
    """The imagined rows of the spread that one of the third parameter stands for, and the scatter that one of the scale does."""

    @property
    def _moments(self) -> tuple[Array, Array, Array, Array]:
        """m and its rest (..., d), ν (...) and Ψ (..., d, d)."""
        mean, rest, df, scale = (np.asarray(getattr(self, name)) for name in ("mean", "rest", self.names[2], "scale"))
        if self.narrow:
            mean, rest, scale = mean[..., None], rest[..., None], scale[..., None, None]
        return mean, rest, self.worth * df, self.worth * scale

    def _normal(self, covariance: Array, off: Any = 0.0) -> Any:
        """The normal of this covariance about the mean, or some way off it."""
        return self._own_family._of_moments(self._moments[0] + off, covariance)

    @property
    @abstractmethod
    def _own_family(self) -> Any:
        """The one family that this is a prior of."""

    @property
    def _k(self) -> Array:
        return np.asarray(self.count)

    @property
    def _d(self) -> int:
        return int(self._moments[0].shape[-1])

    @property
    def _factor(self) -> ScaledCholesky:
        return scaled_cholesky(self._moments[3])

    @property
    def expected(self) -> Any:
        """The posterior means, E[μ] = m and E[Σ] = Ψ/(ν − d − 1), as a normal; refused where ν ≤ d + 1, which has no E[Σ]."""
        _, _, df, scale = self._moments
        least = self._d + 1.0
        if np.any(df <= least):
            what, where = self._own_family.names[1], f"{self.names[2]}, here {df.min() / self.worth:g}"
            raise ModelError(f"the {what} has no expectation where the {where}, is {least / self.worth:g} or below")
        return self._normal(scale / (df - least)[..., None, None])

    @property
    def mode(self) -> Any:
        """The normal of largest p(μ, Σ): m and Ψ/(ν + d + 2)."""
        _, _, df, scale = self._moments
        return self._normal(scale / (df + self._d + 2.0)[..., None, None])

    def interval(self, level: float = 0.95) -> dict[str, Interval]:
        """Equal-tailed intervals of the `mean` (Student t) and the `variance` (inverse gamma), of each component by itself."""
        _, _, df, scale = self._moments
        precision = gamma_ends(0.5 * (df - self._d + 1.0)[..., None], tail(level))
        b = 0.5 * np.diagonal(scale, axis1=-2, axis2=-1)
        variance = Interval(*(plain((b / end).reshape(np.shape(self.mean))) for end in (precision.upper, precision.lower)))
        return {"mean": self.marginal_mean.interval(level), "variance": variance}

    @property
    def marginal_mean(self) -> Any:
        """p(μ), the variance or covariance integrated out."""
        return self._student(1.0 / self._k)

    def next_observation(self) -> Any:
        """The Student t of the next x: ν − d + 1 degrees, the scale Ψ (κ + 1)/κ(ν − d + 1). Its location is a double: what `rest`
        has beyond is left out, which a ratio of evidences does not, and at a mean of 1e9 with the scale 1 that is 1e-7."""
        return self._student(1.0 + 1.0 / self._k)

    def _student(self, share: Array) -> Any:
        """The Student t about the mean whose scale is this share of Ψ/(ν − d + 1)."""
        mean, _, df, scale = self._moments
        degrees = df - self._d + 1.0
        return self._own_family._student(plain(degrees), mean, scale / degrees[..., None, None] * share[..., None, None])

    @explain_shapes
    def log_prob(self, normal: Any) -> Any:
        """ln p(μ, Σ) at a normal's mean and covariance; `normal` may be many side by side."""
        other = type(normal) is not type(self._own_family)
        if other or (not self.narrow and np.shape(normal.mean)[-1:] != (self._d,)):
            kind = "normals" if self.narrow else f"normals of {self._d} components"
            call = "Normal(mean, variance)" if self.narrow else "MultivariateNormal(…)"
            raise ModelError(f"the density is one of {kind}, log_prob({call}), not of {normal!r}")
        (at, covariance), (mean, rest, _, _), d = normal._moments(), self._moments, self._d
        factor = scaled_cholesky(covariance)
        squares = factor.square((at - mean) - rest)
        spread = self._log_wishart(factor) - 0.5 * (d + 2.0) * factor.log_det
        return plain(spread + d * (0.5 * np.log(self._k) - HALF_LOG_2PI) - 0.5 * self._k * squares)

    def _log_wishart(self, factor: ScaledCholesky) -> Array:
        """ν/2 ln |ΨΣ⁻¹/2| − ½ tr ΨΣ⁻¹ − ln Γ_d(ν/2), of Σ = F Fᵀ and F⁻¹ Ψ F⁻ᵀ = T Tᵀ, T lower triangular.

        By Bartlett, the tᵢᵢ²/2 are independent gamma numbers: each has the density of a count, of which no term is large.
        """
        _, _, df, scale = self._moments
        i = np.arange(self._d)
        shapes = 0.5 * (df[..., None] - i)
        inner = scaled_cholesky(factor.root @ scale @ np.swapaxes(factor.root, -1, -2))
        T = inner.scale[..., :, None] * inner.lower
        halves = 0.5 * np.diagonal(T, axis1=-2, axis2=-1) ** 2
        each = log_poisson(shapes, halves) + np.log(shapes) + 0.5 * i * np.log(halves)
        below = 0.5 * (np.tril(T, -1) ** 2).sum(axis=(-2, -1)) + 0.25 * self._d * (self._d - 1) * LOG_PI
        return np.asarray(each.sum(axis=-1) - below)

    def plus(self, seen: Centred, family: ExponentialFamily) -> Self:
        """The posterior: κ + n, ν + n, and Ψ + scatter + κn/(κ+n) (x̄ − m)(x̄ − m)ᵀ."""
        mean, rest, df, scale = self._moments
        both, shape = join_moments(seen, self._k, mean, rest, scale)
        mean, rest, scale = (a.reshape(*shape, *a.shape[1:]) for a in (both.mean, both.rest, both.scatter))
        if self.narrow:
            mean, rest, scale = mean[..., 0], rest[..., 0], scale[..., 0, 0]
        spread = {self.names[2]: (df + seen.count) / self.worth, "scale": scale / self.worth}
        return replace(self, mean=mean, count=both.weight.reshape(shape), **spread, of=family.bare, rest=rest)  # type: ignore[type-var]

    def evidence(self, seen: Centred, log_base: Array) -> Array:
        """ln Γ_d(ν′/2)/Γ_d(ν/2) + ν/2 ln |Ψ| − ν′/2 ln |Ψ′| + d/2 ln κ/κ′ − nd/2 ln π, with ν′, Ψ′, κ′ of the posterior."""
        n, d, df = seen.count, self._d, self._moments[2]
        now = self.plus(seen, self._own_family)._factor.log_det
        slack = -0.5 * df * self._log_growth(seen, now) - 0.5 * n * now
        gammas = log_multigamma_step(0.5 * df, 0.5 * n, d)
        return np.asarray(gammas + slack - 0.5 * d * np.log1p(n / self._k) - 0.5 * n * d * LOG_PI)

    def _log_growth(self, s: Centred, now: Array) -> Array:
        """ln |Ψ′|/|Ψ|, from what is added where that is little: the determinants differ in their last digits only."""
        mean, rest, _, _ = self._moments
        off = np.where(s.count[..., None] > 0.0, (s.centre - mean) + (s.rest - rest), 0.0)
        share = self._k * (s.count / (self._k + s.count))
        added = s.scatter + share[..., None, None] * off[..., :, None] * off[..., None, :]
        factor = self._factor
        root = factor.root
        gain = root @ added @ np.swapaxes(root, -1, -2)
        parts = gain[..., 0] if self.narrow else np.linalg.eigvalsh(gain)
        little = np.asarray((parts < 1.0).all(axis=-1))
        few = np.log1p(np.where(little[..., None], np.maximum(parts, 0.0), 0.0)).sum(axis=-1)
        return np.where(little, few, now - factor.log_det)

    def family(self, of: ExponentialFamily | None) -> ExponentialFamily:
        return super().family(self._own_family if of is None and self.of is None else of)
