"""Prediction: p(target | the other cells) of many rows, whatever is missing in each.

Columns of the network that the rows lack are not observed, nor are missing cells; other columns are not looked at, and
neither is the target's own. A row of which nothing is observed has the target's marginal distribution.

A row may leave an integral without a formula. Whether it does depends on which of its cells are there, not on what they hold: one
row of each kind tells. Such rows may be answered by likelihood weighting, with draws that are seeded by a row's own cells.
Intervals are what the uncertainty of the parameters makes of an answer, each row asked as `query(..., interval=)` asks; rows
whose cells differ only in what the answer does not depend on are asked once. Equal rows have equal answers, in whatever order
and blocks they come.
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

from suffice.basis.variables import Finite, Variable
from suffice.engines.data import Data
from suffice.engines.engine import Block
from suffice.engines.scan import maps_frames, rows_of
from suffice.engines.sequences.arrangement import REFUSE, Missing, Refuse, checked_unknown
from suffice.errors import ModelError, TooLarge, checked_level, listing, nearest, note, quantity, whole
from suffice.errors.remedies import DRAWN_ROWS
from suffice.incomplete.rows import RowEvidence, best
from suffice.models.parts.closed_forms import NoFormula
from suffice.models.parts.network_parts import NetworkParts
from suffice.models.questions.answering import PredictOptions
from suffice.models.questions.intervals import FEWEST, answer_with_interval, check_draws
from suffice.models.questions.question import Observed, Question, evidence_codes, one_of_interval_and_method
from suffice.models.questions.sampling import draw_in_blocks, is_possible
from suffice.models.rows import posteriors
from suffice.models.rows.frames import beside, checked_size, column, table
from suffice.models.rows.posteriors import MOMENTS, Places, row_posterior
from suffice.numerics.inference.finite.network import NONE, Array
from suffice.numerics.inference.sampling.sampling import FEW, LikelihoodWeighting, Weighted
from suffice.statistics.counts import equal_lines


class Prediction(NamedTuple):
    """The posterior of a target in each of some rows (`measures`), and how many independent draws it is worth: without end where
    it is exact, 0 where no draw has met the row's cells, NaN, without draws, where there is no formula; why that is in the first
    of such rows says `refused`. `kept` are columns as they came."""

    measures: Array
    worth: Array
    refused: NoFormula | None = None
    number: int = 0
    kept: Mapping[str, Any] = MappingProxyType({})
    ends: Array | None = None
    """The lower and the upper end of the interval of each probability, or of the mean, where they are asked for."""


def measures(bn: NetworkParts, target: Any) -> tuple[str, ...]:
    """What a target's posterior is told by: its states, or its mean and variance."""
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
    """The step that finds the posterior of a target in a block of rows: exact, or by n draws where it has no formula; with a
    level the ends of the intervals of its probabilities, too."""

    bn: NetworkParts
    target: str
    n: int | None
    seed: int
    keep: tuple[str, ...]
    level: float | None = None
    draws: int = FEWEST
    known: dict[tuple[Any, ...], Array] = field(default_factory=dict)
    """The answers with intervals so far, by the cells that they depend on."""

    def __call__(self, block: Block) -> Prediction:
        found = self.answer(posteriors.row_evidence(self.bn, block))
        return found._replace(number=block.number, kept={n: block.kept[n] for n in self.keep})

    def answer(self, seen: RowEvidence) -> Prediction:
        """A line per row."""
        found = self._points(seen)
        if self.level is None:
            return found
        finite = isinstance(self._variable, Finite)
        numbers = np.full((len(seen.codes), 3 * self._width if finite else 3), np.nan)
        for i in np.flatnonzero(~np.isnan(found.measures[:, 0])):
            numbers[i] = self._measures_of_row(seen.codes[i], seen.reals[i], self.level)
        if not finite:
            return found._replace(measures=np.column_stack([numbers[:, 0], found.measures[:, 1]]), ends=numbers[:, 1:])
        return found._replace(measures=numbers[:, : self._width], ends=numbers[:, self._width :])

    def _measures_of_row(self, codes: Any, reals: Any, level: float) -> Array:
        """The point of each measure, and then its lower and upper end, of one row."""
        values = {int(m): float(reals[m]) for m in np.flatnonzero(~np.isnan(reals))}
        near = Question.of(self.bn, [self.target], Observed(codes.astype(np.int64), {}, values, {})).observed
        key = tuple(sorted(near.items()))
        if key not in self.known:
            compiled = self.bn.compiled
            given = {n: compiled.variables[n].states[x] if n in compiled.index else x for n, x in near.items()}
            answer = answer_with_interval(self.bn, [self.target], evidence_codes(self.bn, given), level, self.draws, self.seed)
            finite = isinstance(self._variable, Finite)
            point, ends = (answer.probs, np.stack(answer.interval, axis=1)) if finite else (answer.mean, answer.mean_interval)
            self.known[key] = np.concatenate([np.ravel(point), np.ravel(ends)])
        return self.known[key]

    def _points(self, seen: RowEvidence) -> Prediction:
        """Exact where it can be, NaN where a row is impossible."""
        worth = np.full(len(seen.codes), np.inf)
        try:
            return Prediction(row_posterior(self.bn, self.target, seen), worth)
        except (NoFormula, TooLarge) as error:
            if self.n is None and isinstance(error, TooLarge):
                raise
        result, refused = np.full((len(seen.codes), self._width), np.nan), {}
        shown = np.concatenate([seen.codes != NONE, ~np.isnan(seen.reals)], axis=1)
        for same in equal_lines(shown):  # rows that show the same columns
            own = seen.take(same)
            try:
                result[same] = row_posterior(self.bn, self.target, own)
            except (NoFormula, TooLarge) as error:
                if self.n is not None:
                    result[same], worth[same] = self._sample_answers(own, self.n)
                elif isinstance(error, TooLarge):
                    raise
                else:
                    try:
                        result[same] = posteriors.row_integrals(self.bn, own, error, self.target).posterior(self.target)
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
        numbers = np.where(np.isnan(seen.reals), np.nan, seen.reals + 0.0).astype("<f8")  # −0 is 0, and there is one NaN
        keys = [codes.tobytes() + own.tobytes() for codes, own in zip(seen.codes.astype("<i4"), numbers, strict=True)]
        place = {key: i for i, key in enumerate(keys)}
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            rows = (seen.take(np.array([i])) for i in place.values())
            found = dict(zip(place, pool.map(self._answer, rows, place, repeat(n)), strict=True))
        return np.array([found[key][0] for key in keys]), np.array([found[key][1] for key in keys])

    def _answer(self, row: RowEvidence, key: bytes, n: int) -> tuple[Array, float]:
        """The answer of one row and how many independent draws it is worth: none have met its cells if that is 0."""
        numbers = {int(m): float(row.reals[0, m]) for m in np.flatnonzero(~np.isnan(row.reals[0]))}
        evidence = Observed(row.codes[0].astype(np.int64), {}, numbers, {})
        nothing, question = np.full(self._width, np.nan), Question.of(self.bn, [self.target], evidence)
        if not is_possible(self.bn, evidence):
            return nothing, np.inf
        values = np.empty((n, self._width if isinstance(self._variable, Finite) else 1))

        def keep(part: slice, columns: dict[str, Any]) -> None:
            values[part] = self._average(question, columns, part.stop - part.start)

        seeds = np.random.SeedSequence([self.seed, *np.frombuffer(key, np.uint32).tolist()])
        log_weights = draw_in_blocks(question, n, seeds, keep, alone=False)
        if log_weights.max() == -np.inf:
            return nothing, 0.0
        drawn = Weighted(log_weights)
        mean = drawn.weights @ values
        if isinstance(self._variable, Finite):
            return np.asarray(mean / mean.sum()), drawn.effective_sample_size
        return np.array([mean[0], drawn.weights @ (values[:, 0] - mean[0]) ** 2]), drawn.effective_sample_size

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


