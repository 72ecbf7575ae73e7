"""The conjugate distribution of lines, against NormalInverseGamma where there is no x, and against least squares by numpy."""

from __future__ import annotations

import numpy as np
import pytest

from suffice.numerics.exponential import Normal, NormalInverseGamma
from suffice.numerics.exponential.normals.lines import ConjugateLines, log_line_prior, regress


def moments(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = x.mean(axis=0)
    return mean, (x - mean).T @ (x - mean)


def test_without_x_it_is_normal_inverse_gamma() -> None:
    """κ and ν, the mean and the scatter after rows: evidence, intervals and predictive are those of the plain normal."""
    y = np.array([1.0, 2.5, 4.0, 4.5])
    prior = NormalInverseGamma(0.5, 2.0, 1.5, 3.0)
    after = prior + Normal().statistic(y)
    before, now = (
        ConjugateLines.of(np.array(p.count), np.array(2 * p.shape), np.array([p.mean]), np.array([[2 * p.scale]]))
        for p in (prior, after)
    )
    evidence = now.log_normaliser - before.log_normaliser - 0.5 * len(y) * np.log(2 * np.pi)
    assert float(evidence) == pytest.approx(prior.log_evidence(Normal().statistic(y)), rel=1e-12)
    ours, theirs = now.interval(0.9), after.interval(0.9)
    assert np.array(ours["intercept"]) == pytest.approx(np.array(theirs["mean"]), rel=1e-12)
    assert np.array(ours["variance"]) == pytest.approx(np.array(theirs["variance"]), rel=1e-12)
    t = after.predictive()
    assert [float(v) for v in now.predictive(np.zeros(0))] == pytest.approx([t.df, t.location, t.scale], rel=1e-12)


def test_many_lines_at_once_are_those_of_least_squares() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(4, 30, 3)) @ rng.normal(size=(3, 3)) + 1e3
    found = regress(np.stack([moments(x)[1] for x in rows]))
    for g, x in enumerate(rows):
        design = np.column_stack([np.ones(30), x[:, :2]])
        b, residual, _, _ = np.linalg.lstsq(design, x[:, 2], rcond=None)
        assert found.coefficients[g] == pytest.approx(b[1:], rel=1e-8)
        assert found.residual[g] == pytest.approx(residual[0], rel=1e-8)
        assert found.inverse[g] == pytest.approx(np.linalg.inv(moments(x)[1][:2, :2]), rel=1e-8)
        assert found.log_det[g] == pytest.approx(np.linalg.slogdet(moments(x)[1][:2, :2])[1], rel=1e-12)


def test_a_group_without_a_line_says_which_column_and_leaves_the_others_alone() -> None:
    good = np.array([[4.0, 1.0, 2.0], [1.0, 3.0, 1.0], [2.0, 1.0, 5.0]])
    same = np.array([[1.0, 2.0, 1.0], [2.0, 4.0, 2.0], [1.0, 2.0, 3.0]])
    found = regress(np.stack([good, same, np.zeros((3, 3))]))
    assert found.collinear.tolist() == [-1, 1, 0]
    assert found.coefficients[0] == pytest.approx(regress(good).coefficients, rel=1e-14)
    assert np.isnan(found.coefficients[1:]).all()
    assert found.vanishes.tolist() == [False, True, True]


def test_draws_have_the_moments_of_the_posterior() -> None:
    scatter = np.array([[4.0, 2.0], [2.0, 3.0]])
    lines = ConjugateLines.of(np.array([5.0]), np.array([12.0]), np.array([[1.0, 2.0]]), scatter[None])
    a, b, v = lines.sample(200_000, np.random.default_rng(1))
    s = float(lines.line.residual[0])
    assert v.mean() == pytest.approx(s / 10.0, rel=0.01)
    assert b.mean() == pytest.approx(0.5, abs=0.002)
    assert b.var() == pytest.approx(s / 10.0 / 4.0, rel=0.02)
    assert a.mean() == pytest.approx(float(lines.intercept[0]), abs=0.003)


def test_the_estimate_is_where_the_prior_of_a_line_is_highest() -> None:
    """−½ r ln v − ½ (…)/v at its maximum over a, b and v: least squares, and the residual over r."""
    mean, scatter, rows = np.array([1.0, 2.0]), np.array([[4.0, 2.0], [2.0, 3.0]]), 3.0

    def at(a: float, b: float, v: float) -> float:
        return float(log_line_prior(np.array(rows), np.array(2.0), mean, scatter, np.array(a), np.array([b]), v))

    best = at(1.5, 0.5, 2.0 / rows)
    for step in (-1e-3, 1e-3):
        assert max(at(1.5 + step, 0.5, 2.0 / rows), at(1.5, 0.5 + step, 2.0 / rows), at(1.5, 0.5, 2.0 / rows + step)) < best
