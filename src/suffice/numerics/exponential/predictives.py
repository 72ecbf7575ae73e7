"""What is predicted of the next observation when the parameter behind it is not known, but has a conjugate prior.

BetaBinomial           ∫ Binomial(x; n, p) Beta(p; a, b) dp          = C(n, x) B(a + x, b + n − x) / B(a, b)
DirichletMultinomial   ∫ Multinomial(x; n, p) Dirichlet(p; α) dp     = n!/Π xᵢ! · B(α + x) / B(α)
Lomax                  ∫ Exponential(x; λ) Gamma(λ; a, b) dλ         = a/b (1 + x/b)^−(a+1)
NegativeBinomial       ∫ Poisson(x; λ) Gamma(λ; a, b) dλ             = Γ(a + x)/Γ(a) x! · (b/(1 + b))ᵃ (1/(1 + b))ˣ
StudentT               of a normal whose variance is not known, and MultivariateT, whose covariance is not
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc, st
from suffice.errors import ModelError, TooLarge, checked_level, whole
from suffice.numerics.exponential.arithmetic.special import log_gamma_step, log_negative_binomial, log_polya, student_end
from suffice.numerics.exponential.arithmetic.symmetric import scaled_cholesky
from suffice.numerics.exponential.arithmetic.values import (
    DRAWN,
    Array,
    Interval,
    components,
    counts,
    observations,
    plain,
    summary,
    tail,
)
from suffice.numerics.exponential.dirichlet import Dirichlet, others
from suffice.numerics.exponential.protocol.observable import generator
from suffice.numerics.exponential.protocol.statistic import explain_shapes

LONGEST = 10_000_000
"""The terms that the sum below a quantile may have."""


class Predictive:
    """What all predictives can do: they are tuples of their parameters, numbers or arrays of so many side by side."""

    __slots__ = ()

    @property
    def _arrays(self) -> tuple[Array, ...]:
        """The parameters as arrays of one shape."""
        parameters = (np.asarray(value, dtype=np.float64) for value in cast(tuple[Any, ...], self))
        return tuple(np.array(array) for array in np.broadcast_arrays(*parameters))

    def _repr_html_(self) -> str:
        return summary(self, cast(Any, self)._asdict(), type(self).__name__)

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        """n draws, the first axis."""
        raise NotImplementedError


class BetaBinomial(Predictive, NamedTuple("BetaBinomial", [("n", Any), ("a", Any), ("b", Any)])):
    """The successes in n trials whose probability is Beta(a, b).

    >>> BetaBinomial(10, 1.0, 1.0).mean, round(float(np.exp(BetaBinomial(10, 1.0, 1.0).log_prob(3))), 9)
    (5.0, 0.090909091)
    """

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

    @explain_shapes
    def log_prob(self, x: Any) -> Any:
        """ln p(x) of each x; −inf outside 0, …, n."""
        n, a, b = self._arrays
        x, inside = counts(x, "BetaBinomial")
        inside = inside & (x <= n)
        x = np.where(inside, x, 0.0)
        outcomes = np.stack(np.broadcast_arrays(x, n - x), axis=-1)
        return plain(np.where(inside, log_polya(outcomes, np.stack([a, b], axis=-1)), -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        trials, a, b = self._arrays
        rng = generator(n, seed)
        return np.asarray(rng.binomial(trials.astype(np.int64), rng.beta(a, b, (n, *a.shape))))

    def interval(self, level: float = 0.95) -> Interval:
        """The equal-tailed interval: the least numbers that have at least (1 ∓ level)/2 of the probability up to them."""
        outside = tail(level)
        n, a, b = self._arrays
        if n.size and n.max() + 1 > LONGEST:
            raise TooLarge(f"the interval is found by adding up {n.max() + 1:,.0f} probabilities, and {LONGEST:,} are too many")
        ends = np.empty((2, n.size))
        for i, one in enumerate(map(BetaBinomial, n.flat, a.flat, b.flat)):
            below = np.cumsum(np.exp(one.log_prob(np.arange(one.n + 1.0))))
            above = np.cumsum(np.exp(one.log_prob(np.arange(one.n, -1.0, -1.0))))  # P(X ≥ n − i): the upper tail, from its end
            ends[:, i] = np.argmax(below >= outside), one.n - np.argmax(above > outside)
        return Interval(*(plain(end.reshape(n.shape)) for end in ends))


class DirichletMultinomial(Predictive, NamedTuple("DirichletMultinomial", [("n", Any), ("alpha", Any)])):
    """The counts of k states in n draws whose probabilities are Dirichlet(alpha), along the last axis.

    >>> p = DirichletMultinomial(2, [1.0, 1.0, 1.0])
    >>> p.mean.round(3), round(float(np.exp(p.log_prob([2, 0, 0]))), 6)
    (array([0.667, 0.667, 0.667]), 0.166667)
    """

    @property
    def mean(self) -> Any:
        """n α/A."""
        return self.marginal.mean

    @property
    def variance(self) -> Any:
        """The variance of the count of each state."""
        return self.marginal.variance

    @property
    def marginal(self) -> BetaBinomial:
        """The distributions of the count of each state, side by side."""
        alpha = np.asarray(self.alpha, dtype=np.float64)
        return BetaBinomial(self.n, alpha, others(alpha))

    @explain_shapes
    def log_prob(self, x: Any) -> Any:
        """ln p(x) of each vector x of counts; −inf where they do not sum to n."""
        x, inside = counts(x, "DirichletMultinomial")
        inside = inside.all(axis=-1) & (x.sum(axis=-1) == self.n)
        alpha = np.asarray(self.alpha, dtype=np.float64)
        return plain(np.where(inside, log_polya(np.where(inside[..., None], x, 0.0), alpha), -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        rng = generator(n, seed)
        return np.asarray(rng.multinomial(whole(self.n, "n", 0), Dirichlet(self.alpha).sample(n, rng)))


class Lomax(Predictive, NamedTuple("Lomax", [("shape", Any), ("scale", Any)])):
    """p(x) = shape/scale (1 + x/scale)^−(shape+1), x ≥ 0: a Pareto distribution that begins at 0.

    >>> Lomax(2.0, 3.0).mean, round(Lomax(2.0, 3.0).log_prob(0.0), 4)
    (3.0, -0.4055)
    """

    @property
    def mean(self) -> Any:
        """scale/(shape − 1); inf where shape ≤ 1."""
        shape, scale = self._arrays
        return plain(np.where(shape > 1.0, scale / np.where(shape > 1.0, shape - 1.0, 1.0), np.inf))

    @property
    def variance(self) -> Any:
        """scale² shape / ((shape − 1)² (shape − 2)); inf where 1 < shape ≤ 2, NaN where shape ≤ 1."""
        shape, scale = self._arrays
        a = np.where(shape > 2.0, shape, 3.0)
        with np.errstate(over="ignore"):
            finite = scale**2 * (a / ((a - 1.0) ** 2 * (a - 2.0)))
        return plain(np.where(shape > 2.0, finite, np.where(shape > 1.0, np.inf, np.nan)))

    @explain_shapes
    def log_prob(self, x: Any) -> Any:
        """ln p(x) of each x; −inf below 0."""
        x, (shape, scale) = observations(x, "Lomax"), self._arrays
        inside = np.log(shape) - np.log(scale) - (shape + 1.0) * np.log1p(np.where(x < 0.0, 0.0, x) / scale)
        return plain(np.where(x < 0.0, -np.inf, inside))

    @explain_shapes
    def cdf(self, x: Any) -> Any:
        """P(X ≤ x)."""
        x, (shape, scale) = np.maximum(observations(x, "Lomax"), 0.0), self._arrays
        return plain(-np.expm1(-shape * np.log1p(x / scale)))

    def interval(self, level: float = 0.95) -> Interval:
        """The equal-tailed interval of this probability: a pair."""
        (shape, scale), outside = self._arrays, tail(level)
        with np.errstate(over="ignore"):
            return Interval(*(plain(scale * np.expm1(-np.log(above) / shape)) for above in (1.0 - outside, outside)))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        shape, scale = self._arrays
        return np.asarray(scale * np.expm1(generator(n, seed).standard_exponential((n, *shape.shape)) / shape))


class NegativeBinomial(Predictive, NamedTuple("NegativeBinomial", [("shape", Any), ("rate", Any)])):
    """The distribution of a count whose rate is Gamma(shape, rate): Σ over λ of Poisson(λ).

    >>> NegativeBinomial(3.0, 2.0).mean
    1.5
    """

    @property
    @np.errstate(over="ignore")
    def mean(self) -> Any:
        """shape/rate."""
        shape, rate = self._arrays
        return plain(shape / rate)

    @property
    @np.errstate(over="ignore")
    def variance(self) -> Any:
        """mean (1 + 1/rate)."""
        shape, rate = self._arrays
        return plain(shape / rate * (1.0 + 1.0 / rate))

    @explain_shapes
    def log_prob(self, n: Any) -> Any:
        """ln p(n) of each n; −inf outside 0, 1, 2, …."""
        shape, rate = self._arrays
        n, inside = counts(n, "NegativeBinomial")
        return plain(np.where(inside, log_negative_binomial(n, shape, rate / (1.0 + rate), 1.0 / (1.0 + rate)), -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        shape, rate = self._arrays
        rng = generator(n, seed)
        with np.errstate(over="ignore"):
            rates = rng.standard_gamma(shape, (n, *shape.shape)) / rate
        if np.any(rates > DRAWN):
            raise ModelError(f"a rate was drawn that is {rates.max():g}: counts so large cannot be drawn exactly")
        return np.asarray(rng.poisson(rates))

    def interval(self, level: float = 0.95) -> Interval:
        """The equal-tailed interval: the least numbers that have at least (1 ∓ level)/2 of the probability up to them."""
        shape, rate = self._arrays
        return Interval(*map(plain, st.nbinom.interval(checked_level(level), shape, rate / (1.0 + rate))))


class StudentT(Predictive, NamedTuple("StudentT", [("df", Any), ("location", Any), ("scale", Any)])):
    """A Student t distribution: `location + scale · t(df)`; arrays are so many of them side by side.

    >>> t = StudentT(3.0, 0.0, 1.0)
    >>> round(t.log_prob(0.0), 4), tuple(round(end, 4) for end in t.interval(0.95))
    (-1.0009, (-3.1824, 3.1824))
    """

    @property
    def mean(self) -> Any:
        """The location; NaN where df ≤ 1, which has no mean."""
        return plain(np.where(np.asarray(self.df) > 1.0, self.location, np.nan))

    @property
    def variance(self) -> Any:
        """scale² df/(df − 2); inf where 1 < df ≤ 2, NaN where df ≤ 1."""
        df, scale = np.asarray(self.df, dtype=np.float64), np.asarray(self.scale, dtype=np.float64)
        factor = np.where(df > 2.0, df / np.where(df > 2.0, df - 2.0, 1.0), np.where(df > 1.0, np.inf, np.nan))
        with np.errstate(over="ignore"):
            return plain(scale**2 * factor)

    @explain_shapes
    def log_prob(self, x: Any) -> Any:
        """ln p(x) of each x."""
        df, location, scale = self._arrays
        z = (observations(x, "StudentT") - location) / scale
        top = log_gamma_step(df / 2.0, 0.5) - 0.5 * np.log(df * np.pi) - np.log(scale)
        return plain(top - (df + 1.0) / 2.0 * log1p_square(z, df))

    @explain_shapes
    def cdf(self, x: Any) -> Any:
        """P(X ≤ x)."""
        return plain(sc.stdtr(self.df, (observations(x, "StudentT") - self.location) / self.scale))

    def interval(self, level: float = 0.95) -> Interval:
        """The equal-tailed interval of this probability: a pair."""
        half = student_end(self.df, tail(level)) * self.scale
        return Interval(plain(self.location - half), plain(self.location + half))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        df, location, scale = self._arrays
        return np.asarray(location + scale * generator(n, seed).standard_t(df, (n, *df.shape)))


def log1p_square(z: Array, df: Array) -> Array:
    """ln(1 + z²/df), also where z² is beyond a double."""
    far = np.abs(z) > 1e100
    near = np.log1p(np.where(far, 0.0, z) ** 2 / df)
    return np.where(far, 2.0 * np.log(np.where(far, np.abs(z), 1.0)) - np.log(df), near)


class MultivariateT(Predictive, NamedTuple("MultivariateT", [("df", Any), ("location", Any), ("scale", Any)])):
    """A multivariate Student t: location (..., d), scale (..., d, d), df (...). Its covariance is scale · df/(df − 2).

    >>> t = MultivariateT(3.0, np.zeros(2), np.eye(2))
    >>> round(t.log_prob([0.0, 0.0]), 4), t.marginal([1]).scale
    (-1.8379, array([[1.]]))
    """

    @property
    def mean(self) -> Array:
        """The location; NaN where df ≤ 1."""
        return np.where(np.asarray(self.df)[..., None] > 1.0, self.location, np.nan)

    @property
    def covariance(self) -> Array:
        """scale · df/(df − 2); inf where 1 < df ≤ 2, NaN where df ≤ 1."""
        unit = StudentT(self.df, 0.0, 1.0).variance
        return np.asarray(np.asarray(unit)[..., None, None] * self.scale)

    @explain_shapes
    def log_prob(self, x: Any) -> Any:
        """ln p(x) of each x, whose last axis is d."""
        df, x = np.asarray(self.df, dtype=np.float64), observations(x, "MultivariateT")
        factor, d = scaled_cholesky(np.asarray(self.scale, dtype=np.float64)), np.shape(self.location)[-1]
        if x.ndim == 0 or x.shape[-1] != d:
            raise ModelError(f"{type(self).__name__} of {d} numbers has no density at the shape {x.shape}")
        finite = np.isfinite(x).all(axis=-1)
        off = factor.whiten(np.where(finite[..., None], x, 0.0) - self.location)
        largest = np.maximum(np.abs(off).max(axis=-1), 1.0)
        # The square of the length may be beyond a double; the length is not.
        length = largest * np.sqrt(((off / largest[..., None]) ** 2).sum(axis=-1))
        top = log_gamma_step(df / 2.0, d / 2.0) - d / 2.0 * np.log(df * np.pi) - 0.5 * factor.log_det
        return plain(np.where(finite, top - (df + d) / 2.0 * log1p_square(length, df), -np.inf))

    def marginal(self, only: Any) -> MultivariateT:
        """The distribution of some of the components."""
        location, scale = np.asarray(self.location), np.asarray(self.scale)
        chosen = components(only, location.shape[-1])
        return MultivariateT(self.df, location[..., chosen], scale[..., chosen[:, None], chosen])

    def interval(self, level: float = 0.95) -> Interval:
        """The equal-tailed interval of each component by itself."""
        scale = np.sqrt(np.diagonal(np.asarray(self.scale), axis1=-2, axis2=-1))
        return StudentT(np.asarray(self.df)[..., None], np.asarray(self.location), scale).interval(level)

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        rng, location = generator(n, seed), np.asarray(self.location, dtype=np.float64)
        df = np.broadcast_to(np.asarray(self.df, dtype=np.float64), location.shape[:-1])
        z = scaled_cholesky(np.asarray(self.scale, dtype=np.float64)).colour(rng.standard_normal((n, *location.shape)))
        return np.asarray(location + z * np.sqrt(df / rng.chisquare(df, (n, *df.shape)))[..., None])
