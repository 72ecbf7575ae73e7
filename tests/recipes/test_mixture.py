"""Mixtures: against scikit-learn, brute force, closed forms, `fit`, and what was put into drawn data."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import DataError, FitError, SufficeNote
from suffice.families.priors.priors import Gamma, as_prior
from suffice.learning.incomplete.climb import FellError, evaluate
from suffice.learning.latent import mixture_setup
from suffice.learning.latent.mixture_parts import ClassParameters
from suffice.learning.latent.mixture_setup import Diagonal, Full, Kind, MixtureRows, Spherical, Tied
from suffice.recipes.latent.latent_run import ICL
from suffice.recipes.latent.mixture import HeldOut, mixture

KINDS: dict[Kind, str] = {Full(): "full", Tied(): "tied", Diagonal(): "diag", Spherical(): "spherical"}
PRIOR = (sf.Dirichlet(1), sf.NormalInverseGamma())


def clouds(n: int = 400, seed: int = 1) -> dict[str, Any]:
    """Three classes of three columns."""
    rng = np.random.default_rng(seed)
    means = np.array([[0.0, 0, 0], [4, 1, -2], [-3, 5, 1]])
    which = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    x = means[which] + rng.normal(size=(n, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0.3], [0, 0, 0.7]])
    return {"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]}


def matrix(rows: dict[str, Any]) -> Any:
    return np.stack(list(rows.values()), axis=1)


def holed(rows: dict[str, Any], share: float = 0.2, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {n: np.where(rng.random(len(x)) < share, np.nan, x) for n, x in rows.items()}


def starting(kind: Kind) -> tuple[Any, Any, Any]:
    """Weights, means and covariances, in the shapes of this kind."""
    full = np.array([np.eye(3) * v for v in (1.0, 2.0, 3.0)])
    shapes = {Full(): full, Tied(): full[1], Diagonal(): np.diagonal(full, axis1=1, axis2=2), Spherical(): full[:, 0, 0]}
    return np.array([0.2, 0.5, 0.3]), np.array([[0.5, 0, 0], [3, 2, -1], [-1, 3, 0]]), shapes[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_scikit_learn_from_the_same_start(kind: Kind) -> None:
    from sklearn import mixture as peer

    rows, (weights, means, covariances) = clouds(), starting(kind)
    precisions = 1.0 / covariances if covariances.ndim < 2 or kind == Diagonal() else np.linalg.inv(covariances)
    theirs = peer.GaussianMixture(
        3,
        covariance_type=KINDS[kind],
        reg_covar=0.0,
        tol=0.0,
        max_iter=9,
        weights_init=weights,
        means_init=means,
        precisions_init=precisions,
    )
    with pytest.warns(Warning, match="converge"):
        theirs.fit(matrix(rows))
    run = mixture(rows, 3, kind, start=(weights, means, covariances), tol=0, max_iter=9)
    assert run.n_iterations == 9
    assert run.log_likelihood == pytest.approx(theirs.score(matrix(rows)) * 400, rel=1e-11)
    order = np.argsort(-theirs.weights_)
    np.testing.assert_allclose(run.weights, theirs.weights_[order], rtol=1e-8)
    np.testing.assert_allclose(run.means, theirs.means_[order], rtol=1e-8)
    # Their covariances have a shape of each kind: precisions of rows are compared by the density instead.
    np.testing.assert_allclose(run.responsibilities(rows), theirs.predict_proba(matrix(rows))[:, order], atol=1e-8)
    assert run.bic == pytest.approx(theirs.bic(matrix(rows)) / -2, rel=1e-10)
    assert run.aic == pytest.approx(theirs.aic(matrix(rows)) / -2, rel=1e-10)


def density(run: Any, x: Any) -> Any:
    """ln p of rows with NaN for missing cells, one by one."""
    from scipy.special import logsumexp
    from scipy.stats import multivariate_normal

    result = []
    for row in x:
        o = ~np.isnan(row)
        each = [
            multivariate_normal(m[o], C[np.ix_(o, o)]).logpdf(row[o]) if o.any() else 0.0
            for m, C in zip(run.means, run.covariances, strict=True)
        ]
        result.append(logsumexp(each, b=run.weights))
    return np.array(result)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_cells_are_summed_out(kind: Kind) -> None:
    rows = holed(clouds(120))
    run = mixture(rows, 2, kind, starts=1, tol=0, max_iter=30)
    np.testing.assert_allclose(run.log_prob(rows), density(run, matrix(rows)), atol=1e-9)
    assert run.log_likelihood == pytest.approx(density(run, matrix(rows)).sum(), rel=1e-11)
    assert all(b.objective >= a.objective - 1e-9 for a, b in pairwise(run.trace))
    bn = run.model
    first = {n: float(x[0]) for n, x in rows.items() if not np.isnan(x[0])}
    np.testing.assert_allclose(run.responsibilities(rows)[0], bn.query("class", given=first).probs, atol=1e-9)


def test_monotone_missing_normal() -> None:
    """Apple data of Little and Rubin: the closed form is exact (R's mvnmle prints the same means)."""
    x = np.array([8, 6, 11, 22, 14, 17, 18, 24, 19, 23, 26, 40, 4, 4, 5, 6, 8, 10.0])
    y = np.array([59, 58, 56, 53, 50, 45, 43, 42, 39, 38, 30, 27, *[np.nan] * 6])
    for kind in (Full(), Tied()):
        run = mixture({"x": x, "y": y}, 1, kind, tol=1e-13)
        np.testing.assert_allclose(run.means[0], [14.7222222, 49.3333333], atol=1e-6)
        np.testing.assert_allclose(run.covariances[0].ravel()[[0, 1, 3]], [89.5339506, -90.6967292, 114.6949551], atol=1e-5)


def test_new_rows_may_miss_cells_that_the_old_did_not() -> None:
    rows = clouds()
    run = mixture(rows, 2, starts=2)
    few = holed({n: x[:30] for n, x in rows.items()})
    np.testing.assert_allclose(run.log_prob(few), density(run, matrix(few)), atol=1e-9)


def test_far_from_zero() -> None:
    rows = clouds()
    far = {n: np.round(x * 2**20) / 2**20 + 2.0**30 for n, x in rows.items()}
    near = {n: x - 2.0**30 for n, x in far.items()}
    for kind in KINDS:
        a, b = (mixture(r, 3, kind, starts=1, tol=0, max_iter=20) for r in (near, far))
        assert b.log_likelihood == pytest.approx(a.log_likelihood, rel=1e-12)
        np.testing.assert_allclose(b.covariances, a.covariances, rtol=1e-8, atol=1e-10)


def test_threads_do_not_matter() -> None:
    rows = clouds(40_000)
    a, b = (mixture(rows, 3, starts=1, max_iter=3, threads=t) for t in (1, 3))
    assert a.log_likelihood == b.log_likelihood
    np.testing.assert_array_equal(a.covariances, b.covariances)


def test_files_and_frames_agree(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = clouds(20_000)
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    spilled = sf.scan(tmp_path / "rows.parquet", memory_limit=450_000)  # of 480,000 bytes
    a, b = (mixture(r, 2, starts=1, max_iter=3) for r in (rows, spilled))
    assert a.log_likelihood == b.log_likelihood


def test_weights_are_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    rows, n = clouds(100), rng.integers(0, 4, 100)
    again = {name: np.repeat(x, n) for name, x in rows.items()}
    weights, means, covariances = starting(Full())
    weighted, repeated = (
        mixture(r, 3, start=(weights, means, covariances), tol=0, max_iter=5) for r in (sf.scan(rows, weights=n), again)
    )
    assert weighted.log_likelihood == pytest.approx(repeated.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(weighted.covariances, repeated.covariances, rtol=1e-9, atol=1e-12)
    assert weighted.bic == pytest.approx(repeated.bic)


def test_order_of_classes_does_not_depend_on_the_start() -> None:
    rows = clouds(1000)
    runs = [mixture(rows, 3, seed=s, starts=3, tol=1e-9) for s in (0, 1)]
    np.testing.assert_allclose(runs[0].means, runs[1].means, atol=1e-3)
    assert (np.diff(runs[0].weights) <= 0).all()
    again = mixture(rows, 3, seed=0, starts=3, tol=1e-9)
    np.testing.assert_array_equal(runs[0].means, again.means)
    assert runs[0].model == again.model
    repr(again)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(again)).means, again.means)


def test_starts_of_a_user() -> None:
    rows = clouds()
    run = mixture(rows, 3, starts=3, tol=1e-10)
    more = mixture(rows, 3, start=run, max_iter=2)
    assert more.objective >= run.objective - 1e-9
    same = mixture(rows, 3, start=run.responsibilities(rows), tol=0, max_iter=1)
    assert same.log_likelihood == pytest.approx(run.log_likelihood, abs=1e-6)
    assert mixture(rows, 3, Diagonal(), start=run, max_iter=3).n_iterations == 3


@pytest.mark.parametrize("estimate", [sf.Mean(), sf.Mode()])
@pytest.mark.parametrize("prior", [sf.NormalInverseGamma(), sf.BGe()])
def test_one_class_with_a_prior_is_fit(prior: Any, estimate: Any) -> None:
    rows = {**clouds(50), "f": ["u", "v", "v", "v", "w"] * 10}
    given = (sf.Dirichlet(2), prior)
    one = sf.Finite("class", ["0"])
    run = mixture(rows, 1, prior=given, estimate=estimate)
    known = sf.scan({**rows, "class": ["0"] * 50}, {"class": one})
    bn = sf.fit(run.model.dag, known, prior=given, estimate=estimate)
    for name in "abc":
        np.testing.assert_allclose(run.model[name].variance, bn[name].variance, rtol=1e-9)
        np.testing.assert_allclose(run.model[name].coefficients, bn[name].coefficients, atol=1e-9)
        np.testing.assert_allclose(run.model[name].intercept, bn[name].intercept, atol=1e-9)
    np.testing.assert_allclose(run.model["f"].probs, bn["f"].probs)


@pytest.mark.parametrize("estimate", [sf.Mean(), sf.Mode()])
@pytest.mark.parametrize("kind", KINDS)
def test_objective_with_a_prior(kind: Kind, estimate: Any) -> None:
    """It never falls, and where it ends no parameter can be moved to raise it."""
    rows = {**holed(clouds(60)), "f": ["u", "v", "v"] * 20}
    run = mixture(rows, 2, kind, prior=(sf.Dirichlet(1.5), sf.BGe()), estimate=estimate, starts=1, tol=1e-12, max_iter=3000)
    assert all(b.objective >= a.objective - 1e-9 for a, b in pairwise(run.trace))
    best, prior = run._parameters, as_prior((sf.Dirichlet(1.5), sf.BGe()))
    problem = MixtureRows.of(sf.scan(rows)).mixture(sf.Finite("class", ["0", "1"]), kind, prior, estimate)

    def objective(theta: ClassParameters) -> float:
        return evaluate(problem, theta).objective  # type: ignore[arg-type]

    rng = np.random.default_rng(0)
    for _ in range(12):
        normal: Any = best.parts[0]
        mean = normal.mean + 1e-3 * rng.normal(size=normal.mean.shape)
        root = normal.root * (1 + 1e-3 * rng.normal())
        moved = best._replace(parts=(replace(normal, mean=mean, root=root), *best.parts[1:]))
        assert objective(moved) < objective(best) + 1e-9
        weights = best.weights + 1e-3 * np.array([1, -1]) * rng.normal()
        assert objective(best._replace(weights=weights)) < objective(best) + 1e-9


def test_latent_classes_are_found_again() -> None:
    rng = np.random.default_rng(3)
    n, weights, p = 20_000, np.array([0.6, 0.4]), np.array([[0.9, 0.8, 0.7, 0.85, 0.3], [0.2, 0.1, 0.3, 0.25, 0.8]])
    which = rng.choice(2, n, p=weights)
    rows = {f"q{j}": np.where(rng.random(n) < p[which, j], "yes", "no") for j in range(5)}
    run = mixture(rows, 2, starts=3)
    assert run.n_rows == n
    np.testing.assert_allclose(run.weights, weights, atol=0.02)
    np.testing.assert_allclose([run.probs[f"q{j}"][:, 1] for j in range(5)], p.T, atol=0.03)
    assert run.n_parameters == run.model.n_parameters == 11
    yes = {q: (x == "yes").astype(int) for q, x in rows.items()}
    joint = [w * np.prod([run.probs[q][c][x] for q, x in yes.items()], axis=0) for c, w in enumerate(run.weights)]
    brute = np.log(sum(joint))
    assert run.log_likelihood == pytest.approx(brute.sum(), rel=1e-10)
    np.testing.assert_allclose(run.log_prob(rows), brute, atol=1e-10)
    assert [c.k for c in mixture(rows, [1, 2, 3], starts=2).choices or ()] == [1, 2, 3]


def test_equal_rows_are_merged_without_a_trace() -> None:
    rng = np.random.default_rng(0)
    rows = {"x": rng.choice(["a", "b", "c"], 500), "y": [None if u < 0.1 else "s" if u < 0.5 else "t" for u in rng.random(500)]}
    start = rng.dirichlet([1, 1], 500)
    begin = mixture(rows, 2, start=start, tol=0, max_iter=3)  # responsibilities are of the rows as they are
    merged = mixture(rows, 2, start=begin, tol=0, max_iter=5)
    whole = mixture(rows, 2, start=start, tol=0, max_iter=8)
    assert merged.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-12)


