"""Exact inference beside pyAgrum's LazyPropagation and pgmpy: times of all marginals, of many rows, and agreement.

    python benchmarks/inference.py [alarm hailfinder pathfinder pigs munin munin1 link first rows agree]

All run by default, each in a process of its own. Peers have exactly our tables, run in a forked process with a limit of time and
memory, and are left out with what stopped them. Each has its network loaded and has answered one question before the clock runs.
"""

from __future__ import annotations

import copy
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import suffice as sf
from inference_peers import Codes, Outcome, limited, pgmpy_marginals, pyagrum_first, pyagrum_marginals, pyagrum_rows
from suffice.errors import TooLarge
from suffice.numerics import kernels
from timing import SHARED, line, seconds

N_SETS, N_ROWS, SEED, ROUNDS = 20, 10_000, 0, 5
CLOSE = 1e-9


class Goal(NamedTuple):
    n_observed: int
    public: float
    kernel: float | None = None
    pgmpy: int = 0  # sets of observations that pgmpy is asked, as it is slow


GOALS = {
    "alarm": Goal(5, 0.3e-3, 0.1e-3, pgmpy=3),
    "hailfinder": Goal(5, 0.6e-3, pgmpy=3),
    "pathfinder": Goal(10, 4e-3),
    "pigs": Goal(10, 20e-3),
    "munin": Goal(20, 0.25),
    "munin1": Goal(10, 2.0),
    "link": Goal(20, 0.6),
}
TARGETS = ("HYPOVOLEMIA", "CATECHOL", "PRESS")


def network(name: str) -> sf.BayesNet:
    return sf.read(SHARED / "networks" / f"{name}.bif.gz")


def warm() -> None:
    """Compiles and loads what all networks share, so that the first answer of one is its own. Little work would do without."""
    kernels.warm(only=kernels.ESSENTIAL)
    bn = sf.load("asia")
    bn.marginals({"smoke": "yes"})
    bn.predict_proba(bn.sample(50, seed=0).to_pandas(), "lung")


def compiled(bn: sf.BayesNet) -> sf.BayesNet:
    """The same network, compiled anew, and asked once."""
    fresh = copy.copy(bn)  # a copy has nothing compiled
    fresh.marginals({})
    return fresh


def drawn(bn: sf.BayesNet, n: int) -> Any:
    """The codes of n rows drawn from the network, a column per variable."""
    table = bn.sample(n, seed=SEED)
    return np.column_stack([table[name].combine_chunks().indices.to_numpy() for name in bn]).astype(np.int64)


def observations(bn: sf.BayesNet, n_observed: int, n_sets: int) -> list[Codes]:
    """Sets of observations that occur together: some cells of rows drawn from the network."""
    rng = np.random.default_rng(SEED)
    rows = drawn(bn, n_sets)
    return [{int(i): int(row[i]) for i in rng.choice(len(bn), n_observed, replace=False)} for row in rows]


def by_name(bn: sf.BayesNet, observed: Codes) -> dict[str, str]:
    names = list(bn)
    return {names[i]: bn.variables[names[i]].states[code] for i, code in observed.items()}


def codes_of(bn: sf.BayesNet, observed: Codes) -> Any:
    codes = np.full(len(bn), -1, np.int64)
    codes[list(observed)] = list(observed.values())
    return codes


def per_set(work: Callable[[Any], Any], sets: list[Any]) -> float:
    """The median over the sets of observations, each answered once."""
    times = []
    for each in sets:
        start = time.perf_counter()
        work(each)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def read_out(bn: sf.BayesNet, marginals: Any) -> Any:
    """The probabilities of every node, one after the other."""
    return np.concatenate([marginals[name].probs for name in bn])


def furthest(ours: list[Any], peer: Outcome) -> str:
    """How far a peer's answers are from ours."""
    if not peer.answers:
        return peer.stopped
    gap = max(float(np.abs(a.values - o).max()) for a, o in zip(peer.answers, ours, strict=False))
    note = f", then {peer.stopped}" if peer.stopped else ""
    return f"largest difference {gap:.1e} ({'met' if gap <= CLOSE else 'MISSED'}) in {len(peer.answers)} sets{note}"


