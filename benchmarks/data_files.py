"""Families of ALARM from Parquet files larger than memory: Suffice against a DuckDB GROUP BY per family.

    python benchmarks/data_files.py [--rows 50000000] [--files 10] [--folder DIR] [--keep]

writes the files (rows drawn independently, with ALARM's columns and states), counts all 37 families by both in processes of
their own, checks that the counts agree, and prints times, their ratio and the peak memory.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

NETWORK = Path(__file__).parents[2] / "shared/data/networks/alarm.bif.gz"
GROUP = 2**20


def network(path: Path = NETWORK) -> tuple[dict[str, list[str]], list[list[str]]]:
    """The states of each variable, and the families, each with the child last."""
    text = gzip.decompress(path.read_bytes()).decode()
    found = re.finditer(r"variable\s+(\S+)\s*\{[^{]*\{([^}]*)\}", text)
    states = {m[1]: [s.strip() for s in m[2].split(",")] for m in found}
    found = re.finditer(r"probability\s*\(\s*([^|)\s]+)\s*(?:\|\s*([^)]*))?\)", text)
    return states, [[*filter(None, (p.strip() for p in (m[2] or "").split(","))), m[1]] for m in found]


def write(folder: Path, rows: int, files: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    states, _ = network()
    rng = np.random.default_rng(0)
    odds = {n: rng.dirichlet(np.ones(len(s))) for n, s in states.items()}
    for i in range(files):
        left = rows // files + (i < rows % files)
        schema = pa.schema([(n, pa.string()) for n in states])
        with pq.ParquetWriter(folder / f"part{i:03}.parquet", schema, store_schema=False) as writer:
            while left:
                n = min(left, GROUP)
                columns = []
                for name, words in states.items():
                    codes = np.searchsorted(np.cumsum(odds[name])[:-1], rng.random(n, np.float32)).astype(np.int8)
                    columns.append(pa.DictionaryArray.from_arrays(codes, words).cast(pa.string()))
                writer.write_table(pa.table(columns, schema=schema), row_group_size=GROUP)
                left -= n


def ours(pattern: str) -> list[dict[str, float]]:
    from suffice.engines import scan
    from suffice.statistics import Request

    states, families = network()
    statistics = scan(pattern).take(states).gather([Request(tuple(f)) for f in families])
    tables = [statistics.counts(f) for f in families]
    return [{str(int(k)): float(v) for k, v in zip(*t.listed(), strict=True)} for t in tables]


def duckdb_group_by(pattern: str) -> list[dict[str, float]]:
    import duckdb

    states, families = network()
    result = []
    order = {n: sorted(s) for n, s in states.items()}
    for family in families:
        names = ", ".join(f'"{n}"' for n in family)
        found = duckdb.sql(f"select {names}, count(*) from '{pattern}' group by {names}").fetchall()
        shape = [len(states[n]) for n in family]
        keys = [np.ravel_multi_index([order[n].index(s) for n, s in zip(family, row, strict=False)], shape) for row in found]
        result.append({str(int(k)): float(row[-1]) for k, row in zip(keys, found, strict=True)})
    return result


def peak_memory() -> float:
    """In MiB. `ru_maxrss` would not do: it starts from what the parent process had."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def child(which: str, pattern: str) -> None:
    """Run one side and print its time, peak memory and counts."""
    start = time.perf_counter()
    counts = {"ours": ours, "duckdb": duckdb_group_by}[which](pattern)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "peak": peak_memory(), "counts": [dict(sorted(c.items())) for c in counts]}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--only", choices=["ours", "duckdb"])
    parser.add_argument("--child", nargs=2)
    given = parser.parse_args()
    if given.child:
        child(*given.child)
        return
    folder = given.folder or Path(tempfile.mkdtemp(prefix="suffice-bench-"))
    try:
        if not list(folder.glob("*.parquet")):
            start = time.perf_counter()
            folder.mkdir(exist_ok=True)
            write(folder, given.rows, given.files)
            print(f"wrote {given.rows:,} rows x 37 columns in {time.perf_counter() - start:.0f} s")
        results = {}
        for which in (given.only,) if given.only else ("ours", "duckdb"):
            command = [sys.executable, __file__, "--child", which, f"{folder}/*.parquet"]
            results[which] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(f"{which:8} {results[which]['seconds']:7.1f} s   peak {results[which]['peak']:6.0f} MiB")
        if len(results) == 2:
            print(f"ratio    {results['ours']['seconds'] / results['duckdb']['seconds']:7.2f}   (at most 3)")
            print("counts agree:", results["ours"]["counts"] == results["duckdb"]["counts"])
    finally:
        if not given.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
