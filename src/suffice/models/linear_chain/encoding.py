"""Sequences as integers: the groups of attributes that each step has, its label, and which pairs of them occur.

Attributes that depend on one row at one offset come together: a *group*. Distinct groups of a block are numbered once, so that a
score is summed, and an expectation handed back, once for each of them and not for each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import Block, Step, is_missing
from suffice.engines.local.kept import KeptValue, ValueStore
from suffice.models.linear_chain.vocabulary import Ragged, Tables
from suffice.numerics.inference.chains.conditional import SequenceLayout
from suffice.numerics.inference.finite.network import Array, Ints

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class EncodedBlock:
    """Sequences, the longest first, steps side by side (`layout`). `labels` are −1 where there are none and −2 where it is none
    that is known, `weights` one for each step or None, `numbers` have a column for each attribute that is a number."""

    layout: SequenceLayout
    groups: Codes
    attributes: Ragged
    numbers: Array
    labels: Codes
    weights: Array | None

    @property
    def n_steps(self) -> int:
        return len(self.labels)

    def renumber(self, number: Ints) -> EncodedBlock:
        """With other numbers of attributes, without those that have none."""
        attributes = self.attributes.renumber(number)
        return replace(self, attributes=attributes._replace(items=attributes.items.astype(np.int32)))

    @property
    def n_bytes(self) -> int:
        arrays = (self.layout.order, self.layout.sequences, self.groups, *self.attributes, self.numbers, self.labels)
        return sum(x.nbytes for x in arrays) + (0 if self.weights is None else self.weights.nbytes)


def encode_block(block: Block, tables: Tables, sequences: npt.NDArray[np.bool_] | None = None) -> EncodedBlock:
    """The sequences of a block, or some of them, as integers."""
    lengths, rows = _lengths(block), slice(None)
    if sequences is not None:
        rows: Any = np.repeat(sequences, lengths)  # type: ignore[no-redef]
        lengths = lengths[sequences]
    layout = SequenceLayout.of(lengths, tables.n_labels)
    starts = np.cumsum(lengths) - lengths
    place, last = np.arange(lengths.sum()) - np.repeat(starts, lengths), np.repeat(lengths, lengths)
    cells = {n: _cells(block.columns[n][rows], len(t.starts) - 4) for n, t in zip(tables.sources, tables.attributes, strict=True)}
    groups: list[Ints] = []
    parts: list[Ragged] = []
    for number, offset in enumerate(sorted(set(tables.offsets)) or [0] * int(tables.bias)):
        own, attributes = _groups(tables, offset, cells, place, last, bias=tables.bias and number == 0)
        groups.append(own[layout.order] + sum(len(p.starts) - 1 for p in parts))
        parts.append(attributes)
    numbers = [_shift_cells(block.columns[n][rows], offset, place, last, np.nan) for n, offset, _ in tables.numbers]
    label = _labels(block.columns[tables.label][rows], tables) if tables.label in block.columns else np.full(len(place), -1)
    weights = None if block.weight is None else np.asarray(block.weight[rows][layout.order], np.float64)
    return EncodedBlock(
        layout,
        np.array(groups, np.int32).reshape(len(groups), len(place)),
        _after(parts),
        np.ascontiguousarray(np.nan_to_num(np.array(numbers, np.float64).reshape(len(numbers), len(place)).T[layout.order])),
        np.asarray(label[layout.order], np.int32),
        weights,
    )


def _lengths(block: Block) -> Ints:
    assert block.lengths is not None
    return block.lengths


def _labels(codes: npt.NDArray[Any], tables: Tables) -> Ints:
    if codes.dtype.kind == "f":  # a column without a cell
        return np.full(len(codes), -1)
    lost = is_missing(codes)
    return np.where(lost, -1, tables.label_codes[np.where(lost, 0, codes)])


def _cells(codes: npt.NDArray[Any], n_states: int) -> Ints:
    """States by number, n + 2 where there is none."""
    if codes.dtype.kind == "f":
        return np.full(len(codes), n_states + 2)
    return np.where(is_missing(codes), n_states + 2, codes.astype(np.int64))


def _shift_cells(cells: npt.NDArray[Any], offset: int, place: Ints, length: Ints, outside: Any) -> npt.NDArray[Any]:
    """The cell so many steps on in the same sequence."""
    if not offset:
        return cells
    inside = (place + offset >= 0) & (place + offset < length)
    at = np.where(inside, np.arange(len(cells)) + offset, 0)
    return np.where(inside, cells[at], outside)


def _groups(tables: Tables, offset: int, cells: dict[str, Ints], place: Ints, length: Ints, *, bias: bool) -> tuple[Ints, Ragged]:
    """The group of each step at an offset, and the attributes of each group."""
    mine = [i for i, o in enumerate(tables.offsets) if o == offset]
    sizes = {tables.sources[i]: len(tables.attributes[i].starts) - 1 for i in mine}
    shown = {n: _shift_cells(cells[n], offset, place, length, s - 3 if offset < 0 else s - 2) for n, s in sizes.items()}
    own, first = distinct(list(shown.values()), list(sizes.values()), len(place))
    parts = [tables.attributes[i].take(shown[tables.sources[i]][first]) for i in mine]
    if bias:
        parts.insert(0, Ragged(np.arange(len(first) + 1), np.zeros(len(first), np.int64)))
    return own, Ragged.beside(parts)


def distinct(columns: Sequence[Ints], sizes: Sequence[int], n: int) -> tuple[Ints, Ints]:
    """Rows of codes numbered by what they are, and the place of one of each."""
    key, size = np.zeros(n, np.int64), 1
    for column, radix in zip(columns, sizes, strict=True):
        if size * radix > 2**62:
            key = np.unique(key, return_inverse=True)[1]
            size = n
        key, size = key * radix + column, size * radix
    if size > 4 * n + 1024:
        _, first, own = np.unique(key, return_index=True, return_inverse=True)
        return own, first
    at = np.full(size, -1, np.int64)
    at[key[::-1]] = np.arange(n)[::-1]
    there = at >= 0
    return (np.cumsum(there) - 1)[key], at[there]


def _after(parts: Sequence[Ragged]) -> Ragged:
    """The things of one part after those of another."""
    none = np.zeros(0, np.int64)
    starts = np.concatenate([[0], np.cumsum(np.concatenate([none, *(p.sizes for p in parts)]))]).astype(np.int64)
    return Ragged(starts, np.concatenate([none, *(p.items for p in parts)]).astype(np.int32))


@dataclass(frozen=True, eq=False)
class PairCounts:
    """How often pairs occur, by their numbers, which rise."""

    keys: Ints
    counts: Array

    @classmethod
    def of(cls, keys: Ints, counts: Array) -> PairCounts:
        """The sum of counts of keys in any order."""
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.zeros(0, np.int64)
        return cls(keys[first], np.add.reduceat(counts[order], first) if len(first) else np.zeros(0))

    def at(self, keys: Ints) -> Array:
        """How often each of some pairs occurs."""
        if not len(self.keys):
            return np.zeros(len(keys))
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[places] == keys, self.counts[places], 0.0)

    def __add__(self, other: PairCounts) -> PairCounts:
        if not len(self.keys) or not len(other.keys):
            return self if len(self.keys) else other
        return PairCounts.of(np.concatenate([self.keys, other.keys]), np.concatenate([self.counts, other.counts]))


def pair_counts(block: EncodedBlock, n_attributes: int, n_labels: int, numbers: Sequence[int]) -> PairCounts:
    """How often each attribute goes with each label, at a · L + j, and each label follows another, at (A + i) · L + j."""
    L, seen = n_labels, block.labels >= 0
    weights = np.ones(block.n_steps) if block.weights is None else block.weights
    flat = (block.groups.astype(np.int64) * L + block.labels)[:, seen].reshape(-1)
    together = np.bincount(flat, np.tile(weights[seen], len(block.groups)), L * (len(block.attributes.starts) - 1))
    which = np.flatnonzero(together)
    some = block.attributes.take(which // L)
    keys = [some.items.astype(np.int64) * L + np.repeat(which % L, some.sizes)]
    counts: list[Array] = [np.repeat(together[which], some.sizes).astype(np.float64)]
    for column, attribute in enumerate(numbers):
        there = seen & (block.numbers[:, column] != 0.0)
        keys.append(attribute * L + block.labels[there].astype(np.int64))
        counts.append(weights[there])
    before, after = block.layout.pairs
    both = seen[before] & seen[after]
    keys.append((n_attributes + block.labels[before][both].astype(np.int64)) * L + block.labels[after][both])
    counts.append(weights[after][both])
    return PairCounts.of(np.concatenate(keys), np.concatenate(counts))


Encoded = tuple[EncodedBlock, EncodedBlock | None]
"""The sequences of a block that have all of their labels, and those that have some."""


class Findings(NamedTuple):
    """What sequences show: how often pairs occur where labels are given; of these, those in sequences that lack some labels;
    the sums of numbers by label in the others; sequences without a label, steps without one in others, and the blocks."""

    counts: PairCounts
    partial: PairCounts
    sums: Array
    n_blank: int
    n_gaps: int
    n_partial: int
    blocks: dict[int, KeptValue[Encoded]]


@dataclass(frozen=True, eq=False)
class FindPairs(Step[Findings]):
    """Encodes sequences, and counts the pairs of attributes and labels in them. With a store the blocks are kept, too."""

    tables: Tables
    store: ValueStore | None

    def of(self, block: Block) -> Findings:
        tables, L = self.tables, self.tables.n_labels
        whole, partly, tally = split_by_labels(block, tables)
        places = [a for _, _, a in tables.numbers]
        own = [pair_counts(x, tables.n_attributes, L, places) for x in (whole, partly) if x is not None]
        partial = own[1] if partly is not None else PairCounts(np.zeros(0, np.int64), np.zeros(0))
        size = whole.n_bytes + (0 if partly is None else partly.n_bytes)
        kept = {} if self.store is None else {block.number: self.store.keep((whole, partly), size)}
        weights = 1.0 if whole.weights is None else whole.weights
        sums = [np.bincount(whole.labels, x * weights, L) for x in whole.numbers.T]  # Σ w x of each number by label
        return Findings(own[0] + partial, partial, np.array(sums, np.float64).reshape(len(sums), L), *tally, kept)


def split_by_labels(block: Block, tables: Tables) -> tuple[EncodedBlock, EncodedBlock | None, tuple[int, int, int]]:
    """Sequences with all of their labels, those with some, and how many have none, how many steps lack one, how many some. A
    sequence without a label tells nothing of labels given all else: it is left out."""
    lengths = _lengths(block)
    there = _labels(block.columns[tables.label], tables) >= 0
    n_seen = np.add.reduceat(there, np.cumsum(lengths) - lengths, dtype=np.int64) if len(lengths) else np.zeros(0, np.int64)
    whole, partly = n_seen == lengths, (n_seen > 0) & (n_seen < lengths)
    tally = (int((n_seen == 0).sum()), int((lengths - n_seen)[partly].sum()), int(partly.sum()))
    if whole.all():
        return encode_block(block, tables), None, tally
    return encode_block(block, tables, whole), encode_block(block, tables, partly) if partly.any() else None, tally
