"""Draws from rows of tables."""

from __future__ import annotations

from suffice.kernels import kernel
from suffice.kernels.compiler.signatures import float64, int32, int64, void


@kernel(void(float64[:, ::1], int64[::1], float64[::1], int32[::1]), work=lambda ends, out: len(out) * ends.shape[1])
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
