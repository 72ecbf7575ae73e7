"""The likelihood of one node of an undirected model given the others: Σ ln p(y | rest), a concave function of the weights.

    gradient = seen − expected given the rest

Only terms that y is in have a part in it, and only y is summed over, so that no tree is needed on the way. The other weights
stay at the maximum of the likelihood of all columns, where the climb begins. On a star this is logistic regression, and what a
naive Bayes network is fitted to by `Conditional`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.blas import one_blas_thread
from suffice.errors import FitError, listing, nearest
from suffice.errors.remedies import MAX_ENTROPY, weight_penalty
from suffice.learning.conditional.target_rows import TargetRows, distinct_rows
from suffice.learning.gradient import LBFGS
from suffice.learning.owlqn import Minimum
from suffice.learning.undirected.likelihood import maximum_likelihood
from suffice.learning.undirected.problem import UndirectedProblem
from suffice.models.networks import MarkovNet
from suffice.models.undirected.terms import Terms
from suffice.objectives import Likelihood

TOL = 1e-9
"""The gradient of a row at the optimum."""
FAR = 12.0
"""Weights that have moved further than this have run off: e⁻¹² is a probability that few data could tell from 0."""
MAX_ITER = 5000


@one_blas_thread
def maximum_conditional_likelihood(problem: UndirectedProblem, y: str) -> MarkovNet:
    """The network whose weights of the terms that y is in maximise Σ ln p(y | rest), less the penalties."""
    _check_problem(problem, y)
    terms = problem.terms
    rows = rows_of(problem, y)
    start = _start(problem)
    own = np.repeat([y in t.scope for t in terms.terms], np.diff(terms.weight_start))
    l1, l2 = problem.l1[own], problem.l2[own]

    def loss(x: Array) -> tuple[float, Array]:
        w = start.copy()
        w[own] = x
        value, slope = rows.loss(terms.log_tables(w))
        return value + float(l2 @ (x * x)), terms.by_weight(slope)[own] + 2.0 * l2 * x

    limits, shown = {"tol": TOL * rows.weight, "max_iter": MAX_ITER}, "iteration {n}, {gain:.6f}"
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


def _start(problem: UndirectedProblem) -> Array:
    """The weights at the maximum of the likelihood."""
    try:
        return maximum_likelihood(replace(problem, objective=Likelihood())).flat_weights
    except FitError as error:
        raise FitError(
            f"Conditional begins at the maximum of the likelihood, and {error.said}; {weight_penalty(2, 0.1)} gives one"
        ) from None


def _check_problem(problem: UndirectedProblem, y: str) -> None:
    problem.refuse_prior("Conditional")
    if y not in problem.terms.names:
        raise FitError(f"the objective is about {y!r}, which is no node of the model{nearest(y, problem.terms.names)}")
    if problem.base is not None or problem.moments is not None:
        raise FitError(f"Conditional is of rows, without a base measure: take {MAX_ENTROPY}")
    if not isinstance(problem.method, (LBFGS, type(None))):
        raise FitError(f"the method of Conditional is LBFGS(), not {problem.method!r}")


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
