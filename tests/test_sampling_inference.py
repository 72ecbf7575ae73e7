"""Likelihood weighting and Gibbs sampling: against enumeration and exact answers, with the errors they claim."""

from __future__ import annotations

import itertools
import os
import pickle
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.inference.sampling import Chained, Gibbs, LikelihoodWeighting, Weighted
from suffice.models import approximate
from suffice.models.evidence import observed
from suffice.models.requisite import Question, requisite
from tests.oracles import joint, random_dag, random_net

METHODS = [LikelihoodWeighting(20_000), Gibbs(20_000, burn_in=200)]


def enumerated(bn: sf.BayesNet, targets: list[str], given: dict[str, Any]) -> np.ndarray:
    """p(targets | given) by adding up the joint; `given` has states or likelihoods in the order of the states."""
    nodes = bn.dag.nodes
    result = np.zeros([bn.variables[t].n_states for t in targets])
    for states, p in joint(bn).items():
        row = {n: bn.variables[n].code(s) for n, s in zip(nodes, states, strict=True)}
        for name, value in given.items():
            p *= value[row[name]] if isinstance(value, list) else row[name] == bn.variables[name].code(value)
        result[tuple(row[t] for t in targets)] += p
    return result / result.sum()


def hybrid_net() -> sf.BayesNet:
    return sf.BayesNet(
        "u -> a; u -> w; a -> b; w -> b; b -> c",
        {
            "u": [0.3, 0.7],
            "w": [[0.5, 0.5], [0.2, 0.8]],
            "a": sf.Gaussian([0.0, 2.0], variance=[1.0, 2.0]),
            "b": sf.Gaussian([0.0, 1.0], {"a": [1.0, -1.0]}, [1.0, 0.5]),
            "c": sf.Gaussian(0.0, {"b": 2.0}, 1.0),
        },
        [sf.Finite("u", ["p", "q"]), sf.Finite("w", ["r", "s"])],
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(8))
def test_finite_answers_are_within_their_errors(method: Any, seed: int) -> None:
    bn = random_net(seed, n_nodes=6)
    names = list(bn.dag.nodes)
    given: dict[str, Any] = {names[0]: bn.variables[names[0]].states[-1]}
    if seed % 2:
        given[names[1]] = np.random.default_rng(seed).uniform(0.2, 1.0, bn.variables[names[1]].n_states).tolist()
    targets = names[2:4] if seed % 3 else names[1:2] if seed % 2 else names[5:]
    answer = bn.query(targets, given, method=method, seed=seed)
    truth = enumerated(bn, targets, given)
    assert answer.probs.sum() == pytest.approx(1.0)
    assert np.abs(answer.probs - truth).max() < 0.05
    assert (np.abs(answer.probs - truth) <= 5 * answer.error + 1e-12).all()
    assert 1 <= answer.effective_sample_size <= 20_000 * (1 + 1e-9)


@pytest.mark.parametrize("method", [LikelihoodWeighting(2_000), Gibbs(2_000, burn_in=50)])
def test_errors_are_neither_too_small_nor_too_large(method: Any) -> None:
    bn, given = random_net(3, n_nodes=5), {"n4": "s0"}
    truth = enumerated(bn, ["n0"], given)
    answers = [bn.query("n0", given, method=method, seed=s) for s in range(150)]
    z = np.array([(a.probs[0] - truth[0]) / a.error[0] for a in answers])
    assert abs(z.mean()) < 0.4
    assert 0.8 < z.std() < 1.3


@pytest.mark.parametrize("method", [LikelihoodWeighting(40_000), Gibbs(40_000)])
def test_real_targets_and_evidence(method: Any) -> None:
    bn = hybrid_net()
    states, exact = bn.query("u", {"c": 3.0}, method=method), bn.query("u", {"c": 3.0})
    assert (np.abs(states.probs - exact.probs) <= 5 * states.error).all()
    answer, truth = bn.query(["a", "w", "b"], {"c": 3.0}, method=method), bn.query(["a", "w", "b"], {"c": 3.0})
    assert answer.names == truth.names == ("a", "b")
    assert (np.abs(answer.mean - truth.mean) <= 5 * answer.error).all()
    assert answer.covariance == pytest.approx(truth.covariance, abs=0.05)
    assert answer.sd == pytest.approx(truth.sd, rel=0.05)
    assert (np.abs(answer.finite.probs - truth.finite.probs) <= 5 * answer.finite.error).all()
    given_state, exactly = answer["r"], truth["r"]
    assert (np.abs(given_state.mean - exactly.mean) <= 5 * given_state.error).all()
    assert answer[{"w": "r"}].mean == pytest.approx(given_state.mean)
    assert given_state.given == {"c": 3.0, "w": "r"}
    one, same = bn.query("b", {"c": 3.0}, method=method), bn.query("b", {"c": 3.0})
    assert one.mean == pytest.approx(same.mean, abs=5 * one.error)
    assert one.quantile(0.25) == pytest.approx(same.quantile(0.25), abs=0.05)
    assert one.interval(0.9) == pytest.approx(same.interval(0.9), abs=0.06)
    assert one.cdf(1.0) == pytest.approx(same.cdf(1.0), abs=0.03)
    assert one.variance == pytest.approx(one.sd**2)
    assert "worth" in repr(one)
    assert "<table>" in one._repr_html_()


