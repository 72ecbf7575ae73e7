"""`suffice learn`, called as a user calls it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import suffice as sf
from suffice.basis import registry
from suffice.errors import SufficeError
from suffice.interfaces.cli import words
from suffice.structure.methods import hill_climb
from suffice.structure.problem import Method, Outcome
from suffice.structure.search import search


@pytest.fixture
def learn(run):
    """`suffice learn` beside a file of rows."""
    sf.load("asia").sample(1000, seed=0).to_pandas().to_csv("rows.csv", index=False)
    return partial(run, "learn")


def test_the_graph_is_printed_and_the_network_written(learn) -> None:
    code, out, err = learn("rows.csv", "-o", "m.json", "--method", "hill-climb", "--max-parents", 2)
    assert code == 0
    found = search("rows.csv", method=hill_climb.HillClimb(max_parents=2))
    assert out.splitlines()[0] == repr(found).splitlines()[0]
    assert out.splitlines()[2:] == repr(found).splitlines()[2:]  # all but the seconds
    assert "written to m.json" in err
    assert sf.read("m.json") == sf.fit(found.dag, "rows.csv", prior=sf.BDeu(1))
    assert learn("rows.csv", "-o", "mle.bif", "--method", "hill-climb", "--prior", "mle")[0] == 0
    assert sf.read("mle.bif")["smoke"].probs == pytest.approx(sf.fit(found.dag, "rows.csv")["smoke"].probs)


@pytest.mark.parametrize("method", ["orders", "hill-climb", "tabu", "ges", "exact", "chow-liu", "tan:smoke", "pc", "mmhc"])
def test_every_method(learn, method) -> None:
    code, out, err = learn("rows.csv", "--method", method, "--json", "--explain", "-o", "m.bif")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["variables"] == sorted(sf.load("asia"))
    assert (facts["score"] is None) == (method == "pc")
    assert len(facts["explanations"]) == len(facts["directed"]) + len(facts["undirected"])
    assert [list(e) for e in sf.read("m.bif").dag.edges] == facts["edges"]
    code, out, err = learn("rows.csv", "--method", method, "--explain", "--forbid", "asia,smoke")
    assert code == 0, err
    assert out.startswith("Found: 8 variables")


def test_constraints(learn) -> None:
    Path("tiers.txt").write_text("asia, smoke\ntub,lung,bronc\neither\nxray,dysp\n")
    code, out, _ = learn(
        "rows.csv",
        "--method",
        "hill-climb",
        "--json",
        "--tiers",
        "tiers.txt",
        "--require",
        "asia -> xray",
        "--forbid",
        "lung,either",
    )
    assert code == 0
    edges = {tuple(e) for e in json.loads(out)["edges"]}
    tier = {
        x: i
        for i, line in enumerate(Path("tiers.txt").read_text().splitlines())
        for x in line.strip().replace(" ", "").split(",")
    }
    assert ("asia", "xray") in edges
    assert ("lung", "either") not in edges
    assert all(tier[a] <= tier[b] for a, b in edges)
    code, _, err = learn("rows.csv", "--method", "hill-climb", "--require", "a,b")
    assert (code, "'a'" in err) == (1, True)
    code, _, err = learn("rows.csv", "--method", "hill-climb", "--require", "asia,tub", "--forbid", "asia,tub")
    assert (code, "asia -> tub" in err) == (1, True)


def test_what_is_refused(learn) -> None:
    for given, said in (
        (["rows.csv", "--method", "magic"], "use orders, hill-climb"),
        (["rows.csv", "--method", "tan"], "tan:TARGET"),
        (["rows.csv", "--method", "hill-climb:3"], "colon"),
        (["rows.csv", "--method", "hill-climb", "--alpha", "0.1"], "no option --alpha"),
        (["rows.csv", "--method", "hill-climb", "--score", "magic"], "bic, aic"),
        (["rows.csv", "--method", "hill-climb", "--score", "bdeu:x"], "bdeu:x"),
        (["rows.csv", "--method", "hill-climb", "--forbid", "a"], "one edge"),
        (["rows.csv", "--method", "hill-climb", "--tiers", "none.txt"], "none.txt"),
        (["rows.csv", "--method", "hill-climb", "-o", "no/where.bif"], "no/where.bif"),
        (["rows.csv", "--method", "hill-climb", "-o", "m.magic"], ".magic"),
        (["none.csv", "--method", "hill-climb"], "none.csv"),
    ):
        code, out, err = learn(*given)
        assert (code, out) == (1, ""), given
        assert err.startswith("error: ")
        assert len(err.splitlines()) == 1
        assert said in err
    assert learn("rows.csv", "--max-parents", "-1")[0] == 2
    assert learn()[0] == 2


def test_a_run_that_is_interrupted_writes_the_best_so_far(learn, monkeypatch) -> None:
    def interrupted(self: Any, problem: Any) -> Outcome:
        parents = [()] * problem.n
        problem.progress.better("start", problem.scores.total(parents), parents)
        raise KeyboardInterrupt

    monkeypatch.setattr(hill_climb.HillClimb, "run", interrupted)
    code, out, err = learn("rows.csv", "--method", "hill-climb", "-o", "m.bif")
    assert code == 0
    assert "stopped before its end" in out
    assert "best graph so far" in err
    assert sf.read("m.bif").dag.edges == ()


def test_the_cost_is_foretold(learn) -> None:
    code, out, _ = learn("rows.csv", "--method", "hill-climb", "--dry-run", "-o", "m.bif")
    assert (code, "seconds" in out) == (0, True)
    code, out, _ = learn("rows.csv", "--method", "hill-climb", "--dry-run", "--json")
    assert json.loads(out)["n_rows"] == 1000


def test_bootstrap(learn) -> None:
    code, out, err = learn("rows.csv", "--method", "hill-climb", "--bootstrap", 3)
    assert code == 0, err
    assert len(out.splitlines()) > 10
    code, out, err = learn("rows.csv", "--method", "hill-climb", "--bootstrap", 3, "--json")
    assert code == 0, err
    assert "bootstrap" in json.loads(out)


def test_numbers_weights_and_declared_columns(learn) -> None:
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    pd.DataFrame({"x": x, "y": x + rng.normal(size=200), "k": rng.integers(0, 2, 200), "w": 1.0}).to_csv("n.csv", index=False)
    code, out, err = learn("n.csv", "--method", "hill-climb", "--finite", "k", "--weights", "w", "--json", "-o", "n.json")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["variables"] == ["k", "x", "y"]
    assert ["x", "y"] in facts["edges"]
    assert isinstance(sf.read("n.json").variables["k"], sf.Finite)
    code, out, err = learn(
        "n.csv", "--method", "hill-climb", "--score", "bge", "--weights", "w", "--integers", "real", "-o", "g.json"
    )
    assert code == 0, err


def test_words() -> None:
    assert words.edges_of(["a,b"], "--forbid") == [("a", "b")]
    assert words.edges_of(['"a,1", "b ""q"""'], "--forbid") == [("a,1", 'b "q"')]
    assert words.edges_of(['"x->y",b'], "--forbid") == [("x->y", "b")]
    assert words.edges_of(['"a, b" -> c', "d <- e"], "--forbid") == [("a, b", "c"), ("e", "d")]
    for wrong in ("a", "a,b,c", "a,", ""):
        with pytest.raises(SufficeError):
            words.edges_of([wrong], "--forbid")
    assert words.constraints_of([], [], None, None) is None
    assert words.score_of("bdeu:2+bge") == sf.Evidence((sf.BDeu(2.0), sf.BGe()))
    assert words.score_of("loglik") == sf.LogLikelihood()


def test_a_class_without_a_member_is_printed_but_not_written(learn, monkeypatch) -> None:
    @dataclass(frozen=True)
    class Square(Method):
        def run(self, problem: Any) -> Outcome:
            edges = [("asia", "tub"), ("tub", "lung"), ("lung", "xray"), ("xray", "asia")]
            return Outcome([], cpdag=sf.Cpdag([], edges, nodes=problem.names))

    monkeypatch.setitem(registry._words, ("methods", "square"), Square)
    code, out, err = learn("rows.csv", "--method", "square", "-o", "m.bif")
    assert code == 1
    assert "asia - tub" in out
    assert "no directed graph extends" in err


def test_columns_left_out_and_limits(learn) -> None:
    code, out, err = learn("rows.csv", "--without", "smoke,xray", "--json", "--memory-limit", "1GB")
    assert code == 0, err
    assert not {"smoke", "xray"} & {name for edge in json.loads(out)["edges"] for name in edge}
    code, _, err = learn("rows.csv", "--without", "smokes")
    assert (code, "did you mean 'smoke'" in err) == (1, True)
    code, _, err = learn("rows.csv", "--memory-limit", "1KB")
    assert (code, "memory" in err) == (1, True)
