"""scikit-learn's own checks of the adapters, and what they do with frames, pipelines, searches and weights."""

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import GammaRegressor, LinearRegression, LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import suffice as sf
from suffice.families.regressions.linear_moments import Linear
from suffice.families.regressions.responses import GammaLog, PoissonLog, Probit
from suffice.interfaces.estimators import (
    HMM,
    BayesNetClassifier,
    GaussianDiscriminant,
    GLMClassifier,
    GLMRegressor,
    NaiveBayesClassifier,
)

X, Y = load_iris(return_X_y=True)
CLASSIFIERS = [NaiveBayesClassifier(), GaussianDiscriminant(), BayesNetClassifier(), GLMClassifier()]


def not_of_rows_alone(estimator):
    """What a step is, depends on the steps around it."""
    names = ("check_methods_sample_order_invariance", "check_methods_subset_invariance")
    return dict.fromkeys(names, "rows are steps of a sequence") if isinstance(estimator, HMM) else {}


@pytest.mark.filterwarnings("ignore::suffice.SufficeNote")
@parametrize_with_checks([*CLASSIFIERS, GLMRegressor(), HMM(starts=2, tol=1e-3)], expected_failed_checks=not_of_rows_alone)
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def frame(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    colour = np.array(["red", "green", "blue"])[(y + rng.integers(0, 2, n)) % 3]
    size = pd.Categorical(np.array(["S", "L"])[(y + (rng.random(n) < 0.2)) % 2], categories=["S", "M", "L"], ordered=True)
    return pd.DataFrame({"weight": rng.normal(y, 1.0), "colour": colour, "size": size, "big": rng.random(n) < 0.3 + 0.4 * y}), y


def test_equal_to_those_of_scikit_learn():
    np.testing.assert_allclose(
        NaiveBayesClassifier(prior=None).fit(X, Y).predict_proba(X),
        GaussianNB(var_smoothing=0).fit(X, Y).predict_proba(X),
        atol=1e-10,
    )
    np.testing.assert_allclose(
        GaussianDiscriminant(sf.latent.Tied(), prior=None).fit(X, Y).predict_proba(X),
        LinearDiscriminantAnalysis(solver="lsqr").fit(X, Y).predict_proba(X),
        atol=1e-8,
    )
    weight = np.random.default_rng(0).random(150)
    peer = LogisticRegression(C=0.5, tol=1e-12, max_iter=1000, solver="newton-cg")
    for y in (Y, Y > 0):
        np.testing.assert_allclose(
            GLMClassifier(ridge=2).fit(X, y, weight).predict_proba(X), peer.fit(X, y, weight).predict_proba(X), atol=1e-8
        )


def test_regressions_equal_to_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)) * [1, 10, 0.1]
    eta = x @ [0.5, 0.05, 2.0]
    for family, y, peer in (
        (None, eta + rng.normal(size=200), Ridge(alpha=2)),
        (PoissonLog(), rng.poisson(np.exp(eta)), PoissonRegressor(alpha=0.01, tol=1e-12, solver="newton-cholesky")),
        (GammaLog(), rng.gamma(2.0, np.exp(eta)), GammaRegressor(alpha=0.01, tol=1e-12, solver="newton-cholesky")),
    ):
        model = GLMRegressor(family, ridge=2).fit(x, y)
        np.testing.assert_allclose(model.predict(x), peer.fit(x, y).predict(x), rtol=1e-7)
        assert model.network_["y"].coefficients.shape == (3,)


def regression_rows(n=200):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2))
    return x, rng.poisson(np.exp(x @ [0.5, -0.3]))


def test_a_family_that_is_given_has_its_own_ridge():
    x, y = regression_rows()
    peer = PoissonRegressor(alpha=500 / 200, tol=1e-12, solver="newton-cholesky").fit(x, y)
    for model in (
        GLMRegressor(PoissonLog(ridge=500)),
        GLMRegressor(PoissonLog(), ridge=500),
        GLMRegressor(PoissonLog(500), ridge=500),
    ):
        np.testing.assert_allclose(model.fit(x, y).predict(x), peer.predict(x), rtol=1e-7)
    shrunk = LogisticRegression(C=1 / 500, tol=1e-12, max_iter=1000, solver="newton-cg").fit(X, Y)
    np.testing.assert_allclose(
        GLMClassifier(sf.Logistic(ridge=500)).fit(X, Y).predict_proba(X), shrunk.predict_proba(X), atol=1e-8
    )
    likely = PoissonRegressor(alpha=0, tol=1e-12, solver="newton-cholesky").fit(x, y)
    np.testing.assert_allclose(GLMRegressor(PoissonLog()).fit(x, y).predict(x), likely.predict(x), rtol=1e-7)


