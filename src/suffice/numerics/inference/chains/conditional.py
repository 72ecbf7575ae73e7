"""Chains of labels given all else: y₁ … yₙ with p(y) ∝ ∏ₜ b_t[y_t] ∏ₜ exp T[y_{t−1}, y_t]. Many at a time, side by side.

Sequences stand in parts, the longest first, and in each part all their first steps before all second ones: step t of those that
have one is at offsets[t] … offsets[t + 1] − 1, in the same order. So a step of all is one product of matrices. Filters are scaled
to sum 1.

    a_t = b_t (a_{t−1} exp T) / c_t,    z_{t−1} = exp T (b_t z_t / c_t),    p(y_t) = a_t z_t,    log Z = Σ log c_t

What scaling would lose (see `HUGE`) is done in logarithms instead. The best labels come straight from scores of groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from suffice.numerics.inference.chains.finite import SHORT, best_paths, expect_states
from suffice.numerics.inference.chains.steps import Array, Codes, Ints, StateSteps
from suffice.numerics.inference.finite.logs import log_sum

HUGE = 1e100
"""While c is above 1 / HUGE and z below HUGE nothing that matters is lost: an entry of a filter that underflows, below 1e-307, is
below 1e-207 once it is divided by c, and z makes it 1e-107."""
PAIRS = 2**20
"""Numbers that pairs of labels of some sequences may be at a time, in logarithms."""


PART, PLACES = 512, 2**16
"""Sequences that go side by side, and the places that these may have, unless one alone has more."""
CELLS = 2**15
"""Sequences times labels that go side by side: more calls cost more than they do, and more cells do not stay in the cache."""
FEW = 8
"""Where fewer steps than this stand side by side on average, each costs more than all that is in it."""


class SideBySide(NamedTuple):
    """Some sequences side by side: their places are `begin` and on; `offsets` count from there, `first` sequences come before."""

    begin: int
    first: int
    offsets: Ints

    @property
    def n(self) -> int:
        return int(self.offsets[-1])

    @property
    def few(self) -> bool:
        """Whether few steps stand side by side, compared to how many there are after one another."""
        return self.n < FEW * (len(self.offsets) - 1) and self.n > 2 * PART

    @property
    def places(self) -> slice:
        """Their places among those of all parts."""
        return slice(self.begin, self.begin + self.n)

    @property
    def steps(self) -> list[tuple[int, int, int]]:
        """Of each step after the first: where it begins and ends, and where the step before begins."""
        at = self.offsets.tolist()
        return [(at[t], at[t + 1], at[t - 1]) for t in range(1, len(at) - 1)]

    @property
    def ranks(self) -> Ints:
        """The sequence of each place, from 0."""
        return np.arange(self.n) - np.repeat(self.offsets[:-1], np.diff(self.offsets))

    @property
    def lasts(self) -> Ints:
        """The places of the last steps of sequences."""
        sizes = np.diff(self.offsets)
        return np.flatnonzero(self.ranks >= np.repeat(np.append(sizes[1:], 0), sizes))

    @property
    def previous(self) -> Ints:
        """The place before each that is not the first of its sequence."""
        sizes = np.diff(self.offsets)
        places: Ints = np.arange(self.offsets[1], self.offsets[-1])
        return np.asarray(places - np.repeat(sizes[:-1], sizes[1:]))


class SequenceLayout(NamedTuple):
    """Sequences in parts, the longest first: step order[p] is at place p, `sequences` is their order."""

    order: Codes
    sequences: Ints
    parts: tuple[SideBySide, ...]

    @classmethod
    def of(cls, lengths: Ints, n_labels: int = CELLS // PART) -> SequenceLayout:
        """Sequences of these lengths, one after the other, for so many labels."""
        sequences = np.argsort(-lengths, kind="stable")
        starts = (np.cumsum(lengths) - lengths)[sequences]
        falling, parts, order, begin = lengths[sequences], [], [np.zeros(0, np.int64)], 0
        ends, first, side = np.cumsum(falling), 0, max(1, CELLS // n_labels)
        while first < len(lengths):
            most = int(np.searchsorted(ends, begin + PLACES, side="right")) - first
            own = falling[first : first + max(1, min(side, most))]
            active = np.searchsorted(-own, -np.arange(own[0]), side="left")
            part = SideBySide(begin, first, np.concatenate([[0], np.cumsum(active)]).astype(np.int64))
            order.append(starts[first : first + len(own)][part.ranks] + np.repeat(np.arange(own[0]), active))
            parts.append(part)
            begin, first = begin + part.n, first + len(own)
        return cls(np.concatenate(order).astype(np.int32), sequences, tuple(parts))

    @property
    def ranks(self) -> Ints:
        """The sequence of each place, in the order of `sequences`."""
        return np.concatenate([np.zeros(0, np.int64), *(part.first + part.ranks for part in self.parts)])

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        """The places that are not the first of their sequence, each with the one before it."""
        none = np.zeros(0, np.int64)
        before = [part.begin + part.previous for part in self.parts]
        after = [np.arange(part.begin + part.offsets[1], part.begin + part.n) for part in self.parts]
        return np.concatenate([none, *before]), np.concatenate([none, *after])


class Room(NamedTuple):
    """Arrays that are used again and again: asking for memory would cost as much as all else. Rows are places."""

    b: Array
    a: Array
    z: Array
    c: Array

    @classmethod
    def of(cls, n: int, n_labels: int) -> Room:
        b, a, z = (np.empty((n, n_labels)) for _ in range(3))
        return cls(b, a, z, np.empty(n))


class ExpectedLabels(NamedTuple):
    """`steps[p, j]` = p(y = j) at each place, `pairs[i, j]` = Σ w p(y_{t−1} = i, y_t = j), `logs[p]` sums to log Z."""

    steps: Array
    pairs: Array
    logs: Array


def expect_labels(room: Room, T: Array, part: SideBySide, weights: Array | None = None) -> ExpectedLabels | None:
    """What is expected of labels by room.b, scaled; all of the room is overwritten, and `steps` is in it. None where scaling
    would lose something: see `expect_in_logs`."""
    from suffice.numerics.kernels.labels.crf import scale_rows, weigh_rows

    b, a, z, c = (x[: part.n] for x in room)
    top, first = max(float(T.max()), -HUGE), int(part.offsets[1])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        M = np.exp(T - top)
        a[:first] = 1.0
        scale_rows(a[:first], b[:first], c[:first])
        for begin, end, before in part.steps:
            np.matmul(a[before : before + end - begin], M, out=a[begin:end])
            scale_rows(a[begin:end], b[begin:end], c[begin:end])
        if not c.min(initial=1.0) > 1.0 / HUGE:
            return None
        pairs, back = np.zeros(T.shape), np.ascontiguousarray(M.T)
        z[:] = 1.0
        for begin, end, before in reversed(part.steps):
            v, n = b[begin:end], end - begin
            weigh_rows(v, z[begin:end], c[begin:end])
            np.matmul(v, back, out=z[before : before + n])
            pairs += a[before : before + n].T @ (v if weights is None else v * weights[begin:end, None])
        if not z.max(initial=1.0) < HUGE:
            return None
        a *= z
        logs = np.log(c)
        logs[first:] += top
    return ExpectedLabels(a, pairs * M, logs)


def expect_few(s: Array, T: Array, part: SideBySide, weights: Array | None = None) -> ExpectedLabels | None:
    """The same of few or long sequences, by logarithms s = log b: in lanes, long ones cut in blocks; None if T is too uneven."""
    top = max(float(T.max()), 0.0)
    if not np.isfinite(T).all() or top - float(T.min()) > 600.0:
        return None
    ranks, lengths = part.ranks, np.bincount(part.ranks)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    row = starts[ranks] + np.repeat(np.arange(len(part.offsets) - 1), np.diff(part.offsets))
    logs, codes = np.empty((T.shape[0], part.n)), np.ones(part.n, np.int32)
    logs[:, row], codes[starts[:-1]] = s.T, 0
    matrices = np.stack([np.ones(T.shape), np.exp(T - top)])
    own = None if weights is None else weights[: len(lengths)]
    found = expect_states(StateSteps(starts, codes, matrices, log_likelihood=logs, weights=own))
    total = np.zeros(part.n)
    total[: len(lengths)] = found.log_likelihood + top * (lengths - 1)
    return ExpectedLabels(np.ascontiguousarray(found.posterior[:, row].T), found.pairs[1], total)


def expect_in_logs(s: Array, T: Array, part: SideBySide, weights: Array | None = None) -> ExpectedLabels:
    """The same by logarithms s = log b, for any size of s and T; a sequence that no labels explain has log Z = −inf."""
    with np.errstate(divide="ignore", invalid="ignore"):
        a, logs = log_filters(s, T, part)
        z, pairs = np.zeros(s.shape), np.zeros(T.shape)
        for begin, end, before in reversed(part.steps):
            v = s[begin:end] + z[begin:end] - logs[begin:end, None]
            for i in range(0, end - begin, rows := max(1, PAIRS // T.size)):
                some = slice(i, min(i + rows, end - begin))
                joint = T + v[some, None, :]
                own = slice(before + some.start, before + some.stop)
                z[own] = log_sum(joint, 2)
                both = np.nan_to_num(np.exp(a[own, :, None] + joint), nan=0.0, posinf=0.0)
                pairs += both.sum(axis=0) if weights is None else np.tensordot(weights[begin:end][some], both, axes=1)
        steps = np.nan_to_num(np.exp(a + z), nan=0.0, posinf=0.0)
    return ExpectedLabels(steps, pairs, logs)


def log_filters(s: Array, T: Array, part: SideBySide) -> tuple[Array, Array]:
    """log a and log c; from an impossible step on, c is 0 and a nothing."""
    a, logs = s.copy(), np.empty(len(s))
    first = int(part.offsets[1])
    for begin, end, before in [(0, first, -1), *part.steps]:
        rows = max(1, PAIRS // T.size)
        for i in range(begin, end if before >= 0 else begin, rows):
            own = slice(i, min(i + rows, end))
            there = a[before + i - begin : before + own.stop - begin]
            a[own] += log_sum(there[:, :, None] + T, 1)
        logs[begin:end] = log_sum(a[begin:end], 1)
        a[begin:end] -= logs[begin:end, None]
    return a, logs


def draw_labels(a: Array, T: Array, part: SideBySide, uniforms: Array) -> Ints:
    """Labels drawn from p(y) by log filters `a` and a uniform number for each place."""
    labels = np.zeros(len(a), np.int64)
    n_active = [(0, int(part.offsets[1]), -1), *part.steps]
    after = 0
    for begin, end, _ in reversed(n_active):
        logs = a[begin:end].copy()
        if after:
            logs[:after] += T[:, labels[end : end + after]].T
        share = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
        labels[begin:end] = np.minimum((share <= uniforms[begin:end, None] * share[:, -1:]).sum(axis=1), a.shape[1] - 1)
        after = end - begin
    return labels


LANES, ROOM = 64, 16
"""Sequences that a step is taken of at a time, so that it stays in the cache; and those whose scores are turned at a time."""


class GroupScores(NamedTuple):
    """The score of each label at each place: the sum of those of its groups, scores[groups[o, p]], and of more[p] if it has rows.
    Where `truth` has entries, `cost` is added to those of all other labels."""

    groups: Codes
    scores: Array
    more: Array
    truth: Codes = np.zeros(0, np.int32)
    cost: float = 0.0

    def at(self, part: SideBySide) -> Array:
        """Those of a part (places × labels)."""
        here = part.places
        total = self.more[here].copy() if len(self.more) else np.zeros((part.n, self.scores.shape[1]))
        for own in self.groups:
            total += self.scores[own[here]]
        if len(self.truth):
            total += self.cost * (self.truth[here, None] != np.arange(total.shape[1]))
        return total


class BestLabelling(NamedTuple):
    """The best label of each step, steps in their order, and the score of each sequence's labels, in the order of the layout."""

    labels: Codes
    scores: Array


