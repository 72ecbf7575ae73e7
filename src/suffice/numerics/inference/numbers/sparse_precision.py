"""Sparse precision matrices: the precision that minimises a penalised negative log-likelihood, from a covariance matrix.

    f(Θ) = −log det Θ + tr(S Θ) + Σ_ij L_ij |Θ_ij|

L_ij = 0 leaves an entry free, L_ij = ∞ keeps it at zero: with nothing else this is the covariance selection of a graph. Newton
steps whose directions are found by coordinate descent (Hsieh, Sustik, Dhillon & Ravikumar 2014, JMLR 15, pp. 2911-2947), within
the connected components of |S_ij| > L_ij, which is exact (Witten, Friedman & Simon 2011). The end is told by the duality gap:

    f(Θ) − (log det V + n),   V any positive definite matrix with |V_ij − S_ij| ≤ L_ij,

which is how far f is from its minimum at most; V is Θ⁻¹ with what lies outside these bounds clipped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.basis.blas import one_blas_thread

GAP = 1e-9
"""The duality gap at which a solution is good enough, unless another is asked for: it costs little more than 1e-4 (KERNELS)."""
MOST_STEPS = 200
"""Newton steps: 7 to 14 are usual."""
SMALL = 150
"""Variables up to which a direction is refined as soon as steps are slow; of more, only where more sweeps did not help."""
ROUNDS = 20
"""How often a direction is refined at most,"""
SLIGHT = 1e-3
"""and the part of what the model gained by which a round that gains less is the last."""
ENOUGH = 0.3
"""The part of the foretold decrease that a step has to reach. A Newton step on a quadratic function reaches half of it. With a
small part the first step, from a diagonal matrix, may end where Θ is nearly singular; its least eigenvalue then only doubles with
each step (random graph, p = 100, λ = .1: 9 steps, 26 ms; with this part 5 steps, 4 ms)."""
SLOW = 0.5
"""The part of the last step's foretold decrease above which Newton steps do not converge as they should."""
NEAR = 100.0
"""The gap is looked at when the decrease that a step foretold is within so many times of it."""
ROUNDING = 1e-14
"""The part of the objective that rounding takes, below which no gap can be shown."""


MOST_SWEEPS, SETTLED = 500, 1e-4
"""How often a direction is swept over at most, and the part of it below which what a sweep changed is an end."""
CONJUGATE, LEFT = 100, 1e-18
"""Steps of conjugate gradients, and the end of them, by the square of what is left."""


class NewtonStep(NamedTuple):
    """A Newton step on one component: its number of variables, its objective, its duality gap (NaN while it is far from being
    small), and the seconds since the start."""

    size: int
    step: int
    objective: float
    gap: float
    seconds: float


@dataclass(frozen=True, eq=False)
class SparsePrecision:
    """What was found: `covariance` is the inverse of `precision`; the objective is at most `gap` above its minimum."""

    precision: Array
    covariance: Array
    log_det: float
    """log det of the precision."""
    objective: float
    gap: float
    steps: tuple[NewtonStep, ...]
    converged: bool


@one_blas_thread
def sparse_precision(
    S: Array,
    L: Array,
    *,
    start: Array | None = None,
    gap: float = GAP,
    more: int = 0,
    screen: bool = True,
    watch: Callable[[], None] = lambda: None,
) -> SparsePrecision:
    """The precision Θ that minimises f, from the start of a diagonal one or from `start`, up to a duality `gap`. Each of some
    `more` steps after that squares the error, of which a gap, a sum, shows nothing below its rounding."""
    n, begin = len(S), time.perf_counter()
    variance = np.diag(S) + np.diag(L)
    precision, covariance = np.diag(1.0 / variance), np.diag(variance)
    parts = [part for part in (_components(S, L) if screen else [np.arange(n)]) if len(part) > 1]
    alone = np.setdiff1d(np.arange(n), np.concatenate([*parts, np.zeros(0, np.int64)]))
    log_det = -float(np.log(variance[alone]).sum())
    objective, total, converged, steps = len(alone) - log_det, 0.0, True, list[NewtonStep]()
    for part in parts:
        block = np.ix_(part, part)
        own = (S, L) if len(part) == n else (np.ascontiguousarray(S[block]), np.ascontiguousarray(L[block]))
        descent = _Descent(*own, None if start is None else start[block], begin, watch)
        descent.run(gap * len(part) / (n - len(alone)), more)
        precision[block], covariance[block] = descent.theta, descent.W
        log_det, objective, total = log_det + descent.log_det, objective + descent.objective, total + descent.gap
        converged = converged and descent.converged
        steps += descent.steps
    return SparsePrecision(precision, covariance, log_det, objective, max(total, 0.0), tuple(steps), converged)


