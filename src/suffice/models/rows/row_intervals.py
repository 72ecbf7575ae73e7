"""Intervals of predictions: what the uncertainty of the parameters makes of p(target | the other cells), row by row.

Each row is asked as `query(..., interval=)` asks. Rows whose cells differ only in what the answer does not depend on are asked
once, and equal rows have equal intervals, in whatever order and blocks they come.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from suffice.engines.engine import Block
from suffice.families.protocol.family import checked_level
from suffice.incomplete.rows import RowEvidence
from suffice.inference.finite.network import NONE, Array
from suffice.models.parts.network_parts import NetworkParts
from suffice.models.questions.evidence import Observed
from suffice.models.questions.intervals import FEWEST, answer_with_interval, check_draws
from suffice.models.questions.question import Question
from suffice.models.rows.posteriors import row_evidence
from suffice.models.rows.prediction import Predict, Prediction, measures
from suffice.variables import Finite


@dataclass(frozen=True, eq=False)
class PredictIntervals(Predict):
    """The step that finds the posterior of a target in a block of rows with the ends of the intervals of its probabilities.

    >>> from suffice import Dirichlet, fit
    >>> bn = fit("x -> y", {"x": ["a", "b", "b"], "y": ["a", "a", "b"]}, prior=Dirichlet(1))
    >>> step = PredictIntervals.asked(bn, "y", 0.9)
    >>> step.answer(RowEvidence(np.array([[1, -1]]), np.zeros((1, 0)))).ends.round(1)  # lower and upper of each state
    array([[0.1, 0.9, 0.1, 0.9]])
    """

    level: float = 0.95
    draws: int = FEWEST
    known: dict[tuple[Any, ...], Array] = field(default_factory=dict)
    """The answers so far, by the cells that they depend on."""

    @classmethod
    def asked(
        cls, bn: NetworkParts, target: str, level: float, draws: int = FEWEST, seed: int = 0, keep: Any = ()
    ) -> PredictIntervals:
        check_draws(draws, len(measures(bn, target)))
        return cls(bn, target, None, seed, tuple(keep), checked_level(level), draws)

    def __call__(self, block: Block) -> Prediction:
        found = self.answer(row_evidence(self.bn, block))
        return found._replace(number=block.number, kept={n: block.kept[n] for n in self.keep})

    def answer(self, seen: RowEvidence) -> Prediction:
        found = super().answer(seen)
        numbers = np.full((seen.n_rows, 3 if not isinstance(self._variable, Finite) else 3 * self._width), np.nan)
        for i in np.flatnonzero(~np.isnan(found.measures[:, 0])):
            numbers[i] = self._told(seen.codes[i], seen.reals[i])
        if not isinstance(self._variable, Finite):
            return found._replace(measures=np.column_stack([numbers[:, 0], found.measures[:, 1]]), ends=numbers[:, 1:])
        return found._replace(measures=numbers[:, : self._width], ends=numbers[:, self._width :])

    def _told(self, codes: Any, reals: Any) -> Array:
        """The point of each measure, and then its lower and upper end, of one row."""
        values = {int(m): float(reals[m]) for m in np.flatnonzero(~np.isnan(reals))}
        evidence = Observed(codes.astype(np.int64), {}, values, {})
        near = Question.of(self.bn, [self.target], evidence).observed
        key = tuple(sorted(near.items()))
        if key not in self.known:
            self.known[key] = self._asked(near)
        return self.known[key]

    def _asked(self, near: Any) -> Array:
        compiled, given = self.bn.compiled, {n: self._value(n, x) for n, x in near.items()}
        codes = np.array([near.get(n, NONE) for n in compiled.finite], np.int64)
        reals = {compiled.real_index[n]: x for n, x in near.items() if n in compiled.real_index}
        answer = answer_with_interval(
            self.bn, [self.target], Observed(codes, {}, reals, given), self.level, self.draws, self.seed
        )
        if not isinstance(self._variable, Finite):
            return np.array([answer.mean, *answer.mean_interval])
        ends = np.stack(answer.interval, axis=1).reshape(-1)
        return np.concatenate([answer.probs, ends])

    def _value(self, name: str, x: Any) -> Any:
        variable = self.bn.variables[name]
        return variable.states[x] if isinstance(variable, Finite) else x


def names_of_ends(names: tuple[str, ...]) -> list[str]:
    """The names of the columns that have the ends of intervals, of all probabilities or of the mean.

    >>> names_of_ends(("no", "yes")), names_of_ends(("mean", "variance"))
    (['no_lower', 'no_upper', 'yes_lower', 'yes_upper'], ['mean_lower', 'mean_upper'])
    """
    from suffice.models.questions.answers import apart
    from suffice.models.rows.posteriors import MOMENTS

    told = names[:1] if names == MOMENTS else names
    return apart(names, [f"{name}_{end}" for name in told for end in ("lower", "upper")])
