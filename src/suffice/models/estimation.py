"""From statistics and a prior to a network: the one place where parameters are learned; and the same network after more rows, and
at draws of its parameters.

What was seen and what is new add up; of regressions without a finite statistic, posteriors: what was known of their parameters, a
normal distribution, is the prior of the new rows.

    θ | old rows  ≈  Normal(θ₀, Λ₀⁻¹)         Laplace: θ₀ the estimate, Λ₀ the curvature there, with the ridge, at dispersion 1
    θ | all rows  :  argmax Σ w ℓ(θ) − ½ (θ − θ₀)ᵀ Λ₀ (θ − θ₀)         over the new rows, by Newton steps

No statistic of rows with numbers is finite, so this is as near as the old rows can be had: the quadratic stands for their
log-likelihood in what is kept, too (log-likelihood, deviance, Pearson's sum). A negative binomial keeps its shape.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.variables import Finite, Variable
from suffice.engines.scan import rows_with
from suffice.errors import DataError, FitError, ModelError, SufficeError, listing, nearest, note, quantity
from suffice.errors.remedies import BDEU, name_of
from suffice.families import family_of
from suffice.families.design import Maximum, Pass, Regressors, Summary, Sums, needs_rows
from suffice.families.gathering import gather
from suffice.families.priors.priors import Node, Prior
from suffice.families.protocol.family import Array, Cpd, Estimate
from suffice.graphs import Dag
from suffice.models.parts import sharing
from suffice.models.parts.network_parts import NetworkParts, SomeNetwork
from suffice.statistics import Statistics

STEPS, SETTLED = 100, 1e-10
"""Newton steps at most, and the standard errors that the last of them is shorter than."""


def estimate_network(
    kind: type[SomeNetwork],
    dag: Dag,
    statistics: Statistics,
    prior: Prior | None,
    how: Estimate,
    *,
    bound: bool = False,
    ready: Mapping[str, Cpd] | None = None,
    told: Container[str] = (),
    ties: Sequence[sharing.Tie] = (),
) -> SomeNetwork:
    """The network that statistics, a prior and a choice of point values make. `ready` has distributions of iterative families,
    which statistics cannot give, and of those in `told` it was said how they came about; nodes of `ties` share one parameter
    set, and their parents, as the graph has them, correspond."""
    known = statistics.variables
    if missing := [n for n in dag.nodes if n not in known]:
        raise DataError(f"the statistics do not speak of {listing(missing)}, which the graph names{nearest(missing[0], known)}")
    if not statistics.weight > 0:
        raise DataError("there are no rows to learn from")
    if ties:
        statistics = sharing.agreeing(statistics, ties)
        known = statistics.variables
    plain = [tie for tie in ties if tie.nodes[0] not in (ready or {})]
    variables = {n: known[n] for n in dag.nodes}
    if prior is not None and not bound:
        prior = prior.choose(variables, free_nodes(dag, variables, statistics, plain, ready or ()), statistics)
        prior = (sharing.tied_prior(prior, tuple(plain)) if plain else prior).bind(variables, statistics)
    together = sharing.seen_together(plain, statistics, variables) if plain else {}
    nodes_and_parents = {n: (variables[n], [variables[p] for p in dag.parents(n)]) for n in dag.nodes}
    cpds, by = estimate_nodes(nodes_and_parents, statistics, prior, how, ready or {}, together, told)
    info = f"fitted from {quantity(statistics.weight, 'row')}, {by}{sharing.shared_in_words(ties) if ties else ''}"
    if statistics.suppression is not None:
        info += f"; {statistics.suppression.in_words()}"
        note(f"{statistics.suppression.in_words()}: the parameters are those of the cells that are left")
    return kind.of(dag, variables, cpds, statistics=statistics, prior=prior, estimate=how, fit_info=info, ties=ties)


def estimate_nodes(
    nodes: Mapping[str, tuple[Variable, Sequence[Variable]]],
    statistics: Statistics,
    prior: Prior | None,
    how: Estimate,
    ready: Mapping[str, Cpd],
    together: Mapping[str, Any],
    told: Container[str] = (),
) -> tuple[dict[str, Cpd], str]:
    """The distribution of each node, child and parents, that statistics and a bound prior give, and in words what they are; nodes
    that the prior says nothing about are noted, but for those in `told`. `together` has what tied nodes have seen."""
    cpds: dict[str, Cpd] = {}
    unspoken: list[str] = []
    for name, (child, parents) in nodes.items():
        if name in ready:
            cpds[name] = ready[name]
            unspoken += [name] if prior is not None else []
            continue
        family = family_of(child, parents)
        imagined = None if prior is None else prior.imagine(child, parents)
        if prior is not None and imagined is None:
            unspoken.append(name)
        seen = together[name] if name in together else statistics.answer(family.needs(child, parents))
        cpds[name] = family.estimate(child, parents, seen, imagined, how)
    if untold := [name for name in unspoken if name not in told]:
        note(f"the prior says nothing about {listing(untold)}: fitted by maximum likelihood")
    silent = prior is None or len(unspoken) == len(cpds)
    return cpds, "maximum likelihood" if silent else f"posterior {type(how).__name__.lower()}"


def free_nodes(
    dag: Dag, variables: Mapping[str, Variable], statistics: Statistics, ties: Sequence[sharing.Tie], ready: Container[str] = ()
) -> Iterator[Node]:
    """The nodes by which a prior may choose its numbers, with what was seen of each; of a tie its first node, with all it saw."""
    statistics.require_all_cells("a prior that is chosen by its evidence")
    together = sharing.seen_together(ties, statistics, variables)
    again = {node for tie in ties for node in tie.nodes[1:]}
    for name in dag.nodes:
        if name not in again and name not in ready:
            child, parents = variables[name], [variables[p] for p in dag.parents(name)]
            seen = together[name] if name in together else statistics.answer(family_of(child, parents).needs(child, parents))
            yield child, parents, seen


def replace_cpds(bn: SomeNetwork, dag: Dag, cpds: Mapping[str, Cpd], ties: Sequence[sharing.Tie] = ()) -> SomeNetwork:
    """A network learned from incomplete rows with some of its distributions, and their edges, put in the place of others."""
    kept = {n: cpds.get(n) or bn[n] for n in dag.nodes}
    info = f"{bn.fit_info} with {listing(list(cpds))} as if without parents, whose regression was fitted by itself"
    options: dict[str, Any] = {"prior": bn.prior, "estimate": bn.estimate, "fit_info": info, "hidden": bn.hidden}
    left = [n for n in kept if n not in cpds]  # a complete family shares no missing cell, and its parameters depend on no others
    options |= {"incomplete": bn.incomplete, "ties": (*bn.ties, *ties), "covariance": bn.covariance_of(left)}
    return bn.of(dag, dict(bn.variables), kept, **options)


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
        return _update_regressions(bn, bn.statistics, more)
    # inferred states may still widen
    free = {n: v for n, v in bn.variables.items() if isinstance(v, Finite) and v.inferred and v.cuts is None}
    declared = {**bn.variables, **dict.fromkeys(free, Finite)}
    new = more if isinstance(more, Statistics) else gather(rows_with(more, declared, "network"), bn.dag)
    seen = bn.statistics.decay(decay) + new
    return estimate_network(type(bn), bn.dag, seen, bn.prior, bn.estimate, bound=True, ties=bn.ties)


def _update_regressions(bn: SomeNetwork, seen: Statistics, more: Any) -> SomeNetwork:
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
    for tie in dict.fromkeys(tied.get(n) or sharing.Tie(((n, *bn.dag.parents(n)),)) for n in bn.regressions):
        first = bn[tie.nodes[0]]
        of_states = all(isinstance(v, Finite) for v in (first.child, *first.parent_variables))
        if first.family.normal or of_states:  # a statistic says all about it
            nodes = {n: (bn[n].child, bn[n].parent_variables) for n in tie.nodes}
            ready |= sharing.from_pooled(tie, nodes, first.family, all_of_them, partial(refit, first))
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
    how: dict[str, Any] = {"bound": True, "ready": ready, "told": approximate, "ties": bn.ties}
    return estimate_network(type(bn), bn.dag, all_of_them, bn.prior, bn.estimate, **how)


def _after_more_rows(bn: SomeNetwork, tie: sharing.Tie, rows: Any) -> dict[str, Cpd]:
    """The regression of a tie after the new rows of all its nodes. What the quadratic loses of the log-likelihood of the old
    rows is shared out evenly."""
    old, stacked = {n: bn[n].fitted for n in tie.nodes}, sharing.StackedRows.of(rows, tie)
    first: Any = bn[tie.nodes[0]]
    if first.fitted is not None:  # each node has the log-likelihood of its own rows
        first = replace(first, fitted=replace(first.fitted, log_likelihood=sum(f.log_likelihood for f in old.values())))
    done = after_more_rows(first, stacked)
    own = {n: done.rename(bn[n].child, bn[n].parent_variables) for n in tie.nodes}
    shares = {n: old[n].log_likelihood + new for n, new in stacked.log_likelihoods(own).items()}
    rest = (done.fitted.log_likelihood - sum(shares.values())) / len(shares)
    return sharing.with_shares(own, {n: share + rest for n, share in shares.items()})


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
    s, bare = found.sums, Sums(-0.5 * old.deviance, np.zeros(0), np.zeros((0, 0)), old.pearson, old.weight)
    nothing = Summary(old.weight, np.zeros(0), np.zeros(0), 0.0, 0.0, 0.0)
    # what the log-likelihood of the old rows has beside −½ of their deviance
    base = float(old.log_likelihood - family.total(bare, nothing, cpd.dispersion))
    both = s._replace(
        log_likelihood=s.log_likelihood - 0.5 * (old.deviance + loss),
        pearson=s.pearson + old.pearson + loss,
        weight=s.weight + old.weight,
    )
    summary = new._replace(weight=new.weight + old.weight, base=new.base + base)
    done = family.finish(at, cpd.parent_variables, found._replace(sums=both), summary, cpd.dispersion)
    if not family.profiled:
        return done
    own = float(rows.fold(Pass(family.of_shape, (family.log_likelihood_of, at, found.theta, 1.0 / cpd.dispersion))))
    return replace(done, fitted=replace(done.fitted, log_likelihood=old.log_likelihood + own - 0.5 * loss))


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


def networks_at_draws(bn: SomeNetwork, n: int, seed: Any, *, every: bool = False) -> list[SomeNetwork]:
    """n networks whose parameters are drawn: those of each family from its own posterior, what was learned from incomplete rows
    together, by the covariance of its coordinates. Nodes that nobody fitted, or `do` set, are known: they stay. Those that were
    fitted, but have no posterior, stay, too, with a note; with `every` that is refused."""
    held, why = _without_posterior(bn)
    if held and every:
        raise FitError(f"the parameters of {listing(held)} cannot be drawn: {why}; or leave {name_of('redraw')} out")
    if held and bn.is_fitted:
        note(f"the parameters of {listing(held)} are held at their estimates, and intervals will be too narrow: {why}")
    seeds = np.random.SeedSequence(seed)
    names = [name for name in bn if name not in held]
    drawn: dict[str, list[Any]] = {}
    if (joint := bn.covariance_beside_posteriors(names)) is not None:
        lines = joint.draw_parameters(n, np.random.default_rng(seeds.spawn(1)[0]))
        drawn = {name: chart.with_lines(lines[name]) for name, chart in joint.charts.items()}
    first = {node: tie.nodes[0] for tie in bn.ties for node in tie.nodes}  # those that share their parameters have the same draws
    own = dict(zip(bn, seeds.spawn(len(bn)), strict=True))
    for name in names:
        if name not in drawn and name not in bn.intervened:
            drawn[name] = bn[name].redraw(n, np.random.default_rng(own[first.get(name, name)]))
    return [bn.with_cpds({name: drawn[name][i] if name in drawn else bn[name] for name in bn}) for i in range(n)]


def _without_posterior(bn: NetworkParts) -> tuple[list[str], str]:
    """The nodes whose parameters have no posterior, and why."""
    why = f"they have no posterior; fit them with a prior, for instance {BDEU}"
    try:
        known = bn.parameter_covariance
    except SufficeError as error:
        known, why = None, error.said
    joint = () if known is None else known.charts.keys() - known.unidentified
    lacking = [n for n in bn if n not in bn.intervened and n not in joint and not bn[n].has_posterior]
    held = [n for n in lacking if not (bn[n].is_regression and bn[n].has_covariance)]
    if bn.incomplete and known is None and held:
        why = f"{why}; after EM they are drawn by the observed information, which this network does not have"
    return held, why
