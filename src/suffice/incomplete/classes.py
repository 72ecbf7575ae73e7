"""Rows with a hidden class: what the class of a row, and its missing cells, are expected to be.

    p(row) = Σ_k w_k Π_parts p(columns of the part | class k)         r_k(row) = w_k p(row | k) / p(row)

They are one more kind of components: parameters in, statistics that add and ln p out. The statistics are those of the parts
(`suffice.incomplete.class_parts`), weighted by r; rows are passed over in each expectation, a few at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, added
from suffice.engines.gather import log_base
from suffice.errors import DataError
from suffice.incomplete.class_parts import logs
from suffice.incomplete.patterns import Array

IMPOSSIBLE = -1e199
"""A sum of logarithms below this has `LOG_ZERO` in it: the probability is 0."""


class ClassParameters(NamedTuple):
    """The weights of the classes, and the parts."""

    weights: Array
    parts: tuple[Any, ...]

    def permuted(self, order: Sequence[int]) -> ClassParameters:
        """The same, the classes in another order."""
        return ClassParameters(self.weights[list(order)], tuple(part.permuted(order) for part in self.parts))


class ClassSums(NamedTuple):
    """What a pass over the rows adds up: ln p(rows), ln p(rows, most probable classes) − ln p(rows), the weight of each class,
    and the parts' statistics."""

    log_likelihood: float
    hard: float
    counts: Array
    parts: tuple[Any, ...]


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
class ScoredClasses:
    """The parts and weights of classes in a pass over rows. `label` is a column that shows the class of some rows."""

    parts: tuple[Any, ...]
    log_weights: Array
    label: str | None = None

    @classmethod
    def of(cls, theta: ClassParameters, label: str | None = None) -> ScoredClasses:
        """What parts find out about their parameters is kept with copies of them, and goes with the pass."""
        return cls(tuple(replace(part) for part in theta.parts), logs(theta.weights)[:, None], label)

    def scored(self, block: Block) -> Iterator[tuple[slice, Array, list[Any]]]:
        """Of a few rows at a time: ln w_k p(row | k), one row per class, and what the parts remember."""
        size = int(np.clip(min(part.block_rows for part in self.parts), 64, 8192))
        for start in range(0, block.n_rows, size):
            rows = slice(start, min(start + size, block.n_rows))
            log_probs = np.repeat(self.log_weights, rows.stop - start, axis=1)
            memory = [part.scored(block, rows, log_probs) for part in self.parts]
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
            one = ClassSums(_dot(top + log_sums, weight), -_dot(log_sums, weight), log_probs.sum(axis=1), parts)
            total = one if total is None else added(total, one)
        return total  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class ClassPosterior:
    """p(class | row) of the rows of a block, row × class, and ln p(row); −inf where a row is impossible, unless refused."""

    classes: ScoredClasses
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
            log_p -= log_base(np.nan_to_num(block.columns[name]), 1.0)
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
    """Rows with a hidden class, as components (`suffice.incomplete.components`) whose rows each expectation passes over.

    `base` is Σ −ln x! of the counts; `label` a column that shows the class of some rows.
    """

    data: Data
    base: float
    label: str | None = None
    threads: int | None = None

    def expected(self, theta: ClassParameters) -> ClassSums:
        """What all rows are expected to count, and their ln p. Rows that are impossible under the parameters are refused."""
        try:
            sums = self.data.fold(ExpectedClasses(ScoredClasses.of(theta, self.label)), threads=self.threads)
        except ImpossibleRow as error:
            raise error.with_place(self.data) from None
        return sums._replace(log_likelihood=sums.log_likelihood + self.base)

    def counted(self, theta: ClassParameters, responsibilities: Callable[[Block], Array]) -> ClassSums:
        """What the rows count with these responsibilities, around these parameters."""
        return self.data.fold(ExpectedClasses(ScoredClasses.of(theta), responsibilities), threads=self.threads)


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
