"""Rows with a hidden class: what the class of a row, and its missing cells, are expected to be; and the parts that say what
classes are like, those of finite columns and counts.

    p(row) = Σ_k w_k Π_parts p(columns of the part | class k)         r_k(row) = w_k p(row | k) / p(row)

They are one more kind of components: parameters in, statistics that add and ln p out. Rows are passed over in each expectation,
a few at a time. A part is columns that have one distribution together in each class, with its parameters, arrays that have the
classes on their first axis, and what the prior imagines of its columns.

    add_log_probs(…)        adds ln p(columns | class) of a few rows to an array, one row per class, and returns what it used
    gather(memory, r)       the statistic of these rows weighted by responsibilities r: an array, or a tuple of them, that adds
    maximise(s)             the part with the parameters that the statistic, gathered under its own, and the prior give
    log_prior()             the logarithm that this maximises besides the expected log-likelihood
    with_parameters(…)      the part with the parameters of a start: means and covariances of its columns, or tables and rates
    cpds(…)                 each column's distribution given the class and, where they are together, the columns before it

`block_rows` are the rows that it should be asked about at once, at most. Finite columns and counts are products of matrices,
ln p = c(θ) · h with the statistic r · hᵀ: for tables h are indicators of states and c = ln θ, for counts h = (x, 1) and
c = (ln λ, −λ), less ln x!, which is the same in every class. A missing cell is a column of zeros in h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.variables import Finite, Variable
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, add_up
from suffice.errors import DataError, FitError, Sentence
from suffice.errors.remedies import BY_MEAN
from suffice.families.categorical import Table
from suffice.families.chosen.exponential_node import PoissonRates
from suffice.families.protocol.family import Cpd, Estimate
from suffice.numerics.exponential.dirichlet import shares_of
from suffice.statistics import Counts
from suffice.statistics.counts import log_factorial

LOG_ZERO = -1e200
"""Stands for ln 0, so that 0 · ln 0 is 0 in a product of matrices."""

IMPOSSIBLE = -1e199
"""A sum of logarithms below this has `LOG_ZERO` in it: the probability is 0."""

CELLS = 2**18
"""Numbers of an array of a block of rows: two megabytes, by measurement."""

SMALL = 2**19
"""Multiplications of a product that the BLAS makes in one thread; threads of its own would wait for each other, and for ours."""


def logs(p: Array) -> Array:
    """ln p, with a finite number in place of ln 0."""
    return np.log(p, out=np.full_like(p, LOG_ZERO), where=p > 0.0)


class ClassParameters(NamedTuple):
    """The weights of the classes, and the parts."""

    weights: Array
    parts: tuple[Any, ...]

    def permute(self, order: Sequence[int]) -> ClassParameters:
        """The same, the classes in another order."""
        return ClassParameters(self.weights[list(order)], tuple(part.permute(order) for part in self.parts))


class ClassSums(NamedTuple):
    """Sums over rows: ln p(rows), ln p(rows, most probable classes) − ln p(rows), weights of classes, the parts' statistics."""

    log_likelihood: float
    hard: float
    counts: Array
    parts: tuple[Any, ...]


class ImpossibleRow(DataError):
    """A row that no class can have, by the number of its block and its place there."""

    def to_error(self, data: Data) -> DataError:
        """The same for a person."""
        why = "has the probability 0 in every class: a state or count there was never seen in any class; use a prior"
        return DataError(f"{data.place(*self.args)} {why}")


@dataclass(frozen=True, eq=False)
class ScoredClasses:
    """The parts and weights of classes in a pass over rows. `label` is a column that shows the class of some rows."""

    parts: tuple[Any, ...]
    log_weights: Array
    label: str | None = None

    @classmethod
    def of(cls, theta: ClassParameters, label: str | None = None) -> ScoredClasses:
        """What parts find out about their parameters is kept with copies of them, and goes with the pass."""
        return cls(tuple(replace(part) for part in theta.parts), logs(theta.weights)[:, None], label)

    def log_joint(self, block: Block) -> Iterator[tuple[slice, Array, list[Any]]]:
        """Of a few rows at a time: ln w_k p(row | k), one row per class, and what the parts remember."""
        size = int(np.clip(min(part.block_rows for part in self.parts), 64, 8192))
        for start in range(0, block.n_rows, size):
            rows = slice(start, min(start + size, block.n_rows))
            log_probs = np.repeat(self.log_weights, rows.stop - start, axis=1)
            memory = [part.add_log_probs(block, rows, log_probs) for part in self.parts]
            if self.label is not None:
                own = block.columns[self.label][rows]
                log_probs[(own < len(log_probs)) & (np.arange(len(log_probs))[:, None] != own)] = -np.inf
            yield rows, log_probs, memory