def marginals(name: str) -> None:
    """All marginals of one network: the public call, the kernel alone, compilation, and the peers."""
    warm()
    goal, bn = GOALS[name], network(name)
    sets = observations(bn, goal.n_observed, N_SETS)
    given, codes = [by_name(bn, s) for s in sets], [codes_of(bn, s) for s in sets]
    what = f"{name.upper()}, {len(bn):,} nodes, all marginals given {goal.n_observed}"
    start = time.perf_counter()
    tree = bn.compiled.tree
    compiling = time.perf_counter() - start
    start = time.perf_counter()
    bn.marginals({})
    first = time.perf_counter() - start
    public = per_set(bn.marginals, given)
    again, under = compiled(bn), compiled(bn)  # what is kept for the observations of one figure must not serve the next
    read = per_set(lambda g: [m.probs for m in again.marginals(g).values()], given)
    kernel = per_set(under.compiled.tree.marginals, codes)
    peers = {"pyAgrum": limited(lambda: pyagrum_marginals(bn, sets))}
    if peers["pyAgrum"].seconds < 1.0:  # two threads, where that is quick to try; the faster counts
        two = limited(lambda: pyagrum_marginals(bn, sets, 2))
        peers["pyAgrum"] = min(peers["pyAgrum"], two, key=lambda o: o.seconds)
    if goal.pgmpy:
        peers["pgmpy"] = limited(lambda: pgmpy_marginals(bn, sets[: goal.pgmpy]))
    times = {peer: outcome.seconds for peer, outcome in peers.items() if outcome.answers}
    line(f"{what}: bn.marginals(given), which has computed them all", public, goal.public, **times)
    line(f"{what}: the same, and .probs of every node", read, goal.public, **times)
    line(f"{what}: the kernel, bn.compiled.tree.marginals(codes)", kernel, goal.kernel, **times)
    size = f"{tree.n_cells:.3g} cells, the largest product {tree.largest:.3g}, tables {tree.n_bytes / 2**20:.3g} MiB"
    print(f"  compiling {compiling:.3g} s, first answer, nothing given, {first:.3g} s; treewidth {bn.treewidth}, {size}")
    ours = [read_out(bn, bn.marginals(g)) for g in given]
    for peer, outcome in peers.items():
        print(f"  {peer}: {furthest(ours, outcome)}", flush=True)


def frame_of(bn: sf.BayesNet, codes: Any) -> Any:
    """Codes as a frame of states, with a gap where nothing is observed and without columns where nothing ever is."""
    import pandas as pd

    columns = {}
    for i, name in enumerate(bn):
        if (codes[:, i] >= 0).any():
            columns[name] = pd.Series(pd.Categorical.from_codes(codes[:, i], list(bn.variables[name].states)))
    return pd.DataFrame(columns)


def rows() -> None:
    """The posterior of one target in 10,000 rows of ALARM: frame in, frame out; pyAgrum's loop from codes it has already."""
    warm()
    bn = network("alarm")
    names, whole, rng = list(bn), drawn(bn, N_ROWS), np.random.default_rng(SEED)
    for what, asked, target in [("the same half observed", N_ROWS, 30), ("another half observed in each row", 1_000, 20)]:
        ratios = []
        for name in TARGETS:
            column = names.index(name)
            hidden = _same_half(rng, whole, column) if asked == N_ROWS else _another_half(rng, whole, column)
            codes = np.where(hidden, -1, whole)
            frame = frame_of(bn, codes)
            start = time.perf_counter()
            answer = bn.predict_proba(frame, name)
            first = time.perf_counter() - start
            ours = seconds(lambda f=frame, n=name: bn.predict_proba(f, n), warm=0)
            peer = limited(lambda c=codes[:asked], i=column, s=asked == N_ROWS: pyagrum_rows(bn, c, i, same=s))
            theirs = peer.seconds * N_ROWS / asked
            ratios.append(theirs / ours)
            words = frame.astype(object)
            text = seconds(lambda f=words, n=name: bn.predict_proba(f, n), warm=0)
            speed = f"{ours:.4g} s = {N_ROWS / ours:,.0f} rows/s (first call {first:.3g} s, columns of text {text:.3g} s)"
            scaled = "" if asked == N_ROWS else f", from {asked:,} rows,"
            print(f"ALARM, {N_ROWS:,} rows, {what}: {name}: {speed}; pyAgrum{scaled} {theirs:.4g} s = {theirs / ours:.1f}x")
            print(f"  {furthest([answer.to_numpy()[:asked]], peer)}", flush=True)
        middle = statistics.median(ratios)
        print(f"  median of the targets {middle:.1f}x (target {target}x: {'met' if middle >= target else 'MISSED'})")


