"""Structural EM on ALARM: 5,000 rows, some of the cells deleted at random, beside the same search on the complete rows.

Prints the distance (SHD of equivalence classes) of both graphs to the truth, and seconds, for some seeds. Target: at 5 % of cells
missing the distance is within 5 of that of the search on complete rows.

    python benchmarks/structural_em.py [rows] [share of cells missing] [seeds]
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np

import suffice as sf
import timing  # noqa: F401 - quiets notes
from suffice.recipes.structural.structural_em import structural_em

warnings.simplefilter("ignore")


def with_gaps(table: Any, share: float, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    columns = {c: np.array(table[c].to_pylist(), object) for c in table.column_names}
    for values in columns.values():
        values[rng.random(len(values)) < share] = None
    return columns


def main(n_rows: int = 5_000, share: float = 0.05, seeds: int = 4) -> None:
    truth = sf.load("alarm")
    structural_em(with_gaps(truth.sample(100, seed=0), share, 0), rounds=2)  # compiles
    for seed in range(seeds):
        table = truth.sample(n_rows, seed=seed)
        start = time.perf_counter()
        found = sf.search(table, sf.BIC(), sf.HillClimb())
        middle = time.perf_counter()
        run = structural_em(with_gaps(table, share, seed))
        end = time.perf_counter()
        whole, ours = sf.shd(found.dag, truth.dag), sf.shd(run.dag, truth.dag)
        verdict = "met" if ours <= whole + 5 else "MISSED"
        print(
            f"alarm, {n_rows:,} rows, {share:.0%} missing, {seed}: SHD {ours}, {len(run.graphs)} rounds, {end - middle:.1f} s; "
            f"complete rows: SHD {whole}, {middle - start:.2f} s  (target {whole} + 5: {verdict})",
            flush=True,
        )


if __name__ == "__main__":
    given = sys.argv[1:]
    main(*(kind(value) for kind, value in zip((int, float, int), given, strict=False)))
