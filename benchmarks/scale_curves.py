"""What a pass costs by rows, columns and partitions, over all engines; a plot of it; what memory it takes; and MLlib's learners
beside ours.

python benchmarks/scale.py curves [--minutes 15] [--save FILE]
python benchmarks/scale.py memory [ROWS ...]
python benchmarks/scale.py plot FILE docs/scaling.svg
python benchmarks/scale.py mllib [ROWS]
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import suffice as sf
from scale import largest_worker, measured, session

UNIT = 1_000_000
"""Rows of a file; more rows are the same file under more names, for what is in them does not matter to the time."""

COLUMNS, PARTITIONS = (10, 100, 1000), (1, 10, 100, 1000)


def alarm_files(folder: Path, n: int) -> str:
    """Files of n rows of ALARM."""
    folder.mkdir()
    first = folder / "0000.parquet"
    pq.write_table(sf.load("alarm").sample(min(n, UNIT), seed=0), first, row_group_size=2**18)
    for i in range(1, n // UNIT):
        os.link(first, folder / f"{i:04}.parquet")
    return str(folder / "*.parquet")


def binary_files(folder: Path, n_columns: int, n: int = 200_000) -> str:
    """Files of columns of two states, each like the one before it."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    codes = np.cumsum(rng.random((n_columns, n)) < 0.3, axis=0, dtype=np.int64) % 2
    states = pa.array(["no", "yes"])
    table = pa.table({f"v{i}": pa.DictionaryArray.from_arrays(pa.array(c.astype(np.int8)), states) for i, c in enumerate(codes)})
    for i in range(4):
        pq.write_table(table.slice(i * n // 4, n // 4), folder / f"{i}.parquet", row_group_size=2**16)
    return str(folder / "*.parquet")


def passes(
    paths: str, known: dict[str, Any], requests: Sequence[sf.statistics.Request], spark: Any
) -> dict[str, Callable[[], Any]]:
    """A pass over the rows on each engine; what has to be read or written before was."""
    memory, there = sf.scan(paths, known, memory_limit=2**40), sf.scan(paths, known, engine=sf.Spark(spark))
    held = there.hold()
    every: dict[str, Callable[[], Any]] = {
        "files": lambda: sf.scan(paths, known, memory_limit=1).gather(requests),
        "Spark": lambda: there.gather(requests),
        "Spark, held": lambda: held.gather(requests),
    }
    return every if there.n_rows * len(known) > 2**31 else {"memory": lambda: memory.gather(requests), **every}


def curves(minutes: float, save: Path | None) -> None:
    """Measure until the time is over: rows up to 10⁸ come last."""
    end = time.monotonic() + 60 * minutes
    points: list[dict[str, Any]] = []
    spark = session()
    with tempfile.TemporaryDirectory() as place:
        for what, at, engine, call in chain(
            *(by(Path(place), spark) for by in (by_rows, by_partitions, by_columns, by_many_rows))
        ):
            if time.monotonic() > end:
                print(f"the {minutes:g} minutes are over: larger ones were left out")
                break
            cpu, clock = measured(call, 1)
            points.append({"by": what, "at": at, "engine": engine, "cpu": cpu, "clock": clock})
            print(f"  {what:10} {at:11,} {engine:18} {cpu:9.3f} {clock:9.3f}", flush=True)
            if save is not None:
                save.write_text(json.dumps(points, indent=1))
    spark.stop()


Point = tuple[str, int, str, Callable[[], Any]]


def by_many_rows(place: Path, spark: Any) -> Iterator[Point]:
    return by_rows(place, spark, (10**8,))


def by_rows(place: Path, spark: Any, sizes: Sequence[int] = (10**5, 10**6, 10**7)) -> Iterator[Point]:
    network = sf.load("alarm")
    known = {name: network.variables[name] for name in network.dag.nodes}
    requests = [sf.statistics.Request((node, *network.dag.parents(node))) for node in network.dag.nodes]
    for n in sizes:
        for engine, call in passes(alarm_files(place / f"rows{n}", n), known, requests, spark).items():
            yield "rows", n, engine, call


def by_columns(place: Path, spark: Any) -> Iterator[Point]:
    for n in COLUMNS:
        known = {f"v{i}": sf.Finite(f"v{i}", ["no", "yes"]) for i in range(n)}
        requests = [sf.statistics.Request((f"v{i}", f"v{i + 1}")) for i in range(n - 1)]
        for engine, call in passes(binary_files(place / f"columns{n}", n), known, requests, spark).items():
            yield "columns", n, engine, call


def by_partitions(place: Path, spark: Any) -> Iterator[Point]:
    path = place / "groups.parquet"
    pq.write_table(sf.load("asia").sample(10**6, seed=0), path, row_group_size=1000)
    known = dict(sf.load("asia").variables)
    for n in PARTITIONS:
        where = sf.Spark(spark, partitions=n)
        rows = sf.scan(path, known, engine=where)
        yield "partitions", n, "Spark", lambda rows=rows: rows.gather([sf.statistics.Request(("smoke", "lung"))])
        yield "partitions", n, "an empty pass", lambda where=where, n=n: where.run(list(range(n)), index)


def memory(sizes: Sequence[int]) -> None:
    """What the largest worker and the driver's Python take after passes over more and more rows: over the files, and over blocks
    that are kept, where those are no more than 10⁷ rows."""
    import psutil

    network = sf.load("alarm")
    known = {name: network.variables[name] for name in network.dag.nodes}
    requests = [sf.statistics.Request((node, *network.dag.parents(node))) for node in network.dag.nodes]
    spark = session()
    with tempfile.TemporaryDirectory() as place:
        for n in sizes:
            rows = sf.scan(alarm_files(Path(place) / str(n), n), known, engine=sf.Spark(spark))
            rows.gather(requests)
            if n <= 10**7:
                rows.hold().gather(requests)
            driver = psutil.Process().memory_info().rss / 2**20
            print(f"  {n:11,} rows: the largest worker {largest_worker():4.0f} MiB, the driver {driver:4.0f} MiB", flush=True)
    spark.stop()


def plot(points: Path, path: Path) -> None:
    """Three panels: processor seconds of a pass by rows, columns and partitions."""
    from matplotlib import pyplot as plt

    plt.rcParams["svg.fonttype"] = "none"
    found = json.loads(points.read_text())
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), sharey=True, layout="constrained")
    titles = {"rows": "37 columns", "columns": "200,000 rows", "partitions": "1,000,000 rows of 8 columns"}
    for ax, (what, title) in zip(axes, titles.items(), strict=True):
        mine = [p for p in found if p["by"] == what]
        for engine in dict.fromkeys(p["engine"] for p in mine):
            line = [(p["at"], max(p["cpu"], 0.01)) for p in mine if p["engine"] == engine]
            ax.loglog(*zip(*line, strict=True), marker="o", markersize=3, label=engine)
        ax.set(xlabel=what, title=title)
        ax.legend(fontsize=8, frameon=False)
    axes[0].set_ylabel("processor seconds of a pass")
    figure.savefig(path, metadata={"Date": None})


