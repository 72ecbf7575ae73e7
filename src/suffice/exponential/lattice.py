"""Sums over whole numbers, of which there may be billions: E[f(x)] of a count with a known mean and spread.

The trapezoid rule on a smooth bump is exact to all digits once its step is a fraction of the bump's width: the error of the step
h at the standard deviation s is of the order of exp(−2π²s²/h²), here below 1e-300. So a few hundred stand for all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.exponential.statistic import Array

WIDTH = 12.0
"""Standard deviations on each side; and LEAST more numbers, for what is skew where the mean is small."""
LEAST = 60.0
STEPS = 6.0
"""Numbers in one standard deviation."""


def lattice(mean: Any, deviation: Any, high: Any = np.inf) -> tuple[Array, Array]:
    """Whole numbers from 0 to `high` around a mean, an axis more at the end, and the weight of each: 0 beyond the bounds.

    >>> x, w = lattice(0.5, 0.5, 2)
    >>> x[w > 0], w[w > 0]
    (array([0., 1., 2.]), array([1., 1., 1.]))
    """
    mean, deviation, high = (np.asarray(a, dtype=np.float64)[..., None] for a in (mean, deviation, high))
    step = np.maximum(np.floor(deviation / STEPS), 1.0)
    each_side = int(np.max(np.ceil((WIDTH * deviation + LEAST) / step), initial=1.0))
    x = np.rint(mean) + step * np.arange(-each_side, each_side + 1)
    inside = (x >= 0.0) & (x <= high)
    return np.where(inside, x, 0.0), np.where(inside, step, 0.0)
