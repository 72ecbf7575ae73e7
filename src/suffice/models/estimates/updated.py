"""A network after more rows: what was seen and what is new add up; of regressions without a finite statistic, posteriors."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from suffice.engines.scan import rows_with
from suffice.errors import ModelError, listing, note
from suffice.families.gathering.gathering import gather
from suffice.families.protocol.family import Cpd
from suffice.families.regressions.fitted import needs_rows
from suffice.families.regressions.laplace_update import after_more_rows, refit
from suffice.models.estimates.estimated import estimate_network
from suffice.models.parts.network_parts import SomeNetwork
from suffice.models.parts.sharing import Tie
from suffice.models.parts.stacked_rows import StackedRows, from_pooled, with_shares
from suffice.statistics import Statistics
from suffice.variables import Finite


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
