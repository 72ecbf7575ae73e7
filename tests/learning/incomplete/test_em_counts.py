"""Missing counts that have children: summed, against enumeration; what EM, structural EM and answers about rows make of them."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import suffice as sf
from suffice import Count, Finite
from suffice.errors import SufficeNote
from suffice.families.by_hand import Regression
from suffice.incomplete.expectations import IncompleteRows

pytestmark = pytest.mark.filterwarnings("ignore::suffice.errors.SufficeNote")

U, S = Finite("u", ["a", "b"]), Finite("s", ["no", "yes"])
GRAPH = "u -> c; c -> y; c -> d; u -> d; c -> s; d -> s; y -> s"
FAMILIES = {"d": sf.regressions.PoissonLog(), "s": sf.Logistic()}
COUNTED = {"c": Count("c"), "d": Count("d")}
MANY = 70
"""Values of a count that are enumerated."""


def network(rates: Any = (1.0, 4.0), slope: float = 0.5, growth: float = 0.15, effect: float = 0.6) -> sf.BayesNet:
    """u -> c -> y, d, s: counts above a number, a count and a state, of which each has other parents, too."""
    cpds = {
        "u": [0.4, 0.6],
        "c": sf.regressions.Rates(list(rates)),
        "y": sf.Gaussian(0.5, {"c": slope}, variance=0.8),
        "d": Regression(sf.regressions.PoissonLog(), -0.2, {"c": growth, "u=b": 0.3}),
        "s": Regression(sf.Logistic(), [-0.5], {"c": [effect], "d": [-0.3], "y": [0.4]}),
    }
    return sf.BayesNet(GRAPH, cpds, [U, S])


def ways(row: dict[str, Any], lost: set[str], numbers: Any = ()) -> dict[str, Any]:
    """Every completion of a row, as columns of codes and numbers."""
    own: dict[str, Any] = {"u": range(2), "s": range(2), "c": range(MANY), "d": range(MANY), "y": numbers}
    each = list(product(*(own[n] if n in lost else [row[n]] for n in own)))
    columns = zip(own, np.array(each, dtype=float).T, strict=True)
    return {n: x.astype(int) if n in "us" else x for n, x in columns}


def enumerated(bn: sf.BayesNet, row: dict[str, Any], lost: set[str]) -> float:
    """ln p of what a row shows: missing states and counts are summed, a missing y on 61 Gauss-Hermite points of its own."""
    if "y" not in lost:
        columns = ways(row, lost)
        return float(np.logaddexp.reduce(sum(bn[n].log_prob(columns) for n in bn)))
    z, w = np.polynomial.hermite_e.hermegauss(61)
    columns = ways(row, lost, range(len(z)))
    point = columns["y"].astype(int)
    columns["y"] = float(bn["y"].intercept) + columns["c"] * bn["y"].coefficients[0] + np.sqrt(float(bn["y"].variance)) * z[point]
    logs = sum(bn[n].log_prob(columns) for n in bn if n != "y") + np.log(w / np.sqrt(2 * np.pi))[point]
    return float(np.logaddexp.reduce(logs))


def table_of(rows: list[dict[str, Any]], lost: list[set[str]]) -> dict[str, Any]:
    words = {"u": U.states, "s": S.states}
    cell = lambda n, x: words[n][int(x)] if n in words else float(x)  # noqa: E731
    return {n: [None if n in gone else cell(n, r[n]) for r, gone in zip(rows, lost, strict=True)] for n in "ucyds"}


ROWS = st.fixed_dictionaries(
    {
        "u": st.integers(0, 1),
        "s": st.integers(0, 1),
        "c": st.integers(0, 9),
        "d": st.integers(0, 9),
        "y": st.floats(-3.0, 8.0),
    }
)
GAPS = st.sets(st.sampled_from("ucds"))


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(ROWS, GAPS), min_size=1, max_size=4),
    st.tuples(st.floats(0.1, 6.0), st.floats(0.1, 6.0)),
    st.floats(-1.0, 1.0),
    st.floats(-0.3, 0.15),
    st.floats(-1.5, 1.5),
)
def test_ln_p_is_the_enumerated_one(cases: Any, rates: Any, slope: float, growth: float, effect: float) -> None:
    bn = network(rates, slope, growth, effect)
    rows, lost = [r for r, _ in cases], [gone for _, gone in cases]
    found = bn.log_prob(sf.scan(table_of(rows, lost), variables=bn.variables))
    np.testing.assert_allclose(found, [enumerated(bn, r, gone) for r, gone in cases], rtol=0, atol=1e-8)


def test_a_number_is_missing_besides() -> None:
    """y is integrated over points at each value of the counts."""
    bn, row = network(), {"u": 1, "s": 1, "c": 3, "d": 2, "y": 1.5}
    for lost in ({"y"}, {"c", "y"}, {"u", "c", "y"}, {"d", "y"}):
        found = bn.log_prob(sf.scan(table_of([row], [lost]), variables=bn.variables))
        np.testing.assert_allclose(found, enumerated(bn, row, lost), atol=2e-7)


def test_answers_about_rows_are_the_enumerated_ones() -> None:
    bn, row = network(), {"u": 1, "s": 1, "c": 3, "d": 2, "y": 2.5}
    for lost in ({"c"}, {"c", "d"}, {"u", "c", "s"}):
        rows = sf.scan(table_of([row], [lost]), variables=bn.variables)
        columns = ways(row, lost)
        logs = sum(bn[n].log_prob(columns) for n in bn)
        p = np.exp(logs - np.logaddexp.reduce(logs))
        for name in lost - {"c", "d"}:
            assert bn.predict_proba(rows, name).column(1).to_pylist() == pytest.approx([p @ (columns[name] == 1)], abs=1e-9)
        for name in lost & {"c", "d"}:
            mean = p @ columns[name]
            found = bn.predict_proba(rows, name)
            assert found["mean"].to_pylist() == pytest.approx([mean], rel=1e-9)
            assert found["variance"].to_pylist() == pytest.approx([p @ (columns[name] - mean) ** 2], rel=1e-9)
            assert bn.impute(rows)[name].to_pylist() == pytest.approx([mean], rel=1e-9)


def drawn(n: int = 300, lost: float = 0.2, seed: int = 4) -> tuple[Any, list[dict[str, Any]], list[set[str]]]:
    columns = network().sample(n, seed=seed)
    words = {"u": U.states, "s": S.states}
    cells = {m: [words[m].index(x) if m in words else x for x in columns[m].to_pylist()] for m in "ucyds"}
    rows = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
    rng = np.random.default_rng(seed)
    gone = [{m for m in "ucds" if rng.random() < lost} for _ in rows]
    return sf.scan(table_of(rows, gone), variables=COUNTED), rows, gone


def test_em_sums_counts() -> None:
    """ln p of the estimate is the enumerated one, no iteration lowers it, and it is nearly that of the complete rows."""
    data, rows, lost = drawn()
    with pytest.warns(SufficeNote, match=r"missing counts that have children are summed, from 0 up .* 1e-12 .*: 'c', 'd'"):
        run = sf.em(GRAPH, data, families=FAMILIES, tol=1e-9)
    assert run.converged
    assert all(b.objective >= a.objective - 1e-9 for a, b in pairwise(run.trace))
    total = sum(enumerated(run.model, r, gone) for r, gone in zip(rows, lost, strict=True))
    assert run.log_likelihood == pytest.approx(total, abs=1e-8)
    assert run.model.log_likelihood(data) == pytest.approx(total, abs=1e-8)
    whole = sf.fit(GRAPH, sf.scan(table_of(rows, [set()] * len(rows)), variables=COUNTED), families=FAMILIES)
    np.testing.assert_allclose(run.model["c"].rates, whole["c"].rates, rtol=0.15)
    np.testing.assert_allclose(run.model["y"].coefficients, whole["y"].coefficients, atol=0.1)
    np.testing.assert_allclose(run.model["d"].theta, whole["d"].theta, atol=0.3)


def test_the_sum_follows_the_rates() -> None:
    """Two states whose rates are far apart, and rates in the thousands: the end of the sum is found where the mass is."""
    cpds = {"u": [0.5, 0.5], "c": sf.regressions.Rates([2.0, 900.0]), "y": sf.Gaussian(0.0, {"c": 1e-4}, variance=4.0)}
    far = sf.BayesNet("u -> c -> y", cpds, [U])
    logs = far.log_prob({"u": [None], "c": [None], "y": [0.3]})
    n = np.arange(1500)
    each = 0.5 * sum(stats.poisson.pmf(n, r) for r in (2.0, 900.0)) * stats.norm.pdf(0.3, 1e-4 * n, 2.0)
    assert logs == pytest.approx([np.log(each.sum())], abs=1e-10)
    assert far.predict({"y": [0.3]}, "c") == pytest.approx([n @ each / each.sum()], rel=1e-9)


def test_trials_and_other_counts() -> None:
    """Binomial trials that are missing are at least the successes; negative binomial counts above a number."""
    rng = np.random.default_rng(1)
    m = rng.poisson(5.0, 200).astype(float)
    k = rng.binomial(m.astype(int), 0.4).astype(float)
    c = rng.negative_binomial(2, 0.3, 200).astype(float)
    y = 0.3 * c + rng.normal(size=200)
    lost = rng.random((2, 200)) < 0.2
    table = {"m": np.where(lost[0], np.nan, m), "k": k, "c": np.where(lost[1], np.nan, c), "y": y}
    data = sf.scan(table, variables=dict.fromkeys("mkc", Count))
    families = {"k": sf.regressions.BinomialLogit(trials="m"), "c": sf.regressions.NegativeBinomialLog()}
    run = sf.em("m -> k; c -> y", data, families=families)
    assert run.converged
    assert all(b.objective >= a.objective - 1e-9 for a, b in pairwise(run.trace))
    total, values = 0.0, np.arange(400.0)
    for i in range(200):
        for names, child in (("m", "k"), ("c", "y")):
            at = values if np.isnan(table[names][i]) else table[names][i : i + 1]
            columns = {names: at, child: np.full(len(at), table[child][i])}
            total += np.logaddexp.reduce(run.model[names].log_prob(columns) + run.model[child].log_prob(columns))
    assert run.log_likelihood == pytest.approx(total, abs=1e-8)


def test_structural_em_gives_lost_counts_children() -> None:
    """c has gaps, and stays the parent of y, d and s; what is expected of its families is what enumeration expects."""
    data, rows, lost = drawn(500, 0.12, seed=2)
    run = sf.structural_em(data, families=FAMILIES)
    assert {("u", "c"), ("c", "y")} <= set(run.dag.edges)
    assert [r.score for r in run.graphs] == sorted(r.score for r in run.graphs)
    assert run.score == pytest.approx(run.log_likelihood - 0.5 * np.log(500) * run.model.n_parameters, abs=1e-6)
    few = sf.scan(table_of(rows[:12], lost[:12]), variables={**COUNTED, "u": U, "s": S})
    bn, variables = network(), dict(sorted(few.schema.items()))
    expected = IncompleteRows(few, variables, whole=True, integrated=["c", "d"]).under({n: bn[n] for n in bn})
    found = expected.fold(_Products())  # type: ignore[attr-defined]
    exact = np.zeros(4)
    for row, gone in zip(rows[:12], lost[:12], strict=True):
        columns = ways(row, gone)
        logs = sum(bn[n].log_prob(columns) for n in bn)
        p = np.exp(logs - np.logaddexp.reduce(logs))
        exact += [p @ _of(columns)[j] for j in range(4)]
    np.testing.assert_allclose(found, exact, rtol=1e-9)


def _of(columns: Any) -> Any:
    """What is compared: a product, a function that is not linear, one beside a state, and the weight."""
    c, d = columns["c"], columns["d"]
    return [c * d, np.log1p(c), c**2 * (columns["s"] == 1), np.ones(len(c))]


class _Products:
    def of(self, block: Any) -> Any:
        return np.array([block.weights @ x for x in _of(block.columns)])
