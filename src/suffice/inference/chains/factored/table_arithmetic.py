"""How tables are multiplied and summed: as numbers, as logarithms, or with the largest in place of the sum.

A table over variables a₁, a₂, … has an axis for each and a last one for *lanes*, sequences that step together; where that has
length 1, all lanes have the same table. `combine` is the one operation, and its own derivative: what goes back from out to left
is out combined with right.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from suffice.basis.arrays import Array
from suffice.inference.chains.factored.slice_program import Scope
from suffice.inference.finite.logs import log_sum

LETTERS = "abcdefghijklmnopqrstuvwxyABCDEFGHIJKLMNOPQRSTUVWXY"


class TablePair(NamedTuple):
    """Two tables and the variables of each."""

    left: Array
    a: Scope
    right: Array
    b: Scope


class Alignment(NamedTuple):
    """How a table is put into the order of others: its axes moved, new ones put in."""

    order: tuple[int, ...]
    put_in: tuple[slice | None, ...]

    @classmethod
    def of(cls, scope: Scope, out: Scope) -> Alignment:
        order = sorted(range(len(scope)), key=lambda i: out.index(scope[i]))
        return cls((*order, len(scope)), (*(slice(None) if v in scope else None for v in out), slice(None)))

    def __call__(self, table: Array) -> Array:
        return table.transpose(self.order)[self.put_in]


class Combination(NamedTuple):
    """How two tables with given variables are combined: what is worked out once."""

    every: Scope
    left: Alignment
    right: Alignment
    plain: bool
    """Nothing is summed."""
    subscripts: str
    matrix: int
    """The one place at which left and the result differ, by a variable that right, a matrix, exchanges; −1 if it is not so."""
    pairs: int
    """The one place at which left and right differ, by the two variables of the result; −1 if it is not so."""
    turned: bool
    """Whether the matrix, or the result of pairs, is the other way round."""


@lru_cache(maxsize=4096)
def way_of(a: Scope, b: Scope, out: Scope) -> Combination:
    """How tables over a and b are combined to one over `out`."""
    joined = tuple(dict.fromkeys((*a, *b)))
    every = (*out, *(v for v in joined if v not in out))
    letter = dict(zip(joined, LETTERS, strict=False))
    x, y, z = ("".join(letter[v] for v in scope) for scope in (a, b, out))
    matrix, pairs = _exchange_place(a, out, b), _exchange_place(a, b, out)
    turned = (matrix >= 0 and b[0] == a[matrix]) or (pairs >= 0 and out[0] != a[pairs])
    plain = len(every) == len(out)
    return Combination(every, Alignment.of(a, every), Alignment.of(b, every), plain, f"{x}z,{y}z->{z}", matrix, pairs, turned)


def _exchange_place(a: Scope, b: Scope, two: Scope) -> int:
    """The one place at which two scopes differ, if these are the two variables there; or −1."""
    at = [i for i, (u, v) in enumerate(zip(a, b, strict=False)) if u != v]
    return at[0] if len(a) == len(b) and len(two) == 2 and len(at) == 1 and {a[at[0]], b[at[0]]} == set(two) else -1


class Products:
    """Probabilities as they are."""

    logs = False

    def combine(self, tables: TablePair, out: Scope, room: Array | None = None) -> Array:
        """The product of two tables, summed over all variables but these, put into `room`; without room it is summed over lanes,
        too."""
        left, a, right, b = tables
        way = way_of(a, b, out)
        if room is not None:
            if way.plain:
                return np.multiply(way.left(left), way.right(right), out=room)
            if way.matrix >= 0 and right.shape[-1] == 1:
                return _times(left, right[..., 0].T if way.turned else right[..., 0], way.matrix, room)
            return np.asarray(np.einsum(way.subscripts + "z", left, right, out=room))
        if way.pairs >= 0 and left.shape[-1] == right.shape[-1]:
            x, y = (_by_axis(t, way.pairs) for t in (left, right))
            found: Array = np.matmul(x, y.transpose(0, 2, 1)).sum(axis=0)
            return (found.T if way.turned else found)[..., None]
        return np.asarray(np.einsum(way.subscripts, left, right))[..., None]

    def sum_out(self, table: Array, axis: int, room: Array) -> Array:
        """A table without one of its axes."""
        return np.add.reduce(table, axis=axis, out=room)

    def normalise(self, table: Array, room: Array) -> tuple[Array, Array]:
        """A table whose sum is 1 in each lane, and the logarithms of the sums."""
        flat = table.reshape(-1, table.shape[-1])
        total = np.ones(len(flat)) @ flat
        with np.errstate(divide="ignore"):
            scale = np.log(total)
        return np.multiply(table, np.divide(1.0, total, out=np.zeros_like(total), where=total > 0), out=room), scale


class Logarithms(Products):
    """Logarithms of probabilities: slower, and nothing is too small."""

    logs = True

    def combine(self, tables: TablePair, out: Scope, room: Array | None = None) -> Array:
        left, a, right, b = tables
        way = way_of(a, b, out)
        both = way.left(left) + way.right(right)
        axes = (*range(len(out), len(way.every)), *((both.ndim - 1,) if room is None else ()))
        result = self._reduce(both, axes) if axes else both
        return result if room is not None else result[..., None]

    def _reduce(self, table: Array, axes: tuple[int, ...]) -> Array:
        return log_sum(table, axes)

    def sum_out(self, table: Array, axis: int, room: Array) -> Array:
        return self._reduce(table, (axis,))

    def normalise(self, table: Array, room: Array) -> tuple[Array, Array]:
        total = log_sum(table, tuple(range(table.ndim - 1)))
        return np.subtract(table, np.where(total > -np.inf, total, 0.0), out=room), total


class Largest(Logarithms):
    """Logarithms, with the largest in place of the sum."""

    def _reduce(self, table: Array, axes: tuple[int, ...]) -> Array:
        return np.asarray(table.max(axis=axes))

    def normalise(self, table: Array, room: Array) -> tuple[Array, Array]:
        np.copyto(room, table)
        return room, np.zeros(table.shape[-1])


def _by_axis(table: Array, axis: int) -> Array:
    """A table as (what is before an axis, the axis, what is after it)."""
    shape = table.shape
    return table.reshape(prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))


def _times(table: Array, matrix: Array, axis: int, room: Array) -> Array:
    """Σ_v matrix[j, v] table[… v …]: j takes the place of v."""
    flat, out = _by_axis(table, axis), _by_axis(room, axis)
    if flat.shape[2] == 1:
        np.matmul(flat[..., 0], matrix.T, out=out[..., 0])
    else:
        np.matmul(matrix, flat, out=out)
    return room


class TableRoom:
    """Memory for tables that is used again: to ask for it anew at each step costs more than to fill it."""

    def __init__(self) -> None:
        self._held: dict[Hashable, Array] = {}

    def __call__(self, key: Hashable, shape: tuple[int, ...]) -> Array:
        """A table whose cells may be anything. It is good until the same key is asked for again."""
        n, held = prod(shape), self._held.get(key)
        if held is None or len(held) < n:
            held = self._held[key] = np.empty(n)
        return held[:n].reshape(shape)
