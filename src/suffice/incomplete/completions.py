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
from suffice.errors import FitError, TooLarge, bytes_in_words, listed, note
from suffice.families.categorical import Table
from suffice.families.family import Cpd
from suffice.incomplete.reduction import coded
from suffice.inference.network import Network
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
"""FiniteCompletions above which the marginals of pairs are held."""

ROOM = 2**21
"""Combinations whose room is taken at once."""

LARGEST = 2**24
"""Cells of the largest table on the way to a draw."""

Watch = Callable[[str], None]
"""Called between parts of long work with what is being done; it may raise to stop it."""

NO_FLOATS, NO_INTS, NO_SMALL = np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int32)


def starts(lengths: Any) -> Ints:
    """Where parts of these lengths begin when they lie end to end, and where the last ends.

    >>> starts([2, 3])
    array([0, 2, 5])
    """
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Places:
    """Where rows came from, to name them."""

    data: Data
    at: Ints

    def impossible(self, i: int) -> FitError:
        place = self.data.place(*self.at[i].tolist())
        return FitError(f"{place} is impossible under the current network: its observed cells have probability 0")


class FiniteRows(NamedTuple):
    """Each distinct row as states by number, `codes[variable, row]`, −1 where missing, and its weight."""

    variables: tuple[Finite, ...]
    codes: Small
    weights: Floats
    places: Places

    @staticmethod
    def of(data: Data, variables: Sequence[Finite]) -> FiniteRows:
        """The rows over these variables, of which those that are no column are hidden."""
        seen = data.take([v.name for v in variables if v.name in data.columns])
        rows = seen.distinct()
        codes = codes_of(rows.columns, variables, rows.n_rows)
        return FiniteRows(tuple(variables), codes, rows.weights, Places(seen, rows.at))


def codes_of(columns: Mapping[str, npt.NDArray[Any]], variables: Sequence[Finite], n_rows: int) -> Small:
    """States by number, [variable, row], −1 where they are missing or the variable is hidden."""
    return np.ascontiguousarray(coded(columns, [v.name for v in variables], n_rows).T)


def network_of(cpds: Mapping[str, Cpd], variables: Sequence[Finite]) -> Network:
    """The tables of these variables; factor i is p(variable i | its parents)."""
    number = {v.name: i for i, v in enumerate(variables)}
    factors = []
    for i, v in enumerate(variables):
        cpd = cpds[v.name]
        assert isinstance(cpd, Table)
        factors.append(((*(number[p] for p in cpd.parents), i), i, cpd.probs))
    return Network.of([v.n_states for v in variables], factors)


def factors_at(network: Network, members: set[int], row: npt.NDArray[Any]) -> list[Factor]:
    """The tables that touch these variables, in logs, at what the row shows of the others."""
    result: list[Factor] = []
    for f in np.unique(np.concatenate([network.touching[1][slice(*network.touching[0][v : v + 2])] for v in members])):
        scope = network.scope(f).tolist()
        at = tuple(slice(None) if v in members else int(row[v]) for v in scope)
        with np.errstate(divide="ignore"):
            result.append(([v for v in scope if v in members], np.log(network.table(f)[at])))
    return result


class FiniteCompletions(NamedTuple):
    """The components of some rows, as `suffice.kernels.expectations` takes them; none, where none are given."""

    codes: Small
    """[variable, row]: states, and ~c for the missing cell c."""
    weights: Floats
    component: Small = NO_SMALL
    """Of each missing cell: its component,"""
    position: Small = NO_SMALL
    """its place in it,"""
    marginal_at: Ints = NO_INTS
    """and where its marginal begins."""
    marginal: Floats = NO_FLOATS
    at: Ints = NO_INTS
    """Of each component: where its completions begin,"""
    digit_at: Ints = NO_INTS
    """where their states begin,"""
    size: Small = NO_SMALL
    """and its number of cells."""
    p: Floats = NO_FLOATS
    digits: Small = NO_SMALL
    origin: Ints = NO_INTS
    """Of each component: where its marginals begin,"""
    span: Ints = NO_INTS
    """how many numbers they are,"""
    pair_at: Ints = NO_INTS
    """and where the marginals of pairs of cells begin, if they are held, else −1."""
    pair: Floats = NO_FLOATS

    @staticmethod
    def of(network: Network, rows: FiniteRows, seed: int, watch: Watch) -> FiniteCompletions:
        """What the rows may have been under a network; `watch` is called on the way."""
        owner, variables = (a.astype(np.int32) for a in np.nonzero(rows.codes.T < 0))
        linked = _linked(network)
        label = _labels(owner, variables, rows.codes.shape[1], linked)
        order = np.argsort(label, kind="stable")
        start = starts(np.bincount(label))
        every = _Components(start, variables[order], owner[order][start[:-1]].astype(np.int64))
        position = np.empty(len(label), np.int32)
        position[order] = np.arange(len(label)) - np.repeat(start[:-1], np.diff(start))
        codes = rows.codes.copy()
        codes[variables, owner] = ~np.arange(len(variables), dtype=np.int32)
        some, inverse = _distinct(every, rows.codes, linked)
        count, p, digits = _listed(network, some, rows, seed, watch)
        size = np.diff(some.start)
        lists = (starts(count), starts(count * size), size.astype(np.int32), p, digits)
        marginal, begin, pairs = _marginals(network.sizes[some.variables], some.start, lists, watch)
        component = inverse[label].astype(np.int32)
        cells = (component, position, begin[some.start[component] + position], marginal)
        return FiniteCompletions._make((codes, rows.weights, *cells, *lists, *pairs))


