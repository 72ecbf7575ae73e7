"""Structural EM in which nodes are regressions: against `search` on complete rows, and rows completed by enumeration."""

from __future__ import annotations

import csv
import json
import pickle
from dataclasses import replace
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import FitError, SufficeNote
from suffice.incomplete.expectations import IncompleteRows
from suffice.structure.search import problem_of

pytestmark = pytest.mark.filterwarnings("ignore::suffice.errors.SufficeNote")

FAMILIES = {"y": sf.Logistic(), "n": sf.regressions.PoissonLog()}
EDGES = {("x", "y"), ("u", "y"), ("u", "z"), ("y", "n"), ("z", "n")}


def drawn(size: int = 800, lost: float = 0.0, seed: int = 1) -> dict[str, Any]:
    """x -> y <- u, u -> z, y -> n <- z; cells of u and y are lost at random."""
    rng = np.random.default_rng(seed)
    x, u = rng.normal(size=size), rng.integers(0, 3, size)
    z = rng.normal(size=size) + (u == 1)
    y = rng.random(size) < 1 / (1 + np.exp(0.5 - 1.5 * x - 1.5 * (u == 2)))
    n = rng.poisson(np.exp(0.3 + 0.8 * y - 0.4 * z)).astype(float)
    words = {"u": np.array(list("abc"), object)[u], "y": np.array(["no", "yes"], object)[y.astype(int)]}
    return {"x": x, "z": z, "n": n} | {k: np.where(rng.random(size) < lost, None, c) for k, c in words.items()}


def scanned(table: dict[str, Any], **options: Any) -> sf.Data:
    return sf.scan(table, variables={"n": sf.Count}, **options)


@pytest.fixture(scope="module")
def gappy() -> sf.Data:
    return scanned(drawn(lost=0.1))


@pytest.mark.parametrize("score", [sf.BIC(), sf.AIC(), sf.Evidence((sf.BDeu(1), sf.BGe(), sf.priors.Gamma()))])
def test_on_complete_rows_it_is_the_search(score: Any) -> None:
    families = (
        {"y": sf.Logistic(ridge=0.01), "n": sf.regressions.PoissonLog(ridge=0.01)} if isinstance(score, sf.Evidence) else FAMILIES
    )
    found = sf.search(scanned(drawn()), score, method=sf.HillClimb(), families=families)
    run = sf.structural_em(scanned(drawn()), score=score, families=families)
    assert run.dag == found.dag
    assert run.cpdag == found.cpdag
    assert run.directions == found.directions
    assert run.score == pytest.approx(found.score, abs=1e-3)


@pytest.mark.parametrize("family", [sf.regressions.Probit(), sf.regressions.ProportionalOdds(), sf.Logistic()])
def test_states_on_states(family: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, 700), rng.integers(0, 3, 700)
    y = (rng.normal(size=700) + a + b > 1.5).astype(int)
    table = {"a": np.array(list("pq"), object)[a], "b": np.array(list("stv"), object)[b], "y": np.array(["n", "o"], object)[y]}
    found = sf.search(table, families={"y": family})
    assert set(found.dag.edges) == {("a", "y"), ("b", "y")}
    whole = sf.structural_em(table, method=sf.Orders(), families={"y": family})
    assert whole.dag == found.dag
    assert whole.score == pytest.approx(found.score, abs=1e-3)
    lacking = table | {"a": np.where(rng.random(700) < 0.1, None, table["a"])}
    assert sf.structural_em(lacking, method=sf.Orders(), families={"y": family}).dag == found.dag


def test_edges_are_found_beside_missing_states(gappy: sf.Data) -> None:
    run = sf.structural_em(gappy, families=FAMILIES)
    assert set(run.dag.edges) == EDGES
    assert run.converged
    for course in ([r.score for r in run.graphs], [r.log_likelihood for r in run.graphs]):
        assert len(course) > 1
        assert course == sorted(course)
    assert run.log_likelihood == pytest.approx(run.model.log_likelihood(gappy), abs=1e-6)
    assert run.score == pytest.approx(run.log_likelihood - 0.5 * np.log(800) * run.model.n_parameters, abs=1e-6)
    again = sf.em(run.dag, gappy, families=FAMILIES)
    trace = [i.log_likelihood for i in again.trace]
    assert all(b >= a - 1e-9 for a, b in pairwise(trace))
    assert run.log_likelihood == pytest.approx(again.log_likelihood, abs=1e-2)
    truth = sf.fit(run.dag, scanned(drawn()), families=FAMILIES)
    np.testing.assert_allclose(run.model["y"].theta, truth["y"].theta, atol=0.3)
    assert run.explain("x -> y").loss > 20
    assert pickle.loads(pickle.dumps(run)).cpdag == run.cpdag == run.dag.cpdag([(b, a) for a, b in EDGES])


