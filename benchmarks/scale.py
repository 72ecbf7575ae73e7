"""The 37 tables of ALARM from Parquet files: the files engine, its spill, memory, and Spark from files, held blocks and a frame.

    python benchmarks/scale.py [ROWS] [--rows FOLDER] [--frame]
    python benchmarks/scale.py merge

The first needs pyspark (the extra `spark`), psutil and Java 17. Times are seconds of processor time of this process and all
that it started, the JVM and its Python workers, and seconds by the clock; ratios are to the files engine in the same run. With
--rows the files are written to a folder that stays, and are read from there the next time; --frame also sends them through a
frame of Spark. `merge` adds 1,000 files of statistics by `suffice merge`, and needs none of these. `curves`, `memory`, `plot`,
`mllib`: see `scale_curves.py`.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import index
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)

import suffice as sf

FILES = 8
MOST = 2_000_000
STEPS = 3


_seen: dict[tuple[int, float], float] = {}
"""Processor seconds of processes as they were last looked at: Spark ends workers that have nothing to do."""


def used() -> float:
    """Seconds of processor time of this process and of those that it started."""
    import psutil

    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        try:
            times = process.cpu_times()
            _seen[process.pid, process.create_time()] = times.user + times.system
        except psutil.Error:
            continue
    return sum(_seen.values())


def largest_worker() -> float:
    """MiB of the largest Python worker."""
    import psutil

    workers = [p for p in psutil.Process().children(recursive=True) if "python" in p.name() and "daemon" in " ".join(p.cmdline())]
    return max((p.memory_info().rss for p in workers), default=0) / 2**20


def measured(call: Callable[[], Any], rounds_of: int = STEPS) -> tuple[float, float]:
    """The processor time and the clock of the least of several calls, after one that warms up."""
    call()
    rounds = []
    for _ in range(rounds_of):
        before, clock = used(), time.perf_counter()
        call()
        rounds.append((used() - before, time.perf_counter() - clock))
    return min(rounds)


@contextmanager
def rows_in(folder: Path | None, n: int) -> Iterator[Path]:
    """A folder with files of so many rows, written unless they are there."""
    with tempfile.TemporaryDirectory() as own:
        place = Path(own) if folder is None else folder
        place.mkdir(parents=True, exist_ok=True)
        files = sorted(place.glob("*.parquet"))
        if sum(pq.read_metadata(file).num_rows for file in files) != n:
            write_rows(place, n)
        yield place


def write_rows(folder: Path, n: int) -> None:
    """Rows of ALARM in files; those of one call are all that are in memory."""
    truth = sf.load("alarm")
    n_files = max(FILES, -(-n // MOST))
    for old in folder.glob("*.parquet"):
        old.unlink()
    for i in range(n_files):
        part = truth.sample((i + 1) * n // n_files - i * n // n_files, seed=i)
        pq.write_table(part, folder / f"{i:04}.parquet", row_group_size=2**18)


def session() -> Any:
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.python.unix.domain.socket.enabled": "true",  # tasks take less by the clock
    }
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


def tables(folder: Path, with_frame: bool) -> None:
    """Print what a pass costs on each engine."""
    paths = str(folder / "*.parquet")
    dag = sf.load("alarm").dag
    requests = [sf.statistics.Request((node, *dag.parents(node))) for node in dag.nodes]
    spark = session()
    where = sf.Spark(spark)
    known = {v.name: v for v in (sf.load("alarm").variables[name] for name in dag.nodes)}
    spilled, memory = (sf.scan(paths, known, memory_limit=limit) for limit in (1, 2**40))
    files = sf.scan(paths, known, engine=where)
    print(f"{files.n_rows:,} rows of {len(dag.nodes)} columns, local[2]; processor seconds, clock, ratio to the first line")
    own, held = spilled.hold(), files.hold()
    rows: dict[str, Callable[[], Any]] = {
        "files engine, one streamed pass": lambda: sf.scan(paths, known, memory_limit=1).gather(requests),
        "files engine, its spill": lambda: own.gather(requests),
        "Spark, workers read row groups": lambda: files.gather(requests),
        "Spark, held blocks": lambda: held.gather(requests),
    }
    if files.n_rows * len(dag.nodes) < 2**31:
        rows["in memory"] = lambda: memory.gather(requests)
    first, largest = None, 0.0
    for name, call in rows.items():
        cpu, clock = measured(call)
        first, largest = first or cpu, max(largest, largest_worker())  # Spark ends workers that have nothing to do
        print(f"  {name:34} {cpu:8.2f} {clock:8.2f} {cpu / first:8.2f}", flush=True)
    for tasks in (2, 20, 200):
        cpu, clock = measured(lambda k=tasks: where.run(list(range(k)), index))  # type: ignore[misc]
        print(f"  {f'an empty pass of {tasks} tasks':34} {cpu:8.2f} {clock:8.2f}", flush=True)
    if with_frame:
        before, clock = used(), time.perf_counter()
        sf.scan(spark.read.parquet(str(folder)), engine=where)
        print(f"  {'a frame, written once':34} {used() - before:8.2f} {time.perf_counter() - clock:8.2f}")
    driver = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"  the largest worker took {largest:.0f} MiB; the driver's Python, with the other engines, {driver:.0f} MiB")
    spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", metavar="ROWS|merge|curves|memory|plot|mllib", nargs="?", default="2e6")
    parser.add_argument("more", nargs="*", help="of plot: the file of the points and that of the picture; of mllib: the rows")
    parser.add_argument("--rows", metavar="FOLDER", type=Path)
    parser.add_argument("--frame", action="store_true")
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--save", metavar="FILE", type=Path)
    said = parser.parse_args()
    if said.what == "merge":
        merge()
    elif said.what in ("curves", "memory", "plot", "mllib"):
        import scale_curves

        commands: dict[str, Callable[[], None]] = {
            "curves": lambda: scale_curves.curves(said.minutes, said.save),
            "memory": lambda: scale_curves.memory([int(float(n)) for n in said.more] or [10**6, 10**7, 10**8]),
            "plot": lambda: scale_curves.plot(*map(Path, said.more)),
            "mllib": lambda: scale_curves.mllib(int(float(said.more[0] if said.more else 1e6))),
        }
        commands[said.what]()
    else:
        with rows_in(said.rows, int(float(said.what))) as folder:
            tables(folder, said.frame)


if __name__ == "__main__":
    main()
