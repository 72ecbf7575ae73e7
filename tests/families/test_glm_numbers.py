"""Laws and digits of regressions: their sums are derivatives, certified values, invariances, and the same from files."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

import suffice as sf
from suffice.basis.variables import Count, Finite, Real
from suffice.engines.scan import scan
from suffice.families.design import Regressors, terms
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.learning.complete import irls
from suffice.learning.complete.irls import fit_regression

FAMILIES = {
    "linear": (Real("y"), sf.regressions.Linear()),
    "probit": (Finite("y", ["a", "b"]), sf.regressions.Probit()),
    "binomial": (Count("y"), sf.regressions.BinomialLogit(trials="n")),
    "poisson": (Count("y"), sf.regressions.PoissonLog()),
    "negative binomial": (Count("y"), sf.regressions.NegativeBinomialLog()),
    "gamma log": (Real("y"), sf.regressions.GammaLog()),
    "gamma inverse": (Real("y"), sf.regressions.GammaInverse()),
}
DISPERSION = {"negative binomial": 0.7}


def problem(name: str, seed: int, n: int = 25, offset: bool = False) -> tuple[Any, Any, Any, Any, Any]:
    """A family with its columns, a θ that is not the estimate, rows and weights."""
    rng = np.random.default_rng(seed)
    child, family = FAMILIES[name]
    family = replace(family, offset="o") if offset else family
    parents = (
        Real("x"),
        Finite("z", ["u", "v", "w"]),
        *([Real("o")] if offset else []),
        *([Count("n")] if family.trials else []),
    )
    columns = {"x": rng.normal(2, 1, n), "z": rng.integers(0, 3, n), "o": rng.uniform(0, 0.3, n)}
    columns["n"] = rng.integers(0, 7, n).astype(float)
    draws = {
        "linear": rng.normal(size=n),
        "probit": rng.integers(0, 2, n),
        "binomial": rng.binomial(columns["n"].astype(int), 0.4).astype(float),
        "poisson": rng.poisson(2, n).astype(float),
        "negative binomial": rng.poisson(3, n).astype(float),
    }
    columns["y"] = draws.get(name, rng.gamma(2, 1, n))
    at = Regressors(child, terms(parents, family.roles).parents, np.array([1.7, 0.0, 0.0]))
    theta = np.array([1.5, 0.2, -0.3, 0.4])
    return family, at, parents, columns, (theta, rng.gamma(1, 1, n))


def log_likelihood(family: Any, at: Any, parents: Any, columns: Any, theta: Any, weights: Any, dispersion: float = 1.0) -> float:
    cpd = RegressionCpd(at.child, parents, family, theta[0] - theta[1:] @ at.centre, theta[1:], dispersion, at.centre)
    return float(weights @ cpd.log_prob(columns))


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_sums_are_the_derivatives_of_log_prob(name, offset):
    """The gradient by differences of Σ w ln p, the curvature by differences of the gradient."""
    family, at, parents, columns, (theta, weights) = problem(name, 1, offset=offset)
    d = DISPERSION.get(name, 1.0)
    s = family.measure(at, theta, columns, weights, dispersion=d)
    h = 1e-5
    for j, e in enumerate(np.eye(4) * h):
        up, down = (log_likelihood(family, at, parents, columns, theta + t * e, weights, d) for t in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(s.gradient[j], rel=1e-7, abs=1e-7)
        up, down = (family.measure(at, theta + t * e, columns, weights, dispersion=d).gradient for t in (1, -1))
        np.testing.assert_allclose((down - up) / (2 * h), s.hessian[j], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(s.hessian, s.hessian.T)
    expected = family.measure(at, theta, columns, weights, dispersion=d, expected=True).hessian
    assert np.allclose(expected, s.hessian) == family.canonical


@pytest.mark.parametrize("name", FAMILIES)
def test_curvature_is_the_expected_one(name):
    """E[(dℓ/dη)²] over the child's values, which is E[−d²ℓ/dη²]; and E[(y − μ)²/V] = 1 (at dispersion 1)."""
    family, at, parents, columns, (theta, _) = problem(name, 2, 4)
    d = DISPERSION.get(name, 1.0)
    options = {"dispersion": d, "expected": True}
    whole = {
        "probit": np.arange(2),
        "binomial": np.arange(7.0),
        "poisson": np.arange(400.0),
        "negative binomial": np.arange(400.0),
    }
    grid = whole.get(name, np.linspace(-12, 16, 801) if name == "linear" else np.exp(np.linspace(-25, 6, 1201)))
    for i in range(4):
        y = grid[grid <= columns["n"][i]] if name == "binomial" else grid
        if name == "binomial" and len(y) < 2:
            continue
        row = {c: np.full(len(y), v[i]) for c, v in columns.items()} | {"y": y}
        one = np.ones(len(y))
        cpd = RegressionCpd(at.child, parents, family, theta[0] - theta[1:] @ at.centre, theta[1:], d, at.centre)
        width = 1.0 if name in whole else y[1] - y[0] if name == "linear" else y * np.log(y[1] / y[0])
        p = np.exp(cpd.log_prob(row)) * width
        assert p.sum() == pytest.approx(1.0, abs=1e-6)
        slopes = [family.measure(at, theta, {c: v[k : k + 1] for c, v in row.items()}, one[:1], **options) for k in _some(p)]
        q = p[_some(p)]
        curve = family.measure(at, theta, row, p, **options).hessian[0, 0]
        assert sum(w * s.gradient[0] ** 2 for w, s in zip(q, slopes, strict=True)) == pytest.approx(curve, rel=3e-5)
        assert sum(w * s.pearson for w, s in zip(q, slopes, strict=True)) == pytest.approx(1.0, rel=3e-5)


