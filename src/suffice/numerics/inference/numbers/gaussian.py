"""Real nodes given the finite variables: jointly Gaussian, conditioned on some of them in square-root form.

Given a configuration of the finite variables, x = μ + A z with z independent standard normal, and A lower triangular: the row
of a node is that of its parents times its coefficients, and √variance for its own noise. A node with a value is a constant
to its children. For evidence e and targets t, one QR decomposition of their rows of A side by side gives all there is:

    [Aₑᵀ Aₜᵀ] = Q [ Rₑₑ Rₑₜ ]      w = Rₑₑ⁻ᵀ (e − μₑ)
                  [  0  Rₜₜ ]
    ln p(e) = −½ (k ln 2π + |w|²) − Σ ln |diag Rₑₑ|
    E[t | e] = μₜ + Rₑₜᵀ w,    Cov[t | e] = Rₜₜᵀ Rₜₜ

A covariance matrix is not formed, let alone inverted: that would square the condition number. Columns are scaled to length 1,
and the noises with most influence come first, for which Householder's QR keeps the digits of small ones (Higham 2002,
Accuracy and Stability of Numerical Algorithms, 2nd ed., §19.4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.basis.libraries import sc
from suffice.errors import ModelError

LOG_2PI = float(np.log(2.0 * np.pi))
CELLS = 2**22
"""Configurations are worked on in blocks of about this many numbers."""
FEW = 32
"""So many targets share a decomposition where their covariances are not asked for."""
SMALLEST = 1e-10
"""Evidence whose standard deviation given the other evidence is a smaller share of its own than this is collinear."""
NO_VARIANCE = 1e-300
"""The variance of a count of rate 0, which is always 0: a Gaussian node has some."""
FINE, COLLINEAR, OVERFLOW = -1, -2, -3
"""What may be wrong with a configuration; a number from 0 up is the node that has no parameters there."""

Configurations = Mapping[int, int | Ints]
"""For each finite variable its code: one for all configurations, or one for each."""


@dataclass(frozen=True, eq=False)
class GaussianNode:
    """p(y | u, x) = Normal(intercept[u] + coefficients[u]·x, variance[u]). u are finite variables and x real ones, both by
    number: `finite_parents` count within the finite network, `real_parents` among the Gaussian nodes. Arrays have one axis per
    finite parent, coefficients one more for x. NaN means that a configuration has no parameters."""

    finite_parents: tuple[int, ...]
    real_parents: tuple[int, ...]
    intercept: Array
    coefficients: Array
    variance: Array

    @property
    def never_zero(self) -> bool:
        """Whether no value is ruled out by a configuration."""
        return True

    @property
    def complete(self) -> bool:
        """Whether every configuration has parameters, by which every number is possible."""
        return self.never_zero and not any(np.isnan(a).any() for a in (self.intercept, self.coefficients, self.variance))


@dataclass(frozen=True, eq=False)
class CountNode(GaussianNode):
    """p(n | u) = Poisson(rates[u]), u finite variables by number; NaN means that a configuration has no rate.

    An observed count weighs the configurations of its finite parents, and is a constant to its children, as any observed number
    is. One that is not observed is barren, or asked for: then all that is said of it here is its mean and its variance, both λ.
    So a count is a Gaussian node with these moments, but for the probability of its value.
    """

    @classmethod
    def of(cls, finite_parents: tuple[int, ...], means: Array, variances: Array | None = None, *rest: Any) -> Self:
        spread = np.maximum(means if variances is None else variances, NO_VARIANCE)
        return cls(finite_parents, (), means, np.zeros((*means.shape, 0)), spread, *rest)

    @property
    def rates(self) -> Array:
        return self.intercept

    @property
    def never_zero(self) -> bool:
        return bool((self.rates > 0.0).all())

    def weight(self, counts: Array, index: Ints) -> tuple[Array, Array]:
        """ln p(counts) in some configurations, [configurations, rows], and the logarithm of the variance that a Gaussian would
        have; NaN where a configuration has no rate."""
        rates = self.rates.reshape(-1)[index][:, None]
        return log_poisson(counts, rates), np.log(np.maximum(rates, NO_VARIANCE))


@dataclass(frozen=True, eq=False)
class DensityNode(CountNode):
    """A number of any distribution whose value is known before: all that is held of p(n | u) is its logarithm at that value. It
    must be observed, or barren."""

    @property
    def never_zero(self) -> bool:
        return bool((self.intercept > -np.inf).all())

    def weight(self, counts: Array, index: Ints) -> tuple[Array, Array]:
        shape = (len(index), len(counts))
        return np.broadcast_to(self.intercept.reshape(-1)[index][:, None], shape), np.zeros(shape)


@dataclass(frozen=True, eq=False)
class DistributionNode(CountNode):
    """A number of any distribution given finite variables: its means and variances, and ln p of values in some configurations."""

    log_prob: Callable[[Ints, Array], Array]

    @property
    def never_zero(self) -> bool:
        return bool((self.variance > NO_VARIANCE).all())

    def weight(self, counts: Array, index: Ints) -> tuple[Array, Array]:
        return self.log_prob(index, counts), np.log(self.variance.reshape(-1)[index])[:, None]


def log_poisson(n: Array, rates: Array) -> Array:
    """ln p(n) at a rate λ: n ln λ − λ − ln n!; at the rate 0 only n = 0 is possible."""
    return np.asarray(sc.xlogy(n, rates) - rates - sc.gammaln(n + 1.0))


class Conditioned(NamedTuple):
    """p(targets | evidence, configuration) and p(evidence | configuration), for each configuration and row of evidence."""

    mean: Array
    """E[targets | evidence]: [configurations, rows, targets]."""
    root: Array
    """Rₜₜ, whose columns' products are Cov[targets | evidence]: [configurations, targets, targets]; only their lengths,
    [configurations, 1, targets], where covariances were not asked for."""
    log_density: Array
    """ln p(evidence): [configurations, rows]; NaN where a configuration is in trouble."""
    distance: Array
    """|w|², how many standard deviations the evidence is off, squared: [configurations, rows]."""
    trouble: Ints
    """`FINE`, or what is wrong: [configurations]."""

    @property
    def covariance(self) -> Array:
        """[configurations, targets, targets]."""
        return np.asarray(np.swapaxes(self.root, -1, -2) @ self.root)

    @property
    def variance(self) -> Array:
        """The diagonal of the covariance: [configurations, targets]."""
        return np.asarray((self.root * self.root).sum(axis=-2))


class HiddenCount(ModelError):
    """A count that is not observed, but has a real child that matters: by their numbers."""

    def __init__(self, count: int, child: int) -> None:
        super().__init__(f"the count {count} of the Gaussian node {child} is not observed")
        self.count, self.child = count, child


class Gaussians:
    """Gaussian nodes and counts in topological order, their numbers end to end so that those of many are found at once."""

    def __init__(self, nodes: Sequence[GaussianNode]) -> None:
        self.nodes = tuple(nodes)
        self._counts = {m: node for m, node in enumerate(nodes) if isinstance(node, CountNode)}
        self._start = np.cumsum([0, *(n.variance.size for n in nodes)])[:-1]
        self._intercept, self._variance = _end_to_end(n.intercept for n in nodes), _end_to_end(n.variance for n in nodes)
        # coefficients edge by edge: those of one parent in all configurations, then those of the next
        self._edge_start = np.cumsum([0, *(n.coefficients.size for n in nodes)])[:-1]
        self._coefficients = _end_to_end(np.moveaxis(n.coefficients, -1, 0) for n in nodes)

    def condition(
        self,
        members: Sequence[int],
        targets: Sequence[int],
        values: Mapping[int, Array],
        configurations: Configurations,
        n_configurations: int = 1,
        *,
        joint: bool = True,
    ) -> Conditioned:
        """Condition the targets on the members that have values, in each configuration and for each row of values.

        `members` are the numbers of the nodes in question, ascending: targets, evidence, and with each member its real
        parents, unless they have values. `values` has one number per row for each node that is observed. With
        `joint=False` the targets' variances are found, not their covariances.
        """
        counts = [m for m in members if m in self._counts and m in values] if self._counts else []
        members = [m for m in members if m not in counts]
        for m in members if self._counts else ():
            for p in self.nodes[m].real_parents:
                if p not in values and p in self._counts:
                    raise HiddenCount(p, m)
        rows = max((len(v) for v in values.values()), default=1)
        step = max(1, CELLS // max(1, len(members) * max(len(members), rows)))
        parts = []
        for start in range(0, n_configurations, step):
            stop = min(start + step, n_configurations)
            some = {v: c if isinstance(c, int) else c[start:stop] for v, c in configurations.items()}
            spread = self._propagate(members, values, some, stop - start, rows)
            parts.append(_condition(spread, members, targets, values, joint))
        answer = parts[0] if len(parts) == 1 else Conditioned(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
        if any(t in self._counts for t in targets):  # those of rate 0 have no variance after all
            counted = np.array([t in self._counts for t in targets], bool)
            lost = counted & (np.abs(answer.root) < 2.0 * np.sqrt(NO_VARIANCE))
            answer = answer._replace(root=np.where(lost, 0.0, answer.root))
        for m in counts:  # the probability of observed counts
            index = self._places([m], configurations, len(answer.trouble))[0]
            lost = np.isnan(self._counts[m].intercept.reshape(-1)[index])
            trouble = np.where(lost & (answer.trouble == FINE), m, answer.trouble)
            logs, log_variance = self._counts[m].weight(values[m], index)
            logs = np.where((trouble == FINE)[:, None], logs, np.nan)
            # what a log-density has beside −½ ln 2πv of each node: of a count there is no other use for it
            distance = answer.distance - 2.0 * logs - LOG_2PI - log_variance
            answer = answer._replace(log_density=answer.log_density + logs, distance=distance, trouble=trouble)
        return answer

    def _propagate(
        self, members: Sequence[int], values: Mapping[int, Array], configurations: Configurations, size: int, rows: int
    ) -> tuple[Array, Array, Ints]:
        """μ [members, configurations, rows], A [members, configurations, noises], and what is wrong [configurations]."""
        place = {m: i for i, m in enumerate(members)}
        intercept, variance, coefficients, trouble = self._parameters(members, configurations, size)
        mean, loadings = np.empty((len(members), size, rows)), np.zeros((len(members), size, len(members)))
        noise, b = np.sqrt(variance), iter(coefficients[:, :, None])
        with np.errstate(over="ignore", invalid="ignore"):
            for i, m in enumerate(members):
                center, row = mean[i], loadings[i]
                center[:] = intercept[i, :, None]
                for parent, slope in zip(self.nodes[m].real_parents, b, strict=False):
                    if parent in values:
                        center += slope * values[parent]
                    else:
                        p = place[parent]
                        center += slope * mean[p]
                        row[:, : p + 1] += slope * loadings[p, :, : p + 1]
                row[:, i] = noise[i]
        trouble[~np.isfinite(mean).all(axis=(0, 2)) & (trouble == FINE)] = OVERFLOW
        return mean, loadings, trouble

    def _parameters(self, members: Sequence[int], configurations: Configurations, size: int) -> tuple[Array, Array, Array, Ints]:
        """Intercepts and variances [members, configurations], coefficients [edges, configurations], and for each configuration
        the first node that has no parameters there (harmless ones stand in), or `FINE`.
        """
        index, child, start = self._places(members, configurations, size), [], []
        for i, m in enumerate(members):
            node = self.nodes[m]
            child += [i] * len(node.real_parents)
            start += [self._edge_start[m] + j * node.variance.size for j in range(len(node.real_parents))]
        coefficients = self._coefficients[np.array(start, np.int64)[:, None] + index[child]]
        index += self._start[np.asarray(members, np.int64)][:, None]
        intercept, variance = self._intercept[index], self._variance[index]
        trouble, nan = np.full(size, FINE, np.int64), np.isnan(intercept + variance)
        for e in np.flatnonzero(np.isnan(coefficients).any(axis=1)):
            nan[child[e]] |= np.isnan(coefficients[e])
        lost = nan.any(axis=0)
        if lost.any():
            trouble[lost] = np.asarray(members)[np.argmax(nan, axis=0)[lost]]
            intercept[:, lost], coefficients[:, lost], variance[:, lost] = 0.0, 0.0, 1.0
        return intercept, variance, coefficients, trouble

    def _places(self, members: Sequence[int], configurations: Configurations, size: int) -> Ints:
        """Where the numbers of each configuration stand among those of a node: [members, configurations]."""
        index = np.zeros((len(members), size), np.int64)
        for i, m in enumerate(members):
            for v, r in zip(self.nodes[m].finite_parents, self.nodes[m].variance.shape, strict=True):
                index[i] = index[i] * r + configurations[v]
        return index


def _condition(
    spread: tuple[Array, Array, Ints], members: Sequence[int], targets: Sequence[int], values: Mapping[int, Array], joint: bool
) -> Conditioned:
    mean, loadings, trouble = spread
    place = {m: i for i, m in enumerate(members)}
    seen, asked = [m for m in members if m in values], [place[t] for t in targets]
    k, chosen = len(seen), [*(place[m] for m in seen), *asked]
    columns = np.transpose(loadings[chosen], (1, 2, 0))
    # Columns of length 1, and what their lengths were. A column too long for a number is trouble.
    peak = np.abs(columns).max(axis=1, initial=0.0)
    lost = ~np.isfinite(peak).all(axis=1)
    if lost.any():
        trouble[lost & (trouble == FINE)] = OVERFLOW
        columns, peak = np.where(lost[:, None, None], np.eye(*columns.shape[1:]), columns), np.where(lost[:, None], 1.0, peak)
    columns = columns / peak[:, None, :]
    length = np.sqrt((columns * columns).sum(axis=1))
    triangles, scale = _triangles(columns / length[:, None, :], k, joint), peak * length
    R_ee = triangles[0][:, :k, :k]
    collinear = np.any(np.abs(np.diagonal(R_ee, axis1=1, axis2=2)) < SMALLEST, axis=1)
    trouble[collinear & (trouble == FINE)] = COLLINEAR
    R_ee = np.where(collinear[:, None, None], np.eye(k), R_ee)  # a stand-in
    off = np.zeros((len(trouble), k, mean.shape[2]))
    with np.errstate(over="ignore", invalid="ignore"):
        for i, m in enumerate(seen):
            off[:, i] = (values[m] - mean[place[m]]) / scale[:, i, None]
        w = np.linalg.solve(np.swapaxes(R_ee, 1, 2), off) if k else off
        distance = (w * w).sum(axis=1)
        shift = np.concatenate([np.swapaxes(R[:, :k, k:], 1, 2) @ w for R in triangles], axis=1) * scale[:, k:, None]
    lengths = np.abs(np.diagonal(R_ee, axis1=1, axis2=2)) * scale[:, :k]
    log_density = -0.5 * (k * LOG_2PI + distance) - np.log(lengths).sum(axis=1)[:, None]
    log_density[trouble != FINE] = np.nan
    roots = [R[:, k:, k:] if joint else np.sqrt((R[:, k:, k:] ** 2).sum(axis=1, keepdims=True)) for R in triangles]
    root = np.concatenate(roots, axis=2) * scale[:, None, k:]
    return Conditioned(np.swapaxes(shift, 1, 2) + np.transpose(mean[asked], (1, 2, 0)), root, log_density, distance, trouble)


def _triangles(columns: Array, k: int, joint: bool) -> list[Array]:
    """R of the evidence, the first k columns, with all targets; or, if their covariances do not matter, with some at a time."""
    if k:
        # which noise has which number changes nothing but rounding
        order = np.argsort(-np.abs(columns[:, :, :k]).max(axis=2), axis=1, kind="stable")
        columns = np.take_along_axis(columns, order[:, :, None], axis=1)
    n_targets, few = columns.shape[2] - k, max(FEW, k)
    groups = [columns]
    if not joint and n_targets > few:
        evidence, targets = columns[:, :, :k], columns[:, :, k:]
        groups = [np.concatenate([evidence, targets[:, :, i : i + few]], axis=2) for i in range(0, n_targets, few)]
    return [np.asarray(np.linalg.qr(group, mode="r")) for group in groups]


def _end_to_end(arrays: Iterable[Array]) -> Array:
    return np.concatenate([*(a.reshape(-1) for a in arrays), np.zeros(0)])
