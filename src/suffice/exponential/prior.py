"""A conjugate prior is a distribution of parameters that data turns into another of the same kind: `prior + statistic`.

What the statistic does to it is known by the family the statistic belongs to; the prior remembers that family in `of`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from suffice.errors import ModelError, StatisticsError
from suffice.exponential.family import Family
from suffice.exponential.statistic import Array, Totals


class Prior:
    """What all conjugate priors can do. `of` is the family whose parameters they are about; the first statistic tells it.

    >>> from suffice.exponential import Bernoulli, Beta
    >>> prior = Bernoulli().conjugate(total=[1.0], count=2.0)
    >>> prior, prior + Bernoulli().statistic([1, 1, 0])
    (Beta(a=1.0, b=1.0, of=Bernoulli()), Beta(a=3.0, b=2.0, of=Bernoulli()))
    """

    of: Family | None
    example: ClassVar[str] = "Poisson()"
    """A family that it may be about, for a refusal."""

    def __add__(self, statistic: Totals) -> Self:
        """The posterior: what was imagined and what was seen, together."""
        if not isinstance(statistic, Totals):
            raise StatisticsError(f"a prior is updated by a statistic: prior + {self.example}.statistic(x), not by {statistic!r}")
        return self.family(statistic.family).posterior(self, statistic)  # type: ignore[return-value]

    def log_evidence(self, statistic: Totals) -> Array:
        """The log-probability of the data with the parameters integrated out."""
        if not isinstance(statistic, Totals):
            raise StatisticsError(f"the evidence is that of a statistic, as family.statistic(x) gives it, not of {statistic!r}")
        return self.family(statistic.family).log_evidence(self, statistic)

    def predictive(self, of: Family | None = None) -> Any:
        """The distribution of the next observation, the parameters integrated out."""
        return self.family(of).predictive(self)

    def family(self, of: Family | None) -> Family:
        """The family this prior is about, given what a caller says of it."""
        if of is None and self.of is None:
            raise ModelError(f"{self!r} may be about several families: say which, for instance predictive({self.example})")
        if of is not None and self.of is not None and of.bare != self.of:
            raise ModelError(f"{self!r} is about {self.of!r}, not about {of.bare!r}")
        return of.bare if of is not None else self.of  # type: ignore[return-value]
