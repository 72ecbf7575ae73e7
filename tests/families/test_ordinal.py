"""Proportional odds: statsmodels' numbers, laws of its sums, and what is refused."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import suffice as sf
from suffice.basis.variables import Finite, Real
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, ModelError, SufficeError, TooLarge
from suffice.families.design import Regressors
from suffice.families.regressions.logistic import ProportionalOdds
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.learning.complete.irls import fit_regression

LEVELS = ["low", "mid", "high", "top"]


def probs_of(cpd: Any, columns: Any) -> Any:
    """p(child | parents) of each row: one row per row, one column per state."""
    n = len(next(iter(columns.values())))
    return np.exp([cpd.log_prob({**columns, cpd.child.name: np.full(n, k)}) for k in range(cpd.child.n_states)]).T


def rows(seed: int = 0, n: int = 400, states: int = 4) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x, z = rng.normal(20, 3, n), rng.integers(0, 3, n)
    eta = 0.3 * (x - 20) + 0.5 * (z == 1) - 0.4 * (z == 2) + rng.logistic(size=n)
    y = (eta[:, None] > np.linspace(-1, 1.5, states - 1)).sum(axis=1)
    return {"x": x, "z": np.array(list("abc"))[z], "y": np.array(LEVELS)[y], "w": rng.integers(1, 4, n)}


def ordinal_cpd(child: Finite, parents: tuple[Any, ...], intercept: Any, coefficients: Any) -> RegressionCpd:
    return RegressionCpd(child, parents, ProportionalOdds(), intercept, coefficients)


def fit(table: dict[str, Any], parents: str = "x z", *, ridge: float = 0.0, states: int = 4, **options: Any) -> RegressionCpd:
    order = {"y": Finite("y", LEVELS[:states])}
    names = [*parents.split(), "y", *([options["weights"]] if "weights" in options else [])]
    data = scan({n: table[n] for n in names}, variables={**order, **options.pop("variables", {})}, integers=Real, **options)
    return fit_regression(data.schema["y"], [data.schema[p] for p in parents.split()], data, ProportionalOdds(ridge))


@pytest.mark.parametrize("states", [2, 3, 4])
def test_statsmodels(states):
    model = pytest.importorskip("statsmodels.miscmodels.ordinal_model")
    table = rows(1, states=states)
    cpd = fit(table, states=states)
    X = np.column_stack([table["x"] - 20, table["z"] == "b", table["z"] == "c"]).astype(float)
    codes = np.array([LEVELS.index(y) for y in table["y"]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it cannot come as near to the maximum as it was asked to
        theirs = model.OrderedModel(codes, X, distr="logit").fit(method="bfgs", disp=0, gtol=1e-10, maxiter=1000)
    p = len(cpd.coefficients)
    np.testing.assert_allclose(cpd.coefficients, theirs.params[:p], rtol=1e-7)
    # its cut points are a first one and the logs of the steps between them
    cuts = np.cumsum([theirs.params[p], *np.exp(theirs.params[p + 1 :])])
    np.testing.assert_allclose(cpd.cut_points - 20 * cpd.coefficients[0], cuts, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(cpd.standard_errors[states - 1 :], theirs.bse[:p], rtol=1e-5)  # by differences there
    assert cpd.fitted.log_likelihood == pytest.approx(theirs.llf, rel=1e-11)
    assert cpd.fitted.deviance == -2 * cpd.fitted.log_likelihood


def test_two_states_are_a_logistic_regression():
    table = rows(2, states=2)
    cpd = fit(table, states=2, weights="w")
    data = scan({n: table[n] for n in ("x", "z", "y", "w")}, variables={"y": Finite("y", LEVELS[:2])}, weights="w")
    binary = fit_regression(data.schema["y"], [data.schema["x"], data.schema["z"]], data, sf.Logistic())
    np.testing.assert_allclose([-cpd.cut_points[0], *cpd.coefficients], [binary.intercept[0], *binary.coefficients[0]], rtol=1e-9)
    np.testing.assert_allclose(cpd.standard_errors, binary.standard_errors[0], rtol=1e-8)
    f, g = cpd.fitted, binary.fitted
    assert [f.log_likelihood, f.pearson] == pytest.approx([g.log_likelihood, g.pearson], rel=1e-9)


def problem(seed: int, n: int = 30) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    child, parents = Finite("y", LEVELS), (Real("x"), Finite("z", ["a", "b", "c"]))
    columns = {"x": rng.normal(1, 1, n), "z": rng.integers(0, 3, n), "y": rng.integers(0, 4, n)}
    at = Regressors(child, parents, np.array([0.7, 0.0, 0.0]))
    return at, np.array([-1.0, 0.2, 0.9, 0.5, -0.7, 0.3]), columns, rng.gamma(1, 1, n)


@pytest.mark.parametrize("seed", range(4))
def test_sums_are_log_likelihood_and_its_derivatives(seed):
    """Against p(y ≤ k) written out, and differences of the log-likelihood and the gradient."""
    at, theta, columns, weights = problem(seed)
    family = ProportionalOdds()
    s = family.measure(at, theta, columns, weights)
    b = theta[3:]
    cpd = RegressionCpd(at.child, at.parents, ProportionalOdds(), theta[:3] + b @ at.centre, b, centre=at.centre)
    X = np.column_stack([columns["x"], columns["z"] == 1, columns["z"] == 2])
    below = np.column_stack([np.zeros(30), expit(cpd.cut_points - (X @ b)[:, None]), np.ones(30)])
    np.testing.assert_allclose(probs_of(cpd, columns), np.diff(below, axis=1), rtol=1e-10)
    assert s.log_likelihood == pytest.approx(weights @ cpd.log_prob(columns), rel=1e-12)
    p = np.exp(cpd.log_prob(columns))
    assert s.pearson == pytest.approx(weights @ ((1 - p) / p), rel=1e-10)
    h = 1e-5
    for j, e in enumerate(np.eye(6) * h):
        up, down = (family.measure(at, theta + t * e, columns, weights) for t in (1, -1))
        assert (up.log_likelihood - down.log_likelihood) / (2 * h) == pytest.approx(s.gradient[j], abs=1e-6)
        np.testing.assert_allclose((down.gradient - up.gradient) / (2 * h), s.hessian[j], atol=1e-5)
    assert np.linalg.eigvalsh(s.hessian).min() > 0
    crossed = family.measure(at, np.array([0.3, 0.2, 0.9, 0.5, -0.7, 0.3]), columns, weights)
    assert crossed.log_likelihood == -np.inf


def test_no_parents_are_the_frequencies():
    table = rows(3)
    data = scan({"y": table["y"]}, variables={"y": Finite("y", LEVELS)})
    cpd = fit_regression(data.schema["y"], [], data, ProportionalOdds())
    share = np.array([np.mean(table["y"] == s) for s in LEVELS])
    np.testing.assert_allclose(cpd.table().probs, share, rtol=1e-12)


def test_invariances_and_digits():
    """States in the other order turn the signs; rows, shifts and scales change nothing but their own numbers."""
    table = rows(4)
    plain = fit(table)
    turned = fit(table, variables={"y": Finite("y", LEVELS[::-1])})
    np.testing.assert_allclose(turned.cut_points, -plain.cut_points[::-1], rtol=1e-8)
    np.testing.assert_allclose(turned.coefficients, -plain.coefficients, rtol=1e-8)
    order = np.random.default_rng(0).permutation(400)
    shuffled = fit({n: c[order] for n, c in table.items()})
    np.testing.assert_allclose(shuffled.coefficients, plain.coefficients, rtol=1e-9)
    for shift, scale, tolerance in ((1e9, 1.0, 1e-6), (0.0, 1e100, 1e-9), (0.0, 1e-100, 1e-9)):
        other = fit({**table, "x": table["x"] * scale + shift})
        np.testing.assert_allclose(other.coefficients, plain.coefficients * [1 / scale, 1, 1], rtol=tolerance)
    relabelled = fit(table, variables={"z": Finite("z", ["c", "a", "b"])})
    assert relabelled.coefficients[1] == pytest.approx(-plain.coefficients[2], rel=1e-8)


def test_ridge():
    """The gradient of the penalised likelihood is 0; the penalty is that of the other families."""
    table = rows(5)
    cpd = fit(table, "x", ridge=4.0)
    at = Regressors(cpd.child, cpd.parent_variables, np.zeros(1))
    codes = {"x": table["x"], "y": np.array([LEVELS.index(y) for y in table["y"]])}
    s = ProportionalOdds().measure(at, np.concatenate([cpd.cut_points, cpd.coefficients]), codes, None)
    np.testing.assert_allclose(s.gradient, [0, 0, 0, 4.0 * cpd.coefficients[0]], atol=1e-6)
    assert abs(cpd.coefficients[0]) < abs(fit(table, "x").coefficients[0])


def test_far_rows_keep_their_digits():
    """A state between two cut points that both are far away: the difference of the cumulative probabilities has no digits."""
    cpd = ordinal_cpd(Finite("y", LEVELS), (Real("x"),), [-1.0, 0.0, 1e-9], [1.0])
    far = {"x": np.array([-60.0, 800.0, -800.0]), "y": np.array([2, 2, 2])}
    gap = np.log(-np.expm1(-1e-9))
    np.testing.assert_allclose(cpd.log_prob(far), [-60.0 + gap, -800.0 + gap, -800.0 + gap], rtol=1e-11)


def test_draws_have_the_probabilities():
    cpd = RegressionCpd(
        Finite("y", LEVELS), (Real("x"), Finite("z", ["a", "b"])), ProportionalOdds(), [-1.0, 0.2, 1.0], [0.5, -0.3]
    )
    columns = {"x": np.full(100_000, 0.7), "z": np.ones(100_000, dtype=np.uint8)}
    drawn = cpd.draw(columns, np.random.default_rng(0), 100_000)
    np.testing.assert_allclose(np.bincount(drawn) / 100_000, probs_of(cpd, columns)[0], atol=0.006)


def test_other_views():
    cpd = fit(rows(6))
    columns = {"x": np.array([18.0, 25.0]), "z": np.array([2, 0])}
    turned = cpd.reorder(["z", "x"])
    assert turned.terms == ("z=b", "z=c", "x")
    np.testing.assert_allclose(probs_of(turned, columns), probs_of(cpd, columns), rtol=1e-12)
    np.testing.assert_allclose(turned.standard_errors, cpd.standard_errors[[0, 1, 2, 4, 5, 3]])
    np.testing.assert_allclose(cpd.without({"x": 18.0}).table().probs[2], probs_of(cpd, columns)[0], rtol=1e-10)
    assert cpd.reorder(["z"]).fitted is None
    frame = cpd.to_frame()
    assert list(frame["term"]) == ["low|mid", "mid|high", "high|top", "x", "z=b", "z=c"]
    np.testing.assert_allclose(np.column_stack([frame["lower"], frame["upper"]]), np.column_stack(cpd.interval(0.95)))
    assert (cpd.parents, cpd.real_parents, cpd.n_parameters, cpd.family) == (("x", "z"), ("x",), 6, ProportionalOdds())
    assert np.array_equal(pickle.loads(pickle.dumps(cpd)).cut_points, cpd.cut_points)
    assert repr(cpd).startswith("p(y | x, z), proportional odds\n")
    assert "<table>" in cpd._repr_html_()


def test_a_network_fits_and_samples():
    data = scan({n: rows(7)[n] for n in "xzy"}, variables={"y": Finite("y", LEVELS)})
    bn = sf.fit("x -> y; z -> y", data, families={"y": ProportionalOdds()})
    assert isinstance(bn["y"], RegressionCpd)
    again = sf.fit(bn, bn.sample(20_000, seed=0), families={"y": ProportionalOdds()})["y"]
    np.testing.assert_allclose(again.coefficients, bn["y"].coefficients, atol=0.15)


def test_estimates_that_do_not_exist():
    table = rows(8)
    apart = {**table, "y": np.array(LEVELS)[np.searchsorted([18, 20, 22], table["x"])]}
    with pytest.raises(FitError, match=r"'y' grow without end: 'x' separates its values .* ProportionalOdds\(ridge=1\)"):
        fit(apart)
    assert fit(apart, ridge=1.0).coefficients[0] < 50
    with pytest.raises(FitError, match="'z=c' separates"):
        fit({**table, "y": np.where(table["z"] == "c", "low", table["y"])})
    with pytest.raises(FitError, match="no row has y=high"):
        fit({**table, "y": np.where(table["y"] == "high", "low", table["y"])})
    with pytest.raises(FitError, match="no row has z=d"):
        fit(table, variables={"z": Finite("z", list("abcd"))})
    with pytest.raises(FitError, match="the column 'u' of its parent 'u' is a linear combination of 'x'"):
        fit({**table, "u": 2 * table["x"] + 1}, "x u")
    with pytest.raises(FitError, match="the column 'u' of its parent 'u' is constant"):
        fit({**table, "u": 0 * table["x"] + 1e6}, "u")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ProportionalOdds(-1.0), FitError, "ridge"),
        (lambda: ProportionalOdds().check(Real("y"), []), FitError, "ProportionalOdds is a family of finite nodes.*'y' is Real"),
        (lambda: ProportionalOdds().check(Finite("y", ["a"]), []), FitError, "two states or more"),
        (lambda: ProportionalOdds().check(Finite("y", ["a", "b"]), [Finite("z", range(5000))]), TooLarge, "5,000 parameters"),
        (
            lambda: ordinal_cpd(Finite("y", LEVELS), (), [0.0, 1.0], []),
            ModelError,
            "cut_points of 'y' must have",
        ),
        (lambda: ordinal_cpd(Finite("y", LEVELS), (), [0.0, 1.0, 1.0], []), ModelError, "must rise"),
        (
            lambda: ordinal_cpd(Finite("y", LEVELS), (), [0.0, 1.0, np.inf], []),
            ModelError,
            "finite numbers",
        ),
        (
            lambda: ordinal_cpd(Finite("y", LEVELS), (), [0.0, 1.0, 2.0], []).interval(),
            FitError,
            "no standard errors",
        ),
        (
            lambda: ordinal_cpd(Finite("y", LEVELS[:2]), (Real("x"),), [0.0], [1.0]).table(),
            ModelError,
            "real parent 'x'",
        ),
        (lambda: fit({**rows(), "x": np.where(np.arange(400) == 3, np.nan, 1.0)}), DataError, "'x' 1"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message) as refused:
        call()
    assert isinstance(refused.value, SufficeError)
