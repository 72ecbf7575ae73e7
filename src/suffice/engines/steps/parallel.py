"""Threads over blocks of rows in their order, a bar where that takes long, and how much memory there is."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import TypeVar, cast

from suffice.output.status import LINE, is_shown, patience

T = TypeVar("T")

_idle: dict[int, list[ThreadPoolExecutor]] = {}
"""Threads that wait for work, by how many they are. A process that is forked has none of them."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


def n_threads(asked: int | None = None) -> int:
    """The number of threads to use: what was asked for, or one for each processor that this process may use.

    >>> n_threads(3)
    3
    """
    if asked is not None:
        return max(1, asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(tasks: Iterable[Callable[[], T]], threads: int | None = None) -> Iterator[T]:
    """The results of the tasks in their order; a few are under way at any time, so that a stream of tasks is never held whole.

    >>> list(in_order((lambda i=i: i * i) for i in range(4)))
    [0, 1, 4, 9]
    """
    workers = n_threads(threads)
    if workers == 1:
        yield from (task() for task in tasks)
        return
    pending: deque[Future[T]] = deque()
    with _borrow_threads(workers) as pool:
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


@contextmanager
def _borrow_threads(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads of an earlier call that nobody uses, or new ones; a task that itself asks for threads gets others.

    Who starts a thread waits until it runs, and it runs when the first task lets go of Python: too long for each iteration.
    """
    free = _idle.setdefault(workers, [])
    try:
        pool = free.pop()
    except IndexError:
        pool = ThreadPoolExecutor(workers)
    try:
        yield pool
    finally:
        free.append(pool)


def ahead(items: Iterator[T]) -> Generator[T]:
    """The same items, the next of which is made in another thread while one is being used.

    >>> list(ahead(iter("abc")))
    ['a', 'b', 'c']
    """
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
    """The same items, with a line on the terminal that counts their sizes up to `total`.

    >>> list(with_count([1, 2, 3], "counting"))
    [1, 2, 3]
    """
    start, done, source = time.perf_counter(), 0, iter(items)
    for item in source:
        yield item
        done += size(item)
        passed = time.perf_counter() - start
        if passed > 1.0 and is_shown() and passed > patience():
            yield from _count_from(source, what, total, size, done)
            return


def _count_from(items: Iterator[T], what: str, total: int | None, size: Callable[[T], int], done: int) -> Iterator[T]:
    start, before = time.perf_counter() - patience(), done

    def text() -> str:
        if not total:
            return f"{what}, {done:,}"
        left = (time.perf_counter() - start) * (total - done) / max(done, before, 1)
        return f"{what}, {min(1.0, done / total):.0%}, {left:.0f} s left"

    line = LINE.begin(text, start)
    try:
        for item in items:
            yield item
            done += size(item)
    finally:
        LINE.end(line)


def used_memory() -> float:
    """The bytes of memory that this process has now, as far as the system says.

    >>> used_memory() > 1e6
    True
    """
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
