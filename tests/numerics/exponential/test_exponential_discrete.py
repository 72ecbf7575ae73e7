"""Families of counts and of shares beside scipy.stats, exact sums and numbers worked out by hand; and at their edges."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from math import comb, factorial
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import suffice as sf
from suffice.errors import DataError, FitError, MissingCells, ModelError, StatisticsError, TooLarge
from suffice.numerics.exponential import (
    Bernoulli,
    Beta,
    BetaBinomial,
    BetaGeometric,
    Binomial,
    Categorical,
    Dirichlet,
    DirichletMultinomial,
    ExponentialFamily,
    Gamma,
    Geometric,
    Multinomial,
    NegativeBinomial,
    NegativeBinomialKnownSize,
    Poisson,
    Totals,
)

THUMBTACK = [1, 0, 0, 1, 1]


def close(actual: Any, expected: Any, tolerance: float = 1e-11) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def log_factorial(n: int) -> Decimal:
    """ln n! to 40 digits: by Stirling's series where n is large."""
    if n < 1000:
        return Decimal(factorial(n)).ln()
    x, pi = Decimal(n), Decimal("3.14159265358979323846264338327950288419716939937510")
    series = 1 / (12 * x) - 1 / (360 * x**3) + 1 / (1260 * x**5) - 1 / (1680 * x**7)
    return x * x.ln() - x + (2 * pi * x).ln() / 2 + series


def test_the_thumbtack() -> None:
    seen = Bernoulli().statistic(THUMBTACK)
    best = Bernoulli().estimate(seen)
    assert best.p == 3 / 5
    close(np.exp(best.log_prob(THUMBTACK).sum()), 0.03456)
    close(np.exp(Beta(1, 1).log_evidence(seen)), 1 / 60)
    assert (Beta(1, 1) + seen).predictive() == Bernoulli(4 / 7)
    assert (Beta(1, 1) + seen).mode == 3 / 5


def test_laplace() -> None:
    for ones, zeros, expected in ((1, 2, 2 / 5), (100, 200, 101 / 302)):
        seen = Bernoulli().statistic([1, 0], weights=[ones, zeros])
        assert (Beta(1, 1) + seen).predictive().p == pytest.approx(expected, abs=1e-15)
        assert Bernoulli().estimate(seen).p == pytest.approx(1 / 3, abs=1e-15)


def plainly(value: Any) -> str:
    """A name for a test that is the same in every process: scipy's objects are shown by their address."""
    return repr(value) if isinstance(value, ExponentialFamily) else type(value).__name__


@pytest.mark.parametrize(
    ("ours", "theirs", "x"),
    [
        (Bernoulli(0.3), stats.bernoulli(0.3), [-1, 0, 0.5, 1, 2]),
        (Binomial(12, 0.3), stats.binom(12, 0.3), np.arange(-1, 14)),
        (Binomial(200, 1e-5), stats.binom(200, 1e-5), np.arange(6)),
        (Poisson(3.7), stats.poisson(3.7), [-1, 0, 1.5, 3, 17, 60]),
        (Poisson(1e-12), stats.poisson(1e-12), [0, 1, 2]),
        (Geometric(0.2), stats.geom(0.2, loc=-1), [-1, 0, 1, 2.5, 40]),
        (Geometric(1e-9), stats.geom(1e-9, loc=-1), [0, 10**9]),
        (NegativeBinomialKnownSize(2.5, 0.2), stats.nbinom(2.5, 0.2), [-1, 0, 1, 2.5, 40]),
        (Beta(2.5, 0.7), stats.beta(2.5, 0.7), [-0.1, 0.0, 1e-9, 0.4, 0.999, 1.0, 2.0]),
        (Beta(0.3, 1.0), stats.beta(0.3, 1.0), [0.0, 0.2, 1.0]),
    ],
    ids=plainly,
)
def test_distributions_beside_scipy(ours: Any, theirs: Any, x: Any) -> None:
    logs = theirs.logpdf(x) if isinstance(ours, Beta) else theirs.logpmf(x)
    close(ours.log_prob(x), logs, 1e-10)
    close(ours.mean, theirs.mean())
    close(ours.variance, theirs.var())
    if not (isinstance(ours, Geometric) and ours.p < 1e-6):  # scipy adds up a billion terms, and stops before
        close(ours.entropy(), theirs.entropy(), 1e-10)


