"""More rows for a fitted regression: what it knew of its parameters, a normal distribution, is the prior of the new rows.

    θ | old rows  ≈  Normal(θ₀, Λ₀⁻¹)         Laplace: θ₀ the estimate, Λ₀ the curvature there, with the ridge, at dispersion 1
    θ | all rows  :  argmax Σ w ℓ(θ) − ½ (θ − θ₀)ᵀ Λ₀ (θ − θ₀)         over the new rows, by Newton steps

No statistic of rows with numbers is finite, so this is as near as the old rows can be had: the quadratic stands for their
log-likelihood in what is kept, too (log-likelihood, deviance, Pearson's sum). A negative binomial keeps its shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from suffice.errors import FitError
from suffice.families.protocol.family import Array
from suffice.families.regressions.fitted import Maximum, Pass, Regressors, Summary, Sums

STEPS, SETTLED = 100, 1e-10
"""Newton steps at most, and the standard errors that the last of them is shorter than."""


class Quadratic(NamedTuple):
    """−½ (θ − mean)ᵀ precision (θ − mean), in centred columns."""

    mean: Array
    precision: Array

    def value(self, theta: Array) -> float:
        return -0.5 * float((theta - self.mean) @ self.precision @ (theta - self.mean))

    def slope(self, theta: Array) -> Array:
        return np.asarray(-self.precision @ (theta - self.mean))


def after_more_rows(cpd: Any, rows: Any) -> Any:
    """The regression after more rows, of which it has seen those that it was fitted to."""
    family, old = cpd.family, cpd.fitted
    if old is None or np.isnan(old.dispersion):
        raise FitError(
            f"{cpd.child.name!r} has no covariance of its parameters, which would stand for the rows that it was fitted to: "
            "call fit(bn, all_rows), with the old rows and the new"
        )
    at, layout = Regressors(cpd.child, cpd.regressors, cpd.centre), cpd.layout
    covariance = layout.shift(layout.shift(old.covariance / old.dispersion, cpd.centre).T, cpd.centre)
    before = Quadratic(layout.shift(cpd.theta, cpd.centre), np.linalg.inv(covariance))
    new: Summary = rows.fold(Pass(family.summary, (cpd.child, cpd.parent_variables)))
    found = _ascend(family, at, before, before.mean, rows, family.pass_options(cpd))
    loss = -2.0 * before.value(found.theta)
    s = found.sums
    both = s._replace(
        log_likelihood=s.log_likelihood - 0.5 * (old.deviance + loss),
        pearson=s.pearson + old.pearson + loss,
        weight=s.weight + old.weight,
    )
    summary = new._replace(weight=new.weight + old.weight, base=new.base + _base(cpd))
    done = family.finish(at, cpd.parent_variables, found._replace(sums=both), summary, cpd.dispersion)
    if not family.profiled:
        return done
    own = float(rows.fold(Pass(family.of_shape, (family.log_likelihood_of, at, found.theta, 1.0 / cpd.dispersion))))
    return replace(done, fitted=replace(done.fitted, log_likelihood=old.log_likelihood + own - 0.5 * loss))


def _base(cpd: Any) -> float:
    """What the log-likelihood of the old rows has beside −½ of their deviance."""
    old = cpd.fitted
    s = Sums(-0.5 * old.deviance, np.zeros(0), np.zeros((0, 0)), old.pearson, old.weight)
    bare = cpd.family.total(s, Summary(old.weight, np.zeros(0), np.zeros(0), 0.0, 0.0, 0.0), cpd.dispersion)
    return float(old.log_likelihood - bare)


def refit(cpd: Any, rows: Any) -> Any:
    """The regression fitted again to all rows, from where it was: what a fit to them from the beginning gives."""
    family, at = cpd.family, Regressors(cpd.child, cpd.regressors, cpd.centre)
    summary: Summary = rows.fold(Pass(family.summary, (cpd.child, cpd.parent_variables)))
    theta = cpd.layout.shift(cpd.theta, cpd.centre)
    found = _ascend(family, at, Quadratic(np.zeros(len(theta)), family.penalty(at)), theta, rows, {})
    if not family.canonical:  # the covariance is that of the expected curvature
        s = rows.fold(Pass(family.measure, (at, found.theta), {"expected": True}))
        found = found._replace(covariance=np.linalg.inv(s.hessian + family.penalty(at)))
    return family.finish(at, cpd.parent_variables, found, summary)


def _ascend(family: Any, at: Regressors, before: Quadratic, theta: Array, rows: Any, told: Mapping[str, float]) -> Maximum:
    """Newton steps from a start, halved where they lower the objective."""

    def measure_at(theta: Array) -> Sums:
        sums: Sums = rows.fold(Pass(family.measure, (at, theta), told))
        return sums

    s = measure_at(theta)
    for iteration in range(1, STEPS + 1):
        covariance: Array = np.asarray(np.linalg.inv(s.hessian + before.precision), dtype=np.float64)
        slope = s.gradient + before.slope(theta)
        step, here = covariance @ slope, s.log_likelihood + before.value(theta)
        if float(slope @ step) <= SETTLED**2:
            return Maximum(theta, s, covariance, iteration)
        for halvings in range(40):
            ahead = theta + 0.5**halvings * step
            there = measure_at(ahead)
            if np.isfinite(there.log_likelihood) and there.log_likelihood + before.value(ahead) >= here - 1e-12 * (1 + abs(here)):
                break
        else:
            return Maximum(theta, s, covariance, iteration)  # no digit is left to gain
        theta, s = ahead, there
    raise FitError(f"the regression of {at.child.name!r} did not converge in {STEPS} iterations after the new rows")
