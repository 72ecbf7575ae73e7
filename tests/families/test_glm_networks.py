"""Regressions as nodes of networks: exact inference by brute force, sampling by numerical integration, files, scores."""

from __future__ import annotations

import itertools
import json
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logsumexp

import suffice as sf
from suffice.errors import FitError, ModelError, SufficeNote
from suffice.families.by_hand import Regression
from suffice.families.chosen.exponential_node import PoissonRates
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.regressions.logistic import Logistic, ProportionalOdds
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.formats.json.model import write
from suffice.formats.registry import model_in
from suffice.models.parts.closed_forms import as_closed_form

Z, Y, U = sf.Finite("z", ["a", "b"]), sf.Finite("y", ["p", "q", "r"]), sf.Finite("u", ["no", "yes"])
FINITE = {v.name: v for v in (Z, Y, U)}


@pytest.fixture(scope="module")
def bn() -> sf.BayesNet:
    """z -> x, numbers above states, states above numbers, and a regression of each kind."""
    cpds = {
        "z": [0.3, 0.7],
        "x": sf.Gaussian([0.0, 1.0], variance=[1.0, 2.0]),
        "y": Regression(sf.Logistic(), [-0.5, 0.2], {"x": [1.0, -0.7], "z=b": [0.3, 0.8]}),
        "u": Regression(sf.regressions.Probit(), 0.4, {"x": -0.6, "y=r": 1.0}),
        "n": Regression(sf.regressions.PoissonLog(offset="t"), 0.1, {"y=q": 1.0, "y=r": -0.5, "z=b": 0.4}),
        "g": Regression(sf.regressions.GammaLog(), 0.2, {"x": 0.5, "u=yes": -0.8}, dispersion=0.4),
        "c": Regression(sf.regressions.NegativeBinomialLog(), 0.3, {"y=q": 0.9}, dispersion=0.7),
        "m": sf.regressions.Rates(4.0),
        "k": Regression(sf.regressions.BinomialLogit(trials="m"), -0.3, {"u=yes": 1.1}),
        "t": sf.Gaussian(0.0, variance=0.1),
        "w": sf.Gaussian([[1.0, 0.0, 2.0], [0.0, 0.5, 1.0]], {"x": np.full((2, 3), 0.4)}, variance=np.full((2, 3), 0.5)),
    }
    graph = {"x": ["z"], "y": ["x", "z"], "u": ["x", "y"], "n": ["t", "y", "z"], "g": ["x", "u"], "c": ["y"], "k": ["m", "u"]}
    return sf.BayesNet({**graph, "z": [], "m": [], "t": [], "w": ["z", "y", "x"]}, cpds, [Z, Y, U])


EVERYTHING: dict[str, Any] = {"x": 0.7, "n": 3, "g": 1.3, "c": 2, "m": 5, "k": 2, "t": -0.2, "w": 1.4}

WHOLE = {**EVERYTHING, "z": "a", "y": "p", "u": "no"}


def joint(bn: sf.BayesNet, given: dict[str, Any], nodes: list[str]) -> Any:
    """ln p(z, y, u, numbers) with all families but those of `nodes` left out: an axis per finite variable."""
    rows = list(itertools.product(*(range(v.n_states) for v in FINITE.values())))
    columns: dict[str, Any] = {n: np.array([r[i] for r in rows]) for i, n in enumerate(FINITE)}
    columns |= {n: np.full(len(rows), float(x)) for n, x in given.items() if n not in FINITE}
    logs = sum(bn[n].log_prob(columns) for n in nodes)
    for n, state in given.items():
        if n in FINITE:
            logs = np.where(columns[n] == FINITE[n].code(state), logs, -np.inf)
    return np.asarray(logs).reshape([v.n_states for v in FINITE.values()])


def marginal(logs: Any, name: str) -> Any:
    i = list(FINITE).index(name)
    return np.exp(logsumexp(logs, axis=tuple(j for j in range(len(FINITE)) if j != i)) - logsumexp(logs))


def above(bn: sf.BayesNet, names: Any) -> list[str]:
    found = set(names).union(*(bn.dag.ancestors(n) for n in names)) if names else set()
    return [n for n in bn if n in found]


# Exact inference


