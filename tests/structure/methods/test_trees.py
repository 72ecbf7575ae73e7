"""Trees: the best forest by enumeration, with and without rules; TAN the same below its class."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.structure.methods.chow_liu import NONE, TAN, ChowLiu, best_forest, branching, reroot, spanning_tree
from suffice.structure.problem import Problem
from suffice.structure.rules import Parents, Rules
from tests.oracles import random_net, random_rows


def solved(rows: Any, method: Any, score: Any = None, rules: Rules | None = None) -> tuple[Problem, list[Parents]]:
    data = sf.scan(rows)
    variables = tuple(v for _, v in sorted(data.schema.items()))
    if rules is None:
        rules = Rules.free(len(variables))
        real = np.array([isinstance(v, sf.Real) for v in variables])
        rules.allowed[~real[:, None] & real] = False
    problem = Problem(data, variables, score or sf.BIC(), rules)
    return problem, method.run(problem).parents


def forests(n: int) -> list[tuple[int, ...]]:
    """All graphs without a cycle in which a node has at most one parent."""

    def ends(parent: tuple[int, ...], node: int) -> bool:
        for _ in range(n + 1):
            if node == NONE:
                return True
            node = parent[node]
        return False

    chosen = itertools.product(*([NONE, *(j for j in range(n) if j != i)] for i in range(n)))
    return [p for p in chosen if all(ends(p, i) for i in range(n))]


FORESTS = {n: forests(n) for n in range(1, 6)}


def weighs(weight: Any, parent: Any) -> float:
    return float(sum(weight[i, p] for i, p in enumerate(parent) if p != NONE))


def heaviest(weight: Any, chosen: list[tuple[int, ...]]) -> float:
    """The most that one of these forests weighs."""
    padded = np.hstack([weight, np.zeros((len(weight), 1))])  # the last column, −1, is for no parent
    return float(padded[np.arange(len(weight)), np.array(chosen)].sum(1).max())


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 5))
def test_the_branching_weighs_most(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 5, (n, n)).astype(float) if seed % 2 else rng.random((n, n))
    weight[(rng.random((n, n)) < 0.3) | np.eye(n, dtype=bool)] = -np.inf
    found = branching(weight, 1e-9)
    assert tuple(found.tolist()) in FORESTS[n]
    assert weighs(weight, found) == pytest.approx(heaviest(weight, FORESTS[n]))


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_the_spanning_tree_weighs_what_the_branching_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 12
    weight = np.triu(rng.normal(size=(n, n)), 1)
    weight = weight + weight.T
    worth = np.where(weight > 0, weight, -np.inf)
    np.fill_diagonal(worth, -np.inf)
    tree = spanning_tree(worth, 1e-9)
    assert weighs(worth, tree) == pytest.approx(weighs(worth, branching(worth, 1e-9)))
    root = int(rng.integers(n))
    turned = reroot(tree, root)
    assert turned[root] == NONE
    assert weighs(worth, turned) == pytest.approx(weighs(worth, tree))
    assert best_forest(weight, np.zeros((n, n), bool), 1e-9, root=root)[root] == NONE


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_chow_liu_is_the_best_forest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 5
    rows = random_net(seed, n).sample(150, seed=seed)
    ruled = Rules((rng.random((n, n)) < 0.7) & ~np.eye(n, dtype=bool), np.zeros((n, n), bool), rng.integers(0, 3, n))
    a, b = rng.choice(n, 2, replace=False)
    ruled.allowed[a, b] = ruled.required[a, b] = True
    ruled.max_parents[a] = 1
    for score in (sf.BIC(), sf.Evidence(sf.BDeu(1)), sf.Evidence(sf.K2()), sf.LogLikelihood()):
        for rules in (Rules.free(n), ruled):
            problem, parents = solved(rows, ChowLiu(), score, rules)
            assert rules.permits(parents)
            single, pair = problem.scores.pairs()
            gain = np.where(rules.allowed & (rules.max_parents > 0)[:, None], pair - single[:, None], -np.inf)
            needed = np.argwhere(rules.required).tolist()
            best = single.sum() + heaviest(gain, [p for p in FORESTS[n] if all(p[i] == j for i, j in needed)])
            assert problem.scores.total(parents) == pytest.approx(best, abs=1e-5)


def test_the_tree_of_the_likelihood_spans_and_has_the_root_asked_for() -> None:
    rows = {**random_net(4, 5).sample(200, seed=0).to_pydict(), "constant": ["k"] * 200}
    for root in ("n3", "constant"):
        problem, parents = solved(rows, ChowLiu(root), sf.LogLikelihood())
        assert sum(map(len, parents)) == 5
        assert parents[problem.names.index(root)] == ()
    _, sparse = solved(rows, ChowLiu("constant"))
    assert sparse[0] == ()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_tan_is_the_best_forest_below_its_class(seed: int) -> None:
    n = 5
    target = seed % n
    others = [i for i in range(n) if i != target]
    rows = random_net(seed, n).sample(150, seed=seed)
    for score in (sf.AIC(), sf.Evidence(sf.K2())):
        problem, parents = solved(rows, TAN(f"n{target}"), score)
        assert parents[target] == ()
        graphs = []
        for chosen in FORESTS[n - 1]:
            graph: list[Parents] = [()] * n
            for i, p in zip(others, chosen, strict=True):
                graph[i] = (target,) if p == NONE else tuple(sorted((target, others[p])))
            graphs.append(graph)
        best = max(problem.scores.total(g) for g in graphs)
        assert problem.scores.total(parents) == pytest.approx(best, abs=1e-5)


def test_tan_keeps_the_rules() -> None:
    rows = random_net(31, 5).sample(300, seed=1)
    rules = Rules.free(5)
    rules.allowed[1, 2] = False
    rules.required[3, 2] = True
    rules.max_parents[4] = 1
    _, parents = solved(rows, TAN("n0"), sf.AIC(), rules)
    assert rules.permits(parents)
    assert all(0 in parents[i] for i in range(1, 5))


def test_tan_refuses_rules_that_leave_no_room_for_its_class() -> None:
    rows = random_net(31, 5).sample(300, seed=1)
    required, forbidden, lone = Rules.free(5), Rules.free(5), Rules.free(5)
    required.required[0, 1] = True
    forbidden.allowed[1, 0] = False
    lone.max_parents[1] = 0
    for rules, reason in ((required, "into its target"), (forbidden, "not allowed"), (lone, "no parents")):
        with pytest.raises(sf.SufficeError, match=reason):
            solved(rows, TAN("n0"), rules=rules)


def test_mixed_variables() -> None:
    for method in (ChowLiu(), TAN("u")):
        problem, parents = solved(random_rows(0, 200), method)
        assert problem.rules.permits(parents)
    with pytest.raises(sf.SufficeError, match="'x' -> 'u'"):
        solved(random_rows(0, 200), TAN("x"))


def test_what_cannot_be_is_refused() -> None:
    rows = random_net(31, 4).sample(100, seed=1)
    rules = Rules.free(4)
    rules.required[0, 1] = rules.required[0, 2] = True
    with pytest.raises(sf.SufficeError, match="one parent"):
        solved(rows, ChowLiu(), rules=rules)
    rules.required[0, 2] = False
    with pytest.raises(sf.SufficeError, match="cannot be the root"):
        solved(rows, ChowLiu("n0"), rules=rules)
    for method in (ChowLiu("n11"), TAN("n11")):
        with pytest.raises(sf.SufficeError, match="did you mean"):
            solved(rows, method)
    for make in (lambda: ChowLiu(3), lambda: TAN(None)):  # type: ignore[arg-type]
        with pytest.raises(sf.SufficeError, match="name of a variable"):
            make()


def test_a_forbidden_direction_of_a_worthless_edge_is_not_taken() -> None:
    """The likelihood never prefers fewer edges; that must not turn edges round."""
    columns = {"a": ["x"] * 40, "b": list("0110") * 10, "c": list("0011") * 10}
    known = {n: sf.Finite(n, sorted(set(c))) for n, c in columns.items()}
    data = sf.scan(columns, variables=known)
    forbidden = sf.Forbid(("a", "b"))
    for method in (sf.methods.ChowLiu(), sf.methods.TAN("c")):
        assert forbidden.check(sf.search(data, sf.LogLikelihood(), method, forbidden).dag) == []
    mixed = sf.scan({"z": ["k"] * 20, "x": [float(i % 7) for i in range(20)], "y": [float(i % 3) for i in range(20)]})
    assert all(b != "z" for _, b in sf.search(mixed, sf.LogLikelihood(), sf.methods.ChowLiu()).dag.edges)
