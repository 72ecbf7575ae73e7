"""Mixtures: networks with a hidden class, learned by EM, and the number of their classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.checkpoints.journal import checkpoint_of
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, listing
from suffice.errors.earlier import tell_of_argument
from suffice.families import checked_estimate
from suffice.families.priors.priors import Prior, as_prior
from suffice.families.protocol.family import Estimate
from suffice.graphs import Dag
from suffice.iteration import Packed
from suffice.learning.em import checked_numbers
from suffice.learning.incomplete.climb import Climb, Point, evaluate, from_starts
from suffice.learning.mixture_parts import ClassParameters, CollapsedClass
from suffice.learning.mixture_setup import MixtureProblem, MixtureRows
from suffice.learning.mixture_start import MixtureStarts, given_start, start_at
from suffice.limits import COPIES, check_room, options_of
from suffice.models.networks import BayesNet
from suffice.recipes.latent import latent_run
from suffice.recipes.latent.latent_run import LatentOptions, LatentTask, best_of, checked_judge, checked_sizes
from suffice.recipes.latent.mixture_run import MixtureRun
from suffice.statistics import Statistics
from suffice.structure.undirected.selection import HeldOut
from suffice.variables import Finite, Real, Variable

if TYPE_CHECKING:
    from suffice.basis.argument_types import PriorLike, RowsLike, SizesLike
    from suffice.learning.mixture_setup import Kind
    from suffice.recipes.latent.latent_run import ICL
    from suffice.scores import Penalised


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
    name = own["name"]
    rows = _rows(data, name)
    sizes = checked_sizes(k, rows.n_rows, "classes", "rows")
    how, numbers = checked_estimate(estimate), checked_numbers(own["tol"], own["max_iter"], seed, starts)
    tol, max_iter, seed, _ = numbers
    judge = checked_judge(choose, "classes")
    if len(sizes) > 1 and start is not None:
        raise FitError("a start has a number of classes of its own: give k as that number")
    n_numbers = sum(not isinstance(v, Finite) for v in rows.schema.values())
    states = sum(v.n_states for v in rows.schema.values() if isinstance(v, Finite))
    need = 8.0 * COPIES * max(sizes) * (states + (n_numbers + 1) ** 2)
    check_room(budget.room, need, f"a mixture of {max(sizes):,} classes", "take fewer classes or columns")
    watch = budget.watch("mixture")
    task = _MixtureTask(name, starts, start, seed, tol, max_iter, watch, covariance, as_prior(prior), how, budget.threads)
    asked = {"k": sizes, "covariance": covariance, "prior": prior, "estimate": estimate, "starts": starts, "start": start}
    asked |= {"seed": seed, "tol": tol, "max_iter": max_iter, "choose": judge}
    try:
        with checkpoint_of(budget.checkpoint, "mixture", rows, asked) as watch.memory:
            if isinstance(k, (int, np.integer)):
                run, _ = _learn(_table(rows, start, budget.room), sizes[0], task)
            else:
                table = _table(rows)
                value = task.judging(judge, rows, lambda train, test, k: _learn(_table(train.hold()), k, task)[0]._held_out(test))
                run = best_of(sizes, lambda k: _learn(table, k, task), value, "classes")
            watch.memory.finish()
            return run
    finally:
        watch.close()


def _rows(data: Any, name: str) -> Data:
    if isinstance(data, Statistics):
        raise DataError("a mixture is learned from rows, and statistics have none; give the data itself")
    rows = scan(data)
    if name in rows.columns:
        raise DataError(f"the data has a column {name!r}, too: give the hidden class another name, name='group'")
    return rows


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
    try:
        climbs, stopped = _climbs(mixture, task)
    except CollapsedClass as collapse:
        raise _all_collapsed(1, str(collapse), mixture) from None
    fallen = [c.stopped for c in climbs if c.stopped]
    if len(fallen) == len(climbs):
        raise _all_collapsed(len(climbs), fallen[0], mixture)
    latent_run.tell_of_ends(climbs, stopped, task.starts, "mixture")
    return _run(climbs, mixture, task), stopped


class _Drawn(Climb):
    """A climb whose start is drawn when it begins."""

    def restore(self, packed: Packed) -> Self:
        if self.point.statistic is None and packed[0]["cuts"][1:]:
            self.point = self.point._replace(parameters=self.point.parameters())
        return super().restore(packed)


def _climbs(mixture: MixtureProblem, task: _MixtureTask) -> tuple[list[Climb], bool]:
    """EM from every start, and whether it was stopped before the end."""
    k = mixture.hidden.n_states
    n = 1 if task.start is not None or k == 1 else task.starts  # one class has one optimum

    def climb(i: int, way: Climb) -> None:
        way.point = evaluate(mixture, way.point.parameters())
        way.run(task.tol, task.max_iter, task.watching(i, f"{k} classes"))

    def begin(drawn: Callable[[], ClassParameters]) -> Climb:
        return _Drawn(mixture, Point(drawn, None, -np.inf, -np.inf))

    climbs, stopped = from_starts(_starts(mixture, task, n), n, task.watch, begin, climb, CollapsedClass)
    return [c for c in climbs if c.trace or c.stopped], stopped


def _starts(mixture: MixtureProblem, task: _MixtureTask, n: int) -> Iterator[Callable[[], ClassParameters]]:
    if task.start is not None:
        yield partial(_start_at if isinstance(task.start, MixtureRun) else given_start, task.start, mixture)
        return
    starts = MixtureStarts(mixture, task.seed)
    for i, seed in enumerate(np.random.SeedSequence(task.seed).spawn(n)):
        yield partial(starts.draw, np.random.default_rng(seed), i % 2 == 0)


def _start_at(run: MixtureRun, mixture: MixtureProblem) -> ClassParameters:
    if run.k != mixture.hidden.n_states or dict(run._variables) != dict(mixture.variables):
        words = f"{run.k} classes and the columns {listing(run._variables)}"
        raise FitError(f"the run to start from has {words}; they must agree")
    return start_at(mixture, run.weights, run.columns, run.means, run.covariances, {**run.probs, **run.rates})


def _all_collapsed(n: int, why: str, mixture: MixtureProblem) -> FitError:
    names = [name for part in mixture.parts for name in part.names]
    return FitError(
        f"all {n} starts of a mixture of {mixture.hidden.n_states} classes of {listing(names)} collapsed: {why}; "
        "use fewer classes, a prior, for instance (Dirichlet(1), NormalInverseGamma()), or a covariance that all classes share, "
        "Tied()"
    )


def _order(parameters: ClassParameters) -> list[int]:
    """The classes by falling weight, and then by their parameters."""
    w, numbers = parameters.weights, [getattr(part, a) for part in parameters.parts for a in part.arrays]
    return sorted(range(len(w)), key=lambda c: (-round(float(w[c]), 9), *(x for a in numbers for x in a[c].ravel().tolist())))


def _run(climbs: list[Climb], mixture: MixtureProblem, task: _MixtureTask) -> MixtureRun:
    """The mixture, its classes in order: class → every column, and among columns that are normal together from each to those
    after it."""
    best, hidden = climbs[0], mixture.hidden
    order, sums = _order(best.point.parameters), best.point.statistic.sums
    parameters = best.point.parameters.permute(order)
    cpds = mixture.cpds(parameters, sums.counts[order])
    variables: dict[str, Variable] = {hidden.name: hidden, **mixture.variables}
    by = "maximum likelihood" if task.prior is None else f"posterior {type(task.how).__name__.lower()}"
    model = BayesNet.of(
        Dag({n: list(cpds[n].parents) for n in variables}),
        variables,
        cpds,
        prior=task.prior,
        estimate=task.how,
        fit_info=f"a mixture of {hidden.n_states} classes by EM from {mixture.weight:,.10g} rows, {by}",
        incomplete=True,
        hidden=[hidden.name],
    )
    facts = (latent_run.optima_of(climbs), None, mixture.weight, hidden.name, parameters, sums.hard, dict(mixture.variables))
    return MixtureRun(model, tuple(best.trace), best.converged, *facts, traces=tuple(tuple(c.trace) for c in climbs))
