"""Restricted Boltzmann machines as arrays: two layers of units, drawn in turn; sums over all states of the smaller layer.

    −E(v, h) = Σᵢ aᵢ vᵢ + Σⱼ cⱼ hⱼ + Σᵢⱼ vᵢ Wᵢⱼ hⱼ  (− ½ vᵢ² for each number vᵢ)

Hidden units are bits. Visible units are bits, then groups of which one is 1 (the states of a variable), then numbers, which given
h are normal around aᵢ + Σⱼ Wᵢⱼ hⱼ with variance 1. W is kept twice, as doubles for what is exact and as floats for what is drawn.

Annealed importance sampling finds ln Z of a machine too large to be summed over, with its standard error. Chains start at
independent visible units of known ln Z₀ = ln Σ_v e^{m·v} + H ln 2 and move through machines with the fields and weights
(1−β) m + β a, β c, β W, β from 0 to 1. A chain's weight is Π p*_β'(v) / p*_β(v) over its way; the mean of the weights estimates
Z/Z₀ without bias (Neal 2001, Statistics and Computing 11, p. 125; Salakhutdinov & Murray 2008, ICML, p. 872).

A start m from which chains do not get to where most of the probability is finds too little, and its weights need not show it: of
the mean of weights P(more than k Z) ≤ 1/k, but nothing bounds it from below. So half of the chains start at the means of the rows
that were learned from, half at what hidden units at ½ would give, and the larger ln Z is taken (where rows are not known, all
start at the latter). Machines of 784 × 16 learned by PCD needed now the one, now the other: `benchmarks/undirected_rbm.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.errors import note, whole
from suffice.numerics.inference.finite.logs import log_sum

Floats = npt.NDArray[np.float32]
Key = tuple[np.uint32, np.uint32]

BLOCK = 4096
"""States that are summed over at a time."""
MAX_STATES = 2**20
"""Of the smaller layer, for a sum over all of them."""
UNEVEN = 0.2
"""A share of the chains: where those that carry the weight are fewer, the standard error is itself not known."""
TWICE = 2.0
"""What the spread of the weights says of the error may be too little by this, and no more."""
LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


def key_of(seed: int, step: int) -> Key:
    """The key of the draws of a step (SplitMix64: Steele, Lea & Flood 2014, OOPSLA, p. 453)."""
    x = 0
    for part in (seed, step):
        x = (x + part + 0x9E3779B97F4A7C15) % 2**64
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
        x ^= x >> 31
    return np.uint32(x % 2**32), np.uint32(x >> 32)


@dataclass(frozen=True, eq=False)
class LayerUnits:
    """A layer: so many bits, then groups of units of which one is 1, by their sizes, then so many numbers."""

    n_bits: int
    groups: tuple[int, ...] = ()
    n_numbers: int = 0

    @cached_property
    def first(self) -> Ints:
        """The first unit of each group, and the first after all of them."""
        return self.n_bits + np.cumsum([0, *self.groups], dtype=np.int64)

    @property
    def n_finite(self) -> int:
        return int(self.first[-1])

    @property
    def n(self) -> int:
        return self.n_finite + self.n_numbers

    @property
    def n_states(self) -> float:
        """How many states the layer has: without end where there are numbers."""
        if self.n_numbers or self.n_bits + len(self.groups) > 1000:
            return math.inf
        return float(2**self.n_bits * math.prod(self.groups))

    def draw(self, x: Floats, bias: Floats, key: Key, states: Floats, scale: float = 1.0) -> None:
        """Draw the layer given its field, scale x + bias; x becomes what is expected."""
        from suffice.numerics.kernels.inference.draws import draw_bits, draw_groups, draw_numbers

        by = np.float32(scale)
        if self.n_bits:
            draw_bits(x, bias, by, 0, self.n_bits, *key, states)
        if self.groups:
            draw_groups(x, bias, by, self.first, *key, states)
        if self.n_numbers:
            draw_numbers(x, bias, by, self.n_finite, self.n, *key, states)

    def log_sums(self, field: Array) -> Array:
        """ln Σ e^{v · field} over all states v of the layer, of each row of fields; of numbers the integral, with e^{−½v²}."""
        total = np.zeros(len(field))
        for start in range(0, self.n_bits, 1000):  # the product of a thousand numbers from 1 to 2 is a double
            x = field[:, start : min(start + 1000, self.n_bits)]
            total += np.maximum(x, 0.0).sum(axis=1) + np.log((1.0 + np.exp(-np.abs(x))).prod(axis=1))
        for a, b in zip(self.first[:-1], self.first[1:], strict=True):
            total += log_sum(field[:, a:b], 1)
        numbers = field[:, self.n_finite :]
        return np.asarray(total + 0.5 * (numbers * numbers).sum(axis=1) + self.n_numbers * LOG_ROOT_2PI)

    def means(self, field: Array) -> Array:
        """What is expected of the units given their fields, each row by itself."""
        out = field.copy()
        bits = field[:, : self.n_bits]
        small = np.exp(-np.abs(bits))
        out[:, : self.n_bits] = np.where(bits >= 0.0, 1.0, small) / (1.0 + small)
        for a, b in zip(self.first[:-1], self.first[1:], strict=True):
            e = np.exp(field[:, a:b] - field[:, a:b].max(axis=1, keepdims=True))
            out[:, a:b] = e / e.sum(axis=1, keepdims=True)
        return out

    def fields(self, means: Array) -> Array:
        """The field under which units that are independent have these means, kept off 0 and 1."""
        out = means.copy()
        bits = np.clip(means[: self.n_bits], 0.005, 0.995)
        out[: self.n_bits] = np.log(bits / (1.0 - bits))
        out[self.n_bits : self.n_finite] = np.log(np.maximum(means[self.n_bits : self.n_finite], 0.005))
        return out

    def every_state(self) -> Iterator[Array]:
        """All states of a finite layer, in blocks, a row each."""
        sizes = [*[2] * self.n_bits, *self.groups]
        n = int(math.prod(sizes))
        for start in range(0, n, BLOCK):
            digits = np.stack(np.unravel_index(np.arange(start, min(start + BLOCK, n)), sizes or [1]), axis=1)
            rows = np.zeros((len(digits), self.n))
            rows[:, : self.n_bits] = digits[:, : self.n_bits]
            for g, a in enumerate(self.first[:-1]):
                rows[np.arange(len(rows)), a + digits[:, self.n_bits + g]] = 1.0
            yield rows


@dataclass(frozen=True, eq=False)
class Machine:
    """The two layers and what lies between them: W (visible × hidden), the visible biases a, the hidden ones c."""

    units: LayerUnits
    weights: Array
    visible: Array
    hidden: Array
    base: Array | None = None
    """The field of independent visible units about as broad as the machine's, for who must start somewhere."""

    @property
    def hidden_units(self) -> LayerUnits:
        return LayerUnits(len(self.hidden))

    @cached_property
    def floats(self) -> tuple[Floats, Floats, Floats]:
        """W, a, c as floats, for who draws."""
        arrays = (self.weights, self.visible, self.hidden)
        w, a, c = (np.ascontiguousarray(x, dtype=np.float32) for x in arrays)
        return w, a, c

    def free_energy(self, v: Array) -> Array:
        """−ln Σ_h e^{−E(v, h)} of each row."""
        numbers = v[:, self.units.n_finite :]
        own = v @ self.visible - 0.5 * (numbers * numbers).sum(axis=1)
        return np.asarray(-own - self.hidden_units.log_sums(v @ self.weights + self.hidden))

    @property
    def starts(self) -> tuple[Array, ...]:
        """Fields of independent visible units about as broad as the machine's: its `base`, and with hidden units at ½."""
        half = self.visible + 0.5 * self.weights.sum(axis=1)
        return (half,) if self.base is None else (self.base, half)

    @property
    def n_summed(self) -> float:
        """How many states a sum over the smaller layer has."""
        return min(self.hidden_units.n_states, self.units.n_states)

    def log_partition(self) -> float:
        """ln Σ_v Σ_h e^{−E(v, h)}, one layer state by state, the other in closed form."""
        over_hidden = self.hidden_units.n_states <= self.units.n_states
        parts = []
        for rows in (self.hidden_units if over_hidden else self.units).every_state():
            if over_hidden:
                logs = rows @ self.hidden + self.units.log_sums(rows @ self.weights.T + self.visible)
            else:
                logs = -self.free_energy(rows)
            top = float(logs.max())
            parts.append(top + math.log(float(np.exp(logs - top).sum())))
        top = max(parts)
        return top + math.log(math.fsum(math.exp(p - top) for p in parts))

    def walk(self, v: Floats, steps: int, seed: int, first: int = 0) -> Floats:
        """Visible units after so many rounds of drawing hidden from visible and visible from hidden, in place of those given.
        Returns what is expected of the visible units in the last round. The draws are those of the steps from `first` on."""
        w, a, c = self.floats
        hidden, x, h, expected = self.hidden_units, *(np.empty((len(v), len(c)), np.float32) for _ in range(2)), np.empty_like(v)
        for step in range(first, first + steps):
            hidden.draw(np.matmul(v, w, out=x), c, key_of(seed, 2 * step), h)
            self.units.draw(np.matmul(h, w.T, out=expected), a, key_of(seed, 2 * step + 1), v)
        return expected


