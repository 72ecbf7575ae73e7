"""Most probable states, filled gaps, and how soon a network that is too dense is refused: figures without a peer's."""

from __future__ import annotations

import time

import numpy as np

import suffice as sf
from timing import SHARED, line, seconds


def main() -> None:
    for name in ("alarm", "munin", "link"):
        bn = sf.read(SHARED / "networks" / f"{name}.bif.gz")
        row = bn.sample(1, seed=1).to_pylist()[0]
        given = {n: row[n] for n in np.random.default_rng(0).choice(list(bn), 10, replace=False)}
        line(f"{name}, most_probable given 10", seconds(lambda bn=bn, given=given: bn.most_probable(given), 3))
    alarm = sf.load("alarm")
    frame = alarm.sample(10_000, seed=3).to_pandas().astype(object)
    gaps = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.5)
    line("ALARM, impute 10,000 rows, half of the cells missing", seconds(lambda: alarm.impute(gaps), 3))
    line("ALARM, the same with joint=True, 500 rows", seconds(lambda: alarm.impute(gaps.head(500), joint=True), 1))
    dense = _dense(np.random.default_rng(0))
    for what, ask in (("junction_tree", lambda: dense.junction_tree), ("query", lambda: dense.query("v59"))):
        start = time.perf_counter()
        try:
            ask()
            end = "answered"
        except sf.SufficeError:
            end = "refused"
        line(f"60 binary nodes with 12 parents each, {what}, {end}", time.perf_counter() - start)


def _dense(rng: np.random.Generator, n: int = 60, k: int = 12) -> sf.BayesNet:
    names = [f"v{i:02d}" for i in range(n)]
    parents = {x: [names[j] for j in rng.choice(i, min(i, k), replace=False)] if i else [] for i, x in enumerate(names)}
    tables = {x: rng.dirichlet([1, 1], size=(2,) * len(p)) for x, p in parents.items()}
    return sf.BayesNet(sf.Dag(parents, nodes=names), tables, {x: ["a", "b"] for x in names})


if __name__ == "__main__":
    main()
