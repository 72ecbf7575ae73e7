"""LMS: a regression learned row by row, by stochastic gradient steps θ ← θ + ρ (y − μ) x: the online alternative to IRLS.

Each row is seen once a pass and forgotten; what is kept is θ, an average of its way (Polyak & Juditsky 1992, SIAM Journal on
Control and Optimization 30, p. 838), and the number of rows seen, which lowers the rate ρ. The average of one pass is about half
a standard error away from the estimate of largest likelihood, which IRLS finds to all digits: enough for prediction, and a run
can go on with new rows as they come. Columns are centred and scaled by a first glance at some rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.blas import one_blas_thread
from suffice.engines.data import Data
from suffice.engines.engine import Block as Batch
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, listed, nearest
from suffice.families.design import are_numbers, filled, fixed
from suffice.families.family import Array
from suffice.families.glm import Glm, Regressors, Sums
from suffice.families.logistic import Logistic
from suffice.families.logistic_cpd import LogisticCpd, finite_child
from suffice.families.regression_cpd import RegressionCpd
from suffice.families.responses import BinomialLogit, Linear, PoissonLog
from suffice.iteration import Iteration, Run
from suffice.learning.irls import sampled, solved
from suffice.variables import Variable

FAMILIES = (Linear, Logistic, BinomialLogit, PoissonLog)
SOFTMAX = 7

GLANCE = 1000
"""Rows that give the centre and the scale of the columns."""

BLOCK, MIXED = 1024, 16
"""Where rows are taken at random: blocks of so many rows, so many of them at a time, whose rows are shuffled together."""


@dataclass(frozen=True, eq=False)
class State:
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
    >>> run = sf.lms("y", rows, parents=["x"], family=sf.Linear(), passes=2)
    >>> run.n_iterations, run.model.terms
    (2, ('x',))
    """

    state: State


@one_blas_thread
def lms(
    child: str,
    data: Any,
    *,
    parents: Sequence[str],
    family: Any = None,
    passes: int = 1,
    rate: float | None = None,
    seed: int | None = 0,
    start: Any = None,
) -> LmsRun:
    """The regression of `child` on `parents`, learned row by row.

    `family` is `Logistic()`, `Linear()`, `PoissonLog()` or `BinomialLogit(trials=...)`. Rows are taken in random order, block
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
    own = Logistic() if family is None else family
    _check(own, passes, rate, seed)
    rows = _chosen(scan(data), child, parents)
    variables = [rows.schema[p] for p in parents]
    own.check(rows.schema[child], variables)
    rows.require_complete(rows.columns)
    at, state = _started(own, rows, rows.schema[child], variables, rate, seed, start)
    random = None if seed is None else np.random.default_rng(seed)
    trace: list[Iteration] = []
    began = time.perf_counter()
    for _ in range(passes):
        state = _pass(own, at, rows, state, random)
        model, away, log_likelihood = _model(own, at, variables, rows, state)
        trace.append(Iteration(log_likelihood, log_likelihood, time.perf_counter() - began))
    return LmsRun(model, tuple(trace), away <= 1.0, state)


def _check(family: Any, passes: Any, rate: Any, seed: Any) -> None:
    if not isinstance(family, FAMILIES):
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


def _chosen(data: Data, child: str, parents: Sequence[str]) -> Data:
    """The rows with the columns that are asked for."""
    if isinstance(parents, str):
        raise FitError(f"parents is a list of names, not {parents!r}: write [{parents!r}]")
    names = [*parents, child]
    for name in names:
        if name not in data.columns:
            raise DataError(f"the data have no column {name!r}{nearest(name, data.columns)}")
    if len(set(names)) < len(names):
        raise FitError(f"{listed(names)}: the child and its parents must be different columns")
    return data.take(names)


def _started(
    family: Any, rows: Data, child: Variable, parents: list[Variable], rate: float | None, seed: int | None, start: Any
) -> tuple[Regressors, State]:
    """Where a run begins, and the columns from the centre that it keeps."""
    own = family.regressors(parents)
    if isinstance(start, LmsRun):
        _check_start(start.model, family, child, parents)
        s = start.state
        again = State(s.theta.copy(), s.average.copy(), s.centre, s.scale, s.seen, s.rate if rate is None else float(rate))
        return Regressors(child, own, again.centre), again
    seen = 0.0
    centre, scale, first = _glance(family, rows, child, own, seed)
    states = finite_child(child).n_states - 1 if isinstance(family, Logistic) else 1
    theta = np.zeros((states, 1 + len(centre)))
    if start is not None:
        _check_start(start, family, child, parents)
        cpd = start.arranged([p.name for p in parents])
        b = np.atleast_2d(cpd.coefficients)
        theta = np.concatenate([(np.ravel(cpd.intercept) + b @ centre)[:, None], b * scale], axis=1)
        seen = cpd.fitted.weight if cpd.fitted is not None else 0.0
    chosen = first if rate is None else float(rate)
    return Regressors(child, own, centre), State(theta, theta.copy(), centre, scale, seen, chosen)


def _check_start(cpd: Any, family: Any, child: Variable, parents: list[Variable]) -> None:
    if not isinstance(cpd, (LogisticCpd, RegressionCpd)):
        raise FitError(f"start is a run of lms or a regression, not {cpd!r}")
    if cpd.child != child or set(cpd.parent_variables) != set(parents) or type(cpd.family) is not type(family):
        what = f"{type(cpd.family).__name__} of {cpd.child!r} on {listed(cpd.parents)}"
        raise FitError(f"start is a {what}, which is not what is to be learned")


def _glance(family: Any, rows: Data, child: Variable, own: tuple[Variable, ...], seed: int | None) -> tuple[Array, Array, float]:
    """Centre and scale of the numbers, and a rate: 0.3 of the step that would take the first row's residual to 0."""
    if rows.n_rows == 0:
        raise DataError("there are no rows")
    some = next(rows.batches(GLANCE)) if seed is None else sampled(rows, GLANCE)
    columns, numbers = some.columns, are_numbers(own)
    X = filled(own, columns, np.zeros(len(numbers)), some.n_rows, child.name)[1:]
    centre = np.where(numbers, X.mean(axis=1), 0.0)
    spread = np.where(numbers, X.std(axis=1), 1.0)
    scale = np.where(spread > 0, spread, 1.0)
    y = np.zeros(1) if isinstance(family, Logistic) else family.values(child, columns)
    trials = float(np.mean(columns[family.trials])) if family.trials else 1.0
    curve = {Linear: 1.0, PoissonLog: max(float(y.mean()), 0.1)}.get(type(family), 0.25 * max(trials, 1.0))
    return centre, scale, 0.3 / (curve * (1.0 + float((((X - centre[:, None]) / scale[:, None]) ** 2).mean(axis=1).sum())))


