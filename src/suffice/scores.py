"""Scores: functions of a family and a statistic. One definition serves every family; higher is better; logs are natural.

A score has `bind`, which fills in what it leaves open, and `local`: the score of one node given its parents, from the
statistic of its family; `of_regression` is that of a regression, which has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.errors import FitError
from suffice.families.family import Family, Statistic
from suffice.families.priors import Prior, as_prior
from suffice.families.regression_suprema import Supremum
from suffice.statistics import Statistics
from suffice.variables import Variable


@dataclass(frozen=True)
class _Penalised:
    """The log-likelihood at its maximum, less a price per parameter."""

    def bind(self, variables: Any, statistics: Statistics) -> Any:
        return self

    def price(self, weight: float) -> float:
        raise NotImplementedError

    def local(self, family: Family[Any], child: Variable, parents: Sequence[Variable], seen: Statistic, weight: float) -> float:
        return family.log_likelihood(child, seen) - self.price(weight) * family.n_parameters(child, parents)

    def of_regression(self, family: Any, child: Variable, parents: Sequence[Variable], found: Supremum, weight: float) -> float:
        """The score of a regression, which has no statistic: of where its climb ended."""
        return float(found.log_likelihood - self.price(weight) * family.n_parameters(child, parents))


@dataclass(frozen=True)
class LogLikelihood(_Penalised):
    """The log-likelihood at its maximum. It never prefers a smaller graph.

    >>> LogLikelihood()
    LogLikelihood()
    """

    def price(self, weight: float) -> float:
        return 0.0


@dataclass(frozen=True)
class AIC(_Penalised):
    """log L − k (Akaike 1974).

    >>> AIC()
    AIC()
    """

    def price(self, weight: float) -> float:
        return 1.0


@dataclass(frozen=True)
class BIC(_Penalised):
    """log L − ½ k ln N (Schwarz 1978).

    >>> BIC()
    BIC()
    """

    def price(self, weight: float) -> float:
        return 0.5 * float(np.log(weight))


@dataclass(frozen=True)
class Evidence:
    """ln p(data | graph), parameters integrated out under a prior: `Evidence(BDeu(1))`, `Evidence(K2())`, `Evidence(BGe())`.

    >>> from suffice import BDeu
    >>> Evidence(BDeu(1))
    Evidence(prior=BDeu(ess=1))
    """

    prior: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", as_prior(self.prior))
        if self.prior is None:
            raise FitError("Evidence needs a prior: Evidence(BDeu(1))")

    def bind(self, variables: Any, statistics: Statistics) -> Evidence:
        prior: Prior = self.prior
        return replace(self, prior=prior.bind(variables, statistics))

    def choose(self, variables: Any, nodes: Any, statistics: Statistics) -> Evidence:
        """The same with the numbers that its prior leaves free chosen by these nodes: (child, parents, what was seen)."""
        return replace(self, prior=self.prior.choose(variables, nodes, statistics))

    def local(self, family: Family[Any], child: Variable, parents: Sequence[Variable], seen: Statistic, weight: float) -> float:
        rows = self.prior.believe(child, parents, seen)
        if rows is None:
            raise FitError(
                f"the prior of this score ({_names(self.prior)}) says nothing about {child.name!r}; add one that does: "
                "BDeu for finite nodes, BGe or NormalInverseGamma for real ones, Gamma for counts, as in "
                "Evidence((BDeu(1), BGe())) or bdeu:1+bge"
            )
        return family.log_evidence(child, seen, rows)

    def of_regression(self, family: Any, child: Variable, parents: Sequence[Variable], found: Supremum, weight: float) -> float:
        """Laplace's approximation, with the ridge of the family as the prior of its effects; not that of this score."""
        if np.isnan(found.log_evidence):
            raise FitError(
                f"{child.name!r} is a regression with a dispersion, which has no prior, and so no evidence: score it with BIC()"
                if family.dispersed or family.profiled
                else f"{child.name!r} is a regression whose effects have a flat prior, and so no evidence: give it a ridge, "
                f"families={{{child.name!r}: {type(family).__name__}(ridge=1)}}, or score it with BIC(), which approximates it"
            )
        return found.log_evidence


def _names(prior: Any) -> str:
    return ", ".join(type(p).__name__ for p in getattr(prior, "priors", (prior,)))
