"""Undirected models on the command line, called as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import suffice as sf


@pytest.fixture
def survey(run) -> pd.DataFrame:
    """Three questions of which the second is the cause of what the others have in common."""
    rng = np.random.default_rng(0)
    mood = rng.random(400) < 0.5
    answers = {
        "calm": np.where(rng.random(400) < 0.85, mood, ~mood),
        "mood": mood,
        "sleep": np.where(rng.random(400) < 0.8, mood, ~mood),
    }
    rows = pd.DataFrame({name: np.where(bits, "yes", "no") for name, bits in answers.items()})
    rows.to_csv("survey.csv", index=False)
    return rows


@pytest.fixture
def levels(run) -> pd.DataFrame:
    """A chain of four numbers."""
    rng = np.random.default_rng(1)
    columns = [rng.normal(size=300)]
    for _ in range(3):
        columns.append(0.8 * columns[-1] + 0.6 * rng.normal(size=300))
    rows = pd.DataFrame(dict(zip("abcd", columns, strict=True)))
    rows.to_csv("levels.csv", index=False)
    return rows


@pytest.mark.parametrize("graph", ["calm -- mood; mood -- sleep", "graph.txt"])
def test_fit_a_graph(run, survey, graph) -> None:
    Path("graph.txt").write_text("calm -- mood\nmood -- sleep\n", "utf-8")
    code, out, err = run("fit", graph, "survey.csv", "-o", "net.json")
    assert (code, out) == (0, ""), err
    assert "3 variables, 2 edges" in err
    net, same = sf.read("net.json"), sf.fit("calm -- mood; mood -- sleep", survey)
    assert net == same
    code, out, err = run("query", "net.json", "P(sleep=yes | calm=yes)", "--json")
    assert code == 0, err
    [answer] = json.loads(out)["probabilities"]
    assert answer["probability"] == pytest.approx(same.query("sleep", given={"calm": "yes"})["yes"])


def test_all_columns_up_to_an_order(run, survey) -> None:
    code, _, err = run("fit", "all", "survey.csv", "-o", "pairs.json", "--undirected", "--interactions", "2")
    assert code == 0, err
    assert sf.read("pairs.json").deviance == pytest.approx(sf.fit(sf.LogLinear.all(2, list(survey)), survey).deviance)
    code, _, err = run("fit", "pairs.json", "survey.csv", "-o", "again.json", "--undirected", "--penalty", "l1:1+l2:0.5")
    assert code == 0, err
    wanted = sf.fit(sf.LogLinear.all(2, list(survey)), survey, penalty=sf.L1(1.0) + sf.L2(0.5))
    assert sf.read("again.json").log_likelihood(survey) == pytest.approx(wanted.log_likelihood(survey))


def test_objectives(run, survey) -> None:
    graph = "calm -- mood; mood -- sleep"
    code, _, err = run("fit", graph, "survey.csv", "-o", "net.json", "--objective", "pseudo")
    assert code == 0, err
    near = sf.fit(graph, survey)
    assert sf.read("net.json").log_likelihood(survey) == pytest.approx(near.log_likelihood(survey), abs=0.5)
    code, _, err = run("fit", graph, "survey.csv", "-o", "net.json", "--objective", "guess")
    assert code == 1
    assert "is not known; use likelihood, max-entropy, pseudo, cd, pcd, conditional" in err


def test_what_is_known_of_the_result(run, survey) -> None:
    run("fit", "calm -- mood; mood -- sleep", "survey.csv", "-o", "net.json")
    code, out, _ = run("score", "net.json", "survey.csv", "--json")
    facts, net = json.loads(out), sf.read("net.json")
    assert code == 0
    assert facts["BIC"] == pytest.approx(net.bic(survey))
    code, out, _ = run("show", "net.json", "--dot")
    assert (code, out.strip()) == (0, net.to_dot())
    code, out, _ = run("show", "net.json")
    assert (code, "calm, mood" in out) == (0, True)
    code, out, err = run("predict", "net.json", "survey.csv", "--target", "sleep", "-o", "found.csv")
    assert code == 0, err
    assert list(pd.read_csv("found.csv")["sleep"]) == list(net.predict(survey, "sleep"))
    code, out, _ = run("sample", "net.json", "-n", "5", "--seed", "1")
    assert (code, len(out.splitlines())) == (0, 6)
    code, _, err = run("convert", "net.json", "net.uai")
    assert (code, sf.read("net.uai").n_parameters) == (0, net.n_parameters), err
    code, _, err = run("convert", "net.json", "net.bif")
    assert code == 1
    assert "this is a Markov network: write .uai or .json" in err
    assert not Path("net.bif").exists()


def test_glasso(run, levels) -> None:
    code, out, err = run("learn", "levels.csv", "-o", "graph.json", "--method", "glasso", "--select", "ebic:0.5", "--explain")
    assert code == 0, err
    assert "a -- b" in out
    assert "partial correlation" in out
    found = sf.search(levels, method=sf.GraphicalLasso(select=sf.choices.EBIC(0.5)))
    net = sf.read("graph.json")
    assert net.graph == found.graph
    assert np.allclose(net.precision, found.model.precision)
    code, out, err = run("query", "graph.json", "P(b | a=1)", "--json")
    assert json.loads(out)["mean"]["b"] == pytest.approx(net.query("b", given={"a": 1.0}).mean), err
    code, _, err = run("fit", "a -- b; b -- c", "levels.csv", "-o", "selected.json")
    assert (code, sf.read("selected.json").graph.edges) == (0, (("a", "b"), ("b", "c"))), err


@pytest.mark.parametrize("method", ["neighbourhoods", "decomposable", "stepwise", "chow-liu-graph"])
def test_learn(run, survey, method) -> None:
    code, out, err = run("learn", "survey.csv", "-o", "graph.json", "--method", method)
    assert code == 0, err
    assert {("calm", "mood"), ("mood", "sleep")} <= set(sf.read("graph.json").graph.edges)
    assert "mood" in out


def test_learn_as_json(run, survey) -> None:
    asked = ("learn", "survey.csv", "--method", "neighbourhoods", "--penalty", "0.05", "--bootstrap", "3", "--json")
    code, out, err = run(*asked)
    assert code == 0, err
    facts = json.loads(out)
    assert ["calm", "mood"] in facts["edges"]
    assert facts["path"][0]["penalty"] == 0.05
    assert "bootstrap" in facts


def test_a_file_without_arrows_is_known_as_such(run, survey, levels) -> None:
    run("fit", "calm -- mood; mood -- sleep", "survey.csv", "-o", "net.json")
    code, _, err = run("fit", "net.json", "survey.csv", "-o", "again.json")
    assert code == 0, err
    assert sf.read("again.json") == sf.read("net.json")
    run("fit", "a -- b; b -- c", "levels.csv", "-o", "numbers.json")
    code, _, err = run("fit", "numbers.json", "levels.csv", "-o", "again.json")
    assert code == 0, err
    assert sf.read("again.json") == sf.read("numbers.json")
    for model in ("net.json", "numbers.json"):
        code, _, err = run("compare", model, model)
        assert code == 1
        assert "holds a model without arrows" in err


def test_the_seed_of_draws(run, survey) -> None:
    asked = ("fit", "calm -- mood; mood -- sleep", "survey.csv", "-o", "net.json", "--objective", "pcd:1", "--seed")
    drawn = []
    for seed in (1, 1, 2):
        code, _, err = run(*asked, seed)
        assert code == 0, err
        drawn.append(sf.read("net.json"))
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]


def test_numbers_are_not_written_as_uai(run, levels) -> None:
    for asked in (("--method", "glasso"), ("--method", "decomposable")):
        code, out, err = run("learn", "levels.csv", "-o", "net.uai", *asked)
        assert (code, out) == (1, "")
        assert ".uai holds networks of finite variables, and this is a Gaussian Markov network: write .json" in err


def test_machine(run, survey) -> None:
    code, _, err = run("fit", "--rbm", "3", "survey.csv", "-o", "machine.json", "--epochs", "2", "--seed", "4")
    assert code == 0, err
    machine = sf.read("machine.json")
    assert machine == sf.undirected.rbm(survey, 3, epochs=2, seed=4).model
    code, _, err = run("predict", "machine.json", "survey.csv", "-o", "features.parquet")
    assert code == 0, err
    assert np.allclose(pd.read_parquet("features.parquet").to_numpy(), machine.transform(survey).to_numpy())
    code, _, err = run("query", "machine.json", "P(mood)")
    assert code == 1
    assert "restricted Boltzmann machine" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fit", "calm -> mood", "survey.csv", "--penalty", "l2:1"), "--penalty is for undirected models"),
        (("fit", "calm -- mood", "survey.csv", "--hidden", "x=2"), "--hidden is not for undirected models"),
        (("fit", "calm -- mood", "survey.csv", "--penalty", "l3:1"), "--penalty is l1:0.1, l2:1, or their sum"),
        (("fit", "calm -- mood", "survey.csv", "--penalty", "l2:-1"), "above 0"),
        (("fit", "nowhere.txt", "survey.csv", "--undirected"), "not an undirected graph either"),
        (("fit", "asia", "survey.csv", "--undirected"), "that has arrows"),
        (("fit", "calm -- anger", "survey.csv"), "no column 'anger'"),
        (("fit", "calm -- mood"), "give a graph and data"),
        (("fit", "calm -- mood", "survey.csv", "-o", "net.bif"), "this is a Markov network"),
        (("learn", "survey.csv", "--method", "decomposable", "-o", "net.xdsl"), "this is a Markov network"),
        (("fit", "--rbm", "3", "calm -- mood", "survey.csv"), "--rbm takes no graph"),
        (("learn", "survey.csv", "--method", "glasso"), "--method neighbourhoods finds the graph of finite"),
        (
            ("learn", "survey.csv", "--method", "neighbourhoods", "--penalty", "0"),
            "suffice fit estimates a given graph without one",
        ),
        (("fit", "calm -- mood", "survey.csv", "--objective", "pseudo", "--prior", "bdeu:1"), "--objective pseudo has no place"),
        (("fit", "calm -- mood", "survey.csv", "--objective", "cd:0"), "--objective cd:N, pcd:N: N is a whole number"),
        (("fit", "calm -- mood", "survey.csv", "--time-limit", "0"), "--time-limit is a number of seconds above 0"),
        (
            ("fit", "--rbm", "3", "survey.csv", "--objective", "pseudo"),
            "not for an RBM; the nearest is --objective cd:1",
        ),
        (
            ("learn", "survey.csv", "--method", "neighbourhoods", "--select", "luck"),
            "--select 'luck' is not known; use ebic, stars, cv, with a number as in ebic:0.5",
        ),
        (("learn", "survey.csv", "--method", "decomposable", "--hidden", "x=2"), "--hidden is not for undirected models"),
        (("learn", "survey.csv", "--method", "decomposable", "--starts", "2"), "--starts is not for undirected models"),
        (
            ("learn", "survey.csv", "--method", "neighbourhoods", "--score", "aic"),
            "the method neighbourhoods has no option --score",
        ),
        (
            ("learn", "survey.csv", "--method", "neighbourhoods", "--penalty", "1", "--select", "cv:5"),
            "leave --penalty or --select",
        ),
        (("learn", "survey.csv", "--method", "orders", "--penalty", "0.1"), "the method orders has no option --penalty"),
    ],
)
def test_refused(run, survey, arguments, said) -> None:
    code, out, err = run(*arguments, *(() if "-o" in arguments else ("-o", "net.json")))
    assert (code, out) == (1, "")
    assert said in err
    assert len(err.strip().splitlines()) == 1
    assert not Path("net.json").exists()


def test_missing_cells_are_refused_with_their_number(run, survey) -> None:
    survey.loc[:6, "mood"] = None
    survey.to_csv("survey.csv", index=False)
    code, _, err = run("fit", "calm -- mood", "survey.csv", "-o", "net.json")
    assert code == 1
    assert "'mood'" in err
    assert "7" in err
    code, _, err = run("learn", "survey.csv", "--method", "decomposable", "-o", "net.json")
    assert code == 1
    assert "'mood' 7" in err


def test_missing_numbers_are_refused_with_the_same_hint(run, levels) -> None:
    levels.loc[:2, "b"] = None
    levels.to_csv("levels.csv", index=False)
    code, _, err = run("fit", "a -- b; b -- c", "levels.csv", "-o", "net.json")
    assert code == 1
    assert "'b' 3" in err
    assert "EM of them is not here" in err


def test_a_graph_of_finite_and_real_columns_has_no_network(run, survey) -> None:
    survey["age"] = np.random.default_rng(2).normal(40, 10, len(survey)).round(2)
    survey.to_csv("survey.csv", index=False)
    code, out, err = run("learn", "survey.csv", "--method", "neighbourhoods", "-o", "net.json")
    assert (code, out) == (1, "")
    assert "finite and real columns" in err
    code, out, err = run("learn", "survey.csv", "--method", "neighbourhoods")
    assert code == 0, err
    assert "calm -- mood" in out


def test_a_tree_without_arrows_prints_lines(run, survey) -> None:
    code, out, err = run("learn", "survey.csv", "--method", "chow-liu-graph")
    assert code == 0, err
    assert "calm -- mood" in out
    assert "->" not in out


def test_contrastive_divergence_has_a_time_limit(run, survey) -> None:
    code, _, err = run("fit", "calm -- mood", "survey.csv", "--objective", "pcd:1000", "--time-limit", "0.05", "-o", "net.json")
    assert code == 0, err
    assert "stopped after" in err