def test_regressions_are_scored_on_rows_completed_by_enumeration() -> None:
    """Every regression of the search on what is expected, against the same on a table of all completions, with their weights."""
    table = drawn(60, lost=0.3, seed=3)
    data = scanned(table)
    run = sf.structural_em(data, families=FAMILIES)
    variables = dict(sorted(data.schema.items()))
    expected = IncompleteRows(data, variables, whole=True).under({n: run.model[n] for n in run.model})
    rows: list[dict[str, Any]] = []
    for i in range(60):
        shown = {k: c[i] for k, c in table.items()}
        ways = [
            shown | {"u": u, "y": y}
            for u in ("abc" if shown["u"] is None else shown["u"])
            for y in (["no", "yes"] if shown["y"] is None else [shown["y"]])
        ]
        p = np.exp(run.model.log_prob({k: [way[k] for way in ways] for k in shown}))
        rows += [way | {"w": float(w)} for way, w in zip(ways, p / p.sum(), strict=True)]
    columns = {k: np.array([r[k] for r in rows], None if k in "xznw" else object) for k in rows[0]}
    every = sf.scan(columns, variables={**variables}, weights="w")
    exact = problem_of(every, None, None, families=FAMILIES)
    here = replace(exact, data=expected)  # type: ignore[arg-type]
    for child in (exact.number["n"], exact.number["y"]):
        others = [i for i in range(5) if i != child]
        families = [(child, own) for k in range(3) for own in combinations(others, k)]
        np.testing.assert_allclose(here.scores.families(families), exact.scores.families(families), rtol=1e-7)


def test_other_families_and_roles() -> None:
    rng = np.random.default_rng(2)
    a, x, m = rng.integers(0, 2, 500), rng.normal(size=500), rng.integers(1, 9, 500)
    words = np.where(rng.random(500) < 0.1, None, np.array(list("pq"), object)[a])
    table = {
        "a": words,
        "x": x,
        "m": m.astype(float),
        "s": rng.binomial(m, 1 / (1 + np.exp(-x))).astype(float),
        "g": rng.gamma(2.0, np.exp(0.5 * x + a)),
        "w": 2 * x + a + rng.normal(size=500),
    }
    data = sf.scan(table, variables={"m": sf.Count, "s": sf.Count})
    one = sf.structural_em(data.select(["a", "x", "m", "s"]), families={"s": sf.regressions.BinomialLogit(trials="m")})
    assert set(one.dag.parents("s")) == {"m", "x"}
    for name, family in (("g", sf.regressions.GammaLog()), ("w", sf.regressions.Linear())):
        run = sf.structural_em(data.select(["a", "x", name]), families={name: family})
        assert set(run.dag.parents(name)) == {"a", "x"}
        assert run.model[name].family == family


def test_few_numbers_stay_the_states_that_the_search_saw() -> None:
    rng = np.random.default_rng(5)
    dose, b = rng.integers(0, 3, 600), rng.normal(size=600)
    y = rng.random(600) < np.array([0.1, 0.8, 0.2])[dose]
    u = np.where(rng.random(600) < 0.1, None, np.where(y ^ (rng.random(600) < 0.2), "p", "q"))
    run = sf.structural_em(
        {"dose": dose, "b": b, "y": np.where(y, "yes", "no"), "u": u},
        families={"y": sf.Logistic()},
        constraints=sf.Require("dose -> y"),
    )
    assert isinstance(run.model.variables["dose"], sf.Finite)
    assert run.model["y"].n_parameters >= 3


def test_a_start_brings_its_regressions() -> None:
    rows = scanned(drawn(200, lost=0.1))
    run = sf.structural_em(rows, families=FAMILIES)
    again = sf.structural_em(rows, start=run)
    assert again.dag == run.dag
    assert again.score >= run.score - 1e-6
    hidden = sf.structural_em(rows, hidden=[sf.Finite("h", ["1", "2"])], families=FAMILIES, starts=2)
    assert hidden.model["y"].family == sf.Logistic()


def test_a_regression_without_end_is_left_out_by_name() -> None:
    rng = np.random.default_rng(0)
    x, a = rng.normal(size=300), np.where(rng.random(300) < 0.1, None, rng.choice(["p", "q"], 300))
    with pytest.warns(SufficeNote, match=r"coefficients without end, are left out: y \| x"):
        run = sf.structural_em({"a": a, "x": x, "y": np.where(x > 0.2, "yes", "no")}, families={"y": sf.Logistic()})
    assert set(run.dag.edges) == {("y", "x")}  # the conditional Gaussian is not barred with it


