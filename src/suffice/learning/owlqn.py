"""Minimise a smooth convex function plus Σ c|x|: L-BFGS, kept to one orthant at a time where there is a price of |x|.

Andrew & Gao 2007, Scalable training of L1-regularized log-linear models, ICML 24, p. 33; without a price it is plain L-BFGS
(Nocedal & Wright 2006, p. 177) with a search along each direction. Where weights are many too many, orthants are left and
entered again without end; so what is priced is first brought near by bounds, x = u − v with u, v ≥ 0 (scipy's L-BFGS-B), in a
tenth of the passes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import numpy as np

from suffice.basis.arrays import Array

Evaluate = Callable[[Array], tuple[float, Array]]

ARMIJO, SHRINK = 1e-4, 0.5
"""A step must gain this share of what the slope promises, or is shrunk by this much."""
STEEP, STRETCH, TRIALS = 0.9, 4.0, 20
"""After a step the slope must be less steep than this share of the first; else it is stretched by this much, so often at most."""
ROUNDING = 2e-15
"""Gains below this share of the value are rounding: the last steps may seem to lose as much."""


PATIENCE, NEAR = 20, 1e3
"""After so many iterations without a gain that is more than rounding, a slope of so many times `tol` is the end, too."""


class Minimum(NamedTuple):
    """Where the function is smallest, its value there with the price, the largest pseudo-gradient, and how it was found."""

    x: Array
    value: float
    slope: float
    iterations: int
    evaluations: int
    converged: bool


def minimise(
    value_and_gradient: Evaluate,
    start: Array,
    *,
    l1: Array | None = None,
    memory: int = 10,
    tol: float = 1e-9,
    max_iter: int = 1000,
    check: Callable[[int, float], None] | None = None,
    bounds: bool = True,
) -> Minimum:
    """The minimum of f(x) + Σ l1 |x|, where the largest pseudo-gradient is at most `tol`, or hardly anything more can be gained.
    `check` is called with the iteration and the value, and may raise to stop. Without `bounds`, orthants are gone through from
    the start on, so that each iteration is one of OWL-QN, and `check` is called at the points on its way only."""
    price = np.zeros(len(start)) if l1 is None else l1
    priced = bool(price.any())
    x = np.array(start, dtype=np.float64)
    evaluations = 1
    if priced and bounds:
        x, evaluations = _within_bounds(value_and_gradient, x, price, memory, tol, max_iter, check)
    smooth, gradient = value_and_gradient(x)
    value = smooth + float(price @ np.abs(x))
    steps: list[tuple[Array, Array, float]] = []
    slope, values = pseudo_gradient(x, gradient, price) if priced else gradient, [value]
    for iteration in range(max_iter):
        steepest = float(np.abs(slope).max(initial=0.0))
        stalled = len(values) > PATIENCE and values[-PATIENCE - 1] - value <= ROUNDING * max(abs(value), 1.0)
        if steepest <= tol or (stalled and steepest <= NEAR * tol):
            return Minimum(x, value, steepest, iteration, evaluations, True)
        if check is not None:
            check(iteration, value)
        direction = -_newton_direction(slope, steps)
        if priced:
            direction[direction * slope >= 0.0] = 0.0
        promised = float(direction @ slope)
        if not promised < 0.0:
            steps.clear()
            direction, promised = -slope, -float(slope @ slope)
        step = 1.0 if steps else 1.0 / max(float(np.linalg.norm(slope)), 1e-300)
        allowed = ROUNDING * max(abs(value), 1.0)
        search = _shrunk if priced else _line_search
        found = search(value_and_gradient, Ray(x, direction, value, slope, price, promised, allowed), step)
        evaluations += found.evaluations
        if found.moved is None:
            return Minimum(x, value, steepest, iteration, evaluations, steepest <= NEAR * tol)
        moved, new, after = found.moved, found.gradient, found.value
        s, y = moved - x, new - gradient
        curvature = float(s @ y)
        if curvature > 1e-12 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            steps.append((s, y, curvature))
            del steps[:-memory]
        x, gradient, value = moved, new, after
        values.append(value)
        slope = pseudo_gradient(x, gradient, price) if priced else gradient
    return Minimum(x, value, float(np.abs(slope).max(initial=0.0)), max_iter, evaluations, False)


def _within_bounds(
    value_and_gradient: Evaluate,
    start: Array,
    price: Array,
    memory: int,
    tol: float,
    max_iter: int,
    check: Callable[[int, float], None] | None,
) -> tuple[Array, int]:
    """Where f(u − v) + Σ c (u + v) is about smallest for u, v ≥ 0, as u − v, and how often f was asked for."""
    from scipy.optimize import minimize

    n, asked = len(start), 0

    def loss(both: Array) -> tuple[float, Array]:
        nonlocal asked
        smooth, gradient = value_and_gradient(both[:n] - both[n:])
        asked += 1
        if check is not None:
            check(asked, smooth)
        return smooth + float(price @ (both[:n] + both[n:])), np.concatenate([gradient + price, price - gradient])

    options = {"maxcor": memory, "maxiter": max_iter, "maxfun": 4 * max_iter, "ftol": 1e-16, "gtol": tol}
    free = price <= 0.0  # these are not split: v stays 0
    both = np.concatenate([np.where(free, start, np.maximum(start, 0.0)), np.where(free, 0.0, np.maximum(-start, 0.0))])
    bounds = [(None if f else 0.0, None) for f in free] + [(0.0, 0.0 if f else None) for f in free]
    found = minimize(loss, both, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return found[:n] - found[n:], asked


class Ray(NamedTuple):
    """Where a step begins and goes: the value and slope there, the price, what the slope promises, what rounding may lose."""

    x: Array
    direction: Array
    value: float
    slope: Array
    price: Array
    promised: float
    allowed: float

    def too_small(self, step: float) -> bool:
        """Whether a step would change nothing."""
        return step * float(np.abs(self.direction).max()) < 1e-16 * (1.0 + float(np.abs(self.x).max()))


class Moved(NamedTuple):
    """The point that a search ended at, or None where nothing was gained; its gradient and value; how often it looked."""

    moved: Array | None
    gradient: Array
    value: float
    evaluations: int


def _shrunk(value_and_gradient: Evaluate, ray: Ray, step: float) -> Moved:
    """Steps within an orthant, shrunk until one gains enough."""
    x, _, value, slope, price, _, allowed = ray
    orthant = np.where(x != 0.0, np.sign(x), -np.sign(slope))
    for n in count(1):
        moved = x + step * ray.direction
        moved[moved * orthant < 0.0] = 0.0
        smooth, new = value_and_gradient(moved)
        after = smooth + float(price @ np.abs(moved))
        if after <= value + ARMIJO * float(slope @ (moved - x)) + allowed:
            return Moved(moved, new, after, n)
        step *= SHRINK
        if ray.too_small(step):
            return Moved(None, new, after, n)
    raise AssertionError


class LineTrial(NamedTuple):
    """A step, and value and slope along the ray after it."""

    step: float
    value: float
    slope: float


def _line_search(value_and_gradient: Evaluate, ray: Ray, step: float) -> Moved:
    """A step that gains enough and after which the slope is less steep: stretched while it falls, else between two trials. Moré &
    Thuente 1994, ACM Transactions on Mathematical Software 20, p. 286, without its first stage."""
    near, far, width = LineTrial(0.0, ray.value, ray.promised), None, np.inf
    for n in count(1):
        moved = ray.x + step * ray.direction
        after, new = value_and_gradient(moved)
        trial = LineTrial(step, after, float(new @ ray.direction))
        enough = after <= ray.value + ARMIJO * step * ray.promised + ray.allowed
        if enough and (abs(trial.slope) <= -STEEP * ray.promised or n >= TRIALS):
            return Moved(moved, new, after, n)
        if after > near.value + ray.allowed:
            step, far = _between(near, trial), trial
        elif trial.slope >= 0.0:
            step, near, far = _between(trial, near), trial, near
        else:
            step = step + STRETCH * (step - near.step) if far is None else _between(trial, far)
            near = trial
        if far is not None:
            if abs(far.step - near.step) > 0.66 * width:
                step = 0.5 * (near.step + far.step)
            width = abs(far.step - near.step)
        if ray.too_small(step) or n > 2 * TRIALS:
            return Moved(None, new, after, n)
    raise AssertionError


def _between(near: LineTrial, far: LineTrial) -> float:
    """The lowest step of a cubic through two trials, or half way from it to that of a parabola, if that is nearer to `near`.

    Half way between the trials where they do not tell: both slopes may be 0 or alike, near the limit of what rounding shows.

    >>> _between(LineTrial(0.0, 1.0, 0.0), LineTrial(2.0, 1.0, 0.0))
    1.0
    """
    d = far.step - near.step
    try:
        theta = 3.0 * (near.value - far.value) / d + near.slope + far.slope
        size = max(abs(theta), abs(near.slope), abs(far.slope))
        root = size * np.sqrt(max(0.0, (theta / size) ** 2 - near.slope / size * (far.slope / size)))
        root = root if d > 0.0 else -root
        cubic = near.step + d * (root - near.slope + theta) / (2.0 * root - near.slope + far.slope)
        if far.value > near.value:
            parabola = near.step + 0.5 * d * near.slope / ((near.value - far.value) / d + near.slope)
            step = cubic if abs(cubic - near.step) < abs(parabola - near.step) else 0.5 * (cubic + parabola)
        else:
            secant = near.step + d * near.slope / (near.slope - far.slope)
            step = cubic if abs(cubic - near.step) > abs(secant - near.step) else secant
    except ZeroDivisionError:
        step = np.nan
    return float(step) if np.isfinite(step) else 0.5 * (near.step + far.step)


def pseudo_gradient(x: Array, gradient: Array, price: Array) -> Array:
    """The steepest way up of f + Σ c|x|, 0 where the price holds x at 0."""
    at_zero = np.where(gradient > price, gradient - price, np.where(gradient < -price, gradient + price, 0.0))
    return np.where(x == 0.0, at_zero, gradient + price * np.sign(x))


def _newton_direction(slope: Array, steps: list[tuple[Array, Array, float]]) -> Array:
    """The slope times the inverse curvature that past steps have seen."""
    q, shares = slope.copy(), []
    for s, y, curvature in reversed(steps):
        share = float(s @ q) / curvature
        shares.append(share)
        q -= share * y
    if steps:
        s, y, curvature = steps[-1]
        q *= curvature / float(y @ y)
    for (s, y, curvature), share in zip(steps, reversed(shares), strict=True):
        q += s * (share - float(y @ q) / curvature)
    return q
