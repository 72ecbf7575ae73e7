"""Where iterations start: points that lie far apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


def far_apart(points: Array, weight: Array, n: int, rng: np.random.Generator) -> list[int]:
    """Numbers of n points: the first drawn at random, each next with a probability in proportion to its squared distance from
    the nearest one before (Arthur & Vassilvitskii 2007, SODA, p. 1029), both times its weight.

    >>> sorted(far_apart(np.array([[0.0], [0.0], [9.0]]), np.array([1.0, 0.0, 1.0]), 2, np.random.default_rng(0)))
    [0, 2]
    """
    chosen = [int(rng.choice(len(points), p=weight / weight.sum()))]
    nearest = np.full(len(points), np.inf)
    while len(chosen) < n:
        nearest = np.minimum(nearest, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
        odds = weight * nearest
        odds = odds if odds.sum() > 0.0 else weight  # fewer distinct points than are asked for
        chosen.append(int(rng.choice(len(points), p=odds / odds.sum())))
    return chosen
