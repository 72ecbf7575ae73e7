"""Blocks of rows, steps over them, and sums of what steps make: what travels between an engine and who learns; threads over
blocks in their order, a bar where that takes long, and how much memory there is."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from suffice.basis.output.terminal import LINE, is_shown, patience
from suffice.errors import DataError

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
T = TypeVar("T")
S = TypeVar("S")

ROWS = 2**14
"""Rows of a block: by measurement large enough for the calls not to matter, small enough to stay in the cache."""


@dataclass(frozen=True)
class Block:
    """Some rows: codes of finite columns (the largest value of the type means missing), numbers of the others (NaN). `number`
    tells the blocks of an engine apart and orders them; `kept` has columns as they came, as Arrow arrays, where they were asked
    for. `lengths` are those of the whole sequences that the rows are, one after the other; None of plain rows."""

    columns: Mapping[str, Array]
    weight: Floats | None = None
    number: int = 0
    kept: Mapping[str, Any] = field(default_factory=dict)
    lengths: npt.NDArray[np.int64] | None = None

    @property
    def n_rows(self) -> int:
        for columns in (self.columns, self.kept):
            if columns:
                return len(next(iter(columns.values())))
        return 0 if self.weight is None else len(self.weight)

    @property
    def weights(self) -> Floats:
        """The weight of each row, 1 where there are none."""
        return np.ones(self.n_rows) if self.weight is None else self.weight

    def take(self, rows: Any) -> Block:
        """Some of the rows, by their places in the block or by a mask."""
        weight = None if self.weight is None else self.weight[rows]
        kept = {n: c.take(np.arange(len(c))[rows]) for n, c in self.kept.items()}
        return Block({n: c[rows] for n, c in self.columns.items()}, weight, self.number, kept)


def is_missing(cells: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which cells of an encoded column are missing."""
    return np.asarray(np.isnan(cells) if cells.dtype.kind == "f" else cells == np.iinfo(cells.dtype).max)


class Sum(Generic[T]):
    """A sum of summands that have numbers, by a fixed binary tree over the numbers: ((0+1)+(2+3))+…

    Which summands came together first does not matter: two sums add to the sum of all of their summands, with the same bits for
    any way of dealing them out. What adds exactly, such as whole numbers, may go into `exact`, which needs no tree.

    >>> total = Sum()
    >>> for number in (3, 0, 4, 2, 1):
    ...     total.add(number, "abcde"[number])
    >>> total.value
    'abcde'
    """

    def __init__(self) -> None:
        self.exact: T | None = None
        self._nodes: dict[tuple[int, int], T] = {}

    def add(self, number: int, value: T, level: int = 0) -> None:
        """Take one summand; its neighbours in the tree are added to it as far as they are there."""
        while (level, number ^ 1) in self._nodes:
            other = self._nodes.pop((level, number ^ 1))
            value = add_up(other, value) if number & 1 else add_up(value, other)
            level, number = level + 1, number >> 1
        self._nodes[level, number] = value

    def __iadd__(self, other: Sum[T]) -> Sum[T]:
        for (level, number), value in other._nodes.items():
            self.add(number, value, level)
        if other.exact is not None:
            self.exact = other.exact if self.exact is None else add_up(self.exact, other.exact)
        return self

    @property
    def value(self) -> T | None:
        """The sum, or None of nothing."""
        order = sorted(self._nodes, key=lambda at: at[1] << at[0], reverse=True)
        total: T | None = None
        for at in order:
            total = self._nodes[at] if total is None else add_up(self._nodes[at], total)
        return total if self.exact is None else self.exact if total is None else add_up(total, self.exact)


def sum_up(parts: Iterable[T]) -> T | None:
    """The sum of parts in their order, by the same tree; None of nothing."""
    total: Sum[T] = Sum()
    for number, part in enumerate(parts):
        total.add(number, part)
    return total.value


def add_up(a: Any, b: Any) -> Any:
    """The sum of two results of a step: arrays and whatever has a plus, tuples and mappings of them.

    >>> add_up((1, {"n": 2}), (3, {"n": 4, "m": 1}))
    (4, {'n': 6, 'm': 1})
    """
    if isinstance(a, tuple):
        parts = [add_up(x, y) for x, y in zip(a, b, strict=True)]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, Mapping):
        return {**a, **{key: add_up(a[key], value) if key in a else value for key, value in b.items()}}
    if isinstance(a, np.ndarray) and a.shape != np.shape(b):
        raise DataError(f"a step gives arrays of one shape for all blocks, not {a.shape} and {np.shape(b)}: they do not add")
    return np.add(a, b) if isinstance(a, np.ndarray) else a + b


