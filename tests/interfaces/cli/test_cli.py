"""The command line, called as a user calls it."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import suffice as sf
from suffice.errors import FormatError, SufficeError, SufficeNote
from suffice.errors.remedies import (
    Remedy,
    argument,
    as_family,
    as_regression,
    declaration,
    hidden_with_states,
    name_of,
    of_python,
    ridge_of,
    state_names,
    weight_penalty,
    without_column,
)


@pytest.fixture
def asia(run) -> sf.BayesNet:
    bn = sf.load("asia")
    sf.write(bn, "asia.bif")
    bn.sample(2000, seed=0).to_pandas().to_csv("rows.csv", index=False)
    return bn


def test_fit_sample_score_compare_convert_show(run, asia) -> None:
    code, out, err = run("fit", "asia.bif", "rows.csv", "-o", "fit.json", "--prior", "bdeu:10", "--statistics", "rows.stats")
    assert (code, out) == (0, "")
    assert "8 nodes" in err
    assert sf.read("fit.json") == sf.fit(asia, "rows.csv", prior=sf.BDeu(10))
    assert sf.read("fit.json")["xray"].interval(0.9)

    code, out, _ = run("fit", "asia.bif", "rows.stats", "-o", "again.json", "--prior", "bdeu:10")
    assert code == 0
    assert sf.read("again.json") == sf.read("fit.json")

    code, _, err = run("fit", "asia.bif", "rows.stats", "-o", "again.json", "--weights", "w")
    assert code == 1
    assert "rows.stats" in err

    code, out, _ = run("score", "fit.json", "rows.csv", "--json")
    assert code == 0
    assert json.loads(out)["graph: BIC"] == pytest.approx(sf.score(asia.dag, "rows.csv", sf.BIC()))

    code, out, _ = run("sample", "fit.json", "-n", 3, "--seed", 1)
    assert code == 0
    assert out.splitlines()[0].split(",") == list(sf.read("fit.json").variables)
    assert len(out.splitlines()) == 4
    for name in ("s.csv", "s.csv.gz", "s.parquet"):
        assert run("sample", "fit.json", "-n", 50, "--seed", 1, "-o", name)[0] == 0
        assert sf.scan(name).n_rows == 50

    code, out, _ = run("compare", "asia.bif", "fit.json", "--json")
    facts = json.loads(out)
    assert (code, facts["shd"]) == (0, 0)
    assert facts["KL(truth || learned), nats"] == pytest.approx(sf.information.kl(asia, sf.read("fit.json")))

    assert run("convert", "fit.json", "fit.xmlbif")[0] == 0
    assert sf.read("fit.xmlbif") == sf.read("fit.json")
    assert "BayesNet of 8 nodes" in run("show", "fit.xmlbif")[1]
    assert "p(xray | either)" in run("show", "fit.xmlbif", "--node", "xray")[1]
    assert "digraph" in run("show", "fit.xmlbif", "--dot")[1]
    said = " ".join(run("convert", "--help")[1].split())
    assert said.count("bif, dsc, xmlbif") == 2
    assert json.loads(run("show", "fit.xmlbif", "--json")[1])["suffice"] == "bayes_net"


def test_graphs_as_text_and_declarations(run) -> None:
    Path("rows.csv").write_text("age,smoke,visits\n15,0,1.5\n30,1,2.5\n70,1,4.5\n41,0,3.0\n", "utf-8")
    Path("graph.txt").write_text("age -> visits\nsmoke -> visits\n", "utf-8")
    declared = ["--bins", "age=18,65", "--finite", "smoke"]
    code, _, err = run("fit", "graph.txt", "rows.csv", "-o", "m.json", *declared, "--prior", "bdeu:1+nig")
    assert code == 0, err
    bn = sf.read("m.json")
    assert bn.variables["age"].states == ("<18", "[18,65)", ">=65")
    assert bn.variables["smoke"].states == ("0", "1")
    code, _, err = run("fit", "age -> visits", "rows.csv", "-o", "n.json")
    assert code == 0
    assert "note: " in err
    assert run("fit", "age", "rows.csv", "-o", "m.json")[0] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fit", "asia.bif", "nowhere.csv", "-o", "out.json"], "nowhere.csv"),
        (["fit", "nowhere.bif", "rows.csv", "-o", "out.json"], "nowhere.bif"),
        (["fit", "asia -> tubb", "rows.csv", "-o", "out.json"], "'tubb'"),
        (["fit", "asia -> tub -> asia", "rows.csv", "-o", "out.json"], "cycle"),
        (["fit", "asia.bif", "rows.csv", "-o", "out.xyz"], ".xyz"),
        (["fit", "asia.bif", "rows.csv", "-o", "no/such/out.json"], "no/such"),
        (["fit", "asia.bif", "rows.csv", "-o", "out.json", "--prior", "magic"], "'magic'"),
        (["fit", "asia.bif", "rows.csv", "-o", "out.json", "--prior", "bdeu:-1"], "positive"),
        (["fit", "asia.bif", "wrong.csv", "-o", "out.json"], "'maybe'"),
        (["fit", "asia.bif", "ragged.csv", "-o", "out.json"], "line 3"),
        (["sample", "asia.bif", "-n", "5", "-o", "out.xlsx"], ".xlsx"),
        (["show", "asia.bif", "--node", "tubb"], "'tubb'"),
        (["convert", "asia.bif", "out.dsl"], ".dsl"),
        (["score", "broken.bif", "rows.csv"], "broken.bif, line"),
        (["fit", "; ".join(f"node{i}" for i in range(60)) + "; a -> b", "rows.csv", "-o", "out.json"], "no column"),
        (["fit", "asia.bif", "rows.csv", "-o", "out.json", "--statistics", "no/such/x.stats"], "no/such/x.stats"),
        (["fit", "asia.bif", "rows.csv", "-o", "out.json", "--statistics", "out.json"], "out.json"),
        (["fit", "asia.bif", "rows.csv", "-o", "out.json", "--bins", "asia=x"], "--bins"),
        (["score", "asia.bif", "other.csv"], "which the network names"),
    ],
)
def test_refusals_are_one_sentence_and_touch_nothing(run, asia, words: list[str], message: str) -> None:
    rows = Path("rows.csv").read_text("utf-8").splitlines()
    Path("wrong.csv").write_text("\n".join([rows[0], rows[1].replace("no", "maybe", 1)]), "utf-8")
    Path("ragged.csv").write_text("\n".join([rows[0], rows[1], "no,no"]), "utf-8")
    Path("other.csv").write_text("a,b\nx,y\n", "utf-8")
    Path("broken.bif").write_text(Path("asia.bif").read_text("utf-8")[:300], "utf-8")
    Path("out.json").write_text("old", "utf-8")
    before = sorted(p.name for p in Path().iterdir())
    code, out, err = run(*words)
    assert (code, out) == (1, ""), err
    assert message in err
    assert err.startswith("error: ")
    assert len(err.strip().splitlines()) == 1
    assert Path("out.json").read_text("utf-8") == "old"
    assert sorted(p.name for p in Path().iterdir()) == before


def test_scores_of_incomplete_rows(run, asia) -> None:
    frame = asia.sample(300, seed=1).to_pandas().astype(object)
    frame.loc[:40, "smoke"] = None
    frame.to_csv("gaps.csv", index=False)
    code, out, err = run("score", "asia.bif", "gaps.csv", "--json")
    assert code == 0, err
    facts = json.loads(out)
    expected = asia.log_likelihood(frame)
    assert (facts["rows"], facts["parameters"], facts["missing cells"]) == (300, asia.n_parameters, 41)
    assert facts["network: log-likelihood"] == pytest.approx(expected)
    assert facts["network: nats per row"] == pytest.approx(-expected / 300)
    assert facts["network: AIC"] == pytest.approx(asia.aic(frame))
    assert facts["network: BIC"] == pytest.approx(asia.bic(frame))
    assert not any("K2" in name for name in facts)
    assert "its scores need complete rows" in run("score", "asia.bif", "gaps.csv")[1]


def test_scores_of_networks_with_hidden_variables(run, asia) -> None:
    words = ["-o", "h.json", "--hidden", "class=2", "--starts", "1", "--max-iter", "5"]
    code, _, err = run("fit", "class -> smoke; class -> bronc; class -> lung", "rows.csv", *words)
    assert code == 0, err
    assert "allow more with --max-iter\n" in err
    code, out, err = run("score", "h.json", "rows.csv", "--json")
    assert code == 0, err
    assert json.loads(out)["network: log-likelihood"] == pytest.approx(sf.read("h.json").log_likelihood("rows.csv"))


@pytest.mark.parametrize(
    ("way", "python", "options"),
    [
        (declaration("Wind", "Bins(5)"), "variables={'Wind': Bins(5)}", "--bins Wind=5"),
        (declaration("x", "Real"), "variables={'x': Real}", "--real x"),
        (declaration("x", "[...]"), "variables={'x': [...]}", "--finite x=a,b"),
        (declaration("x", "Finite"), "variables={'x': Finite}", "--finite x"),
        (declaration("n", "Count('n')", "scan(data, {})"), "scan(data, variables={'n': Count('n')})", "--count n"),
        (state_names("x", ["no", "a b"]), "variables={'x': ['no', 'a b']}", "--finite 'x=no,a b'"),
        (declaration("blood pressure", "Real"), "variables={'blood pressure': Real}", "--real 'blood pressure'"),
        (argument("missing"), "missing=", "--missing"),
        (argument("integers", "Finite", "finite"), "integers=Finite", "--integers finite"),
        (argument("gaps", "Missing()", "missing"), "gaps=Missing()", "--gaps missing"),
        (argument("by"), "by=", "--by"),
        (name_of("max_parents"), "max_parents", "--max-parents"),
        (hidden_with_states("a b"), "hidden=[Finite('a b', [...])]", "--hidden 'a b=a,b'"),
        (as_regression("n", "PoissonLog", ridge=True), "families={'n': PoissonLog(ridge=1)}", "--family n=poisson:1"),
        (ridge_of("Logistic"), "Logistic(ridge=1)", "a ridge, as in --family NAME=logistic:1"),
        (without_column("a b"), " of the graph", ": --without 'a b'"),
        (as_family("wait", "Gamma()"), "families={'wait': Gamma()}", "--family wait=WORD"),
        (weight_penalty(1, 0.1), "penalty=L1(0.1)", "--penalty l1:0.1"),
        (of_python("; chain.unroll(n)"), "; chain.unroll(n)", ""),
    ],
)
def test_ways_out_have_both_words(way: Remedy, python: str, options: str) -> None:
    error = SufficeError(f"say so: {way}!")
    again = pickle.loads(pickle.dumps(error))
    for told in (error, again, SufficeNote(error.said), FormatError(error.said)):
        assert str(told) == f"say so: {python}!"
        assert told.in_options() == f"say so: {options}!"
    assert repr(error) == f"SufficeError({f'say so: {python}!'!r})"


def test_hints_of_real_messages(run) -> None:
    Path("rows.csv").write_text("age,ill,n\n" + "".join(f"{i}.5,{'ab'[i % 2]},NA\n{i},b,{i}\n" for i in range(30)), "utf-8")
    code, _, err = run("fit", "age -> ill; n", "rows.csv", "-o", "m.json")
    assert code == 1
    assert err.splitlines() == [
        "note: 'n': numbers but for 'NA', and so taken for states; if that means a missing cell, say so: --missing NA",
        "error: the finite node 'ill' has the real parent 'age', which needs a GLM: name it, --family ill=logistic, turn the "
        "edge round, or cut the parent into intervals: --bins age=5",
    ]
    _, _, err = run("fit", "age -> b", "rows.csv", "-o", "m.json", "--missing", "NA")
    assert "if no row shows it, declare its states: --hidden b=a,b\n" in err
    assert "note: 'n'" not in err


def test_usage_errors_are_2(run) -> None:
    assert run("fit")[0] == 2
    assert run("sample", "x.bif")[0] == 2
    assert run("nonsense")[0] == 2
    assert run("--version")[1] == f"suffice {sf.__version__}\n"


def test_bundled_networks_have_names(run) -> None:
    assert "p(xray | either)" in run("show", "asia", "--node", "xray")[1]
    assert run("show", "asiaa")[0] == 1


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "suffice", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("suffice ")
