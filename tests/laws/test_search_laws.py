"""Laws of structure search, over all methods of the registry.

The order of columns, rows and states, and the number of threads, permute nothing but themselves; constraints are kept; the score
that is reported is that of the graph; the default and the exact search find the best of all graphs where these can be listed.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.basis.registry import every
from suffice.structure.problem import is_directed
from tests.oracles import random_net
from tests.toy_engine import toy

METHODS: dict[str, Any] = {
    "orders": sf.Orders(),
    "hill climb": sf.HillClimb(),
    "hill climb, restarts": sf.HillClimb(max_parents=2, restarts=3),
    "tabu": sf.methods.Tabu(),
    "ges": sf.methods.GES(),
    "exact": sf.Exact(),
    "chow-liu": sf.methods.ChowLiu(),
    "tan": sf.methods.TAN("n2"),
    "chow-liu, root": sf.methods.ChowLiu("n2"),
    "pc": sf.PC(),
    "pc, conservative": sf.PC(orient=sf.methods.Conservative()),
    "pc, first": sf.PC(orient=sf.methods.FirstSepset()),
    "mmhc": sf.methods.MMHC(),
}


def test_every_method_is_here() -> None:
    directed = {method for method in every("methods").values() if is_directed(method)}
    assert {type(method) for method in METHODS.values()} == directed


SCORED = {name: m for name, m in METHODS.items() if not name.startswith("pc")}
N_PERMUTATIONS = 8


@cache
def finite(seed: int, n_nodes: int = 6, n: int = 400) -> dict[str, np.ndarray]:
    """Rows of a random network, with a copied and a constant column."""
    table = random_net(seed, n_nodes).sample(n, seed=seed)
    rows = {name: np.array(table[name].to_pylist()) for name in table.column_names}
    return {**rows, "twin": rows["n1"], "same": np.full(n, "only")}


@cache
def real(seed: int, n_nodes: int = 6, n: int = 300) -> dict[str, np.ndarray]:
    """Rows of a random linear Gaussian network."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, n_nodes))
    for i in range(1, n_nodes):
        x[:, i] += x[:, :i] @ (rng.choice([0.0, 0.7, -1.2], i))
    return {f"n{i}": x[:, i] for i in range(n_nodes)}


def permuted(rows: dict[str, np.ndarray], rng: np.random.Generator) -> sf.Data:
    """The same rows, columns and states in another order."""
    order = rng.permutation(len(next(iter(rows.values()))))
    names = [str(n) for n in rng.permutation(list(rows))]
    states = {n: sorted(set(rows[n].tolist())) for n in names if rows[n].dtype.kind == "U"}
    variables = {n: sf.Finite(n, [str(s) for s in rng.permutation(s)]) for n, s in states.items()}
    return sf.scan({n: rows[n][order].tolist() for n in names}, variables=variables)


