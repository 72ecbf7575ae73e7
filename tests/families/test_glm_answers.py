"""What networks answer about regressions: rows that lack a number, numbers as targets, intervals, and ways out of refusals."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

import suffice as sf
from suffice.errors import FitError, ModelError, SufficeNote
from suffice.families.by_hand import Regression
from suffice.families.regressions.logistic import ProportionalOdds

Z, U = sf.Finite("z", ["a", "b"]), sf.Finite("u", ["no", "yes"])
Y = sf.Finite("y", ["p", "q", "r"])


@pytest.fixture(scope="module")
def bn() -> sf.BayesNet:
    """z -> x -> u -> w, z -> u: a logistic regression on a number, with a number and a state below it."""
    cpds = {
        "z": [0.3, 0.7],
        "x": sf.Gaussian([0.0, 1.0], variance=[1.0, 2.0]),
        "u": Regression(sf.Logistic(), [-0.5], {"x": [1.2], "z=b": [0.4]}),
        "w": sf.Gaussian([0.0, 2.0], variance=[1.0, 1.0]),
        "v": [[0.9, 0.1], [0.2, 0.8]],
    }
    graph = {"x": ["z"], "u": ["x", "z"], "w": ["u"], "v": ["u"], "z": []}
    return sf.BayesNet(graph, cpds, [Z, U, sf.Finite("v", ["no", "yes"])])


def p_yes(z: int, to: Any = lambda x, u: 1.0) -> float:
    """p(u = yes | z, what `to` is the likelihood of) by integration over x."""

    def joint(x: float, u: int) -> float:
        p = expit((-0.5 + 1.2 * x + 0.4 * z) * (1 if u else -1))
        return float(stats.norm.pdf(x, z, np.sqrt(1.0 + z)) * p * to(x, u))

    no, yes = (integrate.quad(joint, -15, 15, args=(u,), limit=200)[0] for u in (0, 1))
    return yes / (no + yes)


# Rows that lack a number


def test_rows_with_a_gap_are_drawn_for_and_the_others_exact(bn: sf.BayesNet) -> None:
    rows = {"z": ["a", "a", "b", "a"], "x": [0.5, np.nan, np.nan, np.nan], "v": [None, None, "yes", None]}
    found = bn.predict_proba(rows, "u", method=sf.methods.LikelihoodWeighting(40_000))["yes"]
    assert found[0] == bn.predict_proba({c: r[:1] for c, r in rows.items()}, "u")["yes"][0]
    assert found[1] == pytest.approx(p_yes(0), abs=0.005)
    assert found[2] == pytest.approx(p_yes(1, to=lambda x, u: (0.1, 0.8)[u]), abs=0.01)
    assert found[1] == found[3]


def test_draws_depend_on_the_cells_and_the_seed_alone(bn: sf.BayesNet) -> None:
    method, rows = sf.methods.LikelihoodWeighting(500), {"z": ["a", "b", "a"], "x": [np.nan, np.nan, 0.1]}
    found = bn.predict_proba(rows, "u", method=method, seed=3)["yes"]
    turned = bn.predict_proba({c: r[::-1] for c, r in rows.items()}, "u", method=method, seed=3)["yes"]
    assert found.tolist() == turned[::-1].tolist()
    other = bn.predict_proba(rows, "u", method=method, seed=4)["yes"]
    assert (found != other).tolist() == [True, True, False]


def test_numbers_are_drawn_for(bn: sf.BayesNet) -> None:
    """E[x | z, u]: a normal weighed by a logistic function."""

    def moment(k: int) -> float:
        return integrate.quad(lambda x: x**k * stats.norm.pdf(x) * expit(-0.5 + 1.2 * x), -12, 12)[0]

    found = bn.predict_proba({"z": ["a"], "u": ["yes"]}, "x", method=sf.methods.LikelihoodWeighting(200_000))
    mean = moment(1) / moment(0)
    assert found["mean"][0] == pytest.approx(mean, abs=0.01)
    assert found["variance"][0] == pytest.approx(moment(2) / moment(0) - mean**2, abs=0.02)
    assert bn.predict({"z": ["a"], "u": ["yes"]}, "x", method=sf.methods.LikelihoodWeighting(200_000)) == pytest.approx(
        found["mean"]
    )


def test_rows_with_a_gap_are_integrated(bn: sf.BayesNet) -> None:
    """Without a method: states, numbers, ln p and filled cells by quadrature, to nine digits."""
    rows = {"z": ["a", "a", "b"], "x": [0.5, None, None], "v": [None, None, "yes"]}
    with pytest.warns(SufficeNote, match="missing numbers under regressions are integrated by .*: 'x'"):
        found = bn.predict_proba(rows, "u")["yes"]
    assert found == pytest.approx([expit(0.1), p_yes(0), p_yes(1, to=lambda x, u: (0.1, 0.8)[u])], rel=1e-9)
    weighed = (lambda x, k=k: x**k * stats.norm.pdf(x) * expit(-0.5 + 1.2 * x) for k in range(3))
    moments = [integrate.quad(f, -12, 12)[0] for f in weighed]
    of_x = bn.predict_proba({"z": ["a"], "u": ["yes"], "x": [3.0]}, "x")
    assert of_x["mean"] == pytest.approx([moments[1] / moments[0]], rel=1e-9)
    assert of_x["variance"] == pytest.approx([moments[2] / moments[0] - (moments[1] / moments[0]) ** 2], rel=1e-9)
    logs = bn.log_prob({"z": ["a", "a"], "x": [None, None], "u": ["yes", None], "w": [0.5, None], "v": ["no", None]})
    density = 0.3 * moments[0] * stats.norm.pdf(0.5, 2.0) * 0.2
    assert logs == pytest.approx([np.log(density), np.log(0.3)], abs=1e-9)
    filled = bn.impute({"z": ["a"], "u": ["yes"], "x": [None]})
    assert filled["x"] == pytest.approx(of_x["mean"], rel=1e-9)
    impossible = sf.BayesNet("z -> x; z -> u", {"z": [1.0, 0.0], "x": sf.Gaussian([0.0, 1.0]), "u": np.eye(2)}, [Z, U])
    assert np.isnan(impossible.predict({"u": ["yes"]}, "x")).all()


def gamma_net() -> sf.BayesNet:
    """g -> u: a gamma above a logistic regression, which is neither integrated nor summed."""
    cpds = {
        "g": Regression(sf.regressions.GammaLog(), 0.2, {}, dispersion=0.4),
        "u": Regression(sf.Logistic(), [0.1], {"g": [1.0]}),
    }
    return sf.BayesNet("g -> u", cpds, [U])


def test_a_refused_row_is_named(bn: sf.BayesNet) -> None:
    with pytest.raises(ModelError, match=r"so it is in row 2: fill in 'g', or give method=LikelihoodWeighting\(\) to predict"):
        gamma_net().predict_proba({"g": [0.5, None]}, "u")
    with pytest.raises(ModelError, match="so it is in 2 rows, first row 2"):
        gamma_net().predict({"g": [0.5, None, None]}, "u")
    with pytest.raises(ModelError, match=r"exactly, without a method, or by LikelihoodWeighting\(...\); not by Gibbs"):
        bn.predict({"z": ["a"]}, "u", method=sf.methods.Gibbs())  # type: ignore[arg-type]


def test_rows_that_draws_tell_badly(bn: sf.BayesNet) -> None:
    """w = 40 weighs u = yes by e^78; k = 3 of 2 trials cannot be, and the trials are not observed."""
    with pytest.warns(SufficeNote, match="draws for 1 row, first row 2, are worth fewer than 100 independent ones"):
        bn.predict_proba({"z": ["a", "a"], "x": [0.1, None], "w": [0.1, 40.0]}, "u", method=sf.methods.LikelihoodWeighting(50))
    cpds = {
        "z": [0.5, 0.5],
        "m": sf.regressions.Rates([2.0, 2.0]),
        "k": Regression(sf.regressions.BinomialLogit(trials="m"), 0.0),
    }
    few = sf.BayesNet("z -> m -> k", cpds, [Z])
    with pytest.warns(SufficeNote, match=r"none of 100 draws met the cells of 1 row.*LikelihoodWeighting\(1000\)"):
        assert np.isnan(few.predict_proba({"k": [60]}, "z", method=sf.methods.LikelihoodWeighting(100))["a"]).all()
    found = few.predict_proba({"k": [2]}, "z", method=sf.methods.LikelihoodWeighting(20_000))
    assert found["a"] == pytest.approx([0.5], abs=0.02)


def test_counts_above_numbers_are_summed_or_drawn_for() -> None:
    """n -> w: the sum over all counts has no formula, regression or not, but an end."""
    bn = sf.BayesNet(
        "z -> n -> w", {"z": [0.5, 0.5], "n": sf.regressions.Rates([1.0, 4.0]), "w": sf.Gaussian(0.0, {"n": 1.0})}, [Z]
    )
    n = np.arange(60)
    p = [stats.poisson.pmf(n, r) @ stats.norm.pdf(3.0, n) for r in (1.0, 4.0)]
    found = bn.predict_proba({"w": [3.0, 3.0], "n": [None, 2]}, "z", method=sf.methods.LikelihoodWeighting(40_000))["a"]
    assert found[0] == pytest.approx(p[0] / sum(p), abs=0.01)
    assert found[1] == pytest.approx(1 / (1 + 16 * np.exp(-3)))
    with pytest.warns(SufficeNote, match="missing counts that have children are summed, from 0 up .*: 'n'"):
        assert bn.predict_proba({"w": [3.0]}, "z")["a"] == pytest.approx([p[0] / sum(p)], rel=1e-10)
    each = 0.5 * sum(stats.poisson.pmf(n, r) for r in (1.0, 4.0)) * stats.norm.pdf(3.0, n)
    assert bn.log_prob({"z": [None], "n": [None], "w": [3.0]}) == pytest.approx([np.log(each.sum())], abs=1e-11)
    assert bn.impute({"w": [3.0], "n": [None]})["n"] == pytest.approx([n @ each / each.sum()], rel=1e-10)
    variance = n**2 @ each / each.sum() - (n @ each / each.sum()) ** 2
    assert bn.predict_proba({"w": [3.0]}, "n")["variance"] == pytest.approx([variance], rel=1e-9)
    assert bn.predict({"z": ["b"]}, "w") == pytest.approx([4.0], rel=1e-10)
    large = sf.BayesNet("n -> w", {"n": sf.regressions.Rates(1e6), "w": sf.Gaussian(0.0, {"n": 1.0})}, [])
    with pytest.raises(sf.SufficeError, match="missing counts of 'n' have more than 65,536 values that matter"):
        large.log_prob({"n": [None], "w": [1e6]})


def test_prediction_from_file_to_file(bn: sf.BayesNet, tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    from suffice.interfaces.cli import app as cli

    monkeypatch.chdir(tmp_path)
    sf.write(bn, "bn.json")
    (tmp_path / "rows.csv").write_text("z,x\na,0.5\na,\n")
    monkeypatch.setattr("sys.argv", ["suffice", "predict", "bn.json", "rows.csv", "--target", "u", "--method", "lw:2000"])
    with pytest.raises(SystemExit) as done:
        cli.main()
    assert not done.value.code
    out = capsys.readouterr().out.splitlines()
    assert len(out) == 3
    assert float(out[2].split(",")[2]) == pytest.approx(p_yes(0), abs=0.03)
    monkeypatch.setattr("sys.argv", ["suffice", "predict", "bn.json", "rows.csv", "--target", "u"])
    with pytest.raises(SystemExit) as done:
        cli.main()
    assert not done.value.code
    assert float(capsys.readouterr().out.splitlines()[2].split(",")[2]) == pytest.approx(p_yes(0), abs=1e-5)
    sf.write(gamma_net(), "gamma.json")
    (tmp_path / "rows.csv").write_text("g,h\n0.5,\n,\n")
    monkeypatch.setattr("sys.argv", ["suffice", "predict", "gamma.json", "rows.csv", "--target", "u"])
    with pytest.raises(SystemExit):
        cli.main()
    said = " ".join(capsys.readouterr().err.split())
    assert "line 3" in said
    assert "give --method lw:10000, to draw for such rows alone" in said


def test_questions_whose_evidence_has_no_probability(bn: sf.BayesNet, tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    """w given u does not depend on x, on which p(u) does."""
    from suffice.interfaces.cli import app as cli

    sf.write(bn, tmp_path / "bn.json")
    for words, code in ((["P(w | u=yes)", "--json"], 0), (["--all", "u=yes"], 1), (["P(u | x=1, z=a)", "--interval", "0.9"], 1)):
        monkeypatch.setattr("sys.argv", ["suffice", "query", str(tmp_path / "bn.json"), *words])
        with pytest.raises(SystemExit) as done:
            cli.main()
        assert (done.value.code or 0) == code
    said = capsys.readouterr()
    assert '"log_prob_of_evidence": null' in said.out
    assert "draw one node at a time with suffice query --method lw:10000" in said.err
    assert "ask without --interval" in said.err


# Numbers as targets


NUMBERS = {
    "binomial": (sf.regressions.BinomialLogit(trials="m"), sf.Count("y"), 1.0),
    "negative binomial": (sf.regressions.NegativeBinomialLog(), sf.Count("y"), 0.5),
    "gamma": (sf.regressions.GammaLog(), sf.Real("y"), 0.4),
}


def frozen(kind: str, eta: float) -> Any:
    mean = np.exp(eta)
    if kind == "binomial":
        return stats.binom(20, expit(eta))
    return stats.nbinom(2.0, 1 / (1 + 0.5 * mean)) if kind == "negative binomial" else stats.gamma(2.5, scale=0.4 * mean)


def with_number(kind: str) -> sf.BayesNet:
    family, variable, dispersion = NUMBERS[kind]
    trials = {"m": sf.regressions.Rates(9.0)} if kind == "binomial" else {}
    y = Regression(family, 0.3, {"x": 0.5, "z=b": 1.0}, dispersion=dispersion)
    graph = {"y": ["x", "z", *trials], "x": [], "z": [], "w": ["y"], **{m: [] for m in trials}}
    cpds = {"x": sf.Gaussian(), "z": [0.3, 0.7], "y": y, "w": sf.Gaussian(0.0, {"y": 1.0}), **trials}
    return sf.BayesNet(graph, cpds, [variable, Z])


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_whose_parents_are_given(kind: str) -> None:
    bn = with_number(kind)
    given = {"x": 0.4, "z": "b", **({"m": 20} if kind == "binomial" else {})}
    answer, truth = bn.query("y", given), frozen(kind, 1.5)
    assert (answer.mean, answer.variance, answer.sd) == pytest.approx((truth.mean(), truth.var(), truth.std()), rel=1e-12)
    log = truth.logpdf if kind == "gamma" else truth.logpmf
    assert answer.log_prob([1, 7]) == pytest.approx(log([1, 7]), rel=1e-9)
    assert answer.log_prob(3) == pytest.approx(log(3), rel=1e-9)
    assert answer.interval(0.9) == pytest.approx(truth.ppf([0.05, 0.95]))
    assert answer.cdf(4) == pytest.approx(truth.cdf(4))
    assert answer.log_prob_of_evidence == pytest.approx(bn.log_prob_of(given))
    assert f"{kind} regression: mean {truth.mean():.4g}" in repr(answer)
    assert repr(pickle.loads(pickle.dumps(answer))) == repr(answer)
    drawn = bn.query("y", given, method=sf.methods.LikelihoodWeighting(50_000))
    assert abs(drawn.mean - answer.mean) < 4 * drawn.error


@pytest.mark.parametrize("kind", NUMBERS)
def test_mixtures_over_finite_parents(kind: str) -> None:
    bn = with_number(kind)
    given = {"x": 0.4, **({"m": 20} if kind == "binomial" else {})}
    answer, parts, weights = bn.query("y", given), [frozen(kind, e) for e in (0.5, 1.5)], np.array([0.3, 0.7])
    means = np.array([p.mean() for p in parts])
    assert answer.mean == pytest.approx(weights @ means)
    assert answer.variance == pytest.approx(weights @ [p.var() for p in parts] + weights @ (means - weights @ means) ** 2)
    low, high = answer.interval(0.9)
    cdf = lambda x: weights @ [p.cdf(x) for p in parts]  # noqa: E731
    if kind == "gamma":
        assert (cdf(low), cdf(high)) == pytest.approx((0.05, 0.95), abs=1e-12)
    else:
        assert cdf(low - 1) < 0.05 <= cdf(low)
        assert cdf(high - 1) < 0.95 <= cdf(high)
        assert isinstance(low, int)
    assert np.exp(answer.log_prob(3)) == pytest.approx(weights @ [p.pdf(3) if kind == "gamma" else p.pmf(3) for p in parts])
    assert answer.to_frame().shape == (2, 3)
    soft = bn.query("y", {**given, "z": [1.0, 0.0]})
    assert (soft.mean, len(soft)) == (pytest.approx(means[0]), 1)


def test_numbers_among_all_marginals() -> None:
    bn = with_number("gamma")
    with pytest.warns(SufficeNote, match="'w' left out"):
        found = bn.marginals({"x": 0.4})
    assert list(found) == [n for n in bn if n != "w"]
    assert found["y"].mean == bn.query("y", {"x": 0.4}).mean
    assert "mean 3." in repr(found)
    assert len(found.to_frame()) == 4


def test_numbers_that_have_no_answer() -> None:
    bn = with_number("gamma")
    with pytest.raises(
        ModelError, match="'y' is a gamma regression, whose distribution given 'w' below it has no formula; leave 'w'"
    ):
        bn.query("y", {"x": 0.0, "w": 1.0})
    with pytest.raises(ModelError, match="a gamma regression on the number 'x', which is not observed"):
        bn.query("y", {"z": "a"})
    with pytest.raises(ModelError, match="asked about numbers"):
        bn.query("y", {"x": 0.0}).log_prob("high")
    with pytest.raises(ModelError, match="a probability from 0 to 1"):
        bn.query("y", {"x": 0.0}).quantile(1.5)
    with pytest.raises(ModelError, match="whose mean here is inf, which is none"):
        bn.query("y", {"x": 4000.0})
    assert bn.query("y", {"x": 0.0}).log_prob(-1.0) == -np.inf
    assert bn.query("y", {"x": 0.0}).quantile(0.0) == 0.0
    assert bn.query("y", {"x": 0.0}).quantile(1.0) == np.inf


def test_the_digits_of_far_quantiles() -> None:
    answer, truth = with_number("gamma").query("y", {"x": 0.4, "z": "b"}), frozen("gamma", 1.5)
    for level in (1 - 1e-6, 1e-9):
        assert answer.interval(level) == pytest.approx([truth.ppf((1 - level) / 2), truth.isf((1 - level) / 2)], rel=1e-6)


def test_a_poisson_answer_has_log_probabilities() -> None:
    bn = sf.BayesNet("z -> n", {"z": [0.4, 0.6], "n": sf.regressions.Rates([1.0, 5.0])}, [Z])
    assert np.exp(bn.query("n").log_prob([0, 3])) == pytest.approx(
        0.4 * stats.poisson.pmf([0, 3], 1) + 0.6 * stats.poisson.pmf([0, 3], 5)
    )
    assert bn.query("n").log_prob(2) == pytest.approx(np.log(bn.query("n")[2]))


# Intervals of answers


@pytest.fixture(scope="module")
def data() -> sf.Data:
    cpds = {
        "z": [0.4, 0.6],
        "x": sf.Gaussian(10.0, variance=4.0),
        "u": Regression(sf.Logistic(), [-3.0], {"x": [0.3], "z=b": [0.8]}),
        "t": Regression(sf.regressions.Probit(), -2.0, {"x": 0.2, "z=b": 0.3}),
        "y": Regression(ProportionalOdds(), [2.0, 4.0], {"x": 0.3, "z=b": -1.0}),
        "s": Regression(sf.Logistic(), [-2.0, 0.5], {"x": [0.2, -0.1], "z=b": [0.5, 1.0]}),
        "n": Regression(sf.regressions.PoissonLog(), -1.0, {"x": 0.15, "z=b": 0.4}),
        "l": Regression(sf.regressions.Linear(), 1.0, {"x": 0.5, "z=b": -1.0}, dispersion=2.0),
    }
    graph = {"z": [], "x": [], **{c: ["x", "z"] for c in "utysnl"}}
    T, S = sf.Finite("t", ["no", "yes"]), sf.Finite("s", ["p", "q", "r"])
    bn = sf.BayesNet(graph, cpds, [Z, U, T, Y, S])
    return sf.scan(bn.sample(600, seed=5), variables=dict(bn.variables))


@pytest.fixture(scope="module")
def fitted(data: sf.Data) -> sf.BayesNet:
    families = {
        "u": sf.Logistic(),
        "t": sf.regressions.Probit(),
        "y": ProportionalOdds(),
        "s": sf.Logistic(),
        "n": sf.regressions.PoissonLog(),
        "l": sf.regressions.Linear(),
    }
    graph = {"z": [], "x": [], **{c: ["x", "z"] for c in "utysnl"}}
    return sf.fit(graph, data, families=families, prior=(sf.Dirichlet(1), sf.NormalInverseGamma()))


@pytest.mark.parametrize(("target", "mean"), [("u", expit), ("t", stats.norm.cdf)])
def test_intervals_are_those_of_the_predictor(fitted: sf.BayesNet, target: str, mean: Any) -> None:
    """With one predictor the ends are those of its normal distribution, through the link."""
    answer = fitted.query(target, {"x": 12.0, "z": "b"}, interval=0.9, draws=20_000)
    cpd, row = fitted[target], np.array([1.0, 12.0, 1.0])
    eta = row @ np.concatenate([np.ravel(cpd.intercept), np.ravel(cpd.coefficients)])
    sd = np.sqrt(row @ cpd.fitted.covariance @ row)
    ends = mean(eta + sd * stats.norm.ppf([0.05, 0.95]))
    assert [end[1] for end in answer.interval] == pytest.approx(ends, abs=0.004)
    assert answer["yes"] == pytest.approx(mean(eta))
    assert answer["yes"] == fitted.query(target, {"x": 12.0, "z": "b"})["yes"]
    assert "exact at the estimates; 90 % interval from 20,000 draws" in answer.how


@pytest.mark.parametrize("target", ["y", "s"])
def test_intervals_of_several_states(fitted: sf.BayesNet, target: str) -> None:
    """Against the probabilities at coefficients that the test draws itself."""
    cpd, rng = fitted[target], np.random.default_rng(0)
    if target == "y":
        centre = np.concatenate([cpd.cut_points, cpd.coefficients])
        draws = rng.multivariate_normal(centre, cpd.fitted.covariance, 40_000)
        below = expit(draws[:, :2] - (draws[:, 2:] @ [8.0, 0.0])[:, None])
        probs = np.diff(np.concatenate([np.zeros((40_000, 1)), below, np.ones((40_000, 1))], axis=1), axis=1)
    else:
        centre = np.concatenate([cpd.intercept[:, None], cpd.coefficients], axis=1)
        draws = rng.multivariate_normal(centre.reshape(-1), cpd.fitted.covariance, 40_000).reshape(-1, 2, 3)
        odds = np.exp(np.concatenate([np.zeros((40_000, 1)), draws @ [1.0, 8.0, 0.0]], axis=1))
        probs = odds / odds.sum(axis=1, keepdims=True)
    answer = fitted.query(target, {"x": 8.0, "z": "a"}, interval=0.95, draws=20_000)
    assert np.array(answer.interval) == pytest.approx(np.quantile(probs, [0.025, 0.975], axis=0), abs=0.006)


def test_intervals_through_tables_and_regressions(fitted: sf.BayesNet) -> None:
    """p(z | x, u, n) by Bayes' rule, with a Dirichlet, a logistic and a Poisson regression that the test draws itself."""
    rng, n = np.random.default_rng(1), 40_000
    z = rng.dirichlet((fitted["z"].seen + fitted["z"].imagined).dense(), n)
    logs = np.log(z)
    for name, density in (("u", lambda e: np.log(expit(e))), ("n", lambda e: stats.poisson.logpmf(2, np.exp(e)))):
        cpd = fitted[name]
        theta = rng.multivariate_normal(
            np.concatenate([np.ravel(cpd.intercept), np.ravel(cpd.coefficients)]), cpd.fitted.covariance, n
        )
        eta = np.stack([theta @ [1.0, 9.0, 0.0], theta @ [1.0, 9.0, 1.0]], axis=1)
        logs = logs + density(eta)
    probs = np.exp(logs - logs.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    answer = fitted.query("z", {"x": 9.0, "u": "yes", "n": 2}, interval=0.9, draws=20_000)
    assert np.array(answer.interval) == pytest.approx(np.quantile(probs, [0.05, 0.95], axis=0), abs=0.006)
    assert "posterior means and the estimates of regressions" in answer.how
    hidden = fitted.query("u", {"x": 9.0}, interval=0.9)
    assert (hidden.interval.lower < hidden.probs).all()
    assert (hidden.probs < hidden.interval.upper).all()


def test_intervals_of_the_mean_of_a_linear_regression(fitted: sf.BayesNet) -> None:
    cpd, row = fitted["l"], np.array([1.0, 12.0, 1.0])
    answer = fitted.query("l", {"x": 12.0, "z": "b"}, interval=0.9, draws=20_000)
    mean = cpd.intercept + cpd.coefficients @ row[1:]
    sd = np.sqrt(row @ cpd.fitted.covariance @ row)
    assert np.ravel(answer.mean_interval) == pytest.approx(mean + sd * stats.norm.ppf([0.05, 0.95]), abs=0.02)
    assert answer.mean == pytest.approx(mean)
    back = fitted.query("x", {"l": 6.0, "z": "b"}, interval=0.9)
    assert back.mean_interval.lower < back.mean < back.mean_interval.upper
    assert back.mean == fitted.query("x", {"l": 6.0, "z": "b"}).mean


def test_intervals_that_cannot_be_found(bn: sf.BayesNet, fitted: sf.BayesNet) -> None:
    with pytest.raises(FitError, match=r"'u', a logistic regression that was not fitted \(.* ask without interval="):
        bn.query("u", {"x": 1.0, "z": "a"}, interval=0.9)
    with pytest.raises(ModelError, match=r"'u', a logistic regression on numbers of which 'x' is not observed.*observe 'x'"):
        fitted.query("u", {"z": "a"}, interval=0.9)
    with pytest.raises(
        ModelError, match=r"'n', a Poisson regression: intervals are known of probabilities .* ask without interval="
    ):
        fitted.query("n", {"x": 1.0, "z": "a"}, interval=0.9)
    count = sf.BayesNet("z -> n", {"z": [0.4, 0.6], "n": sf.regressions.Rates([1.0, 5.0])}, [Z])
    with pytest.raises(ModelError, match="depend on the count 'n'; ask without interval="):
        count.query("z", {"n": 2}, interval=0.9)


def test_intervals_far_from_zero() -> None:
    """The covariance at x near 2000 keeps its digits; near 1e9 they are lost, and that is said."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=400)
    u = np.where(rng.random(400) < expit(x), "yes", "no")
    near = sf.fit("x -> u", {"x": x, "u": u}, families={"u": sf.Logistic()}).query("u", {"x": 0.5}, interval=0.9)
    far = sf.fit("x -> u", {"x": x + 2000, "u": u}, families={"u": sf.Logistic()}).query("u", {"x": 2000.5}, interval=0.9)
    assert np.array(far.interval) == pytest.approx(np.array(near.interval), abs=0.01)
    lost = sf.fit("x -> u", {"x": x + 1e9, "u": u}, families={"u": sf.Logistic()})
    with pytest.raises(ModelError, match=r"'u' has lost its digits: .* subtract a number near their mean"):
        lost.query("u", {"x": 1e9 + 0.5}, interval=0.9)


# Ways out


@pytest.mark.parametrize(
    ("ask", "way_out"),
    [
        (
            lambda bn: bn.log_prob_of({"u": "yes"}),
            r"observe 'x', too, or .* query\('u', method=LikelihoodWeighting\(\)\)\['yes'\]",
        ),
        (lambda bn: bn.log_prob_of({"u": "yes", "v": "no"}), r"query\(\['u', 'v'\], method=.*\)\[\('yes', 'no'\)\]"),
        (lambda bn: bn.log_prob_of({"u": "yes", "w": 1.0}), r"observe 'x', too: the density of numbers cannot be drawn"),
        (
            lambda bn: bn.marginals({"u": "yes"}),
            r"draw one node at a time with query\(node, ..., method=LikelihoodWeighting\(\)\)",
        ),
        (lambda bn: bn.most_probable({"z": "a"}), r"draw them, query\(targets, ..., method=LikelihoodWeighting\(\)\)\.mode"),
        (lambda bn: bn.junction_tree, r"bn\.do\({'x': 0\.0}\)\.junction_tree is that of questions that give it"),
        (lambda bn: bn.treewidth, r"bn\.do\({'x': 0\.0}\)\.junction_tree"),
        (lambda bn: sf.information.project(bn, "z -> u"), r"draw rows instead, bn\.sample\(100_000\), and take them"),
        (
            lambda bn: sf.information.project(bn, "z -> x; x -> u"),
            r"fit\(dag, bn\.sample\(100_000\), families={'u': Logistic\(\)}\)",
        ),
        (lambda bn: gamma_net().log_prob({"g": [None], "u": ["no"]}), "leave such rows out"),
        (lambda bn: gamma_net().impute({"g": [None], "u": ["no"]}), r"predict\(rows, column, method=LikelihoodWeighting\(\)\)"),
        (lambda bn: bn.impute({"x": [None], "u": ["no"]}, draws=2), r"predict\(rows, column, method=LikelihoodWeighting\(\)\)"),
        (lambda bn: bn.impute({"u": [None], "z": ["a"]}, joint=True), r"predict\(rows, column, method=LikelihoodWeighting\(\)\)"),
        (lambda bn: bn.query("u"), r"observe 'x', or draw the answer with query\(..., method=LikelihoodWeighting\(\)\)"),
    ],
)
def test_refusals_say_what_can_be_done(bn: sf.BayesNet, ask: Any, way_out: str) -> None:
    with pytest.raises(sf.SufficeError, match=way_out) as refused:
        ask(bn)
    assert "\n" not in str(refused.value)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_the_ways_out_are_open(bn: sf.BayesNet) -> None:
    method = sf.methods.LikelihoodWeighting(20_000)
    both = 0.3 * p_yes(0) + 0.7 * p_yes(1)
    assert bn.query("u", method=method)["yes"] == pytest.approx(both, abs=0.02)
    assert bn.query(["u", "v"], method=method)["yes", "no"] == pytest.approx(0.2 * both, abs=0.02)
    assert bn.query(["u", "z"], method=method).mode == ("yes", "b")
    assert bn.do({"x": 0.0}).junction_tree.treewidth == 1
    assert sf.information.project(bn.sample(2000, seed=0), "z -> u").model["u"].probs.shape == (2, 2)
    assert sf.fit("x -> u; z", bn.sample(500, seed=0), families={"u": sf.Logistic()})["u"].terms == ("x",)
