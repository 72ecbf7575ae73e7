"""A step of a sequence as a program: which tables are multiplied and which variables are summed out, in which order.

The variables of a step are numbers 0, 1, …: those of the step, and those of earlier steps that it depends on. What is known of
the past is a table over the variables `old`; the step's factors are tables over any variables; what the future needs is a table
over `kept`, of which kept[i] is old[i] of the next step:

    out[kept] = Σ_{others} past[old] ∏_f F_f[scope of f]

The others are summed out one at a time, that first whose product of tables is smallest (Dechter 1999, Artificial Intelligence
113, p. 41). For M independent chains of K states this takes M K^(M+1) products instead of K^(2M).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NamedTuple

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
        """The program of a step.

        >>> two_chains = SliceProgram.of((3, 3, 3, 3), (1, 3), (0, 2), ((1, 0), (3, 2), (0, 2)))
        >>> [(op.left, op.right, op.out, op.summed) for op in two_chains.operations]
        [(0, 2, (1, 2), 3), (4, 1, (0, 2), 1), (5, 3, (0, 2), -1)]
        >>> two_chains.cost, two_chains.largest, two_chains.widest
        (63, 9, 27)
        """
        making = _Making(sizes, [old, *factors])
        left = [v for v in range(len(sizes)) if v not in kept]
        while left:
            v = min(left, key=lambda v: (making.joined_size(v), -v))
            making.sum_out(v)
            left.remove(v)
        making.finish(kept)
        return SliceProgram(sizes, tuple(making.scopes), tuple(making.operations), making.cost, making.largest, making.widest)

    def cells(self, scope: Iterable[int]) -> int:
        """The size of a table over these variables."""
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

    def joined_size(self, v: int) -> int:
        """The size of the product of all tables that have a variable."""
        return self.size({u for r in self.open if v in self.scopes[r] for u in self.scopes[r]})

    def sum_out(self, v: int) -> None:
        """Tables within that of the past, or the largest, are multiplied into it, the others together, and then both, summing the
        variable out."""
        having = [r for r in self.open if v in self.scopes[r]]
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
