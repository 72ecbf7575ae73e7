"""Naive Bayes and Gaussian discriminants as networks, and the direct way to the posterior of a class."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import CategoricalNB, GaussianNB

import suffice as sf
from suffice.families.regressions.logistic import Logistic
from suffice.incomplete.rows import RowEvidence
from suffice.models.rows.posteriors import _infer_rows, direct_rows, row_posterior
from suffice.recipes.classifiers import check_labelled, discriminant, from_incomplete, naive_bayes

IRIS = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)
NORMAL = (sf.Dirichlet(1), sf.NormalInverseGamma())


def table(X, y):
    return {**{f"x{j}": column for j, column in enumerate(np.asarray(X).T)}, "y": np.asarray(y).astype(str)}


def proba(bn, rows, target="y"):
    return np.stack(list(bn.predict_proba(rows, target).values()), axis=1)


def mixed_rows(seed=0, n=300):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return {
        "y": np.array(["a", "b", "c"])[y].astype(object),
        "x": rng.normal(y, 1.0 + y),
        "c": np.array(["u", "v", "w"])[(y + rng.integers(0, 2, n)) % 3].astype(object),
        "n": rng.poisson(1.0 + 3 * y).astype(float),
    }


def with_gaps(rows, columns, seed=1, share=0.25):
    rng = np.random.default_rng(seed)
    result = dict(rows)
    for name in columns:
        lost = rng.random(len(rows[name])) < share
        result[name] = np.where(lost, None if rows[name].dtype == object else np.nan, rows[name])
    return result


COUNTS = {"n": sf.Count}


@pytest.mark.parametrize("data", [IRIS, WINE], ids=["iris", "wine"])
def test_gaussian_naive_bayes_is_that_of_scikit_learn(data):
    X, y = data
    rows = table(X, y)
    np.testing.assert_allclose(
        proba(naive_bayes(rows, "y", prior=None), rows), GaussianNB(var_smoothing=0).fit(X, y).predict_proba(X), atol=1e-10
    )


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_categorical_naive_bayes_is_that_of_scikit_learn(alpha):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    X = (y[:, None] + rng.integers(0, 3, (200, 4))) % 4
    rows = {k: v.astype(int).astype(str) for k, v in table(X, y).items()}
    bn = naive_bayes(rows, "y", prior=sf.Dirichlet(alpha))
    shares = (np.bincount(y) + alpha) / (200 + 3 * alpha)  # scikit-learn does not smooth the classes
    peer = CategoricalNB(alpha=alpha, class_prior=shares).fit(X, y)
    np.testing.assert_allclose(proba(bn, rows), peer.predict_proba(X), atol=1e-12)


def test_columns_of_every_kind_are_multiplied():
    rows = mixed_rows()
    bn = naive_bayes(rows, "y", variables=COUNTS)
    few = {k: v[:50] for k, v in rows.items() if k != "y"}
    logs = np.log(bn["y"].probs) + np.zeros((50, 3))
    for k in range(3):
        logs[:, k] += stats.norm.logpdf(few["x"], bn["x"].intercept[k], np.sqrt(bn["x"].variance[k]))
        logs[:, k] += stats.poisson.logpmf(few["n"], bn["n"].rates[k])
        logs[:, k] += np.log(bn["c"].probs[k][[bn["c"].child.code(s) for s in few["c"]]])
    expected = np.exp(logs - logs.max(axis=1, keepdims=True))
    np.testing.assert_allclose(proba(bn, few), expected / expected.sum(axis=1, keepdims=True), atol=1e-12)


def test_the_default_prior_is_laplace_and_one_row():
    bn = naive_bayes({"c": ["u", "u", "v"], "y": ["a", "a", "b"]}, "y")
    np.testing.assert_allclose(bn["c"].probs, [[3 / 4, 1 / 4], [1 / 3, 2 / 3]])
    np.testing.assert_allclose(bn["y"].probs, [3 / 5, 2 / 5])
    assert bn["c"].interval(0.9).lower.shape == (2, 2)


def test_missing_cells_of_features_are_exact():
    rows = with_gaps(mixed_rows(), ["x", "c", "n"])
    data = sf.scan(rows, COUNTS)
    bn = naive_bayes(data, "y")
    shown = ~np.isnan(rows["x"])
    one = naive_bayes({"x": rows["x"][shown], "y": rows["y"][shown]}, "y", prior=sf.NormalInverseGamma(mean=0.3, variance=2.0))
    same = naive_bayes(data, "y", prior=(sf.Dirichlet(1), sf.NormalInverseGamma(mean=0.3, variance=2.0), sf.priors.Gamma()))
    np.testing.assert_allclose(same["x"].variance, one["x"].variance, rtol=1e-12)
    by_em = sf.fit(bn.dag, data, prior=(sf.Dirichlet(1), sf.NormalInverseGamma(), sf.priors.Gamma()))
    for name, what in (("x", "intercept"), ("x", "variance"), ("c", "probs"), ("n", "rates"), ("y", "probs")):
        np.testing.assert_allclose(getattr(bn[name], what), getattr(by_em[name], what), rtol=1e-3)  # EM stops a little before
    assert bn.log_likelihood() == pytest.approx(bn.log_likelihood(data), rel=1e-12)


def test_weights_are_repeated_rows_also_with_missing_cells():
    rows = with_gaps(mixed_rows(n=60), ["x", "n"])
    times = np.random.default_rng(2).integers(0, 4, 60)
    weighted = naive_bayes(sf.scan(rows, COUNTS, weights=times), "y")
    repeated = naive_bayes({k: np.repeat(v, times) for k, v in rows.items()}, "y", variables=COUNTS)
    for name in ("y", "x", "c", "n"):
        a, b = (bn[name].seen for bn in (weighted, repeated))
        np.testing.assert_allclose(*((s.values if hasattr(s, "values") else s.scatter) for s in (a, b)), rtol=1e-10)


def test_missing_cells_in_prediction_are_summed_out():
    rows = mixed_rows()
    bn = naive_bayes(rows, "y", variables=COUNTS)
    less = naive_bayes(rows, "y", ["c", "n"], variables=COUNTS)
    gone = {**rows, "x": np.full(300, np.nan)}
    np.testing.assert_allclose(proba(bn, gone), proba(less, {k: rows[k] for k in ("c", "n")}), atol=1e-12)


def test_rows_without_a_class_are_learned_from():
    rows = with_gaps(mixed_rows(), ["y"])
    bn = naive_bayes(rows, "y", variables=COUNTS)
    assert bn.incomplete
    assert "EM" in bn.fit_info


def test_statistics_of_two_sites_give_the_network_of_both():
    rows = table(*IRIS)
    parts = [{k: v[i::2] for k, v in rows.items()} for i in (0, 1)]
    whole = naive_bayes(rows, "y")
    np.testing.assert_allclose(
        naive_bayes(sum(sf.gather(p, whole.dag) for p in parts), "y")["x2"].variance, whole["x2"].variance, rtol=1e-12
    )
    for kind in (sf.latent.Full(), sf.latent.Tied(), sf.latent.Spherical()):
        chained = discriminant(rows, "y", covariance=sf.latent.Full()).dag
        both = discriminant(sum(sf.gather(p, chained) for p in parts), "y", covariance=kind)
        np.testing.assert_allclose(proba(both, rows), proba(discriminant(rows, "y", covariance=kind), rows), atol=1e-9)


@pytest.mark.parametrize("data", [IRIS, WINE], ids=["iris", "wine"])
def test_discriminants_are_those_of_scikit_learn(data):
    X, y = data
    rows = table(X, y)
    linear = proba(discriminant(rows, "y", covariance=sf.latent.Tied()), rows)
    for solver in ("lsqr", "eigen"):
        np.testing.assert_allclose(linear, LinearDiscriminantAnalysis(solver=solver).fit(X, y).predict_proba(X), atol=1e-8)
    by_formula = quadratic(X, y)
    np.testing.assert_allclose(proba(discriminant(rows, "y"), rows), by_formula, atol=1e-8)
    peer = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
    # Some versions of scikit-learn divide by N − 1: only one that divides by N, as maximum likelihood does, gives the same.
    if np.allclose(peer.covariance_[0], np.cov(X[y == 0].T, bias=True)):
        np.testing.assert_allclose(peer.predict_proba(X), by_formula, atol=1e-8)


def quadratic(X, y, kind="full"):
    """p(class | x) by the densities of normals of largest likelihood."""
    logs = []
    for c in np.unique(y):
        own = X[y == c]
        S = np.cov(own.T, bias=True)
        if kind == "spherical":
            S = np.eye(len(S)) * np.trace(S) / len(S)
        logs.append(np.log(len(own) / len(X)) + stats.multivariate_normal(own.mean(axis=0), S).logpdf(X))
    logs = np.stack(logs, axis=1)
    probs = np.exp(logs - logs.max(axis=1, keepdims=True))
    return probs / probs.sum(axis=1, keepdims=True)


def test_spherical_and_diagonal_covariances():
    X, y = IRIS
    rows = table(X, y)
    np.testing.assert_allclose(
        proba(discriminant(rows, "y", covariance=sf.latent.Spherical()), rows), quadratic(X, y, "spherical"), atol=1e-10
    )
    np.testing.assert_allclose(
        proba(discriminant(rows, "y", covariance=sf.latent.Diagonal()), rows),
        GaussianNB(var_smoothing=0).fit(X, y).predict_proba(X),
        atol=1e-10,
    )


@pytest.mark.parametrize("kind", [sf.latent.Full(), sf.latent.Tied(), sf.latent.Diagonal(), sf.latent.Spherical()])
def test_columns_far_from_zero_lose_no_digits(kind):
    X, y = IRIS
    far = table(np.rint(X * 64) / 64 + 1e9, y)  # numbers that doubles hold exactly there
    near = table(np.rint(X * 64) / 64, y)
    a, b = (discriminant(rows, "y", covariance=kind) for rows in (far, near))
    for name in ("x0", "x3"):
        np.testing.assert_allclose(a[name].variance, b[name].variance, rtol=1e-9)
        np.testing.assert_allclose(a[name].coefficients, b[name].coefficients, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(proba(a, far), proba(b, near), atol=1e-5)  # an intercept of 1e9 has seven digits behind the point


@pytest.mark.parametrize("prior", [NORMAL, (sf.Dirichlet(1), sf.BGe())], ids=["NormalInverseGamma", "BGe"])
def test_tied_posterior_means_by_formula(prior):
    X, y = IRIS
    bn = discriminant(table(X, y), "y", covariance=sf.latent.Tied(), prior=prior)
    counts = np.bincount(y)
    np.testing.assert_allclose(bn["y"].probs, (counts + 1) / 153)
    for j in range(4):
        said = bn.prior.imagine(sf.Real(f"x{j}"), [bn.variables["y"], *(sf.Real(f"x{i}") for i in range(j))]).at(np.arange(3))
        kappa, m0, S, nu = said.count[0], said.mean[0], said.scatter[0].copy(), said.df[0]
        at = []
        for c in range(3):
            own = X[y == c][:, : j + 1]
            off = own.mean(axis=0) - m0
            S += np.cov(own.T, bias=True).reshape(j + 1, j + 1) * len(own) + kappa * len(own) / (kappa + len(own)) * np.outer(
                off, off
            )
            at.append((len(own) * own.mean(axis=0) + kappa * m0) / (kappa + len(own)))
        b = np.linalg.solve(S[:j, :j], S[:j, j])
        v = (S[j, j] - b @ S[:j, j]) / (nu + 150 - 2)
        np.testing.assert_allclose(bn[f"x{j}"].coefficients, np.tile(b, (3, 1)), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(bn[f"x{j}"].variance, np.full(3, v), rtol=1e-10)
        np.testing.assert_allclose(bn[f"x{j}"].intercept, [m[j] - b @ m[:j] for m in at], rtol=1e-8)


@pytest.mark.parametrize("prior", [None, NORMAL, (sf.Dirichlet(1), sf.BGe())], ids=["mle", "NormalInverseGamma", "BGe"])
def test_of_one_class_tied_is_full_and_of_one_column_spherical_is_diagonal(prior):
    X, y = IRIS
    alone = {**table(X, y), "y": ["all"] * 150}
    a, b = (discriminant(alone, "y", covariance=kind, prior=prior) for kind in (sf.latent.Full(), sf.latent.Tied()))
    for name in ("x0", "x1", "x2", "x3"):
        np.testing.assert_allclose(a[name].coefficients, b[name].coefficients, rtol=1e-8)
        np.testing.assert_allclose(a[name].variance, b[name].variance, rtol=1e-10)
    one = table(X[:, :1], y)
    a, b = (discriminant(one, "y", covariance=kind, prior=prior) for kind in (sf.latent.Diagonal(), sf.latent.Spherical()))
    np.testing.assert_allclose(a["x0"].variance, b["x0"].variance, rtol=1e-10)
    np.testing.assert_allclose(a["x0"].intercept, b["x0"].intercept, rtol=1e-10)


def test_what_is_shared_is_counted_once():
    rows = table(*IRIS)
    n = {
        type(k): discriminant(rows, "y", covariance=k).n_parameters
        for k in (sf.latent.Full(), sf.latent.Tied(), sf.latent.Diagonal(), sf.latent.Spherical())
    }
    assert list(n.values()) == [2 + 3 * (4 + 10), 2 + 3 * 4 + 10, 2 + 3 * 8, 2 + 3 * 5]


@pytest.mark.parametrize("kind", [sf.latent.Tied(), sf.latent.Spherical()])
@pytest.mark.parametrize("prior", [None, NORMAL], ids=["mle", "bayes"])
def test_what_is_shared_has_no_posterior_of_its_own(kind, prior):
    bn = discriminant(table(*IRIS), "y", covariance=kind, prior=prior)
    assert bn.statistics is None
    for ask in (bn["x1"].interval, lambda: bn["x0"].predictive({"y": "1"})):
        with pytest.raises(sf.SufficeError, match="shares its variance with other classes or columns"):
            ask()
    with pytest.raises(sf.SufficeError, match=r"keeps no statistics .* \(a discriminant, .* covariance, from 150 rows"):
        bn.update(table(*IRIS))


@pytest.mark.parametrize("kind", [sf.latent.Tied(), sf.latent.Spherical()])
@pytest.mark.parametrize("prior", [None, NORMAL], ids=["mle", "bayes"])
def test_em_of_complete_rows_is_the_closed_form(kind, prior):
    rows = table(*IRIS)
    closed = discriminant(rows, "y", covariance=kind, prior=prior)
    from suffice.families.priors.priors import as_prior

    by_em = from_incomplete(check_labelled(rows, "y", None, None), kind, as_prior(prior), sf.Mean())
    for name in ("x0", "x3"):
        np.testing.assert_allclose(by_em[name].variance, closed[name].variance, rtol=1e-9)
        np.testing.assert_allclose(by_em[name].intercept, closed[name].intercept, rtol=1e-7)
    assert by_em.n_parameters == closed.n_parameters


def test_em_of_incomplete_rows_with_one_class_is_that_of_the_full_covariance():
    X, _ = IRIS
    rows = with_gaps({**table(X, np.zeros(150)), "y": np.array(["all"] * 150, dtype=object)}, ["x0", "x1", "x2"])
    tied, full = (discriminant(rows, "y", covariance=kind) for kind in (sf.latent.Tied(), sf.latent.Full()))
    assert tied.log_likelihood(rows) == pytest.approx(full.log_likelihood(rows), abs=1e-4)


@pytest.mark.parametrize("kind", [sf.latent.Full(), sf.latent.Tied(), sf.latent.Diagonal(), sf.latent.Spherical()])
def test_incomplete_rows_with_and_without_classes(kind):
    X, y = IRIS
    rows = with_gaps({**table(X, y), "y": y.astype(str).astype(object)}, ["x0", "x1", "x2", "x3", "y"], share=0.15)
    bn = discriminant(rows, "y", covariance=kind)
    found = bn.predict({k: v for k, v in rows.items() if k != "y"}, "y")
    assert (found == y.astype(str)).mean() > 0.85
    assert np.isfinite(bn.log_likelihood(rows))


@pytest.mark.parametrize("kind", [sf.latent.Full(), sf.latent.Tied(), sf.latent.Diagonal(), sf.latent.Spherical()])
def test_a_discriminant_is_a_network(kind, tmp_path):
    rows = table(*IRIS)
    bn = discriminant(rows, "y", covariance=kind)
    assert bn.query("y", {"x0": 5.0}).probs.sum() == pytest.approx(1.0)
    assert bn.sample(5, seed=0).num_rows == 5
    sf.write(bn, tmp_path / "bn.json")
    again = sf.read(tmp_path / "bn.json")
    np.testing.assert_array_equal(proba(again, rows), proba(bn, rows))
    assert again.n_parameters == bn.n_parameters
    assert again.bic(rows) == bn.bic(rows)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: naive_bayes(table(*IRIS), "kind"), "no column 'kind' of classes"),
        (lambda: naive_bayes(table(*IRIS), "x0"), "variables={'x0': Finite}"),
        (lambda: naive_bayes(table(*IRIS), 3), "the target is the name"),
        (lambda: naive_bayes(table(*IRIS), "y", "x0"), "a list of names"),
        (lambda: naive_bayes(table(*IRIS), "y", ["x_0"]), "did you mean 'x0'"),
        (lambda: naive_bayes(table(*IRIS), "y", ["y"]), "is the target"),
        (lambda: naive_bayes(table(*IRIS), "y", ["x0", "x0"]), "twice"),
        (lambda: naive_bayes(table(*IRIS), "y", []), "no column besides 'y'"),
        (lambda: naive_bayes(table(*IRIS), "y", estimate="mean"), r"Mean\(\) or Mode\(\)"),
        (
            lambda: naive_bayes({"x": [1.0, 2.0, 3.0], "y": ["a", "a", "b"]}, "y", prior=None),
            r"'x' .* y='b': the class has 1 row",
        ),
        (lambda: naive_bayes({"x": [1.0, 1.0, 2.0, 3.0], "y": list("aabb")}, "y", prior=None), "'x' .* constant there"),
        (lambda: naive_bayes({"x": [None, None], "y": ["a", "b"]}, "y"), "every cell of 'x' is missing"),
        (lambda: naive_bayes({"x": [], "y": []}, "y"), "no rows"),
        (lambda: discriminant(table(*IRIS), "y", covariance="full"), r"Full\(\), Tied\(\)"),
        (lambda: discriminant({"c": ["u", "v"], "y": ["a", "b"]}, "y"), "'c' is Finite"),
        (lambda: discriminant(collinear(), "y"), "'x4' .* determined by the others"),
        (
            lambda: discriminant(collinear(), "y", covariance=sf.latent.Tied()),
            "'x4' is a linear combination of 'x0', 'x1', 'x2', 'x3'",
        ),
        (lambda: discriminant({"x": [1.0, 1.0], "y": ["a", "b"]}, "y", covariance=sf.latent.Tied()), "'x' does not vary within"),
        (lambda: discriminant({"x": [1.0, 2.0, 4.0], "y": ["a", "a", "b"]}, "y", covariance=sf.latent.Spherical()), "1 row"),
        (lambda: discriminant({"x": [1.0, 2.0, 4.0], "y": ["a", "a", "b"]}, "y"), "1 row"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(sf.SufficeError, match=words):
        call()


def collinear():
    rows = table(*IRIS)
    return {**rows, "x4": rows["x0"] + rows["x1"]}


@pytest.mark.parametrize("kind", [sf.latent.Full(), sf.latent.Tied(), sf.latent.Diagonal(), sf.latent.Spherical()])
def test_a_prior_takes_small_classes_and_collinear_columns(kind):
    rows = collinear()
    one = {k: np.append(v, v[:1]) if k != "y" else np.append(v, "9") for k, v in rows.items()}
    bn = discriminant(one, "y", covariance=kind, prior=NORMAL)
    np.testing.assert_allclose(proba(bn, one).sum(axis=1), 1.0)


def test_a_declared_class_without_rows_is_never_predicted_by_maximum_likelihood():
    rows = table(*IRIS)
    states = {"y": sf.Finite("y", ["0", "1", "2", "3"])}
    for make in (naive_bayes, discriminant, lambda *a, **k: discriminant(*a, covariance=sf.latent.Tied(), **k)):
        bn = make(rows, "y", prior=None, variables=states)
        np.testing.assert_array_equal(proba(bn, rows)[:, 3], 0.0)


def network(seed):
    """A network with tables, normals and counts around the target t, and some probabilities of 0."""
    rng = np.random.default_rng(seed)
    p, t, c, d = (sf.Finite(n, [str(i) for i in range(k)]) for n, k in (("p", 2), ("t", 3), ("c", 2), ("d", 2)))
    table_of_d = rng.dirichlet([1, 1], 2)
    table_of_d[0] = [1.0, 0.0]
    rates = rng.gamma(2.0, 2.0, 3)
    rates[0] = 0.0
    cpds = {
        "p": rng.dirichlet([1, 1]),
        "t": rng.dirichlet([1, 1, 1], 2),
        "c": rng.dirichlet([1, 1], (3, 2)),
        "d": table_of_d,
        "x": sf.Gaussian(rng.normal(size=3), {}, rng.gamma(2.0, 1.0, 3)),
        "y": sf.Gaussian(rng.normal(size=(3, 2)), {"x": rng.normal(size=(3, 2))}, rng.gamma(2.0, 1.0, (3, 2))),
        "n": sf.regressions.Rates(rates),
        "z": sf.Gaussian(0.5, {"y": 2.0}, 1.0),
    }
    dag = "p -> t; t -> c; p -> c; c -> d; t -> x; t -> y; p -> y; x -> y; t -> n; y -> z"
    return sf.BayesNet(dag, cpds, variables=[p, t, c, d])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("target", ["t", "p", "c"])
def test_the_direct_way_gives_what_inference_gives(seed, target):
    bn, rng = network(seed), np.random.default_rng(seed)
    drawn = bn.sample(400, seed=seed)
    compiled = bn.compiled
    codes = np.stack([drawn[n].combine_chunks().indices.to_numpy() for n in compiled.finite], axis=1).astype(np.int32)
    reals = np.stack([drawn[n].to_numpy().astype(float) for n in compiled.reals], axis=1)
    codes[rng.random(codes.shape) < 0.2] = -1
    reals[rng.random(reals.shape) < 0.2] = np.nan
    codes[:20, compiled.index["d"]] = 1  # often impossible
    codes[:20, compiled.index["c"]] = 0
    reals[20:40, compiled.real_index["n"]] = 7.0
    seen = RowEvidence(codes, reals)
    direct = direct_rows(bn, target, seen)
    assert not bn.compiled.of_tables
    assert 0.1 < direct.mean() < 0.9
    expected = _infer_rows(bn, target, seen)
    np.testing.assert_allclose(row_posterior(bn, target, seen), expected, atol=1e-10)
    if target == "t":
        assert np.isnan(expected[direct]).any()


def test_a_regression_takes_part_in_prediction():
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = np.where(rng.random(300) < 1 / (1 + np.exp(-x)), "yes", "no")
    w = x + (y == "yes") + rng.normal(size=300)
    rows = {"x": x, "y": y, "w": w}
    bn = sf.fit("x -> y; x -> w; y -> w", rows, families={"y": Logistic()})
    found = bn.predict_proba(rows, "y")["yes"]
    eta = bn["y"].intercept[0] + bn["y"].coefficients[0, 0] * x
    other, own = (
        stats.norm.logpdf(w, bn["w"].intercept[k] + bn["w"].coefficients[k, 0] * x, bn["w"].variance[k] ** 0.5) for k in (0, 1)
    )
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-(eta + own - other))), atol=1e-12)
    alone = bn.predict_proba({"x": x[:3]}, "y")["yes"]
    np.testing.assert_allclose(alone, 1 / (1 + np.exp(-eta[:3])), atol=1e-12)


def test_numbers_far_out_belong_to_the_widest_class():
    rows = {"x": [0.0, 1.0, 0.0, 4.0], "y": list("aabb")}
    bn = naive_bayes(rows, "y", prior=None)
    np.testing.assert_allclose(proba(bn, {"x": [1e8, -1e8]}), [[0.0, 1.0], [0.0, 1.0]])
