"""Lines with normal residuals, y = a + b·x + e, e ~ Normal(0, v), from moments of (x, y); and their conjugate distribution.

    least squares   b̂ = S_xx⁻¹ S_xy,   a = ȳ − b̂·x̄,   residual s = S_yy − b̂·S_xy
    conjugate       v ~ InverseGamma(ν/2, s/2),   b | v ~ Normal(b̂, v S_xx⁻¹),   a + b·x̄ | v ~ Normal(ȳ, v/κ)
    normaliser      Z = ln Γ(ν/2) − ½ ln κ − ½ ln |S_xx| − ν/2 ln(s/2)
    evidence        Z(prior + seen) − Z(prior) − N/2 ln 2π

κ rows of the means and ν rows of the scatter, imagined and seen: without x this is NormalInverseGamma. Many lines stand side by
side: all arrays have leading axes. The system is scaled to unit diagonal before it is factored, R = L Lᵀ with y last, so that
columns of very different size (Longley's) lose no digits. A pivot L[j, j]² is 1 − R² of column j on those before it.

Gelman et al. 2013, Bayesian Data Analysis, 3rd ed., ch. 14.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.basis.variables import Variable
from suffice.errors import FitError
from suffice.numerics.exponential.arithmetic.special import gamma_ends
from suffice.numerics.exponential.arithmetic.symmetric import COLLINEAR as COLLINEAR
from suffice.numerics.exponential.arithmetic.symmetric import scaled_cholesky
from suffice.numerics.exponential.arithmetic.values import Array, Interval, tail
from suffice.statistics import Moments

ROUNDING = 1e-13
"""As COLLINEAR, once a prior has given every x some variance: what is smaller has too few digits left."""

NO_RESIDUAL = 1e-12
"""A residual smaller than this share of the scatter of y is rounding: x determines y."""


class LeastSquares(NamedTuple):
    """The last component on those before it.

    coefficients   b̂, (..., p)
    residual       s, (...)
    log_det        ln |S_xx|, (...)
    inverse        S_xx⁻¹, (..., p, p)
    collinear      the first x that is a combination of those before it; −1 where there is none, and else all of these are NaN
    vanishes       whether there is no line, or no residual, but for rounding
    """

    coefficients: Array
    residual: Any
    log_det: Any
    inverse: Array
    collinear: npt.NDArray[np.int64]
    vanishes: npt.NDArray[np.bool_]


def regress(scatter: Array, collinear: float = COLLINEAR) -> LeastSquares:
    """The lines of scatter matrices, of the last variable on the others."""
    p = scatter.shape[-1] - 1
    scale, L = scaled_cholesky(scatter)
    diagonal = np.diagonal(L, axis1=-2, axis2=-1)
    bad = diagonal[..., :p] ** 2 <= collinear
    lost = np.asarray(bad.any(axis=-1))
    if lost.any():
        L = np.where(lost[..., None, None], np.eye(p + 1), L)
        diagonal = np.diagonal(L, axis1=-2, axis2=-1)
    root = np.linalg.inv(L[..., :p, :p])
    turned, own = np.swapaxes(root, -1, -2), scale[..., :p]
    numbers: list[Any] = [
        np.einsum("...ij,...j->...i", turned, L[..., p, :p]) * scale[..., p, None] / own,
        diagonal[..., p] ** 2 * scatter[..., p, p],
        2.0 * (np.log(diagonal[..., :p]).sum(axis=-1) + np.log(own).sum(axis=-1)),
        turned @ root / own[..., :, None] / own[..., None, :],
    ]
    if lost.any():
        numbers = [np.where(lost.reshape(lost.shape + (1,) * (x.ndim - lost.ndim)), np.nan, x) for x in numbers]
    b, residual, log_det, inverse = numbers
    vanishes = np.asarray(lost | ~(residual > NO_RESIDUAL * scatter[..., p, p]))
    return LeastSquares(b, residual, log_det, inverse, np.where(lost, np.argmax(bad, axis=-1) if p else 0, -1), vanishes)


@dataclass(frozen=True, eq=False)
class ConjugateLines:
    """What is known of lines side by side after imagined and seen rows: κ, ν, the means (..., p + 1) and the least squares."""

    count: Array
    df: Array
    mean: Array
    line: LeastSquares

    @classmethod
    def of(cls, count: Array, df: Array, mean: Array, scatter: Array) -> Self:
        """From moments, imagined and seen together."""
        return cls(count, df, mean, regress(scatter, ROUNDING))

    @property
    def intercept(self) -> Array:
        """E[a] = ȳ − b̂·x̄."""
        return np.asarray(self.mean[..., -1] - (self.line.coefficients * self.mean[..., :-1]).sum(axis=-1))

    @property
    def log_normaliser(self) -> Array:
        """Z."""
        nu, s = self.df, self.line.residual
        return np.asarray(sc.gammaln(0.5 * nu) - 0.5 * (np.log(self.count) + self.line.log_det + nu * np.log(0.5 * s)))

    def interval(self, level: float) -> dict[str, Interval]:
        """Equal-tailed intervals of `intercept` and `coefficients` (Student t), and of `variance` (inverse gamma)."""
        x, inverse = self.mean[..., :-1], self.line.inverse
        of_level = 1.0 / self.count + np.einsum("...i,...ij,...j->...", x, inverse, x)
        squares = np.concatenate([of_level[..., None], np.diagonal(inverse, axis1=-2, axis2=-1)], axis=-1)
        unit = np.sqrt(self.line.residual / self.df) * -sc.stdtrit(self.df, tail(level))
        half, at = unit[..., None] * np.sqrt(squares), (self.intercept, self.line.coefficients)
        precision = gamma_ends(0.5 * self.df, tail(level))
        return {
            "intercept": Interval(at[0] - half[..., 0], at[0] + half[..., 0]),
            "coefficients": Interval(at[1] - half[..., 1:], at[1] + half[..., 1:]),
            "variance": Interval(0.5 * self.line.residual / precision.upper, 0.5 * self.line.residual / precision.lower),
        }

    def predictive(self, x: Array) -> tuple[Array, Array, Array]:
        """Degrees, location and scale of the Student t of the next y at x."""
        off = x - self.mean[..., :-1]
        spread = 1.0 + 1.0 / self.count + np.einsum("...i,...ij,...j->...", off, self.line.inverse, off)
        location = self.mean[..., -1] + (self.line.coefficients * off).sum(axis=-1)
        return self.df, location, np.sqrt(self.line.residual / self.df * spread)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """n draws of a, b and v, the first axis: v = s / χ²(ν),  b = b̂ + √v L z with L Lᵀ = S_xx⁻¹,  a = ȳ + √(v/κ) z − b·x̄."""
        lead, p = self.line.coefficients.shape[:-1], self.line.coefficients.shape[-1]
        v = self.line.residual / rng.chisquare(self.df, (n, *lead))
        z = rng.standard_normal((n, *lead, p + 1))
        b = self.line.coefficients + np.sqrt(v)[..., None] * scaled_cholesky(self.line.inverse).colour(z[..., :p])
        level = self.mean[..., -1] + np.sqrt(v / self.count) * z[..., p]
        return level - (b * self.mean[..., :-1]).sum(axis=-1), b, v


def log_line_prior(rows: Array, count: Array, mean: Array, scatter: Array, a: Array, b: Array, v: Any) -> Array:
    """−½ r ln v − ½ (cᵀ S c + κ (c·m − a)²) / v, c = (−b, 1): what EM adds to ln L of a line, with r rows behind its variance."""
    c = np.concatenate([-b, np.ones((*b.shape[:-1], 1))], axis=-1)
    off = (c * mean).sum(axis=-1) - a
    square = np.einsum("...i,...ij,...j->...", c, scatter, c) + count * off**2
    return np.asarray(-0.5 * (rows * np.log(v) + square / v))


def independent(products: Array, name: str) -> npt.NDArray[np.bool_]:
    """Which columns, of each matrix of their products, are no combination of those before them."""
    if not np.isfinite(products).all():
        raise too_large(name)
    diagonal = np.diagonal(products, axis1=-2, axis2=-1)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    R = products / scale[..., :, None] / scale[..., None, :]
    kept = np.zeros(diagonal.shape, bool)
    for j in range(R.shape[-1]):
        kept[..., j] = R[..., j, j] > COLLINEAR
        pivot = np.where(kept[..., j], R[..., j, j], np.inf)
        R = R - R[..., :, j, None] * R[..., None, j, :] / pivot[..., None, None]
    return kept


def too_large(name: str) -> FitError:
    return FitError(f"the squares of the numbers of {name!r} or its parents are beyond the largest double; rescale the columns")


def posterior_lines(child: Variable, moments: Moments) -> ConjugateLines:
    """What is known of the line in each group, with what a prior imagined there; where rounding has eaten the prior, that is
    said."""
    if not np.isfinite(moments.scatter).all():
        raise too_large(moments.reals[-1])
    lines = ConjugateLines.of(moments.count, moments.df, moments.mean, moments.scatter)
    lost = lines.line.vanishes
    if lost.any():
        raise prior_lost(child.name, moments.reals[int(lines.line.collinear[np.argmax(lost)])])  # −1: the child itself
    return lines


def prior_lost(name: str, what: str) -> FitError:
    return FitError(
        f"{name!r}: the data determines {what!r} from the other columns of its family so closely that the prior is lost in "
        "rounding; rescale the columns, leave one out, or give a stronger prior"
    )