def test_vectors_beside_scipy() -> None:
    p, alpha = [0.2, 0.5, 0.3], [0.5, 2.0, 4.5]
    x = np.array([[1, 2, 3], [6, 0, 0], [0, 3, 3]])
    theirs = stats.multinomial(6, p)
    close(Multinomial(6, p).log_prob(x), theirs.logpmf(x))
    close(Multinomial(6, p).entropy(), theirs.entropy(), 1e-10)
    close(Multinomial(6, p).covariance, theirs.cov())
    shares = np.array([[0.2, 0.3, 0.5], [0.01, 0.01, 0.98]])
    close(Dirichlet(alpha).log_prob(shares), [stats.dirichlet.logpdf(s, alpha) for s in shares])
    close(Dirichlet(alpha).entropy(), stats.dirichlet.entropy(alpha))
    close(Dirichlet(alpha).variance, stats.dirichlet.var(alpha))
    low, high = Dirichlet(alpha).interval(0.8)
    close(low, [stats.beta(a, 7.0 - a).ppf(0.1) for a in alpha])
    close(high, [stats.beta(a, 7.0 - a).ppf(0.9) for a in alpha])
    assert np.isneginf(Multinomial(6, p).log_prob([[1, 2, 2], [-1, 4, 3], [0.5, 2.5, 3]])).all()


def test_predictives_beside_scipy() -> None:
    x = np.arange(-1, 12)
    close(BetaBinomial(10, 2.5, 0.6).log_prob(x), stats.betabinom(10, 2.5, 0.6).logpmf(x))
    close(BetaBinomial(10, 2.5, 0.6).mean, stats.betabinom(10, 2.5, 0.6).mean())
    close(BetaBinomial(10, 2.5, 0.6).variance, stats.betabinom(10, 2.5, 0.6).var())
    assert tuple(BetaBinomial(10, 2.5, 0.6).interval(0.9)) == stats.betabinom(10, 2.5, 0.6).interval(0.9)
    close(NegativeBinomial(2.5, 0.6).log_prob(x), stats.nbinom(2.5, 0.6 / 1.6).logpmf(x))
    assert NegativeBinomial(2.5, 0.6).interval(0.9) == stats.nbinom(2.5, 0.6 / 1.6).interval(0.9)
    assert sf.results.NegativeBinomial is NegativeBinomial
    law = stats.dirichlet_multinomial([0.5, 2.0, 3.0], 7)
    counts = np.array([[7, 0, 0], [1, 2, 4], [0, 7, 0]])
    ours = DirichletMultinomial(7, [0.5, 2.0, 3.0])
    close(ours.log_prob(counts), law.logpmf(counts))
    close(ours.mean, law.mean())
    close(ours.variance, law.var())
    assert ours.sample(3, 0).sum(axis=1).tolist() == [7, 7, 7]


def test_beta_geometric_adds_up() -> None:
    p, x = BetaGeometric(3.5, 2.0), np.arange(200_000)
    chance = np.exp(p.log_prob(x))
    close(chance.sum(), 1.0)
    close(p.mean, (x * chance).sum(), 1e-5)
    assert tuple(p.interval(0.9)) == (float(np.argmax(chance.cumsum() >= 0.05)), float(np.argmax(chance.cumsum() >= 0.95)))
    assert BetaGeometric(1.0, 1.0).mean == BetaGeometric(2.0, 1.0).variance == np.inf
    draws = BetaGeometric(6.0, 2.0).sample(20_000, 0)
    assert draws.mean() == pytest.approx(0.4, abs=0.03)


