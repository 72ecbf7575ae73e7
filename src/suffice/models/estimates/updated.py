"""A network after more rows: what was seen and what is new add up; of regressions without a finite statistic, posteriors."""

from __future__ import annotations

from typing import Any

from suffice.errors import ModelError, listing, note
from suffice.families.gathering.gathering import gather
from suffice.families.protocol.family import Cpd
from suffice.families.regressions.fitted import DistinctRows, needs_rows
from suffice.families.regressions.laplace_update import after_more_rows, refit
from suffice.families.regressions.linear_moments import fitted_line
from suffice.models.estimates.estimated import estimate_network
from suffice.models.parts.network_parts import SomeNetwork
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
    new = more if isinstance(more, Statistics) else gather(bn.read(more, {**bn.variables, **dict.fromkeys(free, Finite)}), bn.dag)
    seen = bn.statistics.decay(decay) + new
    return estimate_network(type(bn), bn.dag, seen, bn.prior, bn.estimate, bound=True, shared=bn.shared)


def _with_regressions(bn: SomeNetwork, seen: Statistics, more: Any) -> SomeNetwork:
    """A network with regressions after more rows. Those of states on states, and linear ones, are fitted again to what all rows
    counted; for the others the Laplace posterior of the old rows is the prior of the new ones, and a note says so."""
    names = bn.regressions
    for group in bn.shared:
        if shared := [n for n in names if n in group]:
            raise ModelError(
                f"{listing(shared)} share the parameters of a regression, which needs all rows at once: call fit(bn, all_rows), "
                "with the old rows and the new"
            )
    rows = None if isinstance(more, Statistics) else bn.rows(more)
    if rows is not None:
        rows.require_complete(list(bn))
    all_of_them = seen + bn.summary(more if rows is None else rows)
    approximate = [n for n in names if not exact(bn[n])]
    if approximate and rows is None:
        raise needs_rows(bn[approximate[0]].child)
    ready: dict[str, Cpd] = {n: _again(bn[n], all_of_them) for n in names if n not in approximate}
    ready |= {n: after_more_rows(bn[n], rows.take([*bn[n].parents, n])) for n in approximate}  # type: ignore[union-attr]
    if approximate:
        note(
            f"the rows that {listing(approximate)} were fitted to are known by their normal approximation only (Laplace): it is "
            "the prior of the new rows; fit(bn, all_rows) is exact"
        )
    return estimate_network(type(bn), bn.dag, all_of_them, bn.prior, bn.estimate, bound=True, ready=ready, shared=bn.shared)


def exact(cpd: Cpd) -> bool:
    """Whether a statistic says all about a regression: a linear one, or one of states on states."""
    return bool(cpd.family.normal) or all(isinstance(v, Finite) for v in (cpd.child, *cpd.parent_variables))


def _again(cpd: Any, seen: Statistics) -> Cpd:
    if cpd.family.normal:
        line: Cpd = fitted_line(cpd.family, cpd.child, cpd.parent_variables, seen.answer(cpd.needs))
        return line
    table: Cpd = refit(cpd, DistinctRows(seen.counts([*cpd.parents, cpd.child.name])))
    return table
