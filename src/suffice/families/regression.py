"""Lines from the moments of each configuration: what every Gaussian family needs, with the refusals where there are none."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError
from suffice.exponential.normals.lines import COLLINEAR as COLLINEAR
from suffice.exponential.normals.lines import NO_RESIDUAL as NO_RESIDUAL
from suffice.exponential.normals.lines import ROUNDING as ROUNDING
from suffice.exponential.normals.lines import ConjugateLines as ConjugateLines
from suffice.exponential.normals.lines import LeastSquares as LeastSquares
from suffice.exponential.normals.lines import regress as regress
from suffice.families.protocol.family import Array
from suffice.statistics import Moments
from suffice.variables import Variable


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


def least_squares(moments: Moments) -> LeastSquares:
    """The line in each group."""
    if not np.isfinite(moments.scatter).all():
        raise too_large(moments.reals[-1])
    return regress(moments.scatter)


def posterior_lines(child: Variable, moments: Moments) -> ConjugateLines:
    """What is known of the line in each group, with what a prior imagined there; where rounding has eaten the prior, that is
    said."""
    if not np.isfinite(moments.scatter).all():
        raise too_large(moments.reals[-1])
    lines = ConjugateLines.of(moments.count, moments.df, moments.mean, moments.scatter)
    lost = lines.line.vanishes(moments.scatter)
    if lost.any():
        raise prior_lost(child.name, moments.reals[int(lines.line.collinear[np.argmax(lost)])])  # −1: the child itself
    return lines


def prior_lost(name: str, what: str) -> FitError:
    return FitError(
        f"{name!r}: the data determines {what!r} from the other columns of its family so closely that the prior is lost in "
        "rounding; rescale the columns, leave one out, or give a stronger prior"
    )
