"""A step of a sequence as a program: which tables are multiplied and which variables are summed out, in which order; and how: as
numbers, as logarithms, or with the largest in place of the sum.

The variables of a step are numbers 0, 1, …: those of the step, and those of earlier steps that it depends on. What is known of
the past is a table over the variables `old`; the step's factors are tables over any variables; what the future needs is a table
over `kept`, of which kept[i] is old[i] of the next step:

    out[kept] = Σ_{others} past[old] ∏_f F_f[scope of f]

The others are summed out one at a time, that first whose product of tables is smallest (Dechter 1999, Artificial Intelligence
113, p. 41). For M independent chains of K states this takes M K^(M+1) products instead of K^(2M).

A table over variables a₁, a₂, … has an axis for each and a last one for *lanes*, sequences that step together; where that has
length 1, all lanes have the same table. `combine` is the one operation, and its own derivative: what goes back from out to left
is out combined with right.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from suffice.basis.arrays import Array
from suffice.numerics.inference.finite.logs import log_sum

Scope = tuple[int, ...]


class Operation(NamedTuple):
    """One more table, over `out`: the product of the tables `left` and `right` (−1: none), `summed` (−1: none) summed out."""

    left: int
    right: int
    out: Scope
    summed: int


@dataclass(frozen=True)
class SliceProgram:
    """Tables are numbered: 0 is the past, then the factors, then what the operations make; the last is the result."""

    sizes: tuple[int, ...]
    scopes: tuple[Scope, ...]
    operations: tuple[Operation, ...]
    cost: int
    """Products that one step takes, and"""
    largest: int
    """the cells of the largest table that is made, and"""
    widest: int
    """of the largest product that is summed up."""

    @staticmethod
    @lru_cache(maxsize=256)
    def of(sizes: tuple[int, ...], old: Scope, kept: Scope, factors: tuple[Scope, ...]) -> SliceProgram:
        """The program of a step."""
        making = _Making(sizes, [old, *factors])
        left = [v for v in range(len(sizes)) if v not in kept]
        while left:  # that first whose product of all tables that have it is smallest
            v = min(left, key=lambda v: (making.size({u for r in making.having(v) for u in making.scopes[r]}), -v))
            making.sum_out(v)
            left.remove(v)
        making.finish(kept)
        return SliceProgram(sizes, tuple(making.scopes), tuple(making.operations), making.cost, making.largest, making.widest)

    def cells(self, scope: Iterable[int]) -> int:
        return prod(self.sizes[v] for v in scope)

    @property
    def room(self) -> int:
        """The cells of all tables that a step makes, and of its past."""
        return sum(map(self.cells, (self.scopes[0], *(op.out for op in self.operations))))


class _Making:
    """A program while it is made: `open` are the tables that are not used up yet."""

    def __init__(self, sizes: Sequence[int], scopes: list[Scope]) -> None:
        self.sizes, self.scopes = sizes, scopes
        self.open, self.past = list(range(len(scopes))), 0
        self.operations: list[Operation] = []
        self.cost, self.largest, self.widest = 0, max(map(self.size, scopes)), 0

    def size(self, scope: Iterable[int]) -> int:
        return prod(self.sizes[v] for v in scope)

    def having(self, v: int) -> list[int]:
        return [r for r in self.open if v in self.scopes[r]]

    def sum_out(self, v: int) -> None:
        """Tables within that of the past, or the largest, are multiplied into it, the others together, and then both, summing the
        variable out."""
        having = self.having(v)
        if not having:
            return
        big, rest = self._within(having)
        if not rest:
            self._add(big, -1, tuple(u for u in self.scopes[big] if u != v), v)
            return
        small = self._product(rest)
        more = [u for u in self.scopes[small] if u not in self.scopes[big]]
        place = self.scopes[big].index(v)
        scope = [u for u in self.scopes[big] if u != v]
        # one new variable takes the place of the one that goes: then this is a product of matrices without moving anything
        out = (*scope[:place], *more, *scope[place:]) if len(more) == 1 else (*scope, *more)
        self._add(big, small, tuple(out), v)

    def finish(self, kept: Scope) -> None:
        """Multiply what is left, in the order of the variables that are kept."""
        while len(self.open) > 1:
            big, rest = self._within(list(self.open))
            if rest:
                self._add(big, rest[0], _union(self.scopes[big], self.scopes[rest[0]]), -1)
        if self.scopes[self.open[0]] != kept or not self.operations:
            self._add(self.open[0], -1, kept, -1)

    def _within(self, tables: list[int]) -> tuple[int, list[int]]:
        """That with the past in it, or else the largest, once all that fit into it are multiplied into it; and those that do not
        fit, smallest first."""
        order = sorted(tables, key=lambda r: (r == self.past, self.size(self.scopes[r]), -r))
        big = order.pop()
        inside = [r for r in order if set(self.scopes[r]) <= set(self.scopes[big])]
        if inside:
            big = self._add(big, self._product(inside), self.scopes[big], -1)
        return big, [r for r in order if r not in inside]

    def _product(self, tables: list[int]) -> int:
        """The product of tables, always the two smallest first: small ones cost nothing, and only the last is large."""
        left = list(tables)
        while len(left) > 1:
            left.sort(key=lambda r: (self.size(self.scopes[r]), r), reverse=True)
            a, b = left.pop(), left.pop()
            left.append(self._add(b, a, _union(self.scopes[b], self.scopes[a]), -1))
        return left[0]

    def _add(self, left: int, right: int, out: Scope, summed: int) -> int:
        joined = self.size({*self.scopes[left], *(self.scopes[right] if right >= 0 else ())})
        self.cost += joined
        self.largest, self.widest = max(self.largest, self.size(out)), max(self.widest, joined)
        self.operations.append(Operation(left, right, out, summed))
        self.scopes.append(out)
        made = len(self.scopes) - 1
        self.open = [r for r in self.open if r not in (left, right)] + [made]
        self.past = made if self.past in (left, right) else self.past
        return made


def _union(a: Scope, b: Scope) -> Scope:
    return (*a, *(v for v in b if v not in a))


LETTERS = "abcdefghijklmnopqrstuvwxyABCDEFGHIJKLMNOPQRSTUVWXY"


Table = tuple[Array, Scope]
"""A table and its variables."""


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

    def combine(self, one: Table, other: Table, out: Scope, room: Array | None = None) -> Array:
        """The product of two tables, summed over all variables but these, put into `room`; without room it is summed over lanes,
        too."""
        (left, a), (right, b) = one, other
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

    def combine(self, one: Table, other: Table, out: Scope, room: Array | None = None) -> Array:
        (left, a), (right, b) = one, other
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