def _some(p: Any) -> Any:
    return np.flatnonzero(p > 1e-14 * p.max())


@pytest.mark.parametrize("name", FAMILIES)
def test_draws_have_the_mean_and_the_variance(name):
    family, at, parents, columns, (theta, _) = problem(name, 4, 1)
    columns = {**columns, "n": np.array([6.0])}
    d = DISPERSION.get(name, 0.3 if family.dispersed else 1.0)
    cpd = RegressionCpd(at.child, parents, family, theta[0] - theta[1:] @ at.centre, theta[1:], d, at.centre)
    many = {n: np.repeat(c, 200_000) for n, c in columns.items() if n != "y"}
    y = cpd.draw(many, np.random.default_rng(0), 200_000)
    mu = float(cpd.mean(columns, 1)[0])
    n = 6 if name == "binomial" else 1
    variance = {
        "linear": d,
        "probit": mu * (1 - mu),
        "binomial": 6 * mu * (1 - mu),
        "poisson": mu,
        "negative binomial": mu + d * mu**2,
    }.get(name, d * mu**2)
    assert y.mean() == pytest.approx(n * mu, abs=4 * np.sqrt(variance / 200_000))
    assert y.var() == pytest.approx(variance, rel=0.03)


# NIST StRD, Longley: public domain. TOTEMP, GNPDEFL, GNP, UNEMP, ARMED, POP, YEAR
LONGLEY = """60323 83 234289 2356 1590 107608 1947; 61122 88.5 259426 2325 1456 108632 1948
60171 88.2 258054 3682 1616 109773 1949; 61187 89.5 284599 3351 1650 110929 1950
63221 96.2 328975 2099 3099 112075 1951; 63639 98.1 346999 1932 3594 113270 1952
64989 99 365385 1870 3547 115094 1953; 63761 100 363112 3578 3350 116219 1954
66019 101.2 397469 2904 3048 117388 1955; 67857 104.6 419180 2822 2857 118734 1956
68169 108.4 442769 2936 2798 120445 1957; 66513 110.8 444546 4681 2637 121950 1958
68655 112.6 482704 3813 2552 123366 1959; 69564 114.2 502601 3931 2514 125368 1960
69331 115.7 518173 4806 2572 127852 1961; 70551 116.9 554894 4007 2827 130081 1962"""
CERTIFIED = [
    (-3482258.63459582, 890420.383607373),
    (15.0618722713733, 84.9149257747669),
    (-0.358191792925910e-01, 0.334910077722432e-01),
    (-2.02022980381683, 0.488399681651699),
    (-1.03322686717359, 0.214274163161675),
    (-0.511041056535807e-01, 0.226073200069370),
    (1829.15146461355, 455.478499142212),
]


def test_longley():
    """Certified by NIST: coefficients, their standard errors, and the residual standard deviation 304.854073561965."""
    numbers = np.array([[float(c) for c in r.split()] for r in LONGLEY.replace("\n", ";").split(";")])
    names = ["y", "deflator", "gnp", "unemployed", "forces", "population", "year"]
    data = scan(dict(zip(names, numbers.T, strict=True)))
    cpd = fit_regression(data.schema["y"], [data.schema[n] for n in names[1:]], data, sf.regressions.Linear())
    expected = np.array(CERTIFIED)
    np.testing.assert_allclose([cpd.intercept, *cpd.coefficients], expected[:, 0], rtol=1e-11)
    np.testing.assert_allclose(cpd.standard_errors, expected[:, 1], rtol=1e-11)
    assert np.sqrt(cpd.fitted.dispersion) == pytest.approx(304.854073561965, rel=1e-12)
    assert cpd.fitted.log_likelihood == pytest.approx(-109.6174348084912, rel=1e-13)


