"""Moments: the flattest distribution that has them, and whether any has.

Maximum entropy: the flattest distribution with given moments is the maximum likelihood estimate of the log-linear model with
these features, from one row that has them. Moments on the boundary of what is possible have no estimate. A linear program over
all joint states x finds a direction of weights in which the likelihood never falls:

    maximise Σ t_x    such that    (b(x) − seen)·w + t_x ≤ 0,    0 ≤ t_x ≤ 1

States with t_x = 1 would have probability zero (Fienberg & Rinaldo 2012, Annals of Statistics 40, p. 996).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.errors import FitError, listing, nearest
from suffice.errors.remedies import BDEU, of_python, weight_penalty
from suffice.learning.undirected.problem import UndirectedProblem
from suffice.models.networks import MarkovNet
from suffice.models.undirected.features import Features
from suffice.objectives.principles import L1
from suffice.statistics.counts import describe, n_configurations


def flattest(problem: UndirectedProblem, slack: float) -> MarkovNet:
    """The distribution that is nearest to the base measure, in relative entropy, among those with these moments."""
    if problem.penalties:
        raise FitError("the slack of MaxEntropy is its penalty: MaxEntropy(slack=0.1), without penalty=")
    problem.refuse_prior("a distribution of maximum entropy")
    if problem.method is not None:
        raise FitError(f"MaxEntropy takes no method, it has its own: leave out method={problem.method!r}")
    terms = problem.terms
    moments = _moments(problem)
    check_possible(problem, moments, slack)
    for v in (v for f in (problem.base.factors if problem.base is not None else ()) for v in f.variables):
        if problem.variables.get(v.name) != v:
            raise FitError(f"the base measure is of {v!r}, which the features are not{nearest(v.name, terms.names)}")
    tree, base = terms.tree(problem.base.factors if problem.base is not None else ())
    spread = np.sqrt(np.maximum(_spread(problem), 1e-6 * terms.units**2))

    def loss(z: Array) -> tuple[float, Array]:
        w = z / spread
        log_z, probs = tree(np.concatenate([terms.log_tables(w), base]))
        return log_z - float(moments @ w), (terms.by_weight(probs[: terms.n_cells]) - moments) / spread

    shown, start, l1 = "iteration {n}, {loss:.6f}", np.zeros(terms.n_weights), slack / spread if slack else None
    found = problem.minimise("maximum entropy", shown, loss, start, l1=l1, tol=1e-11, max_iter=5000)
    w = found.x / spread
    if not found.converged:
        raise FitError(
            f"the moments could not be reached: the nearest came within {found.slope:.2g} in {found.iterations:,} iterations; "
            f"they may be impossible, or nearly so{of_python(': allow some slack, MaxEntropy(slack=0.01)')}"
        )
    log_z = tree(np.concatenate([terms.log_tables(w), base])).log_z
    info = f"maximum entropy with {terms.n_weights} moments{f', slack {slack:g}' if slack else ''}: {found.iterations} iterations"
    penalty = L1(slack) if slack else None
    return problem.make_network(terms.log_tables(w), info, weights=w, log_normaliser=log_z, penalty=penalty)


def _moments(problem: UndirectedProblem) -> Array:
    """The mean of each weight's feature: as given, or as seen."""
    if problem.moments is None:
        problem.check_margins()
        return problem.terms.by_weight(problem.terms.count_cells(problem.statistics) / problem.weight)
    model = problem.model
    assert isinstance(model, Features)
    for name in problem.moments:
        if name not in model.tables:
            raise FitError(f"there is a moment {name!r}, which is no feature{nearest(str(name), model.tables)}")
    lacking = [n for n in model.weight_names if n not in problem.moments]
    if lacking:
        raise FitError(f"there is no moment of {listing(lacking)}: give one for each feature")
    given = {}
    for name, value in problem.moments.items():
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)) or not np.isfinite(value):
            raise FitError(f"the moment of {name!r} is a finite number, not {value!r}")
        given[name] = float(value)
    return np.array([given[n] for n in model.weight_names])


