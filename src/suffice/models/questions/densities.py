"""What mixtures are made of: for each component a density of the targets, or a draw of them.

Normal distributions of real targets, Poisson distributions of a count, the responses of a regression, and draws. Moments, tails
and quantiles of all components together follow from those of each and their weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Bools
from suffice.basis.blas import one_blas_thread
from suffice.basis.libraries import sc
from suffice.basis.variables import Count
from suffice.errors import ModelError, listing
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.families.protocol.family import Array, Cpd
from suffice.models.parts.closed_forms import words
from suffice.numerics.inference.finite.network import Ints
from suffice.numerics.inference.sampling.sampling import Average, Chained, Weighted

Columns = list[tuple[str, npt.NDArray[Any]]]
"""Columns of numbers by names that need not differ."""


class MixtureParts:
    """The components of a mixture. One with densities says `moments`, `each` and `log_each`, and how its components are shown."""

    kind = ""
    """What a title says of the distribution."""
    is_count = False
    are_draws = False
    none_given = "there is no mixture given it"
    error: Sequence[float] | None = None
    """The standard errors of the means of draws,"""
    effective_sample_size: float | None = None
    """and how many independent ones would tell the mean as well, of several targets the smallest."""
    tells_quantiles = False
    """Whether what is told to programs has quantiles: its moments do not say all."""

    def __reduce__(self) -> tuple[object, ...]:
        # arrays come out of a pickle writeable; made anew they are not
        return type(self), tuple(getattr(self, f.name) for f in fields(self))  # type: ignore[arg-type]

    def check(self, n: int, n_targets: int) -> None:
        """Refuse another number of components or of targets."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """moments             the mean and the variance of each component, of several targets a line each
            each                the components of a single target, with `cdf`, `sf` and `ppf` as of scipy's distributions
            log_each(points)    ln p(point | component): [points, components], of points with a number for each target
            draw(chosen, rng)   a draw from each of the components that are chosen: [draws, targets]
            restrict(weights, chosen)   the components that are chosen, with their weights
            """

    def main_columns(self, names: Sequence[str], weights: Array) -> Columns:
        """What is shown of each component."""
        return self.all_columns(names, weights)

    def all_columns(self, names: Sequence[str], weights: Array) -> Columns:
        """All there is to tell of each component."""
        mean, variance = self.moments
        return [("weight", weights), ("mean", mean), ("variance", variance)]

    def records(self, names: Sequence[str], weights: Array) -> Iterator[dict[str, Any]]:
        """The same of each component, for programs."""
        labels, columns = zip(*self.all_columns(names, weights), strict=True)
        return (dict(zip(labels, row, strict=True)) for row in zip(*(c.tolist() for c in columns), strict=True))

    def mean(self, weights: Array) -> Array:
        return np.atleast_1d(weights @ self.moments[0])

    def variance(self, weights: Array) -> Array:
        """Σ weights (variance + (mean − the mean of all)²) over the components."""
        means, variances = self.moments
        off = means - weights @ means
        return np.atleast_1d(weights @ (variances + off * off))

    def covariance(self, weights: Array) -> Array:
        return np.diag(self.variance(weights))

    def tail(self, weights: Array, x: float, *, upper: bool) -> float:
        """P(target > x) or P(target ≤ x), each precise where it is small."""
        return float(weights @ (self.each.sf(x) if upper else self.each.cdf(x)))

    def quantile(self, weights: Array, q: float) -> Any:
        """Between the lowest and the highest of the components' own quantiles; the upper half by the upper tail."""
        ends = self.each.ppf(q)
        ends = np.maximum(ends, 0.0) if self.is_count else ends  # scipy has the quantile 0 of counts at −1
        low, high = float(ends.min()), float(ends.max())

        def excess(x: float) -> float:
            return self.tail(weights, x, upper=False) - q if q <= 0.5 else (1.0 - q) - self.tail(weights, x, upper=True)

        if not low < high < np.inf:
            found = high
        elif excess(low) >= 0.0:
            found = low
        elif self.is_count:
            while high - low > 1.0:
                middle = float(np.floor((low + high) / 2.0))
                low, high = (low, middle) if excess(middle) >= 0.0 else (middle, high)
            found = high
        elif excess(high) <= 0.0:
            found = high
        else:
            from scipy.optimize import brentq

            variances = self.moments[1]
            smallest = np.sqrt(variances[variances > 0].min(initial=(high - low) ** 2))
            found = float(brentq(excess, low, high, xtol=max(1e-15 * smallest, 1e-300), rtol=1e-15, maxiter=1000))
        return int(found) if self.is_count and np.isfinite(found) else found


