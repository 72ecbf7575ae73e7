"""Medians of repeated runs, and lines that set one program beside another."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def seconds(work: Callable[[], Any], repeats: int = 5, warm: int = 1) -> float:
    """The median time of `work`, after it was run `warm` times unmeasured."""
    for _ in range(warm):
        work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def line(what: str, ours: float, target: float | None = None, **peers: float) -> None:
    """One result: our time, what it should be, and each peer's time as a multiple of ours."""
    goal = "" if target is None else f"  (target {target:g} s: {'met' if ours <= target else 'MISSED'})"
    others = "".join(f"; {name} {t:.4g} s = {t / ours:.1f}x" for name, t in peers.items())
    print(f"{what}: {ours:.4g} s{goal}{others}", flush=True)
