"""Real columns that are normal together in each class, with a covariance of its own or one that all classes share.

    x | class k ~ Normal(μ_k, L_k L_kᵀ);     z = L_k⁻¹ (x − μ_k), which is standard normal

The statistic is kept in z, around the parameters under which it was gathered: Σ r, Σ r z, Σ r z zᵀ are then near N, 0, N·I, and
no digits are lost however far the means are from 0 or the classes from each other:

    μ ← μ + L m,   L ← L chol(Σ r z zᵀ / N − m mᵀ),   m = Σ r z / N

Cells may be missing. With o the observed columns and L_o = Rᵀ Qᵀ their rows of L (QR decomposition),
z | x_o ~ Normal(G (x_o − μ_o), I − Q Qᵀ) with G = Q R⁻ᵀ, and (x_o − μ_o)ᵀ Σ_oo⁻¹ (x_o − μ_o) = |E z|²: only G changes from one
pattern of missing cells to another, and Σ r (I − Q Qᵀ) is added to the statistic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from suffice.engines.engine import Block as Batch
from suffice.errors import listed
from suffice.families.conditional_gaussian import LOG_2PI, ConditionalGaussian
from suffice.families.family import Array, Cpd
from suffice.learning.mixture_belief import Belief
from suffice.learning.mixture_part import CELLS, Collapsed, Moved
from suffice.statistics import Moments
from suffice.variables import Finite, Variable

NARROW = 1e-10
"""A variance below this share of the column's own has collapsed."""

SINGULAR = 1e-12
"""The same for what the columns before it leave of the variance of a column."""


SMALL = 2**19
"""Multiplications of a product that the BLAS makes in one thread; threads of its own would wait for each other, and for ours."""


class Normals(NamedTuple):
    """Means (class × column, less the shift) and the lower triangular roots of the covariances (class × column × column)."""

    mean: Array
    root: Array


class _Pattern(NamedTuple):
    """z = matrix · (x, 1), a matrix for each class; what is added to ln p; what the missing cells leave of Cov z."""

    matrix: Array
    constant: Array
    left: Array | None


@dataclass(frozen=True, eq=False)
class _Prepared:
    theta: Normals
    complete: _Pattern
    others: dict[bytes, _Pattern] = field(default_factory=dict)


class _Memory(NamedTuple):
    z: Array
    left: tuple[tuple[Array, Any], ...]


