"""Gaussian Markov networks: a normal distribution whose precision is zero where its graph has no edge."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.basis.blas import one_blas_thread
from suffice.basis.libraries import sc
from suffice.basis.output.display import Rows, and_more
from suffice.basis.pictures import Picture
from suffice.basis.variables import Real
from suffice.errors import DataError, MissingCells, ModelError, nearest
from suffice.families.by_hand import Gaussian
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.families.gathering import complete_rows
from suffice.graphs import Graph
from suffice.graphs.undirected import GraphLike, perfect_order
from suffice.models.networks import BayesNet
from suffice.models.undirected.covariances import Covariances, covariance_of, refuse_other_kinds, selected_precision
from suffice.models.undirected.twin import Undirected
from suffice.numerics.inference.finite.network import Array
from suffice.numerics.inference.numbers.sparse_precision import SparsePrecision
from suffice.statistics import Moments, Request, Statistics
from suffice.statistics.counts import freeze

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike


class GaussianMarkovNet(Undirected[BayesNet]):
    """A Gaussian Markov network. `fit` makes one from a `Graph` and real columns, `search` by `GraphicalLasso`; this makes one
    from numbers: the precision and the mean, in the order of the graph's nodes, which is that of their names.

    It is asked as a `BayesNet` is: `query`, `marginals`, `most_probable`, `predict`, `impute`, `log_prob`, `sample`.

    >>> net = GaussianMarkovNet("a -- b; c", [[2.0, -1.0, 0.0], [-1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    >>> net.covariance.round(3)
    array([[0.667, 0.333, 0.   ],
           [0.333, 0.667, 0.   ],
           [0.   , 0.   , 1.   ]])
    >>> round(net.partial_correlations["a", "b"], 6), net.n_parameters
    (0.5, 7)
    >>> round(net.query("a", given={"b": 1.0}).mean, 6)
    0.5
    """

    file_kind = "gaussian_markov_net"
    _word = "graph"
    graph: Graph
    mean: Array
    """E x, in the order of `names`."""
    precision: Array
    """The inverse of the covariance, zero where there is no edge; in the order of `names`."""
    covariance: Array
    """The inverse of the precision."""

    def __init__(self, graph: GraphLike, precision: npt.ArrayLike, mean: npt.ArrayLike | None = None) -> None:
        own = Graph(graph)
        n = len(own.nodes)
        matrix, centre = np.array(precision, np.float64), np.zeros(n) if mean is None else np.array(mean, np.float64)
        if matrix.shape != (n, n) or centre.shape != (n,):
            raise ModelError(f"a graph of {n} nodes needs a precision of {n} by {n} and a mean of {n} numbers")
        if not (np.isfinite(matrix).all() and np.isfinite(centre).all()):
            raise ModelError("a precision and a mean are finite numbers")
        if not np.allclose(matrix, matrix.T, rtol=1e-10, atol=0.0):
            raise ModelError("a precision matrix is symmetric")
        matrix = (matrix + matrix.T) / 2.0
        allowed = joined_in(own) | np.eye(n, dtype=bool)
        for i, j in np.argwhere((matrix != 0.0) & ~allowed).tolist():
            raise ModelError(
                f"{own.nodes[i]!r} and {own.nodes[j]!r} have no edge, so that their precision is 0, not {matrix[i, j]:g}"
            )
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            raise ModelError("a precision matrix is positive definite, and this one is not") from None
        inverse = np.linalg.inv(matrix)
        vars(self).update(vars(self.of(own, matrix, (inverse + inverse.T) / 2.0, centre)))

    @classmethod
    def of(
        cls, graph: Graph, precision: Array, covariance: Array, mean: Array, penalty: Any = None, **provenance: Any
    ) -> GaussianMarkovNet:
        """A network from finished numbers; the way in for `fit`, `search` and readers of files."""
        matrices = {"precision": precision, "covariance": covariance, "mean": mean}
        own = {name: freeze(np.array(x)) for name, x in matrices.items()}
        variables = MappingProxyType({name: Real(name) for name in graph.nodes})
        return cls._made_of({**own, "graph": graph, "variables": variables, "penalty": penalty}, **provenance)

    @property
    def model(self) -> Graph:
        """What `fit` takes to estimate it again: its graph."""
        return self.graph

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the order of the matrices: sorted."""
        return self.graph.nodes

    def _scene(self) -> Picture:
        return self.graph._scene().weigh_edges(self.partial_correlations, "partial correlation", most=1.0)

    @property
    def partial_correlations(self) -> dict[tuple[str, str], float]:
        """The correlation of the two variables of each edge, given all others: −θ_ij / √(θ_ii θ_jj)."""
        matrix, number = partial_correlations(self.precision), {x: i for i, x in enumerate(self.names)}
        return {(a, b): float(matrix[number[a], number[b]]) for a, b in self.graph.edges}

    @property
    def n_parameters(self) -> int:
        """A mean and a variance for each variable, and a number for each edge."""
        return 2 * len(self.names) + len(self.graph.edges)

    def _to_directed(self) -> BayesNet:
        """Along a perfect order of the triangulated graph: with Θ = L Lᵀ in this order, x_i given those after it has the
        coefficients −L_ji / L_ii and the variance 1 / L_ii², and L is zero where the triangulation has no edge."""
        triangulated = self.graph.triangulated()
        order = perfect_order({x: triangulated.neighbours(x) for x in triangulated.nodes})
        number = {x: i for i, x in enumerate(self.names)}
        at = np.array([number[x] for x in order], np.int64)
        L, mean = np.linalg.cholesky(self.precision[np.ix_(at, at)]), self.mean[at]
        place = {x: i for i, x in enumerate(order)}
        parents, cpds = dict[str, list[str]](), dict[str, Gaussian]()
        for i, x in enumerate(order):
            parents[x] = [y for y in triangulated.neighbours(x) if place[y] > i]
            weights = {y: float(-L[place[y], i] / L[i, i]) for y in parents[x]}
            centre = float(mean[i] - sum(w * mean[place[y]] for y, w in weights.items()))
            cpds[x] = Gaussian(centre, weights, variance=float(L[i, i] ** -2.0))
        return BayesNet(parents, cpds, variables=list(self.variables.values()))

    @one_blas_thread
    def log_likelihood(self, data: RowsLike | Statistics | None = None) -> float:
        """Σ ln p(row) over the data, from its moments alone; without data, over what the network was fitted from.

        Where cells are missing: Σ ln p(the cells of a row that are there).
        """
        try:
            moments = self.summary(data).moments((), self.names)
        except MissingCells:
            return self.directed.log_likelihood(data)
        off = moments.mean[0] + moments.rest[0] - self.mean
        spread = float(np.vdot(self.precision, covariance_of(moments))) + float(off @ self.precision @ off)
        return 0.5 * moments.total * (self._log_det - spread - len(self.names) * LOG_2PI)

    @property
    def _log_det(self) -> float:
        return float(np.linalg.slogdet(self.precision)[1])

    def summary(self, data: RowsLike | Statistics | None = None) -> Statistics:
        """The moments of data, which is all that this network needs of it."""
        if data is None:
            if self.statistics is None:
                raise ModelError("this network was not fitted from data: give the data")
            return self.statistics
        return moments_of(self.names, data)

    @property
    def deviance(self) -> float:
        """2 (log-likelihood of the complete graph − that of this one), on the rows it was fitted from.

        Infinite where these are too few for a complete graph.
        """
        moments = self.summary().moments((), self.names)
        sign, log_det = np.linalg.slogdet(covariance_of(moments))
        if sign <= 0 or moments.total <= len(self.names):
            return float("inf")
        saturated = -0.5 * moments.total * (float(log_det) + len(self.names) * (1.0 + LOG_2PI))
        return max(2.0 * (saturated - self.log_likelihood()), 0.0)

    @property
    def df(self) -> int:
        """How many edges the graph lacks."""
        n = len(self.names)
        return n * (n - 1) // 2 - len(self.graph.edges)

    @property
    def p_value(self) -> float:
        """P(χ² of `df` degrees of freedom ≥ deviance); NaN of a complete graph."""
        return float(sc.chdtrc(self.df, self.deviance)) if self.df else float("nan")

    def entropy(self) -> float:
        """H(p) in nats."""
        return 0.5 * (len(self.names) * (1.0 + LOG_2PI) - self._log_det)

    def __eq__(self, other: object) -> bool:
        """Same graph, same numbers."""
        if not isinstance(other, GaussianMarkovNet):
            return NotImplemented
        same = np.array_equal(self.precision, other.precision) and np.array_equal(self.mean, other.mean)
        return self.graph == other.graph and same

    __hash__ = None  # type: ignore[assignment]

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        found = self.partial_correlations
        facts = [(f"{a} -- {b}", f"{x:.4g}") for (a, b), x in list(found.items())[:limit]]
        return [(["edge", "partial correlation"], facts)], and_more(len(found) - limit, "edge")


def fit_gaussian(graph: Graph, data: Any) -> GaussianMarkovNet:
    """Covariance selection: the maximum likelihood estimate of a graph of real columns, from their moments alone."""
    seen = moments_of(graph.nodes, data)
    scaled = Covariances.of(seen, graph.nodes, on="correlation", given=isinstance(data, (Statistics, Moments)))
    found = selected_precision(graph, scaled)
    how = "closed form" if graph.is_decomposable else f"{len(found.steps)} Newton steps"
    return in_data_units(graph, scaled, found, f"maximum likelihood of {seen.weight:,.10g} rows, covariance selection: {how}")


def in_data_units(graph: Graph, seen: Covariances, found: SparsePrecision, info: str, penalty: Any = None) -> GaussianMarkovNet:
    """The network, in the units of the data, of a precision that was found on another scale."""
    scale = np.outer(seen.scale, seen.scale)
    numbers = found.precision / scale, found.covariance * scale, seen.mean
    statistics = None if seen.moments is None else Statistics([seen.moments], seen.weight)
    return GaussianMarkovNet.of(graph, *numbers, statistics=statistics, fit_info=info, penalty=penalty)


def moments_of(names: Sequence[str], data: Any) -> Statistics:
    """The moments of these columns together, of rows or of statistics that hold them."""
    if isinstance(data, (Statistics, Moments)):
        held = Statistics([data], data.total) if isinstance(data, Moments) else data
        for name in names:
            if name not in held.variables:
                raise DataError(f"the statistics do not speak of {name!r}, which the graph names{nearest(name, held.variables)}")
        refuse_other_kinds([held.variables[name] for name in names], "a Gaussian graph", "log-linear models are for finite ones")
        return held
    rows = complete_rows(data, names, {name: Real(name) for name in names})
    gathered: Statistics = rows.gather([Request((), tuple(names))])
    return gathered


def joined_in(graph: Graph) -> npt.NDArray[np.bool_]:
    """Which pairs of nodes have an edge, as a symmetric matrix in the order of the nodes."""
    number = {x: i for i, x in enumerate(graph.nodes)}
    matrix = np.zeros((len(number), len(number)), bool)
    for a, b in graph.edges:
        matrix[number[a], number[b]] = matrix[number[b], number[a]] = True
    return matrix


def partial_correlations(precision: Array) -> Array:
    """−θ_ij / √(θ_ii θ_jj), and 1 on the diagonal."""
    scale = np.sqrt(np.diag(precision))
    matrix: Array = -precision / scale[:, None] / scale + 0.0
    np.fill_diagonal(matrix, 1.0)
    return matrix
