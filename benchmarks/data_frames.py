"""From a million rows of ALARM's columns to its 37 tables: encoding and counting, by kind of input.

python benchmarks/data_frames.py [--rows 1000000]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import data_files
from suffice.engines import scan
from suffice.statistics import Request


def best(act: Callable[[], Any], times: int = 3) -> float:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        act()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    n = parser.parse_args().rows
    states, families = data_files.network()
    requests = [Request(tuple(f)) for f in families]
    rng = np.random.default_rng(0)
    codes = {name: rng.integers(0, len(s), n).astype(np.int8) for name, s in states.items()}
    categories = pd.DataFrame({name: pd.Categorical.from_codes(c, states[name]) for name, c in codes.items()})
    texts = pa.table({name: pa.DictionaryArray.from_arrays(c, states[name]).cast(pa.string()) for name, c in codes.items()})
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(texts, Path(folder) / "t.parquet", store_schema=False)
        pyarrow.csv.write_csv(texts, Path(folder) / "t.csv", pyarrow.csv.WriteOptions(quoting_style="none"))
        pyarrow.csv.write_csv(texts, Path(folder) / "q.csv")
        inputs: dict[str, Any] = {
            "pandas categories": categories,
            "pandas text": texts.to_pandas(),
            "polars categories": pl.from_arrow(texts).with_columns(pl.all().cast(pl.Categorical)),  # type: ignore[union-attr]
            "polars text": pl.from_arrow(texts),
            "arrow text": texts,
            "integer codes": {k: c.astype(np.int64) for k, c in codes.items()},
            "parquet": f"{folder}/t.parquet",
            "csv": f"{folder}/t.csv",
            "csv, quoted": f"{folder}/q.csv",
        }
        from suffice.basis.variables import Finite

        for name, x in inputs.items():
            data = scan(x, integers=Finite)
            data.gather(requests)
            encode = best(lambda x=x: scan(x, integers=Finite).schema)
            print(f"{name:18} encode {encode:6.3f} s   gather {best(lambda data=data: data.gather(requests), 7):6.3f} s")


if __name__ == "__main__":
    main()