@pytest.mark.parametrize(
    "seen",
    [
        ["x"],
        ["x", "n", "t"],
        ["x", "g", "c"],
        ["x", "m", "k", "w"],
        ["x", "w"],
        list(EVERYTHING),
    ],
)
@pytest.mark.parametrize("states", [{}, {"y": "q"}, {"z": "a", "u": "yes"}])
def test_posteriors_are_those_of_enumeration(bn: sf.BayesNet, seen: list[str], states: dict[str, str]) -> None:
    given = {**{n: EVERYTHING[n] for n in seen}, **states}
    evidence = joint(bn, given, above(bn, [*given, *FINITE]))
    assert bn.log_prob_of(given) == pytest.approx(logsumexp(evidence), rel=1e-10)
    for target in (n for n in FINITE if n not in given):
        logs = joint(bn, given, above(bn, [*given, target]))
        assert bn.query(target, given).probs == pytest.approx(marginal(logs, target), rel=1e-9)
        assert bn.marginals(given)[target].probs == pytest.approx(marginal(logs, target), rel=1e-9)


def test_most_probable_states(bn: sf.BayesNet) -> None:
    logs = joint(bn, EVERYTHING, list(bn))
    best = bn.most_probable(EVERYTHING)
    at = np.unravel_index(np.argmax(logs), logs.shape)
    assert dict(best) == {n: v.states[at[i]] for i, (n, v) in enumerate(FINITE.items())}
    assert best.log_prob == pytest.approx(logs.max(), rel=1e-9)
    assert best.log_prob_of_evidence == pytest.approx(logsumexp(logs), rel=1e-9)
    with_w = bn.most_probable({n: v for n, v in EVERYTHING.items() if n != "w"})
    peaks = joint(bn, {n: v for n, v in EVERYTHING.items() if n != "w"}, [n for n in bn if n != "w"])
    at = np.unravel_index(np.argmax(peaks), peaks.shape)  # the variance of w is the same everywhere
    assert with_w["y"] == Y.states[at[1]]
    assert with_w["w"] == pytest.approx(bn["w"].intercept[at[0], at[1]] + 0.4 * 0.7)


def test_numbers_beside_regressions(bn: sf.BayesNet) -> None:
    """w given x, g, n: a mixture over z and y, weighed by what g, n and y's numbers say; counts given numbers have rates."""
    given = {"x": 0.7, "g": 1.3, "n": 3, "t": -0.2}
    weights = np.exp(joint(bn, given, above(bn, [*given, *FINITE])))
    weights = weights.sum(axis=2) / weights.sum()
    means = bn["w"].intercept + 0.4 * 0.7
    assert bn.query("w", given).mean == pytest.approx((weights * means).sum(), rel=1e-9)
    found = bn.query("n", {"x": 0.7, "t": -0.2})
    p = np.exp(joint(bn, {"x": 0.7, "t": -0.2}, above(bn, ["y", "x", "t"])))
    p = p.sum(axis=2) / p.sum()
    rates = np.exp(0.1 - 0.2 + np.array([0.0, 0.4])[:, None] + np.array([0.0, 1.0, -0.5]))
    assert found.mean == pytest.approx((p * rates).sum(), rel=1e-9)


def test_what_nothing_depends_on_is_left_out(bn: sf.BayesNet) -> None:
    assert bn.query("z").probs == pytest.approx([0.3, 0.7])
    assert bn.query("x", {"z": "b"}).mean == pytest.approx(1.0)
    assert bn.query("z", {"x": 0.5, "m": 3}).probs == pytest.approx(marginal(joint(bn, {"x": 0.5}, ["z", "x"]), "z"))
    with pytest.warns(SufficeNote, match=r"'c', 'g', 'k', 'n', 'u', 'w', 'y'|left out"):
        found = bn.marginals()
    assert set(found) == {"z", "x", "m", "t"}
    assert "y" not in found
    assert found["x"].mean == pytest.approx(0.7)


