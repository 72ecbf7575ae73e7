"""Interventions: the network in which some variables are set from outside (Pearl 2009, Causality, p. 70).

Setting a variable cuts it from its causes and leaves all other distributions as they are:

    p(v | do(x)) = Π p(vᵢ | parents of vᵢ) over the vᵢ that are not set, at the values of those that are.

A finite variable that is set stays in the network, with the distribution it is set to. A real one leaves it: a number that is
fixed has no Gaussian, which would need a variance above zero, so its value moves into the intercepts of its children:

    a[u] + b[u]·x = (a[u] + b₁[u] x₁) + b₂[u] x₂ + …     with x₁ set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.errors import ModelError, listing
from suffice.errors.remedies import Remedy
from suffice.families.categorical import Table
from suffice.families.protocol.family import Cpd
from suffice.graphs import Dag
from suffice.models.parts.network_parts import NetworkParts, SomeNetwork
from suffice.models.questions import question
from suffice.variables import Finite


def do(bn: SomeNetwork, interventions: Mapping[str, Any]) -> SomeNetwork:
    """The network after the interventions; the CPDs that they leave alone keep their posterior."""
    interventions = question.as_mapping(interventions, "an intervention")
    tables, values = _split(bn, interventions)
    kept = {n: v for n, v in bn.variables.items() if n not in values}
    if not kept:
        raise ModelError("every variable of the network would be a fixed number: nothing is left to ask about")
    cpds: dict[str, Cpd] = {n: tables[n] if n in tables else _without(bn[n], values) for n in kept}
    untouched = [n for n in kept if cpds[n] is bn[n]]
    return bn.of(
        Dag({n: cpd.parents for n, cpd in cpds.items()}),
        kept,
        cpds,
        estimate=bn.estimate,
        fit_info=f"{bn.fit_info}; then do({question.in_words(interventions)})",
        interventions={**bn.interventions, **interventions},
        covariance=bn.covariance_of(untouched),
        ties=[tie for tie in (tie.only(untouched) for tie in bn.ties) if len(tie.nodes) > 1],
    )


def _split(bn: NetworkParts, interventions: Mapping[str, Any]) -> tuple[dict[str, Table], dict[str, float]]:
    """The tables that finite variables are set to, and the numbers of real ones."""
    tables, values = {}, {}
    for name, value in interventions.items():
        if name not in bn:
            raise question.unknown_node(bn, name)
        variable = bn.variables[name]
        if question.is_missing(value):
            states = f"a state, {listing(variable.states)}, or a distribution over them" if isinstance(variable, Finite) else ""
            raise ModelError(f"{name!r} cannot be set to {value}: set it to {states or 'a finite number'}, or leave it out")
        if not isinstance(variable, Finite):
            values[name] = question.finite_number(value, name)
        elif question.is_by_state(value):
            tables[name] = Table(variable, (), question.numbers_by_state(variable, value, "probabilities"))
        else:
            tables[name] = Table(variable, (), np.eye(variable.n_states)[question.code_of(variable, value)])
    return tables, values


def _without(cpd: Cpd, values: Mapping[str, float]) -> Cpd:
    """The CPD with those of its real parents that have values moved into the intercept; a regression of states, with all of its
    numbers set, is a table."""
    values = {p: values[p] for p in cpd.real_parents if p in values}
    trials = cpd.family.trials if cpd.is_regression else None
    if trials in values:
        raise ModelError(
            f"{trials!r} holds the trials of {cpd.child.name!r} and cannot be set: observe it instead, "
            f"{Remedy(f'given={{{trials!r}: {values[str(trials)]:g}}}', f'{trials}={values[str(trials)]:g} after the bar')}"
        )
    if not values:
        return cpd
    rest = cpd.without(values)
    return rest.closed_form() if isinstance(rest.child, Finite) and not rest.is_open else rest
