"""Sequences as a fitted linear chain reads them, block by block, and what is said of their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import Block
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, listing, nearest, note
from suffice.inference.finite.network import Array, Ints
from suffice.models.linear_chain.encoding import EncodedBlock, encode_block
from suffice.models.linear_chain.features import PairFeatures, in_rows, in_sequences
from suffice.models.linear_chain.vocabulary import Tables, Vocabulary
from suffice.variables import Finite, Real

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class LabelWeights:
    """A vocabulary, the pairs that have weights, and the weights: all that answers need, and what travels."""

    vocabulary: Vocabulary
    features: PairFeatures
    weights: Array

    @cached_property
    def transitions(self) -> Array:
        return self.features.transitions(self.weights)


@dataclass(frozen=True, eq=False)
class LabelReading:
    """Sequences and the weights that are asked about them."""

    model: LabelWeights
    sequences: Sequences
    tables: Tables

    @classmethod
    def of(cls, model: LabelWeights, x: Any, *, labels: bool = False) -> LabelReading:
        """Sequences read with the columns of a chain, and with the labels that they have if these are asked about."""
        rows = read_columns(model.vocabulary, x, labels=labels)
        model.features.check_lengths(model.vocabulary, rows)
        return cls(model, rows, Tables.of(model.vocabulary, rows.schema))

    @property
    def steps(self) -> LabelSteps:
        return LabelSteps(self.model, self.tables)

    def map(self, step: Callable[[Block], T], what: str) -> Iterator[T]:
        """What a step makes of each block of whole sequences."""
        return self.sequences.data.map(step, what=what)

    def first_steps(self) -> dict[int, int]:
        """The first step of each block, counted through all blocks in their order."""
        numbers = list(self.map(attrgetter("number", "n_rows"), ""))
        firsts = np.cumsum([0, *(n for _, n in numbers)]).tolist()
        return {number: first for (number, _), first in zip(numbers, firsts[:-1], strict=True)}

    def tell_unknown(self) -> None:
        """Note how many cells read what the chain has no attribute for."""
        known = zip(self.model.vocabulary.chain.places, self.model.vocabulary.values, strict=True)
        places = [p for p, values in known if values is not None]
        counts = self.sequences.data.fold(CountUnknown(self.tables, tuple(p.pairs for p in places))).tolist()
        by_name = {p.name: n for p, n in sorted(zip(places, counts, strict=True), key=lambda pair: not pair[0].pairs)}
        found = [f"{name} {by_name[name]:,}" for name in dict.fromkeys(p.name for p in places) if by_name[name]]
        if found:
            note(
                f"cells that training never saw, or too seldom, are ignored: {listing(found, style='str')}, "
                f"of {self.sequences.n_steps:,} steps"
            )


def read_columns(vocabulary: Vocabulary, x: Any, *, labels: bool) -> Sequences:
    """The columns of a chain, of the kinds that it knows."""
    chain, rows = vocabulary.chain, checked_sequences(x)
    wanted = (*chain.columns, *([chain.label] if labels else []))
    for name in wanted:
        if name not in rows.columns:
            raise DataError(f"the sequences have no column {name!r}, which the chain reads{nearest(name, rows.columns)}")
    rows = rows.select(wanted or rows.columns[:1])
    kinds: dict[str, Any] = {
        p.column.source: Real if v is None else Finite for p, v in zip(chain.places, vocabulary.values, strict=True)
    }
    return as_kinds(rows, {**kinds, **({chain.label: Finite} if labels else {})})


def as_kinds(rows: Sequences, kinds: dict[str, Any]) -> Sequences:
    """The same sequences with columns of these kinds; one that has no cell may be of any."""
    schema = rows.schema
    wrong = {n: k for n, k in kinds.items() if not isinstance(schema[n], k) and rows.missing[n] < rows.n_rows}
    return rows.with_variables(wrong) if wrong else rows


def checked_sequences(x: Any) -> Sequences:
    """Sequences, or a refusal that says how they are made."""
    if isinstance(x, Sequences):
        return x
    raise DataError(
        f"a linear chain reads sequences, not {type(x).__name__}: sequences(data, by='sentence') says which rows belong together"
    )


@dataclass(frozen=True, eq=False)
class CountUnknown:
    """How many cells of each place read what the vocabulary does not have; places with weights of `pairs` of labels are not read
    at the first step."""

    tables: Tables
    pairs: tuple[bool, ...]

    def __call__(self, block: Block) -> Ints:
        assert block.lengths is not None
        lengths = np.repeat(block.lengths, block.lengths)
        at = np.arange(len(lengths)) - np.repeat(np.cumsum(block.lengths) - block.lengths, block.lengths)
        result, tables = np.zeros(len(self.pairs), np.int64), self.tables
        for i, (source, offset, unknown) in enumerate(zip(tables.sources, tables.offsets, tables.unknown, strict=True)):
            codes, step = block.columns[source], at - offset  # of which a cell is read: the first word is the next one of none
            if codes.dtype.kind != "f":
                read = (step >= self.pairs[i]) & (step < lengths)
                result[i] = np.count_nonzero(unknown[np.minimum(codes, len(unknown) - 1)] & read)
        return result


class Best(NamedTuple):
    """The best labels of steps (rank × step), their scores, and log Z (sequence × rank; sequence)."""

    labels: npt.NDArray[np.int32]
    scores: Array
    log_z: Array


@dataclass(frozen=True, eq=False)
class LabelSteps:
    """What is said of the labels of a block of sequences: steps that know the weights."""

    model: LabelWeights
    tables: Tables

    def encode(self, block: Block) -> EncodedBlock:
        return encode_block(replace(block, weight=None), self.tables)

    def probabilities(self, block: Block) -> Array:
        """p(label | all else) of each step (steps × labels)."""
        own, model = self.encode(block), self.model
        return in_rows(own, model.features.probabilities(model.weights, own))

    def pair_probabilities(self, block: Block) -> Array:
        """p(label before = i, label = j | all else) of each step; NaN for the first of a sequence."""
        own, model = self.encode(block), self.model
        return in_rows(own, model.features.pair_probabilities(model.weights, own))

    def best(self, block: Block, n: int = 1, *, log_z: bool = False) -> Best:
        """The n most probable labels of sequences; with `log_z`, also their log Z."""
        own, features, w = self.encode(block), self.model.features, self.model.weights
        assert block.lengths is not None
        paths, scores = features.best(w, own, block.lengths, n)
        return Best(paths, scores, in_sequences(own, features.log_z(w, own)) if log_z else np.zeros(len(scores)))

    def draw(self, block: Block, seed: int) -> Ints:
        """Labels drawn from p(labels | all else)."""
        own, model = self.encode(block), self.model
        uniforms = np.random.default_rng([seed, block.number]).random(own.n_steps)[own.layout.order]
        return np.asarray(in_rows(own, model.features.draw(model.weights, own, uniforms)), np.int64)

    def log_prob(self, block: Block) -> Array:
        """log p(labels that are there | all else) of each sequence; −inf where one of them is not known, or forbidden."""
        own, features, w = self.encode(block), self.model.features, self.model.weights
        strange = np.bincount(own.layout.ranks, own.labels == -2, len(own.layout.sequences)) > 0
        logs = np.where(strange, -np.inf, features.log_z(w, own, clamped=True) - features.log_z(w, own))
        return in_sequences(own, logs)

    def labels(self, block: Block) -> npt.NDArray[np.int32]:
        """The labels of steps by number, −1 where there is none, −2 where it is not known."""
        own = self.encode(block)
        return in_rows(own, own.labels)
