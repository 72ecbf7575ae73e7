"""A conjugate prior is a distribution of parameters that data turns into another of the same kind: `prior + statistic`.

What the statistic does to it is known by the family the statistic belongs to; the prior remembers that family in `of`.
"""

from __future__ import annotations

from typing import Any, Self

from suffice.errors import ModelError
from suffice.exponential.family import Family
from suffice.exponential.statistic import Array, Totals


class Prior:
    """What all conjugate priors can do. `of` is the family whose parameters they are about; the first statistic tells it."""

    of: Family | None

    def __add__(self, statistic: Totals) -> Self:
        """The posterior: what was imagined and what was seen, together."""
        return self.family(statistic.family).posterior(self, statistic)  # type: ignore[return-value]

    def log_evidence(self, statistic: Totals) -> Array:
        """The log-probability of the data with the parameters integrated out."""
        return self.family(statistic.family).log_evidence(self, statistic)

    def predictive(self, of: Family | None = None) -> Any:
        """The distribution of the next observation, the parameters integrated out."""
        return self.family(of).predictive(self)

    def family(self, of: Family | None) -> Family:
        """The family this prior is about, given what a caller says of it."""
        if of is None and self.of is None:
            raise ModelError(f"{self!r} may be about several families: say which, for instance predictive(Poisson())")
        if of is not None and self.of is not None and of.bare != self.of:
            raise ModelError(f"{self!r} is about {self.of!r}, not about {of.bare!r}")
        return of.bare if of is not None else self.of  # type: ignore[return-value]
