"""Rows of probabilities with a logistic-normal prior whose effects have a covariance Σ: η ~ Normal(m, Σ), P = Σ⁻¹; plain arrays.

    ℓ(η)          Σ nₖ ln θₖ − ½ (η − m)ᵀ P (η − m)                  1ᵀP(η − m) = 0 at its maximum η̂
    A             −ℓ″(η̂) = N (diag θ − θθᵀ) + P = B − N θθᵀ,        B = D + P,  D = N diag θ
    A⁻¹g          B⁻¹g + B⁻¹θ N (θᵀB⁻¹g) / r,                        r = 1 − N θᵀB⁻¹θ = θᵀB⁻¹P1, which does not cancel
    evidence      ln Z ≈ ℓ(η̂) − ½ ln det ΣA,                         ln det ΣA = ln det(I + D^½ Σ D^½) + ln r

As in `laplace.py`, only the covariance of the differences of effects matters: along 1 posterior and prior are the same. What is
drawn here is drawn by elliptical slice sampling (Murray, Adams & MacKay 2010, AISTATS, p. 541), by turns with the prior and with
Laplace's normal in the place of its Gaussian (Nishihara, Murray & Adams 2014, J. Machine Learning Research 15, p. 2087): the one
reaches the tails of states that were never seen, the other moves where counts are large. Both leave the posterior as it is.

Mean and covariance of the prior are found by the evidence of the rows that were drawn from it,

    (m, Σ) = argmax Σᵤ ln Z(nᵤ | m, Σ),   ln Z by Laplace

Only differences of effects matter, so m and Σ are found in K − 1 orthonormal contrasts, Σ = L Lᵀ + least · I: where rows differ
no more than chance makes them, L is 0. The start is a fixed point of EM with Laplace's normal in the E-step,

    m = mean of η̂ᵤ,   Σ = mean of Aᵤ⁻¹ + (η̂ᵤ − m)(η̂ᵤ − m)ᵀ,

from which L-BFGS climbs to the maximum, with derivatives by differences; of more than MOST states the fixed point is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import so
from suffice.families.hierarchical.laplace import NUMBERS, Laplace, softmax
from suffice.families.protocol.family import Array

SWEEPS = 12
"""Steps of each kind from Laplace's normal to a draw."""

CHAINS = 4096
"""Draws of an interval."""

Chains = npt.NDArray[np.intp]
Height = Callable[[Array, Chains], Array]


@dataclass(frozen=True, eq=False)
class JointLaplace(Laplace):
    """The posterior of each row of `counts`, given the prior means of the effects and their `covariance`; `variance` is its mean
    diagonal, for a first guess.

    >>> rows = JointLaplace.of(np.array([[3.0, 1.0]]), np.zeros(2), np.eye(2))
    >>> rows.probs.round(4)
    array([[0.6645, 0.3355]])
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

    def around_prior(self) -> NormalAround:
        """The prior, as a distribution of η − η̂."""
        U, K = self.counts.shape
        root = np.broadcast_to(np.asarray(np.linalg.cholesky(np.asarray(self.covariance)), dtype=np.float64), (U, K, K))
        return NormalAround(self.mean - self.effects, root, np.broadcast_to(self.precision, (U, K, K)))

    def around_mode(self) -> NormalAround:
        """Laplace's normal."""
        spread = _symmetric(self.spread)
        root, precision = (np.asarray(f(spread), dtype=np.float64) for f in (np.linalg.cholesky, np.linalg.inv))
        return NormalAround(np.zeros(self.counts.shape), root, precision)

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


