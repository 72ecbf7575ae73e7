"""What is said of the cells of sequences, block by block: p(state) of each step, or numbers; these may be one of several normal,
or one of several Poisson distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.engines.engine import Block, is_missing
from suffice.families.protocol.family import Array
from suffice.incomplete.chains.reduced_steps import ShownPart, child_numbers, child_states
from suffice.models.chains.chain_reading import ChainReading
from suffice.variables import Count, Finite

NEWTON, HALVINGS = 16, 80
"""An end of an interval is found by so many of Newton's steps or, if these do not end, bisections to the last digits."""


@dataclass(frozen=True, eq=False)
class MixtureOfNumbers:
    """Many mixtures, with the parts on the first axis: weights, means and standard deviations (of `counts`: rates, unused)."""

    weight: Array
    means: Array
    sds: Array
    counts: bool = False

    @property
    def mean(self) -> Array:
        return np.asarray((self.weight * self.means).sum(axis=0))

    @property
    def sd(self) -> Array:
        own = self.means if self.counts else self.sds**2
        return np.asarray(np.sqrt((self.weight * (own + (self.means - self.mean) ** 2)).sum(axis=0)))

    def interval(self, level: float) -> tuple[Array, Array]:
        tail = (1.0 - level) / 2.0
        return self._quantile(tail), self._quantile(1.0 - tail)

    def _quantile(self, q: float) -> Array:
        if self.counts:
            return self._count_quantile(q)
        far, sd = 12.0 * self.sds, np.where(self.sds > 0, self.sds, np.inf)  # parts without spread have no density
        low, high = (self.means - far).min(axis=0), (self.means + far).max(axis=0)
        x, near = np.clip(self.mean + self.sd * sc.ndtri(q), low, high), 1e-14 * (high - low)
        for i in range(NEWTON + HALVINGS):
            z = (x - self.means) / sd
            gap, density = self._below(x) - q, (self.weight * np.exp(-0.5 * z**2) / sd).sum(axis=0) / np.sqrt(2.0 * np.pi)
            low, high = np.where(gap < 0, x, low), np.where(gap < 0, high, x)
            step = x - np.divide(gap, density, out=np.full_like(x, np.inf), where=density > 1e-300)
            inside = (step >= low) & (step <= high) & (i < NEWTON)
            x, before = np.where(inside, step, 0.5 * (low + high)), x
            if (np.abs(x - before) <= near).all():
                break
        return np.asarray(x)

    def _below(self, x: Array) -> Array:
        """p(number ≤ x)."""
        if self.counts:
            each: Any = np.where(x >= 0, sc.pdtr(np.maximum(np.floor(x), 0.0), self.means), 0.0)
        else:
            sd = np.where(self.sds > 0, self.sds, 1.0)
            each = np.where(self.sds > 0, sc.ndtr((x - self.means) / sd), x >= self.means)
        return np.asarray((self.weight * each).sum(axis=0))

    def _count_quantile(self, q: float) -> Array:
        """The least whole number n with p(count ≤ n) ≥ q."""
        most = self.means.max(axis=0)
        low, high = np.full_like(most, -1.0), np.ceil(most + 12.0 * np.sqrt(most) + 30.0)
        while ((high - low) > 1).any():
            middle = np.floor(0.5 * (low + high))
            below = self._below(middle) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(high)


class StepNumbers(NamedTuple):
    """Numbers of steps: mean and standard deviation, and the ends of an interval where one is asked for."""

    mean: Array
    sd: Array
    lower: Array | None
    upper: Array | None


Cells = dict[str, "Array | StepNumbers"]
"""What is said of open variables: of finite ones p(state) of each step (states × steps), of others numbers."""


class BlockAnswers(NamedTuple):
    """What is said of the steps of a block, and of its sequences ln p and the step at which each is impossible, or −1: counted
    within the block, and where all blocks are joined within its sequence."""

    number: int
    cells: Cells
    log_prob: Array
    impossible: npt.NDArray[np.int64]


def state_posterior(
    reading: ChainReading, smooth: bool, level: float | None, names: tuple[str, ...], block: Block
) -> BlockAnswers:
    """The sequences of a block filtered or smoothed, where the unknown variables that bear on others are finite."""
    found = reading.layout.rows(block).posterior(reading.theta, names, smooth=smooth)
    cells: Cells = {n: found.states[n] for n in names if n in reading.states}
    cells |= {n: shown_cell(reading, found.parts, block, n, level) for n in names if n not in reading.states}
    return BlockAnswers(block.number, {n: cells[n] for n in names}, found.log_likelihood, found.stuck)


def shown_cell(
    reading: ChainReading, parts: Sequence[ShownPart], block: Block, name: str, level: float | None
) -> Array | StepNumbers:
    """A variable on which no other cell depends but of its own step: as its distribution says, given states and parents."""
    variable, own = reading.chain.variables[name], block.columns[name]
    lost = is_missing(own)
    if isinstance(variable, Finite):
        probs = np.zeros((variable.n_states, len(own)))
        probs[own[~lost], np.flatnonzero(~lost)] = 1.0
        for some, found in child_states(parts, reading.theta, name):
            probs[:, some] = found
        return probs
    mean, sd = np.where(lost, np.nan, own), np.where(lost, np.nan, 0.0)
    ends = None if level is None else (mean.copy(), mean.copy())
    for some, mixture in child_numbers(parts, reading.theta, name):
        values = MixtureOfNumbers(*mixture, counts=isinstance(variable, Count))
        mean[some], sd[some] = values.mean, values.sd
        if ends is not None and level is not None:
            ends[0][some], ends[1][some] = values.interval(level)
    return StepNumbers(mean, sd, *(ends or (None, None)))


def join_parts(parts: list[Any]) -> Any:
    if not isinstance(parts[0], StepNumbers):
        return np.concatenate(parts, axis=1)
    ends: list[Any] = [None if x[0] is None else np.concatenate(x) for x in zip(*parts, strict=True)]
    return StepNumbers(*ends)
