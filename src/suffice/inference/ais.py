"""Annealed importance sampling: ln Z of a machine too large to be summed over, with its standard error.

Chains start at independent visible units of known ln Z₀ = ln Σ_v e^{m·v} + H ln 2 and move through machines with the fields and
weights (1−β) m + β a, β c, β W, β from 0 to 1; m gives them the means of the rows that were learned from, or, where none are
known, those that hidden units at ½ would. A chain's weight is Π p*_β'(v) / p*_β(v) over its way; the mean of the weights
estimates Z/Z₀ without bias (Neal 2001, Statistics and Computing 11, p. 125; Salakhutdinov & Murray 2008, ICML, p. 872).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from suffice.errors import note, whole
from suffice.inference.boltzmann import Machine, key_of

UNEVEN = 0.2
"""A share of the chains: where those that carry the weight are fewer, the standard error is itself not known."""


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

    The error falls with the square root of `chains`; more `temperatures` keep the weights of the chains even, without which the
    standard error is itself not known well.

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
        logs = _log_weights(machine, self.chains, self.temperatures, seed)
        top = float(logs.max())
        w = np.exp(logs - top)
        error = float(w.std(ddof=1) / (w.mean() * math.sqrt(len(w))))
        worth = float(w.sum() ** 2 / (w @ w))
        if worth < UNEVEN * len(w):
            note(
                f"the weight of {len(w):,} chains lies on some {worth:.0f} of them: ln Z is likely larger than found, and its "
                "error larger than said; take more temperatures or chains"
            )
        return LogNormaliser(top + math.log(float(w.mean())), error)


def _log_weights(machine: Machine, chains: int, temperatures: int, seed: int) -> np.ndarray:
    from suffice.kernels.rbm import gains

    units, (w, _, c) = machine.units, machine.floats
    m = machine.visible + 0.5 * machine.weights.sum(axis=1) if machine.base is None else machine.base
    shift, v = machine.visible - m, np.empty((chains, units.n), np.float32)
    units.draw(np.zeros_like(v), m.astype(np.float32), key_of(seed, 0), v)
    x, h, field = *(np.empty((chains, len(c)), np.float32) for _ in range(2)), np.empty_like(v)
    logs = np.zeros(chains)
    for k, (before, after) in enumerate(pairwise(np.linspace(0.0, 1.0, temperatures)), 1):
        gains(np.matmul(v, w, out=x), c, before, after, logs)
        logs += (after - before) * (v @ shift)
        machine.hidden_units.draw(x, (after * machine.hidden).astype(np.float32), key_of(seed, 2 * k), h, after)
        units.draw(np.matmul(h, w.T, out=field), (m + after * shift).astype(np.float32), key_of(seed, 2 * k + 1), v, after)
    return np.asarray(logs + float(units.log_sums(m[None])[0]) + len(c) * math.log(2.0))
