"""Factor analysis and probabilistic PCA: hidden numbers that explain real columns, and how many of them.

With missing cells it is the problem of `em` on the graph in which every factor has every column as a child. With the same noise
in all columns, v = Σ_j residual_j / Σ_j N_j: the M-step is exact all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.blas import one_blas_thread
from suffice.basis.limits import COPIES, check_room, options_of
from suffice.basis.variables import Real, Variable
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, listing, note
from suffice.families.conditional_gaussian import ConditionalGaussian, SharedGaussian
from suffice.families.protocol.family import Cpd
from suffice.graphs import Dag
from suffice.incomplete.components import NodeFamily, Theta
from suffice.learning.em import run_of
from suffice.learning.incomplete.climb import Climb, Squarem, best_first, climb_from_starts
from suffice.learning.incomplete.hidden_numbers import FLOOR
from suffice.learning.incomplete.problem import ParameterProblem
from suffice.learning.incomplete.reduced_task import ExpectedStatistic
from suffice.learning.incomplete.task import task_of
from suffice.learning.latent.factor_analysis import FactorMoments, FactorWay
from suffice.learning.latent.mixture_setup import Diagonal, Spherical
from suffice.models.networks import BayesNet
from suffice.models.parts.parameter_covariance import conventions_in_words, rotations
from suffice.models.undirected.covariances import Covariances, refuse_other_kinds
from suffice.recipes.latent.latent_run import LatentOptions, LatentRun, LatentTask, StartResult, check_asked
from suffice.statistics import Statistics
from suffice.structure.undirected.selection import HeldOut

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike, SizesLike
    from suffice.objectives.scores import Penalised


@dataclass(frozen=True, eq=False, repr=False)
class FactorsRun(LatentRun[BayesNet]):
    """Factors and how they were found. They are standard normal and independent; which rotation of them is meant is fixed by
    convention: Λᵀ Ψ⁻¹ Λ is diagonal and falls, and the first loading of each is above 0.

    >>> from suffice import factors
    >>> rows = {"a": [1.0, 2.5, 3.0, 5.0, 3.0, 2.5], "b": [1.1, 3.0, 2.0, 4.0, 3.5, 2.5], "c": [2.0, 2.5, 2.0, 4.0, 3.5, 3.5]}
    >>> run = factors(rows, 1)
    >>> run.loadings.round(3).tolist(), run.noise.round(3).tolist(), run.n_parameters
    ([[1.0], [0.955], [0.653]], [0.389, 0.005, 0.192], 9)
    >>> run.scores({"a": [5.0], "b": [4.0], "c": [None]}).round(3)
    array([[1.382]])
    """

    n_rows: float
    """The rows that were learned from: their number, or their weight."""
    names: tuple[str, ...]
    """The factors: the columns of `loadings`."""
    columns: tuple[str, ...]
    """The columns of the data: the rows of `loadings`."""
    spherical: bool = field(default=False, repr=False)
    """Whether all columns have the same noise: probabilistic PCA."""

    @property
    def k(self) -> int:
        """The number of factors."""
        return len(self.names)

    @property
    def loadings(self) -> Array:
        """Λ: how much of each factor there is in each column: column × factor."""
        cpds = [self.model[c] for c in self.columns]
        return np.array([cpd.coefficients[[cpd.real_parents.index(n) for n in self.names]] for cpd in cpds])

    @property
    def noise(self) -> Array:
        """Ψ: the variance of each column that factors do not explain."""
        return np.array([float(self.model[c].variance) for c in self.columns])

    @property
    def mean(self) -> Array:
        """The mean of each column."""
        return np.array([float(self.model[c].intercept) for c in self.columns])

    @property
    def covariance(self) -> Array:
        """Λ Λᵀ + Ψ: the covariance of the columns."""
        loadings = self.loadings
        return np.asarray(loadings @ loadings.T + np.diag(self.noise))

    @property
    def communalities(self) -> Array:
        """The share of the variance of each column that factors explain."""
        return np.asarray(1.0 - self.noise / np.diag(self.covariance))

    @property
    def icl(self) -> float:
        """Not a number: factors are no classes, which could overlap."""
        return float("nan")

    @one_blas_thread
    def scores(self, rows: RowsLike) -> Array:
        """E[factors | row] of each row, new rows or old: row × factor. Missing cells are summed out."""
        return np.stack([np.asarray(self.model.predict(rows, name), np.float64) for name in self.names], axis=1)

    def log_prob(self, rows: RowsLike) -> Array:
        """ln p(row) of each row, factors and missing cells summed out."""
        return self.model.log_prob(rows)

    @property
    def _n(self) -> float:
        return self.n_rows

    def _headline(self) -> str:
        noise = ", the same noise in all columns" if self.spherical else ""
        number = "1 factor" if self.k == 1 else f"{self.k} factors"
        return (
            f"{number} of {len(self.columns)} columns{noise}, {self.n_parameters:,} parameters, {self.n_rows:,.10g} rows; "
            f"log-likelihood {self.log_likelihood:.10g}, BIC {self.bic:.10g}; {self._end()}"
        )

    def _table(self) -> tuple[list[str], list[list[object]]]:
        header = ["column", *self.names, "noise", "explained"]
        parts = zip(self.columns, self.loadings.tolist(), self.noise.tolist(), self.communalities.tolist(), strict=True)
        return header, [[name, *own, noise, share] for name, own, noise, share in parts]

    def _below(self) -> str:
        turned = "; only a rotation tells factors apart, and it is fixed, too" if self.k > 1 else ""
        return f"\nBy convention factors have mean 0, variance 1 and a first loading above 0{turned}.{super()._below()}"


@dataclass(frozen=True, eq=False)
class _Asked(LatentTask):
    spherical: bool
    columns: tuple[str, ...]
    threads: int | None
    room: float

    def names(self, k: int) -> tuple[str, ...]:
        """The factors."""
        return tuple(f"{self.name}{i + 1}" for i in range(k)) if k > 1 else (self.name,)


@one_blas_thread
def factors(
    data: RowsLike | Statistics,
    k: SizesLike = 1,
    *,
    noise: Diagonal | Spherical | None = None,
    choose: Penalised | HeldOut | None = None,
    starts: int = 3,
    start: Mapping[str, float] | Sequence[float] | Array | None = None,
    seed: int = 0,
    **options: Unpack[LatentOptions],
) -> FactorsRun:
    """`k` hidden numbers that explain the real columns of the data: x = mean + loadings · factors + noise, by maximum likelihood.

    The noise of each column is its own, `Diagonal()` (factor analysis, the default), or that of all, `Spherical()` (probabilistic
    PCA). Complete rows need one scan: their means and covariances, or `Statistics` that hold them, are all that is needed.
    Missing cells are summed out by EM; no row is left out.

    `k` may be several numbers, `range(1, 6)`: then `choose` takes the best, by `BIC()` (the default), `AIC()` or
    `HeldOut(folds=5)`, and `run.choices` tells how they compare.

    The climb begins at `starts` places, and the best end is kept; or at `start`, the noise of each column, {column: variance} or
    in the order of the columns. Noise that falls to zero (a Heywood case) stops at a millionth of the column's variance, and is
    reported. `name` is what factors are called; `tol`, `max_iter` and the limits `time_limit`, `memory_limit`, `threads` and
    `progress` are as in `em`. Other graphs, priors, finite columns beside: `em(dag, data, hidden=[Real("ability")])`.

    >>> rows = {"a": [1.0, 2.5, 3.0, 5.0, 3.0, 2.5], "b": [1.1, 3.0, 2.0, 4.0, 3.5, 2.5], "c": [2.0, 2.5, 2.0, 4.0, 3.5, 3.5]}
    >>> run = factors(rows)
    >>> run.loadings.round(2).tolist(), round(run.log_likelihood, 4)
    ([[1.0], [0.96], [0.65]], -17.5793)
    >>> run.model.dag
    Dag('factor -> a; factor -> b; factor -> c')
    """
    own, budget = options_of("factors", options, LatentOptions, without=["checkpoint"], name="factor", tol=1e-6, max_iter=500)
    if not isinstance(noise, (Diagonal, Spherical, type(None))):
        raise FitError(f"the noise of columns is Diagonal() or Spherical(), not {noise!r}")
    spherical = isinstance(noise, Spherical)
    rows: Any = data
    if not isinstance(data, Statistics):  # numbers wherever they can be: few different values are no states here
        rows = scan(data)
        rows = rows.with_numbers(rows.columns)
    variables = _columns(rows, own["name"])
    weight = rows.weight if isinstance(rows, Statistics) else rows.n_rows
    common = check_asked(own, k, choose, starts, start, seed, max(1, int(weight)), "factors", "rows", False)
    if isinstance(common["judge"], HeldOut) and isinstance(rows, Statistics):
        raise DataError("HeldOut() needs rows, and statistics have none: choose by BIC() or AIC()")
    watch = budget.watch("factors")
    asked = _Asked(**common, watch=watch, spherical=spherical, columns=tuple(variables), threads=budget.threads, room=budget.room)
    d = len(variables)
    check_room(budget.room, 8.0 * COPIES * d * (d + max(asked.sizes)), "the covariance of all columns", "take fewer columns")
    with closing(watch):
        learn, outside = partial(_best, rows, _covariances(rows, asked), asked), partial(_log_likelihood_outside, asked)
        return asked.best(rows, learn, outside)


def _columns(rows: Data | Statistics, name: str) -> dict[str, Variable]:
    if isinstance(rows, Statistics):
        return {n: v for n, v in rows.variables.items() if isinstance(v, Real)}
    if name in rows.columns or any(c.startswith(name) and c[len(name) :].isdecimal() for c in rows.columns):
        raise DataError(f"the data have a column that is called like a factor, {name!r}: give these another name, name='f'")
    refuse_other_kinds(list(rows.schema.values()), "factors", "leave it out, or em(dag, data, hidden=[Real('factor')])")
    return dict(rows.schema)


def _covariances(rows: Data | Statistics, asked: _Asked) -> Covariances | None:
    """All that complete rows say, in one scan; None where cells are missing."""
    if isinstance(rows, Data) and any(rows.missing.values()):
        return None
    on = "covariance" if asked.spherical else "correlation"
    return Covariances.of(rows, asked.columns, on=on, threads=asked.threads)


def _best(rows: Any, given: Covariances | None, asked: _Asked, k: int) -> tuple[FactorsRun, bool]:
    """The best factors, and whether the search was stopped before its end. More than covariances can tell are refused:
    Ledermann's bound."""
    p = len(asked.columns)
    most = p - 1 if asked.spherical else max((m for m in range(p) if (p - m) ** 2 >= p + m), default=0)
    if k > most:
        raise FitError(
            f"{k} factor{'s' if k > 1 else ''} of {p} columns have more loadings than covariances could tell: at most {most} "
            "can be learned; give more columns"
        )
    if given is None:
        return _by_em(rows, k, asked)
    moments = FactorMoments(given, k)
    ways, stopped = _ways(moments, asked)
    ordered = best_first(ways, len(ways))
    if stopped:
        note("factors were stopped before the end; these are the best so far")
    return _run(moments, ordered, asked), stopped


