"""Progress of long passes over the rows: a bar on a terminal, from the second second on; nothing anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 1.0
"""Seconds before a bar appears."""


def watched(items: Iterable[T], what: str, total: int | None = None, size: Callable[[T], int] = lambda _: 1) -> Iterator[T]:
    """The same items, with a bar that counts their sizes up to `total`.

    >>> list(watched([1, 2, 3], "counting"))
    [1, 2, 3]
    """
    if not sys.stderr.isatty():
        yield from items
        return
    start, done = time.perf_counter(), 0
    source = iter(items)
    for item in source:
        yield item
        done += size(item)
        if time.perf_counter() - start > PATIENCE:
            yield from _shown(source, what, total, size, done)
            return


def _shown(items: Iterator[T], what: str, total: int | None, size: Callable[[T], int], done: int) -> Iterator[T]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total, completed=done)
        for item in items:
            yield item
            bar.advance(task, size(item))


def available_memory() -> float:
    """The bytes of memory that are free, as far as the system says."""
    try:
        with open("/proc/meminfo") as lines:
            return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return 2.0**33
