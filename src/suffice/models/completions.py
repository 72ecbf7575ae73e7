"""Completions: the missing cells of rows drawn together from their posterior given the cells that are observed.

    p(missing | observed) = Π p(cell | observed, the cells drawn before)

Each factor is an exact posterior, so what is drawn is exact, too. Cells that the observed ones cut off from each other are
drawn at once, and rows that have become equal share an inference. A cell's random number depends on nothing but the seed, the
number of the draw, the row and the node: blocks, threads and the order of the columns change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.engines.passing import Passed
from suffice.errors import ModelError
from suffice.inference.network import HINTED, NONE, Array, Network
from suffice.inference.rows import marginals_in_rows
from suffice.models.filling import Fill
from suffice.models.row_evidence import RowEvidence, row_evidence
from suffice.models.row_posteriors import Impossible, row_posterior
from suffice.variables import Finite, Variable

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet

Codes = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

MAX_NUMBERS = 2**23
"""Probabilities, or cells of copies of rows, that are held at once: 64 MiB."""


class Completions:
    """The missing cells of rows, block by block, and several draws of what may stand in them."""

    def __init__(self, bn: BayesNet, variables: Mapping[str, Variable], draws: Any, seed: Any) -> None:
        self._bn, self._variables = bn, variables
        self._draws, self._seed = _whole(draws, "the number of draws", 1), _whole(seed, "a seed", 0)
        self._width = -(-len(bn) // 4) * 4  # Philox makes four numbers at a time
        self._parts: dict[str, list[tuple[Ints, Codes]]] = {n: [] for n in variables}
        self.impossible = Impossible()

    def fills(self) -> list[dict[str, Fill]]:
        """For each draw, what fills each column that has gaps."""
        return [{n: self._fill(n, i, parts) for n, parts in self._parts.items() if parts} for i in range(self._draws)]

    def _fill(self, name: str, draw: int, parts: list[tuple[Ints, Codes]]) -> Fill:
        variable = self._variables[name]
        values = np.concatenate([values[draw] for _, values in parts])
        rows = np.concatenate([rows for rows, _ in parts])
        return Fill(name, rows, values, variable.states if isinstance(variable, Finite) else None)

    def fill(self, block: Passed) -> None:
        """Draw what fills the gaps of some rows, a few rows at a time."""
        seen = row_evidence(self._bn, block)
        gaps = Gaps.of(self._bn, self._variables, seen)
        rows = np.flatnonzero(gaps.any)
        if not len(rows):
            return
        impossible = np.zeros(len(gaps.any), bool)
        for some in np.array_split(rows, -(-len(rows) * self._draws * self._width // MAX_NUMBERS)):
            if len(some):
                impossible[some] = self._fill_rows(seen.take(some), gaps.take(some), block.start + some)
        self.impossible.add(block.start + np.flatnonzero(impossible))

    def _fill_rows(self, seen: RowEvidence, gaps: Gaps, places: Ints) -> Flags:
        """Draw into copies of the rows, all first draws before all second ones; the rows that are impossible."""
        n = len(places)
        copies = np.tile(np.arange(n), self._draws)
        drawn, every = seen.take(copies), gaps.take(copies)
        random = np.concatenate([self._uniforms(draw, places) for draw in range(self._draws)])
        impossible = complete(self._bn, drawn, every, copies, random)
        compiled = self._bn.compiled
        for name in self._variables:
            finite = name in compiled.index
            i = compiled.index[name] if finite else compiled.real_index[name]
            own = np.flatnonzero((gaps.finite if finite else gaps.reals)[:, i])
            if len(own):
                cells = (drawn.codes if finite else drawn.reals)[:, i].reshape(self._draws, n)
                self._parts[name].append((places[own], cells[:, own]))
        return impossible[:n]

    def _uniforms(self, draw: int, places: Ints) -> Array:
        """A number strictly between 0 and 1 for each row and node: rows are far apart in the stream of a draw, by their place."""
        first, last = int(places[0]), int(places[-1])
        stream = np.random.Philox(np.random.SeedSequence((self._seed, draw)))
        stream.advance(first * self._width // 4)
        numbers = np.random.Generator(stream).random((last + 1 - first, self._width))
        return np.asarray(np.maximum(numbers[places - first], 2.0**-54))


class Gaps:
    """Which cells are missing and to be filled: a line per row, a column per finite and per real node."""

    def __init__(self, finite: Flags, reals: Flags) -> None:
        self.finite, self.reals = finite, reals

    @classmethod
    def of(cls, bn: BayesNet, variables: Mapping[str, Variable], seen: RowEvidence) -> Gaps:
        """The cells of these columns that are not observed; nodes that are no columns have no cells."""
        compiled = bn.compiled
        finite = [n in variables for n in compiled.finite]
        reals = [n in variables for n in compiled.reals]
        return cls((seen.codes == NONE) & np.array(finite, bool), np.isnan(seen.reals) & np.array(reals, bool))

    @property
    def any(self) -> Flags:
        return np.asarray(self.finite.any(axis=1) | self.reals.any(axis=1))

    def take(self, rows: Ints) -> Gaps:
        return Gaps(self.finite[rows], self.reals[rows])


def complete(bn: BayesNet, rows: RowEvidence, gaps: Gaps, origin: Ints, uniforms: Array) -> Flags:
    """Draw into the gaps of rows, in place; which rows are impossible, whose gaps stay.

    `origin` is equal for rows that are copies of one another; `uniforms` has a column per node, in the order of `bn`. First come
    the finite parents of real nodes (also those that are no columns: what hangs on them would not be Gaussian otherwise), then
    the other finite variables, of which the real ones tell no more, and then the real ones, each Gaussian given what is before.
    """
    compiled, order = bn.compiled, {n: i for i, n in enumerate(bn)}
    if compiled.open:
        from suffice.models.regression_completions import complete_beside_regressions

        return complete_beside_regressions(bn, rows, gaps, origin, uniforms)
    impossible = np.zeros(len(rows.codes), bool)
    for v in sorted({v for node in compiled.gaussians for v in node.finite_parents}):
        name = compiled.finite[v]
        own = np.flatnonzero((rows.codes[:, v] == NONE) & ~impossible)
        probs = shared_posterior(bn, name, rows, own, origin)
        impossible[own[np.isnan(probs[:, 0])]] = True
        rows.codes[own, v] = picked(probs, uniforms[own, order[name]])
    places = [order[n] for n in compiled.finite]
    finite = gaps.finite & ~impossible[:, None] & (rows.codes == NONE)
    impossible |= complete_finite(compiled.network, rows.codes, finite, uniforms[:, places])
    for m, name in enumerate(compiled.reals):
        own = np.flatnonzero(gaps.reals[:, m] & ~impossible)
        moments = shared_posterior(bn, name, rows, own, origin)
        impossible[own[np.isnan(moments[:, 0])]] = True
        rows.reals[own, m] = numbers_of(moments, uniforms[own, order[name]], name in compiled.counts)
    rows.codes[impossible[:, None] & gaps.finite] = NONE
    rows.reals[impossible[:, None] & gaps.reals] = np.nan
    return impossible


def complete_finite(network: Network, codes: Codes, gaps: Flags, uniforms: Array) -> Flags:
    """Draw into the gaps of rows of a finite network, in place; which rows are impossible."""
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
    distinct, which = np.unique(_keys(asked), return_index=True, return_inverse=True)[1:]
    starts = network.starts
    step = max(1, MAX_NUMBERS // int(starts[-1]))
    for first in range(0, len(distinct), step):
        probs = marginals_in_rows(network, asked[distinct[first : first + step]])
        here = (which >= first) & (which < first + step)
        for v in np.flatnonzero(wanted[here].any(axis=0)).tolist():
            own = np.flatnonzero(here & wanted[:, v])
            yield v, own, probs[which[own] - first, starts[v] : starts[v + 1]]


def shared_posterior(bn: BayesNet, name: str, rows: RowEvidence, some: Ints, origin: Ints) -> Array:
    """The posterior of a node in some of the rows; copies of a row that are still equal are asked about once."""
    numbers = rows.reals[some].view(np.int64).reshape(len(some), rows.reals.shape[1])
    keys = _keys(np.concatenate([origin[some, None], rows.codes[some].astype(np.int64), numbers], axis=1))
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    if not len(some):
        return np.empty((0, 2))
    return np.asarray(row_posterior(bn, name, rows.take(some[first]))[which])


def _keys(lines: Codes) -> Codes:
    """Lines as single values that can be sorted."""
    whole = np.ascontiguousarray(lines)
    return whole.view(np.dtype((np.void, whole.shape[1] * whole.itemsize))).reshape(-1)


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


def numbers_of(moments: Array, uniforms: Array, counts: bool) -> Array:
    """Real cells by their means and variances, and counts, whose finite parents are known by now, by their rates."""
    from scipy.special import ndtri
    from scipy.stats import poisson

    mean, variance = moments.T
    return np.asarray(poisson.ppf(uniforms, mean) if counts else mean + np.sqrt(variance) * ndtri(uniforms))


def _whole(number: Any, what: str, least: int) -> int:
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < least:
        raise ModelError(f"{what} is a whole number from {least} up, not {number!r}")
    return int(number)
