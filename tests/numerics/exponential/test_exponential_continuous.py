"""The continuous distributions and their priors, against scipy.stats, quadrature and brute force, at extremes too."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import integrate, stats

import suffice as sf
from suffice.errors import DataError, FitError, ModelError, StatisticsError, SufficeError, TooLarge
from suffice.numerics.exponential import (
    Centred,
    Exponential,
    Gamma,
    Lomax,
    MultivariateNormal,
    MultivariateT,
    Normal,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownMean,
    NormalKnownVariance,
    Poisson,
    StudentT,
    Totals,
    Uniform,
)
from suffice.numerics.exponential.arithmetic.special import (
    excess_over_log,
    inverse_log_minus_digamma,
    log_gamma_step,
    log_minus_digamma,
    stirling_rest,
)

COVARIANCE = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])
RNG = np.random.default_rng(7)
X = RNG.gamma(2.0, 1.5, 40)
ROWS = RNG.multivariate_normal([1.0, -2.0, 0.5], COVARIANCE, 30)
WEIGHTS = RNG.integers(0, 4, 40).astype(float)

NIG = NormalInverseGamma(0.5, 1.5, 2.5, 1.25)
NIW = NormalInverseWishart([0.5, 0.0, 1.0], 1.5, 4.5, COVARIANCE + 0.3)
FAMILIES_AND_PRIORS = [
    (Exponential(), Gamma(2.0, 3.0), X),
    (NormalKnownMean(1.0), Gamma(2.0, 3.0), X),
    (NormalKnownVariance(2.0), Normal(0.5, 3.0), X),
    (Normal(), NIG, X),
    (MultivariateNormal(), NIW, ROWS),
]


def same(a, b, tol=1e-10) -> None:
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


@pytest.mark.parametrize("rate", [1e-6, 0.3, 7.0, 1e8])
def test_exponential_is_scipys(rate: float) -> None:
    ours, theirs = Exponential(rate), stats.expon(scale=1 / rate)
    x = np.array([-1.0, 0.0, 0.1, 1.0, 20.0]) / rate
    same(ours.log_prob(x), theirs.logpdf(x))
    same([ours.mean, ours.variance, ours.entropy()], [theirs.mean(), theirs.var(), theirs.entropy()])


@pytest.mark.parametrize(("shape", "rate"), [(1e-3, 2.0), (0.5, 1e-5), (1.0, 3.0), (2.5, 0.4), (20.0, 1e6), (900.0, 1.0)])
def test_gamma_is_scipys(shape: float, rate: float) -> None:
    ours, theirs = Gamma(shape, rate), stats.gamma(shape, scale=1 / rate)
    x = np.concatenate([theirs.ppf([1e-9, 0.1, 0.5, 0.999]), [theirs.mean() * 1e-3, theirs.mean() * 30]])
    x = x[x > 0]
    np.testing.assert_allclose(ours.log_prob(x), theirs.logpdf(x), rtol=1e-10, atol=1e-10)
    same([ours.mean, ours.variance, ours.entropy()], [theirs.mean(), theirs.var(), theirs.entropy()])
    same(ours.interval(0.9), theirs.interval(0.9))
    assert np.isneginf(ours.log_prob(-1.0))


def test_normal_is_scipys() -> None:
    ours, theirs = Normal(1e9, 4.0), stats.norm(1e9, 2.0)
    x = 1e9 + np.array([-40.0, -1.0, 0.0, 0.25, 7.0])
    same(ours.log_prob(x), theirs.logpdf(x))
    same([ours.mode, ours.variance, ours.entropy()], [1e9, 4.0, theirs.entropy()])
    same(Normal(1.0, 4.0).interval(0.9), stats.norm(1, 2).interval(0.9))
    same(NormalKnownMean(1e9, 4.0).log_prob(x), theirs.logpdf(x))
    same(NormalKnownVariance(4.0, 1e9).log_prob(x), theirs.logpdf(x))


def test_multivariate_normal_is_scipys() -> None:
    mean = np.array([1.0, -2.0, 1e9])
    ours, theirs = MultivariateNormal(mean, COVARIANCE), stats.multivariate_normal(mean, COVARIANCE)
    x = mean + ROWS
    same(ours.log_prob(x), theirs.logpdf(x))
    same(ours.log_prob(x[0]), theirs.logpdf(x[0]))
    same(ours.entropy(), theirs.entropy())
    scaled = np.diag([1e-8, 1.0, 1e8])
    same(
        MultivariateNormal(np.zeros(3), scaled @ COVARIANCE @ scaled).log_prob(ROWS @ scaled),
        MultivariateNormal(np.zeros(3), COVARIANCE).log_prob(ROWS),
    )
    same(ours.marginal([2, 0]).covariance, COVARIANCE[np.ix_([2, 0], [2, 0])])


def test_predictives_are_scipys() -> None:
    x = np.array([-3.0, 0.2, 1.0, 50.0])
    t = StudentT(3.5, 1.0, 2.0)
    theirs = stats.t(3.5, 1.0, 2.0)
    same(t.log_prob(x), theirs.logpdf(x))
    same(t.cdf(x), theirs.cdf(x))
    same(t.interval(0.9), theirs.interval(0.9))
    same([t.mean, t.variance], [theirs.mean(), theirs.var()])
    assert isinstance(t.log_prob(0.0), float)
    assert isinstance(t.interval()[0], float)
    lomax, theirs = Lomax(2.5, 3.0), stats.lomax(2.5, scale=3.0)
    same(lomax.log_prob([0.0, 0.1, 30.0]), theirs.logpdf([0.0, 0.1, 30.0]))
    same(lomax.cdf(x), theirs.cdf(x))
    same([lomax.mean, lomax.variance, *lomax.interval(0.9)], [theirs.mean(), theirs.var(), *theirs.interval(0.9)])
    assert np.isneginf(lomax.log_prob(-0.1))
    many, theirs = MultivariateT(3.5, np.ones(3), COVARIANCE), stats.multivariate_t(np.ones(3), COVARIANCE, 3.5)
    same(many.log_prob(ROWS), theirs.logpdf(ROWS))
    same(many.covariance, COVARIANCE * 3.5 / 1.5)
    same(many.marginal([1]).interval().lower, StudentT(3.5, 1.0, 1.0).interval().lower)


def test_student_t_without_moments() -> None:
    assert np.isnan(StudentT(1.0, 0.0, 1.0).mean)
    assert np.isnan(StudentT(0.5, 0.0, 1.0).variance)
    assert StudentT(2.0, 0.0, 1.0).variance == np.inf
    assert Lomax(1.0, 2.0).mean == np.inf
    assert np.isnan(Lomax(1.0, 2.0).variance)
    same(StudentT(3.0, 0.0, 1.0).log_prob(1e200), stats.t(3).logpdf(1e100) - 4 * np.log(1e100))
    same(StudentT(1e15, 0.0, 1.0).log_prob(1.5), stats.norm.logpdf(1.5))


@pytest.mark.parametrize(
    ("ours", "cdf"),
    [
        (Exponential(3.0), stats.expon(scale=1 / 3).cdf),
        (Gamma(0.4, 3.0), stats.gamma(0.4, scale=1 / 3).cdf),
        (Normal(1e3, 4.0), stats.norm(1e3, 2).cdf),
        (NormalKnownMean(1.0, 4.0), stats.norm(1, 2).cdf),
        (NormalKnownVariance(4.0, 1.0), stats.norm(1, 2).cdf),
        (StudentT(3.0, 1.0, 2.0), stats.t(3, 1, 2).cdf),
        (Lomax(3.0, 2.0), stats.lomax(3, scale=2).cdf),
        (Uniform(-1.0, 3.0), stats.uniform(-1, 4).cdf),
    ],
)
def test_draws_follow_the_distribution(ours, cdf) -> None:
    draws = ours.sample(4000, 3)
    assert draws.shape == (4000,)
    assert stats.kstest(draws, cdf).pvalue > 1e-3
    same(draws, ours.sample(4000, np.random.default_rng(3)))
    assert ours.sample(0).shape == (0,)


def test_draws_of_vectors_and_of_priors() -> None:
    draws = MultivariateNormal([1.0, 2.0, 3.0], COVARIANCE).sample(40_000, 1)
    np.testing.assert_allclose(draws.mean(axis=0), [1, 2, 3], atol=0.03)
    np.testing.assert_allclose(np.cov(draws.T), COVARIANCE, atol=0.05)
    assert stats.kstest(MultivariateT(4.0, np.zeros(3), COVARIANCE).sample(4000, 1)[:, 1], stats.t(4).cdf).pvalue > 1e-3
    normals = NIG.sample(4000, 2)
    assert stats.kstest(normals.variance, stats.invgamma(2.5, scale=1.25).cdf).pvalue > 1e-3
    assert stats.kstest(normals.mean, stats.t(*NIG.marginal_mean).cdf).pvalue > 1e-3
    many = NIW.sample(4000, 2)
    one = NIW.marginal([1])
    variance = stats.invgamma(one.df / 2, scale=one.scale[0, 0] / 2)
    assert stats.kstest(many.covariance[:, 1, 1], variance.cdf).pvalue > 1e-3
    t = NIW.marginal_mean.marginal([2])
    assert stats.kstest(many.mean[:, 2], stats.t(t.df, t.location[0], np.sqrt(t.scale[0, 0])).cdf).pvalue > 1e-3
    inverse = np.linalg.inv(many.covariance).mean(axis=0)
    np.testing.assert_allclose(inverse, NIW.df * np.linalg.inv(NIW.scale), atol=0.3)


def test_prior_densities_are_scipys() -> None:
    m, v = np.array([0.1, 2.0]), np.array([0.4, 3.0])
    theirs = stats.invgamma(2.5, scale=1.25).logpdf(v) + stats.norm(0.5, np.sqrt(v / 1.5)).logpdf(m)
    same(NIG.log_prob(Normal(m, v)), theirs)
    S = COVARIANCE * 0.7
    theirs = stats.invwishart(4.5, NIW.scale).logpdf(S) + stats.multivariate_normal(NIW.mean, S / 1.5).logpdf(ROWS[0])
    same(NIW.log_prob(MultivariateNormal(ROWS[0], S)), theirs)
    one = NIW.marginal([1])
    as_nig = NormalInverseGamma(one.mean[0], one.count, one.df / 2, one.scale[0, 0] / 2)
    same(one.log_prob(MultivariateNormal([0.3], [[0.8]])), as_nig.log_prob(Normal(0.3, 0.8)))
    for key in ("mean", "variance"):
        same([e[1] for e in NIW.interval(0.9)[key]], as_nig.interval(0.9)[key])
    same(NIG.interval(0.9)["variance"], stats.invgamma(2.5, scale=1.25).interval(0.9))


def test_modes_and_means_of_priors() -> None:
    at = NIG.mode
    for dm, dv in [(1e-4, 0), (-1e-4, 0), (0, 1e-4), (0, -1e-4)]:
        assert NIG.log_prob(Normal(at.mean + dm, at.variance + dv)) < NIG.log_prob(at)
    top = NIW.mode
    for i in range(3):
        for step in (1e-4, -1e-4):
            S = top.covariance.copy()
            S[i, i] += step
            assert NIW.log_prob(MultivariateNormal(top.mean, S)) < NIW.log_prob(top)
    same(NIG.expected.variance, stats.invgamma(2.5, scale=1.25).mean())
    same(NormalInverseWishart([0.0] * 3, 1.0, 6.0, COVARIANCE).expected.covariance, stats.invwishart(6, COVARIANCE).mean())
    assert Gamma(3.0, 2.0).mode == 1.0
    with pytest.raises(ModelError, match="no mode"):
        _ = Gamma(0.5, 1.0).mode
    with pytest.raises(ModelError, match="no expectation"):
        _ = NormalInverseGamma(0.0, 1.0, 1.0, 1.0).expected
    with pytest.raises(ModelError, match="no expectation"):
        _ = NormalInverseWishart([0.0, 0.0], 1.0, 3.0, np.eye(2)).expected


def test_estimates_are_the_textbook_ones() -> None:
    w = WEIGHTS
    mean = np.average(X, weights=w)
    variance = np.average((X - mean) ** 2, weights=w)
    fitted = Normal().estimate(Normal().statistic(X, w))
    same([fitted.mean, fitted.variance], [mean, variance])
    same(Exponential().estimate(Exponential().statistic(X, w)).rate, 1 / mean)
    same(NormalKnownMean(2.0).estimate(NormalKnownMean(2.0).statistic(X, w)).variance, np.average((X - 2) ** 2, weights=w))
    same(NormalKnownVariance(2.0).estimate(NormalKnownVariance(2.0).statistic(X, w)).mean, mean)
    fitted = MultivariateNormal().estimate(MultivariateNormal().statistic(ROWS))
    same(fitted.covariance, np.cov(ROWS.T, bias=True))
    shape, _, scale = stats.gamma.fit(X, floc=0)
    fitted = Gamma().estimate(Gamma().statistic(X))
    same([fitted.shape, 1 / fitted.rate], [shape, scale], 1e-5)
    same(fitted.mean_parameters, Gamma().statistic(X).mean, 1e-13)


@pytest.mark.parametrize("shape", [1e-4, 0.03, 0.999, 1.0, 17.0, 1e3, 1e6, 1e8])
def test_gamma_finds_its_shape_again(shape: float) -> None:
    truth = Gamma(shape, 3.0)
    # E[ln x] is 1/shape away from ln E[x]: at 1e8 that gap has 8 digits of a double left.
    same(Gamma().from_mean(truth.mean_parameters).shape / shape, 1.0, max(1e-12, shape * 1e-15))
    if shape > 0.01:
        x = truth.sample(20_000, 5)
        fitted = Gamma().estimate(Gamma().statistic(x))
        assert abs(fitted.shape / shape - 1) < 5 * np.sqrt(2 / 20_000)
        # The likelihood of the data is highest there.
        best = fitted.log_prob(x).sum()
        for factor in (0.99, 1.01):
            assert Gamma(fitted.shape * factor, fitted.rate * factor).log_prob(x).sum() < best


def test_nothing_seen_changes_nothing() -> None:
    for family, prior, x in FAMILIES_AND_PRIORS:
        empty = family.statistic(x[:0])
        same((empty + family.statistic(x)).total, family.statistic(x).total)
        same(prior.log_evidence(empty), 0.0)
        for name in prior.names:
            same(getattr(prior + empty, name), getattr(prior, name))
        with pytest.raises(FitError, match="no rows"):
            family.estimate(empty)


def test_a_mean_of_1e9_costs_no_digits() -> None:
    x = 1e9 + np.round(RNG.normal(size=5000), 4)
    exact = x - 1e9  # exact in doubles
    parts = [Normal().statistic(part) for part in np.array_split(x, 7)]
    for s in (Normal().statistic(x), sum(parts[1:], parts[0]), sum(parts) - parts[3] + parts[3]):
        same(s.scatter[0, 0], ((exact - exact.mean()) ** 2).sum(), 1e-12)
        same((s.centre[0] - 1e9) + s.rest[0], exact.mean(), 1e-9)
    fitted = Normal().estimate(sum(parts))
    same(fitted.variance, exact.var(), 1e-12)
    both = np.stack([x, 2 * exact - 1e9 + RNG.normal(size=5000)], axis=1)
    same(
        MultivariateNormal().estimate(MultivariateNormal().statistic(both)).covariance,
        np.cov((both - both[0]).T, bias=True),
        1e-11,
    )


def test_posteriors_row_by_row_at_1e9() -> None:
    x = 1e9 + np.round(RNG.normal(size=400), 4)
    prior = NormalInverseGamma(1e9, 1.0, 2.0, 1.0)
    one_by_one, evidence = prior, 0.0
    for value in x:
        s = Normal().statistic(value)
        evidence += one_by_one.log_evidence(s)
        one_by_one = one_by_one + s
    batch = prior + Normal().statistic(x)
    same(one_by_one.scale, batch.scale, 1e-11)
    same(evidence, prior.log_evidence(Normal().statistic(x)), 1e-11)
    near = NormalInverseGamma(0.0, 1.0, 2.0, 1.0) + Normal().statistic(x - 1e9)
    same(one_by_one.scale, near.scale, 1e-11)


def test_priors_side_by_side() -> None:
    x, rows = RNG.gamma(2.0, 1.0, (50, 3)), RNG.normal(size=(50, 2, 3))
    posterior = NIW + MultivariateNormal().statistic(rows)
    alone = NIW + MultivariateNormal().statistic(rows[:, 1])
    same(posterior.scale[1], alone.scale)
    same(posterior.predictive().log_prob(rows)[:, 1], alone.predictive().log_prob(rows[:, 1]))
    same(NIW.log_evidence(MultivariateNormal().statistic(rows))[1], NIW.log_evidence(MultivariateNormal().statistic(rows[:, 1])))
    batch = NormalInverseGamma([0.0, 1.0, 2.0], 1.0, 2.0, 3.0)
    posterior = batch + Normal().statistic(x)
    same(posterior.scale[1], (NormalInverseGamma(1.0, 1.0, 2.0, 3.0) + Normal().statistic(x[:, 1])).scale)
    assert batch.sample(4).mean.shape == (4, 3)
    assert posterior.interval()["mean"].lower.shape == (3,)


def test_gather_is_the_statistic_of_the_column() -> None:
    n = 150_000
    rng = np.random.default_rng(0)
    table = {"x": rng.gamma(2.0, 1.0, n), "y": 1e9 + rng.normal(size=n)}
    weights = rng.integers(0, 3, n).astype(float)
    for data, w in ((sf.scan(table), None), (sf.scan(table, weights=weights), weights)):
        for family in (Normal(), Gamma(), Exponential(), NormalKnownMean(1.0), NormalKnownVariance(2.0)):
            got, want = family.gather(data, "x", threads=2), family.statistic(table["x"], w)
            same(got.total, want.total, 1e-12)
        got = MultivariateNormal().gather(data, ["x", "y"])
        want = MultivariateNormal().statistic(np.stack([table["x"], table["y"]], axis=1), w)
        same(got.scatter, want.scatter, 1e-10)
        ends = Uniform().gather(data, "x")
        kept = table["x"] if w is None else table["x"][w > 0]
        assert (ends.lower, ends.upper) == (kept.min(), kept.max())
    with pytest.raises(DataError, match="no column 'z'"):
        Normal().gather(sf.scan(table), "z")
    with pytest.raises(DataError, match="list of columns"):
        MultivariateNormal().gather(sf.scan(table), "x")
    with pytest.raises(SufficeError, match="missing"):
        Normal().gather(sf.scan({"x": [1.0, None, 2.0]}), "x")
    with pytest.raises(DataError, match="positive numbers"):
        Gamma().gather(sf.scan({"x": [1.0, 0.0, 2.0]}), "x")


@pytest.mark.parametrize("family", [Exponential(), NormalKnownMean(1.0)], ids=repr)
def test_evidence_of_a_gamma_prior_by_quadrature(family) -> None:
    prior, x = Gamma(2.0, 3.0), X[:5]

    def member(rate: float):
        return Exponential(rate) if isinstance(family, Exponential) else NormalKnownMean(1.0, 1 / rate)

    def joint(rate: float) -> float:
        return float(np.exp(member(rate).log_prob(x).sum() + prior.log_prob(rate)))

    value = integrate.quad(joint, 0, np.inf, epsabs=0, epsrel=1e-11)[0]
    same(prior.log_evidence(family.statistic(x)), np.log(value), 1e-9)
    posterior = prior + family.statistic(x)
    same(posterior.log_prob(0.7), np.log(joint(0.7) / value), 1e-9)


def test_evidence_of_a_normal_prior_by_quadrature() -> None:
    prior, family, x = Normal(0.5, 3.0), NormalKnownVariance(2.0), X[:5]

    def joint(mean: float) -> float:
        return float(np.exp(NormalKnownVariance(2.0, mean).log_prob(x).sum() + prior.log_prob(mean)))

    value = integrate.quad(joint, -20, 20, epsabs=0, epsrel=1e-11)[0]
    same(prior.log_evidence(family.statistic(x)), np.log(value), 1e-9)
    posterior = prior + family.statistic(x)
    same(1 / posterior.variance, 5 / 2.0 + 1 / 3.0)
    same(posterior.log_prob(0.7), np.log(joint(0.7) / value), 1e-9)
    dense = stats.multivariate_normal(np.full(5, 0.5), 2 * np.eye(5) + 3.0)
    same(np.log(value), dense.logpdf(x), 1e-9)


def test_evidence_of_normal_inverse_gamma_by_quadrature() -> None:
    """The trapezoid rule over z = (μ − 1)/√v, of heavy tails else, and ln v: smooth and falling off on both sides."""
    x, z, u = X[:4], np.linspace(-25.0, 25.0, 601)[:, None], np.linspace(-9.0, 60.0, 901)
    v = np.exp(u)
    normals = Normal(1.0 + z * np.sqrt(v), np.broadcast_to(v, (601, 901)))
    joint = sum(normals.log_prob(value) for value in x) + NIG.log_prob(normals)
    value = np.exp(joint + 1.5 * u).sum() * (z[1, 0] - z[0, 0]) * (u[1] - u[0])
    same(NIG.log_evidence(Normal().statistic(x)), np.log(value), 1e-9)
    at = Normal(1.0, 2.0)
    posterior = NIG + Normal().statistic(x)
    same(posterior.log_prob(at), at.log_prob(x).sum() + NIG.log_prob(at) - np.log(value), 1e-9)


def test_normal_inverse_wishart_of_one_component_is_normal_inverse_gamma() -> None:
    wishart = NormalInverseWishart([0.5], 1.5, 5.0, [[2.5]])
    s, t = MultivariateNormal().statistic(X[:, None]), Normal().statistic(X)
    same(wishart.log_evidence(s), NIG.log_evidence(t))
    same((wishart + s).predictive().log_prob([0.3]), (NIG + t).predictive().log_prob(0.3))
    same((wishart + s).mode.covariance[0, 0], (NIG + t).mode.variance)


def test_evidence_of_normal_inverse_wishart_is_a_product_of_marginals_and_draws() -> None:
    """By Bayes at any point: ln evidence = ln likelihood + ln prior − ln posterior."""
    s = MultivariateNormal().statistic(ROWS)
    for mean, covariance in ((NIW.mean, COVARIANCE), (ROWS[0], np.eye(3))):
        at = MultivariateNormal(mean, covariance)
        same(NIW.log_evidence(s), at.log_prob(ROWS).sum() + NIW.log_prob(at) - (NIW + s).log_prob(at), 1e-10)
    # What is learnt of some components does not hang on the others.
    fewer = NIW.marginal([2, 0]) + MultivariateNormal().statistic(ROWS[:, [2, 0]])
    same(fewer.scale, (NIW + s).marginal([2, 0]).scale)
    assert fewer.df == (NIW + s).marginal([2, 0]).df


@pytest.mark.parametrize(
    ("family", "total", "count", "points"),
    [
        (Exponential(), [4.0], 2.5, [Exponential(0.3), Exponential(2.0)]),
        (NormalKnownMean(1.0), [4.0], 2.5, [NormalKnownMean(1.0, 0.4), NormalKnownMean(1.0, 3.0)]),
        (NormalKnownVariance(2.0), [4.0], 2.5, [NormalKnownVariance(2.0, -1.0), NormalKnownVariance(2.0, 3.0)]),
        (Normal(), [4.0, 20.0], 2.5, [Normal(0.3, 0.7), Normal(2.0, 3.0)]),
        (
            MultivariateNormal(),
            [4.0, 2.0, 20.0, 1.0, 10.0],
            2.5,
            [
                MultivariateNormal([0.3, 1.0], [[0.7, 0.1], [0.1, 0.4]]),
                MultivariateNormal([2.0, 0.0], [[2.0, -1.0], [-1.0, 3.0]]),
            ],
        ),
    ],
    ids=lambda a: type(a).__name__,
)
def test_the_general_conjugate_prior_is_the_named_one(family, total, count, points) -> None:
    """p(η) ∝ exp(η·total − count A(η)), the same ratio of densities of η at two points as the named prior's, by its Jacobian."""
    prior = family.conjugate(total, count)
    a, b = ((p.natural @ total - count * p.log_normaliser()) for p in points)
    same(_density_of_eta(prior, points[0]) - _density_of_eta(prior, points[1]), a - b, 1e-6)
    # Imagined rows and seen rows add.
    x = ROWS[:, :2] if family.event_axes else X
    s = family.statistic(x)
    together = family.conjugate(np.asarray(total) + s.total, count + s.count)
    a, b = prior + s, together
    for name in ("mean", "variance", "count", "shape", "rate", "scale", "df"):
        if hasattr(b, name):
            same(getattr(a, name), getattr(b, name))


