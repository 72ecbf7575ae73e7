"""What rows say about the parameters of an exponential family: a count, the sum of T(x), and the sum of ln h(x). They add.

Normal families keep the mean and the scatter about it, not Σx and Σx², which lose all digits of a mean of 1e9: `Centred` has the
face of `Totals`, and its totals are those of the family, but it is added by Chan's pairwise update, and the estimates and
evidences of normal families are made of `centre` and `scatter`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.errors import DataError, ModelError, StatisticsError
from suffice.numerics.exponential.arithmetic.values import Array, Outside, checked_weights, observations, read_only, same, table
from suffice.statistics.moments import Spread, add_exactly, merge_spreads, settle_spread, subtract_spread

Call = TypeVar("Call", bound=Callable[..., Any])

ROUNDING = 1e-6
"""What is left over below this share of what was taken away is rounding."""


class AddedRows:
    """What rows say: equal by its numbers, added up by `sum`, and weighted."""

    count: Any
    __hash__ = None  # type: ignore[assignment]

    if TYPE_CHECKING:

        def _times(self, w: Array) -> Self: ...

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]

    def __radd__(self, other: Any) -> Self:
        """So that `sum` adds statistics: it starts from 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __mul__(self, weight: Any) -> Self:
        return self._times(weight_of_statistic(weight, self.count.shape))

    __rmul__ = __mul__


@dataclass(frozen=True, eq=False)
class Totals(AddedRows):
    """`count` = Σ w, `total` = Σ w T(x), `log_base` = Σ w ln h(x) of some rows, under one family; `a + b`, `a − b`, `a * weight`.

    Families that are fitted side by side have leading axes: count and log_base of shape (...), total of shape (..., k).

    >>> from suffice.exponential import Poisson
    >>> a, b = Poisson().statistic([3, 1]), Poisson().statistic([4])
    >>> (a + b).count, (a + b).total
    (array(3.), array([8.]))
    >>> a + b == Poisson().statistic([1, 4, 3])
    True
    """

    family: Any
    """The exponential family, without its parameters."""
    count: Array
    total: Array
    log_base: Array

    def __post_init__(self) -> None:
        for name in read_only(self, "count", "total", "log_base"):
            if not np.isfinite(getattr(self, name)).all():
                raise StatisticsError(f"the {name} of the statistic is not finite: a sum beyond the largest double")

    @property
    def mean(self) -> Array:
        """The mean of T(x): where the likelihood is largest, this is E[T(x)]. NaN where there are no rows."""
        count = np.broadcast_to(self.count[..., None], np.broadcast_shapes((*self.count.shape, 1), self.total.shape))
        return np.asarray(np.divide(self.total, count, out=np.full(count.shape, np.nan), where=count != 0.0))

    def __add__(self, other: Totals) -> Totals:
        return self._plus(other) if isinstance(other, Totals) else NotImplemented

    def __sub__(self, other: Totals) -> Totals:
        return self._minus(other) if isinstance(other, Totals) else NotImplemented

    def _plus(self, other: Totals) -> Totals:
        self._require_alike(other)
        return self._combine(np.add, other)

    def _minus(self, other: Totals) -> Totals:
        self._require_alike(other)
        # Fractional weights leave rounding behind: taking all rows away must not fail for it.
        if np.any(other.count > self.count * (1.0 + 1e-12)):
            raise StatisticsError(f"the statistic of {other.count.max():g} rows cannot be taken from one of fewer rows")
        left = self._combine(np.subtract, other)
        taken, after = self.family._slack(other), self.family._slack(left)
        # Of some rows nothing below zero may be left, of none nothing at all.
        off = np.where((left.count <= 0.0)[..., None], np.abs(after), -after)
        if np.any((taken > 0.0) & (off > ROUNDING * taken)):
            raise StatisticsError(
                f"taking these rows away leaves what no rows can make, count={left.count} and total={left.total}: they were "
                "never part of the sum, or rounding has swallowed them; gather the rest anew"
            )
        return left

    @np.errstate(over="ignore")
    def _times(self, w: Array) -> Totals:
        return replace(self, count=self.count * w, total=self.total * w[..., None], log_base=self.log_base * w)

    @np.errstate(over="ignore")
    def _combine(self, operation: Any, other: Totals) -> Totals:
        names = ("count", "total", "log_base")
        return replace(self, **{name: operation(getattr(self, name), getattr(other, name)) for name in names})

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
    """What a statistic of this shape side by side is multiplied by: numbers from 0 up."""
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


