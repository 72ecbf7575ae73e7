"""Questions to conditional Gaussian networks: against enumeration, and what cannot be answered."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import ModelError, SufficeError, TooLarge
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.protocol.family import Interval
from suffice.incomplete import rows as inference_rows
from suffice.incomplete.rows import RowEvidence
from suffice.models.questions import exact
from suffice.models.questions.answers import Distribution
from suffice.models.questions.mixture import Mixture, NormalParts
from suffice.models.questions.question import evidence_codes
from suffice.models.rows.posteriors import by_densities
from suffice.numerics.inference.numbers import hybrid as inference_hybrid
from tests.hybrid_oracles import finite_posterior, highest, probability, random_given, random_hybrid, real_density, real_moments

seeds = st.integers(0, 2**32 - 1)
U = sf.Finite("u", ["a", "b"])
W = sf.Finite("w", ["p", "q", "r"])


def small() -> sf.BayesNet:
    """u → x → y ← u: the mixture of two lines."""
    return sf.BayesNet(
        "u -> x; x -> y; u -> y",
        {"u": [0.25, 0.75], "x": sf.Gaussian([0.0, 4.0], variance=[1.0, 4.0]), "y": sf.Gaussian([0.0, 1.0], {"x": [1.0, -1.0]})},
        [U],
    )


def hidden_of(bn: sf.BayesNet, known: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The finite and the real variables whose value is not given."""
    unknown = [n for n in bn.variables if not isinstance(known.get(n), (str, float))]
    finite = [n for n in unknown if isinstance(bn.variables[n], sf.Finite)]
    return finite, [n for n in unknown if n not in finite]


def network(seed: int) -> tuple[sf.BayesNet, dict[str, Any]]:
    bn = random_hybrid(seed, n_finite=seed % 4, n_real=1 + seed % 5, zeros=seed % 3 == 0)
    return bn, random_given(bn, seed)


@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_finite_targets_and_evidence_equal_enumeration(seed: int) -> None:
    bn, known = network(seed)
    evidence = evidence_codes(bn, known)
    assert exact.log_prob_of(bn, evidence) == pytest.approx(np.log(probability(bn, known)), rel=1e-10, abs=1e-10)
    finite, _ = hidden_of(bn, known)
    for targets in (finite[:1], finite[::-1][:2]):
        if targets:
            answer = exact.closed_answer(bn, targets, evidence)
            expected = finite_posterior(bn, targets, known)
            for key, p in expected.items():
                assert answer[key if len(targets) > 1 else key[0]] == pytest.approx(p, rel=1e-10, abs=1e-13)


