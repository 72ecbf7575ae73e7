"""Structure learning: how often and how fast the optimum is found, and each method's time, beside pyAgrum and pgmpy.

    python benchmarks/structure.py [optimum hill-climb pc chow-liu shd large exact uncertainty]

The first five run by default: the next two take minutes, the last is a script of its own. Each runs in a process of its own.
Ours is measured from data that is scanned already, a peer from integer-coded rows that it has loaded already. A peer runs in a
forked process, is stopped after a minute, and is then left out where there are more rows; of pyAgrum with one thread and with
two the faster counts.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import suffice as sf
from timing import SHARED, line, seconds

CAP, QUICK = 60.0, 5.0
"""Seconds that a peer gets for one run, and up to which its run is repeated; the first run then only warms."""

SEEDS, BDEU = 10, sf.Evidence(sf.BDeu(1))
Edge = tuple[str, str]


class Run(NamedTuple):
    seconds: float
    edges: list[Edge] | None  # None when it was stopped


def measured(prepare: Callable[[], Callable[[], Iterable[Edge]]]) -> Run:
    """The median time of what `prepare` returns; it is called anew for each run, as peers keep their counts."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_runs, args=(theirs, prepare))
    child.start()
    theirs.close()
    times, edges, ready = [], None, False
    while ours.poll(CAP if ready else None):  # loading is not limited
        try:
            message = ours.recv()
        except EOFError:
            child.join()
            if child.exitcode:
                raise RuntimeError("the peer failed: see above") from None
            break
        ready = message is None
        if not ready:
            took, edges = message
            times.append(took)
    if child.is_alive():
        os.killpg(child.pid, signal.SIGKILL)  # with its own workers
        child.join()
    return Run(statistics.median(times[1:] or times), edges) if times else Run(CAP, None)


def _runs(results: Connection, prepare: Callable[[], Callable[[], Iterable[Edge]]]) -> None:
    os.setsid()
    for _ in range(4):
        work = prepare()
        results.send(None)
        start = time.perf_counter()
        edges = list(work())
        took = time.perf_counter() - start
        results.send((took, edges))
        if took > QUICK:
            return


def pyagrum(frame: pd.DataFrame, score: Any, max_parents: int | None = None, method: str = "climb") -> Run:
    """Its greedy hill climb, or PC with G² and alpha 0.05: the faster of one thread and two."""

    def prepare(threads: int) -> Callable[[], Iterable[Edge]]:
        import pyagrum as gum

        learner = gum.BNLearner(frame)
        learner.setNumberOfThreads(threads)
        names = learner.names()
        if method == "PC":
            learner.usePC()
            learner.useG2Test()
            learner.setPCAlpha(0.05)
            return lambda: [(names[a], names[b]) for a, b in learner.learnPDAG().arcs()]
        learner.useGreedyHillClimbing()
        learner.useScoreBDeu() if score == BDEU else learner.useScoreBIC()
        if max_parents is not None:
            learner.setMaxIndegree(max_parents)
        return lambda: [(names[a], names[b]) for a, b in learner.learnDAG().arcs()]

    runs = [measured(lambda t=t: prepare(t)) for t in (1, 2)]
    return min(runs, key=lambda r: (r.edges is None, r.seconds))


def pgmpy(frame: pd.DataFrame, score: Any, max_parents: int | None = None) -> Run:
    """Its hill climb, which has a tabu list."""

    def prepare() -> Callable[[], Iterable[Edge]]:
        from pgmpy.estimators import BDeu, HillClimbSearch

        table = frame.astype("category")
        scoring = BDeu(table, equivalent_sample_size=1) if score == BDEU else "bic-d"
        search = HillClimbSearch(table)
        return lambda: search.estimate(scoring_method=scoring, max_indegree=max_parents, show_progress=False).edges()

    return measured(prepare)


def pgmpy_tree(frame: pd.DataFrame) -> Callable[[], Iterable[Edge]]:
    from pgmpy.estimators import TreeSearch

    search = TreeSearch(frame)
    return lambda: search.estimate(show_progress=False).edges()


PEERS = {"pyAgrum": pyagrum, "pgmpy": pgmpy}


def times(**runs: Run) -> dict[str, float]:
    """The peers' times for `line`."""
    return {name if r.edges is not None else f"{name}, stopped after": r.seconds for name, r in runs.items()}


def each(what: Callable[[list[Edge]], float], **runs: Run) -> str:
    """What is said of each peer's graph."""
    return "".join(f", {peer} " + ("was stopped" if r.edges is None else f"{what(r.edges):.10g}") for peer, r in runs.items())


def verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def table(name: str) -> sf.Data:
    """A shared table with its declared states, scanned."""
    levels = json.loads((SHARED / "tables" / "levels.json").read_text())[name]
    variables = {c: sf.Finite(c, s) if s else sf.Real for c, s in levels.items()}
    return scanned(SHARED / "tables" / f"{name}.csv.gz", variables=variables)


def scanned(rows: Any, **options: Any) -> sf.Data:
    data = sf.scan(rows, **options)
    _ = data.schema, data.missing
    return data


def sampled(name: str, n_rows: int) -> sf.Data:
    return scanned(sf.read(SHARED / "networks" / f"{name}.bif.gz").sample(n_rows, seed=0))


def coded(data: sf.Data) -> pd.DataFrame:
    return pd.DataFrame({name: codes.astype(int) for name, codes in data.sample(10**9).columns.items()})


def optimum() -> None:
    """The default method on the tables whose optimum, of at most 3 parents, is known; hill climbs of the peers below it."""
    for name, score, best, target in [
        ("alarm", sf.BIC(), -218632.31567964845, 0.8),
        ("insurance", sf.BIC(), -264708.85975077713, 0.5),
        ("hailfinder", sf.BIC(), -990162.8050400699, 5.0),
        ("alarm_10000_gobnilp", BDEU, -105226.51191678, 0.8),
    ]:
        data = table(name)
        runs = {peer: run(coded(data), score, 3) for peer, run in PEERS.items()}
        line(f"{name}, {score}: Orders, the default", seconds(lambda d=data, s=score: sf.search(d, s)), target, **times(**runs))
        reached = [abs(sf.search(data, score, seed=k).score - best) < 1e-3 for k in range(SEEDS)]
        print(f"  optimum {best:.3f} reached with seed 0 ({verdict(reached[0])}), with {sum(reached)} of {SEEDS} seeds")
        climb = sf.search(data, score, sf.HillClimb(3)).score
        theirs = each(lambda edges, d=data, s=score: sf.score(sf.Dag(edges, nodes=d.columns), d, s), **runs)
        print(f"  hill climbs end at: ours {climb:.10g}{theirs}", flush=True)


def hill_climb() -> None:
    """Plain hill climbing by BIC, any number of parents."""
    stopped: set[str] = set()
    sizes = [("alarm", 10_000, 0.02), ("alarm", 100_000, 0.15), ("alarm", 1_000_000, 1.5), ("hailfinder", 10_000, 0.06)]
    for name, n_rows, target in sizes:
        data = sampled(name, n_rows)
        asked = [p for p in PEERS if p not in stopped or n_rows <= 10_000]
        runs = {peer: PEERS[peer](coded(data), sf.BIC()) for peer in asked}
        ours = seconds(lambda d=data: sf.search(d, method=sf.HillClimb()))
        line(f"{name.upper()}, {n_rows:,} rows: HillClimb, BIC", ours, target, **times(**runs))
        theirs = each(lambda edges, d=data: sf.score(sf.Dag(edges, nodes=d.columns), d), **runs)
        left_out = "".join(f"; {p} left out: stopped with fewer rows" for p in PEERS if p not in asked)
        print(f"  BIC: ours {sf.search(data, method=sf.HillClimb()).score:.10g}{theirs}{left_out}", flush=True)
        stopped |= {p for p, r in runs.items() if r.edges is None}


def pc() -> None:
    """Everything in pc.py, and pyAgrum's PC."""
    import_module("pc").main()
    data = sampled("alarm", 10_000)
    run = pyagrum(coded(data), None, method="PC")
    line("ALARM, 10,000 rows: PC", seconds(lambda: sf.search(data, method=sf.PC())), 0.1, **times(pyAgrum=run))


def chow_liu() -> None:
    """Trees by mutual information, beside pgmpy's, which shares the work among processes."""
    rng = np.random.default_rng(0)
    x = np.zeros((500, 100_000), np.int8)
    above = [int(rng.integers(max(i, 1))) for i in range(500)]
    for i in range(500):  # a copy of the one above, some of it turned over
        x[i] = x[above[i]] ^ (rng.random(100_000) < (rng.uniform(0.1, 0.4) if i else 0.5))
    names = [f"v{i:03d}" for i in range(500)]
    truth = {frozenset((names[i], names[above[i]])) for i in range(1, 500)}
    binary = scanned(dict(zip(names, x, strict=True)), integers=sf.Finite)
    alarm, score = sampled("alarm", 1_000_000), sf.LogLikelihood()
    for what, data, target in [("500 binary variables, 100,000 rows", binary, 0.3), ("ALARM, 1,000,000 rows", alarm, 0.2)]:
        run = measured(lambda d=data: pgmpy_tree(coded(d)))
        line(f"{what}: ChowLiu", seconds(lambda d=data: sf.search(d, score, sf.methods.ChowLiu())), target, **times(pgmpy=run))
    found = {frozenset(e) for e in sf.search(binary, score, sf.methods.ChowLiu()).dag.edges}
    print(f"  of {len(truth)} edges of the tree of binary variables {len(found & truth)} are found")