def _linked(network: Network) -> npt.NDArray[np.uint8]:
    """Which variables are in a family together."""
    linked = np.zeros((network.n_variables,) * 2, np.uint8)
    for f in range(network.n_factors):
        linked[np.ix_(network.scope(f), network.scope(f))] = 1
    np.fill_diagonal(linked, 0)
    return linked


class _Components(NamedTuple):
    """Components of missing cells: of component d the variables start[d]:start[d+1], and the row."""

    start: Ints
    variables: Small
    rows: Ints


def _labels(owner: Small, variables: Small, n_rows: int, linked: Any) -> Ints:
    from suffice.kernels.expectations import labelled

    label = np.empty(len(owner), np.int64)
    labelled(starts(np.bincount(owner, minlength=n_rows)), variables, linked, label)
    return label


def _distinct(every: _Components, codes: Small, linked: Any) -> tuple[_Components, Ints]:
    """One of each kind of components, and of which kind each is: the same variables, the same states around them."""
    from suffice.kernels.expectations import fingerprints

    near = np.nonzero(linked)[1].astype(np.int32)
    prints = np.empty((len(every.rows), 2), np.uint64)
    fingerprints(*every, codes, starts(linked.sum(axis=1, dtype=np.int64)), near, prints)
    _, which, inverse = np.unique(prints[:, 0], return_index=True, return_inverse=True)
    if np.any(prints[which[inverse], 1] != prints[:, 1]):  # two kinds with the same first number
        which = inverse = np.arange(len(every.rows))
    size = np.diff(every.start)[which]
    start = starts(size)
    cells = np.repeat(every.start[which] - start[:-1], size) + np.arange(start[-1])
    return _Components(start, every.variables[cells], every.rows[which]), inverse


def _listed(network: Network, some: _Components, rows: FiniteRows, seed: int, watch: Watch) -> tuple[Ints, Floats, Small]:
    """The number of completions of each component, their probabilities, and their states."""
    n = len(some.rows)
    bits = np.concatenate([[0.0], np.cumsum(np.log2(network.sizes[some.variables]))])
    ways = np.exp2(bits[some.start[1:]] - bits[some.start[:-1]])
    large = ways > MOST * (1 + 1e-9)
    if large.any():
        note(
            f"{int(large.sum()):,} groups of cells that are missing together have more than {MOST:,} combinations of states: "
            f"for these {DRAWS:,} exact draws stand for the posterior, and what is expected is approximate"
        )
    parts: list[tuple[Ints, Floats, Small]] = [(NO_INTS, NO_FLOATS, NO_SMALL)]
    block = np.cumsum(np.where(large, 0, ways)) // ROOM
    edges = np.flatnonzero(np.diff(np.where(large, -1 - np.arange(n), block))) + 1
    for low, high in zip([0, *edges], [*edges, n], strict=True):
        watch(f"completing missing cells, {low:,} of {n:,} groups")
        if high > low and large[low]:
            states, times = np.unique(_draws(network, some, low, rows, seed), axis=0, return_counts=True)
            parts.append((np.array([len(times)]), times / DRAWS, states.reshape(-1)))
        elif high > low:
            parts.append(_enumerated(network, some, slice(low, high), np.rint(ways[low:high]).astype(np.int64), rows))
    joined: list[Any] = []
    for column in zip(*parts, strict=True):
        watch("putting completions together")
        joined.append(np.concatenate(column))
    count, p, digits = joined
    return count, p, digits