@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_real_targets_equal_enumeration(seed: int) -> None:
    bn, known = network(seed)
    _, reals = hidden_of(bn, known)
    for targets in (reals[:1], reals[::-1][:3]):
        if targets:
            answer = bn.query(targets, known)
            mean, covariance = real_moments(bn, targets, known)
            np.testing.assert_allclose(np.atleast_1d(answer.mean), mean, rtol=1e-10, atol=1e-10)
            np.testing.assert_allclose(answer.covariance, covariance, rtol=1e-9, atol=1e-10)
            assert answer.log_prob_of_evidence == pytest.approx(np.log(probability(bn, known)), rel=1e-10, abs=1e-10)
            assert answer.weights.sum() == pytest.approx(1.0, rel=1e-12)
    if reals:
        x = bn.query(reals[0], known).mean + 0.3
        density = real_density(bn, reals[0], x, known)
        assert np.exp(bn.query(reals[0], known).log_prob(x)) == pytest.approx(density, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_mixed_targets_are_the_mixture_given_each_state(seed: int) -> None:
    bn, known = network(seed)
    finite, reals = hidden_of(bn, known)
    finite = [n for n in finite if n not in known]
    if not (finite and reals):
        return
    answer = bn.query([finite[0], reals[0]], known)
    expected = finite_posterior(bn, finite[:1], known)
    assert answer.finite is not None
    for state in bn.variables[finite[0]].states:
        p = expected.get((state,), 0.0)
        assert answer.finite[state] == pytest.approx(p, rel=1e-10, abs=1e-13)
        if p > 1e-12:
            mean, covariance = real_moments(bn, reals[:1], {**known, finite[0]: state})
            assert answer[state].mean == pytest.approx(mean[0], rel=1e-9, abs=1e-9)
            assert answer[state].variance == pytest.approx(covariance[0, 0], rel=1e-8)
            log_prob = np.log(probability(bn, {**known, finite[0]: state}))
            assert answer[state].log_prob_of_evidence == pytest.approx(log_prob, rel=1e-9, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_marginals_are_the_queries(seed: int) -> None:
    bn, known = network(seed)
    every = bn.marginals(known)
    assert set(every) == set(bn.variables)
    assert every.log_prob_of_evidence == pytest.approx(np.log(probability(bn, known)), rel=1e-10, abs=1e-10)
    finite, reals = hidden_of(bn, known)
    for name in finite:
        np.testing.assert_allclose(
            every[name].probs, exact.closed_answer(bn, [name], evidence_codes(bn, known)).probs, rtol=1e-9, atol=1e-13
        )
    for name in reals:
        answer = bn.query(name, known)
        assert every[name].mean == pytest.approx(answer.mean, rel=1e-10, abs=1e-10)
        assert every[name].variance == pytest.approx(answer.variance, rel=1e-9)
    for name in set(bn.variables) - set(finite) - set(reals):
        if isinstance(bn.variables[name], sf.Finite):
            assert every[name][known[name]] == 1.0
        else:
            assert (every[name].mean, every[name].variance) == (known[name], 0.0)


@settings(max_examples=60, deadline=None)
@given(seed=seeds)
def test_most_probable_is_the_highest_point_of_the_density(seed: int) -> None:
    bn, known = network(seed)
    finite, reals = hidden_of(bn, known)
    for some in (reals, reals[:1], reals[1:], []):
        if finite or some:
            answer = exact.most_probable(bn, finite + some, evidence_codes(bn, known))
            expected, log_joint = highest(bn, some, known)
            assert answer.log_prob == pytest.approx(log_joint, rel=1e-10, abs=1e-10)
            assert {n: answer[n] for n in finite} == {n: expected[n] for n in finite}
            np.testing.assert_allclose([answer[n] for n in some], [expected[n] for n in some], rtol=1e-9, atol=1e-9)
    if reals and any(isinstance(x, float) for x in known.values()):
        assert set(bn.most_probable(known)) == {*finite, *reals}
    if finite:
        expected_map = finite_posterior(bn, finite[:1], known)
        answer = exact.most_probable(bn, finite[:1], evidence_codes(bn, known))
        assert expected_map[(answer[finite[0]],)] == pytest.approx(max(expected_map.values()), rel=1e-10)
        assert answer.probability == pytest.approx(max(expected_map.values()), rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(seed=seeds)
def test_rows_equal_queries_of_each(seed: int) -> None:
    bn, codes, reals = some_rows(seed, 7)
    compiled = bn.compiled
    for target in bn.variables:
        found = by_densities(bn, target, RowEvidence(codes, reals))
        for i in range(len(codes)):
            known: dict[str, Any] = {
                n: bn.variables[n].states[codes[i, j]] for j, n in enumerate(compiled.finite) if codes[i, j] >= 0
            }
            known |= {n: float(reals[i, j]) for j, n in enumerate(compiled.reals) if not np.isnan(reals[i, j])}
            known.pop(target, None)
            if target in compiled.index:
                expected = finite_posterior(bn, [target], known)
                states = bn.variables[target].states
                np.testing.assert_allclose(found[i], [expected.get((s,), 0.0) for s in states], rtol=1e-9, atol=1e-13)
            else:
                mean, covariance = real_moments(bn, [target], known)
                np.testing.assert_allclose(found[i], [mean[0], covariance[0, 0]], rtol=1e-8, atol=1e-10)


def some_rows(seed: int, n: int) -> tuple[sf.BayesNet, Any, Any]:
    """Rows of which half of the cells are observed, others in each of the first rows, then the same."""
    bn = random_hybrid(seed, n_finite=seed % 4, n_real=1 + seed % 4, zeros=seed % 3 == 0)
    rng, compiled, rows = np.random.default_rng(seed), bn.compiled, bn.sample(n, seed=seed).to_pylist()
    codes = np.array([[bn.variables[v].code(row[v]) for v in compiled.finite] for row in rows], np.int32).reshape(n, -1)
    reals = np.array([[row[x] for x in compiled.reals] for row in rows])
    hide, blank = rng.random(codes.shape) < 0.5, rng.random(reals.shape) < 0.5
    hide[n // 2 :], blank[n // 2 :] = hide[n // 2], blank[n // 2]
    return bn, np.where(hide, -1, codes), np.where(blank, np.nan, reals)


def test_rows_in_small_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    bn, codes, reals = some_rows(7, 40)
    whole = {t: by_densities(bn, t, RowEvidence(codes, reals)) for t in bn.variables}
    monkeypatch.setattr(inference_rows, "CELLS", 60)
    for target, expected in whole.items():
        np.testing.assert_allclose(by_densities(bn, target, RowEvidence(codes, reals)), expected, rtol=1e-12, atol=1e-14)


def test_no_rows_and_impossible_rows() -> None:
    tables = {"u": [1.0, 0.0], "w": [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], "x": sf.Gaussian([0.0, 1.0], variance=[1.0, 1.0])}
    bn = sf.BayesNet("u -> w; u -> x", tables, [U, W])
    assert by_densities(bn, "u", RowEvidence(np.zeros((0, 2), np.int64), np.zeros((0, 1)))).shape == (0, 2)
    assert by_densities(bn, "x", RowEvidence(np.zeros((0, 2), np.int64), np.zeros((0, 1)))).shape == (0, 2)
    codes, reals = np.array([[-1, 2], [-1, 0], [1, -1]]), np.array([[0.0], [0.0], [0.0]])
    assert np.isnan(by_densities(bn, "u", RowEvidence(codes, reals))[:, 0]).tolist() == [True, False, False]
    assert np.isnan(by_densities(bn, "x", RowEvidence(codes, reals))[:, 0]).tolist() == [True, False, True]


def test_a_known_mixture() -> None:
    answer = small().query("x")
    assert answer.weights.tolist() == [0.25, 0.75]
    assert answer.parts.means.tolist() == [[0.0], [4.0]]
    assert answer.parts.variances[:, 0].tolist() == pytest.approx([1.0, 4.0])
    assert (answer.mean, answer.variance) == pytest.approx((3.0, 0.25 + 3.0 + 3.0))
    assert small().query("x", {"u": "b"}).parts.means.tolist() == [[4.0]]


def test_equal_components_are_one_and_impossible_ones_are_none() -> None:
    bn = sf.BayesNet("w -> x", {"w": [0.5, 0.5, 0.0], "x": sf.Gaussian([1.0, 1.0, 9.0], variance=[2.0, 2.0, 1.0])}, [W])
    answer = bn.query("x")
    assert answer.weights.tolist() == [1.0]
    apart = bn.query(["x", "w"])
    assert apart.states == (("p",), ("q",))
    assert apart.finite is not None
    assert apart.finite.probs.tolist() == [0.5, 0.5, 0.0]
    with pytest.raises(ModelError, match="probability zero"):
        apart["r"]


def test_densities_that_pull_apart_beyond_all_numbers_are_weighed() -> None:
    """Each of 60 witnesses alone rules the state out that the others together rule in, in numbers that floats do not have."""
    names = [f"x{i}" for i in range(60)]
    means = [(0.0, 100.0) if i % 2 else (100.0, 0.0) for i in range(60)]
    tables = {"u": [0.5, 0.5], **{n: sf.Gaussian(list(m), variance=[1.0, 1.0]) for n, m in zip(names, means, strict=True)}}
    bn = sf.BayesNet({n: ["u"] for n in names}, tables, [U])
    known = dict.fromkeys(names, 50.0) | {"x1": 49.9}
    # ln p(x1 | a) − ln p(x1 | b) = ½ (50.1² − 49.9²) = 10
    assert bn.query("u", known)["a"] == pytest.approx(1.0 / (1.0 + np.exp(-10.0)), rel=1e-9)
    assert bn.log_prob_of(known) < -70_000.0


def test_conflicting_evidence_on_tied_states() -> None:
    tied = [sf.Finite(n, ["a", "b"]) for n in ("u", "v")]
    far = sf.Gaussian([0.0, 60.0], variance=[1.0, 1.0])
    bn = sf.BayesNet("u -> v; u -> x; v -> y", {"u": [0.5, 0.5], "v": [[1.0, 0.0], [0.0, 1.0]], "x": far, "y": far}, tied)
    known = {"x": 0.0, "y": 60.5}
    assert bn.query("u", known)["b"] == pytest.approx(1.0, abs=1e-12)
    assert bn.query(["u", "v"], known)["b", "b"] == pytest.approx(1.0, abs=1e-12)
    assert bn.marginals(known)["v"]["b"] == pytest.approx(1.0, abs=1e-12)
    assert dict(bn.most_probable(known)) == {"u": "b", "v": "b"}
    expected = np.log(0.5) - np.log(2 * np.pi) - 0.5 * (60.0**2 + 0.5**2)
    assert bn.log_prob_of(known) == pytest.approx(expected, rel=1e-12)


def test_a_network_without_finite_variables() -> None:
    bn = sf.BayesNet("x -> y", {"x": sf.Gaussian(1.0), "y": sf.Gaussian(0.0, {"x": 2.0})})
    assert bn.query("x", {"y": 7.0}).mean == pytest.approx(3.0)
    assert bn.query(["x", "y"]).covariance == pytest.approx(np.array([[1.0, 2.0], [2.0, 5.0]]))
    assert list(bn.marginals({"y": 7.0})) == ["x", "y"]
    assert dict(bn.most_probable({"y": 7.0})) == pytest.approx({"x": 3.0})
    assert dict(bn.most_probable(targets=["y"])) == pytest.approx({"y": 2.0})
    assert bn.log_prob_of({"x": 1.0}) == pytest.approx(-0.5 * np.log(2 * np.pi))


def test_a_chain_of_a_thousand_real_nodes() -> None:
    n = 1000
    edges = [(f"x{i}", f"x{i + 1}") for i in range(n - 1)]
    bn = sf.BayesNet(edges, {f"x{i}": sf.Gaussian(0.0, {f"x{i - 1}": 1.0} if i else {}) for i in range(n)})
    assert bn.query("x499", {"x999": 10.0}).mean == pytest.approx(5.0, rel=1e-9)
    assert bn.query("x499", {"x999": 10.0}).variance == pytest.approx(250.0, rel=1e-9)
    every = bn.marginals({"x499": 1.0, "x999": 3.0})
    assert every["x749"].mean == pytest.approx(2.0, rel=1e-9)
    assert every["x749"].variance == pytest.approx(125.0, rel=1e-9)
    assert every["x249"].mean == pytest.approx(0.5, rel=1e-9)


def test_likelihood_evidence_and_numbers_together() -> None:
    bn, known = small(), {"u": [1.0, 5.0], "y": 1.0}
    assert bn.query("u", known)["b"] == pytest.approx(finite_posterior(bn, ["u"], known)[("b",)], rel=1e-12)
    assert bn.query("x", known).mean == pytest.approx(real_moments(bn, ["x"], known)[0][0], rel=1e-12)
    assert bn.query("u", {"u": {"a": 0.0, "b": 2.0}, "y": 1.0})["b"] == 1.0


def lacking() -> sf.BayesNet:
    """x has no parameters at w=q."""
    bn = sf.BayesNet("u -> w; w -> x; x -> y", {
        "u": [0.5, 0.5], "w": [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]],
        "x": sf.Gaussian(np.zeros(3), variance=np.ones(3)), "y": sf.Gaussian(0.0, {"x": 1.0}),
    }, [U, W])  # fmt: skip
    hole = np.array([0.0, np.nan, 1.0])
    x = ConditionalGaussian(sf.Real("x"), (W,), hole, np.zeros((3, 0)), np.where(np.isnan(hole), np.nan, 1.0))
    return sf.BayesNet.of(bn.dag, bn.variables, {n: x if n == "x" else bn[n] for n in bn})


def test_a_configuration_without_parameters_is_named_where_it_matters() -> None:
    bn = lacking()
    for ask in (
        lambda: bn.query("y"),
        lambda: bn.query("w", {"x": 1.0}),
        lambda: bn.query("u", {"y": 1.0}),
        lambda: bn.marginals(),
        lambda: bn.log_prob_of({"y": 1.0}),
        lambda: bn.most_probable(),
        lambda: by_densities(bn, "w", RowEvidence(np.array([[0, -1]]), np.array([[1.0, np.nan]]))),
    ):
        with pytest.raises(ModelError, match="'x' has no parameters at w='q'"):
            ask()
    # u=b rules w=q out, and an observed x takes its parameters out of the question
    assert bn.query("y", {"u": "b"}).weights.tolist() == [0.5, 0.5]
    assert bn.query("w", {"u": "b", "x": 1.0})["q"] == 0.0
    assert bn.query("u", {"w": "p", "y": 0.0})["a"] == pytest.approx(0.5)
    assert bn.query("w")["q"] == pytest.approx(0.25)
    assert set(bn.most_probable({"u": "b"})) == {"w", "x", "y"}
    found = by_densities(bn, "w", RowEvidence(np.array([[1, -1]]), np.array([[1.0, np.nan]])))
    assert found[0, 1] == 0.0


def wide(n: int) -> sf.BayesNet:
    """A chain of n real nodes, each with a finite parent of its own."""
    switches = [sf.Finite(f"u{i}", ["a", "b"]) for i in range(n)]
    edges = [(f"u{i}", f"x{i}") for i in range(n)] + [(f"x{i}", f"x{i + 1}") for i in range(n - 1)]
    cpds: dict[str, Any] = {f"u{i}": [0.5, 0.5] for i in range(n)}
    for i in range(n):
        slope = {f"x{i - 1}": [0.5, 0.9]} if i else {}
        cpds[f"x{i}"] = sf.Gaussian([0.0, 1.0], slope, [1.0, 0.5])
    return sf.BayesNet(edges, cpds, switches)


def test_too_many_configurations_are_refused_with_their_number() -> None:
    bn = wide(20)
    for ask in (
        lambda: bn.query("x19"),
        lambda: bn.query("u0", {"x19": 1.0}),
        lambda: bn.marginals(),
        lambda: by_densities(bn, "u0", RowEvidence(np.full((1, 20), -1), np.array([[np.nan] * 19 + [1.0]]))),
    ):
        with pytest.raises(TooLarge, match=r"through [\d,]+ configurations of 'u0', .*LikelihoodWeighting\(\)"):
            ask()
    # evidence in between cuts the chain, and so does asking near its start
    assert bn.query("x3").weights.sum() == pytest.approx(1.0)
    cut = {f"x{i}": 0.0 for i in range(2, 20, 3)}
    assert 0.0 < bn.query("u4", cut)["a"] < 1.0
    assert set(bn.marginals({"x9": 0.5, **cut})) == set(bn.variables)


def test_the_most_probable_of_everything_needs_no_joint_configurations() -> None:
    """Without evidence each node has a factor of its own, so that 60 finite parents in a chain are no matter."""
    found = wide(60).most_probable()
    assert all(found[f"u{i}"] == "b" for i in range(60))
    assert found["x1"] == pytest.approx(1.9)


def test_a_wide_joint_of_reals_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference_hybrid, "MAX_CELLS", 20)
    with pytest.raises(TooLarge, match="through 8 configurations of 'u0', 'u1', 'u2', and the limit is 2"):
        wide(3).query(["x0", "x1", "x2"])


def test_the_mode_of_a_mixture_is_refused() -> None:
    with pytest.raises(ModelError, match=r"a mixture over 'u'.*make 'u' targets, too"):
        small().most_probable(targets=["x"])
    assert set(small().most_probable({"u": "a"}, targets=["x"])) == {"x"}
    assert set(small().most_probable(targets=["y", "u"])) == {"y", "u"}


def test_bad_questions_are_refused_in_words() -> None:
    bn = small()
    never = sf.BayesNet("u -> x", {"u": [1.0, 0.0], "x": sf.Gaussian([0.0, 1.0], variance=[1.0, 1.0])}, [U])
    for bad, problem in (
        (lambda: bn.query([], {"x": 1.0}), "no target"),
        (lambda: bn.query("x", {"x": 1.0}), "'x' is asked for and given at once"),
        (lambda: bn.query("z", {"x": 1.0}), "no node 'z'"),
        (lambda: bn.query("u", {"x": "high"}), "'x' is a number"),
        (lambda: bn.query("u", {"x": np.nan}), "'x' was given as nan; leave out"),
        (lambda: bn.query("u", {"x": np.inf}), "'x' is a number"),
        (lambda: bn.query("x", {"u": "c"}), "no state 'c'"),
        (lambda: never.query("x", {"u": "b"}), "probability zero.*u=b"),
        (lambda: never.marginals({"u": "b"}), "probability zero.*u=b"),
        (lambda: never.most_probable({"u": "b", "x": 0.0}), "probability zero.*u=b, x=0"),
        (lambda: bn.query("u", {"x": 1e200}), "probability zero"),
    ):
        with pytest.raises(SufficeError, match=problem):
            bad()
    assert never.log_prob_of({"u": "b", "x": 0.0}) == -np.inf


def test_collinear_evidence_is_refused_by_name() -> None:
    witness = sf.Gaussian(0.0, {"x": 1.0}, variance=1e-30)
    bn = sf.BayesNet("x -> y; x -> z", {"x": sf.Gaussian(), "y": witness, "z": witness})
    with pytest.raises(ModelError, match=r"the evidence on 'y', 'z' is collinear up to rounding: .*leave it out"):
        bn.query("x", {"y": 1.0, "z": 1.0})
    assert bn.query("x", {"y": 1.0}).mean == pytest.approx(1.0)
    assert bn.query("x", {"y": 1.0}).variance == pytest.approx(1e-30, rel=1e-9)


def test_exploding_chains_are_refused() -> None:
    edges = [(f"x{i}", f"x{i + 1}") for i in range(400)]
    bn = sf.BayesNet(edges, {f"x{i}": sf.Gaussian(1.0, {f"x{i - 1}": 10.0} if i else {}) for i in range(401)})
    with pytest.raises(ModelError, match="beyond what a number holds"):
        bn.query("x400")


def mixture(**more: Any) -> Mixture:
    return Mixture(("x",), [0.25, 0.75], NormalParts([[0.0], [4.0]], [[[1.0]], [[4.0]]]), **more)


def test_quantiles_invert_the_cdf() -> None:
    answer = mixture()
    for q in (1e-300, 1e-12, 0.025, 0.25, 0.5, 0.9, 1.0 - 1e-12):
        assert answer.cdf(answer.quantile(q)) == pytest.approx(q, rel=1e-9)
    assert answer.quantile([0.0, 1.0]).tolist() == [-np.inf, np.inf]
    assert answer.interval(0.5) == (answer.quantile(0.25), answer.quantile(0.75))
    assert answer.cdf([-np.inf, np.inf]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_quantiles_between_modes_far_apart_and_of_any_scale(scale: float) -> None:
    means = np.array([[-1.0], [1.0]]) * scale
    apart = Mixture(("x",), [0.5, 0.5], NormalParts(means, np.full((2, 1, 1), (1e-6 * scale) ** 2)))
    assert apart.quantile(0.25) == pytest.approx(-scale, rel=1e-9)
    assert apart.quantile(0.75) == pytest.approx(scale, rel=1e-9)
    assert -scale <= apart.quantile(0.5) <= scale
    assert apart.cdf(0.0) == pytest.approx(0.5)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, q=st.floats(1e-9, 1 - 1e-9))
def test_quantiles_of_random_mixtures(seed: int, q: float) -> None:
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 5))
    weights = rng.dirichlet(np.ones(m))
    means = rng.normal(size=(m, 1)) * 10.0 ** rng.integers(-3, 4)
    answer = Mixture(("x",), weights, NormalParts(means, 10.0 ** rng.normal(size=(m, 1, 1))))
    assert answer.cdf(answer.quantile(q)) == pytest.approx(q, rel=1e-7, abs=1e-10)


