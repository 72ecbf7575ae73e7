"""Regressions beside statsmodels, scikit-learn and scipy on the same rows: estimates, standard errors, deviance, likelihood."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

import suffice as sf
from suffice.engines.scan import scan
from suffice.learning.complete.irls import fit_regression

sm = pytest.importorskip("statsmodels.api")
STATES = np.array(["a", "b", "c"])


class Rows(NamedTuple):
    """Columns, and the same as a matrix: a constant, x, v, z=b, z=c."""

    columns: dict[str, Any]
    X: Any
    eta: Any


def rows(seed: int, n: int = 300) -> Rows:
    """Two numbers of different size, three states, weights, an offset and trials, and a response for each family."""
    rng = np.random.default_rng(seed)
    x, v, z = rng.normal(50, 8, n), rng.normal(0, 0.3, n), rng.integers(0, 3, n)
    X = np.column_stack([np.ones(n), x, v, z == 1, z == 2]).astype(float)
    eta = X @ [-1.0, 0.03, 0.8, -0.4, 0.5]
    offset, trials = rng.normal(0, 0.2, n), rng.integers(1, 12, n)
    whole = eta + offset
    yes = stats.norm.cdf(whole - 0.5)
    columns = {
        "x": x,
        "v": v,
        "z": STATES[z],
        "offset": offset,
        "trials": trials,
        "w": rng.integers(1, 5, n),
        "linear": whole + rng.normal(0, 0.7, n),
        "two": STATES[(rng.random(n) < yes).astype(int)],
        "three": STATES[(rng.random(n)[:, None] > np.column_stack([yes / 2, yes])).sum(axis=1)],
        "successes": rng.binomial(trials, yes),
        "count": rng.poisson(np.exp(whole)),
        "spread": rng.negative_binomial(1.5, 1.5 / (1.5 + np.exp(whole + 1))),
        "positive": rng.gamma(3.0, np.exp(whole) / 3.0),
        "inverse": rng.gamma(3.0, 1 / (2.0 + eta) / 3.0),
    }
    return Rows(columns, X, eta)


COUNTS = {n: sf.Count(n) for n in ("count", "spread", "successes", "trials")}


def fit(columns: dict[str, Any], child: str, family: Any, parents: str = "x v z", *, weights: str | None = None) -> Any:
    own = [*parents.split(), *(p for p in (family.offset, family.trials) if p)]
    names = {child, *own, *([weights] if weights else [])}
    table = {n: c for n, c in columns.items() if n in names}
    declared = {n: v for n, v in COUNTS.items() if n in table}
    data = scan(table, variables=declared, weights=weights)
    return sf.fit("; ".join(f"{p} -> {child}" for p in own) or child, data, families={child: family})[child].reorder(own)


def fitted_in_order(columns: dict[str, Any], child: str, family: Any, parents: str, weights: str | None = None) -> Any:
    """The same with its fit, whose parameters are in the order of the parents."""
    own = [*parents.split(), *(p for p in (family.offset, family.trials) if p)]
    names = {child, *own, *([weights] if weights else [])}
    declared = {n: v for n, v in COUNTS.items() if n in names}
    data = scan({n: c for n, c in columns.items() if n in names}, variables=declared, weights=weights)
    return fit_regression(data.schema[child], [data.schema[p] for p in own], data, family)


def estimate(cpd: Any) -> Any:
    return np.concatenate([np.ravel(cpd.intercept), np.ravel(cpd.coefficients)])


def links() -> Any:
    return sm.families.links


CASES = {
    "linear": (sf.regressions.Linear, lambda alpha: sm.families.Gaussian()),
    "two": (sf.regressions.Probit, lambda alpha: sm.families.Binomial(links().Probit())),
    "successes": (sf.regressions.BinomialLogit, lambda alpha: sm.families.Binomial()),
    "count": (sf.regressions.PoissonLog, lambda alpha: sm.families.Poisson()),
    "spread": (sf.regressions.NegativeBinomialLog, lambda alpha: sm.families.NegativeBinomial(alpha=alpha)),
    "positive": (sf.regressions.GammaLog, lambda alpha: sm.families.Gamma(links().Log())),
    "inverse": (sf.regressions.GammaInverse, lambda alpha: sm.families.Gamma(links().InversePower())),
}


def peer(name: str, r: Rows, alpha: float, weights: Any, offset: Any) -> Any:
    """statsmodels' GLM; a negative binomial at the alpha that was found here."""
    y = r.columns[name]
    if name == "two":
        y = (y == "b").astype(float)
    if name == "successes":
        y = np.column_stack([y, r.columns["trials"] - y])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the inverse link does not keep means above 0, says statsmodels
        model = sm.GLM(y, r.X, family=CASES[name][1](alpha), freq_weights=weights, offset=offset)
        dispersed = name in ("linear", "positive", "inverse")
        return model.fit(tol=1e-13, maxiter=500, tol_criterion="params", use_t=dispersed)


