"""Rows of probabilities with a logistic-normal prior, by Laplace's approximation in the softmax basis; plain arrays.

    p(x = k | u) = θₖ = exp ηₖ / Σⱼ exp ηⱼ,   ηₖ ~ Normal(mₖ, v), independent over the K states

    ℓ(η)          Σ nₖ ln θₖ − Σ (ηₖ − mₖ)² / 2v                     strictly concave; Σ (ηₖ − mₖ) = 0 at its maximum η̂
    A             −ℓ″(η̂) = N (diag θ − θθᵀ) + I/v = D − N θθᵀ,      D = N θ + 1/v
    evidence      ln Z ≈ ℓ(η̂) − ½ ln det vA
                  ln det vA = Σ ln(1 + v N θₖ) + ln Σ θₖ / (1 + v N θₖ)
    posterior     η ~ Normal(η̂, A⁻¹)

Adding the same to all ηₖ changes no θ: in that direction posterior and prior are the same normal, and the approximation is exact.
So nothing depends on the choice of a state of reference. As A is a diagonal less a rank of one, all costs O(K) a row, and nothing
cancels, however large the counts are.

Effects that have a covariance Σ are η ~ Normal(m, Σ), P = Σ⁻¹ (`JointLaplace`); along 1 posterior and prior are the same, too:

    ℓ(η)          Σ nₖ ln θₖ − ½ (η − m)ᵀ P (η − m)                  1ᵀP(η − m) = 0 at its maximum η̂
    A             −ℓ″(η̂) = N (diag θ − θθᵀ) + P = B − N θθᵀ,        B = D + P,  D = N diag θ
    A⁻¹g          B⁻¹g + B⁻¹θ N (θᵀB⁻¹g) / r,                        r = 1 − N θᵀB⁻¹θ = θᵀB⁻¹P1, which does not cancel
    evidence      ln Z ≈ ℓ(η̂) − ½ ln det ΣA,                         ln det ΣA = ln det(I + D^½ Σ D^½) + ln r

Mean and covariance of the prior are found by the evidence of the rows that were drawn from it (`normal_of_rows`),

    (m, Σ) = argmax Σᵤ ln Z(nᵤ | m, Σ),   ln Z by Laplace

in K − 1 orthonormal contrasts, Σ = L Lᵀ + least · I: where rows differ no more than chance makes them, L is 0. The start is a
fixed point of EM with Laplace's normal in the E-step, m = mean of η̂ᵤ, Σ = mean of Aᵤ⁻¹ + (η̂ᵤ − m)(η̂ᵤ − m)ᵀ, from which L-BFGS
climbs to the maximum, with derivatives by differences; of more than MOST states the fixed point is taken.

Aitchison & Shen 1980, Logistic-normal distributions, Biometrika 67, p. 261; MacKay 1998, Choice of basis for Laplace
approximation, Machine Learning 33, p. 77.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import so
from suffice.errors import FitError
from suffice.families.protocol.family import Array

STEPS = 200
"""Newton steps after which something is wrong: ten are many."""

FARTHEST = 20.0
"""No step moves an effect farther than this."""

NUMBERS = 2**21
"""Blocks of rows take about this many numbers at a time."""


@dataclass(frozen=True, eq=False)
class Laplace:
    """The posterior of each row of `counts` (row × state), given the prior means of the effects and their variance."""

    counts: Array
    mean: Array
    variance: float
    start: Array | None = None

    @cached_property
    def total(self) -> Array:
        return np.asarray(self.counts.sum(axis=1, keepdims=True))

    @cached_property
    def effects(self) -> Array:
        """η̂, the mode: Newton's method with a step that is halved until ℓ rises as it should."""
        if self.start is None:
            # A guess: log-odds of counts with about the weight of the prior added, as far from the mean on average as η̂ is.
            eta = np.log(self.counts + softmax(np.atleast_2d(self.mean)) * self.counts.shape[1] / self.variance)
            eta = eta - (eta - self.mean).mean(axis=1, keepdims=True)
        else:
            eta = self.start.copy()
        left = np.arange(len(eta))
        for _ in range(STEPS):
            rows = self.some(left)
            step = rows.newton(eta[left])
            eta[left] += step
            left = left[np.abs(step).max(axis=1) > 1e-11 * (1.0 + np.abs(eta[left]).max(axis=1))]
            if not len(left):
                return np.asarray(eta)
        raise FitError("the mode of a logistic-normal posterior was not found: the counts or the prior are beyond all measure")

    @cached_property
    def probs(self) -> Array:
        """θ at the mode of η."""
        return softmax(self.effects)

    @cached_property
    def log_evidence(self) -> Array:
        """ln Z of each row: the log-probability of its counts in one given order."""
        log_theta = log_softmax(self.effects)
        off = self.effects - self.mean
        return np.asarray((self.counts * log_theta).sum(axis=1) - 0.5 * (off * self.pull(off)).sum(axis=1) - 0.5 * self.log_det)

    def pull(self, off: Array) -> Array:
        """The prior's precision times effects off the mean."""
        return np.asarray(off / self.variance)

    @cached_property
    def log_det(self) -> Array:
        """ln det vA."""
        known = self.variance * self.total * self.probs
        return np.asarray(np.log1p(known).sum(axis=1) + np.log((self.probs / (1.0 + known)).sum(axis=1)))

    def means(self) -> Array:
        """The posterior mean of θ: Z with one more row of state k, divided by Z, and scaled to sum to 1.

        Both by Laplace's approximation, whose errors cancel up to a share of N⁻² (Tierney & Kadane 1986, J. Am. Stat. Assoc. 81,
        p. 82). Of large counts ln Z has no digits to spare: so the difference is taken term by term.
        """
        K = self.counts.shape[1]
        ratios = np.empty(self.counts.shape)
        for block in self.blocks(K):
            rows = self.some(block)
            every, one = np.repeat(np.arange(len(rows.counts)), K), np.tile(np.eye(K), (len(rows.counts), 1))
            before, eta = rows.some(every), rows.effects[every]
            after = replace(before, counts=before.counts + one, start=eta)
            log_theta = (log_softmax(after.effects) * one).sum(axis=1)
            gained = before.gain(eta, after.effects - eta)
            ratios[block] = np.exp(log_theta + gained - 0.5 * (after.log_det - rows.log_det[every])).reshape(-1, K)
        return np.asarray(ratios / ratios.sum(axis=1, keepdims=True))

    def newton(self, eta: Array) -> Array:
        """The step from η: A⁻¹ times the gradient, shortened where ℓ would not rise."""
        gradient, step = self.gradient(eta), self.newton_step(eta)
        slope = (gradient * step).sum(axis=1)
        length = np.minimum(1.0, FARTHEST / np.maximum(np.abs(step).max(axis=1), FARTHEST))
        for _ in range(60):
            poor = ~(self.gain(eta, length[:, None] * step) >= 1e-4 * length * slope) & (slope > 0)
            poor &= np.abs(length[:, None] * step).max(axis=1) > 1e-13  # below that it is rounding
            if not poor.any():
                break
            length[poor] /= 2.0
        return np.asarray(length[:, None] * step)

    def gradient(self, eta: Array) -> Array:
        """ℓ′ = n − N θ − (η − m)/v."""
        return np.asarray(self.residual(softmax(eta)) - self.pull(eta - self.mean))

    def residual(self, theta: Array) -> Array:
        """n − N θ, where the most probable state, which may be 1 up to rounding, has what is lacking to a sum of 0."""
        n = self.counts - self.total * theta
        most = np.argmax(theta, axis=1)[:, None]
        np.put_along_axis(n, most, 0.0, axis=1)
        np.put_along_axis(n, most, -n.sum(axis=1, keepdims=True), axis=1)
        return np.asarray(n)

    def newton_step(self, eta: Array) -> Array:
        """A⁻¹ ℓ′ at η, by Sherman & Morrison."""
        theta = softmax(eta)
        D = self.total * theta + 1.0 / self.variance
        x = self.gradient(eta) / D
        rest = (theta / (1.0 + self.variance * self.total * theta)).sum(axis=1, keepdims=True)
        return np.asarray(x + self.total * theta / D * (theta * x).sum(axis=1, keepdims=True) / rest)

    def gain(self, eta: Array, step: Array) -> Array:
        """ℓ(η + step) − ℓ(η) without the difference of large numbers; `step` may have more axes before. With d = step − Σ θ step,

        Σ (n − N θ) d − N ln(1 + Σ θ (eᵈ − 1 − d)) − Σ step P (η − m + step/2),   P = I/v
        """
        theta = softmax(eta)
        d = step - (theta * step).sum(axis=-1, keepdims=True)
        bent = np.log1p((theta * bend(d)).sum(axis=-1))
        seen = (self.residual(theta) * d).sum(axis=-1) - self.total[:, 0] * bent
        return np.asarray(seen - (step * self.pull(eta - self.mean + 0.5 * step)).sum(axis=-1))

    def blocks(self, n: int) -> list[npt.NDArray[np.intp]]:
        """The rows in blocks, where each takes n numbers for each state."""
        U, K = self.counts.shape
        size = max(1, NUMBERS // (K * n))
        return [np.arange(i, min(i + size, U)) for i in range(0, U, size)]

    def some(self, rows: npt.NDArray[np.intp]) -> Self:
        """The same of some of the rows."""
        mean = self.mean[rows] if self.mean.ndim == 2 else self.mean
        some = replace(self, counts=self.counts[rows], mean=mean, start=None)
        if "effects" in self.__dict__:
            some.__dict__["effects"] = self.effects[rows]
        return some


def softmax(eta: Array) -> Array:
    """exp η / Σ exp η along the last axis."""
    shares = np.exp(eta - eta.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def log_softmax(eta: Array, axis: int = -1) -> Array:
    """ln θ, which of a state that is nearly certain has all its digits, too: 1e12 rows would show it."""
    most = np.expand_dims(np.argmax(eta, axis=axis), axis)
    below = eta - np.take_along_axis(eta, most, axis=axis)
    others = np.exp(below)
    np.put_along_axis(others, most, 0.0, axis=axis)
    return np.asarray(below - np.log1p(others.sum(axis=axis, keepdims=True)))


def bend(d: Array) -> Array:
    """eᵈ − 1 − d, by its series where the difference would cancel."""
    small = np.where(np.abs(d) < 0.05, d, 0.0)
    series = small**2 / 2 * (1 + small / 3 * (1 + small / 4 * (1 + small / 5 * (1 + small / 6 * (1 + small / 7)))))
    return np.asarray(np.where(np.abs(d) < 0.05, series, np.expm1(np.minimum(d, 700.0)) - d))


@dataclass(frozen=True, eq=False)
class JointLaplace(Laplace):
    """The posterior of each row of `counts`, given the prior means of the effects and their `covariance`; `variance` is its mean
    diagonal, for a first guess.
    """

    covariance: Array | None = None

    @classmethod
    def of(cls, counts: Array, mean: Array, covariance: Array) -> JointLaplace:
        """With a covariance of all states."""
        return cls(counts, mean, float(np.trace(covariance)) / len(covariance), None, covariance)

    @cached_property
    def precision(self) -> Array:
        assert self.covariance is not None
        return np.asarray(np.linalg.inv(self.covariance), dtype=np.float64)

    def pull(self, off: Array) -> Array:
        return np.asarray(off @ self.precision)

    @cached_property
    def log_det(self) -> Array:
        root = np.sqrt(self.total * self.probs)
        inner = np.eye(root.shape[1]) + root[:, :, None] * self.covariance * root[:, None, :]
        return np.asarray(np.linalg.slogdet(inner)[1] + np.log(self._rest(self.probs)))

    def newton_step(self, eta: Array) -> Array:
        theta = softmax(eta)
        x = self._inverse(theta, self.gradient(eta))
        share = self.total * (theta * x).sum(axis=1, keepdims=True) / self._rest(theta)[:, None]
        return np.asarray(x + share * self._inverse(theta, theta))

    @property
    def spread(self) -> Array:
        """A⁻¹, the covariance of Laplace's normal, of each row."""
        theta, K = self.probs, self.counts.shape[1]
        inverse = np.stack([self._inverse(theta, np.broadcast_to(e, theta.shape)) for e in np.eye(K)], axis=2)
        v = self._inverse(theta, theta)
        return np.asarray(inverse + (self.total / self._rest(theta)[:, None])[:, :, None] * v[:, :, None] * v[:, None, :])

    def _rest(self, theta: Array) -> Array:
        """r = θᵀB⁻¹P1."""
        along = np.broadcast_to(self.precision.sum(axis=1), theta.shape)
        return np.asarray((theta * self._inverse(theta, along)).sum(axis=1))

    def _inverse(self, theta: Array, g: Array) -> Array:
        """B⁻¹g, the matrix scaled to unit diagonal before."""
        B = self.precision + (self.total * theta)[:, :, None] * np.eye(theta.shape[1])
        scale = 1.0 / np.sqrt(np.diagonal(B, axis1=1, axis2=2))
        scaled = B * scale[:, :, None] * scale[:, None, :]
        return np.asarray(np.linalg.solve(scaled, (g * scale)[..., None])[..., 0] * scale)


LOWEST, HIGHEST = 1e-3, 1e3
"""No variance is chosen outside."""


MOST = 8
"""Of more states the fixed point of EM is taken."""


class EffectNormal(NamedTuple):
    """A normal distribution of effects, and the least variance of a contrast of them."""

    mean: Array
    covariance: Array
    least: float


def contrasts(K: int) -> Array:
    """K − 1 orthonormal vectors that sum to 0, as columns."""
    H = np.zeros((K, K - 1))
    for j in range(K - 1):
        H[: j + 1, j], H[j + 1, j] = 1.0 / (j + 1), -1.0
        H[:, j] /= np.linalg.norm(H[:, j])
    return H


def spread_of(inner: Array, H: Array) -> Array:
    """The covariance of all effects with this one of the contrasts; along 1, where it does not matter, as large as on average."""
    K = len(H)
    return np.asarray(H @ inner @ H.T + np.trace(inner) / (K - 1) / K * np.ones((K, K)))


def normal_of_rows(table: Array, mean: Array | None = None) -> EffectNormal:
    """The normal distribution of effects with the largest evidence of these rows of counts; a mean that is given is kept."""
    rows, repeats = np.unique(table, axis=0, return_counts=True)
    times = repeats.astype(np.float64)
    H = contrasts(table.shape[1])
    m, S = _fixed_point(rows, times, H, mean)
    if table.shape[1] <= MOST:
        m, S = _climb(rows, times, H, m, S, mean)
    return EffectNormal(H @ m, spread_of(S, H), float(np.linalg.eigvalsh(S)[0]))


def _fixed_point(rows: Array, times: Array, H: Array, mean: Array | None) -> tuple[Array, Array]:
    """Mean and covariance of the contrasts."""
    weight = times / times.sum()
    m, S = np.zeros(H.shape[1]) if mean is None else H.T @ mean, np.eye(H.shape[1])
    for _ in range(STEPS):
        at = JointLaplace.of(rows, H @ m, spread_of(S, H))
        effects, spread = at.effects @ H, np.einsum("ki,ukl,lj->uij", H, at.spread, H)
        new = weight @ effects if mean is None else m
        off = effects - new
        inner = np.einsum("u,uij->ij", weight, spread + off[:, :, None] * off[:, None, :])
        values, vectors = np.linalg.eigh(inner)
        inner = (vectors * np.clip(values, LOWEST, HIGHEST)) @ vectors.T
        done = np.abs(inner - S).max() <= 1e-6 * np.abs(S).max() and np.abs(new - m).max() <= 1e-6
        m, S = new, inner
        if done:
            break
    return m, S


def _climb(rows: Array, times: Array, H: Array, m: Array, S: Array, mean: Array | None) -> tuple[Array, Array]:
    """From there to the maximum of the evidence."""
    k = len(m)
    below = np.tril_indices(k)
    free = 0 if mean is not None else k

    def parts(x: Array) -> tuple[Array, Array]:
        L = np.zeros((k, k))
        L[below] = x[free:]
        return (x[:free] if free else m), L @ L.T + LOWEST * np.eye(k)

    def loss(x: Array) -> float:
        own, inner = parts(x)
        return -float(times @ JointLaplace.of(rows, H @ own, spread_of(inner, H)).log_evidence)

    start = np.linalg.cholesky(S - LOWEST * np.eye(k) + 1e-6 * np.eye(k))[below]
    reach = np.sqrt(HIGHEST)
    bounds = [(None, None)] * free + [(-reach, reach)] * len(start)
    found = so.minimize(loss, np.concatenate([m[:free], start]), method="L-BFGS-B", bounds=bounds, options={"maxiter": 200})
    return parts(found.x)