def test_a_mean_of_1e9_in_a_mixture() -> None:
    shifted = Mixture(("x",), [0.25, 0.75], NormalParts([[1e9], [1e9 + 4.0]], [[[1.0]], [[4.0]]]))
    assert shifted.variance == pytest.approx(mixture().variance, rel=1e-6)
    assert shifted.quantile(0.3) - 1e9 == pytest.approx(mixture().quantile(0.3), abs=1e-6)
    assert shifted.log_prob(1e9) == pytest.approx(mixture().log_prob(0.0), rel=1e-12)


def test_log_prob_integrates_to_one_and_takes_points_of_several_targets() -> None:
    grid = np.linspace(-20.0, 30.0, 20_001)
    assert np.exp(mixture().log_prob(grid)).sum() * (grid[1] - grid[0]) == pytest.approx(1.0, rel=1e-9)
    two = small().query(["x", "y"], {"u": "a"})
    both = two.log_prob([[0.5, 1.0], [0.0, 0.0]])
    assert both.shape == (2,)
    assert two.log_prob([0.5, 1.0]) == pytest.approx(small().log_prob_of({"x": 0.5, "y": 1.0, "u": "a"}) - np.log(0.25))
    assert mixture().log_prob(1e200) == -np.inf


def test_a_point_mass_has_quantiles_and_no_density() -> None:
    known = small().marginals({"x": 2.0})["x"]
    assert (known.mean, known.sd, known.cdf(1.9), known.cdf(2.0), known.quantile(0.3)) == (2.0, 0.0, 0.0, 1.0, 2.0)
    with pytest.raises(ModelError, match="the value of 'x' is known"):
        known.log_prob(2.0)


