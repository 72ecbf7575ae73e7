"""The normal parts of a mixture: z of their rows, and the means and covariances that expected statistics and a prior give.

x | class k ~ Normal(μ_k, L_k L_kᵀ), and z = L_k⁻¹ (x − μ_k) is standard normal. The statistic is kept in z, around the parameters
under which it was gathered: Σ r, Σ r z, Σ r z zᵀ are then near N, 0, N·I, and no digits are lost however far the means are from 0
or the classes from each other. Cells may be missing. With o the observed columns and L_o = Rᵀ Qᵀ their rows of L (QR
decomposition), z | x_o ~ Normal(G (x_o − μ_o), I − Q Qᵀ) with G = Q R⁻ᵀ, and (x_o − μ_o)ᵀ Σ_oo⁻¹ (x_o − μ_o) = |E z|²: only G
changes from one pattern of missing cells to another, and Σ r (I − Q Qᵀ) is added to the statistic. The M-step is

    μ ← μ + L m,   L ← L chol(Σ r z zᵀ / N − m mᵀ),   m = Σ r z / N

What a prior believes of them are imagined moments of each column given those before it. With κ, m₀, S₀, ν₀ the imagined moments
of columns 1 … j (count, mean, scatter, df), c = (−b, 1), and a, b, v the intercept, coefficients and variance of column j on
those before it, the M-step maximises, besides the expected log-likelihood,

    −½ (ν₀ + e) ln v − ½ (cᵀ S₀ c + κ (c·m₀ − a)²) / v        e = −2 (Mean) or 3 + the number of coefficients b (Mode)

of which the posterior mean (or mode) that `fit` takes is the maximiser. Where classes share b and v, S₀ and ν₀ are imagined once,
κ and m₀ in each class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from suffice.basis.variables import Finite, Variable
from suffice.engines.engine import Block
from suffice.errors import FitError, listing
from suffice.families.conditional_gaussian import LOG_2PI, ConditionalGaussian
from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Array, Cpd, Estimate, imagined_rows
from suffice.learning.latent.mixture_parts import CELLS, SMALL, CollapsedClass, MixturePart
from suffice.numerics.exponential.normals.lines import ROUNDING, log_line_prior, prior_lost, regress
from suffice.statistics import Moments
from suffice.statistics.counts import equal_lines

NARROW = 1e-10
"""A variance below this share of the column's own has collapsed."""

SINGULAR = 1e-12
"""The same for what the columns before it leave of the variance of a column."""


class _Pattern(NamedTuple):
    """z = matrix · (x, 1), a matrix for each class; what is added to ln p; what the missing cells leave of Cov z."""

    matrix: Array
    constant: Array
    left: Array | None


Standard = tuple[Array, list[tuple[Array, Any]]]
"""z of some rows, and for those with missing cells what these leave of Cov z."""


@dataclass(frozen=True, eq=False)
class NormalPart(MixturePart):
    """Real columns: means (class × column, less the shift) and the lower triangular roots of the covariances (class × column ×
    column), or the standard deviations where columns are independent (class × column). `variance` is their overall variance;
    `shared`: something of the covariance is one for all classes, or for all columns; `imagined` are the moments of each column
    that the prior imagines, one group per class."""

    shift: Array
    mean: Array
    root: Array
    how: Estimate
    shared: bool
    variance: Array
    imagined: tuple[Moments, ...] | None

    arrays: ClassVar = ("mean", "root")

    @property
    def moments(self) -> tuple[Array, Array]:
        """The means and covariances of the classes."""
        root = self.root[:, :, None] * np.eye(len(self.names)) if self.root.ndim == 2 else self.root
        return self.mean + self.shift, root @ root.transpose(0, 2, 1)

    def _fill_columns(self, x: Array, block: Block, rows: slice) -> Array:
        """The columns less their shift, in the first lines of x."""
        for j, name in enumerate(self.names):
            np.subtract(block.columns[name][rows], self.shift[j], out=x[j])
        return x

    def narrowness(self) -> float:
        """The largest ratio of a column's deviation to what is left of it in a class: as many digits of ln p are lost."""
        left = self.root if self.root.ndim == 2 else np.diagonal(self.root, axis1=1, axis2=2)
        return float((np.sqrt(self.variance) / left).max())

    def _weight(self, N: Array) -> Array:
        """What sums are divided by."""
        if self.imagined is None and np.any(N <= 0.0):
            raise CollapsedClass("a class has no rows left")
        return np.where(N > 0.0, N, 1.0)

    def _refuse_narrow(self, variance: Array, overall: Any) -> None:
        if np.any(variance < NARROW * overall):
            name = self.names[int(np.argmin((variance / overall).min(axis=0)))]
            raise CollapsedClass(f"the variance of {name!r} has shrunk to nothing in a class")

    def _extra(self, n_means: int, n_coefficients: int) -> float:
        """e of the formula: what is added to df."""
        return float(self.how.rows_behind(0.0, n_means + n_coefficients))


