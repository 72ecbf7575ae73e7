"""Arrays of numbers as JSON has them, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.errors import FormatError


def flat(array: Any) -> list[float | None]:
    """An array as a list, None for NaN."""
    flat = np.asarray(array, dtype=np.float64).reshape(-1)
    return [None if np.isnan(x) else x for x in flat.tolist()]


def array_of(numbers: Any, *, finite: bool = True) -> Any:
    """The array that `flat` wrote, in one dimension."""
    array = np.array([np.nan if x is None else float(x) for x in (numbers if isinstance(numbers, list) else [numbers])])
    if finite and np.isinf(array).any():
        raise FormatError("this file holds a number that is not finite")
    return array


def numbers(array: Any) -> list[Any]:
    """An array as a list, numbers that are not finite as text."""
    return [number(x) for x in np.asarray(array, dtype=np.float64).reshape(-1).tolist()]


def number(x: Any) -> Any:
    return x if np.isfinite(x) else str(float(x))
