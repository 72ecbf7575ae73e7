"""Intervals after EM of regressions, and of nodes that share parameters: the observed information against enumeration and
quadrature, stacked rows and another program; draws, files, answers and rows.

The reference numbers of errors are statsmodels 0.14's, of one GLM on the stacked rows of `test_tied_regressions`:

    sm.GLM(Y > 6, D, family=sm.families.Binomial()).fit(tol=1e-14).bse        # D as there; POISSON_ERRORS are there
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import SufficeNote
from suffice.models.estimation import networks_at_draws
from suffice.models.parts.parameter_covariance import ParameterCovariance
from tests.learning.incomplete.test_em_glm import EVERY, RESPONSES, N, X, Z, gaps, rows_of
from tests.learning.test_tied_regressions import GRAPH, POISSON_ERRORS, TIE, Y, families, high, rows, two

BINOMIAL_ERRORS = [0.369503348797, 0.417509403791, 0.513861285225, 0.541292185075]
GRID = np.linspace(-9.0, 13.0, 111)


def log_likelihood(cpds: dict[str, Any], columns: dict[str, Any], missing: dict[str, Any]) -> float:
    """Σ ln p(observed): missing z and u are summed out, missing w and y are leaves, a missing x is integrated on a grid."""
    total = 0.0
    lost = missing.get("x", np.zeros(N, bool))
    for some, x in ((~lost, None), (lost, GRID)):
        at = np.flatnonzero(some) if x is None else np.repeat(np.flatnonzero(some), len(GRID))
        own = {n: c[at] for n, c in columns.items()} | ({} if x is None else {"x": np.tile(GRID, int(some.sum()))})
        gone = {n: m[at] for n, m in missing.items()}
        parts = []
        for z, u in product(range(2), range(3)):
            here = own | {"z": np.where(gone["z"], z, own["z"]), "u": np.where(gone["u"], u, own["u"])}
            logs = sum(np.where(gone.get(n, False) & (n in ("w", "y")), 0.0, c.log_prob(here)) for n, c in cpds.items())
            fits = (here["z"] == z) & (here["u"] == u)
            parts.append(np.where(fits, logs, -np.inf))
        p = np.exp(np.logaddexp.reduce(parts))
        if x is not None:
            p = (GRID[1] - GRID[0]) * p.reshape(-1, len(GRID)).sum(axis=1)
        total += float(np.log(p).sum())
    return total


def matrix(known: ParameterCovariance) -> Any:
    covariance = np.zeros((known.n_parameters,) * 2)
    for own, block in zip(known.places, known.blocks, strict=True):
        covariance[np.ix_(own, own)] = block
    return covariance


def check_curvature(known: ParameterCovariance, objective: Callable[[dict[str, Any]], float], rtol: float) -> None:
    """Along random directions the observed information is minus the second derivative of the objective, by differences."""
    where = known._where()
    own = [n for n in known.charts if n not in known.copies]
    here = np.concatenate([known.charts[n].vector(known.charts[n].cpd) for n in own])
    information = np.linalg.inv(matrix(known))
    scale, rng, h = 1.0 / np.sqrt(np.diag(information)), np.random.default_rng(0), 0.03

    def value(vector: Any) -> float:
        return objective({n: known.charts[n].at(vector[where[n]]) for n in known.charts})

    at = value(here)
    for _ in range(4):
        v = rng.normal(size=len(here)) * scale
        near, far = (value(here + k * h * v) + value(here - k * h * v) for k in (1, 2))
        second = (16 * near - far - 30 * at) / (12 * h * h)
        assert -second == pytest.approx(v @ information @ v, rel=rtol)


MISSING = {"z": gaps(0.25, 1), "u": gaps(0.2, 2), "y": gaps(0.15, 3), "w": gaps(0.1, 4)}


@cache
def learned(kind: str) -> tuple[sf.BayesNet, Any, dict[str, Any]]:
    """A network at its optimum, with its information; its data, and their columns."""
    graph, data, columns = rows_of(kind, MISSING)
    run = sf.em(graph, data, families={"y": RESPONSES[kind][0]}, tol=1e-11, max_iter=3000, information=True)
    return run.model, data, columns


@EVERY
def test_the_information_of_a_regression_is_the_curvature_of_the_enumerated_likelihood(kind: str) -> None:
    bn, _, columns = learned(kind)
    known = bn.parameter_covariance
    assert known is not None
    assert known.n_parameters == bn.n_parameters
    check_curvature(known, lambda cpds: log_likelihood(cpds, columns, MISSING), 1e-6)


@pytest.mark.parametrize("kind", ["logistic", "ordinal", "poisson", "gamma"])
def test_missing_numbers_under_regressions(kind: str) -> None:
    missing = {"z": gaps(0.2, 1), "u": gaps(0.2, 2), "x": gaps(0.25, 5), "y": gaps(0.1, 3), "w": gaps(0.1, 4)}
    graph, data, columns = rows_of(kind, missing)
    with pytest.warns(SufficeNote, match="integrated by"):
        run = sf.em(graph, data, families={"y": RESPONSES[kind][0]}, tol=1e-11, max_iter=3000)
    known = run.model.parameter_covariance
    assert known is not None
    check_curvature(known, lambda cpds: log_likelihood(cpds, columns, missing), 1e-4)


def test_a_ridge_is_part_of_it() -> None:
    missing = {"z": gaps(0.25, 1), "u": gaps(0.2, 2)}
    graph, data, columns = rows_of("logistic", missing)
    run = sf.em(graph, data, families={"y": sf.Logistic(ridge=3.0)}, tol=1e-11)
    family = sf.Logistic(ridge=3.0)
    known = run.model.parameter_covariance
    assert known is not None
    assert known.n_parameters == run.information().n_parameters == run.model.n_parameters
    assert known.posterior
    check_curvature(known, lambda cpds: log_likelihood(cpds, columns, missing) + family.log_prior(cpds["y"]), 1e-6)


def test_complete_rows_have_the_errors_of_another_program() -> None:
    for family, data, errors in (
        (sf.Logistic(), rows(high(Y), two), BINOMIAL_ERRORS),
        (sf.regressions.PoissonLog(), rows(Y, sf.Count), POISSON_ERRORS),
    ):
        information = sf.em(GRAPH, data, families=families(family), shared=TIE, tol=1e-13).information()
        for j in range(3):
            found = information.standard_errors[f"y{j}"]
            both = np.concatenate([np.ravel(found["intercept"]), np.ravel(found["coefficients"])])
            np.testing.assert_allclose(both, errors, rtol=1e-6)
        assert information.interval("y1")["coefficients"].lower.shape == found["coefficients"].shape


@pytest.mark.parametrize("family", [sf.Logistic(), sf.regressions.Linear(), None], ids=str)
def test_tied_copies_have_the_information_of_stacked_rows(family: Any) -> None:
    """Two copies of z -> x -> y <- z, all tied, with gaps: twice the rows of one."""
    rng, n, wide = np.random.default_rng(3), 80, {}
    for j in (0, 1):
        z = rng.integers(2, size=n)
        x = 50.0 + 2.0 * z + rng.normal(size=n)
        y = x - 51.0 - z + rng.logistic(size=n)
        cells = {"z": np.array(["a", "b"], object)[z], "x": x.astype(object)}
        cells["y"] = np.where(y > 0, "n", "y").astype(object) if isinstance(family, sf.Logistic) else y.astype(object)
        for name, share in (("z", 0.2), ("y", 0.2), ("x", 0.0 if isinstance(family, sf.Logistic) else 0.2)):
            cells[name][rng.random(n) < share] = None
        wide |= {f"{name}{j}": list(c) for name, c in cells.items()}
    long = {c: wide[f"{c}0"] + wide[f"{c}1"] for c in "zxy"}
    graph = "z{0} -> x{0}; x{0} -> y{0}; z{0} -> y{0}"
    own = {} if family is None else {"families": {"y0": family, "y1": family}}
    tied = sf.em("; ".join(graph.format(j) for j in (0, 1)), wide, shared=[(f"{c}0", f"{c}1") for c in "zxy"], tol=1e-12, **own)
    one = sf.em(graph.format(""), long, tol=1e-12, **({} if family is None else {"families": {"y": family}}))
    a, b = tied.information(), one.information()
    assert a.n_parameters == b.n_parameters
    for node in "zxy":
        for name in (f"{node}0", f"{node}1"):
            mine, theirs = (s if isinstance(s, dict) else {"": s} for s in (a.standard_errors[name], b.standard_errors[node]))
            for part in mine:
                np.testing.assert_allclose(mine[part], theirs[part], rtol=2e-4)
    mine, theirs = (r.model.query(n, {p: "a"}, interval=0.9) for r, n, p in ((tied, "x1", "z1"), (one, "x", "z")))
    np.testing.assert_allclose(mine.mean_interval, theirs.mean_interval, atol=0.15)


def chain(prior: Any = None) -> tuple[sf.results.EmRun, Any]:
    """x1 -> x2 -> x3 whose last two share a table, a quarter of the cells missing; and its enumerated objective."""
    rng, n = np.random.default_rng(0), 200
    codes = [(rng.random(n) < 0.4).astype(int)]
    for _ in range(2):
        codes.append((rng.random(n) < np.array([0.3, 0.8])[codes[-1]]).astype(int))
    lost = [rng.random(n) < 0.25 for _ in range(3)]
    table = {f"x{k + 1}": [None if m else "ab"[c] for c, m in zip(codes[k], lost[k], strict=True)] for k in range(3)}

    def objective(cpds: dict[str, Any]) -> float:
        joint = cpds["x1"].probs[:, None, None] * cpds["x2"].probs[:, :, None] * cpds["x3"].probs
        seen = [np.eye(2)[c] + m[:, None] * np.eye(2)[1 - c] for c, m in zip(codes, lost, strict=True)]
        said = 0.0 if prior is None else 2.0 * (np.log(cpds["x1"].probs).sum() + np.log(cpds["x2"].probs).sum())
        return float(np.log(np.einsum("ijk,ni,nj,nk->n", joint, *seen)).sum() + said)

    return sf.em("x1 -> x2 -> x3", table, shared=[("x2", "x3")], prior=prior, tol=1e-12), objective


@pytest.mark.parametrize("prior", [None, sf.Dirichlet(2)])
def test_a_tied_chain_against_enumeration(prior: Any) -> None:
    run, objective = chain(prior)
    known = run.model.parameter_covariance
    assert known is not None
    assert known.n_parameters == run.model.n_parameters == 3
    check_curvature(known, objective, 1e-6)
    information = run.information()
    assert np.array_equal(information.standard_errors["x2"], information.standard_errors["x3"])
    assert np.array_equal(information.interval("x2").lower, information.interval("x3").lower)
    assert len(information.to_frame()) == 6
    again = pickle.loads(pickle.dumps(information))
    assert np.array_equal(again.interval("x3").upper, information.interval("x3").upper)


def test_draws_move_all_tied_nodes_together(tmp_path: Any) -> None:
    bn = chain()[0].model
    known = bn.parameter_covariance
    assert known is not None
    drawn = known.draw_parameters(4_000, np.random.default_rng(0))
    assert np.array_equal(drawn["x2"], drawn["x3"])
    part = known.only(["x3"])
    assert part.n_parameters == 2
    assert not part.copies
    asked = bn.query("x3", {"x1": "a"}, interval=0.9, draws=8_000)
    # T²[a, a] of one table: if both were drawn apart, the interval would be narrower
    ends = np.quantile((drawn["x2"] @ drawn["x2"])[:, 0, 0], [0.05, 0.95])
    assert [end[0] for end in asked.interval] == pytest.approx(ends, abs=0.01)
    sf.write(bn, tmp_path / "net.json")
    narrow = bn.query("x3", {"x1": "a"}, interval=0.9).interval
    for other in (sf.read(tmp_path / "net.json"), pickle.loads(pickle.dumps(bn))):
        assert np.array_equal(other.query("x3", {"x1": "a"}, interval=0.9).interval, narrow)
    done = bn.do({"x2": "a"})
    assert done.query("x3", interval=0.9).interval.lower[0] > 0.5
    for net in networks_at_draws(bn, 2, 0):
        assert np.array_equal(net["x2"].probs, net["x3"].probs)


@EVERY
def test_answers_rows_and_files_of_regressions(kind: str, tmp_path: Any) -> None:
    """Whatever an answer is exact for has an interval; equal in files, in rows and among marginals."""
    bn, data, columns = learned(kind)
    v = bn.variables["y"]
    given: dict[str, Any] = {"x": 1.5, "y": v.states[1] if isinstance(v, sf.Finite) else float(columns["y"][0])}
    given |= {"t": 5.0} if "t" in columns else {}
    if kind != "binomial":  # whose trials are a count, which answers depend on
        answer = bn.query("z", given, interval=0.9)
        assert np.all(answer.interval.lower < answer.probs)
        assert np.all(answer.probs < answer.interval.upper)
        assert "by the inverse of the observed information" in answer.how
        sf.write(bn, tmp_path / "net.json")
        assert np.array_equal(sf.read(tmp_path / "net.json").query("z", given, interval=0.9).interval, answer.interval)
    if isinstance(v, sf.Finite):
        here = {"z": "a", "u": "q", "x": 2.0}
        answer = bn.query("y", here, interval=0.9)
        row = bn.predict_proba({n: [x] for n, x in here.items()}, "y", interval=0.9)
        first = v.states[0]
        assert [row[f"{first}_lower"][0], row[f"{first}_upper"][0]] == [end[0] for end in answer.interval]
        assert np.array_equal(bn.marginals(here, interval=0.9)["y"].interval, answer.interval)
        known = bn.parameter_covariance
        assert known is not None
        tables = known.only(["y"]).charts["y"].with_lines(known.only(["y"]).draw_parameters(50, np.random.default_rng(0))["y"])
        assert all(np.all(np.diff(t.cut_points) > 0) for t in tables if kind == "ordinal")
    filled = bn.impute(data, draws=2, seed=0, redraw=True)
    assert len(filled) == 2


def test_a_predictor_has_the_interval_of_the_delta_method() -> None:
    missing = {"z": gaps(0.25, 1), "u": gaps(0.2, 2), "y": gaps(0.15, 3)}
    graph, data, _ = rows_of("logistic", missing)
    bn = sf.em(graph, data, families={"y": sf.Logistic()}, tol=1e-11).model
    known = bn.parameter_covariance
    assert known is not None
    chart, C = known.only(["y"]).charts["y"], matrix(known.only(["y"]))
    row = np.array([1.0, 1.0, 0.0, 0.0, 2.0 - chart.centre[-1]])  # z=b, u=p, x=2
    eta, half = row @ chart.vector(bn["y"]), 1.6448536 * np.sqrt(row @ C @ row)
    found = bn.query("y", {"z": "b", "u": "p", "x": 2.0}, interval=0.9, draws=40_000)
    expected = 1.0 / (1.0 + np.exp(-(eta + np.array([-half, half]))))
    assert [end[1] for end in found.interval] == pytest.approx(expected, abs=0.006)


@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_units_do_not_matter_to_regressions(kind: str) -> None:
    """A parent in other units, with a mean of 1e6, gives the same intervals."""
    family, y, v = RESPONSES[kind]
    cells = np.array(v.states, object)[y] if isinstance(v, sf.Finite) else y.astype(object)
    found = []
    for shift, scale in ((0.0, 1.0), (1e6, 0.01)):
        table = {"z": np.array(["a", "b"], object)[Z], "x": shift + scale * X, "y": cells.copy()}
        table["z"][gaps(0.25, 1)] = None
        table["y"][gaps(0.15, 3)] = None
        bn = sf.em("z -> x; z -> y; x -> y", sf.scan(table, variables={"y": v}), families={"y": family}, tol=1e-11).model
        answer = bn.query("y", {"z": "a", "x": shift + scale * 2.0}, interval=0.9)
        found.append(answer.mean_interval if kind == "linear" else answer.interval)
    np.testing.assert_allclose(found[0], found[1], atol=2e-3)
