"""A conjugate prior is a distribution of parameters that data turns into another of the same kind: `prior + statistic`.

What the statistic does to it is known by the family the statistic belongs to; the prior remembers that family in `of`.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from suffice.errors import ModelError, StatisticsError
from suffice.exponential.family import Family
from suffice.exponential.statistic import Array, Totals
from suffice.exponential.tables import summary
from suffice.exponential.values import same, shown


class Prior:
    """What all conjugate priors can do. `of` is the family whose parameters they are about; the first statistic tells it.

    >>> from suffice.exponential import Bernoulli, Beta
    >>> prior = Bernoulli().conjugate(total=[1.0], count=2.0)
    >>> prior, prior + Bernoulli().statistic([1, 1, 0])
    (Beta(a=1.0, b=1.0, of=Bernoulli()), Beta(a=3.0, b=2.0, of=Bernoulli()))
    """

    of: Family | None
    names: ClassVar[tuple[str, ...]]
    example: ClassVar[str] = "Poisson()"
    """A family that it may be about, for a refusal."""

    def given(self) -> Self:
        """This, if it has its parameters."""
        return self

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


class PriorOfBoth(Prior):
    """What the priors of a normal's mean and of its variance or covariance have in common. `rest`, what of the mean a double
    cannot hold, a posterior remembers, so that rows one by one make the same as all at once; it is not shown."""

    count: Any

    @property
    def _k(self) -> Array:
        return np.asarray(self.count)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self) if f.repr)  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        given = ((f.name, getattr(self, f.name)) for f in fields(self) if f.repr)  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{n}={shown(v)}' for n, v in given if v is not None)})"

    def _repr_html_(self) -> str:
        about = "" if self.of is None else f" of {self.of!r}"
        return summary(self, {name: getattr(self, name) for name in self.names}, f"{type(self).__name__}{about}")
