"""Many rows at once, each with other cells observed: posteriors of finite variables, and the probability of what is observed.

Row by row the part of the network is found on which the answer depends: no barren variables, nothing that observed ones cut
off. Each different part is arranged once, and so many rows with the same cells observed cost little more than their tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.inference.log_domain import Weighed
from suffice.inference.network import HINTED, NONE, Array, Ints, Network
from suffice.inference.posterior import answered, carefully, tree_for
from suffice.inference.questions import DONE, IMPOSSIBLE, Codes, in_rows
from suffice.inference.tree import Tree


class RowEvidence(NamedTuple):
    """What some rows observe: a line per row and a column per finite variable (−1: not observed) or real one (NaN)."""

    codes: npt.NDArray[Any]
    reals: Array

    @property
    def n_rows(self) -> int:
        return len(self.codes)

    def take(self, rows: npt.NDArray[Any]) -> RowEvidence:
        """Some of the rows."""
        return RowEvidence(self.codes[rows], self.reals[rows])


def alike(lines: npt.NDArray[Any]) -> Iterator[Ints]:
    """The numbers of the lines that are equal, group by group.

    >>> [same.tolist() for same in alike(np.array([[1, 0], [0, 0], [1, 0]]))]
    [[1], [0, 2]]
    """
    if not len(lines) or not lines.shape[1]:
        yield from [np.arange(len(lines))] if len(lines) else []
        return
    _, inverse, counts = np.unique(keys_of(lines), return_inverse=True, return_counts=True)
    yield from np.split(np.argsort(inverse, kind="stable"), np.cumsum(counts)[:-1])


def keys_of(lines: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Lines as single values that can be sorted."""
    packed = np.packbits(lines, axis=1) if lines.dtype == bool else np.ascontiguousarray(lines)
    return packed.view(np.dtype((np.void, packed.shape[1] * packed.itemsize))).reshape(-1)


def posteriors(network: Network, targets: Sequence[int], codes: Ints) -> list[Array]:
    """For each target, p(target | the observed cells of a row other than the target's own): one line per row.

    `codes` has one line per row and a column per variable, −1 where a cell is not observed. Where those cells are impossible
    together, the line is NaN.
    """
    result, seen = [], np.array(codes, np.int32)
    for t in targets:
        own = seen[:, t].copy()
        seen[:, t] = NONE
        result.append(_answered(network, [int(t)], network.with_zeros, seen, network.tables[None])[0])
        seen[:, t] = own
    return result


def log_probs(network: Network, codes: Codes) -> Array:
    """ln p(observed codes) of each row of a finite network, −1 where a cell is not observed; −inf for impossible rows.

    >>> net = Network.of([2, 2], [((0,), 0, np.array([0.5, 0.5])), ((0, 1), 1, np.array([[1.0, 0.0], [0.5, 0.5]]))])
    >>> np.exp(log_probs(net, np.array([[-1, 0], [0, 1], [-1, -1]]))).round(6)
    array([0.75, 0.  , 1.  ])
    """
    seen = np.ascontiguousarray(codes, np.int32)
    if not len(seen) or not network.n_variables:
        return np.zeros(len(seen))
    return _answered(network, (), network.all_factors, seen, network.tables[None])[1]


def marginals_in_rows(network: Network, codes: Ints) -> Array:
    """p(v | the observed cells of a row) of every variable whose code is −2: one line per row, variable v at `network.starts[v]`.

    Other variables that are not observed have the code −1; what stands in their places means nothing. Impossible rows are NaN.
    """
    seen = np.ascontiguousarray(codes, np.int32)
    if not len(seen):
        return np.zeros((0, int(network.starts[-1])))
    out, log_prob, status = in_rows(network, (), network.all_factors, seen, network.tables[None], network.starts)
    out[log_prob == -np.inf] = np.nan
    for r in np.flatnonzero((status != DONE) & (status != IMPOSSIBLE)):
        for v in np.flatnonzero(seen[r] == HINTED):
            row = seen[r].astype(np.int64)
            row[v] = NONE
            at = slice(network.starts[v], network.starts[v + 1])
            out[r, at] = carefully([int(v)], network.with_zeros, Weighed(network, network.tables, row, 0.0))[0]
    return out


def posteriors_over_tables(network: Network, targets: Sequence[int], codes: Ints, tables: Array) -> Array:
    """p(targets | evidence) under many settings of the tables, one line each of all the joint's cells.

    Each line of `tables` takes the place of `network.tables`. NaN where the evidence is impossible.
    """
    seen = np.ascontiguousarray(codes, np.int32)[None]
    return _answered(network, targets, network.all_factors, seen, tables)[0]


def _answered(network: Network, targets: Sequence[int], seeds: Ints, seen: Codes, tables: Array) -> tuple[Array, Array]:
    """All rows by the kernel, and those that it could not answer one by one, with a tree for each set of observed variables."""
    out, log_prob, status = in_rows(network, targets, seeds, seen, tables)
    trees: dict[bytes, Tree] = {}
    for r in np.flatnonzero((status != DONE) & (status != IMPOSSIBLE)):
        codes = seen[r if len(seen) > 1 else 0].astype(np.int64)
        key = np.minimum(codes, 0).tobytes()
        if key not in trees:
            trees = {key: tree_for(network, targets, seeds, codes)}  # one at a time: they may be large
        out[r], log_prob[r] = answered(trees[key], targets, Weighed(network, tables[r if len(tables) > 1 else 0], codes, 0.0))
    return out, log_prob
