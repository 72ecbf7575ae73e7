"""EM of networks with numbers in them: against brute force, published numbers, and what must never happen."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm, poisson

import suffice as sf
from suffice.errors import FitError, ModelError, SufficeNote, TooLarge
from suffice.families.categorical import Table
from suffice.families.chosen.exponential_node import PoissonRates
from suffice.families.priors.priors import Gamma
from suffice.families.protocol.family import Mean, Mode
from suffice.families.regressions.logistic import Logistic
from suffice.learning.incomplete.objective import Collapsed
from suffice.learning.incomplete.problem import ParameterProblem, problem_of
from suffice.learning.incomplete.task import task_of
from tests.hybrid_oracles import parts, probability, random_hybrid

Row = dict[str, Any]


def torn(bn: sf.BayesNet, n: int, seed: int, share: float = 0.35, hidden: tuple[str, ...] = ()) -> list[Row]:
    """Rows drawn from a network with cells torn out at random, never a whole column of them; hidden ones have none."""
    rng = np.random.default_rng(seed)
    rows = bn.sample(n, seed=seed).to_pylist()
    return [
        {k: None if k in hidden or (i > 2 and rng.random() < share) else v for k, v in row.items()} for i, row in enumerate(rows)
    ]


def table(rows: list[Row], variables: Mapping[str, Any], weights: Any = None) -> Any:
    columns = {n: [r[n] for r in rows] for n in variables if any(r[n] is not None for r in rows)}
    return sf.scan(columns, variables={n: variables[n] for n in columns}, weights=weights)


def problem_for(bn: sf.BayesNet, rows: list[Row], weights: Any = None, **options: Any) -> ParameterProblem:
    data = table(rows, bn.variables, weights)
    hidden = [v for n, v in bn.variables.items() if n not in data.columns]
    return ParameterProblem.of(task_of(bn.dag, data, hidden=hidden, **options))


def climbed(problem: ParameterProblem, theta: Any, n: int) -> tuple[Any, list[float]]:
    trace = []
    for _ in range(n):
        expected = problem.expect(theta)
        trace.append(expected.log_likelihood + problem.log_prior(theta))
        theta = problem.maximise(expected.statistic)
    return theta, trace


def brute_force(bn: sf.BayesNet, rows: list[Row], weights: Any) -> tuple[float, dict[str, Any]]:
    """ln p of the rows, and for each node and configuration Σ w, Σ w x and Σ w x xᵀ of its numbers, all by dense normals."""
    log_likelihood, sums = 0.0, {}
    for row, weight in zip(rows, weights, strict=True):
        given = {k: v for k, v in row.items() if v is not None}
        total = probability(bn, given)
        log_likelihood += weight * np.log(total)
        for part in parts(bn, given):
            add_part(bn, part, given, weight * part.weight / total, sums)
    return log_likelihood, sums


def add_part(bn: sf.BayesNet, part: Any, given: Mapping[str, Any], weight: float, sums: dict[str, Any]) -> None:
    for name in bn.dag.nodes:
        members = [bn.variables[n] for n in (*bn.dag.parents(name), name)]
        finite = [v for v in members if isinstance(v, sf.Finite)]
        reals = [v.name for v in members if not isinstance(v, sf.Finite)]
        mean = np.array([given[r] if r in given else part.mean[part.names.index(r)] for r in reals])
        square = np.outer(mean, mean)
        for i, a in enumerate(reals):
            for j, b in enumerate(reals):
                if a not in given and b not in given:
                    square[i, j] += part.covariance[part.names.index(a), part.names.index(b)]
        cell = tuple(v.code(part.states[v.name]) for v in finite)
        old = sums.setdefault(name, {}).setdefault(cell, [0.0, 0.0, 0.0])
        sums[name][cell] = [old[0] + weight, old[1] + weight * mean, old[2] + weight * square]


def same_statistics(problem: ParameterProblem, statistic: Any, sums: dict[str, Any]) -> None:
    named = problem.statistics(statistic)
    for name, by_cell in sums.items():
        members = [problem.variables[n] for n in (*problem.dag.parents(name), name)]
        finite = [v for v in members if isinstance(v, sf.Finite)]
        reals = [v.name for v in members if not isinstance(v, sf.Finite)]
        shape = tuple(v.n_states for v in finite)
        for cell, (weight, first, second) in by_cell.items():
            if not reals:
                assert named.counts([v.name for v in finite]).dense()[cell] == pytest.approx(weight, rel=1e-9, abs=1e-12)
                continue
            key = np.ravel_multi_index(cell, shape) if cell else 0
            found = named.moments([v.name for v in finite], reals).at(np.array([key]))
            assert found.count[0] == pytest.approx(weight, rel=1e-9, abs=1e-12)
            np.testing.assert_allclose(found.mean[0] * found.count[0], first, rtol=1e-8, atol=1e-9)
            m = found.mean[0]
            np.testing.assert_allclose(found.scatter[0] + weight * np.outer(m, m), second, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", range(12))
def test_expected_statistics_equal_brute_force(seed: int) -> None:
    bn = random_hybrid(seed, n_finite=seed % 4, n_real=1 + seed % 3)
    hidden = tuple(n for n in bn.variables if n.startswith("u"))[: seed % 2]
    rows = torn(bn, 25, seed, hidden=hidden)
    rows.append(dict.fromkeys(bn.variables))
    weights = np.random.default_rng(seed).gamma(2.0, size=len(rows))
    problem = problem_for(bn, rows, weights)
    expected = problem.expect(problem.parameters({n: bn[n] for n in bn}))
    log_likelihood, sums = brute_force(bn, rows, weights)
    assert expected.log_likelihood == pytest.approx(log_likelihood, rel=1e-10)
    same_statistics(problem, expected.statistic, sums)


@pytest.mark.parametrize("estimate", [None, Mean(), Mode()])
@pytest.mark.parametrize("seed", range(4))
def test_the_objective_never_falls(seed: int, estimate: Any) -> None:
    bn = random_hybrid(seed, n_finite=2, n_real=3)
    rows = torn(bn, 80, seed, share=0.25, hidden=("u0",) if seed % 2 else ())
    prior = (sf.Dirichlet(1.5), sf.NormalInverseGamma(count=2.0, df=4.0)) if estimate else None
    problem = problem_for(bn, rows, prior=prior, estimate=estimate)
    start = problem.random(np.random.default_rng(seed)) if problem.hidden else problem.first()
    try:
        _, trace = climbed(problem, start, 25)
    except Collapsed:
        assert estimate is None
        return
    assert np.all(np.diff(trace) > -1e-9 * (1.0 + np.abs(trace[-1])))


@pytest.mark.parametrize("estimate", [Mean(), Mode()])
def test_the_m_step_is_the_exact_maximiser(estimate: Any) -> None:
    """No change of any parameter makes Σ E[ln p] + log prior larger, and the derivative is zero."""
    bn = random_hybrid(5, n_finite=2, n_real=3)
    problem = problem_for(bn, torn(bn, 60, 5), prior=(sf.Dirichlet(2.0), sf.BGe()), estimate=estimate)
    statistic = problem.expect(problem.first()).statistic
    named, best = problem.statistics(statistic), problem.cpds(problem.maximise(statistic))

    def objective(cpds: Any) -> float:
        fits = sum(c.log_likelihood(named.answer(c.family.needs(c.child, c.parent_variables))) for c in cpds.values())
        return float(fits + problem.log_prior(problem.parameters(cpds)))

    top = objective(best)
    for name, cpd in best.items():
        for seed in range(4):
            up, down = (objective({**best, name: moved(cpd, seed, step)}) - top for step in (1e-3, -1e-3))
            assert max(up, down) < 0.0
            assert abs(up - down) < 0.02 * abs(up + down)


def moved(cpd: Any, seed: int, step: float) -> Any:
    """The distribution with all its parameters moved a little in a random direction."""
    rng = np.random.default_rng(seed)
    if isinstance(cpd, Table):
        probs = cpd.probs * np.exp(step * rng.standard_normal(cpd.probs.shape))
        return replace(cpd, probs=probs / probs.sum(axis=-1, keepdims=True))
    changes = {n: getattr(cpd, n) for n in ("intercept", "coefficients")}
    moves = {n: x + step * rng.standard_normal(x.shape) for n, x in changes.items()}
    return replace(cpd, **moves, variance=cpd.variance * np.exp(step * rng.standard_normal(cpd.variance.shape)))


def test_parameters_come_back() -> None:
    bn = random_hybrid(3, n_finite=2, n_real=3)
    problem = problem_for(bn, torn(bn, 30, 3))
    theta = problem.parameters({n: bn[n] for n in bn})
    again = problem.cpds(problem.from_vector(problem.vector(theta)))
    for name, cpd in again.items():
        for part in ("probs", "intercept", "coefficients", "variance"):
            if hasattr(cpd, part):
                np.testing.assert_allclose(getattr(cpd, part), getattr(bn[name], part), rtol=1e-12, atol=1e-12)


def test_a_start_may_have_its_parents_in_another_order() -> None:
    u, v = sf.Finite("u", ["a", "b"]), sf.Finite("v", ["c", "d", "e"])
    tables = {"u": [0.4, 0.6], "v": [0.2, 0.3, 0.5], "x": sf.Gaussian(), "z": sf.Gaussian()}
    numbers = np.arange(6.0).reshape(2, 3)
    y = sf.Gaussian(numbers, {"x": numbers + 1.0, "z": -numbers}, numbers + 2.0)
    turned = sf.Gaussian(numbers.T, {"z": -numbers.T, "x": numbers.T + 1.0}, numbers.T + 2.0)
    order, other = {"y": ["u", "x", "v", "z"]}, {"y": ["z", "v", "u", "x"]}
    one, two = sf.BayesNet(order, {**tables, "y": y}, [u, v]), sf.BayesNet(other, {**tables, "y": turned}, [u, v])
    problem = problem_for(one, torn(one, 40, 0))
    results = [problem.expect(problem.parameters({n: bn[n] for n in bn})).log_likelihood for bn in (one, two)]
    assert results[0] == pytest.approx(results[1], rel=1e-12)
    with pytest.raises(ModelError, match="no distribution of 'y' given 'u', 'x', 'v', 'z'"):
        problem.parameters({n: one[n] for n in one if n != "y"})


APPLES = [8.0, 6, 11, 22, 14, 17, 18, 24, 19, 23, 26, 40, 4, 4, 5, 6, 8, 10]
WORMS = [59.0, 58, 56, 53, 50, 45, 43, 42, 39, 38, 30, 27, *[None] * 6]
"""Size of apple crops and percentage of wormy fruits, six of them not known (Little & Rubin, Statistical Analysis with Missing
Data, from Snedecor & Cochran); the estimates are the closed form for a monotone pattern."""


@pytest.mark.parametrize("graph", ["x -> y", "y -> x"])
@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_apples(graph: str, shift: float) -> None:
    problem = problem_of(graph, {"x": [x + shift for x in APPLES], "y": WORMS})
    theta, trace = climbed(problem, problem.first(), 120)
    cpds = problem.cpds(theta)
    parent, child = (cpds[graph[0]], cpds[graph[-1]])
    b, v = float(child.coefficients[0]), float(parent.variance)
    means = {graph[0]: float(parent.intercept), graph[-1]: float(child.intercept) + b * float(parent.intercept)}
    variances = {graph[0]: v, graph[-1]: float(child.variance) + b * b * v}
    assert means["x"] - shift == pytest.approx(14.7222222, abs=1e-6)
    assert means["y"] == pytest.approx(49.3333333, abs=1e-6)
    assert variances["x"] == pytest.approx(89.5339506, rel=1e-7)
    assert variances["y"] == pytest.approx(114.6949551, rel=1e-7)
    assert b * v == pytest.approx(-90.6967292, rel=1e-7)
    assert trace[-1] == pytest.approx(-101.78563212782, abs=1e-9)


def test_a_shift_or_scale_of_columns_changes_nothing_else() -> None:
    bn = random_hybrid(9, n_finite=2, n_real=3)
    rows = torn(bn, 60, 9, share=0.2)
    moved = [{k: v if v is None or k[0] == "u" else 1e9 + v for k, v in row.items()} for row in rows]
    small = [{k: v if v is None or k[0] == "u" else 2.0**-40 * v for k, v in row.items()} for row in rows]
    traces = []
    for some in (rows, moved, small):
        problem = problem_for(bn, some, prior=(sf.Dirichlet(1), sf.NormalInverseGamma()))
        traces.append(climbed(problem, problem.first(), 30)[1])
    cells = sum(v is not None for row in rows for k, v in row.items() if k[0] == "x")
    np.testing.assert_allclose(np.diff(traces[1]), np.diff(traces[0]), atol=2e-5)
    np.testing.assert_allclose(np.diff(traces[2]), np.diff(traces[0]), atol=1e-9)
    assert traces[1][0] == pytest.approx(traces[0][0], abs=2e-5)
    assert cells > 0


def test_complete_rows_give_what_fit_gives() -> None:
    bn = random_hybrid(4, n_finite=2, n_real=3)
    data = table(bn.sample(400, seed=1).to_pylist(), bn.variables)
    problem = ParameterProblem.of(task_of(bn.dag, data))
    theta, trace = climbed(problem, problem.first(), 2)
    fitted = sf.fit(bn.dag, data)
    for name, cpd in problem.cpds(theta).items():
        for part in ("probs", "intercept", "coefficients", "variance"):
            if hasattr(cpd, part):
                np.testing.assert_allclose(getattr(cpd, part), getattr(fitted[name], part), rtol=1e-9, atol=1e-9)
    assert trace[-1] == pytest.approx(fitted.log_likelihood(), rel=1e-12)


def mixed(n: int, seed: int = 0) -> dict[str, Any]:
    """Two kinds of rows, apart in x and y."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(2, size=n)
    x, y = rng.normal(4.0 * kind), rng.normal(3.0 * kind + 1.0)
    return {"x": np.where(rng.random(n) < 0.1, np.nan, x), "y": np.where(rng.random(n) < 0.1, np.nan, y)}


