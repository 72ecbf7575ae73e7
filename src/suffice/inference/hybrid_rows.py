"""Posteriors of one variable in many rows with finite and real cells, each row with other cells observed.

What is observed of the real nodes cuts them into blocks, and rows share most of their blocks: each is worked on once for all
rows that have it and agree in its finite parents. Rows that observe the same finite variables then share an elimination of
the others, with an axis for the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import TooLarge
from suffice.inference.blocks import Block, Hybrid, ManyConfigurations, block_of, density, grid, refuse
from suffice.inference.gaussian import FINE
from suffice.inference.log_domain import LogFactor, log_factors, log_joint
from suffice.inference.network import NONE, Array, GaussianNode, Ints

CELLS = 2**23
"""Rows are worked on in parts of at most about this many numbers."""

Flags = npt.NDArray[np.bool_]


class Rows(NamedTuple):
    """Codes of finite variables (−1: not observed) and values of real ones (NaN: not observed), a line per row."""

    codes: Ints
    reals: Array

    def take(self, some: Ints) -> Rows:
        return Rows(self.codes[some], self.reals[some])


def finite_rows(hybrid: Hybrid, target: int, codes: Ints, reals: Array) -> Array:
    """p(target | the other observed cells of the row) of a finite target: [rows, states], NaN where they are impossible."""
    codes = np.array(codes, np.int64)
    codes[:, target] = NONE

    def answer(rows: Rows) -> Array:
        return finite_answer(hybrid, target, rows, _Densities(len(rows.codes)))

    return _in_parts(Rows(codes, np.asarray(reals, np.float64)), answer, int(hybrid.network.sizes[target]))


def finite_answer(hybrid: Hybrid, target: int, rows: Rows, densities: _Densities) -> Array:
    """The same of a few rows, in which the target is not observed; `densities` holds what is known of them beside."""
    gather_all(hybrid, rows, densities)
    result = np.empty((len(rows.codes), int(hybrid.network.sizes[target])))
    for same in _alike(rows.codes != NONE):
        result[same] = _weights(hybrid, (target,), rows.codes[same], densities.at(same))
    return result


def gather_all(hybrid: Hybrid, rows: Rows, densities: _Densities) -> None:
    """Add what all real evidence says."""
    for block, same in shared_blocks(hybrid.nodes, rows.reals):
        densities.gather(hybrid, block, same, rows)


def real_rows(hybrid: Hybrid, target: int, codes: Ints, reals: Array) -> Array:
    """The mean and variance of a real target given the other observed cells of the row: [rows, 2]; NaN as above."""
    reals = np.array(reals, np.float64)
    reals[:, target] = np.nan

    def answer(rows: Rows) -> Array:
        return real_answer(hybrid, target, rows, _Densities(len(rows.codes)))

    return _in_parts(Rows(np.asarray(codes, np.int64), reals), answer, 2)


def real_answer(hybrid: Hybrid, target: int, rows: Rows, densities: _Densities) -> Array:
    """The same of a few rows, in which the target is not observed; `densities` holds what is known of them beside."""
    own = []
    blocks, others = _blocks_of_target(hybrid.nodes, rows.reals, target)
    for block, same in blocks:
        own += densities.gather(hybrid, block, same, rows, target)
    open_rows = np.zeros(len(rows.codes), bool)
    for scope, same, _, _ in own:
        open_rows[same] = bool(scope)
    for block, same in others if open_rows.any() else ():
        densities.gather(hybrid, block, same[open_rows[same]], rows)
    result = np.empty((len(rows.codes), 2))
    for scope, same, mean, variance in _joined(own):
        weights = np.empty(mean.shape)
        for part in _alike(rows.codes[same] != NONE):
            some = same[part]
            weights[part] = _weights(hybrid, scope, rows.codes[some], densities.at(some)).reshape(len(some), -1)
        center = (weights * mean).sum(axis=1)
        result[same, 0] = center
        result[same, 1] = (weights * (variance + (mean - center[:, None]) ** 2)).sum(axis=1)
    return result


Shared = Iterator[tuple[Block, Ints]]
"""Blocks, each with the numbers of the rows that have it."""


def shared_blocks(nodes: Sequence[GaussianNode], reals: Array) -> Shared:
    """The blocks (see `blocks`) of the evidence of all rows.

    >>> x = GaussianNode((), (), np.array(1.0), np.zeros(0), np.array(1.0))
    >>> y = GaussianNode((), (0,), np.array(0.0), np.array([2.0]), np.array(1.0))
    >>> rows = np.array([[0.5, 1.5], [np.nan, 1.5], [0.5, 2.5]])
    >>> [(block.members, block.observed, same.tolist()) for block, same in shared_blocks([x, y], rows)]
    [((0,), (0,), [0, 2]), ((0, 1), (1,), [1]), ((1,), (1,), [0, 2])]
    """
    seen = np.ascontiguousarray(~np.isnan(reals).T)
    labels = _labels(nodes, seen, seen)
    for first in range(len(nodes)):
        yield from _labelled(nodes, labels, seen, first, labels[first] == first)


def _blocks_of_target(nodes: Sequence[GaussianNode], reals: Array, target: int) -> tuple[Shared, Shared]:
    """The blocks that a target is in, and the others."""
    seen = np.ascontiguousarray(~np.isnan(reals).T)
    needed = seen.copy()
    needed[target] = True
    labels = _labels(nodes, seen, needed)
    own = labels[target]
    mine = (b for first in np.unique(own).tolist() for b in _labelled(nodes, labels, seen, first, own == first))
    firsts = range(len(nodes))
    others = (b for first in firsts for b in _labelled(nodes, labels, seen, first, (labels[first] == first) & (own != first)))
    return mine, others


def _labelled(nodes: Sequence[GaussianNode], labels: Ints, seen: Flags, first: int, having: Flags) -> Shared:
    """The blocks that begin with a certain node, in the rows that have one."""
    rows = np.flatnonzero(having)
    members = labels[:, rows] == first
    observed = members & seen[:, rows]
    for same in _alike(np.concatenate([members, observed]).T):
        inside, known = np.flatnonzero(members[:, same[0]]), np.flatnonzero(observed[:, same[0]])
        yield block_of(nodes, inside.tolist(), set(known.tolist())), rows[same]


def _labels(nodes: Sequence[GaussianNode], seen: Flags, asked: Flags) -> Ints:
    """For each node and row the first node of its block, −1 if it is barren: what an unobserved parent links is one block."""
    needed = asked.copy()
    for m in range(len(nodes) - 1, -1, -1):
        for p in nodes[m].real_parents:
            needed[p] |= needed[m]
    labels = np.where(needed, np.arange(len(nodes))[:, None], -1)
    links = [(p, m, needed[m] & ~seen[p]) for m, node in enumerate(nodes) for p in node.real_parents]
    changed = True
    while changed:
        changed = False
        for p, m, linked in links:
            differing = linked & (labels[p] != labels[m])
            if differing.any():
                lower = np.minimum(labels[p], labels[m])[differing]
                labels[p, differing] = lower
                labels[m, differing] = lower
                changed = True
    return labels


class _Moments(NamedTuple):
    """Mean and variance of a target given the configurations of its scope, [rows, configurations], and which rows they are."""

    scope: tuple[int, ...]
    rows: Ints
    mean: Array
    variance: Array


class _Densities:
    """ln p(real evidence | finite variables) of each row, by the finite variables that are not observed."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.sums: dict[tuple[int, ...], tuple[Array, Flags]] = {}

    def gather(self, hybrid: Hybrid, block: Block, rows: Ints, every: Rows, target: int | None = None) -> list[_Moments]:
        """Add what the evidence in a block says; with a target in it, its moments."""
        found = []
        finite = list(block.finite)
        for same in _alike(every.codes[rows][:, finite]):
            some = rows[same]
            scope = tuple(v for v in finite if every.codes[some[0], v] == NONE)
            if target is None and not scope and hybrid.complete:
                continue  # a constant, and not one that must be refused
            log_density, moments = _conditioned(hybrid, block, every.take(some), target)
            if block.observed:
                self._add(scope, some, log_density)
            if moments is not None:
                found.append(_Moments(scope, some, *moments))
        return found

    def at(self, rows: Ints) -> list[LogFactor]:
        """The factors of some rows."""
        return [LogFactor(scope, values[rows]) for scope, (values, touched) in self.sums.items() if touched[rows].any()]

    def _add(self, scope: tuple[int, ...], rows: Ints, values: Array) -> None:
        if scope not in self.sums:
            if self.n_rows > 1 and self.n_rows * values[0].size > CELLS:
                raise TooLarge(f"{self.n_rows} rows of {values[0].size} configurations")
            self.sums[scope] = np.zeros((self.n_rows, *values.shape[1:])), np.zeros(self.n_rows, bool)
        sums, touched = self.sums[scope]
        sums[rows] += values
        touched[rows] = True


