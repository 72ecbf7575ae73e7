"""What incomplete rows may have been, under a finite network: the completions of each component of missing cells.

Given the observed cells of a row, its missing ones fall into components that are independent of each other: cells stay together
if a path in the moral graph joins them that passes no observed cell. A component's posterior depends on its variables and the
states around it only, so that equal ones are computed once. It is a list of completions with their probabilities: all that are
possible, up to `MOST` combinations of states; of larger components `DRAWS` exact draws, which weigh the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.encode import missing_code
from suffice.errors import FitError, TooLarge, bytes_in_words, listed, note
from suffice.families.categorical import Table
from suffice.models.bayes_net import BayesNet
from suffice.variables import Finite

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]

Factor = tuple[list[int], Floats]
"""Variables, and the logarithm of a table over them."""

MOST = 2**14
"""Combinations of states up to which a component is enumerated."""

DRAWS = 2_000
"""Draws from the posterior of a larger one."""

MANY = 32
"""Completions above which the marginals of pairs are held."""

ROOM = 2**21
"""Combinations whose room is taken at once."""

LARGEST = 2**24
"""Cells of the largest table on the way to a draw."""


Watch = Callable[[str], None]
"""Called between parts of long work with what is being done; it may raise to stop it."""


def unwatched(what: str) -> None:
    """Nobody is told."""


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows as states by number, `codes[variable, row]`, −1 where missing; equal rows are one row with their weight together."""

    variables: tuple[Finite, ...]
    codes: Small
    weights: Floats
    row: Ints
    """A row of the data that each stands for."""
    weight: float

    @staticmethod
    def of(rows: Data, variables: Mapping[str, Finite]) -> CodedRows:
        """The rows over these variables, of which those that are no column are hidden."""
        codes = np.full((len(variables), rows.n_rows), -1, np.int32)
        weights = np.ones(rows.n_rows)
        seen = [n for n in variables if n in rows.columns]
        for batch in rows.select(seen).batches():
            part = slice(batch.start, batch.start + batch.n_rows)
            for i, name in enumerate(variables):
                if name in batch.columns:
                    column = batch.columns[name]
                    codes[i, part] = np.where(column == missing_code(column.dtype), -1, column.astype(np.int64))
            if batch.weight is not None:
                weights[part] = batch.weight
        first, inverse = _alike(codes)
        merged = np.bincount(inverse, weights, len(first)).astype(np.float64)
        return CodedRows(
            tuple(variables.values()), np.ascontiguousarray(codes[:, first]), merged, first.astype(np.int64), float(weights.sum())
        )


class Completions(NamedTuple):
    """The components of some rows, as `suffice.kernels.expectations` takes them."""

    codes: Small
    """[variable, row]: states, and ~c for the missing cell c."""
    weights: Floats
    component: Small
    """Of each missing cell: its component,"""
    position: Small
    """its place in it,"""
    marginal_at: Ints
    """and where its marginal begins."""
    marginal: Floats
    at: Ints
    """Of each component: where its completions begin,"""
    digit_at: Ints
    """where their states begin,"""
    size: Small
    """and its number of cells."""
    p: Floats
    digits: Small
    origin: Ints
    """Of each component: where its marginals begin,"""
    span: Ints
    """how many numbers they are,"""
    pair_at: Ints
    """and where the marginals of pairs of cells begin, if they are held, else −1."""
    pair: Floats

    @staticmethod
    def of(model: BayesNet, rows: CodedRows, seed: int = 0, watch: Watch = unwatched) -> Completions:
        """What the rows may have been under the model; `watch` is called on the way."""
        return _completions(Network.of(model, rows.variables), rows, seed, watch)


class Network(NamedTuple):
    """A finite network in numbers, over variables in a given order."""

    sizes: Ints
    families: list[list[int]]
    """Each variable's parents, then itself."""
    logs: list[Floats]

    @staticmethod
    def of(model: BayesNet, variables: Sequence[Finite]) -> Network:
        number = {v.name: i for i, v in enumerate(variables)}
        families, logs = [], []
        for v in variables:
            cpd = model[v.name]
            assert isinstance(cpd, Table)
            families.append([*(number[p] for p in cpd.parents), number[v.name]])
            with np.errstate(divide="ignore"):
                logs.append(np.log(cpd.probs))
        return Network(np.array([v.n_states for v in variables], np.int64), families, logs)

    def factors(self, members: set[int], row: Small | Ints) -> list[Factor]:
        """The families that touch these variables, at what the row shows of the others."""
        result = []
        for family, table in zip(self.families, self.logs, strict=True):
            if members & set(family):
                observed = tuple(slice(None) if v in members else int(row[v]) for v in family)
                result.append(([v for v in family if v in members], table[observed]))
        return result

    def linked(self) -> npt.NDArray[np.uint8]:
        """Which variables are in a family together."""
        n = len(self.sizes)
        result = np.zeros((n, n), np.uint8)
        for family in self.families:
            result[np.ix_(family, family)] = 1
        np.fill_diagonal(result, 0)
        return result


