"""Bitmaps: finite columns as one bit a row and state, from which many small tables are counted at once.

They take an eighth of a byte a row and state, often less than the codes themselves, and are held in memory if that is allowed;
otherwise they are made again, block by block, in each scan, and the counts are added up. Either way the counts are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.parallel import in_order, n_threads
from suffice.engines.progress import available_memory, watched
from suffice.errors import TooLarge, bytes_in_words
from suffice.variables import Finite

Ints = npt.NDArray[np.int64]
Counts32 = npt.NDArray[np.int32]

WORDS = 512
"""Words of a bitmap in one block: the bitmaps of a table's cells then stay in the nearest caches."""

BITS = 128
"""States up to which a column has bitmaps; tables with a column of more are counted row by row."""

PACKED = 6
"""States up to which packing the comparisons of a column with each is quicker than setting single bits."""

CORE = 1024
"""Cells, the last state of each column left out, up to which a core table is counted by bitmaps: by measurement."""

FULL = 512
"""Cells, the last state of the extension left out, up to which a full table is counted by bitmaps."""

SHARED = 2e6
"""Nanoseconds of work from which on threads share it."""

TABLES = 2**23
"""Cells of tables that are counted in one go."""


@dataclass(frozen=True)
class Groups:
    """Tables to count: of each prefix with each of its extensions; offsets of the tables in the flat result."""

    prefix: npt.NDArray[np.int32]
    ext_first: Ints
    ext: npt.NDArray[np.int32]
    offsets: Ints

    @staticmethod
    def of(sets: npt.NDArray[np.int32], cells: Ints) -> Groups:
        """One table for each row of `sets`, rows with the same beginning next to each other."""
        prefix = sets[:, :-1]
        new = np.ones(len(sets), bool)
        if len(sets):
            new[1:] = (prefix[1:] != prefix[:-1]).any(1)
        starts = np.flatnonzero(new)
        offsets = np.zeros(len(sets) + 1, np.int64)
        np.cumsum(cells, out=offsets[1:])
        return Groups(
            np.ascontiguousarray(prefix[starts]), np.append(starts, len(sets)).astype(np.int64), sets[:, -1].copy(), offsets
        )

    def part(self, low: int, high: int) -> Groups:
        """The groups from `low` to `high`; offsets still point into the whole."""
        a, b = self.ext_first[low], self.ext_first[high]
        return Groups(
            np.ascontiguousarray(self.prefix[low:high]),
            self.ext_first[low : high + 1] - a,
            self.ext[a:b],
            self.offsets[a : b + 1],
        )


