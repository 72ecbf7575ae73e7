"""Covariance selection: the maximum likelihood estimate of a Gaussian whose precision is zero where a graph has no edge.

Its covariance is that of the rows within each clique (Dempster 1972). Of a decomposable graph it has a closed form,

    Θ = Σ_cliques [S_C⁻¹] − Σ_separators [S_D⁻¹],   [·] filled up with zeros (Lauritzen 1996, p. 146),

of others it is found by Newton steps on the entries of the edges.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.errors import FitError, listing
from suffice.errors.remedies import LASSO
from suffice.graphs import Graph
from suffice.inference.finite.network import Array
from suffice.inference.numbers.sparse_precision import SparsePrecision, sparse_precision
from suffice.models.undirected.covariances import Covariances

COLLINEAR = 1e-12
"""The part of a column's variance below which what the others leave of it is rounding."""

NO_END = 1e-6
"""A duality gap, per variable, that tells that there is no maximum of the likelihood."""


@one_blas_thread
def selected_precision(graph: Graph, seen: Covariances) -> SparsePrecision:
    """The precision of a graph over the columns, on their scale; what has no estimate is refused.

    >>> matrix = np.array([[1.0, 0.5, 0.4], [0.5, 1.0, 0.5], [0.4, 0.5, 1.0]])
    >>> seen = Covariances(("a", "b", "c"), 10.0, np.zeros(3), np.ones(3), matrix)
    >>> selected_precision(Graph("a -- b -- c"), seen).covariance.round(6)
    array([[1.  , 0.5 , 0.25],
           [0.5 , 1.  , 0.5 ],
           [0.25, 0.5 , 1.  ]])
    """
    number = {name: i for i, name in enumerate(seen.names)}
    if not _is_definite(seen):  # or else there are estimates of all graphs, whose cliques need not be looked at
        for clique in graph.cliques():
            refuse_dependent(seen, clique, [number[x] for x in clique])
    if not graph.is_decomposable:
        return _by_newton(graph, seen, number)
    precision, log_det = np.zeros_like(seen.matrix), 0.0
    for sign, sets in ((1.0, graph.perfect_sequence()), (-1.0, graph.separators())):
        for names in sets:
            at = np.array([number[x] for x in names], np.int64)
            block = seen.matrix[np.ix_(at, at)]
            precision[np.ix_(at, at)] += sign * np.linalg.inv(block)
            log_det -= sign * float(np.linalg.slogdet(block)[1])
    precision = (precision + precision.T) / 2.0
    covariance = np.linalg.inv(precision)
    objective = len(precision) - log_det
    return SparsePrecision(precision, (covariance + covariance.T) / 2.0, log_det, objective, 0.0, (), True)


def _by_newton(graph: Graph, seen: Covariances, number: dict[str, int]) -> SparsePrecision:
    penalty = np.full_like(seen.matrix, np.inf)
    np.fill_diagonal(penalty, 0.0)
    for a, b in graph.edges:
        penalty[number[a], number[b]] = penalty[number[b], number[a]] = 0.0
    found = sparse_precision(seen.matrix, penalty, gap=1e-12, more=1)
    if not found.gap <= NO_END * len(seen.names):
        raise FitError(
            f"the likelihood of this graph has no maximum that could be found from {seen.weight:g} rows (the duality gap stays "
            f"at {found.gap:.3g}): fewer edges, more rows or a penalty, as of GraphicalLasso, make one"
        )
    return found


def refuse_dependent(seen: Covariances, clique: Sequence[str], at: Sequence[int]) -> None:
    """Refuse a clique whose columns, or too few rows, make its covariance singular."""
    if seen.weight <= len(clique):
        raise FitError(
            f"{listing(clique, 4)} are {len(clique)} variables that are all joined to each other, and {seen.weight:g} rows are "
            f"too few for their covariance, which needs at least {len(clique) + 1}: a penalty is needed, "
            f"{LASSO}, or a graph with fewer edges"
        )
    scale = np.sqrt(np.diag(seen.matrix)[at])
    left = _left_by_those_before(seen.matrix[np.ix_(at, at)] / scale[:, None] / scale)
    if left.min() <= COLLINEAR:
        k = int(np.argmax(left <= COLLINEAR))
        raise FitError(
            f"{clique[k]!r} is a linear function of {listing(clique[:k], 6)}, to which it is joined: their partial correlations "
            "are infinite; leave one of these columns out"
        )


def _is_definite(seen: Covariances) -> bool:
    """Whether no column is a linear function of the others."""
    scale = np.sqrt(np.diag(seen.matrix))
    try:
        factor = np.linalg.cholesky(seen.matrix / scale[:, None] / scale)
    except np.linalg.LinAlgError:
        return False
    return seen.weight > len(scale) and float(np.diag(factor).min()) ** 2 > COLLINEAR


def _left_by_those_before(correlations: Array) -> Array:
    """What of each variance the variables before leave: the pivots of Cholesky's factor, as far as they are positive."""
    rest = correlations.copy()
    left = np.ones(len(rest))
    for k in range(len(rest)):
        left[k] = rest[k, k]
        if left[k] <= COLLINEAR:
            break
        rest[k + 1 :, k + 1 :] -= np.outer(rest[k + 1 :, k], rest[k, k + 1 :]) / left[k]
    return left
