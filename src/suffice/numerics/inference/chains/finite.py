"""Sequences of hidden finite states: expected statistics, filter, smoother, best paths, draws of paths.

A sequence of steps t = 1 … n has states s_t and observations y_t,

    p(s, y) = ∏_t M_t[s_{t−1}, s_t] b_t[s_t],    s_0 = 0

so row 0 of the first matrix is the start. Rows of M need not sum to 1. Nothing underflows: common cases are scaled at each step
(Rabiner 1989, Proc. IEEE 77, p. 272) and checked; what scaling would lose is done again in logarithms.

Expected statistics come in lanes: short sequences as they are, long ones cut into blocks. A block needs the filter before it and
p(what comes after | its last state). Both are guessed by starting some steps away: a chain forgets where it began. All blocks run
with the guesses; then the filter at the end of each block must be the guess of the next, and the other way back, relative to each
entry. If so, blocks are one piece, whatever the guess was worth: by induction from either end, for steps with nonnegative entries
do not make relative errors larger.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from suffice.numerics.inference.chains.lanes import (
    MEMORY,
    Lanes,
    LaneSums,
    Parameters,
    best_of_tier,
    has_lanes,
    parameters,
    run_lanes,
    tiers,
)
from suffice.numerics.inference.chains.steps import (
    Array,
    Codes,
    Expectations,
    Ints,
    StateNormals,
    StateSteps,
    add_moments,
    no_moments,
)
from suffice.statistics.moments import Spread

SHORT = 10_000_000
"""Sequences with so many steps times states find their best path with all values in memory."""
STRETCH = 1024
"""So many filters of a sequence are kept at a time by the general kernels; the rest is run again on the way back."""


class StepwiseStates(NamedTuple):
    """`probabilities[j, t]` of each state at each step, and of each sequence ln p(y) and its first impossible step or −1."""

    probabilities: Array
    log_likelihood: Array
    stuck: Ints


class BestPaths(NamedTuple):
    """The n best paths: `paths[r, t]`, −1 where there are fewer, with `log_prob[q, r]` = ln p(path, y), −inf where fewer."""

    paths: Codes
    log_prob: Array


def expect_states(steps: StateSteps, *, out: Array | None = None) -> Expectations:
    """ln p(y) of each sequence and the expected numbers of transitions and of states given y. With a table there are `counts`,
    with `log_likelihood` a `posterior`, which is put into `out` if that is given: memory that is asked for again at each call
    costs as much as the rest. It must not be that of the likelihoods."""
    into = _nothing(steps)._replace(pairs=np.zeros(steps.matrices.shape))
    if steps.table is not None:
        into = into._replace(counts=np.zeros(steps.table.shape))
    if steps.log_likelihood is not None:
        into = into._replace(posterior=np.empty((steps.n_states, steps.n_steps)) if out is None else out)
    return _expect(steps, into)


def expect_numbers(steps: StateSteps, normals: StateNormals) -> tuple[Expectations, Spread]:
    """The same of steps that show nothing but `normals`, whose moments for each state take the place of the posterior."""
    steps, moments = replace(steps, normals=normals), no_moments(len(normals.base), len(normals.x))
    into = _nothing(steps)._replace(pairs=np.zeros(steps.matrices.shape))
    left = expect_in_lanes(steps, into, moments) if has_lanes(steps) else np.arange(steps.n_sequences)
    if len(left):  # these are written down step by step
        posterior = np.empty((steps.n_states, steps.n_steps))
        whole = replace(steps, normals=None, log_likelihood=normals.log_likelihood())
        _visit(whole, left, into._replace(posterior=posterior))
        for q, first, last in zip(left, steps.starts[left], steps.starts[left + 1], strict=True):
            weight = np.full(last - first, steps.weights_or_ones[q])
            add_moments(moments, normals.moments(posterior, weight, first, last))
    return into, moments


def _expect(steps: StateSteps, into: Expectations) -> Expectations:
    """Lanes where there are any; the general way for the sequences that these leave."""
    both = len(into.counts) and into.posterior.shape[1]
    todo = into._replace(counts=into.counts[:0]) if both else into
    left = expect_in_lanes(steps, todo) if has_lanes(steps) else np.arange(steps.n_sequences)
    if len(left):
        _visit(steps, left, todo)
    if both:
        weights = np.repeat(steps.weights_or_ones, np.diff(steps.starts))
        for j, p in enumerate(into.posterior):
            into.counts[:, j] = np.bincount(steps.some_symbols, weights * p, len(into.counts))
    return into


def _visit(
    steps: StateSteps, which: Ints, into: Expectations, *, filters: Array | None = None, draws: tuple[Array, Codes] | None = None
) -> None:
    """The general way, for some of the sequences."""
    from suffice.numerics.kernels.chains.chain import visit

    longest, K = steps.longest, steps.n_states
    rows, marks = np.empty((min(STRETCH, longest) + 1, K)), np.empty((-(-longest // STRETCH), K))
    uniforms, paths = draws or (np.zeros(0), np.zeros(0, np.int32))
    for q in which if into.posterior.shape[1] else ():
        into.posterior[:, steps.starts[q] : steps.starts[q + 1]] = 0.0
    filters = np.zeros((K, 0)) if filters is None else filters
    visit(which, *steps.arrays(), steps.weights_or_ones, *into, filters, uniforms, paths, rows, marks)


def _nothing(steps: StateSteps) -> Expectations:
    S, K = steps.n_sequences, steps.n_states
    return Expectations(np.zeros(S), np.full(S, -1), np.zeros((0, K, K)), np.zeros((0, K)), np.zeros((K, 0)))


def filter_states(steps: StateSteps) -> StepwiseStates:
    """p(s_t | y_1, …, y_t) and ln p(y); zeros from a step on that is impossible."""
    found, out = _nothing(steps), np.zeros((steps.n_states, steps.n_steps))
    _visit(steps, np.arange(steps.n_sequences), found, filters=out)
    return StepwiseStates(out, found.log_likelihood, found.stuck)


def smooth_states(steps: StateSteps) -> StepwiseStates:
    """p(s_t | y_1, …, y_n) and ln p(y); zeros for a sequence that is impossible."""
    found = _expect(steps, _nothing(steps)._replace(posterior=np.empty((steps.n_states, steps.n_steps))))
    return StepwiseStates(found.posterior, found.log_likelihood, found.stuck)


def best_paths(steps: StateSteps, n: int = 1) -> BestPaths:
    """The n paths of largest p(path, y) of each sequence, best first. Gains closer than 1e-9 are equal, and the smaller state
    wins, from the last step to the first."""
    S, lengths = steps.n_sequences, np.diff(steps.starts)
    out, left = BestPaths(np.empty((n, steps.n_steps), np.int32), np.empty((S, n))), np.arange(S)
    if n == 1 and has_lanes(steps):
        short = lengths * steps.n_states < SHORT
        order, left = left[short][np.argsort(-lengths[short], kind="stable")], left[~short]
        for tier in tiers(lengths[order]):
            some = order[tier]
            out.log_prob[some, 0] = best_of_tier(steps, steps.starts[some], lengths[some], out.paths[0])
    if len(left):  # the general way, with little memory for each
        from suffice.numerics.kernels.chains.best_path import best_steps

        longest, K = steps.longest, steps.n_states
        marks, origins = np.empty((-(-longest // STRETCH), K, n)), np.empty((min(STRETCH, longest), K, n), np.int32)
        best_steps(left, *steps.arrays(log_matrices=True), out.log_prob, out.paths, marks, origins)
    return out


def draw_paths(steps: StateSteps, uniforms: Array) -> Codes:
    """A path of each sequence, drawn from p(s_1, …, s_n | y) by a uniform number for each step; −1 where y is impossible."""
    paths = np.full(steps.n_steps, -1, np.int32)
    _visit(steps, np.arange(steps.n_sequences), _nothing(steps), draws=(np.ascontiguousarray(uniforms), paths))
    return paths


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
    """Fill in what is expected, and add to the moments, where steps have `normals`. The numbers of the sequences that scaling
    would lose are returned: these have added nothing."""
    given = parameters(steps)
    sums = LaneSums.zeros(steps.n_states, len(into.counts), into.posterior, moments)
    left, lengths = [np.zeros(0, np.int64)], np.diff(steps.starts)
    parts = [(np.arange(steps.n_sequences), sums)]
    if steps.weights is not None:  # lanes have positive weights
        parts = [(np.flatnonzero(steps.weights > 0.0), sums), (np.flatnonzero(steps.weights == 0.0), sums.like())]
    for which, to in parts:
        left.append(_run(steps, given, which[np.argsort(-lengths[which], kind="stable")], to, into.log_likelihood))
    # what was divided out is put back
    K, (first, table) = steps.n_states, (sums.first[0], given.table[:-2])
    into.log_likelihood[:] += np.log(_start_scale(steps)) + given.log_scale * (lengths - 1)
    if len(into.pairs):
        into.pairs[0, 0] += first[:K]
        into.pairs[1] += (sums.pairs * given.matrix)[:K, :K]
    if len(into.counts):
        counts = sums.counts[:-1, :K]
        into.counts[:] += np.divide(counts, table[:, :K], out=np.zeros_like(counts), where=table[:, :K] > 0.0)
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
