"""Whether a maximum likelihood estimate exists: moments on the boundary of what is possible have none.

A linear program over all joint states x finds a direction of weights in which the likelihood never falls:

    maximise Σ t_x    such that    (b(x) − seen)·w + t_x ≤ 0,    0 ≤ t_x ≤ 1

States with t_x = 1 would have probability zero (Fienberg & Rinaldo 2012, Annals of Statistics 40, p. 996).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.errors import FitError
from suffice.errors.remedies import BDEU, weight_penalty
from suffice.learning.undirected.problem import UndirectedProblem
from suffice.statistics.counts import describe, n_configurations

MAX_STATES, MAX_NUMBERS = 2**14, 2**22
"""Joint states, and numbers in states × free parameters, up to which the program is solved."""


def check_interior(problem: UndirectedProblem, seen: Array, what: str = "likelihood") -> None:
    """Refuse an estimate that does not exist, with the names of the weights that run off; where it is too large to say, nothing.

    States that a margin of zero already excludes are left out: there is an extended estimate without them. Weights that are
    penalised stay where they are; only the others can run off.
    """
    from scipy.sparse import diags_array

    terms, total = problem.terms, float(seen[: problem.terms.table_start[1]].sum())
    n = n_configurations(problem.variables.values())
    if n > MAX_STATES:
        return
    contrasts = diags_array(1.0 / terms.units) @ _free(problem)  # the program's tolerances are absolute
    if not contrasts.shape[1] or n * contrasts.shape[1] > MAX_NUMBERS:
        return
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    possible = _possible(problem, seen, n)
    moments = contrasts.T @ terms.by_weight(seen / total)
    rows = csr_array(terms.design(terms.names, possible) @ contrasts - np.tile(moments, (len(possible), 1)))
    k, m = contrasts.shape[1], len(possible)
    table = csr_array(hstack([rows, eye_array(m)]))
    limits = [(None, None)] * k + [(0.0, 1.0)] * m
    found = linprog(np.r_[np.zeros(k), -np.ones(m)], A_ub=table, b_ub=np.zeros(m), bounds=limits, method="highs")
    if not found.success:
        return
    out = np.flatnonzero(found.x[k:] > 0.5)
    if len(out):
        raise _runs_off(problem, _sparsest(rows, out, contrasts, found.x[:k]), possible[out], what)


def _free(problem: UndirectedProblem) -> Any:
    """Weights × the parameters that no penalty holds: of a model without penalties, its contrasts."""
    from scipy.sparse import csc_array, eye_array

    if not problem.penalties:
        return problem.terms.contrasts
    return csc_array(eye_array(problem.terms.n_weights))[:, np.flatnonzero((problem.l1 + problem.l2) == 0.0)]


def _sparsest(rows: Any, out: Ints, contrasts: Any, found: Array) -> Array:
    """Of the directions that take all these states to zero the one with the smallest Σ|w|: it names few weights."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack

    least = np.zeros(rows.shape[0])
    least[out] = -1.0
    both = csr_array(hstack([rows, -rows]))
    split = linprog(np.ones(2 * rows.shape[1]), A_ub=both, b_ub=least, bounds=(0.0, None), method="highs")
    k = rows.shape[1]
    return np.asarray(contrasts @ (split.x[:k] - split.x[k:] if split.success else found))


def _possible(problem: UndirectedProblem, seen: Array, n: int) -> Ints:
    """The joint states that no margin of zero excludes; of models with bases of their own, all."""
    terms, every = problem.terms, np.arange(n)
    if problem.penalties or any(t.basis is not None for t in terms.terms):
        return every
    kept = np.ones(n, bool)
    for f, scope in enumerate(terms.scopes):
        own = seen[terms.table_start[f] : terms.table_start[f + 1]]
        if (own == 0.0).any():
            kept &= own[terms.places(terms.names, scope)] > 0.0
    return every[kept]


def _runs_off(problem: UndirectedProblem, direction: Array, out: Ints, what: str) -> FitError:
    terms = problem.terms
    direction = direction * terms.units
    far = [
        ", ".join(scope)
        for scope, w in terms.weights_by_term(direction).items()
        if np.abs(w).max(initial=0.0) > 1e-3 * np.abs(direction).max()
    ]
    first = describe(int(out[0]), tuple(problem.variables[n] for n in terms.names))
    shown = "; ".join(far[:6]) + (f" and {len(far) - 6} more" if len(far) > 6 else "")
    return FitError(
        f"the maximum {what} estimate does not exist: {len(out):,} joint states, such as {first}, would have probability zero, "
        f"and the weights of ({shown}) run off to infinity; {weight_penalty(2, 0.1)}, {weight_penalty(1, 0.1, '')} or {BDEU} "
        "gives an estimate"
    )
