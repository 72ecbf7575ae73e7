"""Rules: what a search may do, in numbers. Variables are numbered in the order of their names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Bools, Ints
from suffice.errors import FitError
from suffice.graphs.directed import topological_order
from suffice.variables import Finite, Real, Variable

Parents = tuple[int, ...]


@dataclass(frozen=True)
class Rules:
    """Which edges are allowed and which must be there; `allowed[child, parent]`, `required[child, parent]`.

    `required` implies `allowed`; the diagonal is never allowed; the required edges have no cycle and fit `max_parents`.

    >>> Rules.free(3).allowed.sum()
    np.int64(6)
    """

    allowed: Bools
    required: Bools
    max_parents: Ints
    names: tuple[str, ...] = ()

    @staticmethod
    def free(n: int, max_parents: int | None = None) -> Rules:
        """Every edge allowed, none required, and at most `max_parents` parents."""
        most = n - 1 if max_parents is None else min(max_parents, max(n - 1, 0))
        return Rules(~np.eye(n, dtype=bool), np.zeros((n, n), bool), np.full(n, most, np.int64))

    @staticmethod
    def of_kinds(variables: Sequence[Variable], regressions: Collection[str] = ()) -> Rules:
        """Every edge allowed for which there is a family: numbers are parents of real variables and of `regressions` only.

        >>> Rules.of_kinds([Finite("a", ["u", "v"]), Real("b")]).allowed.astype(int)
        array([[0, 0],
               [1, 0]])
        """
        rules = Rules.free(len(variables))
        finite = np.array([isinstance(v, Finite) for v in variables], bool)
        any_parents = np.array([isinstance(v, Real) or v.name in regressions for v in variables], bool)
        rules.allowed[~any_parents[:, None] & ~finite] = False
        return rules

    @property
    def n(self) -> int:
        return len(self.allowed)

    @property
    def n_families(self) -> int:
        """How many families they allow, whatever they require.

        >>> Rules.free(3, 1).n_families
        9
        """
        most, candidates = self.max_parents.tolist(), self.allowed.sum(1).tolist()
        return sum(comb(c, k) for c, m in zip(candidates, most, strict=True) for k in range(min(m, c) + 1))

    def cap(self, max_parents: int | None) -> Rules:
        """The same rules with at most so many parents."""
        if max_parents is None:
            return self
        needed = self.required.sum(1)
        if needed.max(initial=0) > max_parents:
            child = int(np.argmax(needed))
            name = repr(self.names[child]) if self.names else f"node {child}"
            raise FitError(
                f"the constraints require {needed[child]} parents of {name}, and the method allows at most {max_parents}: "
                "raise its max_parents"
            )
        return replace(self, max_parents=np.minimum(self.max_parents, max_parents))

    def without_parents(self, nodes: Sequence[int]) -> Rules:
        """The same rules, but these nodes have no parents.

        >>> Rules.free(3).without_parents([0]).allowed.sum()
        np.int64(4)
        """
        allowed, required = self.allowed.copy(), self.required.copy()
        allowed[nodes], required[nodes] = False, False
        return replace(self, allowed=allowed, required=required)

    def within(self, candidates: Bools) -> Rules:
        """The same rules with these candidate parents only, and what is required."""
        return replace(self, allowed=(self.allowed & candidates) | self.required)

    def start(self) -> list[Parents]:
        """The graph of the required edges only."""
        return [tuple(map(int, np.flatnonzero(row))) for row in self.required]

    def some_order(self, rng: np.random.Generator, start: Sequence[Parents] | None = None) -> npt.NDArray[np.int32]:
        """A random order in which required parents, or the parents of `start`, come before their children."""
        before = [set(p) for p in (self.start() if start is None else start)]
        order: list[int] = []
        placed: set[int] = set()
        waiting = rng.permutation(len(before)).argsort().tolist()
        while waiting:
            ready = [v for v in waiting if before[v] <= placed]
            order += ready
            placed |= set(ready)
            waiting = [v for v in waiting if v not in placed]
        return np.array(order, np.int32)

    def permits(self, parents: Sequence[Parents]) -> bool:
        """Whether a graph keeps the rules."""
        matrix = np.zeros_like(self.allowed)
        for child, chosen in enumerate(parents):
            matrix[child, list(chosen)] = True
        few = bool((matrix.sum(1) <= self.max_parents).all())
        return few and not (matrix & ~self.allowed).any() and not (self.required & ~matrix).any()


def ancestors(parents: Sequence[Sequence[int]]) -> Bools:
    """Which have a directed path to which: [descendant, ancestor].

    >>> ancestors([(), (0,), (1,)]).astype(int)
    array([[0, 0, 0],
           [1, 0, 0],
           [1, 1, 0]])
    """
    above = np.zeros((len(parents), len(parents)), bool)
    for x in topological_order(dict(enumerate(parents))):
        for p in parents[x]:
            above[x] |= above[p]
            above[x, p] = True
    return above


def toggle_parent(parents: Sequence[int], other: int) -> Parents:
    """The parents with one more, or one less if it was there.

    >>> toggle_parent((1, 3), 2), toggle_parent((1, 3), 3)
    ((1, 2, 3), (1,))
    """
    return tuple(p for p in parents if p != other) if other in parents else tuple(sorted((*parents, other)))
