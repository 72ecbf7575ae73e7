"""Sequences whose steps have one matrix but for the first: many side by side, in lanes.

Lanes are formed by length alone, so that results do not depend on who else is at work.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import local
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.inference.chains.normals import add_moments
from suffice.inference.chains.steps import Array, Ints, StateSteps
from suffice.statistics.chan import Spread

LANES, TILE = 64, 8
"""Sequences side by side, and steps between two scalings."""

FAINT = 1e-10
"""Likelihoods of a symbol that are all smaller are divided by the largest."""

BATCH = 2**17
"""Sums of so many steps are void together, if one of their sequences turns out to need logarithms."""

MEMORY = 2**26
"""Bytes that lanes may take; longer sequences go with fewer beside them."""

_before = local()


class Lanes(NamedTuple):
    """Runs of steps, `length[l]` of them from step `begin[l]` on, the longest first.

    `before[l]` is the filter before a run, `enter[l]` the distribution of its first state if it is the first of a sequence (the
    other is 0 then), `final[l]` is proportional to p(what comes after the run | its last state).
    """

    begin: Ints
    length: Ints
    before: Array
    enter: Array
    final: Array
    weights: Array

    def at(self, which: Ints | slice) -> Lanes:
        """Some of the lanes."""
        begin, length, before, enter, final, weights = self
        return Lanes(begin[which], length[which], before[which], enter[which], final[which], weights[which])


class Parameters(NamedTuple):
    """What all lanes share, for a number of states that is a multiple of 4: a matrix whose rows sum to 1 at most, its transpose,
    and a table whose rows are 1 at most, with logarithms of what both were divided by."""

    matrix: Array
    transposed: Array
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


class Sums(NamedTuple):
    """Sums over lanes: `pairs`, to be multiplied by the matrix, `first` of first steps, `counts` by symbol; the posterior; and
    the moments of numbers that are normal given the states, if any."""

    pairs: Array
    first: Array
    counts: Array
    posterior: Array
    moments: Spread | None = None

    @classmethod
    def zeros(cls, n_states: int, n_symbols: int, posterior: Array, moments: Spread | None = None) -> Sums:
        padded = -n_states % 4 + n_states
        return cls(np.zeros((padded, padded)), np.zeros((1, padded)), np.zeros((n_symbols, padded)), posterior, moments)

    def like(self) -> Sums:
        """No sums yet, and the same posterior."""
        moments = None if self.moments is None else Spread(*map(np.zeros_like, self.moments))
        pairs, first, counts = map(np.zeros_like, self[:3])
        return Sums(pairs, first, counts, self.posterior, moments)

    def add(self, other: Sums) -> None:
        """Add another's sums to these."""
        for mine, theirs in zip(self[:3], other[:3], strict=True):
            mine += theirs
        if self.moments is not None and other.moments is not None:
            add_moments(self.moments, other.moments)


class Run(NamedTuple):
    """Of each lane: ln p(y), whether it is lost to scaling, the filter after it, and p(lane | state before) up to a factor."""

    log_p: Array
    lost: npt.NDArray[np.bool_]
    after: Array
    reach: Array

    def at(self, part: slice) -> Run:
        """That of some of the lanes."""
        return Run(self.log_p[part], self.lost[part], self.after[part], self.reach[part])

    @classmethod
    def of(cls, n: int, padded: int) -> Run:
        return cls(np.zeros(n), np.zeros(n, np.bool_), np.zeros((n, padded)), np.zeros((n, padded)))


def parameters(steps: StateSteps) -> Parameters:
    """The matrix and the table of steps as lanes take them."""
    K = steps.n_states
    padded, (scale,) = -K % 4 + K, _largest(steps.matrices[1].sum(axis=1).max(keepdims=True))
    matrix = np.zeros((padded, padded))
    matrix[:K, :K] = steps.matrices[1] / scale
    table = np.zeros((0 if steps.table is None else len(steps.table), padded))
    if steps.table is not None:
        table[:, :K] = steps.table
    tops = _largest(table.max(axis=1, initial=0.0))
    tops[tops > FAINT] = 1.0
    logs = np.log(tops) if (tops < 1.0).any() else np.zeros(0)
    return Parameters(matrix, matrix.T.copy(), float(np.log(scale)), table / tops[:, None], logs)


def _largest(x: Array) -> Array:
    """What to divide by: these, or 1 for those that are 0."""
    return np.where(x > 0.0, x, 1.0)