def _density_of_eta(prior, member) -> float:
    """The named prior's density at a member, as one of η: divided by |∂η/∂θ|, by finite differences."""
    if isinstance(member, MultivariateNormal):
        i, j = np.triu_indices(2)

        def eta(theta):
            S = np.zeros((2, 2))
            S[i, j] = S[j, i] = theta[2:]
            return MultivariateNormal(theta[:2], S).natural

        theta = np.concatenate([member.mean, member.covariance[i, j]])
        own = prior.log_prob(member)
    elif isinstance(member, Normal):
        theta, own = np.array([member.mean, member.variance]), prior.log_prob(member)

        def eta(theta):
            return Normal(*theta).natural
    elif isinstance(member, NormalKnownVariance):
        theta, own = np.array([member.mean]), prior.log_prob(member.mean)

        def eta(theta):
            return NormalKnownVariance(member.variance, theta[0]).natural
    else:
        rate = member.rate if isinstance(member, Exponential) else 1 / member.variance
        theta, own = np.array([rate]), prior.log_prob(rate)

        def eta(theta):
            return Exponential(theta[0]).natural if isinstance(member, Exponential) else np.array([-0.5 * theta[0]])

    step = 1e-5
    J = [(eta(theta + step * e) - eta(theta - step * e)) / (2 * step) for e in np.eye(len(theta))]
    return own - np.linalg.slogdet(np.array(J))[1]


