"""Hidden real states of sequences: filter, smoother, expected statistics, forecasts, draws."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from suffice.errors import ModelError
from suffice.numerics.inference.chains.linear import kalman
from suffice.numerics.inference.chains.linear.kalman import Array, Ints, LinearSteps
from suffice.numerics.inference.chains.linear.steady import smooth_pattern, steady_table

AT_ONCE = 2**22
"""Draws are made in batches of about this many numbers."""
FEWEST = 2048
"""Sequences of a pattern with fewer steps in all are smoothed one by one."""
NEGLIGIBLE = 1e-30
"""A state that changes by less than this, if what its sequence started from changes by 1, does not depend on it."""


class LinearStates(NamedTuple):
    """p(z[t] | y[..t]), or smoothed p(z[t] | all y of the sequence), step by step: means [steps, m], covariances [steps, m, m],
    infinite where nothing is known; ln p(y) of each sequence, -inf if its outputs are impossible, and the first step where they
    are, counted from 0, or -1. `last` is where the sequences were left, from which `filter_states` goes on. Smoothed, if asked
    for: `lagged`, Cov[z[t], z[t-1] | y], [steps, m, m], 0 at first steps."""

    means: Array
    covariances: Array
    log_likelihoods: Array
    impossible: Ints
    last: tuple[Array, ...] = ()
    lagged: Array = np.zeros((0, 0, 0))


class ExpectedStates(NamedTuple):
    """What an M-step needs: E[z[t] | y], [steps, m]; `sums` over the steps of a group of Cov[(z[t], z[t-1]) | y] by weight,
    [groups, 2 m, 2 m], without directions that have no prior and that no output tells; the rest as of `LinearStates`."""

    means: Array
    sums: Array
    log_likelihoods: Array
    impossible: Ints


def filter_states(steps: LinearSteps, after: tuple[Array, ...] | None = None) -> LinearStates:
    """Filter: each state given the outputs up to it. `after` is `last` of what came before these steps.
    A forecast is what the filter says of steps whose outputs are all missing."""
    n, m = len(steps.codes), steps.m
    last = tuple(np.array(x) for x in (kalman.states_before(steps, len(steps.starts) - 1) if after is None else after))
    columns, before = last[0].shape[1], last[3].copy()
    if last[0].shape != (len(steps.starts) - 1, 1 + len(steps.begin.precision), m):
        raise ModelError("the steps before these were others: the filter goes on with as many sequences and the same codes")
    means, covariances, products = np.zeros((columns, n, m)), np.empty((n, m, m)), np.empty((n * (columns > 1), columns, columns))
    found = kalman.filter_all(steps, last, means, covariances, products)
    log_likelihoods, impossible = _of_sequences(steps, found)
    log_likelihoods += 0.5 * before[:, 0, 0]
    if columns > 1:
        log_likelihoods -= kalman.flat_start(before, steps.begin.precision).log_likelihood
        for s, (low, high) in enumerate(zip(steps.starts[:-1], steps.starts[1:], strict=True)):
            products[low:high] = before[s] + products[low:high].cumsum(axis=0)
        at = _dependent(means)
        _add_flat(means, covariances, at, kalman.flat_start(products[at], steps.begin.precision))
    return LinearStates(means[0], covariances, log_likelihoods, impossible, last)


def smooth_states(steps: LinearSteps, *, lagged: bool = False) -> LinearStates:
    """Smooth: each state given all outputs of its sequence."""
    wanted = kalman.Wanted.of(steps, lagged=lagged)
    found = _smooth(steps, wanted)
    if len(steps.begin.precision):
        at = _dependent(wanted.means)
        flat = kalman.FlatStart(*(x[steps.sequence[at]] for x in kalman.flat_start(found.sums, steps.begin.precision)))
        if lagged:
            follows = ~np.isin(at, steps.starts)
            t = at[follows]
            now, before = wanted.means[1:, t].transpose(1, 2, 0), wanted.means[1:, t - 1].swapaxes(0, 1)
            wanted.lagged[t] += now @ flat.covariance[follows] @ before
        _add_flat(wanted.means, wanted.covariances, at, flat)
    return LinearStates(wanted.means[0], wanted.covariances, *_of_sequences(steps, found), lagged=wanted.lagged)


def expected_states(steps: LinearSteps, groups: Ints, n_groups: int, *, weights: Array | None = None) -> ExpectedStates:
    """E-step: smoothed means, and the sums of the joint covariances of consecutive states over the steps of each group. `groups`
    has the group of each step; the part of z[t-1] is 0 at first steps. `weights` are those of the sequences."""
    m, n, d, none = steps.m, len(steps.codes), len(steps.begin.precision), np.empty((0, steps.m, steps.m))
    groups = np.require(groups, np.int32, ["C", "W"])
    weights = np.ones(len(steps.starts) - 1) if weights is None else np.require(weights, np.float64, ["C", "W"])
    means = np.zeros((1 + d, n, m)) if d else np.empty((1, n, m))  # all are filled; of a column, those that depend on it
    wanted = kalman.Wanted(means, none, none, np.zeros((n_groups, 2 * m, 2 * m)), groups, weights)
    found = _smooth(steps, wanted)
    if d:
        flat, at = kalman.flat_start(found.sums, steps.begin.precision), _dependent(wanted.means)
        sequence = steps.sequence[at]
        both = np.zeros((len(at), d, 2 * m))  # how z[t] and z[t-1] depend on what they started from
        both[:, :, :m] = wanted.means[1:, at].swapaxes(0, 1)
        both[:, :, m:] = wanted.means[1:, at - 1].swapaxes(0, 1)
        both[np.isin(at, steps.starts), :, m:] = 0.0
        parts = (np.sqrt(weights)[:, None, None] * _root(flat.covariance).swapaxes(1, 2))[sequence] @ both
        for g in range(n_groups):
            of_group = parts[groups[at] == g].reshape(-1, 2 * m)
            wanted.sums[g] += of_group.T @ of_group
        wanted.means[0, at] += np.einsum("td,dti->ti", flat.mean[sequence], wanted.means[1:, at])
    return ExpectedStates(wanted.means[0], wanted.sums, *_of_sequences(steps, found))


def draw_states(steps: LinearSteps, normals: Array) -> Array:
    """Draws of all states given the outputs, one for each `normals[d]` of [steps, m + p] standard normals: [draws, steps, m]. A
    draw from the prior, z⁺ and its outputs y⁺, less what y⁺ says of z⁺, has the covariance of z given y (Durbin and Koopman 2002,
    Biometrika 89, p. 603): hence one smoother of y - y⁺ a draw, whose covariances all draws share."""
    from suffice.numerics.kernels.chains.kalman import simulate

    m, n = steps.m, len(steps.codes)
    roots, z = _root(steps.Q), np.empty((len(normals), n, m))
    at_once = max(1, AT_ONCE // max(1, n * normals.shape[2]))
    for low in range(0, len(normals), at_once):
        part = np.array(normals[low : low + at_once])
        many = steps.repeat(len(part))
        own, y = np.empty((len(many.codes), m)), np.empty(many.y.shape)
        simulate(many.model, many.starts, roots, part.reshape(len(y), -1), own, y)
        means = expected_states(replace(many, y=many.y - y), np.zeros(len(y), np.int32), 0).means
        z[low : low + at_once] = (means + own).reshape(-1, n, m)
    return z


def _smooth(steps: LinearSteps, wanted: kalman.Wanted) -> kalman.Innovations:
    """Smooth for β = 0: sequences of a pattern side by side where that pays, the others one by one."""
    n = len(steps.starts) - 1
    found, others = kalman.no_innovations(steps), np.ones(n, np.bool_)
    for pattern in steps.patterns:
        if steps.y.shape[1] and steps.lengths[pattern.sequences].sum() >= FEWEST + pattern.head:
            table = steady_table(steps, pattern)
            if table is not None:
                smooth_pattern(steps, pattern, table, wanted, found)
                others[pattern.sequences] = False
    if others.any():
        kalman.smooth_some(steps, np.flatnonzero(others), wanted, found)
    return found


def _dependent(means: Array) -> Ints:
    """The steps that depend on what their sequence started from, or follow such a step."""
    found = np.zeros(means.shape[1], np.bool_)
    for column in means[1:]:
        found |= np.abs(column).max(axis=1) > NEGLIGIBLE
    found[1:] |= found[:-1]
    return np.flatnonzero(found)


def _of_sequences(steps: LinearSteps, found: kalman.Innovations) -> tuple[Array, Ints]:
    """Log likelihoods, and the first impossible step of each sequence."""
    first = found.logs[:, 3].astype(np.int64)
    log_likelihoods = found.log_likelihoods()
    if found.sums.shape[1] > 1:
        log_likelihoods += kalman.flat_start(found.sums, steps.begin.precision).log_likelihood
    return log_likelihoods, np.where(first < 0, -1, first - steps.starts[:-1])


def _add_flat(means: Array, covariances: Array, at: Ints, flat: kalman.FlatStart) -> None:
    """Means and covariances of some steps, given those for β = 0 and how they depend on it."""
    columns = means[1:, at].swapaxes(0, 1)
    means[0, at] += np.einsum("td,tdi->ti", flat.mean, columns)
    here = covariances[at] + columns.swapaxes(1, 2) @ flat.covariance @ columns
    kalman.spread_infinite(here, columns, flat.free)
    covariances[at] = here


def _root(covariances: Array) -> Array:
    """Matrices whose products with their transposes are the given ones, which may be singular."""
    values, vectors = np.linalg.eigh(covariances)
    return np.asarray(vectors * np.sqrt(values.clip(0.0))[:, None])