def test_large_counts_keep_their_digits() -> None:
    """At n = 1e9 the logs of factorials are 2e10: their differences would end at 4e-6."""
    with localcontext() as context:
        context.prec = 50
        n, x = 10**9, 300_000_017
        expected = log_factorial(n) - log_factorial(x) - log_factorial(n - x)
        p = 0.3  # Decimal(p) is the double, to all its digits
        share = Decimal(p)
        expected += x * share.ln() + (n - x) * (1 - share).ln()
        close(float(Binomial(n, p).log_prob(x)), float(expected), 1e-12)
        poisson = x * Decimal(300_000_000).ln() - 300_000_000 - log_factorial(x)
        close(float(Poisson(3e8).log_prob(x)), float(poisson), 1e-12)
        a, b = 2_000_000, 3_000_000
        rising = log_factorial(a + x - 1) - log_factorial(a - 1) + log_factorial(b + n - x - 1) - log_factorial(b - 1)
        coefficient = log_factorial(n) - log_factorial(x) - log_factorial(n - x)
        betabinomial = coefficient + rising - (log_factorial(a + b + n - 1) - log_factorial(a + b - 1))
        close(BetaBinomial(n, a, b).log_prob(x), float(betabinomial), 1e-11)
        density = log_factorial(a + b - 1) - log_factorial(a - 1) - log_factorial(b - 1)
        at = 0.4001
        density += (a - 1) * Decimal(at).ln() + (b - 1) * (1 - Decimal(at)).ln()
        close(float(Beta(a, b).log_prob(at)), float(density), 1e-11)


@pytest.mark.parametrize("rate", [1e-9, 0.1, 1.0, 7.0, 36.0, 37.0, 150.0, 3_000.0, 40_000.0])
def test_the_entropy_of_counts_is_the_sum(rate: float) -> None:
    """Beside the whole sum, which the few hundred terms of `lattice` stand for."""
    x = np.arange(int(rate + 20 * np.sqrt(rate) + 60))
    logs = Poisson(rate).log_prob(x)
    close(Poisson(rate).entropy(), -(np.exp(logs) * logs).sum(), 1e-12)
    n = int(2 * rate) + 2
    logs = Binomial(n, 0.37).log_prob(np.arange(n + 1))
    close(Binomial(n, 0.37).entropy(), -(np.exp(logs) * logs).sum(), 1e-12)


def test_the_entropy_of_large_counts_is_near_that_of_a_normal() -> None:
    """½ ln 2πeσ² and the next terms: Poisson − 1/12λ, binomial − (4pq − …)/12npq by its skewness, multinomial by Stirling."""
    for rate in (1e6, 1e10):
        close(Poisson(rate).entropy(), 0.5 * np.log(2 * np.pi * np.e * rate) - 1 / (12 * rate), 1e-11)
    n, p = 10**9, 0.2
    skew = (1 - 2 * p) ** 2 / (n * p * (1 - p))
    close(Binomial(n, p).entropy(), 0.5 * np.log(2 * np.pi * np.e * n * p * (1 - p)) - skew / 12, 1e-11)
    close(Multinomial(n, [p, 1 - p]).entropy(), Binomial(n, p).entropy(), 1e-12)
    close(Multinomial(1, [0.2, 0.3, 0.5]).entropy(), Categorical([0.2, 0.3, 0.5]).entropy(), 1e-13)


def test_densities_of_large_shapes_keep_their_digits() -> None:
    """A beta distribution of 1e9 imagined rows is a normal one: its entropy and divergences are known to 1e-9."""
    a = np.array([2e9, 3e9])
    variance = 0.4 * 0.6 / 5e9
    close(Beta(*a).entropy(), 0.5 * np.log(2 * np.pi * np.e * variance), 1e-9)
    close(Beta(*a).kl(Beta(a[0] + 1e4, a[1] - 1e4)), 0.5 * (1e4 / 5e9) ** 2 / variance, 1e-4)
    close(Beta(*a).kl(Beta(*a)), 0.0, 0.0)
    close(Beta(20.0, 30.0).kl(Beta(21.0, 3.0)), _kl_by_quadrature((20.0, 30.0), (21.0, 3.0)), 1e-9)
    close(Beta(2.0, 30.0).kl(Beta(0.5, 300.0)), _kl_by_quadrature((2.0, 30.0), (0.5, 300.0)), 1e-9)


