"""The Lomax distribution: what is predicted of a waiting time whose rate is not known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from suffice.exponential.family import generator
from suffice.exponential.interval import Interval, tail
from suffice.exponential.statistic import aligned
from suffice.exponential.tables import summary
from suffice.exponential.values import Array, observed, plain


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