CLASS = sf.Finite("class", ["a", "b"])


def test_rows_that_do_not_fit_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    data = mixed(40_000)
    kept = problem_of("class -> x; class -> y; x -> y", data, hidden=[CLASS], threads=1)
    monkeypatch.setattr("suffice.incomplete.numbers.mixed.HELD", 0)
    read = problem_of("class -> x; class -> y; x -> y", data, hidden=[CLASS], threads=2)
    assert kept.components.step.hold
    assert not read.components.step.hold
    assert sum(len(rows.weight) for rows in read.components.reduced.rows.values()) < 10
    theta = kept.random(np.random.default_rng(0))
    one, two = kept.expect(theta), read.expect(theta)
    assert one.log_likelihood == pytest.approx(two.log_likelihood, rel=1e-12)
    for a, b in zip(kept.statistics(one.statistic), read.statistics(two.statistic), strict=True):
        values = [getattr(s, "values", None) if hasattr(s, "values") else s.scatter for s in (a, b)]
        np.testing.assert_allclose(values[0], values[1], rtol=1e-10)


def test_results_do_not_depend_on_threads_nor_starts_on_more_than_the_seed() -> None:
    data = mixed(70_000)
    results = []
    for threads in (1, 2):
        problem = problem_of("class -> x; class -> y", data, hidden=[CLASS], threads=threads)
        results.append(climbed(problem, problem.random(np.random.default_rng(5)), 3))
    assert results[0][1] == results[1][1]
    np.testing.assert_array_equal(results[0][0].others["x"].intercept, results[1][0].others["x"].intercept)


