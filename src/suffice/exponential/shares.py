"""Shares that sum to 1, x ~ Dirichlet(α): what Dirichlet, and Beta as the first of two shares, are computed by.

Each formula is arranged so that what is large in ln Γ and ψ of large α cancels before it is computed, not after.
"""

from __future__ import annotations

import numpy as np

from suffice.errors import FitError
from suffice.exponential.interval import Interval, tail
from suffice.exponential.special import HALF_LOG_2PI, deviance, log_minus_digamma, log_poisson, stirling_divergence, stirling_rest
from suffice.exponential.values import Array, plain

MANY = 64
"""Of more states than this the k² sums of all others are too long."""


def others(alpha: Array) -> Array:
    """A − αᵢ, added up rather than subtracted: a small rest beside a large αᵢ keeps its digits.

    >>> others(np.array([1e20, 1.0, 2.0]))
    array([3.e+00, 1.e+20, 1.e+20])
    """
    if alpha.shape[-1] > MANY:
        return np.asarray(alpha.sum(axis=-1, keepdims=True) - alpha)
    return np.asarray(np.where(np.eye(alpha.shape[-1], dtype=bool), 0.0, alpha[..., None, :]).sum(axis=-1))


def mode(alpha: Array, what: str) -> Array:
    """The point of the greatest density, along the last axis.

    >>> mode(np.array([2.0, 3.0]), "Beta")
    array([0.33333333, 0.66666667])
    """
    if np.any(alpha < 1.0):
        raise FitError(f"{what} has no mode where a parameter, here {alpha.min():g}, is below 1: its density is infinite there")
    rest = (alpha - 1.0).sum(axis=-1, keepdims=True)
    if np.any(rest == 0.0):
        raise FitError(f"{what} has no mode where all parameters are 1: all points are equally likely; take the mean")
    return np.asarray((alpha - 1.0) / rest)


def beta_interval(a: Array, b: Array, level: float) -> Interval:
    """The equal-tailed interval of Beta(a, b).

    >>> beta_interval(np.array(1.0), np.array(1.0), 0.5)
    Interval(lower=0.25, upper=0.75)
    """
    from scipy.special import betainccinv, betaincinv

    outside = tail(level)
    return Interval(plain(betaincinv(a, b, outside)), plain(betainccinv(a, b, outside)))


def log_means(alpha: Array) -> Array:
    """E[ln xᵢ] = ψ(αᵢ) − ψ(A), which is near ln αᵢ/A where α is large.

    >>> log_means(np.array([1.0, 1.0]))
    array([-1., -1.])
    """
    A = alpha.sum(axis=-1, keepdims=True)
    return np.asarray(-np.log1p(others(alpha) / alpha) + log_minus_digamma(A) - log_minus_digamma(alpha))


def hessian(alpha: Array) -> Array:
    """Cov[ln x] = ψ′(αᵢ) 1[i=j] − ψ′(A).

    >>> hessian(np.array([1.0, 1.0])).round(4)
    array([[ 1.    , -0.6449],
           [-0.6449,  1.    ]])
    """
    from scipy.special import polygamma

    own = polygamma(1, alpha)[..., None] * np.eye(alpha.shape[-1])
    return np.asarray(own - polygamma(1, alpha.sum(axis=-1))[..., None, None])


def log_density(x: Array, alpha: Array) -> Array:
    """ln Γ(A) − Σ ln Γ(αᵢ) + Σ (αᵢ − 1) ln xᵢ as the probability of "counts" α in A draws, of which no term is large.

    >>> log_density(np.array([0.0, 1.0]), np.array([1.0, 1.0]))
    array(0.)
    """
    A = alpha.sum(axis=-1)
    at_edge = np.where(alpha == 1.0, np.log(A)[..., None], np.where(alpha < 1.0, np.inf, -np.inf))
    positive = np.where(x > 0.0, x, 1.0)
    logs = np.log(positive)
    counted = log_poisson(alpha, A[..., None] * positive, np.log(A)[..., None] + logs)
    terms = np.where(x > 0.0, counted + np.log(alpha) - logs, at_edge)
    lost = np.asarray(np.isneginf(terms).any(axis=-1))
    total = np.where(lost[..., None], 0.0, terms).sum(axis=-1) - log_poisson(A, A) - np.log(A)
    return np.where(lost, -np.inf, total + 0.0)


def entropy(alpha: Array) -> Array:
    """Σ G(αᵢ) − G(A) − (k − 1) ψ(A), where G(z) = ln Γ(z) − (z − 1) ψ(z) + z: what is large in them cancels beforehand.

    >>> entropy(np.array([2.0, 2.0])).round(6)
    np.float64(-0.125093)
    """
    from scipy.special import digamma

    A = alpha.sum(axis=-1)
    return np.asarray(_smooth(alpha).sum(axis=-1) - _smooth(A) - (alpha.shape[-1] - 1) * digamma(A))


def divergence(alpha: Array, beta: Array) -> Array:
    """KL(Dirichlet(α) ‖ Dirichlet(β)) = Σ K(βᵢ, αᵢ) − K(B, A), where K(z, w) = ln Γ(z) − ln Γ(w) − (z − w) ψ(w), B = Σβ.

    With K(z, w) = z ln z/w − z + w and what Stirling's formula leaves, it is Σ D(βᵢ, B αᵢ/A) and these: no term is large.

    >>> float(divergence(np.array([2.0, 3.0]), np.array([2.0, 3.0])))
    0.0
    """
    A, B = alpha.sum(axis=-1, keepdims=True), beta.sum(axis=-1, keepdims=True)
    m, off = B * (alpha / A), beta - alpha
    alike = (np.abs(off) < 0.5 * alpha).all(axis=-1, keepdims=True)
    gap = np.where(alike, off - off.sum(axis=-1, keepdims=True) * (alpha / A), beta - m)
    rests = stirling_divergence(alpha, beta).sum(axis=-1) - stirling_divergence(A, B)[..., 0]
    return np.asarray(np.maximum(deviance(beta, m, gap).sum(axis=-1) + rests, 0.0))


def _smooth(z: Array) -> Array:
    """G(z) = ½ ln 2πz + S(z) + (z − 1)(ln z − ψ(z)), S being what Stirling's formula leaves of ln Γ(z)."""
    return np.asarray(0.5 * np.log(z) + HALF_LOG_2PI + stirling_rest(z) + (z - 1.0) * log_minus_digamma(z))
