"""How well the weights of an undirected model are known: the inverse of the information, by the junction tree.

    information = N Cov[features],    Cov = ∂ E[features] / ∂ weights

The derivative is taken of what the tree expects, by central differences, one free parameter at a time.
"""

from __future__ import annotations

import numpy as np

from suffice.errors import ModelError, TooLarge
from suffice.inference.finite.factor_marginals import FactorTree
from suffice.inference.finite.network import NONE, Array, Network
from suffice.models.undirected.markov_parts import MarkovParts
from suffice.models.undirected.terms import Terms
from suffice.objectives import Likelihood, MaxEntropy

STEP = 1e-4
"""Errors of the differences are about its square, and rounding over it: 1e-8 of the information."""
MAX_WORK = 2e10
"""Cells of all trees together that are run for it: a minute or so."""


def standard_errors(net: MarkovParts) -> Array:
    """The standard error of each weight, in the order of the terms."""
    if net.penalty is not None or net.prior is not None:
        raise ModelError("standard errors are of maximum likelihood estimates: a penalty or a prior has moved this one")
    if not all(np.isfinite(f.log).all() for f in net.factors):
        raise ModelError(
            "some cells are expected never: the estimate is on the boundary, and its weights have no standard errors"
        )
    if not isinstance(net.objective, (Likelihood, MaxEntropy)):
        raise ModelError("standard errors are of maximum likelihood estimates, and this is none")
    terms = Terms.of(net.model, net.variables)
    contrasts = terms.contrasts.toarray()
    if net.n_parameters < contrasts.shape[1]:
        raise ModelError("some features are sums of others: their weights are not unique, and have no standard errors")
    contrasts = contrasts / terms.units[:, None]
    information = net.summary().weight * contrasts.T @ _curvature(terms, net, contrasts)
    covariance = np.linalg.pinv(information, hermitian=True, rcond=1e-11)
    return np.asarray(np.sqrt(np.maximum(((contrasts @ covariance) * contrasts).sum(axis=1), 0.0)))


def _curvature(terms: Terms, net: MarkovParts, contrasts: Array) -> Array:
    """∂ E[features] / ∂ free parameters: weights × free parameters. Factors beyond those of the model are a base measure."""
    number, own, base = {n: i for i, n in enumerate(terms.names)}, terms.network(), net.factors[len(terms.scopes) :]
    more = [([number[n] for n in f.names], NONE, np.ones(f.log.shape)) for f in base]
    tree = FactorTree(Network.of(own.sizes, [*own.factors(), *more]) if more else own, f"{len(terms.names)} variables")
    fixed = np.concatenate([np.zeros(0), *(f.log.reshape(-1) for f in base)])
    k = contrasts.shape[1]
    if 2.0 * k * tree.n_cells > MAX_WORK:
        raise TooLarge(f"standard errors of {k:,} parameters need {2 * k:,} runs of a tree of {tree.n_cells:.3g} cells: too many")
    columns = []
    for j in range(k):
        up, down = (
            tree(np.concatenate([terms.log_tables(net.flat_weights + s * STEP * contrasts[:, j]), fixed])).probs[: terms.n_cells]
            for s in (1.0, -1.0)
        )
        columns.append(terms.by_weight(up - down) / (2.0 * STEP))
    return np.column_stack(columns)
