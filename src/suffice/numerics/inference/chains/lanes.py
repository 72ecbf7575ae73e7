"""Sequences whose steps have one matrix but for the first: many side by side, in lanes.

Lanes are formed by length alone, so that results do not depend on who else is at work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.numerics.inference.chains.steps import Array, Codes, Ints, StateSteps, add_moments
from suffice.statistics.moments import Spread

LANES, TILE = 1024, 8
"""Sequences side by side, at most, and steps between two scalings."""
NEAR = 2**20
"""Bytes of filters that stay in the cache that a processor has to itself: so many sequences go side by side, eight at least."""
FAINT = 1e-10
"""Likelihoods of a symbol that are all smaller are divided by the largest."""
BATCH = 2**17
"""Sums of so many steps are void together, if one of their sequences turns out to need logarithms."""
MEMORY = 2**26
"""Bytes that lanes may take; longer sequences go with fewer beside them."""
NO_FORMS = np.zeros((0, 4)), np.zeros((0, 4, 4)), np.zeros((0, 1), np.bool_), np.zeros((0, 4)), np.zeros(0)
"""Those of steps that show no normal numbers: see `suffice.numerics.kernels.chains.state_normals.score_normals`."""

_free: list[tuple[tuple[int, ...], LaneRoom]] = []
"""Rooms that nobody uses, with their sizes: the last used is the last."""


class Lanes(NamedTuple):
    """Runs of steps, `length[l]` of them from step `begin[l]` on, the longest first. `before[l]` is the filter before a run,
    `enter[l]` the distribution of its first state if it is the first of a sequence (the other is 0 then), `final[l]` is
    proportional to p(what comes after the run | its last state)."""

    begin: Ints
    length: Ints
    before: Array
    enter: Array
    final: Array
    weights: Array

    def at(self, which: Ints | slice) -> Lanes:
        begin, length, before, enter, final, weights = self
        return Lanes(begin[which], length[which], before[which], enter[which], final[which], weights[which])


class Parameters(NamedTuple):
    """What all lanes share, for a number of states that is filled up to a multiple of 8: a matrix whose rows sum to 1 at most, as
    it is and eight columns at a time, also transposed; and a table whose entries are 1 at most, with a row of zeros and one of
    ones after it; with logarithms of what both were divided by."""

    matrix: Array
    onward: Array
    back: Array
    log_scale: float
    table: Array
    tops: Array


def has_lanes(steps: StateSteps) -> bool:
    """Whether first steps, and only those, have code 0, and all others code 1; and steps show something."""
    first, lengths = steps.starts[:-1], np.diff(steps.starts)
    blind = steps.symbols is None and not steps.dense
    if blind or len(steps.matrices) != 2 or not lengths.min(initial=1) or not len(first):
        return False
    return not steps.codes[first].any() and int(np.count_nonzero(steps.codes)) == steps.n_steps - len(first)


class LaneSums(NamedTuple):
    """Sums over lanes: `pairs`, to be multiplied by the matrix, `first` of first steps, `counts` by symbol, to be divided by the
    table; the posterior; and the moments of numbers that are normal given the states, if any."""

    pairs: Array
    first: Array
    counts: Array
    posterior: Array
    moments: Spread | None = None

    @classmethod
    def zeros(cls, n_states: int, n_symbols: int, posterior: Array, moments: Spread | None = None) -> LaneSums:
        padded = filled_up(n_states)
        counts = np.zeros((n_symbols + 1 if n_symbols else 0, padded))  # one for steps after a lane's end
        return cls(np.zeros((padded, padded)), np.zeros((1, padded)), counts, posterior, moments)

    def like(self) -> LaneSums:
        """No sums yet, and the same posterior."""
        moments = None if self.moments is None else Spread(*map(np.zeros_like, self.moments))
        pairs, first, counts = map(np.zeros_like, self[:3])
        return LaneSums(pairs, first, counts, self.posterior, moments)

    def add(self, other: LaneSums) -> None:
        for mine, theirs in zip(self[:3], other[:3], strict=True):
            mine += theirs
        if self.moments is not None and other.moments is not None:
            add_moments(self.moments, other.moments)


class LaneRun(NamedTuple):
    """Of each lane: ln p(y), whether it is lost to scaling, the filter after it, and p(lane | state before) up to a factor."""

    log_p: Array
    lost: npt.NDArray[np.bool_]
    after: Array
    reach: Array

    def at(self, part: slice) -> LaneRun:
        return LaneRun(self.log_p[part], self.lost[part], self.after[part], self.reach[part])

    @classmethod
    def of(cls, n: int, padded: int) -> LaneRun:
        return cls(np.zeros(n), np.zeros(n, np.bool_), np.zeros((n, padded)), np.zeros((n, padded)))


def filled_up(n_states: int) -> int:
    """The number of states that rows have."""
    return -(-n_states // 8) * 8


def parameters(steps: StateSteps) -> Parameters:
    """The matrix and the table of steps as lanes take them."""
    K, E = steps.n_states, 0 if steps.table is None else len(steps.table)
    padded, (scale,) = filled_up(K), _largest(steps.matrices[1].sum(axis=1).max(keepdims=True))
    matrix = np.zeros((padded, padded))
    matrix[:K, :K] = steps.matrices[1] / scale
    table = np.zeros((E + 2, padded))
    if steps.table is not None:
        table[:E, :K] = steps.table
    tops = _largest(table[:E].max(axis=1, initial=0.0))
    tops[tops > FAINT] = 1.0
    logs = np.log(tops) if (tops < 1.0).any() else np.zeros(0)
    table[:E] /= tops[:, None]
    table[E + 1] = 1.0
    return Parameters(matrix, in_eights(matrix[:K]), in_eights(matrix.T[:K]), float(np.log(scale)), table, logs)


def in_eights(matrix: Array) -> Array:
    """A matrix eight columns at a time, flat."""
    return np.ascontiguousarray(matrix.reshape(len(matrix), -1, 8).transpose(1, 0, 2)).reshape(-1)


def _largest(x: Array) -> Array:
    """What to divide by: these, or 1 for those that are 0."""
    return np.where(x > 0.0, x, 1.0)


def run_lanes(steps: StateSteps, given: Parameters, lanes: Lanes, into: LaneSums) -> LaneRun:
    """Forward and back over lanes, and to the sums what those add that are not lost."""
    n, padded = len(lanes.begin), len(given.matrix)
    out = LaneRun.of(n, padded)
    own = steps.dense or into.posterior.shape[1] > 0
    side = side_by_side(lanes.length, padded)
    with LaneRoom.borrow(padded, int(lanes.length[0]), side, own) as room:
        for part in _batches(lanes.length, side, max(BATCH, 8 * len(into.counts))):
            _run_batch(steps, given, lanes.at(part), into, out.at(part), room)
    return out


def _batches(length: Ints, side: int, size: int) -> Iterator[slice]:
    """Lanes that have so many steps together, in whole groups."""
    ends, first, n = np.cumsum(length), 0, len(length)
    while first < n:
        last = int(np.searchsorted(ends, (ends[first - 1] if first else 0) + size)) + 1
        last = min(n, first + -(-(last - first) // side) * side)
        yield slice(first, last)
        first = last


def tiers(length: Ints) -> Iterator[slice]:
    """Lanes, the longest first, in parts whose lengths are not too unlike: each has as many side by side as memory allows."""
    first = 0
    while first < len(length):
        last = int(np.searchsorted(-length, -length[first] // 4, side="right"))
        yield slice(first, last)
        first = last


def side_by_side(length: Ints, padded: int) -> int:
    """How many lanes go side by side: the same in all groups, as far as eights allow."""
    near = NEAR // (8 * padded * int(length[0]))
    side = max(1, min(LANES, max(8, near // 8 * 8), MEMORY // (2 * 8 * padded * int(length[0]))))
    n_groups = -(-len(length) // side)
    return min(-(-len(length) // (8 * n_groups)) * 8, side, len(length))


def _run_batch(steps: StateSteps, given: Parameters, lanes: Lanes, into: LaneSums, out: LaneRun, room: LaneRoom) -> None:
    """All lanes; and again without those that are lost, until none is."""
    sums = into.like()
    _run_groups(steps, given, lanes, sums, out, room)
    if not out.lost.any():
        into.add(sums)
        return
    kept = np.flatnonzero(~out.lost)
    if len(kept):
        again = LaneRun.of(len(kept), len(given.matrix))
        _run_batch(steps, given, lanes.at(kept), into, again, room)
        for mine, found in zip(out, again, strict=True):
            mine[kept] = found


class LaneRoom(NamedTuple):
    """What a group needs beside its lanes: see `kernels.chains.chain_lanes`. `b` has a row for each step of each lane, one of
    zeros and one of ones, if steps have likelihoods of their own."""

    places: Ints
    b: Array
    alpha: Array
    scale: Array
    u: Array
    beta: Array

    @classmethod
    @contextmanager
    def borrow(cls, *size: int) -> Iterator[LaneRoom]:
        """Room that was used before, if what is free has this size: memory that is new to a process costs as much as its use.
        It belongs to no thread, for these live no longer than an iteration."""
        try:
            before, room = _free.pop()
        except IndexError:
            before = ()
        if before != size:
            room = cls.of(*size)
        yield room
        if sum(own.nbytes for _, own in _free) + room.nbytes <= MEMORY:
            _free.append((size, room))

    @property
    def nbytes(self) -> int:
        return sum(x.nbytes for x in self)

    @classmethod
    def of(cls, padded: int, longest: int, side: int, own: int) -> LaneRoom:
        n, row = -(-longest // TILE), side * padded
        b = np.zeros(n * TILE * row + 2 * padded if own else 0)
        b[-padded:] = 1.0
        places, alpha, scale = np.empty((n * TILE + 1) * side, np.int64), np.empty(n * (TILE + 1) * row), np.empty((n + 1) * side)
        return cls(places, b, alpha, scale, np.empty(TILE * row), np.empty((side, padded)))


def _run_groups(steps: StateSteps, given: Parameters, lanes: Lanes, sums: LaneSums, run: LaneRun, room: LaneRoom) -> None:
    """Forward and back over lanes, so many side by side."""
    from suffice.numerics.kernels.chains.chain_lanes import sweep

    begin, length, before, enter, final, weights = lanes
    (places, b, alpha, scale, u, beta), (side, _), n = room, room.beta.shape, len(begin)
    own = len(b) > 0
    symbols, tops, factors = steps.some_symbols, given.tops, given.table.reshape(-1)
    if own:
        symbols, tops, factors = symbols[:0], tops[:0], b
    by = symbols, tops, places, factors, given.onward, given.back, steps.n_states, TILE, side, before, enter, final, weights
    flat = [x.reshape(-1) for x in (sums.pairs, sums.first, sums.counts, alpha, scale, u, beta)]
    for g in range(0, n, side if own else n):
        until = min(n, g + side) if own else n
        if own:
            _fill(steps, given, (g, until - g, begin, length), side, run.log_p, b)
        sweep(g, until, begin, length, *by, *run, *flat, own)
        if own and len(sums.pairs):
            _share(steps, lanes, (g, until - g, begin, length), side, b, sums)


def _fill(steps: StateSteps, given: Parameters, where: Any, side: int, log_p: Array, b: Array) -> None:
    """The likelihoods of each step of a group."""
    from suffice.numerics.kernels.chains.state_normals import fill

    x, forms = steps.some_logs, NO_FORMS
    if steps.log_likelihood is None:
        x = np.zeros((0, 0))
    if steps.normals is not None:
        x, forms = steps.normals.x, steps.normals.forms
    fill(*where, x, *forms, steps.some_symbols, given.table, given.tops, False, side, steps.n_states, log_p, b)


def _share(steps: StateSteps, lanes: Lanes, where: Any, side: int, share: Array, sums: LaneSums) -> None:
    """What is expected of the states of each step of a group, where it is asked for."""
    from suffice.numerics.kernels.chains.state_normals import give, sum_lanes

    padded = lanes.before.shape[1]
    if sums.posterior.shape[1]:
        give(*where, lanes.weights, side, padded, share, sums.posterior)
    if steps.normals is not None and sums.moments is not None:
        weight, mean, _, scatter = sums.moments
        sum_lanes(*where, steps.normals.x, side, padded, share, steps.normals.pairs, weight, mean, scatter)


def best_of_tier(steps: StateSteps, begin: Ints, length: Ints, paths: Codes) -> Array:
    """ln p of the best paths of sequences that are not too unlike in length."""
    from suffice.numerics.kernels.chains.best_path import descend, rise
    from suffice.numerics.kernels.chains.chain_lanes import place
    from suffice.numerics.kernels.chains.state_normals import fill

    K, E = steps.n_states, 0 if steps.table is None else len(steps.table)
    padded = filled_up(K)
    matrix, enter, table = np.full((padded, padded), -np.inf), np.full(padded, -np.inf), np.zeros((E + 2, padded))
    with np.errstate(divide="ignore"):
        matrix[:K, :K], enter[:K] = steps.logs[1], steps.logs[0, 0]
        if steps.table is not None:
            table[:E, :K] = np.log(steps.table)
    side = side_by_side(length, padded)
    states = np.empty(side, np.int64)
    symbols, factors, none, log_p = steps.some_symbols, table.reshape(-1), np.zeros(0), np.zeros(len(begin))
    onward, back = in_eights(matrix[:K]), np.concatenate([matrix.T.reshape(-1), np.zeros(padded)])
    with LaneRoom.borrow(padded, int(length[0]), side, steps.dense) as (places, b, x, *_):
        for g in range(0, len(begin), side):
            n = min(side, len(begin) - g)
            if steps.dense:
                fill(g, n, begin, length, steps.some_logs, *NO_FORMS, steps.some_symbols, table, none, True, side, K, log_p, b)
                symbols, factors = symbols[:0], b
            place(g, n, begin, length, symbols, padded, len(factors) - 2 * padded, side, none, log_p, places)
            rise(g, n, length, places, factors, onward, K, TILE, side, enter, log_p, x)
            descend(g, n, begin, length, back, padded, TILE, side, log_p, x, states, paths)
    return log_p
