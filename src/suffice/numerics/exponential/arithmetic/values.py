"""Parameters and observations at the door: numbers inside their bounds, of shapes that fit together; and how they are shown, in
a notebook as a row for each number of interest and a column for each component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.output.display import html_table
from suffice.errors import DataError, ModelError, SufficeError, checked_level

Array = npt.NDArray[np.float64]
LEAST = float(np.finfo(np.float64).smallest_subnormal)
"""The least double above 0."""
LARGEST = 2.0**53
"""Not every whole number beyond is a double."""
DRAWN = 1e15
"""Counts are not drawn at larger rates: not every whole number is a double beyond."""


def drawable(mean: Array) -> Array:
    """Means of counts, if such counts can be drawn exactly."""
    if mean.size and not mean.max() <= DRAWN:
        raise DataError(f"the mean {mean.max():g} of a count is too large: such counts cannot be drawn exactly")
    return mean


class Outside(DataError):
    """An observation that cannot be: what is said before its row and after it, and the block of rows that it is in."""

    def __init__(self, before: str, row: int, after: str, number: int = 0) -> None:
        super().__init__(before, row, after, number)
        self.before, self.row, self.after, self.number = before, row, after, number

    def __str__(self) -> str:
        return f"{self.before} row {self.row + 1:,} {self.after}"


def numbers(value: Any, what: str) -> Array:
    """Parameters as an array of numbers, none of them NaN."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be a number or an array of numbers, not {value!r}") from None
    if np.isnan(array).any():
        raise ModelError(f"{what} must be a number, not NaN")
    return array


def between(value: Any, what: str, low: float, high: float = np.inf, *, open: bool = False) -> Array:
    """Parameters between two bounds, which they may reach unless `open`; never infinite."""
    array = numbers(value, what)
    inside = (array > low) & (array < high) if open else (array >= low) & (array <= high)
    wrong = ~(inside & np.isfinite(array))
    if wrong.any():
        least = f"above {low:g}" if open else f"of at least {low:g}"
        bounds = f"a finite number {least}" if np.isinf(high) else f"a number between {low:g} and {high:g}"
        raise ModelError(f"{what} must be {bounds}, not {array[wrong].flat[0]:g}")
    return array


def natural_numbers(value: Any, what: str, least: int) -> Array:
    """Whole numbers that are not too small: the n of a binomial."""
    array = between(value, what, least)
    if np.any(array > LARGEST):
        raise ModelError(f"{what} must be at most 2^53, not {array.max():g}: not every whole number is a double beyond")
    if np.any(array != np.rint(array)):
        raise ModelError(f"{what} must be a whole number, not {array[array != np.rint(array)].flat[0]:g}")
    return array


def hold(array: Array) -> float | Array:
    """A parameter as a family keeps it: a float, or an array that cannot be written to."""
    if array.ndim == 0:
        return float(array)
    array.flags.writeable = False
    return array


def plain(array: Any) -> Any:
    """An answer as it is given: a float for a single number, else the array."""
    return float(array) if np.ndim(array) == 0 else np.asarray(array)


def observations(x: Any, what: str) -> Array:
    """Observations as an array of numbers, none of them NaN: a missing value is not an observation."""
    try:
        array = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{what} is about numbers, and {_no_number(x)!r} is none") from None
    if np.isnan(array).any():
        first = int(np.argwhere(np.isnan(array))[0][0]) if array.ndim else 0
        raise Outside(f"{what} needs values, and", first, "is NaN, which means missing")
    return array


def counts(x: Any, what: str) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Observations, and whether each is a whole number from 0 up; 0 in place of those that are not."""
    x = observations(x, what)
    inside = (x >= 0.0) & (x == np.rint(x)) & np.isfinite(x)
    return np.where(inside, x, 0.0), inside


def _no_number(x: Any) -> Any:
    """The first of some observations that is no number."""
    try:
        for value in np.asarray(x, dtype=object).reshape(-1):
            try:
                float(value)
            except (TypeError, ValueError):
                return value
    except ValueError:
        pass
    return x


def checked_weights(weights: Any, shape: tuple[int, ...]) -> Array:
    """The weight of each observation: one per row (the first axis) or one per value; finite and not negative."""
    if weights is None:
        return np.ones(shape)
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"weights must be numbers, not {weights!r}") from None
    if array.shape not in (shape, shape[:1]):
        raise DataError(f"there are {shape[0]:,} rows, so the weights need the shape {shape[:1]}, not {array.shape}")
    wrong = ~(np.isfinite(array) & (array >= 0.0))
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0]) + 1
        raise DataError(f"weights must be finite and not negative: the weight of row {row:,} is {array[wrong].flat[0]:g}")
    return np.broadcast_to(array.reshape(array.shape + (1,) * (len(shape) - array.ndim)), shape)


def show(value: Any) -> str:
    """A parameter as a repr shows it: exactly where it is short."""
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if value.size <= 16 else f"<array of shape {value.shape}>"
    return repr(value)


def same(a: Any, b: Any) -> bool:
    """Whether two parameters are equal, arrays by their values."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a is not None and b is not None and bool(np.array_equal(a, b))
    return bool(a == b)


