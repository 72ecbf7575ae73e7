"""Laws of all distributions that can be nodes, over their registry: what holds of one holds of each, by name."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize, special, stats

import suffice as sf
import suffice.numerics.exponential as ef
from suffice.basis.registry import every as registered
from suffice.errors import FitError, SufficeError
from suffice.families.chosen.exponential_node import ExponentialCpd, ExponentialNode
from suffice.families.chosen.node_kinds import distribution_of

CONSTANTS = {"binomial": {"n": 9}, "negative-binomial": {"size": 2.5}}
PARAMETERS = {
    "poisson-rate": [[0.7], [3.0]],
    "exponential": [[0.5], [4.0]],
    "geometric": [[0.3], [0.8]],
    "binomial": [[0.2], [0.7]],
    "negative-binomial": [[0.3], [0.6]],
    "gamma": [[0.8, 2.0], [5.0, 0.5]],
    "beta": [[0.7, 2.0], [5.0, 3.0]],
}
PAIRS = ("gamma", "beta")
GRAPH = "u -> x"
seeds = st.integers(0, 10**6)
every = pytest.mark.parametrize("word", registered("distributions"))


def distribution(word: str) -> Any:
    return distribution_of(word, CONSTANTS.get(word, {}))


def truth(word: str) -> ExponentialCpd:
    family = ExponentialNode(distribution(word))
    return ExponentialCpd(family.variable("x"), (sf.Finite("u", ["a", "b"]),), PARAMETERS[word])


def rows(word: str, n: int = 60, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    u = np.arange(n) % 2
    x = truth(word).draw({"u": u}, rng, n)
    return {"u": [("a", "b")[i] for i in u], "x": x.tolist()}


def prior(word: str) -> tuple[Any, ...]:
    """A prior whose imagined rows are inside what is possible, whatever the data."""
    members = truth(word).family.member(np.array(PARAMETERS[word][1]))
    return sf.BDeu(1), sf.priors.Conjugate(2.0, members)


def fitted(word: str, data: Any, **options: Any) -> sf.BayesNet:
    return sf.fit(GRAPH, data, families={"x": distribution(word)}, **options)


def test_the_registry_is_covered() -> None:
    assert set(PARAMETERS) == set(registered("distributions"))


@every
@given(seeds)
@settings(max_examples=8)
def test_the_log_likelihood_of_the_statistic_is_that_of_the_rows(word: str, seed: int) -> None:
    data = rows(word, seed=seed)
    bn = fitted(word, data)
    assert bn.log_likelihood(bn.summary(data)) == pytest.approx(bn.log_prob(data).sum(), rel=1e-11, abs=1e-9)
    best = sf.score(GRAPH, data, sf.LogLikelihood(), families={"x": distribution(word)})
    assert best == pytest.approx(bn.log_prob(data).sum(), rel=1e-11, abs=1e-9)


@every
@given(seeds)
@settings(max_examples=6)
def test_the_estimate_is_where_the_likelihood_is_highest(word: str, seed: int) -> None:
    data = rows(word, seed=seed)
    bn = fitted(word, data)
    cpd, columns = bn["x"], {"u": np.arange(60) % 2, "x": np.array(data["x"])}
    best = cpd.log_prob(columns).sum()
    for step in (1.001, 1.0 / 1.001):
        for j in range(cpd.parameters.shape[-1]):
            moved = cpd.parameters.copy()
            moved[..., j] = np.minimum(moved[..., j] * step, 1.0 if cpd.family.names == ("p",) else np.inf)
            assert ExponentialCpd(cpd.child, cpd.parent_variables, moved).log_prob(columns).sum() <= best + 1e-9


@every
def test_the_estimate_is_that_of_scipy(word: str) -> None:
    """Maximum likelihood by scipy's own search: of one parameter over all, of gamma and beta by `fit`."""
    data = rows(word, 400)
    cpd = fitted(word, data)["x"]
    x = np.array(data["x"])[::2]
    kind, mine = cpd.family.kind, cpd.parameters[0]
    if word == "gamma":
        shape, _, scale = stats.gamma.fit(x, floc=0)
        wanted = [shape, 1.0 / scale]
    elif word == "beta":
        a, b, _, _ = stats.beta.fit(x, floc=0, fscale=1)
        wanted = [a, b]
    else:
        low, high = (1e-6, 1.0 - 1e-9) if cpd.family.names == ("p",) else (1e-6, 100.0)
        logs = "logpmf" if kind.whole else "logpdf"

        def loss(p: float) -> float:
            return -float(getattr(kind.scipy(cpd.family.member(np.array([p]))), logs)(x).sum())

        wanted = [optimize.minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x]
    tolerance = 1e-5 if word not in ("gamma", "exponential") else 1e-7  # how far scipy's own search goes
    assert mine == pytest.approx(wanted, rel=tolerance)
    slope = cpd.family.member(mine).gradient() - np.mean([cpd.family.distribution.sufficient(v) for v in x], axis=0)
    assert np.abs(slope).max() < 1e-8 * (1.0 + np.abs(x).max())


