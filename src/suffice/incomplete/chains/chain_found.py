"""What sequences say of their unknown variables, whether these are one joint state or passed on factor by factor.

What steps show hangs on some of the states: a `ShownPart` has the rows of a part, what is said of its joint states, and what
was remembered of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.incomplete.chains.chain_batches import Scored
from suffice.incomplete.chains.reduced_steps import ReducedSteps


class ShownPart(NamedTuple):
    """The rows of a part, p(joint state) of it at each step (states × steps), and numbers that were scored."""

    rows: ReducedSteps
    joint: Array
    scored: list[Scored]


class StatesFound(NamedTuple):
    """Of each sequence ln p and its first impossible step, counted within the block, or −1; p(state) of variables at each step;
    and parts."""

    log_likelihood: Array
    stuck: Ints
    states: Mapping[str, Array]
    parts: list[ShownPart]


class Drawn(NamedTuple):
    """A path of each unknown variable, −1 where a sequence is impossible; and of parts the joint states on it, with certainty."""

    states: Mapping[str, Ints]
    parts: list[ShownPart]


class Followed(NamedTuple):
    """ln p of the last step given those before; what is known after it; p(state) of variables there; and parts."""

    log_prob: float
    after: Any
    states: Mapping[str, Array]
    parts: list[ShownPart]


def certain(path: Ints, n_states: int) -> Array:
    """1 for the state of each step, −1 for none.

    >>> certain(np.array([1, -1]), 2)
    array([[0., 0.],
           [1., 0.]])
    """
    joint = np.zeros((n_states, len(path)))
    joint[np.maximum(path, 0), np.arange(len(path))] = path >= 0
    return joint
