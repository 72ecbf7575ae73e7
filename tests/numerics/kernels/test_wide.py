"""Eights of numbers: compiled as they are in Python."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import pytest

from suffice.numerics.kernels.chains import wide


@nb.njit
def compiled(x: Any, y: Any, out: Any, low: float) -> tuple[float, float, int, int]:
    a, b = wide.load(x, 1), wide.load(y, 2)
    wide.store(out, 0, wide.product(a, b))
    wide.store(out, 8, wide.add_product(a, wide.eight(2.0), b))
    wide.store(out, 16, wide.quotient(a, b))
    wide.store(out, 24, wide.largest_sum(a, wide.eight(-1.0), b))
    found = wide.reach(a, low)
    return wide.total(a), wide.top(a), found, wide.lowest(found)


@pytest.mark.parametrize("seed", range(5))
def test_compiled_eights_are_those_of_python(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=9), rng.normal(size=10)
    y[5] = 0.0
    results = []
    for function in (compiled, compiled.py_func):
        out = np.zeros(32)
        results.append((function(x, y, out, float(np.median(x[1:]))), out))
    (numbers, mine), (same, theirs) = results
    np.testing.assert_allclose(mine, theirs, rtol=1e-15, atol=1e-15)
    assert numbers == pytest.approx(same)
    assert mine[16 + 3] == 0.0
    a, b = x[1:9], y[2:10]
    np.testing.assert_array_equal(theirs[:16], [*(a * b), *(a + 2.0 * b)])
    np.testing.assert_array_equal(theirs[16:], [*np.divide(a, b, out=np.zeros(8), where=b != 0.0), *np.maximum(a, b - 1.0)])
    bits = "".join(str(int(v >= np.median(a))) for v in a[::-1])
    assert same == (pytest.approx(a.sum()), a.max(), int(bits, 2), 7 - bits.rindex("1"))


def test_largest_of_no_number_but_minus_infinity() -> None:
    x = np.full(8, -np.inf)
    out = np.zeros(32)
    assert compiled(np.append(x, -np.inf), np.ones(10), out, -np.inf)[1] == -np.inf
