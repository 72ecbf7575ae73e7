"""Missing numbers of normal nodes: their joint normal given the observed numbers, integrated and regressed.

With m the missing numbers and o the observed ones around them, every normal node that touches them says e = A m + C o − a with
e ~ Normal(0, diag v). Scaled to unit noise and factored, V^(−½) A = Q [R; 0], so with Q = [Q₁ Q₂]

    E[m | o]         −R⁻¹ Q₁ᵀ V^(−½) (C o − a)             Cov[m | o]  R⁻¹ R⁻ᵀ
    ln ∫ p dm        −½ |Q₂ᵀ V^(−½) (C o − a)|² − ½ Σ ln 2πv + |m|/2 ln 2π − ln |R|

Each missing number is the child of one of the nodes, so R is never singular; no covariance is formed and none is inverted.

Moments of completed rows are weighted: each row counts for several completions, each with its own weight.

What a pattern of missing numbers lacks is a choice of columns of one matrix, that of the nodes: e = M x − a, of which A are the
columns that are missing, and C those that are there. So patterns that touch the same nodes and lack as many numbers are solved
side by side: a hundred of them are one product of stacked matrices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.engines.gather import Groups, group_rows
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.incomplete.components import Line, NodeFamily
from suffice.incomplete.numbers.patterns import Component, Member
from suffice.statistics.moments import Cases, Spread, pool_spreads

FEW = 16
"""Of fewer rows than this the completions are not worth a product of matrices each."""


class ConditionalNormal(NamedTuple):
    """The missing numbers given the observed ones o, for each of many configurations (leading axes). mean = mean_map o +
    mean_constant; ln ∫ p = log_scale − ½ |residual_map o + residual_constant|²"""

    mean_map: Array
    mean_constant: Array
    residual_map: Array
    residual_constant: Array
    covariance: Array
    log_scale: Array


def conditional(component: Component, lines: Mapping[str, Line], indices: list[Ints]) -> ConditionalNormal:
    """The conditional of a component's unknown numbers, at a configuration of each of its joint nodes (all of one shape)."""
    shape, p = (*indices[0].shape, len(component.joint)), len(component.unknown)
    M, a, v = np.zeros((*shape, p + len(component.reals))), np.zeros(shape), np.zeros(shape)
    for i, (local, index) in enumerate(zip(component.joint, indices, strict=True)):
        line, (*parents, child) = lines[local.node.name], places(component, local)
        a[..., i], v[..., i] = line.intercept[index], line.variance[index]
        M[..., i, parents], M[..., i, child] = -line.coefficients[index], 1.0
    return solve_missing(M[..., :p], M[..., p:], a, v)


def solve_missing(A: Array, C: Array, a: Array, v: Array) -> ConditionalNormal:
    """The missing numbers m given o, where A m + C o − a ~ Normal(0, diag v)."""
    p = A.shape[-1]
    root = 1.0 / np.sqrt(v)
    Q, R = np.linalg.qr(A * root[..., None], mode="complete")
    turned = np.swapaxes(Q, -1, -2)
    C, d = turned @ (C * root[..., None]), -(turned @ (a * root)[..., None])[..., 0]
    inverse = np.linalg.inv(R[..., :p, :])
    pivots = np.abs(np.einsum("...ii->...i", R[..., :p, :]))
    log_scale = 0.5 * (p * LOG_2PI - (LOG_2PI + np.log(v)).sum(axis=-1)) - np.log(pivots).sum(axis=-1)
    mean, residual = (-(inverse @ C[..., :p, :]), -(inverse @ d[..., :p, None])[..., 0]), (C[..., p:, :], d[..., p:])
    return ConditionalNormal(*mean, *residual, inverse @ np.swapaxes(inverse, -1, -2), log_scale)


def places(component: Component, local: Member) -> list[int]:
    """Where the numbers of a joint node stand among the unknown and, behind them, the observed ones."""
    start = {"unknown": 0, "real": len(component.unknown)}
    return [start[kind] + i for kind, i in (local.sources[name] for name in local.node.reals)]


