"""`Neighbourhoods` of finite and mixed columns: minima beside another algorithm, invariance, rules, bad input."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.structure.undirected.coded_regression import NodeColumns, contrasts
from suffice.structure.undirected.node_regressions import CodedNodes
from tests.toy_engine import toy

N = 400


def mixed(n: int = N, seed: int = 0) -> dict[str, Any]:
    """a – b – c finite with 3, 4 and 2 states, x and y real; a – x, c – y, x – y."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    b = (a + (rng.random(n) < 0.4) * rng.integers(1, 4, n)) % 4
    c = (b + (rng.random(n) < 0.3)) % 2
    x = a + rng.normal(size=n)
    y = 0.5 * x + c + rng.normal(size=n)
    return {"a": a.astype(str), "b": b.astype(str), "c": c.astype(str), "x": x, "y": y}


def ising(n_rows: int, n_columns: int, n: int, seed: int, thin: int = 10) -> tuple[dict[str, Any], set[tuple[str, str]]]:
    """Rows of a grid with couplings ± 0.4, drawn by Gibbs sweeps of many chains side by side; and its edges."""
    rng = np.random.default_rng(seed)
    p = n_rows * n_columns
    J = np.zeros((p, p))
    for i in range(p):
        for j in ([i + 1] if (i + 1) % n_columns else []) + ([i + n_columns] if i + n_columns < p else []):
            J[i, j] = J[j, i] = 0.4 * rng.choice([-1, 1])
    x = rng.choice([-1.0, 1.0], (n, p))
    for _ in range(thin):
        for i in range(p):
            x[:, i] = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * x @ J[i])), 1.0, -1.0)
    names = [f"x{i:03d}" for i in range(p)]
    edges = {(names[i], names[j]) for i, j in np.argwhere(np.triu(J)).tolist()}
    return {name: np.where(x[:, i] > 0, "up", "down") for i, name in enumerate(names)}, edges


def nearest_minimum(rows: dict[str, Any], child: str, penalty: float, steps: int = 1500) -> tuple[float, dict[str, float]]:
    """By accelerated proximal gradients, over all states and without a basis: the objective, and the norms of the neighbours.

    Θ has two states at −½ and ½: a matrix B over all states of both has ‖Θ‖ = 2 ‖B‖, √2 ‖B‖ of a state and a number.
    """

    def coded(name: str) -> np.ndarray:
        column = rows[name]
        if column.dtype.kind == "f":
            return (column - column.mean())[:, None] / (2.0 * column.std())
        return (column[:, None] == np.unique(column)).astype(float)

    def finite(name: str) -> bool:
        return rows[name].dtype.kind != "f"

    Y, others = coded(child), [name for name in sorted(rows) if name != child]
    parts = [coded(name) - (coded(name).mean(1, keepdims=True) if finite(name) else 0.0) for name in others]
    X, ends = np.hstack(parts), np.cumsum([0, *(p.shape[1] for p in parts)])
    spots = [slice(a, b) for a, b in pairwise(ends.tolist())]
    factor = [np.sqrt(2.0) ** (finite(child) + finite(name)) for name in others]
    size = {name: len(np.unique(rows[name])) - 1 if finite(name) else 1 for name in rows}
    weight = [penalty * np.sqrt(size[child] * size[name]) for name in others]

    def loss(B: np.ndarray, h: np.ndarray) -> tuple[float, np.ndarray]:
        eta = X @ B + h
        if not finite(child):
            return 0.5 * float(((Y - eta) ** 2).mean()), (eta - Y) / len(Y)
        top = eta - eta.max(1, keepdims=True)
        log_p = top - np.log(np.exp(top).sum(1, keepdims=True))
        return -float((Y * log_p).sum(1).mean()), (np.exp(log_p) - Y) / len(Y)

    length = np.linalg.norm(np.column_stack([np.ones(len(X)), X]), 2) ** 2 / len(X)
    B = B0 = np.zeros((X.shape[1], Y.shape[1]))
    h = h0 = np.zeros(Y.shape[1])
    t = 1.0
    for _ in range(steps):
        residual = loss(B0, h0)[1]
        new, level = B0 - X.T @ residual / length, h0 - residual.sum(0) / length
        for spot, f, w in zip(spots, factor, weight, strict=True):
            new[spot] *= max(0.0, 1.0 - w * f / length / max(float(np.linalg.norm(new[spot])), 1e-300))
        ahead = (1.0 + np.sqrt(1.0 + 4.0 * t * t)) / 2.0
        B0, h0 = new + (t - 1.0) / ahead * (new - B), level + (t - 1.0) / ahead * (level - h)
        B, h, t = new, level, ahead
    norms = [f * float(np.linalg.norm(B[spot])) for spot, f in zip(spots, factor, strict=True)]
    price = sum(w * norm for w, norm in zip(weight, norms, strict=True))
    return loss(B, h)[0] + price, dict(zip(others, norms, strict=True))