def test_divergence_of_multivariate_normals() -> None:
    p, q = MultivariateNormal(np.zeros(3), COVARIANCE), MultivariateNormal([1.0, 0.0, -1.0], np.diag([1.0, 2.0, 3.0]))
    A = q.log_normaliser() - p.log_normaliser() - (q.natural - p.natural) @ p.mean_parameters
    same(p.kl(q), A)
    assert p.kl(p) == 0.0
    near = MultivariateNormal(np.zeros(3), COVARIANCE * (1 + 1e-8))
    same(p.kl(near) / (3 * 1e-16 / 4), 1.0, 1e-6)
    with pytest.raises(ModelError, match="divergence"):
        p.kl(MultivariateNormal([0.0], [[1.0]]))


def test_gamma_at_a_large_shape_keeps_its_digits() -> None:
    a = 1e8
    p = Gamma(a, a)
    # Near its mean it is a normal of variance 1/a, up to a skewness of 2/√a.
    same(p.log_prob(1.0), stats.norm(1, 1 / np.sqrt(a)).logpdf(1.0) - 1 / (12 * a), 1e-12)
    same(p.entropy(), stats.norm(1, 1 / np.sqrt(a)).entropy(), 1e-8)
    same(p.kl(Gamma(a, a * (1 + 1e-6))) / (a * 1e-12 / 2), 1.0, 1e-5)
    assert p.kl(p) == 0.0
    x = p.sample(50_000, 1)
    fitted = Gamma().estimate(Gamma().statistic(x))
    assert abs(fitted.shape / a - 1) < 5 * np.sqrt(2 / 50_000)


