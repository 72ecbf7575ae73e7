"""Parameters drawn from their posterior, family by family: rows of tables by Dirichlet, Gaussians by normal-inverse-gamma, and
coefficients of regressions by the normal approximation of their posterior, N(estimate, covariance of the fit).

Of a regression that was fitted by itself dispersions, the variance of a linear one among them, stay at their estimates; where one
was estimated, the draws are those of a Student t with as many degrees of freedom as the intervals of the coefficients have. Those
that were learned from incomplete rows are drawn elsewhere, dispersions and all, and are only `cut` here. The numbers that are
given are known, so only the predictor in each configuration of the finite parents is left of a draw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.basis.libraries import sc
from suffice.basis.variables import Finite
from suffice.errors import ModelError
from suffice.families.design import configurations
from suffice.families.protocol.cpd import Cpd, no_posterior
from suffice.numerics.exponential.dirichlet import draw_shares
from suffice.numerics.inference.finite.network import NONE, Array
from suffice.numerics.inference.numbers.gaussian import GaussianNode
from suffice.statistics import Counts, Moments
from suffice.statistics.counts import checked_cells, sizes

DRAW = -1
"""The number of the draw, as if it were one more finite parent of a Gaussian node."""

KEPT = 1e-9
"""A variance of which less is left where its terms cancel has lost too many digits."""


class DrawnTable:
    """A table whose rows have Dirichlet posteriors, as a factor: those rows, and of an observed child that state, which are left.

    `number` has the numbers of the variables that are not observed, `observed` the codes of the others. A table that is
    `certain`, set by an intervention, is always itself. One that is `shared` is drawn whole, whatever is observed: nodes that
    share it then have the same draws from equal generators.
    """

    def __init__(
        self, cpd: Cpd, number: Mapping[str, int], observed: Mapping[str, Any], certain: bool = False, shared: bool = False
    ) -> None:
        family = tuple(v.name for v in (*cpd.parent_variables, cpd.child))
        rows = tuple(observed.get(name, slice(None)) for name in family[:-1])
        self.scope = tuple(number[v] for v in family if v not in observed)
        self.child = number[cpd.child.name] if cpd.child.name not in observed else NONE
        self._state = observed.get(cpd.child.name, slice(None))
        self.shape = cpd.probs[(*rows, self._state)].shape
        places = np.arange(cpd.probs.size // cpd.child.n_states).reshape(cpd.probs.shape[:-1])
        self._rows = places[rows].reshape(-1) if shared else slice(None)  # which of the rows that are drawn are left
        drawn = () if shared else rows
        self._probs = cpd.probs[drawn].reshape(-1, cpd.child.n_states)
        self.n_spare = int(self._probs.size) - math.prod(self.shape) if shared else 0
        """How many more parameters a draw has than are left."""
        self._belief = None if certain or isinstance(cpd.imagined, Counts) else cpd.imagined
        if not certain and (cpd.seen is None or cpd.imagined is None):
            raise no_posterior(cpd.child)
        counts = None if certain else cpd.seen + cpd.imagined if self._belief is None else cpd.seen
        self._alpha = None if counts is None else counts.dense()[drawn].reshape(self._probs.shape)

    def cut(self, lines: Array) -> Array:
        """Tables that were drawn before, [n, rows, states], as this factor has them: [n, cells]."""
        return lines[:, self._rows][:, :, self._state].reshape(len(lines), -1)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """n tables, flat: [n, cells]."""
        if self._alpha is None:
            return np.repeat(self._probs[self._rows, self._state].reshape(1, -1), n, axis=0)
        if self._belief is not None:
            drawn = self._belief.draw_rows(self._alpha, n, rng)
        else:
            drawn = draw_shares(self._alpha, n, rng)
            empty = self._alpha.sum(axis=1) <= 0.0
            drawn[:, empty] = self._probs[empty]
        return self.cut(drawn)


class DrawnNode:
    """A node whose distribution is Gaussian; a draw is one more axis, the first, of its parameters."""

    def __init__(self, cpd: Cpd, number: Mapping[str, int], real_number: Mapping[str, int]) -> None:
        self._finite = (DRAW, *(number[p.name] for p in cpd.finite_parents))
        self._reals = tuple(real_number[p] for p in cpd.real_parents)
        self._shape = sizes(cpd.finite_parents)
        checked_cells(cpd.finite_parents, f"the configurations of the parents of {cpd.child.name!r}")

    @property
    def n_numbers(self) -> int:
        """How many parameters a draw has."""
        return math.prod(self._shape) * (2 + len(self._reals))

    def cut(self, lines: Array) -> GaussianNode:
        """The node of parameters that were drawn before: [n, configurations, intercept, coefficients and variance]."""
        return self._node(lines[:, :, 0], lines[:, :, 1:-1], lines[:, :, -1])

    def _node(self, intercept: Array, coefficients: Array, variance: Array) -> GaussianNode:
        """The node, from arrays with an axis for the draws and one for all configurations of the finite parents."""
        shape = (len(intercept), *self._shape)
        slopes = coefficients.reshape(*shape, len(self._reals))
        return GaussianNode(self._finite, self._reals, intercept.reshape(shape), slopes, variance.reshape(shape))


class DrawnGaussian(DrawnNode):
    """A Gaussian node with a normal-inverse-gamma posterior."""

    def __init__(self, cpd: Cpd, number: Mapping[str, int], real_number: Mapping[str, int]) -> None:
        super().__init__(cpd, number, real_number)
        belief: Any = None if isinstance(cpd.imagined, Moments) or cpd.seen is None else cpd.imagined
        self._variance = cpd.variance.reshape(-1)
        self._means = None if belief is None else belief.posterior(cpd.seen, cpd.variance.size)  # the variance is known
        self._lines: Any = cpd.posterior_lines() if belief is None else None

    def draw(self, n: int, rng: np.random.Generator) -> GaussianNode:
        """The node with n draws of its parameters."""
        if self._means is not None:
            mean, spread = self._means.mean, self._means.variance
            v = np.broadcast_to(self._variance, (n, len(mean)))
            return self._node(mean + np.sqrt(spread) * rng.standard_normal(v.shape), np.zeros((*v.shape, 0)), v)
        return self._node(*self._lines.sample(n, rng))


class Coefficients:
    """The parameters of a fitted regression, in the order of their covariance, and linear functions of them at draws."""

    def __init__(self, cpd: Cpd) -> None:
        assert cpd.fitted is not None
        self._child, self._df = cpd.child.name, cpd.fitted.df
        self._estimate, self._covariance = cpd.theta, cpd.fitted.covariance
        self._root = semidefinite_root(self._covariance)

    def draw_predictors(self, rows: Array, n: int, rng: np.random.Generator) -> Array:
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

    def __init__(self, cpd: Cpd, number: Mapping[str, int], observed: Mapping[str, Any]) -> None:
        name, parents = cpd.child.name, [v for v in cpd.finite_parents if v.name not in observed]
        self._cpd = cpd
        self._value = observed.get(name)
        own = [cpd.child] if isinstance(cpd.child, Finite) and self._value is None else []
        self.scope = tuple(number[v.name] for v in (*parents, *own))
        self.child = number[name] if own else NONE
        self.shape = sizes((*parents, *own))
        checked_cells((*parents, *own), f"the configurations of {name!r}")
        self._columns, self._n = configurations(parents, {p: observed[p] for p in cpd.parents if p in observed})
        self._rows = cpd.layout.rows(cpd.design(self._columns, self._n)).reshape(-1, cpd.layout.size)

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """n tables, flat: [n, cells]."""
        return self._factors(Coefficients(self._cpd).draw_predictors(self._rows, n, rng), np.full(n, self._cpd.dispersion))

    def cut(self, lines: Array) -> Array:
        """The same of parameters that were drawn before: [n, 1, θ and the dispersion, if there is one]."""
        m = self._cpd.layout.size
        spread = lines[:, 0, m] if lines.shape[2] > m else np.full(len(lines), self._cpd.dispersion)
        return self._factors(lines[:, 0, :m] @ self._rows.T, spread)

    def _factors(self, predictors: Array, dispersions: Array) -> Array:
        """p of the child, up to a factor where it is observed, at predictors and dispersions of each draw."""
        cpd, family, n = self._cpd, self._cpd.family, len(predictors)
        eta = predictors.reshape(n, -1, self._n)
        eta = np.moveaxis(eta if family.offset is None else eta + self._columns[family.offset], 1, 0)
        if isinstance(cpd.child, Finite):
            # cut points that cross in a draw are put in order
            logs: Array = family.log_probs(np.sort(eta, axis=0) if family.ordered else eta[0] if family.single else eta)
            return np.exp(np.moveaxis(logs, 0, 2) if self._value is None else logs[self._value]).reshape(n, -1)
        trials, some = family.trials_in(self._columns, self._n), n if np.ptp(dispersions) == 0.0 else 1  # draws at once
        y, own = np.full(some * self._n, float(self._value or 0.0)), eta.reshape(-1, some * self._n)
        pairs = zip(own, dispersions[::some], strict=True)
        logs = np.array([family.log_prob(y, e, float(d), np.tile(trials, some)) for e, d in pairs]).reshape(n, self._n)
        highest = logs.max(axis=1, keepdims=True)
        return np.exp(logs - np.where(np.isfinite(highest), highest, 0.0))


class DrawnLinear(DrawnNode):
    """A linear regression as a Gaussian node."""

    def __init__(self, cpd: Cpd, number: Mapping[str, int], real_number: Mapping[str, int]) -> None:
        super().__init__(cpd, number, real_number)
        self._cpd, X = cpd, cpd.design_by_states()
        self._own = {p: 1 + cpd.columns_of(p).start for p in cpd.real_parents if p != cpd.family.offset}
        self._rows, self._groups = np.concatenate([X, np.eye(X.shape[1])[list(self._own.values())]]), len(X)

    def draw(self, n: int, rng: np.random.Generator) -> GaussianNode:
        """The node with n draws of its parameters."""
        coefficients = Coefficients(self._cpd)
        coefficients.check_digits(np.concatenate([[1.0], self._cpd.centre])[None])  # about where its numbers will be
        return self._line(coefficients.draw_predictors(self._rows, n, rng), np.full(n, self._cpd.dispersion))

    def cut(self, lines: Array) -> GaussianNode:
        return self._line(lines[:, 0, :-1] @ self._rows.T, lines[:, 0, -1])

    def _line(self, drawn: Array, variance: Array) -> GaussianNode:
        """The node, from its levels in each configuration and its slopes at each draw."""
        n, groups, offset = len(drawn), self._groups, self._cpd.family.offset
        slopes = dict(zip(self._own, drawn[:, groups:].T, strict=True)) | ({} if offset is None else {offset: np.ones(n)})
        b = np.stack([slopes[p] for p in self._cpd.real_parents], axis=1) if slopes else np.zeros((n, 0))
        return self._node(drawn[:, :groups], np.repeat(b[:, None], groups, axis=1), np.repeat(variance[:, None], groups, axis=1))


def semidefinite_root(covariance: Array) -> Array:
    """L with L Lᵀ = covariance, scaled to unit diagonal before; what rounding makes negative is 0."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(covariance / scale[:, None] / scale)
    return np.asarray(scale[:, None] * vectors * np.sqrt(np.maximum(values, 0.0)))


