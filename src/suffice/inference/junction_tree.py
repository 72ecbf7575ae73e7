"""Stand-in (being written)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from suffice.inference.network import Array, Ints, Network, Soft
from suffice.inference.posterior import posterior


class Marginals(NamedTuple):
    """p(v | evidence) of every variable, one after another: those of variable v are `probs[start[v]:start[v + 1]]`."""

    probs: Array
    start: Ints
    log_prob: float


class JunctionTree:
    """A network compiled once, for all marginals at a time."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.start = np.cumsum([0, *network.sizes])

    @classmethod
    def of(cls, network: Network) -> JunctionTree:
        return cls(network)

    def marginals(self, codes: Ints, soft: Soft | None = None) -> Marginals:
        parts = []
        log_prob = posterior(self.network, [], codes, soft).log_prob
        for v, r in enumerate(self.network.sizes):
            parts.append(np.eye(r)[codes[v]] if codes[v] >= 0 else posterior(self.network, [v], codes, soft).probs)
        return Marginals(np.concatenate(parts), self.start, log_prob)
