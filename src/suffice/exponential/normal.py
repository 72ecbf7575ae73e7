"""The normal distribution, p(x | μ, v) = (2πv)^−½ exp(−(x − μ)²/2v), which is also the prior of the mean of a normal of known
variance; and that of vectors, p(x | μ, Σ) = (2π)^−d/2 |Σ|^−½ exp(−½ (x − μ)ᵀ Σ⁻¹ (x − μ)). In minimal form, for d components:

    T(x) = (x_i; x_i x_j for i ≤ j),   h(x) = (2π)^−d/2,   k = d + d(d + 1)/2
    η = (Λμ; −½Λ_ii on the diagonal, −Λ_ij off it),   Λ = Σ⁻¹
    A(η) = ½ μᵀΛμ + ½ ln |Σ|,   E[T] = (μ; μ_i μ_j + Σ_ij)

Only the symmetric half of x xᵀ is there, row by row: an entry off the diagonal stands for two, so its η is twice that of the full
matrix −½Λ, while T and E[T] have it once. Of one component, T(x) = (x, x²), η = (μ/v, −1/2v) and Var[T] = ((v, 2μv), (2μv,
4μ²v + 2v²)).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from suffice.errors import DataError, FitError, ModelError, TooLarge, bytes_in_words
from suffice.exponential.cumulants import of_quadratics, symmetric
from suffice.exponential.family import Family, FamilyAndPrior, Inside, generator
from suffice.exponential.interval import Interval, tail
from suffice.exponential.normal_inverse_wishart import NormalInverseGamma, NormalInverseWishart
from suffice.exponential.predictives import MultivariateT, StudentT
from suffice.exponential.special import HALF_LOG_2PI, excess_over_log
from suffice.exponential.statistic import Centred, Totals, aligned, centred, with_centre
from suffice.exponential.symmetric import (
    COLLINEAR,
    Factor,
    factored,
    half,
    off_diagonal_weight,
    positive,
    singular_column,
    whole_of,
)
from suffice.exponential.values import Array, bounded, components, finite, keep_with_axes, observed, plain, vectors
from suffice.libraries import sc

LARGEST = 2**31
"""Bytes that a Hessian may take."""


class MeanAndSpread(Family):
    """What Normal and MultivariateNormal have in common: a mean of d components, one of a plain number, and a covariance."""

    @abstractmethod
    def _moments(self, eta: Any = None) -> tuple[Array, Array]:
        """The mean (..., d) and the covariance (..., d, d), here or at another η."""

    @abstractmethod
    def _of_moments(self, mean: Array, covariance: Array) -> Self:
        """The member of these moments."""

    @abstractmethod
    def _inside(self, x: Any) -> Inside:
        """x as vectors of d components, and whether it is finite."""

    @property
    def _factor(self) -> Factor:
        return factored(self._moments()[1])

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
        factor = factored(covariance)
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
        s = with_centre(self._seen(statistic))
        self._refuse_singular(s)
        return self._of_moments(s.centre, s.scatter / s.count[..., None, None])

    @abstractmethod
    def _refuse_singular(self, s: Centred) -> None:
        """Refuse rows that have no spread."""

    def _log_density(self, x: Array) -> Array:
        """−½ |L⁻¹(x − μ)|² − ½ ln |Σ| − d/2 ln 2π, where Σ = L Lᵀ."""
        factor = self._factor
        squares = factor.square(x - self._moments()[0])
        return np.asarray(-0.5 * (squares + factor.log_det) - HALF_LOG_2PI * x.shape[-1])

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        mean = self._moments()[0]
        draws = mean + self._factor.coloured(generator(n, seed).standard_normal((n, *mean.shape)))
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
        like = excess_over_log(np.where(alike[..., None], off, 0.0)).sum(axis=-1)
        traced = ((factor.root @ (self._factor.scale[..., :, None] * self._factor.lower)) ** 2).sum(axis=(-2, -1))
        unlike = traced - mine.shape[-1] - (self._factor.log_det - factor.log_det)
        return np.asarray(0.5 * (np.where(alike, like, unlike) + factor.square(mine - yours)))

    def learned(self, statistic: Totals) -> Centred:
        """The rows' own moments, which join the imagined ones by Chan's update."""
        return with_centre(statistic)

    def _predicted(self, prior: Any) -> Any:
        return prior.next_observation()

    def _totals(self, x: Any, weights: Any) -> Centred:
        return centred(self, x, weights)


@dataclass(frozen=True, eq=False, repr=False)
class Normal(FamilyAndPrior, MeanAndSpread):
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

    def _checked(self, name: str, value: Any) -> Array:
        return finite(value, self._called(name)) if name == "mean" else super()._checked(name, value)

    @property
    def mode(self) -> Any:
        """The mean."""
        return self.given().mean

    def interval(self, level: float = 0.95) -> Interval:
        """The equal-tailed interval of this probability."""
        half = -sc.ndtri(tail(level)) * np.sqrt(self._need("variance"))
        return Interval(plain(self._need("mean") - half), plain(self._need("mean") + half))

    def _cumulants(self, order: int, eta: Any) -> Array:
        """Of i times x and j times x²: 0 of i > 2; 2ʲ j! vʲ⁺¹, 2ʲ j! μ vʲ, 2ʲ⁻¹ (j − 1)! vʲ⁻¹ (j μ² + v) of i = 2, 1, 0."""
        mean, v = self._parameters(eta)
        n, powers = order, [2.0**j * sc.gamma(j + 1.0) for j in (order - 2, order - 1)]
        last = 2.0 ** (n - 1) * sc.gamma(float(n)) * v ** (n - 1) * (n * mean**2 + v)
        entries = np.stack([*[np.zeros_like(v)] * (n - 2), powers[0] * v ** (n - 1), powers[1] * mean * v ** (n - 1), last], -1)
        return symmetric(2, n, lambda at: entries[..., at.sum(axis=1)])

    def from_natural(self, eta: Any) -> Self:
        eta = vectors(eta, "η of Normal", 2)
        variance = 0.5 / bounded(-eta[..., 1], "−η₂ of Normal", 0.0, open=True)
        return type(self)(eta[..., 0] * variance, variance)

    def from_mean(self, mu: Any) -> Self:
        mu = vectors(mu, "E[T] of Normal", 2)
        variance = bounded(mu[..., 1] - mu[..., 0] ** 2, "E[x²] − E[x]² of Normal", 0.0, open=True)
        return type(self)(mu[..., 0], variance)

    def _log_density(self, x: Array) -> Array:
        """−½ (x − μ)²/v − ½ ln 2πv: without the matrices of the general form."""
        mean, variance = self._parameters()
        off = (x[..., 0] - mean) / np.sqrt(variance)
        return np.asarray(-0.5 * (off * off + np.log(variance)) - HALF_LOG_2PI)

    @aligned
    def conjugate(self, total: Any, count: Any) -> NormalInverseGamma:
        """The mean total₁/count; on the variance an inverse gamma of shape (count + 3)/2."""
        total, count = vectors(total, "the total", 2), bounded(count, "the count", 0.0, open=True)
        mean = total[..., 0] / count
        return NormalInverseGamma(mean, count, 0.5 * (count + 3.0), 0.5 * (total[..., 1] - count * mean**2), of=self.bare)

    def _refuse_singular(self, s: Centred) -> None:
        if np.any(s.scatter <= 0.0):
            raise FitError("Normal has no estimate where all numbers are equal (or there is only one): the variance would be 0")

    def _moments(self, eta: Any = None) -> tuple[Array, Array]:
        mean, variance = self._parameters(eta)
        return mean[..., None], variance[..., None, None]

    def _of_moments(self, mean: Array, covariance: Array) -> Self:
        return type(self)(mean[..., 0], covariance[..., 0, 0])

    def _student(self, df: Any, location: Array, scale: Array) -> StudentT:
        return StudentT(df, plain(location[..., 0]), plain(np.sqrt(scale[..., 0, 0])))

    def _inside(self, x: Any) -> Inside:
        x = observed(x, "Normal")
        return x[..., None], np.isfinite(x)


@dataclass(frozen=True, eq=False, repr=False)
class MultivariateNormal(MeanAndSpread):
    """A normal distribution of vectors, by its mean and covariance. Its conjugate prior is `NormalInverseWishart`.

    >>> s = MultivariateNormal().statistic([[0.0, 1.0], [2.0, 1.0], [1.0, 4.0]])
    >>> MultivariateNormal().estimate(s).covariance.round(4)
    array([[0.6667, 0.    ],
           [0.    , 2.    ]])
    >>> MultivariateNormal([0.0, 0.0], [[2.0, 1.0], [1.0, 2.0]]).natural.round(4)
    array([ 0.    ,  0.    , -0.3333,  0.3333, -0.3333])
    """

    mean: Any = None
    covariance: Any = None

    names: ClassVar[tuple[str, ...]] = ("mean", "covariance")
    prior: ClassVar[str] = "NormalInverseWishart"
    support: ClassVar[str] = "vectors of finite numbers"
    event_axes: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if (self.mean is None) != (self.covariance is None):
            raise ModelError("MultivariateNormal needs both a mean and a covariance, or neither")
        if self.mean is None:
            return
        mean, covariance = finite(self.mean, "the mean"), positive(self.covariance, "the covariance of MultivariateNormal")
        if mean.ndim == 0 or mean.shape[-1] != covariance.shape[-1]:
            raise ModelError(f"a mean of the shape {mean.shape} does not fit a covariance of the shape {covariance.shape}")
        keep_with_axes(self, mean=(mean, 1), covariance=(covariance, 2))

    @property
    def variance(self) -> Array:
        """The variance of each component: the diagonal of the covariance."""
        return np.array(np.diagonal(self._need("covariance"), axis1=-2, axis2=-1))

    def _cumulants(self, order: int, eta: Any) -> Array:
        return of_quadratics(*self._moments(eta), order)

    def marginal(self, only: Any) -> Self:
        """The distribution of some of the components."""
        chosen = components(only, self._need("mean").shape[-1])
        return type(self)(self._need("mean")[..., chosen], self._need("covariance")[..., chosen[:, None], chosen])

    def from_natural(self, eta: Any) -> Self:
        eta, d = self._sized(eta, "η of MultivariateNormal")
        precision = whole_of(-2.0 * eta[..., d:] / off_diagonal_weight(d, 2.0), d)
        covariance = factored(positive(precision, "Λ, from η of MultivariateNormal,")).inverse
        return type(self)(np.einsum("...ij,...j->...i", covariance, eta[..., :d]), covariance)

    def from_mean(self, mu: Any) -> Self:
        mu, d = self._sized(mu, "E[T] of MultivariateNormal")
        mean = mu[..., :d]
        return type(self)(mean, whole_of(mu[..., d:], d) - mean[..., :, None] * mean[..., None, :])

    @aligned
    def conjugate(self, total: Any, count: Any) -> NormalInverseWishart:
        """The mean total/count; on the covariance an inverse Wishart of count + d + 2 degrees of freedom."""
        total, d = self._sized(total, "the total")
        count = bounded(count, "the count", 0.0, open=True)
        mean = total[..., :d] / count[..., None]
        scale = whole_of(total[..., d:], d) - count[..., None, None] * mean[..., :, None] * mean[..., None, :]
        return NormalInverseWishart(mean, count, count + d + 2.0, scale, of=self.bare)

    def _refuse_singular(self, s: Centred) -> None:
        column = singular_column(s.scatter, factored(s.scatter), COLLINEAR)
        if column is not None:
            constant = np.any(s.scatter[..., column, column] <= 0.0)
            why = "does not vary" if constant else "is a linear function of those before it"
            rows = f"{s.count.min():g} rows of {s.centre.shape[-1]} components"
            raise FitError(
                f"the covariance of {rows} is singular: component {column} (from 0) {why}; leave it out, or use the prior "
                "NormalInverseWishart"
            )

    def _moments(self, eta: Any = None) -> tuple[Array, Array]:
        mean, covariance = self._parameters(eta)
        return mean, covariance

    def _of_moments(self, mean: Array, covariance: Array) -> Self:
        return type(self)(mean, covariance)

    def _student(self, df: Any, location: Array, scale: Array) -> MultivariateT:
        return MultivariateT(df, location, scale)

    def _inside(self, x: Any) -> Inside:
        """x as vectors, of as many components as the mean has, if there is one; 0 in place of what is not possible."""
        rows = observed(x, "MultivariateNormal")
        if rows.ndim == 0 or (self.mean is not None and rows.shape[-1] != self.mean.shape[-1]):
            d = "some" if self.mean is None else self.mean.shape[-1]
            raise DataError(f"MultivariateNormal is about vectors of {d} numbers, the last axis of x: its shape is {rows.shape}")
        inside = np.asarray(np.isfinite(rows).all(axis=-1))
        return np.where(inside[..., None], rows, 0.0), inside

    @staticmethod
    def _sized(value: Any, what: str) -> tuple[Array, int]:
        """Vectors of d + d(d + 1)/2 numbers, and d."""
        array = finite(value, what)
        k = array.shape[-1] if array.ndim else 0
        d = round((np.sqrt(9.0 + 8.0 * k) - 3.0) / 2.0)
        if d < 1 or d * (d + 3) // 2 != k:
            raise ModelError(f"{what} has d + d(d + 1)/2 numbers for d components, 2, 5, 9, …; not {k}")
        return array, d
