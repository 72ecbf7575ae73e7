"""Densities on a line that are exp of straight pieces between points: their masses and quantiles; plain arrays.

    ∫ exp over a piece of the width w from a to b  =  w (exp b − exp a) / (b − a)

Such pieces follow a log-concave density closely: its tails are nearly lines, and its cliffs lie between two points.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Lines:
    """Densities of which ln p, up to a constant of each, is `height` [density, point] at the points `at`.

    >>> one = Lines(np.array([[0.0, 1.0, 50.0]]), np.array([[0.0, -1.0, -50.0]]))
    >>> one.log_mass.round(6), one.quantiles(np.array([0]), np.array([0.5])).round(6)
    (array([0.]), array([0.693147]))
    """

    at: Array
    height: Array

    @cached_property
    def mass(self) -> Array:
        """That of each piece."""
        fall = np.maximum(np.abs(np.diff(self.height)), 1e-12)
        top = np.maximum(self.height[:, 1:], self.height[:, :-1])
        return np.asarray(np.diff(self.at) * np.exp(top) * -np.expm1(-fall) / fall)

    @property
    def log_mass(self) -> Array:
        return np.asarray(np.log(self.mass.sum(axis=1)))

    def quantiles(self, which: Places, shares: Array) -> Array:
        """The points of these densities below which such shares of their mass lie."""
        i, share = reached(self.mass, which, shares)
        i += i // self.mass.shape[1]  # there is one point more than there are pieces
        at, height = self.at.reshape(-1), self.height.reshape(-1)
        return np.asarray(at[i] + (at[i + 1] - at[i]) * _along(height[i + 1] - height[i], share))


def reached(mass: Array, which: Places, shares: Array) -> tuple[Places, Array]:
    """The pieces, counted through all rows of `mass`, in which such shares of a row are reached, and the share of that piece.

    >>> reached(np.array([[1.0, 3.0], [2.0, 2.0]]), np.array([0, 1]), np.array([0.625, 0.25]))
    (array([1, 2]), array([0.5, 0.5]))
    """
    n = mass.shape[1]
    below = np.cumsum(mass, axis=1)
    below /= below[:, -1:]
    # all rows in one increasing line: row i from i to i + 1
    i = np.searchsorted((below + np.arange(len(below))[:, None]).reshape(-1), which + shares)
    i = np.clip(i, which * n, (which + 1) * n - 1)
    start = np.where(i % n == 0, 0.0, below.reshape(-1)[i - 1])
    return i, np.clip((shares - start) / np.maximum(below.reshape(-1)[i] - start, 1e-300), 0.0, 1.0)


def both_sides(left: Array, right: Array, n: int) -> Array:
    """Points from −left to right, n pieces on each side of 0, denser there and at the ends, where there may be a cliff.

    >>> both_sides(np.array(1.0), np.array(2.0), 2)
    array([-1. , -0.5,  0. ,  1. ,  2. ])
    """
    t = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, n + 1))
    return np.concatenate([-left[..., None] * t[:0:-1], right[..., None] * t], axis=-1)


def _along(rise: Array, share: Array) -> Array:
    """The x in [0, 1] below which a share of ∫ exp(rise · x) lies."""
    up = np.where(np.abs(rise) < 1e-9, 1e-9, rise)
    down, q = -np.abs(up), np.where(up > 0, 1.0 - share, share)
    x = np.log1p(q * np.expm1(down)) / down
    return np.asarray(np.where(up > 0, 1.0 - x, x))
