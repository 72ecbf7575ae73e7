"""The negative binomial distribution of a known size r: p(x | p) = C(x + r − 1, x) pʳ (1 − p)ˣ, the failures before the r-th
success; r need not be whole. Of r = 1 it is the geometric one, p(x | p) = p (1 − p)ˣ.

    T(x) = x,   h(x) = Γ(x + r)/Γ(r) x!,   η = ln(1 − p) < 0,   A(η) = −r ln(1 − e^η) = −r ln p
    E[T] = r (1 − p)/p,   Var[T] = r (1 − p)/p²
    conjugate   Beta(r·count, total)             prior + statistic   Beta(a + rN, b + S)
    evidence    ln B(a + rN, b + S) − ln B(a, b) + Σ ln h(x)

    Geometric       h(x) = 1,   conjugate Beta(count + 1, total)
    BetaGeometric   ∫ p (1 − p)ˣ Beta(p; a, b) dp = B(a + 1, b + x) / B(a, b)
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.errors import ModelError
from suffice.numerics.exponential.arithmetic.special import deviance, log_negative_binomial, log_polya
from suffice.numerics.exponential.arithmetic.symmetric import of_odds, single
from suffice.numerics.exponential.arithmetic.values import (
    DRAWN,
    Array,
    Interval,
    between,
    broadcast,
    counts,
    hold,
    observations,
    plain,
    tail,
    vectors,
)
from suffice.numerics.exponential.dirichlet import Beta
from suffice.numerics.exponential.predictives import Predictive
from suffice.numerics.exponential.protocol.family import Inside, Summed
from suffice.numerics.exponential.protocol.observable import generator
from suffice.numerics.exponential.protocol.statistic import Totals, explain_shapes


class Failures(Summed):
    """The failures before success number r, each trial a success with probability `p` > 0."""

    names: ClassVar[tuple[str, ...]] = ("p",)
    prior: ClassVar[str] = "Beta"

    @property
    @abstractmethod
    def _r(self) -> Array:
        """The number of successes."""

    def _check_parameter(self, name: str, value: Any) -> Array:
        return between(between(value, self._name_of("p"), 0.0, 1.0), self._name_of("p"), 0.0, open=True)

    def _inside(self, x: Any) -> Inside:
        return counts(x, self._title)

    @property
    def natural(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log1p(-self._need("p"))[..., None]

    def from_natural(self, eta: Any) -> Self:
        return replace(self, p=-np.expm1(self._negative(eta)))  # type: ignore[type-var]

    def from_mean(self, mu: Any) -> Self:
        mean = between(vectors(mu, f"E[T] of {self._title}", 1)[..., 0], f"E[T] of {self._title}", 0.0)
        return replace(self, p=self._r / (self._r + mean))  # type: ignore[type-var]

    def log_normaliser(self, eta: Any = None) -> Any:
        return plain(0.0 - self._r * np.log(self._p(eta)))

    def gradient(self, eta: Any = None) -> Array:
        return np.asarray(self._r * self._odds(eta))[..., None]

    def hessian(self, eta: Any = None) -> Array:
        odds = self._odds(eta)
        with np.errstate(over="ignore"):
            return np.asarray(self._r * odds * (1.0 + odds))[..., None, None]

    def _cumulants(self, order: int, eta: Any) -> Array:
        """r times a sum of products of the odds and one more than them, all positive."""
        odds = self._odds(eta)
        return single(-self._r * of_odds(-odds, 1.0 + odds, order - 1), order)

    def _divergence(self, other: Self) -> Array:
        """The divergence of one trial, times r/p trials; inf where the other never fails and this does."""
        p, q = self._need("p"), other._need("p")
        return np.asarray(self._r * (deviance(p, q) + deviance(1.0 - p, 1.0 - q)) / p)

    def increment(self, statistic: Totals) -> Array:
        """Successes, r in each row, and failures."""
        return np.stack(np.broadcast_arrays(self._r * statistic.count, statistic.total[..., 0]), axis=-1)

    def _p(self, eta: Any) -> Array:
        return self._need("p") if eta is None else np.asarray(-np.expm1(self._negative(eta)))

    def _odds(self, eta: Any) -> Array:
        """(1 − p)/p."""
        p = self._p(eta)
        return np.asarray((1.0 - p) / p if eta is None else 1.0 / np.expm1(-self._negative(eta)))

    def _negative(self, eta: Any) -> Array:
        """η, if it is one."""
        eta = self._at(eta)[..., 0]
        if np.any(eta >= 0.0):
            raise ModelError(f"η = ln(1 − p) of {self._title} must be below 0, not {eta.max():g}")
        return np.asarray(eta)


@dataclass(frozen=True, eq=False, repr=False)
class Geometric(Failures):
    """Failures, from 0 up, before the first success, each trial a success with probability `p` > 0. The trials are one more.

    >>> from suffice.exponential import Beta
    >>> seen = Geometric().statistic([0, 2, 1])
    >>> Geometric().estimate(seen)
    Geometric(p=0.5)
    >>> Beta(1.0, 1.0) + seen
    Beta(a=4.0, b=4.0, of=Geometric())
    """

    p: Any = None

    support: ClassVar[str] = "whole numbers from 0 up (failures before the first success)"

    @property
    def _r(self) -> Array:
        return np.ones(())

    def _log_density(self, x: Array) -> Array:
        p = self._need("p")
        return np.asarray(np.log(p) + sc.xlog1py(x, -p))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        p = self._need("p")
        if np.any(p < 1.0 / DRAWN):
            raise ModelError(f"p is {p.min():g}: counts so large cannot be drawn exactly")
        return np.asarray(generator(n, seed).geometric(p, (n, *p.shape)) - 1)

    def entropy(self) -> Any:
        """−(p ln p + (1 − p) ln(1 − p))/p."""
        p = self._need("p")
        return plain(-np.log(p) - sc.xlog1py(1.0 - p, -p) / p + 0.0)

    @explain_shapes
    def conjugate(self, total: Any, count: Any) -> Beta:
        count = between(count, "the count", 0.0)
        return Beta(count + 1.0, vectors(total, "the total of Geometric", 1)[..., 0], of=self.bare)

    def _predictive(self, prior: Beta) -> BetaGeometric:
        return BetaGeometric(prior.a, prior.b)


@dataclass(frozen=True, eq=False, repr=False)
class NegativeBinomialKnownSize(Failures):
    """Failures, from 0 up, before success number `size`, each trial a success with probability `p` > 0. (`NegativeBinomial`, a
    Poisson whose rate is drawn from a gamma, is the same of size `shape` and p = rate/(1 + rate).)

    >>> from suffice.exponential import Beta
    >>> seen = NegativeBinomialKnownSize(3).statistic([0, 2, 4])
    >>> NegativeBinomialKnownSize(3).estimate(seen)
    NegativeBinomialKnownSize(size=3.0, p=0.6)
    >>> Beta(1.0, 1.0) + seen
    Beta(a=10.0, b=7.0, of=NegativeBinomialKnownSize(size=3.0))
    """

    size: Any = None
    p: Any = None

    support: ClassVar[str] = "whole numbers from 0 up (failures before a number of successes)"

    def __post_init__(self) -> None:
        if self.size is None:
            raise ModelError(f"{self._title} needs its size, the known number of successes: {self._title}(3)")
        size = between(self.size, "the size of NegativeBinomialKnownSize", 0.0, open=True)
        object.__setattr__(self, "size", hold(size))
        super().__post_init__()

    def _check_parameter(self, name: str, value: Any) -> Array:
        return broadcast(self._title, p=super()._check_parameter(name, value), size=self._r)[0]

    @property
    def _r(self) -> Array:
        return np.asarray(self.size, dtype=np.float64)

    def log_base(self, x: Any) -> Array:
        x, inside = self._inside(x)
        return np.where(inside, -sc.betaln(self._r, x + 1.0) - np.log(self._r + x), -np.inf)

    def _log_density(self, x: Array) -> Array:
        p = self._need("p")
        return log_negative_binomial(x, self._r, p, 1.0 - p)

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        p, r = np.broadcast_arrays(self._need("p"), self._r)
        if np.any(r * (1.0 - p) / p > DRAWN):
            raise ModelError(f"p is {p.min():g}: counts so large cannot be drawn exactly")
        return np.asarray(generator(n, seed).negative_binomial(r, p, (n, *p.shape)))

    def entropy(self) -> Any:
        """The sum of −p ln p over all counts; beyond the first thousands the sum is an integral, good to 1e-9."""
        p, r = np.broadcast_arrays(self._need("p"), self._r)
        each = [_entropy(float(a), float(b)) for a, b in zip(r.reshape(-1), p.reshape(-1), strict=True)]
        return plain(np.array(each).reshape(p.shape))

    @explain_shapes
    def conjugate(self, total: Any, count: Any) -> Beta:
        return Beta(self._r * between(count, "the count", 0.0), vectors(total, "the total", 1)[..., 0], of=self.bare)

    def _predictive(self, prior: Beta) -> BetaNegativeBinomial:
        return BetaNegativeBinomial(self.size, prior.a, prior.b)


class BetaNegativeBinomial(Predictive, NamedTuple("BetaNegativeBinomial", [("size", Any), ("a", Any), ("b", Any)])):
    """The failures before success number `size`, each trial a success with a probability that is Beta(a, b).

    >>> p = BetaNegativeBinomial(2.0, 3.0, 1.0)
    >>> p.mean, round(float(np.exp(p.log_prob(0))), 6)
    (1.0, 0.6)
    """

    @property
    @np.errstate(over="ignore")
    def mean(self) -> Any:
        """r b/(a − 1); inf where a ≤ 1."""
        r, a, b = self._arrays
        return plain(np.where(a > 1.0, r * b / np.where(a > 1.0, a - 1.0, 1.0), np.inf))

    @property
    @np.errstate(over="ignore")
    def variance(self) -> Any:
        """r b (a + r − 1)(a + b − 1)/(a − 1)²(a − 2); inf where a ≤ 2."""
        r, a, b = self._arrays
        c = np.where(a > 2.0, a, 3.0)
        own = r * b / (c - 1.0) * ((c + r - 1.0) / (c - 1.0)) * ((c + b - 1.0) / (c - 2.0))
        return plain(np.where(a > 2.0, own, np.inf))

    @explain_shapes
    def log_prob(self, x: Any) -> Any:
        """ln p(x) of each x; −inf outside 0, 1, 2, …."""
        r, a, b = self._arrays
        x, inside = counts(x, "BetaNegativeBinomial")
        ways = -sc.betaln(r, x + 1.0) - np.log(r + x)
        return plain(np.where(inside, ways + sc.betaln(a + r, b + x) - sc.betaln(a, b), -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        r, a, b = self._arrays
        rng = generator(n, seed)
        chance = np.maximum(rng.beta(a, b, (n, *a.shape)), 1e-15)  # one that was drawn as 0 would never come to an end
        return np.asarray(rng.negative_binomial(r, chance))


class BetaGeometric(Predictive, NamedTuple("BetaGeometric", [("a", Any), ("b", Any)])):
    """The failures, from 0 up, before the first success, each trial a success with a probability that is Beta(a, b).

    >>> BetaGeometric(2.0, 1.0).mean, round(float(np.exp(BetaGeometric(2.0, 1.0).log_prob(0))), 6)
    (1.0, 0.666667)
    """

    @property
    def mean(self) -> Any:
        """b/(a − 1); inf where a ≤ 1."""
        return BetaNegativeBinomial(1.0, *self).mean

    @property
    def variance(self) -> Any:
        """a b (a + b − 1)/(a − 1)²(a − 2); inf where a ≤ 2."""
        return BetaNegativeBinomial(1.0, *self).variance

    @explain_shapes
    def log_prob(self, x: Any) -> Any:
        """ln p(x) of each x; −inf outside 0, 1, 2, …."""
        a, b = self._arrays
        x, inside = counts(x, "BetaGeometric")
        first = np.log(a) - np.log(a + b + x)
        return plain(np.where(inside, first + self.log_survival(x), -np.inf))

    @explain_shapes
    def log_survival(self, x: Any) -> Any:
        """ln P(X ≥ x) = ln B(a, b + x)/B(a, b)."""
        a, b = self._arrays
        x = np.maximum(observations(x, "BetaGeometric"), 0.0)
        # No success in x trials.
        return plain(log_polya(np.stack([np.zeros_like(x), x], axis=-1), np.stack([a, b], axis=-1)))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        a, b = self._arrays
        rng = generator(n, seed)
        chance = np.maximum(rng.beta(a, b, (n, *a.shape)), 1e-18)  # one that was drawn as 0 would never come to an end
        return np.asarray(rng.geometric(chance) - 1)

    def interval(self, level: float = 0.95) -> Interval:
        """The equal-tailed interval: the least numbers that have at least (1 ∓ level)/2 of the probability up to them."""
        outside = tail(level)
        return Interval(plain(self._quantile(np.log1p(-outside))), plain(self._quantile(np.log(outside))))

    def _quantile(self, above: float) -> Array:
        """The least x with ln P(X > x) ≤ above, by bisection; inf beyond all doubles that are whole numbers."""
        low = np.full(self._arrays[0].shape, -1.0)
        high = np.full(low.shape, 2.0**53)
        for _ in range(55):
            middle = np.floor((low + high) / 2.0)
            enough = np.asarray(self.log_survival(middle + 1.0)) <= above
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.where(high >= 2.0**53 - 1.0, np.inf, np.maximum(high, 0.0))


FIRST = 4096
"""Counts that are summed one by one."""


def _entropy(r: float, p: float) -> float:
    if p == 1.0:
        return 0.0
    mean = r * (1.0 - p) / p
    last = mean + 12.0 * np.sqrt(mean / p) - 40.0 / np.log1p(-p)  # the tail falls as (1 − p)ˣ

    def surprise(x: Array) -> Array:
        """−p(x) ln p(x)."""
        logs = log_negative_binomial(x, np.array(r), np.array(p), np.array(1.0 - p))
        return np.asarray(-np.exp(logs) * np.where(np.isneginf(logs), 0.0, logs))

    x = np.arange(min(last + 60.0, FIRST))
    total = surprise(x).sum()
    if last > FIRST:
        nodes, own = np.polynomial.legendre.leggauss(20)
        ends = np.geomspace(FIRST - 0.5, last, 257)
        half = 0.5 * np.diff(ends)[:, None]
        total += (half * own * surprise(ends[:-1, None] + half * (nodes + 1.0))).sum()
        total += np.diff(surprise(np.array([FIRST - 1.0, FIRST])))[0] / 24.0  # Euler and Maclaurin's first term
    return float(total)
