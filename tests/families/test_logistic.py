"""Logistic regression: numbers of statsmodels and scikit-learn, laws of its sums and steps, and what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.basis.variables import Finite, Real
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, ModelError, SufficeError, TooLarge
from suffice.families.conditional_gaussian import LinearGaussian
from suffice.families.regressions.logistic import Logistic, _widest
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.learning.complete.irls import fit_regression as fitted_by

STATES = np.array(["a", "b", "c"])


def probs_of(cpd: Any, columns: Any) -> Any:
    """p(child | parents) of each row: one row per row, one column per state."""
    n = len(next(iter(columns.values())))
    return np.exp([cpd.log_prob({**columns, cpd.child.name: np.full(n, k)}) for k in range(cpd.child.n_states)]).T


def rows() -> dict[str, Any]:
    """400 rows without a random generator, so that they are the same everywhere."""
    i = np.arange(400.0)
    x, v, z = 10 + 3 * np.sin(1.7 * i), np.cos(0.9 * i * i), (i * 7 % 3).astype(int)
    u = [(i * 0.6180339887498949 + k * 0.7548776662466927) % 1 for k in (0, 1)]
    eta = 0.4 * (x - 10) + 0.8 * v - 0.7 * (z == 1) + 0.5 * (z == 2)
    weights = np.exp([0 * eta, eta, -0.5 * eta + 0.3 * (z == 2)])
    two, three = u[0] < 1 / (1 + np.exp(-eta)), (u[1] >= np.cumsum(weights / weights.sum(0), 0)[:-1]).sum(0)
    return {"x": x, "v": v, "z": STATES[z], "two": STATES[two.astype(int)], "three": STATES[three], "w": 1 + i % 4}


def fitted(child, parents, data, ridge=0.0, **options):
    return fitted_by(child, parents, data, Logistic(ridge), **options)


def logistic_cpd(child: Finite, parents: tuple[Any, ...], intercept: Any, coefficients: Any) -> RegressionCpd:
    return RegressionCpd(child, parents, Logistic(), intercept, coefficients)


def fit(columns: dict[str, Any], child: str, parents: str, *, weights: str | None = None, **options: Any) -> RegressionCpd:
    data = scan(columns, weights=weights) if weights else scan(columns)
    return fitted(data.schema[child], [data.schema[p] for p in parents.split()], data, **options)


# statsmodels 0.15.0: Logit and MNLogit, fit(method="newton", tol=1e-14); GLM(Binomial, freq_weights=w); the rows of `rows()`
BINARY = [-4.35984576, 0.43586691, 0.7400998, -0.6835543, 0.37816889], -228.6712934142783
WEIGHTED = [-4.18172499, 0.42748868, 0.79569421, -0.71947499, 0.22721764], -574.7601684337685
MULTINOMIAL = (
    [[-3.60146623, 0.37319986, 0.7104561, -0.61631339, 0.4538421], [1.99125656, -0.18630851, -0.46715121, 0.2142156, 0.07859718]],
    -374.0611833127458,
)


@pytest.mark.parametrize(
    ("child", "weights", "reference"), [("two", None, BINARY), ("two", "w", WEIGHTED), ("three", None, MULTINOMIAL)]
)
def test_statsmodels(child, weights, reference):
    table = rows()
    cpd = fit(table, child, "x v z", weights=weights)
    expected, log_likelihood = reference
    np.testing.assert_allclose(np.column_stack([cpd.intercept, cpd.coefficients]), np.atleast_2d(expected), atol=1e-8)
    data = scan({n: c for n, c in table.items() if n != "w"})
    each = cpd.log_prob(data.sample(10**9).columns)
    assert (each * (table["w"] if weights else 1.0)).sum() == pytest.approx(log_likelihood, abs=1e-9)


def test_ridge_of_scikit_learn():
    """LogisticRegression(C=1/2), solver newton-cholesky, tol 1e-12: scikit-learn 1.9.1."""
    three, two = fit(rows(), "three", "x v", ridge=2.0), fit(rows(), "two", "x v", ridge=2.0)
    np.testing.assert_allclose(three.coefficients, [[0.34924592, 0.6705084], [-0.17947473, -0.44105782]], atol=1e-8)
    np.testing.assert_allclose(three.intercept, [-3.37306989, 2.037604], atol=1e-8)
    np.testing.assert_allclose([*two.intercept, *two.coefficients[0]], [-4.21355516, 0.41144147, 0.69308625], atol=1e-8)


@pytest.mark.parametrize("child", ["two", "three"])
@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_no_state_is_special(child, ridge):
    """Other first states, of the child or of a parent, give the same probabilities, with a ridge too."""
    table = rows()
    codes = {n: np.searchsorted(STATES, table[n]) for n in ("z", child)}
    n = int(codes[child].max()) + 1
    z, y = Finite("z", STATES), Finite(child, STATES[:n])
    turned = {"z": Finite("z", STATES[::-1]), child: Finite(child, STATES[:n][::-1])}
    data = scan(table, variables={"z": z, child: y})
    other = scan(table, variables=turned)
    a = probs_of(fitted(y, [z, Real("x")], data, ridge=ridge), {"z": codes["z"], "x": table["x"]})
    b = probs_of(fitted(turned[child], [Real("x"), turned["z"]], other, ridge=ridge), {"z": 2 - codes["z"], "x": table["x"]})
    np.testing.assert_allclose(a, b[:, ::-1], atol=1e-9)


def test_finite_parents_alone_are_the_table():
    """One finite parent and no numbers: as many parameters as the table has, and the same probabilities."""
    table = rows()
    cpd = fit(table, "three", "z")
    counts = np.array([[np.sum((table["z"] == z) & (table["three"] == y)) for y in STATES] for z in STATES])
    np.testing.assert_allclose(cpd.table().probs, counts / counts.sum(axis=1, keepdims=True), atol=1e-9)
    with pytest.raises(ModelError, match="real parent 'x'"):
        fit(table, "three", "x z").table()


def test_large_numbers_keep_their_digits():
    table = rows()
    cpd = fit(table, "two", "x v z")
    for shift, scale, tolerance in ((1e9, 1.0, 1e-6), (1e5, 1.0, 1e-9), (0.0, 1e120, 1e-9), (0.0, 1e-120, 1e-9)):
        other = fit(table | {"x": table["x"] * scale + shift}, "two", "x v z")
        unit = np.array([1 / scale, 1, 1, 1])
        np.testing.assert_allclose(other.coefficients, cpd.coefficients * unit, rtol=tolerance)


def test_threads_and_blocks_change_nothing():
    i = np.arange(40_000.0)
    columns = {"x": np.sin(i), "y": STATES[((i * 0.618) % 1 < 0.5 + 0.4 * np.sin(i)).astype(int)]}
    one, two = fit(columns, "y", "x", threads=1), fit(columns, "y", "x", threads=2)
    assert np.array_equal(one.coefficients, two.coefficients)
    assert np.array_equal(one.intercept, two.intercept)


@st.composite
def problems(draw, means=(0, 50)):
    """A regression at any parameters, with weighted rows."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    child = Finite("y", list("abcd")[: draw(st.integers(2, 4))])
    parents = draw(st.permutations([Real("x"), Real("t"), Finite("z", ["u", "v", "w"]), Finite("b", ["no", "yes"])]))
    parents = parents[: draw(st.integers(0, 4))]
    n = draw(st.integers(1, 30))
    columns: dict[str, Any] = {
        v.name: rng.integers(0, v.n_states, n) if isinstance(v, Finite) else rng.normal(draw(st.sampled_from(means)), 1, n)
        for v in (child, *parents)
    }
    cpd = Logistic(draw(st.sampled_from([0.0, 0.5]))).start(child, parents)
    wide = draw(st.sampled_from([0.1, 3.0]))
    cpd = RegressionCpd(
        child,
        cpd.parent_variables,
        cpd.family,
        rng.normal(0, wide, cpd.intercept.shape),
        rng.normal(0, wide, cpd.coefficients.shape),
        centre=rng.normal(0, 1, cpd.centre.shape) * [isinstance(v, Real) for v in _columns(parents)],
    )
    return cpd, columns, rng.gamma(0.5, 2.0, n)


