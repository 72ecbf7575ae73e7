"""The penalised regressions of each variable on all others: what one kind of them must be able to do, and its kinds.

A kind of `NodeRegressions` says which columns it takes, holds what it needs of their rows, and fits all regressions at a matrix
of penalties, from the fits at a larger one. Of finite nodes, and of finite and real ones, nodes share passes over the rows, and
threads share the nodes: what is folded over the rows are products of columns, and the slopes of log-likelihoods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array
from suffice.basis.variables import Finite, Real, Variable
from suffice.engines.bitmaps import merge_equal_rows
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step
from suffice.engines.steps.blocks import in_order, n_threads
from suffice.errors import DataError, FitError, listing, note
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.graphs import Graph
from suffice.models.gaussian_markov_net import GaussianMarkovNet, fit_gaussian
from suffice.models.undirected.covariances import Covariances
from suffice.statistics import Statistics
from suffice.structure.undirected.coded_regression import CodedRegression, Measured, NodeColumns, Trial

TOLERANCE = 1e-10
"""The move of a scaled coefficient that ends the descent."""

MOST_SWEEPS = 10_000


@dataclass(frozen=True, eq=False)
class NodeFit:
    """All regressions at one penalty."""

    strengths: Array
    """Of each variable (row), how strong each other variable is in its regression: 0 where it is left out."""
    deviance: float
    """−2 log-likelihood, summed over the regressions, up to a constant."""
    n_parameters: int
    """How many coefficients are not zero."""
    objective: float
    """What was minimised, summed over the regressions."""
    coefficients: Any = None
    """What a kind needs to go on from here, or to predict."""
    gap: float = float("nan")
    """By how much the objective is above its minimum at most; NaN where that is not known."""


class NodeRegressions:
    """The regressions of one kind of columns, on some rows."""

    weight: float
    """The number of rows."""
    association: Array
    """Of each pair, the penalty from which both variables are out of each other's regression, while all others are out."""

    @classmethod
    def takes(cls, variables: Sequence[Variable]) -> bool:
        """Whether these columns are of the kind."""
        raise NotImplementedError

    @classmethod
    def of(cls, data: Data | Statistics, variables: Sequence[Variable], *, threads: int | None = None) -> NodeRegressions:
        """What the regressions need of the rows, in the order of the variables."""
        raise NotImplementedError

    def check(self) -> None:
        """Refuse columns of all rows that a sample of the rows may have."""

    def fit(self, penalty: Array, start: NodeFit | None = None) -> NodeFit:
        """All regressions at the penalties of the pairs, 0 for no penalty and ∞ for never, from those at other penalties."""
        raise NotImplementedError

    def held_out(self, fits: Sequence[NodeFit], test: Data) -> Array:
        """For each of these fits, the log-likelihood of other rows, summed over the regressions."""
        raise NotImplementedError

    def model(self, graph: Graph) -> Any:
        """A model of the graph that the regressions found, or None where this kind has none to give."""
        return None


