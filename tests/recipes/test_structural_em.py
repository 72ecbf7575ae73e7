"""Structural EM: what is expected against enumeration, objectives that rise, hidden causes that are found, refusals."""

from __future__ import annotations

import json
import pickle
import re
import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import poisson

import suffice as sf
from suffice.basis.iteration import Progress
from suffice.basis.variables import Finite
from suffice.engines.data import Data
from suffice.errors import SufficeNote, note
from suffice.families.categorical import Table
from suffice.families.chosen.exponential_node import PoissonRates
from suffice.families.design import Pass
from suffice.incomplete import completions, expected_moments
from suffice.incomplete.completions import FiniteCompletions, ReduceRows, condense_rows, theta_of
from suffice.incomplete.expectations import IncompleteRows, spread
from suffice.learning.incomplete.problem import problem_of
from suffice.recipes.structural.structural_em import StructuralRun, said_once, structural_em
from suffice.recipes.structural.structural_search import StructuralSearch
from suffice.statistics import Request
from suffice.structure.rules import Rules
from suffice.structure.scoring.score_sources import Barring, LocalScores


def random_network(rng: np.random.Generator, n: int = 6, zeros: bool = False) -> Any:
    names = [f"v{i}" for i in rng.permutation(n)]
    variables = [Finite(name, [f"s{k}" for k in range(rng.integers(2, 4))]) for name in names]
    parents = {
        name: sorted(rng.choice(names[:i], min(i, int(rng.integers(0, 3))), replace=False)) for i, name in enumerate(names)
    }
    size = {v.name: v.n_states for v in variables}
    cpds = {}
    for name in names:
        probs = rng.dirichlet(np.ones(size[name]), tuple(size[p] for p in parents[name]))
        if zeros:
            probs = np.where(probs < 0.2, 0.0, probs)
            probs /= probs.sum(axis=-1, keepdims=True)
        cpds[name] = probs
    return sf.BayesNet(parents, cpds, variables=variables)


def with_gaps(bn: Any, n: int, share: float, rng: np.random.Generator, hidden: Any = ()) -> Any:
    table = bn.sample(n, seed=int(rng.integers(2**31)))
    columns = {c: table[c].to_pylist() for c in table.column_names if c not in hidden}
    gone = {c: rng.random(n) < share for c in columns}
    rows = {c: [None if g else x for x, g in zip(values, gone[c], strict=True)] for c, values in columns.items()}
    return sf.scan(rows, variables={c: bn.variables[c] for c in rows})


def cpds_of(bn: Any) -> dict[str, Any]:
    return {n: bn[n] for n in bn}


def rows_of(data: Any, bn: Any) -> IncompleteRows:
    return IncompleteRows(data, {n: bn.variables[n] for n in sorted(bn.variables)})


def brute_force(bn: Any, rows: Any, weights: Any, names: list[str]) -> Any:
    """E[counts] by going through every completion of every row."""
    every = list(bn.variables)
    sizes = [bn.variables[v].n_states for v in every]
    states = np.array(list(product(*map(range, sizes))))
    log_p = np.zeros(len(states))
    with np.errstate(divide="ignore"):
        for v in every:
            cpd = bn[v]
            log_p += np.log(cpd.probs[tuple(states[:, every.index(m)] for m in (*cpd.parents, v))])
    seen = {c: column.astype(int) for c, column in rows.sample(rows.n_rows).columns.items()}
    table = np.zeros([bn.variables[v].n_states for v in names])
    for i, w in enumerate(weights):
        fits = np.ones(len(states), bool)
        for c, column in seen.items():
            if column[i] != 255:
                fits &= states[:, every.index(c)] == column[i]
        p = np.exp(log_p) * fits
        np.add.at(table, tuple(states[:, every.index(v)] for v in names), w * p / p.sum())
    return table


@pytest.mark.parametrize("seed", range(6))
def test_expected_tables_are_those_of_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bn = random_network(rng, zeros=seed % 2 == 1)
    hidden = ["v0"] if seed % 3 == 0 else []
    data = with_gaps(bn, 40, 0.3, rng, hidden)
    here = rows_of(data, bn).under(cpds_of(bn))
    requests = [Request(tuple(rng.choice(sorted(bn.variables), k, replace=False))) for k in (1, 2, 2, 3, 3, 4, 5)]
    answer = here.gather(requests)
    for request in requests:
        values = answer.counts(request.finite).values
        np.testing.assert_allclose(values, brute_force(bn, data, np.ones(40), list(request.finite)), atol=1e-10)


def test_weights_threads_and_the_numpy_definition_agree() -> None:
    rng = np.random.default_rng(5)
    bn = random_network(rng)
    weights = rng.random(60)
    drawn = bn.sample(60, seed=1)
    columns = {c: [None if rng.random() < 0.3 else x for x in drawn[c].to_pylist()] for c in drawn.column_names}
    data = sf.scan({**columns, "w": weights}, variables=dict(bn.variables), weights="w")
    here: Any = rows_of(data, bn).under(cpds_of(bn))
    assert here.weight == pytest.approx(weights.sum())
    sets = [list(rng.choice(sorted(bn.variables), 3, replace=False)) for _ in range(30)]
    one, at = here.tables(sets, threads=1)
    assert np.array_equal(one, here.tables(sets, threads=3)[0])
    number = {v.name: i for i, v in enumerate(here.variables)}
    for s, a, b in zip(sets, at, at[1:], strict=False):
        keys, share = spread(here.completions, [bn.variables[n].n_states for n in s], [number[n] for n in s])
        np.testing.assert_allclose(np.bincount(keys, share, b - a), one[a:b], atol=1e-12)
    np.testing.assert_allclose(
        one[: at[1]].reshape(brute_force(bn, data, weights, sets[0]).shape), brute_force(bn, data, weights, sets[0])
    )


