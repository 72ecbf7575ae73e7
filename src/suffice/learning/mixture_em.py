"""EM of a mixture: p(row) = Σ_k w_k Π_parts p(columns of the part | class k).

E-step   r_k(row) = w_k p(row | k) / p(row), by blocks of rows; the parts gather their statistics weighted by r
M-step   w = (N + α) / Σ, and each part for itself
objective   Σ ln p(row) + the logarithm of the prior that the M-step maximises: it never falls
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from suffice.engines.data import Data, added
from suffice.engines.engine import ROWS
from suffice.engines.engine import Block as Batch
from suffice.errors import DataError, FitError
from suffice.families.family import Array, Estimate
from suffice.iteration import Iteration
from suffice.learning.mixture_discrete import log_shares, logs, shares
from suffice.learning.mixture_part import IMPOSSIBLE, Collapsed, Part

ROUNDING = 1e-9
"""A fall of the objective by less than this share of it is rounding."""


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
    parts: tuple[tuple[Any, ...], ...]


class Climb(NamedTuple):
    """One run of EM from one start. `collapsed` says why it ended, if it did; the parameters are then those before."""

    parameters: Parameters
    sums: Sums
    trace: tuple[Iteration, ...]
    converged: bool
    collapsed: str | None = None

    @property
    def objective(self) -> float:
        return self.trace[-1].objective if self.trace else -np.inf


@dataclass(frozen=True, eq=False)
class Mixture:
    """The parts, and what is the same in every iteration: ln x! of the counts, imagined rows of each class, the least weight
    that a class may have."""

    parts: tuple[Part, ...]
    n_classes: int
    alpha: Array | None
    how: Estimate
    name: str
    base: float = 0.0
    least: float = 0.0

    @property
    def n_parameters(self) -> int:
        return self.n_classes - 1 + sum(part.n_parameters for part in self.parts)

    @property
    def _rows(self) -> int:
        return int(np.clip(min(part.block_rows for part in self.parts), 64, 8192))

    def blocks(self, parameters: Parameters, batch: Batch) -> Iterator[tuple[slice, Array, list[Any]]]:
        """Of each block of the batch: ln w_k p(row | k), one row per class, and what the parts remember."""
        prepared = [part.prepared(theta) for part, theta in zip(self.parts, parameters.parts, strict=True)]
        log_weights = logs(parameters.weights)[:, None]
        return self._blocks(prepared, log_weights, batch)

    def _blocks(self, prepared: Sequence[Any], log_weights: Array, batch: Batch) -> Iterator[tuple[slice, Array, list[Any]]]:
        size = self._rows
        for start in range(0, batch.n_rows, size):
            rows = slice(start, min(start + size, batch.n_rows))
            log_probs = np.repeat(log_weights, rows.stop - start, axis=1)
            yield rows, log_probs, [part.scored(p, batch, rows, log_probs) for part, p in zip(self.parts, prepared, strict=True)]

    def expected(self, parameters: Parameters, data: Data, threads: int | None) -> Sums:
        """The E-step."""
        prepared = [part.prepared(theta) for part, theta in zip(self.parts, parameters.parts, strict=True)]
        log_weights = logs(parameters.weights)[:, None]

        def step(batch: Batch) -> Any:
            total: Any = None
            for rows, log_probs, memory in self._blocks(prepared, log_weights, batch):
                top, sums = softmax(log_probs)
                log_sums, weight = np.log(sums), None if batch.weight is None else batch.weight[rows]
                counted = top if weight is None else np.where(weight > 0, top, 0.0)
                if counted.min() < IMPOSSIBLE:
                    raise ImpossibleRow(batch.start + rows.start + int(np.argmin(counted)))
                if weight is not None:
                    log_probs *= weight
                parts = tuple(part.gathered(m, log_probs) for part, m in zip(self.parts, memory, strict=True))
                one = (_dot(top + log_sums, weight), -_dot(log_sums, weight), log_probs.sum(axis=1), parts)
                total = one if total is None else added(total, one)
            return total

        total = Sums(*_folded(data, step, threads))
        return total._replace(log_likelihood=float(total.log_likelihood) + self.base, hard=float(total.hard))

    def given(self, parameters: Parameters, data: Data, responsibilities: Callable[[Batch], Array], threads: int | None) -> Sums:
        """The statistics of the rows if these are the responsibilities (class × row of the batch)."""

        def step(batch: Batch) -> Any:
            r, total = responsibilities(batch), None
            for rows, _, memory in self.blocks(parameters, batch):
                some = r[:, rows] if batch.weight is None else r[:, rows] * batch.weight[rows]
                parts = tuple(part.gathered(m, some) for part, m in zip(self.parts, memory, strict=True))
                one = (some.sum(axis=1), parts)
                total = one if total is None else added(total, one)
            return total

        counts, parts = _folded(data, step, threads)
        return Sums(-np.inf, 0.0, counts, parts)

    def maximised(self, parameters: Parameters, sums: Sums) -> Parameters:
        """The M-step. `parameters` are those under which the sums were gathered."""
        if self.alpha is None and sums.counts.min() < self.least:
            raise Collapsed("a class has less than one row left")
        weights = shares(sums.counts, self.alpha, self.how, self.name)
        triples = zip(self.parts, parameters.parts, sums.parts, strict=True)
        return Parameters(weights, tuple(part.maximised(theta, s) for part, theta, s in triples))

    def log_prior(self, parameters: Parameters) -> float:
        parts = sum(part.log_prior(theta) for part, theta in zip(self.parts, parameters.parts, strict=True))
        return log_shares(parameters.weights, self.alpha, self.how) + parts

    def permuted(self, parameters: Parameters, order: Sequence[int]) -> Parameters:
        parts = tuple(part.permuted(theta, order) for part, theta in zip(self.parts, parameters.parts, strict=True))
        return Parameters(parameters.weights[list(order)], parts)

    def started(self, data: Data, responsibilities: Callable[[Batch], Array], threads: int | None) -> Parameters:
        """The parameters that responsibilities give. The first pass finds the means, around which the second gathers."""
        blank = Parameters(np.full(self.n_classes, 1.0 / self.n_classes), tuple(part.blank() for part in self.parts))
        first = self.maximised(blank, self.given(blank, data, responsibilities, threads))
        return self.maximised(first, self.given(first, data, responsibilities, threads))

    def climbed(
        self,
        begin: Parameters,
        data: Data,
        *,
        tol: float,
        max_iter: int,
        threads: int | None = None,
        watch: Callable[[Climb], None] = lambda _: None,
    ) -> Climb:
        """EM from one start. `watch` sees every iteration, and may stop the run by raising."""
        clock, trace = time.perf_counter(), list[Iteration]()
        parameters, sums = begin, self.expected(begin, data, threads)
        before, converged = sums.log_likelihood + self.log_prior(parameters), False
        for _ in range(max_iter):
            try:
                new = self.maximised(parameters, sums)
            except Collapsed as collapse:
                return Climb(parameters, sums, tuple(trace), False, str(collapse))
            parameters, sums = new, self.expected(new, data, threads)
            objective = sums.log_likelihood + self.log_prior(parameters)
            trace.append(Iteration(objective, sums.log_likelihood, time.perf_counter() - clock))
            if not objective >= before - ROUNDING * (1.0 + abs(before)):
                raise FitError(
                    f"the objective of EM fell from {before!r} to {objective!r} in iteration {len(trace)}: this is an error of "
                    "ours, not of your data; please report it"
                )
            converged = tol > 0 and objective - before <= tol
            watch(Climb(parameters, sums, tuple(trace), converged))
            if converged:
                break
            before = objective
        return Climb(parameters, sums, tuple(trace), converged)


def softmax(log_probs: Array) -> tuple[Array, Array]:
    """Turn ln p(k, row), one row per class, into p(k | row) in place; the largest ln p of each row, and Σ p over it."""
    top = log_probs.max(axis=0)
    log_probs -= top
    np.exp(log_probs, out=log_probs)
    sums = log_probs.sum(axis=0)
    log_probs /= sums
    return top, sums


class ImpossibleRow(DataError):
    """A row, by its number from 0, that no class can have."""

    def __init__(self, row: int) -> None:
        self.row = row
        super().__init__(
            f"row {row + 1} has the probability 0 in every class: a state or count there was never seen in any class; use a prior"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return ImpossibleRow, (self.row,)


def _dot(x: Array, weight: Array | None) -> float:
    return float(x.sum() if weight is None else x @ weight)


def _folded(data: Data, step: Callable[[Batch], Any], threads: int | None) -> Any:
    """A fold; a single block of rows needs no threads."""
    return data.fold(step, threads=1 if data.n_rows <= ROWS else threads)
