"""Regressions in EM: what completed rows, each weighed by its probability, say at the parameters so far, and one Newton step.

    step       Σ w of the working sums (gradient G, curvature H) at θ, the weights being what the E-step expects
    advance    θ + (H + Λ)⁻¹ (G − Λθ), Λ the ridge; a dispersion is the best one at θ (gamma), or takes a Newton step in its
               logarithm (negative binomial)

A Newton step goes uphill in what the M-step should maximise, and may still be too long. G is also the gradient of ln p(observed):
so a step that lowers the objective is halved until it does not (`learning.climb`), and EM stays an ascent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from suffice.families.design import Layout, are_numbers
from suffice.families.family import Array, Columns
from suffice.families.glm_sums import Regressors, Summary, Sums
from suffice.families.regression import independent
from suffice.variables import Variable

APART = 0.5
"""The deviation of the effects of states in a random start, in units of the predictor."""


class ExpectedSums(NamedTuple):
    """What completed rows say at some parameters: working sums, Σ w x of the columns, Σ w y (by state of a finite child), and the
    derivatives of the log-likelihood by the logarithm of a shape, where there is one. It adds."""

    sums: Sums
    columns: Array
    counts: Array
    shape: Array


def start_of(family: Any, child: Variable, parents: Sequence[Variable], known: Summary) -> Any:
    """No effects, and the level that the mean of the child has."""
    family.check(child, parents)
    layout: Layout = family.layout(child, len(known.columns))
    centre = np.where(are_numbers(family.regressors(parents)), known.columns / known.weight, 0.0)
    return family.cpd(child, tuple(parents), layout.of_levels(family.first_levels(known)), centre=centre)


def random_of(family: Any, child: Variable, parents: Sequence[Variable], rng: np.random.Generator, known: Summary) -> Any:
    """The same, with effects of states drawn: where some of the variables are hidden, equal effects would stay equal."""
    cpd = start_of(family, child, parents, known)
    states, slopes = ~are_numbers(family.regressors(parents)), cpd.layout.slopes
    theta = cpd.theta.copy()
    width = family.apart(theta[cpd.layout.levels]) / max(1, int(states.sum()))
    theta[slopes[:, states]] = np.clip(rng.standard_normal(slopes[:, states].shape), -2.0, 2.0) * width
    return family.cpd(child, tuple(parents), theta, centre=cpd.centre)


def expected_sums(family: Any, cpd: Any, columns: Columns, weights: Array | None) -> ExpectedSums:
    """What these rows say at the parameters of `cpd`."""
    at = Regressors(cpd.child, cpd.regressors, cpd.centre)
    theta = cpd.layout.shifted(cpd.theta, cpd.centre)
    known = family.summary(cpd.child, cpd.parent_variables, columns, weights)
    sums = family.measure(at, theta, columns, weights, **family.told(cpd))
    return ExpectedSums(sums, known.columns, known.child, family.shape_slopes(at, theta, cpd.dispersion, columns, weights))


def advanced(family: Any, cpd: Any, statistic: tuple[Any, ...]) -> Any:
    """The regression after one step; a column that the rows cannot tell from those before it stays where it is."""
    found = ExpectedSums(*statistic)
    s = Sums(*found.sums)
    if not s.weight > 0:
        return cpd
    layout, at = cpd.layout, Regressors(cpd.child, cpd.regressors, cpd.centre)
    theta, penalty = layout.shifted(cpd.theta, cpd.centre), family.penalty(at)
    curvature, slope = s.hessian + penalty, s.gradient - penalty @ theta
    kept = independent(curvature, cpd.child.name)
    scale = np.sqrt(np.diag(curvature)[kept])
    ahead = theta.copy()
    ahead[kept] += np.linalg.solve(curvature[np.ix_(kept, kept)] / scale[:, None] / scale, slope[kept] / scale) / scale
    ahead = family.allowed(layout, theta, ahead)
    plain = layout.shifted(ahead, -cpd.centre)
    numbers = are_numbers(cpd.regressors)
    centre = np.where(numbers, found.columns / s.weight, cpd.centre)
    return family.cpd(cpd.child, cpd.parent_variables, plain, family.dispersion_at(cpd, s, found.shape), centre=centre)


def between(cpd: Any, other: Any, share: float = 0.5) -> Any:
    """The regression on the way from one to another of the same node; a dispersion in its logarithm."""
    theta = (1.0 - share) * cpd.theta + share * other.theta
    dispersion = float(np.exp((1.0 - share) * np.log(cpd.dispersion) + share * np.log(other.dispersion)))
    return cpd.family.cpd(cpd.child, cpd.parent_variables, theta, dispersion, centre=cpd.centre)


def log_ridge(family: Any, cpd: Any) -> float:
    """−½ θᵀΛθ: what the ridge adds to the objective."""
    if not family.ridge:
        return 0.0
    penalty = family.penalty(Regressors(cpd.child, cpd.regressors, cpd.centre))
    return -0.5 * float(cpd.theta @ penalty @ cpd.theta)
