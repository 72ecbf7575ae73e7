"""Rows as an objective about one finite column sees them: the scores that each of its states has in each row, and what they
lose.

A model gives each state k of the target in row r the score s_k = Σ_f ℓ[cells_f[r, k]], a sum of cells of one vector ℓ. With n_r
the weight of the row and y its state,

    Σ_r n_r T ln Σ_k exp((cost [k ≠ y] + s_k − s_y) / T)

is −Σ log p(y | rest) for cost 0 and T = 1, and tends to the hinge loss of `Margin` with T to 0.

The hinge loss with a price of squares is a quadratic program, which an interior point solves exactly:

    minimise  c Σ w² + Σ_r n_r ξ_r    with  t_rk = ξ_r − cost [k ≠ y_r] − s_k + s_y ≥ 0  for each row r and state k

At the optimum there are λ_rk ≥ 0 with Σ_k λ_rk = n_r, 2 c w = Σ_r Σ_k λ_rk (φ_ry − φ_rk) and λ t = 0, where φ_rk are the
features of state k in row r. The way goes through positive λ and t, until the duality gap is nothing (Mehrotra 1992, SIAM
Journal on Optimization 2, p. 575). His steps alone may go round in circles where some λ t are small beside the others, so they
stay near the path on which all are equal, and where they cannot go far, a step goes there first (Wright 1997, Primal-Dual
Interior-Point Methods, p. 96). Of naive Bayes this is the multiclass support vector machine (Crammer & Singer 2001, Journal
of Machine Learning Research 2, p. 265).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.basis.variables import Finite
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, StatisticsError, TooLarge, listing
from suffice.numerics.inference.finite.logs import log_sum
from suffice.statistics import Statistics


def distinct_rows(variables: Mapping[str, Any], names: Iterable[str], data: Any) -> tuple[dict[str, Ints], Array]:
    """The distinct rows of some finite columns, sorted, as states by column, and the weight of each; of statistics, the cells
    of the table of these columns."""
    own = {name: variables[name] for name in names}
    for name, variable in own.items():
        if not isinstance(variable, Finite):
            raise FitError(f"{name!r} holds numbers, and a finite column is told from finite columns: cut it into Bins")
    if isinstance(data, Statistics):
        try:
            counts = data.counts(list(own))
        except StatisticsError as error:
            raise StatisticsError(
                f"to tell a column from the others, statistics must have one table of {listing(own)} together: {error.said}"
            ) from None
        keys, weights = counts.listed()
        codes = np.unravel_index(keys, [v.n_states for v in counts.variables])
        return {v.name: np.asarray(c, np.int64) for v, c in zip(counts.variables, codes, strict=True)}, weights
    rows = (data if isinstance(data, Data) else scan(data)).select(own).with_variables(own)
    if gaps := [n for n, m in rows.missing.items() if m]:
        raise DataError(f"the column {gaps[0]!r} has missing cells, and one column is told from the others in complete rows")
    found = rows.distinct()
    columns = {n: found.columns[n].astype(np.int64) for n in own}
    order = np.lexsort(tuple(columns.values()))
    return {n: c[order] for n, c in columns.items()}, np.asarray(found.weights, np.float64)[order]


@dataclass(frozen=True, eq=False)
class TargetRows:
    """`design` (rows × configurations, sparse) says which configurations of the other columns a row has, one in each part of the
    vector, and `places` (configurations × states of the target) which cell is theirs; `true` is the state that a row has."""

    design: Any
    places: Ints
    true: Ints
    weights: Array

    @classmethod
    def of(cls, target: str, scopes: Sequence[Sequence[Finite]], starts: Sequence[int], rows: tuple[Any, Array]) -> TargetRows:
        """Tables over these variables, the last of which changes fastest, which begin at these places of the vector."""
        from scipy.sparse import csr_array

        columns, weights = rows
        places, which, n = [], [], 0
        for scope, start in zip(scopes, starts, strict=True):
            first, of_row, by_state = _configurations(target, scope, columns)
            places.append(start + first[:, None] + by_state)
            which.append(n + of_row)
            n += len(first)
        numbers = np.stack(which, axis=1)
        starts_of_rows = np.arange(0, numbers.size + 1, len(which))
        design = csr_array((np.ones(numbers.size), numbers.reshape(-1), starts_of_rows), shape=(len(weights), n))
        return cls(design, np.concatenate(places), columns[target], weights)

    @property
    def weight(self) -> float:
        return float(self.weights.sum())

    @cached_property
    def _transposed(self) -> Any:
        return self.design.T.tocsr()

    def scores(self, logs: Array) -> Array:
        return np.asarray(self.design @ logs[self.places])

    def by_cell(self, by_score: Array, size: int) -> Array:
        """The gradient by the cells of something whose gradient by the scores this is."""
        result = np.zeros(size)
        result[self.places] = self._transposed @ by_score
        return result

    def prices(self, cost: float) -> Array:
        """What each state of each row costs: nothing where it is the right one."""
        return np.asarray(cost * (np.arange(self.places.shape[1]) != self.true[:, None]))

    def loss(self, logs: Array, cost: float = 0.0, temperature: float = 1.0) -> tuple[float, Array]:
        """The loss above, and its gradient by the cells: expected − seen."""
        each = np.arange(len(self.true))
        s = (self.scores(logs) + self.prices(cost)) / temperature
        log_z = log_sum(s, 1)
        surplus = np.exp(s - log_z[:, None]) * self.weights[:, None]
        surplus[each, self.true] -= self.weights
        value = temperature * float(self.weights @ (log_z - s[each, self.true]))
        return value, self.by_cell(surplus, len(logs))

    def hinge(self, logs: Array, cost: float) -> float:
        """Σ n max_k (cost [k ≠ y] + s_k − s_y)."""
        s = self.scores(logs)
        return float(self.weights @ ((s + self.prices(cost)).max(axis=1) - s[np.arange(len(s)), self.true]))


def _configurations(target: str, scope: Sequence[Finite], columns: Mapping[str, Ints]) -> tuple[Ints, Ints, Ints]:
    """The configurations of a table without its target that rows have, as cells where that has its first state; which of them
    each row has; and how far on the cell of each state is."""
    first, step = np.zeros(len(columns[target]), np.int64), 0
    for v in scope:
        own = 0 if v.name == target else columns[v.name]
        first = first * v.n_states + own
        step = 1 if v.name == target else step * v.n_states
    n_states = next(v.n_states for v in scope if v.name == target)
    found, of_row = np.unique(first, return_inverse=True)
    return found, of_row, step * np.arange(n_states)


TOL = 1e-9
"""The gap, as a share of the objective, at the end."""
ROUNDING = 1e-16
"""Where λ t is no larger than this, on average, the rest of the gap is rounding."""
MAX_STEPS, LAST_STEPS = 200, 10
"""In all, and those without a smaller gap than before: the rest is rounding, too, which may grow."""
MAX_WEIGHTS = 2**13
"""A step solves equations in so many weights at most."""
DENSE, ROOM = 10, 2**22
"""Products of matrices are of dense ones where a row has more than one in so many of the configurations; so many cells at a
time."""
ALMOST = 0.995
"""How much of the way to the nearest bound a step goes."""
SLACK, SHORTER = 1e-3, 0.8
"""No λ t falls below this share of their mean; a step that would make one is this much shorter, again and again."""
SHORT, CENTRED = 0.1, 0.3
"""Where less than this share of a step can be taken, the next one aims at this share of the mean of λ t."""


class Hinge(NamedTuple):
    """The weights, the objective there, at most how far it is above the least, and the steps it took."""

    w: Array
    value: float
    gap: float
    steps: int


def least_hinge(rows: TargetRows, n_weights: int, cost: float, c2: float) -> Hinge:
    """The weights, one for each cell, with the smallest hinge loss + c2 Σ w²."""
    M, K = rows.places.shape
    if M * K > MAX_WEIGHTS:
        raise TooLarge(
            f"the tables have {M * K:,} cells that occur, and margins are found for {MAX_WEIGHTS:,} at most: take fewer columns, "
            "or Conditional"
        )
    found = _least(replace(rows, places=np.arange(M * K).reshape(M, K)), cost, c2)
    w = np.zeros(n_weights)  # cells that do not occur have none
    w[rows.places] = found.w.reshape(M, K)
    return found._replace(w=w)


def _least(rows: TargetRows, cost: float, c2: float) -> Hinge:
    """The same where every weight is that of a configuration that occurs, and a state."""
    total, size, K = rows.weight, rows.places.size, rows.places.shape[1]
    n, prices, c = rows.weights / total, rows.prices(cost), c2 / total
    lam, w, t = np.repeat(n[:, None] / K, K, axis=1), np.zeros(size), cost + 1.0 - prices
    best, each = Hinge(w, np.inf, np.inf, 0), np.arange(len(n))
    for step in count():
        pull = -lam
        pull[each, rows.true] += n
        v = rows.by_cell(pull, size) / (2.0 * c)  # Σ (n φ_y − Σ_k λ φ_k) / 2c
        value = rows.hinge(w, cost) / total + c * float(w @ w)
        gap = value - float((lam * prices).sum()) + c * float(v @ v)
        mean = float((lam * t).mean())
        if gap * total < best.gap:
            best = Hinge(w, value * total, max(gap, 0.0) * total, step)
        ended = gap <= TOL * max(value, 1e-3 * cost) or step - best.steps == LAST_STEPS
        if ended or mean < ROUNDING or step == MAX_STEPS:
            return best
        ahead = _Step(rows, lam, t, c, 2.0 * c * (v - w))
        guess = ahead.towards(-lam * t)
        share = ahead.longest(guess, 1.0)
        after = float(((lam + share * guess.lam) * (t + share * guess.t)).sum()) / lam.size
        move = ahead.towards((after / mean) ** 3 * mean - lam * t - guess.lam * guess.t)
        share = ahead.safe_share(move)
        if share < SHORT:
            move = ahead.towards(CENTRED * mean - lam * t)
            share = ahead.safe_share(move)
        w, lam, t = w + share * move.w, lam + share * move.lam, t + share * move.t
    raise AssertionError


class _Move(NamedTuple):
    w: Array
    lam: Array
    t: Array


class _Step:
    """The equations of one step, factored: λ Δt + t Δλ is as asked, and all other conditions stay as they are."""

    def __init__(self, rows: TargetRows, lam: Array, t: Array, c: float, off: Array) -> None:
        self.rows, self.lam, self.t, self.d, self.off = rows, lam, t, lam / t, off
        self.sum, self.size = self.d.sum(axis=1, keepdims=True), rows.places.size
        hessian = _curvature(rows, self.d, self.d / self.sum)
        hessian[np.diag_indices(self.size)] += 2.0 * c
        self.factor = _factor(hessian)

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

    def safe_share(self, move: _Move) -> float:
        """The share of a move that keeps every λ t from falling far below their mean."""
        share = self.longest(move, ALMOST)
        while True:
            products = (self.lam + share * move.lam) * (self.t + share * move.t)
            if float(products.min()) >= SLACK * float(products.mean()) or share < ROUNDING:
                return share
            share *= SHORTER


def _factor(hessian: Array) -> Any:
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


def _curvature(rows: TargetRows, d: Array, shares: Array) -> Array:
    """Σ over rows and pairs of states of (d_i d_j / Σ d) (φ_i − φ_j)(φ_i − φ_j)ᵀ. Such a sum, unlike Σ d φφᵀ less the square of
    a sum, loses no digits where one state outweighs the others by far."""
    M, K = rows.places.shape
    result = np.zeros((M, K, M, K))
    pairs = [(i, j) for i in range(K) for j in range(i)]
    for (i, j), part in zip(pairs, _grams(rows.design, [d[:, i] * shares[:, j] for i, j in pairs]), strict=True):
        result[:, i, :, j] = result[:, j, :, i] = -part
        result[:, i, :, i] += part
        result[:, j, :, j] += part
    return result.reshape(M * K, M * K)


def _grams(design: Any, weights: Sequence[Array]) -> list[Array]:
    """Xᵀ diag(w) X for each of some weights of the rows of X."""
    R, M = design.shape
    if design.nnz * DENSE < M * R:
        transposed = design.T.tocsr()
        return [(transposed @ design.multiply(w[:, None]).tocsr()).toarray() for w in weights]
    result, size = [np.zeros((M, M)) for _ in weights], max(1, ROOM // M)
    for start in range(0, R, size):
        X = design[start : start + size].toarray()
        for total, w in zip(result, weights, strict=True):
            total += X.T @ (X * w[start : start + size, None])
    return result