def _conditioned(hybrid: Hybrid, block: Block, rows: Rows, target: int | None) -> tuple[Array, tuple[Array, Array] | None]:
    """ln p(evidence in the block | scope) of rows that agree in its finite parents, and the moments of the target."""
    every = grid(hybrid.network, block.finite, rows.codes[0])
    n = len(rows.codes)
    if n > 1 and n * every.size * len(block.members) > CELLS:
        raise TooLarge(f"{n} rows of {every.size} configurations of {len(block.members)} nodes")
    parents = {p for m in block.members for p in hybrid.nodes[m].real_parents}
    values = {m: rows.reals[:, m] for m in {*block.observed, *(parents - set(block.members))}}
    answer = hybrid.gaussians.condition(block.members, () if target is None else (target,), values, every.codes, every.size)
    if (answer.trouble != FINE).any():
        for same in _alike(rows.codes):
            refuse(hybrid.network, every, answer.trouble, block.observed, rows.codes[same[0]], {})
    log_density = density(every, answer).values
    if target is None:
        return log_density, None
    shape = (n, every.size)
    return log_density, (np.broadcast_to(answer.mean[:, :, 0].T, shape), np.broadcast_to(answer.variance.T, shape))


def _joined(found: Sequence[_Moments]) -> Iterator[_Moments]:
    """Rows of the same scope together."""
    for scope in dict.fromkeys(f.scope for f in found):
        same = [f for f in found if f.scope == scope]
        yield _Moments(scope, *(np.concatenate([f[i] for f in same]) for i in (1, 2, 3)))