class _Components(NamedTuple):
    """Components of missing cells: of component d the variables start[d]:start[d+1], and the row."""

    start: Ints
    variables: Small
    rows: Ints


def _completions(network: Network, rows: CodedRows, seed: int, watch: Watch) -> Completions:
    owner, variables = (a.astype(np.int32) for a in np.nonzero(rows.codes.T < 0))
    codes = rows.codes.copy()
    linked = network.linked()
    label = _labels(owner, variables, rows.codes.shape[1], linked)
    order = np.argsort(label, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(label))]).astype(np.int64)
    every = _Components(start, variables[order], owner[order][start[:-1]].astype(np.int64))
    position = np.empty(len(label), np.int32)
    position[order] = np.arange(len(label)) - np.repeat(start[:-1], np.diff(start))
    codes[variables, owner] = ~np.arange(len(variables), dtype=np.int32)
    which, inverse = _distinct(every, rows.codes, linked)
    some = _chosen(every, which)
    count, p, digits = _listed(network, some, rows, seed, watch)
    size = np.diff(some.start)
    at = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
    digit_at = np.concatenate([[0], np.cumsum(count * size)]).astype(np.int64)
    lists = (at, digit_at, size.astype(np.int32), p, digits)
    marginal, begin, pairs = _marginals(network.sizes[some.variables], some.start, count, lists, watch)
    component = inverse[label].astype(np.int32)
    cells = (component, position, begin[some.start[component] + position], marginal)
    return Completions._make((codes, rows.weights, *cells, *lists, *pairs))


def _labels(owner: Small, variables: Small, n_rows: int, linked: Any) -> Ints:
    from suffice.kernels.expectations import labelled

    first = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_rows))]).astype(np.int64)
    label = np.empty(len(owner), np.int64)
    labelled(first, variables, linked, label)
    return label


def _distinct(every: _Components, codes: Small, linked: Any) -> tuple[Ints, Ints]:
    """One of each kind of components, and of which kind each is: the same variables, the same states around them."""
    from suffice.kernels.expectations import fingerprints

    near = [np.flatnonzero(row) for row in linked]
    near_first = np.concatenate([[0], np.cumsum([len(x) for x in near])]).astype(np.int64)
    prints = np.empty((len(every.rows), 2), np.uint64)
    fingerprints(
        every.start, every.variables, every.rows, codes, near_first, np.concatenate([*near, []]).astype(np.int32), prints
    )
    _, which, inverse = np.unique(prints[:, 0], return_index=True, return_inverse=True)
    if np.any(prints[which[inverse], 1] != prints[:, 1]):  # two kinds with the same first number
        which = inverse = np.arange(len(every.rows))
    return which, inverse


def _chosen(every: _Components, which: Ints) -> _Components:
    size = np.diff(every.start)[which]
    start = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    cells = np.repeat(every.start[which] - start[:-1], size) + np.arange(start[-1])
    return _Components(start, every.variables[cells], every.rows[which])


def _listed(network: Network, some: _Components, rows: CodedRows, seed: int, watch: Watch) -> tuple[Ints, Floats, Small]:
    """The number of completions of each component, their probabilities, and their states."""
    n = len(some.rows)
    ways = np.exp2(_summed(np.log2(network.sizes[some.variables]), some.start)) if n else np.zeros(0)
    large = ways > MOST * (1 + 1e-9)
    if large.any():
        note(
            f"{int(large.sum()):,} groups of cells that are missing together have more than {MOST:,} combinations of states: "
            f"for these {DRAWS:,} exact draws stand for the posterior, and what is expected is approximate"
        )
    parts: list[tuple[Ints, Floats, Small]] = []
    block = np.cumsum(np.where(large, 0, ways)) // ROOM
    edges = np.flatnonzero(np.diff(np.where(large, -1 - np.arange(n), block))) + 1
    for low, high in zip([0, *edges], [*edges, n], strict=True):
        watch(f"completing missing cells, {low:,} of {n:,} groups")
        if high > low and large[low]:
            states, times = np.unique(_draws(network, some, low, rows, seed), axis=0, return_counts=True)
            parts.append((np.array([len(times)]), times / DRAWS, states.reshape(-1)))
        elif high > low:
            parts.append(_enumerated(network, some, slice(low, high), np.rint(ways[low:high]).astype(np.int64), rows))
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int32)
    joined: list[Any] = []
    for column in zip(*parts, strict=True):
        watch("putting completions together")
        joined.append(np.concatenate(column))
    count, p, digits = joined
    return count, p, digits


