"""Partial pooling of numbers: linear mixed models from moments.

The reference numbers are those of statsmodels 0.14, with g, t, y as below:

    X = np.column_stack([np.ones(96), t])
    sm.MixedLM(y, X, g, exog_re=None or X).fit(reml=False or True, method=["bfgs", "lbfgs"], gtol=1e-12)
    .fe_params, .bse_fe, .cov_re, .scale, .llf, .random_effects
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import FitError, SufficeNote

G, T, J = np.repeat(np.arange(12), 8), np.tile(np.linspace(-1.0, 1.0, 8), 12), np.arange(96)
Y = 1.0 + 2.0 * T + np.sin(3.1 * G) + 0.6 * np.cos(1.3 * G) * T + 0.5 * np.sin(12.9898 * J)
ROWS = {"g": [f"g{i:02}" for i in G], "t": T, "y": Y}
FIXED = [1.043564299062, 2.067437489135]


def fitted(data: Any = None, graph: str = "t -> y", **pooling: Any) -> Any:
    plate = sf.plates.Plate(graph, group="g", inside=["y"], pooling=sf.plates.Partial(**pooling))
    return sf.fit(plate, ROWS if data is None else data)["y"]


@pytest.mark.parametrize(
    ("restricted", "variance", "scale", "log_likelihood"),
    [
        (False, 0.112528100948, 0.17997468630885596, -64.6535327083804),
        (True, 0.124532048982, 0.18214305602350525, -67.75082606960385),
    ],
    ids=["ML", "REML"],
)
def test_random_intercepts_are_those_of_statsmodels(restricted, variance, scale, log_likelihood):
    effects = fitted(restricted=restricted).effects
    np.testing.assert_allclose(effects.fixed, [FIXED], rtol=1e-9)
    np.testing.assert_allclose(effects.covariance, [[variance]], rtol=1e-6)
    assert effects.variance == pytest.approx(scale, rel=1e-6)
    assert effects.log_likelihood == pytest.approx(log_likelihood, abs=1e-7)


SLOPES = {
    False: ([[0.132571729168, 0.082276995871], [0.082276995871, 0.327379294355]], 0.019625650146303644, 5.013732217483266),
    True: ([[0.144846724715, 0.089756723483], [0.089756723483, 0.357661411876]], 0.019625650261902383, 2.777219236444182),
}
ERRORS = {False: [0.10607581229, 0.166609183999], True: [0.11079257308, 0.17401761402]}
DRAWS = {
    False: [[0.248171010286, 0.573099240274], [0.044303118905, 1.002728321995]],
    True: [[0.248361277054, 0.573822706748], [0.043923639404, 1.004411891678]],
}


@pytest.mark.parametrize("restricted", [False, True], ids=["ML", "REML"])
def test_random_slopes_are_those_of_statsmodels(restricted):
    """To 1e-6; statsmodels' own optimum is some 1e-8 below in the likelihood."""
    cpd, (covariance, scale, log_likelihood) = fitted(slopes=["t"], restricted=restricted), SLOPES[restricted]
    np.testing.assert_allclose(cpd.effects.fixed, [FIXED], rtol=1e-6)
    np.testing.assert_allclose(cpd.effects.fixed_errors, [ERRORS[restricted]], rtol=1e-6)
    np.testing.assert_allclose(cpd.effects.covariance, covariance, rtol=1e-6)
    assert cpd.effects.variance == pytest.approx(scale, rel=1e-6)
    assert cpd.effects.log_likelihood == pytest.approx(log_likelihood, abs=1e-7)
    draws = np.column_stack([cpd.intercept, cpd.coefficients[:, 0]])[[0, 5]] - cpd.effects.fixed[0]
    np.testing.assert_allclose(draws, DRAWS[restricted], atol=1e-6)
    assert cpd.n_parameters == 2 + 3 + 1


def marginal(effects: Any, rows: dict[str, Any]) -> float:
    """ln p of all rows, group by group, from the dense normal distribution that the effects say."""
    from scipy.stats import multivariate_normal

    total, g, z = 0.0, np.array(rows["g"]), np.array(rows["z"])
    for name in np.unique(g):
        own = g == name
        X = np.column_stack([np.ones(own.sum()), rows["t"][own], rows["v"][own]])
        mean = np.where(z[own] == "a", X @ effects.fixed[0], X @ effects.fixed[1])
        Z = X[:, [0, 2]]
        total += multivariate_normal(mean, Z @ effects.covariance @ Z.T + effects.variance * np.eye(own.sum())).logpdf(
            rows["y"][own]
        )
    return float(total)