def test_a_random_start_tells_classes_apart() -> None:
    problem = problem_of("class -> x; class -> y", mixed(200), hidden=[CLASS])
    theta = problem.random(np.random.default_rng(0))
    assert theta.others["x"].intercept[0] != theta.others["x"].intercept[1]
    best, _ = climbed(problem, theta, 60)
    np.testing.assert_allclose(np.sort(problem.cpds(best)["x"].intercept), [0.0, 4.0], atol=0.5)


def test_a_component_that_collapses_is_named() -> None:
    x = [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 5.0]
    problem = problem_of("class -> x", {"x": x}, hidden=[CLASS])
    cpds = problem.cpds(problem.first())
    start = replace(cpds["x"], intercept=[0.0, 2.0], variance=[1e-3, 2.0])
    with pytest.raises(Collapsed, match="'x' at class='a' has collapsed: its variance is falling to zero; use a prior") as caught:
        climbed(problem, problem.parameters({**cpds, "x": start}), 50)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.node, again.configuration, str(again)) == ("x", "class='a'", str(caught.value))
    safe = problem_of("class -> x", {"x": x}, hidden=[CLASS], prior=(sf.Dirichlet(1), sf.NormalInverseGamma()))
    climbed(safe, safe.parameters({**cpds, "x": start}), 50)