def poisson_em(x: Any, w: Any, rates: Any, steps: int) -> tuple[Any, Any, float]:
    from scipy.stats import poisson

    for _ in range(steps):
        joint = w * poisson.pmf(x[:, None], rates)
        r = joint / joint.sum(axis=1, keepdims=True)
        w, rates = r.mean(axis=0), r.T @ x / r.sum(axis=0)
    return w, rates, float(np.log((w * poisson.pmf(x[:, None], rates)).sum(axis=1)).sum())


def test_poisson_mixture_by_hand() -> None:
    rng = np.random.default_rng(0)
    x = rng.poisson(np.where(rng.random(300) < 0.3, 2.0, 9.0)).astype(float)
    data = sf.scan({"n": x}, {"n": sf.Count})
    begin = mixture(data, 2, starts=1, max_iter=1)
    run = mixture(data, 2, start=begin, tol=0, max_iter=10)
    w, rates, log_likelihood = poisson_em(x, begin.weights, begin.rates["n"], 10)
    order = np.argsort(-w)
    np.testing.assert_allclose(run.weights, w[order], rtol=1e-9)
    np.testing.assert_allclose(run.rates["n"], rates[order], rtol=1e-9)
    assert run.log_likelihood == pytest.approx(log_likelihood, rel=1e-11)
    assert run.log_prob(data).sum() == pytest.approx(log_likelihood, rel=1e-11)
    np.testing.assert_allclose(run.model["n"].rates, run.rates["n"])
    believed = mixture(data, 2, prior=(sf.Dirichlet(1), Gamma()), starts=2)
    assert all(b.objective >= a.objective - 1e-9 for a, b in pairwise(believed.trace))


