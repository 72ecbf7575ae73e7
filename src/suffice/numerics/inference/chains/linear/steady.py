"""Filter and smoother of sequences of one pattern: their covariances once for all, their means side by side.

Covariances and gains do not depend on the data. They are found for one sequence without data, up to the step where the
predicted covariance P no longer changes (from there on it is the same), and smoothed ones for one that is just long enough to
have a beginning, an end, and a step that forgets both. What a step still knows of a state b steps away fades as Aᵇ, where A
leads from one predicted mean to the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from suffice.numerics.inference.chains.linear import kalman
from suffice.numerics.inference.chains.linear.kalman import Array, Innovations, Ints, LinearSteps, StepPattern, Wanted

SETTLED = 1e-13
"""The relative change, until it stops, at which a covariance is taken to stay."""
FADED = 1e-8
"""What a step knows of another that it is taken to have forgotten in covariances, where this comes squared; in means, squared."""
LANES, PIECE = 32, 1024
"""So many pieces of sequences are worked on side by side, of about so many steps if they can be cut."""


class Gains(NamedTuple):
    """What `filter_lanes` and `smooth_lanes` take, row by row, with the log determinant of the innovations' covariance, and how
    many outputs are `seen`; the last row is that of all later steps."""

    W: Array
    U: Array
    A: Array
    B: Array
    f: Array
    P: Array
    log_det: Array
    seen: Array


class SteadyTable(NamedTuple):
    """Everything of a pattern that does not depend on data, by sequences without any: rows starts[k] … starts[k + 1] − 1 have
    Cov[z | y] and `lagged`, Cov[z[t], z[t-1] | y], of the steps of one, and the `columns`, how means depend on what they started
    from, β ([d, rows, m]); J is its information on β, and which[i] the one that is like sequence i of the pattern. Steps up to
    `settled` have rows of their own from the start, those after it from the end. After `warm` steps a mean has forgotten what it
    was; 0 if it does not."""

    gains: Gains
    covariances: Array
    lagged: Array
    columns: Array
    J: Array
    starts: Ints
    which: Ints
    settled: int
    warm: int


def steady_table(steps: LinearSteps, pattern: StepPattern) -> SteadyTable | None:
    """The table of a pattern, or None if the usual way is no slower."""
    lengths = steps.lengths[pattern.sequences]
    gains = _steady_gains(steps, pattern, lengths)
    if gains is None:
        return None
    longest, settled = int(lengths[0]), len(gains.f) - 1
    fades, warm = _fading(gains, longest)
    if len(steps.begin.precision):  # and until what sequences start from is forgotten
        settled = min(settled + warm, longest) if warm else longest
    distinct, which = np.unique(np.minimum(lengths, settled + 1 + fades), return_inverse=True)
    if 2 * distinct.sum() > lengths.sum():
        return None
    like = steps.like(pattern, distinct)  # sequences without data, smoothed
    found, wanted = kalman.no_innovations(like), Wanted.of(like, lagged=True)
    kalman.smooth_some(like, np.arange(len(distinct)), wanted, found)
    own = steps.begin.entries[like.codes[0]].any(axis=1)
    if own.any() and np.any(kalman.flat_start(found.sums, steps.begin.precision).free[:, own]):
        return None  # a direction of which nothing is ever known does not fade
    means, covariances, lagged = wanted[:3]
    J = found.sums[:, 1:, 1:]
    return SteadyTable(gains, covariances, lagged, means[1:], J, like.starts, which.ravel(), settled, warm)


def _steady_gains(steps: LinearSteps, pattern: StepPattern, lengths: Ints) -> Gains | None:
    """Gains up to where they stay, or to the end; None if half of all steps do not get there, or lanes cannot do it. What lanes
    cannot do: exact outputs that are known before, and β that come in later than at the first step."""
    longest, n = int(lengths[0]), min(int(lengths[0]), pattern.head + 64)
    while True:
        like = steps.like(pattern, np.array([n]))
        room = kalman.filter_room(like)
        settled = _first_steady_step(room[2], pattern.head)
        if settled < n - 1 or n == longest:
            break
        if 2 * n > lengths.sum():
            return None
        n = min(4 * n, longest)
    known = ~np.isnan(like.y) & (room[5] == 0.0)
    if known.any() or steps.begin.entries[like.codes[1:]].any():
        return None
    return _gains(steps, like, room, settled + 1)


def _first_steady_step(P: Array, head: int) -> int:
    """The first step from `head` on whose P is that of all later ones, or the last step."""
    size = np.sqrt(np.diagonal(P, axis1=1, axis2=2).clip(0.0))
    scale = size[1:, :, None] * size[1:, None]
    change = np.abs(np.diff(P, axis=0)) / np.where(scale > 0.0, scale, 1.0)
    change = change.max(axis=(1, 2))[head:]
    left = change[1:] / (1.0 - np.minimum(change[1:] / np.maximum(change[:-1], 1e-300), 0.9999))  # as a geometric series
    still = np.flatnonzero((left <= SETTLED) | (change[1:] <= 1e-16))
    return head + int(still[0]) + 2 if len(still) else len(P) - 1


def _gains(steps: LinearSteps, like: LinearSteps, room: tuple[Array, ...], n: int) -> Gains:
    """All outputs of a step at once, from gains output by output: v = (I + L)⁻¹ (y - H a) with L[j, i] = h[j] K[i] for i < j."""
    P, K, variances = room[2][:n], room[3][:n], room[5][:n, :, None]
    observed = variances > 0.0
    H, K = np.where(observed, steps.H[like.output_codes[:n]], 0.0), np.where(observed, K, 0.0).swapaxes(1, 2)
    inverse = np.asarray(np.linalg.inv(np.eye(H.shape[1]) + np.tril(H @ K, -1)), np.float64)
    after = like.codes[np.minimum(np.arange(1, n + 1), len(like.codes) - 1)]
    F, f = steps.F[after], steps.f[like.codes[:n]]
    W = inverse * np.where(observed, 1.0 / np.sqrt(np.where(observed, variances, 1.0)), 0.0)
    B = F @ K @ inverse
    logs = np.log(np.where(observed, variances, 1.0)).sum(axis=(1, 2))
    return Gains(W, W @ H, F - B @ H, B, f, P, logs, observed.sum(axis=(1, 2)))


def _fading(gains: Gains, longest: int) -> tuple[int, int]:
    """After how many steps covariances and means forget: a power of two; `longest` and 0 if not within so many."""
    size = np.sqrt(np.diagonal(gains.P[-1]).clip(0.0))
    power = np.stack([gains.A[-1], gains.A[-1] * size / np.where(size > 0.0, size, np.inf)[:, None]])
    b, fades, warm = 1, longest, 0
    while b < longest and not warm:
        plain, scaled = np.abs(power).max(axis=(1, 2)).tolist()
        if not plain < 1e100:
            break
        if scaled <= FADED and fades == longest:
            fades = b
        if max(plain, scaled) <= FADED**2 / 10:
            warm = b
        power, b = power @ power, 2 * b
    return fades, warm


def smooth_pattern(steps: LinearSteps, pattern: StepPattern, table: SteadyTable, wanted: Wanted, found: Innovations) -> None:
    """Fill what is wanted, for β = 0, and what the innovations add up to."""
    which, gains = pattern.sequences, table.gains
    starts, lengths, rows = steps.starts[which], steps.lengths[which], np.diff(table.starts)
    base, n_rows = table.starts[table.which], rows[table.which]
    found.sums[which, 0, 0] = _means(steps, pattern, table, wanted.means)
    within = np.minimum(lengths, len(gains.log_det))
    for k, per_row in ((0, gains.log_det), (2, gains.seen)):
        found.logs[which, k] = np.concatenate([[0.0], np.cumsum(per_row)])[within] + (lengths - within) * per_row[-1]
    if len(table.columns):
        _columns(steps, pattern, table, wanted.means, found.sums)
    if len(wanted.sums):
        from suffice.numerics.kernels.chains.kalman_lanes import tally

        counts = np.zeros((len(wanted.sums), len(table.covariances)))
        sequences = np.stack([starts, lengths, base, n_rows], axis=1)
        tally(sequences, table.settled, wanted.groups, wanted.weights[which], counts)
        wanted.sums[:] += np.tensordot(counts, _joint(table), 1)
    for into, values in ((wanted.covariances, table.covariances), (wanted.lagged, table.lagged)):
        if len(into):
            for start, n, b, k in zip(starts.tolist(), lengths.tolist(), base.tolist(), n_rows.tolist(), strict=True):
                t = np.arange(n)
                into[start : start + n] = values[b + np.where(t < table.settled, t, np.maximum(table.settled, k - n + t))]


def _joint(table: SteadyTable) -> Array:
    """Cov[(z[t], z[t-1]) | y] of all rows; the part of z[t-1] is 0 at first steps."""
    n, m = table.covariances.shape[:2]
    joint = np.zeros((n, 2 * m, 2 * m))
    joint[:, :m, :m], joint[1:, m:, m:] = table.covariances, table.covariances[:-1]
    joint[table.starts[:-1], m:, m:] = 0.0
    joint[:, :m, m:], joint[:, m:, :m] = table.lagged, table.lagged.swapaxes(1, 2)
    return joint


def _columns(steps: LinearSteps, pattern: StepPattern, table: SteadyTable, means: Array, sums: Array) -> None:
    """How means depend on β, and what is known of β: what outputs say of a first state is Q⁻¹ (E[z | y] - f)."""
    code, which = steps.codes[pattern.first], pattern.sequences
    starts, lengths = steps.starts[which], steps.lengths[which]
    first = steps.f[code] + (steps.f_steps[starts] if len(steps.f_steps) else 0.0)
    r = (means[0, starts] - first) @ np.linalg.pinv(steps.begin.Q[code], hermitian=True)
    sums[which, 0, 1:] = sums[which, 1:, 0] = -r @ steps.begin.entries[code].T
    sums[which, 1:, 1:] = table.J[table.which]
    for start, n, k in zip(starts.tolist(), lengths.tolist(), table.which.tolist(), strict=True):
        base, rows = table.starts[k : k + 2]
        head = min(n, table.settled, rows - base)
        means[1:, start : start + head] = table.columns[:, base : base + head]


def _means(steps: LinearSteps, pattern: StepPattern, table: SteadyTable, means: Array) -> Array:
    """Fill the smoothed means: the sum of squared whitened innovations of each sequence."""
    from suffice.numerics.kernels.chains.kalman_lanes import STEPS, filter_lanes, smooth_lanes

    g, total, S = table.gains, np.zeros(len(pattern.sequences)), np.empty(0)
    p = g.U.shape[1]
    forth = _fill(g.W, g.B), _fill(-g.U, g.A), _base(g.f, p)
    back = _fill(g.U.swapaxes(1, 2)), _fill(g.A.swapaxes(1, 2)), _fill(g.P)
    for row, lanes, of in _lanes(steps, pattern, table):
        for low in range(0, len(lanes), LANES):
            part = lanes[low : low + LANES]
            n, width = int(part[0, 1]), len(part) + -len(part) % 8
            step = forth[0].shape[1] * width
            step += 8 * (step % 512 == 0)  # steps 4 kB apart would hinder each other in the cache
            S = np.empty((n + 1) * step) if len(S) < (n + 1) * step else S
            squares, held = np.empty(2 * width), np.empty((STEPS, back[0].shape[1], width))
            filter_lanes(part, row, steps.y, steps.f_steps, forth, step, np.zeros((STEPS, p, width)), S, squares)
            smooth_lanes(part, row, back, step, S, np.zeros(2 * held[0].size + 8), held, p, means)
            np.add.at(total, of[low : low + LANES], squares[width : width + len(part)])
    return total


def _fill(*tables: Array) -> Array:
    """Tables, one below the other, with rows of zeros up to a multiple of four."""
    n, _, columns = tables[0].shape
    rows = sum(t.shape[1] for t in tables)
    filled = np.zeros((n, rows + -rows % 4, columns))
    np.concatenate(tables, axis=1, out=filled[:, :rows])
    return filled


def _base(f: Array, p: int) -> Array:
    """[0, f] of each row eight times, and the last once more."""
    rows = p + f.shape[1]
    base = np.zeros((len(f) + 1, rows + -rows % 4, 8))
    base[:-1, p:rows], base[-1, p:rows] = f[:, :, None], f[-1, :, None]
    return base


def _lanes(steps: LinearSteps, pattern: StepPattern, table: SteadyTable) -> list[tuple[int, Ints, Ints]]:
    """(the row of the first step, lanes, the number of each lane's sequence within the pattern), the longest first. Long
    sequences are cut into pieces, if they forget: the steps before a piece that are run again start from nothing."""
    start, n, warm = steps.starts[pattern.sequences], steps.lengths[pattern.sequences], table.warm
    first = len(table.gains.f) - 1
    size = max(PIECE, 4 * (first + warm))
    cut = (n > 2 * size) & (warm > 0)
    of = np.arange(len(n))
    parts = [
        (0, np.stack([start, n, 0 * n, n], axis=1)[~cut], of[~cut]),
        (0, np.stack([start, 0 * n + size + warm, 0 * n, 0 * n + size], axis=1)[cut], of[cut]),
    ]
    if cut.any():
        low = [np.arange(size, n[k], size) for k in np.flatnonzero(cut)]
        of = np.repeat(np.flatnonzero(cut), [len(x) for x in low])
        lows = np.concatenate(low)
        high = np.minimum(lows + size, n[of])
        end = np.minimum(high + warm, n[of])
        lanes = np.stack([start[of] + lows - warm, end - lows + warm, 0 * of + warm, high - lows + warm], axis=1)
        order = np.lexsort((-lanes[:, 1], -lanes[:, 3]))
        parts.append((first, lanes[order], of[order]))
    return [(row, np.ascontiguousarray(lanes), of) for row, lanes, of in parts if len(lanes)]