@dataclass(frozen=True, eq=False)
class NormalParts(MixtureParts):
    """Normal distributions: means [components, targets] and covariances [components, targets, targets]."""

    means: Array
    covariances: Array

    def check(self, n: int, n_targets: int) -> None:
        for name, shape in (("means", (n, n_targets)), ("covariances", (n, n_targets, n_targets))):
            object.__setattr__(self, name, view_of_shape(getattr(self, name), shape, name))

    @property
    def variances(self) -> Array:
        """Those of each component, a line per component."""
        return np.diagonal(self.covariances, axis1=1, axis2=2)

    @property
    def moments(self) -> tuple[Array, Array]:
        return np.asarray(self.means), self.variances

    def covariance(self, weights: Array) -> Array:
        """The mean of the components' covariances and the covariance of their means."""
        off = self.means - weights @ self.means
        return np.asarray(np.tensordot(weights, self.covariances, 1) + (off * weights[:, None]).T @ off)

    @cached_property
    def each(self) -> _Normal:
        return _Normal(np.asarray(self.means)[:, 0], np.sqrt(self.variances[:, 0]))

    def log_each(self, points: Array, names: Sequence[str]) -> Array:
        return _log_densities(points, self.means, self.covariances, names).T

    def draw(self, chosen: Ints, rng: np.random.Generator) -> Array:
        scale = np.sqrt(self.variances)
        unit = np.where(scale > 0.0, scale, 1.0)
        values, vectors = np.linalg.eigh(self.covariances / (unit[:, :, None] * unit[:, None, :]))
        roots = unit[:, :, None] * vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        z = rng.standard_normal((len(chosen), self.means.shape[1]))
        return np.asarray(self.means[chosen] + np.einsum("nij,nj->ni", roots[chosen], z))

    def restrict(self, weights: Array, chosen: Bools) -> tuple[Array, MixtureParts]:
        return weights[chosen] / weights[chosen].sum(), NormalParts(self.means[chosen], self.covariances[chosen])

    def main_columns(self, names: Sequence[str], weights: Array) -> Columns:
        d, sd = len(names), np.sqrt(self.variances)
        node = [("node", np.tile(names, len(weights)))] if d > 1 else []
        return [("weight", np.repeat(weights, d)), *node, ("mean", self.means.reshape(-1)), ("sd", sd.reshape(-1))]

    def records(self, names: Sequence[str], weights: Array) -> Iterator[dict[str, Any]]:
        for weight, mean, covariance in zip(weights, self.means, self.covariances, strict=True):
            moments = {"mean": dict(zip(names, mean.tolist(), strict=True)), "covariance": covariance.tolist()}
            yield {"weight": float(weight), **moments}

    def all_columns(self, names: Sequence[str], weights: Array) -> Columns:
        if len(names) == 1:
            return [("weight", weights), ("mean", self.means[:, 0]), ("variance", self.variances[:, 0])]
        means = [(f"mean of {n}", self.means[:, i]) for i, n in enumerate(names)]
        variances = [(f"variance of {n}", self.variances[:, i]) for i, n in enumerate(names)]
        pairs = [(i, j) for i in range(len(names)) for j in range(i)]
        covariances = [(f"covariance of {names[j]}, {names[i]}", self.covariances[:, i, j]) for i, j in pairs]
        return [("weight", weights), *means, *variances, *covariances]


