"""Many rows at once, each with other cells observed: posteriors of finite variables, and the probability of what is observed.

Row by row the part of the network is found on which the answer depends: no barren variables, nothing that observed ones cut
off. Each different part is arranged once, and so many rows with the same cells observed cost little more than their tables.

The missing cells of rows may be filled in: each by its most probable state, or all of a row together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.inference.network import HINTED, NONE, Array, Ints, Network
from suffice.inference.questions import DONE, IMPOSSIBLE, Codes, answered, in_rows, most_probable

Flags = npt.NDArray[np.bool_]

MAX_NUMBERS = 2**23
"""Probabilities that are held at once: 64 MiB."""


class RowEvidence(NamedTuple):
    """What some rows observe: a line per row and a column per finite variable (−1: not observed) or real one (NaN)."""

    codes: npt.NDArray[Any]
    reals: npt.NDArray[Any]

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
        result.append(answered(network, [int(t)], network.with_zeros, seen, network.tables[None])[0])
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
    return answered(network, (), network.all_factors, seen, network.tables[None])[1]


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
            row = seen[r : r + 1].copy()
            row[0, v] = NONE
            at = slice(network.starts[v], network.starts[v + 1])
            out[r, at] = answered(network, [int(v)], network.with_zeros, row, network.tables[None])[0][0]
    return out


def posteriors_over_tables(network: Network, targets: Sequence[int], codes: Ints, tables: Array) -> Array:
    """p(targets | evidence) under many settings of the tables, one line each of all the joint's cells.

    Each line of `tables` takes the place of `network.tables`. NaN where the evidence is impossible.
    """
    seen = np.ascontiguousarray(codes, np.int32)[None]
    return answered(network, targets, network.all_factors, seen, tables)[0]


def fill_each(network: Network, codes: Codes, gaps: Flags) -> Flags:
    """Fill every gap by its most probable state, in place; which rows are impossible, whose gaps stay."""
    impossible, starts = np.zeros(len(codes), bool), network.starts
    for rows in np.array_split(np.arange(len(codes)), -(-len(codes) * int(starts[-1]) // MAX_NUMBERS) or 1):
        probs = marginals_in_rows(network, np.where(gaps[rows], np.int32(HINTED), codes[rows]))
        for v in np.flatnonzero(gaps[rows].any(axis=0)).tolist():
            own = np.flatnonzero(gaps[rows, v])
            codes[rows[own], v] = found = best(probs[own, starts[v] : starts[v + 1]])
            impossible[rows[own[found == NONE]]] = True
    return impossible


def fill_together(network: Network, codes: Codes, gaps: Flags) -> Flags:
    """Fill all the gaps of a row by the states that are most probable together, in place; which rows are impossible.

    What is neither observed nor a gap is summed out.
    """
    first, which = np.unique(keys_of(codes), return_index=True, return_inverse=True)[1:]
    filled, impossible = codes[first].astype(np.int64), np.zeros(len(first), bool)
    for i, row in enumerate(first):
        targets = np.flatnonzero(gaps[row])
        found = most_probable(network, targets.tolist(), filled[i])
        impossible[i] = not np.isfinite(found.log_prob)
        filled[i, targets] = NONE if impossible[i] else found.codes
    codes[:] = filled[which]
    return impossible[which]


def best(probs: Array) -> Ints:
    """The code of the most probable state of each row, the first of equals; −1 where the probabilities are NaN.

    >>> best(np.array([[0.25, 0.75], [0.5, 0.5], [np.nan, np.nan]]))
    array([ 1,  0, -1])
    """
    codes: Ints = probs.argmax(axis=1)
    codes[np.isnan(probs[:, 0])] = NONE
    return codes


def picked(probs: Array, uniforms: Array) -> Ints:
    """The code that a number in (0, 1) falls on, in each row of probabilities; −1 where these are NaN.

    >>> picked(np.array([[0.25, 0.75, 0.0], [0.25, 0.75, 0.0], [np.nan] * 3]), np.array([0.2, 0.9, 0.5]))
    array([ 0,  1, -1])
    """
    if not len(probs):
        return np.zeros(0, np.int64)
    ends = np.cumsum(probs, axis=1)
    ends /= ends[:, -1:]  # so that nothing falls on a last state of probability 0
    codes: Ints = (uniforms[:, None] >= ends[:, :-1]).sum(axis=1)
    codes[np.isnan(probs[:, 0])] = NONE
    return codes