def _ways(moments: FactorMoments, asked: _Asked) -> tuple[list[FactorWay], bool]:
    """Newton's method from every start; with the same noise everywhere the best is known at once."""
    if asked.spherical:
        way = FactorWay.at(moments, moments.spherical().logs)
        way.record()
        way.converged = True
        return [way], False
    n = 1 if asked.start is not None else asked.starts

    def places() -> Iterator[Array]:
        if asked.start is not None:
            given = [asked.start.get(c, np.nan) for c in asked.columns] if isinstance(asked.start, Mapping) else asked.start
            try:
                noise = np.asarray(given, np.float64)
            except (TypeError, ValueError):
                noise = np.zeros(0)
            width = len(asked.columns)
            if noise.shape != (width,) or not (np.isfinite(noise) & (noise > 0.0)).all():
                raise FitError(f"a start is the noise of each column, {width} variances above 0, not {asked.start!r}")
            yield moments.clip(np.log(noise / moments.given.scale**2))
            return
        for i, seed in enumerate(np.random.SeedSequence(asked.seed).spawn(n)):
            yield moments.random(np.random.default_rng(seed)) if i else moments.first()

    def climb(i: int, way: FactorWay) -> None:
        way.climb(asked.max_iter, asked.tol, lambda: asked.watch.check(f"{moments.k} factors, start {i + 1}"))

    return climb_from_starts(places(), n, asked.watch, lambda logs: FactorWay.at(moments, logs), climb)