def test_a_gaussian_network_by_gibbs() -> None:
    bn = sf.BayesNet("x -> y; x -> z; y -> z", {"x": sf.Gaussian(1.0), "y": sf.Gaussian(0.0, {"x": 2.0}), "z": _sum_of_both()})
    answer, truth = bn.query(["x", "y"], {"z": 2.0}, method=Gibbs(40_000)), bn.query(["x", "y"], {"z": 2.0})
    assert (np.abs(answer.mean - truth.mean) <= 5 * answer.error).all()
    assert answer.covariance == pytest.approx(truth.covariance, abs=0.1)


def _sum_of_both() -> sf.Gaussian:
    return sf.Gaussian(0.5, {"x": 1.0, "y": -1.0}, 2.0)


@pytest.mark.parametrize("method", [LikelihoodWeighting(40_000), Gibbs(500)])
def test_a_seed_gives_the_same_draws_on_any_number_of_threads(method: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bn = hybrid_net()
    first = bn.query(["u", "w"], {"c": 1.0}, method=method, seed=5)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    again, other = (bn.query(["u", "w"], {"c": 1.0}, method=method, seed=s) for s in (5, 6))
    assert np.array_equal(first.probs, again.probs)
    assert not np.array_equal(first.probs, other.probs)


@pytest.mark.parametrize("method", [LikelihoodWeighting(5_000), Gibbs(5_000)])
def test_improbable_evidence_does_not_underflow(method: Any) -> None:
    """300 children, each with a likelihood of 1e-3 or 2e-3: p(evidence) is about 1e-850."""
    names = [f"y{i}" for i in range(300)]
    binary = [sf.Finite(n, ["no", "yes"]) for n in ("x", *names)]
    table = [[0.999, 0.001], [0.998, 0.002]]
    bn = sf.BayesNet([("x", n) for n in names], {"x": [0.5, 0.5], **dict.fromkeys(names, table)}, binary)
    answer = bn.query("x", dict.fromkeys(names, "yes"), method=method)
    assert answer["yes"] == pytest.approx(1.0)
    assert answer.error[1] > 0


@pytest.mark.parametrize("method", [LikelihoodWeighting(100), Gibbs(100)])
def test_evidence_that_no_draw_meets(method: Any) -> None:
    x, y = sf.Finite("x", ["no", "yes"]), sf.Finite("y", ["no", "yes"])
    bn = sf.BayesNet("x -> y", {"x": [1.0, 0.0], "y": [[1.0, 0.0], [0.0, 1.0]]}, [x, y])
    with pytest.raises(sf.SufficeError, match=r"draws met the evidence y=yes.*exactly"):
        bn.query("x", {"y": "yes"}, method=method)


def test_few_effective_draws_are_noted() -> None:
    x, y = sf.Finite("x", ["no", "yes"]), sf.Finite("y", ["no", "yes"])
    bn = sf.BayesNet("x -> y", {"x": [0.999, 0.001], "y": [[1e-6, 1 - 1e-6], [0.5, 0.5]]}, [x, y])
    with pytest.warns(sf.SufficeNote, match="worth only"):
        bn.query("x", {"y": "no"}, method=LikelihoodWeighting(5_000))


def test_gibbs_says_that_zeros_may_hold_it() -> None:
    x, y = sf.Finite("x", ["no", "yes"]), sf.Finite("y", ["no", "yes"])
    bn = sf.BayesNet("x -> y", {"x": [0.5, 0.5], "y": [[1.0, 0.0], [0.0, 1.0]]}, [x, y])
    with pytest.warns(sf.SufficeNote) as notes:
        answer = bn.query(["x", "y"], method=Gibbs(400, chains=8))
    said = [str(n.message) for n in notes]
    assert any("'y' hold zeros" in s for s in said)
    assert any("chains of Gibbs sampling disagree" in s for s in said)
    assert answer.error[0, 0] > 0.1  # each chain stays where it began


def test_only_what_matters_is_drawn() -> None:
    bn = random_net(0, n_nodes=6)
    alarm = sf.load("alarm")
    assert Question.of(bn, ["n0"], observed(bn, {})).nodes == bn.dag.ancestral("n0").topological_order
    assert len(Question.of(alarm, ["HR"], observed(alarm, {"CATECHOL": "HIGH"})).nodes) == 1


@pytest.mark.parametrize("seed", range(60))
def test_requisite_families_are_those_whose_parameters_are_not_separated(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = [f"n{i}" for i in range(7)]
    dag = random_dag(rng, nodes, density=0.3)
    target, *known = rng.permutation(nodes)[:4].tolist()
    soft, known = known[:1], known[1:]
    seen = sf.Dag([*dag.edges, *((s, f"seen {s}") for s in soft)], nodes=[*nodes, *(f"seen {s}" for s in soft)])
    given = [*known, *(f"seen {s}" for s in soft)]
    for node in nodes:
        with_parameter = sf.Dag([*seen.edges, ("parameter", node)], nodes=[*seen.nodes, "parameter"])
        separated = with_parameter.d_separated("parameter", target, given)
        assert (node in requisite(dag, [target], known, soft)) is not separated


def test_errors_of_correlated_draws() -> None:
    """An autoregression y' = 0.9 y + noise: the variance of its mean is (1 + 0.9)/(1 − 0.9) = 19 times that of n draws."""
    y = np.random.default_rng(0).standard_normal((5_000, 200, 4))
    for t in range(1, len(y)):
        y[t] += 0.9 * y[t - 1]
    averages = [Chained(4, 5_000).mean(run.T.reshape(-1)) for run in np.moveaxis(y, 1, 0)]
    claimed, means = [a.error for a in averages], [a.mean for a in averages]
    assert all(a.agree for a in averages)
    assert np.mean(claimed) == pytest.approx(np.std(means), rel=0.2)
    assert np.mean([a.effective_sample_size for a in averages]) == pytest.approx(20_000 / 19, rel=0.6)


def test_chains_that_have_not_met_are_found_out() -> None:
    rng = np.random.default_rng(0)
    cells = np.repeat([0, 1, 1, 0], 1_000) ^ (rng.random(4_000) < 0.01)
    shares = Chained(4, 1_000).shares(cells, 3)
    assert not shares.agree
    assert shares.error[0] > 0.2
    assert shares.effective_sample_size < 10
    assert shares.probs[2] == 0
    assert Chained(4, 1_000).shares(rng.integers(0, 3, 4_000), 3).agree


def test_equal_draws_still_have_an_error() -> None:
    assert Weighted(np.zeros(100)).shares(np.zeros(100, np.int64), 2).error == pytest.approx([0.01, 0.01])
    assert (Chained(2, 100).shares(np.zeros(200, np.int64), 2).error > 0).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: LikelihoodWeighting(0),
        lambda: LikelihoodWeighting(2.5),
        lambda: LikelihoodWeighting(True),
        lambda: Gibbs(10, chains=4),
        lambda: Gibbs(burn_in=-1),
        lambda: Gibbs(chains=0),
    ],
)
def test_options_are_checked(make: Any) -> None:
    with pytest.raises(sf.SufficeError, match="must be a whole number from"):
        make()


