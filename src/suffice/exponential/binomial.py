"""The binomial distribution: p(x | p) = n!/x!(n−x)! pˣ (1 − p)ⁿ⁻ˣ, x in {0, …, n}, n known. What it can do is in `trials`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from suffice.exponential.statistic import Totals
from suffice.exponential.trials import Trials
from suffice.exponential.values import Array, bounded, broadcast, held, natural_numbers, plain, rows_of_several

if TYPE_CHECKING:
    from suffice.exponential.predictives import BetaBinomial


@dataclass(frozen=True, eq=False, repr=False)
class Binomial(Trials):
    """The successes in `n` trials, each with probability `p`. The conjugate prior of p is `Beta`, the predictive `BetaBinomial`.

    >>> from suffice.exponential import Beta
    >>> seen = Binomial(10).statistic([3, 4, 8])
    >>> Binomial(10).estimate(seen)
    Binomial(n=10, p=0.5)
    >>> (Beta(1.0, 1.0) + seen).predictive()
    BetaBinomial(n=10, a=16.0, b=16.0)
    """

    n: Any
    p: Any = None

    support: ClassVar[str] = "whole numbers from 0 to n"

    def __post_init__(self) -> None:
        n = natural_numbers(self.n, "n of Binomial", 1)
        object.__setattr__(self, "n", int(n) if n.ndim == 0 else held(n))
        if self.p is not None:
            p = bounded(self.p, "p of Binomial", 0.0, 1.0)
            object.__setattr__(self, "p", held(np.array(broadcast("Binomial", p=p, n=n)[0])))

    @property
    def trials(self) -> Array:
        return np.asarray(self.n, dtype=np.float64)

    def with_p(self, p: Any) -> Self:
        return replace(self, p=p)

    def predictive(self, prior: Any) -> BetaBinomial:
        from suffice.exponential.predictives import BetaBinomial

        a, b = self._imagined(prior)
        return BetaBinomial(self.n, plain(a), plain(b))

    def _totals(self, x: Any, weights: Any) -> Totals:
        rows_of_several(x, self.n, "Binomial")
        return super()._totals(x, weights)
