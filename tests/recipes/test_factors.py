"""Factor analysis and probabilistic PCA: against direct formulas, EM on the same graph, scikit-learn and statsmodels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import suffice as sf
from suffice.errors import DataError, FitError, SufficeNote
from suffice.learning.latent.factor_analysis import FactorMoments
from suffice.models.undirected.covariances import Covariances
from suffice.statistics import Request
from tests.toy_engine import toy


def table(n: int = 300, p: int = 6, k: int = 2, seed: int = 0, missing: float = 0.0) -> dict[str, Any]:
    """Columns with k factors, on scales that are far apart."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, k)) @ rng.standard_normal((k, p)) + rng.standard_normal((n, p)) * rng.uniform(0.5, 1.5, p)
    x = x * 10.0 ** rng.integers(-2, 3, p) + rng.normal(0, 3, p)
    x[rng.random(x.shape) < missing] = np.nan
    return {f"x{j}": x[:, j] for j in range(p)}


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 3))
def test_gradient_and_hessian_are_difference_quotients(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    names = tuple(f"x{j}" for j in range(6))
    moments = FactorMoments(Covariances.of(sf.scan(table(40, 6, 2, seed)), names, on="correlation"), k)
    logs, step = np.log(rng.uniform(0.1, 0.6, 6)), 1e-5 * np.eye(6)
    point = moments.at(logs)
    if (np.abs(point.values - 1.0) < 1e-3).any():
        return  # where a factor begins to load the loss has a corner
    slope = [(moments.at(logs + h).loss - moments.at(logs - h).loss) / 2e-5 for h in step]
    curve = [(moments.gradient(moments.at(logs + h)) - moments.gradient(moments.at(logs - h))) / 2e-5 for h in step]
    assert moments.gradient(point) == pytest.approx(np.array(slope), abs=1e-6)
    if (point.values[:k] > 1.0).all():
        assert moments.hessian(point) == pytest.approx(np.array(curve), rel=1e-4, abs=1e-4)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(1, 3), spherical=st.booleans())
@example(seed=9999, k=1, spherical=False)  # a Newton step that bounds turn aside
def test_the_likelihood_is_that_of_the_joint_normal(seed: int, k: int, spherical: bool) -> None:
    rows = table(50, 6, 2, seed)
    x = np.array(list(rows.values())).T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeNote)
        run = sf.factors(rows, k, noise=sf.latent.Spherical() if spherical else sf.latent.Diagonal(), tol=1e-9)
    assert run.converged
    assert run.mean == pytest.approx(x.mean(axis=0), rel=1e-9)
    assert run.log_likelihood == pytest.approx(multivariate_normal.logpdf(x, run.mean, run.covariance).sum(), rel=1e-7)
    assert np.diag(run.covariance).sum() == pytest.approx(x.var(axis=0).sum(), rel=1e-6)
    turned = run.loadings.T @ (run.loadings / run.noise[:, None])
    assert turned == pytest.approx(np.diag(np.diag(turned)), abs=1e-7 * turned.max())
    assert (np.diff(np.diag(turned)) <= 1e-9).all()
    objectives = [i.objective for i in run.trace]
    assert (np.diff(objectives) >= -1e-9).all()


def test_probabilistic_pca_is_the_closed_form() -> None:
    rows = {f"x{j}": c for j, c in enumerate(np.random.default_rng(1).standard_normal((5, 200)) * [[3], [2], [1], [1], [0.5]])}
    run = sf.factors(rows, 2, noise=sf.latent.Spherical())
    values, vectors = np.linalg.eigh(np.cov(np.array(list(rows.values())), bias=True))
    assert run.noise == pytest.approx(np.full(5, values[:3].mean()))
    expected = (vectors[:, 3:] * (values[3:] - values[:3].mean())) @ vectors[:, 3:].T
    assert run.loadings @ run.loadings.T == pytest.approx(expected)
    assert run.n_parameters == 5 + 10 + 1 - 1
    assert "the same noise in all columns" in repr(run)


@pytest.mark.parametrize("noise", [sf.latent.Diagonal(), sf.latent.Spherical()])
def test_em_on_the_same_graph_agrees_and_missing_cells_are_exact(noise: Any) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((120, 1)) @ rng.uniform(0.5, 1.5, (1, 4)) + rng.standard_normal((120, 4))
    whole = {f"x{j}": x[:, j] for j in range(4)}
    direct = sf.factors(whole, 1, noise=noise)
    x = x.copy()
    x[0, 1] = np.nan
    torn = {f"x{j}": x[:, j] for j in range(4)}
    run = sf.factors(torn, 1, noise=noise, starts=1, tol=1e-10)
    at = ~np.isnan(x)
    total = sum(
        multivariate_normal.logpdf(row[o], run.mean[o], run.covariance[np.ix_(o, o)]) for row, o in zip(x, at, strict=True)
    )
    assert run.log_likelihood == pytest.approx(total, rel=1e-10)
    assert run.loadings == pytest.approx(direct.loadings, abs=0.1)
    assert run.n_parameters == direct.n_parameters
    if isinstance(noise, sf.latent.Spherical):
        assert np.ptp(run.noise) < 1e-12
    else:
        dag = "; ".join(f"factor -> {c}" for c in torn)
        by_em = sf.em(dag, torn, hidden=[sf.Real("factor")], starts=1, tol=1e-10, max_iter=3000)
        assert by_em.log_likelihood == pytest.approx(run.log_likelihood, abs=1e-6)


