"""Hidden numbers in EM: against direct formulas, difference quotients, and what no data can tell."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

import suffice as sf
from suffice.errors import DataError, FitError, ModelError, SufficeNote
from suffice.learning.incomplete.problem import ParameterProblem
from suffice.learning.incomplete.task import task_of

ABILITY = "ability -> a; ability -> b; ability -> c; ability -> d"


def drawn(n: int = 200, seed: int = 0, missing: float = 0.0, loadings: Any = (1.0, 0.8, -0.5, 0.6), k: int = 1) -> dict[str, Any]:
    """Columns a, b, … that share hidden numbers."""
    rng = np.random.default_rng(seed)
    L = np.asarray(loadings, float).reshape(-1, k)
    x = (
        rng.standard_normal((n, k)) @ L.T
        + rng.standard_normal((n, len(L))) * rng.uniform(0.4, 1.0, len(L))
        + rng.normal(0, 5, len(L))
    )
    x[rng.random(x.shape) < missing] = np.nan
    return {chr(97 + j): x[:, j] for j in range(len(L))}


def all_to_all(k: int, columns: Any) -> str:
    return "; ".join(f"f{j} -> {c}" for j in range(k) for c in columns)


def joint(bn: sf.BayesNet, columns: Any) -> tuple[Any, Any]:
    """Mean and covariance of some numbers of a Gaussian network, from its lines."""
    names = list(bn.dag.topological_order)
    B, a, v = np.zeros((len(names),) * 2), np.zeros(len(names)), np.zeros(len(names))
    for i, n in enumerate(names):
        cpd: Any = bn[n]
        a[i], v[i] = cpd.intercept, cpd.variance
        B[i, [names.index(p) for p in cpd.real_parents]] = cpd.coefficients
    A = np.linalg.inv(np.eye(len(names)) - B)
    at = [names.index(c) for c in columns]
    return (A @ a)[at], ((A * v) @ A.T)[np.ix_(at, at)]


def direct(bn: sf.BayesNet, rows: Mapping[str, Any]) -> float:
    """Σ ln p of the cells that are there, by the joint normal of the columns."""
    columns = list(rows)
    mean, cov = joint(bn, columns)
    total, x = 0.0, np.array([rows[c] for c in columns]).T
    for row in x:
        there = ~np.isnan(row)
        if there.any():
            total += float(multivariate_normal.logpdf(row[there], mean[there], cov[np.ix_(there, there)]))
    return total


def quiet(*args: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeNote)
        return sf.em(*args, **options)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), missing=st.sampled_from([0.0, 0.2]), k=st.integers(1, 2))
def test_em_never_falls_and_its_likelihood_is_that_of_the_joint_normal(seed: int, missing: float, k: int) -> None:
    rng = np.random.default_rng(seed)
    rows = drawn(40, seed, missing, rng.standard_normal((5, k)), k)
    hidden = [sf.Real(f"f{j}") for j in range(k)]
    run = quiet(all_to_all(k, rows), rows, hidden=hidden, starts=1, seed=seed, max_iter=30)
    objectives = [i.objective for i in run.trace]
    assert all(b >= a - 1e-8 * (1 + abs(a)) for a, b in pairwise(objectives))
    assert run.log_likelihood == pytest.approx(direct(run.model, rows), rel=1e-9)
    for h in hidden:
        assert (float(run.model[h.name].intercept), float(run.model[h.name].variance)) == (0.0, 1.0)


@pytest.mark.parametrize("missing", [0.0, 0.25])
def test_the_e_step_is_the_conditional_normal_of_each_row(missing: float) -> None:
    rows = drawn(30, 3, missing)
    problem = ParameterProblem.of(task_of(ABILITY, rows, hidden=[sf.Real("ability")]))
    theta = problem.random(np.random.default_rng(1))
    statistics = problem.statistics(problem.expect(theta).statistic)
    bn = problem.network(theta, problem.expect(theta).statistic, "")
    names = ["ability", *rows]
    mean, cov = joint(bn, names)
    for child in rows:
        at = [0, names.index(child)]
        first, second = np.zeros(2), np.zeros((2, 2))
        for row in np.array([rows[c] for c in rows]).T:
            full = np.concatenate([[np.nan], row])
            o, m = ~np.isnan(full), np.isnan(full)
            gain = cov[np.ix_(m, o)] @ np.linalg.inv(cov[np.ix_(o, o)])
            full[m] = mean[m] + gain @ (full[o] - mean[o])
            rest = np.zeros_like(cov)
            rest[np.ix_(m, m)] = cov[np.ix_(m, m)] - gain @ cov[np.ix_(o, m)]
            first += full[at]
            second += np.outer(full, full)[np.ix_(at, at)] + rest[np.ix_(at, at)]
        found = statistics.moments((), ["ability", child])
        N = 30.0
        centred = second - np.outer(first, first) / N
        assert found.mean[0] == pytest.approx(first / N, rel=1e-8, abs=1e-8)
        assert found.scatter[0] == pytest.approx(centred, rel=1e-6, abs=1e-6)


def test_at_convergence_difference_quotients_are_zero() -> None:
    rows = drawn(150, 5, 0.1)
    run = sf.em(ABILITY, rows, hidden=[sf.Real("ability")], starts=2, tol=1e-12, max_iter=5000, method=sf.methods.Squarem())
    for child in rows:
        for part in ("intercept", "coefficients", "variance"):
            values = []
            for step in (-1e-4, 1e-4):
                cpd: Any = run.model[child]
                moved = type(cpd)(
                    cpd.child,
                    cpd.parent_variables,
                    **{p: getattr(cpd, p) + (step if p == part else 0.0) for p in ("intercept", "coefficients", "variance")},
                )
                cpds = {n: moved if n == child else run.model[n] for n in run.model}
                values.append(direct(sf.BayesNet.of(run.model.dag, run.model.variables, cpds), rows))
            assert abs(values[1] - values[0]) / 2e-4 < 2e-3, (child, part)


def test_mean_variance_and_sign_are_fixed_and_said() -> None:
    rows = drawn(200, 1, loadings=(-1.0, 0.8, 0.5, -0.6))
    run = sf.em(ABILITY, rows, hidden=[sf.Real("ability")], starts=3)
    assert float(run.model["a"].coefficients[0]) > 0
    assert "'ability' has mean 0, variance 1 and a first loading above 0" in repr(run)
    assert run.model.n_parameters == 12
    assert run.model.hidden == {"ability"}
    assert "labels" in repr(run)


def test_two_factors_are_told_apart_by_a_rotation_only() -> None:
    rng = np.random.default_rng(2)
    rows = drawn(300, 2, 0.0, rng.standard_normal((6, 2)), 2)
    run = sf.em(
        all_to_all(2, rows), rows, hidden=[sf.Real("f0"), sf.Real("f1")], starts=2, tol=1e-10, method=sf.methods.Squarem()
    )
    assert "only a rotation tells 'f0', 'f1' apart" in run.model.fit_info
    assert run.model.n_parameters == 6 * 4 - 1
    L = np.array([run.model[c].coefficients for c in rows])
    v = np.array([float(run.model[c].variance) for c in rows])
    turned = L.T @ (L / v[:, None])
    assert abs(turned[0, 1]) < 1e-8 * turned[0, 0]
    assert turned[0, 0] >= turned[1, 1]
    with pytest.warns(SufficeNote, match="does not identify"):
        information = run.information()
    assert np.isinf(information.standard_errors["a"]["coefficients"]).all()
    assert np.isfinite(information.standard_errors["a"]["variance"]).all()


def standard_errors_of_latent_regression(bn: sf.BayesNet, rows: Any) -> Any:
    """By second differences of ln L in means, loadings, noise, and the correlation of the two hidden numbers."""
    x = np.array(list(rows.values())).T
    N, mean, S = len(x), x.mean(axis=0), np.cov(x.T, bias=True)
    points = [(float(bn[c].intercept), float(bn[c].coefficients[0]), float(bn[c].variance)) for c in rows]
    theta = np.array([number for point in points for number in point] + [float(bn["g"].coefficients[0])])

    def log_likelihood(t: Any) -> float:
        m, loading, noise = t[:-1].reshape(-1, 3).T
        L = np.zeros((6, 2))
        L[:3, 0], L[3:, 1] = loading[:3], loading[3:]
        cov = L @ [[1.0, t[-1]], [t[-1], 1.0]] @ L.T + np.diag(noise)
        off = mean - m
        return float(-0.5 * N * (np.linalg.slogdet(cov)[1] + np.trace(np.linalg.solve(cov, S + np.outer(off, off)))))

    h, n = 1e-4, len(theta)
    H = np.zeros((n, n))
    for i, j in zip(*np.tril_indices(n), strict=True):
        e, f = h * np.eye(n)[i], h * np.eye(n)[j]
        four = [log_likelihood(theta + s * e + u * f) * s * u for s in (-1, 1) for u in (-1, 1)]
        H[i, j] = H[j, i] = sum(four) / (4 * h * h)
    return np.sqrt(np.diag(np.linalg.inv(-H)))


def test_latent_regression_is_a_structural_equation_model() -> None:
    """Two hidden numbers with three columns each, one depending on the other: the slope is their correlation."""
    rng = np.random.default_rng(4)
    n = 3000
    f = rng.standard_normal(n)
    g = 0.6 * f + 0.8 * rng.standard_normal(n)
    rows = {f"x{i}": w * f + 0.5 * rng.standard_normal(n) for i, w in enumerate((1.0, 0.7, 0.9))}
    rows |= {f"y{i}": w * g + 0.5 * rng.standard_normal(n) + 3.0 for i, w in enumerate((0.8, 1.0, -0.6))}
    dag = "; ".join(["f -> g", *(f"f -> x{i}" for i in range(3)), *(f"g -> y{i}" for i in range(3))])
    run = sf.em(dag, rows, hidden=[sf.Real("f"), sf.Real("g")], starts=2, tol=1e-9, method=sf.methods.Squarem())
    mean, cov = joint(run.model, ["f", "g"])
    assert mean == pytest.approx([0.0, 0.0], abs=1e-6)
    assert np.diag(cov) == pytest.approx([1.0, 1.0], abs=1e-5)
    assert float(run.model["g"].coefficients[0]) == pytest.approx(0.6, abs=0.06)
    assert run.log_likelihood == pytest.approx(direct(run.model, rows), rel=1e-9)
    assert run.model.n_parameters == 6 * 3 + 1
    information = run.information()
    assert information.n_parameters == 19
    expected = standard_errors_of_latent_regression(run.model, rows)
    found = information.standard_errors
    errors = [found[c][part] for c in rows for part in ("intercept", "coefficients", "variance")] + [found["g"]["coefficients"]]
    assert np.array([float(np.squeeze(e)) for e in errors]) == pytest.approx(expected, rel=2e-3)
    assert float(np.squeeze(found["g"]["intercept"])) == pytest.approx(0.0, abs=1e-4)
    b = float(run.model["g"].coefficients[0])
    assert float(np.squeeze(found["g"]["variance"])) == pytest.approx(2 * b * expected[-1], rel=2e-3)  # v = 1 − b²


def test_mixture_of_factor_analysers() -> None:
    rng = np.random.default_rng(6)
    n = 400
    c = rng.random(n) < 0.4
    f = rng.standard_normal(n)
    L = np.where(c[:, None], [1.0, 1.0, 0.0, 0.5], [0.2, -1.0, 1.0, 0.5])
    x = f[:, None] * L + 0.4 * rng.standard_normal((n, 4)) + np.where(c[:, None], 4.0, -2.0)
    rows = {f"x{i}": x[:, i] for i in range(4)}
    dag = "; ".join(f"f -> x{i}; class -> x{i}" for i in range(4))
    run = quiet(dag, rows, hidden=[sf.Real("f"), sf.Finite("class", ["0", "1"])], starts=2, tol=1e-6, max_iter=300)
    bn = run.model
    log_p = np.zeros((n, 2))
    for s in range(2):
        b = np.array([bn[c].coefficients[s, 0] for c in rows])
        cov = np.outer(b, b) + np.diag([bn[c].variance[s] for c in rows])
        mean = np.array([bn[c].intercept[s] for c in rows])
        log_p[:, s] = np.log(bn["class"].probs[s]) + multivariate_normal.logpdf(x, mean, cov)
    assert run.log_likelihood == pytest.approx(float(np.logaddexp(log_p[:, 0], log_p[:, 1]).sum()), rel=1e-9)
    assert sorted(bn["class"].probs.round(1).tolist()) == [0.4, 0.6]
    assert bn.n_parameters == 1 + 2 * 4 * 3
    assert (bn["x0"].coefficients > 0).all()  # each class has a sign of its own


def test_classes_have_rotations_of_their_own() -> None:
    rng = np.random.default_rng(7)
    n = 300
    c = rng.random(n) < 0.5
    L = rng.standard_normal((2, 2, 6))
    x = np.einsum("nk,nkj->nj", rng.standard_normal((n, 2)), L[c.astype(int)]) + 0.5 * rng.standard_normal((n, 6))
    rows = {**{f"x{i}": x[:, i] for i in range(6)}, "class": np.where(c, "u", "v")}
    dag = "; ".join(f"f -> x{i}; g -> x{i}; class -> x{i}" for i in range(6))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SufficeNote)
        run = sf.em(dag, rows, hidden=[sf.Real("f"), sf.Real("g")], starts=1, max_iter=400, tol=1e-4, method=sf.methods.Squarem())
    assert run.model.n_parameters == 1 + 2 * (6 * 4 - 1)
    for s in range(2):
        loadings = np.array([run.model[f"x{i}"].coefficients[s] for i in range(6)])
        noise = np.array([run.model[f"x{i}"].variance[s] for i in range(6)])
        turned = loadings.T @ (loadings / noise[:, None])
        assert abs(turned[0, 1]) < 1e-8 * turned[0, 0]
        assert (loadings[0] > 0).all()


def test_a_class_above_a_hidden_number() -> None:
    """class → f → columns: f has another mean in each class, and mean 0 and variance 1 over the rows."""
    rng = np.random.default_rng(8)
    c = np.arange(400) % 2
    f = rng.standard_normal(400) * np.where(c, 1.5, 0.5) + 2.0 * c
    rows = {
        **{k: w * f + 0.5 * rng.standard_normal(400) for k, w in zip("abc", (1.0, -0.8, 0.6), strict=True)},
        "class": c.astype(str),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error", SufficeNote)
        run = sf.em(
            "class -> f; f -> a; f -> b; f -> c", rows, hidden=[sf.Real("f")], starts=1, tol=1e-8, method=sf.methods.Squarem()
        )
    cpd: Any = run.model["f"]
    assert cpd.intercept.mean() == pytest.approx(0.0, abs=1e-4)
    assert cpd.variance.mean() + cpd.intercept.var() == pytest.approx(1.0, abs=1e-4)
    assert run.model.n_parameters == 1 + 4 + 9 - 2
    with pytest.raises(FitError, match=r"'f' has parents, and finite variables bear.*resample"):
        run.information()
    both = "class -> f; " + "; ".join(f"f -> {k}; class -> {k}" for k in "abc")
    with pytest.warns(SufficeNote, match="does not identify 2 directions"):
        run = sf.em(both, rows, hidden=[sf.Real("f")], starts=1, max_iter=50, tol=1e-2)
    assert run.model.n_parameters == 1 + 4 + 18 - 4


def test_what_is_not_identified_is_said() -> None:
    rows = drawn(100, 0, loadings=(1.0, 0.8))
    with pytest.warns(SufficeNote, match=r"does not identify 1 direction of the parameters of 'a', 'b'"):
        sf.em("f -> a; f -> b", rows, hidden=[sf.Real("f")], starts=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SufficeNote)
        sf.em(
            "f -> a; f -> b; f -> c",
            drawn(100, 0, loadings=(1.0, 0.8, 0.7)),
            hidden=[sf.Real("f")],
            starts=1,
            method=sf.methods.Squarem(),
        )


def test_a_heywood_case_is_reported() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 3))
    S = np.linalg.inv(np.linalg.cholesky(np.cov(x.T, bias=True)))
    R = np.array([[1.0, 0.8, 0.8], [0.8, 1.0, 0.4], [0.8, 0.4, 1.0]])  # would need a communality of 1.6
    x = (x - x.mean(0)) @ S.T @ np.linalg.cholesky(R).T
    rows = {c: x[:, i] for i, c in enumerate("abc")}
    with pytest.warns(SufficeNote, match=r"variance of 'a' falls to zero.*Heywood"):
        run = sf.em("f -> a; f -> b; f -> c", rows, hidden=[sf.Real("f")], starts=1, method=sf.methods.Squarem(), max_iter=2000)
    assert 0 < float(run.model["a"].variance) < 1e-3
    with pytest.warns(SufficeNote, match=r"noise of 'a' fell to its least value.*Heywood"):
        other = sf.factors(rows, 1)
    assert run.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-2)


def test_refusals() -> None:
    rows = drawn(50)
    with pytest.raises(FitError, match="the hidden number 'f' has no children"):
        sf.em("a -> f; b -> c; c -> d", rows, hidden=[sf.Real("f")])
    with pytest.raises(FitError, match="'s' cannot be the child of the hidden number 'f'"):
        sf.em("f -> a; f -> b; f -> s", {**rows, "s": ["u", "v"] * 25}, hidden=[sf.Real("f")])
    with pytest.raises(DataError, match=r"no column 'f', which .*hidden=\[Finite\('f', \[...\]\)\] or \[Real\('f'\)\]"):
        sf.em("f -> a; f -> b", rows)
    with pytest.raises(FitError, match="which columns the hidden number 'f' explains is not searched for"):
        sf.structural_em(rows, hidden=[sf.Real("f")])
    with pytest.raises(FitError, match="which columns the hidden number 'f' explains is not searched for"):
        sf.learn(rows, hidden=[sf.Real("f")])
    counts = sf.scan({**rows, "n": range(50)}, variables={"n": sf.Count("n")})
    with pytest.raises(FitError, match="'n' cannot be the child of the hidden number 'f'"):
        sf.em("f -> a; f -> b; f -> n", counts, hidden=[sf.Real("f")])


def test_answers_files_and_updates(tmp_path: Any) -> None:
    rows = drawn(120, 7)
    run = sf.em(ABILITY, rows, hidden=[sf.Real("ability")], starts=2, tol=1e-9, method=sf.methods.Squarem())
    bn = run.model
    mean, cov = joint(bn, ["ability", *rows])
    given_row = {c: float(rows[c][0]) for c in rows}
    gain = cov[:1, 1:] @ np.linalg.inv(cov[1:, 1:])
    answer = bn.query("ability", given_row)
    expected = float((gain @ (np.array(list(given_row.values())) - mean[1:]))[0])
    assert answer.mean == pytest.approx(expected, abs=1e-9)
    assert np.asarray(bn.predict(rows, "ability"))[0] == pytest.approx(expected, abs=1e-9)
    assert bn.log_likelihood(rows) == pytest.approx(run.log_likelihood, rel=1e-10)
    assert bn.bic(rows) == pytest.approx(run.log_likelihood - 0.5 * 12 * np.log(120), rel=1e-10)
    torn = {**rows, "b": np.where(np.arange(120) < 5, np.nan, rows["b"])}
    filled = bn.impute(torn)
    assert not np.isnan(np.asarray(filled["b"])).any()
    assert set(bn.sample(3, seed=0).column_names) == {"ability", *rows}
    sf.write(bn, tmp_path / "m.json")
    again = sf.read(tmp_path / "m.json")
    assert again == bn
    assert again.hidden == {"ability"}
    assert again.n_parameters == 12
    with pytest.raises(ModelError, match="fitted from incomplete data"):
        bn.update(rows)
    more = sf.em(ABILITY, rows, start=bn, tol=1e-6)
    assert more.log_likelihood >= run.log_likelihood - 1e-6
    assert more.n_iterations <= 3
    assert pickle.loads(pickle.dumps(run)).model == bn


def test_priors_fixed_entries_and_ties() -> None:
    rows = drawn(100, 8)
    prior = sf.em(ABILITY, rows, hidden=[sf.Real("ability")], prior=sf.NormalInverseGamma(), starts=2, max_iter=2000)
    assert (float(prior.model["ability"].intercept), float(prior.model["ability"].variance)) == (0.0, 1.0)
    assert all(b.objective >= a.objective - 1e-7 for a, b in pairwise(prior.trace))
    assert float(prior.model["a"].coefficients[0]) > 0

    # a loading that is fixed brings its own scale: ability has the variance that it gives
    plain = sf.em(ABILITY, rows, hidden=[sf.Real("ability")], starts=2, tol=1e-10, method=sf.methods.Squarem())
    start = plain.model
    cpds = {n: start[n] for n in start}
    one: Any = start["a"]
    cpds["a"] = type(one)(one.child, one.parent_variables, one.intercept, np.ones(1), one.variance)
    marked = sf.BayesNet.of(start.dag, start.variables, cpds)
    run = sf.em(ABILITY, rows, start=marked, fixed={"a": ["ability"]}, tol=1e-10, max_iter=5000, method=sf.methods.Squarem())
    assert float(run.model["a"].coefficients[0]) == 1.0
    assert run.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-4)
    assert np.sqrt(float(run.model["ability"].variance)) == pytest.approx(float(one.coefficients[0]), rel=1e-3)

    tied = sf.em(ABILITY, rows, hidden=[sf.Real("ability")], shared=[["a", "b"]], starts=1, method=sf.methods.Squarem())
    assert tied.converged
    assert tied.model["a"].coefficients == pytest.approx(tied.model["b"].coefficients)
    assert tied.log_likelihood < plain.log_likelihood
    assert tied.model.n_parameters == 9


def test_time_limit_gradient_and_batches() -> None:
    rows = drawn(100, 8, 0.1)
    with pytest.raises(FitError, match="cannot be used with hidden numbers"):
        sf.em(ABILITY, rows, hidden=[sf.Real("ability")], starts=1, method=sf.methods.Incremental(2))
    run = quiet(ABILITY, rows, hidden=[sf.Real("ability")], starts=1, tol=0, max_iter=10**6, time_limit=0.5)
    assert not run.converged
    by_gradient = sf.gradient(ABILITY, drawn(100, 8), hidden=[sf.Real("ability")], starts=1)
    plain = sf.em(ABILITY, drawn(100, 8), hidden=[sf.Real("ability")], starts=1, tol=1e-10, method=sf.methods.Squarem())
    assert by_gradient.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-3)
    assert float(by_gradient.model["a"].coefficients[0]) == pytest.approx(float(plain.model["a"].coefficients[0]), abs=1e-2)
