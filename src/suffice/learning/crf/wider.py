"""Which weights a linear chain has beyond those of pairs, how often what they are of is seen, and labels that are forbidden."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Array, Bools, Ints
from suffice.engines.engine import Block, Step
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, TooLarge, bytes_in_words
from suffice.models.linear_chain.encoding import EncodedBlock, PairCounts, encode_block, split_by_labels
from suffice.models.linear_chain.features import PairFeatures
from suffice.models.linear_chain.transitions import Allowed, all_allowed, tell_strange
from suffice.models.linear_chain.vocabulary import Tables, Vocabulary
from suffice.models.linear_chain.wider_features import InSequence, WiderFeatures, check_bytes
from suffice.models.linear_chain.windows import LinearChain

MAX_WEIGHTS = 2**28
"""No chain with more weights is fitted: each takes some 200 bytes while it is."""


def of_pairs(vocabulary: Vocabulary) -> Bools:
    """Which attributes have weights of two labels in a row, and not of one."""
    flags = [False] * int(vocabulary.chain.bias)
    for place, values in zip(vocabulary.chain.places, vocabulary.values, strict=True):
        flags += [place.pairs] * (1 if values is None else len(values))
    return np.array(flags, bool)


class WiderFindings(NamedTuple):
    """How often attributes go with two labels in a row, at (a · L + i) · L + j, and three labels follow each other, at
    ((A + h) · L + i) · L + j; and the same in sequences with all of their labels, numbers by their sums."""

    counts: PairCounts
    seen: PairCounts


@dataclass(frozen=True, eq=False)
class CountWider(Step[WiderFindings]):
    """Counts what further weights are of."""

    tables: Tables
    pairs: Bools
    triples: bool

    def of(self, block: Block) -> WiderFindings:
        whole, partly, _ = split_by_labels(block, self.tables)
        counts, seen = self._of(whole)
        return WiderFindings(counts if partly is None else counts + self._of(partly)[0], seen)

    def _of(self, block: EncodedBlock) -> WiderFindings:
        L, (before, after) = self.tables.n_labels, block.layout.pairs
        weights = np.ones(block.n_steps) if block.weights is None else block.weights
        both = (block.labels[before] >= 0) & (block.labels[after] >= 0)
        before, after = before[both], after[both]
        pair, share = block.labels[before].astype(np.int64) * L + block.labels[after], weights[after]
        keys, counts = self._by_attribute(block, after, pair, share)
        if self.triples:
            own = self._triples(block, before, pair, share)
            keys, counts = [*keys, own[0]], [*counts, own[1]]
        numbers = [(a, c) for c, (_, _, a) in enumerate(self.tables.numbers) if self.pairs[a]]
        there = [block.numbers[after, c] != 0.0 for _, c in numbers]
        of_numbers = [a * L * L + pair[some] for (a, _), some in zip(numbers, there, strict=True)]
        times = [share[some] for some in there]
        sums = [share[some] * block.numbers[after, c][some] for (_, c), some in zip(numbers, there, strict=True)]
        every = np.concatenate([np.zeros(0, np.int64), *keys, *of_numbers])
        return WiderFindings(*(PairCounts.of(every, np.concatenate([np.zeros(0), *counts, *x])) for x in (times, sums)))

    def _by_attribute(self, block: EncodedBlock, after: Ints, pair: Ints, share: Array) -> tuple[list[Ints], list[Array]]:
        keys, counts, L = list[Ints](), list[Array](), self.tables.n_labels
        for groups in block.groups if self.pairs.any() else ():
            together = PairCounts.of(groups[after].astype(np.int64) * L * L + pair, share)
            some = block.attributes.take(together.keys // (L * L))
            mine = self.pairs[some.items]
            keys.append((some.items.astype(np.int64) * L * L + np.repeat(together.keys % (L * L), some.sizes))[mine])
            counts.append(np.repeat(together.counts, some.sizes)[mine])
        return keys, counts

    def _triples(self, block: EncodedBlock, before: Ints, pair: Ints, share: Array) -> tuple[Ints, Array]:
        L, previous = self.tables.n_labels, np.full(block.n_steps, -1, np.int64)
        first, second = block.layout.pairs
        previous[second] = first
        earlier = previous[before]
        label = np.where(earlier >= 0, block.labels[earlier], -1).astype(np.int64)
        return ((self.tables.n_attributes + label) * L * L + pair)[label >= 0], share[label >= 0]


@dataclass(frozen=True, eq=False)
class WiderKeys:
    """What further weights are of, by number: see `WiderFindings`."""

    keys: Ints
    seen: Array
    allowed: Allowed
    order: int
    n_attributes: int

    @classmethod
    def of(cls, chain: LinearChain, every: Vocabulary, tables: Tables, sequences: Sequences, threads: int | None) -> WiderKeys:
        """All that the data and the chain's counts give."""
        L, A, allowed = len(every.labels), every.size, all_allowed(chain.transitions, every.labels)
        tell_strange(chain.transitions, every.labels)
        longest = int(sequences.lengths.max(initial=0))
        check_bytes(16.0 * (longest + 4 * L) * L * (L + 1 if chain.order == 2 else 1), L, longest, chain.order)
        refuse_forbidden(chain, tables, allowed, sequences)
        mine = of_pairs(every)
        step = CountWider(tables, mine, chain.order == 2)
        counts, seen = sequences.data.fold(step, threads=threads, what="counting labels in a row")
        keys = counts.keys[counts.counts >= chain.min_count] if not chain.unseen else every_key(chain, counts, mine, L)
        keys = keys[allowed.pairs.reshape(-1)[keys % (L * L)]]
        triple = keys >= A * L * L
        before = np.where(triple, keys // (L * L) - A, 0) * L + keys // L % L
        keys = keys[~triple | allowed.pairs.reshape(-1)[before]]
        return cls(keys, _count_keys(seen, keys), allowed, chain.order, A)

    def attributes(self, n_labels: int) -> Ints:
        """The attributes that have a weight."""
        own = self.keys // n_labels**2
        return np.unique(own[own < self.n_attributes])

    def permitted_keys(self, keys: Ints, pairs: Bools, n_labels: int) -> Ints:
        """The keys of pairs without those that are forbidden, or of attributes of two labels."""
        L, A = n_labels, self.n_attributes
        own = keys < A * L
        follow = np.maximum(keys - A * L, 0)
        return keys[np.where(own, ~pairs[np.minimum(keys // L, A - 1)], self.allowed.pairs.reshape(-1)[follow])]

    def add_to(self, features: PairFeatures, number: Ints) -> WiderFeatures:
        """Features with these added, attributes by their new numbers."""
        L, A = features.n_labels, self.n_attributes
        own, triples = self.keys[self.keys < A * L * L], self.keys[self.keys >= A * L * L] - A * L * L
        attribute, n = number[own // (L * L)], len(features.first) - 1
        first = np.searchsorted(attribute, np.arange(n + 1)).astype(np.int64)
        codes = [x.astype(np.int32) for x in (own // L % L, own % L, triples // (L * L), triples // L % L, triples % L)]
        triple = np.ascontiguousarray(np.stack(codes[2:], axis=1))
        plain: dict[str, Any] = {f.name: getattr(features, f.name) for f in fields(PairFeatures)}
        pairs: dict[str, Any] = {"pair_first": first, "pair_before": codes[0], "pair_after": codes[1], "triples": triple}
        return WiderFeatures(**plain, **pairs, allowed=self.allowed, order=self.order)


def every_key(chain: LinearChain, counts: PairCounts, mine: Bools, n_labels: int) -> Ints:
    """All pairs of labels of attributes that occur often enough, and all triples."""
    L, A = n_labels, len(mine)
    own = counts.keys < A * L * L
    often = np.bincount(counts.keys[own] // (L * L), counts.counts[own], A) >= max(chain.min_count, 1e-300)
    which = np.append(np.flatnonzero(often & mine), A + np.arange(L if chain.order == 2 else 0))
    if len(which) * L * L > MAX_WEIGHTS:
        size = bytes_in_words(200.0 * len(which) * L * L)
        raise TooLarge(f"this chain has {len(which) * L * L:,} weights of labels in a row, which take {size}: leave unseen out")
    return np.asarray((which[:, None] * L * L + np.arange(L * L)).reshape(-1))


def _count_keys(counts: PairCounts, keys: Ints) -> Array:
    if not len(counts.keys):
        return np.zeros(len(keys))
    at = np.minimum(np.searchsorted(counts.keys, keys), len(counts.keys) - 1)
    return np.where(counts.keys[at] == keys, counts.counts[at], 0.0)


@dataclass(frozen=True, eq=False)
class FindForbidden:
    """The first sequence of a block whose labels are forbidden, and the step; −1 if there is none. Then the labels around it."""

    tables: Tables
    allowed: Allowed

    def __call__(self, block: Block) -> tuple[int, int, int, int, int]:
        from suffice.kernels.labels.label_sequences import find_forbidden

        own = encode_block(block, self.tables)
        rows, found = InSequence.of(own), np.empty(2, np.int64)
        labels = own.labels[rows.places]
        find_forbidden(rows.starts, labels, *self.allowed, found)
        q, t = found.tolist()
        at, n = (int(rows.starts[q]) + t, int(rows.starts[q + 1] - rows.starts[q])) if q >= 0 else (0, 0)
        around = (int(labels[at - 1]) if t > 0 else -2, int(labels[at]) if t < n else -2)
        return q, t, *around, len(rows.starts) - 1


def refuse_forbidden(chain: LinearChain, tables: Tables, allowed: Allowed, sequences: Sequences) -> None:
    """Refuse labels that the constraints of a chain forbid, by the step and both labels."""
    if not allowed.n_forbidden:
        return
    states, first = getattr(sequences.schema[chain.label], "states", ()), 0
    for q, t, before, after, n in sequences.data.map(FindForbidden(tables, allowed), what="checking labels"):
        if q >= 0:
            rules = " and ".join(map(repr, chain.transitions))
            at = t if after != -2 else t - 1
            row = int(sequences.position[int(sequences.lengths[: first + q].sum()) + at])
            where = f"sequence {sequences.labels[first + q]!r}, step {at + 1:,} (row {row + 1:,})"
            raise DataError(f"{where}: {_what(before, after, states)} is forbidden by {rules}")
        first += n


def _what(before: int, after: int, states: tuple[str, ...]) -> str:
    if after == -2:
        return f"{states[before]!r} at the end" if before >= 0 else "every label that is possible at the end"
    label = repr(states[after]) if after >= 0 else "every label"
    return (
        f"{label} at the start" if before == -2 else f"{label} after {repr(states[before]) if before >= 0 else 'a missing label'}"
    )
