"""Symmetric positive matrices, many at once: their Cholesky factor, and the half that says them all.

A matrix is scaled to unit diagonal, S = D R D, before it is factored, R = L Lᵀ, so that columns of very different size lose no
digits. A pivot L[j, j]² is then 1 − R² of column j on those before it: where it is rounding, S is singular.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from suffice.errors import ModelError
from suffice.exponential.arithmetic.values import Array, finite

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
    """The factors of some symmetric matrices; one that is not positive has a pivot that is not above zero, or NaN.

    >>> scaled_cholesky(np.array([[4.0, 2.0], [2.0, 2.0]])).log_det.round(12) == np.log(4.0).round(12)
    np.True_
    """
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
    """Symmetric positive definite matrices.

    >>> positive([[2.0, 1.0], [1.0, 2.0]], "the covariance").shape
    (2, 2)
    """
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
    """The entries (i, j) with i ≤ j, row by row, along one axis.

    >>> half(np.array([[1.0, 2.0], [2.0, 3.0]]))
    array([1., 2., 3.])
    """
    matrices = np.asarray(matrices, dtype=np.float64)
    rows, columns = np.triu_indices(matrices.shape[-1])
    return np.asarray(matrices[..., rows, columns])


def whole_of(half: Any, d: int) -> Array:
    """The symmetric matrices with this half.

    >>> whole_of([1.0, 2.0, 3.0], 2)
    array([[1., 2.],
           [2., 3.]])
    """
    half = np.asarray(half, dtype=np.float64)
    rows, columns = np.triu_indices(d)
    out = np.empty((*half.shape[:-1], d, d))
    out[..., rows, columns] = half
    out[..., columns, rows] = half
    return out


def off_diagonal_weight(d: int, weight: float) -> Array:
    """One on the diagonal entries of a half, `weight` on the others.

    >>> off_diagonal_weight(2, 2.0)
    array([1., 2., 1.])
    """
    rows, columns = np.triu_indices(d)
    return np.where(rows == columns, 1.0, weight)
