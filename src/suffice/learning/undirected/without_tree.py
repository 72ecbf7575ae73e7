"""Objectives of undirected models that need no junction tree, so that graphs may be far too large for one.

Pseudo-likelihood: Σ over rows and nodes of ln p(node | its neighbours), a convex function of the weights. All that rows have to
say of it are the tables of each node with its neighbours, which add. Where those are small they are gathered once, and no row is
looked at again. Where they are not, every step is a fold over the rows.

And the likelihood of one node given the others, Σ ln p(y | rest), concave as well:

    gradient = seen − expected given the rest

Only terms that y is in have a part in it, and only y is summed over. The other weights stay at the maximum of the likelihood of
all columns, where the climb begins. On a star this is logistic regression, and what a naive Bayes network is fitted to by
`Conditional`.

Contrastive divergence:

    w ← w + rate (seen − drawn − penalty)

*Seen* are shares of the rows in the cells of the model's tables, *drawn* those of chains after a few sweeps of Gibbs sampling.
Steps become smaller, and the weights are averaged over the second half of the way (Robbins & Monro 1951, Annals of Mathematical
Statistics 22, p. 400; Polyak & Juditsky 1992, SIAM Journal on Control and Optimization 30, p. 838).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.blas import one_blas_thread
from suffice.basis.iteration import OutOfTime, Progress
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step
from suffice.errors import FitError, StatisticsError, listing, nearest, note, whole
from suffice.errors.remedies import CONTRASTIVE, LIKELIHOOD, MAX_ENTROPY, PERSISTENT, PSEUDO, weight_penalty
from suffice.learning.conditional.target_rows import TargetRows, distinct_rows
from suffice.learning.gradient import LBFGS
from suffice.learning.owlqn import Minimum
from suffice.learning.undirected.likelihood import maximum_likelihood, way_out
from suffice.learning.undirected.moments import check_interior
from suffice.learning.undirected.problem import UndirectedProblem
from suffice.models.networks import MarkovNet
from suffice.models.undirected.factor import Terms
from suffice.numerics.inference.sampling.blankets import Blankets, Codes, LocalTables
from suffice.objectives.principles import ContrastiveDivergence, Likelihood, positive_number
from suffice.statistics import Request, Statistics

Sums = Callable[[Array], tuple[float, Array]]
"""Σ ln p(node | the others) over rows and nodes, and its gradient, as functions of the logs of all tables."""

MAX_CELLS = 2**22
"""Cells of the tables of all nodes with their neighbours up to which these are gathered."""
ROOM = 2**22
"""Cells of rows that are encoded at a time."""
MAYBE_FAR = 3.0
"""Weights beyond this may be on their way to infinity: it is found out whether they are, where the states are few."""
FAR = 12.0
"""Weights beyond this have run off: e⁻¹² is a probability that few data could tell from 0."""
TOL = 1e-8
"""The gradient of a row at the optimum, in units of its spread."""

MAX_ITER = 2000


@dataclass(frozen=True, eq=False)
class PseudoStep(Step[tuple[float, Array]]):
    """The sums over the rows of a block."""

    blankets: Blankets
    names: tuple[str, ...]
    logs: Array

    def of(self, block: Block) -> tuple[float, Array]:
        value, gradient = 0.0, np.zeros(len(self.logs))
        size = max(1, ROOM // len(self.names))
        for start in range(0, block.n_rows, size):
            some = slice(start, start + size)
            columns = np.stack([block.columns[n][some].astype(np.uint16) for n in self.names])
            more, by = self.blankets.pseudo(columns, np.ascontiguousarray(block.weights[some]), self.logs)
            value, gradient = value + more, gradient + by
        return value, gradient


def blankets_of(terms: Terms) -> Blankets:
    """The nodes of a model with the tables that they are in."""
    number = {n: i for i, n in enumerate(terms.names)}
    return Blankets.of(terms.sizes, [tuple(number[n] for n in scope) for scope in terms.scopes])


def pseudo_sums(terms: Terms, rows: Any) -> Sums:
    """The sums as a function, from `Data` or `Statistics`."""
    blankets = blankets_of(terms)
    around = [tuple(terms.names[v] for v in (*own, i)) for i, own in enumerate(blankets.neighbours)]
    cells = [prod(int(terms.variables[n].n_states) for n in names) for names in around]
    if sum(cells) <= MAX_CELLS or isinstance(rows, Statistics):
        try:
            found: Statistics = rows.gather([Request(names) for names in around])
            local = LocalTables.of(blankets, [found.counts(names).dense() for names in around])
        except StatisticsError as error:
            raise StatisticsError(
                f"a pseudo-likelihood needs the table of each node with its neighbours, as of {listing(around[0])}: {error.said}"
            ) from None
        return lambda logs: blankets.pseudo_of_tables(local, logs)
    few = 4 * prod(int(k) for k in terms.sizes) < rows.n_rows  # then equal rows are one
    held = (rows.of_rows(rows.distinct()) if few else rows).hold()
    return lambda logs: held.fold(PseudoStep(blankets, terms.names, logs))


@one_blas_thread
def maximum_pseudo_likelihood(problem: Any) -> MarkovNet:
    """The optimum of the pseudo-likelihood, less the penalties."""
    problem.require_rows(PSEUDO, f"{LIKELIHOOD} or {MAX_ENTROPY}")
    if not isinstance(problem.method, (LBFGS, type(None))):
        raise FitError(f"the method of {PSEUDO} is LBFGS(), not {problem.method!r}")
    terms: Terms = problem.terms
    sums, N = pseudo_sums(terms, problem.rows), problem.weight
    l1, l2 = problem.l1 / N, problem.l2 / N

    seen = terms.count_cells(problem.statistics) / N
    scale = np.sqrt(np.maximum(terms.variances(seen) + 2.0 * l2, 1e-3 * terms.units**2))

    def loss(z: Array) -> tuple[float, Array]:
        w = z / scale
        value, by_cell = sums(terms.log_tables(w))
        gradient = -terms.by_weight(by_cell) / N + 2.0 * l2 * w
        return -value / N + float(l2 @ (w * w)), gradient / scale

    shown, start = "iteration {n}, {gain:.6f} a row", np.zeros(terms.n_weights)
    found = problem.minimise("pseudo-likelihood", shown, loss, start, l1=l1 / scale, tol=TOL, max_iter=MAX_ITER)
    weights = found.x / scale
    _check_bounded(problem, found, weights)
    by = f"with {problem.penalties!r}" if problem.penalties else "maximum pseudo-likelihood"
    how = f"fitted from {N:,.10g} rows, {by}, by L-BFGS: {found.iterations} iterations, {-found.value:.10g} a row"
    return problem.make_network(terms.log_tables(weights), how, **kept_weights(problem, weights))  # type: ignore[no-any-return]


def _check_bounded(problem: Any, found: Minimum, weights: Array) -> None:
    """Refuse an optimum that does not exist: weights run off where states never occur together."""
    terms: Terms = problem.terms
    if not problem.penalties and len(weights):
        most = np.maximum.reduceat(np.abs(weights * terms.units), terms.weight_start[:-1])
        far = [t.scope for t, w in zip(terms.terms, most, strict=True) if w > FAR]
        if far:
            raise FitError(
                f"the weights of {listing(far, 3)} run off to infinity, since some of their states never occur together: "
                f"{weight_penalty(2, 0.1)} or {weight_penalty(1, 0.1, '')} gives an estimate"
            )
    free = (problem.l1 + problem.l2) == 0.0
    if np.abs(weights * terms.units)[free].max(initial=0.0) > MAYBE_FAR:
        check_interior(problem, terms.count_cells(problem.statistics), "pseudo-likelihood")
    if not found.converged:
        raise FitError(
            f"L-BFGS did not converge in {found.iterations:,} iterations: the gradient is still {found.slope:.2g} a row; "
            + way_out(problem)
        )


def kept_weights(problem: Any, weights: Array) -> dict[str, Array]:
    """The weights as they were found, where they are unique or paid for; else the network reports those that sum to zero."""
    unique = all(t.basis is not None for t in problem.terms.terms)
    return {"weights": weights} if unique or problem.penalties else {}


TOL_OF_ONE = 1e-9
"""The gradient of a row at the optimum of the likelihood of one node."""
MAX_ITER_OF_ONE = 5000


@one_blas_thread
def maximum_conditional_likelihood(problem: UndirectedProblem, y: str) -> MarkovNet:
    """The network whose weights of the terms that y is in maximise Σ ln p(y | rest), less the penalties."""
    terms = problem.terms
    problem.require_rows("Conditional", MAX_ENTROPY)
    if y not in terms.names:
        raise FitError(f"the objective is about {y!r}, which is no node of the model{nearest(y, terms.names)}")
    if not isinstance(problem.method, (LBFGS, type(None))):
        raise FitError(f"the method of Conditional is LBFGS(), not {problem.method!r}")
    rows = rows_of(problem, y)
    try:
        start = maximum_likelihood(replace(problem, objective=Likelihood())).flat_weights
    except FitError as error:
        raise FitError(
            f"Conditional begins at the maximum of the likelihood, and {error.said}; {weight_penalty(2, 0.1)} gives one"
        ) from None
    own = np.repeat([y in t.scope for t in terms.terms], np.diff(terms.weight_start))
    l1, l2 = problem.l1[own], problem.l2[own]

    def loss(x: Array) -> tuple[float, Array]:
        w = start.copy()
        w[own] = x
        value, slope = rows.loss(terms.log_tables(w))
        return value + float(l2 @ (x * x)), terms.by_weight(slope)[own] + 2.0 * l2 * x

    limits, shown = {"tol": TOL_OF_ONE * rows.weight, "max_iter": MAX_ITER_OF_ONE}, "iteration {n}, {gain:.6f}"
    found = problem.minimise("conditional likelihood", shown, loss, start[own], l1=l1, **limits)
    weights = start.copy()
    weights[own] = found.x
    _check_found(problem, y, found, (found.x - start[own]) * terms.units[own])
    log_p = -rows.loss(terms.log_tables(weights))[0]
    by = f" with {problem.penalties!r}" if problem.penalties else ""
    how = (
        f"fitted from {rows.weight:,.10g} rows by conditional likelihood (L-BFGS){by}: Σ log p({y} | rest) {log_p:,.4f}, "
        f"{found.iterations:,} iterations; terms without {y!r} by maximum likelihood"
    )
    return problem.make_network(terms.log_tables(weights), how, weights=weights)


def rows_of(problem: UndirectedProblem, y: str) -> TargetRows:
    """The distinct rows of y and its neighbours, and the cells of the factors with y that each is in."""
    terms: Terms = problem.terms
    with_y = [f for f, scope in enumerate(terms.scopes) if y in scope]
    names = dict.fromkeys((y, *(n for f in with_y for n in terms.scopes[f])))
    scopes = [[terms.variables[n] for n in terms.scopes[f]] for f in with_y]
    starts = [int(terms.table_start[f]) for f in with_y]
    return TargetRows.of(y, scopes, starts, distinct_rows(terms.variables, names, problem.rows))


def _check_found(problem: UndirectedProblem, y: str, found: Minimum, moved: Array) -> None:
    """Refuse an optimum that does not exist: weights run off where the others tell y without a doubt."""
    if not problem.penalties and np.abs(moved).max(initial=0.0) > FAR:
        around = [n for n in problem.terms.names if n != y]
        raise FitError(
            f"the weights of {y!r} run off to infinity, since {listing(around, 4)} tell it without a doubt in some rows: "
            f"{weight_penalty(2, 0.1)} gives an estimate"
        )
    if not found.converged:
        raise FitError(
            f"L-BFGS did not converge in {found.iterations:,} iterations: a {'larger ' if problem.penalties else ''}penalty, as "
            f"{weight_penalty(2, 1.0)}, makes the way shorter"
        )


POOL = 10_000
"""Rows, drawn once, from which chains start that do not go on."""
LEAST = 0.02
"""Variances of features are taken as no smaller than this: rare states must not move by leaps."""
RECORDS = 50
"""Records in a trace."""


class DrawnRound(NamedTuple):
    """Some rounds of a run: the root mean square of seen − drawn over the cells, on average over the rounds, and the seconds."""

    mismatch: float
    seconds: float


@dataclass(frozen=True)
class RobbinsMonro:
    """Stochastic steps of falling size: `rounds` of them, round t by rate · (1 + t/half)^(−0.6), half a tenth of the rounds.

    Weights move by the rate times the gradient over the variance of their feature. Without a `rate` it is ½ over 1 + the largest
    number of neighbours.

    >>> RobbinsMonro(rounds=200)
    RobbinsMonro(rounds=200, rate=None, seed=0)
    """

    rounds: int = 500
    rate: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        whole(self.rounds, "the number of rounds of RobbinsMonro", 2)
        whole(self.seed, "a seed", 0)
        if self.rate is not None:
            positive_number(self.rate, "the rate of RobbinsMonro")


class Chains:
    """What is seen and what is drawn in a round: shares of the cells of all tables. Chains go on, and all rows are seen; or they
    start at some of `rows`, others in each round, and the same are seen, so that little is left to chance."""

    def __init__(self, terms: Terms, goal: ContrastiveDivergence, seed: int, seen: Array, rows: Data | None) -> None:
        self.blankets: Blankets = blankets_of(terms)
        self.goal, self.seed, self.seen, self.rows = goal, seed, seen, rows
        self.blankets.checked_chains(goal.chains)
        if rows is None:
            uniforms = np.random.default_rng(seed).random((len(terms.sizes), goal.chains))
            self.columns: Codes = (uniforms * terms.sizes[:, None]).astype(np.uint16)
        else:
            pool = rows.sample(POOL, seed)
            self.pool = np.stack([pool.columns[n].astype(np.uint16) for n in terms.names])
            self.share = None if pool.weight is None else pool.weights / pool.weights.sum()

    def round(self, logs: Array, t: int) -> tuple[Array, Array]:
        """Seen and drawn, after the sweeps of round t."""
        if self.rows is None:
            seen, columns = self.seen, self.columns
        else:
            n, rng = self.pool.shape[1], np.random.default_rng([self.seed, t])
            every = self.share is None and n <= self.goal.chains
            chosen = np.arange(n) if every else rng.choice(n, self.goal.chains, replace=self.share is not None, p=self.share)
            columns = np.ascontiguousarray(self.pool[:, chosen])
            seen = self.blankets.counts(columns) / len(chosen)
        for k in range(self.goal.steps):
            self.blankets.sweep(columns, logs, self.seed, t * self.goal.steps + k)
        return seen, np.asarray(self.blankets.counts(columns) / columns.shape[1])


@one_blas_thread
def contrastive_divergence(problem: Any, goal: ContrastiveDivergence) -> MarkovNet:
    """The weights at which what is drawn has the shares of what is seen."""
    how = RobbinsMonro() if problem.method is None else problem.method
    if not isinstance(how, RobbinsMonro):
        raise FitError(f"the method of ContrastiveDivergence is RobbinsMonro(rounds, rate, seed), not {how!r}")
    problem.require_rows(CONTRASTIVE, f"{LIKELIHOOD} or {MAX_ENTROPY}")
    terms: Terms = problem.terms
    seen = terms.count_cells(problem.statistics) / problem.weight
    if not goal.persistent and not isinstance(problem.rows, Data):
        raise FitError(f"chains that start at rows need rows, not statistics of them: {PERSISTENT} needs no more")
    chains = Chains(terms, goal, how.seed, seen, None if goal.persistent else problem.rows)
    prices, watch = (problem.l1 / problem.weight, problem.l2 / problem.weight), problem.budget.watch("contrastive divergence")
    weights, trace, done = _descend(terms, chains, how, seen, prices, watch)
    rounds = f"{how.rounds:,} rounds" if done == how.rounds else f"stopped after {done:,} of {how.rounds:,} rounds"
    by = f"{goal!r}{f' with {problem.penalties!r}' if problem.penalties else ''}, {rounds}"
    words = f"fitted from {problem.weight:,.10g} rows by {by}; seen − drawn at the end {trace[-1].mismatch:.2g}"
    kept = kept_weights(problem, weights)
    return problem.make_network(terms.log_tables(weights), words, **kept, trace=trace)  # type: ignore[no-any-return]


def _descend(
    terms: Terms, chains: Chains, how: RobbinsMonro, seen: Array, penalties: tuple[Array, Array], watch: Progress[Any]
) -> tuple[Array, list[DrawnRound], int]:
    """The average of the weights over the second half of the rounds, the trace, and how many rounds there were. Where time or the
    user ends it in the first half, the last weights are returned, which are rougher."""
    l1, l2 = penalties
    degree = max((len(own) for own in chains.blankets.neighbours), default=0)
    first = 0.5 / (1.0 + degree) if how.rate is None else float(how.rate)
    scale = first / np.maximum(terms.variances(seen), LEAST)
    w, total, zeros = np.zeros(terms.n_weights), np.zeros(terms.n_weights), np.zeros(terms.n_weights)
    trace: list[DrawnRound] = []
    off, since, every, done, n = np.zeros(terms.n_cells), 0, max(1, how.rounds // RECORDS), 0, 0
    try:
        for t in range(how.rounds):
            own, drawn = chains.round(terms.log_tables(w), t)
            rate = scale * (1.0 + 10.0 * t / how.rounds) ** -0.6
            w = w + rate * (terms.by_weight(own - drawn) - 2.0 * l2 * w)
            w = np.sign(w) * np.maximum(np.abs(w) - rate * l1, 0.0)
            off, since = off + own - drawn, since + 1
            done = t + 1
            if 2 * t >= how.rounds:
                total, zeros, n = total + w, zeros + (w == 0.0), n + 1
            if (t + 1) % every == 0 or t + 1 == how.rounds:
                trace.append(DrawnRound(float(np.sqrt(np.mean((off / since) ** 2))), watch.seconds))
                off, since = np.zeros_like(off), 0
            watch.check(f"round {t + 1} of {how.rounds}")
    except (OutOfTime, KeyboardInterrupt):
        if not done:
            raise
        if done < how.rounds:
            note(f"stopped after {done:,} of {how.rounds:,} rounds: the weights are as far as they came")
    finally:
        watch.close()
    if since:
        trace.append(DrawnRound(float(np.sqrt(np.mean((off / since) ** 2))), watch.seconds))
    mean = np.where((zeros > 0.5 * n) & (l1 > 0.0), 0.0, total / n) if n else w
    return mean, trace, done
