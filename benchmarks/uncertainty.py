"""How sure a graph is: 100 bootstrap replicates on ASIA beside pyAgrum's and pgmpy's hill climbs, and order MCMC on ALARM.

The peers have no bootstrap: a loop resamples the frame and calls their search. pgmpy runs 5 replicates only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import suffice as sf
from suffice.recipes.cross_validation import cross_validate
from suffice.recipes.resampling import bootstrap
from suffice.structure.methods.hill_climb import HillClimb
from suffice.structure.order_mcmc import order_mcmc
from timing import line, seconds

N = 100


def main() -> None:
    frame = sf.load("asia").sample(5_000, seed=0).to_pandas()
    data = sf.scan(frame)
    data.schema  # noqa: B018
    whole, bare = replicates(_pyagrum, lambda learner: learner.learnDAG(), frame, N)
    slow, _ = replicates(_pgmpy, lambda s: s.estimate(scoring_method="bic-d", show_progress=False), frame, 5)
    peers = {"pyAgrum": whole, "pyAgrum without loading": bare, "pgmpy": slow}
    line(
        "ASIA, 5,000 rows: 100 replicates of a hill climb", seconds(lambda: bootstrap(data, method=HillClimb(), n=N), 3), **peers
    )
    line("ASIA, 5,000 rows: 100 replicates of Orders, the default", seconds(lambda: bootstrap(data, n=N), 3), **peers)
    line("ASIA, 5,000 rows: 10-fold cross-validation of Orders", seconds(lambda: cross_validate(data), 3))
    sure = bootstrap(data, n=N)
    print(f"averaged network of Orders: {sf.graphs.compare(sf.load('asia').dag, sure.averaged())!r}")
    alarm = sf.scan(sf.load("alarm").sample(10_000, seed=0))
    alarm.schema  # noqa: B018
    order_mcmc(alarm, samples=20)
    start = time.perf_counter()
    posterior = order_mcmc(alarm)
    took = time.perf_counter() - start
    moves = 2 * 1_500 * 10 * 37
    print(f"ALARM, 10,000 rows: order MCMC, {moves:,} moves in {took:.3g} s, tables and all: {moves / took:,.0f} moves/s")
    print(posterior._headline())


def replicates(prepare: Callable[[Any], Any], search: Callable[[Any], Any], frame: Any, n: int) -> tuple[float, float]:
    """Seconds for N searches in resampled frames, and for the searches alone, by the median of n replicates.

    The median, because pyAgrum's threads wait for each other tenfold when anything else runs.
    """
    search(prepare(frame))  # imports are not what is measured
    times = []
    for k in range(n):
        start = time.perf_counter()
        ready = prepare(frame.iloc[np.random.default_rng([0, k]).integers(len(frame), size=len(frame))])
        loaded = time.perf_counter()
        search(ready)
        times.append((time.perf_counter() - start, time.perf_counter() - loaded))
    whole, alone = np.median(times, axis=0) * N
    return float(whole), float(alone)


def _pyagrum(frame: Any) -> Any:
    import pyagrum as gum

    learner = gum.BNLearner(frame)
    learner.useScoreBIC()
    learner.useGreedyHillClimbing()
    return learner


def _pgmpy(frame: Any) -> Any:
    from pgmpy.estimators import HillClimbSearch

    return HillClimbSearch(frame)


if __name__ == "__main__":
    main()
