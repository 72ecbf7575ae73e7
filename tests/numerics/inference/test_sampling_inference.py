"""Likelihood weighting and Gibbs sampling: against enumeration and exact answers, with the errors they claim."""

from __future__ import annotations

import itertools
import os
import pickle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.models.questions import sampling
from suffice.models.questions.question import Question, evidence_codes, requisite
from suffice.numerics.inference.sampling.sampling import Chained, Gibbs, LikelihoodWeighting, Weighted
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


def binary(*names: str) -> list[sf.Finite]:
    return [sf.Finite(n, ["no", "yes"]) for n in names]


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
    assert "as good as" in repr(one)
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


@pytest.mark.parametrize(
    ("method", "says"), [(LikelihoodWeighting(100), r"draws met .* y=yes.*exactly"), (Gibbs(100), "zero.*y=yes")]
)
def test_evidence_that_no_draw_meets(method: Any, says: str) -> None:
    bn = sf.BayesNet("x -> y", {"x": [1.0, 0.0], "y": np.eye(2)}, binary("x", "y"))
    with pytest.raises(sf.SufficeError, match=says):
        bn.query("x", {"y": "yes"}, method=method)


def test_possible_evidence_that_no_draw_meets() -> None:
    bn = sf.BayesNet("x -> y", {"x": [1.0 - 1e-12, 1e-12], "y": np.eye(2)}, binary("x", "y"))
    for method in (LikelihoodWeighting(100), Gibbs(100)):
        with pytest.raises(sf.SufficeError, match=r"draws met the evidence y=yes.*exactly"):
            bn.query("x", {"y": "yes"}, method=method)


@pytest.mark.parametrize("method", [LikelihoodWeighting(100), Gibbs(100)])
def test_impossible_evidence_where_the_target_does_not_depend_on_it(method: Any) -> None:
    asia = sf.load("asia")
    with pytest.raises(sf.SufficeError, match=r"probability zero.*either=no, lung=yes"):
        asia.query("xray", {"either": "no", "lung": "yes"}, method=method)
    with pytest.raises(sf.SufficeError, match="probability zero"):
        asia.query("smoke", {"either": "no", "lung": "yes", "tub": [1.0, 0.5]}, method=method)


def test_few_effective_draws_are_noted() -> None:
    x, y = sf.Finite("x", ["no", "yes"]), sf.Finite("y", ["no", "yes"])
    bn = sf.BayesNet("x -> y", {"x": [0.999, 0.001], "y": [[1e-6, 1 - 1e-6], [0.5, 0.5]]}, [x, y])
    with pytest.warns(sf.SufficeNote, match="worth only"):
        bn.query("x", {"y": "no"}, method=LikelihoodWeighting(5_000))


ASIA = [{}, {"xray": "yes"}, {"dysp": "yes", "smoke": "no"}, {"xray": "no", "asia": "yes", "bronc": "yes"}, {"either": "yes"}]


def scaled_errors(bn: sf.BayesNet, targets: Any, given: dict[str, Any], seeds: Any, method: Any) -> np.ndarray:
    """(answer − truth) / error of each cell and seed."""
    truth = bn.query(targets, given).probs
    answers = [bn.query(targets, given, method=method, seed=s) for s in seeds]
    return np.array([((a.probs - truth) / a.error).reshape(-1) for a in answers])


def test_gibbs_is_right_where_tables_are_deterministic() -> None:
    """In asia either = lung or tub: one at a time, these could not move."""
    asia, z = sf.load("asia"), []
    for i, given in enumerate(ASIA):
        for j, target in enumerate(n for n in asia.dag.nodes if n not in given):
            z += scaled_errors(asia, target, given, range(100 * i + 10 * j, 100 * i + 10 * j + 5), Gibbs(4_000, burn_in=100))[
                :, 0
            ].tolist()
    assert np.abs(z).max() < 4
    assert 0.8 < np.std(z) < 1.2