def _kl_by_quadrature(one: tuple[float, float], other: tuple[float, float]) -> float:
    x = (np.arange(200_000) + 0.5) / 200_000
    logs = stats.beta.logpdf(x, *one)
    return float((np.exp(logs) * (logs - stats.beta.logpdf(x, *other))).mean())


@pytest.mark.parametrize(
    ("edge", "inside", "possible", "impossible"),
    [
        (Bernoulli(0.0), Bernoulli(0.5), 0, 1),
        (Bernoulli(1.0), Bernoulli(0.5), 1, 0),
        (Binomial(3, 0.0), Binomial(3, 0.5), 0, 2),
        (Binomial(3, 1.0), Binomial(3, 0.5), 3, 2),
        (Poisson(0.0), Poisson(2.0), 0, 1),
        (Geometric(1.0), Geometric(0.5), 0, 1),
        (Categorical([0.0, 1.0, 0.0]), Categorical([0.2, 0.3, 0.5]), 1, 2),
        (Multinomial(2, [1.0, 0.0]), Multinomial(2, [0.5, 0.5]), [2, 0], [1, 1]),
    ],
    ids=plainly,
)
def test_what_is_certain(edge: Any, inside: Any, possible: Any, impossible: Any) -> None:
    """On the edge of the parameters: one outcome, no entropy, no NaN; an infinite divergence to it, a finite one from it."""
    assert edge.log_prob(possible) == 0.0
    assert np.isneginf(edge.log_prob(impossible))
    assert edge.entropy() == 0.0
    assert inside.kl(edge) == np.inf
    close(edge.kl(inside), -inside.log_prob(possible))
    assert edge.kl(edge) == 0.0
    assert not np.isnan(edge.natural).any()
    assert not np.isnan(edge.log_normaliser())
    assert np.all(edge.sample(3) == np.asarray(possible))
    assert edge.bare.estimate(edge.bare.statistic([possible, possible])) == edge
    close(edge.from_mean(edge.mean_parameters).mean, edge.mean)


def test_estimates_of_shares_beside_a_general_optimiser() -> None:
    x = np.random.default_rng(1).beta(0.4, 2.5, 300)
    best = Beta().estimate(Beta().statistic(x))
    a, b = stats.beta.fit(x, floc=0, fscale=1)[:2]
    close([best.a, best.b], [a, b], 1e-4)
    rows = np.random.default_rng(2).dirichlet([0.5, 3.0, 1.0], 200)
    means = np.log(rows).mean(axis=0)
    found = optimize.minimize(
        lambda u: -(Dirichlet(np.exp(u)).natural @ means - Dirichlet(np.exp(u)).log_normaliser()), np.zeros(3)
    )
    close(Dirichlet().estimate(Dirichlet().statistic(rows)).alpha, np.exp(found.x), 1e-4)


@pytest.mark.parametrize("alpha", [[1e-5, 2e-5], [0.003, 0.5, 20.0], [1e-3, 1e5], [4e5, 2e5, 7e5], [3.0] * 50])
def test_shares_from_the_means_of_their_logs(alpha: list[float]) -> None:
    """Sparse, lopsided, narrow, many: Newton comes back to where the means are from."""
    close(Dirichlet().from_mean(Dirichlet(alpha).mean_parameters).alpha, alpha, 1e-8)


