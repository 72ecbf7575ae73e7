"""Least squares from a scatter matrix: what every Gaussian family needs, for one group of rows or for each of many.

The system is scaled to unit diagonal before it is factored, R = L Lᵀ with the child last, so that columns of very different
size (Longley's) lose no digits. A pivot L[j, j]² is 1 − R² of column j on those before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError
from suffice.families.protocol.family import Array
from suffice.statistics import Moments
from suffice.variables import Variable

COLLINEAR = 1e-11
"""A parent with a smaller share of variance of its own than this is a combination of the parents before it."""

ROUNDING = 1e-13
"""The same, once a prior has given every parent some variance: what is smaller has too few digits left."""


NO_RESIDUAL = 1e-12
"""A residual smaller than this share of the child's scatter is rounding: the parents determine the child."""


@dataclass(frozen=True, eq=False)
class Regression:
    """The child (last row of the scatter) on the parents (the rows before it).

    coefficients   S_pp⁻¹ S_pc
    residual       S_cc − S_cp S_pp⁻¹ S_pc
    log_det        ln |S_pp|
    collinear      the first parent that is a combination of those before it, or None
    """

    coefficients: Array
    residual: float
    log_det: float
    inverse: Array
    collinear: int | None = None


def regress(scatter: Array, collinear: float = COLLINEAR) -> Regression:
    """The regression of the last variable on the others.

    >>> regress(np.array([[4.0, 2.0], [2.0, 3.0]])).coefficients
    array([0.5])
    """
    p = len(scatter) - 1
    diagonal = np.diag(scatter)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    R = scatter / scale[:, None] / scale
    L = np.zeros_like(R)
    for j in range(p + 1):
        pivot = R[j, j] - L[j, :j] @ L[j, :j]
        if j < p and pivot <= collinear:
            return Regression(np.full(p, np.nan), np.nan, np.nan, np.full((p, p), np.nan), j)
        L[j, j] = np.sqrt(max(pivot, 0.0))
        if j < p:
            L[j + 1 :, j] = (R[j + 1 :, j] - L[j + 1 :, :j] @ L[j, :j]) / L[j, j]
    own = L[:p, :p]
    root = np.linalg.inv(own) if p else own
    coefficients = root.T @ L[p, :p] * scale[p] / scale[:p]
    inverse = root.T @ root / scale[:p, None] / scale[:p]
    log_det = 2.0 * float(np.log(np.diag(own)).sum() + np.log(scale[:p]).sum())
    return Regression(coefficients, float(L[p, p] ** 2 * diagonal[p]), log_det, inverse)


def regressions(moments: Moments, collinear: float = COLLINEAR) -> Iterator[tuple[int, float, Regression]]:
    """Each group that has weight: its place, its count and its regression."""
    for g in np.flatnonzero(moments.count > 0):
        if not np.isfinite(moments.scatter[g]).all():
            raise too_large(moments.reals[-1])
        yield int(g), float(moments.count[g]), regress(moments.scatter[g], collinear)


def independent(A: Array, name: str) -> npt.NDArray[np.intp]:
    """The columns, of a matrix of their products, that are no combination of those before them.

    >>> independent(np.array([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]]), "y")
    array([0, 2])
    """
    if not np.isfinite(A).all():
        raise too_large(name)
    scale = np.sqrt(np.where(np.diag(A) > 0, np.diag(A), 1.0))
    R, kept = A / scale[:, None] / scale, []
    for j in range(len(R)):
        if R[j, j] > COLLINEAR:
            kept.append(j)
            R = R - np.outer(R[:, j], R[j]) / R[j, j]
    return np.array(kept, dtype=np.intp)


def too_large(name: str) -> FitError:
    return FitError(f"the squares of the numbers of {name!r} or its parents are beyond the largest double; rescale the columns")


def posteriors(child: Variable, moments: Moments) -> Iterator[tuple[int, float, Regression]]:
    """Each group with what a prior imagined there; where rounding has eaten the prior, that is said."""
    for g, count, r in regressions(moments, ROUNDING):
        if r.collinear is not None or r.residual <= NO_RESIDUAL * moments.scatter[g, -1, -1]:
            what = child.name if r.collinear is None else moments.reals[r.collinear]
            raise FitError(
                f"{child.name!r}: the data determines {what!r} from the other columns of its family so closely that the prior "
                "is lost in rounding; rescale the columns, leave one out, or give a stronger prior"
            )
        yield g, count, r