def test_collinear_parents_are_named() -> None:
    data = {"x": [1.0, 2, 3, 4, None], "z": [2.0, 4, 6, 8, 10], "y": [1.0, 0, 2, 1, 3]}
    problem = problem_of({"y": ["z", "x"], "x": ["z"]}, data)
    with pytest.raises(Collapsed, match=r"'x' has collapsed: its variance|'y' has collapsed: its parent 'x' is a linear"):
        climbed(problem, problem.first(), 50)


def test_a_class_without_rows_keeps_its_parameters() -> None:
    problem = problem_of("class -> x", {"x": [0.0, 1.0, 2.0, 4.0]}, hidden=[CLASS])
    cpds = problem.cpds(problem.first())
    start = {**cpds, "x": replace(cpds["x"], intercept=[1.5, 1e6], variance=[2.0, 1.0])}
    theta, trace = climbed(problem, problem.parameters(start), 3)
    after = problem.cpds(theta)["x"]
    assert after.intercept == pytest.approx([1.75, 1e6])
    assert after.variance == pytest.approx([2.1875, 1.0])
    assert np.all(np.diff(trace) >= 0.0)
    network = problem.network(theta, problem.expect(theta).statistic, "a test")
    assert network.incomplete
    assert np.isnan(network["x"].intercept[1])


