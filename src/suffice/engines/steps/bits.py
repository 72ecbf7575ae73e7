"""Bits: rows of finite columns as one bit a row and state, and the steps that count many small tables from them.

Weights are whole numbers here: how many equal rows each row stands for. Rows whose weight has the binary digit 2ᵖ are bits that
count 2ᵖ, so that a table of counts is no more work than its rows. Counts add up the same in any order, over blocks as over
machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Ints
from suffice.engines.steps.blocks import Array, Block, Step, Sum

Counts = npt.NDArray[np.signedinteger[Any]]
Sets = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
T_co = TypeVar("T_co", covariant=True)

BITS = 128
"""States up to which a column has bits; tables with a column of more are counted row by row."""

WORDS = 512
"""Words of a bitmap in one block, of two blocks of rows: the bitmaps of a table's cells then stay in the nearest caches."""

SHARED = 2e6
"""Nanoseconds of work from which on threads share it."""

PACKED = 6
"""States up to which packing the comparisons of a column with each is quicker than setting single bits."""


@dataclass(frozen=True)
class BitLayout:
    """The columns, their numbers of states, the states up to which one has bits, and whether counts may reach 2³¹."""

    names: tuple[str, ...]
    n_states: tuple[int, ...]
    most: int = BITS
    wide: bool = False
    sizes: Ints = field(init=False, repr=False, compare=False)
    narrow: npt.NDArray[np.bool_] = field(init=False, repr=False, compare=False)
    """Which columns have bits,"""
    first: Ints = field(init=False, repr=False, compare=False)
    """and where those of each begin."""
    counts: np.dtype[np.signedinteger[Any]] = field(init=False, repr=False, compare=False)
    """The type of counts."""

    def __post_init__(self) -> None:
        sizes = np.array(self.n_states, np.int64)
        first = np.concatenate([[0], np.cumsum(np.where(sizes <= self.most, sizes, 0))]).astype(np.int64)
        counts = np.dtype(np.int64 if self.wide else np.int32)
        for name, value in (("sizes", sizes), ("narrow", sizes <= self.most), ("first", first), ("counts", counts)):
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class BitBlock:
    """Rows, in two forms; a block that no step asks one of may leave it empty. `bits[b, first[v] + s]` has the rows, 64 to a
    word, in which column v is in state s, each of which counts `times[b]`. `columns` are the codes of the same rows, and `weight`
    is what each of them counts, empty where all count once."""

    bits: Words = field(default_factory=lambda: np.zeros((0, 0, 0), np.uint64))
    times: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    columns: Sequence[Array] | Array = ()
    weight: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of_codes(cls, block: Block, layout: BitLayout) -> BitBlock:
        """The rows of a block as codes alone."""
        weight = np.zeros(0, np.int64) if block.weight is None else block.weight.astype(np.int64)
        return cls(columns=tuple(block.columns[n] for n in layout.names), weight=weight)

    @cached_property
    def codes(self) -> npt.NDArray[np.uint16]:
        """[column, row]."""
        return np.asarray(self.columns, np.uint16)


class Plane(NamedTuple):
    """Rows of a block that count as often: their places, and their number."""

    times: int
    rows: Any
    n: int


def planes(block: Block) -> list[Plane]:
    """All rows once, or where they have weights those of each binary digit."""
    if block.weight is None:
        return [Plane(1, slice(None), block.n_rows)]
    weight = block.weight.astype(np.int64)
    digits = [p for p in range(int(weight.max(initial=0)).bit_length()) if (weight >> p & 1).any()]
    each = [np.flatnonzero(weight >> p & 1) for p in digits]
    return [Plane(1 << p, rows, len(rows)) for p, rows in zip(digits, each, strict=True)]


