"""Bitmaps: the tables of many sets of finite columns, counted by bits or row by row, whichever is quicker.

This is the front to the bits that an engine keeps: it says what to count, in steps, and never sees a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Ints
from suffice.basis.variables import Finite
from suffice.engines.data import Data
from suffice.engines.encoding.encode import code_type
from suffice.engines.engine import Bits
from suffice.engines.steps.bits import (
    SHARED,
    BitBlock,
    BitLayout,
    BitStep,
    Counts,
    CountStates,
    CountTables,
    ScanTables,
    Sets,
    TableGroups,
)
from suffice.engines.steps.blocks import available_memory, n_threads
from suffice.engines.views.sample import SampledRows
from suffice.errors import TooLarge, bytes_in_words, note
from suffice.statistics import Request


@dataclass(frozen=True, eq=False)
class CountAll(BitStep):
    """The counts of several steps, one after the other in one array. Blocks that are made into bits on the way have the codes of
    their rows, too, so that steps may look at either."""

    steps: tuple[BitStep, ...]

    @property
    def n_cells(self) -> int:
        return sum(step.n_cells for step in self.steps)

    def add(self, block: BitBlock, out: Counts) -> None:
        for step, part in zip(self.steps, self.split(out), strict=True):
            step.add(block, part)

    def split(self, counts: Counts) -> Sequence[Counts]:
        """The counts of each step: views of one array."""
        return np.split(counts, np.cumsum([step.n_cells for step in self.steps])[:-1])


CORE = 1024
"""Cells, the last state of each column left out, up to which a core table is counted by bitmaps: by measurement."""

FULL = 512
"""Cells, the last state of the extension left out, up to which a full table is counted by bitmaps."""

TABLES = 2**23
"""Cells of tables that are counted in one go."""


class Bitmaps:
    """The finite columns of some data, ready to be counted in many small tables. Weights are whole numbers."""

    def __init__(
        self, data: Data, variables: Sequence[Finite], *, threads: int | None = None, memory_limit: float | None = None
    ) -> None:
        self.names = tuple(v.name for v in variables)
        self.layout = BitLayout(self.names, tuple(v.n_states for v in variables), wide=data.weight >= 2**31)
        self.bits, data = bits_of(data, variables, self.layout, threads=threads, memory_limit=memory_limit)
        self.sizes, self.narrow = self.layout.sizes, self.layout.narrow
        self.all_narrow, self.at_hand = bool(self.narrow.all()), self.bits.at_hand
        self.workers = n_threads(threads)
        self.n_rows = data.n_rows
        # A row has a bit for each binary digit of its weight, of which about half are set.
        self.n_bits = self.n_rows * (1.0 + math.log2(max(data.weight / self.n_rows, 1.0)) / 2.0)
        self.share = self.n_rows / self.n_bits
        self._ready: dict[Any, Counts] = {}
        self._states: Counts | None = None

    def ahead(self, steps: Iterable[BitStep]) -> None:
        """Count in one pass what will be asked for next; of rows at hand, nothing is to be gained by that."""
        new = {step.key: step for step in steps if step.n_cells and step.key not in self._ready}
        if self.at_hand or len(new) < 2:
            return
        together = CountAll(self.layout, tuple(new.values()))
        self._ready |= dict(zip(new, together.split(self._count_step(together)), strict=True))

    def count_full(self, sets: Sets) -> tuple[Counts, Ints]:
        """The tables of these sets of columns, all of the same number, each in the order given: flat counts and offsets."""
        if sets.shape[1] == 1 and self.all_narrow:
            every, at = self.count_singles()
            tables = [every[at[v] : at[v + 1]] for v in sets[:, 0]]
            return np.concatenate(tables), np.cumsum([0, *map(len, tables)])
        cells = self.cells(sets)
        by_rows = self.by_rows(sets, full=True)
        if by_rows.all() or not by_rows.any():
            groups = TableGroups.of(sets, cells)
            step = ScanTables(self.layout, groups) if by_rows.any() else CountTables(self.layout, groups)
            return self._count_step(step), groups.offsets
        self.ahead(self.full_steps(sets))
        offsets = np.concatenate([[0], np.cumsum(cells)])
        tables = [np.zeros(0, np.int32)] * len(sets)
        for chosen in (by_rows, ~by_rows):
            mine, at = self.count_full(sets[chosen])
            for i, g in enumerate(np.flatnonzero(chosen)):
                tables[g] = mine[at[i] : at[i + 1]]
        return np.concatenate(tables), offsets

    def full_steps(self, sets: Sets) -> list[BitStep]:
        """What `count_full` counts."""
        if sets.shape[1] == 1 and self.all_narrow:
            return [] if self._states is not None else [CountStates(self.layout)]
        cells, by_rows = self.cells(sets), self.by_rows(sets, full=True)
        kinds = [(chosen, kind) for chosen, kind in ((by_rows, ScanTables), (~by_rows, CountTables)) if chosen.any()]
        return [kind(self.layout, TableGroups.of(sets[chosen], cells[chosen])) for chosen, kind in kinds]

    def core_step(self, sets: Sets) -> CountTables:
        """What `count_core` counts."""
        return CountTables(self.layout, TableGroups.of(sets, np.prod(self.sizes[sets] - 1, axis=1)), full=False)

    def scan_step(self, sets: Sets) -> ScanTables:
        """What `count_by_scan` counts."""
        return ScanTables(self.layout, TableGroups.of(sets, self.cells(sets)))

    def is_little_work(self, q: int, ext: npt.NDArray[np.int32]) -> bool:
        """Whether tables of q cells with each of some columns are so little work that one call by one thread does it best."""
        if not self.at_hand or 2 * q > FULL or not self.all_narrow or self.layout.wide:
            return False
        return self.workers == 1 or 0.005 * q * self.n_bits * int(self.sizes[ext].sum()) < SHARED

    def count_extensions(self, prefix: Sequence[int], ext: npt.NDArray[np.int32]) -> tuple[Counts, Ints]:
        """The tables of one set of columns with each of some others: flat counts and offsets."""
        q = math.prod(int(self.sizes[v]) for v in prefix)
        offsets = np.zeros(len(ext) + 1, np.int64)
        np.cumsum(q * self.sizes[ext], out=offsets[1:])
        groups = TableGroups(np.array([prefix], np.int32), np.array([0, len(ext)], np.int64), ext, offsets)
        by_rows = q * 2 > FULL * self.share or not self.narrow[groups.prefix].all() or not self.narrow[ext].all()
        return self._tables(ScanTables(self.layout, groups) if by_rows else CountTables(self.layout, groups))

    def count_core(self, sets: Sets) -> tuple[Counts, Ints]:
        """The core tables of these sets of columns, all of the same number of at least two."""
        return self._tables(self.core_step(sets))

    def count_singles(self) -> tuple[Counts, Ints]:
        """The number of rows of each state of each column: flat counts and offsets."""
        if not self.all_narrow:
            return self.count_by_scan(np.arange(len(self.names), dtype=np.int32)[:, None])
        if self._states is None:
            self._states = self._count_step(CountStates(self.layout))
        return self._states, self.layout.first

    def count_by_scan(self, sets: Sets) -> tuple[Counts, Ints]:
        """The full tables of these sets, counted row by row."""
        return self._tables(self.scan_step(sets))

    def cells(self, sets: Sets) -> Ints:
        """The number of cells of each table; beyond 2^62 that."""
        return np.asarray(np.minimum(np.prod(self.sizes[sets].astype(float), axis=1), 2.0**62), np.int64)

    def by_rows(self, sets: Sets, *, full: bool = False) -> npt.NDArray[np.bool_]:
        """Which tables, core ones or full ones, are cheaper to count row by row: those with many cells."""
        wide = ~self.narrow[sets].all(1) if not self.all_narrow else np.zeros(len(sets), bool)
        states = self.sizes[sets] - 1.0
        if full:
            states[:, :-1] += 1.0
        cells = np.prod(states if full else np.maximum(states, 1.0), axis=1)
        return np.asarray(wide | (cells > (FULL if full else CORE) * self.share) | (sets.shape[1] == 1))

    def _tables(self, step: CountTables | ScanTables) -> tuple[Counts, Ints]:
        return self._count_step(step), step.groups.offsets

    def _count_step(self, step: BitStep) -> Counts:
        """What a step counts, unless it does not fit."""
        if self._ready and (ready := self._ready.pop(step.key, None)) is not None:
            return ready
        n_cells = step.n_cells
        n_bytes = float(self.layout.counts.itemsize * n_cells)
        if n_bytes > 2**22 and n_bytes > available_memory() / 2:
            raise TooLarge(
                f"the tables asked for need {bytes_in_words(n_bytes)}, and {bytes_in_words(available_memory())} are free"
            )
        return self.bits.fold(step) if n_cells else np.zeros(0, self.layout.counts)


def bits_of(
    data: Data, variables: Sequence[Finite], layout: BitLayout, *, threads: int | None = None, memory_limit: float | None = None
) -> tuple[Bits, Data]:
    """The bits of some data, and the rows they are of: equal ones are merged where a pass over all of them is long. Rows at hand
    are not: by measurement, the pass that merges them takes longer than all that a search asks of their bits."""
    bits = data.engine.bits(layout, threads=threads, memory_limit=memory_limit)
    few = None if bits.at_hand else merge_equal_rows(data, variables)
    if few is None:
        return bits, data
    note(f"{data.n_rows:,} rows are {few.n_rows:,} different ones, which are searched with their weights")
    return few.engine.bits(layout, threads=threads, memory_limit=memory_limit), few


def merge_equal_rows(data: Data, variables: Sequence[Finite]) -> Data | None:
    """The same rows, equal ones merged into one that has their weight; None unless there are few that can differ. One pass counts
    the table of all variables, whose cells are the rows. Its scores and tests are those of the rows."""
    names, sizes = tuple(v.name for v in variables), [v.n_states for v in variables]
    if data.n_rows < 8 * math.prod(sizes):
        return None
    table = data.gather([Request(names)]).counts(names).values.ravel()
    occur = np.flatnonzero(table)
    codes = np.unravel_index(occur, sizes)
    columns = {n: c.astype(code_type(r)) for n, c, r in zip(names, codes, sizes, strict=True)}
    return data.select(names).of_rows(SampledRows(columns, table[occur], at=np.zeros((len(occur), 2), np.int64)))