def test_impossible_rows_are_named() -> None:
    u, v = sf.Finite("u", ["a", "b"]), sf.Finite("v", ["c", "d"])
    bn = sf.BayesNet("u -> v; u -> x", {"u": [0.5, 0.5], "v": [[1.0, 0.0], [0.5, 0.5]], "x": sf.Gaussian([0.0, 1.0])}, [u, v])
    certain = sf.BayesNet(
        "u -> v; u -> x", {"u": [1.0, 0.0], "v": [[1.0, 0.0], [0.5, 0.5]], "x": sf.Gaussian([0.0, 1.0])}, [u, v]
    )
    rows = [{"u": "b", "v": "d", "x": 0.5}, {"u": None, "v": "d", "x": 0.5}, {"u": "a", "v": "d", "x": 0.0}]
    problem = problem_for(bn, rows)
    with pytest.raises(FitError, match="row 3 is impossible under the parameters"):
        problem.expect(problem.parameters({n: bn[n] for n in bn}))
    problem = problem_for(bn, [{"u": "a", "v": "c", "x": 0.5}, *rows[1:]])
    with pytest.raises(FitError, match="row 2 is impossible under the parameters"):
        problem.expect(problem.parameters({n: certain[n] for n in certain}))


def test_rows_without_a_cell_and_rows_without_weight_say_nothing() -> None:
    bn = random_hybrid(2, n_finite=1, n_real=2)
    rows = torn(bn, 20, 2)
    nothing = dict.fromkeys(bn.variables)
    plain = problem_for(bn, rows)
    with pytest.warns(SufficeNote, match="rows have no observed cell"):
        more = problem_for(bn, [*rows, nothing, rows[0]], weights=[*[1.0] * 20, 3.0, 0.0])
    results = [p.expect(p.parameters({n: bn[n] for n in bn})).log_likelihood for p in (plain, more)]
    assert results[0] == pytest.approx(results[1], rel=1e-12)


def test_too_many_states_together_are_refused_by_name() -> None:
    names = [f"h{i}" for i in range(17)]
    graph = "; ".join(f"{n} -> x" for n in names[:1]) + "; " + "; ".join(f"{a} -> {b}" for a, b in pairwise(names))
    data = {"x": np.arange(4.0)} | {names[-1]: ["a", "b", "a", "b"]}
    hidden = {n: ["a", "b"] for n in names[:-1]}
    problem_of(graph, data, hidden=hidden)
    with pytest.raises(TooLarge, match=r"'h0', 'h1'.* have 131,072 joint states"):
        problem_of(graph + "; h99 -> h0", data, hidden={**hidden, "h99": ["a", "b"]})


def test_an_unseen_row_of_a_large_network_is_no_hindrance() -> None:
    names = [f"u{i}" for i in range(20)]
    graph = "; ".join(f"{a} -> {b}" for a, b in pairwise(names)) + "; u0 -> x"
    data = {n: ["a", "b", None] for n in names} | {"x": [1.0, 2.0, None]}
    problem = problem_of(graph, data)
    assert np.isfinite(problem.expect(problem.first()).log_likelihood)


