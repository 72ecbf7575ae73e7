"""Differences of log-gamma functions that keep their digits where the functions themselves are huge.

    ln Γ(z) = (z − ½) ln z − z + ½ ln 2π + S(z),   S(z) = 1/12z − 1/360z³ + 1/1260z⁵ − …

At a shape of 1e8 ln Γ is 1.7e9, and a double of that size ends at 2e-7; S and what follows from it have all their digits.
Abramowitz & Stegun 1964, 6.1.40 and 6.3.18.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.exponential.statistic import Array

HALF_LOG_2PI = 0.5 * float(np.log(2.0 * np.pi))

LARGE = 16.0
"""From here on six terms of the series have all digits of a double."""

_REST = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_TRIGAMMA = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def stirling_rest(z: Any) -> Array:
    """S(z): what Stirling's formula leaves of ln Γ(z).

    >>> round(float(stirling_rest(1e8) * 12e8), 12)
    1.0
    """
    from scipy.special import gammaln

    z = np.asarray(z, dtype=np.float64)
    small = np.where(z < LARGE, z, 1.0)
    exact = gammaln(small) - ((small - 0.5) * np.log(small) - small + HALF_LOG_2PI)
    return np.where(z < LARGE, exact, _odd_series(np.maximum(z, LARGE), _REST))


def log_gamma_step(z: Any, step: Any) -> Array:
    """ln Γ(z + step) − ln Γ(z).

    >>> round(float(log_gamma_step(1e15, 1.0) - np.log(1e15)), 12)
    0.0
    """
    from scipy.special import gammaln

    z, step = np.broadcast_arrays(np.asarray(z, dtype=np.float64), np.asarray(step, dtype=np.float64))
    large = np.minimum(z, z + step) >= LARGE
    # The scores of a search are made of these: what all are is computed for all, and nothing else.
    if large.all():
        return _stirling_step(z, step)
    with np.errstate(invalid="ignore"):
        result = np.asarray(gammaln(z + step) - gammaln(z))
    if large.any():
        result[large] = _stirling_step(z[large], step[large])
    return result


def log_minus_digamma(z: Any) -> Array:
    """ln z − ψ(z), which is 1/2z and a little.

    >>> round(float(log_minus_digamma(1e8) * 2e8), 8)
    1.0
    """
    from scipy.special import digamma

    z = np.asarray(z, dtype=np.float64)
    small, large = np.where(z < LARGE, z, 1.0), np.maximum(z, LARGE)
    series = 0.5 / large + _odd_series(large, _DIGAMMA) / large
    return np.asarray(np.where(z < LARGE, np.log(small) - digamma(small), series))


def log_multigamma_step(z: Any, step: Any, d: int) -> Array:
    """ln Γ_d(z + step) − ln Γ_d(z) of the multivariate gamma function: that of Γ at z, z − ½, …, z − (d − 1)/2.

    >>> bool(np.isclose(log_multigamma_step(3.0, 1.0, 2), np.log(3.0 * 2.5)))
    True
    """
    places = np.asarray(z, dtype=np.float64)[..., None] - 0.5 * np.arange(d)
    return np.asarray(log_gamma_step(places, np.asarray(step, dtype=np.float64)[..., None]).sum(axis=-1))


def log_growth(before: Any, added: Any) -> Array:
    """ln((before + added)/before), for before > 0 and added ≥ 0, whether little is added or very much.

    >>> float(log_growth(1.0, 1e-20)), round(float(log_growth(1e-300, 1e300)), 6)
    (1e-20, 1381.551056)
    """
    before, added = np.asarray(before, dtype=np.float64), np.asarray(added, dtype=np.float64)
    much = added > before
    little = np.log1p(np.where(much, 0.0, added) / before)
    return np.asarray(np.where(much, np.log(before + added) - np.log(before), little))


def excess_over_log(x: Any) -> Array:
    """x − ln(1 + x) ≥ 0, what divergences are made of.

    >>> round(float(excess_over_log(1e-9) * 2e18), 6)
    1.0
    """
    x = np.asarray(x, dtype=np.float64)
    near = np.abs(x) < 0.01
    small, other = np.where(near, x, 0.0), np.where(near | (x == np.inf), 0.0, x)
    series = sum((-1.0) ** k * small**k / k for k in range(2, 10))
    with np.errstate(divide="ignore"):
        return np.where(x == np.inf, np.inf, np.where(near, series, other - np.log1p(other)))


def ratio_excess(top: Any, bottom: Any) -> Array:
    """r − 1 − ln r ≥ 0 of r = top/bottom, both above 0; from r − 1 where that is small, else from r and the logs of both.

    >>> float(ratio_excess(1e-20, 1.0).round(6)), float(ratio_excess(1.0 + 1e-9, 1.0) > 0.0)
    (45.051702, 1.0)
    """
    top, bottom = np.broadcast_arrays(np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64))
    near = np.abs(top - bottom) < 0.5 * bottom
    with np.errstate(over="ignore"):
        far = top / bottom - 1.0 - (np.log(top) - np.log(bottom))
    return np.where(near, excess_over_log(np.where(near, top - bottom, 0.0) / bottom), far)


def stirling_divergence(a: Any, c: Any) -> Array:
    """½ ln a/c − (a − c)(ln a − ψ(a)) + S(c) − S(a): what ln Γ(c) − ln Γ(a) − (c − a) ψ(a) has beside c ln c/a − c + a.

    >>> float(stirling_divergence(1e9, 1e9)), round(float(stirling_divergence(1e9, 1.0)), 6)
    (0.0, 9.942694)
    """
    a, c = np.asarray(a, dtype=np.float64), np.asarray(c, dtype=np.float64)
    # ln a − ψ(a) is 1/2a and a little: the first goes with the logs, so that like shapes leave no more than their difference.
    little = log_minus_digamma(a) - 0.5 / a
    with np.errstate(over="ignore"):
        return np.asarray(0.5 * ratio_excess(c, a) + (c - a) * little + (stirling_rest(c) - stirling_rest(a)))


def inverse_log_minus_digamma(gap: Any) -> Array:
    """The z with ln z − ψ(z) = gap > 0, by Newton in ln z, inside 1/2gap < z < 1/gap, which hold it.

    >>> z = np.array([1e-3, 1.0, 1e8])
    >>> bool(np.allclose(inverse_log_minus_digamma(log_minus_digamma(z)), z, rtol=1e-13))
    True
    """
    from scipy.special import polygamma

    gap = np.asarray(gap, dtype=np.float64)
    low, high = np.log(0.5 / gap), -np.log(gap)
    t = np.log(3.0 - gap + np.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) - np.log(12.0 * gap)
    for _ in range(60):
        z = np.exp(np.clip(t, low, high))
        value = log_minus_digamma(z)
        large = np.maximum(z, LARGE)
        # z (1/z − ψ′(z)), by its series where 1/z and ψ′(z) are all but equal.
        slope = np.where(z < LARGE, 1.0 - z * polygamma(1, np.minimum(z, LARGE)), -large * _trigamma_excess(large))
        # In the logarithm of the value the curve is all but straight.
        step = value * np.log(value / gap) / slope
        t = np.clip(np.log(z) - step, low, high)
        if np.all(np.abs(step) < 1e-15 * (1.0 + np.abs(t))):
            break
    return np.asarray(np.exp(t))


def _stirling_step(z: Array, step: Array) -> Array:
    """ln Γ(z + step) − ln Γ(z) by Stirling's formula."""
    after, before = _odd_series(np.stack([z + step, z]), _REST)
    return np.asarray((z + step - 0.5) * np.log1p(step / z) + step * (np.log(z) - 1.0) + (after - before))


def _trigamma_excess(z: Array) -> Array:
    """ψ′(z) − 1/z = 1/2z² + 1/6z³ − 1/30z⁵ + 1/42z⁷ − …"""
    return np.asarray(0.5 / z**2 + _odd_series(z, _TRIGAMMA) / z**2)


def _odd_series(z: Array, terms: tuple[float, ...]) -> Array:
    """Σ c_i / z^(2i+1)."""
    inverse = (1.0 / z) ** 2
    total = np.zeros_like(z)
    for c in reversed(terms):
        total = total * inverse + c
    return np.asarray(total / z)
