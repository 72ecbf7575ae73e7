"""Parameters that belong together: all of them or none, their leading axes of one shape, vectors of the right length."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, ModelError
from suffice.exponential.statistic import Array, Totals
from suffice.exponential.values import held, numbers

Call = TypeVar("Call", bound=Callable[..., Any])


def keep(owner: Any, **parameters: Array | None) -> None:
    """Set these fields of a frozen value, read-only and of one shape; either all are given or none is."""
    name = type(owner).__name__
    given = {field: value for field, value in parameters.items() if value is not None}
    if given and len(given) < len(parameters):
        lost = next(field for field in parameters if field not in given)
        raise ModelError(f"{name} has the {next(iter(given))} but no {lost}: give both, or leave out both")
    for field, value in zip(given, broadcast(name, **given), strict=True):
        object.__setattr__(owner, field, held(np.array(value)))


def broadcast(name: str, **arrays: Array) -> tuple[Array, ...]:
    """Arrays of one shape, made of those that fit together.

    >>> broadcast("Normal", mean=np.zeros(2), variance=np.array(1.0))[1]
    array([1., 1.])
    """
    try:
        return tuple(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        shapes = " and ".join(f"{field} {array.shape}" for field, array in arrays.items())
        raise ModelError(f"the shapes of {name} do not fit together: {shapes}") from None


def aligned(method: Call) -> Call:
    """A method of arrays side by side that says so, in words, where their shapes do not fit together.

    >>> from suffice.exponential import Poisson
    >>> Poisson([1.0, 2.0]).log_prob([1, 2, 3])
    Traceback (most recent call last):
    suffice.errors.ModelError: what stands side by side does not fit together: Poisson of (2,) and numbers of (3,)
    """

    @wraps(method)
    def checked(*given: Any, **named: Any) -> Any:
        try:
            # What is beyond the largest double is infinite, without a word.
            with np.errstate(over="ignore"):
                return method(*given, **named)
        except ValueError as error:
            # numpy says so of shapes, and of nothing else.
            if "broadcast" not in str(error):
                raise
            each = " and ".join(f"{name} of {shape}" for name, shape in map(_shape_of, (*given, *named.values())) if name)
            raise ModelError(f"what stands side by side does not fit together: {each}") from None

    return cast(Call, checked)


def _shape_of(thing: Any) -> tuple[str, tuple[int, ...]]:
    """What something is called, and the shape that it has side by side; no name where it has none of its own."""
    if isinstance(thing, Totals):
        return "a statistic", thing.count.shape
    fields = getattr(thing, "_fields", None) or getattr(thing, "names", None)
    if fields is None:
        return "numbers", np.shape(thing)
    shapes = [np.shape(value) for name in fields if (value := getattr(thing, name)) is not None]
    return (type(thing).__name__ if shapes else ""), max(shapes, key=len, default=())


def finite(value: Any, what: str) -> Array:
    """Finite numbers of any sign.

    >>> finite(-2, "the mean of Normal")
    array(-2.)
    """
    array = numbers(value, what)
    if not np.isfinite(array).all():
        raise ModelError(f"{what} must be a finite number, not {array[~np.isfinite(array)].flat[0]}")
    return array


def keep_with_axes(owner: Any, **parts: tuple[Array, int]) -> None:
    """Set fields of a frozen value that have so many last axes of their own, read-only, their leading axes of one shape."""
    leads = {field: array.shape[: array.ndim - axes] for field, (array, axes) in parts.items()}
    try:
        lead = np.broadcast_shapes(*leads.values())
    except ValueError:
        each = " and ".join(f"{field} {shape}" for field, shape in leads.items())
        raise ModelError(f"the leading shapes of {type(owner).__name__} do not fit together: {each}") from None
    for field, (array, axes) in parts.items():
        own = array.shape[array.ndim - axes :]
        object.__setattr__(owner, field, held(np.array(np.broadcast_to(array, (*lead, *own)))))


def components(chosen: Any, d: int) -> npt.NDArray[np.intp]:
    """Some of d components, by their numbers from 0.

    >>> components([2, 0], 3)
    array([2, 0])
    """
    numbers = np.asarray(chosen).reshape(-1)
    right = numbers.dtype.kind in "iu" and len(numbers) and len(set(numbers.tolist())) == len(numbers)
    if not right or np.any((numbers < 0) | (numbers >= d)):
        raise ModelError(f"components are different whole numbers from 0 to {d - 1}, not {chosen!r}")
    return numbers.astype(np.intp)


def rows_of_several(x: Any, constant: Any, name: str) -> None:
    """Refuse rows that have not the axes of a known constant: they would be taken for one row of each."""
    if np.ndim(constant) and np.ndim(x) <= np.ndim(constant):
        raise DataError(f"{name} of {np.shape(constant)} side by side takes rows of that shape; x is of the shape {np.shape(x)}")


def vectors(value: Any, what: str, k: int) -> Array:
    """Finite vectors of k numbers, along the last axis; where k is 1, a plain number is one.

    >>> vectors(2.0, "η of Exponential", 1)
    array([2.])
    """
    array = numbers(value, what)
    array = array[None] if array.ndim == 0 and k == 1 else array
    if array.ndim == 0 or array.shape[-1] != k:
        raise ModelError(f"{what} has {k} numbers, so its last axis must be {k}: the shape is {array.shape}")
    return finite(array, what)
