"""Expected statistics in lanes: short sequences as they are, long ones cut into blocks.

A block needs the filter before it and p(what comes after | its last state). Both are guessed by starting some steps away: a
chain forgets where it began. All blocks run with the guesses; then the filter at the end of each block must be the guess of the
next, and the other way back, relative to each entry. If so, blocks are one piece, whatever the guess was worth: by induction from
either end, for steps with nonnegative entries do not make relative errors larger.
"""

from __future__ import annotations

import numpy as np

from suffice.inference.chains.lanes import MEMORY, Lanes, LaneSums, Parameters, parameters, run_lanes, tiers
from suffice.inference.chains.steps import Array, Expectations, Ints, StateSteps
from suffice.statistics.moments import Spread

LONG, FEW = 4096, 32
"""Sequences of more steps are cut, if they are fewer or need too much memory in lanes."""

BLOCKS = 64
"""A sequence is cut into so many, unless blocks would be too short or too long."""

WHOLE = 2**27
"""Bytes that a sequence may take that cannot be cut, for the chain does not forget: it is a lane by itself."""

SHORTEST, LONGEST = 520, 1016
"""Steps of a block, unless the chain remembers for long: sixteen blocks of the longest go side by side, which are few enough for
the cache;"""

MOST = 8184
"""then up to so many."""

AWAY, SAMPLE = 48, 8
"""Guesses start at least so many steps away; how many, is tried at so many cuts."""

FORGOTTEN = 2e-14
"""Filters that differ by no more, relative to each entry, are the same."""


def expect_in_lanes(steps: StateSteps, into: Expectations, moments: Spread | None = None) -> Ints:
    """Fill in what is expected, and add to the moments, where steps have `normals`.

    The numbers of the sequences that scaling would lose are returned: these have added nothing.
    """
    given = parameters(steps)
    sums = LaneSums.zeros(steps.n_states, len(into.counts), into.posterior, moments)
    left, lengths = [np.zeros(0, np.int64)], np.diff(steps.starts)
    parts = [(np.arange(steps.n_sequences), sums)]
    if steps.weights is not None:  # lanes have positive weights
        parts = [(np.flatnonzero(steps.weights > 0.0), sums), (np.flatnonzero(steps.weights == 0.0), sums.like())]
    for which, to in parts:
        left.append(_run(steps, given, which[np.argsort(-lengths[which], kind="stable")], to, into.log_likelihood))
    _finish(steps, given, sums, into)
    return np.sort(np.concatenate(left))


def _run(steps: StateSteps, given: Parameters, order: Ints, sums: LaneSums, log_p: Array) -> Ints:
    """Sequences, the longest first, in lanes; those that are lost are returned."""
    lengths, most = np.diff(steps.starts)[order], MEMORY // (2 * 8 * 16 * len(given.matrix))
    n_long = int((lengths > LONG).sum())
    n_long = n_long if n_long < FEW else int((lengths > most).sum())
    long = order[:n_long]
    for q in long:
        log_p[q] = expect_in_blocks(steps, given, int(q), sums)
    uncut = np.isnan(log_p[long])
    slim = 2 * 8 * len(given.matrix) * lengths[:n_long] <= WHOLE
    lost = [long[uncut & ~slim]]
    for some in (*long[uncut & slim, None], *(order[n_long:][tier] for tier in tiers(lengths[n_long:]))):
        run = run_lanes(steps, given, sequences(steps, some, len(given.matrix)), sums)
        log_p[some] = run.log_p
        lost.append(some[run.lost])
    return np.concatenate(lost)


def sequences(steps: StateSteps, which: Ints, padded: int) -> Lanes:
    """Whole sequences as lanes."""
    n, K = len(which), steps.n_states
    weights = np.ones(n) if steps.weights is None else np.where(steps.weights[which] > 0.0, steps.weights[which], 1.0)
    enter, final = np.zeros((n, padded)), np.zeros((n, padded))
    enter[:, :K], final[:, :K] = steps.matrices[0, 0] / _start_scale(steps), 1.0
    return Lanes(steps.starts[which], np.diff(steps.starts)[which], np.zeros((n, padded)), enter, final, weights)


def _start_scale(steps: StateSteps) -> float:
    return float(steps.matrices[0, 0].sum()) or 1.0


def _finish(steps: StateSteps, given: Parameters, sums: LaneSums, into: Expectations) -> None:
    """What was divided out is put back."""
    K = steps.n_states
    into.log_likelihood[:] += np.log(_start_scale(steps)) + given.log_scale * (np.diff(steps.starts) - 1)
    if len(into.pairs):
        into.pairs[0, 0] += sums.first[0, :K]
        into.pairs[1] += (sums.pairs * given.matrix)[:K, :K]
    if len(into.counts):
        counts, table = sums.counts[:-1, :K], given.table[:-2, :K]
        into.counts[:] += np.divide(counts, table, out=np.zeros_like(counts), where=table > 0.0)


