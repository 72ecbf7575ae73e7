"""Most probable explanations. (Stand-in, being written.)"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from suffice.inference.network import Ints, Network, Soft
from suffice.inference.posterior import posterior


class Explanation(NamedTuple):
    """The most probable codes of the targets together, and ln p(targets = codes, evidence), ln p(evidence)."""

    codes: Ints
    log_joint: float
    log_prob: float


def most_probable(network: Network, targets: Sequence[int], codes: Ints, soft: Soft | None = None) -> Explanation:
    """argmax p(targets | evidence): all unobserved variables for an MPE, some for a MAP; the others are summed out."""
    p = posterior(network, targets, codes, soft)
    best = np.unravel_index(int(np.argmax(p.probs)), p.probs.shape)
    return Explanation(np.array(best, np.int64), float(np.log(p.probs[best]) + p.log_prob), p.log_prob)
