"""Covariances of real columns, from their moments: what a Gaussian method works on, and what it refuses.

Covariance selection is the maximum likelihood estimate of a Gaussian whose precision is zero where a graph has no edge. Its
covariance is that of the rows within each clique (Dempster 1972). Of a decomposable graph it has a closed form,

    Θ = Σ_cliques [S_C⁻¹] − Σ_separators [S_D⁻¹],   [·] filled up with zeros (Lauritzen 1996, p. 146),

of others it is found by Newton steps on the entries of the edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.variables import Finite, Real, Variable
from suffice.engines.data import Data
from suffice.errors import DataError, FitError, listing
from suffice.errors.remedies import LASSO, Remedy
from suffice.graphs import Graph
from suffice.numerics.exponential.normals.lines import too_large
from suffice.numerics.inference.finite.network import Array
from suffice.numerics.inference.numbers.sparse_precision import SparsePrecision, sparse_precision
from suffice.statistics import Moments, Request, Statistics

ROUNDING = 1e-12
"""Correlations that differ from ±1 by less are those of copies; eigenvalues of a covariance, relative to the largest, that are as
far below zero are not negative."""


@dataclass(frozen=True, eq=False)
class Covariances:
    """The matrix of some columns, divided by `scale` on both sides: their correlations, or with scale 1 their covariances."""

    names: tuple[str, ...]
    weight: float
    mean: Array
    scale: Array
    matrix: Array
    moments: Moments | None = None
    """What they were made of."""

    @staticmethod
    def of(
        data: Data | Statistics,
        names: Sequence[str],
        *,
        on: str,
        threads: int | None = None,
        checked: bool = True,
        given: bool | None = None,
    ) -> Covariances:
        """By the moments of the rows, or of statistics that hold them; what has no finite precision is refused. `given`: whether
        someone may have written the moments by hand, so that they may be those of no rows. Without `checked`, and a scale of 1,
        also of rows that are only to be compared with others."""
        statistics = data if isinstance(data, Statistics) else data.gather([Request((), tuple(names))], threads=threads)
        moments = statistics.moments((), tuple(names))
        matrix = covariance_of(moments)
        plain = Covariances(tuple(names), moments.total, moments.mean[0] + moments.rest[0], np.ones(len(names)), matrix)
        if not checked:
            return plain
        if isinstance(data, Statistics) if given is None else given:
            refuse_indefinite(matrix, names)
        deviation = refuse_constant(matrix, names, moments.total)
        correlations = matrix / deviation[:, None] / deviation
        refuse_copies(correlations, names)
        if on != "correlation":
            return replace(plain, matrix=np.ascontiguousarray(matrix), moments=moments)
        np.fill_diagonal(correlations, 1.0)
        return replace(plain, scale=deviation, matrix=np.ascontiguousarray(correlations), moments=moments)

    def of_others(self, other: Covariances) -> Array:
        """The mean of (x − mean)(x − mean)ᵀ over other rows, with this mean and on this scale."""
        ratio, off = other.scale / self.scale, (other.mean - self.mean) / self.scale
        return np.asarray(other.matrix * ratio[:, None] * ratio + np.outer(off, off))


def covariance_of(moments: Moments) -> Array:
    """Σ w (x − mean)(x − mean)ᵀ / Σ w: the maximum likelihood estimate."""
    if not len(moments.keys) or moments.total <= 0:
        raise DataError("there are no rows to learn a graph from")
    return np.asarray(moments.scatter[0] / moments.total)


def refuse_other_kinds(variables: Sequence[Variable], method: str, instead: str) -> None:
    """Refuse columns that are not real, by name."""
    if finite := [v.name for v in variables if isinstance(v, Finite)]:
        verb = "is finite" if len(finite) == 1 else "are finite"
        raise FitError(f"{method} is for real columns, and {listing(finite)} {verb}: {instead}")
    if counts := [v.name for v in variables if not isinstance(v, (Finite, Real))]:
        raise FitError(
            f"{method} is for real columns, and {listing(counts)} are counts: declare them real, "
            f"{Remedy('variables={name: Real}', '--real NAME')}"
        )


def refuse_indefinite(matrix: Array, names: Sequence[str]) -> None:
    """Refuse what is no covariance matrix: moments may have been written by hand."""
    if not np.isfinite(matrix).all():
        raise DataError(f"the covariance of {listing(names)} has entries that are not finite")
    if np.abs(matrix - matrix.T).max(initial=0.0) > ROUNDING * np.abs(matrix).max(initial=0.0):
        i, j = np.unravel_index(np.argmax(np.abs(matrix - matrix.T)), matrix.shape)
        a, b = names[int(i)], names[int(j)]
        raise DataError(f"a covariance matrix is symmetric, but that of {a!r} and {b!r} is {matrix[i, j]:g} and {matrix[j, i]:g}")
    slack = 1e-9 * np.abs(np.diag(matrix)).max(initial=0.0)
    try:
        np.linalg.cholesky(matrix + (slack or 1.0) * np.eye(len(matrix)))  # much quicker than eigenvalues
    except np.linalg.LinAlgError:
        least = float(np.linalg.eigvalsh(matrix)[0])
        raise DataError(f"a covariance matrix is positive semi-definite, but this one has the eigenvalue {least:.6g}") from None


def refuse_constant(matrix: Array, names: Sequence[str], weight: float) -> Array:
    """The standard deviations, none of which may be zero, nor beyond the largest double."""
    if weight < 2:
        raise DataError("one row has no variance: a Gaussian graph needs more rows")
    if endless := [name for name, own in zip(names, np.diag(matrix), strict=True) if not np.isfinite(own)]:
        raise too_large(endless[0])
    deviation: Array = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    if constant := [name for name, s in zip(names, deviation, strict=True) if not s > 0.0]:
        which = f"all values of {listing(constant)} are the same" if len(constant) == 1 else f"{listing(constant)} are constant"
        raise FitError(f"{which}: a column without variance has an infinite precision, and no partial correlation; leave it out")
    return deviation


def refuse_copies(correlations: Array, names: Sequence[str]) -> None:
    """Refuse columns that are linear functions of each other."""
    pairs = np.argwhere(np.triu(np.abs(correlations), 1) >= 1.0 - ROUNDING)
    if len(pairs):
        shown = listing([f"{names[i]!r} and {names[j]!r}" for i, j in pairs.tolist()], 4, "str")
        raise FitError(
            f"{shown} have a correlation of ±1, each is a copy of the other: the partial correlation of such columns is "
            "infinite; leave one of them out"
        )


COLLINEAR = 1e-12
"""The part of a column's variance below which what the others leave of it is rounding."""
NO_END = 1e-6
"""A duality gap, per variable, that tells that there is no maximum of the likelihood."""


