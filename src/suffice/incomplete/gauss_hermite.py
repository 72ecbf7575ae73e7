"""Gauss–Hermite quadrature: points and weights for means over standard normal numbers; of many numbers at once seeded draws."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from suffice.basis.arrays import Array

POINTS = {1: 33, 2: 15, 3: 9}
"""HermitePoints for each of one, two or three numbers that are missing together: 33, 15² and 9³ in all."""

DRAWS, SEED = 2_000, 0
"""Draws that stand for more numbers, half of them the others with the opposite sign."""

TAIL = 1e-12
"""The share of the sum over a missing count that is left out, at most."""


class HermitePoints(NamedTuple):
    """Standard normal points (number, point), their log-weights, and how near the points lie to each other; 0 of draws."""

    z: Array
    log_weight: Array
    spacing: float


def n_points(d: int) -> int:
    """How many points stand for d numbers.

    >>> n_points(1), n_points(2), n_points(7)
    (33, 225, 2000)
    """
    return POINTS[d] ** d if d in POINTS else DRAWS


@cache
def points(d: int) -> HermitePoints:
    """The points for d numbers.

    >>> at = points(2)
    >>> round(float(np.exp(at.log_weight) @ (at.z[0] ** 4 * at.z[1] ** 2)), 9)
    3.0
    """
    if d not in POINTS:
        half = np.random.default_rng(SEED).standard_normal((d, DRAWS // 2))
        return HermitePoints(np.concatenate([half, -half], axis=1), np.full(DRAWS, -np.log(DRAWS)), 0.0)
    x, w = np.polynomial.hermite_e.hermegauss(POINTS[d])
    z = np.stack(np.meshgrid(*[x] * d, indexing="ij")).reshape(d, -1)
    weight = np.stack(np.meshgrid(*[np.log(w) - 0.5 * np.log(2.0 * np.pi)] * d, indexing="ij")).reshape(d, -1)
    return HermitePoints(z, weight.sum(axis=0), float(np.diff(x).min()))


def error_of(d: int) -> float:
    """By how much ln of an integral over d numbers may be off, and change as the points move, about: the slack that EM has."""
    return 0.0 if d == 0 else 1e-6 if d == 1 else 1e-4 if d in POINTS else 1e-2


def integrated_in_words() -> str:
    """Which points stand for missing numbers, in words."""
    counts = [f"{POINTS[1]} points for one number", f"{POINTS[2]}² for two", f"{POINTS[3]}³ for three that are missing together"]
    points = f"adaptive Gauss-Hermite quadrature ({', '.join(counts)}; {DRAWS:,} seeded draws for more)"
    return f"missing numbers under regressions are integrated by {points}"


def summed_in_words() -> str:
    """Which values stand for missing counts, in words."""
    return f"missing counts that have children are summed, from 0 up to where less than {TAIL:g} of the posterior is left"