def mllib(n: int) -> None:
    """MLlib's naive Bayes and mixture of normals beside ours, on the same session and the same Parquet files."""
    from pyspark.ml.classification import NaiveBayes
    from pyspark.ml.clustering import GaussianMixture
    from pyspark.ml.feature import VectorAssembler

    spark = session()
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    names = [f"b{i}" for i in range(20)]
    bits = {name: (rng.random(n) < 0.3 + 0.3 * y).astype(np.int32) for name in names}
    numbers = {f"x{i}": rng.normal(size=n) + 2 * y for i in range(5)}
    with tempfile.TemporaryDirectory() as place:
        table = pa.table({"y": y.astype(np.int32), **bits, **numbers})
        for i in range(4):
            pq.write_table(table.slice(i * n // 4, n // 4), Path(place) / f"{i}.parquet", row_group_size=2**17)
        where, paths = sf.Spark(spark), f"{place}/*.parquet"
        finite = {name: sf.Finite(name, ["0", "1"]) for name in ("y", *names)}
        rows = sf.scan(paths, {**finite, **{x: sf.Real(x) for x in numbers}}, engine=where)
        frame = spark.read.parquet(place)
        vectors = {
            kind: VectorAssembler(inputCols=list(columns), outputCol="features").transform(frame)
            for kind, columns in {"bits": names, "numbers": numbers}.items()
        }
        bayes = NaiveBayes(modelType="bernoulli", labelCol="y")
        normal = GaussianMixture(k=2, maxIter=10, tol=0.0, seed=1)
        classes, real = rows.select(["y", *names]), rows.select(list(numbers))
        calls: dict[str, Callable[[], Any]] = {
            "naive Bayes, 20 features: MLlib": lambda: bayes.fit(vectors["bits"]),
            "naive Bayes, 20 features: ours": lambda: sf.naive_bayes(classes, "y"),
            "mixture of 5 numbers, 10 iterations: MLlib": lambda: normal.fit(vectors["numbers"]),
            "mixture of 5 numbers, 10 iterations: ours": lambda: sf.mixture(real, 2, starts=1, max_iter=10, tol=0),
        }
        print(f"{n:,} rows, local[2]; processor seconds, clock")
        for what, call in calls.items():
            cpu, clock = measured(call, 2)
            print(f"  {what:44} {cpu:8.2f} {clock:8.2f}", flush=True)
    spark.stop()