def best_labels(layout: SequenceLayout, given: GroupScores, T: Array) -> BestLabelling:
    """The labels with the largest score; of equals the smaller, from the last step to the first. −1 where none is possible."""
    from suffice.numerics.kernels.labels import label_sequences

    labels, scores = np.empty(len(layout.order), np.int32), np.zeros(len(layout.sequences))
    long = [part.offsets[1] == 1 and part.n * len(T) >= SHORT for part in layout.parts]
    n = max((part.n for part, alone in zip(layout.parts, long, strict=True) if not alone), default=0)
    L, K = len(T), -len(T) % 4 + len(T)
    matrix = np.full((K, K), -np.inf)
    matrix[:L, :L] = T
    back, x, states = np.concatenate([matrix.T.reshape(-1), np.zeros(K)]), np.empty(K * n), np.empty(n, np.int64)
    strip, spare, tops, turned = np.zeros(K * LANES), np.empty(K * LANES), np.empty(LANES), np.empty((ROOM, L))
    for part, alone in zip(layout.parts, long, strict=True):
        own = scores[part.first : part.first + int(part.offsets[1])]
        if alone:
            paths, values = best_paths(state_steps(given.at(part), T, np.array([part.n])))
            labels[layout.order[part.places]], own[:] = paths[0], values[0]
            continue
        label_sequences.rise(given.groups, part.begin, part.offsets, *given[1:], matrix, turned, strip, x, own)
        label_sequences.descend(part.begin, part.offsets, back, x, own, spare, states, tops, layout.order, labels)
    return BestLabelling(labels, scores)


def state_steps(scores: Array, T: Array, lengths: Ints) -> StateSteps:
    """Scores of steps, sequences one after the other, as a chain of states whose best paths are those of labels."""
    codes, starts = np.ones(len(scores), np.int32), np.concatenate([[0], np.cumsum(lengths)])
    codes[starts[:-1]] = 0
    logs = np.stack([np.zeros(T.shape), T])
    return StateSteps(starts, codes, np.exp(logs - logs.max()), log_likelihood=scores.T, log_matrices=logs)
