"""Draws from the posterior of rows with a logistic-normal prior: around the mode, and weighted by what the posterior really is.

The normal of `Laplace` is too narrow on the side of small probabilities: a state that was never seen may be as rare as the prior
allows. So half of the draws come from that normal, and half from a wider one in which the data counts for a quarter:

    η̂ + step,   step ~ q = ½ Normal(0, A₁⁻¹) + ½ Normal(0, A_¼⁻¹),   A_c = c N (diag θ − θθᵀ) + I/v
    weight       exp(ℓ(η̂ + step) − ℓ(η̂)) / q(step)

(importance sampling from a defensive mixture: Hesterberg 1995, Technometrics 37, p. 185). Quantiles take quasi-random points,
always the same; where too few draws carry the weight (many states and a large variance) those of the first normal are taken.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from suffice.families.laplace import NUMBERS, Laplace, softmax

Array = npt.NDArray[np.float64]

SHARES = np.array([1.0, 0.25])
"""How much the data counts in each of the two normals."""

POINTS = 2048
"""Points of a quantile, a power of two."""

CANDIDATES = 8
"""Proposals from which one random draw is taken."""

ENOUGH = 50.0
"""Effective draws (Kish) from which on weights are trusted."""


def quantiles(rows: Laplace, tail: float) -> tuple[Array, Array]:
    """The quantiles `tail` and 1 − `tail` of each probability of each row.

    >>> lower, upper = quantiles(Laplace(np.array([[0.0, 0.0]]), np.zeros(2), 1.0), 0.025)
    >>> lower.round(2), upper.round(2)
    (array([[0.06, 0.06]]), array([[0.94, 0.94]]))
    """
    ends = np.empty((2, *rows.counts.shape))
    normals = spread_out(rows.counts.shape[1] + 1)
    size = max(1, NUMBERS // normals.size)
    for i in range(0, len(rows.counts), size):
        ends[:, i : i + size] = _of_block(rows.some(np.arange(len(rows.counts))[i : i + size]), normals, tail)
    return ends[0], ends[1]


def drawn(rows: Laplace, n: int, rng: np.random.Generator) -> Array:
    """n random draws of each row: [n, row, state]. Each is one of a few candidates, by their weights.

    >>> drawn(Laplace(np.array([[8.0, 2.0]]), np.zeros(2), 1.0), 1000, np.random.default_rng(0)).mean(axis=0).round(1)
    array([[0.7, 0.3]])
    """
    U, K = rows.counts.shape
    share = np.repeat(SHARES, CANDIDATES // 2)[:, None, None, None]
    step = _steps(rows, rng.standard_normal((CANDIDATES, n, U, K + 1)), share)
    chosen = np.argmax(_log_weights(rows, step) + rng.gumbel(size=(CANDIDATES, n, U)), axis=0)
    return softmax(rows.effects + np.take_along_axis(step, chosen[None, ..., None], axis=0)[0])


def _of_block(rows: Laplace, normals: Array, tail: float) -> Array:
    """States take their turn by their counts, so that permuting them permutes the ends; states that are equal have equal ends."""
    means = np.broadcast_to(rows.mean, rows.counts.shape)
    order = np.lexsort((means, rows.counts), axis=1)
    counts, means = np.take_along_axis(rows.counts, order, axis=1), np.take_along_axis(means, order, axis=1)
    ends = _weighted_ends(Laplace(counts, means, rows.variance), normals, tail)
    other = (np.diff(counts, axis=1) != 0) | (np.diff(means, axis=1) != 0)
    group = np.cumsum(np.insert(other, 0, True, axis=1)) - 1
    equal = np.array([(np.bincount(group, end.reshape(-1)) / np.bincount(group))[group].reshape(end.shape) for end in ends])
    return np.take_along_axis(equal, np.argsort(order, axis=1)[None], axis=2)


def _weighted_ends(rows: Laplace, normals: Array, tail: float) -> Array:
    # every second point of a Sobol sequence lies in one half of the space, but each half of the sequence is all over it
    share = np.repeat(SHARES, len(normals) // 2)[:, None, None]
    step = _steps(rows, normals[:, None], share)
    log_weight = _log_weights(rows, step)
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight /= weight.sum(axis=0)
    plain = np.broadcast_to((share[:, :, 0] == 1.0) / (share == 1.0).sum(), weight.shape)
    weight = np.where(1.0 / (weight**2).sum(axis=0) >= ENOUGH, weight, plain)
    theta = softmax(rows.effects + step)
    order = np.argsort(theta, axis=0)
    below = np.cumsum(np.take_along_axis(np.broadcast_to(weight[..., None], theta.shape), order, axis=0), axis=0)
    places = [np.minimum((below < q).sum(axis=0), len(theta) - 1) for q in (tail, 1.0 - tail)]
    return np.array([np.take_along_axis(theta, np.take_along_axis(order, p[None], axis=0), axis=0)[0] for p in places])


def _steps(rows: Laplace, normals: Array, share: Array) -> Array:
    """Steps from the mode: D^(−½) z + √(cN) D⁻¹ θ z₀ / √(1 − cN θᵀ D⁻¹ θ) with D = cN θ + 1/v has the covariance A_c⁻¹."""
    known = share * rows.total * rows.probs
    D = known + 1.0 / rows.variance
    rest = (rows.probs / (1.0 + rows.variance * known)).sum(axis=-1, keepdims=True)
    common = np.sqrt(share * rows.total / rest) * rows.probs / D
    return np.asarray(normals[..., :-1] / np.sqrt(D) + normals[..., -1:] * common)


def _log_weights(rows: Laplace, step: Array) -> Array:
    d = step - (rows.probs * step).sum(axis=-1, keepdims=True)
    seen, before = rows.total[:, 0] * (rows.probs * d**2).sum(axis=-1), (step**2).sum(axis=-1) / rows.variance
    parts = [0.5 * (_log_det(rows, c) - c * seen - before) for c in SHARES]
    return np.asarray(rows.gain(rows.effects, step) - np.logaddexp(*parts))


def _log_det(rows: Laplace, share: float) -> Array:
    """ln det v A_c."""
    known = share * rows.variance * rows.total * rows.probs
    return np.asarray(np.log1p(known).sum(axis=1) + np.log((rows.probs / (1.0 + known)).sum(axis=1)))


def spread_out(dimensions: int) -> Array:
    """Standard normals in some dimensions, more even than random ones.

    >>> spread_out(3).shape
    (2048, 3)
    """
    from scipy.special import ndtri
    from scipy.stats.qmc import Sobol

    points = Sobol(dimensions, seed=0).random(POINTS)
    return np.asarray(ndtri(np.clip(points, 1e-12, 1.0 - 1e-12)))