def test_a_rate_and_a_probability_of_zero() -> None:
    data = sf.scan(
        {"n": [0.0] * 6 + [9.0, 10, 11, 9], "f": ["u"] * 6 + ["v"] * 4}, {"n": sf.Count, "f": sf.Finite("f", ["u", "v", "w"])}
    )
    run = mixture(data, 2, starts=3, tol=1e-12)
    np.testing.assert_allclose(run.rates["n"], [0.0, 9.75], atol=1e-6)
    with pytest.raises(DataError, match="row 2 has the probability 0"):
        run.predict({"n": [0.0, 9.0], "f": ["u", "w"]})
    assert run.log_prob({"n": [0.0, 9.0], "f": ["u", "w"]})[1] == -np.inf


def test_mixed_columns() -> None:
    rng = np.random.default_rng(5)
    which = rng.random(600) < 0.35
    columns = {
        "x": np.where(which, 3.0, 0.0) + rng.normal(size=600),
        "y": np.where(which, -1.0, 1.0) + rng.normal(size=600),
        "n": rng.poisson(np.where(which, 8.0, 2.0)).astype(float),
        "f": np.where(rng.random(600) < np.where(which, 0.8, 0.1), "v", "u"),
    }
    columns["x"][:20] = np.nan
    columns["n"][10:50] = np.nan
    run = mixture(sf.scan(columns, {"n": sf.Count}), 2, {"y": Diagonal()}, starts=3)
    np.testing.assert_allclose(run.weights, [0.65, 0.35], atol=0.05)
    np.testing.assert_allclose(run.rates["n"], [2.0, 8.0], atol=0.4)
    assert (run.predict(sf.scan(columns, {"n": sf.Count})) == which).mean() > 0.95
    assert run.model.dag == sf.Dag("class -> x; class -> y; class -> n; class -> f")
    assert run.n_parameters == 1 + 4 + 4 + 2 + 2
    assert "rate of n" in repr(run)
    from scipy.stats import norm, poisson

    row = {n: c[100] for n, c in columns.items()}
    p = [
        w
        * norm.pdf(row["x"], *run.means[c, :1], np.sqrt(run.covariances[c, 0, 0]))
        * norm.pdf(row["y"], run.means[c, 1], np.sqrt(run.covariances[c, 1, 1]))
        * poisson.pmf(row["n"], run.rates["n"][c])
        * run.probs["f"][c]["uv".index(row["f"])]
        for c, w in enumerate(run.weights)
    ]
    np.testing.assert_allclose(run.responsibilities(sf.scan(columns, {"n": sf.Count}))[100], np.array(p) / sum(p), rtol=1e-9)


