"""Real columns that are normal in each class: together, with a covariance of its own or one that all classes share, or each by
itself (`Separate`).

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

from suffice.engines.engine import Block
from suffice.errors import listed
from suffice.families.conditional_gaussian import LOG_2PI, ConditionalGaussian
from suffice.families.family import Array, Cpd
from suffice.learning.mixture_belief import Belief, positive
from suffice.learning.mixture_parts import CELLS, CollapsedClass
from suffice.statistics import Moments
from suffice.variables import Finite, Variable

NARROW = 1e-10
"""A variance below this share of the column's own has collapsed."""

SINGULAR = 1e-12
"""The same for what the columns before it leave of the variance of a column."""

SMALL = 2**19
"""Multiplications of a product that the BLAS makes in one thread; threads of its own would wait for each other, and for ours."""


class Normals(NamedTuple):
    """Means (class × column, less the shift) and the lower triangular roots of the covariances (class × column × column), or
    the standard deviations where columns are independent (class × column)."""

    mean: Array
    root: Array


@dataclass(frozen=True, eq=False)
class Normal:
    """Real columns. `shift` and `variance` are their overall mean and variance; `shared`: something of the covariance is one
    for all classes, or for all columns."""

    names: tuple[str, ...]
    n_classes: int
    shared: bool
    shift: Array
    variance: Array
    incomplete: bool
    belief: Belief | None

    def narrowness(self, theta: Normals) -> float:
        left = theta.root if theta.root.ndim == 2 else np.diagonal(theta.root, axis1=1, axis2=2)
        return float((np.sqrt(self.variance) / left).max())

    def moments(self, theta: Normals) -> tuple[Array, Array]:
        """The means and covariances of the classes."""
        root = theta.root[:, :, None] * np.eye(len(self.names)) if theta.root.ndim == 2 else theta.root
        return theta.mean + self.shift, root @ root.transpose(0, 2, 1)

    def _filled(self, x: Array, block: Block, rows: slice) -> Array:
        """The columns less their shift, in the first lines of x."""
        for j, name in enumerate(self.names):
            np.subtract(block.columns[name][rows], self.shift[j], out=x[j])
        return x

    def _weight(self, N: Array) -> Array:
        """What sums are divided by."""
        if self.belief is None and np.any(N <= 0.0):
            raise CollapsedClass("a class has no rows left")
        return np.where(N > 0.0, N, 1.0)

    def _refuse_narrow(self, variance: Array, overall: Any) -> None:
        if np.any(variance < NARROW * overall):
            name = self.names[int(np.argmin((variance / overall).min(axis=0)))]
            raise CollapsedClass(f"the variance of {name!r} has shrunk to nothing in a class")


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