def test_what_the_evidence_cuts_off_is_left_out(bn: sf.BayesNet) -> None:
    """k given u, m; m given n and y: neither depends on x, which is not observed and has no formula beside them."""
    assert bn.query("m", {"n": 3, "y": "p"}).mean == pytest.approx(4.0)
    assert bn.query("t", {"y": "q", "z": "a", "w": 0.3}).mean == pytest.approx(0.0)
    assert bn.query("u", {"x": 0.4, "y": "q", "k": 2, "m": 5, "c": 1, "n": 2}).probs == pytest.approx(
        bn.query("u", {"x": 0.4, "y": "q", "k": 2, "m": 5}).probs
    )
    cpds = {
        "a": sf.Gaussian(),
        "z": Regression(sf.regressions.Probit(), 0.1, {"a": 1.0}),
        "x": sf.Gaussian([0.0, 1.0], variance=[1.0, 1.0]),
    }
    cpds |= {"b": sf.Gaussian(1.0, {"x": 2.0})}
    chain = sf.BayesNet("a -> z -> x -> b", cpds, [Z])
    assert chain.query("b", {"x": 0.5}).mean == pytest.approx(2.0)
    assert np.isnan(chain.query("b", {"x": 0.5}).log_prob_of_evidence)
    with pytest.raises(ModelError, match="'z', a probit regression on the number 'a'"):
        chain.query("x")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda bn: bn.query("y"), r"depends on 'y', a logistic regression on the number 'x', which is not observed"),
        (lambda bn: bn.query("x", {"u": "yes"}), r"'y', a logistic regression on the number 'x'"),
        (lambda bn: bn.query(["g", "u"], {"x": 1.0}), r"'g', a gamma regression, which is not observed: .* observe 'g'"),
        (lambda bn: bn.query("z", {"k": 1, "x": 0.0}), r"'k', a binomial regression on the number 'm'"),
        (lambda bn: bn.query("z", {"n": 1}), r"'y', a logistic regression on the number 'x'"),
    ],
)
def test_integrals_without_a_formula_are_refused(bn: sf.BayesNet, ask: Any, message: str) -> None:
    with pytest.raises(sf.SufficeError, match=message) as refused:
        ask(bn)
    assert "method=LikelihoodWeighting()" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_ways_of_asking_that_know_no_regressions(bn: sf.BayesNet) -> None:
    with pytest.raises(ModelError, match="the regression 'y', which Gibbs sampling does not know"):
        bn.query("z", {"y": "p", "x": 1.0}, method=sf.methods.Gibbs())
    assert bn.query("z", {"x": 1.0}, method=sf.methods.Gibbs(2000)).probs == pytest.approx(
        bn.query("z", {"x": 1.0}).probs, abs=0.05
    )


def test_impossible_evidence(bn: sf.BayesNet) -> None:
    given = {"k": 6, "m": 5, "x": 0.0}
    assert bn.log_prob_of(given) == -np.inf
    with pytest.raises(ModelError, match="probability zero"):
        bn.query("u", given)
    with pytest.warns(SufficeNote, match="impossible under the network"):
        assert np.isnan(bn.predict_proba({n: [v] for n, v in given.items()}, "z")["a"]).all()
    with pytest.warns(SufficeNote, match="impossible under the network"):
        assert np.isnan(bn.predict({n: [v] for n, v in given.items()}, "w")).all()


def test_densities_far_below_the_smallest_double() -> None:
    """One regression says e^-8000 for, another e^-8000 against a state."""
    cpds = {
        "z": [0.5, 0.5],
        "g": Regression(sf.regressions.GammaLog(), 0.0, {"z=b": 9.0}, dispersion=1.0),
        "h": Regression(sf.regressions.GammaLog(), 9.0, {"z=b": -9.0}, dispersion=1.0),
    }
    bn = sf.BayesNet("z -> g; z -> h", cpds, [Z])
    assert bn.query("z", {"g": 8000.0, "h": 8000.0}).probs == pytest.approx([0.5, 0.5], abs=1e-9)
    more = bn.query("z", {"g": 8000.0, "h": 8000.0 + 1e-3}).probs[0]
    assert more == pytest.approx(expit(1e-3 * (1 - np.exp(-9))), abs=1e-9)


def test_means_beyond_the_largest_double() -> None:
    """e^800 is a mean that rules a state out, and none that can be told."""
    cpds = {"z": [0.5, 0.5], "x": sf.Gaussian(), "n": Regression(sf.regressions.PoissonLog(), 0.0, {"z=b": 800.0})}
    bn = sf.BayesNet("z -> n; x -> n", cpds, [Z])
    assert bn.query("z", {"n": 1, "x": 0.0}).probs.tolist() == [1.0, 0.0]
    assert bn.predict({"x": [0.0], "z": ["a"]}, "n") == pytest.approx([1.0])
    with pytest.raises(ModelError, match="'n' is a Poisson regression whose mean in some row is inf"):
        bn.predict({"x": [0.0]}, "n")
    with pytest.raises(sf.SufficeError, match="must be finite numbers"):
        bn.query("n", {"x": 0.0})


# Many rows


def rows_with_gaps(bn: sf.BayesNet, n: int, seed: int, complete: tuple[str, ...] = ("x", "m", "t")) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    table = bn.sample(n, seed=seed).to_pydict()
    return {c: [None if c not in complete and rng.random() < 0.4 else v for v in column] for c, column in table.items()}