def _same_half(rng: np.random.Generator, rows: Any, target: int) -> Any:
    """Which cells are hidden: the target's, and half of the other columns."""
    others = np.delete(np.arange(rows.shape[1]), target)
    hidden = np.zeros(rows.shape, bool)
    hidden[:, [target, *rng.permutation(others)[: len(others) // 2]]] = True
    return hidden


def _another_half(rng: np.random.Generator, rows: Any, target: int) -> Any:
    """The same for each row by itself."""
    order = rng.random(rows.shape)
    order[:, target] = -1.0
    hidden: Any = order.argsort(1).argsort(1) <= (rows.shape[1] - 1) // 2
    return hidden


def agree() -> None:
    """Three sets of observations in every network that pyAgrum manages within the limits: the same to 1e-9."""
    for path in sorted((SHARED / "networks").glob("*.bif.gz")):
        name = path.name.removesuffix(".bif.gz")
        bn = network(name)
        sets = observations(bn, min(GOALS.get(name, Goal(10, 0)).n_observed, len(bn) // 2), 3)
        peer = limited(lambda bn=bn, sets=sets: pyagrum_marginals(bn, sets))
        try:
            ours = [read_out(bn, bn.marginals(by_name(bn, s))) for s in sets]
        except TooLarge as error:
            print(f"{name}: ours is refused: {error}", flush=True)
            continue
        print(f"{name}, {len(bn):,} nodes: {furthest(ours, peer)}", flush=True)


def first() -> None:
    """The first question of a network, and its first twenty together, for which the tree is made: processor time, one thread."""
    warm()
    for path in sorted((SHARED / "networks").glob("*.bif.gz")):
        name = path.name.removesuffix(".bif.gz")
        bn = network(name)
        sets = observations(bn, min(GOALS.get(name, Goal(10, 0)).n_observed, len(bn) // 2), N_SETS)
        peers = [limited(lambda bn=bn, sets=sets: pyagrum_first(bn, sets)) for _ in range(ROUNDS)]
        theirs = [[a.seconds for a in p.answers] for p in peers]
        ours = [_asked(bn, sets) for _ in range(ROUNDS)]
        (one, all_), stopped = np.median([(t[0], sum(t)) for t in ours], axis=0), peers[0].stopped
        print(f"{name}: first {1e3 * one:,.2f} ms, twenty {1e3 * all_:,.1f} ms; pyAgrum ", end="")
        if any(len(t) < N_SETS for t in theirs):
            print(f"{1e3 * theirs[0][0]:,.2f} ms, then {stopped}" if theirs[0] else stopped, flush=True)
            continue
        peer_one, peer_all = np.median([(t[0], sum(t)) for t in theirs], axis=0)
        print(
            f"{1e3 * peer_one:,.2f}, {1e3 * peer_all:,.1f}: {peer_one / one:.1f} and {peer_all / all_:.1f} times ours", flush=True
        )


def _asked(bn: sf.BayesNet, sets: list[Codes]) -> list[float]:
    """The seconds of each question to the network, compiled for the first."""
    fresh, times = copy.copy(bn), []
    for observed in [by_name(bn, s) for s in sets]:
        start = time.process_time()
        found = fresh.marginals(observed)
        [found[n].probs for n in bn]
        times.append(time.process_time() - start)
    return times


SECTIONS: dict[str, Callable[[], None]] = {name: partial(marginals, name) for name in GOALS}
SECTIONS |= {"first": first, "rows": rows, "agree": agree}


def main() -> None:
    asked = sys.argv[1:] or list(SECTIONS)
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