def _columns(parents):
    return [v for v in parents for _ in range(v.n_states - 1 if isinstance(v, Finite) else 1)]


def objective(cpd: RegressionCpd, columns: Any, weights: Any) -> float:
    return cpd.family.step(cpd, columns, weights).log_likelihood + cpd.family.log_prior(cpd)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_advance_never_falls(problem):
    cpd, columns, weights = problem
    before = objective(cpd, columns, weights)
    for _ in range(6):
        cpd = cpd.family.advance(cpd, cpd.family.step(cpd, columns, weights))
        after = objective(cpd, columns, weights)
        assert after >= before - 1e-10 * (1 + abs(before))
        before = after


@settings(max_examples=60, deadline=None)
@given(problems(means=(0,)), st.integers(0, 10**6), st.sampled_from([0.1, 1.0, 10.0]))
def test_advance_maximises_a_bound_that_lies_below(problem, seed, far):
    """ln L(θ + d) ≥ ln L(θ) + G·d − ½ d·B d with B = ½ (I − 11ᵀ/K) ⊗ S, and the step is B⁻¹ G where B has an inverse."""
    cpd, columns, weights = problem
    s, K = Logistic().step(cpd, columns, weights, newton=False), cpd.child.n_states
    B = 0.5 * np.kron(np.eye(K - 1) - 1 / K, s.scatter)
    d = far * np.random.default_rng(seed).normal(size=s.gradient.shape)
    bound = s.log_likelihood + np.sum(s.gradient * d) - 0.5 * d.reshape(-1) @ B @ d.reshape(-1)
    there = Logistic().step(_shifted(cpd, d), columns, weights).log_likelihood
    assert there >= bound - 1e-9 * (1 + abs(bound))
    if np.linalg.cond(B) < 1e6:
        step = np.linalg.solve(B, s.gradient.reshape(-1)).reshape(d.shape)
        after, expected = Logistic().advance(cpd, s), _shifted(cpd, step)
        np.testing.assert_allclose(after.coefficients, expected.coefficients, atol=1e-7)
        np.testing.assert_allclose(after.intercept, expected.intercept, atol=1e-7)
        curved = Logistic().advance(cpd, Logistic().step(cpd, columns, weights, newton=True))
        gained = Logistic().step(curved, columns, weights).log_likelihood - s.log_likelihood
        assert gained >= 0.5 * np.sum(s.gradient * step) - 1e-9 * (1 + abs(s.log_likelihood))