def expect_in_blocks(steps: StateSteps, given: Parameters, q: int, into: LaneSums) -> float:
    """ln p(y) of a long sequence, cut into blocks, or NaN if it cannot be cut; what it adds goes to the sums."""
    begin, end = int(steps.starts[q]), int(steps.starts[q + 1])
    size = _odd(int(np.clip((end - begin) // BLOCKS, SHORTEST, LONGEST)))
    most = max(size, _odd(min(MOST, (end - begin) // BLOCKS)))
    whole = sequences(steps, np.array([q]), len(given.matrix))
    away = _memory(steps, given, begin, end, most) * 3 // 2
    while away <= most:
        size = max(size, _odd(min(8 * away, most)))  # or guesses would cost as much as blocks
        cuts = np.arange(begin + size, end, size)
        log_p = _run_blocks(steps, given, whole, cuts, *_guess(steps, given, cuts, away, 0), into)
        if not np.isnan(log_p):
            return log_p
        away *= 2
    return np.nan


def _odd(size: int) -> int:
    """An odd multiple of 8: powers of 2 apart, lanes would share lines of the cache."""
    return size // 16 * 16 + 8


def _memory(steps: StateSteps, given: Parameters, begin: int, end: int, size: int) -> int:
    """How many steps away two guesses at a few cuts become one, or more than the size of a block."""
    cuts = np.arange(begin + size, end, size)
    some, away = cuts[:: -(-len(cuts) // SAMPLE)].copy(), AWAY
    while away <= size:
        one, other = (_guess(steps, given, some, away, kind) for kind in (0, 1))
        if _same(one[0], other[0]) and _same(one[1], other[1]):
            break
        away *= 2
    return away


def _guess(steps: StateSteps, given: Parameters, cuts: Ints, away: int, kind: int) -> tuple[Array, Array]:
    """The filter before each cut and what comes after it, from one of two very different starts `away` from it; NaN if lost."""
    n, K, padded = len(cuts), steps.n_states, len(given.matrix)
    start = np.zeros((n, padded))
    start[:, :K] = np.logspace(0.0, -6.0, K)[:: 1 - 2 * kind]
    start /= start.sum(axis=1, keepdims=True)
    none, ones = np.zeros((n, padded)), np.ones(n)
    scratch = LaneSums.zeros(K, 0, np.zeros((K, 0)))
    forward = scratch._replace(pairs=np.zeros((0, 0)))
    run = run_lanes(steps, given, Lanes(cuts - away, np.full(n, away), start, none, start, ones), forward)
    rest = int(steps.starts[np.searchsorted(steps.starts, cuts[-1], "right")]) - cuts
    final = np.where(rest[:, None] <= away, start > 0.0, start)  # nothing comes after the end, which is no guess
    lanes = Lanes(cuts, np.minimum(rest, away), run.after, none, final, ones)
    back = run_lanes(steps, given, lanes, scratch)
    bad = (run.lost | back.lost)[:, None]
    return np.where(bad, np.nan, run.after), np.where(bad, np.nan, _share(back.reach))


def _same(x: Array, y: Array) -> bool:
    """Whether rows are the same, relative to each entry."""
    return bool((np.abs(x - y) <= FORGOTTEN * np.maximum(x, y)).all())


def _run_blocks(
    steps: StateSteps, given: Parameters, whole: Lanes, cuts: Ints, filters: Array, finals: Array, into: LaneSums
) -> float:
    """ln p(y), if all blocks fit together, or NaN."""
    n, (begin,), (length,) = len(cuts) + 1, whole.begin, whole.length
    edges = np.concatenate([[begin], cuts, [begin + length]])
    enter = np.zeros((n, filters.shape[1]))
    enter[0] = whole.enter[0]
    before, final = np.concatenate([whole.before, filters]), np.concatenate([finals, whole.final])
    lanes = Lanes(edges[:-1], np.diff(edges), before, enter, final, np.full(n, whole.weights[0]))
    sums = into.like()
    run = run_lanes(steps, given, lanes, sums)
    if run.lost.any() or not _same(run.after[:-1], filters) or not _same(_share(run.reach[1:]), finals):
        return np.nan
    into.add(sums)
    return float(run.log_p.sum())


def _share(x: Array) -> Array:
    """Rows that sum to 1."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(x / x.sum(axis=1, keepdims=True))
