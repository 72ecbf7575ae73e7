"""Laws that every exponential family and every conjugate prior obeys. A new member is one more line in MEMBERS.

A member says two of its distributions, a conjugate prior where there is one, and where expectations can be had by a sum, the
points and the weights of that sum (1 for each value of a count; a quadrature for a density).
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import DataError, ModelError, StatisticsError
from suffice.numerics.exponential import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    Geometric,
    Multinomial,
    MultivariateNormal,
    NegativeBinomialKnownSize,
    Normal,
    NormalInverseGamma,
    NormalInverseWishart,
    NormalKnownMean,
    NormalKnownVariance,
    Poisson,
)

Grid = Callable[[], tuple[Any, Any]]
PARAMETERS = {Beta: "p", Dirichlet: "probs", Gamma: "rate"}


@dataclass(frozen=True)
class Member:
    """`one` and `other` are of one family; `imagined` is a total and a count for its `conjugate`."""

    one: Any
    other: Any
    prior: Any = None
    grid: Grid | None = None
    imagined: tuple[Any, float] | None = None
    stacked: Any = None
    """`one` and `other` side by side, as one batch."""
    parameter: Callable[[Any], Any] | None = None
    """What of a distribution the prior is a density of, where PARAMETERS does not say."""

    def theta(self, family: Any) -> Any:
        return self.parameter(family) if self.parameter else getattr(family, PARAMETERS[type(self.prior)])

    def __repr__(self) -> str:
        return repr(self.one)


def whole_numbers(high: int) -> Grid:
    return lambda: (np.arange(high + 1.0), np.ones(high + 1))


def compositions(n: int, k: int) -> Grid:
    rows = [c for c in itertools.product(range(n + 1), repeat=k) if sum(c) == n]
    return lambda: (np.array(rows), np.ones(len(rows)))


def unit_interval() -> tuple[Any, Any]:
    """Double exponential quadrature: the logs of T at 0 and 1 are no trouble to it."""
    t = np.linspace(-3.4, 3.4, 2001)
    x = 0.5 * (1.0 + np.tanh(0.5 * np.pi * np.sinh(t)))
    weight = 0.25 * np.pi * np.cosh(t) / np.cosh(0.5 * np.pi * np.sinh(t)) ** 2 * (t[1] - t[0])
    inside = (x > 0.0) & (x < 1.0)
    return x[inside], weight[inside]


def half_line() -> tuple[Any, Any]:
    """Double exponential quadrature of what falls off like exp(−x)."""
    t = np.linspace(-4.6, 4.2, 4001)
    x = np.exp(t - np.exp(-t))
    return x, x * (1.0 + np.exp(-t)) * (t[1] - t[0])


def real_line() -> tuple[Any, Any]:
    """The trapezoid rule, which is exact to all digits for a normal density."""
    x = np.linspace(-30.0, 30.0, 2001)
    return x, np.full(len(x), x[1] - x[0])


MEMBERS = [
    Member(
        Bernoulli(0.3),
        Bernoulli(0.8),
        Beta(1.5, 0.7),
        whole_numbers(1),
        ([1.5], 4.0),
        Bernoulli([0.3, 0.8]),
    ),
    Member(
        Binomial(7, 0.4),
        Binomial(7, 0.1),
        Beta(2.0, 3.0),
        whole_numbers(7),
        ([3.5], 2.0),
        Binomial(7, [0.4, 0.1]),
    ),
    Member(
        Categorical([0.2, 0.5, 0.3]),
        Categorical([0.6, 0.1, 0.3]),
        Dirichlet([0.5, 1.0, 2.0]),
        whole_numbers(2),
        ([1.0, 2.0], 4.5),
        Categorical([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]),
    ),
    Member(
        Multinomial(4, [0.2, 0.5, 0.3]),
        Multinomial(4, [0.6, 0.1, 0.3]),
        Dirichlet([0.5, 1.0, 2.0]),
        compositions(4, 3),
        ([1.0, 2.0], 1.5),
        Multinomial(4, [[0.2, 0.5, 0.3], [0.6, 0.1, 0.3]]),
    ),
    Member(Poisson(2.5), Poisson(4.0), Gamma(2.0, 1.5), whole_numbers(80), ([3.0], 2.0), Poisson([2.5, 4.0])),
    Member(
        NegativeBinomialKnownSize(2.5, 0.3),
        NegativeBinomialKnownSize(2.5, 0.6),
        Beta(2.5, 1.5),
        whole_numbers(300),
        ([3.0], 2.0),
        NegativeBinomialKnownSize(2.5, [0.3, 0.6]),
    ),
    Member(Geometric(0.3), Geometric(0.6), Beta(2.5, 1.5), whole_numbers(300), ([3.0], 2.0), Geometric([0.3, 0.6])),
    Member(Beta(2.0, 3.5), Beta(4.0, 1.5), None, unit_interval, None, Beta([2.0, 4.0], [3.5, 1.5])),
    Member(Dirichlet([2.0, 3.0, 1.5]), Dirichlet([1.0, 4.0, 2.0]), stacked=Dirichlet([[2.0, 3.0, 1.5], [1.0, 4.0, 2.0]])),
    Member(Exponential(2.0), Exponential(0.5), Gamma(2.0, 1.5), half_line, ([3.0], 2.0), Exponential([2.0, 0.5])),
    Member(Gamma(2.5, 0.7), Gamma(0.8, 2.0), None, half_line, None, Gamma([2.5, 0.8], [0.7, 2.0])),
    Member(
        Normal(1.0, 2.0),
        Normal(-0.5, 0.7),
        NormalInverseGamma(0.5, 1.5, 2.5, 1.2),
        real_line,
        ([3.0, 9.0], 2.0),
        Normal([1.0, -0.5], [2.0, 0.7]),
        parameter=lambda normal: normal,
    ),
    Member(
        NormalKnownMean(1.0, 2.0),
        NormalKnownMean(1.0, 0.7),
        Gamma(2.0, 1.5),
        real_line,
        ([3.0], 2.0),
        NormalKnownMean(1.0, [2.0, 0.7]),
        parameter=lambda normal: 1.0 / normal.variance,
    ),
    Member(
        NormalKnownVariance(2.0, 1.0),
        NormalKnownVariance(2.0, -0.5),
        Normal(0.5, 3.0),
        real_line,
        ([3.0], 2.0),
        NormalKnownVariance(2.0, [1.0, -0.5]),
        parameter=lambda normal: normal.mean,
    ),
    Member(
        MultivariateNormal([1.0, -0.5], [[2.0, 0.6], [0.6, 1.0]]),
        MultivariateNormal([0.0, 0.5], [[1.0, -0.3], [-0.3, 0.5]]),
        NormalInverseWishart([0.5, 0.0], 1.5, 3.5, [[1.2, 0.3], [0.3, 0.8]]),
        imagined=([3.0, 1.0, 9.0, 2.0, 5.0], 2.0),
        stacked=MultivariateNormal([[1.0, -0.5], [0.0, 0.5]], [[[2.0, 0.6], [0.6, 1.0]], [[1.0, -0.3], [-0.3, 0.5]]]),
        parameter=lambda normal: normal,
    ),
]
LEARNED = [m for m in MEMBERS if m.prior is not None]

every_member = pytest.mark.parametrize("member", MEMBERS, ids=repr)
every_learned = pytest.mark.parametrize("member", LEARNED, ids=repr)


def close(actual: Any, expected: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def expectation(member: Member, family: Any, values: Callable[[Any], Any]) -> Any:
    x, weight = member.grid()  # type: ignore[misc]
    p = weight * np.exp(family.log_prob(x))
    return np.tensordot(p, values(x), axes=(0, 0))


@every_member
def test_the_normaliser_generates_mean_and_variance(member: Member) -> None:
    """A′ = E[T] and A″ = Var[T]: as derivatives of A, and where there is a sum, as moments."""
    family, eta = member.one, member.one.natural
    steps = 1e-5 * np.maximum(np.abs(eta), 1.0) * np.eye(eta.shape[-1])
    slopes = [(family.log_normaliser(eta + s) - family.log_normaliser(eta - s)) / (2 * s.sum()) for s in steps]
    curves = [(family.gradient(eta + s) - family.gradient(eta - s)) / (2 * s.sum()) for s in steps]
    close(family.gradient(), slopes, 1e-7)
    close(family.hessian(), curves, 1e-7)
    close(family.gradient(eta), family.gradient())
    close(family.hessian(eta), family.hessian())
    close(family.log_normaliser(eta), family.log_normaliser())
    if member.grid is not None:
        T, mu = family.sufficient, family.mean_parameters
        close(expectation(member, family, lambda x: np.ones(len(x))), 1.0)
        close(mu, expectation(member, family, T), 1e-8)
        products = expectation(member, family, lambda x: (T(x) - mu)[..., :, None] * (T(x) - mu)[..., None, :])
        close(family.hessian(), products, 1e-8)


@every_member
@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_cumulants_are_the_derivatives_of_the_normaliser(member: Member, order: int) -> None:
    """Each order is the derivative of the one before, and the same for any order of the indices."""
    for family in (member.one, member.other):
        eta = family.natural
        steps = 1e-5 * np.maximum(np.abs(eta), 1.0) * np.eye(eta.shape[-1])

        def before(at: Any, family: Any = family) -> Any:
            return family.cumulants(order - 1, at) if order > 1 else np.asarray(family.log_normaliser(at))

        slopes = np.stack([(before(eta + s) - before(eta - s)) / (2 * s.sum()) for s in steps], axis=-1)
        found = family.cumulants(order)
        size = np.abs(found).max() + np.abs(before(eta)).max()
        assert found.shape == (len(eta),) * order
        np.testing.assert_allclose(found, slopes, rtol=1e-7, atol=1e-7 * size)
        np.testing.assert_allclose(family.cumulants(order, eta), found, rtol=1e-9, atol=1e-12 * size)
        for axes in itertools.permutations(range(order)):
            np.testing.assert_allclose(found.transpose(axes), found, rtol=1e-13)


@pytest.mark.parametrize("member", [m for m in MEMBERS if m.grid is not None], ids=repr)
def test_cumulants_are_those_of_moments(member: Member) -> None:
    """κ₃ = μ₃, κ₄ = μ₄ − the three products of variances, of central moments by a sum or a quadrature."""
    T, mu = member.one.sufficient, member.one.mean_parameters
    third = expectation(member, member.one, lambda x: np.einsum("ni,nj,nk->nijk", *[T(x) - mu] * 3))
    fourth = expectation(member, member.one, lambda x: np.einsum("ni,nj,nk,nl->nijkl", *[T(x) - mu] * 4))
    V = member.one.hessian()
    pairs = sum(np.einsum(f"{a},{b}->ijkl", V, V) for a, b in (("ij", "kl"), ("ik", "jl"), ("il", "jk")))
    np.testing.assert_allclose(member.one.cumulants(3), third, rtol=1e-7, atol=1e-7 * np.abs(third).max() + 1e-9)
    np.testing.assert_allclose(member.one.cumulants(4), fourth - pairs, rtol=1e-7, atol=1e-7 * np.abs(fourth).max() + 1e-9)


@every_member
def test_parameters_go_both_ways(member: Member) -> None:
    family = member.one
    for back in (family.from_natural(family.natural), family.from_mean(family.mean_parameters)):
        assert type(back) is type(family)
        assert back.bare == family.bare
        close(back.natural, family.natural, 1e-8)


@every_member
def test_log_prob_has_the_exponential_form(member: Member) -> None:
    family, x = member.one, member.one.sample(20, 1)
    form = family.log_base(x) + (family.sufficient(x) * family.natural).sum(axis=-1) - family.log_normaliser()
    close(family.log_prob(x), form)


@every_member
def test_statistics_add(member: Member) -> None:
    """Parts add to the whole, weights are repeated rows, and what was added can be taken away."""
    family, x = member.one.bare, member.one.sample(30, 2)
    s, first, rest = family.statistic(x), family.statistic(x[:11]), family.statistic(x[11:])
    for name in ("count", "total", "log_base"):
        close(getattr(first + rest, name), getattr(s, name))
        close(getattr(sum([first, rest]), name), getattr(s, name))
        close(getattr(s - first, name), getattr(rest, name))
        close(getattr(first * 2.0, name), getattr(first + first, name))
    repeats = np.arange(30) % 4
    weighted, repeated = family.statistic(x, weights=repeats), family.statistic(np.repeat(x, repeats, axis=0))
    close(weighted.total, repeated.total)
    close(weighted.log_base, repeated.log_base)
    with pytest.raises(StatisticsError, match="fewer rows"):
        first - s
    with pytest.raises(DataError, match="negative"):
        family.statistic(x, weights=-np.ones(30))


@every_member
def test_statistics_are_values(member: Member) -> None:
    """The same rows give equal statistics, other rows others, and what is no statistic is not equal."""
    family, x = member.one.bare, member.one.sample(30, 2)
    assert family.statistic(x) == family.statistic(x.copy())
    assert family.statistic(x) != family.statistic(x[:11])
    assert family.statistic(x) != 30


@every_member
def test_the_statistic_holds_the_likelihood_and_its_maximum(member: Member) -> None:
    """Σ ln p(x) = η·Σ T(x) − N A + Σ ln h; where it is largest, E[T] is the mean of T."""
    x = member.one.sample(200, 3)
    s = member.one.bare.statistic(x)
    best = member.one.bare.estimate(s)
    assert best.bare == s.family
    close(best.mean_parameters, s.mean, 1e-8)
    likelihood = (best.natural * s.total).sum() - s.count * best.log_normaliser() + s.log_base
    close(best.log_prob(x).sum(), likelihood)
    assert best.log_prob(x).sum() >= max(member.one.log_prob(x).sum(), member.other.log_prob(x).sum())


@every_member
def test_draws_have_the_moments(member: Member) -> None:
    n = 20_000
    T = member.one.sufficient(member.one.sample(n, 4))
    errors = np.sqrt(np.diagonal(member.one.hessian()) / n)
    assert np.all(np.abs(T.mean(axis=0) - member.one.mean_parameters) < 5.0 * errors)
    assert np.array_equal(member.one.sample(5, 7), member.one.sample(5, np.random.default_rng(7)))


@every_member
def test_entropy_and_divergence_are_expectations(member: Member) -> None:
    one, other = member.one, member.other
    assert one.kl(other) > 0.0
    close(one.kl(one), 0.0)
    form = other.log_normaliser() - one.log_normaliser() - ((other.natural - one.natural) * one.mean_parameters).sum()
    close(one.kl(other), form)
    if member.grid is not None:
        close(one.entropy(), -expectation(member, one, one.log_prob))
        close(one.kl(other), expectation(member, one, lambda x: one.log_prob(x) - other.log_prob(x)))
    else:
        n = 20_000
        logs = one.log_prob(one.sample(n, 5))
        assert abs(one.entropy() + logs.mean()) < 5.0 * logs.std() / np.sqrt(n)


@pytest.mark.parametrize("member", [m for m in MEMBERS if m.stacked is not None], ids=repr)
def test_families_side_by_side_are_those_one_by_one(member: Member) -> None:
    both, pair = member.stacked, (member.one, member.other)
    x = np.stack([p.sample(12, i) for i, p in enumerate(pair)], axis=1)
    for name in ("natural", "mean_parameters", "mean", "variance"):
        close(getattr(both, name), np.stack([getattr(p, name) for p in pair]))
    for name in ("log_normaliser", "gradient", "hessian", "entropy"):
        close(getattr(both, name)(), np.stack([getattr(p, name)() for p in pair]))
    close(both.cumulants(3), np.stack([p.cumulants(3) for p in pair]))
    close(both.log_prob(x), np.stack([p.log_prob(x[:, i]) for i, p in enumerate(pair)], axis=1))
    close(both.kl(member.one), [0.0, member.other.kl(member.one)])
    assert both.sample(3, 0).shape == (3, *x.shape[1:])
    s = both.bare.statistic(x)
    for i in range(2):
        alone = both.bare.statistic(x[:, i])
        close(s.total[i], alone.total)
        close(both.bare.estimate(s).natural[i], both.bare.estimate(alone).natural, 1e-8)


@every_member
def test_a_family_is_a_value(member: Member) -> None:
    one = member.one
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != member.other
    assert hash(one) == hash(replace(one))
    assert repr(one.bare).startswith(type(one).__name__)
    with pytest.raises(ModelError, match="estimate"):
        one.bare.natural  # noqa: B018
    with pytest.raises(ModelError, match="estimate"):
        one.bare.log_prob(one.sample(1))
    with pytest.raises(ModelError, match="one family"):
        one.kl(Poisson(2.0) if not isinstance(one, Poisson) else Geometric(0.5))
    with pytest.raises(StatisticsError, match="says nothing"):
        one.estimate(Poisson().statistic([1]) if not isinstance(one, Poisson) else Geometric().statistic([1]))


@every_member
def test_gather_is_the_statistic(member: Member) -> None:
    """Of a column, or of columns, of data with weights."""
    x, weights = member.one.sample(50, 6), np.arange(50) % 3 + 0.5
    names = [f"x{i}" for i in range(x.shape[1])] if x.ndim > 1 else ["x"]
    table = {n: np.asarray(c, dtype=float) for n, c in zip(names, np.atleast_2d(x.T), strict=True)}
    data = sf.scan({**table, "w": weights}, weights="w", variables=dict.fromkeys(names, sf.Real))
    family = member.one.bare
    gathered, s = family.gather(data, names if x.ndim > 1 else "x"), family.statistic(x, weights=weights)
    for name in ("count", "total", "log_base"):
        close(getattr(gathered, name), getattr(s, name))


@every_learned
def test_updating_in_turn_is_updating_at_once(member: Member) -> None:
    family, x = member.one.bare, member.one.sample(9, 7)
    posterior = member.prior
    for row in x:
        posterior = posterior + family.statistic(row[None])
    at_once = member.prior + family.statistic(x)
    assert at_once.of == family
    for name in type(at_once).names:
        close(getattr(posterior, name), getattr(at_once, name))


@every_learned
def test_evidence_obeys_the_chain_rule(member: Member) -> None:
    """evidence(a + b | π) = evidence(a | π) + evidence(b | π + a)."""
    family, x = member.one.bare, member.one.sample(12, 8)
    a, b = family.statistic(x[:5]), family.statistic(x[5:])
    close(member.prior.log_evidence(a + b), member.prior.log_evidence(a) + (member.prior + a).log_evidence(b))
    close(family.log_evidence(member.prior, a), member.prior.log_evidence(a))


@every_learned
def test_the_predictive_is_a_ratio_of_evidences(member: Member) -> None:
    family, x = member.one.bare, member.one.sample(6, 9)
    posterior = member.prior + family.statistic(x[:-1])
    close(posterior.predictive().log_prob(x[-1]), posterior.log_evidence(family.statistic(x[-1:])))
    close(family.predictive(posterior).log_prob(x[-1]), posterior.predictive().log_prob(x[-1]))


@every_learned
def test_bayes_theorem(member: Member) -> None:
    """ln p(data | θ) + ln p(θ) − ln p(θ | data) is the log-evidence, at every θ."""
    family, x = member.one.bare, member.one.sample(6, 10)
    s = family.statistic(x)
    posterior = member.prior + s
    for member_at in (member.one, member.other):
        theta = member.theta(member_at)
        terms = member_at.log_prob(x).sum() + member.prior.log_prob(theta) - posterior.log_prob(theta)
        close(terms, member.prior.log_evidence(s))


@pytest.mark.parametrize("member", [m for m in LEARNED if m.imagined is not None], ids=repr)
def test_the_general_form_of_the_prior(member: Member) -> None:
    """conjugate(total, count) + statistic = conjugate(total + Σ T, count + N); and its density of η is exp(η·total − count·A)."""
    family, (total, count) = member.one.bare, member.imagined
    s = family.statistic(member.one.sample(5, 11))
    ours, theirs = family.conjugate(total, count) + s, family.conjugate(np.asarray(total) + s.total, count + s.count)
    for name in type(ours).names:
        close(getattr(ours, name), getattr(theirs, name))
    more = family.conjugate(np.asarray(total) + s.total, count + s.count)
    for p in (member.one, member.other):
        logs = (p.natural * s.total).sum() - s.count * p.log_normaliser()
        theta = member.theta(p)
        difference = more.log_prob(theta) - family.conjugate(total, count).log_prob(theta) - logs
        if p is member.one:
            constant = difference
    close(difference, constant)


@every_learned
def test_priors_say_where_the_parameter_is(member: Member) -> None:
    posterior = member.prior + member.one.bare.statistic(member.one.sample(400, 12))
    draws = posterior.sample(4_000, 13)
    ends = posterior.interval(0.9)
    # A prior of two parameters has an interval of each, by name, and draws that hold both.
    parts = {n: (getattr(draws, n), e) for n, e in ends.items()} if isinstance(ends, dict) else {"mean": (draws, ends)}
    for values, (low, high) in parts.values():
        share = ((values >= low) & (values <= high)).mean(axis=0)
        assert np.all(np.abs(share - 0.9) < 0.03)
    close(posterior.mean, parts["mean"][0].mean(axis=0), 0.02)
    density = posterior.log_prob(posterior.mode)
    assert np.all(density >= posterior.log_prob(draws).max() - 1e-9)
