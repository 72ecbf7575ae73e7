"""The observed information: closed forms, brute force, and how often intervals hold."""

from __future__ import annotations

import pickle
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.families.categorical import Table
from suffice.learning.em import em
from suffice.learning.incomplete import information as module
from suffice.learning.incomplete.coordinates import Atlas
from suffice.learning.incomplete.information import observed_information
from suffice.learning.incomplete.problem import problem_of
from tests.learning.incomplete.test_gradient import CASES, holes, hybrid_problem, latent_classes


def climbed(problem: Any, iterations: int = 2_000) -> Any:
    """Parameters at the end of plain EM."""
    parameters, before = problem.first(), -np.inf
    for _ in range(iterations):
        expected = problem.expect(parameters)
        now = expected.log_likelihood + problem.log_prior(parameters)
        if now - before < 1e-12 * abs(now):
            break
        parameters, before = problem.maximise(expected.statistic), now
    return parameters


def second_differences(problem: Any, atlas: Atlas, here: Any, h: float = 1e-3) -> Any:
    """− the matrix of second derivatives of the objective, from its values alone."""

    def objective(vector: Any) -> float:
        parameters = atlas.problem.parameters(atlas.cpds(vector))
        return problem.expect(parameters).log_likelihood + problem.log_prior(parameters)

    steps = h * np.diag(atlas.unit)
    H = np.zeros((len(here), len(here)))
    for i, j in combinations_with_replacement(range(len(here)), 2):
        a, b = steps[i], steps[j]
        H[i, j] = H[j, i] = objective(here + a + b) - objective(here + a - b) - objective(here - a + b) + objective(here - a - b)
    return -H / (4.0 * h * h)


def test_complete_rows_have_the_textbook_errors():
    rows = {"x": ["a"] * 20 + ["b"] * 80, "y": ["u"] * 5 + ["v"] * 15 + ["u"] * 60 + ["w"] * 20}
    information = em("x -> y", rows).information()
    np.testing.assert_allclose(information.standard_errors["x"], [0.04, 0.04], rtol=1e-9)
    p = np.array([[0.25, 0.75], [0.75, 0.25]])
    expected = np.sqrt(p * (1 - p) / np.array([[20], [80]]))
    got = information.standard_errors["y"]
    np.testing.assert_allclose([got[0, :2], got[1, ::2]], expected, rtol=1e-9)
    assert np.isnan(got[0, 2])
    assert np.isnan(got[1, 1])
    assert np.nanmax(information.missing_information["y"]) == 0.0
    assert information.largest_missing == 0.0
    assert information.fixed == ("p(y='w' | x='a')", "p(y='v' | x='b')")
    assert "on the boundary" in repr(information)


def test_cells_missing_at_random_lose_their_share():
    """n of N cells seen: the standard error is that of n rows, and the fraction of missing information 1 − n/N."""
    information = em("x", {"x": ["a"] * 30 + ["b"] * 50 + ["c"] * 20 + [None] * 25}, tol=1e-12).information()
    p = np.array([0.3, 0.5, 0.2])
    np.testing.assert_allclose(information.standard_errors["x"], np.sqrt(p * (1 - p) / 100), rtol=1e-6)
    np.testing.assert_allclose(information.missing_information["x"], 0.2, atol=1e-6)
    assert information.largest_missing == pytest.approx(0.2, abs=1e-6)


def test_merged_cells_as_in_genetic_linkage():
    """Some rows say only whether h is c. With s = p(not c), r = p(a | not c), a = s r:

    var a = r² s (1 − s) / N + s² r (1 − r) / n, N all rows, n the rows that show a or b (the two factors are orthogonal).
    """
    h, x = sf.Finite("h", ["a", "b", "c"]), sf.Finite("x", ["not c", "c"])
    start = sf.BayesNet("h -> x", {"h": [0.3, 0.3, 0.4], "x": [[1, 0], [1, 0], [0, 1]]}, variables=[h, x])
    rows = {
        "h": ["a"] * 18 + ["b"] * 20 + ["c"] * 34 + [None] * 125,
        "x": ["not c"] * 38 + ["c"] * 34 + ["not c"] * 100 + ["c"] * 25,
    }
    run = em("h -> x", sf.scan(rows, [h, x]), start=start, tol=1e-13, max_iter=5_000)
    information = run.information()
    N, n, s, r = 197, 38, 138 / 197, 18 / 38
    np.testing.assert_allclose(run.model["h"].probs, [s * r, s * (1 - r), 1 - s], atol=1e-6)
    spread = s * (1 - s) / N
    errors = [np.sqrt(q**2 * spread + s**2 * q * (1 - q) / n) for q in (r, 1 - r)]
    np.testing.assert_allclose(information.standard_errors["h"], [*errors, np.sqrt(spread)], rtol=1e-5)
    assert information.missing_information["h"][2] == pytest.approx(0.0, abs=1e-6)
    assert information.largest_missing == pytest.approx(1 - n / 138, abs=1e-5)  # of the 138 rows that are a or b, 38 say which
    assert np.isnan(information.standard_errors["x"]).all()


