"""What is predicted of counts and waiting times when the probability or rate behind them is not known, but has a conjugate prior.

BetaBinomial           ∫ Binomial(x; n, p) Beta(p; a, b) dp          = C(n, x) B(a + x, b + n − x) / B(a, b)
BetaGeometric          ∫ p (1 − p)ˣ Beta(p; a, b) dp                 = B(a + 1, b + x) / B(a, b)
DirichletMultinomial   ∫ Multinomial(x; n, p) Dirichlet(p; α) dp     = n!/Π xᵢ! · B(α + x) / B(α)
Lomax                  ∫ Exponential(x; λ) Gamma(λ; a, b) dλ         = a/b (1 + x/b)^−(a+1)
NegativeBinomial       ∫ Poisson(x; λ) Gamma(λ; a, b) dλ             = Γ(a + x)/Γ(a) x! · (b/(1 + b))ᵃ (1/(1 + b))ˣ
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import ModelError, TooLarge, whole
from suffice.exponential.dirichlet import Dirichlet, others
from suffice.exponential.family import generator
from suffice.exponential.interval import Interval, checked_level, tail
from suffice.exponential.special import log_negative_binomial, log_polya
from suffice.exponential.statistic import aligned
from suffice.exponential.tables import summary
from suffice.exponential.values import DRAWN, Array, counts, observed, plain

LONGEST = 10_000_000
"""The terms that the sum below a quantile may have."""


class BetaBinomial(NamedTuple):
    """The successes in n trials whose probability is Beta(a, b).

    >>> BetaBinomial(10, 1.0, 1.0).mean, round(float(np.exp(BetaBinomial(10, 1.0, 1.0).log_prob(3))), 9)
    (5.0, 0.090909091)
    """

    n: Any
    a: Any
    b: Any

    @property
    def mean(self) -> Any:
        """n a/(a + b)."""
        n, a, b = self._arrays
        return plain(n * a / (a + b))

    @property
    def variance(self) -> Any:
        """n m (1 − m) (a + b + n)/(a + b + 1), m = a/(a + b)."""
        n, a, b = self._arrays
        return plain(n * a / (a + b) * (b / (a + b)) * ((a + b + n) / (a + b + 1.0)))

    @aligned
    def log_prob(self, x: Any) -> Any:
        """ln p(x) of each x; −inf outside 0, …, n."""
        n, a, b = self._arrays
        x, inside = counts(x, "BetaBinomial")
        inside = inside & (x <= n)
        x = np.where(inside, x, 0.0)
        outcomes = np.stack(np.broadcast_arrays(x, n - x), axis=-1)
        return plain(np.where(inside, log_polya(outcomes, np.stack([a, b], axis=-1)), -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        """n draws, the first axis."""
        trials, a, b = self._arrays
        rng = generator(n, seed)
        return np.asarray(rng.binomial(trials.astype(np.int64), rng.beta(a, b, (n, *a.shape))))

    def interval(self, level: float = 0.95) -> Interval:
        """The equal-tailed interval: the least numbers that have at least (1 ∓ level)/2 of the probability up to them."""
        outside = tail(level)
        n, a, b = self._arrays
        if n.size and n.max() + 1 > LONGEST:
            raise TooLarge(f"the interval is found by adding up {n.max() + 1:,.0f} probabilities, and {LONGEST:,} are too many")
        ends = np.array([_ends(BetaBinomial(*one), outside) for one in zip(n.flat, a.flat, b.flat, strict=True)])
        return Interval(*(plain(ends[:, i].reshape(n.shape)) for i in range(2)))

    @property
    def _arrays(self) -> tuple[Array, ...]:
        return tuple(np.array(v) for v in np.broadcast_arrays(*(np.asarray(f, dtype=np.float64) for f in self)))

    def _repr_html_(self) -> str:
        return summary(self, self._asdict(), type(self).__name__)


class BetaGeometric(NamedTuple):
    """The failures, from 0 up, before the first success, each trial a success with a probability that is Beta(a, b).

    >>> BetaGeometric(2.0, 1.0).mean, round(float(np.exp(BetaGeometric(2.0, 1.0).log_prob(0))), 6)
    (1.0, 0.666667)
    """

    a: Any
    b: Any

    @property
    @np.errstate(over="ignore")
    def mean(self) -> Any:
        """b/(a − 1); inf where a ≤ 1."""
        a, b = self._arrays
        return plain(np.where(a > 1.0, b / np.where(a > 1.0, a - 1.0, 1.0), np.inf))

    @property
    @np.errstate(over="ignore")
    def variance(self) -> Any:
        """a b (a + b − 1)/(a − 1)²(a − 2); inf where a ≤ 2."""
        a, b = self._arrays
        c = np.where(a > 2.0, a, 3.0)
        return plain(np.where(a > 2.0, c / (c - 1.0) * (b / (c - 1.0)) * ((c + b - 1.0) / (c - 2.0)), np.inf))

    @aligned
    def log_prob(self, x: Any) -> Any:
        """ln p(x) of each x; −inf outside 0, 1, 2, …."""
        a, b = self._arrays
        x, inside = counts(x, "BetaGeometric")
        first = np.log(a) - np.log(a + b + x)
        return plain(np.where(inside, first + self.log_survival(x), -np.inf))

    @aligned
    def log_survival(self, x: Any) -> Any:
        """ln P(X ≥ x) = ln B(a, b + x)/B(a, b)."""
        a, b = self._arrays
        x = np.maximum(observed(x, "BetaGeometric"), 0.0)
        # No success in x trials.
        return plain(log_polya(np.stack([np.zeros_like(x), x], axis=-1), np.stack([a, b], axis=-1)))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        """n draws, the first axis."""
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

    @property
    def _arrays(self) -> tuple[Array, ...]:
        return tuple(np.array(v) for v in np.broadcast_arrays(*(np.asarray(f, dtype=np.float64) for f in self)))

    def _repr_html_(self) -> str:
        return summary(self, self._asdict(), type(self).__name__)


class DirichletMultinomial(NamedTuple):
    """The counts of k states in n draws whose probabilities are Dirichlet(alpha), along the last axis.

    >>> p = DirichletMultinomial(2, [1.0, 1.0, 1.0])
    >>> p.mean.round(3), round(float(np.exp(p.log_prob([2, 0, 0]))), 6)
    (array([0.667, 0.667, 0.667]), 0.166667)
    """

    n: Any
    alpha: Any

    @property
    def mean(self) -> Any:
        """n α/A."""
        alpha = np.asarray(self.alpha, dtype=np.float64)
        return plain(self.n * alpha / alpha.sum(axis=-1, keepdims=True))

    @property
    def variance(self) -> Any:
        """The variance of the count of each state."""
        return BetaBinomial(self.n, *self._margins).variance

    @property
    def marginal(self) -> BetaBinomial:
        """The distributions of the count of each state, side by side."""
        return BetaBinomial(self.n, *self._margins)

    @aligned
    def log_prob(self, x: Any) -> Any:
        """ln p(x) of each vector x of counts; −inf where they do not sum to n."""
        x, inside = counts(x, "DirichletMultinomial")
        inside = inside.all(axis=-1) & (x.sum(axis=-1) == self.n)
        alpha = np.asarray(self.alpha, dtype=np.float64)
        return plain(np.where(inside, log_polya(np.where(inside[..., None], x, 0.0), alpha), -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        """n draws, the first axis."""
        rng = generator(n, seed)
        return np.asarray(rng.multinomial(whole(self.n, "n", 0), Dirichlet(self.alpha).sample(n, rng)))

    @property
    def _margins(self) -> tuple[Array, Array]:
        alpha = np.asarray(self.alpha, dtype=np.float64)
        return alpha, others(alpha)

    def _repr_html_(self) -> str:
        return summary(self, self._asdict(), type(self).__name__)


class Lomax(NamedTuple):
    """p(x) = shape/scale (1 + x/scale)^−(shape+1), x ≥ 0: a Pareto distribution that begins at 0.

    >>> Lomax(2.0, 3.0).mean, round(Lomax(2.0, 3.0).log_prob(0.0), 4)
    (3.0, -0.4055)
    """

    shape: Any
    scale: Any

    @property
    def mean(self) -> Any:
        """scale/(shape − 1); inf where shape ≤ 1."""
        shape = np.asarray(self.shape, dtype=np.float64)
        return plain(np.where(shape > 1.0, self.scale / np.where(shape > 1.0, shape - 1.0, 1.0), np.inf))

    @property
    def variance(self) -> Any:
        """scale² shape / ((shape − 1)² (shape − 2)); inf where 1 < shape ≤ 2, NaN where shape ≤ 1."""
        shape = np.asarray(self.shape, dtype=np.float64)
        a = np.where(shape > 2.0, shape, 3.0)
        factor = a / ((a - 1.0) ** 2 * (a - 2.0))
        with np.errstate(over="ignore"):
            finite = np.asarray(self.scale, dtype=np.float64) ** 2 * factor
        return plain(np.where(shape > 2.0, finite, np.where(shape > 1.0, np.inf, np.nan)))

    @aligned
    def log_prob(self, x: Any) -> Any:
        """ln p(x) of each x; −inf below 0."""
        x, shape = observed(x, "Lomax"), np.asarray(self.shape, dtype=np.float64)
        inside = np.log(shape) - np.log(self.scale) - (shape + 1.0) * np.log1p(np.where(x < 0.0, 0.0, x) / self.scale)
        return plain(np.where(x < 0.0, -np.inf, inside))

    @aligned
    def cdf(self, x: Any) -> Any:
        """P(X ≤ x)."""
        x = np.maximum(observed(x, "Lomax"), 0.0)
        return plain(-np.expm1(-np.asarray(self.shape) * np.log1p(x / self.scale)))

    def interval(self, level: float = 0.95) -> Any:
        """The equal-tailed interval of this probability: a pair."""
        shape, outside = np.asarray(self.shape, dtype=np.float64), tail(level)
        with np.errstate(over="ignore"):
            ends = (self.scale * np.expm1(-np.log(above) / shape) for above in (1.0 - outside, outside))
            return Interval(*map(plain, ends))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        """n draws, the first axis."""
        shape, scale = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in self))
        return np.asarray(scale * np.expm1(generator(n, seed).standard_exponential((n, *shape.shape)) / shape))

    def _repr_html_(self) -> str:
        return summary(self, self._asdict(), type(self).__name__)


class NegativeBinomial(NamedTuple):
    """The distribution of a count whose rate is Gamma(shape, rate): Σ over λ of Poisson(λ).

    >>> NegativeBinomial(3.0, 2.0).mean
    1.5
    """

    shape: Any
    rate: Any

    @property
    @np.errstate(over="ignore")
    def mean(self) -> Any:
        """shape/rate."""
        return plain(np.asarray(self.shape, dtype=np.float64) / self.rate)

    @property
    @np.errstate(over="ignore")
    def variance(self) -> Any:
        """mean (1 + 1/rate)."""
        return plain(self.mean * (1.0 + 1.0 / np.asarray(self.rate, dtype=np.float64)))

    @aligned
    def log_prob(self, n: Any) -> Any:
        """ln p(n) of each n; −inf outside 0, 1, 2, …."""
        rate = np.asarray(self.rate, dtype=np.float64)
        n, inside = counts(n, "NegativeBinomial")
        return plain(np.where(inside, log_negative_binomial(n, self.shape, rate / (1.0 + rate), 1.0 / (1.0 + rate)), -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        """n draws, the first axis."""
        shape, rate = np.broadcast_arrays(*(np.asarray(f, dtype=np.float64) for f in self))
        rng = generator(n, seed)
        with np.errstate(over="ignore"):
            rates = rng.standard_gamma(shape, (n, *shape.shape)) / rate
        if np.any(rates > DRAWN):
            raise ModelError(f"a rate was drawn that is {rates.max():g}: counts so large cannot be drawn exactly")
        return np.asarray(rng.poisson(rates))

    def interval(self, level: float = 0.95) -> Any:
        """The equal-tailed interval: the least numbers that have at least (1 ∓ level)/2 of the probability up to them."""
        from scipy.stats import nbinom

        rate = np.asarray(self.rate, dtype=np.float64)
        return Interval(*map(plain, nbinom.interval(checked_level(level), self.shape, rate / (1.0 + rate))))

    def _repr_html_(self) -> str:
        return summary(self, self._asdict(), type(self).__name__)


def _ends(one: BetaBinomial, outside: float) -> tuple[float, float]:
    below = np.cumsum(np.exp(one.log_prob(np.arange(one.n + 1.0))))
    above = np.cumsum(np.exp(one.log_prob(np.arange(one.n, -1.0, -1.0))))  # P(X ≥ n − i): the upper tail, added from its end
    return float(np.argmax(below >= outside)), float(one.n - np.argmax(above > outside))
