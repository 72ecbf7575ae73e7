"""The regressions of finite nodes, and of finite and real ones: nodes share passes over the rows, and threads share the nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from suffice.engines.bitmaps import merge_equal_rows
from suffice.engines.data import Data
from suffice.engines.steps.parallel import in_order, n_threads
from suffice.errors import DataError, FitError, listing
from suffice.statistics import Statistics
from suffice.structure.undirected.coded_regression import CodedRegression, Measured, Trial
from suffice.structure.undirected.node_columns import Array, NodeColumns
from suffice.structure.undirected.node_regressions import NodeFit, NodeRegressions
from suffice.structure.undirected.node_steps import ColumnProducts, NodeAt, NodeSlopes
from suffice.variables import Finite, Real, Variable

TOGETHER = 64
"""Nodes that share passes over rows that are near, at most. The number is fixed: products of matrices round by their size."""

STEPS = 200
"""Steps after which a regression is given up."""


class CodedNodes(NodeRegressions):
    """Group lassos of finite columns, or of finite and real ones, coded as numbers (see `node_columns`), by passes over the rows.

    >>> from suffice import scan
    >>> data = scan({"a": list("uuuuvvvv") * 9, "b": list("uuuvvvvu") * 9, "c": list("uv") * 36})
    >>> nodes = CodedNodes.of(data, list(data.schema.values()))
    >>> nodes.fit(np.full((3, 3), 0.05)).strengths.round(3)
    array([[0.   , 1.238, 0.   ],
           [1.238, 0.   , 0.   ],
           [0.   , 0.   , 0.   ]])
    """

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
        rows = data.take([v.name for v in variables])
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
        self._last = self._fitted()
        return self._last

    def held_out(self, fits: Sequence[NodeFit], test: Data) -> Array:
        """Nothing is said of a node in a state that no row had here: no penalty could foresee it."""
        rows = test.take(self.columns.names)
        products = np.empty((0, 0)) if all(self.columns.finite) else self._products(rows)
        return np.array([rows.weight * float(self._log_likelihoods(fit.coefficients, rows, products).sum()) for fit in fits])

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
            folded = self._folded(self.rows, [trial for node, trial in trials if node.finite], threads)
            for node, trial in trials:
                node.settle(folded[trial.node] if node.finite else squares(trial, node.own.start, node.products))
        raise FitError(
            f"the regression of {self.columns.names[going[0].node]!r} on the others did not converge in {STEPS} steps: a larger "
            "penalty is needed"
        )

    def _folded(self, rows: Data, trials: Sequence[Trial], threads: int) -> dict[int, Measured]:
        """What rows say of finite nodes, in one pass for all; nodes of two states are first."""
        if not trials:
            return {}
        order = sorted(trials, key=lambda t: t.theta.shape[1] > 1)
        asked = tuple(NodeAt(t.node, t.active, t.theta[t.active], t.curved) for t in order)
        total = rows.fold(NodeSlopes(self.columns, asked), threads=threads)
        codes = np.cumsum([0, *(at.theta.shape[1] for at in asked)])
        slopes = [np.ascontiguousarray(total.gradient[a:b].T) for a, b in pairwise(codes.tolist())]
        n = rows.weight
        return {
            at.node: Measured(float(loss) / n, slope / n, hessian / n)
            for at, loss, slope, hessian in zip(asked, total.loss, slopes, total.hessian, strict=True)
        }

    def _fitted(self) -> NodeFit:
        """Where all nodes are. The strength of two variables with one number each is that number, with its sign."""
        nodes, size = self._nodes, self.columns.sizes
        strengths = np.array([node.norms(node.theta) for node in nodes])
        single = np.flatnonzero(size == 1)
        for i in single.tolist():
            strengths[i, single] = nodes[i].theta[self.columns.first[single], 0]
        losses = np.array([node.loss for node in nodes])
        return NodeFit(
            strengths,
            -2.0 * self.weight * float(self._normal(losses, losses).sum()),
            sum(node.n_parameters for node in nodes),
            float(losses.sum()) + sum(node.price(node.theta) for node in nodes),
            CodedEffects(self.columns, tuple(node.here() for node in nodes), losses),
        )

    def _normal(self, losses: Array, own: Array) -> Array:
        """The mean of ln p of each node from its losses: of a real one, in standard units, at the variance of its `own` loss."""
        plain = np.array(self.columns.finite) | np.array(
            self.columns.constant
        )  # of a column of one value there is nothing to say
        variance = np.where(plain, 1.0, 2.0 * own)  # in units of four variances
        return -np.where(plain, losses, 0.5 * np.log(8.0 * np.pi * variance) + losses / variance)

    def _log_likelihoods(self, effects: CodedEffects, rows: Data, products: Array) -> Array:
        """The mean of ln p of each node, of other rows."""
        folded = self._folded(rows, [t for t in effects.nodes if self.columns.finite[t.node]], self.threads)
        losses = [
            folded[t.node].loss if t.node in folded else squares(t, int(self.columns.first[t.node]), products).loss
            for t in effects.nodes
        ]
        return self._normal(np.array(losses), effects.losses)


class CodedEffects:
    """What the regressions of coded columns have found: θ[column, code] of each node, in the codes of `node_columns`."""

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
