"""The columns that parents give a regression: the number of a real one, indicators of all states but one of a finite one; passes
over rows, or over the rows behind a table, and what they say: values that add, or are handed on; and what a fit leaves behind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.basis.variables import Finite, Variable
from suffice.engines.engine import Block, Step
from suffice.errors import DataError, FitError, FormatError, checked_level
from suffice.families.protocol.family import Array, Columns, Interval
from suffice.statistics import Counts
from suffice.statistics.counts import array_of, flat, freeze, sizes

CELLS = 2**19
"""Numbers of a design that are held at once: 4 MiB. Smaller pieces would be in a nearer cache, but their calls cost more."""

DRAGGED = 1e4
"""A column whose mean among the rows that matter is further from its centre than 100 deviations is centred anew."""


class ParameterLayout(NamedTuple):
    """Where θ, the parameters of a regression, holds the levels (intercepts) and slopes of its linear predictors.

    η[k] = θ[levels[k]] + sign · θ[slopes[k]]·x        a row of slopes for each predictor, or one that all of them share

    `size` is that of θ. A regression shows the levels as its intercept and the slopes as its coefficients, in their shapes: a
    number and a row of a `single` predictor, one row of slopes that are shared.
    """

    levels: npt.NDArray[np.intp]
    slopes: npt.NDArray[np.intp]
    sign: float
    size: int
    intercept: tuple[int, ...]
    coefficients: tuple[int, ...]

    @property
    def places(self) -> npt.NDArray[np.intp]:
        """The column that each parameter belongs to, from 1; 0 of a level."""
        places = np.zeros(self.size, np.intp)
        places[self.slopes] = 1 + np.arange(self.slopes.shape[1])
        return places

    def of_levels(self, levels: Array) -> Array:
        """θ without effects."""
        theta = np.zeros(self.size)
        theta[self.levels] = levels
        return theta

    def predictors(self, theta: Array) -> Array:
        """θ as a row for each predictor: its level, and what each column adds to it."""
        rows = np.empty((len(self.levels), 1 + self.slopes.shape[1]))
        rows[:, 0] = theta[self.levels]
        rows[:, 1:] = self.sign * theta[self.slopes]
        return rows

    def rows(self, X: Array) -> Array:
        """What makes η of θ, of each predictor (the first axis) in each row of the design X (the second): [k, row, parameter]."""
        rows = np.zeros((len(self.levels), len(X), self.size))
        for k, level in enumerate(self.levels):
            rows[k, :, level] = 1.0
            rows[k][:, self.slopes[k % len(self.slopes)]] = self.sign * X[:, 1:]
        return rows

    def shift(self, theta: Array, off: Array) -> Array:
        """θ (the last axis) of the same predictors where every centre is moved. The covariance is shifted along both axes."""
        moved = theta.copy()
        moved[..., self.levels] += self.sign * (theta[..., self.slopes] @ off)
        return moved

    def of_columns(self, columns: Sequence[int]) -> npt.NDArray[np.intp]:
        """The parameters, in the order of a layout that has only these columns, in this order."""
        slopes = self.slopes[:, list(columns)]
        if self.sign < 0:
            return np.concatenate([self.levels, slopes[0]])
        return np.concatenate([self.levels[:, None], slopes], axis=1).reshape(-1)

    def columns_in(self, H: Array, numbers: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
        """What the curvature H says of the columns, among the rows that matter by it: the size of each parameter's column, so
        that a change of the parameter times this is a change of its predictor; and how far the mean of each column of numbers is
        from its centre, 0 where that costs no digits."""
        sizes, off = np.ones(self.size), np.zeros(len(numbers))
        for k, slopes in enumerate(self.slopes):
            beside = self.levels if self.sign < 0 else self.levels[k : k + 1]  # of the predictors that have these slopes
            weight, squares = float(H[np.ix_(beside, beside)].sum()), np.diag(H)[slopes]
            sizes[slopes] = np.where(numbers, np.sqrt(np.maximum(squares, 0.0) / max(weight, 1e-300)), 1.0)
            if k == 0 and weight > 0:
                mean = self.sign * H[np.ix_(beside, slopes)].sum(axis=0) / weight
                variance = np.maximum(squares / weight - mean**2, 0.0)
                off = np.where(numbers & (mean**2 > DRAGGED * variance), mean, 0.0)
        return sizes, off


class DesignTerms(NamedTuple):
    """The parents that have coefficients in a regression, and the columns that they give it: their names, the parent that each
    is of, and which are numbers."""

    parents: tuple[Variable, ...]
    names: tuple[str, ...]
    of: tuple[Variable, ...]
    numbers: npt.NDArray[np.bool_]


def terms(parents: Sequence[Variable], without: Sequence[str] = ()) -> DesignTerms:
    """A number of each real parent, an indicator of each state but the first of a finite one; none of those that are offset or
    trials.
    """
    kept = tuple(v for v in parents if v.name not in without)
    own = [(v, s) for v in kept for s in (v.states[1:] if isinstance(v, Finite) else (None,))]
    names = tuple(v.name if s is None else f"{v.name}={s}" for v, s in own)
    return DesignTerms(kept, names, tuple(v for v, _ in own), np.array([s is None for _, s in own], dtype=bool))


def columns_of(parents: Sequence[Variable], name: str) -> slice:
    """Where the columns of one parent are."""
    at = [v.name for v in parents].index(name)
    start = len(terms(parents[:at]).names)
    return slice(start, start + len(terms(parents[at : at + 1]).names))


def fill_design(
    parents: Sequence[Variable], columns: Columns, centre: Array, n: int, child: str, *, complete: bool = False
) -> Array:
    """Xᵀ of n rows: a row of ones, then a row per column of the regression, numbers less their centre."""
    X = np.empty((1 + len(centre), n))
    X[0], j = 1.0, 1
    for v in parents:
        if isinstance(v, Finite):
            codes = codes_of(v, columns)
            np.equal(codes, np.arange(1, v.n_states)[:, None], out=X[j : j + v.n_states - 1], casting="unsafe")
            j += v.n_states - 1
        else:
            np.subtract(columns[v.name], centre[j - 1], out=X[j])
            if not complete and not np.isfinite(X[j].sum()) and not np.isfinite(X[j]).all():
                raise DataError(f"{v.name!r} has missing cells, and the regression of {child!r} needs its numbers")
            j += 1
    return X


def predict_rows(theta: Array, parents: Sequence[Variable], columns: Columns, centre: Array, n: int, child: str) -> Array:
    """θ X of n rows, a row for each row of θ, some rows of the design held at a time."""
    size = max(1, CELLS // theta.shape[-1])
    parts = [np.zeros((len(theta), 0))]
    for start in range(0, n, size):
        own = {v.name: columns[v.name][start : start + size] for v in parents}
        parts.append(theta @ fill_design(parents, own, centre, min(size, n - start), child))
    return np.concatenate(parts, axis=1)


def codes_of(v: Finite, columns: Columns) -> npt.NDArray[np.intp]:
    """Codes of states, of which none is missing."""
    codes = np.asarray(columns[v.name], dtype=np.intp)
    if codes.size and not 0 <= codes.min() <= codes.max() < v.n_states:
        raise DataError(f"{v.name!r} has missing cells, and a regression needs its states")
    return codes


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers, read-only: to the compiler these are another type, and a kernel has one signature."""
    view = array.view()
    view.flags.writeable = False
    return view


