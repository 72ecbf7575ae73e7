"""Hot paths of one checkout, to compare with those of another on the same machine, in turn.

python benchmarks/before_after.py new.json                 (in each checkout, several times)
python benchmarks/before_after.py old.json new.json        prints both and the ratio
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import suffice as sf
from ways import command


def seconds(work: Callable[[], Any], times: int) -> list[float]:
    """How long some work takes, warm."""
    work()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return found


def median(work: Callable[[], Any], times: int = 5) -> float:
    return float(np.median(seconds(work, times)))


def least(work: Callable[[], Any], times: int = 25) -> float:
    """Of work so short that whatever else the machine does would decide a median."""
    return min(seconds(work, times))


def iteration(run: Any) -> float:
    return float(np.median([b.seconds - a.seconds for a, b in pairwise(run.trace)]))


def with_gaps(table: pa.Table, share: float) -> pa.Table:
    rng, columns = np.random.default_rng(0), {}
    for name in table.column_names:
        cells = pa.concat_arrays(table[name].chunks)
        mask = rng.random(len(cells)) < share
        columns[name] = pa.DictionaryArray.from_arrays(pa.array(cells.indices.to_numpy(), mask=mask), cells.dictionary)
    return pa.table(columns)


def measured() -> dict[str, float]:
    bn, rng = sf.load("alarm"), np.random.default_rng(0)
    rows, known = bn.sample(1_000_000, seed=0), dict(bn.variables)
    whole, gaps = sf.scan(rows, known), sf.scan(with_gaps(rows, 0.05), known)
    some = {n: sf.scan(rows.slice(0, n), known) for n in (5_000, 10_000, 20_000, 100_000)}
    few_gaps = sf.scan(with_gaps(rows.slice(0, 10_000), 0.1), known)
    x = rng.normal(size=(1_000_000, 10)) + rng.integers(0, 8, 1_000_000)[:, None]
    numbers = {f"x{i}": x[:, i] for i in range(10)}
    label = np.where(rng.random(len(x)) < 1 / (1 + np.exp(-x[:, 0])), "y", "n")
    labelled, dag = sf.scan({**numbers, "y": label}), {"y": list(numbers)}
    half = with_gaps(rows.slice(0, 10_000), 0.5).to_pandas()
    return {
        "fit, 1M rows": least(lambda: sf.fit(bn.dag, whole)),
        "hill climb, 10k rows": least(lambda: sf.search(some[10_000], method=sf.HillClimb())),
        "hill climb, 100k rows": least(lambda: sf.search(some[100_000], method=sf.HillClimb()), 12),
        "default search, 20k rows": least(lambda: sf.search(some[20_000]), 8),
        "PC, 10k rows": median(lambda: sf.search(some[10_000], method=sf.PC())),
        "EM, 10k rows, an iteration": iteration(sf.em(bn.dag, few_gaps, max_iter=60, tol=0)),
        "EM, 1M rows, an iteration": iteration(sf.em(bn.dag, gaps, max_iter=40, tol=0)),
        "EM, 1M rows, setup and one": median(lambda: sf.em(bn.dag, gaps, max_iter=1, tol=0), 3),
        "mixture, 1M x 10, an iteration": iteration(sf.mixture(numbers, 8, starts=1, max_iter=6, tol=0)),
        "logistic, 1M x 10": median(lambda: sf.fit(dag, labelled, families={"y": sf.Logistic()}), 3),
        "predict_proba, 10k rows": least(lambda: bn.predict_proba(half, "HR")),
        "log_prob with gaps, 10k rows": least(lambda: bn.log_prob(half), 12),
        "impute, 5 draws": median(lambda: bn.impute(half, draws=5), 2),
        "bootstrap of hill climbs, 20 x 5k": median(lambda: sf.bootstrap(some[5_000], method=sf.HillClimb(), n=20), 3),
        **little(rows.slice(0, 2_000).to_pandas()),
    }


def little(rows: Any) -> dict[str, float]:
    """Calls on little data, where what the library does around its kernels is most of the time."""
    bn, asia = sf.load("alarm"), sf.load("asia")
    few = asia.sample(500, seed=0).to_pandas()
    gaps = few.assign(lung=few["lung"].where(np.arange(len(few)) % 7 > 0))
    known, hidden = sf.fit(asia.dag, few, prior=sf.BDeu(1)), [sf.Finite("h", ["a", "b"])]
    dag, evidence = sf.Dag("h -> lung; h -> bronc; h -> smoke"), {"smoke": "yes"}
    with tempfile.TemporaryDirectory() as folder:
        place, model = Path(folder) / "numbers.csv", str(Path(folder) / "model.json")
        place.write_text("x,y\n" + "".join(f"{(7 * i) % 13 / 2},{'no' if (i * i) % 7 < 3 else 'yes'}\n" for i in range(200)))
        words = ("fit", "x -> y", str(place), "-o", model, "--family", "y=logistic")
        return {
            "fit, 2,000 rows": least(lambda: sf.fit(bn.dag, rows, prior=sf.BDeu(1))),
            "EM, a hidden variable, 500 rows": least(lambda: sf.em(dag, few, hidden=hidden, starts=2)),
            "EM, gaps, 500 rows": least(lambda: sf.em(asia.dag, gaps, prior=sf.BDeu(1))),
            "query": least(lambda: known.query("dysp", evidence)),
            "query with an interval": least(lambda: known.query("dysp", evidence, interval=0.95)),
            "suffice fit, a regression, 200 rows": least(lambda: command(*words)),
        }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if len(sys.argv) == 2:
        Path(sys.argv[1]).write_text(json.dumps(measured()))
    else:
        old, new = (json.loads(Path(p).read_text()) for p in sys.argv[1:3])
        for what, seconds in old.items():
            print(f"{what:36} {1e3 * seconds:10.2f} {1e3 * new[what]:10.2f} ms   {new[what] / seconds:.2f}")
