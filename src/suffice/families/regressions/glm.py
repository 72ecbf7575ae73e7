"""Generalised linear models: a node's distribution is a function of linear predictors η = a + b·x of its parents' columns.

    Linear                 y ~ Normal(η, σ²)
    Probit                 p(second state) = Φ(η)
    BinomialLogit          y ~ Binomial(n, 1/(1 + e^(−η))), n the parent `trials`
    PoissonLog             y ~ Poisson(e^η)
    NegativeBinomialLog    y ~ negative binomial, mean e^η and variance e^η + d e^(2η)
    GammaLog               y ~ Gamma, mean e^η and variance d e^(2η)
    GammaInverse           y ~ Gamma, mean 1/η and variance d/η²
    Logistic               ln p(state k) − ln p(first state) = η[k], a predictor for each state but the first
    ProportionalOdds       p(y ≤ k) = 1/(1 + e^(−η[k])), whose slopes b are the same for all k

Finite parents are coded by an indicator of every state but their first (`design`). There is no sufficient statistic of rows with
numbers in them: the families are iterative. A pass over the rows at some θ, the levels a and slopes b of all predictors
(`design.ParameterLayout`), gives `Sums`, which add; `irls` takes them to the estimate of largest likelihood, less

    ½ λ b P bᵀ     a ridge λ, the log-density of a normal prior of variance 1/λ for each effect (P: `design.shrunk`); in units of
                   the dispersion where there is one

McCullagh & Nelder 1989, Generalized Linear Models, 2nd ed., ch. 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.basis.registry import Named
from suffice.basis.variables import Finite, Real, Variable
from suffice.engines.engine import add_up
from suffice.errors import DataError, FitError, TooLarge, bytes_in_words, listing, nearest, note
from suffice.families import design
from suffice.families.design import Fitted, Maximum, ParameterLayout, Regressors, Summary, Sums
from suffice.families.protocol.family import Array, Columns
from suffice.families.regressions.glm_steps import EmSteps
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.statistics import Request

MAX_PARAMETERS = 4096
"""No regression has more parameters than this: its Hessian is 128 MiB."""


class Glm(Named, EmSteps):
    """What all regressions have in common. `offset` names a parent that adds to η as it is, `trials` one that counts them."""

    listed_in = "regressions"
    after_colon = ("ridge", float)

    ridge: float

    iterative: ClassVar[bool] = True
    kind: ClassVar[type] = Real
    nodes: ClassVar[str] = "real nodes"
    """What its child is: a `kind` of variable, in words."""
    words: ClassVar[str]
    level_field: ClassVar[str] = "intercept"
    level_words: ClassVar[str] = "intercept"
    canonical: ClassVar[bool] = True
    dispersed: ClassVar[bool] = False
    profiled: ClassVar[bool] = False
    single: ClassVar[bool] = False
    ordered: ClassVar[bool] = False
    linear: ClassVar[bool] = False
    scaled: ClassVar[bool] = False
    """Whether a change of η is small or large beside √(Σ w / H₀₀), the unit of η at dispersion 1; else beside 1."""
    normal: ClassVar[bool] = False
    """Whether its child is normal around the predictor: then moments say all, and EM has closed forms."""
    sure: ClassVar[bool] = False
    """Whether `advance` is known never to lower what it should raise; else EM looks, and halves its steps."""
    closes: ClassVar[bool] = False
    """Whether it has a closed form, `closed_form`, once its numbers are known."""
    by_lms: ClassVar[bool] = False
    """Whether it can be learned row by row: `suffice.learning.complete.lms`."""
    response: ClassVar[int | None] = None
    """The number by which the kernels know its response, where it has one predictor that they know."""
    offset: Any = None
    trials: Any = None
    roles: tuple[str, ...]
    """The parents that it must have, for they have no coefficients: offset and trials."""

    if TYPE_CHECKING:
        # What a family says: the child's column, of values that it can have; the levels without effects; a draw of each row;
        # of states ln p of each (the first axis), and the sums where there are several predictors, or one that the kernels do
        # not know; if it `closes`, the same distribution as a table, a conditional Gaussian or Poisson rates.
        def values(self, child: Any, columns: Columns) -> npt.NDArray[Any]: ...
        def first_levels(self, s: Summary) -> Array: ...
        def draw(self, eta: Array, dispersion: float, n: Array, rng: np.random.Generator) -> npt.NDArray[Any]: ...
        def log_probs(self, eta: Array) -> Array: ...
        def sums_of_states(self, X: Array, y: npt.NDArray[Any], w: Array, theta: Array) -> Sums: ...
        def closed_form(self, cpd: Any) -> Any: ...

    def __post_init__(self) -> None:
        if not (isinstance(self.ridge, (int, float)) and 0.0 <= self.ridge < np.inf):
            raise FitError(f"the ridge of {type(self).__name__} must be a number from 0 up, not {self.ridge!r}")
        for what in ("offset", "trials"):
            if not isinstance(getattr(self, what), (str, type(None))):
                raise FitError(f"the {what} of {type(self).__name__} is the name of a parent, not {getattr(self, what)!r}")
        object.__setattr__(self, "roles", tuple(name for name in (self.offset, self.trials) if name is not None))

    def check(self, child: Variable, parents: Sequence[Variable]) -> None:
        """Refuse variables that this family is not for."""
        states = child.n_states if isinstance(child, Finite) else 2
        if not isinstance(child, self.kind) or states < 2 or (self.single and states > 2):
            raise FitError(f"{type(self).__name__} is a family of {self.nodes}, and {child.name!r} is {child!r}")
        names = [p.name for p in parents]
        for what in ("offset", "trials"):
            name = getattr(self, what)
            if name is None:
                continue
            if name not in names:
                raise FitError(
                    f"the {what} {name!r} of {child.name!r} must be one of its parents: add the edge {name} -> {child.name}"
                    f"{nearest(name, names)}"
                )
            if isinstance(parents[names.index(name)], Finite):
                raise FitError(f"the {what} {name!r} of {child.name!r} must be a number, not states")
        if self.offset is not None and self.offset == self.trials:
            raise FitError(f"{self.offset!r} cannot be both the offset and the trials of {child.name!r}")
        m = self.n_parameters(child, parents)
        if m > MAX_PARAMETERS:
            raise TooLarge(
                f"the regression of {child.name!r} on {listing([v.name for v in parents])} would have {m:,} parameters, a "
                f"Hessian of {bytes_in_words(8.0 * m * m)}; the limit is {MAX_PARAMETERS:,} parameters"
            )

    def needs(self, child: Variable, parents: Sequence[Variable]) -> Request:
        """What statistics can say: of finite variables all, else something about the child."""
        if not isinstance(child, Finite):
            return Request((), (child.name,))
        finite = all(isinstance(p, Finite) for p in parents)
        return Request((*(p.name for p in parents), child.name) if finite else (child.name,))

    def n_parameters(self, child: Variable, parents: Sequence[Variable]) -> int:
        return self.layout(child, len(design.terms(parents, self.roles).names)).size + (self.dispersed or self.profiled)

    def layout(self, child: Any, columns: int) -> ParameterLayout:
        """Where θ has what, of a child and the columns of its regression: a predictor for each state of the child but one, if
        they are not a single one. One predictor after the other; or the levels of all, then the slopes that they share, with a
        minus."""
        K = 1 if self.single else child.n_states - 1
        if self.ordered:
            return ParameterLayout(np.arange(K), K + np.arange(columns)[None], -1.0, K + columns, (K,), (columns,))
        every = np.arange(K * (1 + columns)).reshape(K, 1 + columns)
        shapes = ((), (columns,)) if self.single else ((K,), (K, columns))
        return ParameterLayout(every[:, 0], every[:, 1:], 1.0, every.size, *shapes)

    def level_names(self, child: Any) -> list[str]:
        """What the intercepts are called."""
        return ["(intercept)"]

    def title(self, child: Any, dispersion: float) -> str:
        """What a distribution of it is called."""
        special = "".join(f", {what} {name}" for what in ("offset", "trials") if (name := getattr(self, what)) is not None)
        return f"{self.words}{special}{self.spread_in_words(dispersion)}"

    def spread_in_words(self, dispersion: float) -> str:
        """What the dispersion of the distribution is: 1/shape, if not said otherwise."""
        return f", shape {1.0 / dispersion:.6g}" if self.dispersed or self.profiled else ""

    def rename(self, names: Mapping[str, str]) -> Any:
        """The same family of a node whose parents have other names."""
        own = {what: names[name] for what in ("offset", "trials") if (name := getattr(self, what)) is not None}
        return replace(self, **own) if own else self  # type: ignore[type-var]

    def estimate(self, child: Variable, *statistics: Any) -> Any:
        """No statistics give an estimate, a likelihood or an evidence."""
        raise design.needs_rows(child)

    log_likelihood = log_evidence = estimate

    def exposure(self, columns: Columns) -> tuple[Array, Array]:
        """Trials and offset of each row; empty where the family has none."""
        roles = self.trials, self.offset
        n, offset = (np.empty(0) if p is None else np.ascontiguousarray(columns[p], dtype=np.float64) for p in roles)
        return n, offset

    def trials_in(self, columns: Columns, n: int) -> Array:
        return np.ones(n) if self.trials is None else np.asarray(columns[self.trials], dtype=np.float64)

    def summary(self, child: Variable, parents: Sequence[Variable], columns: Columns, weights: Array | None) -> Summary:
        """The first pass over some rows, which also refuses values that the family cannot have."""
        y = self.values(child, columns)
        w = None if weights is None else np.asarray(weights, dtype=np.float64)
        weight = float(len(y) if w is None else w.sum())
        n, offset = self.exposure(columns)
        sums: list[Any] = [np.zeros(0)]
        for v in design.terms(parents, self.roles).parents:
            if isinstance(v, Finite):
                sums.append(np.bincount(np.asarray(columns[v.name], dtype=np.intp), w, v.n_states)[1 : v.n_states])
            else:
                sums.append([weighted_sum(columns[v.name], w)])
        if isinstance(child, Finite):
            total, base = np.bincount(y.astype(np.intp, copy=False), w, child.n_states).astype(np.float64), 0.0
        else:
            total, base = np.array([weighted_sum(y, w)]), weighted_sum(self.base(y, n), w)
        offsets, trials = weighted_sum(offset, w) if offset.size else 0.0, weighted_sum(n, w) if n.size else weight
        return Summary(weight, np.concatenate(sums, dtype=np.float64), total, offsets, trials, base)

    def refuse(self, child: Any, parents: Sequence[Variable], s: Summary) -> None:
        """Refuse data without an estimate, as far as its sums show."""
        if not s.weight > 0:
            raise FitError(f"{child.name!r} cannot be fitted: there are no rows")

    def measure(
        self,
        at: Regressors,
        theta: Any,
        columns: Columns,
        weights: Array | None,
        *,
        sums: Callable[..., Any] | None = None,
        complete: bool = True,
        **options: Any,
    ) -> Any:
        """What one pass over some rows says at θ, a part of their design held at a time: its `sums`, if no others are asked for.
        Of rows that may not be `complete`, missing numbers of parents are refused."""
        y, total = self.values(at.child, columns), None
        w = np.ones(len(y)) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        size = max(1, design.CELLS // (1 + len(at.centre) + 4 * getattr(at.child, "n_states", 0)))
        for start in range(0, max(1, len(y)), size):
            part = slice(start, start + size)
            own = {name: column[part] for name, column in columns.items()}
            X = design.fill_design(at.parents, own, at.centre, len(y[part]), at.child.name, complete=complete)
            here = (sums or self.sums)(X, y[part], w[part], theta, own, **options)
            total = here if total is None else add_up(total, here)
        return total

    def sums(
        self,
        X: Array,
        y: npt.NDArray[Any],
        w: Array,
        theta: Array,
        columns: Columns,
        *,
        dispersion: float = 1.0,
        expected: bool = False,
    ) -> Sums:
        """What rows with the design X say at θ, with the curvature that they have or are expected to have."""
        if self.response is None or len(theta) > len(X):
            return self.sums_of_states(X, y, w, theta)
        from suffice.numerics.kernels.regressions.regression import regression_sums

        q, (n, offset) = len(theta), self.exposure(columns)
        gradient, hessian, totals = np.zeros(q), np.zeros((q, q)), np.zeros(3)
        rows = map(design.read_only, (y.astype(np.float64, copy=False), n, offset, w, theta))
        regression_sums(X, *rows, self.response, 1.0 / dispersion, expected, gradient, hessian, totals)
        return Sums(float(totals[0]), gradient, hessian, float(totals[1]), float(totals[2]))

    def penalty(self, at: Regressors) -> Array:
        """Λ of −½ θᵀΛθ, what the ridge adds to the objective."""
        layout = self.layout(at.child, len(at.centre))
        at_slopes, whole = layout.slopes, np.zeros((layout.size, layout.size))
        if self.ridge:
            own = self.contrasts(at.child)[:, :, None, None] * design.shrunk(at.parents)[1:, 1:]
            whole[at_slopes[:, None, :, None], at_slopes[None, :, None, :]] = self.ridge * own
        return whole

    def contrasts(self, child: Any) -> Array:
        """E of the ridge ½ λ tr(E b P bᵀ), by which the effects of several predictors are taken together."""
        return np.eye(1)

    def curve(self, mean: float, trials: float) -> float:
        """How ln p of a row curves by η at most, or about the mean of the child."""
        return 0.25 * max(trials, 1.0)

    def refuse_exact(self, at: Regressors, theta: Array, s: Sums) -> None:
        """Refuse a fit that leaves nothing but rounding of the child, so that there is no dispersion."""
        left, H = np.sqrt(s.pearson / s.weight), s.hessian / s.hessian[0, 0]
        spread = H[1:, 1:] - np.outer(H[1:, 0], H[0, 1:])  # that of the predictor, in units of the deviations that are left
        explained = np.sqrt(max(theta[1:] @ spread @ theta[1:], 0.0) * s.hessian[0, 0] / s.weight)
        if left > 1e-6 * explained + 16.0 * np.finfo(float).eps * self.level(theta):
            return
        by = listing([p.name for p in at.parents])
        why = f"in the data it is a function of {by}" if explained > left else "its values are all equal"
        out = "give more rows, or leave a parent out" if at.parents else "give more rows"
        raise FitError(f"{at.child.name!r} cannot be fitted: {why}, and its dispersion would be 0; {out}")

    def level(self, theta: Array) -> float:
        """The size of the mean, in units of the deviation that `pearson` sums the squares of."""
        return 1.0

    def scale(self, s: Sums, deviance: float) -> float:
        """The dispersion of largest likelihood: what `log_prob` takes."""
        return 1.0

    def total(self, s: Sums, summary: Summary, dispersion: float) -> float:
        """Σ w ln p(y) from the sums."""
        return float(s.log_likelihood + summary.base)

    def base(self, y: Array, n: Array) -> Array:
        """ln p(y) at the η that fits a row alone: without what a dispersion adds, where there is one."""
        return np.zeros(len(y))

    def finish(
        self, at: Regressors, parents: Sequence[Variable], found: Maximum, summary: Summary, dispersion: float = 1.0
    ) -> Any:
        """The CPD at θ, and what there is to know about the fit."""
        theta, s, spread, df = found.theta, found.sums, 1.0, np.inf
        deviance = max(-2.0 * s.log_likelihood, 0.0)
        if self.dispersed:
            self.refuse_exact(at, theta, s)
            dispersion, free = self.scale(s, deviance), summary.weight - len(theta)
            spread, df = (s.pearson / free, free) if free > 0 else (np.nan, np.nan)
        if np.isnan(spread):
            note(
                f"{at.child.name!r}: the rows, or the sum of their weights ({summary.weight:g}), are no more than its "
                f"{len(theta)} coefficients, so that they have no standard errors"
            )
        layout = self.layout(at.child, len(at.centre))
        fitted = Fitted(
            log_likelihood=self.total(s, summary, dispersion),
            deviance=deviance,
            pearson=s.pearson,
            dispersion=spread,
            weight=summary.weight,
            covariance=layout.shift(layout.shift(found.covariance, -at.centre).T, -at.centre) * spread,
            iterations=found.iterations,
            df=df,
        )
        return self.cpd(at.child, tuple(parents), layout.shift(theta, -at.centre), dispersion, centre=at.centre, fitted=fitted)

    def cpd(self, child: Any, parents: tuple[Variable, ...], theta: Array, dispersion: float = 1.0, **rest: Any) -> RegressionCpd:
        """The CPD of these parameters; the rest are its `centre` and what is `fitted`."""
        layout = self.layout(child, len(design.terms(parents, self.roles).names))
        levels, slopes = theta[layout.levels].reshape(layout.intercept), theta[layout.slopes].reshape(layout.coefficients)
        return RegressionCpd(child, parents, self, levels, slopes, dispersion, **rest)

    def log_probs_at(self, levels: Any, eta: Array) -> Array:
        """The same, where the intercepts keep digits that η may have lost."""
        return self.log_probs(eta)


class OfStates(Glm):
    """What the regressions of finite children have in common; without numbers as parents they are tables."""

    kind: ClassVar[type] = Finite
    nodes: ClassVar[str] = "finite nodes of two states or more"
    closes: ClassVar[bool] = True
    lost: ClassVar[str]

    values = staticmethod(design.codes_of)  # type: ignore[assignment]

    def refuse(self, child: Finite, parents: Sequence[Variable], s: Summary) -> None:
        """Refuse data without rows, or without rows of a state."""
        super().refuse(child, parents, s)
        if np.any(s.child <= 0):
            state = child.states[int(np.argmin(s.child))]
            raise FitError(f"no row has {child.name}={state}, and {self.lost}")

    def first_levels(self, s: Summary) -> Array:
        """The log-odds of the states against the first."""
        return np.asarray(np.log(s.child[1:]) - np.log(s.child[0]))

    def closed_form(self, cpd: Any) -> Any:
        return cpd.table()


@dataclass(frozen=True)
class OnePredictor(Glm):
    """The common part of regressions with one linear predictor; of numbers, if a family does not say otherwise.

    A response has a number by which the kernel knows its log-likelihood, a link, a mean, a variance, and so on.
    """

    ridge: float = 0.0
    offset: str | None = None

    single: ClassVar[bool] = True

    if TYPE_CHECKING:
        # What a response says of rows at η: E[y] (of one trial), the variance of y (of all trials), and its distribution.
        def link(self, mean: float) -> float: ...
        def mean(self, eta: Array) -> Array: ...
        def variance(self, eta: Array, dispersion: float, n: Array) -> Array: ...
        def log_prob(self, y: Array, eta: Array, dispersion: float, n: Array) -> Array: ...
        def in_scipy(self, stats: Any, eta: Array, dispersion: float, n: Array) -> Any: ...

    def values(self, child: Variable, columns: Columns) -> Array:
        y = np.ascontiguousarray(columns[child.name], dtype=np.float64)
        if not np.isfinite(y).all():
            raise DataError(f"{child.name!r} has missing cells, and its regression needs all of them")
        return y

    def first_levels(self, s: Summary) -> Array:
        return np.array([self.link(float(s.child[-1]) / s.trials) - s.offset / s.weight])


def weighted_sum(x: Array, w: Array | None) -> float:
    """Σ w x. Not by BLAS, whose own threads get into the way of those of a fold."""
    return float(x.sum() if w is None else np.einsum("i,i", w, x))
