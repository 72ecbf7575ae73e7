"""Cells that steps do not show and on which no other cell depends: as their distributions say, given the joint states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.incomplete.chains.chain_batches import Match, Scored
from suffice.incomplete.chains.chain_found import ShownPart
from suffice.incomplete.chains.reduced_steps import ReducedSteps
from suffice.incomplete.components import Theta

MAX_CELLS = 2**22
"""Probabilities of missing states that are worked out at once: 32 MiB."""


def child_states(parts: Sequence[ShownPart], theta: Theta, name: str) -> Iterator[tuple[npt.NDArray[np.intp], Array]]:
    """The steps at which a finite variable is missing on which no other depends, some at a time, and p(state) there (states ×
    steps), by posteriors of the joint states."""
    for part in parts:
        yield from _states_of_part(*part, theta, name)


def _states_of_part(
    rows: ReducedSteps, joint: Array, scored: Sequence[Scored], theta: Theta, name: str
) -> Iterator[tuple[npt.NDArray[np.intp], Array]]:
    for e in (e for e in rows.emissions if e.name == name):
        table = theta.cells[theta.tables.cells(e.key)]
        for first in np.unique(e.base[~e.seen]):
            kinds = np.zeros(len(rows.symbols.phase), np.bool_)  # type: ignore[union-attr]
            kinds[e.symbols[~e.seen & (e.base == first)]] = True
            probs = table[(first + e.current)[:, None] + np.arange(e.n_states)]
            steps = np.flatnonzero(kinds[rows.symbols.kind])  # type: ignore[union-attr]
            for part in np.array_split(steps, -(-len(steps) * e.n_states // MAX_CELLS) or 1):
                yield part, probs.T @ joint[:, part]
    for s in scored:
        if s.inside is not None and name in {v.name for v in s.batch.component.states}:
            yield s.batch.rows.row, _inside(rows, s, name, joint)


def _inside(rows: ReducedSteps, s: Scored, name: str, joint: Array) -> Array:
    """The same of a regression's child, which the batch has summed out."""
    match = Match.of(s.batch.component, rows.layout.space)
    weight = match.widened(match.pooled(joint[:, s.batch.rows.row]), s.inside)  # type: ignore[arg-type]
    axis = [v.name for v in s.batch.component.states].index(name)
    wide = weight.reshape(*s.batch.component.shape, -1)
    return np.asarray(wide.sum(axis=tuple(i for i in range(wide.ndim - 1) if i != axis)))


def child_numbers(parts: Sequence[ShownPart], theta: Theta, name: str) -> Iterator[tuple[Ints, tuple[Array, Array, Array]]]:
    """The steps at which a number is missing, and there the weights, means and deviations of what it may be."""
    for part in parts:
        yield from _numbers_of_part(*part, theta, name)


def _numbers_of_part(
    rows: ReducedSteps, joint: Array, scored: Sequence[Scored], theta: Theta, name: str
) -> Iterator[tuple[Ints, tuple[Array, Array, Array]]]:
    for s in scored:
        component, at = s.batch.component, s.batch.rows.row
        if s.joint is None or name not in component.unknown:
            continue
        match, i = Match.of(component, rows.layout.space), component.unknown.index(name)
        weight = match.pooled(joint[:, at])
        group = np.repeat(np.arange(len(s.batch.bounds) - 1), np.diff(s.batch.bounds))
        variance = s.joint.given.covariance[group, :, i, i].T
        yield at, (weight, s.joint.mean[i], np.sqrt(variance))
    yield from _missing_counts(rows, theta, name, joint)


def _missing_counts(
    rows: ReducedSteps, theta: Theta, name: str, joint: Array
) -> Iterator[tuple[Ints, tuple[Array, Array, Array]]]:
    """The same of counts with a rate for each state."""
    for phase in rows.layout.phases:
        node, key = phase.nodes[name], phase.keys[name]
        if name not in rows.gaps or "rates" not in theta.others[key].arrays:
            continue
        lost = np.flatnonzero((rows.transitions.phase[rows.transitions.kind] == phase.number) & rows.gaps[name])
        if not len(lost):
            continue
        base = np.zeros(len(lost), np.int64)
        _, current, observed = rows.layout.space.offsets(node, emitted=True)
        for column, stride in observed:
            base = base + stride * rows.observed[column][lost].astype(np.int64)
        rates = theta.others[key].rates.reshape(-1)[current[:, None] + base]
        yield lost, (joint[:, lost], rates, rates)