def test_log_gamma_steps_keep_their_digits() -> None:
    from scipy.special import digamma, gammaln

    z = np.array([1e-5, 0.3, 1.0, 4.0, 15.9, 16.0, 30.0, 1e3])
    same(stirling_rest(z), gammaln(z) - ((z - 0.5) * np.log(z) - z + 0.5 * np.log(2 * np.pi)), 1e-11)
    same(log_gamma_step(z, 2.0), np.log(z) + np.log1p(z), 1e-13)
    same(log_gamma_step(1e15, 3.0), 3 * np.log(1e15), 1e-15)
    same(log_gamma_step(z, 1000.5), gammaln(z + 1000.5) - gammaln(z), 1e-12)
    same(log_gamma_step(50.0, -30.0), gammaln(20.0) - gammaln(50.0), 1e-13)
    same(log_minus_digamma(z) * z, (np.log(z) - digamma(z)) * z, 1e-10)
    many = np.logspace(-6, 12, 400)
    same(inverse_log_minus_digamma(log_minus_digamma(many)) / many, 1.0, 1e-12)
    same(excess_over_log([0.0, -0.5, 1e-3, 9.0]), [0.0, np.log(2) - 0.5, 1e-3 - np.log1p(1e-3), 9 - np.log(10)], 1e-15)