class GaussianNodes(NodeRegressions):
    """Lassos of real columns, from their correlations alone."""

    def __init__(self, seen: Covariances) -> None:
        self.seen, self.weight, self.association = seen, seen.weight, seen.matrix

    @classmethod
    def takes(cls, variables: Sequence[Variable]) -> bool:
        return all(isinstance(v, Real) for v in variables)

    @classmethod
    def of(cls, data: Data | Statistics, variables: Sequence[Variable], *, threads: int | None = None) -> GaussianNodes:
        return cls(Covariances.of(data, [v.name for v in variables], on="correlation", threads=threads))

    def fit(self, penalty: Array, start: NodeFit | None = None) -> NodeFit:
        from suffice.numerics.kernels.regressions.undirected import node_lassos

        B = np.zeros_like(self.seen.matrix) if start is None else start.strengths.copy()
        if unsettled := node_lassos(self.seen.matrix, penalty, B, TOLERANCE, MOST_SWEEPS):
            note(
                f"{unsettled} of {len(B)} regressions did not settle in {MOST_SWEEPS:,} sweeps: the columns are nearly collinear"
            )
        left = np.maximum(self._residual(B, self.seen.matrix), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            deviance = float(self.weight * np.log(left).sum())
            size = float((penalty[B != 0.0] * np.abs(B[B != 0.0])).sum())
        return NodeFit(B, deviance, int(np.count_nonzero(B)), 0.5 * float(left.sum()) + size, B)

    def held_out(self, fits: Sequence[NodeFit], test: Data) -> Array:
        other = Covariances.of(test, self.seen.names, on="covariance", threads=1, checked=False)
        spread = self.seen.of_others(other)
        log_scale = 2.0 * float(np.log(self.seen.scale).sum())
        own = [np.maximum(self._residual(fit.strengths, self.seen.matrix), 0.0) for fit in fits]
        with np.errstate(divide="ignore"):
            each = [
                (LOG_2PI + np.log(s) + self._residual(fit.strengths, spread) / s).sum() + log_scale
                for fit, s in zip(fits, own, strict=True)
            ]
        return -0.5 * other.weight * np.array(each)

    def model(self, graph: Graph) -> GaussianMarkovNet:
        """The maximum likelihood estimate of the graph: covariance selection."""
        return fit_gaussian(graph, self.seen.moments)

    @staticmethod
    def _residual(B: Array, matrix: Array) -> Array:
        """The mean of (x_i − Σ_j b_ij x_j)² for each i, given the mean of x xᵀ."""
        C = np.eye(len(B)) - B
        return np.asarray(np.einsum("ij,jk,ik->i", C, matrix, C, optimize=True))


NUMBERS = 2**19
"""Numbers of all columns of some rows that are worked on at a time: they stay in the cache."""


@dataclass(frozen=True, eq=False)
class ColumnProducts(Step[Array]):
    """Σ w z zᵀ over rows: the sums of products of all columns."""

    columns: NodeColumns

    def of(self, block: Block) -> Array:
        total = np.zeros((int(self.columns.first[-1]),) * 2)
        for X, weight, _ in pieces(self.columns, block):
            total += X @ X.T if not len(weight) else (X * weight) @ X.T
        return total


class LossSlopes(NamedTuple):
    """Of some nodes, at their θ: −log-likelihoods, their gradients [code of the node, column], and second derivatives between the
    columns of each, as blocks [column, code, column, code]; a matrix without cells where they are not wanted."""

    loss: Array
    gradient: Array
    hessian: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class NodeSlopes(Step[LossSlopes]):
    """The slopes of the log-likelihoods of some finite nodes, summed over rows. Nodes of two states are first.

    Of each, θ has the active columns only: those that its neighbours may come from, and 0, the constant one, first.
    """

    columns: NodeColumns
    nodes: tuple[Trial, ...]

    def of(self, block: Block) -> LossSlopes:
        codes = np.cumsum([0, *(at.theta.shape[1] for at in self.nodes)])
        loss, gradient = np.zeros(len(self.nodes)), np.zeros((int(codes[-1]), int(self.columns.first[-1])))
        hessian = tuple(np.zeros((at.theta.size * at.curved,) * 2) for at in self.nodes)
        n_two = sum(at.theta.shape[1] == 1 for at in self.nodes)
        most = max(len(at.active) for at in self.nodes)
        space = np.empty(0)
        for X, weight, rows in pieces(self.columns, block):
            n = X.shape[1]
            space = space if space.size >= most * n else np.empty(most * n)  # new memory for each node costs more than the work
            residual = np.empty((int(codes[-1]), n))
            for i, at in enumerate(self.nodes):
                own = np.take(X, at.active, 0, out=space[: len(at.active) * n].reshape(-1, n), mode="clip")
                eta = np.dot(at.theta.T, own, out=residual[codes[i] : codes[i + 1]])
                if i < n_two:
                    self._two_states(own, weight, X[self.columns.at(at.node)], eta, loss[i : i + 1], hessian[i])
                else:
                    state = block.columns[self.columns.names[at.node]][rows]
                    loss[i] += self._many_states(own, weight, state, eta, at, hessian[i])
            gradient += residual @ X.T
        return LossSlopes(loss, gradient, hessian)

    @staticmethod
    def _two_states(own: Array, weight: Array, z: Array, eta: Array, loss: Array, hessian: Array) -> None:
        from suffice.numerics.kernels.regressions.undirected import two_states

        root = np.abs(eta)
        np.exp(np.negative(root, out=root), out=root)
        two_states(eta, z, weight, root, loss)
        if hessian.size:
            own *= root
            hessian += own @ own.T

    def _many_states(self, own: Array, weight: Array, state: npt.NDArray[Any], eta: Array, at: Trial, hessian: Array) -> float:
        from suffice.numerics.kernels.regressions.undirected import many_states

        n = len(eta)
        occur = self.columns.shares[at.node] > 0
        curvature = np.empty((n, n, eta.shape[1]))
        code = np.ascontiguousarray(self.columns.tables[at.node][occur])
        number = np.where(occur, np.cumsum(occur) - 1, -1)  # held-out rows may have states that no row had
        loss = float(many_states(eta, code, number[state], weight, curvature))
        if at.curved:
            blocks = hessian.reshape(len(own), n, len(own), n)
            for c in range(n):
                for d in range(n):
                    blocks[:, c, :, d] += (own * curvature[c, d]) @ own.T
        return loss


def pieces(columns: NodeColumns, block: Block) -> Iterator[tuple[Array, Array, slice]]:
    """The columns of some rows of a block at a time, their weights, none where all count once, and which rows they are."""
    n = max(256, NUMBERS // int(columns.first[-1]))
    for begin in range(0, block.n_rows, n):
        rows = slice(begin, begin + n)
        weight = np.empty(0) if block.weight is None else np.array(block.weight[rows])
        yield columns.numbers(block, rows), weight, rows


TOGETHER = 64
"""Nodes that share passes over rows that are near, at most. The number is fixed: products of matrices round by their size."""

STEPS = 200
"""Steps after which a regression is given up."""


class CodedNodes(NodeRegressions):
    """Group lassos of finite columns, or of finite and real ones, coded as numbers (`NodeColumns`), by passes over the rows."""

    def __init__(self, rows: Data, columns: NodeColumns, threads: int) -> None:
        self.rows, self.columns, self.threads, self.weight = rows, columns, threads, rows.weight
        self.products = self._products(rows)
        M, first = self.products, columns.first
        covered = (M - np.outer(M[0], M[0]))[1:, 1:] ** 2
        norms = np.sqrt(np.add.reduceat(np.add.reduceat(covered, first[:-1] - 1, axis=0), first[:-1] - 1, axis=1))
        self.association = norms / np.sqrt(np.outer(columns.sizes, columns.sizes))
        self._last: NodeFit | None = None
        self._nodes: list[CodedRegression] = []

    @classmethod
    def takes(cls, variables: Sequence[Variable]) -> bool:
        return all(isinstance(v, Finite | Real) for v in variables)

    @classmethod
    def of(cls, data: Data | Statistics, variables: Sequence[Variable], *, threads: int | None = None) -> CodedNodes:
        if isinstance(data, Statistics):
            raise DataError("regressions of finite columns pass over the rows again and again, and statistics have none")
        rows = data.select([v.name for v in variables])
        finite = [v for v in variables if isinstance(v, Finite)]
        few = merge_equal_rows(rows, finite) if len(finite) == len(variables) else None
        rows = (rows if few is None else few).hold()
        return cls(rows, NodeColumns.of(rows, variables, threads=threads), n_threads(threads))

    def check(self) -> None:
        flat = [name for name, constant in zip(self.columns.names, self.columns.constant, strict=True) if constant]
        if flat:
            raise DataError(f"these columns do not vary, and nothing can be told from them: {listing(flat)}; leave them out")

    def fit(self, penalty: Array, start: NodeFit | None = None) -> NodeFit:
        if start is None or start is not self._last:
            self._nodes = [CodedRegression(self.columns, i, self.products) for i in range(len(self.columns.names))]
        n_groups = -(-len(self._nodes) // TOGETHER) if self.rows.engine.near else 1
        groups = [self._nodes[k::n_groups] for k in range(n_groups)]
        inner = max(1, self.threads // n_groups)
        for _ in in_order((partial(self._minimise, group, penalty, inner) for group in groups), self.threads):
            pass
        self._last = self._node_fit()
        return self._last

    def held_out(self, fits: Sequence[NodeFit], test: Data) -> Array:
        """Nothing is said of a node in a state that no row had here: no penalty could foresee it."""
        rows = test.select(self.columns.names)
        products = np.empty((0, 0)) if all(self.columns.finite) else self._products(rows)
        return np.array([rows.weight * self._log_likelihood(fit.coefficients, rows, products) for fit in fits])

    def _products(self, rows: Data) -> Array:
        total: Array = rows.fold(ColumnProducts(self.columns), threads=self.threads, what="products of columns")
        return total / rows.weight

    def _minimise(self, nodes: Sequence[CodedRegression], penalty: Array, threads: int) -> None:
        going = list(nodes)
        for node in going:
            node.begin(penalty[node.node])
        for _ in range(STEPS):
            trials = [(node, trial) for node in going if (trial := node.trial()) is not None]
            going = [node for node, _ in trials]
            if not going:
                return
            folded = self._fold_finite(self.rows, [trial for node, trial in trials if node.finite], threads)
            for node, trial in trials:
                node.settle(folded[trial.node] if node.finite else squares(trial, node.own.start, node.products))
        raise FitError(
            f"the regression of {self.columns.names[going[0].node]!r} on the others did not converge in {STEPS} steps: a larger "
            "penalty is needed"
        )

    def _fold_finite(self, rows: Data, trials: Sequence[Trial], threads: int) -> dict[int, Measured]:
        """What rows say of finite nodes, in one pass for all; nodes of two states are first."""
        if not trials:
            return {}
        order = sorted(trials, key=lambda t: t.theta.shape[1] > 1)
        asked = tuple(t._replace(theta=t.theta[t.active]) for t in order)
        total = rows.fold(NodeSlopes(self.columns, asked), threads=threads)
        codes = np.cumsum([0, *(at.theta.shape[1] for at in asked)])
        slopes = [np.ascontiguousarray(total.gradient[a:b].T) for a, b in pairwise(codes.tolist())]
        n = rows.weight
        return {
            at.node: Measured(float(loss) / n, slope / n, hessian / n)
            for at, loss, slope, hessian in zip(asked, total.loss, slopes, total.hessian, strict=True)
        }

    def _node_fit(self) -> NodeFit:
        """Where all nodes are. The strength of two variables with one number each is that number, with its sign."""
        nodes, size = self._nodes, self.columns.sizes
        strengths = np.array([node.norms(node.theta) for node in nodes])
        single = np.flatnonzero(size == 1)
        for i in single.tolist():
            strengths[i, single] = nodes[i].theta[self.columns.first[single], 0]
        losses = np.array([node.loss for node in nodes])
        deviance = -2.0 * self.weight * float(self._normal(losses, losses).sum())
        objective = float(losses.sum()) + sum(node.price(node.theta) for node in nodes)
        effects = CodedEffects(self.columns, tuple(node.here() for node in nodes), losses)
        return NodeFit(strengths, deviance, sum(node.n_parameters for node in nodes), objective, effects)

    def _normal(self, losses: Array, own: Array) -> Array:
        """The mean of ln p of each node from its losses: of a real one, in standard units, at the variance of its `own` loss."""
        plain = np.array(self.columns.finite) | np.array(self.columns.constant)  # of one value there is nothing to say
        variance = np.where(plain, 1.0, 2.0 * own)  # in units of four variances
        return -np.where(plain, losses, 0.5 * np.log(8.0 * np.pi * variance) + losses / variance)

    def _log_likelihood(self, effects: CodedEffects, rows: Data, products: Array) -> float:
        """The mean of ln p of other rows, summed over the nodes."""
        folded = self._fold_finite(rows, [t for t in effects.nodes if self.columns.finite[t.node]], self.threads)
        losses = [
            folded[t.node].loss if t.node in folded else squares(t, int(self.columns.first[t.node]), products).loss
            for t in effects.nodes
        ]
        return float(self._normal(np.array(losses), effects.losses).sum())


class CodedEffects:
    """What the regressions of coded columns have found: θ[column, code] of each node, in the codes of `NodeColumns`."""

    def __init__(self, columns: NodeColumns, nodes: tuple[Trial, ...], losses: Array) -> None:
        self.columns, self.nodes, self.losses = columns, nodes, losses

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns.names)

    def intercept(self, node: str) -> Array:
        """h of a node, one number for each of its codes."""
        return np.asarray(self.nodes[self.columns.names.index(node)].theta[0])

    def effect(self, node: str, neighbour: str) -> Array:
        """Θ [code of the neighbour, code of the node]."""
        names = self.columns.names
        return np.asarray(self.nodes[names.index(node)].theta[self.columns.at(names.index(neighbour))])


def squares(trial: Trial, own: int, M: Array) -> Measured:
    """½ of the mean squared error of a real node, the column `own`, from the mean products of columns."""
    at, theta = trial.active, trial.theta[trial.active, 0]
    slope = M[:, at] @ theta - M[:, own]
    loss = 0.5 * float(M[own, own] + theta @ (slope[at] - M[at, own]))
    return Measured(loss, slope[:, None], np.ascontiguousarray(M[np.ix_(at, at)]))
