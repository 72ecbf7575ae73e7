"""Entropies of counts at many rates, of which few may differ and some may be unknown, and the means of ln n! behind them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from suffice.exponential.poisson import Poisson

Array = npt.NDArray[np.float64]

TOGETHER = 4096
"""Rates whose sums are held in memory at once."""


def poisson_entropy(rates: Array) -> Array:
    """H of a Poisson distribution of each rate, in nats; NaN where the rate is.

    >>> poisson_entropy(np.array([0.0, 1.0, 1.0, np.nan, 1e6])).round(6)
    array([0.      , 1.304842, 1.304842,      nan, 8.326694])
    """
    result = np.full(np.shape(rates), np.nan)
    known = ~np.isnan(rates)
    distinct, inverse = np.unique(rates[known], return_inverse=True)
    parts = [Poisson(distinct[i : i + TOGETHER]).entropy() for i in range(0, len(distinct), TOGETHER)]
    if parts:
        result[known] = np.concatenate(parts)[inverse]
    return result


def log_factorial(rates: Array) -> Array:
    """E[ln n!] of a count of each rate λ: H − λ + λ ln λ.

    >>> log_factorial(np.array([0.0, 2.0])).round(6)
    array([0.      , 1.091177])
    """
    from scipy.special import xlogy

    return np.asarray(poisson_entropy(rates) - rates + xlogy(rates, rates))