def test_mixtures_show_themselves() -> None:
    answer = small().query(["u", "x"])
    assert repr(answer).splitlines()[0] == "p(u, x), exact: mean 3, sd 2.5"
    assert "<td>b</td>" in answer._repr_html_()
    table = answer.to_frame()
    assert list(table.columns) == ["u", "weight", "mean", "variance"]
    joint = small().query(["x", "y"])
    assert list(joint.to_frame().columns) == [
        "weight", "mean of x", "mean of y", "variance of x", "variance of y", "covariance of x, y"
    ]  # fmt: skip
    assert repr(joint).splitlines()[1].split() == ["node", "mean", "sd"]
    many = Mixture(("x",), np.full(40, 1 / 40), NormalParts(np.arange(40.0)[:, None], np.ones((40, 1, 1))))
    assert repr(many).splitlines()[-1] == "… and 8 more components"
    assert "mean 3 (2, 4), sd" in repr(replace(mixture(), mean_interval=Interval(2.0, 4.0)))


def test_finite_and_real_targets_are_shown_together() -> None:
    assert repr(small().query(["x", "u"])).startswith("p(x, u), exact")
    answer = small().query(["x", "u", "y"])
    lines = repr(answer).splitlines()
    assert lines[0] == "p(x, u, y), exact"
    assert [line.split() for line in lines[1:] if line and "─" not in line] == [
        ["node", "mean", "sd"],
        ["x", "3", "2.5"],
        ["y", f"{answer.mean[1]:.4g}", f"{answer.sd[1]:.4g}"],
        ["u", "weight", "node", "mean", "sd"],
        ["a", "0.25", "x", "0", "1"],
        ["a", "0.25", "y", "0", "1.414"],
        ["b", "0.75", "x", "4", "2"],
        ["b", "0.75", "y", "-3", "2.236"],
    ]
    assert answer._repr_html_().count("<table>") == 2
    assert repr(answer["a"]).startswith("p(x, y | u=a), exact")
    assert pickle.loads(pickle.dumps(answer)).asked == ("x", "u", "y")


