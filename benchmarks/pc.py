"""PC beside causal-learn: ALARM samples (G²) and Gaussian networks (Fisher z): times, and distances to the true class."""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any

import numpy as np

import suffice as sf
from suffice.structure.methods.pc import MMHC, PC
from suffice.structure.search import search
from timing import line, seconds

PEERS = "--alone" not in sys.argv


def gaussian(n: int, n_rows: int, seed: int) -> tuple[dict[str, Any], sf.Dag]:
    """A random graph of mean degree 3 with coefficients from 0.1 to 1, and rows of it."""
    rng = np.random.default_rng(seed)
    edges = np.tril(rng.random((n, n)) < 3 / (n - 1), -1)
    weights = edges * rng.uniform(0.1, 1, (n, n))
    rows = np.zeros((n_rows, n))
    for i in range(n):
        rows[:, i] = rows @ weights[i] + rng.normal(size=n_rows)
    names = [f"v{i:03d}" for i in range(n)]
    dag = sf.Dag([(names[j], names[i]) for i, j in np.argwhere(edges)], nodes=names)
    return {name: rows[:, i] for i, name in enumerate(names)}, dag


def causal_learn(rows: np.ndarray, names: list[str], alpha: float, test: str) -> tuple[float, sf.Cpdag]:
    """Its time, and the class it finds; an edge with two heads, where its colliders contradict each other, is undirected."""
    from causallearn.search.ConstraintBased.PC import pc

    start = time.perf_counter()
    graph = pc(rows, alpha, test, stable=True, show_progress=False, verbose=False).G.graph
    took = time.perf_counter() - start
    arrows = [(names[j], names[i]) for i, j in np.argwhere((graph == 1) & (graph.T == -1))]
    lines = [(names[i], names[j]) for i, j in np.argwhere(np.triu((graph == graph.T) & (graph != 0)))]
    return took, sf.Cpdag(arrows, lines, nodes=names)


def alarm() -> None:
    bn = sf.load("alarm")
    names = sorted(bn.dag.nodes)
    ours, theirs, times = [], [], []
    for k in range(10):
        table = bn.sample(10_000, seed=k)
        data = sf.scan(table)
        ours.append(sf.shd(search(data, method=PC()).cpdag, bn.dag))
        if PEERS:
            codes = np.column_stack([table[n].combine_chunks().indices.to_numpy() for n in names]).astype(int)
            took, cpdag = causal_learn(codes, names, 0.05, "gsq")
            times.append(took)
            theirs.append(sf.shd(cpdag, bn.dag))
    peers = {"causal-learn": statistics.median(times)} if times else {}
    line("ALARM, 10,000 rows: PC, alpha 0.05, G²", seconds(lambda: search(data, method=PC())), 0.1, **peers)
    line("ALARM, 10,000 rows: MMHC", seconds(lambda: search(data, method=MMHC())))
    print(f"distance to the true class, 10 samples: {ours}, median {statistics.median(ours):g}")
    if theirs:
        print(f"                          causal-learn: {theirs}, median {statistics.median(theirs):g}")
    large = sf.scan(bn.sample(1_000_000, seed=0))
    large.schema  # noqa: B018
    line("ALARM, 1,000,000 rows: PC", seconds(lambda: search(large, method=PC()), 1))


def normal(n: int, target: float, peer: bool) -> None:
    rows, dag = gaussian(n, 5_000, 0)
    data = sf.scan(rows)
    data.schema  # noqa: B018
    found = search(data, method=PC(alpha=0.01))
    text, peers = f"; distance {sf.shd(found.cpdag, dag)}", {}
    if PEERS and peer:
        peers["causal-learn"], cpdag = causal_learn(np.column_stack(list(rows.values())), list(rows), 0.01, "fisherz")
        text += f", causal-learn's {sf.shd(cpdag, dag)}"
    took = seconds(lambda: search(data, method=PC(alpha=0.01)), 3)
    line(
        f"{n} real variables, 5,000 rows: PC, alpha 0.01, Fisher z, {found.details.n_tests:,} tests{text}", took, target, **peers
    )


def main() -> None:
    alarm()
    normal(100, 0.5, peer=True)
    normal(500, 20, peer=False)  # causal-learn takes more than a minute


if __name__ == "__main__":
    main()
