"""Coefficients of regressions drawn from the normal approximation of their posterior: N(estimate, covariance of the fit).

Dispersions, the variance of a linear regression among them, stay at their estimates; where one was estimated, the draws are those
of a Student t with as many degrees of freedom as the intervals of the coefficients have. The numbers that are given are known, so
only the predictor in each configuration of the finite parents is left of a draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.errors import ModelError
from suffice.families.design import configurations, filled
from suffice.families.regression_cpd import GlmCpd, RegressionCpd
from suffice.inference.network import NONE, Array, GaussianNode
from suffice.models.draws import DRAW
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

    def __init__(self, cpd: GlmCpd) -> None:
        assert cpd.fitted is not None
        self._child, self._df = cpd.child.name, cpd.fitted.df
        self._estimate, self._covariance = cpd.theta, cpd.fitted.covariance
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

    def __init__(self, cpd: GlmCpd, number: Mapping[str, int], observed: Mapping[str, Any]) -> None:
        name, parents = cpd.child.name, [v for v in cpd.finite_parents if v.name not in observed]
        self._cpd, self._coefficients = cpd, Coefficients(cpd)
        self._value = observed.get(name)
        own = [cpd.child] if isinstance(cpd.child, Finite) and self._value is None else []
        self.scope = tuple(number[v.name] for v in (*parents, *own))
        self.child = number[name] if own else NONE
        self.shape = sizes((*parents, *own))
        checked_cells((*parents, *own), f"the configurations of {name!r}")
        self._columns, self._n = configurations(parents, {p: observed[p] for p in cpd.parents if p in observed})

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """n tables, flat: [n, cells]."""
        cpd, family = self._cpd, self._cpd.family
        X = filled(cpd.regressors, self._columns, np.zeros(len(cpd.terms)), self._n, cpd.child.name).T
        rows = cpd.layout.rows(X)
        eta = self._coefficients.drawn(rows.reshape(-1, rows.shape[2]), n, rng).reshape(n, len(rows), self._n)
        eta = np.moveaxis(eta if family.offset is None else eta + self._columns[family.offset], 1, 0)
        if isinstance(cpd.child, Finite):
            # cut points that cross in a draw are put in order
            logs: Array = family.log_probs(np.sort(eta, axis=0) if family.ordered else eta[0] if family.single else eta)
            return np.exp(np.moveaxis(logs, 0, 2) if self._value is None else logs[self._value]).reshape(n, -1)
        y, trials = np.full(eta.size, float(self._value or 0.0)), np.tile(family.trials_in(self._columns, self._n), n)
        logs = family.log_prob(y, eta.reshape(-1), cpd.dispersion, trials).reshape(n, self._n)
        highest = logs.max(axis=1, keepdims=True)
        return np.exp(logs - np.where(np.isfinite(highest), highest, 0.0))


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
        levels = {p: np.zeros(groups) for p in cpd.real_parents}
        columns, _ = configurations(cpd.finite_parents, levels)
        X = filled(cpd.regressors, columns, np.zeros(len(cpd.terms)), groups, cpd.child.name).T
        slopes = [p for p in cpd.real_parents if p != cpd.family.offset]
        picked = np.zeros((len(slopes), X.shape[1]))
        for i, p in enumerate(slopes):
            picked[i, 1 + cpd.columns_of(p).start] = 1.0
        drawn = self._coefficients.drawn(np.concatenate([X, picked]), n, rng)
        b = [np.ones(n) if p == cpd.family.offset else drawn[:, groups + slopes.index(p)] for p in cpd.real_parents]
        shape = (n, *self._shape)
        spread = np.stack(b, axis=1) if b else np.zeros((n, 0))
        slope = np.broadcast_to(spread.reshape(n, *(1 for _ in self._shape), len(b)), (*shape, len(b)))
        return GaussianNode(self._finite, self._reals, drawn[:, :groups].reshape(shape), slope, np.full(shape, cpd.dispersion))


def _root(covariance: Array) -> Array:
    """L with L Lᵀ = covariance, scaled to unit diagonal before; what rounding makes negative is 0."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(covariance / scale[:, None] / scale)
    return np.asarray(scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))