STACKLOSS = """80 27 89 42; 80 27 88 37; 75 25 90 37; 62 24 87 28; 62 22 87 18; 62 23 87 18; 62 24 93 19; 62 24 93 20; 58 23 87 15
58 18 80 14; 58 18 89 14; 58 17 88 13; 58 18 82 11; 58 19 93 12; 50 18 89 8; 50 18 86 7; 50 19 72 8; 50 19 79 8; 50 20 80 9
56 20 82 15; 70 20 91 15"""


def test_stackloss():
    """Brownlee's data, as statsmodels prints its ordinary least squares."""
    numbers = np.array([[float(c) for c in r.split()] for r in STACKLOSS.replace("\n", ";").split(";")])
    data = scan(dict(zip(["air", "water", "acid", "loss"], numbers.T, strict=True)))
    cpd = fit_regression(data.schema["loss"], [data.schema[n] for n in ("air", "water", "acid")], data, sf.regressions.Linear())
    np.testing.assert_allclose(
        [cpd.intercept, *cpd.coefficients], [-39.91967442, 0.7156402005, 1.2952861244, -0.1521225191], rtol=1e-9
    )
    assert cpd.fitted.log_likelihood == pytest.approx(-52.28779550239973, rel=1e-13)


def columns(n: int = 400, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x, v, z = rng.normal(size=n), rng.normal(size=n), rng.integers(0, 3, n)
    eta = 0.3 + 0.5 * x - 0.4 * v + 0.3 * (z == 2)
    trials = rng.integers(1, 9, n)
    return {
        "x": x,
        "v": v,
        "z": np.array(list("abc"))[z],
        "linear": eta + rng.normal(size=n),
        "probit": np.array(["no", "yes"])[(rng.random(n) < stats.norm.cdf(eta)).astype(int)],
        "trials": trials,
        "binomial": rng.binomial(trials, 1 / (1 + np.exp(-eta))),
        "poisson": rng.poisson(np.exp(eta)),
        "negative binomial": rng.negative_binomial(2, 2 / (2 + np.exp(eta))),
        "gamma log": rng.gamma(2, np.exp(eta) / 2),
        "gamma inverse": rng.gamma(2, 1 / (3 + eta - eta.min()) / 2),
        "softmax": np.array(list("pqr"))[
            (rng.random(n)[:, None] > np.sort(rng.random((n, 2)) * np.exp(eta)[:, None])).sum(1) % 3
        ],
    }


NAMES = [*FAMILIES, "softmax"]
COUNTED = ("trials", "binomial", "poisson", "negative binomial")


def family_of(name: str) -> Any:
    return {"softmax": sf.Logistic(), "binomial": sf.regressions.BinomialLogit(trials="trials")}.get(name) or FAMILIES[name][1]


def opened(table: Any, name: str, parents: str, **options: Any) -> tuple[Any, Any, Any]:
    family = family_of(name)
    own = [*parents.split(), *([family.trials] if family.trials else [])]
    columns = {n: table[n] for n in (*own, name)} if isinstance(table, dict) else table
    counted = {n: Count(n) for n in (*own, name) if n in COUNTED}
    data = scan(columns, variables={**counted, **options.pop("variables", {})}, **options)
    return data.schema[name], [data.schema[p] for p in own], data


def regression(table: Any, name: str, parents: str = "x v z", *, threads: int | None = None, **options: Any) -> Any:
    return fit_regression(*opened(table, name, parents, **options), family_of(name), threads=threads)


def numbers(cpd: Any) -> Any:
    return np.concatenate([np.ravel(cpd.intercept), np.ravel(cpd.coefficients)])


@pytest.mark.parametrize("name", NAMES)
def test_large_numbers_keep_their_digits(name):
    table = columns()
    plain = regression(table, name)
    for shift, scale, tolerance in ((1e9, 1.0, 1e-6), (1e5, 1.0, 1e-9), (0.0, 1e120, 1e-9), (0.0, 1e-120, 1e-9)):
        other = regression({**table, "x": table["x"] * scale + shift}, name)
        unit = np.array([1 / scale, 1, 1, 1])
        np.testing.assert_allclose(other.coefficients, plain.coefficients * unit, rtol=tolerance)  # x + 1e9 is rounded by 6e-8
        assert other.fitted.log_likelihood == pytest.approx(plain.fitted.log_likelihood, rel=0.1 * tolerance)


def test_a_large_mean_of_a_linear_child_costs_no_digits():
    table = columns()
    plain = regression(table, "linear")
    y = np.round(table["linear"], 4)  # of 12 bits below the point, so that adding 1e9 loses little
    exact = np.round(y * 4096) / 4096
    plain, far = (regression({**table, "linear": exact + shift}, "linear") for shift in (0.0, 1e9))
    np.testing.assert_allclose(far.coefficients, plain.coefficients, rtol=1e-10)
    np.testing.assert_allclose(far.fitted.pearson, plain.fitted.pearson, rtol=1e-10)
    assert far.fitted.log_likelihood == pytest.approx(plain.fitted.log_likelihood, rel=1e-11)


def log_gamma(z: Decimal) -> Decimal:
    """ln Γ(z) by Stirling's series, of numbers large enough to have 25 digits."""
    series = 1 / (12 * z) - 1 / (360 * z**3) + 1 / (1260 * z**5) - 1 / (1680 * z**7)
    return (z - Decimal("0.5")) * z.ln() - z + (2 * Decimal("3.14159265358979323846264338327950288")).ln() / 2 + series


def exact_log_prob(name: str, y: Decimal, eta: Decimal, n: Decimal, s: Decimal) -> Decimal:
    choose = log_gamma(n + 1) - log_gamma(y + 1) - log_gamma(n - y + 1)
    if name == "poisson":
        return y * eta - eta.exp() - log_gamma(y + 1)
    if name == "binomial":
        return y * eta - n * (1 + eta.exp()).ln() + choose
    shift = Decimal(1)  # ln Γ(s) by ln Γ(s + 5000), which the series has
    for k in range(5000):
        shift *= s + k
    rising = log_gamma(y + s) - (log_gamma(s + 5000) - shift.ln()) - log_gamma(y + 1)
    return rising + y * eta + s * s.ln() - (y + s) * (s + eta.exp()).ln()


@pytest.mark.parametrize("name", ["poisson", "binomial", "negative binomial"])
@pytest.mark.parametrize("size", [1e4, 1e9, 1e12])
def test_large_counts_keep_their_digits(name, size):
    """Deviance and log-likelihood are some units a row, and ln y! is 1e10 and more: against 50 digits."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=12)
    mean = size * np.exp(0.1 * x)
    noise = {"negative binomial": 0.3 * mean}.get(name, np.sqrt(mean)) * rng.normal(size=12)
    table = {"x": x, name: np.round(mean + noise), "trials": np.round(4 * mean)}
    cpd = regression(table, name, "x")
    with localcontext() as context:
        context.prec = 50
        a, b, s = (Decimal(float(v)) for v in (cpd.intercept, cpd.coefficients[0], 1 / cpd.dispersion))
        total = deviance = Decimal(0)
        for row, y, n in zip(*(map(Decimal, map(float, table[c])) for c in ("x", name, "trials")), strict=True):
            best = (y / (n - y)).ln() if name == "binomial" else y.ln()
            here, there = (exact_log_prob(name, y, eta, n, s) for eta in (a + b * row, best))
            total, deviance = total + here, deviance + 2 * (there - here)
    # η has an error of 2e-15, which is this in ℓ where y is far from μ
    assert cpd.fitted.log_likelihood == pytest.approx(float(total), rel=1e-10)
    assert cpd.fitted.deviance == pytest.approx(float(deviance), rel=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_invariances(name):
    """Rows and parents in another order, and other first states, change nothing but the names of the effects."""
    table = columns()
    plain = regression(table, name)
    order = np.random.default_rng(5).permutation(400)
    shuffled = regression({n: c[order] for n, c in table.items()}, name)
    np.testing.assert_allclose(numbers(shuffled), numbers(plain), rtol=1e-8, atol=1e-10)
    turned = regression(table, name, "z v x").reorder(plain.parents)
    np.testing.assert_allclose(numbers(turned), numbers(plain), rtol=1e-8, atol=1e-10)
    relabelled = regression(table, name, variables={"z": Finite("z", ["c", "a", "b"])})
    b = plain.coefficients
    np.testing.assert_allclose(relabelled.coefficients[..., 2], -b[..., 3], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(relabelled.coefficients[..., 3], b[..., 2] - b[..., 3], rtol=1e-7, atol=1e-9)
    for what in ("log_likelihood", "deviance", "pearson"):
        values = [getattr(c.fitted, what) for c in (plain, shuffled, relabelled)]
        assert values == pytest.approx([values[0]] * 3, rel=1e-8)


def test_a_probit_turned_around():
    table = columns()
    plain = regression(table, "probit")
    turned = regression(table, "probit", variables={"probit": Finite("probit", ["yes", "no"])})
    np.testing.assert_allclose(numbers(turned), -numbers(plain), rtol=1e-9)


@pytest.mark.parametrize("name", ["poisson", "softmax", "gamma log"])
def test_files_and_threads_give_the_same_bits(name, tmp_path):
    import pandas as pd

    table = columns(40_000)
    names = ["x", "v", "z", name]
    pd.DataFrame({n: table[n] for n in names}).to_csv(tmp_path / "rows.csv", index=False)
    one, two = (regression(table, name, threads=t) for t in (1, 2))
    spilled = regression(tmp_path / "rows.csv", name, memory_limit=0)
    for other in (two, spilled):
        np.testing.assert_array_equal(numbers(other), numbers(one))
        np.testing.assert_array_equal(other.fitted.covariance, one.fitted.covariance)


@pytest.mark.parametrize("name", ["poisson", "gamma inverse", "probit"])
def test_a_sample_gives_a_start_and_nothing_else(name, monkeypatch):
    table = columns(30_000)
    plain = regression(table, name)
    monkeypatch.setattr(irls, "MANY", 1000)
    monkeypatch.setattr(irls, "SAMPLE", 500)
    started = regression(table, name)
    assert started.fitted.iterations < plain.fitted.iterations
    np.testing.assert_allclose(numbers(started), numbers(plain), rtol=1e-9)


def test_a_sample_that_leads_nowhere(monkeypatch):
    """The few rows of the sample know nothing of an x far out, where their estimate has a mean below 0."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, 3000)
    x[1] = -60.0
    table = {"x": x, "gamma inverse": rng.gamma(4, 1 / (3 + 0.045 * x) / 4)}
    table["gamma inverse"][::30] = rng.gamma(4, 1 / (1 + 4 * x[::30]) / 4)
    plain = regression(table, "gamma inverse", "x")
    monkeypatch.setattr(irls, "MANY", 1000)
    monkeypatch.setattr(irls, "SAMPLE", 100)
    np.testing.assert_allclose(numbers(regression(table, "gamma inverse", "x")), numbers(plain), rtol=1e-8)


@pytest.mark.parametrize("near", [1e-3, 1e-5])
@pytest.mark.parametrize("name", NAMES)
def test_nearly_collinear_parents(name, near):
    """The likelihood still is the largest: that of the same columns in a basis of their own."""
    table = columns()
    table["u"] = table["x"] + near * np.random.default_rng(3).normal(size=400)
    table["d"] = (table["u"] - table["x"]) / near
    close, apart = regression(table, name, "x u"), regression(table, name, "x d")
    assert close.fitted.log_likelihood == pytest.approx(apart.fitted.log_likelihood, rel=1e-10)
    np.testing.assert_allclose(close.coefficients[..., 1] * near, apart.coefficients[..., 1], rtol=1e-4, atol=1e-7)


def test_finite_parents_alone_need_no_rows():
    """The contingency table is enough: the likelihood is that of its cells."""
    table = columns(5000)
    child, parents, data = opened({**table, "g": np.array(list("pq"))[(table["x"] > 0).astype(int)]}, "softmax", "z g")
    whole = fit_regression(child, parents, data, sf.Logistic())
    rows = irls.maximise(child, parents, data, sf.Logistic())
    np.testing.assert_allclose(numbers(whole), numbers(rows), rtol=1e-9, atol=1e-11)
    assert whole.fitted.log_likelihood == pytest.approx(rows.fitted.log_likelihood, rel=1e-12)


def test_steps_never_lower_the_objective(monkeypatch):
    seen = []
    uphill = irls.Ascent._uphill

    def watched(self, theta, s, here, step):
        ahead, there, value = uphill(self, theta, s, here, step)
        seen.append((s.log_likelihood, there.log_likelihood))
        return ahead, there, value

    monkeypatch.setattr(irls.Ascent, "_uphill", watched)
    table = columns()
    table["x"] = table["x"] ** 3  # far rows: a first step of a Poisson regression goes too far
    for name in NAMES:
        if name != "negative binomial":
            regression(table, name)
    assert all(b >= a - 1e-9 * abs(a) for a, b in seen)
    assert len(list(pairwise(seen))) > 20
