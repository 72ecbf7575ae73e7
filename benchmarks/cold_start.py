"""What a newcomer waits for, with nothing compiled on disk: `import suffice`, small work, searches, `warm` and others."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq
from pyarrow.csv import write_csv

import suffice as sf

CALL = 5
"""Seconds that a call may compile."""


def main() -> None:
    quick = [_seconds([sys.executable, "-c", "import suffice"], {}) for _ in range(5)]
    empty = [_seconds([sys.executable, "-c", "pass"], {}) for _ in range(5)]
    print(f"import suffice: {statistics.median(quick) - statistics.median(empty):.3f} s  (target 0.3 s)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(sf.load("alarm").sample(200_000, seed=0), folder / "rows.parquet")  # enough rows to use the kernels
        command = [
            sys.executable,
            "-m",
            "suffice",
            "fit",
            "alarm",
            str(folder / "rows.parquet"),
            "-o",
            str(folder / "out.json"),
        ]
        settings = {"NUMBA_CACHE_DIR": str(folder / "cache")}
        times = [_seconds(command, settings) for _ in range(3)]
    print(f"suffice fit, nothing compiled yet: {times[0]:.2f} s; again: {times[1]:.2f} s, {times[2]:.2f} s")
    print(f"so it compiles for {times[0] - statistics.median(times[1:]):.2f} s  (target 5 s)")
    with tempfile.TemporaryDirectory() as name:
        rows = sf.load("asia").sample(10_000, seed=1)
        write_csv(rows, Path(name, "rows.csv"))  # drawing them is no part of what a newcomer waits for
        write_csv(rows.drop_columns(["either"]), Path(name, "seen.csv"))
        little = f"import suffice as sf; bn = sf.load('asia'); rows, seen = {name + '/rows.csv'!r}, {name + '/seen.csv'!r}"
        for what in (
            "bn.query('lung', {'xray': 'yes'})",
            "bn.marginals({'xray': 'yes'})",
            "sf.fit(bn.dag, rows)",
            "sf.search(rows)",
            "sf.search(rows, method=sf.PC())",
            "sf.em(bn.dag, seen, hidden=[bn.variables['either']])",
        ):
            _little(what, f"{little}; {what}")
    for what in ("search(rows)", "search(rows, method=sf.PC())", "order_mcmc(few, samples=50)"):
        script = (
            "import suffice as sf; rows = sf.load('alarm').sample(10_000, seed=1); few = rows.select(rows.column_names[:8]); "
            f"sf.{what}"
        )
        print(f"{what} compiles for {_compiling([sys.executable, '-c', script]):.1f} s  (target {CALL} s)")
    gaps = (
        "import numpy as np, suffice as sf; bn = sf.load('alarm'); df = bn.sample(2_000, seed=1).to_pandas().astype(object); "
        "df = df.where(np.random.default_rng(0).random(df.shape) > 0.05)"
    )
    for what in ("em(bn.dag, df)", "structural_em(df.iloc[:, :12])"):
        script = f"{gaps}; sf.{what}"
        print(f"{what} compiles for {_compiling([sys.executable, '-c', script]):.1f} s  (target {CALL} s)")
    for what in ("query('CVP', {'BP': 'LOW'})", "marginals({'BP': 'LOW'})"):
        script = f"import suffice as sf; sf.load('alarm').{what}"
        print(f"bn.{what} compiles for {_compiling([sys.executable, '-c', script]):.1f} s  (target {CALL} s)")
    for family in ("Logistic()", "PoissonLog()"):
        script = (
            "import numpy as np, suffice as sf; r = np.random.default_rng(0); x = r.normal(size=500); y = r.integers(0, 2, 500); "
            f"sf.fit('x -> y', {{'x': x, 'y': y}}, families={{'y': sf.{family}}})"
        )
        print(f"fit with {family} compiles for {_compiling([sys.executable, '-c', script]):.1f} s  (target {CALL} s)")
    chains = (
        "import numpy as np, suffice as sf; y = np.random.default_rng(0).integers(0, 3, 4_000).astype(str); "
        "s = sf.sequences({'y': y}); sf.em('s[-1] -> s -> y', s, hidden=[sf.Finite('s', ['a', 'b'])], max_iter=3)"
    )
    print(f"em of a hidden chain compiles for {_compiling([sys.executable, '-c', chains]):.1f} s  (target 5 s)")
    names = ("chain_lanes", "chain", "best_path")
    names += ("state_normals", "kalman", "kalman_lanes")
    sequences = f"from suffice.numerics.kernels import warm; warm(only={names!r})"
    print(f"all kernels of sequences compile for {_compiling([sys.executable, '-c', sequences]):.1f} s  (target 12 s)")
    every = [sys.executable, "-c", "from suffice.numerics.kernels import warm; warm()"]
    print(f"all kernels compile for {_compiling(every):.1f} s in one process")
    print(f"suffice warm, on all processors: {_compiling([sys.executable, '-m', 'suffice', 'warm']):.1f} s  (target 25 s)")


def _little(what: str, script: str) -> None:
    """What a small network and 10,000 rows take from the start of Python on, with nothing compiled on disk."""
    with tempfile.TemporaryDirectory() as cache:
        before = os.times()
        seconds = _seconds([sys.executable, "-c", script], {"NUMBA_CACHE_DIR": cache})
        after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"asia, 10,000 rows of a CSV, {what}: {seconds:.2f} s, {spent:.2f} s of the processor  (target 1.5 s)")


def _compiling(command: list[str]) -> float:
    """What the first run takes longer than the second."""
    with tempfile.TemporaryDirectory() as cache:
        first, second = (_seconds(command, {"NUMBA_CACHE_DIR": cache}) for _ in range(2))
    return first - second


def _seconds(command: list[str], settings: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, env={**os.environ, **settings}, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
