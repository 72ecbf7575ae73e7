"""Answers of chains with weights beyond those of pairs of labels, or with constraints: the steps of `reading` for them, and which
of either answer a question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from suffice.engines.engine import Block
from suffice.inference.finite.network import Array, Ints
from suffice.models.linear_chain.encoding import EncodedBlock
from suffice.models.linear_chain.reading import (
    Best,
    BestLabels,
    DrawLabels,
    LabelProbabilities,
    LabelStep,
    LabelWeights,
    LogProbabilities,
    PairProbabilities,
    in_rows,
    in_sequences,
)
from suffice.models.linear_chain.wider_features import InSequence, WiderFeatures, check_bytes


@dataclass(frozen=True, eq=False)
class WiderStep(LabelStep):
    """A step over blocks of sequences that knows the weights."""

    @property
    def features(self) -> WiderFeatures:
        features = self.model.features
        assert isinstance(features, WiderFeatures)
        return features

    def log_z(self, block: EncodedBlock, *, clamped: bool = False) -> Array:
        """log Z of each sequence, in the order of the layout."""
        return self.features.expect(self.model.weights, block, clamped=clamped).log_z[block.layout.sequences]


class WiderProbabilities(WiderStep):
    """p(label | all else) of each step of a block (steps × labels)."""

    def __call__(self, block: Block) -> Array:
        own = self.encoded(block)
        return np.asarray(in_rows(own, self.features.expect(self.model.weights, own).steps))


class WiderPairProbabilities(WiderStep):
    """p(label before = i, label = j | all else) of each step of a block; NaN for the first of a sequence."""

    def __call__(self, block: Block) -> Array:
        own = self.encoded(block)
        return np.asarray(in_rows(own, self.features.expect(self.model.weights, own, by_place=True).by_place))


class WiderLogProbabilities(WiderStep, LogProbabilities):
    """log p(labels that are there | all else) of each sequence; −inf where one of them is not known, or forbidden."""


@dataclass(frozen=True, eq=False)
class WiderBestLabels(WiderStep):
    """The `best` most probable labels of the sequences of a block; with `log_z`, also their log Z."""

    best: int = 1
    with_log_z: bool = False

    def __call__(self, block: Block) -> Best:
        from suffice.kernels.labels.label_sequences import best_sequences

        features, w, own = self.features, self.model.weights, self.encoded(block)
        rows, L = InSequence.of(own), features.n_labels
        weights = features.of_states(w)
        shape = (rows.longest, len(weights.log_m), L, self.best)
        check_bytes(12.0 * np.prod(shape, dtype=float), L, rows.longest, features.order)
        scores, labels = np.empty((len(rows.starts) - 1, self.best)), np.empty((self.best, own.n_steps), np.int32)
        room = (np.empty(shape), np.empty(shape, np.int32), np.empty((L, L)))
        by_attribute = features.of_attributes(w, own)
        best_sequences(*rows, features.scores(w, own, rows), weights.T, weights.log_m, by_attribute, *room, scores, labels)
        found = np.stack([in_rows(own, one) for one in labels])
        return Best(found, scores, in_sequences(own, self.log_z(own)) if self.with_log_z else np.zeros(len(scores)))


@dataclass(frozen=True, eq=False)
class WiderDraws(WiderStep):
    """Labels drawn from p(labels | all else)."""

    seed: int = 0

    def __call__(self, block: Block) -> Ints:
        from suffice.kernels.labels.label_sequences import draw_sequences

        features, w, own = self.features, self.model.weights, self.encoded(block)
        rows, weights = InSequence.of(own), features.of_states(w)
        uniforms = np.random.default_rng([self.seed, block.number]).random(own.n_steps)[own.layout.order]
        labels, logs = np.full(own.n_steps, -1, np.int32), np.empty(len(rows.starts) - 1)
        matrices = (weights.T, weights.log_m, features.of_attributes(w, own), features.room(rows.longest))
        draw_sequences(*rows, features.scores(w, own, rows), *matrices, uniforms, logs, labels)
        return np.asarray(in_rows(own, labels), np.int64)


class AnswerSteps(NamedTuple):
    """Which step gives the best labels, the probabilities of labels and of pairs of them, ln p(labels), and draws."""

    best: Callable[..., Callable[[Block], Best]]
    probabilities: Callable[..., Callable[[Block], Array]]
    pairs: Callable[..., Callable[[Block], Array]]
    log_prob: Callable[..., Callable[[Block], Array]]
    draws: Callable[..., Callable[[Block], Ints]]


PLAIN = AnswerSteps(BestLabels, LabelProbabilities, PairProbabilities, LogProbabilities, DrawLabels)
WIDER = AnswerSteps(WiderBestLabels, WiderProbabilities, WiderPairProbabilities, WiderLogProbabilities, WiderDraws)


def answer_steps(model: LabelWeights) -> AnswerSteps:
    """The steps that answer questions about the labels of a chain."""
    return PLAIN if model.vocabulary.chain.is_plain else WIDER
