"""Parent sets: for each child the sets worth having, best first, as bit masks; and the lattice of sets of variables behind them.

A set is dropped when one of its subsets scores as much: whatever the graph, the subset does as well (Teyssier & Koller 2005).

In the lattice each set of variables is once, whoever is the child in it. A family is a set and the place of its child in it. Its
parents are the set without the child, so that the terms of all sets give the scores of all families.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Bools, Ints
from suffice.basis.iteration import Packed
from suffice.errors import TooLarge
from suffice.structure.rules import Parents, Rules

Sets = npt.NDArray[np.int32]

TIE = 1e-9
"""Scores within TIE · (1 + |score|) are equal."""

PIECE = 2**18
"""Sets between two looks at the clock: a fraction of a second."""

MOST = 40_000_000
"""Sets of one size that are worked on at once; more would take many gigabytes."""


@dataclass(frozen=True)
class Level:
    """The sets of one size in the order of their members; sub[g, j] is the place of set g without member j one level below."""

    sets: Sets
    sub: Ints

    def subset(self, which: Ints, place: Ints, watch: Callable[[], object]) -> Level:
        """The sets at these places, where those one level below have moved to new ones."""
        shape = len(which), self.sets.shape[1]
        result = Level(np.empty(shape, np.int32), np.empty(shape, np.int64))
        for part in pieces(len(which), watch):
            result.sets[part], result.sub[part] = self.sets[which[part]], place[self.sub[which[part]]]
        return result


def families_of(sets: Sets, rules: Rules) -> Bools:
    """[set, place]: which members of which sets may be the child of all the others."""
    n, size = len(rules.allowed), sets.shape[1]
    result = np.asarray(rules.max_parents[sets] >= size - 1)
    if rules.allowed.sum() == n * (n - 1) and not rules.required.any():
        return result
    pair = sets[:, :, None], sets[:, None, :]
    result &= (rules.allowed[pair] | np.eye(size, dtype=bool)).all(2)
    if rules.required.any():
        result &= rules.required[pair].sum(2) == rules.required.sum(1)[sets]
    return result


def by_size(families: Sequence[tuple[int, Parents]]) -> list[tuple[Ints, Sets, Ints]]:
    """Families of each number of parents: their places, their members in the order of sets, and the place of the child there.

    >>> by_size([(5, (2, 7))])
    [(array([0]), array([[2, 5, 7]], dtype=int32), array([1]))]
    """
    places: dict[int, list[int]] = {}
    for i, (_, parents) in enumerate(families):
        places.setdefault(len(parents), []).append(i)
    result = []
    for which in places.values():
        rows = sorted(((*sorted((*parents, child)), i) for i in which for child, parents in [families[i]]))
        members, order = np.array([r[:-1] for r in rows], np.int32), np.array([r[-1] for r in rows])
        children = np.array([families[i][0] for i in order])
        result.append((order, members, np.argmax(members == children[:, None], axis=1)))
    return result


def pieces(n: int, watch: Callable[[], object]) -> Iterator[slice]:
    """Ranges of n sets, so short that whoever may stop the work, `watch`, is heard between them."""
    for first in range(0, n, PIECE):
        watch()
        yield slice(first, min(first + PIECE, n))


def lattice(rules: Rules, watch: Callable[[], object] = lambda: None) -> list[Level]:
    """The sets of every family that the rules allow (whatever they require), and all subsets of these; level m at place m − 1."""
    n = len(rules.allowed)
    top = min(int(rules.max_parents.max(initial=0)) + 1, n)
    everything = rules.allowed.sum() == n * (n - 1) and (rules.max_parents >= top - 1).all()
    levels = [Level(np.arange(n, dtype=np.int32)[:, None], np.zeros((n, 1), np.int64))]
    below = np.arange(n, dtype=np.int64)
    for size in range(2, top + 1):
        sets = _longer(levels[-1].sets, n, watch) if everything else _needed_sets(rules, size, watch)
        if not len(sets):
            break
        keys, sub = np.empty(len(sets), np.int64), np.empty(sets.shape, np.int64)
        for part in pieces(len(sets), watch):
            keys[part] = keys_of(sets[part], n)
            for j in range(size):
                sub[part, j] = np.searchsorted(below, keys_of(np.delete(sets[part], j, axis=1), n))
        levels.append(Level(sets, sub))
        below = keys
    return levels


def _longer(sets: Sets, n: int, watch: Callable[[], object]) -> Sets:
    """All sets of one member more, in order."""
    ends = np.cumsum(n - 1 - sets[:, -1].astype(np.int64))
    total, size = int(ends[-1]) if len(ends) else 0, sets.shape[1]
    if total > MOST:
        raise _too_many(total, size + 1)
    result = np.empty((total, size + 1), np.int32)
    for part in pieces(total, watch):
        place = np.arange(part.start, part.stop)
        which = np.searchsorted(ends, place, side="right")
        result[part, :size] = sets[which]
        result[part, size] = n + place - ends[which]  # the last of those that continue a set ends in n − 1
    return result


def _needed_sets(rules: Rules, size: int, watch: Callable[[], object]) -> Sets:
    """The sets of this size that are a family's, or a family's parents."""
    n, keys = rules.n, []
    total = 0
    for child in range(n):
        candidates = np.flatnonzero(rules.allowed[child]).astype(np.int32)
        most = min(int(rules.max_parents[child]), len(candidates))
        if size - 1 <= most:
            parents = _subsets(candidates, size - 1, watch)
            family = np.sort(np.column_stack([parents, np.full(len(parents), child, np.int32)]), axis=1)
            keys.append(keys_of(family, n))
        if size <= most:
            keys.append(keys_of(_subsets(candidates, size, watch), n))
        total += sum(len(k) for k in keys[-2:])
        if total > 4 * MOST:
            raise _too_many(total, size)
    every = np.unique(np.concatenate(keys)) if keys else np.zeros(0, np.int64)
    sets = np.empty((len(every), size), np.int32)
    for j in range(size - 1, -1, -1):
        every, sets[:, j] = np.divmod(every, n)
    return sets


def _subsets(candidates: Sets, size: int, watch: Callable[[], object]) -> Sets:
    """All subsets of so many candidates, each in order."""
    if size > len(candidates):
        return np.zeros((0, size), np.int32)
    sets = np.arange(len(candidates), dtype=np.int32)[:, None]
    for _ in range(size - 1):
        sets = _longer(sets, len(candidates), watch)
    return candidates[sets]


def keys_of(sets: Sets, n: int) -> Ints:
    """One number for each set, in the order of the sets."""
    size = sets.shape[1]
    if float(n) ** size >= 2.0**63:
        raise TooLarge(f"sets of {size} of {n} variables are too many to be numbered; lower max_parents, or give candidates")
    key = np.zeros(len(sets), np.int64)
    for j in range(size):
        key *= n
        key += sets[:, j]
    return key


def _too_many(total: int, size: int) -> TooLarge:
    return TooLarge(
        f"{total:,} sets of {size} variables would have to be scored; lower max_parents, or restrict the candidate parents "
        "(Candidates, Tiers, Forbid)"
    )


@dataclass(frozen=True)
class ParentSets:
    """The sets of child i are rows first[i]:first[i+1], best first; `masks[row]` has the bit of each parent, 64 in a word.

    Every child has at least one set. Of sets that score alike the smaller comes first, then the earlier by name.
    """

    first: Ints
    score: Array
    masks: npt.NDArray[np.uint64]

    @staticmethod
    def of(n: int, parts: Sequence[tuple[Ints, Array, Sets]]) -> ParentSets:
        """From children, scores and parents, of families of any sizes."""
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

    def pack(self) -> Packed:
        """These sets for a checkpoint."""
        return None, (self.first, self.score, self.masks)

    @staticmethod
    def unpack(packed: Packed) -> ParentSets:
        """Those of a checkpoint."""
        return ParentSets(*packed[1])

    @property
    def n(self) -> int:
        return len(self.first) - 1

    def __len__(self) -> int:
        return len(self.score)

    def flags(self, rows: Any = slice(None)) -> Bools:
        """[set, variable]: which variables some of the sets have."""
        words = np.ascontiguousarray(self.masks[rows])
        return np.unpackbits(words.view(np.uint8), axis=-1, bitorder="little").view(bool)[..., : len(self.first) - 1]

    def members(self, rows: Any = slice(None)) -> list[Parents]:
        """The members of some of the sets."""
        return [tuple(np.flatnonzero(row).tolist()) for row in self.flags(rows)]

    @cached_property
    def parents(self) -> list[Parents]:
        """The members of every set."""
        return self.members()

    def below(self, roots: Collection[int]) -> tuple[ParentSets, Ints]:
        """The sets of the other children without these parents, in the same order, and the row of each here."""
        if not roots:
            return self, np.arange(len(self))
        others = np.array([i for i in range(self.n) if i not in roots], np.int64)
        sizes = np.diff(self.first)[others]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        rows = np.repeat(self.first[others] - first[:-1], sizes) + np.arange(first[-1])
        kept = np.packbits(self.flags(rows)[:, others], axis=1, bitorder="little")
        masks = np.zeros((len(rows), 8 * max(1, -(-len(others) // 64))), np.uint8)
        masks[:, : kept.shape[1]] = kept
        return ParentSets(first, self.score[rows], masks.view(np.uint64)), rows

    @property
    def bound(self) -> float:
        """The score when each child has its best set, cycles or not: no graph has more."""
        return float(self.score[self.first[:-1]].sum())

    def of_child(self, child: int) -> list[tuple[Parents, float]]:
        """The sets of one child with their scores, best first."""
        rows = range(self.first[child], self.first[child + 1])
        return [(self.parents[r], float(self.score[r])) for r in rows]


def choose(
    rules: Rules,
    levels: Sequence[Level],
    scores: Sequence[Array],
    watch: Callable[[], object] = lambda: None,
    *,
    prune: bool = True,
) -> ParentSets:
    """Those of a whole lattice: scores[m][g, j] is that of the j-th member of the g-th set given the others."""
    from suffice.numerics.kernels.counting.bitmaps import prune as beats

    best: Array = np.zeros((1, 1))
    parts: list[tuple[Ints, Array, Sets]] = []
    for level, score in zip(levels, scores, strict=True):
        keep, reached, sets = np.empty(score.shape, bool), np.empty(score.shape), level.sets
        for part in pieces(len(sets), watch):
            allowed = np.ascontiguousarray(families_of(sets[part], rules))
            keep[part], reached[part] = allowed & (score[part] > -np.inf), np.where(allowed, score[part], -np.inf)
            if prune and sets.shape[1] > 1:
                beats(sets[part], level.sub[part], reached[part], allowed, best, keep[part])
        best = reached
        for j in range(sets.shape[1]):
            g = np.flatnonzero(keep[:, j])
            parts.append((sets[g, j].astype(np.int64), score[g, j], np.delete(sets[g], j, axis=1)))
    return ParentSets.of(len(rules.allowed), parts)
