"""The rows of a block in the arrays that counting kernels take, and partial tables and moments of them that add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import ROWS, Array, Block
from suffice.statistics.chan import Spread, merged


@dataclass(frozen=True)
class Layout:
    """The columns of a block by the array they lie in: codes of one byte, wider codes, numbers."""

    narrow: tuple[str, ...]
    wide: tuple[str, ...]
    real: tuple[str, ...]


class Buffers:
    """Rows of columns in three arrays, one column a row of its array; filled again and again."""

    def __init__(self, layout: Layout, weighted: bool, n_rows: int = ROWS) -> None:
        self.layout = layout
        self.n_rows = 0
        self.narrow = np.empty((len(layout.narrow), n_rows), np.uint8)
        self.wide = np.empty((len(layout.wide), n_rows), np.uint32)
        self.real = np.empty((len(layout.real), n_rows), np.float64)
        self.weight = np.ones(n_rows)
        self.weighted = weighted
        parts = ((layout.narrow, self.narrow), (layout.wide, self.wide), (layout.real, self.real))
        self._rows = {name: array[i] for names, array in parts for i, name in enumerate(names)}

    def __getitem__(self, name: str) -> Array:
        row: Array = self._rows[name]
        return row[: self.n_rows]

    def filled(self, block: Block) -> Buffers:
        """These buffers with the rows of a block, or larger ones if it does not fit."""
        n_rows = block.n_rows
        if n_rows > len(self.weight):
            return Buffers(self.layout, self.weighted, n_rows).filled(block)
        self.n_rows = n_rows
        for name, row in self._rows.items():
            row[:n_rows] = block.columns[name]
        if self.weighted:
            self.weight[:n_rows] = block.weights
        return self


def layout_of(dtypes: Mapping[str, np.dtype[Any]]) -> Layout:
    """Where each of the columns lies in a block, by its type.

    >>> layout_of({"x": np.dtype(np.uint8), "y": np.dtype(np.float64)})
    Layout(narrow=('x',), wide=(), real=('y',))
    """
    narrow = tuple(n for n, t in dtypes.items() if t == np.uint8)
    real = tuple(n for n, t in dtypes.items() if t == np.float64)
    return Layout(narrow, tuple(n for n in dtypes if n not in {*narrow, *real}), real)


Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.int64]
Table = tuple[Keys, Floats]

SMALL = 2**16
"""Up to so many configurations, those that occur are found by counting, which is faster than sorting."""


@dataclass(frozen=True, eq=False)
class Groups:
    """The weight, mean and centred scatter of the configurations that occur, and Σ w ln x! of their counts."""

    keys: Keys
    spread: Spread
    log_base: Floats

    def __add__(self, other: Groups) -> Groups:
        """The moments of the rows behind both."""
        a, b = self, other
        if not np.array_equal(a.keys, b.keys):
            keys = np.union1d(a.keys, b.keys)
            a, b = a.over(keys), b.over(keys)
        return Groups(a.keys, merged(a.spread, b.spread), a.log_base + b.log_base)

    def over(self, keys: Keys) -> Groups:
        """The same moments over more configurations, the new ones without weight."""
        at = np.searchsorted(keys, self.keys)
        parts = []
        for part in (*self.spread, self.log_base):
            wider = np.zeros((len(keys), *part.shape[1:]))
            wider[at] = part
            parts.append(wider)
        return Groups(keys, Spread(*parts[:4]), parts[4])


def table_of(flat: Keys, weight: Floats | None) -> Table:
    """The cells that occur, and their counts or weights.

    >>> table_of(np.array([7, 3, 7]), None)
    (array([3, 7]), array([1., 2.]))
    """
    keys, inverse = np.unique(flat, return_inverse=True)
    counts = np.bincount(inverse, weight, len(keys)) if weight is not None else np.bincount(inverse, minlength=len(keys))
    return keys, counts.astype(np.float64)


def add_tables(a: Table, b: Table) -> Table:
    """The sum of two lists of cells."""
    keys, inverse = np.unique(np.concatenate([a[0], b[0]]), return_inverse=True)
    values = np.bincount(inverse, np.concatenate([a[1], b[1]]), len(keys))
    return keys, values.astype(np.float64, copy=False)


def grouped(flat: Keys, n_configurations: int) -> tuple[Keys, npt.NDArray[np.uint32]]:
    """The configurations that occur, and the position among them of each row's.

    >>> grouped(np.array([7, 3, 7]), 10)
    (array([3, 7]), array([1, 0, 1], dtype=uint32))
    """
    if n_configurations == 1:
        return np.zeros(1, np.int64), np.zeros(len(flat), np.uint32)
    if n_configurations > SMALL:
        keys, inverse = np.unique(flat, return_inverse=True)
        return keys, inverse.astype(np.uint32)
    occurs = np.bincount(flat, minlength=n_configurations) > 0
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1).astype(np.uint32)[flat]


def log_base(x: Floats, weight: Floats) -> Floats:
    """w ln x! of each row: what the log-probability of a count has beside its moments.

    >>> np.exp(log_base(np.array([0.0, 3.0]), np.ones(2))).round(12)
    array([1., 6.])
    """
    from scipy.special import gammaln

    return np.asarray(weight * gammaln(x + 1.0))


def moments_of(
    block: Buffers,
    members: npt.NDArray[np.int32],
    groups: tuple[Keys, npt.NDArray[np.uint32]],
    bases: Sequence[Floats],
    *,
    compiled: bool,
) -> Groups:
    """The moments of columns of a block within groups of its rows; `bases` has w ln x! of those that are counts."""
    keys, group = groups
    g, k = len(keys), len(members)
    result = Spread(np.zeros(g), np.zeros((g, k)), np.zeros((g, k)), np.zeros((g, k, k)))
    if compiled:
        from suffice.kernels.moments import moments

        moments(block.real, members, group, block.weight, block.n_rows, *result)
    else:
        _plain_moments(block, members, group, result)
    sums = [np.bincount(group, base, g) for base in bases]
    return Groups(keys, result, np.array(sums, np.float64).reshape(len(sums), g).T)


def whole_moments(block: Buffers, members: npt.NDArray[np.int32], bases: Sequence[Floats]) -> Groups:
    """The moments of columns of a block, all its rows in one group: a product of matrices, which no loop of ours beats."""
    x = block.real[members, : block.n_rows]
    k = len(members)
    if block.weighted:
        w = block.weight[: block.n_rows]
        total = float(w.sum())
        share = w / total if total > 0 else w
    else:
        w, total = None, float(block.n_rows)
        share = np.full(block.n_rows, 1.0 / total)
    mean = x @ share
    off = x - mean[:, None]
    rest = off @ share
    scatter = (off if w is None else off * w) @ off.T - total * np.outer(rest, rest)
    scatter = (scatter + scatter.T) / 2.0
    parts = Spread(np.array([total]), mean.reshape(1, k), rest.reshape(1, k), scatter.reshape(1, k, k))
    return Groups(np.zeros(1, np.int64), parts, np.array([[base.sum() for base in bases]], np.float64))


def _plain_moments(block: Buffers, members: npt.NDArray[np.int32], group: npt.NDArray[np.uint32], result: Spread) -> None:
    """What the kernel does, in the same order of sums and so with the same bits, for data not worth a compiler."""
    n, g = block.n_rows, len(result.weight)
    weight = block.weight[:n]
    rows = [block.real[m, :n] for m in members]
    result.weight[:] = np.bincount(group, weight, g)
    divisor = np.where(result.weight > 0, result.weight, 1.0)
    off, drift = [], []
    for a, x in enumerate(rows):
        result.mean[:, a] = np.bincount(group, weight * x, g) / divisor
        off.append(x - result.mean[group, a])
        drift.append(np.bincount(group, weight * off[a], g))
        for b in range(a + 1):
            scatter = np.bincount(group, weight * off[a] * off[b], g) - drift[a] * drift[b] / divisor
            result.scatter[:, a, b] = result.scatter[:, b, a] = scatter
    result.rest[:] = np.stack(drift, axis=1) / divisor[:, None]
