"""Long work in a thread of its own, so that Ctrl-C is heard while a kernel runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LONG = 2e8
"""Cells of a tree from which on running it takes so long that somebody may want to stop it."""


def interruptible(work: Callable[[], T], cells: float) -> T:
    """The result of `work`; if it is long, a KeyboardInterrupt is raised at once, and the work left to end by itself.

    >>> interruptible(lambda: 1 + 1, 1e9)
    2
    """
    if cells < LONG or threading.current_thread() is not threading.main_thread():
        return work()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)
    if errors:
        raise errors[0]
    return results[0]
