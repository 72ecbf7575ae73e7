"""More variables than rows: false edges on independent columns, and what a sparse truth keeps, by score.

    python benchmarks/few_rows.py [--quick]

120 real columns. False edges are pairs that are joined without an edge in the truth; recall is the share of true edges whose ends
are joined. Seconds are CPU time of the whole search, default method.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from typing import Any

import numpy as np

import suffice as sf

SCORES = {
    "BIC()": sf.BIC(),
    "BIC() + KollerFriedman()": sf.scores.GraphPosterior(sf.BIC(), sf.scores.KollerFriedman()),
    "BIC() + CasteloSiebes(0.01)": sf.scores.GraphPosterior(sf.BIC(), sf.scores.CasteloSiebes({}, others=0.01)),
    "EBIC(0.5)": sf.choices.EBIC(0.5),
    "EBIC(1)": sf.choices.EBIC(1),
}


def columns(n: int, n_rows: int, n_edges: int, seed: int) -> tuple[dict[str, Any], set[frozenset[str]]]:
    """Rows of a graph whose edges go from the first half of the variables to the second, one into each child, coefficient 1."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n))
    names, truth = [f"v{i:03d}" for i in range(n)], set()
    for child in range(n // 2, n // 2 + n_edges):
        parent = int(rng.integers(0, n // 2))
        rows[:, child] += rows[:, parent]
        truth.add(frozenset((names[parent], names[child])))
    return {name: rows[:, i] for i, name in enumerate(names)}, truth


def main() -> None:
    quick = "--quick" in sys.argv
    warnings.simplefilter("ignore", sf.SufficeNote)
    sf.search(columns(120, 30, 0, 99)[0], sf.choices.EBIC(1))  # kernels are compiled, or loaded
    for n_rows, n_edges in ((30, 0), (30, 40), (60, 40), (120, 40)):
        print(f"\n120 columns, {n_rows} rows, {n_edges} edges".replace(" 0 edges", " all independent"))
        for word, score in SCORES.items():
            if quick and n_rows > 30:
                continue
            repeats = 1 if word == "BIC()" else 3 if quick else 10
            false, recall, took = [], [], []
            for seed in range(repeats):
                rows, truth = columns(120, n_rows, n_edges, seed)
                start = time.process_time()
                found = sf.search(rows, score)
                took.append(time.process_time() - start)
                joined = {frozenset(e) for e in found.dag.edges}
                false.append(len(joined - truth))
                recall.append(len(joined & truth) / len(truth) if truth else np.nan)
            kept = "" if not n_edges else f", recall {statistics.mean(recall):.2f}"
            print(f"  {word:28s} false edges {statistics.mean(false):6.1f} (most {max(false)}){kept}, {min(took):.2f} s CPU")


if __name__ == "__main__":
    main()
