"""Prediction from file to file: rows a second and peak memory of `suffice predict`, for files of two sizes.

    python benchmarks/predict_files.py [--rows 250000] [--times 4]

draws rows of ALARM, blanks half of the cells of each, and predicts LVFAILURE from CSV and Parquet into CSV and Parquet, in
processes of their own. The peak memory of the larger file should be about that of the smaller one.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import suffice as sf

TARGET = "LVFAILURE"
PART = 50_000

CHILD = """
import resource, sys, time
from suffice.interfaces.cli.app import app
model, data, target, out = sys.argv[1:]
start = time.perf_counter()
app(["predict", model, data, "--target", target, "-o", out], standalone_mode=False)
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def write(folder: Path, rows: int) -> dict[str, Path]:
    """The same rows as CSV and as Parquet."""
    bn = sf.load("alarm")
    paths = {kind: folder / f"rows_{rows}.{kind}" for kind in ("csv", "parquet")}
    schema = pa.schema([(n, pa.string()) for n in bn.variables])
    with pa.csv.CSVWriter(paths["csv"], schema) as text, pq.ParquetWriter(paths["parquet"], schema) as parquet:
        for start in range(0, rows, PART):
            table = bn.sample(min(PART, rows - start), seed=start)
            gaps = np.random.default_rng(start).random((table.num_columns, table.num_rows)) < 0.5
            columns = [c.combine_chunks().cast(pa.string()) for c in table.columns]
            blanked = [pa.compute.if_else(pa.array(g), None, c) for g, c in zip(gaps, columns, strict=True)]
            part = pa.table(blanked, schema=schema)
            text.write_table(part)
            parquet.write_table(part)
    return paths


def measured(model: Path, data: Path, out: Path) -> tuple[float, float]:
    """Seconds and peak bytes of one prediction in a process of its own."""
    words = [sys.executable, "-c", CHILD, str(model), str(data), TARGET, str(out)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    seconds, peak = re.findall(r"[\d.e+]+", done.stdout.splitlines()[-1])
    return float(seconds), float(peak)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=250_000)
    parser.add_argument("--times", type=int, default=4, help="how many times as many rows the larger files have")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = folder / "alarm.json"
        sf.write(sf.load("alarm"), model)
        for rows in (asked.rows, asked.rows * asked.times):
            for kind, data in write(folder, rows).items():
                seconds, peak = measured(model, data, folder / f"out.{kind}")
                size = data.stat().st_size / 2**20
                print(
                    f"{rows:,} rows of ALARM, half of the cells missing, {kind} of {size:,.0f} MiB: {seconds:.1f} s, "
                    f"{rows / seconds:,.0f} rows/s, peak memory {peak / 2**20:,.0f} MiB",
                    flush=True,
                )
                data.unlink()


if __name__ == "__main__":
    main()
