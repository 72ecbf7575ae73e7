"""The lattice of sets of variables that a search over parent sets needs: each set once, whoever is the child in it.

A family is a set and the place of its child in it. Its parents are the set without the child, so that the terms of all sets give
the scores of all families.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from suffice.errors import TooLarge
from suffice.structure.rules import Rules

Sets = npt.NDArray[np.int32]
Ints = npt.NDArray[np.int64]

MOST = 40_000_000
"""Sets of one size that are worked on at once; more would take many gigabytes."""


@dataclass(frozen=True)
class Level:
    """The sets of one size in the order of their members; sub[g, j] is the place of set g without member j one level below."""

    sets: Sets
    sub: Ints

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def size(self) -> int:
        return int(self.sets.shape[1])

    def families(self, rules: Rules) -> npt.NDArray[np.bool_]:
        """Which members of which sets may be the child of all the others."""
        child = self.sets
        result = np.asarray(rules.max_parents[child] >= self.size - 1)
        if rules.allowed.sum() == rules.n * (rules.n - 1) and not rules.required.any():
            return result
        if rules.required.any():
            needed = rules.required.sum(1)[child]
        for j in range(self.size):
            have = np.zeros(len(child), np.int64)
            for k in range(self.size):
                if k != j:
                    result[:, j] &= rules.allowed[child[:, j], child[:, k]]
                    have += rules.required[child[:, j], child[:, k]]
            if rules.required.any():
                result[:, j] &= have == needed[:, j]
        return result

    def kept(self, chosen: npt.NDArray[np.bool_]) -> Level:
        """Some of the sets; the level below is as it was."""
        return Level(self.sets[chosen], self.sub[chosen])


def lattice(rules: Rules) -> list[Level]:
    """The sets of every family that the rules allow (whatever they require), and all subsets of these; level m at place m − 1."""
    n = rules.n
    top = min(int(rules.max_parents.max(initial=0)) + 1, n)
    everything = rules.allowed.sum() == n * (n - 1) and (rules.max_parents >= top - 1).all()
    levels = [Level(np.arange(n, dtype=np.int32)[:, None], np.zeros((n, 1), np.int64))]
    below = np.arange(n, dtype=np.int64)
    for size in range(2, top + 1):
        sets = _longer(levels[-1].sets, n) if everything else _needed(rules, size)
        if not len(sets):
            break
        keys = _keys(sets, n)
        sub = np.empty(sets.shape, np.int64)
        for j in range(size):
            sub[:, j] = np.searchsorted(below, _keys(np.delete(sets, j, axis=1), n))
        levels.append(Level(sets, sub))
        below = keys
    return levels


def _longer(sets: Sets, n: int) -> Sets:
    """All sets of one member more, in order."""
    more = n - 1 - sets[:, -1].astype(np.int64)
    total = int(more.sum())
    if total > MOST:
        raise _too_many(total, sets.shape[1] + 1)
    which = np.repeat(np.arange(len(sets)), more)
    new = np.arange(total) - np.repeat(np.cumsum(more) - more, more) + sets[which, -1] + 1
    return np.column_stack([sets[which], new]).astype(np.int32)


def _needed(rules: Rules, size: int) -> Sets:
    """The sets of this size that are a family's, or a family's parents."""
    n, keys = rules.n, []
    total = 0
    for child in range(n):
        candidates = np.flatnonzero(rules.allowed[child]).astype(np.int32)
        most = min(int(rules.max_parents[child]), len(candidates))
        if size - 1 <= most:
            parents = _chosen(candidates, size - 1)
            family = np.sort(np.column_stack([parents, np.full(len(parents), child, np.int32)]), axis=1)
            keys.append(_keys(family, n))
        if size <= most:
            keys.append(_keys(_chosen(candidates, size), n))
        total += sum(len(k) for k in keys[-2:])
        if total > 4 * MOST:
            raise _too_many(total, size)
    every = np.unique(np.concatenate(keys)) if keys else np.zeros(0, np.int64)
    sets = np.empty((len(every), size), np.int32)
    for j in range(size - 1, -1, -1):
        every, sets[:, j] = np.divmod(every, n)
    return sets


def _chosen(candidates: Sets, size: int) -> Sets:
    """All subsets of so many candidates, each in order."""
    if size > len(candidates):
        return np.zeros((0, size), np.int32)
    sets = np.arange(len(candidates), dtype=np.int32)[:, None]
    for _ in range(size - 1):
        sets = _longer(sets, len(candidates))
    return candidates[sets]


def _keys(sets: Sets, n: int) -> Ints:
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
