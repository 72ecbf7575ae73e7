"""Networks: written by hand, asked, drawn from, compared."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import DataError, FitError, ModelError, TooLarge
from suffice.models.questions.expected import marginal
from tests import oracles

seeds = st.integers(0, 2**32 - 1)
X, Y = sf.Finite("x", ["no", "yes"]), sf.Finite("y", ["a", "b", "c"])
SMALL = {"x": [0.25, 0.75], "y": [[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]]}


def small() -> sf.BayesNet:
    return sf.BayesNet("x -> y", SMALL, [X, Y])


def hybrid() -> sf.BayesNet:
    return sf.BayesNet(
        "x -> r; r -> s; x -> s",
        {
            "x": [0.25, 0.75],
            "r": sf.Gaussian([0.0, 3.0], variance=[1.0, 2.0]),
            "s": sf.Gaussian([1.0, -1.0], {"r": [2.0, 0.5]}, [0.5, 0.25]),
        },
        [X],
    )


@settings(max_examples=40, deadline=None)
@given(seeds, st.booleans())
def test_elimination_is_enumeration(seed: int, zeros: bool) -> None:
    bn = oracles.random_net(seed, 5, zeros)
    full = oracles.joint(bn)
    nodes = bn.dag.nodes
    keep = list(np.random.default_rng(seed).permutation(nodes)[:2])
    got = marginal(bn, keep)
    want = np.zeros(got.shape)
    for states, p in full.items():
        want[tuple(bn.variables[k].code(states[nodes.index(k)]) for k in keep)] += p
    assert np.allclose(got, want, atol=1e-14)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_entropy_and_divergence_are_enumeration(seed: int) -> None:
    p = oracles.random_net(seed, 4)
    rng = np.random.default_rng(seed + 1)
    q = oracles.random_tables(rng, oracles.random_dag(rng, list(p.dag.nodes)), p.variables)
    P, Q = (np.array(list(oracles.joint(b).values())) for b in (p, q))
    assert p.entropy() == pytest.approx(-(P @ np.log(P)), abs=1e-12)
    assert sf.information.kl(p, q) == pytest.approx(P @ np.log(P / Q), abs=1e-12)
    assert sf.information.kl(p, p) == 0.0


def test_divergence_is_infinite_where_the_other_rules_out() -> None:
    p = sf.BayesNet("x", {"x": [0.5, 0.5]}, [X])
    q = sf.BayesNet("x", {"x": [1.0, 0.0]}, [X])
    assert sf.information.kl(p, q) == np.inf
    assert sf.information.kl(q, p) == pytest.approx(np.log(2))


def test_divergence_does_not_mind_the_order_of_states() -> None:
    p = small()
    turned = sf.BayesNet(
        "x -> y",
        {"x": [0.75, 0.25], "y": np.array(SMALL["y"])[::-1, [2, 0, 1]]},
        [sf.Finite("x", ["yes", "no"]), sf.Finite("y", ["c", "a", "b"])],
    )
    assert sf.information.kl(p, turned) == pytest.approx(0.0, abs=1e-15)


def test_hybrid_divergence_is_what_samples_say() -> None:
    p = hybrid()
    q = sf.fit("x -> r; x -> s", p.sample(2000, seed=1))
    rows = p.sample(400_000, seed=2)
    estimate = p.log_prob(rows) - q.log_prob(rows)
    error = estimate.std() / np.sqrt(len(estimate))
    assert abs(sf.information.kl(p, q) - estimate.mean()) < 5 * error
    assert abs(p.entropy() + p.log_prob(rows).mean()) < 5 * p.log_prob(rows).std() / np.sqrt(len(estimate))
    assert sf.information.kl(p, p) == pytest.approx(0.0, abs=1e-12)


def test_gaussian_divergence_is_the_closed_form() -> None:
    p = sf.BayesNet("r -> s", {"r": sf.Gaussian(1.0, variance=2.0), "s": sf.Gaussian(0.5, {"r": -1.0}, 3.0)})
    q = sf.BayesNet("s -> r", {"s": sf.Gaussian(0.0, variance=1.5), "r": sf.Gaussian(0.0, {"s": 0.25}, 1.0)})
    m_p, S_p = np.array([1.0, -0.5]), np.array([[2.0, -2.0], [-2.0, 5.0]])
    m_q, S_q = np.zeros(2), np.array([[0.25**2 * 1.5 + 1.0, 0.25 * 1.5], [0.25 * 1.5, 1.5]])
    inverse, d = np.linalg.inv(S_q), m_q - m_p
    want = 0.5 * (np.trace(inverse @ S_p) + d @ inverse @ d - 2 + np.log(np.linalg.det(S_q) / np.linalg.det(S_p)))
    assert sf.information.kl(p, q) == pytest.approx(want, rel=1e-12)
    assert p.entropy() == pytest.approx(0.5 * np.log(np.linalg.det(2 * np.pi * np.e * S_p)), rel=1e-12)


def test_data_as_a_distribution() -> None:
    """Maximum likelihood is the projection: KL(data‖q) = cross-entropy − entropy, least at the fit, 0 for a full graph."""
    rows = small().sample(500, seed=0)
    full = sf.fit("x -> y", rows)
    assert sf.information.kl(rows, full) == pytest.approx(0.0, abs=1e-12)
    loose = sf.fit("x; y", rows)
    assert sf.information.kl(rows, loose) == pytest.approx(loose.cross_entropy(rows) - sf.information.entropy(rows), rel=1e-12)
    assert sf.information.kl(rows, small()) > 0


def test_samples_have_the_right_frequencies_whatever_the_threads(monkeypatch) -> None:
    bn = oracles.random_net(7, 5)
    rows = bn.sample(200_000, seed=3)
    fitted = sf.fit(bn.dag, rows)
    assert max(np.abs(marginal(fitted, [n]) - marginal(bn, [n])).max() for n in bn) < 0.01
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert bn.sample(200_000, seed=3).equals(rows)
    assert not bn.sample(200_000, seed=4).equals(rows)
    assert bn.sample(0).num_rows == 0


def test_samples_of_hybrid_networks() -> None:
    bn = sf.fit("x -> r; x -> s; r -> s", hybrid().sample(200_000, seed=5))
    assert bn["s"].intercept == pytest.approx([1.0, -1.0], abs=0.02)
    assert bn["s"].coefficients[:, 0] == pytest.approx([2.0, 0.5], abs=0.02)
    assert bn["r"].variance == pytest.approx([1.0, 2.0], rel=0.02)


def test_many_states_and_one_state() -> None:
    wide = sf.Finite("w", [f"s{i}" for i in range(300)])
    bn = sf.BayesNet("w; one", {"w": np.full(300, 1 / 300), "one": [1.0]}, [wide, sf.Finite("one", ["only"])])
    rows = bn.sample(3000, seed=0)
    assert set(rows["one"].to_pylist()) == {"only"}
    assert len(set(rows["w"].to_pylist())) > 290
    assert np.allclose(bn.log_prob(rows), -np.log(300))


def test_frames_of_tables_make_the_network_again() -> None:
    bn = small()
    again = sf.BayesNet("x -> y", {n: bn[n].to_frame() for n in bn}, [X, Y])
    assert again == bn
    assert list(bn["y"].to_frame().columns) == ["x", "y", "probability"]


@pytest.mark.parametrize(
    ("cpds", "variables", "message"),
    [
        ({"x": [0.5, 0.6], "y": SMALL["y"]}, [X, Y], "'x' sum to 1.1"),
        ({"x": [1.5, -0.5], "y": SMALL["y"]}, [X, Y], "'x' are not all probabilities"),
        ({"x": [0.5, float("nan")], "y": SMALL["y"]}, [X, Y], "'x' are not all probabilities"),
        ({"x": [0.5, 0.5], "y": [0.1, 0.2, 0.7]}, [X, Y], r"'y' needs the shape \(2, 3\)"),
        ({"x": [0.5, 0.5]}, [X, Y], "no distribution for the node 'y'"),
        ({**SMALL, "z": [1.0]}, [X, Y], "no node 'z'"),
        (SMALL, [X], "states of 'y' are not known"),
        ({"x": [0.5, 0.5], "y": sf.Gaussian()}, [X, Y], "finite and needs a table"),
        ({"x": [0.5, "a"], "y": SMALL["y"]}, [X, Y], "must be numbers"),
        ({"x": [0.25, 0.75], "y": [[0.1, 0.2, 0.7], [0.5, 0.4, 0.0]]}, [X, Y], "'y' at x='yes' sum to 0.9"),
    ],
)
def test_networks_that_cannot_be(cpds, variables, message) -> None:
    with pytest.raises(ModelError, match=message):
        sf.BayesNet("x -> y", cpds, variables)


def test_sums_that_are_nearly_one_are_scaled_with_a_note() -> None:
    with pytest.warns(sf.SufficeNote, match="'x'"):
        bn = sf.BayesNet("x", {"x": [0.5, 0.4999995]}, [X])
    assert bn["x"].probs.sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize(
    ("graph", "variables", "message"),
    [
        ("z -> y", [sf.Finite("z", ["no", "yes"]), Y], r"p\(y | x\)"),
        ("x; y", [X, Y], "parents"),
        ("x -> y", [sf.Finite("x", ["yes", "no"]), Y], "over Finite"),
    ],
)
def test_distributions_of_other_networks_must_fit(graph, variables, message) -> None:
    roots = {v.name: [0.5, 0.5] for v in variables if v.name != "y"}
    with pytest.raises(ModelError, match=message):
        sf.BayesNet(graph, {**roots, "y": small()["y"]}, variables)


def test_gaussians_that_cannot_be() -> None:
    with pytest.raises(ModelError, match="positive"):
        sf.BayesNet("r", {"r": sf.Gaussian(variance=0.0)})
    with pytest.raises(ModelError, match="coefficients"):
        sf.BayesNet("r -> s", {"r": sf.Gaussian(), "s": sf.Gaussian()})
    with pytest.raises(ModelError, match="shape"):
        sf.BayesNet("x -> r", {"x": [0.5, 0.5], "r": sf.Gaussian([1.0, 2.0, 3.0])}, [X])


def test_a_table_too_large_is_refused_before_allocation() -> None:
    parents = [f"p{i}" for i in range(40)]
    variables = [sf.Finite(p, ["a", "b"]) for p in [*parents, "c"]]
    with pytest.raises(TooLarge, match=r"GiB|TiB"):
        sf.BayesNet({"c": parents}, {**{p: [0.5, 0.5] for p in parents}, "c": [0.5, 0.5]}, variables)
    rows = {v.name: ["a", "b"] for v in variables}
    with pytest.raises(TooLarge, match="'c'"):
        sf.fit({"c": parents}, sf.scan(rows, variables=dict(zip([v.name for v in variables], variables, strict=True))))


def test_unknown_states_and_nodes_are_named() -> None:
    bn = small()
    with pytest.raises(DataError, match="'maybe'"):
        bn.log_prob({"x": ["no", "maybe"], "y": ["a", "a"]})
    with pytest.raises(ModelError, match="'z'"):
        bn["z"]
    with pytest.raises(ModelError, match="whole number"):
        bn.sample(-1)


def test_without_a_posterior_there_is_no_interval() -> None:
    with pytest.raises(FitError, match="prior"):
        sf.fit("x -> y", small().sample(100, seed=0))["y"].interval()
    with pytest.raises(ModelError, match="given by hand"):
        small().update({"x": ["no"], "y": ["a"]})


def test_networks_are_values() -> None:
    bn = sf.fit("x -> y", small().sample(100, seed=0), prior=sf.BDeu(1))
    assert pickle.loads(pickle.dumps(bn)) == bn
    with pytest.raises(ValueError, match="read-only"):
        bn["y"].probs[0] = 1.0
    assert "BayesNet of 2 nodes" in repr(bn)
    assert "<table>" in bn._repr_html_()
    assert "p(y | x)" in repr(bn["y"])
    assert "Gaussian" in repr(hybrid()["s"])


def test_bic_and_aic() -> None:
    rows = small().sample(1000, seed=0)
    bn = sf.fit("x -> y", rows)
    assert bn.bic(rows) == pytest.approx(sf.score("x -> y", rows, sf.BIC()))
    assert bn.bic() == pytest.approx(bn.log_likelihood() - 2.5 * np.log(1000))
    assert bn.aic() == pytest.approx(bn.log_likelihood() - 5)