@pytest.mark.parametrize("judge", [None, sf.AIC(), ICL(), HeldOut(3)])
def test_the_number_of_classes(judge: Any) -> None:
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(m, 1.0, (150, 2)) for m in ((0, 0), (8, 0), (0, 9))])
    run = mixture({"x": x[:, 0], "y": x[:, 1]}, range(1, 5), Tied(), choose=judge, starts=3, tol=1e-4)
    assert run.choices is not None
    assert [c.k for c in run.choices] == [1, 2, 3, 4]
    assert run.k == 3 or (judge == sf.AIC() and run.k == 4)
    assert "log-likelihood" in repr(run.choices)
    value = max(c.value for c in run.choices)
    assert value == {None: run.bic, sf.AIC(): run.aic, ICL(): run.icl}.get(judge, value)


def test_icl_by_its_definition() -> None:
    rows = clouds()
    run = mixture(rows, 3, starts=2)
    assert run.icl == pytest.approx(run.bic + np.log(run.responsibilities(rows).max(axis=1)).sum(), rel=1e-9)


def test_collapse_is_reported() -> None:
    """Three equal rows far away: a class of their own has no variance."""
    rows = {"x": [0.0, 1, 2, 3, 4, 5, 50, 50, 50], "y": [1.0, 0, 2, 1, 4, 3, 9, 9, 9]}
    with pytest.raises(FitError, match=r"'x', 'y' collapsed: .*fewer classes, a prior.*Tied"):
        mixture(rows, 2)
    believed = mixture(rows, 2, prior=PRIOR, starts=2)
    np.testing.assert_allclose(believed.weights, [0.64, 0.36], atol=0.05)
    assert mixture(rows, 2, Tied(), starts=2).converged
    mixed = {"x": [*np.random.default_rng(0).normal(size=30), 2.0, 2.0, 2.0]}
    with pytest.warns(SufficeNote, match="starts collapsed and were given up"):
        run = mixture(mixed, 2, starts=30)
    assert [o.collapsed is None for o in run.optima] == sorted((o.collapsed is None for o in run.optima), reverse=True)
    assert run.optima[0].objective == run.objective


