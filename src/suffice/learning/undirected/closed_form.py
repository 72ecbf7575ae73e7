"""Decomposable models: p(x) = Π p(cliques) / Π p(separators), each from its own table, without iteration.

With imagined counts that agree on the separators the prior is hyper-Dirichlet, and so is the posterior (Dawid & Lauritzen 1993,
Annals of Statistics 21, p. 1272): the estimate is its mean, and

    ln p(data) = Σ e(cliques) − Σ e(separators),   e = ln Γ(α) − ln Γ(α + N) + Σ [ln Γ(α_i + N_i) − ln Γ(α_i)]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.errors import FitError, listing
from suffice.errors.remedies import BDEU, TABLE_PRIORS
from suffice.exponential.arithmetic.special import log_gamma_step
from suffice.learning.undirected.problem import UndirectedProblem
from suffice.models.networks import MarkovNet
from suffice.models.undirected.factor import Factor
from suffice.models.undirected.log_linear import Names
from suffice.statistics import Counts


def closed_form(problem: UndirectedProblem) -> MarkovNet:
    """The estimate of a decomposable model: a factor p(what a clique adds | its separator) for each clique."""
    graph, statistics = problem.model.graph, problem.statistics
    cliques, separators = graph.perfect_sequence(), ((), *graph.separators())
    prior = bound_prior(problem)
    if prior is not None:
        _check_agreement(prior, problem, cliques, separators)
    factors, evidence = {}, 0.0
    for clique, separator in zip(cliques, separators, strict=True):
        seen = statistics.counts(clique)
        imagined = None if prior is None else imagined_counts(prior, problem, clique)
        whole = seen.dense() if imagined is None else seen.dense() + imagined
        axes = tuple(i for i, n in enumerate(clique) if n not in separator)
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.log(whole) - np.log(whole.sum(axis=axes, keepdims=True))
        log[whole == 0.0] = -np.inf
        factors[clique] = Factor(seen.variables, log)
        if imagined is not None:
            evidence += _evidence(seen.dense(), imagined)
            if separator:
                evidence -= _evidence(seen.dense().sum(axis=axes), imagined.sum(axis=axes))
    by = "maximum likelihood" if prior is None else "posterior mean (hyper-Dirichlet)"
    info = f"fitted from {statistics.weight:,.10g} rows, {by} in closed form: the model is decomposable"
    fitted: dict[str, Any] = {} if prior is None else {"prior": prior, "log_evidence": evidence}
    ordered = [factors[c] for c in problem.model.scopes]
    return problem.network(ordered, info, log_normaliser=0.0, **fitted)


def bound_prior(problem: UndirectedProblem) -> Any:
    """The prior with its defaults filled in."""
    if problem.prior is None:
        return None
    return problem.prior.bind(dict(problem.variables), problem.statistics)


def imagined_counts(prior: Any, problem: UndirectedProblem, scope: Names) -> Array:
    """What a prior imagines of the table of some variables."""
    own = [problem.variables[n] for n in scope]
    imagined = prior.imagine(own[-1], own[:-1])
    if not isinstance(imagined, Counts):
        name = " and ".join(type(p).__name__ for p in prior.parts)
        raise FitError(f"{name} imagines no counts of {listing(scope)}: a prior of tables is {TABLE_PRIORS}")
    return imagined.marginal(scope).dense()


def agreeing_counts(prior: Any, problem: UndirectedProblem) -> list[Array]:
    """What a prior imagines of the tables of all scopes, which must be those of one table of all variables."""
    scopes = problem.model.scopes
    tables = [imagined_counts(prior, problem, s) for s in scopes]
    for i, (a, table) in enumerate(zip(scopes, tables, strict=True)):
        for b, other in zip(scopes[:i], tables[:i], strict=True):
            _require_agreement(prior, {a: table, b: other}, [n for n in a if n in b])
    return tables


def _check_agreement(prior: Any, problem: UndirectedProblem, cliques: Any, separators: Any) -> None:
    for k, own in enumerate(separators[1:], 1):
        other = next((c for c in cliques[:k] if own and set(own) <= set(c)), cliques[0])
        _require_agreement(prior, {c: imagined_counts(prior, problem, c) for c in (cliques[k], other)}, own)


def _require_agreement(prior: Any, tables: Mapping[Names, Array], both: Sequence[str]) -> None:
    """Refuse a prior that does not imagine the same of the variables that are in both of two tables."""
    mine, theirs = (t.sum(axis=tuple(i for i, n in enumerate(scope) if n not in both)) for scope, t in tables.items())
    if not np.allclose(mine, theirs, rtol=1e-9, atol=0.0):
        a, b = map(listing, tables)
        where = f"of {listing(both)} " if both else ""
        raise FitError(
            f"what {prior!r} imagines {where}in the table of {a} is not what it imagines in that of {b}, so that "
            f"it is no prior of one distribution: {BDEU} spreads the same rows over every table"
        )


def _evidence(seen: Array, imagined: Array) -> float:
    """e of a table: the log-evidence of a Dirichlet."""
    total = log_gamma_step(np.array([imagined.sum()]), np.array([seen.sum()]))
    return float(log_gamma_step(imagined.reshape(-1), seen.reshape(-1)).sum() - total.sum())
