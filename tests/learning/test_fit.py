"""Fitting: golden numbers of the lecture texts, and estimates that do not exist."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import DataError, FitError, StatisticsError


def rows_of(table: dict[tuple[str, ...], int], *names: str) -> dict[str, list[str]]:
    expanded = [key for key, n in table.items() for _ in range(n)]
    return {name: [r[i] for r in expanded] for i, name in enumerate(names)}


def test_thumbtack() -> None:
    """D = 1 0 0 1 1: MLE 3/5; with a uniform prior the evidence is 1/60 and the predictive 4/7."""
    rows = {"x": ["1", "0", "0", "1", "1"]}
    data = sf.scan(rows, variables={"x": sf.Finite})
    assert sf.fit("x", data)["x"].probs == pytest.approx([2 / 5, 3 / 5])
    assert np.exp(sf.fit("x", data).log_likelihood()) == pytest.approx(0.03456)
    assert np.exp(sf.score("x", data, sf.Evidence(sf.Dirichlet(1)))) == pytest.approx(1 / 60)
    assert sf.fit("x", data, prior=sf.Dirichlet(1))["x"].probs[1] == pytest.approx(4 / 7)


@pytest.mark.parametrize(("ones", "zeros", "expected"), [(1, 2, 2 / 5), (100, 200, 101 / 302)])
def test_laplace(ones: int, zeros: int, expected: float) -> None:
    data = sf.scan({"x": ["1", "0"], "n": [ones, zeros]}, variables={"x": sf.Finite}, weights="n")
    assert sf.fit("x", data, prior=sf.Dirichlet(1))["x"].probs[1] == pytest.approx(expected)
    assert sf.fit("x", data)["x"].probs[1] == pytest.approx(1 / 3)


PATIENTS = """\
T T T T F
T F F F F
F F T T T
F F T F T
F T T T T
T F T F F
F F F F F
T T F F F
T T T T T
F T F T T
T F F T F
F T F F F
"""


def test_pneumonia() -> None:
    """The twelve patients of the lecture: P(Fever=T | Pneumonia=T) = 0.6."""
    columns = zip(*(line.split() for line in PATIENTS.splitlines()), strict=True)
    rows = dict(zip(["paleness", "fever", "cough", "high_wbc", "pneumonia"], columns, strict=True))
    bn = sf.fit("pneumonia -> fever; pneumonia -> paleness; pneumonia -> cough; pneumonia -> high_wbc", rows)
    assert bn["fever"].predictive({"pneumonia": "T"})[bn.variables["fever"].code("T")] == pytest.approx(0.6)


def test_bus() -> None:
    """The bus table of the lecture: θ(late | rainy) = 3/4, θ(late | cloudy) = 1/2, θ(late | sunny) = 1/4."""
    counts = {("rainy", "late"): 3, ("rainy", "on time"): 1, ("cloudy", "late"): 1, ("cloudy", "on time"): 1}
    counts |= {("sunny", "late"): 1, ("sunny", "on time"): 3}
    bn = sf.fit("weather -> bus", rows_of(counts, "weather", "bus"))
    late = {w: float(bn["bus"].predictive({"weather": w})[0]) for w in ("rainy", "cloudy", "sunny")}
    assert late == {"rainy": 0.75, "cloudy": 0.5, "sunny": 0.25}


def test_known_coins() -> None:
    """{(1 HHT), (1 HTT), (2 THT)}: α = 2/3, p = 1/2, q = 1/3."""
    tosses = [("1", t) for t in "HHTHTT"] + [("2", t) for t in "THT"]
    bn = sf.fit(
        "coin -> toss", sf.scan({"coin": [c for c, _ in tosses], "toss": [t for _, t in tosses]}, variables={"coin": sf.Finite})
    )
    assert bn["coin"].probs == pytest.approx([2 / 3, 1 / 3])
    assert bn["toss"].probs[:, 0] == pytest.approx([1 / 2, 1 / 3])


def test_modes() -> None:
    data = {"x": ["a", "a", "b"]}
    assert sf.fit("x", data, prior=sf.Dirichlet(2), estimate=sf.Mode())["x"].probs == pytest.approx([3 / 5, 2 / 5])
    assert sf.fit("x", data, prior=sf.Dirichlet(1), estimate=sf.Mode())["x"].probs == pytest.approx([2 / 3, 1 / 3])
    with pytest.raises(FitError, match=r"Mean\(\)"):
        sf.fit("x", sf.scan(data, variables={"x": ["a", "b", "c"]}), prior=sf.Dirichlet(0.5), estimate=sf.Mode())


def test_unseen_configurations_are_uniform_and_flagged() -> None:
    bn = sf.fit("x -> y", sf.scan({"x": ["a"], "y": ["u"]}, variables={"x": ["a", "b"], "y": ["u", "v"]}))
    assert bn["y"].probs.tolist() == [[1.0, 0.0], [0.5, 0.5]]
    assert bn["y"].unsupported.tolist() == [False, True]


def test_unseen_gaussian_configurations_are_flagged_and_refused() -> None:
    data = sf.scan({"x": ["a", "a", "a", "b"], "y": [1.0, 2.0, 4.0, 3.0]}, variables={"x": ["a", "b", "c"]})
    bn = sf.fit("x -> y", data)
    assert bn["y"].unsupported.tolist() == [False, True, True]
    assert np.isnan(bn["y"].variance[1])
    with pytest.raises(sf.SufficeError, match="x='b'"):
        bn.log_prob({"x": ["b"], "y": [1.0]})
    with pytest.raises(sf.SufficeError, match="'y' has no parameters"):
        sf.BayesNet("x -> y", {"x": [0.0, 0.0, 1.0], "y": bn["y"]}, [bn.variables["x"]]).sample(10, seed=0)
    supported = sf.fit("x -> y", data, prior=(sf.BDeu(1), sf.NormalInverseGamma()))
    assert np.isfinite(supported["y"].variance).all()
    assert supported["y"].unsupported.tolist() == [False, False, True]


@pytest.mark.parametrize(
    ("graph", "rows", "message"),
    [
        ("x -> y", {"x": [1.0, 2.0], "y": [1.0, 3.0]}, r"'y' cannot be fitted from 2 rows.*3 rows"),
        ("x -> y", {"x": [1.0, 2.0, 3.0, 4.0], "y": [2.0, 4.0, 6.0, 8.0]}, "'y'.*4 rows.*no residual variance"),
        ("y", {"y": [1.5, 1.5, 1.5]}, "'y'.*3 rows.*no residual variance"),
        (
            "x -> y; z -> y",
            {"x": [1.0, 2.0, 3.0, 5.0, 4.0], "z": [2.0, 4.0, 6.0, 10.0, 8.0], "y": [1.0, 0.0, 2.0, 1.0, 5.0]},
            "'z' is a linear combination of 'x'",
        ),
        ("x -> y", {"x": [0.5, 1.5, 2.5], "y": ["a", "b", "b"]}, "GLM"),
    ],
)
def test_estimates_that_do_not_exist(graph: str, rows: dict[str, Any], message: str) -> None:
    with pytest.raises(FitError, match=message):
        sf.fit(graph, rows)


def test_collinear_parents_are_fine_with_a_prior() -> None:
    rows = {"x": [1.0, 2.0, 3.0, 5.0, 4.0], "z": [2.0, 4.0, 6.0, 10.0, 8.0], "y": [1.0, 0.0, 2.0, 1.0, 5.0]}
    assert np.isfinite(sf.fit("x -> y; z -> y", rows, prior=sf.NormalInverseGamma())["y"].coefficients).all()


def test_counts_below_numbers_wait_for_a_regression() -> None:
    data = sf.scan({"n": [0, 1, 2], "y": [1.0, 2.0, 4.0]}, variables={"n": sf.Count})
    assert float(sf.fit("n", data)["n"].rates) == 1.0
    with pytest.raises(FitError, match=r"the count 'n' has the parent 'y', a number, .* Poisson regression"):
        sf.fit("y -> n", data)


def test_a_prior_that_says_nothing_is_noted_in_fit_and_refused_in_evidence() -> None:
    rows = {"x": ["a", "b", "a"], "y": [1.0, 2.0, 4.0]}
    with pytest.warns(sf.SufficeNote, match="'y'"):
        sf.fit("x; y", rows, prior=sf.BDeu(1))
    with pytest.raises(FitError, match="'y'"):
        sf.score("x; y", rows, sf.Evidence(sf.BDeu(1)))
    with pytest.raises(FitError, match=r"BDeu\(\)"):
        sf.fit("x; y", rows, prior=sf.BDeu)


def test_statistics_need_no_rows(tmp_path) -> None:
    truth = sf.load("asia")
    rows = truth.sample(2000, seed=0).to_pandas()
    whole = sf.gather(rows, truth.dag)
    parts = sf.gather(rows[:700], truth.dag) + sf.gather(rows[700:], truth.dag)
    parts.save(tmp_path / "both.stats")
    assert sf.fit(truth.dag, sf.Statistics.load(tmp_path / "both.stats"), prior=sf.BDeu(10)) == sf.fit(
        truth.dag, rows, prior=sf.BDeu(10)
    )
    assert sf.fit(truth.dag, whole - sf.gather(rows[700:], truth.dag)) == sf.fit(truth.dag, rows[:700])
    with pytest.raises(StatisticsError, match="gather"):
        sf.fit("asia -> dysp", whole)


def test_columns_that_are_not_there() -> None:
    with pytest.raises(DataError, match=r"'smok'.*'smoke'"):
        sf.fit("smok -> x", {"smoke": ["a"], "x": ["b"]})


@pytest.mark.parametrize("score", [sf.BIC(), sf.Evidence(sf.BDeu(2))])
def test_equivalent_graphs_score_alike(score: Any) -> None:
    rows = sf.load("asia").sample(500, seed=1)
    chain = [sf.score(g, rows, score) for g in ("asia -> tub -> xray", "asia <- tub <- xray", "asia <- tub -> xray")]
    assert chain == pytest.approx([chain[0]] * 3, rel=1e-12)
    assert sf.score("asia -> tub <- xray", rows, score) != pytest.approx(chain[0], rel=1e-9)


def test_equivalent_gaussian_graphs_score_alike() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(100)
    y = x + rng.standard_normal(100)
    z = y - 2 * rng.standard_normal(100)
    rows = {"x": x, "y": y, "z": z}
    for score in (sf.BIC(), sf.Evidence(sf.BGe()), sf.Evidence(sf.BGe(count=3, df=9))):
        chain = [sf.score(g, rows, score) for g in ("x -> y -> z", "x <- y <- z", "x <- y -> z")]
        assert chain == pytest.approx([chain[0]] * 3, rel=1e-10)


def test_bde_of_a_uniform_network_is_bdeu() -> None:
    variables = [sf.Finite("x", ["a", "b"]), sf.Finite("y", ["u", "v", "w"])]
    uniform = sf.BayesNet("x; y", {"x": [1 / 2, 1 / 2], "y": [1 / 3, 1 / 3, 1 / 3]}, variables)
    rows = {"x": ["a", "b", "b"], "y": ["u", "v", "w"]}
    assert sf.score("x -> y", rows, sf.Evidence(sf.BDe(uniform, 5))) == pytest.approx(
        sf.score("x -> y", rows, sf.Evidence(sf.BDeu(5)))
    )


def test_columns_rows_and_states_may_be_permuted() -> None:
    truth = sf.load("asia")
    rows = truth.sample(300, seed=2).to_pandas().astype(str)
    bn = sf.fit(truth.dag, rows, prior=sf.BDeu(1))
    shuffled = rows.sample(frac=1, random_state=0)[sorted(rows.columns, reverse=True)]
    assert sf.fit(truth.dag, shuffled, prior=sf.BDeu(1)) == bn
    turned = sf.scan(rows, variables={c: sf.Finite(c, list(bn.variables[c].states)[::-1]) for c in rows.columns})
    assert sf.information.kl(bn, sf.fit(truth.dag, turned, prior=sf.BDeu(1))) == pytest.approx(0.0, abs=1e-12)


def test_learning_curve_of_alarm() -> None:
    """The divergence from the truth falls with the rows; that of maximum likelihood is infinite at an unseen cell."""
    truth = sf.load("alarm")
    divergence = [
        sf.information.kl(truth, sf.fit(truth.dag, truth.sample(n, seed=n), prior=sf.BDeu(10))) for n in (100, 1000, 10_000)
    ]
    assert divergence[0] > divergence[1] > divergence[2] > 0
    assert sf.information.kl(truth, sf.fit(truth.dag, truth.sample(100, seed=0))) == np.inf


def test_a_column_without_values_is_the_reason_given() -> None:
    with pytest.raises(DataError, match="'a'"):
        sf.fit("a -> b", {"a": [None, None], "b": ["x", "y"]})


def test_rounding_is_not_data() -> None:
    """What weights and subtraction leave behind of a constant column, or of an empty cell, is nothing."""
    constant = sf.scan({"x": [0.1] * 8}, weights=[0.24, 0.43, 0.09, 0.59, 0.78, 0.87, 0.33, 0.11])
    with pytest.raises(FitError, match="all its values are the same"):
        sf.fit("x", constant)
    rows = {"u": ["a"] * 4 + ["b"] * 4, "y": ["s", "t"] * 4}
    w = [0.1, 0.2, 0.3, 0.4, 0.7, 0.11, 0.13, 0.17]
    whole = sf.gather(sf.scan(rows, weights=w), "u -> y")
    part = {k: v[4:] for k, v in rows.items()}
    left = whole - sf.gather(sf.scan(part, variables={"u": ["a", "b"]}, weights=w[4:]), "u -> y")
    assert sf.fit("u -> y", left)["y"].unsupported.tolist() == [False, True]
    four = np.random.default_rng(52).standard_normal((4, 4))
    with pytest.raises(FitError, match="at least 5 rows"):
        sf.fit("x0 -> y; x1 -> y; x2 -> y", dict(zip(["x0", "x1", "x2", "y"], four.T, strict=True)))


def test_sums_of_far_means_keep_all_digits() -> None:
    rng = np.random.default_rng(0)
    z = rng.integers(-1000, 1000, 40) / 1024
    near = sf.gather({"x": z}, "x").moments([], ["x"]).scatter[0, 0, 0]
    parts = [sf.gather({"x": 1e9 + z[i : i + 4]}, "x") for i in range(0, 40, 4)]
    assert sum(parts).moments([], ["x"]).scatter[0, 0, 0] == pytest.approx(near, rel=1e-14)


def test_a_prior_lost_in_rounding_is_said() -> None:
    x = np.random.default_rng(0).normal(0, 1e9, 200)
    with pytest.raises(FitError, match="lost in rounding"):
        sf.fit("x -> y; x2 -> y", {"x": x, "x2": 2 * x, "y": x + 1e9 * np.sin(x)}, prior=sf.BGe())


def test_very_strong_priors_keep_their_digits() -> None:
    for ess in (1e3, 1e6, 1e9, 1e12, 1e15):
        assert sf.score("x", {"x": ["a", "b"]}, sf.Evidence(sf.BDeu(ess))) == pytest.approx(np.log(0.25), abs=2 / ess + 1e-12)


@pytest.mark.parametrize(
    "bad", [{"count": 0.0}, {"df": -1.0}, {"variance": 0.0}, {"mean": float("nan")}, {"variance": {"x": -1.0}}]
)
def test_priors_that_cannot_be(bad: dict[str, Any]) -> None:
    with pytest.raises(FitError, match="NormalInverseGamma"):
        sf.NormalInverseGamma(**bad)


def test_what_is_missing_is_looked_up_once_beside_regressions(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, known = list[Any](), sf.Data.missing
    monkeypatch.setattr(sf.Data, "missing", property(lambda rows: looks.append(rows) or known.__get__(rows)))
    each, number = list[int](), [0.5, 1.5, 2.0, 3.0]
    for n in (2, 20):
        looks.clear()
        rows = {"x": number, "y": list("abba"), **{f"v{i}": ["u", None, "w", "w"] for i in range(n)}}
        sf.fit("; ".join(["x -> y", *(f"v{i}" for i in range(n))]), rows, families={"y": sf.Logistic()})
        each.append(len(looks))
    assert each[0] == each[1]
