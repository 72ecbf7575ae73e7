"""What families and priors answer with: plain numbers, tables for a notebook, families that share a parameter, clear refusals."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice import exponential as ef
from suffice.errors import DataError, MissingCells, ModelError, StatisticsError
from suffice.families.protocol import family as families
from suffice.numerics.exponential.arithmetic.special import log_gamma_step
from suffice.numerics.exponential.protocol.observable import Observable

DISTRIBUTIONS: list[Any] = [
    ef.Bernoulli(0.3),
    ef.Binomial(4, 0.3),
    ef.Categorical([0.2, 0.8]),
    ef.Multinomial(4, [0.2, 0.8]),
    ef.Poisson(2.0),
    ef.Geometric(0.3),
    ef.NegativeBinomialKnownSize(2.5, 0.3),
    ef.Beta(2.0, 3.0),
    ef.Dirichlet([2.0, 3.0]),
    ef.Exponential(2.0),
    ef.Gamma(2.0, 3.0),
    ef.Normal(1.0, 2.0),
    ef.NormalKnownMean(1.0, 2.0),
    ef.NormalKnownVariance(2.0, 1.0),
    ef.MultivariateNormal([0.0, 1.0], np.eye(2)),
    ef.Uniform(0.0, 2.0),
]
PREDICTIVES: list[Any] = [
    ef.BetaBinomial(4, 2.0, 3.0),
    ef.BetaGeometric(2.5, 3.0),
    ef.DirichletMultinomial(4, [2.0, 3.0]),
    ef.NegativeBinomial(2.0, 3.0),
    ef.Lomax(2.5, 3.0),
    ef.StudentT(3.0, 0.0, 1.0),
    ef.MultivariateT(3.0, np.zeros(2), np.eye(2)),
]
PAIRS: list[tuple[Any, Any]] = [
    (ef.Beta(1.0, 2.0), ef.Bernoulli().statistic([1, 0])),
    (ef.Beta(1.0, 2.0), ef.Geometric().statistic([1, 0])),
    (ef.Beta(1.0, 2.0), ef.NegativeBinomialKnownSize(2.5).statistic([1, 0])),
    (ef.Dirichlet([1.0, 2.0]), ef.Categorical(2).statistic([1, 0])),
    (ef.Gamma(1.0, 2.0), ef.Poisson().statistic([1, 0])),
    (ef.Gamma(1.0, 2.0), ef.Exponential().statistic([1.0, 0.5])),
    (ef.Gamma(1.0, 2.0), ef.NormalKnownMean(0.0).statistic([1.0, 0.5])),
    (ef.Normal(1.0, 2.0), ef.NormalKnownVariance(1.0).statistic([1.0, 0.5])),
    (ef.NormalInverseGamma(0.0, 1.0, 2.0, 2.0), ef.Normal().statistic([1.0, 0.5])),
    (ef.NormalInverseWishart([0.0, 0.0], 1.0, 4.0, np.eye(2)), ef.MultivariateNormal().statistic([[1.0, 0.5], [0.0, 0.2]])),
]


@pytest.mark.parametrize("p", DISTRIBUTIONS, ids=repr)
def test_a_single_answer_is_a_float(p: Any) -> None:
    x = p.sample(1)
    for answer in (p.log_prob(x[0]), p.entropy(), p.kl(p)):
        assert type(answer) is float
    assert p.log_prob(x).shape == (1,)
    for name in ("mean", "variance", "mode"):
        answer = getattr(p, name, 0.0)
        assert type(answer) is float or np.ndim(answer) == 1
    if not isinstance(p, ef.Uniform):
        assert type(p.log_normaliser()) is float
        assert p.log_normaliser(p.natural[None]).shape == (1,)


@pytest.mark.parametrize("p", PREDICTIVES, ids=lambda p: type(p).__name__)
def test_predictives_answer_in_floats(p: Any) -> None:
    x = p.sample(1)
    assert type(p.log_prob(x[0])) is float
    assert p.log_prob(x).shape == (1,)
    if hasattr(p, "interval") and np.ndim(p.mean) == 0:
        assert isinstance(p.interval(), ef.Interval)
        assert [type(end) for end in p.interval()] == [float, float]


@pytest.mark.parametrize(("prior", "seen"), PAIRS, ids=repr)
def test_posteriors_answer_in_floats_and_show_themselves(prior: Any, seen: Any) -> None:
    assert type(prior.log_evidence(seen)) is float
    posterior = prior + seen
    ends = posterior.interval()
    for end in (e for interval in (ends.values() if isinstance(ends, dict) else [ends]) for e in interval):
        assert type(end) is float or end.shape == (2,)
    html = posterior._repr_html_()
    assert html.startswith("<table>")
    for words in ("mean", "95 %", "of "):
        assert words in html
    assert "count" in seen._repr_html_()
    assert "\n" not in repr(posterior).replace(",\n", "")


@pytest.mark.parametrize("p", [*DISTRIBUTIONS, *PREDICTIVES], ids=repr)
def test_distributions_show_themselves(p: Any) -> None:
    html = p._repr_html_()
    assert type(p).__name__ in html
    assert "mean" in html
    rows = [row.count("<td>") for row in html.split("<tr>")[2:]]
    assert len(set(rows)) == 1
    if hasattr(p, "bare"):
        assert p.bare._repr_html_().startswith("<table>")


def test_html_shows_states_and_is_short() -> None:
    named = ef.Categorical([0.25, 0.75], states=["<a>", "b"])._repr_html_()
    assert "<th>&lt;a&gt;</th><th>b</th>" in named
    assert "bound method" not in named
    posterior = ef.Dirichlet([1, 1]) + ef.Categorical(states=["a", "b"]).statistic(["a"])
    assert "<th>a</th><th>b</th>" in posterior._repr_html_()
    assert "whole numbers from 0 up" in ef.Poisson()._repr_html_()
    assert "mode" not in ef.Beta(0.5, 0.5)._repr_html_()
    assert "mode variance" in ef.NormalInverseGamma(0.0, 1.0, 2.0, 3.0)._repr_html_()
    assert len(ef.Poisson(np.ones(10_000))._repr_html_()) < 2_000
    assert len(ef.MultivariateNormal(np.zeros(60), np.eye(60))._repr_html_()) < 20_000
    assert "array of shape" in ef.MultivariateNormal(np.zeros((2, 2)), np.eye(2))._repr_html_()
    assert "Extremes" in ef.Uniform().statistic([1.0, 2.0])._repr_html_()
    assert "scatter" in ef.Normal().statistic([1.0, 2.0])._repr_html_()


def test_a_predictive_of_any_family_the_prior_is_about() -> None:
    p = ef.Beta(1, 1) + ef.Bernoulli().statistic([1, 0])
    assert p.predictive(ef.Binomial(10)) == ef.BetaBinomial(10, 2.0, 2.0)
    assert p.predictive(ef.Geometric()) == ef.BetaGeometric(2.0, 2.0)
    assert p.predictive() == ef.Bernoulli(0.5)
    rate = ef.Gamma(2.0, 1.0) + ef.Poisson().statistic([3])
    assert rate.predictive(ef.Exponential()) == ef.Lomax(5.0, 2.0)
    assert rate.predictive(ef.NormalKnownMean(1.0)).df == 10.0
    shares = ef.Dirichlet([1, 1, 1]) + ef.Categorical(states=["a", "b", "c"]).statistic(["a", "c"])
    assert shares.predictive(ef.Multinomial(4, 3)).alpha.tolist() == [2.0, 1.0, 2.0]
    assert shares.predictive(ef.Categorical(3)).probs.tolist() == [0.4, 0.2, 0.4]
    mean = ef.Normal(0.0, 1.0) + ef.NormalKnownVariance(1.0).statistic([2.0])
    assert mean.predictive(ef.NormalKnownVariance(3.0)) == ef.Normal(1.0, 3.5)


def test_families_that_share_a_parameter_share_a_prior() -> None:
    """One binomial row of 3 trials is three Bernoulli rows, up to the order of the successes; evidence obeys the chain rule."""
    one, many = ef.Bernoulli().statistic([1, 0]), ef.Binomial(3).statistic([2])
    p = ef.Beta(1, 1) + one + many
    assert p == ef.Beta(4, 3, of=ef.Bernoulli())
    both = ef.Beta(1, 1).log_evidence(one) + (ef.Beta(1, 1) + one).log_evidence(many)
    rows = ef.Beta(1, 1).log_evidence(ef.Bernoulli().statistic([1, 0, 1, 1, 0]))
    assert both == pytest.approx(rows + np.log(3), abs=1e-13)
    named = ef.Categorical(states=["a", "b"])
    shares = ef.Dirichlet([1, 1]) + named.statistic(["a"]) + ef.Multinomial(3, 2).statistic([[1, 2]])
    assert shares.alpha.tolist() == [3.0, 3.0]
    assert shares.of == named


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda p: p.predictive(10), r"asked about a family, for instance Bernoulli\(\), not about 10"),
        (lambda p: p.predictive("Bernoulli"), "not about 'Bernoulli'"),
        (lambda p: p.predictive(ef.Poisson()), "no conjugate prior of Poisson"),
        (lambda p: p + ef.Geometric().statistic([1]), "not about Geometric"),
        (lambda p: p.log_evidence(ef.Geometric().statistic([1])), "not about Geometric"),
        (lambda p: ef.Gamma(1, 1) + ef.Poisson().statistic([1]) + ef.Exponential().statistic([1]), "not about Exponential"),
        (lambda p: ef.Gamma(1, 1, 10).predictive(), "not about 10"),
        (lambda p: ef.Normal(0, 1).predictive(), r"predictive\(NormalKnownVariance\(1\.0\)\)"),
        (lambda p: ef.Dirichlet([1, 1]).predictive(ef.Categorical(3)), "2 states"),
        (lambda p: swapped(), "not about Categorical"),
        (lambda p: ef.NormalInverseGamma(0, 1, 1, 1).predictive(3), r"for instance Normal\(\)"),
    ],
)
def test_priors_refuse_in_a_sentence(ask: Any, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        ask(ef.Beta(1, 1) + ef.Bernoulli().statistic([1, 0]))


def swapped() -> Any:
    """States of the same number in another order: their probabilities are not the same parameters."""
    prior = ef.Dirichlet([1, 1]) + ef.Categorical(states=["a", "b"]).statistic(["a"])
    other = ef.Categorical(states=["b", "a"])
    with pytest.raises(ModelError, match="not about Categorical"):
        prior + other.statistic(["a"])
    return prior.predictive(other)


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        (ef.Poisson().statistic([3, 0]), ef.Poisson().statistic([5])),
        (ef.Poisson().statistic([3]), ef.Poisson().statistic([5])),
        (ef.Poisson().statistic([5]), ef.Poisson().statistic([3])),
        (ef.Bernoulli().statistic([0, 0]), ef.Bernoulli().statistic([1])),
        (ef.Bernoulli().statistic([1, 1]), ef.Bernoulli().statistic([0])),
        (ef.Binomial(5).statistic([5, 4]), ef.Binomial(5).statistic([3])),
        (ef.Categorical(3).statistic([0, 1]), ef.Categorical(3).statistic([2])),
        (ef.Multinomial(2, 2).statistic([[2, 0]] * 3), ef.Multinomial(2, 2).statistic([[1, 1]])),
        (ef.Geometric().statistic([0, 1]), ef.Geometric().statistic([4])),
        (ef.Exponential().statistic([1.0, 2.0]), ef.Exponential().statistic([5.0])),
        (ef.Gamma().statistic([1.0, 2.0]), ef.Gamma().statistic([5.0])),
        (ef.Beta().statistic([0.9, 0.9]), ef.Beta().statistic([0.1])),
        (ef.NormalKnownMean(0.0).statistic([1.0, 1.0]), ef.NormalKnownMean(0.0).statistic([3.0])),
    ],
    ids=repr,
)
def test_rows_that_were_never_there_cannot_be_taken_away(whole: Any, part: Any) -> None:
    with pytest.raises(StatisticsError, match="never part of the sum"):
        whole - part


@pytest.mark.parametrize("p", [d for d in DISTRIBUTIONS if not isinstance(d, ef.Uniform)], ids=repr)
def test_rows_that_were_there_can(p: Any) -> None:
    """In any order, with weights whose sums are rounded, down to none and beyond: nothing taken from nothing is nothing."""
    family, x = p.bare, p.sample(12, 3)
    parts = [family.statistic(x[i : i + 3], weights=np.array([0.1, 0.7, 1.3])) for i in range(0, 12, 3)]
    left = sum(parts)
    for part in reversed(parts[1:]):
        left = left - part
        left = left - family.statistic(x[:0])
    np.testing.assert_allclose(left.total, parts[0].total, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose((left - parts[0] * (1.0 - 1e-15)).total, 0.0, atol=1e-12)


def test_beyond_the_largest_double() -> None:
    big = ef.Exponential().statistic([1e308])
    with pytest.raises(DataError, match="beyond the largest double"):
        ef.Exponential().statistic([1e308, 1e308])
    with pytest.raises(DataError, match="beyond the largest double"):
        ef.Exponential().statistic([1e308], weights=[3.0])
    for ask in (lambda: big + big, lambda: big * 3.0, lambda: ef.Normal().statistic([1e200])):
        with pytest.raises(StatisticsError, match="beyond the largest double"):
            ask()


def test_gather_says_what_to_call(tmp_path: Path) -> None:
    for data, says in (({"x": [1.0]}, "sf.scan(rows), 'x'); not dict"), ("a.csv", "sf.scan('a.csv'), 'x'); not str")):
        with pytest.raises(DataError) as caught:
            ef.Normal().gather(data, "x")
        assert str(caught.value) == f"gather reads what scan gives: ef.Normal().gather({says}"
        with pytest.raises(DataError, match=r"ef\.Uniform\(\)\.gather"):
            ef.Uniform().gather(data, "x")
    with pytest.raises(DataError, match=r"ef\.MultivariateNormal\(\)\.gather\(sf\.scan\('.*rows.csv'\), \['x', 'y'\]\)"):
        ef.MultivariateNormal().gather(tmp_path / "rows.csv", ["x", "y"])


def test_missing_cells_are_counted() -> None:
    data = sf.scan({"x": [1.0, None, 2.0, None], "y": [1.0, 2.0, None, 3.0]})
    for family in (ef.Gamma(), ef.Uniform()):
        with pytest.raises(MissingCells, match=r"\(2 in 'x', of 4 rows\); .*df\.dropna\(subset=\['x'\]\)") as caught:
            family.gather(data, "x")
        assert " em " not in str(caught.value)
    with pytest.raises(MissingCells, match=r"2 in 'x', 1 in 'y', of 4 rows.*subset=\['x', 'y'\]"):
        ef.MultivariateNormal().gather(data, ["x", "y"])


def test_a_family_of_ones_own_says_at_once_what_it_lacks() -> None:
    said = ["natural", "from_natural", "from_mean", "log_normaliser", "gradient", "hessian", "sample", "entropy"]
    own: Any = type("Own", (ef.ExponentialFamily,), dict.fromkeys(said))
    with pytest.raises(TypeError, match="_cumulants, _divergence, _inside, _log_density"):
        own()


def test_what_a_distribution_of_ones_own_calls_its_mean_is_positive_unless_it_says_otherwise() -> None:
    @dataclass(frozen=True, eq=False, repr=False)
    class Rayleigh(Observable):
        mean: Any = None
        names = ("mean",)

    with pytest.raises(ModelError, match="the mean of Rayleigh"):
        Rayleigh(-1.0)


@pytest.mark.parametrize("of", [ef.Bernoulli.draws, ef.Bernoulli.with_probs, ef.ConjugatePrior.plus, ef.ConjugatePrior.evidence])
def test_help_tells_of_what_a_family_or_a_prior_says_itself(of: Any) -> None:
    assert inspect.getdoc(of)


def test_rows_are_counted_from_one() -> None:
    for ask in (
        lambda: ef.Poisson().statistic([1, np.nan]),
        lambda: ef.Poisson().statistic([1, 2], weights=[1, -1]),
        lambda: ef.Categorical(2).statistic([0, 5]),
        lambda: ef.Normal().statistic([1, np.inf]),
        lambda: ef.Uniform().statistic([1, np.inf]),
    ):
        with pytest.raises(DataError, match="row 2 "):
            ask()


def test_the_package_shows_its_names_alone_and_loads_them_late() -> None:
    assert dir(ef) == sorted(ef.__all__)
    assert all(getattr(ef, name).__name__ == name for name in ef.__all__)
    with pytest.raises(AttributeError, match="Cauchy"):
        ef.Cauchy  # noqa: B018
    assert families.Interval is ef.Interval
    script = (
        "import sys, suffice.numerics.exponential.arithmetic.values as i; "
        "print(sum(m.startswith('suffice.numerics.exponential.') for m in sys.modules), 'scipy' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["2", "False"]  # it, and its room


def test_steps_of_log_gamma_have_all_digits_on_both_sides_of_their_switch() -> None:
    """Γ(z + n)/Γ(z) of whole n is a product: exact beside all of small, large and mixed arrays."""
    z = np.array([0.01, 1.0, 15.9, 16.0, 100.0, 5_000.0, 9_999.0, 1e6, 1e12])
    for n in (0, 1, 3, 40):
        with localcontext() as context:
            context.prec = 40
            exact = [float(sum(((Decimal(float(a)) + i).ln() for i in range(n)), Decimal(0))) for a in z]
        for part in (slice(None), slice(0, 3), slice(3, None)):
            np.testing.assert_allclose(log_gamma_step(z[part], float(n)), exact[part], rtol=1e-14, atol=1e-14)
    assert log_gamma_step(1e307, 2.0) == pytest.approx(2 * np.log(1e307), rel=1e-15)
