"""EM: the parameters of a graph from incomplete data (Dempster, Laird & Rubin 1977, JRSS B 39, p. 1; Lauritzen 1995).

    E-step   the statistics that the rows are expected to have, given what they show and the parameters so far
    M-step   the parameters that these statistics and the prior give, as in `fit`

What never falls, whatever the estimate: maximum likelihood: ln L. Posterior mean: ln L + Σ α ln θ. Mode: ln L + Σ (α − 1) ln θ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.iteration import Progress
from suffice.basis.limits import Limits, options_of
from suffice.basis.variables import Finite
from suffice.engines.checkpoints import checkpoint_of
from suffice.errors import FitError, listing, nearest, note, quantity, whole
from suffice.errors.remedies import MORE_ITERATIONS, argument, in_python, ridge_of
from suffice.families.design import terms
from suffice.families.named_families import families_of
from suffice.families.protocol.family import Estimate
from suffice.learning.chains.chain_task import refuse_first, refuse_shared
from suffice.learning.incomplete.climb import OLD, Climb, EmMethod, best_first, climb_from_starts, em_method_of, evaluate
from suffice.learning.incomplete.coordinates import doubts
from suffice.learning.incomplete.em_run import EmPlan, covariance_at
from suffice.learning.incomplete.em_run import EmRun as EmRun
from suffice.learning.incomplete.em_run import Optimum as Optimum
from suffice.learning.incomplete.em_run import spread as spread
from suffice.learning.incomplete.mechanism import with_mechanism
from suffice.learning.incomplete.objective import read_fixed
from suffice.learning.incomplete.problem import ParameterProblem, problem_of
from suffice.learning.incomplete.starts import FEW, nearest_pairs, profiles
from suffice.learning.incomplete.task import is_of_sequences
from suffice.models.networks import BayesNet
from suffice.models.parts.parameter_covariance import conventions_in_words
from suffice.models.parts.sharing import shared_in_words

ENDLESS = 12.0
"""Log-odds of a state of a parent that 100,000 rows could hardly tell from infinite ones."""

if TYPE_CHECKING:
    from suffice.basis.argument_types import FamiliesLike, HiddenLike, PriorLike, RowsLike, SharedLike
    from suffice.engines.sequences.sequences import Sequences
    from suffice.graphs.directed import DagLike
    from suffice.graphs.template import TemplateLike
    from suffice.incomplete.first_slices import First
    from suffice.models.chain import Chain


class EmOptions(Limits, total=False):
    """What `em` takes besides: the limits of long calls, what is assumed of the model, and how it climbs."""

    method: EmMethod | None
    """How it climbs: plain EM, `Squarem()`, or `Incremental(10)`."""
    families: FamiliesLike | None
    """Families of nodes, as in `fit`."""
    shared: SharedLike | None
    """Nodes that have the same parameters, as in `fit`."""
    first: First | None
    """Of sequences: how they begin, as in `fit`."""
    fixed: Sequence[str] | Mapping[str, bool | Sequence[str]]
    """Nodes that stay as they are at the start."""
    missing_depends_on: Mapping[str, Iterable[str]] | None
    """What it depends on whether cells are missing, by column."""
    information: bool | None
    """When the observed information is found: now, never, or when it is first asked for."""


@overload
def em(  # type: ignore[overload-overlap]  # sequences have columns, too, as rows do: they come first
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
    *,
    dry_run: Literal[False] = ...,
    **options: Unpack[EmOptions],
) -> EmRun[Chain]: ...
@overload
def em(
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
    *,
    dry_run: Literal[False] = ...,
    **options: Unpack[EmOptions],
) -> EmRun: ...
@overload
def em(
    dag: TemplateLike | Chain,
    data: RowsLike | Sequences,
    hidden: HiddenLike = ...,
    prior: PriorLike | None = ...,
    estimate: Estimate | None = ...,
    starts: int | None = ...,
    start: BayesNet | Chain | None = ...,
    seed: int = ...,
    tol: float = ...,
    max_iter: int = ...,
    *,
    dry_run: Literal[True],
    **options: Unpack[EmOptions],
) -> EmPlan: ...
@one_blas_thread
def em(
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
    *,
    dry_run: bool = False,
    **options: Unpack[EmOptions],
) -> EmRun | EmRun[Chain] | EmPlan:
    """The network of this graph that incomplete data gives: cells may be missing anywhere, and `hidden` variables everywhere.

    `hidden` declares variables that no row shows: `[Finite("ill", ["no", "cold", "flu"])]`, or numbers, `[Real("ability")]`,
    whose children are Gaussian: they have mean 0, variance 1 and a first loading above 0 by convention (`factors` is the recipe
    for graphs in which all of them explain all columns). Without a prior the estimates are of
    maximum likelihood; with one they are posterior means, or modes with `estimate=Mode()`. Cells are taken to be missing at
    random: whether a cell is missing may depend on what the row shows, not on what it hides (`missingness` looks into that).
    `missing_depends_on={"income": ["income", "age"]}` says otherwise: an observed node `income_missing` with these parents
    becomes part of the model. What the graph does not identify is refused (docs/missing_cells.md).

    EM finds a local optimum. With hidden variables there are 10 `starts`, drawn by `seed`; the best is kept, and `run.optima` has
    them all. `start`, a network, is one to begin with; `fixed` names nodes whose distributions there are known, and stay; of
    Gaussians it may name single entries: `{"level": ["intercept", "coefficients"]}`, or a parent, whose coefficient is meant
    (`True` is all of a node). A climb ends when an iteration gains at most `tol` (in nats, of the objective; 0: never), after
    `max_iter` iterations, at the time limit, or on Ctrl-C: then the best so far is returned.

    `method=Squarem()` extrapolates; `Incremental(10)` takes an M-step after each tenth of the data (the trace has the free
    energy, a bound on the objective). `families` names other families of nodes, such as `{"y": PoissonLog()}`; a network brings
    its own. Their M-step has no closed form (but for `Linear()`): they take one Newton step of IRLS on the completed rows, which
    is halved if it lowers the objective (generalised EM). Missing numbers under them are integrated over points of Gauss–Hermite,
    which a note states.
    `shared` ties nodes as in `fit`: the M-step adds what is expected of them. `first` says how sequences begin, as in `fit`.

    Intervals of answers, `run.model.query("x", interval=0.95)`, come from the observed information at the estimates: two E-steps
    for each parameter, and a covariance of 8 n² bytes for n that are connected. It is found when the first interval is asked for,
    from the reduced rows, which the network keeps in memory until then. `information=True` finds it now, so that files and
    pickles have it; `False` keeps neither rows nor information.

    `dry_run=True` reduces the rows, takes one step and says what the run would cost: an `EmPlan`. Limits are those of long calls:
    where reduced rows would take more than `memory_limit`, each iteration passes over the rows. `checkpoint` is a directory in
    which the run keeps where it is, every ten seconds at most: killed, stopped or interrupted, the same call goes on from there
    and ends in the same bits (docs/scaling.md).

    >>> rows = {"a": ["x", "x", "y", None] * 5, "b": ["u", "u", "v", "v"] * 5}
    >>> run = em("a -> b", rows)
    >>> run.converged, run.model["a"].probs.round(3)
    (True, array([0.5, 0.5]))
    """
    given, budget = options_of("em", options, EmOptions, old=OLD, fixed=())
    method = em_method_of(given)
    families, shared, first, fixed = families_of(dag, given["families"]), given["shared"], given["first"], given["fixed"]
    missing_depends_on, information = given["missing_depends_on"], given["information"]
    if not isinstance(information, (bool, type(None))):
        raise FitError(f"information is True, False or left out, not {information!r}")
    tol, max_iter, seed, starts = checked_numbers(tol, max_iter, seed, starts)
    if missing_depends_on is not None and not is_of_sequences(dag, data):
        shared = getattr(dag, "shared", ()) if shared is None else shared
        dag, data, families = with_mechanism(dag, data, missing_depends_on, hidden, families)
    how: dict[str, Any] = {"prior": prior, "estimate": estimate, "families": families, "start": start, "threads": budget.threads}
    how["room"] = budget.room
    if is_of_sequences(dag, data):
        refuse_shared(shared)
        if missing_depends_on is not None:
            raise FitError(f"{argument('missing_depends_on')} is for networks of rows, not for sequences")
        if information:
            raise FitError("information= is for networks of rows; of a chain, em(...).information() has the standard errors")
        information = False
        from suffice.learning.chains.chain_problem import chain_problem_of  # with much behind it that rows do not need

        problem: ParameterProblem = chain_problem_of(dag, data, hidden=hidden, first=first, **how)
    else:
        if first is not None:
            refuse_first(first)
        problem = problem_of(dag, data, hidden=hidden, shared=shared, **how)
    if fixed:
        problem = _with_fixed(problem, fixed, start)
    progress = budget.watch("EM")
    n = starts if starts is not None else 1 if start is not None or not problem.hidden else 10
    if dry_run:
        return EmPlan.of(problem, n, max_iter)
    if budget.checkpoint is not None:
        asked: dict[str, Any] = {"dag": problem.dag, "hidden": hidden, "prior": prior, "estimate": estimate, "starts": starts}
        asked |= {"start": None if start is None else {node: start[node] for node in start}, "seed": seed, "tol": tol}
        asked |= {"max_iter": max_iter, "fixed": fixed, "families": families, "shared": shared, "first": first}
        asked |= {"method": method, "missing_depends_on": missing_depends_on}
        progress.memory = checkpoint_of(budget.checkpoint, "em", problem.rows, asked)
    with progress.memory:
        climbs, stopped = climb_from_starts(
            problem.starting_points(start, n, seed),
            n,
            progress,
            partial(Climb.at, problem),
            lambda i, way: way.run(tol, max_iter, partial(_watch, progress, i, n, tol, max_iter), method),
        )
        run = run_of(problem, climbs, n, stopped, tol)
        if information is not False:  # intervals of answers: found now, or when it is first asked for
            model = run.model.with_covariance(partial(covariance_at, problem, run.point.parameters))
            run = replace(run, model=model.with_covariance(model.parameter_covariance) if information else model)
        if not stopped:
            progress.memory.finish()
    return run


def _with_fixed(problem: ParameterProblem, said: Any, start: BayesNet | Chain | None) -> ParameterProblem:
    """The problem in which the distributions of some nodes, or single entries of Gaussians, are those of the start."""
    tied = {node for tie in problem.ties for node in tie.nodes}
    fixed, entries = read_fixed(said, problem.nodes)
    for name in (*fixed, *entries):
        if name in tied:
            raise FitError(
                f"{name!r} is in {argument('fixed')} and in {argument('shared')}: hold it as it is, or tie it to others, not both"
            )
    if (fixed or entries) and start is None:
        raise FitError(
            f"{argument('fixed')} keeps distributions as they are at the start: give it, {argument('start', '...', 'MODEL')}"
        )
    for name in fixed:
        if name not in problem.variables:
            raise FitError(f"fixed names {name!r}, which is not in the graph{nearest(str(name), problem.variables)}")
    for name in entries:
        if problem.imagined[name] is not None:
            raise FitError(f"fixed names single entries of {name!r}, and the prior speaks of all of them: leave one of them out")
    if not (fixed or entries) or start is None:
        return problem
    held = problem.parameters({name: start[name] for name in start})
    if problem.start is not None:
        held = problem.with_nodes(held, problem.start, problem.fixed)
    return replace(problem, start=held, fixed=(*problem.fixed, *fixed), entries=entries)


def checked_numbers(tol: Any, max_iter: Any, seed: Any, starts: Any) -> tuple[float, int, int, int | None]:
    """The numbers that say how EM climbs; what is out of bounds is refused."""
    try:
        checked = float(tol)
    except (TypeError, ValueError):
        checked = -1.0
    if isinstance(tol, bool) or not (np.isfinite(checked) and checked >= 0):
        raise FitError(f"tol is a number from 0 up (in nats), not {tol!r}")
    n_starts = None if starts is None else whole(starts, "starts", 1)
    return checked, whole(max_iter, "max_iter", 1), whole(seed, "a seed", 0), n_starts


def _watch(progress: Progress[Climb], start: int, n: int, tol: float, max_iter: int, climb: Climb) -> None:
    """Show where the climb is, and how long it may take yet by the rate at which gains shrink; look at the clock."""
    trace = climb.trace
    text = "" if n == 1 else f"start {start + 1} of {n}, "
    text += f"iteration {len(trace)}, log-likelihood {climb.point.log_likelihood:,.3f}"
    if len(trace) > 3:
        a, b, c = (t.objective for t in trace[-3:])
        rate, left = (c - b) / (b - a) if b > a else 1.0, float(max_iter - len(trace))
        if tol > 0 and 0.0 < rate < 1.0 and c - b > tol:
            left = min(left, float(np.log(tol / (c - b)) / np.log(rate)))
        text += f", at most {left * trace[-1].seconds / len(trace):.0f} s left" + (" of this start" if n > 1 else "")
    progress.check(text, climb.point.objective)


def run_of(problem: ParameterProblem, climbs: list[Climb], n: int, stopped: bool, tol: float) -> EmRun:
    """The best climb as a run; what the user should know of it is noted."""
    ordered = best_first(climbs, n)
    best = ordered[0]
    if problem.conventions.names:
        best.point = evaluate(problem, problem.to_convention(best.point.parameters))
        for text in doubts(problem, best.point.parameters, best.point.statistic):
            note(text)
    cpds = problem.cpds(best.point.parameters)
    optima = tuple(_optimum(problem, climbs.index(c), c, best, cpds) for c in ordered)
    for name in problem.hidden:
        if isinstance(variable := problem.variables[name], Finite):
            counts = problem.statistics(best.point.statistic).counts([name]).dense()
            if gone := [s for s, rows in zip(variable.states, counts, strict=True) if rows < FEW]:
                note(f"no rows are left for {listing(gone)} of the hidden variable {name!r}: fewer states would do as well")
    without_ridge: Any = (c for c in cpds.values() if c.is_regression and not (c.family.ridge or c.family.dispersed))
    for cpd in without_ridge:  # the states of parents may have effects beyond what any number of rows could show
        large = ~terms(cpd.regressors).numbers & (np.abs(cpd.theta[cpd.layout.slopes]).max(axis=0, initial=0.0) > ENDLESS)
        if effects := [t for t, far in zip(cpd.terms, large, strict=True) if far]:
            what = "states" if isinstance(cpd.child, Finite) else "values"
            note(
                f"the coefficients of {cpd.child.name!r} may grow without end: {listing(effects)} all but separates its {what}; "
                f"use {ridge_of(type(cpd.family).__name__)}"
            )
    if stopped:
        note("EM was stopped before its end; this is the best so far")
    elif not best.converged and tol > 0:
        note(f"EM did not converge in {quantity(len(best.trace), 'iteration')}; allow more with {MORE_ITERATIONS}")
    model = problem.network(best.point.parameters, best.point.statistic, _info(problem, best, optima))
    traces = tuple(tuple(c.trace) for c in ordered)
    return EmRun(model, tuple(best.trace), best.converged and not best.stopped, optima, problem, best.point, traces=traces)


def _optimum(problem: ParameterProblem, number: int, climb: Climb, best: Climb, cpds: Mapping[str, Any]) -> Optimum:
    """Where a start led to. States of hidden variables are matched by what they say about the children."""
    moved, states = False, [name for name in problem.hidden if isinstance(problem.variables[name], Finite)]
    if climb is not best and not climb.stopped and states:
        other = problem.cpds(climb.point.parameters)
        for name in states:
            mine, theirs = profiles(problem.dag, name, cpds), profiles(problem.dag, name, other)
            if mine is not None and theirs is not None:
                places = nearest_pairs(np.abs(mine[:, None, :] - theirs[None, :, :]).sum(axis=2))
                moved = moved or bool((places != np.arange(len(places))).any())
    objective = -np.inf if climb.stopped else climb.point.objective
    why = in_python(climb.stopped) if climb.stopped else ""
    return Optimum(number, objective, climb.point.log_likelihood, len(climb.trace), climb.converged, moved, why)


def _info(problem: ParameterProblem, climb: Climb, optima: tuple[Optimum, ...]) -> str:
    """How many rows there are, the share of their cells that is missing, what is hidden, and how it went."""
    by = "maximum likelihood" if problem.prior is None else f"posterior {type(problem.estimate).__name__.lower()}"
    parts = [problem.amount]
    parts += [f"{share:.3g} of the cells missing"] if (share := problem.missing_share) else []
    parts += [f"{listing(problem.hidden)} hidden"] if problem.hidden else []
    how = f"by EM: {climb.in_words(len(optima))}{shared_in_words(problem.ties) if problem.ties else ''}"
    if problem.conventions.names:
        how += conventions_in_words(problem.conventions.by_convention, problem.conventions.rotations)
    return f"fitted from {', '.join([*parts, by, how])}"
