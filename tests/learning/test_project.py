"""M-projections: against enumeration, closed forms and perturbed parameters; entropies of what is left of a network."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal, poisson

import suffice as sf
from suffice.errors import FitError, MissingCells, ModelError, SufficeError
from suffice.learning.graph_score import Projection, project
from suffice.models.questions.expected import Expected, entropy_terms
from suffice.numerics.exponential import Poisson
from suffice.statistics.counts import RowFormula
from tests import hybrid_oracles, oracles

seeds = st.integers(0, 10**6)


def array(bn: sf.BayesNet, names: Any = None) -> Any:
    """The joint of a small finite network as an array, what is not named summed out."""
    nodes = bn.dag.nodes
    full = np.array(list(oracles.joint(bn).values())).reshape([bn.variables[n].n_states for n in nodes])
    names = list(nodes if names is None else names)
    summed = full.sum(axis=tuple(i for i, n in enumerate(nodes) if n not in names))
    left = [n for n in nodes if n in names]
    return np.transpose(summed, [left.index(n) for n in names])


def divergence(p: Any, q: Any) -> float:
    held = p > 0
    return float(p[held] @ np.log(p[held] / q[held]))


def entropy(p: Any) -> float:
    return -float(p[p > 0] @ np.log(p[p > 0]))


def perturbed(bn: sf.BayesNet, seed: int) -> sf.BayesNet:
    rng = np.random.default_rng(seed)
    tables = {n: bn[n].probs * np.exp(0.1 * rng.standard_normal(bn[n].probs.shape)) for n in bn}
    return sf.BayesNet(bn.dag, {n: t / t.sum(-1, keepdims=True) for n, t in tables.items()}, bn.variables)


@settings(max_examples=40, deadline=None)
@given(seeds, st.booleans())
def test_a_finite_projection_is_enumeration(seed: int, zeros: bool) -> None:
    p = oracles.random_net(seed, 4, zeros)
    rng = np.random.default_rng(seed + 1)
    dag = oracles.random_dag(rng, list(p.dag.nodes))
    found = project(p, dag)
    P, Q = array(p), array(found.model, p.dag.nodes)
    assert found.kl == pytest.approx(divergence(P, Q), abs=1e-12)
    assert found.entropy == pytest.approx(entropy(P), abs=1e-12)
    assert found.cross_entropy == pytest.approx(found.entropy + found.kl, abs=1e-12)
    assert found.kl == pytest.approx(sf.information.kl(p, found.model), abs=1e-12)
    for n in dag.nodes:
        family = array(p, [*dag.parents(n), n])
        given = family.sum(axis=-1, keepdims=True)
        held = np.broadcast_to(given > 0, family.shape)
        assert np.allclose(found.model[n].probs[held], (family / np.where(given > 0, given, 1.0))[held], atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_no_other_parameters_are_nearer(seed: int) -> None:
    """KL(p‖r) = KL(p‖q) + Σᵢ E_p[KL(qᵢ‖rᵢ)], family by family, for every r of the graph."""
    p = oracles.random_net(seed, 4)
    dag = oracles.random_dag(np.random.default_rng(seed + 1), list(p.dag.nodes))
    q = project(p, dag)
    for other in range(3):
        r = perturbed(q.model, other)
        more = 0.0
        for n in dag.nodes:
            weights = array(p, dag.parents(n))
            more += float(np.sum(weights * np.sum(q.model[n].probs * np.log(q.model[n].probs / r[n].probs), axis=-1)))
        assert sf.information.kl(p, r) == pytest.approx(q.kl + more, abs=1e-10)
        assert sf.information.kl(p, r) >= q.kl - 1e-12


@settings(max_examples=30, deadline=None)
@given(seeds, st.sampled_from(["n0 -> n1 -> n2; n1 -> n3", "n0 -> n1 -> n2; n0 -> n2 -> n3", "n3; n0 -> n1; n2"]))
def test_pythagoras_holds_where_all_parents_are_married(seed: int, graph: str) -> None:
    """Only there has q the same joint of each family as p, and so KL(p‖r) = KL(p‖q) + KL(q‖r)."""
    p = oracles.random_net(seed, 4)
    q = project(p, graph)
    for other in range(3):
        r = perturbed(q.model, other)
        assert sf.information.kl(p, r) == pytest.approx(q.kl + sf.information.kl(q.model, r), abs=1e-10)


@settings(max_examples=30, deadline=None)
@given(seeds, st.booleans())
def test_the_divergence_is_the_information_that_the_graph_leaves_out(seed: int, zeros: bool) -> None:
    """KL = Σ I_p(xᵢ; earlier | parents), for any order of the graph."""
    p = oracles.random_net(seed, 4, zeros)
    dag = oracles.random_dag(np.random.default_rng(seed + 1), list(p.dag.nodes))
    total = 0.0
    for i, n in enumerate(dag.topological_order):
        before, parents = list(dag.topological_order[:i]), list(dag.parents(n))
        h = {names: entropy(array(p, names)) for names in (tuple(parents), (*parents, n), tuple(before), (*before, n))}
        total += (h[(*parents, n)] - h[tuple(parents)]) - (h[(*before, n)] - h[tuple(before)])
    assert project(p, dag).kl == pytest.approx(total, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_onto_its_own_graph_or_a_larger_one_it_comes_back(seed: int) -> None:
    p = oracles.random_net(seed, 4, zeros=seed % 2 == 0)
    own = project(p, p.dag)
    assert own.kl == 0.0
    assert own.model == p
    order = p.dag.topological_order
    larger = project(p, sf.Dag(list(itertools.combinations(order, 2)), nodes=order))
    assert larger.kl == pytest.approx(0.0, abs=1e-12)
    assert np.allclose(array(larger.model, order), array(p, order), atol=1e-12)


def test_parents_in_another_order_are_the_same_family() -> None:
    p = hybrid_oracles.random_hybrid(3, 3, 4, density=1.0)
    turned = sf.Dag({n: tuple(reversed(p.dag.parents(n))) for n in p.dag.nodes})
    found = project(p, turned)
    assert found.kl == 0.0
    assert found.model == p
    assert all(found.model[n].parents == tuple(reversed(p.dag.parents(n))) for n in p.dag.nodes)


def test_edges_of_a_tree_bring_it_nearer_and_chow_liu_is_the_nearest() -> None:
    p = oracles.random_tables(
        np.random.default_rng(5), sf.Dag("a -> b; a -> c; b -> d; c -> d"), {n: sf.Finite(n, ["0", "1", "2"]) for n in "abcd"}
    )
    nodes, left = list("abcd"), [project(p, sf.Dag([], nodes=list("abcd"))).kl]
    tree = sf.search(p.sample(50_000, seed=0), method=sf.methods.ChowLiu()).dag
    for k in range(1, len(tree.edges) + 1):
        left.append(project(p, sf.Dag(tree.edges[:k], nodes=nodes)).kl)
    assert all(a > b for a, b in itertools.pairwise(left))
    trees = (
        sf.Dag([("a", "b"), *rest], nodes=nodes)
        for rest in ([("a", "c"), ("a", "d")], [("b", "c"), ("c", "d")], [("b", "d"), ("d", "c")], [("b", "c"), ("b", "d")])
    )
    assert left[-1] <= min(project(p, t).kl for t in trees) + 1e-12


def test_what_p_rules_out_is_flagged_and_counts_for_nothing() -> None:
    x, y, z = (sf.Finite(n, ["no", "yes"]) for n in "xyz")
    p = sf.BayesNet("x -> y; x -> z", {"x": [1.0, 0.0], "y": [[0.5, 0.5], [0.1, 0.9]], "z": [[0.25, 0.75], [1, 0]]}, [x, y, z])
    found = project(p, "x -> z -> y; x -> y")
    assert found.model["y"].parents == ("z", "x")
    assert found.model["y"].unsupported.tolist() == [[False, True], [False, True]]
    assert np.allclose(found.model["y"].probs[:, 1], 0.5)
    assert found.kl == pytest.approx(0.0, abs=1e-15)


@settings(max_examples=40, deadline=None)
@given(seeds, st.booleans())
def test_nodes_outside_the_graph_are_summed_out(seed: int, zeros: bool) -> None:
    p = oracles.random_net(seed, 5, zeros)
    rng = np.random.default_rng(seed + 1)
    some = sorted(rng.permutation(p.dag.nodes)[:3].tolist())
    dag = oracles.random_dag(rng, some)
    found = project(p, dag)
    P, Q = array(p, some), array(found.model, some)
    assert found.entropy == pytest.approx(entropy(P), abs=1e-12)
    assert found.kl == pytest.approx(divergence(P, Q), abs=1e-12)


def test_a_large_network_keeps_its_entropy_when_little_is_summed_out() -> None:
    """The joint of 30 nodes of ALARM has far too many cells; the chain rule needs only small tables."""
    alarm = sf.load("alarm")
    whole = project(alarm, alarm.dag)
    assert whole.kl == 0.0
    assert whole.entropy == pytest.approx(alarm.entropy(), rel=1e-14)
    assert whole.model == alarm
    hidden = {"LVFAILURE", "VENTTUBE", "ERRLOWOUTPUT", "PAP"}
    terms = entropy_terms(alarm, set(alarm) - hidden)
    total = sum(t.entropy for t in terms.values())
    rows = alarm.sample(2_000, seed=0).drop_columns(sorted(hidden)).to_pylist()
    each = np.array([alarm.log_prob_of(row) for row in rows])
    assert abs(total + each.mean()) < 5 * each.std() / np.sqrt(len(each))


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_a_gaussian_projection_is_the_closed_form(seed: int) -> None:
    p = hybrid_oracles.random_hybrid(seed, 0, 5)
    dag = oracles.random_dag(np.random.default_rng(seed + 1), list(p.dag.nodes))
    found = project(p, dag)
    names, m_p, S_p = hybrid_oracles.gaussian(p, {})
    order, m, S = hybrid_oracles.gaussian(found.model, {})
    at = [order.index(n) for n in names]
    m_q, S_q = m[at], S[np.ix_(at, at)]
    assert np.allclose(m_q, m_p, atol=1e-9)
    logs = [np.linalg.slogdet(s)[1] for s in (S_q, S_p)]
    assert found.kl == pytest.approx(0.5 * (np.trace(np.linalg.solve(S_q, S_p)) - 5 + logs[0] - logs[1]), rel=1e-6, abs=1e-9)
    assert found.entropy == pytest.approx(multivariate_normal(m_p, S_p, allow_singular=True).entropy(), rel=1e-9)
    for n in dag.nodes:
        i, parents = names.index(n), [names.index(q) for q in dag.parents(n)]
        b = np.linalg.solve(S_p[np.ix_(parents, parents)], S_p[parents, i])
        assert np.allclose(found.model[n].coefficients, b, rtol=1e-6, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_reals_that_are_summed_out_leave_a_gaussian(seed: int) -> None:
    p = hybrid_oracles.random_hybrid(seed, 2, 4)
    finite = [n for n in p.dag.nodes if n.startswith("u")]
    some = sorted(np.random.default_rng(seed).permutation([n for n in p.dag.nodes if n.startswith("x")])[:2].tolist())
    want = 0.0
    for part in hybrid_oracles.parts(p, {}):
        t = [part.names.index(n) for n in some]
        covariance = part.covariance[np.ix_(t, t)]
        want += part.weight * (0.5 * np.linalg.slogdet(2 * np.pi * np.e * covariance)[1] - np.log(part.weight))
    found = project(p, sf.Dag([], nodes=[*finite, *some]))
    assert found.entropy == pytest.approx(want, rel=1e-8, abs=1e-8)


@settings(max_examples=15, deadline=None)
@given(seeds)
def test_a_hybrid_projection_has_the_moments_of_p(seed: int) -> None:
    p = hybrid_oracles.random_hybrid(seed, 2, 3, zeros=seed % 2 == 0)
    rng = np.random.default_rng(seed + 1)
    finite, real = (list(rng.permutation([n for n in p.dag.nodes if n.startswith(k)])) for k in "ux")
    order = [*finite, *real]
    edges = [(a, b) for a, b in itertools.combinations(order, 2) if rng.random() < 0.5]
    found = project(p, sf.Dag(edges, nodes=order))
    for child in real:
        parents = [n for n in found.model.dag.parents(child) if n in finite]
        numbers = [n for n in found.model.dag.parents(child) if n in real]
        for states in itertools.product(*(p.variables[n].states for n in parents)):
            given = dict(zip(parents, states, strict=True))
            if hybrid_oracles.probability(p, given) == 0:
                continue
            mean, S = hybrid_oracles.real_moments(p, [*numbers, child], given)
            u = tuple(p.variables[n].code(s) for n, s in given.items())
            cpd = found.model[child]
            b = np.linalg.solve(S[:-1, :-1], S[:-1, -1])
            assert np.allclose(cpd.coefficients[u], b, rtol=1e-6, atol=1e-7)
            assert cpd.intercept[u] == pytest.approx(mean[-1] - b @ mean[:-1], rel=1e-6, abs=1e-6)
            assert cpd.variance[u] == pytest.approx(S[-1, -1] - b @ S[:-1, -1], rel=1e-6)
    assert found.kl == pytest.approx(sf.information.kl(p, found.model), abs=1e-9)


def test_a_hybrid_divergence_is_what_samples_say() -> None:
    p = hybrid_oracles.random_hybrid(11, 2, 3, density=0.9)
    found = project(p, sf.Dag([], nodes=p.dag.nodes))
    rows = p.sample(200_000, seed=1)
    each = p.log_prob(rows) - found.model.log_prob(rows)
    assert abs(each.mean() - found.kl) < 5 * each.std() / np.sqrt(len(each))


def test_a_mixture_has_no_entropy_but_a_projection_and_a_cross_entropy() -> None:
    u = sf.Finite("u", ["a", "b"])
    p = sf.BayesNet("u -> x", {"u": [0.5, 0.5], "x": sf.Gaussian([-3.0, 3.0], variance=[1.0, 1.0])}, [u])
    found = project(p, "x")
    assert found.model["x"].intercept == pytest.approx(0.0, abs=1e-15)
    assert found.model["x"].variance == pytest.approx(10.0)
    assert found.cross_entropy == pytest.approx(0.5 * np.log(2 * np.pi * np.e * 10.0))
    assert found.kl is None
    assert found.entropy is None
    assert "mixture over 'u'" in found.reason
    assert "unknown" in repr(found)


def test_a_mean_of_1e9_loses_no_digits() -> None:
    p = sf.BayesNet("x -> y", {"x": sf.Gaussian(1e9), "y": sf.Gaussian(1e9, {"x": 1.0}, 1.0)})
    found = project(p, "y -> x")
    assert found.model["x"].coefficients[0] == pytest.approx(0.5, rel=1e-12)
    assert found.model["x"].variance == pytest.approx(0.5, rel=1e-12)
    assert found.kl == pytest.approx(0.0, abs=1e-14)


def test_counts_are_projected_to_their_mean_rates() -> None:
    ill = sf.Finite("ill", ["no", "yes"])
    cpds = {"ill": [0.75, 0.25], "visits": sf.regressions.Rates([0.5, 3.0]), "cost": sf.Gaussian(1.0, {"visits": 2.0}, 0.5)}
    p = sf.BayesNet("ill -> visits -> cost", cpds, [ill])
    found = project(p, sf.Dag([("ill", "cost")], nodes=["ill", "visits", "cost"]))
    assert found.model["visits"].rates == pytest.approx(0.75 * 0.5 + 0.25 * 3.0)
    assert np.allclose(found.model["cost"].intercept, [2.0, 7.0])
    assert np.allclose(found.model["cost"].variance, [4 * 0.5 + 0.5, 4 * 3.0 + 0.5])
    rows = p.sample(200_000, seed=0)
    each = p.log_prob(rows) - found.model.log_prob(rows)
    assert abs(each.mean() - found.kl) < 5 * each.std() / np.sqrt(len(each))
    assert abs(-p.log_prob(rows).mean() - found.entropy) < 5 * p.log_prob(rows).std() / np.sqrt(len(each))
    assert found.entropy == pytest.approx(p.entropy())
    assert sf.information.kl(p, found.model) == pytest.approx(found.kl)


@pytest.mark.parametrize("rate", [0.0, 1e-8, 0.3, 7.0, 123.4, 9_999.0, 10_001.0, 1e7])
def test_the_entropy_of_a_count(rate: float) -> None:
    n = np.arange(max(0, int(rate - 15 * np.sqrt(rate) - 50)), int(rate + 15 * np.sqrt(rate) + 50))
    log_p = poisson.logpmf(n, rate) if rate else np.where(n == 0, 0.0, -np.inf)
    p = np.exp(log_p)
    want = -float(p[p > 0] @ log_p[p > 0])
    assert Poisson([rate, 3.0, rate]).entropy()[2] == pytest.approx(want, rel=1e-8, abs=1e-12)
    assert sf.results.PoissonRates(sf.Count("n"), (), rate).mean_of(RowFormula("n", "ln x!")) >= 0


def test_data_is_projected_by_maximum_likelihood() -> None:
    """ℓ = −N [H(P̂) + KL(P̂‖q)]."""
    p = oracles.random_net(4, 4)
    rows = p.sample(500, seed=0)
    dag = oracles.random_dag(np.random.default_rng(9), list(p.dag.nodes), 0.3)
    found = project(rows, dag)
    assert found.model == sf.fit(dag, rows)
    assert found.model.log_likelihood(rows) == pytest.approx(-500 * (found.entropy + found.kl), rel=1e-12)
    assert found.entropy == pytest.approx(sf.information.entropy(rows), rel=1e-14)
    assert found.kl == pytest.approx(sf.information.kl(rows, found.model), abs=1e-12)
    shares = np.array(list(rows.group_by(rows.column_names).aggregate([([], "count_all")])["count_all"].to_pylist())) / 500
    assert found.entropy == pytest.approx(-float(shares @ np.log(shares)), rel=1e-12)


def test_weights_repeat_rows_and_a_part_of_the_columns_is_enough() -> None:
    rows = {"x": ["a", "b", "b"], "y": ["u", "u", "v"], "n": [3.0, 1.0, 2.0], "other": [1.5, 2.5, 3.5]}
    repeated = {"x": [*"aaab", "b", "b"], "y": [*"uuuu", "v", "v"]}
    weighted, plain = project(sf.scan(rows, weights="n"), "x; y"), project(repeated, "x; y")
    assert weighted.kl == pytest.approx(plain.kl, rel=1e-12)
    assert weighted.entropy == pytest.approx(plain.entropy, rel=1e-12)


def test_statistics_are_projected_and_the_entropy_is_known_where_they_hold_whole_rows() -> None:
    rows = oracles.random_net(4, 3).sample(300, seed=0)
    nodes = rows.column_names
    parts = project(sf.gather(rows, sf.Dag([], nodes=nodes)), sf.Dag([], nodes=nodes))
    assert parts.kl is None
    assert "whole row" in parts.reason
    whole = project(sf.scan(rows).gather([sf.statistics.Request(tuple(nodes))]), sf.Dag([], nodes=nodes))
    assert whole.kl == pytest.approx(project(rows, sf.Dag([], nodes=nodes)).kl, abs=1e-12)
    assert whole.cross_entropy == pytest.approx(parts.cross_entropy, rel=1e-12)


def test_real_columns_have_a_cross_entropy_only() -> None:
    rows = oracles.random_rows(0)
    found = project(rows, "u -> x -> y")
    assert found.kl is None
    assert found.cross_entropy == pytest.approx(-np.mean(found.model.log_prob(rows)))
    assert "real" in found.reason


def test_counts_in_data_are_rows_like_any() -> None:
    rows = {"n": [0, 1, 1, 3], "x": ["a", "b", "a", "b"]}
    data = sf.scan(rows, variables={"n": sf.Count})
    found = project(data, "x -> n")
    assert found.entropy == pytest.approx(np.log(4))
    assert found.model.log_likelihood(data) == pytest.approx(-4 * (found.entropy + found.kl))


def test_rows_on_disk_have_the_entropy_of_rows_in_memory(tmp_path: Any) -> None:
    import pyarrow.parquet as parquet

    rows = sf.load("asia").sample(50_000, seed=0)
    parquet.write_table(rows, tmp_path / "asia.parquet")
    a, b = project(rows, "smoke -> lung"), project(tmp_path / "asia.parquet", "smoke -> lung")
    assert a.kl == b.kl
    assert a.entropy == b.entropy


def test_too_many_distinct_rows_are_refused_before_they_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.engines.data.MAX_BYTES", 100_000)
    rng = np.random.default_rng(0)
    rows = {n: rng.integers(0, 50, 40_000).astype(str) for n in "abcde"}
    with pytest.raises(SufficeError, match="distinct rows"):
        sf.information.entropy(rows)
    assert project(rows, "a -> b; c; d; e").kl is None


def test_what_is_refused() -> None:
    p = oracles.random_net(0, 3)
    with pytest.raises(ModelError, match="did you mean 'n0'"):
        project(p, "n00 -> n1")
    with pytest.raises(SufficeError, match="no nodes"):
        project(p, sf.Dag([]))
    with pytest.raises(MissingCells, match="em"):
        project({"x": ["a", None, "b"]}, "x")
    with pytest.raises(SufficeError):
        project(3, "x")
    hybrid = hybrid_oracles.random_hybrid(0, 1, 2)
    with pytest.raises(FitError, match="x0"):
        project(hybrid, "x0 -> u0")
    tight = sf.BayesNet("x -> y", {"x": sf.Gaussian(0.0, variance=1e8), "y": sf.Gaussian(0.0, {"x": 1.0}, 1e-8)})
    with pytest.raises(FitError, match="up to rounding"):
        project(tight, "y -> x")
    assert project(tight, "x -> y").model == tight
    many = [sf.Finite(f"u{i}", ["a", "b"]) for i in range(20)]
    cpds: dict[str, Any] = {v.name: [0.5, 0.5] for v in many}
    cpds |= {f"x{i}": sf.Gaussian([0.0, 1.0], {f"x{i - 1}": [1.0, 1.0]} if i else {}, [1.0, 1.0]) for i in range(20)}
    edges = [(f"u{i}", f"x{i}") for i in range(20)] + [(f"x{i - 1}", f"x{i}") for i in range(1, 20)]
    chain = sf.BayesNet(edges, cpds, many)
    assert project(chain, chain.dag).kl == 0.0
    with pytest.raises(SufficeError, match="1,048,576 configurations"):
        project(chain, "x19")


def test_regressions_are_projected_where_their_expectations_have_a_formula() -> None:
    rows = oracles.random_rows(0)
    p = sf.fit("u -> x; x -> w; u -> w", rows, families={"w": sf.Logistic(ridge=1.0)})
    assert project(p, "u -> x").kl == 0.0
    assert project(p, "x").model["x"].variance > 0
    for graph in (p.dag, "w", "u -> w"):
        with pytest.raises(ModelError, match=r"'w'.*logistic regression"):
            project(p, graph)
    on_states = sf.fit("u -> w", rows, families={"w": sf.Logistic(ridge=1.0)})
    found = project(on_states, "w -> u")
    assert found.kl == pytest.approx(0.0, abs=1e-12)
    assert np.allclose(found.model.query("w").probs, on_states.query("w").probs)


def test_a_projection_is_a_model_like_any() -> None:
    p = oracles.random_net(2, 4)
    found = project(p, sf.Dag([], nodes=p.dag.nodes))
    assert isinstance(found, Projection)
    again = pickle.loads(pickle.dumps(found))
    assert again.model == found.model
    assert "projected from a network of 4 nodes" in found.model.fit_info
    assert found.model.sample(3, seed=0).num_rows == 3
    assert "KL(p‖model)" in found._repr_html_()
    with pytest.raises(SufficeError, match="keeps no statistics"):
        found.model.update(p.sample(5, seed=0))


def test_expected_statistics_are_what_many_rows_give() -> None:
    p = hybrid_oracles.random_hybrid(5, 2, 3)
    rows, n = p.sample(100_000, seed=0), 100_000
    seen = sf.gather(rows, p.dag)
    for request in seen.requests:
        want, got = seen.answer(request), Expected(p).answer(request)
        if isinstance(want, sf.statistics.Counts):
            assert np.allclose(want.dense() / n, got.dense(), atol=0.01)
        else:
            assert np.allclose(want.at(got.keys).mean, got.mean, atol=0.3)
