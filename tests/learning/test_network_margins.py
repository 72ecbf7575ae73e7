"""Margins of Bayesian networks: beside support vector machines of scikit-learn, and the laws of the quadratic program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, vstack

import suffice as sf
from suffice.learning.conditional.discriminative import TargetTables, blanket_rows
from suffice.learning.conditional.target_rows import TargetRows, least_hinge
from tests.learning.test_discriminative import NAIVE, rows

TAN = "y -> a -> b; y -> b; y -> c"
APART = "y -> a; c -> a; y -> b"
"""The parents of a are not joined."""


def tables(graph: str, table: Any, y: str = "y") -> TargetTables:
    bn = sf.fit(graph, table)
    names = [y, *sorted(bn.dag.children(y))]
    return TargetTables.of(bn, y, names, blanket_rows(bn, y, names, table))


def indicators(table: dict[str, Any]) -> np.ndarray:
    return np.stack([np.array(table[n]) == s for n in "abc" for s in sorted(set(table[n]))], axis=1).astype(float)


def values(bn: sf.BayesNet, table: dict[str, Any]) -> np.ndarray:
    """ln p(y | rest) of each row and state."""
    probs = bn.predict_proba({n: c for n, c in table.items() if n != "y"}, "y")
    return np.log(np.stack([np.asarray(probs[s]) for s in bn.variables["y"].states], axis=1))


def hinge(scores: np.ndarray, table: dict[str, Any]) -> float:
    """Of scores by row and state, by hand."""
    states = sorted(set(table["y"]))
    true = np.array([states.index(y) for y in table["y"]])
    each = np.arange(len(true))
    return float(((scores + (np.arange(len(states)) != true[:, None])).max(axis=1) - scores[each, true]).sum())


def objective(bn: sf.BayesNet) -> float:
    return float(bn.fit_info.split("objective ")[1].split(", ")[0].replace(",", ""))


@pytest.mark.parametrize("c2", [0.05, 0.5, 5.0])
def test_naive_bayes_is_a_multiclass_support_vector_machine(c2: float) -> None:
    """Crammer & Singer: ½ Σ w² + C Σ hinge, with an intercept that is paid for as any weight is."""
    from sklearn.svm import LinearSVC

    table = rows(300, 3)
    told = sf.fit(NAIVE, table, objective=sf.Margin("y"), penalty=sf.L2(c2))
    machine = LinearSVC(multi_class="crammer_singer", C=1 / (2 * c2), tol=1e-10, max_iter=1_000_000, random_state=0)
    X = indicators(table)
    machine.fit(X, table["y"])
    size = (machine.coef_**2).sum() + (machine.intercept_**2).sum()
    known = hinge(X @ machine.coef_.T + machine.intercept_, table) + c2 * size
    assert objective(told) == pytest.approx(known, rel=1e-5)
    assert objective(told) <= known + 1e-4
    assert hinge(values(told, table), table) == pytest.approx(
        float(told.fit_info.split("hinge loss ")[1].split(", ob")[0].replace(",", "")), abs=1e-3
    )


def test_two_states_are_the_plain_hinge_loss() -> None:
    """Crammer & Singer's w of two states is ± half of the plain machine's: ½ Σ over both is a quarter of it."""
    from scipy.optimize import linprog

    table = rows(200, 5)
    table["y"] = ["y0" if y == "y0" else "y1" for y in table["y"]]
    told = sf.fit(NAIVE, table, objective=sf.Margin("y"), penalty=sf.L2(1e-7))
    # with next to no penalty it is a linear program
    X = np.c_[np.ones(200), indicators(table)] * np.where(np.array(table["y"]) == "y1", 1.0, -1.0)[:, None]
    n, d = X.shape
    found = linprog(
        np.r_[np.zeros(d), np.ones(n)], A_ub=-np.c_[X, np.eye(n)], b_ub=-np.ones(n), bounds=[(None, None)] * d + [(0, None)] * n
    )
    assert objective(told) == pytest.approx(found.fun, rel=1e-5)


def test_the_tables_are_distributions_and_agree_with_the_scores() -> None:
    table = rows()
    for graph in (NAIVE, TAN, APART, "c -> y; y -> a -> b", "c -> y; c -> a; y -> a; a -> b; y -> b; c -> b"):
        told = sf.fit(graph, table, objective=sf.Margin("y"), penalty=sf.L2(0.1))
        for name in told:
            np.testing.assert_allclose(told[name].probs.sum(axis=-1), 1.0)
        assert "not calibrated" in told.fit_info
        own = tables(graph, table)
        loss = hinge(values(told, table), table)
        if own.free:
            best = least_hinge(own.rows, len(own.start), 1.0, 0.1)
            assert loss == pytest.approx(best.value - 0.1 * float(best.w @ best.w), abs=1e-4)
            assert objective(told) == pytest.approx(best.value, abs=1e-4)
        assert ("the only one" in told.fit_info) == (own.free and graph not in (NAIVE, "c -> y; y -> a -> b"))


@st.composite
def problems(draw: Any) -> tuple[TargetRows, int]:
    """Rows of a naive Bayes network of random sizes."""
    seed, sizes = draw(st.integers(0, 10_000)), [st.integers(1, 12), st.integers(2, 4), st.integers(1, 3), st.integers(2, 3)]
    return naive_rows(seed, *map(draw, sizes))


def naive_rows(seed: int, R: int, K: int, F: int, S: int) -> tuple[TargetRows, int]:
    """R rows of K states given F columns of S states each, and how many weights they have."""
    rng = np.random.default_rng(seed)
    y, others = sf.Finite("y", range(K)), [sf.Finite(f"x{f}", range(S)) for f in range(F)]
    columns = {"y": rng.integers(0, K, R)} | {v.name: rng.integers(0, S, R) for v in others}
    scopes, starts = [[y], *([y, v] for v in others)], [0, *(K + f * K * S for f in range(F))]
    return TargetRows.of("y", scopes, starts, (columns, rng.integers(1, 20, R).astype(float))), K + F * K * S


@given(problems(), st.sampled_from([1e-3, 0.5, 30.0]), st.sampled_from([0.5, 1.0]))
def test_the_least_hinge_is_the_least(problem: tuple[TargetRows, int], c2: float, cost: float) -> None:
    own, size = problem
    found = least_hinge(own, size, cost, c2)

    def loss(w: np.ndarray) -> float:
        return own.hinge(w, cost) + c2 * float(w @ w)

    assert loss(found.w) == pytest.approx(found.value, rel=1e-9)
    assert found.gap <= 1e-6 * max(found.value, 1e-3 * own.weight)
    rng = np.random.default_rng(0)
    for scale in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            assert loss(found.w + scale * rng.normal(size=size)) >= found.value - found.gap - 1e-9 * own.weight
    again = csr_array(vstack([own.design, own.design]))
    twice = TargetRows(again, own.places, np.tile(own.true, 2), np.tile(own.weights, 2) / 2)
    assert least_hinge(twice, size, cost, c2).value == pytest.approx(found.value, rel=1e-6, abs=1e-8 * own.weight)


@pytest.mark.parametrize(("seed", "sizes", "weights"), [(420, (2, 3, 3, 2), [8, 13]), (619, (2, 3, 3, 3), [16, 12])])
def test_steps_do_not_go_round_in_circles(seed: int, sizes: tuple[int, int, int, int], weights: list[float]) -> None:
    """Mehrotra's alone did, a seventh above the least: here two rows agree in nearly all, and their states differ."""
    own, size = naive_rows(seed, *sizes)
    assert own.weights.tolist() == weights
    found = least_hinge(own, size, 1.0, 0.5)
    assert found.steps < 20
    assert found.gap <= 1e-8 * found.value