@settings(max_examples=60, deadline=None)
@given(problems(), st.integers(0, 10**6))
def test_safe_part_of_a_newton_step(problem, seed):
    """The range of η's change is at least what the rows have, and the step gains at least what it promises."""
    cpd, columns, weights = problem
    family, s = cpd.family, cpd.family.step(cpd, columns, weights, newton=True)
    d = np.random.default_rng(seed).normal(size=s.gradient.shape)
    logs = [c.log_probs(columns, len(weights)) for c in (_shifted(cpd, 1e-3 * d), cpd)]
    assert np.ptp(logs[0] - logs[1], axis=0).max() <= 1e-3 * _widest(cpd, s, d) * (1 + 1e-9) + 1e-9
    moved, promise = family._damped_step(cpd, s, np.arange(s.gradient.shape[1]))
    if promise > 0:
        gained = objective(_shifted(cpd, moved), columns, weights) - objective(cpd, columns, weights)
        assert gained >= promise - 1e-7 * (1 + abs(s.log_likelihood))


@settings(max_examples=40, deadline=None)
@given(problems(means=(0,)))
def test_sums_are_log_likelihood_and_its_derivatives(problem):
    """Against p(y | x) written out, and differences of the log-likelihood and the gradient."""
    cpd, columns, weights = problem
    family, n = cpd.family, len(weights)
    s = family.step(cpd, columns, weights, newton=True)
    p = probs_of(cpd, {**columns})
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    assert s.log_likelihood == pytest.approx(weights @ np.log(p[np.arange(n), columns["y"]]), rel=1e-9, abs=1e-12)
    assert s.log_likelihood == pytest.approx(weights @ cpd.log_prob(columns), rel=1e-12)
    k, h = len(cpd.intercept) - 1, 1e-5
    for j in range(s.gradient.shape[1]):
        ends = [family.step(_nudged(cpd, k, j, d), columns, weights) for d in (h, -h)]
        near = 1e-8 * (1 + weights.sum())
        assert (ends[0].log_likelihood - ends[1].log_likelihood) / (2 * h) == pytest.approx(s.gradient[k, j], abs=near)
        difference = (ends[1].gradient - ends[0].gradient).reshape(-1) / (2 * h)
        np.testing.assert_allclose(difference, s.hessian[k * s.gradient.shape[1] + j], atol=near)