def test_draws_of_finite_and_real_targets_are_shown_together() -> None:
    drawn = small().query(["u", "x"], method=sf.methods.LikelihoodWeighting(2000))
    lines = repr(drawn).splitlines()
    assert lines[0].startswith("p(u, x), likelihood weighting")
    assert lines[5].split() == ["u", "probability", "node", "mean", "±", "sd"]
    assert [line.split()[0] for line in lines[7:]] == ["a", "b"]
    assert float(lines[8].split()[3]) == pytest.approx(drawn["b"].mean, rel=1e-3)
    assert drawn._repr_html_().count("<table>") == 2
    assert repr(drawn["a"]).startswith("p(x | u=a), likelihood weighting")
    frame, own = drawn.to_frame(), drawn["b"].to_frame()
    assert list(frame.columns) == ["u", "x", "weight"]
    assert len(frame) == 2000
    assert frame.loc[frame["u"] == "b", "weight"].sum() == pytest.approx(drawn.finite["b"])
    assert own["weight"] @ own["x"] == pytest.approx(drawn["b"].mean)
    assert len(own) == (frame["u"] == "b").sum()


def test_no_column_of_numbers_takes_the_place_of_a_target() -> None:
    u, w = sf.Finite("weight", ["a", "b"]), sf.Finite("mean", ["c"])
    tables = {"weight": [0.25, 0.75], "mean": [1.0], "variance": sf.Gaussian([0.0, 1.0]), "sd": sf.Gaussian()}
    bn = sf.BayesNet(sf.Dag("weight -> variance", nodes=["weight", "variance", "mean", "sd"]), tables, [u, w])
    one, two = bn.query(["weight", "mean", "variance"]), bn.query(["weight", "variance", "sd"])
    assert list(one.to_frame().columns) == ["weight", "mean", "weight_", "mean_", "variance"]
    assert one.to_frame()["weight"].tolist() == ["a", "b"]
    assert repr(one).splitlines()[1].split() == ["weight", "mean", "weight_", "mean_", "sd"]
    assert list(two.to_frame().columns)[:2] == ["weight", "weight_"]
    drawn = bn.query(["weight", "sd"], method=sf.methods.LikelihoodWeighting(500)).to_frame()
    assert list(drawn.columns) == ["weight", "sd", "weight_"]
    assert set(drawn["weight"]) == {"a", "b"}
    commas = Mixture(("a", "b, c", "a, b", "c"), [1.0], NormalParts(np.zeros((1, 4)), np.eye(4)[None])).to_frame()
    assert len(commas.columns) == 1 + 4 + 4 + 6


