"""How sure a graph is: 100 bootstrap replicates on ASIA beside pyAgrum's and pgmpy's hill climbs, and order MCMC on ALARM.

The peers have no bootstrap: a loop resamples the frame and calls their search. pgmpy runs 5 replicates, scaled up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import suffice as sf
from suffice.recipes.bootstrap import bootstrap
from suffice.recipes.cross_validate import cross_validate
from suffice.structure.hill_climb import HillClimb
from suffice.structure.order_mcmc import order_mcmc
from timing import line, seconds

N = 100


def main() -> None:
    frame = sf.load("asia").sample(5_000, seed=0).to_pandas()
    data = sf.scan(frame)
    data.schema  # noqa: B018
    peers = {"pyAgrum": replicates(_pyagrum, frame, N), "pgmpy": replicates(_pgmpy, frame, 5) * N / 5}
    line("ASIA, 5,000 rows: 100 replicates of a hill climb", seconds(lambda: bootstrap(data, HillClimb(), N), 3), **peers)
    line("ASIA, 5,000 rows: 100 replicates of Orders, the default", seconds(lambda: bootstrap(data, n=N), 3), **peers)
    line("ASIA, 5,000 rows: 10-fold cross-validation of Orders", seconds(lambda: cross_validate(data), 3))
    sure = bootstrap(data, n=N)
    print(f"averaged network of Orders: {sf.compare(sf.load('asia').dag, sure.averaged())!r}")
    alarm = sf.scan(sf.load("alarm").sample(10_000, seed=0))
    alarm.schema  # noqa: B018
    order_mcmc(alarm, samples=20)
    start = time.perf_counter()
    posterior = order_mcmc(alarm)
    took = time.perf_counter() - start
    moves = 2 * 1_500 * 10 * 37
    print(f"ALARM, 10,000 rows: order MCMC, {moves:,} moves in {took:.3g} s, tables and all: {moves / took:,.0f} moves/s")
    print(posterior._headline())


def replicates(search: Callable[[Any], Any], frame: Any, n: int) -> float:
    """Seconds for n searches in resampled frames."""
    start = time.perf_counter()
    for k in range(n):
        search(frame.iloc[np.random.default_rng([0, k]).integers(len(frame), size=len(frame))])
    return time.perf_counter() - start


def _pyagrum(frame: Any) -> Any:
    import pyagrum as gum

    learner = gum.BNLearner(frame)
    learner.useScoreBIC()
    learner.useGreedyHillClimbing()
    return learner.learnDAG()


def _pgmpy(frame: Any) -> Any:
    from pgmpy.estimators import HillClimbSearch

    return HillClimbSearch(frame).estimate(scoring_method="bic-d", show_progress=False)


if __name__ == "__main__":
    main()
