"""Many rows with finite and real cells, each with other cells observed: the posterior of one variable, or ln p(observed).

What is observed of the real nodes cuts them into blocks, and rows share most of their blocks: each is worked on once for all
rows that have it and agree in its finite parents. Rows that observe the same finite variables then share an elimination of
the others, with an axis for the rows. Whoever knows more of the rows says it `beside`: factors over finite variables that some
of the rows leave open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import ModelError, TooLarge
from suffice.inference import rows as finite
from suffice.inference.blocks import Block, Hybrid, ManyConfigurations, block_of, density, grid, refuse
from suffice.inference.gaussian import FINE
from suffice.inference.logs import LogFactor, log_factors, log_joint
from suffice.inference.network import NONE, Array, GaussianNode, Ints
from suffice.inference.rows import RowEvidence, alike

CELLS = 2**23
"""Rows are worked on in parts of at most about this many numbers."""

PART = 2**12
"""So many rows at a time where a density is held for each of their open configurations."""

Flags = npt.NDArray[np.bool_]


class Factor(NamedTuple):
    """ln φ(scope) in some of the rows: [rows, one axis per finite variable of the scope]."""

    scope: tuple[int, ...]
    rows: Ints
    values: Array


class NotFinite(ModelError):
    """A number that has no variance in some row, and this mean."""

    def __init__(self, mean: float) -> None:
        super().__init__(f"a mean in some row is {mean:g}")
        self.mean = mean


Beside = Callable[[RowEvidence], Iterable[Factor]]


def nothing(rows: RowEvidence) -> Iterable[Factor]:
    """Where nothing else is known of rows."""
    return ()


def finite_rows(hybrid: Hybrid, target: int, rows: RowEvidence, beside: Beside = nothing) -> Array:
    """p(target | the other observed cells of the row) of a finite target: [rows, states], NaN where they are impossible."""
    width = int(hybrid.network.sizes[target])

    def answer(rows: RowEvidence) -> Array:
        densities = Densities(rows, beside)
        densities.gather_all(hybrid)
        result = np.empty((rows.n_rows, width))
        for same in alike(rows.codes != NONE):
            result[same] = densities.weights(hybrid, (target,), same)
        return result

    return _in_parts(_without(rows, finite=target), answer, width)


def real_rows(hybrid: Hybrid, target: int, rows: RowEvidence, beside: Beside = nothing) -> Array:
    """The mean and variance of a real target given the other observed cells of the row: [rows, 2]; NaN as above."""

    def answer(rows: RowEvidence) -> Array:
        densities, own = Densities(rows, beside), []
        blocks, others = _blocks_of_target(hybrid.nodes, rows.reals, target)
        for block, same in blocks:
            own += densities.gather(hybrid, block, same, target)
        open_rows = np.zeros(rows.n_rows, bool)
        for scope, same, _, _ in own:
            open_rows[same] = bool(scope)
        for block, same in others if open_rows.any() else ():
            densities.gather(hybrid, block, same[open_rows[same]])
        return densities.pooled(hybrid, own)

    return _in_parts(_without(rows, real=target), answer, 2)


def moments_in_rows(
    hybrid: Hybrid, target: int, rows: RowEvidence, moments: Callable[[RowEvidence], Iterable[Moments]], beside: Beside
) -> Array:
    """The same of a number that has only a stand-in here, by its moments given the finite variables that are open."""

    def answer(rows: RowEvidence) -> Array:
        densities = Densities(rows, beside)
        densities.gather_all(hybrid)
        return densities.pooled(hybrid, moments(rows), finite=True)

    return _in_parts(_without(rows, real=target), answer, 2)


def log_probs(hybrid: Hybrid, rows: RowEvidence, beside: Beside = nothing) -> Array:
    """ln p(observed cells) of each row, a density where numbers are observed; −inf where they are impossible together."""

    def answer(rows: RowEvidence) -> Array:
        densities = Densities(rows, beside)
        densities.gather_all(hybrid, constants=True)
        result, still_open = np.empty((rows.n_rows, 1)), densities.open
        closed = np.flatnonzero(~still_open)
        result[closed, 0] = finite.log_probs(hybrid.network, rows.codes[closed]) + sum(f.values for f in densities.at(closed))
        for same in alike(rows.codes[still_open] != NONE):
            some = np.flatnonzero(still_open)[same]
            result[some, 0] = densities.logs(hybrid, (), some)
        return result

    return _in_parts(rows, answer, 1, PART)[:, 0]


def _without(rows: RowEvidence, finite: int | None = None, real: int | None = None) -> RowEvidence:
    """The rows with a target that is not observed."""
    codes, reals = np.array(rows.codes, np.int64), np.array(rows.reals, np.float64)
    if finite is not None:
        codes[:, finite] = NONE
    if real is not None:
        reals[:, real] = np.nan
    return RowEvidence(codes, reals)


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
    for same in alike(np.concatenate([members, observed]).T):
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


class Moments(NamedTuple):
    """Mean and variance of a target given the configurations of its scope, [rows, configurations], and which rows they are."""

    scope: tuple[int, ...]
    rows: Ints
    mean: Array
    variance: Array


class Densities:
    """What is known of the finite variables of each row: sums of logarithms, by those of them that are not observed."""

    def __init__(self, rows: RowEvidence, beside: Beside = nothing) -> None:
        self.rows = rows
        self.sums: dict[tuple[int, ...], tuple[Array, Flags]] = {}
        self.impossible = np.zeros(rows.n_rows, bool)
        for scope, some, values in beside(rows):
            self._add(scope, some, values)
            self.impossible[some] |= (values.reshape(len(some), -1) == -np.inf).all(axis=1)

    def gather_all(self, hybrid: Hybrid, *, constants: bool = False) -> None:
        """Add what all real evidence says; what depends on no open variable if `constants` matter."""
        for block, same in shared_blocks(hybrid.nodes, self.rows.reals):
            self.gather(hybrid, block, same, constants=constants)

    def gather(
        self, hybrid: Hybrid, block: Block, rows: Ints, target: int | None = None, *, constants: bool = False
    ) -> list[Moments]:
        """Add what the evidence in a block says; with a target in it, its moments."""
        found = []
        finite = list(block.finite)
        for same in alike(self.rows.codes[rows][:, finite]):
            some = rows[same]
            scope = tuple(v for v in finite if self.rows.codes[some[0], v] == NONE)
            if target is None and not scope and not constants and hybrid.complete:
                continue  # a constant, and not one that must be refused
            log_density, moments = _conditioned(hybrid, block, self.rows.take(some), target)
            if block.observed:
                self._add(scope, some, log_density)
            if moments is not None:
                found.append(Moments(scope, some, *moments))
        return found

    def at(self, rows: Ints) -> list[LogFactor]:
        """The factors of some rows."""
        return [LogFactor(scope, values[rows]) for scope, (values, touched) in self.sums.items() if touched[rows].any()]

    @property
    def open(self) -> Flags:
        """The rows of which something is known that depends on variables that are not observed."""
        touched = [touched for scope, (_, touched) in self.sums.items() if scope]
        return np.asarray(np.logical_or.reduce(touched)) if touched else np.zeros(self.rows.n_rows, bool)

    def logs(self, hybrid: Hybrid, keep: tuple[int, ...], some: Ints) -> Array:
        """ln p(keep, evidence) of rows that observe the same finite variables: [rows, one axis per variable]."""
        factors = self.at(some)
        needed = [*keep, *(v for f in factors for v in f.scope)]
        pool = [*log_factors(hybrid.network, self.rows.codes[some], needed), *factors]
        return log_joint(pool, keep, hybrid.network.sizes)

    def weights(self, hybrid: Hybrid, keep: tuple[int, ...], some: Ints) -> Array:
        """p(keep | evidence) of rows that observe the same finite variables: [rows, one axis per variable]."""
        if not keep and hybrid.all_possible:
            return np.ones(len(some))
        logs = self.logs(hybrid, keep, some)
        axes = tuple(range(1, logs.ndim))
        with np.errstate(invalid="ignore"):
            values = np.exp(logs - logs.max(axis=axes, keepdims=True))
        values /= values.sum(axis=axes, keepdims=True)
        return np.asarray(np.broadcast_to(values, (len(some), *values.shape[1:])))

    def pooled(self, hybrid: Hybrid, found: Iterable[Moments], *, finite: bool = False) -> Array:
        """Means and variances over the configurations that finite variables may have; NaN in rows that are impossible.

        If they must be `finite`, others are refused.
        """
        result = np.empty((self.rows.n_rows, 2))
        for scope, same, mean, variance in _joined(list(found)):
            weights = np.empty(mean.shape)
            for part in alike(self.rows.codes[same] != NONE):
                weights[part] = self.weights(hybrid, scope, same[part]).reshape(len(part), -1)
            wrong = (weights > 0) & ~np.isfinite(variance)
            if finite and wrong.any():
                raise NotFinite(float(mean[wrong][0]))
            mean, variance = (np.where(weights == 0, 0.0, x) for x in (mean, variance))
            center = (weights * mean).sum(axis=1)
            result[same, 0] = center
            result[same, 1] = (weights * (variance + (mean - center[:, None]) ** 2)).sum(axis=1)
        result[self.impossible] = np.nan
        return result

    def _add(self, scope: tuple[int, ...], rows: Ints, values: Array) -> None:
        if scope not in self.sums:
            n = self.rows.n_rows
            if n > 1 and n * values[0].size > CELLS:
                raise TooLarge(f"{n} rows of {values[0].size} configurations")
            self.sums[scope] = np.zeros((n, *values.shape[1:])), np.zeros(n, bool)
        sums, touched = self.sums[scope]
        sums[rows] += values
        touched[rows] = True


def _conditioned(hybrid: Hybrid, block: Block, rows: RowEvidence, target: int | None) -> tuple[Array, tuple[Array, Array] | None]:
    """ln p(evidence in the block | scope) of rows that agree in its finite parents, and the moments of the target."""
    every = grid(hybrid.network, block.finite, rows.codes[0])
    n = len(rows.codes)
    if n > 1 and n * every.size * len(block.members) > CELLS:
        raise TooLarge(f"{n} rows of {every.size} configurations of {len(block.members)} nodes")
    parents = {p for m in block.members for p in hybrid.nodes[m].real_parents}
    values = {m: rows.reals[:, m] for m in {*block.observed, *(parents - set(block.members))}}
    answer = hybrid.gaussians.condition(block.members, () if target is None else (target,), values, every.codes, every.size)
    if (answer.trouble != FINE).any():
        for same in alike(rows.codes):
            refuse(hybrid.network, every, answer.trouble, block.observed, rows.codes[same[0]], {})
    log_density = density(every, answer).values
    if target is None:
        return log_density, None
    shape = (n, every.size)
    return log_density, (np.broadcast_to(answer.mean[:, :, 0].T, shape), np.broadcast_to(answer.variance.T, shape))


def _joined(found: Sequence[Moments]) -> Iterator[Moments]:
    """Rows of the same scope together."""
    for scope in dict.fromkeys(f.scope for f in found):
        same = [f for f in found if f.scope == scope]
        yield Moments(scope, *(np.concatenate([f[i] for f in same]) for i in (1, 2, 3)))


def _in_parts(rows: RowEvidence, answer: Callable[[RowEvidence], Array], width: int, most: int = CELLS) -> Array:
    """The answers of all rows in their order, in parts that are not too large."""
    rows = RowEvidence(rows.codes.astype(np.int64, copy=False), rows.reals)
    result = np.empty((rows.n_rows, width))
    step = max(1, min(most, CELLS // max(1, rows.codes.shape[1] + rows.reals.shape[1])))
    for start in range(0, len(result), step):
        _fill(rows, np.arange(start, min(start + step, len(result))), answer, result)
    return result


def _fill(rows: RowEvidence, some: Ints, answer: Callable[[RowEvidence], Array], result: Array) -> None:
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
