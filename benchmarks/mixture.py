"""Gaussian mixture, 1,000,000 × 10, 8 classes, full covariances: an iteration beside one of scikit-learn's, from the same start.

Both make the same iterations, and the log-likelihoods are compared. An iteration of theirs is the difference of a run of
N_ITERATIONS + 1 and a run of 1, so that set-up does not count; ours is timed by the trace, the first iteration left out.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from typing import Any

import numpy as np

import suffice as sf
from suffice.learning.latent.mixture_setup import Diagonal, Full, Kind, Spherical, Tied
from suffice.recipes.latent.mixture import mixture
from timing import line

N_ROWS, N_COLUMNS, N_CLASSES, N_ITERATIONS, REPEATS = 1_000_000, 10, 8, 3, 3
WORDS: dict[Kind, str] = {Full(): "full", Tied(): "tied", Diagonal(): "diag", Spherical(): "spherical"}


def drawn() -> tuple[Any, Any]:
    """Rows of overlapping classes, and means to start from."""
    rng = np.random.default_rng(0)
    means = rng.normal(0.0, 2.0, (N_CLASSES, N_COLUMNS))
    roots = np.eye(N_COLUMNS) + 0.3 * rng.normal(size=(N_CLASSES, N_COLUMNS, N_COLUMNS))
    x = np.empty((N_ROWS, N_COLUMNS))
    which = rng.integers(N_CLASSES, size=N_ROWS)
    for c in range(N_CLASSES):
        rows = np.flatnonzero(which == c)
        x[rows] = means[c] + rng.normal(size=(len(rows), N_COLUMNS)) @ roots[c].T
    return x, means + rng.normal(0.0, 0.5, means.shape)


def start_of(kind: Kind, means: Any) -> tuple[Any, Any]:
    """The same start in our form and in theirs: all variances 2."""
    k, d = means.shape
    shape = {"full": (k, 1, 1), "tied": (), "diag": (k, d), "spherical": (k,)}[WORDS[kind]]
    matrix = WORDS[kind] in ("full", "tied")
    ours = np.ones(shape) * (2.0 * np.eye(d) if matrix else 2.0)
    theirs = np.ones(shape) * (0.5 * np.eye(d) if matrix else 0.5)
    return (np.full(k, 1.0 / k), means, ours), {
        "weights_init": np.full(k, 1.0 / k),
        "means_init": means,
        "precisions_init": theirs,
    }


def peer(x: Any, kind: Kind, start: Any) -> tuple[float, float]:
    """Seconds of an iteration of scikit-learn, and the log-likelihood that it ends with."""
    from sklearn.mixture import GaussianMixture

    def run(n: int) -> tuple[float, Any]:
        model = GaussianMixture(N_CLASSES, covariance_type=WORDS[kind], reg_covar=0.0, tol=0.0, max_iter=n, **start)
        begin = time.perf_counter()
        model.fit(x)
        return time.perf_counter() - begin, model

    times = []
    for _ in range(REPEATS):
        short, long = run(1)[0], run(1 + N_ITERATIONS)
        times.append((long[0] - short) / N_ITERATIONS)
    return statistics.median(times), float(run(N_ITERATIONS)[1].score(x)) * len(x)


def single(x: Any, kind: Kind, start: Any) -> float:
    """The same with one thread of the BLAS, which is faster where other programs run."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return peer(x, kind, start)[0]


def main() -> None:
    x, means = drawn()
    data, few = (sf.scan({f"x{j}": x[:n, j] for j in range(N_COLUMNS)}) for n in (N_ROWS, 200_000))
    print(f"{N_COLUMNS} columns, {N_CLASSES} classes")
    for kind in WORDS:
        ours, theirs = start_of(kind, means)
        table = data if kind == Full() else few  # of the others theirs takes minutes
        rows = table.n_rows
        runs = [mixture(table, N_CLASSES, kind, start=ours, tol=0, max_iter=N_ITERATIONS) for _ in range(REPEATS)]
        each = [(r.trace[-1].seconds - r.trace[0].seconds) / (N_ITERATIONS - 1) for r in runs]
        seconds, log_likelihood = peer(x[:rows], kind, theirs)
        alone = single(x[:rows], kind, theirs)
        line(
            f"{kind}, an iteration of {rows:,} rows",
            statistics.median(each),
            min(seconds, alone),
            scikit_learn=seconds,
            scikit_learn_with_one_thread_of_the_blas=alone,
        )
        print(f"  log-likelihood {runs[0].log_likelihood:.6f}, theirs {log_likelihood:.6f}")
    tracemalloc.start()
    mixture(data, N_CLASSES, start=start_of(Full(), means)[0], tol=0, max_iter=1)
    print(f"memory of an iteration besides the data: {tracemalloc.get_traced_memory()[1] / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