def test_the_number_of_factors_is_chosen() -> None:
    rows = table(500, 8, 2, 5)
    run = sf.factors(rows, range(1, 5))
    assert run.k == 2
    assert [c.k for c in run.choices or ()] == [1, 2, 3, 4]
    assert "ICL" not in repr(run.choices)
    held = sf.factors(rows, range(1, 4), choose=sf.choices.HeldOut(folds=3))
    assert held.k == 2
    x = np.array(list(rows.values())).T
    whole = multivariate_normal.logpdf(x, held.mean, held.covariance).sum()
    assert (held.choices or ())[1].value == pytest.approx(whole, rel=0.02)
    assert sf.factors(rows, range(1, 4), choose=sf.AIC()).k >= 2
    with pytest.raises(FitError, match=r"BIC\(\), AIC\(\) or HeldOut"):
        sf.factors(rows, 2, choose=sf.choices.ICL())


def test_statistics_are_all_that_is_needed_and_add() -> None:
    rows = table(200)
    names = tuple(rows)
    half = [{c: v[part] for c, v in rows.items()} for part in (slice(None, 90), slice(90, None))]
    a, b = (sf.scan(h).gather([Request((), names)]) for h in half)
    assert sf.factors(a + b, 2).log_likelihood == pytest.approx(sf.factors(rows, 2).log_likelihood, rel=1e-12)
    with pytest.raises(DataError, match="HeldOut"):
        sf.factors(a + b, range(1, 3), choose=sf.choices.HeldOut())


def test_engines_agree(tmp_path: Any) -> None:
    rows = table(400, 5, 1, 2)
    here = sf.factors(rows, 1)
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([",".join(rows), *(",".join(map(repr, map(float, r))) for r in zip(*rows.values(), strict=True))]))
    assert sf.factors(str(path), 1).loadings == pytest.approx(here.loadings, rel=1e-9)
    dag = "; ".join(f"f -> {c}" for c in rows)
    how: dict[str, Any] = {"hidden": [sf.Real("f")], "starts": 1, "max_iter": 20, "tol": 0}
    assert sf.em(dag, toy(rows), **how).log_likelihood == pytest.approx(sf.em(dag, rows, **how).log_likelihood, rel=1e-12)


def test_scores_are_posterior_means() -> None:
    rows = table(30, 5, 2, 7)
    run = sf.factors(rows, 2)
    x = np.array(list(rows.values())).T
    expected = (x - run.mean) @ np.linalg.solve(run.covariance, run.loadings)
    assert run.scores(rows) == pytest.approx(expected, abs=1e-8)
    assert run.log_prob(rows).sum() == pytest.approx(run.log_likelihood, rel=1e-9)
    assert run.bic == pytest.approx(run.model.bic(rows), rel=1e-9)
    assert run.aic == pytest.approx(run.model.aic(rows), rel=1e-9)


def test_refusals() -> None:
    rows = table(50, 4, 1)
    with pytest.raises(FitError, match="2 factors of 4 columns have more loadings than covariances could tell: at most 1"):
        sf.factors(rows, 2)
    with pytest.raises(FitError, match="at most 0"):
        sf.factors({c: rows[c] for c in ("x0", "x1")}, 1)
    with pytest.raises(FitError, match=r"Diagonal\(\) or Spherical\(\)"):
        sf.factors(rows, 1, noise=sf.latent.Full())
    with pytest.raises(FitError, match="'s' is finite"):
        sf.factors({**rows, "s": ["u", "v"] * 25}, 1)
    with pytest.raises(DataError, match="called like a factor"):
        sf.factors({**rows, "factor1": rows["x0"]}, 1)
    with pytest.raises(FitError, match="a start is the noise of each column"):
        sf.factors(rows, 1, start=[1.0])
    with pytest.raises(FitError, match="the same"):
        sf.factors({**rows, "x1": np.ones(50)}, 1)


def test_a_start_is_the_noise_of_the_columns() -> None:
    rows = table(200)
    run = sf.factors(rows, 2, start=dict.fromkeys(rows, 1.0))
    assert len(run.optima) == 1
    assert run.log_likelihood == pytest.approx(sf.factors(rows, 2).log_likelihood, rel=1e-12)


PEERS = {1: -9.79606999907922, 2: -9.734745297616048}
"""ln L a row: scikit-learn 1.9.1, FactorAnalysis(k, tol=1e-12, max_iter=100_000, svd_method="lapack").score(x) gives these to
1e-12 (…7922, …6248); statsmodels 0.15, Factor(x, n_factor=k, method="ml").fit(), the same to 1e-12 (…79288, …6100)."""

UNIQUENESS = [0.9466029298, 0.2282071499, 0.7891948618, 0.8546258707, 0.3229943124, 0.5199488926]
"""statsmodels' uniqueness with two factors, which its optimiser has to about 1e-6."""


@pytest.mark.parametrize("k", [1, 2])
def test_the_maximum_is_that_of_scikit_learn_and_statsmodels(k: int) -> None:
    rng = np.random.default_rng(11)
    x = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 6)) + rng.standard_normal((200, 6)) * rng.uniform(0.5, 1.5, 6)
    x = np.round(x, 3)
    run = sf.factors({f"x{j}": x[:, j] for j in range(6)}, k)
    assert run.log_likelihood / 200 == pytest.approx(PEERS[k], abs=1e-11)
    assert run.log_likelihood / 200 >= PEERS[k] - 1e-12
    if k == 2:
        assert run.noise / x.var(axis=0) == pytest.approx(UNIQUENESS, abs=1e-6)
