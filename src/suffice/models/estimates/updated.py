"""A network after more rows: what was seen and what is new add up; of regressions without a finite statistic, posteriors: what
was known of their parameters, a normal distribution, is the prior of the new rows.

    θ | old rows  ≈  Normal(θ₀, Λ₀⁻¹)         Laplace: θ₀ the estimate, Λ₀ the curvature there, with the ridge, at dispersion 1
    θ | all rows  :  argmax Σ w ℓ(θ) − ½ (θ − θ₀)ᵀ Λ₀ (θ − θ₀)         over the new rows, by Newton steps

No statistic of rows with numbers is finite, so this is as near as the old rows can be had: the quadratic stands for their
log-likelihood in what is kept, too (log-likelihood, deviance, Pearson's sum). A negative binomial keeps its shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from suffice.engines.scan import rows_with
from suffice.errors import FitError, ModelError, listing, note
from suffice.families.design import Maximum, Pass, Regressors, Summary, Sums, needs_rows
from suffice.families.gathering import gather
from suffice.families.protocol.family import Array, Cpd
from suffice.models.estimates.estimated import estimate_network
from suffice.models.parts.network_parts import SomeNetwork
from suffice.models.parts.sharing import Tie
from suffice.models.parts.stacked_rows import StackedRows, from_pooled, with_shares
from suffice.statistics import Statistics
from suffice.variables import Finite

STEPS, SETTLED = 100, 1e-10
"""Newton steps at most, and the standard errors that the last of them is shorter than."""


def update_network(bn: SomeNetwork, more: Any, decay: float = 1.0) -> SomeNetwork:
    """The network that all rows together give, the old ones with `decay` of their weight."""
    if bn.incomplete:
        raise ModelError(
            "this network was fitted from incomplete data, whose statistics are expected, not seen: call "
            "em(dag, all_rows, start=bn), with the old rows and the new"
        )
    if bn.statistics is None:
        raise ModelError(
            f"this network keeps no statistics that rows could be added to ({bn.fit_info}): make it again from all rows, "
            "the old and the new, or take it as a prior of the new ones, fit(dag, rows, prior=BDe(bn, ess))"
        )
    if bn.regressions:
        return _with_regressions(bn, bn.statistics, more)
    # inferred states may still widen
    free = {n: v for n, v in bn.variables.items() if isinstance(v, Finite) and v.inferred and v.cuts is None}
    declared = {**bn.variables, **dict.fromkeys(free, Finite)}
    new = more if isinstance(more, Statistics) else gather(rows_with(more, declared, "network"), bn.dag)
    seen = bn.statistics.decay(decay) + new
    return estimate_network(type(bn), bn.dag, seen, bn.prior, bn.estimate, bound=True, shared=bn.shared)


def _with_regressions(bn: SomeNetwork, seen: Statistics, more: Any) -> SomeNetwork:
    """A network with regressions after more rows. Those of states on states, and linear ones, are fitted again to what all rows
    counted; for the others the Laplace posterior of the old rows is the prior of the new ones, and a note says so. Nodes that
    share a regression have one posterior, and the new rows of all of them are its rows."""
    rows = None if isinstance(more, Statistics) else bn.rows(more)
    if rows is not None:
        rows.require_complete(list(bn))
    all_of_them = seen + bn.summary(more if rows is None else rows)
    ready: dict[str, Cpd] = {}
    approximate: list[str] = []
    tied = {n: tie for tie in bn.ties for n in tie.nodes}
    for tie in dict.fromkeys(tied.get(n) or Tie(((n, *bn.dag.parents(n)),)) for n in bn.regressions):
        if exact(first := bn[tie.nodes[0]]):
            nodes = {n: (bn[n].child, bn[n].parent_variables) for n in tie.nodes}
            ready |= from_pooled(tie, nodes, first.family, all_of_them, partial(refit, first))
        elif rows is None:
            raise needs_rows(first.child)
        else:
            ready |= _after_more_rows(bn, tie, rows)
            approximate += tie.nodes
    if approximate:
        note(
            f"the rows that {listing(approximate)} were fitted to are known by their normal approximation only (Laplace): it is "
            "the prior of the new rows; fit(bn, all_rows) is exact"
        )
    return estimate_network(type(bn), bn.dag, all_of_them, bn.prior, bn.estimate, bound=True, ready=ready, shared=bn.shared)


def _after_more_rows(bn: SomeNetwork, tie: Tie, rows: Any) -> dict[str, Cpd]:
    """The regression of a tie after the new rows of all its nodes. What the quadratic loses of the log-likelihood of the old
    rows is shared out evenly."""
    old, stacked = {n: bn[n].fitted for n in tie.nodes}, StackedRows.of(rows, tie)
    first: Any = bn[tie.nodes[0]]
    if first.fitted is not None:  # each node has the log-likelihood of its own rows
        first = replace(first, fitted=replace(first.fitted, log_likelihood=sum(f.log_likelihood for f in old.values())))
    done = after_more_rows(first, stacked)
    own = {n: done.rename(bn[n].child, bn[n].parent_variables) for n in tie.nodes}
    shares = {n: old[n].log_likelihood + new for n, new in stacked.log_likelihoods(own).items()}
    rest = (done.fitted.log_likelihood - sum(shares.values())) / len(shares)
    return with_shares(own, {n: share + rest for n, share in shares.items()})


def exact(cpd: Cpd) -> bool:
    """Whether a statistic says all about a regression: a linear one, or one of states on states."""
    return bool(cpd.family.normal) or all(isinstance(v, Finite) for v in (cpd.child, *cpd.parent_variables))


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
