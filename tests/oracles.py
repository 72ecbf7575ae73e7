"""Oracles: the slow and obvious way, by enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

import suffice as sf
from suffice.structure.rules import Parents, Rules
from suffice.structure.scoring.parent_sets import TIE, ParentSets


def joint(bn: sf.BayesNet) -> dict[tuple[str, ...], float]:
    """p(every configuration) of a small finite network, states in the order of bn.dag.nodes."""
    nodes = bn.dag.nodes
    result = {}
    for states in itertools.product(*(bn.variables[n].states for n in nodes)):
        row = dict(zip(nodes, states, strict=True))
        result[states] = float(
            np.prod([bn[n].predictive({p: row[p] for p in bn[n].parents})[bn.variables[n].code(row[n])] for n in nodes])
        )
    return result


def random_dag(rng: np.random.Generator, nodes: list[str], density: float = 0.5) -> sf.Dag:
    order = list(rng.permutation(nodes))
    edges = [(a, b) for i, a in enumerate(order) for b in order[i + 1 :] if rng.random() < density]
    return sf.Dag(edges, nodes=nodes)


def random_net(seed: int, n_nodes: int = 4, zeros: bool = False) -> sf.BayesNet:
    """A finite network with random graph, states and tables."""
    rng = np.random.default_rng(seed)
    nodes = [f"n{i}" for i in range(n_nodes)]
    dag = random_dag(rng, nodes)
    variables = {n: sf.Finite(n, [f"s{k}" for k in range(rng.integers(1, 4))]) for n in nodes}
    return random_tables(rng, dag, variables, zeros)


def random_tables(rng: np.random.Generator, dag: sf.Dag, variables: Any, zeros: bool = False) -> sf.BayesNet:
    tables = {}
    for n in dag.nodes:
        shape = [variables[p].n_states for p in dag.parents(n)] + [variables[n].n_states]
        table = rng.gamma(0.7, size=shape) + 1e-3
        if zeros:
            table *= rng.random(shape) < 0.7
            table[..., 0] += 1e-3
        tables[n] = table / table.sum(-1, keepdims=True)
    return sf.BayesNet(dag, tables, variables)


def random_rows(seed: int, n: int = 60) -> dict[str, Any]:
    """Rows of two finite and three real columns that hang together."""
    rng = np.random.default_rng(seed)
    u = rng.integers(0, 2, n)
    w = (u + rng.integers(0, 2, n)) % 3
    x = rng.standard_normal(n) + u
    y = 2.0 * x - w + rng.standard_normal(n)
    z = 100.0 + 0.5 * y - x + 0.1 * rng.standard_normal(n)
    return {"u": np.array(["a", "b"])[u], "w": np.array(["p", "q", "r"])[w], "x": x, "y": y, "z": z}


def expected_counts(bn: sf.BayesNet, rows: list[dict[str, Any]], weights: Any = None) -> tuple[dict[str, Any], float]:
    """The expected counts of each family, and ln p(observed), by enumeration of all completions of every row."""
    nodes = bn.dag.nodes
    counts = {n: np.zeros_like(bn[n].probs) for n in nodes}
    total = 0.0
    for row, weight in zip(rows, np.ones(len(rows)) if weights is None else weights, strict=True):
        choices = [bn.variables[n].states if row.get(n) is None else [row[n]] for n in nodes]
        full = [dict(zip(nodes, states, strict=True)) for states in itertools.product(*choices)]
        places = [{n: tuple(bn.variables[v].code(f[v]) for v in (*bn[n].parents, n)) for n in nodes} for f in full]
        p = np.array([np.prod([bn[n].probs[place[n]] for n in nodes]) for place in places])
        total += weight * np.log(p.sum())
        for place, share in zip(places, p / p.sum(), strict=True):
            for n in nodes:
                counts[n][place[n]] += weight * share
    return counts, float(total)


def with_gaps(table: Any, share: float, seed: int) -> dict[str, list[Any]]:
    """The columns of an Arrow table, cells missing at random."""
    rng = np.random.default_rng(seed)
    return {n: [None if rng.random() < share else x for x in table[n].to_pylist()] for n in table.column_names}


def parent_sets(n: int, families: Sequence[tuple[int, tuple[int, ...], float]]) -> ParentSets:
    """Those of (child, parents, score)."""
    return ParentSets.of(n, [(np.array([c]), np.array([s]), np.array([parents], np.int32)) for c, parents, s in families])


def pruned(rules: Rules, families: Sequence[tuple[int, Parents]], scores: np.ndarray, *, prune: bool = True) -> ParentSets:
    """The sets that hold all required parents and, with `prune`, beat every subset that does."""
    required = [frozenset(p) for p in rules.start()]
    best: dict[tuple[int, Parents], float] = {}
    kept: list[tuple[int, Parents, float]] = []
    for (child, parents), score in sorted(zip(families, scores.tolist(), strict=True), key=lambda f: len(f[0][1])):
        if not required[child] <= set(parents):
            continue
        below = [best.get((child, (*parents[:k], *parents[k + 1 :])), -np.inf) for k in range(len(parents))]
        top = max(below, default=-np.inf)
        best[child, parents] = max(score, top)
        if score > -np.inf and (not prune or top == -np.inf or score > top + TIE * (1.0 + abs(top))):
            kept.append((child, parents, score))
    return parent_sets(rules.n, kept)


def allowed_families(rules: Rules) -> list[tuple[int, Parents]]:
    """Every family that the rules allow, whatever they require."""
    return [
        (child, parents)
        for child in range(rules.n)
        for k in range(int(rules.max_parents[child]) + 1)
        for parents in itertools.combinations(np.flatnonzero(rules.allowed[child]).tolist(), k)
    ]
