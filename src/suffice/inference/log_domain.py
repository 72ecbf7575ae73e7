"""Factors as logarithms, and finite networks with such factors for many rows of evidence at once, whose factors differ.

A density of real evidence can differ by factors like e^±10000 between configurations of the finite variables, and another
one can differ the other way: in plain numbers the product would be zero everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from suffice.errors import TooLarge, bytes_in_words
from suffice.inference.logs import log_sum
from suffice.inference.network import NONE, Array, Ints, Network

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
