"""Symmetric positive matrices, many at once: their Cholesky factor, and the half that says them all; and the derivatives of A of
any order, joint cumulants of the components of T, which are symmetric in their indices.

A matrix is scaled to unit diagonal, S = D R D, before it is factored, R = L Lᵀ, so that columns of very different size lose no
digits. A pivot L[j, j]² is then 1 − R² of column j on those before it: where it is rounding, S is singular.

A symmetric array of `order` axes is known by its entries with sorted indices: `symmetric` asks for these, as rows of an array of
indices, and writes each wherever its indices stand in another order.

    two states     p⁽ⁿ⁾(η) = Σⱼ (−1)ʲ E(n, j) pʲ⁺¹ (1 − p)ⁿ⁻ʲ,   E(n, j) the Eulerian numbers
    more states    κ(S) = M(S) − Σ κ(R) M(S − R) over the R ⊂ S that hold the first of S,   M(S) = E[Π of S]
    normal         of m forms xᵀAx + bᵀx: sums over their orders (`of_quadratics`)

Speed 1983, Cumulants and partition lattices, Australian Journal of Statistics 25, p. 378; Graham, Knuth & Patashnik 1994,
Concrete Mathematics, § 6.2; Mathai & Provost 1992, Quadratic Forms in Random Variables, § 3.3.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, combinations_with_replacement
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import ModelError, TooLarge, bytes_in_words, whole
from suffice.numerics.exponential.arithmetic.values import Array, finite

COLLINEAR = 1e-11
"""In data, a column with a smaller share of variance of its own than this is a combination of those before it."""

ROUNDING = 1e-14
"""The same of a matrix that is given: what is smaller has no digits left."""


class ScaledCholesky(NamedTuple):
    """S = D L Lᵀ D: `scale` (..., d) is the diagonal of D, `lower` (..., d, d) is L."""

    scale: Array
    lower: Array

    @property
    def log_det(self) -> Array:
        """ln |S|."""
        diagonal = np.diagonal(self.lower, axis1=-2, axis2=-1)
        return np.asarray(2.0 * (np.log(diagonal).sum(axis=-1) + np.log(self.scale).sum(axis=-1)))

    @property
    def root(self) -> Array:
        """L⁻¹ D⁻¹: its square is S⁻¹."""
        inverse = np.linalg.inv(self.lower) if self.lower.shape[-1] > 1 else 1.0 / self.lower
        return np.asarray(inverse / self.scale[..., None, :])

    def whiten(self, x: Array) -> Array:
        """L⁻¹ D⁻¹ x of each x (..., d), whose squares sum to xᵀ S⁻¹ x."""
        return np.asarray(np.einsum("...ij,...j->...i", self.root, x))

    def square(self, x: Array) -> Array:
        """xᵀ S⁻¹ x of each x (..., d)."""
        white = self.whiten(x)
        return np.asarray(np.einsum("...i,...i->...", white, white))

    def colour(self, z: Array) -> Array:
        """D L z of each z (..., d): from unit variance to S."""
        return np.asarray(np.einsum("...ij,...j->...i", self.lower, z) * self.scale)

    @property
    def inverse(self) -> Array:
        """S⁻¹."""
        root = self.root
        return np.asarray(np.swapaxes(root, -1, -2) @ root)


def scaled_cholesky(matrices: Array) -> ScaledCholesky:
    """The factors of some symmetric matrices; one that is not positive has a pivot that is not above zero, or NaN."""
    diagonal = np.diagonal(matrices, axis1=-2, axis2=-1)
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    R = matrices / scale[..., :, None] / scale[..., None, :]
    L = np.zeros_like(R)
    for j in range(R.shape[-1]):
        own = L[..., j, :j]
        pivot = R[..., j, j] - (own * own).sum(axis=-1)
        L[..., j, j] = np.sqrt(np.maximum(pivot, 0.0))
        below = R[..., j + 1 :, j] - np.einsum("...ik,...k->...i", L[..., j + 1 :, :j], own)
        L[..., j + 1 :, j] = below / np.where(L[..., j, j] > 0.0, L[..., j, j], 1.0)[..., None]
    return ScaledCholesky(scale, L)


def singular_column(matrices: Array, factor: ScaledCholesky, least: float) -> int | None:
    """The first column, of any of the matrices, without variance of its own; None where all are positive."""
    pivots = np.diagonal(factor.lower, axis1=-2, axis2=-1) ** 2
    own = (pivots > least) & (np.diagonal(matrices, axis1=-2, axis2=-1) > 0.0)
    bad = ~own.reshape(-1, own.shape[-1]).all(axis=0)
    return int(np.argmax(bad)) if bad.any() else None


def positive(value: Any, what: str) -> Array:
    """Symmetric positive definite matrices."""
    matrices = finite(value, what)
    if matrices.ndim < 2 or matrices.shape[-1] != matrices.shape[-2] or matrices.shape[-1] == 0:
        raise ModelError(f"{what} must be a square matrix, not of the shape {matrices.shape}")
    other = np.swapaxes(matrices, -1, -2)
    size = np.sqrt(np.abs(np.diagonal(matrices, axis1=-2, axis2=-1)))
    if np.any(np.abs(matrices - other) > 1e-10 * size[..., :, None] * size[..., None, :]):
        raise ModelError(f"{what} must be symmetric")
    matrices = 0.5 * matrices + 0.5 * other
    column = singular_column(matrices, scaled_cholesky(matrices), ROUNDING)
    if column is not None:
        raise ModelError(
            f"{what} must be positive definite: component {column} has no variance of its own beside those before it"
        )
    return matrices


def half(matrices: Any) -> Array:
    """The entries (i, j) with i ≤ j, row by row, along one axis."""
    matrices = np.asarray(matrices, dtype=np.float64)
    rows, columns = np.triu_indices(matrices.shape[-1])
    return np.asarray(matrices[..., rows, columns])


def whole_of(half: Any, d: int) -> Array:
    """The symmetric matrices with this half."""
    half = np.asarray(half, dtype=np.float64)
    rows, columns = np.triu_indices(d)
    out = np.empty((*half.shape[:-1], d, d))
    out[..., rows, columns] = half
    out[..., columns, rows] = half
    return out


def off_diagonal_weight(d: int, weight: float) -> Array:
    """One on the diagonal entries of a half, `weight` on the others."""
    rows, columns = np.triu_indices(d)
    return np.where(rows == columns, 1.0, weight)


AXES = 32
"""Arrays of every version of numpy may have so many axes."""

LARGEST = 2**28
"""Bytes that the answer may take."""

Indices = npt.NDArray[np.intp]


def checked_order(order: int, shape: tuple[int, ...], title: str) -> int:
    """The order of the derivatives, if their array can be held."""
    most = AXES - len(shape[:-1])
    if whole(order, "the order of cumulants", 1) > most:
        raise ModelError(f"the order of cumulants is at most {most} here, one axis of an array each; not {order}")
    size = 8.0 * float(np.prod(shape[:-1])) * float(max(shape[-1], 1)) ** order
    if size > LARGEST:
        raise TooLarge(f"the cumulants of {title} of order {order} are {shape[-1]:,}^{order} numbers, {bytes_in_words(size)}")
    return order


def symmetric(k: int, order: int, entries: Callable[[Indices], Array]) -> Array:
    """The array (..., k, …, k) whose entries with sorted indices, one row of indices each, are the last axis of `entries`."""
    at = np.array(list(combinations_with_replacement(range(k), order)), dtype=np.intp)
    cells = np.indices((k,) * order, dtype=np.uint16).reshape(order, -1)
    cells.sort(axis=0)
    where = np.searchsorted(_keys(at.T, k), _keys(cells, k)).reshape((k,) * order)
    return np.asarray(entries(at)[..., where])


def _keys(indices: npt.NDArray[Any], k: int) -> npt.NDArray[np.int64]:
    """Indices (order, n) as one number each; in the order in which sorted ones are listed."""
    key = np.zeros(indices.shape[1], dtype=np.int64)
    for index in indices:
        key *= k
        key += index
    return key


def single(values: Array, order: int) -> Array:
    """The same with k = 1: as many axes of length 1 as the order says."""
    return np.asarray(values).reshape(*np.shape(values), *(1,) * order)


def of_odds(p: Array, q: Array, n: int) -> Array:
    """The n-th derivative of p = 1/(1 + e⁻ˣ) by x, q = 1 − p; with p = −m and q = 1 + m, that of −m = −1/(e⁻ˣ − 1)."""
    terms = [(-1.0) ** j * eulerian(n, j) * p ** (j + 1) * q ** (n - j) for j in range(n)]
    return np.asarray(sum(terms))


def eulerian(n: int, j: int) -> float:
    """E(n, j), the number of orders of n things with j ascents."""
    return float(sum((-1) ** i * comb(n + 1, i) * (j + 1 - i) ** n for i in range(j + 1)))


def of_one_draw(p: Array, order: int) -> Array:
    """The cumulants of the indicators of all states but the last, of one draw with the probabilities p (..., K)."""
    k = p.shape[-1] - 1
    rest = np.stack([np.delete(p, i, axis=-1).sum(axis=-1) for i in range(k)], axis=-1)
    if k == 1:
        return single(of_odds(p[..., 0], rest[..., 0], order - 1), order)
    # A state of more than half takes the place of "none of the others": no sum below is then the difference of large numbers.
    flipped = p[..., :-1] > 0.5
    return symmetric(k, order, lambda at: _by_subsets(p[..., :-1], rest, flipped, at))


def _by_subsets(p: Array, rest: Array, flipped: npt.NDArray[np.bool_], at: Indices) -> Array:
    """Cumulants of all positions of each row of indices, from those of fewer that hold the first."""
    turned, order = flipped[..., at], at.shape[1]
    each = np.where(turned, rest[..., at], p[..., at])

    def moment(some: tuple[int, ...]) -> Array:
        """E[Π]: p of the only state; that of a plain one beside the complement of others; 0 of two plain ones that differ."""
        places = list(some)
        turns, own, states = turned[..., places], each[..., places], at[:, places]
        least = np.where(turns, np.inf, states).min(axis=-1)
        most = np.where(turns, -np.inf, states).max(axis=-1)
        plain = np.where(turns, -np.inf, own).max(axis=-1)
        every = turns.all(axis=-1)
        return np.where(every, own[..., 0], np.where(least == most, np.where(every, 0.0, plain), 0.0))

    everywhere = tuple(range(order))
    moments = {some: moment(some) for size in range(1, order + 1) for some in combinations(everywhere, size)}
    found: dict[tuple[int, ...], Array] = {}
    for size in range(1, order + 1):
        for others in combinations(everywhere[1:], size - 1):
            total = moments[0, *others].copy()
            for n in range(size - 1):
                for some in combinations(others, n):
                    total -= found[0, *some] * moments[tuple(i for i in others if i not in some)]
            found[0, *others] = total
    return np.asarray(found[everywhere] * np.where(turned, -1.0, 1.0).prod(axis=-1))


def of_quadratics(mean: Array, covariance: Array, order: int) -> Array:
    """The cumulants of (x_i; x_i x_j for i ≤ j) of normal x, with mean (..., d) and covariance S (..., d, d).

    Each is a form xᵀAx + bᵀx; with c = b + 2Aμ, m of them have

        κ = 2^(m−1) Σ tr(A₁ S A S … A S) + 2^(m−3) Σ cᵀ S A S … A S c,

    the first sum over the orders of all but the first, the second over all orders. The sum of S A S … A S over the orders of a
    set grows by one form at a time, so that m forms cost m 2^m products of matrices.
    """
    d = mean.shape[-1]
    i, j = np.triu_indices(d)
    k = d + len(i)
    forms = np.zeros((k, d, d))
    forms[np.arange(d, k), i, j] += 0.5
    forms[np.arange(d, k), j, i] += 0.5
    linear = np.concatenate([np.eye(d), np.zeros((len(i), d))])
    slopes = linear + 2.0 * np.einsum("kab,...b->...ka", forms, mean)
    return symmetric(k, order, lambda at: _by_orders(forms[at], slopes[..., at, :], covariance[..., None, :, :], order))


def _by_orders(forms: Array, slopes: Array, S: Array, order: int) -> Array:
    """κ of each row of forms (rows, order, d, d) with slopes (..., rows, order, d)."""
    grown: dict[tuple[int, ...], Array] = {(): np.broadcast_to(S, (*slopes.shape[:-2], *S.shape[-2:]))}
    for size in range(1, order):
        for some in combinations(range(order), size):
            parts = (grown[tuple(i for i in some if i != last)] @ forms[:, last] @ S for last in some)
            grown[some] = np.asarray(sum(parts))
    cycles = np.einsum("rab,...rba->...r", forms[:, 0], grown[tuple(range(1, order))])
    paths = 0.0
    for a, b in combinations(range(order), 2):
        between = grown[tuple(i for i in range(order) if i not in (a, b))]
        paths = paths + 2.0 * np.einsum("...ra,...rab,...rb->...r", slopes[..., a, :], between, slopes[..., b, :])
    return np.asarray(2.0 ** (order - 1) * cycles + 2.0 ** (order - 3) * paths)