def shd() -> None:
    """Distance of the classes found on the alarm table to the class of the true network."""
    data, truth = table("alarm"), sf.load("alarm").dag
    names = json.loads((SHARED / "tables" / "names.json").read_text())["alarm"]

    def distance(edges: Iterable[Edge]) -> int:
        renamed = [(names.get(a, a), names.get(b, b)) for a, b in edges]
        return sf.shd(sf.Dag(renamed, nodes=truth.nodes), truth)

    ours, climb = (distance(sf.search(data, method=m).dag.edges) for m in (None, sf.HillClimb()))
    theirs = each(distance, **{peer: run(coded(data), sf.BIC()) for peer, run in PEERS.items()})
    print(f"alarm, 20,000 rows: distance to the true class: {ours} (target 5: {verdict(ours <= 5)})")
    print(f"  hill climbs: ours {climb}{theirs}")


def large() -> None:
    """The default method on MUNIN; pyAgrum's hill climb, if it takes less than a minute."""
    sf.search(sf.load("asia").sample(1_000, seed=0))
    data = sampled("munin", 5_000)
    start = time.perf_counter()
    found = sf.search(data)
    took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    line(f"MUNIN, {len(data.columns):,} variables, 5,000 rows: Orders, the default", took, 600)
    print(f"  peak memory of the process: {peak:.2f} GiB (target 4: {verdict(peak <= 4)})", flush=True)
    start = time.perf_counter()
    climb = sf.search(data, method=sf.HillClimb(max_parents=3))
    line("MUNIN: HillClimb(max_parents=3)", time.perf_counter() - start, **times(pyAgrum=pyagrum(coded(data), sf.BIC(), 3)))
    print(f"  BIC {found.score:.3f}, hill climb's {climb.score:.3f}: {verdict(found.score >= climb.score)}")


def exact() -> None:
    """Proofs. No peer here has an exact search of this size."""
    adjacent = sf.constraints.Adjacent(("C", "F"))
    for name, score, most, constraints, best in [
        ("learning.test", BDEU, None, None, -24028.0947783535),
        ("learning.test", BDEU, 1, None, -24933.77702265212),
        ("learning.test", BDEU, None, adjacent, -24036.170710864524),
        ("learning.test", BDEU, None, adjacent + sf.Forbid(("F", "E")), -24043.92054159024),
        ("learning.test", BDEU, None, sf.constraints.NotAncestor(("A", "E"), ("B", "E")), -24035.844609079217),
        ("gaussian.test", sf.Evidence(sf.BGe()), None, None, -53258.94161814058),
        ("gaussian.test", sf.Evidence(sf.BGe()), 3, None, -54052.41081344564),
        ("gaussian.test", sf.BIC(), None, None, -53221.34568733569),
    ]:
        found = sf.search(table(name), score, sf.Exact(max_parents=most), constraints)
        right = verdict(found.proved and abs(found.score - best) < 1e-3)
        print(
            f"{name}, {score}, {constraints or 'free'}: {found.score:.6f}, proved {found.proved}: {right}, {found.seconds:.3g} s"
        )
    for name, gap, target in [("insurance", 0.0, 120), ("alarm", 0.005, 300)]:
        data = table(name)
        found = sf.search(data, sf.BIC(), sf.Exact(max_parents=3, gap=gap), time_limit=target)
        line(f"{name}: Exact, {'to the proof' if not gap else f'to a gap of {gap:.1%}'}", found.seconds, target)
        print(f"  {found.score:.3f}, gap {found.gap}: {verdict(found.gap is not None and found.gap <= gap)}", flush=True)


SECTIONS = {f.__name__.replace("_", "-"): f for f in (optimum, hill_climb, pc, chow_liu, shd, large, exact)}
SECTIONS["uncertainty"] = lambda: import_module("uncertainty").main()


def main() -> None:
    asked = sys.argv[1:] or list(SECTIONS)[:5]
    if not set(asked) <= set(SECTIONS):
        sys.exit(f"the sections are {', '.join(SECTIONS)}")
    if len(asked) == 1:
        SECTIONS[asked[0]]()
        return
    for name in asked:
        print(f"\n-- {name}", flush=True)
        subprocess.run([sys.executable, __file__, name], check=True)


if __name__ == "__main__":
    main()