def test_rows_are_answered_as_questions(bn: sf.BayesNet) -> None:
    table = rows_with_gaps(bn, 40, 1)
    given = [{c: table[c][i] for c in table if table[c][i] is not None} for i in range(40)]
    assert bn.log_prob(table) == pytest.approx([bn.log_prob_of(g) for g in given], rel=1e-9)
    assert bn.log_likelihood(table) == pytest.approx(bn.log_prob(table).sum(), rel=1e-12)
    for target in FINITE:
        found = bn.predict_proba(table, target)
        for i, g in enumerate(given):
            expected = bn.query(target, {k: v for k, v in g.items() if k != target})
            assert [found[s][i] for s in FINITE[target].states] == pytest.approx(expected.probs.tolist(), rel=1e-8)
    found = bn.predict_proba(table, "w")
    for i, g in enumerate(given):
        expected = bn.query("w", {k: v for k, v in g.items() if k != "w"})
        assert (found["mean"][i], found["variance"][i]) == pytest.approx((expected.mean, expected.variance), rel=1e-8)


def test_means_and_variances_of_regressions(bn: sf.BayesNet) -> None:
    """Of g given everything, and with y and u missing: a mixture of gammas."""
    found = bn.predict_proba({"x": [0.5, 0.5], "u": ["yes", None], "z": ["a", "a"], "y": ["p", None]}, "g")
    mean = np.exp(0.2 + 0.25 - 0.8)
    assert (found["mean"][0], found["variance"][0]) == pytest.approx((mean, 0.4 * mean**2))
    p = marginal(joint(bn, {"x": 0.5, "z": "a"}, ["z", "x", "y", "u"]), "u")
    means = np.exp(0.45 - np.array([0.0, 0.8]))
    assert found["mean"][1] == pytest.approx(p @ means)
    assert found["variance"][1] == pytest.approx(p @ (1.4 * means**2) - (p @ means) ** 2)
    assert bn.predict({"m": [5], "u": ["yes"], "x": [0.0]}, "k") == pytest.approx([5 * expit(0.8)])
    assert bn.predict({"y": ["q"], "x": [0.0]}, "c") == pytest.approx([np.exp(1.2)])
    of_z = marginal(joint(bn, {"x": 0.0, "y": "q"}, ["z", "x", "y"]), "z")
    expected = of_z @ np.exp([1.1, 1.5]) * np.exp(0.05)  # t, the offset, is integrated, and the count is summed
    with pytest.warns(SufficeNote, match="integrated by .*: 't'"):
        assert bn.predict({"y": ["q"], "x": [0.0]}, "n") == pytest.approx([expected], rel=1e-8)
    with pytest.raises(ModelError, match="'g', a gamma regression on the number 'x'"):
        bn.predict({"u": ["yes"]}, "g")


def test_gaps_are_filled_and_drawn(bn: sf.BayesNet) -> None:
    table = rows_with_gaps(bn, 30, 2)
    whole = bn.impute(table)
    assert not any(v is None for column in whole.values() for v in column)
    row = {"z": ["b"], "x": [None], "y": [None], "u": [None], "n": [None], "t": [0.0], "g": [None], "w": [None]}
    frames = bn.impute({k: v * 4000 for k, v in row.items()}, draws=1, seed=3)[0]
    again = bn.do({"z": "b"}).sample(400_000, seed=4)
    for name in ("x", "g", "w"):
        assert np.mean(frames[name]) == pytest.approx(np.mean(again[name].to_numpy()), abs=5 * np.std(frames[name]) / 4000**0.5)
    assert np.mean([v == "q" for v in frames["y"]]) == pytest.approx(np.mean(again["y"].to_numpy() == "q"), abs=0.04)
    assert set(map(float.is_integer, map(float, frames["n"]))) == {True}


@pytest.mark.parametrize(
    "family",
    [
        sf.regressions.Linear(),
        sf.regressions.PoissonLog(),
        sf.regressions.GammaLog(),
        sf.regressions.NegativeBinomialLog(),
        sf.regressions.BinomialLogit(trials="m"),
    ],
)
def test_moments_and_quantiles(family: Any) -> None:
    number = sf.Count("y") if not isinstance(family, (sf.regressions.Linear, sf.regressions.GammaLog)) else sf.Real("y")
    parents = (sf.Count("m"),) if family.trials else ()
    cpd = RegressionCpd(
        number,
        parents,
        family,
        0.7,
        [],
        0.3 if isinstance(family, (sf.regressions.GammaLog, sf.regressions.NegativeBinomialLog)) else 1,
    )
    columns = {"m": np.full(200_000, 9.0)}
    drawn = cpd.draw(columns, np.random.default_rng(0), 200_000)
    mean, variance = (x[0] for x in cpd.moments(columns, 200_000))
    assert (drawn.mean(), drawn.var()) == pytest.approx((mean, variance), rel=0.02)
    q = np.array([0.1, 0.5, 0.9])
    found = cpd.quantiles({"m": np.full(3, 9.0)}, q)
    assert ((drawn[:, None] <= found + 1e-12).mean(axis=0) >= q - 0.005).all()