def _run(moments: FactorMoments, ways: list[FactorWay], asked: _Asked) -> FactorsRun:
    best, given = ways[0], moments.given
    point = best.point.parameters
    loadings, noise, names = moments.loadings(point), moments.noise(point), asked.names(moments.k)
    first = np.argmax(np.abs(loadings) > 0.0, axis=0)
    loadings = loadings * np.where(loadings[first, np.arange(moments.k)] < 0.0, -1.0, 1.0)
    if small := [c for c, log in zip(given.names, point.logs, strict=True) if not asked.spherical and log <= np.log(FLOOR)]:
        note(
            f"the noise of {listing(small)} fell to its least value, a millionth of the column's variance: factors all but "
            "determine it (a Heywood case); use fewer factors"
        )
    hidden = tuple(Real(n) for n in names)
    cpds: dict[str, Any] = {h.name: ConditionalGaussian(h, (), np.zeros(()), np.zeros(0), np.ones(())) for h in hidden}
    for column, mean, own, v in zip(given.names, given.mean, loadings, noise, strict=True):
        cpd = ConditionalGaussian(Real(column), hidden, np.asarray(mean), own, np.asarray(v))
        cpds[column] = with_common_noise(cpd, first=column == given.names[0]) if asked.spherical else cpd
    dag = Dag({n: list(cpd.parents) for n, cpd in cpds.items()})
    variables: dict[str, Variable] = {n: cpd.child for n, cpd in cpds.items()}
    what = "probabilistic PCA" if asked.spherical else "factor analysis"
    by = f"maximum likelihood{conventions_in_words(names, rotations(dag, variables, names))}"
    info = f"{what} of {given.weight:,.10g} rows, {by}"
    model = BayesNet.of(dag, variables, cpds, fit_info=info, incomplete=True, hidden=names)
    optima = tuple(StartResult(w.point.objective, len(w.trace), w.converged, None) for w in ways)
    facts = (optima, None, given.weight, names, asked.columns, asked.spherical)
    return FactorsRun(model, tuple(best.trace), best.converged, *facts, traces=tuple(tuple(w.trace) for w in ways))


