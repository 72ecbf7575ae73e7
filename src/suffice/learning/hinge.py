"""The hinge loss with a price of squares, exactly: a quadratic program, by an interior point.

    minimise  c Σ w² + Σ_r n_r ξ_r    with  t_rk = ξ_r − cost [k ≠ y_r] − s_k + s_y ≥ 0  for each row r and state k

At the optimum there are λ_rk ≥ 0 with Σ_k λ_rk = n_r, 2 c w = Σ_r Σ_k λ_rk (φ_ry − φ_rk) and λ t = 0, where φ_rk are the
features of state k in row r. The way goes through positive λ and t, until the duality gap is nothing (Mehrotra 1992, SIAM
Journal on Optimization 2, p. 575). Of naive Bayes this is the multiclass support vector machine (Crammer & Singer 2001, Journal
of Machine Learning Research 2, p. 265).
"""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError, TooLarge, bytes_in_words
from suffice.learning.target_rows import TargetRows

Array = npt.NDArray[np.float64]

TOL = 1e-9
"""The gap, as a share of the objective, at the end."""
ROUNDING = 1e-16
"""Where λ t is no larger than this, on average, the rest of the gap is rounding."""
MAX_STEPS = 200
MAX_WEIGHTS = 2**13
"""A step solves equations in so many weights at most."""
MAX_ENTRIES = 2**27
"""Entries of the matrix of differences between the states of a row."""
ALMOST = 0.995
"""How much of the way to the nearest bound a step goes."""


class Hinge(NamedTuple):
    """The weights, the objective there, at most how far it is above the least, and the steps it took."""

    w: Array
    value: float
    gap: float
    steps: int


def least_hinge(rows: TargetRows, n_weights: int, cost: float, c2: float) -> Hinge:
    """The weights, one for each cell, with the smallest hinge loss + c2 Σ w².

    >>> rows = TargetRows((np.array([[0, 1], [0, 1]]),), np.array([0, 1]), np.array([3.0, 1.0]))
    >>> least_hinge(rows, 2, 1.0, 0.5).w.round(6)  # 3 · 0 + 1 · 2 + ½ Σ w²
    array([ 0.5, -0.5])
    """
    _check_size(rows, n_weights)
    total = rows.weight
    differences, n, prices, c = _differences(rows, n_weights), rows.weights / total, rows.prices(cost), c2 / total
    K = prices.shape[1]
    lam, w, t = np.repeat(n[:, None] / K, K, axis=1), np.zeros(n_weights), cost + 1.0 - prices
    for step in count():
        v = _weights(rows, lam, n, n_weights, c)
        value = rows.hinge(w, cost) / total + c * float(w @ w)
        gap = value - float((lam * prices).sum()) + c * float(v @ v)
        mean = float((lam * t).mean())
        if gap <= TOL * max(value, 1e-3) or mean < ROUNDING or step == MAX_STEPS:
            return Hinge(w, value * total, max(gap, 0.0) * total, step)
        ahead = _Step(rows, differences, lam, t, c, 2.0 * c * (v - w))
        guess = ahead.towards(-lam * t)
        share = ahead.longest(guess, 1.0)
        after = float(((lam + share * guess.lam) * (t + share * guess.t)).sum()) / lam.size
        move = ahead.towards((after / mean) ** 3 * mean - lam * t - guess.lam * guess.t)
        share = ahead.longest(move, ALMOST)
        w, lam, t = w + share * move.w, lam + share * move.lam, t + share * move.t
    raise AssertionError


class _Move(NamedTuple):
    w: Array
    lam: Array
    t: Array