def test_unbalanced_groups_and_other_parents():
    """The likelihood is that of the dense normal distribution, and nowhere near higher; far centres cost no digits."""
    rng = np.random.default_rng(0)
    n = 150
    g, z, t, v = rng.integers(0, 9, n), rng.integers(0, 2, n), rng.normal(size=n), rng.normal(1e4, 3.0, n)
    draws = rng.multivariate_normal([0, 0], [[1.0, 0.2], [0.2, 0.3]], 9)
    y = 1 + z + t + (0.5 - z) * (v - 1e4) + draws[g, 0] + draws[g, 1] * (v - 1e4) + rng.normal(size=n)
    rows = {"g": [f"g{i}" for i in g], "z": np.array(["a", "b"])[z].tolist(), "t": t, "v": v, "y": y}
    shifted = rows | {"v": v - 1e4}
    far, near = (fitted(r, "z -> y; t -> y; v -> y", slopes=["v"]) for r in (rows, shifted))
    assert near.effects.log_likelihood == pytest.approx(marginal(near.effects, shifted), abs=1e-8)
    assert far.effects.log_likelihood == pytest.approx(near.effects.log_likelihood, abs=1e-6)
    np.testing.assert_allclose(far.coefficients, near.coefficients, rtol=1e-6, atol=1e-8)
    e = near.effects
    for other in (
        e._replace(fixed=e.fixed + 1e-3),
        e._replace(variance=e.variance * 1.01),
        e._replace(covariance=e.covariance + 1e-2 * np.eye(2)),
        e._replace(covariance=e.covariance - 1e-2 * np.eye(2)),
    ):
        assert marginal(other, shifted) < e.log_likelihood


def test_a_network_with_random_effects_is_updated_predicted_and_written(tmp_path):
    plate = sf.plates.Plate("t -> y", group="g", inside=["y"], pooling=sf.plates.Partial(slopes=["t"]))
    known = {"g": sf.Finite("g", sorted(set(ROWS["g"])))}
    parts = [sf.scan({n: c[s] for n, c in ROWS.items()}, variables=known) for s in (slice(0, 60), slice(60, 96))]
    after = sf.fit(plate, parts[0]).update(parts[1])
    np.testing.assert_allclose(after["y"].effects.covariance, SLOPES[False][0], rtol=1e-6)
    path = tmp_path / "mixed.json"
    sf.write(after, path)
    again = sf.read(path)
    assert np.array_equal(again["y"].intercept, after["y"].intercept)
    assert again["y"].n_parameters == after["y"].n_parameters
    answer = after.query("y", given={"g": "g05", "t": 0.5})
    assert answer.mean == pytest.approx(FIXED[0] + DRAWS[False][1][0] + 0.5 * (FIXED[1] + DRAWS[False][1][1]), abs=1e-5)


def test_groups_that_do_not_differ():
    y = 1.0 + T + np.tile([0.3, -0.3, 0.2, -0.2, -0.1, 0.1, 0.25, -0.25], 12)
    with pytest.warns(SufficeNote, match="the groups of 'y' do not differ in the intercept"):
        effects = fitted({**ROWS, "y": y}).effects
    assert effects.covariance[0, 0] < 1e-8


def test_what_is_refused():
    with pytest.raises(FitError, match="slopes names 'u', which is not a parent of 'y' that is a number"):
        fitted(slopes=["u"])
    with pytest.raises(FitError, match=r"'y' is inside of a plate with Partial\(\) and has the family Linear"):
        sf.fit(
            sf.plates.Plate("t -> y", group="g", inside=["y"], pooling=sf.plates.Partial()),
            ROWS,
            families={"y": sf.regressions.Linear()},
        )
    with pytest.raises(FitError, match="the lines of its groups leave nothing but rounding"):
        fitted({**ROWS, "y": 1.0 + 2.0 * T + G})
    states = {"g": ROWS["g"], "y": ["a", "b"] * 48}
    with pytest.raises(FitError, match="slopes are of numbers"):
        sf.fit(sf.plates.Plate("y", group="g", pooling=sf.plates.Partial(slopes=["t"])), states)
    with pytest.raises(FitError, match="no intervals of single groups"):
        fitted().interval()
