"""Attributes by number: what a column around a step may read, and a column of numbers as itself.

A cell of a column of lists is a text that begins with `LIST` and has it between its items; each item is an attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain as joined
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.variables import LIST, Finite, Variable
from suffice.models.linear_chain.transitions import BEGIN, END
from suffice.models.linear_chain.windows import LinearChain
from suffice.numerics.inference.finite.network import Ints

BIAS = "bias"


class Ragged(NamedTuple):
    """Several whole numbers for each of some things: those of thing i are items[starts[i]] … items[starts[i + 1] − 1].

    >>> Ragged.of([[3], [], [4, 5]]).take(np.array([2, 0])).items
    array([4, 5, 3])
    """

    starts: Ints
    items: Ints

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Ragged:
        starts = np.concatenate([[0], np.cumsum([len(x) for x in lists])]).astype(np.int64)
        return cls(starts, np.fromiter(joined.from_iterable(lists), np.int64, int(starts[-1])))

    @property
    def sizes(self) -> Ints:
        """How many each has."""
        return np.diff(self.starts)

    @property
    def owner(self) -> Ints:
        """The thing that each item is of."""
        return np.repeat(np.arange(len(self.starts) - 1), self.sizes)

    def take(self, which: Ints) -> Ragged:
        sizes = self.sizes[which]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        at = np.arange(starts[-1]) + np.repeat(self.starts[which] - starts[:-1], sizes)
        return Ragged(starts, self.items[at])

    def renumber(self, number: Ints) -> Ragged:
        """The same with other numbers, without those that have none (−1)."""
        items = number[self.items]
        kept = items >= 0
        sizes = np.bincount(self.owner[kept], minlength=len(self.starts) - 1)
        return Ragged(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), items[kept])

    @classmethod
    def beside(cls, parts: Sequence[Ragged]) -> Ragged:
        """What each thing has in one part, then in the next."""
        order = np.argsort(np.concatenate([p.owner for p in parts]), kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.sum([p.sizes for p in parts], axis=0))]).astype(np.int64)
        return cls(starts, np.concatenate([p.items for p in parts])[order])


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The attributes of a linear chain: the bias, then of each place its values, or itself if it holds numbers (None)."""

    chain: LinearChain
    labels: tuple[str, ...]
    values: tuple[tuple[str, ...] | None, ...]

    @classmethod
    def of(cls, chain: LinearChain, schema: Mapping[str, Variable], texts: Mapping[Any, Texts] | None = None) -> Vocabulary:
        """All that columns may read."""
        label: Any = schema[chain.label]
        known = texts_by_column(chain, schema) if texts is None else texts
        values = {spec: set(own.flat) for spec, own in known.items()}
        ends = [{BEGIN} if p.offset < 0 else {END} if p.offset else set() for p in chain.places]
        pairs = zip(chain.places, ends, strict=True)
        own = [tuple(sorted(values[p.column] | end)) if p.column in values else None for p, end in pairs]
        return cls(chain, label.states, tuple(own))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first attribute of each place, and one more than the last."""
        return tuple(np.cumsum([int(self.chain.bias), *(1 if v is None else len(v) for v in self.values)]).tolist())

    @property
    def size(self) -> int:
        return self.starts[-1]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """How each attribute is called."""
        own = [BIAS] if self.chain.bias else []
        for place, values in zip(self.chain.places, self.values, strict=True):
            own += [place.name] if values is None else [f"{place.name}={v}" for v in values]
        return tuple(own)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The places that hold numbers."""
        return tuple(i for i, v in enumerate(self.values) if v is None)

    @cached_property
    def codes(self) -> dict[Any, dict[str, int]]:
        """Of each column that places read, its texts by number: a text is looked up once for all steps around a label."""
        codes: dict[Any, dict[str, int]] = {}
        for place, values in zip(self.chain.places, self.values, strict=True):
            own = codes.setdefault(place.column, {BEGIN: 0, END: 1})
            for text in values or ():
                own.setdefault(text, len(own))
        return codes

    @cached_property
    def attributes(self) -> tuple[Ints, ...]:
        """Of each place, the attribute of each text by its number, and of none that is known; −1 where there is no attribute."""
        result = []
        for place, values, first in zip(self.chain.places, self.values, self.starts, strict=False):
            codes, own = self.codes[place.column], values or ()
            attributes = np.full(len(codes) + 1, -1, np.int64)
            attributes[np.fromiter(map(codes.__getitem__, own), np.int64, len(own))] = first + np.arange(len(own))
            result.append(attributes)
        return tuple(result)

    def reduce(self, kept: npt.NDArray[np.bool_]) -> Vocabulary:
        """Without some of the attributes; those that are numbers, and the bias, stay."""
        values = [
            None if v is None else tuple(x for x, keep in zip(v, kept[a : a + len(v)].tolist(), strict=True) if keep)
            for v, a in zip(self.values, self.starts, strict=False)
        ]
        return Vocabulary(self.chain, self.labels, tuple(values))