def test_without_a_family_the_ridge_is_1():
    x, y = regression_rows()
    np.testing.assert_allclose(GLMRegressor().fit(x, y).predict(x), Ridge(alpha=1).fit(x, y).predict(x), rtol=1e-9)
    np.testing.assert_allclose(GLMRegressor(ridge=0).fit(x, y).predict(x), LinearRegression().fit(x, y).predict(x), rtol=1e-9)
    np.testing.assert_array_equal(
        GLMRegressor(Linear()).fit(x, y).predict(x), GLMRegressor(ridge=np.int64(0)).fit(x, y).predict(x)
    )
    peer = LogisticRegression(tol=1e-12, max_iter=1000, solver="newton-cg").fit(X, Y)
    np.testing.assert_allclose(GLMClassifier().fit(X, Y).predict_proba(X), peer.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (GLMRegressor(PoissonLog(ridge=5), ridge=2), "the ridge of PoissonLog is 5 and ridge=2.0: give one of the two"),
        (GLMClassifier(sf.Logistic(ridge=5), ridge=0), "the ridge of Logistic is 5 and ridge=0.0"),
        (GLMRegressor(ridge="much"), "must be a number from 0 up, not 'much'"),
        (GLMRegressor("poisson"), r"the family of GLMRegressor is an object, one of Linear\(\), .*; not 'poisson'"),
        (GLMRegressor(PoissonLog), r"PoissonLog\(\), .*; not the class PoissonLog"),
        (GLMRegressor(sf.Logistic()), "Logistic is a family of classes, and GLMRegressor predicts numbers: use GLMClassifier"),
        (GLMRegressor(Probit()), "Probit is a family of classes"),
        (GLMRegressor(sf.regressions.ProportionalOdds()), "ProportionalOdds is a family of classes"),
        (GLMRegressor(sf.regressions.BinomialLogit()), "BinomialLogit needs the name of .* that holds the trials"),
        (
            GLMRegressor(sf.regressions.BinomialLogit(trials="n")),
            "the trials 'n' of BinomialLogit is not one of the features, 'x0', 'x1'",
        ),
        (GLMRegressor(PoissonLog(offset="t")), "the offset 't' of PoissonLog is not one of the features"),
        (GLMRegressor(variables=["x0"]), "variables is a dict of names"),
        (GLMClassifier("logistic"), r"the family of GLMClassifier is an object, one of Logistic\(\), .*; not 'logistic'"),
        (GLMClassifier(PoissonLog()), "PoissonLog is a family of numbers, and GLMClassifier predicts classes: use GLMRegressor"),
        (GLMClassifier(sf.regressions.BinomialLogit(trials="x1")), "BinomialLogit is a family of numbers"),
    ],
    ids=repr,
)
def test_families_and_ridges_that_are_refused(model, words):
    with pytest.raises(sf.SufficeError, match=words):
        model.fit(*regression_rows())


def test_numbers_that_cannot_be_regressed_on():
    x, _ = regression_rows()
    for family in (None, GammaLog()):
        with pytest.raises(sf.SufficeError, match="'y' cannot be fitted: its values are all equal"):
            GLMRegressor(family, ridge=0).fit(x, np.full(200, 3.0))
    with pytest.raises(sf.SufficeError, match="y holds what is not a number, and GLMRegressor predicts numbers"):
        GLMRegressor().fit(x, ["a", "b"] * 100)


def test_means_of_trials_and_offsets_are_those_of_the_row():
    x, _ = regression_rows()
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"x": x[:, 0], "n": rng.integers(1, 20, 200)})
    rate = 1 / (1 + np.exp(-rows.x))
    model = GLMRegressor(sf.regressions.BinomialLogit(trials="n")).fit(rows, rng.binomial(rows.n, rate))
    cpd = model.network_["y"]
    np.testing.assert_allclose(model.predict(rows), rows.n / (1 + np.exp(-cpd.intercept - cpd.coefficients[0] * rows.x)))
    assert model.score(rows, rows.n * rate) > 0.95
    exposed = rows.assign(n=np.log(rows.n))
    model = GLMRegressor(PoissonLog(offset="n")).fit(exposed, rng.poisson(rows.n * rate))
    cpd = model.network_["y"]
    np.testing.assert_allclose(model.predict(exposed), rows.n * np.exp(cpd.intercept + cpd.coefficients[0] * rows.x))


