"""Ends of intervals of the gamma and Student t distributions, where scipy's inverses have lost them."""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.exponential.interval import Interval
from suffice.exponential.saddle import deviance, log_beta, log_poisson
from suffice.exponential.statistic import Array

LARGE = 1e5
"""From this shape on scipy's inverse of the gamma distribution has not all digits in the tails."""
STEPS = 6
"""Newton's: from where it begins, three are enough."""
C0 = (-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600)
C1 = (-1 / 540, -1 / 288, 1 / 378)
"""The coefficients of powers of η in the first two terms of Temme's expansion."""
FAR = -40.0
"""exp of this is nothing beside 1."""


def gamma_ends(shape: Any, outside: float) -> Interval:
    """The numbers below and above which Gamma(shape, 1) has the probability `outside`.

    >>> lower, upper = gamma_ends(1e8, 0.025)
    >>> round(float(lower) - 1e8), round(float(upper) - 1e8)
    (-19599, 19601)
    """
    from scipy.special import gammainccinv, gammaincinv

    shape = np.asarray(shape, dtype=np.float64)
    few, many = np.where(shape < LARGE, shape, 1.0), np.maximum(shape, LARGE)
    lower, upper = _newton(many, outside, -1.0), _newton(many, outside, 1.0)
    inside = shape < LARGE
    ends = gammaincinv(few, outside), gammainccinv(few, outside)
    return Interval(np.where(inside, ends[0], lower), np.where(inside, ends[1], upper))


def _newton(shape: Array, outside: float, side: float) -> Array:
    """Where the probability beyond x, on one side, is `outside`: by Newton in its log, from the cube of Wilson & Hilferty."""
    from scipy.special import ndtri

    x = shape * (1.0 - 1.0 / (9.0 * shape) - side * ndtri(outside) / (3.0 * np.sqrt(shape))) ** 3
    for _ in range(STEPS):
        beyond = _beyond(shape, x, side)
        # The density at x is shape/x Pois(shape; x).
        slope = np.exp(log_poisson(shape, x)) * (shape / x) / beyond
        x = x + side * np.log(beyond / outside) / slope
    return np.asarray(x)


def _beyond(shape: Array, x: Array, side: float) -> Array:
    """P(X < x), or P(X > x) where the side is 1, of Gamma(shape, 1), by the first terms of Temme's expansion (DLMF 8.12.7–10):

    Φ(side·−z) + side e^(−z²/2)/√2πa (c₀(η) + c₁(η)/a),   z²/2 = aη²/2 = a ln a/x − a + x

    scipy's own loses the lower tail from a = 1e7 on.
    """
    from scipy.special import ndtr

    z = np.copysign(np.sqrt(2.0 * deviance(shape, x)), x - shape)
    eta = z / np.sqrt(shape)
    c = np.polyval(C0[::-1], eta) + np.polyval(C1[::-1], eta) / shape
    return np.asarray(ndtr(-side * z) + side * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi * shape) * c)


def student_end(df: Any, outside: float) -> Array:
    """The t above which there is the probability `outside`.

    y = df/(df + t²) is Beta(df/2, ½) there; where it is below all rounding, its probability is a power of it.

    >>> round(float(student_end(3.0, 0.025)), 4)
    3.1824
    """
    from scipy.special import stdtrit

    df = np.asarray(df, dtype=np.float64)
    a = 0.5 * df
    log_y = (np.log(2.0 * outside) + np.log(a) + log_beta(np.stack([a, np.full_like(a, 0.5)], axis=-1))) / a
    far = log_y < FAR
    with np.errstate(over="ignore"):
        power = np.exp(0.5 * (np.log(df) - np.where(far, log_y, 0.0)))
    return np.asarray(np.where(far, power, -stdtrit(np.where(far, 1.0, df), outside)))
