"""Which steps answer questions about the labels of a chain: those of plain pairs of labels, or the wider ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from suffice.engines.engine import Block
from suffice.inference.finite.network import Array, Ints
from suffice.models.linear_chain.reading import (
    Best,
    BestLabels,
    DrawLabels,
    LabelProbabilities,
    LabelWeights,
    LogProbabilities,
    PairProbabilities,
)
from suffice.models.linear_chain.wider_reading import (
    WiderBestLabels,
    WiderDraws,
    WiderLogProbabilities,
    WiderPairProbabilities,
    WiderProbabilities,
)


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
