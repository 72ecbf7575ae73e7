"""The Poisson distribution: p(x | λ) = λˣ e^(−λ) / x!, x in {0, 1, 2, …}.

    T(x) = x,   h(x) = 1/x!,   η = ln λ,   A(η) = e^η = λ,   E[T] = Var[T] = λ

    conjugate   Gamma(total, count)              prior + statistic   Gamma(a + S, b + N)
    evidence    ln Γ(a + S)/Γ(a) + a ln b − (a + S) ln(b + N) + Σ ln h(x),   S = Σ x of N rows

Gelman et al. 2013, Bayesian Data Analysis, 3rd ed., p. 44.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.errors import ModelError
from suffice.exponential.family import Family, generator
from suffice.exponential.special import deviance, lattice, log_negative_binomial, log_poisson
from suffice.exponential.statistic import Totals, aligned
from suffice.exponential.values import Array, bounded, held, observed, plain, vectors

if TYPE_CHECKING:
    from suffice.exponential.gamma import Gamma
    from suffice.exponential.predictives import NegativeBinomial

LARGEST = 1e15
"""Counts are not drawn at larger rates: not every whole number is a double beyond."""


@dataclass(frozen=True, eq=False, repr=False)
class Poisson(Family):
    """Counts of a given `rate`, which is their mean. The conjugate prior is `Gamma`, the predictive `NegativeBinomial`.

    >>> from suffice.exponential import Gamma
    >>> seen = Poisson().statistic([3, 1, 4, 1, 5])
    >>> Poisson().estimate(seen)
    Poisson(rate=2.8)
    >>> posterior = Gamma(2.0, 1.0) + seen
    >>> posterior, posterior.predictive()
    (Gamma(shape=16.0, rate=6.0, of=Poisson()), NegativeBinomial(shape=16.0, rate=6.0))
    """

    rate: Any = None

    names: ClassVar[tuple[str, ...]] = ("rate",)
    prior: ClassVar[str] = "Gamma"
    support: ClassVar[str] = "whole numbers from 0 up"

    def __post_init__(self) -> None:
        if self.rate is not None:
            object.__setattr__(self, "rate", held(bounded(self.rate, "the rate of Poisson", 0.0)))

    @property
    def mean(self) -> Any:
        """E[x] = λ."""
        return plain(self._need("rate"))

    @property
    def variance(self) -> Any:
        """Var[x] = λ."""
        return plain(self._need("rate"))

    def sufficient(self, x: Any) -> Array:
        return observed(x, "Poisson")[..., None]

    def log_base(self, x: Any) -> Array:
        from scipy.special import gammaln

        x, inside = counts(x, "Poisson")
        return np.where(inside, -gammaln(x + 1.0), -np.inf)

    @property
    def natural(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self._need("rate"))[..., None]

    def from_natural(self, eta: Any) -> Self:
        return type(self)(self._rate(eta))

    def from_mean(self, mu: Any) -> Self:
        return type(self)(vectors(mu, "E[T] of Poisson", 1)[..., 0])

    def log_normaliser(self, eta: Any = None) -> Any:
        return plain(self._rate(eta))

    def gradient(self, eta: Any = None) -> Array:
        return self._rate(eta)[..., None]

    def hessian(self, eta: Any = None) -> Array:
        return self._rate(eta)[..., None, None]

    @aligned
    def log_prob(self, x: Any) -> Any:
        rate = self._need("rate")
        x, inside = counts(x, "Poisson")
        return plain(np.where(inside, log_poisson(x, rate), -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        rate = self._need("rate")
        if np.any(rate > LARGEST):
            raise ModelError(f"the rate is {rate.max():g}: counts so large cannot be drawn exactly")
        return np.asarray(generator(n, seed).poisson(rate, (n, *rate.shape)))

    def entropy(self) -> Any:
        """The sum of −p ln p over all counts, exact to rounding."""
        rate = self._need("rate")
        x, weight = lattice(rate, np.sqrt(rate))
        logs = log_poisson(x, rate[..., None])
        return plain(-(weight * np.exp(logs) * np.where(np.isneginf(logs), 0.0, logs)).sum(axis=-1) + 0.0)

    @aligned
    def kl(self, other: Self) -> Any:
        """λ₁ ln(λ₁/λ₂) − λ₁ + λ₂; inf where the other rate is 0 and this is not."""
        self._comparable(other)
        return plain(deviance(self._need("rate"), other._need("rate")))

    @aligned
    def conjugate(self, total: Any, count: Any) -> Gamma:
        from suffice.exponential.gamma import Gamma

        return Gamma(vectors(total, "the total of Poisson", 1)[..., 0], count, of=self.bare)

    @aligned
    def posterior(self, prior: Any, statistic: Totals) -> Gamma:
        from suffice.exponential.gamma import Gamma

        shape, rate = self._imagined(prior)
        return Gamma(shape + self._own(statistic).total[..., 0], rate + statistic.count, of=self.bare)

    @aligned
    def log_evidence(self, prior: Any, statistic: Totals) -> Any:
        """The probability of the sum, and that of the rows when it is known: of one row that is 1, and all digits are there; of
        several they end where the rounding of Σ ln x! does, which is 4e-3 where that is 3e13, as it is of a count of 1e12."""
        from scipy.special import gammaln, xlogy

        shape, rate = self._imagined(prior)
        events, rows = np.maximum(self._own(statistic).total[..., 0], 0.0), statistic.count
        together = log_negative_binomial(events, shape, rate / (rate + rows), rows / (rate + rows))
        return plain(together + (gammaln(events + 1.0) + statistic.log_base - xlogy(events, rows)))

    def predictive(self, prior: Any) -> NegativeBinomial:
        from suffice.exponential.predictives import NegativeBinomial

        return NegativeBinomial(*(plain(a) for a in self._imagined(prior)))

    def _slack(self, statistic: Totals) -> Array:
        return statistic.total

    def _rate(self, eta: Any) -> Array:
        if eta is None:
            return self._need("rate")
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self._at(eta)[..., 0]))


def counts(x: Any, what: str) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Observations, and whether each is a whole number from 0 up; 0 in place of those that are not.

    >>> counts([2, -1, 0.5], "Poisson")
    (array([2., 0., 0.]), array([ True, False, False]))
    """
    x = observed(x, what)
    inside = (x >= 0.0) & (x == np.rint(x)) & np.isfinite(x)
    return np.where(inside, x, 0.0), inside