class LogNormaliser(NamedTuple):
    """ln Z and its standard error, 0 where it is exact.

    >>> float(LogNormaliser(2.5, 0.0))
    2.5
    """

    value: float
    error: float

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class AIS:
    """ln Z by annealed importance sampling: so many chains, each through so many temperatures.

    Of a machine that was learned, half of the chains start at the means of the rows, the other half where hidden units are as
    often on as off, and the larger ln Z of the two is taken. The error falls with the square root of `chains`; more
    `temperatures` keep the weights of the chains even, without which the standard error is itself not known well.

    >>> AIS(chains=50)
    AIS(chains=50, temperatures=1000)
    """

    chains: int = 100
    temperatures: int = 1000

    def __post_init__(self) -> None:
        whole(self.chains, "the number of chains of AIS", 2)
        whole(self.temperatures, "the number of temperatures of AIS", 2)

    def log_normaliser(self, machine: Machine, seed: int) -> LogNormaliser:
        """The estimate, and its standard error by the spread of the weights."""
        starts = machine.starts
        n = max(2, -(-self.chains // len(starts)))
        logs = max((_log_weights(machine, m, n, self.temperatures, seed, k) for k, m in enumerate(starts)), key=log_mean)
        found = log_mean(logs)
        w = np.exp(logs - logs.max())
        worth = float(w.sum() ** 2 / (w @ w))
        if worth < UNEVEN * len(w):
            note(
                f"the weight of {len(w):,} chains of AIS lies on some {worth:.0f} of them: ln Z, found as {found.value:.2f} ± "
                f"{found.error:.2f}, is more likely larger than smaller; take more chains, and more temperatures"
            )
        return found


def log_mean(logs: Array) -> LogNormaliser:
    """The log of the mean of some weights, given as logs, and its standard error.

    The error is the spread of the weights over √n and their mean; but a few weights that happen to be alike say nothing of larger
    ones that were not met. Logs of weights are about normal (Neal 2001), and of those ln of the mean is known up to
    √(σ²/n + σ⁴/2n), σ that of the upper half, since low weights do not matter to the mean. Where that is more, the error is made
    larger, to twice itself at most. The limit was chosen on 18 machines of 784 × 16; of 8 others, learned by PCD, the root mean
    square of off / error was 1.05 over 40 runs.
    """
    n, top = len(logs), float(logs.max())
    w = np.exp(logs - top)
    seen = float(w.std(ddof=1) / (w.mean() * math.sqrt(n)))
    middle = float(np.median(logs))
    variance = float(((logs[logs >= middle] - middle) ** 2).mean())
    supposed = math.sqrt(variance / n + variance**2 / (2 * n))
    return LogNormaliser(top + math.log(float(w.mean())), max(seen, min(supposed, TWICE * seen)))


def _log_weights(machine: Machine, m: Array, chains: int, temperatures: int, seed: int, start: int) -> Array:
    """Of chains from the visible fields m, which is the machine's start of this number."""
    from suffice.numerics.kernels.inference.draws import gains

    units, (w, _, c) = machine.units, machine.floats
    first = 2 * temperatures * start  # the number of its first draws
    shift, v = machine.visible - m, np.empty((chains, units.n), np.float32)
    units.draw(np.zeros_like(v), m.astype(np.float32), key_of(seed, first), v)
    x, h, field = *(np.empty((chains, len(c)), np.float32) for _ in range(2)), np.empty_like(v)
    logs = np.zeros(chains)
    for k, (before, after) in enumerate(pairwise(np.linspace(0.0, 1.0, temperatures)), 1):
        gains(np.matmul(v, w, out=x), c, before, after, logs)
        logs += (after - before) * (v @ shift)
        machine.hidden_units.draw(x, (after * machine.hidden).astype(np.float32), key_of(seed, first + 2 * k), h, after)
        units.draw(
            np.matmul(h, w.T, out=field), (m + after * shift).astype(np.float32), key_of(seed, first + 2 * k + 1), v, after
        )
    return np.asarray(logs + float(units.log_sums(m[None])[0]) + len(c) * math.log(2.0))
