"""Neighbourhoods of an Ising grid beside scikit-learn's liblinear and saga, node by node; a path of penalties by EBIC.

Process time of one thread, peers in the same run; of peers some nodes are timed, and the whole graph is reckoned from their mean.
The penalty is ½ √(ln p / n) on log odds ratios: states are coded 0 and 1 for the peers. The objective of each is compared.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import statistics
import time
import warnings
from typing import Any

import numpy as np

import suffice as sf

GRIDS = ((10, 10, 5_000), (10, 20, 10_000))
WANTED = {"liblinear": 15.0, "saga": 60.0}
COUPLING, SWEEPS, NODES, REPEATS = 0.4, 30, 8, 9


def grid(n_rows: int, n_columns: int, n: int, seed: int) -> tuple[Any, Any]:
    """Spins [row, site] of a grid with couplings ± 0.4, each row a Gibbs chain of its own; and the couplings."""
    rng = np.random.default_rng(seed)
    p = n_rows * n_columns
    J = np.zeros((p, p))
    for i in range(p):
        for j in ([i + 1] if (i + 1) % n_columns else []) + ([i + n_columns] if i + n_columns < p else []):
            J[i, j] = J[j, i] = COUPLING * rng.choice([-1, 1])
    x = rng.choice([-1.0, 1.0], (n, p))
    for _ in range(SWEEPS):
        for i in range(p):
            x[:, i] = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * x @ J[i])), 1.0, -1.0)
    return x > 0, J


def timed(call: Any) -> tuple[float, Any]:
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def peer(solver: str, x: Any, node: int, penalty: float) -> tuple[float, float]:
    """Seconds for one node, and its objective."""
    from sklearn.linear_model import LogisticRegression

    X, y = np.delete(x.astype(float), node, 1), x[:, node]
    how: dict[str, Any] = {"intercept_scaling": 10.0} if solver == "liblinear" else {"max_iter": 2000}
    model = LogisticRegression(penalty="l1", solver=solver, C=1.0 / (len(x) * penalty), tol=1e-4, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, _ = timed(lambda: model.fit(X, y))
    b = model.coef_[0]
    eta = X @ b + model.intercept_[0]
    return seconds, float(np.logaddexp(0.0, np.where(y, -eta, eta)).mean() + penalty * np.abs(b).sum())


def objectives(found: Any, x: Any, penalty: float, nodes: range) -> list[float]:
    """Of some nodes, from what was found: the same formula as for the peers."""
    effects, names = found.details.coefficients, found.names
    z = x.T - 0.5
    result = []
    for i in nodes:
        b = np.array([0.0 if j == i else float(effects.effect(names[i], other)[0, 0]) for j, other in enumerate(names)])
        eta = b @ z + float(effects.intercept(names[i])[0])
        result.append(float(np.logaddexp(0.0, np.where(x[:, i], -eta, eta)).mean() + penalty * np.abs(b).sum()))
    return result


def run() -> None:
    for n_rows, n_columns, n in GRIDS:
        x, J = grid(n_rows, n_columns, n, seed=1)
        p = n_rows * n_columns
        names = [f"x{i:03d}" for i in range(p)]
        data = sf.scan({name: np.where(x[:, i], "up", "down") for i, name in enumerate(names)})
        _ = data.schema
        penalty = 0.5 * float(np.sqrt(np.log(p) / n))
        method = sf.Neighbourhoods(penalty=penalty)
        sf.search(data, method=method, threads=1)
        runs = [timed(lambda: sf.search(data, method=method, threads=1)) for _ in range(REPEATS)]  # noqa: B023
        own, found = statistics.median(seconds for seconds, _ in runs), runs[0][1]
        edges = {(names[i], names[j]) for i, j in np.argwhere(np.triu(J)).tolist()}
        there = set(found.graph.edges)
        right = f"{len(edges & there)} of {len(edges)} edges, {len(there - edges)} false"
        print(f"Ising {n_rows}x{n_columns}, {n:,} rows: {own:.3f} s; {right}")
        nodes = range(3, p, p // NODES)  # within the grid and at its edge
        mine = objectives(found, x, penalty, nodes)
        for solver, wanted in WANTED.items():
            others = [peer(solver, x, i, penalty) for i in nodes]
            whole = statistics.mean(seconds for seconds, _ in others) * p
            above = max(m - o for m, (_, o) in zip(mine, others, strict=True))
            times = f"{whole / own:5.1f} times (wanted {wanted:g})"
            print(f"  {solver:9s} {whole:7.2f} s: {times}; our objective is above its by {above:+.1e}")
        seconds, path = timed(lambda: sf.search(data, method=sf.Neighbourhoods(), threads=1))  # noqa: B023
        print(f"  a path of 20 penalties, by EBIC: {seconds:.2f} s, {len(path.graph.edges)} edges")


if __name__ == "__main__":
    run()