class Step(Generic[T]):
    """What is done to rows: a frozen value that pickles. Most steps say what they make `of` one block, and the results add."""

    def of(self, block: Block) -> T:
        """The summand of a block."""
        raise NotImplementedError

    complete: ClassVar[bool] = False
    """Whether missing cells are refused."""

    runs: ClassVar[int] = 16
    """Into how many runs of blocks for each worker the rows are best dealt out: enough to share the work evenly, few enough for
    their sums not to matter."""

    def __call__(self, blocks: Iterable[Block]) -> Sum[T]:
        """The sum over a run of blocks, which adds to those of other runs."""
        total: Sum[T] = Sum()
        for block in blocks:
            total.add(block.number, self.of(block))
        return total


@dataclass(frozen=True)
class Each(Step[T]):
    """A function of a block as a step; it travels to other processes if the function does."""

    function: Callable[[Block], T]

    def of(self, block: Block) -> T:
        result = self.function(block)
        if result is None:
            raise DataError("the step gives None, which does not add: it must return what is summed")
        return result


def checked_function(step: Any) -> Any:
    """What can be called with a block; anything else is refused."""
    if not callable(step):
        raise DataError(f"a step is a function of a block of rows, not {step!r}")
    return step


def ranges(n_rows: int, size: int = ROWS) -> Iterator[tuple[int, int]]:
    """The first and last row of each block."""
    return ((start, min(start + size, n_rows)) for start in range(0, n_rows, size))


def locate(sizes: Sequence[int], row: int) -> tuple[int, int]:
    """The part that a row lies in, and its place there, of parts of these sizes one after the other; beyond them, the last."""
    starts = np.cumsum([0, *sizes])  # the sizes are looked at once: those of a file that is read may grow meanwhile
    part = min(int(np.searchsorted(starts, row, "right")) - 1, len(starts) - 2)
    return part, row - int(starts[part])


_idle: dict[int, list[ThreadPoolExecutor]] = {}
"""Threads that wait for work, by how many they are. A process that is forked has none of them."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


def n_threads(asked: int | None = None) -> int:
    """The number of threads to use: what was asked for, or one for each processor that this process may use."""
    if asked is not None:
        return max(1, asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(tasks: Iterable[Callable[[], T]], threads: int | None = None) -> Iterator[T]:
    """The results of the tasks in their order; a few are under way at any time, so that a stream of tasks is never held whole."""
    workers = n_threads(threads)
    if workers == 1:
        yield from (task() for task in tasks)
        return
    # Threads of an earlier call that nobody uses, or new ones; a task that itself asks for threads gets others. Who starts a
    # thread waits until it runs, and it runs when the first task lets go of Python: too long for each iteration.
    free = _idle.setdefault(workers, [])
    try:
        pool = free.pop()
    except IndexError:
        pool = ThreadPoolExecutor(workers)
    pending: deque[Future[T]] = deque()
    try:
        for task in tasks:
            pending.append(pool.submit(task))
            if len(pending) > 2 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()
        wait(pending)
        free.append(pool)


def ahead(items: Iterator[T]) -> Generator[T]:
    """The same items, the next of which is made in another thread while one is being used."""
    nothing: list[T] = []
    try:
        with ThreadPoolExecutor(1) as pool:
            coming = pool.submit(next, items, nothing)
            while (item := coming.result()) is not nothing:
                coming = pool.submit(next, items, nothing)
                yield cast(T, item)
    finally:
        if isinstance(items, Generator):
            with suppress(ValueError):  # an interrupt may leave it running in its thread
                items.close()


def with_count(items: Iterable[T], what: str, total: int | None = None, size: Callable[[T], int] = lambda _: 1) -> Iterator[T]:
    """The same items, with a line on the terminal that counts their sizes up to `total`."""
    start, done, line = time.perf_counter(), 0, None

    def text() -> str:
        if not total:
            return f"{what}, {done:,}"
        left = (time.perf_counter() - start) * (total - done) / max(done, 1)
        return f"{what}, {min(1.0, done / total):.0%}, {left:.0f} s left"

    try:
        for item in items:
            yield item
            done += size(item)
            passed = time.perf_counter() - start
            if line is None and passed > 1.0 and is_shown() and passed > patience():
                line = LINE.begin(text, start)
    finally:
        if line is not None:
            LINE.end(line)


def used_memory() -> float:
    """The bytes of memory that this process has now, as far as the system says."""
    try:
        with open("/proc/self/statm") as line:
            return float(line.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        import resource  # not on every system, and then only the most so far

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)


def available_memory() -> float:
    """The bytes of memory that are free, as far as the system says."""
    try:
        with open("/proc/meminfo") as lines:
            return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return 2.0**33
