"""Kernels as the Python that they are: the same source, run uncompiled, with the same bits for the same arguments.

Compiled code takes logarithms and the like from the C library, and so does `math`; but where C gives an infinity or a NaN Python
raises an exception, and numpy has its own versions, whose last digits differ. So a kernel's `math` and `np` are replaced here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

POSSIBLE = int(np.__version__.split(".")[0]) >= 2
"""Whether numbers of numpy keep their types beside Python's, as they do when compiled: not before numpy 2."""


def _as_in_c(function: Callable[[float], float], *, at: dict[float, float] | None = None, beyond: float = math.nan) -> Any:
    """A function of `math` that raises nothing: `at` has its values at poles, `beyond` what is too large."""
    poles = at or {}

    def safe(x: float) -> np.float64:
        try:
            return np.float64(function(x))
        except ValueError:
            return np.float64(poles.get(float(x), math.nan))
        except OverflowError:
            return np.float64(beyond)

    return safe


_FUNCTIONS = {
    "log": _as_in_c(math.log, at={0.0: -math.inf}),
    "log2": _as_in_c(math.log2, at={0.0: -math.inf}),
    "log1p": _as_in_c(math.log1p, at={-1.0: -math.inf}),
    "exp": _as_in_c(math.exp, beyond=math.inf),
    "sqrt": _as_in_c(math.sqrt),
}
_OF_MATH = {
    "atanh": _as_in_c(math.atanh, at={1.0: math.inf, -1.0: -math.inf}),
}


@cache
def _modules() -> dict[str, Any]:
    """What stands for `np` and `math` in kernels."""
    return {
        "np": SimpleNamespace(**{**vars(np), **_FUNCTIONS}),
        "math": SimpleNamespace(**{**vars(math), **_FUNCTIONS, **_OF_MATH}),
    }


def in_python(function: Any) -> Any:
    """The Python that a kernel is, calling others as the Python that they are."""
    return _with(function, "in_python", _modules())


def in_numba(function: Any) -> Any:
    """A kernel's function with everything that it names in the form that the compiler knows."""
    return _with(function, "in_numba", {})


def _with(function: Any, form: str, given: dict[str, Any]) -> Any:
    names = function.__globals__
    known = {n: getattr(names[n], form)() for n in function.__code__.co_names if n in names and hasattr(names[n], form)}
    copy = FunctionType(function.__code__, {**names, **given, **known}, function.__name__, function.__defaults__)
    copy.__qualname__, copy.__doc__, copy.__module__ = function.__qualname__, function.__doc__, function.__module__
    return copy


def interpret(function: Any, arguments: tuple[Any, ...]) -> Any:
    """The result of a kernel's Python; whole numbers have the width that they have when compiled."""
    with np.errstate(all="ignore"):
        return _native(function(*(np.int64(a) if type(a) is int else a for a in arguments)))


def _native(result: Any) -> Any:
    """Numbers as compiled code returns them."""
    if isinstance(result, tuple):
        return tuple(map(_native, result))
    return result.item() if isinstance(result, np.generic) else result
