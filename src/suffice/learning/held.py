"""A problem some of whose distributions are known and stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from suffice.errors import FitError, nearest
from suffice.learning.problem import Problem
from suffice.models.bayes_net import BayesNet


class Held:
    """The same problem, but for the M-step: it leaves some nodes the distributions that they had at the start."""

    def __init__(self, problem: Problem, start: Any, fixed: Sequence[str]) -> None:
        self._problem, self._start, self.fixed = problem, start, tuple(fixed)

    def __getattr__(self, name: str) -> Any:
        if name == "parts":
            raise AttributeError(name)
        return getattr(self._problem, name)

    def first(self) -> Any:
        return self._kept(self._problem.first())

    def random(self, rng: Any) -> Any:
        return self._kept(self._problem.random(rng))

    def maximised(self, statistic: Any) -> Any:
        return self._kept(self._problem.maximised(statistic))

    def from_vector(self, vector: Any) -> Any:
        problem: Any = self._problem
        return self._kept(problem.from_vector(vector))

    def _kept(self, parameters: Any) -> Any:
        return self._problem.with_nodes(parameters, self._start, self.fixed)


def held(problem: Problem, fixed: Sequence[str], start: BayesNet | None) -> Problem:
    """A problem in which the distributions of some nodes are those of the start."""
    names = [fixed] if isinstance(fixed, str) else list(fixed)
    if not names:
        return problem
    if start is None:
        raise FitError("fixed= keeps distributions as they are at the start: give it, start=bn")
    for name in names:
        if name not in problem.variables:
            raise FitError(f"fixed names {name!r}, which is not in the graph{nearest(str(name), problem.variables)}")
    kept: Any = Held(problem, problem.parameters({name: start[name] for name in start}), names)
    result: Problem = kept
    return result