def keep(owner: Any, **parameters: Array | None) -> None:
    """Set these fields of a frozen value, read-only and of one shape; either all are given or none is."""
    name = type(owner).__name__
    given = {field: value for field, value in parameters.items() if value is not None}
    if given and len(given) < len(parameters):
        lost = next(field for field in parameters if field not in given)
        raise ModelError(f"{name} has the {next(iter(given))} but no {lost}: give both, or leave out both")
    for field, value in zip(given, broadcast(name, **given), strict=True):
        object.__setattr__(owner, field, hold(np.array(value)))


def read_only(owner: Any, *names: str) -> tuple[str, ...]:
    """Make these fields of a frozen value arrays that cannot be written to."""
    for name in names:
        array = np.array(getattr(owner, name), dtype=np.float64)
        array.flags.writeable = False
        object.__setattr__(owner, name, array)
    return names


def broadcast(name: str, **arrays: Array) -> tuple[Array, ...]:
    """Arrays of one shape, made of those that fit together."""
    try:
        return tuple(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        shapes = " and ".join(f"{field} {array.shape}" for field, array in arrays.items())
        raise ModelError(f"the shapes of {name} do not fit together: {shapes}") from None


def finite(value: Any, what: str) -> Array:
    """Finite numbers of any sign."""
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
        object.__setattr__(owner, field, hold(np.array(np.broadcast_to(array, (*lead, *own)))))


def components(chosen: Any, d: int) -> npt.NDArray[np.intp]:
    """Some of d components, by their numbers from 0."""
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
    """Finite vectors of k numbers, along the last axis; where k is 1, a plain number is one."""
    array = numbers(value, what)
    array = array[None] if array.ndim == 0 and k == 1 else array
    if array.ndim == 0 or array.shape[-1] != k:
        raise ModelError(f"{what} has {k} numbers, so its last axis must be {k}: the shape is {array.shape}")
    return finite(array, what)


class Interval(NamedTuple):
    """An equal-tailed interval, one pair of ends per parameter.

    >>> Interval(0.1, 0.6).upper
    0.6
    """

    lower: Any
    upper: Any


def tail(level: Any) -> float:
    """The probability outside each end of an interval of this level."""
    return (1.0 - checked_level(level)) / 2.0


MOST = 12
"""The columns, and the rows of a matrix, that are shown."""


def summary(thing: Any, given: Mapping[str, Any], title: str, labels: Sequence[str] = ()) -> str:
    """The parameters of a distribution, and what it has of mean, mode, variance and 95 % interval."""
    facts = dict(given)
    for name in ("mean", "expected", "mode", "variance"):
        value = _ask(thing, name)
        # A distribution, as the mode of a prior of two parameters is, by the numbers of its parameters.
        parts = getattr(value, "names", None)
        named = {name: value} if parts is None else {f"{name} {part}": getattr(value, part) for part in parts}
        facts.update((key, own) for key, own in named.items() if own is not None and key not in facts)
    ends = _ask(thing, "interval")
    intervals = {"": ends} if isinstance(ends, Interval) else ends or {}
    for name, interval in intervals.items():
        of = f" of the {name}" if name else ""
        facts.update({f"95 %{of} from": interval[0], f"95 %{of} to": interval[1]})
    return table(facts, title, labels)


def table(facts: Mapping[str, Any], title: str, labels: Sequence[str] = ()) -> str:
    """Numbers, vectors and matrices by name; `labels` name the components, whose numbers stand there else."""
    rows = [row for name, value in facts.items() for row in _rows(name, value)]
    width = max([len(cells) for _, cells in rows], default=1)
    top = ["value"] if width == 1 else [str(label) for label in (labels if len(labels) >= width else range(width))][:width]
    return html_table(["", *top], [[name, *cells, *[""] * (width - len(cells))] for name, cells in rows], caption=title)


def _ask(thing: Any, name: str) -> Any:
    """What a distribution says when asked; None where it has no answer."""
    try:
        answer = getattr(thing, name, None)
        return answer() if callable(answer) else answer
    except SufficeError:
        return None


def _rows(name: str, value: Any) -> list[tuple[str, list[object]]]:
    if isinstance(value, str):
        return [(name, [value])]
    array = np.asarray(value)
    if array.ndim > 2:
        return [(name, [f"array of shape {array.shape}"])]
    if array.ndim == 2:
        rows = [(f"{name} {i}", _cells(row)) for i, row in enumerate(array[:MOST])]
        return [*rows, ("…", [f"{len(array) - MOST:,} more"])] if len(array) > MOST else rows
    return [(name, _cells(np.atleast_1d(array)))]


def _cells(vector: Any) -> list[object]:
    few = vector[:MOST].tolist()
    return [*few, f"and {len(vector) - MOST:,} more"] if len(vector) > MOST else few
