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

Aitchison & Shen 1980, Logistic-normal distributions, Biometrika 67, p. 261; MacKay 1998, Choice of basis for Laplace
approximation, Machine Learning 33, p. 77.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

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
    """The posterior of each row of `counts` (row × state), given the prior means of the effects and their variance.

    >>> rows = Laplace(np.array([[3.0, 1.0], [0.0, 0.0]]), np.zeros(2), 1.0)
    >>> rows.probs.round(4)
    array([[0.6645, 0.3355],
           [0.5   , 0.5   ]])
    """

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
        eta = self._first() if self.start is None else self.start.copy()
        left = np.arange(len(eta))
        for _ in range(STEPS):
            rows = self.some(left)
            step = rows.newton(eta[left])
            eta[left] += step
            left = left[np.abs(step).max(axis=1) > 1e-11 * (1.0 + np.abs(eta[left]).max(axis=1))]
            if not len(left):
                return eta
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
        size = max(1, NUMBERS // (K * K))
        parts = [self.some(np.arange(i, min(i + size, len(self.counts))))._ratios() for i in range(0, len(self.counts), size)]
        ratios = np.concatenate(parts) if parts else np.zeros((0, K))
        return np.asarray(ratios / ratios.sum(axis=1, keepdims=True))

    def _ratios(self) -> Array:
        U, K = self.counts.shape
        every = np.repeat(np.arange(U), K)
        one = np.tile(np.eye(K), (U, 1))
        before = self.some(every)
        after = replace(before, counts=self.counts[every] + one, start=self.effects[every])
        log_theta = (log_softmax(after.effects) * one).sum(axis=1)
        gained = before.gain(self.effects[every], after.effects - self.effects[every])
        return np.asarray(np.exp(log_theta + gained - 0.5 * (after.log_det - self.log_det[every]))).reshape(U, K)

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

    def some(self, rows: npt.NDArray[np.intp]) -> Self:
        """The same of some of the rows."""
        mean = self.mean[rows] if self.mean.ndim == 2 else self.mean
        some = replace(self, counts=self.counts[rows], mean=mean, start=None)
        if "effects" in self.__dict__:
            some.__dict__["effects"] = self.effects[rows]
        return some

    def _first(self) -> Array:
        """A guess: the log-odds of counts with about the weight of the prior added, as far from the mean on average as η̂ is."""
        eta = np.log(self.counts + softmax(np.atleast_2d(self.mean)) * self.counts.shape[1] / self.variance)
        return np.asarray(eta - (eta - self.mean).mean(axis=1, keepdims=True))


def softmax(eta: Array) -> Array:
    """exp η / Σ exp η along the last axis.

    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
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
