"""Weights of a linear chain: which pairs have one, and the scores that weights make of steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.sequences.sequences import Sequences
from suffice.models.linear_chain.encoding import Codes, EncodedBlock
from suffice.models.linear_chain.vocabulary import Vocabulary
from suffice.numerics.inference.chains import conditional
from suffice.numerics.inference.chains.conditional import BestLabelling, ExpectedLabels, GroupScores, SideBySide
from suffice.numerics.inference.chains.finite import best_paths
from suffice.numerics.inference.finite.logs import log_sum
from suffice.numerics.inference.finite.network import Array, Ints

Attributes = list[tuple[int, float]]
"""Attributes by number, with their values."""


class LabelTerms(NamedTuple):
    """Σ w log Z of the sequences of a block, and what is expected of each feature: the gradient of it."""

    log_z: float
    expected: Array


@dataclass(frozen=True, eq=False)
class PairFeatures:
    """Pairs with a weight: attribute a has the weights first[a] … first[a + 1] − 1, of the labels `labels`; then come those of
    labels that follow each other, `before` and `after`. `numbers` are the attributes that are numbers."""

    n_labels: int
    first: Ints
    labels: Codes
    before: Codes
    after: Codes
    numbers: tuple[int, ...] = ()

    @classmethod
    def of(cls, keys: Ints, n_attributes: int, n_labels: int, numbers: tuple[int, ...]) -> PairFeatures:
        """The features of pairs by their numbers, which rise: see `pair_counts`."""
        own, pair = keys[keys < n_attributes * n_labels], keys[keys >= n_attributes * n_labels] - n_attributes * n_labels
        first = np.searchsorted(own, np.arange(n_attributes + 1) * n_labels).astype(np.int64)
        codes = [(x % n_labels).astype(np.int32) for x in (own, pair)]
        return cls(n_labels, first, codes[0], (pair // n_labels).astype(np.int32), codes[1], numbers)

    @property
    def n(self) -> int:
        return len(self.labels) + len(self.before)

    def same(self, other: PairFeatures) -> bool:
        """Whether the same pairs have weights, in chains that are the same."""
        arrays = [f.name for f in fields(self) if isinstance(getattr(self, f.name), np.ndarray)]
        return type(self) is type(other) and all(np.array_equal(getattr(self, n), getattr(other, n)) for n in arrays)

    def transitions(self, w: Array) -> Array:
        """The weight of each label after each other."""
        T = np.zeros((self.n_labels, self.n_labels))
        T[self.before, self.after] = w[len(self.labels) : len(self.labels) + len(self.before)]
        return T

    def expect_terms(self, w: Array, block: EncodedBlock, *, clamped: bool = False, costs: Array | None = None) -> LabelTerms:
        from suffice.numerics.kernels.labels.crf import sum_groups

        n_groups, L, log_z = len(block.attributes.starts) - 1, self.n_labels, 0.0
        by_group, of_numbers, pairs = np.zeros((n_groups, L)), np.zeros((len(self.numbers), L)), np.zeros((L, L))
        for part, found in expectations(self, w, block, self.transitions(w), clamped=clamped, costs=costs):
            steps = found.steps
            if block.weights is None:
                log_z += float(found.logs.sum())
            else:
                weights = block.weights[part.places]
                log_z += float(found.logs @ weights)
                steps *= weights[:, None]
            sum_groups(block.groups, part.begin, steps, by_group)
            of_numbers += block.numbers[part.places].T @ steps
            pairs += found.pairs
        return LabelTerms(log_z, np.concatenate([self.by_weight(block, by_group, of_numbers), pairs[self.before, self.after]]))

    def contributions(
        self, vocabulary: Vocabulary, w: Array, attributes: tuple[Attributes, Attributes], around: tuple[int, ...]
    ) -> dict[str, float]:
        """What each attribute and neighbour of a step adds to the score of its label: the attributes of the step and of the next
        one with their values; two labels before it, its own and two after it, −1 for none."""
        names, labels, name, parts = vocabulary.names, vocabulary.labels, vocabulary.chain.label, dict[str, float]()
        T, (_, before, own, after, _) = self.transitions(w), around
        for a, value in attributes[0]:
            k = slice(self.first[a], self.first[a + 1])
            parts[names[a]] = value * float(w[k][self.labels[k] == own].sum())
        if before >= 0:
            parts[f"{name}[-1]={labels[before]}"] = float(T[before, own])
        if after >= 0:
            parts[f"{name}[+1]={labels[after]}"] = float(T[own, after])
        return parts

    def log_z(self, w: Array, block: EncodedBlock, *, clamped: bool = False) -> Array:
        """log Z of each sequence, in the order of the layout; with `clamped`, given the labels that are there."""
        logs = [np.zeros(0)]
        for part, found in expectations(self, w, block, self.transitions(w), clamped=clamped):
            logs.append(np.asarray(np.bincount(part.ranks, found.logs, int(part.offsets[1])), np.float64))
        return np.concatenate(logs)

    def probabilities(self, w: Array, block: EncodedBlock) -> Array:
        """p(label | all else) of each place (places × labels)."""
        steps = np.empty((block.n_steps, self.n_labels))
        for part, found in expectations(self, w, block, self.transitions(w)):
            steps[part.places] = found.steps
        return steps

    def pair_probabilities(self, w: Array, block: EncodedBlock) -> Array:
        """p(label before = i, label = j | all else) of each place; NaN for the first of a sequence."""
        T, L = self.transitions(w), self.n_labels
        scores, steps = step_scores(self, w, block), np.full((block.n_steps, L, L), np.nan)
        for part in block.layout.parts:
            a, logs = conditional.log_filters(scores[part.places], T, part)
            z, here = np.zeros((part.n, L)), slice(part.begin, part.begin + part.n)
            for begin, end, before in reversed(part.steps):
                v = scores[here][begin:end] + z[begin:end] - logs[begin:end, None]
                joint = T + v[:, None, :]
                z[before : before + end - begin] = log_sum(joint, 2)
                steps[here][begin:end] = np.exp(a[before : before + end - begin, :, None] + joint)
        return steps

    def best(self, w: Array, block: EncodedBlock, lengths: Ints, n: int) -> tuple[Codes, Array]:
        """The n most probable labels of the sequences of a block (rank × row), and their scores (sequence × rank)."""
        T = self.transitions(w)
        if n == 1:
            found = most_probable(self, w, block, T)
            return found.labels[None], put_back(found.scores, block.layout.sequences)[:, None]
        return best_paths(conditional.state_steps(put_back(step_scores(self, w, block), block.layout.order), T, lengths), n)

    def draw(self, w: Array, block: EncodedBlock, uniforms: Array) -> npt.NDArray[Any]:
        """A label of each place, drawn from p(labels | all else)."""
        T, scores, labels = self.transitions(w), step_scores(self, w, block), np.empty(block.n_steps, np.int64)
        for part in block.layout.parts:
            a, _ = conditional.log_filters(scores[part.places], T, part)
            labels[part.places] = conditional.draw_labels(a, T, part, uniforms[part.places])
        return labels

    def bar(self, x: Array, part: SideBySide, value: float) -> None:
        """Give places of a part a value for the labels that they may not have: here there are none."""

    def check_lengths(self, vocabulary: Vocabulary, sequences: Sequences) -> None:
        """Refuse sequences that no labels are possible for, or that take too much memory."""

    def names_of(self, vocabulary: Vocabulary, which: Ints) -> list[tuple[str, str]]:
        """What some of the weights are of, and the label that it speaks for."""
        names, labels, n = vocabulary.names, vocabulary.labels, len(self.labels)
        own = np.searchsorted(self.first, which, side="right") - 1
        return [
            (names[a], labels[self.labels[k]])
            if k < n
            else (f"{vocabulary.chain.label}[-1]={labels[self.before[k - n]]}", labels[self.after[k - n]])
            for k, a in zip(which.tolist(), own.tolist(), strict=True)
        ]

    def by_weight(self, block: EncodedBlock, by_group: Array, of_numbers: Array) -> Array:
        """What is expected of groups and of numbers, by label, as that of the weights of attributes and labels."""
        from suffice.numerics.kernels.labels.crf import spread_groups

        total = np.zeros(len(self.labels))
        spread_groups(*block.attributes, self.first, self.labels, by_group, total)
        for row, a in enumerate(self.numbers):
            k = slice(self.first[a], self.first[a + 1])
            total[k] = of_numbers[row, self.labels[k]]
        return total


def put_back(values: npt.NDArray[Any], order: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values (first axis) that are in the order of a layout, of its places or sequences, as these stand in the block."""
    result = np.empty_like(values)
    result[order] = values
    return result


