"""Weights beyond those of a label and the one before it: of three labels in a row, of two by attribute; and what is forbidden.

The transitions of a step are then its own, and a state is a label with the one before it: see `kernels.labels.label_chains`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, TooLarge, bytes_in_words
from suffice.errors.remedies import Remedy
from suffice.models.linear_chain.encoding import Codes, EncodedBlock
from suffice.models.linear_chain.features import Attributes, LabelTerms, PairFeatures, label_costs, put_back, step_scores
from suffice.models.linear_chain.transitions import Allowed
from suffice.models.linear_chain.vocabulary import Vocabulary
from suffice.numerics.inference.chains.conditional import SideBySide
from suffice.numerics.inference.finite.network import Array, Ints

MOST_BYTES = 2**31
"""What the states of one sequence may take."""
SCALED = 115.0
"""Where weights of labels in a row are further apart than this, everything is done in logarithms."""


class InSequence(NamedTuple):
    """The places of the steps of each sequence, one sequence after the other, in their order."""

    starts: Ints
    places: Codes

    @classmethod
    def of(cls, block: EncodedBlock) -> InSequence:
        layout, place = block.layout, np.empty(block.n_steps, np.int32)
        place[layout.order] = np.arange(block.n_steps)
        lengths = np.empty(len(layout.sequences), np.int64)
        lengths[layout.sequences] = np.bincount(layout.ranks, minlength=len(lengths))
        return cls(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), place)

    @property
    def longest(self) -> int:
        return int(np.diff(self.starts).max(initial=0))

    @property
    def firsts(self) -> Codes:
        """The place of the first step of each sequence."""
        return self.places[self.starts[:-1]]


class StateWeights(NamedTuple):
    """Weights of labels in a row as kernels take them: T[i, k] and log_m[h, i, k], and both without logarithms, scaled by `tops`;
    these have no rows where scaling would lose something."""

    T: Array
    log_m: Array
    tops: tuple[float, float]
    E0: Array
    M: Array

    @classmethod
    def of(cls, T: Array, log_m: Array) -> StateWeights:
        finite = T[np.isfinite(T)]
        top, low = (float(finite.max()), float(finite.min())) if len(finite) else (0.0, 0.0)
        high = float(log_m[:-1].max()) if len(log_m) > 1 else 0.0
        if max(top - low, float(np.ptp(log_m))) > SCALED:
            return cls(T, log_m, (0.0, 0.0), np.zeros((0, len(T))), np.zeros((0, *T.shape)))
        M = np.exp(log_m - high)
        M[-1] = 1.0
        return cls(T, log_m, (top, high), np.exp(T - top), M)


class WiderExpectations(NamedTuple):
    """log Z of each sequence, p(label) of each place, Σ w p(history, label before, label), what is expected of weights of pairs
    by attribute, and, if asked for, p(label before, label) of each place."""

    log_z: Array
    steps: Array
    counts: Array
    of_pairs: Array
    by_place: Array


@dataclass(frozen=True, eq=False, kw_only=True)
class WiderFeatures(PairFeatures):
    """Further weights after those of pairs: attribute a has the weights pair_first[a] … of the labels pair_before, pair_after;
    then come those of `triples`, three labels in a row."""

    allowed: Allowed
    order: int
    pair_first: Ints
    pair_before: Codes
    pair_after: Codes
    triples: Codes

    @property
    def n_pairs(self) -> int:
        """The weights of attributes and labels, and of labels in a row, which every chain has."""
        return len(self.labels) + len(self.before)

    @property
    def n(self) -> int:
        return self.n_pairs + len(self.pair_before) + len(self.triples)

    def transitions(self, w: Array) -> Array:
        return np.where(self.allowed.pairs, super().transitions(w), -np.inf)

    def of_states(self, w: Array) -> StateWeights:
        L = self.n_labels
        log_m = np.zeros((L + 1 if self.order == 2 else 1, L, L))
        if self.order == 2:
            log_m[tuple(self.triples.T)] = w[self.n_pairs + len(self.pair_before) :]
        return StateWeights.of(self.transitions(w), log_m)

    def of_attributes(self, w: Array, block: EncodedBlock) -> tuple[npt.NDArray[np.generic], ...]:
        """The weights of pairs by attribute, as kernels take them."""
        own = np.array(w[self.n_pairs : self.n_pairs + len(self.pair_before)])
        numbers, which = np.ascontiguousarray(block.numbers), np.array(self.numbers, np.int64)
        return (block.groups, *block.attributes, self.pair_first, self.pair_before, self.pair_after, numbers, which, own)

    def scores(
        self, w: Array, block: EncodedBlock, own: InSequence, *, clamped: bool = False, costs: Array | None = None
    ) -> Array:
        """The score of each label at each place, −inf for those that it may not have."""
        scores = step_scores(self, w, block)
        if costs is not None:
            scores += label_costs(block, costs)
        if clamped:
            scores[(block.labels[:, None] >= 0) & (block.labels[:, None] != np.arange(self.n_labels))] = -np.inf
        for places, flags in ((own.firsts, self.allowed.begin), (own.places[own.starts[1:] - 1], self.allowed.end)):
            scores[np.ix_(places, ~flags)] = -np.inf
        return scores

    def room(self, longest: int) -> tuple[Array, ...]:
        """What kernels need for a sequence."""
        L, H = self.n_labels, self.n_labels + 1 if self.order == 2 else 1
        check_bytes(8.0 * (2 * longest + 4 * L) * H * L, L, longest, self.order)
        states = [np.empty((longest, H, L)) for _ in range(2)]
        return (*states, np.empty((longest, L)), np.empty(longest), np.empty((L, L)), np.empty((L, L)))

    def expect(
        self, w: Array, block: EncodedBlock, *, clamped: bool = False, costs: Array | None = None, by_place: bool = False
    ) -> WiderExpectations:
        from suffice.numerics.kernels.labels.label_chains import expect_sequences

        own, L, weights = InSequence.of(block), self.n_labels, self.of_states(w)
        shares = np.ones(len(own.starts) - 1) if block.weights is None or by_place else block.weights[own.firsts]
        steps, both = np.zeros((block.n_steps, L)), np.full((block.n_steps if by_place else 0, L, L), np.nan)
        found = WiderExpectations(
            np.zeros(len(shares)), steps, np.zeros(weights.log_m.shape), np.zeros(len(self.pair_before)), both
        )
        scores = self.scores(w, block, own, clamped=clamped, costs=costs)
        matrices = (weights.tops, weights.T, weights.E0, weights.log_m, weights.M)
        expect_sequences(*own, scores, shares, *matrices, self.of_attributes(w, block), self.room(own.longest), tuple(found))
        return found

    def log_z(self, w: Array, block: EncodedBlock, *, clamped: bool = False) -> Array:
        return self.expect(w, block, clamped=clamped).log_z[block.layout.sequences]

    def probabilities(self, w: Array, block: EncodedBlock) -> Array:
        return self.expect(w, block).steps

    def pair_probabilities(self, w: Array, block: EncodedBlock) -> Array:
        return self.expect(w, block, by_place=True).by_place

    def best(self, w: Array, block: EncodedBlock, lengths: Ints, n: int) -> tuple[Codes, Array]:
        from suffice.numerics.kernels.labels.label_sequences import best_sequences

        own, weights, L = InSequence.of(block), self.of_states(w), self.n_labels
        shape = (own.longest, len(weights.log_m), L, n)
        check_bytes(12.0 * np.prod(shape, dtype=float), L, own.longest, self.order)
        scores, labels = np.empty((len(own.starts) - 1, n)), np.empty((n, block.n_steps), np.int32)
        room = (np.empty(shape), np.empty(shape, np.int32), np.empty((L, L)))
        by_attribute = self.of_attributes(w, block)
        best_sequences(*own, self.scores(w, block, own), weights.T, weights.log_m, by_attribute, *room, scores, labels)
        return np.stack([put_back(one, block.layout.order) for one in labels]), scores

    def draw(self, w: Array, block: EncodedBlock, uniforms: Array) -> npt.NDArray[Any]:
        from suffice.numerics.kernels.labels.label_sequences import draw_sequences

        own, weights = InSequence.of(block), self.of_states(w)
        labels, logs = np.full(block.n_steps, -1, np.int32), np.empty(len(own.starts) - 1)
        matrices = (weights.T, weights.log_m, self.of_attributes(w, block), self.room(own.longest))
        draw_sequences(*own, self.scores(w, block, own), *matrices, uniforms, logs, labels)
        return labels

    def bar(self, x: Array, part: SideBySide, value: float) -> None:
        for places, flags in ((np.arange(part.offsets[1]), self.allowed.begin), (part.lasts, self.allowed.end)):
            if not flags.all():
                x[np.ix_(places, ~flags)] = value

    def expect_terms(self, w: Array, block: EncodedBlock, *, clamped: bool = False, costs: Array | None = None) -> LabelTerms:
        if self.order == 1 and not len(self.pair_before):  # all steps have one matrix: many sequences go side by side
            return super().expect_terms(w, block, clamped=clamped, costs=costs)
        from suffice.numerics.kernels.labels.crf import sum_groups

        found, weights = self.expect(w, block, clamped=clamped, costs=costs), block.weights
        if weights is not None:
            found.steps[:] *= weights[:, None]
        shares = 1.0 if weights is None else weights[InSequence.of(block).firsts]
        pairs = found.counts.sum(axis=0)[self.before, self.after]
        triples = found.counts[tuple(self.triples.T)]
        by_group = np.zeros((len(block.attributes.starts) - 1, self.n_labels))
        sum_groups(block.groups, 0, found.steps, by_group)
        own = self.by_weight(block, by_group, block.numbers.T @ found.steps)
        return LabelTerms(float((found.log_z * shares).sum()), np.concatenate([own, pairs, found.of_pairs, triples]))

    def names_of(self, vocabulary: Vocabulary, which: Ints) -> list[tuple[str, str]]:
        name, labels = vocabulary.chain.label, vocabulary.labels
        between = self.n_pairs + len(self.pair_before)
        owner = np.searchsorted(self.pair_first, which - self.n_pairs, side="right") - 1
        plain, result = iter(super().names_of(vocabulary, which[which < self.n_pairs])), []
        for k, a in zip(which.tolist(), owner.tolist(), strict=True):
            if k < self.n_pairs:
                result.append(next(plain))
            elif k < between:
                i, j = self.pair_before[k - self.n_pairs], self.pair_after[k - self.n_pairs]
                result.append((f"{vocabulary.names[a]}, {name}[-1]={labels[i]}", labels[j]))
            else:
                h, i, j = self.triples[k - between]
                result.append((f"{name}[-2]={labels[h]}, {name}[-1]={labels[i]}", labels[j]))
        return result

    def contributions(
        self, vocabulary: Vocabulary, w: Array, attributes: tuple[Attributes, Attributes], around: tuple[int, ...]
    ) -> dict[str, float]:
        of_one = [(a, x) for a, x in attributes[0] if self.pair_first[a] == self.pair_first[a + 1]]
        parts, name = super().contributions(vocabulary, w, (of_one, []), around), vocabulary.chain.label
        texts = [f"{name}[{i - 2:+d}]={vocabulary.labels[j]}" for i, j in enumerate(around)]
        for near, which, i, k in (("", attributes[0], 1, 2), ("next step: ", attributes[1], 2, 3)):
            beside = texts[i if i != 2 else k]
            for a, x in which if min(around[i], around[k]) >= 0 else ():
                if self.pair_first[a] < self.pair_first[a + 1]:
                    own = slice(self.pair_first[a], self.pair_first[a + 1])
                    these = (self.pair_before[own] == around[i]) & (self.pair_after[own] == around[k])
                    parts[f"{near}{vocabulary.names[a]}, {beside}"] = x * float(w[self.n_pairs :][own][these].sum())
        for i in range(3 if self.order == 2 else 0):
            if min(around[i : i + 3]) >= 0:
                what = ", ".join(texts[k] for k in range(i, i + 3) if k != 2)
                these = (self.triples == around[i : i + 3]).all(axis=1)
                parts[what] = float(w[self.n - len(self.triples) :][these].sum())
        return parts

    def check_lengths(self, vocabulary: Vocabulary, sequences: Sequences) -> None:
        from suffice.numerics.kernels.labels.label_sequences import find_forbidden

        lengths, L = np.unique(sequences.lengths), self.n_labels
        longest = int(lengths[-1]) if len(lengths) else 0
        check_bytes(16.0 * longest * L * (L + 1 if self.order == 2 else 1), L, longest, self.order)
        if self.allowed.n_forbidden:
            starts, found = np.concatenate([[0], np.cumsum(lengths)]), np.empty(2, np.int64)
            find_forbidden(starts, np.full(starts[-1], -1, np.int32), *self.allowed, found)
            if found[0] >= 0:
                n = int(lengths[found[0]])
                name = sequences.labels[int(np.flatnonzero(sequences.lengths == n)[0])]
                rules = " and ".join(map(repr, vocabulary.chain.transitions))
                raise DataError(f"no labels are possible for a sequence of {n:,} steps, such as {name!r}, under {rules}")


def check_bytes(size: float, n_labels: int, longest: int, order: int) -> None:
    """Refuse sequences whose states take too much memory."""
    if size > MOST_BYTES:
        labels = Remedy(f"order={order}", f"--labels-back {order}")
        what = f"{labels} with {n_labels:,} labels takes {bytes_in_words(size)} for a sequence of {longest:,} steps"
        raise TooLarge(
            f"{what}, and {bytes_in_words(MOST_BYTES)} are the limit: use {Remedy('order=1', '--labels-back 1')}, or cut long "
            f"sequences"
        )
