"""What is folded over rows to regress each node on the others: products of columns, and the slopes of log-likelihoods."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import Block, Step
from suffice.structure.undirected.node_columns import Array, Ints, NodeColumns

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


class NodeAt(NamedTuple):
    """A node, the columns that its neighbours may come from (0, the constant one, first), and their effects θ[column, code]."""

    node: int
    columns: Ints
    theta: Array
    curved: bool
    """Whether the second derivatives are wanted."""


class Slopes(NamedTuple):
    """Of some nodes, at their θ: −log-likelihoods, their gradients [code of the node, column], and second derivatives between the
    columns of each, as blocks [column, code, column, code]; a matrix without cells where they are not wanted."""

    loss: Array
    gradient: Array
    hessian: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class NodeSlopes(Step[Slopes]):
    """The slopes of the log-likelihoods of some finite nodes, summed over rows. Nodes of two states are first."""

    columns: NodeColumns
    nodes: tuple[NodeAt, ...]

    def of(self, block: Block) -> Slopes:
        codes = np.cumsum([0, *(at.theta.shape[1] for at in self.nodes)])
        loss, gradient = np.zeros(len(self.nodes)), np.zeros((int(codes[-1]), int(self.columns.first[-1])))
        hessian = tuple(np.zeros((at.theta.size * at.curved,) * 2) for at in self.nodes)
        n_two = sum(at.theta.shape[1] == 1 for at in self.nodes)
        most = max(len(at.columns) for at in self.nodes)
        space = np.empty(0)
        for X, weight, rows in pieces(self.columns, block):
            n = X.shape[1]
            space = space if space.size >= most * n else np.empty(most * n)  # new memory for each node costs more than the work
            residual = np.empty((int(codes[-1]), n))
            for i, at in enumerate(self.nodes):
                own = np.take(X, at.columns, 0, out=space[: len(at.columns) * n].reshape(-1, n), mode="clip")
                eta = np.dot(at.theta.T, own, out=residual[codes[i] : codes[i + 1]])
                if i < n_two:
                    self._two_states(own, weight, X[self.columns.at(at.node)], eta, loss[i : i + 1], hessian[i])
                else:
                    state = block.columns[self.columns.names[at.node]][rows]
                    loss[i] += self._many_states(own, weight, state, eta, at, hessian[i])
            gradient += residual @ X.T
        return Slopes(loss, gradient, hessian)

    @staticmethod
    def _two_states(own: Array, weight: Array, z: Array, eta: Array, loss: Array, hessian: Array) -> None:
        from suffice.kernels.regressions.group_lasso import two_states

        root = np.abs(eta)
        np.exp(np.negative(root, out=root), out=root)
        two_states(eta, z, weight, root, loss)
        if hessian.size:
            own *= root
            hessian += own @ own.T

    def _many_states(self, own: Array, weight: Array, state: npt.NDArray[Any], eta: Array, at: NodeAt, hessian: Array) -> float:
        from suffice.kernels.regressions.group_lasso import many_states

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
