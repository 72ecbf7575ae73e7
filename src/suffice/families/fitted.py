"""What is known about a fitted regression, and what the distributions of all regressions have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.display import html_table, text_table
from suffice.errors import FitError, ModelError
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import split
from suffice.families.design import codes_of, columns_of, terms
from suffice.families.family import Array, Columns, Interval, checked_level, frame
from suffice.statistics.configurations import checked_cells, frozen, sizes
from suffice.variables import Finite, Variable


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
        object.__setattr__(self, "covariance", frozen(np.array(self.covariance, dtype=np.float64)))

    @property
    def standard_errors(self) -> Array:
        """Of each parameter, in the order of the covariance."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    def arranged(self, order: Sequence[int]) -> Fitted:
        """The same with the parameters in another order."""
        return replace(self, covariance=self.covariance[np.ix_(order, order)])

    def interval(self, estimate: Array, level: float) -> Interval:
        """Quantiles of a Student t, or a normal, around an estimate."""
        from scipy.special import ndtri, stdtrit

        q = 0.5 + 0.5 * checked_level(level)
        width = float(stdtrit(self.df, q) if np.isfinite(self.df) else ndtri(q))
        spread = width * self.standard_errors.reshape(estimate.shape)
        return Interval(estimate - spread, estimate + spread)

    def __repr__(self) -> str:
        numbers = ("log_likelihood", "deviance", "pearson", "dispersion", "weight", "iterations", "df")
        return f"Fitted({', '.join(f'{n}={getattr(self, n):.10g}' for n in numbers)})"


class Regressed:
    """The face that the conditional distributions of all regressions share."""

    child: Any
    parent_variables: tuple[Variable, ...]
    fitted: Fitted | None

    @property
    def parents(self) -> tuple[str, ...]:
        """The parents in the order of the graph."""
        return tuple(p.name for p in self.parent_variables)

    @property
    def finite_parents(self) -> tuple[Finite, ...]:
        return split(self.parent_variables)[0]

    @property
    def real_parents(self) -> tuple[str, ...]:
        """The parents that are numbers."""
        return tuple(p.name for p in split(self.parent_variables)[1])

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of the coefficients: `x` of a real parent, `z=b` of a state of a finite one."""
        return terms(self.parent_variables)

    @property
    def seen(self) -> None:
        return None

    @property
    def imagined(self) -> None:
        return None

    @property
    def unsupported(self) -> npt.NDArray[np.bool_]:
        """Never: one set of coefficients speaks for every configuration of the finite parents."""
        return np.zeros(sizes(self.finite_parents), dtype=bool)

    def log_likelihood(self, statistic: Any) -> float:
        from suffice.families.glm import needs_rows

        raise needs_rows(self.child)

    def to_frame(self) -> Any:
        """The numbers, after a fit one row for each, with its standard error, z, p and 95 % interval."""
        header, rows = self._rows()
        return frame({h: [r[i] for r in rows] for i, h in enumerate(header)})

    def _keep(self, name: str, shape: tuple[int, ...]) -> None:
        """Hold a field read-only: finite numbers of this shape; a centre that is not given is 0."""
        array = np.array(getattr(self, name), dtype=np.float64)
        if name == "centre" and not array.size:
            array = np.zeros(shape)
        if array.shape != shape:
            raise ModelError(f"the {name} of {self.child.name!r} must have the shape {shape}, not {array.shape}")
        if not np.isfinite(array).all():
            raise ModelError(f"the {name} of {self.child.name!r} must be finite numbers")
        object.__setattr__(self, name, frozen(array))

    def _fitted(self) -> Fitted:
        if self.fitted is None:
            raise FitError(
                f"{self.child.name!r} was not fitted to complete rows by itself (it was written down, read from a file, or "
                "learned by EM): it has no standard errors and no intervals"
            )
        return self.fitted

    def _rows(self) -> tuple[list[str], list[list[object]]]:
        raise NotImplementedError

    def _kind(self) -> str:
        raise NotImplementedError

    def _title(self) -> str:
        given = f" | {', '.join(self.parents)}" if self.parents else ""
        return f"p({self.child.name}{given}), {self._kind()}"

    def __repr__(self) -> str:
        header, rows = self._rows()
        more = len(rows) - 32
        return f"{self._title()}\n{text_table(header, rows[:32])}" + (f"\n… and {more:,} more rows" if more > 0 else "")

    def _repr_html_(self) -> str:
        header, rows = self._rows()
        return html_table(header, rows[:64], caption=self._title())


class RegressedStates(Regressed):
    """The same of a finite child, whose probabilities are a table where no parent is a number."""

    def table(self) -> Table:
        """The same distribution as a table, if no parent is a number."""
        if self.real_parents:
            raise ModelError(
                f"{self.child.name!r} has the real parent {self.real_parents[0]!r}, and no table of its probabilities"
            )
        finite = self.finite_parents
        n = checked_cells((*finite, self.child), f"the table of {self.child.name!r}") // self.child.n_states
        codes = np.unravel_index(np.arange(n), sizes(finite)) if finite else ()
        probs = np.exp(self._log_probs({v.name: c for v, c in zip(finite, codes, strict=True)}, n)).T
        return Table(self.child, finite, probs.reshape(*sizes(finite), self.child.n_states))

    def columns_of(self, parent: str) -> slice:
        """Where the coefficients of a parent are."""
        return columns_of(self.parent_variables, parent)

    def log_prob(self, columns: Columns) -> Array:
        child = codes_of(columns, self.child)
        return np.asarray(self._log_probs(columns, len(child))[child, np.arange(len(child))])

    def _log_probs(self, columns: Columns, n: int) -> Array:
        """ln p of each state (the first axis) in each row."""
        raise NotImplementedError


def coefficient_table(names: Sequence[str], estimate: Array, fitted: Fitted) -> tuple[list[str], list[list[object]]]:
    """Each term with its standard error, z (or t) = estimate/error, the p-value of that, and its 95 % interval."""
    lower, upper = fitted.interval(estimate, 0.95)
    header = ["term", "estimate", "standard error", "t" if np.isfinite(fitted.df) else "z", "p", "lower", "upper"]
    return header, [list(row) for row in _tested(names, estimate, fitted, lower, upper)]


def _tested(names: Sequence[str], estimate: Array, fitted: Fitted, lower: Array, upper: Array) -> Iterator[tuple[object, ...]]:
    from scipy.special import ndtr, stdtr

    for name, b, error, low, high in zip(names, estimate, fitted.standard_errors, lower, upper, strict=True):
        z = b / error if error > 0 else np.nan
        tail = stdtr(fitted.df, -abs(z)) if np.isfinite(fitted.df) else ndtr(-abs(z))
        yield name, float(b), float(error), float(z), float(2.0 * tail), float(low), float(high)