def log_density(name: str, r: Rows, mu: Any, dispersion: float) -> Any:
    """ln p of each row at its mean by scipy, at the dispersion of largest likelihood.

    statsmodels' llf takes another dispersion for a gamma (Pearson/(n − p)), R's logLik a third (deviance/n); ours is the gamma
    shape of largest likelihood, so that the log-likelihood is the maximum that it is called, and scores may be compared.
    """
    y = r.columns[name]
    shape = 1.0 / dispersion
    return {
        "linear": lambda: stats.norm.logpdf(y, mu, np.sqrt(dispersion)),
        "two": lambda: np.log(np.where(y == "b", mu, 1 - mu)),
        "successes": lambda: stats.binom.logpmf(y, r.columns["trials"], mu),
        "count": lambda: stats.poisson.logpmf(y, mu),
        "spread": lambda: stats.nbinom.logpmf(y, shape, shape / (shape + mu)),
        "positive": lambda: stats.gamma.logpdf(y, shape, scale=mu * dispersion),
        "inverse": lambda: stats.gamma.logpdf(y, shape, scale=mu * dispersion),
    }[name]()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("name", "with_offset"), [(n, o) for n in CASES for o in (False, True) if not (n == "inverse" and o)])
def test_statsmodels(name, with_offset, weighted):
    r = rows(3)
    family = CASES[name][0](
        **({"offset": "offset"} if with_offset else {}), **({"trials": "trials"} if name == "successes" else {})
    )
    cpd = fitted_in_order(r.columns, name, family, "x v z", "w" if weighted else None)
    w = r.columns["w"] if weighted else np.ones(len(r.X))
    theirs = peer(name, r, cpd.dispersion, w, r.columns["offset"] if with_offset else None)
    np.testing.assert_allclose(estimate(cpd), theirs.params, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(cpd.standard_errors, theirs.bse, rtol=2e-8)
    np.testing.assert_allclose(cpd.fitted.covariance, theirs.cov_params(), rtol=1e-7, atol=1e-12)
    assert cpd.fitted.deviance == pytest.approx(theirs.deviance, rel=1e-9)
    assert cpd.fitted.pearson == pytest.approx(theirs.pearson_chi2, rel=1e-8)
    assert cpd.fitted.dispersion == pytest.approx(theirs.scale, rel=1e-8)
    assert cpd.fitted.weight == w.sum()
    expected = w @ log_density(name, r, theirs.mu, cpd.dispersion)
    assert cpd.fitted.log_likelihood == pytest.approx(expected, rel=1e-9)
    if name in ("linear", "two", "count", "successes"):
        assert cpd.fitted.log_likelihood == pytest.approx(theirs.llf, rel=1e-9)
    low, high = cpd.interval(0.9)
    np.testing.assert_allclose(np.column_stack([low, high]), theirs.conf_int(0.1), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", [n for n in CASES if n != "two"])
def test_the_dispersion_is_that_of_largest_likelihood(name):
    """Where there is one: the log-likelihood falls to both sides of it."""
    r = rows(4)
    family = CASES[name][0](**({"trials": "trials"} if name == "successes" else {}))
    cpd = fitted_in_order(r.columns, name, family, "x v z")
    at = {**r.columns, "z": np.searchsorted(STATES, r.columns["z"])}
    mu = cpd.mean(at, len(r.X))
    best = log_density(name, r, mu, cpd.dispersion).sum()
    assert cpd.fitted.log_likelihood == pytest.approx(best, rel=1e-11)
    assert cpd.log_prob(at).sum() == pytest.approx(best, rel=1e-11)
    if not (family.dispersed or family.profiled):
        assert cpd.dispersion == 1.0
        return
    near = [log_density(name, r, mu, cpd.dispersion * f).sum() for f in (0.999, 1.001)]
    assert best > max(near)
    assert near[0] - near[1] == pytest.approx(0.0, abs=0.01 * (2 * best - sum(near)))


def test_negative_binomial_with_its_shape():
    """statsmodels' NegativeBinomial estimates both together."""
    r = rows(5)
    cpd = fitted_in_order(r.columns, "spread", sf.regressions.NegativeBinomialLog(), "x v z")
    model = sm.NegativeBinomial(r.columns["spread"], r.X)
    theirs = model.fit(
        start_params=[*estimate(cpd) * 0.99, cpd.dispersion * 1.1], method="newton", tol=1e-14, maxiter=200, disp=0
    )
    np.testing.assert_allclose([*estimate(cpd), cpd.dispersion], theirs.params, rtol=1e-8)
    assert cpd.fitted.log_likelihood == pytest.approx(theirs.llf, rel=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_of_statsmodels(weighted):
    r = rows(6)
    w = r.columns["w"] if weighted else np.ones(len(r.X))
    cpd = fitted_in_order(r.columns, "two", sf.Logistic(), "x v z", "w" if weighted else None)
    theirs = sm.GLM((r.columns["two"] == "b").astype(float), r.X, family=sm.families.Binomial(), freq_weights=w).fit(tol=1e-13)
    np.testing.assert_allclose(estimate(cpd), theirs.params, rtol=1e-8)
    np.testing.assert_allclose(cpd.standard_errors[0], theirs.bse, rtol=1e-8)
    f = cpd.fitted
    assert [f.deviance, f.pearson, f.log_likelihood] == pytest.approx([theirs.deviance, theirs.pearson_chi2, theirs.llf])


def test_multinomial_of_statsmodels():
    r = rows(7)
    cpd = fitted_in_order(r.columns, "three", sf.Logistic(), "x v z")
    theirs = sm.MNLogit(np.searchsorted(STATES, r.columns["three"]), r.X).fit(method="newton", tol=1e-14, disp=0)
    np.testing.assert_allclose(np.column_stack([cpd.intercept, cpd.coefficients]).T, theirs.params, rtol=1e-8)
    np.testing.assert_allclose(cpd.standard_errors.T, theirs.bse, rtol=1e-8)
    assert cpd.fitted.log_likelihood == pytest.approx(theirs.llf, rel=1e-12)


def test_offset_of_an_inverse_mean():
    r = rows(8)
    columns = {**r.columns, "offset": np.abs(r.columns["offset"])}
    cpd = fitted_in_order(columns, "inverse", sf.regressions.GammaInverse(offset="offset"), "x v")
    y, X, o = columns["inverse"], r.X[:, :3], columns["offset"]
    eta = X @ estimate(cpd) + o
    assert eta.min() > 0
    np.testing.assert_allclose(X.T @ (1 / eta - y), 0.0, atol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", [0.1, 5.0])
@pytest.mark.parametrize("child", ["two", "three"])
def test_logistic_ridge_of_scikit_learn(child, ridge, weighted):
    """C = 1/ridge. Of more than two states scikit-learn keeps coefficients for each, which sum to 0."""
    from sklearn.linear_model import LogisticRegression

    r = rows(9)
    cpd = fitted_in_order(r.columns, child, sf.Logistic(ridge=ridge), "x v", "w" if weighted else None)
    theirs = LogisticRegression(C=1 / ridge, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    theirs.fit(r.X[:, 1:3], r.columns[child], sample_weight=r.columns["w"] if weighted else None)
    first = 0 if child == "two" else theirs.coef_[:1]
    others = slice(0 if child == "two" else 1, None)
    np.testing.assert_allclose(cpd.coefficients, (theirs.coef_ - first)[others], rtol=1e-7, atol=1e-9)
    intercept = theirs.intercept_ - (0 if child == "two" else theirs.intercept_[0])
    np.testing.assert_allclose(cpd.intercept, intercept[others], rtol=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["linear", "count", "positive"])
def test_other_ridges_of_scikit_learn(name, weighted):
    """PoissonRegressor and GammaRegressor divide by the weight of all rows; Ridge does not."""
    from sklearn.linear_model import GammaRegressor, PoissonRegressor, Ridge

    r = rows(10)
    w = r.columns["w"] if weighted else np.ones(len(r.X))
    options = {"solver": "newton-cholesky", "tol": 1e-12, "max_iter": 1000}
    theirs = {
        "linear": lambda: Ridge(alpha=3.0, solver="cholesky"),
        "count": lambda: PoissonRegressor(alpha=3.0 / w.sum(), **options),
        "positive": lambda: GammaRegressor(alpha=3.0 / w.sum(), **options),
    }[name]()
    X = r.X[:, 1:3] - r.X[:, 1:3].mean(axis=0)
    theirs.fit(X, r.columns[name], sample_weight=w)
    columns = {**r.columns, "x": X[:, 0], "v": X[:, 1]}
    cpd = fitted_in_order(columns, name, CASES[name][0](ridge=3.0), "x v", "w" if weighted else None)
    np.testing.assert_allclose(estimate(cpd), [theirs.intercept_, *theirs.coef_], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", [*CASES, "three"])
def test_weights_are_repeated_rows(name):
    r = rows(11, 120)
    family = sf.Logistic() if name == "three" else CASES[name][0](**({"trials": "trials"} if name == "successes" else {}))
    weighted = fitted_in_order(r.columns, name, family, "x z", "w")
    again = {n: np.repeat(c, r.columns["w"]) for n, c in r.columns.items()}
    repeated = fitted_in_order(again, name, family, "x z")
    np.testing.assert_allclose(estimate(weighted), estimate(repeated), rtol=1e-8)
    a, b = weighted.fitted, repeated.fitted
    np.testing.assert_allclose(a.covariance, b.covariance, rtol=1e-7, atol=1e-14)
    for what in ("log_likelihood", "deviance", "pearson", "dispersion", "weight"):
        assert getattr(a, what) == pytest.approx(getattr(b, what), rel=1e-9)


def test_weights_that_add_up_to_one():
    """A scale of the weights changes no estimate, however small the weight of a row; it is no sign of separation."""
    r = rows(12)
    one = fitted_in_order(r.columns, "two", sf.Logistic(), "x v z")
    tiny = fitted_in_order({**r.columns, "w": np.full(300, 1e-9)}, "two", sf.Logistic(), "x v z", "w")
    np.testing.assert_allclose(estimate(tiny), estimate(one), rtol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_another_order_of_the_parents_takes_the_fit_along(name):
    r = rows(13)
    family = CASES[name][0](**({"trials": "trials"} if name == "successes" else {}))
    cpd = fitted_in_order(r.columns, name, family, "x v z")
    turned = cpd.reorder(["z", *cpd.parents[3:], "x", "v"])
    np.testing.assert_array_equal(turned.standard_errors, cpd.standard_errors[[0, 3, 4, 1, 2]])
    assert cpd.reorder(cpd.parents[1:]).fitted is None


def test_another_order_of_the_parents_of_a_multinomial():
    cpd = fitted_in_order(rows(13).columns, "three", sf.Logistic(), "x v z")
    turned = cpd.reorder(["z", "x", "v"])
    np.testing.assert_array_equal(turned.standard_errors, cpd.standard_errors[:, [0, 3, 4, 1, 2]])
    np.testing.assert_array_equal(turned.interval(0.9)[0], cpd.interval(0.9)[0][:, [0, 3, 4, 1, 2]])
    assert cpd.without({"x": 1.0}).fitted is None


@pytest.mark.parametrize("name", CASES)
def test_what_a_fit_shows(name):
    r = rows(13)
    trials = {"trials": "trials"} if name == "successes" else {}
    cpd = fit(r.columns, name, CASES[name][0](offset=None, **trials), "x z")
    assert cpd.terms == ("x", "z=b", "z=c")
    fitted_cpd = fitted_in_order(r.columns, name, CASES[name][0](**trials), "x z")
    frame = fitted_cpd.to_frame()
    assert list(frame["term"]) == ["(intercept)", "x", "z=b", "z=c"]
    z = frame["t" if fitted_cpd.family.dispersed else "z"]
    tail = stats.t(300 - 4) if fitted_cpd.family.dispersed else stats.norm()
    np.testing.assert_allclose(z, frame["estimate"] / frame["standard error"])
    np.testing.assert_allclose(frame["p"], 2 * tail.sf(np.abs(z)), rtol=1e-9)
    np.testing.assert_allclose(np.column_stack([frame["lower"], frame["upper"]]), np.column_stack(fitted_cpd.interval(0.95)))
    assert repr(fitted_cpd).startswith(f"p({name} | x, z")
