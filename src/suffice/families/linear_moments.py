"""Linear regressions from moments: of a number on numbers and states whose effects add, the moments within each configuration of
the finite parents say all. So they have an exact M-step, an exact update, and need no rows.

With d the indicators of a configuration, N, m, S the weight, mean and scatter of its numbers (x, y), the columns (d, x, y) have

    Σ N (v − v̄)(v − v̄)ᵀ + Σ S,   v = (d, m),  S only in the numbers

as scatter over all configurations, of which the last is regressed on the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.families.family import Array
from suffice.families.regression import Regression, independent, regress
from suffice.statistics.chan import Spread
from suffice.statistics.configurations import sizes
from suffice.variables import Finite


class CommonLine(NamedTuple):
    """One line for all configurations: y = levels[configuration] + slopes·x + e; the residual and scatter are of all rows.

    `regression` is that on the columns that are kept; `collinear` the first number that is a combination of other columns.
    """

    levels: Array
    slopes: Array
    weight: float
    scatter: Array
    regression: Regression
    collinear: int | None


def indicators(finite: Sequence[Finite], keys: npt.NDArray[np.int64]) -> Array:
    """A row for each configuration, a column for each state but the first of each finite parent.

    >>> indicators([Finite("z", ["a", "b"]), Finite("u", ["a", "b", "c"])], np.array([0, 5]))
    array([[0., 0., 0.],
           [1., 0., 1.]])
    """
    codes = np.unravel_index(keys, sizes(finite)) if finite else ()
    parts = [np.equal(c[:, None], np.arange(1, v.n_states)) for v, c in zip(finite, codes, strict=True)]
    return np.concatenate([np.zeros((len(keys), 0)), *parts], axis=1).astype(np.float64)


def common_line(
    finite: Sequence[Finite],
    keys: npt.NDArray[np.int64],
    spread: Spread,
    known: Mapping[int, float],
    penalty: Array | None = None,
) -> CommonLine:
    """The least squares of the last number on the others and the states. Slopes in `known`, by the place of their number, are
    not estimated. `penalty` is added to the scatter of the columns: indicators, then the numbers that are free."""
    weight, mean, _, scatter = spread
    k = mean.shape[1]
    free = [i for i in range(k - 1) if i not in known]
    A = np.vstack([np.eye(k)[free], [[1.0 if i == k - 1 else -known.get(i, 0.0) for i in range(k)]]])
    D, total = indicators(finite, keys), float(weight.sum())
    v = np.concatenate([D, mean @ A.T], axis=1)
    middle = weight @ v / total
    whole = (v - middle).T @ ((v - middle) * weight[:, None])
    whole[D.shape[1] :, D.shape[1] :] += A @ scatter.sum(axis=0) @ A.T
    if penalty is not None:
        whole[:-1, :-1] += penalty
    q = len(whole) - 1
    kept = independent(whole[:q, :q], "the regression")
    lost = [j - D.shape[1] for j in range(D.shape[1], q) if j not in kept]
    own = np.append(kept, q)
    r = regress(whole[np.ix_(own, own)])
    b = np.zeros(q)
    b[kept] = r.coefficients
    every = indicators(finite, np.arange(int(np.prod(sizes(finite), dtype=np.int64))))
    slopes = np.array([known.get(i, 0.0) for i in range(k - 1)])
    slopes[free] = b[D.shape[1] :]
    levels = middle[-1] - middle[:q] @ b + every @ b[: D.shape[1]]
    return CommonLine(levels, slopes, total, whole, r, free[lost[0]] if lost else None)
