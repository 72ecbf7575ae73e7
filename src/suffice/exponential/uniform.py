"""The uniform density: beside the exponential families, not of them, for its support hangs on its parameters.

What the rows say is their number and their smallest and largest: they merge, but cannot be taken away again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from suffice.errors import FitError, ModelError, StatisticsError
from suffice.exponential.arithmetic.values import (
    Array,
    Outside,
    checked_weights,
    finite,
    observations,
    plain,
    read_only,
    show,
    table,
)
from suffice.exponential.protocol.observable import Observable, generator
from suffice.exponential.protocol.statistic import explain_shapes, weight_of_statistic


@dataclass(frozen=True, eq=False)
class Extremes:
    """`count` = Σ w and the `lower` and `upper` end of some rows, of leading axes (...); an empty one is from inf to −inf.

    >>> Uniform().statistic([2.0, 3.0]) + Uniform().statistic([5.0])
    Extremes(count=array(3.), lower=array(2.), upper=array(5.))
    """

    count: Array
    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        read_only(self, "count", "lower", "upper")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Extremes):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in ("count", "lower", "upper"))

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Extremes) -> Extremes:
        if not isinstance(other, Extremes):
            return NotImplemented
        if self.count.shape != other.count.shape:
            raise StatisticsError(
                f"extremes side by side add one to one: their shapes are {self.count.shape}, {other.count.shape}"
            )
        ends = np.minimum(self.lower, other.lower), np.maximum(self.upper, other.upper)
        return Extremes(self.count + other.count, *ends)

    def __radd__(self, other: Any) -> Extremes:
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: Any) -> Extremes:
        raise StatisticsError(
            "rows cannot be taken away from their extremes: the second smallest is not known; gather the rest anew"
        )

    def __mul__(self, weight: Any) -> Extremes:
        w = weight_of_statistic(weight, self.count.shape)
        return Extremes(self.count * w, np.where(w > 0.0, self.lower, np.inf), np.where(w > 0.0, self.upper, -np.inf))

    __rmul__ = __mul__

    def _repr_html_(self) -> str:
        return table({"count": self.count, "lower": self.lower, "upper": self.upper}, "Extremes")


@dataclass(frozen=True, eq=False, repr=False)
class Uniform(Observable):
    """The same density everywhere between two ends. It is not an exponential family: no natural parameters, and the estimate is
    the smallest and the largest row, not moment matching.

    >>> s = Uniform().statistic([2.0, 3.0]) + Uniform().statistic([5.0])
    >>> Uniform().estimate(s), Uniform().estimate(s).mean
    (Uniform(lower=2.0, upper=5.0), 3.5)
    """

    lower: Any = None
    upper: Any = None

    names: ClassVar[tuple[str, ...]] = ("lower", "upper")
    support: ClassVar[str] = "finite numbers"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lower is not None and np.any(np.asarray(self.upper) <= self.lower):
            raise ModelError(f"the upper end of Uniform must lie above the lower: {show(self.lower)} and {show(self.upper)}")

    def _check_parameter(self, name: str, value: Any) -> Array:
        return finite(value, f"the {name} end of Uniform")

    @property
    def mean(self) -> Any:
        """The middle."""
        low, high = self._ends
        return plain(0.5 * low + 0.5 * high)

    @property
    @np.errstate(over="ignore")
    def variance(self) -> Any:
        """(upper − lower)²/12."""
        low, high = self._ends
        return plain((high - low) ** 2 / 12.0)

    def statistic(self, x: Any, weights: Any = None) -> Extremes:
        """The count, the smallest and the largest of some observations, the first axis. Rows of weight 0 do not count."""
        x = observations(x, "Uniform")
        x = x[None] if x.ndim == 0 else x
        if not np.isfinite(x).all():
            raise Outside("Uniform is about finite numbers, and", int(np.argwhere(~np.isfinite(x))[0][0]), "is not")
        w = checked_weights(weights, x.shape)
        lower = np.min(np.where(w > 0.0, x, np.inf), axis=0, initial=np.inf)
        return Extremes(
            w.sum(axis=0), np.asarray(lower), np.asarray(np.max(np.where(w > 0.0, x, -np.inf), axis=0, initial=-np.inf))
        )

    _gather_cells = statistic

    def estimate(self, statistic: Extremes) -> Self:
        """From the smallest row to the largest: any narrower density gives some row none."""
        if not isinstance(statistic, Extremes):
            raise StatisticsError(f"Uniform learns from its statistic: give Uniform().statistic(x), not {statistic!r}")
        if np.any(statistic.count <= 0.0):
            raise FitError("Uniform cannot be estimated: there are no rows")
        if np.any(statistic.upper <= statistic.lower):
            raise FitError(
                "Uniform has no estimate where all numbers are equal (or there is only one): the density would be infinite"
            )
        return type(self)(statistic.lower, statistic.upper)

    @explain_shapes
    def log_prob(self, x: Any) -> Any:
        """−ln(upper − lower) from end to end, −inf elsewhere."""
        x, (low, high) = observations(x, "Uniform"), self._ends
        return plain(np.where((x >= low) & (x <= high), -self.entropy(), -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        """n draws, the first axis."""
        low, high = self._ends
        share = generator(n, seed).random((n, *low.shape))
        return np.asarray(low * (1.0 - share) + high * share)

    def entropy(self) -> Any:
        """ln(upper − lower), in nats."""
        low, high = self._ends
        return plain(np.log(0.5 * high - 0.5 * low) + np.log(2.0))

    @explain_shapes
    def kl(self, other: Self) -> Any:
        """The log of the ratio of the lengths; inf where the other does not cover this one."""
        if not isinstance(other, Uniform):
            raise ModelError(f"the divergence is between two members of one family, Uniform(), and the other is {other!r}")
        (low, high), (least, most) = self._ends, other._ends
        return plain(np.where((least <= low) & (high <= most), np.maximum(other.entropy() - self.entropy(), 0.0), np.inf))

    @property
    def _ends(self) -> tuple[Array, Array]:
        if self.lower is None:
            raise ModelError("Uniform() has no ends: give them, Uniform(lower=…, upper=…), or estimate them from a statistic")
        return np.asarray(self.lower), np.asarray(self.upper)
