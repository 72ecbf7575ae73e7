"""Laws of Gaussian graphs: minima are minima, screening and warm starts change nothing, nor does the order of columns; estimates
have the moments of the rows where the graph has an edge, and no precision where it has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.graphs import Graph
from suffice.models.gaussian_markov_net import fit_gaussian, joined_in
from suffice.numerics.inference.numbers.sparse_precision import sparse_precision

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 8)
FEW = settings(max_examples=25, deadline=None)


def correlations(seed: int, p: int, n: int = 40) -> Any:
    """Of columns of which some are mixtures of others."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p)) @ (np.eye(p) + rng.normal(size=(p, p)) * (rng.random((p, p)) < 0.3))
    return np.corrcoef(x.T).reshape(p, p)


def penalties(seed: int, p: int) -> Any:
    """Of all sizes, with pairs that are free and pairs that are never joined."""
    rng = np.random.default_rng(seed)
    L = rng.uniform(0.02, 0.5, (p, p))
    L[rng.random((p, p)) < 0.1] = np.inf
    L = np.minimum(L, L.T)
    np.fill_diagonal(L, 0.0)
    return L


def table(seed: int, p: int, n: int = 40) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p)) @ (np.eye(p) + 0.5 * rng.normal(size=(p, p))) + rng.normal(size=p)
    return {f"x{j}": x[:, j] for j in range(p)}


def random_graph(seed: int, p: int) -> Graph:
    rng = np.random.default_rng(seed)
    pairs = [(f"x{i}", f"x{j}") for i in range(p) for j in range(i + 1, p) if rng.random() < 0.5]
    return Graph(pairs, nodes=[f"x{i}" for i in range(p)])


@FEW
@given(seeds, sizes)
def test_a_minimum_is_one(seed: int, p: int) -> None:
    """The conditions of Karush, Kuhn and Tucker; the gap is that of a feasible dual point; other matrices are worse."""
    S, L = correlations(seed, p), penalties(seed, p)
    found = sparse_precision(S, L, gap=1e-12)
    theta, W = found.precision, found.covariance
    np.testing.assert_allclose(theta @ W, np.eye(p), atol=1e-9)
    pull = S - W
    there = theta != 0
    np.testing.assert_allclose(pull[there], -L[there] * np.sign(theta[there]), atol=1e-5)
    assert (np.abs(pull) <= L + 1e-5).all()
    assert 0 <= found.gap <= 1e-11
    value = lambda x: -np.linalg.slogdet(x)[1] + np.vdot(S, x) + (L[x != 0] * np.abs(x[x != 0])).sum()  # noqa: E731
    assert found.objective == pytest.approx(value(theta), abs=1e-9)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        step = rng.normal(size=(p, p)) * np.isfinite(L) * 1e-3
        assert value(theta + step + step.T) >= found.objective - 1e-12


@FEW
@given(seeds, sizes)
def test_screening_and_warm_starts_change_nothing(seed: int, p: int) -> None:
    S, L = correlations(seed, p), penalties(seed, p)
    found = sparse_precision(S, L, gap=1e-12)
    unscreened = sparse_precision(S, L, gap=1e-12, screen=False)
    warm = sparse_precision(S, L, gap=1e-12, start=sparse_precision(S, 2.0 * L).precision)
    for other in (unscreened, warm):
        np.testing.assert_allclose(other.precision, found.precision, atol=1e-5)
        assert other.objective == pytest.approx(found.objective, abs=1e-10)


@FEW
@given(seeds, sizes)
def test_the_order_and_the_scale_of_columns_change_nothing_else(seed: int, p: int) -> None:
    rows = table(seed, p)
    order = np.random.default_rng(seed).permutation(p)
    shuffled = {name: rows[name] for name in np.array(list(rows))[order].tolist()}
    scaled = {name: 1e3 * x + 1e5 for name, x in rows.items()}
    for method in (sf.GraphicalLasso(0.1, gap=1e-12), sf.Neighbourhoods(0.1)):
        found, same, larger = (sf.search(x, method=method) for x in (rows, shuffled, scaled))
        assert found.graph == same.graph == larger.graph
        assert same.strengths == pytest.approx(found.strengths, abs=1e-7)
        assert larger.strengths == pytest.approx(found.strengths, abs=1e-5)


@FEW
@given(seeds, sizes)
def test_covariance_selection_keeps_the_moments_of_edges(seed: int, p: int) -> None:
    rows, graph = table(seed, p), random_graph(seed, p)
    net = fit_gaussian(graph, rows)
    S = np.cov(np.array(list(rows.values())), bias=True).reshape(p, p)
    edges = joined_in(graph) | np.eye(p, dtype=bool)
    np.testing.assert_allclose(net.covariance[edges], S[edges], rtol=1e-8, atol=1e-9 * S.max())
    assert (net.precision[~edges] == 0).all()
    np.testing.assert_allclose(net.precision @ net.covariance, np.eye(p), atol=1e-8)
    assert net.deviance >= 0
    assert net.df == p * (p - 1) // 2 - len(graph.edges)


@FEW
@given(seeds, sizes)
def test_the_directed_twin_is_the_same_distribution(seed: int, p: int) -> None:
    rows, graph = table(seed, p), random_graph(seed, p)
    net = fit_gaussian(graph, rows)
    x = np.array([rows[name] for name in net.names]).T - net.mean
    logs = 0.5 * (np.linalg.slogdet(net.precision)[1] - p * np.log(2 * np.pi) - np.einsum("ni,ij,nj->n", x, net.precision, x))
    np.testing.assert_allclose(net.log_prob(rows), logs, rtol=1e-8, atol=1e-8)
    assert net.log_likelihood() == pytest.approx(logs.sum(), rel=1e-9)
    assert net.log_likelihood(rows) == pytest.approx(logs.sum(), rel=1e-9)
    given_last = {net.names[-1]: 0.5}
    W, m = net.covariance, net.mean
    expected = m[0] + W[0, -1] / W[-1, -1] * (0.5 - m[-1]) if p > 1 else m[0]
    assert net.query(net.names[0], given=given_last).mean == pytest.approx(expected, rel=1e-7, abs=1e-8)


@FEW
@given(seeds, st.integers(2, 6))
def test_node_lassos_are_minima(seed: int, p: int) -> None:
    rows = table(seed, p)
    found = sf.search(rows, method=sf.Neighbourhoods(0.1, rule=sf.methods.Or()))
    R = np.corrcoef(np.array(list(rows.values()))).reshape(p, p)
    B = found.details.coefficients
    pull = R - B @ R
    np.fill_diagonal(pull, 0.0)
    there = B != 0
    np.testing.assert_allclose(pull[there], 0.1 * np.sign(B[there]), atol=1e-7)
    assert (np.abs(pull) <= 0.1 + 1e-7).all()
    both = {tuple(sorted((found.names[i], found.names[j]))) for i, j in np.argwhere(there).tolist()}
    assert set(found.graph.edges) == both
    smaller = sf.search(rows, method=sf.Neighbourhoods(0.1)).graph.edges
    assert set(smaller) <= both
