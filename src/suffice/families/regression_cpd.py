"""The conditional distribution of a regression: its numbers, what is known about their fit, and what they say of rows.

All of them have linear predictors η of their parents' columns, and a family that makes a distribution of η: what is special to
one kind is said by its family, and by the names of its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError, ModelError, listed, nearest
from suffice.families.categorical import Table
from suffice.families.design import Layout, codes_of, columns_of, configurations, filled, predicted, terms
from suffice.families.family import Array, Columns, Cpd, Interval, as_numbers, checked_level
from suffice.libraries import sc
from suffice.statistics.configurations import checked_cells, frozen, sizes
from suffice.variables import Finite, Real, Variable

if TYPE_CHECKING:
    from suffice.families.glm import OnePredictor


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

    def interval(self, estimate: Array, level: float) -> Interval:
        """Quantiles of a Student t, or a normal, around an estimate."""
        q = 0.5 + 0.5 * checked_level(level)
        width = float(sc.stdtrit(self.df, q) if np.isfinite(self.df) else sc.ndtri(q))
        spread = width * self.standard_errors.reshape(estimate.shape)
        return Interval(estimate - spread, estimate + spread)

    def __repr__(self) -> str:
        numbers = ("log_likelihood", "deviance", "pearson", "dispersion", "weight", "iterations", "df")
        return f"Fitted({', '.join(f'{n}={getattr(self, n):.10g}' for n in numbers)})"


class GlmCpd(Cpd):
    """p(child | parents) of a regression: numbers, of which `theta` makes one line, and a family that says what they mean.

    The coefficients belong to `terms`: a number per real parent, an indicator per state but the first of a finite one, in the
    order of the parents. `fitted` has log-likelihood, deviance, covariance and so on after a fit. `centre` is where sums over
    rows are taken from: it keeps digits and changes no probability.
    """

    coefficients: Array
    centre: Array
    fitted: Fitted | None
    dispersion: float = 1.0

    is_regression: ClassVar[bool] = True
    _lines = 32

    @property
    def numbers(self) -> Array:
        """All parameters, in the order of their covariance and in the shape of their intervals."""
        raise NotImplementedError

    @property
    def theta(self) -> Array:
        """All parameters in one line."""
        return self.numbers.reshape(-1)

    @property
    def layout(self) -> Layout:
        layout: Layout = self.family.layout(self.child, len(self.terms))
        return layout

    @property
    def regressors(self) -> tuple[Variable, ...]:
        """The parents that have coefficients."""
        own: tuple[Variable, ...] = self.family.regressors(self.parent_variables)
        return own

    @property
    def terms(self) -> tuple[str, ...]:
        """The names of the coefficients: `x` of a real parent, `z=b` of a state of a finite one."""
        return terms(self.regressors)

    @property
    def is_open(self) -> bool:
        return not self.family.linear and (bool(self.real_parents) or not self.family.closes)

    def closed(self) -> Any:
        return self.family.closed(self)

    @property
    def has_covariance(self) -> bool:
        """Whether a fit left a finite covariance of the parameters behind."""
        return self.fitted is not None and bool(np.isfinite(self.fitted.covariance).all())

    @property
    def standard_errors(self) -> Array:
        """Of the intercept (or the cut points), then of the coefficients; of several predictors, a row for each."""
        return self._fitted().standard_errors.reshape(self.numbers.shape)

    def interval(self, level: float = 0.95) -> Interval:
        """Wald intervals of the intercept (or the cut points), then of the coefficients, of several predictors a row for each:
        normal quantiles around the estimate, those of a Student t where the dispersion is estimated."""
        return self._fitted().interval(self.numbers, level)

    def log_likelihood(self, statistic: Any) -> float:
        raise needs_rows(self.child)

    def log_likelihood_of_fit(self, statistics: Any) -> float:
        return self.log_likelihood(None) if self.fitted is None else self.fitted.log_likelihood

    def columns_of(self, parent: str) -> slice:
        """Where the coefficients of a parent are."""
        return columns_of(self.regressors, parent)

    def effects(self, parent: str) -> Array:
        """What each state of a finite parent adds to the predictors (the first axis), those of its first state being 0."""
        own = self.theta[self.layout.slopes[:, self.columns_of(parent)]].T
        return np.concatenate([np.zeros((1, own.shape[1])), own])

    def moved(self, parent: str, rng: np.random.Generator) -> Self:
        """The same, with the effects of a finite parent's states moved apart a little, at random."""
        layout, theta = self.layout, self.theta.copy()
        own = layout.slopes[:, self.columns_of(parent)]
        theta[own] += self.family.apart(theta[layout.levels]) * rng.standard_normal(own.shape)
        return self._of(self.parents, self.family, theta)

    def predictor(self, columns: Columns, n: int) -> Array:
        """η of each of n rows; of a family that has several predictors, a row for each of them."""
        layout = self.layout
        rows = layout.predictors(layout.shifted(self.theta, self.centre))
        eta = predicted(rows, self.regressors, columns, self.centre, n, self.child.name)
        eta = eta if self.family.offset is None else np.asarray(eta + columns[self.family.offset])
        return np.asarray(eta[0]) if self.family.single else eta

    def design(self, columns: Columns, n: int) -> Array:
        """What makes η of the intercept and the coefficients, of each of n rows: 1, and a number for each term."""
        return filled(self.regressors, columns, np.zeros(len(self.terms)), n, self.child.name).T

    def design_by_states(self) -> Array:
        """The same of each configuration of the finite parents, the numbers being 0."""
        return self.design(*configurations(self.finite_parents, dict.fromkeys(self.real_parents, 0.0)))

    def log_probs(self, columns: Columns, n: int) -> Array:
        """ln p of each state of a finite child (the first axis) in each of n rows."""
        logs: Array = self.family.log_probs(self.predictor(columns, n))
        return logs

    def log_prob(self, columns: Columns) -> Array:
        child = codes_of(columns, self.child)
        return np.asarray(self.log_probs(columns, len(child))[child, np.arange(len(child))])

    def draw(self, columns: Columns, rng: np.random.Generator, n: int) -> npt.NDArray[Any]:
        """A value of the child, of a finite one a code, for each of n rows whose parents are in `columns`."""
        eta, trials = self.predictor(columns, n), self.family.trials_in(columns, n)
        return np.asarray(self.family.draw(eta, self.dispersion, trials, rng))

    def table(self) -> Table:
        """The same distribution as a table, if the child and all parents are finite."""
        if not isinstance(self.child, Finite):
            raise ModelError(
                f"{self.child.name!r} is a number, and so there is no table of the probabilities of {self.child.name!r}"
            )
        if self.real_parents:
            number = self.real_parents[0]
            raise ModelError(
                f"{self.child.name!r} has the real parent {number!r}, and no table of its probabilities: {number!r} is a number"
            )
        finite = self.finite_parents
        checked_cells((*finite, self.child), f"the table of {self.child.name!r}")
        probs = np.exp(self.log_probs(*configurations(finite))).T
        return Table(self.child, finite, probs.reshape(*sizes(finite), self.child.n_states))

    def arranged(self, parents: Sequence[str]) -> Self:
        """The same distribution, the parents in another order or some of them left out."""
        return self if tuple(parents) == self.parents else self._of(parents, self.family, self.theta)

    def without(self, values: Mapping[str, float]) -> Self:
        """The distribution where some real parents are these numbers, which move into the intercept. Trials stay."""
        family: Any = self.family
        moving = {p: x for p, x in values.items() if p != family.trials}
        off = np.zeros(len(self.terms))
        for p in moving.keys() - {family.offset}:
            off[self.columns_of(p)] = moving[p]
        theta = self.layout.shifted(self.theta, off)
        if family.offset in moving:
            theta[self.layout.levels] += moving[family.offset]
            family = replace(family, offset=None)
        return self._of([p for p in self.parents if p not in moving], family, theta)

    def _of(self, parents: Sequence[str], family: Any, theta: Array) -> Self:
        variables = tuple(self.parent_variables[self.parents.index(p)] for p in parents)
        every = range(len(self.terms))
        columns = [j for v in family.regressors(variables) for j in every[self.columns_of(v.name)]]
        order, fitted = self.layout.of_columns(columns), self.fitted
        # where parents were left out, the rest of the fit speaks of another distribution
        whole = fitted is not None and set(parents) == set(self.parents)
        fitted = replace(fitted, covariance=fitted.covariance[np.ix_(order, order)]) if whole and fitted else None
        cpd: Self = family.cpd(self.child, variables, theta[order], self.dispersion, centre=self.centre[columns], fitted=fitted)
        return cpd

    def renamed(self, child: Variable, parents: Sequence[Variable]) -> Self:
        """The same numbers of another node, whose parents correspond in their order."""
        names = dict(zip(self.parents, (p.name for p in parents), strict=True))
        family, fields = self.family.renamed(names), {"centre": self.centre, "fitted": self.fitted}
        cpd: Self = family.cpd(child, tuple(parents), self.theta, self.dispersion, **fields)
        return cpd

    def same(self, other: GlmCpd) -> bool:
        """Whether two regressions of a node are the same numbers, whatever the order of the parents and the ridge they came by.

        >>> from suffice import Linear
        >>> x, z = Real("x"), Real("z")
        >>> a, b = (RegressionCpd(Real("y"), p, Linear(), 1.0, c) for p, c in (((x, z), [2.0, 3.0]), ((z, x), [3.0, 2.0])))
        >>> a.same(b)
        True
        """
        mine, theirs = (replace(cpd.family, ridge=0.0) for cpd in (self, other))
        if mine != theirs or set(self.parents) != set(other.parents):
            return False
        other = other.arranged(self.parents)
        return np.array_equal(self.theta, other.theta) and self.dispersion == other.dispersion

    def _keep(self, **shapes: tuple[int, ...]) -> None:
        """Hold fields read-only: finite numbers of these shapes; a centre that is not given is 0."""
        object.__setattr__(self, "parent_variables", tuple(self.parent_variables))
        for name, shape in (shapes | {"centre": (len(self.terms),)}).items():
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

    def _names(self) -> list[str]:
        """What each parameter is called."""
        return ["(intercept)", *self.terms]

    def _n_rows(self) -> int:
        return len(self._names())

    def _rows(self, limit: int) -> tuple[list[str], list[list[object]]]:
        """After a fit one row for each number, with its standard error, z, p and 95 % interval."""
        if self.fitted is None:
            return ["term", "estimate"], [[n, float(b)] for n, b in zip(self._names(), self.theta, strict=True)][:limit]
        header, rows = coefficient_table(self._names(), self.theta, self.fitted)
        return header, rows[:limit]