def test_the_best_step_is_kept_where_later_ones_are_rounding() -> None:
    own, size = naive_rows(2267, 5, 3, 2, 3)
    found = least_hinge(own, size, 1.0, 1e-3)
    assert found.gap <= 1e-8 * found.value


@given(problems(), st.sampled_from([(0.0, 1.0), (1.0, 1.0), (0.7, 0.2)]))
def test_gradients_are_those_of_differences(problem: tuple[TargetRows, int], how: tuple[float, float]) -> None:
    own, size = problem
    w = np.random.default_rng(1).normal(size=size)
    _, slope = own.loss(w, *how)
    for k in range(size):
        e = np.eye(size)[k] * 1e-5
        assert (own.loss(w + e, *how)[0] - own.loss(w - e, *how)[0]) / 2e-5 == pytest.approx(slope[k], abs=1e-5 * own.weight)


def test_the_gradient_where_parents_are_apart() -> None:
    own = tables(APART, rows())
    assert not own.free
    w = own.start + np.random.default_rng(0).normal(size=len(own.start))
    for cost, temperature in ((0.0, 1.0), (1.0, 0.5)):
        _, slope = own.loss(w, 0.3, cost, temperature)
        for k in range(len(w)):
            e = np.eye(len(w))[k] * 1e-5
            ahead, back = (own.loss(x, 0.3, cost, temperature)[0] for x in (w + e, w - e))
            assert (ahead - back) / 2e-5 == pytest.approx(slope[k], abs=1e-3)


