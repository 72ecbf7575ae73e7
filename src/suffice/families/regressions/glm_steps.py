"""Regressions in EM: what completed rows, each weighed by its probability, say at the parameters so far, and one Newton step.

    step       Σ w of the working sums (gradient G, curvature H) at θ, the weights being what the E-step expects
    advance    θ + (H + Λ)⁻¹ (G − Λθ), Λ the ridge; a dispersion is the best one at θ (gamma), or takes a Newton step in its
               logarithm (negative binomial)

A Newton step goes uphill in what the M-step should maximise, and may still be too long. G is also the gradient of ln p(observed):
so a step that lowers the objective is halved until it does not (`learning.incomplete.climb`), and EM stays an ascent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from suffice.basis.variables import Variable
from suffice.families.design import ParameterLayout, Regressors, Summary, Sums, terms
from suffice.families.protocol.family import Array, Columns
from suffice.numerics.exponential.normals.lines import independent

APART = 0.5
"""The deviation of the effects of states in a random start, in units of the predictor."""


class ExpectedSums(NamedTuple):
    """What completed rows say at some parameters: working sums, Σ w x of the columns, Σ w y (by state of a finite child), and the
    derivatives of the log-likelihood by the logarithm of a shape, where there is one. It adds."""

    sums: Sums
    columns: Array
    counts: Array
    shape: Array


class EmSteps:
    """What EM asks of a regression: where to start, what completed rows say, and the parameters after one step."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What a regression has: see `suffice.families.regressions.glm`."""

        # Of a family that has a dispersion, the first and second derivatives of Σ w ln p by its logarithm.
        def dispersion_slopes(self, cpd: Any, s: Sums, shape: Array) -> tuple[float, float]: ...

    def start(self, child: Variable, parents: Sequence[Variable], known: Summary) -> Any:
        """No effects, and the level that the mean of the child has."""
        self.check(child, parents)
        layout: ParameterLayout = self.layout(child, len(known.columns))
        centre = np.where(terms(parents, self.roles).numbers, known.columns / known.weight, 0.0)
        return self.cpd(child, tuple(parents), layout.of_levels(self.first_levels(known)), centre=centre)

    def random(self, child: Variable, parents: Sequence[Variable], rng: np.random.Generator, known: Summary) -> Any:
        """The same, with effects of states drawn: where some of the variables are hidden, equal effects would stay equal."""
        cpd = self.start(child, parents, known)
        states, slopes = ~terms(cpd.regressors).numbers, cpd.layout.slopes
        theta = cpd.theta.copy()
        width = self.apart(theta[cpd.layout.levels]) / max(1, int(states.sum()))
        theta[slopes[:, states]] = np.clip(rng.standard_normal(slopes[:, states].shape), -2.0, 2.0) * width
        return self.cpd(child, tuple(parents), theta, centre=cpd.centre)

    def apart(self, levels: Array) -> float:
        """The deviation of effects of states at a random start."""
        return APART

    def step(self, cpd: Any, columns: Columns, weights: Array | None = None) -> Any:
        """What completed rows say at the parameters of `cpd`: it adds."""
        at = Regressors(cpd.child, cpd.regressors, cpd.centre)
        theta = cpd.layout.shift(cpd.theta, cpd.centre)
        known = self.summary(cpd.child, cpd.parent_variables, columns, weights)
        sums = self.measure(at, theta, columns, weights, **self.pass_options(cpd))
        shape = np.zeros(0)
        if self.profiled:  # the derivatives by the logarithm of the shape
            shape = np.asarray(self.of_shape(self.spread, at, theta, 1.0 / cpd.dispersion, columns, weights))
        return ExpectedSums(sums, known.columns, known.child, shape)

    def advance(self, cpd: Any, statistic: tuple[Any, ...]) -> Any:
        """The regression after one step; a column that the rows cannot tell from those before it stays where it is."""
        found = ExpectedSums(*statistic)
        s = Sums(*found.sums)
        if not s.weight > 0:
            return cpd
        layout, at = cpd.layout, Regressors(cpd.child, cpd.regressors, cpd.centre)
        theta, penalty = layout.shift(cpd.theta, cpd.centre), self.penalty(at)
        curvature, slope = s.hessian + penalty, s.gradient - penalty @ theta
        kept = np.flatnonzero(independent(curvature, cpd.child.name))
        scale = np.sqrt(np.diag(curvature)[kept])
        ahead = theta.copy()
        ahead[kept] += np.linalg.solve(curvature[np.ix_(kept, kept)] / scale[:, None] / scale, slope[kept] / scale) / scale
        ahead = self.limit_step(layout, theta, ahead)
        plain = layout.shift(ahead, -cpd.centre)
        numbers = terms(cpd.regressors).numbers
        centre = np.where(numbers, found.columns / s.weight, cpd.centre)
        return self.cpd(cpd.child, cpd.parent_variables, plain, self.dispersion_at(cpd, s, found.shape), centre=centre)

    def slopes(self, cpd: Any, statistic: tuple[Any, ...]) -> tuple[Array, Array, float]:
        """The gradient of Σ w ln p, less the ridge, by θ of centred columns and ln d where there is a dispersion; minus its
        second derivatives; and Σ w."""
        found = ExpectedSums(*statistic)
        s, d = Sums(*found.sums), cpd.dispersion if self.dispersed else 1.0
        penalty = self.penalty(Regressors(cpd.child, cpd.regressors, cpd.centre))
        g, H = s.gradient / d - penalty @ cpd.layout.shift(cpd.theta, cpd.centre), s.hessian / d + penalty
        if not (self.dispersed or self.profiled):
            return g, H, s.weight
        slope, curve = self.dispersion_slopes(cpd, s, found.shape)
        mixed = s.gradient[:, None] / d if self.dispersed else np.zeros((len(g), 1))  # of a shape 0 is expected
        return np.append(g, slope), np.block([[H, mixed], [mixed.T, np.array([[-curve]])]]), s.weight

    def log_prior(self, cpd: Any) -> float:
        """−½ θᵀΛθ: what the ridge adds to the objective."""
        if not self.ridge:
            return 0.0
        penalty = self.penalty(Regressors(cpd.child, cpd.regressors, cpd.centre))
        return -0.5 * float(cpd.theta @ penalty @ cpd.theta)

    def pass_options(self, cpd: Any) -> dict[str, float]:
        """What a pass is told besides θ."""
        return {"dispersion": cpd.dispersion} if self.profiled else {}

    def limit_step(self, layout: ParameterLayout, theta: Array, ahead: Array) -> Array:
        """Parameters ahead, or as far on the way to them as parameters may be."""
        return ahead

    def dispersion_at(self, cpd: Any, s: Sums, shape: Array) -> float:
        """The dispersion of the next step: the best one at the parameters where the sums are from."""
        return float(self.scale(s, max(-2.0 * s.log_likelihood, 0.0))) if self.dispersed else 1.0


def between(cpd: Any, other: Any, share: float = 0.5) -> Any:
    """The regression on the way from one to another of the same node; a dispersion in its logarithm."""
    theta = (1.0 - share) * cpd.theta + share * other.theta
    dispersion = float(np.exp((1.0 - share) * np.log(cpd.dispersion) + share * np.log(other.dispersion)))
    return cpd.family.cpd(cpd.child, cpd.parent_variables, theta, dispersion, centre=cpd.centre)
