"""Minimise a smooth convex function plus Σ c|x|: L-BFGS, kept to one orthant at a time where there is a price of |x|.

Andrew & Gao 2007, Scalable training of L1-regularized log-linear models, ICML 24, p. 33; without a price it is plain L-BFGS
(Nocedal & Wright 2006, p. 177) with backtracking. Where weights are many too many, orthants are left and entered again without
end; so what is priced is first brought near by bounds, x = u − v with u, v ≥ 0 (scipy's L-BFGS-B), in a tenth of the passes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

ARMIJO, SHRINK = 1e-4, 0.5
"""A step must gain this share of what the slope promises, or is shrunk by this much."""
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


def minimised(
    value_and_gradient: Callable[[Array], tuple[float, Array]],
    start: Array,
    *,
    l1: Array | None = None,
    memory: int = 10,
    tol: float = 1e-9,
    max_iter: int = 1000,
    check: Callable[[int, float], None] | None = None,
) -> Minimum:
    """The minimum of f(x) + Σ l1 |x|, where the largest pseudo-gradient is at most `tol`, or hardly anything more can be gained.

    `check` is called with the iteration and the value, and may raise to stop.

    >>> found = minimised(lambda x: (float(((x - 2.0) ** 2).sum()), 2.0 * (x - 2.0)), np.zeros(2), l1=np.array([1.0, 9.0]))
    >>> found.x.round(6), found.converged
    (array([1.5, 0. ]), True)
    """
    price = np.zeros(len(start)) if l1 is None else l1
    priced = bool(price.any())
    x = np.array(start, dtype=np.float64)
    evaluations = 1
    if priced:
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
        direction = -_curved(slope, steps)
        if priced:
            direction[direction * slope >= 0.0] = 0.0
        promised = float(direction @ slope)
        if not promised < 0.0:
            steps.clear()
            direction, promised = -slope, -float(slope @ slope)
        step = 1.0 if steps else 1.0 / max(float(np.linalg.norm(slope)), 1e-300)
        orthant = np.where(x != 0.0, np.sign(x), -np.sign(slope))
        allowed = ROUNDING * max(abs(value), 1.0)
        while True:
            moved = x + step * direction
            if priced:
                moved[moved * orthant < 0.0] = 0.0
            smooth, new = value_and_gradient(moved)
            after, evaluations = smooth + float(price @ np.abs(moved)), evaluations + 1
            gained = float(slope @ (moved - x)) if priced else step * promised
            if after <= value + ARMIJO * gained + allowed:
                break
            step *= SHRINK
            if step * float(np.abs(direction).max()) < 1e-16 * (1.0 + float(np.abs(x).max())):
                return Minimum(x, value, steepest, iteration, evaluations, steepest <= NEAR * tol)
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
    value_and_gradient: Callable[[Array], tuple[float, Array]],
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


def pseudo_gradient(x: Array, gradient: Array, price: Array) -> Array:
    """The steepest way up of f + Σ c|x|, 0 where the price holds x at 0.

    >>> pseudo_gradient(np.array([0.0, 0.0, 2.0]), np.array([3.0, 0.5, 1.0]), np.ones(3))
    array([2., 0., 2.])
    """
    at_zero = np.where(gradient > price, gradient - price, np.where(gradient < -price, gradient + price, 0.0))
    return np.where(x == 0.0, at_zero, gradient + price * np.sign(x))


def _curved(slope: Array, steps: list[tuple[Array, Array, float]]) -> Array:
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