def test_proportional_odds_of_classes_in_the_order_of_their_numbers():
    labels = np.array([-1, 2, 10])[Y]
    model = GLMClassifier(sf.regressions.ProportionalOdds(ridge=1)).fit(X, labels)
    rows = {**{f"x{j}": X[:, j] for j in range(4)}, "class": np.array(["a", "b", "c"])[Y]}
    graph = "; ".join(f"x{j} -> class" for j in range(4))
    cpd = sf.fit(graph, rows, families={"class": sf.regressions.ProportionalOdds(ridge=1)})["class"]
    np.testing.assert_allclose(model.network_["class"].cut_points, cpd.cut_points, rtol=1e-8)
    assert list(model.classes_) == [-1, 2, 10]
    assert model.score(X, labels) > 0.95
    with pytest.raises(
        sf.SufficeError, match="ProportionalOdds needs to know the order of the classes, which are text, as 'high'"
    ):
        GLMClassifier(sf.regressions.ProportionalOdds()).fit(X, np.array(["low", "mid", "high"])[Y])


def test_probit_of_two_classes():
    model = GLMClassifier(Probit(), ridge=0).fit(X[50:, :2], Y[50:])
    cpd = model.network_["class"]
    from scipy.stats import norm

    eta = cpd.intercept + X[50:, :2] @ cpd.coefficients.reshape(-1)
    np.testing.assert_allclose(model.predict_proba(X[50:, :2])[:, 1], norm.cdf(eta), atol=1e-10)


@pytest.mark.parametrize("model", [NaiveBayesClassifier(), BayesNetClassifier(), GLMClassifier()], ids=lambda m: type(m).__name__)
def test_frames_of_mixed_columns(model):
    rows, y = frame()
    model = clone(model).fit(rows, np.where(y == 1, "yes", "no"))
    assert list(model.feature_names_in_) == ["weight", "colour", "size", "big"]
    assert model.n_features_in_ == 4
    assert list(model.classes_) == ["no", "yes"]
    assert model.score(rows, np.where(y == 1, "yes", "no")) > 0.75
    assert model.network_.variables["size"].states == ("S", "M", "L")
    assert model.network_.variables["big"].states == ("false", "true")
    np.testing.assert_allclose(model.predict_proba(pl.from_pandas(rows)), model.predict_proba(rows))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(rows.rename(columns={"big": "large"}))
    with pytest.raises(sf.SufficeError, match=r"'pink' is not a state.* variables={'colour': Finite\('colour', "):
        model.predict(rows.assign(colour="pink"))
    with pytest.raises(sf.SufficeError, match=r"did you mean 'red'\? If it is one that no row of fit had"):
        model.predict(rows.assign(colour="redd"))


@pytest.mark.parametrize(
    "model", [NaiveBayesClassifier(), BayesNetClassifier(), GLMClassifier(), GLMRegressor()], ids=lambda m: type(m).__name__
)
def test_states_that_fit_does_not_see_can_be_declared(model):
    rows, y = frame()
    four = ["red", "green", "blue", "pink"]
    wide = rows.assign(colour=pd.Categorical(rows.colour, categories=four))
    pink = rows.assign(colour="pink")
    by_dtype = clone(model).fit(wide, y).predict(pink)
    declared = clone(model).set_params(variables={"colour": sf.Finite("colour", four)}).fit(rows, y).predict(pink)
    assert np.isfinite(declared).all()
    np.testing.assert_allclose(by_dtype, declared)


def test_missing_cells_of_frames():
    rows, y = frame()
    rows.loc[::5, "weight"] = np.nan
    rows.loc[::7, "colour"] = None
    model = NaiveBayesClassifier().fit(rows, y)
    assert np.isfinite(model.predict_proba(rows)).all()
    given = BayesNetClassifier(dag="class -> weight; class -> colour; colour -> weight").fit(rows, y)
    assert np.isfinite(given.predict_proba(rows)).all()
    with pytest.raises(sf.SufficeError, match="'weight' of X has missing cells"):
        GLMClassifier().fit(rows, y)
    whole, _ = frame()
    for regression in (GLMClassifier(), GLMRegressor()):
        with pytest.raises(sf.SufficeError, match="'colour' of X has missing cells"):
            regression.fit(whole, y).predict(whole.assign(colour=None))
    with pytest.raises(sf.SufficeError, match="infinity"):
        NaiveBayesClassifier().fit(rows.assign(weight=np.inf), y)


