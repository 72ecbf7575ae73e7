"""The Bernoulli distribution: p(x | p) = pˣ (1 − p)¹⁻ˣ, x in {0, 1}. What it can do is in `trials`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, listed
from suffice.exponential.trials import Trials
from suffice.exponential.values import Array, bounded, held, plain
from suffice.variables import Finite, Variable


@dataclass(frozen=True, eq=False, repr=False)
class Bernoulli(Trials):
    """One trial with the probability `p` of a success, 1. The conjugate prior of p is `Beta`.

    >>> from suffice.exponential import Beta
    >>> tosses = Bernoulli().statistic([1, 0, 0, 1, 1])
    >>> Bernoulli().estimate(tosses)
    Bernoulli(p=0.6)
    >>> Beta(1.0, 1.0) + tosses, round(float(np.exp(-Beta(1.0, 1.0).log_evidence(tosses))), 9)
    (Beta(a=4.0, b=3.0, of=Bernoulli()), 60.0)
    """

    p: Any = None

    support: ClassVar[str] = "0 and 1"

    def __post_init__(self) -> None:
        if self.p is not None:
            object.__setattr__(self, "p", held(bounded(self.p, "p of Bernoulli", 0.0, 1.0)))

    @property
    def trials(self) -> Array:
        return np.ones(())

    def with_p(self, p: Any) -> Self:
        return type(self)(p)

    def entropy(self) -> Any:
        """−p ln p − (1 − p) ln(1 − p)."""
        from scipy.special import xlog1py, xlogy

        p = self._need("p")
        return plain(-xlogy(p, p) - xlog1py(1.0 - p, -p) + 0.0)

    def predictive(self, prior: Any) -> Bernoulli:
        """Bernoulli(a/(a + b))."""
        a, b = self._imagined(prior)
        return Bernoulli(a / (a + b))

    def _meaning(self, variable: Variable) -> npt.NDArray[Any] | None:
        """A column of two states is 1 where it has the second, of states 0 and 1 or false and true where it has that one."""
        if not isinstance(variable, Finite):
            return super()._meaning(variable)
        meaning = {"0": 0, "false": 0, "1": 1, "true": 1}
        if all(state in meaning for state in variable.states):
            return np.array([meaning[state] for state in variable.states])
        if variable.n_states == 2:
            return np.arange(2)
        raise DataError(
            f"Bernoulli needs a column of two states, and {variable.name!r} has {variable.n_states}: {listed(variable.states)}"
        )
