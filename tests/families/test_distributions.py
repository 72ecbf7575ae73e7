"""Distributions as families of nodes: the command line, refusals, and one that is added from outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
import suffice.numerics.exponential as ef
from suffice.errors import FitError, ModelError, StatisticsError, SufficeError
from suffice.statistics import Request

GRAPH = "ill -> wait; ill -> k"
FAMILIES = {"wait": ef.Gamma(), "k": ef.Binomial(12)}


def rows(n: int = 200) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    ill = np.arange(n) % 2
    wait, k = rng.gamma(2.0 + 2.0 * ill, 1.0 + ill), rng.binomial(12, 0.3 + 0.4 * ill)
    return {"ill": [("no", "yes")[i] for i in ill], "wait": wait.tolist(), "k": k.tolist()}


def test_the_command_line_does_the_same(run: Any) -> None:
    data = rows()
    lines = ["ill,wait,k", *(f"{a},{b!r},{c}" for a, b, c in zip(*data.values(), strict=True))]
    Path("rows.csv").write_text("\n".join(lines))
    asked = ["--family", "wait=gamma", "--family", "k=binomial,n=12", "--prior", "bdeu:1+conjugate:2"]
    code, _, err = run("fit", GRAPH, "rows.csv", "-o", "bn.json", *asked, "--statistics", "rows.stats")
    assert code == 0, err
    mine = sf.fit(GRAPH, data, families=FAMILIES, prior=(sf.BDeu(1), sf.priors.Conjugate(2.0)))
    bn = sf.read("bn.json")
    assert bn["wait"].parameters == pytest.approx(mine["wait"].parameters, rel=1e-12)
    assert run("fit", GRAPH, "rows.stats", "-o", "again.json", *asked)[0] == 0
    assert sf.read("again.json")["k"].parameters == pytest.approx(bn["k"].parameters, rel=1e-14)
    code, out, err = run("query", "bn.json", "wait | k=9", "--json")
    assert code == 0, err
    assert list(json.loads(out)["components"][0]) == ["weight", "shape", "rate"]
    code, _, err = run("learn", "rows.csv", "-o", "learned.json", *asked[:4])
    assert code == 0, err
    assert set(sf.read("learned.json").dag.edges) == {("ill", "wait"), ("ill", "k")}
    for words, told in (
        ("wait=beta", "line 2, column 'wait'"),
        ("k=binomial,n=3", "is not possible by Binomial(n=3)"),
        ("k=negative-binomial,size=x", "must be a number"),
        ("k=geometric:2", "has no ridge"),
        ("k=binomial,n=3,m=2", "needs its n"),
    ):
        code, _, err = run("fit", GRAPH, "rows.csv", "-o", "bn.json", "--family", words)
        assert code != 0
        assert told in err


def test_a_number_of_a_chosen_distribution_may_have_normal_children() -> None:
    """The moments of parent and child together hold no Σ ln x: another entry does, which the prior has to find."""
    data = rows() | {"y": (np.array(rows()["wait"]) + np.random.default_rng(1).normal(size=200)).tolist()}
    prior = (sf.BDeu(1), sf.NormalInverseGamma(), sf.priors.Conjugate(1))
    bn = sf.fit("ill -> wait -> y", {n: data[n] for n in ("ill", "wait", "y")}, families={"wait": ef.Gamma()}, prior=prior)
    assert bn["y"].coefficients[0] == pytest.approx(1.0, abs=0.1)
    alone = sf.fit("ill -> wait", {n: data[n] for n in ("ill", "wait")}, families={"wait": ef.Gamma()}, prior=prior)
    assert bn["wait"].parameters == pytest.approx(alone["wait"].parameters, rel=1e-12)
    assert bn.query("ill", {"wait": 5.0, "y": 4.0}).probs == pytest.approx(alone.query("ill", {"wait": 5.0}).probs, rel=1e-10)
    with pytest.raises(ModelError, match="a number of Gamma"):
        bn.query("ill", {"y": 4.0})


def test_gamma_of_the_front_door_is_the_distribution() -> None:
    data = {"wait": rows()["wait"]}
    mine = sf.fit("wait", data, families={"wait": sf.priors.Gamma()})
    assert mine == sf.fit("wait", data, families={"wait": ef.Gamma()})
    with pytest.raises(FitError, match=r"as a family it is Gamma\(\)"):
        sf.fit("wait", data, families={"wait": sf.priors.Gamma(2.0)})


@pytest.mark.parametrize(
    ("graph", "data", "family", "told"),
    [
        ("wait", {"wait": [1.0, 0.0, 2.0]}, ef.Gamma(), r"row 2, column 'wait': 0\.0 is not possible by Gamma"),
        ("share", {"share": [0.5, 1.0]}, ef.Beta(), r"row 2, column 'share': 1\.0"),
        ("k", {"k": [1.0, 2.5]}, ef.Geometric(), r"row 2, column 'k': 2\.5"),
        ("u -> wait", {"u": ["a", "a", "b"], "wait": [1.0, 2.0, 3.0]}, ef.Gamma(), "at u='b' cannot be fitted as Gamma"),
        ("x -> wait", {"x": [0.5, 1.0, 2.0], "wait": [1.0, 2.0, 3.0]}, ef.Gamma(), "'x' is a number: make it a regression"),
        ("x -> share", {"x": [0.5, 1.0, 2.0], "share": [0.1, 0.2, 0.3]}, ef.Beta(), "'x' is a number: turn the edge round"),
        ("x -> k", {"x": [0.5, 1.0, 2.0], "k": [1.0, 2.0, 3.0]}, ef.Binomial(12), "'x' is a number: turn the edge round"),
        ("wait", {"wait": [1.0, 2.0]}, ef.Normal(), "a distribution such as exponential.Gamma"),
        ("wait", {"wait": ["x", "y"]}, ef.Gamma(), "'x' is not a number"),
    ],
)
def test_what_cannot_be_is_refused_by_name(graph: str, data: Any, family: Any, told: str) -> None:
    node = graph.rpartition(" ")[2]
    with pytest.raises(SufficeError, match=told):
        sf.fit(graph, data, families={node: family})


def test_other_refusals() -> None:
    with pytest.raises(ModelError, match="needs its size"):
        ef.NegativeBinomialKnownSize()
    data = {"wait": rows()["wait"]}
    with pytest.raises(FitError, match="sequences"):
        sf.fit("wait[-1] -> wait", sf.sequences(data), families={"wait": ef.Gamma()})
    plain = sf.scan(data).gather([Request((), ("wait",))])
    with pytest.raises(StatisticsError, match=r"do not hold the sum of ln x of 'wait'.*families=\{'wait': Gamma\(\)\}"):
        sf.fit("wait", plain, families={"wait": ef.Gamma()})
    bn = sf.fit("wait", data, families={"wait": ef.Gamma()})
    with pytest.raises(FitError, match="no posterior"):
        bn["wait"].interval()