# By drawing


def test_draws_agree_with_integration() -> None:
    cpds = {
        "x": sf.Gaussian(0.3, variance=1.44),
        "y": Regression(sf.Logistic(), -0.2, {"x": 1.5}),
        "z": [[0.9, 0.1], [0.25, 0.75]],
        "n": Regression(sf.regressions.PoissonLog(), 0.2, {"x": 0.5}),
    }
    bn = sf.BayesNet("x -> y -> z; x -> n", cpds, [sf.Finite("y", ["no", "yes"]), sf.Finite("z", ["a", "b"])])
    x = np.linspace(-12, 12, 200_001)
    prior = stats.norm.pdf(x, 0.3, 1.2) * (x[1] - x[0])
    yes = expit(-0.2 + 1.5 * x)
    method = sf.methods.LikelihoodWeighting(200_000)
    found = bn.query("y", method=method, seed=1)
    assert abs(found["yes"] - prior @ yes) < 4 * found.error[1]
    weights = prior * yes / (prior @ yes)
    drawn = bn.query("x", {"y": "yes"}, method=method, seed=2)
    assert abs(drawn.mean - weights @ x) < 4 * drawn.error
    three = prior * stats.poisson.pmf(3, np.exp(0.2 + 0.5 * x))
    state = bn.query("z", {"n": 3}, method=method, seed=3)
    p = three @ yes / three.sum()
    assert abs(state["b"] - (0.1 * (1 - p) + 0.75 * p)) < 4 * state.error[1]
    counts = bn.query("n", {"z": "b"}, method=method, seed=4)
    post = prior * (0.75 * yes + 0.1 * (1 - yes))
    assert abs(counts.mean - post @ np.exp(0.2 + 0.5 * x) / post.sum()) < 4 * counts.error


def test_draws_agree_with_exact_answers(bn: sf.BayesNet) -> None:
    given = {"x": 0.7, "g": 1.3, "c": 2}
    for target in FINITE:
        drawn = bn.query(target, given, method=sf.methods.LikelihoodWeighting(100_000), seed=5)
        assert np.all(np.abs(drawn.probs - bn.query(target, given).probs) < 5 * drawn.error + 1e-12)


# Closed forms


def test_a_linear_regression_is_a_conditional_gaussian() -> None:
    regression = Regression(sf.regressions.Linear(offset="o"), 1.0, {"x": 2.0, "z=b": -1.0}, dispersion=0.5)
    gaussian = sf.Gaussian([1.0, 0.0], {"x": [2.0, 2.0], "o": [1.0, 1.0]}, variance=[0.5, 0.5])
    graph = {"y": ["x", "z", "o"], "v": ["y"], "x": [], "o": [], "z": []}
    rest = {"x": sf.Gaussian(0.5), "o": sf.Gaussian(), "z": [0.4, 0.6], "v": sf.Gaussian(0.0, {"y": -1.0})}
    a, b = (sf.BayesNet(graph, {**rest, "y": cpd}, [Z]) for cpd in (regression, gaussian))
    assert isinstance(as_closed_form(a["y"]), ConditionalGaussian)
    assert a.entropy() == pytest.approx(b.entropy())
    assert sf.information.kl(a, b) == pytest.approx(0.0, abs=1e-12)
    assert a.log_prob_of({"v": 1.0}) == pytest.approx(b.log_prob_of({"v": 1.0}))
    assert a.query("z", {"v": 1.0}).probs == pytest.approx(b.query("z", {"v": 1.0}).probs)
    assert a.query("x", {"v": 1.0, "z": "b"}).mean == pytest.approx(b.query("x", {"v": 1.0, "z": "b"}).mean)
    assert dict(a.most_probable()) == pytest.approx(dict(b.most_probable())) or dict(a.most_probable()) == dict(b.most_probable())
    table = {"v": [1.0, 2.0], "x": [None, 0.1]}
    assert a.predict(table, "y") == pytest.approx(b.predict(table, "y"))
    assert a.query("z", {"v": 1.0}, method=sf.methods.LikelihoodWeighting(20_000))["a"] == pytest.approx(
        b.query("z", {"v": 1.0})["a"], abs=0.02
    )