@dataclass(frozen=True, eq=False, repr=False)
class RegressionCpd(GlmCpd):
    """p(child | parents) by η = intercept + coefficients·x (+ the offset), a family that makes a distribution of η, a dispersion.

    The coefficients belong to `terms`: a number per real parent, an indicator per state but the first of a finite one, in the
    order of the parents. The dispersion is the variance of a linear regression, 1/shape of a gamma or negative binomial, else 1.
    `fitted` has log-likelihood, deviance, covariance and so on after a fit. `centre` keeps digits and changes no probability.

    >>> from suffice import PoissonLog
    >>> from suffice import Count
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
    family: OnePredictor
    intercept: float
    coefficients: Array
    dispersion: float = 1.0
    centre: Array = field(default_factory=lambda: np.zeros(0))
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        self.family.check(self.child, self.parent_variables)
        self._keep(coefficients=(len(self.terms),))
        for name in ("intercept", "dispersion"):
            value = getattr(self, name)
            if not np.isfinite(value):
                raise ModelError(f"the {name} of {self.child.name!r} must be a finite number, not {value!r}")
            object.__setattr__(self, name, float(value))
        if not self.dispersion > 0:
            raise ModelError(f"the dispersion of {self.child.name!r} must be above 0, not {self.dispersion!r}")

    @property
    def numbers(self) -> Array:
        return np.concatenate([[self.intercept], self.coefficients])

    def mean(self, columns: Columns, n: int) -> Array:
        """E[child] of each of n rows: of two states, the probability of the second; of trials, of one of them."""
        return self.family.mean(self.predictor(columns, n))

    def predictor_by_states(self) -> Array:
        """η in each configuration of the finite parents, the numbers being 0: an axis per finite parent."""
        finite = self.finite_parents
        checked_cells(finite, f"the configurations of the parents of {self.child.name!r}")
        return np.asarray(self.design_by_states() @ self.theta).reshape(sizes(finite))

    def log_prob(self, columns: Columns) -> Array:
        if isinstance(self.child, Finite):
            return super().log_prob(columns)
        y = np.asarray(columns[self.child.name], dtype=np.float64)
        trials = self.family.trials_in(columns, len(y))
        return self.family.log_prob(y, self.predictor(columns, len(y)), self.dispersion, trials)

    def moments(self, columns: Columns, n: int) -> tuple[Array, Array]:
        """The mean and the variance of a number in each of n rows; of trials, of the number of successes in them.

        >>> from suffice import NegativeBinomialLog
        >>> from suffice import Count
        >>> RegressionCpd(Count("n"), (), NegativeBinomialLog(), 0.0, [], dispersion=0.5).moments({}, 1)
        (array([1.]), array([1.5]))
        """
        eta, trials = self.predictor(columns, n), self.family.trials_in(columns, n)
        with np.errstate(over="ignore", invalid="ignore"):
            return trials * self.family.mean(eta), self.family.variance(eta, self.dispersion, trials)

    def distribution(self, columns: Columns, n: int) -> Any:
        """The distribution of a number in each of n rows, as scipy has it.

        >>> from suffice import Linear
        >>> RegressionCpd(Real("y"), (), Linear(), 2.0, []).distribution({}, 1).cdf(2.0)
        array([0.5])
        """
        from scipy import stats

        eta, trials = self.predictor(columns, n), self.family.trials_in(columns, n)
        return self.family.in_scipy(stats, eta, self.dispersion, trials)

    def quantiles(self, columns: Columns, q: Array) -> Array:
        """The smallest value of a number that its distribution does not exceed with probability q, in each row.

        >>> from suffice import PoissonLog
        >>> from suffice import Count
        >>> RegressionCpd(Count("n"), (), PoissonLog(), 0.0, []).quantiles({}, np.array([0.1, 0.5, 0.99]))
        array([0., 1., 4.])
        """
        found, name = self.distribution(columns, len(q)).ppf(q), self.child.name
        if not np.isfinite(found).all():
            mean = self.mean(columns, len(q))
            raise ModelError(f"{name!r} has a mean of {mean[~np.isfinite(found)][0]:g} in some row: no number can be drawn")
        return np.asarray(found, dtype=np.float64).reshape(len(q))

    def _kind(self) -> str:
        special = "".join(f", {what} {name}" for what in ("offset", "trials") if (name := getattr(self.family, what)) is not None)
        return f"{self.family.words}{special}{self.family.spread_in_words(self.dispersion)}"


@dataclass(frozen=True)
class Regression:
    """A regression written down by hand: `Regression(PoissonLog(), 0.5, {"x": 2.0, "z=b": -1.0})` is Poisson(e^(½ + 2x − [z=b])).

    Terms are the names of parents that are numbers, and `parent=state` for every state but the first of the others; those that
    are left out have the coefficient 0. The `dispersion` is the variance of `Linear`, 1/shape of gamma and negative binomial
    ones. `Logistic` of more than two states takes a list of numbers, one for each state but the first, in place of each number;
    `ProportionalOdds` takes its cut points, one fewer than there are states, in place of the intercept.

    >>> from suffice import BayesNet
    >>> from suffice import Gaussian
    >>> from suffice import PoissonLog
    >>> bn = BayesNet("x -> n", {"x": Gaussian(), "n": Regression(PoissonLog(), 0.5, {"x": 2.0})})
    >>> round(float(bn.log_prob({"x": [0.0], "n": [1]})[0]), 6)
    -2.06766
    """

    family: Any
    intercept: Any = 0.0
    coefficients: Mapping[str, Any] = field(default_factory=dict)
    dispersion: float = 1.0

    @property
    def kind(self) -> type | None:
        """What a node is that was not declared; None if its states must be known."""
        kind: type = getattr(self.family, "kind", Real)
        return None if kind is Finite else kind

    def bound(self, child: Variable, parents: Sequence[Variable]) -> GlmCpd:
        """The CPD that these numbers make of a node and its parents."""
        if isinstance(self.family, type) or not getattr(self.family, "iterative", False):
            raise ModelError(f"the regression of {child.name!r} needs a family such as PoissonLog(), not {self.family!r}")
        self.family.check(child, parents)
        names = terms(self.family.regressors(parents))
        if not isinstance(self.coefficients, Mapping):
            raise ModelError(f"the coefficients of {child.name!r} are given by term, {{'x': 2.0}}, not as {self.coefficients!r}")
        for term in self.coefficients:
            if term not in names:
                known = listed(names) or "none"
                raise ModelError(f"{child.name!r} has no term {term!r}, its terms are {known}{nearest(str(term), names)}")
        layout = self.family.layout(child, len(names))
        theta = layout.of_levels(self._numbers(child, self.family.level_words, self.intercept, len(layout.levels)))
        for term, value in self.coefficients.items():
            own = layout.slopes[:, names.index(term)]
            theta[own] = self._numbers(child, f"coefficient of {term!r}", value, len(own))
        cpd: GlmCpd = self.family.cpd(child, tuple(parents), theta, self.dispersion)
        return cpd

    def _numbers(self, child: Variable, what: str, value: Any, n: int) -> Array:
        each = "a number" if n == 1 else f"{n} numbers, one for each state but one"
        refusal = f"the {what} of {child.name!r} must be {each}, not {value!r}"
        numbers = np.atleast_1d(as_numbers(value, refusal))
        if numbers.shape != (n,):
            raise ModelError(refusal)
        return numbers


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
