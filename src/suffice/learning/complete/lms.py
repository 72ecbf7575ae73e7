"""LMS: a regression learned row by row, by stochastic gradient steps θ ← θ + ρ (y − μ) x: the online alternative to IRLS.

Each row is seen once a pass and forgotten; what is kept is θ, an average of its way (Polyak & Juditsky 1992, SIAM Journal on
Control and Optimization 30, p. 838), and the number of rows seen, which lowers the rate ρ. The average of one pass is about half
a standard error away from the estimate of largest likelihood, which IRLS finds to all digits: enough for prediction, and a run
can go on with new rows as they come. Columns are centred and scaled by a first glance at some rows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.iteration import Iteration, Run
from suffice.basis.variables import Count, Finite, Real, Variable
from suffice.engines.data import Data
from suffice.engines.engine import Block
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, listing, nearest
from suffice.families.design import Pass, Regressors, fill_design, read_only, terms
from suffice.families.protocol.family import Array, Cpd
from suffice.families.regressions.glm import Glm
from suffice.families.regressions.linear_moments import Linear
from suffice.families.regressions.logistic import Logistic
from suffice.families.regressions.responses import PoissonLog
from suffice.learning.complete.irls import solve_positive

if TYPE_CHECKING:
    from suffice.basis.argument_types import FitsNodes, RowsLike

SOFTMAX = 7

GLANCE = 1000
"""First rows, which give the centre and the scale of the columns."""


@dataclass(frozen=True, eq=False)
class LmsState:
    """Where a run has come to: θ and its average in scaled columns, the columns' centre and scale, the rows seen, the rate."""

    theta: Array
    average: Array
    centre: Array
    scale: Array
    seen: float
    rate: float


@dataclass(frozen=True, eq=False)
class LmsRun(Run[Any]):
    """What `lms` returns: the regression, a record per pass, whether it came near to its end, and where to go on from.

    >>> import suffice as sf
    >>> rows = {"x": [0.0, 1.0, 2.0, 3.0] * 50, "y": [1.0, 3.0, 5.0, 7.5] * 50}
    >>> run = sf.regressions.lms("y", rows, parents=["x"], family=sf.regressions.Linear(), passes=2)
    >>> run.n_iterations, run.model.terms
    (2, ('x',))
    """

    state: LmsState


@one_blas_thread
def lms(
    child: str,
    data: RowsLike,
    *,
    parents: Sequence[str],
    family: FitsNodes | None = None,
    passes: int = 1,
    rate: float | None = None,
    seed: int | None = 0,
    start: LmsRun | Cpd | None = None,
) -> LmsRun:
    """The regression of `child` on `parents`, learned row by row.

    `family` is `Logistic()`, `Linear()`, `PoissonLog()` or `BinomialLogit(trials=...)`; if it is not given, that of the column:
    `Logistic()` of states, `Linear()` of numbers, `PoissonLog()` of declared counts. Rows are taken in random order, block
    by block; `seed=None` takes them as they come. `rate` is the first step's, of columns of variance 1; without it, one that
    suits the family. `start` is an earlier run to go on from, as if its rows and these had been one table, or a regression.

    The model has no standard errors. `converged` says that it is within a standard error of the estimate of largest likelihood
    of these rows, on average over the parameters, by the step that IRLS would take next. The trace has the log-likelihood of
    these rows after each pass.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=20_000)
    >>> y = np.where(rng.random(20_000) < 1 / (1 + np.exp(-x)), "yes", "no")
    >>> run = lms("y", {"x": x, "y": y}, parents=["x"])
    >>> run.model.coefficients.round(1), run.converged
    (array([[1.]]), True)
    """
    given = scan(data)
    kinds: dict[type, Any] = {Real: Linear(), Count: PoissonLog()}
    column = given.select([child]).schema[child] if family is None and child in given.columns else None
    own: Any = kinds.get(type(column), Logistic()) if family is None else family
    _check(own, passes, rate, seed)
    if not given.engine.ordered:
        graph = "; ".join(f"{p} -> {child}" for p in parents) or child
        raise DataError(
            "lms takes rows one after the other, and these have no order to be taken in: read them from files or into memory, or "
            f"fit({graph!r}, data, families={{{child!r}: {own!r}}}), which learns the same regression in a few passes"
        )
    numbers = parents if own.kind is Finite else [*parents, child]
    rows = _choose_columns(given.with_numbers(numbers), child, parents)
    variables = [rows.schema[p] for p in parents]
    own.check(rows.schema[child], variables)
    rows.require_complete(rows.columns)
    state: Any
    state, known = _start_of(start, own, rows.schema[child], variables, rate)
    walk = LmsWalk(own, rows.schema[child], terms(variables, own.roles).parents, rate, known)
    trace: list[Iteration] = []
    began = time.perf_counter()
    for i in range(passes):
        state = rows.walk(walk, state, seed=None if seed is None else [seed, i])
        if state is None:
            raise DataError("there are no rows")
        if not np.isfinite(state.average).all():
            raise FitError(f"the steps of lms for {child!r} went beyond the doubles: give a smaller rate than {state.rate:g}")
        model, away, log_likelihood = _model(own, walk, variables, rows, state)
        trace.append(Iteration(log_likelihood, log_likelihood, time.perf_counter() - began))
    return LmsRun(model, tuple(trace), away <= 1.0, state)