def group_scores(features: PairFeatures, w: Array, block: EncodedBlock) -> Array:
    """The sum of the weights of each group for each label."""
    from suffice.numerics.kernels.labels.crf import score_groups

    scores = np.empty((len(block.attributes.starts) - 1, features.n_labels))
    weights = np.require(w, np.float64, ["C_CONTIGUOUS", "WRITEABLE"])  # those of a model may not be written to
    score_groups(*block.attributes, features.first, features.labels, weights, scores)
    return scores


def number_scores(features: PairFeatures, w: Array, block: EncodedBlock) -> Array:
    """What numbers add to the score of each step; no rows if there are none."""
    weights = np.zeros((len(features.numbers), features.n_labels))
    for row, a in enumerate(features.numbers):
        k = slice(features.first[a], features.first[a + 1])
        weights[row, features.labels[k]] = w[k]
    return block.numbers @ weights if features.numbers else weights


def step_scores(features: PairFeatures, w: Array, block: EncodedBlock) -> Array:
    """The score of each label at each step."""
    groups, more = group_scores(features, w, block), number_scores(features, w, block)
    total = more if len(more) else np.zeros((block.n_steps, features.n_labels))
    for own in block.groups:
        total += groups[own]
    return total


def label_costs(block: EncodedBlock, costs: Array) -> Array:
    """What is added to the score of each label at each step: the cost of the right label to all others (steps × labels)."""
    own = np.where(block.labels >= 0, costs[block.labels], 0.0)
    return np.where(block.labels[:, None] == np.arange(len(costs)), 0.0, own[:, None])