def explain_shapes(method: Call) -> Call:
    """A method of arrays side by side that says so, in words, where their shapes do not fit together."""

    @wraps(method)
    def call(*given: Any, **named: Any) -> Any:
        try:
            # What is beyond the largest double is infinite, without a word.
            with np.errstate(over="ignore"):
                return method(*given, **named)
        except ValueError as error:
            # numpy says so of shapes, and of nothing else.
            if "broadcast" not in str(error):
                raise
            each = " and ".join(f"{name} of {shape}" for name, shape in map(_shape_of, (*given, *named.values())) if name)
            raise ModelError(f"what stands side by side does not fit together: {each}") from None

    return cast(Call, call)


def _shape_of(thing: Any) -> tuple[str, tuple[int, ...]]:
    """What something is called, and the shape that it has side by side; no name where it has none of its own."""
    if isinstance(thing, Totals):
        return "a statistic", thing.count.shape
    fields = getattr(thing, "_fields", None) or getattr(thing, "names", None)
    if fields is None:
        return "numbers", np.shape(thing)
    shapes = [np.shape(value) for name in fields if (value := getattr(thing, name)) is not None]
    return (type(thing).__name__ if shapes else ""), max(shapes, key=len, default=())


GONE = 1e-9
"""What is left of a scatter below this share of what there was is rounding."""

TRACE = 1e-12
"""What is left of a count below this share of what there was is rounding, too: such a row would have no digits."""

BLOCK = 1 << 14
"""Rows that are centred at a time."""

NARROW = 8
"""Columns up to which products are added without a matrix product."""


@dataclass(frozen=True, eq=False)
class Centred(Totals):
    """Beside the totals: `centre` = Σ w x / Σ w, of shape (..., d), and `scatter` = Σ w (x − centre)(x − centre)ᵀ, (..., d, d).

    `rest` is what of the centre a double cannot hold.

    >>> from suffice.exponential import Normal
    >>> s = Normal().statistic([1e9, 1e9 + 2.0]) + Normal().statistic([1e9 + 1.0])
    >>> s.count, s.centre - 1e9, s.scatter
    (array(3.), array([1.]), array([[2.]]))
    """

    centre: Array
    scatter: Array
    rest: Array

    def __post_init__(self) -> None:
        super().__post_init__()
        read_only(self, "centre", "scatter", "rest")

    @classmethod
    def of(cls, family: Any, spread: Spread, shape: tuple[int, ...]) -> Centred:
        """The statistic of groups of rows, as many as the leading axes make, of a family whose T and h are sums of x and x xᵀ."""
        d = spread.mean.shape[-1]
        count, centre, rest = spread.weight.reshape(shape), spread.mean.reshape(*shape, d), spread.rest.reshape(*shape, d)
        scatter = spread.scatter.reshape(*shape, d, d)
        with np.errstate(over="ignore", invalid="ignore"):
            total, log_base = family.raw(count, centre, scatter)
        return cls(family, count, total, log_base, centre, scatter, rest)

    @property
    def spread(self) -> Spread:
        """The leading axes as one."""
        own = self.count.ndim
        return Spread(*(a.reshape(-1, *a.shape[own:]) for a in (self.count, self.centre, self.rest, self.scatter)))

    def _plus(self, other: Totals) -> Centred:
        other = self._alike(other)
        return self.of(self.family, merge_spreads(self.spread, other.spread), self.count.shape)

    def _minus(self, other: Totals) -> Centred:
        other = self._alike(other)
        # Fractional weights leave rounding behind: taking all rows away must not fail for it, nor leave a trace of a row.
        remains = self.count - other.count
        if np.any(remains < -GONE * self.count):
            raise StatisticsError(f"the statistic of {other.count.max():g} rows cannot be taken from one of fewer rows")
        left = subtract_spread(self.spread, other.spread, (remains > TRACE * self.count).reshape(-1))
        was, now = (np.einsum("gii->gi", s) for s in (self.spread.scatter, left.scatter))
        if np.any(now < -GONE * was):
            raise StatisticsError("taking these rows away leaves a scatter below zero: they were never part of the sum")
        kept = now > 0.0
        return self.of(self.family, left._replace(scatter=left.scatter * (kept[:, :, None] & kept[:, None, :])), self.count.shape)

    def _times(self, w: Array) -> Centred:
        many = cast(Centred, super()._times(w))
        shape = (*many.count.shape, self.centre.shape[-1])
        centre, rest = np.broadcast_to(self.centre, shape), np.broadcast_to(self.rest, shape)
        return replace(many, centre=centre, scatter=self.scatter * w[..., None, None], rest=rest)

    def _alike(self, other: Totals) -> Centred:
        """The other, if the two add."""
        if self.family == other.family and isinstance(other, Centred) and other.centre.shape[-1] != self.centre.shape[-1]:
            mine, yours = self.centre.shape[-1], other.centre.shape[-1]
            raise StatisticsError(f"statistics of {self.family!r} of {mine} and of {yours} components do not add")
        self._require_alike(other)
        return with_centre(other)

    def __repr__(self) -> str:
        return f"Centred({self.family!r}, count={self.count}, centre={self.centre})"

    def _repr_html_(self) -> str:
        one = self.centre.shape[-1] == 1
        centre, scatter = (self.centre[..., 0], self.scatter[..., 0, 0]) if one else (self.centre, self.scatter)
        return table({"count": self.count, "centre": centre, "scatter": scatter}, f"Centred, of {self.family!r}")


