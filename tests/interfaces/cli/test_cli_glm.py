"""Regressions on the command line, from `fit` to `predict`, called as a user calls them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.families.regressions.logistic import ProportionalOdds
from suffice.interfaces.cli.inputs import declared_by, read_families

GRAPH = "age -> ill; sex -> ill; ill -> visits; age -> visits; log_time -> visits; age -> cost; dose -> dead; n -> dead"
WORDS = ["ill=logistic:0.5", "visits=poisson,offset=log_time", "cost=gamma-log", "dead=binomial,trials=n"]


@pytest.fixture
def rows(run: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    size = 300
    age, sex, time = rng.normal(50, 10, size), rng.choice(["f", "m"], size), rng.uniform(0.5, 2, size)
    ill = rng.random(size) < 1 / (1 + np.exp(-(age - 50) / 10))
    n, dose = rng.integers(1, 9, size), rng.normal(size=size)
    table = {
        "age": age,
        "sex": sex,
        "ill": ill.astype(int),
        "log_time": np.log(time),
        "visits": rng.poisson(time * np.exp(0.5 * ill)),
        "cost": rng.gamma(2.0, np.exp(age / 50)),
        "n": n,
        "dose": dose,
        "dead": rng.binomial(n, 1 / (1 + np.exp(-dose))),
    }
    with Path("rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([table, *zip(*table.values(), strict=True)])
    return table


@pytest.fixture
def model(run: Any, rows: Any) -> sf.BayesNet:
    code, out, err = run("fit", GRAPH, "rows.csv", "-o", "model.json", *(x for w in WORDS for x in ("--family", w)))
    assert (code, out) == (0, ""), err
    return sf.read("model.json")


def test_fit_gives_the_network_of_python(model: Any, rows: Any) -> None:
    variables = {"visits": sf.Count("visits"), "dead": sf.Count("dead"), "n": sf.Count("n"), "ill": sf.Finite}
    data = sf.scan("rows.csv", variables=variables)
    families = {
        "ill": sf.Logistic(0.5),
        "visits": sf.regressions.PoissonLog(offset="log_time"),
        "cost": sf.regressions.GammaLog(),
        "dead": sf.regressions.BinomialLogit(trials="n"),
    }
    assert model == sf.fit(GRAPH, data, families=families)
    assert model.variables["ill"].states == ("0", "1")


def test_show_prints_coefficients(run: Any, model: Any) -> None:
    code, out, err = run("show", "model.json")
    assert code == 0, err
    assert "p(visits | ill, age, log_time), Poisson regression, log link, offset log_time" in out
    assert "standard error" in out
    _, out, _ = run("show", "model.json", "--node", "cost")
    assert "gamma regression" in out
    assert "(intercept)" in out


def test_questions(run: Any, model: Any) -> None:
    code, out, err = run("query", "model.json", "P(ill=1 | age=60, sex=f)")
    assert code == 0, err
    assert float(out) == pytest.approx(model.query("ill", {"age": 60.0, "sex": "f"})["1"])
    code, out, err = run("query", "model.json", "P(ill | visits=3)", "--method", "lw:2000", "--json")
    assert code == 0, err
    assert json.loads(out)["probabilities"][0]["standard_error"] > 0
    code, out, err = run("query", "model.json", "P(ill)")
    assert (code, out) == (1, "")
    assert "a logistic regression on the number 'age', which is not observed" in err
    assert "draw the answer with suffice query --method lw:10000" in err
    code, out, err = run("query", "model.json", "age=60", "--all")
    assert code == 0, err
    assert "'dead', 'visits' left out" in err
    assert "draw that of 'dead' with --method lw:10000" in err
    assert "cost" in out
    assert "ill" in out
    code, out, err = run("query", "model.json", "P(visits)", "--do", "age=60", "--do", "log_time=0", "--json")
    assert code == 0, err
    assert json.loads(out)["mean"]["visits"] == pytest.approx(model.query("visits", {"age": 60.0, "log_time": 0.0}).mean)


def test_predictions_samples_and_scores(run: Any, model: Any, rows: Any) -> None:
    code, out, err = run("predict", "model.json", "rows.csv", "--target", "ill")
    assert code == 0, err
    found = list(csv.DictReader(out.splitlines()))
    assert [float(r["P(ill=1)"]) for r in found] == pytest.approx(list(model.predict_proba("rows.csv", "ill")["1"].to_numpy()))
    code, out, err = run("predict", "model.json", "rows.csv", "--target", "visits")
    assert code == 0, err
    assert float(out.splitlines()[1].split(",")[0]) > 0
    code, _, err = run("sample", "model.json", "-n", 50, "-o", "drawn.csv", "--seed", 1)
    assert code == 0, err
    assert len(Path("drawn.csv").read_text().splitlines()) == 51
    code, out, err = run("score", "model.json", "rows.csv", "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["network: log-likelihood"] == pytest.approx(model.log_likelihood())
    assert facts["graph: BIC"] == pytest.approx(model.bic())
    code, _, err = run("fit", "model.json", "drawn.csv", "-o", "again.json")
    assert code == 0, err
    assert sf.read("again.json")["visits"].family == sf.regressions.PoissonLog(offset="log_time")


def test_counts_are_declared(run: Any, rows: Any) -> None:
    code, _, err = run("fit", "sex -> visits", "rows.csv", "-o", "m.json", "--count", "visits")
    assert code == 0, err
    assert sf.read("m.json")["visits"].rates.shape == (2,)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("age -> ill", "--finite", "ill"), "name it, --family ill=logistic, turn the edge round"),
        (("age -> visits", "--count", "visits"), "name it, --family visits=poisson, turn the edge round"),
        (("age -> ill", "--family", "ill"), "--family takes a node and a regression or distribution, as in 'y=logistic'"),
        (("age -> ill", "--family", "ill=tobit"), "regressions are linear, probit, binomial"),
        (("age -> ill", "--family", "il=logistic"), "'il', which is not in the graph; did you mean 'ill'"),
        (("age -> ill", "--family", "ill=logistic:x"), "does not take the number 'x' as its ridge"),
        (("age -> ill", "--family", "ill=logistic,offset=age"), "logistic takes no roles of parents"),
        (("age -> ill", "--family", "ill=poisson,trials=age"), "poisson takes offset=NAME"),
        (("age -> ill", "--family", "ill=logistic", "--family", "ill=probit"), "--family names 'ill' twice"),
        (("age -> dead; n -> dead", "--family", "dead=binomial"), "needs the name of the parent of 'dead' that holds the trials"),
        (
            ("age -> dead", "--family", "dead=binomial"),
            "that holds the trials, --family dead=binomial,trials=n; where every row has the same number, such as 12, "
            "--family dead=binomial,n=12 needs none",
        ),
        (("age -> ill", "--family", "ill=logistic", "--statistics", "s.stats"), "--statistics say nothing of regressions"),
    ],
)
def test_what_is_refused(run: Any, rows: Any, words: tuple[str, ...], message: str) -> None:
    graph, *options = words
    code, out, err = run("fit", graph, "rows.csv", "-o", "m.json", *options)
    assert (code, out) == (1, "")
    assert message in err
    assert not Path("m.json").exists()


def test_a_family_says_what_its_column_is(run: Any, rows: Any) -> None:
    code, _, err = run("fit", "age -> visits", "rows.csv", "-o", "m.json", "--family", "visits=poisson", "--real", "visits")
    assert code == 0, err
    assert "'visits' for counts; --count and --finite declare them" in err
    assert isinstance(sf.read("m.json").variables["visits"], sf.Count)


def test_words_of_families() -> None:
    found = read_families(["y=Probit:2", "n=negative-binomial,offset=t", 'k=binomial,"trials=n, of k"'])
    assert found == {
        "y": sf.regressions.Probit(2.0),
        "n": sf.regressions.NegativeBinomialLog(offset="t"),
        "k": sf.regressions.BinomialLogit(trials="n, of k"),
    }
    assert read_families(["pain=ordinal:1"]) == {"pain": ProportionalOdds(1.0)}
    assert declared_by(found, ["y", "n"]) == {"y": sf.Finite, "n": sf.Count("n")}


def test_learn_finds_edges_from_numbers_to_states(run: Any, rows: Any) -> None:
    given = ["learn", "rows.csv", "--without", "cost,log_time,n,dead,dose", "--count", "visits", "--method", "exact"]
    code, out, err = run(*given, "--family", "ill=logistic", "--family", "visits=poisson", "-o", "found.json", "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert ["age", "ill"] in facts["edges"]
    assert ["age", "ill", "the other way is another model"] in facts["directions"]
    assert sf.read("found.json")["ill"].family == sf.Logistic()
    code, out, err = run(*given, "--family", "ill=logistic", "--dry-run")
    assert code == 0, err
    assert "8 fits × 300 rows" in out
    code, _, err = run(*given[:-1], "ges", "--family", "ill=logistic")
    assert code == 1
    assert "GES does not search with regressions (--family)" in err
    assert "use --method orders, exact, hill-climb or tabu" in err
    code, _, err = run(*given)
    assert code == 0
    assert "--family ill=logistic" in err


def test_what_is_separated_is_told_of_the_ridge_in_words_of_the_command_line(run: Any) -> None:
    rows = "".join(f"{x},{'no' if x < 5 else 'yes'},{6 * (x > 4)},6\n" for x in range(10))
    Path("apart.csv").write_text("x,ill,dead,n\n" + rows)
    for graph, family, ridge in (
        ("x -> ill", "ill=logistic", "ill=logistic:1"),
        ("x -> dead; n -> dead", "dead=binomial,trials=n", "dead=binomial:1,trials=n"),
    ):
        code, _, err = run("fit", graph, "apart.csv", "-o", "m.json", "--family", family, "--real", "x")
        assert code == 1
        assert err.rstrip().endswith(f"or use --family {ridge}")
        assert run("fit", graph, "apart.csv", "-o", "m.json", "--family", ridge, "--real", "x")[0] == 0
