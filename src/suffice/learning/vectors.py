"""Distributions that are no tables as numbers without bounds: logarithms of rates and variances, the others as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError

Array = npt.NDArray[np.float64]

LOGARITHMS = ("rates", "variance")
PARTS = ("rates", "intercept", "coefficients", "variance")


def free_parts(cpd: Any) -> list[Array]:
    """The parameters of a distribution, free of bounds; what is zero is not finite there."""
    with np.errstate(divide="ignore"):
        return [np.log(getattr(cpd, n)) if n in LOGARITHMS else np.asarray(getattr(cpd, n)) for n in _names(cpd)]


def like(cpd: Any, other: Any) -> Any:
    """A distribution under its own names with the parameters of another of the same shape."""
    return replace(cpd, **{n: getattr(other, n) for n in _names(cpd)})


def with_parts(cpd: Any, parts: Sequence[Array]) -> Any:
    """A distribution like this one with other parameters."""
    given = {n: np.exp(p) if n in LOGARITHMS else p for n, p in zip(_names(cpd), parts, strict=True)}
    if any(not np.isfinite(p).all() for p in given.values()) or np.any(given.get("variance", 1.0) <= 0.0):
        raise FitError(f"the parameters of {cpd.child.name!r} are beyond what a double holds")
    return replace(cpd, **given)


def _names(cpd: Any) -> list[str]:
    names = [n for n in PARTS if hasattr(cpd, n)]
    if not names:
        raise FitError(f"the parameters of {cpd.child.name!r}, a {type(cpd).__name__}, cannot be extrapolated")
    return names
