"""The missing cells of rows of finite variables, filled in: each by its most probable state, all together, or by draws.

    p(missing | observed) = Π p(cell | observed, the cells drawn before)

Each factor is an exact posterior, so what is drawn is exact, too. Cells that the observed ones cut off from each other are
drawn at once, and rows that have become equal share an inference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.inference.network import HINTED, NONE, Array, Ints, Network
from suffice.inference.posterior import most_probable
from suffice.inference.rows import keys_of, marginals_in_rows

Codes = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]

MAX_NUMBERS = 2**23
"""Probabilities that are held at once: 64 MiB."""


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


def fill_by_draws(network: Network, codes: Codes, gaps: Flags, uniforms: Array) -> Flags:
    """Draw into the gaps of rows, in place, by a number in (0, 1) for each cell; which rows are impossible."""
    impossible, left = np.zeros(len(codes), bool), gaps.copy()
    while len(rows := np.flatnonzero(left.any(axis=1))):
        now = _one_of_each_part(network, codes[rows], left[rows])
        asked = np.where(now, np.int32(HINTED), codes[rows])
        for v, own, probs in _marginals(network, asked, now):
            some = rows[own]
            codes[some, v] = picked(probs, uniforms[some, v])
            impossible[some[np.isnan(probs[:, 0])]] = True
        left[rows] &= ~now
        left[impossible] = False
    return impossible


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


def _one_of_each_part(network: Network, codes: Codes, gaps: Flags) -> Flags:
    """In each row, the first gap of each part of the network that hangs together through what is not observed."""
    labels = _parts(network, codes)
    now = np.zeros(gaps.shape, bool)
    rows, columns = np.nonzero(gaps)
    key = rows * network.n_variables + labels[columns, rows]
    _, first = np.unique(key, return_index=True)
    now[rows[first], columns[first]] = True
    return now


def _parts(network: Network, codes: Codes) -> Ints:
    """For each variable and row a number of its part: the smallest of the unobserved variables linked to it by factors."""
    open_cells = np.ascontiguousarray((codes < 0).T)
    labels = np.repeat(np.arange(network.n_variables)[:, None], len(codes), axis=1)
    scopes = [network.scope(f).tolist() for f in range(network.n_factors)]
    links = {(min(a, b), max(a, b)) for scope in scopes for a in scope for b in scope if a != b}
    linked = [(a, b, both) for a, b in sorted(links) if (both := open_cells[a] & open_cells[b]).any()]
    changed = True
    while changed:
        changed = False
        for a, b, both in linked:
            differing = np.flatnonzero(both & (labels[a] != labels[b]))
            if len(differing):
                labels[a, differing] = labels[b, differing] = np.minimum(labels[a, differing], labels[b, differing])
                changed = True
    return labels


def _marginals(network: Network, asked: Codes, wanted: Flags) -> Iterator[tuple[int, Ints, Array]]:
    """For each variable the rows in which it is wanted, and its probabilities there; equal rows are inferred once."""
    distinct, which = np.unique(keys_of(asked), return_index=True, return_inverse=True)[1:]
    starts = network.starts
    step = max(1, MAX_NUMBERS // int(starts[-1]))
    for first in range(0, len(distinct), step):
        probs = marginals_in_rows(network, asked[distinct[first : first + step]])
        here = (which >= first) & (which < first + step)
        for v in np.flatnonzero(wanted[here].any(axis=0)).tolist():
            own = np.flatnonzero(here & wanted[:, v])
            yield v, own, probs[which[own] - first, starts[v] : starts[v + 1]]
