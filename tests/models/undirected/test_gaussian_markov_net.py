"""Gaussian Markov networks: covariance selection, what one asks of them, and what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.graphs import Graph
from suffice.models.gaussian_markov_net import fit_gaussian


def columns(p: int = 4, n: int = 60, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p)) @ (np.eye(p) + 0.6 * np.eye(p, k=1)) + 5.0
    return {f"x{j}": x[:, j] for j in range(p)}


SQUARE = Graph("x0 -- x1 -- x2 -- x3 -- x0")
CHAIN = Graph("x0 -- x1 -- x2 -- x3")


def test_closed_form_equals_newton_steps() -> None:
    """A decomposable graph, by both: a chord of weight nothing makes Newton's steps necessary."""
    from suffice.numerics.inference.numbers.sparse_precision import sparse_precision

    net = fit_gaussian(CHAIN, columns())
    S = np.cov(np.array(list(columns().values())), bias=True)
    L = np.where(net.precision != 0, 0.0, np.inf)
    np.testing.assert_allclose(sparse_precision(S, L, gap=1e-12, more=1).precision, net.precision, rtol=1e-9, atol=1e-12)
    assert "closed form" in net.fit_info
    assert "Newton" in fit_gaussian(SQUARE, columns()).fit_info


def test_a_chain_is_the_bayesian_network_of_the_chain() -> None:
    net, bn = fit_gaussian(CHAIN, columns()), sf.fit("x0 -> x1 -> x2 -> x3", columns())
    assert net.log_likelihood() == pytest.approx(bn.log_likelihood(), rel=1e-12)
    assert net.bic() == pytest.approx(bn.bic(), rel=1e-12)
    assert net.aic() == pytest.approx(bn.aic(), rel=1e-12)
    assert net.n_parameters == bn.n_parameters == 11
    assert net.entropy() == pytest.approx(bn.entropy(), rel=1e-12)
    assert net.to_bayes_net().log_likelihood(columns()) == pytest.approx(bn.log_likelihood(), rel=1e-12)


def test_the_complete_graph_has_no_deviance() -> None:
    net = fit_gaussian(Graph.complete([f"x{j}" for j in range(4)]), columns())
    assert net.deviance == pytest.approx(0.0, abs=1e-9)
    assert net.df == 0
    assert np.isnan(net.p_value)
    assert fit_gaussian(SQUARE, columns()).p_value > 0
    with pytest.raises(sf.SufficeError, match="not decomposable"):
        fit_gaussian(SQUARE, columns()).to_bayes_net()


def test_questions() -> None:
    net = fit_gaussian(SQUARE, columns())
    assert net.separated("x0", "x2", given=["x1", "x3"])
    assert net.marginals()["x1"].mean == pytest.approx(float(net.mean[1]))
    assert net.most_probable({"x0": 4.0})["x1"] == pytest.approx(net.query("x1", given={"x0": 4.0}).mean)
    rows = {name: x[:3].tolist() for name, x in columns().items()}
    rows["x2"] = [None, 1.0, None]
    full = net.impute(rows)
    theta, m = net.precision, net.mean
    others = [0, 1, 3]
    off = np.array([rows[f"x{j}"][0] for j in others]) - m[others]
    assert full["x2"][0] == pytest.approx(m[2] - theta[2, others] @ off / theta[2, 2])
    drawn = net.sample(20_000, seed=1)
    x = np.array([drawn[name].to_numpy() for name in net.names])
    np.testing.assert_allclose(np.cov(x), net.covariance, atol=0.06)
    assert net.sample(5, seed=1).equals(net.sample(5, seed=1))
    assert "x0" in net.to_dot()


def test_values() -> None:
    net = fit_gaussian(SQUARE, columns())
    copy = pickle.loads(pickle.dumps(net))
    assert copy == net
    assert copy.log_likelihood() == net.log_likelihood()
    assert net != fit_gaussian(CHAIN, columns())
    assert list(net) == ["x0", "x1", "x2", "x3"]
    assert "x1" in net
    assert len(net) == 4
    assert "x0 -- x1" in repr(net)
    assert "<table>" in net._repr_html_()
    with pytest.raises(ValueError, match="read-only"):
        net.precision[0, 0] = 1.0


