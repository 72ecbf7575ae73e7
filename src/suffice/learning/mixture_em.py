"""EM of a mixture: p(row) = Σ_k w_k Π_parts p(columns of the part | class k).

E-step   r_k(row) = w_k p(row | k) / p(row), by blocks of rows; the parts gather their statistics weighted by r
M-step   w = (N + α) / Σ, and each part for itself
objective   Σ ln p(row) + the logarithm of the prior that the M-step maximises: it never falls
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from suffice.engines.data import Data, added
from suffice.engines.engine import Block, Step
from suffice.errors import DataError
from suffice.families.categorical import Table
from suffice.families.family import Array, Cpd, Estimate
from suffice.learning.mixture_parts import IMPOSSIBLE, CollapsedClass, Part, log_factorials, log_shares, logs, shares
from suffice.learning.problem import EStep
from suffice.statistics import Counts
from suffice.variables import Finite, Variable


class Parameters(NamedTuple):
    """The weights of the classes, and each part's own parameters."""

    weights: Array
    parts: tuple[Any, ...]


class Sums(NamedTuple):
    """What a pass over the rows adds up: ln p(rows), ln p(rows, most probable classes) − ln p(rows), the weight of each class,
    and the parts' statistics."""

    log_likelihood: float
    hard: float
    counts: Array
    parts: tuple[Any, ...]


class Statistic(NamedTuple):
    """Sums, and the parameters around which they were gathered."""

    sums: Sums
    at: Parameters