def predict_proba(
    bn: NetworkParts, rows: Any, target: str, *, interval: float | None = None, draws: int = 1000, **how: Unpack[PredictOptions]
) -> Any:
    """What `BayesNet.predict_proba` gives."""
    from suffice.models.questions.answers import apart

    names = measures(bn, target)
    if maps_frames(rows):
        words = "P({1}={0})" if isinstance(bn.variables[target], Finite) else "{0} of {1}"
        return beside(rows, partial(predict_proba, bn, target=target, **how), {n: words.format(n, target) for n in names})
    told = () if interval is None else names[:1] if names == MOMENTS else names
    every = [*names, *apart(names, [f"{name}_{end}" for name in told for end in ("lower", "upper")])]
    data = rows_of(rows)
    checked_size(data.engine.n_rows, len(every))
    found = predictions(bn, data, target, interval=interval, draws=draws, **how)
    blocks = [p.measures if p.ends is None else np.hstack([p.measures, p.ends]) for p in found]
    return table(rows, every, np.concatenate([*blocks, np.empty((0, len(every)))]))


def predict(bn: NetworkParts, rows: Any, target: str, **how: Unpack[PredictOptions]) -> Any:
    """What `BayesNet.predict` gives: of states that are equally probable the first, and a missing cell for an impossible row."""
    measures(bn, target)
    variable = bn.variables[target]
    if maps_frames(rows):
        return beside(rows, partial(predict, bn, target=target, **how), f"predicted {target}")
    data = rows_of(rows)
    checked_size(data.engine.n_rows, 1)
    found = predictions(bn, data, target, **how)
    if not isinstance(variable, Finite):
        return column(rows, target, np.concatenate([*(p.measures[:, 0] for p in found), np.empty(0)]))
    return column(rows, target, np.concatenate([*(best(p.measures) for p in found), np.empty(0, np.int64)]), variable.states)


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
    variables = {n: v for n, v in posteriors.present(bn, data.columns).items() if n != target}
    data = data.with_variables(variables, checked_unknown(unknown)).select(variables)
    if method is not None and interval is not None:
        raise one_of_interval_and_method()
    if method is not None and not isinstance(method, LikelihoodWeighting):
        raise ModelError(f"rows are answered exactly, without a method, or by LikelihoodWeighting(...); not by {method!r}")
    seed = 0 if method is None and interval is None else whole(seed, "a seed", 0, ModelError)
    if interval is not None:
        check_draws(draws, len(measures(bn, target)))
    level = None if interval is None else checked_level(interval)
    step = Predict(bn, target, None if method is None else method.n, seed, tuple(keep), level, draws)
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
        posteriors.tell_impossible(data, rows["impossible"], "there is no prediction (NaN, or a missing cell)")
        step.tell(data, rows["lost"], rows["poor"])
