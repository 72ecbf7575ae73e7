"""Sequences whose hidden or missing variables are numbers: the Nile, and laws against the joint normal of all steps."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.basis.variables import Finite, Real
from suffice.engines.sequences.sequences import sequences
from suffice.errors import FitError, ModelError, SufficeNote
from suffice.families.by_hand import Gaussian
from suffice.graphs.lagged import variable_and_lag
from suffice.graphs.template import Template
from suffice.incomplete.first_slices import Diffuse, Stationary
from suffice.incomplete.numbers.units import columns_below
from suffice.learning.chains.chain_problem import chain_problem_of
from suffice.learning.incomplete.climb import Squarem
from suffice.learning.incomplete.coordinates import Atlas
from suffice.models.chain import Chain
from suffice.models.chains.chain_reading import ChainReading
from suffice.models.chains.linear_answers import draw_numbers, settled_numbers

NILE = np.array(
    [
        *(1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140),
        *(1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969),
        *(831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759),
        *(781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890),
        *(744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740),
    ],
    float,
)
LEVEL = "level[-1] -> level -> y"
LINE = ["intercept", "coefficients"]


def local_level(noise: float, step: float, first: Any = None) -> Chain:
    own = {"level": Gaussian(0.0, {"level[-1]": 1.0}, step), "y": Gaussian(0.0, {"level": 1.0}, noise)}
    return Chain(LEVEL, own if first is not None else {**own, "level[0]": Gaussian(1000.0, {}, 1e6)}, first=first)


nile = sequences({"y": NILE})


def test_nile() -> None:
    chain = local_level(15099.0, 1469.1)
    np.testing.assert_allclose(chain.log_prob(nile), [-640.3805408207], rtol=1e-12)
    found = chain.smooth(nile, interval=0.9)
    np.testing.assert_allclose(found["level"][[0, 27, 99]], [1111.21986307, 999.58511667, 798.37029261], rtol=1e-11)
    variances = [4015.96493689, 2326.75695726, 4032.15794181]
    np.testing.assert_allclose(found["level_sd"][[0, 27, 99]] ** 2, variances, rtol=1e-11)
    np.testing.assert_allclose(found["level_upper"] - found["level"], 1.6448536269514722 * found["level_sd"], rtol=1e-12)
    ahead = chain.forecast(nile, steps=1)
    np.testing.assert_allclose([ahead["y"][0], ahead["y_sd"][0] ** 2], [798.37029261, 20600.2579418], rtol=1e-11)


def test_nile_with_gaps() -> None:
    chain, y = local_level(15099.0, 1469.1), NILE.copy()
    y[20:40], y[60:80] = np.nan, np.nan
    gaps = sequences({"y": y})
    np.testing.assert_allclose(chain.log_prob(gaps), [-388.4219399199], rtol=1e-12)
    found = chain.smooth(gaps)
    np.testing.assert_allclose(found["level"][[29, 69]], [903.42000483, 837.17732317], rtol=1e-11)
    np.testing.assert_allclose(found["level_sd"][[29, 69]] ** 2, [9715.00580, 9715.00555], rtol=1e-9)
    np.testing.assert_allclose(found["y_sd"][29] ** 2, 9715.00580 + 15099.0, rtol=1e-9)
    assert found["y"][0] == 1120.0
    assert found["y_sd"][0] == 0.0


def test_nile_is_learned() -> None:
    fixed = {"level": LINE, "y": LINE, "level[0]": ["intercept", "variance"]}
    start = local_level(15099.0, 1469.1)
    run = sf.em(LEVEL, nile, hidden=[Real("level")], start=start, fixed=fixed, method=Squarem(), tol=1e-12)
    assert run.converged
    np.testing.assert_allclose(run.trace[-1].log_likelihood, -640.380540285, rtol=1e-12)
    np.testing.assert_allclose([run.model["y"].variance, run.model["level"].variance], [15100.28, 1467.82], atol=0.01)
    assert run.model["level"].coefficients.tolist() == [1.0]
    assert run.model["level"].intercept == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("far", [0.0, 1e9])
def test_nile_begins_anywhere(far: float) -> None:
    data = sequences({"y": NILE + far})
    start, fixed = local_level(1e4, 1e3, Diffuse()), {"level": LINE, "y": LINE}
    how: dict[str, Any] = {"accelerate": Squarem(), "tol": 1e-12}
    run = sf.em(LEVEL, data, hidden=[Real("level")], start=start, fixed=fixed, first=Diffuse(), **how)
    np.testing.assert_allclose(run.trace[-1].log_likelihood, -633.46456364, rtol=1e-11)
    np.testing.assert_allclose(run.model.log_likelihood(data), -633.46456364, rtol=1e-11)
    np.testing.assert_allclose([run.model["y"].variance, run.model["level"].variance], [15098.52, 1469.18], atol=0.01)
    assert "level[0]" not in run.model


def test_the_level_is_found_from_any_start() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeNote)
        run = sf.em(LEVEL, nile, hidden=[Real("level")], first=Stationary(), starts=3, method=Squarem(), max_iter=400, tol=1e-7)
    ended = [o.objective for o in run.optima]
    assert max(ended) - min(ended) < 1e-2
    assert run.model.log_likelihood(nile) == pytest.approx(run.trace[-1].log_likelihood, rel=1e-10)


TEMPLATES: dict[str, tuple[str, dict[str, list[str]], set[str], set[str]]] = {
    # template, finite variables, hidden, with gaps
    "level": (LEVEL, {}, {"level"}, {"y"}),
    "autoregression": ("x[-1] -> x", {}, set(), {"x"}),
    "second order": ("x[-2], x[-1] -> x -> y", {}, set(), {"x", "y"}),
    "vectors": ("a[-1], b[-1] -> a; a, a[-1], b[-1] -> b", {}, set(), {"a", "b"}),
    "input": ("level[-1], u -> level -> y <- u", {}, {"level"}, {"y"}),
    "missing input": ("x[-1], u -> x; u", {}, set(), {"x", "u"}),
    "configurations": ("c -> level; level[-1] -> level -> y <- c", {"c": ["p", "q"]}, {"level"}, {"y"}),
    "between": ("level[-1] -> level -> x -> y", {}, {"level"}, {"x", "y"}),
    "two children": ("level[-1] -> level -> y <- level[-2]; level -> w", {}, {"level"}, {"y", "w"}),
    "trend": ("trend[-1] -> trend -> level; level[-1] -> level -> y", {}, {"trend", "level"}, {"y"}),
    "late output": ("level[-1] -> level; level[-1] -> y; v; v -> w", {}, {"level"}, {"y", "w"}),
    "own memory": ("level[-1] -> level -> y <- y[-1]", {}, {"level"}, {"y"}),
}


def drawn_chain(rng: np.random.Generator, template: str, finite: dict[str, list[str]]) -> Chain:
    """A chain of this template with any numbers."""
    graph = Template(template)
    variables: list[Any] = [Finite(n, s) if (s := finite.get(n)) else Real(n) for n in graph.nodes]
    cpds: dict[str, Any] = {}
    nodes = {n: graph.parents(n) for n in graph.nodes}
    nodes |= {graph.parameter_name(n, t): graph.parents_at(n, t) for n, t in graph.first_nodes}
    for key, parents in nodes.items():
        if key in finite:
            cpds[key] = rng.dirichlet(np.ones(len(finite[key])))
            continue
        shape = tuple(len(finite[p]) for p in parents if p in finite)
        b = {p: 0.5 * rng.standard_normal(shape) for p in parents if p not in finite}
        cpds[key] = Gaussian(rng.standard_normal(shape), b, rng.uniform(0.2, 2.0, shape))
    return Chain(template, cpds, variables=variables)


def drawn_rows(rng: np.random.Generator, chain: Chain, hidden: set[str], gaps: set[str], lengths: list[int]) -> dict[str, Any]:
    n = sum(lengths)
    rows: dict[str, Any] = {"id": np.repeat(np.arange(len(lengths)), lengths)}
    for name, v in chain.variables.items():
        if name in hidden:
            continue
        if isinstance(v, Finite):
            rows[name] = rng.choice(v.states, n)
        else:
            rows[name] = np.where((rng.random(n) < 0.3) & (name in gaps), np.nan, 3.0 * rng.standard_normal(n))
    return rows


class Joint:
    """The joint normal of all numbers of one sequence, and what it says given some of them."""

    def __init__(self, chain: Chain, rows: dict[str, Any], some: slice) -> None:
        graph, T = chain.template, some.stop - some.start
        reals = [n for n in graph.topological_order if not isinstance(chain.variables[n], Finite)]
        self.at = {(n, t): i for i, (t, n) in enumerate((t, n) for t in range(T) for n in reals)}
        B, a, v = np.zeros((len(self.at),) * 2), np.zeros(len(self.at)), np.zeros(len(self.at))
        self.log_states = 0.0
        for t in range(T):
            for name, variable in chain.variables.items():
                cpd: Any = chain[graph.parameter_name(name, t)]
                if isinstance(variable, Finite):
                    self.log_states += np.log(cpd.probs[variable.states.index(rows[name][some][t])])
                    continue
                u = tuple(
                    chain.variables[p].states.index(rows[p][some][t]) for p in cpd.parents if p in rows and self._finite(chain, p)
                )
                i = self.at[name, t]
                a[i], v[i] = cpd.intercept[u], cpd.variance[u]
                for p, b in zip(cpd.real_parents, cpd.coefficients[u], strict=True):
                    base, k = variable_and_lag(p)
                    B[i, self.at[base, t - k]] = b
        S = np.linalg.inv(np.eye(len(a)) - B)
        self.mean, self.covariance = S @ a, (S * v) @ S.T
        self.values = np.full(len(a), np.nan)
        for (n, t), i in self.at.items():
            if n in rows:
                self.values[i] = rows[n][some][t]

    @staticmethod
    def _finite(chain: Chain, name: str) -> bool:
        return isinstance(chain.variables.get(name), Finite)

    def given(self, until: int | None = None) -> tuple[Any, Any, float]:
        """Mean and covariance of all, given what is seen up to a step; ln p of that."""
        allowed = np.array([until is None or t <= until for _, t in self.at])
        o = np.flatnonzero(~np.isnan(self.values) & allowed)
        C = self.covariance[np.ix_(o, o)]
        off = self.values[o] - self.mean[o]
        gain = np.linalg.solve(C, self.covariance[o]).T
        logs = -0.5 * (len(o) * np.log(2 * np.pi) + np.linalg.slogdet(C)[1] + off @ np.linalg.solve(C, off))
        return self.mean + gain @ off, self.covariance - gain @ self.covariance[o], float(logs) + self.log_states


def joints(chain: Chain, rows: dict[str, Any]) -> list[tuple[Joint, slice]]:
    ends = np.cumsum(np.bincount(rows["id"]))
    return [
        (Joint(chain, rows, slice(int(a), int(b))), slice(int(a), int(b))) for a, b in zip([0, *ends[:-1]], ends, strict=True)
    ]


few = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
fewer = settings(few, max_examples=5)


@pytest.mark.parametrize("kind", TEMPLATES)
@few
@given(seed=st.integers(0, 10**6), lengths=st.lists(st.integers(1, 6), min_size=1, max_size=3))
def test_a_chain_is_the_joint_normal(kind: str, seed: int, lengths: list[int]) -> None:
    template, finite, hidden, gaps = TEMPLATES[kind]
    rng = np.random.default_rng(seed)
    chain = drawn_chain(rng, template, finite)
    rows = drawn_rows(rng, chain, hidden, gaps, lengths)
    data = sequences(rows, by="id")
    all_of_them = joints(chain, rows)
    np.testing.assert_allclose(chain.log_prob(data), [j.given()[2] for j, _ in all_of_them], rtol=1e-9, atol=1e-9)
    lost = [n for n in chain.variables if n in hidden or (n in gaps and np.isnan(rows[n]).any())]
    if not lost:
        return
    smooth, forward = chain.smooth(data), chain.filter(data)
    for j, some in all_of_them:
        mean, C, _ = j.given()
        for name in lost:
            i = [j.at[name, t] for t in range(some.stop - some.start)]
            np.testing.assert_allclose(smooth[name][some], mean[i], rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(smooth[f"{name}_sd"][some], np.sqrt(np.maximum(np.diag(C)[i], 0)), rtol=1e-6, atol=2e-7)
            for t in range(some.stop - some.start):
                now, spread, _ = j.given(t)
                assert forward[name][some][t] == pytest.approx(now[i[t]], rel=1e-8, abs=1e-8)
                assert forward[f"{name}_sd"][some][t] == pytest.approx(np.sqrt(max(spread[i[t], i[t]], 0)), rel=1e-6, abs=2e-7)


@pytest.mark.parametrize("kind", TEMPLATES)
@few
@given(seed=st.integers(0, 10**6), lengths=st.lists(st.integers(1, 6), min_size=2, max_size=3))
def test_expected_statistics(kind: str, seed: int, lengths: list[int]) -> None:
    """Σ E[x xᵀ] of each node, over the steps that share it, against the joint normal; ln p in the units of the columns."""
    template, finite, hidden, gaps = TEMPLATES[kind]
    rng = np.random.default_rng(seed)
    chain = drawn_chain(rng, template, finite)
    rows = drawn_rows(rng, chain, hidden, gaps, lengths)
    if any(np.isnan(rows[n]).all() or np.nanstd(rows[n]) == 0 for n in gaps):
        return
    problem = _problem(chain, rows, hidden)
    found = problem.expect(problem.parameters({n: chain[n] for n in chain}))
    answers = [(j.given(), j, some) for j, some in joints(chain, rows)]
    assert found.log_likelihood == pytest.approx(sum(a[2] for a, _, _ in answers), rel=1e-9, abs=1e-9)
    statistics = problem.statistics(found.statistic)
    for key in chain:
        cpd: Any = chain[key]
        if isinstance(cpd.child, Finite):
            continue
        wanted = _second_moments(chain, rows, key, answers)
        moments = statistics.answer(cpd.family.needs(cpd.child, cpd.parent_variables))
        for g, k in enumerate(moments.keys):
            mine = np.zeros((len(moments.reals) + 1,) * 2)
            m = np.append(1.0, moments.mean[g])
            mine[1:, 1:] = moments.scatter[g]
            mine += moments.count[g] * np.outer(m, m)
            np.testing.assert_allclose(mine, wanted.pop(int(k), np.zeros_like(mine)), rtol=1e-7, atol=1e-7)
        assert not wanted


def _problem(chain: Chain, rows: dict[str, Any], hidden: set[str], **how: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeNote)
        declared = [chain.variables[n] for n in sorted(hidden)]
        variables = {n: v for n, v in chain.variables.items() if n in rows}
        return chain_problem_of(chain.template, sequences(rows, by="id", variables=variables), hidden=declared, **how)


def _second_moments(chain: Chain, rows: dict[str, Any], key: str, answers: Any) -> dict[int, Any]:
    result: dict[int, Any] = {}
    for (mean, C, _), j, some in answers:
        for t in range(some.stop - some.start):
            for name in chain.variables:
                if chain.template.parameter_name(name, t) != key:
                    continue
                cpd: Any = chain[key]
                places = [j.at[b, t - k] for b, k in map(variable_and_lag, cpd.real_parents)] + [j.at[name, t]]
                u = 0
                for p in cpd.finite_parents:
                    u = u * p.n_states + p.states.index(rows[p.name][some][t])
                x = np.append(1.0, mean[places])
                own = np.outer(x, x)
                own[1:, 1:] += C[np.ix_(places, places)]
                result[u] = result.get(u, 0.0) + own
    return result


@pytest.mark.parametrize("first", [None, Stationary(), Diffuse()])
@pytest.mark.parametrize("kind", ["level", "autoregression", "second order", "vectors", "trend"])
def test_the_gradient_is_that_of_the_likelihood(kind: str, first: Any) -> None:
    template, finite, hidden, gaps = TEMPLATES[kind]
    if kind == "trend" and isinstance(first, Diffuse):
        template = "trend[-1] -> trend; level[-1], trend[-1] -> level; level -> y"
    rng = np.random.default_rng(4)
    chain = drawn_chain(rng, template, finite)
    rows = drawn_rows(rng, chain, hidden, gaps, [9, 12, 7])
    problem = _problem(chain, rows, hidden, first=first).scaled
    theta = problem.random(rng) if hidden else problem.first()
    found = problem.expect(theta)
    atlas = Atlas.around(problem, theta, found.statistic)
    x, step = atlas.vector(theta), 1e-5
    slope = atlas.scores(problem.cpds(theta), found.statistic)
    for i in range(len(x)):
        ends = []
        for sign in (1.0, -1.0):
            moved = x.copy()
            moved[i] += sign * step
            ends.append(problem.expect(problem.parameters(atlas.cpds(moved))).log_likelihood)
        assert slope[i] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("first", [None, Stationary(), Diffuse()])
@pytest.mark.parametrize("kind", ["level", "autoregression", "vectors", "between"])
@fewer
@given(seed=st.integers(0, 10**6))
def test_em_never_falls(kind: str, first: Any, seed: int) -> None:
    """`em` itself refuses to fall; and the chain it gives has the likelihood it says."""
    template, finite, hidden, gaps = TEMPLATES[kind]
    if kind == "between" and isinstance(first, Diffuse):
        return
    rng = np.random.default_rng(seed)
    chain = drawn_chain(rng, template, finite)
    rows = drawn_rows(rng, chain, hidden, gaps, [8, 8, 8, 8])
    rows = {n: c + 1e6 if n != "id" else c for n, c in rows.items()}
    if isinstance(first, Diffuse):  # where the first cells are missing, its likelihood has no bound: see Diffuse
        rows = {n: c if n == "id" else np.where(np.arange(32) % 8 == 0, 1e6 + np.arange(32.0) % 5, c) for n, c in rows.items()}
    data = sequences(rows, by="id")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeNote)
        run = sf.em(template, data, hidden=[Real(n) for n in sorted(hidden)], first=first, starts=1, max_iter=8, tol=0, seed=seed)
        likelihoods = [t.log_likelihood for t in run.trace]
        assert all(b >= a - 1e-8 for a, b in pairwise(likelihoods))
        assert run.model.log_likelihood(data) == pytest.approx(likelihoods[-1], rel=1e-7)


def test_all_shown_is_fit() -> None:
    rng = np.random.default_rng(3)
    chain = drawn_chain(rng, *TEMPLATES["vectors"][:2])
    rows = drawn_rows(rng, chain, set(), set(), [30] * 8)
    data = sequences(rows, by="id")
    whole = sf.fit(chain.template, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeNote)
        run = sf.em(chain.template, data, hidden=[Real("a"), Real("b")], start=whole, tol=1e-12)
    assert len(run.trace) <= 2
    for name in whole:
        for part in ("intercept", "coefficients", "variance"):
            np.testing.assert_allclose(getattr(run.model[name], part), getattr(whole[name], part), rtol=1e-9, atol=1e-10)


def test_weights_are_repeats_and_sequences_add() -> None:
    rng = np.random.default_rng(5)
    chain = drawn_chain(rng, *TEMPLATES["second order"][:2])
    rows = drawn_rows(rng, chain, set(), {"x", "y"}, [6, 4, 5])
    logs = []
    for ids in ([0, 1, 2], [0], [1, 2]):
        some = np.isin(rows["id"], ids)
        logs.append(chain.log_likelihood(sequences({n: c[some] for n, c in rows.items()}, by="id")))
    assert logs[0] == pytest.approx(logs[1] + logs[2], rel=1e-12)
    twice = {n: np.concatenate([c, c if n != "id" else c + 3]) for n, c in rows.items()}
    one, two = _problem(chain, {**rows}, set()), _problem(chain, twice, set())
    theta = {n: chain[n] for n in chain}
    a, b = (p.expect(p.parameters(theta)).log_likelihood for p in (one, two))
    assert b == pytest.approx(2 * a, rel=1e-12)


def test_draws_have_the_posterior() -> None:
    chain, y = local_level(2.0, 1.0), 1000.0 + np.array([0.0, 1.0, np.nan, np.nan, 2.0])
    reading = ChainReading.of(chain, sequences({"y": np.tile(y, 200), "id": np.repeat(np.arange(200), 5)}, by="id"))
    rng = np.random.default_rng(0)
    [block] = list(reading.map(lambda b: b, ""))
    drawn = [draw_numbers(reading, block, rng) for _ in range(20)]
    found = chain.smooth(sequences({"y": y}))
    for name in ("level", "y"):
        values = np.array([d[name] for d in drawn]).reshape(4000, 5)
        np.testing.assert_allclose(values.mean(axis=0), found[name], atol=0.12)
        np.testing.assert_allclose(values.std(axis=0), found[f"{name}_sd"], rtol=0.06)
    assert all(d["y"][0] == 1000.0 for d in drawn)


def test_what_is_not_said_where_numbers_begin_anywhere() -> None:
    line = {"trend": Gaussian(0.0, {"trend[-1]": 1.0}), "y": Gaussian(0.0, {"level": 1.0})}
    level = Gaussian(0.0, {"level[-1]": 1.0, "trend[-1]": 1.0})
    chain = Chain("trend[-1] -> trend; level[-1], trend[-1] -> level -> y", {**line, "level": level}, first=Diffuse())
    nan = np.nan
    data = sequences({"id": [0] * 3 + [1] * 3 + [2] * 3, "y": [1, 2, 3, nan, nan, nan, 1, nan, nan]}, by="id")
    found = chain.smooth(data)
    assert np.isfinite(found["trend_sd"]).tolist() == [True] * 3 + [False] * 6
    assert np.isfinite(found["level_sd"]).tolist() == [True] * 3 + [False] * 3 + [True, False, False]
    assert np.isnan(found["y"]).tolist() == [False] * 3 + [True] * 3 + [False, True, True]
    hidden = [Real("trend"), Real("level")]
    with pytest.raises(FitError, match="too little to say where 'level', 'trend' begin"):
        sf.em(chain.template, data, hidden=hidden, start=chain, first=Diffuse())


def test_what_numbers_settle_to() -> None:
    chain = Chain("x[-2], x[-1] -> x", {
        "x": Gaussian(1.0, {"x[-2]": -0.3, "x[-1]": 0.9}, 2.0),
        "x[0]": Gaussian(), "x[1]": Gaussian(0.0, {"x[-1]": 0.5}),
    })  # fmt: skip
    names, mean, covariance = settled_numbers(chain)
    assert names == ("x", "x[-1]")
    np.testing.assert_allclose(mean, [2.5, 2.5])
    rho = 0.9 / 1.3
    variance = 2.0 / (1.0 - 0.9 * rho + 0.3 * (0.9 * rho - 0.3))
    np.testing.assert_allclose(covariance, variance * np.array([[1.0, rho], [rho, 1.0]]), rtol=1e-12)


def test_stationary_is_a_first_slice_that_has_settled() -> None:
    x = np.random.default_rng(1).standard_normal(20)
    x[[0, 4, 5]] = np.nan
    line = {"x": Gaussian(1.0, {"x[-1]": 0.8}, 2.0)}
    settled = Chain("x[-1] -> x", line, first=Stationary())
    free = Chain("x[-1] -> x", {**line, "x[0]": Gaussian(5.0, {}, 2.0 / 0.36)})
    data = sequences({"x": x})
    np.testing.assert_allclose(settled.log_prob(data), free.log_prob(data), rtol=1e-12)


def test_single_entries_are_the_exact_maximisers() -> None:
    """Whatever is held, no other value of what is free is better: the gradient vanishes there, and only there."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal(60) + 4.0
    u = rng.standard_normal(60) + 7.0
    y = 2.0 + 0.5 * x - u + rng.standard_normal(60)
    y[::7] = np.nan
    start = sf.BayesNet("x, u -> y", {"x": Gaussian(4.0), "u": Gaussian(7.0), "y": Gaussian(1.0, {"x": 0.7, "u": -0.8}, 2.0)})
    seen = ~np.isnan(y)
    for names in (["intercept"], ["coefficients"], ["x"], ["intercept", "u"], ["variance"], ["x", "variance"]):
        run = sf.em("x, u -> y", {"x": x, "u": u, "y": y}, start=start, fixed={"y": names}, tol=1e-13, max_iter=2000)
        cpd = run.model["y"]
        held = {"x": "x" in names or "coefficients" in names, "u": "u" in names or "coefficients" in names}
        target, columns = y[seen].copy(), []
        for name, column, b in (("x", x, 0.7), ("u", u, -0.8)):
            if held[name]:
                target -= b * column[seen]
            else:
                columns.append(column[seen])
        if "intercept" in names:
            target -= 1.0
        else:
            columns.append(np.ones(seen.sum()))
        A = np.array(columns).T.reshape(seen.sum(), -1)
        best = np.linalg.lstsq(A, target, rcond=None)[0] if A.size else np.zeros(0)
        off = target - A @ best
        mine = [b for n, b in zip(("x", "u"), cpd.coefficients, strict=True) if not held[n]]
        mine += [] if "intercept" in names else [float(cpd.intercept)]
        np.testing.assert_allclose(mine, best, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(cpd.variance, 2.0 if "variance" in names else (off**2).mean(), rtol=1e-5)
        if "intercept" in names:
            assert float(cpd.intercept) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sf.em(LEVEL, nile, hidden=[Real("level")], start=local_level(1.0, 1.0), fixed={"level": ["slope"]}), "no entry"),
        (lambda: sf.em(LEVEL, nile, hidden=[Real("level")], start=local_level(1.0, 1.0), fixed={"lvl": ["variance"]}), "'lvl'"),
        (lambda: sf.em(LEVEL, nile, hidden=[Real("level")], fixed={"level": ["variance"]}), "start"),
        (lambda: sf.em("y[-1] -> y", nile, first=Diffuse()), "there are none"),
        (lambda: sf.em("y[-1] -> y", sequences({"y": np.where(NILE == 456, np.nan, NILE)})), "first=Diffuse"),
        (
            lambda: sf.em(
                "level[-1] -> level -> x -> y", sequences({"y": NILE}), hidden=[Real("level"), Real("x")], first=Diffuse()
            ),
            "'x', unknown too",
        ),
        (
            lambda: sf.em("c[-1] -> c; h[-1] -> h; c, h -> y", nile, hidden=[Finite("c", ["p", "q"]), Real("h")]),
            "switching",
        ),
        (
            lambda: sf.em(
                "h[-1] -> h -> c", sequences({"c": ["p", "q", "q"]}), hidden=[Real("h")], families={"c": sf.Logistic()}
            ),
            "not Gaussian",
        ),
        (lambda: local_level(1.0, 1.0, Stationary()).log_prob(nile), "eigenvalue is 1 in size"),
        (
            lambda: sf.em("u, h[-1] -> h -> y", sequences({"y": NILE, "u": NILE}), hidden=[Real("h")], first=Stationary()),
            "input 'u'",
        ),
    ],
)
def test_refusals(call: Any, words: str) -> None:
    with pytest.raises((FitError, ModelError), match=words):
        call()


def test_hidden_numbers_are_measured_like_the_nearest_column_below() -> None:
    below = columns_below(Template("trend[-1] -> trend; trend[-1] -> level; level -> y"), ["trend", "level"], ["y"])
    assert below == {"trend": "y", "level": "y"}