def test_large_components_are_drawn_from_their_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    bn = random_network(rng)
    data = with_gaps(bn, 30, 0.6, rng)
    rows = rows_of(data, bn)
    monkeypatch.setattr(completions, "MOST", 8)
    with pytest.warns(SufficeNote, match="exact draws stand for the posterior"):
        drawn = rows.under(cpds_of(bn))
    for names in (["v1", "v2"], ["v0", "v3", "v4"]):
        expected = brute_force(bn, data, np.ones(30), names)
        np.testing.assert_allclose(drawn.gather([Request(tuple(names))]).counts(names).values, expected, atol=0.5)


def test_huge_tables_are_lists_of_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    bn = random_network(rng)
    data = with_gaps(bn, 50, 0.2, rng)
    rows = IncompleteRows(data, dict(bn.variables))
    here, first = rows.under(cpds_of(bn)), rows.first()
    assert first is not None
    seen = first.gather([Request(("v0", "v1", "v2"))]).counts(("v0", "v1", "v2"))
    dense = here.gather([Request(("v0", "v1", "v2"))]).counts(("v0", "v1", "v2"))
    monkeypatch.setattr("suffice.incomplete.expectations.DENSE", 4)
    sparse = here.gather([Request(("v0", "v1", "v2"))]).counts(("v0", "v1", "v2"))
    assert sparse.keys is not None
    np.testing.assert_allclose(sparse.dense(), dense.values)
    np.testing.assert_allclose(first.gather([Request(("v0", "v1", "v2"))]).counts(("v0", "v1", "v2")).dense(), seen.values)


def test_an_impossible_row_is_named() -> None:
    x, y = Finite("x", ["a", "b"]), Finite("y", ["a", "b"])
    bn = sf.BayesNet("x -> y", {"x": [1.0, 0.0], "y": [[1.0, 0.0], [0.5, 0.5]]}, variables=[x, y])
    rows = IncompleteRows(sf.scan({"x": ["a", None], "y": ["a", "b"]}, variables=[x, y]), {"x": x, "y": y})
    with pytest.raises(sf.SufficeError, match="row 2 is impossible"):
        rows.under(cpds_of(bn))


def test_available_cases_are_scaled_to_all_rows() -> None:
    x, y = Finite("x", ["a", "b"]), Finite("y", ["u", "v"])
    data = sf.scan({"x": ["a", "b", None, "a"], "y": ["u", "v", "u", None]}, variables=[x, y])
    here: Any = IncompleteRows(data, {"x": x, "y": y}).first()
    assert here.gather([Request(("x", "y"))]).counts(["x", "y"]).values.tolist() == [[2.0, 0.0], [0.0, 2.0]]
    never = sf.scan({"x": ["a", "b", None, None], "y": [None, None, "u", "u"]}, variables=[x, y])
    apart: Any = IncompleteRows(never, {"x": x, "y": y}).first()
    assert apart.gather([Request(("x", "y"))]).counts(["x", "y"]).values.tolist() == [[2.0, 0.0], [2.0, 0.0]]


def test_scores_of_expected_tables_are_those_of_their_statistics() -> None:
    rng = np.random.default_rng(7)
    bn = random_network(rng)
    here = rows_of(with_gaps(bn, 200, 0.2, rng), bn).under(cpds_of(bn))
    variables = tuple(bn.variables.values())
    families = [(0, ()), (1, (0, 2)), (5, (1, 3, 4)), (2, (5,)), (3, (0, 1, 2, 4))]
    for score in (
        sf.BIC(),
        sf.AIC(),
        sf.LogLikelihood(),
        sf.Evidence(sf.BDeu(2)),
        sf.Evidence(sf.K2()),
        sf.Evidence(sf.priors.BDs(1)),
    ):
        fast = LocalScores(here, variables, score)
        wanted = [Request(tuple(fast.names[v] for v in sorted((c, *p)))) for c, p in families]
        slow = LocalScores(here.gather([*wanted, *(Request((n,)) for n in fast.names)]), variables, score)
        np.testing.assert_allclose(fast.families(families), slow.families(families), rtol=1e-10)


