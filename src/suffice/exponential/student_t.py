"""The Student t distribution: what is predicted of a normal whose variance is not known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from suffice.exponential.family import generator
from suffice.exponential.interval import Interval, tail
from suffice.exponential.special import log_gamma_step, student_end
from suffice.exponential.statistic import aligned
from suffice.exponential.tables import summary
from suffice.exponential.values import Array, observed, plain


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
