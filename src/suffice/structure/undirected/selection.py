"""What the penalty of a graph is chosen by: EBIC, the stability of its edges (StARS), or the likelihood of held-out rows.

A way to choose is a value with `judge`, which takes a path of fits, one for each penalty from the largest down, and says what it
thinks of each. What the fits are, of which data and by which method, is the business of the path: see `graph_method.PenaltyFits`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.registry import Named
from suffice.engines.data import Data
from suffice.engines.steps.blocks import in_order
from suffice.errors import DataError, FitError, note, whole
from suffice.errors.remedies import Remedy, argument
from suffice.objectives.scores import BIC, EdgePrice, GraphPosterior, StructurePrior
from suffice.statistics import Statistics


class Judgement(NamedTuple):
    """A number for each penalty, which of them is the best, and what that scores, higher is better: None if it is no score."""

    criteria: Array
    best: int
    score: float | None
    frequency: Array | None = None
    """Of StARS: how often each pair is joined at the best penalty."""
    score_name: str = "score"
    """What the score is, in a word or two."""


@dataclass(frozen=True)
class EBIC(GraphPosterior):
    """The penalty with the smallest −2 log L + E log n + 4 γ E log p, of E edges among p variables and n rows.

    γ = 0 is the BIC; γ = 0.5 asks for more where there are many variables (Foygel & Drton 2010, NIPS 23). It needs no rows but
    their moments.

    As a score of searches, higher is better, it is −½ of that: log L − ½ k log n − 2 γ E log p, with k parameters; γ = 1 is for
    more variables than rows.

    >>> EBIC()
    EBIC(gamma=0.5)
    >>> from suffice import score
    >>> rows = {"x": [1.0, 2.5, 3.0, 4.0, 5.5], "y": [2.0, 4.0, 3.5, 5.0, 4.5]}
    >>> round(score("x -> y", rows, EBIC(0.0)) - score("x -> y", rows, EBIC(1.0)), 4)
    1.3863
    """

    listed_in = "scores selections"
    word = "ebic"
    after_colon = ("gamma", float)

    gamma: float = 0.5
    score: Any = field(default=BIC(), init=False, repr=False)
    prior: StructurePrior = field(default=EdgePrice(0.5), init=False, repr=False)

    n_paths: ClassVar[int] = 1
    """How many paths of penalties are solved."""

    def __post_init__(self) -> None:
        if isinstance(self.gamma, bool) or not isinstance(self.gamma, (int, float)) or not 0.0 <= self.gamma < math.inf:
            raise FitError(f"the gamma of EBIC is a number of at least 0, mostly from 0 to 1, not {self.gamma!r}")
        object.__setattr__(self, "prior", EdgePrice(float(self.gamma)))

    def value(self, fit: Any, weight: float, n_variables: int) -> float:
        """The criterion of one graph: smaller is better."""
        price = fit.n_parameters * math.log(weight)
        return float(fit.deviance + price + 4.0 * self.gamma * fit.n_pairs * math.log(n_variables))

    def judge(self, path: Any) -> Judgement:
        values = np.array([self.value(fit, path.weight, path.n_variables) for fit in path.fits])
        best = int(np.argmin(values))
        return Judgement(values, best, -float(values[best]), score_name=f"−{self!r}")


@dataclass(frozen=True)
class StARS(Named):
    """The smallest penalty at which the graphs of subsamples still agree (Liu, Roeder & Wasserman 2010, NIPS 23).

    Of rows drawn without replacement, `subsamples` times ⌊10 √n⌋ of n rows (80 % of fewer than 145), the graph is found again. A
    pair that is joined with frequency f is unstable by 2 f (1 − f); the mean over all pairs, and its maximum over larger
    penalties, may be at most `threshold`. Of few variables a single pair may be too much: it is meant for many.

    >>> StARS(0.1)
    StARS(threshold=0.1, subsamples=20)
    """

    listed_in = "selections"
    word = "stars"
    after_colon = ("threshold", float)

    threshold: float = 0.05
    subsamples: int = 20

    @property
    def n_paths(self) -> int:
        """How many paths of penalties are solved."""
        return 1 + self.subsamples

    def __post_init__(self) -> None:
        if isinstance(self.threshold, bool) or not isinstance(self.threshold, (int, float)) or not 0.0 < self.threshold < 0.5:
            raise FitError(
                f"{Remedy('the threshold of StARS', '--select stars:X: X')} is a number between 0 and 0.5, not {self.threshold!r}"
            )
        whole(self.subsamples, "the number of subsamples", 2)

    def judge(self, path: Any) -> Judgement:
        rows = rows_of(path.data, "StARS draws subsamples of the rows")
        n = rows.n_rows
        size = int(0.8 * n) if n <= 144 else int(10.0 * math.sqrt(n))
        if size < 3:
            raise DataError(f"StARS draws subsamples of 80 % of the rows, and there are only {n}")
        seeds = (int(s.generate_state(1)[0]) for s in np.random.SeedSequence(path.seed).spawn(self.subsamples))
        drawn = (rows.of_rows(rows.sample(size, seed)) for seed in seeds)
        frequency: Array = np.zeros((len(path.fits), path.n_variables, path.n_variables))
        for fits in in_order((partial(path.again, part) for part in drawn), path.threads):
            frequency += np.array([fit.joined for fit in fits]) / self.subsamples
        n_pairs = path.n_variables * (path.n_variables - 1)
        unstable = (2.0 * frequency * (1.0 - frequency)).sum((1, 2)) / max(n_pairs, 1)
        instability = np.maximum.accumulate(unstable)
        best = max(int(np.count_nonzero(instability <= self.threshold)) - 1, 0)
        if instability[best] > self.threshold:
            note(f"at no penalty of the path are the subsamples as stable as {self!r} asks for: the largest is taken")
        return Judgement(instability, best, None, frequency[best])


@dataclass(frozen=True)
class HeldOut(Named):
    """The penalty of a graph, or the number of classes or hidden states, by the log-likelihood of what was not learned from, over
    some folds of the rows or of whole sequences.

    >>> HeldOut(folds=10)
    HeldOut(folds=10)
    """

    listed_in = "selections"
    word = "cv"
    after_colon = ("folds", int)

    folds: int = 5

    @property
    def n_paths(self) -> int:
        """How many paths of penalties are solved."""
        return 1 + self.folds

    def __post_init__(self) -> None:
        whole(self.folds, f"{Remedy('', '--select cv:N: ')}the number of folds", 2)

    def judge(self, path: Any) -> Judgement:
        rows = rows_of(path.data, f"HeldOut({self.folds}) holds out some of the rows")
        if rows.n_rows < 2 * self.folds:
            raise DataError(f"HeldOut({self.folds}) needs at least {2 * self.folds} rows, and there are {rows.n_rows}")
        pairs = rows.split(self.folds, path.seed)
        values: Array = np.zeros(len(path.fits))
        for part in in_order((partial(path.held_out, *pair) for pair in pairs), path.threads):
            values += part
        best = int(np.argmax(values))
        return Judgement(values, best, float(values[best]), score_name="held-out log-likelihood")


def rows_of(data: Data | Statistics, what: str) -> Data:
    """Rows, where statistics are not enough."""
    if isinstance(data, Statistics):
        raise DataError(
            f"{what}, and statistics have none; {argument('select', 'EBIC(0.5)', 'ebic:0.5')} needs the statistics only"
        )
    return data
