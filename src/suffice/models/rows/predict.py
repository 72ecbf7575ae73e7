"""Prediction: p(target | the other cells) of many rows, whatever is missing in each.

Columns of the network that the rows lack are not observed, nor are missing cells; other columns are not looked at, and
neither is the target's own. A row of which nothing is observed has the target's marginal distribution. A row whose cells
cannot occur together under the network has none: NaN, and one note says how many such rows there are.

Intervals are what the uncertainty of the parameters makes of an answer, each row asked as `query(..., interval=)` asks. Rows
whose cells differ only in what the answer does not depend on are asked once, and equal rows have equal intervals, in whatever
order and blocks they come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from suffice.engines.data import Data
from suffice.engines.engine import Block
from suffice.engines.scan import maps_frames, rows_of
from suffice.engines.sequences.gaps import REFUSE, Missing, Refuse, checked_unknown
from suffice.errors import ModelError, checked_level, listing, whole
from suffice.errors.remedies import DRAWN_ROWS
from suffice.incomplete.rows import RowEvidence, best
from suffice.inference.finite.network import NONE, Array
from suffice.inference.sampling.sampling import FEW, LikelihoodWeighting
from suffice.models.parts.closed_forms import NoFormula
from suffice.models.parts.network_parts import NetworkParts
from suffice.models.questions.intervals.intervals import FEWEST, answer_with_interval, check_draws
from suffice.models.questions.question import Observed, Question, one_of_interval_and_method
from suffice.models.rows import spark_frames
from suffice.models.rows.frames import checked_size, column, table
from suffice.models.rows.posteriors import Places, present, row_evidence, tell_impossible
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
    from suffice.models.questions.answers.answers import apart
    from suffice.models.rows.posteriors import MOMENTS

    told = names[:1] if names == MOMENTS else names
    return apart(names, [f"{name}_{end}" for name in told for end in ("lower", "upper")])


def predict_proba(
    bn: NetworkParts,
    rows: Any,
    target: str,
    *,
    method: LikelihoodWeighting | None = None,
    interval: float | None = None,
    draws: int = 1000,
    seed: int = 0,
    unknown: Refuse | Missing = REFUSE,
) -> Any:
    """What `BayesNet.predict_proba` gives.

    >>> from suffice import BayesNet
    >>> x, y = Finite("x", ["no", "yes"]), Finite("y", ["no", "yes"])
    >>> bn = BayesNet("x -> y", {"x": [0.75, 0.25], "y": [[0.9, 0.1], [0.2, 0.8]]}, variables=[x, y])
    >>> predict_proba(bn, {"x": ["yes", None]}, "y")["yes"].round(6)
    array([0.8  , 0.275])
    """
    names = measures(bn, target)
    if maps_frames(rows):
        how = {"method": method, "seed": seed, "unknown": unknown}
        return spark_frames.beside(rows, partial(_probabilities_beside, bn, target, how))
    data = rows_of(rows)
    if interval is None:
        checked_size(data.engine.n_rows, len(names))
        parts = [p.measures for p in predictions(bn, data, target, method=method, seed=seed, unknown=unknown)]
        return table(rows, names, np.concatenate([*parts, np.empty((0, len(names)))]))
    every = [*names, *names_of_ends(names)]
    checked_size(data.engine.n_rows, len(every))
    found = predictions(bn, data, target, method=method, seed=seed, unknown=unknown, interval=interval, draws=draws)
    blocks = [np.hstack([p.measures, p.ends]) for p in found if p.ends is not None]
    return table(rows, every, np.concatenate([*blocks, np.empty((0, len(every)))]))


def _probabilities_beside(bn: NetworkParts, target: str, how: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    found = predict_proba(bn, rows, target, **how)
    finite = isinstance(bn.variables[target], Finite)
    return {f"P({target}={name})" if finite else f"{name} of {target}": found.column(name) for name in found.column_names}


def _prediction_beside(bn: NetworkParts, target: str, how: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    return {f"predicted {target}": predict(bn, rows, target, **how)}


def predict(
    bn: NetworkParts,
    rows: Any,
    target: str,
    *,
    method: LikelihoodWeighting | None = None,
    seed: int = 0,
    unknown: Refuse | Missing = REFUSE,
) -> Any:
    """What `BayesNet.predict` gives: of states that are equally probable the first, and a missing cell for an impossible row.

    >>> from suffice import BayesNet
    >>> x, y = Finite("x", ["no", "yes"]), Finite("y", ["no", "yes"])
    >>> bn = BayesNet("x -> y", {"x": [0.75, 0.25], "y": [[0.9, 0.1], [0.2, 0.8]]}, variables=[x, y])
    >>> predict(bn, {"x": ["yes", None]}, "y")
    array(['yes', 'no'], dtype=object)
    """
    measures(bn, target)
    variable = bn.variables[target]
    if maps_frames(rows):
        how = {"method": method, "seed": seed, "unknown": unknown}
        return spark_frames.beside(rows, partial(_prediction_beside, bn, target, how))
    data = rows_of(rows)
    checked_size(data.engine.n_rows, 1)
    found = predictions(bn, data, target, method=method, seed=seed, unknown=unknown)
    if not isinstance(variable, Finite):
        return column(rows, target, np.concatenate([*(p.measures[:, 0] for p in found), np.empty(0)]))
    codes = [best(p.measures) for p in found]
    return column(rows, target, np.concatenate([*codes, np.empty(0, np.int64)]), variable.states)


def predictions(
    bn: NetworkParts,
    data: Data,
    target: str,
    keep: Sequence[str] = (),
    method: LikelihoodWeighting | None = None,
    seed: int = 0,
    unknown: Refuse | Missing = REFUSE,
    interval: float | None = None,
    draws: int = 1000,
) -> Iterator[Prediction]:
    """The rows, block by block, in their order; no more of them than a few blocks are held at any time."""
    variables = {n: v for n, v in present(bn, data.columns).items() if n != target}
    data = data.with_variables(variables, checked_unknown(unknown)).take(variables)
    step = _step(bn, target, method, seed, keep, interval, draws)
    rows: defaultdict[str, Places] = defaultdict(Places)
    # Rows of which no cell matters must still be counted.
    counted = () if variables else data.engine.names[:1]
    for found in data.map(step, keep=step.keep or counted, what="predicting rows"):
        told = {
            "without formula": np.isnan(found.worth),
            "impossible": np.isnan(found.measures[:, 0]) & (found.worth > 0),
            "lost": found.worth == 0,
            "poor": (found.worth > 0) & (found.worth < FEW),
        }
        for kind, which in told.items():
            rows[kind].add(found.number, np.flatnonzero(which))
        if found.refused is not None:
            fact, lacking, where = found.refused.fact, found.refused.lacking, rows["without formula"].where(data)
            drawing = f"or give {DRAWN_ROWS} for such rows alone"
            raise NoFormula(fact, lacking, f"so it is in {where}: fill in {listing(lacking)}, {drawing}")
        yield found
    tell_impossible(data, rows["impossible"], "there is no prediction (NaN, or a missing cell)")
    step.tell(data, rows["lost"], rows["poor"])


def _step(
    bn: NetworkParts, target: str, method: Any, seed: int, keep: Sequence[str], interval: float | None, draws: int
) -> Predict:
    if interval is None:
        return Predict.of(bn, target, method, seed, keep)
    if method is not None:
        raise one_of_interval_and_method()
    return PredictIntervals.asked(bn, target, interval, draws, whole(seed, "a seed", 0, ModelError), keep)