@pytest.mark.parametrize("penalty", [0.06, 0.02])
def test_minima_are_those_of_another_algorithm(penalty: float) -> None:
    rows = mixed(200)
    data = sf.scan(rows)
    fit = CodedNodes.of(data, [data.schema[n] for n in sorted(rows)]).fit(np.full((5, 5), penalty))
    total = 0.0
    for i, child in enumerate(sorted(rows)):
        objective, norms = nearest_minimum(rows, child, penalty)
        total += objective
        there = np.abs(np.delete(fit.strengths[i], i))
        np.testing.assert_allclose(there, list(norms.values()), atol=2e-4)
    assert fit.objective == pytest.approx(total, abs=1e-7)
    assert fit.objective <= total + 1e-9


def test_the_constant_and_the_slopes_are_those_of_a_minimum() -> None:
    """Finite differences of the objective: no number of θ can move downhill."""
    rows, _ = ising(2, 3, 300, 1)
    data = sf.scan(rows)
    nodes = CodedNodes.of(data, [data.schema[n] for n in sorted(rows)])
    fit = nodes.fit(np.full((6, 6), 0.01))
    z = np.array([np.where(rows[n] == "up", 0.5, -0.5) for n in sorted(rows)])

    def objective(i: int, beta: np.ndarray, h: float) -> float:
        return float(np.logaddexp(0.0, -2.0 * z[i] * (h + beta @ z)).mean() + 0.01 * np.abs(beta).sum())

    total = 0.0
    for i, name in enumerate(sorted(rows)):
        beta, h = fit.strengths[i].copy(), float(fit.coefficients.intercept(name)[0])
        here = objective(i, beta, h)
        total += here
        assert objective(i, beta, h + 1e-4) > here - 1e-9
        assert objective(i, beta, h - 1e-4) > here - 1e-9
        for j in range(6):
            for step in (1e-4, -1e-4) if i != j else ():
                moved = beta.copy()
                moved[j] += step
                assert objective(i, moved, h) > here - 1e-9
    assert fit.objective == pytest.approx(total, abs=1e-10)


def test_a_grid_is_found() -> None:
    rows, edges = ising(5, 5, 3000, 2)
    penalty = 0.5 * np.sqrt(np.log(25) / 3000)
    found = sf.search(rows, method=sf.Neighbourhoods(penalty=penalty))
    assert edges <= set(found.graph.edges)
    assert len(found.graph.edges) <= len(edges) + 1
    mean = np.mean([abs(found.strengths[e]) for e in edges])
    assert 1.0 < mean < 1.65  # log odds ratios are 4 · 0.4, less what the penalty takes