def n_words(n_rows: int) -> int:
    """The words that so many bits take; of many, full vectors of them."""
    return -(-n_rows // 64) if n_rows <= 512 else -(-n_rows // 512) * 8


def bit_block(block: Block, layout: BitLayout) -> BitBlock:
    """The rows of a block as bits and codes.

    >>> block = Block({"x": np.array([0, 1, 1], np.uint8)}, np.array([5.0, 2.0, 1.0]))
    >>> bits = bit_block(block, BitLayout(("x",), (2,)))
    >>> bits.times, bits.bits[:, :, 0].tolist()
    (array([1, 2, 4]), [[1, 2], [0, 1], [1, 0]])
    """
    parts = planes(block)
    bits = np.zeros((len(parts), int(layout.first[-1]), n_words(max((p.n for p in parts), default=0))), np.uint64)
    for plane, out in zip(parts, bits, strict=True):
        set_plane(out, 0, block, plane, layout)
    return replace(BitBlock.of_codes(block, layout), bits=bits, times=np.array([p.times for p in parts], np.int64))


def set_plane(bits: Words, word: int, block: Block, plane: Plane, layout: BitLayout) -> None:
    """Set the bits [state, word] of some rows of a block, from a word on."""
    from suffice.numerics.kernels.counting.bitmaps import set_bits

    bytes_of = bits.view(np.uint8)
    for v, (name, size) in enumerate(zip(layout.names, layout.n_states, strict=True)):
        if size > layout.most:
            continue
        codes, first = block.columns[name][plane.rows], int(layout.first[v])
        if size <= PACKED:
            for s in range(size):
                packed = np.packbits(codes == s, bitorder="little")
                bytes_of[first + s, 8 * word : 8 * word + len(packed)] = packed
        else:
            codes = np.ascontiguousarray(codes, np.uint8)
            codes.flags.writeable = False
            set_bits(codes, first, word, bits)


@dataclass(frozen=True, eq=False)
class BitStep(Step[Counts]):
    """What is counted. Its results are arrays of whole numbers. Over ordinary blocks, their bits are made on the way."""

    layout: BitLayout
    runs: ClassVar[int] = 1
    coded: ClassVar[bool] = False
    """Whether it looks at the codes of rows, not at their bits."""

    @property
    def n_cells(self) -> int:
        """The length of its result."""
        raise NotImplementedError

    def add(self, block: BitBlock, out: Counts) -> None:
        """Add a block's counts to the result."""
        raise NotImplementedError

    def __call__(self, blocks: Iterable[Block]) -> Sum[Counts]:
        total: Sum[Counts] = Sum()
        total.exact = np.zeros(self.n_cells, self.layout.counts)
        for block in blocks:
            self.add((BitBlock.of_codes if self.coded else bit_block)(block, self.layout), total.exact)
        return total

    @property
    def key(self) -> tuple[Any, ...]:
        """What it counts: the same of steps whose counts are the same."""
        return (type(self),)

    def costs(self, block: BitBlock) -> Array:
        """Nanoseconds that each of its parts takes for a block, about."""
        return np.zeros(1)

    def parts(self, n: int, costs: Array) -> Sequence[BitStep]:
        """Steps that add to different cells of the result, for n threads; together they are this one."""
        return [self]


class Fused(Protocol[T_co]):
    """A step that makes something of the counts of all rows as soon as it has them, and so does not add."""

    coded: ClassVar[bool]

    def of(self, block: BitBlock) -> T_co: ...


@dataclass(frozen=True, eq=False)
class CountStates(BitStep):
    """The number of rows of each state of each column."""

    @property
    def n_cells(self) -> int:
        return int(self.layout.first[-1])

    def add(self, block: BitBlock, out: Counts) -> None:
        from suffice.numerics.kernels.counting.bitmaps import count_states

        count_states(block.bits, block.times, out)


class TableGroups(NamedTuple):
    """Tables to count, as the kernels take them: of each prefix with each of its extensions; offsets of the tables in the flat
    result."""

    prefix: Sets
    ext_first: Ints
    ext: npt.NDArray[np.int32]
    offsets: Ints

    @staticmethod
    def of(sets: Sets, cells: Ints) -> TableGroups:
        """One table for each row of `sets`, rows with the same beginning next to each other."""
        prefix = sets[:, :-1]
        new = np.ones(len(sets), bool)
        if len(sets):
            new[1:] = (prefix[1:] != prefix[:-1]).any(1)
        starts = np.flatnonzero(new)
        offsets = np.zeros(len(sets) + 1, np.int64)
        np.cumsum(cells, out=offsets[1:])
        first = np.append(starts, len(sets)).astype(np.int64)
        return TableGroups(np.ascontiguousarray(prefix[starts]), first, sets[:, -1].copy(), offsets)

    def parts(self, n: int, cost: Array) -> list[TableGroups]:
        """Several parts of about the same cost for each of n threads; they share no table. Their offsets point into the whole."""
        if len(self.prefix) == 1:
            ends = np.linspace(0, len(self.ext), n + 1).astype(int)
        else:
            cuts = np.searchsorted(np.cumsum(cost), np.linspace(0, cost.sum(), 4 * n + 1)[1:-1]) + 1
            ends = self.ext_first[np.concatenate([[0], cuts, [len(self.prefix)]]).clip(0, len(self.prefix))]
        parts = []
        for a, b in pairwise(np.unique(ends).tolist()):  # all of one group, or of whole ones
            low, high = np.searchsorted(self.ext_first, a, side="right") - 1, np.searchsorted(self.ext_first, b)
            prefix, first = np.ascontiguousarray(self.prefix[low:high]), self.ext_first[low : high + 1].clip(a, b) - a
            parts.append(TableGroups(prefix, first, self.ext[a:b], self.offsets[a : b + 1]))
        return parts


@dataclass(frozen=True, eq=False)
class _Tables(BitStep):
    """Tables of sets of columns."""

    groups: TableGroups

    @property
    def n_cells(self) -> int:
        return int(self.groups.offsets[-1])

    @property
    def key(self) -> tuple[Any, ...]:
        return (type(self), *(a.tobytes() for a in self.groups))

    def parts(self, n: int, costs: Array) -> Sequence[BitStep]:
        return [replace(self, groups=part) for part in self.groups.parts(n, costs)]


@dataclass(frozen=True, eq=False)
class CountTables(_Tables):
    """Tables by bits: full ones, or core tables, without the last state of each column."""

    full: bool = True

    def add(self, block: BitBlock, out: Counts) -> None:
        from suffice.numerics.kernels.counting.bitmaps import count_groups

        room = int(np.cumprod(self._kept, axis=1).sum(1).max(initial=0))
        bits = block.bits, block.times, self.layout.first, self.layout.sizes
        count_groups(bits, tuple(self.groups), int(self.full), room, out)

    @property
    def _kept(self) -> Ints:
        """The states of each member of a prefix that have bitmaps of their own."""
        return np.asarray(np.maximum(self.layout.sizes[self.groups.prefix] - 1 + self.full, 1))

    def costs(self, block: BitBlock) -> Array:
        extensions = np.add.reduceat(self.layout.sizes[self.groups.ext], self.groups.ext_first[:-1])
        return np.asarray(np.prod(self._kept, axis=1) * extensions * (0.3 * len(block.bits) * block.bits.shape[2]))


@dataclass(frozen=True, eq=False)
class ScanTables(_Tables):
    """Full tables row by row, from codes: for tables with many cells, and columns of many states."""

    coded: ClassVar[bool] = True

    def add(self, block: BitBlock, out: Counts) -> None:
        from suffice.numerics.kernels.counting.bitmaps import scan_groups

        g = self.groups
        codes = np.zeros((len(block.columns), len(block.columns[0])), np.uint16)
        for v in {*g.prefix.ravel().tolist(), *g.ext.tolist()}:
            codes[v] = block.columns[v]
        scan_groups(codes, block.weight, self.layout.sizes, tuple(g), out)

    def costs(self, block: BitBlock) -> Array:
        each = np.diff(self.groups.ext_first) + self.groups.prefix.shape[1]
        return np.asarray(each * float(len(block.columns[0])))