def test_a_fall_of_the_objective_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        mixture_setup.MixtureProblem, "maximise", lambda self, statistic: statistic.at._replace(weights=np.array([0.99, 0.01]))
    )
    with pytest.raises(FellError, match="error of ours"):
        mixture(clouds(), 2, start=(np.array([0.5, 0.5]), starting(Full())[1][:2], starting(Full())[2][:2]))


def test_a_time_limit_keeps_the_best() -> None:
    with pytest.warns(SufficeNote, match="best so far"):
        run = mixture(clouds(5000), 3, starts=10_000, time_limit=0.3)
    assert len(run.optima) < 10_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, "whole number from 1 up"),
        ({"k": "2"}, "whole number from 1 up"),
        ({"k": []}, "no number of classes"),
        ({"k": 10**6}, "needs at least as many rows"),
        ({"name": "a"}, "another name"),
        ({"families": "full"}, "Full"),
        ({"families": Full}, "Full"),
        ({"covariance": {"z": Full()}}, "covariance speaks of 'z', which is not a column"),
        ({"covariance": {"f": Full()}}, "covariance gives 'f'.*only Real columns"),
        ({"estimate": "mode"}, "Mean"),
        ({"starts": 0}, "starts is a whole number"),
        ({"tol": -1}, "tol is a number"),
        ({"choose": "bic", "k": [1, 2]}, "chosen by BIC"),
        ({"start": np.ones((3, 2))}, "responsibilities of the shape"),
        ({"start": np.ones((400, 2))}, "sum to 1"),
        ({"start": (1, 2, 3)}, "real columns only"),
        ({"data": {"x": [1.0, 1.0, 1.0]}}, "are the same"),
        ({"data": {"x": [1.0, 2.0], "y": [None, None]}}, "'y' is missing"),
        ({"data": {"x": [1e200, -1e200, 3.0]}}, "beyond the largest double"),
    ],
)
def test_bad_input(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"data": {**clouds(), "f": ["u", "v"] * 200}, "k": 2, **change}
    with pytest.raises((FitError, DataError), match=message):
        mixture(**arguments)