@pytest.mark.parametrize("graph", [NAIVE, TAN, APART])
@pytest.mark.parametrize("goal", [sf.Conditional("y"), sf.Margin("y")])
def test_columns_states_weights_and_statistics_change_nothing(graph: str, goal: Any) -> None:
    table = rows(200, 1)
    near = 1e-5 if graph != APART else 2e-2  # a local optimum, approached from the same place

    def answers(data: Any) -> np.ndarray:
        bn = sf.fit(graph, data, objective=goal, penalty=sf.L2(0.5))
        probs = bn.predict_proba({n: table[n] for n in "abc"}, "y")
        return np.stack([np.asarray(probs[s]) for s in ("y0", "y1", "y2")])

    plain = answers(table)
    back = {n: sf.Finite(n, sorted(set(c), reverse=True)) for n, c in table.items()}
    distinct = sorted(set(zip(*table.values(), strict=True)))
    together = list(zip(*table.values(), strict=True))
    counts = [together.count(row) for row in distinct]
    merged = dict(zip(table, map(list, zip(*distinct, strict=True)), strict=True))
    for other in (
        dict(reversed(table.items())),
        {n: c[::-1] for n, c in table.items()},
        sf.scan(table, back),
        sf.scan(merged, weights=counts),
        sf.scan(table).gather([sf.statistics.Request(("a", "b", "c", "y"))]),
    ):
        np.testing.assert_allclose(answers(other), plain, atol=near)


def test_without_a_penalty_c_is_one() -> None:
    table = rows(100)
    plain, told = (sf.fit(NAIVE, table, objective=sf.Margin("y"), penalty=p) for p in (None, sf.L2(0.5)))
    assert "with L2(0.5)" in plain.fit_info
    assert np.array_equal(plain["a"].probs, told["a"].probs)


def test_what_is_not_there_is_refused() -> None:
    table = rows(50)
    with pytest.raises(sf.SufficeError, match=r"one table of 'y', 'a', 'b', 'c' together"):
        sf.fit(NAIVE, sf.gather(table, NAIVE), objective=sf.Margin("y"))
    with pytest.raises(sf.SufficeError, match="share their parameters"):
        sf.fit("y -> a; y -> b", {n: table[n.replace("b", "a")] for n in "yab"}, objective=sf.Margin("y"), shared=[("a", "b")])
    with pytest.raises(sf.SufficeError, match="no table but a regression"):
        sf.fit("a -> y", table, objective=sf.Conditional("y"), families={"y": sf.Logistic(ridge=1)})
    with pytest.raises(sf.SufficeError, match=r"penalty L2\(c2\)"):
        sf.fit(NAIVE, table, objective=sf.Margin("y"), penalty=sf.L1(1))


def test_sparse_and_dense_products_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    own = tables(NAIVE, rows(200))
    found = []
    for dense in (0.1, 10, 1e9):
        monkeypatch.setattr("suffice.learning.conditional.target_rows.DENSE", dense)
        monkeypatch.setattr("suffice.learning.conditional.target_rows.ROOM", 100)
        found.append(least_hinge(own.rows, len(own.start), 1.0, 0.2).w)
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
    np.testing.assert_allclose(found[0], found[2], atol=1e-6)


def test_too_many_cells_are_refused_before_memory_is_taken() -> None:
    many = {"y": ["u", "v"] * 5000, "a": [f"a{i}" for i in range(10_000)]}
    with pytest.raises(sf.SufficeError, match=r"20,002 cells that occur"):
        sf.fit("y -> a", many, objective=sf.Margin("y"))


def test_one_state_and_one_row() -> None:
    only = sf.fit("y -> a", {"y": ["u", "u"], "a": ["p", "q"]}, objective=sf.Margin("y"))
    assert only.query("y")["u"] == 1.0
    one = sf.fit("y -> a", sf.scan({"y": ["u"], "a": ["p"]}, {"y": ["u", "v"], "a": ["p", "q"]}), objective=sf.Margin("y"))
    assert one.query("y", given={"a": "p"})["u"] > 0.5


@pytest.mark.parametrize(
    ("file", "graph", "y", "best"),
    [
        ("titanic_persons", "Survived -> Class; Survived -> Sex; Survived -> Age", "Survived", -1105.03055285),
        ("ucb_admissions", "Admit -> Gender; Admit -> Dept", "Admit", -2593.74424709),
    ],
)
def test_golden_conditional_likelihoods_from_counts(file: str, graph: str, y: str, best: float) -> None:
    """Logistic regression; maximum likelihood is lower in the conditional likelihood and higher in the joint one."""
    counts = sf.Statistics.load(Path(__file__).parents[1] / "reference" / f"{file}.stats")
    plain = sf.fit(graph, counts)
    told, wide = (sf.fit(graph, counts, objective=goal) for goal in (sf.Conditional(y), sf.Margin(y)))
    logs = {}
    for name, bn in {"plain": plain, "told": told, "wide": wide}.items():
        names = [y, *sorted(bn.dag.children(y))]
        own = TargetTables.of(bn, y, names, blanket_rows(bn, y, names, counts))
        logs[name] = -own.loss(own.start, 0.0)[0]
    assert logs["told"] == pytest.approx(best, abs=1e-7)
    assert logs["plain"] < logs["told"]
    assert logs["wide"] < logs["told"]
    assert plain.log_likelihood(counts) > max(told.log_likelihood(counts), wide.log_likelihood(counts))
    assert f"{best:,.4f}" in told.fit_info
