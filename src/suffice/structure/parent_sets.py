"""Parent sets: for each child the sets worth having, best first, as bit masks.

A set is dropped when one of its subsets scores as much: whatever the graph, the subset does as well (Teyssier & Koller 2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from suffice.structure.lattice import Level
from suffice.structure.rules import Parents, Rules

TIE = 1e-9


@dataclass(frozen=True)
class ParentSets:
    """The sets of child i are rows first[i]:first[i+1], best first; `masks[row]` has the bit of each parent, 64 in a word.

    Every child has at least one set. Of sets that score alike the smaller comes first, then the earlier by name.

    >>> sets = ParentSets.of(2, [(0, (), -3.0), (0, (1,), -1.0), (1, (), -2.0)])
    >>> sets.of_child(0)
    [((1,), -1.0), ((), -3.0)]
    """

    first: npt.NDArray[np.int64]
    score: npt.NDArray[np.float64]
    masks: npt.NDArray[np.uint64]

    @staticmethod
    def of(n: int, families: Sequence[tuple[int, Parents, float]]) -> ParentSets:
        """From (child, parents, score)."""
        ordered = sorted(families, key=lambda f: (f[0], -f[2], len(f[1]), f[1]))
        first = np.searchsorted([f[0] for f in ordered], np.arange(n + 1)).astype(np.int64)
        masks = np.zeros((len(ordered), max(1, -(-n // 64))), np.uint64)
        for row, (_, parents, _) in enumerate(ordered):
            for p in parents:
                masks[row, p // 64] |= np.uint64(1) << np.uint64(p % 64)
        return ParentSets(first, np.array([f[2] for f in ordered], float), masks)

    @property
    def n(self) -> int:
        return len(self.first) - 1

    def __len__(self) -> int:
        return len(self.score)

    @cached_property
    def parents(self) -> list[Parents]:
        """The members of each set."""
        bits = np.unpackbits(self.masks.view(np.uint8), axis=1, bitorder="little")
        return [tuple(map(int, np.flatnonzero(row))) for row in bits]

    def members(self, row: int) -> Parents:
        """The members of one set."""
        return tuple(np.flatnonzero(np.unpackbits(self.masks[row].view(np.uint8), bitorder="little")).tolist())

    def of_child(self, child: int) -> list[tuple[Parents, float]]:
        """The sets of one child with their scores, best first."""
        rows = range(self.first[child], self.first[child + 1])
        return [(self.parents[r], float(self.score[r])) for r in rows]


def pruned(
    rules: Rules, families: Sequence[tuple[int, Parents]], scores: npt.NDArray[np.float64], *, prune: bool = True
) -> ParentSets:
    """The sets that hold all required parents and, with `prune`, beat every subset that does."""
    required = [frozenset(p) for p in rules.start()]
    best: dict[tuple[int, Parents], float] = {}
    kept: list[tuple[int, Parents, float]] = []
    for (child, parents), score in sorted(zip(families, scores.tolist(), strict=True), key=lambda f: len(f[0][1])):
        if not required[child] <= set(parents):
            continue
        below = [best.get((child, (*parents[:k], *parents[k + 1 :])), -np.inf) for k in range(len(parents))]
        top = max(below, default=-np.inf)
        best[child, parents] = max(score, top)
        if score > -np.inf and (not prune or top == -np.inf or score > top + TIE * (1.0 + abs(top))):
            kept.append((child, parents, score))
    return ParentSets.of(rules.n, kept)


def chosen(rules: Rules, levels: Sequence[Level], scores: Sequence[npt.NDArray[np.float64]], *, prune: bool = True) -> ParentSets:
    """The same from a whole lattice: scores[m][g, j] is that of the j-th member of the g-th set given the others."""
    from suffice.kernels.local_scores import prune as beats

    best: npt.NDArray[np.float64] = np.zeros((1, 1))
    parts: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.int32]]] = []
    for level, score in zip(levels, scores, strict=True):
        allowed = np.ascontiguousarray(level.families(rules))
        keep = allowed & (score > -np.inf)
        reached = np.where(allowed, score, -np.inf)
        if prune and level.size > 1:
            beats(level.sets, level.sub, reached, allowed, best, keep)
        best = reached
        for j in range(level.size):
            g = np.flatnonzero(keep[:, j])
            parts.append((level.sets[g, j].astype(np.int64), score[g, j], np.delete(level.sets[g], j, axis=1)))
    return _collected(rules.n, parts)


def _collected(n: int, parts: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], npt.NDArray[np.int32]]]) -> ParentSets:
    """The families of all sizes, per child, best first, of equals the smaller and then the earlier."""
    top = max(p[2].shape[1] for p in parts)
    child = np.concatenate([p[0] for p in parts])
    score = np.concatenate([p[1] for p in parts])
    size = np.concatenate([np.full(len(p[0]), p[2].shape[1]) for p in parts])
    members = np.concatenate([np.pad(p[2], ((0, 0), (0, top - p[2].shape[1])), constant_values=-1) for p in parts])
    order = np.lexsort((*members.T[::-1], size, -score, child))
    masks = np.zeros((len(order), max(1, -(-n // 64))), np.uint64)
    for j in range(top):
        m = members[order, j]
        rows = np.flatnonzero(m >= 0)
        masks[rows, m[rows] // 64] |= np.uint64(1) << (m[rows] % 64).astype(np.uint64)
    first = np.searchsorted(child[order], np.arange(n + 1)).astype(np.int64)
    return ParentSets(first, score[order], masks)
