"""A conjugate prior is a distribution of parameters that data turns into another of the same kind: `prior + statistic`.

What the statistic does to it is known by the family the statistic belongs to; the prior remembers that family in `of`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

from suffice.errors import ModelError, StatisticsError
from suffice.exponential.family import Family
from suffice.exponential.statistic import Totals


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
        posterior: Self = self.family(statistic.family).posterior(self, statistic)  # type: ignore[assignment]
        # It stays about the family it was about: Bernoulli and Binomial rows tell of the same p.
        return posterior if self.of in (None, posterior.of) else replace(posterior, of=self.of)  # type: ignore[type-var]

    def log_evidence(self, statistic: Totals) -> Any:
        """The log-probability of the data with the parameters integrated out; of families that share them, too."""
        if not isinstance(statistic, Totals):
            raise StatisticsError(f"the evidence is that of a statistic, as family.statistic(x) gives it, not of {statistic!r}")
        return self.family(statistic.family).log_evidence(self, statistic)

    def predictive(self, of: Family | None = None) -> Any:
        """The distribution of the next observation, the parameters integrated out.

        It may be one of another family than the rows were of, if this is a prior of its parameter, too.

        >>> from suffice.exponential import Bernoulli, Beta, Binomial
        >>> (Beta(1.0, 1.0) + Bernoulli().statistic([1, 0])).predictive(Binomial(10))
        BetaBinomial(n=10, a=2.0, b=2.0)
        """
        return (self.family(None) if of is None else self._family(of)).predictive(self)

    def family(self, of: Family | None) -> Family:
        """The family whose rows this prior is to learn from: one that shares the parameters it is about."""
        if of is None and self.of is None:
            raise ModelError(f"{self!r} may be about several families: say which, for instance predictive({self.example})")
        if of is None or self.of is None:
            return self._family(of if self.of is None else self.of)
        if not self._family(self.of).shares_parameters(of.bare):
            raise ModelError(f"{self!r} is about {self.of!r}, not about {of.bare!r}")
        return of.bare

    def _family(self, of: Any) -> Family:
        """A family that a caller names. Whether this is a prior of its parameters, it knows itself."""
        if not isinstance(of, Family):
            raise ModelError(f"{type(self).__name__} is asked about a family, for instance {self.example}, not about {of!r}")
        return of.bare