def test_gibbs_is_right_in_alarm() -> None:
    alarm, given = sf.load("alarm"), {"BP": "LOW", "PRESS": "HIGH"}
    targets = [n for n in alarm.dag.nodes if n not in given]
    z = [scaled_errors(alarm, t, given, [i], Gibbs(4_000, burn_in=100))[0, 0] for i, t in enumerate(targets)]
    assert np.abs(z).max() < 4
    assert 0.6 < np.std(z) < 1.4


@pytest.mark.parametrize("targets", [["c"], ["a", "c"], ["c", "a", "b"], ["d", "b", "c"]])
def test_an_exclusive_or_by_gibbs(targets: list[str]) -> None:
    """c is a or b but not both: with all three asked for, one is summed out, and its distribution given the others is exact."""
    exclusive = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    tables = {"a": [0.3, 0.7], "b": [0.6, 0.4], "c": exclusive, "d": [[0.8, 0.2], [0.3, 0.7]]}
    bn = sf.BayesNet("a -> c; b -> c; c -> d", tables, binary(*"abcd"))
    given: dict[str, Any] = {} if "d" in targets else {"d": "yes"}
    z = scaled_errors(bn, targets, given, range(20), Gibbs(2_000, burn_in=50))
    assert np.abs(z).max() < 4.5
    assert z.std() < 1.3
    assert bn.query(targets, given, method=Gibbs(400)).probs.sum() == pytest.approx(1.0)


def test_targets_summed_out_with_real_ones() -> None:
    """The draws of x are drawn after the walk, so that they can be looked at beside those of z."""
    tables = {"x": [0.3, 0.7], "y": np.eye(2), "z": sf.Gaussian([0.0, 3.0], variance=[1.0, 1.0])}
    bn = sf.BayesNet("x -> y; y -> z", tables, binary("x", "y"))
    answer = bn.query(["x", "y", "z"], method=Gibbs(20_000))
    assert answer.finite[("no", "yes")] == 0
    assert answer.finite[("no", "no")] == pytest.approx(0.3, abs=5 * answer.finite.error[0, 0])
    assert answer[("yes", "yes")].mean == pytest.approx(3.0, abs=0.1)
    observed_real = bn.query(["x", "y"], {"z": 1.0}, method=Gibbs(4_000))  # then z is a table of y
    assert observed_real.probs == pytest.approx(enumerated_normal(), abs=0.04)


def enumerated_normal() -> np.ndarray:
    """p(x, y | z = 1) of that network."""
    weights = np.array([0.3 * np.exp(-0.5), 0.7 * np.exp(-2.0)])
    return np.diag(weights / weights.sum())


def test_gibbs_refuses_zeros_that_may_hold_it() -> None:
    names = [f"x{i}" for i in range(19)]
    parity = np.indices((2,) * 19).sum(axis=0) % 2
    tables = {**{n: [0.5, 0.5] for n in names}, "y": np.stack([1.0 - parity, parity], axis=-1)}
    bn = sf.BayesNet([(n, "y") for n in names], tables, binary(*names, "y"))
    with pytest.raises(sf.SufficeError, match=r"zeros in the tables of 'x0'.*ask exactly.*LikelihoodWeighting"):
        bn.query("x0", {"y": [0.2, 0.8]}, method=Gibbs(100))
    # two states tied by zeros that a real node depends on cannot be summed out
    hybrid = {"x": [0.3, 0.7], "y": np.eye(2), "a": sf.Gaussian([0.0, 1.0]), "b": sf.Gaussian([0.0, 1.0])}
    tied = sf.BayesNet("x -> y; x -> a; y -> b", hybrid, binary("x", "y"))
    with pytest.raises(sf.SufficeError, match=r"zeros in the tables of 'x', 'y'"):
        tied.query(["x", "a", "b"], method=Gibbs(100))