def _by_em(rows: Data, k: int, asked: _Asked) -> tuple[FactorsRun, bool]:
    """The factors of rows with missing cells."""
    if asked.start is not None:
        raise FitError("start= is of complete rows; where cells are missing, em(dag, data, hidden=..., start=bn) takes a network")
    names = asked.names(k)
    dag = Dag({**{n: [] for n in names}, **{c: list(names) for c in asked.columns}})
    task = task_of(dag, rows, hidden=[Real(n) for n in names], threads=asked.threads, room=asked.room)
    task = replace(task, variables={n: task.variables[n] for n in (*names, *asked.columns)})
    problem: FactorProblem = FactorProblem.of(task)  # type: ignore[assignment]
    problem = replace(problem, spherical=asked.columns if asked.spherical else ())

    def climb(i: int, way: Climb) -> None:
        way.run(asked.tol, asked.max_iter, asked.watching(i, k), Squarem())

    thetas = problem.starting_points(None, asked.starts, asked.seed)
    climbs, stopped = climb_from_starts(thetas, asked.starts, asked.watch, partial(Climb.at, problem), climb)
    run = run_of(problem, climbs, asked.starts, stopped, asked.tol)
    optima = tuple(StartResult(o.objective, o.iterations, o.converged, o.stopped or None) for o in run.optima)
    facts = (optima, None, problem.weight, names, asked.columns, asked.spherical)
    return FactorsRun(run.model, run.trace, run.converged, *facts, traces=run.traces), stopped