def run_lanes(steps: StateSteps, given: Parameters, lanes: Lanes, into: Sums) -> Run:
    """Forward and back over lanes, and to the sums what those add that are not lost."""
    n, padded = len(lanes.begin), len(given.matrix)
    out = Run.of(n, padded)
    columns = 0 if steps.normals is None else steps.normals.n_columns
    side = side_by_side(lanes.length, padded, numbers=columns > 0)
    room = Room.kept(padded, int(lanes.length[0]), side, steps.dense, columns)
    ends = np.cumsum(lanes.length)
    size = max(BATCH, 8 * len(into.counts))
    first = 0
    while first < n:
        last = int(np.searchsorted(ends, (ends[first - 1] if first else 0) + size)) + 1
        last = min(n, first + -(-(last - first) // side) * side)
        part = slice(first, last)
        _run_batch(steps, given, lanes.at(part), into, out.at(part), room)
        first = last
    return out


def tiers(length: Ints) -> Iterator[slice]:
    """Lanes, the longest first, in parts whose lengths are not too unlike: each has as many side by side as memory allows."""
    first = 0
    while first < len(length):
        last = int(np.searchsorted(-length, -length[first] // 4, side="right"))
        yield slice(first, last)
        first = last


def side_by_side(length: Ints, padded: int, *, numbers: bool = False) -> int:
    """How many lanes go side by side: the same in all groups, as far as processors that take eight at a time like it.

    With numbers there are twice as many arrays, and half as many lanes stay in the cache.
    """
    side = LANES // 2 if numbers else LANES
    while side > 8 and 2 * 8 * padded * int(length[0]) * side > MEMORY:
        side //= 2
    n_groups = -(-len(length) // side)
    return min(-(-len(length) // (8 * n_groups)) * 8, len(length))


def _run_batch(steps: StateSteps, given: Parameters, lanes: Lanes, into: Sums, out: Run, room: Room) -> None:
    """All lanes; and again without those that are lost, until none is."""
    side, sums = len(room.own), into.like()
    for g in range(0, len(lanes.begin), side):
        _run_group(steps, given, lanes, sums, out, (g, min(side, len(lanes.begin) - g)), room)
    if not out.lost.any():
        into.add(sums)
        return
    for x in room:  # what a lost lane left may be no number, and 0 times that would go to the sums
        x[:] = 0
    kept = np.flatnonzero(~out.lost)
    if len(kept):
        again = Run.of(len(kept), len(given.matrix))
        _run_batch(steps, given, lanes.at(kept), into, again, room)
        for mine, found in zip(out, again, strict=True):
            mine[kept] = found


class Room(NamedTuple):
    """What a group needs beside its lanes: see `suffice.kernels.chain_lanes`."""

    seen: Ints
    b: Array
    alpha: Array
    scale: Array
    own: Array
    total: Array
    beta: Array
    u: Array
    gamma: Array
    numbers: Array

    @classmethod
    def kept(cls, K: int, longest: int, side: int, dense: bool, columns: int) -> Room:
        """The room that this thread had before, if it has this size: to be given zeros again would cost as much as its use. What
        others left in it are numbers, and are multiplied by 0 where they are not overwritten."""
        size = (K, longest, side, dense, columns)
        if getattr(_before, "size", None) == size:
            return _before.room  # type: ignore[no-any-return]
        room = cls.of(*size)
        _before.size, _before.room = (size, room) if sum(x.nbytes for x in room) <= MEMORY // 2 else (None, None)
        return room

    @classmethod
    def of(cls, K: int, longest: int, side: int, dense: bool, columns: int) -> Room:
        """For all tiles of likelihoods, or for one of them. Where there are columns of numbers, gamma has all tiles."""
        n, tile = -(-longest // TILE), (K, TILE + 1, side)
        b, alpha, scale = np.zeros((n if dense else 1, *tile)), np.empty((n, *tile)), np.empty((n + 1) * side)
        own, total, beta = np.zeros(side), np.zeros(side), np.zeros((K, side))
        seen, u, gamma = np.zeros(TILE * side, np.int64), np.zeros(tile), np.zeros((n if columns else 1, *tile))
        return cls(seen, b, alpha, scale, own, total, beta, u, gamma, np.zeros((n, columns, *tile[1:])))


def _run_group(
    steps: StateSteps, given: Parameters, lanes: Lanes, sums: Sums, run: Run, group: tuple[int, int], room: Room
) -> None:
    """Forward and back over lanes side by side."""
    from suffice.kernels import lane_tiles
    from suffice.kernels.chain_lanes import sweep

    begin, length, *sides = lanes
    seen, b, alpha, scale, own, total, beta, u, gamma, _ = room
    symbols = steps.some_symbols
    if steps.normals is not None:
        steps.normals.fill(group, lanes, room, run.log_p)
    elif steps.log_likelihood is not None:
        flat_b = b.reshape(*b.shape[:2], -1)
        lane_tiles.fill(*group, begin, length, steps.log_likelihood, b, flat_b, np.empty(seen.size), run.log_p)
        if steps.symbols is not None:
            lane_tiles.fill_more(*group, begin, length, symbols, given.table, given.tops, b, run.log_p)
        symbols = symbols[:0]
    known = (*group, begin, length, symbols, given.table.reshape(-1), given.tops)
    found = (*run, sums.pairs, sums.first, sums.counts.reshape(-1), sums.posterior)
    flat = alpha.reshape(-1), b.reshape(-1), beta.reshape(-1), u.reshape(-1), gamma.reshape(-1)
    tiles = (seen, alpha, flat[0], flat[1], scale, own, total, beta, flat[2], flat[3], gamma, flat[4])
    for back in (False, True) if len(sums.pairs) else (False,):
        sweep(back, *known, given.transposed if back else given.matrix, *sides, *found, *tiles)
    if steps.normals is not None and sums.moments is not None:
        steps.normals.add(group, lanes, room, sums.moments)