def _nudged(cpd: RegressionCpd, k: int, j: int, by: float) -> RegressionCpd:
    d = np.zeros((len(cpd.intercept), 1 + len(cpd.terms)))
    d[k, j] = by
    return _shifted(cpd, d)


def _shifted(cpd: RegressionCpd, d: Any) -> RegressionCpd:
    """Parameters moved in centred columns: a slope turns about its centre."""
    intercept = cpd.intercept + d[:, 0] - d[:, 1:] @ cpd.centre
    return RegressionCpd(cpd.child, cpd.parent_variables, cpd.family, intercept, cpd.coefficients + d[:, 1:], centre=cpd.centre)


def test_advance_climbs_to_the_same_place_as_newton():
    table = rows()
    data = scan({n: table[n] for n in ("x", "z", "three")})
    y, parents = data.schema["three"], [data.schema["x"], data.schema["z"]]
    cpd = Logistic().start(y, parents)
    for _ in range(60):
        cpd = cpd.family.advance(cpd, data.fold(lambda b, c=cpd: c.family.step(c, b.columns, b.weight)))
    np.testing.assert_allclose(cpd.coefficients, fitted(y, parents, data).coefficients, atol=1e-7)


def test_sure_rows_have_finite_logs():
    """Log-odds of ±800: exp would overflow, and 1 − p would be 0."""
    cpd = logistic_cpd(Finite("y", ["a", "b"]), (Real("x"),), [0.0], [[1.0]])
    columns = {"x": np.array([800.0, 800.0, -800.0]), "y": np.array([0, 1, 1])}
    np.testing.assert_allclose(cpd.log_prob(columns), [-800.0, 0.0, -800.0])
    s = cpd.family.step(cpd, {"x": np.array([40.0]), "y": np.array([1])}, None, newton=True)
    assert s.gradient[0, 0] == pytest.approx(np.exp(-40.0))
    assert s.hessian[0, 0] == pytest.approx(np.exp(-40.0))


def test_draws_have_the_probabilities():
    x, z = Real("x"), Finite("z", ["u", "v"])
    cpd = logistic_cpd(Finite("y", ["a", "b", "c"]), (x, z), [0.3, -0.5], [[1.0, 0.5], [-1.0, 0.2]])
    columns = {"x": np.full(100_000, 0.7), "z": np.ones(100_000, dtype=np.int8)}
    drawn = cpd.draw(columns, np.random.default_rng(0), 100_000)
    np.testing.assert_allclose(np.bincount(drawn) / 100_000, probs_of(cpd, columns)[0], atol=0.006)
    assert (
        logistic_cpd(Finite("y", ["a", "b"]), (), [50.0], np.zeros((1, 0))).draw({}, np.random.default_rng(0), 3).tolist()
        == [1] * 3
    )