def test_uniform() -> None:
    s = Uniform().statistic([3.0, 1.0, 2.0], [1.0, 1.0, 2.0]) + Uniform().statistic([9.0, 2.0], [0.0, 1.0])
    fitted = Uniform().estimate(s)
    assert fitted == Uniform(1.0, 3.0)
    assert repr(fitted) == "Uniform(lower=1.0, upper=3.0)"
    assert s.count == 5.0
    same(fitted.log_prob([0.9, 1.0, 3.0, 3.1]), [-np.inf, -np.log(2), -np.log(2), -np.inf])
    assert Uniform(0.0, 1.0).kl(Uniform(0.5, 2.0)) == np.inf
    same(Uniform(-1.5e308, 1.5e308).entropy(), np.log(1.5e308) + np.log(2))
    assert np.isfinite(Uniform(-1.5e308, 1.5e308).sample(3)).all()
    assert (0 * s).count == 0
    same([fitted.mean, fitted.variance], [2.0, 1 / 3])
    with pytest.raises(StatisticsError, match="cannot be taken away"):
        s - s
    with pytest.raises(FitError, match="all numbers are equal"):
        Uniform().estimate(Uniform().statistic([1.0, 1.0]))
    with pytest.raises(FitError, match="no rows"):
        Uniform().estimate(Uniform().statistic([]))
    with pytest.raises(ModelError, match="above the lower"):
        Uniform(1.0, 1.0)
    with pytest.raises(ModelError, match="has no ends"):
        Uniform().log_prob(1.0)
    batch = Uniform().estimate(Uniform().statistic(RNG.random((5, 3))))
    assert batch.sample(4).shape == (4, 3)
    same(Uniform(0.0, 1.0).kl(Uniform(-1.0, 3.0)), np.log(4.0))


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: Gamma(-1.0, 1.0), "the shape of Gamma"),
        (lambda: Gamma(1.0), "no rate"),
        (lambda: Gamma(1.0, "much"), "must be a number"),
        (lambda: Normal(0.0, 0.0), "the variance of Normal"),
        (lambda: Normal(np.inf, 1.0), "finite"),
        (lambda: Normal([0.0, 1.0], [1.0, 1.0, 1.0]), "do not fit together"),
        (lambda: NormalKnownVariance(-1.0), "the variance of NormalKnownVariance"),
        (lambda: NormalKnownVariance(None), "needs its variance"),
        (lambda: NormalKnownMean(np.nan), "the mean of NormalKnownMean"),
        (lambda: NormalKnownMean(None), "needs its mean"),
        (lambda: MultivariateNormal([0.0, 0.0]), "both"),
        (lambda: MultivariateNormal([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]), "positive definite"),
        (lambda: MultivariateNormal([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]]), "component 1"),
        (lambda: MultivariateNormal([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]]), "symmetric"),
        (lambda: MultivariateNormal([0.0], np.eye(2)), "does not fit"),
        (lambda: MultivariateNormal(np.zeros((2, 3)), np.stack([np.eye(3)] * 4)), "do not fit together"),
        (lambda: NIW.log_prob(MultivariateNormal([0.0], [[1.0]])), "3 components"),
        (lambda: NIG.log_prob(3.0), "one of normals"),
        (lambda: NormalKnownMean([0.0, 1.0]).statistic([5.0, 6.0]), "side by side"),
        (lambda: MultivariateNormal().statistic(3.0), "last axis"),
        (lambda: MultivariateNormal([0.0, 0.0], [1.0, 1.0]), "square"),
        (lambda: MultivariateNormal([0.0, 0.0], np.eye(2)).log_prob([1.0, 2.0, 3.0]), "vectors of 2"),
        (lambda: MultivariateNormal().from_natural([1.0, 2.0, 3.0]), "2, 5, 9"),
        (lambda: NormalInverseGamma(0.0, 0.0, 1.0, 1.0), "the count of NormalInverseGamma"),
        (lambda: NormalInverseWishart([0.0, 0.0], 1.0, 1.0, np.eye(2)), "the df of NormalInverseWishart"),
        (lambda: NormalInverseWishart([0.0, 0.0], 1.0, 4.0, np.zeros((2, 2))), "positive definite"),
        (lambda: NIW.marginal([0, 3]), "from 0 to 2"),
        (lambda: NIW + MultivariateNormal().statistic(ROWS[:, :2]), "does not fit"),
        (lambda: Normal().log_prob(1.0), "has no mean"),
        (lambda: Exponential().entropy(), "has no rate"),
        (lambda: Gamma().sample(3), "has no shape"),
        (lambda: MultivariateNormal().natural, "has no"),
        (lambda: Gamma() + Exponential().statistic([1.0]), "has no shape"),
        (lambda: Gamma(1.0, 1.0).predictive(), "several families"),
        (lambda: Gamma(1.0, 1.0).predictive(Normal()), "no conjugate prior of Normal"),
        (lambda: Gamma(1.0, 1.0).predictive(Gamma()), "no conjugate prior of Gamma"),
        (lambda: Normal(0.0, 1.0).predictive(Normal()), "no conjugate prior of Normal"),
        (lambda: Gamma(1.0, 1.0) + Gamma().statistic([1.0, 2.0]), "no conjugate prior of Gamma"),
        (lambda: Gamma(1.0, 1.0).log_evidence(Gamma().statistic([1.0, 2.0])), "no conjugate prior of Gamma"),
        (lambda: Normal(0.0, 1.0).log_evidence(Normal().statistic([1.0, 2.0])), "no conjugate prior of Normal"),
        (lambda: NIG + Exponential().statistic([1.0]), "no conjugate prior of Exponential"),
        (lambda: Gamma().conjugate([1.0, 1.0], 1.0), "no conjugate prior"),
        (lambda: Exponential().statistic([1.0, -1.0]), "row 2 is -1.0"),
        (lambda: Gamma().statistic([1.0, 0.0]), "positive numbers"),
        (lambda: Normal().statistic([1.0, np.nan]), "NaN"),
        (lambda: Normal().statistic([1.0, np.inf]), "row 2 holds inf"),
        (lambda: Normal().statistic(["a"]), "is none"),
        (lambda: Normal().statistic([1.0, 2.0], [1.0]), "weights"),
        (lambda: Normal().statistic([1.0, 2.0], [1.0, -1.0]), "weights"),
        (lambda: Normal().statistic([1e200, -1e200]), "beyond a double"),
        (lambda: Normal().statistic([1.0]) + Normal().statistic([[1.0, 2.0]]), "one to one"),
        (lambda: Normal().statistic([1.0]) * -1.0, "from 0 up"),
        (lambda: Normal().estimate(Normal().statistic([0.1] * 7, np.full(7, 0.3))), "all numbers are equal"),
        (lambda: Normal().estimate(Totals(Normal(), 2.0, [1.0, 2.0], 0.0)), "lack the digits"),
        (lambda: Normal().estimate(Exponential().statistic([1.0])), "says nothing about"),
        (lambda: Gamma().estimate(Gamma().statistic([0.1] * 7)), "all numbers are equal"),
        (lambda: Gamma().estimate(Gamma().statistic([1e9 / 3] * 7, np.full(7, 0.3))), "all numbers are equal"),
        (lambda: Exponential().estimate(Exponential().statistic([0.0, 0.0])), "every number is 0"),
        (lambda: NormalKnownMean(1.0).estimate(NormalKnownMean(1.0).statistic([1.0])), "every number is its mean"),
        (lambda: MultivariateNormal().estimate(MultivariateNormal().statistic(ROWS[:3])), "component 2"),
        (lambda: MultivariateNormal().estimate(MultivariateNormal().statistic(ROWS * [1, 0, 1])), "component 1 .* does not vary"),
        (lambda: MultivariateNormal(np.zeros(300), np.eye(300)).hessian(), "second derivatives"),
        (lambda: Gamma(1.0, 1.0).interval(95), "level"),
        (lambda: Normal(0.0, 1.0).sample(-1), "number of draws"),
        (lambda: Normal(0.0, 1.0).kl(Exponential(1.0)), "divergence"),
        (lambda: Gamma().from_mean([1.0, 1.0]), "all numbers are equal"),
        (lambda: Normal().from_mean([1.0, 1.0]), "must be"),
        (lambda: Normal().from_natural([1.0, 0.0]), "η₂"),
        (lambda: Exponential().from_natural([1.0]), "η"),
    ],
)  # fmt: skip
def test_refusals_are_one_sentence(ask, words: str) -> None:
    with pytest.raises(SufficeError, match=words) as caught:
        ask()
    assert "\n" not in str(caught.value)


