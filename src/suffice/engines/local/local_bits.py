"""The rows of an engine as bits in memory, made once for all steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import numpy as np

from suffice.engines.engine import Bits
from suffice.engines.steps.bits import (
    SHARED,
    WORDS,
    BitBlock,
    BitLayout,
    BitStep,
    Counts,
    Fused,
    T_co,
    code_block,
    n_words,
    planes,
    set_plane,
)
from suffice.engines.steps.blocks import ROWS, Block, available_memory, in_order, n_threads


class LocalBits(Bits):
    """The rows of some blocks, given by their numbers, as bits in memory.

    They take an eighth of a byte a row and state, often less than the codes themselves. Threads share the tables of a step, not
    the rows: of few rows there is little else to share.
    """

    at_hand = True

    def __init__(
        self, block: Callable[[Sequence[str], int], Block], n_rows: int, layout: BitLayout, *, weighted: bool, threads: int | None
    ) -> None:
        self.layout, self.block, self.n_rows = layout, block, n_rows
        self.n_blocks, self.workers = -(-n_rows // ROWS), n_threads(threads)
        if weighted:  # each binary digit of the weights of a block has bits of its own
            each = [[p.n for p in planes(block(layout.names[:1], i))] for i in range(self.n_blocks)]
            ends = list(accumulate(map(len, each), initial=0))
            most = n_words(max((n for sizes in each for n in sizes), default=0))
            self._places, n_bits = [(end, 0) for end in ends], ends[-1]
        else:  # two blocks of rows lie side by side
            self._places = [divmod(i * ROWS // 64, WORDS) for i in range(self.n_blocks)]
            n_bits, most = self._places[-1][0] + 1, min(WORDS, n_words(n_rows))
        self._shape = n_bits, int(layout.first[-1]), most
        self._pool: ThreadPoolExecutor | None = None

    def fits(self, memory_limit: float | None) -> bool:
        """Whether there is room for them; nothing is made before they are asked for."""
        room = min(2.0**34, available_memory() / 3) if memory_limit is None else memory_limit / 2
        return 8.0 * math.prod(self._shape) <= room

    def fold(self, step: BitStep) -> Counts:
        out = np.zeros(step.n_cells, step.layout.counts)
        for block in self._coded_blocks() if step.coded else [self.bits]:
            costs = np.zeros(1) if self.workers == 1 else step.costs(block)
            if costs.sum() < SHARED:
                step.add(block, out)
            else:
                self._pool = self._pool or ThreadPoolExecutor(self.workers)
                list(self._pool.map(lambda part, block=block: part.add(block, out), step.parts(self.workers, costs)))
        return out

    def at_once(self, step: Fused[T_co]) -> T_co:
        return step.of(self.rows if step.coded else self.bits)

    def _coded_blocks(self) -> Iterator[BitBlock]:
        return (code_block(self.block(self.layout.names, i), self.layout) for i in range(self.n_blocks))

    @cached_property
    def bits(self) -> BitBlock:
        """The bits of all rows."""
        bits = np.zeros(self._shape, np.uint64)
        times = np.ones(len(bits), np.int64)

        def task(number: int) -> None:
            block, (first, word) = self.block(self.layout.names, number), self._places[number]
            for b, plane in enumerate(planes(block), first):
                times[b] = plane.times
                set_plane(bits[b], word, block, plane, self.layout)

        for _ in in_order((partial(task, i) for i in range(self.n_blocks)), self.workers if self.n_blocks > 4 else 1):
            pass
        return BitBlock(bits, times)

    @cached_property
    def rows(self) -> BitBlock:
        """Their codes too."""
        codes, weights = np.empty((len(self.layout.names), self.n_rows), np.uint16), []
        for i, block in enumerate(self._coded_blocks()):
            weights.append(block.weight)
            for v, column in enumerate(block.columns):
                codes[v, i * ROWS : (i + 1) * ROWS] = column
        return BitBlock(self.bits.bits, self.bits.times, codes, np.concatenate(weights))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pool": None}
