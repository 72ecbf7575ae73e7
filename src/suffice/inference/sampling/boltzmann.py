"""Restricted Boltzmann machines as arrays: two layers of units, drawn in turn; sums over all states of the smaller layer.

    −E(v, h) = Σᵢ aᵢ vᵢ + Σⱼ cⱼ hⱼ + Σᵢⱼ vᵢ Wᵢⱼ hⱼ  (− ½ vᵢ² for each number vᵢ)

Hidden units are bits. Visible units are bits, then groups of which one is 1 (the states of a variable), then numbers, which given
h are normal around aᵢ + Σⱼ Wᵢⱼ hⱼ with variance 1. W is kept twice, as doubles for what is exact and as floats for what is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from suffice.inference.finite.logs import log_sum

Array = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Key = tuple[np.uint32, np.uint32]

BLOCK = 4096
"""States that are summed over at a time."""

MAX_STATES = 2**20
"""Of the smaller layer, for a sum over all of them."""

LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)


def key_of(seed: int, step: int) -> Key:
    """The key of the draws of a step (SplitMix64: Steele, Lea & Flood 2014, OOPSLA, p. 453).

    >>> key_of(0, 1) == key_of(0, 1), key_of(0, 1) == key_of(0, 2), key_of(0, 1) == key_of(1, 0)
    (True, False, False)
    """
    x = 0
    for part in (seed, step):
        x = (x + part + 0x9E3779B97F4A7C15) % 2**64
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
        x ^= x >> 31
    return np.uint32(x % 2**32), np.uint32(x >> 32)


@dataclass(frozen=True, eq=False)
class LayerUnits:
    """A layer: so many bits, then groups of units of which one is 1, by their sizes, then so many numbers.

    >>> units = LayerUnits(2, (3,), 1)
    >>> units.n, units.first.tolist(), units.n_states
    (6, [2, 5], inf)
    """

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
        from suffice.kernels.regressions.rbm import draw_bits, draw_groups, draw_numbers

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
    """The two layers and what lies between them: W (visible × hidden), the visible biases a, the hidden ones c.

    >>> machine = Machine(LayerUnits(2), np.array([[1.0], [-1.0]]), np.zeros(2), np.array([0.5]))
    >>> machine.free_energy(np.array([[1.0, 0.0]])).round(6), round(machine.log_partition(), 6)
    (array([-1.701413]), 2.51654)
    """

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

        Returns what is expected of the visible units in the last round. The draws are those of the steps from `first` on.
        """
        w, a, c = self.floats
        hidden, x, h, expected = self.hidden_units, *(np.empty((len(v), len(c)), np.float32) for _ in range(2)), np.empty_like(v)
        for step in range(first, first + steps):
            hidden.draw(np.matmul(v, w, out=x), c, key_of(seed, 2 * step), h)
            self.units.draw(np.matmul(h, w.T, out=expected), a, key_of(seed, 2 * step + 1), v)
        return expected