def test_two_coins():
    """Which of two coins was thrown ten times is not known: ln L by hand, differentiated twice."""
    heads = np.array([5, 9, 8, 4, 7, 2, 8, 3, 9, 1])
    tosses = [f"t{i}" for i in range(4)]
    rng = np.random.default_rng(0)
    rows = {t: np.where(rng.random(10 * 20) < np.repeat(heads, 20) / 10, "h", "t") for t in tosses}
    run = em("; ".join(f"coin -> {t}" for t in tosses), rows, hidden=[sf.Finite("coin", ["A", "B"])], tol=1e-12, max_iter=20_000)
    information = run.information()
    bits = np.stack([rows[t] == "h" for t in tosses], axis=1)

    def log_likelihood(eta: Any) -> float:
        p = 1 / (1 + np.exp(-eta))
        each = [np.where(bits, p[1 + c : 9 : 2], 1 - p[1 + c : 9 : 2]).prod(axis=1) for c in range(2)]
        return float(np.log(p[0] * each[0] + (1 - p[0]) * each[1]).sum())

    model = run.model
    p = np.array([model["coin"].probs[0], *(model[t].probs[c, 0] for t in tosses for c in range(2))])
    eta = np.log(p / (1 - p))
    d = 1e-3 * np.eye(9)
    H = [[sum(i * j * log_likelihood(eta + i * a + j * b) for i, j in product([1, -1], repeat=2)) for a in d] for b in d]
    variance = np.diag(np.linalg.inv(-np.array(H) / 4e-6)) * (p * (1 - p)) ** 2
    ours = [information.standard_errors["coin"][0], *(information.standard_errors[t][c, 0] for t in tosses for c in range(2))]
    np.testing.assert_allclose(ours, np.sqrt(variance), rtol=2e-4)
    assert 0.5 < information.largest_missing < 1.0


def test_the_largest_fraction_is_the_rate_of_em():
    rows = holes(
        {"x": ["a", "a", "b", "b", "b"] * 10, "y": ["u", "v", "v", "v", "u"] * 10, "z": ["k", "l", "k"] * 16 + ["k", "l"]}, 0.4, 1
    )
    problem = problem_of("x -> y; y -> z", rows)
    best = climbed(problem)
    for _ in range(200):
        best = problem.maximise(problem.expect(best).statistic)
    here = problem.first()
    gaps = []
    for _ in range(41):
        here = problem.maximise(problem.expect(here).statistic)
        gaps.append(np.linalg.norm(problem.cpds(here)["y"].probs - problem.cpds(best)["y"].probs))
    rate = observed_information(problem, best).largest_missing
    assert (gaps[40] / gaps[35]) ** 0.2 == pytest.approx(rate, abs=0.005)


@pytest.mark.parametrize(("make", "options"), CASES[1:3] + CASES[4:5])
def test_brute_force(make, options):
    problem = make(2, **options, **({"dag": "u -> x; u -> y; x -> y"} if make is hybrid_problem else {}))
    best = climbed(problem)
    information = observed_information(problem, best)
    brute = second_differences(problem, information.atlas, information.atlas.vector(best))
    scaled = information.matrix * np.outer(information.atlas.unit, information.atlas.unit)
    np.testing.assert_allclose(scaled, brute, rtol=1e-4, atol=1e-4 * np.abs(brute).max())
    assert information.posterior
    assert repr(information).startswith("Posterior curvature")


def test_nodes_that_no_row_lacks_cost_no_steps(monkeypatch):
    rows = {"x": ["a", "b"] * 20, "y": ["u", "v", "v", None, "v"] * 8, "z": ["k", "l", "l", "k", "k"] * 8}
    problem = problem_of("x -> y; x -> z", rows)
    best = climbed(problem)
    asked = []
    plain = type(problem).expect
    monkeypatch.setattr(type(problem), "expect", lambda self, p: asked.append(1) or plain(self, p))
    information = observed_information(problem, best)
    n_open = information.atlas.charts["y"].size
    assert len(asked) == 2 + 2 * n_open
    whole = second_differences(problem, information.atlas, information.atlas.vector(best))
    np.testing.assert_allclose(information.matrix, whole, atol=1e-4)