def imagined_moments(
    prior: Prior | None, columns: Sequence[Variable], hidden: Finite, *, chained: bool
) -> tuple[Moments, ...] | None:
    """What the prior says of each column, or None if it says nothing. `chained`: each has those before it as parents."""
    if prior is None:
        return None
    said = [imagined_rows(prior, v, [hidden, *(columns[:j] if chained else ())]) for j, v in enumerate(columns)]
    every = np.arange(hidden.n_states)
    return tuple(s.at(every) for s in said) if all(isinstance(s, Moments) for s in said) else None


class JointPart(NormalPart):
    """Columns that are normal together. `shared`: one covariance for all classes."""

    @property
    def block_rows(self) -> int:
        d = len(self.names) + 1
        return min(CELLS // (len(self.mean) * d), SMALL // d**2)

    def add_log_probs(self, block: Block, rows: slice, log_probs: Array) -> Standard:
        d = len(self.names)
        x = self._fill_columns(np.ones((d + 1, log_probs.shape[1])), block, rows)
        left = list[tuple[Array, Any]]()
        if np.isnan(x.min()):  # as a cell that is missing is
            lost = np.isnan(x)
            x[lost] = 0.0
            z = np.empty((len(self.mean), *x.shape))
            seen = ~lost[:d]
            for some in equal_lines(seen.T):
                pattern = self._pattern(seen[:, some[0]])
                z[:, :, some] = pattern.matrix @ x[:, some]
                log_probs[:, some] += pattern.constant
                left += [] if pattern.left is None else [(pattern.left, some)]
        else:
            z = self._complete.matrix @ x
            log_probs += self._complete.constant
        square = np.einsum("kdb,kdb->kb", z[:, :d], z[:, :d])
        square *= 0.5
        log_probs -= square
        return z, left

    def gather(self, memory: Standard, responsibilities: Array) -> Array:
        z, leftovers = memory
        total: Array = (z * responsibilities[:, None, :]) @ z.transpose(0, 2, 1)
        d = len(self.names)
        for left, rows in leftovers:
            total[:, :d, :d] += left * responsibilities[:, rows].sum(axis=1)[:, None, None]
        return total

    @cached_property
    def _complete(self) -> _Pattern:
        return self._map_pattern(inverses(self.root), self.root, None)

    @cached_property
    def _patterns(self) -> dict[bytes, _Pattern]:
        return {}

    def _pattern(self, seen: Any) -> _Pattern:
        """The map from rows that show these columns to z."""
        if seen.all():
            return self._complete
        if (key := seen.tobytes()) not in self._patterns:  # two threads may both find it: they find the same
            Q, R = np.linalg.qr(self.root[:, seen].transpose(0, 2, 1))
            G = np.zeros_like(self.root)
            G[:, :, seen] = Q @ inverses(R.transpose(0, 2, 1))
            self._patterns[key] = self._map_pattern(G, R, np.eye(len(seen)) - Q @ Q.transpose(0, 2, 1))
        return self._patterns[key]

    def _map_pattern(self, G: Array, R: Array, left: Array | None) -> _Pattern:
        """The last row of each class makes a 1 of the 1."""
        k, d = self.mean.shape
        matrix = np.zeros((k, d + 1, d + 1))
        matrix[:, :d, :d] = G
        matrix[:, :d, d] = -np.einsum("kij,kj->ki", G, self.mean)
        matrix[:, d, d] = 1.0
        log_det = np.log(np.abs(np.diagonal(R, axis1=1, axis2=2))).sum(axis=1)
        return _Pattern(matrix, (-log_det - 0.5 * R.shape[2] * LOG_2PI)[:, None], left)

    @property
    def n_parameters(self) -> int:
        k, d = self.mean.shape
        return int(k * d + (1 if self.shared else k) * d * (d + 1) // 2)

    def maximise(self, statistic: Array) -> JointPart:
        d = len(self.names)
        N = statistic[:, d, d]
        divisor = self._weight(N)
        m = statistic[:, :d, d] / divisor[:, None]
        V = statistic[:, :d, :d] / divisor[:, None, None] - m[:, :, None] * m[:, None, :]
        mean = self.mean + np.einsum("kij,kj->ki", self.root, m)
        if self.imagined is not None:
            scatter = N[:, None, None] * (self.root @ V @ self.root.transpose(0, 2, 1))
            new, root = np.zeros_like(mean), np.zeros_like(scatter)
            for j, group in ((j, group) for j in range(d) for group in self._groups):
                a, b, v = self.line(j, N[group], mean[group], scatter[group])
                new[group, j] = a + new[group, :j] @ b
                root[group, j, :j] = np.einsum("i,kij->kj", b, root[group, :j, :j])
                root[group, j, j] = np.sqrt(v)
            return replace(self, mean=new, root=root)
        if self.shared:
            V = np.broadcast_to(np.einsum("k,kij->ij", N / N.sum(), V), V.shape)
        root = self.root @ self._root(V)
        variance = np.einsum("kij,kij->ki", root, root)
        self._refuse_narrow(variance, self.variance)
        if not np.all(np.diagonal(root, axis1=1, axis2=2) ** 2 > SINGULAR * variance):
            raise self._singular()
        return replace(self, mean=mean, root=root)

    def _root(self, V: Array) -> Array:
        try:
            return np.asarray(np.linalg.cholesky(V), dtype=np.float64)
        except np.linalg.LinAlgError:
            raise self._singular() from None

    def _singular(self) -> CollapsedClass:
        return CollapsedClass(f"the covariance of {listing(self.names)} is singular in a class")

    @property
    def _groups(self) -> list[list[int]]:
        """Classes that share coefficients and variances."""
        k = len(self.mean)
        return [list(range(k))] if self.shared else [[c] for c in range(k)]

    def line(self, j: int, N: Array, mean: Array, scatter: Array) -> tuple[Array, Array, float]:
        """Intercepts, coefficients and variance of column j on those before it, in classes that share the last two."""
        assert self.imagined is not None
        said, d = self.imagined[j], j + 1
        m0 = said.mean[0] - self.shift[:d]
        return shared_line(said, m0, N, mean[:, :d], scatter[:, :d, :d], self._extra(len(N), j))

    def log_prior(self) -> float:
        """Σ of the formula at the top."""
        total = 0.0
        for j, said in enumerate(self.imagined or ()):
            for group in self._groups:
                root = self.root[group[0]]
                b, v = np.linalg.solve(root[:j, :j].T, root[j, :j]), float(root[j, j] ** 2)
                a = self.mean[group, j] - self.mean[group, :j] @ b
                m0, extra = said.mean[0] - self.shift[: j + 1], self._extra(len(group), j)
                total += log_prior_of_shared_line(said, m0, a, b, v, extra)
        return float(total)

    def with_parameters(self, means: Array, covariances: Array, tables: Mapping[str, Array]) -> JointPart:
        if self.shared:
            covariances = np.broadcast_to(covariances.mean(axis=0), covariances.shape)
        return replace(self, mean=means - self.shift, root=self._root(covariances))

    def cpds(self, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        return chain([variables[n] for n in self.names], hidden, self.mean + self.shift, self.root, counts)


def shared_line(said: Moments, m0: Array, N: Array, mean: Array, scatter: Array, extra: float) -> tuple[Array, Array, float]:
    """Intercepts of classes, and the coefficients and variance that they share, of the last column on those before it, from the
    moments of each class and what is imagined of one; `m0` is the imagined mean, `extra` the e of the formula at the top."""
    kappa, off = said.count[0], mean - m0
    S = said.scatter[0] + scatter.sum(axis=0) + np.einsum("k,ki,kj->ij", kappa * N / (kappa + N), off, off)
    r = regress(S, ROUNDING)
    if r.vanishes:
        raise prior_lost(said.reals[-1], said.reals[int(r.collinear)])
    df = positive_df(said.df[0] + N.sum() + extra, said.reals[-1])
    at, b = m0 + off * (N / (kappa + N))[:, None], r.coefficients
    return at[:, -1] - at[:, :-1] @ b, b, float(r.residual / df)


def log_prior_of_shared_line(said: Moments, m0: Array, a: Array, b: Array, v: float, extra: float) -> float:
    """The logarithm that this maximises besides the expected log-likelihood: the formula at the top."""
    # the scatter and the rows behind the variance are imagined once, the means in each class
    share = 1.0 / len(a)
    rows, scatter = share * (said.df[0] + extra), share * said.scatter[0]
    return float(log_line_prior(rows, said.count[0], m0, scatter, a, np.broadcast_to(b, (len(a), len(b))), v).sum())


def chain(columns: Sequence[Variable], hidden: Finite, mean: Array, root: Array, counts: Array) -> dict[str, Cpd]:
    """x_j | class, x_<j: with L the root, the coefficients are L_j,<j L_<j⁻¹ and the variance is L_jj²."""
    names, keys = tuple(v.name for v in columns), np.arange(len(mean))
    scatter, turned = counts[:, None, None] * (root @ root.transpose(0, 2, 1)), inverses(root)
    result: dict[str, Cpd] = {}
    for j, child in enumerate(columns):
        b = np.einsum("ki,kij->kj", root[:, j, :j], turned[:, :j, :j])
        a = mean[:, j] - np.einsum("kj,kj->k", b, mean[:, :j])
        seen = Moments((hidden,), names[: j + 1], keys, counts, mean[:, : j + 1], scatter[:, : j + 1, : j + 1])
        result[child.name] = ConditionalGaussian(child, (hidden, *columns[:j]), a, b, root[:, j, j] ** 2, seen)
    return result


class SeparatePart(NormalPart):
    """Columns that are independent in each class, each with a variance, or `shared`, one for all of them. A missing cell adds
    nothing: Σ r is counted for each column."""

    @property
    def block_rows(self) -> int:
        return CELLS // self.mean.size

    @cached_property
    def _prepared(self) -> tuple[Array, Array, Array]:
        return self.mean[:, :, None], 1.0 / self.root[:, :, None], -np.log(self.root) - 0.5 * LOG_2PI

    def add_log_probs(self, block: Block, rows: slice, log_probs: Array) -> tuple[Array, Array | None]:
        mean, scale, constant = self._prepared
        x = self._fill_columns(np.empty((len(self.names), log_probs.shape[1])), block, rows)
        z = x - mean
        z *= scale
        seen = None
        if np.isnan(x.min()):
            lost = np.isnan(x)
            seen = (~lost).astype(np.float64)
            z[:, lost] = 0.0
            log_probs += constant @ seen
        else:
            log_probs += constant.sum(axis=1)[:, None]
        log_probs -= 0.5 * np.einsum("kdb,kdb->kb", z, z)
        return z, seen

    def gather(self, memory: tuple[Array, Array | None], responsibilities: Array) -> tuple[Array, Array, Array]:
        (z, seen), r = memory, responsibilities[:, :, None]
        N = np.repeat(r.sum(axis=1), len(self.names), axis=1) if seen is None else responsibilities @ seen.T
        return N, (z @ r)[:, :, 0], (z**2 @ r)[:, :, 0]

    @property
    def n_parameters(self) -> int:
        k, d = self.mean.shape
        return int(k * (d + (1 if self.shared else d)))

    def maximise(self, statistic: tuple[Array, ...]) -> SeparatePart:
        N, first, second = statistic
        m = first / self._weight(N)
        mean, variance = self.estimate_moments(N, self.mean + self.root * m, self.root**2 * (second - N * m**2))
        variance = np.maximum(variance, 0.0)
        if self.imagined is None:
            self._refuse_narrow(variance, self.variance.mean() if self.shared else self.variance)
        return replace(self, mean=mean, root=np.sqrt(variance))

    def estimate_moments(self, N: Array, mean: Array, scatter: Array) -> tuple[Array, Array]:
        """Means and variances: scatter over count, of each column or of all of them together."""
        if self.imagined is not None:
            kappa, m0, S0, df = self._imagined_moments(self.imagined)
            scatter = scatter + (S0 + kappa * N / (kappa + N) * (mean - m0) ** 2)
            mean, N = (N * mean + kappa * m0) / (kappa + N), positive_df(df + N, self.names[0])
        if self.shared:
            return mean, np.repeat((scatter.sum(axis=1) / N.sum(axis=1))[:, None], len(self.names), axis=1)
        return mean, np.asarray(scatter / N)

    def _imagined_moments(self, imagined: tuple[Moments, ...]) -> tuple[Array, Array, Array, Array]:
        """κ, m₀, S₀ and ν₀ + e of each column."""
        said = np.array([(m.count[0], m.mean[0, 0], m.scatter[0, 0, 0], m.df[0]) for m in imagined])
        return said[:, 0], said[:, 1] - self.shift, said[:, 2], said[:, 3] + self._extra(1, 0)

    def log_prior(self) -> float:
        if self.imagined is None:
            return 0.0
        kappa, m0, S0, df = self._imagined_moments(self.imagined)
        v = self.root**2
        return float(-0.5 * (df * np.log(v) + (S0 + kappa * (self.mean - m0) ** 2) / v).sum())

    def with_parameters(self, means: Array, covariances: Array, tables: Mapping[str, Array]) -> SeparatePart:
        variance = np.diagonal(covariances, axis1=1, axis2=2)
        if self.shared:
            variance = np.repeat(variance.mean(axis=1)[:, None], len(self.names), axis=1)
        if not np.all(variance > 0.0):
            raise CollapsedClass("a variance is not positive")
        return replace(self, mean=means - self.shift, root=np.sqrt(variance))

    def cpds(self, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        mean, result = self.mean + self.shift, dict[str, Cpd]()
        for j, name in enumerate(self.names):
            result |= chain([variables[name]], hidden, mean[:, [j]], self.root[:, [j], None], counts)
        return result


def positive_df(df: Any, name: str) -> Any:
    """What a residual is divided by, refused where the posterior mean does not exist."""
    if not np.all(df > 0.0):
        raise FitError(f"the posterior mean of the variance of {name!r} does not exist; give the prior a df above 2")
    return df


def inverses(root: Array) -> Array:
    """The inverses of lower triangular matrices, all at once. A call of LAPACK for each would cost more: threads of the BLAS that
    wait for each other over a matrix of ten columns."""
    result = np.zeros_like(root)
    for i in range(root.shape[1]):
        result[:, i, i] = 1.0
        result[:, i, :i] = -np.einsum("kj,kji->ki", root[:, i, :i], result[:, :i, :i])
        result[:, i, : i + 1] /= root[:, i, i, None]
    return result