def test_nearly_equal_shares() -> None:
    """Two numbers that differ by 1e-3: variance 2.5e-7, so that a + b is m(1 − m)/v − 1, and some."""
    best = Beta().estimate(Beta().statistic([0.5, 0.501]))
    assert best.mean == pytest.approx(0.5005, abs=1e-9)
    assert best.a + best.b == pytest.approx(0.5005 * 0.4995 / 2.5e-7 - 1.0, rel=1e-4)
    for rows in ([0.3], [0.3, 0.3], [1e-9, 1e-9]):
        with pytest.raises(FitError, match="all rows are equal"):
            Beta().estimate(Beta().statistic(rows))
    with pytest.raises(FitError, match="all rows are equal"):
        Dirichlet().estimate(Dirichlet().statistic([[0.2, 0.3, 0.5]] * 4))
    with pytest.raises(FitError, match="range of numbers"):
        Beta().estimate(Beta().statistic([1e-300, 1e-299]))


def test_evidence_of_small_data_is_exact() -> None:
    """In fractions: binomial rows under Beta(1, 2), multinomial rows under Dirichlet(1, 2, 1), counts under Gamma(2, 1)."""
    rows = Binomial(4).statistic([1, 3])
    ways = comb(4, 1) * comb(4, 3)
    exact = ways * Fraction(factorial(4) * factorial(5), factorial(10)) / Fraction(factorial(0) * factorial(1), factorial(2))
    close(np.exp(Beta(1, 2).log_evidence(rows)), float(exact), 1e-13)
    seen = Multinomial(3, 3).statistic([[1, 2, 0], [0, 1, 2]])
    exact = Fraction(9 * factorial(3), factorial(9)) * factorial(1) * factorial(4) * factorial(2)
    close(np.exp(Dirichlet([1, 2, 1]).log_evidence(seen)), float(exact), 1e-13)
    counts = Poisson().statistic([1, 3])
    exact = Fraction(factorial(5), 6 * 3**6)
    close(np.exp(Gamma(2.0, 1.0).log_evidence(counts)), float(exact), 1e-13)
    failures = Geometric().statistic([1, 0])
    exact = Fraction(factorial(2) * factorial(1), factorial(4))
    close(np.exp(Beta(1, 1).log_evidence(failures)), float(exact), 1e-13)


def test_strong_priors_keep_their_digits() -> None:
    """With 1e12 imagined rows the parameter is known, and the evidence is the likelihood."""
    x = [0, 1, 1, 0, 1]
    close(Beta(1e12, 1e12).log_evidence(Bernoulli().statistic(x)), 5 * np.log(0.5), 1e-10)
    close(Gamma(2e12, 1e12).log_evidence(Poisson().statistic([1, 4])), Poisson(2.0).log_prob([1, 4]).sum(), 1e-10)
    close(NegativeBinomial(2e12, 1e12).log_prob(3), Poisson(2.0).log_prob(3), 1e-10)


