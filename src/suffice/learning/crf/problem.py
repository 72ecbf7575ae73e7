"""Sequences with labels, encoded once: which pairs have weights, what is seen of them, and what weights expect; and which weights
there are beyond those of pairs, and labels that are forbidden.

Blocks are kept where they are near, in memory or in a spill; else they are encoded again in every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from suffice.basis.arrays import Array, Bools, Ints
from suffice.basis.limits import NO_LIMITS, Budget
from suffice.engines.engine import Block, Step, sum_up
from suffice.engines.local.kept import ValueStore
from suffice.engines.sequences.sequences import Sequences
from suffice.engines.steps.blocks import in_order
from suffice.errors import DataError, FitError, TooLarge, bytes_in_words, listing, nearest, note
from suffice.models.linear_chain.encoding import (
    Encoded,
    EncodedBlock,
    Findings,
    FindPairs,
    PairCounts,
    encode_block,
    split_by_labels,
)
from suffice.models.linear_chain.features import LabelTerms, PairFeatures
from suffice.models.linear_chain.transitions import Allowed, all_allowed
from suffice.models.linear_chain.vocabulary import Tables, Vocabulary, texts_by_column
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
        if strange := [x for rule in chain.transitions for x in rule.named if x not in every.labels]:
            known = f"{listing(dict.fromkeys(strange))}{nearest(strange[0], every.labels)}"
            note(f"the constraints name labels that are not there: {known}")
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
        return cls(keys, seen.at(keys), allowed, chain.order, A)

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


def _find_forbidden(tables: Tables, allowed: Allowed, block: Block) -> tuple[int, int, int, int, int]:
    """The first sequence of a block whose labels are forbidden, and the step; −1 if there is none. Then the labels around it, and
    how many sequences there are."""
    from suffice.numerics.kernels.labels.label_sequences import find_forbidden

    own = encode_block(block, tables)
    rows, found = InSequence.of(own), np.empty(2, np.int64)
    labels = own.labels[rows.places]
    find_forbidden(rows.starts, labels, *allowed, found)
    q, t = found.tolist()
    at, n = (int(rows.starts[q]) + t, int(rows.starts[q + 1] - rows.starts[q])) if q >= 0 else (0, 0)
    around = (int(labels[at - 1]) if t > 0 else -2, int(labels[at]) if t < n else -2)
    return q, t, *around, len(rows.starts) - 1


def refuse_forbidden(chain: LinearChain, tables: Tables, allowed: Allowed, sequences: Sequences) -> None:
    """Refuse labels that the constraints of a chain forbid, by the step and both labels."""
    if not allowed.n_forbidden:
        return
    states, first = getattr(sequences.schema[chain.label], "states", ()), 0
    for q, t, before, after, n in sequences.data.map(partial(_find_forbidden, tables, allowed), what="checking labels"):
        if q >= 0:
            rules = " and ".join(map(repr, chain.transitions))
            at = t if after != -2 else t - 1
            row = int(sequences.position[int(sequences.lengths[: first + q].sum()) + at])
            where = f"sequence {sequences.labels[first + q]!r}, step {at + 1:,} (row {row + 1:,})"
            if after == -2:
                what = f"{states[before]!r} at the end" if before >= 0 else "every label that is possible at the end"
            else:
                label = repr(states[after]) if after >= 0 else "every label"
                follows = f"after {repr(states[before]) if before >= 0 else 'a missing label'}"
                what = f"{label} {'at the start' if before == -2 else follows}"
            raise DataError(f"{where}: {what} is forbidden by {rules}")
        first += n


R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class ExpectFeatures(Step[LabelTerms]):
    """What weights expect of blocks that are kept encoded, or with `tables` are encoded in every pass."""

    features: PairFeatures
    weights: Array
    costs: Array | None
    tables: Tables | None = None

    def of(self, block: Block) -> LabelTerms:
        assert self.tables is not None
        return self.expect(split_by_labels(block, self.tables)[:2])

    def expect(self, block: Encoded) -> LabelTerms:
        """Of an encoded block."""
        whole, partly = block
        result = self.features.expect_terms(self.weights, whole, costs=self.costs)
        if partly is None:
            return result
        free = self.features.expect_terms(self.weights, partly, costs=self.costs)
        clamped = self.features.expect_terms(self.weights, partly, clamped=True)
        return LabelTerms(result.log_z + free.log_z - clamped.log_z, result.expected + free.expected - clamped.expected)


@dataclass(frozen=True, eq=False)
class LabelProblem:
    """A linear chain and sequences to fit it to. `seen` is how often each pair occurs in sequences with all of their labels;
    `costs`, if there are any, are added to the scores of wrong labels, for each right one."""

    chain: LinearChain
    sequences: Sequences
    vocabulary: Vocabulary
    features: PairFeatures
    seen: Array
    findings: Findings
    threads: int | None
    costs: Array | None = None

    @classmethod
    def of(cls, chain: LinearChain, sequences: Sequences, *, threads: int | None = None, room: float = np.inf) -> LabelProblem:
        """Sequences passed over once."""
        schema = sequences.schema
        texts = texts_by_column(chain, schema)
        every = Vocabulary.of(chain, schema, texts)
        tables = Tables.of(every, schema, texts)
        engine = sequences.data.engine
        step = FindPairs(tables, ValueStore(min(room, engine.memory_limit)) if engine.near else None)
        findings = sequences.data.fold(step, threads=threads, what="encoding sequences")
        keys = choose_pairs(chain, findings.counts, every)
        wider = None if chain.is_plain else WiderKeys.of(chain, every, tables, sequences, threads)
        L, numbers = len(every.labels), [every.starts[i] for i in every.numbers]
        keys = keys if wider is None else wider.permitted_keys(keys, of_pairs(every), L)
        # without the attributes that have no weight
        kept = np.zeros(every.size, bool)
        kept[keys[keys < every.size * L] // L] = True
        kept[[*numbers, *([0] if chain.bias else [])]] = True
        if wider is not None:
            kept[wider.attributes(L)] = True
        number = np.where(kept, np.cumsum(kept) - 1, -1)
        vocabulary = every.reduce(kept)
        behind = keys // L - every.size + vocabulary.size
        moved = np.where(keys < every.size * L, number[np.minimum(keys // L, every.size - 1)], behind)
        places = tuple(int(number[a]) for a in numbers)
        features = PairFeatures.of(moved * L + keys % L, vocabulary.size, L, places)
        seen = findings.counts.at(keys) - findings.partial.at(keys)
        for row, a in enumerate(numbers):
            own = slice(*np.searchsorted(keys, (a * L, (a + 1) * L)))
            seen[own] = findings.sums[row, keys[own] % L]
        if wider is not None:
            features, seen = wider.add_to(features, number), np.concatenate([seen, wider.seen])
        blocks, store = dict(findings.blocks), ValueStore(min(room, engine.memory_limit))
        for n in blocks:  # one at a time, and what is replaced is let go
            whole, partly = (None if own is None else own.renumber(number) for own in findings.blocks.pop(n).read())
            assert whole is not None
            blocks[n] = store.keep((whole, partly), whole.n_bytes + (0 if partly is None else partly.n_bytes))
        return cls(chain, sequences, vocabulary, features, seen, findings._replace(blocks=blocks), threads)

    @cached_property
    def tables(self) -> Tables:
        """How sequences are encoded again."""
        return Tables.of(self.vocabulary, self.sequences.schema)

    def each(self, what: Callable[[Encoded], R]) -> Iterator[R]:
        """Of each block that is kept, in their order."""
        tasks = (partial(lambda kept: what(kept.read()), block) for _, block in sorted(self.findings.blocks.items()))
        return in_order(tasks, 1 if len(self.findings.blocks) == 1 else self.threads)

    def blocks(self) -> Iterator[Encoded]:
        """The blocks that are kept, in their order."""
        return (block.read() for _, block in sorted(self.findings.blocks.items()))

    def loss(self, w: Array) -> tuple[float, Array]:
        """−Σ log p(labels | all else), and its gradient: expected − seen."""
        step = ExpectFeatures(self.features, w, self.costs)
        if self.findings.blocks:
            terms = sum_up(self.each(step.expect))
        else:
            terms = self.sequences.data.fold(replace(step, tables=self.tables), threads=self.threads)
        assert terms is not None
        return terms.log_z - float(self.seen @ w), terms.expected - self.seen


@dataclass(frozen=True)
class Climbing:
    """How weights are found: prices of |w| and w², steps that L-BFGS remembers, when it ends, and where it begins."""

    c1: float
    c2: float
    start: Array
    memory: int = 6
    tol: float = 1e-9
    max_iter: int = 1000
    budget: Budget = NO_LIMITS


def choose_pairs(chain: LinearChain, counts: PairCounts, every: Vocabulary) -> Ints:
    L, A = len(every.labels), every.size
    if not chain.unseen:
        keys = counts.keys[counts.counts >= chain.min_count]
        if chain.all_transitions:
            keys = np.append(keys[keys < A * L], A * L + np.arange(L * L))
    else:
        own = counts.keys < A * L
        frequent = np.bincount(counts.keys[own] // L, counts.counts[own], A) >= max(chain.min_count, 1e-300)
        attributes = np.append(np.flatnonzero(frequent), A + np.arange(L))
        keys = (attributes[:, None] * L + np.arange(L)).reshape(-1)
    if not len(keys):
        raise FitError(f"no pair of an attribute and a label occurs {chain.min_count:,} times: lower min_count")
    if len(keys) > MAX_WEIGHTS:
        raise TooLarge(f"this chain has {len(keys):,} weights, which take {bytes_in_words(200.0 * len(keys))}: raise min_count")
    return keys
