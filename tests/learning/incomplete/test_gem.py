"""Generalised EM: networks with a hidden class and logistic regressions, whose M-step is one step uphill.

    x → class, x → y ← class, class → u, class → v        x a number, class hidden: a mixture of experts with a gate

The oracle sums over the class, row by row, and knows nothing of the package but the sums and steps of `Logistic`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from suffice.basis.variables import Finite, Real
from suffice.engines.engine import add_up
from suffice.engines.scan import scan
from suffice.errors import SufficeNote
from suffice.families.by_hand import Gaussian
from suffice.families.categorical import Table
from suffice.families.regressions.logistic import Logistic
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.graphs import Dag
from suffice.models.networks import BayesNet

CLASS, X = Finite("class", ["low", "high"]), Real("x")
Y, U, V = Finite("y", ["a", "b", "c"]), Finite("u", ["p", "q", "r"]), Finite("v", ["no", "yes"])
DAG = "x -> class; class -> y; x -> y; class -> u; class -> v"
TRUTH: dict[str, Any] = {
    "class": RegressionCpd(CLASS, (X,), Logistic(), [-0.5], [[0.8]]),
    "y": RegressionCpd(Y, (CLASS, X), Logistic(), [0.2, -0.4], [[1.5, 0.7], [-1.5, -0.5]]),
    "u": Table(U, (CLASS,), [[0.8, 0.15, 0.05], [0.1, 0.3, 0.6]]),
    "v": Table(V, (CLASS,), [[0.75, 0.25], [0.2, 0.8]]),
}
MISSING = -1
Columns = dict[str, Any]


def drawn(n: int, seed: int, missing: float = 0.0) -> Columns:
    """Rows as codes and numbers, without the class; some of the finite cells missing."""
    rng = np.random.default_rng(seed)
    columns: Columns = {"x": rng.normal(1.0, 2.0, n)}
    for name in ("class", "y", "u", "v"):
        columns[name] = TRUTH[name].draw(columns, rng, n)
    for name in ("y", "u", "v"):
        columns[name] = np.where(rng.random(n) < missing, MISSING, columns[name])
    del columns["class"]
    return columns


def as_table(columns: Columns) -> dict[str, list[Any]]:
    states = {v.name: v.states for v in (Y, U, V)}
    return {n: c.tolist() if n == "x" else [None if k < 0 else states[n][k] for k in c] for n, c in columns.items()}


def beliefs(cpds: dict[str, Any], columns: Columns) -> tuple[Any, Any]:
    """p(class | row) and ln p(y, u, v | x), each over rows; a missing leaf says nothing."""
    n = len(columns["x"])
    log_joint = np.zeros((n, CLASS.n_states))
    for z in range(CLASS.n_states):
        completed = {**columns, "class": np.full(n, z)}
        for name, cpd in cpds.items():
            here = completed[name] != MISSING
            log_joint[here, z] += cpd.log_prob({k: c[here] for k, c in completed.items()})
    top = log_joint.max(axis=1, keepdims=True)
    total = top[:, 0] + np.log(np.exp(log_joint - top).sum(axis=1))
    return np.exp(log_joint - total[:, None]), total


def improved(cpds: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """One iteration of generalised EM: expected sums, then one step of each node."""
    r, _ = beliefs(cpds, columns)
    result: dict[str, Any] = {}
    for name, cpd in cpds.items():
        if isinstance(cpd, RegressionCpd):
            sums = [_sums(cpd, columns, z, r[:, z]) for z in range(CLASS.n_states)]
            result[name] = cpd.family.advance(cpd, add_up(*sums))
        else:
            counts = [np.bincount(columns[name][s := columns[name] >= 0], r[s, z], cpd.child.n_states) for z in (0, 1)]
            result[name] = Table(cpd.child, (CLASS,), counts / np.sum(counts, axis=1, keepdims=True))
    return result


def _sums(cpd: RegressionCpd, columns: Columns, z: int, weights: Any) -> Any:
    completed = {**columns, "class": np.full(len(weights), z)}
    here = completed[cpd.child.name] != MISSING
    return cpd.family.step(cpd, {k: c[here] for k, c in completed.items()}, weights[here])


def begun(seed: int, ridge: float = 0.0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "class": Logistic(ridge).random(CLASS, [X], rng),
        "y": Logistic(ridge).random(Y, [CLASS, X], rng),
        "u": Table(U, (CLASS,), rng.dirichlet(np.ones(3), 2)),
        "v": Table(V, (CLASS,), rng.dirichlet(np.ones(2), 2)),
    }


def parameters(cpds: Any) -> Any:
    """All numbers in a row, the class with the higher rate of v=yes last."""
    gate, y, u, v = (cpds[n] for n in ("class", "y", "u", "v"))
    j = y.terms.index("class=high")
    effects, slopes = y.coefficients[:, j], y.coefficients[:, 1 - j]
    numbers = [gate.intercept, gate.coefficients[:, 0], y.intercept, effects, slopes, u.probs, v.probs]
    if v.probs[0, 1] > v.probs[1, 1]:
        numbers = [
            -gate.intercept,
            -gate.coefficients[:, 0],
            y.intercept + effects,
            -effects,
            slopes,
            u.probs[::-1],
            v.probs[::-1],
        ]
    return np.concatenate([np.ravel(a) for a in numbers])


def never_falls(objective: list[float]) -> bool:
    return all(b >= a - 1e-10 * (1 + abs(a)) for a, b in pairwise(objective))


@pytest.mark.parametrize("ridge", [0.0, 2.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_steps_of_the_regressions_never_lower_the_objective(seed, ridge):
    columns, cpds, objective = drawn(500, seed, missing=0.2), begun(seed, ridge), []
    for _ in range(40):
        objective.append(beliefs(cpds, columns)[1].sum() + sum(Logistic(ridge).log_prior(cpds[n]) for n in ("class", "y")))
        cpds = improved(cpds, columns)
    assert never_falls(objective)
    assert objective[-1] > objective[0] + 10


def test_a_state_without_weight_stays():
    """A class that no row believes in has sums of zero, and parameters that do not move."""
    cpd = begun(0)["y"]
    sums = cpd.family.step(cpd, drawn(50, 0) | {"class": np.zeros(50, dtype=int)}, np.zeros(50))
    assert np.array_equal(cpd.family.advance(cpd, sums).coefficients, cpd.coefficients)


def test_em_finds_the_truth_and_agrees_with_the_oracle():
    """20,000 rows with a tenth of the finite cells missing: every parameter is within 0.07 of the truth."""
    columns = drawn(20_000, 3, missing=0.1)
    run = learned(columns, tol=1e-4)
    assert run.converged
    assert never_falls([i.objective for i in run.trace])
    np.testing.assert_allclose(parameters(run.model), parameters(TRUTH), atol=0.12)
    x = run.model["x"].log_prob({"x": columns["x"]}).sum()
    assert run.log_likelihood == pytest.approx(beliefs(nodes(run.model), columns)[1].sum() + x, abs=1e-6)
    np.testing.assert_allclose(parameters(improved(nodes(run.model), columns)), parameters(run.model), atol=0.02)


@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_em_takes_the_steps_of_the_oracle(ridge):
    """Three iterations from one start: the same parameters and objective. (Missing leaves the oracle only skips.)"""
    columns, cpds = drawn(300, 5), begun(4, ridge)
    x = Gaussian(1.0, {}, 4.0).bound(X, [])
    start = BayesNet.of(Dag(DAG), {v.name: v for v in (X, CLASS, Y, U, V)}, cpds | {"x": x})
    run = learned(columns, ridge, start=start, tol=0.0, max_iter=3)
    for _ in range(3):
        cpds = improved(cpds, columns)
    np.testing.assert_allclose(parameters(run.model), parameters(cpds), atol=1e-9)
    x_part = run.model["x"].log_prob({"x": columns["x"]}).sum()
    expected = beliefs(cpds, columns)[1].sum() + x_part + sum(Logistic(ridge).log_prior(cpds[n]) for n in ("class", "y"))
    assert run.objective == pytest.approx(expected, abs=1e-8)


def test_numbers_large_and_missing():
    """A column with mean 10⁹ gives the same slopes; a missing number of it is integrated out, and that is said."""
    columns = drawn(400, 6)
    near, far = (learned(columns | {"x": columns["x"] + shift}, tol=1e-8).model for shift in (0.0, 1e9))
    np.testing.assert_allclose(far["y"].coefficients, near["y"].coefficients, atol=2e-3)
    table = as_table(columns)
    table["x"][7] = None
    with pytest.warns(SufficeNote, match="missing numbers under regressions are integrated.*: 'x'"):
        run = learned_from(table, tol=1e-8)
    np.testing.assert_allclose(run.model["y"].coefficients, near["y"].coefficients, atol=0.1)


def learned(columns: Columns, ridge: float = 0.0, **options: Any) -> Any:
    return learned_from(as_table(columns), ridge, **options)


def learned_from(table: Any, ridge: float = 0.0, **options: Any) -> Any:
    from suffice.learning.em import em

    families = {"y": Logistic(ridge), "class": Logistic(ridge)}
    rows = scan(table, variables={"y": Y, "u": U, "v": V, "x": Real})
    return em(DAG, rows, hidden=[CLASS], families=families, starts=1, seed=1, **options)


def nodes(model: Any) -> dict[str, Any]:
    return {n: model[n] for n in ("class", "y", "u", "v")}
