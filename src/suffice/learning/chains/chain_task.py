"""The door of learning from sequences: template, sequences, hidden variables and prior, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from suffice.basis.variables import Finite, Variable
from suffice.engines.sequences.lagged import rename
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, listing, note
from suffice.errors.remedies import FAMILIES, SEQUENCES, argument, hidden_with_states, of_python
from suffice.families import checked_estimate
from suffice.families.named_families import checked_families, number_columns, variables_with_distributions, with_family_types
from suffice.families.priors.priors import Prior, as_prior
from suffice.families.protocol.family import Cpd, Estimate
from suffice.graphs.lagged import variable_and_lag
from suffice.graphs.template import Template
from suffice.incomplete.chains.chain_states import Phase, phases_of
from suffice.incomplete.first_slices import First, Free, Given, checked_first
from suffice.learning.incomplete.task import check_hidden, declared_hidden
from suffice.models.chain import Chain
from suffice.models.chains.chain_parts import nodes_given, parameter_names
from suffice.models.parts.written import written_cpd
from suffice.statistics import Statistics


@dataclass(frozen=True, eq=False)
class ChainTask:
    """What is to be learned from sequences. `variables` are those of a slice; `hidden` are those declared so."""

    template: Template
    sequences: Sequences
    variables: Mapping[str, Variable]
    hidden: tuple[str, ...]
    prior: Prior | None
    estimate: Estimate
    families: Mapping[str, Any]
    first: First
    threads: int | None = None
    room: float = math.inf
    """Bytes that may be taken beside the sequences."""

    @property
    def phases(self) -> tuple[Phase, ...]:
        return phases_of(self.template, self.variables, self.families)


def chain_task_of(
    template: Any,
    sequences: Any,
    *,
    hidden: Any = (),
    prior: Any = None,
    estimate: Estimate | None = None,
    families: Mapping[str, Any] | None = None,
    first: Any = None,
    threads: int | None = None,
    room: float = math.inf,
    start: Chain | None = None,
) -> ChainTask:
    """Template, sequences, hidden variables and prior, checked. Where nothing is declared hidden, the variables of a start are
    that are no columns of the data."""
    known = dict(template.variables) if isinstance(template, Chain) else {}
    graph = template.template if isinstance(template, Chain) else Template(template)
    rows = checked_sequences(sequences)
    if start is not None and not isinstance(start, Chain):
        raise FitError(f"the start of sequences is a Chain, not {type(start).__name__}")
    if start is not None:
        rows = rows.with_numbers(n for n, v in start.variables.items() if not isinstance(v, Finite))
    if hidden == () and start is not None:
        hidden = [v for n, v in start.variables.items() if n in graph and n not in rows.columns]
    unseen = declared_hidden(hidden)
    check_hidden(unseen, graph, rows, "template", "step")
    rows = rows.select([n for n in graph.nodes if n in rows.columns])
    if not rows.columns:
        raise DataError("every variable of the template is hidden: there is nothing to learn from")
    labels = {n: v for n, v in unseen.items() if n in rows.columns}
    rows = rows.with_variables({**{n: v for n, v in known.items() if n in rows.columns}, **labels})
    lagged = number_columns({n: f for n, f in families.items() if n in graph} if isinstance(families, Mapping) else {}, graph)
    rows = rows.with_numbers(variable_and_lag(n)[0] for n in lagged)
    for name in variables_with_distributions(families):
        raise FitError(
            f"{FAMILIES} makes {name!r} a number of a chosen distribution, which nodes of sequences cannot be yet: they may be "
            "tables, normal, Poisson counts or regressions"
        )
    rows = with_family_types(rows, families if isinstance(families, Mapping) else {})
    for name in (name for name in labels if not rows.missing[name]):
        note(f"the hidden variable {name!r} is shown in every step: nothing of it is hidden")
    if empty := [n for n, m in rows.missing.items() if m == rows.n_rows and n not in labels]:
        raise DataError(
            f"every cell of {listing(empty)} is missing; if it is never observed, declare it: "
            f"{hidden_with_states(empty[0])}, or leave it out of the template"
        )
    schema = rows.schema
    variables = {n: unseen.get(n) or schema[n] for n in graph.nodes}
    every = {p: variables[variable_and_lag(p)[0]] for n in graph.nodes for p in (n, *graph.parents(n))}
    checked_families(families, {n: graph.parents(n) for n in graph.nodes}, every, "template")
    how = checked_estimate(estimate), dict(families or {}), checked_first(first)
    return ChainTask(graph, rows, variables, tuple(unseen), as_prior(prior), *how, threads, room)


def given_cpds(first: Given, task: ChainTask) -> dict[str, Cpd]:
    """The distributions of the first slices that are given, by the names of their nodes."""
    wanted = parameter_names(task.template, Free())
    result: dict[str, Cpd] = {}
    for key, found in nodes_given(first, task.template).items():
        name, parents = wanted[key]
        known: dict[str, Variable] = {p: rename(task.variables[b], p) for p in parents for b, _ in [variable_and_lag(p)]}
        known[key] = rename(task.variables[name], key)
        given = replace(found, child=known[key]) if isinstance(found, Cpd) else found  # type: ignore[type-var]
        result[key] = written_cpd(key, given, parents, known)
    return result


def refuse_shared(shared: Any) -> None:
    if shared:
        raise FitError(
            f"{argument('shared')} ties nodes of rows; all steps of a sequence share their parameters anyway: leave it out"
        )


def refuse_first(first: Any) -> None:
    if first is not None:
        raise FitError(f"{argument('first')} says how sequences begin, and these are rows: give {SEQUENCES}")


def checked_sequences(x: Any) -> Sequences:
    """Sequences, or a refusal that says how they are made."""
    if isinstance(x, Sequences):
        return x
    if isinstance(x, Statistics):
        raise DataError("statistics are of complete steps: fit(template, statistics) needs no iterations; em needs the sequences")
    raise DataError(
        f"a template is fitted to sequences, not to {type(x).__name__}: say which rows belong together and in which order, "
        f"{SEQUENCES}{of_python('; by=None for one sequence')}"
    )
