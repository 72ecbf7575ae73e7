"""Shared parameters, priors that the data chooses, and options that nothing listens to, on the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.families.hierarchical.hierarchical import HierarchicalDirichlet
from suffice.families.hierarchical.logistic_normal import LogisticNormal
from suffice.families.priors.empirical_bayes import EmpiricalBayes
from suffice.interfaces.cli.words import prior_of, ties_of

GRAPH = "skill -> q1; skill -> q2; skill -> q3"


def write_csv(path: str, table: dict[str, Any]) -> None:
    with Path(path).open("w", newline="") as file:
        csv.writer(file).writerows([table, *zip(*table.values(), strict=True)])


@pytest.fixture
def quiz(run: Any) -> dict[str, Any]:
    """Answers to three questions, also with gaps and in another spelling, and a number to regress on."""
    rng = np.random.default_rng(0)
    skill = rng.choice(["low", "high"], 150)
    right = np.where(skill == "high", 0.8, 0.3)
    table = {"skill": skill, **{f"q{i}": np.where(rng.random(150) < right, "right", "wrong") for i in (1, 2, 3)}}
    table["age"] = rng.normal(size=150)
    table["ill"] = np.where(table["age"] + rng.normal(size=150) > 0, "yes", "no")
    write_csv("quiz.csv", table)
    write_csv("gaps.csv", {**table, "q2": np.where(np.arange(150) % 7 == 0, "", table["q2"])})
    write_csv("spelled.csv", {**table, "q2": np.char.title(table["q2"])})
    write_csv("blank.csv", {**table, "q2": np.where(np.arange(150) % 7 == 0, "blank", table["q2"])})
    return table


def test_fit_shares_parameters(run: Any, quiz: Any) -> None:
    code, _, err = run("fit", GRAPH, "quiz.csv", "-o", "m.json", "--shared", "q1,q2,q3", "--prior", "bdeu:2")
    assert code == 0, err
    bn = sf.read("m.json")
    assert bn == sf.fit(GRAPH, "quiz.csv", shared=[("q1", "q2", "q3")], prior=sf.BDeu(2))
    assert "3 parameters" in err
    code, _, err = run("fit", "m.json", "quiz.csv", "-o", "again.json", "--prior", "bdeu:2")
    assert code == 0, err
    assert sf.read("again.json") == bn
    code, out, err = run("score", "m.json", "quiz.csv", "--json")
    assert code == 0, err
    assert json.loads(out)["graph: BIC"] == pytest.approx(sf.score(bn, "quiz.csv"))
    code, _, err = run("convert", "m.json", "m.bif")
    assert code == 0
    assert "note: .bif keeps the tables of 'q1', 'q2', 'q3', but not that they share their parameters; .json does" in err


def test_several_groups_gaps_and_states_that_differ(run: Any, quiz: Any) -> None:
    words = ("fit", "skill -> q1; skill -> q2; q3; ill", "quiz.csv", "-o", "m.json", "--shared", "q1,q2")
    code, _, err = run(*words)
    assert code == 0, err
    assert sf.read("m.json").shared == (("q1", "q2"),)
    code, _, err = run("fit", GRAPH, "gaps.csv", "-o", "m.json", "--shared", "q1,q2,q3", "--seed", 3, "--starts", 2)
    assert code == 0, err
    expected = sf.em(GRAPH, "gaps.csv", shared=[("q1", "q2", "q3")], seed=3, starts=2).model
    np.testing.assert_array_equal(sf.read("m.json")["q2"].probs, expected["q2"].probs)
    assert "for EM:" not in err
    code, _, err = run("fit", GRAPH, "blank.csv", "-o", "m.json", "--shared", "q1,q2,q3")
    assert code == 0, err
    assert "note: tied or pooled nodes, and their parents, have the same states: 'q1' takes on 'blank', 'q3'" in err
    Path("m.json").unlink()
    code, _, err = run("fit", GRAPH, "spelled.csv", "-o", "m.json", "--shared", "q1,q2,q3")
    assert code == 1
    assert "'q1' has 'right', 'wrong', which 'q2' has not, and 'q2' has 'Right', 'Wrong'" in err
    assert "declare them alike, --finite q1=a,b --finite q2=a,b" in err
    assert not Path("m.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--shared", "q1,q22"), "--shared names 'q22', which is not in the graph; did you mean 'q2'?"),
        (("--shared", "q1"), "a group of --shared has at least two nodes"),
        (("--shared", "q1,q2", "--shared", "q2,q3"), "'q2' is in two groups of --shared"),
        (("--shared", "q1,q2", "--family", "q1=logistic"), "leave it out of --shared, or of --family"),
        (("--prior", "k2:auto"), "'k2:auto' does not take the number 'auto'"),
        (("--prior", "bds:auto"), "leave auto out, or write it after bdeu, dirichlet, hierarchical, logistic-normal, nig, gamma"),
        (("--prior", "bdeu:x"), "does not take the number 'x'"),
        (("--prior", "hierarchial"), "did you mean 'hierarchical'?"),
        (("--prior", "logistic-normal:-1"), "variance of LogisticNormal"),
    ],
)
def test_what_is_refused(run: Any, quiz: Any, words: tuple[str, ...], message: str) -> None:
    code, out, err = run("fit", GRAPH, "quiz.csv", "-o", "m.json", *words)
    assert (code, out) == (1, "")
    assert message in err
    assert not Path("m.json").exists()


def test_words_of_priors() -> None:
    assert prior_of("hierarchical") == prior_of("hierarchical:auto") == HierarchicalDirichlet()
    assert prior_of("hierarchical:5") == HierarchicalDirichlet(5.0)
    assert prior_of("logistic-normal") == LogisticNormal()
    assert prior_of("Logistic-Normal:2") == LogisticNormal(variance=2.0)
    assert prior_of("logistic-normal:auto") == LogisticNormal(variance=None)
    assert prior_of("bdeu:auto") == EmpiricalBayes(sf.BDeu())
    assert prior_of("dirichlet:auto+nig:auto") == (EmpiricalBayes(sf.Dirichlet()), EmpiricalBayes(sf.NormalInverseGamma()))
    assert prior_of("gamma:2") == sf.priors.Gamma(2.0)
    assert ties_of(None) is None
    assert ties_of(['a, "b,c"']) == [("a", "b,c")]


@pytest.mark.parametrize("word", ["hierarchical", "logistic-normal:2", "logistic-normal:auto", "bdeu:auto", "dirichlet:auto"])
def test_priors_that_the_data_chooses(run: Any, quiz: Any, word: str) -> None:
    code, _, err = run("fit", GRAPH, "quiz.csv", "-o", "m.json", "--prior", word)
    assert code == 0, err
    assert sf.read("m.json") == sf.fit(GRAPH, "quiz.csv", prior=prior_of(word))
    code, _, err = run("fit", GRAPH, "gaps.csv", "-o", "gaps.json", "--prior", word)
    if word == "logistic-normal:2":
        assert (code, "modes of the effects" in err) == (0, True)
        return
    assert code == 1
    assert "by_evidence" not in err
    assert any(way in err for way in ("as in bdeu:10", "as in logistic-normal:1"))


def test_options_of_em_are_heard_by_em_or_said_to_be_of_no_use(run: Any, quiz: Any) -> None:
    fit = ("fit", "age -> ill; skill -> q2", "quiz.csv", "-o", "m.json", "--family", "ill=logistic")
    code, _, err = run(*fit, "--time-limit", 5)
    assert code == 0, err
    assert "note: --time-limit is for EM: complete rows need none, and regressions run to their end" in err
    code, _, err = run(*fit, "--starts", 2, "--seed", 1, "--tol", 0.1, "--max-iter", 3)
    assert code == 0, err
    assert "note: --starts, --seed, --max-iter, --tol are for EM" in err
    code, _, err = run("fit", GRAPH, "quiz.csv", "-o", "m.json", "--max-iter", 3)
    assert code == 0, err
    assert "note: --max-iter is for EM: complete rows need none" in err
    code, _, err = run(*fit[:2], "gaps.csv", *fit[3:], "--max-iter", 1, "--time-limit", 100)
    assert code == 0, err
    assert "by EM: did not converge in 1 iteration" in err
    assert "note: --time-limit is for EM; regressions whose own columns are complete run to their end" in err
    assert "for EM:" not in run(*fit)[2]
    code, _, err = run("fit", GRAPH, "quiz.csv", "-o", "m.json", "--time-limit", -3)
    assert (code, err) == (1, "error: --time-limit is a number of seconds above 0, not -3.0\n")


def test_an_interrupt_outside_em_is_said(run: Any, quiz: Any, monkeypatch: Any) -> None:
    from suffice.learning import fit as module

    def stop(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "estimate_network", stop)
    code, out, err = run("fit", GRAPH, "quiz.csv", "-o", "m.json")
    assert (code, out, err) == (130, "", "interrupted: no network was written\n")
    assert not Path("m.json").exists()
    monkeypatch.setattr(sf.BayesNet, "sample", stop)
    assert run("sample", "asia", "-n", 5)[2] == "interrupted\n"


def test_show_knows_the_nearest_name_and_counts_right(run: Any, quiz: Any) -> None:
    code, _, err = run("show", "asia", "--node", "smok")
    assert (code, err) == (1, "error: the network has no node 'smok'; did you mean 'smoke'?\n")
    one = sf.fit("a -> b", {"a": ["u", "u"], "b": ["x", "y"]})
    assert repr(one).startswith("BayesNet of 2 nodes, 1 edge, 1 parameter; ")
    assert "1 state " in repr(one)


def test_help_speaks_of_them(run: Any) -> None:
    _, out, _ = run("fit", "--help")
    said = " ".join(out.split())
    for words in ("--shared A,B,C", "bdeu:auto", "hierarchical", "by EM, of which Ctrl-C takes the best so far"):
        assert words in said


def test_groups_with_random_effects_on_the_command_line(run: Any) -> None:
    rng = np.random.default_rng(0)
    level, slope, hours = np.repeat(rng.normal(size=8), 10), np.repeat(rng.normal(size=8), 10), rng.normal(size=80)
    mark = 5.0 + level + (2.0 + slope) * hours + rng.normal(size=80)
    write_csv("marks.csv", {"school": np.repeat([f"s{i}" for i in range(8)], 10), "hours": hours, "mark": mark})
    asked = ["fit", "hours -> mark", "marks.csv", "-o", "mixed.json", "--group", "school", "--inside", "mark"]
    code, _, err = run(*asked, "--pooling", "partial:hours")
    assert code == 0, err
    plate = sf.plates.Plate("hours -> mark", group="school", inside=["mark"], pooling=sf.plates.Partial(slopes=["hours"]))
    fitted = sf.fit(plate, "marks.csv")["mark"]
    np.testing.assert_allclose(sf.read("mixed.json")["mark"].coefficients, fitted.coefficients, rtol=1e-9)
    for words, said in (
        ([*asked, "--pooling", "some"], "--pooling is separate, pooled, partial"),
        ([*asked, "--family", "mark=linear"], "--group has no part beside --family"),
        ([*asked[:5], "--pooling", "partial"], "name the column that makes them, --group COLUMN"),
    ):
        code, _, err = run(*words)
        assert (code, said in err) == (1, True), err


def test_tied_regressions_with_gaps_on_the_command_line(run: Any) -> None:
    rng = np.random.default_rng(1)
    columns: dict[str, Any] = {}
    for j in range(2):
        x, g = rng.normal(size=120), rng.choice(["a", "b"], 120)
        y = np.where(rng.random(120) < 1 / (1 + np.exp(-x)), "yes", "no")
        columns |= {f"x{j}": x, f"g{j}": np.where(rng.random(120) < 0.1, "", g), f"y{j}": y}
    write_csv("rows.csv", columns)
    families = ("--family", "y0=probit", "--family", "y1=probit", "--shared", "y0,y1")
    code, _, err = run("fit", "x0 -> y0; g0 -> y0; x1 -> y1; g1 -> y1", "rows.csv", "-o", "tied.json", *families)
    assert code == 0, err
    bn = sf.read("tied.json")
    assert np.array_equal(bn["y0"].theta, bn["y1"].theta)
    assert bn.shared == (("y0", "y1"),)


def test_intervals_after_em_of_shared_nodes_and_regressions(run: Any, quiz: dict[str, Any]) -> None:
    options = ["--shared", "q1,q2,q3", "--family", "ill=logistic"]
    code, _, err = run("fit", f"{GRAPH}; skill -> ill; age -> ill; q2 -> ill", "gaps.csv", "-o", "model.json", *options)
    assert code == 0, err
    for question in ("P(q2=right | skill=low)", "P(ill=yes | skill=low, age=1, q2=right)", "P(ill=yes | skill=low, age=1)"):
        code, out, err = run("query", "model.json", question, "--interval", "0.9", "--json")
        assert code == 0, err
        found = json.loads(out)["probabilities"][0]
        assert 0 < found["lower"] < found["probability"] < found["upper"] < 1
    code, out, err = run("predict", "model.json", "gaps.csv", "--target", "q2", "--interval", "0.9")
    assert code == 0, err
