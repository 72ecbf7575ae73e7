"""Mixtures: networks with a hidden class, learned by EM, and the number of their classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
import numpy.typing as npt

from suffice.basis.blas import one_blas_thread
from suffice.basis.iteration import Packed
from suffice.basis.limits import COPIES, check_room, options_of
from suffice.basis.variables import Count, Finite, Real, Variable
from suffice.engines.checkpoints import checkpoint_of
from suffice.engines.data import Data
from suffice.engines.scan import rows_with, scan
from suffice.errors import DataError, FitError, listing, quantity
from suffice.errors.earlier import tell_of_argument
from suffice.families import checked_estimate
from suffice.families.priors.priors import Prior, as_prior
from suffice.families.protocol.family import Array, Estimate
from suffice.graphs import Dag
from suffice.learning.incomplete.climb import Climb
from suffice.learning.latent.mixture_normals import NormalPart
from suffice.learning.latent.mixture_parts import (
    ClassLogLikelihood,
    ClassParameters,
    ClassPosterior,
    CollapsedClass,
    ImpossibleRow,
    ScoredClasses,
)
from suffice.learning.latent.mixture_setup import Kind, MixtureProblem, MixtureRows
from suffice.learning.latent.mixture_start import MixtureStarts, given_start, start_at
from suffice.models.networks import BayesNet
from suffice.recipes.latent import latent_run
from suffice.recipes.latent.latent_run import ICL, LatentOptions, LatentRun, LatentTask, class_table
from suffice.statistics import Statistics
from suffice.statistics.counts import freeze
from suffice.structure.undirected.selection import HeldOut

if TYPE_CHECKING:
    from suffice.basis.argument_types import PriorLike, RowsLike, SizesLike
    from suffice.objectives.scores import Penalised


@dataclass(frozen=True, eq=False, repr=False)
class MixtureRun(LatentRun[BayesNet]):
    """A mixture and how it was found. The classes are ordered by falling weight, those of equal weight by their first
    parameter, so that their numbers do not depend on the start.

    >>> from suffice import mixture
    >>> run = mixture({"x": [1.0, 1.1, 0.9, 1.2, 5.0, 5.2, 4.9], "f": ["u", "u", "v", "u", "v", "v", "v"]}, 2)
    >>> run.probs["f"].round(2).tolist(), run.n_parameters
    ([[0.75, 0.25], [0.0, 1.0]], 7)
    >>> run.responsibilities({"x": [1.0, None], "f": ["u", "v"]}).round(2)
    array([[1.  , 0.  ],
           [0.25, 0.75]])
    """

    n_rows: float
    """The rows that were learned from: their number, or their weight."""
    name: str
    """The hidden class."""
    _parameters: ClassParameters = field(repr=False)
    _hard: float = field(repr=False)
    """Σ ln r, r the responsibility of each row's most probable class."""
    _variables: Mapping[str, Variable] = field(repr=False)

    @property
    def k(self) -> int:
        """The number of classes."""
        return len(self.weights)

    @property
    def weights(self) -> Array:
        """p(class)."""
        return np.asarray(self.model[self.name].probs)

    @property
    def columns(self) -> tuple[str, ...]:
        """The real columns: the axes of `means` and `covariances`."""
        return tuple(n for n, v in self._variables.items() if not isinstance(v, (Finite, Count)))

    @property
    def means(self) -> Array:
        """The mean of each real column in each class: class × column."""
        return self._moments[0]

    @property
    def covariances(self) -> Array:
        """The covariance of the real columns in each class, whatever its kind: class × column × column."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        k, d = self.k, len(self.columns)
        means, covariances = np.zeros((k, d)), np.zeros((k, d, d))
        for theta in self._parameters.parts:
            if isinstance(theta, NormalPart):
                at = [self.columns.index(n) for n in theta.names]
                means[:, at], covariances[np.ix_(range(k), at, at)] = theta.moments
        return freeze(means), freeze(covariances)

    @property
    def probs(self) -> Mapping[str, Array]:
        """p(state | class) of each finite column: class × state."""
        return MappingProxyType({n: self.model[n].probs for n, v in self._variables.items() if isinstance(v, Finite)})

    @property
    def rates(self) -> Mapping[str, Array]:
        """The Poisson rate of each count in each class."""
        return MappingProxyType({n: self.model[n].rates for n, v in self._variables.items() if isinstance(v, Count)})

    @property
    def n_parameters(self) -> int:
        """The free parameters. A covariance that classes share counts once, though the network writes it out in each class."""
        return self.k - 1 + int(sum(part.n_parameters for part in self._parameters.parts))

    @property
    def icl(self) -> float:
        """BIC + Σ ln r, r the responsibility of each row's most probable class: classes that overlap cost (Biernacki, Celeux &
        Govaert 2000, IEEE PAMI 22, p. 719; half of what mclust prints)."""
        return self.bic + self._hard

    def plot(self, ax: Any = None, column: str | None = None) -> Any:
        """The objective after each iteration, of every start; or what the classes are like in a column: densities of a number,
        weighted and their sum, or probabilities of states. By matplotlib; gives the axes."""
        if column is None:
            return super().plot(ax)
        answer: Any = self.model.query(column)
        drawn = answer.plot(ax)
        hidden: Any = self.model.variables[self.name]
        classes = [self.model.query(column, {self.name: state}) for state in hidden.states]
        return answer._plot_parts(drawn, classes, self.weights.tolist())

    @one_blas_thread
    def responsibilities(self, rows: RowsLike) -> Array:
        """p(class | row) of each row, new rows or old: row × class. Missing cells are summed out."""
        data = rows_with(rows, self._variables, "mixture")
        try:
            return np.concatenate([np.zeros((0, self.k)), *(r for r, _ in data.map(self._posterior(refuse=True)))])
        except ImpossibleRow as error:
            raise error.to_error(data) from None

    predict_proba = responsibilities

    @one_blas_thread
    def log_prob(self, rows: RowsLike) -> Array:
        """ln p(row) of each row, the class and missing cells summed out; −inf where a row is impossible."""
        found = rows_with(rows, self._variables, "mixture").map(self._posterior())
        return np.concatenate([np.zeros(0), *(log_p for _, log_p in found)])

    def predict(self, rows: RowsLike) -> npt.NDArray[np.int64]:
        """The number of the most probable class of each row, from 0."""
        return np.asarray(self.responsibilities(rows).argmax(axis=1), dtype=np.int64)

    def _held_out(self, rows: Data) -> float:
        """Σ ln p(row) of rows that were not learned from, of the same columns."""
        return rows.fold(ClassLogLikelihood(self._posterior()))

    def _posterior(self, refuse: bool = False) -> ClassPosterior:
        return ClassPosterior(ScoredClasses.of(self._parameters), tuple(self.rates), refuse)

    @property
    def _n(self) -> float:
        return self.n_rows

    def _headline(self) -> str:
        classes = f"{self.k} class{'' if self.k == 1 else 'es'}"
        return (
            f"mixture of {classes}, {quantity(self.n_parameters, 'parameter')}, {self.n_rows:,.10g} rows; log-likelihood "
            f"{self.log_likelihood:.10g}, BIC {self.bic:.10g}, ICL {self.icl:.10g}; {self._end()}"
        )

    def _table(self) -> tuple[list[str], list[list[object]]]:
        return class_table(self, {})


@dataclass(frozen=True, eq=False)
class _MixtureTask(LatentTask):
    covariance: Any
    prior: Prior | None
    how: Estimate
    threads: int | None


@one_blas_thread
def mixture(
    data: RowsLike,
    k: SizesLike,
    covariance: Kind | Mapping[str, Kind] | None = None,
    *,
    prior: PriorLike | None = None,
    estimate: Estimate | None = None,
    choose: Penalised | ICL | HeldOut | None = None,
    starts: int = 10,
    start: object = None,
    seed: int = 0,
    **options: Unpack[LatentOptions],
) -> MixtureRun:
    """A mixture of `k` classes: the network of a hidden class that explains the columns of the data, learned by EM.

    Given the class, all real columns together are normal, finite columns have a table each, and counts a Poisson rate each.
    `covariance` says how real columns vary within a class: `Full()` (the default), `Tied()`, `Diagonal()` or `Spherical()`, or
    one of them by column; columns of one kind are together. Missing cells are summed out exactly; no row is left out.

    `k` may be several numbers, `range(1, 6)`: then `choose` takes the best, by `BIC()` (the default), `AIC()`, `ICL()` or
    `HeldOut(folds=5)`, and `run.choices` tells how they compare.

    EM climbs from `starts` starts, drawn by `seed`, and keeps the best; `run.optima` has the end of each. Or `start` is one:
    responsibilities (row × class), (weights, means, covariances), or another run. A climb ends when an iteration gains no more
    than `tol` in log-likelihood; `tol=0` makes all `max_iter` iterations. Without a prior a class may collapse onto a point,
    where the likelihood has no maximum: that start is given up, and reported. Classes are numbered by falling weight, whatever
    the start; `name` is what they are called together. Limits are as in `em`: `time_limit` (seconds) or Ctrl-C keeps the best so
    far, and `checkpoint` is a directory from which the same call goes on, killed or stopped.

    >>> run = mixture({"x": [1.0, 1.1, 0.9, 1.2, 5.0, 5.2, 4.9]}, 2)
    >>> run.weights.round(3), run.means.round(2).tolist()
    (array([0.571, 0.429]), [[1.05], [5.03]])
    >>> run.predict({"x": [1.5, 4.5]})
    array([0, 1])
    >>> run.model.dag
    Dag('class -> x')
    """
    own, budget = options_of("mixture", options, LatentOptions, old=["families"], name="class", tol=1e-6, max_iter=500)
    if "families" in own:
        tell_of_argument("families= of a mixture", "covariance=")
        covariance = own["families"]
    if isinstance(data, Statistics):
        raise DataError("a mixture is learned from rows, and statistics have none; give the data itself")
    rows = scan(data)
    if own["name"] in rows.columns:
        raise DataError(f"the data have a column {own['name']!r}, too: give the hidden class another name, name='group'")
    common = latent_run.check_asked(own, k, choose, starts, start, seed, rows.n_rows, "classes", "rows", True)
    how, most = checked_estimate(estimate), max(common["sizes"])
    n_numbers = sum(not isinstance(v, Finite) for v in rows.schema.values())
    states = sum(v.n_states for v in rows.schema.values() if isinstance(v, Finite))
    need = 8.0 * COPIES * most * (states + (n_numbers + 1) ** 2)
    check_room(budget.room, need, f"a mixture of {most:,} classes", "take fewer classes or columns")
    watch = budget.watch("mixture")
    task = _MixtureTask(**common, watch=watch, covariance=covariance, prior=as_prior(prior), how=how, threads=budget.threads)
    asked = {"k": task.sizes, "covariance": covariance, "prior": prior, "estimate": estimate, "starts": starts, "start": start}
    asked |= {"seed": task.seed, "tol": task.tol, "max_iter": task.max_iter, "choose": task.judge}

    def outside(train: Data, test: Data, k: int) -> float:
        return _learn(_table(train.hold()), k, task)[0]._held_out(test)

    with closing(watch), checkpoint_of(budget.checkpoint, "mixture", rows, asked) as watch.memory:
        table = _table(rows) if task.several else _table(rows, start, budget.room)
        run: MixtureRun = task.best(rows, partial(_learn, table, task=task), outside)
        watch.memory.finish()
        return run


def _table(rows: Data, start: Any = None, room: float = np.inf) -> MixtureRows:
    """The rows, equal ones merged where there are no real numbers, and room for them; responsibilities are of the rows as they
    are."""
    numbers = any(isinstance(v, Real) for v in rows.schema.values()) or 8.0 * rows.n_rows * (len(rows.columns) + 1) > room
    return MixtureRows.of(rows, merge=not numbers and (start is None or isinstance(start, MixtureRun)))


def _learn(table: MixtureRows, k: int, task: _MixtureTask) -> tuple[MixtureRun, bool]:
    """The best mixture of k classes, and whether it was stopped before its end."""
    hidden = Finite(task.name, [str(c) for c in range(k)])
    made = table.mixture(hidden, task.covariance, task.prior, task.how)
    mixture = replace(made, components=replace(made.components, threads=task.threads))

    def begin() -> ClassParameters:
        run = task.start
        if not isinstance(run, MixtureRun):
            return given_start(run, mixture)
        if run.k != k or dict(run._variables) != dict(mixture.variables):
            words = f"{run.k} classes and the columns {listing(run._variables)}"
            raise FitError(f"the run to start from has {words}; they must agree")
        return start_at(mixture, run.weights, run.columns, run.means, run.covariances, {**run.probs, **run.rates})

    def draws() -> Callable[[int, np.random.Generator], ClassParameters]:
        starts = MixtureStarts(mixture, task.seed)
        return lambda i, rng: starts.draw(rng, i % 2 == 0)

    of = f"a mixture of {k} classes of {listing(name for part in mixture.parts for name in part.names)}"
    try:
        climbs, stopped = task.climbs(_Drawn, mixture, k, begin, draws, CollapsedClass)
    except CollapsedClass as collapse:
        raise latent_run.collapse_of_all(1, of, str(collapse), task.what) from None
    latent_run.tell_of_ends(climbs, stopped, task, of, "mixture")
    return _run(climbs, mixture, task), stopped


class _Drawn(Climb):
    """A climb whose start is drawn when it begins."""

    def restore(self, packed: Packed) -> Self:
        if self.point.statistic is None and packed[0]["cuts"][1:]:
            self.point = self.point._replace(parameters=self.point.parameters())
        return super().restore(packed)


def _run(climbs: list[Climb], mixture: MixtureProblem, task: _MixtureTask) -> MixtureRun:
    """The mixture, its classes in order: class → every column, and among columns that are normal together from each to those
    after it."""
    best, hidden = climbs[0], mixture.hidden
    found, sums = best.point.parameters, best.point.statistic.sums
    order = latent_run.order_of(found.weights, [getattr(part, a) for part in found.parts for a in part.arrays])
    parameters = found.permute(order)
    cpds = mixture.cpds(parameters, sums.counts[order])
    variables: dict[str, Variable] = {hidden.name: hidden, **mixture.variables}
    by = "maximum likelihood" if task.prior is None else f"posterior {type(task.how).__name__.lower()}"
    dag = Dag({n: list(cpds[n].parents) for n in variables})
    info = f"a mixture of {hidden.n_states} classes by EM from {mixture.weight:,.10g} rows, {by}"
    said: dict[str, Any] = {"prior": task.prior, "estimate": task.how, "fit_info": info, "incomplete": True}
    model = BayesNet.of(dag, variables, cpds, **said, hidden=[hidden.name])
    facts = (latent_run.optima_of(climbs), None, mixture.weight, hidden.name, parameters, sums.hard, dict(mixture.variables))
    return MixtureRun(model, tuple(best.trace), best.converged, *facts, traces=tuple(tuple(c.trace) for c in climbs))
