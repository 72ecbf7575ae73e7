"""Fitting tables: ALARM from 1,000,000 rows and LINK from 100,000, beside pyAgrum and pgmpy on the same rows in the same run.

Ours is measured with the rows in memory as a categorical frame, encoding apart; and from a Parquet file to the network.
pyAgrum reads its rows from a CSV file ("load"), then learns; pgmpy learns from the frame.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

import suffice as sf
from timing import SHARED, line, seconds


def peers_of(bn: sf.BayesNet, frame: object, folder: Path, pgmpy_repeats: int) -> dict[str, float]:
    import pyagrum as gum
    from pgmpy.models import DiscreteBayesianNetwork

    text = frame.astype(str)  # type: ignore[attr-defined]
    text.to_csv(folder / "rows.csv", index=False)
    sf.write(bn, folder / "net.bif")
    theirs = gum.loadBN(str(folder / "net.bif"))
    start = time.perf_counter()
    learner = gum.BNLearner(str(folder / "rows.csv"), theirs)
    learner.useSmoothingPrior(1e-6)  # without it pyAgrum refuses the unseen configurations of LINK
    load = time.perf_counter() - start
    result = {"pyAgrum learn": seconds(lambda: learner.learnParameters(theirs.dag()), 3), "pyAgrum load": load}
    if pgmpy_repeats:
        model = DiscreteBayesianNetwork(list(bn.dag.edges))
        model.add_nodes_from(bn.dag.nodes)
        result["pgmpy"] = seconds(lambda: model.copy().fit(frame), pgmpy_repeats, warm=0)
    return result


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        alarm = sf.load("alarm")
        rows = alarm.sample(1_000_000, seed=0)
        frame = rows.to_pandas()
        pq.write_table(rows, folder / "rows.parquet")
        data = sf.scan(frame)
        start = time.perf_counter()
        data.schema  # noqa: B018
        print(f"ALARM, 1,000,000 rows: encode a categorical frame, once: {time.perf_counter() - start:.3f} s")
        ours = seconds(lambda: sf.fit(alarm.dag, data), 11)
        line("ALARM, 1,000,000 rows: fit 37 tables", ours, 0.05, **peers_of(alarm, frame, folder, 1))
        line(
            "ALARM, 1,000,000 rows: Parquet file to network", seconds(lambda: sf.fit(alarm.dag, folder / "rows.parquet"), 5), 1.5
        )
        link = sf.read(SHARED / "networks" / "link.bif.gz")
        frame = link.sample(100_000, seed=0).to_pandas()
        data = sf.scan(frame)
        data.schema  # noqa: B018
        line(
            "LINK, 100,000 rows: fit 724 tables",
            seconds(lambda: sf.fit(link.dag, data), 7),
            0.2,
            **peers_of(link, frame, folder, 0),
        )
        print("(bnlearn under R, measured once elsewhere: 0.31 s and 0.75 s)")


if __name__ == "__main__":
    main()
