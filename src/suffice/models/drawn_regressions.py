"""Coefficients of regressions drawn from the normal approximation of their posterior: N(estimate, covariance of the fit).

Dispersions, the variance of a linear regression among them, stay at their estimates; where one was estimated, the draws are those
of a Student t with as many degrees of freedom as the intervals of the coefficients have. The numbers that are given are known, so
only the predictor in each configuration of the finite parents is left of a draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from suffice.errors import ModelError
from suffice.families.design import columns_of, filled
from suffice.families.logistic_cpd import LogisticCpd, probabilities
from suffice.families.ordinal_cpd import OrdinalCpd
from suffice.families.regression_cpd import RegressionCpd
from suffice.inference.network import NONE, Array, GaussianNode
from suffice.models.draws import DRAW
from suffice.models.regressions import Regressed
from suffice.statistics.configurations import checked_cells, sizes
from suffice.variables import Finite

KEPT = 1e-9
"""A variance of which less is left where its terms cancel has lost too many digits."""


class Coefficients:
    """The parameters of a fitted regression, in the order of their covariance, and linear functions of them at draws.

    >>> from suffice.learning.fit import fit
    >>> from suffice.families.responses import Probit
    >>> bn = fit("x -> y", {"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", "b", "a", "b"]}, families={"y": Probit()})
    >>> draws = Coefficients(bn["y"]).drawn(np.array([[1.0, 2.5]]), 10_000, np.random.default_rng(0))
    >>> draws.shape, bool(abs(draws.mean()) < 0.05)
    ((10000, 1), True)
    """

    def __init__(self, cpd: Regressed) -> None:
        assert cpd.fitted is not None
        self._child, self._df = cpd.child.name, cpd.fitted.df
        self._estimate, self._covariance = estimate_of(cpd), cpd.fitted.covariance
        self._root = _root(self._covariance)

    def drawn(self, rows: Array, n: int, rng: np.random.Generator) -> Array:
        """rows · parameters at n draws: [n, rows]."""
        self.check_digits(rows)
        z = rng.standard_normal((n, len(self._estimate)))
        if np.isfinite(self._df):
            z *= np.sqrt(self._df / rng.chisquare(self._df, (n, 1)))
        return np.asarray(rows @ self._estimate + z @ (rows @ self._root).T)

    def check_digits(self, rows: Array) -> None:
        """Refuse linear functions whose variance is lost to rounding."""
        variance = ((rows @ self._covariance) * rows).sum(axis=1)
        terms = ((np.abs(rows) @ np.abs(self._covariance)) * np.abs(rows)).sum(axis=1)
        if not np.all(variance >= KEPT * terms):
            raise ModelError(
                f"the covariance of the coefficients of {self._child!r} has lost its digits: its numbers lie far from 0 for "
                "their spread; subtract a number near their mean from each column, fit again, and ask for the interval then"
            )


class DrawnRegression:
    """A regression as a factor over those of its finite variables that are not observed; its numbers are, its own among them.

    `number` has the numbers of the variables that are not observed, `observed` the codes or values of the others.
    """

    n_spare = 0

    def __init__(self, cpd: Regressed, number: Mapping[str, int], observed: Mapping[str, Any]) -> None:
        name, parents = cpd.child.name, [v for v in cpd.finite_parents if v.name not in observed]
        self._cpd, self._coefficients = cpd, Coefficients(cpd)
        self._value = observed.get(name)
        own = [cpd.child] if isinstance(cpd.child, Finite) and self._value is None else []
        self.scope = tuple(number[v.name] for v in (*parents, *own))
        self.child = number[name] if own else NONE
        self.shape = sizes((*parents, *own))
        checked_cells((*parents, *own), f"the configurations of {name!r}")
        self._n = math.prod(sizes(parents))
        self._columns = configurations(cpd, parents, observed)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """n tables, flat: [n, cells]."""
        cpd = self._cpd
        X = filled(_regressors(cpd), self._columns, np.zeros(len(cpd.terms)), self._n, cpd.child.name).T
        if isinstance(cpd, LogisticCpd):
            return self._states(self._logistic(X, cpd.child.n_states - 1, n, rng))
        if isinstance(cpd, OrdinalCpd):
            return self._states(self._ordinal(X, cpd.child.n_states - 1, n, rng))
        eta = self._coefficients.drawn(X, n, rng)
        if cpd.family.offset is not None:
            eta += self._columns[cpd.family.offset]
        if isinstance(cpd.child, Finite):
            return self._states(np.stack([cpd.family.mean(-eta), cpd.family.mean(eta)], axis=2))
        trials = np.asarray(self._columns.get(str(cpd.family.trials), np.ones(self._n)), np.float64)
        y, trials = np.full(eta.size, float(self._value or 0.0)), np.tile(trials, n)
        logs = cpd.family.log_prob(y, eta.reshape(-1), cpd.dispersion, trials).reshape(eta.shape)
        highest = logs.max(axis=1, keepdims=True)
        return np.exp(logs - np.where(np.isfinite(highest), highest, 0.0))

    def _states(self, probs: Array) -> Array:
        """[n, configurations, states] as a factor: with an observed child only of its state."""
        return (probs if self._value is None else probs[:, :, self._value]).reshape(len(probs), -1)

    def _logistic(self, X: Array, K: int, n: int, rng: np.random.Generator) -> Array:
        eta = self._coefficients.drawn(np.asarray(np.kron(np.eye(K), X), np.float64), n, rng).reshape(n, K, self._n)
        P = probabilities(np.swapaxes(eta, 0, 1).reshape(K, -1))[1]
        return np.moveaxis(P.reshape(K + 1, n, self._n), 0, 2)

    def _ordinal(self, X: Array, K: int, n: int, rng: np.random.Generator) -> Array:
        from scipy.special import expit

        rows = np.concatenate([np.kron(np.eye(K), np.ones((self._n, 1))), np.tile(-X[:, 1:], (K, 1))], axis=1)
        levels = self._coefficients.drawn(rows, n, rng).reshape(n, K, self._n)
        below = expit(np.sort(levels, axis=1))  # cut points that cross in a draw are put in order
        ends = np.concatenate([np.zeros((n, 1, self._n)), below, np.ones((n, 1, self._n))], axis=1)
        return np.swapaxes(np.diff(ends, axis=1), 1, 2)


class DrawnLinear:
    """A linear regression as a Gaussian node; a draw is one more axis, the first, of its parameters."""

    def __init__(self, cpd: RegressionCpd, number: Mapping[str, int], real_number: Mapping[str, int]) -> None:
        self._cpd, self._coefficients = cpd, Coefficients(cpd)
        self._coefficients.check_digits(np.concatenate([[1.0], cpd.centre])[None])  # about where its numbers will be
        self._finite = (DRAW, *(number[v.name] for v in cpd.finite_parents))
        self._reals = tuple(real_number[p] for p in cpd.real_parents)
        self._shape = sizes(cpd.finite_parents)
        checked_cells(cpd.finite_parents, f"the configurations of the parents of {cpd.child.name!r}")

    @property
    def n_numbers(self) -> int:
        """How many parameters a draw has."""
        return math.prod(self._shape) * (2 + len(self._reals))

    def draw(self, n: int, rng: np.random.Generator) -> GaussianNode:
        """The node with n draws of its parameters."""
        cpd, groups = self._cpd, math.prod(self._shape)
        own = cpd.regressors
        levels = {p: np.zeros(groups) for p in cpd.real_parents}
        columns = configurations(cpd, cpd.finite_parents, levels)
        X = filled(own, columns, np.zeros(len(cpd.terms)), groups, cpd.child.name).T
        slopes = [p for p in cpd.real_parents if p != cpd.family.offset]
        picked = np.zeros((len(slopes), X.shape[1]))
        for i, p in enumerate(slopes):
            picked[i, 1 + columns_of(own, p).start] = 1.0
        drawn = self._coefficients.drawn(np.concatenate([X, picked]), n, rng)
        b = [np.ones(n) if p == cpd.family.offset else drawn[:, groups + slopes.index(p)] for p in cpd.real_parents]
        shape = (n, *self._shape)
        spread = np.stack(b, axis=1) if b else np.zeros((n, 0))
        slope = np.broadcast_to(spread.reshape(n, *(1 for _ in self._shape), len(b)), (*shape, len(b)))
        return GaussianNode(self._finite, self._reals, drawn[:, :groups].reshape(shape), slope, np.full(shape, cpd.dispersion))


def estimate_of(cpd: Regressed) -> Array:
    """The parameters of a regression in the order of their covariance.

    >>> estimate_of(LogisticCpd(Finite("y", ["a", "b", "c"]), (Finite("z", ["a", "b"]),), [1.0, 2.0], [[3.0], [4.0]]))
    array([1., 3., 2., 4.])
    """
    if isinstance(cpd, LogisticCpd):
        return np.concatenate([cpd.intercept[:, None], cpd.coefficients], axis=1).reshape(-1)
    if isinstance(cpd, OrdinalCpd):
        return np.concatenate([cpd.cut_points, cpd.coefficients])
    return np.concatenate([[cpd.intercept], cpd.coefficients])


def configurations(cpd: Regressed, free: Sequence[Finite], known: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of the parents, a row for each configuration of the free ones, the last fastest; the others are known."""
    n = math.prod(sizes(free))
    codes = np.unravel_index(np.arange(n), sizes(free)) if free else ()
    columns: dict[str, Any] = {p: np.broadcast_to(known[p], n) for p in cpd.parents if p in known}
    return columns | {v.name: c for v, c in zip(free, codes, strict=True)}


def _regressors(cpd: Regressed) -> Sequence[Any]:
    return cpd.regressors if isinstance(cpd, RegressionCpd) else cpd.parent_variables


def _root(covariance: Array) -> Array:
    """L with L Lᵀ = covariance, scaled to unit diagonal before; what rounding makes negative is 0."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(covariance / scale[:, None] / scale)
    return np.asarray(scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))
