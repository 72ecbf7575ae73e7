"""Factors: arrays of non-negative numbers whose axes have names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from suffice.errors import TooLarge, bytes_in_words, listed

Array = npt.NDArray[np.float64]

MAX_CELLS = 2**27
"""No factor has more cells than this: 1 GiB of numbers."""


@dataclass(frozen=True, eq=False)
class Factor:
    """φ(names): one axis of `values` per name.

    >>> product([Factor(("a",), np.array([1.0, 2.0])), Factor(("b",), np.array([3.0, 4.0]))]).values
    array([[3., 4.],
           [6., 8.]])
    """

    names: tuple[str, ...]
    values: Array

    def ordered(self, names: Sequence[str]) -> Array:
        """The values with the axes in this order."""
        return np.transpose(self.values, [self.names.index(n) for n in names])

    def without(self, name: str) -> Factor:
        """Summed over one variable."""
        axis = self.names.index(name)
        return Factor(self.names[:axis] + self.names[axis + 1 :], self.values.sum(axis=axis))


def product(factors: Iterable[Factor]) -> Factor:
    """The product over the union of the names, in sorted order; refused before allocation where it would not fit."""
    parts = list(factors)
    sizes: dict[str, int] = {}
    for f in parts:
        sizes.update(zip(f.names, f.values.shape, strict=True))
    names = sorted(sizes)
    checked_size(names, sizes)
    values = np.ones([sizes[n] for n in names])
    for f in parts:
        kept = [n for n in names if n in f.names]
        values *= f.ordered(kept).reshape([sizes[n] if n in f.names else 1 for n in names])
    return Factor(tuple(names), values)


def checked_size(names: Sequence[str], sizes: Mapping[str, int]) -> int:
    cells = math.prod(sizes[n] for n in names)
    if cells > MAX_CELLS:
        raise TooLarge(
            f"the joint of {listed(names)} needs {cells:,} cells ({bytes_in_words(8.0 * cells)}); the limit is {MAX_CELLS:,}"
        )
    return cells
