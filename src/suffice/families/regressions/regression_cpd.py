"""The conditional distribution of any regression: its numbers, what is known about their fit, and what they say of rows.

All of them have linear predictors η of their parents' columns, and a family that makes a distribution of η: what is special to
one kind is said by its family, and by the names of its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc, st
from suffice.basis.registry import find_type, not_known, type_of
from suffice.basis.variables import Finite, Variable
from suffice.errors import FitError, FormatError, ModelError
from suffice.families import design
from suffice.families.categorical import Table
from suffice.families.design import Fitted, ParameterLayout
from suffice.families.parameter_draws import Coefficients
from suffice.families.protocol.family import Array, Columns, Cpd, Interval
from suffice.statistics.counts import array_of, checked_cells, flat, freeze, sizes


@dataclass(frozen=True, eq=False, repr=False)
class RegressionCpd(Cpd):
    """p(child | parents) by predictors η = intercept + coefficients·x (+ the offset), a family that makes a distribution of them,
    and a dispersion.

    The coefficients belong to `terms`: a number per real parent, an indicator per state but the first of a finite one, in the
    order of the parents. Of one predictor the intercept is a number; of `Logistic` it has the log-odds of each state against the
    first, with a row of coefficients for each; of `ProportionalOdds` it has the cut points, whose log-odds p(child ≤ k) are
    cut_points[k] − coefficients·x. The dispersion is the variance of a linear regression, 1/shape of a gamma or negative
    binomial, else 1. `fitted` has log-likelihood, deviance, covariance and so on after a fit. `centre` is where sums over rows
    are taken from: it keeps digits and changes no probability.

    >>> from suffice import Count, Logistic, Real
    >>> from suffice.regressions import PoissonLog
    >>> RegressionCpd(Count("n"), (Real("x"), Finite("z", ["a", "b"])), PoissonLog(), 0.5, [2.0, -1.0])
    p(n | x, z), Poisson regression, log link
    term         estimate
    ───────────  ────────
    (intercept)  0.5
    x            2
    z=b          -1
    >>> RegressionCpd(Finite("y", ["no", "yes"]), (Real("x"), Finite("z", ["a", "b"])), Logistic(), [0.5], [[2.0, -1.0]])
    p(y | x, z), logistic, against y=no
    y    intercept  x  z=b
    ───  ─────────  ─  ───
    yes  0.5        2  -1
    """

    child: Any
    parent_variables: tuple[Variable, ...]
    family: Any
    intercept: Any
    coefficients: Array
    dispersion: float = 1.0
    centre: Array = field(default_factory=lambda: np.zeros(0))
    fitted: Fitted | None = None
    regressors: tuple[Variable, ...] = field(init=False)
    """The parents that have coefficients."""
    terms: tuple[str, ...] = field(init=False)
    """The names of the coefficients: `x` of a real parent, `z=b` of a state of a finite one."""
    layout: ParameterLayout = field(init=False)
    """Where `theta` has the levels and slopes."""

    types: ClassVar[tuple[str, ...]] = ("regression", "logistic", "ordinal")
    is_regression: ClassVar[bool] = True
    positive: ClassVar[tuple[str, ...]] = ("dispersion",)
    _lines = 32

    def __post_init__(self) -> None:
        object.__setattr__(self, "parent_variables", tuple(self.parent_variables))
        self.family.check(self.child, self.parent_variables)
        own = design.terms(self.parent_variables, self.family.roles)
        object.__setattr__(self, "regressors", own.parents)
        object.__setattr__(self, "terms", own.names)
        object.__setattr__(self, "layout", self.family.layout(self.child, len(self.terms)))
        shapes = {"intercept": self.layout.intercept, "coefficients": self.layout.coefficients, "centre": (len(self.terms),)}
        for name, shape in (shapes | {"dispersion": ()}).items():  # held read-only; a centre that is not given is 0
            given = np.array(getattr(self, name), dtype=np.float64)
            array = np.zeros(shape) if name == "centre" and not given.size else given
            called = f"the {self.family.level_field if name == 'intercept' else name} of {self.child.name!r}"
            if array.shape != shape:
                raise ModelError(f"{called} must have the shape {shape}, not {array.shape}")
            if not np.isfinite(array).all():
                what = "finite numbers" if shape else f"a finite number, not {getattr(self, name)!r}"
                raise ModelError(f"{called} must be {what}")
            object.__setattr__(self, name, freeze(array) if shape else float(array))
        if not self.dispersion > 0:
            raise ModelError(f"the dispersion of {self.child.name!r} must be above 0, not {self.dispersion!r}")
        if self.family.ordered and not np.all(np.diff(self.intercept) > 0):
            raise ModelError(f"the cut_points of {self.child.name!r} must rise from each to the next, not {self.intercept}")

    @property
    def part_names(self) -> tuple[str, ...]:
        return ("intercept", "coefficients", *(["dispersion"] if self.family.single else []))

    @property
    def numbers(self) -> Array:
        """All parameters, in the order of their covariance and in the shape of their intervals."""
        levels = np.atleast_1d(self.intercept)
        return np.concatenate([levels[:, None] if self.coefficients.ndim == 2 else levels, self.coefficients], axis=-1)

    @property
    def cut_points(self) -> Array:
        """The intercepts of ordered states."""
        return np.atleast_1d(self.intercept)

    @property
    def theta(self) -> Array:
        """All parameters in one line."""
        return self.numbers.reshape(-1)

    @property
    def is_open(self) -> bool:
        return not self.family.linear and (bool(self.real_parents) or not self.family.closes)

    def closed_form(self) -> Any:
        return self.family.closed_form(self)

    @property
    def has_covariance(self) -> bool:
        """Whether a fit left a finite covariance of the parameters behind."""
        return self.fitted is not None and bool(np.isfinite(self.fitted.covariance).all())

    @property
    def standard_errors(self) -> Array:
        """Of the intercept (or the cut points), then of the coefficients; of several predictors, a row for each."""
        return self._require_fit().standard_errors.reshape(self.numbers.shape)

    def plot(self, ax: Any = None) -> Any:
        """The intercept (or the cut points) and the coefficients, after a fit with their 95 % intervals, by matplotlib; gives the
        axes."""
        from suffice.basis.pictures.plots import plot_intervals

        numbers = np.atleast_2d(self.numbers)
        ends = [np.atleast_2d(end) for end in self.interval()] if self.has_covariance else None
        levels = numbers.shape[1] - len(self.terms)
        rows = [*(["intercept"] if levels == 1 else [f"cut {i + 1}" for i in range(levels)]), *self.terms]
        names = [str(s) for s in getattr(self.child, "states", ())[1:]] if len(numbers) > 1 else [self.child.name]
        each = [(None, None) if ends is None else (ends[0][k], ends[1][k]) for k in range(len(numbers))]
        series = [(name, own, *end) for name, own, end in zip(names, numbers, each, strict=True)]
        return plot_intervals(ax, rows, series, x="coefficient", title=self._headline(), upright=(0.0, "no effect"))

    def interval(self, level: float = 0.95) -> Interval:
        """Wald intervals of the intercept (or the cut points), then of the coefficients, of several predictors a row for each:
        normal quantiles around the estimate, those of a Student t where the dispersion is estimated."""
        return self._require_fit().interval(self.numbers, level)

    def log_likelihood(self, statistic: Any) -> float:
        raise design.needs_rows(self.child)

    def log_likelihood_of_fit(self, statistics: Any) -> float:
        return self.log_likelihood(None) if self.fitted is None else self.fitted.log_likelihood

    def columns_of(self, parent: str) -> slice:
        """Where the coefficients of a parent are."""
        return design.columns_of(self.regressors, parent)

    def effects(self, parent: str) -> Array:
        """What each state of a finite parent adds to the predictors (the first axis), those of its first state being 0."""
        own = self.theta[self.layout.slopes[:, self.columns_of(parent)]].T
        return np.concatenate([np.zeros((1, own.shape[1])), own])

    def by_states(self, parent: str) -> list[Array]:
        return [self.effects(parent)]

    def redraw(self, n: int, rng: np.random.Generator) -> list[Self]:
        """n draws from the normal approximation of the posterior."""
        theta, levels = Coefficients(self).draw_predictors(np.eye(len(self.theta)), n, rng), self.layout.levels
        if self.family.ordered:  # cut points that cross in a draw are put in order
            theta[:, levels] = np.sort(theta[:, levels], axis=1)
        return [self.family.cpd(self.child, self.parent_variables, row, self.dispersion, centre=self.centre) for row in theta]

    def like(self, other: Self) -> Self:
        return replace(super().like(other), centre=other.centre)

    def perturb(self, parent: str, rng: np.random.Generator) -> Self:
        """The same, with the effects of a finite parent's states moved apart a little, at random."""
        layout, theta = self.layout, self.theta.copy()
        own = layout.slopes[:, self.columns_of(parent)]
        theta[own] += self.family.apart(theta[layout.levels]) * rng.standard_normal(own.shape)
        return self._of(self.parents, self.family, theta)

    def predictor(self, columns: Columns, n: int) -> Array:
        """η of each of n rows; of a family that has several predictors, a row for each of them."""
        layout = self.layout
        rows = layout.predictors(layout.shift(self.theta, self.centre))
        eta = design.predict_rows(rows, self.regressors, columns, self.centre, n, self.child.name)
        eta = eta if self.family.offset is None else np.asarray(eta + columns[self.family.offset])
        return np.asarray(eta[0]) if self.family.single else eta

    def design(self, columns: Columns, n: int) -> Array:
        """What makes η of the intercept and the coefficients, of each of n rows: 1, and a number for each term."""
        return design.fill_design(self.regressors, columns, np.zeros(len(self.terms)), n, self.child.name).T

    def design_by_states(self) -> Array:
        """The same of each configuration of the finite parents, the numbers being 0."""
        return self.design(*design.configurations(self.finite_parents, dict.fromkeys(self.real_parents, 0.0)))

    def log_probs(self, columns: Columns, n: int) -> Array:
        """ln p of each state of a finite child (the first axis) in each of n rows."""
        logs: Array = self.family.log_probs_at(self.intercept, self.predictor(columns, n))
        return logs

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
        probs = np.exp(self.log_probs(*design.configurations(finite))).T
        return Table(self.child, finite, probs.reshape(*sizes(finite), self.child.n_states))

    def reorder(self, parents: Sequence[str]) -> Self:
        """The same distribution, the parents in another order or some of them left out."""
        return self if tuple(parents) == self.parents else self._of(parents, self.family, self.theta)

    def without(self, values: Mapping[str, float]) -> Self:
        """The distribution where some real parents are these numbers, which move into the intercept. Trials stay."""
        family: Any = self.family
        moving = {p: x for p, x in values.items() if p != family.trials}
        off = np.zeros(len(self.terms))
        for p in moving.keys() - {family.offset}:
            off[self.columns_of(p)] = moving[p]
        theta = self.layout.shift(self.theta, off)
        if family.offset in moving:
            theta[self.layout.levels] += moving[family.offset]
            family = replace(family, offset=None)
        return self._of([p for p in self.parents if p not in moving], family, theta)

    def _of(self, parents: Sequence[str], family: Any, theta: Array) -> Self:
        variables = tuple(self.parent_variables[self.parents.index(p)] for p in parents)
        every = range(len(self.terms))
        columns = [j for v in design.terms(variables, family.roles).parents for j in every[self.columns_of(v.name)]]
        order, fitted = self.layout.of_columns(columns), self.fitted
        # where parents were left out, the rest of the fit speaks of another distribution
        whole = fitted is not None and set(parents) == set(self.parents)
        fitted = replace(fitted, covariance=fitted.covariance[np.ix_(order, order)]) if whole and fitted else None
        cpd: Self = family.cpd(self.child, variables, theta[order], self.dispersion, centre=self.centre[columns], fitted=fitted)
        return cpd

    def rename(self, child: Variable, parents: Sequence[Variable]) -> Self:
        """The same numbers of another node, whose parents correspond in their order."""
        names = dict(zip(self.parents, (p.name for p in parents), strict=True))
        family, fields = self.family.rename(names), {"centre": self.centre, "fitted": self.fitted}
        cpd: Self = family.cpd(child, tuple(parents), self.theta, self.dispersion, **fields)
        return cpd

    def same(self, other: RegressionCpd) -> bool:
        """Whether two regressions of a node are the same numbers, whatever the order of the parents and the ridge they came by.

        >>> from suffice import Real
        >>> from suffice.regressions import Linear
        >>> x, z = Real("x"), Real("z")
        >>> a, b = (RegressionCpd(Real("y"), p, Linear(), 1.0, c) for p, c in (((x, z), [2.0, 3.0]), ((z, x), [3.0, 2.0])))
        >>> a.same(b)
        True
        """
        mine, theirs = (replace(cpd.family, ridge=0.0) for cpd in (self, other))
        if mine != theirs or set(self.parents) != set(other.parents):
            return False
        other = other.reorder(self.parents)
        return np.array_equal(self.theta, other.theta) and self.dispersion == other.dispersion

    def to_dict(self) -> dict[str, Any]:
        """The regression as plain values: those of states are called by their family, others name it with its options."""
        family, level = self.family, np.atleast_1d(self.intercept)
        name = type_of(family)
        fitted = None if self.fitted is None else self.fitted.to_dict()
        numbers = {part: flat(getattr(self, part), in_text=True) for part in ("coefficients", "centre")}
        rest = {**numbers, "fitted": fitted}
        if name in self.types:
            return {"type": name, family.level_field: flat(level, in_text=True), **rest, "ridge": family.ridge}
        named = {"family": name, "options": asdict(family)}
        own = {"intercept": float(level[0]), "terms": list(self.terms), "dispersion": self.dispersion}
        return {"type": "regression", **named, **own, **rest}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any], child: Any, parents: Sequence[Variable], seen: Any, imagined: Any) -> Cpd:
        """What `to_dict` wrote; older files have neither centre nor fit."""
        if d["type"] != "regression" and not isinstance(child, Finite):
            raise FormatError(f"the CPD of {child.name!r} is {d['type']!r}, which does not fit {child!r}")
        name, options = (d["family"], d["options"]) if d["type"] == "regression" else (d["type"], {"ridge": float(d["ridge"])})
        kind = find_type("regressions", name)
        if kind is None:
            raise not_known(f"the regression {name!r} of {child.name!r}")
        family = kind(**options)
        family.check(child, parents)
        names = design.terms(parents, family.roles).names
        if tuple(d.get("terms", names)) != names:
            raise FormatError(f"the terms of {child.name!r} are {list(names)}, and the file has {d['terms']}")
        layout = family.layout(child, len(names))
        theta = layout.of_levels(array_of(d[family.level_field], finite=False).reshape(layout.levels.shape))
        theta[layout.slopes] = array_of(d["coefficients"], finite=False).reshape(layout.slopes.shape)
        centre, fitted = array_of(d.get("centre", []), finite=False), Fitted.from_dict(d.get("fitted"), layout.size, child)
        cpd: Cpd = family.cpd(child, tuple(parents), theta, d.get("dispersion", 1.0), centre=centre, fitted=fitted)
        return cpd

    def _require_fit(self) -> Fitted:
        if self.fitted is None:
            raise FitError(
                f"{self.child.name!r} was not fitted to complete rows by itself (it was written down, read from a file, or "
                "learned by EM): it has no standard errors and no intervals"
            )
        return self.fitted

    def mean(self, columns: Columns, n: int) -> Array:
        """E[child] of each of n rows: of two states, the probability of the second; of trials, of one of them."""
        return np.asarray(self.family.mean(self.predictor(columns, n)))

    def predictor_by_states(self) -> Array:
        """η in each configuration of the finite parents, the numbers being 0: an axis per finite parent."""
        finite = self.finite_parents
        checked_cells(finite, f"the configurations of the parents of {self.child.name!r}")
        return np.asarray(self.design_by_states() @ self.theta).reshape(sizes(finite))

    def log_prob(self, columns: Columns) -> Array:
        if isinstance(self.child, Finite):
            child = design.codes_of(self.child, columns)
            return np.asarray(self.log_probs(columns, len(child))[child, np.arange(len(child))])
        y = np.asarray(columns[self.child.name], dtype=np.float64)
        trials = self.family.trials_in(columns, len(y))
        return np.asarray(self.family.log_prob(y, self.predictor(columns, len(y)), self.dispersion, trials))

    def moments(self, columns: Columns, n: int) -> tuple[Array, Array]:
        """The mean and the variance of a number in each of n rows; of trials, of the number of successes in them.

        >>> from suffice.regressions import NegativeBinomialLog
        >>> from suffice import Count
        >>> RegressionCpd(Count("n"), (), NegativeBinomialLog(), 0.0, [], dispersion=0.5).moments({}, 1)
        (array([1.]), array([1.5]))
        """
        eta, trials = self.predictor(columns, n), self.family.trials_in(columns, n)
        with np.errstate(over="ignore", invalid="ignore"):
            return trials * self.family.mean(eta), self.family.variance(eta, self.dispersion, trials)

    def distribution(self, columns: Columns, n: int) -> Any:
        """The distribution of a number in each of n rows, as scipy has it.

        >>> from suffice import Real
        >>> from suffice.regressions import Linear
        >>> RegressionCpd(Real("y"), (), Linear(), 2.0, []).distribution({}, 1).cdf(2.0)
        array([0.5])
        """
        eta, trials = self.predictor(columns, n), self.family.trials_in(columns, n)
        return self.family.in_scipy(st, eta, self.dispersion, trials)

    def quantiles(self, columns: Columns, q: Array) -> Array:
        """The smallest value of a number that its distribution does not exceed with probability q, in each row.

        >>> from suffice.regressions import PoissonLog
        >>> from suffice import Count
        >>> RegressionCpd(Count("n"), (), PoissonLog(), 0.0, []).quantiles({}, np.array([0.1, 0.5, 0.99]))
        array([0., 1., 4.])
        """
        found, name = self.distribution(columns, len(q)).ppf(q), self.child.name
        if not np.isfinite(found).all():
            mean = self.mean(columns, len(q))
            raise ModelError(f"{name!r} has a mean of {mean[~np.isfinite(found)][0]:g} in some row: no number can be drawn")
        return np.asarray(found, dtype=np.float64).reshape(len(q))

    @property
    def parameter_names(self) -> list[str]:
        """The parameters in words, in the order of θ."""
        levels = "cut point {}" if self.family.ordered else "intercept"
        names = [levels.format(n) for n in self.family.level_names(self.child)] + [f"coefficient of {t!r}" for t in self.terms]
        name = repr(self.child.name)
        whose = [f"{name} ({state!r})" for state in self.child.states[1:]] if self.numbers.ndim == 2 else [name]
        return [f"{own} of {child}" for child in whose for own in names]

    def _n_rows(self) -> int:
        return len(self.numbers) if self.fitted is None else self.theta.size

    def _rows(self, limit: int) -> tuple[list[str], list[list[object]]]:
        """After a fit one row for each number, with its standard error, z, p and 95 % interval; of several sets of coefficients
        with the state that they are of."""
        numbers, names = self.numbers, [*self.family.level_names(self.child), *self.terms]  # those of a predictor, or of all
        states = self.child.states[1:] if numbers.ndim == 2 else ()
        if self.fitted is None and states:
            lines = [[state, *row] for state, row in zip(states, numbers.tolist(), strict=True)]
            return [self.child.name, "intercept", *self.terms], lines[:limit]
        if self.fitted is None:
            return ["term", "estimate"], [[n, float(b)] for n, b in zip(names, self.theta, strict=True)][:limit]
        estimate, error, df = self.theta, self.fitted.standard_errors, self.fitted.df
        z, student = np.divide(estimate, error, out=np.full(len(error), np.nan), where=error > 0), np.isfinite(df)
        p = 2.0 * (sc.stdtr(df, -np.abs(z)) if student else sc.ndtr(-np.abs(z)))
        columns = (c.tolist() for c in (estimate, error, z, p, *self.fitted.interval(estimate, 0.95)))
        header = ["term", "estimate", "standard error", "t" if student else "z", "p", "lower", "upper"]
        rows = [list(row) for row in zip(names * (len(states) or 1), *columns, strict=True)]
        if states:
            header, rows = [self.child.name, *header], [[states[i // len(names)], *row] for i, row in enumerate(rows)]
        return header, rows[:limit]

    def _kind(self) -> str:
        return str(self.family.title(self.child, self.dispersion))