def _enumerated(network: Network, some: _Components, which: slice, ways: Ints, rows: FiniteRows) -> tuple[Ints, Floats, Small]:
    from suffice.kernels.expectations import completed

    start = some.start[which.start : which.stop + 1]
    size = np.diff(start)
    variables, owners = some.variables[start[0] : start[-1]], some.rows[which]
    count, p, digits = np.zeros(len(ways), np.int64), np.empty(ways.sum()), np.empty(ways @ size, np.int32)
    with np.errstate(divide="ignore"):
        logs = np.log(network.tables)
    tables = (network.scope_start, network.scopes, network.table_start, logs, *network.touching)
    bad = completed(start - start[0], variables, owners, rows.codes, network.sizes, *tables, count, digits, p)
    if bad >= 0:
        raise rows.places.impossible(int(owners[bad]))
    return count, p[: count.sum()].copy(), digits[: int(count @ size)].copy()


def _marginals(cells: Ints, start: Ints, lists: Any, watch: Watch) -> tuple[Floats, Ints, tuple[Ints, Ints, Ints, Floats]]:
    """The marginal of each cell of each component, and where it begins; of components with many completions those of pairs."""
    from suffice.kernels.expectations import marginals

    at, digit_at, size = lists[:3]
    begin = starts(cells)
    origin = begin[start[:-1]]
    span = begin[start[1:]] - origin
    room = np.where((np.diff(at) > MANY) & (size > 1), span**2, 0)
    pair_at = np.where(room > 0, np.cumsum(room) - room, -1)
    marginal, pair = np.zeros(int(begin[-1])), np.zeros(int(room.sum()))
    cuts = np.searchsorted(digit_at, np.arange(0, int(digit_at[-1]) + ROOM, ROOM))  # looks at the clock in between
    for low, high in pairwise(np.unique(np.minimum([0, *cuts, len(size)], len(size))).tolist()):
        watch(f"marginals of missing cells, {low:,} of {len(size):,} groups")
        marginals(low, high, *lists, start, begin, span, pair_at, marginal, pair)
    return marginal, begin[:-1], (origin, span, pair_at, pair)


def _draws(network: Network, some: _Components, d: int, rows: FiniteRows, seed: int) -> Small:
    """Exact draws from the posterior of a large component, [draw, cell]."""
    members = some.variables[some.start[d] : some.start[d + 1]].tolist()
    row = rows.codes[:, some.rows[d]]
    rng = np.random.default_rng([seed, *row.clip(-1) + 1])
    drawn = joint_draws(members, factors_at(network, set(members), row), DRAWS, rng, rows.variables)
    if drawn is None:
        raise rows.places.impossible(int(some.rows[d]))
    return drawn.astype(np.int32)


def joint_draws(
    members: Sequence[int], factors: Iterable[Factor], n: int, rng: np.random.Generator, variables: Sequence[Finite]
) -> Ints | None:
    """Draws from the normalised product of factors, [draw, member]; None if it is zero everywhere.

    The members are summed out one by one, and then drawn in the other order: each from the product of the factors that were
    joined when it was summed out.
    """
    factors, sizes = list(factors), np.array([v.n_states for v in variables])
    eliminated: list[tuple[int, list[int], Floats]] = []
    cost = {v: _cost(sizes, factors, v) for v in members}
    while cost:
        v = min(cost, key=lambda u: (cost[u], u))
        del cost[v]
        joined = [f for f in factors if v in f[0]]
        scope = [*sorted({u for f in joined for u in f[0]} - {v}), v]
        _refuse_large(scope, variables)
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


def _cost(sizes: Any, factors: list[Factor], v: int) -> float:
    scope = {u for f in factors if v in f[0] for u in f[0]}
    return float(np.prod(sizes[list(scope)].astype(float)))


def _aligned(factor: Factor, scope: list[int]) -> Floats:
    """A factor with the axes of a larger scope."""
    members, table = factor
    order = sorted(range(len(members)), key=lambda k: scope.index(members[k]))
    shape = [table.shape[members.index(u)] if u in members else 1 for u in scope]
    return table.transpose(order).reshape(shape)


def _refuse_large(scope: list[int], variables: Sequence[Finite]) -> None:
    cells = float(np.prod([float(variables[v].n_states) for v in scope]))
    if cells > LARGEST:
        names = listed([variables[v].name for v in scope])
        raise TooLarge(
            f"a row lacks cells that hang together through {names}: their table would have {cells:.3g} cells "
            f"({bytes_in_words(8 * cells)}), and may have {LARGEST:,}; allow fewer parents (max_parents)"
        )
