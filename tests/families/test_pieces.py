"""What the small pieces below families and priors say, one case each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from suffice.regressions import Linear, PoissonLog, Probit, ProportionalOdds

import suffice as sf
from suffice.families import family_of, has_family, regressions_among
from suffice.families.categorical import Table, TableNode
from suffice.families.chosen.exponential_node import ExponentialNode, PoissonNode, PoissonRates
from suffice.families.chosen.node_kinds import ParameterPrior, distribution_of, kind_of
from suffice.families.conditional_gaussian import LinearGaussian
from suffice.families.design import columns_of, configurations, shrunk, terms
from suffice.families.gathering import gather_scopes, gather_steps, requests_of_every_family
from suffice.families.hierarchical.hierarchical import PartialPooling, Pool, common
from suffice.families.hierarchical.logistic_normal import JointBelief, LogisticBelief
from suffice.families.named_families import as_families, for_search, with_chosen_families
from suffice.families.parameter_draws import Coefficients, DrawnGaussian, DrawnTable, dirichlet_shares, gamma_quantiles
from suffice.families.priors.empirical_bayes import best_number, common_strength, highest, highest_point, pool_rows
from suffice.families.priors.number_priors import MeanBelief
from suffice.families.priors.priors import PriorsByNode, as_prior, same_rows, suitable
from suffice.families.protocol.cpd import as_numbers
from suffice.families.protocol.family import imagined_rows, in_order, is_number, prior_of
from suffice.families.regression_charts import RatesChart, RegressionChart, chart_of, line_of
from suffice.families.regressions.linear_moments import fitted_line, indicators
from suffice.families.regressions.logistic import log_gaps
from suffice.families.regressions.regression_suprema import Standardised, supremum_of
from suffice.numerics.exponential import Beta, Binomial, Gamma
from suffice.statistics import Counts, Moments, Statistics
from suffice.statistics.counts import log_factorials

AB, UV = sf.Finite("u", ["a", "b"]), sf.Finite("x", ["a", "b"])
ABC = sf.Finite("z", ["a", "b", "c"])
X, Y, N = sf.Real("x"), sf.Real("y"), sf.Count("n")
LINE = Moments((), ("x", "y"), [0], [4.0], [[1.0, 2.0]], [[[4.0, 2.0], [2.0, 3.0]]])
COUNT = Moments((), ("n",), [0], [4.0], [[2.5]], [[[1.0]]], derived=log_factorials(["n"]), sums=[[3.0]])
Y_ALONE = Moments((), ("y",), [0], [3.0], [[3.0]], [[[14.0]]])
TABLE = [[8, 2], [3, 7], [6, 4], [1, 9]]
NEAR = ((1.0, 0.9, 0.0), (0.9, 1.0, 0.0), (0.0, 0.0, 1.0))
OFFSET = Linear(offset="t").cpd(Y, (X, sf.Real("t")), np.array([0.0, 2.0]))
NUMBERS: dict[str, tuple[Callable[[], Any], Any]] = {
    "shrunk": (lambda: shrunk([AB]), [[0.0, 0.0], [0.0, 0.5]]),
    "indicators": (lambda: indicators([AB, ABC], np.array([0, 5])), [[0, 0, 0], [1, 0, 1]]),
    "log_gaps": (lambda: log_gaps(np.array([0.0, np.log(2.0)])), [0.0, -0.6931, 0.0]),
    "fitted_line": (lambda: fitted_line(Linear(), Y, [X], LINE).coefficients, [0.5]),
    "LinearGaussian": (lambda: LinearGaussian().estimate(Y, [X], LINE, None, sf.Mean()).coefficients, [0.5]),
    "line_of": (lambda: line_of(OFFSET, {1: 0.5}).coefficients, [2.0, 0.5]),
    "PoissonNode": (lambda: PoissonNode().estimate(N, [], COUNT, None, sf.Mode()).rates, 2.5),
    "PoissonLog": (lambda: PoissonLog().log_prob(np.array([0.0, 1, 1]), np.array([-800.0, -800, 800]), 1.0, np.empty(0)),
                   [0.0, -800.0, -np.inf]),
    "TableNode": (lambda: TableNode().estimate(UV, [AB], Counts((AB, UV), [[3, 1], [0, 2]]), None, sf.Mode()).probs,
                  [[0.75, 0.25], [0.0, 1.0]]),
    "gamma_quantiles": (lambda: gamma_quantiles(np.array([-1.96, 0.0, 1.96]), np.array([1.0, 1, 100])),
                        [0.02531, 0.69315, 120.53]),
    "same_rows": (lambda: same_rows(np.array([3.0, 1.0]), [AB, UV]).total, 8.0),
    "in_order": (lambda: in_order({"b": 0.75, "a": 0.25}, AB, "the mean"), [0.25, 0.75]),
    "imagined_rows": (lambda: imagined_rows(sf.K2(), AB, []).dense(), [1.0, 1.0]),
    "as_numbers": (lambda: as_numbers([1, 2], "these are no numbers"), [1.0, 2.0]),
    "highest": (lambda: highest([[8, 2], [3, 7]]), 20.0),
    "common_strength": (lambda: [common_strength([TABLE]), common_strength([TABLE, [[5, 5], [0, 0]], [[10, 0], [9, 1]]])],
                        [4.145, 4.882]),
    "pool_rows": (lambda: [pool_rows(TABLE).strength, *pool_rows(TABLE).mean, pool_rows(TABLE).log_evidence],
                  [4.145, 0.451, 0.549, -25.476]),
    "common": (lambda: common(np.array([TABLE], float), strength=4.0)[1], [[0.4509, 0.5491]]),
    "highest_point": (lambda: highest_point(lambda x: -((x - 2.0) ** 2), -10.0, 10.0), 2.0),
    "best_number": (lambda: [best_number(lambda x: -abs(np.log(x)), 0.01, 1e4), best_number(lambda x: -x, 0.01, 1e4)],
                    [1.0, 0.01]),
    "JointBelief": (lambda: JointBelief((0.0,) * 3, 1.0, NEAR).probs(Counts((ABC,), [8, 0, 0]), sf.Mode()),
                    [0.58182, 0.32186, 0.096315]),
    "LogisticBelief": (lambda: LogisticBelief((0.0, 0.0), 1.0).probs(Counts((AB,), [3, 1]), sf.Mode()), [0.6645, 0.3355]),
    "MeanBelief": (lambda: MeanBelief(0.0, 4.0, 4.0).posterior(Y_ALONE, 1).mean, [2.25]),
    "gather_scopes": (lambda: gather_scopes({"a": list("xxy"), "b": list("uvv")}, [("a", "b")]).counts(["a", "b"]).values,
                      [[1, 1], [0, 1]]),
    "gather_steps": (lambda: gather_steps(sf.sequences({"x": ["a", "b", "a"]}), "x[-1] -> x").counts(["x[-1]", "x"]).values,
                     [[0, 1], [1, 0]]),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    call, expected = NUMBERS[name]
    np.testing.assert_allclose(np.asarray(call(), float), np.asarray(expected, float), rtol=1e-3, atol=1e-6)


def test_where_a_regression_holds_what() -> None:
    layout = sf.Logistic().layout(ABC, 1)
    assert layout.levels.tolist() == [0, 2]
    assert layout.predictors(np.array([0.0, 5.0, 1.0, 6.0])).tolist() == [[0.0, 5.0], [1.0, 6.0]]


def test_which_family_a_node_has() -> None:
    assert family_of(Y, [AB]) == LinearGaussian()
    assert has_family(N, [AB])
    assert not has_family(N, [Y])
    assert regressions_among({"x": None}) == {}
    assert isinstance(as_families({"wait": Gamma()})["wait"], ExponentialNode)
    assert with_chosen_families(sf.scan({"x": [0.5, 1.5]}), {"x": Gamma()}).schema["x"] == ExponentialNode(Gamma()).variable("x")
    regressions = for_search(sf.scan({"x": [0.5, 1.5], "y": ["a", "b"]}), {"y": sf.Logistic()})[1]
    assert regressions == {"y": sf.Logistic(ridge=0.0)}
    assert [r.finite for r in requests_of_every_family({n: sf.Finite(n, ["u", "v"]) for n in "abc"}, 1)] == [
        ("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c"),
    ]  # fmt: skip


def test_columns_of_a_regression() -> None:
    assert terms([X, ABC, sf.Real("exposure")], ["exposure"]).names == ("x", "z=b", "z=c")
    assert columns_of([ABC, AB], "u") == slice(2, 3)
    assert Standardised((X, ABC), np.zeros(3), np.ones(3)).places([ABC, X]) == [0, 2, 3, 1]
    columns, n = configurations([AB], {"x": 0.5})
    assert (n, columns["x"].tolist(), columns["u"].tolist()) == (2, [0.5, 0.5], [0, 1])


def test_states_that_a_number_separates_have_a_supremum() -> None:
    data = sf.scan({"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", "a", "b", "b"]})
    found = supremum_of(data, sf.Logistic(), data.schema["y"], [data.schema["x"]])
    assert found.log_likelihood == pytest.approx(0.0, abs=1e-6)
    assert found.endless


def test_what_priors_are_written_as() -> None:
    default = (sf.BDeu(1), sf.NormalInverseGamma(), sf.priors.Gamma())
    assert suitable(default, [AB], default) == sf.BDeu(1)
    assert suitable(None, [], default) is None
    assert as_prior(1) == sf.Dirichlet(1)
    assert as_prior({"x": [9, 1]}) == PriorsByNode({"x": sf.Dirichlet((9.0, 1.0))})
    assert PriorsByNode({"smoke": [3, 1]}).priors["smoke"] == sf.Dirichlet((3.0, 1.0))
    assert prior_of(sf.BDeu(10).to_dict()) == sf.BDeu(10)
    assert ParameterPrior.of(Beta(1.0, 2.0)) == ParameterPrior("Beta", (1.0, 2.0))
    assert [is_number(2), is_number(True), is_number("2")] == [True, False, False]


def test_pooled_rows_are_drawn_towards_their_mean() -> None:
    hospital, ill = sf.Finite("hospital", ["a", "b", "c"]), sf.Finite("ill", ["no", "yes"])
    seen = Counts((hospital, ill), [[18, 2], [10, 10], [2, 0]])
    assert Pool((("outcome", "treatment", "hospital"),), "hospital").others == ("treatment",)
    prior = PartialPooling((Pool((("ill", "hospital"),), "hospital"),), strength=10.0)
    imagined = prior.choose({}, [(ill, [hospital], seen)], Statistics([seen], 42)).imagine(ill, [hospital])
    assert imagined.dense().round(1).tolist() == [[7.3, 2.7]] * 3


def test_kinds_of_nodes() -> None:
    assert distribution_of("binomial", {"n": 12}) == Binomial(12)
    kind = kind_of(Gamma())
    assert kind is not None
    assert kind.word == "gamma"
    assert kind_of(2) is None
    family = ExponentialNode(Gamma())
    assert [(d.column, d.formula) for d in family.needs(family.variable("wait"), []).derived] == [("wait", "ln x")]


def test_charts() -> None:
    assert chart_of(Table(AB, (), np.array([0.25, 0.75]))).__name__ == "TableChart"
    rates = RatesChart.around(PoissonRates(N, (), np.array(2.0)), [1])
    assert rates.vector(rates.cpd).round(4).tolist() == [0.6931]
    assert rates.at(np.array([0.0])).rates == 1.0
    cpd = ProportionalOdds().cpd(ABC, (), np.array([-1.0, 1.0]))
    ordered = RegressionChart.around(cpd, [1, 1], [])
    assert ordered.vector(cpd).round(4).tolist() == [-1.0, 0.6931]
    assert ordered.at(np.array([0.0, 0.0])).cut_points.tolist() == [0.0, 1.0]


def test_draws_of_parameters() -> None:
    rng = np.random.default_rng(0)
    table = DrawnTable(sf.fit("x -> y", {"x": list("abb"), "y": list("aab")}, prior=sf.Dirichlet(1))["y"], {"x": 0, "y": 1}, {})
    assert (table.scope, table.shape, table.draw(1000, rng).shape) == ((0, 1), (2, 2), (1000, 4))
    line = sf.fit("x -> y", {"x": [1.0, 2.0, 4.0, 5.0], "y": [1.0, 3.0, 3.5, 6.0]}, prior=sf.NormalInverseGamma())["y"]
    node = DrawnGaussian(line, {}, {"x": 0}).draw(1000, rng)
    assert (node.finite_parents, node.variance.shape, node.coefficients.shape) == ((-1,), (1000,), (1000, 1))
    probit = sf.fit("x -> y", {"x": [1.0, 2.0, 3.0, 4.0], "y": list("abab")}, families={"y": Probit()})["y"]
    draws = Coefficients(probit).draw_predictors(np.array([[1.0, 2.5]]), 10_000, rng)
    assert draws.shape == (10_000, 1)
    assert abs(draws.mean()) < 0.05


def test_draws_of_shares_have_the_skew_of_a_dirichlet() -> None:
    theta, n, rng = np.array([[0.1, 0.9]]), 20.0, np.random.default_rng(0)
    covariance = np.zeros((1, 2, 2))
    covariance[0, 0, 0] = 1 / (n * 0.1) + 1 / (n * 0.9)
    eta = np.zeros((40_000, 1, 2))
    eta[:, 0, 0] = np.sqrt(covariance[0, 0, 0]) * rng.standard_normal(40_000)
    ends = np.quantile(dirichlet_shares(theta, eta, covariance, rng)[:, 0, 0], [0.025, 0.975])
    assert ends.round(2).tolist() == [0.01, 0.26]  # those of Beta(2, 18)


def test_several_priors_are_printed_as_one_writes_them() -> None:
    score = sf.Evidence((sf.BDeu(1), sf.NormalInverseGamma()))
    assert repr(score) == f"Evidence(prior=(BDeu(ess=1), {sf.NormalInverseGamma()!r}))"
    assert eval(repr(score), vars(sf)) == score
