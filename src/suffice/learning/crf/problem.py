"""Sequences with labels, encoded once: which pairs have weights, what is seen of them, and what weights expect.

Blocks are kept where they are near, in memory or in a spill; else they are encoded again in every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.engines.engine import Block, Step, sum_up
from suffice.engines.kept import ValueStore
from suffice.engines.sequences.sequences import Sequences
from suffice.engines.steps.blocks import in_order
from suffice.errors import FitError, TooLarge, bytes_in_words
from suffice.learning.crf.wider import MAX_WEIGHTS, WiderKeys, of_pairs
from suffice.models.linear_chain.encoding import Encoded, Findings, FindPairs, PairCounts, keep, split_by_labels
from suffice.models.linear_chain.features import LabelTerms, PairFeatures
from suffice.models.linear_chain.vocabulary import Tables, Vocabulary, texts_by_column
from suffice.models.linear_chain.windows import LinearChain

R = TypeVar("R")


@dataclass(frozen=True, eq=False)
class ExpectFeatures:
    """What weights expect of an encoded block."""

    features: PairFeatures
    weights: Array
    costs: Array | None = None

    def __call__(self, block: Encoded) -> LabelTerms:
        whole, partly = block
        result = self.features.expect_terms(self.weights, whole, costs=self.costs)
        if partly is None:
            return result
        free = self.features.expect_terms(self.weights, partly, costs=self.costs)
        clamped = self.features.expect_terms(self.weights, partly, clamped=True)
        return LabelTerms(result.log_z + free.log_z - clamped.log_z, result.expected + free.expected - clamped.expected)


@dataclass(frozen=True, eq=False)
class ExpectAgain(Step[Any]):
    """The same of blocks that are encoded in every pass."""

    tables: Tables
    what: Callable[[Encoded], Any]

    def of(self, block: Block) -> Any:
        return self.what(split_by_labels(block, self.tables)[:2])


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
        moved = np.where(
            keys < every.size * L, number[np.minimum(keys // L, every.size - 1)], keys // L - every.size + vocabulary.size
        )
        places = tuple(int(number[a]) for a in numbers)
        features = PairFeatures.of(moved * L + keys % L, vocabulary.size, L, places)
        own = PairFeatures.of(keys, every.size, L, tuple(numbers))
        seen = own.count_pairs(findings.counts) - own.count_pairs(findings.partial)
        for row, a in enumerate(numbers):
            k = slice(own.first[a], own.first[a + 1])
            seen[k] = findings.sums[row, own.labels[k]]
        if wider is not None:
            features, seen = wider.add_to(features, number), np.concatenate([seen, wider.seen])
        blocks, store = dict(findings.blocks), ValueStore(min(room, engine.memory_limit))
        for n in blocks:  # one at a time, and what is replaced is let go
            whole, partly = findings.blocks.pop(n).read()
            blocks[n] = keep(store, (whole.renumber(number), None if partly is None else partly.renumber(number)))
        return cls(chain, sequences, vocabulary, features, seen, findings._replace(blocks=blocks), threads)

    @cached_property
    def tables(self) -> Tables:
        """How sequences are encoded again."""
        return Tables.of(self.vocabulary, self.sequences.schema)

    @property
    def n_sequences(self) -> int:
        """The sequences that have a label."""
        return self.sequences.n_sequences - self.findings.n_blank

    def total(self, what: Callable[[Encoded], R]) -> R:
        """The sum over all blocks, in a fixed tree."""
        if not self.findings.blocks:
            result: R = self.sequences.data.fold(ExpectAgain(self.tables, what), threads=self.threads)
            return result
        total = sum_up(self.each(what))
        assert total is not None
        return total

    def each(self, what: Callable[[Encoded], R]) -> Iterator[R]:
        """Of each block that is kept, in their order."""
        tasks = (partial(lambda kept: what(kept.read()), block) for _, block in sorted(self.findings.blocks.items()))
        return in_order(tasks, 1 if len(self.findings.blocks) == 1 else self.threads)

    def blocks(self) -> Iterator[Encoded]:
        """The blocks that are kept, in their order."""
        return (block.read() for _, block in sorted(self.findings.blocks.items()))

    def loss(self, w: Array) -> tuple[float, Array]:
        """−Σ log p(labels | all else), and its gradient: expected − seen."""
        terms = self.total(ExpectFeatures(self.features, w, self.costs))
        return terms.log_z - float(self.seen @ w), terms.expected - self.seen


def choose_pairs(chain: LinearChain, counts: PairCounts, every: Vocabulary) -> Ints:
    """The pairs that have a weight."""
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
