"""The multivariate normal distribution: p(x | μ, Σ) = (2π)^−d/2 |Σ|^−½ exp(−½ (x − μ)ᵀ Σ⁻¹ (x − μ)), in minimal form.

    T(x) = (x_i; x_i x_j for i ≤ j),   h(x) = (2π)^−d/2,   k = d + d(d + 1)/2
    η = (Λμ; −½Λ_ii on the diagonal, −Λ_ij off it),   Λ = Σ⁻¹
    A(η) = ½ μᵀΛμ + ½ ln |Σ|,   E[T] = (μ; μ_i μ_j + Σ_ij)

Only the symmetric half of x xᵀ is there, row by row: an entry off the diagonal stands for two, so its η is twice that of the full
matrix −½Λ, while T and E[T] have it once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from suffice.errors import DataError, FitError, ModelError, TooLarge, bytes_in_words
from suffice.exponential.family import Family, generator
from suffice.exponential.normal_inverse_wishart import NormalInverseWishart
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
from suffice.exponential.values import Array, bounded, components, finite, keep_with_axes, observed, plain

LARGEST = 2**31
"""Bytes that a Hessian may take."""


@dataclass(frozen=True, eq=False, repr=False)
class MultivariateNormal(Family):
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

    def marginal(self, only: Any) -> Self:
        """The distribution of some of the components."""
        chosen = components(only, self._need("mean").shape[-1])
        return type(self)(self._need("mean")[..., chosen], self._need("covariance")[..., chosen[:, None], chosen])

    def sufficient(self, x: Any) -> Array:
        x = self._vectors(x)
        return np.concatenate([x, half(x[..., :, None] * x[..., None, :])], axis=-1)

    def log_base(self, x: Any) -> Array:
        x = self._vectors(x)
        return np.where(np.isfinite(x).all(axis=-1), -HALF_LOG_2PI * x.shape[-1], -np.inf)

    def raw(self, count: Array, centre: Array, scatter: Array) -> tuple[Array, Array]:
        """Σ T(x) and Σ ln h(x) of rows with these moments."""
        total = count[..., None] * centre
        squares = scatter + total[..., :, None] * centre[..., None, :]
        return np.concatenate([total, half(squares)], axis=-1), -HALF_LOG_2PI * centre.shape[-1] * count

    @property
    @np.errstate(over="ignore")
    def natural(self) -> Array:
        precision, d = self._factor.inverse, self._need("mean").shape[-1]
        linear = np.einsum("...ij,...j->...i", precision, self._need("mean"))
        return np.concatenate([linear, -0.5 * off_diagonal_weight(d, 2.0) * half(precision)], axis=-1)

    def from_natural(self, eta: Any) -> Self:
        eta, d = self._sized(eta, "η of MultivariateNormal")
        precision = whole_of(-2.0 * eta[..., d:] / off_diagonal_weight(d, 2.0), d)
        covariance = factored(positive(precision, "Λ, from η of MultivariateNormal,")).inverse
        return type(self)(np.einsum("...ij,...j->...i", covariance, eta[..., :d]), covariance)

    def from_mean(self, mu: Any) -> Self:
        mu, d = self._sized(mu, "E[T] of MultivariateNormal")
        mean = mu[..., :d]
        return type(self)(mean, whole_of(mu[..., d:], d) - mean[..., :, None] * mean[..., None, :])

    def log_normaliser(self, eta: Any = None) -> Any:
        member = self if eta is None else self.from_natural(eta)
        factor = member._factor
        return plain(0.5 * ((factor.whitened(member._need("mean")) ** 2).sum(axis=-1) + factor.log_det))

    @np.errstate(over="ignore")
    def gradient(self, eta: Any = None) -> Array:
        member = self if eta is None else self.from_natural(eta)
        mean = member._need("mean")
        second = member._need("covariance") + mean[..., :, None] * mean[..., None, :]
        return np.concatenate([mean, half(second)], axis=-1)

    @np.errstate(over="ignore")
    def hessian(self, eta: Any = None) -> Array:
        """Cov[x_i, x_j] = Σ_ij, Cov[x_i, x_j x_k] = μ_j Σ_ik + μ_k Σ_ij, and Cov[x_i x_j, x_k x_l] by Isserlis."""
        member = self if eta is None else self.from_natural(eta)
        m, S = member._need("mean"), member._need("covariance")
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
        column = singular_column(s.scatter, factored(s.scatter), COLLINEAR)
        if column is not None:
            constant = np.any(s.scatter[..., column, column] <= 0.0)
            why = "does not vary" if constant else "is a linear function of those before it"
            rows = f"{s.count.min():g} rows of {s.centre.shape[-1]} components"
            raise FitError(
                f"the covariance of {rows} is singular: component {column} (from 0) {why}; leave it out, or use the prior "
                "NormalInverseWishart"
            )
        return type(self)(s.centre, s.scatter / s.count[..., None, None])

    @aligned
    def log_prob(self, x: Any) -> Any:
        """−½ |L⁻¹(x − μ)|² − ½ ln |Σ| − d/2 ln 2π, where Σ = L Lᵀ."""
        x, factor = self._vectors(x), self._factor
        possible = np.isfinite(x).all(axis=-1)
        with np.errstate(over="ignore"):
            off = factor.whitened(np.where(possible[..., None], x, 0.0) - self._need("mean"))
            squares = np.where(possible, (off**2).sum(axis=-1), np.inf)
        return plain(-0.5 * (squares + factor.log_det) - HALF_LOG_2PI * x.shape[-1])

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        mean = self._need("mean")
        return np.asarray(mean + self._factor.coloured(generator(n, seed).standard_normal((n, *mean.shape))))

    def entropy(self) -> Any:
        """½ ln |2πeΣ|."""
        return plain(0.5 * self._factor.log_det + self._need("mean").shape[-1] * (HALF_LOG_2PI + 0.5))

    @aligned
    def kl(self, other: Self) -> Any:
        """½ (Σ (r − 1 − ln r) + (μ₁ − μ₂)ᵀ Σ₂⁻¹ (μ₁ − μ₂)), r the eigenvalues of Σ₂⁻¹ Σ₁."""
        self._comparable(other)
        mine, yours = self._need("mean"), other._need("mean")
        if mine.shape[-1] != yours.shape[-1]:
            raise ModelError(f"normals of {mine.shape[-1]} and of {yours.shape[-1]} components have no divergence")
        factor = other._factor
        gap = factor.root @ (self._need("covariance") - other._need("covariance")) @ np.swapaxes(factor.root, -1, -2)
        off = np.linalg.eigvalsh(gap)
        # r − 1 has the digits where the two are alike; far from that the trace and the determinants have.
        alike = (np.abs(off) < 0.5).all(axis=-1)
        like = excess_over_log(np.where(alike[..., None], off, 0.0)).sum(axis=-1)
        traced = ((factor.root @ (self._factor.scale[..., :, None] * self._factor.lower)) ** 2).sum(axis=(-2, -1))
        unlike = traced - mine.shape[-1] - (self._factor.log_det - factor.log_det)
        return plain(0.5 * (np.where(alike, like, unlike) + (factor.whitened(mine - yours) ** 2).sum(axis=-1)))

    @aligned
    def conjugate(self, total: Any, count: Any) -> NormalInverseWishart:
        """The mean total/count; on the covariance an inverse Wishart of count + d + 2 degrees of freedom."""
        total, d = self._sized(total, "the total")
        count = bounded(count, "the count", 0.0, open=True)
        mean = total[..., :d] / count[..., None]
        scale = whole_of(total[..., d:], d) - count[..., None, None] * mean[..., :, None] * mean[..., None, :]
        return NormalInverseWishart(mean, count, count + d + 2.0, scale, of=self.bare)

    @aligned
    def posterior(self, prior: Any, statistic: Totals) -> NormalInverseWishart:
        """The imagined rows and the seen ones, by Chan's update."""
        posterior: NormalInverseWishart = self._prior(prior).plus(with_centre(self._own(statistic)))
        return posterior

    @aligned
    def log_evidence(self, prior: Any, statistic: Totals) -> Any:
        """The evidence of the statistic: see `NormalInverseWishart.evidence`."""
        return self._prior(prior).evidence(with_centre(self._own(statistic)))

    def predictive(self, prior: Any) -> Any:
        """The multivariate Student t of the next x."""
        return self._prior(prior).next_observation()

    @property
    def _factor(self) -> Factor:
        return factored(self._need("covariance"))

    def _vectors(self, x: Any) -> Array:
        """x as vectors, of as many components as the mean has, if there is one."""
        rows = observed(x, "MultivariateNormal")
        if rows.ndim == 0 or (self.mean is not None and rows.shape[-1] != self.mean.shape[-1]):
            d = "some" if self.mean is None else self.mean.shape[-1]
            raise DataError(f"MultivariateNormal is about vectors of {d} numbers, the last axis of x: its shape is {rows.shape}")
        return rows

    def _totals(self, x: Any, weights: Any) -> Centred:
        return centred(self, x, weights)

    @staticmethod
    def _sized(value: Any, what: str) -> tuple[Array, int]:
        """Vectors of d + d(d + 1)/2 numbers, and d."""
        array = finite(value, what)
        k = array.shape[-1] if array.ndim else 0
        d = round((np.sqrt(9.0 + 8.0 * k) - 3.0) / 2.0)
        if d < 1 or d * (d + 3) // 2 != k:
            raise ModelError(f"{what} has d + d(d + 1)/2 numbers for d components, 2, 5, 9, …; not {k}")
        return array, d
