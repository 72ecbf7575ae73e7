"""What normal distributions have in common, of numbers and of vectors: a mean of d components and a covariance; `normal.py` has
the letters. And what their conjugate priors have, of a mean and a covariance, or of those of one component, which stand in
`normal.py`, beside the normals that they make:

    Σ ~ InverseWishart(ν, Ψ),   μ | Σ ~ Normal(m, Σ/κ)
    p(μ, Σ) ∝ |Σ|^−(ν+d+2)/2 exp(−½ tr ΨΣ⁻¹ − κ/2 (μ − m)ᵀ Σ⁻¹ (μ − m))

    v ~ InverseGamma(a, b),   μ | v ~ Normal(m, v/κ):   normal-inverse-gamma, d = 1,   ν = 2a,   Ψ = 2b

It is worth κ imagined rows of the mean, and ν of the covariance with the scatter Ψ; seen rows join them by Chan's update.
Murphy 2007, Conjugate Bayesian analysis of the Gaussian distribution, §6 and §9.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from suffice.errors import ModelError, TooLarge, bytes_in_words
from suffice.numerics.exponential.arithmetic import special
from suffice.numerics.exponential.arithmetic.special import HALF_LOG_2PI
from suffice.numerics.exponential.arithmetic.symmetric import ScaledCholesky, half, off_diagonal_weight, scaled_cholesky
from suffice.numerics.exponential.arithmetic.values import Array, Interval, plain, tail
from suffice.numerics.exponential.protocol.family import ConjugatePrior, ExponentialFamily, Inside
from suffice.numerics.exponential.protocol.observable import Value, generator
from suffice.numerics.exponential.protocol.statistic import (
    Centred,
    Totals,
    centred_statistic,
    explain_shapes,
    join_moments,
    with_centre,
)

LARGEST = 2**31
"""Bytes that a Hessian may take."""


class MeanAndSpread(ExponentialFamily):
    """What Normal and MultivariateNormal have in common: a mean of d components, one of a plain number, and a covariance."""

    if TYPE_CHECKING:
        # The mean (..., d) and the covariance (..., d, d), here or at another η, and the member of these; x as vectors of d
        # components, and whether it is finite; a refusal of rows that have no spread.
        def _moments(self, eta: Any = None) -> tuple[Array, Array]: ...
        def _of_moments(self, mean: Array, covariance: Array) -> Self: ...
        def _inside(self, x: Any) -> Inside: ...
        def _refuse_singular(self, s: Centred) -> None: ...

    @property
    def _factor(self) -> ScaledCholesky:
        return scaled_cholesky(self._moments()[1])

    def sufficient(self, x: Any) -> Array:
        x = self._inside(x)[0]
        return np.concatenate([x, half(x[..., :, None] * x[..., None, :])], axis=-1)

    def log_base(self, x: Any) -> Array:
        x, inside = self._inside(x)
        return np.where(inside, -HALF_LOG_2PI * x.shape[-1], -np.inf)

    def raw(self, count: Array, centre: Array, scatter: Array) -> tuple[Array, Array]:
        """Σ T(x) and Σ ln h(x) of rows with these moments."""
        total = count[..., None] * centre
        squares = scatter + total[..., :, None] * centre[..., None, :]
        return np.concatenate([total, half(squares)], axis=-1), -HALF_LOG_2PI * centre.shape[-1] * count

    @property
    @np.errstate(over="ignore")
    def natural(self) -> Array:
        mean, precision = self._moments()[0], self._factor.inverse
        linear = np.einsum("...ij,...j->...i", precision, mean)
        return np.concatenate([linear, -0.5 * off_diagonal_weight(mean.shape[-1], 2.0) * half(precision)], axis=-1)

    def log_normaliser(self, eta: Any = None) -> Any:
        mean, covariance = self._moments(eta)
        factor = scaled_cholesky(covariance)
        with np.errstate(over="ignore"):
            return plain(0.5 * (factor.square(mean) + factor.log_det))

    @np.errstate(over="ignore")
    def gradient(self, eta: Any = None) -> Array:
        mean, covariance = self._moments(eta)
        return np.concatenate([mean, half(covariance + mean[..., :, None] * mean[..., None, :])], axis=-1)

    @np.errstate(over="ignore")
    def hessian(self, eta: Any = None) -> Array:
        """Cov[x_i, x_j] = Σ_ij, Cov[x_i, x_j x_k] = μ_j Σ_ik + μ_k Σ_ij, and Cov[x_i x_j, x_k x_l] by Isserlis."""
        m, S = self._moments(eta)
        d = m.shape[-1]
        k = d + d * (d + 1) // 2
        if m.size // d * k * k * 8 > LARGEST:
            raise TooLarge(f"the second derivatives of {d} components are {k:,}², {bytes_in_words(m.size / d * k * k * 8)}")
        i, j = np.triu_indices(d)
        cross = m[..., None, i] * S[..., :, j] + m[..., None, j] * S[..., :, i]
        a, b, c, e = i[:, None], j[:, None], i[None, :], j[None, :]
        mm = m[..., :, None] * m[..., None, :]
        squares = S[..., a, c] * (S + mm)[..., b, e] + mm[..., a, c] * S[..., b, e]
        squares = squares + S[..., a, e] * (S + mm)[..., b, c] + mm[..., a, e] * S[..., b, c]
        top = np.concatenate([S, cross], axis=-1)
        return np.concatenate([top, np.concatenate([np.swapaxes(cross, -1, -2), squares], axis=-1)], axis=-2)

    def estimate(self, statistic: Totals) -> Self:
        """The mean of the data, and its scatter divided by the count; refused where that is singular."""
        s = with_centre(self._check_statistic(statistic))
        self._refuse_singular(s)
        return self._of_moments(s.centre, s.scatter / s.count[..., None, None])

    def _log_density(self, x: Array) -> Array:
        """−½ |L⁻¹(x − μ)|² − ½ ln |Σ| − d/2 ln 2π, where Σ = L Lᵀ."""
        factor = self._factor
        squares = factor.square(x - self._moments()[0])
        return np.asarray(-0.5 * (squares + factor.log_det) - HALF_LOG_2PI * x.shape[-1])

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        mean = self._moments()[0]
        draws = mean + self._factor.colour(generator(n, seed).standard_normal((n, *mean.shape)))
        return np.asarray(draws if self.event_axes else draws[..., 0])

    def entropy(self) -> Any:
        """½ ln |2πeΣ|."""
        return plain(0.5 * self._factor.log_det + self._moments()[0].shape[-1] * (HALF_LOG_2PI + 0.5))

    def _divergence(self, other: Self) -> Array:
        """½ (Σ (r − 1 − ln r) + (μ₁ − μ₂)ᵀ Σ₂⁻¹ (μ₁ − μ₂)), r the eigenvalues of Σ₂⁻¹ Σ₁."""
        (mine, covariance), (yours, theirs), factor = self._moments(), other._moments(), other._factor
        if mine.shape[-1] != yours.shape[-1]:
            raise ModelError(f"normals of {mine.shape[-1]} and of {yours.shape[-1]} components have no divergence")
        off = np.linalg.eigvalsh(factor.root @ (covariance - theirs) @ np.swapaxes(factor.root, -1, -2))
        # r − 1 has the digits where the two are alike; far from that the trace and the determinants have.
        alike = (np.abs(off) < 0.5).all(axis=-1)
        like = special.excess_over_log(np.where(alike[..., None], off, 0.0)).sum(axis=-1)
        traced = ((factor.root @ (self._factor.scale[..., :, None] * self._factor.lower)) ** 2).sum(axis=(-2, -1))
        unlike = traced - mine.shape[-1] - (self._factor.log_det - factor.log_det)
        return np.asarray(0.5 * (np.where(alike, like, unlike) + factor.square(mine - yours)))

    def increment(self, statistic: Totals) -> Centred:
        """The rows' own moments, which join the imagined ones by Chan's update."""
        return with_centre(statistic)

    def _predictive(self, prior: Any) -> Any:
        return prior.next_observation()

    def _totals(self, x: Any, weights: Any) -> Centred:
        return centred_statistic(self, x, weights)


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
    _own_family: ClassVar[Any]
    """The one family that this is a prior of."""

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
        precision = special.gamma_ends(0.5 * (df - self._d + 1.0)[..., None], tail(level))
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
        each = special.log_poisson(shapes, halves) + np.log(shapes) + 0.5 * i * np.log(halves)
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
        gammas = special.log_multigamma_step(0.5 * df, 0.5 * n, d)
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