@pytest.fixture(scope="module")
def lacking() -> dict[str, Any]:
    """x -> y, x -> z, y -> u. Cells of x are lost where y is "yes" more often than else (at random, given y), some of z, u and y
    besides; y is complete, so that complete rows alone would have too few "yes"."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=800)
    z, y = rng.normal(size=800) + 0.8 * x, rng.random(800) < 1 / (1 + np.exp(0.3 - 1.2 * x))
    u = rng.random(800) < 1 / (1 + np.exp(1.0 - 2.0 * y))
    x[rng.random(800) < 0.3 * y] = np.nan
    z[rng.random(800) < 0.1] = np.nan
    words = np.where(rng.random(800) < 0.1, None, np.where(u, "a", "b"))
    return {"x": x, "z": z, "y": np.where(y, "yes", "no"), "u": words}


def test_edges_from_numbers_of_which_cells_are_missing(lacking: dict[str, Any]) -> None:
    """The edges are found, the score never falls, and the levels are not those of the complete rows, which are biased."""
    assert 0.1 < np.isnan(lacking["x"]).mean() < 0.2
    with pytest.warns(SufficeNote, match=r"33 points for one .*: 'x', 'z' may be parents.* \d+,\d+ completed ones"):
        run = sf.structural_em(lacking, families={"y": sf.Logistic()})
    assert ("x", "y") in run.dag.edges
    assert {frozenset(e) for e in run.dag.edges} == {frozenset(e) for e in ("xy", "xz", "yu")}
    course = [r.score for r in run.graphs]
    assert course == sorted(course)
    assert run.score == pytest.approx(run.log_likelihood - 0.5 * np.log(800) * run.model.n_parameters, abs=1e-6)
    again = sf.em(run.dag, lacking, families={"y": sf.Logistic()})
    assert run.log_likelihood == pytest.approx(again.log_likelihood, abs=1e-2)
    whole = ~np.isnan(lacking["x"])
    cases = sf.fit("x -> y", {k: lacking[k][whole] for k in "xy"}, families={"y": sf.Logistic()})
    assert run.model["y"].theta[0] == pytest.approx(-0.3, abs=0.2)
    assert cases["y"].theta[0] < -0.5
    assert run.explain("x -> y").loss > 20


def at_fine_points(bn: Any, row: dict[str, Any], lost: list[str]) -> tuple[list[dict[str, Any]], Any]:
    """A row with its missing numbers on a fine grid, and what the points weigh under a network: brute force."""
    grid = np.linspace(-7.0, 8.0, 601 if len(lost) == 1 else 76)
    ways = [row | dict(zip(lost, point, strict=True)) for point in product(*[grid.tolist()] * len(lost))]
    logs = bn.log_prob({k: [way[k] for way in ways] for k in row})
    p = np.exp(logs - logs.max())
    return ways, p / p.sum()


@pytest.mark.parametrize("graph", ["x -> y; x -> z; y -> u", "x; z; y; u", "z -> x; x -> y; z -> y; u -> z"])
def test_regressions_are_scored_on_rows_completed_by_quadrature(lacking: dict[str, Any], graph: str) -> None:
    """Every family of the search on what is expected, against the same on rows with a fine grid of the numbers that they lack: of
    regressions, lines and tables, and under networks with and without the regression on these numbers."""
    from suffice.learning.incomplete.problem import problem_of as parameters

    few = {k: c[:60] for k, c in lacking.items()} | {"u": np.where(lacking["u"][:60] == "a", "a", "b")}
    families = {"y": sf.Logistic()}
    problem = parameters(graph, few, families=families)
    cpds = problem.cpds(problem.maximise(problem.expect(problem.first()).statistic))
    bn = sf.BayesNet.of(sf.Dag(graph), dict(problem.variables), cpds)
    rows, weights = [], []
    for i in range(60):
        row = {k: c[i] for k, c in few.items()}
        lost = [k for k in "xz" if np.isnan(row[k])]
        ways, p = at_fine_points(bn, row, lost) if lost else ([row], np.ones(1))
        rows += ways
        weights += p.tolist()
    columns = {k: np.array([r[k] for r in rows], None if k in "xz" else object) for k in few}
    data = sf.scan(few)
    variables = dict(sorted(data.schema.items()))
    every = sf.scan(columns | {"w": weights}, variables=variables, weights="w")
    exact = problem_of(every, sf.AIC(), None, families=families)
    expected = IncompleteRows(data, variables, whole=True, integrated=["x", "z"]).under(cpds)
    assert expected.weight == pytest.approx(60.0)
    here = replace(exact, data=expected)  # type: ignore[arg-type]
    for child in range(4):
        others = [i for i in range(4) if i != child and exact.rules.allowed[child, i]]
        asked = [(child, own) for k in range(3) for own in combinations(others, k)]
        np.testing.assert_allclose(here.scores.families(asked), exact.scores.families(asked), rtol=2e-6)


def test_learn_bootstrap_and_cross_validate_beside_missing_numbers(lacking: dict[str, Any]) -> None:
    families = {"y": sf.Logistic()}
    assert ("x", "y") in sf.learn(lacking, families=families).dag.edges
    assert sf.bootstrap(lacking, n=2, families=families).strength("x", "y") == 1.0
    assert sf.cross_validate(lacking, folds=2, families=families).mean > sf.cross_validate(lacking, folds=2).mean - 0.05


def test_many_numbers_missing_together_are_drawn() -> None:
    rng = np.random.default_rng(8)
    x = rng.normal(size=(5, 300))
    y = rng.random(300) < 1 / (1 + np.exp(-1.5 * x[0]))
    table = {f"x{j}": np.where(rng.random(300) < 0.1, np.nan, x[j]) for j in range(5)}
    table["x0"][:3] = table["x1"][:3] = table["x2"][:3] = table["x3"][:3] = np.nan
    run = sf.structural_em(table | {"y": np.where(y, "yes", "no")}, families={"y": sf.Logistic()})
    assert run.dag.parents("y") == ("x0",)
    assert run.dag == sf.structural_em(table | {"y": np.where(y, "yes", "no")}, families={"y": sf.Logistic()}).dag


def test_linear_regressions_of_which_cells_are_missing() -> None:
    """They have a closed form in `em`; the search has points."""
    rng = np.random.default_rng(9)
    x, a = rng.normal(size=400), rng.integers(0, 2, 400)
    w = 1.0 + x + a + 0.5 * rng.normal(size=400)
    lost = rng.random((2, 400)) < 0.15
    table = {"x": np.where(lost[0], np.nan, x), "a": np.where(a, "p", "q"), "w": np.where(lost[1], np.nan, w)}
    run = sf.structural_em(table, families={"w": sf.regressions.Linear()})
    assert set(run.dag.parents("w")) == {"a", "x"}
    np.testing.assert_allclose(np.sort(np.abs(run.model["w"].theta)), [1.0, 1.0, 2.0], atol=0.2)


def test_missing_numbers_that_cannot_be_completed_are_refused_by_name() -> None:
    table = drawn(200, lost=0.1)
    gone = {"g": np.where(np.arange(200) < 5, np.nan, np.exp(table["x"]))}
    with pytest.raises(FitError, match=r"cells of 'g' are missing, a number that is GammaLog here"):
        sf.structural_em(scanned(table | gone), families={"g": sf.regressions.GammaLog()})


def test_other_refusals(gappy: sf.Data) -> None:
    with pytest.raises(FitError, match="GES does not search with regressions"):
        sf.structural_em(gappy, method=sf.methods.GES(), families=FAMILIES)
    with pytest.raises(FitError, match=r"'yy'.*no column of the data"):
        sf.structural_em(gappy, families={"yy": sf.Logistic()})
    names = {"id": [f"r{i}" for i in range(800)], **drawn(lost=0.1)}
    with pytest.raises(FitError, match="families name 'id', which is left out"):
        sf.structural_em(scanned(names), families={"id": sf.Logistic()})


def test_learn_bootstrap_and_cross_validate(gappy: sf.Data) -> None:
    bn = sf.learn(gappy, families=FAMILIES)
    assert set(bn.dag.edges) == EDGES
    assert bn["y"].family == sf.Logistic()
    assert sf.bootstrap(gappy, n=3, families=FAMILIES).strength("x", "y") == 1.0
    with_families = sf.cross_validate(gappy, folds=3, families=FAMILIES)
    assert with_families.mean > sf.cross_validate(gappy, folds=3).mean


def test_on_the_command_line(run: Any) -> None:
    table = drawn(400, lost=0.1)
    with Path("rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([table, *zip(*table.values(), strict=True)])
    asked = ["learn", "rows.csv", "--family", "y=logistic", "--family", "n=poisson"]
    code, out, err = run(*asked, "-o", "found.json", "--json", "--bootstrap", "2")
    assert code == 0, err
    assert ["x", "y"] in json.loads(out)["edges"]
    assert sf.read("found.json")["y"].family == sf.Logistic()
    table["x"] = np.where(np.arange(400) < 5, np.nan, table["x"]).astype(object)
    table["x"][:5] = ""
    with Path("rows.csv").open("w", newline="") as file:
        csv.writer(file).writerows([table, *zip(*table.values(), strict=True)])
    code, out, err = run(*asked, "--json")
    assert code == 0, err
    assert ["x", "y"] in json.loads(out)["edges"]
    assert "missing numbers under regressions are integrated" in err