@every
def test_densities_are_those_of_scipy(word: str) -> None:
    cpd = truth(word)
    x = np.array([float(v) for v in rows(word, 40)["x"]])
    for g in (0, 1):
        theirs = cpd.family.kind.scipy(cpd.family.member(cpd.parameters[g]))
        mine = cpd.log_prob({"u": np.full(len(x), g), "x": x})
        assert mine == pytest.approx((theirs.logpmf if cpd.child.whole else theirs.logpdf)(x), rel=1e-10, abs=1e-10)
        assert cpd.means[g] == pytest.approx(theirs.mean(), rel=1e-10)
        assert cpd.variances[g] == pytest.approx(theirs.var(), rel=1e-10)
        again = cpd.family.kind.from_moments(cpd.family.distribution, cpd.means[g : g + 1], cpd.variances[g : g + 1])
        assert cpd.family.parameters_of(again)[0] == pytest.approx(cpd.parameters[g], rel=1e-12)


@every
def test_means_of_derived_columns_are_those_of_draws(word: str) -> None:
    cpd = truth(word)
    for derived in cpd.family.needs(cpd.child, []).derived:
        for g in (0, 1):
            theirs = cpd.family.kind.scipy(cpd.family.member(cpd.parameters[g]))
            if cpd.child.whole:
                x = np.arange(10 if word == "binomial" else 2000.0)
                wanted = float(theirs.pmf(x) @ derived.values(x))
            else:
                wanted = integrate.quad(lambda v: theirs.pdf(v) * derived.values(v), *theirs.support(), limit=500)[0]  # noqa: B023
            assert cpd.mean_of(derived)[g] == pytest.approx(wanted, rel=1e-6, abs=1e-8)


@every
@given(seeds)
@settings(max_examples=4)
def test_rows_in_any_order_weights_and_parts(word: str, seed: int) -> None:
    data = rows(word, seed=seed)
    rng = np.random.default_rng(seed)
    order, times = rng.permutation(60), rng.integers(1, 4, 60)
    one = fitted(word, data, prior=prior(word))["x"].parameters
    turned = {n: [column[i] for i in order] for n, column in data.items()}
    assert fitted(word, turned, prior=prior(word))["x"].parameters == pytest.approx(one, rel=1e-12)
    repeated = {n: np.repeat(column, times).tolist() for n, column in data.items()}
    weighted = sf.scan({**data, "w": times.tolist()}, weights="w")
    assert fitted(word, weighted, prior=prior(word))["x"].parameters == pytest.approx(
        fitted(word, repeated, prior=prior(word))["x"].parameters, rel=1e-12
    )
    variables = {"x": ExponentialNode(distribution(word)).variable("x")}
    parts = [{n: column[i::3] for n, column in data.items()} for i in range(3)]
    seen = sum(sf.gather(sf.scan(part, variables=variables), GRAPH) for part in parts)
    assert fitted(word, seen, prior=prior(word))["x"].parameters == pytest.approx(one, rel=1e-12)


@every
def test_the_evidence_obeys_the_chain_rule(word: str) -> None:
    """p(all) = p(first) p(rest | first): the posterior of some rows is the prior of the others."""
    data = rows(word, 20)
    family = ExponentialNode(distribution(word))
    x, u = family.variable("x"), sf.Finite("u", ["a", "b"])
    sets = [{n: column[s] for n, column in data.items()} for s in (slice(0, 8), slice(8, None), slice(None))]
    first, rest, whole = (sf.gather(sf.scan(s, variables={"x": x}), GRAPH).answer(family.needs(x, [u])) for s in sets)
    imagined = prior(word)[1].bind({"x": x}, None).imagine(x, [u])
    stepwise = family.log_evidence(x, first, imagined) + family.log_evidence(x, rest, imagined + first)
    assert family.log_evidence(x, whole, imagined) == pytest.approx(stepwise, rel=1e-10, abs=1e-9)


