"""The posterior of a few variables given what is observed of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from suffice.inference.network import Array, Ints, Network, Soft


class Posterior(NamedTuple):
    """p(targets | evidence), one axis per target in the order asked for, and ln p(evidence).

    Where the evidence is impossible, `log_prob` is −inf and the probabilities are NaN.
    """

    probs: Array
    log_prob: float


def posterior(network: Network, targets: Sequence[int], codes: Ints, soft: Soft | None = None) -> Posterior:
    """Exactly, by elimination within the part of the network that the question depends on.

    `codes` has the code of each observed variable, −1 for the others. No target may be observed.
    """
    from suffice.factors import Factor
    from suffice.inference.elimination import joint

    factors = []
    for scope, _, table in network.factors():
        index = tuple(int(codes[v]) if codes[v] >= 0 else slice(None) for v in scope)
        factors.append(Factor(tuple(str(v) for v in scope if codes[v] < 0), table[index]))
    for v, likelihood in (soft or {}).items():
        if codes[v] < 0:
            factors.append(Factor((str(v),), np.asarray(likelihood)))
        else:
            factors.append(Factor((), np.asarray(likelihood)[codes[v]]))
    values = joint(factors, [str(t) for t in targets]).values
    total = values.sum()
    with np.errstate(all="ignore"):
        return Posterior(values / total, float(np.log(total)))
