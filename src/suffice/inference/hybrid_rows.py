"""Posteriors of one variable in many rows with finite and real cells, each row with other cells observed.

Rows that observe the same cells are answered together: one decomposition of their Gaussians for all that also agree in the
finite parents, and one elimination of the finite variables with an axis for the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from suffice.errors import TooLarge
from suffice.inference.blocks import Block, Hybrid, ManyConfigurations, blocks, checked_shape, density, grid, packed, refuse
from suffice.inference.gaussian import FINE, Conditioned
from suffice.inference.log_domain import LogFactor, log_factors, log_joint
from suffice.inference.network import NONE, Array, Ints

CELLS = 2**22
"""Rows are worked on in blocks of about this many numbers."""

FEW = 8
"""So few rows are no reason to keep blocks apart, each with its own rows that agree in the finite parents."""


class Rows(NamedTuple):
    """Rows that observe the same cells: codes of finite variables (−1: not observed), values of real ones (NaN)."""

    codes: Ints
    reals: Array

    @property
    def observed(self) -> set[int]:
        """The real variables that have values."""
        return set(np.flatnonzero(~np.isnan(self.reals[0])).tolist())

    def take(self, some: Ints) -> Rows:
        return Rows(self.codes[some], self.reals[some])


def finite_rows(hybrid: Hybrid, target: int, codes: Ints, reals: Array) -> Array:
    """p(target | the other observed cells of the row) of a finite target: [rows, states], NaN where they are impossible."""
    codes = np.array(codes, np.int64)
    codes[:, target] = NONE
    result = np.full((len(codes), int(hybrid.network.sizes[target])), np.nan)

    def answer(rows: Rows) -> Array:
        return _weights(hybrid, (target,), rows, _densities(hybrid, blocks(hybrid.nodes, (), rows.observed), rows))

    return _by_pattern(Rows(codes, np.asarray(reals, np.float64)), answer, result)


def real_rows(hybrid: Hybrid, target: int, codes: Ints, reals: Array) -> Array:
    """The mean and variance of a real target given the other observed cells of the row: [rows, 2]; NaN as above."""
    reals = np.array(reals, np.float64)
    reals[:, target] = np.nan

    def answer(rows: Rows) -> Array:
        parts = blocks(hybrid.nodes, (target,), rows.observed)
        own = next(b for b in parts if target in b.members)
        mean, variance, factor = _moments(hybrid, own, target, rows)
        others = _densities(hybrid, [b for b in parts if b is not own], rows) if factor.scope else []
        weights = _weights(hybrid, factor.scope, rows, [*others, factor]).reshape(mean.shape)
        center = (weights * mean).sum(axis=1)
        return np.stack([center, (weights * (variance + (mean - center[:, None]) ** 2)).sum(axis=1)], axis=1)

    return _by_pattern(Rows(np.asarray(codes, np.int64), reals), answer, np.full((len(reals), 2), np.nan))


def _by_pattern(rows: Rows, answer: Callable[[Rows], Array], result: Array) -> Array:
    """The answers of all rows, in their order, those that observe the same cells at a time."""
    for same in _alike(np.concatenate([rows.codes >= 0, ~np.isnan(rows.reals)], axis=1)):
        _fill(rows, same, answer, result)
    return result


def _fill(rows: Rows, same: Ints, answer: Callable[[Rows], Array], result: Array) -> None:
    """Fewer rows at a time where all together are too large."""
    try:
        result[same] = answer(rows.take(same))
    except ManyConfigurations:
        raise
    except TooLarge:
        if len(same) == 1:
            raise
        for half in np.array_split(same, 2):
            _fill(rows, half, answer, result)


def _alike(lines: Ints) -> Iterator[Ints]:
    """The numbers of the lines that are equal, group by group."""
    if not lines.shape[1]:
        yield np.arange(len(lines))
        return
    packed = np.packbits(lines, axis=1) if lines.dtype == bool else np.ascontiguousarray(lines)
    keys = packed.view(np.dtype((np.void, packed.shape[1] * packed.itemsize))).reshape(-1)
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    yield from np.split(np.argsort(inverse, kind="stable"), np.cumsum(counts)[:-1]) if len(lines) else ()


class _Moments(NamedTuple):
    """Mean and variance of a target in each row and configuration, [rows, configurations], and the density of the evidence."""

    mean: Array
    variance: Array
    factor: LogFactor


def _densities(hybrid: Hybrid, parts: list[Block], rows: Rows) -> list[LogFactor]:
    """What the evidence of blocks says; where all finite parents are observed it says nothing, once it is known to have a density."""
    parts = [b for b in parts if b.observed and (not hybrid.complete or any(rows.codes[0, v] == NONE for v in b.finite))]
    if len(rows.codes) <= FEW:
        parts = packed(hybrid.nodes, parts, rows.codes[0], rows.observed)
    return [_moments(hybrid, b, None, rows).factor for b in parts]


def _moments(hybrid: Hybrid, block: Block, target: int | None, rows: Rows) -> _Moments:
    """A block given its evidence: rows that agree in its observed finite parents share a decomposition."""
    seen = [v for v in block.finite if rows.codes[0, v] != NONE]
    scope = [v for v in block.finite if rows.codes[0, v] == NONE]
    shape = checked_shape(hybrid.network, scope)
    n, size = len(rows.codes), int(np.prod(shape))
    if n > 1 and n * size * len(block.members) > CELLS:
        raise TooLarge(f"{n} rows of {size} configurations at a time")
    log_density, mean, variance = np.empty((n, *shape)), np.zeros((n, size)), np.zeros((n, size))
    for same in _alike(rows.codes[:, seen]):
        some = rows.take(same)
        log_density[same], answer = _together(hybrid, block, target, some)
        if target is not None:
            mean[same], variance[same] = answer.mean[:, :, 0].T, answer.variance.T
    return _Moments(mean, variance, LogFactor(tuple(scope), log_density))


def _together(hybrid: Hybrid, block: Block, target: int | None, rows: Rows) -> tuple[Array, Conditioned]:
    every = grid(hybrid.network, block.finite, rows.codes[0])
    values = {m: rows.reals[:, m] for m in rows.observed}
    asked = () if target is None else (target,)
    answer = hybrid.gaussians.condition(block.members, asked, values, every.codes, every.size)
    if (answer.trouble != FINE).any():
        for same in _alike(rows.codes):
            refuse(hybrid.network, every, answer.trouble, block.observed, rows.codes[same[0]], {})
    return density(every, answer).values, answer


def _weights(hybrid: Hybrid, keep: tuple[int, ...], rows: Rows, factors: list[LogFactor]) -> Array:
    """p(keep | observed cells): [rows, one axis per variable]."""
    n = len(rows.codes)
    if not keep and hybrid.all_possible:
        return np.ones(n)
    needed = [*keep, *(v for f in factors for v in f.scope)]
    pool = [*log_factors(hybrid.network, rows.codes, needed), *factors]
    logs = log_joint(pool, keep, hybrid.network.sizes).reshape(-1, *(int(hybrid.network.sizes[v]) for v in keep))
    axes = tuple(range(1, logs.ndim))
    top = logs.max(axis=axes, keepdims=True)
    with np.errstate(invalid="ignore"):
        values = np.exp(logs - top)
    values /= values.sum(axis=axes, keepdims=True)
    return np.asarray(np.broadcast_to(values, (n, *values.shape[1:])))
