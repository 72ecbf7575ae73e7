"""Cells that are not missing at random: bias removed, what the graph identifies, what is refused; estimates side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.engines.data import Data
from suffice.errors import DataError, FitError

GRAPH = "age -> income; age -> spending; income -> spending"
TRUTH = sf.BayesNet(
    GRAPH,
    {
        "age": [0.5, 0.5],
        "income": [[0.6, 0.3, 0.1], [0.2, 0.4, 0.4]],
        "spending": [[[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.1, 0.3, 0.6]], [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]],
    },
    {"age": ["young", "old"], "income": ["low", "mid", "high"], "spending": ["s", "m", "l"]},
)
SELF = {"income": ["income", "age"]}


def masked(n: int = 8_000, seed: int = 1) -> dict[str, Any]:
    """High incomes are missing more often, and those of the old."""
    table, rng = TRUTH.sample(n, seed=seed), np.random.default_rng(seed)
    income, age = (np.array(table[name].to_pylist(), object) for name in ("income", "age"))
    share = np.select([income == "high", income == "mid"], [0.6, 0.3], 0.1) + 0.1 * (age == "old")
    income[rng.random(n) < share] = None
    return {"age": list(age), "income": list(income), "spending": table["spending"].to_pylist()}


def declared(rows: dict[str, Any]) -> Data:
    return sf.scan(rows, dict(TRUTH.variables))


def test_the_bias_of_em_is_removed() -> None:
    data = declared(masked())
    truth, at_random = TRUTH.query("income"), sf.em(GRAPH, data).model.query("income")
    with pytest.warns(sf.SufficeNote, match="identified given 'age' only as far as 'spending'"):
        model = sf.em(GRAPH, data, missing_depends_on=SELF, max_iter=2_000).model
    assert abs(at_random["high"] - truth["high"]) > 0.07
    found = model.query("income", interval=0.99)
    assert np.abs(found.probs - truth.probs).max() < 0.03
    assert np.all((found.interval.lower < truth.probs) & (truth.probs < found.interval.upper))
    assert model["income_missing"].probs[2, :, 1] == pytest.approx([0.6, 0.7], abs=0.08)
    assert model.variables["income_missing"].states == ("no", "yes")


def test_fit_and_em_are_the_same() -> None:
    data = declared(masked(500))
    a, b = sf.fit(GRAPH, data, missing_depends_on=SELF), sf.em(GRAPH, data, missing_depends_on=SELF).model
    assert a == b
    assert np.array_equal(a.query("income", interval=0.9).interval, b.query("income", interval=0.9).interval)


def test_what_does_not_depend_on_itself_needs_no_mechanism() -> None:
    """By what the row shows: the indicator changes no other estimate."""
    rows = masked(600)
    plain = sf.em(GRAPH, declared(rows), tol=1e-12).model
    more = sf.em(GRAPH, declared(rows), missing_depends_on={"income": ["age", "spending"]}, tol=1e-12).model
    for name in plain:
        assert more[name].probs == pytest.approx(plain[name].probs, abs=1e-5)


def test_a_parent_with_gaps_of_its_own() -> None:
    """Income is missing by spending, which has gaps itself: not at random, and identified."""
    table, rng = TRUTH.sample(20_000, seed=5), np.random.default_rng(5)
    columns = {name: np.array(table[name].to_pylist(), object) for name in table.column_names}
    lost = rng.random(20_000) < np.where(columns["spending"] == "l", 0.8, 0.1)
    columns["income"][lost] = None
    columns["spending"][rng.random(20_000) < 0.4] = None
    data = declared({name: list(cells) for name, cells in columns.items()})
    at_random = sf.em(GRAPH, data).model.query("spending")
    with pytest.warns(sf.SufficeNote, match="gaps of 'spending' are taken to be at random"):
        model = sf.em(GRAPH, data, missing_depends_on={"income": ["spending"]}).model
    assert model["income_missing"].probs[:, 1] == pytest.approx([0.1, 0.1, 0.8], abs=0.03)
    assert np.abs(model.query("income").probs - TRUTH.query("income").probs).max() < 0.02
    assert at_random is not None


def test_a_number_in_the_mechanism_is_a_regression() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=800)
    sick = np.where(rng.random(800) < 1 / (1 + np.exp(-x)), "yes", "no").astype(object)
    sick[rng.random(800) < 1 / (1 + np.exp(-x))] = None
    bn = sf.em("sick -> x", {"x": x, "sick": list(sick)}, missing_depends_on={"sick": ["x"]}).model
    assert bn["sick_missing"].coefficients[0, 0] == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize(
    ("graph", "depends", "kind", "message"),
    [
        ("age -> income", {"income": ["income"]}, FitError, "'age' can tell apart but 2 of its 3 states"),
        ("income; age", {"income": ["income"]}, FitError, "nothing tells of it"),
        ("income -> age -> spending", {"income": ["income"]}, FitError, "tell apart but 2 of its 3 states"),
        (GRAPH, {"incom": ["age"]}, FitError, "'incom', which is not in the graph; did you mean 'income'"),
        (GRAPH, {"income": ["ages"]}, FitError, "'ages', which is not in the graph; did you mean 'age'"),
        (GRAPH, {"age": ["income"]}, DataError, "'age', which has no missing cells"),
        (GRAPH, {}, FitError, "what the gaps of a column depend on"),
        (GRAPH, {"income": 3}, FitError, "a list of nodes, not 3"),
        (GRAPH, ["income"], FitError, "what the gaps of a column depend on"),
    ],
)
def test_what_is_not_identified_or_not_there_is_refused(graph: str, depends: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        sf.em(graph, declared(masked(200)), missing_depends_on=depends)


def test_numbers_with_gaps_and_hidden_variables_are_refused() -> None:
    rows = {"x": [1.0, None, 2.5, 0.1], "y": ["a", "b", "a", "b"]}
    with pytest.raises(FitError, match=r"the number 'x'.*Bins\(5\)"):
        sf.em("y -> x", rows, missing_depends_on={"x": ["x"]})
    with pytest.raises(FitError, match="'h', which is hidden in every row"):
        sf.em("h -> x; h -> y", rows, hidden=[sf.Finite("h", ["u", "v"])], missing_depends_on={"x": ["h"]})
    gaps = {"x": ["a", None, "b", "a"], "y": ["a", "b", None, "b"], "z": ["p", "q", "p", "q"]}
    with pytest.raises(FitError, match="not known to be identified"):
        sf.em("x -> y; x -> z", gaps, missing_depends_on={"x": ["x", "y"], "y": ["z"]})


def test_the_generic_rank_is_that_of_enumerated_tables() -> None:
    """Two binary columns tell three states apart only if they do not hang on one another alone."""
    rows = {"x": ["a", "b", "c", None] * 5, "u": ["p", "q"] * 10, "v": ["r", "r", "s", "s"] * 5}
    sf.em("x -> u; x -> v", rows, missing_depends_on={"x": ["x"]}, max_iter=2)
    with pytest.raises(FitError, match="tell apart but 2 of its 3"):
        sf.em("x -> u -> v", rows, missing_depends_on={"x": ["x"]}, max_iter=2)
    number = {**rows, "n": [float(i) for i in range(20)]}
    sf.em("x -> n", number, missing_depends_on={"x": ["x"]}, max_iter=2)


def test_indicators_on_every_engine(tmp_path: Any) -> None:
    frame = pd.DataFrame({"x": ["a", None, "b", None], "y": [1.0, 2.0, None, 4.0]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for data in (sf.scan(frame), sf.scan(tmp_path / "rows.csv"), sf.scan(frame).hold()):
        rows = data.with_indicators({"x_missing": "x"})
        assert dict(rows.missing) == {"x": 2, "y": 1, "x_missing": 0}
        assert rows.take(["x_missing"]).gather([sf.statistics.Request(("x_missing",))]).counts(["x_missing"]).values.tolist() == [
            2.0,
            2.0,
        ]
        assert rows.hold().take(["x_missing", "y"]).n_rows == 4
        with pytest.raises(sf.SufficeError, match="missing cells"):
            rows.gather([sf.statistics.Request(("x",))])


def test_estimates_side_by_side() -> None:
    """Cells missing by what the row shows: complete and available cases are off, EM is not; and by hand in a small table."""
    rng = np.random.default_rng(2)
    old = rng.random(4_000) < 0.5
    x = (rng.normal(size=4_000) + 2.0 * old).astype(object)
    x[rng.random(4_000) < np.where(old, 0.7, 0.0)] = None
    report = sf.missingness({"age": np.where(old, "old", "young"), "x": list(x)}, compare="age -> x")
    mean = next(row for row in report.compared.rows if row.what == "mean")
    assert mean.em == pytest.approx(1.0, abs=0.1)
    assert mean.complete == pytest.approx(mean.available)
    assert mean.available < 0.6
    assert "complete cases" in repr(report)
    assert report.to_dict()["compared"]["graph"] == "age -> x"
    small = sf.missingness({"a": ["u", "u", "v", None], "b": ["p", None, "q", "q"]}, compare="a; b").compared
    assert [tuple(row)[2:] for row in small.rows] == [
        pytest.approx((0.5, 2 / 3, 2 / 3), abs=1e-3),
        pytest.approx((0.5, 1 / 3, 1 / 3), abs=1e-3),
        pytest.approx((0.5, 1 / 3, 1 / 3), abs=1e-3),
        pytest.approx((0.5, 2 / 3, 2 / 3), abs=1e-3),
    ]
    found = sf.missingness({"a": ["u", "u", "v", None] * 5, "b": ["p", None, "q", "q"] * 5}, compare=True).compared
    assert len(found.to_frame()) == 4
    none = sf.missingness({"a": ["u", None], "b": [None, "q"]}, compare="a; b").compared
    assert np.isnan(none.rows[0].complete)
    assert none.to_dict()["estimates"][0]["complete"] is None
    with pytest.raises(DataError, match="'c', no column that can be compared"):
        sf.missingness({"a": ["u", None]}, compare="a -> c")


def test_forecasts() -> None:
    rows = masked(400)
    plan = sf.em(GRAPH, declared(rows), starts=3, max_iter=50, dry_run=True)
    assert (plan.n_rows, plan.starts, plan.iterations, plan.parameters) == (400.0, 3, 50, 17)
    assert plan.seconds == pytest.approx(150 * plan.seconds_an_iteration)
    assert plan.information_bytes == 8 * 17**2
    assert "at most 50 a start" in repr(plan)
    data = TRUTH.sample(200, seed=0)
    once, often = sf.search(data, dry_run=True), sf.bootstrap(data, n=7, dry_run=True)
    assert (often.families, often.scans) == (7 * once.families, 7 * (once.scans + 1))
    assert often.seconds > 7 * once.seconds
    walk = sf.methods.order_mcmc(data, samples=100, dry_run=True)
    assert walk.seconds < sf.methods.order_mcmc(data, samples=1_000, dry_run=True).seconds
    assert "samples=100" in walk.method
    with pytest.raises(FitError, match="dry_run= is for complete rows"):
        sf.bootstrap(rows, n=2, dry_run=True)