def test_intervals_hold_as_often_as_they_say():
    """A chain in which y is missing where x = b, mostly, and z at random: intervals of 90 % in 80 samples of 300 rows."""
    rng = np.random.default_rng(7)
    truth = {"x": [[0.4]], "y": [[0.8], [0.3]], "z": [[0.3], [0.7]]}
    inside: dict[str, list[Any]] = {n: [] for n in truth}
    for _ in range(80):
        x = (rng.random(300) > 0.4).astype(int)
        y = (rng.random(300) > np.array([0.8, 0.3])[x]).astype(int)
        z = (rng.random(300) > np.array([0.3, 0.7])[y]).astype(int)
        y = np.where(rng.random(300) < np.array([0.1, 0.5])[x], 2, y)
        z = np.where(rng.random(300) < 0.2, 2, z)
        cells, weights = np.unique(np.stack([x, y, z], axis=1), axis=0, return_counts=True)
        names = np.array(["0", "1", None], dtype=object)
        columns = {n: list(names[cells[:, i]]) for i, n in enumerate("xyz")}
        information = em("x -> y; y -> z", sf.scan(columns, weights=weights.astype(float))).information()
        for n in truth:
            ends = information.interval(n, 0.9)
            low, high = (e.reshape(-1, 2)[:, :1] for e in ends)
            inside[n].append((low <= np.array(truth[n])) & (np.array(truth[n]) <= high))
    for n in truth:
        share = np.mean(inside[n], axis=0)
        assert np.all((share > 0.82) & (share < 0.97)), (n, share)


def test_what_the_data_does_not_identify_is_said():
    problem = problem_of("h -> x", {"x": ["a", "b", "b"] * 10}, hidden=[sf.Finite("h", ["p", "q"])])
    parameters = problem.maximise(problem.expect(problem.random(np.random.default_rng(0))).statistic)
    with pytest.warns(sf.SufficeNote, match="does not identify"):
        information = observed_information(problem, parameters)
    assert np.isinf(information.standard_errors["h"]).all()
    assert information.missing_information["h"].tolist() == [1.0, 1.0]
    ends = information.interval("h")
    assert (ends.lower.tolist(), ends.upper.tolist()) == ([0.0, 0.0], [1.0, 1.0])
    assert information.largest_missing == pytest.approx(1.0, abs=1e-6)
    assert "not identified: p(h='p')" in repr(information)


def test_a_saddle_is_no_maximum():
    rng = np.random.default_rng(1)
    h = rng.random(300) < 0.5
    rows = {f"x{i}": np.where(rng.random(300) < np.where(h, 0.9, 0.1), "a", "b") for i in range(3)}
    problem = problem_of("h -> x0; h -> x1; h -> x2", rows, hidden=[sf.Finite("h", ["p", "q"])])
    cpds = problem.cpds(problem.random(rng))
    for i in range(3):
        share = float(np.mean(rows[f"x{i}"] == "a"))
        cpds[f"x{i}"] = Table(cpds[f"x{i}"].child, cpds[f"x{i}"].parent_variables, [[share, 1 - share]] * 2)
    with pytest.warns(sf.SufficeNote, match="not a maximum"):
        observed_information(problem, problem.parameters(cpds))


def test_an_estimate_short_of_the_maximum_is_noted():
    problem = problem_of("x", {"x": ["a"] * 20 + ["b"] * 80 + [None] * 100})
    with pytest.warns(sf.SufficeNote, match="short of the maximum"):
        observed_information(
            problem, problem.parameters({"x": type(problem.cpds(problem.first())["x"])(problem.variables["x"], (), [0.5, 0.5])})
        )


def test_too_many_parameters_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MOST", 1)
    dag, rows, hidden = latent_classes(50)
    problem = problem_of(dag, rows, hidden=hidden)
    with pytest.raises(sf.SufficeError, match="9 free parameters"):
        observed_information(problem, problem.random(np.random.default_rng(0)))


def test_names_and_levels_are_checked():
    information = em("xray", {"xray": ["a", "b", None]}).information()
    with pytest.raises(sf.SufficeError, match="did you mean 'xray'"):
        information.interval("xrays")
    with pytest.raises(sf.SufficeError, match="level"):
        information.interval("xray", 2.0)


