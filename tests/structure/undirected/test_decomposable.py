"""`Decomposable`: legal changes, scores, and the climb beside all decomposable graphs of few nodes."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.numerics.kernels.search.greedy import chordal_changes
from suffice.structure.undirected.decomposable import dag_of
from tests.oracles import random_net


def finite(seed: int, n_nodes: int = 5, n: int = 500) -> dict[str, list[str]]:
    return random_net(seed, n_nodes).sample(n, seed=seed).to_pydict()


def real(seed: int, n_nodes: int = 5, n: int = 200) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, n_nodes))
    for i in range(1, n_nodes):
        x[:, i] += x[:, :i] @ rng.choice([0.0, 0.7, -0.9], i)
    return {f"n{i}": x[:, i] for i in range(n_nodes)}


@cache
def all_decomposable(names: tuple[str, ...]) -> list[sf.Graph]:
    pairs = list(combinations(names, 2))
    graphs = (sf.Graph([e for k, e in enumerate(pairs) if bits >> k & 1], nodes=names) for bits in range(2 ** len(pairs)))
    return [g for g in graphs if g.is_decomposable]


def highest(rows: dict[str, Any], score: Any) -> float:
    """The score of the best of all decomposable graphs."""
    data = sf.scan(rows)
    scores = sf.methods.LocalScores(data, tuple(data.schema.values()), score)
    names = tuple(sorted(rows))

    def total(graph: sf.Graph) -> float:
        dag = dag_of(graph)
        return scores.total([tuple(sorted(names.index(p) for p in dag.parents(n))) for n in names])

    return max(map(total, all_decomposable(names)))


def test_there_are_as_many_decomposable_graphs_as_there_should_be() -> None:
    # labelled chordal graphs, A058862 of the OEIS
    assert [len(all_decomposable(tuple("abcde"[:n]))) for n in range(1, 6)] == [1, 2, 8, 61, 822]


@given(st.integers(2, 9), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_a_change_is_legal_if_the_graph_stays_chordal(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = tuple("abcdefghi"[:n])
    edges = [e for e in combinations(names, 2) if rng.random() < 0.4]
    graph = sf.Graph(edges, nodes=names).triangulated().to_networkx()
    near = networkx.to_numpy_array(graph, sorted(names), dtype=np.uint8)
    legal = np.full((n, n), 7, np.uint8)
    chordal_changes(near, legal)
    for i, j in combinations(range(n), 2):
        changed = near.copy()
        changed[i, j] = changed[j, i] = 1 - near[i, j]
        assert legal[i, j] == legal[j, i] == networkx.is_chordal(networkx.from_numpy_array(changed))


@pytest.mark.parametrize("score", [sf.BIC(), sf.AIC(), sf.Evidence(sf.BDeu(3))], ids=repr)
def test_the_score_is_that_of_an_equivalent_dag(score: Any) -> None:
    rows = finite(3)
    found = sf.search(rows, method=sf.Decomposable(score, restarts=2))
    assert found.graph.is_decomposable
    assert found.score == pytest.approx(sf.score(dag_of(found.graph), rows, score), rel=1e-12)
    assert found.trace[-1].score == pytest.approx(found.score)
    for (a, b), gain in found.strengths.items():  # what the score loses without an edge that can go
        smaller = sf.Graph([e for e in found.graph.edges if e != (a, b)], nodes=found.names)
        if smaller.is_decomposable:
            assert found.score - sf.score(dag_of(smaller), rows, score) == pytest.approx(gain, abs=1e-8)


@pytest.mark.parametrize("score", [sf.BIC(), sf.Evidence(sf.BGe())], ids=repr)
def test_real_columns(score: Any) -> None:
    rows = real(4)
    found = sf.search(rows, score, method=sf.Decomposable())
    assert found.score == pytest.approx(sf.score(dag_of(found.graph), rows, score), rel=1e-10)
    assert found.score == pytest.approx(highest(rows, score), abs=1e-8)
    assert sf.search(rows, score, method=sf.Decomposable(restarts=0)).score < found.score - 1.0


def test_the_climb_beside_all_decomposable_graphs() -> None:
    for seed in range(8):
        rows = finite(seed, 5 if seed < 4 else 4)
        found = sf.search(rows, method=sf.Decomposable())
        assert found.score == pytest.approx(highest(rows, sf.BIC()), abs=1e-8)


def test_rules_are_kept() -> None:
    rows = finite(1, 6)
    a, b, c, d = "n0", "n1", "n2", "n3"
    free = sf.search(rows, method=sf.Decomposable())
    assert free.generators == free.graph.cliques()
    apart = free.graph.edges[0]
    without = sf.search(rows, method=sf.Decomposable(restarts=2), constraints=sf.Forbid(apart))
    assert apart not in without.graph.edges
    required = sf.Require((a, b), (b, c), (c, d))
    with_them = sf.search(rows, method=sf.Decomposable(restarts=2), constraints=required)
    assert {(a, b), (b, c), (c, d)} <= set(with_them.graph.edges)
    cycle = required + sf.constraints.Adjacent((a, d))
    assert sf.search(rows, method=sf.Decomposable(), constraints=cycle).graph.is_decomposable
    with pytest.raises(sf.SufficeError, match=r"needs the edge 'n\d' -- 'n\d', which is forbidden"):
        sf.search(rows, method=sf.Decomposable(), constraints=cycle + sf.Forbid((a, c), (b, d)))
    small = sf.search(rows, method=sf.Decomposable(max_clique=2))
    assert max(map(len, small.graph.cliques())) <= 2
    started = sf.search(rows, method=sf.Decomposable(start=free.graph))
    assert started.graph == free.graph
    assert [s.what for s in started.trace] == ["start"]


def test_statistics_are_enough() -> None:
    rows = finite(2, 4)
    data = sf.scan(rows)
    table = data.gather([sf.statistics.Request(tuple(data.columns))])
    assert sf.search(table, method=sf.Decomposable()).graph == sf.search(rows, method=sf.Decomposable()).graph


def test_refusals() -> None:
    rows = finite(5)
    mixed = {**rows, "x": np.linspace(0.0, 1.0, 500) ** 2}
    cases: list[tuple[Any, Any, Any, str]] = [
        (mixed, sf.Decomposable(), None, "finite columns or real ones, not both"),
        (rows, sf.Decomposable(sf.Evidence(sf.K2())), None, "differently"),
        (rows, sf.Decomposable(start="n0 -- n1 -- n2 -- n3 -- n0"), None, "not decomposable"),
        (rows, sf.Decomposable(start="n0 -- n1", max_clique=1), None, "max_clique is 1"),
        (rows, sf.Decomposable(start="n0 -- n1"), sf.Forbid(("n0", "n1")), "forbidden"),
        (rows, sf.Decomposable(start="n0 -- n1"), sf.Require(("n0", "n2")), "required"),
        (rows, sf.Decomposable(start="n0 -- who"), None, "who"),
        (rows, sf.Decomposable(), sf.Tiers(["n0"], ["n1"]), "direction"),
    ]
    for data, method, constraints, message in cases:
        with pytest.raises(sf.SufficeError, match=message):
            sf.search(data, method=method, constraints=constraints)
    with pytest.raises(sf.SufficeError, match="a score is"):
        sf.Decomposable(sf.BIC)
    with pytest.raises(sf.SufficeError, match="max_clique"):
        sf.Decomposable(max_clique=0)


def test_bootstrap_counts_edges_without_directions() -> None:
    rows = finite(6, 4, 300)
    sure = sf.bootstrap(rows, method=sf.Decomposable(restarts=0), n=10, seed=1)
    assert not sure.directed
    assert all(e.direction == 0.5 for e in sure.edges)
    assert set(sure.graph(0.0).edges) == {tuple(sorted((e.a, e.b))) for e in sure.edges}
    assert "direction" not in repr(sure)
    assert sure.to_dict()["averaged"] == [list(e) for e in sure.graph().edges]
    with pytest.raises(sf.SufficeError, match="no directions"):
        sure.averaged()


def test_a_tree_as_a_graph() -> None:
    rows = finite(8)
    tree = sf.search(rows, sf.LogLikelihood(), method=sf.methods.ChowLiu())
    assert tree.graph == tree.dag.skeleton()
    best = sf.search(rows, sf.LogLikelihood(), method=sf.Decomposable(max_clique=2))
    assert best.score == pytest.approx(tree.score)