def _components(S: Array, L: Array) -> list[Ints]:
    """The numbers of the variables in each connected part of |S_ij| > L_ij."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    n, label = connected_components(csr_array(np.abs(S) > L), directed=False)
    order = np.argsort(label, kind="stable")
    return [part.astype(np.int64) for part in np.split(order, np.searchsorted(label[order], np.arange(1, n)))]


class _Descent:
    """Newton steps on one component, from a diagonal matrix or from a start."""

    def __init__(self, S: Array, L: Array, start: Array | None, begin: float, watch: Callable[[], None]) -> None:
        # the kernel takes no other kind of array
        S, L = (np.require(x, np.float64, ["C_CONTIGUOUS", "WRITEABLE", "ALIGNED"]) for x in (S, L))
        self.S, self.L, self.begin, self.watch = S, L, begin, watch
        self.n = len(S)
        self.bounded = np.isfinite(L).all()
        self.steps: list[NewtonStep] = []
        self.gap, self.converged = np.inf, False
        self.D, self.U, self.column = np.zeros_like(S), np.zeros_like(S), np.empty(self.n)
        theta = np.diag(1.0 / (np.diag(S) + np.diag(L)))
        factor = _cholesky(theta)
        if start is not None:
            given = np.ascontiguousarray(np.where(np.isinf(L), 0.0, start))
            if (known := _cholesky(given)) is not None:  # without entries that are not allowed it may not be definite
                theta, factor = given, known
        self._move(theta, factor, self._value(theta, factor))

    def run(self, tolerance: float, more: int) -> None:
        """Step until the duality gap is small enough, or no step makes it or the objective smaller; then some more."""
        tolerance, near, last, effort = max(tolerance, self._rounding), 0, -np.inf, 1.0
        for step in range(1, MOST_STEPS + 1):
            self.watch()
            # Enough for most problems, and more where columns are nearly collinear, which makes sweeps slow.
            most, settled = min(int(effort * (2 + step)), MOST_SWEEPS), max(0.05 / effort, SETTLED)
            most, settled = (MOST_SWEEPS, SETTLED) if near else (most, settled)
            thorough = effort > (1.0 if self.n <= SMALL else 4.0) or (near > 1 and self.n <= SMALL)
            direction, slope = self._direction(most, settled, thorough)
            moved = self._line_search(direction, slope)
            effort, last = 4.0 * effort if slope < SLOW * last else effort, slope  # not a Newton direction yet
            near, before = near + 1 if -slope <= NEAR * tolerance or not moved else 0, self.gap
            self.gap = self._duality_gap() if near else np.inf
            seconds = time.perf_counter() - self.begin
            self.steps.append(NewtonStep(self.n, step, self.objective, self.gap if near else np.nan, seconds))
            self.converged = self.gap <= tolerance
            more -= self.converged
            if more < 0 or not moved or (not self.converged and -slope <= self._rounding and self.gap > 0.5 * before):
                break
        if not np.isfinite(self.gap):
            self.gap = self._duality_gap()

    @property
    def _rounding(self) -> float:
        """What of the objective is noise: the last steps are taken without it, and end when the gap stays as it is."""
        return ROUNDING * (self.n + abs(self.objective))

    def _value(self, theta: Array, factor: Any) -> float:
        """f(Θ), given the factor of Θ."""
        return float(-2.0 * np.log(np.diag(factor)).sum() + np.vdot(self.S, theta) + self._size(theta))

    def _size(self, theta: Array) -> float:
        """Σ L |Θ|, where 0 · ∞ = 0."""
        if self.bounded:
            return float(np.vdot(self.L, np.abs(theta)))
        there = theta != 0.0
        return float((self.L[there] * np.abs(theta[there])).sum())

    def _move(self, theta: Array, factor: Any, objective: float) -> None:
        self.theta, self.objective = np.ascontiguousarray(theta), objective
        self.log_det = 2.0 * float(np.log(np.diag(factor)).sum())
        self.W = _inverse(factor)

    def _direction(self, most: int, settled: float, thorough: bool) -> tuple[Array, float]:
        """The Newton direction among the entries that are not zero or would not stay so, and the slope of f along it."""
        gradient = self.S - self.W
        active = np.tril((self.theta != 0.0) | (np.abs(gradient) > self.L))
        np.fill_diagonal(active, True)
        columns, rows = (np.ascontiguousarray(x, np.int64) for x in np.nonzero(active))
        first = np.searchsorted(columns, np.arange(self.n + 1)).astype(np.int64)
        self.D[:], self.U[:] = 0.0, 0.0
        self._sweep(most, settled, first, rows)
        if thorough:
            self._refine(gradient, first, rows)
        return self.D, float(np.vdot(gradient, self.D)) + self._size(self.theta + self.D) - self._size(self.theta)

    def _sweep(self, most: int, settled: float, first: Ints, rows: Ints) -> None:
        """Coordinate descent on the quadratic model of f."""
        from suffice.numerics.kernels.regressions.undirected import direction_sweep

        for _ in range(most):
            moved, size = direction_sweep(self.S, self.W, self.theta, self.L, first, rows, self.D, self.U, self.column)
            if moved <= settled * size:
                break

    def _refine(self, gradient: Array, first: Ints, rows: Ints) -> None:
        """Solve for the entries that sweeps leave other than zero, sweep again, and so on while that makes the model smaller.
        Where columns are nearly collinear, sweeps alone hardly get anywhere; which entries are zero they know earlier."""
        value = self._model(gradient, self.D)
        for _ in range(ROUNDS):
            self.watch()
            # As far towards a solution as the model gets smaller, with what changes its sign on the way held at zero.
            solved, sign, length = self._solve(gradient), np.sign(self.theta + self.D), 1.0
            while length > 1e-3:
                E = self.D + length * (solved - self.D)
                E = np.where((np.sign(self.theta + E) != sign) & (self.L > 0.0), -self.theta, E)
                if self._model(gradient, E) < value:
                    break
                length /= 2.0
            else:
                break
            self.D[:], self.U[:] = E, E @ self.W
            self._sweep(3, 0.0, first, rows)
            last, value = value, self._model(gradient, self.D)
            if last - value <= SLIGHT * (self._size(self.theta) - value):
                break

    def _model(self, gradient: Array, D: Array) -> float:
        """The quadratic model of f that a Newton direction minimises."""
        return float(np.vdot(gradient, D) + 0.5 * np.vdot(D, self.W @ D @ self.W)) + self._size(self.theta + D)

    def _solve(self, gradient: Array) -> Array:
        """The minimum of the model among the matrices that are zero where theta + D is, if signs stayed as they are. By conjugate
        gradients on W E W, restricted to these entries, with its inverse Θ R Θ, so restricted, to precondition."""
        W, theta, target = self.W, self.theta, self.theta + self.D
        free = target != 0.0
        E = np.where(free, self.D, -theta)
        pull = gradient + np.where(free, self.L, 0.0) * np.sign(target) + W @ E @ W
        residual = np.where(free, -pull, 0.0)
        ahead = np.where(free, theta @ residual @ theta, 0.0)
        way, left = ahead, float(np.vdot(residual, ahead))
        enough = LEFT * left
        for _ in range(CONJUGATE):
            if not left > enough:
                break
            curved = np.where(free, W @ way @ W, 0.0)
            length = left / float(np.vdot(way, curved))
            E += length * way
            residual -= length * curved
            ahead = np.where(free, theta @ residual @ theta, 0.0)
            before, left = left, float(np.vdot(residual, ahead))
            way = ahead + left / before * way
        return np.asarray((E + E.T) / 2.0)

    def _line_search(self, D: Array, slope: float) -> bool:
        """Go along a direction as far as f decreases enough and Θ stays positive definite; whether that was anywhere."""
        length = 1.0
        while length > 1e-12:
            theta = self.theta + length * D
            factor = _cholesky(theta)
            if factor is not None:
                objective = self._value(theta, factor)
                if objective <= self.objective + max(ENOUGH * length * slope, self._rounding + length * slope):
                    self._move(theta, factor, objective)
                    return True
            length /= 2.0
        return False

    def _duality_gap(self) -> float:
        bound = self.S + np.clip(self.W - self.S, -self.L, self.L)
        np.fill_diagonal(bound, np.diag(self.S) + np.diag(self.L))
        factor = _cholesky(bound)
        return np.inf if factor is None else self.objective - 2.0 * float(np.log(np.diag(factor)).sum()) - self.n


def _cholesky(matrix: Array) -> Array | None:
    """The triangular factor of a matrix; None where it is not positive definite."""
    from scipy.linalg.lapack import dpotrf

    factor, failed = dpotrf(matrix.T, lower=1, clean=1)
    return None if failed else factor


def _inverse(factor: Array) -> Array:
    """The inverse of the matrix that has this factor."""
    from scipy.linalg.lapack import dpotri

    half, _ = dpotri(factor, lower=1, overwrite_c=1)
    inverse = half + half.T
    inverse[np.diag_indices_from(inverse)] /= 2.0
    return np.ascontiguousarray(inverse)
