"""Threads over tasks: results in order, threads of earlier calls used again, nothing under way when a call has ended."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import pytest

from suffice.engines.steps.blocks import ahead, in_order, locate, n_threads, ranges, used_memory, with_count


def test_threads_are_used_again() -> None:
    names = {n for _ in range(5) for n in in_order([threading.get_ident] * 8, 2)}
    assert len(names) <= 2


def test_a_task_may_have_threads_of_its_own() -> None:
    def inner(i: int) -> int:
        return sum(in_order([lambda: i] * 3, 2))

    def task(i: int) -> Callable[[], int]:
        return lambda: inner(i)

    assert list(in_order([task(i) for i in range(6)], 2)) == [0, 3, 6, 9, 12, 15]


def test_nothing_is_under_way_after_an_error() -> None:
    running = []

    def slow() -> None:
        running.append(1)
        time.sleep(0.05)
        running.pop()

    def wrong() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        list(in_order([wrong, slow, slow, slow], 2))
    assert not running


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    assert list(in_order([lambda: 1] * 4, 2)) == [1] * 4
    child = os.fork()
    if not child:
        os._exit(0 if list(in_order([lambda: 1] * 4, 2)) == [1] * 4 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_items_pass_through() -> None:
    assert list(in_order((lambda i=i: i * i) for i in range(4))) == [0, 1, 4, 9]
    assert list(ahead(iter("abc"))) == ["a", "b", "c"]
    assert list(with_count([1, 2, 3], "counting")) == [1, 2, 3]
    assert list(ranges(5, 2)) == [(0, 2), (2, 4), (4, 5)]
    assert [locate([5, 0, 3], row) for row in (0, 4, 5, 7, 9)] == [(0, 0), (0, 4), (2, 0), (2, 2), (2, 4)]
    assert locate([0], 7) == (0, 7)
    assert n_threads(3) == 3
    assert used_memory() > 1e6