class Texts(NamedTuple):
    """What is derived of each state of a column: sizes[i] texts of state i, one after the other."""

    flat: list[str]
    sizes: Ints


def texts_of(spec: Any, variable: Finite) -> Texts:
    """What is derived of the states of a column: one text of each, or one for each item of a list."""
    if LIST not in "".join(variable.states):
        return Texts(spec.each(variable.states), np.ones(variable.n_states, np.int64))
    lists = [
        list(dict.fromkeys(spec.each([item for item in state.split(LIST)[1:] if item])))
        if state.startswith(LIST)
        else [spec.of(state)]
        for state in variable.states
    ]
    return Texts([t for some in lists for t in some], np.array([len(some) for some in lists], np.int64))


def texts_by_column(chain: LinearChain, schema: Mapping[str, Variable]) -> dict[Any, Texts]:
    """What is derived of each column of states, once."""
    columns = dict.fromkeys(p.column for p in chain.places)
    return {c: texts_of(c, v) for c in columns if isinstance(v := schema[c.source], Finite)}


@dataclass(frozen=True, eq=False)
class Tables:
    """The attributes that each state of a column makes at each place: after the states come the start, the end, and no cell.
    `sources[i]` is the column of place i and `offsets[i]` its step, `numbers` are the columns and steps of numbers."""

    sources: tuple[str, ...]
    offsets: tuple[int, ...]
    attributes: tuple[Ragged, ...]
    bias: bool
    n_attributes: int
    n_labels: int
    label: str
    numbers: tuple[tuple[str, int, int], ...]
    unknown: tuple[npt.NDArray[np.bool_], ...]
    """Which states read what the vocabulary does not have."""
    label_codes: Ints
    """The label that each state of the label's column is, −2 for one that is not known."""

    @classmethod
    def of(cls, vocabulary: Vocabulary, schema: Mapping[str, Variable], texts: Mapping[Any, Texts] | None = None) -> Tables:
        chain = vocabulary.chain
        known = texts_by_column(chain, schema) if texts is None else texts
        nothing = Texts([], np.zeros(0, np.int64))
        finite, numbers, tables, unknown = [], [], [], []
        found = {}
        for column, codes in vocabulary.codes.items():  # texts of all states, of the start and the end, −1 where not known
            own = known.get(column, nothing)
            flat = (*own.flat, BEGIN, END)
            places = np.fromiter(map(codes.get, flat, repeat(-1)), np.int64, len(flat))
            found[column] = places, np.concatenate([own.sizes, [1, 1, 0]])
        for number, place in enumerate(chain.places):
            if vocabulary.values[number] is None:
                numbers.append((place.column.source, place.offset, vocabulary.starts[number]))
                continue
            table, strange = _attributes(*found[place.column], vocabulary.attributes[number])
            finite.append(place)
            tables.append(table)
            unknown.append(strange)
        sources, offsets = tuple(p.column.source for p in finite), tuple(p.offset for p in finite)
        size, label, number_of = vocabulary.size, schema.get(chain.label), {s: i for i, s in enumerate(vocabulary.labels)}
        labels = np.array([number_of.get(s, -2) for s in label.states] if isinstance(label, Finite) else [], np.int64)
        ends = (tuple(numbers), tuple(unknown), labels)
        return cls(sources, offsets, tuple(tables), chain.bias, size, len(number_of), chain.label, *ends)

    def with_labels(self, labels: Sequence[str], schema: Mapping[str, Variable]) -> Tables:
        """The same with other numbers of labels: their places among these."""
        states = getattr(schema[self.label], "states", ())
        return replace(self, label_codes=np.array([labels.index(s) for s in states], np.int64))


def _attributes(numbers: Ints, sizes: Ints, attributes: Ints) -> tuple[Ragged, npt.NDArray[np.bool_]]:
    """The attributes of each state, of the start, the end and no cell; and which states read what is no value."""
    found = attributes[numbers]
    owner, there = np.repeat(np.arange(len(sizes)), sizes), found >= 0
    known = np.bincount(owner[there], minlength=len(sizes))
    strange = known < sizes
    strange[-3:] = False
    return Ragged(np.concatenate([[0], np.cumsum(known)]).astype(np.int64), found[there]), strange
