"""Divergences, evidences and intervals where digits are easily lost, against numbers computed with 60 digits (mpmath)."""

from __future__ import annotations

import numpy as np
import pytest

from suffice import exponential as ef
from suffice.errors import ModelError, StatisticsError


def near(value, expected, rel=1e-12) -> None:
    assert float(value) == pytest.approx(expected, rel=rel)


FAR = 45.05170185988091  # 1e-20 − 1 + 20 ln 10


def test_divergences_between_members_far_apart() -> None:
    near(ef.Exponential(1.0).kl(ef.Exponential(1e-20)), FAR)
    near(ef.Exponential(1.0).kl(ef.Exponential(1e-8)), 17.420680753952365)
    near(ef.Normal(0.0, 1e-20).kl(ef.Normal(0.0, 1.0)), FAR / 2)
    near(ef.NormalKnownMean(0.0, 1e-20).kl(ef.NormalKnownMean(0.0, 1.0)), FAR / 2)
    near(ef.Gamma(1.0, 1.0).kl(ef.Gamma(1.0, 1e-20)), FAR)
    near(ef.Gamma(2.0, 1e200).kl(ef.Gamma(2.0, 1e-200)), 2 * (400 * np.log(10) - 1))
    two = np.zeros(2)
    for small, expected in ((1e-12, 26.63102111592955), (1e-20, FAR)):
        near(ef.MultivariateNormal(two, small * np.eye(2)).kl(ef.MultivariateNormal(two, np.eye(2))), expected)
    mixed = ef.MultivariateNormal(two, np.diag([1e-20, 1.0])).kl(ef.MultivariateNormal(two, np.eye(2)))
    near(mixed, FAR / 2)


def test_divergences_between_members_all_but_equal() -> None:
    step = 2.0**-30
    near(ef.Exponential(1.0).kl(ef.Exponential(1.0 + step)), step**2 / 2 - step**3 / 3)
    near(ef.Gamma(1e9, 1.0).kl(ef.Gamma(1e9, 1.0 + step)), 1e9 * (step**2 / 2 - step**3 / 3))
    assert ef.Gamma(1e9, 3.0).kl(ef.Gamma(1e9, 3.0)) == 0.0
    assert ef.Beta(1e9, 3.0).kl(ef.Beta(1e9, 3.0)) == 0.0
    # Two gammas of one mean: only their shapes differ, by a tenth.
    near(ef.Gamma(1e12, 1e12).kl(ef.Gamma(1.1e12, 1.1e12)), 0.5 * (0.1 - np.log(1.1)), 1e-9)


@pytest.mark.parametrize(
    ("n", "gamma", "beta"),
    [
        (1e6, 6.488817079110881, 6.528537766617507),
        (1e9, 9.942694385601866, 9.982415156358451),
        (1e12, 13.396572024759935, 13.436292795599769),
        (1e15, 16.85044966425067, 16.89017043509059),
    ],
)
def test_divergences_of_large_shapes(n: float, gamma: float, beta: float) -> None:
    near(ef.Gamma(n, n).kl(ef.Gamma(1.0, 1.0)), gamma)
    near(ef.Beta(n, n).kl(ef.Beta(1.0, 1.0)), beta)
    near(ef.Dirichlet([n, n]).kl(ef.Dirichlet([1.0, 1.0])), beta)


def test_a_divergence_that_is_large_itself() -> None:
    near(ef.Gamma(1e17, 1.0).kl(ef.Gamma(1.0, 1.0)), 1e17)
    near(ef.Beta(1e-3, 1e-3).kl(ef.Beta(1e6, 1e6)), 998616974.0666467)


def test_normalisers_and_predictives_of_large_shapes() -> None:
    near(ef.Dirichlet([0.02, 4e11]).log_normaliser(), 3.3665099084173127)
    near(ef.Beta(0.02, 4e11).log_normaliser(), 3.3665099084173127)
    near(ef.BetaGeometric(8e11, 5e10).log_prob(0), np.log1p(-1 / 17), 1e-10)
    near(ef.BetaGeometric(1.0, 1e12).log_survival(1e12), -np.log(2.0), 1e-10)


def test_the_density_of_normals_under_a_prior_of_many_rows() -> None:
    for n, expected in ((1e9, 8.523755851980527), (1e15, 15.431511131045998)):
        near(ef.NormalInverseGamma(0.0, 1.0, n, n).log_prob(ef.Normal(0.0, 1.0)), expected)
    n, S = 2e9, np.array([[2.0, 0.3], [0.3, 1.0]])
    wishart = ef.NormalInverseWishart([0.0, 0.0], 1.0, n, n * S).log_prob(
        ef.MultivariateNormal([0.1, 0.2], S + np.diag([1e-4, 0.0]))
    )
    near(wishart, 24.15156886661525, 1e-11)