@one_blas_thread
def selected_precision(graph: Graph, seen: Covariances) -> SparsePrecision:
    """The precision of a graph over the columns, on their scale; what has no estimate is refused."""
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
    return SparsePrecision(precision, (covariance + covariance.T) / 2.0, log_det, len(precision) - log_det, 0.0, (), True)


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
    rest = seen.matrix[np.ix_(at, at)] / scale[:, None] / scale
    for k in range(len(rest)):  # the pivots of Cholesky's factor are what of each variance the variables before leave
        if rest[k, k] <= COLLINEAR:
            raise FitError(
                f"{clique[k]!r} is a linear function of {listing(clique[:k], 6)}, to which it is joined: their partial "
                "correlations are infinite; leave one of these columns out"
            )
        rest[k + 1 :, k + 1 :] -= np.outer(rest[k + 1 :, k], rest[k, k + 1 :]) / rest[k, k]


def _is_definite(seen: Covariances) -> bool:
    """Whether no column is a linear function of the others."""
    scale = np.sqrt(np.diag(seen.matrix))
    try:
        factor = np.linalg.cholesky(seen.matrix / scale[:, None] / scale)
    except np.linalg.LinAlgError:
        return False
    return seen.weight > len(scale) and float(np.diag(factor).min()) ** 2 > COLLINEAR
