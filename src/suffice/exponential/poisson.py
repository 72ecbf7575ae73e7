"""The Poisson distribution: p(x | λ) = λˣ e^(−λ) / x!, x a count from 0 up.

    T(x) = x,   h(x) = 1/x!,   η = ln λ,   A(η) = e^η = λ,   E[T] = Var[T] = λ
    conjugate   Gamma(total, count)              prior + statistic   Gamma(a + S, b + N)
    evidence    ln Γ(a + S)/Γ(a) + a ln b − (a + S) ln(b + N) + Σ ln h(x),   S = Σ x of N rows

Gelman et al. 2013, Bayesian Data Analysis, 3rd ed., p. 44.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.errors import DataError, ModelError
from suffice.exponential.arithmetic.special import deviance, lattice, log_negative_binomial, log_poisson
from suffice.exponential.arithmetic.symmetric import single
from suffice.exponential.arithmetic.values import DRAWN, Array, between, counts, plain, vectors
from suffice.exponential.gamma import Gamma
from suffice.exponential.predictives import NegativeBinomial
from suffice.exponential.protocol.family import Inside, Summed, generator
from suffice.exponential.protocol.statistic import Totals, explain_shapes

TOGETHER = 4096
"""Rates whose sums are held in memory at once."""


@dataclass(frozen=True, eq=False, repr=False)
class Poisson(Summed):
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

    def _check_parameter(self, name: str, value: Any) -> Array:
        return between(value, "the rate of Poisson", 0.0)

    def _inside(self, x: Any) -> Inside:
        return counts(x, "Poisson")

    def log_base(self, x: Any) -> Array:
        x, inside = self._inside(x)
        return np.where(inside, -sc.gammaln(x + 1.0), -np.inf)

    @property
    def natural(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self._need("rate"))[..., None]

    def from_natural(self, eta: Any) -> Self:
        return type(self)(self.log_normaliser(eta))

    def from_mean(self, mu: Any) -> Self:
        return type(self)(vectors(mu, "E[T] of Poisson", 1)[..., 0])

    def log_normaliser(self, eta: Any = None) -> Any:
        with np.errstate(over="ignore"):
            return plain(self._need("rate") if eta is None else np.exp(self._at(eta)[..., 0]))

    def gradient(self, eta: Any = None) -> Array:
        return np.asarray(self.log_normaliser(eta))[..., None]

    def hessian(self, eta: Any = None) -> Array:
        return self.gradient(eta)[..., None]

    def _cumulants(self, order: int, eta: Any) -> Array:
        """λ, of every order."""
        return single(self.log_normaliser(eta), order)

    def _log_density(self, x: Array) -> Array:
        return log_poisson(x, self._need("rate"))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        rate = self._need("rate")
        if np.any(rate > DRAWN):
            raise ModelError(f"the rate is {rate.max():g}: counts so large cannot be drawn exactly")
        return np.asarray(generator(n, seed).poisson(rate, (n, *rate.shape)))

    def entropy(self) -> Any:
        """The sum of −p ln p over all counts, exact to rounding; of many equal rates taken once."""
        rates, inverse = np.unique(self._need("rate"), return_inverse=True)
        parts = [_entropy(rates[i : i + TOGETHER]) for i in range(0, len(rates), TOGETHER)]
        return plain(np.concatenate([np.zeros(0), *parts])[inverse].reshape(np.shape(self.rate)))

    def _divergence(self, other: Self) -> Array:
        """λ₁ ln(λ₁/λ₂) − λ₁ + λ₂; inf where the other rate is 0 and this is not."""
        return deviance(self._need("rate"), other._need("rate"))

    @explain_shapes
    def conjugate(self, total: Any, count: Any) -> Gamma:
        return Gamma(vectors(total, "the total of Poisson", 1)[..., 0], count, of=self.bare)

    def increment(self, statistic: Totals) -> tuple[Array, Array]:
        """Events, and rows."""
        return statistic.total[..., 0], statistic.count

    @explain_shapes
    def log_evidence(self, prior: Any, statistic: Totals) -> Any:
        """The probability of the sum, and that of the rows when it is known: of one row that is 1, and all digits are there; of
        several they end where the rounding of Σ ln x! does, which is 4e-3 where that is 3e13, as it is of a count of 1e12."""
        shape, rate = self._prior(prior)._parameters()
        events, rows = np.maximum(self._own(statistic).total[..., 0], 0.0), statistic.count
        together = log_negative_binomial(events, shape, rate / (rate + rows), rows / (rate + rows))
        return plain(together + (sc.gammaln(events + 1.0) + statistic.log_base - sc.xlogy(events, rows)))

    def _predictive(self, prior: Gamma) -> NegativeBinomial:
        return NegativeBinomial(prior.shape, prior.rate)


def _entropy(rate: Array) -> Array:
    """The sum of −p ln p of each rate, over so many counts that the others make no difference."""
    x, weight = lattice(rate, np.sqrt(rate))
    logs = log_poisson(x, rate[..., None])
    return np.asarray(-(weight * np.exp(logs) * np.where(np.isneginf(logs), 0.0, logs)).sum(axis=-1) + 0.0)


def log_poisson_peak(y: Array) -> Array:
    """ln p(y) of Poisson counts y, each at its own mean y; most counts are small, and looked up.

    >>> log_poisson_peak(np.array([0.0, 1.0, 1e9])).round(4)
    array([  0.    ,  -1.    , -11.2806])
    """
    peaks = _peaks()
    small = y < len(peaks)
    found = peaks[np.where(small, y, 0.0).astype(np.intp)]
    return found if small.all() else np.where(small, found, log_poisson(y, y))


@cache
def _peaks() -> Array:
    counts = np.arange(4096.0)
    return log_poisson(counts, counts)


def drawable(mean: Array) -> Array:
    """Means of counts, if such counts can be drawn exactly."""
    if mean.size and not mean.max() <= DRAWN:
        raise DataError(f"the mean {mean.max():g} of a count is too large: such counts cannot be drawn exactly")
    return mean
