"""Prediction: p(target | the other cells) of many rows, whatever is missing in each.

Columns of the network that the rows lack are not observed, nor are missing cells; other columns are not looked at, and
neither is the target's own. A row of which nothing is observed has the target's marginal distribution. A row whose cells
cannot occur together under the network has none: NaN, and one note says how many such rows there are.

A row may leave an integral without a formula. Whether it does depends on which of its cells are there, not on what they hold: one
row of each kind tells. Such rows may be answered by likelihood weighting. The draws of a row are seeded by its own cells, so that
equal rows have equal answers, in whatever order and blocks they come.

Intervals are what the uncertainty of the parameters makes of an answer, each row asked as `query(..., interval=)` asks. Rows
whose cells differ only in what the answer does not depend on are asked once, and equal rows have equal intervals, in whatever
order and blocks they come.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.engine import Block
from suffice.engines.scan import maps_frames, rows_of
from suffice.engines.sequences.arrangement import REFUSE, Missing, Refuse, checked_unknown
from suffice.errors import ModelError, TooLarge, checked_level, listing, nearest, note, quantity, whole
from suffice.errors.remedies import DRAWN_ROWS
from suffice.incomplete.rows import RowEvidence, best
from suffice.inference.finite.network import NONE, Array
from suffice.inference.sampling.sampling import FEW, LikelihoodWeighting, Weighted
from suffice.models.parts.closed_forms import NoFormula
from suffice.models.parts.network_parts import NetworkParts
from suffice.models.parts.options import PredictOptions
from suffice.models.questions.intervals.intervals import FEWEST, answer_with_interval, check_draws
from suffice.models.questions.question import Observed, Question, one_of_interval_and_method
from suffice.models.questions.sampling import BLOCK, drawn_forward, is_possible
from suffice.models.rows.frames import beside, checked_size, column, table
from suffice.models.rows.integrals import integrated_posterior
from suffice.models.rows.posteriors import MOMENTS, Places, present, row_evidence, row_posterior, tell_impossible
from suffice.statistics.counts import alike
from suffice.variables import Finite, Variable


class Prediction(NamedTuple):
    """The posterior of a target in each of some rows (`measures`), and how many independent draws it is worth.

    That is without end where it is exact, and 0 where no draw has met the row's cells. Without draws it is NaN where there is no
    formula; why that is in the first of such rows says `refused`. `kept` are columns as they came.
    """

    measures: Array
    worth: Array
    refused: NoFormula | None = None
    number: int = 0
    kept: Mapping[str, Any] = MappingProxyType({})
    ends: Array | None = None
    """The lower and the upper end of the interval of each probability, or of the mean, where they are asked for."""


def measures(bn: NetworkParts, target: Any) -> tuple[str, ...]:
    """What a target's posterior is told by: its states, or its mean and variance.

    >>> from suffice import BayesNet
    >>> measures(BayesNet("x", {"x": [0.25, 0.75]}, variables=[Finite("x", ["a", "b"])]), "x")
    ('a', 'b')
    """
    if not isinstance(target, str):
        raise ModelError(f"one target is predicted at a time, given by its name; not {target!r}")
    if target not in bn:
        raise ModelError(f"the network has no node {target!r}{nearest(target, bn)}")
    variable = bn.variables[target]
    return variable.states if isinstance(variable, Finite) else MOMENTS


FEW_STATES = 32
"""Of a target with more states the draws are counted; else the probabilities of its states are averaged, which is surer."""


@dataclass(frozen=True, eq=False)
class Predict:
    """The step that finds the posterior of a target in a block of rows: exact, or by n draws where it has no formula.

    >>> from suffice import BayesNet, Gaussian, Logistic, Real
    >>> from suffice.results import RegressionCpd
    >>> y, x = Finite("y", ["no", "yes"]), Real("x")
    >>> bn = BayesNet("x -> y", {"x": Gaussian(), "y": RegressionCpd(y, (x,), Logistic(), [0.0], [[1.0]])}, [x, y])
    >>> Predict.of(bn, "y").answer(RowEvidence(np.array([[-1], [-1]]), np.array([[0.0], [np.nan]]))).worth
    array([inf, inf])
    """

    bn: NetworkParts
    target: str
    n: int | None
    seed: int
    keep: tuple[str, ...]

    @classmethod
    def of(
        cls, bn: NetworkParts, target: str, method: LikelihoodWeighting | None = None, seed: int = 0, keep: Sequence[str] = ()
    ) -> Predict:
        if method is None:
            return cls(bn, target, None, 0, tuple(keep))
        if not isinstance(method, LikelihoodWeighting):
            raise ModelError(f"rows are answered exactly, without a method, or by LikelihoodWeighting(...); not by {method!r}")
        return cls(bn, target, method.n, whole(seed, "a seed", 0, ModelError), tuple(keep))

    def __call__(self, block: Block) -> Prediction:
        found = self.answer(row_evidence(self.bn, block))
        return found._replace(number=block.number, kept={n: block.kept[n] for n in self.keep})

    def answer(self, seen: RowEvidence) -> Prediction:
        """A line per row, exact where it can be, NaN where a row is impossible."""
        worth = np.full(len(seen.codes), np.inf)
        try:
            return Prediction(row_posterior(self.bn, self.target, seen), worth)
        except (NoFormula, TooLarge) as error:
            if self.n is None and isinstance(error, TooLarge):
                raise
        result, refused = np.full((len(seen.codes), self._width), np.nan), {}
        for same in alike(np.concatenate([seen.codes != NONE, ~np.isnan(seen.reals)], axis=1)):  # rows that show the same columns
            try:
                result[same] = row_posterior(self.bn, self.target, seen.take(same))
            except (NoFormula, TooLarge) as error:
                if self.n is not None:
                    result[same], worth[same] = self._sample_answers(seen.take(same), self.n)
                elif isinstance(error, TooLarge):
                    raise
                else:
                    try:
                        result[same] = integrated_posterior(self.bn, self.target, seen.take(same), error)
                    except NoFormula:
                        worth[same], refused[int(same[0])] = np.nan, error
        return Prediction(result, worth, refused[min(refused)] if refused else None)

    def tell(self, data: Data, lost: Places, poor: Places) -> None:
        """Say how many rows the draws told badly, if there were any."""
        n = self.n or 0
        more = f"draw more, LikelihoodWeighting({10 * n})"
        if lost.n:
            note(
                f"none of {n:,} draws met the cells of {quantity(lost.n, 'row')}, impossible or very improbable ones: "
                f"there is no prediction (NaN, or a missing cell); {more}"
            )
        if poor.n:
            first = data.place(*poor.first)
            note(f"the draws for {quantity(poor.n, 'row')}, first {first}, are worth fewer than {FEW} independent ones: {more}")

    @property
    def _variable(self) -> Variable:
        return self.bn.variables[self.target]

    @property
    def _width(self) -> int:
        return len(measures(self.bn, self.target))

    def _sample_answers(self, seen: RowEvidence, n: int) -> tuple[Array, Array]:
        """The answers, and how many independent draws each is worth. Equal rows once."""
        keys = [_key(codes, reals) for codes, reals in zip(seen.codes, seen.reals, strict=True)]
        place = {key: i for i, key in enumerate(keys)}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            rows = (seen.take(np.array([i])) for i in place.values())
            each = pool.map(self._answer, rows, place, repeat(n))
            found = dict(zip(place, each, strict=True))
        return np.array([found[key][0] for key in keys]), np.array([found[key][1] for key in keys])

    def _answer(self, row: RowEvidence, key: bytes, n: int) -> tuple[Array, float]:
        """The answer of one row and how many independent draws it is worth: none have met its cells if that is 0."""
        numbers = {int(m): float(row.reals[0, m]) for m in np.flatnonzero(~np.isnan(row.reals[0]))}
        evidence = Observed(row.codes[0].astype(np.int64), {}, numbers, {})
        nothing = np.full(self._width, np.nan)
        if not is_possible(self.bn, evidence):
            return nothing, np.inf
        values, log_weights = self._draws(Question.of(self.bn, [self.target], evidence), key, n)
        if log_weights.max() == -np.inf:
            return nothing, 0.0
        drawn = Weighted(log_weights)
        mean = drawn.weights @ values
        if isinstance(self._variable, Finite):
            return np.asarray(mean / mean.sum()), drawn.effective_sample_size
        return np.array([mean[0], drawn.weights @ (values[:, 0] - mean[0]) ** 2]), drawn.effective_sample_size

    def _draws(self, question: Question, key: bytes, n_draws: int) -> tuple[Array, Array]:
        """For each draw what is averaged, and the logarithm of its weight."""
        starts = range(0, n_draws, BLOCK)
        entropy = np.random.SeedSequence([self.seed, *np.frombuffer(key, np.uint32).tolist()])
        parts = []
        for start, own in zip(starts, entropy.spawn(len(starts)), strict=True):
            n = min(BLOCK, n_draws - start)
            columns, logs = drawn_forward(question, np.random.default_rng(own), n)
            parts.append((self._average(question, columns, n), logs))
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _average(self, question: Question, columns: dict[str, Any], n: int) -> Array:
        """The number of the target, or a column per state: its probability given the parents if nothing below it matters, else 1
        where it was drawn."""
        if not isinstance(self._variable, Finite):
            return np.asarray(columns[self.target], np.float64)[:, None]
        states = range(self._variable.n_states)
        below = any(self.target in self.bn.dag.parents(name) for name in question.nodes)
        if below or len(states) > FEW_STATES:
            return np.asarray(columns[self.target][:, None] == np.array(states), np.float64)
        each = [self.bn[self.target].log_prob(columns | {self.target: np.full(n, k)}) for k in states]
        return np.asarray(np.exp(np.stack(each, axis=1)))


def _key(codes: npt.NDArray[Any], reals: Array) -> bytes:
    """The cells of a row: −0 is 0, and there is one NaN."""
    numbers = np.where(np.isnan(reals), np.nan, reals + 0.0)
    return codes.astype("<i4").tobytes() + numbers.astype("<f8").tobytes()


@dataclass(frozen=True, eq=False)
class PredictIntervals(Predict):
    """The step that finds the posterior of a target in a block of rows with the ends of the intervals of its probabilities.

    >>> from suffice import Dirichlet, fit
    >>> bn = fit("x -> y", {"x": ["a", "b", "b"], "y": ["a", "a", "b"]}, prior=Dirichlet(1))
    >>> step = PredictIntervals.of_question(bn, "y", 0.9)
    >>> step.answer(RowEvidence(np.array([[1, -1]]), np.zeros((1, 0)))).ends.round(1)  # lower and upper of each state
    array([[0.1, 0.9, 0.1, 0.9]])
    """

    level: float = 0.95
    draws: int = FEWEST
    known: dict[tuple[Any, ...], Array] = field(default_factory=dict)
    """The answers so far, by the cells that they depend on."""

    @classmethod
    def of_question(
        cls, bn: NetworkParts, target: str, level: float, draws: int = FEWEST, seed: int = 0, keep: Any = ()
    ) -> PredictIntervals:
        check_draws(draws, len(measures(bn, target)))
        return cls(bn, target, None, seed, tuple(keep), checked_level(level), draws)

    def answer(self, seen: RowEvidence) -> Prediction:
        found = super().answer(seen)
        numbers = np.full((len(seen.codes), 3 if not isinstance(self._variable, Finite) else 3 * self._width), np.nan)
        for i in np.flatnonzero(~np.isnan(found.measures[:, 0])):
            numbers[i] = self._measures_of_row(seen.codes[i], seen.reals[i])
        if not isinstance(self._variable, Finite):
            return found._replace(measures=np.column_stack([numbers[:, 0], found.measures[:, 1]]), ends=numbers[:, 1:])
        return found._replace(measures=numbers[:, : self._width], ends=numbers[:, self._width :])

    def _measures_of_row(self, codes: Any, reals: Any) -> Array:
        """The point of each measure, and then its lower and upper end, of one row."""
        values = {int(m): float(reals[m]) for m in np.flatnonzero(~np.isnan(reals))}
        evidence = Observed(codes.astype(np.int64), {}, values, {})
        near = Question.of(self.bn, [self.target], evidence).observed
        key = tuple(sorted(near.items()))
        if key in self.known:
            return self.known[key]
        compiled = self.bn.compiled
        given = {n: compiled.variables[n].states[x] if n in compiled.index else x for n, x in near.items()}
        codes = np.array([near.get(n, NONE) for n in compiled.finite], np.int64)
        reals = {compiled.real_index[n]: x for n, x in near.items() if n in compiled.real_index}
        answer = answer_with_interval(
            self.bn, [self.target], Observed(codes, {}, reals, given), self.level, self.draws, self.seed
        )
        finite = isinstance(self._variable, Finite)
        point, ends = (answer.probs, np.stack(answer.interval, axis=1)) if finite else (answer.mean, answer.mean_interval)
        self.known[key] = np.concatenate([np.ravel(point), np.ravel(ends)])
        return self.known[key]


def names_of_ends(names: tuple[str, ...]) -> list[str]:
    """The names of the columns that have the ends of intervals, of all probabilities or of the mean.

    >>> names_of_ends(("no", "yes")), names_of_ends(("mean", "variance"))
    (['no_lower', 'no_upper', 'yes_lower', 'yes_upper'], ['mean_lower', 'mean_upper'])
    """
    from suffice.models.questions.answers.answers import apart

    told = names[:1] if names == MOMENTS else names
    return apart(names, [f"{name}_{end}" for name in told for end in ("lower", "upper")])


def predict_proba(
    bn: NetworkParts, rows: Any, target: str, *, interval: float | None = None, draws: int = 1000, **how: Unpack[PredictOptions]
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
        return beside(rows, partial(_probabilities_beside, bn, target, how))
    data = rows_of(rows)
    if interval is None:
        checked_size(data.engine.n_rows, len(names))
        parts = [p.measures for p in predictions(bn, data, target, **how)]
        return table(rows, names, np.concatenate([*parts, np.empty((0, len(names)))]))
    every = [*names, *names_of_ends(names)]
    checked_size(data.engine.n_rows, len(every))
    found = predictions(bn, data, target, interval=interval, draws=draws, **how)
    blocks = [np.hstack([p.measures, p.ends]) for p in found if p.ends is not None]
    return table(rows, every, np.concatenate([*blocks, np.empty((0, len(every)))]))


def _probabilities_beside(bn: NetworkParts, target: str, how: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    found = predict_proba(bn, rows, target, **how)
    finite = isinstance(bn.variables[target], Finite)
    return {f"P({target}={name})" if finite else f"{name} of {target}": found.column(name) for name in found.column_names}


def _prediction_beside(bn: NetworkParts, target: str, how: Mapping[str, Any], rows: Any) -> dict[str, Any]:
    return {f"predicted {target}": predict(bn, rows, target, **how)}


def predict(bn: NetworkParts, rows: Any, target: str, **how: Unpack[PredictOptions]) -> Any:
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
        return beside(rows, partial(_prediction_beside, bn, target, how))
    data = rows_of(rows)
    checked_size(data.engine.n_rows, 1)
    found = predictions(bn, data, target, **how)
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
    if interval is None:
        step = Predict.of(bn, target, method, seed, keep)
    elif method is not None:
        raise one_of_interval_and_method()
    else:
        step = PredictIntervals.of_question(bn, target, interval, draws, whole(seed, "a seed", 0, ModelError), keep)
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
            if which.any():
                rows[kind].add(found.number, np.flatnonzero(which))
        if found.refused is not None:
            fact, lacking, where = found.refused.fact, found.refused.lacking, rows["without formula"].where(data)
            drawing = f"or give {DRAWN_ROWS} for such rows alone"
            raise NoFormula(fact, lacking, f"so it is in {where}: fill in {listing(lacking)}, {drawing}")
        yield found
    if rows:
        tell_impossible(data, rows["impossible"], "there is no prediction (NaN, or a missing cell)")
        step.tell(data, rows["lost"], rows["poor"])
