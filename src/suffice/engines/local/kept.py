"""What is kept near: columns, encoded once and read by row ranges from then on, in memory or in a spill; values that a learner
makes of blocks and needs in every pass, the same way; and the rows of an engine as bits, made once for all steps.

A spill is for what is too large for memory: a temporary file without a name, which the system frees when it is closed, however
the process ends. It is read into the caller's arrays and never mapped, so that it does not count as memory of the process.
"""

from __future__ import annotations

import errno
import math
import os
import pickle
import tempfile
import weakref
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from itertools import accumulate
from threading import Lock
from typing import Any, Generic, Protocol

import numpy as np

from suffice.engines.encoding.encode import recode
from suffice.engines.engine import Array, Bits, T
from suffice.engines.steps.bits import SHARED, WORDS, BitBlock, BitLayout, BitStep, Counts, Fused, n_words, planes, set_plane
from suffice.engines.steps.blocks import ROWS, Block, available_memory, in_order, n_threads
from suffice.errors import DataError


class Column(Protocol):
    """An encoded column: codes of states, or numbers. One in memory is an array."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its cells."""

    def __getitem__(self, rows: slice, /) -> Array:
        """The rows from a start to a stop, not to be written to; of a column in memory without a copy."""


def sum_of(weights: Array) -> float:
    """The sum of weights, infinite if it is beyond the largest double."""
    with np.errstate(over="ignore"):
        return float(weights.sum())


class Nothing:
    """A column in which every cell is missing."""

    dtype = np.dtype(np.float64)

    def __getitem__(self, rows: slice) -> Array:
        return np.full(rows.stop - rows.start, np.nan)


class Growing:
    """An array that grows by chunks, into memory taken at once where the number of rows is known."""

    def __init__(self, n_rows: int | None) -> None:
        self._n_rows = n_rows
        self._array: Array | None = None
        self._used = 0

    def add(self, chunk: Array) -> None:
        """Append a chunk: the whole column as it is, without a copy; others to the array, made longer or wider if it must be."""
        old, n, dtype = self._array, self._used + len(chunk), chunk.dtype
        if old is None and len(chunk) == self._n_rows:
            self._array, self._used = chunk, n
            return
        if old is None or len(old) < n or old.dtype != dtype:
            self._array = np.empty(max(n, self._n_rows or 2 * n), dtype)
            if old is not None:
                self._array[: self._used] = old[: self._used]
                if old.dtype != dtype:
                    self._array[: self._used][old[: self._used] == np.iinfo(old.dtype).max] = np.iinfo(dtype).max
            old = self._array
        old[self._used : n] = chunk
        self._used = n

    def column(self, order: Array | None, dtype: np.dtype[Any]) -> Array:
        """The whole column: codes put in order, in the type they need in the end."""
        if self._array is None:
            raise ValueError("nothing was added")
        array = self._array[: self._used]
        array = array if order is None else recode(array, order, dtype)
        array.setflags(write=False)
        return array


class Unnamed:
    """A temporary file without a name, closed when nobody holds it any more."""

    def __init__(self) -> None:
        file = tempfile.TemporaryFile(prefix="suffice-", buffering=0)  # noqa: SIM115
        self.descriptor, self.end = file.fileno(), 0
        self.close = weakref.finalize(self, file.close)

    def append(self, chunk: Array) -> int:
        """Write an array; give the place where it begins."""
        start, view = self.end, np.ascontiguousarray(chunk).data.cast("B")
        try:
            while len(view):
                n = os.write(self.descriptor, view)
                self.end += n
                view = view[n:]
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            where = tempfile.gettempdir()
            raise DataError(
                f"{where}: no space left for the encoded columns; set TMPDIR to a larger place, or raise memory_limit"
            ) from None
        return start

    def read(self, target: Array, offset: int) -> None:
        """Fill an array from a place on."""
        view = target.data.cast("B")
        while len(view):
            n = os.preadv(self.descriptor, [view], offset)
            if n == 0:
                raise DataError("the spill of encoded columns is shorter than what was written to it")
            view, offset = view[n:], offset + n


