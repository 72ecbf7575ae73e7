"""Pseudo-likelihood of undirected models: Σ over rows and nodes of ln p(node | its neighbours), a convex function of the weights.

All that rows have to say of it are the tables of each node with its neighbours, which add. Where those are small they are
gathered once, and no row is looked at again. Where they are not, every step is a fold over the rows.

And the likelihood of one node given the others, Σ ln p(y | rest), concave as well:

    gradient = seen − expected given the rest

Only terms that y is in have a part in it, and only y is summed over, so that no tree is needed on the way. The other weights
stay at the maximum of the likelihood of all columns, where the climb begins. On a star this is logistic regression, and what a
naive Bayes network is fitted to by `Conditional`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.blas import one_blas_thread
from suffice.engines.engine import Block, Step
from suffice.errors import FitError, StatisticsError, listing, nearest
from suffice.errors.remedies import LIKELIHOOD, MAX_ENTROPY, PSEUDO, weight_penalty
from suffice.inference.sampling.blankets import Blankets, LocalTables
from suffice.learning.conditional.target_rows import TargetRows, distinct_rows
from suffice.learning.gradient import LBFGS
from suffice.learning.owlqn import Minimum
from suffice.learning.undirected.likelihood import maximum_likelihood, way_out
from suffice.learning.undirected.moments import check_interior
from suffice.learning.undirected.problem import UndirectedProblem
from suffice.models.networks import MarkovNet
from suffice.models.undirected.terms import Terms
from suffice.objectives import Likelihood
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


LEFT = 1e-9
"""The gradient of a row at the optimum of the likelihood of one node."""
MOST_ITER = 5000


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

    limits, shown = {"tol": LEFT * rows.weight, "max_iter": MOST_ITER}, "iteration {n}, {gain:.6f}"
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