def check_possible(problem: UndirectedProblem, moments: Array, slack: float) -> None:
    """Refuse moments that no distribution has, or only one without all of the states: each by itself, then all together. With
    slack only those are refused that no distribution comes near to, each by itself."""
    terms = problem.terms
    for k, value in enumerate(moments):
        t = int(np.searchsorted(terms.weight_start, k, side="right")) - 1
        term, at = terms.terms[t], k - int(terms.weight_start[t])
        if term.basis is None:
            low, high, cell = 0.0, 1.0, describe(at, [problem.variables[n] for n in term.scope])
        else:
            low, high, cell = float(term.basis[:, at].min()), float(term.basis[:, at].max()), f"the spins {listing(term.scope)}"
        name = problem.model.weight_names[k] if isinstance(problem.model, Features) else f"the share of {cell},"
        if not low - 1e-12 <= value + slack or not value - slack <= high + 1e-12:
            near = f"within {slack:g} of {value:g}" if slack else f"{value:g}"
            raise FitError(f"no distribution on these states has {name} {near}: it lies between {low:g} and {high:g}")
        if not slack and low < high and value in (low, high):
            raise FitError(
                f"{name} {value:g} is the {'smallest' if value == low else 'largest'} there is, which only states with that "
                f"value have: leave the other states out{of_python(', or allow some slack, MaxEntropy(slack=0.01)')}"
            )
    n = n_configurations(problem.variables.values())
    if slack or n > MAX_STATES or n * terms.n_weights > MAX_NUMBERS or terms.n_weights < 2:
        return
    _check_together(problem, moments, n)


def _check_together(problem: UndirectedProblem, moments: Array, n: int) -> None:
    """A linear program: the largest ε such that probabilities of at least ε on every state have these moments."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, hstack

    terms = problem.terms
    design = (terms.design(terms.names, np.arange(n)) / terms.units).T  # the program's tolerances are absolute
    # p = ε + q, q ≥ 0: moments of q are what is left of the moments
    per_state = np.asarray(design.sum(axis=1)).reshape(-1, 1)
    equal = csr_array(np.vstack([hstack([design, csr_array(per_state)]).toarray(), np.r_[np.ones(n), float(n)]]))
    wanted = np.r_[moments / terms.units, 1.0]
    found = linprog(np.r_[np.zeros(n), -1.0], A_eq=equal, b_eq=wanted, bounds=(0.0, None), method="highs")
    names = problem.model.weight_names if isinstance(problem.model, Features) else ()
    shown = ", ".join(f"{name} {value:g}" for name, value in zip(names, moments, strict=False)) or "these moments"
    if found.status == 2:
        raise FitError(f"no distribution on these states has {shown} together, though each is possible by itself")
    if found.success and -found.fun < 1e-12:
        raise FitError(
            f"only distributions that give some states no probability have {shown} together: leave those states out"
            f"{of_python(', or allow some slack, MaxEntropy(slack=0.01)')}"
        )


def _spread(problem: UndirectedProblem) -> Array:
    """The variance of each weight's feature when all states of its scope are alike."""
    result = []
    for term in problem.terms.terms:
        if term.basis is None:
            n = term.n_weights(problem.terms.variables)
            result.append(np.full(n, (1.0 - 1.0 / n) / n))
        else:
            result.append(term.basis.var(axis=0))
    return np.concatenate(result)


MAX_STATES, MAX_NUMBERS = 2**14, 2**22
"""Joint states, and numbers in states × free parameters, up to which the program is solved."""


def check_interior(problem: UndirectedProblem, seen: Array, what: str = "likelihood") -> None:
    """Refuse an estimate that does not exist, with the names of the weights that run off; where it is too large to say, nothing.
    States that a margin of zero already excludes are left out: there is an extended estimate without them. Weights that are
    penalised stay where they are; only the others can run off."""
    from scipy.sparse import csc_array, csr_array, diags_array, eye_array, hstack

    terms, total = problem.terms, float(seen[: problem.terms.table_start[1]].sum())
    n = n_configurations(problem.variables.values())
    if n > MAX_STATES:
        return
    free = terms.contrasts  # weights × the parameters that no penalty holds
    if problem.penalties:
        free = csc_array(eye_array(terms.n_weights))[:, np.flatnonzero((problem.l1 + problem.l2) == 0.0)]
    contrasts = diags_array(1.0 / terms.units) @ free  # the program's tolerances are absolute
    if not contrasts.shape[1] or n * contrasts.shape[1] > MAX_NUMBERS:
        return
    from scipy.optimize import linprog

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
