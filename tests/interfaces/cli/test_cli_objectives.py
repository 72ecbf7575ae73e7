"""Principles on the command line, called as a user calls it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import suffice as sf

NAIVE, STAR = "ill -> cough; ill -> fever", "ill -- cough; ill -- fever"


@pytest.fixture
def people(run) -> pd.DataFrame:
    rows = pd.DataFrame({"ill": list("nnyynyny") * 4, "cough": list("nyyynnny") * 4, "fever": list("nnynyyyn") * 4})
    rows.assign(day=range(32)).to_csv("people.csv", index=False)
    rows.to_csv("rows.csv", index=False)
    return rows


def alike(one, other, rows) -> None:
    found, wanted = (model.predict_proba(rows, "ill")["y"].to_numpy() for model in (one, other))
    np.testing.assert_allclose(found, wanted, atol=1e-12)


CONDITIONAL = {"objective": sf.Conditional("ill"), "penalty": sf.L2(1)}


@pytest.mark.parametrize(
    ("graph", "words", "how", "principle"),
    [
        (NAIVE, "--objective margin:ill", {"objective": sf.Margin("ill")}, "margins"),
        (NAIVE, "--objective margin:ill --penalty l2:0.2", {"objective": sf.Margin("ill"), "penalty": sf.L2(0.2)}, "margins"),
        (NAIVE, "--objective conditional:ill --penalty l2:1", CONDITIONAL, "conditional likelihood"),
        (NAIVE, "--objective likelihood", {}, "maximum likelihood"),
        (NAIVE, "--objective bayes:bdeu:10", {"prior": sf.BDeu(10)}, "posterior mean"),
        (NAIVE, "--objective bayes --prior k2", {"prior": sf.K2()}, "posterior mean"),
        (
            NAIVE,
            "--objective Bayes:dirichlet:2 --estimate mode",
            {"prior": sf.Dirichlet(2), "estimate": sf.Mode()},
            "posterior mode",
        ),
        (STAR, "--objective conditional:ill --penalty l2:1", CONDITIONAL, "conditional likelihood"),
        (STAR, "--objective likelihood", {}, "maximum likelihood"),
        (STAR, "--objective bayes:bdeu:10", {"prior": sf.BDeu(10)}, "posterior mean"),
        (STAR, "--objective bayes --prior bdeu:3", {"prior": sf.BDeu(3)}, "posterior mean"),
    ],
)
def test_fit_and_show(run, people, graph, words, how, principle) -> None:
    code, _, err = run("fit", graph, "rows.csv", "-o", "net.json", *words.split())
    assert code == 0, err
    alike(sf.read("net.json"), sf.fit(graph, people, **how), people)
    code, out, err = run("show", "net.json")
    assert code == 0, err
    assert principle in out


def test_show_names_the_principle_its_value_and_iterations(run, people) -> None:
    run("fit", NAIVE, "rows.csv", "-o", "net.json", "--objective", "margin:ill")
    _, out, _ = run("show", "net.json")
    for said in ("margins", "L2(0.5)", "hinge loss", "objective ", "iterations", "not calibrated"):
        assert said in out.replace("\n", " "), out
    run("fit", STAR, "rows.csv", "-o", "net.json", "--objective", "conditional:ill")
    _, out, _ = run("show", "net.json")
    for said in ("conditional likelihood", "Σ log p(ill | rest)", "iterations"):
        assert said in out, out


def test_max_entropy_and_counts(run, people) -> None:
    code, _, err = run("fit", STAR, "rows.csv", "-o", "net.json", "--objective", "max-entropy")
    assert code == 0, err
    sf.scan(people).gather([sf.statistics.Request(("ill", "cough", "fever"))]).save("people.stats")
    code, _, err = run("fit", NAIVE, "people.stats", "-o", "net.json", "--objective", "margin:ill")
    assert code == 0, err
    alike(sf.read("net.json"), sf.fit(NAIVE, people, objective=sf.Margin("ill")), people)


def test_bayes_of_a_template(run, people) -> None:
    code, _, err = run(
        "fit", "ill[-1] -> ill -> cough", "people.csv", "--order", "day", "-o", "c.json", "--objective", "bayes:k2"
    )
    assert code == 0, err
    steps = sf.sequences(people.assign(day=range(32)), order="day")
    wanted = sf.fit("ill[-1] -> ill -> cough", steps, prior=sf.K2())
    assert np.array_equal(sf.read("c.json")["ill"].probs, wanted["ill"].probs)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            (NAIVE, "rows.csv", "--objective", "perceptron:ill"),
            "the nearest is --objective margin:ill; Perceptron is for a LinearChain",
        ),
        ((NAIVE, "rows.csv", "--objective", "pseudo"), "the nearest is --objective likelihood"),
        ((STAR, "rows.csv", "--objective", "margin:ill"), "the nearest is --objective conditional:ill"),
        ((NAIVE, "rows.csv", "--objective", "margin"), "--objective margin is about one variable: margin:NAME"),
        ((NAIVE, "rows.csv", "--objective", "margin:ills"), "did you mean 'ill'?"),
        ((STAR, "rows.csv", "--objective", "conditional:ills"), "did you mean 'ill'?"),
        ((NAIVE, "rows.csv", "--objective", "bayes"), "--objective bayes is of a prior: bayes:bdeu:10"),
        ((NAIVE, "rows.csv", "--objective", "bayes:mle"), "--objective bayes is of a prior"),
        ((NAIVE, "rows.csv", "--objective", "bayes:bdeux"), "the prior 'bdeux' is not known"),
        ((NAIVE, "rows.csv", "--objective", "bayes:k2", "--prior", "k2"), "leave one out"),
        ((NAIVE, "rows.csv", "--objective", "guess"), "--objective 'guess' is not known; use likelihood, max-entropy"),
        ((NAIVE, "rows.csv", "--objective", "likelihood", "--penalty", "l2:1"), "--penalty is for undirected models, for labels"),
        ((NAIVE, "rows.csv", "--objective", "margin:ill", "--penalty", "l1:1"), "takes the penalty L2(c2)"),
        ((NAIVE, "rows.csv", "--objective", "margin:ill", "--starts", "3"), "--starts has no part in --objective margin:ill"),
        ((NAIVE, "rows.csv", "--objective", "margin:ill", "--hidden", "ill=a,b"), "--hidden has no part"),
        (
            ("ill[-1] -> ill", "people.csv", "--order", "day", "--objective", "margin:ill"),
            "is not for a chain of slices; the nearest is --objective likelihood",
        ),
        (("ill[-1] -> ill", "people.csv", "--order", "day", "--penalty", "l2:1"), "a chain of slices has none"),
        (("rows.csv", "--rbm", "2", "--objective", "bayes:k2"), "is not for an RBM; the nearest is --objective cd:1"),
        (
            ("people.csv", "--chain", "ill", "--features", "cough", "--order", "day", "--objective", "likelihood"),
            "the nearest is --objective conditional:ill",
        ),
    ],
)
def test_refused(run, people, arguments, said) -> None:
    code, out, err = run("fit", *arguments, "-o", "net.json")
    assert (code, out) == (1, ""), (out, err)
    assert said in " ".join(err.split()), err
    assert not Path("net.json").exists()
