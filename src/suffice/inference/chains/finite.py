"""Sequences of hidden finite states: expected statistics, filter, smoother, best paths, draws of paths.

A sequence of steps t = 1 … n has states s_t and observations y_t,

    p(s, y) = ∏_t M_t[s_{t−1}, s_t] b_t[s_t],    s_0 = 0

so row 0 of the first matrix is the start. Rows of M need not sum to 1. Nothing underflows: common cases are scaled at each step
(Rabiner 1989, Proc. IEEE 77, p. 272) and checked; what scaling would lose is done again in logarithms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from suffice.inference.chains.blocks import expect_in_lanes
from suffice.inference.chains.lanes import NO_FORMS, TILE, LaneRoom, filled_up, has_lanes, in_eights, side_by_side, tiers
from suffice.inference.chains.steps import Array, Codes, Expectations, Ints, StateNormals, StateSteps, add_moments, no_moments
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
    """ln p(y) of each sequence and the expected numbers of transitions and of states given y.

    With a table there are `counts`, with `log_likelihood` a `posterior`, which is put into `out` if that is given: memory that is
    asked for again at each call costs as much as the rest. It must not be that of the likelihoods."""
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
    from suffice.kernels.chains.chain import visit

    longest, K = steps.longest, steps.n_states
    rows, marks = np.empty((min(STRETCH, longest) + 1, K)), np.empty((-(-longest // STRETCH), K))
    uniforms, paths = draws or (np.zeros(0), np.zeros(0, np.int32))
    for q in which if into.posterior.shape[1] else ():
        into.posterior[:, steps.starts[q] : steps.starts[q + 1]] = 0.0
    filters = np.zeros((K, 0)) if filters is None else filters
    visit(which, *steps.arrays(), steps.weights_or_ones, *into, filters, uniforms, paths, rows, marks)


def _nothing(steps: StateSteps) -> Expectations:
    """No sums."""
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
    """The n paths of largest p(path, y) of each sequence, best first.

    Gains closer than 1e-9 are equal, and the smaller state wins, from the last step to the first."""
    S, lengths = steps.n_sequences, np.diff(steps.starts)
    out, left = BestPaths(np.empty((n, steps.n_steps), np.int32), np.empty((S, n))), np.arange(S)
    if n == 1 and has_lanes(steps):
        short = lengths * steps.n_states < SHORT
        order, left = left[short][np.argsort(-lengths[short], kind="stable")], left[~short]
        for tier in tiers(lengths[order]):
            some = order[tier]
            out.log_prob[some, 0] = _best_of_tier(steps, steps.starts[some], lengths[some], out.paths[0])
    _best_in_stretches(steps, left, out)
    return out


def _best_in_stretches(steps: StateSteps, which: Ints, out: BestPaths) -> None:
    """The general way, for some of the sequences, with little memory for each."""
    from suffice.kernels.chains.best_path import best_steps

    if len(which):
        longest, K, n = steps.longest, steps.n_states, len(out.paths)
        marks = np.empty((-(-longest // STRETCH), K, n))
        origins = np.empty((min(STRETCH, longest), K, n), np.int32)
        best_steps(which, *steps.arrays(log_matrices=True), out.log_prob, out.paths, marks, origins)


def draw_paths(steps: StateSteps, uniforms: Array) -> Codes:
    """A path of each sequence, drawn from p(s_1, …, s_n | y) by a uniform number for each step; −1 where y is impossible."""
    paths = np.full(steps.n_steps, -1, np.int32)
    _visit(steps, np.arange(steps.n_sequences), _nothing(steps), draws=(np.ascontiguousarray(uniforms), paths))
    return paths


def _best_of_tier(steps: StateSteps, begin: Ints, length: Ints, paths: Codes) -> Array:
    """ln p of the best paths of sequences that are not too unlike in length."""
    from suffice.kernels.chains.best_path import descend, rise
    from suffice.kernels.chains.chain_lanes import place
    from suffice.kernels.chains.state_normals import fill

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