def _log_likelihood_outside(asked: _Asked, train: Data, test: Data, k: int) -> float:
    """ln p of rows that were not learned from: by their moments where no cell is missing."""
    run = _best(train, _covariances(train, asked), asked, k)[0]
    if any(test.missing.values()):
        return run.model.log_likelihood(test)
    other = Covariances.of(test, asked.columns, on="covariance", checked=False, threads=asked.threads)
    own = replace(other, mean=run.mean, scale=np.ones(len(run.mean)))
    S, covariance = own.of_others(other), run.covariance
    square = float(np.trace(np.linalg.solve(covariance, S)))
    return -0.5 * other.weight * (len(S) * float(np.log(2.0 * np.pi)) + float(np.linalg.slogdet(covariance)[1]) + square)


@dataclass(frozen=True, eq=False)
class FactorProblem(ParameterProblem):
    """The parameters of factors. `spherical` are the columns with the same noise."""

    spherical: tuple[str, ...] = ()

    def maximise(self, statistic: ExpectedStatistic) -> Theta:
        """One M-step."""
        theta = super().maximise(statistic)
        if not self.spherical:
            return theta
        weight = {n: float(statistic.moments[n].spread.weight.sum()) for n in self.spherical}
        square = sum(weight[n] * float(theta.lines[n].variance[0]) * self._unit(n) for n in self.spherical)
        return self._with_noise(theta, square / sum(weight.values()))

    def _with_noise(self, theta: Theta, variance: float) -> Theta:
        """The parameters with this noise, of columns as they are."""
        least = FLOOR * float(np.mean([self.units.variance[n] * self._unit(n) for n in self.spherical]))
        others: dict[str, Any] = dict(theta.others)
        for n in self.spherical:
            others[n] = replace(others[n], variance=np.asarray(max(variance, least) / self._unit(n)))
        return replace(theta, others=others)

    def _unit(self, name: str) -> float:
        return self.units.scale[name] ** 2

    def _shares(self, theta: Theta) -> bool:
        return not self.spherical

    def _tie(self, theta: Theta) -> Theta:
        """The same parameters, the noise being the mean of that of all columns."""
        if not self.spherical:
            return theta
        return self._with_noise(theta, float(np.mean([theta.lines[n].variance[0] * self._unit(n) for n in self.spherical])))

    def _fit_node(self, node: NodeFamily, cpd: Any, statistic: ExpectedStatistic, complete: bool) -> Cpd:
        fitted: Any = super()._fit_node(node, cpd, statistic, complete)
        if node.name not in self.spherical:
            return fitted  # type: ignore[no-any-return]
        return with_common_noise(fitted, first=node.name == self.spherical[0])


def with_common_noise(cpd: Any, *, first: bool) -> SharedGaussian:
    """A column whose noise all columns share: it is counted with the first."""
    own = 1 + cpd.coefficients.shape[-1] + first
    return SharedGaussian(cpd.child, cpd.parent_variables, cpd.intercept, cpd.coefficients, cpd.variance, cpd.seen, own=own)
