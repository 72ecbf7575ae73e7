"""Many rows at once, each with other cells observed: posteriors of one variable, and the probability of what is observed.

Where all cells are finite, the part of the network is found row by row on which the answer depends: no barren variables, nothing
that observed ones cut off. Each different part is arranged once, and so many rows with the same cells observed cost little more
than their tables. The missing cells of rows may be filled in: each by its most probable state, or all of a row together.

A row selects a part of each factor's table, and so it is often known from the factors with zeros alone whether it is possible
(`support`). If a part is nothing but zeros, it is not. If the parts that have zeros have other cells, too, and share no
unobserved variable, it is: take such a cell of each. Only what lies between needs an inference.

Where some are numbers (`Densities`), what is observed of the real nodes cuts them into blocks, and rows share most of these: each
is worked on once for all rows that have it and agree in its finite parents. Rows that observe the same finite variables then
share an elimination of the others, with an axis for the rows. Whoever knows more of the rows says it `beside`: factors over
finite variables that some of the rows leave open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Bools
from suffice.errors import ModelError, TooLarge
from suffice.numerics.inference.finite.logs import LogFactor, log_factors, log_joint, shares
from suffice.numerics.inference.finite.network import HINTED, NONE, Array, Ints, Network, Soft
from suffice.numerics.inference.finite.questions import DONE, IMPOSSIBLE, Codes, most_probable, posteriors, row_answers
from suffice.numerics.inference.numbers.gaussian import GaussianNode
from suffice.numerics.inference.numbers.hybrid import (
    GaussianBlock,
    Hybrid,
    ManyConfigurations,
    block_of,
    condition_block,
    density,
)
from suffice.statistics.counts import equal_lines, keys_of

MAX_FACTORS, MAX_PARTS = 32, 2**16
"""Networks with more factors with zeros, or with factors of which there are more parts than this, are not looked at."""


def support(network: Network, seen: npt.NDArray[np.int32]) -> tuple[Bools, Bools]:
    """Which rows are impossible, by their codes (negative where not observed), and of which that is not known."""
    n = len(seen)
    factors = network.with_zeros
    if len(factors) > MAX_FACTORS or any(np.prod(network.sizes[network.scope(f)] + 1.0) > MAX_PARTS for f in factors):
        return np.zeros(n, bool), np.ones(n, bool)
    impossible, doubtful = np.zeros(n, bool), np.zeros(n, bool)
    active: list[tuple[Ints, Bools]] = []
    for f in factors:
        scope, table = network.scope(f), network.table(f)
        zero, other = table == 0.0, table != 0.0
        for axis in range(table.ndim):  # one more index along each axis: all of it, for a variable that is not observed
            zero = np.concatenate([zero, zero.any(axis=axis, keepdims=True)], axis=axis)
            other = np.concatenate([other, other.any(axis=axis, keepdims=True)], axis=axis)
        index = np.zeros(n, np.int64)
        for v, size in zip(scope, table.shape, strict=True):
            codes = seen[:, v]
            index *= size + 1
            index += np.where(codes < 0, size, codes)
        impossible |= ~other.reshape(-1)[index]
        mine = zero.reshape(-1)[index]
        for others, theirs in active:
            for v in np.intersect1d(scope, others):
                doubtful |= mine & theirs & (seen[:, v] < 0)
        active.append((scope, mine))
    return impossible, doubtful & ~impossible


CELLS = 2**23
"""Rows are worked on in parts of at most about this many numbers: 64 MiB."""

MODES = 2**16
"""Fillings of rows that are remembered."""

PART = 2**12
"""So many rows at a time where a density is held for each of their open configurations."""


class RowEvidence(NamedTuple):
    """What some rows observe: a line per row and a column per finite variable (−1: not observed) or real one (NaN)."""

    codes: npt.NDArray[Any]
    reals: npt.NDArray[Any]

    @property
    def n_rows(self) -> int:
        return len(self.codes)

    def take(self, rows: npt.NDArray[Any]) -> RowEvidence:
        """Some of the rows."""
        return RowEvidence(self.codes[rows], self.reals[rows])


def posterior_in_rows(network: Network, target: int, codes: Codes) -> Array:
    """p(target | the observed cells of a row other than the target's own): one line per row, NaN where it is impossible. `codes`
    has one line per row and a column per variable, −1 where a cell is not observed."""
    seen = np.array(codes, np.int32)
    seen[:, target] = NONE
    tables, (impossible, doubtful) = network.tables[None], support(network, seen)
    if doubtful.all():
        return posteriors(network, [target], network.with_zeros, seen, tables)[0]
    out = posteriors(network, [target], network.all_factors[:0], seen, tables)[0]
    if doubtful.any():
        out[doubtful] = posteriors(network, [target], network.with_zeros, seen[doubtful], tables)[0]
    out[impossible] = np.nan
    return out


def log_probs(network: Network, codes: Codes) -> Array:
    """ln p(observed codes) of each row of a finite network, −1 where a cell is not observed; −inf for impossible rows."""
    seen = np.ascontiguousarray(codes, np.int32)
    if not len(seen) or not network.n_variables:
        return np.zeros(len(seen))
    return posteriors(network, (), network.all_factors, seen, network.tables[None])[1]


def marginals_in_rows(network: Network, codes: Ints) -> Array:
    """p(v | the observed cells of a row) of every variable whose code is −2: one line per row, variable v at `network.starts[v]`,
    NaN where a row is impossible. What stands in the places of others, whose code is −1 where not observed, means nothing."""
    seen = np.ascontiguousarray(codes, np.int32)
    if not len(seen):
        return np.zeros((0, int(network.starts[-1])))
    out, log_prob, status = row_answers(network, (), network.all_factors, seen, network.tables[None], network.starts)
    out[log_prob == -np.inf] = np.nan
    for r in np.flatnonzero((status != DONE) & (status != IMPOSSIBLE)):
        for v in np.flatnonzero(seen[r] == HINTED):
            row = seen[r : r + 1].copy()
            row[0, v] = NONE
            at = slice(network.starts[v], network.starts[v + 1])
            out[r, at] = posteriors(network, [int(v)], network.with_zeros, row, network.tables[None])[0][0]
    return out


def fill_each(network: Network, codes: Codes, gaps: Bools) -> Bools:
    """Fill every gap by its most probable state, in place; which rows are impossible, whose gaps stay."""
    impossible, starts = np.zeros(len(codes), bool), network.starts
    for rows in np.array_split(np.arange(len(codes)), -(-len(codes) * int(starts[-1]) // CELLS) or 1):
        probs = marginals_in_rows(network, np.where(gaps[rows], np.int32(HINTED), codes[rows]))
        for v in np.flatnonzero(gaps[rows].any(axis=0)).tolist():
            own = np.flatnonzero(gaps[rows, v])
            codes[rows[own], v] = found = best(probs[own, starts[v] : starts[v + 1]])
            impossible[rows[own[found == NONE]]] = True
    return impossible


_modes: WeakKeyDictionary[Network, dict[bytes, Ints | None]] = WeakKeyDictionary()
"""What gaps of rows were filled with, for the next block of rows; None where it is impossible."""


def fill_together(network: Network, codes: Codes, gaps: Bools) -> Bools:
    """Fill all the gaps of a row by the states that are most probable together, in place, what is neither observed nor a gap
    summed out; which rows are impossible."""
    first, which = np.unique(keys_of(codes), return_index=True, return_inverse=True)[1:]
    filled, impossible = codes[first].astype(np.int64), np.zeros(len(first), bool)
    known = _modes.setdefault(network, {})
    for i, row in enumerate(first):
        key, targets = filled[i].tobytes() + gaps[row].tobytes(), np.flatnonzero(gaps[row])
        if key not in known:
            found = most_probable(network, targets.tolist(), filled[i])
            if len(known) >= MODES:
                known.clear()
            known[key] = found.codes if np.isfinite(found.log_prob) else None
        mode = known[key]
        impossible[i] = mode is None
        filled[i, targets] = NONE if mode is None else mode
    codes[:] = filled[which]
    return impossible[which]


def best(probs: Array) -> Ints:
    """The code of the most probable state of each row, the first of equals; −1 where the probabilities are NaN."""
    codes: Ints = probs.argmax(axis=1)
    codes[np.isnan(probs[:, 0])] = NONE
    return codes


def pick_codes(probs: Array, uniforms: Array) -> Ints:
    """The code that a number in (0, 1) falls on, in each row of probabilities; −1 where these are NaN."""
    if not len(probs):
        return np.zeros(0, np.int64)
    ends = np.cumsum(probs, axis=1)
    ends /= ends[:, -1:]  # so that nothing falls on a last state of probability 0
    codes: Ints = (uniforms[:, None] >= ends[:, :-1]).sum(axis=1)
    codes[np.isnan(probs[:, 0])] = NONE
    return codes


class RowFactor(NamedTuple):
    """ln φ(scope) in some of the rows: [rows, one axis per finite variable of the scope]."""

    scope: tuple[int, ...]
    rows: Ints
    values: Array


class NotFinite(ModelError):
    """A number that has no variance in some row, and this mean."""

    def __init__(self, mean: float) -> None:
        super().__init__(f"a mean in some row is {mean:g}")
        self.mean = mean


Beside = Callable[[RowEvidence], Iterable[RowFactor]]

Shared = Iterator[tuple[GaussianBlock, Ints]]
"""Blocks, each with the numbers of the rows that have it."""


def shared_blocks(nodes: Sequence[GaussianNode], reals: Array, target: int | None = None) -> tuple[Shared, Shared]:
    """The blocks (see `hybrid`) of the evidence of all rows, and a target: those that it is in, and the others."""
    seen = np.ascontiguousarray(~np.isnan(reals).T)
    needed = seen.copy()
    needed[[] if target is None else target] = True
    labels = _labels(nodes, seen, needed)
    own = np.full(len(reals), NONE) if target is None else labels[target]

    def blocks(having: Callable[[int], Bools]) -> Shared:
        """Those that begin with each node, in the rows that are to have one."""
        for first in range(len(nodes)):
            rows = np.flatnonzero(having(first))
            members = labels[:, rows] == first
            observed = members & seen[:, rows]
            for same in equal_lines(np.concatenate([members, observed]).T):
                inside, known = np.flatnonzero(members[:, same[0]]), np.flatnonzero(observed[:, same[0]])
                yield block_of(nodes, inside.tolist(), set(known.tolist())), rows[same]

    return blocks(lambda first: own == first), blocks(lambda first: (labels[first] == first) & (own != first))


def _labels(nodes: Sequence[GaussianNode], seen: Bools, asked: Bools) -> Ints:
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


class TargetMoments(NamedTuple):
    """Mean and variance of a target given the configurations of its scope, [rows, configurations], and which rows they are."""

    scope: tuple[int, ...]
    rows: Ints
    mean: Array
    variance: Array


class RowsEvidence(NamedTuple):
    """What rows show that agree in the finite parents of a block: `Evidence` of many rows."""

    codes: Ints
    reals: dict[int, Array]
    soft: Soft = MappingProxyType({})


class Densities:
    """What is known of the finite variables of each row: sums of logarithms, by those of them that are not observed."""

    def __init__(self, hybrid: Hybrid, rows: RowEvidence, beside: Beside) -> None:
        self.hybrid, self.rows = hybrid, rows
        self.sums: dict[tuple[int, ...], tuple[Array, Bools]] = {}
        self.impossible = np.zeros(rows.n_rows, bool)
        for scope, some, values in beside(rows):
            self._add(scope, some, values)
            self.impossible[some] |= (values.reshape(len(some), -1) == -np.inf).all(axis=1)

    def posterior(self, target: int) -> Array:
        """p(target | row) of a finite target."""
        self.gather_all()
        result = np.empty((self.rows.n_rows, int(self.hybrid.network.sizes[target])))
        for same in equal_lines(self.rows.codes != NONE):
            result[same] = self.weights((target,), same)
        return result

    def moments(self, target: int) -> Array:
        """The mean and variance of a real target."""
        blocks, others = shared_blocks(self.hybrid.nodes, self.rows.reals, target)
        own = [found for block, same in blocks for found in self.gather(block, same, target)]
        open_rows = np.zeros(self.rows.n_rows, bool)
        for scope, same, _, _ in own:
            open_rows[same] = bool(scope)
        for block, same in others if open_rows.any() else ():
            self.gather(block, same[open_rows[same]])
        return self.pool(own)

    def mixture(self, moments: Iterable[TargetMoments]) -> Array:
        """The mean and variance of a number with these moments, which must be finite."""
        self.gather_all()
        return self.pool(moments, finite=True)

    def log_probs(self) -> Array:
        """ln p(row)."""
        self.gather_all(constants=True)
        result, still_open = np.empty((self.rows.n_rows, 1)), np.zeros(self.rows.n_rows, bool)
        for _, touched in (known for scope, known in self.sums.items() if scope):  # what depends on variables not observed
            still_open |= touched
        closed = np.flatnonzero(~still_open)
        result[closed, 0] = log_probs(self.hybrid.network, self.rows.codes[closed]) + sum(f.values for f in self.at(closed))
        for same in equal_lines(self.rows.codes[still_open] != NONE):
            some = np.flatnonzero(still_open)[same]
            result[some, 0] = self.logs((), some)
        return result

    def gather_all(self, *, constants: bool = False) -> None:
        """Add what all real evidence says; what depends on no open variable if `constants` matter."""
        for block, same in shared_blocks(self.hybrid.nodes, self.rows.reals)[1]:
            self.gather(block, same, constants=constants)

    def gather(
        self, block: GaussianBlock, rows: Ints, target: int | None = None, *, constants: bool = False
    ) -> list[TargetMoments]:
        """Add what the evidence in a block says; with a target in it, its moments."""
        hybrid, found, finite = self.hybrid, [], list(block.finite)
        parents = {p for m in block.members for p in hybrid.nodes[m].real_parents}
        shown = [*block.observed, *(parents - set(block.members))]
        for same in equal_lines(self.rows.codes[rows][:, finite]):
            some = rows[same]
            scope = tuple(v for v in finite if self.rows.codes[some[0], v] == NONE)
            if target is None and not scope and not constants and hybrid.complete:
                continue  # a constant, and not one that must be refused
            size = math.prod(hybrid.network.sizes[list(scope)].tolist())
            if len(some) > 1 and len(some) * size * len(block.members) > CELLS:
                raise TooLarge(f"{len(some)} rows of {size} configurations of {len(block.members)} nodes")
            known = RowsEvidence(self.rows.codes[some], {m: self.rows.reals[some, m] for m in shown})
            every, answer = condition_block(hybrid, block, () if target is None else (target,), known)
            if block.observed:
                self._add(scope, some, density(every, answer).values)
            if target is not None:
                each = (answer.mean[:, :, 0].T, answer.variance.T)
                found.append(TargetMoments(scope, some, *(np.broadcast_to(x, (len(some), size)) for x in each)))
        return found

    def at(self, rows: Ints) -> list[LogFactor]:
        """The factors of some rows."""
        return [LogFactor(scope, values[rows]) for scope, (values, touched) in self.sums.items() if touched[rows].any()]

    def logs(self, keep: tuple[int, ...], some: Ints) -> Array:
        """ln p(keep, evidence) of rows that observe the same finite variables: [rows, one axis per variable]."""
        factors = self.at(some)
        needed = [*keep, *(v for f in factors for v in f.scope)]
        pool = [*log_factors(self.hybrid.network, self.rows.codes[some], needed), *factors]
        return log_joint(pool, keep, self.hybrid.network.sizes)

    def weights(self, keep: tuple[int, ...], some: Ints) -> Array:
        """p(keep | evidence) of rows that observe the same finite variables: [rows, one axis per variable]."""
        if not keep and self.hybrid.all_possible:
            return np.ones(len(some))
        logs = self.logs(keep, some)
        values = shares(logs, tuple(range(1, logs.ndim)))
        return np.asarray(np.broadcast_to(values, (len(some), *values.shape[1:])))

    def pool(self, found: Iterable[TargetMoments], *, finite: bool = False) -> Array:
        """Means and variances over the configurations that finite variables may have, NaN in rows that are impossible. If they
        must be `finite`, others are refused."""
        result = np.empty((self.rows.n_rows, 2))
        by_scope: dict[tuple[int, ...], list[TargetMoments]] = {}
        for moments in found:
            by_scope.setdefault(moments.scope, []).append(moments)
        for scope, parts in by_scope.items():
            same, mean, variance = (np.concatenate(column) for column in list(zip(*parts, strict=True))[1:])
            weights = np.empty(mean.shape)
            for part in equal_lines(self.rows.codes[same] != NONE):
                weights[part] = self.weights(scope, same[part]).reshape(len(part), -1)
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


def in_parts(
    hybrid: Hybrid, rows: RowEvidence, beside: Beside, answer: Callable[[Densities], Array], width: int, most: int = CELLS
) -> Array:
    """The answers of all rows in their order, in parts that are not too large: half as many at a time where they are."""
    rows = RowEvidence(rows.codes.astype(np.int64, copy=False), rows.reals)
    result = np.empty((rows.n_rows, width))
    step = max(1, min(most, CELLS // max(1, rows.codes.shape[1] + rows.reals.shape[1])))
    parts = [np.arange(start, min(start + step, len(result))) for start in range(0, len(result), step)][::-1]
    while parts:
        some = parts.pop()
        try:
            result[some] = answer(Densities(hybrid, rows.take(some), beside))
        except ManyConfigurations:
            raise
        except TooLarge:
            if len(some) == 1:
                raise
            parts += np.array_split(some, 2)[::-1]
    return result
