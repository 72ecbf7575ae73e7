"""Hidden Markov models: a hidden state that changes from step to step and explains the columns, learned by EM, and the number of
its states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.limits import options_of
from suffice.basis.variables import Count, Finite
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, ModelError, listing, nearest, note, quantity
from suffice.errors.earlier import tell_of_argument
from suffice.errors.remedies import FAMILY, MORE_ITERATIONS, as_regression
from suffice.families.protocol.family import Array, Estimate
from suffice.graphs.lagged import relative_name, unrolled_name
from suffice.incomplete.components import Theta
from suffice.incomplete.first_slices import First, checked_first
from suffice.learning.chains.chain_covariance import StateProblem, StateStarts, permute_states, permuted_statistic
from suffice.learning.chains.chain_task import chain_task_of, checked_sequences
from suffice.learning.incomplete.climb import Climb, EmMethod, em_method_of, evaluate
from suffice.learning.incomplete.starts import FEW
from suffice.learning.latent.mixture_setup import Diagonal, Full, Kind, Spherical, Tied, groups
from suffice.models.chain import Chain
from suffice.models.chains.chain_answers import best_log_prob
from suffice.recipes.latent import latent_run
from suffice.recipes.latent.latent_run import ICL, LatentOptions, LatentRun, LatentTask, class_table
from suffice.statistics.counts import freeze
from suffice.structure.undirected.selection import HeldOut

if TYPE_CHECKING:
    from suffice.basis.argument_types import FamiliesLike, PriorLike, SizesLike
    from suffice.objectives.scores import Penalised

KINDS = (Full, Tied, Diagonal, Spherical)


@dataclass(frozen=True, eq=False, repr=False)
class HmmRun(LatentRun[Chain]):
    """A hidden Markov model and how it was found. The states are ordered by falling weight, those of equal weight by what they
    emit, so that their numbers do not depend on the start.

    >>> from suffice import sequences
    >>> from suffice import hmm
    >>> rows = {"f": list("uuvuuwwvwwwwuuuvuwwwwvw"), "n": [0, 1, 0, 1, 0, 7, 9, 8, 5, 9, 8, 6, 1, 0, 2, 1, 0, 9, 7, 8, 8, 6, 9]}
    >>> run = hmm(sequences(rows, variables={"n": Count("n")}), 2)
    >>> run.rates["n"].round(2), run.probs["f"].round(2).tolist(), run.n_parameters
    (array([7.62, 0.6 ]), [[0.0, 0.15, 0.85], [0.8, 0.2, 0.0]], 9)
    >>> run.durations.round(1)
    array([12.,  5.])
    """

    n_steps: float
    """The steps that were learned from: their number, or their weight."""
    name: str
    """The hidden variable."""
    _columns: tuple[str, ...] = field(repr=False)
    weights: Array = field(repr=False)
    """The share of the steps that is expected in each state."""
    _hard: float = field(repr=False)
    """ln p(most probable paths, data)."""

    @property
    def k(self) -> int:
        """The number of states."""
        return len(self.weights)

    @property
    def transition(self) -> Array:
        """p(next state | state): state × next state."""
        return np.asarray(self.model[self.name].probs)

    @property
    def start(self) -> Array:
        """p(state) at the first step."""
        return np.asarray(self.model.first[0][self.name].probs)

    @property
    def durations(self) -> Array:
        """The mean number of steps that a state lasts, 1 / (1 − p(stay))."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / (1.0 - np.diagonal(self.transition)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The real columns: the axes of `means` and `covariances`."""
        return tuple(n for n in self._columns if self.model[n].is_line)

    @property
    def means(self) -> Array:
        """The mean of each real column in each state: state × column."""
        return self._moments[0]

    @property
    def covariances(self) -> Array:
        """The covariance of the real columns in each state, whatever its kind: state × column × column."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        """Column by column: y = a + b·(those before it) + noise of variance v adds v, and b times their covariance."""
        names, k = self.columns, self.k
        mean, covariance = np.zeros((k, len(names))), np.zeros((k, len(names), len(names)))
        for j, name in enumerate(names):
            cpd = self.model[name]
            at = [names.index(p) for p in cpd.real_parents]
            b, shared = cpd.coefficients, covariance[:, at]
            mean[:, j] = cpd.intercept + np.einsum("kc,kc->k", b, mean[:, at])
            covariance[:, j] = covariance[:, :, j] = np.einsum("kc,kcd->kd", b, shared)
            covariance[:, j, j] = cpd.variance + np.einsum("kc,kc->k", b, covariance[:, at, j])
        return freeze(mean), freeze(covariance)

    @property
    def probs(self) -> Mapping[str, Array]:
        """p(value | state) of each finite column: state × value."""
        tables = {n: self.model[n] for n in self._columns if isinstance(self.model.variables[n], Finite)}
        return MappingProxyType({n: cpd.probs for n, cpd in tables.items() if "probs" in cpd.arrays})

    @property
    def rates(self) -> Mapping[str, Array]:
        """The Poisson rate of each count in each state."""
        counts = {n: self.model[n] for n in self._columns if isinstance(self.model.variables[n], Count)}
        return MappingProxyType({n: cpd.rates for n, cpd in counts.items() if "rates" in cpd.arrays})

    @property
    def icl(self) -> float:
        """ln p(most probable path, data) − ½ k ln N: states that are hard to tell apart cost."""
        return self._hard - 0.5 * self.n_parameters * float(np.log(self.n_steps))

    @property
    def _n(self) -> float:
        return self.n_steps

    def _headline(self) -> str:
        return (
            f"hidden Markov model of {self.k} state{'' if self.k == 1 else 's'}, {self.n_parameters:,} parameters, "
            f"{self.n_steps:,.10g} steps; log-likelihood {self.log_likelihood:.10g}, BIC {self.bic:.10g}, ICL {self.icl:.10g}; "
            f"{self._end()}"
        )

    def _table(self) -> tuple[list[str], list[list[object]]]:
        try:
            lasting = {"stationary": self.model.stationary()}
        except ModelError:  # several distributions that the transition keeps
            lasting = {}
        return class_table(self, {**lasting, "mean duration": self.durations})


@dataclass(frozen=True, eq=False)
class _HmmTask(LatentTask):
    kinds: Mapping[str, Kind]
    families: Mapping[str, Any]
    sticky: float
    how: Mapping[str, Any]
    """Options of `chain_task_of`."""
    method: EmMethod | None


class HmmOptions(LatentOptions, total=False):
    """What `hmm` takes besides: the limits of long calls, how states begin and stay, how it climbs."""

    sticky: float
    """So many imagined steps more that stay in their state, for each state: 0."""
    first: First | None
    """How sequences begin: `Free()`, the default, `Stationary()` or `Given(...)`."""
    method: EmMethod | None
    """How EM climbs: `Squarem()`, as in `em`."""


@one_blas_thread
def hmm(
    sequences: Sequences,
    k: SizesLike,
    covariance: Kind | Mapping[str, Kind] | None = None,
    *,
    families: FamiliesLike | None = None,
    prior: PriorLike | None = None,
    estimate: Estimate | None = None,
    choose: Penalised | ICL | HeldOut | None = None,
    starts: int = 10,
    start: Chain | HmmRun | None = None,
    seed: int = 0,
    **options: Unpack[HmmOptions],
) -> HmmRun:
    """A hidden Markov model of `k` states: the chain `state[-1] -> state -> every column` of the sequences, learned by EM.

    Given the state, all real columns together are normal, finite columns have a table each, and counts (`Count`) a Poisson rate
    each. `covariance` says how real columns vary within a state: `Full()` (the default), `Tied()`, `Diagonal()` or
    `Spherical()`, or one of them by column; columns of one kind are together. `families` names other families of columns, as
    in `em`. Missing cells are summed out exactly. A column called `name` holds labels: states where they are known, which then
    are no longer numbered but named as there.

    `name` is what the states are called together. `sticky` imagines so many steps more that stay in their state, for each state.
    `first` says how sequences begin: `Free()` (the default), `Stationary()` or `Given(...)`. `k` may be several numbers,
    `range(1, 6)`: then `choose` takes the best, by `BIC()` (the default; N is the number of steps), `AIC()`, `ICL()` or
    `HeldOut(folds=5)`, which holds out whole sequences.

    EM climbs from `starts` starts, drawn by `seed`, and keeps the best; `run.optima` has the end of each. Or `start` is one:
    a `Chain` or another run. A climb ends when an iteration gains no more than `tol`. Without a prior a state may
    collapse onto a point: that start is given up, and reported. States are numbered by falling weight, whatever the start.
    `method`, `tol`, `max_iter` and the limits `time_limit`, `memory_limit`, `threads` and `progress` are as in `em`.

    >>> from suffice import sequences
    >>> x = [0.1, -0.2, 0.0, 0.2, 5.1, 4.9, 5.2, 5.0, 4.8, 0.1, -0.1, 0.0, 0.2, 0.1]
    >>> run = hmm(sequences({"x": x}), 2)
    >>> run.means.round(2).tolist(), run.transition.round(3).tolist()
    ([[0.04], [5.0]], [[0.875, 0.125], [0.2, 0.8]])
    >>> run.model.template
    Template('state[-1] -> state; state -> x')
    """
    unless: dict[str, Any] = {"name": "state", "sticky": 0.0, "tol": 1e-6, "max_iter": 500}
    own, budget = options_of("hmm", options, HmmOptions, without=["checkpoint"], old=["accelerate"], **unless)
    method, sticky = em_method_of(own), own["sticky"]
    rows = checked_sequences(sequences)
    common = latent_run.check_asked(own, k, choose, starts, start, seed, rows.n_rows, "states", "steps", True)
    kinds, others = _kinds(covariance, families, rows, own["name"])
    how = {"prior": prior, "estimate": estimate, "first": checked_first(own["first"]), "threads": budget.threads}
    how["room"] = budget.room
    if isinstance(sticky, bool) or not isinstance(sticky, (int, float, np.number)) or not 0.0 <= float(sticky) < np.inf:
        raise FitError(f"sticky is a number of imagined steps from 0 up, not {sticky!r}")
    judge = common["judge"]
    if isinstance(judge, HeldOut) and rows.n_sequences < judge.folds and common["several"]:
        raise FitError(
            f"HeldOut(folds={judge.folds}) holds out whole sequences, and there {'is' if rows.n_sequences == 1 else 'are'} "
            f"only {rows.n_sequences}: choose by BIC(), AIC() or ICL(), take fewer folds, or cut the sequences by a column, "
            f"by=..."
        )

    def outside(train: Sequences, test: Sequences, k: int) -> float:
        return _learn(train, k, task)[0].model.log_likelihood(test)

    with closing(budget.watch("hmm")) as watch:
        task = _HmmTask(**common, watch=watch, kinds=kinds, families=others, sticky=float(sticky), how=how, method=method)
        return task.best(rows, partial(_learn, rows, task=task), outside)


def _kinds(covariance: Any, families: Any, rows: Sequences, name: str) -> tuple[dict[str, Kind], dict[str, Any]]:
    """The kind of covariance of each real column, and the families that are none."""
    if not isinstance(families or {}, Mapping):
        raise FitError(f"families are given by column, {as_regression('x')}, not as {families!r}")
    said = dict(families or {})
    schema = {n: v for n, v in rows.schema.items() if n != name}
    if not schema:
        raise DataError(f"the sequences have no column besides {name!r}: there is nothing for the states to explain")
    for column in said:
        if column not in schema:
            raise FitError(f"{FAMILY} speaks of {column!r}, which is not a column of the data{nearest(str(column), schema)}")
    kinds = {n: f for n, f in said.items() if isinstance(f, KINDS)}
    if kinds:
        tell_of_argument("families={'x': Diagonal()} of hmm", "covariance={'x': Diagonal()}")
    others = {n: f for n, f in said.items() if n not in kinds}
    own = {n: v for n, v in schema.items() if n not in others}
    if kinds and covariance is not None and not isinstance(covariance, Mapping):
        covariance = {n: covariance for n in own if n not in kinds and not isinstance(own[n], Finite)}
    by_column = {**(covariance or {}), **kinds} if kinds or isinstance(covariance, Mapping) else covariance
    return {n: kind for kind, names in groups(by_column, own).items() for n in names}, others


def _learn(rows: Sequences, k: int, task: _HmmTask) -> tuple[HmmRun, bool]:
    """The best model of k states, and whether it was stopped before its end."""
    problem, hidden = _problem(rows, k, task)
    begin = partial(_start_at, task.start, problem, hidden)

    def draws() -> Callable[[int, np.random.Generator], Theta]:
        return StateStarts(problem, hidden, task.kinds, task.seed).draw

    climbs, stopped = task.climbs(Climb, problem, k, begin, draws, method=task.method)
    latent_run.tell_of_ends(climbs, stopped, task, f"{k} states", "model")
    return _run(climbs, problem, hidden, task), stopped


def _problem(rows: Sequences, k: int, task: _HmmTask) -> tuple[StateProblem, Finite]:
    """What EM climbs on: the template in which real columns of a joint kind have those before them as parents; and the states,
    numbered, or those of the labels, and numbers for more."""
    labels = rows.schema[task.name] if task.name in rows.columns else None
    known = list(labels.states) if isinstance(labels, Finite) else []
    if len(known) > k:
        raise FitError(f"the labels {task.name!r} have {len(known):,} states, {listing(known)}: k must be at least that, not {k}")
    spare = (str(i) for i in range(k + len(known)) if str(i) not in known)
    hidden = Finite(task.name, [*known, *(next(spare) for _ in range(k - len(known)))])
    own = relative_name(hidden.name, 1)
    graph = {hidden.name: [own], **{n: [hidden.name] for n in rows.columns if n != hidden.name}}
    for kind in dict.fromkeys(task.kinds.values()):
        names = [n for n, other in task.kinds.items() if other == kind]
        for j, column in enumerate(names if kind.joint else ()):
            graph[column] += names[:j]
    chain = chain_task_of(graph, rows, hidden=[hidden], families=task.families, **task.how)
    made = StateProblem.of_task(chain)
    assert isinstance(made, StateProblem)
    tied, spherical = (tuple(n for n, kind in task.kinds.items() if kind == own) for own in (Tied(), Spherical()))
    return replace(made, tied=tied, spherical=spherical).sticking(hidden.name, task.sticky), hidden


def _start_at(start: Any, problem: StateProblem, hidden: Finite) -> Theta:
    chain = start.model if isinstance(start, HmmRun) else start
    if not isinstance(chain, Chain):
        raise FitError(f"a start is a Chain or another run of hmm, not {type(start).__name__}")
    known = chain.variables.get(hidden.name)
    if known != hidden or chain.template != problem.template:
        raise FitError(
            f"the start is of the template {chain.template} and its states are {listing(getattr(known, 'states', ())) or 'none'}"
            f"; here they are {problem.template} and {listing(hidden.states)}: they must agree"
        )
    return problem.parameters({n: chain[n] for n in chain})


def _run(climbs: list[Climb], problem: StateProblem, hidden: Finite, task: _HmmTask) -> HmmRun:
    """The best climb as a run, its states in order."""
    best = climbs[0]
    counts = problem.state_counts(hidden.name, best.point.statistic)
    point, order = best.point, _order(problem, hidden, best.point.parameters, counts)
    if order != list(range(len(order))):
        names = frozenset([hidden.name, relative_name(hidden.name, 1), unrolled_name(hidden.name, 0)])
        permuted = {n: permute_states(cpd, order, names) for n, cpd in problem.cpds(point.parameters).items()}
        theta, counts = problem.parameters(permuted), counts[order]
        if point.statistic.steps:  # what families keep for their own steps is theirs alone
            point = evaluate(problem, theta)
        else:
            statistic = permuted_statistic(problem, point.statistic, theta, order, names)
            point = point._replace(parameters=theta, statistic=statistic)
    if gone := [s for s, n in zip(hidden.states, counts, strict=True) if n < FEW]:
        note(f"no steps are left for {listing(gone)} of {hidden.name!r}: fewer states would do as well")
    if not best.converged and task.tol > 0 and not best.stopped:
        note(f"EM did not converge in {quantity(len(best.trace), 'iteration')}; allow more with {MORE_ITERATIONS}")
    by = "maximum likelihood" if problem.prior is None else f"posterior {type(problem.estimate).__name__.lower()}"
    stick = f", sticky by {task.sticky:g}" if task.sticky else ""
    info = f"a hidden Markov model of {hidden.n_states} states by EM from {problem.amount}, {by}{stick}"
    model = problem.network(point.parameters, point.statistic, info)
    columns = tuple(n for n in problem.sequences.columns if n != hidden.name)
    hard = best_log_prob(model, problem.sequences)
    facts = (latent_run.optima_of(climbs), None, problem.weight, hidden.name, columns, counts / counts.sum(), hard)
    return HmmRun(model, tuple(best.trace), best.converged, *facts, traces=tuple(tuple(c.trace) for c in climbs))


def _order(problem: StateProblem, hidden: Finite, theta: Theta, counts: np.ndarray) -> list[int]:
    """The states by falling weight, and then by what they emit; as they are where labels or the first slice tell them apart."""
    named = hidden.name in problem.sequences.columns or bool(problem.fixed)
    if named or any(node.iterative for node in problem.nodes.values()):
        return list(range(hidden.n_states))
    cpds = problem.cpds(theta)
    numbers = [getattr(cpds[n], a) for n in problem.sequences.columns for a in cpds[n].arrays]
    return latent_run.order_of(counts / counts.sum(), numbers)
