"""Counts with finite parents: the Poisson family by its laws, by scipy, and by brute force in networks."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import suffice as sf
from suffice.families import family_of
from suffice.families.by_hand import Rates
from suffice.families.chosen.exponential_node import PoissonNode, PoissonRates
from suffice.families.priors.priors import Gamma
from suffice.models.questions.densities import PoissonParts
from suffice.models.questions.mixture import Mixture
from suffice.statistics import Moments
from suffice.statistics.counts import log_factorials

U, W, N = sf.Finite("u", ["a", "b"]), sf.Finite("w", ["p", "q", "r"]), sf.Count("n")
seeds = st.integers(0, 2**32 - 1)


def table(seed: int, n: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    u, w = rng.integers(0, 2, n), rng.integers(0, 3, n)
    counts = rng.poisson(0.2 + 4.0 * u + w * u)
    return {"u": np.array(U.states)[u], "w": np.array(W.states)[w], "n": counts}


def rows(seed: int, n: int = 60, **options: Any) -> sf.Data:
    return sf.scan(table(seed, n), variables={"u": U, "w": W, "n": N}, **options)


def statistic(data: Any) -> Moments:
    return sf.gather(data, {"n": ["u", "w"]}).moments(["u", "w"], ["n"])


# Laws; those of all families are in tests/laws/test_family_laws.py


@settings(max_examples=20, deadline=None)
@given(seed=seeds)
def test_statistics_add_and_take_away(seed: int) -> None:
    a, b = sf.gather(rows(seed, 50), {"n": ["u", "w"]}), sf.gather(rows(seed + 1, 30), {"n": ["u", "w"]})
    both = {k: np.concatenate([x, y]) for (k, x), y in zip(table(seed, 50).items(), table(seed + 1, 30).values(), strict=True)}
    whole = statistic(sf.scan(both, variables={"u": U, "w": W, "n": N}))
    total = (a + b).moments(["u", "w"], ["n"])
    assert total.derived == log_factorials(["n"])
    assert np.array_equal(total.keys, whole.keys)
    for part in ("count", "mean", "sums"):
        assert getattr(total, part) == pytest.approx(getattr(whole, part), rel=1e-12)
    left = ((a + b) - b).moments(["u", "w"], ["n"])
    assert left.sums == pytest.approx(a.moments(["u", "w"], ["n"]).sums, rel=1e-9, abs=1e-9)
    marginal = whole.marginal(["u"], ["n"])
    assert marginal.sums.sum() == pytest.approx(whole.sums.sum(), rel=1e-12)


def test_evidence_is_the_integral_over_the_rate() -> None:
    data = sf.scan({"n": [0, 3, 5, 2]}, variables={"n": N})
    a, b = 1.7, 0.4
    rates = np.linspace(1e-9, 60.0, 400_001)
    density = stats.gamma.pdf(rates, a, scale=1 / b) * np.prod([stats.poisson.pmf(n, rates) for n in (0, 3, 5, 2)], axis=0)
    expected = np.log(np.trapezoid(density, rates))
    assert sf.score(sf.Dag({"n": []}), data, sf.Evidence(Gamma(a, b))) == pytest.approx(expected, rel=1e-8)


def test_densities_are_those_of_scipy() -> None:
    cells, t = sf.fit({"n": ["u", "w"]}, rows(1))["n"], table(1)
    codes = {"u": [U.code(x) for x in t["u"]], "w": [W.code(x) for x in t["w"]]}
    exact = stats.poisson.logpmf(t["n"], cells.rates[codes["u"], codes["w"]])
    assert cells.log_prob({**codes, "n": t["n"]}) == pytest.approx(exact)


def test_posterior_mean_mode_interval_and_predictive() -> None:
    data = sf.scan({"n": [1, 4, 2, 3]}, variables={"n": N})
    bn = sf.fit({"n": []}, data, prior=Gamma(2.0, 0.5))
    posterior = stats.gamma(12.0, scale=1 / 4.5)
    assert float(bn["n"].rates) == pytest.approx(posterior.mean())
    assert float(sf.fit({"n": []}, data, prior=Gamma(2.0, 0.5), estimate=sf.Mode())["n"].rates) == pytest.approx(11 / 4.5)
    assert np.array(bn["n"].interval(0.9)) == pytest.approx(np.array(posterior.ppf([0.05, 0.95])), rel=1e-9)
    p = bn["n"].predictive()
    assert (p.mean, p.variance) == pytest.approx(stats.nbinom.stats(12.0, 4.5 / 5.5))
    assert p.interval(0.9) == stats.nbinom.interval(0.9, 12.0, 4.5 / 5.5)


def test_many_blocks_of_rows_add_up(tmp_path: Path) -> None:
    n = 40_000
    data = table(5, n)
    path = tmp_path / "rows.csv"
    lines = [f"{u},{w},{x}" for u, w, x in zip(data["u"], data["w"], data["n"], strict=True)]
    path.write_text("\n".join(["u,w,n", *lines]))
    variables = {"u": U, "w": W, "n": N}
    held, streamed = statistic(sf.scan(data, variables=variables)), statistic(sf.scan(path, variables=variables))
    assert held.sums.sum() == pytest.approx(-stats.poisson.logpmf(data["n"], 1.0).sum() - n, rel=1e-10)
    assert np.array_equal(held.sums, streamed.sums)
    assert np.array_equal(held.mean, streamed.mean)


# What a user meets


def test_an_unseen_configuration_has_no_rate_without_a_prior() -> None:
    data = sf.scan({"u": ["a", "a"], "n": [1, 2]}, variables={"u": U, "n": N})
    bn = sf.fit("u -> n", data)
    assert bn["n"].rates[0] == 1.5
    assert np.isnan(bn["n"].rates[1])
    assert bn["n"].unsupported.tolist() == [False, True]
    assert "none seen" in repr(bn["n"])
    with pytest.raises(sf.SufficeError, match="'n' has no rate at u='b'"):
        bn.log_prob({"u": ["b"], "n": [1]})
    with pytest.raises(sf.SufficeError, match="no posterior"):
        bn["n"].interval()
    assert bn.query("u", given={"n": 1})["a"] == 1.0  # u = b is impossible under the maximum likelihood estimate
    written = sf.BayesNet("u -> n", {"u": [0.5, 0.5], "n": bn["n"]}, [U, N])
    with pytest.raises(sf.SufficeError, match="'n' has no parameters at u='b'"):
        written.query("u", given={"n": 1})
    assert sf.fit("u -> n", data, prior=(sf.BDeu(1), Gamma()))["n"].rates[1] == pytest.approx(1.5)


def test_refusals_say_what_to_do() -> None:
    data = rows(0)
    with pytest.raises(sf.SufficeError, match=r"the count 'n' has the parent 'x', a number, .* Poisson regression"):
        family_of(N, [U, sf.Real("x")])
    with pytest.raises(sf.SufficeError, match="the posterior of the rate of 'n' has no mode"):
        sf.fit({"n": []}, sf.scan({"n": [0, 0]}, variables={"n": N}), prior=Gamma(0.5), estimate=sf.Mode())
    with pytest.raises(sf.SufficeError, match="says nothing about 'n'"):
        sf.score({"n": ["u"]}, data, sf.Evidence((sf.BDeu(1), sf.BGe())))
    with pytest.raises(sf.SufficeError, match=r"score \(BDeu, NormalInverseGamma\) says nothing about 'n'"):
        sf.score({"n": ["u"]}, data, sf.Evidence((sf.BDeu(1), sf.NormalInverseGamma())))
    with pytest.raises(sf.SufficeError, match="do not hold Σ ln n!"):
        PoissonNode().log_likelihood(N, Moments((), ("n",), [0], [2.0], [[1.0]], [[[0.0]]], derived=log_factorials(["n"])))
    with pytest.raises(sf.SufficeError, match="shape of Gamma must be a positive number"):
        Gamma(-1.0)
    for bad in (-1, 2.5):
        with pytest.raises(sf.SufficeError, match="is not a count"):
            sf.gather(sf.scan({"n": [1, bad]}, variables={"n": N}), {"n": []})
    for rates, wrong in (([1.0, -1.0], "from 0 up"), ([1.0], "need the shape"), ("many", "must be numbers"), (np.nan, "NaN")):
        with pytest.raises(sf.SufficeError, match=wrong):
            sf.BayesNet("u -> n", {"u": [0.5, 0.5], "n": Rates(rates)}, [U])
    with pytest.raises(sf.SufficeError, match="'n' is a Count and needs Rates, not a Gaussian"):
        sf.BayesNet({"n": []}, {"n": sf.Gaussian()}, [N])
    with pytest.raises(sf.SufficeError, match="'u' is finite and needs a table, not rates"):
        sf.BayesNet({"u": []}, {"u": Rates(1.0)}, [U])


def test_the_default_gamma_expects_the_mean_of_the_data() -> None:
    bn = sf.fit({"n": ["u"], "u": []}, rows(2), prior=(sf.BDeu(1), Gamma(3.0)))
    gamma = bn.prior.priors[1]
    assert 3.0 / gamma.rate["n"] == pytest.approx(table(2)["n"].mean())
    assert sf.NormalInverseGamma(mean=0.0, variance=1.0).imagine(N, []) is None


def test_it_is_written_pickled_and_saved(tmp_path: Path) -> None:
    bn = sf.fit({"n": ["u", "w"]}, rows(7, 30), prior=(sf.BDeu(1), Gamma()))
    sf.write(bn, tmp_path / "bn.json")
    for other in (sf.read(tmp_path / "bn.json"), pickle.loads(pickle.dumps(bn))):
        assert np.array_equal(other["n"].rates, bn["n"].rates)
        assert np.array_equal(other["n"].interval(), bn["n"].interval())
        assert other.log_likelihood() == bn.log_likelihood()
        assert other.variables["n"] == N
    unfinished = sf.fit({"n": ["u"]}, sf.scan({"u": ["a"], "n": [4]}, variables={"u": U, "n": N}))
    sf.write(unfinished, tmp_path / "mle.json")
    assert np.isnan(sf.read(tmp_path / "mle.json")["n"].rates[1])
    bn.statistics.save(tmp_path / "n.stats")
    loaded = sf.Statistics.load(tmp_path / "n.stats")
    assert loaded == bn.statistics
    assert loaded.variables["n"] == N
    assert list(bn["n"].to_frame()) == ["u", "w", "rate", "unsupported", "lower", "upper"]
    assert "<table" in bn["n"]._repr_html_()
    assert "count" in repr(bn)


def test_a_search_finds_what_the_count_depends_on() -> None:
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 2, 2000), rng.integers(0, 2, 2000)
    data = sf.scan({"u": u, "v": v, "n": rng.poisson(1.0 + 3.0 * u)}, variables={"u": ["0", "1"], "v": ["0", "1"], "n": N})
    for score in (sf.BIC(), sf.Evidence((sf.BDeu(1), Gamma()))):
        assert set(sf.search(data, score=score).dag.edges) == {("u", "n")}


def test_samples_are_whole_numbers_of_the_right_rate() -> None:
    bn = sf.BayesNet("u -> n", {"u": [0.5, 0.5], "n": Rates([0.0, 7.5])}, [U])
    drawn = bn.sample(70_000, seed=3)
    assert str(drawn.schema.field("n").type) == "int64"
    u, n = np.array(drawn["u"].to_pylist()), drawn["n"].to_numpy()
    assert not n[u == "a"].any()
    assert n[u == "b"].mean() == pytest.approx(7.5, abs=0.06)
    assert n[u == "b"].var() == pytest.approx(7.5, abs=0.3)
    assert sf.fit("u -> n", sf.scan(drawn, variables={"n": N}))["n"].rates[0] == 0.0


# Inference, by brute force


def random_net(seed: int, zeros: bool = False) -> sf.BayesNet:
    """Three finite variables, two counts below them, and a real below a count and a finite variable."""
    rng = np.random.default_rng(seed)
    finite = [sf.Finite(f"c{i}", [f"s{k}" for k in range(rng.integers(1, 4))]) for i in range(3)]
    names = [v.name for v in finite]
    parents: dict[str, list[str]] = {n: [p for p in names[:i] if rng.random() < 0.5] for i, n in enumerate(names)}
    parents |= {m: [p for p in names if rng.random() < 0.5] for m in ("m", "n")} | {"y": ["c0", "n"]}
    size = {v.name: v.n_states for v in finite}
    cpds: dict[str, Any] = {}
    for name in names:
        cells = rng.gamma(0.7, size=[*(size[p] for p in parents[name]), size[name]]) + 1e-3
        cpds[name] = cells / cells.sum(-1, keepdims=True)
    for name in ("m", "n"):
        rates = rng.gamma(1.0, 4.0, size=[size[p] for p in parents[name]])
        cpds[name] = Rates(rates * (rng.random(rates.shape) < 0.7) if zeros else rates)
    k = size["c0"]
    cpds["y"] = sf.Gaussian(rng.normal(size=k), {"n": rng.normal(size=k)}, rng.gamma(2.0, size=k) + 0.1)
    return sf.BayesNet(sf.Dag(parents), cpds, finite)


def brute(bn: sf.BayesNet, seen: dict[str, Any]) -> tuple[dict[tuple[str, ...], float], list[str]]:
    """p(configuration of the finite variables, what is seen) by going through all; the names of the finite variables."""
    names = [n for n, v in bn.variables.items() if isinstance(v, sf.Finite)]
    answer = {}
    for states in itertools.product(*(bn.variables[n].states for n in names)):
        row = {**dict(zip(names, states, strict=True))}
        p = 1.0
        for n in names:
            p *= bn[n].probs[tuple(bn.variables[q].code(row[q]) for q in (*bn[n].parents, n))]
            p *= n not in seen or row[n] == seen[n]
        for n in [m for m in ("m", "n") if m in seen]:
            rate = bn[n].rates[tuple(bn.variables[q].code(row[q]) for q in bn[n].parents)]
            p *= stats.poisson.pmf(seen[n], rate)
        if "y" in seen:
            c = bn.variables["c0"].code(row["c0"])
            mean = bn["y"].intercept[c] + bn["y"].coefficients[c, 0] * seen["n"]
            p *= stats.norm.pdf(seen["y"], mean, np.sqrt(bn["y"].variance[c]))
        answer[states] = float(p)
    return answer, names


def some_evidence(bn: sf.BayesNet, seed: int) -> dict[str, Any]:
    drawn = bn.sample(1, seed=seed).to_pylist()[0]
    rng = np.random.default_rng(seed)
    kept = {n: x for n, x in drawn.items() if rng.random() < 0.5}
    return {n: x for n, x in kept.items() if n != "y" or "n" in kept}


@settings(max_examples=60, deadline=None)
@given(seed=seeds, zeros=st.booleans())
def test_questions_agree_with_brute_force(seed: int, zeros: bool) -> None:
    bn = random_net(seed, zeros)
    seen = some_evidence(bn, seed)
    p, names = brute(bn, seen)
    total = sum(p.values())
    assert bn.log_prob_of(seen) == pytest.approx(np.log(total), rel=1e-9, abs=1e-9)
    marginals = bn.marginals(seen) if "n" in seen else None
    for i, name in enumerate(names):
        expected = [sum(v for k, v in p.items() if k[i] == s) / total for s in bn.variables[name].states]
        if name not in seen:
            assert bn.query(name, given=seen).probs == pytest.approx(expected, abs=1e-12)
        if marginals is not None:
            assert marginals[name].probs == pytest.approx(expected, abs=1e-12)
    for count in [m for m in ("m", "n") if m not in seen]:
        rates = [bn[count].rates[tuple(bn.variables[q].code(k[names.index(q)]) for q in bn[count].parents)] for k in p]
        weights = np.array(list(p.values())) / total
        answer = bn.query(count, given=seen)
        mean = weights @ rates
        assert answer.mean == pytest.approx(mean, rel=1e-9)
        assert answer.variance == pytest.approx(weights @ (rates + (rates - mean) ** 2), rel=1e-9)
        assert answer[2] == pytest.approx(weights @ stats.poisson.pmf(2, rates), rel=1e-9, abs=1e-300)
        if marginals is not None:
            assert marginals[count].mean == pytest.approx(mean, rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, zeros=st.booleans())
def test_the_most_probable_states_agree_with_brute_force(seed: int, zeros: bool) -> None:
    bn = random_net(seed, zeros)
    drawn = bn.sample(1, seed=seed).to_pylist()[0]
    for seen in ({n: drawn[n] for n in ("m", "n", "y")}, {"m": drawn["m"]}):
        p, names = brute(bn, seen)
        best = bn.most_probable(seen, targets=names)
        assert p[tuple(best[n] for n in names)] == pytest.approx(max(p.values()), rel=1e-9)
        assert best.log_prob == pytest.approx(np.log(max(p.values())), rel=1e-9, abs=1e-9)
        assert best.log_prob_of_evidence == pytest.approx(np.log(sum(p.values())), rel=1e-9, abs=1e-9)


@settings(max_examples=15, deadline=None)
@given(seed=seeds)
def test_rows_are_predicted_as_they_are_queried(seed: int) -> None:
    bn = random_net(seed)
    drawn, rng = bn.sample(12, seed=seed).to_pylist(), np.random.default_rng(seed)
    frame: dict[str, list[Any]] = {n: [r[n] if rng.random() < 0.6 else None for r in drawn] for n in ("c1", "c2", "m", "n")}
    frame["y"] = [r["y"] if n is not None else None for r, n in zip(drawn, frame["n"], strict=True)]
    answer = bn.predict_proba(frame, "c0")
    best = bn.predict(frame, "c0")
    counts = bn.predict_proba({k: v for k, v in frame.items() if k not in ("m", "y")}, "m")
    for i in range(len(drawn)):
        seen = {n: column[i] for n, column in frame.items() if column[i] is not None}
        expected = bn.query("c0", given=seen)
        assert [answer[s][i] for s in expected] == pytest.approx(expected.probs, abs=1e-12)
        assert expected[best[i]] == pytest.approx(expected.probs.max())
        moments = bn.query("m", given={n: x for n, x in seen.items() if n not in ("m", "y")})
        assert (counts["mean"][i], counts["variance"][i]) == pytest.approx((moments.mean, moments.variance), rel=1e-9)


def test_impossible_counts_are_impossible() -> None:
    bn = sf.BayesNet("u -> n", {"u": [1.0, 0.0], "n": Rates([0.0, 2.0])}, [U])
    assert bn.log_prob_of({"n": 3}) == -np.inf
    with pytest.raises(sf.SufficeError, match="probability zero"):
        bn.query("u", given={"n": 3})
    with pytest.warns(sf.errors.SufficeNote, match="impossible under the network"):
        assert np.isnan(bn.predict_proba({"n": [3, 0]}, "u")["a"]).tolist() == [True, False]


def test_likelihoods_beyond_the_range_of_floats() -> None:
    """Two counts that speak for opposite states by e^−5000 each leave the prior odds, whatever the range of doubles."""
    bn = sf.BayesNet("u -> n; u -> m", {"u": [0.2, 0.8], "n": Rates([1.0, 9000.0]), "m": Rates([9000.0, 1.0])}, [U])
    seen = {"n": 2000, "m": 2000}
    assert bn.query("u", given=seen).probs == pytest.approx([0.2, 0.8], rel=1e-9)
    assert bn.predict_proba({"n": [2000], "m": [2000]}, "u")["a"] == pytest.approx([0.2], rel=1e-9)
    assert bn.log_prob_of(seen) == pytest.approx(stats.poisson.logpmf(2000, [1.0, 9000.0]).sum(), rel=1e-12)


def test_what_a_count_cannot_be_asked() -> None:
    bn = random_net(1)
    sentences: list[tuple[Any, str]] = [
        (lambda: bn.query("y"), "'n' is a count that is not observed"),
        (lambda: bn.query("c0", given={"y": 1.0}), "'n' is a count that is not observed"),
        (lambda: bn.marginals(), "'n' is a count that is not observed"),
        (lambda: bn.query(["n", "c0"]), "'n' is a count, which is asked for alone"),
        (lambda: bn.most_probable(), "is not searched for"),
        (lambda: bn.query("c0", given={"n": 2.5}), "'n' is a count, 0, 1, 2, ..., and cannot be 2.5"),
        (lambda: bn.query("n", method=sf.methods.Gibbs()), "Gibbs sampling does not know"),
        (lambda: bn.query("n", interval=0.9), "an interval cannot be found for answers that depend on the count 'n'"),
    ]
    for ask, sentence in sentences:
        with pytest.raises(sf.SufficeError, match=sentence):
            ask()


def test_likelihood_weighting_draws_counts() -> None:
    bn = sf.BayesNet("u -> n", {"u": [0.3, 0.7], "n": Rates([1.0, 5.0])}, [U])
    exact = bn.query("u", given={"n": 2})
    drawn = bn.query("u", given={"n": 2}, method=sf.methods.LikelihoodWeighting(40_000))
    assert drawn["a"] == pytest.approx(exact["a"], abs=6 * float(drawn.error[0]))
    assert bn.query("n", method=sf.methods.LikelihoodWeighting(40_000)).mean == pytest.approx(3.8, abs=0.1)


def test_an_intervention_on_a_count_moves_into_its_children() -> None:
    bn = random_net(1)
    set_to_three = bn.do({"n": 3})
    given_three = bn.query("y", given={"n": 3, "c0": "s0"})
    assert set_to_three.query("y", given={"c0": "s0"}).mean == pytest.approx(given_three.mean)


def test_a_mixture_of_counts() -> None:
    answer = Mixture(("n",), [0.4, 0.6], PoissonParts([0.5, 6.0]))
    probs = np.array([answer[k] for k in range(60)])
    assert probs.sum() == pytest.approx(1.0)
    assert answer.mean == pytest.approx(probs @ np.arange(60))
    assert answer.variance == pytest.approx(probs @ (np.arange(60) - answer.mean) ** 2)
    for q in (0.0, 0.1, 0.5, 0.9, 0.999):
        assert answer.quantile(q) == int(np.argmax(np.cumsum(probs) >= q))
    assert answer.interval(0.9) == (answer.quantile(0.05), answer.quantile(0.95))
    assert pickle.loads(pickle.dumps(answer)).parts.rates.tolist() == [0.5, 6.0]


def test_a_count_is_a_number_to_its_real_children() -> None:
    rng = np.random.default_rng(0)
    n = rng.poisson(3.0, 200)
    data = sf.scan({"n": n, "y": 1.0 + 2.0 * n + rng.normal(size=200)}, variables={"n": N})
    bn = sf.fit("n -> y", data, prior=(Gamma(), sf.NormalInverseGamma()))
    assert bn["y"].coefficients == pytest.approx([2.0], abs=0.1)
    assert bn.log_prob(data).sum() == pytest.approx(bn.log_likelihood(), rel=1e-12)
    assert bn.statistics.variables["n"] == N
    assert bn.update(data)["n"].interval().upper < bn["n"].interval().upper
    assert bn.query("y", given={"n": 4}).mean == pytest.approx(float(bn["y"].intercept + 4 * bn["y"].coefficients[0]))


def test_statistics_and_models_with_counts_that_0_1_wrote_are_read() -> None:
    """There Σ ln n! stood under the names of the columns that are counts."""
    reference = Path(__file__).parents[1] / "reference"
    rows = {"u": ["a", "b", "a", "b", "a"], "n": [0, 3, 2, 5, 1], "y": [0.5, 1.5, 1.0, 4.0, 0.0]}
    data = sf.scan(rows, variables={"n": sf.Count})
    seen = sf.Statistics.load(reference / "counts_0_1.stats")
    prior = (sf.BDeu(1), sf.NormalInverseGamma(), sf.priors.Gamma())
    new = sf.fit("u -> n; u -> y; n -> y", data, prior=prior)
    assert sf.fit("u -> n; u -> y; n -> y", seen, prior=prior) == new
    assert sf.score(new, seen, sf.Evidence(prior)) == pytest.approx(sf.score(new, data, sf.Evidence(prior)), rel=1e-14)
    old = sf.read(reference / "counts_0_1.json")
    assert old == new
    assert old.update(data)["n"].rates == pytest.approx(new.update(data)["n"].rates, rel=1e-14)


def test_rows_of_few_values_are_looked_up() -> None:
    """What is computed once for each value and configuration is, bit for bit, what is computed for each row."""
    rng = np.random.default_rng(4)
    u = np.arange(5000) % 3
    cpd = PoissonRates(sf.Count("n"), (sf.Finite("u", ["a", "b", "c"]),), np.array([0.7, 3.0, np.nan]))
    u[u == 2] = 0  # a configuration without a rate is no fault where no row has it
    n = rng.poisson(np.array([0.7, 3.0])[u]).astype(float)
    singly = np.concatenate([cpd.log_prob({"u": u[i : i + 5], "n": n[i : i + 5]}) for i in range(0, 5000, 5)])
    np.testing.assert_array_equal(cpd.log_prob({"u": u, "n": n}), singly)
    assert cpd.log_prob({"u": u, "n": np.where(n > 0, n, 0.5)})[n == 0] == pytest.approx(-np.inf)
