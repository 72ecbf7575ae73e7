"""Local scores: (child, parents) → score, in batches, each computed once.

Variables are numbered in the order of their names, parents are sorted numbers. Where the statistics come from (a scan of the
rows, bitmaps in memory, one matrix of moments, statistics that were saved, or that incomplete rows are expected to have) is the
business of a *source*, chosen here once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.families.priors import K2, BDeu, BDs, Dirichlet, NormalWishart
from suffice.scores import AIC, BIC, Evidence, LogLikelihood
from suffice.statistics import Statistics
from suffice.structure.finite_source import FiniteSource
from suffice.structure.parent_sets import TIE, ParentSets
from suffice.structure.rules import Parents, Rules
from suffice.structure.sources import ExpectedSource, FamiliesSource, Family, GaussianSource, Source
from suffice.variables import Finite, Real, Variable

if TYPE_CHECKING:
    from suffice.incomplete.expectations import ExpectedStatistics

Array = npt.NDArray[np.float64]


class LocalScores:
    """The scores of families over some data.

    >>> from suffice.engines import scan
    >>> from suffice.scores import BIC
    >>> data = scan({"x": ["a", "b", "a", "b"], "y": ["u", "v", "u", "v"]})
    >>> scores = LocalScores(data, tuple(data.schema.values()), BIC())
    >>> scores.families([(0, ()), (0, (1,))]).round(3)
    array([-3.466, -1.386])
    >>> round(scores.total([(), (0,)]), 3)
    -4.852
    """

    def __init__(
        self,
        data: Data | Statistics | ExpectedStatistics,
        variables: Sequence[Variable],
        score: Any,
        *,
        threads: int | None = None,
        memory_limit: float | None = None,
        watch: Callable[[], None] = lambda: None,
    ) -> None:
        self.variables = tuple(sorted(variables, key=lambda v: v.name))
        self.names = tuple(v.name for v in self.variables)
        self.score = score
        self.source: Source = _source(data, self.variables, score, threads, memory_limit)
        self.source.watch = watch

    @property
    def n(self) -> int:
        return len(self.variables)

    @property
    def weight(self) -> float:
        """The number of rows, or their weight."""
        return self.source.weight

    def families(self, families: Iterable[Family]) -> Array:
        """The scores of these families; those not yet known are computed in one batch."""
        return self.source.families(families)

    def family(self, child: int, parents: Parents) -> float:
        """The score of one family."""
        return float(self.families([(child, parents)])[0])

    def toggles(self, child: int, parents: Parents, candidates: Sequence[int] | None = None) -> Array:
        """The child's score with each variable put in or taken out of its parents; NaN for the child, and for no candidates."""
        chosen = [i for i in (range(self.n) if candidates is None else candidates) if i != child]
        result = np.full(self.n, np.nan)
        result[chosen] = self.source.toggles(child, parents, chosen)
        return result

    def pairs(self) -> tuple[Array, Array]:
        """The score of each variable alone, and [child, parent] of each with one parent."""
        return self.source.pairs()

    def parent_sets(self, rules: Rules, *, prune: bool = True) -> ParentSets:
        """All parent sets that the rules allow; with `prune`, those that are better than each of their subsets."""
        return self.source.parent_sets(rules, prune=prune)

    def total(self, parents: Sequence[Parents]) -> float:
        """The score of a graph."""
        return float(self.families(enumerate(parents)).sum())

    @property
    def most_families(self) -> float:
        """How many families are scored within some seconds."""
        return self.source.most_families

    def tie(self, score: float) -> float:
        """The difference below which gains at this score are equal."""
        return TIE * (1.0 + abs(score))


def _source(
    data: Data | Statistics | ExpectedStatistics,
    variables: tuple[Variable, ...],
    score: Any,
    threads: int | None,
    memory_limit: float | None,
) -> Source:
    """The fastest source that can answer."""
    form = _form(score, data.weight)
    finite = [v for v in variables if isinstance(v, Finite) and v.n_states < 2**16]
    if isinstance(data, Data) and len(finite) == len(variables) and form is not None:
        if not data.weighted or data.whole_weights:
            return FiniteSource(data, variables, score, form, threads, memory_limit)
        return ExpectedSource(data, variables, score, form, threads)
    if hasattr(data, "tables") and form is not None:
        return ExpectedSource(data, variables, score, form, threads)
    if all(isinstance(v, Real) for v in variables) and _gaussian(score):
        return GaussianSource(data, variables, score, threads)  # type: ignore[arg-type]
    return FamiliesSource(data, variables, score, threads)


def _form(score: Any, weight: float) -> tuple[int, float, float] | None:
    """A score of tables as the kernels know it: kind, imagined rows, price of a parameter; None for any other."""
    if type(score) in (LogLikelihood, AIC, BIC):
        return 0, 0.0, score.price(weight)
    prior: Any = score.prior if type(score) is Evidence else None
    if type(prior) is BDeu:
        return 1, float(prior.ess), 0.0
    if type(prior) in (Dirichlet, K2):
        return 2, 1.0 if type(prior) is K2 else float(prior.alpha), 0.0
    if type(prior) is BDs:
        return 3, float(prior.ess), 0.0
    return None


def _gaussian(score: Any) -> bool:
    """Whether the score of real variables is a function of one matrix."""
    return type(score) in (LogLikelihood, AIC, BIC) or (type(score) is Evidence and type(score.prior) is NormalWishart)
