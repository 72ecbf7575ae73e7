"""Equal-tailed intervals of parameters, and the check of their level."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from suffice.errors import FitError


class Interval(NamedTuple):
    """An equal-tailed interval, one pair of ends per parameter.

    >>> Interval(0.1, 0.6).upper
    0.6
    """

    lower: Any
    upper: Any


def checked_level(level: Any) -> float:
    """The level of an interval.

    >>> checked_level(0.95)
    0.95
    """
    if not (isinstance(level, (int, float, np.number)) and 0.0 < level < 1.0):
        raise FitError(f"the level of an interval lies between 0 and 1, for instance 0.95; not {level!r}")
    return float(level)


def tail(level: Any) -> float:
    """The probability outside each end of an interval of this level.

    >>> tail(0.5)
    0.25
    """
    return (1.0 - checked_level(level)) / 2.0
