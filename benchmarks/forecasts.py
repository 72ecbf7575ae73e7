"""What `dry_run=True` foretells of searches, bootstraps and order MCMC, beside the processor time that they then take.

Kernels are compiled and loaded before, one thread does the work, and the processor's time is taken, so that other work on the
machine hardly matters. Wanted: ratios between ½ and 2.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("SUFFICE_COMPILE", "now")  # what is compiled is loaded at once, not after half a second

import suffice as sf

TABLES = {"asia": 2_000, "insurance": 5_000, "alarm": 10_000}


def calls(data: sf.Data) -> Iterator[tuple[str, Callable[..., Any]]]:
    yield "search", lambda **how: sf.search(data, **how)
    yield "search, hill climb", lambda **how: sf.search(data, method=sf.HillClimb(), **how)
    yield "5 bootstraps", lambda **how: sf.bootstrap(data, n=5, **how)
    yield "5 bootstraps, hill climb", lambda **how: sf.bootstrap(data, method=sf.HillClimb(), n=5, **how)
    yield "order MCMC, 2 parents", lambda **how: sf.methods.order_mcmc(data, samples=200, max_parents=2, **how)
    yield "order MCMC, 3 parents", lambda **how: sf.methods.order_mcmc(data, samples=100, max_parents=3, **how)


def main() -> None:
    warnings.simplefilter("ignore", sf.SufficeNote)
    for name, n_rows in TABLES.items():
        data = sf.scan(sf.load(name).sample(n_rows, seed=1))
        for what, call in calls(data):
            call(threads=1)
            plan, start = call(threads=1, dry_run=True), time.process_time()
            call(threads=1)
            took = time.process_time() - start
            told = f"estimated {plan.seconds:6.3f} s, took {took:6.3f} s, {took / plan.seconds:5.2f}×"
            print(f"{name}, {n_rows:,} rows: {what:26s} {told}", flush=True)


if __name__ == "__main__":
    main()