class Spilled:
    """A column in a spill."""

    dtype: np.dtype[Any]

    def __init__(self, file: Unnamed) -> None:
        self._file, self._rows = file, [0]
        self._chunks: list[tuple[int, np.dtype[Any]]] = []  # where the rows of each lie in the file, and their type
        self._order: Array | None = None

    def add(self, chunk: Array) -> None:
        """Append a chunk."""
        self._rows.append(self._rows[-1] + len(chunk))
        self._chunks.append((self._file.append(chunk), chunk.dtype))

    def column(self, order: Array | None, dtype: np.dtype[Any]) -> Spilled:
        """The whole column."""
        there = order is not None and np.array_equal(order, np.arange(len(order)))
        as_written = there and all(own == dtype for _, own in self._chunks)
        self._order, self.dtype = None if as_written else order, dtype
        return self

    def __getitem__(self, rows: slice) -> Array:
        start, stop = rows.start, rows.stop
        out = np.empty(stop - start, self.dtype)
        i = bisect_right(self._rows, start) - 1
        done = start
        while done < stop:
            n, (offset, dtype) = min(stop, self._rows[i + 1]) - done, self._chunks[i]
            part = out[done - start : done - start + n]
            direct = self._order is None and dtype == self.dtype
            target = part if direct else np.empty(n, dtype)
            self._file.read(target, offset + (done - self._rows[i]) * dtype.itemsize)
            if not direct:
                part[:] = target if self._order is None else recode(target, self._order, self.dtype)
            done += n
            i += 1
        out.flags.writeable = False
        return out


Sink = defaultdict[Any, Growing | Spilled]
"""Where the encoded chunks of columns go, by their names."""


def spill() -> Sink:
    """The sink of columns that are too large for memory: all of them in one file."""
    return defaultdict(partial(Spilled, Unnamed()))


class KeptValue(Generic[T]):
    """A value in memory."""

    def __init__(self, value: T) -> None:
        self._value = value

    def read(self) -> T:
        """The value."""
        return self._value


class SpilledValue(KeptValue[T]):
    """A value whose arrays are in a spill, read anew each time; what holds them together stays in memory."""

    def __init__(self, file: Unnamed, lock: Lock, value: T) -> None:
        arrays: list[pickle.PickleBuffer] = []
        self._file, self._form = file, pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
        with lock:  # a file has one end
            self._places = [(file.append(np.frombuffer(a.raw(), np.uint8)), a.raw().nbytes) for a in arrays]

    def read(self) -> T:
        buffers = [np.empty(size, np.uint8) for _, size in self._places]
        for buffer, (start, _) in zip(buffers, self._places, strict=True):
            self._file.read(buffer, start)
        value: T = pickle.loads(self._form, buffers=buffers)
        return value


class ValueStore:
    """Takes values of some bytes: as long as there is room in memory, there; then into a temporary file without a name."""

    def __init__(self, limit: float) -> None:
        self._left, self._lock = float(limit), Lock()
        self._file: Unnamed | None = None
        self.n_spilled = 0

    def keep(self, value: T, n_bytes: int) -> KeptValue[T]:
        """A value that can be read from now on."""
        with self._lock:
            if n_bytes <= self._left:
                self._left -= n_bytes
                return KeptValue(value)
            self._file = self._file or Unnamed()
            self.n_spilled += 1
        return SpilledValue(self._file, self._lock, value)


class LocalBits(Bits):
    """The rows of some blocks, given by their numbers, as bits in memory. They take an eighth of a byte a row and state, often
    less than the codes themselves. Threads share the tables of a step, not the rows: of few rows there is little else to
    share."""

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

    def at_once(self, step: Fused[T]) -> T:
        return step.of(self.rows if step.coded else self.bits)

    def _coded_blocks(self) -> Iterator[BitBlock]:
        return (BitBlock.of_codes(self.block(self.layout.names, i), self.layout) for i in range(self.n_blocks))

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
