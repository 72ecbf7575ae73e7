"""Finite columns with a table, and counts with a Poisson rate, in each class; given the class they are independent.

Both are products of matrices: with h the rows as indicators of states, ln p = ln θ · h and the statistic is r · hᵀ; for counts
ln p = ln λ · x − λ − ln x!, of which ln x! is the same in every class. A missing cell is a row of zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from suffice.engines.engine import Block as Batch
from suffice.errors import FitError
from suffice.families.categorical import Table
from suffice.families.family import Array, Cpd, Estimate, Mode
from suffice.learning.mixture_part import CELLS, LOG_ZERO, Moved
from suffice.statistics import Counts
from suffice.variables import Finite, Variable


def logs(p: Array) -> Array:
    """ln p, with a finite number in place of ln 0."""
    return np.log(p, out=np.full_like(p, LOG_ZERO), where=p > 0.0)


def shares(counts: Array, alpha: Array | float | None, how: Estimate, name: str) -> Array:
    """The table, child on the last axis, that counts and imagined counts give; a row without either is uniform."""
    weights = counts if alpha is None else counts + alpha
    if alpha is not None and isinstance(how, Mode):
        weights = weights - 1.0
        if np.any(weights < 0.0):
            raise FitError(f"the posterior of {name!r} has no mode: use estimate=Mean() or a stronger prior")
    totals = weights.sum(axis=-1, keepdims=True)
    uniform = np.full_like(weights, 1.0 / weights.shape[-1])
    return np.asarray(np.divide(weights, totals, out=uniform, where=totals > 0.0))


def log_shares(p: Array, alpha: Array | None, how: Estimate) -> float:
    """Σ α ln p for posterior means, Σ (α − 1) ln p for modes."""
    if alpha is None:
        return 0.0
    power = alpha - 1.0 if isinstance(how, Mode) else alpha
    return float((power * np.log(p, out=np.zeros_like(p), where=power != 0.0)).sum())


@dataclass(frozen=True, eq=False)
class Tables:
    """Finite columns. θ: one array, class × state, the states of all columns one after the other."""

    variables: tuple[Finite, ...]
    n_classes: int
    incomplete: bool
    alpha: tuple[Array | None, ...]
    how: Estimate

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(v.name for v in self.variables)

    @property
    def n_parameters(self) -> int:
        return self.n_classes * sum(v.n_states - 1 for v in self.variables)

    @property
    def ends(self) -> list[int]:
        return [0, *np.cumsum([v.n_states for v in self.variables]).tolist()]

    @property
    def block_rows(self) -> int:
        return CELLS // max(self.n_classes, self.ends[-1])

    def _split(self, theta: Array) -> list[Array]:
        ends = self.ends
        return [theta[:, a:b] for a, b in pairwise(ends)]

    def blank(self) -> Array:
        return np.concatenate([np.full((self.n_classes, v.n_states), 1.0 / v.n_states) for v in self.variables], axis=1)

    def prepared(self, theta: Array) -> Array:
        return logs(theta)

    def scored(self, prepared: Array, batch: Batch, rows: slice, log_probs: Array) -> Array:
        n = log_probs.shape[1]
        h, each = np.zeros((prepared.shape[1], n)), np.arange(n)
        for v, offset in zip(self.variables, self.ends, strict=False):
            codes = batch.columns[v.name][rows].astype(np.intp)
            if self.incomplete:
                seen = np.flatnonzero(codes < v.n_states)
                h[codes[seen] + offset, seen] = 1.0
            else:
                h[codes + offset, each] = 1.0
        log_probs += prepared @ h
        return h

    def gathered(self, memory: Array, responsibilities: Array) -> tuple[Array]:
        return (responsibilities @ memory.T,)

    def maximised(self, theta: Array, statistic: tuple[Array, ...]) -> Array:
        parts = zip(self._split(statistic[0]), self.alpha, self.names, strict=True)
        return np.concatenate([shares(N, alpha, self.how, name) for N, alpha, name in parts], axis=1)

    def log_prior(self, theta: Array) -> float:
        return sum(log_shares(p, alpha, self.how) for p, alpha in zip(self._split(theta), self.alpha, strict=True))

    def permuted(self, theta: Array, order: Sequence[int]) -> Array:
        return theta[list(order)]

    def named(self, theta: Array) -> Moved:
        return Moved(probs=dict(zip(self.names, self._split(theta), strict=True)))

    def taken(self, given: Moved) -> Array:
        assert given.probs is not None
        return np.concatenate([given.probs[n] for n in self.names], axis=1)

    def cpds(self, theta: Array, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        result: dict[str, Cpd] = {}
        for v, p in zip(self.variables, self._split(theta), strict=True):
            result[v.name] = Table(v, (hidden,), p, Counts((hidden, v), counts[:, None] * p))
        return result


@dataclass(frozen=True, eq=False)
class Rates:
    """Counts. θ: the rates, class × column. `imagined` are the events and the rows of a Gamma prior, by column."""

    names: tuple[str, ...]
    n_classes: int
    overall: Array
    incomplete: bool
    imagined: tuple[Array, Array]
    how: Estimate

    @property
    def n_parameters(self) -> int:
        return self.n_classes * len(self.names)

    @property
    def block_rows(self) -> int:
        return CELLS // (self.n_classes + len(self.names))

    def blank(self) -> Array:
        return np.tile(self.overall, (self.n_classes, 1))

    def prepared(self, theta: Array) -> tuple[Array, Array]:
        return logs(theta), theta

    def scored(self, prepared: tuple[Array, Array], batch: Batch, rows: slice, log_probs: Array) -> tuple[Array, Array | None]:
        x, seen = np.stack([batch.columns[n][rows] for n in self.names]).astype(np.float64), None
        if self.incomplete:
            seen = (~np.isnan(x)).astype(np.float64)
            np.nan_to_num(x, copy=False, nan=0.0)
            log_probs -= prepared[1] @ seen
        else:
            log_probs -= prepared[1].sum(axis=1)[:, None]
        log_probs += prepared[0] @ x
        return x, seen

    def gathered(self, memory: tuple[Array, Array | None], responsibilities: Array) -> tuple[Array, Array]:
        x, seen = memory
        N = responsibilities.sum(axis=1)[:, None] if seen is None else responsibilities @ seen.T
        return responsibilities @ x.T, np.array(np.broadcast_to(N, (self.n_classes, len(self.names))))

    def maximised(self, theta: Array, statistic: tuple[Array, ...]) -> Array:
        events, N = statistic[0] + self._power(), statistic[1] + self.imagined[1]
        if np.any(events < 0.0):
            name = self.names[int(np.argmin(events.min(axis=0)))]
            raise FitError(f"the posterior of the rate of {name!r} has no mode: use estimate=Mean() or a Gamma of a larger shape")
        return np.divide(events, N, out=self.blank(), where=N > 0.0)

    def _power(self) -> Array:
        """a − 1 for modes, a for means, 0 without a prior."""
        shape, rows = self.imagined
        return np.where(rows > 0.0, shape - (1.0 if isinstance(self.how, Mode) else 0.0), 0.0)

    def log_prior(self, theta: Array) -> float:
        """Σ a ln λ − b λ for posterior means, Σ (a − 1) ln λ − b λ for modes."""
        power = np.broadcast_to(self._power(), theta.shape)
        return float((power * np.log(theta, out=np.zeros_like(theta), where=power != 0.0) - self.imagined[1] * theta).sum())

    def permuted(self, theta: Array, order: Sequence[int]) -> Array:
        return theta[list(order)]

    def named(self, theta: Array) -> Moved:
        return Moved(rates={n: theta[:, j] for j, n in enumerate(self.names)})

    def taken(self, given: Moved) -> Array:
        assert given.rates is not None
        return np.stack([given.rates[n] for n in self.names], axis=1)

    def cpds(self, theta: Array, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        from suffice.families.poisson import PoissonRates

        made: Any = PoissonRates
        return {n: made(variables[n], (hidden,), theta[:, j]) for j, n in enumerate(self.names)}
