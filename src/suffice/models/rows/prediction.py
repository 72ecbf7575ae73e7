"""The posterior of one target in each row of a block, exact or by draws.

A row may leave an integral without a formula. Whether it does depends on which of its cells are there, not on what they hold: one
row of each kind tells. Such rows may be answered by likelihood weighting. The draws of a row are seeded by its own cells, so that
equal rows have equal answers, in whatever order and blocks they come.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.engine import Block
from suffice.errors import ModelError, TooLarge, nearest, note, quantity, whole
from suffice.incomplete.rows import RowEvidence
from suffice.inference.finite.network import NONE, Array
from suffice.inference.sampling.sampling import FEW, LikelihoodWeighting, Weighted
from suffice.models.parts.closed_forms import NoFormula
from suffice.models.parts.network_parts import NetworkParts
from suffice.models.questions.question import Observed, Question
from suffice.models.questions.sampling.approximate import BLOCK, drawn_forward, is_possible
from suffice.models.rows.integrals import integrated_posterior
from suffice.models.rows.posteriors import MOMENTS, Places, row_evidence, row_posterior
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
        worth = np.full(seen.n_rows, np.inf)
        try:
            return Prediction(row_posterior(self.bn, self.target, seen), worth)
        except (NoFormula, TooLarge) as error:
            if self.n is None and isinstance(error, TooLarge):
                raise
        result, refused = np.full((seen.n_rows, self._width), np.nan), {}
        for same in alike(np.concatenate([seen.codes != NONE, ~np.isnan(seen.reals)], axis=1)):  # rows that show the same columns
            try:
                result[same] = row_posterior(self.bn, self.target, seen.take(same))
            except (NoFormula, TooLarge) as error:
                if self.n is not None:
                    result[same], worth[same] = self._drawn(seen.take(same), self.n)
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

    def _drawn(self, seen: RowEvidence, n: int) -> tuple[Array, Array]:
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
            parts.append((self._averaged(question, columns, n), logs))
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _averaged(self, question: Question, columns: dict[str, Any], n: int) -> Array:
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
