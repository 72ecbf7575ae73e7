"""Filter and smoother of sequences one after the other, in blocks of steps, whatever their codes and missing cells are.

Coordinates without prior have flat densities of the values β that they start from, given all outputs. Filter and smoother run as
if β were 0, with one more column of means for each of its numbers, which has outputs 0 and starts at 1: with the innovations'
columns v₀, V and their variances the outputs have the density

    p(y | β) ∝ exp -½ Σ (v₀ + V β)² / variance,    J = Σ Vᵀ V / variance,    s = Σ Vᵀ v₀ / variance

so that β has mean -J⁻¹ s and covariance J⁻¹, and states follow by their columns. A prior of variance κ → ∞ gives the limit of
log p(y) + ½ rank(J) log κ (de Jong 1991, Annals of Statistics 19, p. 1073).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from suffice.inference.chains.linear.linear_steps import Array, Ints, LinearSteps

LOG_2PI = float(np.log(2.0 * np.pi))

BLOCK = 4096
"""Steps are kept in blocks of about this many. Longer sequences are filtered twice, the second time block by block."""


class Innovations(NamedTuple):
    """What the filter adds up over the steps of each sequence: `sums` of the products of the innovations' columns by their
    variances, [sequences, 1 + d, 1 + d]; and `logs`, [sequences, 4]: the sum of the logarithms of variances, a product whose
    logarithm is to be added, how many variances, the first step that is impossible or -1."""

    sums: Array
    logs: Array

    def log_likelihoods(self) -> Array:
        """ln p(y) of each sequence, for β = 0; -inf where it is impossible."""
        sums, logs, n, impossible = self.sums[:, 0, 0], self.logs[:, 0] + np.log(self.logs[:, 1]), *self.logs[:, 2:].T
        return np.where(impossible < 0, -0.5 * (sums + logs + n * LOG_2PI), -np.inf)


class Wanted(NamedTuple):
    """What the smoother fills: means by columns, [1 + d, steps, m], covariances [steps, m, m], `lagged` Cov[z[t], z[t-1] | y],
    [steps, m, m], and sums [groups, 2 m, 2 m], by the group of each step and the weight of each sequence. Covariances, lagged and
    sums have length 0 where they are not wanted."""

    means: Array
    covariances: Array
    lagged: Array
    sums: Array
    groups: Ints
    weights: Array

    @classmethod
    def of(cls, steps: LinearSteps, *, lagged: bool) -> Wanted:
        """Means and covariances of all steps, and no sums."""
        m, n, columns = steps.m, len(steps.codes), 1 + len(steps.begin.precision)
        sums = np.empty((0, 2 * m, 2 * m)), np.empty(0, np.int32), np.ones(len(steps.starts) - 1)
        return cls(np.zeros((columns, n, m)), np.empty((n, m, m)), np.zeros((n if lagged else 0, m, m)), *sums)


def states_before(steps: LinearSteps, n: int) -> tuple[Array, ...]:
    """Before the first step: a or r by columns, three matrices, sums of innovations."""
    m, columns = steps.m, 1 + len(steps.begin.precision)
    return np.zeros((n, columns, m)), np.zeros((n, m, m)), np.zeros((n, m, m)), np.zeros((n, columns, columns))


def filter_all(steps: LinearSteps, states: tuple[Array, ...], means: Array, covariances: Array, products: Array) -> Innovations:
    """Filter all sequences from the states before them, which move on. Filled are the means' columns, covariances, and if there
    is room the products of innovations, step by step."""
    from suffice.kernels.chains.kalman import forward

    logs = no_logs(len(steps.starts) - 1)
    work, room = np.zeros((3, steps.m, steps.m)), _room(steps, min(len(steps.codes), 2 * BLOCK))
    for batch in _batches(steps.lengths):
        part = tuple(x[batch] for x in states)
        for pieces in _pieces(steps.starts[:-1][batch], steps.starts[1:][batch]):
            forward(steps.model, pieces, part, logs[batch], work, room)
            low, high = pieces[0, 0], pieces[-1, 1]
            means[:, low:high] = room[0][: high - low].swapaxes(0, 1)
            covariances[low:high] = room[1][: high - low]
            if len(products):
                v, variances = room[4][: high - low], room[5][: high - low]
                scale = np.where(variances > 0.0, 1.0 / np.where(variances > 0.0, variances, 1.0), 0.0)
                v = np.where(variances[:, :, None] > 0.0, v, 0.0)
                products[low:high] = np.einsum("tjq,tjk,tj->tqk", v, v, scale)
    return Innovations(states[3], logs)


def filter_room(steps: LinearSteps) -> tuple[Any, ...]:
    """What the filter keeps of one sequence: means, covariances after and before outputs, gains, innovations, variances."""
    from suffice.kernels.chains.kalman import forward

    room, pieces = _room(steps, len(steps.codes)), np.array([[0, len(steps.codes)] * 2])
    forward(steps.model, pieces, states_before(steps, 1), no_logs(1), np.zeros((3, steps.m, steps.m)), room)
    return room


def smooth_some(steps: LinearSteps, which: Ints, wanted: Wanted, found: Innovations) -> None:
    """Smooth some sequences, for β = 0: fill what is wanted, and what their innovations add up to."""
    from suffice.kernels.chains.kalman import backward, forward

    low, high = steps.starts[which], steps.starts[which + 1]
    states, logs, weights = states_before(steps, len(which)), no_logs(len(which)), wanted.weights[which]
    room = _room(steps, min(int((high - low).sum()), 2 * BLOCK))
    work, transposed = np.zeros((5, steps.m, steps.m)), steps.F.swapaxes(1, 2).copy()
    for batch in _batches(high - low):
        part, before = tuple(x[batch] for x in states), []
        back = states_before(steps, len(part[0]))[:3]
        for pieces in _pieces(low[batch], high[batch]):
            before.append((pieces, tuple(x.copy() for x in part)))
            forward(steps.model, pieces, part, logs[batch], work, room)
        back = (*back, back[1].copy())
        for again, (pieces, state) in enumerate(reversed(before)):
            if again:
                forward(steps.model, pieces, state, no_logs(1), work, room)
            backward(steps.model, transposed, pieces, back, work, room, (*wanted[:5], weights[batch]))
    found.sums[which], found.logs[which] = states[3], logs


def no_innovations(steps: LinearSteps) -> Innovations:
    """What the innovations of all sequences add up to before the first step."""
    n = len(steps.starts) - 1
    return Innovations(states_before(steps, n)[3], no_logs(n))


def no_logs(n: int) -> Array:
    """`Innovations.logs` before the first step."""
    return np.tile([0.0, 1.0, 0.0, -1.0], (n, 1))


def _batches(lengths: Ints) -> Iterator[slice]:
    """Sequences to be kept at once: some short ones, or a long one alone."""
    if not len(lengths):
        return
    end = lengths.cumsum()
    alone = np.where(lengths > BLOCK, np.arange(len(lengths)), -1)
    new = (np.diff((end - lengths) // BLOCK) > 0) | (alone[1:] != alone[:-1])
    bounds = np.concatenate([[0], 1 + np.flatnonzero(new), [len(lengths)]]).tolist()
    yield from map(slice, bounds[:-1], bounds[1:])


def _pieces(low: Ints, high: Ints) -> Iterator[Ints]:
    """The sequences of a batch as kernels take them, a long one in blocks."""
    if len(low) > 1 or high[0] - low[0] <= BLOCK:
        yield np.stack([low, high, low, high], axis=1)
        return
    for t in range(low[0], high[0], BLOCK):
        yield np.array([[t, min(t + BLOCK, high[0]), low[0], high[0]]])


def _room(steps: LinearSteps, n: int) -> tuple[Any, ...]:
    """Room for what the smoother keeps of a batch."""
    m, p, columns = steps.m, steps.y.shape[1], 1 + len(steps.begin.precision)
    shapes = ((n, columns, m), (n, m, m), (n, m, m), (n, p, m), (n, p, columns), (n, p))
    return tuple(np.empty(shape) for shape in shapes)


NOTHING = 1e-10
"""A direction whose information is a smaller share than this is not told by the outputs."""


class FlatStart(NamedTuple):
    """p(β | y) for each of several sums J, s: means [sums, d]; covariances [sums, d, d], as if directions that outputs say
    nothing of were known; these directions as columns, [sums, d, d], other columns 0; and what is to be added to log p(y | β =
    0)."""

    mean: Array
    covariance: Array
    free: Array
    log_likelihood: Array


def flat_start(sums: Array, precision: Array) -> FlatStart:
    """p(β | y) by the sums of the products of v₀, V: [sums, 1 + d, 1 + d], and the precision of β's prior: 1, or 0 if flat."""
    J, s = sums[:, 1:, 1:] + np.diag(precision), sums[:, 1:, 0]
    size = np.diagonal(J, axis1=1, axis2=2)
    seen = size > NOTHING**2 * size.max(axis=1, keepdims=True, initial=0.0)
    root = np.sqrt(np.where(seen, size, 1.0))
    scaled = J / (root[:, :, None] * root[:, None])  # so that units do not decide what is small
    values, vectors = np.linalg.eigh(np.where(seen[:, :, None] & seen[:, None], scaled, 0.0))
    told = values > NOTHING
    vectors = vectors / root[:, :, None]
    covariance = (vectors * np.where(told, 1.0 / np.where(told, values, 1.0), 0.0)[:, None]) @ vectors.swapaxes(1, 2)
    mean = -(covariance @ s[:, :, None])[:, :, 0]
    log_det = np.where(told.all(axis=1), np.log(np.where(told, values, 1.0)).sum(axis=1) + 2.0 * np.log(root).sum(axis=1), 0.0)
    partly = ~told.all(axis=1)
    if partly.any():  # the eigenvalues that do not vanish are those of J itself
        n_told, plain = told[partly].sum(axis=1), np.linalg.eigvalsh(J[partly])
        kept = np.arange(plain.shape[1]) >= plain.shape[1] - n_told[:, None]
        log_det[partly] = np.log(np.where(kept, plain, 1.0)).sum(axis=1)
    return FlatStart(mean, covariance, np.where(told[:, None], 0.0, vectors), -0.5 * (log_det + (s * mean).sum(axis=1)))


def spread_infinite(covariances: Array, columns: Array, free: Array) -> None:
    """Make variances infinite where directions that outputs say nothing of matter: `columns` are [steps, d, m]."""
    loose = columns.swapaxes(1, 2) @ free
    size = np.abs(loose).max(axis=2, initial=0.0)
    lost = size > NOTHING * np.abs(columns).max(axis=(1, 2), initial=0.0)[:, None]
    together = np.where(lost[:, :, None] & lost[:, None], loose @ loose.swapaxes(1, 2), 0.0)
    here = np.abs(together) > NOTHING * size[:, :, None] * size[:, None]
    covariances[here] = np.copysign(np.inf, together[here])
