"""From statistics of complete steps and a prior to a chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from suffice.engines.sequences.lagged import rename
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, ModelError, listing, nearest
from suffice.errors.remedies import SEQUENCES
from suffice.families import family_of
from suffice.families.gathering import gather_steps
from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Cpd, Estimate
from suffice.graphs.lagged import variable_and_lag
from suffice.graphs.template import Template
from suffice.incomplete.first_slices import First, Free, Given
from suffice.models.chains.chain_parts import ChainParts, parameter_names
from suffice.models.estimates.estimated import estimated_nodes
from suffice.statistics import Statistics
from suffice.variables import Finite, Variable

SomeChain = TypeVar("SomeChain", bound=ChainParts)


def estimated_chain(
    kind: type[SomeChain],
    template: Template,
    statistics: Statistics,
    prior: Prior | None,
    how: Estimate,
    *,
    bound: bool = False,
    ready: Mapping[str, Cpd] | None = None,
    first: First | None = None,
) -> SomeChain:
    """The chain that statistics of complete steps, a prior and a choice of point values make.

    `ready` has distributions that statistics cannot give, those of regressions; `first` may have first slices that are given.
    """
    given: Mapping[str, Cpd] = first.cpds if isinstance(first, Given) else {}
    known = statistics.variables
    lacking = [n for n in template.nodes if n not in known and n not in (ready or {})]
    if lacking:
        raise DataError(
            f"the statistics do not speak of {listing(lacking)}, which the template names{nearest(lacking[0], known)}"
        )
    if not statistics.weight > 0:
        raise DataError("there are no steps to learn from")
    slice_ = {n: known[n] if n in known else (ready or {})[n].child for n in template.nodes}
    nodes: dict[str, tuple[Variable, list[Variable]]] = {}
    for key, (name, parents) in parameter_names(template, Free()).items():
        own = [rename(slice_[base], p) for p in parents for base, _ in [variable_and_lag(p)]]
        nodes[key] = rename(slice_[name], key), own
    variables = {v.name: v for child, own in nodes.values() for v in (child, *own)}
    _refuse_new_states(given, nodes)
    free = {n: node for n, node in nodes.items() if n not in given}
    if prior is not None and not bound:
        seen = (
            (c, ps, statistics.answer(family_of(c, ps).needs(c, ps))) for n, (c, ps) in free.items() if n not in (ready or {})
        )
        prior = prior.choose(variables, seen, statistics).bind(variables, statistics)
    cpds, unspoken = estimated_nodes(free, statistics, prior, how, ready or {}, {})
    by = "maximum likelihood" if len(unspoken) == len(free) or prior is None else f"posterior {type(how).__name__.lower()}"
    info = f"fitted from {statistics.weight:,.10g} steps, {by}"
    fitted: dict[str, Any] = {"statistics": statistics, "prior": prior, "estimate": how, "fit_info": info}
    return kind.of(template, slice_, {**cpds, **given}, **fitted, first_slices=first)


def _refuse_new_states(given: Mapping[str, Cpd], nodes: Mapping[str, tuple[Variable, list[Variable]]]) -> None:
    for key, cpd in given.items():
        child, parents = nodes[key]
        for now, before in zip((child, *parents), (cpd.child, *cpd.parent_variables), strict=True):
            if now != before:
                raise DataError(f"the first slices are given, and {key!r} is of {before!r}; these sequences have {now!r}")


def update_chain(chain: SomeChain, more: Any, decay: float = 1.0) -> SomeChain:
    """The chain that old and new sequences together give, the old ones with `decay` of their weight."""
    if chain.incomplete:
        raise ModelError(
            "this chain was fitted from incomplete sequences, whose statistics are expected, not seen: call "
            "em(template, all_sequences, start=chain), with the old sequences and the new"
        )
    if chain.statistics is None:
        raise ModelError(f"this chain keeps no statistics that steps could be added to ({chain.fit_info})")
    regressions = [n for n in chain if chain[n].is_regression]
    if regressions:
        raise ModelError(f"{regressions[0]!r} is a regression, which needs all steps at once: call fit with all sequences")
    if not isinstance(more, (Sequences, Statistics)):
        raise DataError(f"a chain is updated by {SEQUENCES}, or by statistics")
    free = {n: v for n, v in chain.variables.items() if isinstance(v, Finite) and v.inferred and v.cuts is None}
    if isinstance(more, Sequences):
        declared: Any = {**chain.variables, **dict.fromkeys(free, Finite)}
        more = gather_steps(more.with_variables({n: v for n, v in declared.items() if n in more.columns}), chain.template)
    how: dict[str, Any] = {"bound": True, "first": chain.first_slices}
    total = chain.statistics.decay(decay) + more
    return estimated_chain(type(chain), chain.template, total, chain.prior, chain.estimate, **how)