def _summed(values: Floats, start: Ints) -> Floats:
    total = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(total[start[1:]] - total[start[:-1]])


def _enumerated(network: Network, some: _Components, which: slice, ways: Ints, rows: CodedRows) -> tuple[Ints, Floats, Small]:
    from suffice.kernels.expectations import completed

    start = some.start[which.start : which.stop + 1]
    size = np.diff(start)
    count, p, digits = np.zeros(len(ways), np.int64), np.empty(ways.sum()), np.empty(ways @ size, np.int32)
    bad = completed(
        start - start[0],
        np.ascontiguousarray(some.variables[start[0] : start[-1]]),
        np.ascontiguousarray(some.rows[which]),
        rows.codes,
        network.sizes,
        *_flat(network),
        count,
        digits,
        p,
    )
    if bad >= 0:
        raise _impossible(rows, int(some.rows[which.start + bad]))
    return count, p[: count.sum()].copy(), digits[: int(count @ size)].copy()


def _flat(network: Network) -> tuple[Ints, Small, Ints, Floats, Ints, Small]:
    """Families, tables and children end to end."""
    n = len(network.sizes)
    first = np.concatenate([[0], np.cumsum([len(f) for f in network.families])]).astype(np.int64)
    at = np.concatenate([[0], np.cumsum([t.size for t in network.logs])[:-1]]).astype(np.int64)
    children: list[list[int]] = [[] for _ in range(n)]
    for child, family in enumerate(network.families):
        for p in family[:-1]:
            children[p].append(child)
    child_first = np.concatenate([[0], np.cumsum([len(c) for c in children])]).astype(np.int64)
    members = np.array([v for f in network.families for v in f], np.int32)
    logs = np.concatenate([t.reshape(-1) for t in network.logs])
    return first, members, at, logs, child_first, np.array([c for group in children for c in group], np.int32)


def _marginals(
    sizes: Ints, start: Ints, count: Ints, lists: Any, watch: Watch
) -> tuple[Floats, Ints, tuple[Ints, Ints, Ints, Floats]]:
    """The marginal of each cell of each component, and where it begins; of components with many completions those of pairs."""
    from suffice.kernels.expectations import pair_tables

    at, digit_at, size, p, digits = lists
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    origin = ends[start[:-1]]
    span = ends[start[1:]] - origin
    room = np.where((count > MANY) & (size > 1), span**2, 0)
    pair_at = np.where(room > 0, np.cumsum(room) - room, -1)
    marginal, pair = np.zeros(int(ends[-1])), np.zeros(int(room.sum()))
    for some in _blocks(digit_at):
        watch(f"marginals of missing cells, {some.start:,} of {len(size):,} groups")
        low, high = int(digit_at[some.start]), int(digit_at[some.stop])
        length = (count * size)[some]
        own = slice(some.start, some.stop + 1)
        state, part = digits[low:high], p[at[some.start] : at[some.stop]]
        digit = np.arange(low, high) - np.repeat(digit_at[some], length)
        cell = np.repeat(start[some], length) + digit % np.repeat(size[some], length)
        first, last = int(ends[start[some.start]]), int(ends[start[some.stop]])
        share = np.repeat(part, np.repeat(size[some], count[some]))
        marginal[first:last] = np.bincount(ends[cell] + state - first, share, last - first)
        begin = ends[cell] - np.repeat(origin[some], length)
        lists_here = (at[own] - at[some.start], digit_at[own] - low, size[some], part, state)
        pair_tables(*lists_here, begin, span[some], pair_at[some], pair)
    return marginal, ends[:-1], (origin, span, pair_at, pair)


def _blocks(digit_at: Ints) -> list[slice]:
    """The components in parts whose completions have about as many states as is worth a look at the clock."""
    cuts = np.searchsorted(digit_at, np.arange(0, int(digit_at[-1]) + ROOM, ROOM))
    edges = np.unique(np.minimum(cuts, len(digit_at) - 1)).tolist()
    return [slice(a, b) for a, b in pairwise(sorted({0, *edges, len(digit_at) - 1}))]


