"""Exact estimates of undirected models of finite variables: one *seen − expected* beside pyAgrum's joint marginals, the maximum
likelihood of a grid, iterative proportional fitting. Process time of one thread; medians of repeated runs.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import suffice as sf
from suffice.learning.undirected.ipf import IPF, CliqueTree
from suffice.models.undirected.factor import Terms
from suffice.numerics.inference.finite.junction_tree import FactorTree


def spent(work: Callable[[], Any], repeats: int = 15) -> float:
    """The median process time of a call."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def grid(n: int) -> sf.Graph:
    names = [[f"v{i:02d}_{j:02d}" for j in range(n)] for i in range(n)]
    across = [(names[i][j], names[i][j + 1]) for i in range(n) for j in range(n - 1)]
    return sf.Graph(across + [(names[i][j], names[i + 1][j]) for i in range(n - 1) for j in range(n)])


def of_a_grid(n: int = 10, n_rows: int = 5000) -> None:
    rng = np.random.default_rng(1)
    model, variables = sf.Ising(grid(n)), {x: sf.Finite(x, ["-", "+"]) for x in grid(n).nodes}
    coupling = {e: 0.4 * rng.choice([-1, 1]) * np.array([[1, -1], [-1, 1]]) for e in model.graph.edges}
    truth = sf.MarkovNet(coupling, variables)
    data = sf.scan(truth.sample(n_rows, seed=0), variables=variables)
    seen = sf.gather(data, model)
    terms = Terms.of(model, variables)
    tree, w = FactorTree(terms.network(), "a grid"), rng.normal(0.0, 0.3, terms.n_weights)
    ours = spent(lambda: terms.by_weight(tree(terms.log_tables(w)).probs))
    print(f"{n}×{n} grid, seen − expected of {len(model.graph.edges)} edges: {1e3 * ours:.3f} ms{_beside(truth, ours)}")
    net = sf.fit(model, data)
    off = terms.by_weight(tree(terms.log_tables(net.flat_weights)).probs) - terms.by_weight(terms.count_cells(seen) / n_rows)
    rows, tables = spent(lambda: sf.fit(model, data)), spent(lambda: sf.fit(model, seen))
    print(f"  maximum likelihood from {n_rows:,} rows {rows:.4f} s, from their tables {tables:.4f} s", end="")
    print(f", moments to {np.abs(off).max():.1g}")


def _beside(net: sf.MarkovNet, ours: float) -> str:
    try:
        import pyagrum as gum
    except ImportError:
        return " (pyagrum is not installed)"
    peer = gum.MarkovRandomField()
    for name in net.variables:
        peer.add(gum.LabelizedVariable(name, name, 2))
    for f in net.factors:
        peer.addFactor(list(f.names))[:] = np.exp(f.log)

    def joints() -> None:
        inference = gum.ShaferShenoyMRFInference(peer)
        for f in net.factors:
            inference.addJointTarget(set(f.names))
        inference.makeInference()
        for f in net.factors:
            inference.jointPosterior(set(f.names))

    theirs = spent(joints, repeats=5)
    return f"; pyAgrum {1e3 * theirs:.1f} ms = {theirs / ours:.0f}×"


def of_tables() -> None:
    rng = np.random.default_rng(0)
    variables = tuple(sf.Finite(n, [str(i) for i in range(k)]) for n, k in zip("abcd", (4, 2, 2, 2), strict=True))
    counts = rng.integers(1, 200, (4, 2, 2, 2)).astype(float)
    seen = sf.Statistics([sf.statistics.Counts(variables, counts)], counts.sum())
    model = sf.LogLinear.all(2, "abcd")
    terms = Terms.of(model, {v.name: v for v in variables})
    target = terms.count_cells(seen) / seen.weight
    tree = CliqueTree(terms)
    print(f"all two-way terms of 4×2×2×2 cells: IPF {1e3 * spent(lambda: tree.fit(target, IPF())):.3f} ms, ", end="")
    print(f"with its tree {1e3 * spent(lambda: CliqueTree(terms).fit(target, IPF())):.3f} ms, ", end="")
    print(f"the whole of fit {1e3 * spent(lambda: sf.fit(model, seen)):.3f} ms")


def of_a_band(n: int = 20, width: int = 4) -> None:
    rng = np.random.default_rng(0)
    names = [f"n{i:02d}" for i in range(n)]
    edges = [(names[i], names[j]) for i in range(n) for j in range(max(0, i - width), i) if rng.random() < 0.7]
    graph = sf.Graph(edges, nodes=names)
    variables = {x: sf.Finite(x, ["a", "b", "c"]) for x in names}
    truth = sf.MarkovNet({c: rng.normal(size=[3] * len(c)) for c in graph.cliques()}, variables)
    seen = sf.gather(sf.scan(truth.sample(20_000, seed=1), variables=variables), sf.Pairwise(graph))
    for method in (sf.methods.IPF(), sf.methods.LBFGS()):
        took = spent(lambda method=method: sf.fit(sf.Pairwise(graph), seen, method=method), repeats=5)
        print(f"{n} nodes of 3 states, treewidth {truth.treewidth}, pairs, {type(method).__name__}: {took:.4f} s")


def run() -> None:
    of_a_grid()
    of_tables()
    of_a_band()


if __name__ == "__main__":
    run()
