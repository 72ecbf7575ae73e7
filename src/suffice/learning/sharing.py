"""EM with shared parameters: a problem whose M-step adds what is expected of tied nodes before it maximises.

E-step   as ever, node by node
M-step   θ(tie) from Σ expected(node) over the nodes of the tie, and what the prior imagines, once
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from suffice.errors import FitError
from suffice.families.family import Cpd
from suffice.learning.problem import Problem
from suffice.models.bayes_net import BayesNet
from suffice.models.sharing import Tie


class Together:
    """The same problem, but for the M-step: nodes that share parameters get those that their statistics together give."""

    def __init__(self, problem: Any, ties: Sequence[Tie]) -> None:
        self._problem, self.ties = problem, tuple(ties)

    def __getattr__(self, name: str) -> Any:
        if name == "_problem":  # not there yet: a copy is being made
            raise AttributeError(name)
        return getattr(self._problem, name)

    def first(self) -> Any:
        return self._together(self._problem.first())

    def random(self, rng: np.random.Generator) -> Any:
        return self._together(self._problem.random(rng))

    def parameters(self, cpds: Mapping[str, Cpd]) -> Any:
        """The parameters of these distributions; where tied nodes differ, one step on from them."""
        parameters = self._problem.parameters(cpds)
        return parameters if self._problem.shares(parameters, self.ties) else self._together(parameters)

    def maximised(self, statistic: Any) -> Any:
        return self._problem.maximised(self._problem.pooled(statistic, self.ties))

    def log_prior(self, parameters: Any) -> float:
        """What the prior says of a tie counts once."""
        return float(self._once.log_prior(parameters))

    def network(self, parameters: Any, statistic: Any, info: str) -> BayesNet:
        bn: BayesNet = self._problem.network(parameters, self._problem.pooled(statistic, self.ties), info)
        return bn

    @cached_property
    def _once(self) -> Any:
        return self._problem.silent([node for tie in self.ties for node in tie.nodes[1:]])

    def _together(self, parameters: Any) -> Any:
        """A step of EM leads from any parameters to shared ones; nodes that share none stay where they are."""
        shared = self.maximised(self._problem.expected(parameters).statistic)
        return self._problem.with_nodes(parameters, shared, [node for tie in self.ties for node in tie.nodes])


def tied(problem: Problem, ties: Sequence[Tie]) -> Problem:
    """The problem in which these nodes share their parameters."""
    if not ties:
        return problem
    wrapped: Any = Together(problem, ties)
    result: Problem = wrapped
    return result


def check_fixed(ties: Sequence[Tie], fixed: Sequence[str]) -> None:
    """Refuse nodes that are both held as they are and tied to others."""
    for tie in ties:
        for node in tie.nodes:
            if node in fixed:
                raise FitError(f"{node!r} is in fixed= and in shared=: hold it as it is, or tie it to others, not both")
