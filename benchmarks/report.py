"""Reports: how large they are, and what they take beside learning.

    python benchmarks/report.py

ALARM with 10,000 rows: at most 500 kB and 5 s; MUNIN: at most 2 MB, alone and with 2,000 rows. Processor time of one call, after
one that loads what is needed. Exit 1 where a figure is not reached.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import suffice as sf
from suffice.basis.output.display import text_table
from suffice.interfaces.reports import report_html

HEADER = ["report", "nodes", "kB", "at most kB", "seconds", "at most", "learning took"]


def timed(f: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    value = f()
    return value, time.process_time() - start


def measured(what: str, learn: Callable[[], Any], rows: Any, kilobytes: int, seconds: float | None) -> tuple[list[object], bool]:
    """A line of the table, and whether all is as it should be."""
    x, learning = timed(learn)
    html, spent = timed(lambda: report_html(x, rows))
    size = len(html.encode()) / 1e3
    line = [what, html.count("<article"), round(size), kilobytes, round(spent, 2), seconds or "", round(learning, 2)]
    return line, size <= kilobytes and (seconds is None or spent <= seconds)


def main() -> int:
    alarm, munin = sf.load("alarm"), sf.load("munin")
    many, some = alarm.sample(10_000, seed=0), munin.sample(2_000, seed=0)
    report_html(sf.search(alarm.sample(500, seed=1)))
    lines = [
        measured("alarm, searched in 10,000 rows", lambda: sf.search(many), many, 500, 5.0),
        measured("alarm, 10,000 rows", lambda: sf.fit(alarm.dag, many, prior=sf.BDeu(1)), many, 500, 5.0),
        measured("munin", lambda: munin, None, 2_000, None),
        measured("munin, 2,000 rows", lambda: sf.fit(munin.dag, some, prior=sf.BDeu(1)), some, 2_000, None),
    ]
    print(text_table(HEADER, [line for line, _ in lines]))
    return int(not all(good for _, good in lines))


if __name__ == "__main__":
    sys.exit(main())
