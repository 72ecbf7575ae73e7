"""What rows say of two positive parameters together, those of Gamma and Beta, whose conjugate priors have no closed form.

Of κ rows, seen and imagined, whose T sum to τ the posterior of the natural parameters is p(η) ∝ exp(η·τ − κ A(η)), flat in η
where nothing is seen. With p* the member whose E[T] is τ/κ, which is its mode,

    η·τ − κ A(η) = −κ H(p*) − κ KL(p* ‖ p_η)
    Z(κ, τ) = ln ∫ exp(η·τ − κ A(η)) dη = −κ H(p*) + ln ∫ exp(−κ KL(p* ‖ p_η)) dη

so that no large numbers are subtracted. The integral is over x = ln of one parameter and, for each x, over v = ln of the ratio of
both; dη = p₀ p₁ dx dv. Both are sums over equal steps (the trapezoid rule) between the points where the integrand has fallen to
e⁻⁴⁰ of its highest: of a smooth bump, with a seventh of a standard deviation between points, they are exact to rounding, some
1e-12 beside that of κ H.

Damsleth 1975, Conjugate classes for gamma distributions, Scand. J. Statist. 2, p. 80.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from suffice.basis.libraries import sc
from suffice.errors import FitError
from suffice.numerics.exponential.arithmetic.values import Array
from suffice.numerics.exponential.protocol.family import ExponentialFamily

DROP = 40.0
"""The grid ends where the density is e⁻⁴⁰ of the highest."""
POINTS = 129
"""Points along each side of the grid."""
COARSE = 33
"""The same, while its ends are looked for."""
FARTHEST = 600.0
"""Parameters are looked for up to e^600."""
ROUNDS = 200
"""Times that the ends are moved, at most."""


@dataclass(frozen=True, eq=False)
class PairBelief:
    """The distribution of the two parameters of one member, after `count` rows whose T sum to `total`."""

    peak: Any
    count: float

    @classmethod
    def of(cls, family: ExponentialFamily, count: float, total: Any) -> PairBelief:
        if not count > 0.0:
            raise FitError(f"a prior of {family.bare!r} imagines rows: their number must be above 0, not {count:g}")
        return cls(family.bare.from_mean(np.asarray(total, dtype=np.float64) / count), float(count))

    @property
    def mode(self) -> Array:
        """Both parameters where the density of them is highest."""
        return np.array(self.peak._parameters())

    @cached_property
    def log_normaliser(self) -> float:
        """Z(κ, τ)."""
        grid = self._grid(0)
        log_total = float(sc.logsumexp(grid.rows) + np.log(grid.x[1] - grid.x[0]))
        return float(-self.count * self.peak.entropy() + log_total)

    def interval(self, which: int, outside: float) -> tuple[float, float]:
        """Below and above which one of the parameters has this probability."""
        at = self._grid(which).quantile
        return float(np.exp(at(outside))), float(np.exp(at(1.0 - outside)))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """n draws of both parameters, a line each: the first by its distribution function, the second by the nearest row."""
        grid = self._grid(0)
        x = np.asarray(grid.quantile(rng.random(n)))
        i = np.clip(np.rint((x - grid.x[0]) / (grid.x[1] - grid.x[0])).astype(np.intp), 0, len(grid.x) - 1)
        shares = np.exp(grid.logs - grid.logs.max(axis=1, keepdims=True)).cumsum(axis=1)
        j = (shares[i] < (rng.random(n) * shares[i, -1])[:, None]).sum(axis=1)
        v = grid.v[i, j] + (rng.random(n) - 0.5) * grid.steps[i]
        return np.stack(_both(0, x, v), axis=-1)

    def _grid(self, which: int) -> _Grid:
        """The grid of ln of one parameter and ln of their ratio."""
        centre = np.log(self.mode[which])
        ends = np.array([[centre - 1.0, centre + 1.0]])
        for _ in range(ROUNDS):
            grid = self._within(which, ends, COARSE)
            moved = _ends(grid.x[None], grid.rows[None])
            if _still(ends, moved):
                break
            ends = moved
        return self._within(which, ends, POINTS)

    def _within(self, which: int, ends: Array, n: int) -> _Grid:
        """The grid between these ends of x; those of v, for each x, are looked for."""
        x, ratio = np.linspace(ends[0, 0], ends[0, 1], n), float(np.log(self.mode[0]) - np.log(self.mode[1]))
        inner = np.tile([ratio - 1.0, ratio + 1.0], (n, 1))
        for _ in range(ROUNDS):
            grid = self._at(which, x, inner, COARSE)
            moved = _ends(grid.v, grid.logs)
            if _still(inner, moved):
                break
            inner = moved
        return self._at(which, x, inner, n)

    def _at(self, which: int, x: Array, inner: Array, n: int) -> _Grid:
        v = np.linspace(inner[:, 0], inner[:, 1], n, axis=1)
        a, b = _both(which, x[:, None], v)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            far = self.peak._divergence(type(self.peak)(a, b))
        logs = -self.count * np.where(np.isnan(far), np.inf, far) + np.log(a) + np.log(b)
        steps = (inner[:, 1] - inner[:, 0]) / (n - 1)
        return _Grid(x, v, logs, steps, sc.logsumexp(logs, axis=1) + np.log(steps))


@dataclass(frozen=True, eq=False)
class _Grid:
    """The logarithm of the density of x, ln of a parameter, and of v, ln of the ratio, less that at the peak: a row for each x,
    whose points of v are `steps` apart, and ln of the integral over the row."""

    x: Array
    v: Array
    logs: Array
    steps: Array
    rows: Array

    @cached_property
    def quantile(self) -> Callable[[Any], Any]:
        """x, by the probability of what lies below it."""
        from scipy.interpolate import CubicSpline, PchipInterpolator

        below = np.maximum.accumulate(CubicSpline(self.x, np.exp(self.rows - self.rows.max())).antiderivative()(self.x))
        kept = np.concatenate([[True], np.diff(below) > 0.0])
        at: Callable[[Any], Any] = PchipInterpolator(below[kept] / below[-1], self.x[kept])
        return at


def _both(which: int, x: Array, v: Array) -> tuple[Array, ...]:
    """Both parameters from ln of one of them, and ln of their ratio, inside what a double holds."""
    other = np.clip(x - v if which == 0 else x + v, -FARTHEST, FARTHEST)
    own, other = np.broadcast_arrays(np.exp(np.clip(x, -FARTHEST, FARTHEST)), np.exp(other))
    return (own, other) if which == 0 else (other, own)


def _ends(at: Array, profile: Array) -> Array:
    """Where each row of points should end: where the profile has fallen, or farther out where it has not yet."""
    high = profile >= profile.max(axis=1, keepdims=True) - DROP
    last = at.shape[1] - 1
    first, final = np.argmax(high, axis=1), last - np.argmax(high[:, ::-1], axis=1)
    width, rows = at[:, -1] - at[:, 0], np.arange(len(at))
    step = width / last
    low = np.where(first == 0, at[:, 0] - width, at[rows, first] - step)
    top = np.where(final == last, at[:, -1] + width, at[rows, final] + step)
    return np.stack([low, top], axis=1)


def _still(ends: Array, moved: Array) -> bool:
    """Whether ends are where they should be, but for a tenth of what lies between them."""
    return bool((np.abs(moved - ends) <= 0.1 * (ends[:, 1] - ends[:, 0])[:, None]).all())
