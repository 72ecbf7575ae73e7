"""Gradient ascent on the log-likelihood of incomplete data: the other way to EM's optimum.

One E-step gives the objective and its exact gradient (see `suffice.learning.incomplete.coordinates`). Where EM is slow, because
much information is missing, quasi-Newton steps need far fewer of them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Unpack, overload

import numpy as np

from suffice.basis.arrays import Array, Bools
from suffice.basis.blas import one_blas_thread
from suffice.basis.iteration import Progress, Run
from suffice.basis.limits import Limits, options_of
from suffice.errors import FitError, ModelError, note, quantity, whole
from suffice.errors.remedies import argument
from suffice.families.categorical import Table
from suffice.families.charts import needing_coordinates
from suffice.families.named_families import families_of
from suffice.families.protocol.family import Estimate
from suffice.learning.chains.chain_problem import chain_problem_of
from suffice.learning.chains.chain_task import refuse_first
from suffice.learning.em import checked_numbers
from suffice.learning.incomplete.climb import Point, Way, best_first, climb_from_starts, evaluate
from suffice.learning.incomplete.coordinates import Atlas
from suffice.learning.incomplete.objective import Collapsed
from suffice.learning.incomplete.problem import ParameterProblem, problem_of
from suffice.learning.incomplete.task import is_of_sequences
from suffice.models.networks import BayesNet
from suffice.models.parts.parameter_covariance import conventions_in_words
from suffice.statistics.counts import describe

if TYPE_CHECKING:
    from suffice.basis.argument_types import HiddenLike, PriorLike, RowsLike
    from suffice.engines.sequences.sequences import Sequences
    from suffice.graphs.directed import DagLike
    from suffice.graphs.template import TemplateLike
    from suffice.incomplete.first_slices import First
    from suffice.models.chain import Chain


PATIENCE = 3
"""So many iterations in a row must gain no more than `tol`: a quasi-Newton step may be short without being the last."""

FARTHEST = 30.0
"""Log-odds stay within this many units: e⁻³⁰ is no probability that data could tell from 0, and no row becomes impossible."""

FLOOR = 1e-10
"""The smallest probability that a projection gives: the gradient N / θ does not exist at 0."""


class AscentMethod(Protocol):
    """A way up: it moves the parameters of an ascent, which keeps the record, until that has had enough."""

    def climb(self, ascent: GradientAscent) -> None: ...


@dataclass(frozen=True)
class LBFGS:
    """Quasi-Newton steps in log-odds, intercepts, coefficients and log variances; `memory` past steps make the curvature.

    Every coordinate is scaled by the information that complete rows would have, so that the first steps are about those of EM.
    Byrd, Lu, Nocedal & Zhu 1995, SIAM Journal on Scientific Computing 16, p. 1190; scipy's implementation.

    >>> LBFGS()
    LBFGS(memory=10)
    """

    memory: int = 10

    def __post_init__(self) -> None:
        whole(self.memory, "the memory of LBFGS", 1)

    def climb(self, ascent: GradientAscent) -> None:
        """Climb until all is quiet, then again from there with the scales of that place, until that gains nothing.

        A cell that a bold step has pushed to the boundary, where its log-odds are flat, is lifted off it in between.
        """
        before = -np.inf
        while ascent.point.objective - before > max(ascent.tol, 1e-12 * abs(ascent.point.objective)):
            before = ascent.point.objective
            for move in (self._climb, _refuse_collapse, lift):
                with suppress(_Quiet):
                    move(ascent)
        ascent.settle()

    def _climb(self, ascent: GradientAscent) -> None:
        from scipy.optimize import minimize

        problem, here = ascent.problem, ascent.point
        atlas = Atlas.around(problem, here.parameters, here.statistic, fixed=problem.still)
        if not atlas.size:
            return
        held = {n: cpd for n, cpd in problem.cpds(here.parameters).items() if n in problem.still}
        origin = atlas.vector(here.parameters)
        curvature = atlas.curvature(here.parameters, here.statistic)
        scale = np.sqrt(np.maximum(curvature, 0.05 / atlas.unit**2))
        seen: dict[bytes, Point] = {}

        def loss(z: Array) -> tuple[float, Array]:
            ascent.check()
            cpds = atlas.cpds(origin + z / scale)
            point = seen[z.tobytes()] = evaluate(problem, problem.parameters({**held, **cpds}))
            return -point.objective, -atlas.scores(cpds, point.statistic) / scale

        def accept(z: Array) -> None:
            point = seen.get(z.tobytes())
            seen.clear()
            if point is not None:
                ascent.step(point)

        most = ascent.max_iter
        options = {"maxcor": self.memory, "maxiter": most, "maxfun": 20 * most + 20, "ftol": 0.0, "gtol": 0.0}
        low, high = np.empty(len(origin)), np.empty(len(origin))  # how far each coordinate may go
        for name, place in atlas.places.items():
            low[place], high[place] = atlas.charts[name].limits(origin[place], FARTHEST)
        ends = zip(low * scale, high * scale, strict=True)
        bounds = [(float(a) if np.isfinite(a) else None, float(b) if np.isfinite(b) else None) for a, b in ends]
        minimize(loss, np.zeros(len(origin)), jac=True, method="L-BFGS-B", bounds=bounds, callback=accept, options=options)


@dataclass(frozen=True)
class Projected:
    """The plain form of the textbooks: θ + step · N/θ, projected back to rows that sum to 1. Tables only; slow, for study.

    A step is halved until the objective does not fall, and doubled after each that was good; None begins with one hundredth
    of a row's share.

    >>> Projected(step=1e-4)
    Projected(step=0.0001)
    """

    step: float | None = None

    def __post_init__(self) -> None:
        if self.step is not None and not (isinstance(self.step, (int, float)) and 0.0 < self.step < np.inf):
            raise FitError(f"the step of Projected is a positive number, not {self.step!r}")

    def climb(self, ascent: GradientAscent) -> None:
        with suppress(_Quiet):
            self._climb(ascent)
        ascent.settle()

    def _climb(self, ascent: GradientAscent) -> None:
        problem = ascent.problem
        atlas = Atlas.around(problem, ascent.point.parameters, ascent.point.statistic, fixed=problem.still)
        for name, chart in atlas.charts.items():
            if not chart.on_simplex:
                raise ModelError(f"Projected() moves tables only, and {name!r} is Gaussian: use method=LBFGS()")
        step = self.step or 0.01 / problem.weight
        while True:
            tables, slopes = problem.cpds(ascent.point.parameters), atlas.weigh(ascent.point.statistic)
            while step * problem.weight > 1e-14:
                ascent.check()
                moved: dict[str, Any] = {}
                for name, N in slopes.items():  # what is 0 stays 0
                    table: Any = tables[name]
                    theta = table.probs.reshape(N.shape)
                    slope = np.divide(N, theta, out=np.zeros_like(N), where=theta > 0.0)
                    rows = project_rows(theta + step * slope, theta > 0.0)
                    moved[name] = Table(table.child, table.parent_variables, rows.reshape(table.probs.shape))
                point = evaluate(problem, problem.parameters({**tables, **atlas.with_copies(moved)}))
                if point.objective >= ascent.point.objective:
                    break
                step /= 2.0
            else:
                return
            step *= 2.0
            ascent.step(point)


class _Quiet(Exception):
    """The last iterations gained nothing."""


class _Enough(Exception):
    """The ascent has had all its iterations."""


@dataclass(eq=False)
class GradientAscent(Way):
    """A way by gradients, which knows when it ends."""

    progress: Progress[Any] = field(kw_only=True)
    tol: float = field(kw_only=True)
    max_iter: int = field(kw_only=True)
    words: str = ""
    _quiet: int = 0

    def step(self, point: Point) -> None:
        """An iteration came to this point. Raises when there was nothing to gain for a while, and at the last iteration."""
        gain = point.objective - self.point.objective
        if gain >= 0.0:  # what falls by rounding alone is not taken
            self.point = point
        self.record()
        self._quiet = self._quiet + 1 if gain <= self.tol else 0
        if len(self.trace) >= self.max_iter:
            raise _Enough
        if self.tol > 0 and self._quiet >= PATIENCE:
            self._quiet = 0
            raise _Quiet
        self.check()

    def check(self) -> None:
        """Look at the clock, and show where the ascent is."""
        self.progress.check(f"{self.words}iteration {len(self.trace)}, log-likelihood {self.point.log_likelihood:,.3f}")

    def settle(self) -> None:
        """The end: there is nothing more to gain."""
        self.converged = True
        if not self.trace:
            self.record()


class AscentOptions(Limits, total=False):
    """What `gradient` takes besides: the limits of long calls, how it climbs, and how sequences begin."""

    method: AscentMethod | None
    """How it climbs: `LBFGS()`, or for study `Projected()`."""
    first: First | None
    """Of sequences: how they begin, as in `fit`."""


@overload
def gradient(  # type: ignore[overload-overlap]  # sequences have columns, too, as rows do: they come first
    dag: TemplateLike | Chain,
    data: Sequences,
    hidden: HiddenLike = ...,
    prior: PriorLike | None = ...,
    estimate: Estimate | None = ...,
    starts: int | None = ...,
    start: BayesNet | Chain | None = ...,
    seed: int = ...,
    tol: float = ...,
    max_iter: int = ...,
    **options: Unpack[AscentOptions],
) -> Run[Chain]: ...
@overload
def gradient(
    dag: DagLike,
    data: RowsLike,
    hidden: HiddenLike = ...,
    prior: PriorLike | None = ...,
    estimate: Estimate | None = ...,
    starts: int | None = ...,
    start: BayesNet | None = ...,
    seed: int = ...,
    tol: float = ...,
    max_iter: int = ...,
    **options: Unpack[AscentOptions],
) -> Run[BayesNet]: ...
@one_blas_thread
def gradient(
    dag: TemplateLike | Chain,
    data: RowsLike | Sequences,
    hidden: HiddenLike = (),
    prior: PriorLike | None = None,
    estimate: Estimate | None = None,
    starts: int | None = None,
    start: BayesNet | Chain | None = None,
    seed: int = 0,
    tol: float = 1e-6,
    max_iter: int = 500,
    **options: Unpack[AscentOptions],
) -> Run[BayesNet] | Run[Chain]:
    """The network of this graph that incomplete data gives, by gradient ascent on the objective of `em`.

    Arguments are those of `em`, also of templates and sequences (`first`); a network brings its families and ties. `method` is
    `LBFGS()` or, for study, `Projected()`. An iteration may need more than one E-step. After Ctrl-C or `time_limit` seconds the
    best so far is returned, with `converged` False; the other limits are `memory_limit`, `threads` and `progress`.

    >>> run = gradient("x -> y", {"x": ["a", "a", "b", None], "y": ["u", "u", "v", "v"]})
    >>> run.converged, run.model["x"].probs.round(3)
    (True, array([0.5, 0.5]))
    """
    given, budget = options_of("gradient", options, AscentOptions, without=["checkpoint"])
    chosen: AscentMethod = LBFGS() if given["method"] is None else given["method"]
    if isinstance(chosen, type) or not hasattr(chosen, "climb"):
        raise FitError(f"a method of gradient ascent is LBFGS() or Projected(), not {chosen!r}")
    first = given["first"]
    tol, max_iter, seed, starts = checked_numbers(tol, max_iter, seed, starts)
    how: dict[str, Any] = {"hidden": hidden, "prior": prior, "estimate": estimate, "start": start, "threads": budget.threads}
    how |= {"room": budget.room, "families": families_of(dag, None)}
    if is_of_sequences(dag, data):
        problem: ParameterProblem = chain_problem_of(dag, data, first=first, **how)
    else:
        refuse_first(first)
        problem = problem_of(dag, data, shared=None, **how)
    n = starts if starts is not None else 1 if start is not None or not problem.hidden else 10
    watch = budget.watch("gradient ascent")

    def begin(parameters: Any) -> GradientAscent:
        return GradientAscent(problem.scaled, evaluate(problem, parameters), progress=watch, tol=tol, max_iter=max_iter)

    def climb(i: int, ascent: GradientAscent) -> None:
        ascent.words = f"start {i + 1} of {n}, " if n > 1 else ""
        with needing_coordinates("gradient ascent does not move it: use em"), suppress(_Enough):
            chosen.climb(ascent)
        _refuse_collapse(ascent)  # once more: it may have had all its iterations on the way down

    ascents, stopped = climb_from_starts(problem.starting_points(start, n, seed), n, watch, begin, climb)
    if stopped:
        note("gradient ascent was stopped before its end; this is the best so far")
    best = best_first(ascents, n)[0]
    if not best.converged and not stopped:
        steps = quantity(len(best.trace), "iteration")
        note(f"gradient ascent did not converge in {steps}; allow more with {argument('max_iter')}")
    by = f"gradient ascent ({type(chosen).__name__})"
    info = f"fitted from {problem.amount} by {by}: {best.in_words(len(ascents))}"
    if problem.conventions.names:
        best.point = evaluate(problem, problem.to_convention(best.point.parameters))
        info += conventions_in_words(problem.conventions.by_convention, problem.conventions.rotations)
    bn = problem.network(best.point.parameters, best.point.statistic, info)
    return Run(bn, tuple(best.trace), best.converged and not stopped)


def _refuse_collapse(ascent: GradientAscent) -> None:
    """A normal distribution that has shrunk onto a point, where its density has no limit, is no estimate."""
    seen = ascent.problem.statistics(ascent.point.statistic)
    for name, cpd in ascent.problem.cpds(ascent.point.parameters).items():
        if cpd.is_line:
            whole = seen.moments((), [name])
            low = cpd.variance.reshape(-1) * whole.count[0] < 1e-9 * whole.scatter[0, 0, 0]
            if low.any():
                where = describe(int(np.argmax(low)), cpd.finite_parents)
                raise Collapsed(name, where, "its variance is falling to zero")


def lift(ascent: GradientAscent) -> None:
    """Raise the cells near 0 that have too little: where N/θ > N_u the objective rises with θ, though hardly with ln θ."""
    problem, here = ascent.problem, ascent.point
    atlas = Atlas.around(problem, here.parameters, here.statistic, fixed=problem.still)
    weighed, cpds = atlas.weigh(here.statistic), problem.cpds(here.parameters)
    tables = {n: c.cpd for n, c in atlas.charts.items() if c.on_simplex}
    for share in 0.1 * 0.25 ** np.arange(8):
        higher = dict[str, Any](tables)
        for n, table in tables.items():  # a share of a row's weight in each cell that has less, and should have more than it has
            N, theta = weighed[n], table.probs.reshape(weighed[n].shape)
            totals = N.sum(axis=1, keepdims=True)
            least = share / (1.0 + np.abs(totals))
            low = atlas.charts[n].free & (theta < least) & (1.01 * theta * totals < N)
            if low.any():
                rows = np.where(low, least, theta)
                rows = (rows / rows.sum(axis=1, keepdims=True)).reshape(table.probs.shape)
                higher[n] = Table(table.child, table.parent_variables, rows)
        if all(higher[n] is tables[n] for n in tables):
            return
        point = evaluate(problem, problem.parameters({**cpds, **atlas.with_copies(higher)}))
        if point.objective > here.objective + ascent.tol:
            ascent.step(point)
            return


def project_rows(rows: Array, inside: Bools) -> Array:
    """The nearest rows of probabilities: max(x − t, FLOOR) with t such that they sum to 1; 0 where not `inside`. Held, Wolfe &
    Crowder 1974, Mathematical Programming 6, p. 62."""
    n = inside.sum(axis=1)
    above = np.where(inside, rows - FLOOR, -np.inf)
    falling = -np.sort(-above, axis=1)
    sums = np.cumsum(np.where(np.isfinite(falling), falling, 0.0), axis=1)
    t = (sums - (1.0 - n * FLOOR)[:, None]) / np.arange(1, rows.shape[1] + 1)
    kept = (falling > t).sum(axis=1)
    chosen = np.take_along_axis(t, kept[:, None] - 1, axis=1)
    return np.asarray(np.where(inside, np.maximum(above - chosen, 0.0) + FLOOR, 0.0))
