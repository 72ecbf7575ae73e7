"""Bayesian networks fitted to tell one node from the others: conditional likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.learning.conditional.discriminative import TargetTables, blanket_rows

NAIVE = "y -> a; y -> b; y -> c"


def rows(n: int = 400, seed: int = 0) -> dict[str, Any]:
    """Features that depend on y and on each other, so that naive Bayes is wrong."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    a = np.where(rng.random(n) < 0.5, y, rng.integers(0, 3, n))
    b = np.where(rng.random(n) < 0.8, a, rng.integers(0, 3, n))
    c = (y + (rng.random(n) < 0.4)) % 2
    return {name: [f"{name}{i}" for i in v] for name, v in (("y", y), ("a", a), ("b", b), ("c", c))}


def conditional(bn: sf.BayesNet, table: dict[str, Any]) -> float:
    probs = bn.predict_proba({n: c for n, c in table.items() if n != "y"}, "y")
    return float(sum(np.log(probs[y][i]) for i, y in enumerate(table["y"])))


def test_naive_bayes_is_logistic_regression() -> None:
    table = rows()
    bn = sf.fit(NAIVE, table, objective=sf.Conditional("y"))
    softmax = sf.fit("a -> y; b -> y; c -> y", table, families={"y": sf.Logistic()})
    known = softmax.predict_proba({n: table[n] for n in "abc"}, "y")
    found = bn.predict_proba({n: table[n] for n in "abc"}, "y")
    for state in ("y0", "y1", "y2"):
        np.testing.assert_allclose(found[state], known[state], atol=1e-5)
    assert "conditional likelihood" in bn.fit_info
    assert "local" not in bn.fit_info


def test_it_gains_in_conditional_and_loses_in_joint_likelihood() -> None:
    table = rows()
    for graph in (NAIVE, "y -> a -> b; y -> b; y -> c"):
        plain, told = sf.fit(graph, table), sf.fit(graph, table, objective=sf.Conditional("y"))
        assert conditional(told, table) > conditional(plain, table) + 1e-3
        assert told.log_likelihood(table) < plain.log_likelihood(table)
        assert f"{conditional(told, table):,.4f}" in told.fit_info


def test_tables_without_the_target_stay() -> None:
    table = rows()
    plain, told = sf.fit("c -> y; y -> a -> b", table), sf.fit("c -> y; y -> a -> b", table, objective=sf.Conditional("y"))
    for name in ("c", "b"):
        assert np.array_equal(plain[name].probs, told[name].probs)
    assert "local optimum" not in told.fit_info
    assert "local optimum" in sf.fit("y -> a -> b; y -> b; y -> c", table, objective=sf.Conditional("y")).fit_info


def test_the_gradient_is_that_of_differences_and_weights_are_rows() -> None:
    bn = sf.fit("y -> a -> b; y -> b; y -> c", rows())
    names = ["y", "a", "b", "c"]
    tables = TargetTables.of(bn, "y", names, blanket_rows(bn, "y", names, rows()))
    w = tables.start + np.random.default_rng(0).normal(size=len(tables.start))
    _, slope = tables.loss(w, 0.3)
    for k in range(0, len(w), 5):
        e = np.zeros(len(w))
        e[k] = 1e-5
        assert (tables.loss(w + e, 0.3)[0] - tables.loss(w - e, 0.3)[0]) / 2e-5 == pytest.approx(slope[k], abs=1e-4)
    twice = {n: c * 2 for n, c in rows().items()}
    one = sf.fit(NAIVE, sf.scan(rows(), weights=[2.0] * 400), objective=sf.Conditional("y"), penalty=sf.L2(0.1))
    other = sf.fit(NAIVE, twice, objective=sf.Conditional("y"), penalty=sf.L2(0.1))
    np.testing.assert_allclose(one["a"].probs, other["a"].probs, atol=1e-6)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"objective": sf.Conditional("z")}, "no node of the graph"),
        ({"objective": sf.objectives.Perceptron("y")}, r"the nearest is Margin\('y'\); Perceptron is for a LinearChain"),
        ({"objective": sf.Conditional("y"), "penalty": sf.L1(1)}, r"penalty L2\(c2\)"),
        ({"objective": sf.Conditional("y"), "method": sf.methods.LBFGS()}, "method="),
    ],
)
def test_what_cannot_be_is_refused(how: Any, message: str) -> None:
    with pytest.raises(sf.SufficeError, match=message):
        sf.fit(NAIVE, rows(), **how)


def test_numbers_and_gaps_are_refused() -> None:
    with pytest.raises(sf.SufficeError, match="holds numbers"):
        sf.fit("y -> x", {"y": ["a", "b"] * 5, "x": np.arange(10) + 0.5}, objective=sf.Conditional("y"))
    table = {**rows(), "a": [None, *rows()["a"][1:]]}
    with pytest.raises(sf.SufficeError, match="missing cells"):
        sf.fit(NAIVE, table, objective=sf.Conditional("y"))
