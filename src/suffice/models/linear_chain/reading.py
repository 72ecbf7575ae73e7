"""Sequences as a fitted linear chain reads them, block by block, and what is said of their labels: what they are, why a step has
its label, and how well labels are predicted (accuracy, precision and recall of each, and of whole entities, BIO)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.basis.output.display import OneTable, Tabular
from suffice.basis.variables import Finite, Real
from suffice.engines.engine import Block
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, listing, nearest, note
from suffice.families.protocol.family import frame
from suffice.models.linear_chain.encoding import EncodedBlock, encode_block
from suffice.models.linear_chain.features import Attributes, PairFeatures, put_back
from suffice.models.linear_chain.vocabulary import Tables, Vocabulary
from suffice.numerics.inference.finite.network import Array, Ints

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class LabelWeights:
    """A vocabulary, the pairs that have weights, and the weights: all that answers need, and what travels."""

    vocabulary: Vocabulary
    features: PairFeatures
    weights: Array


class Best(NamedTuple):
    """The best labels of steps (rank × step), their scores, and log Z (sequence × rank; sequence)."""

    labels: npt.NDArray[np.int32]
    scores: Array
    log_z: Array


@dataclass(frozen=True, eq=False)
class LabelReading:
    """Sequences and the weights that are asked about them, and what is said of the labels of a block of them."""

    model: LabelWeights
    sequences: Sequences
    tables: Tables

    @classmethod
    def of(cls, model: LabelWeights, x: Any, *, labels: bool = False) -> LabelReading:
        """Sequences read with the columns of a chain, of the kinds that it knows, and with the labels that they have if these are
        asked about."""
        vocabulary, rows = model.vocabulary, checked_sequences(x)
        chain = vocabulary.chain
        wanted = (*chain.columns, *([chain.label] if labels else []))
        for name in wanted:
            if name not in rows.columns:
                raise DataError(f"the sequences have no column {name!r}, which the chain reads{nearest(name, rows.columns)}")
        read = zip(chain.places, vocabulary.values, strict=True)
        kinds: dict[str, Any] = {p.column.source: Real if v is None else Finite for p, v in read}
        kinds |= {chain.label: Finite} if labels else {}
        rows = as_kinds(rows.select(wanted or rows.columns[:1]), kinds)
        model.features.check_lengths(vocabulary, rows)
        return cls(model, rows, Tables.of(vocabulary, rows.schema))

    def __getstate__(self) -> dict[str, Any]:
        """What travels with the steps of a reading: how blocks are read, without the sequences themselves."""
        return {**vars(self), "sequences": None}

    def map(self, step: Callable[[Block], T], what: str) -> Iterator[T]:
        """What a step makes of each block of whole sequences."""
        return self.sequences.data.map(step, what=what)

    def tell_unknown(self) -> None:
        """Note how many cells read what the chain has no attribute for."""
        known = zip(self.model.vocabulary.chain.places, self.model.vocabulary.values, strict=True)
        places = [p for p, values in known if values is not None]
        counts = self.sequences.data.fold(partial(_count_unknown, self.tables, [p.pairs for p in places])).tolist()
        by_name = {p.name: n for p, n in sorted(zip(places, counts, strict=True), key=lambda pair: not pair[0].pairs)}
        if found := [f"{name} {by_name[name]:,}" for name in dict.fromkeys(p.name for p in places) if by_name[name]]:
            note(
                f"cells that training never saw, or too seldom, are ignored: {listing(found, style='str')}, "
                f"of {self.sequences.n_steps:,} steps"
            )

    def encode(self, block: Block) -> EncodedBlock:
        return encode_block(replace(block, weight=None), self.tables)

    def probabilities(self, block: Block) -> Array:
        """p(label | all else) of each step (steps × labels)."""
        own, model = self.encode(block), self.model
        return put_back(model.features.probabilities(model.weights, own), own.layout.order)

    def pair_probabilities(self, block: Block) -> Array:
        """p(label before = i, label = j | all else) of each step; NaN for the first of a sequence."""
        own, model = self.encode(block), self.model
        return put_back(model.features.pair_probabilities(model.weights, own), own.layout.order)

    def best(self, block: Block, n: int = 1, *, log_z: bool = False) -> Best:
        """The n most probable labels of sequences; with `log_z`, also their log Z."""
        own, features, w = self.encode(block), self.model.features, self.model.weights
        assert block.lengths is not None
        paths, scores = features.best(w, own, block.lengths, n)
        return Best(paths, scores, put_back(features.log_z(w, own), own.layout.sequences) if log_z else np.zeros(len(scores)))

    def draw(self, block: Block, seed: int) -> Ints:
        """Labels drawn from p(labels | all else)."""
        own, model = self.encode(block), self.model
        uniforms = np.random.default_rng([seed, block.number]).random(own.n_steps)[own.layout.order]
        return np.asarray(put_back(model.features.draw(model.weights, own, uniforms), own.layout.order), np.int64)

    def log_prob(self, block: Block) -> Array:
        """log p(labels that are there | all else) of each sequence; −inf where one of them is not known, or forbidden."""
        own, features, w = self.encode(block), self.model.features, self.model.weights
        strange = np.bincount(own.layout.ranks, own.labels == -2, len(own.layout.sequences)) > 0
        logs = np.where(strange, -np.inf, features.log_z(w, own, clamped=True) - features.log_z(w, own))
        return put_back(logs, own.layout.sequences)

    def labels(self, block: Block) -> npt.NDArray[np.int32]:
        """The labels of steps by number, −1 where there is none, −2 where it is not known."""
        own = self.encode(block)
        return put_back(own.labels, own.layout.order)


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


def _count_unknown(tables: Tables, pairs: Sequence[bool], block: Block) -> Ints:
    """How many cells of each place read what the vocabulary does not have; places with weights of `pairs` of labels are not read
    at the first step."""
    assert block.lengths is not None
    lengths = np.repeat(block.lengths, block.lengths)
    at = np.arange(len(lengths)) - np.repeat(np.cumsum(block.lengths) - block.lengths, block.lengths)
    result = np.zeros(len(pairs), np.int64)
    for i, (source, offset, unknown) in enumerate(zip(tables.sources, tables.offsets, tables.unknown, strict=True)):
        codes, step = block.columns[source], at - offset  # of which a cell is read: the first word is the next one of none
        if codes.dtype.kind != "f":
            read = (step >= pairs[i]) & (step < lengths)
            result[i] = np.count_nonzero(unknown[np.minimum(codes, len(unknown) - 1)] & read)
    return result


@dataclass(frozen=True, eq=False, repr=False)
class LabelExplanation(OneTable):
    """Contributions to the score of the best label of a step and of the next most probable, by attribute and neighbour."""

    row: int
    label: str
    other: str
    probability: float
    other_probability: float
    contributions: tuple[tuple[str, float, float], ...]
    """What, and what it adds to either label; those that tell them apart most come first."""

    @classmethod
    def of(
        cls, model: LabelWeights, row: int, attributes: tuple[Attributes, Attributes], around: tuple[int, ...], probs: Array
    ) -> LabelExplanation:
        """The attributes of a step and of the next one with their values, the best labels of two steps before it, itself and two
        after it (−1 if there is none), and p(label)."""
        labels, best = model.vocabulary.labels, around[2]
        order = np.argsort(-probs, kind="stable")
        other = int(order[0] if order[0] != best else order[min(1, len(order) - 1)])
        one, two = (
            model.features.contributions(model.vocabulary, model.weights, attributes, (*around[:2], j, *around[3:]))
            for j in (best, other)
        )
        parts = sorted([(what, one[what], two[what]) for what in one], key=lambda part: (-abs(part[1] - part[2]), part[0]))
        return cls(row, labels[best], labels[other], float(probs[best]), float(probs[other]), tuple(parts))

    def to_frame(self) -> Any:
        """One row for each contribution."""
        header, rows = self._table()
        return frame({name: [row[i] for row in rows] for i, name in enumerate(header)})

    def _headline(self) -> str:
        return f"row {self.row} is {self.label} (p = {self.probability:.4f}), not {self.other} (p = {self.other_probability:.4f})"

    def _table(self) -> tuple[list[str], list[list[object]]]:
        rows: list[list[object]] = [[what, a, b, a - b] for what, a, b in self.contributions]
        return ["attribute", self.label, self.other, "difference"], rows


def _explain(reading: LabelReading, at: int, firsts: Mapping[int, int], row: int, block: Block) -> LabelExplanation | None:
    """The explanation of one step, counted through all blocks, in the block that has it, whose first step is known; `row` is what
    the step is called."""
    place = at - firsts[block.number]
    if not 0 <= place < block.n_rows:
        return None
    assert block.lengths is not None
    ends, own = np.cumsum(block.lengths), reading.encode(block)
    q = int(np.searchsorted(ends, place, "right"))
    labels, first, end = reading.best(block).labels[0].tolist(), int(ends[q] - block.lengths[q]), int(ends[q])

    def attributes(step: int) -> list[tuple[int, float]]:
        p = int(np.flatnonzero(own.layout.order == step)[0])
        found = own.attributes.take(own.groups[:, p].astype(np.int64)).items.tolist()
        numbers = zip(reading.tables.numbers, own.numbers[p].tolist(), strict=True)
        return [*((a, 1.0) for a in found), *((a, x) for (_, _, a), x in numbers)]

    best = tuple(labels[i] if first <= i < end else -1 for i in range(place - 2, place + 3))
    following = attributes(place + 1) if place + 1 < end else []
    return LabelExplanation.of(reading.model, row, (attributes(place), following), best, reading.probabilities(block)[place])


def explain_step(reading: LabelReading, at: int, row: int) -> LabelExplanation:
    """The explanation of one step, counted through all sequences as they are arranged."""
    numbers = list(reading.map(attrgetter("number", "n_rows"), ""))
    firsts = np.cumsum([0, *(n for _, n in numbers)]).tolist()
    first = {number: first for (number, _), first in zip(numbers, firsts[:-1], strict=True)}
    return next(found for found in reading.map(partial(_explain, reading, at, first, row), "") if found is not None)


BEGINS, ENDS = ("B-", "S-"), ("E-", "S-")
MARKS = ("B-", "I-", "E-", "S-")
"""How labels of entities begin; those that begin one, and that end one."""

HEADER = ["label", "precision", "recall", "f1", "n"]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Tabular):
    """Counts of labels: `right`, `predicted` and `there` of each; the same of entities by their kind, where labels are BIO.

    >>> found = Evaluation.of(np.array([0, 1, 1]), np.array([0, 1, 0]), np.array([3]), ["N", "V"])
    >>> found.accuracy, found.recall("V")
    (0.6666666666666666, 0.5)
    """

    n_right: int
    n: int
    n_unknown: int
    labels: tuple[str, ...]
    counts: npt.NDArray[np.int64]
    """right, predicted, there × labels."""
    kinds: tuple[str, ...]
    entities: npt.NDArray[np.int64]

    @classmethod
    def of(cls, true: Ints, found: Ints, lengths: Ints, labels: Sequence[str], n_known: int | None = None) -> Evaluation:
        """True labels, −1 where there is none, and those that were found; of the labels the chain knows the first."""
        there = true != -1
        L = len(labels)
        n_unknown = int((true >= (L if n_known is None else n_known)).sum())
        right = there & (true == found)
        counts = np.array([np.bincount(x, minlength=L) for x in (found[right], found[there], true[true >= 0])])
        kinds, sequence = entity_kinds(labels), np.repeat(np.arange(len(lengths)), lengths)
        # what is found where the true label is missing does not count
        own, told = (entities(x, sequence, labels) if kinds else set() for x in (true, np.where(there, found, -1)))
        times = [Counter(kind for _, _, kind in some) for some in (own & told, told, own)]
        by_kind = np.array([[n[k] for k in kinds] for n in times], np.int64)
        return cls(int(right.sum()), int(there.sum()), n_unknown, tuple(labels), counts, kinds, by_kind)

    @property
    def accuracy(self) -> float:
        """The share of steps with a label whose label is found."""
        return self.n_right / self.n if self.n else float("nan")

    def precision(self, label: str) -> float:
        """The share of steps that are said to have a label and have it."""
        return self._rates(self.counts, self.labels.index(label))[0]

    def recall(self, label: str) -> float:
        """The share of steps with a label that are said to have it."""
        return self._rates(self.counts, self.labels.index(label))[1]

    @property
    def entity_f1(self) -> float:
        """F1 of entities of all kinds: those with the right first and last step and kind. NaN if labels are not BIO."""
        return self._rates(self.entities.sum(axis=1, keepdims=True), 0)[2] if self.kinds else float("nan")

    @staticmethod
    def _rates(counts: npt.NDArray[np.int64], i: int) -> tuple[float, float, float]:
        right, predicted, there = counts[:, i].tolist()
        precision = right / predicted if predicted else float("nan")
        recall = right / there if there else float("nan")
        return precision, recall, 2 * right / (predicted + there) if predicted + there else float("nan")

    def to_frame(self) -> Any:
        """One row for each label, then for each kind of entity."""
        rows = self._rows()
        return frame({name: [row[i] for row in rows] for i, name in enumerate(HEADER)})

    def _rows(self) -> list[list[object]]:
        own: list[list[object]] = [[x, *self._rates(self.counts, i), int(self.counts[2, i])] for i, x in enumerate(self.labels)]
        return own + [[f"entity {k}", *self._rates(self.entities, i), int(self.entities[2, i])] for i, k in enumerate(self.kinds)]

    def _headline(self) -> str:
        whole = f"; F1 of entities {self.entity_f1:.4f}" if self.kinds else ""
        strange = f"; {self.n_unknown:,} have a label that the chain does not know" if self.n_unknown else ""
        return f"Evaluation: {self.n_right:,} of {self.n:,} labels are right ({self.accuracy:.2%}){whole}{strange}"

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Any]], str]:
        rows = self._rows()
        return [(HEADER, rows[:limit])], f"\nand {len(rows) - limit} more" if len(rows) > limit else ""


def entity_kinds(labels: Sequence[str]) -> tuple[str, ...]:
    """The kinds of entities that labels speak of; none if labels are not B-…, I-… and O, or with E-… and S-…."""
    marked = [x for x in labels if x[:2] in MARKS]
    if not any(x[:2] in BEGINS for x in marked) or any(x != "O" and x[:2] not in MARKS for x in labels):
        return ()
    return tuple(sorted({x[2:] for x in marked}))


def entities(codes: Ints, sequence: Ints, labels: Sequence[str]) -> set[tuple[int, int, str]]:
    """First step, last step and kind of each entity; I- or E- that follows nothing of its kind begins one, as in conlleval."""
    result: set[tuple[int, int, str]] = set()
    begin, kind, last, before = -1, "", -1, "O"
    for i, (code, own) in enumerate(zip(codes.tolist(), sequence.tolist(), strict=True)):
        label = labels[code] if code >= 0 else "O"
        goes_on = label in (f"I-{kind}", f"E-{kind}") and begin >= 0 and own == last and before[:2] not in ENDS
        if begin >= 0 and not goes_on:
            result.add((begin, i - 1, kind))
            begin, kind = -1, ""
        if label != "O" and not goes_on:
            begin, kind = i, label[2:]
        last, before = own, label
    if begin >= 0:
        result.add((begin, len(codes) - 1, kind))
    return result
