"""The conditional distribution of a regression with one linear predictor, and what is known about its fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.display import html_table, text_table
from suffice.errors import FitError, ModelError
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import split
from suffice.families.design import columns_of, predicted, terms
from suffice.families.family import Array, Columns, Interval, checked_level, frame
from suffice.statistics.configurations import checked_cells, frozen, sizes
from suffice.variables import Finite, Variable

if TYPE_CHECKING:
    from suffice.families.glm import Glm


@dataclass(frozen=True, eq=False)
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
    """

    log_likelihood: float
    deviance: float
    pearson: float
    dispersion: float
    weight: float
    covariance: Array
    iterations: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "covariance", frozen(np.array(self.covariance, dtype=np.float64)))

    @property
    def standard_errors(self) -> Array:
        """Of each parameter, in the order of the covariance."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    def interval(self, estimate: Array, level: float) -> Interval:
        """Normal quantiles around an estimate."""
        from scipy.special import ndtri

        z = float(ndtri(0.5 + 0.5 * checked_level(level)))
        spread = z * self.standard_errors.reshape(estimate.shape)
        return Interval(estimate - spread, estimate + spread)


@dataclass(frozen=True, eq=False)
class RegressionCpd:
    """p(child | parents) by η = intercept + coefficients·x (+ the offset), a family that makes a distribution of η, a dispersion.

    The coefficients belong to `terms`: a number per real parent, an indicator per state but the first of a finite one, in the
    order of the parents. The dispersion is the variance of a linear regression, 1/shape of a gamma or negative binomial, else 1.
    `fitted` has log-likelihood, deviance, covariance and so on after a fit. `centre` keeps digits and changes no probability.

    >>> from suffice.families.responses import PoissonLog
    >>> from suffice.variables import Count, Real
    >>> RegressionCpd(Count("n"), (Real("x"), Finite("z", ["a", "b"])), PoissonLog(), 0.5, [2.0, -1.0])
    p(n | x, z), Poisson regression, log link
    term         estimate
    ───────────  ────────
    (intercept)  0.5
    x            2
    z=b          -1
    """

    child: Variable
    parent_variables: tuple[Variable, ...]
    family: Glm
    intercept: float
    coefficients: Array
    dispersion: float = 1.0
    centre: Array = field(default_factory=lambda: np.zeros(0))
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parent_variables", tuple(self.parent_variables))
        self.family.check(self.child, self.parent_variables)
        p = len(self.terms)
        for name in ("coefficients", "centre"):
            array = np.array(getattr(self, name), dtype=np.float64)
            if name == "centre" and not array.size:
                array = np.zeros(p)
            if array.shape != (p,):
                raise ModelError(f"the {name} of {self.child.name!r} need the shape {(p,)}, not {array.shape}")
            if not np.isfinite(array).all():
                raise ModelError(f"the {name} of {self.child.name!r} must be finite numbers")
            object.__setattr__(self, name, frozen(array))
        for name in ("intercept", "dispersion"):
            value = getattr(self, name)
            if not np.isfinite(value):
                raise ModelError(f"the {name} of {self.child.name!r} must be a finite number, not {value!r}")
            object.__setattr__(self, name, float(value))
        if not self.dispersion > 0:
            raise ModelError(f"the dispersion of {self.child.name!r} must be above 0, not {self.dispersion!r}")

    @property
    def parents(self) -> tuple[str, ...]:
        """The parents in the order of the graph."""
        return tuple(p.name for p in self.parent_variables)

    @property
    def finite_parents(self) -> tuple[Finite, ...]:
        return split(self.parent_variables)[0]

    @property
    def real_parents(self) -> tuple[str, ...]:
        """The parents that are numbers, an offset and trials among them."""
        return tuple(p.name for p in split(self.parent_variables)[1])

    @property
    def regressors(self) -> tuple[Variable, ...]:
        """The parents that have coefficients."""
        return self.family.regressors(self.parent_variables)

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of the coefficients: `x` of a real parent, `z=b` of a state of a finite one."""
        return terms(self.regressors)

    @property
    def n_parameters(self) -> int:
        return self.family.n_parameters(self.child, self.parent_variables)

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

    @property
    def standard_errors(self) -> Array:
        """Of the intercept, then of the coefficients."""
        return self._fitted().standard_errors

    def interval(self, level: float = 0.95) -> Interval:
        """Wald intervals of the intercept, then of the coefficients: quantiles of their normal approximation."""
        return self._fitted().interval(np.concatenate([[self.intercept], self.coefficients]), level)

    def log_likelihood(self, statistic: Any) -> float:
        from suffice.families.glm import needs_rows

        raise needs_rows(self.child)

    def predictor(self, columns: Columns, n: int) -> Array:
        """η of each of n rows."""
        theta = np.concatenate([[self.intercept + self.coefficients @ self.centre], self.coefficients])
        eta = predicted(theta[None], self.regressors, columns, self.centre, n, self.child.name)[0]
        return eta if self.family.offset is None else np.asarray(eta + columns[self.family.offset])

    def mean(self, columns: Columns, n: int) -> Array:
        """E[child] of each of n rows: of two states, the probability of the second; of trials, of one of them."""
        return self.family.mean(self.predictor(columns, n))

    def log_prob(self, columns: Columns) -> Array:
        y = np.asarray(columns[self.child.name], dtype=np.float64)
        return self.family.log_prob(y, self.predictor(columns, len(y)), self.dispersion, self._trials(columns, len(y)))

    def draw(self, columns: Columns, rng: np.random.Generator, n: int) -> npt.NDArray[Any]:
        """A value of the child for each of n rows whose parents are in `columns`."""
        return self.family.draw(self.predictor(columns, n), self.dispersion, self._trials(columns, n), rng)

    def table(self) -> Table:
        """The same distribution as a table, if the child and all parents are finite."""
        if not isinstance(self.child, Finite) or self.real_parents:
            number = self.child.name if not isinstance(self.child, Finite) else self.real_parents[0]
            raise ModelError(f"{number!r} is a number, and so there is no table of the probabilities of {self.child.name!r}")
        finite = self.finite_parents
        n = checked_cells((*finite, self.child), f"the table of {self.child.name!r}") // 2
        codes = np.unravel_index(np.arange(n), sizes(finite)) if finite else ()
        eta = self.predictor({v.name: c for v, c in zip(finite, codes, strict=True)}, n)
        probs = np.stack([self.family.mean(-eta), self.family.mean(eta)], axis=-1)
        return Table(self.child, finite, probs.reshape(*sizes(finite), 2))

    def arranged(self, parents: Sequence[str]) -> RegressionCpd:
        """The same distribution, the parents in another order or some of them left out."""
        return self if tuple(parents) == self.parents else self._of(parents, self.family, self.intercept)

    def without(self, values: Mapping[str, float]) -> RegressionCpd:
        """The distribution where some real parents are these numbers, which move into the intercept. Trials stay."""
        moving = {p: x for p, x in values.items() if p != self.family.trials}
        own, family = self.regressors, self.family
        intercept = self.intercept
        for p, x in moving.items():
            intercept += x if p == family.offset else float(self.coefficients[columns_of(own, p)][0]) * x
        if family.offset in moving:
            family = replace(family, offset=None)
        return self._of([p for p in self.parents if p not in moving], family, intercept)

    def _of(self, parents: Sequence[str], family: Glm, intercept: float) -> RegressionCpd:
        variables = tuple(self.parent_variables[self.parents.index(p)] for p in parents)
        own, every = self.regressors, range(len(self.terms))
        columns = [j for v in family.regressors(variables) for j in every[columns_of(own, v.name)]]
        kept = self.coefficients[columns], self.centre[columns]
        return RegressionCpd(self.child, variables, family, intercept, kept[0], self.dispersion, kept[1])

    def to_frame(self) -> Any:
        """One row per term: its estimate and, after a fit, its standard error, z, p and 95 % interval."""
        header, rows = self._rows()
        return frame({h: [r[i] for r in rows] for i, h in enumerate(header)})

    def _fitted(self) -> Fitted:
        if self.fitted is None:
            raise FitError(
                f"{self.child.name!r} was written down or read from a file, not fitted to rows: it has no standard errors and no "
                "intervals"
            )
        return self.fitted

    def _trials(self, columns: Columns, n: int) -> Array:
        return np.ones(n) if self.family.trials is None else np.asarray(columns[self.family.trials], dtype=np.float64)

    def _rows(self) -> tuple[list[str], list[list[object]]]:
        estimate = np.concatenate([[self.intercept], self.coefficients])
        names = ("(intercept)", *self.terms)
        if self.fitted is None:
            return ["term", "estimate"], [[n, float(b)] for n, b in zip(names, estimate, strict=True)]
        return coefficient_table(names, estimate, self.fitted)

    def _title(self) -> str:
        given = f" | {', '.join(self.parents)}" if self.parents else ""
        spread = f", dispersion {self.dispersion:.6g}" if self.dispersion != 1.0 else ""
        special = "".join(f", {what} {name}" for what in ("offset", "trials") if (name := getattr(self.family, what)) is not None)
        return f"p({self.child.name}{given}), {self.family.words}{special}{spread}"

    def __repr__(self) -> str:
        header, rows = self._rows()
        more = len(rows) - 32
        return f"{self._title()}\n{text_table(header, rows[:32])}" + (f"\n… and {more:,} more terms" if more > 0 else "")

    def _repr_html_(self) -> str:
        header, rows = self._rows()
        return html_table(header, rows[:64], caption=self._title())


def coefficient_table(names: Sequence[str], estimate: Array, fitted: Fitted) -> tuple[list[str], list[list[object]]]:
    """Each term with its standard error, z = estimate/error, the p-value of z, and its 95 % interval."""
    lower, upper = fitted.interval(estimate, 0.95)
    header = ["term", "estimate", "standard error", "z", "p", "lower", "upper"]
    return header, [list(row) for row in _tested(names, estimate, fitted.standard_errors, lower, upper)]


def _tested(names: Sequence[str], estimate: Array, errors: Array, lower: Array, upper: Array) -> Iterator[tuple[object, ...]]:
    from scipy.special import ndtr

    for name, b, error, low, high in zip(names, estimate, errors, lower, upper, strict=True):
        z = b / error if error > 0 else np.nan
        yield name, float(b), float(error), float(z), float(2.0 * ndtr(-abs(z))), float(low), float(high)
