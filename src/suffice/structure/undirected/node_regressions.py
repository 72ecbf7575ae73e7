"""The penalised regressions of each variable on all others: what one kind of them must be able to do, and the Gaussian kind.

A kind of `NodeRegressions` says which columns it takes, holds what it needs of their rows, and fits all regressions at a matrix
of penalties, from the fits at a larger one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.engines.data import Data
from suffice.errors import note
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.graphs import Graph
from suffice.models.gaussian_markov_net import GaussianMarkovNet, fit_gaussian
from suffice.models.undirected.covariances import Covariances
from suffice.statistics import Statistics
from suffice.variables import Real, Variable

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


@dataclass(frozen=True, eq=False)
class GaussianNodes(NodeRegressions):
    """Lassos of real columns, from their correlations alone."""

    seen: Covariances

    @classmethod
    def takes(cls, variables: Sequence[Variable]) -> bool:
        return all(isinstance(v, Real) for v in variables)

    @classmethod
    def of(cls, data: Data | Statistics, variables: Sequence[Variable], *, threads: int | None = None) -> GaussianNodes:
        return cls(Covariances.of(data, [v.name for v in variables], on="correlation", threads=threads))

    @property
    def weight(self) -> float:  # type: ignore[override]
        return self.seen.weight

    @property
    def association(self) -> Array:  # type: ignore[override]
        return self.seen.matrix

    def fit(self, penalty: Array, start: NodeFit | None = None) -> NodeFit:
        from suffice.kernels.regressions.undirected import node_lassos

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
        left: Array = np.einsum("ij,jk,ik->i", C, matrix, C, optimize=True)
        return left
