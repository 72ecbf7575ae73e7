"""Numbers that are one of several normal, or one of several Poisson distributions: means, deviations and intervals of many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.libraries import sc

Array = npt.NDArray[np.float64]

HALVINGS = 80
"""An end of an interval is found by so many bisections, to the last digits of its bracket."""


@dataclass(frozen=True, eq=False)
class MixtureOfNumbers:
    """Many mixtures, with the parts on the first axis: weights, means and standard deviations (of `counts`: rates, unused).

    >>> pair = MixtureOfNumbers(np.array([[0.5], [0.5]]), np.array([[-1.0], [1.0]]), np.array([[0.1], [0.1]]))
    >>> pair.mean, pair.sd.round(3), np.round(pair.interval(0.5), 3).ravel()
    (array([0.]), array([1.005]), array([-1.,  1.]))
    """

    weight: Array
    means: Array
    sds: Array
    counts: bool = False

    @property
    def mean(self) -> Array:
        return np.asarray((self.weight * self.means).sum(axis=0))

    @property
    def sd(self) -> Array:
        own = self.means if self.counts else self.sds**2
        return np.asarray(np.sqrt((self.weight * (own + (self.means - self.mean) ** 2)).sum(axis=0)))

    def interval(self, level: float) -> tuple[Array, Array]:
        """The equal-tailed interval of each."""
        tail = (1.0 - level) / 2.0
        return self._quantile(tail), self._quantile(1.0 - tail)

    def _quantile(self, q: float) -> Array:
        if self.counts:
            return self._count_quantile(q)
        far = 12.0 * self.sds
        low, high = (self.means - far).min(axis=0), (self.means + far).max(axis=0)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            below = self._below(middle) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))

    def _below(self, x: Array) -> Array:
        """p(number ≤ x)."""
        if self.counts:
            each: Any = np.where(x >= 0, sc.pdtr(np.maximum(np.floor(x), 0.0), self.means), 0.0)
        else:
            sd = np.where(self.sds > 0, self.sds, 1.0)
            each = np.where(self.sds > 0, sc.ndtr((x - self.means) / sd), x >= self.means)
        return np.asarray((self.weight * each).sum(axis=0))

    def _count_quantile(self, q: float) -> Array:
        """The least whole number n with p(count ≤ n) ≥ q."""
        most = self.means.max(axis=0)
        low, high = np.full_like(most, -1.0), np.ceil(most + 12.0 * np.sqrt(most) + 30.0)
        while ((high - low) > 1).any():
            middle = np.floor(0.5 * (low + high))
            below = self._below(middle) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(high)
