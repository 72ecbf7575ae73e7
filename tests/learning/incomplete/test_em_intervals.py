"""Intervals after EM: against the observed information, closed forms, quadrature and simulation; in files, marginals and rows."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

import suffice as sf
from suffice.errors import FitError, ModelError
from suffice.models.estimation import networks_at_draws
from suffice.models.parts.parameter_covariance import ParameterCovariance

STATES = np.array(["no", "yes"], dtype=object)


def gappy(n: int = 300, seed: int = 0, share: float = 0.2) -> dict[str, Any]:
    """a → b → y and a → y, a fifth of the cells missing."""
    rng = np.random.default_rng(seed)
    a = rng.random(n) < 0.3
    b = rng.random(n) < np.where(a, 0.8, 0.25)
    y = rng.normal(np.where(b, 1.0, -1.0) + a, 1.0)
    columns = {"a": STATES[a.astype(int)], "b": STATES[b.astype(int)], "y": y.astype(object)}
    for cells in columns.values():
        cells[rng.random(n) < share] = None
    return {name: list(cells) for name, cells in columns.items()}


def learned(**options: Any) -> sf.results.EmRun:
    return sf.em("a -> b; a -> y; b -> y", gappy(), tol=1e-10, **options)


@pytest.fixture(scope="module")
def run() -> sf.results.EmRun:
    return learned(information=True)


def test_a_single_parameter_has_the_interval_of_the_information(run: sf.results.EmRun) -> None:
    information = run.information()
    for level in (0.5, 0.95):
        root = run.model.query("a", interval=level, draws=40_000)
        assert np.allclose(root.interval, information.interval("a", level), atol=0.003)
        row = run.model.query("b", {"a": "yes"}, interval=level, draws=40_000)
        assert np.allclose(row.interval, [end[1] for end in information.interval("b", level)], atol=0.006)
    mean = run.model.query("y", {"a": "no", "b": "yes"}, interval=0.9, draws=40_000)
    ends = information.interval("y", 0.9)["intercept"]
    assert np.allclose(mean.mean_interval, [end[0, 1] for end in ends], atol=0.01)
    assert "by the inverse of the observed information" in root.how


def test_the_delta_method_agrees(run: sf.results.EmRun) -> None:
    """p(a = yes | b = yes) as a function of all coordinates: its gradient, by differences, and the covariance."""
    known = run.model.parameter_covariance
    assert known is not None
    small = known.only(["a", "b"])
    here = np.concatenate([chart.vector(chart.cpd) for chart in small.charts.values()])
    ends = np.cumsum([0, *(chart.size for chart in small.charts.values())])

    def answer(vector: Any) -> float:
        a, b = (chart.at(vector[i:j]).probs for chart, i, j in zip(small.charts.values(), ends, ends[1:], strict=False))
        p = a[1] * b[1, 1] / (a[1] * b[1, 1] + a[0] * b[0, 1])
        return float(np.log(p / (1 - p)))

    steps = 1e-5 * np.eye(len(here))
    gradient = np.array([(answer(here + h) - answer(here - h)) / 2e-5 for h in steps])
    covariance = np.zeros((len(here), len(here)))
    for own, block in zip(small.places, small.blocks, strict=True):
        covariance[np.ix_(own, own)] = block
    half = 1.959964 * np.sqrt(gradient @ covariance @ gradient)
    expected = 1.0 / (1.0 + np.exp(-(answer(here) + np.array([-half, half]))))
    found = run.model.query("a", {"b": "yes"}, interval=0.95, draws=40_000)
    assert [end[1] for end in found.interval] == pytest.approx(expected, abs=0.008)


def test_the_posterior_by_quadrature() -> None:
    """Two binary columns, each with gaps, and a prior: the interval of p(b = yes) against the exact posterior on a grid."""
    n = {("no", "no"): 40, ("no", "yes"): 15, ("yes", "no"): 12, ("yes", "yes"): 33}
    n |= {("no", None): 10, ("yes", None): 8, (None, "no"): 9, (None, "yes"): 14}
    rows = {"a": [a for (a, _), k in n.items() for _ in range(k)], "b": [b for (_, b), k in n.items() for _ in range(k)]}
    bn = sf.em("a -> b", rows, prior=sf.Dirichlet(1), tol=1e-12).model
    grid = (np.arange(120) + 0.5) / 120
    p, q, r = np.meshgrid(grid, grid, grid, indexing="ij")  # p(a = yes), p(b = yes | no), p(b = yes | yes)
    cell = {("no", "no"): (1 - p) * (1 - q), ("no", "yes"): (1 - p) * q, ("yes", "no"): p * (1 - r), ("yes", "yes"): p * r}
    cell |= {
        ("no", None): 1 - p,
        ("yes", None): p,
        (None, "no"): (1 - p) * (1 - q) + p * (1 - r),
        (None, "yes"): (1 - p) * q + p * r,
    }
    logs = sum(k * np.log(cell[key]) for key, k in n.items())
    weight = np.exp(logs - logs.max()).reshape(-1)
    answer = cell[None, "yes"].reshape(-1)
    order = np.argsort(answer)
    below = np.cumsum(weight[order]) / weight.sum()
    exact = [float(answer[order][np.searchsorted(below, t)]) for t in (0.025, 0.975)]
    found = bn.query("b", interval=0.95, draws=20_000)
    assert [end[1] for end in found.interval] == pytest.approx(exact, abs=0.012)
    assert "curvature of the posterior" in found.how


def test_a_state_that_no_row_has_is_known_to_be_rare() -> None:
    """One cell of a column is missing: its posterior is a Dirichlet distribution, whose log-odds are far from normal."""
    cells = ["x"] * 135 + ["z"] * 45 + [None]
    rows = sf.scan({"a": cells}, variables={"a": sf.Finite("a", ["x", "y", "z"])})
    found = sf.em("a", rows, prior=sf.BDeu(1), tol=1e-12).model.query("a", interval=0.95, draws=20_000)
    alpha = np.array([135.0, 0.0, 45.0]) + 1.0 / 3.0
    exact = stats.beta(alpha, alpha.sum() - alpha).ppf(np.array([[0.025], [0.975]]))
    assert np.allclose(found.interval, exact, atol=0.004)
    assert found.interval.upper[1] == pytest.approx(exact[1, 1], rel=0.1)


def test_a_normal_prior_of_log_odds_stays_normal() -> None:
    """Rows that say nothing leave the prior: log-odds of a logistic-normal one, in files, too."""
    rows = sf.scan({"a": ["u", "v"] * 200 + [None]}, variables={"a": sf.Finite("a", ["u", "v"])})
    bn = sf.em("a", rows, prior=sf.priors.LogisticNormal(0.0, [[0.01, 0.0], [0.0, 0.01]]), tol=1e-12).model
    known = bn.parameter_covariance
    assert known is not None
    assert known.charts["a"].normal
    half = 1.959964 * np.sqrt(known.blocks[0][0, 0])
    ends = 1.0 / (1.0 + np.exp([half, -half]))
    found = bn.query("a", interval=0.95, draws=20_000)
    assert [end[0] for end in found.interval] == pytest.approx(ends, abs=0.002)


def test_intervals_hold_as_often_as_they_say() -> None:
    """200 replications of 95 % intervals: benchmarks/em_intervals.py has 2,000, and more questions."""
    held = []
    for seed in range(200):
        bn = sf.em("a -> b", {name: gappy(200, seed)[name] for name in "ab"}).model
        answer = bn.query("a", {"b": "yes"}, interval=0.95, seed=seed)
        truth = 0.3 * 0.8 / (0.3 * 0.8 + 0.7 * 0.25)
        held.append(answer.interval.lower[1] <= truth <= answer.interval.upper[1])
    assert 0.90 <= np.mean(held) <= 0.99


def test_files_and_pickles_keep_what_was_found(run: sf.results.EmRun, tmp_path: Any) -> None:
    sf.write(run.model, tmp_path / "net.json")
    again, pickled = sf.read(tmp_path / "net.json"), pickle.loads(pickle.dumps(run.model))
    asked = [bn.query("a", {"y": 0.5}, interval=0.9).interval for bn in (run.model, again, pickled)]
    assert np.array_equal(asked[0], asked[1])
    assert np.array_equal(asked[0], asked[2])
    lazy = learned().model
    sf.write(lazy, tmp_path / "lazy.json")
    for other in (sf.read(tmp_path / "lazy.json"), pickle.loads(pickle.dumps(lazy)), learned(information=False).model):
        with pytest.raises(ModelError, match=r"does not have the observed information.*information=True"):
            other.query("a", interval=0.9)
    assert np.array_equal(lazy.query("a", interval=0.9).interval, run.model.query("a", interval=0.9).interval)


def test_units_do_not_matter() -> None:
    """A column in other units has its interval in those units, also with a mean of 1e6."""
    rows, moved = gappy(), gappy()
    moved["y"] = [None if y is None else 1e6 + 0.01 * y for y in rows["y"]]
    one, other = (sf.em("a -> b; a -> y; b -> y", table, tol=1e-11).model for table in (rows, moved))
    a, b = (bn.query("y", {"a": "yes"}, interval=0.9).mean_interval for bn in (one, other))
    assert (np.array(b) - 1e6) / 0.01 == pytest.approx(np.array(a), abs=1e-4)


def test_interventions_leave_the_others_uncertain(run: sf.results.EmRun) -> None:
    done = run.model.do({"a": "yes"})
    assert np.allclose(
        done.query("b", interval=0.9).interval, run.model.query("b", {"a": "yes"}, interval=0.9).interval, atol=0.02
    )
    assert done.query("a", interval=0.9).interval.lower.tolist() == [0.0, 1.0]


def test_fixed_nodes_are_known() -> None:
    start = learned().model
    bn = sf.em("a -> b; a -> y; b -> y", gappy(), start=start, fixed=["a"]).model
    assert np.allclose(*bn.query("a", interval=0.9).interval)
    assert np.all(np.diff(bn.query("b", interval=0.9).interval, axis=0) > 0.01)


def test_what_is_not_known_is_refused() -> None:
    hidden = sf.em("h -> a", {"a": gappy()["a"]}, hidden=[sf.Finite("h", ["x", "y"])], starts=1, max_iter=3).model
    with pytest.raises(FitError, match="does not identify the parameters of"):
        hidden.query("a", interval=0.9)
    with pytest.raises(FitError, match="information is True, False or left out"):
        learned(information="yes")


def test_cells_at_zero_stay_there_and_it_is_said() -> None:
    rows = {"x": ["a", "b", "b", None] * 20, "y": ["u", "v", "v", "v"] * 20}
    answer = sf.em("y -> x", rows, tol=1e-14, max_iter=5000).model.query("x", {"y": "u"}, interval=0.9)
    assert "held" in answer.how
    assert np.array_equal(*answer.interval)


def test_marginals_are_those_of_query(run: sf.results.EmRun) -> None:
    every = run.model.marginals({"b": "yes"}, interval=0.9, seed=4)
    assert np.array_equal(every["a"].interval, run.model.query("a", {"b": "yes"}, interval=0.9, seed=4).interval)
    assert np.array_equal(every["y"].mean_interval, run.model.query("y", {"b": "yes"}, interval=0.9, seed=4).mean_interval)
    assert every["b"].interval.lower.tolist() == [0.0, 1.0]
    frame = every.to_frame()
    assert list(frame) == ["node", "state", "probability", "mean", "sd", "lower", "upper"]
    assert not frame[["lower", "upper"]].isna().any().any()
    assert "(" in repr(every)
    complete = sf.fit("a -> b", {"a": ["x", "y"] * 10, "b": ["u", "u", "v"] * 6 + ["u", "v"]}, prior=sf.Dirichlet(1))
    assert np.array_equal(complete.marginals(interval=0.9)["b"].interval, complete.query("b", interval=0.9).interval)
    with pytest.raises(FitError, match="no posterior"):
        sf.load("asia").marginals(interval=0.9)


def test_a_node_without_an_interval_is_told_without_one() -> None:
    data = sf.scan({"g": ["a", "b"] * 20, "n": [0, 3, 1, 5] * 10}, variables={"n": sf.Count("n")})
    bn = sf.fit("g -> n", data, prior=(sf.Dirichlet(1), sf.priors.Gamma(1.0, 1.0)))
    with pytest.warns(sf.SufficeNote, match="'n' told without an interval"):
        every = bn.marginals(interval=0.9)
    assert every["g"].interval is not None
    assert every["n"].mean_interval is None


def test_rows_have_the_intervals_of_query(run: sf.results.EmRun) -> None:
    rows = {"b": ["yes", "no", None, "yes"], "y": [1.0, None, None, 1.0]}
    found = run.model.predict_proba(rows, "a", interval=0.9, seed=2)
    assert list(found) == ["no", "yes", "no_lower", "no_upper", "yes_lower", "yes_upper"]
    for i, given in enumerate(({"b": "yes", "y": 1.0}, {"b": "no"}, {}, {"b": "yes", "y": 1.0})):
        answer = run.model.query("a", given, interval=0.9, seed=2)
        assert found["yes"][i] == pytest.approx(answer["yes"])
        assert [found["yes_lower"][i], found["yes_upper"][i]] == [end[1] for end in answer.interval]
    numbers = run.model.predict_proba({"a": ["yes"]}, "y", interval=0.9)
    assert list(numbers) == ["mean", "variance", "mean_lower", "mean_upper"]
    assert numbers["mean_lower"][0] < numbers["mean"][0] < numbers["mean_upper"][0]
    complete = sf.fit("a -> b", {"a": ["x", "y"] * 10, "b": ["u", "u", "v"] * 6 + ["u", "v"]}, prior=sf.Dirichlet(1))
    assert complete.predict_proba({"a": ["x"]}, "b", interval=0.9)["u_lower"][0] < 0.7
    with pytest.raises(ModelError, match="interval or method, not both"):
        run.model.predict_proba(rows, "a", interval=0.9, method=sf.methods.LikelihoodWeighting(100))
    with pytest.raises(ModelError, match="at least 1,000 draws"):
        run.model.predict_proba(rows, "a", interval=0.9, draws=10)


def test_draws_of_parameters_have_their_moments(run: sf.results.EmRun) -> None:
    networks = networks_at_draws(run.model, 2_000, seed=3)
    drawn = np.array([net["a"].probs[1] for net in networks])
    assert drawn.std() == pytest.approx(run.information().standard_errors["a"][1], rel=0.08)
    means = np.array([net["y"].intercept[0, 1] for net in networks])
    assert means.std() == pytest.approx(run.information().standard_errors["y"]["intercept"][0, 1], rel=0.08)
    data = sf.scan({"g": ["a", "b"] * 20, "n": [0, 3, 1, 5] * 10}, variables={"n": sf.Count("n")})
    counts = sf.fit("g -> n", data, prior=(sf.Dirichlet(1), sf.priors.Gamma(1.0, 1.0)))
    rates = np.array([net["n"].rates[1] for net in networks_at_draws(counts, 4_000, seed=0)])
    assert np.quantile(rates, [0.025, 0.975]) == pytest.approx([end[1] for end in counts["n"].interval(0.95)], rel=0.05)


def test_regressions_are_drawn_by_their_covariance() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    bn = sf.fit(
        "x -> y", {"x": x, "y": STATES[(rng.random(200) < 1 / (1 + np.exp(-x))).astype(int)]}, families={"y": sf.Logistic()}
    )
    with pytest.warns(sf.SufficeNote, match="'x' are held at their estimates"):
        networks = networks_at_draws(bn, 2_000, seed=1)
    slopes = np.array([net["y"].coefficients[0, 0] for net in networks])
    assert slopes.std() == pytest.approx(bn["y"].standard_errors[0, 1], rel=0.08)


def test_imputation_draws_the_parameters_anew() -> None:
    """The variance between the tables is that of the parameters and of the cells: with one row each, and many gaps, by hand."""
    rows = {"x": ["a"] * 6 + ["b"] * 4 + [None] * 190}
    bn = sf.fit("x", {"x": ["a"] * 6 + ["b"] * 4}, prior=sf.Dirichlet(1))
    proper, held = (
        np.array([np.mean([cell == "a" for cell in table["x"]]) for table in bn.impute(rows, draws=400, redraw=redraw)])
        for redraw in (None, False)
    )
    p, share = 7 / 12, 190 / 200
    cells = share * p * (1 - p) / 200
    assert held.std() == pytest.approx(np.sqrt(cells), rel=0.12)
    assert proper.std() == pytest.approx(np.sqrt(share**2 * stats.beta(7, 5).var() + cells), rel=0.12)
    again = bn.impute(rows, draws=2)
    assert [table["x"] for table in again] == [table["x"] for table in bn.impute(rows, draws=2)]


def test_rubins_intervals_hold_as_often_as_they_say() -> None:
    held = []
    for seed in range(60):
        rows = {name: gappy(150, 1000 + seed)[name] for name in "ab"}
        tables = sf.em("a -> b", rows).model.impute(rows, draws=10, seed=seed)
        shares = np.array([np.mean([cell == "yes" for cell in table["a"]]) for table in tables])
        within, between = np.mean(shares * (1 - shares)) / 150, shares.var(ddof=1)
        half = 2.0 * np.sqrt(within + 1.1 * between)
        held.append(abs(shares.mean() - 0.3) <= half)
    assert np.mean(held) >= 0.85


def test_imputation_says_what_it_cannot_draw() -> None:
    rows = {"x": ["a", "b", None]}
    fitted = sf.fit("x", {"x": ["a", "b"]})
    with pytest.warns(sf.SufficeNote, match="held at their estimates"):
        fitted.impute(rows, draws=2)
    with pytest.raises(FitError, match=r"the parameters of 'x' cannot be drawn.*leave redraw out"):
        fitted.impute(rows, draws=2, redraw=True)
    with pytest.raises(ModelError, match="redraw= is for draws="):
        fitted.impute(rows, redraw=True)
    with pytest.raises(ModelError, match="redraw is True, False or left out"):
        fitted.impute(rows, draws=2, redraw=3)  # type: ignore[arg-type]


def test_only_some_nodes_of_a_covariance(run: sf.results.EmRun) -> None:
    known = run.model.parameter_covariance
    assert isinstance(known, ParameterCovariance)
    one = known.only(["b"])
    assert one.n_parameters == 2
    assert one.only(["b"]).blocks[0].tolist() == one.blocks[0].tolist()
    assert known.only([]).n_parameters == 0


@pytest.mark.parametrize("damage", ["places", "values", "charts"])
def test_damaged_files_are_refused(run: sf.results.EmRun, tmp_path: Any, damage: str) -> None:
    import json

    sf.write(run.model, tmp_path / "net.json")
    content = json.loads((tmp_path / "net.json").read_text())
    part = content["covariance"]
    if damage == "charts":
        part["charts"]["zebra"] = part["charts"].pop("a")
    else:
        part["blocks"][0][damage] = part["blocks"][0][damage][:-1]
    (tmp_path / "net.json").write_text(json.dumps(content))
    with pytest.raises(sf.SufficeError):
        sf.read(tmp_path / "net.json")


def test_a_learned_graph_has_intervals_and_other_models_say_why_not() -> None:
    found = sf.structural_em(gappy()).model
    answer = found.query("a", interval=0.9)
    assert np.all(answer.interval.lower < answer.probs)
    classes = sf.mixture({"x": [1.0, 1.2, 0.9, 5.1, 4.8, 5.3]}, 2, sf.latent.Diagonal()).model
    with pytest.raises(ModelError, match="not by EM of a graph"):
        classes.query("x", interval=0.9)
