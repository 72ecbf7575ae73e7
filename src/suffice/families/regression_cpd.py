"""The conditional distribution of a regression with one linear predictor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.errors import ModelError
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import split
from suffice.families.design import columns_of, predicted, terms
from suffice.families.family import Array, Columns, Interval
from suffice.families.fitted import Fitted, Regressed, coefficient_table
from suffice.statistics.configurations import checked_cells, sizes
from suffice.variables import Finite, Variable

if TYPE_CHECKING:
    from suffice.families.glm import Glm


@dataclass(frozen=True, eq=False, repr=False)
class RegressionCpd(Regressed):
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
            self._keep(name, (p,))
        for name in ("intercept", "dispersion"):
            value = getattr(self, name)
            if not np.isfinite(value):
                raise ModelError(f"the {name} of {self.child.name!r} must be a finite number, not {value!r}")
            object.__setattr__(self, name, float(value))
        if not self.dispersion > 0:
            raise ModelError(f"the dispersion of {self.child.name!r} must be above 0, not {self.dispersion!r}")

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
    def standard_errors(self) -> Array:
        """Of the intercept, then of the coefficients."""
        return self._fitted().standard_errors

    def interval(self, level: float = 0.95) -> Interval:
        """Wald intervals of the intercept, then of the coefficients: normal quantiles around the estimate, those of a Student t
        where the dispersion is estimated."""
        return self._fitted().interval(np.concatenate([[self.intercept], self.coefficients]), level)

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
        # where parents were left out, the rest of the fit speaks of another distribution
        whole = self.fitted is not None and set(parents) == set(self.parents)
        fitted = self.fitted.arranged([0, *(1 + j for j in columns)]) if whole and self.fitted else None
        return RegressionCpd(self.child, variables, family, intercept, kept[0], self.dispersion, kept[1], fitted)

    def _trials(self, columns: Columns, n: int) -> Array:
        return np.ones(n) if self.family.trials is None else np.asarray(columns[self.family.trials], dtype=np.float64)

    def _rows(self) -> tuple[list[str], list[list[object]]]:
        estimate = np.concatenate([[self.intercept], self.coefficients])
        names = ("(intercept)", *self.terms)
        if self.fitted is None:
            return ["term", "estimate"], [[n, float(b)] for n, b in zip(names, estimate, strict=True)]
        return coefficient_table(names, estimate, self.fitted)

    def _kind(self) -> str:
        special = "".join(f", {what} {name}" for what in ("offset", "trials") if (name := getattr(self.family, what)) is not None)
        return f"{self.family.words}{special}{self.family.spread_in_words(self.dispersion)}"