def test_counts_beside_numbers() -> None:
    """A hidden class of counts and numbers against brute force; a missing count is summed out."""
    rates, means = np.array([2.0, 9.0]), np.array([-1.0, 1.5])
    n, x = [3.0, 0.0, None, 12.0, None], [0.5, None, -2.0, 3.0, None]
    data = sf.scan({"n": n, "x": x}, variables={"n": sf.Count("n"), "x": sf.Real("x")})
    problem = problem_of("class -> n; class -> x", data, hidden=[CLASS])
    start = sf.BayesNet("class -> x", {"class": [0.3, 0.7], "x": sf.Gaussian(means)}, [CLASS])
    cpds = {"class": start["class"], "x": start["x"], "n": PoissonRates(sf.Count("n"), (CLASS,), rates)}
    expected = problem.expect(problem.parameters(cpds))
    parts = np.log([0.3, 0.7]) + np.zeros((5, 2))
    for i in range(5):
        parts[i] += 0.0 if n[i] is None else poisson.logpmf(n[i], rates)
        parts[i] += 0.0 if x[i] is None else norm.logpdf(x[i], means)
    assert expected.log_likelihood == pytest.approx(logsumexp(parts, axis=1).sum(), rel=1e-12)
    r = np.exp(parts - logsumexp(parts, axis=1)[:, None])
    seen = [i for i in range(5) if n[i] is not None]
    after = problem.cpds(problem.maximise(expected.statistic))["n"]
    np.testing.assert_allclose(after.rates, [r[seen, k] @ [n[i] for i in seen] / r[seen, k].sum() for k in (0, 1)], rtol=1e-12)


@pytest.mark.parametrize("estimate", [Mean(), Mode()])
def test_counts_with_a_prior_never_fall(estimate: Any) -> None:
    rng = np.random.default_rng(0)
    data = sf.scan({"n": rng.poisson(rng.choice([2.0, 9.0], 60)).astype(float)}, variables={"n": sf.Count("n")})
    problem = problem_of("class -> n", data, hidden=[CLASS], prior=(sf.Dirichlet(2), Gamma(2.0)), estimate=estimate)
    _, trace = climbed(problem, problem.random(rng), 30)
    assert np.all(np.diff(trace) > -1e-9)


