"""Parts of a mixture: columns that have one distribution together in each class; given the class, the parts are independent.

A part knows its columns, what is fixed about them, and what the prior imagines. Its parameters θ, which it does not hold, are a
named tuple of arrays, class by class on the first axis. A learner runs it as

    prepared(θ)            what one pass over the rows needs of the parameters
    scored(prepared, …)    adds ln p(columns | class) of some rows to an array, one row per class, and remembers what it used
    gathered(memory, r)    the statistic of these rows weighted by responsibilities r: an array, or a tuple of them, that adds
    maximised(θ, s)        the parameters that the statistic and the prior give; θ are those under which it was gathered

Here are finite columns with a table, and counts with a Poisson rate, in each class; given the class they are independent. Both
are products of matrices, ln p = c(θ) · h with the statistic r · hᵀ: for tables h are indicators of states and c = ln θ, for
counts h = (x, 1) and c = (ln λ, −λ), less ln x!, which is the same in every class. A missing cell is a column of zeros in h.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from suffice.engines.engine import Block
from suffice.errors import FitError
from suffice.families.categorical import Table
from suffice.families.family import Array, Cpd, Estimate, Mode
from suffice.families.poisson import PoissonRates
from suffice.statistics import Counts
from suffice.variables import Finite, Variable

LOG_ZERO = -1e200
"""Stands for ln 0, so that 0 · ln 0 is 0 in a product of matrices. Sums below `IMPOSSIBLE` are of probability 0."""

IMPOSSIBLE = -1e199

CELLS = 2**18
"""Numbers of an array of a block of rows: two megabytes, by measurement."""


class CollapsedClass(Exception):
    """A class has shrunk to a point, a line or nothing: its likelihood has no maximum. Says what has happened."""


class Part(Protocol):
    """What a part must be able to do."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def n_parameters(self) -> int: ...
    @property
    def block_rows(self) -> int:
        """The rows that a block should have for this part at most."""

    def blank(self) -> Any:
        """Parameters that are the same in every class, around which first statistics are gathered."""

    def prepared(self, theta: Any) -> Any: ...
    def scored(self, prepared: Any, block: Block, rows: slice, log_probs: Array) -> Any: ...
    def gathered(self, memory: Any, responsibilities: Array) -> Any: ...
    def maximised(self, theta: Any, statistic: Any) -> Any: ...
    def log_prior(self, theta: Any) -> float: ...
    def narrowness(self, theta: Any) -> float:
        """The largest ratio of a column's deviation to what is left of it in a class: as many digits of ln p are lost."""

    def taken(self, means: Array, covariances: Array, tables: Mapping[str, Array]) -> Any:
        """The parameters that a start gives: means and covariances of the part's columns, or what each has in each class."""

    def cpds(self, theta: Any, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        """Each column's distribution given the hidden class and, where they are together, the columns before it."""


class Entries(NamedTuple):
    """Class × state, or class × count."""

    table: Array


def logs(p: Array) -> Array:
    """ln p, with a finite number in place of ln 0."""
    return np.log(p, out=np.full_like(p, LOG_ZERO), where=p > 0.0)


def shares(counts: Array, alpha: Array | None, how: Estimate, name: str) -> Array:
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
    return 0.0 if alpha is None else _log_powers(p, alpha - 1.0 if isinstance(how, Mode) else alpha)


def _log_powers(p: Array, power: Array) -> float:
    return float((power * np.log(p, out=np.zeros_like(p), where=power != 0.0)).sum())


def log_factorials(x: Array) -> Array:
    """ln x!, 0 where x is missing."""
    from scipy.special import gammaln

    return np.asarray(np.nan_to_num(gammaln(x + 1.0), nan=0.0))


class _Linear:
    """ln p = c · h."""

    def gathered(self, memory: Array, responsibilities: Array) -> Array:
        return np.asarray(responsibilities @ memory.T)

    def narrowness(self, theta: Entries) -> float:
        return 0.0


@dataclass(frozen=True, eq=False)
class Tables(_Linear):
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

    def _split(self, table: Array) -> list[Array]:
        return [table[:, a:b] for a, b in pairwise(self.ends)]

    def blank(self) -> Entries:
        return Entries(np.concatenate([np.full((self.n_classes, v.n_states), 1.0 / v.n_states) for v in self.variables], axis=1))

    def prepared(self, theta: Entries) -> Array:
        return logs(theta.table)

    def scored(self, prepared: Array, block: Block, rows: slice, log_probs: Array) -> Array:
        n = log_probs.shape[1]
        h, each = np.zeros((prepared.shape[1], n)), np.arange(n)
        for v, offset in zip(self.variables, self.ends, strict=False):
            codes = block.columns[v.name][rows].astype(np.intp)
            if self.incomplete:
                seen = np.flatnonzero(codes < v.n_states)
                h[codes[seen] + offset, seen] = 1.0
            else:
                h[codes + offset, each] = 1.0
        log_probs += prepared @ h
        return h

    def maximised(self, theta: Entries, statistic: Array) -> Entries:
        parts = zip(self._split(statistic), self.alpha, self.names, strict=True)
        return Entries(np.concatenate([shares(N, alpha, self.how, name) for N, alpha, name in parts], axis=1))

    def log_prior(self, theta: Entries) -> float:
        return sum(log_shares(p, alpha, self.how) for p, alpha in zip(self._split(theta.table), self.alpha, strict=True))

    def taken(self, means: Array, covariances: Array, tables: Mapping[str, Array]) -> Entries:
        return Entries(np.concatenate([tables[n] for n in self.names], axis=1))

    def cpds(self, theta: Entries, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        pairs = zip(self.variables, self._split(theta.table), strict=True)
        return {v.name: Table(v, (hidden,), p, Counts((hidden, v), counts[:, None] * p)) for v, p in pairs}


@dataclass(frozen=True, eq=False)
class Rates(_Linear):
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

    def blank(self) -> Entries:
        return Entries(np.tile(self.overall, (self.n_classes, 1)))

    def prepared(self, theta: Entries) -> Array:
        return np.concatenate([logs(theta.table), -theta.table], axis=1)

    def scored(self, prepared: Array, block: Block, rows: slice, log_probs: Array) -> Array:
        h, d = np.ones((2 * len(self.names), log_probs.shape[1])), len(self.names)
        for j, name in enumerate(self.names):
            h[j] = block.columns[name][rows]
        if self.incomplete:
            np.copyto(h[d:], 0.0, where=np.isnan(h[:d]))
            np.nan_to_num(h[:d], copy=False, nan=0.0)
        log_probs += prepared @ h
        return h

    def maximised(self, theta: Entries, statistic: Array) -> Entries:
        d = len(self.names)
        events, N = statistic[:, :d] + self._power(), statistic[:, d:] + self.imagined[1]
        if np.any(events < 0.0):
            name = self.names[int(np.argmin(events.min(axis=0)))]
            raise FitError(f"the posterior of the rate of {name!r} has no mode: use estimate=Mean() or a Gamma of a larger shape")
        return Entries(np.divide(events, N, out=self.blank().table, where=N > 0.0))

    def _power(self) -> Array:
        """a − 1 for modes, a for means, 0 without a prior."""
        shape, rows = self.imagined
        return np.where(rows > 0.0, shape - (1.0 if isinstance(self.how, Mode) else 0.0), 0.0)

    def log_prior(self, theta: Entries) -> float:
        """Σ a ln λ − b λ for posterior means, Σ (a − 1) ln λ − b λ for modes."""
        return _log_powers(theta.table, np.broadcast_to(self._power(), theta.table.shape)) - float(
            (self.imagined[1] * theta.table).sum()
        )

    def taken(self, means: Array, covariances: Array, tables: Mapping[str, Array]) -> Entries:
        return Entries(np.stack([tables[n] for n in self.names], axis=1))

    def cpds(self, theta: Entries, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        return {n: PoissonRates(variables[n], (hidden,), theta.table[:, j]) for j, n in enumerate(self.names)}
