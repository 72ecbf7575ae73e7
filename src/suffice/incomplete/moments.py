"""Weighted moments of completed rows: each row counts for several completions, each with its own weight."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from suffice.engines.gather import Groups, grouped
from suffice.statistics.chan import Spread, pooled

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

FEW = 16
"""Of fewer rows than this the completions are not worth a product of matrices each."""


def no_groups(n_columns: int, n_counted: int = 0) -> Groups:
    """No configuration at all."""
    k = n_columns
    spread = Spread(np.zeros(0), np.zeros((0, k)), np.zeros((0, k)), np.zeros((0, k, k)))
    return Groups(np.zeros(0, np.int64), spread, np.zeros((0, n_counted)))


def some_columns(spread: Spread, columns: list[int]) -> Spread:
    """The moments of some of the columns."""
    weight, mean, rest, scatter = spread
    return Spread(weight, mean[:, columns], rest[:, columns], scatter[:, columns][:, :, columns])


def widened(groups: Groups, keys: Index, weight: Array, covariance: Array) -> Groups:
    """With the scatter of what is not known exactly: so much weight with these covariances at these configurations."""
    scatter = groups.spread.scatter.copy()
    np.add.at(scatter, np.searchsorted(groups.keys, keys), weight[..., None, None] * covariance)
    return replace(groups, spread=groups.spread._replace(scatter=scatter))


def collected(keys: Index, parts: Spread) -> Groups:
    """Groups from moments of configurations that may occur more than once."""
    found, inverse = np.unique(keys, return_inverse=True)
    none = np.zeros((len(found), 0))
    if len(found) == len(keys):
        order = np.argsort(keys, kind="stable")
        return Groups(found, Spread(*(part[order] for part in parts)), none)
    return Groups(found, pooled(parts, inverse, len(found)), none)


def weighted_moments(index: Index, weight: Array, values: Array, n_cells: int) -> Groups:
    """The moments of completed rows within their configurations.

    index     (states, rows), or (states, 1) if all rows have the same configurations
    weight    (states, rows)
    values    (columns, rows), or (columns, states, rows) where the values hang on the state

    Means first, then the scatter around them: nothing is lost where a group is narrow and far from the rest.
    """
    if index.shape[1] == 1 and weight.shape[1] >= FEW:
        return collected(index[:, 0], _by_state(weight, values))
    flat = np.broadcast_to(index, weight.shape).reshape(-1)
    wide = values if values.ndim == 3 else np.broadcast_to(values[:, None, :], (len(values), *weight.shape))
    return _scattered(flat, weight.reshape(-1), wide.reshape(len(values), weight.size), n_cells)


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


def _scattered(flat: Index, weight: Array, values: Array, n_cells: int) -> Groups:
    """Rows of any configurations: sums by counting."""
    keys, group = grouped(flat, n_cells)
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