def most_probable(features: PairFeatures, w: Array, block: EncodedBlock, T: Array, *, cost: float | None = None) -> BestLabelling:
    """The best labels of the sequences of a block; with a cost, of which each label that is wrong adds that much to the score."""
    given = GroupScores(block.groups, group_scores(features, w, block), number_scores(features, w, block))
    return conditional.best_labels(block.layout, given if cost is None else given._replace(truth=block.labels, cost=cost), T)


NO_CLAMP = np.zeros(0, np.int32)


def expectations(
    features: PairFeatures, w: Array, block: EncodedBlock, T: Array, *, clamped: bool = False, costs: Array | None = None
) -> Iterator[tuple[SideBySide, ExpectedLabels]]:
    """What is expected of the labels of each part of a block; with `clamped`, given those that are there; with `costs`, where
    these are added to scores: see `label_costs`. The next part overwrites the expectations of steps."""
    from suffice.numerics.kernels.labels.crf import shift_rows, weigh_steps

    scores, more = group_scores(features, w, block), number_scores(features, w, block)
    if costs is not None:
        more = label_costs(block, costs) + (more if len(more) else 0.0)
    tops, powers = np.empty(len(scores)), np.empty(scores.shape)
    shift_rows(scores, tops, powers)
    np.exp(powers, out=powers)
    most = max((part.n for part in block.layout.parts), default=0)
    room, top = conditional.Room.of(most, features.n_labels), np.empty(most)
    for part in block.layout.parts:
        clamp = block.labels if clamped else NO_CLAMP
        weights = None if block.weights is None else block.weights[part.places]
        if part.few and not clamped:
            few = conditional.expect_few(_scores_of(features, block, scores, more, part, clamp), T, part, weights)
            if few is not None:
                yield part, few
                continue
        weigh_steps(block.groups, part.begin, scores, powers, tops, more, clamp, room.b[: part.n], top)
        features.bar(room.b[: part.n], part, 0.0)
        found = conditional.expect_labels(room, T, part, weights)
        if found is None:
            yield part, conditional.expect_in_logs(_scores_of(features, block, scores, more, part, clamp), T, part, weights)
        else:
            found.logs[:] += top[: part.n]
            yield part, found


def _scores_of(features: PairFeatures, block: EncodedBlock, scores: Array, more: Array, part: SideBySide, clamp: Codes) -> Array:
    """The score of each label at each step of a part, −inf for those that a step may not have."""
    total = GroupScores(block.groups, scores, more).at(part)
    if len(clamp):
        label = clamp[part.places, None]
        total[(label >= 0) & (label != np.arange(scores.shape[1]))] = -np.inf
    features.bar(total, part, -np.inf)
    return total