def same(a: sf.results.Found, b: sf.results.Found) -> None:
    assert a.cpdag == b.cpdag
    assert a.dag == b.dag
    assert a.score == b.score or a.score == pytest.approx(b.score, rel=1e-9)
    if isinstance(a.method, sf.PC):
        assert a.details.n_tests == b.details.n_tests
        assert {e: s.given for e, s in a.details.separated.items()} == {e: s.given for e, s in b.details.separated.items()}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_order_of_columns_rows_and_states_does_not_matter(method):
    for seed, score in enumerate((sf.BIC(), sf.Evidence(sf.BDeu(1)))):
        rows = finite(3 + seed)
        first = sf.search(sf.scan(rows), score, method)
        for k in range(N_PERMUTATIONS // 2):
            same(sf.search(permuted(rows, np.random.default_rng(k)), score, method, threads=1 + k % 3), first)


def written_out(rows: dict[str, np.ndarray], weights: np.ndarray) -> sf.Data:
    """The rows that weights count, one by one, of the same states."""
    variables = {n: sf.Finite(n, sorted(set(c.tolist()))) for n, c in rows.items()}
    return sf.scan({n: np.repeat(c, weights) for n, c in rows.items()}, variables=variables)


SCORES = [sf.BIC(), sf.Evidence(sf.BDeu(2)), sf.Evidence(sf.priors.BDs(1))]
WEIGHED = [(n, s) for n in METHODS for s in SCORES if n != "ges" or s != SCORES[2]]  # of BDs members of a class score differently


@pytest.mark.parametrize(("name", "score"), WEIGHED)
def test_weights_are_numbers_of_rows(name, score):
    method = METHODS[name]
    rows = finite(3, n=90)
    weights = np.random.default_rng(0).integers(0, 40, 90)
    one = sf.search(written_out(rows, weights), score, method)
    other = sf.search(sf.scan(rows, weights=weights), score, method)
    assert (one.dag, one.cpdag, one.score) == (other.dag, other.cpdag, other.score)  # to the last bit
    if isinstance(method, sf.PC):
        assert one.details == other.details


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_many_equal_rows_elsewhere_are_merged_to_the_same_end(method):
    rows = {n: c for n, c in finite(3, n=20_000).items() if n in ("n0", "n1", "n2", "n3")}
    one, other = sf.search(toy(rows, size=5000), method=method), sf.search(rows, method=method)
    assert isinstance(method, sf.PC) or one.problem.scores.bitmaps.n_rows < 1000
    assert (one.dag, one.cpdag, one.score) == (other.dag, other.cpdag, other.score)
    if isinstance(method, sf.PC):
        assert one.details == other.details


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_elsewhere_give_the_same_graph(method, weighted):
    """Blocks in another place, of which only sums come back."""
    rows = finite(3, n=250)
    weights = np.random.default_rng(2).integers(1, 30, 250) if weighted else None
    far, near = toy(rows, weights=weights), sf.scan(rows, weights=weights)
    one, other = sf.search(far, method=method), sf.search(near, method=method)
    assert (one.dag, one.cpdag, one.score) == (other.dag, other.cpdag, other.score)
    assert far.engine.rows_out == []


def test_orders_are_sampled_alike_from_weighted_rows():
    rows = finite(5, n=60)
    weights = np.random.default_rng(1).integers(1, 20, 60)
    one = sf.methods.order_mcmc(written_out(rows, weights), samples=50)
    other = sf.methods.order_mcmc(sf.scan(rows, weights=weights), samples=50)
    assert (one.matrix == other.matrix).all()
    assert (one.log_scores == other.log_scores).all()


def test_a_bootstrap_of_rows_elsewhere():
    far = toy({n: c for n, c in finite(3, n=250).items() if n in ("n0", "n1", "n2")})
    assert sf.bootstrap(far, method=sf.HillClimb(), n=3).n_done == 3
    assert len(sf.cross_validate(far, method=sf.HillClimb(), folds=3).folds) == 3
    assert far.engine.rows_out == []


@pytest.mark.parametrize("name", [n for n in METHODS if n != "tan"])
def test_nor_does_it_for_real_columns(name):
    rows = real(1)
    score = None if name.startswith("pc") else sf.Evidence(sf.BGe())
    first = sf.search(sf.scan(rows), score, METHODS[name])
    for k in range(N_PERMUTATIONS):
        same(sf.search(permuted(rows, np.random.default_rng(k)), score, METHODS[name], threads=1 + k % 3), first)


@pytest.mark.parametrize("name", ["orders", "hill climb", "tabu", "exact", "chow-liu"])
def test_nor_does_it_for_mixed_columns(name):
    rows = {
        **{n: c for n, c in finite(5, 3, 200).items() if n.startswith("n")},
        **{f"x{n}": c for n, c in real(2, 2, 200).items()},
    }
    rows["xn1"] = rows["xn1"] + (rows["n0"] == rows["n0"][0])
    first = sf.search(sf.scan(rows), method=METHODS[name])
    for k in range(5):
        same(sf.search(permuted(rows, np.random.default_rng(k)), method=METHODS[name], threads=1 + k % 3), first)
    assert all(not a.startswith("x") or b.startswith("x") for a, b in first.dag.edges)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", METHODS)
def test_constraints_are_kept(name, seed):
    rng = np.random.default_rng(seed)
    rows = {n: c for n, c in finite(seed + 10, 6).items() if n.startswith("n")}
    order = [str(n) for n in rng.permutation(sorted(rows))]
    if name in ("tan", "chow-liu, root"):  # their class or root is above all others
        order = ["n2", *[n for n in order if n != "n2"]]
    required = (order[0], order[3])
    constraints = sf.Forbid((order[1], order[2]), (order[2], order[1])) + sf.Require(required)
    constraints += sf.Tiers(order[:3], order[3:])
    if name != "tan" and not name.startswith("pc"):
        constraints += sf.constraints.MaxParents(2) + sf.constraints.Candidates({order[4]: order[:2]})
    found = sf.search(sf.scan(rows), method=METHODS[name], constraints=constraints)
    assert constraints.check(found.dag) == []
    assert required in found.dag.edges
    assert not name.startswith("pc") or required in found.cpdag.directed


@pytest.mark.parametrize("name", SCORED)
def test_the_score_is_that_of_the_graph(name):
    rows = finite(7)
    data = sf.scan(rows)
    scores = [sf.BIC(), sf.Evidence(sf.BDeu(1))] + ([] if name == "ges" else [sf.Evidence(sf.K2())])
    for score in scores:
        found = sf.search(data, score, METHODS[name])
        assert found.score == pytest.approx(sf.score(found.dag, data, score), rel=1e-10)
        assert sum(found.scores_by_node().values()) == pytest.approx(found.score, rel=1e-10)


def dags(names: list[str]) -> list[sf.Dag]:
    """Every graph on these nodes."""
    pairs = list(combinations(names, 2))
    found: dict[frozenset[tuple[str, str]], sf.Dag] = {}
    for order in permutations(names):
        place = {n: i for i, n in enumerate(order)}
        directed = [(a, b) if place[a] < place[b] else (b, a) for a, b in pairs]
        for k in range(2 ** len(pairs)):
            edges = frozenset(e for i, e in enumerate(directed) if k >> i & 1)
            if edges not in found:
                found[edges] = sf.Dag(sorted(edges), nodes=names)
    return list(found.values())


@pytest.mark.parametrize("kind", ["finite", "real"])
def test_the_best_of_all_graphs_is_found(kind):
    rows = {n: c for n, c in finite(21, 4, 150).items() if n.startswith("n")} if kind == "finite" else real(4, 4, 60)
    data = sf.scan(rows)
    graphs = [tuple((n, dag.parents(n)) for n in dag.nodes) for dag in dags(sorted(rows))]
    for score in (sf.BIC(), sf.Evidence(sf.BDeu(1) if kind == "finite" else sf.BGe())):
        # a score is the sum over nodes: test_registry_laws.py
        nodes = {node for graph in graphs for node in graph}
        own = {node: sf.score(sf.Dag(dict([node])), data, score, by_node=True)[node[0]] for node in nodes}
        best = max(sum(own[node] for node in graph) for graph in graphs)
        for method in (sf.Orders(), sf.Exact()):
            found = sf.search(data, score, method)
            assert found.score == pytest.approx(best, rel=1e-10)
        assert found.proved