class Bitmaps:
    """The finite columns of some data, ready to be counted in many small tables. Rows have no weights.

    >>> from suffice.engines import scan
    >>> data = scan({"x": ["a", "b", "a", "a"], "y": ["u", "v", "v", "u"]})
    >>> bitmaps = Bitmaps(data, list(data.schema.values()))
    >>> tables, offsets = bitmaps.full(np.array([[0, 1]], np.int32))
    >>> tables
    array([2, 1, 0, 1], dtype=int32)
    """

    def __init__(
        self, data: Data, variables: Sequence[Finite], *, threads: int | None = None, memory_limit: float | None = None
    ) -> None:
        self.names = tuple(v.name for v in variables)
        self.data = data.select(self.names)
        self.n_rows = data.n_rows
        self.sizes = np.array([v.n_states for v in variables], np.int64)
        self.narrow = self.sizes <= BITS
        self.all_narrow = bool(self.narrow.all())
        self.first = np.concatenate([[0], np.cumsum(np.where(self.narrow, self.sizes, 0))]).astype(np.int64)
        self.workers = n_threads(threads)
        # Of few rows one block; else words enough for the rows, in blocks that stay in the cache.
        self.n_words = min(WORDS, max(8, -(-self.n_rows // 512) * 8))
        self.held = self.n_bytes <= (min(2.0**34, available_memory() / 3) if memory_limit is None else memory_limit / 2)
        self._pool: ThreadPoolExecutor | None = None

    @property
    def n_bytes(self) -> float:
        """What the bitmaps take in memory."""
        return 8.0 * self.n_words * -(-self.n_rows // (64 * self.n_words)) * float(self.first[-1])

    def full(self, sets: npt.NDArray[np.int32]) -> tuple[Counts32, Ints]:
        """The tables of these sets of columns, all of the same number, each in the order given: flat counts and offsets."""
        if sets.shape[1] == 1 and self.all_narrow:
            every, at = self.singles()
            tables = [every[at[v] : at[v + 1]] for v in sets[:, 0]]
            return np.concatenate(tables), np.cumsum([0, *map(len, tables)])
        cells = self.cells(sets)
        by_rows = ~self.narrow[sets].all(1) | (cells - cells // self.sizes[sets[:, -1]] > FULL) | (sets.shape[1] == 1)
        groups = Groups.of(sets, cells)
        out = self._zeros(int(cells.sum()))
        if by_rows.all():
            self._scan(groups, out)
        elif not by_rows.any():
            self._count(groups, 1, out)
        else:
            for chosen, count in ((by_rows, self._scan), (~by_rows, lambda g, o: self._count(g, 1, o))):
                which = np.flatnonzero(chosen)
                part = Groups.of(sets[which], cells[which])
                mine = self._zeros(int(cells[which].sum()))
                count(part, mine)
                for i, g in enumerate(which):
                    out[groups.offsets[g] : groups.offsets[g + 1]] = mine[part.offsets[i] : part.offsets[i + 1]]
        return out, groups.offsets

    def few(self, q: int, ext: npt.NDArray[np.int32]) -> bool:
        """Whether tables of q cells with each of some columns are so little work that one call by one thread does it best."""
        if not self.held or 2 * q > FULL or not self.all_narrow:
            return False
        return self.workers == 1 or 0.005 * q * self.n_rows * int(self.sizes[ext].sum()) < SHARED

    def extended(self, prefix: Sequence[int], ext: npt.NDArray[np.int32]) -> tuple[Counts32, Ints]:
        """The tables of one set of columns with each of some others: flat counts and offsets."""
        q = 1
        for v in prefix:
            q *= int(self.sizes[v])
        offsets = np.zeros(len(ext) + 1, np.int64)
        np.cumsum(q * self.sizes[ext], out=offsets[1:])
        out = self._zeros(int(offsets[-1]))
        groups = Groups(np.array([prefix], np.int32), np.array([0, len(ext)], np.int64), ext, offsets)
        if q * 2 > FULL or not self.narrow[groups.prefix].all() or not self.narrow[ext].all():
            self._scan(groups, out)
        else:
            self._count(groups, 1, out)
        return out, offsets

    def core(self, sets: npt.NDArray[np.int32]) -> tuple[Counts32, Ints]:
        """The core tables of these sets of columns, all of the same number of at least two."""
        groups = Groups.of(sets, np.prod(self.sizes[sets] - 1, axis=1))
        out = self._zeros(int(groups.offsets[-1]))
        self._count(groups, 0, out)
        return out, groups.offsets

    def singles(self) -> tuple[Counts32, Ints]:
        """The number of rows of each state of each column: flat counts and offsets."""
        if not self.all_narrow:
            return self.scanned(np.arange(len(self.names), dtype=np.int32)[:, None])
        from suffice.kernels.bitmaps import count_states

        out = np.zeros(int(self.first[-1]), np.int32)
        for blocks in self._blocks():
            count_states(blocks, out)
        return out, self.first

    def scanned(self, sets: npt.NDArray[np.int32]) -> tuple[Counts32, Ints]:
        """The full tables of these sets, counted row by row."""
        groups = Groups.of(sets, self.cells(sets))
        out = self._zeros(int(groups.offsets[-1]))
        self._scan(groups, out)
        return out, groups.offsets

    def cells(self, sets: npt.NDArray[np.int32]) -> Ints:
        """The number of cells of each table; beyond 2^62 that."""
        return np.asarray(np.minimum(np.prod(self.sizes[sets].astype(float), axis=1), 2.0**62), np.int64)

    def by_rows(self, sets: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Which tables are cheaper to count row by row: those with many cells."""
        wide = ~self.narrow[sets].all(1) if not self.narrow.all() else np.zeros(len(sets), bool)
        return np.asarray(wide | (np.prod(np.maximum(self.sizes[sets] - 1.0, 1.0), axis=1) > CORE) | (sets.shape[1] == 1))

    def _count(self, groups: Groups, full: int, out: Counts32) -> None:
        from suffice.kernels.bitmaps import count_groups

        if not len(groups.ext):
            return
        e = np.maximum(self.sizes[groups.prefix] - 1 + full, 1)
        room = int(np.cumprod(e, axis=1).sum(1).max())
        weight = np.prod(e, axis=1) * np.add.reduceat(self.sizes[groups.ext], groups.ext_first[:-1])
        work = float(weight.sum()) * self.n_rows * 0.005
        for blocks in self._blocks():

            def job(part: Groups, blocks: Any = blocks) -> None:
                count_groups(blocks, self.first, self.sizes, part.prefix, part.ext_first, part.ext, part.offsets, full, room, out)

            self._shared(job, groups, weight, work)

    def _scan(self, groups: Groups, out: Counts32) -> None:
        from suffice.kernels.bitmaps import scan_groups

        if not len(groups.ext):
            return
        weight = np.diff(groups.ext_first) + groups.prefix.shape[1]
        used = sorted({*groups.prefix.ravel().tolist(), *groups.ext.tolist()})
        for batch in self.data.batches(2**14):
            codes = np.zeros((len(self.names), batch.n_rows), np.uint16)
            for v in used:
                codes[v] = batch.columns[self.names[v]]

            def job(part: Groups, codes: Any = codes) -> None:
                scan_groups(codes, self.sizes, part.prefix, part.ext_first, part.ext, part.offsets, out)

            self._shared(job, groups, weight, float(weight.sum()) * batch.n_rows)

    def _shared(self, job: Callable[[Groups], None], groups: Groups, weight: Ints, work: float) -> None:
        """The job over all groups, parts of them in threads if the work, in nanoseconds, is worth it. Parts share no table."""
        if self.workers == 1 or work < SHARED:
            job(groups)
            return
        if len(groups.prefix) == 1:
            parts = [self._extensions(groups, k) for k in range(self.workers)]
        else:
            reached = np.cumsum(weight) / float(weight.sum())
            cuts = np.searchsorted(reached, np.linspace(0, 1, 4 * self.workers + 1)[1:-1]) + 1
            ends = np.unique(np.concatenate([[0], cuts, [len(groups.prefix)]]).clip(0, len(groups.prefix)))
            parts = [groups.part(int(a), int(b)) for a, b in pairwise(ends)]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.workers)
        list(self._pool.map(job, [p for p in parts if len(p.ext)]))

    def _extensions(self, groups: Groups, k: int) -> Groups:
        """The k-th share of the extensions of a single group."""
        ends = np.linspace(0, len(groups.ext), self.workers + 1).astype(int)
        a, b = int(ends[k]), int(ends[k + 1])
        return Groups(groups.prefix, np.array([0, b - a], np.int64), groups.ext[a:b], groups.offsets[a : b + 1])

    def _blocks(self) -> Iterator[npt.NDArray[np.uint64]]:
        if self.held:
            yield self.all
        else:
            rows = 64 * self.n_words * 8
            for batch in watched(self.data.batches(rows), "counting rows", -(-self.n_rows // rows)):
                yield self._encoded(batch.columns, batch.n_rows)

    @cached_property
    def all(self) -> npt.NDArray[np.uint64]:
        """All bitmaps, [block, state, word]: first[v] + s is state s of column v."""
        whole = np.zeros((-(-self.n_rows // (64 * self.n_words)), int(self.first[-1]), self.n_words), np.uint64)
        step = 64 * self.n_words
        tasks = ((lambda b=b, c=c.columns: self._fill(whole[b], c, 0)) for b, c in enumerate(self.data.batches(step)))
        for _ in in_order(tasks, self.workers if self.n_rows > 2**16 else 1):
            pass
        return whole

    def _fill(self, bits: npt.NDArray[np.uint64], columns: Mapping[str, npt.NDArray[Any]], start: int) -> None:
        """The bitmaps of one block, from row `start` of the columns on."""
        from suffice.kernels.bitmaps import set_bits

        bytes_of = bits.view(np.uint8)
        for v, name in enumerate(self.names):
            codes = columns[name][start : start + 64 * self.n_words]
            if self.sizes[v] <= PACKED:
                for s in range(int(self.sizes[v])):
                    packed = np.packbits(codes == s, bitorder="little")
                    bytes_of[self.first[v] + s, : len(packed)] = packed
            elif self.narrow[v]:
                codes = np.ascontiguousarray(codes, np.uint8)
                codes.flags.writeable = False
                set_bits(codes, int(self.first[v]), bits)

    def _encoded(self, columns: Mapping[str, npt.NDArray[Any]], n_rows: int) -> npt.NDArray[np.uint64]:
        """The bitmaps of some rows."""
        step = 64 * self.n_words
        bits = np.zeros((-(-n_rows // step), int(self.first[-1]), self.n_words), np.uint64)
        for b in range(len(bits)):
            self._fill(bits[b], columns, b * step)
        return bits

    def _zeros(self, n_cells: int) -> Counts32:
        if n_cells > 2**20 and 4.0 * n_cells > available_memory() / 2:
            raise TooLarge(
                f"the tables asked for need {bytes_in_words(4.0 * n_cells)}, and {bytes_in_words(available_memory())} are free"
            )
        return np.zeros(n_cells, np.int32)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}
