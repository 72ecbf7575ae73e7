"""Weights over five orders of magnitude, and one number a million deviations out: the right estimate, or a clear word."""

from __future__ import annotations

import numpy as np
import pytest

import suffice as sf
from suffice.errors import FitError

N = 300
RNG = np.random.default_rng(0)
X = RNG.normal(size=N)
SCALES = [1e-5, 1.0, 1e5]


def drawn(x):
    """Responses of each family; the mean of each as a function of the predictor."""
    eta = 0.3 * np.clip(x, -3, 3)
    rng = np.random.default_rng(1)
    return {
        "logistic": (sf.Logistic(), (rng.random(N) < 1 / (1 + np.exp(-eta))).astype(float), lambda t: 1 / (1 + np.exp(-t))),
        "poisson": (sf.regressions.PoissonLog(), rng.poisson(np.exp(eta)).astype(float), np.exp),
        "linear": (sf.regressions.Linear(), 1.0 + 2.0 * x + rng.normal(size=N), lambda t: t),
    }


@pytest.mark.parametrize("name", ["logistic", "poisson", "linear"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("far", [False, True])
def test_regressions_solve_their_equations(name, scale, far):
    """Σ w (y − μ) x = 0 and Σ w (y − μ) = 0, which only the estimate does."""
    x = X.copy()
    x[0] = 1e6 if far else x[0]
    w = scale * 10.0 ** np.random.default_rng(2).uniform(0, 5, N)
    family, y, mean = drawn(x)[name]
    child = {"logistic": np.where(y > 0, "b", "a"), "poisson": y, "linear": y}[name]
    variables = {"y": sf.Count("y")} if name == "poisson" else {}
    cpd = sf.fit("x -> y", sf.scan({"x": x, "y": child, "w": w}, weights="w", variables=variables), families={"y": family})["y"]
    theta = np.ravel(cpd.theta)
    residual = w * (y - mean(theta[0] + theta[1] * x))
    size = np.abs(residual).sum()
    assert residual.sum() == pytest.approx(0.0, abs=1e-6 * size)
    assert (residual * x).sum() == pytest.approx(0.0, abs=1e-6 * (np.abs(residual * x)).sum())
    assert np.all(np.isfinite(cpd.fitted.standard_errors))


@pytest.mark.parametrize("scale", SCALES)
def test_em_and_tables(scale):
    rng = np.random.default_rng(3)
    c, s = rng.choice(["a", "b"], N), rng.choice(["u", "v", "w"], N)
    w = scale * 10.0 ** rng.uniform(0, 5, N)
    gaps = np.where(rng.random(N) < 0.1, None, s)
    run = sf.em("c -> s", sf.scan({"c": c, "s": gaps, "w": w}, weights="w"), tol=0, max_iter=100)
    there = gaps != None  # noqa: E711
    for i, state in enumerate("ab"):
        shares = [w[there & (c == state) & (s == t)].sum() for t in "uvw"]
        assert run.model["s"].probs[i] == pytest.approx(np.array(shares) / sum(shares), rel=1e-6)


def test_a_number_far_out_in_em_and_mixtures():
    y = 2.0 * X + np.random.default_rng(4).normal(size=N)
    far = y.copy()
    far[0] = 1e6
    gaps = [None if i % 9 == 4 else v for i, v in enumerate(X)]
    assert sf.em("x -> y", {"x": gaps, "y": far}).converged
    line = sf.fit("x -> y", {"x": X, "y": far})["y"]
    assert line.coefficients[0] == pytest.approx(np.polyfit(X, far, 1)[0], rel=1e-9)
    with pytest.raises(FitError, match="collapsed"):
        sf.em("h -> y", {"y": far}, hidden=[sf.Finite("h", ["0", "1"])], starts=2)
    prior = (sf.Dirichlet(1), sf.NormalInverseGamma())
    run = sf.em("h -> y", {"y": far}, hidden=[sf.Finite("h", ["0", "1"])], prior=prior, starts=2)
    assert np.all(np.isfinite(run.model["y"].intercept))