@dataclass(frozen=True, eq=False)
class Joint:
    """See the top of the module. `shift` and `variance` are the columns' overall mean and variance."""

    names: tuple[str, ...]
    n_classes: int
    tied: bool
    shift: Array
    variance: Array
    incomplete: bool
    belief: Belief | None

    @property
    def n_parameters(self) -> int:
        d, k = len(self.names), self.n_classes
        return k * d + (1 if self.tied else k) * d * (d + 1) // 2

    @property
    def block_rows(self) -> int:
        d = len(self.names) + 1
        return min(CELLS // (self.n_classes * d), SMALL // d**2)

    def blank(self) -> Normals:
        d = len(self.names)
        return Normals(np.zeros((self.n_classes, d)), np.tile(np.diag(np.sqrt(self.variance)), (self.n_classes, 1, 1)))

    def prepared(self, theta: Normals) -> _Prepared:
        return _Prepared(theta, _pattern(theta, np.ones(len(self.names), dtype=bool)))

    def scored(self, prepared: _Prepared, batch: Batch, rows: slice, log_probs: Array) -> _Memory:
        d = len(self.names)
        x = np.ones((d + 1, log_probs.shape[1]))
        for j, name in enumerate(self.names):
            np.subtract(batch.columns[name][rows], self.shift[j], out=x[j])
        lost = np.isnan(x) if self.incomplete else None
        if lost is None or not lost.any():
            z = prepared.complete.matrix @ x
            log_probs += prepared.complete.constant
            left: tuple[tuple[Array, Any], ...] = ()
        else:
            x[lost] = 0.0
            z, left = self._by_pattern(prepared, x, ~lost[:d], log_probs)
        square = np.einsum("kdb,kdb->kb", z[:, :d], z[:, :d])
        square *= 0.5
        log_probs -= square
        return _Memory(z, left)

    def _by_pattern(self, prepared: _Prepared, x: Array, seen: Any, log_probs: Array) -> tuple[Array, Any]:
        """Rows that miss the same cells go together."""
        k, d = self.n_classes, len(self.names)
        z, left = np.empty((k, d + 1, x.shape[1])), []
        packed = np.ascontiguousarray(np.packbits(seen, axis=0).T)
        keys, which = np.unique(packed.view(np.dtype((np.void, packed.shape[1]))).ravel(), return_inverse=True)
        groups = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
        for key, rows in zip(keys, groups, strict=True):
            pattern = self._pattern_of(prepared, key.tobytes(), seen[:, rows[0]])
            z[:, :, rows] = pattern.matrix @ x[:, rows]
            log_probs[:, rows] += pattern.constant
            if pattern.left is not None:
                left.append((pattern.left, rows))
        return z, tuple(left)

    def _pattern_of(self, prepared: _Prepared, key: bytes, seen: Any) -> _Pattern:
        if seen.all():
            return prepared.complete
        if key not in prepared.others:  # two threads may both find it: they find the same
            prepared.others[key] = _pattern(prepared.theta, seen)
        return prepared.others[key]

    def gathered(self, memory: _Memory, responsibilities: Array) -> tuple[Array]:
        weighted = memory.z * responsibilities[:, None, :]
        total = weighted @ memory.z.transpose(0, 2, 1)
        d = len(self.names)
        for left, rows in memory.left:
            total[:, :d, :d] += left * responsibilities[:, rows].sum(axis=1)[:, None, None]
        return (total,)

    def maximised(self, theta: Normals, statistic: tuple[Array, ...]) -> Normals:
        d = len(self.names)
        N = statistic[0][:, d, d]
        if self.belief is None and np.any(N <= 0.0):
            raise Collapsed("a class has no rows left")
        divisor = np.where(N > 0.0, N, 1.0)
        m = statistic[0][:, :d, d] / divisor[:, None]
        V = statistic[0][:, :d, :d] / divisor[:, None, None] - m[:, :, None] * m[:, None, :]
        mean = theta.mean + np.einsum("kij,kj->ki", theta.root, m)
        if self.belief is not None:
            scatter = N[:, None, None] * (theta.root @ V @ theta.root.transpose(0, 2, 1))
            return Normals(*self.belief.joint(N, mean, scatter, self.shift, tied=self.tied))
        if self.tied:
            V = np.broadcast_to(np.einsum("k,kij->ij", N / N.sum(), V), V.shape)
        return self._checked(Normals(mean, theta.root @ self._root(V)))

    def _root(self, V: Array) -> Array:
        try:
            return np.asarray(np.linalg.cholesky(V), dtype=np.float64)
        except np.linalg.LinAlgError:
            raise self._singular() from None

    def _singular(self) -> Collapsed:
        return Collapsed(f"the covariance of {listed(self.names)} is singular in a class")

    def _checked(self, theta: Normals) -> Normals:
        variance = np.einsum("kij,kij->ki", theta.root, theta.root)
        if np.any(variance < NARROW * self.variance):
            name = self.names[int(np.argmin((variance / self.variance).min(axis=0)))]
            raise Collapsed(f"the variance of {name!r} has shrunk to nothing in a class")
        if not np.all(np.diagonal(theta.root, axis1=1, axis2=2) ** 2 > SINGULAR * variance):
            raise self._singular()
        return theta

    def log_prior(self, theta: Normals) -> float:
        return 0.0 if self.belief is None else self.belief.log_joint(theta.mean, theta.root, self.shift, tied=self.tied)

    def permuted(self, theta: Normals, order: Sequence[int]) -> Normals:
        return Normals(theta.mean[list(order)], theta.root[list(order)])

    def named(self, theta: Normals) -> Moved:
        return Moved(theta.mean + self.shift, theta.root @ theta.root.transpose(0, 2, 1))

    def taken(self, given: Moved) -> Normals:
        assert given.means is not None
        assert given.covariances is not None
        covariances = given.covariances
        if self.tied:
            covariances = np.broadcast_to(covariances.mean(axis=0), covariances.shape)
        return Normals(given.means - self.shift, self._root(covariances))

    def cpds(self, theta: Normals, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        """x_j | class, x_<j: with L the root, the coefficients are L_j,<j L_<j⁻¹ and the variance is L_jj²."""
        mean, covariances = theta.mean + self.shift, theta.root @ theta.root.transpose(0, 2, 1)
        keys, scatter = np.arange(self.n_classes), counts[:, None, None] * covariances
        result: dict[str, Cpd] = {}
        for j, name in enumerate(self.names):
            L = theta.root[:, :j, :j]
            b = np.einsum("ki,kij->kj", theta.root[:, j, :j], inverse(L))
            a = self.shift[j] + theta.mean[:, j] - np.einsum("kj,kj->k", b, mean[:, :j])
            seen = Moments((hidden,), self.names[: j + 1], keys, counts, mean[:, : j + 1], scatter[:, : j + 1, : j + 1])
            parents = (hidden, *(variables[n] for n in self.names[:j]))
            result[name] = ConditionalGaussian(variables[name], parents, a, b, theta.root[:, j, j] ** 2, seen)
        return result


def _pattern(theta: Normals, seen: Any) -> _Pattern:
    """The map from rows that show these columns to z; the last row of each class makes a 1 of the 1."""
    k, d = theta.mean.shape
    G, left = np.zeros((k, d, d)), None
    if seen.all():
        G, R = inverse(theta.root), theta.root
    else:
        Q, R = np.linalg.qr(theta.root[:, seen].transpose(0, 2, 1))
        G[:, :, seen] = Q @ inverse(R.transpose(0, 2, 1))
        left = np.eye(d) - Q @ Q.transpose(0, 2, 1)
    matrix = np.zeros((k, d + 1, d + 1))
    matrix[:, :d, :d] = G
    matrix[:, :d, d] = -np.einsum("kij,kj->ki", G, theta.mean)
    matrix[:, d, d] = 1.0
    log_det = np.log(np.abs(np.diagonal(R, axis1=1, axis2=2))).sum(axis=1)
    constant = -log_det - 0.5 * int(seen.sum()) * LOG_2PI
    return _Pattern(matrix, constant[:, None], left)


def inverse(root: Array) -> Array:
    """The inverses of lower triangular matrices, all at once.

    A call of LAPACK for each would cost more: threads of the BLAS that wait for each other over a matrix of ten columns.
    """
    result = np.zeros_like(root)
    for i in range(root.shape[1]):
        result[:, i, i] = 1.0
        result[:, i, :i] = -np.einsum("kj,kji->ki", root[:, i, :i], result[:, :i, :i])
        result[:, i, : i + 1] /= root[:, i, i, None]
    return result
