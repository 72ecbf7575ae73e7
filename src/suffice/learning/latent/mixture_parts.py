"""The M-step of a mixture, part by part: the parameters that expected statistics and a prior give.

A part here is one of `suffice.incomplete.classes` that also knows what the prior imagines of its columns, and which
parameters follow from a statistic that was gathered under its own:

    maximised(s)    the part with the parameters that the statistic and the prior give
    log_prior()     the logarithm that this maximises besides the expected log-likelihood
    taken(…)        the part with the parameters of a start: means and covariances of its columns, or what each has in each class
    cpds(…)         each column's distribution given the hidden class and, where they are together, the columns before it

Real columns that are normal together have statistics in z = L⁻¹ (x − μ), around the parameters under which they were gathered:

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
from typing import Any

import numpy as np

from suffice.errors import FitError, Sentence, listing
from suffice.errors.remedies import BY_MEAN
from suffice.exponential.dirichlet import shares_of
from suffice.exponential.normals.lines import ROUNDING, log_line_prior, prior_lost, regress
from suffice.families.categorical import Table
from suffice.families.chosen.exponential_node import PoissonRates
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Array, Cpd, Estimate, imagined_rows
from suffice.incomplete.classes import ClassNormals, ClassRates, ClassTables, JointNormals, SeparateNormals, inverses
from suffice.statistics import Counts, Moments
from suffice.variables import Finite, Variable

NARROW = 1e-10
"""A variance below this share of the column's own has collapsed."""

SINGULAR = 1e-12
"""The same for what the columns before it leave of the variance of a column."""


class CollapsedClass(Sentence):
    """A class has shrunk to a point, a line or nothing: its likelihood has no maximum. Says what has happened."""


def shares(counts: Array, alpha: Array | None, how: Estimate, name: str) -> Array:
    """The table, child on the last axis, that counts and imagined counts give; a row without either is uniform."""
    weights = counts if alpha is None else counts + alpha
    if alpha is not None:
        weights = weights - how.less
        if np.any(weights < 0.0):
            raise FitError(f"the posterior of {name!r} has no mode: use {BY_MEAN} or a stronger prior")
    return shares_of(weights)


def log_shares(p: Array, alpha: Array | None, how: Estimate) -> float:
    """Σ α ln p for posterior means, Σ (α − 1) ln p for modes."""
    return 0.0 if alpha is None else _log_powers(p, alpha - how.less)


def _log_powers(p: Array, power: Array) -> float:
    return float((power * np.log(p, out=np.zeros_like(p), where=power != 0.0)).sum())


@dataclass(frozen=True, eq=False)
class TablesPart(ClassTables):
    """Finite columns with a table in each class; `alpha` are the imagined counts of each."""

    how: Estimate
    alpha: tuple[Array | None, ...]

    @property
    def n_parameters(self) -> int:
        return len(self.table) * sum(size - 1 for size in self.sizes)

    def maximise(self, statistic: Array) -> TablesPart:
        parts = zip(self.split(statistic), self.alpha, self.names, strict=True)
        return replace(self, table=np.concatenate([shares(N, alpha, self.how, name) for N, alpha, name in parts], axis=1))

    def log_prior(self) -> float:
        return sum(log_shares(p, alpha, self.how) for p, alpha in zip(self.split(self.table), self.alpha, strict=True))

    def with_parameters(self, means: Array, covariances: Array, tables: Mapping[str, Array]) -> TablesPart:
        return replace(self, table=np.concatenate([tables[n] for n in self.names], axis=1))

    def cpds(self, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        pairs: Any = zip((variables[n] for n in self.names), self.split(self.table), strict=True)
        return {v.name: Table(v, (hidden,), p, Counts((hidden, v), counts[:, None] * p)) for v, p in pairs}


@dataclass(frozen=True, eq=False)
class RatesPart(ClassRates):
    """Counts with a Poisson rate in each class; `overall` is that of all rows, `imagined` are the events and the rows of a Gamma
    prior, by column."""

    how: Estimate
    overall: Array
    imagined: tuple[Array, Array]

    @property
    def n_parameters(self) -> int:
        return self.table.size

    def maximise(self, statistic: Array) -> RatesPart:
        d = len(self.names)
        events, N = statistic[:, :d] + self._power(), statistic[:, d:] + self.imagined[1]
        if np.any(events < 0.0):
            name = self.names[int(np.argmin(events.min(axis=0)))]
            raise FitError(f"the posterior of the rate of {name!r} has no mode: use {BY_MEAN} or a Gamma of a larger shape")
        return replace(self, table=np.divide(events, N, out=np.tile(self.overall, (len(N), 1)), where=N > 0.0))

    def _power(self) -> Array:
        """a − 1 for modes, a for means, 0 without a prior."""
        shape, rows = self.imagined
        return np.where(rows > 0.0, shape - self.how.less, 0.0)

    def log_prior(self) -> float:
        """Σ a ln λ − b λ for posterior means, Σ (a − 1) ln λ − b λ for modes."""
        powers = np.broadcast_to(self._power(), self.table.shape)
        return _log_powers(self.table, powers) - float((self.imagined[1] * self.table).sum())

    def with_parameters(self, means: Array, covariances: Array, tables: Mapping[str, Array]) -> RatesPart:
        return replace(self, table=np.stack([tables[n] for n in self.names], axis=1))

    def cpds(self, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        return {n: PoissonRates(variables[n], (hidden,), self.table[:, j]) for j, n in enumerate(self.names)}


@dataclass(frozen=True, eq=False)
class NormalPart(ClassNormals):
    """Real columns. `variance` is their overall variance; `shared`: something of the covariance is one for all classes, or for
    all columns; `imagined` are the moments of each column that the prior imagines, one group per class."""

    how: Estimate
    shared: bool
    variance: Array
    imagined: tuple[Moments, ...] | None

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


class JointPart(NormalPart, JointNormals):
    """Columns that are normal together. `shared`: one covariance for all classes."""

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
            return self._posterior_part(N, mean, N[:, None, None] * (self.root @ V @ self.root.transpose(0, 2, 1)))
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

    def _posterior_part(self, N: Array, mean: Array, scatter: Array) -> JointPart:
        """What counts, means and scatters of the classes give together with the prior."""
        new, root = np.zeros_like(mean), np.zeros_like(scatter)
        for j in range(len(self.names)):
            for group in self._groups:
                a, b, v = self.line(j, N[group], mean[group], scatter[group])
                new[group, j] = a + new[group, :j] @ b
                root[group, j, :j] = np.einsum("i,kij->kj", b, root[group, :j, :j])
                root[group, j, j] = np.sqrt(v)
        return replace(self, mean=new, root=root)

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


class SeparatePart(NormalPart, SeparateNormals):
    """Columns that are independent in each class, each with a variance, or `shared`, one for all of them."""

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
