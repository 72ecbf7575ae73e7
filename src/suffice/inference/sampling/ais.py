"""Annealed importance sampling: ln Z of a machine too large to be summed over, with its standard error.

Chains start at independent visible units of known ln Z₀ = ln Σ_v e^{m·v} + H ln 2 and move through machines with the fields and
weights (1−β) m + β a, β c, β W, β from 0 to 1. A chain's weight is Π p*_β'(v) / p*_β(v) over its way; the mean of the weights
estimates Z/Z₀ without bias (Neal 2001, Statistics and Computing 11, p. 125; Salakhutdinov & Murray 2008, ICML, p. 872).

A start m from which chains do not get to where most of the probability is finds too little, and its weights need not show it: of
the mean of weights P(more than k Z) ≤ 1/k, but nothing bounds it from below. So half of the chains start at the means of the rows
that were learned from, half at what hidden units at ½ would give, and the larger ln Z is taken (where rows are not known, all
start at the latter). Machines of 784 × 16 learned by PCD needed now the one, now the other: `benchmarks/undirected_rbm.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from suffice.errors import note, whole
from suffice.inference.sampling.boltzmann import Array, Machine, key_of

UNEVEN = 0.2
"""A share of the chains: where those that carry the weight are fewer, the standard error is itself not known."""

TWICE = 2.0
"""What the spread of the weights says of the error may be too little by this, and no more."""


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

    >>> log_mean(np.zeros(3))
    LogNormaliser(value=0.0, error=0.0)
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
    from suffice.kernels.regressions.rbm import gains

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