@dataclass(frozen=True, eq=False)
class ExpectedClasses(Step[ClassSums]):
    """The E-step; or the sums that other responsibilities give, class × row of a block, by a function that pickles."""

    classes: ScoredClasses
    responsibilities: Callable[[Block], Array] | None = None

    def of(self, block: Block) -> ClassSums:
        total, given = None, None if self.responsibilities is None else self.responsibilities(block)
        for rows, log_probs, memory in self.classes.log_joint(block):
            top, sums = softmax(log_probs)
            log_sums, weight = np.log(sums), None if block.weight is None else block.weight[rows]
            counted = top if weight is None else np.where(weight > 0, top, 0.0)
            if counted.min() < IMPOSSIBLE:
                raise ImpossibleRow(block.number, rows.start + int(np.argmin(counted)))
            if given is not None:
                log_probs[:] = given[:, rows]
            if weight is not None:
                log_probs *= weight
            pairs = zip(self.classes.parts, memory, strict=True)
            parts = tuple(part.gather(m, log_probs) for part, m in pairs)
            one = ClassSums(_dot(top + log_sums, weight), -_dot(log_sums, weight), log_probs.sum(axis=1), parts)
            total = one if total is None else add_up(total, one)
        return total  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class ClassPosterior:
    """p(class | row) of the rows of a block, row × class, and ln p(row); −inf where a row is impossible, unless refused."""

    classes: ScoredClasses
    counts: tuple[str, ...] = ()
    refuse: bool = False

    def __call__(self, block: Block) -> tuple[Array, Array]:
        r, log_p = np.empty((block.n_rows, len(self.classes.log_weights))), np.empty(block.n_rows)
        for rows, log_probs, _ in self.classes.log_joint(block):
            top, sums = softmax(log_probs)
            if self.refuse and top.min() < IMPOSSIBLE:
                raise ImpossibleRow(block.number, rows.start + int(np.argmin(top)))
            r[rows], log_p[rows] = log_probs.T, np.where(top < IMPOSSIBLE, -np.inf, top + np.log(sums))
        for name in self.counts:
            log_p -= log_factorial(np.nan_to_num(block.columns[name]))
        return r, log_p


@dataclass(frozen=True, eq=False)
class ClassLogLikelihood(Step[float]):
    """Σ ln p(row), −inf where a row is impossible."""

    posterior: ClassPosterior

    def of(self, block: Block) -> float:
        log_p, some = self.posterior(block)[1], block.weights > 0.0
        return float((log_p[some] * block.weights[some]).sum())


@dataclass(frozen=True, eq=False)
class ClassComponents:
    """Rows with a hidden class, as components (`suffice.incomplete.components`) whose rows each expectation passes over. `base`
    is Σ −ln x! of the counts; `label` a column that shows the class of some rows."""

    data: Data
    base: float
    label: str | None = None
    threads: int | None = None

    def expect(self, theta: ClassParameters, given: Callable[[Block], Array] | None = None) -> ClassSums:
        """What all rows are expected to count, or do with the responsibilities that are given, and their ln p. Rows that are
        impossible under the parameters are refused."""
        try:
            step = ExpectedClasses(ScoredClasses.of(theta, self.label if given is None else None), given)
            sums = self.data.fold(step, threads=self.threads)
        except ImpossibleRow as error:
            raise error.to_error(self.data) from None
        return sums._replace(log_likelihood=sums.log_likelihood + self.base)


def softmax(log_probs: Array) -> tuple[Array, Array]:
    """Turn ln p(k, row), one row per class, into p(k | row) in place; the largest ln p of each row, and Σ p over it."""
    top = log_probs.max(axis=0)
    log_probs -= top
    np.exp(log_probs, out=log_probs)
    sums = log_probs.sum(axis=0)
    log_probs /= sums
    return top, sums


def _dot(x: Array, weight: Array | None) -> float:
    return float(x.sum() if weight is None else x @ weight)


class CollapsedClass(Sentence):
    """A class has shrunk to a point, a line or nothing: its likelihood has no maximum. Says what has happened."""


def shares(counts: Array, alpha: Array | None, how: Estimate, name: str) -> Array:
    """The table, child on the last axis, that counts and imagined counts give; a row without either is uniform."""
    weights = counts if alpha is None else counts + alpha
    if alpha is not None:
        weights = weights - how.less
        if np.any(weights < 0.0):
            raise FitError(f"the posterior of {name!r} has no mode: use {BY_MEAN} or a stronger prior")
    return shares_of(weights)


def log_shares(p: Array, alpha: Array | None, how: Estimate) -> float:
    """Σ α ln p for posterior means, Σ (α − 1) ln p for modes."""
    return 0.0 if alpha is None else _log_powers(p, alpha - how.less)


def _log_powers(p: Array, power: Array) -> float:
    return float((power * np.log(p, out=np.zeros_like(p), where=power != 0.0)).sum())


@dataclass(frozen=True, eq=False)
class MixturePart:
    """Columns with their parameters; `arrays` are those that have the classes on their first axis."""

    names: tuple[str, ...]

    arrays: ClassVar[tuple[str, ...]]

    def permute(self, order: Sequence[int]) -> Self:
        """The same, the classes in another order."""
        return replace(self, **{name: getattr(self, name)[list(order)] for name in self.arrays})