def test_marginals_are_in_the_order_of_the_network_and_short() -> None:
    x, y, z = sf.Real("x"), sf.Real("y"), sf.Real("z")
    tables = {"u": [0.25, 0.75], "x": sf.Gaussian(1.0, {"y": 1.0}), "y": sf.Gaussian([0.0, 4.0]), "z": sf.Gaussian()}
    bn = sf.BayesNet("u -> y; y -> x; z", tables, [x, U, y, z])
    given = {"z": 2.0}
    answers = bn.marginals(given)
    assert list(answers) == list(bn.variables) == list(pickle.loads(pickle.dumps(answers)))
    shown = dict(line.split(maxsplit=1) for line in repr(answers).splitlines()[3:])
    assert list(shown) == list(bn.variables)
    assert shown["u"] == "a 0.25, b 0.75"
    assert shown["y"] == "mean 3, sd 2"
    assert shown["z"] == "mean 2, sd 0"
    assert list(answers.to_frame()["node"].unique()) == list(bn.variables)


def test_the_highest_point_has_a_density() -> None:
    best = small().most_probable()
    assert best.is_density
    assert repr(best).splitlines()[0] == f"Most probable states of 3 nodes; density {best.probability:.4g}"
    some = small().most_probable({"x": 1.0, "y": 1.0})
    assert not some.is_density
    assert repr(some).splitlines()[0].endswith(f"1 node given x=1, y=1; probability {some.probability:.4g}")
    names = [f"x{i}" for i in range(200)]
    sharp = sf.BayesNet(sf.Dag([], nodes=names), {n: sf.Gaussian(0.0, variance=1e-6) for n in names}).most_probable()
    assert sharp.probability == np.inf
    assert "; ln density 1198" in repr(sharp)


