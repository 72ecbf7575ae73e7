"""The Student t, and the multivariate one: what is predicted of a normal whose variance or covariance is not known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from suffice.errors import ModelError
from suffice.exponential.family import generator
from suffice.exponential.interval import Interval, tail
from suffice.exponential.special import log_gamma_step, student_end
from suffice.exponential.statistic import aligned
from suffice.exponential.symmetric import factored
from suffice.exponential.tables import summary
from suffice.exponential.values import Array, components, observed, plain


class StudentT(NamedTuple):
    """A Student t distribution: `location + scale · t(df)`; arrays are so many of them side by side.

    >>> t = StudentT(3.0, 0.0, 1.0)
    >>> round(t.log_prob(0.0), 4), tuple(round(end, 4) for end in t.interval(0.95))
    (-1.0009, (-3.1824, 3.1824))
    """

    df: Any
    location: Any
    scale: Any

    @property
    def mean(self) -> Any:
        """The location; NaN where df ≤ 1, which has no mean."""
        return plain(np.where(np.asarray(self.df) > 1.0, self.location, np.nan))

    @property
    def variance(self) -> Any:
        """scale² df/(df − 2); inf where 1 < df ≤ 2, NaN where df ≤ 1."""
        df = np.asarray(self.df, dtype=np.float64)
        factor = np.where(df > 2.0, df / np.where(df > 2.0, df - 2.0, 1.0), np.where(df > 1.0, np.inf, np.nan))
        with np.errstate(over="ignore"):
            return plain(np.asarray(self.scale, dtype=np.float64) ** 2 * factor)

    @aligned
    def log_prob(self, x: Any) -> Any:
        """ln p(x) of each x."""
        df = np.asarray(self.df, dtype=np.float64)
        z = (observed(x, "StudentT") - self.location) / self.scale
        top = log_gamma_step(df / 2.0, 0.5) - 0.5 * np.log(df * np.pi) - np.log(self.scale)
        return plain(top - (df + 1.0) / 2.0 * log1p_square(z, df))

    @aligned
    def cdf(self, x: Any) -> Any:
        """P(X ≤ x)."""
        from scipy.special import stdtr

        return plain(stdtr(self.df, (observed(x, "StudentT") - self.location) / self.scale))

    def interval(self, level: float = 0.95) -> Any:
        """The equal-tailed interval of this probability: a pair."""
        half = student_end(self.df, tail(level)) * self.scale
        return Interval(plain(self.location - half), plain(self.location + half))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        """n draws, the first axis."""
        df, location, scale = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in self))
        return np.asarray(location + scale * generator(n, seed).standard_t(df, (n, *df.shape)))

    def _repr_html_(self) -> str:
        return summary(self, self._asdict(), type(self).__name__)


def log1p_square(z: Array, df: Array) -> Array:
    """ln(1 + z²/df), also where z² is beyond a double."""
    far = np.abs(z) > 1e100
    near = np.log1p(np.where(far, 0.0, z) ** 2 / df)
    return np.where(far, 2.0 * np.log(np.where(far, np.abs(z), 1.0)) - np.log(df), near)


class MultivariateT(NamedTuple):
    """A multivariate Student t: location (..., d), scale (..., d, d), df (...). Its covariance is scale · df/(df − 2).

    >>> t = MultivariateT(3.0, np.zeros(2), np.eye(2))
    >>> round(t.log_prob([0.0, 0.0]), 4), t.marginal([1]).scale
    (-1.8379, array([[1.]]))
    """

    df: Any
    location: Any
    scale: Any

    @property
    def mean(self) -> Array:
        """The location; NaN where df ≤ 1."""
        return np.where(np.asarray(self.df)[..., None] > 1.0, self.location, np.nan)

    @property
    def covariance(self) -> Array:
        """scale · df/(df − 2); inf where 1 < df ≤ 2, NaN where df ≤ 1."""
        unit = StudentT(self.df, 0.0, 1.0).variance
        return np.asarray(np.asarray(unit)[..., None, None] * self.scale)

    @aligned
    def log_prob(self, x: Any) -> Any:
        """ln p(x) of each x, whose last axis is d."""
        df, x = np.asarray(self.df, dtype=np.float64), observed(x, "MultivariateT")
        factor, d = factored(np.asarray(self.scale, dtype=np.float64)), np.shape(self.location)[-1]
        if x.ndim == 0 or x.shape[-1] != d:
            raise ModelError(f"{type(self).__name__} of {d} numbers has no density at the shape {x.shape}")
        finite = np.isfinite(x).all(axis=-1)
        off = factor.whitened(np.where(finite[..., None], x, 0.0) - self.location)
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
        answer: Interval = StudentT(np.asarray(self.df)[..., None], np.asarray(self.location), scale).interval(level)
        return answer

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        """n draws, the first axis."""
        rng, location = generator(n, seed), np.asarray(self.location, dtype=np.float64)
        df = np.broadcast_to(np.asarray(self.df, dtype=np.float64), location.shape[:-1])
        z = factored(np.asarray(self.scale, dtype=np.float64)).coloured(rng.standard_normal((n, *location.shape)))
        return np.asarray(location + z * np.sqrt(df / rng.chisquare(df, (n, *df.shape)))[..., None])

    def _repr_html_(self) -> str:
        return summary(self, self._asdict(), type(self).__name__)
