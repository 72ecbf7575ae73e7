"""Real columns that are normal and independent in each class: a variance for each column, or one for all of them.

The statistic is kept in z = (x − μ) / σ, as in `mixture_joint`. A missing cell adds nothing: Σ r is counted for each column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from suffice.engines.engine import Block as Batch
from suffice.families.conditional_gaussian import LOG_2PI, ConditionalGaussian
from suffice.families.family import Array, Cpd
from suffice.learning.mixture_belief import Belief, positive
from suffice.learning.mixture_joint import NARROW
from suffice.learning.mixture_part import CELLS, Collapsed, Moved
from suffice.statistics import Moments
from suffice.variables import Finite, Variable


class Scales(NamedTuple):
    """Means (less the shift) and standard deviations, class × column."""

    mean: Array
    sd: Array


class _Memory(NamedTuple):
    z: Array
    seen: Array | None


@dataclass(frozen=True, eq=False)
class Separate:
    """See the top of the module. `shift` and `variance` are the columns' overall mean and variance."""

    names: tuple[str, ...]
    n_classes: int
    spherical: bool
    shift: Array
    variance: Array
    incomplete: bool
    belief: Belief | None

    @property
    def n_parameters(self) -> int:
        d = len(self.names)
        return self.n_classes * (d + (1 if self.spherical else d))

    @property
    def block_rows(self) -> int:
        return CELLS // (self.n_classes * len(self.names))

    def blank(self) -> Scales:
        return Scales(np.zeros((self.n_classes, len(self.names))), np.tile(np.sqrt(self.variance), (self.n_classes, 1)))

    def prepared(self, theta: Scales) -> tuple[Array, Array, Array]:
        return theta.mean[:, :, None], 1.0 / theta.sd[:, :, None], -np.log(theta.sd) - 0.5 * LOG_2PI

    def scored(self, prepared: tuple[Array, Array, Array], batch: Batch, rows: slice, log_probs: Array) -> _Memory:
        mean, scale, constant = prepared
        x = np.empty((len(self.names), log_probs.shape[1]))
        for j, name in enumerate(self.names):
            np.subtract(batch.columns[name][rows], self.shift[j], out=x[j])
        z = x - mean
        z *= scale
        seen = None
        if self.incomplete:
            seen = (~np.isnan(x)).astype(np.float64)
            np.nan_to_num(z, copy=False, nan=0.0)
            log_probs += constant @ seen
        else:
            log_probs += constant.sum(axis=1)[:, None]
        log_probs -= 0.5 * np.einsum("kdb,kdb->kb", z, z)
        return _Memory(z, seen)

    def gathered(self, memory: _Memory, responsibilities: Array) -> tuple[Array, Array, Array]:
        if memory.seen is None:
            N = np.repeat(responsibilities.sum(axis=1)[:, None], len(self.names), axis=1)
        else:
            N = responsibilities @ memory.seen.T
        r = responsibilities[:, :, None]
        return N, (memory.z @ r)[:, :, 0], (memory.z**2 @ r)[:, :, 0]

    def maximised(self, theta: Scales, statistic: tuple[Array, ...]) -> Scales:
        N, first, second = statistic
        if self.belief is None and np.any(N <= 0.0):
            raise Collapsed("a class has no rows left")
        divisor = np.where(N > 0.0, N, 1.0)
        m = first / divisor
        mean, scatter = theta.mean + theta.sd * m, theta.sd**2 * (second - N * m**2)
        if self.belief is not None:
            return self._believed(N, mean, scatter)
        return self._checked(Scales(mean, np.sqrt(np.maximum(self._shared(scatter, N), 0.0))))

    def _shared(self, scatter: Array, N: Array) -> Array:
        """The variances: scatter over count, of each column or of all of them together."""
        if self.spherical:
            return np.repeat((scatter.sum(axis=1) / N.sum(axis=1))[:, None], len(self.names), axis=1)
        return np.asarray(scatter / N)

    def _believed(self, N: Array, mean: Array, scatter: Array) -> Scales:
        assert self.belief is not None
        kappa, m0, S0, df = self.belief.single(self.shift)
        S = scatter + S0 + kappa * N / (kappa + N) * (mean - m0) ** 2
        variance = self._shared(S, positive(df + N, self.names[0]))
        return Scales((N * mean + kappa * m0) / (kappa + N), np.sqrt(variance))

    def _checked(self, theta: Scales) -> Scales:
        narrow = theta.sd**2 < NARROW * (self.variance.mean() if self.spherical else self.variance)
        if narrow.any():
            name = self.names[int(np.argmax(narrow.any(axis=0)))]
            raise Collapsed(f"the variance of {name!r} has shrunk to nothing in a class")
        return theta

    def log_prior(self, theta: Scales) -> float:
        if self.belief is None:
            return 0.0
        kappa, m0, S0, df = self.belief.single(self.shift)
        v = theta.sd**2
        return float(-0.5 * (df * np.log(v) + (S0 + kappa * (theta.mean - m0) ** 2) / v).sum())

    def permuted(self, theta: Scales, order: Sequence[int]) -> Scales:
        return Scales(theta.mean[list(order)], theta.sd[list(order)])

    def named(self, theta: Scales) -> Moved:
        return Moved(theta.mean + self.shift, theta.sd[:, :, None] ** 2 * np.eye(len(self.names)))

    def taken(self, given: Moved) -> Scales:
        assert given.means is not None
        assert given.covariances is not None
        variance = np.diagonal(given.covariances, axis1=1, axis2=2)
        if self.spherical:
            variance = np.repeat(variance.mean(axis=1)[:, None], len(self.names), axis=1)
        return Scales(given.means - self.shift, np.sqrt(variance))

    def cpds(self, theta: Scales, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        mean, variance, keys = theta.mean + self.shift, theta.sd**2, np.arange(self.n_classes)
        result: dict[str, Cpd] = {}
        for j, name in enumerate(self.names):
            scatter = (counts * variance[:, j])[:, None, None]
            seen = Moments((hidden,), (name,), keys, counts, mean[:, j, None], scatter)
            none: Any = np.zeros((self.n_classes, 0))
            result[name] = ConditionalGaussian(variables[name], (hidden,), mean[:, j], none, variance[:, j], seen)
        return result