def test_mixtures_are_values() -> None:
    answer = small().query(["u", "x"])
    again = pickle.loads(pickle.dumps(answer))
    assert again.weights.tolist() == answer.weights.tolist()
    assert again.states == answer.states
    for array in (answer.weights, answer.parts.means, answer.parts.covariances, again.weights):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


def test_bad_questions_to_mixtures() -> None:
    answer, two = mixture(), small().query(["x", "y"])
    mixed = small().query(["u", "x"])
    for bad, problem in (
        (lambda: two.cdf(0.0), "a cdf is of one"),
        (lambda: two.quantile(0.5), "a quantile is of one"),
        (lambda: two.interval(0.5), "a quantile is of one"),
        (lambda: two.log_prob(1.0), "a number for each of 'x', 'y'"),
        (lambda: answer.quantile(1.5), "from 0 to 1"),
        (lambda: answer.interval(1.0), "between 0 and 1"),
        (lambda: answer.log_prob("high"), "numbers, not 'high'"),
        (lambda: answer.cdf(np.nan), "numbers, not nan"),
        (lambda: answer["a"], "no finite target"),
        (lambda: mixed["c"], "no state 'c'"),
        (lambda: mixed["a", "b"], "give 1 state, not"),
        (lambda: Mixture((), [1.0], NormalParts(np.zeros((1, 0)), np.zeros((1, 0, 0)))), "at least one target"),
        (lambda: Mixture(("x",), [1.0], NormalParts([0.0], [[[1.0]]])), "the means of a mixture have the shape"),
    ):
        with pytest.raises(SufficeError, match=problem):
            bad()
    assert mixed[{"u": "a"}].mean == mixed["a"].mean
    assert isinstance(mixed.finite, Distribution)
