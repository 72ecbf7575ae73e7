"""What a logistic-normal prior holds of a node: every row of its table has effects η ~ Normal(mean, covariance), θ = softmax(η).

It answers for mode, mean, evidence and intervals by Laplace's approximation and by draws (`laplace.py`, `joint_laplace.py`), and
in EM for the logarithm that modes maximise: with all η that give the same θ at hand, the largest density of them,

    ln p(θ) = −½ min_c (ln θ + c − m)ᵀ P (ln θ + c − m),   P the precision
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.errors import checked_level
from suffice.errors.remedies import TABLE_PRIORS, Remedy
from suffice.families.hierarchical.hierarchical import rows_of
from suffice.families.hierarchical.joint_laplace import JointLaplace, joint_drawn, joint_quantiles
from suffice.families.hierarchical.laplace import Laplace
from suffice.families.hierarchical.laplace_draws import draw_rows, quantiles
from suffice.families.priors.prior import PriorBelief
from suffice.families.protocol.family import Array, Estimate, Interval, Mode
from suffice.statistics import Counts
from suffice.statistics.counts import sizes


@dataclass(frozen=True)
class LogisticBelief(PriorBelief):
    """Every row of a table has effects η ~ Normal(mean, variance I), one mean per state. It does not say how rare a state is that
    no row has.

    >>> from suffice import Finite
    >>> x = Finite("x", ["a", "b"])
    >>> LogisticBelief((0.0, 0.0), 1.0).probs(Counts((x,), [3, 1]), Mode()).round(4)
    array([0.6645, 0.3355])
    """

    of: ClassVar[str] = "LogisticNormal"
    instead: ClassVar[Remedy] = TABLE_PRIORS

    mean: tuple[float, ...]
    variance: float

    def log_evidence(self, seen: Counts) -> float:
        """Σᵤ ln Z over the rows that hold data: the others add nothing."""
        rows, times = np.unique(rows_of(seen), axis=0, return_counts=True)
        return float(times @ self._posterior(rows).log_evidence)

    def probs(self, seen: Counts, how: Estimate) -> Array:
        """The point values of a whole table."""
        rows, back = self._distinct(seen)
        answer = rows.probs if isinstance(how, Mode) else rows.means()
        return np.asarray(answer[back].reshape(sizes(seen.variables)))

    def interval(self, seen: Counts, level: float) -> Interval:
        """The equal-tailed interval of each probability, for more than two states by draws, which are few beyond 0.999."""
        rows, back = self._distinct(seen)
        lower, upper = self._quantiles(rows, (1.0 - checked_level(level)) / 2.0)
        shape = sizes(seen.variables)
        return Interval(lower[back].reshape(shape), upper[back].reshape(shape))

    def log_prior(self, probs: Array) -> float:
        """What EM adds to ln L: the logarithm, up to a constant, whose sum with that of counts the modes maximise."""
        off = np.log(probs.reshape(-1, len(self.mean))) - np.array(self.mean)
        return float(-0.5 * ((off @ self.curvature) * off).sum())

    def slope(self, probs: Array) -> Array:
        """Its derivatives by the effects of each row."""
        return np.asarray((np.array(self.mean) - np.log(probs.reshape(-1, len(self.mean)))) @ self.curvature)

    @property
    def curvature(self) -> Array:
        """Q = P − P1 1ᵀP / 1ᵀP1: its second derivatives by effects, less what all effects have in common."""
        P = self._precision()
        along = P.sum(axis=1)
        return np.asarray(P - np.outer(along, along) / along.sum())

    def drawn(self, counts: Array, n: int, rng: np.random.Generator) -> Array:
        """n draws of the rows that have these counts: [n, rows, states]."""
        return draw_rows(self._posterior(counts), n, rng)

    def _distinct(self, seen: Counts) -> tuple[Laplace, npt.NDArray[np.intp]]:
        """The posterior of each kind of row, and of which kind each row is."""
        table = seen.dense().reshape(-1, len(self.mean))
        rows, back = np.unique(table, axis=0, return_inverse=True)
        return self._posterior(rows), back.reshape(-1)

    def _posterior(self, rows: Array) -> Any:
        return Laplace(rows, np.array(self.mean), self.variance)

    def _quantiles(self, rows: Any, tail: float) -> tuple[Array, Array]:
        return quantiles(rows, tail)

    def _precision(self) -> Array:
        return np.eye(len(self.mean)) / self.variance


@dataclass(frozen=True)
class JointBelief(LogisticBelief):
    """The same with a covariance between the effects of the states; `variance` is its mean diagonal.

    >>> from suffice import Finite
    >>> x = Finite("x", ["a", "b", "c"])
    >>> near = JointBelief((0.0, 0.0, 0.0), 1.0, ((1.0, 0.9, 0.0), (0.9, 1.0, 0.0), (0.0, 0.0, 1.0)))
    >>> near.probs(Counts((x,), [8, 0, 0]), Mode()).round(2)  # rows of a speak for b, too
    array([0.58, 0.32, 0.1 ])
    """

    covariance: tuple[tuple[float, ...], ...] = ()

    def drawn(self, counts: Array, n: int, rng: np.random.Generator) -> Array:
        """n draws of the rows that have these counts: [n, rows, states]."""
        return joint_drawn(self._posterior(counts), n, rng)

    def _posterior(self, rows: Array) -> JointLaplace:
        return JointLaplace.of(rows, np.array(self.mean), np.array(self.covariance))

    def _quantiles(self, rows: Any, tail: float) -> tuple[Array, Array]:
        return joint_quantiles(rows, tail)

    def _precision(self) -> Array:
        return np.linalg.inv(np.array(self.covariance))
