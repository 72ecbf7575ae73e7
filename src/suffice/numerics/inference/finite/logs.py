"""Factors as logarithms: variables taken out of their product one by one, and factors multiplied into a network.

For numbers that floats cannot hold, for maxima, and for rows whose factors differ, many at once. A density of real evidence can
differ by factors like e^±10000 between configurations of the finite variables, and another one can differ the other way: in plain
numbers the product would be zero everywhere. So factors that join a network are scaled to at most 1, and where floats would not
hold them all the same, their logs are kept.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from suffice.errors import TooLarge, bytes_in_words
from suffice.errors.remedies import BY_WEIGHTING
from suffice.numerics.inference.finite.network import HINTED, NONE, Array, Ints, Network, Soft, n_cells, relevant_part, steps

MAX_CELLS = 2**27
"""A product is held whole here; more cells than this (1 GiB) are refused; half as many of several rows, which can be parted."""


class LogFactor(NamedTuple):
    """ln φ(scope) for each row of evidence, [rows, one axis per variable]; a single row stands for all."""

    scope: tuple[int, ...]
    values: Array

    def over(self, scope: Sequence[int]) -> Array:
        """The values with the axes in the order of a larger scope, those of other variables of length 1."""
        axis = {v: i for i, v in enumerate(self.scope, 1)}
        ordered = self.values.transpose(0, *(axis[v] for v in scope if v in axis))
        return ordered.reshape(len(ordered), *(self.values.shape[axis[v]] if v in axis else 1 for v in scope))


def shares(logs: Array, axes: tuple[int, ...]) -> Array:
    """exp, divided by its sum over some axes; NaN where all are −inf."""
    with np.errstate(invalid="ignore"):  # −inf less −inf
        values = np.exp(logs - logs.max(axis=axes, keepdims=True))
    return np.asarray(values / values.sum(axis=axes, keepdims=True))


def log_sum(logs: Array, axes: int | tuple[int, ...]) -> Array:
    """ln Σ exp over an axis, or some; −inf where all are."""
    if axes == ():
        return logs
    high = logs.max(axis=axes, keepdims=True)
    high = np.where(np.isfinite(high), high, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - high).sum(axis=axes)) + np.squeeze(high, axis=axes))


class Elimination:
    """Variables taken out of Π φ step by step: summed out, or, the last `n_maximised` of them, maximised. `scopes` are those of
    `steps`. Of one row the steps can be gone through backwards: for marginals, for what is most probable, for draws."""

    def __init__(
        self, factors: Iterable[LogFactor], scopes: Sequence[tuple[int, ...]], sizes: Ints, n_maximised: int = 0
    ) -> None:
        self.scopes, self.sizes, self.n_summed = scopes, sizes, len(scopes) - n_maximised
        self._at = {scope[-1]: i for i, scope in enumerate(scopes)}
        self._joined: list[list[tuple[int, LogFactor]]] = [[] for _ in range(len(scopes) + 1)]
        for f in factors:
            self._put(-1, f)
        n_rows = max((len(f.values) for joined in self._joined for _, f in joined), default=1)
        for scope in scopes:
            self._check(scope, n_rows)
        for i, scope in enumerate(scopes):
            table = self.product(i)
            if n_rows > 1:  # only of one row the steps are gone through backwards
                self._joined[i].clear()
            values = log_sum(table, (table.ndim - 1,)) if i < self.n_summed else table.max(axis=-1)
            self._put(i, LogFactor(scope[:-1], values))

    def _put(self, step: int, factor: LogFactor) -> None:
        """Keep what a step made, or what was there before (−1), for the first step that takes it up."""
        self._joined[min((self._at[v] for v in factor.scope if v in self._at), default=-1)].append((step, factor))

    def product(self, step: int) -> Array:
        """ln of the product of all that a step takes up, over its scope."""
        return _product((f for _, f in self._joined[step]), self.scopes[step], self.sizes)

    def joint(self, keep: Sequence[int]) -> Array:
        """ln Σ Π φ over the variables that are left: [rows, one axis per variable]."""
        left = [f for _, f in self._joined[-1]]
        self._check(keep, max((len(f.values) for f in left), default=1))
        return _product(left, keep, self.sizes)

    def marginals(self) -> dict[int, Array]:
        """p(v | evidence) of each variable, if all are summed out and the evidence is possible."""
        result = {}
        for i, p in self.joints():
            own = p.sum(axis=tuple(range(p.ndim - 1)))
            result[self.scopes[i][-1]] = own / own.sum()
        return result

    def joints(self) -> Iterator[tuple[int, Array]]:
        """p(scope of a step's product | evidence) of each step, the last one first, if all are summed out. Backwards: it is its
        share of what it became, times the probability of that."""
        known = {i: np.ones(()) for i, _ in self._joined[-1]}
        for i in range(len(self.scopes) - 1, -1, -1):
            scope, logs = self.scopes[i], self.product(i)[0]
            total = log_sum(logs, (logs.ndim - 1,))[..., None]
            p = np.exp(logs - np.where(total == -np.inf, 0.0, total)) * known.pop(i)[..., None]
            yield i, p
            for j, f in self._joined[i]:
                if j >= 0:
                    known[j] = summed_to(p, scope, f.scope)

    def of_factors(self, scopes: Sequence[tuple[int, ...]]) -> list[Array]:
        """p(scope | evidence) of the factors that it was made of, whose scopes these are."""
        homes: dict[int, list[int]] = {}
        for k, scope in enumerate(scopes):
            homes.setdefault(min((self._at[v] for v in scope), default=-1), []).append(k)
        result = [np.ones(())] * len(scopes)
        for i, p in self.joints():
            for k in homes.get(i, ()):
                result[k] = summed_to(p, self.scopes[i], scopes[k])
        return result

    def best(self) -> dict[int, int]:
        """The maximised variables at the maximum."""
        chosen: dict[int, int] = {}
        for i in range(len(self.scopes) - 1, self.n_summed - 1, -1):
            v = self.scopes[i][-1]
            logs = np.zeros(int(self.sizes[v]))
            for _, (scope, values) in self._joined[i]:
                logs = logs + values[0][tuple(slice(None) if u == v else chosen[u] for u in scope)]
            chosen[v] = int(np.argmax(logs))
        return chosen

    def draws(self, n: int, rng: np.random.Generator) -> dict[int, Ints]:
        """Draws of all variables from the normalised product, all having been summed out."""
        drawn: dict[int, Ints] = {}
        for i in range(len(self.scopes) - 1, -1, -1):
            *known, v = self.scopes[i]
            logs = self.product(i)[0][tuple(drawn[u] for u in known)]
            given = np.broadcast_to(logs, (n, logs.shape[-1]))
            weight = np.exp(given - given.max(axis=1, keepdims=True)).cumsum(axis=1)
            at = (rng.random((n, 1)) * weight[:, -1:] >= weight).sum(axis=1)
            drawn[v] = np.minimum(at, logs.shape[-1] - 1)
        return drawn

    def _check(self, scope: Sequence[int], n_rows: int) -> None:
        cells, limit = n_rows * n_cells(scope, self.sizes), MAX_CELLS if n_rows == 1 else MAX_CELLS // 2
        if cells > limit:
            raise TooLarge(
                f"a product of {len(scope)} variables needs a table of {cells:,} cells ({bytes_in_words(8.0 * cells)}), and the "
                f"limit is {limit:,}: observe more variables, ask for fewer, or draw the answer with {BY_WEIGHTING}"
            )


def summed_to(table: Array, scope: Sequence[int], kept: Sequence[int]) -> Array:
    """A table over a scope summed over all but some of its variables, with the axes in the order of these."""
    left = [u for u in scope if u in kept]
    summed = table.sum(axis=tuple(a for a, u in enumerate(scope) if u not in kept))
    return np.asarray(summed.transpose([left.index(u) for u in kept]))


def _product(factors: Iterable[LogFactor], scope: Sequence[int], sizes: Ints) -> Array:
    """Small tables are multiplied before larger ones take them up."""
    parts = sorted((f.over(scope) for f in factors), key=lambda part: math.prod(part.shape[1:]))
    total = np.zeros([1] * (1 + len(scope)))
    for part in parts:
        total = total + part
    return np.broadcast_to(total, (len(total), *(int(sizes[v]) for v in scope)))


def log_joint(factors: Iterable[LogFactor], keep: Collection[int], sizes: Ints) -> Array:
    """ln Σ Π φ over all variables but `keep`: [rows, one axis per variable of `keep`]."""
    pool = list(factors)
    rest = {v for f in pool for v in f.scope}.difference(keep)
    return Elimination(pool, steps((f.scope for f in pool), sizes, (), rest), sizes).joint(tuple(keep))


def factors_at(network: Network, numbers: Iterable[int], codes: Ints, log_tables: Array) -> list[LogFactor]:
    """Some factors at what is observed, for rows that all observe the same variables: `codes` has a line per row."""
    seen, result = codes[0] >= 0, []
    for f in numbers:
        scope = network.scope(f).tolist()
        table = log_tables[network.table_start[f] : network.table_start[f + 1]].reshape(network.sizes[scope])
        free, fixed = [i for i, v in enumerate(scope) if not seen[v]], [i for i, v in enumerate(scope) if seen[v]]
        values = np.transpose(table, [*fixed, *free])
        values = values[tuple(codes[:, scope[i]] for i in fixed)] if fixed else values[None]
        result.append(LogFactor(tuple(scope[i] for i in free), values))
    return result


def log_factors(network: Network, codes: Ints, needed: Sequence[int] = ()) -> list[LogFactor]:
    """The factors of a network at what is observed, for rows that all observe the same variables. `codes` has a line per row.
    Distributions of variables that nothing depends on are left out: neither they nor a child of theirs is observed or
    `needed`."""
    hinted = codes[0].copy()
    hinted[[v for v in needed if hinted[v] < 0]] = HINTED
    part = relevant_part(network, (), network.all_factors, hinted)
    return factors_at(network, np.sort(part.factors), codes, network.log_tables)


def absorb_factors(factors: Iterable[LogFactor]) -> list[LogFactor]:
    """The same product with factors over part of another's variables taken into it."""
    result: list[LogFactor] = []
    for f in sorted(factors, key=lambda f: -len(f.scope)):
        host = next((i for i, g in enumerate(result) if set(f.scope) <= set(g.scope)), None)
        if host is None:
            result.append(f)
        else:
            scope, values = result[host]
            result[host] = LogFactor(scope, values + f.over(scope))
    return result


SMALLEST = 1e-290
"""Products below this lose digits, or vanish."""
SAFE = -300.0
"""An answer whose ln p(evidence) came out above this, all factors at most 1, has lost nothing that matters to underflow."""
NEVER = float("-inf")


class Weighed(NamedTuple):
    """A network whose tables have factors in them, codes that tell of it, and ln of what was divided out of the factors. `logs`
    are those of the tables, where floats do not hold them."""

    network: Network
    tables: Array
    codes: Ints
    log_scale: float = 0.0
    logs: Array | None = None


def likelihood_factors(soft: Soft) -> list[LogFactor]:
    """Likelihood evidence, p(what was seen | state) up to a factor, as factors."""
    with np.errstate(divide="ignore"):
        return [LogFactor((v,), np.log(np.asarray(likelihood, np.float64))[None]) for v, likelihood in soft.items()]


def weigh_factors(network: Network, codes: Ints, factors: Sequence[LogFactor]) -> Weighed:
    """Factors of one variable as part of its table, if no product might vanish; others as factors of a larger network. Unobserved
    variables with changed tables get the code `HINTED`: they matter, even if nothing below them does. Where a factor is 0
    everywhere, the scale is −inf."""
    scale, tables, seen = 0.0, network.tables, codes
    more: list[tuple[tuple[int, ...], Array]] = []
    for scope, values in absorb_factors(factors):
        top = float(values.max())
        scale += top
        if top == NEVER:
            return Weighed(network, tables, seen, NEVER)
        logs = values[0] - top
        fits = len(scope) == 1 and network.own[scope[0]] >= 0
        if fits:  # whether the table of the variable can take in the factor without a product that vanishes
            table = network.table(int(network.own[scope[0]]))
            fits = float(table[table > 0.0].min() * np.exp(logs.min(where=logs > NEVER, initial=0.0))) > SMALLEST
        if fits:
            tables, seen = (tables.copy(), seen.copy()) if tables is network.tables else (tables, seen)
            f = int(network.own[scope[0]])
            tables[network.table_start[f] : network.table_start[f + 1]].reshape(-1, len(logs))[:] *= np.exp(logs)
            seen[scope[0]] = HINTED if seen[scope[0]] < 0 else seen[scope[0]]
        elif scope:
            more.append((scope, logs))
    if not more:
        return Weighed(network, tables, seen, scale)
    wider = network.with_factors((scope, NONE, np.exp(logs)) for scope, logs in more)
    whole = Weighed(wider, np.concatenate([tables, wider.tables[len(tables) :]]), seen, scale)
    if all(np.exp(logs.min(where=logs > NEVER, initial=0.0)) > SMALLEST for _, logs in more):
        return whole
    with np.errstate(divide="ignore"):
        kept = np.log(tables)
    return whole._replace(logs=np.concatenate([kept, *(logs.reshape(-1) for _, logs in more)]))
