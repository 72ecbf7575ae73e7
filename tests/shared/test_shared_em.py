"""EM with numbers on the shared tables: mixtures against REFERENCE.md, and tables with missing cells.

Run by `make reference`; it needs the folder ../shared, or the one that SUFFICE_SHARED names.
"""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.learning.incomplete.objective import Collapsed
from suffice.learning.incomplete.problem import ParameterProblem, problem_of

TABLES = Path(os.environ.get("SUFFICE_SHARED", Path(__file__).parents[3] / "shared")) / "data" / "tables"


def full(columns: list[str]) -> str:
    """A mixture with full covariances as a network: the class and every earlier column are parents of each column."""
    edges = [("class", c) for c in columns] + list(combinations(columns, 2))
    return "; ".join(f"{a} -> {b}" for a, b in edges)


def hidden(n: int) -> sf.Finite:
    return sf.Finite("class", [str(k) for k in range(n)])


def climbed(problem: ParameterProblem, theta: Any, max_iter: int = 1000) -> tuple[float, Any]:
    """The objective where EM ends; it never falls on the way."""
    before = -np.inf
    for _ in range(max_iter):
        expected = problem.expect(theta)
        objective = expected.log_likelihood + problem.log_prior(theta)
        assert objective > before - 1e-9 * (1.0 + abs(objective))
        if objective - before < 1e-11 * abs(objective):
            break
        before, theta = objective, problem.maximise(expected.statistic)
    return objective, theta


def best(problem: ParameterProblem, starts: int) -> tuple[float, Any]:
    ends = []
    for seed in range(starts):
        try:
            ends.append(climbed(problem, problem.random(np.random.default_rng(seed))))
        except Collapsed:
            continue
    return max(ends, key=lambda end: end[0])


def test_old_faithful() -> None:
    """Two components of full covariances (mixtools prints -1130.264)."""
    problem = problem_of(full(["eruptions", "waiting"]), sf.scan(TABLES / "faithful.csv"), hidden=[hidden(2)])
    log_likelihood, theta = best(problem, 2)
    assert log_likelihood == pytest.approx(-1130.263960184809, abs=1e-7)
    cpds: Any = problem.cpds(theta)
    short = int(np.argmin(cpds["eruptions"].intercept))
    wanted = [
        (short, 0.3558729, (2.036388561, 54.478517451), (0.069167757, 0.435168509, 33.697288105)),
        (1 - short, 0.6441271, (4.289662068, 79.968116317), (0.169968316, 0.940607793, 36.046194135)),
    ]
    for k, weight, means, covariance in wanted:
        a, b, v, w = (
            float(x[k])
            for x in (
                cpds["eruptions"].intercept,
                cpds["waiting"].coefficients[:, 0],
                cpds["eruptions"].variance,
                cpds["waiting"].variance,
            )
        )
        assert cpds["class"].probs[k] == pytest.approx(weight, abs=1e-6)
        assert (a, cpds["waiting"].intercept[k] + b * a) == pytest.approx(means, abs=1e-5)
        assert (v, b * v, w + b * b * v) == pytest.approx(covariance, abs=1e-4)


@pytest.mark.parametrize(("n", "wanted"), [(2, -214.35470437), (3, -180.18547713)])
def test_iris(n: int, wanted: float) -> None:
    columns = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
    problem = problem_of(full(columns), sf.scan(TABLES / "iris.csv"), hidden=[hidden(n)])
    assert best(problem, 5)[0] == pytest.approx(wanted, abs=1e-6)


def test_penguins() -> None:
    """Mixed columns with missing numbers and missing states; with a hidden class on top."""
    data = sf.scan(TABLES / "penguins.csv", variables={"year": sf.Finite})
    graph = (
        "species -> island; species -> bill_length_mm; sex -> bill_length_mm; species -> flipper_length_mm; sex -> body_mass_g; "
        "flipper_length_mm -> body_mass_g; species -> body_mass_g; bill_length_mm -> bill_depth_mm; species -> bill_depth_mm"
    )
    problem = problem_of(graph, data)
    objective, theta = climbed(problem, problem.first())
    assert np.isfinite(objective)
    bn = problem.network(theta, problem.expect(theta).statistic, "EM")
    assert 0.45 < bn.query("sex")["male"] < 0.55
    prior = (sf.Dirichlet(1), sf.NormalInverseGamma())
    mixture = problem_of(graph.replace("species", "class"), data, hidden=[hidden(3)], prior=prior)
    assert np.isfinite(best(mixture, 2)[0])


def test_airquality() -> None:
    """Numbers only, two columns with missing cells: all iterations by moments, no row is read again."""
    data = sf.scan(TABLES / "airquality.csv")
    names = ["Wind", "Temp", "Solar.R", "Ozone"]
    problem: Any = problem_of(sf.Dag(list(combinations(names, 2))), data)
    objective, theta = climbed(problem, problem.first())
    assert not problem.components.reduced.rows
    turned: Any = problem_of(sf.Dag(list(combinations(names[::-1], 2))), data)
    assert climbed(turned, turned.first())[0] == pytest.approx(objective, abs=1e-6)
    assert float(problem.cpds(theta)["Wind"].intercept) == pytest.approx(9.957516, abs=1e-6)
