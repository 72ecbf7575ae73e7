"""Factors as logarithms: likelihoods of states and densities of real evidence, multiplied into a network.

A density of real evidence can differ by factors like e^±10000 between configurations of the finite variables, and another
one can differ the other way: in plain numbers the product would be zero everywhere. So factors are scaled to at most 1, and
where floats would not hold them all the same, their logs are kept for `logs`; rows whose factors differ are worked on in logs,
many at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from suffice.errors import TooLarge, bytes_in_words
from suffice.inference.logs import log_sum
from suffice.inference.network import HINTED, NONE, Array, Ints, Network, Soft

MAX_CELLS = 2**26
"""No table has more cells than this, rows included."""


class LogFactor(NamedTuple):
    """ln φ(scope) for each row of evidence, [rows, one axis per variable]; a single row stands for all."""

    scope: tuple[int, ...]
    values: Array

    def over(self, scope: Sequence[int]) -> Array:
        """The values with the axes in the order of a larger scope, those of other variables of length 1."""
        own = [v for v in scope if v in self.scope]
        ordered = np.transpose(self.values, [0, *(1 + self.scope.index(v) for v in own)])
        return ordered.reshape([len(ordered), *(ordered.shape[1 + own.index(v)] if v in own else 1 for v in scope)])


def log_factors(network: Network, codes: Ints, needed: Iterable[int] = ()) -> list[LogFactor]:
    """The factors of a network at what is observed, for rows that all observe the same variables.

    `codes` has a line per row. Distributions of variables that nothing depends on are left out: neither they nor a child
    of theirs is observed or `needed`.
    """
    seen = codes[0] >= 0
    relevant = _ancestors(network, [*np.flatnonzero(seen).tolist(), *needed])
    with np.errstate(divide="ignore"):
        return [
            _at_rows(tuple(scope.tolist()), np.log(table), codes, seen)
            for scope, child, table in network.factors()
            if child == NONE or relevant[child]
        ]


def log_joint(factors: Iterable[LogFactor], keep: Sequence[int], sizes: Ints) -> Array:
    """ln Σ Π φ over all variables but `keep`: [rows, one axis per variable of `keep`].

    >>> a, b = np.log([[0.25, 0.75]]), np.log([[[0.5, 0.5], [0.1, 0.9]]])
    >>> np.exp(log_joint([LogFactor((0,), a), LogFactor((0, 1), b)], [1], np.array([2, 2])))
    array([[0.2, 0.8]])
    """
    pool = list(factors)
    rest = {v for f in pool for v in f.scope} - set(keep)
    return _product(_eliminated(pool, rest, sizes), tuple(keep), sizes)


def absorbed(factors: Iterable[LogFactor]) -> list[LogFactor]:
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


def _eliminated(pool: list[LogFactor], rest: set[int], sizes: Ints) -> list[LogFactor]:
    """What is left of the factors when all of `rest` are summed out, the cheapest first."""
    around: dict[int, set[int]] = {v: {v} for v in rest}
    for f in pool:
        for v in rest.intersection(f.scope):
            around[v].update(f.scope)
    while around:
        v = min(around, key=lambda v: (_cells(around[v], sizes), v))
        scope = (*sorted(around.pop(v) - {v}), v)
        table = _product([f for f in pool if v in f.scope], scope, sizes)
        pool = [f for f in pool if v not in f.scope]
        pool.append(LogFactor(scope[:-1], log_sum(table, (table.ndim - 1,))))
        for u in around.keys() & set(scope):
            around[u] = around[u].union(scope) - {v}
    return pool


def _product(factors: Iterable[LogFactor], scope: tuple[int, ...], sizes: Ints) -> Array:
    parts = [f.over(scope) for f in factors]
    cells = max((len(p) for p in parts), default=1) * _cells(scope, sizes)
    if cells > MAX_CELLS:
        raise TooLarge(
            f"the finite part of this question needs a table of {cells:,} cells ({bytes_in_words(8.0 * cells)}); the limit is "
            f"{MAX_CELLS:,}: observe more, or draw the answer with method=LikelihoodWeighting()"
        )
    total = np.zeros([1, *(int(sizes[v]) for v in scope)])
    for part in parts:
        total = total + part
    return total


def _cells(scope: Iterable[int], sizes: Ints) -> int:
    return math.prod(int(sizes[v]) for v in scope)


def _at_rows(scope: tuple[int, ...], table: Array, codes: Ints, seen: Ints) -> LogFactor:
    free, fixed = [i for i, v in enumerate(scope) if not seen[v]], [i for i, v in enumerate(scope) if seen[v]]
    values = np.transpose(table, [*fixed, *free])
    index = tuple(codes[:, scope[i]] for i in fixed)
    return LogFactor(tuple(scope[i] for i in free), values[index] if fixed else values[None])


def _ancestors(network: Network, numbers: Iterable[int]) -> Ints:
    parents = {int(network.child[f]): network.scope(f) for f in range(network.n_factors) if network.child[f] != NONE}
    found, stack = np.zeros(network.n_variables, bool), list(numbers)
    while stack:
        v = stack.pop()
        if not found[v]:
            found[v] = True
            stack += [int(u) for u in parents.get(v, ()) if not found[u]]
    return found


SMALLEST = 1e-290
"""Products below this lose digits, or vanish."""

SAFE = -300.0
"""An answer whose ln p(evidence) came out above this, all factors at most 1, has lost nothing that matters to underflow."""

NEVER = float("-inf")


class Weighed(NamedTuple):
    """A network whose tables have factors in them, codes that tell of it, and ln of what was divided out of the factors.

    `logs` are those of the tables, where floats do not hold them.
    """

    network: Network
    tables: Array
    codes: Ints
    log_scale: float
    logs: Array | None = None

    def is_sure(self, log_prob: float) -> bool:
        """Whether what underflowed cannot matter to an answer with this ln p(evidence)."""
        return self.logs is None or log_prob > SAFE

    @property
    def log_tables(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.tables) if self.logs is None else self.logs


def likelihood_factors(soft: Soft) -> list[LogFactor]:
    """Likelihood evidence, p(what was seen | state) up to a factor, as factors."""
    if not soft:
        return []
    with np.errstate(divide="ignore"):
        return [LogFactor((v,), np.log(np.asarray(likelihood, np.float64))[None]) for v, likelihood in soft.items()]


def weighed(network: Network, codes: Ints, factors: Sequence[LogFactor]) -> Weighed:
    """Factors of one variable as part of its table, if no product might vanish; others as factors of a larger network.

    Unobserved variables with changed tables get the code `HINTED`: they matter, even if nothing below them does. Where a factor
    is 0 everywhere, the scale is −inf.

    >>> net = Network.of([2], [((0,), 0, np.array([0.25, 0.75]))])
    >>> weighed(net, np.array([-1]), likelihood_factors({0: np.array([0.5, 0.1])})).tables
    array([0.25, 0.15])
    """
    scale, tables, seen = 0.0, network.tables, codes
    if not factors:
        return Weighed(network, tables, seen, scale)
    more: list[tuple[tuple[int, ...], Array]] = []
    for scope, values in absorbed(factors):
        top = float(values.max())
        scale += top
        if top == NEVER:
            return Weighed(network, tables, seen, NEVER)
        logs = values[0] - top
        if len(scope) == 1 and _fits(network, scope[0], logs):
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
    kept = whole.log_tables[: len(tables)]
    return whole._replace(logs=np.concatenate([kept, *(logs.reshape(-1) for _, logs in more)]))


def _fits(network: Network, v: int, logs: Array) -> bool:
    """Whether the table of a variable can take in a factor without a product that vanishes."""
    if network.own[v] < 0:
        return False
    table = network.table(int(network.own[v]))
    return float(table[table > 0.0].min() * np.exp(logs.min(where=logs > NEVER, initial=0.0))) > SMALLEST
