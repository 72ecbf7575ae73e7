"""The regressions of all nodes on all others: nodes share passes over the rows, and threads share the nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from suffice.engines.bitmaps import merged
from suffice.engines.data import Data
from suffice.engines.parallel import in_order, n_threads
from suffice.errors import FitError
from suffice.structure.methods.node_columns import Array, NodeColumns
from suffice.structure.methods.node_regression import Measured, NodeRegression, Trial
from suffice.structure.methods.node_steps import NodeAt, NodeSlopes, Products
from suffice.variables import Finite, Variable

TOGETHER = 64
"""Nodes that share passes over rows that are near, at most. The number is fixed: products of matrices round by their size."""

STEPS = 200
"""Steps after which a regression is given up."""


class NodeRegressions:
    """The regressions of each of some variables on all others, under one penalty after the other, best from the largest down.

    `prices[i, j]` multiplies the penalty of j in the regression of i: 0 of an edge that must be there, infinity of one that must
    not.

    >>> from suffice.engines import scan
    >>> data = scan({"a": list("uuuuvvvv") * 9, "b": list("uuuvvvvu") * 9, "c": list("uv") * 36})
    >>> nodes = NodeRegressions(data, list(data.schema.values()))
    >>> nodes.move_to(0.05)
    >>> nodes.strengths().round(3)
    array([[0.   , 1.238, 0.   ],
           [1.238, 0.   , 0.   ],
           [0.   , 0.   , 0.   ]])
    """

    def __init__(
        self,
        data: Data,
        variables: Sequence[Variable],
        *,
        prices: Array | None = None,
        threads: int | None = None,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        self.threads, self.watch, self.penalty = n_threads(threads), watch, np.inf
        rows = data.take([v.name for v in variables])
        finite = [v for v in variables if isinstance(v, Finite)]
        few = merged(rows, finite) if len(finite) == len(variables) else None
        self.rows = (rows if few is None else few).hold()
        self.columns = NodeColumns.of(self.rows, variables, threads=threads)
        self.weight = self.rows.weight
        products = self._products(self.rows)
        price = np.ones((len(variables),) * 2) if prices is None else prices
        self.nodes = [NodeRegression(self.columns, i, products, price[i]) for i in range(len(variables))]

    def _products(self, rows: Data) -> Array:
        total: Array = rows.fold(Products(self.columns), threads=self.threads, what="products of columns")
        return total / rows.weight

    @property
    def most(self) -> float:
        """The least penalty under which no node has a neighbour."""
        return max(node.most for node in self.nodes)

    def move_to(self, penalty: float) -> None:
        """Go to the minimum under a penalty, from where each regression is."""
        self.penalty = penalty
        n_groups = -(-len(self.nodes) // TOGETHER) if self.rows.engine.near else 1
        groups = [self.nodes[k::n_groups] for k in range(n_groups)]
        inner = max(1, self.threads // n_groups)
        for _ in in_order((partial(self._minimise, group, inner) for group in groups), self.threads):
            self.watch()

    def strengths(self) -> Array:
        """‖Θ_ij‖ [node, neighbour]; of two variables with one number each, that number with its sign."""
        size = self.columns.sizes
        result = np.zeros((len(size),) * 2)
        for i, node in enumerate(self.nodes):
            result[i] = node.norms(node.theta)
            if size[i] == 1:
                single = np.flatnonzero(size == 1)
                result[i, single] = node.theta[self.columns.first[single], 0]
        return result

    @property
    def losses(self) -> Array:
        """The mean of −ln p of each node; of a real one, half its mean squared error in units of four variances."""
        return np.array([node.loss for node in self.nodes])

    @property
    def objective(self) -> float:
        """Σ_i of what is minimised for each node i."""
        return float(self.losses.sum()) + self.penalty * sum(node.size(node.theta) for node in self.nodes)

    def log_likelihoods(self, losses: Array | None = None) -> Array:
        """The mean of ln p of each node, of a real one in standard units and at the variance that fits best here.

        Other `losses` than those here are of other rows.
        """
        there = self.losses if losses is None else losses
        real = np.array([not node.finite for node in self.nodes])
        variance = np.where(real, 2.0 * self.losses, 1.0)  # in units of four variances
        normal = 0.5 * np.log(2.0 * np.pi * 4.0 * variance) + there / variance
        return -np.where(real, normal, there)

    def losses_of(self, data: Data) -> Array:
        """The same as `losses`, of other rows at the θ that are here."""
        rows = data.take(self.columns.names)
        finite = [node for node in self.nodes if node.finite]
        result = np.zeros(len(self.nodes))
        if len(finite) < len(self.nodes):
            products = self._products(rows)
            result[:] = [0.0 if node.finite else _squares(node, node.here(), products).loss for node in self.nodes]
        asked = [(node, node.here()) for node in finite]
        if asked:
            result[[node.node for node in finite]] = [m.loss for _, m in self._folded(rows, asked, self.threads)]
        return result

    def _minimise(self, nodes: Sequence[NodeRegression], threads: int) -> None:
        going = list(nodes)
        for node in going:
            node.begin()
        for _ in range(STEPS):
            trials = [(node, trial) for node in going if (trial := node.trial(self.penalty)) is not None]
            going = [node for node, _ in trials]
            if not going:
                return
            for node, measured in self._folded(self.rows, [t for t in trials if t[0].finite], threads):
                node.settle(measured, self.penalty)
            for node, trial in trials:
                if not node.finite:
                    node.settle(_squares(node, trial, node.products), self.penalty)
            self.watch()
        raise FitError(
            f"the regression of {self.columns.names[going[0].node]!r} on the others did not converge in {STEPS} steps: raise the "
            f"penalty, which is {self.penalty:g}"
        )

    def _folded(
        self, rows: Data, trials: Sequence[tuple[NodeRegression, Trial]], threads: int
    ) -> Iterator[tuple[NodeRegression, Measured]]:
        """What rows say of finite nodes, in one pass for all; nodes of two states are first."""
        if not trials:
            return
        order = sorted(trials, key=lambda t: t[1].theta.shape[1] > 1)
        asked = tuple(NodeAt(t.node, t.active, t.theta[t.active], t.curved) for _, t in order)
        total = rows.fold(NodeSlopes(self.columns, asked), threads=threads)
        codes = np.cumsum([0, *(at.theta.shape[1] for at in asked)])
        for k, (node, _) in enumerate(order):
            slope = np.ascontiguousarray(total.gradient[codes[k] : codes[k + 1]].T) / rows.weight
            yield node, Measured(float(total.loss[k]) / rows.weight, slope, total.hessian[k] / rows.weight)


def _squares(node: NodeRegression, trial: Trial, M: Array) -> Measured:
    """½ of the mean squared error of a real node, from the mean products of columns."""
    at, own, theta = trial.active, node.own.start, trial.theta[trial.active, 0]
    slope = M[:, at] @ theta - M[:, own]
    loss = 0.5 * float(M[own, own] + theta @ (slope[at] - M[at, own]))
    return Measured(loss, slope[:, None], np.ascontiguousarray(M[np.ix_(at, at)]))