class ImpossibleRow(DataError):
    """A row that no class can have, by the number of its block and its place there."""

    def __init__(self, number: int, row: int, place: str = "a row") -> None:
        self.number, self.row, self.place = number, row, place
        super().__init__(
            f"{place} has the probability 0 in every class: a state or count there was never seen in any class; use a prior"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return ImpossibleRow, (self.number, self.row, self.place)

    def with_place(self, data: Data) -> ImpossibleRow:
        """The same, the row named for a person."""
        return ImpossibleRow(self.number, self.row, data.place(self.number, self.row))


@dataclass(frozen=True, eq=False)
class Classes:
    """Parts with their parameters, as a pass over rows needs them. `label` is a column that shows the class of some rows."""

    parts: tuple[Part, ...]
    prepared: tuple[Any, ...]
    log_weights: Array
    label: str | None = None

    @classmethod
    def of(cls, parts: tuple[Part, ...], parameters: Parameters, label: str | None = None) -> Classes:
        prepared = tuple(part.prepared(theta) for part, theta in zip(parts, parameters.parts, strict=True))
        return cls(parts, prepared, logs(parameters.weights)[:, None], label)

    def scored(self, block: Block) -> Iterator[tuple[slice, Array, list[Any]]]:
        """Of a few rows at a time: ln w_k p(row | k), one row per class, and what the parts remember."""
        size = int(np.clip(min(part.block_rows for part in self.parts), 64, 8192))
        for start in range(0, block.n_rows, size):
            rows = slice(start, min(start + size, block.n_rows))
            log_probs = np.repeat(self.log_weights, rows.stop - start, axis=1)
            memory = [part.scored(p, block, rows, log_probs) for part, p in zip(self.parts, self.prepared, strict=True)]
            if self.label is not None:
                own = block.columns[self.label][rows]
                log_probs[(own < len(log_probs)) & (np.arange(len(log_probs))[:, None] != own)] = -np.inf
            yield rows, log_probs, memory


@dataclass(frozen=True, eq=False)
class Expectation(Step[Sums]):
    """The E-step; or the sums that other responsibilities give, class × row of a block, by a function that pickles."""

    classes: Classes
    responsibilities: Callable[[Block], Array] | None = None

    def of(self, block: Block) -> Sums:
        total, given = None, None if self.responsibilities is None else self.responsibilities(block)
        for rows, log_probs, memory in self.classes.scored(block):
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
            parts = tuple(part.gathered(m, log_probs) for part, m in pairs)
            one = Sums(_dot(top + log_sums, weight), -_dot(log_sums, weight), log_probs.sum(axis=1), parts)
            total = one if total is None else added(total, one)
        return total  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Posterior:
    """p(class | row) of the rows of a block, row × class, and ln p(row); −inf where a row is impossible, unless refused."""

    classes: Classes
    counts: tuple[str, ...] = ()
    refuse: bool = False

    def __call__(self, block: Block) -> tuple[Array, Array]:
        r, log_p = np.empty((block.n_rows, len(self.classes.log_weights))), np.empty(block.n_rows)
        for rows, log_probs, _ in self.classes.scored(block):
            top, sums = softmax(log_probs)
            if self.refuse and top.min() < IMPOSSIBLE:
                raise ImpossibleRow(block.number, rows.start + int(np.argmin(top)))
            r[rows], log_p[rows] = log_probs.T, np.where(top < IMPOSSIBLE, -np.inf, top + np.log(sums))
        for name in self.counts:
            log_p -= log_factorials(block.columns[name])
        return r, log_p


@dataclass(frozen=True, eq=False)
class LogLikelihood(Step[float]):
    """Σ ln p(row), −inf where a row is impossible."""

    posterior: Posterior

    def of(self, block: Block) -> float:
        log_p, some = self.posterior(block)[1], block.weights > 0.0
        return float((log_p[some] * block.weights[some]).sum())


@dataclass(frozen=True, eq=False)
class Mixture:
    """Rows and the parts that explain them: what EM climbs on (see `suffice.learning.problem`).

    `base` is Σ −ln x! of the counts, `alpha` imagined rows of each class, `least` the least weight that a class may have.
    """

    data: Data
    parts: tuple[Part, ...]
    n_classes: int
    alpha: Array | None
    how: Estimate
    name: str
    base: float
    least: float
    label: str | None = None
    threads: int | None = None

    @property
    def weight(self) -> float:
        return self.data.weight

    def expected(self, parameters: Parameters) -> EStep:
        try:
            sums = self.data.fold(Expectation(Classes.of(self.parts, parameters, self.label)), threads=self.threads)
        except ImpossibleRow as error:
            raise error.with_place(self.data) from None
        return EStep(Statistic(sums, parameters), sums.log_likelihood + self.base)

    def maximised(self, statistic: Statistic) -> Parameters:
        sums, at = statistic
        if self.alpha is None and sums.counts.min() < self.least:
            raise CollapsedClass("a class has less than one row left")
        weights = shares(sums.counts, self.alpha, self.how, self.name)
        triples = zip(self.parts, at.parts, sums.parts, strict=True)
        return Parameters(weights, tuple(part.maximised(theta, s) for part, theta, s in triples))

    def log_prior(self, parameters: Parameters) -> float:
        parts = sum(part.log_prior(theta) for part, theta in zip(self.parts, parameters.parts, strict=True))
        return log_shares(parameters.weights, self.alpha, self.how) + parts

    def rounding(self, parameters: Parameters) -> float:
        """By how much ln p may be off where the classes are narrow."""
        narrow = (part.narrowness(theta) for part, theta in zip(self.parts, parameters.parts, strict=True))
        return 1e-15 * self.weight * max(narrow)

    def cpds(self, parameters: Parameters, counts: Array, hidden: Finite, variables: Mapping[str, Variable]) -> dict[str, Cpd]:
        """The distribution of the class, and those of the columns given it, from classes of these counts."""
        cpds: dict[str, Cpd] = {hidden.name: Table(hidden, (), parameters.weights, Counts((hidden,), counts))}
        for part, theta in zip(self.parts, parameters.parts, strict=True):
            cpds |= part.cpds(theta, hidden, variables, counts)
        return cpds

    def started(self, responsibilities: Callable[[Block], Array], rows: Data | None = None) -> Parameters:
        """The parameters that responsibilities of the rows, or of a sample, give: a first pass finds the means, around which
        the second gathers."""
        parameters = Parameters(np.full(self.n_classes, 1.0 / self.n_classes), tuple(part.blank() for part in self.parts))
        for _ in range(2):
            step = Expectation(Classes.of(self.parts, parameters), responsibilities)
            sums = (self.data if rows is None else rows).fold(step, threads=self.threads)
            parameters = self.maximised(Statistic(sums, parameters))
        return parameters


def permuted(parameters: Parameters, order: Sequence[int]) -> Parameters:
    """The same, the classes in another order."""
    at = list(order)
    return Parameters(parameters.weights[at], tuple(theta._make(a[at] for a in theta) for theta in parameters.parts))


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