def _weights(hybrid: Hybrid, keep: tuple[int, ...], codes: Ints, factors: Sequence[LogFactor]) -> Array:
    """p(keep | evidence) of rows that observe the same finite variables: [rows, one axis per variable]."""
    if not keep and hybrid.all_possible:
        return np.ones(len(codes))
    needed = [*keep, *(v for f in factors for v in f.scope)]
    logs = log_joint([*log_factors(hybrid.network, codes, needed), *factors], keep, hybrid.network.sizes)
    axes = tuple(range(1, logs.ndim))
    with np.errstate(invalid="ignore"):
        values = np.exp(logs - logs.max(axis=axes, keepdims=True))
    values /= values.sum(axis=axes, keepdims=True)
    return np.asarray(np.broadcast_to(values, (len(codes), *values.shape[1:])))


def _in_parts(rows: Rows, answer: Callable[[Rows], Array], width: int) -> Array:
    """The answers of all rows in their order, in parts that are not too large."""
    result = np.empty((len(rows.codes), width))
    step = max(1, CELLS // max(1, rows.codes.shape[1] + rows.reals.shape[1]))
    for start in range(0, len(result), step):
        _fill(rows, np.arange(start, min(start + step, len(result))), answer, result)
    return result


def _fill(rows: Rows, some: Ints, answer: Callable[[Rows], Array], result: Array) -> None:
    """Half as many rows at a time where all together are too large."""
    try:
        result[some] = answer(rows.take(some))
    except ManyConfigurations:
        raise
    except TooLarge:
        if len(some) == 1:
            raise
        for half in np.array_split(some, 2):
            _fill(rows, half, answer, result)


def _alike(lines: npt.NDArray[Any]) -> Iterator[Ints]:
    """The numbers of the lines that are equal, group by group."""
    if not len(lines) or not lines.shape[1]:
        yield from [np.arange(len(lines))] if len(lines) else []
        return
    packed = np.packbits(lines, axis=1) if lines.dtype == bool else np.ascontiguousarray(lines)
    keys = packed.view(np.dtype((np.void, packed.shape[1] * packed.itemsize))).reshape(-1)
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    yield from np.split(np.argsort(inverse, kind="stable"), np.cumsum(counts)[:-1])