def dirichlet_shares(theta: Array, eta: Array, covariance: Array, rng: np.random.Generator) -> Array:
    """Draws around rows of probabilities, from normal draws of their log-odds: each cell has the skew that it has in a Dirichlet.

    Log-odds are nearly normal where there are many rows; of a cell with next to none they are skewed, and normal ones would
    reach far too high. θ[x] ∝ G[x] with G[x] ~ Gamma(n[x]) is Dirichlet(n), and ln G[x] then has about the variance 1/n[x]. So
    the log-odds of a row become logarithms,

        g[x] = η[x] − Σ θ η + s,   s ~ N(0, 1/N),   N = (K − 1) / Σ θ[x] Var(η[x] − Σ θ η)

    and each of them a quantile: G[x] = θ[x] F⁻¹(Φ(g[x] / sd g[x])) / n[x], F of Gamma(n[x]), n[x] = 1 / Var g[x]. If
    Var η is that of complete rows, these are draws of their posterior; else n[x] are the rows that the information amounts to.

    `theta` is [rows, states], 0 for cells that stay there; `eta` [draws, rows, states] from θ, with the `covariance` of each row.
    """
    moving = theta > 0.0
    along = np.einsum("uxy,uy->ux", covariance, theta)
    variance = np.einsum("uxx->ux", covariance) - 2.0 * along + np.einsum("ux,ux->u", along, theta)[:, None]
    whole = np.einsum("ux,ux->u", theta, variance) / (moving.sum(axis=1) - 1)
    variance = np.where(moving, np.maximum(variance, 0.0) + whole[:, None], 1.0)
    shift = np.sqrt(whole)[None, :, None] * rng.standard_normal((*eta.shape[:2], 1))
    g = eta - np.einsum("nux,ux->nu", eta, theta)[:, :, None] + shift
    drawn = theta * variance * gamma_quantiles(g / np.sqrt(variance), 1.0 / variance)
    return np.asarray(drawn / drawn.sum(axis=2, keepdims=True))


MANY = 30.0
"""From this shape on the cube root of a gamma variable is normal to four digits (Wilson & Hilferty 1931)."""


def gamma_quantiles(z: Array, shape: Array) -> Array:
    """Where a gamma variable has as much below it as a standard normal one has below z."""
    z, a = np.broadcast_arrays(z, shape)
    result = np.asarray(a * (1.0 - 1.0 / (9.0 * a) + z / (3.0 * np.sqrt(a))) ** 3)
    for few, inverse, below in ((z <= 0.0, sc.gammaincinv, z), (z > 0.0, sc.gammainccinv, -z)):
        exact = few & (a < MANY)
        result[exact] = inverse(a[exact], sc.ndtr(below[exact]))
    return result