@every
def test_the_evidence_is_the_integral(word: str) -> None:
    """ln ∫ p(rows | θ) p(θ) dθ by quadrature over the parameters, p(θ) being what the imagined rows leave behind; of two by
    the trapezoidal rule over their logarithms, whose steps cancel."""
    data = {n: column[:10:2] for n, column in rows(word, 10).items()}
    family = ExponentialNode(distribution(word))
    x = family.variable("x")
    seen = sf.gather(sf.scan({"x": data["x"]}, variables={"x": x}), "x").answer(family.needs(x, []))
    imagined = prior(word)[1].bind({"x": x}, None).imagine(x, [])
    count, total, _ = family.sums(x, imagined.at(np.array([0])))
    values = np.array(data["x"])
    if word in PAIRS:
        peak = family.distribution.from_mean(total[0] / count[0])
        mode = np.log(np.array(peak._parameters()))
        ahead, v = np.meshgrid(*(np.linspace(at - 6.0, at + 6.0, 241) for at in (mode[0] - mode[1], mode[0])))
        member = type(peak)(np.exp(v), np.exp(v - ahead))
        logs = -float(count[0]) * peak.kl(member) + 2.0 * v - ahead
        likelihood = sum(member.log_prob(value) for value in values)
        wanted, tolerance = special.logsumexp(logs + likelihood) - special.logsumexp(logs), 1e-5
    else:
        belief: Any = family.kind.belief(family.distribution, count, total)
        end = 1.0 if family.names == ("p",) else np.inf

        def density(p: float) -> float:
            logs = belief.log_prob(np.array([p]))[0] + family.member(np.array([p])).log_prob(values).sum()
            return float(np.exp(logs))

        wanted, tolerance = np.log(integrate.quad(density, 0.0, end, epsabs=0.0, epsrel=1e-10, limit=500)[0]), 1e-8
    assert family.log_evidence(x, seen, imagined) == pytest.approx(wanted, abs=tolerance)


@every
def test_intervals_and_draws_agree(word: str) -> None:
    cpd = fitted(word, rows(word), prior=prior(word))["x"]
    drawn = cpd._draw_parameters(40_000, np.random.default_rng(0))["parameters"]
    for j, (lower, upper) in enumerate(cpd.interval(0.9).values()):
        low, high = np.quantile(drawn[..., j], [0.05, 0.95], axis=0)
        width = upper - lower
        assert (np.abs(low - lower) < 0.03 * width).all()
        assert (np.abs(high - upper) < 0.03 * width).all()
        assert (lower < cpd.parameters[..., j]).all()
        assert (cpd.parameters[..., j] < upper).all()


@every
def test_saved_and_read_again(word: str, tmp_path: Path) -> None:
    data = rows(word)
    bn = fitted(word, data, prior=prior(word))
    sf.write(bn, tmp_path / "bn.json")
    again = sf.read(tmp_path / "bn.json")
    assert again == bn
    assert again.variables == bn.variables
    assert again["x"].interval().keys() == bn["x"].interval().keys()
    assert again.update(data)["x"].parameters == pytest.approx(bn.update(data)["x"].parameters, rel=1e-14)
    assert pickle.loads(pickle.dumps(bn)) == bn
    seen = sf.gather(bn.rows(data), GRAPH)
    seen.save(tmp_path / "rows.stats")
    read = sf.Statistics.load(tmp_path / "rows.stats")
    assert fitted(word, read, prior=prior(word))["x"].parameters == pytest.approx(bn["x"].parameters, rel=1e-14)


@every
def test_questions_agree_with_enumeration(word: str) -> None:
    """p(u | x) by Bayes, p(x) as the mixture over u, and rows as they are drawn."""
    cpd = truth(word)
    bn = sf.BayesNet(GRAPH, {"u": [0.3, 0.7], "x": cpd}, [sf.Finite("u", ["a", "b"]), cpd.child])
    value = float(rows(word)["x"][1])
    logs = cpd.log_prob({"u": np.array([0, 1]), "x": np.array([value, value])})
    joint = np.array([0.3, 0.7]) * np.exp(logs)
    assert bn.query("u", {"x": value}).probs == pytest.approx(joint / joint.sum(), rel=1e-11)
    answer = bn.query("x")
    assert np.exp(answer.log_prob(value)) == pytest.approx(joint.sum(), rel=1e-11)
    assert answer.mean == pytest.approx(np.array([0.3, 0.7]) @ cpd.means, rel=1e-12)
    lower, upper = answer.interval(0.9)
    assert answer.cdf(upper) >= 0.95 - 1e-9
    assert lower <= answer.quantile(0.5) <= upper
    assert bn.marginals()["x"].mean == pytest.approx(answer.mean, rel=1e-12)
    table = {"u": ["a", "b", None], "x": [None, value, value]}
    assert bn.log_prob(table)[1:] == pytest.approx([np.log(joint[1]), np.log(joint.sum())], rel=1e-11)
    assert bn.predict({"u": ["a", "b"], "x": [None, None]}, "x") == pytest.approx(cpd.means, rel=1e-12)
    filled = bn.impute(table, seed=0)
    assert filled["u"][2] == ("a", "b")[int(np.argmax(joint))]
    drawn = bn.sample(4000, seed=1)
    x = np.asarray(drawn["x"], dtype=float)
    assert abs(x.mean() - answer.mean) < 6.0 * answer.sd / np.sqrt(4000)


