"""The ways to solve an undirected problem, among which its objective chooses; each is loaded when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from suffice.learning.undirected.problem import UndirectedProblem
from suffice.models.networks import MarkovNet
from suffice.objectives import Conditional, ContrastiveDivergence


@dataclass(frozen=True, eq=False)
class SolvableProblem(UndirectedProblem):
    """A problem as `Objective.fit` takes it."""

    def by_likelihood(self) -> MarkovNet:
        """The maximum of the likelihood, exact: in closed form where there is one, else by the method, or what suits best."""
        from suffice.learning.undirected.likelihood import maximum_likelihood

        return maximum_likelihood(self)

    def by_entropy(self, slack: float) -> MarkovNet:
        """The flattest distribution with these moments."""
        from suffice.learning.undirected.max_entropy import flattest

        return flattest(self, slack)

    def by_pseudo_likelihood(self) -> MarkovNet:
        """The maximum of the pseudo-likelihood, each node given the others."""
        from suffice.learning.undirected.pseudo_likelihood import maximum_pseudo_likelihood

        return maximum_pseudo_likelihood(self)

    def by_conditional(self, goal: Conditional) -> MarkovNet:
        """The maximum of the likelihood of one node given the others."""
        from suffice.learning.undirected.conditional import maximum_conditional_likelihood

        return maximum_conditional_likelihood(self, goal.target)

    def by_contrastive_divergence(self, goal: ContrastiveDivergence) -> MarkovNet:
        """Where what chains draw agrees with what is seen."""
        from suffice.learning.undirected.contrastive import contrastive_divergence

        return contrastive_divergence(self, goal)