def test_bad_starts() -> None:
    weights, means, covariances = starting(Full())
    for start in ((weights[:2], means, covariances), (weights, means, covariances[:2]), (weights, means, -covariances)):
        with pytest.raises(FitError, match=r"needs|need|positive definite"):
            mixture(clouds(), 3, start=start)
    with pytest.raises(FitError, match="must agree"):
        mixture(clouds(), 2, start=mixture(clouds(), 3, starts=1, max_iter=1))


def test_rows_without_a_cell_are_told() -> None:
    rows = holed(clouds(60))
    for x in rows.values():
        x[7] = np.nan  # besides two rows that have lost all their cells by chance
    with pytest.warns(SufficeNote, match="3 rows have no observed cell"):
        run = mixture(rows, 2, starts=1)
    np.testing.assert_allclose(run.responsibilities(rows)[7], run.weights)


def test_em_of_the_same_network() -> None:
    rows = clouds(200)
    begin = mixture(rows, 2, starts=1, max_iter=2)
    ours = mixture(rows, 2, start=begin, tol=0, max_iter=4)
    hidden = begin.model.variables["class"]
    theirs = sf.em(begin.model.dag, rows, hidden=[hidden], start=begin.model, tol=0, max_iter=4)  # type: ignore[attr-defined]
    assert theirs.log_likelihood == pytest.approx(ours.log_likelihood, rel=1e-9)


class Pickling:
    """An engine that pickles every step on its way to the rows, as one whose rows are in other processes must."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def declare(self, variables: Any) -> Any:
        return Pickling(self.engine.declare(variables))

    def fold(self, step: Any, names: Any, **how: Any) -> Any:
        return self.engine.fold(pickle.loads(pickle.dumps(step)), names, **how)

    def map(self, step: Any, names: Any, **how: Any) -> Any:
        return self.engine.map(pickle.loads(pickle.dumps(step)), names, **how)


@pytest.mark.parametrize("kind", ["full", "tied", "missing", "discrete"])
def test_steps_travel(kind: str) -> None:
    """With the same bits, whatever the columns are."""
    rng = np.random.default_rng(4)
    columns = holed(clouds(20_000)) if kind == "missing" else clouds(20_000)
    if kind == "discrete":
        which = rng.random(20_000) < 0.4
        wide = rng.poisson(np.where(which, 90.0, 20.0)).astype(float)  # rows enough that differ
        columns = {"f": np.where(rng.random(20_000) < 0.2 + 0.5 * which, "v", "u"), "n": wide, "m": rng.permutation(wide)}
    near = sf.scan(columns, {"n": sf.Count, "m": sf.Count} if kind == "discrete" else None)
    far = sf.Data(Pickling(near.engine), near.columns)
    a, b = (mixture(d, 2, Tied() if kind == "tied" else None, starts=2, tol=0, max_iter=3) for d in (near, far))
    assert a.log_likelihood == b.log_likelihood
    assert a.model == b.model
    np.testing.assert_array_equal(a.responsibilities(near), b.responsibilities(far))
    chosen = [mixture(d, [1, 2], choose=HeldOut(2), starts=1, tol=0, max_iter=2).choices for d in (near, far)]
    assert chosen[0] == chosen[1]


def test_fractional_weights_of_rows_that_are_merged() -> None:
    """One row weighs what a row weighs, not what all equal ones do."""
    weights = np.ones(100)
    weights[0] = 1.5
    rows = {"a": ["y"] * 5 + ["n"] * 95, "b": ["y"] * 5 + ["n"] * 95}
    once, twice = (mixture(sf.scan(rows, weights=factor * weights), 2) for factor in (1, 2))
    np.testing.assert_allclose(once.weights, twice.weights, rtol=1e-6)


def test_rows_of_weight_zero_are_not_looked_at() -> None:
    run = mixture(sf.scan({"a": ["x", "y", "z"] * 5}, weights=[1, 1, 0] * 5), 1)
    assert run.log_likelihood == pytest.approx(10 * np.log(0.5))


def test_an_impossible_row_is_named_by_its_own_number() -> None:
    start = mixture(sf.scan({"a": list("xy") * 50, "b": list("uv") * 50}, {"a": ["x", "y", "z"]}), 1)
    rows = {"a": [*(list("xy") * 50), "z"], "b": [*(list("uv") * 50), "u"]}
    with pytest.raises(sf.SufficeError, match="row 101 has the probability 0"):
        mixture(sf.scan(rows, {"a": ["x", "y", "z"]}), 1, start=start)