class Joint(Normal):
    """Columns that are normal together. `shared`: one covariance for all classes."""

    @property
    def n_parameters(self) -> int:
        d, k = len(self.names), self.n_classes
        return k * d + (1 if self.shared else k) * d * (d + 1) // 2

    @property
    def block_rows(self) -> int:
        d = len(self.names) + 1
        return min(CELLS // (self.n_classes * d), SMALL // d**2)

    def blank(self) -> Normals:
        k = self.n_classes
        return Normals(np.zeros((k, len(self.names))), np.tile(np.diag(np.sqrt(self.variance)), (k, 1, 1)))

    def prepared(self, theta: Normals) -> _Prepared:
        return _Prepared(theta, _pattern(theta, np.ones(len(self.names), dtype=bool)))

    def scored(self, prepared: _Prepared, block: Block, rows: slice, log_probs: Array) -> _Memory:
        d = len(self.names)
        x = self._filled(np.ones((d + 1, log_probs.shape[1])), block, rows)
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
        z, left = np.empty((self.n_classes, *x.shape)), []
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

    def gathered(self, memory: _Memory, responsibilities: Array) -> Array:
        weighted = memory.z * responsibilities[:, None, :]
        total: Array = weighted @ memory.z.transpose(0, 2, 1)
        d = len(self.names)
        for left, rows in memory.left:
            total[:, :d, :d] += left * responsibilities[:, rows].sum(axis=1)[:, None, None]
        return total

    def maximised(self, theta: Normals, statistic: Array) -> Normals:
        d = len(self.names)
        N = statistic[:, d, d]
        divisor = self._weight(N)
        m = statistic[:, :d, d] / divisor[:, None]
        V = statistic[:, :d, :d] / divisor[:, None, None] - m[:, :, None] * m[:, None, :]
        mean = theta.mean + np.einsum("kij,kj->ki", theta.root, m)
        if self.belief is not None:
            scatter = N[:, None, None] * (theta.root @ V @ theta.root.transpose(0, 2, 1))
            return Normals(*self.belief.joint(N, mean, scatter, self.shift, tied=self.shared))
        if self.shared:
            V = np.broadcast_to(np.einsum("k,kij->ij", N / N.sum(), V), V.shape)
        root = theta.root @ self._root(V)
        variance = np.einsum("kij,kij->ki", root, root)
        self._refuse_narrow(variance, self.variance)
        if not np.all(np.diagonal(root, axis1=1, axis2=2) ** 2 > SINGULAR * variance):
            raise self._singular()
        return Normals(mean, root)

    def _root(self, V: Array) -> Array:
        try:
            return np.asarray(np.linalg.cholesky(V), dtype=np.float64)
        except np.linalg.LinAlgError:
            raise self._singular() from None

    def _singular(self) -> CollapsedClass:
        return CollapsedClass(f"the covariance of {listed(self.names)} is singular in a class")

    def log_prior(self, theta: Normals) -> float:
        return 0.0 if self.belief is None else self.belief.log_joint(theta.mean, theta.root, self.shift, tied=self.shared)

    def taken(self, means: Array, covariances: Array, tables: Mapping[str, Array]) -> Normals:
        if self.shared:
            covariances = np.broadcast_to(covariances.mean(axis=0), covariances.shape)
        return Normals(means - self.shift, self._root(covariances))

    def cpds(self, theta: Normals, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        return chain([variables[n] for n in self.names], hidden, theta.mean + self.shift, theta.root, counts)


def chain(columns: Sequence[Variable], hidden: Finite, mean: Array, root: Array, counts: Array) -> dict[str, Cpd]:
    """x_j | class, x_<j: with L the root, the coefficients are L_j,<j L_<j⁻¹ and the variance is L_jj²."""
    names, keys = tuple(v.name for v in columns), np.arange(len(mean))
    scatter = counts[:, None, None] * (root @ root.transpose(0, 2, 1))
    result: dict[str, Cpd] = {}
    for j, child in enumerate(columns):
        b = np.einsum("ki,kij->kj", root[:, j, :j], inverse(root[:, :j, :j]))
        a = mean[:, j] - np.einsum("kj,kj->k", b, mean[:, :j])
        seen = Moments((hidden,), names[: j + 1], keys, counts, mean[:, : j + 1], scatter[:, : j + 1, : j + 1])
        result[child.name] = ConditionalGaussian(child, (hidden, *columns[:j]), a, b, root[:, j, j] ** 2, seen)
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


class Separate(Normal):
    """Columns that are independent in each class, each with a variance, or `shared`, one for all of them.

    The statistic is kept in z = (x − μ) / σ. A missing cell adds nothing: Σ r is counted for each column.
    """

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

    def scored(
        self, prepared: tuple[Array, Array, Array], block: Block, rows: slice, log_probs: Array
    ) -> tuple[Array, Array | None]:
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
        return z, seen

    def gathered(self, memory: tuple[Array, Array | None], responsibilities: Array) -> tuple[Array, Array, Array]:
        (z, seen), r = memory, responsibilities[:, :, None]
        N = np.repeat(r.sum(axis=1), len(self.names), axis=1) if seen is None else responsibilities @ seen.T
        return N, (z @ r)[:, :, 0], (z**2 @ r)[:, :, 0]

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
            raise CollapsedClass("a variance is not positive")
        return Normals(means - self.shift, np.sqrt(variance))

    def cpds(self, theta: Normals, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        mean, result = theta.mean + self.shift, dict[str, Cpd]()
        for j, name in enumerate(self.names):
            result |= chain([variables[name]], hidden, mean[:, [j]], theta.root[:, [j], None], counts)
        return result
