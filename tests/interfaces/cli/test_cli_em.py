"""`suffice fit` and `suffice missing` on incomplete data, called as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import suffice as sf


@pytest.fixture
def visits(run) -> Path:
    """Rows of ASIA with gaps, without the column `either`."""
    frame = sf.load("asia").sample(400, seed=0).to_pandas().astype(object).drop(columns="either")
    frame = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1)
    frame.to_csv("visits.csv", index=False)
    return Path("visits.csv")


def test_fit_with_missing_cells(run, visits) -> None:
    code, _, err = run("fit", "smoke -> lung; smoke -> bronc", visits, "-o", "model.json")
    assert code == 0, err
    assert "of the cells missing, maximum likelihood, by EM: converged" in err
    expected = sf.em("smoke -> lung; smoke -> bronc", "visits.csv").model
    assert sf.read("model.json")["lung"].probs == pytest.approx(expected["lung"].probs)


def test_fit_with_a_hidden_variable(run, visits) -> None:
    words = ("--hidden", "either=yes,no", "--starts", 3, "--seed", 5, "--prior", "bdeu:2")
    code, _, err = run("fit", "asia", visits, "-o", "model.json", *words)
    assert code == 0, err
    assert "of 3 starts led to the best optimum" in err
    assert "'either' hidden, posterior mean, by EM" in err
    assert sf.read("model.json").variables["either"].states == ("yes", "no")


@pytest.mark.parametrize("word", ["ability:real", "ability=real"])
def test_fit_with_a_hidden_number(run, word) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 1)) @ [[1.0, -0.8, 0.6]] + 0.5 * rng.standard_normal((200, 3))
    np.savetxt("rows.csv", x, delimiter=",", header="a,b,c", comments="")
    dag = "ability -> a; ability -> b; ability -> c"
    code, _, err = run("fit", dag, "rows.csv", "--hidden", word, "--starts", 1, "-o", "model.json")
    assert code == 0, err
    assert "by convention 'ability' has mean 0, variance 1 and a first loading above 0" in err
    assert sf.read("model.json").hidden == {"ability"}
    code, out, err = run("predict", "model.json", "rows.csv", "--target", "ability")
    assert code == 0, err
    assert out.startswith("ability,Var(ability)")
    code, out, err = run("query", "model.json", "P(ability | a=1)")
    assert code == 0, err
    code, _, err = run("learn", "rows.csv", "--hidden", word)
    assert code == 1
    assert "give the graph, suffice fit DAG DATA --hidden ability:real" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("asia", "visits.csv"), "no column 'either'"),
        (("asia", "visits.csv", "--hidden", "either"), "--hidden takes a name and at least two states"),
        (("asia", "visits.csv", "--hidden", "either=yes,no", "--hidden", "smoke=a,b"), "'smoke' is also a column of the data"),
        (("asia", "visits.csv", "--hidden", "eiter=yes,no"), "'eiter' is not in the graph; did you mean 'either'"),
        (("smoke -> lung", "visits.csv", "--statistics", "s.stats"), "--statistics are of complete rows"),
    ],
)
def test_what_fit_refuses(run, visits, words, message) -> None:
    code, out, err = run("fit", *words, "-o", "model.json")
    assert (code, out) == (1, "")
    assert message in err
    assert not Path("model.json").exists()


def test_the_report_of_missing_cells(run, visits) -> None:
    code, out, err = run("missing", visits)
    assert code == 0, err
    assert "complete-case analysis would keep" in out
    code, out, _ = run("missing", visits, "--json")
    assert code == 0
    assert out.startswith("{")


def test_an_interrupt_writes_the_best_so_far(run, visits, monkeypatch) -> None:
    from suffice.learning import em as module

    def stop(*args: object) -> None:
        if len(args[-1].trace) == 3:  # type: ignore[attr-defined]
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "_watch", stop)
    code, _, err = run("fit", "smoke -> lung -> xray", visits, "-o", "model.json", "--tol", 0)
    assert code == 0, err
    assert "stopped before its end" in err
    assert "did not converge in 3 iterations" in err
    assert len(sf.read("model.json")) == 3


def test_learn_with_missing_cells(run, visits) -> None:
    code, out, err = run("learn", visits, "-o", "learned.json", "--max-parents", 2)
    assert code == 0, err
    assert "StructuralRun: 7 variables" in out
    assert "by EM" in err
    assert len(sf.read("learned.json")) == 7
    code, out, err = run("learn", visits, "--json", "--score", "bdeu:1")
    assert code == 0, err
    assert out.startswith("{")


def test_an_interrupt_after_learning_loses_the_intervals_and_not_the_network(run, visits, monkeypatch) -> None:
    from suffice.learning.incomplete import information

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(information, "observed_information", interrupted)
    for words in (("learn",), ("fit", "smoke -> lung -> xray")):
        code, _, err = run(*words, visits, "-o", "model.json")
        assert code == 0, err
        assert "note: the file has no intervals of answers: what they need was interrupted" in err
        assert sf.read("model.json").parameter_covariance is None


def test_learn_with_a_hidden_variable(run, visits) -> None:
    code, out, err = run("learn", visits, "--hidden", "cause=2", "--starts", 2, "-o", "learned.json")
    assert code == 0, err
    assert "8 variables" in out
    assert "cause" in sf.read("learned.json").variables


def test_what_learn_refuses_of_incomplete_rows(run, visits) -> None:
    code, _, err = run("learn", visits, "--hidden", "cause=2", "--bootstrap", 3)
    assert code == 1
    assert "--bootstrap needs complete rows without hidden variables" in err
    code, _, err = run("learn", visits, "--method", "pc")
    assert code == 1
    assert "PC" in err


def test_learn_explains_and_resamples_incomplete_rows(run, visits) -> None:
    code, out, err = run("learn", visits, "--explain", "--bootstrap", 3, "-o", "learned.json")
    assert code == 0, err
    assert "is in the graph" in out
    assert "3 replicates of a search over 7 variables" in out
    assert "each of 3 replicates is a structural EM" in err
    code, out, err = run("learn", visits, "--explain", "--bootstrap", 2, "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert len(facts["explanations"]) == len(facts["edges"])
    assert facts["bootstrap"]["n_done"] == 2


def test_intervals_after_em(run, visits) -> None:
    code, _, err = run("fit", "smoke -> lung; smoke -> bronc", visits, "-o", "model.json")
    assert code == 0, err
    code, out, err = run("query", "model.json", "P(lung=yes | bronc=yes)", "--interval", "0.9", "--json")
    assert code == 0, err
    found = json.loads(out)["probabilities"][0]
    assert found["lower"] < found["probability"] < found["upper"]
    code, out, err = run("query", "model.json", "bronc=yes", "--all", "--interval", "0.9", "--json")
    assert json.loads(out)["marginals"]["lung"]["probabilities"][0]["lower"] > 0, err
    code, out, err = run("predict", "model.json", visits, "--target", "lung", "--interval", "0.9")
    assert code == 0, err
    assert out.splitlines()[0].startswith("lung,P(lung=no),P(lung=yes),P(lung=no) lower,P(lung=no) upper")
    run("fit", "smoke -> lung; smoke -> bronc", visits, "-o", "bare.json", "--no-information")
    code, _, err = run("query", "bare.json", "P(lung)", "--interval", "0.9")
    assert code == 1
    assert "fit it with --information" in err
    assert "bdeu" not in err
    code, _, err = run("fit", "smoke -> lung", visits, "-o", "model.bif", "--information")
    assert "kept in .json files only" in err


def test_a_mechanism_of_missing_cells(run, visits) -> None:
    graph = "smoke -> lung; smoke -> bronc; lung -> xray"
    code, _, err = run("fit", graph, visits, "-o", "m.json", "--missing-depends-on", "lung=lung,smoke")
    assert code == 0, err
    assert "identified given 'smoke' only as far as 'xray'" in err
    assert "lung_missing" in sf.read("m.json")
    for words, message in {
        "lung": "--missing-depends-on is COLUMN=NAME,NAME",
        "lun=lung": "--missing-depends-on names 'lun', which is not in the graph",
    }.items():
        code, _, err = run("fit", graph, visits, "-o", "m.json", "--missing-depends-on", words)
        assert code != 0
        assert message in err
    code, _, err = run("fit", "a -- b", visits, "-o", "m.json", "--missing-depends-on", "lung=lung")
    assert "--missing-depends-on is for networks of rows" in err


def test_forecasts_and_comparisons(run, visits) -> None:
    code, out, err = run("fit", "smoke -> lung", visits, "-o", "m.json", "--dry-run")
    assert code == 0, err
    assert "an iteration" in out
    assert not Path("m.json").exists()
    code, out, err = run("missing", visits, "--compare", "--graph", "smoke -> lung")
    assert code == 0, err
    assert "available cases" in out
    code, _, err = run("missing", visits, "--graph", "smoke -> lung")
    assert "--graph is for --compare" in err
    sf.load("asia").sample(50, seed=0).to_pandas().to_csv("whole.csv", index=False)
    code, out, err = run("learn", "whole.csv", "--dry-run", "--bootstrap", 9)
    assert code == 0, err
    assert "9 × " in out
    code, _, err = run("fit", "smoke -> lung", "whole.csv", "-o", "m.json", "--dry-run")
    assert "--dry-run is for EM" in err


def test_imputation_holds_or_draws_the_parameters(run, visits) -> None:
    run("fit", "smoke -> lung; smoke -> bronc", visits, "-o", "model.json")
    tables = [run("impute", "model.json", visits, "--draws", 2, option)[1] for option in ("--redraw", "--no-redraw")]
    assert tables[0] != tables[1]
    _, _, err = run("impute", "model.json", visits, "--redraw")
    assert "--redraw is for --draws" in err