def joint_drawn(rows: JointLaplace, n: int, rng: np.random.Generator) -> Array:
    """n random draws of each row: [n, row, state].

    >>> rows = JointLaplace.of(np.array([[8.0, 2.0]]), np.zeros(2), np.eye(2))
    >>> joint_drawn(rows, 1000, np.random.default_rng(0)).mean(axis=0).round(1)
    array([[0.7, 0.3]])
    """
    U, K = rows.counts.shape
    theta = np.empty((n, U, K))
    size = max(1, NUMBERS // (n * K))
    for i in range(0, U, size):
        theta[:, i : i + size] = _chains(rows.some(np.arange(i, min(i + size, U))), n, rng)
    return theta


def joint_quantiles(rows: JointLaplace, tail: float) -> tuple[Array, Array]:
    """The quantiles `tail` and 1 − `tail` of each probability of each row, by draws that are always the same.

    >>> rows = JointLaplace.of(np.array([[0.0, 0.0, 0.0]]), np.zeros(3), np.eye(3))
    >>> joint_quantiles(rows, 0.025)[0].round(1)
    array([[0., 0., 0.]])
    """
    ends = np.empty((2, *rows.counts.shape))
    for u in range(len(rows.counts)):  # each by itself, so that a row has the same ends among whatever others
        theta = joint_drawn(rows.some(np.array([u])), CHAINS, np.random.default_rng(0))[:, 0]
        ends[:, u] = np.quantile(theta, [tail, 1.0 - tail], axis=0)
    return ends[0], ends[1]


def _chains(rows: JointLaplace, n: int, rng: np.random.Generator) -> Array:
    """θ at the ends of n chains of each row, which start from Laplace's normal."""
    U, K = rows.counts.shape
    prior, near = rows.around_prior(), rows.around_mode()
    row = np.tile(np.arange(U), n)

    def of_counts(x: Array, some: Chains) -> Array:
        """Σ n ln θ: what is left of ln p when that of the prior is taken away."""
        eta, counts = rows.effects[row[some]] + x, rows.counts[row[some]]
        eta = eta - eta.max(axis=1, keepdims=True)
        return np.asarray((counts * eta).sum(axis=1) - counts.sum(axis=1) * np.log(np.exp(eta).sum(axis=1)))

    def of_rest(x: Array, some: Chains) -> Array:
        return of_counts(x, some) + prior.log_prob(x, row[some]) - near.log_prob(x, row[some])

    x = near.draw(n, rng)
    for _ in range(SWEEPS):
        x = _slice(x, prior.centre[row], prior.draw(n, rng), of_counts, rng)
        x = _slice(x, near.centre[row], near.draw(n, rng), of_rest, rng)
    return softmax(rows.effects[row] + x).reshape(n, U, K)


@dataclass(frozen=True, eq=False)
class NormalAround:
    """A normal distribution of x = η − η̂ for each row: a centre, a root of the covariance, and the precision."""

    centre: Array
    root: Array
    precision: Array

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """n draws around 0 of each row, one after the other: [n · row, state]."""
        z = rng.standard_normal((n, *self.centre.shape))
        return np.asarray(np.einsum("rkl,nrl->nrk", self.root, z).reshape(-1, z.shape[2]))

    def log_prob(self, x: Array, row: Chains) -> Array:
        off = x - self.centre[row]
        return np.asarray(-0.5 * (off[:, None] @ self.precision[row] @ off[:, :, None])[:, 0, 0])


def _slice(x: Array, centre: Array, other: Array, height: Height, rng: np.random.Generator) -> Array:
    """One elliptical slice step of all chains: on the ellipse through x and `other`, a draw of the normal, around its centre.

    `height` has what ln p of the target is above that of the normal, at x of some of the chains.
    """
    off, new, left = x - centre, x.copy(), np.arange(len(x))
    level = height(x, left) + np.log(rng.random(len(x)))
    angle = rng.random(len(x)) * 2.0 * np.pi
    low, high = angle - 2.0 * np.pi, angle.copy()
    for _ in range(200):
        cos, sin = np.cos(angle[left])[:, None], np.sin(angle[left])[:, None]
        at = centre[left] + off[left] * cos + other[left] * sin
        taken = height(at, left) > level[left]
        new[left[taken]] = at[taken]
        left = left[~taken]
        if not len(left):
            break
        below = angle[left] < 0.0
        low[left], high[left] = np.where(below, angle[left], low[left]), np.where(below, high[left], angle[left])
        angle[left] = low[left] + (high[left] - low[left]) * rng.random(len(left))
    return new


def _symmetric(matrices: Array) -> Array:
    return np.asarray(0.5 * (matrices + np.swapaxes(matrices, 1, 2)))


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
