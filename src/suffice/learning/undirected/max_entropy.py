"""Maximum entropy: the flattest distribution with given moments, which is the maximum likelihood estimate of the log-linear model
with these features, from one row that has them."""

from __future__ import annotations

import numpy as np

from suffice.basis.arrays import Array
from suffice.errors import FitError, listing, nearest
from suffice.errors.remedies import of_python
from suffice.inference.finite.junction_tree import FactorTree
from suffice.inference.finite.network import NONE, Network
from suffice.learning.undirected.boundary import MAX_NUMBERS, MAX_STATES
from suffice.learning.undirected.problem import UndirectedProblem
from suffice.models.networks import MarkovNet
from suffice.models.undirected.features import Features
from suffice.objectives import L1
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
    tree, own, base = _with_base(problem)
    spread = np.sqrt(np.maximum(_spread(problem), 1e-6 * terms.units**2))

    def loss(z: Array) -> tuple[float, Array]:
        w = z / spread
        log_z, probs = tree(np.concatenate([terms.log_tables(w), base]))
        return log_z - float(moments @ w), (terms.by_weight(probs[:own]) - moments) / spread

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


def _with_base(problem: UndirectedProblem) -> tuple[FactorTree, int, Array]:
    """The tree of the model's factors and those of the base, how many cells are the model's, and ln of the base."""
    terms, factors = problem.terms, problem.base.factors if problem.base is not None else ()
    number = {n: i for i, n in enumerate(terms.names)}
    more = []
    for f in factors:
        for v in f.variables:
            if problem.variables.get(v.name) != v:
                raise FitError(f"the base measure is of {v!r}, which the features are not{nearest(v.name, terms.names)}")
        more.append(([number[n] for n in f.names], NONE, np.ones(f.log.shape)))
    net = terms.network()
    joined = Network.of(net.sizes, [*net.factors(), *more]) if more else net
    logs = np.concatenate([f.log.reshape(-1) for f in factors]) if factors else np.zeros(0)
    return FactorTree(joined, f"{len(number)} variables"), terms.n_cells, logs


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
    """Refuse moments that no distribution has, or only one without all of the states: each by itself, then all together.

    With slack only those are refused that no distribution comes near to, each by itself.
    """
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
    equal = csr_array(hstack([design, csr_array(per_state)]))
    equal = csr_array(np.vstack([equal.toarray(), np.r_[np.ones(n), float(n)]])) if n * terms.n_weights < MAX_NUMBERS else equal
    found = linprog(
        np.r_[np.zeros(n), -1.0], A_eq=equal, b_eq=np.r_[moments / terms.units, 1.0], bounds=(0.0, None), method="highs"
    )
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
