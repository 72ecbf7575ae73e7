"""Threads over blocks of rows, and sums that do not depend on how many threads there are."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar, cast

T = TypeVar("T")


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
    with ThreadPoolExecutor(workers) as pool:
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
