"""BDe: the prior that imagines rows drawn from a network (Heckerman, Geiger & Chickering 1995)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.errors import FitError, nearest
from suffice.families.priors.priors import Prior
from suffice.models.networks import BayesNet
from suffice.models.questions.expected import marginal
from suffice.statistics import Counts
from suffice.variables import Finite, Variable


@dataclass(frozen=True)
class BDe(Prior):
    """`ess` imagined rows, spread over each table as the network `network` would. Score equivalent.

    >>> x = Finite("x", ["a", "b"])
    >>> BDe(BayesNet("x", {"x": [0.25, 0.75]}, [x]), ess=8).imagine(x, []).values
    array([2., 6.])
    """

    worth = "ess"
    types = ("BDe",)

    network: BayesNet
    ess: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.network, BayesNet):
            raise FitError("BDe needs the network whose rows it should imagine: BDe(bn, ess)")
        if not (np.isfinite(self.ess) and self.ess > 0):
            raise FitError(f"the equivalent sample size of BDe must be a positive number, not {self.ess!r}")

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Counts | None:
        family = [v for v in (*parents, child) if isinstance(v, Finite)]
        if len(family) != len(parents) + 1:
            return None
        for v in family:
            known = self.network.variables.get(v.name)
            if not isinstance(known, Finite):
                raise FitError(f"the prior network has no finite variable {v.name!r}{nearest(v.name, self.network)}")
            if set(known.states) != set(v.states):
                differing = sorted(set(known.states) ^ set(v.states))
                raise FitError(f"the prior network and the data differ in the states of {v.name!r}: {differing[:8]}")
        own = tuple(k for v in family if isinstance(k := self.network.variables[v.name], Finite))
        counts = Counts(own, self.ess * marginal(self.network, [v.name for v in family]))
        return counts.recoded({v.name: v for v in family})