def test_a_poisson_regression_on_states_has_rates() -> None:
    cpds = {"z": [0.4, 0.6], "n": Regression(sf.regressions.PoissonLog(), 0.5, {"z=b": 1.0})}
    bn = sf.BayesNet("z -> n", cpds, [Z])
    assert as_closed_form(bn["n"]).rates == pytest.approx(np.exp([0.5, 1.5]))
    other = sf.BayesNet("z -> n", {"z": [0.4, 0.6], "n": sf.regressions.Rates(np.exp([0.5, 1.5]))}, [Z])
    assert bn.query("n").mean == pytest.approx(other.query("n").mean)
    assert bn.query("z", {"n": 4}).probs == pytest.approx(other.query("z", {"n": 4}).probs)
    assert isinstance(as_closed_form(bn["n"]), PoissonRates)
    assert bn.entropy() == pytest.approx(other.entropy())
    assert sf.information.kl(other, bn) == pytest.approx(0.0, abs=1e-12)


def test_divergences_without_a_formula(bn: sf.BayesNet) -> None:
    assert sf.information.kl(bn, bn) == 0.0
    other = sf.BayesNet(bn.dag, {n: [0.5, 0.5] if n == "z" else bn[n] for n in bn}, list(bn.variables.values()))
    expected = 0.3 * np.log(0.6) + 0.7 * np.log(1.4)
    assert sf.information.kl(bn, other) == pytest.approx(expected)
    for ask in (bn.entropy, lambda: sf.information.kl(bn, pickle.loads(pickle.dumps(bn)))):
        with pytest.raises(ModelError, match="regression, whose expectations have no formula"):
            ask()


# Written down, set, kept


def test_what_may_be_written_down() -> None:
    cpd = RegressionCpd(sf.Count("n"), (sf.Real("x"),), sf.regressions.PoissonLog(), 0.5, [2.0])
    a = sf.BayesNet("x -> n", {"x": sf.Gaussian(), "n": cpd})
    b = sf.BayesNet("x -> n", {"x": sf.Gaussian(), "n": Regression(sf.regressions.PoissonLog(), 0.5, {"x": 2.0})})
    assert a == b
    assert a != sf.BayesNet("x -> n", {"x": sf.Gaussian(), "n": Regression(sf.regressions.PoissonLog(), 0.5, {"x": 2.1})})
    assert a != sf.BayesNet(
        "x -> n", {"x": sf.Gaussian(), "n": Regression(sf.regressions.NegativeBinomialLog(), 0.5, {"x": 2.0})}
    )
    assert a.n_parameters == 4
    assert a.log_prob({"x": [1.0], "n": [2]}) == pytest.approx(stats.norm.logpdf(1) + stats.poisson.logpmf(2, np.exp(2.5)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Regression(sf.regressions.PoissonLog(), 0.0, {"xx": 1.0}), "'n' has no term 'xx', its terms are 'x'; did you mean 'x'"),
        (Regression(sf.regressions.PoissonLog(), [0.0, 1.0]), "the intercept of 'n' must be a number"),
        (Regression(sf.regressions.PoissonLog, 0.0), "needs a family such as PoissonLog"),
        (Regression(sf.regressions.PoissonLog(), 0.0, [1.0]), "coefficients of 'n' are given by term"),
        (Regression(sf.regressions.PoissonLog(offset="o")), "the offset 'o' of 'n' must be one of its parents"),
        (Regression(sf.Logistic()), "the states of 'n' are not known"),
        (Regression(sf.regressions.GammaLog(), dispersion=-1.0), "dispersion of 'n' must be above 0"),
    ],
)
def test_what_may_not_be_written_down(given: Any, message: str) -> None:
    with pytest.raises(sf.SufficeError, match=message):
        sf.BayesNet("x -> n", {"x": sf.Gaussian(), "n": given})


def test_setting_parents_of_regressions(bn: sf.BayesNet) -> None:
    done = bn.do({"x": 0.5, "t": 0.1, "z": "a"})
    assert done["n"].family == sf.regressions.PoissonLog()
    assert done.query("y").probs == pytest.approx(bn.query("y", {"x": 0.5, "z": "a"}).probs)
    assert done.query("n").mean == pytest.approx(bn.query("n", {"x": 0.5, "t": 0.1, "z": "a"}).mean)
    assert done["g"].intercept == pytest.approx(0.45)
    assert done["c"] is bn["c"]
    assert done.sample(10, seed=0).num_rows == 10
    with pytest.raises(ModelError, match="'m' holds the trials of 'k' and cannot be set: observe it instead"):
        bn.do({"m": 3})


# From data