def test_bad_questions() -> None:
    bn = hybrid_net()
    for method in (LikelihoodWeighting, "gibbs"):
        with pytest.raises(sf.SufficeError, match=r"LikelihoodWeighting\(\.\.\.\) or Gibbs"):
            bn.query("u", method=method)
    with pytest.raises(sf.SufficeError, match="a seed is a whole number"):
        bn.query("u", method=Gibbs(), seed=-1)
    with pytest.raises(sf.SufficeError, match=r"draws need .* the limit"):
        bn.query("u", method=LikelihoodWeighting(10**10))
    answer = bn.query(["a", "b"], method=LikelihoodWeighting(100))
    with pytest.raises(sf.SufficeError, match="one at a time"):
        answer.cdf(0.5)
    with pytest.raises(sf.SufficeError, match="no finite target"):
        answer["p"]
    with pytest.raises(sf.SufficeError, match="from 0 to 1"):
        bn.query("a", method=LikelihoodWeighting(100)).quantile(2)


def test_gibbs_needs_parameters_everywhere() -> None:
    rows = {"u": ["p", "p", "p", "p", "q"], "y": [1.0, 2.0, 4.0, 3.0, 1.0]}
    bn = sf.fit("u -> y", rows)
    with pytest.raises(sf.SufficeError, match="'y' has no parameters"):
        bn.query("u", {"y": 1.0}, method=Gibbs())


def test_samples_pickle() -> None:
    answer = hybrid_net().query(["a", "u"], method=Gibbs(100))
    assert pickle.loads(pickle.dumps(answer)).mean == answer.mean


def test_many_targets_of_many_states() -> None:
    """The joint has 3^10 cells, of which draws meet few."""
    names = [f"x{i}" for i in range(10)]
    variables = [sf.Finite(n, ["a", "b", "c"]) for n in names]
    tables = {n: np.full((3,) * (1 + (i > 0)), 1 / 3) for i, n in enumerate(names)}
    bn = sf.BayesNet(list(itertools.pairwise(names)), tables, variables)
    for method in (LikelihoodWeighting(1_000), Gibbs(1_000)):
        answer = bn.query(names, method=method)
        assert answer.probs.shape == (3,) * 10
        assert answer.probs.sum() == pytest.approx(1.0)


def test_blocks_are_drawn_apart() -> None:
    bn = hybrid_net()
    n = 2 * approximate.BLOCK + 7
    assert bn.query("w", method=LikelihoodWeighting(n))["r"] == pytest.approx(0.29, abs=0.02)