def test_what_a_regression_shows():
    x, z = Real("x"), Finite("z", ["u", "v"])
    cpd = logistic_cpd(Finite("y", ["a", "b", "c"]), (z, x), [0.5, -1.0], [[2.0, -1.0], [0.0, 1.0]])
    assert cpd.terms == ("z=v", "x")
    assert (cpd.parents, cpd.real_parents, cpd.n_parameters) == (("z", "x"), ("x",), 6)
    assert cpd.unsupported.tolist() == [False, False]
    assert cpd.seen is cpd.imagined is None
    assert list(cpd.to_frame().columns) == ["y", "intercept", "z=v", "x"]
    assert repr(cpd).startswith("p(y | z, x), logistic, against y=a\n")
    assert "<table>" in cpd._repr_html_()
    copy = pickle.loads(pickle.dumps(cpd))
    assert np.array_equal(copy.coefficients, cpd.coefficients)
    with pytest.raises(ValueError, match="read-only"):
        cpd.coefficients[0, 0] = 1.0


def test_other_views_of_a_regression():
    x, t, z = Real("x"), Real("t"), Finite("z", ["u", "v", "w"])
    cpd = RegressionCpd(
        Finite("y", ["a", "b", "c"]), (x, z, t), Logistic(), [0.5, -1.0], [[2.0, -1.0, 3.0, 0.5], [0.0, 1.0, 0.2, -0.7]]
    )
    rows = {"x": np.array([0.3, 1.0]), "z": np.array([2, 0]), "t": np.array([4.0, 4.0])}
    turned = cpd.reorder(["t", "x", "z"])
    assert turned.terms == ("t", "x", "z=v", "z=w")
    np.testing.assert_allclose(probs_of(turned, rows), probs_of(cpd, rows), rtol=1e-12)
    np.testing.assert_allclose(probs_of(cpd.without({"t": 4.0}), rows), probs_of(cpd, rows), rtol=1e-12)
    np.testing.assert_allclose(cpd.without({"t": 4.0, "x": 0.3}).table().probs[2], probs_of(cpd, rows)[0], rtol=1e-12)
    assert cpd.effects("z").tolist() == [[0.0, 0.0], [-1.0, 1.0], [3.0, 0.2]]


def line(seed: int, n: int = 300) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x, v = rng.normal(size=n), rng.normal(size=n)
    return {"x": x, "v": v, "z": STATES[rng.integers(0, 3, n)], "y": STATES[(rng.random(n) < 1 / (1 + np.exp(-x))).astype(int)]}


@pytest.mark.parametrize(
    ("change", "parents", "message"),
    [
        (lambda d: {"u": 3 * d["x"] - d["v"]}, "x v u", "the column 'u' of its parent 'u' is a linear combination of 'x', 'v'"),
        (lambda d: {"u": 0 * d["x"] + 0.1}, "u", "the column 'u' of its parent 'u' is constant"),
        (lambda d: {"u": 0 * d["x"] + 1e9 + 0.1}, "x u", "'u' is a linear combination of 'x' or constant"),
        (lambda d: {"y": STATES[(d["x"] > 0.2).astype(int)]}, "x", "'x' separates its values"),
        (lambda d: {"y": STATES[(d["x"] + d["v"] > 0.2).astype(int)]}, "x v", "'x', 'v' together separate its values"),
        (lambda d: {"y": np.where(d["z"] == "c", "b", d["y"])}, "x z", "'z=c' separates its values"),
        (lambda d: {"y": np.where(d["x"] > 1, "c", d["y"])}, "x v", "'x' separates its values"),
        (lambda d: {"x": d["x"] * 1e200}, "x", "beyond the largest double"),
    ],
)
def test_estimates_that_do_not_exist(change, parents, message):
    table = line(3)
    with pytest.raises(FitError, match=message):
        fit(table | change(table), "y", parents)


