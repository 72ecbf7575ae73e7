"""Parameters as plain arrays, for checkpoints: bit by bit, and back into parameters of the same kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from suffice.basis.arrays import Array

Numbers = tuple[Array, ...]


def numbers_of(parameters: Any) -> Numbers:
    """The arrays and numbers of parameters: those of a value with fields, and of the values that mappings and tuples hold.

    >>> from suffice import Finite
    >>> from suffice.families.categorical import Table
    >>> numbers_of({"x": Table(Finite("x", ["a", "b"]), (), [0.25, 0.75])})
    (array([0.25, 0.75]),)
    """
    return tuple(_numbers(parameters))


def _numbers(value: Any) -> Iterator[Array]:
    if isinstance(value, (np.ndarray, float)):
        yield np.array(value, np.float64)
        return
    for part in value if isinstance(value, tuple) else (value if isinstance(value, Mapping) else _own(value)).values():
        yield from _numbers(part)


def _own(value: Any) -> dict[str, Any]:
    """The fields that hold parameters; what they were estimated from, and variables, are none."""
    own = {f.name: getattr(value, f.name) for f in fields(value)} if is_dataclass(value) else {}
    return {name: part for name, part in own.items() if isinstance(part, (np.ndarray, float, Mapping))}


def with_numbers(like: Any, numbers: Numbers) -> Any:
    """Parameters of the same kind as others, with these numbers.

    >>> with_numbers({"x": (np.zeros(2), 0.0)}, (np.ones(2), np.array(3.0)))
    {'x': (array([1., 1.]), 3.0)}
    """
    return _fill(like, iter(numbers))


def _fill(like: Any, numbers: Iterator[Array]) -> Any:
    if isinstance(like, np.ndarray):
        return next(numbers).reshape(like.shape)
    if isinstance(like, float):
        return float(next(numbers))
    if isinstance(like, Mapping):
        return {name: _fill(part, numbers) for name, part in like.items()}
    if isinstance(like, tuple):
        parts = [_fill(part, numbers) for part in like]
        return tuple(parts) if type(like) is tuple else type(like)(*parts)
    own = _own(like)
    return replace(like, **{name: _fill(part, numbers) for name, part in own.items()}) if own else like