def some_columns(spread: Spread, columns: list[int]) -> Spread:
    """The moments of some of the columns."""
    weight, mean, rest, scatter = spread
    return Spread(weight, mean[:, columns], rest[:, columns], scatter[:, columns][:, :, columns])


def widen_groups(groups: Groups, keys: Ints, weight: Array, covariance: Array) -> Groups:
    """With the scatter of what is not known exactly: so much weight with these covariances at these configurations."""
    scatter = groups.spread.scatter.copy()
    np.add.at(scatter, np.searchsorted(groups.keys, keys), weight[..., None, None] * covariance)
    return replace(groups, spread=groups.spread._replace(scatter=scatter))


def collect_groups(keys: Ints, parts: Spread) -> Groups:
    """Groups from moments of configurations that may occur more than once."""
    if (keys[1:] > keys[:-1]).all():
        return Groups(keys, parts, np.zeros((len(keys), 0)))
    found, inverse = np.unique(keys, return_inverse=True)
    none = np.zeros((len(found), 0))
    if len(found) == len(keys):
        order = np.argsort(keys, kind="stable")
        return Groups(found, Spread(*(part[order] for part in parts)), none)
    return Groups(found, pool_spreads(parts, inverse, len(found)), none)


def weighted_moments(index: Ints, weight: Array, values: Array, n_cells: int) -> Groups:
    """The moments of completed rows within their configurations.

    index     (states, rows), or (states, 1) if all rows have the same configurations
    weight    (states, rows)
    values    (columns, rows), or (columns, states, rows) where the values hang on the state

    Means first, then the scatter around them: nothing is lost where a group is narrow and far from the rest.
    """
    if index.shape[1] == 1 and weight.shape[1] >= FEW:
        return collect_groups(index[:, 0], _by_state(weight, values))
    keys, group = group_rows(np.broadcast_to(index, weight.shape).reshape(-1), n_cells)
    wide = values if values.ndim == 3 else np.broadcast_to(values[:, None, :], (len(values), *weight.shape))
    values, weight = wide.reshape(len(values), weight.size), weight.reshape(-1)
    g, k = len(keys), len(values)
    total: Array = np.bincount(group, weight, g).astype(np.float64)
    divisor = np.where(total > 0, total, 1.0)
    mean, scatter, off = np.zeros((g, k)), np.zeros((g, k, k)), np.empty_like(values)
    for i, x in enumerate(values):
        mean[:, i] = np.bincount(group, weight * x, g) / divisor
        off[i] = x - mean[group, i]
        for j in range(i + 1):
            scatter[:, i, j] = scatter[:, j, i] = np.bincount(group, weight * off[i] * off[j], g)
    return Groups(keys, Spread(total, mean, np.zeros((g, k)), scatter), np.zeros((g, 0)))


def _by_state(weight: Array, values: Array) -> Spread:
    """One group of rows for each state: products of matrices."""
    n, k = len(weight), len(values)
    total = weight.sum(axis=1)
    divisor = np.where(total > 0, total, 1.0)
    mean, scatter = np.zeros((n, k)), np.zeros((n, k, k))
    if k == 1:
        x = values.reshape(-1, values.shape[-1])
        mean[:, 0] = np.einsum("sn,sn->s", weight, np.broadcast_to(x, weight.shape)) / divisor
        off = x - mean
        np.multiply(off, off, out=off)
        scatter[:, 0, 0] = np.einsum("sn,sn->s", weight, off)
        return Spread(total, mean, np.zeros((n, k)), scatter)
    if values.ndim == 2:
        mean = weight @ values.T / divisor[:, None]
    for s, w in enumerate(weight):
        x = values if values.ndim == 2 else values[:, s]
        if values.ndim == 3:
            mean[s] = x @ w / divisor[s]
        off = x - mean[s][:, None]
        scatter[s] = (off * w) @ off.T
    return Spread(total, mean, np.zeros((n, k)), (scatter + scatter.transpose(0, 2, 1)) / 2.0)


CELLS = 2**20
"""A batch has at most so many cells of matrices."""


