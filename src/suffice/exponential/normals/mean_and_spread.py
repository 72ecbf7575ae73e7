"""What normal distributions have in common, of numbers and of vectors: a mean of d components and a covariance.

`normal.py` has the letters.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from suffice.errors import ModelError, TooLarge, bytes_in_words
from suffice.exponential.arithmetic.special import HALF_LOG_2PI, excess_over_log
from suffice.exponential.arithmetic.symmetric import ScaledCholesky, half, off_diagonal_weight, scaled_cholesky
from suffice.exponential.arithmetic.values import Array, plain
from suffice.exponential.protocol.family import ExponentialFamily, Inside, generator
from suffice.exponential.protocol.statistic import Centred, Totals, centred_statistic, with_centre

LARGEST = 2**31
"""Bytes that a Hessian may take."""


class MeanAndSpread(ExponentialFamily):
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
        return centred_statistic(self, x, weights)
