"""The types of kernels' arguments, written as numba writes them, and translated for it when something is compiled.

So a kernel can be declared, and run as the Python that it is, without loading the compiler, which takes half a second. What
kernels name in their bodies has a form for the compiler (`in_numba`) and one for Python (`in_python`); this module, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Scalar:
    """A number, or nothing: `int64[::1]` is an array of it, `int64(float64)` what a kernel takes that returns it.

    >>> float64(int64[:, ::1])[0].n_dims
    2
    """

    name: str

    def __getitem__(self, axes: Any) -> Array:
        return Array(self, len(axes) if isinstance(axes, tuple) else 1, "C")

    def __call__(self, *arguments: Any) -> Any:
        return arguments

    def in_numba(self) -> Any:
        return getattr(in_numba(), self.name)

    def in_python(self) -> Any:
        return getattr(np, "bool_" if self.name == "boolean" else self.name)


@dataclass(frozen=True)
class Array:
    """An array without gaps, row by row."""

    of: Scalar
    n_dims: int
    layout: str
    readonly: bool = False

    def in_numba(self) -> Any:
        from numba import types

        return types.Array(self.of.in_numba(), self.n_dims, self.layout, readonly=self.readonly)


@dataclass(frozen=True)
class Bundle:
    """A tuple of things of these types."""

    members: tuple[Any, ...]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.members)

    def __call__(self, *arguments: Any) -> Any:
        return arguments

    def in_numba(self) -> Any:
        from numba import types

        return types.Tuple([m.in_numba() for m in self.members])


class types:
    """The names that numba has for these in its `types`."""

    Array = Array

    @staticmethod
    def Tuple(members: Iterable[Any]) -> Bundle:
        """Things of these types."""
        return Bundle(tuple(members))

    @staticmethod
    def UniTuple(member: Any, n: int) -> Bundle:
        """n things of one type."""
        return Bundle((member,) * n)


def in_numba() -> Any:
    import numba

    return numba


def in_python() -> Any:
    return np


boolean, void = Scalar("boolean"), Scalar("void")
uint8, uint16, uint32, uint64 = (Scalar(f"uint{n}") for n in (8, 16, 32, 64))
int32, int64, float32, float64 = Scalar("int32"), Scalar("int64"), Scalar("float32"), Scalar("float64")