def test_ridge_lets_them_exist():
    table = line(3)
    apart = fit(table | {"y": STATES[(table["x"] > 0.2).astype(int)]}, "y", "x", ridge=1.0)
    assert 0 < apart.coefficients[0, 0] < 50
    twice = fit(table | {"u": 2 * table["x"]}, "y", "x u", ridge=1.0)
    assert twice.coefficients[0, 1] == pytest.approx(2 * twice.coefficients[0, 0])


def test_rare_states_are_not_taken_for_separation():
    """Log-odds of −27.6 from 10¹² rows, and a state with ten rows among 10¹⁰."""
    rare = fit({"x": [0.0, 1, 0, 1], "y": list("aabb"), "w": [1e12, 1e12, 1, 3]}, "y", "x", weights="w")
    assert [rare.intercept[0], rare.coefficients[0, 0]] == pytest.approx([np.log(1e-12), np.log(3)], abs=1e-6)
    few = fit({"z": list("abab"), "y": list("aabb"), "w": [1e10, 3, 1e10, 7]}, "y", "z", weights="w")
    assert few.coefficients[0, 0] == pytest.approx(np.log(7 / 3), abs=1e-8)


def test_states_without_rows():
    data = scan(line(1), variables={"y": Finite("y", ["a", "b", "c"]), "z": Finite("z", ["a", "b", "c", "d"])})
    with pytest.raises(FitError, match="no row has y=c"):
        fitted(data.schema["y"], [data.schema["x"]], data)
    data = scan(line(1), variables={"z": Finite("z", ["a", "b", "c", "d"])})
    with pytest.raises(FitError, match="no row has z=d"):
        fitted(data.schema["y"], [data.schema["z"]], data)


def test_missing_cells_are_refused_by_name():
    table = line(1)
    table["x"][5] = np.nan
    with pytest.raises(DataError, match="'x' 1"):
        fit(table, "y", "x")
    cpd = logistic_cpd(Finite("y", ["a", "b"]), (Real("x"), Finite("z", ["a", "b"])), [0.0], [[1.0, 1.0]])
    ones = np.ones(2, dtype=np.uint8)
    with pytest.raises(DataError, match="'x' has missing cells"):
        cpd.family.step(cpd, {"y": ones, "x": np.array([1.0, np.nan]), "z": ones}, None)
    with pytest.raises(DataError, match="'z' has missing cells"):
        cpd.log_prob({"y": ones, "x": np.ones(2), "z": np.array([0, 255], dtype=np.uint8)})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Logistic(-1.0), FitError, "ridge"),
        (lambda: Logistic().start(Real("y"), []), FitError, "'y' is Real"),
        (lambda: Logistic().start(Finite("y", ["a"]), []), FitError, "two states"),
        (lambda: Logistic().start(Finite("y", range(100)), [Finite("z", range(100))]), TooLarge, "9,900 parameters"),
        (
            lambda: logistic_cpd(Finite("y", ["a", "b"]), (Real("x"),), [0.0], [[1.0, 2.0]]),
            ModelError,
            "coefficients of 'y'",
        ),
        (
            lambda: logistic_cpd(Finite("y", ["a", "b"]), (Real("x"),), [np.nan], [[1.0]]),
            ModelError,
            "finite numbers",
        ),
        (lambda: Logistic().start(Finite("y", ["a", "b"]), []).interval(), FitError, "no standard errors and no intervals"),
        (lambda: Logistic().start(Finite("y", ["a", "b"]), []).log_likelihood(None), FitError, "needs the rows"),
        (lambda: fit(line(1), "y", "x v", max_iter=1), FitError, "did not converge in 1 iterations"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message) as refused:
        call()
    assert isinstance(refused.value, SufficeError)


