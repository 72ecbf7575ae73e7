"""The neighbourhood of a graph: which single changes its arrows and the rules allow, and what each would gain.

All in numbers: variable i is problem.names[i]. Words about it are in `explain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, combinations
from math import comb

import numpy as np
import numpy.typing as npt

from suffice.graphs.paths import links
from suffice.structure.problem import Problem
from suffice.structure.rules import Parents, Rules, ancestors

N_SETS = 10_000
"""Parent sets of one child that are looked at to find its best alternative; past that only those one or two swaps away."""


class Neighbourhood:
    """A graph, the problem it answers, and the rules as its method took them."""

    def __init__(self, problem: Problem, rules: Rules, parents: Sequence[Parents]) -> None:
        self.problem, self.rules, self.parents = problem, rules, tuple(parents)
        self.scores = problem.scores

    @cached_property
    def children(self) -> dict[int, list[int]]:
        return links(((p, c) for c, chosen in enumerate(self.parents) for p in chosen), range(len(self.parents)))[1]

    @cached_property
    def above(self) -> npt.NDArray[np.bool_]:
        """above[i, j]: there is a directed path from j to i."""
        return ancestors(self.parents)

    def gain(self, child: int, parents: Parents) -> float:
        """What the score gains when the child gets these parents instead of its own."""
        new, old = self.scores.families([(child, parents), (child, self.parents[child])])
        return float(new - old)

    def candidates(self, child: int) -> list[int]:
        """Whom the child may have as parents, its other arrows and those of all others staying as they are."""
        return [int(p) for p in np.flatnonzero(self.rules.allowed[child] & ~self.above[:, child])]

    def one_change(self, child: int) -> Iterator[Parents]:
        """The parent sets with one parent more, one less, or one swapped, that the arrows and the rules allow."""
        own, must = self.parents[child], self.rules.required[child]
        new = [c for c in self.candidates(child) if c not in own]
        loose = [p for p in own if not must[p]]
        for p in loose:
            rest = tuple(q for q in own if q != p)
            yield rest
            yield from (tuple(sorted((*rest, c))) for c in new)
        if len(own) < self.rules.max_parents[child]:
            yield from (tuple(sorted((*own, c))) for c in new)

    def parent_sets(self, child: int, most: int, without: int | None = None) -> tuple[list[Parents], bool]:
        """Other sets of up to `most` parents that the child could have, and whether these are all.

        `without`: none with this parent. When all are more than `N_SETS`: those that two swaps, or one, lead to.
        """
        own, must = self.parents[child], {int(p) for p in np.flatnonzero(self.rules.required[child])}
        most = min(most, int(self.rules.max_parents[child]))
        loose = [c for c in self.candidates(child) if c not in must and c != without]
        sizes = range(max(0, most - len(must)) + 1)
        complete = sum(comb(len(loose), k) for k in sizes) <= N_SETS
        if complete:
            found: Iterable[Parents] = chain.from_iterable(combinations(loose, k) for k in sizes)
        else:
            kept = [p for p in own if p not in must and p != without]
            new = [c for c in loose if c not in kept]
            swaps = 2 if len(new) ** 2 * (len(kept) + 1) ** 2 <= 4 * N_SETS else 1
            found = _swapped(kept, new, swaps, max(0, most - len(must)))
        sets = dict.fromkeys(tuple(sorted({*s, *must})) for s in found)
        return [s for s in sets if s != own and (without is None or without not in s)], complete

    def keeps(self, child: int, parents: Parents) -> bool:
        """Whether other parents keep what the constraints say of paths and pairs, which is not in the rules."""
        constraints = getattr(self.problem, "constraints", None)
        if constraints is None or not (constraints.adjacent or constraints.not_ancestor):
            return True
        return not constraints.check(self.problem.dag([parents if c == child else ps for c, ps in enumerate(self.parents)]))

    def ranked(self, child: int, sets: Sequence[Parents]) -> list[tuple[float, Parents]]:
        """What each set would gain, best first; sets without a score, and those against the constraints, are left out."""
        sets = [s for s in sets if self.keeps(child, s)]
        scores = self.scores.families([(child, s) for s in sets]) - self.scores.family(child, self.parents[child])
        finite = [(float(g), s) for g, s in zip(scores, sets, strict=True) if g > -np.inf]
        return sorted(finite, key=lambda r: (-r[0], len(r[1]), r[1]))


def _swapped(kept: Sequence[int], new: Sequence[int], swaps: int, most: int) -> Iterator[Parents]:
    """The sets with up to `swaps` of the kept left out and up to `swaps` (or one more, in a gap) new ones put in."""
    for out in range(min(swaps, len(kept)) + 1):
        for gone in combinations(kept, out):
            rest = [p for p in kept if p not in gone]
            for into in range(min(swaps, most - len(rest)) + 1):
                yield from ((*rest, *extra) for extra in combinations(new, into))
