"""Attributes by number: what a column around a step may read, and a column of numbers as itself.

A cell of a column of lists is a text that begins with `LIST` and has it between its items; each item is an attribute.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain as joined
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.models.linear_chain.windows import LinearChain
from suffice.variables import LIST, Finite, Variable

Ints = npt.NDArray[np.int64]

BEGIN, END, BIAS = "<s>", "</s>", "bias"


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
        """Those of some of the things."""
        sizes = self.sizes[which]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        at = np.arange(starts[-1]) + np.repeat(self.starts[which] - starts[:-1], sizes)
        return Ragged(starts, self.items[at])

    def renumbered(self, number: Ints) -> Ragged:
        """The same with other numbers, without those that have none (−1)."""
        items = number[self.items]
        kept = items >= 0
        sizes = np.bincount(self.owner[kept], minlength=len(self.starts) - 1)
        return Ragged(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), items[kept])

    @classmethod
    def beside(cls, parts: Sequence[Ragged]) -> Ragged:
        """What each thing has in one part, then in the next."""
        owner = np.concatenate([p.owner for p in parts])
        order = np.argsort(owner, kind="stable")
        sizes = np.sum([p.sizes for p in parts], axis=0)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(starts, np.concatenate([p.items for p in parts])[order])


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The attributes of a linear chain: the bias, then of each place its values, or itself if it holds numbers (None)."""

    chain: LinearChain
    labels: tuple[str, ...]
    values: tuple[tuple[str, ...] | None, ...]

    @classmethod
    def of(cls, chain: LinearChain, schema: Mapping[str, Variable]) -> Vocabulary:
        """All that columns may read."""
        label: Any = schema[chain.label]
        texts = {p.column: texts_of(p.column, v) for p in chain.places if isinstance(v := schema[p.column.source], Finite)}
        values = {spec: {t for some in lists for t in some} for spec, lists in texts.items()}
        ends = [BEGIN if p.offset < 0 else END for p in chain.places]
        own = [
            tuple(sorted(values[p.column] | {end} if p.offset else values[p.column])) if p.column in values else None
            for p, end in zip(chain.places, ends, strict=True)
        ]
        return cls(chain, label.states, tuple(own))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The first attribute of each place, and one more than the last."""
        sizes = [int(self.chain.bias), *(1 if v is None else len(v) for v in self.values)]
        return tuple(np.cumsum(sizes).tolist())

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

    def reduced(self, kept: npt.NDArray[np.bool_]) -> Vocabulary:
        """Without some of the attributes; those that are numbers, and the bias, stay."""
        values = [
            None if v is None else tuple(x for x, keep in zip(v, kept[a : a + len(v)].tolist(), strict=True) if keep)
            for v, a in zip(self.values, self.starts, strict=False)
        ]
        return Vocabulary(self.chain, self.labels, tuple(values))


def texts_of(spec: Any, variable: Finite) -> list[tuple[str, ...]]:
    """What is derived of each state of a column: one text, or one for each item of a list.

    >>> from suffice.models.linear_chain.derived import Lower
    >>> texts_of(Lower("word"), Finite("word", ["A", LIST + "B" + LIST + "C"]))
    [('a',), ('b', 'c')]
    """
    return [
        tuple(dict.fromkeys(spec.of(item) for item in state.split(LIST)[1:] if item))
        if state.startswith(LIST)
        else (spec.of(state),)
        for state in variable.states
    ]


@dataclass(frozen=True, eq=False)
class Tables:
    """The attributes that each state of a column makes at each place: after the states come the start, the end, and no cell.

    `sources[i]` is the column of place i and `offsets[i]` its step, `numbers` are the columns and steps of numbers.
    """

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
    def of(cls, vocabulary: Vocabulary, schema: Mapping[str, Variable]) -> Tables:
        chain = vocabulary.chain
        finite, numbers, tables, unknown = [], [], [], []
        texts: dict[Any, list[tuple[str, ...]]] = {}
        for place, values, first in zip(chain.places, vocabulary.values, vocabulary.starts, strict=False):
            if values is None:
                numbers.append((place.column.source, place.offset, first))
                continue
            variable: Any = schema[place.column.source]
            if place.column not in texts:
                texts[place.column] = texts_of(place.column, variable) if isinstance(variable, Finite) else []
            code = {v: first + i for i, v in enumerate(values)}
            own = [[code[t] for t in some if t in code] for some in texts[place.column]]
            unknown.append(np.array([len(x) < len(some) for x, some in zip(own, texts[place.column], strict=True)] + [False] * 3))
            outside = [[code[mark]] if mark in code else [] for mark in (BEGIN, END)]
            tables.append(Ragged.of([*own, *outside, []]))
            finite.append(place)
        sources, offsets = tuple(p.column.source for p in finite), tuple(p.offset for p in finite)
        size, label, known = vocabulary.size, schema.get(chain.label), {s: i for i, s in enumerate(vocabulary.labels)}
        codes = np.array([known.get(s, -2) for s in label.states] if isinstance(label, Finite) else [], np.int64)
        ends = (tuple(numbers), tuple(unknown), codes)
        return cls(sources, offsets, tuple(tables), chain.bias, size, len(known), chain.label, *ends)
