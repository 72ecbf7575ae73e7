"""Draws from rows of tables."""

from __future__ import annotations

from numba import njit


@njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def draw_codes(ends, rows, uniforms, out):  # type: ignore[no-untyped-def]
    """out[i] = the first x with uniforms[i] < ends[rows[i], x], where `ends` are cumulative probabilities."""
    last = ends.shape[1] - 1
    for i in range(out.shape[0]):
        row = rows[i]
        u = uniforms[i]
        x = 0
        for k in range(last):
            x += u >= ends[row, k]
        out[i] = x
