"""Factor analysis of complete rows: loadings and noise of maximum likelihood from one covariance matrix.

    x = mean + Λ f + e,   f ~ Normal(0, I),   e ~ Normal(0, Ψ),   Ψ diagonal

Given Ψ the best Λ is known: with θ_j, ω_j the eigenvalues, largest first, and eigenvectors of Ψ^(−½) S Ψ^(−½),

    Λ = Ψ^(½) Ω_k (Θ_k − I)^(½)       −2/N ln L = p ln 2π + Σ ln ψ + Σ_(j≤k) (ln θ_j + 1) + Σ_(j>k) θ_j

What is left is a function of p numbers, ln ψ, whose gradient and Hessian are known, too (Lawley & Maxwell 1971, Factor Analysis
as a Statistical Method, ch. 4):

    ∂_i       Σ_(m>k) (1 − θ_m) ω_im²
    ∂_i ∂_j   A_ij B_ij + Σ_(m>k, n≤k) (1 − θ_m)(θ_n + θ_m)/(θ_n − θ_m) ω_im ω_jm ω_in ω_jn,   A = Ω Θ Ωᵀ, B = Ω Ωᵀ over m > k

A factor with θ_j < 1 has no loadings. With the same noise everywhere, S itself has the eigenvectors, and the noise is the mean of
the eigenvalues that are left (probabilistic PCA: Tipping & Bishop 1999, JRSS B 61, p. 611).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from suffice.basis.arrays import Array
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.learning.incomplete.climb import Point, Way
from suffice.learning.incomplete.hidden_numbers import FLOOR
from suffice.models.undirected.covariances import Covariances

SLOPE = 1e-12
"""A step whose gain in −2/N ln L is foretold to be smaller than this is the last."""


LONGEST = 3.0
"""No ln ψ changes by more in a step."""


class Noise(NamedTuple):
    """A point: ln ψ, −2/N ln L but for what does not change, and the eigenvalues and eigenvectors, largest first."""

    logs: Array
    loss: float
    values: Array
    vectors: Array


@dataclass(frozen=True, eq=False)
class FactorMoments:
    """A correlation matrix of p columns, to be explained by k factors."""

    given: Covariances
    k: int

    @property
    def p(self) -> int:
        return len(self.given.names)

    def at(self, logs: Array) -> Noise:
        """The point with this noise."""
        root = np.exp(-0.5 * logs)
        values, vectors = np.linalg.eigh(self.given.matrix * root[:, None] * root)
        values, vectors = values[::-1], vectors[:, ::-1]
        top = np.maximum(values[: self.k], 1.0)
        loss = logs.sum() + np.log(top).sum() + (values[: self.k] / top).sum() + values[self.k :].sum()
        return Noise(logs, float(loss), values, vectors)

    def gradient(self, point: Noise) -> Array:
        """∂ loss / ∂ ln ψ."""
        t = np.where(np.arange(self.p) < self.k, np.maximum(point.values, 1.0), 1.0)
        return np.asarray(point.vectors**2 @ ((1.0 - point.values / t) / t))

    def hessian(self, point: Noise) -> Array:
        """∂² loss / ∂ ln ψ²; where factors have no loadings, that of fewer factors."""
        k = min(self.k, int((point.values > 1.0).sum()))
        (top, low), (first, rest) = np.split(point.values, [k]), np.split(point.vectors, [k], axis=1)
        H = ((rest * low) @ rest.T) * (rest @ rest.T)
        for value, vector in zip(top, first.T, strict=True):
            weight = (1.0 - low) * (value + low) / np.maximum(value - low, 1e-300)
            H += ((rest * weight) @ rest.T) * np.outer(vector, vector)
        return np.asarray(H)

    def first(self) -> Array:
        """ln ψ to begin with (Jöreskog 1967, Psychometrika 32, p. 443)."""
        inverse = np.diag(np.linalg.inv(self.given.matrix + 1e-6 * np.eye(self.p)))
        return self.clip(np.log((1.0 - 0.5 * self.k / self.p) / inverse))

    def random(self, rng: np.random.Generator) -> Array:
        return np.log(rng.uniform(0.05, 1.0, self.p))

    def clip(self, logs: Array) -> Array:
        """No noise is less than the floor, or more than the whole variance."""
        return np.clip(logs, np.log(FLOOR), 0.0)

    def step(self, point: Noise) -> tuple[Noise, float]:
        """A Newton step among numbers that are at no bound, or one down the slope; and the gain that was foretold."""
        g, H, (low, high) = self.gradient(point), self.hessian(point), (np.log(FLOOR), 0.0)
        free = ~(((point.logs <= low) & (g > 0.0)) | ((point.logs >= high) & (g < 0.0)))
        newton = np.zeros(self.p)
        newton[free] = -_newton_move(H[np.ix_(free, free)], g[free])
        for move in (newton, np.where(free, -g, 0.0)):
            ahead = self._ahead(point, move * min(1.0, LONGEST / np.abs(move).max(initial=LONGEST)))
            if ahead is not None:
                return ahead, -float(g @ move)
        return point, 0.0

    def _ahead(self, point: Noise, move: Array) -> Noise | None:
        """The point after a move, which is shortened until the loss does not rise."""
        share = 1.0
        while share > 1e-6:
            ahead = self.at(self.clip(point.logs + share * move))
            if ahead.loss <= point.loss:
                return ahead
            share *= 0.5
        return None

    def log_likelihood(self, loss: float) -> float:
        """ln L of the columns as they are."""
        return -0.5 * self.given.weight * (self.p * LOG_2PI + loss + 2.0 * float(np.log(self.given.scale).sum()))

    def loadings(self, point: Noise) -> Array:
        """Λ of the columns as they are: columns × factors."""
        size = np.sqrt(np.maximum(point.values[: self.k] - 1.0, 0.0))
        return np.asarray((self.given.scale * np.exp(0.5 * point.logs))[:, None] * point.vectors[:, : self.k] * size)

    def noise(self, point: Noise) -> Array:
        """ψ of the columns as they are."""
        return np.asarray(np.exp(point.logs) * self.given.scale**2)

    def spherical(self) -> Noise:
        """The point with the same noise everywhere; the matrix is a covariance."""
        values = np.linalg.eigvalsh(self.given.matrix)
        left = float(values[: self.p - self.k].mean())
        return self.at(np.full(self.p, np.log(max(left, FLOOR * float(values.mean())))))


def _newton_move(H: Array, g: Array) -> Array:
    """H⁻¹ g; H is made positive definite if it is not."""
    ridge = 0.0
    while True:
        try:
            L = np.linalg.cholesky(H + ridge * np.eye(len(H)))
        except np.linalg.LinAlgError:
            ridge = max(2.0 * ridge, 1e-3 * float(np.abs(np.diag(H)).max(initial=1e-3)))
            continue
        return np.asarray(np.linalg.solve(L.T, np.linalg.solve(L, g)))


class FactorWay(Way):
    """A way up from one start."""

    @classmethod
    def at(cls, moments: FactorMoments, logs: Array) -> FactorWay:
        return cls(moments, _point(moments, moments.at(logs)))

    def climb(self, max_iter: int, tol: float, watch: Callable[[], None]) -> None:
        """Newton steps until one would gain nothing."""
        for _ in range(max_iter):
            ahead, gain = self.problem.step(self.point.parameters)
            self.point = _point(self.problem, ahead)
            self.record()
            watch()
            if gain <= max(SLOPE, tol / self.problem.given.weight):
                self.converged = True
                return


def _point(moments: FactorMoments, noise: Noise) -> Point:
    log_likelihood = moments.log_likelihood(noise.loss)
    return Point(noise, None, log_likelihood, log_likelihood)