class _Step:
    """The equations of one step, factored: λ Δt + t Δλ is as asked, and all other conditions stay as they are."""

    def __init__(self, rows: TargetRows, differences: Any, lam: Array, t: Array, c: float, off: Array) -> None:
        self.rows, self.lam, self.t, self.d, self.off = rows, lam, t, lam / t, off
        self.sum = self.d.sum(axis=1, keepdims=True)
        matrix, i, j = differences
        between = (self.d[:, i] / self.sum * self.d[:, j]).reshape(-1)
        self.size = matrix.shape[1]
        hessian = (matrix.T @ (matrix * between[:, None])).toarray()
        hessian[np.diag_indices(self.size)] += 2.0 * c
        self.factor = _factored(hessian)

    def towards(self, wanted: Array) -> _Move:
        from scipy.linalg import cho_solve

        u = wanted / self.t
        all_u = u.sum(axis=1, keepdims=True)
        right = self.rows.by_cell(self.d / self.sum * all_u - u, self.size) + self.off
        # −Aᵀu with a_k = φ_k − φ_y, less what ξ takes: both sum to zero in a row, so that φ_y falls out
        w = cho_solve(self.factor, right, check_finite=False)
        s = self.rows.scores(w)
        rise = s - s[np.arange(len(s)), self.rows.true][:, None]
        xi = (all_u + (self.d * rise).sum(axis=1, keepdims=True)) / self.sum
        t = xi - rise
        return _Move(w, u - self.d * t, t)

    def longest(self, move: _Move, most: float) -> float:
        """The share of a move that keeps λ and t above zero."""
        lengths = [1.0]
        for x, dx in ((self.lam, move.lam), (self.t, move.t)):
            falls = dx < 0.0
            lengths.append(most * float((-x[falls] / dx[falls]).min(initial=np.inf)))
        return min(lengths)


def _factored(hessian: Array) -> Any:
    """The factors of Cholesky. Some directions change no score, and are kept from being lost by a little on the diagonal; what
    a step is then off by, the next puts right."""
    from scipy.linalg import LinAlgError, cho_factor

    more = 1e-14 * float(hessian.diagonal().max())
    for _ in range(8):
        try:
            return cho_factor(hessian + more * np.eye(len(hessian)), overwrite_a=True, check_finite=False)
        except LinAlgError:
            more *= 100.0
    raise FitError("the margin could not be found: the penalty is too small beside the number of rows")


def _weights(rows: TargetRows, lam: Array, n: Array, size: int, c: float) -> Array:
    """w = Σ (n φ_y − Σ_k λ φ_k) / 2c."""
    pull = -lam
    pull[np.arange(len(n)), rows.true] += n
    return rows.by_cell(pull, size) / (2.0 * c)


def _differences(rows: TargetRows, n_weights: int) -> Any:
    """φ_i − φ_j of each row and pair of states, sparse, and the pairs. Sums of squares of differences, unlike differences of
    squares, lose no digits where one state outweighs the others by far."""
    from scipy.sparse import csr_array

    R, K = rows.cells[0].shape
    i, j = np.triu_indices(K, 1)
    columns = np.stack([at[:, own] for at in rows.cells for own in (i, j)], axis=-1)
    values = np.broadcast_to(np.tile([1.0, -1.0], len(rows.cells)), columns.shape)
    starts = np.arange(0, columns.size + 1, columns.shape[-1])
    matrix = csr_array((values.reshape(-1), columns.reshape(-1), starts), shape=(R * len(i), n_weights))
    return matrix, i, j


def _check_size(rows: TargetRows, n_weights: int) -> None:
    R, K = rows.cells[0].shape
    entries = R * (K * (K - 1) // 2) * 2 * len(rows.cells)
    if n_weights > MAX_WEIGHTS:
        raise TooLarge(
            f"the tables have {n_weights:,} cells, and margins are found for {MAX_WEIGHTS:,} at most: take fewer columns, or "
            "Conditional"
        )
    if entries > MAX_ENTRIES:
        raise TooLarge(
            f"{R:,} distinct rows with {K} states need {bytes_in_words(12.0 * entries)}: take fewer columns, or Conditional"
        )
