"""Distributions that are both: a family of x that can be estimated, and the conjugate prior of another family's parameter.

Gamma is a distribution of numbers, and a prior of rates. As a family it is asked `family.log_evidence(prior, statistic)` and
`family.predictive(prior)`, as a prior `prior.log_evidence(statistic)` and `prior.predictive(family)`: what comes in tells which.
"""

from __future__ import annotations

from typing import Any

from suffice.exponential.family import Family
from suffice.exponential.prior import Prior
from suffice.exponential.statistic import Totals


class FamilyAndPrior(Prior, Family):
    """A family that is also a prior. A family that has a prior itself overrides `evidence_under` and `predictive_under`."""

    def log_evidence(self, prior: Any, statistic: Totals | None = None) -> Any:  # type: ignore[override]
        """As a prior, of the statistic alone; as a family, of its prior and the statistic."""
        if statistic is None:
            return Prior.log_evidence(self, prior)
        return self.evidence_under(prior, statistic)

    def predictive(self, of: Any = None) -> Any:
        """As a prior, the next observation of the family `of`; as a family, the next observation under the prior `of`."""
        # A family comes without parameters, a prior with them: two that are both can be told apart.
        if isinstance(of, Prior) and not (isinstance(of, Family) and of == of.bare):
            return self.predictive_under(of)
        self._need(self.names[0])
        return Prior.predictive(self, of)

    def evidence_under(self, prior: Any, statistic: Totals) -> Any:
        """The evidence of a statistic of this family under its prior."""
        raise self._no_prior(prior)

    def predictive_under(self, prior: Any) -> Any:
        """The next observation of this family under its prior."""
        raise self._no_prior(prior)