class _Normal(NamedTuple):
    """Normal distributions, of which some may have no variance, as scipy has them."""

    mean: Array
    sd: Array

    def cdf(self, x: float) -> Array:
        return np.asarray(sc.ndtr(self._z(x)))

    def sf(self, x: float) -> Array:
        return np.asarray(sc.ndtr(-self._z(x)))

    def ppf(self, q: float) -> Array:
        return np.asarray(self.mean + self.sd * sc.ndtri(q) if 0.0 < q < 1.0 else np.full(1, -np.inf if q == 0.0 else np.inf))

    def _z(self, x: float) -> Array:
        off = x - self.mean
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.sd > 0, off / self.sd, np.where(off >= 0, np.inf, -np.inf))


@dataclass(frozen=True, eq=False)
class PoissonParts(MixtureParts):
    """Poisson distributions of a count, by their rates."""

    rates: Array

    is_count = True

    def check(self, n: int, n_targets: int) -> None:
        if np.shape(self.rates) != (n,) or n_targets != 1:
            raise ModelError("a mixture of Poisson distributions has a weight and a rate for each component")
        object.__setattr__(self, "rates", view_of_shape(self.rates, (n,), "rates"))

    @property
    def moments(self) -> tuple[Array, Array]:
        return self.rates, self.rates

    @cached_property
    def each(self) -> Any:
        from scipy.stats import poisson

        return poisson(self.rates)

    def log_each(self, points: Array, names: Sequence[str]) -> Array:
        return np.asarray(self.each.logpmf(points))

    def draw(self, chosen: Ints, rng: np.random.Generator) -> Array:
        return rng.poisson(self.rates[chosen]).astype(np.float64)[:, None]

    def quantile(self, weights: Array, q: float) -> Any:
        if q == 1.0:
            raise ModelError(f"a quantile of a count is asked for at a probability from 0 up and below 1, not at {q!r}")
        return super().quantile(weights, q)

    def all_columns(self, names: Sequence[str], weights: Array) -> Columns:
        return [("weight", weights), ("rate", self.rates)]


@dataclass(frozen=True, eq=False)
class ResponseParts(MixtureParts):
    """The responses of a binomial, negative binomial or gamma regression in each of n configurations of its parents, as `columns`
    has them: all of its numbers are given."""

    cpd: Cpd
    columns: Mapping[str, Any]
    n: int

    tells_quantiles = True

    def check(self, n: int, n_targets: int) -> None:
        name, family = self.cpd.child.name, self.cpd.family
        trials = np.asarray(self.columns.get(str(family.trials), 0.0))
        if not np.all((trials >= 0) & (trials == np.floor(trials))):
            raise ModelError(f"the trials {family.trials!r} of {name!r} are a whole number, not {trials[0]:g}")
        mean, variance = self.moments
        if not np.isfinite(variance).all():
            wrong = float(mean[~np.isfinite(variance)][0])
            raise ModelError(f"{name!r} is a {words(self.cpd)} whose mean here is {wrong:g}, which is none")

    @property
    def kind(self) -> str:  # type: ignore[override]
        return f", {words(self.cpd)}"

    @property
    def is_count(self) -> bool:  # type: ignore[override]
        return isinstance(self.cpd.child, Count)

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        found: tuple[Array, Array] = self.cpd.moments(self.columns, self.n)
        return found

    @cached_property
    def each(self) -> Any:
        return self.cpd.distribution(self.columns, self.n)

    def log_each(self, points: Array, names: Sequence[str]) -> Array:
        spread = {name: np.tile(column, len(points)) for name, column in self.columns.items()}
        return self.cpd.log_prob(spread | {names[0]: np.repeat(points[:, 0], self.n)}).reshape(len(points), self.n)

    def draw(self, chosen: Ints, rng: np.random.Generator) -> Array:
        columns = {name: column[chosen] for name, column in self.columns.items()}
        return np.asarray(self.cpd.draw(columns, rng, len(chosen)), np.float64)[:, None]

    def main_columns(self, names: Sequence[str], weights: Array) -> Columns:
        return [("weight", weights), ("mean", self.moments[0]), ("sd", np.sqrt(self.moments[1]))]