def test_sums_of_columns_are_singular_at_1e9() -> None:
    x = 1e9 + RNG.normal(size=(500, 2))
    with pytest.raises(FitError, match=r"component 2 \(from 0\) is a linear function"):
        MultivariateNormal().estimate(MultivariateNormal().statistic(np.column_stack([x, x.sum(axis=1)])))


def test_too_large_is_refused_before_memory_is_taken() -> None:
    with pytest.raises(TooLarge, match="501,500²"):
        MultivariateNormal(np.zeros(1000), np.eye(1000)).hessian()


def test_prints_are_short_and_exact() -> None:
    assert repr(Gamma(15.0, 5.0) + Poisson().statistic([1])) == "Gamma(shape=16.0, rate=6.0, of=Poisson())"
    assert repr(Normal()) == "Normal()"
    assert repr(NormalKnownVariance(2.0)) == "NormalKnownVariance(variance=2.0)"
    assert repr(Normal([0.0, 1.0], 1.0)) == "Normal(mean=[0.0, 1.0], variance=[1.0, 1.0])"
    assert "array" in repr(Normal(np.zeros(100), 1.0))
    assert repr(NormalInverseGamma(0, 1, 2, 3)) == "NormalInverseGamma(mean=0.0, count=1.0, shape=2.0, scale=3.0)"
    assert isinstance(Normal().statistic([1.0]), Centred)
    assert Normal(0.0, 1.0) == Normal(0, 1)
    assert Normal(0.0, 1.0) != Normal(0.0, 2.0)
    assert NormalInverseGamma(0.5, 1.5, 2.5, 1.25) == NIG
    assert NormalInverseWishart(NIW.mean, 1.5, 4.5, NIW.scale) == NIW
    assert pickle.loads(pickle.dumps(NIW + MultivariateNormal().statistic(ROWS))).count == 31.5
    with pytest.raises(ValueError, match="read-only"):
        NIW.scale[0, 0] = 3.0


def test_extremes_are_infinite_not_warned_of() -> None:
    assert Exponential(1e-200).variance == np.inf
    assert np.isneginf(Normal(0.0, 1.0).log_prob([1e300, np.inf])).all()
    assert np.isneginf(Gamma(2.0, 3.0).log_prob([np.inf, -np.inf])).all()
    assert np.isneginf(Gamma(1e-3, 1e300).log_prob(1e10))
    same(Gamma(2.0, 3.0).log_prob([1e-320, 5e-324]), [np.log(9) + np.log(1e-320), np.log(9) + np.log(5e-324)], 1e-4)
    assert Normal(0.0, 1e300).kl(Normal(0.0, 1e-300)) == np.inf
    assert Lomax(1e-3, 1.0).interval(0.95).upper == np.inf
    assert np.isfinite(Gamma(1e300, 1e300).entropy())
    assert np.isfinite(NormalInverseGamma(0.0, 1e-300, 1e-300, 1e-300).log_evidence(Normal().statistic([1.0, 2.0])))