def network(graph: str = "x -> three; z -> three; v", **options: Any) -> sf.BayesNet:
    """`three` as a regression in a network, the other nodes as usual."""
    return sf.fit(graph, rows(), families={"three": Logistic(**options)})


@pytest.fixture(scope="module")
def finite() -> tuple[sf.BayesNet, sf.BayesNet]:
    """A regression on finite parents alone, and the same network with its table written down."""
    bn = network("z -> three; two -> three; z -> two")
    cpds = {n: bn["three"].table() if n == "three" else bn[n] for n in bn}
    return bn, sf.BayesNet(bn.dag, cpds, list(bn.variables.values()))


@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_fit_takes_a_regression_among_other_nodes(ridge):
    bn, direct = network(ridge=ridge), fit(rows(), "three", "x z", ridge=ridge)
    cpd = bn["three"]
    assert isinstance(cpd, RegressionCpd)
    assert (cpd.family, bn.n_parameters) == (Logistic(ridge), 2 * 4 + 2 + 2 + 2)
    np.testing.assert_array_equal(cpd.reorder(["x", "z"]).coefficients, direct.coefficients)
    plain = sf.fit("x; z; v", rows())
    assert all(bn[n].to_frame().equals(plain[n].to_frame()) for n in plain)


def test_log_prob_and_likelihood_of_a_network():
    bn, table = network(), rows()
    each = bn.log_prob(table)
    columns = {"x": table["x"], "z": np.searchsorted(STATES, table["z"]), "three": np.searchsorted(STATES, table["three"])}
    expected = bn["three"].log_prob(columns) + sf.fit("x; z; v", table).log_prob(table)
    np.testing.assert_allclose(each, expected, rtol=1e-12)
    assert bn.log_likelihood(table) == pytest.approx(each.sum(), rel=1e-12)
    assert bn.bic(table) == pytest.approx(each.sum() - 0.5 * bn.n_parameters * np.log(400), rel=1e-12)
    assert bn.log_likelihood() == pytest.approx(each.sum(), rel=1e-12)


def test_samples_of_a_network_give_it_back():
    """40,000 rows: the coefficients within four standard errors, which are at most 0.034 (of x: 0.0072)."""
    bn = network()
    drawn = bn.sample(40_000, seed=1)
    assert drawn.equals(bn.sample(40_000, seed=1))
    again = sf.fit(bn, drawn, families={"three": Logistic()})["three"]
    np.testing.assert_allclose(again.coefficients, bn["three"].coefficients, atol=0.136)
    j = again.terms.index("x")
    np.testing.assert_allclose(again.coefficients[:, j], bn["three"].coefficients[:, j], atol=0.029)


@pytest.mark.parametrize("graph", ["x -> three; z -> three; v", "z -> three", "three"])
def test_json_gives_back_the_same_network(graph, tmp_path):
    bn = network(graph, ridge=0.5)
    sf.write(bn, tmp_path / "bn.json")
    again = sf.read(tmp_path / "bn.json")
    assert again == bn
    assert again["three"].family == Logistic(0.5)
    # the centre is not kept: it changes no probability but for rounding
    np.testing.assert_allclose(again.log_prob(rows()), bn.log_prob(rows()), rtol=1e-12)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda bn: bn.query("three"), r"'three', a logistic regression on the number 'x', which is not observed"),
        (lambda bn: bn.query("z", {"three": "a"}), r"'three', a logistic regression on the number 'x', which is not observed"),
        (lambda bn: bn.entropy(), "'three' is a logistic regression, whose expectations have no formula"),
        (
            lambda bn: sf.information.kl(bn, network(ridge=1.0)),
            "'three' is a logistic regression, whose expectations have no formula",
        ),
    ],
)
def test_what_needs_an_integral_over_a_real_parent_is_refused(ask, message):
    with pytest.raises(ModelError, match=message) as no:
        ask(network())
    assert ". " not in str(no.value)