@pytest.mark.parametrize("x", [7.0, 1e6, 1e9, 1e12, 1e15])
def test_the_evidence_of_one_row_is_its_predictive_probability(x: float) -> None:
    counts = [x // 2, x // 4, x - x // 2 - x // 4]
    cases = [
        (ef.Poisson(), ef.Gamma(2.0, 2.0 / x), x),
        (ef.Geometric(), ef.Beta(2.0, 2.0), x),
        (ef.Binomial(int(x)), ef.Beta(1.0, 2.0), x // 2),
        (ef.Multinomial(int(x), 3), ef.Dirichlet([1.0, 2.0, 3.0]), counts),
        (ef.Exponential(), ef.Gamma(2.0, 2.0 * x), x),
        (ef.Normal(), ef.NormalInverseGamma(0.0, 1.0, x, x), 0.7),
        (ef.MultivariateNormal(), ef.NormalInverseWishart([0.0, 0.0], 1.0, x, x * np.eye(2)), [0.7, 0.1]),
    ]
    for family, prior, row in cases:
        evidence = prior.log_evidence(family.statistic([row]))
        assert float(evidence) == pytest.approx(float(prior.predictive(family).log_prob(row)), rel=1e-12), family


def test_evidence_of_rows_without_a_base_measure() -> None:
    """One success among 1e12 failures: ln B(3, 2 + 1e12)/B(2, 2)."""
    near(ef.Beta(2.0, 2.0).log_evidence(ef.Geometric().statistic([1e12])), -80.40815669800665)
    near(ef.Beta(1.0, 1.0).log_evidence(ef.Bernoulli().statistic([0.0]) * 1e12), -np.log(1e12))


def test_evidence_of_several_rows_is_the_product_of_predictives() -> None:
    x, prior = [3.0, 0.0, 7.0], ef.Gamma(1.5, 0.5)
    total, posterior = 0.0, prior
    for one in x:
        total += float(posterior.predictive(ef.Poisson()).log_prob(one))
        posterior = posterior + ef.Poisson().statistic([one])
    near(prior.log_evidence(ef.Poisson().statistic(x)), total)
    assert float(prior.log_evidence(ef.Poisson().statistic(np.zeros(0)))) == 0.0


def test_fractionally_weighted_normal_rows_are_taken_away_to_the_last() -> None:
    a = ef.Normal().statistic([0.0, 1.0], weights=[0.1] * 2)
    b = ef.Normal().statistic([0.0, 1.0, 2.0], weights=[0.1] * 3)
    for left in ((a + b) - a - b, (a + b) - b - a):
        assert left.count < 1e-12
        assert left.scatter == 0.0
    with pytest.raises(StatisticsError, match="fewer rows"):
        a - b


def test_several_weights_make_several_statistics() -> None:
    s = ef.Normal().statistic([1.0, 3.0]) * [1.0, 2.0]
    np.testing.assert_array_equal(ef.Normal().estimate(s).mean, [2.0, 2.0])
    with pytest.raises(StatisticsError, match=r"weights of \(3,\)"):
        s * [1.0, 2.0, 3.0]


def test_impossible_vectors() -> None:
    plain = ef.MultivariateNormal([0.0, 0.0], np.eye(2))
    np.testing.assert_array_equal(np.isneginf(plain.log_prob([[np.inf, 0.0], [0.0, 0.0]])), [True, False])
    t = ef.MultivariateT(3.0, [0.0, 0.0], np.eye(2))
    assert t.log_prob([-np.inf, 0.0]) == -np.inf
    near(t.log_prob([1e200, 0.0]), float(t.log_prob([1e100, 0.0])) - 500 * np.log(10))


@pytest.mark.parametrize("ask", ["gradient", "hessian", "log_normaliser", "from_natural"])
def test_geometric_has_no_member_from_zero_up(ask: str) -> None:
    with pytest.raises(ModelError, match="below 0"):
        getattr(ef.Geometric(), ask)([1.0])


def test_tails_of_gammas_of_large_shape() -> None:
    """z²/2 = a ln a/x − a + x at the ends of Gamma(a, 1); Temme's expansion says where they are."""
    lower, upper = ef.Gamma(1e8, 1.0).interval(0.999999)
    near(lower, 1e8 - 48908.6, 1e-8)
    for a in (1e8, 1e12):
        lower, upper = ef.Gamma(a, 1.0).interval(0.999999)
        # Skew is (z² − 1)/3 of a unit, the same on both sides.
        z = 4.891638475699061
        near((lower + upper) / 2 - a, (z * z - 1) / 3, 0.01)
        near((upper - lower) / 2 / np.sqrt(a), z, 1e-6)
    nig = ef.NormalInverseGamma(0.0, 1.0, 1e8, 1e8).interval(0.999999)["variance"]
    near(nig.upper, 1e8 / ef.Gamma(1e8, 1.0).interval(0.999999).lower)


def test_tails_of_the_student_t_of_few_degrees() -> None:
    near(ef.StudentT(0.005, 0.0, 1.0).interval(0.95).upper, 5.693035232564564e258, 1e-10)
    near(ef.StudentT(0.02, 0.0, 1.0).interval(0.95).upper, 8.026113906396575e63, 1e-10)
    near(ef.StudentT(3.0, 0.0, 1.0).interval(0.95).upper, 3.182446305284264)


@pytest.mark.parametrize("member", [ef.Gamma(1e-3, 1e-5), ef.Beta(1e-3, 1e-3), ef.Dirichlet([1e-3, 1e-3, 1.0])])
def test_draws_are_in_their_own_support(member) -> None:
    draws = member.sample(2000)
    assert member.bare.statistic(draws).count == 2000
    assert np.isfinite(member.log_prob(draws)).all()


TWO, THREE = [1.0, 2.0], [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: ef.Poisson(TWO).kl(ef.Poisson(THREE)),
        lambda: ef.Dirichlet(TWO).kl(ef.Dirichlet(THREE)),
        lambda: ef.Gamma(TWO, 1.0).log_prob(THREE),
        lambda: ef.Categorical([[0.5, 0.5], [0.2, 0.8]]).log_prob([0, 1, 1]),
        lambda: ef.MultivariateNormal(np.zeros((2, 2)), np.eye(2)).log_prob(np.zeros((3, 2))),
        lambda: ef.StudentT(TWO, 0.0, 1.0).log_prob(THREE),
        lambda: ef.Gamma(TWO, 1.0) + ef.Poisson().statistic([THREE]),
        lambda: ef.Gamma(TWO, 1.0).log_evidence(ef.Poisson().statistic([THREE])),
        lambda: ef.Beta(TWO, 1.0).log_evidence(ef.Bernoulli().statistic([[0, 1, 1]])),
        lambda: ef.Normal(TWO, 1.0) + ef.NormalKnownVariance(1.0).statistic([THREE]),
    ],
)
def test_shapes_that_do_not_fit_are_refused(ask) -> None:
    with pytest.raises(ModelError, match=r"fit together.*2.*3"):
        ask()


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ModelError, match="the count must be a number"):
        ef.Bernoulli().conjugate([1.0], "a")
    for family in (ef.Normal(), ef.Poisson(), ef.Uniform()):
        with pytest.raises(StatisticsError, match="weighted by finite numbers"):
            family.statistic([1.0]) * "a"
    with pytest.raises(ModelError, match="n of Multinomial is one number"):
        ef.Multinomial([4, 5], 3)
    with pytest.raises(ModelError, match="cannot be drawn"):
        ef.NegativeBinomial(1.0, 1e-20).sample(3)
    with pytest.raises(StatisticsError, match="of 2 and of 3 components"):
        ef.MultivariateNormal().statistic([TWO]) + ef.MultivariateNormal().statistic([THREE])


def test_beyond_the_largest_double_is_infinite_without_a_warning() -> None:
    with pytest.raises(ModelError, match="finite"):
        ef.Poisson().from_natural([1000.0])
    infinite = [
        ef.Gamma(1.0, 1e-200).variance,
        ef.Gamma(1.0, 1e-200).hessian()[1, 1],
        ef.Lomax(3.0, 1e200).variance,
        ef.Geometric(1e-200).variance,
        ef.Normal(1e200, 1e-200).natural[0],
        ef.Normal(1e200, 1.0).gradient()[1],
        ef.NormalKnownVariance(1.0, 1e200).kl(ef.NormalKnownVariance(1.0, 0.0)),
        ef.Exponential(1e-320).mean,
        ef.NegativeBinomial(1.0, 1e-200).variance,
        ef.Uniform(-1e200, 1e200).variance,
    ]
    assert np.isposinf(infinite).all()
    assert ef.Exponential(1e200).log_prob(1e200) == -np.inf
