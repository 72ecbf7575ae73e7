"""Real columns that are normal and independent in each class: a variance for each column, or one for all of them.

The statistic is kept in z = (x − μ) / σ, as in `mixture_joint`. A missing cell adds nothing: Σ r is counted for each column.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from suffice.engines.engine import Block
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.families.family import Array, Cpd
from suffice.learning.mixture_belief import positive
from suffice.learning.mixture_joint import Normal, Normals, chain
from suffice.learning.mixture_part import CELLS, Collapsed
from suffice.variables import Finite, Variable


class _Memory(NamedTuple):
    z: Array
    seen: Array | None


class Separate(Normal):
    """See the top of the module. `shared`: one variance for all columns."""

    @property
    def n_parameters(self) -> int:
        d = len(self.names)
        return self.n_classes * (d + (1 if self.shared else d))

    @property
    def block_rows(self) -> int:
        return CELLS // (self.n_classes * len(self.names))

    def blank(self) -> Normals:
        return Normals(np.zeros((self.n_classes, len(self.names))), np.tile(np.sqrt(self.variance), (self.n_classes, 1)))

    def prepared(self, theta: Normals) -> tuple[Array, Array, Array]:
        return theta.mean[:, :, None], 1.0 / theta.root[:, :, None], -np.log(theta.root) - 0.5 * LOG_2PI

    def scored(self, prepared: tuple[Array, Array, Array], block: Block, rows: slice, log_probs: Array) -> _Memory:
        mean, scale, constant = prepared
        x = self._filled(np.empty((len(self.names), log_probs.shape[1])), block, rows)
        z = x - mean
        z *= scale
        lost, seen = np.isnan(x) if self.incomplete else None, None
        if lost is None or not lost.any():
            log_probs += constant.sum(axis=1)[:, None]
        else:
            seen = (~lost).astype(np.float64)
            z[:, lost] = 0.0
            log_probs += constant @ seen
        log_probs -= 0.5 * np.einsum("kdb,kdb->kb", z, z)
        return _Memory(z, seen)

    def gathered(self, memory: _Memory, responsibilities: Array) -> tuple[Array, Array, Array]:
        if memory.seen is None:
            N = np.repeat(responsibilities.sum(axis=1)[:, None], len(self.names), axis=1)
        else:
            N = responsibilities @ memory.seen.T
        r = responsibilities[:, :, None]
        return N, (memory.z @ r)[:, :, 0], (memory.z**2 @ r)[:, :, 0]

    def maximised(self, theta: Normals, statistic: tuple[Array, ...]) -> Normals:
        N, first, second = statistic
        m = first / self._weight(N)
        mean, scatter = theta.mean + theta.root * m, theta.root**2 * (second - N * m**2)
        if self.belief is not None:
            kappa, m0, S0, df = self.belief.single(self.shift)
            scatter += S0 + kappa * N / (kappa + N) * (mean - m0) ** 2
            mean, N = (N * mean + kappa * m0) / (kappa + N), positive(df + N, self.names[0])
        variance = np.maximum(self._pooled(scatter, N), 0.0)
        if self.belief is None:
            self._refuse_narrow(variance, self.variance.mean() if self.shared else self.variance)
        return Normals(mean, np.sqrt(variance))

    def _pooled(self, scatter: Array, N: Array) -> Array:
        """The variances: scatter over count, of each column or of all of them together."""
        if self.shared:
            return np.repeat((scatter.sum(axis=1) / N.sum(axis=1))[:, None], len(self.names), axis=1)
        return np.asarray(scatter / N)

    def log_prior(self, theta: Normals) -> float:
        if self.belief is None:
            return 0.0
        kappa, m0, S0, df = self.belief.single(self.shift)
        v = theta.root**2
        return float(-0.5 * (df * np.log(v) + (S0 + kappa * (theta.mean - m0) ** 2) / v).sum())

    def taken(self, means: Array, covariances: Array, tables: Mapping[str, Array]) -> Normals:
        variance = np.diagonal(covariances, axis1=1, axis2=2)
        if self.shared:
            variance = np.repeat(variance.mean(axis=1)[:, None], len(self.names), axis=1)
        if not np.all(variance > 0.0):
            raise Collapsed("a variance is not positive")
        return Normals(means - self.shift, np.sqrt(variance))

    def cpds(self, theta: Normals, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        mean, result = theta.mean + self.shift, dict[str, Cpd]()
        for j, name in enumerate(self.names):
            result |= chain([variables[name]], hidden, mean[:, [j]], theta.root[:, [j], None], counts)
        return result
