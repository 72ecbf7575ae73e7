"""Hidden Markov models: a hidden state that changes from step to step and explains the columns, learned by EM, and the number of
its states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, listing, nearest, note
from suffice.errors.earlier import tell_of_argument
from suffice.errors.remedies import FAMILY, MORE_ITERATIONS, as_regression
from suffice.families.protocol.family import Estimate
from suffice.graphs.lagged import relative_name, unrolled_name
from suffice.incomplete.components import Theta
from suffice.incomplete.first_slices import checked_first
from suffice.learning.chains.chain_covariance import StateProblem, StateStarts, permute_states, permuted_statistic
from suffice.learning.chains.chain_task import chain_task_of, checked_sequences
from suffice.learning.em import checked_numbers
from suffice.learning.incomplete.climb import Climb, EmMethod, Point, em_method_of, evaluate, from_starts
from suffice.learning.incomplete.starts import FEW
from suffice.learning.mixture_setup import Diagonal, Full, Kind, Spherical, Tied, groups
from suffice.limits import options_of
from suffice.models.chain import Chain
from suffice.models.chains.chain_answers import best_log_prob
from suffice.recipes.latent import latent_run
from suffice.recipes.latent.hmm_run import HmmRun
from suffice.recipes.latent.latent_run import LatentOptions, LatentTask, best_of, checked_judge, checked_sizes
from suffice.structure.undirected.selection import HeldOut
from suffice.variables import Finite

if TYPE_CHECKING:
    from suffice.basis.argument_types import FamiliesLike, PriorLike, SizesLike
    from suffice.incomplete.first_slices import First
    from suffice.recipes.latent.latent_run import ICL
    from suffice.scores import Penalised

KINDS = (Full, Tied, Diagonal, Spherical)


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
    name, method, sticky = own["name"], em_method_of(own), own["sticky"]
    rows = checked_sequences(sequences)
    sizes = checked_sizes(k, rows.n_rows, "states", "steps")
    tol, max_iter, seed, _ = checked_numbers(own["tol"], own["max_iter"], seed, starts)
    judge = checked_judge(choose, "states")
    if len(sizes) > 1 and start is not None:
        raise FitError("a start has a number of states of its own: give k as that number")
    kinds, others = _kinds(covariance, families, rows, name)
    how = {"prior": prior, "estimate": estimate, "first": checked_first(own["first"]), "threads": budget.threads}
    how["room"] = budget.room
    if isinstance(sticky, bool) or not isinstance(sticky, (int, float, np.number)) or not 0.0 <= float(sticky) < np.inf:
        raise FitError(f"sticky is a number of imagined steps from 0 up, not {sticky!r}")
    watch = budget.watch("hmm")
    task = _HmmTask(name, starts, start, seed, tol, max_iter, watch, kinds, others, float(sticky), how, method)
    try:
        if isinstance(k, (int, np.integer)):
            return _learn(rows, sizes[0], task)[0]
        if isinstance(judge, HeldOut) and rows.n_sequences < judge.folds:
            raise FitError(
                f"HeldOut(folds={judge.folds}) holds out whole sequences, and there {'is' if rows.n_sequences == 1 else 'are'} "
                f"only {rows.n_sequences}: choose by BIC(), AIC() or ICL(), take fewer folds, or cut the sequences by a column, "
                f"by=..."
            )
        value = task.judging(judge, rows, lambda train, test, k: _learn(train, k, task)[0].model.log_likelihood(test))
        best: HmmRun = best_of(sizes, lambda k: _learn(rows, k, task), value, "states")
        return best
    finally:
        watch.close()


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
    climbs, stopped = _climbs(problem, hidden, task)
    fallen = [c.stopped for c in climbs if c.stopped]
    if len(fallen) == len(climbs):
        raise FitError(
            f"all {len(climbs)} starts of {k} states collapsed: {fallen[0]}; use fewer states, a prior, for instance "
            "(Dirichlet(1), NormalInverseGamma()), or a covariance that all states share, Tied()"
        )
    latent_run.tell_of_ends(climbs, stopped, task.starts, "model")
    return _run(climbs, problem, hidden, task), stopped


def _problem(rows: Sequences, k: int, task: _HmmTask) -> tuple[StateProblem, Finite]:
    """What EM climbs on: the template in which real columns of a joint kind have those before them as parents."""
    hidden = _hidden_states(rows, k, task.name)
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


def _hidden_states(rows: Sequences, k: int, name: str) -> Finite:
    """The states: numbered, or those of the labels, and numbers for more."""
    variable = rows.schema[name] if name in rows.columns else None
    known = list(variable.states) if isinstance(variable, Finite) else []
    if len(known) > k:
        raise FitError(f"the labels {name!r} have {len(known):,} states, {listing(known)}: k must be at least that, not {k}")
    spare = (str(i) for i in range(k + len(known)) if str(i) not in known)
    return Finite(name, [*known, *(next(spare) for _ in range(k - len(known)))])


def _climbs(problem: StateProblem, hidden: Finite, task: _HmmTask) -> tuple[list[Climb], bool]:
    """EM from every start, and whether it was stopped before the end."""
    n = 1 if task.start is not None or hidden.n_states == 1 else task.starts  # one state has one optimum

    def climb(i: int, way: Climb) -> None:
        way.point = evaluate(problem, way.point.parameters())
        watch = task.watching(i, f"{hidden.n_states} states")
        way.run(task.tol, task.max_iter, watch, task.method)

    def begin(drawn: Any) -> Climb:
        return Climb(problem, Point(drawn, None, -np.inf, -np.inf))

    climbs, stopped = from_starts(_starts(problem, hidden, task, n), n, task.watch, begin, climb)
    return [c for c in climbs if c.trace or c.stopped], stopped


def _starts(problem: StateProblem, hidden: Finite, task: _HmmTask, n: int) -> Iterator[Any]:
    if task.start is not None:
        yield partial(_start_at, task.start, problem, hidden)
        return
    starts = StateStarts(problem, hidden, task.kinds, task.seed)
    for i, seed in enumerate(np.random.SeedSequence(task.seed).spawn(n)):
        yield partial(starts.draw, i, np.random.default_rng(seed))


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
        point, counts = _reorder_states(problem, hidden, point, order), counts[order]
    if gone := [s for s, n in zip(hidden.states, counts, strict=True) if n < FEW]:
        note(f"no steps are left for {listing(gone)} of {hidden.name!r}: fewer states would do as well")
    if not best.converged and task.tol > 0 and not best.stopped:
        note(f"EM did not converge in {len(best.trace):,} iterations; allow more with {MORE_ITERATIONS}")
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
    every = list(range(hidden.n_states))
    named = hidden.name in problem.sequences.columns or bool(problem.fixed)
    if named or any(node.iterative for node in problem.nodes.values()):
        return every
    cpds = problem.cpds(theta)
    numbers = [getattr(cpds[n], a) for n in problem.sequences.columns for a in cpds[n].arrays]
    shares = counts / counts.sum()
    return sorted(every, key=lambda s: (-round(float(shares[s]), 9), *(x for a in numbers for x in a[s].ravel().tolist())))


def _reorder_states(problem: StateProblem, hidden: Finite, point: Point, order: list[int]) -> Point:
    """The same point, the states in another order."""
    names = frozenset([hidden.name, relative_name(hidden.name, 1), unrolled_name(hidden.name, 0)])
    theta = problem.parameters({n: permute_states(cpd, order, names) for n, cpd in problem.cpds(point.parameters).items()})
    if point.statistic.steps:  # what families keep for their own steps is theirs alone
        return evaluate(problem, theta)
    return point._replace(parameters=theta, statistic=permuted_statistic(problem, point.statistic, theta, order, names))
