"""The Dirichlet distribution whose E[ln xᵢ] are given: the inverse of gᵢ = ψ(αᵢ) − ψ(A), A = Σα.

One number is looked for, not k: at a given A each αᵢ = ψ⁻¹(ψ(A) + gᵢ), and the right A is where they sum to it. With
r(z) = z − exp ψ(z), which goes from 0 to ½, and δ = 1 − Σ exp gᵢ, which is above 0 unless the data do not vary,

    F(A) = Σ αᵢ − A = Σ r(αᵢ) − r(A) − δ exp ψ(A),   F′(A) = Σ r′(αᵢ) ψ′(A)/ψ′(αᵢ) − r′(A) − δ ψ′(A) exp ψ(A)

F is above 0 left of the solution and below it to the right, so that Newton's step, in ln A, is kept between the two best bounds.
Near-degenerate data, A ≈ (k − 1)/2δ, is where it begins. The fixed point of Minka 2000, Estimating a Dirichlet distribution, is
the same equation, iterated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.errors import FitError
from suffice.exponential.special import log_minus_digamma
from suffice.exponential.values import Array

EQUAL = 8.0 * float(np.finfo(np.float64).eps)
"""A δ below this, times the size of what it is made of, is rounding."""
FARTHEST = 345.0
"""|ln A| is looked for up to here: the square of e^345 is near the largest double."""


def from_log_means(g: Any) -> Array:
    """α with ψ(αᵢ) − ψ(Σα) = gᵢ along the last axis; refused where there is none.

    >>> from scipy.special import digamma
    >>> from_log_means(digamma([0.5, 2.0, 3.0]) - digamma(5.5)).round(9)
    array([0.5, 2. , 3. ])
    """
    g = np.asarray(g, dtype=np.float64)
    return _at(_strength(g, _gap(g)), g)


def _gap(g: Array) -> Array:
    """δ = 1 − Σ exp gᵢ; refused where it is nothing but rounding."""
    ordered = np.sort(g, axis=-1)
    largest, rest = -np.expm1(ordered[..., -1]), np.exp(ordered[..., :-1]).sum(axis=-1)
    gap = np.asarray(largest - rest)  # to the digits of the small ones, where the largest share is all but 1
    if np.any(gap <= EQUAL * (np.abs(largest) + rest + np.abs(np.exp(g) * g).sum(axis=-1))):
        raise FitError(
            "there is no estimate where all rows are equal, or so nearly that their logs do not tell: the distribution would be "
            "infinitely narrow; give rows that vary"
        )
    return gap


def _strength(g: Array, gap: Array) -> Array:
    """A = Σα, by Newton between bounds."""
    u = np.clip(np.log(0.5 * (g.shape[-1] - 1) / gap), -FARTHEST, FARTHEST)
    low, high = np.full(u.shape, -FARTHEST), np.full(u.shape, FARTHEST)
    for _ in range(200):
        excess, slope = _excess(np.exp(u), g, gap)
        low, high = np.where(excess > 0.0, u, low), np.where(excess <= 0.0, u, high)
        step = np.divide(-excess, slope, out=np.zeros_like(u), where=slope < 0.0)
        least = 1e-14 * np.maximum(np.abs(u), 1.0)
        there = (slope < 0.0) & (np.abs(step) <= least)
        inside = (slope < 0.0) & (u + step > low) & (u + step < high)
        u = np.where(there, u, np.where(inside, u + step, 0.5 * (low + high)))
        if np.all(there | (high - low <= least)):
            break
    if np.any(np.abs(u) > FARTHEST - 1.0):
        raise FitError("there is no estimate within the range of numbers: these shares are all but 0 and 1")
    return np.asarray(np.exp(u))


def _excess(A: Array, g: Array, gap: Array) -> tuple[Array, Array]:
    """F(A)/A and F′(A): what the step in ln A is made of."""
    from scipy.special import polygamma

    alpha, width = _at(A, g), polygamma(1, A)
    scaled = gap * np.exp(-log_minus_digamma(A))
    excess = (_rest(alpha).sum(axis=-1) - _rest(A)) / A - scaled
    slope = (_rest_slope(alpha) * width[..., None] / polygamma(1, alpha)).sum(axis=-1) - _rest_slope(A) - scaled * A * width
    return np.asarray(excess), np.asarray(slope)


def _at(A: Array, g: Array) -> Array:
    """αᵢ = ψ⁻¹(ψ(A) + gᵢ)."""
    from scipy.special import digamma

    return inverse_digamma(np.asarray(digamma(A))[..., None] + g)


def inverse_digamma(y: Any) -> Array:
    """ψ⁻¹(y), the positive number whose digamma is y, by Newton from Minka's start.

    >>> from scipy.special import digamma
    >>> inverse_digamma(digamma([1e-8, 0.5, 1e6])).round(12)
    array([1.e-08, 5.e-01, 1.e+06])
    """
    from scipy.special import digamma, polygamma

    y = np.asarray(y, dtype=np.float64)
    z = np.where(y >= -2.22, np.exp(np.maximum(y, -2.22)) + 0.5, -1.0 / np.minimum(y - digamma(1.0), -1e-300))
    for _ in range(6):
        z = np.maximum(z - (digamma(z) - y) / polygamma(1, z), 0.5 * z)
    return np.asarray(z)


def _rest(z: Array) -> Array:
    """r(z) = z − exp ψ(z)."""
    return np.asarray(-z * np.expm1(-log_minus_digamma(z)))


def _rest_slope(z: Array) -> Array:
    """r′(z) = 1 − ψ′(z) exp ψ(z), which is 1/24z² and a little where z is large."""
    from scipy.special import polygamma

    far = z > 1e3
    near = np.where(far, 1.0, z)
    direct = 1.0 - polygamma(1, near) * near * np.exp(-log_minus_digamma(near))
    return np.asarray(np.where(far, (1.0 + 1.0 / z) / (24.0 * z * z), direct))