def configurations(free: Sequence[Finite], known: Mapping[str, Any] | None = None) -> tuple[dict[str, npt.NDArray[Any]], int]:
    """Columns with a row for each configuration of some finite parents, the last fastest, and the number of these rows; the
    others are known.
    """
    n = math.prod(sizes(free))
    codes = np.unravel_index(np.arange(n), sizes(free)) if free else ()
    columns = {p: np.broadcast_to(x, n) for p, x in (known or {}).items()}
    return columns | {v.name: c for v, c in zip(free, codes, strict=True)}, n


def shrunk(parents: Sequence[Variable]) -> Array:
    """P of the ridge ½ λ b P bᵀ, with a 0 for the intercept: 1 for a number, I − 11ᵀ/r among the indicators of r states, so that
    the effects of a parent's states are taken to sum to 0 and none of them is special.
    """
    P = np.zeros((1 + len(terms(parents).names),) * 2)
    for v in parents:
        own = columns_of(parents, v.name)
        P[1:, 1:][own, own] = np.eye(v.n_states - 1) - 1.0 / v.n_states if isinstance(v, Finite) else 1.0
    return P


class Sums(NamedTuple):
    """What one pass over rows says at some parameters: Σ w ℓ, its gradient, its curvature, Σ w (y − μ)²/V(μ), Σ w; of many
    regressions, the first axis of each.

    ℓ is the log-likelihood of a row at dispersion 1 less that where a row has a predictor of its own: −½ of its deviance.
    """

    log_likelihood: Any
    gradient: Array
    hessian: Array
    pearson: Any
    weight: Any


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


def needs_rows(child: Variable) -> FitError:
    return FitError(
        f"{child.name!r} is a regression, whose likelihood is not a function of counts and moments: it needs the rows"
    )
