"""Factor analysis, 100,000 × 50, 5 factors, beside scikit-learn's, from the same start: noise of 1 in every column.

Ours is everything from arrays to the maximum, in one scan. Theirs is run with its own tolerance, which ends it sooner, with and
without threads of its BLAS; the faster counts. Times are of the processor, so that other programs on the machine do not count.
Also a factor analysis of rows with missing cells, and probabilistic PCA.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import suffice as sf
from timing import line

N_ROWS, N_COLUMNS, N_FACTORS, REPEATS = 100_000, 50, 5, 5


def drawn() -> Any:
    """Rows of factors with noise of several sizes."""
    rng = np.random.default_rng(0)
    loadings = rng.standard_normal((N_FACTORS, N_COLUMNS))
    noise = rng.standard_normal((N_ROWS, N_COLUMNS)) * rng.uniform(0.5, 2.0, N_COLUMNS)
    return rng.standard_normal((N_ROWS, N_FACTORS)) @ loadings + noise


def least(work: Callable[[], Any], repeats: int = REPEATS) -> tuple[float, Any]:
    """The least time of the processor, and what came out."""
    times, result = [], None
    for _ in range(repeats):
        begin = time.process_time()
        result = work()
        times.append(time.process_time() - begin)
    return min(times), result


def peer(x: Any, **options: Any) -> tuple[float, float, int]:
    """Seconds of scikit-learn, the log-likelihood it ends with, and its iterations."""
    from sklearn.decomposition import FactorAnalysis
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        seconds, model = least(lambda: FactorAnalysis(N_FACTORS, **options).fit(x), 1)
    return seconds, float(model.score(x)) * len(x), int(model.n_iter_)


def main() -> None:
    x = drawn()
    rows = {f"x{j}": x[:, j] for j in range(N_COLUMNS)}
    ones = np.ones(N_COLUMNS)
    sf.factors({c: v[:1000] for c, v in rows.items()}, N_FACTORS)
    ours, run = least(lambda: sf.factors(rows, N_FACTORS, start=ones))
    theirs, log_likelihood, n = peer(x)
    line(f"{N_FACTORS} factors of {N_ROWS:,} × {N_COLUMNS}", ours, theirs / 5.0, scikit_learn=theirs)
    print(f"  log-likelihood {run.log_likelihood:.6f} in {run.n_iterations} iterations, theirs {log_likelihood:.6f} in {n}")
    pca, _ = least(lambda: sf.factors(rows, N_FACTORS, noise=sf.latent.Spherical()))
    line("the same with one noise for all columns (probabilistic PCA)", pca)
    several, chosen = least(lambda: sf.factors(rows, range(1, 9)), 1)
    line(f"1 to 8 factors tried, {chosen.k} chosen by BIC", several)
    few = {c: np.where(np.random.default_rng(j).random(2000) < 0.05, np.nan, v[:2000]) for j, (c, v) in enumerate(rows.items())}
    some = {c: few[c] for c in list(few)[:8]}
    gaps, found = least(lambda: sf.factors(some, 1, starts=1), 1)
    line(f"1 factor of 2,000 × 8 with 5 % of the cells missing, {found.n_iterations} iterations", gaps)


if __name__ == "__main__":
    main()