def test_complete_numbers_have_the_textbook_errors():
    rng = np.random.default_rng(0)
    x = 1e6 + rng.standard_normal(200)
    y = 3.0 + 2.0 * (x - 1e6) + rng.standard_normal(200)
    problem = problem_of("x -> y", {"x": x, "y": y})
    parameters = climbed(problem)
    information = observed_information(problem, parameters)
    v = float(problem.cpds(parameters)["y"].variance)
    error, scatter = information.standard_errors["y"], ((x - x.mean()) ** 2).sum()
    assert error["coefficients"][0] == pytest.approx(np.sqrt(v / scatter), rel=1e-6)
    assert float(error["intercept"]) == pytest.approx(np.sqrt(v * (1 / 200 + x.mean() ** 2 / scatter)), rel=1e-6)
    assert float(error["variance"]) == pytest.approx(v * np.sqrt(2 / 200), rel=1e-6)
    ends = information.interval("y")["variance"]
    assert 0 < float(ends.lower) < v < float(ends.upper)
    assert information.largest_missing == 0.0


def test_numbers_missing_at_random_lose_their_share():
    """Of a single Gaussian with n of N cells seen the errors are those of n rows."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(100)
    information = observed_information(problem := problem_of("x", {"x": [*x, *[None] * 50]}), climbed(problem))
    error, v = information.standard_errors["x"], x.var()
    assert float(error["intercept"]) == pytest.approx(np.sqrt(v / 100), rel=1e-5)
    assert float(error["variance"]) == pytest.approx(v * np.sqrt(2 / 100), rel=1e-5)
    assert float(information.missing_information["x"]["intercept"]) == pytest.approx(1 / 3, abs=1e-5)


def test_a_table_of_all_parameters_and_a_pickle():
    run = sf.em("g -> y; x -> y", {"x": [0.1, 0.5, 0.9, 1.5] * 5, "y": [1.0, 1.2, None, 2.5] * 5, "g": list("abbaa") * 4})
    information = run.information()
    table = information.to_frame()
    assert len(table) == 2 + 2 + 6
    row = table[table["parameter"] == "coefficient of 'x' of 'y' at g='a'"].iloc[0]
    assert row["standard error"] == pytest.approx(information.standard_errors["y"]["coefficients"][0, 0])
    assert row["lower"] == pytest.approx(information.interval("y")["coefficients"].lower[0, 0])
    again = pickle.loads(pickle.dumps(information))
    assert repr(again) == repr(information)
    assert "<table" in information._repr_html_()


def test_fixed_nodes_are_known():
    """With the class probabilities known, those of the children have smaller errors; the fixed node has none."""
    rows = sf.load("asia").sample(200, seed=3).select(["smoke", "bronc", "dysp", "lung"])
    dag, hidden = sf.Dag("h -> smoke; h -> bronc; h -> dysp"), [sf.Finite("h", ["0", "1"])]
    free = sf.em(dag, rows, hidden=hidden, starts=3, tol=1e-9, max_iter=5000)
    known = sf.em(dag, rows, start=free.model, fixed=["h"], tol=1e-9, max_iter=5000)
    a, b = free.information().standard_errors["bronc"], known.information().standard_errors["bronc"]
    assert (b[np.isfinite(b)] <= a[np.isfinite(b)] * (1 + 1e-6)).all()
    with pytest.raises(sf.SufficeError, match="was fixed"):
        known.information().interval("h")


@pytest.mark.parametrize(
    ("how", "fact"),
    [
        ({"families": {"bet": sf.exponential.Beta()}}, r"'bet' is Beta\(\)"),
        ({"prior": sf.priors.KnownVariance(variance=1.0)}, "the variance of 'bet' is known"),
    ],
)
def test_what_has_no_information_is_refused_in_the_words_it_was_given(how: dict[str, Any], fact: str) -> None:
    rng = np.random.default_rng(0)
    rain = [None if i % 7 == 0 else s for i, s in enumerate(rng.choice(["no", "yes"], 80))]
    rows = {"rain": rain, "bet": rng.beta(2, 3, 80)}
    run = sf.em("rain -> bet", rows, **how)
    with pytest.raises(sf.SufficeError, match=f"^{fact}, and its intervals after EM are not known$"):
        run.information()
    prior = {k: v for k, v in how.items() if k == "prior"}
    with pytest.raises(sf.SufficeError, match=f"^{fact}, and gradient ascent does not move it: use em$"):
        sf.gradient(run.model, rows, **prior)