@pytest.mark.parametrize("seed", range(30))
def test_random_tables_with_zeros(seed: int) -> None:
    bn = random_net(seed, n_nodes=6, zeros=True)
    names = np.random.default_rng(seed).permutation(list(bn.dag.nodes)).tolist()
    states, _ = max(joint(bn).items(), key=lambda item: item[1])
    known = dict(zip(bn.dag.nodes, states, strict=True))
    given = {n: known[n] for n in names[: seed % 3]}
    targets = names[3 : 4 + seed % 3]
    truth = enumerated(bn, targets, given)
    answer = bn.query(targets, given, method=Gibbs(8_000, burn_in=100), seed=seed)
    assert (answer.probs[truth == 0] == 0).all()
    assert (np.abs(answer.probs - truth) <= 4.5 * answer.error).all()


def test_states_that_are_ruled_out_are_no_hindrance() -> None:
    """x = c is impossible, so that only its row of zeros is left."""
    bn = sf.BayesNet(
        "x -> y",
        {"x": [0.5, 0.5, 0.0], "y": [[0.4, 0.6], [0.7, 0.3], [1.0, 0.0]]},
        [sf.Finite("x", ["a", "b", "c"]), sf.Finite("y", ["no", "yes"])],
    )
    z = scaled_errors(bn, ["x", "y"], {}, range(10), Gibbs(2_000))
    assert np.abs(z).max() < 4


def test_chains_that_begin_apart_and_stay_there_are_noted() -> None:
    tables = {"x": [0.5, 0.5], "a": sf.Gaussian([0.0, 40.0], variance=[1.0, 1.0]), "b": sf.Gaussian(0.0, {"a": 1.0}, 1e4)}
    bn = sf.BayesNet("x -> a -> b", tables, binary("x"))
    with pytest.warns(sf.SufficeNote, match=r"chains of Gibbs sampling disagree \(R-hat"):
        answer = bn.query("x", {"b": 20.0}, method=Gibbs(400, chains=8))
    assert answer.error[0] > 0.1


def test_only_what_matters_is_drawn() -> None:
    bn = random_net(0, n_nodes=6)
    alarm = sf.load("alarm")
    assert Question.of(bn, ["n0"], evidence_codes(bn, {})).nodes == bn.dag.ancestral("n0").topological_order
    assert len(Question.of(alarm, ["HR"], evidence_codes(alarm, {"CATECHOL": "HIGH"})).nodes) == 1


@pytest.mark.parametrize("seed", range(60))
def test_requisite_families_are_those_whose_parameters_are_not_separated(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = [f"n{i}" for i in range(7)]
    dag = random_dag(rng, nodes, density=0.3)
    target, *known = rng.permutation(nodes)[:4].tolist()
    soft, known = known[:1], known[1:]
    seen = sf.Dag([*dag.edges, *((s, f"seen {s}") for s in soft)], nodes=[*nodes, *(f"seen {s}" for s in soft)])
    given = [*known, *(f"seen {s}" for s in soft)]
    around = {"parents": {n: dag.parents(n) for n in nodes}, "children": {n: dag.children(n) for n in nodes}}
    links: Any = SimpleNamespace(order=dag.topological_order, **around)
    for node in nodes:
        with_parameter = sf.Dag([*seen.edges, ("parameter", node)], nodes=[*seen.nodes, "parameter"])
        separated = with_parameter.d_separated("parameter", target, given)
        assert (node in requisite(links, [target], known, soft)) is not separated


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
    assert shares.mean[2] == 0
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
    with pytest.raises(sf.SufficeError, match="is a whole number of at least"):
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
    n = 2 * sampling.BLOCK + 7
    assert bn.query("w", method=LikelihoodWeighting(n))["r"] == pytest.approx(0.29, abs=0.02)


def test_gibbs_sums_targets_out_that_would_hardly_ever_move() -> None:
    """y is nearly x: asked for together, single moves would not change them in a lifetime."""
    tables = {"x": [0.97, 0.03], "y": [[0.9999, 0.0001], [0.0001, 0.9999]]}
    bn = sf.BayesNet("x -> y", tables, {"x": ["0", "1"], "y": ["0", "1"]})
    for seed in range(10):
        answer = bn.query(["x", "y"], method=sf.methods.Gibbs(), seed=seed)
        assert abs(answer["0", "0"] - 0.97 * 0.9999) < 5 * answer.error[0, 0]
