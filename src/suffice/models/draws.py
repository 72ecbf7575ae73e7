"""Parameters drawn from their posterior, family by family: rows of tables by Dirichlet, Gaussians by normal-inverse-gamma."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.family import no_posterior
from suffice.families.regression import posteriors
from suffice.inference.network import NONE, Array, GaussianNode
from suffice.statistics import Counts

SMALL = 0.1
"""Gamma variables of a smaller shape than this are drawn as logs: they may lie below the smallest double."""

DRAW = -1
"""The number of the draw, as if it were one more finite parent of a Gaussian node."""


def dirichlet(alpha: Array, n: int, rng: np.random.Generator) -> Array:
    """n draws of each row of `alpha`: [n, rows, states]. What has no weight stays 0; a row without any weight is NaN.

    A gamma variable of shape a is one of shape a + 1 times U^(1/a) (Devroye 1986, Non-Uniform Random Variate Generation, p. 182),
    so that a Dirichlet with a = 1e-4 still has one large probability, and not 0/0.

    >>> p = dirichlet(np.array([[1e-4, 1e-4, 0.0], [50.0, 50.0, 0.0]]), 2, np.random.default_rng(0))
    >>> p.shape, p.sum(axis=2).round(12).tolist(), p[:, :, 2].tolist()
    ((2, 2, 3), [[1.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]])
    """
    small = alpha < SMALL
    gammas = rng.standard_gamma(np.where(small, alpha + 1.0, alpha), (n, *alpha.shape))
    with np.errstate(divide="ignore", invalid="ignore"):
        if small.any():
            np.log(gammas, out=gammas)
            gammas[:, small] += np.log(rng.random((n, int(small.sum())))) / alpha[small]
            gammas -= gammas.max(axis=-1, keepdims=True)
            np.exp(gammas, out=gammas)
        gammas /= gammas.sum(axis=-1, keepdims=True)
    return gammas


class DrawnTable:
    """A table whose rows have Dirichlet posteriors, as a factor: those rows, and of an observed child that state, which are left.

    `number` has the numbers of the variables that are not observed, `observed` the codes of the others. A table that is
    `certain`, set by an intervention, is always itself. One that is `shared` is drawn whole, whatever is observed: nodes that
    share it then have the same draws from equal generators.

    >>> from suffice.learning.fit import fit
    >>> from suffice.families.priors import Dirichlet
    >>> bn = fit("x -> y", {"x": ["a", "b", "b"], "y": ["a", "a", "b"]}, prior=Dirichlet(1))
    >>> drawn = DrawnTable(bn["y"], {"x": 0, "y": 1}, {})
    >>> drawn.scope, drawn.shape, drawn.draw(1000, np.random.default_rng(0)).shape
    ((0, 1), (2, 2), (1000, 4))
    """

    def __init__(
        self,
        cpd: Table,
        number: Mapping[str, int],
        observed: Mapping[str, Any],
        certain: bool = False,
        shared: bool = False,
    ) -> None:
        family = (*cpd.parents, cpd.child.name)
        rows = tuple(observed.get(p, slice(None)) for p in cpd.parents)
        self.scope = tuple(number[v] for v in family if v not in observed)
        self.child = number[cpd.child.name] if cpd.child.name not in observed else NONE
        self._state = observed.get(cpd.child.name, slice(None))
        self.shape = cpd.probs[(*rows, self._state)].shape
        places = np.arange(cpd.probs.size // cpd.child.n_states).reshape(cpd.probs.shape[:-1])
        self._rows = places[rows].reshape(-1) if shared else slice(None)  # which of the rows that are drawn are left
        drawn = () if shared else rows
        self._whole = shared
        self._probs = cpd.probs[drawn].reshape(-1, cpd.child.n_states)
        self._alpha = None if certain else _counts(cpd)[drawn].reshape(self._probs.shape)
        self._belief = None if certain or isinstance(cpd.imagined, Counts) else cpd.imagined

    @property
    def n_spare(self) -> int:
        """How many more parameters a draw has than are left."""
        return int(self._probs.size) - math.prod(self.shape) if self._whole else 0

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """n tables, flat: [n, cells]."""
        if self._alpha is None:
            return np.repeat(self._probs[self._rows, self._state].reshape(1, -1), n, axis=0)
        if self._belief is not None:
            drawn = self._belief.drawn(self._alpha, n, rng)
        else:
            drawn = dirichlet(self._alpha, n, rng)
            empty = self._alpha.sum(axis=1) <= 0.0
            drawn[:, empty] = self._probs[empty]
        return drawn[:, self._rows][:, :, self._state].reshape(n, -1)


class DrawnGaussian:
    """A Gaussian node with a normal-inverse-gamma posterior; a draw is one more axis, the first, of its parameters.

    v = s / χ²(ν),   b = b̂ + √v L z with L Lᵀ = S_xx⁻¹,   a = ȳ + √(v/κ) z − b·x̄

    >>> from suffice.learning.fit import fit
    >>> from suffice.families.priors import NormalInverseGamma
    >>> bn = fit("x -> y", {"x": [1.0, 2.0, 4.0, 5.0], "y": [1.0, 3.0, 3.5, 6.0]}, prior=NormalInverseGamma())
    >>> node = DrawnGaussian(bn["y"], {}, {"x": 0}).draw(1000, np.random.default_rng(0))
    >>> node.finite_parents, node.variance.shape, node.coefficients.shape
    ((-1,), (1000,), (1000, 1))
    """

    def __init__(self, cpd: ConditionalGaussian, number: Mapping[str, int], real_number: Mapping[str, int]) -> None:
        if cpd.imagined is None or cpd.seen is None:
            raise no_posterior(cpd.child)
        self._finite = (DRAW, *(number[p.name] for p in cpd.finite_parents))
        self._reals = tuple(real_number[p] for p in cpd.real_parents)
        self._shape = cpd.variance.shape
        moments = (cpd.seen + cpd.imagined).at(np.arange(cpd.variance.size))
        fits = [r for _, _, r in posteriors(cpd.child, moments)]
        self._residual = np.array([r.residual for r in fits])
        self._slopes = np.array([r.coefficients for r in fits])
        self._roots = np.array([_root(r.inverse) for r in fits])
        self._df, self._count, self._mean = moments.df, moments.count, moments.mean

    @property
    def n_numbers(self) -> int:
        """How many parameters a draw has."""
        return len(self._residual) * (2 + len(self._reals))

    def draw(self, n: int, rng: np.random.Generator) -> GaussianNode:
        """The node with n draws of its parameters."""
        groups, k = self._slopes.shape
        v = self._residual / rng.chisquare(self._df, (n, groups))
        z = rng.standard_normal((n, groups, k + 1))
        b = self._slopes + np.sqrt(v)[:, :, None] * np.einsum("gij,ngj->ngi", self._roots, z[:, :, :k])
        level = self._mean[:, -1] + np.sqrt(v / self._count) * z[:, :, k]
        a = level - np.einsum("ngi,gi->ng", b, self._mean[:, :-1])
        shape = (n, *self._shape)
        return GaussianNode(self._finite, self._reals, a.reshape(shape), b.reshape(*shape, k), v.reshape(shape))


def _counts(cpd: Table) -> Array:
    """What was seen and imagined; with a prior that imagines no counts, what was seen."""
    if cpd.imagined is None or cpd.seen is None:
        raise no_posterior(cpd.child)
    return (cpd.seen + cpd.imagined if isinstance(cpd.imagined, Counts) else cpd.seen).dense()


def _root(inverse: Array) -> Array:
    """The Cholesky root, scaled to unit diagonal before."""
    scale = np.sqrt(np.diag(inverse))
    return np.asarray(scale[:, None] * np.linalg.cholesky(inverse / scale[:, None] / scale)) if len(scale) else inverse