@dataclass(frozen=True, eq=False)
class DrawnParts(MixtureParts):
    """Draws: `values` has a line per draw and a column per target; those count `among` which is 1 and not 0."""

    values: Array
    drawn: Weighted | Chained
    among: Array | None = None

    are_draws = tells_quantiles = True
    none_given = "no draw has it; draw more, or observe it"

    @cached_property
    def averages(self) -> list[Average]:
        """The mean of each target, with its standard error."""
        return [self.drawn.mean(column, self.among) for column in self.values.T]

    @property
    def error(self) -> Sequence[float]:  # type: ignore[override]
        return [a.error for a in self.averages]

    @property
    def effective_sample_size(self) -> float:  # type: ignore[override]
        return min(a.effective_sample_size for a in self.averages)

    def mean(self, weights: Array) -> Array:
        return np.array([a.mean for a in self.averages])

    def variance(self, weights: Array) -> Array:
        return np.diag(self.covariance(weights))

    @one_blas_thread
    def covariance(self, weights: Array) -> Array:
        off = self.values - self.mean(weights)
        return np.asarray((off * weights[:, None]).T @ off)

    def log_each(self, points: Array, names: Sequence[str]) -> Array:
        raise ModelError(f"draws of {listing(names)} have no density: ask for probabilities (cdf) and quantiles")

    def draw(self, chosen: Ints, rng: np.random.Generator) -> Array:
        return self.values[chosen]

    @one_blas_thread
    def restrict(self, weights: Array, chosen: Bools) -> tuple[Array, MixtureParts]:
        among, w = np.asarray(chosen, np.float64), self.drawn.weights
        return np.asarray(w * among / (w @ among)), replace(self, among=among)

    @one_blas_thread
    def tail(self, weights: Array, x: float, *, upper: bool) -> float:
        return float(weights @ (self.values[:, 0] > x if upper else self.values[:, 0] <= x))

    def quantile(self, weights: Array, q: float) -> Any:
        """The smallest draw that a share q of the weight does not exceed, of each target by itself."""
        found = []
        for values in self.values.T:
            order = np.argsort(values, kind="stable")
            order = order[weights[order] > 0.0]
            ends = np.cumsum(weights[order])
            found.append(float(values[order[min(int(np.searchsorted(ends, q * ends[-1])), len(order) - 1)]]))
        return found[0] if len(found) == 1 else np.array(found)

    def all_columns(self, names: Sequence[str], weights: Array) -> Columns:
        own = slice(None) if self.among is None else self.among > 0.0
        return [*zip(names, self.values[own].T, strict=True), ("weight", weights[own])]


def view_of_shape(array: Any, shape: tuple[int, ...], name: str) -> Array:
    """The array as a read-only view."""
    view = np.asarray(array, np.float64).view()
    if view.shape != shape:
        raise ModelError(f"the {name} of a mixture have the shape {shape}, not {view.shape}")
    view.flags.writeable = False
    return view


def _log_densities(points: Array, means: Array, covariances: Array, names: Sequence[str]) -> Array:
    """ln Normal(point; mean, covariance): [components, points]."""
    sd = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    if not sd.all():
        raise ModelError(
            f"the value of {listing(n for n, s in zip(names, sd.T, strict=True) if not s.all())} is known: it has no density"
        )
    try:
        root = np.linalg.cholesky(covariances / (sd[:, :, None] * sd[:, None, :]))
    except np.linalg.LinAlgError:
        raise ModelError(f"the targets {listing(names)} are collinear up to rounding: they have no density together") from None
    log_scale = np.log(sd).sum(axis=1) + np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        z = np.linalg.solve(root, np.swapaxes((points[None] - means[:, None]) / sd[:, None], 1, 2))
        distance = np.nan_to_num((z * z).sum(axis=1), nan=np.inf, posinf=np.inf)
    return np.asarray(-0.5 * (distance + len(names) * LOG_2PI) - log_scale[:, None])
