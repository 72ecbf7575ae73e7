"""Plots show the numbers that the results have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pytest

import suffice as sf

matplotlib.use("Agg")

import matplotlib.pyplot as plt

ASIA = sf.load("asia")
ROWS = ASIA.sample(300, seed=1)
FITTED = sf.fit(ASIA.dag, ROWS, prior=sf.BDeu(1))
RNG = np.random.default_rng(0)
X = np.r_[RNG.normal(0, 1, 60), RNG.normal(5, 1, 40)]
F = np.where(RNG.random(100) < np.r_[np.full(60, 0.8), np.full(40, 0.1)], "u", "v")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def xs(ax: Any) -> list[float]:
    return sorted(float(x) for line in ax.lines for x in np.atleast_1d(line.get_xdata()))


def test_axes_are_given_or_made() -> None:
    _, own = plt.subplots()
    found = sf.search(ROWS, method=sf.HillClimb())
    assert found.plot(own) is own
    assert found.plot() is not own
    line = max(own.lines, key=lambda line: len(line.get_ydata()))
    assert line.get_ydata().tolist() == [s.score for s in found.trace]


def test_all_starts_of_em() -> None:
    data = {"a": list("uvuv") * 10, "b": list("xxyy") * 10}
    run = sf.em("h -> a; h -> b", data, hidden=[sf.Finite("h", ["0", "1"])], starts=4, seed=0, prior=sf.Dirichlet(1), max_iter=20)
    assert len(run.traces) == 4
    assert run.traces[0] == run.trace
    assert [t[-1].objective for t in run.traces] == sorted((t[-1].objective for t in run.traces), reverse=True)
    drawn = [line.get_ydata().tolist() for line in run.plot().lines]
    assert all([i.objective for i in trace] in drawn for trace in run.traces)


def test_a_distribution_with_intervals_and_cells_that_no_row_had() -> None:
    cpd = FITTED["either"]
    ax = cpd.plot()
    assert cpd.unsupported.any()
    assert "no row had it" in [t.get_text() for t in ax.get_legend().get_texts()]
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white" and len(line.get_xdata())]
    assert sum(len(line.get_xdata()) for line in hollow) == cpd.unsupported.sum() * 2
    assert sorted(p for p in cpd.probs.ravel().tolist()) == pytest.approx(xs(ax))
    assert len(ASIA["asia"].plot().collections) == 0  # no posterior, no intervals


def test_distributions_of_numbers_and_regressions() -> None:
    bn = sf.fit("f -> x", {"x": X, "f": F}, prior={"x": sf.NormalInverseGamma(), "f": sf.BDeu(1)})
    cpd = bn["x"]
    assert xs(cpd.plot()) == pytest.approx(sorted([*cpd.intercept.tolist(), *cpd.variance.tolist()]))
    logistic = sf.fit("x -> f", {"x": X, "f": F}, families={"f": sf.Logistic(0.1)})["f"]
    assert set(np.round(logistic.theta, 9)) <= set(np.round(xs(logistic.plot()), 9))
    density = bn.query("x").plot()
    assert density.get_xlabel() == "x"
    counts = sf.fit("c", sf.scan({"c": [0, 1, 2, 3, 1, 0]}, variables={"c": sf.Count("c")}))
    assert counts.query("c").plot().lines
    drawn = bn.query("x", method=sf.methods.LikelihoodWeighting(500)).plot()
    assert drawn.patches


def test_answers() -> None:
    answer = FITTED.query("lung", {"xray": "yes"}, interval=0.95)
    ax = answer.plot()
    assert [p.get_width() for p in ax.patches] == answer.probs.tolist()
    assert ax.get_title() == "p(lung | xray=yes)"
    assert len(FITTED.query(["lung", "tub"]).plot().patches) == 4
    many = sf.Finite("x", [f"$s_{i}$" for i in range(1000)])
    wide = sf.BayesNet("x", {"x": np.full(1000, 1e-3)}, variables=[many]).query("x").plot()
    assert len(wide.patches) == 40
    assert "of 1,000" in wide.get_title()
    wide.figure.savefig("/dev/null", format="png")


def test_strengths_chains_folds_and_gaps() -> None:
    sure = sf.bootstrap(ROWS, n=10)
    strengths = {round(e.strength, 9) for e in sure.edges}
    assert strengths <= {round(x, 9) for x in xs(sure.plot())}
    posterior = sf.methods.order_mcmc(ROWS, samples=50, max_parents=2)
    points = max(posterior.plot().lines, key=lambda line: len(line.get_xdata()))
    assert len(points.get_xdata()) == 8 * 7
    folds = sf.cross_validate(ROWS, ASIA.dag, folds=3, prior=sf.BDeu(1))
    assert {f.per_row for f in folds.folds} <= set(xs(folds.plot()))
    fits = {"a": lambda rows: sf.fit(ASIA.dag, rows, prior=sf.BDeu(1)), "b": lambda rows: sf.naive_bayes(rows, "lung")}
    assert [t.get_text() for t in sf.cross_validate(ROWS, fits, folds=2, target="lung").plot().get_yticklabels()] == ["a", "b"]
    report = sf.missingness({"x": ["a", None, "b", "a"], "y": ["u", "v", None, "u"], "z": list("pqpq")})
    ax = report.plot()
    assert [t.get_text() for t in ax.get_xticklabels()] == ["x", "y"]
    assert sum(p.get_height() for p in ax.patches) == pytest.approx(2.0)
    assert sf.missingness({"x": ["a", "b"]}).plot() is not None


def test_mixtures() -> None:
    run = sf.mixture({"x": X, "f": F}, range(1, 4), starts=3)
    ax = run.plot(column="x")
    assert len(ax.lines) == 1 + run.k
    at = ax.lines[0].get_xdata()
    parts = sum(line.get_ydata() for line in ax.lines[1:])
    assert ax.lines[0].get_ydata() == pytest.approx(run.model.query("x").density(at))
    assert parts == pytest.approx(ax.lines[0].get_ydata())
    assert len(run.plot(column="f").lines) == run.k
    assert run.plot().get_ylabel() == "objective"
    assert run.choices is not None
    assert run.choices.plot().lines[0].get_ydata().tolist() == [c.value for c in run.choices]


def test_searches_of_undirected_graphs_and_with_missing_cells() -> None:
    numbers = {"a": X, "b": X + RNG.normal(size=100), "c": RNG.normal(size=100)}
    found = sf.search(numbers, method=sf.GraphicalLasso())
    assert found.plot().lines[0].get_ydata().tolist() == [entry.criterion for entry in found.path]
    trees = sf.search(ROWS, method=sf.Decomposable())
    assert [s.score for s in trees.trace] in [line.get_ydata().tolist() for line in trees.plot().lines]
    run = sf.structural_em({"x": ["a", "b", None, "b"] * 9, "y": ["u", "v", "u", "v"] * 9})
    assert run.plot().get_ylabel() == "objective"
    assert run.picture().svg() == run.dag.picture().svg()
