"""Contrastive divergence of restricted Boltzmann machines: stochastic gradient steps over minibatches of rows.

    ∂ ln p(v) / ∂W = v E[h | v]ᵀ − E[v hᵀ]

The first part is seen. The second is what the machine expects; it is replaced by what a few rounds of drawing give, from the rows
themselves (CD; Hinton 2002, Neural Computation 14, p. 1771) or from chains that go on all the while (PCD; Tieleman 2008, ICML,
p. 1064). Each step is a few products of matrices of floats, with what is drawn in between; a product and a step are one call.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from suffice.basis.arrays import Array
from suffice.engines.engine import Block
from suffice.inference.sampling.boltzmann import Floats, LayerUnits, Machine, key_of
from suffice.models.undirected.visible import ROWS, VisibleColumns

SPREAD = 0.01
"""The standard deviation of the weights at the start (Hinton 2012, A practical guide to training RBMs, section 8)."""

STEP = 0.4
"""Between the points at which the density of a number is summed up: normals of variance 1 need no more."""


@dataclass(frozen=True, eq=False)
class Learned:
    """Where a run has come to: W, a and c, the last move of each, the hidden units of chains that go on, the steps so far."""

    weights: Floats
    visible: Floats
    hidden: Floats
    moves: tuple[Floats, Floats, Floats]
    chains: Floats
    steps: int = 0
    stopped: bool = False

    @classmethod
    def start(cls, units: LayerUnits, means: Array, n_hidden: int, chains: int, seed: int) -> Learned:
        """Independent columns, but for small random weights."""
        rng = np.random.default_rng(seed)
        w = np.float32(SPREAD) * rng.standard_normal((units.n, n_hidden), np.float32)
        a, c = units.fields(means).astype(np.float32), np.zeros(n_hidden, np.float32)
        h = (rng.random((chains, n_hidden)) < 0.5).astype(np.float32)
        return cls(w, a, c, (np.zeros_like(w), np.zeros_like(a), np.zeros_like(c)), h)

    def copy(self) -> Learned:
        """The same in arrays of its own."""
        w, a, c = self.moves
        own = replace(self, weights=self.weights.copy(), visible=self.visible.copy(), hidden=self.hidden.copy())
        return replace(own, moves=(w.copy(), a.copy(), c.copy()), chains=self.chains.copy())

    @property
    def largest(self) -> float:
        """The largest |w| of all weights and biases; NaN where one is not a number."""
        return float(np.max([np.abs(x).max() for x in (self.weights, self.visible, self.hidden)]))

    def machine(self, units: LayerUnits) -> Machine:
        w, a, c = (x.astype(np.float64) for x in (self.weights, self.visible, self.hidden))
        return Machine(units, w, a, c)


@dataclass(frozen=True, eq=False)
class Descent:
    """The steps over the rows of a block, in minibatches, from what the rows before it taught.

    A step moves by `momentum` times the last move and `rate` times the gradient of the mean over the minibatch of ln p(v), less
    that of the penalty `l1` Σ|W| + `l2` ΣW². No step begins after `deadline`, by the clock of `time.perf_counter`.
    """

    columns: VisibleColumns
    rounds: int
    persistent: bool
    batch: int
    rate: float
    momentum: float
    l1: float
    l2: float
    seed: int
    deadline: float = float("inf")

    def __call__(self, state: Learned, block: Block) -> Learned:
        at, start = state.copy(), 0
        for n, v in enumerate(self.columns.parts(block, self.batch), state.steps):
            if at.stopped or time.perf_counter() > self.deadline:
                return replace(at, stopped=True)
            share = block.weights[start : start + len(v)]
            start += len(v)
            if share.any():
                self._move(at, n, v, (share / share.sum()).astype(np.float32))
            at = replace(at, steps=n + 1)
        return at

    @np.errstate(over="ignore", invalid="ignore")  # steps that run off are told of after the pass
    def _move(self, at: Learned, n: int, v: Floats, seen: Floats) -> None:
        """Step number n, in place; `seen` is the share of each row."""
        x, p = self.draw_units(at, n, v)
        chains = len(x) - len(v)
        expected = np.full(chains, 1.0 / chains, np.float32) if self.persistent else seen
        of = np.concatenate([seen, -expected])
        p *= of[:, None]
        self._step(at, x, p, of)

    def draw_units(self, at: Learned, n: int, v: Floats) -> tuple[Floats, Floats]:
        """The visible units of the rows over those of the chains, and what is expected of the hidden units given them.

        The chains are at the end of their rounds; those that go on are moved.
        """
        units, bits, w, first = self.columns.units, LayerUnits(len(at.hidden)), at.weights, (2 * self.rounds + 1) * n
        k = len(v)
        h = at.chains if self.persistent else np.empty((k, bits.n), np.float32)
        x = np.concatenate([v, np.empty((len(h), units.n), np.float32)])
        p, field, states = np.empty((len(x), bits.n), np.float32), np.empty_like(x[k:]), x[k:]
        if not self.persistent:
            bits.draw(np.matmul(v, w, out=p[:k]), at.hidden, key_of(self.seed, first), h)
        for r in range(1, self.rounds + 1):
            units.draw(np.matmul(h, w.T, out=field), at.visible, key_of(self.seed, first + 2 * r - 1), states)
            key = key_of(self.seed, first + 2 * r)
            if self.persistent and r == self.rounds:  # rows and chains in one product
                both = np.empty_like(p)
                bits.draw(np.matmul(x, w, out=p), at.hidden, key, both)
                h[:] = both[k:]
            else:
                bits.draw(np.matmul(states, w, out=p[k:]), at.hidden, key, h)
        return x, p

    def _step(self, at: Learned, x: Floats, p: Floats, of: Floats) -> None:
        """The move W += momentum · last move + rate · (xᵀ p − penalty), and those of the biases."""
        from scipy.linalg.blas import sgemm

        w, (last, last_a, last_c) = at.weights, at.moves
        shrunk = 2.0 * self.rate * self.l2
        target, keep = (last, self.momentum) if self.momentum else (w, 1.0 - shrunk)
        sgemm(self.rate, p.T, x.T, keep, target.T, trans_b=True, overwrite_c=True)  # in place, since these are columns first
        if self.momentum:
            if shrunk:
                last -= np.float32(shrunk) * w
            w += last
        if self.l1:
            w -= np.clip(w, -self.rate * self.l1, self.rate * self.l1)
        for bias, move, gradient in ((at.visible, last_a, of @ x), (at.hidden, last_c, p.sum(axis=0))):
            move *= np.float32(self.momentum)
            move += np.float32(self.rate) * gradient
            bias += move


@dataclass(frozen=True, eq=False)
class PseudoSums:
    """Σ w ln p(cell | the rest of its row) of one cell of each row, chosen at random, and Σ w.

    Times the number of columns, the mean is that of the pseudo-likelihood, Σᵢ ln p(vᵢ | all others).
    """

    columns: VisibleColumns
    machine: Machine
    seed: int

    def __call__(self, block: Block) -> Array:
        rng, total = np.random.default_rng([self.seed, block.number]), np.zeros(2)
        start = 0
        for v in self.columns.parts(block, ROWS):
            w = block.weights[start : start + len(v)]
            start += len(v)
            which = rng.integers(self.n_columns, size=len(v))
            total += [w @ self.log_conditionals(v.astype(np.float64), which), w.sum()]
        return total

    @property
    def n_columns(self) -> int:
        units = self.columns.units
        return units.n_bits + len(units.groups) + units.n_numbers

    def log_conditionals(self, v: Array, which: np.ndarray) -> Array:
        """ln p(cell | the rest) of a cell of each row, by its number: bits, groups, numbers."""
        units, own = self.columns.units, np.empty(len(v))
        x = v @ self.machine.weights + self.machine.hidden
        bits = np.flatnonzero(which < units.n_bits)
        own[bits] = self._of_bits(v[bits], x[bits], which[bits])
        for i in np.unique(which[which >= units.n_bits]):
            rows, g = np.flatnonzero(which == i), int(i) - units.n_bits
            of = self._of_group if g < len(units.groups) else self._of_number
            own[rows] = of(v[rows], x[rows], g if g < len(units.groups) else g - len(units.groups))
        return own

    def _of_bits(self, v: Array, x: Array, which: np.ndarray) -> Array:
        m, now = self.machine, v[np.arange(len(v)), which]
        other = x + (1.0 - 2.0 * now)[:, None] * m.weights[which]
        sums = m.hidden_units.log_sums
        gain = sums(other) - sums(x) + (1.0 - 2.0 * now) * m.visible[which]
        return np.asarray(-np.logaddexp(0.0, gain))

    def _of_group(self, v: Array, x: Array, g: int) -> Array:
        m, a, b = self.machine, *self.columns.units.first[g : g + 2]
        now = v[:, a:b].argmax(axis=1)
        rest = x - m.weights[a + now]
        logs = np.stack([m.visible[j] + m.hidden_units.log_sums(rest + m.weights[j]) for j in range(a, b)], axis=1)
        return np.asarray(logs[np.arange(len(v)), now] - np.logaddexp.reduce(logs, axis=1))

    def _of_number(self, v: Array, x: Array, i: int) -> Array:
        """The density of a number, a mixture of normals, over its integral by equal steps."""
        m, at = self.machine, self.columns.units.n_finite + i
        w, a = m.weights[at], m.visible[at]
        rest = x - v[:, at, None] * w
        ends = a + w[w < 0].sum() - 8.0, a + w[w > 0].sum() + 8.0
        points = np.linspace(*ends, int((ends[1] - ends[0]) / STEP) + 2)

        def log_density(y: Array | float) -> Array:
            return np.asarray(a * y - 0.5 * y * y + m.hidden_units.log_sums(rest + np.multiply.outer(np.atleast_1d(y), w)))

        whole = np.logaddexp.reduce([log_density(y) for y in points], axis=0) + np.log(points[1] - points[0])
        return np.asarray(log_density(v[:, at]) - whole - np.log(self.columns.scale[i]))