def _check(family: Any, passes: Any, rate: Any, seed: Any) -> None:
    if not (isinstance(family, Glm) and family.by_lms):
        known = "Linear(), Logistic(), BinomialLogit(trials=...) and PoissonLog()"
        raise FitError(f"lms learns {known}, not {family!r}; fit learns the others")
    if family.ridge:
        raise FitError("lms has no ridge: leave it out, or fit with it")
    if isinstance(passes, bool) or not isinstance(passes, (int, np.integer)) or passes < 1:
        raise FitError(f"passes is a whole number from 1 up, not {passes!r}")
    if rate is not None and not (isinstance(rate, (int, float)) and 0 < rate < np.inf):
        raise FitError(f"rate is a number above 0, not {rate!r}")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0):
        raise FitError(f"seed is a whole number from 0 up, or None for the rows as they come, not {seed!r}")


def _choose_columns(data: Data, child: str, parents: Sequence[str]) -> Data:
    """The rows with the columns that are asked for."""
    if isinstance(parents, str):
        raise FitError(f"parents is a list of names, not {parents!r}: write [{parents!r}]")
    names = [*parents, child]
    for name in names:
        if name not in data.columns:
            raise DataError(f"the data have no column {name!r}{nearest(name, data.columns)}")
    if len(set(names)) < len(names):
        raise FitError(f"{listing(names)}: the child and its parents must be different columns")
    return data.select(names)


def _start_of(
    start: Any, family: Any, child: Variable, parents: list[Variable], rate: float | None
) -> tuple[LmsState | None, Any]:
    """The state of a run to go on from, or a regression; where there is neither, the first rows will tell."""
    if start is None:
        return None, None
    cpd = start.model if isinstance(start, LmsRun) else start
    if not (isinstance(cpd, Cpd) and cpd.is_regression):
        raise FitError(f"start is a run of lms or a regression, not {cpd!r}")
    if cpd.child != child or set(cpd.parent_variables) != set(parents) or type(cpd.family) is not type(family):
        what = f"{type(cpd.family).__name__} of {cpd.child!r} on {listing(cpd.parents)}"
        raise FitError(f"start is a {what}, which is not what is to be learned")
    if not isinstance(start, LmsRun):
        return None, cpd.reorder([p.name for p in parents])
    return start.state if rate is None else replace(start.state, rate=float(rate)), None


@dataclass(frozen=True, eq=False)
class LmsWalk:
    """The steps over the rows of a block, from the θ of the rows before it. The first rows give centre, scale and rate."""

    family: Any
    child: Variable
    parents: tuple[Variable, ...]
    rate: float | None = None
    start: Any = None

    def __call__(self, state: LmsState | None, block: Block) -> LmsState:
        from suffice.numerics.kernels.regressions.regression import lms_rows

        s = self._first(block) if state is None else state
        theta, average, columns = s.theta.copy(), s.average.copy(), block.columns
        X = fill_design(self.parents, columns, s.centre, block.n_rows, self.child.name) / _with_one(s.scale)
        rows = self.family.values(self.child, columns), *self.family.exposure(columns), block.weights
        own = (read_only(np.ascontiguousarray(a, dtype=np.float64)) for a in rows)
        response = SOFTMAX if len(theta) > 1 else self.family.response
        seen = lms_rows(np.ascontiguousarray(X.T), *own, theta, average, response, s.rate, 10.0 * theta.shape[1], s.seen)
        return replace(s, theta=theta, average=average, seen=seen)

    def _first(self, block: Block) -> LmsState:
        """Where a run begins: without effects, or at a regression that is known. The first rows give centre and scale of the
        numbers, and a rate: 0.3 of the step that would take the first row's residual to 0."""
        some, numbers = block.take(slice(GLANCE)), terms(self.parents).numbers
        X = fill_design(self.parents, some.columns, np.zeros(len(numbers)), some.n_rows, self.child.name)[1:]
        centre, spread = np.where(numbers, X.mean(axis=1), 0.0), np.where(numbers, X.std(axis=1), 1.0)
        scale = np.where(spread > 0, spread, 1.0)
        y = self.family.values(self.child, some.columns)
        trials = float(np.mean(some.columns[self.family.trials])) if self.family.trials else 1.0
        curve = self.family.curve(float(y.mean()), trials)
        rate = 0.3 / (curve * (1.0 + float((((X - centre[:, None]) / scale[:, None]) ** 2).mean(axis=1).sum())))
        theta, seen = np.zeros((len(self.family.layout(self.child, len(centre)).levels), 1 + len(centre))), 0.0
        if self.start is not None:
            layout = self.start.layout
            theta = layout.predictors(layout.shift(self.start.theta, centre)) * _with_one(scale).T
            seen = self.start.fitted.weight if self.start.fitted is not None else 0.0
        return LmsState(theta, theta, centre, scale, seen, rate if self.rate is None else float(self.rate))


def _with_one(scale: Array) -> Array:
    return np.concatenate([[1.0], scale])[:, None]


def _model(family: Any, walk: LmsWalk, parents: list[Variable], rows: Data, state: LmsState) -> tuple[Any, float, float]:
    """The regression at the average, its distance in standard errors from the best of these rows, and its log-likelihood."""
    at = Regressors(walk.child, walk.parents, state.centre)
    theta = (state.average / _with_one(state.scale).T).reshape(-1)
    summary = rows.fold(Pass(family.summary, (at.child, tuple(parents))))
    s = rows.fold(Pass(family.measure, (at, theta)))
    spread = s.pearson / s.weight if family.dispersed else 1.0
    away = np.inf
    if np.isfinite(s.log_likelihood) and spread > 0:
        step, _ = solve_positive(s.hessian, s.gradient)
        away = float(np.sqrt(max(float(s.gradient @ step), 0.0) / (spread * theta.size)))
    own = family.layout(at.child, len(at.centre)).shift(theta, -at.centre)
    return family.cpd(at.child, tuple(parents), own, spread, centre=at.centre), away, family.total(s, summary, spread)
