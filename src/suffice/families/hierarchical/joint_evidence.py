"""Mean and covariance of a logistic-normal prior by the evidence of the rows that were drawn from it; plain arrays.

    (m, Σ) = argmax Σᵤ ln Z(nᵤ | m, Σ),   ln Z by Laplace

Only differences of effects matter, so m and Σ are found in K − 1 orthonormal contrasts, Σ = L Lᵀ + least · I: where rows differ
no more than chance makes them, L is 0. The start is a fixed point of EM with Laplace's normal in the E-step,

    m = mean of η̂ᵤ,   Σ = mean of Aᵤ⁻¹ + (η̂ᵤ − m)(η̂ᵤ − m)ᵀ,

from which L-BFGS climbs to the maximum, with derivatives by differences; of more than MOST states the fixed point is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from suffice.families.hierarchical.joint_laplace import JointLaplace
from suffice.families.protocol.family import Array

LOWEST, HIGHEST = 1e-3, 1e3
"""No variance is chosen outside."""

MOST = 8
"""Of more states the fixed point of EM is taken."""

STEPS = 200


class EffectNormal(NamedTuple):
    """A normal distribution of effects, and the least variance of a contrast of them."""

    mean: Array
    covariance: Array
    least: float


def contrasts(K: int) -> Array:
    """K − 1 orthonormal vectors that sum to 0, as columns.

    >>> contrasts(2).round(4)
    array([[ 0.7071],
           [-0.7071]])
    """
    H = np.zeros((K, K - 1))
    for j in range(K - 1):
        H[: j + 1, j], H[j + 1, j] = 1.0 / (j + 1), -1.0
        H[:, j] /= np.linalg.norm(H[:, j])
    return H


def spread_of(inner: Array, H: Array) -> Array:
    """The covariance of all effects with this one of the contrasts; along 1, where it does not matter, as large as on average.

    >>> np.allclose(spread_of(2.0 * np.eye(2), contrasts(3)), 2.0 * np.eye(3))
    True
    """
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
    from scipy.optimize import minimize

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
    found = minimize(loss, np.concatenate([m[:free], start]), method="L-BFGS-B", bounds=bounds, options={"maxiter": 200})
    return parts(found.x)
