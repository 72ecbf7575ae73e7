"""Which kind of `ScoreSource` answers fastest for some data, variables and score: each is loaded when it is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from suffice.scores import Evidence, GraphPosterior, Penalised
from suffice.structure.scoring.local_scores import FamilyScores, ScoreSource
from suffice.variables import Real, Variable


class LocalScores(ScoreSource):
    """The scores of families over some data, of the kind that answers fastest. A family that cannot be estimated has −inf.

    `watch` is called between parts of long work; it may raise to stop it. Variables that are `given` may be parents, but are not
    modelled: they score nothing.

    >>> from suffice import scan
    >>> from suffice import BIC
    >>> data = scan({"x": ["a", "b", "a", "b"], "y": ["u", "v", "u", "v"]})
    >>> scores = LocalScores(data, tuple(data.schema.values()), BIC())
    >>> scores.families([(0, ()), (0, (1,))]).round(3)
    array([-3.466, -1.386])
    >>> round(scores.total([(), (0,)]), 3)
    -4.852
    """

    def __new__(cls, data: Any, variables: Sequence[Variable], score: Any, **options: Any) -> ScoreSource:  # type: ignore[misc]
        if not isinstance(score, GraphPosterior):
            return _fastest(data, variables, score)(data, variables, score, **options)
        from suffice.structure.scoring.prior_scores import PriorScores

        return PriorScores(cls, data, variables, score, **options)


def _fastest(data: Any, variables: Sequence[Variable], score: Any) -> type[ScoreSource]:
    from suffice.structure.scoring.distant_scores import fastest_of_tables

    if kind := fastest_of_tables(data, variables, score):
        return kind
    if all(isinstance(v, Real) for v in variables) and _gaussian(score):
        from suffice.structure.scoring.gaussian_scores import GaussianScores

        return GaussianScores
    from suffice.structure.scoring.hybrid_scores import HybridScores

    return HybridScores if HybridScores.serves(data, score) else FamilyScores


def _gaussian(score: Any) -> bool:
    """Whether the score of real variables is a function of one matrix."""
    return isinstance(score, Penalised) or (type(score) is Evidence and score.prior.is_one_matrix)