@dataclass(frozen=True, eq=False)
class LinearPart(MixturePart):
    """ln p = c · h. Parameters: class × state, or class × count."""

    table: Array

    arrays: ClassVar = ("table",)

    def gather(self, memory: Array, responsibilities: Array) -> Array:
        return np.asarray(responsibilities @ memory.T)


@dataclass(frozen=True, eq=False)
class TablesPart(LinearPart):
    """Finite columns of so many states, with a table in each class: those of all of them one after the other. `alpha` are the
    imagined counts of each."""

    sizes: tuple[int, ...]
    how: Estimate
    alpha: tuple[Array | None, ...]

    @property
    def block_rows(self) -> int:
        return CELLS // int(max(self.table.shape))

    def split(self, table: Array) -> list[Array]:
        """The part of each column."""
        return np.split(table, np.cumsum(self.sizes)[:-1], axis=1)

    @cached_property
    def _coefficients(self) -> Array:
        return logs(self.table)

    def add_log_probs(self, block: Block, rows: slice, log_probs: Array) -> Array:
        n = log_probs.shape[1]
        h, each = np.zeros((self.table.shape[1], n)), np.arange(n)
        for name, size, offset in zip(self.names, self.sizes, np.cumsum((0, *self.sizes)), strict=False):
            codes, seen = block.columns[name][rows].astype(np.intp), each
            if codes.max() >= size:
                seen = np.flatnonzero(codes < size)
                codes = codes[seen]
            h[codes + offset, seen] = 1.0
        log_probs += self._coefficients @ h
        return h

    @property
    def n_parameters(self) -> int:
        return len(self.table) * sum(size - 1 for size in self.sizes)

    def maximise(self, statistic: Array) -> TablesPart:
        parts = zip(self.split(statistic), self.alpha, self.names, strict=True)
        return replace(self, table=np.concatenate([shares(N, alpha, self.how, name) for N, alpha, name in parts], axis=1))

    def log_prior(self) -> float:
        return sum(log_shares(p, alpha, self.how) for p, alpha in zip(self.split(self.table), self.alpha, strict=True))

    def with_parameters(self, means: Array, covariances: Array, tables: Mapping[str, Array]) -> TablesPart:
        return replace(self, table=np.concatenate([tables[n] for n in self.names], axis=1))

    def cpds(self, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        pairs: Any = zip((variables[n] for n in self.names), self.split(self.table), strict=True)
        return {v.name: Table(v, (hidden,), p, Counts((hidden, v), counts[:, None] * p)) for v, p in pairs}


@dataclass(frozen=True, eq=False)
class RatesPart(LinearPart):
    """Counts with a Poisson rate in each class; `overall`: of all rows; `imagined`: events and rows of a Gamma prior, by
    column."""

    how: Estimate
    overall: Array
    imagined: tuple[Array, Array]

    @property
    def block_rows(self) -> int:
        return CELLS // sum(self.table.shape)

    @cached_property
    def _coefficients(self) -> Array:
        return np.concatenate([logs(self.table), -self.table], axis=1)

    def add_log_probs(self, block: Block, rows: slice, log_probs: Array) -> Array:
        h, d = np.ones((2 * len(self.names), log_probs.shape[1])), len(self.names)
        for j, name in enumerate(self.names):
            h[j] = block.columns[name][rows]
        lost = np.isnan(h[:d])
        if lost.any():
            h[d:][lost] = h[:d][lost] = 0.0
        log_probs += self._coefficients @ h
        return h

    @property
    def n_parameters(self) -> int:
        return self.table.size

    def maximise(self, statistic: Array) -> RatesPart:
        d = len(self.names)
        events, N = statistic[:, :d] + self._power(), statistic[:, d:] + self.imagined[1]
        if np.any(events < 0.0):
            name = self.names[int(np.argmin(events.min(axis=0)))]
            raise FitError(f"the posterior of the rate of {name!r} has no mode: use {BY_MEAN} or a Gamma of a larger shape")
        return replace(self, table=np.divide(events, N, out=np.tile(self.overall, (len(N), 1)), where=N > 0.0))

    def _power(self) -> Array:
        """a − 1 for modes, a for means, 0 without a prior."""
        shape, rows = self.imagined
        return np.where(rows > 0.0, shape - self.how.less, 0.0)

    def log_prior(self) -> float:
        """Σ a ln λ − b λ for posterior means, Σ (a − 1) ln λ − b λ for modes."""
        powers = np.broadcast_to(self._power(), self.table.shape)
        return _log_powers(self.table, powers) - float((self.imagined[1] * self.table).sum())

    def with_parameters(self, means: Array, covariances: Array, tables: Mapping[str, Array]) -> RatesPart:
        return replace(self, table=np.stack([tables[n] for n in self.names], axis=1))

    def cpds(self, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        return {n: PoissonRates(variables[n], (hidden,), self.table[:, j]) for j, n in enumerate(self.names)}
