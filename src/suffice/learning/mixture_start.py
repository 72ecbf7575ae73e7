"""Where EM of a mixture starts: classes around rows that lie far apart.

Rows become points: real columns in units of their standard deviation, square roots of counts likewise, states as indicators with
a total variance of 1; a missing cell lies in the middle. The first centre is a row drawn at random, each further one a row drawn
with probability in proportion to its squared distance from the nearest centre (Arthur & Vassilvitskii 2007, SODA, p. 1027). Every
other start then moves the centres to the means of their rows a few times (Lloyd's algorithm).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from suffice.engines.data import Data
from suffice.families.family import Array
from suffice.learning.mixture_em import Mixture, Parameters
from suffice.variables import Count, Finite, Variable

SAMPLE = 2**14
"""Rows that centres are chosen among; of more rows so many are drawn."""

SOFT = 0.1
"""The share of each row that is spread over all classes, so that a class of few rows has variance, and no state probability 0."""

N_MOVES = 10


class Points:
    """A sample of the rows, as points, from which starts are drawn."""

    def __init__(self, data: Data, variables: Mapping[str, Variable], rng: np.random.Generator) -> None:
        few = data.n_rows <= SAMPLE
        self.rows = data if few else data.pick(np.sort(rng.choice(data.n_rows, SAMPLE, replace=False)))
        self.weight = np.concatenate([np.ones(b.n_rows) if b.weight is None else b.weight for b in self.rows.batches()])
        if not self.weight.sum() > 0.0:
            self.weight = np.ones_like(self.weight)
        self.points = np.concatenate([_coordinates(self.rows.column(n), v) for n, v in variables.items()], axis=1)

    def start(self, mixture: Mixture, rng: np.random.Generator, moving: bool, threads: int | None) -> Parameters:
        """Parameters of a start."""
        which = self._nearest(self._centres(mixture.n_classes, rng))
        for _ in range(N_MOVES if moving else 0):
            which = self._nearest(self._means(which, mixture.n_classes))
        r = np.full((mixture.n_classes, len(which)), SOFT / mixture.n_classes)
        r[which, np.arange(len(which))] += 1.0 - SOFT
        return mixture.started(self.rows, lambda b: r[:, b.start : b.start + b.n_rows], threads)

    def _centres(self, k: int, rng: np.random.Generator) -> Array:
        chosen = [int(rng.choice(len(self.points), p=self.weight / self.weight.sum()))]
        distance = self._distances(self.points[chosen])[:, 0]
        for _ in range(k - 1):
            odds = self.weight * distance
            odds = odds if odds.sum() > 0.0 else self.weight  # fewer distinct rows than classes
            chosen.append(int(rng.choice(len(self.points), p=odds / odds.sum())))
            distance = np.minimum(distance, self._distances(self.points[chosen[-1:]])[:, 0])
        return self.points[chosen]

    def _distances(self, centres: Array) -> Array:
        return np.stack([((self.points - c) ** 2).sum(axis=1) for c in centres], axis=1)

    def _nearest(self, centres: Array) -> np.ndarray:
        return np.asarray(self._distances(centres).argmin(axis=1))

    def _means(self, which: np.ndarray, k: int) -> Array:
        """The means of the rows of each centre; one that has lost its rows goes to the middle of all."""
        member = (which[:, None] == np.arange(k)) * self.weight[:, None]
        total, middle = member.sum(axis=0)[:, None], self.weight @ self.points / self.weight.sum()
        return np.asarray(np.where(total > 0.0, member.T @ self.points / np.where(total > 0.0, total, 1.0), middle))


def _coordinates(column: np.ndarray, variable: Variable) -> Array:
    if isinstance(variable, Finite):
        h = (column[:, None] == np.arange(variable.n_states)).astype(np.float64)
        seen = h.sum(axis=1) > 0.0
        middle = h[seen].mean(axis=0) if seen.any() else np.zeros(variable.n_states)
        h = np.where(seen[:, None], h - middle, 0.0)
        spread = float((middle * (1.0 - middle)).sum())
        return h / np.sqrt(spread) if spread > 0.0 else h
    x = np.sqrt(column) if isinstance(variable, Count) else np.array(column)
    seen = ~np.isnan(x)
    x = np.where(seen, x - (x[seen].mean() if seen.any() else 0.0), 0.0)
    spread = float(x[seen].std()) if seen.any() else 0.0
    return (x / spread if spread > 0.0 else x)[:, None]