def _pass(family: Any, at: Regressors, rows: Data, state: State, random: np.random.Generator | None) -> State:
    """θ and its average after all rows."""
    from suffice.kernels.lms import lms_rows

    theta, average, seen = state.theta.copy(), state.average.copy(), state.seen
    response = SOFTMAX if len(theta) > 1 else 1 if isinstance(family, Logistic) else family.response
    half, none = 10.0 * theta.shape[1], np.empty(0)
    for columns, weight in _parts(rows, random):
        n = len(columns[at.child.name])
        X = np.ascontiguousarray((filled(at.parents, columns, at.centre, n, at.child.name) / _with_one(state.scale)).T)
        y = columns[at.child.name] if isinstance(family, Logistic) else family.values(at.child, columns)
        trials, offset = family.exposed(columns) if isinstance(family, Glm) else (none, none)
        w = np.ones(n) if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
        own_rows = (fixed(np.ascontiguousarray(a, dtype=np.float64)) for a in (y, trials, offset, w))
        seen = lms_rows(X, *own_rows, theta, average, response, state.rate, half, seen)
    if not np.isfinite(average).all():
        raise FitError(f"the steps of lms for {at.child.name!r} went beyond the doubles: give a smaller rate than {state.rate:g}")
    return State(theta, average, state.centre, state.scale, seen, state.rate)


def _with_one(scale: Array) -> Array:
    return np.concatenate([[1.0], scale])[:, None]


def _parts(
    rows: Data, random: np.random.Generator | None
) -> Iterator[tuple[dict[str, npt.NDArray[Any]], npt.NDArray[Any] | None]]:
    """The rows in their order; or some blocks of them at a time, shuffled."""
    if random is None:
        yield from ((dict(b.columns), b.weight) for b in rows.batches())
        return
    blocks = random.permutation(-(-rows.n_rows // BLOCK))
    for start in range(0, len(blocks), MIXED):
        some: list[Batch] = list(rows.batches(BLOCK, order=blocks[start : start + MIXED]))
        order = random.permutation(sum(b.n_rows for b in some))
        columns = {n: np.concatenate([b.columns[n] for b in some])[order] for n in rows.columns}
        weights = [b.weight for b in some if b.weight is not None]
        yield columns, np.concatenate(weights)[order] if weights else None


def _model(family: Any, at: Regressors, parents: list[Variable], rows: Data, state: State) -> tuple[Any, float, float]:
    """The regression at the average, its distance in standard errors from the best of these rows, and its log-likelihood."""
    theta = state.average / _with_one(state.scale).T
    b = theta[:, 1:]
    intercept = theta[:, 0] - b @ at.centre
    summary = rows.fold(lambda batch: family.summary(at.child, parents, batch.columns, batch.weight))
    s: Sums = rows.fold(lambda batch: family.measure(at, theta.reshape(-1), batch.columns, batch.weight))
    spread = s.pearson / s.weight if isinstance(family, Linear) else 1.0
    away = np.inf
    if np.isfinite(s.log_likelihood) and spread > 0:
        step, _ = solved(s.hessian, s.gradient)
        away = float(np.sqrt(max(float(s.gradient @ step), 0.0) / (spread * theta.size)))
    if isinstance(family, Logistic):
        return LogisticCpd(at.child, tuple(parents), intercept, b, at.centre), away, s.log_likelihood  # type: ignore[arg-type]
    cpd = RegressionCpd(at.child, tuple(parents), family, float(intercept[0]), b[0], spread, at.centre)
    return cpd, away, family.total(s, summary, spread)
