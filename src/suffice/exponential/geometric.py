"""The geometric distribution, of the failures before the first success: p(x | p) = p (1 − p)ˣ, x in {0, 1, 2, …}.

T(x) = x,   h(x) = 1,   η = ln(1 − p) < 0,   A(η) = −ln(1 − e^η) = −ln p,   E[T] = (1 − p)/p,   Var[T] = (1 − p)/p²

conjugate   Beta(count + 1, total)           prior + statistic   Beta(a + N, b + S)
evidence    ln B(a + N, b + S) − ln B(a, b),   S = Σ x of N rows
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.errors import ModelError
from suffice.exponential.family import Family, generator
from suffice.exponential.poisson import LARGEST, counts
from suffice.exponential.special import deviance, log_counts_evidence
from suffice.exponential.statistic import Totals, aligned
from suffice.exponential.values import Array, bounded, held, observed, plain, vectors

if TYPE_CHECKING:
    from suffice.exponential.beta import Beta
    from suffice.exponential.predictives import BetaGeometric


@dataclass(frozen=True, eq=False, repr=False)
class Geometric(Family):
    """Failures, from 0 up, before the first success, each trial a success with probability `p` > 0. The trials are one more.

    >>> from suffice.exponential import Beta
    >>> seen = Geometric().statistic([0, 2, 1])
    >>> Geometric().estimate(seen)
    Geometric(p=0.5)
    >>> Beta(1.0, 1.0) + seen
    Beta(a=4.0, b=4.0, of=Geometric())
    """

    p: Any = None

    names: ClassVar[tuple[str, ...]] = ("p",)
    prior: ClassVar[str] = "Beta"
    support: ClassVar[str] = "whole numbers from 0 up (failures before the first success)"

    def __post_init__(self) -> None:
        if self.p is not None:
            p = bounded(self.p, "p of Geometric", 0.0, 1.0)
            bounded(p, "p of Geometric", 0.0, open=True)
            object.__setattr__(self, "p", held(p))

    @property
    def mean(self) -> Any:
        """E[x] = (1 − p)/p."""
        return plain(self._mean(None))

    @property
    def variance(self) -> Any:
        """Var[x] = (1 − p)/p²."""
        return plain(self.hessian()[..., 0, 0])

    def sufficient(self, x: Any) -> Array:
        return observed(x, "Geometric")[..., None]

    def log_base(self, x: Any) -> Array:
        return np.where(counts(x, "Geometric")[1], 0.0, -np.inf)

    @property
    def natural(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log1p(-self._need("p"))[..., None]

    def from_natural(self, eta: Any) -> Self:
        return type(self)(-np.expm1(self._negative(eta)))

    def from_mean(self, mu: Any) -> Self:
        return type(self)(1.0 / (1.0 + bounded(vectors(mu, "E[T] of Geometric", 1)[..., 0], "E[T] of Geometric", 0.0)))

    def log_normaliser(self, eta: Any = None) -> Any:
        return plain(0.0 - np.log(self._need("p") if eta is None else -np.expm1(self._negative(eta))))

    def gradient(self, eta: Any = None) -> Array:
        return self._mean(eta)[..., None]

    def hessian(self, eta: Any = None) -> Array:
        mean = self._mean(eta)
        with np.errstate(over="ignore"):
            return np.asarray(mean * (1.0 + mean))[..., None, None]

    @aligned
    def log_prob(self, x: Any) -> Any:
        from scipy.special import xlog1py

        p = self._need("p")
        x, inside = counts(x, "Geometric")
        return plain(np.where(inside, np.log(p) + xlog1py(x, -p), -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        p = self._need("p")
        if np.any(p < 1.0 / LARGEST):
            raise ModelError(f"p is {p.min():g}: counts so large cannot be drawn exactly")
        return np.asarray(generator(n, seed).geometric(p, (n, *p.shape)) - 1)

    def entropy(self) -> Any:
        """−(p ln p + (1 − p) ln(1 − p))/p."""
        from scipy.special import xlog1py

        p = self._need("p")
        return plain(-np.log(p) - xlog1py(1.0 - p, -p) / p + 0.0)

    @aligned
    def kl(self, other: Self) -> Any:
        """The divergence of one trial, times 1/p trials; inf where the other never fails and this does."""
        self._comparable(other)
        p, r = self._need("p"), other._need("p")
        return plain((deviance(p, r) + deviance(1.0 - p, 1.0 - r)) / p)

    @aligned
    def conjugate(self, total: Any, count: Any) -> Beta:
        from suffice.exponential.beta import Beta

        count = bounded(count, "the count", 0.0)
        return Beta(count + 1.0, vectors(total, "the total of Geometric", 1)[..., 0], of=self.bare)

    @aligned
    def posterior(self, prior: Any, statistic: Totals) -> Beta:
        from suffice.exponential.beta import Beta

        a, b = self._imagined(prior)
        return Beta(a + self._own(statistic).count, b + statistic.total[..., 0], of=self.bare)

    @aligned
    def log_evidence(self, prior: Any, statistic: Totals) -> Any:
        a, b = self._imagined(prior)
        rows, failures = self._own(statistic).count, statistic.total[..., 0]
        outcomes = np.stack(np.broadcast_arrays(rows, failures), axis=-1)
        return plain(log_counts_evidence(outcomes, np.stack([a, b], axis=-1), statistic.log_base))

    def predictive(self, prior: Any) -> BetaGeometric:
        from suffice.exponential.predictives import BetaGeometric

        return BetaGeometric(*(plain(a) for a in self._imagined(prior)))

    def _slack(self, statistic: Totals) -> Array:
        return statistic.total

    def _negative(self, eta: Any) -> Array:
        """η, if it is one."""
        eta = self._at(eta)[..., 0]
        if np.any(eta >= 0.0):
            raise ModelError(f"η = ln(1 − p) of Geometric must be below 0, not {eta.max():g}")
        return np.asarray(eta)

    def _mean(self, eta: Any) -> Array:
        if eta is None:
            p = self._need("p")
            return np.asarray((1.0 - p) / p)
        return np.asarray(1.0 / np.expm1(-self._negative(eta)))
