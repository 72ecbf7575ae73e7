"""One pass over rows for many regressions of one child with one linear predictor each: see `regression.regression_sums`."""

from __future__ import annotations

import numpy as np

from suffice.kernels import kernel
from suffice.kernels.compiler import signatures as numba
from suffice.kernels.regressions.regression import regression_sums

f8 = numba.float64
_numbers, _tables = (numba.types.Array(f8, d, "C", readonly=True) for d in (1, 2))
_places = numba.types.Array(numba.int64, 2, "C", readonly=True)


@kernel(
    numba.void(f8[:, ::1], *4 * (_numbers,), _places, _tables, numba.int64, f8[:, ::1], f8[:, :, ::1], f8[:, ::1]), reorder=True
)
def many_sums(Z, y, trials, offset, weight, members, theta, response, gradient, hessian, totals):  # type: ignore[no-untyped-def]
    """Add the sums of these rows to those of each regression g: its columns are the rows members[g] of Z, the first all ones."""
    q, n = members.shape[1], Z.shape[1]
    X = np.empty((q, n))
    expected = n < 0  # False, which written so would be a type of its own, for which all is compiled once more
    for g in range(len(members)):
        for j in range(q):
            X[j] = Z[members[g, j]]
        regression_sums(X, y, trials, offset, weight, theta[g], response, 1.0, expected, gradient[g], hessian[g], totals[g])