def _draws(network: Network, some: _Components, d: int, rows: CodedRows, seed: int) -> Small:
    """Exact draws from the posterior of a large component, [draw, cell]."""
    members = some.variables[some.start[d] : some.start[d + 1]].tolist()
    row = rows.codes[:, some.rows[d]]
    rng = np.random.default_rng([seed, *row.clip(-1) + 1])
    drawn = joint_draws(network.sizes, members, network.factors(set(members), row), DRAWS, rng, rows.variables)
    if drawn is None:
        raise _impossible(rows, int(some.rows[d]))
    return drawn.astype(np.int32)


def joint_draws(
    sizes: Ints, members: Sequence[int], factors: Iterable[Factor], n: int, rng: np.random.Generator, variables: Sequence[Finite]
) -> Ints | None:
    """Draws from the normalised product of factors, [draw, member]; None if it is zero everywhere.

    The members are summed out one by one, and then drawn in the other order: each from the product of the factors that were
    joined when it was summed out.
    """
    factors = list(factors)
    eliminated: list[tuple[int, list[int], Floats]] = []
    cost = {v: _cost(sizes, factors, v) for v in members}
    while cost:
        v = min(cost, key=lambda u: (cost[u], u))
        del cost[v]
        joined = [f for f in factors if v in f[0]]
        scope = [*sorted({u for f in joined for u in f[0]} - {v}), v]
        _refuse_large(sizes, scope, variables)
        table = sum((_aligned(f, scope) for f in joined), np.zeros(sizes[scope]))
        eliminated.append((v, scope[:-1], table))
        factors = [f for f in factors if v not in f[0]]
        with np.errstate(divide="ignore"):
            factors.append((scope[:-1], np.logaddexp.reduce(table, axis=-1)))
        cost.update({u: _cost(sizes, factors, u) for u in scope[:-1]})
    if not np.all(np.isfinite([f[1] for f in factors if not f[0]])):
        return None
    drawn: dict[int, Any] = {}
    for v, scope, table in reversed(eliminated):
        given = table[tuple(drawn[u] for u in scope)] if scope else np.broadcast_to(table, (n, len(table)))
        weight = np.exp(given - given.max(axis=1, keepdims=True)).cumsum(axis=1)
        drawn[v] = np.minimum((rng.random((n, 1)) * weight[:, -1:] >= weight).sum(axis=1), table.shape[-1] - 1)
    return np.column_stack([drawn[v] for v in members])


def _cost(sizes: Ints, factors: list[Factor], v: int) -> float:
    scope = {u for f in factors if v in f[0] for u in f[0]}
    return float(np.prod(sizes[list(scope)].astype(float)))


def _aligned(factor: Factor, scope: list[int]) -> Floats:
    """A factor with the axes of a larger scope."""
    members, table = factor
    order = sorted(range(len(members)), key=lambda k: scope.index(members[k]))
    shape = [table.shape[members.index(u)] if u in members else 1 for u in scope]
    return table.transpose(order).reshape(shape)


def _refuse_large(sizes: Ints, scope: list[int], variables: Sequence[Finite]) -> None:
    cells = float(np.prod(sizes[scope].astype(float)))
    if cells > LARGEST:
        names = listed([variables[v].name for v in scope])
        raise TooLarge(
            f"a row lacks cells that hang together through {names}: their table would have {cells:.3g} cells "
            f"({bytes_in_words(8 * cells)}), and may have {LARGEST:,}; allow fewer parents (max_parents)"
        )


def _impossible(rows: CodedRows, i: int) -> FitError:
    return FitError(
        f"row {int(rows.row[i]) + 1:,} is impossible under the current network: its observed cells have probability 0"
    )


def _alike(codes: Small) -> tuple[Ints, Ints]:
    """One of each kind of equal columns, and of which kind each is, if that saves a good part of them."""
    n = codes.shape[1]
    every = np.arange(n)
    mix = np.zeros(n, np.uint64)
    for row in codes:
        mix = (mix ^ (row + 2).astype(np.uint64)) * np.uint64(1099511628211)
        mix ^= mix >> np.uint64(29)
    _, first, inverse = np.unique(mix, return_index=True, return_inverse=True)
    if len(first) > 0.9 * n or not all(np.array_equal(row[first][inverse], row) for row in codes):
        return every, every
    return first, inverse
