"""A conditional random field: labels in a row given all else,

    p(y | x) ∝ exp Σₜ (Σ_a f_a(x, t) w[a, y_t] + T[y_{t−1}, y_t])

(Lafferty, McCallum & Pereira 2001, ICML 18, p. 282).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.blas import one_blas_thread
from suffice.basis.output.display import text_table
from suffice.errors import DataError, ModelError, listing, note, whole
from suffice.families.protocol.family import frame
from suffice.models.chains.chain_answers import Decoded
from suffice.models.linear_chain.features import PairFeatures
from suffice.models.linear_chain.reading import Evaluation, LabelExplanation, LabelReading, LabelWeights, explain_step
from suffice.models.linear_chain.vocabulary import Vocabulary
from suffice.models.linear_chain.windows import LinearChain
from suffice.models.rows.frames import checked_size, column, new_table, table
from suffice.numerics.inference.finite.network import Array

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike
    from suffice.engines.sequences.sequences import Sequences


class WeightStep(NamedTuple):
    """One iteration: the objective, which is minimised, with its penalty; the log-likelihood (or less the loss) without; at most
    how much the optimum is below the objective, NaN where nothing is known; the weights that are not zero; seconds."""

    objective: float
    log_likelihood: float
    bound: float
    n_active: int
    seconds: float


@dataclass(frozen=True)
class WeightRun:
    """The trace of a fit, and whether it came to its end."""

    trace: tuple[WeightStep, ...]
    converged: bool

    @property
    def n_iterations(self) -> int:
        return max(0, len(self.trace) - 1)

    @property
    def objective(self) -> float:
        """The objective at the end."""
        return self.trace[-1].objective if self.trace else float("nan")

    @property
    def log_likelihood(self) -> float:
        return self.trace[-1].log_likelihood if self.trace else float("nan")

    @property
    def bound(self) -> float:
        """At most how much the optimum is below the objective."""
        return self.trace[-1].bound if self.trace else float("nan")

    def in_words(self, spent: str = "") -> str:
        """How it ended, in a line; without what was spent, the same fit has the same words, as a file keeps them."""
        how = "converged" if self.converged else "did not converge"
        certain = f", at most {self.bound:.2g} above the optimum" if self.bound == self.bound else ""
        return f"{how} in {self.n_iterations:,} iterations{spent}: objective {self.objective:,.4f}{certain}"

    def headline(self) -> str:
        """How it ended, and in how many seconds."""
        return self.in_words(f", {self.trace[-1].seconds if self.trace else 0.0:.2f} s")

    def __repr__(self) -> str:
        return f"WeightRun {self.headline()}"


class Crf:
    """Weights of a linear chain of labels. `fit(LinearChain(...), sequences)` makes one; it does not change.

    >>> import suffice as sf
    >>> rows = {"s": [1, 1, 2, 2], "word": ["the", "cat", "a", "dog"], "tag": ["D", "N", "D", "N"]}
    >>> crf = sf.fit(sf.LinearChain("tag", [sf.Window(["word"])]), sf.sequences(rows, by="s"), penalty=sf.L2(0.1))
    >>> crf.predict(sf.sequences({"word": ["a", "cat"]}))
    array(['D', 'N'], dtype=object)
    """

    file_kind = "crf"

    def __init__(
        self, vocabulary: Vocabulary, features: PairFeatures, weights: Array, *, fit_info: str = "", run: WeightRun | None = None
    ) -> None:
        values = np.array(weights, np.float64)
        if values.shape != (features.n,) or not np.isfinite(values).all():
            raise ModelError(f"this chain has {features.n:,} weights, and {values.size:,} were given, or some are not finite")
        values.flags.writeable = False
        self._model, self._fit_info, self._run = LabelWeights(vocabulary, features, values), fit_info, run

    @property
    def linear_chain(self) -> LinearChain:
        """What labels depend on."""
        return self._model.vocabulary.chain

    @property
    def label(self) -> str:
        """The column of labels."""
        return self.linear_chain.label

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that it knows."""
        return self._model.vocabulary.labels

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that it knows."""
        return tuple(dict.fromkeys(self._model.vocabulary.names))

    @property
    def vocabulary(self) -> Vocabulary:
        return self._model.vocabulary

    @property
    def features(self) -> PairFeatures:
        """Which pairs have a weight."""
        return self._model.features

    @property
    def n_weights(self) -> int:
        return self._model.features.n

    @property
    def weight_vector(self) -> Array:
        """The weights: of attributes and labels, of labels that follow each other, of these by attribute, of three in a row."""
        return self._model.weights

    @property
    def transitions(self) -> Array:
        """The weight of each label (column) after each other (row); 0 where there is none, −inf where it is forbidden."""
        return self.features.transitions(self.weight_vector)

    @property
    def fit_info(self) -> str:
        """How it came about, in a sentence."""
        return self._fit_info

    @property
    def run(self) -> WeightRun | None:
        """The trace of the fit; None of a model that was read."""
        return self._run

    @property
    def weights(self) -> Any:
        """A frame of all weights that are not zero: attribute, label, weight, the largest first."""
        w = self._model.weights
        order = np.argsort(-np.abs(w), kind="stable")
        order = order[w[order] != 0.0]
        named = self.features.names_of(self.vocabulary, order)
        return frame({"attribute": [what for what, _ in named], "label": [label for _, label in named], "weight": w[order]})

    @one_blas_thread
    def predict(self, sequences: Sequences | RowsLike) -> Any:
        """The most probable labels of each sequence as a whole: a column, of the kind of the input, in the order of its rows."""
        reading = LabelReading.of(self._model, sequences)
        reading.tell_unknown()
        return self._column(reading, self._best(reading))

    def _column(self, reading: LabelReading, codes: npt.NDArray[Any]) -> Any:
        return column(reading.sequences.source, self.label, reading.sequences.in_order(codes), self.labels)

    def _best(self, reading: LabelReading) -> npt.NDArray[np.int32]:
        return np.concatenate([part.labels[0] for part in reading.map(reading.best, "finding best labels")])

    @one_blas_thread
    def predict_proba(self, sequences: Sequences | RowsLike) -> Any:
        """p(label | all else) at each step: a frame with a column for each label, in the order of the rows."""
        reading = LabelReading.of(self._model, sequences)
        reading.tell_unknown()
        checked_size(reading.sequences.n_steps, len(self.labels))
        probs = np.concatenate(list(reading.map(reading.probabilities, "finding probabilities")))
        return table(reading.sequences.source, list(self.labels), reading.sequences.in_order(probs.T).T)

    @one_blas_thread
    def pairs(self, sequences: Sequences | RowsLike) -> Array:
        """p(label before, label | all else) at each row (rows × labels × labels); NaN at the first step of a sequence."""
        reading = LabelReading.of(self._model, sequences)
        checked_size(reading.sequences.n_steps, len(self.labels) ** 2)
        probs = np.concatenate(list(reading.map(reading.pair_probabilities, "finding probabilities")))
        return np.moveaxis(reading.sequences.in_order(np.moveaxis(probs, 0, -1)), -1, 0)

    @one_blas_thread
    def log_prob(self, sequences: Sequences | RowsLike) -> Array:
        """ln p(labels | all else) of each sequence; where labels are missing, of those that are there."""
        reading = LabelReading.of(self._model, sequences, labels=True)
        self._tell_strange(reading)
        return np.concatenate(list(reading.map(reading.log_prob, "finding probabilities")))

    def log_likelihood(self, sequences: Sequences | RowsLike) -> float:
        """Σ ln p(labels | all else)."""
        return float(self.log_prob(sequences).sum())

    @one_blas_thread
    def most_probable(self, sequences: Sequences | RowsLike, k: int = 5) -> tuple[Decoded, ...]:
        """The k most probable labellings of each sequence, the best first, each with its ln p(labels | all else)."""
        n = whole(k, "the number of labellings", 1)
        reading = LabelReading.of(self._model, sequences)
        parts = list(reading.map(partial(reading.best, n=n, log_z=True), "finding best labels"))
        labels = np.concatenate([p.labels for p in parts], axis=1)
        logs = np.concatenate([p.scores - p.log_z[:, None] for p in parts])
        frames = (new_table(reading.sequences.source, {self.label: self._column(reading, codes)}) for codes in labels)
        return tuple(map(Decoded, frames, logs.T))

    @one_blas_thread
    def sample(self, sequences: Sequences | RowsLike, seed: int = 0) -> Any:
        """Labels drawn from p(labels | all else): a column, in the order of the rows."""
        reading = LabelReading.of(self._model, sequences)
        step = partial(reading.draw, seed=whole(seed, "a seed", 0))
        return self._column(reading, np.concatenate(list(reading.map(step, "drawing labels"))))

    @one_blas_thread
    def evaluate(self, sequences: Sequences | RowsLike) -> Evaluation:
        """How many labels are found, with precision and recall of each, and F1 of entities if labels are BIO."""
        reading = LabelReading.of(self._model, sequences, labels=True)
        if not reading.sequences.missing[self.label] < reading.sequences.n_rows:
            raise DataError(f"every cell of the label {self.label!r} is missing: there is nothing to compare with")
        labels = (*self.labels, *self._tell_strange(reading))
        tables = reading.tables.with_labels(labels, reading.sequences.schema)
        true = np.concatenate(list(reading.map(replace(reading, tables=tables).labels, "reading labels")))
        found = self._best(reading).astype(np.int64)
        return Evaluation.of(true.astype(np.int64), found, reading.sequences.lengths, labels, len(self.labels))

    def _tell_strange(self, reading: LabelReading) -> list[str]:
        """Labels of the data that the chain does not know: a note says so."""
        strange = [s for s in getattr(reading.sequences.schema[self.label], "states", ()) if s not in self.labels]
        if strange:
            note(f"the chain does not know the label{'s' if len(strange) > 1 else ''} {listing(strange)}: it never predicts it")
        return strange

    @one_blas_thread
    def explain(self, sequences: Sequences | RowsLike, row: int) -> LabelExplanation:
        """What each attribute and neighbour of a row, counted from 0, adds to the score of its label and of the next best."""
        reading = LabelReading.of(self._model, sequences)
        at = np.flatnonzero(reading.sequences.position == whole(row, "the row", 0))
        if not len(at):
            raise DataError(f"there is no row {row:,}: there are {reading.sequences.n_steps:,}, counted from 0")
        return explain_step(reading, int(at[0]), row)

    def __eq__(self, other: object) -> bool:
        """Same linear chain, same labels and attributes, same weights of the same pairs."""
        if not isinstance(other, Crf):
            return NotImplemented
        mine, theirs = ((c.linear_chain, c.labels, c.vocabulary.values) for c in (self, other))
        same = mine == theirs and self.features.same(other.features)
        return same and np.array_equal(self.weight_vector, other.weight_vector)

    __hash__ = None  # type: ignore[assignment]

    def _headline(self) -> str:
        active = int(np.count_nonzero(self.weight_vector))
        several = f"{len(self.labels)} label{'s' if len(self.labels) > 1 else ''}"
        about = f"{several}, {len(self.attributes):,} attributes, {self.n_weights:,} weights"
        return f"Crf of {self.label!r}: {about}, {active:,} of them not zero"

    def __repr__(self) -> str:
        order = np.argsort(-np.abs(self.weight_vector), kind="stable")[:10]
        named = self.features.names_of(self.vocabulary, order)
        rows = [[*what, float(self.weight_vector[k])] for what, k in zip(named, order.tolist(), strict=True)]
        info = f"\n{self.fit_info}" if self.fit_info else ""
        return f"{self._headline()}{info}\n\n{text_table(['attribute', 'label', 'weight'], rows)}"
