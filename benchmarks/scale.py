"""The 37 tables of ALARM from Parquet files: the files engine, its spill, memory, and Spark from files, held blocks and a frame.

    python benchmarks/scale.py [MILLIONS OF ROWS]
    python benchmarks/scale.py merge

The first needs pyspark (the extra `spark`), psutil and Java 17; the second adds 1,000 files of statistics by `suffice merge`.
Times are seconds of processor time of this process and all that it started, the JVM and its Python workers, and seconds by the
clock; ratios are to the files engine in the same run.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import suffice as sf

FILES = 8
STEPS = 3


def used() -> float:
    """Seconds of processor time of this process and of those that it started and that still run."""
    import psutil

    me = psutil.Process()
    total = 0.0
    for process in (me, *me.children(recursive=True)):
        try:
            times = process.cpu_times()
            total += times.user + times.system
        except psutil.Error:
            continue
    return total


def largest_worker() -> float:
    """MiB of the largest Python worker."""
    import psutil

    workers = [p for p in psutil.Process().children(recursive=True) if "python" in p.name() and "daemon" in " ".join(p.cmdline())]
    return max((p.memory_info().rss for p in workers), default=0) / 2**20


def measured(call: Callable[[], Any]) -> tuple[float, float]:
    """The processor time and the clock of the least of several calls, after one that warms up."""
    call()
    rounds = []
    for _ in range(STEPS):
        before, clock = used(), time.perf_counter()
        call()
        rounds.append((used() - before, time.perf_counter() - clock))
    return min(rounds)


def write_rows(folder: Path, n: int) -> str:
    truth = sf.load("alarm")
    for i in range(FILES):
        pq.write_table(truth.sample(n // FILES, seed=i), folder / f"{i}.parquet", row_group_size=2**18)
    return str(folder / "*.parquet")


def session() -> Any:
    from pyspark.sql import SparkSession

    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.bindAddress": "127.0.0.1"}
    builder = SparkSession.builder.master("local[2]").config("spark.driver.host", "127.0.0.1")
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def merge(n_files: int = 1000) -> None:
    """`suffice merge` of many files of 37 tables: another process, its start included."""
    truth = sf.load("alarm")
    with tempfile.TemporaryDirectory() as folder:
        for i in range(n_files):
            sf.gather(truth.rows(truth.sample(200, seed=i)), truth.dag).save(Path(folder) / f"{i}.stats")
        paths = [str(p) for p in sorted(Path(folder).glob("*.stats"))]
        size = sum(Path(p).stat().st_size for p in paths)
        print(f"{n_files:,} files of 37 tables, {size / 2**20:.1f} MiB; processor seconds, clock; the start of Python first")
        for some in (paths[:1], paths):
            command = [sys.executable, "-m", "suffice", "merge", *some, "-o", str(Path(folder) / "all.stats")]
            rounds = []
            for _ in range(STEPS):
                before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
                (Path(folder) / "all.stats").unlink(missing_ok=True)
                subprocess.run(command, check=True, capture_output=True)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                used_here = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                rounds.append((used_here, time.perf_counter() - clock))
            print(f"  {len(some):5,} files {min(rounds)[0]:8.2f} {min(clock for _, clock in rounds):8.2f}")


def main() -> None:
    if sys.argv[1:] == ["merge"]:
        merge()
    else:
        engines()


def engines() -> None:
    """The 37 tables by every engine."""
    n = int(float(sys.argv[1] if len(sys.argv) > 1 else 2) * 1e6)
    dag = sf.load("alarm").dag
    requests = [sf.Request((node, *dag.parents(node))) for node in dag.nodes]
    with tempfile.TemporaryDirectory() as folder:
        paths = write_rows(Path(folder), n)
        spark = session()
        where = sf.Spark(spark)
        variables = sf.scan(paths).schema
        known = {name: variables[name] for name in dag.nodes}
        memory = sf.scan(paths, known)
        files = sf.scan(paths, known, engine=where)
        held = files.hold()
        rows = {
            "files engine, one streamed pass": lambda: sf.scan(paths, known, memory_limit=1).gather(requests),
            "in memory": lambda: memory.gather(requests),
            "Spark, workers read row groups": lambda: files.gather(requests),
            "Spark, held blocks": lambda: held.gather(requests),
        }
        print(f"{n:,} rows of {len(dag.nodes)} columns, local[2]; processor seconds, clock, ratio to the first line")
        first = None
        for name, call in rows.items():
            cpu, clock = measured(call)
            first = first or cpu
            print(f"  {name:34} {cpu:8.2f} {clock:8.2f} {cpu / first:8.2f}")
        for tasks in (2, 20, 200):
            cpu, clock = measured(lambda k=tasks: spark.sparkContext.parallelize(range(k), k).map(str).count())  # type: ignore[misc]
            print(f"  empty pass of {tasks:3} tasks               {cpu:8.2f} {clock:8.2f}")
        before, clock = used(), time.perf_counter()
        sf.scan(spark.read.parquet(folder), engine=where)
        print(f"  a frame, written once              {used() - before:8.2f} {time.perf_counter() - clock:8.2f}")
        print(f"  largest worker {largest_worker():.0f} MiB")
        spark.stop()


if __name__ == "__main__":
    main()