@pytest.mark.parametrize("crowd", [1, 99])
def test_expected_moments_are_regressions(crowd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether rows that lack the same cells are summed up or not."""
    monkeypatch.setattr("suffice.incomplete.completions.CROWD", crowd)
    rng = np.random.default_rng(0)
    mean, root = np.array([1e6, 0.0, -3.0]), rng.normal(size=(3, 3))
    covariance = root @ root.T
    x = rng.multivariate_normal(mean, covariance, 50)
    x[rng.random(x.shape) < 0.3] = np.nan
    rows = IncompleteRows(data := sf.scan(dict(zip("abc", x.T, strict=True))), data.schema)
    assert (len(rows.rows.weights) < 50) == (crowd == 1)
    answer = rows.under(saturated_network(mean, covariance)).gather([Request((), ("a", "b", "c"))]).moments((), ["a", "b", "c"])
    first, second = np.zeros(3), np.zeros((3, 3))
    for row in x:
        m = np.isnan(row)
        z = np.where(m, 0.0, row - mean)
        left = np.zeros((3, 3))
        if m.any():
            gain = covariance[np.ix_(m, ~m)] @ np.linalg.inv(covariance[np.ix_(~m, ~m)])
            z[m] = gain @ z[~m]
            left[np.ix_(m, m)] = covariance[np.ix_(m, m)] - gain @ covariance[np.ix_(~m, m)]
        first += z
        second += np.outer(z, z) + left
    # The intercepts above, some 1e6, are given to 1e-10.
    np.testing.assert_allclose(answer.mean[0], mean + first / 50, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(answer.scatter[0], second - np.outer(first, first) / 50, rtol=1e-6)


def saturated_network(mean: Any, covariance: Any) -> dict[str, Any]:
    """The normal distribution of a, b, c, … as nodes that have all before them as parents."""
    cpds: dict[str, Any] = {}
    for i, name in enumerate("abcdefgh"[: len(mean)]):
        b = np.linalg.solve(covariance[:i, :i], covariance[:i, i])
        line = sf.Gaussian(mean[i] - b @ mean[:i], dict(zip(cpds, b, strict=True)), covariance[i, i] - b @ covariance[:i, i])
        cpds[name] = line.bound(sf.Real(name), [sf.Real(n) for n in cpds])
    return cpds


def test_rows_summed_up_keep_weight_mean_and_scatter() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(50, 4)), rng.random(50)
    x[:, 1], x[:, 2] = 0.1, np.nan
    few, weight = condense_rows(x, w)
    assert (few.shape, weight.sum()) == ((4, 4), pytest.approx(w.sum()))
    assert np.isnan(few[:, 2]).all()
    assert (few[:, 1] == 0.1).all()
    for a, b in ((0, 0), (0, 3), (3, 3)):
        one, other = (np.cov(v[:, [a, b]].T, aweights=u, ddof=0) * u.sum() for v, u in ((few, weight), (x, w)))
        np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_allclose(weight @ few[:, [0, 3]], w @ x[:, [0, 3]], rtol=1e-12)
    nothing, _ = condense_rows(np.full((5, 2), np.nan), np.ones(5))
    assert nothing.shape == (1, 2)


def test_rows_of_many_blocks_are_summed_up_to_few(monkeypatch: pytest.MonkeyPatch) -> None:
    data = sf.scan({**mixed_rows(40_000), "w": np.arange(40_000) % 3}, weights="w")
    problem = problem_of(sf.Dag("g -> k; g -> x; x -> y; k -> y"), data)
    cpds = problem.cpds(problem.first())
    requests = [Request(("g", "k")), Request(("k",), ("x", "y")), Request((), ("x", "y"))]
    few = IncompleteRows(data, data.schema)
    monkeypatch.setattr("suffice.incomplete.completions.CROWD", 40_000)
    every = IncompleteRows(data, data.schema)
    assert len(few.rows.weights) < 0.5 * len(every.rows.weights)
    a, b = (rows.under(cpds).gather(requests) for rows in (few, every))
    np.testing.assert_allclose(a.counts(["g", "k"]).dense(), b.counts(["g", "k"]).dense(), rtol=1e-11)
    for r in requests[1:]:
        one, other = a.moments(r.finite, r.real), b.moments(r.finite, r.real)
        np.testing.assert_allclose(one.mean, other.mean, rtol=1e-13)
        np.testing.assert_allclose(one.scatter, other.scatter, rtol=1e-9)


def mixed_rows(n: int = 300) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    g = rng.choice(["a", "b"], n)
    k = np.where(rng.random(n) < np.where(g == "a", 0.8, 0.2), "u", "v")
    x = np.where(g == "a", 0.0, 3.0) + rng.normal(1e4, 1, n)
    y = 2 * (x - 1e4) + np.where(k == "u", 3, -3) + rng.normal(0, 1, n)
    words = {c: [None if rng.random() < 0.15 else s for s in v.tolist()] for c, v in (("g", g), ("k", k))}
    return words | {c: np.where(rng.random(n) < 0.15, np.nan, v) for c, v in (("x", x), ("y", y))}


def test_mixed_rows_are_expected_as_em_expects_them() -> None:
    data = sf.scan(mixed_rows(80))
    dag = sf.Dag("g -> k; g -> x; x -> y; k -> y")
    problem = problem_of(dag, data)
    parameters = problem.maximise(problem.expect(problem.first()).statistic)
    expected = problem.expect(parameters)
    model = problem.network(parameters, expected.statistic, "")
    theirs = problem.statistics(expected.statistic)
    requests = [Request(("g", "k")), Request(("g",), ("x",)), Request(("k",), ("x", "y"))]
    ours = IncompleteRows(data, data.schema).under(cpds_of(model)).gather(requests)
    np.testing.assert_allclose(ours.counts(["g", "k"]).dense(), theirs.counts(["g", "k"]).dense(), rtol=1e-8)
    for r in requests[1:]:
        a, b = ours.moments(r.finite, r.real), theirs.moments(r.finite, r.real)
        np.testing.assert_allclose(a.count, b.count, rtol=1e-8)
        np.testing.assert_allclose(a.mean, b.mean, rtol=1e-10)
        np.testing.assert_allclose(a.scatter, b.scatter, rtol=1e-6)


def test_states_and_numbers_together() -> None:
    run = structural_em(mixed_rows())
    assert set(run.dag.edges) >= {("g", "x"), ("k", "y"), ("x", "y")}
    assert run.directions == run.found.directions  # in the words of a search
    assert run.directions["g", "x"] == "fixed by the kind of model"
    assert "fixed by the kind of model" in repr(run)
    assert pickle.loads(pickle.dumps(run)).directions == run.directions
    assert [r.score for r in run.graphs] == sorted(r.score for r in run.graphs)


def counted_rows(n: int = 900, lost: float = 0.15) -> sf.Data:
    """u -> c, u -> w, w -> m, c -> y: c and m are counts; cells of u, w, m and y are missing."""
    rng = np.random.default_rng(0)
    u = rng.integers(0, 2, n)
    w = np.where(rng.random(n) < 0.85, u, 1 - u)
    c, m = rng.poisson(1.0 + 3.0 * u).astype(float), rng.poisson(2.0 + 2.0 * w).astype(float)
    y = 0.5 * c + rng.normal(size=n)
    states = {"u": np.array(["a", "b"])[u], "w": np.array(["p", "q"])[w]}
    gaps = {k: np.where(rng.random(n) < lost, None, v) for k, v in {**states, "m": m, "y": y}.items()}
    return sf.scan({**gaps, "c": c}, variables={"c": sf.Count, "m": sf.Count})


def test_counts_in_structural_em() -> None:
    """Rates by finite parents, counts above numbers; the observed score is that of EM on the graph it found."""
    with pytest.warns(SufficeNote, match="missing counts that have children are summed, .*: 'm' may have children"):
        run = structural_em(counted_rows())
    assert set(run.cpdag.directed) == {("u", "c"), ("w", "m"), ("c", "y")}
    assert {frozenset(e) for e in run.cpdag.undirected} == {frozenset("uw")}
    assert [r.score for r in run.graphs] == sorted(r.score for r in run.graphs)
    again = sf.em(run.dag, counted_rows(), tol=1e-9)
    assert run.log_likelihood == pytest.approx(again.log_likelihood, abs=1e-3)


def test_expected_statistics_of_counts() -> None:
    """Against the sum over the states that a row lacks; a missing count has the mean and E[ln x!] of its rate."""
    u, n = sf.Finite("u", ["a", "b"]), sf.Count("n")
    data = sf.scan({"u": ["a", None, "b", None, "b"], "n": [2.0, 5.0, 1.0, None, None]}, variables=[u, n])
    share, rates = np.array([0.3, 0.7]), np.array([1.5, 4.0])
    cpds = {"u": Table(u, (), share), "n": PoissonRates(n, (u,), rates)}
    found = IncompleteRows(data, {"u": u, "n": n}).under(cpds).gather([Request(("u",), ("n",)), Request(("u",))])
    p = share * poisson.pmf(5, rates)
    p /= p.sum()
    counts = np.array([1.0, 2.0]) + p + share
    np.testing.assert_allclose(found.counts(["u"]).dense(), counts, rtol=1e-12)
    moments, x = found.moments(["u"], ["n"]), np.arange(80)
    sums = np.array([2.0, 1.0 + 4.0]) + 5.0 * p + share * rates
    np.testing.assert_allclose(moments.count * moments.mean[:, 0], sums, rtol=1e-12)
    drawn = np.array([poisson.pmf(x, r) @ gammaln(x + 1) for r in rates])
    logs = np.array([np.log(2.0), drawn[1]]) + np.log(120.0) * p + share * drawn
    np.testing.assert_allclose(moments.sums[:, 0], logs, rtol=1e-9)


def test_expected_rows_under_regressions() -> None:
    """A current network with regressions: completed rows, weighed as enumeration weighs them, for any step."""
    rng = np.random.default_rng(1)
    u, y, k = sf.Finite("u", ["a", "b"]), sf.Finite("y", ["no", "yes"]), sf.Count("k")
    x, codes, n = rng.normal(3.0, 2.0, 40), rng.integers(0, 2, 40), 40
    shown, response, count = rng.random(n) < 0.6, rng.integers(0, 2, n), rng.poisson(3.0, n).astype(float)
    data = sf.scan(
        {"u": [s if ok else None for s, ok in zip(np.array(["a", "b"])[codes], shown, strict=True)], "x": x, "k": count}
        | {"y": np.array(["no", "yes"])[response]},
        variables={"u": u, "y": y, "k": k},
    )
    real = sf.Real("x")
    cpds = {
        "u": Table(u, (), [0.4, 0.6]),
        "x": sf.Gaussian(3.0).bound(real, []),
        "y": sf.Logistic().cpd(y, (real, u), np.array([-1.0, 0.4, 0.8])),
        "k": sf.regressions.PoissonLog().cpd(k, (u, real), np.array([0.5, 0.7, 0.1])),
    }
    expected = IncompleteRows(data, {"u": u, "x": real, "y": y, "k": k}, whole=True).under(cpds)
    log_p = np.array(
        [sum(cpds[v].log_prob({"u": np.full(n, s), "x": x, "y": response, "k": count}) for v in ("u", "y", "k")) for s in (0, 1)]
    )
    log_p[:, shown] = np.where(np.arange(2)[:, None] == codes[shown], 0.0, -np.inf)
    p = np.exp(log_p - np.logaddexp(*log_p))
    np.testing.assert_allclose(expected.gather([Request(("u",))]).counts(["u"]).dense(), p.sum(axis=1), rtol=1e-10)
    measured = expected.fold(Pass(sf.regressions.PoissonLog().summary, (k, (u, real))))
    np.testing.assert_allclose(measured.columns, [p[1].sum(), x.sum()], rtol=1e-10)
    assert measured.weight == pytest.approx(n)


def test_complete_counts_are_scored_as_in_a_search() -> None:
    """A table of which one cell is missing: the graph, and nearly the score, of the search without that row."""
    rows = counted_rows(lost=0.0)
    whole = {n: c.tolist() for n, c in rows.sample(rows.n_rows, 0).columns.items()}
    table = {**whole, "u": ["ab"[k] for k in whole["u"]], "w": ["pq"[k] for k in whole["w"]]}
    found = sf.search(sf.scan(table, variables={"c": sf.Count, "m": sf.Count}), method=sf.HillClimb())
    table["u"][0] = None
    run = structural_em(sf.scan(table, variables={"c": sf.Count, "m": sf.Count}))
    assert run.cpdag == found.cpdag
    assert run.score == pytest.approx(found.score, abs=5.0)


@pytest.fixture(scope="module")
def asia() -> Any:
    bn = sf.load("asia")
    return bn, with_gaps(bn, 1000, 0.1, np.random.default_rng(1))


@pytest.mark.parametrize("score", [sf.BIC(), sf.AIC()])
def test_the_observed_score_rises(asia: Any, score: Any) -> None:
    bn, data = asia
    run = structural_em(data, score=score)
    scores = [r.score for r in run.graphs]
    assert run.converged
    assert scores == sorted(scores)
    assert run.score == scores[-1] == run.objective
    price = score.price(1000.0) * run.model.n_parameters
    again = sf.em(run.dag, data, start=run.model, max_iter=1)
    assert run.score == pytest.approx(again.log_likelihood - price, abs=1e-3)
    assert set(run.dag.nodes) == set(bn.dag.nodes)
    assert "converged" in repr(run)
    facts = json.loads(json.dumps(run.to_dict()))
    assert facts["edges"] == [list(e) for e in run.dag.edges]
    assert facts["score"] == run.score


def test_the_graph_is_that_of_complete_rows() -> None:
    bn = sf.load("cancer")
    complete = bn.sample(4000, seed=0)
    columns = {c: complete[c].to_pylist() for c in complete.column_names}
    rng = np.random.default_rng(0)
    gaps = {c: [None if rng.random() < 0.05 else x for x in v] for c, v in columns.items()}
    found = sf.search(columns, method=sf.HillClimb())
    assert sf.shd(structural_em(gaps).dag, found.dag) <= 1


@pytest.mark.parametrize(
    "method", [sf.HillClimb(max_parents=2), sf.methods.Tabu(), sf.Orders(), sf.methods.GES(), sf.Exact(max_parents=2)]
)
def test_any_method_that_works_on_scores(asia: Any, method: Any) -> None:
    _, data = asia
    run = structural_em(data, method=method, rounds=3)
    assert run.score >= -2350
    assert [r.score for r in run.graphs] == sorted(r.score for r in run.graphs)


def common_cause(n: int = 400) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    h = rng.random(n) < 0.5
    return {f"x{i}": np.where(rng.random(n) < np.where(h, 0.9, 0.15), "b", "a") for i in range(5)}


def test_a_hidden_common_cause_is_found() -> None:
    rows = common_cause()
    run = structural_em(rows, hidden=[Finite("h", ["0", "1"])], starts=3)
    assert {frozenset(e) for e in run.dag.edges} == {frozenset(("h", x)) for x in rows}
    assert run.score > structural_em(rows).score
    assert len(run.optima) == 3
    assert max(run.optima) == pytest.approx(run.score)
    again = structural_em(rows, hidden=[Finite("h", ["0", "1"])], starts=3)
    assert [r.score for r in again.graphs] == [r.score for r in run.graphs]


def test_a_hidden_variable_that_explains_nothing_is_noted() -> None:
    rng = np.random.default_rng(0)
    rows = {n: rng.choice(["a", "b"], 200) for n in "xyz"}
    with pytest.warns(SufficeNote, match="'h' has no links"):
        structural_em(rows, hidden={"h": ["0", "1"]}, starts=1)


def test_evidence_keeps_the_best_by_cheeseman_and_stutz() -> None:
    run = structural_em(common_cause(), hidden=[Finite("h", ["0", "1"])], score=sf.Evidence(sf.BDeu(1)), starts=2)
    assert run.score == max(r.score for r in run.graphs)
    assert "posterior mean" in run.model.fit_info
    # Without gaps and hidden variables the approximation is the evidence itself.
    rows = common_cause()
    plain = structural_em(rows, score=sf.Evidence(sf.BDeu(1)))
    assert plain.score == pytest.approx(sf.score(plain.dag, rows, sf.Evidence(sf.BDeu(1))))


def test_numbers() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(1e6, 1, 500)
    b = 2 * (a - 1e6) + rng.normal(0, 1, 500)
    c = rng.normal(0, 1, 500)
    d = b + c + rng.normal(0, 0.5, 500)
    rows = {n: np.where(rng.random(500) < 0.1, np.nan, x) for n, x in zip("abcd", (a, b, c, d), strict=True)}
    run = structural_em(rows)
    assert run.cpdag == sf.Dag("a -> b; b -> d; c -> d").cpdag()
    assert [r.score for r in run.graphs] == sorted(r.score for r in run.graphs)


def test_a_run_goes_on_from_another(asia: Any) -> None:
    _, data = asia
    short = structural_em(data, rounds=1)
    full = structural_em(data, start=short)
    assert full.score >= short.score - 1e-6
    assert full.graphs[0].dag == short.dag
    from_graph = structural_em(data, start=short.dag, rounds=1)
    assert from_graph.graphs[0].score == pytest.approx(short.score, abs=0.1)


def test_constraints_and_a_prior_are_kept(asia: Any) -> None:
    bn, data = asia
    known = sf.Require(("smoke", "lung")) + sf.Forbid(("bronc", "smoke")) + sf.constraints.Adjacent(("asia", "xray"))
    run = structural_em(data, constraints=known, prior=sf.BDeu(1), rounds=2)
    assert known.check(run.dag) == []
    assert run.model.prior == sf.BDeu(1)
    assert (run.model["asia"].probs > 0).all()
    assert bn.dag.nodes


def test_a_limit_returns_the_best_so_far(asia: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, data = asia
    at_once = structural_em(data, time_limit=1e-9)
    assert not at_once.finished
    assert at_once.dag.edges == ()
    with pytest.raises(sf.SufficeError, match="before any network was found"):
        structural_em(data, method=sf.methods.TAN("lung"), time_limit=1e-9)
    taken = IncompleteRows.under
    calls: list[Any] = []

    def interrupted(self: IncompleteRows, cpds: Any) -> Any:
        calls.append(cpds)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return taken(self, cpds)

    monkeypatch.setattr(IncompleteRows, "under", interrupted)
    run = structural_em(data)
    assert isinstance(run, StructuralRun)
    assert not run.finished
    assert not run.converged
    assert len(run.graphs) == 2
    assert "best so far" in repr(run)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": sf.PC()}, "PC tests independence in rows"),
        ({"method": sf.methods.MMHC()}, "MMHC tests independence"),
        ({"method": sf.HillClimb}, "a method is an object"),
        ({"score": sf.BIC}, "a score is"),
        ({"rounds": 0}, "rounds must be a whole number"),
        ({"starts": 0}, "starts must be a whole number"),
        ({"tol": -1}, "tol is a number"),
        ({"time_limit": 0}, "time_limit is a number"),
        ({"hidden": ["h"]}, "a hidden variable is a Finite"),
        ({"hidden": [Finite("x", ["a", "b"])]}, "'x' is also a column"),
        ({"hidden": [Finite("h", [str(i) for i in range(9)])]}, "more than the 4 rows"),
        ({"start": "x -> q"}, "the start names 'q'"),
        ({"hidden": 3}, "hidden variables are declared"),
        ({"constraints": "x -> y"}, "constraints are"),
    ],
)
def test_bad_options_are_refused(options: Any, words: str) -> None:
    rows = {"x": ["a", "b", None, "a"], "y": ["u", "v", "u", "v"]}
    with pytest.raises(sf.SufficeError, match=words):
        structural_em(rows, **options)


def test_bad_data_is_refused() -> None:
    with pytest.raises(sf.SufficeError, match="every cell of 'y' is missing"):
        structural_em(sf.scan({"x": ["a", "b"], "y": [None, None]}, variables={"y": ["u", "v"]}))
    with pytest.raises(sf.SufficeError, match="no rows"):
        structural_em(sf.scan({"x": []}, variables={"x": ["a", "b"]}))
    with pytest.raises(sf.SufficeError, match="structural EM needs the rows"):
        structural_em(sf.gather({"x": ["a", "b"]}, sf.Dag("x")))
    with pytest.raises(sf.SufficeError, match="the same"):
        structural_em({"x": [1.5, 1.5, None], "y": [1.0, 2.0, 4.0]})
    with pytest.raises(sf.SufficeError, match="the same"):
        structural_em({"x": [1.5, 1.5, None], "y": ["a", "b", "a"]})


def test_rows_without_a_cell_and_weights_are_taken() -> None:
    rows = {"x": ["a", "b", None, "a", "b"] * 9, "y": ["u", "v", None, "u", "v"] * 9, "w": [1.0, 2.0, 1.0, 0.5, 1.0] * 9}
    run = structural_em(sf.scan(rows, weights="w"))
    assert run.converged
    assert {frozenset(e) for e in run.dag.edges} == {frozenset("xy")}


def notes_of(run: Any) -> tuple[Any, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = run()
    assert all(issubclass(w.category, SufficeNote) for w in caught)
    return result, [str(w.message) for w in caught]


def collapsing(n: int = 300) -> dict[str, Any]:
    """`x` is zero wherever `g` is "a", which shows only where EM has filled in the missing cells of `g`; `y` hangs on `x`."""
    rng = np.random.default_rng(0)
    g = rng.choice(["a", "b"], n)
    x = np.where(g == "a", 0.0, rng.normal(3.0, 1.0, n))
    y = x + rng.normal(0, 0.5, n)
    k = np.where(rng.random(n) < np.where(g == "a", 0.9, 0.1), "u", "v")
    return {"g": [None if rng.random() < 0.1 else s for s in g.tolist()], "k": k, "x": x, "y": y}


def test_a_family_that_collapses_is_left_out_and_named_once() -> None:
    run, notes = notes_of(lambda: structural_em(collapsing()))
    edges = {frozenset(e) for e in run.dag.edges}
    assert run.converged
    assert {frozenset("gk"), frozenset("xy")} <= edges
    assert "g" not in run.dag.parents("x")
    named = [n for n in notes if "variance of zero" in n]
    assert len(named) == 1
    assert "x | g" in named[0]


def test_a_collapsing_family_that_is_required_is_an_error_or_the_best_so_far() -> None:
    with pytest.raises(sf.SufficeError, match="'x' at g='a' has collapsed"):
        structural_em(collapsing(), constraints=sf.Require(("g", "x")))


def test_copies_of_columns_are_left_out_as_in_complete_rows() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    rows = {"x": np.where(rng.random(200) < 0.1, np.nan, x), "y": 2 * x, "w": rng.normal(size=200)}
    run, notes = notes_of(lambda: structural_em(rows))
    assert run.dag.edges == ()
    assert sum("y | x" in n for n in notes) == 1
    with pytest.warns(SufficeNote, match="y | x"):
        assert sf.learn(rows).dag.edges == ()
    with_words = rows | {"z": rng.choice(["a", "b"], 200)}
    with pytest.warns(SufficeNote, match="variance of zero"):
        assert structural_em(with_words).dag.edges == ()
    start = structural_em(rows | {"v": x + rng.normal(size=200)}, start="x -> y; x -> v", rounds=2)
    assert start.dag.edges


def test_barred_families_have_no_score_in_any_question() -> None:
    rng = np.random.default_rng(0)
    data = sf.scan({n: rng.normal(size=50) for n in "abc"})
    variables = tuple(data.schema.values())
    plain = LocalScores(data, variables, sf.BIC())
    known: dict[Any, float] = {}
    source = Barring(plain, [(0, frozenset({1}))], known)
    families = [(0, ()), (0, (1,)), (0, (1, 2)), (0, (2,)), (1, (0,))]
    expected = plain.families(families)
    np.testing.assert_allclose(source.families(families), np.where([0, 1, 1, 0, 0], -np.inf, expected))
    assert source.pairs()[1][0, 1] == -np.inf
    assert source.toggles(0, (2,), [1, 2])[[1, 2]].tolist() == [-np.inf, expected[0]]
    sets = source.parent_sets(Rules.free(3), prune=False)
    assert sorted(p for p, _ in sets.of_child(0)) == [(), (2,)]
    assert known[families[1]] == expected[1]


def test_the_result_prints_its_edges() -> None:
    bn = sf.BayesNet(
        "a -> c; b -> c; d -> e",
        {"a": [0.5, 0.5], "b": [0.5, 0.5], "c": [[[0.9, 0.1], [0.5, 0.5]], [[0.5, 0.5], [0.1, 0.9]]]}
        | {"d": [0.5, 0.5], "e": [[0.9, 0.1], [0.1, 0.9]]},
        variables=[Finite(n, ["0", "1"]) for n in "abcde"],
    )
    ways = {("a", "c"): "compelled", ("b", "c"): "compelled", ("d", "e"): "either way"}
    run = StructuralRun(bn, (), True, score=-1.0, directions=ways)
    assert [line.split(maxsplit=3) for line in repr(run).splitlines()[4:7]] == [[a, "->", b, why] for (a, b), why in ways.items()]
    assert "a -&gt; c" in run._repr_html_()
    many = sf.Dag([(f"first {i}", f"second {i}") for i in range(70)])
    long = StructuralRun(_independent(many), (), True, directions=dict.fromkeys(many.edges, "either way"))
    assert "... and 10 more" in repr(long)
    assert "no edges" in repr(StructuralRun(_independent(sf.Dag("a; b")), (), True))


def _independent(dag: Any) -> Any:
    tables = {n: np.full((2,) * (len(dag.parents(n)) + 1), 0.5) for n in dag.nodes}
    return sf.BayesNet(dag, tables, variables=[Finite(n, ["0", "1"]) for n in dag.nodes])


def test_an_interrupt_gives_the_first_network_as_soon_as_there_is_one(asia: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, data = asia

    def stopped(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(IncompleteRows, "under", stopped)
        for score in (sf.BIC(), sf.AIC()):
            run = structural_em(data, score=score, prior=sf.BDeu(1))
            assert len(run.graphs) == 1
            assert run.dag.edges
            assert run.model.prior == sf.BDeu(1)
    with monkeypatch.context() as patched:
        patched.setattr(IncompleteRows, "first", stopped)
        run = structural_em(data)
        assert not run.finished
        assert run.dag.edges == ()
        assert run.score == run.graphs[0].score == run.objective


def test_a_stop_while_the_prior_comes_in_keeps_the_network(asia: Any) -> None:
    _, data = asia
    whole = structural_em(data, prior=sf.BDeu(1))

    def stopped(step: Any) -> bool:
        return "the prior: iteration 2 " in step.what

    def interrupted(step: Any) -> None:
        if stopped(step):
            raise KeyboardInterrupt

    for watch in (stopped, interrupted):
        run = structural_em(data, prior=sf.BDeu(1), progress=watch)
        assert (run.dag, run.score) == (whole.dag, whole.score)
        assert not run.finished
        assert run.model.prior == sf.BDeu(1)
        assert (run.model["asia"].probs > 0).all()
        assert sf.learn(data, progress=watch).dag == whole.dag


def test_a_stop_before_the_prior_is_in_waits_for_one_iteration(asia: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, data = asia
    known, tried = StructuralSearch._run_em, list[Any]()

    def interrupted(self: StructuralSearch, *asked: Any) -> Any:
        if self.prior is not None:
            tried.append(asked[2])
            if len(tried) == 1:
                raise KeyboardInterrupt
        return known(self, *asked)

    monkeypatch.setattr(StructuralSearch, "_run_em", interrupted)
    run = structural_em(data, prior=sf.BDeu(1))
    assert tried == [None, 1]
    assert not run.finished
    assert run.model.prior == sf.BDeu(1)


def test_what_is_being_done_is_told(asia: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, data = asia
    told: list[str] = []
    check = Progress.check

    def noted(self: Any, what: str = "", **more: Any) -> None:
        told.append(what)
        check(self, what, **more)

    monkeypatch.setattr(Progress, "check", noted)
    structural_em(data, hidden={"h": ["0", "1"]}, starts=2, rounds=1)
    for words in ("start 1 of 2, first graph: iteration 1 of EM", "start 2 of 2, round 1", "expected tables,", "searching,"):
        assert any(words in t for t in told), words


def test_rows_that_lack_too_many_states_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    data = sf.scan(mixed_rows(60))
    dag = sf.Dag("g -> k; g -> x; x -> y; k -> y")
    problem = problem_of(dag, data)
    expected = problem.expect(parameters := problem.first())
    cpds, rows = cpds_of(problem.network(parameters, expected.statistic, "")), IncompleteRows(data, data.schema)
    requests = [Request(("g", "k")), Request(("g",), ("x",))]
    exact = rows.under(cpds).gather(requests)
    n = len(rows.rows.weights)
    monkeypatch.setattr(expected_moments, "MOST", n + 1)
    with pytest.raises(sf.SufficeError, match=r"most often missing: '[gk]' 1"):
        rows.under(cpds)
    monkeypatch.setattr(expected_moments, "MOST", n + 5)
    monkeypatch.setattr(expected_moments, "FEWEST", 1)
    monkeypatch.setattr(expected_moments, "DRAWN", n)
    with pytest.warns(SufficeNote, match="draws stand for them"):
        rows.under(cpds)
    # Many draws come near: each row has an error of some 1 / √2,000 at most.
    monkeypatch.setattr(expected_moments.ExpectedMoments, "_times", lambda _, ways: (np.where(ways > 1, 2000, 1), ways > 1))
    drawn = rows.under(cpds).gather(requests)
    np.testing.assert_allclose(drawn.counts(["g", "k"]).dense(), exact.counts(["g", "k"]).dense(), atol=0.15)
    np.testing.assert_allclose(drawn.moments(("g",), ("x",)).mean, exact.moments(("g",), ("x",)).mean, atol=0.02)


def test_rows_that_show_nothing_are_drawn_where_they_have_too_many_states(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {c: v[:40] for c, v in mixed_rows(200).items()}
    shown = [i for i in range(40) if all(v[i] is not None and v[i] == v[i] for v in whole.values())]
    data = sf.scan({c: [*(v[i] for i in shown), None, None] for c, v in whole.items()})
    problem = problem_of(sf.Dag("g -> k; g -> x; x -> y; k -> y"), data)
    cpds, rows = problem.cpds(problem.first()), IncompleteRows(data, data.schema)
    requests = [Request(("g", "k")), Request(("g",), ("x",))]
    exact = rows.under(cpds).gather(requests)
    monkeypatch.setattr(expected_moments, "MAX_STATES", 3)
    monkeypatch.setattr(expected_moments, "MOST", 2)
    monkeypatch.setattr(expected_moments.ExpectedMoments, "_times", lambda _, ways: (np.where(ways > 1, 2000, 1), ways > 1))
    drawn = rows.under(cpds).gather(requests)
    np.testing.assert_allclose(drawn.counts(["g", "k"]).dense(), exact.counts(["g", "k"]).dense(), atol=0.1)
    np.testing.assert_allclose(drawn.moments(("g",), ("x",)).mean, exact.moments(("g",), ("x",)).mean, atol=0.02)


@pytest.mark.parametrize("hidden", [(), [Finite("h", ["0", "1"])]])
def test_a_method_with_a_shape_keeps_it(hidden: Any) -> None:
    rng = np.random.default_rng(0)
    rows = {n: [None if rng.random() < 0.1 else s for s in rng.choice(["a", "b"], 100).tolist()] for n in "xyz"}
    target = "h" if hidden else "x"
    run = structural_em(rows, hidden=hidden, method=sf.methods.TAN(target), starts=1)
    assert all(target in run.dag.parents(n) for n in rows if n != target)
    assert all(target in r.dag.parents(n) for r in run.graphs for n in rows if n != target)
    tree = structural_em(rows, hidden=hidden, method=sf.methods.ChowLiu(), score=sf.LogLikelihood(), starts=1)
    assert len(tree.dag.edges) == len(tree.dag) - 1


def test_a_shape_among_states_and_numbers() -> None:
    run = structural_em(mixed_rows(), method=sf.methods.TAN("g"))
    assert run.dag.children("g") == ("k", "x", "y")


def test_weights_that_vanish_have_no_moments() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1, 30), rng.normal(1e3, 1, 30)])
    rows = {"x": x, "y": rng.normal(0, 1, 60), "t": ["a"] * 30 + ["b"] * 30}
    run, notes = notes_of(lambda: structural_em(rows, hidden={"h": ["0", "1"]}, starts=3))
    assert run.score > -np.inf
    assert not any("e-" in n for n in notes)


def test_notes_are_given_once() -> None:
    rows = collapsing(120)
    rows["g"][0], rows["k"] = None, [None, *rows["k"].tolist()[1:]]
    rows["x"], rows["y"] = rows["x"].copy(), rows["y"].copy()
    rows["x"][0] = rows["y"][0] = np.nan
    _, notes = notes_of(lambda: structural_em(rows, hidden={"h": ["0", "1"]}, starts=2, rounds=3))
    assert sum("no observed cell" in n for n in notes) == 1
    kinds = [re.sub(r"[\d,.]+", "", n.split(":")[0]) for n in notes]
    assert len(kinds) == len(set(kinds))


def test_parts_do_not_change_what_is_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    bn = random_network(rng)
    data = with_gaps(bn, 100, 0.4, rng)
    step = ReduceRows.over(tuple(bn.variables.values()), data)
    rows = step.encode(data.distinct(), data)
    theta = theta_of(cpds_of(bn), rows.variables)
    told: list[str] = []
    monkeypatch.setattr(completions, "MANY", 2)
    whole = FiniteCompletions.of(theta, rows, 0, told.append)
    monkeypatch.setattr(completions, "ROOM", 16)
    told.clear()
    parts = FiniteCompletions.of(theta, rows, 0, told.append)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a, b)
    assert sum("marginals" in t for t in told) > 3


class Travelling:
    """Another engine, to which each step comes in pickled form."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.steps: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        if name in ("engine", "store"):
            raise AttributeError(name)
        return getattr(self.engine, name)

    def declare(self, variables: Any) -> Any:
        return Travelling(self.engine.declare(variables))

    def fold(self, step: Any, *names: Any, **how: Any) -> Any:
        self.steps.add(type(step).__name__)
        return pickle.loads(pickle.dumps(self.engine.fold(pickle.loads(pickle.dumps(step)), *names, **how)))

    def map(self, step: Any, *names: Any, **how: Any) -> Any:
        return self.engine.map(pickle.loads(pickle.dumps(step)), *names, **how)


@pytest.mark.parametrize("kind", ["hidden", "numbers", "mixed"])
def test_rows_may_be_elsewhere(kind: str) -> None:
    rows, hidden = mixed_rows(200), ()
    if kind == "hidden":
        rows, hidden = common_cause(200), [Finite("h", ["0", "1"])]  # type: ignore[assignment]
        rows["x0"] = [None if i % 9 == 0 else x for i, x in enumerate(rows["x0"])]
    elif kind == "numbers":
        rows = {c: rows[c] for c in "xy"}
    here = sf.scan(rows)
    engine = Travelling(sf.scan(rows).engine)
    near, far = (structural_em(d, hidden=hidden, starts=2, rounds=3) for d in (here, Data(engine, here.columns)))
    assert near.dag == far.dag
    assert near.score == far.score
    assert engine.steps


def test_a_run_explains_its_graph_on_what_is_expected() -> None:
    """On rows that lack almost nothing the losses are those of a search; a run that was pickled has left its rows behind."""
    rows = sf.load("asia").sample(1000, seed=3).to_pandas().astype(object)
    plain = sf.search(rows)
    rows.loc[0, "asia"] = None
    run = structural_em(rows)
    assert run.cpdag == plain.cpdag
    assert sum(run.found.losses.values()) == pytest.approx(sum(plain.losses.values()), rel=0.01)
    for edge, loss in run.found.losses.items():
        assert run.explain(edge).loss == loss  # type: ignore[attr-defined]
    assert "losses" not in repr(run.found)
    with pytest.raises(sf.SufficeError, match="was unpickled"):
        pickle.loads(pickle.dumps(run)).explain("asia")


def test_edges_from_states_to_numbers_have_one_direction_only() -> None:
    rng = np.random.default_rng(0)
    c = rng.choice(["u", "v"], 300)
    x = np.where(c == "u", 0.0, 5.0) + rng.normal(size=300)
    x[::9] = np.nan
    run = structural_em({"c": c, "x": x})
    assert run.cpdag.directed == (("c", "x"),)


def test_notes_that_differ_in_numbers_only_are_given_once() -> None:
    with warnings.catch_warnings(record=True) as notes, said_once():
        warnings.simplefilter("always")
        for what in ("2 rows are empty", "3 rows are empty", "no rows are weighted"):
            note(what)
    assert [str(n.message) for n in notes] == ["2 rows are empty", "no rows are weighted"]
