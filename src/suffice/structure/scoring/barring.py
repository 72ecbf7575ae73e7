"""Scores that leave some families out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from suffice.structure.constraints.rules import Parents
from suffice.structure.scoring.local_scores import SLOW, Array, Family, ScoreSource


class Barring(ScoreSource):
    """Other scores, but some families have none: a child whose parents are these, or these and others.

    `known` keeps the other scores, for the next one that is made when more is barred.
    """

    most_families = SLOW

    def __init__(self, scores: ScoreSource, barred: Collection[tuple[int, frozenset[int]]], known: dict[Family, float]) -> None:
        super().__init__(scores.data, scores.variables, scores.score, watch=scores.watch)
        self.scores, self.known = scores, known
        self.barred = [[parents for c, parents in barred if c == child] for child in range(self.n)]

    def families(self, families: Iterable[Family]) -> Array:
        wanted = list(families)
        return np.where([self._barred(*f) for f in wanted], -np.inf, super().families(wanted))

    def _fresh(self, families: Sequence[Family]) -> Iterable[float]:
        self.scores.watch = self.watch
        return iter(self.scores.families(families))

    def _barred(self, child: int, parents: Parents) -> bool:
        return any(some <= set(parents) for some in self.barred[child])