@pytest.fixture(scope="module")
def fitted(bn: sf.BayesNet) -> tuple[sf.BayesNet, sf.Data]:
    data = sf.scan(bn.sample(800, seed=7), variables=dict(bn.variables))
    return sf.fit(bn, data), data


def test_a_network_brings_its_families(bn: sf.BayesNet, fitted: Any) -> None:
    again, data = fitted
    regressions = {n: bn[n].family for n in ("y", "u", "n", "g", "c", "k")}
    assert {n: again[n].family for n in regressions} == regressions
    assert sf.fit(bn.dag, data, families=regressions) == again
    assert again.log_likelihood() == pytest.approx(again.log_prob(data).sum(), rel=1e-10)
    assert again.log_likelihood() > bn.log_likelihood(data)
    assert (again.bic(), again.aic()) == pytest.approx((again.bic(data), again.aic(data)))
    assert again.cross_entropy() == pytest.approx(again.cross_entropy(data))
    with pytest.warns(SufficeNote, match=r"normal approximation only \(Laplace\): it is the prior of the new rows"):
        assert again.update(data)["n"].fitted.weight == 1600


@pytest.mark.parametrize("score", [sf.LogLikelihood(), sf.AIC(), sf.BIC()])
def test_scores(fitted: Any, score: Any) -> None:
    bn, data = fitted
    families = {n: bn[n].family for n in ("y", "u", "n", "g", "c", "k")}
    price = {"LogLikelihood": 0.0, "AIC": 1.0, "BIC": 0.5 * np.log(800)}[type(score).__name__]
    by_node = sf.score(bn.dag, data, score, families=families, by_node=True)
    assert sum(by_node.values()) == pytest.approx(sf.score(bn, data, score))
    assert sum(by_node.values()) == pytest.approx(bn.log_likelihood() - price * bn.n_parameters)
    assert by_node["g"] == pytest.approx(bn["g"].fitted.log_likelihood - price * 4)


def test_scores_that_do_not_exist(fitted: Any) -> None:
    bn, data = fitted
    with pytest.raises(FitError, match=r"'\w' is a regression .* and so no evidence: .* BIC\(\)"):
        sf.score(bn, data, sf.Evidence((sf.BDeu(1), sf.BGe())))
    for family in (sf.regressions.NegativeBinomialLog(1.0), sf.regressions.GammaLog(1.0)):
        child = "c" if family.profiled else "g"
        dag = sf.Dag({n: bn.dag.parents(n) if n == child else () for n in bn.dag.nodes})
        with pytest.raises(FitError, match=f"'{child}' is a regression with a dispersion"):
            sf.score(dag, data, sf.Evidence((sf.BDeu(1), sf.BGe(), sf.priors.Gamma())), families={child: family})
    with pytest.raises(FitError, match="statistics are not enough"):
        sf.score(bn, sf.gather(data, "z"), sf.BIC())
    with pytest.raises(FitError, match="families speaks of 'zz'"):
        sf.score("z", data, sf.BIC(), families={"zz": sf.regressions.Linear()})


def test_files_give_back_everything(fitted: Any, tmp_path: Any) -> None:
    bn, data = fitted
    sf.write(bn, tmp_path / "bn.json")
    again = sf.read(tmp_path / "bn.json")
    assert again == bn == pickle.loads(pickle.dumps(bn))
    assert write(again) == write(bn)
    assert np.array_equal(again.log_prob(data), bn.log_prob(data))
    for n in ("y", "u", "n", "g", "c", "k"):
        assert np.array_equal(again[n].interval(0.9), bn[n].interval(0.9))
        assert repr(again[n]) == repr(bn[n])
    assert again.log_likelihood() == bn.log_likelihood()
    assert sf.read(tmp_path / "bn.json").query("y", {"x": 0.0}).probs == pytest.approx(bn.query("y", {"x": 0.0}).probs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(family="Cauchy"), "the regression 'Cauchy' of 'g' is not known"),
        (lambda d: d.update(terms=["x"]), "the terms of 'g'"),
        (lambda d: d.update(dispersion=-1.0), "dispersion of 'g' must be above 0"),
        (lambda d: d["fitted"].update(covariance=[1.0]), "the covariance of 'g' has 1 numbers, and needs 9"),
        (lambda d: d.update(coefficients=[1.0, "inf"]), "coefficients of 'g' must be finite"),
        (lambda d: d.pop("options"), "incomplete or damaged"),
        (lambda d: d.update(options={"magic": 1}), "incomplete or damaged"),
        (lambda d: d.update(type="logistic"), "'logistic', which does not fit"),
    ],
)
def test_damaged_files(fitted: Any, change: Any, message: str) -> None:
    d = json.loads(write(fitted[0]))
    change(d["cpds"]["g"])
    with pytest.raises(sf.SufficeError, match=message):
        model_in(json.dumps(d), ".json")