@dataclass(frozen=True, eq=False)
class PatternBatch:
    """Moments of rows that lack numbers. Of each set of rows (first axis): where the missing and the observed numbers stand among
    `names`, and the configuration of each node."""

    nodes: tuple[NodeFamily, ...]
    names: tuple[str, ...]
    missing: Ints
    observed: Ints
    configurations: Ints
    spread: Spread

    def expect(self, lines: Mapping[str, Line]) -> tuple[float, dict[str, Groups]]:
        """ln p of what these rows observed, and the expected moments of each node."""
        nodes, names = tuple(zip(self.nodes, self.configurations, strict=True)), self.names
        n, q = len(self.missing), len(nodes)
        M, a, v = np.zeros((n, q, len(names))), np.empty((n, q)), np.empty((n, q))
        for i, (node, keys) in enumerate(nodes):
            line, (*parents, child) = lines[node.name], [names.index(r) for r in node.reals]
            a[:, i], v[:, i] = line.intercept[keys], line.variance[keys]
            M[:, i, parents], M[:, i, child] = -line.coefficients[keys], 1.0
        A, C = (np.take_along_axis(M, at[:, None, :], axis=2) for at in (self.missing, self.observed))
        c = solve_missing(A, C, a, v)
        N, o, _, S = self.spread
        off = (c.residual_map @ o[..., None])[..., 0] + c.residual_constant
        square = np.einsum("gro,gro->g", c.residual_map @ S, c.residual_map) + N * (off * off).sum(axis=-1)
        m, k, each = self.missing.shape[1], self.observed.shape[1], np.arange(n)[:, None]
        mean, T = np.empty((n, len(names))), np.zeros((n, len(names), k))
        mean[each, self.missing] = (c.mean_map @ o[..., None])[..., 0] + c.mean_constant
        mean[each, self.observed] = o
        T[each, self.missing], T[each, self.observed, np.arange(k)] = c.mean_map, 1.0
        scatter = T @ S @ np.swapaxes(T, 1, 2)
        if m:
            scatter[each[..., None], self.missing[:, :, None], self.missing[:, None, :]] += N[:, None, None] * c.covariance
        whole = Spread(N, mean, np.zeros_like(mean), scatter)
        places_of = {node.name: [names.index(r) for r in node.reals] for node, _ in nodes}
        moments = {node.name: collect_groups(keys, some_columns(whole, places_of[node.name])) for node, keys in nodes}
        return float(N @ c.log_scale - 0.5 * square.sum()), moments


def pattern_batches(parts: Iterable[tuple[Component, Cases]]) -> Iterator[PatternBatch]:
    """The moments of components without finite unknowns, those together that can be."""
    alike: dict[tuple[object, ...], list[PatternBatch]] = {}
    for component, cases in parts:
        names, size = tuple(sorted((*component.unknown, *component.reals))), len(cases.spread.weight)
        columns = (np.array([names.index(n) for n in own], np.int64) for own in (component.unknown, component.reals))
        missing, observed = (np.tile(own, (size, 1)) for own in columns)
        keys = np.array([np.broadcast_to(local.index(cases.codes)[0], size) for local in component.joint], np.int64)
        batch = PatternBatch(tuple(local.node for local in component.joint), names, missing, observed, keys, cases.spread)
        alike.setdefault((tuple(node.name for node in batch.nodes), missing.shape[1]), []).append(batch)
    for batches in alike.values():
        nodes, names = batches[0].nodes, batches[0].names
        missing, observed = (np.concatenate(part) for part in zip(*((b.missing, b.observed) for b in batches), strict=True))
        keys = np.concatenate([b.configurations for b in batches], axis=1)
        spread = [np.concatenate(part) for part in zip(*(b.spread for b in batches), strict=True)]
        most = max(1, CELLS // (len(nodes) ** 2 + len(names) ** 2))
        for some in (slice(i, i + most) for i in range(0, len(missing), most)):
            own = Spread(*(part[some] for part in spread))
            yield PatternBatch(nodes, names, missing[some], observed[some], keys[:, some], own)