@every
def test_em_climbs_and_complete_rows_need_one_step(word: str) -> None:
    data = rows(word, 80)
    hidden = {"x": data["x"], "v": [("c", "d")[i % 3 > 0] for i in range(80)]}
    options: dict[str, Any] = {"families": {"x": distribution(word)}, "hidden": [sf.Finite("h", ["0", "1"])], "starts": 3}
    for how in (None, (sf.Dirichlet(1), sf.priors.Conjugate(1, prior(word)[1].mean))):
        run = sf.em("h -> x; h -> v", hidden, prior=how, max_iter=40, **options)
        objective = np.array([t.objective for t in run.trace])
        assert (np.diff(objective) > -1e-7 * np.abs(objective[:-1])).all()
    gaps = {"u": [None if i % 5 == 0 else v for i, v in enumerate(data["u"])], "x": [*data["x"][:-1], None]}
    assert np.isfinite(sf.fit(GRAPH, gaps, families={"x": distribution(word)})["x"].parameters).all()
    complete = sf.em(GRAPH, data, families={"x": distribution(word)}).model["x"].parameters
    assert complete == pytest.approx(fitted(word, data)["x"].parameters, rel=1e-9)


@every
def test_search_finds_the_parent(word: str) -> None:
    data = rows(word, 600) | {"w": [("s", "t")[i // 2 % 2] for i in range(600)]}
    for score in (sf.BIC(), sf.Evidence((sf.BDeu(1), sf.priors.Conjugate(1)))):
        found = sf.search(data, score, families={"x": distribution(word)})
        assert found.dag.parents("x") == ("u",)
        parts = sf.score(found.dag, data, score, families={"x": distribution(word)})
        assert found.score == pytest.approx(parts, rel=1e-9)


@every
def test_values_that_cannot_be_are_named(word: str) -> None:
    data = rows(word, 10)
    data["x"][3] = -1.0
    with pytest.raises(SufficeError, match=r"(row 4|line 4|row 5).*-1\.0|'x'.*-1\.0") as told:
        fitted(word, data)
    assert "'x'" in str(told.value)
    bn = fitted(word, rows(word))
    with pytest.raises(SufficeError, match="cannot be -1"):
        bn.query("u", {"x": -1.0})


def test_the_conjugate_prior_itself_is_a_prior() -> None:
    """Gamma(a, b) of an exponential rate, Beta(a, b) of the others: what `prior + statistic` gives is the posterior."""
    cases = {"exponential": ef.Gamma(2.0, 3.0), "geometric": ef.Beta(1.5, 2.0), "binomial": ef.Beta(1.0, 2.0)}
    for word, own in {**cases, "negative-binomial": ef.Beta(2.0, 0.5)}.items():
        data = {"x": rows(word, 30)["x"]}
        cpd = sf.fit("x", data, families={"x": distribution(word)}, prior={"x": own})["x"]
        statistic = distribution(word).statistic(data["x"])
        posterior = own + statistic
        assert [float(end) for end in cpd.interval(0.9)[cpd.family.names[0]]] == pytest.approx(posterior.interval(0.9), rel=1e-9)
        assert float(cpd.parameters[0]) == pytest.approx(posterior.mean, rel=1e-12)
        score = sf.score("x", data, sf.Evidence({"x": own}), families={"x": distribution(word)})
        assert score == pytest.approx(own.log_evidence(statistic), rel=1e-10)
    with pytest.raises(FitError, match="says nothing about"):
        sf.fit("x", {"x": [1.0, 2.5, 0.5]}, families={"x": ef.Gamma()}, prior={"x": ef.Beta(1.0, 1.0)})


def test_poisson_as_a_chosen_distribution_is_that_of_a_count() -> None:
    data = rows("poisson-rate", 50)
    chosen = fitted("poisson-rate", data)
    plain = sf.fit(GRAPH, sf.scan(data, variables={"x": sf.Count}))
    assert chosen["x"].rate == pytest.approx(plain["x"].rates, rel=1e-14)
    assert chosen.log_prob(data) == pytest.approx(plain.log_prob(data), rel=1e-12)
