"""What rows say about the parameters of an exponential family: a count, the sum of T(x), and the sum of ln h(x). They add."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.errors import StatisticsError
from suffice.exponential.tables import table

if TYPE_CHECKING:
    from suffice.exponential.family import Family

Array = npt.NDArray[np.float64]

ROUNDING = 1e-6
"""What is left over below this share of what was taken away is rounding."""


@dataclass(frozen=True, eq=False)
class Totals:
    """`count` = Σ w, `total` = Σ w T(x), `log_base` = Σ w ln h(x) of some rows, under one family; `a + b`, `a − b`, `a * weight`.

    Families that are fitted side by side have leading axes: count and log_base of shape (...), total of shape (..., k).

    >>> from suffice.exponential import Poisson
    >>> a, b = Poisson().statistic([3, 1]), Poisson().statistic([4])
    >>> (a + b).count, (a + b).total
    (array(3.), array([8.]))
    """

    family: Family
    count: Array
    total: Array
    log_base: Array

    def __post_init__(self) -> None:
        for name in ("count", "total", "log_base"):
            array = np.array(getattr(self, name), dtype=np.float64)
            if not np.isfinite(array).all():
                raise StatisticsError(f"the {name} of the statistic is not finite: a sum beyond the largest double")
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def mean(self) -> Array:
        """The mean of T(x): where the likelihood is largest, this is E[T(x)]. NaN where there are no rows."""
        count = np.broadcast_to(self.count[..., None], np.broadcast_shapes((*self.count.shape, 1), self.total.shape))
        return np.asarray(np.divide(self.total, count, out=np.full(count.shape, np.nan), where=count != 0.0))

    def __add__(self, other: Totals) -> Totals:
        if not isinstance(other, Totals):
            return NotImplemented
        return self._plus(other, 1.0)

    def __radd__(self, other: Any) -> Totals:
        """So that `sum` adds statistics: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __sub__(self, other: Totals) -> Totals:
        if not isinstance(other, Totals):
            return NotImplemented
        self._require_alike(other)
        # Fractional weights leave rounding behind: taking all rows away must not fail for it.
        if np.any(other.count > self.count * (1.0 + 1e-12)):
            raise StatisticsError(f"the statistic of {other.count.max():g} rows cannot be taken from one of fewer rows")
        left = self._plus(other, -1.0)
        taken, after = self.family._slack(other), self.family._slack(left)
        # Of some rows nothing below zero may be left, of none nothing at all.
        off = np.where((left.count <= 0.0)[..., None], np.abs(after), -after)
        if np.any((taken > 0.0) & (off > ROUNDING * taken)):
            raise StatisticsError(
                f"taking these rows away leaves what no rows can make, count={left.count} and total={left.total}: they were "
                "never part of the sum, or rounding has swallowed them; gather the rest anew"
            )
        return left

    def __mul__(self, weight: Any) -> Totals:
        w = weight_of_statistic(weight, self.count.shape)
        with np.errstate(over="ignore"):
            return replace(self, count=self.count * w, total=self.total * w[..., None], log_base=self.log_base * w)

    __rmul__ = __mul__

    def _plus(self, other: Totals, sign: float) -> Totals:
        self._require_alike(other)
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in ("count", "total", "log_base")}
        with np.errstate(over="ignore"):
            return replace(self, **{name: a + sign * b for name, (a, b) in pairs.items()})

    def _require_alike(self, other: Totals) -> None:
        if self.family != other.family:
            raise StatisticsError(f"statistics of {self.family!r} and of {other.family!r} do not add")
        if self.total.shape != other.total.shape:
            mine, yours = (s.total.shape if self.count.shape == other.count.shape else s.count.shape for s in (self, other))
            raise StatisticsError(
                f"statistics of {self.family!r} side by side add one to one: their shapes are {mine} and {yours}"
            )

    def __repr__(self) -> str:
        return f"Totals({self.family!r}, count={self.count}, total={self.total})"

    def _repr_html_(self) -> str:
        total = self.total[..., 0] if self.total.shape[-1] == 1 else self.total
        return table({"count": self.count, "total": total, "log_base": self.log_base}, f"Totals of {self.family!r}")


def weight_of_statistic(weight: Any, shape: tuple[int, ...]) -> Array:
    """What a statistic of this shape side by side is multiplied by: numbers from 0 up.

    >>> weight_of_statistic(2, ())
    array(2.)
    """
    try:
        w = np.asarray(weight, dtype=np.float64)
    except (TypeError, ValueError):
        w = np.array(np.nan)
    if not (np.isfinite(w).all() and (w >= 0.0).all()):
        raise StatisticsError(f"a statistic is weighted by finite numbers from 0 up, not by {weight!r}")
    try:
        np.broadcast_shapes(w.shape, shape)
    except ValueError:
        raise StatisticsError(f"weights of {w.shape} do not fit a statistic of {shape} side by side") from None
    return w
