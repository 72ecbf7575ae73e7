"""Passes over rows, or over the rows behind a table, and what they say about a regression: values that add, or are handed on;
what a fit by IRLS leaves behind, and the table that shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.libraries import sc
from suffice.engines.engine import Block, Step
from suffice.errors import FitError, FormatError, checked_level
from suffice.families.protocol.family import Array, Interval
from suffice.statistics import Counts
from suffice.statistics.counts import array_of, flat, freeze, sizes
from suffice.variables import Variable


class Sums(NamedTuple):
    """What one pass over rows says at some parameters: Σ w ℓ, its gradient, its curvature, Σ w (y − μ)²/V(μ), Σ w.

    ℓ is the log-likelihood of a row at dispersion 1 less that where a row has a predictor of its own: −½ of its deviance.
    """

    log_likelihood: float
    gradient: Array
    hessian: Array
    pearson: float
    weight: float


class Summary(NamedTuple):
    """What is known before the first iteration: Σ w, Σ w x of the columns, Σ w y (by state of a finite child), Σ w (offset),
    Σ w n (trials), and Σ w `base`, what a log-likelihood has beside −½ of the deviance."""

    weight: float
    columns: Array
    child: Array
    offset: float
    trials: float
    base: float


class Maximum(NamedTuple):
    """Where the iterations ended: θ, the sums there, the inverse of the curvature at dispersion 1, and the passes it took."""

    theta: Array
    sums: Sums
    covariance: Array
    iterations: int


class Regressors(NamedTuple):
    """A child, the parents that are columns of its regression, and the centre that their numbers are taken from."""

    child: Variable
    parents: tuple[Variable, ...]
    centre: Array


@dataclass(frozen=True, eq=False)
class Pass(Step[Any]):
    """What a function, such as a method of a family, says of the columns and weights of some rows."""

    says: Callable[..., Any]
    about: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    def of(self, block: Block) -> Any:
        return self.says(*self.about, block.columns, block.weight, **self.options)


class DistinctRows:
    """The distinct rows of a contingency table, weighted by how often they occur: all that a fold needs to see of them."""

    def __init__(self, counts: Counts) -> None:
        keys, weight = counts.listed()
        codes = np.unravel_index(keys, sizes(counts.variables)) if counts.variables else ()
        columns = {v.name: c.astype(np.intp) for v, c in zip(counts.variables, codes, strict=True)}
        self.block = Block(columns, np.asarray(weight, dtype=np.float64))
        self.n_rows = self.block.n_rows

    def stretches(self, n: int) -> Block:
        """Some of the rows, from which iterations could start: none, as they are counted already."""
        return Block({}, np.zeros(0))

    def fold(self, step: Step[Any], *, threads: int | None = None, what: str | None = None) -> Any:
        return step.of(self.block)


@dataclass(frozen=True, eq=False, repr=False)
class Fitted:
    """What a fit by IRLS leaves behind.

    log_likelihood   Σ w ln p(y | x) at the estimate
    deviance         2 (the log-likelihood of a predictor for each row − the log-likelihood), at dispersion 1
    pearson          Σ w (y − μ)²/V(μ)
    dispersion       Pearson / (rows − coefficients) where the family has a dispersion, else 1
    weight           the rows (or the sum of their weights)
    covariance       of the intercept and the coefficients: the inverse of the expected information, times the dispersion; with a
                     ridge, of the normal approximation of the posterior
    iterations       passes over all rows
    df               rows − coefficients where the dispersion is estimated: intervals and p-values are then those of a Student t;
                     else infinite, and they are normal
    """

    log_likelihood: float
    deviance: float
    pearson: float
    dispersion: float
    weight: float
    covariance: Array
    iterations: int
    df: float = np.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariance", freeze(np.array(self.covariance, dtype=np.float64)))

    @property
    def standard_errors(self) -> Array:
        """Of each parameter, in the order of the covariance."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    def interval(self, estimate: Array, level: float) -> Interval:
        """Quantiles of a Student t, or a normal, around an estimate."""
        q = 0.5 + 0.5 * checked_level(level)
        width = float(sc.stdtrit(self.df, q) if np.isfinite(self.df) else sc.ndtri(q))
        spread = width * self.standard_errors.reshape(estimate.shape)
        return Interval(estimate - spread, estimate + spread)

    def to_dict(self) -> dict[str, Any]:
        """The fit as plain values, for JSON."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "covariance"}
        plain = {name: x if np.isfinite(x) else str(float(x)) for name, x in own.items()}
        return {**plain, "covariance": flat(self.covariance, in_text=True)}

    @staticmethod
    def from_dict(d: Mapping[str, Any] | None, size: int, child: Variable) -> Fitted | None:
        """What `to_dict` wrote, of so many parameters."""
        if d is None:
            return None
        covariance = array_of(d["covariance"], finite=False)
        if covariance.size != size**2:
            raise FormatError(f"the covariance of {child.name!r} has {covariance.size} numbers, and needs {size**2}")
        own = {f.name: float(d[f.name]) for f in fields(Fitted) if f.name in d.keys() - {"covariance", "iterations"}}
        n = int(d["iterations"])
        if not 0 <= n < 2**53:
            raise FormatError(f"the number of iterations of {child.name!r} is {n:.3g}")
        return Fitted(**own, covariance=covariance.reshape(size, size), iterations=n)

    def __repr__(self) -> str:
        numbers = ("log_likelihood", "deviance", "pearson", "dispersion", "weight", "iterations", "df")
        return f"Fitted({', '.join(f'{n}={getattr(self, n):.10g}' for n in numbers)})"


def coefficient_table(names: Sequence[str], estimate: Array, fitted: Fitted) -> tuple[list[str], list[list[object]]]:
    """Each term with its standard error, z (or t) = estimate/error, the p-value of that, and its 95 % interval."""
    error, student = fitted.standard_errors, np.isfinite(fitted.df)
    z = np.divide(estimate, error, out=np.full(len(error), np.nan), where=error > 0)
    p = 2.0 * (sc.stdtr(fitted.df, -np.abs(z)) if student else sc.ndtr(-np.abs(z)))
    columns = (c.tolist() for c in (estimate, error, z, p, *fitted.interval(estimate, 0.95)))
    header = ["term", "estimate", "standard error", "t" if student else "z", "p", "lower", "upper"]
    return header, [list(row) for row in zip(names, *columns, strict=True)]


def needs_rows(child: Variable) -> FitError:
    return FitError(
        f"{child.name!r} is a regression, whose likelihood is not a function of counts and moments: it needs the rows"
    )