def test_priors_refuse_what_they_are_not_about() -> None:
    with pytest.raises(ModelError, match="no conjugate prior of Poisson"):
        Beta(1, 1) + Poisson().statistic([1])
    with pytest.raises(ModelError, match="is about Bernoulli"):
        Beta(1, 1) + Bernoulli().statistic([1]) + Geometric().statistic([1])
    with pytest.raises(ModelError, match="say which"):
        Beta(1, 1).predictive()
    with pytest.raises(ModelError, match="2 states"):
        Dirichlet([1, 1]) + Categorical(3).statistic([1])
    with pytest.raises(StatisticsError, match="statistic"):
        Beta(1, 1) + np.array([1, 0])  # type: ignore[operator]
    with pytest.raises(ModelError, match="no conjugate prior"):
        Beta(1, 1).conjugate([1, 1], 1)
    for without in (Beta(0.5, 2), Beta(1, 1), Dirichlet([1, 1, 1]), Dirichlet([0.5, 2.0])):
        with pytest.raises(FitError, match="no mode"):
            without.mode  # noqa: B018
    with pytest.raises(FitError, match="level"):
        Beta(1, 1).interval(95)
    with pytest.raises(TooLarge, match="too many"):
        BetaBinomial(10**9, 1.0, 1.0).interval()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Bernoulli(1.5), "between 0 and 1"),
        (lambda: Bernoulli("half"), "number"),
        (lambda: Poisson(-1), "at least 0"),
        (lambda: Poisson(np.nan), "NaN"),
        (lambda: Poisson(np.inf), "finite"),
        (lambda: Geometric(0.0), "above 0"),
        (lambda: Binomial(2.5), "whole"),
        (lambda: Binomial(0), "at least 1"),
        (lambda: Binomial(1e300), "at most"),
        (lambda: Geometric(1e-20).sample(1), "exactly"),
        (lambda: Categorical(), "number of its states"),
        (lambda: Categorical([0.5, 0.6]), "sum to 1"),
        (lambda: Categorical([0.5, 0.5], states=["a"]), "states"),
        (lambda: Multinomial(3), "number of its states"),
        (lambda: Beta(1.0), "give both"),
        (lambda: Beta(0.0, 1.0), "above 0"),
        (lambda: Dirichlet([1.0]), "two states"),
        (lambda: Dirichlet([1.0, -1.0]), "above 0"),
        (lambda: Categorical([0.5, 0.5, 0.0]).from_natural([np.inf, np.inf]), "one state only"),
        (lambda: Geometric().from_natural([0.5]), "below 0"),
        (lambda: Poisson().from_natural(0.5), "vector"),
        (lambda: Poisson(2e15).sample(1), "exactly"),
    ],
)
def test_parameters_are_checked(make: Any, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        make()


@pytest.mark.parametrize(
    ("family", "x", "says"),
    [
        (Bernoulli(), [0, 1, 2], "row 3 is 2"),
        (Binomial(3), [1, 4], "from 0 to n, and row 2 is 4"),
        (Poisson(), [1, 2.5], "whole numbers from 0 up, and row 2 is 2.5"),
        (Poisson(), [1, np.nan], "missing"),
        (Poisson(), [1, np.inf], "row 2 is inf"),
        (Poisson(), ["one"], "'one' is none"),
        (Geometric(), [-1], "row 1 is -1"),
        (Categorical(3), [0, 3], "states 0 to 2, and row 2 is 3"),
        (Categorical(states=["a", "b"]), ["a", "c"], "'a', 'b', and row 2 is c"),
        (Multinomial(3, 2), [[1, 2], [2, 2]], r"row 2 is \[2, 2\]"),
        (Multinomial(3, 2), [[1, 2, 0]], "shape"),
        (Beta(), [0.2, 1.0], "row 2 is 1.0"),
        (Dirichlet(), [[0.5, 0.6]], "row 1"),
    ],
)
def test_observations_are_checked(family: Any, x: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        family.statistic(x)


def test_nothing_seen() -> None:
    for family in (Bernoulli(), Poisson(), Categorical(3), Beta()):
        nothing = family.statistic([])
        assert nothing.count == 0.0
        with pytest.raises(FitError, match="no rows"):
            family.estimate(nothing)
    assert Beta(1, 2).log_evidence(Bernoulli().statistic([])) == 0.0
    assert Beta(1, 2) + Bernoulli().statistic([]) == Beta(1, 2, of=Bernoulli())


def test_columns_of_data() -> None:
    data = sf.scan(
        {"coin": ["no", "yes", "yes"], "bit": ["0", "1", "1"], "colour": ["r", "g", "r"], "n": [1, 2, 2]},
        variables={"n": sf.Count},
    )
    assert Bernoulli().gather(data, "coin").total == 2.0
    assert Bernoulli().gather(data, "bit").total == 2.0
    assert Poisson().gather(data, "n").total == 5.0
    assert Bernoulli().gather(sf.scan({"b": [True, True]}), "b").total == 2.0
    named = Categorical(states=["r", "b", "g"])
    assert named.gather(data, "colour").total.tolist() == [2.0, 0.0]
    assert Categorical.of(data.schema["colour"]).gather(data, "colour").total.tolist() == [1.0]
    with pytest.raises(DataError, match="two states"):
        Bernoulli().gather(sf.scan({"x": ["a", "b", "c"]}), "x")
    with pytest.raises(DataError, match="did you mean 'coin'"):
        Bernoulli().gather(data, "coins")
    with pytest.raises(DataError, match="declare it Count"):
        Poisson().gather(data, "coin")
    with pytest.raises(DataError, match="the state 'g'"):
        Categorical(states=["r", "b"]).gather(data, "colour")
    with pytest.raises(DataError, match="what scan gives"):
        Poisson().gather({"n": [1]}, "n")
    with pytest.raises(MissingCells, match=r"1 in 'x', of 3 rows.*dropna\(subset=\['x'\]\)"):
        Bernoulli().gather(sf.scan({"x": ["a", "b", None]}), "x")
    with pytest.raises(DataError, match="list of columns"):
        Multinomial(3, 2).gather(data, "n")


def test_gathered_in_blocks_like_at_once(tmp_path: Any) -> None:
    """200,000 rows are several blocks; the row that does not fit is named by its place in all of them."""
    x = np.random.default_rng(0).poisson(4.0, 200_000).astype(float)
    gathered, at_once = Poisson().gather(sf.scan({"x": x}, variables={"x": sf.Real}), "x"), Poisson().statistic(x)
    assert gathered.count == at_once.count
    assert gathered.total == at_once.total
    close(gathered.log_base, at_once.log_base, 1e-12)
    x[150_000] = 0.5
    with pytest.raises(DataError, match=r"row 150001 is 0\.5"):
        Poisson().gather(sf.scan({"x": x}, variables={"x": sf.Real}), "x")


def test_trials_side_by_side_may_differ_in_number() -> None:
    many = Binomial([4, 9], [0.5, 0.2])
    x = many.sample(2_000, 0)
    close(many.log_prob([2, 3]), [Binomial(4, 0.5).log_prob(2), Binomial(9, 0.2).log_prob(3)])
    close(many.bare.estimate(many.bare.statistic(x)).p, [0.5, 0.2], 0.03)
    close(many.entropy(), [Binomial(4, 0.5).entropy(), Binomial(9, 0.2).entropy()])
    posterior = Beta(1, 1) + many.bare.statistic(x)
    assert posterior.mean.shape == (2,)
    assert posterior.predictive().log_prob([[1, 1], [2, 9]]).shape == (2, 2)


def test_totals_are_values() -> None:
    s = Poisson().statistic([1, 2])
    with pytest.raises(ValueError, match="read-only"):
        s.total[0] = 9.0
    with pytest.raises(StatisticsError, match="do not add"):
        s + Geometric().statistic([1])
    with pytest.raises(StatisticsError, match="from 0 up"):
        s * -1.0
    with pytest.raises(StatisticsError, match="side by side"):
        Dirichlet().statistic([[0.5, 0.5]]) + Dirichlet().statistic([[0.2, 0.3, 0.5]])
    assert isinstance(s, Totals)
    assert repr(s) == "Totals(Poisson(), count=2.0, total=[3.])"


def test_reprs_are_short_and_exact() -> None:
    assert repr(Poisson(2.8)) == "Poisson(rate=2.8)"
    assert repr(Beta(4, 3, of=Bernoulli())) == "Beta(a=4.0, b=3.0, of=Bernoulli())"
    assert repr(Binomial(10, 0.5)) == "Binomial(n=10, p=0.5)"
    assert repr(Categorical(3)) == "Categorical(k=3)"
    assert repr(Categorical([0.5, 0.5], states=["a", "b"])) == "Categorical(probs=[0.5, 0.5], states=['a', 'b'])"
    assert repr(Multinomial(4, 3)) == "Multinomial(n=4, k=3)"
    assert repr(Poisson(np.ones(1000))) == "Poisson(rate=<array of shape (1000,)>)"
