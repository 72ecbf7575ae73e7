"""Structure of tables with finite and real columns: 9 and 11 of them, beside pgmpy's conditional-Gaussian BIC on the smallest.

`python benchmarks/mixed.py [rows ...]`; the seconds that `dry_run` foretells are printed, too.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa

import suffice as sf
from timing import line

STATES = (2, 3, 2, 4, 3, 2, 5, 3, 2)
TARGETS = {2_000: 1.0, 200_000: 3.0, 5_000_000: 30.0}


def rows(n: int) -> pa.Table:
    """States that hang on the two before, numbers on numbers and states, some with other variances."""
    rng = np.random.default_rng(0)
    codes: list[Any] = []
    for r in STATES:
        own = rng.integers(0, r, n)
        codes.append(np.where(rng.random(n) < 0.4, sum(codes[-2:]) % r, own) if len(codes) > 1 else own)
    columns: dict[str, Any] = {
        f"f{j}": pa.DictionaryArray.from_arrays(pa.array(c.astype(np.int32)), pa.array([f"s{i}" for i in range(r)]))
        for j, (c, r) in enumerate(zip(codes, STATES, strict=True))
    }
    numbers: list[Any] = []
    for j in range(11):
        x = rng.normal(size=n)
        x += (0.5 * numbers[j - 1] if j else 0.0) - (0.4 * numbers[j - 3] if j > 2 else 0.0)
        x += 0.6 * codes[j % 9] if j % 2 == 0 else 0.0
        numbers.append(x * (1 + 0.3 * (codes[(j + 2) % 9] > 0)) if j % 3 == 0 else x)
    return pa.table(columns | {f"x{j}": x for j, x in enumerate(numbers)})


def ours(table: pa.Table) -> float:
    """Seconds of the processor."""
    start = time.process_time()
    sf.search(table)
    return time.process_time() - start


def pgmpy(table: pa.Table) -> float:
    """A hill climb by the conditional-Gaussian BIC, at most ten edges, which says enough."""
    from pgmpy.estimators import HillClimbSearch

    frame = table.to_pandas()
    start = time.process_time()
    HillClimbSearch(frame).estimate(scoring_method="bic-cg", max_indegree=3, max_iter=10, show_progress=False)
    return time.process_time() - start


def main() -> None:
    sizes = [int(float(a)) for a in sys.argv[1:]] or [2_000, 200_000]
    sf.search(rows(500))
    for n in sizes:
        table = rows(n)
        foretold = sf.search(table, dry_run=True).seconds
        peers = {"pgmpy, its first ten edges": pgmpy(table)} if n <= 2_000 else {}
        line(f"search, 9 finite and 11 real columns, {n:,} rows", ours(table), TARGETS.get(n), **peers)
        print(f"  foretold {foretold:.2g} s")


if __name__ == "__main__":
    main()