def centred_statistic(family: Any, x: Any, weights: Any) -> Centred:
    """The statistic of rows, the first axis of x."""
    values = observations(x, type(family).__name__)
    values = values[None] if values.ndim == family.event_axes else values
    if values.ndim < family.event_axes + 1 or (family.event_axes and not values.shape[-1]):
        raise DataError(f"{type(family).__name__} is about {family.support}, the last axis of x: its shape is {values.shape}")
    wrong = ~np.isfinite(values)
    if wrong.any():
        first = np.argwhere(wrong)[0]
        raise Outside(f"{type(family).__name__} is about {family.support}, and", int(first[0]), f"holds {values[tuple(first)]}")
    vectors = values if family.event_axes else values[..., None]
    n, *shape, d = vectors.shape
    w = checked_weights(weights, (n, *shape)).reshape(n, int(np.prod(shape)))
    rows = vectors.reshape(n, w.shape[1], d)
    with np.errstate(over="ignore", invalid="ignore"):
        # In blocks, which stay in the cache.
        blocks = (_spread(rows[i : i + BLOCK], w[i : i + BLOCK]) for i in range(0, max(n, 1), BLOCK))
        spread = settle_spread(reduce(merge_spreads, blocks))
    if not np.isfinite(spread.scatter).all():
        raise DataError("the squares of these numbers are beyond a double; divide the column by some power of ten")
    return Centred.of(family.bare, spread, tuple(shape))


def with_centre(statistic: Totals) -> Centred:
    """The statistic, if it is one that a normal family made."""
    if not isinstance(statistic, Centred):
        raise StatisticsError(f"plain totals lack the digits that {statistic.family!r} needs: use its statistic(x) or gather")
    return statistic


def join_moments(s: Centred, count: Array, mean: Array, rest: Array, scatter: Array) -> tuple[Spread, tuple[int, ...]]:
    """The moments of the seen rows and of imagined ones together, the leading axes as one, and what these are."""
    if mean.shape[-1:] != s.centre.shape[-1:]:
        raise ModelError(f"a prior of {mean.shape[-1]} numbers does not fit a statistic of {s.centre.shape[-1]}")
    try:
        shape = np.broadcast_shapes(count.shape, s.count.shape)
    except ValueError:
        raise ModelError(f"priors {count.shape} and statistics {s.count.shape} side by side do not fit together") from None
    groups = [
        Spread(*(np.broadcast_to(a, (*shape, *a.shape[c.ndim :])).reshape(-1, *a.shape[c.ndim :]) for a in parts))
        for c, parts in ((count, (count, mean, rest, scatter)), (s.count, (s.count, s.centre, s.rest, s.scatter)))
    ]
    return merge_spreads(*groups), shape


def _spread(x: Array, w: Array) -> Spread:
    """The moments of each group g of x (n, g, d) under w (n, g)."""
    n, g, d = x.shape
    count = w.sum(axis=0)
    if n == 0:
        return Spread(count, np.zeros((g, d)), np.zeros((g, d)), np.zeros((g, d, d)))
    # Differences from a row of the data are exact where the rows are alike; their mean is then small, and so is its rounding.
    first = np.take_along_axis(x, np.argmax(w > 0.0, axis=0)[None, :, None], axis=0)[0]
    off = x - first
    per = np.where(count > 0.0, count, 1.0)[:, None]
    step = np.einsum("ng,ngd->gd", w, off) / per
    off -= step
    again = np.einsum("ng,ngd->gd", w, off) / per
    mean, rest = add_exactly(first, again, step)
    return Spread(count, mean, rest, _products(w, off) - count[:, None, None] * again[:, :, None] * again[:, None, :])


@one_blas_thread
def _products(w: Array, off: Array) -> Array:
    """Σ w off offᵀ of each group. The threads of a matrix product cost more than the product of few columns."""
    weighted = w[:, :, None] * off
    if off.shape[-1] <= NARROW:
        return np.asarray(np.einsum("ngi,ngj->gij", weighted, off))
    return np.asarray(np.moveaxis(weighted, 0, -1) @ np.moveaxis(off, 0, 1))