def test_an_iterative_family_climbs_with_the_others() -> None:
    """A logistic node with missing states, between numbers: generalised EM."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=120)
    y = np.where(rng.random(120) < 1.0 / (1.0 + np.exp(-1.0 - 2.0 * x)), "yes", "no").astype(object)
    z = np.where(y == "yes", 1.0, -1.0) + rng.normal(size=120)
    y[:40], z[30:60] = None, np.nan
    data = {"x": x, "y": y, "z": z}
    problem = problem_of("x -> y; y -> z", data, families={"y": Logistic()})
    theta, trace = climbed(problem, problem.first(), 40)
    assert np.all(np.diff(trace) > -1e-9)
    assert theta.others["y"].coefficients[0, 0] > 1.0
    with pytest.warns(SufficeNote, match="missing numbers under regressions are integrated by adaptive Gauss-Hermite.*: 'x'"):
        problem_of("x -> y; y -> z", {**data, "x": np.where(x > 2.0, np.nan, x)}, families={"y": Logistic()})


def test_a_prior_is_bound_to_the_observed_cells() -> None:
    problem = problem_of("class -> x", {"x": [1.0, 3.0, None]}, hidden=[CLASS], prior=(sf.Dirichlet(1), sf.NormalInverseGamma()))
    assert problem.prior.priors[1].mean == {"x": 2.0}
    assert problem.prior.priors[1].variance == {"x": 1.0}
    with pytest.warns(SufficeNote, match="the prior says nothing about 'x'"):
        problem_of("class -> x", {"x": [1.0, 3.0, None]}, hidden=[CLASS], prior=sf.Dirichlet(1))


def test_a_start_may_lack_parameters_somewhere() -> None:
    data = {"u": ["a", "b", "b", None, "b", "a"], "x": [1.0, 2.0, 4.0, 8.0, None, 1.0]}
    problem = problem_of("u -> x", data)
    start = problem.cpds(problem.first())
    start["x"] = replace(start["x"], intercept=[np.nan, 1.0], variance=[np.nan, 2.0])
    theta = problem.parameters(start)
    assert np.isfinite(theta.others["x"].variance).all()
    assert np.isfinite(problem.expect(theta).log_likelihood)


@pytest.mark.parametrize("prior", [None, (sf.Dirichlet(1.5), sf.NormalInverseGamma())])
def test_incremental_em_reaches_the_same_optimum(prior: Any) -> None:
    rng = np.random.default_rng(5)
    group = rng.integers(0, 2, 300)
    x = rng.normal(3.0 * group, 1.0)
    rows = {"x": x, "y": np.where(rng.random(300) < 0.1, np.nan, x + rng.normal(0, 0.5, 300))}
    asked: dict[str, Any] = {"hidden": {"h": ["a", "b"]}, "prior": prior, "starts": 1, "tol": 1e-10, "max_iter": 5000}
    plain = sf.em("h -> x -> y", rows, **asked)
    parts = sf.em("h -> x -> y", rows, method=sf.methods.Incremental(6), **asked)
    assert parts.objective == pytest.approx(plain.objective, abs=1e-6)
    assert parts.n_iterations < plain.n_iterations
    objective = np.array([t.objective for t in parts.trace])
    assert (np.diff(objective) >= -1e-9 * (1 + np.abs(objective[1:]))).all()


def test_acceleration_of_collapsing_gaussians_does_not_crash() -> None:
    """A start that collapses is reported, accelerated or not; an extrapolated point near a collapse is not trusted."""
    for seed in (11, 18):
        rng = np.random.default_rng(seed)
        rows = {k: rng.normal(size=25) for k in "xyz"}
        for column in rows.values():
            column[rng.random(25) < 0.2] = np.nan
        hidden = [sf.Finite("h", ["0", "1", "2"])]
        try:
            run = sf.em("h->x; h->y; h->z; x->y; x->z", rows, hidden=hidden, starts=3, method=sf.methods.Squarem())
        except sf.SufficeError:  # every start collapsed
            continue
        assert np.isfinite(run.objective)


@pytest.mark.parametrize(("mean", "sd"), [(1e9, 1.0), (1e9, 1e-3), (1e12, 1.0)])
def test_standard_errors_of_columns_far_from_zero(mean: float, sd: float) -> None:
    """Shifted and scaled by powers of two the data is the same, and so are fractions of missing information."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=300)
    y = 2 * x + 1 + 0.3 * rng.normal(size=300)
    x[rng.random(300) < 0.25], y[rng.random(300) < 0.25] = np.nan, np.nan
    scale, shift = 2.0 ** np.round(np.log2(sd)), float(2 ** np.round(np.log2(mean)))
    x, y = (np.round(column * 2**10) / 2**10 for column in (x, y))
    plain = sf.em("x -> y", {"x": x, "y": y}, tol=1e-9)
    far = sf.em("x -> y", {"x": x * scale + shift, "y": y * scale + shift}, tol=1e-9)
    a, b = plain.information(), far.information()
    np.testing.assert_allclose(b.standard_errors["y"]["coefficients"], a.standard_errors["y"]["coefficients"], rtol=1e-6)
    np.testing.assert_allclose(b.standard_errors["y"]["variance"] / scale**2, a.standard_errors["y"]["variance"], rtol=1e-6)
    np.testing.assert_allclose(b.missing_information["y"]["coefficients"], a.missing_information["y"]["coefficients"], atol=1e-6)
    kept = sf.em("x -> y", {"x": x * scale + shift, "y": y * scale + shift}, start=far.model, fixed=["x"], tol=0, max_iter=20)
    assert kept.objective >= far.objective - 1e-3 * abs(far.objective)
    climbed = sf.gradient("x -> y", {"x": x * scale + shift, "y": y * scale + shift})
    np.testing.assert_allclose(climbed.model["y"].coefficients, plain.model["y"].coefficients, rtol=1e-5)


@pytest.mark.parametrize("n", [3_000, 20_000, 30_000])
def test_the_default_prior_of_a_constant_column_with_a_gap(n: int) -> None:
    """The rounding of a mean is no variance to take a prior's default from."""
    with_gap, without = (sf.scan({"x": [1.0] * n + more}, integers=sf.Real) for more in ([None], []))
    variance = sf.fit("x", without, prior=sf.NormalInverseGamma())["x"].variance
    np.testing.assert_allclose(sf.fit("x", with_gap, prior=sf.NormalInverseGamma())["x"].variance, variance, rtol=1e-6)
