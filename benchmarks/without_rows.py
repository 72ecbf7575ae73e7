"""Searches from statistics beside searches of rows, ALARM's 37 variables, up to two parents: CPU seconds, medians of 7.

python benchmarks/without_rows.py [rows]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import suffice as sf


def cpu(work: Callable[[], Any], repeats: int = 7) -> float:
    """The median CPU time, after one run that is not measured."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    warnings.simplefilter("ignore", sf.SufficeNote)
    table = sf.load("alarm").sample(n, seed=1)
    data = sf.scan(table)
    size = sf.gather(data, max_parents=2, dry_run=True)
    print(f"ALARM, {n:,} rows: {size.in_words()}")
    print(f"gather: {cpu(lambda: sf.gather(data, max_parents=2), 3):.3f} s")
    every = sf.gather(data, max_parents=2)
    sites = [sf.gather(table.slice(*part), max_parents=2) for part in ((0, n // 3), (n // 3, n))]
    print(f"sum of two sites: {cpu(lambda: sites[0] + sites[1], 3):.3f} s")
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "site.stats"
        print(f"save {cpu(lambda: every.save(path), 3):.3f} s, load {cpu(lambda: sf.Statistics.load(path), 3):.3f} s")
    for method in (
        sf.Orders(max_parents=2),
        sf.HillClimb(max_parents=2),
        sf.methods.Tabu(max_parents=2),
        sf.methods.GES(max_parents=2),
    ):
        rows, without = (cpu(partial(sf.search, d, method=method)) for d in (data, every))
        here, there = sf.search(sites[0] + sites[1], method=method), sf.search(data, method=method)
        same = "same graph and score" if (here.dag, here.score) == (there.dag, there.score) else "OTHER GRAPH"
        print(
            f"{type(method).__name__:10s} rows {rows:.3f} s, statistics {without:.3f} s ({rows / without:.1f} x); sites: {same}"
        )


if __name__ == "__main__":
    main()
