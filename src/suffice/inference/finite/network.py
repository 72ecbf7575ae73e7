"""Finite networks as arrays: factors over numbered variables, and what is observed of them. Names and models stay above."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import TopologicalSorter
from itertools import accumulate, chain
from operator import mul
from typing import Any

import numpy as np

from suffice.basis.arrays import Array as Array
from suffice.basis.arrays import Ints as Ints
from suffice.basis.libraries import sc

NONE, HINTED = -1, -2
"""Codes of variables that are not observed; those with the second matter all the same: there is likelihood evidence of them,
or they are asked for. NONE is also the child of a factor that is no distribution."""

NO_VARIANCE = 1e-300
"""The variance of a count of rate 0, which is always 0: a Gaussian node has some."""


@dataclass(frozen=True, eq=False)
class Network:
    """Π φ_f(scope of f) over variables 0 … n−1. Where `child[f]` is a variable, φ_f is p(child | the rest of its scope).

    The scope of factor f is `scopes[scope_start[f]:scope_start[f + 1]]`, in the order of its axes; its numbers are
    `tables[table_start[f]:table_start[f + 1]]`, row by row.

    >>> net = Network.of([2, 2], [((0,), 0, np.array([0.5, 0.5])), ((0, 1), 1, np.array([[1.0, 0.0], [0.5, 0.5]]))])
    >>> net.n_variables, net.n_factors, net.table(1)
    (2, 2, array([[1. , 0. ],
           [0.5, 0.5]]))
    """

    sizes: Ints
    scope_start: Ints
    scopes: Ints
    strides: Ints
    """How far apart neighbouring states of each variable of each scope lie in the factor's table."""
    child: Ints
    own: Ints
    """For each variable the factor whose child it is, −1 if there is none."""
    table_start: Ints
    tables: Array
    all_factors: Ints
    n_variables: int
    n_factors: int

    @classmethod
    def of(cls, sizes: Iterable[int], factors: Iterable[tuple[Any, int, Array]]) -> Network:
        """From sizes and factors (scope, child or `NONE`, table with one axis per variable of the scope)."""
        listed, states = list(factors), np.array(list(sizes), np.int64)
        scopes = [tuple(scope) for scope, _, _ in listed]
        tables = [np.asarray(table, np.float64).reshape(-1) for _, _, table in listed]
        children = np.array([child for _, child, _ in listed], np.int64)
        every, own = np.arange(len(listed)), np.full(len(states), NONE, np.int64)
        own[children[children >= 0]] = every[children >= 0]
        size = states.tolist()
        apart = [accumulate((size[v] for v in scope[:0:-1]), mul, initial=1) if scope else () for scope in scopes]
        return cls(
            sizes=states,
            scope_start=np.cumsum([0, *map(len, scopes)], dtype=np.int64),
            scopes=np.fromiter(chain.from_iterable(scopes), np.int64),
            strides=np.array([step for steps in apart for step in list(steps)[::-1]], np.int64),
            child=children,
            own=own,
            table_start=np.cumsum([0, *map(len, tables)], dtype=np.int64),
            tables=np.concatenate([*tables, np.zeros(0)]),
            all_factors=every,
            n_variables=len(states),
            n_factors=len(listed),
        )

    def scope(self, f: int) -> Ints:
        return self.scopes[self.scope_start[f] : self.scope_start[f + 1]]

    def scopes_of(self, factors: Ints) -> Ints:
        """The variables of some factors, one after the other; those of all are in their order."""
        if len(factors) == self.n_factors:
            return self.scopes
        return np.concatenate([np.zeros(0, np.int64), *(self.scope(f) for f in factors)])

    def table(self, f: int) -> Array:
        return self.tables[self.table_start[f] : self.table_start[f + 1]].reshape(self.sizes[self.scope(f)])

    @cached_property
    def starts(self) -> Ints:
        """Where the states of each variable begin if all are counted in one row, and where they end."""
        return np.cumsum([0, *self.sizes], dtype=np.int64)

    def factors(self) -> list[tuple[Ints, int, Array]]:
        """What `of` takes."""
        return [(self.scope(f), int(self.child[f]), self.table(f)) for f in range(self.n_factors)]

    def with_factors(self, more: Iterable[tuple[Any, int, Array]]) -> Network:
        """The same network with further factors."""
        return Network.of(self.sizes, [*self.factors(), *more])

    @cached_property
    def log_tables(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.tables)

    @cached_property
    def with_zeros(self) -> Ints:
        """The factors by which something is impossible."""
        zeros = np.concatenate([[0], np.cumsum(self.tables == 0.0)])
        return np.flatnonzero(np.diff(zeros[self.table_start])).astype(np.int64)

    @cached_property
    def links(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """What a search for the part that matters follows: `child` and `own`, the variables in an order in which children come
        before their parents, and the factors that each variable v is in: `touches[first[v]:first[v + 1]]`."""
        scopes, at = self.scopes.tolist(), self.scope_start.tolist()
        parents: dict[int, list[int]] = {v: [] for v in range(self.n_variables)}
        for v, f in enumerate(self.own.tolist()):
            if f >= 0:
                parents[v] = [u for u in scopes[at[f] : at[f + 1]] if u != v]
        backwards = np.array([*TopologicalSorter(parents).static_order()][::-1], np.int64)
        touches = np.repeat(self.all_factors, np.diff(self.scope_start))[np.argsort(self.scopes, kind="stable")]
        first = np.cumsum([0, *np.bincount(self.scopes, minlength=self.n_variables)], dtype=np.int64)
        return self.child, self.own, backwards, first, touches

    def no_evidence(self) -> Ints:
        """Codes that observe nothing."""
        return np.full(self.n_variables, NONE, np.int64)


Soft = Mapping[int, Array]
"""Likelihood evidence: for some variables, p(what was seen | state) up to a factor, one number per state."""


def strides(shape: Sequence[int] | Ints) -> list[int]:
    """How far apart neighbouring cells are along each axis."""
    return np.cumprod([1, *shape[:0:-1]], dtype=np.int64)[::-1].tolist() if len(shape) else []


@dataclass(frozen=True, eq=False)
class GaussianNode:
    """p(y | u, x) = Normal(intercept[u] + coefficients[u]·x, variance[u]).

    u are finite variables and x real ones, both by number: `finite_parents` count within the finite network,
    `real_parents` among the Gaussian nodes. Arrays have one axis per finite parent, coefficients one more for x.
    NaN means that a configuration has no parameters.
    """

    finite_parents: tuple[int, ...]
    real_parents: tuple[int, ...]
    intercept: Array
    coefficients: Array
    variance: Array

    @property
    def never_zero(self) -> bool:
        """Whether no value is ruled out by a configuration."""
        return True

    @property
    def complete(self) -> bool:
        """Whether every configuration has parameters, by which every number is possible."""
        return self.never_zero and not any(np.isnan(a).any() for a in (self.intercept, self.coefficients, self.variance))


@dataclass(frozen=True, eq=False)
class CountNode(GaussianNode):
    """p(n | u) = Poisson(rates[u]), u finite variables by number; NaN means that a configuration has no rate.

    An observed count weighs the configurations of its finite parents, and is a constant to its children, as any observed number
    is. One that is not observed is barren, or asked for: then all that is said of it here is its mean and its variance, both λ.
    So a count is a Gaussian node with these moments, but for the probability of its value.
    """

    @classmethod
    def of(cls, finite_parents: tuple[int, ...], rates: Array) -> CountNode:
        return cls(finite_parents, (), rates, np.zeros((*rates.shape, 0)), np.maximum(rates, NO_VARIANCE))

    @property
    def rates(self) -> Array:
        return self.intercept

    @property
    def never_zero(self) -> bool:
        return bool((self.rates > 0.0).all())

    def weight(self, counts: Array, index: Ints) -> tuple[Array, Array]:
        """ln p(counts) in some configurations, [configurations, rows], and the logarithm of the variance that a Gaussian would
        have; NaN where a configuration has no rate."""
        rates = self.rates.reshape(-1)[index][:, None]
        return log_poisson(counts, rates), np.log(np.maximum(rates, NO_VARIANCE))


@dataclass(frozen=True, eq=False)
class DensityNode(CountNode):
    """A number of any distribution whose value is known before: all that is held of p(n | u) is its logarithm at that value.

    It must be observed, or barren.
    """

    @classmethod
    def of(cls, finite_parents: tuple[int, ...], logs: Array) -> DensityNode:
        return cls(finite_parents, (), logs, np.zeros((*logs.shape, 0)), np.ones(logs.shape))

    @property
    def never_zero(self) -> bool:
        return bool((self.intercept > -np.inf).all())

    def weight(self, counts: Array, index: Ints) -> tuple[Array, Array]:
        shape = (len(index), len(counts))
        return np.broadcast_to(self.intercept.reshape(-1)[index][:, None], shape), np.zeros(shape)


@dataclass(frozen=True, eq=False)
class DistributionNode(CountNode):
    """A number of any distribution given finite variables: its means and variances, and ln p of values in some configurations."""

    log_prob: Callable[[Ints, Array], Array]

    @classmethod
    def of(  # type: ignore[override]
        cls, finite_parents: tuple[int, ...], means: Array, variances: Array, log_prob: Callable[[Ints, Array], Array]
    ) -> DistributionNode:
        return cls(finite_parents, (), means, np.zeros((*means.shape, 0)), np.maximum(variances, NO_VARIANCE), log_prob)

    @property
    def never_zero(self) -> bool:
        return bool((self.variance > NO_VARIANCE).all())

    def weight(self, counts: Array, index: Ints) -> tuple[Array, Array]:
        return self.log_prob(index, counts), np.log(self.variance.reshape(-1)[index])[:, None]


def log_poisson(n: Array, rates: Array) -> Array:
    """ln p(n) at a rate λ: n ln λ − λ − ln n!; at the rate 0 only n = 0 is possible."""
    return np.asarray(sc.xlogy(n, rates) - rates - sc.gammaln(n + 1.0))