def test_moments_are_all_that_is_needed() -> None:
    names = tuple(f"x{j}" for j in range(4))
    halves = [sf.scan({n: x[part] for n, x in columns().items()}) for part in (slice(0, 25), slice(25, None))]
    both = sum(half.gather([sf.statistics.Request((), names)]) for half in halves)
    here = fit_gaussian(SQUARE, columns())
    for data in (both, both.moments((), names)):
        np.testing.assert_allclose(fit_gaussian(SQUARE, data).precision, here.precision, rtol=1e-8)
    far = {n: x * 1e-3 + 1e6 for n, x in columns().items()}
    assert fit_gaussian(SQUARE, far).partial_correlations == pytest.approx(here.partial_correlations, rel=1e-5)


def test_a_sparse_graph_needs_only_rows_for_its_cliques() -> None:
    wide = columns(12, 5)
    wide = {f"x{j:02d}": x for j, x in enumerate(wide.values())}
    line = Graph([(f"x{j:02d}", f"x{j + 1:02d}") for j in range(11)])
    net = fit_gaussian(line, wide)
    assert net.df == 55
    assert net.deviance == float("inf")


@pytest.mark.parametrize(
    ("graph", "data", "match"),
    [
        (CHAIN, {**columns(), "x2": np.full(60, 1.5)}, "all values of 'x2' are the same"),
        (CHAIN, {**columns(), "x3": 2 * columns()["x0"]}, "'x0' and 'x3' have a correlation of ±1"),
        (
            Graph("x0 -- x1 -- x2 -- x0; x3"),
            {**columns(), "x2": columns()["x0"] - columns()["x1"]},
            "'x2' is a linear function of 'x0', 'x1'.*infinite",
        ),
        (Graph.complete(columns()), {n: x[:4] for n, x in columns().items()}, "4 rows are too few.*GraphicalLasso"),
        (CHAIN, {"x0": [1.5, 2.5]}, "no column 'x1'"),
        (CHAIN, {**columns(), "x1": [None, *columns()["x1"][1:]]}, "missing"),
        (CHAIN, sf.scan({"x0": columns()["x0"]}).gather([sf.statistics.Request((), ("x0",))]), "do not speak of 'x1'"),
    ],
)
def test_data_that_has_no_estimate(graph: Graph, data: Any, match: str) -> None:
    with pytest.raises(sf.SufficeError, match=match):
        fit_gaussian(graph, data)


@pytest.mark.parametrize(
    ("graph", "precision", "mean", "match"),
    [
        ("a -- b", [[1.0]], None, "2 by 2"),
        ("a -- b", [[1.0, 0.5], [0.4, 1.0]], None, "symmetric"),
        ("a -- b", [[1.0, 2.0], [2.0, 1.0]], None, "positive definite"),
        ("a; b", [[1.0, 0.5], [0.5, 1.0]], None, "no edge"),
        ("a -- b", [[1.0, np.nan], [np.nan, 1.0]], None, "finite"),
        ("a -- b", np.eye(2), [0.0], "mean of 2"),
    ],
)
def test_numbers_that_make_no_network(graph: Any, precision: Any, mean: Any, match: str) -> None:
    with pytest.raises(sf.SufficeError, match=match):
        sf.undirected.GaussianMarkovNet(graph, precision, mean)


def test_a_network_that_was_written_down_has_no_rows() -> None:
    with pytest.raises(sf.SufficeError, match="not fitted from data"):
        sf.undirected.GaussianMarkovNet("a -- b", np.eye(2)).bic()


def test_fit_takes_a_graph_of_real_columns() -> None:
    net = sf.fit("x0 -- x1 -- x2 -- x3 -- x0", columns())
    assert net == fit_gaussian(SQUARE, columns())
    names = tuple(f"x{j}" for j in range(4))
    statistics = sf.scan(columns()).gather([sf.statistics.Request((), names)])
    assert sf.fit(SQUARE, statistics) == sf.fit(SQUARE, statistics.moments((), names)) == net
    assert sf.score(SQUARE, columns(), sf.BIC()) == pytest.approx(net.bic())
    for option in ({"penalty": sf.L1(0.1)}, {"prior": sf.NormalInverseGamma()}, {"objective": sf.MaxEntropy()}):
        with pytest.raises(sf.SufficeError, match="not for graphs of real columns"):
            sf.fit(SQUARE, columns(), **option)
    assert sf.fit(net, columns()) == net
    with pytest.raises(sf.SufficeError, match="'x1' is Real"):
        sf.fit(SQUARE, {**columns(), "x0": ["u", "v"] * 30})