def test_missing_cells_of_arrays():
    gaps = X.copy()
    gaps[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    for model in (NaiveBayesClassifier(), GaussianDiscriminant(), GaussianDiscriminant(sf.latent.Tied()), BayesNetClassifier()):
        assert clone(model).fit(gaps, Y).score(gaps, Y) > 0.9
    with pytest.raises(ValueError, match="NaN"):
        GLMClassifier().fit(gaps, Y)


def test_declared_columns_bins_and_given_graphs():
    counts = np.random.default_rng(0).poisson(Y[:, None] + 1.0, (150, 2))
    model = NaiveBayesClassifier(variables={"x0": sf.Count, "x1": sf.Bins(3)}).fit(counts, Y)
    assert isinstance(model.network_.variables["x0"], sf.Count)
    assert isinstance(model.network_.variables["x1"], sf.Finite)
    with warnings.catch_warnings(action="error"):
        counted = GLMRegressor(variables={"x0": sf.Count}).fit(counts, Y)
    assert isinstance(counted.network_.variables["x0"], sf.Count)
    binned = BayesNetClassifier(bins=4, method=sf.HillClimb(), criterion=sf.BIC(), target="kind").fit(X, Y)
    assert all(v.n_states <= 4 for n, v in binned.network_.variables.items() if n != "kind")
    assert binned.score(X, Y) > 0.9
    given = BayesNetClassifier(dag="class -> x2; class -> x3; x2 -> x3").fit(X, Y)
    assert set(given.network_) == {"class", "x2", "x3"}
    assert given.score(X, Y) > 0.95
    with pytest.raises(sf.SufficeError, match="no node 'class'"):
        BayesNetClassifier(dag="x2 -> x3").fit(X, Y)
    with pytest.raises(sf.SufficeError, match="variables declares 'x9'"):
        NaiveBayesClassifier(variables={"x9": sf.Count}).fit(X, Y)
    with pytest.raises(sf.SufficeError, match="a feature has the name 'x1'"):
        NaiveBayesClassifier(target="x1").fit(X, Y)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
def test_clones_pickles_and_networks(model):
    model = clone(model).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-12)
    assert isinstance(model.network_, sf.BayesNet)
    assert model.network_.variables["class"].states == ("0", "1", "2")
    names = [f"x{j}" for j in range(4)]
    found = model.network_.predict_proba(dict(zip(names, X.T, strict=True)), "class")
    np.testing.assert_allclose(np.stack(list(found.values()), axis=1), model.predict_proba(X))
    assert repr(model).startswith(type(model).__name__)


def test_pipelines_and_searches():
    piped = make_pipeline(StandardScaler(), GaussianDiscriminant(sf.latent.Tied()))
    assert cross_val_score(piped, X, Y, cv=3).mean() > 0.9
    found = GridSearchCV(
        GaussianDiscriminant(), {"covariance": [sf.latent.Full(), sf.latent.Tied()], "prior": [None, sf.BGe()]}, cv=3
    ).fit(X, Y)
    assert found.best_score_ > 0.9
    ridges = GridSearchCV(GLMClassifier(), {"ridge": [0.1, 10.0]}, cv=3).fit(X, Y)
    assert ridges.best_params_["ridge"] in (0.1, 10.0)


@pytest.mark.parametrize("labels", [["", "a", "b"], [True, False, True], [-1.0, 2.0, 10.0], ["0", "00", "000"]], ids=str)
def test_labels_of_any_kind(labels):
    y = np.array(labels)[Y]
    model = NaiveBayesClassifier().fit(X, y)
    assert set(model.predict(X)) <= set(labels)
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    assert model.score(X, y) > 0.9


def test_weights_are_repeated_rows():
    times = np.random.default_rng(0).integers(0, 3, 150)
    for model in CLASSIFIERS:
        a, b = clone(model).fit(X, Y, sample_weight=times), clone(model).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
        np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-8)
    with pytest.raises(ValueError, match="weight"):
        NaiveBayesClassifier().fit(X, Y, sample_weight=-np.ones(150))


def test_rows_that_are_impossible_get_the_most_frequent_class():
    rows = pd.DataFrame({"a": list("uuuvv"), "b": list("sssst")})
    model = NaiveBayesClassifier(prior=None).fit(rows, [0, 0, 0, 1, 1])
    odd = pd.DataFrame({"a": ["u"], "b": ["t"]})
    assert np.isnan(model.predict_proba(odd)).all()
    assert model.predict(odd) == [0]


def test_without_scikit_learn_the_refusal_is_ours():
    code = "import sys; sys.modules['sklearn'] = None\nimport suffice.estimators"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "SufficeError: suffice.estimators needs scikit-learn: pip install suffice[sklearn]" in done.stderr