def test_permutations_weights_and_threads_change_nothing() -> None:
    rows = mixed()
    method = sf.Neighbourhoods(penalty=0.02)
    found = sf.search(rows, method=method, threads=1)
    order = np.random.default_rng(1).permutation(N)
    states = {"a": ["2", "0", "1"], "b": ["3", "1", "0", "2"], "c": ["1", "0"]}
    turned = sf.scan({n: rows[n][order] for n in reversed(rows)}, variables=states)
    for other in (sf.search(turned, method=method), sf.search(rows, method=method, threads=3)):
        assert other.graph == found.graph
        for edge in found.graph.edges:
            assert abs(other.strengths[edge]) == pytest.approx(abs(found.strengths[edge]), abs=1e-6)
    assert sf.search(rows, method=method, threads=3).details.strengths == found.details.strengths
    twice = {n: np.concatenate([c, c[: N // 2]]) for n, c in rows.items()}
    weights = np.where(np.arange(N) < N // 2, 2.0, 1.0)
    weighted = sf.search(sf.scan(rows, weights=weights), method=method)
    repeated = sf.search(twice, method=method)
    for edge, strength in repeated.details.strengths.items():
        assert weighted.details.strengths[edge] == pytest.approx(strength, abs=1e-6)
    assert pickle.loads(pickle.dumps(found)).details.strengths == found.details.strengths


def test_few_different_rows_are_merged() -> None:
    rows, _ = ising(2, 2, 500, 3)
    data = sf.scan(rows)
    variables = [data.schema[n] for n in sorted(rows)]
    merged, penalty = CodedNodes.of(data, variables), np.full((4, 4), 0.02)
    assert merged.rows.n_rows <= 16
    plain = CodedNodes(data, NodeColumns.of(data, variables), 1)
    assert plain.rows.n_rows == 500
    np.testing.assert_allclose(merged.fit(penalty).strengths, plain.fit(penalty).strengths, atol=1e-6)


def test_many_blocks_are_one() -> None:
    rows = mixed(300)
    data, away = sf.scan(rows), toy(rows, n=5)
    method = sf.Neighbourhoods(penalty=0.03)
    here, there = sf.search(data, method=method), sf.search(away, method=method)
    assert there.graph == here.graph
    for edge, strength in here.details.strengths.items():
        assert there.details.strengths[edge] == pytest.approx(strength, abs=1e-7)


def test_a_path_does_not_depend_on_where_it_begins() -> None:
    rows = mixed()
    data = sf.scan(rows)
    nodes = CodedNodes.of(data, [data.schema[n] for n in sorted(rows)])
    last = None
    for x in (0.1, 0.05, 0.02):
        last = nodes.fit(np.full((5, 5), x), last)
    cold = nodes.fit(np.full((5, 5), 0.02))
    np.testing.assert_allclose(last.strengths, cold.strengths, atol=1e-4)
    assert last.objective == pytest.approx(cold.objective, abs=1e-8)
    assert (nodes.fit(np.full((5, 5), nodes.association.max() * 1.0001)).strengths == 0.0).all()
    off = ~np.eye(5, dtype=bool)
    assert (nodes.fit(np.full((5, 5), nodes.association[off].max() * 0.95)).strengths != 0.0).any()


@pytest.mark.parametrize("select", [sf.choices.EBIC(0.25), sf.choices.StARS(0.1, 5), sf.choices.HeldOut(3)], ids=repr)
def test_penalties_are_chosen(select: Any) -> None:
    rows = mixed(600)
    found = sf.search(rows, method=sf.Neighbourhoods(select=select, n_penalties=8))
    assert {("a", "x"), ("x", "y")} <= set(found.graph.edges)
    assert len(found.path) == 8
    assert found.path[0].n_edges == 0
    again = sf.search(rows, method=sf.Neighbourhoods(select=select, n_penalties=8), threads=2)
    assert again.path == found.path


def test_states_that_are_only_held_out_say_nothing() -> None:
    rows = mixed(120)
    rows["a"] = rows["a"].astype("<U5")
    rows["a"][7] = "never"
    rows["c"] = rows["c"].astype("<U5")
    rows["c"][9] = "never"
    found = sf.search(rows, method=sf.Neighbourhoods(select=sf.choices.HeldOut(3), n_penalties=4))
    assert all(np.isfinite(entry.criterion) for entry in found.path)


def test_a_sample_in_which_a_column_does_not_vary_is_no_error() -> None:
    rows = mixed(100)
    rows["r"] = np.where(np.arange(100) == 5, "once", "never")
    rows["s"] = np.where(np.arange(100) == 5, 2.5, 1.5)
    for select in (sf.choices.HeldOut(2), sf.choices.StARS(0.2, 4)):
        found = sf.search(sf.scan(rows, {"s": sf.Real("s")}), method=sf.Neighbourhoods(select=select, n_penalties=3))
        assert len(found.path) == 3


def test_states_that_never_occur_change_nothing() -> None:
    rows = mixed()
    more = sf.scan(rows, variables={"a": ["0", "none", "1", "2"], "c": ["0", "1", "none"]})
    method = sf.Neighbourhoods(penalty=0.03)
    found, other = sf.search(rows, method=method), sf.search(more, method=method)
    for edge, strength in found.details.strengths.items():
        assert abs(other.details.strengths[edge]) == pytest.approx(abs(strength), abs=1e-7)


def test_rules_are_kept() -> None:
    rows = mixed()
    known = sf.Forbid(("x", "y")) + sf.Require(("a", "y"))
    found = sf.search(rows, method=sf.Neighbourhoods(penalty=0.03, rule=sf.methods.Or()), constraints=known)
    assert ("x", "y") not in found.graph.edges
    assert ("a", "y") in found.graph.edges
    assert found.details.strengths["y", "a"] != 0.0
    assert ("x", "y") not in found.details.strengths
    by_pair = sf.Neighbourhoods(penalty={("x", "y"): np.inf, None: 0.03}, rule=sf.methods.Or())
    assert ("x", "y") not in sf.search(rows, method=by_pair).graph.edges


def test_contrasts_are_a_scaled_basis() -> None:
    for k in range(2, 7):
        z = contrasts(k)
        np.testing.assert_allclose(z.T @ z, 0.5 * np.eye(k - 1), atol=1e-12)
        np.testing.assert_allclose(z.sum(0), 0.0, atol=1e-12)


def test_refusals() -> None:
    rows = mixed(60)
    one = {**rows, "d": np.full(60, "only")}
    flat = {**rows, "d": np.full(60, 1e9 + 0.5)}
    for data, message in (
        (one, "do not vary, .*: 'd'"),
        (flat, "do not vary, .*: 'd'"),
        ({**rows, "x": [None, *rows["x"][1:]]}, "missing"),
    ):
        with pytest.raises(sf.SufficeError, match=message):
            sf.search(data, method=sf.Neighbourhoods(penalty=0.1))
    counts = sf.scan({**rows, "k": np.arange(60) % 7}, variables={"k": sf.Count("k")})
    with pytest.raises(sf.SufficeError, match="'k' is of another kind"):
        sf.search(counts, method=sf.Neighbourhoods(penalty=0.1))
    data = sf.scan({n: rows[n] for n in "abc"})
    with pytest.raises(sf.SufficeError, match="statistics have none"):
        sf.search(data.gather([sf.statistics.Request(("a", "b", "c"))]), method=sf.Neighbourhoods(penalty=0.1))
    with pytest.raises(sf.SufficeError, match="above 0"):
        sf.Neighbourhoods(penalty=0.0)
