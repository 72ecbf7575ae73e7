"""Sparse precision matrices: sweeps over the entries of a Newton direction."""

from __future__ import annotations

from suffice.kernels import kernel
from suffice.kernels.compiler import signatures as nb

_matrix = nb.float64[:, ::1]


@kernel(
    nb.types.UniTuple(nb.float64, 2)(
        _matrix, _matrix, _matrix, _matrix, nb.int64[::1], nb.int64[::1], _matrix, _matrix, nb.float64[::1]
    ),
    reorder=True,
)
def direction_sweep(S, W, theta, penalty, first, rows, D, U, column):
    """Move each listed entry D_ij = D_ji once to where it minimises, the others held,

        tr((S − W) D) + ½ tr(W D W D) + Σ penalty_ij |theta_ij + D_ij|,

    and keep U = D W. The entries of column j are (rows[k], j), rows[k] ≤ j, k = first[j] … first[j + 1] − 1. Gives Σ |moved| and
    Σ |D|, over these entries. (Hsieh, Sustik, Dhillon & Ravikumar 2014, JMLR 15, p. 2920.)

    A column of U is copied once, so that each entry costs one product of contiguous vectors, and two more if it moves.
    """
    n = len(W)
    moved, size = 0.0, 0.0
    for j in range(n):
        if first[j] == first[j + 1]:
            continue
        for k in range(n):
            column[k] = U[k, j]
        for at in range(first[j], first[j + 1]):
            i = rows[at]
            inner = 0.0
            for k in range(n):
                inner += W[i, k] * column[k]
            curve = W[i, j] * W[i, j]
            if i != j:
                curve += W[i, i] * W[j, j]
            c = theta[i, j] + D[i, j]
            new = c - (S[i, j] - W[i, j] + inner) / curve
            shrink = penalty[i, j] / curve
            if new > shrink:
                new -= shrink
            elif new < -shrink:
                new += shrink
            else:
                new = 0.0
            step = new - c
            if step != 0.0:
                D[i, j] += step
                column[i] += step * W[j, j]
                for k in range(n):
                    U[i, k] += step * W[j, k]
                if i != j:
                    D[j, i] = D[i, j]
                    column[j] += step * W[i, j]
                    for k in range(n):
                        U[j, k] += step * W[i, k]
                moved += abs(step)
            size += abs(D[i, j])
    return moved, size