def test_inference_with_a_real_parent_that_is_observed_or_does_not_matter():
    bn = network()
    probs = probs_of(bn["three"], {"x": np.full(3, 1.0), "z": np.arange(3)})
    np.testing.assert_allclose(bn.query("three", {"x": 1.0}).probs, bn["z"].probs @ probs, rtol=1e-12)
    assert bn.query("x", {"z": "a"}).mean == pytest.approx(float(bn["x"].intercept))
    assert sf.information.kl(bn, bn) == 0.0
    table = rows()
    one = {n: c[:1] for n, c in table.items()}
    whole = [bn.log_prob(one | {"z": [z]})[0] for z in "abc"]
    np.testing.assert_allclose(bn.log_prob(table | {"z": [None, *table["z"][1:]]})[0], np.logaddexp.reduce(whole), rtol=1e-12)


def test_inference_with_finite_parents_is_that_of_the_table(finite):
    bn, table = finite
    for targets, known in (("three", {}), ("three", {"z": "b"}), ("z", {"three": "a"}), (["z", "two"], {"three": "c"})):
        np.testing.assert_allclose(bn.query(targets, known).probs, table.query(targets, known).probs, rtol=1e-12)
    holes = {"z": ["a", None, "c"], "two": ["a", "b", None], "three": ["c", "a", "b"]}
    np.testing.assert_allclose(bn.log_prob(holes), table.log_prob(holes), rtol=1e-12)


def test_do_on_parents_of_a_regression():
    """With its numbers set it is a table; with a state set it is what it was."""
    bn = network("x -> three; v -> three; z -> three; z -> x")
    cpd = bn["three"]
    one = bn.do({"x": 9.0})["three"]
    assert isinstance(one, RegressionCpd)
    assert set(one.parents) == {"v", "z"}
    at = {"x": np.full(3, 9.0), "v": np.full(3, 0.5), "z": np.arange(3)}
    both = bn.do({"x": 9.0, "v": 0.5})
    np.testing.assert_allclose(both["three"].probs, probs_of(cpd, at), rtol=1e-12)
    np.testing.assert_allclose(both.query("three").probs, bn["z"].probs @ probs_of(cpd, at), rtol=1e-12)
    set_state = bn.do({"z": "b"})
    np.testing.assert_array_equal(set_state["three"].coefficients, cpd.coefficients)
    assert set(set_state.sample(20, seed=0)["z"].to_pylist()) == {"b"}


@pytest.mark.parametrize(
    ("graph", "families", "message"),
    [
        (
            "x -> two",
            {"two": Logistic},
            "the family of 'two' is an object such as Logistic\\(\\), or a distribution such as .*, not <class",
        ),
        ("x -> two", {"two": "logistic"}, "the family of 'two' is an object such as Logistic\\(\\), or .*, not 'logistic'"),
        ("x -> two", {"tow": Logistic()}, "'tow', which is not in the graph; did you mean 'two'"),
        ("x -> two", {"three": Logistic()}, "'three', which is not in the graph"),
        ("x -> v", {"v": Logistic()}, "'v' is a number with 400 different values, and Logistic is a family of states"),
        ("z -> two", {"two": LinearGaussian()}, "'two' cannot have the family LinearGaussian"),
        ("x -> two", None, "the finite node 'two' has the real parent 'x', .*families={'two': Logistic\\(\\)}"),
    ],
)
def test_families_that_do_not_fit_are_refused(graph, families, message):
    with pytest.raises(SufficeError, match=message) as refused:
        sf.fit(graph, rows(), families=families)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("of", "expected"),
    [
        (lambda bn, table: bn.entropy(), lambda table: table.entropy()),
        (lambda bn, table: sf.information.kl(bn, table), lambda table: 0.0),
        (lambda bn, table: sf.information.kl(table, bn), lambda table: 0.0),
    ],
)
def test_entropy_and_divergence_with_finite_parents(of, expected, finite):
    bn, table = finite
    assert of(bn, table) == pytest.approx(expected(table), abs=1e-12)
