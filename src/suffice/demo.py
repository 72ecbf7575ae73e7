"""The demonstration: a known network, rows drawn from it, and the network that Suffice fits to them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from suffice.display import text_table
from suffice.engines.scan import scan
from suffice.families.gathering import gather
from suffice.families.priors import BDeu
from suffice.formats import load
from suffice.learning.fit import fit, score
from suffice.models.divergence import kl
from suffice.scores import BIC

Working = Callable[[str], AbstractContextManager[None]]


def run(n: int, seed: int, working: Working) -> None:
    """Print the story."""
    truth = load("alarm")
    print(f"ALARM, a network for monitoring patients: {len(truth)} variables, {len(truth.dag.edges)} edges, {truth.n_parameters} parameters.\n")
    with working(f"drawing {n:,} rows"):
        rows, drawn = _timed(lambda: truth.sample(n, seed=seed))
    with working("reading the rows"):
        data, encoded = _timed(lambda: _encoded(rows, truth))
    with working("counting"):
        gather(data.head(), truth.dag)
        statistics, counted = _timed(lambda: gather(data, truth.dag))
    bn, fitted = _timed(lambda: fit(truth.dag, statistics, prior=BDeu(1)))
    steps = [["draw the rows", drawn], ["encode them", encoded], ["count 37 tables in one scan", counted], ["estimate, with a BDeu(1) prior", fitted]]
    print(text_table([f"{n:,} rows", "seconds"], steps), "\n")
    node = "CATECHOL" if n < 1000 else "HYPOVOLEMIA"
    lower, upper = bn[node].interval(0.95)
    cells = zip(bn.variables[node].states, truth[node].probs.ravel(), bn[node].probs.ravel(), lower.ravel(), upper.ravel(), strict=False)
    print(text_table([node, "truth", "fitted", "95 % from", "to"], [[s, *map(float, numbers)] for s, *numbers in cells]), "\n")
    print(bn["VENTLUNG"], "\n")
    unsupported = sum(int(bn[x].unsupported.sum()) for x in bn)
    print(f"KL(truth || fitted) = {kl(truth, bn):.5f} nats; BIC = {score(truth.dag, statistics, BIC()):,.2f}")
    print(f"{unsupported} configurations of parents never occurred; bn[node].unsupported says which.")


def _encoded(rows: object, truth: object) -> object:
    return scan(rows)


def _timed(work: Callable[[], object]) -> tuple[object, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start
