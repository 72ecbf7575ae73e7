"""EM beside pyAgrum's on the same rows in the same run: ALARM with cells missing at random, or one variable hidden.

    python benchmarks/em.py [small]

A time is that of one iteration, the median of all; the peer's is its total over its iterations, which are few (it is slow).
Log-likelihoods are of the observed cells, computed by our own inference for both programs. The last lines are 1,000,000 rows.
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise
from typing import Any

import numpy as np

import suffice as sf
from inference_peers import pyagrum_network
from timing import line, seconds

ROWS, PEER_ITERATIONS = 10_000, 10


def rows_of(bn: sf.BayesNet, n: int, share: float, hidden: str | None, seed: int = 0) -> dict[str, Any]:
    """Columns of text drawn from a network, None where a cell is missing."""
    table = bn.sample(n, seed=seed)
    rng = np.random.default_rng(seed)
    columns = {}
    for name in table.column_names:
        cells = table[name].to_numpy(zero_copy_only=False).astype(object)
        cells[rng.random(n) < share] = None
        if name != hidden:
            columns[name] = cells
    return columns


def per_iteration(run: Any) -> float:
    """The median time of an iteration."""
    return float(np.median([b.seconds - a.seconds for a, b in pairwise(run.trace)]))


def pyagrum_em(bn: sf.BayesNet, columns: dict[str, Any], hidden: str | None, iterations: int) -> tuple[float, sf.BayesNet]:
    """Seconds per iteration of pyAgrum's EM, and the network that it has found after so many."""
    import pandas as pd
    import pyagrum as gum

    template = pyagrum_network(bn)
    n = len(next(iter(columns.values())))
    frame = pd.DataFrame()
    for i, name in enumerate(bn):
        codes = {state: str(code) for code, state in enumerate(bn.variables[name].states)}
        cells = columns.get(name, np.full(n, None))
        frame[f"v{i}"] = ["?" if cell is None else codes[cell] for cell in cells]
    learner = gum.BNLearner(frame, template, ["?"])
    learner.useEM(1e-12)
    learner.EMsetMaxIter(iterations)
    learner.useSmoothingPrior(1e-4)
    start = time.perf_counter()
    learned = learner.learnParameters(template.dag())
    spent = (time.perf_counter() - start) / max(1, learner.EMnbrIterations())
    return spent, _ours(bn, learned)


def _ours(bn: sf.BayesNet, learned: Any) -> sf.BayesNet:
    """A network of pyAgrum's as one of ours."""
    names = list(bn)
    tables = {}
    for name in names:
        cpt = learned.cpt(f"v{names.index(name)}")
        axes = [names[int(v[1:])] for v in reversed(cpt.names)]
        order = [axes.index(p) for p in (*bn[name].parents, name)]
        tables[name] = np.transpose(cpt.toarray(), order)
    return sf.BayesNet(bn.dag, tables, dict(bn.variables))


def compared(bn: sf.BayesNet, what: str, share: float, hidden: str | None, target: float, peer: bool) -> None:
    """One line of times, and one of log-likelihoods."""
    columns = rows_of(bn, ROWS, share, hidden)
    data = sf.scan(columns, variables={n: v for n, v in bn.variables.items() if n in columns})
    unseen = [bn.variables[hidden]] if hidden else []
    run = sf.em(bn.dag, data, hidden=unseen)
    run = sf.em(bn.dag, data, hidden=unseen)
    truth = sf.em(bn.dag, data, hidden=unseen, start=bn, fixed=list(bn), max_iter=1).log_likelihood
    peers = {}
    if peer:
        spent, learned = pyagrum_em(bn, columns, hidden, PEER_ITERATIONS)
        peers["pyAgrum"] = spent
    line(f"{what}, one iteration", per_iteration(run), target, **peers)
    fast = sf.em(bn.dag, data, hidden=unseen, method=sf.methods.Squarem())
    n, n_fast = (sum(o.iterations for o in r.optima) for r in (run, fast))
    print(f"  all of EM: {n} iterations, {len(run.optima)} starts; with Squarem {n_fast}", flush=True)
    if share == 0.1:
        line("  its observed information, 509 parameters", seconds(run.information, repeats=1, warm=0))
    found = f"  log-likelihood: ours {run.log_likelihood:,.2f}; the network that drew the rows {truth:,.2f}"
    if peer:
        theirs = sf.em(bn.dag, data, hidden=unseen, start=learned, fixed=list(bn), max_iter=1).log_likelihood
        found += f"; pyAgrum after {PEER_ITERATIONS} iterations {theirs:,.2f}"
    print(found, flush=True)


def large(bn: sf.BayesNet, share: float, target: float, n: int = 1_000_000) -> None:
    """A million rows: setup, once; an iteration; memory."""
    import pyarrow as pa

    table = bn.sample(n, seed=1)
    rng = np.random.default_rng(0)
    masked = {
        name: pa.DictionaryArray.from_arrays(
            pa.array(table[name].combine_chunks().indices.to_numpy(), mask=rng.random(n) < share),
            table[name].combine_chunks().dictionary,
        )
        for name in table.column_names
    }
    data = sf.scan(pa.table(masked), variables=dict(bn.variables))
    from suffice.learning.incomplete.problem import problem_of

    read = seconds(lambda: sf.scan(pa.table(masked), variables=dict(bn.variables)).missing, repeats=1, warm=0)
    data.missing  # noqa: B018 (reads the columns)

    def set_up() -> Any:
        problem: Any = problem_of(bn.dag, data)
        return problem, problem.components.programs

    problem = set_up()[0]
    line(f"{n:,} rows, {share:.0%} missing, setup (reading took {read:.2f} s more)", seconds(set_up, repeats=3), 2.0)
    run = sf.em(bn.dag, data)
    line(f"{n:,} rows, {share:.0%} missing, one iteration", per_iteration(run), target)
    reduction = problem.components.reduction
    arrays = [problem.components.programs.pool, *(part for part in vars(reduction).values() if isinstance(part, np.ndarray))]
    kept, n = sum(part.nbytes for part in arrays) / 2**20, len(reduction.multiplicity)
    print(f"  {run.n_iterations} iterations; {n:,} distinct components, {kept:.1f} MiB kept for iterations", flush=True)


if __name__ == "__main__":
    alarm = sf.load("alarm")
    with_peer = "small" not in sys.argv
    compared(alarm, "ALARM 10,000 rows, 10 % missing", 0.1, None, 0.010, with_peer)
    compared(alarm, "ALARM 10,000 rows, LVEDVOLUME hidden", 0.0, "LVEDVOLUME", 0.010, with_peer)
    compared(alarm, "ALARM 10,000 rows, 30 % missing", 0.3, None, 0.060, False)
    large(alarm, 0.05, 0.050)