def test_other_formats(tmp_path: Any) -> None:
    u, y = Regression(sf.regressions.Probit(), 0.5, {"z=b": 1.0}), Regression(sf.Logistic(), [0.0, 1.0], {"z=b": [1, 2]})
    cpds = {"z": [0.4, 0.6], "u": u, "y": y}
    bn = sf.BayesNet("z -> u; z -> y", cpds, [Z, U, Y])
    with pytest.warns(SufficeNote, match="keeps a table of 'u', but not the regression"):
        sf.write(bn, tmp_path / "bn.bif")
    again = sf.read(tmp_path / "bn.bif")
    assert again["u"].probs[:, 1] == pytest.approx(stats.norm.cdf([0.5, 1.5]))
    assert again.query("z", {"y": "r"}).probs == pytest.approx(bn.query("z", {"y": "r"}).probs)
    with pytest.raises(sf.SufficeError, match=r"holds only finite variables, and 'x' is none; write \.json"):
        sf.write(
            sf.BayesNet("x -> u", {"x": sf.Gaussian(), "u": Regression(sf.regressions.Probit(), 0.5)}, [U]), tmp_path / "no.bif"
        )


def test_ordered_states(tmp_path: Any) -> None:
    """p(y ≤ k) = F(cut − 0.8x + [z=b]): with x observed a table over z."""
    cpds = {"x": sf.Gaussian(), "z": [0.4, 0.6], "y": Regression(ProportionalOdds(), [-1.0, 0.5], {"x": 0.8, "z=b": -1.0})}
    bn = sf.BayesNet("x -> y; z -> y", cpds, [Z, Y])
    ends = np.array([[expit(cut - 0.8 * 1.5 + shift) for cut in (-1.0, 0.5)] for shift in (0.0, 1.0)])
    table = np.diff(ends, axis=1, prepend=0.0, append=1.0)
    assert bn.query("y", {"x": 1.5}).probs == pytest.approx(np.array([0.4, 0.6]) @ table)
    assert bn.query("z", {"x": 1.5, "y": "q"}).probs[0] == pytest.approx(0.4 * table[0, 1] / (np.array([0.4, 0.6]) @ table[:, 1]))
    with pytest.raises(ModelError, match="'y', a proportional odds regression on the number 'x'"):
        bn.query("z", {"y": "p"})
    drawn = bn.query("y", method=sf.methods.LikelihoodWeighting(50_000))
    x = np.linspace(-9, 9, 20_001)
    low = sum(w * expit(-1.0 - 0.8 * x + s) for w, s in ((0.4, 0.0), (0.6, 1.0))) @ stats.norm.pdf(x) * (x[1] - x[0])
    assert abs(drawn["p"] - low) < 4 * drawn.error[0]
    assert bn.do({"x": 1.5}).query("y").probs == pytest.approx(bn.query("y", {"x": 1.5}).probs)
    fitted = sf.fit(bn, bn.sample(500, seed=0))
    sf.write(fitted, tmp_path / "bn.json")
    again = sf.read(tmp_path / "bn.json")
    assert again == fitted == pickle.loads(pickle.dumps(fitted))
    assert again != bn
    assert np.array_equal(again["y"].interval(), fitted["y"].interval())
    assert write(again) == write(fitted)
    with pytest.raises(sf.SufficeError, match="must be 2 numbers"):
        sf.BayesNet("x -> y", {"x": sf.Gaussian(), "y": Regression(ProportionalOdds(), 0.0)}, [Y])


def test_a_missing_column_of_a_logistic_regression_is_summed_out() -> None:
    """Finite parents that are missing, numbers that are not: p(y | x) = Σ p(z) p(y | x, z)."""
    y, x = sf.Finite("y", ["no", "yes"]), sf.Real("x")
    cpd = RegressionCpd(y, (Z, x), Logistic(), [0.3], [[-1.0, 0.8]])
    bn = sf.BayesNet("x -> y; z -> y", {"x": sf.Gaussian(), "z": [0.4, 0.6], "y": cpd}, [x, y, Z])
    numbers = np.linspace(-3, 3, 7)
    expected = 0.4 * expit(0.3 + 0.8 * numbers) + 0.6 * expit(-0.7 + 0.8 * numbers)
    assert bn.predict_proba({"x": numbers}, "y")["yes"] == pytest.approx(expected)
    assert [bn.query("y", {"x": v})["yes"] for v in numbers] == pytest.approx(list(expected))
